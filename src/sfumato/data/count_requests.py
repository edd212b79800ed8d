"""Requests for counts by key: of cells or blocks of cells, of single cells in some blocks, of categories."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.data.column import Category
from sfumato.data.engines import small_table
from sfumato.data.key_sets import ROWS, Told, listed_key
from sfumato.data.lazy_axes import Axis
from sfumato.data.lazy_table import NULL, OUTSIDE, Staged
from sfumato.data.portion import places_of
from sfumato.data.requests import Answer, Keys, Plain, or_nothing
from sfumato.grid import Ints

if TYPE_CHECKING:
    import narwhals as nw


@dataclass(frozen=True)
class CellRequest(Plain):
    """How many rows of every group are in each block of 2**shift cells."""

    column: str
    axis: Axis
    shift: int = 0

    @property
    def together(self) -> Hashable:
        """The same cells by the same groups."""
        return "cells", self.portion, self.column, self.axis, self.shift

    def stages(self, table: Staged, name: str) -> "list[list[nw.Expr]]":
        """What the axis needs to find cells."""
        return self.axis.stages(table.number(self.column), name)

    def join(self, frame: "nw.LazyFrame[Any]", table: Staged, name: str) -> "nw.LazyFrame[Any]":
        """What the axis needs of a table."""
        return self.axis.join(frame, table.number(self.column), name)

    def keys(self, table: Staged, name: str) -> Keys:
        """The block."""
        cell = or_nothing(table.met(self.portion), self._block(table, name, self.shift), OUTSIDE)
        blocks = ((self.axis.cells - 1) >> self.shift) + 1
        return {
            "cell": (Told(("cell", self.portion.where, self.column, self.axis, self.shift), blocks + 2), cell)
        }

    def _block(self, table: Staged, name: str, shift: int) -> "nw.Expr":
        import narwhals as nw

        found = self.axis.located(table.number(self.column), name)
        return (found / nw.lit(2.0**shift) if shift else found).floor().cast(nw.Int64)

    def read(self, answer: Answer, names: Mapping[str, str]) -> list[tuple[Ints, Ints]]:
        """The cells and their counts, in order, for every group; cell -1 counts the nulls."""
        cells, rows = answer.integers(names["cell"], NULL), answer.integers(ROWS)
        keep = (answer.groups >= 0) & (cells > OUTSIDE)
        cells, rows, groups = cells[keep], rows[keep], answer.groups[keep]
        order = np.lexsort((cells, groups))
        cells, rows, groups = cells[order], rows[order], groups[order]
        starts = np.searchsorted(groups, np.arange(self.portion.groups.count + 1))
        return [_summed(cells[first:stop], rows[first:stop]) for first, stop in pairwise(starts)]


def _summed(cells: Ints, rows: Ints) -> tuple[Ints, Ints]:
    # Rows of no listed key come once for each of their values, and are one group.
    distinct, places = np.unique(cells, return_inverse=True)
    counts = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(counts, places, rows)
    return distinct, counts


@dataclass(frozen=True)
class Refinement(CellRequest):
    """How many rows are in each cell of some blocks, as (group, block)."""

    blocks: tuple[tuple[int, int], ...] = ()

    @property
    def together(self) -> Hashable:
        """All blocks of the same cells by the same groups."""
        return "refined", self.portion, self.column, self.axis, self.shift

    def joined(self, others: "Sequence[Refinement]") -> "Refinement":
        """The blocks of several refinements in one."""
        return replace(self, blocks=tuple(sorted({block for each in others for block in each.blocks})))

    def stages(self, table: Staged, name: str) -> "list[list[nw.Expr]]":
        """The cell and the block of every row."""
        cell, block = self._block(table, name, 0), self._block(table, name, self.shift)
        return [*super().stages(table, name), [cell.alias(f"{name}_cell"), block.alias(f"{name}_block")]]

    def join(self, frame: "nw.LazyFrame[Any]", table: Staged, name: str) -> "nw.LazyFrame[Any]":
        """A mark on the rows of the blocks, where they differ by group."""
        import narwhals as nw

        if not self._by_group:
            return frame
        groups, block = self.portion.groups, f"{name}_block"
        names = [f"{name}_key_{i}" for i in range(len(groups.by))]
        listed = [pair for pair in self.blocks if pair[0] < len(groups.keys)]
        found: list[nw.Expr] = []
        marks: dict[str, list[Any]] = {}
        for i, (each, key) in enumerate(zip(names, table.keys(groups), strict=True)):
            values = [groups.keys[group][i] for group, _ in listed]
            # Integers are joined as text: engines store them in many types, some wider than 64 bits.
            whole = all(type(value) is int for value in values)
            marks[each] = [str(value) for value in values] if whole else values
            found.append((key.cast(nw.String) if whole else key).alias(each))
        marks |= {block: [place for _, place in listed], f"{name}_mark": [1] * len(listed)}
        return frame.with_columns(*found).join(small_table(frame, marks), on=[*names, block], how="left")

    @cached_property
    def _listed(self) -> list[int]:
        return sorted({block for _, block in self.blocks})

    @property
    def _by_group(self) -> bool:
        return self.portion.groups.count > 1 and len(self._listed) > MOST_LISTED

    def needed(self, table: Staged, name: str) -> "nw.Expr":
        """Rows of the blocks; where few are listed, of any group: what is too much is left out when read."""
        import narwhals as nw

        block = nw.col(f"{name}_block")
        if not self._by_group:
            return block.is_in(self._listed)
        marked = ~nw.col(f"{name}_mark").is_null()
        # Rows of no listed key have none to be joined by.
        rest = sorted(place for group, place in self.blocks if group == len(self.portion.groups.keys))
        return marked | block.is_in(rest) if rest else marked

    def keys(self, table: Staged, name: str) -> Keys:
        """The cell, of rows in the blocks."""
        import narwhals as nw

        cell, met = nw.col(f"{name}_cell"), table.met(self.portion)
        if not table.alone:
            # Other requests of the pass need other rows.
            needed = self.needed(table, name)
            met = needed if met is None else needed & met
        cell = or_nothing(met, cell, OUTSIDE)
        # Each is a group-by of its own: how many cells it has does not matter.
        return {"cell": (Told(self.together, self.axis.cells + 2), cell)}

    def read(self, answer: Answer, names: Mapping[str, str]) -> list[tuple[Ints, Ints]]:
        """The cells of these blocks and their counts, in order, for every group."""
        found = []
        for group, (cells, counts) in enumerate(super().read(answer, names)):
            own = np.array([block for of, block in self.blocks if of == group], dtype=np.int64)
            keep = np.isin(cells >> self.shift, own)
            found.append((cells[keep], counts[keep]))
        return found


# With more blocks than this, each group is asked for its own.
MOST_LISTED = 512


@dataclass(frozen=True)
class TallyRequest(Plain):
    """How many rows of every group hold each category, another value, or none."""

    column: str
    categories: tuple[Category, ...]

    @property
    def together(self) -> Hashable:
        """The same categories by the same groups."""
        return "tally", self.portion, self.column, self.categories

    def keys(self, table: Staged, name: str) -> Keys:
        """The category, and whether there is a value."""
        import narwhals as nw

        listed = table.listed(self.column, self.categories)
        present = table.present(self.column).cast(nw.Int64)
        state = Told(("present", self.column, self.portion.where), 4)
        return {
            "category": (listed_key(self.column, self.categories), listed),
            "present": (state, or_nothing(table.met(self.portion), present, OUTSIDE)),
        }

    def read(self, answer: Answer, names: Mapping[str, str]) -> list[tuple[list[int], int, int]]:
        """The counts of the categories, of other values and of nulls, for every group."""
        place = places_of(self.categories)
        found = [[0] * (len(self.categories) + 2) for _ in range(self.portion.groups.count)]
        columns = (
            answer.groups.tolist(),
            answer.values(names["category"]),
            answer.values(names["present"]),
            answer.integers(ROWS).tolist(),
        )
        for group, category, present, rows in zip(*columns, strict=True):
            if group < 0 or present == OUTSIDE:
                continue
            known = place.get(category, len(self.categories))
            found[group][known if present else len(self.categories) + 1] += rows
        return [(counts[:-2], counts[-2], counts[-1]) for counts in found]
