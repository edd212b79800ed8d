"""Many quantiles at once: the law of JointExp on ordered points, drawn lazily and audited exactly."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple, Protocol

import numpy as np

from sfumato.checks import shown
from sfumato.errors import InvalidParameter
from sfumato.laws.bits import Bits, Integers
from sfumato.laws.chain_steps import (
    LN2,
    MOST_RECORDS,
    Grid,
    Kernels,
    Passage,
    Rate,
    Wide,
    choose,
    column_sums,
    wide,
)
from sfumato.laws.coins import bernoulli_exp
from sfumato.laws.law import Floats

_MOST_POINTS = 1 << 62
# Beyond this a rank more or less would decide everything; the arithmetic of Rate relies on it.
_MOST_RATE = 64
# A block of fewer ranks would save nothing: it has three states.
_THINNEST = 4
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


@lru_cache(maxsize=64)
def windows(c: Fraction, points: int, orders: int, size: int | None = None) -> Windows:
    """What a chain reads around each target: at first for `size` records, and after a rejection for any."""
    # A far order costs e^(-2 c distance), which pays for all points. If all orders are far together, a block
    # of w ranks loses a factor of about 1 + c w for each; widths keep that to the root of what they cost.
    rate = float(c)
    near = math.ceil(max(math.log(points) + 12, 2 * orders * math.log1p(_THINNEST * rate)) / (2 * rate))
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
    return Windows(near, tuple(cuts))


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
        self._windows = _windows or windows(c, order.points, len(gaps) - 1, order.size)
        self._full = _windows or windows(c, order.points, len(gaps) - 1)
        self._learns = _learns
        self._targets = Targets(self._gaps)
        self._centres = {0}
        self._read_steps()
        self._log_total: tuple[int, float] | None = None

    @property
    def orders(self) -> int:
        """The number of points in a tuple."""
        return len(self._gaps) - 1

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
        grid = Grid(self._rate, np.concatenate([[-MOST_RECORDS], edges, [MOST_RECORDS]]))
        inner = self._order.at(np.arange(1, size + 1))
        pieces = np.diff(np.concatenate([[-1], inner, [self._order.points - 1]]))

        def lengths(base: int) -> Floats:
            found = np.zeros(len(grid))
            # The rank 0 is at the offset -base, and the first block is of three states.
            start = max(bases) - base + 3
            found[start : start + size + 1] = pieces
            return found

        total = Sweep(grid, self._targets, map(lengths, bases), keep=False).total
        return int(total.exponent[0]), math.log(total.mantissa[0])

    def _read_steps(self) -> None:
        """Read the ranks around all centres, at the same offsets for every order."""
        edges = np.concatenate([[-MOST_RECORDS], self._offsets(), [MOST_RECORDS]])
        self._grid = Grid(self._rate, edges)
        self._positions = self._read(edges)
        self._sweep: Sweep | None = None
        if self._centres == {0}:
            ties = self._ends_of_ties()
            if ties:
                self._centres |= ties
                self._read_steps()

    def _offsets(self) -> Integers:
        """The offsets around all centres."""
        near, cuts = self._windows.near, np.array(self._windows.cuts, dtype=np.int64)
        inner = np.concatenate([-cuts[::-1], np.arange(-near, near + 2), 1 + cuts])
        if len(self._centres) == 1:
            return inner
        less = min(near, math.ceil(_NEAR_CENTRES / self._rate.c))
        others = np.add.outer(np.array(sorted(self._centres)), np.arange(-less, less + 2)).ravel()
        return np.unique(np.concatenate([inner, others]))

    def _read(self, edges: Integers) -> Integers:
        """The positions at these edges for each order; rank 0 lies before the first point, the last at its end."""
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
        near, size, found = self._windows.near, self._order.size, set()
        bases = np.array(self._targets.bases)
        lowest, highest = np.maximum(bases - near, 1), np.minimum(bases + 1 + near, size)
        places = np.searchsorted(self._grid.edges, [lowest - bases, highest - bases])
        first, last = np.take_along_axis(self._positions, places.T, axis=1).T
        for number in np.flatnonzero((first == last) & (lowest < highest)).tolist():
            point, base = int(first[number]), int(bases[number])
            found |= {self._order.below(point) - base, self._order.below(point + 1) - base}
        return found

    def _forward(self) -> "Sweep":
        if self._sweep is None:
            lengths = np.diff(self._positions, axis=1).astype(np.float64)
            self._sweep = Sweep(self._grid, self._targets, lengths.take(self._grid.block, axis=1))
        return self._sweep

    def _stretch(self, order: int, state: int) -> tuple[int, int]:
        """The first point of a state of an order, counted from 1, and the number of its points."""
        block = int(self._grid.block[state])
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
            for offset in reversed(_multiset(number, length, bits)):
                states[order - 1], points[order - 1] = block, start + offset
                order, block = order - 1, int(sweep.links[order - 1].passage.back[block])
            order, block = order + 1, states[order]

    def _accepts(self, states: list[int], points: list[int], bits: Bits) -> bool:
        if not self._grid.coarse[states].any():
            return True
        if any(a > b for a, b in pairwise(points)):
            return False
        excess = self._deviation(self._ranks(states, points)) - self._bound(states)
        return bernoulli_exp(self._rate.c * excess, bits)

    def _ranks(self, states: list[int], points: list[int]) -> list[int]:
        return [
            self._order.below(point) if self._grid.coarse[state] else int(self._grid.low[state]) + base
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
            if self._grid.coarse[state]:
                self._centres.add(rank - base)
        self._read_steps()


class Targets:
    """The numbers of records wanted before each point, as whole numbers and fractions."""

    def __init__(self, gaps: list[Fraction]) -> None:
        unit = math.lcm(*(gap.denominator for gap in gaps))
        shares = [gap.numerator * (unit // gap.denominator) for gap in gaps]
        split = [divmod(total, unit) for total in accumulate(shares)]
        self.size = split.pop()[0]
        self.bases = [base for base, _ in split]
        self._rests = [rest for _, rest in split]
        self.gaps = gaps
        fractions = {rest: Fraction(rest, unit) for rest in set(self._rests)}
        self.parts = [fractions[rest] for rest in self._rests]

    def pattern(self, number: int) -> tuple[bool, bool, bool, bool]:
        """How the parts of two orders, the first of them `number`, compare with each other and with zero."""
        before, after = self._rests[number - 1], self._rests[number]
        return before == 0, after == 0, before < after, before == after


@dataclass
class Link:
    """The passage from the states of one order to those of the next, and the weights of the first."""

    passage: Passage
    parts: tuple[Fraction, Fraction]
    before: Kernels
    after: Kernels
    mass: Wide

    def push(self) -> Wide:
        """The weight that flows into each state of the target."""
        return self.passage.push(self.mass, self.before, self.after)

    def pull(self, state: int) -> tuple[int, Wide]:
        """The first source of a state of the target, and the weights from there."""
        return self.passage.pull(state, self.mass, self.before, self.after)

    def cost(self, before: int, after: int) -> Fraction:
        """The least deviation between two states."""
        return self.passage.cost(before, after, self.parts)


class Runs(NamedTuple):
    """Weights by run length: for r orders in a piece there are C(L + r - 1, r) multisets of points.

    `fresh` has a weight for each state and runs of one order, `grown` a row for each longer one and a column
    for each state that has some; `column` tells which, and the last column is zero.
    """

    fresh: Wide
    grown: Wide | None = None
    column: Integers | None = None

    def of(self, state: int) -> Wide:
        """The weights of the runs that end in a state, from one order on."""
        single = self.fresh.take(np.array([state]))
        if self.grown is None or self.column is None:
            return single
        others = self.grown.mantissa[:, self.column[state]], self.grown.exponent[:, self.column[state]]
        return Wide(*(np.concatenate(pair) for pair in zip(single, others, strict=True)))

    def sums(self) -> Wide:
        """The weight of each state."""
        if self.grown is None or self.column is None:
            return self.fresh
        states = np.flatnonzero(self.column >= 0)
        parts = zip(self.fresh, self.grown, strict=True)
        sums = column_sums(Wide(*(np.concatenate([one[None, states], more[:, :-1]]) for one, more in parts)))
        total = Wide(self.fresh.mantissa.copy(), self.fresh.exponent.copy())
        total.mantissa[states], total.exponent[states] = sums
        return total


class Sweep:
    """The weights of all paths through the blocks, summed up to each order."""

    def __init__(self, grid: Grid, targets: Targets, lengths: Iterable[Floats], *, keep: bool = True) -> None:
        rate, orders = grid.rate, len(targets.bases)
        point = Grid(rate, np.array([0, 1]))
        ends = point.kernels(Fraction(0))
        # From this shift on, no block of an order is also one of the next.
        apart = int(grid.edges[-2] - grid.edges[1]) + 1
        passages: dict[tuple[object, ...], Passage] = {}
        self.links: list[Link] = []
        self._runs: list[Runs] = []
        runs, part, after = Runs(wide(np.ones(1), 0)), Fraction(0), ends
        stretches = iter(lengths)
        for number in range(orders + 1):
            before, parts = after, (part, targets.parts[number] if number < orders else Fraction(0))
            after, part = (grid.kernels(parts[1]) if number < orders else ends), parts[1]
            if 0 < number < orders:
                shift = targets.bases[number] - targets.bases[number - 1]
                key = (shift if shift < apart else None, *targets.pattern(number))
                passage = passages.get(key)
                if passage is None:
                    passage = passages[key] = Passage(grid, grid, parts, key[0])
            else:
                passage = Passage(grid if number else point, grid if number < orders else point, parts, None)
            link = Link(passage, parts, before, after, runs.sums())
            inflow = link.push()
            if number < orders:
                runs = _extended(runs, inflow, passage, next(stretches), rate, targets.gaps[number])
            if keep:
                self.links.append(link)
                self._runs.append(runs)
        self.total = wide(*inflow)

    def runs(self, order: int, state: int) -> Wide:
        """The weights of the numbers of orders, up to this one, that share a piece."""
        return self._runs[order - 1].of(state)

    def run(self, order: int, state: int, bits: Bits) -> int:
        """How many orders, up to this one, share the piece."""
        return 1 if self._runs[order - 1].grown is None else choose(self.runs(order, state), bits) + 1


def _extended(runs: Runs, inflow: Wide, passage: Passage, lengths: Floats, rate: Rate, gap: Fraction) -> Runs:
    """The runs that start in each state, and those that come there from the same piece."""
    fresh = wide(inflow.mantissa * lengths, inflow.exponent)
    kept = passage.kept
    if not kept.size:
        return Runs(fresh)
    before = passage.back[kept]
    alive = lengths[kept] > 0
    kept, before = kept[alive], before[alive]
    if not kept.size:
        return Runs(fresh)
    sources = [part[None, before] for part in runs.fresh]
    if runs.grown is not None and runs.column is not None:
        there = runs.column[before]
        rows = int(np.flatnonzero(runs.grown.mantissa[:, there].any(axis=1)).max(initial=-1)) + 1
        sources = [
            np.concatenate([one, more[:rows, there]]) for one, more in zip(sources, runs.grown, strict=True)
        ]
    length = np.arange(1, len(sources[0]) + 1)[:, None]
    hold = rate.decay(np.zeros(1, dtype=np.int64), -gap)
    grown = wide(
        sources[0] * ((lengths[kept] + length) / (length + 1)) * hold.mantissa,
        sources[1] + hold.exponent,
    )
    nothing = np.zeros((len(length), 1))
    column = np.full(len(fresh.mantissa), -1)
    column[kept] = np.arange(len(kept))
    padded = Wide(
        np.concatenate([grown.mantissa, nothing], axis=1),
        np.concatenate([grown.exponent, wide(nothing, 0).exponent], axis=1),
    )
    return Runs(fresh, padded, column)


def _multiset(number: int, length: int, bits: Bits) -> list[int]:
    """A uniform multiset of 0..number-1, sorted."""
    if length == 1:
        return [bits.below(number)]
    # Subsets of number + length - 1 integers are multisets once the k-th smallest is lowered by k;
    # the subset is uniform by Floyd's algorithm.
    chosen: set[int] = set()
    for most in range(number - 1, number + length - 1):
        drawn = bits.below(most + 1)
        chosen.add(most if drawn in chosen else drawn)
    return [value - place for place, value in enumerate(sorted(chosen))]


def _checked_gaps(gaps: Sequence[Fraction], size: int) -> list[Fraction]:
    exact = [Fraction(gap) for gap in gaps]
    if len(exact) < 2 or min(exact) < 0 or sum(exact) != size:
        raise InvalidParameter("gaps must be two or more non-negative numbers that add up to the records")
    return exact


def _checked_rate(c: Fraction) -> Fraction:
    if not 0 < c <= _MOST_RATE:
        raise InvalidParameter(f"c must be positive and at most {_MOST_RATE}, got c={shown(c)}")
    return Fraction(c)
