"""Many orders of few values: some of them in one joint draw, the others between these."""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

from sfumato.checks import keep, whole
from sfumato.data.line import Line
from sfumato.data.ranks import Ranks
from sfumato.quantile_methods.joint import Joint
from sfumato.quantile_methods.method import MAX_ORDERS, Facts, Orders, QuantileLaw
from sfumato.query import Outcome

# A joint draw of more orders than this takes seconds.
MOST_DRAWN = 128
# Beyond the outer orders values may be this much further apart than between the last two, and are taken to be
# this much further apart than the last gaps foretell.
STEEPER, SURE = 3, 1.25
# The data have heaps at the multiples of a step if so many of the answers drawn, and at least this part of
# them, are such multiples. On smooth data about one in sixty is.
LEAST_HEAPS, HEAPS = 2, Fraction(1, 4)


@dataclass(frozen=True, kw_only=True)
class Interpolated(Joint):
    """Evenly chosen orders in one joint draw, and a smooth curve through their answers.

    Better than drawing all where few records lie between two orders: noise then hides what the others would
    tell. It supposes that the data have no large gaps or atoms between the orders drawn. Where the answers
    drawn are often round numbers, the others are moved to such numbers too.

    Guarantee:
        As `Joint` for the orders that are drawn; the others cost nothing. Proof: docs/proofs/quantiles.md.

    Args:
        drawn: how many orders are drawn; None for as many as have enough values between them.

    References:
        [FB84] for a curve that increases where the points do.

    >>> Interpolated(drawn=16).needs_size, Interpolated().needs_size
    (False, True)
    """

    name: ClassVar[str] = "interpolated"
    by_rule: ClassVar[Mapping[str, Any]] = {"drawn": MOST_DRAWN}

    drawn: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.drawn is not None:
            keep(self, drawn=whole("drawn", self.drawn, least=1, most=MAX_ORDERS))

    @property
    def needs_size(self) -> bool:
        """Whether the number of orders drawn follows from that of the values."""
        return self.drawn is None

    def rule_options(self, facts: Facts) -> dict[str, Any]:
        """How many orders are drawn."""
        return {"drawn": self._number(facts)}

    def _number(self, facts: Facts) -> int:
        return min(informative(facts) if self.drawn is None else self.drawn, len(facts.orders))

    def chosen(self, facts: Facts) -> Facts:
        """The facts with the orders that are drawn."""
        count, most = len(facts.orders), self._number(facts)
        # Evenly, and as far from both ends as from each other: an order with few values beyond it would go
        # astray on wide bounds.
        places = sorted({round(Fraction(i * (count + 1), most + 1)) - 1 for i in range(1, most + 1)})
        # The grid is that of all orders: fewer of them would have a finer one, on which the data are not.
        drawn = tuple(facts.orders[place] for place in places)
        return replace(facts, orders=drawn, points=facts.made)

    def check(self, facts: Facts) -> None:
        """Refuse a budget so small that rounding would be a large part of it."""
        super().check(self.chosen(facts))

    def law(self, view: Ranks, facts: Facts) -> QuantileLaw:
        """The law of the points of the orders drawn."""
        return super().law(view, self.chosen(facts))

    def possible(self, outcome: Outcome, facts: Facts) -> bool:
        """Whether there is one point for each order drawn, and they do not decrease."""
        return super().possible(outcome, self.chosen(facts))

    def answers(self, outcome: Outcome, facts: Facts) -> Sequence[Fraction]:
        """The answers drawn, and points of the grid on the curve through them."""
        grid, line, chosen = facts.grid, self.line(facts), self.chosen(facts)
        drawn = [line.cell(point // self.subcells) for point in outcome]
        step = _heap_step(drawn, line)
        orders, cells = [Fraction(0), *chosen.orders, Fraction(1)], [0, *drawn, grid.cells - 1]
        cells[0], cells[-1] = reach(chosen.orders, cells)
        slopes = curve_slopes(orders, cells)
        found = []
        for q in facts.orders:
            place = bisect_left(orders, q)
            low, high = cells[place - 1], cells[place]
            cell = round(_on_curve(q, orders, cells, slopes, place))
            if step and cell != high:  # an answer that was drawn stays as it is
                cell = round(Fraction(cell + line.origin, step)) * step - line.origin
            found.append(min(max(cell, low), high))
        return [grid.value(cell) for cell in sorted(found)]

    def brackets(self, outcome: Outcome, facts: Facts) -> Sequence[tuple[Fraction, Fraction]]:
        """The answers drawn on both sides of each order."""
        chosen, (least, most) = self.chosen(facts), self.ends(facts)
        pairs = [(least, least), *super().brackets(outcome, chosen), (most, most)]
        found = []
        for q in facts.orders:
            place = bisect_left(chosen.orders, q) + 1
            exact = place <= len(chosen.orders) and chosen.orders[place - 1] == q
            found.append((pairs[place if exact else place - 1][0], pairs[place][1]))
        return found

    def rank_error(self, facts: Facts, confidence: float) -> int:
        """How far the ranks of the answers drawn are from their targets."""
        return super().rank_error(self.chosen(facts), confidence)

    def beyond(self, facts: Facts) -> str:
        """What the rank error leaves out, in words."""
        return f" (the {len(self.chosen(facts).orders)} drawn; the others lie between and beyond them)"

    def words(self, facts: Facts) -> str:
        """The mechanism in words."""
        chosen = self.chosen(facts)
        between = "a smooth curve between them and lines" if len(chosen.orders) > 1 else "lines"
        return f"{super().words(chosen)}, {between} beyond"


def curve_slopes(orders: Sequence[Fraction], cells: Sequence[int]) -> list[float]:
    """The slope at each point of a curve that increases where the points do.

    Inside it is a weighted harmonic mean of the slopes of both neighbouring lines, so that curved data, such
    as salaries, are followed and no overshoot arises. At both ends the curve is the line itself.

    >>> curve_slopes([Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(1)], [0, 1, 4, 20])
    [4.0, 6.0, 16.615384615384613, 32.0]
    """
    gaps = [float(high - low) for low, high in pairwise(orders)]
    lines = [(high - low) / gap for (low, high), gap in zip(pairwise(cells), gaps, strict=True)]
    inner = []
    for (left, right), (before, after) in zip(pairwise(gaps), pairwise(lines), strict=True):
        weights = 2 * right + left, right + 2 * left
        flat = not (before and after)
        inner.append(0.0 if flat else sum(weights) / (weights[0] / before + weights[1] / after))
    return [lines[0], *inner, lines[-1]]


def _on_curve(
    order: Fraction, orders: Sequence[Fraction], cells: Sequence[int], slopes: Sequence[float], place: int
) -> float:
    """The cubic between the point before this place and the one at it; beyond the drawn orders a line."""
    low, high, gap = cells[place - 1], cells[place], float(orders[place] - orders[place - 1])
    t = float(order - orders[place - 1]) / gap
    if place in (1, len(cells) - 1):
        return low + (high - low) * t
    rise = (high - low) * t**2 * (3 - 2 * t)
    return low + rise + gap * t * (1 - t) * (slopes[place - 1] * (1 - t) - slopes[place] * t)


def reach(orders: Orders, cells: Sequence[int]) -> tuple[int, int]:
    """Where the lines beyond the first and the last order drawn end: at a bound, or before it.

    Where bounds are vague, a line to a bound would pass nearly all values. So beyond the orders drawn, values
    are taken to be as far apart as the last ones foretell, or, next to a heap, `STEEPER` times as far as on
    average. With one order drawn, they are compared with those on its other side.

    Args:
        orders: the orders drawn.
        cells: the first cell, those drawn, and the last cell.

    >>> reach((Fraction(1, 4), Fraction(3, 4)), [0, 10, 20, 1000])
    (0, 35)
    >>> reach((Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)), [0, 10, 20, 30, 1000])
    (0, 43)
    """
    low, *drawn, high = cells
    first, last = drawn[0], drawn[-1]
    room = Fraction(first - low), Fraction(high - last)
    if len(drawn) == 1:
        left, right = STEEPER * room[1] / (1 - orders[-1]), STEEPER * room[0] / orders[0]
    else:
        usual = STEEPER * (last - first) / (orders[-1] - orders[0])
        mirrored = [1 - each for each in orders[::-1]], [-each for each in drawn[::-1]]
        left = end_slope(orders, drawn, room[0]) or usual
        right = end_slope(*mirrored, room[1]) or usual
    below, above = left * orders[0], right * (1 - orders[-1])
    return max(low, first - math.ceil(below)), min(high, last + math.ceil(above))


def end_slope(orders: Sequence[Fraction], values: Sequence[Fraction | int], room: Fraction) -> Fraction:
    """How fast values fall below the first order, with so much room down to the bound.

    Slopes that grow towards the end grow on by the same factor: half of it lies between the middle of the
    last gap and the first order.
    """
    slope = room / orders[0]
    known = pairwise(zip(orders[:3], values[:3], strict=True))
    inner = [(b - a) / (q - p) for (p, a), (q, b) in known]
    if not inner:
        return slope
    growth = float(STEEPER)
    if len(inner) > 1 and inner[1]:
        growth = min(SURE * math.sqrt(max(float(inner[0] / inner[1]), 1.0)), growth)
    return min(slope, inner[0] * Fraction(growth).limit_denominator(1000))


def _heap_step(drawn: Sequence[int], line: Line) -> int:
    """The widest step, in cells, at whose multiples the data have heaps; 0 if they seem to have none."""
    least = max(LEAST_HEAPS, math.ceil(HEAPS * len(drawn)))
    for level in line.levels:
        if sum((cell + line.origin) % level.cells == 0 for cell in drawn) >= least:
            return level.cells
    return 0


def informative(facts: Facts, most: int = MOST_DRAWN) -> int:
    """The largest number m of orders with epsilon n / (4 (m + 1)) >= 5 log(m + 1), from 1 to `most`.

    The left side is the log weight that a joint draw loses when it misplaces all records between two of m
    evenly chosen orders; the right side is what chance brings about. benchmarks/quantile_errors.py tests 5.
    """
    exponent = float(facts.buy(1).range) * facts.known_size / 4
    count = 1
    while count < most and exponent >= 5 * (count + 2) * math.log(count + 2):
        count += 1
    return count
