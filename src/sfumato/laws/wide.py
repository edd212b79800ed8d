"""Positive numbers of any magnitude as arrays: their powers, their sums over ranges, and draws by them.

A wide number is a mantissa and an integer exponent of two. All sums are of positive terms and keep their
largest term, so nothing underflows: a weight that vanished would be an infinite privacy loss.
"""

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.laws.bits import Bits, Integers
from sfumato.laws.law import Floats
from sfumato.laws.weights import Groups

# The exponent of zero: below every other, with room to be added to.
NOWHERE = -(1 << 60)
# Terms that vanish beside a sum of this size, relative to the largest term, are less than 2^-70 of it.
SMALL = 2.0**-900
# Running sums go by rows of this length, so that their rounding is bounded.
_RUNNING = 1024
# Columns of a scan: so short that their terms are of like magnitude, and so few that rounding is bounded.
_ROW, _MOST_ROWS, _ROW_BITS = 32, 1900, 250
# Ranks and their differences stay within this; see Rate.
MOST_RECORDS = 1 << 40


class Wide(NamedTuple):
    """The numbers mantissa * 2^exponent, not negative."""

    mantissa: Floats
    exponent: Integers

    def take(self, index: NDArray[Any]) -> "Wide":
        """The numbers at these places."""
        return Wide(self.mantissa[index], self.exponent[index])


def wide(mantissa: Floats, exponent: Integers | int) -> Wide:
    """Mantissas brought to [1/2, 1), and zero to one exponent below all."""
    fraction, shift = np.frexp(mantissa)
    exponent = np.add(exponent, shift, dtype=np.int64)
    if not fraction.all():
        exponent = np.where(fraction == 0, NOWHERE, exponent)
    return Wide(fraction, exponent)


def aligned(values: Wide, top: Integers | int) -> Floats:
    """The numbers over 2^top; what is more than 1000 binary orders below counts as if it were not."""
    shift = np.maximum(values.exponent - top, -1000)
    # The bits of powers of two: much faster than ldexp.
    powers: Floats = ((shift + 1023) << 52).view(np.float64)
    scaled: Floats = values.mantissa * powers
    return scaled


def range_sums(values: Wide, first: Integers, last: Integers) -> Wide:
    """The sum of values[first:last] for each pair."""
    sums, exponents = np.zeros(len(first)), np.zeros(len(first), dtype=np.int64)
    open_ = np.flatnonzero(last > first)
    while open_.size:
        begin, end = first[open_], last[open_]
        low, high = int(begin.min()), int(end.max())
        part = Wide(values.mantissa[low:high], values.exponent[low:high])
        begin, end = begin - low, end - low
        if begin.any() and end.min() < high - low:
            # Only what some range covers may set the scale.
            depth = np.bincount(begin, minlength=high - low + 1) - np.bincount(end, minlength=high - low + 1)
            bare = np.cumsum(depth)[:-1] == 0
            part = Wide(np.where(bare, 0.0, part.mantissa), np.where(bare, NOWHERE, part.exponent))
        top = int(part.exponent.max())
        if not part.mantissa.any():
            break
        # A sum that is small beside the largest term may have lost terms: its range is summed again.
        found = _linear_sums(aligned(part, top), begin, end)
        settled = found > SMALL
        sums[open_[settled]], exponents[open_[settled]] = found[settled], top
        open_ = open_[~settled]
    return wide(sums, exponents)


def _linear_sums(values: Floats, first: Integers, last: Integers) -> Floats:
    if len(values) <= _RUNNING * _RUNNING and not first.any():
        return _running(values)[last - 1]
    if len(values) <= _RUNNING * _RUNNING and last.min() == len(values):
        return _running(values[::-1])[len(values) - 1 - first]
    width = last - first
    sums = np.zeros(len(first))
    for power in range(int(width.max()).bit_length()):
        # values[k] is the sum of 2^power terms from k on; a range takes one for each bit of its width.
        bit = (width >> power) & 1
        sums += values[np.minimum(first, len(values) - 1)] * bit
        first = first + (bit << power)
        values = values[: -(1 << power)] + values[1 << power :]
    return sums


