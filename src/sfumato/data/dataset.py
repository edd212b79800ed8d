"""A data set: a frame of private data with the public facts that every release of it rests on."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.checks import checked_text, shown, whole
from sfumato.data.column import Category, Column
from sfumato.data.conditions import Condition, Filter, category_words, check_condition, read_conditions
from sfumato.data.expressions import Expression
from sfumato.data.field import Field
from sfumato.data.found_keys import require_keys
from sfumato.data.groups import Key, all_keys, read_by
from sfumato.data.matches import Matches
from sfumato.data.memory_table import DISTINCT, MemoryReading, MemoryTable, columns_of, named
from sfumato.data.part import Part, groups_changed
from sfumato.data.portion import GroupKeys
from sfumato.errors import InvalidParameter, SchemaMismatch
from sfumato.grid import Ints
from sfumato.laws import Bits
from sfumato.privacy import Neighbours, check_neighbours
from sfumato.privacy.records import short_text

if TYPE_CHECKING:
    from sfumato.data.lazy_source import LazyReading, LazySource

MAX_ROWS_PER_UNIT = 1_000_000

Where = Mapping[str, Any] | Expression | None

# The public facts that every charge rests on.
_FACTS = ("unit", "rows_per_unit", "groups_per_unit", "derived", "neighbours", "name", "schema")


class Dataset:
    """A table of private data, its privacy unit and its neighbour relation.

    Guarantee:
        Only `parts` reads values, except that a Python list is read once, when the data set is made. Where
        units have several rows, at most `rows_per_unit` of each are kept, by a secret uniform choice that is
        made once. Proof: docs/proofs/contributions.md.

    Args:
        frame: a pandas, Polars or PyArrow table, or a mapping from names to arrays.
        unit: whose privacy is protected: "row" means that each row is one person; the name of an id column
            (integer or text, or reals that are whole numbers) means that the rows of one id are. Rows with
            no id are left out.
        neighbours: "substitution" (the number of rows is public) or "add-remove" (it is private).
        schema: the public facts of the columns; what is not given here can be given in a query.
        name: the public name that budgets attach to.
        rows_per_unit: how many rows of each id are kept, at most; with an id column only.
        groups_per_unit: in how many groups of a question the rows of each id are kept, at most.
        derived: columns that are computed from others, by name: `{"hourly": col("pay") / col("hours")}`.

    Raises:
        InvalidParameter: a public fact is missing or wrong.
        SchemaMismatch: the frame is no table, or lacks a column of the schema.

    >>> schema = {"age": Field(bounds=(0, 120))}
    >>> data = Dataset({"age": [31, 45]}, unit="row", neighbours="add-remove", schema=schema)
    >>> data.column("age").kind
    'real'
    """

    def __init__(
        self,
        frame: Any,
        *,
        unit: str,
        neighbours: Neighbours,
        schema: Mapping[str, Field] | None = None,
        name: str = "data",
        rows_per_unit: int | None = None,
        groups_per_unit: int | None = None,
        derived: Mapping[str, Expression] | None = None,
    ) -> None:
        self.neighbours = check_neighbours(neighbours)
        if not _is_name(name):
            raise InvalidParameter(f"name must be 1 to 200 printable characters, got name={shown(name)}")
        self.name = name
        self._table = _table(frame)
        self._names = self._table.names
        self.derived: Mapping[str, Expression] = MappingProxyType(self._derive(derived))
        if not isinstance(schema, Mapping | None):
            raise InvalidParameter(f"schema must map names to Field, got schema={shown(schema)}")
        self.schema: Mapping[str, Field] = MappingProxyType(dict(schema or {}))
        for column, field in self.schema.items():
            if not isinstance(field, Field):
                raise InvalidParameter(f"schema must map names to Field, got {shown(field)} for {column!r}")
            self._require(column)
            if field.kind is not None:
                self.column(column)
        self.unit, self.rows_per_unit = unit, self._bounded(unit, rows_per_unit)
        self.groups_per_unit = self._bounded_groups(groups_per_unit)
        if self.rows_per_unit is not None:
            self._table.bound(unit, self.rows_per_unit, self.groups_per_unit)

    def __setattr__(self, name: str, value: object) -> None:
        # What is calibrated for one unit must not be drawn from rows that were bounded for another.
        if name in _FACTS and name in self.__dict__:
            raise AttributeError(f"{name} of a data set is fixed when it is made")
        super().__setattr__(name, value)

    def _bounded(self, unit: object, most: object) -> int | None:
        if unit == "row":
            if most is not None:
                raise InvalidParameter(
                    f"rows_per_unit must be None for unit='row', got rows_per_unit={shown(most)}"
                )
            # Whether each row is a person, or each id of this column, decides what is protected.
            if "row" in self._names:
                raise InvalidParameter(
                    "unit='row' means that each row is one person, but a column is named 'row' too: rename it"
                )
            return None
        if not isinstance(unit, str) or unit not in self._names:
            known = ", ".join(map(repr, self._names[:20])) or "none"
            raise InvalidParameter(
                f"unit must be 'row' or the name of an id column, got unit={shown(unit)}; "
                f"the columns are {known}"
            )
        short_text("unit", unit)
        if most is None:
            raise InvalidParameter("rows_per_unit must be given with an id column, got rows_per_unit=None")
        self.column(unit).require("integer", "real", "text", hint="; an id column needs one of these")
        if not self._table.tells_apart(unit):
            # People whose ids are not listed would share the rows of one, and each could sway all of them.
            raise InvalidParameter(
                f"unit must name a column of ids as they are stored, got unit={shown(unit)}, which was read "
                "from a file with declared categories, so that all other ids are one: read it without them"
            )
        return whole("rows_per_unit", most, least=1, most=MAX_ROWS_PER_UNIT)

    def _derive(self, derived: object) -> dict[str, Expression]:
        if not isinstance(derived, Mapping | None):
            raise InvalidParameter(f"derived must map names to expressions, got derived={shown(derived)}")
        made = dict(derived or {})
        for name, expression in made.items():
            if not _is_name(name) or not isinstance(expression, Expression):
                raise InvalidParameter(f"derived must map names to expressions, got {shown(expression)}")
            if name in self._names:
                raise InvalidParameter(f"derived must have new names, but a column is named {name!r} too")
            for used in expression.columns:
                self._require(used)
            self._table.derive(name, expression)
            self._names = (*self._names, name)
            self._table.column(name)
        return made

    def _filter(self, expression: Expression) -> Condition:
        """A condition on several columns."""
        for name in expression.columns:
            self.column(name)
        condition = Condition(Filter(expression), Matches(), expression.words)
        condition.matches.require(self._table.column(condition.column))
        return condition

    def _bounded_groups(self, most: object) -> int | None:
        if most is None:
            return None
        if self.rows_per_unit is None:
            raise InvalidParameter(
                f"groups_per_unit must be None for unit='row', got groups_per_unit={shown(most)}"
            )
        return whole("groups_per_unit", most, least=1, most=MAX_ROWS_PER_UNIT)

    def column(self, name: str) -> Column:
        """The column with all its rows, admitted by its type; its values are not read."""
        self._require(name)
        column, declared = self._table.column(name), self.field(name)
        if not declared.holds(column):
            raise SchemaMismatch(f"column {name!r} is declared {declared.kind}, but it stores {column.holds}")
        return column

    def require(self, where: Where = None, by: Sequence[str] = ()) -> None:
        """Refuse conditions and groups that the public facts rule out; no value is read.

        Raises:
            InvalidParameter: a condition is no declared category, or a grouping column declares none.
            SchemaMismatch: a column is missing, or of a kind that the condition does not apply to.
        """
        self.conditions(where)
        self.keys(by)

    def keys(self, by: Sequence[str] = ()) -> tuple[Key, ...]:
        """Every combination of the declared categories of some columns; one empty key for none.

        Raises:
            InvalidParameter: a column declares no categories, or there are more than 10,000 groups.

        >>> schema = {"team": Field(categories=("red", "blue"))}
        >>> data = Dataset({"team": ["red"]}, unit="row", neighbours="add-remove", schema=schema)
        >>> data.keys(["team"])
        (('red',), ('blue',))
        """
        return all_keys([self._categories(name) for name in read_by(by)])

    def part(self, where: Where = None, by: Sequence[str] = (), key: Key | None = None) -> Part:
        """What the calibration of a query must know of a part of the rows; no value is read.

        Args:
            where: the rows that count, as public conditions on columns.
            by: the columns that make the groups.
            key: the one group that is meant, as a tuple of categories of these columns.

        >>> schema = {"team": Field(categories=("red", "blue"))}
        >>> data = Dataset({"team": ["red"]}, unit="row", neighbours="substitution", schema=schema)
        >>> data.part(by=["team"], key=("red",))
        Part(changes=2, among=(('team', 'red'),))
        """
        among = tuple((each.about, each.words) for each in self.conditions(where))
        names = read_by(by)
        if key is not None:
            among += self._group(names, key)
        # Replacing a unit takes its rows out and puts others in.
        times = 2 if self.neighbours == "substitution" else 1
        if self.rows_per_unit is not None:
            return Part(changes=times * self.rows_per_unit, among=among)
        return Part(changes=2 if names and times == 2 else None, among=among)

    def reading(self, bits: Bits, columns: Iterable[tuple[str, Where, Sequence[str]]]) -> "Reading":
        """The data, to be read for one answer; comes after the charge.

        The rows of the units are chosen when they are first read, by `bits`, and stay chosen; what test bits
        chose is never used by private ones.

        Args:
            bits: what chooses rows of units.
            columns: of each question the column, the conditions and the columns that make the groups.
        """
        read = [
            name
            for column, where, by in columns
            for name in (column, *by, *(condition.column for condition in self.conditions(where)))
        ]
        return Reading(self, self._table.reading(bits, read))

    def parts(
        self, column: str, *, where: Where = None, by: Sequence[str] = (), bits: Bits
    ) -> tuple[Column, ...]:
        """The column in each group, in the order of `keys`: rows that meet the conditions, bounded per unit.

        Reads private data, and so comes after the charge.
        """
        groups = GroupKeys(read_by(by), self.keys(by))
        return self.reading(bits, [(column, where, by)]).parts(column, where, groups)

    def fingerprint(self, key: bytes) -> str:
        """A keyed hash of some of the content, by which a ledger knows it again under another name."""
        return self._table.fingerprint(key)

    def facts(self, where: Where = None) -> dict[str, Any]:
        """All public facts that decide which rows count, exactly, in JSON's types."""
        conditions = [
            ["expression", where.facts()]
            if isinstance(where, Expression)
            else [condition.column, *condition.matches.facts()]
            for condition in self.conditions(where)
        ]
        facts: dict[str, Any] = {"unit": self.unit, "rows_per_unit": self.rows_per_unit, "where": conditions}
        if self.groups_per_unit is not None:
            facts["groups_per_unit"] = self.groups_per_unit
        if self.derived:
            facts["derived"] = {name: made.facts() for name, made in self.derived.items()}
        return facts

    def conditions(self, where: Where) -> tuple[Condition, ...]:
        """The public conditions of a mapping, or a refusal of those that the facts rule out."""
        if isinstance(where, Expression):
            return (self._filter(where),)
        conditions = read_conditions({} if where is None else where)
        for condition in conditions:
            column = self.column(condition.about)
            check_condition(condition, column, self.field(condition.about).categories)
        return conditions

    @property
    def moved_keys(self) -> int:
        """How many keys one person can move by one: leave, join, or both."""
        replaced = self.neighbours == "substitution"
        return groups_changed(self.rows_per_unit, self.groups_per_unit, replaced=replaced)

    def require_keys(self, by: Sequence[str]) -> None:
        """Refuse columns that can be no keys, by their public kind."""
        require_keys([self.column(name) for name in read_by(by)])

    def _categories(self, name: str) -> tuple[Category, ...]:
        column, categories = self.column(name), self.field(name).categories
        if categories is None:
            raise InvalidParameter(
                "by must name columns with declared categories, since groups are never read from data, "
                f"got {name!r}"
            )
        column.require_categories(categories)
        return categories

    def _group(self, names: tuple[str, ...], key: object) -> tuple[tuple[str, str], ...]:
        if not isinstance(key, tuple) or len(key) != len(names):
            raise InvalidParameter(
                f"key must be a tuple with a category of each of {names}, got key={shown(key)}"
            )
        for name, value in zip(names, key, strict=True):
            categories = self._categories(name)
            if type(value) is not type(categories[0]) or value not in categories:
                raise InvalidParameter(
                    f"key must hold a declared category of column {name!r}, got {shown(value)}"
                )
        return tuple((name, category_words(value)) for name, value in zip(names, key, strict=True))

    @property
    def columns(self) -> Mapping[str, Any]:
        """Copies of the columns by name, of the types given, for code that computes scores from them."""
        return self._table.copies

    def field(self, name: str) -> Field:
        """The declared public facts of a column, empty if it is not in the schema."""
        return self.schema.get(name, Field())

    def _require(self, name: object) -> None:
        if not isinstance(name, str) or name not in self._names:
            known = ", ".join(map(repr, self._names[:20])) or "none"
            raise SchemaMismatch(f"column {shown(name)} is not in the data, whose columns are {known}")
        # A name that is asked about is charged for, stored and shown.
        checked_text("column", name)


