"""What a plan file may say: every table and key, with its type and what it means."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    PlainValidator,
    PrivateAttr,
    WithJsonSchema,
    model_validator,
)

from sfumato.data.counts import MAX_ROWS
from sfumato.plan.problems import Lines, Place, PlanError, Problem, problem_at
from sfumato.plan.query_table import AccuracyTable, GroupsTable, QueryTable, Range, StatisticName, Table
from sfumato.plan.values import (
    Bounds,
    Categories,
    Expressed,
    Inside,
    Name,
    Positive,
    Text,
    parse_expression,
    seen,
    whole_number,
)
from sfumato.privacy import ZCDP, ApproxDP, Budget, Neighbours, PureDP

__all__ = [
    "AccuracyTable",
    "BudgetTable",
    "ColumnTable",
    "DataTable",
    "GroupsTable",
    "LedgerTable",
    "Plan",
    "QueryTable",
    "Range",
    "StatisticName",
]

MOST_QUERIES, MOST_COLUMNS = 1000, 10_000
MOST_DERIVED = 1000
MOST_ROWS_PER_UNIT = 1_000_000
ColumnType = Literal["integer", "real", "text", "boolean", "date", "datetime"]


def _version(value: object) -> int:
    if type(value) is not int or value != 1:
        raise ValueError(f"must be 1, the version of plans that this program reads, got {seen(value)}")
    return value


class BudgetTable(Table):
    """A budget: epsilon, or epsilon and delta, or rho."""

    epsilon: Positive | None = Field(None, description="How much all answers together may reveal.")
    delta: Inside | None = Field(
        None, description="With epsilon: the probability with which the promise may fail."
    )
    rho: Positive | None = Field(None, description="Instead of epsilon: zero-concentrated privacy.")

    @model_validator(mode="after")
    def _one_kind(self) -> "BudgetTable":
        if (self.epsilon is None) == (self.rho is None):
            raise ValueError("must say how much may be spent: epsilon, or epsilon and delta, or rho")
        if self.delta is not None and self.epsilon is None:
            raise ValueError("delta goes with epsilon, not with rho")
        return self

    @property
    def value(self) -> Budget:
        """The same as an exact budget: a PureDP, an ApproxDP or a ZCDP."""
        if self.rho is not None:
            return ZCDP(self.rho)
        epsilon = self.epsilon if self.epsilon is not None else 0
        return PureDP(epsilon) if self.delta is None else ApproxDP(epsilon, self.delta)


class DataTable(Table):
    """Where the data are, whose privacy is protected, and what is public about them."""

    path: Name = Field(
        description="The CSV, Parquet or Arrow file, a folder or a pattern, relative to the plan."
    )
    engine: Literal["polars", "duckdb", "spark"] | None = Field(
        None, description="What reads the data where it is not one small file: Polars unless given."
    )
    name: Name = Field(description="The public name that budgets attach to.")
    unit: Name = Field(description="Whose privacy is protected: 'row', or the column with a person's id.")
    rows_per_unit: whole_number(1, MOST_ROWS_PER_UNIT) | None = Field(  # type: ignore[valid-type]
        None, description="With an id column: at most so many rows of each person count."
    )
    groups_per_unit: whole_number(1, MOST_ROWS_PER_UNIT) | None = Field(  # type: ignore[valid-type]
        None, description="With an id column: a person counts in at most so many groups of a query."
    )
    neighbours: Neighbours = Field(
        description="'substitution': the number of rows is public; 'add-remove': it is private."
    )
    rows: whole_number(0, MAX_ROWS) | None = Field(  # type: ignore[valid-type]
        None, description="The number of rows where it is public, or else a public guess of it."
    )


class LedgerTable(Table):
    """Where spending is recorded, and up to which cap."""

    url: Name | None = Field(
        None, description="The ledger; ledger.db beside the plan unless given. SQLite paths are relative."
    )
    cap: BudgetTable | None = Field(
        None, description="What may be spent on a new data set in all; the budget unless given."
    )
    analyst: Name = Field("analyst", description="Who asks.")
    analysts: list[Name] | None = Field(
        None, description="Who may be charged on a new data set; everybody unless given."
    )


class ColumnTable(Table):
    """The public facts of a column: never read from the data."""

    type: ColumnType = Field(description="What the column holds.")
    bounds: Bounds | None = Field(
        None,
        description="[lower, upper] from public knowledge, numbers or dates; values outside are clamped.",
    )
    step: Positive | None = Field(None, description="The distance of possible values, such as 0.01.")
    categories: Categories | None = Field(None, description="All values that groups or cells are made of.")
    nulls: Literal["drop", "lower", "upper"] | None = Field(
        None, description="What becomes of missing values: left out, or counted as a bound."
    )


class Plan(Table):
    """Statistics to release of one data set under one budget, as a file says.

    Guarantee:
        Holds public facts only. Nothing here reads data or spends anything.

    Args:
        version: the format, 1.
        title, about: for the report.
        edition: a public name; the same questions and edition give the same release, whatever the file holds
            by then, and a new edition is drawn and paid for anew.
        data: the file, its public name, whose privacy is protected, the neighbour relation.
        budget: what all queries may cost together; its `value` is a PureDP, an ApproxDP or a ZCDP.
        ledger: where spending is recorded.
        columns: the public facts of the columns, by name.
        derive: columns that are computed from others, by expressions in text.
        queries: the statistics, in order.

    >>> from sfumato.plan import parse
    >>> plan = parse('''
    ... version = 1
    ... title = "Ages"
    ... data = { path = "people.csv", name = "people", unit = "row", neighbours = "add-remove" }
    ... budget.epsilon = 0.5
    ... columns.age = { type = "integer", bounds = [0, 120] }
    ... queries = [{ statistic = "mean", column = "age" }]
    ... ''')
    >>> plan.budget.value, plan.queries[0].title
    (PureDP(epsilon=0.5), 'mean of age')
    """

    version: Annotated[int, PlainValidator(_version), WithJsonSchema({"const": 1})] = Field(
        description="The version of the format: 1."
    )
    title: Name = Field(description="The title of the release.")
    edition: Name = Field(
        "1", description="Names this release of the questions: a new edition is drawn and paid for anew."
    )
    about: Text = Field("", description="What readers of the report should know first.")
    data: DataTable = Field(description="The data set.")
    budget: BudgetTable = Field(description="What all queries may cost together.")
    ledger: LedgerTable = Field(
        default_factory=lambda: LedgerTable.model_validate({}), description="Where spending is recorded."
    )
    columns: dict[Name, ColumnTable] = Field(
        min_length=1, max_length=MOST_COLUMNS, description="The public facts of the columns, by name."
    )
    derive: dict[Name, Expressed] = Field(
        default_factory=dict,
        max_length=MOST_DERIVED,
        description="Columns computed from others, by name: an expression such as 'salary / hours'.",
    )
    queries: tuple[QueryTable, ...] = Field(
        min_length=1, max_length=MOST_QUERIES, strict=False, description="The statistics to release."
    )

    _path: Path = PrivateAttr(default=Path("plan.toml"))
    _text: str = PrivateAttr(default="")
    _lines: Mapping[Place, int] = PrivateAttr(default_factory=dict)
    _declared: Any = PrivateAttr(default=None)
    _allocated: dict[tuple[int | None, Budget], Any] = PrivateAttr(default_factory=dict)

    @property
    def cap(self) -> Budget:
        """What may be spent on the data set, if it is new to the ledger."""
        return (self.ledger.cap or self.budget).value

    @property
    def path(self) -> Path:
        """Where the plan was read from."""
        return self._path

    @property
    def text(self) -> str:
        """The plan as it was written."""
        return self._text

    @property
    def lines(self) -> Lines:
        """On which line each key stands."""
        return self._lines

    @property
    def digest(self) -> str:
        """SHA-256 of the text, in hexadecimal."""
        return hashlib.sha256(self._text.encode()).hexdigest()

    @property
    def request_digest(self) -> str:
        """SHA-256 of the questions and the edition, in hexadecimal; nothing that is read from the data
        enters.

        Left out is what changes no number: titles and names, and where the data and the ledger are.
        """
        facts = self.model_dump(
            exclude={
                **dict.fromkeys(("title", "about", "ledger", "derive"), True),
                "data": {"path", "engine"},
                "columns": self.columns.keys() - {*self.asked, *self.needed},
                "queries": {"__all__": {"name"}},
            },
            warnings=False,  # exact numbers are kept as they are
        )
        facts["derive"] = {name: self.derive[name] for name in self.derived}
        text = json.dumps(facts, sort_keys=True, separators=(",", ":"), default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def data_path(self) -> Path:
        """The data file; a relative path starts at the plan."""
        return self._path.parent / self.data.path

    @property
    def ledger_url(self) -> str:
        """The ledger; a relative path of SQLite starts at the plan."""
        url = self.ledger.url or "sqlite:///ledger.db"
        scheme, _, rest = url.partition(":///") if "://" in url else ("sqlite", "", url)
        if scheme.split("+")[0] != "sqlite" or not rest or rest.startswith((":memory:", "file:")):
            return url
        return f"{scheme}:///{(self._path.parent / rest).absolute()}"

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns of the data that the queries need, in the order of the plan, and that of the ids."""
        uses = {name: expression.columns for name, expression in self.derived.items()}
        asked = {used for name in self.asked for used in uses.get(name, (name,))}
        return tuple(name for name in self.columns if name in asked and name not in uses)

    @property
    def asked(self) -> tuple[str, ...]:
        """The columns that the queries name, derived ones included, and that of the ids."""
        named = {name for query in self.queries for name in (query.column, *query.tested, *query.by)}
        named |= {None if self.data.unit == "row" else self.data.unit, self._counted}
        return tuple(name for name in self.columns if name in named)

    @property
    def derived(self) -> dict[str, Any]:
        """The derived columns that queries name, as expressions."""
        named = {name for query in self.queries for name in (query.column, *query.tested, *query.by)}
        return {name: parse_expression(text) for name, text in self.derive.items() if name in named}

    @property
    def counted(self) -> str:
        """The column of the data that stands for a row where only rows are counted."""
        return next((name for name in self.columns if name not in self.derive), next(iter(self.columns)))

    @property
    def _counted(self) -> str | None:
        """A column for counts of rows, which need some column to count and ask for none."""
        bare = any(query.column is None and not query.by and not query.tested for query in self.queries)
        return self.counted if bare else None

    @property
    def size_is_public(self) -> bool:
        """Whether the number of rows is a public fact: rows are people, and are replaced."""
        return self.data.unit == "row" and self.data.neighbours == "substitution"

    def problem(self, place: Place, words: str) -> Problem:
        """A problem at a place of this plan."""
        return problem_at(self._path.name, self._lines, place, words)

    def error(self, place: Place, words: str) -> PlanError:
        """The same as an error."""
        return PlanError([self.problem(place, words)])
