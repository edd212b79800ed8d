"""The accuracy of a query as its budget grows, looked at where the budget is a short decimal."""

import math
from collections.abc import Callable
from dataclasses import is_dataclass, replace
from fractions import Fraction
from itertools import count
from typing import Any, Literal, Protocol, TypeVar

from sfumato.accuracy.scenario import Scenario
from sfumato.accuracy.statement import Accuracy
from sfumato.checks import shown
from sfumato.errors import InvalidParameter
from sfumato.privacy import ZCDP, Budget

Figure = Literal["error", "rank_error"]


class Foreseen(Protocol):
    """A query whose accuracy is known before the data are read."""

    @property
    def name(self) -> str: ...
    @property
    def column(self) -> str: ...
    @property
    def budget(self) -> Budget: ...
    @property
    def cost(self) -> Any: ...

    def accuracy(
        self, n: int | None = None, *, confidence: float = 0.95, scenario: Scenario | None = None
    ) -> Accuracy: ...


Q = TypeVar("Q", bound=Foreseen)


def checked_query(name: str, query: object) -> None:
    """Refuse what is no query with a budget and an accuracy."""
    known = is_dataclass(query) and not isinstance(query, type)
    if not (known and hasattr(query, "budget") and hasattr(query, "accuracy")):
        raise InvalidParameter(
            f"{name} must be a statistic whose accuracy is known before, such as Mean, got {shown(query)}"
        )


def with_budget(query: Q, budget: Budget) -> Q:
    """The same query for another budget."""
    changed: Q = replace(query, budget=budget)  # type: ignore[type-var]
    return changed


def short_decimal(index: int, digits: int) -> Fraction:
    """The decimals of so many significant digits in order: 1 is at index 0.

    >>> [float(short_decimal(index, 3)) for index in (-1, 0, 1, 900)]
    [0.999, 1.0, 1.01, 10.0]
    """
    first: int = 10 ** (digits - 1)
    decade, place = divmod(index, 9 * first)
    return Fraction(first + place, first) * power_of_ten(decade)


def index_below(value: Fraction, digits: int) -> int:
    """The index of the largest short decimal that is at most `value`.

    >>> index_below(Fraction("1.019"), 3), index_below(Fraction("0.9999"), 3)
    (1, -1)
    """
    first: int = 10 ** (digits - 1)
    decade = math.floor(math.log10(value.numerator) - math.log10(value.denominator))
    if power_of_ten(decade) > value:  # the logarithm was rounded
        decade -= 1
    elif power_of_ten(decade + 1) <= value:
        decade += 1
    mantissa = int(value / power_of_ten(decade) * first)
    return 9 * first * decade + mantissa - first


def power_of_ten(exponent: int) -> Fraction:
    """Ten to a whole power, exactly."""
    return Fraction(10**exponent) if exponent >= 0 else Fraction(1, 10**-exponent)


