"""What an erratum is: a published statement, a verdict, and the computation that shows it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

Verdict = Literal["holds", "false", "not proved", "ill-posed", "misleading"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True)
class Finding:
    """A sentence and the computed numbers that it shows.

    >>> Finding("{share:.0%} of {cases} cases", {"share": 0.5, "cases": 4}).text
    '50% of 4 cases'
    """

    sentence: str
    numbers: Mapping[str, float]

    @property
    def text(self) -> str:
        """The sentence with its numbers filled in."""
        return self.sentence.format(**self.numbers)


def found(sentence: str, **numbers: float) -> Finding:
    """A finding whose every figure is computed by the caller: the sentence itself has no digits."""
    return Finding(sentence, numbers)


@dataclass(frozen=True, kw_only=True)
class Erratum:
    """A statement of a source, whether it is right, and a function that computes why.

    Guarantee:
        `finding` takes no arguments, draws from fixed seeds where it draws at all, and returns the same
        numbers on every run.

    >>> rule = Erratum(
    ...     id="E0", source="T", statement="A coin shows heads twice as often as tails.", verdict="false",
    ...     finding=lambda: found("Heads have the chance {heads}.", heads=1 / 2),
    ...     corrected="Both are equally likely.", code="sfumato.laws.bernoulli",
    ... )
    >>> rule.finding().text
    'Heads have the chance 0.5.'
    """

    id: str
    source: str
    statement: str
    verdict: Verdict
    finding: Callable[[], Finding]
    corrected: str
    code: str
