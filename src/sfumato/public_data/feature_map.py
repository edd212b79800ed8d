"""From rows to integer vectors of bounded length: the map that both tables go through.

A row's floats come from additions, subtractions, multiplications, divisions and comparisons of one number at
a time, which IEEE 754 rounds in one way wherever the row stands. They only propose integers; the bound on the
length is enforced on the integers, by integers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.data.codes import Codes
from sfumato.data.column import Category
from sfumato.data.dataset import Dataset
from sfumato.grid import Floats, Ints

Norm = Literal["l1", "l2"]
Kind = Literal["number", "product", "category", "null"]

# So many squares of 64 * 2^20 steps stay below 2^62.
MAX_COORDINATES = 512
MAX_STEPS = 2**20
# A coordinate beyond 64 lengths is moved to there before the row is shortened: its direction is all it keeps.
_FARTHEST = 64
_BLOCK = 2**14


@dataclass(frozen=True)
class Coordinate:
    """What one place of the vector holds: a number, a product, one category, or whether a value is null."""

    kind: Kind
    columns: tuple[str, ...]
    code: int = 0


@dataclass(frozen=True)
class Scaled:
    """A number about a public center, in units of a public spread, and never beyond a limit."""

    center: float
    spread: float
    limit: float

    def of(self, values: Floats) -> Floats:
        """Every value in these units; a null becomes the center."""
        with np.errstate(over="ignore", invalid="ignore"):
            units = (values - self.center) / self.spread
        units[np.isnan(values)] = 0.0
        return np.clip(units, -self.limit, self.limit)


@dataclass(frozen=True, kw_only=True)
class FeatureMap:
    """A fitted map from rows to integer vectors of length at most `steps` in the norm; all of it public."""

    coordinates: tuple[Coordinate, ...]
    numbers: tuple[tuple[str, Scaled], ...]
    categories: tuple[tuple[str, Sequence[Category]], ...]
    products: tuple[tuple[tuple[str, ...], tuple[float, float]], ...]
    radius: float
    norm: Norm
    steps: int

    def within(self, radius: float) -> "FeatureMap":
        """The same map with another radius."""
        return replace(self, radius=radius)

    @property
    def labels(self) -> tuple[str, ...]:
        """What each coordinate is, for people."""
        return tuple(self._label(each) for each in self.coordinates)

    def _label(self, each: Coordinate) -> str:
        if each.kind == "category":
            return f"{each.columns[0]} is {dict(self.categories)[each.columns[0]][each.code]}"
        if each.kind == "null":
            return f"{each.columns[0]} is null"
        return " * ".join(each.columns)

    def vectors(self, data: Dataset) -> Ints:
        """The integer vector of every row; reads the table."""
        columns = [data.column(name) for name, _ in (*self.numbers, *self.categories)]
        found = np.empty((columns[0].rows, len(self.coordinates)), dtype=np.int64)
        for rows, block in self.blocks(data):
            found[rows] = block
        return found

    def blocks(self, data: Dataset) -> Iterator[tuple[slice, Ints]]:
        """The integer vectors of some rows at a time, so that a large table needs little more memory."""
        values, codes = read_columns(data, tuple(name for name, _ in self.numbers), dict(self.categories))
        total = len(next(iter({**values, **codes}.values())))
        for start in range(0, total, _BLOCK):
            rows = slice(start, min(start + _BLOCK, total))
            near = self._unscaled(
                {name: column[rows] for name, column in values.items()},
                {name: column[rows] for name, column in codes.items()},
            )
            yield rows, self.on_lattice(near)

    def on_lattice(self, unscaled: Floats) -> Ints:
        """Vectors divided by the radius, rounded towards zero to the lattice, then shortened if too long."""
        scaled = np.clip(unscaled / self.radius * self.steps, -_FARTHEST * self.steps, _FARTHEST * self.steps)
        return shortened(np.trunc(scaled).astype(np.int64), self.steps, self.norm)

    def at_bound(self, vectors: Ints) -> NDArray[np.bool_]:
        """Which vectors are as long as shortened ones, which lose less than a step in each place."""
        near = max(self.steps - vectors.shape[1] - 1, 1)
        sizes = np.abs(vectors).sum(axis=1) if self.norm == "l1" else root_up((vectors * vectors).sum(axis=1))
        found: NDArray[np.bool_] = sizes >= near
        return found

    def sizes(self, values: Mapping[str, Floats], codes: Mapping[str, Codes]) -> Floats:
        """The length of every row's vector before it is scaled."""
        near = self._unscaled(values, codes)
        found: Floats = np.abs(near).sum(axis=1) if self.norm == "l1" else np.linalg.norm(near, axis=1)
        return found

    def _unscaled(self, values: Mapping[str, Floats], codes: Mapping[str, Codes]) -> Floats:
        units = {name: scaled.of(values[name]) for name, scaled in self.numbers}
        products = dict(self.products)
        listed = dict(self.categories)

        def column(each: Coordinate) -> Floats:
            name = each.columns[0]
            if each.kind == "number":
                return units[name]
            if each.kind == "product":
                center, spread = products[each.columns]
                return (units[name] * units[each.columns[1]] - center) / spread
            if each.kind == "category":
                held = codes[name] == each.code
            else:
                held = np.isnan(values[name]) if name in values else codes[name] == len(listed[name]) + 1
            flags: Floats = held.astype(np.float64)
            return flags

        return np.stack([column(each) for each in self.coordinates], axis=1)


def read_columns(
    data: Dataset, numbers: Sequence[str], categories: Mapping[str, Sequence[Category]]
) -> tuple[dict[str, Floats], dict[str, Codes]]:
    """The values of columns of numbers and the codes of columns of categories; reads the table."""
    values = {name: _whole(data.column(name).chunks()) for name in numbers}
    return values, {name: data.column(name).codes(listed) for name, listed in categories.items()}


def _whole(chunks: Iterator[Floats]) -> Floats:
    listed = list(chunks)
    return np.concatenate(listed) if listed else np.empty(0)


def shortened(vectors: Ints, bound: int, norm: Norm) -> Ints:
    """Integer vectors of length at most `bound`: longer ones are scaled and rounded towards zero.

    >>> shortened(np.array([[30, -40], [3, 4]]), 10, "l2").tolist()
    [[6, -8], [3, 4]]
    >>> shortened(np.array([[30, -40]]), 10, "l1").tolist()
    [[4, -5]]
    """
    sizes = np.abs(vectors).sum(axis=1) if norm == "l1" else root_up((vectors * vectors).sum(axis=1))
    long = sizes > bound
    if not long.any():
        return vectors
    found = vectors.copy()
    # Of magnitudes, so that division rounds towards zero: a coordinate never grows.
    found[long] = np.sign(vectors[long]) * (np.abs(vectors[long]) * bound // sizes[long, None])
    return found


def root_up(squares: Ints) -> Ints:
    """The smallest integers whose squares are at least these.

    >>> root_up(np.array([0, 1, 2, 24, 25, 26, 2**60 + 1])).tolist()
    [0, 1, 2, 5, 5, 6, 1073741825]
    """
    roots = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    # The float root errs by a unit or two; integers decide.
    while (over := (roots > 0) & ((roots - 1) ** 2 >= squares)).any():
        roots -= over
    while (short := roots * roots < squares).any():
        roots += short
    return roots
