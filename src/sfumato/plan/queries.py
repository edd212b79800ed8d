"""From the queries of a plan to statistics with a budget."""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from sfumato.checks import compact
from sfumato.data.field import Field
from sfumato.errors import MissingBounds, SfumatoError
from sfumato.plan.model import Plan, QueryTable
from sfumato.plan.problems import Place, PlanError
from sfumato.plan.reading import keys
from sfumato.privacy import Budget
from sfumato.quantile_methods import Quantiles
from sfumato.query import Query
from sfumato.question import Question
from sfumato.statistics import (
    Count,
    ExponentialMean,
    FirstPassing,
    Histogram,
    InverseMean,
    InverseProportion,
    Mean,
    MostCommon,
    Proportion,
    Sum,
    Variance,
)

_ANY = frozenset(
    {"name", "statistic", "column", "where", "by", "groups", "share", "accuracy", "n_hint", "nulls"}
)
# What budgets are called in a plan.
_BUDGETS = {
    "a PureDP": "an epsilon",
    "PureDP": "epsilon",
    "an ApproxDP": "an epsilon and delta",
    "ApproxDP": "epsilon and delta",
    "ZCDP": "rho",
}
_ORDERS = frozenset({"bounds", "method", "step", "interval_share", "verify"})


class Kind(NamedTuple):
    """How a statistic of a plan is made: its class, the keys it takes, and what its name fixes."""

    made: Any
    options: frozenset[str]
    needs: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = {}


KINDS: dict[str, Kind] = {
    "count": Kind(Count, frozenset({"equals", "between", "noise"})),
    "sum": Kind(Sum, frozenset({"bounds", "noise"})),
    "mean": Kind(Mean, frozenset({"bounds", "noise", "interval_share"})),
    "variance": Kind(Variance, frozenset({"bounds", "noise"})),
    "proportion": Kind(Proportion, frozenset({"equals", "between", "noise"})),
    "histogram": Kind(Histogram, frozenset({"bins", "bounds", "edges", "categories", "other", "noise"})),
    "quantiles": Kind(Quantiles, _ORDERS | {"probs"}, ("probs",)),
    "quantile": Kind(Quantiles, _ORDERS | {"prob"}, ("prob",), {"scalar": True}),
    "median": Kind(Quantiles, _ORDERS, (), {"probs": (Fraction(1, 2),), "scalar": True}),
    "quartiles": Kind(Quantiles, _ORDERS, (), {"probs": tuple(Fraction(i, 4) for i in range(1, 4))}),
    "deciles": Kind(Quantiles, _ORDERS, (), {"probs": tuple(Fraction(i, 10) for i in range(1, 10))}),
    "most_common": Kind(MostCommon, frozenset({"categories", "picks", "method"})),
    "first_passing": Kind(
        FirstPassing, frozenset({"at", "bounds", "step", "passes", "from_above", "noise"}), ("passes",)
    ),
    "inverse_mean": Kind(InverseMean, frozenset({"bounds", "points", "radius"})),
    "exponential_mean": Kind(ExponentialMean, frozenset({"bounds", "points"})),
    "inverse_proportion": Kind(InverseProportion, frozenset({"equals", "between", "radius", "recalibrated"})),
}


def option_problems(query: QueryTable) -> list[tuple[str, str]]:
    """Keys that the statistic does not take, and keys that it lacks, each with words."""
    kind = KINDS[query.statistic]
    given = {name for name in query.model_fields_set if getattr(query, name) not in (None, (), {})}
    unknown = sorted(given - kind.options - _ANY)
    found = [(name, f"does not go with {query.statistic}{_takers(name)}") for name in unknown]
    if query.column is None and query.statistic != "count":
        found.append(("column", f"is missing: {query.statistic} is of one column"))
    if query.column is None and not {"equals", "between"}.isdisjoint(given):
        found.append(("column", "is missing: which column has these values?"))
    return found + [
        (name, f"is missing: {query.statistic} needs it") for name in kind.needs if name not in given
    ]


def _takers(option: str) -> str:
    takers = [name for name, kind in KINDS.items() if option in kind.options]
    return f"; it goes with {', '.join(takers)}" if takers else ""


def column_of(plan: Plan, query: QueryTable) -> str:
    """The column that is asked about; for a count of rows one that the query or another needs anyway."""
    if query.column is not None:
        return query.column
    return next(iter((*query.by, *query.tested, plan.counted)))


