"""The queries of a plan with all public facts filled in, without the data."""

import math
from dataclasses import replace
from typing import Any

from sfumato.data.dataset import Dataset
from sfumato.data.field import Field
from sfumato.errors import SfumatoError
from sfumato.plan.model import Plan, QueryTable
from sfumato.plan.queries import ask, fields, refusal
from sfumato.privacy import Budget
from sfumato.query import Query

# Where the number of rows is public and no one has said it, checks go by this one.
UNSAID_ROWS = 10_000


def _blank(schema: dict[str, Field], **facts: Any) -> Dataset:
    """A data set of the declared columns without rows."""
    import polars as pl

    types: dict[str | None, Any] = {"integer": pl.Int64, "real": pl.Float64, "boolean": pl.Boolean}
    frame = pl.DataFrame(
        {name: pl.Series(name, [], dtype=types.get(field.kind, pl.String)) for name, field in schema.items()}
    )
    return Dataset(frame, **{"unit": "row", "neighbours": "add-remove", **facts}, schema=schema)


def declared(plan: Plan) -> Dataset:
    """The data set of a plan without its rows, for all that is public about it; made once."""
    if plan._declared is None:
        facts = {"unit": plan.data.unit, "neighbours": plan.data.neighbours, "name": plan.data.name}
        plan._declared = _blank(fields(plan), rows_per_unit=plan.data.rows_per_unit, **facts)
    made: Dataset = plan._declared
    return made


def bound(plan: Plan, index: int, budget: Budget, rows: int | None = None) -> Query:
    """A query of the plan with the public facts filled in, as a session would; PlanError if that is refused.

    By groups, it is the query of the first group, at the cost of all.
    """
    data = declared(plan)
    question = ask(plan, index, budget)
    size = rows if rows is not None else plan.data.rows
    try:
        query, where, by = question.query, question.where, tuple(question.by)
        data.require(where, by)
        key = data.keys(by)[0] if by else None
        column = replace(data.column(query.column), rows=UNSAID_ROWS if size is None else size)
        found = query.bind(column, data.field(query.column), data.neighbours, data.part(where, by, key))
        found.check(column)
    except SfumatoError as error:
        raise refusal(plan, index, error) from None
    return found


def groups(plan: Plan, query: QueryTable) -> int:
    """How many groups a query has; 1 without groups."""
    return math.prod(len(plan.columns[name].categories or ()) for name in query.by)


def assumed_rows(plan: Plan, index: int, rows: int | None) -> tuple[int | None, bool]:
    """How many rows the accuracy of a query is told for, if anything is said, and whether that is a guess."""
    query = plan.queries[index]
    size = rows if rows is not None else plan.data.rows
    if query.n_hint is not None:
        return query.n_hint, True
    if size is None:
        return None, True
    if query.by:
        return max(size // max(groups(plan, query), 1), 1), True
    return size, bool(query.where) or not plan.size_is_public
