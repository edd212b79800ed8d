"""What choices among public options have in common: their cost, their answers and their accuracy."""

from abc import ABC, abstractmethod
from fractions import Fraction
from functools import cached_property
from math import ceil, floor, inf, log10
from typing import Any, cast

from sfumato.accuracy.scenario import Scenario
from sfumato.accuracy.statement import Accuracy
from sfumato.checks import Number, keep, one_of, readable, whole
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws import Law, Peeled
from sfumato.laws.selection import Variant
from sfumato.mechanisms import TopMechanism
from sfumato.mechanisms.exponential import MAX_PICKS, VARIANTS
from sfumato.privacy import ZCDP, Budget, ConcentratedEvent, Event, PureDP
from sfumato.query import Cost, Interval, Label, Outcome


class Picks(ABC):
    """One or several of some public options, best first, by private scores; an answer has no interval."""

    budget: Budget
    picks: int
    method: Variant

    @property
    @abstractmethod
    def options(self) -> tuple[Label, ...]:
        """The public options, in the order of their scores."""

    @property
    @abstractmethod
    def promise(self) -> tuple[Fraction, bool]:
        """How far one record moves a score, and whether it moves all of them in one direction."""

    @property
    def row_budget(self) -> Budget:
        """What the change that the promise is about may cost."""
        return self.budget

    def check_picks(self, options: int) -> None:
        """Refuse a method that is none, and more picks than there are options."""
        one_of("method", self.method, VARIANTS)
        keep(self, picks=whole("picks", self.picks, least=1, most=MAX_PICKS))
        if self.picks > options:
            raise InvalidParameter(f"picks must be at most the {options} options, got picks={self.picks}")

    @cached_property
    def mechanism(self) -> Any:
        """The mechanism with the largest rate that the budget pays for."""
        sensitivity, monotone = self.promise
        return TopMechanism.under(
            self.row_budget, picks=self.picks, sensitivity=sensitivity, monotone=monotone, variant=self.method
        )

    @property
    def event(self) -> Event:
        """What a release costs, for an accountant."""
        if isinstance(self.row_budget, ZCDP):
            # The ranges are roots, rounded down; the rho that bounds their squares is exact.
            return ConcentratedEvent(self.row_budget.rho, "exponential")
        event: Event = self.mechanism.each.event if self.picks == 1 else self.mechanism.event
        return event

    @property
    def cost(self) -> Cost:
        """What a release costs: the whole budget, without its delta."""
        return self.budget if isinstance(self.budget, ZCDP) else PureDP(self.budget.epsilon)

    @property
    def described(self) -> str:
        """The mechanism in words."""
        words: str = self.mechanism.described()
        return words

    def law(self, view: Any) -> Law:
        """The law of the index chosen, or of several in the order of choice, for these scores.

        Raises:
            InvalidParameter: the scores are not finite numbers, one for each option.
        """
        first = self.mechanism.each.law(view)
        if first.points != len(self.options):
            # How many there are instead may depend on the data.
            raise InvalidParameter(f"scores must be one for each of the {len(self.options)} options")
        return cast(Law, first if self.picks == 1 else Peeled(first, self.picks))

    @property
    def parts_drawn(self) -> int:
        """How many options are chosen."""
        return self.picks

    def possible(self, outcome: Outcome) -> bool:
        """Whether the outcome is so many different options."""
        inside = all(0 <= part < len(self.options) for part in outcome)
        return inside and len(outcome) == len(set(outcome)) == self.picks

    def value(self, outcome: Outcome) -> Any:
        """The option chosen; a tuple of them, in the order of choice, for several picks."""
        chosen = tuple(self.options[part] for part in outcome)
        return chosen[0] if self.picks == 1 else chosen

    def interval(self, outcome: Outcome, confidence: float) -> Interval:
        """Refused: what is chosen is no number."""
        raise NotSupported(
            "interval needs a number, and an option was chosen: release.query.radius(confidence) says how "
            "far its score is from the best"
        )

    def population_interval(self, outcome: Outcome, confidence: float) -> Interval:
        """Refused: what is chosen is no number."""
        raise NotSupported("population_interval needs a mean, proportion or variance: an option was chosen")

    def accuracy(
        self, n: int | None = None, *, confidence: Number = 0.95, scenario: Scenario | None = None
    ) -> Accuracy:
        """Refused: what is chosen is no number."""
        raise NotSupported(
            "accuracy needs a number, and an option is chosen: query.radius(confidence) says how far its "
            "score is from the best"
        )

    def radius(self, confidence: float) -> float:
        """How far below the best score left each pick is, at most, for all picks at once."""
        radius: float = self.mechanism.radius(len(self.options), confidence)
        return radius

    def labels(self) -> tuple[str, ...]:
        """The names of the answers: their places, if there are several."""
        return ("choice",) if self.picks == 1 else tuple(str(place + 1) for place in range(self.picks))


def rounded_up(number: float) -> str:
    """A bound for people: three digits, never less than it is.

    >>> rounded_up(5.99146), rounded_up(0.01234), rounded_up(0.0)
    ('6', '0.0124', '0')
    """
    if not 0 < number < inf:
        return readable(number)
    place = 2 - floor(log10(number))
    digits = ceil(Fraction(number) * Fraction(10) ** place)
    # Near the ends of float64 three digits may be no number of it.
    return readable(float(digits / Fraction(10) ** place)) if abs(place) < 300 else f"{digits}e{-place}"
