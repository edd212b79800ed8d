"""How far a quantile is from its answer, told by how far apart the released ones are.

An answer is off by some ranks, and two released quantiles tell how far apart ranks are between them. How many
ranks, at a confidence, is found by drawing from the method itself on public data of a few shapes; the
interval is wide enough on all of them. docs/intervals.md gives the rule and how often it holds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from sfumato.accuracy.progress import steps
from sfumato.accuracy.scenario import Scenario
from sfumato.accuracy.simulation import MOST_SIMULATED
from sfumato.checks import shown
from sfumato.data.admission import admit
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.grid import Floats
from sfumato.laws import SeededBits
from sfumato.quantile_methods.foresight import drawn_errors
from sfumato.quantile_methods.framed import Framed
from sfumato.quantile_methods.method import Facts, Method, Points
from sfumato.quantile_methods.verified import Verified
from sfumato.query import Outcome, raw
from sfumato.release import ANY_DATA, SLOPES

Ends = tuple[Floats, Floats]


@dataclass(frozen=True)
class Shape:
    """Public data that a method is tried on: spread around a center over a part of the bounds, or equal."""

    center: float
    width: float
    # Where every other value lies instead, in a heap.
    heap: float | None = None

    def values(self, sample: Floats) -> Floats:
        """The values, sorted, from a sorted sample of [0, 1]."""
        spread = self.center + (sample - 0.5) * self.width
        if self.heap is None:
            return np.asarray(spread)
        return np.sort(np.where(np.arange(len(sample)) % 2, self.heap, spread))

    @property
    def slope(self) -> float:
        """How fast values grow with their orders, outside of a heap."""
        return self.width if self.heap is None else 2 * self.width


# Far from the values are empty stretches, into which a small budget may stray; the last are all equal.
SHAPES = (
    Shape(0.5, 1.0),
    Shape(0.5, 1 / 32),
    Shape(1 / 64, 1 / 32),
    Shape(0.25, 0.0),
    Shape(0.4, 0.0),
)
# Orders in a heap that ends near them stray far, and take their neighbours with them.
HEAPS = (Shape(0.5, 1.0, heap=0.5), Shape(0.5, 1.0, heap=0.0))
# A heap shows where two known values are closer, for their orders, than others by this factor.
CLOSER = 1000
# On fewer points than this there is no room that would attract a draw out of a heap.
ROOM = 2**12
# More values than this leave the same number of ranks.
MOST_VALUES = 100_000
FEWEST_DRAWS, MOST_DRAWS = 24, 800
# More orders than this would take too long.
MOST_ORDERS = 128
# On so many random samples of each shape, fewer where they are large.
SAMPLED, SAMPLED_LARGE, LARGE = 40, 12, 20_000
# Draws beyond a level, so that their number tells it; surer levels follow by the exponential tail of ranks.
LEAST_BEYOND = 8
# So many standard errors of the simulation are taken on the safe side.
SAFE = 1.0
# What is spent on the records beyond the orders, at least: with less, their quantiles are all noise.
LEAST_TOLD = 4
# How many samples of a population stand for all.
SAMPLES = 65
# Why no width is enough on all shapes.
FEW = "so few values at this budget may be anywhere"


@dataclass(frozen=True, eq=False)
class Reach:
    """How far draws were off on one shape, as shares of the data, and how spread samples of it are."""

    offsets: Floats
    spreads: Floats

    def needed(self, level: float, size: int, drawn_size: int, orders: Floats | None) -> Floats:
        """For each order the share of the data, on both sides of the answer, that covers at this level."""
        draws = len(self.offsets)
        told = min(level, max(1 - LEAST_BEYOND / draws, 0.5))
        safe = told + SAFE * math.sqrt(told * (1 - told) / draws)
        ranks = drawn_size / size
        if orders is None:
            place = min(math.ceil(safe * draws), draws) - 1
            found = np.sort(np.abs(self.offsets), axis=0)[place] * ranks
        else:
            sampling = np.sqrt(orders * (1 - orders) / size) * self.spreads
            found = _convolved(self.offsets * ranks, sampling, min(safe, 1 - 1 / draws))
        return np.asarray(found * max(math.log(1 - level) / math.log(1 - told), 1.0))


def _convolved(offsets: Floats, sampling: Floats, level: float) -> Floats:
    """The half widths that cover offsets with normal errors added, one for each column."""
    from scipy.special import ndtr

    scale = np.maximum(sampling, 1e-300)
    low = np.zeros(offsets.shape[1])
    high = np.max(np.where(np.isfinite(offsets), np.abs(offsets), 0.0) + 10 * sampling, axis=0) + 1e-300
    for _ in range(60):
        middle = (low + high) / 2
        with np.errstate(invalid="ignore"):
            above, below = ndtr((middle - offsets) / scale), ndtr((-middle - offsets) / scale)
        covered = np.where(np.isfinite(offsets), above - below, 0.0).mean(axis=0) >= level
        low, high = np.where(covered, low, middle), np.where(covered, middle, high)
    # Where even the widest does not cover, answers stray further than any width tells.
    reached = np.isfinite(offsets).mean(axis=0) >= level
    return np.where(reached, high, np.inf)


def known_orders(method: Method, facts: Facts) -> Floats:
    """The orders whose values are known, with one beyond each end."""
    low, high = method.outer(facts).orders if isinstance(method, Framed) else (0, 1)
    return np.array([float(q) for q in (low, *facts.orders, high)])


def known_values(method: Method, outcome: Outcome, facts: Facts) -> Floats:
    """Their values."""
    framed = isinstance(method, Framed)
    least, most = method.outer_answers(outcome, facts) if framed else method.ends(facts)  # type: ignore[attr-defined]
    return np.array([float(value) for value in (least, *method.answers(outcome, facts), most)])


@dataclass(frozen=True, eq=False)
class Slopes:
    """How fast values grow with their orders on both sides of the inner ones, and how far neighbours are."""

    below: Floats
    above: Floats
    gaps_below: Floats
    gaps_above: Floats

    @classmethod
    def of(cls, orders: Floats, values: Floats) -> "Slopes":
        """The slopes between neighbouring orders."""
        gaps = np.diff(orders)
        growth = np.abs(np.diff(values)) / gaps
        return cls(growth[:-1], growth[1:], gaps[:-1], gaps[1:])

    @property
    def at(self) -> Floats:
        """The slope at each order, by a parabola through its neighbours: the nearer one counts more."""
        weighted = self.below * self.gaps_above + self.above * self.gaps_below
        return np.asarray(weighted / (self.gaps_below + self.gaps_above))

    @property
    def heaped(self) -> bool:
        """Whether two neighbours are so close that many values must be equal, or nearly."""
        growth = np.append(self.below, self.above[-1])
        return bool(growth.min() * CLOSER < np.median(growth))


def widths(
    method: Method, facts: Facts, outcome: Outcome, level: float, *, population: bool
) -> Floats | None:
    """How far each interval reaches on both sides, or None where no width is enough on all shapes."""
    frozen: Any = method
    size = facts.known_size
    drawn = min(_two_digits(size), MOST_VALUES)
    needed = _needed(frozen, _reference(facts, drawn), level, size, population, SHAPES)
    slopes = Slopes.of(known_orders(method, facts), known_values(method, outcome, facts))
    heaped = slopes.heaped and facts.grid.cells > ROOM
    if heaped:
        # On the grid of the data: the fewer points it has, the less a heap attracts.
        heaps = _needed(frozen, _reference(facts, drawn, as_given=True), level, size, population, HEAPS)
        needed = np.maximum(needed, heaps.max())
    # At the end of a heap one side tells nothing of the other.
    growth = np.maximum(slopes.below, slopes.above) if heaped else slopes.at
    return np.asarray(needed * growth) if np.isfinite(needed).all() else None


def calibrate(method: Method, facts: Facts, level: float) -> None:
    """Find the widths ahead of an outcome, so that its interval is there at once: they are public."""
    if spaced(method, facts):
        size = facts.known_size
        frozen: Any = method
        _needed(frozen, _reference(facts, min(_two_digits(size), MOST_VALUES)), level, size, False, SHAPES)


@lru_cache(maxsize=256)
def _needed(
    method: Any, reference: Facts, level: float, size: int, population: bool, shapes: tuple[Shape, ...]
) -> Floats:
    orders = np.array([float(q) for q in reference.orders]) if population else None
    reaches = _reaches(method, reference, shapes)
    found = [reach.needed(level, size, reference.known_size, orders) for reach in reaches]
    return np.asarray(np.max(found, axis=0))


def spaced(method: Method, facts: Facts) -> bool:
    """Whether released quantiles tell how spread the data are: two of many values do, and one does not."""
    if facts.bounds is None or facts.size is None or hasattr(method, "interval"):
        return False
    if len(facts.orders) > MOST_ORDERS or (len(facts.orders) == 1 and not isinstance(method, Framed)):
        return False
    beyond = min(facts.size, MOST_VALUES) * min(facts.orders[0], 1 - facts.orders[-1])
    return facts.buy(1).range * beyond >= LEAST_TOLD


def unverified(method: Method, facts: Facts, outcome: Outcome) -> tuple[Method, Facts, Outcome]:
    """What drew the quantiles, its facts and its part of the outcome, without the counts that verify them."""
    if not isinstance(method, Verified):
        return method, facts, outcome
    return method.method, method.own(facts), outcome[: -method.counted(facts)]


def slope_widths(method: Method, facts: Facts, outcome: Outcome, level: float, *, population: bool) -> Floats:
    """How far each interval by slopes reaches on both sides.

    Raises:
        NotSupported: released quantiles do not tell how spread the data are.
    """
    why = _untold(method, facts)
    found = None if why else widths(method, facts, outcome, level, population=population)
    if found is None:
        raise NotSupported(f"an interval by slopes tells nothing here: {why or FEW}")
    return found


def _untold(method: Method, facts: Facts) -> str:
    """Why released quantiles do not tell how spread the data are, in words; nothing where they may."""
    if hasattr(method, "interval"):
        return f"the method {method.name} tells its own interval"
    if facts.bounds is None:
        return "there are no bounds"
    if facts.size is None:
        return "nothing is known of the number of values"
    if len(facts.orders) == 1 and not isinstance(method, Framed):
        return "one quantile cannot tell how spread the data are"
    if len(facts.orders) > MOST_ORDERS:
        return f"there are more than {MOST_ORDERS} quantiles"
    return "" if spaced(method, facts) else FEW


def interval_words(method: Method, facts: Facts, outcome: Outcome, *, verifies: bool) -> str:
    """What the interval of a release rests on, in words; `verifies` if it was to be verified."""
    sure = "the interval holds on any data"
    if isinstance(method, Verified):
        return (
            "the interval is verified by counts and holds on any data; the counts also correct what was drawn"
        )
    if facts.bounds is None or facts.size is None or hasattr(method, "interval"):
        return sure
    if verifies:
        return f"so few values at this budget cannot be verified by counts: {sure}"
    why = _untold(method, facts)
    if not why and widths(method, facts, outcome, 0.95, population=False) is None:
        why = FEW
    if not why:
        return "the interval takes the data as spread around a quantile as its neighbours are, without a gap"
    narrows = "; interval_share='auto' narrows it" if len(facts.orders) == 1 and why != FEW else ""
    return f"{why}: {sure}{narrows}"


def scenario_widths(query: Any, facts: Facts, scenario: Any, level: float, *, population: bool) -> Floats:
    """How far each interval reaches on both sides, on data like those of a public scenario."""
    from scipy.special import ndtri

    if not isinstance(scenario, Scenario):
        rule = f"an accuracy.Scenario, {ANY_DATA!r} or {SLOPES!r}"
        raise InvalidParameter(f"scenario must be {rule}, got scenario={shown(scenario)}")
    size = facts.known_size
    errors = drawn_errors(query, min(size, MOST_SIMULATED), scenario)
    if population:
        orders = np.array([float(q) for q in facts.orders])
        # The value of rank pn is that of the population at a share that is off by the sampling error.
        away = ndtri((np.arange(SAMPLES) + 0.5) / SAMPLES)[:, None] * np.sqrt(orders * (1 - orders) / size)
        shifts = scenario.quantile(np.clip(orders + away, 0.0, 1.0)) - scenario.quantile(orders)
        errors = np.abs(errors[:, None, :] + shifts).reshape(-1, len(orders))
    return np.asarray(np.quantile(errors, level, axis=0, method="higher"))


def _two_digits(size: int) -> int:
    """A number of values rounded down, so that noisy counts share one simulation."""
    unit = int(10 ** max(len(str(size)) - 2, 0))
    return max(size // unit * unit, 1)


def _reference(facts: Facts, size: int, *, as_given: bool = False) -> Facts:
    """The facts on bounds 0 and 1, with so many points that most values have their own, or those given."""
    points = Points(bits=facts.resolution)
    whole = replace(
        facts, bounds=(Fraction(0), Fraction(1)), step=None, size=size, nulls="lower", points=points
    )
    if facts.step is None:
        return whole
    enough = 0 if as_given else min(2 ** (11 + size.bit_length()), whole.grid.cells)
    return replace(whole, step=Fraction(1, max(facts.grid.cells, enough, 2) - 1))


@lru_cache(maxsize=64)
def _reaches(method: Any, facts: Facts, shapes: tuple[Shape, ...]) -> tuple[Reach, ...]:
    """The draws of a method on each shape; the same each time, because their bits are seeded."""
    size, count = facts.known_size, len(facts.orders)
    draws = min(max(2400 // count, FEWEST_DRAWS), MOST_DRAWS)
    samples = min(SAMPLED if size < LARGE else SAMPLED_LARGE, draws)
    places = [max(math.ceil(q * size), 1) - 1 for q in facts.orders]
    orders, bits = known_orders(method, facts), SeededBits(1)
    laws: dict[Shape, Any] = {}
    found: list[list[tuple[Floats, Floats]]] = [[] for _ in shapes]
    for _ in steps(samples, "simulating the interval"):
        # Values at random, because a draw prefers the long gaps that chance leaves between them.
        sample = np.sort(bits.words(size) * 2.0**-64)
        for kept, shape in zip(found, shapes, strict=True):
            values = shape.values(sample)
            if shape.width or shape not in laws:  # equal values are the same in every sample
                laws[shape] = method.law(method.look(admit(values), facts), facts)
            for _ in range(draws // samples):
                points = known_values(method, raw(laws[shape].sample(bits)), facts)
                errors = points[1:-1] - values[places]
                kept.append(_offsets(errors, Slopes.of(orders, points).at, shape.slope, facts))
    pairs = (zip(*kept, strict=True) for kept in found)
    return tuple(Reach(*(_pooled(np.array(part)) for part in pair)) for pair in pairs)


def _offsets(errors: Floats, growth: Floats, slope: float, facts: Facts) -> tuple[Floats, Floats]:
    """Errors in shares of the data as the slopes have it, and how much slopes overrate the shape's own."""
    small = np.abs(errors) <= float(facts.grid.step)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(small, 0.0, errors / growth), np.where(growth > 0, slope / growth, 0.0)


def _pooled(draws: Floats) -> Floats:
    """Draws of many orders, each with those of its neighbours: fewer draws tell as much."""
    count = draws.shape[1]
    near = count // 40
    if not near:
        return draws
    places = np.clip(np.arange(count)[:, None] + np.arange(-near, near + 1), 0, count - 1)
    return np.asarray(draws[:, places].transpose(0, 2, 1).reshape(-1, count))


def ends(values: Sequence[float], reach: Floats, facts: Facts, level: float, *, on_points: bool) -> Ends:
    """The ends of the intervals, inside the bounds and on the grid where the data are.

    Where the data are points of the grid, and a quantile is as likely to be anywhere among its equals, an
    answer is wrong about as often as its error is long, in parts of what lies at one point. A width is at
    least 2.4 times the mean error at 95 %, so that neighbours are taken in if failures would be too many.
    """
    step, least, most = (float(part) for part in (facts.grid.step, facts.grid.lower, facts.grid.upper))
    center = np.array(values)
    down = np.ceil(np.maximum(reach / step - 2.4 * (1 - level), 0.0)) * step if on_points else reach
    # A real value may be anywhere in the cell of its point.
    up = down if on_points else down + step
    return np.clip(center - down, least, most), np.clip(center + up, least, most)
