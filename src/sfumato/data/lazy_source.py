"""A lazy table as the source of a data set: its columns before a charge, its passes after it."""

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sfumato.data.column import Column
from sfumato.data.conditions import ColumnRef, Condition
from sfumato.data.engines import engine_name, guarded
from sfumato.data.expressions import Expression
from sfumato.data.file_types import is_sorted_out
from sfumato.data.found_keys import key_or_null, lazy_found_keys
from sfumato.data.groups import Key
from sfumato.data.lazy_column import LazyColumn
from sfumato.data.lazy_contributions import KEY_BYTES, bounded, bounded_groups, bounded_listed, secret_key
from sfumato.data.lazy_table import LazyTable
from sfumato.data.passes import Passes
from sfumato.data.portion import GroupKeys, Portion
from sfumato.errors import MissingExtra, NotSupported
from sfumato.grid import Ints
from sfumato.laws import Bits

if TYPE_CHECKING:
    import narwhals as nw

T = TypeVar("T")

_MET = "sfumato_met"


class LazySource:
    """A table in an engine; rows of units are chosen by a hash with a secret key that is drawn once."""

    def __init__(self, frame: "nw.LazyFrame[Any]") -> None:
        engine = engine_name(frame)
        if engine in ("duckdb", "spark") and find_spec("pyarrow") is None:
            # Its answers come as Arrow tables; to find that out after a charge would waste it.
            raise MissingExtra(
                f'tables of {engine} need the package pyarrow: pip install "sfumato[{engine}]"'
            )
        self._table = LazyTable(frame)
        self._unit: tuple[str, int] | None = None
        self._groups: int | None = None
        # By whether the bits were private: what test bits chose protects nobody.
        self._keys: dict[bool, bytes] = {}
        self._lock = Lock()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._table.dtypes)

    @property
    def copies(self) -> Mapping[str, Any]:
        """Columns in an engine are not handed out."""
        raise NotSupported("scores need a table in memory, got one in an engine")

    def bound(self, ids: str, rows: int, groups: int | None) -> None:
        """Keep at most so many rows of every id, in at most so many groups of a question."""
        self._unit, self._groups = (ids, rows), groups

    def tells_apart(self, name: str) -> bool:
        """Whether a column holds what was stored, and not one word for all that no category lists."""
        return not is_sorted_out(self._table.dtypes[name])

    def derive(self, name: str, expression: Expression) -> None:
        """Add a column that is computed from others."""
        self._table.derive(name, expression)

    def column(self, name: ColumnRef) -> Column:
        """The column with all its rows; its values are not read."""
        return LazyColumn(self._table, name)

    def fingerprint(self, key: bytes) -> str:
        """A keyed hash of the names and types, which are all that is known without a pass."""
        found = hashlib.blake2b(digest_size=32, key=key, person=b"lazy")
        for name, dtype in sorted(self._table.dtypes.items()):
            found.update(f"{name}\0{dtype}\0".encode(errors="backslashreplace"))
        return found.hexdigest()

    def reading(self, bits: Bits, columns: Iterable[ColumnRef]) -> "LazyReading":
        """Some columns of the table, to be read after a charge by passes."""
        if self._unit is None:
            return LazyReading(self._table, None, columns)
        # One thread at a time, so that the key is drawn once.
        with self._lock:
            if bits.private not in self._keys:
                # A choice that protects nobody takes no seeded bits from the draws that follow it.
                self._keys[bits.private] = secret_key(bits) if bits.private else bytes(KEY_BYTES)
            key = self._keys[bits.private]
        return LazyReading(self._table, Units(*self._unit, self._groups, key), columns)


@dataclass(frozen=True)
class Units:
    """Whose rows are bounded: the ids, how many rows and groups of each are kept, and the secret key."""

    ids: str
    rows: int
    groups: int | None
    key: bytes


