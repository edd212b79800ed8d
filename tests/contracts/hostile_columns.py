"""Columns that break what is written without care, as one table, and what is asked of each."""

import math
from typing import Any

import sfumato as sf
from sfumato.quantile_methods import Quantiles

NAN, INF = math.nan, math.inf
ROWS = 12
QUOTED = "'; DROP TABLE people; --"

HOSTILE: dict[str, tuple[str, list[Any]]] = {
    "all NaN": ("real", [NAN] * ROWS),
    "all null": ("real", [None] * ROWS),
    "mixed nulls": ("real", [NAN, None, 1.0, NAN, None, 2.0] * 2),
    "infinities": ("real", [INF, -INF, 0.0, INF, -INF, 5.0] * 2),
    "signed zeros": ("real", [0.0, -0.0] * 6),
    "ties at an edge": ("real", [5.0] * 11 + [math.nextafter(5.0, 0)]),
    "tiny": ("real", [5e-324, -5e-324, 2.2e-308, 1e-300, -1e-300, 0.0] * 2),
    "huge": ("real", [1.7e308, -1.7e308, 1e300, 2.0**63, -(2.0**63), 2.0**64] * 2),
    "near the bounds": ("real", [10.0, math.nextafter(10.0, 0), math.nextafter(10.0, 99)] * 4),
    "halves": ("real", [0.5, 1.5, 2.5, 3.5, 4.5, 5.5] * 2),
    "integers": ("integer", [2**63 - 1, -(2**63), 2**53 + 1, 2**53, 0, 7] * 2),
    "no integers": ("integer", [None] * ROWS),
    "some integers": ("integer", [1, None, 3, None, 5, 10] * 2),
    "text": (
        "text",
        [
            "",
            " ",
            "a",
            "A",
            "a ",
            "\u00e9",
            "e\u0301",
            "NaN",
            "null",
            QUOTED,
            '"%_\\',
            "\U0001f600\n\t",
        ],
    ),
    "no text": ("text", [None] * ROWS),
    "text and nulls": ("text", ["a", None, "b", "ß", "ss", "1"] * 2),
    "booleans": ("boolean", [True, False, None] * 4),
    "no booleans": ("boolean", [None] * ROWS),
}
# The same letter as one character and as two: engines that normalise text would confuse them.
WORDS = (
    "",
    "a",
    "A",
    "a ",
    "\u00e9",
    "e\u0301",
    "null",
    QUOTED,
    '"%_\\',
    "\U0001f600\n\t",
    "absent",
)
WHOLE = (2**63 - 1, -(2**63), 2**53 + 1, 2**53, 0, 5, 11)
BUDGET = sf.PureDP(1)


WORST = (
    "mixed nulls: mean",
    "infinities: bins",
    "signed zeros: count of a point",
    "ties at an edge: edges",
    "huge: sum",
    "near the bounds: quartiles",
    "halves: sum around zero",
    "integers: categories",
    "integers: count of one",
    "text: categories",
    "booleans: categories",
    "by text",
)


def hostile_schema() -> dict[str, sf.Field]:
    """Public facts that suit every kind."""
    kinds = {
        "real": sf.Field(bounds=(0, 10)),
        "integer": sf.Field(bounds=(0, 10)),
        "text": sf.Field(categories=WORDS),
        "boolean": sf.Field(categories=(False, True)),
    }
    return {name: kinds[kind] for name, (kind, _) in HOSTILE.items()}


def _numbers(column: str) -> dict[str, Any]:
    about = {"budget": BUDGET, "column": column}
    return {
        "count": sf.Count(**about),
        "count of a range": sf.Count(**about, between=(0, 5)),
        "count of a point": sf.Count(**about, between=(0, 0)),
        "sum": sf.Sum(**about),
        "sum around zero": sf.Sum(**about, bounds=(-3, 4), nulls="upper"),
        "mean": sf.Mean(**about),
        "variance": sf.Variance(**about),
        "proportion": sf.Proportion(**about, between=(2.5, 5)),
        "bins": sf.Histogram(**about, bins=10),
        "odd bins": sf.Histogram(**about, bins=7, bounds=(-1e9, 1e9 + 1), nulls="lower"),
        "edges": sf.Histogram(**about, edges=(0, 2.5, 5, 10)),
        "first passing": sf.FirstPassing(**about, at=(0, 2.5, 5), count=3),
        "median": Quantiles(**about, probs=(0.5,), n_hint=12),
        "quartiles": Quantiles(**about, probs=(0.25, 0.5, 0.75), n_hint=12, bounds=(-5, 5)),
        "unbounded": Quantiles(**about, probs=(0.5,), n_hint=12, method="unbounded"),
    }


def _categories(column: str, given: tuple[Any, ...]) -> dict[str, Any]:
    about = {"budget": BUDGET, "column": column}
    return {
        "categories": sf.Histogram(**about, categories=given, other=True),
        "listed": sf.Histogram(**about, categories=given[:2]),
        "count of one": sf.Count(**about, equals=given[0]),
        "share of some": sf.Proportion(**about, equals=given[1:3] if len(given) > 2 else given[:1]),
        "most common": sf.MostCommon(**about, categories=given),
    }


def hostile_questions() -> dict[str, sf.Question]:
    """Everything that can be asked of each column."""
    found: dict[str, sf.Question] = {}
    for column, (kind, _) in HOSTILE.items():
        queries = {} if kind in ("text", "boolean") else _numbers(column)
        if kind != "real":
            queries |= _categories(column, {"text": WORDS, "integer": WHOLE, "boolean": (False, True)}[kind])
        for name, query in queries.items():
            found[f"{column}: {name}"] = sf.Question(query=query)
    found["by text"] = sf.Question(query=sf.Mean(budget=BUDGET, column="integers"), by=["text", "booleans"])
    narrow = {"integers": sf.Between(-1, 2**53), "text": ("a", "\u00e9", "\U0001f600\n\t")}
    found["narrow"] = sf.Question(query=sf.Mean(budget=BUDGET, column="infinities"), where=narrow)
    return found
