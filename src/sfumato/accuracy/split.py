"""One budget over several queries, so that their errors are balanced."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf, log, log2, sqrt
from typing import Any, Literal

from sfumato.accuracy.budget_search import (
    Curve,
    Foreseen,
    checked_query,
    index_below,
    power_of_ten,
    read_figure,
    with_budget,
)
from sfumato.accuracy.progress import steps
from sfumato.accuracy.scenario import Scenario
from sfumato.accuracy.statement import Accuracy
from sfumato.checks import Number, normal, one_of, readable, shown
from sfumato.errors import InvalidParameter
from sfumato.privacy import ZCDP, Amount, ApproxDP, Budget, PureDP
from sfumato.release import printable

Goal = Literal["equal", "worst"]
GOALS: tuple[Goal, ...] = ("equal", "worst")
MOST_QUERIES = 1000
# Shares are decimals of so many digits, and at least the least; levels are found to this precision.
DIGITS = 4
LOWEST = 1e-9
LEAST = Fraction(1, 10**6)
PRECISION = 1e-3
# Between simulated errors at shares that differ by less than this factor, logarithms are interpolated.
NEAR = 1.1
# Errors that fall by the precision for so much of the budget, all together, have no steps.
SMOOTH = 3 * PRECISION
NEXT_TO_NOTHING = Fraction(1, 1000)
STUCK = "not even the whole makes its error smaller; a scenario may tell more"


@dataclass(frozen=True)
class Split:
    """A budget divided over several queries, with the accuracy that each gets.

    Guarantee:
        The budgets of `queries` add up to `budget` exactly; a query that costs nothing keeps its own and
        counts for nothing. Nothing was read or spent.

    Args:
        budget: the whole.
        queries: with their parts as budgets, in the order given.
        shares: of the whole, for each query; 0 for one that costs nothing.
        accuracies: of each query with its part.
        relative: the error of each in units of its scale; rank errors for quantiles without a scenario.
        notes: which queries get next to nothing, because not even the whole would make their error smaller.

    >>> from sfumato.privacy import PureDP
    >>> from sfumato.statistics import Mean
    >>> ages, pay = (
    ...     Mean(column=name, budget=PureDP(1), bounds=(0, top), neighbours="substitution", nulls="lower")
    ...     for name, top in (("age", 100), ("pay", 100_000))
    ... )
    >>> parts = split([ages, pay], PureDP(1), scales=[1, 250], n=1000)
    >>> [round(float(share), 3) for share in parts.shares]
    [0.2, 0.8]
    """

    budget: Budget
    queries: tuple[Any, ...]
    shares: tuple[Fraction, ...]
    accuracies: tuple[Accuracy, ...]
    relative: tuple[float, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        names = [_name(query) for query in self.queries]
        parts = ["free" if not share else _size(self.budget, share) for share in self.shares]
        errors = [_error_words(accuracy) for accuracy in self.accuracies]
        header = ("", "rho" if isinstance(self.budget, ZCDP) else "epsilon", "error", "relative")
        rows = [header, *zip(names, parts, errors, (f"{x:.4g}" for x in self.relative), strict=True)]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        title = f"{self.budget!r} in {len(self.queries)} part{'s' * (len(self.queries) != 1)}"
        notes = (f"  note: {note}" for note in self.notes)
        return "\n".join([title, *(_line(row, widths) for row in rows), *notes])

    def __repr__(self) -> str:
        return str(self)


def split(
    queries: Sequence[Foreseen],
    budget: Budget,
    *,
    scales: Sequence[Number] | None = None,
    goal: Goal = "equal",
    confidence: float = 0.95,
    n: int | None = None,
    scenarios: Sequence[Scenario | None] | None = None,
) -> Split:
    """Divides a budget over queries so that their errors, each in units of its scale, are balanced.

    Guarantee:
        The parts add up to the budget exactly: epsilons of `PureDP`, rhos of `ZCDP`, both numbers of
        `ApproxDP`. They follow from public facts. With errors that fall steadily as the budget grows, all
        relative errors are equal to about one part in a thousand, and no division has a smaller largest one;
        discrete noise makes them equal up to a step, simulation up to its Monte Carlo error.

    Args:
        queries: statistics with the public facts that their accuracy needs; their budgets are replaced.
        budget: the whole.
        scales: for each query the error that counts as 1, a public number; for errors relative to the answer,
            the size that is expected of it. 1 each, unless given.
        goal: "equal" makes relative errors as equal as they can be and divides what is left in proportion;
            "worst" makes the largest as small as possible, then the next with what is left, and so on.
        confidence: with which each error is kept.
        n: the number of rows, or a guess where it is private.
        scenarios: one for each query, or None; quantiles without one are measured in ranks.

    Raises:
        InvalidParameter: no query, or not one scale or scenario for each; a goal that is none.

    >>> from sfumato.privacy import ZCDP
    >>> from sfumato.statistics import Count, Mean
    >>> size = Count(budget=ZCDP(1), neighbours="add-remove")
    >>> age = Mean(column="age", budget=ZCDP(1), bounds=(0, 100), neighbours="add-remove")
    >>> parts = split([size, age], ZCDP(0.1), scales=[10, 1], n=500)
    >>> sum(query.budget.rho for query in parts.queries) == ZCDP(0.1).rho
    True
    """
    listed = _queries(queries)
    if not isinstance(budget, PureDP | ApproxDP | ZCDP):
        raise InvalidParameter(f"budget must be PureDP, ApproxDP or ZCDP, got budget={shown(budget)}")
    one_of("goal", goal, GOALS)
    units = [normal("scales", scale) for scale in _each("scales", scales, len(listed), 1)]
    asked = [
        {"n": n, "confidence": confidence, "scenario": scenario}
        for scenario in _each("scenarios", scenarios, len(listed), None)
    ]
    whole = [with_budget(query, budget) for query in listed]
    paid = [i for i, query in enumerate(whole) if query.cost != Amount()]
    if not paid:
        raise InvalidParameter("queries must cost something to divide a budget over, but all are free")
    ends = LEAST / len(paid), Fraction(1)
    curves = [
        Curve(
            whole[i],
            budgets=budget.share,
            ends=ends,
            digits=DIGITS,
            figure=None,
            asked=asked[i],
            unit=units[i],
            near=NEAR,
        )
        for i in paid
    ]
    if len(curves) == 1:
        found = [Fraction(1)]
    else:
        found = _equal(curves) if goal == "equal" else _worst(curves)
    shares = dict(zip(paid, found, strict=True))
    parts = [
        with_budget(query, budget.share(shares[i])) if i in shares else query
        for i, query in enumerate(listed)
    ]
    accuracies = [query.accuracy(**facts) for query, facts in zip(parts, asked, strict=True)]
    relative = [read_figure(accuracy, None) / unit for accuracy, unit in zip(accuracies, units, strict=True)]
    starved = [
        i
        for i, curve in zip(paid, curves, strict=True)
        if shares[i] < NEXT_TO_NOTHING and curve.figure(curve.high) >= relative[i]
    ]
    return Split(
        budget,
        tuple(parts),
        tuple(shares.get(i, Fraction(0)) for i in range(len(parts))),
        tuple(accuracies),
        tuple(relative),
        tuple(f"{_name(listed[i])} gets next to nothing, because {STUCK}" for i in starved),
    )


def _queries(queries: object) -> list[Foreseen]:
    if not isinstance(queries, list | tuple) or not 1 <= len(queries) <= MOST_QUERIES:
        raise InvalidParameter(f"queries must be a list of 1 to {MOST_QUERIES} queries, got {shown(queries)}")
    for query in queries:
        checked_query("queries", query)
    return list(queries)


def _each(name: str, given: Any, count: int, missing: Any) -> list[Any]:
    if given is None:
        return [missing] * count
    listed = given.tolist() if hasattr(given, "tolist") else given
    if not isinstance(listed, list | tuple) or len(listed) != count:
        raise InvalidParameter(
            f"{name} must be a list, one for each of {count} queries, got {name}={shown(given)}"
        )
    return list(listed)


def _equal(curves: list[Curve]) -> list[Fraction]:
    """Shares whose largest error is as small as possible, in proportion to what each needs for that."""
    return _filled(curves, _lowest(curves, Fraction(1)))


def _worst(curves: list[Curve]) -> list[Fraction]:
    """The same, but the rest goes to those whose error it can still make smaller, the largest error first."""
    settled: dict[int, int] = {}
    active, room = list(range(len(curves))), Fraction(1)
    while active:
        found = dict(zip(active, _lowest([curves[i] for i in active], room), strict=True))
        shares = {i: curves[i].decimal(place) for i, place in found.items()}
        lower = max(curves[i].figure(place) for i, place in found.items()) * (1 - PRECISION)
        need = {i: curves[i].first(lower, place) for i, place in found.items()}
        more = {i: _price(curves[i], found[i], need[i]) for i in active}
        # What is left is below the precision, or no error has a step: then it is best spread over all.
        if len(active) == 1 or room - sum(shares.values()) <= PRECISION / 2 or sum(more.values()) <= SMOOTH:
            settled |= found
            break
        # Who would need most to get below the largest error keeps what it has.
        stuck = max(active, key=lambda i: more[i])
        settled[stuck] = found[stuck]
        room -= shares[stuck]
        active.remove(stuck)
    return _filled(curves, [settled[i] for i in range(len(curves))])


def _price(curve: Curve, place: int, wanted: int | None) -> float:
    """What the way from one index to another costs, as a share; infinite where no share gets there."""
    if wanted is None and curve.figure(curve.high) >= curve.figure(place):
        return inf
    # An error that still falls, if not enough: all that is left would help.
    return float(curve.decimal(curve.high if wanted is None else wanted) - curve.decimal(place))


def _lowest(curves: list[Curve], room: Fraction) -> list[int]:
    """The smallest shares, at most `room` together, with the smallest largest error that there is."""
    places = [index_below(room / len(curves), DIGITS)] * len(curves)
    highest = max(curve.figure(place) for curve, place in zip(curves, places, strict=True))
    # No part can do better than the whole room.
    whole = index_below(room, DIGITS)
    lowest = max(curve.figure(whole) for curve in curves)
    if lowest == inf:
        raise InvalidParameter(
            "queries must have an error that some budget makes finite; quantiles may need a scenario"
        )
    highest = min(highest, max(lowest, 1.0) / LOWEST)
    lowest = max(lowest, highest * LOWEST)
    places = _needed(curves, highest, places) or places
    rounds = ceil(log2(max(log(highest / lowest) / PRECISION, 1))) if highest else 0
    for turn in steps(2 * rounds, "dividing the budget"):
        if highest <= lowest * (1 + PRECISION):
            break
        level = sqrt(lowest * highest)
        if turn % 2 == 0:
            # Where the rule of the power fills the room; halving in between, because errors may have steps.
            used = float(_total(curves, places) / room) ** (1 / curves[0].power)
            level = max(min(highest * used * (1 + PRECISION / 4), highest / (1 + PRECISION)), lowest)
        found = _needed(curves, level, places)
        if found is None or _total(curves, found) > room:
            lowest = level
        else:
            seen = (curve.seen(place, level) for curve, place in zip(curves, found, strict=True))
            places, highest = found, max(seen)
    return places


def _total(curves: list[Curve], places: list[int]) -> Fraction:
    return sum(map(Curve.decimal, curves, places), Fraction(0))


def _needed(curves: list[Curve], level: float, places: list[int]) -> list[int] | None:
    found = []
    for curve, place in zip(curves, places, strict=True):
        first = curve.first(level, place)
        if first is None:
            return None
        found.append(first)
    return found


def _filled(curves: list[Curve], places: list[int]) -> list[Fraction]:
    """The shares and what is left of 1, in proportion and in short decimals; the largest takes the crumbs.

    A query that is worse off with more, which happens where its budget chooses the method, gets none of it.
    """
    shares = [curve.decimal(place) for curve, place in zip(curves, places, strict=True)]
    crumb = power_of_ten(index_below(min(shares), 1) // 9 - DIGITS)
    takers = list(range(len(shares)))
    while True:
        left, total = 1 - sum(shares), sum(shares[i] for i in takers)
        filled = list(shares)
        for i in takers:
            filled[i] += left * shares[i] / total // crumb * crumb
        filled[max(takers, key=lambda i: shares[i])] += 1 - sum(filled)
        worse = [i for i in takers if curves[i].rises(places[i], filled[i])]
        if not worse:
            return filled
        if worse == takers:
            return min(_ways(shares), key=lambda way: max(map(Curve.error_at, curves, way)))
        takers = [i for i in takers if i not in worse]


def _ways(shares: list[Fraction]) -> list[list[Fraction]]:
    """Equal parts, or what is left to one alone."""
    left = 1 - sum(shares)
    alone = [[share + left * (i == taker) for i, share in enumerate(shares)] for taker in range(len(shares))]
    return [[Fraction(1, len(shares))] * len(shares), *alone]


def _name(query: Any) -> str:
    return f"{query.name.replace('_', ' ')} of {printable(query.column)}"


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    first, *others = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
    numbers = (cell.strip().rjust(width) for cell, width in zip(others, widths[1:], strict=True))
    return f"  {'  '.join([first, *numbers])}".rstrip()


def _size(budget: Budget, share: Fraction) -> str:
    part = budget.share(share)
    return f"{float(part.rho if isinstance(part, ZCDP) else part.epsilon):.4g}"


def _error_words(accuracy: Accuracy) -> str:
    if accuracy.error is None:
        return f"{readable(accuracy.rank_error or 0.0)} ranks"
    return f"±{readable(float(f'{accuracy.error:.4g}'))}"