class LazyReading:
    """What one answer reads of a lazy table: one pass for all that is asked in a round."""

    def __init__(self, table: LazyTable, units: Units | None, columns: Iterable[ColumnRef]) -> None:
        self._table, self._units = table, units
        needed = [*columns] if units is None else [*columns, units.ids]
        # Rows are chosen by what these columns hold, and by ids that are computed from it. No other column is
        # read: a value that an engine cannot read would fail an answer that is not about it.
        frame = self._frame = guarded(table.frame, lambda: table.only(needed))
        if units is not None and table.kind(units.ids) == "unknown":
            # A type that holds nulls alone has no ids, and rows without one are left out.
            self._units, self._frame = None, guarded(frame, lambda: frame.head(0))
        elif units is not None:
            ids = table.inside(units.ids)
            self._frame = guarded(
                frame, lambda: bounded(table.read(frame, [units.ids]), ids, units.rows, units.key)
            )
        self._bounded: dict[GroupKeys, nw.LazyFrame[Any]] = {}
        self._keys: dict[Hashable, tuple[Sequence[Key], Ints]] = {}
        self.passes = Passes(table, self._frame_of)

    def _frame_of(self, groups: GroupKeys) -> "nw.LazyFrame[Any]":
        """The rows that a question by these groups reads: those of each unit in so many groups."""
        units = self._units
        if units is None or units.groups is None or not groups.by:
            return self._frame
        if groups not in self._bounded:
            values, most = self._table.keys(groups), units.groups

            def chosen() -> "nw.LazyFrame[Any]":
                table, held = self._table, self._table.base
                frame, ids = table.read(self._frame, [units.ids, *groups.by]), table.inside(units.ids)
                found = bounded_listed(frame, ids, values, groups.keys, most, units.key, other=groups.other)
                # What is computed is computed anew for a pass, with all else that it needs.
                return found.select(*(name for name in found.collect_schema().names() if name in held))

            self._bounded[groups] = guarded(self._frame, chosen)
        return self._bounded[groups]

    def parts(self, name: str, where: Sequence[Condition], groups: GroupKeys) -> tuple[Column, ...]:
        """The column in each group, of the rows that meet the conditions."""
        portion = Portion(tuple(where), groups)
        return tuple(
            LazyColumn(self._table, name, self.passes.ask, portion, group) for group in range(groups.count)
        )

    def settled(self, makers: Iterable[Callable[[], T]]) -> Iterator[T]:
        """What every maker gives, after as many passes as one of them needs."""
        return iter(self.passes.settled(list(makers)))

    def found_keys(
        self, by: Sequence[str], where: Sequence[Condition], least: int, among: tuple[Key, ...] | None = None
    ) -> tuple[Sequence[Key], Ints]:
        """The keys that rows have which meet the conditions, in order, and how many units each has.

        Of public keys no others cross over than those of their values.
        """
        asked = tuple(by), tuple(where), least, among
        if asked not in self._keys:
            self._keys[asked] = guarded(self._frame, lambda: self._found(by, where, least, among))
            self.passes.count += 1
        return self._keys[asked]

    def _found(
        self, by: Sequence[str], where: Sequence[Condition], least: int, among: tuple[Key, ...] | None
    ) -> tuple[list[Key], Ints]:
        import narwhals as nw

        if any(self._table.kind(name) == "unknown" for name in by):
            # A type that holds nulls alone has no keys, and some engines cannot group by it.
            return [], np.zeros(0, dtype=np.int64)
        table, portion, units = self._table, Portion(tuple(where)), self._units
        told_apart = [*by] if units is None else [*by, units.ids]
        frame = table.read(self._frame, [*told_apart, *portion.columns])
        dtypes = {table.inside(name): table.dtypes[name] for name in told_apart}
        keys, ids = [table.inside(name) for name in by], None if units is None else table.inside(units.ids)
        if units is not None and ids is not None and units.groups is not None:
            # Rows of no key would take the place of a group.
            for name in keys:
                frame = frame.filter(~key_or_null(name, dtypes[name]).is_null())
            frame = bounded_groups(frame, ids, keys, units.groups, units.key)
        met = table.met(portion)
        if met is not None:
            # As a column first: a condition on a column of nulls is a constant, by which Polars does not
            # filter.
            frame = frame.with_columns(met.alias(_MET)).filter(nw.col(_MET))
        for listed in table.keys(GroupKeys(tuple(by), among)) if among is not None else ():
            frame = frame.filter(~listed.is_null())
        return lazy_found_keys(frame, keys, dtypes, ids, least)
