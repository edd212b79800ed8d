"""Laws of ordered points on lines too long to list: the worst tuple is found without trying all."""

import itertools
import math
from functools import cache
from typing import Any

import numpy as np

from sfumato.audit.divergence import Known
from sfumato.audit.listed import Pair, Ratios
from sfumato.errors import NotSupported
from sfumato.grid import Floats, Ints
from sfumato.laws.chain import Chain
from sfumato.quantile_methods.joint import JointLaw
from sfumato.quantile_methods.node import Node, Target
from sfumato.quantile_methods.recursive import RecursiveLaw

# Cells of two merged chains: the search for the worst tuple looks at all pairs of them, order by order.
MOST_MERGED = 6_000
_ROWS = 1 << 21
# Runs between records at which a recursion is looked at.
_RUNS = 7
# Passes over all points of a tuple.
_ROUNDS = 4
# Tuples of points that are looked at one by one, before the worst are improved.
_TUPLES = 230


def chain_part(left: JointLaw, right: JointLaw) -> Known:
    """Two joint draws: the exact suprema of the log ratio, by dynamic programming over merged cells.

    All points between two neighbouring records of either data set have the same ranks, hence the same
    weights. The log ratio is a sum over consecutive points, and its largest value over ordered tuples is
    found order by order.
    """
    merged = _Merged(left.chain, right.chain, left.points)
    tuples = [merged.worst(1.0), merged.worst(-1.0)]
    return _known(left, right, tuples, exact=True)