class Reading:
    """What one answer reads: the columns of parts, and whatever is made of them in rounds."""

    def __init__(self, data: Dataset, table: "MemoryReading | LazyReading") -> None:
        self._data, self._table = data, table
        self.settled = table.settled

    def parts(self, column: str, where: Where, groups: GroupKeys) -> tuple[Column, ...]:
        """The column in each group: rows that meet the conditions, bounded per unit."""
        return self._table.parts(column, self._data.conditions(where), groups)

    def counted_keys(
        self,
        by: Sequence[str],
        where: Where,
        keys: tuple[Key, ...] | None,
        least: int,
    ) -> tuple[Sequence[Key], Ints]:
        """How many units have each of some keys, or each key that the data hold in `least` units or more."""
        found, counts = self._table.found_keys(by, self._data.conditions(where), least, keys)
        if keys is None:
            return found, counts
        units = dict(zip(found, counts.tolist(), strict=True))
        return keys, np.array([units.get(key, 0) for key in keys], dtype=np.int64)


def _is_name(name: object) -> bool:
    return isinstance(name, str) and 1 <= len(name) <= 200 and name.isprintable()


def _table(frame: Any) -> "MemoryTable | LazySource":
    if isinstance(frame, Mapping):
        return MemoryTable(columns_of(frame))
    import narwhals as nw

    try:
        table = nw.from_native(frame)
        lazy = isinstance(table, nw.LazyFrame)
        pairs = [] if lazy else [(str(column.name), column.to_native()) for column in table.iter_columns()]
    except nw.exceptions.DuplicateError:
        raise SchemaMismatch(DISTINCT) from None
    except TypeError:
        raise SchemaMismatch(
            "frame must be a pandas, Polars, PyArrow, DuckDB or Spark table or a mapping of arrays, "
            f"got {type(frame).__name__}"
        ) from None
    if not lazy:
        return MemoryTable(named(pairs))
    from sfumato.data.lazy_source import LazySource

    return LazySource(table)
