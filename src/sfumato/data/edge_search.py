"""The place of every row's number among public edges, by expressions and joins that any lazy engine has."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from sfumato.checks import one_of
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.grid import MAX_EDGES, Floats, Ints

if TYPE_CHECKING:
    import narwhals as nw

Side = Literal["left", "right"]
Columns = dict[str, np.ndarray[Any, Any]]
TableOf = Callable[[Columns], "nw.LazyFrame[Any]"]

# Up to so many edges a comparison with each is faster than a join.
FEW_EDGES = 16
# At most so many edges are in a row of a table; a bucket with more is divided by further tables.
SLOTS = 8
# Buckets are at most so many, and at most eight for an edge.
MAX_BUCKETS = 2**20
# How many square roots a scale may have: none for even edges, ten for edges of all sizes of float64.
ROOTS = (2, 4, 6, 8, 10)
# A scale is chosen by about so many edges.
SAMPLE = 2**12


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A monotone bucket of a number: nested square roots of its distance from a center, cut evenly."""

    center: float
    per_unit: float
    roots: int
    first: float
    per_bucket: float
    buckets: int

    @classmethod
    def over(cls, edges: Floats, *, center: float, per_unit: float, roots: int, buckets: int) -> Self | None:
        """The scale whose buckets divide the edges' range, or None where float64 does not hold it."""
        raw = cls(center=center, per_unit=per_unit, roots=roots, first=0.0, per_bucket=1.0, buckets=1)
        first, last = raw.heights(edges[[0, -1]]).tolist()
        with np.errstate(all="ignore"):
            per_bucket = float(np.float64(buckets) / np.float64(last - first))
        if not (np.isfinite([first, last, last - first, per_bucket]).all() and per_bucket > 0):
            return None
        return cls(
            center=center,
            per_unit=per_unit,
            roots=roots,
            first=first,
            per_bucket=per_bucket,
            buckets=buckets,
        )

    def heights(self, values: Floats) -> Floats:
        """The nested roots of the distances, with their signs: the operations of `place`, in its order."""
        with np.errstate(over="ignore"):
            distances = np.abs(values - self.center) * self.per_unit
            if not self.roots:
                return np.where(values < self.center, -distances, distances)
            distances += 1.0
            for _ in range(self.roots):
                np.sqrt(distances, out=distances)
            return np.where(values < self.center, 1.0 - distances, distances - 1.0)

    def of(self, values: Floats) -> Ints:
        """The bucket of every value."""
        with np.errstate(over="ignore"):
            scaled = (self.heights(values) - self.first) * self.per_bucket
        return np.floor(np.clip(scaled, 0.0, self.buckets - 1.0)).astype(np.int64)

    def place(self, frame: "nw.LazyFrame[Any]", number: str, bucket: str) -> "nw.LazyFrame[Any]":
        """The frame with the bucket of column `number`; a step is a column, as engines repeat nested ones."""
        import narwhals as nw

        work = nw.col(bucket)
        below = nw.col(number) < self.center
        steps = [(nw.col(number) - self.center).abs() * self.per_unit]
        if self.roots:
            steps += [work + 1.0, *[work.sqrt()] * self.roots]
            steps += [nw.when(below).then(1.0 - work).otherwise(work - 1.0)]
        else:
            steps += [nw.when(below).then(-work).otherwise(work)]
        steps += [((work - self.first) * self.per_bucket).clip(0.0, self.buckets - 1.0)]
        steps += [work.floor().cast(nw.Int64)]
        for step in steps:
            frame = frame.with_columns(step.alias(bucket))
        return frame


@dataclass(frozen=True, kw_only=True, eq=False)
class Level:
    """A table by bucket, or by what the table before it gave: a number, and edges counted on top of it."""

    base: Ints
    edges: Floats

    @property
    def columns(self) -> Columns:
        """Its columns but for the key: `base`, and `edge0`, `edge1`, ..."""
        return {"base": self.base} | {f"edge{i}": column for i, column in enumerate(self.edges)}


