"""What Mondrian knows of a column: how wide a segment of rows is in it, and what a class of them shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.levels import Hierarchy
from sfumato.anonymity.rows import Coded, cell
from sfumato.anonymity.values import DistinctNumbers

if TYPE_CHECKING:
    import polars as pl

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Floats = NDArray[np.float64]

# A set of more values than this shows its first and its last one, and how many there are.
LISTED = 6


class Column(Protocol):
    """A quasi-identifier with its values in the order in which it is cut."""

    @property
    def codes(self) -> Codes:
        """The place of each row's value in that order."""
        ...

    @property
    def size(self) -> int:
        """The number of distinct values."""
        ...

    @property
    def null(self) -> int:
        """The code of a null that stands outside the order, -1 if there is none."""
        ...

    @property
    def counted(self) -> bool:
        """Whether widths depend on how many distinct values a segment has."""
        ...

    def widths(self, low: Codes, high: Codes, seen: Ints | None) -> Floats:
        """How wide segments are, as shares of the whole column: 0 for a single value."""
        ...

    def shown(self, low: Codes, high: Codes, classes: Codes) -> tuple[tuple[str, ...], Floats]:
        """The label of every class and the normalised certainty penalty of it."""
        ...


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers or dates: intervals; null is the last code, and stands beside the interval."""

    codes: Codes
    values: Sequence[object]
    points: NDArray[Any]
    counted: bool = False

    @property
    def size(self) -> int:
        """The number of distinct values, null included."""
        return len(self.values)

    @property
    def null(self) -> int:
        """The last code, if it is that of null."""
        return self.size - 1 if self.values[-1] is None and self.size > 1 else -1

    def widths(self, low: Codes, high: Codes, seen: Ints | None) -> Floats:
        """The length of the interval as a share of the longest; all of it where only some are null."""
        # Who may be missing may have any value: nothing narrower is known of that cell.
        if self.null < 0:
            return self._share(low, high)
        nulls = high == self.null
        both = nulls & (low < high)
        return np.where(both, 1.0, self._share(low, np.where(nulls, low, high)))

    def _share(self, low: Codes, high: Codes) -> Floats:
        wide = np.int64 if self.points.dtype == np.int32 else np.float64
        whole = wide(self.points[-1]) - wide(self.points[0])
        lengths = np.subtract(
            self.points.take(high, mode="clip"), self.points.take(low, mode="clip"), dtype=wide
        )
        return lengths / whole if whole > 0 else np.zeros(len(low))

    def shown(self, low: Codes, high: Codes, classes: Codes) -> tuple[tuple[str, ...], Floats]:
        """Intervals from the lowest to the highest value; with nulls among them "null or [20, 30]"."""
        losses = self.widths(low, high, None)
        both = (high == self.null) & (low < high)
        top = high
        if both.any():
            present = np.flatnonzero((self.codes != self.null) & both[classes])
            top = np.where(both, np.int32(0), high)
            np.maximum.at(top, classes[present], self.codes[present])
        return _intervals(self.values, low, top, both), losses


@dataclass(frozen=True, eq=False)
class Listed:
    """Categories without a tree: sets of values, cut in their sorted order, null the last of them."""

    codes: Codes
    values: Sequence[object]
    null: int = -1

    @property
    def size(self) -> int:
        """The number of distinct values, null included."""
        return len(self.values)

    @property
    def counted(self) -> bool:
        """Of two values the ends tell how many there are."""
        return self.size > 2

    def widths(self, low: Codes, high: Codes, seen: Ints | None) -> Floats:
        """The further values of the segment as a share of the further values of the column."""
        further = high - low if seen is None else seen - 1
        return np.asarray(further / max(self.size - 1, 1), dtype=np.float64)

    def shown(self, low: Codes, high: Codes, classes: Codes) -> tuple[tuple[str, ...], Floats]:
        """The set of the values of each class, and its size as a share of all values."""
        pairs = _distinct(classes, self.codes, len(low), self.size)
        counts = np.bincount(pairs // self.size, minlength=len(low))
        codes = pairs % self.size
        ends = np.cumsum(counts)
        texts = [cell(value) for value in self.values]
        firsts, lasts = codes[ends - counts].tolist(), codes[ends - 1].tolist()
        labels = []
        for end, count, first, last in zip(ends.tolist(), counts.tolist(), firsts, lasts, strict=True):
            if count == 1:
                labels.append(texts[first])
            elif count <= LISTED:
                labels.append(f"{{{', '.join([texts[code] for code in codes[end - count : end].tolist()])}}}")
            else:
                labels.append(f"{{{texts[first]}, ..., {texts[last]}: {count} values}}")
        return tuple(labels), np.where(counts > 1, counts / self.size, 0.0)


@dataclass(frozen=True, eq=False)
class Treed:
    """Categories of a tree: the lowest node above all values of a segment, cut into the nodes below it."""

    codes: Codes
    levels: Codes
    labels: tuple[tuple[str, ...], ...]
    losses: tuple[Floats, ...]
    null: int = -1
    counted: bool = False

    @property
    def size(self) -> int:
        """The number of distinct values, null included."""
        return int(self.levels.shape[1])

    def lowest(self, low: Codes, high: Codes) -> Ints:
        """The lowest level at which the first and the last value, and all between, are in one group."""
        level: Ints = np.argmax(self.levels[:, low] == self.levels[:, high], axis=0)
        return level

    def widths(self, low: Codes, high: Codes, seen: Ints | None) -> Floats:
        """The share of all leaves below the node; nothing lies below the lowest level."""
        level = self.lowest(low, high)
        return np.where(level > 0, self._losses(level, low), 0.0)

    def shown(self, low: Codes, high: Codes, classes: Codes) -> tuple[tuple[str, ...], Floats]:
        """The name of the node."""
        level = self.lowest(low, high)
        nodes = self.levels[level, low]
        labels = tuple(self.labels[i][node] for i, node in zip(level.tolist(), nodes.tolist(), strict=True))
        return labels, self._losses(level, low)

    def _losses(self, level: Ints, low: Codes) -> Floats:
        found = np.zeros(len(low))
        for i, losses in enumerate(self.losses):
            here = level == i
            found[here] = losses[self.levels[i, low[here]]]
        return found


def column_of(coded: Coded, tree: Hierarchy | None) -> Numbers | Listed | Treed:
    """The column of a table as Mondrian cuts it."""
    if tree is not None:
        levels = tree.levels_of(coded.values, coded.name)
        # In this order every group of every level is a run of codes.
        order = np.lexsort(levels.codes)
        place = np.empty(len(order), dtype=np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        return Treed(place[coded.codes], levels.codes[:, order], levels.labels, levels.losses)
    if coded.ordered:
        return Numbers(coded.codes, coded.values, _points(coded.values))
    return Listed(coded.codes, coded.values)


def _points(values: Sequence[Any]) -> NDArray[Any]:
    """Where numbers and dates lie on a line; their places in order if floats do not tell them apart."""
    if isinstance(values, DistinctNumbers) and values.array.dtype == np.int32:
        return values.array  # differences of these are exact in int64, and a second array is saved
    present: Any = values[:-1] if values[-1] is None else values
    if isinstance(values, DistinctNumbers):
        present = values.array
    elif len(present) and isinstance(present[0], date):
        steps = [value - present[0] for value in present]
        present = tuple(step.total_seconds() for step in steps)
    places = np.arange(max(len(present), 1), dtype=np.float64)
    try:
        points = np.asarray(present, dtype=np.float64)
    except OverflowError:
        return places
    with np.errstate(over="ignore", invalid="ignore"):
        apart = (
            len(points) > 0
            and bool((np.diff(points) > 0).all())
            and bool(np.isfinite(points[-1] - points[0]))
        )
    return points if apart else places


def _intervals(values: Sequence[Any], low: Codes, high: Codes, nulls: NDArray[np.bool_]) -> tuple[str, ...]:
    """A single value or an interval for every class, after "null or" where some are null."""
    import polars as pl

    used = np.zeros(len(values), dtype=bool)
    used[low] = used[high] = True
    places = np.cumsum(used) - 1
    texts = _texts(values, np.flatnonzero(used))
    first, last = texts.gather(places[low]), texts.gather(places[high])
    label = pl.when(pl.Series(low == high)).then(first).otherwise(pl.format("[{}, {}]", first, last))
    mixed = pl.when(pl.Series(nulls)).then(pl.format("{} or {}", pl.lit(cell(None)), label)).otherwise(label)
    one: dict[str, str] = {}
    # Equal labels as one object: there are many classes and few of them are told apart by one column.
    return tuple(one.setdefault(text, text) for text in pl.select(mixed).to_series().to_list())


def _texts(values: Sequence[Any], codes: Ints) -> "pl.Series":
    """What cells with these codes show."""
    import polars as pl

    if isinstance(values, DistinctNumbers) and values.array.dtype.kind == "i":
        # Whole numbers are most of all values; null comes after them.
        present = codes[codes < len(values.array)]
        texts = pl.Series(values.array[present]).cast(pl.String)
        return texts.extend(pl.Series([cell(None)] * (len(codes) - len(present)), dtype=pl.String))
    return pl.Series([cell(values[code]) for code in codes.tolist()], dtype=pl.String)


def _distinct(classes: Codes, codes: Codes, count: int, size: int) -> Ints:
    """The distinct pairs (class, code) as class * size + code, in order."""
    keys: NDArray[Any] = classes.astype(np.int64 if count * size >= 2**31 else np.int32)
    keys *= size
    keys += codes
    if count * size <= 4 * len(codes) + 1000:
        seen = np.zeros(count * size, dtype=bool)
        seen[keys] = True
        return np.flatnonzero(seen)
    keys.sort()
    new = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=new[1:])
    distinct: Ints = keys[new].astype(np.int64)
    return distinct
