"""Positive numbers of any magnitude as arrays, their sums over ranges, and the states of a chain of blocks.

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
_NOWHERE = -(1 << 60)
# Terms that vanish beside a sum of this size, relative to the largest term, are less than 2^-70 of it.
_SMALL = 2.0**-900
# Running sums go by rows of this length, so that their rounding is bounded.
_RUNNING = 1024
# Rows of a scan: so short that most numbers of a row are of like magnitude, and so few that rounding is bounded.
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
        exponent = np.where(fraction == 0, _NOWHERE, exponent)
    return Wide(fraction, exponent)


def aligned(values: Wide, top: Integers | int) -> Floats:
    """The numbers over 2^top; what is more than 1000 binary orders below counts as if it were not."""
    shift = np.maximum(values.exponent - top, -1000)
    # The bits of powers of two: much faster than ldexp.
    powers: Floats = ((shift + 1023) << 52).view(np.float64)
    scaled: Floats = values.mantissa * powers
    return scaled


def column_sums(values: Wide) -> Wide:
    """The sum of each column of a matrix."""
    top = values.exponent.max(axis=0)
    return wide(aligned(values, top).sum(axis=0), top)


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
            part = Wide(np.where(bare, 0.0, part.mantissa), np.where(bare, _NOWHERE, part.exponent))
        top = int(part.exponent.max())
        if not part.mantissa.any():
            break
        # A sum that is small beside the largest term may have lost terms: its range is summed again.
        found = _linear_sums(aligned(part, top), begin, end)
        settled = found > _SMALL
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
    """Running sums from the left of one array and from the right of another, in rows of like magnitude.

    Args:
        left: roughly the binary logarithms of the terms summed from the left, not decreasing.
        right: the same, negated, of the terms summed from the right.
    """

    def __init__(self, left: Floats, right: Floats) -> None:
        self.count = count = len(left)
        row = _ROW if count <= _MOST_ROWS * _ROW // 2 else _RUNNING
        sides = [_rows(left, row), _rows(-right[::-1], row)]
        self._row = max(int(place.max()) for _, place in sides) + 1
        # One more row on each side holds nothing: empty ranges are summed there.
        self._rows = max(int(number[-1]) for number, _ in sides) + 2
        # Rows of the scan are columns here, so that all of them are added at once.
        self._index = np.full((self._row, 2 * self._rows), 2 * count)
        self.places = np.empty((2, count), dtype=np.int64)
        for side, (number, place) in enumerate(sides):
            column = number + side * self._rows
            at = np.arange(count) if side == 0 else np.arange(count)[::-1]
            self._index[place, column] = side * count + at
            self.places[side, at] = place * 2 * self._rows + column
        self.nowhere = np.array([[self._rows - 1], [2 * self._rows - 1]])
        self.columns = 2 * self._rows
        # Otherwise rounding would exceed what the proof counts.
        self.bounded = self._rows + self._row <= _MOST_ROWS + _RUNNING // 8
        self._mantissa, self._exponent = np.zeros(2 * count + 1), np.full(2 * count + 1, _NOWHERE)

    def sums(self, mass: Wide, kernel: Wide) -> tuple[Floats, Integers]:
        """The sums, to be read at `places`, over powers of two that are one for each column."""
        both = 2, self.count
        np.multiply(mass.mantissa, kernel.mantissa, out=self._mantissa[:-1].reshape(both))
        np.add(mass.exponent, kernel.exponent, out=self._exponent[:-1].reshape(both))
        terms = Wide(self._mantissa.take(self._index), self._exponent.take(self._index))
        tops = np.maximum.accumulate(terms.exponent.max(axis=0).reshape(2, -1), axis=1)
        flat = tops.ravel()
        sums = aligned(terms, flat).cumsum(axis=0)
        before = []
        for totals, scales in zip(sums[-1].reshape(2, -1).tolist(), tops.tolist(), strict=True):
            carried, scale = 0.0, scales[0]
            for total, top in zip(totals, scales, strict=True):
                if top != scale:
                    carried, scale = math.ldexp(carried, max(scale - top, -3000)), top
                before.append(carried)
                carried += total
            before[-1] = 0.0
        sums += before
        return sums, flat


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
        # Four parts of 12 bits each, whose products with a rank are exact, and a rest below 2^-48 of the first.
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

    def decay(self, ranks: Integers, centre: Fraction) -> Wide:
        """e^(-c (rank - centre)) of each rank."""
        base = math.floor(centre)
        power, whole = self.powers(ranks - base)
        part, shift = self.offset(centre - base)
        return wide(np.exp2(part - power), shift - whole)


# What a state knows of the path of offsets: its value, or that it entered the interval of a block from the
# left, was somewhere inside, or entered from the right.
EXACT, FROM_LEFT, INSIDE, FROM_RIGHT = range(4)


class Kernels(NamedTuple):
    """Two rows each: e^(c q) and e^(-c p) of sources [p, q], e^(-c a) and e^(c b) of targets [a, b]."""

    source: Wide
    target: Wide


class Grid:
    """The states of every order: blocks of consecutive ranks, with the interval of offsets of each.

    An offset is a rank less the target; here it is a rank less the floor of the target, and all orders share
    the grid. A block of one rank is a piece: its weight is exact. Any other block has three states, which tell
    where the shortest path of offsets enters its interval: docs/proofs/chain.md.

    Args:
        rate: the powers.
        edges: the first rank of each block, and one past the last, all less the floor of the target.
    """

    def __init__(self, rate: Rate, edges: Integers) -> None:
        self.rate, self.edges = rate, edges
        low, high = edges[:-1], edges[1:] - 1
        thick = high > low
        copies = np.where(thick, 3, 1)
        self.block = np.repeat(np.arange(len(low)), copies)
        # The first of the three states of each block.
        entry = (np.cumsum(copies) - copies)[thick]
        self.kind = np.zeros(len(self.block), dtype=np.int64)
        for kind in (FROM_LEFT, INSIDE, FROM_RIGHT):
            self.kind[entry + kind - 1] = kind
        self.coarse: NDArray[np.bool_] = self.kind > EXACT
        self.low: Integers = low[self.block]
        self.high: Integers = high[self.block]
        # Whole offsets around a block, so that blocks of all orders can share their ends.
        self.left: Integers = self.low - self.coarse
        self.right: Integers = self.high
        self.least, self.most = self.left.copy(), self.right.copy()
        self.least[entry + 2], self.most[entry] = self.right[entry + 2], self.left[entry]
        self._power, self._whole = rate.powers(np.stack([self.left, self.right]))
        self._exact = 1 - self.coarse
        self._entry = entry
        self._kernels: dict[Fraction, Kernels] = {}
        self.scan = Scan(self.most * rate.binary, self.least * rate.binary)

    def __len__(self) -> int:
        return len(self.block)

    def kernels(self, part: Fraction) -> Kernels:
        """The powers for targets with this fractional part."""
        if part not in self._kernels:
            if (len(self._kernels) + 1) * len(self) > 1 << 20:
                self._kernels.clear()
            self._kernels[part] = self._powers(part)
        return self._kernels[part]

    def _powers(self, part: Fraction) -> Kernels:
        power, whole = self._power, -self._whole
        if part:
            offset, shift = self.rate.offset(part)
            power, whole = power - offset * self._exact, whole + shift * self._exact
        falls = wide(np.exp2(-power), whole)
        rises = Wide(1 / falls.mantissa, -falls.exponent)
        # A target is measured from the ends of its block, a source from the ends of what is known of it.
        target = (np.stack([fall[0], rise[1]]) for fall, rise in zip(falls, rises, strict=True))
        source = [np.stack([rise[1], fall[0]]) for fall, rise in zip(falls, rises, strict=True)]
        for values, fall, rise in zip(source, falls, rises, strict=True):
            values[0, self._entry] = rise[0, self._entry]
            values[1, self._entry + 2] = fall[1, self._entry + 2]
        return Kernels(Wide(*source), Wide(*target))

    def offset(self, place: int, whole: int, part: Fraction) -> Fraction:
        """The offset of a state that is `whole` ranks from the floor of the target."""
        return Fraction(whole) if self.coarse[place] else whole - part


class Passage:
    """Which states of one order can come before those of the next, and at which side.

    Args:
        source: the states of the first order.
        target: the states of the next one.
        parts: the fractional parts of both targets.
        shift: the difference of the floors of the targets; None if every source may come before.
    """

    def __init__(
        self, source: Grid, target: Grid, parts: tuple[Fraction, Fraction], shift: int | None
    ) -> None:
        self.source, self.target = source, target
        rung = {part: place for place, part in enumerate(sorted({Fraction(0), *parts}, reverse=True))}

        def codes(grid: Grid, whole: Integers, part: Fraction) -> Integers:
            # Offsets are whole numbers less one of three fractions; these integers are ordered as they are.
            return 4 * whole + np.where(grid.coarse, rung[Fraction(0)], rung[part])

        # Sources before `left` lie to the left of the block, those from `right` to its right, and those from
        # `end` cannot come before it. A piece does not follow itself: that is a run.
        self.back: Integers = np.full(len(target), -1)
        self.end: Integers = np.full(len(target), len(source))
        if shift is not None:
            place = np.minimum(np.searchsorted(source.low, target.low + shift), len(source) - 1)
            same = (source.low[place] == target.low + shift) & ~source.coarse[place] & ~target.coarse
            self.back[same] = place[same]
            self.end = np.searchsorted(source.low, target.high + shift, side="right") - same
        self.kept = np.flatnonzero(self.back >= 0)
        most, least = codes(source, source.most, parts[0]), codes(source, source.least, parts[0])
        left = np.searchsorted(most, codes(target, target.left, parts[1]), side="right")
        right = np.searchsorted(least, codes(target, target.right, parts[1]), side="left")
        self.left: Integers = np.minimum(left, self.end)
        self.right: Integers = np.clip(right, self.left, self.end)
        exact = target.kind == EXACT
        self._far = np.where(exact | (target.kind == FROM_LEFT), self.left, 0)
        self._near = np.where(exact | (target.kind == FROM_RIGHT), self.right, self.end)
        level = np.where(exact | (target.kind == INSIDE), self.right, self.left)
        self._level = np.flatnonzero(level > self.left)
        self._level_first, self._level_last = self.left[self._level], level[self._level]
        self._level_alone = bool((target.kind[self._level] == INSIDE).all())
        self._level_single = bool((self._level_last - self._level_first <= 1).all())
        # A range from a source to the last one is a running sum; others are summed on their own.
        self._to_last = bool(((self._near == self.end) | (self.end == len(source))).all())
        self._asked = np.stack([self._far > 0, self._near < self.end])
        if not self._to_last:
            self._asked[1] = False
        places = np.stack([self._far - 1, np.minimum(self._near, len(source) - 1)])
        self._read = np.where(
            self._asked, np.take_along_axis(source.scan.places, places, axis=1), source.scan.nowhere
        )
        self._column = self._read % source.scan.columns
        self._wanted = int(np.count_nonzero(self._asked))

    def push(self, mass: Wide, before: Kernels, after: Kernels) -> Wide:
        """The weight that flows into each state of the target."""
        found = self._sums(mass, before.source)
        mantissa, exponent = found.mantissa * after.target.mantissa, found.exponent + after.target.exponent
        top = np.maximum(exponent[0], exponent[1])
        scaled = aligned(Wide(mantissa, exponent), top)
        flow = Wide(scaled[0] + scaled[1], top)
        if not self._level.size:
            return flow
        if self._level_single:
            level = mass.take(self._level_first)
        else:
            level = range_sums(mass, self._level_first, self._level_last)
        if not self._level_alone:
            flow_there = flow.take(self._level)
            top = np.maximum(level.exponent, flow_there.exponent)
            level = Wide(aligned(level, top) + aligned(flow_there, top), top)
        flow.mantissa[self._level], flow.exponent[self._level] = level
        return flow

    def _sums(self, mass: Wide, kernel: Wide) -> Wide:
        """The sums over the sources to the left, and over those to the right."""
        scan = self.source.scan
        if scan.bounded:
            sums, tops = scan.sums(mass, kernel)
            found = Wide(sums.take(self._read), tops.take(self._column))
            small = found.mantissa <= _SMALL
            if small.size - int(np.count_nonzero(small)) != self._wanted:
                self._sum_again(small & self._asked, found, mass, kernel)
            found.exponent[found.mantissa == 0] = _NOWHERE
        else:
            found = Wide(np.zeros((2, len(self.target))), np.full((2, len(self.target)), _NOWHERE))
            self._sum_again(self._asked, found, mass, kernel)
        if not self._to_last:
            falling = Wide(mass.mantissa * kernel.mantissa[1], mass.exponent + kernel.exponent[1])
            found.mantissa[1], found.exponent[1] = range_sums(falling, self._near, self.end)
        return found

    def _sum_again(self, chosen: NDArray[np.bool_], found: Wide, mass: Wide, kernel: Wide) -> None:
        """Sums that may have lost terms beside much larger ones, each kind by itself."""
        present = np.flatnonzero(mass.mantissa)
        begins, ends = (np.zeros_like(self._far), self._near), (self._far, self.end)
        for side, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            # Where no source has any weight the sum is zero indeed.
            some = chosen[side] & (begin <= present[-1]) & (end > present[0])
            again = np.flatnonzero(some)
            if again.size:
                terms = Wide(mass.mantissa * kernel.mantissa[side], mass.exponent + kernel.exponent[side])
                sums = range_sums(terms, begin[again], end[again])
                found.mantissa[side, again], found.exponent[side, again] = sums

    def sources(self, state: int) -> tuple[int, int]:
        """The first source of a state of the target, and one past its last."""
        left, right, end = int(self.left[state]), int(self.right[state]), int(self.end[state])
        return ((0, end), (0, left), (left, right), (right, end))[int(self.target.kind[state])]

    def pull(self, state: int, mass: Wide, before: Kernels, after: Kernels) -> tuple[int, Wide]:
        """The first source of a state of the target, and the weights from there, as `push` sees them."""
        first, last = self.sources(state)
        left, right = max(int(self.left[state]), first), min(int(self.right[state]), last)
        mantissa, exponent = mass.mantissa[first:last].copy(), mass.exponent[first:last].copy()
        for side, (begin, end) in enumerate(((first, left), (right, last))):
            if begin < end:
                there = slice(begin - first, end - first)
                mantissa[there] *= before.source.mantissa[side, begin:end]
                mantissa[there] *= after.target.mantissa[side, state]
                exponent[there] += before.source.exponent[side, begin:end]
                exponent[there] += after.target.exponent[side, state]
        return first, Wide(mantissa, exponent)

    def cost(self, before: int, after: int, parts: tuple[Fraction, Fraction]) -> Fraction:
        """The least deviation between two states."""
        source, target = self.source, self.target
        starts = [source.offset(before, int(ends[before]), parts[0]) for ends in (source.least, source.most)]
        ends = [target.offset(after, int(ends[after]), parts[1]) for ends in (target.left, target.right)]
        return max(Fraction(0), ends[0] - starts[1], starts[0] - ends[1])


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
