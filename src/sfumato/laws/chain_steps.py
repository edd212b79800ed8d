"""The steps of a chain: the states of an order, and the weight that flows from them to those of the next."""

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.laws.bits import Integers
from sfumato.laws.wide import NOWHERE, SMALL, Rate, Scan, Wide, aligned, range_sums, wide

# So many states are kept with their powers, and with their passages.
_MOST_KEPT = 1 << 17
# What a state knows of the path of offsets: its value, or that it entered the interval of a block from the
# left, was somewhere inside, or entered from the right.
EXACT, FROM_LEFT, INSIDE, FROM_RIGHT = range(4)


class Kernels(NamedTuple):
    """Rows e^(c q), e^(-c p) of sources [p, q], and e^(-c a), e^(c b), e^(c b) of targets [a, b]."""

    source: Wide
    target: Wide


class Blocks:
    """The states of every order: blocks of consecutive ranks, with the interval of offsets of each.

    An offset is a rank less the target; here it is a rank less the floor of the target, and all orders share
    the blocks. A block of one rank is a piece: its weight is exact. Any other block has three states, which
    tell where the shortest path of offsets enters its interval: docs/proofs/chain.md. Blocks may reach beyond
    the records of an order; without points there they have no weight.

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
        self._passages: dict[tuple[object, ...], Passage] = {}
        # The only state before the first order, and after the last.
        self.point: Blocks = self if len(self) == 1 else Blocks(rate, np.array([0, 1]))

    def __len__(self) -> int:
        return len(self.block)

    def kernels(self, part: Fraction) -> Kernels:
        """The powers for targets with this fractional part."""
        found = self._kernels.get(part)
        if found is None:
            if (len(self._kernels) + 1) * len(self) > _MOST_KEPT:
                self._kernels.clear()
            found = self._kernels[part] = self._powers(part)
        return found

    def passage(self, parts: tuple[Fraction, Fraction], shift: int) -> "Passage":
        """The passage between orders with these parts and this difference of floors."""
        # From this shift on, no block of an order is also one of the next.
        apart = shift > self.edges[-2] - self.edges[1]
        return self._passage(self, self, parts, None if apart else shift)

    def first(self, part: Fraction) -> "Passage":
        """The passage to the first order."""
        return self._passage(self.point, self, (Fraction(0), part), None)

    def last(self, part: Fraction) -> "Passage":
        """The passage from the last order."""
        return self._passage(self, self.point, (part, Fraction(0)), None)

    def _passage(
        self, source: "Blocks", target: "Blocks", parts: tuple[Fraction, Fraction], shift: int | None
    ) -> "Passage":
        # Only how the parts compare with each other and with zero matters.
        before, after = parts
        key = len(source), len(target), shift, bool(before), bool(after), before < after, before == after
        found = self._passages.get(key)
        if found is None:
            if (len(self._passages) + 1) * len(self) > _MOST_KEPT:
                self._passages.clear()
            found = self._passages[key] = Passage(source, target, parts, shift)
        return found

    def _powers(self, part: Fraction) -> Kernels:
        power, whole = self._power, -self._whole
        if part:
            offset, shift = self.rate.offset(part)
            power, whole = power - offset * self._exact, whole + shift * self._exact
        falls = wide(np.exp2(-power), whole)
        rises = Wide(1 / falls.mantissa, -falls.exponent)
        # A target is measured from the ends of its block, a source from the ends of what is known of it.
        target = (np.stack([fall[0], rise[1], rise[1]]) for fall, rise in zip(falls, rises, strict=True))
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
        self, source: Blocks, target: Blocks, parts: tuple[Fraction, Fraction], shift: int | None
    ) -> None:
        self.source, self.target = source, target
        rung = {part: place for place, part in enumerate(sorted({Fraction(0), *parts}, reverse=True))}

        def codes(blocks: Blocks, whole: Integers, part: Fraction) -> Integers:
            # Offsets are whole numbers less one of three fractions; these integers are ordered as they are.
            return 4 * whole + np.where(blocks.coarse, rung[Fraction(0)], rung[part])

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
        self._plan(
            np.where(exact | (target.kind == FROM_LEFT), self.left, 0),
            np.where(exact | (target.kind == FROM_RIGHT), self.right, self.end),
        )
        level = np.where(exact | (target.kind == INSIDE), self.right, self.left)
        self._level = np.flatnonzero(level > self.left)
        self._level_first, self._level_last = self.left[self._level], level[self._level]
        self._level_alone = bool((target.kind[self._level] == INSIDE).all())
        self._level_single = bool((self._level_last - self._level_first <= 1).all())

    def _plan(self, far: Integers, near: Integers) -> None:
        """Ranges 0..far - 1 on the left and near..end - 1 on the right as running sums, in rows of reads."""
        source, count = self.source, len(self.source)
        if source.kind[0] == FROM_LEFT:
            # No path enters the first block from its left, nor the last one from its right.
            far = np.where(far == 1, 0, far)
            near = np.where(near == count - 1, self.end, near)
        begins, ends = [np.zeros_like(far), near], [far, self.end]
        # Places past `count` are on the right.
        stretches, reads = [np.arange(count)], [(0, np.flatnonzero(far > 0), far)]
        asked = np.flatnonzero(near < self.end)
        if (self.end[asked] == count).all():
            stretches.append(np.arange(2 * count - 1, count - 1, -1))
            reads.append((1, asked, count - near))
        else:
            # Other ranges are two running sums, to the left and to the right of an anchor.
            anchors = near.copy()
            for place, which in _anchored(near[asked], self.end[asked]):
                mine = asked[which]
                anchors[mine] = place
                for row, stretch, length in (
                    (1, np.arange(place - 1, near[mine[0]] - 1, -1), place - near),
                    (2, np.arange(place, self.end[mine[-1]]), self.end - place),
                ):
                    if stretch.size:
                        stretches.append(stretch + count)
                        reads.append((row, mine[length[mine] > 0], length))
            begins, ends = [*begins, anchors], [far, anchors, self.end]
        logs = np.concatenate([source.most, -source.least]) * source.rate.binary
        self._scan = Scan(stretches, logs, 2 * count)
        self._begins, self._ends = np.stack(begins), np.stack(ends)
        self._read = np.full(self._begins.shape, self._scan.columns - 1)
        for (row, states, length), places in zip(reads, self._scan.places, strict=True):
            self._read[row, states] = places[length[states] - 1]
        self._column = self._read % self._scan.columns
        self._wanted = int(np.count_nonzero(self._ends > self._begins))

    def push(self, mass: Wide, before: Kernels, after: Kernels) -> Wide:
        """The weight that flows into each state of the target."""
        found = self._sums(mass, before.source)
        rows = len(found.mantissa)
        parts = Wide(
            found.mantissa * after.target.mantissa[:rows], found.exponent + after.target.exponent[:rows]
        )
        top = parts.exponent.max(axis=0)
        flow = Wide(aligned(parts, top).sum(axis=0), top)
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
        """The sums over the sources to the left, and over those to the right in one or two parts."""
        count = len(self.source)
        mantissa, exponent = np.zeros(2 * count + 1), np.full(2 * count + 1, NOWHERE)
        np.multiply(mass.mantissa, kernel.mantissa, out=mantissa[:-1].reshape(2, count))
        np.add(mass.exponent, kernel.exponent, out=exponent[:-1].reshape(2, count))
        if self._scan.bounded:
            sums, tops = self._scan.sums(mantissa, exponent)
            found = Wide(sums.take(self._read), tops.take(self._column))
        else:
            found = Wide(np.zeros(self._read.shape), np.full(self._read.shape, NOWHERE))
        settled = found.mantissa > SMALL
        if int(np.count_nonzero(settled)) != self._wanted:
            # These sums may have lost terms beside much larger ones, unless no source has any weight.
            present = np.concatenate([[0], np.cumsum(mass.mantissa > 0)])
            lost = ~settled & (present[self._ends] > present[self._begins])
            for row in np.flatnonzero(lost.any(axis=1)).tolist():
                terms = slice(0, count) if row == 0 else slice(count, 2 * count)
                again = np.flatnonzero(lost[row])
                found.mantissa[row, again], found.exponent[row, again] = range_sums(
                    Wide(mantissa[terms], exponent[terms]), self._begins[row, again], self._ends[row, again]
                )
        found.exponent[found.mantissa == 0] = NOWHERE
        return found

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


def _anchored(first: Integers, last: Integers) -> Iterator[tuple[int, slice]]:
    """Places, and which ranges hold each or end there; the ends of the ranges must not decrease."""
    begin = 0
    while begin < len(first):
        end = int(np.searchsorted(first, last[begin], side="right"))
        yield int(last[begin]), slice(begin, end)
        begin = end
