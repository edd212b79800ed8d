"""Private quantiles of many data sets at once: the laws of the product, row by row, in NumPy."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.data.admission import admit
from sfumato.grid import Floats, Grid, Ints
from sfumato.laws import Bits
from sfumato.laws.graded_rows import GradedRows
from sfumato.laws.grades import Grades, grades
from sfumato.quantile_methods.independent import Independent, NodesLaw
from sfumato.quantile_methods.node import Node
from sfumato.quantile_methods.query import Quantiles
from sfumato.quantile_methods.single import Single

# How many runs, or values, are worked on at once: a few arrays of them fit in a core's cache.
BLOCK = 2**18


@dataclass(frozen=True, eq=False)
class Weighing:
    """What all data sets of a size share for one order: the target rank, and the weights around it."""

    # In parts of a rank, and the records that are surely at or under it.
    target: int
    under: int
    grades: Grades

    @classmethod
    def of(cls, node: Node) -> "Weighing":
        """What the law of a node follows from, but for the data."""
        graded = grades(node.c, node.parts, node.ranks.points)
        return cls(int(node.target.low * graded.parts), math.floor(node.target.low), graded)

    def levels(self, first: int, behind: int) -> Ints:
        """The levels of the runs of `QuantileRows`, as (1, runs)."""
        gaps = np.abs(np.arange(first, behind) * self.grades.parts - self.target)
        levels = np.concatenate([[self.grades.last], gaps, [self.grades.last, 0]])
        return np.asarray(np.minimum(levels, self.grades.last)[None], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class QuantileRows:
    """The laws of the methods single and independent on every row of an array.

    Guarantee:
        Row by row the integer law of `query.law(query.look(column))`, and exact draws from it.
        Proof: docs/proofs/many-rows.md.

    >>> from sfumato.laws import SeededBits
    >>> from sfumato.privacy import PureDP
    >>> median = Quantiles(
    ...     probs=(0.5,),
    ...     method="single",
    ...     budget=PureDP(1),
    ...     bounds=(0, 1),
    ...     neighbours="substitution",
    ...     verify=0,
    ... )
    >>> laws = QuantileRows.of(median, np.linspace(0, 1, 4000).reshape(4, 1000))
    >>> laws.sample(SeededBits(1), 2).shape, laws.exact("rank").round(3).tolist()
    ((4, 2, 1), [1.919, 1.919, 1.919, 1.919])
    """

    # The query with its public facts, and the data sets as they were given.
    query: Quantiles
    rows: NDArray[Any]
    orders: tuple[Weighing, ...]
    # Of every row the points of the ranks first..behind, outside of which all weights are equal; rank 0 and
    # that after the last are the ends of the line.
    first: int
    behind: int
    edges: NDArray[np.uint32]
    # Of every row the value of rank ceil(p n) for each order.
    truth: Floats

    @classmethod
    def of(cls, query: Any, rows: Any) -> "QuantileRows | None":
        """The laws, or None where the query or the rows are not of the kind that is known here."""
        plain = isinstance(rows, np.ndarray) and not isinstance(rows, np.ma.MaskedArray)
        if not plain or rows.ndim != 2 or not rows.size or rows.dtype.kind not in "iuf":
            return None
        if not isinstance(query, Quantiles) or query.bounds is None or query.interval_share:
            return None
        size = rows.shape[1]
        if query.rows_are_public and query.rows is None:
            query = replace(query, rows=size)
        if query.rows not in (None, size) or query.sized:
            return None
        method = query.chosen
        if type(method) not in (Single, Independent) or getattr(method, "flip", False):
            return None
        law = query.law(query.look(admit(rows[0], query.column)))
        if not isinstance(law, NodesLaw) or any(node.wide_cells for node in law.nodes):
            return None
        windows = [node.window() for node in law.nodes]
        first, behind = min(low for low, _ in windows), max(high for _, high in windows) + 1
        edges = np.empty((len(rows), behind - first + 1), dtype=np.uint32)
        places = [max(math.ceil(order * size), 1) - 1 for order in query.orders]
        truth = np.empty((len(rows), len(places)))
        for block in _blocks(len(rows), size):
            # Sorting a row costs less than finding both ends of a window in it; cells keep the order.
            ordered = np.sort(_floats(rows[block]), axis=1)
            if np.isnan(ordered[:, -1]).any():  # nulls have rules of their own
                return None
            truth[block] = ordered[:, places]
            edges[block] = _edges(ordered, query.facts.grid, first, behind)
        orders = tuple(Weighing.of(node) for node in law.nodes)
        return cls(query, rows, orders, first, behind, edges, truth)

    @property
    def grid(self) -> Grid:
        """The points that are answered."""
        return self.query.facts.grid

    def laws(self, order: int, block: slice, like: GradedRows | None = None) -> GradedRows:
        """The laws of runs for the order with this place, on some of the rows.

        All orders have the same runs: what is left of the first edge, what is from an edge to the next, what
        is right of the last, and a single point, the edge after the target. Of a gap under the target the
        left edge is part, of one above it the right edge. `like` is a law on the same rows.
        """
        weighing = self.orders[order]
        levels = weighing.levels(self.first, self.behind)
        if like is not None:
            return like.regraded(levels, weighing.grades)
        edges = self.edges[block].astype(np.int64)
        lengths = np.empty((len(edges), levels.shape[1]), dtype=np.int64)
        lengths[:, 0] = edges[:, 0]
        np.subtract(edges[:, 1:], edges[:, :-1], out=lengths[:, 1:-2])
        lengths[:, -2] = self.grid.cells - 1 - edges[:, -1]
        lengths[:, -1] = 1
        return GradedRows(lengths, levels, weighing.grades)

    def begins(self, order: int, block: slice, runs: Ints) -> Ints:
        """The first points of runs, (rows, any number)."""
        after = self.orders[order].under + 1 - self.first
        # The edge left of each run, and whether the run begins behind it.
        places = np.append(np.arange(-1, self.behind - self.first + 1), after)
        lifts = places >= after
        lifts[-1] = False
        edges = np.take_along_axis(self.edges[block], np.maximum(places, 0)[runs], axis=1)
        return np.where(runs > 0, edges.astype(np.int64) + lifts[runs], 0)

    def points(self, bits: Bits, size: int) -> Ints:
        """Raw outcomes, (rows, size, orders): points of the grid as drawn, for the orders in order."""
        found = np.empty((len(self.rows), size, len(self.orders)), dtype=np.int64)
        for block in self._blocks(size):
            laws = None
            for order in range(len(self.orders)):
                laws = self.laws(order, block, laws)
                runs, places = laws.draw(bits, size)
                found[block, :, order] = self.begins(order, block, runs) + places
        return found

    def sample(self, bits: Bits, size: int) -> Floats:
        """Values, (rows, size, orders): for the distinct orders, increasing, and sorted in every draw."""
        return _values(self.grid, np.sort(self.points(bits, size), axis=2))

    def exact(self, risk: str, center: Floats | None = None) -> Floats | None:
        """The expected loss on each row, of one order; None where no closed form is known.

        `center` is what an error is counted from, a number for each row; unless given, the value of rank
        ceil(p n). The loss "rank" takes values as clamped, and equal ones as ties.
        """
        if len(self.orders) != 1 or risk not in (*_POWERS, "rank"):
            return None
        found = np.empty(len(self.rows))
        centers = self.truth[:, 0] if center is None else np.asarray(center, dtype=np.float64)
        if risk != "rank" and not np.isfinite(centers).all():
            return None
        lower, step = float(self.grid.lower), float(self.grid.step)
        for block in self._blocks():
            laws = self.laws(0, block)
            if risk == "rank":
                found[block] = self._ranks(laws, block)
                continue
            # Distances of the first point of each run from the center, in steps.
            runs = np.broadcast_to(np.arange(laws.lengths.shape[1]), laws.lengths.shape)
            away = self.begins(0, block, runs) - ((centers[block] - lower) / step)[:, None]
            power, mean_of = _POWERS[risk]
            found[block] = (laws.shares * mean_of(laws.lengths, away)).sum(axis=1) * step**power
        return found

    def exact_variance(self, risk: str, center: Floats | None = None) -> Floats | None:
        """The variance of the loss on each row, of one order; None where no closed form is known."""
        mean = self.exact(risk, center)
        square = self.exact({"squared": "fourth"}.get(risk, "squared"), center)
        if risk == "rank" or mean is None or square is None:
            return None
        return np.maximum(square - mean**2, 0.0)

    def _ranks(self, laws: GradedRows, block: slice) -> Floats:
        """The mean distance in ranks: by runs between the edges, and summed over the records outside."""
        shares, size, last = laws.shares, self.rows.shape[1], self.grid.cells - 1
        target, under = float(self.query.orders[0] * size), self.orders[0].under
        known = _Ordered.of(_floats(self.rows[block]), self.grid)
        away = np.maximum(np.maximum(known.below - target, target - known.upto), 0.0)
        # Not by levels, which have a floor.
        ranks = np.arange(self.first, self.behind)
        found = shares[:, 1:-2] @ np.abs(ranks - target)
        # A run under the target begins at the point of a record, which has ranks of its own.
        begin = max(self.first, 1)
        runs = slice(begin - self.first + 1, under - self.first + 2)
        lifts = away[:, begin - 1 : under] - np.abs(np.arange(begin, under + 1) - target)
        found += (shares[:, runs] / np.maximum(laws.lengths[:, runs], 1) * lifts).sum(axis=1)
        found += shares[:, -1] * away[:, under]
        if self.first == 0 and self.behind == size + 1:
            return np.asarray(found)
        # The sums over points of the records at or under them, and of those under them.
        outside = laws.lengths[:, [0, -2]]
        before, after = outside[:, :1], outside[:, 1:]
        left = before[:, 0] * target - np.maximum(before - known.cells, 0).sum(axis=1)
        left += ((known.cells < before) & ~known.on_points).sum(axis=1)
        right = np.minimum(last - known.cells, after).sum(axis=1) - after[:, 0] * target
        sides = np.stack([left, right], axis=1) / np.maximum(outside, 1)
        return np.asarray(found + (sides * shares[:, [0, -2]]).sum(axis=1))

    def _blocks(self, size: int = 0) -> Iterator[slice]:
        return _blocks(len(self.rows), self.edges.shape[1] + size)


@dataclass(frozen=True, eq=False)
class _Ordered:
    """The cells of sorted rows, and the ranks that the point of each record's cell has."""

    cells: Floats
    # Whether a record is the point of its cell.
    on_points: NDArray[np.bool_]
    below: Ints
    upto: Ints

    @classmethod
    def of(cls, rows: Floats, grid: Grid) -> "_Ordered":
        values = np.sort(as_seen(rows, grid), axis=1)
        cells = _cells(values, grid)
        on_points = values == _values(grid, cells.astype(np.int64))
        places = np.broadcast_to(np.arange(values.shape[1]), values.shape)
        changes = cells[:, 1:] != cells[:, :-1]
        edge = np.ones((len(values), 1), dtype=np.bool_)
        begins, ends = np.hstack([edge, changes]), np.hstack([changes, edge])
        below = np.maximum.accumulate(np.where(begins, places, 0), axis=1)
        last = np.minimum.accumulate(np.where(ends, places, values.shape[1])[:, ::-1], axis=1)[:, ::-1]
        # Records that are the point come first in its cell.
        equal = np.maximum.accumulate(np.where(on_points, places + 1, 0), axis=1)
        upto = np.maximum(np.take_along_axis(equal, last, axis=1), below)
        return cls(cells, on_points, below, upto)


