"""Many quantiles at once: the law of JointExp on ordered points, drawn lazily and audited exactly."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from sfumato.checks import shown
from sfumato.errors import InvalidParameter
from sfumato.laws.bits import Bits, Integers
from sfumato.laws.chain_steps import Blocks
from sfumato.laws.chain_sweep import Sweep, Targets, multiset
from sfumato.laws.coins import bernoulli_exp
from sfumato.laws.law import Floats
from sfumato.laws.wide import LN2, MOST_RECORDS, Rate, choose

_MOST_POINTS = 1 << 62
# Beyond this a rank more or less would decide everything; the arithmetic of Rate relies on it.
_MOST_RATE = 64
# A block of fewer ranks would save nothing: it has three states.
_THINNEST = 4
# If there are at most so many records, and not many more than near a target, all are read: none is rejected.
_FEW_RECORDS, _FEW_WINDOWS = 2000, 4
# Blocks of wider windows are not kept for the next chain.
_WIDEST_KEPT = 1 << 12
# Around further centres e^-12 is small enough: what is beyond is bounded from the end of the same ranks.
_NEAR_CENTRES = 12


class Order(Protocol):
    """Sorted records on the points 0..points-1, read by rank and by point."""

    @property
    def size(self) -> int:
        """The number of records."""

    @property
    def points(self) -> int:
        """The number of points."""

    def at(self, ranks: Integers) -> Integers:
        """The positions of the records with these increasing numbers."""

    def below(self, point: int) -> int:
        """The number of records at positions less than `point`."""


class Windows(NamedTuple):
    """Ranks to know around a target: all up to distance `near`, then those at each distance of `cuts`."""

    near: int
    cuts: tuple[int, ...] = ()

    def offsets(self) -> Integers:
        """The ranks to know, less the floor of the target; a piece needs the rank after it too."""
        cuts = np.array(self.cuts, dtype=np.int64)
        return np.concatenate([-cuts[::-1], np.arange(-self.near, self.near + 2), 1 + cuts])

    def within(self, size: int) -> "Windows":
        """The same without what is further than `size` from a target: there is no rank of so many records."""
        return Windows(min(self.near, size), tuple(cut for cut in self.cuts if cut <= size))


@lru_cache(maxsize=64)
def windows(c: Fraction, points: int, orders: int, size: int | None = None) -> Windows:
    """What a chain reads around each target: at first for `size` records, and after a rejection for any."""
    # A far order costs e^(-2 c distance), which pays for all points. If all orders are far together, a block
    # of w ranks loses a factor of about 1 + c w for each; widths keep that to the root of what they cost.
    rate = float(c)
    near = math.ceil(max(math.log(points) + 12, 2 * orders * math.log1p(_THINNEST * rate)) / (2 * rate))
    if size is not None and size <= min(_FEW_RECORDS, _FEW_WINDOWS * near):
        return Windows(size)
    paid = orders * math.log(points)
    if size is not None:
        # Evenly spread records leave each order a few gaps of points / size points; e^6 for the uneven.
        paid = min(paid, math.log(points) + orders * (math.log(size + 1) + 6))
    last = math.ceil((paid + 12) / (2 * rate))
    cuts, distance = [], near
    while distance < last:
        width = math.expm1(min(rate * distance / orders, 40.0)) / rate
        distance = min(distance + int(min(width, distance)) + 1, last)
        cuts.append(distance)
    around = Windows(near, tuple(cuts))
    return around if size is None else around.within(size)


def slack(orders: int) -> Fraction:
    """A bound of the privacy loss by rounding; twice the error of any log probability of the sampled law.

    Guarantee:
        For every data set, |log P(drawn) - log P(stated)| <= slack / 2 for each tuple, so that the loss of
        the drawn law exceeds that of the stated one by at most `slack`. Public: it depends on the number of
        orders only. The roundings are counted in docs/proofs/chain.md.

    >>> float(slack(9)) < 1e-10, float(slack(99)) < 1e-9
    (True, True)
    """
    return Fraction(32 * (orders + 1) * (2400 + orders), 1 << 53)


class Chain:
    """Non-decreasing tuples of points, weighted by how well the counts between them meet the wanted gaps.

    With n_j records in [o_(j-1), o_j), where o_0 and o_(m+1) are the ends of the line, the tuple has the
    weight exp(-c sum_j |n_j - gap_j|).

    Guarantee:
        `sample` follows the law that `logpmf` states up to a factor within e^(+-slack/2) for each tuple,
        where `slack` is public; the draws themselves are exact. Only records near the targets are read
        unless ties or a draw need others. Proof: docs/proofs/chain.md.

    Args:
        order: the records.
        gaps: the wanted numbers of records before, between and after the points; they add up to all records.
        c: the rate, positive and at most 64.

    Raises:
        InvalidParameter: gaps are negative, fewer than two, or do not add up; c or the order is out of range.
            c, the number of gaps and of points are public; gaps and records need not be, and no data that fit
            into memory have the 2^40 records that are refused.

    >>> from sfumato.laws.bits import SystemBits
    >>> class Records:
    ...     size, points = 4, 100
    ...     def at(self, ranks):
    ...         return np.array([10, 20, 30, 40])[ranks - 1]
    ...     def below(self, point):
    ...         return sum(x < point for x in (10, 20, 30, 40))
    >>> law = Chain(Records(), gaps=[Fraction(1), Fraction(2), Fraction(1)], c=Fraction(20))
    >>> low, high = law.sample(SystemBits())
    >>> 10 < low <= 20 and 30 < high <= 40, round(math.exp(law.logpmf((15, 35))), 6)
    (True, 0.01)
    """

    def __init__(
        self,
        order: Order,
        gaps: Sequence[Fraction],
        c: Fraction,
        *,
        _windows: Windows | None = None,
        _learns: bool = True,
    ) -> None:
        self._order = order
        self._gaps = _checked_gaps(gaps, order.size)
        self._rate = Rate(_checked_rate(c))
        if not 1 <= order.points <= _MOST_POINTS or not 0 <= order.size < MOST_RECORDS:
            raise InvalidParameter("order must have 1 to 2^62 points and fewer than 2^40 records")
        around = _windows or windows(c, order.points, len(gaps) - 1, order.size)
        full = _windows or windows(c, order.points, len(gaps) - 1)
        self._windows, self._full = around.within(order.size), full.within(order.size)
        self._learns = _learns
        self._targets = Targets(self._gaps)
        self._centres = {0}
        self._read_steps()
        self._log_total: tuple[int, float] | None = None

    @property
    def orders(self) -> int:
        """The number of points in a tuple."""
        return len(self._gaps) - 1

    def misfits(self) -> tuple[Integers, tuple[Fraction, ...], Fraction]:
        """The positions of all records, the wanted gaps and the rate, for audits that compare two chains."""
        return self._order.at(np.arange(1, self._order.size + 1)), tuple(self._gaps), self._rate.c

    def sample(self, bits: Bits, size: None = None) -> tuple[int, ...]:
        """One tuple."""
        while True:
            states, points = self._propose(bits)
            if self._accepts(states, points, bits):
                return tuple(points)
            # A rejected draw is dropped whole: keeping any part of it would change the law.
            if self._learns:
                self._refine(states, points)

    def logpmf(self, points: Sequence[int]) -> float:
        """The log probability of a tuple; reads all records once."""
        if len(points) != self.orders:
            raise InvalidParameter(f"a tuple must have {self.orders} points, got {len(points)}")
        if points[0] < 0 or points[-1] >= self._order.points or any(a > b for a, b in pairwise(points)):
            return -math.inf
        if self._log_total is None:
            self._log_total = self._all_weights()
        exponent, log_mantissa = self._log_total
        # The two large terms nearly cancel, so that they are subtracted as fractions.
        cost = self._rate.c * self._deviation([self._order.below(int(point)) for point in points])
        return float(-cost - exponent * LN2) - log_mantissa

    def _all_weights(self) -> tuple[int, float]:
        """The exponent of the total of all weights, and the logarithm of its mantissa."""
        size, bases = self._order.size, self._targets.bases
        edges = np.arange(-max(bases), size - min(bases) + 2)
        blocks = Blocks(self._rate, np.concatenate([[-MOST_RECORDS], edges, [MOST_RECORDS]]))
        inner = self._order.at(np.arange(1, size + 1))
        pieces = np.diff(np.concatenate([[-1], inner, [self._order.points - 1]]))

        def lengths(base: int) -> Floats:
            found = np.zeros(len(blocks))
            # The rank 0 is at the offset -base, and the first block is of three states.
            start = max(bases) - base + 3
            found[start : start + size + 1] = pieces
            return found

        total = Sweep(blocks, self._targets, map(lengths, bases), keep=False).total
        return int(total.exponent[0]), math.log(total.mantissa[0])

    def _read_steps(self) -> None:
        """Read the ranks around all centres, at the same offsets for every order."""
        bases, size = self._targets.bases, self._order.size
        # Nothing is known, nor to know, beyond the first record and the last.
        lowest, highest = -max(bases), size - min(bases) + 1
        if self._centres == {0} and self._windows.near <= _WIDEST_KEPT:
            last = max((self._windows.near, *self._windows.cuts)) + 1
            self._blocks = _plain_blocks(self._rate.c, self._windows, max(lowest, -last), min(highest, last))
        else:
            self._blocks = _blocks(self._rate, self._offsets(), lowest, highest)
        self._positions = self._read(self._blocks.edges)
        self._sweep: Sweep | None = None
        if self._centres == {0}:
            ties = self._ends_of_ties()
            if ties:
                self._centres |= ties
                self._read_steps()

    def _offsets(self) -> Integers:
        """The offsets around all centres."""
        less = min(self._windows.near, math.ceil(_NEAR_CENTRES / self._rate.c))
        others = np.add.outer(np.array(sorted(self._centres)), np.arange(-less, less + 2)).ravel()
        return np.unique(np.concatenate([self._windows.offsets(), others]))

    def _read(self, edges: Integers) -> Integers:
        """The positions at these edges for each order; rank 0 lies before all points."""
        size = self._order.size
        ranks = np.clip(np.add.outer(np.array(self._targets.bases), edges), 0, size + 1)
        known = (ranks > 0) & (ranks <= size)
        wanted = ranks[known]
        positions: Integers = np.where(ranks > 0, self._order.points - 1, -1)
        if (wanted[1:] > wanted[:-1]).all():
            positions[known] = self._order.at(wanted)
        elif wanted.size >= size:
            positions[known] = self._order.at(np.arange(1, size + 1))[wanted - 1]
        else:
            single, place = np.unique(wanted, return_inverse=True)
            positions[known] = self._order.at(single)[place]
        return positions

    def _ends_of_ties(self) -> set[int]:
        """The offsets of both ends of every tie that holds all records near a target."""
        near, size = self._windows.near, self._order.size
        found: set[int] = set()
        if near >= size:
            return found
        bases = np.array(self._targets.bases)
        lowest, highest = np.maximum(bases - near, 1), np.minimum(bases + 1 + near, size)
        places = np.searchsorted(self._blocks.edges, [lowest - bases, highest - bases])
        first, last = np.take_along_axis(self._positions, places.T, axis=1).T
        for number in np.flatnonzero((first == last) & (lowest < highest)).tolist():
            point, base = int(first[number]), int(bases[number])
            found |= {self._order.below(point) - base, self._order.below(point + 1) - base}
        return found

    def _forward(self) -> Sweep:
        if self._sweep is None:
            lengths = np.diff(self._positions, axis=1).astype(np.float64)
            self._sweep = Sweep(self._blocks, self._targets, lengths.take(self._blocks.block, axis=1))
        return self._sweep

    def _stretch(self, order: int, state: int) -> tuple[int, int]:
        """The first point of a state of an order, counted from 1, and the number of its points."""
        block = int(self._blocks.block[state])
        before, last = self._positions[order - 1, block : block + 2].tolist()
        return before + 1, last - before

    def _propose(self, bits: Bits) -> tuple[list[int], list[int]]:
        """A block of each order and a point in each block, by the weights of the blocks."""
        sweep = self._forward()
        states, points = [0] * self.orders, [0] * self.orders
        order, block = self.orders + 1, 0
        while True:
            first, weights = sweep.links[order - 1].pull(block)
            block = first + choose(weights, bits)
            order -= 1
            if order == 0:
                return states, points
            length = sweep.run(order, block, bits)
            start, number = self._stretch(order, block)
            for offset in reversed(multiset(number, length, bits)):
                states[order - 1], points[order - 1] = block, start + offset
                order, block = order - 1, int(sweep.links[order - 1].passage.back[block])
            order, block = order + 1, states[order]

    def _accepts(self, states: list[int], points: list[int], bits: Bits) -> bool:
        if not self._blocks.coarse[states].any():
            return True
        if any(a > b for a, b in pairwise(points)):
            return False
        excess = self._deviation(self._ranks(states, points)) - self._bound(states)
        return bernoulli_exp(self._rate.c * excess, bits)

    def _ranks(self, states: list[int], points: list[int]) -> list[int]:
        return [
            self._order.below(point) if self._blocks.coarse[state] else int(self._blocks.low[state]) + base
            for base, state, point in zip(self._targets.bases, states, points, strict=True)
        ]

    def _deviation(self, ranks: list[int]) -> Fraction:
        edges = pairwise([0, *ranks, self._order.size])
        return sum((abs(b - a - gap) for (a, b), gap in zip(edges, self._gaps, strict=True)), Fraction(0))

    def _bound(self, states: list[int]) -> Fraction:
        """The deviation that the proposal charges for these states, never more than the true one."""
        links = zip(self._forward().links, pairwise([0, *states, 0]), strict=True)
        return sum((link.cost(before, after) for link, (before, after) in links), Fraction(0))

    def _refine(self, states: list[int], points: list[int]) -> None:
        """Read more ranks, around the offsets of a rejected draw that were known only by their block."""
        self._windows = self._full
        ranks = self._ranks(states, points)
        for base, state, rank in zip(self._targets.bases, states, ranks, strict=True):
            if self._blocks.coarse[state]:
                self._centres.add(rank - base)
        self._read_steps()


@lru_cache(maxsize=4)
def _plain_blocks(c: Fraction, around: Windows, lowest: int, highest: int) -> Blocks:
    return _blocks(Rate(c), around.offsets(), lowest, highest)


def _blocks(rate: Rate, offsets: Integers, lowest: int, highest: int) -> Blocks:
    inner = offsets[(offsets >= lowest) & (offsets <= highest)]
    return Blocks(rate, np.concatenate([[-MOST_RECORDS], inner, [MOST_RECORDS]]))


def _checked_gaps(gaps: Sequence[Fraction], size: int) -> list[Fraction]:
    exact = [Fraction(gap) for gap in gaps]
    if len(exact) < 2 or min(exact) < 0 or sum(exact) != size:
        raise InvalidParameter("gaps must be two or more non-negative numbers that add up to the records")
    return exact


def _checked_rate(c: Fraction) -> Fraction:
    if not 0 < c <= _MOST_RATE:
        raise InvalidParameter(f"c must be positive and at most {_MOST_RATE}, got c={shown(c)}")
    return Fraction(c)
