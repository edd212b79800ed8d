"""A data set: a frame of private data with the public facts that every release of it rests on."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from sfumato.checks import shown, whole
from sfumato.data.admission import admit
from sfumato.data.column import Category, Column
from sfumato.data.conditions import Condition, category_words, check_condition, read_conditions
from sfumato.data.field import STORED, Field
from sfumato.data.groups import Key, all_keys, read_by
from sfumato.data.part import Part
from sfumato.data.selection import Selections
from sfumato.errors import InvalidParameter, SchemaMismatch
from sfumato.laws import Bits
from sfumato.privacy import Neighbours, check_neighbours

DISTINCT = "frame must have distinct column names, but two are the same as text"
MAX_ROWS_PER_UNIT = 1_000_000

# The public facts that every charge rests on.
_FACTS = ("unit", "rows_per_unit", "neighbours", "name", "schema")


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
    ) -> None:
        self.neighbours = check_neighbours(neighbours)
        if not _is_name(name):
            raise InvalidParameter(f"name must be 1 to 200 printable characters, got name={shown(name)}")
        self.name = name
        self._columns = _columns(frame)
        # A list has its type in its values, and so is read here, once; other columns know theirs.
        self._admitted: dict[str, Column] = {
            column: admit(values, column)
            for column, values in self._columns.items()
            if isinstance(values, list | tuple | range)
        }
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
        ids = None if self.rows_per_unit is None else self.column(unit)
        self._selections = Selections(ids, self.rows_per_unit or 1)

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
            if "row" in self._columns:
                raise InvalidParameter(
                    "unit='row' means that each row is one person, but a column is named 'row' too: rename it"
                )
            return None
        if not isinstance(unit, str) or unit not in self._columns:
            known = ", ".join(map(repr, list(self._columns)[:20])) or "none"
            raise InvalidParameter(
                f"unit must be 'row' or the name of an id column, got unit={shown(unit)}; "
                f"the columns are {known}"
            )
        if most is None:
            raise InvalidParameter("rows_per_unit must be given with an id column, got rows_per_unit=None")
        self.column(unit).require("integer", "real", "text", hint="; an id column needs one of these")
        return whole("rows_per_unit", most, least=1, most=MAX_ROWS_PER_UNIT)

    def column(self, name: str) -> Column:
        """The column with all its rows, admitted by its type; its values are not read."""
        self._require(name)
        if name not in self._admitted:
            self._admitted[name] = admit(self._columns[name], name)
        column, declared = self._admitted[name], self.field(name).kind
        if declared is not None and column.kind not in (*STORED[declared], "unknown"):
            raise SchemaMismatch(f"column {name!r} is declared {declared}, but it stores {column.kind}")
        return column

    def require(self, where: Mapping[str, Any] | None = None, by: Sequence[str] = ()) -> None:
        """Refuse conditions and groups that the public facts rule out; no value is read.

        Raises:
            InvalidParameter: a condition is no declared category, or a grouping column declares none.
            SchemaMismatch: a column is missing, or of a kind that the condition does not apply to.
        """
        self._conditions(where)
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

    def part(
        self, where: Mapping[str, Any] | None = None, by: Sequence[str] = (), key: Key | None = None
    ) -> Part:
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
        among = tuple((condition.column, condition.words) for condition in self._conditions(where))
        names = read_by(by)
        if key is not None:
            among += self._group(names, key)
        # Replacing a unit takes its rows out and puts others in.
        times = 2 if self.neighbours == "substitution" else 1
        if self.rows_per_unit is not None:
            return Part(changes=times * self.rows_per_unit, among=among)
        return Part(changes=2 if names and times == 2 else None, among=among)

    def parts(
        self, column: str, *, where: Mapping[str, Any] | None = None, by: Sequence[str] = (), bits: Bits
    ) -> tuple[Column, ...]:
        """The column in each group, in the order of `keys`: rows that meet the conditions, bounded per unit.

        Reads private data, and so comes after the charge. The rows of the units are chosen when they are
        first asked for, by `bits`, and stay chosen; what test bits chose is never used by private ones.
        """
        conditions, names = self._conditions(where), read_by(by)
        self.keys(names)
        values = self.column(column)
        tested = tuple((condition, self.column(condition.column)) for condition in conditions)
        grouped = tuple((self.column(name), self._categories(name)) for name in names)
        return self._selections.split(values, tested, grouped, bits)

    def fingerprint(self, key: bytes) -> str:
        """A keyed hash of some of the content, by which a ledger knows it again under another name."""
        from sfumato.data.files import frame_fingerprint  # Polars comes with it

        return frame_fingerprint(self._columns, key)

    def facts(self, where: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """All public facts that decide which rows count, exactly, in JSON's types."""
        conditions = [[condition.column, *condition.matches.facts()] for condition in self._conditions(where)]
        return {"unit": self.unit, "rows_per_unit": self.rows_per_unit, "where": conditions}

    def _conditions(self, where: Mapping[str, Any] | None) -> tuple[Condition, ...]:
        conditions = read_conditions({} if where is None else where)
        for condition in conditions:
            column = self.column(condition.column)
            check_condition(condition, column, self.field(condition.column).categories)
        return conditions

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
        return _Copies(self._columns)

    def field(self, name: str) -> Field:
        """The declared public facts of a column, empty if it is not in the schema."""
        return self.schema.get(name, Field())

    def _require(self, name: object) -> None:
        if not isinstance(name, str) or name not in self._columns:
            known = ", ".join(map(repr, list(self._columns)[:20])) or "none"
            raise SchemaMismatch(f"column {shown(name)} is not in the data, whose columns are {known}")


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


def _is_name(name: object) -> bool:
    return isinstance(name, str) and 1 <= len(name) <= 200 and name.isprintable()


def _columns(frame: Any) -> dict[str, Any]:
    if isinstance(frame, Mapping):
        pairs = [(str(name), values) for name, values in frame.items()]
        if len({_length(name, values) for name, values in pairs}) > 1:
            raise SchemaMismatch("frame must have columns of one length, got several lengths")
        return _named(pairs)
    import narwhals as nw

    try:
        table = nw.from_native(frame, eager_only=True)
        pairs = [(str(column.name), column.to_native()) for column in table.iter_columns()]
    except nw.exceptions.DuplicateError:
        raise SchemaMismatch(DISTINCT) from None
    except TypeError:
        raise SchemaMismatch(
            "frame must be a pandas, Polars or PyArrow table or a mapping of arrays, "
            f"got {type(frame).__name__}"
        ) from None
    return _named(pairs)


def _length(name: str, values: Any) -> int:
    try:
        return len(values)
    except TypeError:
        raise SchemaMismatch(f"column {name!r} must be an array, got {type(values).__name__}") from None


def _named(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    columns = dict(pairs)
    if len(columns) < len(pairs):
        raise SchemaMismatch(DISTINCT)
    return columns
