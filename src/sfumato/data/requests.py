"""What is asked of a lazy table: counts by cell and sums of integers, each for every group of a portion.

A request says by which keys an engine groups the rows, what it adds up, and how the small table that comes
back is read. Requests with the same keys are answered by one group-by.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sfumato.data.key_sets import Told
from sfumato.data.lazy_axes import LatticeAxis
from sfumato.data.lazy_table import Staged
from sfumato.data.matches import Matches
from sfumato.data.portion import GroupKeys, Portion
from sfumato.grid import Ints, Lattice

if TYPE_CHECKING:
    import narwhals as nw


class Answer:
    """The small table that answers requests with the same keys, and the groups of its rows."""

    def __init__(self, table: "nw.DataFrame[Any]", groups: GroupKeys, by: Sequence[str]) -> None:
        self._table = table
        self._groups = groups
        found = groups.groups_of([table[name] for name in by]) if by else np.zeros(len(table), dtype=np.int64)
        self.groups: Ints = found

    def integers(self, name: str, null: int = 0) -> Ints:
        """A column of integers, with another one for null."""
        return np.asarray(self._table[name].fill_null(null).to_numpy()).astype(np.int64)

    def values(self, name: str) -> list[Any]:
        """A column as Python objects."""
        return list(self._table[name].to_list())

    def total(self, name: str) -> list[int]:
        """The sum of a column in every group, exactly."""
        sums = [0] * self._groups.count
        for group, value in zip(self.groups.tolist(), self.values(name), strict=True):
            if group >= 0:
                sums[group] += int(value or 0)
        return sums


Keys = dict[str, tuple[Told, "nw.Expr"]]


class Request(Protocol):
    """A question to a lazy table; equal ones are asked once."""

    @property
    def portion(self) -> Portion: ...

    @property
    def column(self) -> str: ...

    @property
    def together(self) -> Hashable:
        """Requests of which this is equal are answered by one group-by."""
        ...

    def stages(self, table: Staged, name: str) -> "list[list[nw.Expr]]":
        """Columns that keys and sums need, each stage from those before."""
        ...

    def join(self, frame: "nw.LazyFrame[Any]", table: Staged, name: str) -> "nw.LazyFrame[Any]":
        """The frame with what only a table beside it tells."""
        ...

    def keys(self, table: Staged, name: str) -> Keys:
        """What rows are grouped by, beside the keys of the groups."""
        ...

    def sums(self, table: Staged, name: str) -> "dict[str, nw.Expr]":
        """What is added up in every group, as integers."""
        ...

    def same(self, label: str) -> Hashable:
        """What tells a sum apart: equal ones are found once."""
        ...

    def needed(self, table: Staged, name: str) -> "nw.Expr | None":
        """Which rows count at all; None for all."""
        ...

    def read(self, answer: Answer, names: Mapping[str, str]) -> Any:
        """What is asked for, from the small table; names are those of its columns."""
        ...


def or_nothing(met: "nw.Expr | None", value: "nw.Expr", nothing: int) -> "nw.Expr":
    """A value of the rows that are asked about, and another integer for all others."""
    import narwhals as nw

    return value if met is None else nw.when(met).then(value).otherwise(nw.lit(nothing, dtype=nw.Int64))


@dataclass(frozen=True)
class Plain:
    """What requests have in common that need no column beside those of the table."""

    portion: Portion

    def stages(self, table: Staged, name: str) -> "list[list[nw.Expr]]":
        """Nothing."""
        return []

    def join(self, frame: "nw.LazyFrame[Any]", table: Staged, name: str) -> "nw.LazyFrame[Any]":
        """The frame itself."""
        return frame

    def keys(self, table: Staged, name: str) -> Keys:
        """The groups alone."""
        return {}

    def sums(self, table: Staged, name: str) -> "dict[str, nw.Expr]":
        """Nothing."""
        return {}

    def same(self, label: str) -> Hashable:
        """The rows that are asked about, and what is summed."""
        return self._same(label)

    def _same(self, label: str, *told: Hashable) -> Hashable:
        return self.portion.where, label, *told

    def needed(self, table: Staged, name: str) -> "nw.Expr | None":
        """All rows."""
        return None


@dataclass(frozen=True)
class SumsRequest(Plain):
    """Sums of integers in every group: those of all conditions are found by one group-by."""

    @property
    def together(self) -> Hashable:
        """All sums by the same groups."""
        return "sums", self.portion.groups

    def sums(self, table: Staged, name: str) -> "dict[str, nw.Expr]":
        """The integers, 0 for rows that are not asked about."""

        met = table.met(self.portion)
        return {
            label: or_nothing(met, expression, 0) for label, expression in self.terms(table, name).items()
        }

    def terms(self, table: Staged, name: str) -> "dict[str, nw.Expr]":
        """An integer for every row."""
        import narwhals as nw

        return {"rows": nw.lit(1, dtype=nw.Int64)}

    def read(self, answer: Answer, names: Mapping[str, str]) -> list[dict[str, int]]:
        """The sums by label, for every group."""
        totals = {label: answer.total(name) for label, name in names.items()}
        return [
            {label: total[group] for label, total in totals.items()}
            for group in range(self.portion.groups.count)
        ]


@dataclass(frozen=True)
class MatchRequest(SumsRequest):
    """How many rows there are, how many have a value, and how many meet a condition."""

    column: str
    matches: Matches | None = None

    def same(self, label: str) -> Hashable:
        """Rows are the same whatever the column."""
        told: tuple[Hashable, ...] = ()
        if label != "rows":
            told = self.column, self.matches if label == "matched" else None
        return self._same(label, *told)

    def terms(self, table: Staged, name: str) -> "dict[str, nw.Expr]":
        """One for every row of each kind."""
        import narwhals as nw

        found = {**super().terms(table, name), "present": table.present(self.column).cast(nw.Int64)}
        if self.matches is not None:
            found["matched"] = table.matching(self.column, self.matches).cast(nw.Int64)
        return found


# A point counted from the lower end of a lattice has at most so many bits.
_POINT_BITS = 39


@dataclass(frozen=True)
class LatticeRequest(SumsRequest):
    """The sums of a column's points on a lattice, counted from its lower end, and of their squares."""

    column: str
    lattice: Lattice
    squares: bool

    def same(self, label: str) -> Hashable:
        """Rows are the same whatever the column, and values whatever the lattice."""
        told: tuple[Hashable, ...] = ()
        if label != "rows":
            told = self.column, None if label == "present" else self.lattice
        return self._same(label, *told)

    def stages(self, table: Staged, name: str) -> "list[list[nw.Expr]]":
        """The points, and their parts where sums of them, or of their products, would overflow."""
        import narwhals as nw

        found, sums = LatticeAxis(self.lattice).stages(table.number(self.column), name), table.sums
        if not self._in_parts(table):
            return found
        point, unit = nw.col(f"{name}_point"), nw.lit(2.0**sums.bits)
        places = range(1, _parts(sums.bits))
        above = [point, *((point / nw.lit(2.0 ** (sums.bits * i))).floor() for i in places)]
        divided = [part.alias(f"{name}_above_{i}") for i, part in enumerate(above)]
        staged = [nw.col(f"{name}_above_{i}") for i in range(len(above))]
        parts = [low - high * unit for low, high in pairwise(staged)]
        parts = [part.alias(f"{name}_part_{i}") for i, part in enumerate([*parts, staged[-1]])]
        return [*found, divided, parts]

    def _in_parts(self, table: Staged) -> bool:
        return table.sums.bits < _POINT_BITS and (self.squares or not table.sums.whole)

    def terms(self, table: Staged, name: str) -> "dict[str, nw.Expr]":
        """The points and their squares, by the power of two that each part counts; a null adds nothing."""
        import narwhals as nw

        found = {**super().terms(table, name), "present": table.present(self.column).cast(nw.Int64)}
        point = nw.col(f"{name}_point").fill_null(0.0).cast(nw.Int64)
        parts = [point]
        if self._in_parts(table):
            count = _parts(table.sums.bits)
            parts = [nw.col(f"{name}_part_{i}").fill_null(0.0).cast(nw.Int64) for i in range(count)]
        shift = table.sums.bits
        if table.sums.whole:
            found["point_0"] = point
        else:
            found |= {f"point_{shift * i}": part for i, part in enumerate(parts)}
        if self.squares and len(parts) == 1:
            found["square_0"] = point.cast(nw.Int128) * point
        elif self.squares:
            for place in range(2 * len(parts) - 1):
                found[f"square_{shift * place}"] = _product(parts, place)
        return found

    def read(self, answer: Answer, names: Mapping[str, str]) -> list[dict[str, int]]:
        """Rows, values, and the sums of points and squares."""
        found = []
        for sums in super().read(answer, names):
            added = {"point": 0, "square": 0}
            for label, total in sums.items():
                kind, _, power = label.partition("_")
                if kind in added:
                    added[kind] += total << int(power)
            facts = {"rows": sums["rows"], "present": sums["present"]}
            found.append({**facts, "first": added["point"], "second": added["square"]})
        return found


def _parts(bits: int) -> int:
    return -(-_POINT_BITS // bits)


def _product(parts: "Sequence[nw.Expr]", place: int) -> "nw.Expr":
    """The products of parts that count the same power of two in a square."""
    pairs = [(i, place - i) for i in range(len(parts)) if i <= place - i < len(parts)]
    (first, *others) = [parts[i] * parts[j] if i == j else parts[i] * parts[j] * 2 for i, j in pairs]
    for other in others:
        first = first + other
    return first
