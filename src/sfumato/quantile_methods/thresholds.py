"""Where values are counted to verify quantiles: orders by public facts, and cells by what was drawn."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sfumato.grid import Grid
from sfumato.quantile_methods.interpolated import end_slope
from sfumato.quantile_methods.method import Facts
from sfumato.quantile_methods.noise_sums import CountNoise, deviation, rough_tail, sum_tail
from sfumato.query import Outcome

# The failure of each side of the interval that thresholds are placed for.
SIDE = 0.025
# The slopes by which thresholds are placed are off by about this part.
SLOPE_ERROR = 0.1
# So many pairs of thresholds around an order, at most.
MOST_PAIRS = 3
# More pairs make intervals narrower and answers err more: of those that are at most this much wider than the
# narrowest, the pairs are taken that leave the least error. Counts hardly correct a single draw.
WIDER = 7 / 6
# Distances that are compared, in usual errors beyond what counts can tell.
_BEYOND = np.geomspace(0.05, 60, 80)
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

    def tail(self, noise: CountNoise, failure: float) -> float:
        """How many values the estimate is off, at most, but for this failure."""
        return sum_tail(noise, (self.u, self.left), (self.v, self.right), failure) / self.unit

    def rough_tail(self, noise: CountNoise, failure: float) -> float:
        """A number that is never less than `tail`, and found at once."""
        return rough_tail(noise, (self.u, self.left), (self.v, self.right), failure) / self.unit

    def spread(self, noise: CountNoise) -> float:
        """The standard deviation of the estimate, in values."""
        return deviation(noise, (self.u, self.left), (self.v, self.right)) / self.unit


def positions(facts: Facts, noise: CountNoise, off: float) -> tuple[Position, ...]:
    """The orders of the thresholds: pairs around each order, or an even row where these would overlap.

    More pairs make a narrow interval likelier and all counts noisier; the distances are those whose intervals
    are the narrowest on average, where neighbours differ alike.

    Args:
        facts: the public facts, the number of values among them.
        noise: what the counts have.
        off: how many ranks a draw of the quantiles is off on average.
    """
    found = [_sides(facts, noise, off, pairs) for pairs in range(1, MOST_PAIRS + 1)]
    narrowest = min(_usual(sides) for sides in found)
    wider = WIDER if len(facts.orders) > 1 else 1
    good = [sides for sides in found if _usual(sides) <= wider * narrowest]
    sides = min(good, key=lambda each: _left(each, off))
    places = []
    for place, side in enumerate(sides):
        order, above = facts.orders[place // 2], bool(place % 2)
        room = 1 - order if above else order
        # Without room for the ranks nothing is verified; with some, a heap may still reach as far.
        if room * facts.known_size > side.least:
            for ranks in side.away:
                away = min(Fraction(math.ceil(ranks), facts.known_size), room * Fraction(3, 4))
                places.append(Position(order + away if above else order - away, above))
    rows = [2**k for k in range(1, MOST_EVEN.bit_length())]
    row = min(rows, key=lambda number: _row_width(facts, noise, number))
    if not places or _row_width(facts, noise, row) < narrowest:
        return tuple(Position(Fraction(2 * i + 1, 2 * row), bool(i % 2)) for i in range(row))
    return tuple(sorted(places))


class Side(NamedTuple):
    """How many ranks away from an order thresholds are on one side."""

    # What counts can tell at all and their deviation, the thresholds, and where an interval ends on average.
    least: float
    spread: float
    away: tuple[float, ...]
    usual: float


def _sides(facts: Facts, noise: CountNoise, off: float, pairs: int) -> list[Side]:
    """The sides of all orders: below the first, above the first, below the second."""
    orders, size = facts.orders, facts.known_size
    number = 2 * pairs * len(orders)
    # What no threshold verifies ends at those of the next order, or at a bound.
    gaps = [float(high - low) * size for low, high in pairwise([Fraction(0), *orders, Fraction(1)])]
    found = []
    for place in range(2 * len(orders)):
        inner = pairs * place + (0 if place % 2 else pairs - 1)
        spot = Spot.of(inner, number, _order(facts, orders[place // 2]))
        spread, least = spot.spread(noise), spot.tail(noise, SIDE)
        away, usual = _ladder(least, spread, off, max(gaps[(place + 1) // 2], least), pairs)
        found.append(Side(least, spread, away, usual))
    return found


def _usual(sides: Sequence[Side]) -> float:
    """Where intervals end on average, in ranks."""
    return float(np.mean([side.usual for side in sides]))


def _left(sides: Sequence[Side], off: float) -> float:
    """The part of the error of a draw that counts leave, on average."""
    pairs = zip(sides[::2], sides[1::2], strict=True)
    parts = [
        corrected(off, (below.spread + above.spread) / 2, below.away[0], above.away[0])
        for below, above in pairs
    ]
    return float(np.mean([math.sqrt(1 - part) for part in parts]))


def corrected(off: float, spread: float, below: float, above: float) -> float:
    """The part of the estimated error of a draw that is to be corrected, for the least error that is left.

    Args:
        off: how many ranks a draw is off on average.
        spread: the standard deviation of the estimate.
        below: how many ranks away the threshold below is.
        above: how many ranks away the threshold above is.
    """
    # The variances of a Laplace law whose mean size is `off`, of the estimate, and of values between two
    # thresholds, which stray from an even spread as a bridge does.
    error = 2 * off**2
    return error / (error + spread**2 + below * above / (below + above))


def _ladder(
    least: float, spread: float, off: float, room: float, steps: int
) -> tuple[tuple[float, ...], float]:
    """Some distances that are verified in turn, and how far an interval reaches with them on average.

    It reaches to the first that is verified, and to the end of the room if none is.
    """
    away = least + math.hypot(spread, off) * _BEYOND
    chance = np.array([missed(each - least, astray(spread, each), off) for each in away])
    rest, following = (np.maximum(room, away) - away) * chance, []
    for _ in range(steps - 1):
        further = np.where(away > away[:, None], (away - away[:, None]) * chance[:, None] + rest, np.inf)
        # The last distance has no further one.
        further[-1, -1] = rest[-1]
        following.append(np.argmin(further, axis=1))
        rest = np.min(further, axis=1)
    place = int(np.argmin(away + rest))
    usual, chosen = float((away + rest)[place]), [place]
    for step in reversed(following):
        chosen.append(int(step[chosen[-1]]))
    return tuple(float(away[each]) for each in chosen), usual


def missed(away: float, spread: float, off: float) -> float:
    """How often the noise of a count and the error of a draw exceed this many ranks together.

    The noise is taken as normal with this deviation, the error as a Laplace law of this scale.

    >>> missed(0, 3, 2), round(missed(10, 1e-9, 2), 6), round(missed(6, 3, 1e-3), 4)
    (0.5, 0.003369, 0.0228)
    """
    if away < 0:
        return 1 - missed(-away, spread, off)
    tail, ratio = away / spread, spread / off
    normal = math.erfc(tail / math.sqrt(2)) / 2

    def beyond(side: float) -> float:
        """exp(ratio² / 2 - side * away / off) P(N > ratio - side * tail), without overflow."""
        exponent = ratio**2 / 2 - side * away / off
        z = ratio - side * tail
        if z > 30:
            # The normal tail is exp(-z²/2) / (z sqrt(2 pi)), and exponent - z²/2 is -tail²/2.
            return math.exp(-(tail**2) / 2) / (z * math.sqrt(2 * math.pi))
        return math.exp(min(exponent, 700)) * math.erfc(z / math.sqrt(2)) / 2

    return normal + (beyond(1) - beyond(-1)) / 2


def astray(spread: float, away: float) -> float:
    """The deviation of a count, and of a threshold that was aimed so many ranks away, together.

    Gaps between neighbouring values differ, and slopes are known up to a part.

    >>> astray(3, 0), astray(0, 100)
    (3.0, 14.142135623730951)
    """
    return math.sqrt(spread**2 + away + (SLOPE_ERROR * away) ** 2)


def _order(facts: Facts, order: Fraction) -> Fraction | None:
    return None if facts.size_is_public else order


def _row_width(facts: Facts, noise: CountNoise, number: int) -> float:
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
    # Beyond the outer orders: towards the bound, and not much steeper than between the last ones.
    if place == 0:
        return values[0] - end_slope(orders, values, values[0] - ends[0]) * (orders[0] - order)
    mirrored = [1 - each for each in orders[:-4:-1]], [-each for each in values[:-4:-1]]
    return values[-1] + end_slope(*mirrored, ends[1] - values[-1]) * (order - orders[-1])
