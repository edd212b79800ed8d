"""Public grids: the finite sets of points on which data are counted, summed and answered."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.checks import Number, exact, positive, shown, whole
from sfumato.errors import InvalidParameter

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_CELLS = 2**32
MAX_EDGES = 2**20
# Up to so many cells a comparison with every edge is faster than a search.
FEW_CELLS = 32
# |x| / step up to here leaves float64 enough bits to give every grid point its own cell (see Grid.index).
MAX_RATIO = 2**40
# A lattice has fewer than twice as many steps between 0 and its larger bound: each is 2**7 of float64's.
FINEST = 2**44


def exact_bounds(lower: object, upper: object) -> tuple[Fraction, Fraction]:
    """Both ends as exact numbers that float64 can hold, in increasing order."""
    return _increasing(exact("lower", lower), exact("upper", upper))


@lru_cache(maxsize=256)
def _increasing(low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
    # Cached, because a query checks its bounds each time that a public fact is filled in.
    for name, bound in (("lower", low), ("upper", high)):
        if bound and not 2**-400 <= abs(bound) <= 2**400:
            rule = "0 or between 2**-400 and 2**400 in size"
            raise InvalidParameter(f"{name} must be {rule}, got {name}={shown(bound)}")
    if low >= high:
        raise InvalidParameter(f"lower must be below upper, got lower={shown(low)}, upper={shown(high)}")
    if (high - low) * MAX_RATIO < max(abs(low), abs(high)):
        rule = "2**-40 of their size apart, for float64 to tell values between them"
        raise InvalidParameter(f"bounds must be at least {rule}, got lower={shown(low)}, upper={shown(high)}")
    return low, high


class Cells(Protocol):
    """Whatever divides the line into public cells, numbered from 0."""

    @property
    def cells(self) -> int: ...
    def value(self, index: int) -> Fraction: ...
    def index(self, values: Floats) -> Ints: ...
    def locate(self, values: Floats, out: Floats) -> None: ...


@dataclass(frozen=True, init=False)
class Grid:
    """Equally spaced public points; cell i is [value(i), value(i+1)), the last one closed.

    Guarantee:
        Never depends on data. Points are exact, and each is found in its own cell; a value within the
        rounding of float64 below a point may be counted with it. Proof: docs/proofs/counting.md.

    Args:
        lower, upper: the public bounds; values outside are clamped to them.
        cells: how many cells divide [lower, upper].

    >>> grid = Grid(0, 1, cells=4)
    >>> grid.value(3), grid.index([0.5, 0.74, 7.0]).tolist()
    (Fraction(3, 4), [2, 2, 3])
    """

    lower: Fraction
    upper: Fraction
    cells: int
    step: Fraction

    def __init__(self, lower: Number, upper: Number, *, cells: int) -> None:
        low, high = exact_bounds(lower, upper)
        count = whole("cells", cells, least=1, most=MAX_CELLS)
        self._set(low, high, count, (high - low) / count)

    @classmethod
    def of_step(cls, lower: Number, upper: Number, step: Number) -> Self:
        """The points lower, lower + step, ..., upper; each is a cell, so integers keep their own.

        >>> ages = Grid.of_step(0, 120, 1)
        >>> ages.cells, ages.index([119.0, 120.0]).tolist()
        (121, [119, 120])
        """
        low, high = exact_bounds(lower, upper)
        width = positive("step", step)
        if (high - low) % width:
            raise InvalidParameter(
                f"step must divide upper - lower, got step={shown(step)} for [{shown(low)}, {shown(high)}]"
            )
        grid = cls.__new__(cls)
        count = (high - low) / width + 1
        if count > MAX_CELLS:
            raise InvalidParameter(f"step must leave at most 2**32 cells, got step={shown(step)}")
        grid._set(low, high, int(count), width)
        return grid

    @staticmethod
    def geometric(lower: Number, upper: Number, *, ratio: Number) -> "Edges":
        """Points lower, lower * ratio, ... up to upper, for positive data of unknown size.

        >>> Grid.geometric(1, 1000, ratio=10).index([5.0, 10.0, 999.0]).tolist()
        [0, 1, 2]
        """
        low, high = exact_bounds(lower, upper)
        if low <= 0:
            raise InvalidParameter(f"lower must be positive on a geometric grid, got lower={shown(lower)}")
        factor = exact("ratio", ratio)
        if factor <= 1:
            raise InvalidParameter(f"ratio must be above 1, got ratio={shown(ratio)}")
        if math.log(float(high / low)) > MAX_EDGES * math.log1p(float(min(factor - 1, Fraction(2**500)))):
            raise InvalidParameter(f"ratio must leave at most {MAX_EDGES} cells, got ratio={shown(ratio)}")
        points, point = [], low
        while float(point) < float(high):
            points.append(float(point))
            # 128 digits keep every point within half a step of float64 of the exact one, and the cost linear.
            point = min(_rounded(point * factor), high)
        return Edges((*points, float(high)))

    def _set(self, lower: Fraction, upper: Fraction, cells: int, step: Fraction) -> None:
        if max(abs(lower), abs(upper)) / step > MAX_RATIO:
            raise InvalidParameter(
                f"step (of cells) must be one that float64 resolves at the bounds, got step={shown(step)}"
            )
        for name, value in (("lower", lower), ("upper", upper), ("cells", cells), ("step", step)):
            object.__setattr__(self, name, value)

    def value(self, index: int) -> Fraction:
        """The exact point at `index`."""
        return self.lower + whole("index", index, least=0, most=self.cells) * self.step

    def index(self, values: Floats | Sequence[float]) -> Ints:
        """The cell of each value, clamped to the grid; `index(float(value(i)))` is i for every cell i."""
        located = np.empty(len(values))
        self.locate(np.asarray(values, dtype=np.float64), located)
        return located.astype(np.int64)

    def locate(self, values: Floats, out: Floats) -> None:
        """Write into `out` numbers whose integer parts are the cells; NaN stays NaN."""
        scale, offset = self.line
        with np.errstate(over="ignore", invalid="ignore"):
            np.multiply(values, scale, out=out)
            np.add(out, offset, out=out)
        np.clip(out, 0.0, self.cells - 1.0, out=out)

    @cached_property
    def line(self) -> tuple[float, float]:
        """The scale and the offset by which a value becomes the number of its cell."""
        # x * scale + offset errs by at most 6 * 2**-53 * size; a lift of 16 * 2**-53 * size therefore
        # carries every float(value(i)) into cell i, and is at most 2**-8 of a cell (size <= 2**41).
        size = max(abs(self.lower), abs(self.upper)) / self.step + self.cells
        return float(1 / self.step), float(-self.lower / self.step + size * Fraction(16, 2**53))


@dataclass(frozen=True)
class Edges:
    """Cells between public edges in increasing order; cell i is [edges[i], edges[i+1]), the last closed.

    Guarantee:
        Never depends on data. Edges are exact, and each is found in its own cell.
        Proof: docs/proofs/counting.md.

    >>> bands = Edges((0, 18, 65, 120))
    >>> bands.cells, bands.index([17.9, 18.0, 120.0]).tolist()
    (3, [0, 1, 2])
    """

    edges: tuple[Fraction, ...]

    def __init__(self, edges: Sequence[Number]) -> None:
        if not _is_listed(edges):
            raise InvalidParameter(f"edges must be increasing numbers, got edges={shown(edges)}")
        if not 2 <= len(edges) <= MAX_EDGES + 1:
            raise InvalidParameter(f"edges must be 2 to {MAX_EDGES + 1} numbers, got {len(edges)}")
        points = tuple(exact("edges", edge) for edge in edges)
        exact_bounds(points[0], points[-1])
        # First exactly, so that all are between the ends; then as the float64 that data are compared with.
        if any(left >= right for left, right in pairwise(points)) or any(
            float(left) >= float(right) for left, right in pairwise(points)
        ):
            raise InvalidParameter(f"edges must increase, got edges={shown(tuple(edges))}")
        object.__setattr__(self, "edges", points)

    @property
    def cells(self) -> int:
        """How many cells there are: one less than the edges."""
        return len(self.edges) - 1

    @property
    def lower(self) -> Fraction:
        """The first edge."""
        return self.edges[0]

    @property
    def upper(self) -> Fraction:
        """The last edge."""
        return self.edges[-1]

    def value(self, index: int) -> Fraction:
        """The exact left edge of cell `index`; index = cells gives the last edge."""
        return self.edges[whole("index", index, least=0, most=self.cells)]

    def index(self, values: Floats | Sequence[float]) -> Ints:
        """The cell of each value, clamped to the first and last cell."""
        located = np.empty(len(values))
        self.locate(np.asarray(values, dtype=np.float64), located)
        return located.astype(np.int64)

    def locate(self, values: Floats, out: Floats) -> None:
        """Write the cell of each value into `out`; NaN is in the last one."""
        if self.cells <= FEW_CELLS:
            out.fill(self.cells - 1)
            for edge in self._floats[1:-1].tolist():
                np.subtract(out, values < edge, out=out)
            return
        cells = np.searchsorted(self._floats, values, side="right") - 1
        np.clip(cells, 0, self.cells - 1, out=out, casting="unsafe")

    @cached_property
    def _floats(self) -> Floats:
        return np.array([float(edge) for edge in self.edges])


@dataclass(frozen=True)
class Leaves:
    """Equally many neighbouring cells of a grid in each leaf, but for the last one."""

    grid: Grid
    width: int

    @classmethod
    def of(cls, grid: Grid, most: int) -> "Leaves":
        """As many leaves as possible, at most `most`; one for each cell where there are no more cells."""
        return cls(grid, -(-grid.cells // most))

    @property
    def cells(self) -> int:
        """How many leaves there are."""
        return -(-self.grid.cells // self.width)

    def locate(self, values: Floats, out: Floats) -> None:
        """Write the leaf of each value into `out`; NaN stays NaN."""
        self.grid.locate(values, out)
        # A quotient of integers below 2**32 is never rounded up to a whole one.
        np.floor(out, out=out)
        np.divide(out, self.width, out=out)

    def value(self, index: int) -> Fraction:
        """The exact left edge of a leaf."""
        return self.grid.value(min(index * self.width, self.grid.cells))

    def index(self, values: Floats) -> Ints:
        """The leaf of each value."""
        located = np.empty(len(values))
        self.locate(np.asarray(values, dtype=np.float64), located)
        return located.astype(np.int64)


@dataclass(frozen=True)
class Lattice:
    """Public points `origin + j * step`, j in [low, high], to which values are rounded before a sum.

    The step is a power of two, so scaling is exact and a sum of points is an integer: no rounding
    of sums, no dependence on the order of rows.

    >>> lattice = Lattice.over(0, 10, points=10, origin=0)
    >>> lattice.step, lattice.low, lattice.high, lattice.round([2.2, 99.0]).tolist()
    (Fraction(1, 1), 0, 10, [2, 10])
    """

    origin: Fraction
    step: Fraction
    low: int
    high: int

    @classmethod
    def over(cls, lower: Number, upper: Number, *, points: int, origin: Number) -> Self:
        """The coarsest power-of-two step with at least `points` steps from origin to the farther bound.

        Where float64 does not resolve so fine a step at the bounds, the finest that it does. The origin is
        moved to the nearest multiple of the step, so that float64 holds it.
        """
        low, high = exact_bounds(lower, upper)
        start, size = exact("origin", origin), max(abs(low), abs(high))
        step = _power_of_two(max(max(abs(low - start), abs(high - start)) / points, size / FINEST))
        start = round(start / step) * step
        return cls(start, step, round((low - start) / step), round((high - start) / step))

    @property
    def rounding(self) -> Fraction:
        """How far a value between the bounds can be from its point, in steps, float64 arithmetic included."""
        # The origin and the scaling are exact; the difference of a value and the origin is rounded once.
        size = max(abs(self.value(self.low)), abs(self.value(self.high))) / self.step
        return Fraction(1, 2) + (size + 1) / 2**52

    @property
    def width(self) -> int:
        """The number of steps between the two ends."""
        return self.high - self.low

    def value(self, index: int) -> Fraction:
        """The exact value of point `index`."""
        return self.origin + index * self.step

    def round(self, values: Floats | Sequence[float]) -> Ints:
        """The nearest point of each value, clamped to the ends."""
        located = np.empty(len(values))
        self.locate(np.asarray(values, dtype=np.float64), located)
        return located.astype(np.int64)

    def locate(self, values: Floats, out: Floats) -> None:
        """Write the points into `out` as whole floats; NaN stays NaN."""
        with np.errstate(over="ignore", invalid="ignore"):
            np.subtract(values, float(self.origin), out=out)
            np.multiply(out, float(1 / self.step), out=out)
        np.clip(out, self.low, self.high, out=out)
        np.rint(out, out=out)


def _rounded(number: Fraction) -> Fraction:
    """A positive number to 128 significant bits."""
    shift = 128 - (number.numerator.bit_length() - number.denominator.bit_length())
    return Fraction(round(number * Fraction(2) ** shift)) / Fraction(2) ** shift


def _power_of_two(size: Fraction) -> Fraction:
    """The largest power of two that is at most `size`."""
    power = Fraction(2) ** (size.numerator.bit_length() - size.denominator.bit_length())
    return power if power <= size else power / 2


def _is_listed(values: object) -> bool:
    return isinstance(values, Sequence | np.ndarray) and not isinstance(values, str)


def as_edges(cells: Any) -> tuple[Fraction, ...]:
    """The edges of any grid, left to right, the upper bound last."""
    return (*(cells.value(i) for i in range(cells.cells)), cells.upper)
