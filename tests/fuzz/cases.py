"""One case of the fuzzer: two neighbouring tables, what is public about them, and what is asked of both."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tests.fuzz.values import TYPES, Stored

import sfumato as sf
from sfumato.data.expressions import Expression

Side = Literal["left", "right"]
Row = tuple[Any, ...]

# Where the rows of units are chosen by one run over the table, and where by a hash of each unit's own rows.
MEMORY = ("numpy", "pandas", "pandas arrow", "polars", "pyarrow", "csv", "parquet")
LAZY = ("polars lazy", "duckdb", "csv polars", "csv duckdb", "parquet polars", "parquet duckdb")
# A folder of two CSV files.
LAZY += ("csvs polars", "csvs duckdb")
SPARK = ("spark",)
ROUTES = ("session", "ledger", "command")


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:20]}... of {len(text)} characters"


@dataclass(frozen=True)
class Column:
    """A column of both tables: its name and how it is stored."""

    name: str
    type: str

    @property
    def stored(self) -> Stored:
        return TYPES[self.type]


@dataclass(frozen=True, eq=False)
class Ask:
    """One question, by the parts that a plan can say too.

    An expression is over the columns of tests/data/expression_trees.py, whose meaning is known; the case says
    which of its own columns these stand for.
    """

    statistic: Any
    column: str
    parameters: Mapping[str, Any]
    where: Mapping[str, Any] | Expression | None = None
    by: tuple[str, ...] = ()
    groups: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        said = [f"{name}={value!r}" for name, value in self.parameters.items()]
        where = self.where.words if isinstance(self.where, Expression) else self.where
        said += [f"where {where!r}"] * bool(where)
        said += [f"by {list(self.by)!r}"] * bool(self.by) + [f"groups {self.groups!r}"] * bool(self.groups)
        return f"{self.statistic.__name__} of {self.column!r}: {', '.join(said) or 'all rows'}"


@dataclass(frozen=True, eq=False)
class Case:
    """Two tables that differ in one person, their public facts, the questions, the engine and the route."""

    seed: int
    engine: str
    route: str
    neighbours: Any
    columns: tuple[Column, ...]
    # Every row with the table that it is in: "left", "right" or "both".
    rows: tuple[tuple[str, Row], ...]
    asks: tuple[Ask, ...]
    budget: Any
    unit: str = "row"
    rows_per_unit: int | None = None
    groups_per_unit: int | None = None
    schema: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    derived: Mapping[str, Expression] = field(default_factory=dict)
    # The columns that expressions are about, by their names in tests/data/expression_trees.py.
    roles: Mapping[str, str] = field(default_factory=dict)

    def table(self, side: Side) -> list[Row]:
        """The rows of one of the two tables, in order."""
        return [row for where, row in self.rows if where in ("both", side)]

    def column(self, name: str) -> Column | None:
        """The stored column of this name, None for a derived one."""
        return next((column for column in self.columns if column.name == name), None)

    @property
    def cap(self) -> Any:
        """A budget of the same kind that all questions fit."""
        if isinstance(self.budget, sf.ZCDP):
            return sf.ZCDP(100)
        return sf.ApproxDP(100, 0.9) if isinstance(self.budget, sf.ApproxDP) else sf.PureDP(100)

    def renamed(self, expression: Expression) -> Expression:
        """An expression over the columns of this case."""
        inputs = tuple(self.renamed(each) for each in expression.inputs)
        if expression.operation == "column":
            return replace(expression, value=self.roles[expression.value])
        return replace(expression, inputs=inputs)

    def question(self, ask: Ask) -> sf.Question:
        """The question as a session takes it; refused where its public facts are wrong."""
        where = self.renamed(ask.where) if isinstance(ask.where, Expression) else dict(ask.where or {})
        query = ask.statistic(budget=self.budget, column=ask.column, **ask.parameters)
        groups = None if ask.groups is None else sf.Groups(**ask.groups)
        return sf.Question(query=query, where=where, by=ask.by, groups=groups)

    def facts(self, names: Collection[str]) -> dict[str, Any]:
        """What a data set is made with besides its table, which has columns of these names."""
        known = {*names, *self.derived}
        return {
            "unit": self.unit,
            "neighbours": self.neighbours,
            "rows_per_unit": self.rows_per_unit,
            "groups_per_unit": self.groups_per_unit,
            "schema": {name: sf.Field(**facts) for name, facts in self.schema.items() if name in known},
            "derived": {name: self.renamed(tree) for name, tree in self.derived.items()},
        }

    def __str__(self) -> str:
        units = f"{self.unit!r}, rows_per_unit={self.rows_per_unit}, groups_per_unit={self.groups_per_unit}"
        lines = [
            f"case {self.seed}: {self.engine}, by {self.route}, {self.neighbours}, {self.budget!r}",
            f"  unit: {'row' if self.rows_per_unit is None else units}",
            f"  columns: {', '.join(f'{column.name!r} {column.type}' for column in self.columns)}",
            *(f"  declared: {name!r} {dict(facts)!r}" for name, facts in self.schema.items()),
            *(f"  derived: {name!r} = {self.renamed(tree).words}" for name, tree in self.derived.items()),
            *(f"  {where:>5}: ({', '.join(map(_brief, row))})" for where, row in self.rows),
            *(f"  asks: {ask}" for ask in self.asks),
        ]
        if self.roles:
            lines.append(f"  in expressions: {dict(self.roles)!r}")
        return "\n".join(lines)
