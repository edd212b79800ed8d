"""A column that is counted where it lies: what statistics ask of it in place of its values."""

from abc import abstractmethod
from typing import TYPE_CHECKING

from sfumato.data.column import Column
from sfumato.grid import Edges, Floats, Grid, Ints, Lattice

if TYPE_CHECKING:
    from sfumato.data.counts import NullRule, Sums
    from sfumato.data.extremes import Extremes
    from sfumato.data.line import Line
    from sfumato.data.matches import Matches
    from sfumato.data.ranks import Ranks


class EngineColumn(Column):
    """A column in an engine: its counts and sums are asked for, its values never."""

    @abstractmethod
    def counts(self, cells: Grid | Edges, nulls: "NullRule") -> Ints:
        """How many rows are in each cell."""

    @abstractmethod
    def sums(self, lattice: Lattice, nulls: "NullRule", *, squares: bool) -> "Sums":
        """The sums of the points on a lattice, and of their squares."""

    @abstractmethod
    def matched(self, matches: "Matches") -> "Sums":
        """How many rows have a value, and how many meet a condition."""

    @abstractmethod
    def extremes(self, lattice: Lattice, nulls: "NullRule", keep: int) -> "Extremes":
        """The sum on a lattice, with the smallest and the largest records."""

    @abstractmethod
    def ranks(self, grid: Grid, nulls: "NullRule", parts: int, line: "Line | None") -> "Ranks":
        """The ranks on a grid."""

    @abstractmethod
    def places(self, points: Floats, *, negated: bool) -> tuple[Ints, int]:
        """How many rows have each number of points below them, and how many are null."""