class Curve:
    """One figure of the accuracy of a query at short decimals, each computed once.

    Args:
        query: whose budget is replaced.
        budgets: the budget at a decimal.
        ends: the least and the largest decimal that are tried.
        digits: of the decimals.
        figure: which error is looked at; None for ranks where there is no other.
        asked: n, confidence and scenario.
        unit: what error counts as 1.
        near: the search ends between two simulated errors whose decimals differ by at most this factor.
    """

    def __init__(
        self,
        query: Foreseen,
        *,
        budgets: Callable[[Fraction], Budget],
        ends: tuple[Fraction, Fraction],
        digits: int,
        figure: Figure | None,
        asked: dict[str, Any],
        unit: float = 1.0,
        near: float = 1.0,
    ) -> None:
        self._query, self._budgets, self._asked = query, budgets, asked
        self._digits, self._figure, self._unit, self._near = digits, figure, unit, near
        self.low, self.high = (index_below(end, digits) for end in ends)
        # Errors fall as 1/epsilon, or as 1/sqrt(rho).
        self.power = 2.0 if isinstance(budgets(ends[1]), ZCDP) else 1.0
        self._known: dict[int, Accuracy] = {}

    def decimal(self, index: int) -> Fraction:
        """The decimal at an index."""
        return short_decimal(index, self._digits)

    def at(self, index: int) -> Accuracy:
        """The accuracy at an index."""
        if index not in self._known:
            self._known[index] = self.beside(self.decimal(index))
        return self._known[index]

    def beside(self, decimal: Fraction) -> Accuracy:
        """The accuracy at any number."""
        return with_budget(self._query, self._budgets(decimal)).accuracy(**self._asked)

    def figure(self, index: int) -> float:
        """The error at an index."""
        return read_figure(self.at(index), self._figure) / self._unit

    def seen(self, index: int, otherwise: float) -> float:
        """The error at an index if it was computed, which may take long."""
        return self.figure(index) if index in self._known else otherwise

    def rises(self, index: int, decimal: Fraction) -> bool:
        """Whether the error at a larger number is larger than at an index, by more than simulation errs."""
        if index not in self._known or self._known[index].how == "simulated":
            return False
        return self.error_at(decimal) > self.figure(index)

    def error_at(self, decimal: Fraction) -> float:
        """The error at any number."""
        return read_figure(self.beside(decimal), self._figure) / self._unit

    def first(self, target: float, start: int) -> int | None:
        """The first index whose error is at most `target`, or None.

        The search walks from `start` by the rule of the power, in growing strides, until the first index lies
        between two that were tried, and halves what is between. If the error is not monotone, the error at
        what is found is at most the target, and at the index before it is not.
        """
        below, above = self.low - 1, self.high + 1
        for index in sorted(self._known):
            if below < index < above:
                below, above = (below, index) if self.figure(index) <= target else (index, above)
        index = self._guess(target, start)
        for turn in count():
            if above - below <= 1:
                break
            if (known := self._close(target)) is not None:
                return self._guess(target, known)
            if self._is_near(below, above):
                return self._between(target, below, above)
            if not below < index < above:
                index = (below + above) // 2
            met = self.figure(index) <= target
            below, above = (below, index) if met else (index, above)
            # The rule of the power twice; where it is not enough, strides that grow until they halve.
            index = self._next(index, target, 4 ** max(turn - 1, 0), below, above)
        return above if above <= self.high else None

    def _close(self, target: float) -> int | None:
        """A simulated error so close to the target that the rule of the power tells the rest."""
        if self._near == 1 or not target > 0:
            return None
        apart = {
            index: abs(math.log(self.figure(index) / target))
            for index, accuracy in self._known.items()
            if accuracy.how == "simulated" and 0 < self.figure(index) < math.inf
        }
        closest = min(apart, key=lambda index: apart[index], default=None)
        return closest if closest is not None and apart[closest] <= math.log(self._near) / 2 else None

    def _is_near(self, below: int, above: int) -> bool:
        return (
            below in self._known
            and above in self._known
            and self._known[above].how == "simulated"
            and self.decimal(above) <= self.decimal(below) * Fraction(self._near)
        )

    def _between(self, target: float, below: int, above: int) -> int:
        """Where the straight line of logarithms between two errors meets the target."""
        high, low = self.figure(below), self.figure(above)
        part = math.log(high / target) / math.log(high / low) if low > 0 and high < math.inf else 1.0
        return below + math.ceil(part * (above - below))

    def _guess(self, target: float, start: int) -> int:
        """Where the rule of the power would meet the target, from what is known nearest to `start`."""
        nearest = min(self._known, key=lambda index: abs(index - start), default=start)
        figure = self.figure(nearest)
        if not (0 < figure < math.inf and target > 0):
            return nearest
        factor = min(max((figure / target) ** self.power, 1e-12), 1e12)
        found = index_below(self.decimal(nearest) * Fraction(factor), self._digits) + 1
        return min(max(found, self.low), self.high)

    def _next(self, index: int, target: float, stride: int, below: int, above: int) -> int:
        if below >= self.low and above <= self.high and above - below <= 2 * stride:
            return (below + above) // 2
        guess = self._guess(target, index)
        if self.figure(index) <= target:
            return max(min(guess, index - stride), below + 1)
        return min(max(guess, index + stride), above - 1)


def read_figure(accuracy: Accuracy, figure: Figure | None) -> float:
    """The error or the rank error of an accuracy; InvalidParameter where there is none."""
    if figure is None:
        figure = "rank_error" if accuracy.errors is None else "error"
    found = accuracy.error if figure == "error" else accuracy.rank_error
    if found is None and figure == "error":
        raise InvalidParameter(
            "error in units of the data needs a scenario for quantiles, got scenario=None: give one, such as "
            "Scenario.named('normal', mean=40, sd=10), or a rank_error"
        )
    if found is None:
        raise InvalidParameter(f"rank_error goes with quantiles, not with a {accuracy.statistic}")
    return float(found)
