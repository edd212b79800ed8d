"""How one record can move the values of a scan, what its comparisons then cost, and which scales are best."""

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction

from sfumato.checks import compact, exact, keep, whole
from sfumato.errors import InvalidParameter

# Of the log ratio, from one neighbour to the other and back; or the scales of threshold and queries.
Pair = tuple[Fraction, Fraction]

# Roots of small numbers need more digits: at many crossings the threshold's noise is the smaller by far.
_FINE = 10**6
MOST_SENSITIVE = 2**50


@dataclass(frozen=True)
class AnyQueries:
    """Queries that one record moves by at most `sensitivity`, each in its own direction."""

    sensitivity: int

    def __post_init__(self) -> None:
        keep(self, sensitivity=whole("sensitivity", self.sensitivity, least=1, most=MOST_SENSITIVE))

    def losses(
        self,
        threshold_scale: Fraction,
        query_scale: Fraction,
        crossings: int = 1,
        answer_scale: Fraction | None = None,
    ) -> Pair:
        """Bounds of the log ratio from one neighbour to the other, and back."""
        each = 2 / query_scale + _rate(answer_scale)
        loss = self.sensitivity / threshold_scale + crossings * self.sensitivity * each
        return loss, loss

    def scales(self, total: Fraction, crossings: int, numbers: Fraction) -> Pair:
        """The scales of threshold and queries of least noise, where numbers cost a part of the total."""
        # bT^2 + bn^2 is least under 1/bT + weight/bn = constant if the parts are as 1 to weight^(2/3).
        weight = 2 * crossings
        ratio = cube_root(Fraction(weight**2))
        unit = self.sensitivity * (1 + ratio) / (total - numbers)
        return unit, weight * unit / ratio


@dataclass(frozen=True)
class SameDirection:
    """Queries that one record moves by at most `sensitivity`, none up while another goes down."""

    sensitivity: int

    def __post_init__(self) -> None:
        keep(self, sensitivity=whole("sensitivity", self.sensitivity, least=1, most=MOST_SENSITIVE))

    def losses(
        self,
        threshold_scale: Fraction,
        query_scale: Fraction,
        crossings: int = 1,
        answer_scale: Fraction | None = None,
    ) -> Pair:
        """Bounds of the log ratio when the queries go up, and when they go down."""
        number, query = _rate(answer_scale), 1 / query_scale
        # A value that goes up with the threshold pays for its number or for its comparison, not for both.
        up = self.sensitivity / threshold_scale + crossings * self.sensitivity * max(query, number)
        return up, crossings * self.sensitivity * (query + number)

    def scales(self, total: Fraction, crossings: int, numbers: Fraction) -> Pair:
        """The scales of threshold and queries of least noise, where numbers cost a part of the total."""
        ratio = cube_root(Fraction(crossings**2))
        best = total * ratio / (1 + ratio)
        # What queries pay up to the price of the numbers costs the threshold nothing.
        queries = min(max(best, numbers), total - numbers)
        threshold = total - max(queries, numbers)
        return self.sensitivity / threshold, crossings * self.sensitivity / queries


@dataclass(frozen=True)
class CountsAtOrder:
    """The queries b F - a n for the order a/b in lowest terms, under add-remove.

    F are the numbers of records up to increasing points, and n is the private number of all records. At the
    order 0 they are counts against a public threshold.
    """

    order: Fraction

    def __post_init__(self) -> None:
        order = exact("order", self.order)
        if not 0 <= 2 * order <= 1:
            raise InvalidParameter(
                "order must be in [0, 1/2] (above it, scan downwards with 1 - order), "
                f"got order={compact(order)}"
            )
        keep(self, order=order)

    @property
    def sensitivity(self) -> int:
        """How far one record moves a value at most."""
        return self.order.denominator - self.order.numerator

    def losses(
        self,
        threshold_scale: Fraction,
        query_scale: Fraction,
        crossings: int = 1,
        answer_scale: Fraction | None = None,
    ) -> Pair:
        """Bounds of the log ratio when a record is added, and when one is removed."""
        a, b = self.order.numerator, self.order.denominator
        numbers = crossings * self.sensitivity * _rate(answer_scale)
        # The last crossing of a full stream comes after the values that the added record has moved.
        shifted = (b - a) / threshold_scale + (crossings - 1) * b / query_scale
        added = max(shifted, crossings * a / query_scale)
        return added + numbers, a / threshold_scale + crossings * b / query_scale + numbers

    def scales(self, total: Fraction, crossings: int, numbers: Fraction) -> Pair:
        """The scales of threshold and queries of least noise, where numbers cost a part of the total."""
        q = self.order
        # With x = b/bT and y = b/bn, 1/x^2 + 1/y^2 is least under (1-q) x + (c-1) y <= e and q x + c y <= e
        # where one line touches it, or where the two lines meet: docs/proofs/above-threshold.md.
        meeting = 1 - 2 * q
        ratio = max(meeting, cube_root(q / crossings, _FINE))
        if crossings > 1:
            first = cube_root((1 - q) / (crossings - 1), _FINE)
            ratio = first if first < meeting else ratio
        threshold = (total - numbers) / max(1 - q + (crossings - 1) * ratio, q + crossings * ratio)
        return q.denominator / threshold, q.denominator / (ratio * threshold)


Moves = AnyQueries | SameDirection | CountsAtOrder


def cube_root(value: Fraction, unit: int = 1000) -> Fraction:
    """The cube root of a number that is not negative, rounded up to a multiple of 1/unit by integers alone.

    >>> cube_root(Fraction(8)), float(cube_root(Fraction(2)))
    (Fraction(2, 1), 1.26)
    """
    wanted = math.ceil(value * unit**3)
    # Of a number of k bits the root has at most k/3 + 1 bits.
    reach = 1 << (wanted.bit_length() // 3 + 1)
    return Fraction(bisect_left(range(reach + 1), wanted, key=lambda root: root**3), unit)


def _rate(scale: Fraction | None) -> Fraction:
    return Fraction(0) if scale is None else 1 / scale
