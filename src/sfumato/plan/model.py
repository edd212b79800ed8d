"""What a plan file may say: every table and key, with its type and what it means."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    PrivateAttr,
    WithJsonSchema,
    model_validator,
)

from sfumato.data.counts import MAX_ROWS
from sfumato.plan.problems import Lines, Place, PlanError, Problem, problem_at
from sfumato.plan.values import (
    Bounds,
    Categories,
    Increasing,
    Inside,
    IntervalShare,
    Method,
    Name,
    Number,
    OneOrMore,
    Orders,
    Pair,
    Positive,
    Share,
    Text,
    read_one_or_more,
    read_pair,
    seen,
    whole_number,
)
from sfumato.privacy import ZCDP, ApproxDP, Budget, Neighbours, PureDP

MOST_QUERIES, MOST_COLUMNS, MOST_KEYS = 1000, 10_000, 20
MOST_ROWS_PER_UNIT = 1_000_000
ColumnType = Literal["integer", "real", "text", "boolean"]
StatisticName = Literal[
    "count",
    "sum",
    "mean",
    "variance",
    "proportion",
    "histogram",
    "quantiles",
    "quantile",
    "median",
    "quartiles",
    "deciles",
    "most_common",
    "first_passing",
    "inverse_mean",
    "exponential_mean",
    "inverse_proportion",
]


def _version(value: object) -> int:
    if type(value) is not int or value != 1:
        raise ValueError(f"must be 1, the version of plans that this program reads, got {seen(value)}")
    return value


class Table(BaseModel):
    """What all tables of a plan have in common: no unknown keys, no guessing of types, no changes."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, arbitrary_types_allowed=True)


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

    path: Name = Field(description="The CSV or Parquet file, relative to the plan.")
    name: Name = Field(description="The public name that budgets attach to.")
    unit: Name = Field(description="Whose privacy is protected: 'row', or the column with a person's id.")
    rows_per_unit: whole_number(1, MOST_ROWS_PER_UNIT) | None = Field(  # type: ignore[valid-type]
        None, description="With an id column: at most so many rows of each person count."
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


class ColumnTable(Table):
    """The public facts of a column: never read from the data."""

    type: ColumnType = Field(description="What the column holds.")
    bounds: Bounds | None = Field(
        None, description="[lower, upper] from public knowledge; values outside are clamped."
    )
    step: Positive | None = Field(None, description="The distance of possible values, such as 0.01.")
    categories: Categories | None = Field(None, description="All values that groups or cells are made of.")
    nulls: Literal["drop", "lower", "upper"] | None = Field(
        None, description="What becomes of missing values: left out, or counted as a bound."
    )


class Range(Table):
    """A condition on numbers: between two ends, both included."""

    between: Pair = Field(description="[low, high], both included.")


def _condition(value: object) -> Any:
    if isinstance(value, Range | tuple):
        return value
    if isinstance(value, dict):
        if set(value) != {"between"}:
            raise ValueError("must be a category, a list of them, or { between = [low, high] }")
        return Range.model_construct(between=read_pair(value["between"]))
    return read_one_or_more(value)


Condition = Annotated[
    Any,
    PlainValidator(_condition),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": ["string", "integer", "boolean"]},
                {"type": "array", "items": {"type": ["string", "integer", "boolean"]}, "minItems": 1},
                {
                    "type": "object",
                    "required": ["between"],
                    "additionalProperties": False,
                    "properties": {
                        "between": {
                            "type": "array",
                            "items": {"type": "number"},
                            "minItems": 2,
                            "maxItems": 2,
                        }
                    },
                },
            ]
        }
    ),
]


class AccuracyTable(Table):
    """A wanted accuracy, which decides how much of the budget a query takes."""

    error: Positive | None = Field(None, description="The largest error, in units of the answer.")
    rank_error: Positive | None = Field(None, description="For quantiles: the largest error in ranks.")
    confidence: Inside = Field(0.95, validate_default=True, description="With which the error is kept.")

    @model_validator(mode="after")
    def _one_target(self) -> "AccuracyTable":
        if (self.error is None) == (self.rank_error is None):
            raise ValueError("must name one of error and rank_error")
        return self


