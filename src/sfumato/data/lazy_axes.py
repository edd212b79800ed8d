"""The public cells of a line as expressions: for every engine the same float64 operations as in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, Protocol

from sfumato.data.edge_search import EdgeSearch
from sfumato.data.engines import small_table
from sfumato.errors import NotSupported
from sfumato.grid import Cells, Edges, Grid, Lattice, Leaves

if TYPE_CHECKING:
    import narwhals as nw


# Float64 holds whole numbers alone between 2**52 and 2**53; a lattice has fewer than 2**45 points on a side.
_ROUNDER = 1.5 * 2.0**52


class Axis(Protocol):
    """Cells numbered from 0; frozen, so that requests about the same cells are the same."""

    @property
    def cells(self) -> int: ...

    def stages(self, number: "nw.Expr", name: str) -> "list[list[nw.Expr]]":
        """Columns that `located` needs, each stage from those before: what is used twice is found once."""
        ...

    def join(self, frame: "nw.LazyFrame[Any]", number: "nw.Expr", name: str) -> "nw.LazyFrame[Any]":
        """The frame with what only a table beside it tells."""
        ...

    def located(self, number: "nw.Expr", name: str) -> "nw.Expr":
        """A number whose integer part is the cell; null for null."""
        ...


@dataclass(frozen=True)
class _Computed:
    """What axes have in common whose cells are found by arithmetic."""

    def stages(self, number: "nw.Expr", name: str) -> "list[list[nw.Expr]]":
        """Nothing."""
        return []

    def join(self, frame: "nw.LazyFrame[Any]", number: "nw.Expr", name: str) -> "nw.LazyFrame[Any]":
        """The frame itself."""
        return frame


@dataclass(frozen=True)
class GridAxis(_Computed):
    """The cells of a grid."""

    grid: Grid

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return self.grid.cells

    def located(self, number: "nw.Expr", name: str) -> "nw.Expr":
        """The operations of `Grid.locate`, but that values are clipped first, to the point of the last cell.

        Each point is found in its own cell, and cells grow with values: no clip is needed after, and no
        product overflows.
        """
        import narwhals as nw

        scale, offset = self.grid.line
        inside = number.clip(float(self.grid.lower), float(self.grid.value(self.grid.cells - 1)))
        return inside * nw.lit(scale) + nw.lit(offset)


@dataclass(frozen=True)
class LeavesAxis(_Computed):
    """Stretches of equally many cells of a grid."""

    leaves: Leaves

    @property
    def cells(self) -> int:
        """How many leaves there are."""
        return self.leaves.cells

    def located(self, number: "nw.Expr", name: str) -> "nw.Expr":
        """The leaf; half a cell more keeps a quotient that an engine rounds away from whole numbers."""
        import narwhals as nw

        cell = GridAxis(self.leaves.grid).located(number, name).floor()
        return (cell + nw.lit(0.5)) / nw.lit(float(self.leaves.width))


@dataclass(frozen=True)
class LatticeAxis(_Computed):
    """The points of a lattice, counted from its lower end."""

    lattice: Lattice

    @property
    def cells(self) -> int:
        """How many points there are."""
        return self.lattice.width + 1

    def stages(self, number: "nw.Expr", name: str) -> "list[list[nw.Expr]]":
        """The operations of `Lattice.locate`."""
        import narwhals as nw

        lattice = self.lattice
        # The ends are exact, so that what lies between them stays between the first and the last point.
        ends = float(lattice.value(lattice.low)), float(lattice.value(lattice.high))
        scaled = (number.clip(*ends) - nw.lit(float(lattice.origin))) * nw.lit(float(1 / lattice.step))
        # To the nearest, and to the even one of two: engines round halves in ways of their own, but all add
        # alike, and beside this number float64 has no halves.
        steps = (scaled + nw.lit(_ROUNDER)) - nw.lit(_ROUNDER + lattice.low)
        return [[steps.alias(f"{name}_point")]]

    def located(self, number: "nw.Expr", name: str) -> "nw.Expr":
        """The point."""
        import narwhals as nw

        return nw.col(f"{name}_point")


@dataclass(frozen=True)
class EdgesAxis(_Computed):
    """The cells between irregular edges, or the places among thresholds: found by search."""

    edges: tuple[float, ...]
    side: Literal["left", "right"]
    # A place among m edges is 0..m; cells between edges are one less, and clamped to the first and last.
    clamped: bool
    negated: bool = False

    @classmethod
    def between(cls, edges: Edges) -> "EdgesAxis":
        """The cells of irregular edges."""
        return cls(tuple(float(edge) for edge in edges.edges), "right", clamped=True)

    @classmethod
    def among(cls, points: Sequence[float], *, negated: bool) -> "EdgesAxis":
        """How many points are below a value, or below its negative."""
        return cls(tuple(float(point) for point in points), "left", clamped=False, negated=negated)

    @property
    def cells(self) -> int:
        """How many cells or places there are."""
        return len(self.edges) - 1 if self.clamped else len(self.edges) + 1

    def join(self, frame: "nw.LazyFrame[Any]", number: "nw.Expr", name: str) -> "nw.LazyFrame[Any]":
        """The frame with the place among the edges."""
        sought = -number if self.negated else number
        search = _search(self.edges, self.side)
        return search.apply(frame, sought, name, lambda columns: small_table(frame, columns))

    def located(self, number: "nw.Expr", name: str) -> "nw.Expr":
        """The cell or place."""
        import narwhals as nw

        place = nw.col(name).cast(nw.Float64)
        return (place - nw.lit(1.0)).clip(0.0, self.cells - 1.0) if self.clamped else place


@lru_cache(maxsize=16)
def _search(edges: tuple[float, ...], side: Literal["left", "right"]) -> EdgeSearch:
    return EdgeSearch.of(edges, side)


def axis_of(cells: Cells) -> Axis:
    """The axis of public cells."""
    if isinstance(cells, Grid):
        return GridAxis(cells)
    if isinstance(cells, Leaves):
        return LeavesAxis(cells)
    if isinstance(cells, Edges):
        return EdgesAxis.between(cells)
    raise NotSupported(f"cells of a table in an engine must be a Grid or Edges, got {type(cells).__name__}")