def build(plan: Plan, index: int, budget: Budget) -> Query:
    """The statistic that a query asks for, with a budget; PlanError if its options break a rule."""
    query = plan.queries[index]
    kind = KINDS[query.statistic]
    options = {
        name: getattr(query, name) for name in (*kind.options, "nulls") if getattr(query, name) is not None
    }
    if "passes" in options:
        options["count"] = options.pop("passes")
    if "prob" in options:
        options["probs"] = (options.pop("prob"),)
    if kind.made is Quantiles and query.n_hint is not None:
        options["n_hint"] = query.n_hint
    if query.column is None:
        # Rows are counted, whatever they hold.
        options.setdefault("nulls", "lower")
    try:
        made: Query = kind.made(column=column_of(plan, query), budget=budget, **kind.fixed, **options)
    except SfumatoError as error:
        raise refusal(plan, index, error) from None
    return made


def ask(plan: Plan, index: int, budget: Budget) -> Question:
    """The question of a query of the plan, with a budget."""
    query = plan.queries[index]
    facts: dict[str, Any] = {} if query.groups is None else {"groups": query.groups.given}
    try:
        return Question(
            query=build(plan, index, budget), where=query.condition, by=query.by, name=query.title, **facts
        )
    except PlanError:
        raise
    except SfumatoError as error:
        raise refusal(plan, index, error) from None


def fields(plan: Plan) -> dict[str, Field]:
    """The public facts of the columns that the queries need, for a data set or for reading its file.

    Guarantee:
        Follows from the plan alone.

    Raises:
        PlanError: the facts of a column contradict each other.

    >>> from sfumato.plan import parse
    >>> plan = parse('''
    ... version = 1
    ... title = "Ages"
    ... data = { path = "people.csv", name = "people", unit = "row", neighbours = "add-remove" }
    ... budget.epsilon = 0.5
    ... columns.age = { type = "integer", bounds = [0, 120] }
    ... queries = [{ statistic = "mean", column = "age" }]
    ... ''')
    >>> fields(plan)["age"].bounds
    (0, 120)
    """
    derived = [name for name in plan.derived if name in plan.columns]
    return {name: declared_field(plan, name) for name in (*plan.needed, *derived)}


def declared_field(plan: Plan, name: str) -> Field:
    """The public facts of one column; PlanError if they contradict each other."""
    column = plan.columns[name]
    try:
        return Field(
            bounds=column.bounds,
            categories=column.categories,
            nulls=column.nulls,
            kind=column.type,
            step=column.step,
        )
    except SfumatoError as error:
        key = next((key for key in ("bounds", "categories", "step") if key in str(error)), "bounds")
        raise plan.error(("columns", name, key), plain(str(error))) from None


def refusal(plan: Plan, index: int, error: SfumatoError) -> PlanError:
    """What a statistic refused, at the key of the plan that it is about."""
    words, query = plain(str(error)), plan.queries[index]
    place: Place = ("queries", index)
    if isinstance(error, MissingBounds):
        lacking = "categories" if "categories" in words.split("must", 1)[0] else "bounds"
        if query.column in plan.columns:
            return plan.error(("columns", query.column, lacking), words)
        return plan.error((*place, "column"), words)
    first = re.match(r"[a-z_]*", words)
    named = first.group() if first else ""
    key = {"by": "group_by", "count": "passes"}.get(named, named)
    if key == "rows":
        return plan.error(("data", "rows"), words.removeprefix("rows "))
    if key in ("epsilon", "rho", "delta", "sqrt"):
        return plan.error((*place, "share") if query.share is not None else ("budget",), words)
    if key not in dict(keys(QueryTable)):
        return plan.error(place, words)
    # The field is named before the words, and need not be named again.
    return plan.error((*place, key), words.removeprefix(f"{named} ").replace(f"got {named}=", "got "))


def plain(words: str) -> str:
    """A message of the library in the words of a plan: no Python in it."""
    ratios = r"Fraction\((-?\d+), (\d+)\)"
    words = re.sub(ratios, lambda found: compact(Fraction(int(found[1]), int(found[2]))), words)
    words = re.sub(r"(?:PureDP|ApproxDP|ZCDP)\(([^)]*)\)", lambda found: found[1].replace("=", " "), words)
    for name, meant in _BUDGETS.items():
        words = words.replace(name, meant)
    return words.replace("=None", " missing").replace("True", "true").replace("False", "false")