def as_seen(rows: Floats, grid: Grid) -> Floats:
    """Values as a grid takes them: clamped, and those within rounding below a point moved to it."""
    clamped = np.clip(rows, float(grid.lower), float(grid.upper))
    return np.asarray(np.maximum(clamped, _values(grid, _cells(clamped, grid).astype(np.int64))))


def _blocks(rows: int, width: int) -> Iterator[slice]:
    each = max(BLOCK // width, 1)
    return (slice(start, start + each) for start in range(0, rows, each))


def _floats(rows: NDArray[Any]) -> Floats:
    """What a column of these values is read as."""
    with np.errstate(all="ignore"):
        return rows.astype(np.float64, copy=False)


def _cells(values: Floats, grid: Grid) -> Floats:
    """The cells of values, as whole floats."""
    located = np.empty(values.shape)
    grid.locate(values, located)
    return np.floor(located, out=located)


def _edges(ordered: Floats, grid: Grid, first: int, behind: int) -> NDArray[np.uint32]:
    """The points of the ranks first..behind of sorted rows, with the ends of the line around them."""
    size = ordered.shape[1]
    edges = np.empty((len(ordered), behind - first + 1), dtype=np.uint32)
    edges[:, 0] = 0
    edges[:, -1] = grid.cells - 1
    begin, stop = max(first, 1), min(behind, size)
    edges[:, begin - first : stop - first + 1] = _cells(ordered[:, begin - 1 : stop], grid)
    return edges


def _values(grid: Grid, points: Ints) -> Floats:
    """The values of points, each the float next to the exact one."""
    parts = math.lcm(grid.lower.denominator, grid.step.denominator)
    start, step = int(grid.lower * parts), int(grid.step * parts)
    twos = parts & -parts
    odd = parts // twos
    if max(abs(start), abs(start + grid.cells * step), odd) <= 2**53 and twos <= 2**500:
        # Numerator and denominator are exact floats, so that the quotient is rounded once.
        return np.asarray((start + step * points) / odd / twos)
    distinct, places = np.unique(points, return_inverse=True)
    known = np.array([float(grid.value(point)) for point in distinct.tolist()])
    return np.asarray(known[places].reshape(points.shape))


def _squared(lengths: Ints, away: Floats) -> Floats:
    """The mean square of away, away + 1, ... up to the length of each run."""
    middles = away + (lengths - 1) / 2
    return np.asarray(middles**2 + (lengths.astype(np.float64) ** 2 - 1) / 12)


def _fourth(lengths: Ints, away: Floats) -> Floats:
    """The mean fourth power of away, away + 1, ... up to the length of each run."""
    middles, squares = away + (lengths - 1) / 2, lengths.astype(np.float64) ** 2
    around = (squares - 1) * (3 * squares - 7) / 240
    return np.asarray(middles**4 + middles**2 * (squares - 1) / 2 + around)


def _absolute(lengths: Ints, away: Floats) -> Floats:
    """The mean size of away, away + 1, ... up to the length of each run."""
    under = np.clip(np.floor(-away) + 1, 0, lengths)
    over = lengths - under
    sums = over * (away + under + (over - 1) / 2) - under * (away + (under - 1) / 2)
    return np.asarray(sums / np.maximum(lengths, 1))


# The power of a step that each loss has, and its mean over a run.
_POWERS: dict[str, tuple[int, Callable[[Ints, Floats], Floats]]] = {
    "squared": (2, _squared),
    "absolute": (1, _absolute),
    "sup": (1, _absolute),
    "fourth": (4, _fourth),
}
