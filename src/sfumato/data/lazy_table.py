"""A table that an engine holds: its public types, and the expressions by which its columns are read there.

Every expression is the same sequence of float64 operations that a column in memory goes through, so that all
engines count the same. None of them can raise for what the data hold. Columns are asked for by the names that
the table was given; the engine knows them by names of our own (data/lazy_names.py).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sfumato.data import stored_types
from sfumato.data.codes import WHOLE_LIMIT
from sfumato.data.column import Category, Kind
from sfumato.data.conditions import ColumnRef, Filter
from sfumato.data.engines import count_rows, engine_name, guarded, null_columns, readable
from sfumato.data.expression_frames import with_expressions
from sfumato.data.expression_kinds import NUMBERS, bind
from sfumato.data.expressions import Expression
from sfumato.data.lazy_names import by_place, derived_name, filter_name, stored_name
from sfumato.data.matches import Matches
from sfumato.data.memory_table import DISTINCT
from sfumato.data.portion import GroupKeys, Portion
from sfumato.errors import SchemaMismatch

if TYPE_CHECKING:
    import narwhals as nw

# What a row counts as that is not asked about, and one without a value.
OUTSIDE, NULL = -2, -1
# Engines that tell the instants of a datetime with a time zone.
_WITH_ZONES = ("polars", "duckdb", "spark")


class LazyTable:
    """A lazy frame of private data with the public kinds of its columns; no row leaves the engine."""

    def __init__(self, frame: "nw.LazyFrame[Any]") -> None:
        placed, given = guarded(frame, lambda: by_place(frame))
        if len(set(given)) < len(given):
            raise SchemaMismatch(DISTINCT)
        self._source = frame
        self.frame = guarded(placed, lambda: readable(placed, given))
        self._inside = {name: stored_name(place) for place, name in enumerate(given)}
        self.base = frozenset(self._inside.values())
        types = guarded(placed, placed.collect_schema)
        self.dtypes: Mapping[str, Any] = {name: types[inside] for name, inside in self._inside.items()}
        self.engine = engine_name(frame)
        nulls = guarded(placed, lambda: null_columns(placed))
        self._nulls = frozenset(name for name, inside in self._inside.items() if inside in nulls)
        self._derived: dict[str, Expression] = {}
        self._rows: int | None = None

    def inside(self, name: ColumnRef) -> str:
        """What the engine calls a column; one that is computed has to be added by `read`."""
        return filter_name(name) if isinstance(name, Filter) else self._inside[name]

    def derive(self, name: str, expression: Expression) -> None:
        """Add a column that is computed from others, by the engine; before the first question."""
        self.dtypes = {**self.dtypes, name: self._computed_type(expression, f"the derived column {name!r}")}
        self._inside[name] = derived_name(len(self._derived))
        self._derived[name] = expression

    def _computed_type(self, expression: Expression, what: str) -> Any:
        import narwhals as nw

        bound = bind(expression, self._kinds(expression.columns))
        # Refused here and not when it is computed, which is after the charge.
        bound.require(*NUMBERS, "boolean", "unknown", what=f"{what} = {expression.words}")
        return nw.Boolean() if bound.is_flag else nw.Float64()

    def _kinds(self, names: Iterable[str]) -> dict[str, str]:
        """The kinds of columns as expressions know them: dates apart from numbers."""
        stored = {name: self.stored(name) for name in names}
        return {name: each.kind if each.reads == "number" else each.reads for name, each in stored.items()}

    def _needed(
        self, names: Iterable[ColumnRef]
    ) -> tuple[dict[ColumnRef, None], dict[ColumnRef, Expression]]:
        """Some columns with all that they are computed from, and what is computed, inputs first."""
        needed = dict.fromkeys(names)
        # A column may be computed from another one that is, which was added before.
        computed: dict[ColumnRef, Expression] = dict(self._derived.items())
        computed |= {each: each.expression for each in needed if isinstance(each, Filter)}
        for name in reversed(computed):
            if name in needed:
                needed |= dict.fromkeys(computed[name].columns)
        return needed, computed

    def only(self, names: Iterable[ColumnRef]) -> "nw.LazyFrame[Any]":
        """The rows of the table with no more columns than some need."""
        needed, computed = self._needed(names)
        inside = {self.inside(name) for name in needed if name not in computed}
        # A column of nulls alone is not there, and a table must keep one for its rows to be counted.
        held = [name for name in self.frame.collect_schema().names() if name in inside]
        return readable(by_place(self._source, held)[0]).select(*held) if held else self.frame

    def read(self, frame: "nw.LazyFrame[Any]", names: Iterable[ColumnRef]) -> "nw.LazyFrame[Any]":
        """Rows of the table with those of some columns that are computed from others.

        Only these: plans must not grow by the filters of earlier questions.
        """
        needed, computed = self._needed(names)
        levels: dict[ColumnRef, int] = {}
        for name, expression in computed.items():
            if name in needed:
                levels[name] = 1 + max((levels.get(used, 0) for used in expression.columns), default=0)
        for level in sorted(set(levels.values())):
            made = {self.inside(name): computed[name] for name in levels if levels[name] == level}
            frame = with_expressions(
                frame,
                made,
                self._kinds(used for expression in made.values() for used in expression.columns),
                number=self.number,
                text=self._text,
                flag=self._flag,
                engine=self.engine,
            )
        return frame

    @property
    def rows(self) -> int:
        """How many rows there are, counted when this is first asked; public under substitution alone."""
        if self._rows is None:
            self._rows = count_rows(self._source)
        return self._rows

    def stored(self, name: ColumnRef) -> stored_types.Stored:
        """The public facts of a column, by its stored type."""
        if isinstance(name, Filter):
            return stored_types.stored(name.key, self._computed_type(name.expression, "the condition"))
        found = stored_types.stored(name, self.dtypes[name], empty=name in self._nulls)
        if found.reads == "datetime" and self.engine not in _WITH_ZONES:
            # Some of these cannot be read, which is said by the name that the user knows.
            stored_types.number(name, self.dtypes[name], self.engine)
        return found

    def kind(self, name: str) -> Kind:
        """The public kind of a column."""
        return self.stored(name).kind

    def number(self, name: str) -> "nw.Expr":
        """A column as float64, null where it is null or NaN."""
        import narwhals as nw

        if name in self._nulls:
            return nw.lit(None, dtype=nw.Float64)
        return stored_types.number(self.inside(name), self.dtypes[name], self.engine)

    def _text(self, name: str) -> "nw.Expr":
        import narwhals as nw

        if name in self._nulls:
            return nw.lit(None, dtype=nw.String)
        return stored_types.text(self.inside(name), self.dtypes[name])

    def _flag(self, name: ColumnRef) -> "nw.Expr":
        import narwhals as nw

        if name in self._nulls:
            return nw.lit(None, dtype=nw.Boolean)
        dtype = nw.Boolean() if isinstance(name, Filter) else self.dtypes[name]
        return stored_types.flag(self.inside(name), dtype)

    def present(self, name: str) -> "nw.Expr":
        """Whether a row has a value."""
        if self.kind(name) == "text":
            return ~self._text(name).is_null()
        return ~self.number(name).is_null()

    def listed(self, name: str, categories: Sequence[Category]) -> "nw.Expr":
        """The value of a row that holds one of some categories, null for any other."""
        import narwhals as nw

        if name in self._nulls:
            return nw.lit(None, dtype=nw.String)
        kind, dtype = self.kind(name), self.dtypes[name]
        if kind == "text":
            value = self._text(name)
            held: list[Any] = [category for category in categories if type(category) is str]
        elif kind == "boolean":
            value = self._flag(name)
            held = [category for category in categories if type(category) is bool]
        elif kind == "real" or dtype in (nw.UInt64, nw.Int128, nw.UInt128):
            value = self.number(name)
            held = [category for category in categories if type(category) is int]
            # A real holds its categories, which are at most 2**53 in size; wider integers are told by digits.
            if kind != "real" and any(abs(category) >= WHOLE_LIMIT for category in held):
                value, held = nw.col(self.inside(name)).cast(nw.String), [str(category) for category in held]
                return nw.when(value.is_in(held)).then(value)
            found = nw.when(value.is_in([float(category) for category in held])).then(value)
            return found.cast(nw.Int64)
        else:
            value = nw.col(self.inside(name)).cast(nw.Int64)
            held = [c for c in categories if type(c) is int and -(2**63) <= c < 2**63]
        return nw.when(value.is_in(held)).then(value)

    def matching(self, name: ColumnRef, matches: Matches) -> "nw.Expr":
        """Whether a row meets a condition; a null never does."""
        import narwhals as nw

        if name in self._nulls:
            return nw.lit(False)
        if isinstance(name, Filter) or (not matches.equals and matches.between is None):
            return self._flag(name).fill_null(False)
        if matches.between is None:
            return ~self.listed(name, matches.equals).is_null()
        low, high = matches.between
        number = self.number(name)
        return ((number >= nw.lit(low)) & (number <= nw.lit(high))).fill_null(False)

    def met(self, portion: Portion) -> "nw.Expr | None":
        """Whether a row meets the conditions of a portion; None where there are none."""
        found: nw.Expr | None = None
        for condition in portion.where:
            flag = self.matching(condition.column, condition.matches)
            found = flag if found is None else found & flag
        return found

    def keys(self, groups: GroupKeys) -> "list[nw.Expr]":
        """The key columns of groups: null where a row holds none of the listed values."""
        return [self.listed(name, groups.values(place)) for place, name in enumerate(groups.by)]


class Sums(NamedTuple):
    """Of how many bits are parts whose products can be added up, and whether points are added whole."""

    bits: int
    whole: bool


# DuckDB adds in 128 bits. Polars adds those of a batch in 64 and batches in 128. Others add 64 bits: products
# of parts of 13 bits leave room for 2**35 rows.
_SUMS = {"duckdb": Sums(bits=64, whole=True), "polars": Sums(bits=20, whole=True)}


class Staged:
    """A table within one pass: numbers of columns and conditions are found once, as columns of their own."""

    def __init__(
        self, table: LazyTable, columns: Sequence[str], portions: Sequence[Portion], *, alone: bool = False
    ) -> None:
        self._table = table
        # Whether one group-by is all of the pass, so that rows that it does not need are left out before.
        self.alone = alone
        numbers = [name for name in dict.fromkeys(columns) if table.kind(name) not in ("text", "unknown")]
        self._numbers = {name: f"sfumato_number_{place}" for place, name in enumerate(numbers)}
        wheres = [where for where in dict.fromkeys(portion.where for portion in portions) if where]
        self._masks = {where: f"sfumato_met_{place}" for place, where in enumerate(wheres)}

    @property
    def sums(self) -> Sums:
        """How integers are added in the engine, for no sum to overflow."""
        return _SUMS.get(self._table.engine, Sums(bits=13, whole=False))

    def frame(self, frame: "nw.LazyFrame[Any]") -> "nw.LazyFrame[Any]":
        """The frame with these columns."""
        table = self._table
        found = [table.number(name).alias(staged) for name, staged in self._numbers.items()]
        found += [table.met(Portion(where)).alias(staged) for where, staged in self._masks.items()]  # type: ignore[union-attr]
        return frame.with_columns(*found) if found else frame

    def number(self, name: str) -> "nw.Expr":
        """A column as float64, null where it is null or NaN."""
        import narwhals as nw

        return nw.col(self._numbers[name]) if name in self._numbers else self._table.number(name)

    def present(self, name: str) -> "nw.Expr":
        """Whether a row has a value."""
        return ~self.number(name).is_null() if name in self._numbers else self._table.present(name)

    def met(self, portion: Portion) -> "nw.Expr | None":
        """Whether a row meets the conditions of a portion; None where there are none."""
        import narwhals as nw

        return nw.col(self._masks[portion.where]) if portion.where else None

    def listed(self, name: str, categories: Sequence[Category]) -> "nw.Expr":
        """The value of a row that holds one of some categories, null for any other."""
        return self._table.listed(name, categories)

    def matching(self, name: str, matches: Matches) -> "nw.Expr":
        """Whether a row meets a condition; a null never does."""
        return self._table.matching(name, matches)

    def keys(self, groups: GroupKeys) -> "list[nw.Expr]":
        """The key columns of groups."""
        return self._table.keys(groups)
