"""The line on which quantiles are drawn: one unit for each cell of a grid, and more for round numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeVar

import numpy as np

from sfumato.grid import Grid, Ints

# A step of round numbers counts if there are at least so many of them between the bounds. Numbers of a wider
# step are few: between them are many records, and an answer that such a number attracts is many ranks off.
LEAST_ROUND = 32

Numbers = TypeVar("Numbers", int, Ints)


class Level(NamedTuple):
    """Round numbers of one step: how many cells apart they are, and how many more units each of them has."""

    cells: int
    extra: int


@dataclass(frozen=True)
class Line:
    """Units in order: one for each cell, and more for a cell that begins with a round number.

    Multiples of 1 and 5 times a power of ten are round. Many people report such numbers, so that data have
    heaps of equal values there. A draw often misses a heap in a narrow cell, because the other cells are
    many. It finds the heap in a wide cell.

    Guarantee:
        Public: the line follows from the grid and from the options of a method, never from data.

    Args:
        cells: how many cells there are.
        origin: the number of the first cell, counted from a cell that has the extra units of all levels.
        levels: the steps of round numbers, the widest first; each is a multiple of the next.

    >>> line = Line(cells=4, origin=1, levels=(Level(cells=2, extra=3),))
    >>> line.units, line.begins(np.arange(5)).tolist(), [line.cell(unit) for unit in range(10)]
    (10, [0, 1, 5, 6, 10], [0, 1, 1, 1, 1, 2, 3, 3, 3, 3])
    """

    cells: int
    origin: int = 0
    levels: tuple[Level, ...] = ()

    @cached_property
    def units(self) -> int:
        """How many units there are."""
        return self.begins(self.cells)

    def begins(self, cells: Numbers) -> Numbers:
        """The first unit of a cell, or of each; one past the last cell is one past the last unit."""
        return cells + self._extra_before(cells + self.origin) - self._skipped if self.levels else cells

    def widths(self, cells: Ints) -> Ints:
        """How many units each cell has."""
        found: Ints = np.ones(cells.shape, dtype=np.int64)
        for level in self.levels:
            found += ((cells + self.origin) % level.cells == 0) * level.extra
        return found

    def cell(self, unit: int) -> int:
        """The cell of a unit."""
        rest, number = unit + self.origin + self._skipped, -self.origin
        for block in self._blocks:
            blocks, rest = divmod(rest, block.units)
            number += blocks * block.cells
            if rest < block.first:
                return number
            # What the first cell has more than the first cells of the smaller blocks inside this one.
            rest -= block.extra
        return number + rest

    def _extra_before(self, number: Numbers) -> Numbers:
        """How many extra units the cells from number 0 up to this one have."""
        found = 0 * number
        for level in self.levels:
            found += -(-number // level.cells) * level.extra
        return found

    @cached_property
    def _skipped(self) -> int:
        return self._extra_before(self.origin)

    @cached_property
    def _blocks(self) -> tuple["_Block", ...]:
        return tuple(_blocks(self.levels))


class _Block(NamedTuple):
    """The cells from one round number of a level to the next, their units, and those of the first cell."""

    cells: int
    extra: int
    units: int
    first: int


def _blocks(levels: tuple[Level, ...]) -> Iterator[_Block]:
    for place, (cells, extra) in enumerate(levels):
        # The first cell has the extra units of this level and of all narrower ones.
        inside = levels[place:]
        units = cells + sum(cells // level.cells * level.extra for level in inside)
        yield _Block(cells, extra, units, 1 + sum(level.extra for level in inside))


@lru_cache(maxsize=256)
def line_on(grid: Grid, emphasis: Fraction) -> Line:
    """The line on a grid: round numbers of each step have more units, about `emphasis` for each cell.

    >>> line_on(Grid.of_step(0, 1000, 1), Fraction(1, 2)).levels
    (Level(cells=10, extra=5), Level(cells=5, extra=2))
    """
    origin, found = grid.lower / grid.step, []
    if origin.denominator == 1:
        levels = [Level(cells, int(emphasis * cells)) for cells in _round_steps(grid)]
        found = [level for level in levels if level.extra]
    # What is round repeats after the widest step.
    return Line(grid.cells, int(origin) % found[0].cells if found else 0, tuple(found))


def _round_steps(grid: Grid) -> Iterator[int]:
    """The steps of round numbers that are multiples of the step of the grid; in cells, the widest first."""
    power = Fraction(1)
    while power <= grid.step * grid.cells:
        power *= 10
    while power > grid.step:
        power /= 10
        for cells in (5 * power / grid.step, power / grid.step):
            if cells.denominator == 1 and 1 < cells <= grid.cells / Fraction(LEAST_ROUND):
                yield int(cells)
