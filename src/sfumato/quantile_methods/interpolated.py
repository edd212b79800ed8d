"""Many orders of few values: some of them in one joint draw, the others between these."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from sfumato.checks import keep, whole
from sfumato.data.line import Line
from sfumato.data.ranks import Ranks
from sfumato.quantile_methods.joint import Joint
from sfumato.quantile_methods.method import MAX_ORDERS, Facts, Orders, QuantileLaw
from sfumato.query import Outcome

# A joint draw of more orders than this takes seconds.
MOST_DRAWN = 128
# How many times further apart values may be beyond the orders drawn than between them.
STEEPER = 3
# The data have heaps at the multiples of a step if so many of the answers drawn, and at least this part of
# them, are such multiples. On smooth data about one in sixty is.
LEAST_HEAPS, HEAPS = 2, Fraction(1, 4)


@dataclass(frozen=True, kw_only=True)
class Interpolated(Joint):
    """Evenly chosen orders in one joint draw, and straight lines between their answers.

    Better than drawing all where few records lie between two orders: noise then hides what the others would
    tell. It supposes that the data have no large gaps or atoms between the orders drawn. Where the answers
    drawn are often round numbers, the others are moved to such numbers too.

    Guarantee:
        As `Joint` for the orders that are drawn; the others cost nothing. Proof: docs/proofs/quantiles.md.

    Args:
        drawn: how many orders are drawn; None for as many as have enough values between them.

    >>> Interpolated(drawn=16).needs_size, Interpolated().needs_size
    (False, True)
    """

    name: ClassVar[str] = "interpolated"

    drawn: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.drawn is not None:
            keep(self, drawn=whole("drawn", self.drawn, least=1, most=MAX_ORDERS))

    @property
    def needs_size(self) -> bool:
        """Whether the number of orders drawn follows from that of the values."""
        return self.drawn is None

    def chosen(self, facts: Facts) -> Facts:
        """The facts with the orders that are drawn."""
        count = len(facts.orders)
        most = min(informative(facts) if self.drawn is None else self.drawn, count)
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
        """The answers drawn, and points of the grid on the lines between them."""
        grid, line, chosen = facts.grid, self.line(facts), self.chosen(facts)
        drawn = [line.cell(point // self.subcells) for point in outcome]
        step = _heap_step(drawn, line)
        orders, cells = [Fraction(0), *chosen.orders, Fraction(1)], [0, *drawn, grid.cells - 1]
        cells[0], cells[-1] = reach(chosen.orders, cells)
        found = []
        for q in facts.orders:
            place = bisect_left(orders, q)
            low, high = cells[place - 1], cells[place]
            share = (q - orders[place - 1]) / (orders[place] - orders[place - 1])
            cell = round(low + (high - low) * share)
            if step and cell != high:  # an answer that was drawn stays as it is
                cell = round(Fraction(cell + line.origin, step)) * step - line.origin
            found.append(grid.value(min(max(cell, low), high)))
        return found

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
        return f" (the {len(self.chosen(facts).orders)} drawn; the others lie between them)"

    def words(self, facts: Facts) -> str:
        """The mechanism in words."""
        chosen = self.chosen(facts)
        return f"{super().words(chosen)}, and straight lines between them"


def reach(orders: Orders, cells: Sequence[int]) -> tuple[int, int]:
    """Where the lines beyond the first and the last order drawn end: at a bound, or before it.

    Where bounds are vague, a line to a bound would pass nearly all values. So beyond the orders drawn, values
    are taken to be at most `STEEPER` times further apart than between them. With one order drawn, they are
    compared with those on its other side.

    Args:
        orders: the orders drawn.
        cells: the first cell, those drawn, and the last cell.

    >>> reach((Fraction(1, 4), Fraction(3, 4)), [0, 10, 20, 1000])
    (0, 35)
    """
    first, last, low, high = cells[1], cells[-2], cells[0], cells[-1]
    inside = orders[-1] - orders[0]
    if inside:
        left = right = (last - first) / inside
    else:
        left, right = (high - last) / (1 - orders[-1]), first / orders[0]
    below, above = STEEPER * left * orders[0], STEEPER * right * (1 - orders[-1])
    return max(low, first - math.ceil(below)), min(high, last + math.ceil(above))


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
