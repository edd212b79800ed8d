"""The plan file of a case, for the command line."""

import datetime as dt
import json
from fractions import Fraction
from typing import Any

from tests.fuzz.cases import Ask, Case
from tests.fuzz.tables import file_fields, file_name

import sfumato as sf
from sfumato.data.expressions import Expression
from sfumato.quantile_methods import METHODS
from sfumato.statistics import FirstPassing


def plan_text(case: Case) -> str:
    """The case as a plan in TOML."""
    _, _, engine = case.engine.partition(" ")
    units = {"rows_per_unit": case.rows_per_unit, "groups_per_unit": case.groups_per_unit}
    data = {
        "path": file_name(case),
        "name": "people",
        "unit": case.unit,
        "neighbours": case.neighbours,
        **units,
    }
    columns = {}
    for name, facts in file_fields(case).items():
        declared = {"type": facts.get("kind", "real"), **facts}
        columns[name] = {key: fact for key, fact in declared.items() if key != "kind"}
    for name in case.derived:
        columns[name] = {"type": "real", **case.schema.get(name, {})}
    plan = {
        "version": 1,
        "title": "People",
        "data": {**data, **({"engine": engine} if engine else {})},
        "budget": _budget(case.budget),
        "columns": columns,
        "queries": [_query(case, ask, place) for place, ask in enumerate(case.asks)],
    }
    if case.derived:
        plan["derive"] = {name: case.renamed(tree).words for name, tree in case.derived.items()}
    return "".join(f"{key} = {_toml(value)}\n" for key, value in plan.items())


def _budget(budget: Any) -> dict[str, Any]:
    given = ((name, getattr(budget, name, None)) for name in ("epsilon", "delta", "rho"))
    return {name: float(value) for name, value in given if value is not None}


def _query(case: Case, ask: Ask, place: int) -> dict[str, Any]:
    options = dict(ask.parameters)
    if ask.statistic is FirstPassing:
        options["passes"] = options.pop("count")
    if "method" in options and not isinstance(options["method"], str):
        kind = type(options["method"])
        options["method"] = next(name for name, method in METHODS.items() if method is kind)
    query = {"name": f"query {place}", "statistic": ask.statistic.name, "column": ask.column, **options}
    if isinstance(ask.where, Expression):
        query["where"] = case.renamed(ask.where).words
    elif ask.where:
        query["where"] = {
            name: {"between": [given.low, given.high]} if isinstance(given, sf.Between) else given
            for name, given in ask.where.items()
        }
    if ask.by:
        query["group_by"] = ask.by
    return query | ({"groups": dict(ask.groups)} if ask.groups else {})


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        entries = [f"{_toml(name)} = {_toml(each)}" for name, each in value.items() if each is not None]
        return f"{{ {', '.join(entries)} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, Fraction):
        return repr(float(value))
    # A text of JSON is one of TOML, but for DEL.
    return json.dumps(value, ensure_ascii=False)
