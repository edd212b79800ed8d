"""One of a public list of candidates, or the best few, by scores that the caller computes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.checks import Number, boolean, checked_text, compact, positive, shown
from sfumato.errors import InvalidParameter
from sfumato.laws.selection import Variant
from sfumato.mechanisms.exponential import MAX_CANDIDATES
from sfumato.privacy import Budget, Neighbours, check_neighbours
from sfumato.query import Label, Outcome
from sfumato.statistics.picks import Picks, rounded_up
from sfumato.statistics.statistic import check_budget

# Python refuses to read numbers of thousands of digits, and a label need not be one.
_LONGEST = 2**1024


@dataclass(frozen=True, kw_only=True)
class Choose(Picks):
    r"""One or several of a public list of candidates, the better their private scores the more likely.

    Guarantee:
        Exactly the cost stated, if one record moves each score by at most `sensitivity` and, with `monotone`,
        moves none up while it moves another down. Both are promises of the caller; no code can check them.
        Proof: docs/proofs/exponential.md.

    Args:
        candidates: different texts, numbers or booleans, chosen without the data.
        sensitivity: how far one record can move the score of any one candidate.
        budget: what the release may cost; of an approximate budget only the epsilon is spent.
        monotone: no record raises one score while it lowers another. Halves the error; for add-remove only,
            because a record that is replaced can do both.
        picks: how many candidates to choose, best first; all of them share the budget.
        method: "flip" (permute-and-flip) for the best answer to one question, "exponential" for many of them
            under zCDP, "base2" for the latter with rational weights and integer scores.
        neighbours: what `sensitivity` is about; unless given, "add-remove" if `monotone` and else
            "substitution".

    Raises:
        InvalidParameter: no candidates or the same one twice, more picks than candidates, or `monotone` under
            substitution.

    References:
        [MT07] for the mechanism, [MS20] for permute-and-flip.

    >>> from sfumato.privacy import PureDP
    >>> films = ("Harbour", "Orchard", "The Long Tide")
    >>> query = Choose(candidates=films, sensitivity=1, monotone=True, budget=PureDP(1))
    >>> round(query.radius(0.95), 2), query.neighbours
    (3.0, 'add-remove')
    """

    name: ClassVar[str] = "choice"
    column: ClassVar[str] = "candidates"

    candidates: Sequence[Label]
    sensitivity: Number
    budget: Budget
    monotone: bool = False
    picks: int = 1
    method: Variant = "flip"
    neighbours: Neighbours | None = None

    def __post_init__(self) -> None:
        check_budget(self.budget)
        object.__setattr__(self, "candidates", _labels(self.candidates))
        object.__setattr__(self, "sensitivity", positive("sensitivity", self.sensitivity))
        object.__setattr__(self, "neighbours", relation(self.neighbours, self.monotone))
        self.check_picks(len(self.candidates))

    @property
    def options(self) -> tuple[Label, ...]:
        """The candidates."""
        return tuple(self.candidates)

    @property
    def promise(self) -> tuple[Fraction, bool]:
        """What the caller says about the scores."""
        return Fraction(self.sensitivity), self.monotone

    def notes(self, outcome: Outcome) -> tuple[str, ...]:
        """What a reader should know: the promise, and how good the choice is."""
        sensitivity, monotone = self.promise
        moves = f"a score by at most {compact(sensitivity)}" + ", all in one direction" * monotone
        about = "each score is" if self.picks > 1 else "its score is"
        radius = rounded_up(self.radius(0.95))
        return (
            f"rests on the caller's promise that one record moves {moves}",
            f"{about} within {radius} of the best{' left' * (self.picks > 1)}, at 95 % confidence",
        )


def relation(neighbours: object, monotone: object) -> Neighbours:
    """The neighbour relation of scores, if it is one under which they can be monotone.

    >>> relation(None, False), relation(None, True)
    ('substitution', 'add-remove')
    """
    same = boolean("monotone", monotone)
    if neighbours is None:
        return "add-remove" if same else "substitution"
    if same and neighbours == "substitution":
        raise InvalidParameter(
            "monotone must be False under substitution: a record that is replaced can raise one score and "
            "lower another, got monotone=True"
        )
    return check_neighbours(neighbours)


def _labels(given: object) -> tuple[Label, ...]:
    listed = getattr(given, "tolist", None) or getattr(given, "to_list", None)
    items = given if isinstance(given, Sequence) else listed() if listed is not None else None
    if not isinstance(items, Sequence) or isinstance(items, str | bytes):
        raise InvalidParameter(f"candidates must be a list of labels, got candidates={shown(given)}")
    if not 1 <= len(items) <= MAX_CANDIDATES:
        raise InvalidParameter(f"candidates must be 1 to {MAX_CANDIDATES} labels, got {len(items)}")
    labels = tuple(_label(item) for item in items)
    # 1, True and "1" would be told apart by no reader of the answer.
    for same in (labels, tuple(map(str, labels))):
        if len(set(same)) != len(same):
            raise InvalidParameter("candidates must be different from each other, also as text")
    return labels


def _label(item: object) -> Label:
    plain = item.item() if isinstance(item, np.generic) else item
    if type(plain) is str:
        return checked_text("candidates", plain)
    if type(plain) is bool or (type(plain) is int and abs(plain) < _LONGEST):
        return plain
    if type(plain) is float and math.isfinite(plain):
        return plain
    raise InvalidParameter(f"candidates must be texts, finite numbers or booleans, got {shown(item)}")
