"""A table in memory: its columns, admitted by their types, and how its parts are read."""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from sfumato.data.admission import admit
from sfumato.data.column import Column
from sfumato.data.conditions import ColumnRef, Condition, Filter
from sfumato.data.expression_values import derived
from sfumato.data.expressions import Expression
from sfumato.data.file_types import is_sorted_out
from sfumato.data.groups import Key
from sfumato.data.portion import GroupKeys
from sfumato.data.selection import Selections
from sfumato.errors import SchemaMismatch
from sfumato.grid import Ints
from sfumato.laws import Bits

T = TypeVar("T")

DISTINCT = "frame must have distinct column names, but two are the same as text"


class MemoryTable:
    """Columns in memory by name; only a reading looks at their values, but for those of Python lists."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = dict(columns)
        # A list has its type in its values, and so is read here, once; other columns know theirs.
        self._admitted: dict[str, Column] = {
            name: admit(values, name)
            for name, values in self._columns.items()
            if isinstance(values, list | tuple | range)
        }
        self._derived: dict[str, Expression] = {}
        self._selections = Selections(None, 1)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._columns)

    @property
    def copies(self) -> Mapping[str, Any]:
        """Copies of the columns by name, of the types given."""
        return _Copies(self._columns)

    def bound(self, ids: str, rows: int, groups: int | None) -> None:
        """Keep at most so many rows of every id, in at most so many groups of a question."""
        self._selections = Selections(self.column(ids), rows, groups)

    def tells_apart(self, name: str) -> bool:
        """Whether a column holds what was stored, and not one word for all that no category lists."""
        return not is_sorted_out(getattr(self._columns.get(name), "dtype", None))

    def derive(self, name: str, expression: Expression) -> None:
        """Add a column that is computed from others."""
        self._derived[name] = expression

    def column(self, name: ColumnRef) -> Column:
        """The column with all its rows, admitted by its type; its values are not read."""
        if isinstance(name, Filter):
            # Of one question: kept here, those of all questions would add up.
            return self._computed(name.expression, name.expression.words)
        if name not in self._admitted:
            made = self._derived.get(name)
            self._admitted[name] = (
                admit(self._columns[name], name) if made is None else self._computed(made, name)
            )
        return self._admitted[name]

    def _computed(self, made: Expression, name: str) -> Column:
        return derived(made, {each: self.column(each) for each in made.columns}, name)

    def fingerprint(self, key: bytes) -> str:
        """A keyed hash of some of the content."""
        from sfumato.data.files import frame_fingerprint  # Polars comes with it

        # A list that was admitted is not read as a whole again.
        return frame_fingerprint(
            {name: self._admitted.get(name, self._columns[name]) for name in self._columns}, key
        )

    def reading(self, bits: Bits, columns: Iterable[ColumnRef]) -> "MemoryReading":
        """The table, to be read after a charge; columns are read when they are asked for."""
        return MemoryReading(self, self._selections, bits)


class MemoryReading:
    """What one answer reads of a table in memory, part by part."""

    def __init__(self, table: MemoryTable, selections: Selections, bits: Bits) -> None:
        self._table, self._selections, self._bits = table, selections, bits

    def parts(self, name: str, where: Sequence[Condition], groups: GroupKeys) -> tuple[Column, ...]:
        """The column in each group, of the rows that meet the conditions."""
        columns = [self._table.column(by) for by in groups.by]
        grouped = tuple((column, groups.values(place)) for place, column in enumerate(columns))
        return self._selections.split(
            self._table.column(name),
            self._tested(where),
            grouped,
            self._bits,
            keys=groups.keys,
            other=groups.other,
        )

    def _tested(self, where: Sequence[Condition]) -> tuple[tuple[Condition, Column], ...]:
        return tuple((condition, self._table.column(condition.column)) for condition in where)

    def found_keys(
        self, by: Sequence[str], where: Sequence[Condition], least: int, among: tuple[Key, ...] | None = None
    ) -> tuple[Sequence[Key], Ints]:
        """The keys that rows have which meet the conditions, in order, and how many units each has."""
        columns = tuple(self._table.column(name) for name in by)
        return self._selections.found(columns, self._tested(where), self._bits)

    def settled(self, makers: Iterable[Callable[[], T]]) -> Iterator[T]:
        """What every maker gives, one after the other, so that one is held at a time."""
        return (make() for make in makers)


class _Copies(Mapping[str, Any]):
    """Columns by name, each copied when it is asked for, so that no code can change the data by them."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self._columns = columns

    def __getitem__(self, name: str) -> Any:
        return copy.deepcopy(self._columns[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def columns_of(frame: Any) -> dict[str, Any]:
    """The columns of a mapping of arrays of one length."""
    pairs = [(str(name), values) for name, values in frame.items()]
    if len({_length(name, values) for name, values in pairs}) > 1:
        raise SchemaMismatch("frame must have columns of one length, got several lengths")
    return named(pairs)


def _length(name: str, values: Any) -> int:
    try:
        return len(values)
    except TypeError:
        raise SchemaMismatch(f"column {name!r} must be an array, got {type(values).__name__}") from None


def named(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Columns by name, or a refusal where two have one."""
    columns = dict(pairs)
    if len(columns) < len(pairs):
        raise SchemaMismatch(DISTINCT)
    return columns