@dataclass(frozen=True, kw_only=True, eq=False)
class EdgeSearch:
    """A public plan that finds the place of numbers among edges, as `np.searchsorted` does, in any engine.

    Guarantee:
        Follows from the edges alone, and gives exactly the places of `np.searchsorted`, for every float64:
        infinities, zeros of both signs and subnormal numbers too. Proof: docs/proofs/counting.md.

    >>> search = EdgeSearch.of([0.0, 18.0, 65.0, 120.0], side="right")
    >>> search.np_places(np.array([17.9, 18.0, 500.0])).tolist()
    [1, 2, 4]
    """

    edges: Floats
    side: Side
    scale: Scale | None
    levels: tuple[Level, ...]

    @classmethod
    def of(cls, edges: Sequence[float] | Floats, side: Side) -> Self:
        """The plan for edges in increasing order: comparisons where they are few, tables where they are many.

        Raises:
            InvalidParameter: edges that do not increase, or are not finite.
            NotSupported: more than 2**20 + 1 edges.
        """
        one_of("side", side, ("left", "right"))
        points = np.array(edges, dtype=np.float64)
        if not 1 <= len(points) <= MAX_EDGES + 1:
            raise NotSupported(f"edges must be 1 to {MAX_EDGES + 1} in a lazy table, got {len(points)}")
        if not np.isfinite(points).all() or (points[1:] < points[:-1]).any():
            raise InvalidParameter("edges must be finite and in increasing order")
        points.flags.writeable = False
        if len(points) <= FEW_EDGES:
            return cls(edges=points, side=side, scale=None, levels=())
        scale = _best_scale(points)
        return cls(edges=points, side=side, scale=scale, levels=_levels(points, scale))

    def np_places(self, values: Floats) -> Ints:
        """The places by the operations that engines do, in NumPy; values must not be NaN."""
        numbers = self._seen(np.asarray(values, dtype=np.float64))
        places: Ints = np.zeros(len(numbers), np.int64)
        for edge in () if self.levels else self.edges:
            places += self._passed(numbers, edge)
        if self.levels and self.scale:
            places = self.scale.of(numbers)
        for level in self.levels:
            rows, places = places, level.base[places]
            for column in level.edges:
                places += self._passed(numbers, column[rows])
        return places

    def _seen(self, numbers: Floats) -> Floats:
        # Absent edges are +inf, which an infinite number would reach.
        return np.minimum(numbers, self.edges[-1]) if self.side == "right" else numbers

    def _passed(self, numbers: Floats, edge: Any) -> Ints:
        passed: Ints = np.asarray(numbers >= edge if self.side == "right" else numbers > edge, np.int64)
        return passed

    def apply(
        self, frame: "nw.LazyFrame[Any]", number: "nw.Expr", name: str, table_of: TableOf
    ) -> "nw.LazyFrame[Any]":
        """The frame with column `name`: the place of `number` in each row, null where it is null or NaN.

        Args:
            frame: any lazy table; its columns stay.
            number: an expression on it; read as float64.
            name: of the new column, which must not be there.
            table_of: makes a table of few rows in the engine of `frame`.
        """
        import narwhals as nw

        taken = frame.collect_schema().names()
        if name.casefold() in {column.casefold() for column in taken}:
            raise InvalidParameter(f"name must be that of a new column, got name={name!r}")
        value, row, *fields = free_names([*taken, name], 3 + SLOTS)
        frame = frame.with_columns(number.cast(nw.Float64).alias(value))
        frame = frame.with_columns(nw.when(~nw.col(value).is_nan()).then(nw.col(value)).alias(value))
        seen = nw.col(value)
        if not self.levels:
            place = self._count(seen, self.edges.tolist())
            return frame.with_columns(place.alias(name)).drop(value)
        if self.side == "right":
            last = float(self.edges[-1])
            frame = frame.with_columns(nw.when(seen > last).then(last).otherwise(seen).alias(value))
        if self.scale:
            frame = self.scale.place(frame, value, row)
        else:
            frame = frame.with_columns(nw.when(~seen.is_null()).then(0).cast(nw.Int64).alias(row))
        for level in self.levels:
            named = dict(zip(fields, level.columns.values(), strict=False))
            key = np.arange(len(level.base))
            frame = frame.join(table_of({row: key} | named), on=row, how="left")
            base, *edges = named
            place = nw.col(base) + self._count(seen, [nw.col(edge) for edge in edges])
            frame = frame.with_columns(place.alias(row)).drop(*named)
        return frame.with_columns(nw.col(row).alias(name)).drop(value, row)

    def _count(self, number: "nw.Expr", edges: Sequence[Any]) -> "nw.Expr":
        import narwhals as nw

        count = nw.lit(0).cast(nw.Int64)
        for edge in edges:
            count = count + (number >= edge if self.side == "right" else number > edge).cast(nw.Int64)
        return count


def free_names(taken: Sequence[str], count: int) -> list[str]:
    """Names for temporary columns that no column has, also where an engine ignores case."""
    used = {name.casefold() for name in taken}
    stem = "place"
    while any(name.startswith(stem) for name in used):
        stem += "_"
    return [f"{stem}_{i}" for i in range(count)]


