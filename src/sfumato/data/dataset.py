"""A data set: a frame of private data with the public facts that every release of it rests on."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.checks import Number, one_of, pair, shown
from sfumato.data.admission import admit
from sfumato.data.column import Category, Column, checked_categories
from sfumato.data.counts import NULL_RULES, NullRule
from sfumato.errors import InvalidParameter, SchemaMismatch
from sfumato.grid import exact_bounds
from sfumato.privacy import Neighbours, check_neighbours

DISTINCT = "frame must have distinct column names, but two are the same as text"


@dataclass(frozen=True)
class Field:
    """The public facts of one column: bounds or categories, and what becomes of nulls.

    Guarantee:
        Holds what you declare and never looks at the data; a wrong declaration is refused at once.

    Args:
        bounds: (lower, upper) of a numeric column, from public knowledge.
        categories: the public list of values of a text, integer or boolean column.
        nulls: "drop", "lower" or "upper"; see `sfumato.Mean`.

    >>> Field(bounds=(0, 120), nulls="drop")
    Field(bounds=(0, 120), categories=None, nulls='drop')
    """

    bounds: tuple[Number, Number] | None = None
    categories: tuple[Category, ...] | None = None
    nulls: NullRule | None = None

    def __post_init__(self) -> None:
        if self.bounds is not None:
            exact_bounds(*pair("bounds", self.bounds))
        if self.categories is not None:
            object.__setattr__(self, "categories", checked_categories("categories", self.categories))
        if self.nulls is not None:
            one_of("nulls", self.nulls, NULL_RULES)


class Dataset:
    """A table of private data, its privacy unit and its neighbour relation.

    Guarantee:
        Nothing here reads a value, except that a Python list is read once, when the data set is made.

    Args:
        frame: a pandas, Polars or PyArrow table, or a mapping from names to arrays.
        unit: whose privacy is protected: "row" means that each row is one person.
        neighbours: "substitution" (the number of rows is public) or "add-remove" (it is private).
        schema: the public facts of the columns; what is not given here can be given in a query.
        name: the public name that budgets attach to.

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
    ) -> None:
        self.unit = one_of("unit", unit, ("row",))
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
        self.schema = dict(schema or {})
        for column, field in self.schema.items():
            if not isinstance(field, Field):
                raise InvalidParameter(f"schema must map names to Field, got {shown(field)} for {column!r}")
            self._require(column)

    def column(self, name: str) -> Column:
        """The column, admitted by its type when the data set was made; its values are not read."""
        self._require(name)
        if name not in self._admitted:
            self._admitted[name] = admit(self._columns[name], name)
        return self._admitted[name]

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