class _Merged:
    """The cells of two chains, with the ranks that each chain gives them."""

    def __init__(self, left: Chain, right: Chain, points: int) -> None:
        self._orders = left.orders
        (one, gaps, c), (other, wanted, rate) = left.misfits(), right.misfits()
        # The last point of each cell stands for it.
        self.points: Ints = np.unique(np.concatenate([one, other, [points - 1]]))
        if len(self.points) > MOST_MERGED:
            raise NotSupported(f"an audit of a joint draw takes up to {MOST_MERGED:,} different values")
        self._rates = float(c), float(rate)
        self._gaps = [(float(a), float(b)) for a, b in zip(gaps, wanted, strict=True)]
        self._ranks = [np.searchsorted(records, self.points).astype(np.float64) for records in (one, other)]
        self._sizes = float(len(one)), float(len(other))

    def _step(self, number: int, before: Any, after: Any, sign: float) -> Floats:
        """The log ratio of one gap, between ranks before and ranks after, in both chains."""
        found = 0.0
        for rate, gap, a, b, s in zip(
            self._rates, self._gaps[number], before, after, (-sign, sign), strict=True
        ):
            found = found + s * rate * np.abs(b - a - gap)
        return np.asarray(found)

    def worst(self, sign: float) -> tuple[int, ...]:
        """An ordered tuple with the largest log ratio, or with the smallest if the sign is -1."""
        count = len(self.points)
        values = self._step(0, (0.0, 0.0), self._ranks, sign)
        back: list[Ints] = []
        for number in range(1, self._orders):
            best, source = np.full(count, -np.inf), np.zeros(count, dtype=np.int64)
            rows = max(_ROWS // count, 1)
            for begin in range(0, count, rows):
                end = min(begin + rows, count)
                # Sources up to the target itself: several points may share a cell.
                after = [ranks[begin:end, None] for ranks in self._ranks]
                table = values[:end] + self._step(number, [ranks[:end] for ranks in self._ranks], after, sign)
                table[np.arange(end) > np.arange(begin, end)[:, None]] = -np.inf
                source[begin:end] = table.argmax(axis=1)
                best[begin:end] = table.max(axis=1)
            values = best
            back.append(source)
        values = values + self._step(self._orders, self._ranks, self._sizes, sign)
        cells = [int(values.argmax())]
        for source in reversed(back):
            cells.append(int(source[cells[-1]]))
        return tuple(int(self.points[cell]) for cell in reversed(cells))


def recursive_part(left: RecursiveLaw, right: RecursiveLaw) -> Known:
    """Two recursions: a log ratio that is attained, at ends and middles of runs between records."""
    found = _Recursion(left, right)
    orders, points = len(left.tree), found.coarse
    if math.comb(len(points) + orders - 1, orders) <= _TUPLES:
        starts = found.listed(list(itertools.combinations_with_replacement(points, orders)))
    else:
        starts = [found.worst(1.0), found.worst(-1.0)]
    tuples = [found.climbed(sign, start) for sign, start in zip((1.0, -1.0), starts, strict=True)]
    return _known(left, right, tuples, exact=False)


class _Recursion:
    """The worst points of two recursions, each node's given the points above it."""

    def __init__(self, left: RecursiveLaw, right: RecursiveLaw) -> None:
        self._laws = left, right
        self._places, self.coarse = _places(left, right)
        self._losses = cache(self._losses_of)

    def _losses_of(self, begin: int, end: int, first: int, last: int) -> list[tuple[int, float]]:
        """The points between two released ones, and the log ratio of the middle order at each."""
        nodes = [self._node(law, (begin + end) // 2, begin, end, first, last) for law in self._laws]
        points = [point for point in self._places if first <= point <= last]
        return [(point, nodes[0].logpmf(point) - nodes[1].logpmf(point)) for point in points]

    def worst(self, sign: float) -> tuple[int, ...]:
        """The points with the largest log ratio, or with the smallest if the sign is -1."""

        @cache
        def best(begin: int, end: int, first: int, last: int) -> tuple[float, tuple[int, ...]]:
            if begin == end:
                return 0.0, ()
            middle = (begin + end) // 2
            found: tuple[float, tuple[int, ...]] = (-math.inf, ())
            for point, loss in self._losses(begin, end, first, last):
                below, above = best(begin, middle, first, point), best(middle + 1, end, point, last)
                total = sign * loss + below[0] + above[0]
                if total > found[0]:
                    found = total, (*below[1], point, *above[1])
            return found

        laws = self._laws
        return best(0, len(laws[0].tree), 0, laws[0].ranks.points - 1)[1]

    def listed(self, tuples: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """The tuples with the largest and with the smallest log ratio."""
        losses = [self._loss(1.0, points) for points in tuples]
        return [tuples[int(np.argmax(losses))], tuples[int(np.argmin(losses))]]

    def climbed(self, sign: float, points: tuple[int, ...]) -> tuple[int, ...]:
        """Points as bad or worse, one changed after the other: here the laws themselves are asked."""
        best, now = self._loss(sign, points), points
        for _ in range(_ROUNDS):
            before = now
            for index in range(len(points)):
                low = now[index - 1] if index else 0
                high = now[index + 1] if index + 1 < len(now) else self._places[-1]
                for place in (each for each in self._places if low <= each <= high and each != now[index]):
                    tried = (*now[:index], place, *now[index + 1 :])
                    loss = self._loss(sign, tried)
                    if loss > best:
                        best, now = loss, tried
            if now == before:
                break
        return now

    def _loss(self, sign: float, points: tuple[int, ...]) -> float:
        one, other = (law.logpmf(points) for law in self._laws)
        return sign * (one - other) if one != other else 0.0

    @staticmethod
    def _node(law: RecursiveLaw, middle: int, begin: int, end: int, first: int, last: int) -> Node:
        """The node of an order between two released points: its records are those of the law itself."""
        ranks = law.ranks
        # Records at a released point go to its left side.
        after = ranks.upto(first) if begin > 0 else 0
        upto = ranks.upto(last) if end < len(law.tree) else ranks.size
        upto = max(upto, after)
        relative = law.tree[middle].relative
        target = Target(relative * (upto - after), relative * (upto - after))
        return Node(ranks, first, last, after, upto, target, law.constants[middle], relative.denominator)


def _places(left: RecursiveLaw, right: RecursiveLaw) -> tuple[list[int], list[int]]:
    """Ends and middles of the longest runs between records, and where records differ; and fewer."""
    last = left.ranks.points - 1
    known = [np.unique(law.ranks.positions(1, law.ranks.size)) for law in (left, right)]
    ends = np.concatenate([[-1], np.union1d(*known), [last + 1]])
    widest = np.sort(np.argsort(-np.diff(ends), kind="stable")[:_RUNS])
    lower, upper = ends[widest], ends[widest + 1]
    different = np.setxor1d(known[0], known[1])[:_RUNS]
    middles = (lower + upper) // 2
    every = np.concatenate([lower, lower + 1, middles, upper, different, [0, last]])
    fewer = np.concatenate([middles, upper, different[:2]])
    found = [[int(place) for place in np.unique(some) if 0 <= place <= last] for some in (every, fewer)]
    return found[0], found[1]


def _known(left: Any, right: Any, tuples: list[tuple[int, ...]], *, exact: bool) -> Known:
    logs = [(left.logpmf(each), right.logpmf(each)) for each in tuples]
    losses = [one - other if one != other else 0.0 for one, other in logs]
    seen = Ratios(losses[0], -losses[1])
    single = sorted(set(zip(tuples, logs, strict=True)))
    cells = Pair(*(np.array([each[1][side] for each in single]) for side in (0, 1)))
    worst = tuples[0] if seen.up >= seen.down else tuples[1]
    return Known(seen, seen if exact else Ratios(math.inf, math.inf), worst, cells)
