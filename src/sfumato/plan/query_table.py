"""What a plan file may say of a query: every key, with its type and what it means."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)

from sfumato.data.conditions import Between
from sfumato.data.counts import MAX_ROWS
from sfumato.groups import MOST_FOUND
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
    expression_text,
    parse_expression,
    read_one_or_more,
    read_pair,
    seen,
    whole_number,
)

MOST_KEYS = 20
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


class Table(BaseModel):
    """What all tables of a plan have in common: no unknown keys, no guessing of types, no changes."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, arbitrary_types_allowed=True)


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


def _where(value: object, read: Any) -> Any:
    if not isinstance(value, str | dict):
        raise ValueError(
            f"must be a table or an expression in quotes, such as 'age >= 18', got {seen(value)}"
        )
    return expression_text(value) if isinstance(value, str) else read(value)


def _or_text(schema: dict[str, Any]) -> None:
    table = {key: schema.pop(key) for key in list(schema) if key not in ("description", "title")}
    schema["anyOf"] = [table, {"type": "string"}]


if TYPE_CHECKING:
    Where = dict[str, Any] | str
else:
    # A union would name both of its sides wherever one key of the table is wrong.
    Where = Annotated[dict[Name, Condition], WrapValidator(_where)]


class GroupsTable(Table):
    """Which groups of a query are answered, where it is not all declared ones."""

    keys: Literal["public", "private"] | None = Field(
        None, description="'public': the declared categories; 'private': those of the data, for a delta."
    )
    other: Annotated[bool, Field(strict=True)] | None = Field(
        None, description="Whether all rows of no answered group make one more."
    )
    top: whole_number(1, 10_000) | None = Field(  # type: ignore[valid-type]
        None, description="The largest groups alone, so many."
    )
    share: Inside | None = Field(None, description="The part of the query's budget that finds the groups.")
    least: whole_number(1, 2**62) | None = Field(  # type: ignore[valid-type]
        None, description="With private keys: groups of fewer people are never named."
    )

    most: whole_number(1, MOST_FOUND) | None = Field(  # type: ignore[valid-type]
        None, description="With private keys: so many groups are answered at most; 10,000 unless given."
    )

    @property
    def given(self) -> dict[str, Any]:
        """What was said."""
        return {
            name: getattr(self, name) for name in type(self).model_fields if getattr(self, name) is not None
        }


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
    where: Where = Field(
        default_factory=dict,
        json_schema_extra=_or_text,
        description="Which rows count: conditions on declared columns, all to be met, or an expression.",
    )
    by: tuple[Name, ...] = Field(
        (),
        alias="group_by",
        strict=False,
        max_length=MOST_KEYS,
        description="Columns whose declared categories are the groups.",
    )
    groups: GroupsTable | None = Field(
        None, description="Which groups are answered, unless all declared ones."
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
    verify: IntervalShare | None = Field(
        None,
        description="quantiles: the part of this query's budget that verifies intervals, 'auto' if left out.",
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
    def condition(self) -> Any:
        """Which rows count, as a question takes it: a mapping, or an expression."""
        if isinstance(self.where, str):
            return parse_expression(self.where)
        return {
            name: Between(*condition.between) if isinstance(condition, Range) else condition
            for name, condition in self.where.items()
        }

    @property
    def tested(self) -> tuple[str, ...]:
        """The columns that decide which rows count."""
        return self.condition.columns if isinstance(self.where, str) else tuple(self.where)

    @property
    def keys_are_private(self) -> bool:
        """Whether the groups are those of the data."""
        return self.groups is not None and self.groups.keys == "private"

    @property
    def title(self) -> str:
        """The name given, or what is asked in words."""
        if self.name is not None:
            return self.name
        words = self.statistic.replace("_", " ")
        column = f" of {self.column}" if self.column is not None else " of rows"
        groups = f" by {', '.join(self.by)}" if self.by else ""
        return words + column + groups