class QueryTable(Table):
    """One statistic to release, of all rows, of some, or of each group."""

    name: Name | None = Field(None, description="What the result is called; said by itself unless given.")
    statistic: StatisticName = Field(description="What is computed.")
    column: Name | None = Field(None, description="Of which column; a count of rows needs none.")
    where: dict[Name, Condition] = Field(
        default_factory=dict, description="Which rows count: conditions on declared columns, all to be met."
    )
    by: tuple[Name, ...] = Field(
        (),
        alias="group_by",
        strict=False,
        max_length=MOST_KEYS,
        description="Columns whose declared categories are the groups.",
    )
    share: Share | None = Field(None, description="The share of the whole budget that this query gets.")
    accuracy: AccuracyTable | None = Field(None, description="Or the accuracy that is wanted.")
    n_hint: whole_number(1, MAX_ROWS) | None = Field(  # type: ignore[valid-type]
        None, description="A public guess of how many rows count, in each group where there are groups."
    )
    nulls: Literal["drop", "lower", "upper"] | None = Field(
        None, description="Missing values, where other than the column says."
    )
    noise: Literal["auto", "laplace", "gaussian"] | None = Field(None, description="Which noise is added.")
    interval_share: IntervalShare | None = Field(
        None, description="The part of this query's budget that makes its interval narrow, or 'auto'."
    )
    probs: Orders | None = Field(None, description="quantiles: the orders, each inside (0, 1).")
    prob: Inside | None = Field(None, description="quantile: the order, inside (0, 1).")
    method: Method | None = Field(None, description="quantiles, most_common: the method and its options.")
    step: Positive | None = Field(None, description="quantiles: the distance of possible answers.")
    bounds: Bounds | None = Field(None, description="Bounds other than those of the column.")
    bins: whole_number(1, 2**20) | None = Field(  # type: ignore[valid-type]
        None, description="histogram: so many equal bins between the bounds."
    )
    edges: Increasing | None = Field(None, description="histogram: bins between these edges.")
    categories: Categories | None = Field(
        None, description="histogram, most_common: categories other than those of the column."
    )
    other: Annotated[bool, Field(strict=True)] | None = Field(
        None, description="histogram: whether values that are no category are counted together."
    )
    equals: OneOrMore | None = Field(None, description="count, proportion: the categories that count.")
    between: Pair | None = Field(None, description="count, proportion: the range that counts.")
    picks: whole_number(1, 2**20) | None = Field(  # type: ignore[valid-type]
        None, description="most_common: how many categories are chosen."
    )
    at: Increasing | None = Field(None, description="first_passing: increasing thresholds.")
    passes: whole_number(0, 2**59) | None = Field(  # type: ignore[valid-type]
        None, description="first_passing: the count that must be passed."
    )
    from_above: Annotated[bool, Field(strict=True)] | None = Field(
        None, description="first_passing: whether to look from the highest threshold down."
    )
    points: whole_number(1, 2**40) | None = Field(  # type: ignore[valid-type]
        None, description="inverse_mean: how many cells divide the bounds."
    )
    radius: Number | None = Field(
        None, description="inverse_mean, inverse_proportion: the radius of smoothing."
    )
    recalibrated: Annotated[bool, Field(strict=True)] | None = Field(
        None, description="inverse_proportion: whether weights fall as fast as the exact cost allows."
    )

    @property
    def title(self) -> str:
        """The name given, or what is asked in words."""
        if self.name is not None:
            return self.name
        words = self.statistic.replace("_", " ")
        column = f" of {self.column}" if self.column is not None else " of rows"
        groups = f" by {', '.join(self.by)}" if self.by else ""
        return words + column + groups


class Plan(Table):
    """Statistics to release of one data set under one budget, as a file says.

    Guarantee:
        Holds public facts only. Nothing here reads data or spends anything.

    Args:
        version: the format, 1.
        title, about: for the report.
        data: the file, its public name, whose privacy is protected, the neighbour relation.
        budget: what all queries may cost together; its `value` is a PureDP, an ApproxDP or a ZCDP.
        ledger: where spending is recorded.
        columns: the public facts of the columns, by name.
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
    about: Text = Field("", description="What readers of the report should know first.")
    data: DataTable = Field(description="The data set.")
    budget: BudgetTable = Field(description="What all queries may cost together.")
    ledger: LedgerTable = Field(
        default_factory=lambda: LedgerTable.model_validate({}), description="Where spending is recorded."
    )
    columns: dict[Name, ColumnTable] = Field(
        min_length=1, max_length=MOST_COLUMNS, description="The public facts of the columns, by name."
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
        """The columns that the queries need, in the order of the plan, and that of the ids."""
        asked = {name for query in self.queries for name in (query.column, *query.where, *query.by)}
        asked |= {None if self.data.unit == "row" else self.data.unit, self._counted}
        return tuple(name for name in self.columns if name in asked)

    @property
    def _counted(self) -> str | None:
        """A column for counts of rows, which need some column to count and ask for none."""
        bare = any(query.column is None and not query.by and not query.where for query in self.queries)
        return next(iter(self.columns)) if bare else None

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
