"""The answer to one question, under the name that the question has."""

from dataclasses import dataclass, field
from typing import Any

from sfumato.grouped import GroupedRelease, GroupKey, amount_of
from sfumato.privacy import Amount
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
    releases: tuple[tuple[GroupKey, Release], ...]
    # How keys were found, where that costs something; then there may be none, and the statistic is paid for.
    found: str = ""
    search: Amount = field(default_factory=Amount)
    paid: Amount = field(default_factory=Amount)
    private: bool = True

    @classmethod
    def of(cls, name: str, answer: Answered, where: tuple[tuple[str, str], ...]) -> "Result":
        """The answer to the question of this name, about the rows that meet these conditions."""
        by = answer.by if isinstance(answer, GroupedRelease) else ()
        facts = name, answer.query.name, answer.query.column, by, where
        if not isinstance(answer, GroupedRelease):
            return cls(*facts, (((), answer),), private=answer.private)
        releases, found = tuple(answer.releases.items()), answer.found
        if found is None:
            return cls(*facts, releases, private=answer.private)
        paid = amount_of(found.query.cost)
        return cls(*facts, releases, found.words, found.cost, paid, answer.private)

    @property
    def amount(self) -> Amount:
        """What it costs by itself, the search for its groups included."""
        return self.search + (amount_of(self.releases[0][1].cost) if self.releases else self.paid)

    @property
    def cost(self) -> str:
        """The same in words."""
        return self.amount.words

    def to_dict(self) -> dict[str, Any]:
        """All of it in JSON's types."""
        return {
            "name": self.name,
            "statistic": self.statistic,
            "column": self.column,
            "by": list(self.by),
            "where": [list(pair) for pair in self.where],
            "releases": [{"key": list(key), "release": release.to_dict()} for key, release in self.releases],
            **self._searched(),
        }

    def _searched(self) -> dict[str, Any]:
        if not self.found:
            return {}
        costs = {"search": self.search.to_dict(), "paid": self.paid.to_dict()}
        return {"found": self.found, **costs, "private": self.private}
