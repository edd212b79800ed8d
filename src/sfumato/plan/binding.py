"""The queries of a plan with all public facts filled in, without the data."""

import math
from dataclasses import replace
from typing import Any

from sfumato.asked import Searched
from sfumato.data.dataset import Dataset
from sfumato.errors import SfumatoError
from sfumato.groups import KeySearch, without
from sfumato.plan.model import Plan, QueryTable
from sfumato.plan.queries import ask, fields, refusal
from sfumato.privacy import Budget
from sfumato.query import Charged, Query

# Where the number of rows is public and no one has said it, checks go by this one.
UNSAID_ROWS = 10_000


def _blank(plan: Plan) -> Dataset:
    """A data set of the declared columns without rows."""
    import polars as pl

    types: dict[str | None, Any] = {
        "integer": pl.Int64,
        "real": pl.Float64,
        "boolean": pl.Boolean,
        "date": pl.Date,
        "datetime": pl.Datetime("us"),
    }
    facts = data_facts(plan)
    frame = pl.DataFrame(
        {
            name: pl.Series(name, [], dtype=types.get(field.kind, pl.String))
            for name, field in facts["schema"].items()
            if name not in plan.derive
        }
    )
    return Dataset(frame, **facts)


def declared(plan: Plan) -> Dataset:
    """The data set of a plan without its rows, for all that is public about it; made once."""
    if plan._declared is None:
        plan._declared = _blank(plan)
    made: Dataset = plan._declared
    return made


def data_facts(plan: Plan) -> dict[str, Any]:
    """The public facts of a plan's data set, as `Dataset` takes them."""
    data = plan.data
    facts: dict[str, Any] = {
        "unit": data.unit,
        "rows_per_unit": data.rows_per_unit,
        "neighbours": data.neighbours,
        "name": data.name,
        "schema": fields(plan),
    }
    if data.groups_per_unit is not None:
        facts["groups_per_unit"] = data.groups_per_unit
    if plan.derived:
        facts["derived"] = plan.derived
    return facts


def stored_fields(plan: Plan) -> dict[str, Any]:
    """What is declared of the columns of the data, for their reading.

    A reader may keep declared categories alone, and take all other text for one value. Where expressions, ids
    or names of groups need the text itself, or a query has categories of its own, it is read as it is.
    """
    whole = {plan.data.unit, *(used for one in plan.derived.values() for used in one.columns)}
    for query in plan.queries:
        whole |= set(query.tested) if isinstance(query.where, str) else set()
        whole |= set(query.by) if query.keys_are_private else set()
        whole |= {query.column} if query.categories is not None else set()
    return {
        name: replace(field, categories=None) if name in whole else field
        for name, field in fields(plan).items()
    }


def bound(plan: Plan, index: int, budget: Budget, rows: int | None = None) -> Query:
    """A query of the plan with the public facts filled in, as a session would; PlanError if that is refused.

    By groups, it is the query of the first group, at the cost of all.
    """
    return _bound(plan, index, budget, rows)[0]


def charged(plan: Plan, index: int, budget: Budget, rows: int | None = None) -> Charged:
    """What a query is charged with: the statistic, and the search for its groups if there is one."""
    query, search = _bound(plan, index, budget, rows)
    return query if search is None else Searched(query, search)


def _bound(plan: Plan, index: int, budget: Budget, rows: int | None) -> tuple[Query, KeySearch | None]:
    data = declared(plan)
    question = ask(plan, index, budget)
    size = rows if rows is not None else plan.data.rows
    search: KeySearch | None = None
    try:
        query: Any = question.query
        where, by, asked = question.where, tuple(question.by), question.groups
        if asked is not None:
            search, rest = asked.priced(query.budget, data.moved_keys, data.neighbours)
            query = without(query, rest)
        private = asked is not None and asked.private
        data.require(where, () if private else by)
        if private:
            data.require_keys(by)
        key = data.keys(by)[0] if by and not private else None
        column = replace(data.column(query.column), rows=UNSAID_ROWS if size is None else size)
        found = query.bind(column, data.field(query.column), data.neighbours, data.part(where, by, key))
        found.check(column)
        if search is not None:
            search = search.beside(found.cost, question.query.budget)
    except SfumatoError as error:
        raise refusal(plan, index, error) from None
    return found, search


def groups(plan: Plan, query: QueryTable) -> int:
    """How many groups a query has; 1 without groups, 0 where the data hold the keys."""
    if query.groups is not None and query.groups.top is not None:
        top: int = query.groups.top
        return top
    if query.groups is not None and query.groups.keys == "private":
        return 0
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
        # Nobody knows how many rows a group has whose key is not known.
        count = groups(plan, query)
        return (max(size // count, 1), True) if count else (None, True)
    return size, bool(query.tested) or not plan.size_is_public
