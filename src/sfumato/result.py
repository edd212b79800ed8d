"""What was asked under one name, and what was answered."""

from dataclasses import dataclass
from typing import Any

from sfumato.grouped import GroupedRelease, Key
from sfumato.privacy import Amount
from sfumato.question import Question
from sfumato.release import Release

Answered = Release | GroupedRelease


@dataclass(frozen=True)
class Result:
    """A release, or one for each key of the groups, with the name that the question has."""

    name: str
    statistic: str
    column: str
    by: tuple[str, ...]
    where: tuple[tuple[str, str], ...]
    releases: tuple[tuple[Key, Release], ...]

    @classmethod
    def of(cls, question: Question, answer: Answered) -> "Result":
        """The answer to a question."""
        releases = tuple(answer.releases.items() if isinstance(answer, GroupedRelease) else (((), answer),))
        first = releases[0][1]
        # The conditions come first, then the key of the group.
        where = first.among[: len(first.among) - len(question.by)]
        name = question.name or f"{first.query.name} of {first.query.column}"
        return cls(name, first.query.name, first.query.column, tuple(question.by), where, releases)

    @property
    def cost(self) -> str:
        """What it costs by itself, in words."""
        cost = self.releases[0][1].cost
        return (cost if isinstance(cost, Amount) else Amount.of(cost)).words

    def to_dict(self) -> dict[str, Any]:
        """All of it in JSON's types."""
        return {
            "name": self.name,
            "statistic": self.statistic,
            "column": self.column,
            "by": list(self.by),
            "where": [list(pair) for pair in self.where],
            "releases": [{"key": list(key), "release": release.to_dict()} for key, release in self.releases],
        }
