"""What statistics that need a public number of rows, and draw their answer whole, have in common."""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from sfumato.checks import root_down
from sfumato.data.column import Column
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.privacy import ZCDP, ConcentratedEvent, Event, PureDP, RangeEvent
from sfumato.query import Cost, Outcome
from sfumato.statistics.statistic import Statistic

PROOF = "inverse-sensitivity"


@dataclass(frozen=True, kw_only=True)
class PublicSize(Statistic):
    """A statistic that is drawn from weights on its possible answers, given a public number of rows.

    Args:
        noise: leave it out; nothing is added to anything.
        neighbours: "substitution" alone, with one row changed.
        among: nothing: how many rows a part has is private.
        nulls: "lower" or "upper" for a column that can hold nulls.
    """

    # The statistic that answers where this one refuses.
    instead: ClassVar[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise != "auto":
            raise InvalidParameter(f"noise must be left out for {self.name}, got noise={self.noise!r}")
        private = self.changes is not None or self.among
        if private or self.neighbours == "add-remove" or self.nulls == "drop":
            self.refuse_private_size()

    def refuse_private_size(self) -> None:
        """Refuse a number of values that is private, and say which fact makes it so."""
        if self.changes is not None:
            why = f"one person can add or remove rows, got changes={self.changes}"
        elif self.among:
            why = "that of a part of the rows, by conditions or groups, is private"
        elif self.neighbours == "add-remove":
            why = "neighbours must be 'substitution', got neighbours='add-remove'"
        elif self.null_rule == "drop":
            why = "nulls must be 'lower' or 'upper', got nulls='drop'"
        else:
            return
        raise NotSupported(f"{self.name} needs a public number of values: {why}; use {self.instead}")

    def check(self, column: Column) -> None:
        """Refuse a column of the wrong kind, one that is publicly empty, and a private number of values."""
        super().check(column)
        self.refuse_private_size()
        self.refuse_no_rows()

    @cached_property
    def range(self) -> Fraction:
        """How far log ratios between two neighbours may spread; twice the fall of a weight with one level."""
        return root_down(8 * self.budget.rho) if isinstance(self.budget, ZCDP) else self.budget.epsilon

    @property
    def mechanism(self) -> Any:
        """What is drawn from: weights with this range."""
        return self.event

    @cached_property
    def event(self) -> Event:
        """What a release costs, for an accountant."""
        if isinstance(self.budget, ZCDP):
            # The range is a root, rounded down; the rho that bounds its square is exact.
            return ConcentratedEvent(self.budget.rho, PROOF)
        return RangeEvent(self.range, PROOF)

    @property
    def cost(self) -> Cost:
        """What a release costs: the whole budget, without its delta."""
        return self.budget if isinstance(self.budget, ZCDP) else PureDP(self.budget.epsilon)

    def possible(self, outcome: Outcome) -> bool:
        """Whether the outcome is the number of a possible answer."""
        return super().possible(outcome) and 0 <= outcome[0] <= self.last

    @property
    @abstractmethod
    def last(self) -> int:
        """The number of the last possible answer; the first is 0."""