def _running(values: Floats) -> Floats:
    if len(values) <= _RUNNING:
        return np.cumsum(values)
    rows = np.zeros((-(-len(values) // _RUNNING), _RUNNING))
    rows.reshape(-1)[: len(values)] = values
    sums = np.cumsum(rows, axis=1)
    sums[1:] += np.cumsum(sums[:-1, -1])[:, None]
    return sums.reshape(-1)[: len(values)]


class Scan:
    """Running sums over several stretches of an array, in columns of terms of like magnitude.

    Args:
        stretches: for each the places of its terms, in the order in which they are added.
        logs: roughly the binary logarithms of all terms, monotone over each stretch.
        count: the number of terms; a place past the last holds zero.
    """

    def __init__(self, stretches: list[Integers], logs: Floats, count: int) -> None:
        most = _ROW if count <= _MOST_ROWS * _ROW // 2 else _RUNNING
        rows = [_rows(logs[stretch], most) for stretch in stretches]
        self._height = max(int(place.max()) for _, place in rows) + 1
        lengths = [int(number[-1]) + 1 for number, _ in rows]
        # One more column holds nothing: empty ranges are read there.
        self.columns = sum(lengths) + 1
        # All columns are added at once.
        self._index = np.full((self._height, self.columns), count)
        self.places, self._starts, column = [], [False] * self.columns, 0
        for stretch, (number, place), length in zip(stretches, rows, lengths, strict=True):
            self._index[place, number + column] = stretch
            self.places.append(place * self.columns + number + column)
            self._starts[column] = True
            column += length
        self._starts[-1] = True
        # Otherwise rounding would exceed what the proof counts.
        self.bounded = max(lengths) + self._height <= _MOST_ROWS + _RUNNING // 8

    def sums(self, mantissa: Floats, exponent: Integers) -> tuple[Floats, Integers]:
        """The sums, to be read at `places`, over powers of two of which each column has one."""
        terms = Wide(mantissa.take(self._index), exponent.take(self._index))
        tops, top = [], 0
        for largest, starts in zip(terms.exponent.max(axis=0).tolist(), self._starts, strict=True):
            if starts or largest > top:
                top = largest
            tops.append(top)
        scales = np.array(tops)
        sums = aligned(terms, scales).cumsum(axis=0)
        before, carried, scale = [], 0.0, 0
        for total, top, starts in zip(sums[-1].tolist(), tops, self._starts, strict=True):
            if starts:
                carried = 0.0
            elif top != scale:
                carried = math.ldexp(carried, max(scale - top, -3000))
            before.append(carried)
            carried, scale = carried + total, top
        sums += before
        return sums, scales


def _rows(logs: Floats, most: int) -> tuple[Integers, Integers]:
    """The row of each term and its place there: rows of at most so many terms, and of like magnitude."""
    bucket = np.floor(logs / _ROW_BITS)
    count = np.arange(len(logs))
    new = np.ones(len(logs), dtype=np.bool_)
    np.not_equal(bucket[1:], bucket[:-1], out=new[1:])
    place = (count - np.maximum.accumulate(np.where(new, count, 0))) % most
    return np.cumsum(place == 0) - 1, place


def _ln2(bits: int) -> Fraction:
    # ln 2 = sum over k of 1 / (k 2^k)
    return Fraction(sum((1 << bits) // (k << k) for k in range(1, bits)), 1 << bits)


LN2 = _ln2(320)


class Rate:
    """Powers of e^-c with an error of a few units in the last place, for exponents up to 2^41."""

    def __init__(self, c: Fraction) -> None:
        self.c = c
        # Four parts of 12 bits each, whose products with a rank are exact, and a rest that is 2^-48 of it.
        self._bits = 160
        self._fixed = c.numerator * LN2.denominator * (1 << self._bits) // (c.denominator * LN2.numerator)
        unit = self._fixed.bit_length()
        rest, parts = self._fixed, []
        for part in range(1, 5):
            size = max(unit - 12 * part, 0)
            parts.append(math.ldexp(rest >> size, size - self._bits))
            rest &= (1 << size) - 1
        self._parts = parts, math.ldexp(float(rest), -self._bits)

    @property
    def binary(self) -> float:
        """How many powers of two a rank costs."""
        return self._fixed / (1 << self._bits)

    def powers(self, ranks: Integers) -> tuple[Floats, Integers]:
        """f and k so that e^(-c rank) = 2^-(f + k), with k whole and f small."""
        away = ranks.astype(np.float64)
        parts, rest = self._parts
        whole = power = np.zeros_like(away)
        for part in parts:
            product = part * away
            floor = np.floor(product)
            power = power + (product - floor)
            carry = np.floor(power)
            power, whole = power - carry, whole + floor + carry
        return power + rest * away, whole.astype(np.int64)

    def offset(self, part: Fraction) -> tuple[float, int]:
        """The same for e^(c part)."""
        units = self._fixed * part.numerator // part.denominator
        whole = units >> self._bits
        return math.ldexp(float(units - (whole << self._bits)), -self._bits), whole

    def hold(self, gap: Fraction) -> tuple[float, int]:
        """e^(-c gap) as a mantissa and an exponent."""
        part, whole = self.offset(gap)
        return float(np.exp2(-part)), -whole

    def decay(self, ranks: Integers, centre: Fraction) -> Wide:
        """e^(-c (rank - centre)) of each rank."""
        base = math.floor(centre)
        power, whole = self.powers(ranks - base)
        part, shift = self.offset(centre - base)
        return wide(np.exp2(part - power), shift - whole)


def choose(weights: Wide, bits: Bits) -> int:
    """An index with probability exactly proportional to its weight."""
    count = len(weights.mantissa)
    if count == 1:
        return 0
    sums = np.cumsum(aligned(weights, int(weights.exponent.max())))
    word = bits.integer(64)
    place = math.ldexp(word, -64) * float(sums[-1])
    index = int(np.searchsorted(sums, place, side="right"))
    # Sums err by (count - 1) half units, the place by as much and two more, and the word by 2^-64.
    margin = (count + 4) * 2.0**-52 * float(sums[-1])
    above_lower = index == 0 or place - sums[index - 1] > margin
    if index < count and above_lower and sums[index] - place > margin:
        return index
    return _choose_exactly(weights, word, bits)


def _choose_exactly(weights: Wide, word: int, bits: Bits) -> int:
    present = np.flatnonzero(weights.mantissa)
    fraction, exponent = wide(weights.mantissa[present], weights.exponent[present])
    shifts = (exponent - exponent.min()).tolist()
    masses = [int(part) << shift for part, shift in zip(np.ldexp(fraction, 53), shifts, strict=True)]
    return int(present[Groups(masses).settle(word, bits)])
