"""The most frequent of some public categories."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any, ClassVar

from sfumato.checks import checked_confidence, readable
from sfumato.data.column import Category, Column, checked_categories
from sfumato.data.counts import count_categories
from sfumato.data.field import Field
from sfumato.errors import InvalidParameter, MissingBounds
from sfumato.grid import Ints
from sfumato.laws.selection import Variant
from sfumato.privacy import Budget, Event, for_changes, per_change
from sfumato.query import Label, Outcome
from sfumato.statistics.picks import Picks
from sfumato.statistics.statistic import Statistic


@dataclass(frozen=True, kw_only=True)
class MostCommon(Picks, Statistic):
    r"""The category that most values have, or the most frequent few, best first.

    Guarantee:
        Exactly the cost stated. A record that is added or removed moves one count by 1, and none the other
        way; one that is replaced can move two counts, one up and one down, which halves the rate. Nulls and
        values that are no category count for none. Proof: docs/proofs/exponential.md.

    Args:
        categories: the public categories; a session takes them from its schema unless given.
        picks: how many categories to choose; all of them share the budget.
        method: "flip", "exponential" or "base2", as for `Choose`.

    >>> from sfumato.privacy import PureDP
    >>> query = MostCommon(budget=PureDP(1), neighbours="add-remove", categories=("a", "b", "c"))
    >>> query.error(1000, 0.95)
    2.0
    """

    name: ClassVar[str] = "most_common"

    categories: Sequence[Category] | None = None
    picks: int = 1
    method: Variant = "flip"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise != "auto":
            raise InvalidParameter(f"noise must be left out for a choice, got noise={self.noise!r}")
        if self.categories is not None:
            object.__setattr__(self, "categories", checked_categories("categories", self.categories))
        # Where a schema is still to give them, there may be as many as there can be picks.
        self.check_picks(self.picks if self.categories is None else len(self.categories))

    def declared(self, field: Field) -> dict[str, Any]:
        """The categories, unless the query has its own."""
        given = field.categories if self.categories is None else self.categories
        if given is None:
            raise MissingBounds("categories must be given: they are public and never read from the data")
        return {"categories": given}

    @property
    def options(self) -> tuple[Label, ...]:
        """The categories."""
        return tuple(self.categories or ())

    @property
    def promise(self) -> tuple[Fraction, bool]:
        """What one record can do to the counts, by their construction."""
        return Fraction(1), not self.substitution

    @property
    def row_budget(self) -> Budget:
        """What one of the rows that a person can change may cost."""
        return per_change(self.budget, self.changed_rows)

    @property
    def event(self) -> Event:
        """What a release costs, for an accountant: for all rows that a person can change."""
        return for_changes(super().event, self.changed_rows)

    def check(self, column: Column) -> None:
        """Refuse categories that the column can never hold."""
        column.require_categories(self.categories or ())

    def look(self, column: Column) -> Ints:
        """How many values each category has."""
        return count_categories(column, self.categories or (), other=False)

    def error(self, rows: int, confidence: float) -> float:
        """How far the count of a category chosen is below the largest left, at most, for all at once."""
        return float(floor(self.radius(checked_confidence(confidence))))

    def accuracy_words(self, error: float) -> str:
        """The accuracy in words, for a preview."""
        return f"a count within {readable(error)} of the largest"

    def notes(self, outcome: Outcome) -> tuple[str, ...]:
        """What a reader should know."""
        error = self.error(0, 0.95)
        if self.rows is not None and error >= self.rows > 0:
            words = "the answer is dominated by noise: any category may be chosen, whatever its count"
        else:
            words = f"{self.accuracy_words(error)}{' left' * (self.picks > 1)}, at 95 % confidence"
        return (*super().notes(outcome), words)
