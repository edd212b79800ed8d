"""How weights are stored, summed and drawn from exactly: runs of equal integer weights, or float64 cells.

Both kinds group the indices (by level, or by binary exponent), draw the group with one uniform real compared
exactly to ratios of big integers, and then an index inside the group with small integers.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.laws.bits import Bits, Integers, Words
from sfumato.laws.coins import Uniform, ratio_coin
from sfumato.laws.law import Floats

# The number of points must leave room for sums of indices in int64.
_MOST_POINTS = 1 << 62
# A float64 with the exponent bits e > 0 is an integer of 53 bits times 2^(e - 1075).
_BIAS = 1075


class Weights(Protocol):
    """Weights of the points 0..points-1."""

    @property
    def points(self) -> int: ...
    @property
    def ends(self) -> Integers: ...
    @property
    def total(self) -> Fraction: ...
    def weight(self, index: int) -> Fraction: ...
    def log_weights(self, index: Integers) -> Floats: ...
    def mass_before(self, index: Integers) -> Floats: ...
    def mass_from(self, index: Integers) -> Floats: ...
    def pieces(self) -> tuple[Floats, Floats, Floats]: ...
    def draw(self, bits: Bits, count: int) -> Integers: ...


class Groups:
    """Exact draws of a group with probability proportional to a positive integer.

    >>> from sfumato.laws.bits import SystemBits
    >>> bool((Groups([1, 10**400]).draw(SystemBits(), 3) == 1).all())
    True
    """

    def __init__(self, masses: Sequence[int], width: int = 64) -> None:
        sums = list(accumulate(masses))
        self._width = width
        self._total = sums[-1]
        self._edges = sums[:-1]
        # floor(2^width * edge / total): group g is reached when the uniform is at or past its edge.
        # An edge of fewer bits than `least` gives 0, and there are many such where weights fall far.
        least = self._total.bit_length() - width
        self.table: Words = np.array(
            [(edge << width) // self._total if edge.bit_length() >= least else 0 for edge in self._edges],
            dtype=np.uint64,
        )

    def draw(self, bits: Bits, count: int) -> Integers:
        """`count` independent groups."""
        prefixes = bits.words(count)
        groups, level = self.find(prefixes)
        for place in np.flatnonzero(level):
            groups[place] = self.settle(int(prefixes[place]), bits)
        return groups

    def find(self, prefixes: Words) -> tuple[Integers, NDArray[np.bool_]]:
        """Groups, and where the prefix is level with an edge so that the group is not decided."""
        groups = np.searchsorted(self.table, prefixes)
        if not self.table.size:
            return groups, np.zeros(len(groups), dtype=np.bool_)
        return groups, self.table.take(groups, mode="clip") == prefixes

    def settle(self, prefix: int, bits: Bits) -> int:
        """The group of one word, decided by as many further bits as it takes."""
        word = np.uint64(prefix)
        low = int(np.searchsorted(self.table, word))
        high = int(np.searchsorted(self.table, word, side="right"))
        uniform = Uniform(bits, prefix, self._width)
        while low < high:
            middle = (low + high + 1) // 2
            if uniform.below(ratio_coin(Fraction(self._edges[middle - 1], self._total))):
                high = middle - 1
            else:
                low = middle
        return low


def _sums_by_group(group: Integers, lengths: Integers, count: int) -> Integers:
    sums = np.zeros(count, dtype=np.int64)
    # The float sums of bincount are exact below 2^53: halves of 31 bits, at most 2^22 runs at a time.
    for start in range(0, len(group), 1 << 22):
        part, length = group[start : start + (1 << 22)], lengths[start : start + (1 << 22)]
        sums += np.bincount(part, length >> 31, count).astype(np.int64) << 31
        sums += np.bincount(part, length & ((1 << 31) - 1), count).astype(np.int64)
    return sums


class RunWeights:
    """Runs of consecutive points of equal integer weight."""

    def __init__(
        self, lengths: NDArray[Any], levels: NDArray[Any], table: Sequence[int] | NDArray[Any]
    ) -> None:
        if len(lengths) != len(levels):
            raise InvalidParameter("lengths and levels must be equally long")
        if max(float(lengths.astype(np.float64).sum()), float(levels.max())) >= _MOST_POINTS:
            raise InvalidParameter("lengths and levels must add up to less than 2^62")
        if not len(table) or min(table) < 0:
            raise InvalidParameter("table must hold non-negative integers, not be empty")
        self._lengths: Integers = lengths.astype(np.int64)
        self._ends: Integers = np.cumsum(self._lengths)
        self.points = int(self._ends[-1])
        # Runs of the same level form a group; counting the levels finds the groups without sorting the runs.
        level = np.minimum(levels.astype(np.int64), len(table) - 1)
        occurs = np.bincount(level) > 0
        used = np.flatnonzero(occurs)
        self._group: Integers = (np.cumsum(occurs) - 1)[level]
        self._values = [int(table[place]) for place in used.tolist()]
        self._sizes: Integers = _sums_by_group(self._group, self._lengths, len(used))
        self._masses = [value * int(size) for value, size in zip(self._values, self._sizes, strict=True)]
        self.total = Fraction(sum(self._masses))
        if not self.total:
            raise InvalidParameter("weights must not all be zero")

    @property
    def ends(self) -> Integers:
        """One past the last point of each run; points of a run weigh the same."""
        return self._ends

    def weight(self, index: int) -> Fraction:
        """The weight of one point."""
        return Fraction(self._values[int(self._group[self._run_of(index)])])

    def log_weights(self, index: Integers) -> Floats:
        """The log weights of points."""
        logs = np.array([math.log(value) if value else -math.inf for value in self._values])
        return np.asarray(logs[self._group[self._run_of(index)]])

    def mass_before(self, index: Integers) -> Floats:
        """The probability of the points before each index."""
        run = self._run_of(np.minimum(index, self.points - 1))
        inside = index - (self._ends[run] - self._lengths[run])
        sums = np.concatenate([[0.0], np.cumsum(self._run_masses)])
        mass: Floats = np.minimum(sums[run] + inside * self._point_masses[self._group[run]], 1.0)
        return mass

    def mass_from(self, index: Integers) -> Floats:
        """The probability of each index and all points after it."""
        run = self._run_of(np.minimum(index, self.points - 1))
        inside = self._ends[run] - index
        sums = np.concatenate([np.cumsum(self._run_masses[::-1])[::-1], [0.0]])
        mass: Floats = np.minimum(sums[run + 1] + inside * self._point_masses[self._group[run]], 1.0)
        return mass

    def pieces(self) -> tuple[Floats, Floats, Floats]:
        """Middles, lengths and masses of the runs."""
        lengths = self._lengths.astype(np.float64)
        return self._ends - (lengths + 1) / 2, lengths, self._run_masses

    def draw(self, bits: Bits, count: int) -> Integers:
        """`count` independent points: the level, then a point among all those of that level."""
        order, ends = self._by_group
        groups, kept = self._groups
        group = kept[groups.draw(bits, count)]
        # Points are numbered group by group; this is one of the chosen group, all equally likely.
        number = self._firsts[group] + bits.below_each(self._sizes[group], count)
        place = np.searchsorted(ends, number, side="right")
        points: Integers = self._ends[order[place]] - (ends[place] - number)
        return points

    @cached_property
    def _by_group(self) -> tuple[Integers, Integers]:
        order = np.argsort(self._group, kind="stable")
        return order, np.cumsum(self._lengths[order])

    @cached_property
    def _firsts(self) -> Integers:
        firsts: Integers = np.cumsum(self._sizes) - self._sizes
        return firsts

    @cached_property
    def _groups(self) -> tuple[Groups, Integers]:
        kept = np.flatnonzero([mass > 0 for mass in self._masses])
        return Groups([self._masses[place] for place in kept]), kept

    @cached_property
    def _point_masses(self) -> Floats:
        return np.array([value / self.total.numerator for value in self._values])

    @cached_property
    def _run_masses(self) -> Floats:
        return np.asarray(self._point_masses[self._group] * self._lengths)

    def _run_of(self, index: Any) -> Any:
        # The first run that ends after the index; runs of length zero are passed over.
        return np.searchsorted(self._ends, index, side="right")


def _biased_exponents(weights: Floats) -> NDArray[np.int16]:
    """e for each positive float m 2^(e - 1075), m in [2^52, 2^53); 0 or less for subnormal numbers."""
    exponents = np.empty(len(weights), dtype=np.int16)
    np.right_shift(weights.view(np.uint64), np.uint64(52), out=exponents, casting="unsafe")
    tiny = np.flatnonzero(exponents == 0)
    exponents[tiny] = np.frexp(weights[tiny])[1] + (_BIAS - 53)
    return exponents


def _mantissas(weights: Floats, tiny: int) -> Words:
    """m for each positive float m 2^(e - 1075), of which the first `tiny` are subnormal; overwrites them."""
    normalised = np.ldexp(np.frexp(weights[:tiny])[0], 53).astype(np.uint64)
    mantissas: Words = weights.view(np.uint64)
    mantissas &= np.uint64((1 << 52) - 1)
    mantissas |= np.uint64(1 << 52)
    mantissas[:tiny] = normalised
    return mantissas


class FloatWeights:
    """Float64 cells, taken at their exact values."""

    def __init__(self, weights: Floats) -> None:
        # Comparisons with NaN are false, so that these also refuse it.
        if not weights.size or not (weights.min() >= 0 and weights.max() < math.inf):
            raise InvalidParameter("weights must be finite and non-negative, not empty")
        if not weights.max() > 0:
            raise InvalidParameter("weights must not all be zero")
        self._weights = weights
        self.points = len(weights)
        # Large temporary arrays cost more than arithmetic on them, so that there are few of them below.
        zeros = np.count_nonzero(weights) < len(weights)
        cells = np.flatnonzero(weights) if zeros else None
        positive = weights if cells is None else weights[cells]
        exponents = _biased_exponents(positive)
        # A stable sort of 16-bit integers is a radix sort, in linear time.
        order = np.argsort(exponents, kind="stable")
        ordered = exponents[order]
        self._cells: Integers = order if cells is None else cells[order]
        self._mantissas: Words = _mantissas(positive[order], int(np.searchsorted(ordered, 1)))
        self._first = np.concatenate([[0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1])
        self._counts: Integers = np.diff(self._first, append=len(order))
        self._low = int(ordered[0])
        # Halves of 27 and 26 bits add up in int64 for up to 2^36 cells.
        halves = self._mantissas >> np.uint64(26)
        tops = np.add.reduceat(halves, self._first)
        np.bitwise_and(self._mantissas, np.uint64((1 << 26) - 1), out=halves)
        bottoms = np.add.reduceat(halves, self._first)
        self._masses: list[int] = [
            ((top << 26) + bottom) << (exponent - self._low)
            for top, bottom, exponent in zip(
                tops.tolist(), bottoms.tolist(), ordered[self._first].tolist(), strict=True
            )
        ]

    @property
    def ends(self) -> Integers:
        """One past each cell."""
        return np.arange(1, self.points + 1)

    @property
    def total(self) -> Fraction:
        """The exact sum of the weights."""
        return sum(self._masses) * Fraction(2) ** (self._low - _BIAS)

    def weight(self, index: int) -> Fraction:
        """The weight of one cell."""
        return Fraction(float(self._weights[index]))

    def log_weights(self, index: Integers) -> Floats:
        """The log weights of cells."""
        with np.errstate(divide="ignore"):
            return np.log(self._weights[index])

    def mass_before(self, index: Integers) -> Floats:
        """The probability of the cells before each index."""
        return np.concatenate([[0.0], np.cumsum(self._shares)])[index].clip(0.0, 1.0)

    def mass_from(self, index: Integers) -> Floats:
        """The probability of each index and all cells after it."""
        return np.concatenate([np.cumsum(self._shares[::-1])[::-1], [0.0]])[index].clip(0.0, 1.0)

    def pieces(self) -> tuple[Floats, Floats, Floats]:
        """Indices, lengths (all one) and masses."""
        return np.arange(self.points, dtype=np.float64), np.ones(self.points), self._shares

    def draw(self, bits: Bits, count: int) -> Integers:
        """`count` independent cells: the exponent, then a cell by rejection on its mantissa."""
        chosen = self._groups.draw(bits, count)
        cells = np.empty(count, dtype=np.int64)
        open_ = np.arange(count)
        while open_.size:
            group = chosen[open_]
            place = self._first[group] + bits.below_each(self._counts[group], open_.size)
            # Mantissas lie in [2^52, 2^53), so at least half of the trials end here.
            kept = bits.words(open_.size) >> np.uint64(11) < self._mantissas[place]
            cells[open_[kept]] = self._cells[place[kept]]
            open_ = open_[~kept]
        return cells

    @cached_property
    def _groups(self) -> Groups:
        return Groups(self._masses)

    @cached_property
    def _shares(self) -> Floats:
        # Scaled so that the largest is about one; shares below 1e-308 vanish from the float tails only.
        shift = -int(np.frexp(self._weights.max())[1])
        with np.errstate(under="ignore"):
            scaled = np.ldexp(self._weights, shift)
        return scaled / float(self.total * Fraction(2) ** shift)