def _best_scale(edges: Floats) -> Scale | None:
    """The scale that needs the fewest columns of edges; None where float64 has none."""
    count = len(edges)
    # Buckets narrower than the way over two gaps hold at most two edges; the sample has the narrowest ways.
    starts = np.linspace(0, count - 3, SAMPLE).astype(np.int64)
    with np.errstate(over="ignore"):
        narrowest = np.argsort(edges[2:] - edges[:-2], kind="stable")[:64]
    starts = np.union1d(starts, narrowest)
    best: tuple[float, Scale | None] = (np.inf, None)
    for center, per_unit, roots in _candidates(edges):
        scale = Scale.over(edges, center=center, per_unit=per_unit, roots=roots, buckets=1)
        if scale is None:
            continue
        ways = (scale.heights(edges[starts + 2]) - scale.heights(edges[starts])) * scale.per_bucket
        buckets = _at_most(8 * count, 1.0 / max(float(ways.min()), 2.0**-60))
        crowded = np.mean(ways * buckets < 1 - 2.0**-20)
        cost = buckets * (1 + roots / 16) * (1 + SAMPLE * float(crowded))
        best = min(best, (cost, replace(scale, buckets=buckets)), key=lambda pair: pair[0])
    return None if best[1] is None else _best_size(edges, best[1])


def _at_most(limit: int, wanted: float) -> int:
    return int(min(limit, MAX_BUCKETS, wanted)) + 1


def _best_size(edges: Floats, scale: Scale) -> Scale | None:
    """The same scale with the number of buckets whose tables are the narrowest."""
    best: tuple[float, Scale | None] = (np.inf, None)
    for wanted in (scale.buckets, *(len(edges) * share for share in (0.25, 0.5, 1, 2, 4, 8))):
        tried = Scale.over(
            edges,
            center=scale.center,
            per_unit=scale.per_unit,
            roots=scale.roots,
            buckets=_at_most(8 * len(edges), wanted),
        )
        if tried is not None:
            depth, width = _shape(int(np.bincount(tried.of(edges)).max()))
            # A join costs about as much as two columns of edges, and a long table takes time to send.
            cost = depth * (2 + width) + 4 * tried.buckets / MAX_BUCKETS
            best = min(best, (cost, tried), key=lambda pair: pair[0])
    return best[1]


def _candidates(edges: Floats) -> list[tuple[float, float, int]]:
    """Centers, units and roots to choose from."""
    with np.errstate(over="ignore"):
        gaps = np.diff(edges)
    narrow = int(np.argmin(np.where(gaps > 0, gaps, np.inf)))
    centers = {0.0, float(edges[0]), float(edges[-1]), float(edges[len(edges) // 2]), float(edges[narrow])}
    found = [(float(edges[0]), 1.0, 0)]
    for center in sorted(centers):
        with np.errstate(over="ignore"):
            distances = np.abs(edges - center)
        distances = np.sort(distances[(distances > 0) & np.isfinite(distances)])
        if not len(distances):
            continue
        shares = (len(distances) - 1) * np.array([0.0, 0.01, 0.1, 0.25, 0.5, 0.9])
        units = [*distances[shares.astype(np.int64)].tolist(), float(distances[-1]) * 2.0**-1000]
        units += [float(gaps[narrow]) * 2.0**power for power in (0, 3, 5, 7, 9, 11, 14)]
        # Powers of two that float64 holds with their reciprocals.
        powers = {int(np.clip(np.frexp(unit)[1], -1000, 1000)) for unit in units}
        found += [(center, 2.0**-power, roots) for power, roots in product(sorted(powers), ROOTS)]
    return found


def _shape(fullest: int) -> tuple[int, int]:
    """How many tables, and how many edges in a row of each, divide a bucket of so many edges."""
    depth = 1
    while (SLOTS + 1) ** depth <= fullest:
        depth += 1
    return depth, next(width for width in range(1, SLOTS + 1) if (width + 1) ** depth > fullest)


def _levels(edges: Floats, scale: Scale | None) -> tuple[Level, ...]:
    """The tables: a row stands for a range of edges, which its own edges divide among rows of the next."""
    buckets = scale.of(edges) if scale else np.zeros(len(edges), np.int64)
    sizes = np.bincount(buckets, minlength=scale.buckets if scale else 1)
    starts = np.cumsum(sizes) - sizes
    depth, width = _shape(int(sizes.max()))
    slots = np.arange(1, width + 1)[:, None]
    levels = []
    for left in reversed(range(depth)):
        # Every stride-th edge is listed, and those between two of them go to a row of the next table.
        stride = (width + 1) ** left
        parts = sizes // stride
        ranks = np.minimum(starts + slots * stride - 1, len(edges) - 1)
        listed = np.where(slots <= parts, edges[ranks], np.inf)[: int(parts.max())]
        children = np.cumsum(parts + 1) - (parts + 1)
        levels.append(Level(base=children if left else starts, edges=listed))
        parent = np.repeat(np.arange(len(sizes)), parts + 1)
        passed = (np.arange(len(parent)) - children[parent]) * stride
        starts, sizes = starts[parent] + passed, np.minimum(stride - 1, sizes[parent] - passed)
    return tuple(levels)
