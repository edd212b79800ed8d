"""Where values are counted to verify quantiles: orders by public facts, and cells by what was drawn."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from sfumato.grid import Grid
from sfumato.mechanisms import Additive, LaplaceMechanism
from sfumato.quantile_methods.method import Facts
from sfumato.quantile_methods.noise_sums import sum_tail
from sfumato.query import Outcome

# The failure of each side of the interval that thresholds are placed for.
SIDE = 0.025
# Beyond the outer orders values may be this much further apart than between the last two.
STEEPER = 3
# How much of the noise the near threshold of a side leaves room for, and how often the far one is needed.
NEAR, OFTEN = 0.4, 0.3
# How much of an interval's width those may take that neither of them verifies.
RARELY = 0.1
# An even row of thresholds has at most so many.
MOST_EVEN = 64


class Position(NamedTuple):
    """An order, and whether its threshold is below or above the cell that it falls in."""

    order: Fraction
    above: bool


@dataclass(frozen=True)
class Spot:
    """A threshold among others: how many counts are on its left and on its right, and their weights."""

    left: int
    right: int
    u: int
    v: int

    @classmethod
    def of(cls, place: int, number: int, order: Fraction | None) -> "Spot":
        """The threshold at this place of so many, from 0.

        The number below it is told from both sides. Where all are known, the two are weighted by how many
        counts the other has, which leaves the least variance; else by the order, whose sign is the answer.
        """
        left, right = place + 1, number - place
        if order is None:
            return cls(left, right, right, left)
        return cls(left, right, order.denominator - order.numerator, order.numerator)

    @property
    def unit(self) -> int:
        """How many units of the weighted counts one value below the threshold is."""
        return self.u + self.v

    def tail(self, noise: Additive, failure: float) -> float:
        """How many values the estimate is off, at most, but for this failure."""
        return sum_tail(noise, (self.u, self.left), (self.v, self.right), failure) / self.unit

    def spread(self, noise: Additive) -> float:
        """The standard deviation of the estimate, in values."""
        variance = (
            2 * float(noise.scale) ** 2 if isinstance(noise, LaplaceMechanism) else float(noise.sigma_squared)
        )
        return math.sqrt(variance * (self.u**2 * self.left + self.v**2 * self.right)) / self.unit


def positions(facts: Facts, noise: Additive, span: Fraction) -> tuple[Position, ...]:
    """The orders of the thresholds: two pairs around each order, or an even row where these would overlap.

    The near pair is as far as counts can tell it from the quantile, most of the time; the far pair so far
    that they nearly always can, because what is not verified ends at a neighbour's threshold or at a bound.

    Args:
        facts: the public facts, the number of values among them.
        noise: what the counts have.
        span: the range that a draw of the quantiles costs.
    """
    sides = _sides(facts, noise, float(span))
    rows = [2**k for k in range(1, MOST_EVEN.bit_length())]
    row = min(rows, key=lambda number: _row_width(facts, noise, number))
    if _row_width(facts, noise, row) < sum(side.usual for side in sides) / len(sides):
        return tuple(Position(Fraction(2 * i + 1, 2 * row), bool(i % 2)) for i in range(row))
    found = []
    for place, side in enumerate(sides):
        order, above = facts.orders[place // 2], bool(place % 2)
        room = 1 - order if above else order
        # Without room for the ranks nothing is verified; with some, a heap may still reach as far.
        if room * facts.known_size > side.least:
            for ranks in (side.near, side.far):
                away = min(Fraction(math.ceil(ranks), facts.known_size), room * Fraction(3, 4))
                found.append(Position(order + away if above else order - away, above))
    return tuple(sorted(found))


class Side(NamedTuple):
    """How many ranks away from an order thresholds are on one side."""

    # What counts can tell at all, the two thresholds, and where an interval usually ends.
    least: float
    near: float
    far: float
    usual: float


def _sides(facts: Facts, noise: Additive, span: float) -> list[Side]:
    """The sides of all orders: below the first, above the first, below the second."""
    orders, size = facts.orders, facts.known_size
    number = 4 * len(orders)
    found = []
    for place in range(2 * len(orders)):
        # The near threshold is the inner one of its side.
        spot = Spot.of(2 * place + 1 - place % 2, number, _order(facts, orders[place // 2]))
        spread, least = spot.spread(noise), spot.tail(noise, SIDE)
        off = usual_error(len(orders), span)
        near = least + math.hypot(NEAR * spread, off)
        # What both thresholds miss costs the distance to the next order: rarely enough to cost little.
        missed = min(max(RARELY * least * len(orders) / size, 1e-5), 0.1)
        far = least + spot.tail(noise, missed) + off * math.log(1 / (2 * missed))
        found.append(Side(least, near, far, near + (far - near) * OFTEN))
    return found


def usual_error(orders: int, span: float) -> float:
    """About how many ranks a draw of several orders is off that costs this range, measured on smooth data."""
    return 1.75 * math.sqrt(orders) / span


def _order(facts: Facts, order: Fraction) -> Fraction | None:
    return None if facts.size_is_public else order


def _row_width(facts: Facts, noise: Additive, number: int) -> float:
    """About how many ranks an interval reaches on each side with an even row of thresholds."""
    middle = Spot.of(number // 2, number, _order(facts, facts.orders[len(facts.orders) // 2]))
    return 2.6 * middle.spread(noise) + facts.known_size / (2 * number)


def edges(
    places: Sequence[Position],
    orders: Sequence[Fraction],
    values: Sequence[Fraction],
    ends: tuple[Fraction, Fraction],
    grid: Grid,
) -> Outcome:
    """The cells before which values are counted: where positions fall on lines between known quantiles."""
    last = grid.cells - 1
    found = []
    for order, above in places:
        value = _between(order, orders, values, ends)
        cell = min(max(math.floor((value - grid.lower) / grid.step), 0), last)
        found.append(cell + 1 if above else cell)
    return tuple(sorted(found))


def _between(
    order: Fraction, orders: Sequence[Fraction], values: Sequence[Fraction], ends: tuple[Fraction, Fraction]
) -> Fraction:
    place = bisect_left(orders, order)
    if 0 < place < len(orders):
        share = (order - orders[place - 1]) / (orders[place] - orders[place - 1])
        return values[place - 1] + (values[place] - values[place - 1]) * share
    # Beyond the outer orders: towards the bound, and not much steeper than between the last two.
    if place == 0:
        known, value, away, room = orders[0], values[0], orders[0] - order, ends[0] - values[0]
        slope = room / known
        inner = -(values[1] - values[0]) / (orders[1] - orders[0]) if len(orders) > 1 else slope
        return value + max(slope, STEEPER * inner) * away
    known, value, away, room = orders[-1], values[-1], order - orders[-1], ends[1] - values[-1]
    slope = room / (1 - known)
    inner = (values[-1] - values[-2]) / (orders[-1] - orders[-2]) if len(orders) > 1 else slope
    return value + min(slope, STEEPER * inner) * away
