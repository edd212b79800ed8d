"""The questions that every engine must answer alike, their table, and how answers compare."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.engines import ENGINES, mapping

import sfumato as sf
from sfumato.laws import SeededBits
from sfumato.quantile_methods import METHODS, Quantiles

RELATIONS = ("substitution", "add-remove")
SIZE = 300
DOZEN = 12
BUDGET = sf.PureDP(1)
TEAMS = ("red", "blue", "grün ✓", "O'Hara", "nobody")
CODES = (1, 2, 2**53 + 1)


def people(size: int = SIZE) -> dict[str, tuple[str, list[Any]]]:
    """Rows with values of every kind: inside and outside their bounds, missing, tied, unlisted."""
    odd = [math.nan, None, math.inf, -math.inf, -0.0, 0.0, 1e300, -1e300, 5e-324, 250_000.0, 249_999.99]
    salaries = [odd[i % len(odd)] if i % 7 == 3 else 1_000.0 * (i * 37 % 240) + i / 8 for i in range(size)]
    ages = [None if i % 11 == 5 else (i * 29) % 130 - 5 for i in range(size)]
    teams = [None if i % 13 == 4 else (*TEAMS[:4], "other\n", "")[i * 5 % 6] for i in range(size)]
    codes = [None if i % 17 == 2 else (1, 2, 3, 2**53, 2**53 + 1, 2**63 - 1)[i * 7 % 6] for i in range(size)]
    members = [None if i % 19 == 6 else i % 3 == 0 for i in range(size)]
    return {
        "salary": ("real", salaries),
        "age": ("integer", ages),
        "team": ("text", teams),
        "code": ("integer", codes),
        "member": ("boolean", members),
    }


SCHEMA = {
    "salary": sf.Field(bounds=(0, 250_000)),
    "age": sf.Field(bounds=(0, 120)),
    "team": sf.Field(categories=TEAMS),
    "code": sf.Field(categories=CODES),
    "member": sf.Field(categories=(True, False)),
}
WHERE = {
    "a category": {"team": "red"},
    "several conditions": {"team": ("blue", "O'Hara"), "salary": sf.Between(1_000, 200_000)},
    "a boolean": {"member": True},
    "a huge integer": {"code": 2**53 + 1},
}


@dataclass(frozen=True)
class Line:
    """A statistic that is asked of every engine, and where it can be asked."""

    query: Any
    whole_only: bool = False
    relations: tuple[str, ...] = RELATIONS


def _public(kind: Any, **options: Any) -> Line:
    # These divide by a public number of rows.
    query = kind(budget=BUDGET, nulls="lower", **options)
    return Line(query, whole_only=True, relations=("substitution",))


def _quantiles(method: Any, column: str = "salary", **options: Any) -> Line:
    probs = (0.5,) if method == "inverse-sensitivity" or method == "single" else (0.1, 0.25, 0.5, 0.9)
    query = Quantiles(
        **{"probs": probs, "budget": BUDGET, "column": column, "method": method, "n_hint": 100, **options}
    )
    return Line(query)


def _asked(kind: Any, **options: Any) -> Line:
    return Line(kind(budget=BUDGET, **options))


LINES: dict[str, Line] = {
    "count": _asked(sf.Count, column="salary"),
    "count of a range": _asked(sf.Count, column="salary", between=(-0.0, 99_000.5)),
    "count of categories": _asked(sf.Count, column="team", equals=("red", "grün ✓")),
    "count of huge integers": _asked(sf.Count, column="code", equals=2**53 + 1),
    "sum": _asked(sf.Sum, column="salary"),
    "sum of integers": _asked(sf.Sum, column="age", nulls="upper"),
    "mean": _asked(sf.Mean, column="salary"),
    "mean with nulls at the lower bound": _asked(sf.Mean, column="age", nulls="lower"),
    "mean of negative numbers": _asked(sf.Mean, column="salary", bounds=(-1e6, 10)),
    "variance": _asked(sf.Variance, column="salary"),
    "variance of a public size": _asked(sf.Variance, column="age", nulls="upper"),
    "proportion": _asked(sf.Proportion, column="member"),
    "proportion of a range": _asked(sf.Proportion, column="age", between=(18, 65), nulls="upper"),
    "histogram of bins": _asked(sf.Histogram, column="salary", bins=17),
    "histogram of edges": _asked(sf.Histogram, column="age", edges=(0, 18, 18.5, 65, 121)),
    "histogram of text": _asked(sf.Histogram, column="team", other=True),
    "histogram of integers": _asked(sf.Histogram, column="code", other=True),
    "histogram of booleans": _asked(sf.Histogram, column="member"),
    "most common": _asked(sf.MostCommon, column="team", picks=2),
    "most common integer": _asked(sf.MostCommon, column="code"),
    "first passing": _asked(sf.FirstPassing, column="age", at=(10, 20.5, 40, 80), count=60),
    "first passing from above": _asked(
        sf.FirstPassing, column="salary", at=(0, 1e4, 1e5, 2e5), count=20, from_above=True, nulls="upper"
    ),
    "inverse mean": _public(sf.InverseMean, column="age"),
    "exponential mean": _public(sf.ExponentialMean, column="salary"),
    "inverse proportion": _public(sf.InverseProportion, column="member"),
    **{f"quantiles by {method}": _quantiles(method) for method in METHODS},
    "quantiles by auto": _quantiles("auto"),
    "quantiles of integers": _quantiles("auto", "age"),
    "quantiles with nulls at the upper bound": _quantiles("auto", nulls="upper"),
    "quantiles by steps": _quantiles("auto", step=1_000),
    "quantiles that count first": _quantiles("recursive", n_hint=None),
    "a median": _quantiles("auto", probs=(0.5,), n_hint=None, scalar=True),
    "quantiles with an interval": _quantiles("auto", interval_share="auto"),
    "quantiles that are not verified": _quantiles("joint", verify=0),
    "a median that is not verified": _quantiles("auto", probs=(0.5,), n_hint=None, verify=0),
    "a median that is verified by a fifth": _quantiles("auto", probs=(0.5,), n_hint=None, verify=0.2),
}


def questions(form: str, neighbours: str) -> dict[str, sf.Question]:
    """Every line that can be asked so: "whole", one of WHERE, or "by" a column."""
    found = {}
    for name, line in LINES.items():
        if neighbours in line.relations and not (line.whole_only and form != "whole"):
            where, by = WHERE.get(form, {}), (form.removeprefix("by "),) if form.startswith("by ") else ()
            if line.query.column not in by:
                found[name] = sf.Question(query=line.query, where=where, by=by, name=name)
    return found


FORMS = ("whole", *WHERE, "by team", "by code", "by member")


def dataset(native: Any, neighbours: str, schema: Mapping[str, sf.Field] = SCHEMA) -> sf.Dataset:
    return sf.Dataset(native, unit="row", neighbours=neighbours, schema=schema)


def answers(
    native: Any, asked: Mapping[str, sf.Question], neighbours: str, schema: Mapping[str, sf.Field] = SCHEMA
) -> dict[str, Any]:
    """What is released, a dozen questions at once: outcomes, with the public facts that were bound."""
    found, names = {}, list(asked)
    session = sf.Session(
        dataset(native, neighbours, schema), budget=sf.PureDP(len(asked) + 1), bits=SeededBits(7)
    )
    for start in range(0, len(names), DOZEN):
        some = names[start : start + DOZEN]
        released = session.answer_all([asked[name] for name in some])
        found |= {name: outcome(release) for name, release in zip(some, released, strict=True)}
    return found


def outcome(release: Any) -> Any:
    """All that decides a release."""
    if hasattr(release, "releases"):
        return {key: outcome(part) for key, part in release.releases.items()}
    return release.outcome, replace(release.query)


def expected(table: Any, asked: Mapping[str, sf.Question], neighbours: str, schema: Any = SCHEMA) -> Any:
    """The same from the NumPy mapping."""
    return answers(mapping(table), asked, neighbours, schema)


def native(engine: str, table: Any) -> Any:
    return ENGINES[engine](table)
