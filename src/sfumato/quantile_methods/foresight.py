"""The accuracy of quantiles before they are paid for: on any data, or on data like a public scenario."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from sfumato.accuracy.progress import steps
from sfumato.accuracy.scenario import Scenario
from sfumato.accuracy.simulation import MOST_SIMULATED, SEED, few_beyond, tails
from sfumato.accuracy.statement import Accuracy
from sfumato.checks import Number, checked_confidence, shown, whole
from sfumato.data.admission import admit
from sfumato.data.counts import MAX_ROWS
from sfumato.data.line import Line
from sfumato.errors import InvalidParameter
from sfumato.grid import Floats, Grid, Ints
from sfumato.laws import SeededBits
from sfumato.quantile_methods.counted import CountedLaw
from sfumato.quantile_methods.equi_depth import EquiDepth
from sfumato.quantile_methods.foreseen_width import usual_ranks
from sfumato.quantile_methods.independent import NodesLaw
from sfumato.quantile_methods.method import Facts
from sfumato.quantile_methods.node import Node
from sfumato.quantile_methods.verified import Verified
from sfumato.query import Outcome, raw
from sfumato.release import printable

LEAST_SETS, SEVERAL_SETS, MOST_SETS, MOST_VALUES = 8, 40, 64, 6_400_000
# On how many sets of values, and by how many draws on all of them, the width of verified intervals is told.
WIDE_SETS, WIDE_DRAWS = 8, 48


def foresee(query: Any, n: int | None, confidence: Number, scenario: Scenario | None) -> Accuracy:
    """How many ranks quantiles would be off on any data; with a scenario, on data like it, and by value."""
    level = checked_confidence(confidence)
    rows = query.rows if n is None else whole("n", n, least=0, most=MAX_ROWS)
    if scenario is not None and not isinstance(scenario, Scenario):
        raise InvalidParameter(f"scenario must be an accuracy.Scenario, got scenario={shown(scenario)}")
    if query.rows_are_public and rows is not None and rows != query.rows:
        query = replace(query, rows=rows)
    if rows is None and (scenario is not None or query.sized):
        raise InvalidParameter("n must be given, a guess of the private number of values, got n=None")
    bound = query.rank_error(level, rows if rows is not None else 1)
    worst = math.inf if bound >= MAX_ROWS else float(bound)
    stated = Accuracy(
        statistic=query.name,
        column=query.column,
        rows=rows,
        confidence=level,
        labels=query.labels(),
        ranks=(worst,) * len(query.probs),
        how="bound",
        any_data=worst,
        interval_ranks=_interval_ranks(query, rows, level),
        notes=_left_out(query, rows),
    )
    if scenario is None:
        return stated
    if not rows:
        raise InvalidParameter(f"n must be at least 1 for a scenario, got n={rows}")
    return _under(stated, query, rows, scenario)


def _facts(query: Any, size: int) -> Facts:
    """What the method knows, with this number of values where they are counted first."""
    facts: Facts = query.facts if query._counted is None else query._counted.settled(size)
    return facts


def _left_out(query: Any, rows: int | None) -> tuple[str, ...]:
    """What the bound on ranks leaves out."""
    facts = _facts(query, rows or 1)
    beyond = query._pick(facts)[0].beyond(facts)
    return (f"the bound on any data has a reserve{beyond}",) if beyond else ()


def _interval_ranks(query: Any, rows: int | None, level: float) -> tuple[float, ...] | None:
    """How wide intervals will be that counts tell; None for others."""
    facts = _facts(query, rows or 1)
    method = query._pick(facts)[0]
    if not isinstance(method, Verified | EquiDepth):
        return None
    found = dict(zip(query.orders, usual_ranks(method, facts, level), strict=True))
    return tuple(found[order] for order in query.asked)


@lru_cache(maxsize=256)
def _under(stated: Accuracy, query: Any, rows: int, scenario: Scenario) -> Accuracy:
    level, size, notes = stated.confidence, min(rows, MOST_SIMULATED), list(stated.notes)
    uncertain: dict[str, Any] = {"how": "exact"}
    if size < rows and query.rows_are_public:
        query = replace(query, rows=size)
    # Answers are by distinct orders, in order; questions may repeat them.
    asked = [query.orders.index(order) for order in query.asked]
    sets = _sets(query, size, scenario)
    listed = _listed(query, size, scenario, sets)
    if listed is not None:
        (ranks, off), (errors, away) = listed.ranks(level), listed.error(level)
    else:
        drawn = _drawn(query, size, scenario, sets)
        (ranks, off), (errors, away) = (tails(part, level, sets) for part in drawn)
        notes += few_beyond(len(drawn[0]), level)
    if listed is None or sets > 1:
        uncertain = {
            "how": "simulated",
            "monte_carlo": float(away[errors.argmax()]),
            "monte_carlo_ranks": float(off[ranks.argmax()]),
        }
    wide = None
    if stated.interval_ranks is not None:
        wide = _apart(query, stated.interval_ranks, rows, scenario)
        if size == rows:
            wide = _widths(query, size, scenario, sets, level)
    if size < rows:
        errors = np.minimum(errors, _spread(query, ranks / rows, scenario))
        notes.append(f"ranks were found on {size:,} values, which are as good as {rows:,}")
    return replace(
        stated,
        ranks=tuple(ranks[asked].tolist()),
        errors=tuple(errors[asked].tolist()),
        scenario=scenario.words,
        interval_widths=wide,
        notes=tuple(notes),
        **uncertain,
    )


def _apart(query: Any, ranks: Sequence[float], rows: int, scenario: Scenario) -> tuple[float, ...]:
    """How far apart values are that are so many ranks apart, around each order."""
    orders, half = np.array([float(order) for order in query.asked]), np.array(ranks) / (2 * rows)
    low, high = (scenario.quantile(np.clip(orders + sign * half, 0, 1)) for sign in (-1, 1))
    return tuple((high - low).tolist())


@lru_cache(maxsize=16)
def _widths(query: Any, size: int, scenario: Scenario, sets: int, level: float) -> tuple[float, ...]:
    """How wide verified intervals are in value, on average over draws."""
    bits, found = SeededBits(SEED + 2), []
    for values in _data(size, scenario, sets)[:WIDE_SETS]:
        law = query.law(query.look(Likely.of(query.facts, values).column(query)))
        for _ in range(WIDE_DRAWS // min(sets, WIDE_SETS)):
            low, high = query.interval(raw(law.sample(bits)), level)
            found.append(np.atleast_1d(high) - np.atleast_1d(low))
    return tuple(np.mean(found, axis=0).tolist())


def _spread(query: Any, away: Floats, scenario: Scenario) -> Floats:
    """How far values are from the quantiles, if their shares are so far; a step of the grid is added."""
    orders = np.array([float(order) for order in query.orders])
    center = scenario.quantile(orders)
    sides = (scenario.quantile(np.clip(orders + sign * away, 0, 1)) for sign in (-1, 1))
    step = 0.0 if query.bounds is None else float(_facts(query, MOST_SIMULATED).grid.step)
    return np.asarray(np.max([np.abs(side - center) for side in sides], axis=0) + step)


@dataclass(frozen=True, eq=False)
class Likely:
    """Values that a scenario may give, sorted, and the public cells in which their ranks are told."""

    values: Floats
    grid: Grid | None

    @classmethod
    def of(cls, facts: Facts, values: Floats) -> "Likely":
        """The values clamped to the bounds, where there are any."""
        if facts.bounds is None:
            return cls(values, None)
        lower, upper = (float(end) for end in facts.bounds)
        return cls(np.clip(values, lower, upper), facts.grid)

    def column(self, query: Any) -> Any:
        """The values as a column."""
        return admit(self.values, query.column)

    def truth(self, orders: Any) -> Floats:
        """The value of rank ceil(p n) for each order p."""
        places = [max(math.ceil(order * len(self.values)), 1) - 1 for order in orders]
        return np.asarray(self.values[places])

    def ranks_off(self, released: Floats, orders: Any) -> Floats:
        """How far the ranks of released values are from p n; a cell with ties has all ranks of its values."""
        known: Any = self.values
        asked: Any = released.ravel()
        if self.grid is not None:
            known, asked = self.grid.index(known), self.grid.index(asked)
        low, high = np.searchsorted(known, asked, side="left"), np.searchsorted(known, asked, side="right")
        targets = np.array([float(order * len(self.values)) for order in orders])
        low, high = low.reshape(released.shape), high.reshape(released.shape)
        return np.asarray(np.maximum(np.maximum(low - targets, targets - high), 0.0))


@lru_cache(maxsize=1)
def _data(size: int, scenario: Scenario, sets: int) -> tuple[Floats, ...]:
    """Sets of values: gaps between neighbours differ, and an even set would make errors too small."""
    bits = SeededBits(SEED)
    return tuple(scenario.drawn(size, bits) for _ in range(sets))


@lru_cache(maxsize=16)
def _drawn(query: Any, size: int, scenario: Scenario, sets: int) -> tuple[Floats, Floats]:
    """Draws of the rank errors and of the errors in value, one row a draw and one column an order."""
    each = -(-_draws(query, size) // sets)
    bits, orders = SeededBits(SEED + 1), query.orders
    ranks, errors = np.empty((2, sets * each, len(orders)))
    count: Outcome = ()
    for i in steps(sets * each, f"simulating {query.name} of {printable(query.column)}"):
        if i % each == 0:
            data = Likely.of(query.facts, _data(size, scenario, sets)[i // each])
            law = query.law(query.look(data.column(query)))
            if isinstance(law, CountedLaw):
                # One count for each set of values, because a count reads them anew. The grid may follow it.
                count = raw(law.first.sample(bits))
                law = law.after(count)
                data = Likely.of(query._settled(count)[1], data.values)
            truth, released = data.truth(orders), np.empty((each, len(orders)))
        found = query._by_order((*count, *raw(law.sample(bits))))
        released[i % each] = [found[order] for order in orders]
        if i % each == each - 1:
            block = slice(i + 1 - each, i + 1)
            ranks[block], errors[block] = data.ranks_off(released, orders), np.abs(released - truth)
    return ranks, errors


def drawn_errors(query: Any, size: int, scenario: Scenario) -> Floats:
    """Draws of how far each order is off in value on data like a scenario, one row a draw."""
    if query.rows_are_public and query.rows != size:
        query = replace(query, rows=size)
    return _drawn(query, size, scenario, _sets(query, size, scenario))[1]


def _sets(query: Any, size: int, scenario: Scenario) -> int:
    """How many sets of values are drawn: many, if they are small and few orders are asked for."""
    if scenario.fixed:
        return 1
    orders = len(query.orders)
    most = MOST_SETS if orders == 1 else min(SEVERAL_SETS, 1500 // orders)
    return max(min(most, MOST_VALUES // size), LEAST_SETS)


# How long a draw takes, in milliseconds: at least, for each order, and for each pair of orders.
COSTS = {
    "single": (0.05, 0.0, 0.0),
    "independent": (0.0, 0.02, 0.0),
    "inverse_sensitivity": (0.0, 0.02, 0.0),
    "joint": (0.0, 0.1, 0.0),
    "interpolated": (0.1, 0.06, 0.0),
    "recursive": (0.0, 0.2, 0.0),
    "tree": (6.0, 0.01, 0.0),
    "histogram": (0.0, 0.2, 0.015),
    "equi_depth": (30.0, 0.02, 0.0),
}
# Every order walks past the thresholds of all.
VERIFIED = 0.05
GOAL, LEAST_DRAWS, MOST_DRAWS = 1600.0, 100, 1000


def _draws(query: Any, size: int) -> int:
    """As many draws as fit the time that a preview may take, by public facts, so that it can be repeated."""
    facts = _facts(query, size)
    count = len(query.orders)
    method = query._pick(facts)[0]
    walks = VERIFIED if isinstance(method, Verified) else 0.0
    while hasattr(method, "method"):
        method = method.method  # what it verifies, or what it frames with outer orders
    least, each, pairs = COSTS.get(method.name, (0.0, 2.5, 0.0))
    pairs += walks
    return int(min(max(GOAL / (least + each * count + pairs * count**2), LEAST_DRAWS), MOST_DRAWS))


@dataclass(frozen=True, eq=False)
class Runs:
    """The law of one released quantile on one set of values: runs of points with equal probability."""

    ends: Ints
    lengths: Ints
    # Distances to the target, in parts of a rank, and how likely a run is.
    levels: Ints
    shares: Floats
    # The data's own quantile, in steps of the grid from its lower end.
    center: float
    line: Line

    @classmethod
    def of(cls, node: Node, data: Likely, order: Fraction, grid: Grid) -> "Runs":
        """The runs, and nothing of the data but their quantile."""
        lengths, levels, shares = node.law.runs
        # The first and the last run hold all that is farther than the weights tell.
        most = int(max(order, 1 - order) * len(data.values) * node.parts)
        truth = Fraction(float(data.truth([order])[0]))
        center = float((truth - grid.lower) / grid.step)
        return cls(node.law.ends, lengths, np.minimum(levels, most), shares, center, node.ranks.line)

    def near(self, level: int) -> float:
        """The probability of a rank error of at most so many parts of a rank."""
        return float(self.shares[self.levels <= level].sum())

    def within(self, away: float) -> float:
        """The probability of an error of at most so many steps of the grid."""
        cells = math.ceil(self.center - away), math.floor(self.center + away) + 1
        first, behind = (self.line.begins(min(max(cell, 0), self.line.cells)) for cell in cells)
        points = np.minimum(self.ends, behind) - np.maximum(self.ends - self.lengths, first)
        return float((self.shares / np.maximum(self.lengths, 1)) @ np.maximum(points, 0))


@dataclass(frozen=True, eq=False)
class Listed:
    """The law of one released quantile on several sets of values, taken with equal chance."""

    sets: tuple[Runs, ...]
    parts: int
    grid: Grid

    def ranks(self, confidence: float) -> tuple[Floats, Floats]:
        """The smallest rank error that the quantile keeps with this confidence, and its standard error."""
        levels = np.unique(np.concatenate([runs.levels for runs in self.sets]))

        def kept(place: int) -> Floats:
            return np.array([runs.near(int(levels[place])) for runs in self.sets])

        low, figure, high = levels[list(_mixed(kept, len(levels) - 1, confidence))] / self.parts
        return np.array([figure]), np.array([(high - low) / 2])

    def error(self, confidence: float) -> tuple[Floats, Floats]:
        """The same in value."""
        step, fine = float(self.grid.step), 64

        def kept(away: int) -> Floats:
            return np.array([runs.within(away / fine) for runs in self.sets])

        low, figure, high = (i / fine for i in _mixed(kept, fine * self.grid.cells, confidence))
        if len(self.sets) == 1:
            # The answer is a point of the grid: the farthest of those that are that near.
            center = self.sets[0].center
            figure = max(center - math.ceil(center - figure), math.floor(center + figure) - center)
        return np.array([step * figure]), np.array([step * (high - low) / 2])


def _mixed(kept: Callable[[int], Floats], most: int, confidence: float) -> tuple[int, int, int]:
    """Where the mean of `kept` reaches the confidence, between where it would one standard error away."""

    def reach(level: float) -> int:
        low, high = -1, most
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if kept(middle).mean() >= level else (middle, high)
        return high

    figure = reach(confidence)
    shares = kept(figure)
    if len(shares) == 1:
        return figure, figure, figure
    off = float(shares.std(ddof=1)) / math.sqrt(len(shares))
    return reach(confidence - off), figure, reach(min(confidence + off, 1.0))


@lru_cache(maxsize=4)
def _listed(query: Any, size: int, scenario: Scenario, sets: int) -> Listed | None:
    """The law of a single quantile, where it can be read off run by run."""
    if len(query.orders) != 1 or query._counted is not None or query.chosen.name != "single":
        return None
    (order,), grid = query.orders, query.facts.grid
    found, parts = [], 1
    for values in _data(size, scenario, sets):
        data = Likely.of(query.facts, values)
        law = query.law(query.look(data.column(query)))
        if not isinstance(law, NodesLaw):
            return None
        found.append(Runs.of(law.nodes[0], data, order, grid))
        parts = law.nodes[0].parts
    return Listed(tuple(found), parts, grid)
