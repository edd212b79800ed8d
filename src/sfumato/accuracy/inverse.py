"""From a wanted accuracy to the smallest budget that gives it."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.accuracy.budget_search import (
    Curve,
    Figure,
    Foreseen,
    checked_query,
    index_below,
    read_figure,
    with_budget,
)
from sfumato.accuracy.scenario import Scenario
from sfumato.accuracy.statement import Accuracy
from sfumato.checks import Number, decimal, exact, normal, readable, shown
from sfumato.errors import InvalidParameter
from sfumato.privacy import ZCDP, Amount, ApproxDP, Budget
from sfumato.release import printable

# What is searched. A rho is about half of the square of an epsilon, and so is its range.
EPSILONS = Fraction(1, 10**6), Fraction(1000)
RHOS = Fraction(1, 10**12), Fraction(10**6)
DIGITS = 3
LESS = Fraction(9, 10)
PATIENCE = 30


@dataclass(frozen=True)
class Found:
    """The smallest budget of three digits that reaches a wanted accuracy, with its certificate.

    Guarantee:
        `certified` says that the accuracy, as `query.accuracy` states it, meets the target at `budget` and
        does not meet it at nine tenths of it. Nothing was read or spent.

    Args:
        budget: of the kind that the query had; its delta, if any, is the query's.
        query: the query with that budget.
        target: the error that was wanted.
        figure: "error" in units of the data, or "rank_error" in ranks.
        accuracy: at the budget.
        below: at nine tenths of the budget.

    >>> from sfumato.privacy import PureDP
    >>> from sfumato.statistics import Count
    >>> found = epsilon_for(Count(budget=PureDP(1), neighbours="add-remove"), error=10)
    >>> found.accuracy.error, found.below.error, found.certified
    (10.0, 12.0, True)
    """

    budget: Budget
    query: Any
    target: float
    figure: Figure
    accuracy: Accuracy
    below: Accuracy

    @property
    def epsilon(self) -> float | None:
        """The epsilon of the budget; None for a zero-concentrated one."""
        return None if isinstance(self.budget, ZCDP) else float(self.budget.epsilon)

    @property
    def rho(self) -> float | None:
        """The rho of a zero-concentrated budget; None for others."""
        return float(self.budget.rho) if isinstance(self.budget, ZCDP) else None

    @property
    def certified(self) -> bool:
        """Whether the target is met here, and not at nine tenths of the budget."""
        met, met_below = (
            read_figure(accuracy, self.figure) <= self.target for accuracy in (self.accuracy, self.below)
        )
        return met and not met_below

    def __str__(self) -> str:
        here, below = (self._words(accuracy) for accuracy in (self.accuracy, self.below))
        sure = f"{100 * float(self.accuracy.confidence):.6g} % confidence"
        name, size = parameter(self.budget)
        delta = f", delta = {decimal(self.budget.delta)}" if isinstance(self.budget, ApproxDP) else ""
        lines = [
            f"{self.query.name.replace('_', ' ')} of {printable(self.query.column)}: "
            f"{name} = {decimal(size)}{delta}",
            f"  {here} with {sure}; wanted: {self._size(self.target)}",
        ]
        if self.certified:
            lines.append(f"  at {name} = {decimal(size * LESS)}: {below}, which does not reach it")
        elif isinstance(self.query.cost, Amount):
            lines.append("  it costs nothing: any budget reaches this")
        else:
            lines.append(f"  at {name} = {decimal(size * LESS)}: {below}, which would do as well")
        if self.accuracy.scenario is not None:
            lines.append(f"  if the data are like this: {self.accuracy.scenario}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _words(self, accuracy: Accuracy) -> str:
        spread = accuracy.monte_carlo if self.figure == "error" else accuracy.monte_carlo_ranks
        simulated = f" (simulated, standard error {spread:.2g})" if spread else ""
        return f"within {self._size(read_figure(accuracy, self.figure))}{simulated}"

    def _size(self, figure: float) -> str:
        return f"±{readable(figure)}" if self.figure == "error" else f"{readable(figure)} ranks"


def epsilon_for(
    query: Foreseen,
    *,
    error: Number | None = None,
    rank_error: Number | None = None,
    confidence: float = 0.95,
    n: int | None = None,
    scenario: Scenario | None = None,
) -> Found:
    """The smallest epsilon, of three digits, at which a query is as accurate as wanted.

    Guarantee:
        The accuracy at what is returned meets the target, and at nine tenths of it does not: `Found` holds
        both. The only exceptions are targets that the smallest budget tried meets already, which `Found`
        says. Both follow from `query.accuracy`, which is exact, a bound, or simulated by fixed draws from the
        scenario; if simulated, they hold up to the Monte Carlo error that is stated. No data are read.

    Args:
        query: any statistic, with the public facts that its accuracy needs. Its budget says which kind is
            wanted: the epsilon of `PureDP`, that of `ApproxDP` with its delta kept, or the rho of `ZCDP`.
        error: the largest error wanted, in units of the data, for each number released.
        rank_error: the same in ranks, for quantiles. One of the two is given.
        confidence: with which the error is kept.
        n: the number of rows, or a guess where it is private.
        scenario: what such data look like; quantiles need one for an `error` in units of the data.

    Raises:
        InvalidParameter: both targets or none; an error in units of the data for quantiles without a
            scenario; a target that no epsilon up to 1000 (no rho up to 1,000,000) reaches.

    >>> from sfumato.privacy import PureDP
    >>> from sfumato.statistics import Mean
    >>> salaries = Mean(budget=PureDP(1), bounds=(0, 100_000), neighbours="substitution", nulls="lower")
    >>> found = epsilon_for(salaries, error=500, n=10_000)
    >>> found.epsilon, found.budget
    (0.06, PureDP(epsilon=0.06))
    """
    checked_query("query", query)
    figure, target = _target(error, rank_error)
    name, size = parameter(query.budget)
    curve = Curve(
        query,
        budgets=resized(query.budget),
        ends=RHOS if name == "rho" else EPSILONS,
        digits=DIGITS,
        figure=figure,
        asked={"n": n, "confidence": confidence, "scenario": scenario},
    )
    # The budget that the query has: what is wrong with the arguments shows there.
    start = min(max(index_below(size, DIGITS), curve.low), curve.high)
    index = curve.first(target, start)
    if index is None:
        best, last = readable(curve.figure(curve.high)), decimal(curve.decimal(curve.high))
        raise InvalidParameter(
            f"{figure}={readable(target)} is out of reach: at {name} = {last} it is still {best}. A larger n "
            "or narrower bounds may help"
        )
    index, below = _settled(curve, index, target, figure)
    budget = resized(query.budget)(curve.decimal(index))
    return Found(budget, with_budget(query, budget), target, figure, curve.at(index), below)


def _settled(curve: Curve, index: int, target: float, figure: Figure) -> tuple[int, Accuracy]:
    """An index that meets the target where nine tenths do not, with the accuracy at those.

    It is the index found, unless errors are not monotone, as where they are simulated: then one below that
    does as well, or, where the failure lies between two decimals, one a little above.
    """
    below = curve.beside(curve.decimal(index) * LESS)
    while read_figure(below, figure) <= target and index > curve.low:
        lower = index_below(curve.decimal(index) * LESS, DIGITS)
        if lower < curve.low or curve.figure(lower) > target:
            break
        found = curve.first(target, lower)
        index = lower if found is None else found
        below = curve.beside(curve.decimal(index) * LESS)
    highest = min(index + PATIENCE, curve.high)
    for above in range(index + 1, highest + 1):
        if read_figure(below, figure) > target or index == curve.low:
            break
        if curve.figure(above) <= target:
            index, below = above, curve.beside(curve.decimal(above) * LESS)
    return index, below


def parameter(budget: Budget) -> tuple[str, Fraction]:
    """What a budget is measured by, with its size."""
    return ("rho", budget.rho) if isinstance(budget, ZCDP) else ("epsilon", budget.epsilon)


def resized(budget: Budget) -> Callable[[Fraction], Budget]:
    """Budgets of the same kind, by their size; the delta stays."""
    if isinstance(budget, ApproxDP):
        return lambda size: ApproxDP(size, budget.delta)
    return type(budget)


def _target(error: object, rank_error: object) -> tuple[Figure, float]:
    if (error is None) == (rank_error is None):
        raise InvalidParameter(
            f"one of error and rank_error must be given, got error={shown(error)}, "
            f"rank_error={shown(rank_error)}"
        )
    figure: Figure = "rank_error" if error is None else "error"
    target = exact(figure, rank_error if error is None else error)
    return figure, normal(figure, target) if target else 0.0
