"""What all methods for quantiles share: the public facts they see, and the protocol they keep."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple, Protocol

from sfumato.checks import Number, boolean, exact, keep, root_down, shown, whole
from sfumato.data.column import Column
from sfumato.data.counts import MAX_ROWS, NullRule
from sfumato.data.line import Line, line_on
from sfumato.data.ranks import Ranks
from sfumato.errors import InvalidParameter, MissingBounds
from sfumato.grid import MAX_CELLS, MAX_RATIO, Grid
from sfumato.laws.grades import MAX_PARTS
from sfumato.privacy import ZCDP, ApproxDP, Budget, ComposedEvent, Event, PureDP, PureEvent, RangeEvent
from sfumato.privacy.conversions import zcdp_rho
from sfumato.query import Outcome

Orders = tuple[Fraction, ...]
MAX_ORDERS = 10_000

# Default grids have at most two to the power of so many cells, and at least a fifth of that. The coarsest
# ones leave smooth data that fill a thousandth of their bounds as accurate as finer ones would.
COARSEST, FINEST = 18, MAX_CELLS.bit_length() - 1

# The mean size of a normal number, as a part of its standard deviation.
MEAN_SIZE = math.sqrt(2 / math.pi)
# The mean of sqrt(t (1 - t)) over (0, 1): how far a bridge of many steps strays on average, as a part of the
# deviation of all its steps together.
BRIDGE = math.pi / 8

# Two records of a cell get places of their own for up to so many records; any power of two would be private.
SUBCELLS = 2**24
# How many more points round numbers of each step have, as a part of the points of all cells. With a quarter
# of it heaps are missed more often; with four times as much, smooth data are answered worse.
EMPHASIS = Fraction(1, 64)
# What arithmetic on points relies on, as that of a joint draw.
MOST_POINTS = 2**62


class Several(NamedTuple):
    """The rows that one person can change: their budget and number, and whether half leave and half join."""

    budget: Budget
    changes: int
    both_ways: bool


@dataclass(frozen=True, kw_only=True)
class Points:
    """How fine a default grid was made, so that what was drawn on it is read on the same one.

    Args:
        bits: the number of points that the budget can search, as bits.
        cells: how many points there are; None where a step or the lack of bounds leaves nothing to choose.
        closed: whether the upper bound is a point, as with a round step.

    >>> Points(bits=18, cells=5, closed=True).grid(Fraction(0), Fraction(1)).step
    Fraction(1, 4)
    """

    name: ClassVar[str] = "points"

    bits: int
    cells: int | None = None
    closed: bool = False

    def __post_init__(self) -> None:
        keep(self, bits=whole("bits", self.bits, least=1, most=FINEST))
        closed = boolean("closed", self.closed)
        if self.cells is not None:
            keep(self, cells=whole("cells", self.cells, least=2 if closed else 1, most=MAX_CELLS))

    def grid(self, lower: Fraction, upper: Fraction) -> Grid:
        """The grid between these bounds."""
        assert self.cells is not None
        if self.closed:
            return Grid.of_step(lower, upper, (upper - lower) / (self.cells - 1))
        return Grid(lower, upper, cells=self.cells)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The public facts from which a method's constants follow.

    Args:
        orders: the distinct orders, increasing, inside (0, 1).
        budget: what the method may cost.
        bounds: (lower, upper), or None for a method that needs none.
        step: the distance of the points that can be answered; None for the finest that float64 resolves.
        replaces: neighbours differ in one replaced record, which may become a null that is left out; else in
            one record that is added or removed.
        size: the public or estimated number of values; None if nothing is known.
        size_is_public: whether `size` is the number of values exactly, on all neighbours.
        nulls: what becomes of nulls.
        finest: the largest denominator of an order; smaller for tiny budgets, to keep tables short.
        points: how fine the grid is where no step is given; None for what the budget can search.
        several: what all rows of a person may cost together, for a tree, which scales its noise for all of
            them at once; `budget` is then for one row.
        on_points: whether all values are points of the grid.
    """

    orders: Orders
    budget: Budget
    bounds: tuple[Fraction, Fraction] | None
    step: Fraction | None = None
    replaces: bool
    size: int | None = None
    size_is_public: bool = False
    nulls: NullRule = "drop"
    finest: int = MAX_PARTS
    points: Points | None = None
    several: Several | None = None
    on_points: bool = False

    def __hash__(self) -> int:
        """Kept, because what follows from facts is looked up by them for each draw."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, field.name) for field in fields(self)))

    @cached_property
    def grid(self) -> Grid:
        """The points that can be answered."""
        if self.bounds is None:
            raise MissingBounds("bounds must be given for this method; method='unbounded' needs none")
        if self.points is not None and self.points.cells is not None:
            return self.points.grid(*self.bounds)
        return _grid(*self.bounds, self.step, self.resolution)

    @cached_property
    def made(self) -> Points:
        """How fine the grid is, for facts that share it."""
        if self.step is not None or self.bounds is None:
            return Points(bits=self.resolution)
        closed = self.grid.value(self.grid.cells - 1) == self.grid.upper
        return Points(bits=self.resolution, cells=self.grid.cells, closed=closed)

    @property
    def resolution(self) -> int:
        """How many points a budget can search, as bits: with more, a heap of equal values may be missed.

        A heap at an end of the orders outweighs a point elsewhere by half the range for each of its records.
        More than half of that exponent is left as a margin, also for a share that is spent on intervals.

        Of many orders only the outermost miss a heap on a finer grid, by as many ranks as there are records
        beyond them: with points of log weight L in all, r for the range and m orders, by 4 L² / (r² n) on
        average. The second exponent keeps that below a sixteenth of the error that a joint draw has anyway,
        1.77 sqrt(m + 1) / r.
        """
        if self.points is not None:
            return self.points.bits
        if self.size is None:
            return FINEST
        share = self.buy(1).range * self.size
        outermost = float(share * min(self.orders[0], 1 - self.orders[-1]) / 7)
        most = math.sqrt(float(share) * math.sqrt(len(self.orders) + 1) / 36)
        return min(max(int(max(outermost, most) / math.log(2)), COARSEST), FINEST)

    @property
    def known_size(self) -> int:
        """The number of values, at least 1, for methods that need one."""
        if self.size is None:
            raise InvalidParameter("n_hint must be given where the number of rows is private, got None")
        return max(self.size, 1)

    def buy(self, pieces: int) -> "Purchase":
        """What each of `pieces` mechanisms of bounded range may cost."""
        return buy(self.budget, pieces)


@lru_cache(maxsize=64)
def _grid(lower: Fraction, upper: Fraction, step: Fraction | None, bits: int) -> Grid:
    if step is not None:
        return Grid.of_step(lower, upper, step)
    most = min(1 << bits, int((upper - lower) * MAX_RATIO / max(abs(lower), abs(upper))))
    for each in _round_steps((upper - lower) / max(most - 1, 1)):
        if not lower % each and not upper % each:
            return Grid.of_step(lower, upper, each)
    return Grid(lower, upper, cells=1 << (most.bit_length() - 1))


def _round_steps(least: Fraction) -> Iterator[Fraction]:
    """The steps 1, 2 and 5 times a power of ten, from `least` to five times as much.

    Values that many people report are round numbers: as points of the grid they are answered as they are.
    """
    power = Fraction(10) ** (math.floor(math.log10(least)) - 1)
    for each in (digit * power * 10**more for more in range(4) for digit in (1, 2, 5)):
        if least <= each <= 5 * least:
            yield each


def checked_emphasis(given: Number) -> Fraction:
    """How many more points round numbers of each step have, as a part of those of all cells."""
    emphasis = exact("emphasis", given)
    if not 0 <= emphasis <= 1:
        raise InvalidParameter(f"emphasis must be in [0, 1], got emphasis={shown(given)}")
    return emphasis


@dataclass(frozen=True)
class Purchase:
    """The range of each of some mechanisms that are composed, what they cost together, and the event."""

    range: Fraction
    cost: Budget
    event: Event

    @property
    def pure(self) -> bool:
        """Whether ranges were added up, and not their squares."""
        return isinstance(self.cost, PureDP)


def buy(budget: Budget, pieces: int) -> Purchase:
    """The largest range that each of some mechanisms of bounded range may have under a budget.

    Ranges add up to a pure epsilon; r²/8 adds up to a rho. An approximate budget buys what is larger.

    >>> buy(PureDP(1), 4).range
    Fraction(1, 4)
    >>> buy(ZCDP(0.5), 1).range
    Fraction(2, 1)
    """
    if isinstance(budget, PureDP):
        return Purchase(budget.epsilon / pieces, budget, PureEvent(budget.epsilon, "quantiles"))
    rho = budget.rho if isinstance(budget, ZCDP) else zcdp_rho(budget.epsilon, budget.delta)
    each = root_down(8 * rho / pieces)
    if isinstance(budget, ApproxDP) and budget.epsilon / pieces >= each:
        return buy(PureDP(budget.epsilon), pieces)
    return Purchase(each, budget, ComposedEvent([RangeEvent(each, "quantiles")] * pieces))


def sampling_ranks(size: int, failure: float) -> float:
    """How far the number of values below a population quantile is from what is expected, by Hoeffding."""
    return math.sqrt(size * math.log(2 / failure) / 2)


def enclosed(
    orders: Orders,
    brackets: Sequence[tuple[Fraction, Fraction]],
    size: int,
    need: int,
    ends: tuple[Fraction, Fraction],
) -> dict[Fraction, tuple[Fraction, Fraction]]:
    """For each order the nearest released values that are surely below and above its quantile."""
    if not size:
        return dict.fromkeys(orders, ends)
    apart = Fraction(need, size)
    found = {}
    for order in orders:
        below, above = bisect_right(orders, order - apart), bisect_left(orders, order + apart)
        low = brackets[below - 1][0] if below else ends[0]
        high = brackets[above][1] if above < len(orders) else ends[1]
        found[order] = low, high
    return found


class QuantileLaw(Protocol):
    """The joint law of a raw outcome."""

    def sample(self, bits: Any) -> Any:
        """One outcome."""

    def logpmf(self, outcome: Any) -> float:
        """The log probability of an outcome."""

    @property
    def count(self) -> float:
        """How many outcomes there are."""

    def outcomes(self) -> Any:
        """Every outcome, for audits on small grids."""


class Method(Protocol):
    """A way to release several quantiles; a frozen value whose fields are its public options.

    Everything is a function of the public facts but `look`, which reads the data, and `law`, which is the
    law of the raw integer outcome. `answers` turns an outcome into one value for each order, not decreasing.
    """

    name: ClassVar[str]
    # Whether the answers lie between bounds, which must then be given.
    needs_bounds: ClassVar[bool]

    @property
    def needs_size(self) -> bool:
        """Whether constants or options follow from the number of values."""
        ...

    def check(self, facts: Facts) -> None:
        """Refuse facts that the method cannot serve."""

    def terms(self, facts: Facts) -> Purchase:
        """What the method costs and the event that says so."""

    def look(self, column: Column, facts: Facts) -> Any:
        """Read the data."""

    def law(self, view: Any, facts: Facts) -> QuantileLaw:
        """The law of the raw outcome."""

    def most_drawn(self, facts: Facts) -> int:
        """How many integers the law draws, at most."""
        ...

    def possible(self, outcome: Outcome, facts: Facts) -> bool:
        """Whether the law could have drawn this outcome."""

    def answers(self, outcome: Outcome, facts: Facts) -> Sequence[Fraction]:
        """One value for each order."""

    def ends(self, facts: Facts) -> tuple[Fraction, Fraction]:
        """The least and the largest possible answer."""

    def brackets(self, outcome: Outcome, facts: Facts) -> Sequence[tuple[Fraction, Fraction]]:
        """Two values for each order, between which lies a rank within `rank_error` of the target."""

    def rank_error(self, facts: Facts, confidence: float) -> int:
        """How many ranks that rank is from the target, at most, whatever the data, all orders together."""

    def beyond(self, facts: Facts) -> str:
        """What the rank error leaves out, in words; nothing if there is nothing."""

    def words(self, facts: Facts) -> str:
        """The mechanism in words."""


@dataclass(frozen=True, kw_only=True)
class OnGrid:
    """What methods that answer with points of the grid have in common."""

    needs_bounds: ClassVar[bool] = True
    # The options that are left open by None or "auto", with the longest value of each.
    by_rule: ClassVar[Mapping[str, Any]] = {}

    @property
    def needs_size(self) -> bool:
        """Whether constants or options follow from the number of values."""
        return False

    def rule_options(self, facts: Facts) -> dict[str, Any]:
        """No option follows from public facts."""
        return {}

    def check(self, facts: Facts) -> None:
        """Refuse a step that does not fit the bounds, before anything is charged."""
        _ = facts.grid

    def beyond(self, facts: Facts) -> str:
        """The rank error leaves nothing out."""
        return ""

    def parts(self, facts: Facts) -> int:
        """Into how many points a unit of the line is divided."""
        return 1

    def line(self, facts: Facts) -> Line:
        """How many units each cell has."""
        return Line(facts.grid.cells)

    def points(self, facts: Facts) -> int:
        """How many points there are."""
        return self.line(facts).units * self.parts(facts)

    def look(self, column: Column, facts: Facts) -> Ranks:
        """The data on the line of points, counted in blocks and sorted where the law needs it."""
        parts, line = self.parts(facts), self.line(facts)
        return Ranks.of(column, facts.grid, nulls=facts.nulls, parts=parts, line=line)

    def most_drawn(self, facts: Facts) -> int:
        """One point for each order."""
        return len(facts.orders)

    def possible(self, outcome: Outcome, facts: Facts) -> bool:
        """Whether there is one point for each order."""
        points = self.points(facts)
        return len(outcome) == len(facts.orders) and all(0 <= point < points for point in outcome)

    def answers(self, outcome: Outcome, facts: Facts) -> Sequence[Fraction]:
        """The cells of the points, in order."""
        parts, line = self.parts(facts), self.line(facts)
        return [facts.grid.value(line.cell(point // parts)) for point in sorted(outcome)]

    def ends(self, facts: Facts) -> tuple[Fraction, Fraction]:
        """The bounds."""
        return facts.grid.lower, facts.grid.upper

    def brackets(self, outcome: Outcome, facts: Facts) -> Sequence[tuple[Fraction, Fraction]]:
        """The answer and the next point: a value of the data may be anywhere in its cell."""
        return [
            (value, min(value + facts.grid.step, facts.grid.upper)) for value in self.answers(outcome, facts)
        ]


@dataclass(frozen=True, kw_only=True)
class Spread(OnGrid):
    """The same for methods that need ties to be points of their own.

    Args:
        subcells: into how many points a cell is divided, for its records to be told apart; a power of two.
        emphasis: how many more points round numbers of each step have, together, as a part of the points of
            all cells; 0 for none. Heaps of equal values at round numbers are then found more often.
    """

    subcells: int = SUBCELLS
    emphasis: Fraction = EMPHASIS

    def __post_init__(self) -> None:
        count = whole("subcells", self.subcells, least=1, most=2**30)
        if count & (count - 1):
            raise InvalidParameter(f"subcells must be a power of two, got subcells={count}")
        keep(self, subcells=count, emphasis=checked_emphasis(self.emphasis))

    def check(self, facts: Facts) -> None:
        """Refuse more points than arithmetic can tell apart, before anything is charged."""
        super().check(facts)
        if self.points(facts) > MOST_POINTS:
            raise InvalidParameter(
                f"subcells must leave at most 2**62 points, got subcells={self.subcells}; take half as many"
            )

    def parts(self, facts: Facts) -> int:
        """Into how many points a unit of the line is divided."""
        return self.subcells

    def line(self, facts: Facts) -> Line:
        """How many units each cell has: more where it begins with a round number."""
        return line_on(facts.grid, self.emphasis)

    def shared(self, facts: Facts) -> int:
        """How many ranks are lost where more equal records than places share a place.

        Where the number of rows is private, there may be as many as the hint says, or as have places.
        """
        if facts.size is None:
            return 0 if self.subcells >= SUBCELLS else MAX_ROWS
        return max(facts.size - 1, 0) // self.subcells

    def possible(self, outcome: Outcome, facts: Facts) -> bool:
        """Whether there is one point for each order, and they do not decrease."""
        return super().possible(outcome, facts) and list(outcome) == sorted(outcome)
