"""Rows of a figure that hold an exact and a simulated number, as records for a chart."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

MEASURED = "measured"
# The kind of numbers that errata count over many cases, which are judged and not drawn.
CASES = "cases"
# What a subtitle says of a chart of such rows.
LEGEND = "thick lines: exact; points: simulated, ± 2 standard errors"


def share(chance: float, found: Any) -> dict[str, Any]:
    """Entries of a row: a chance, and in how many of independent draws it was found.

    The standard error is that of the chance itself, since few draws may find nothing; at least one draw's.
    """
    draws = len(found)
    se = math.sqrt(max(chance * (1 - chance), 1 / draws) / draws)
    return {"kind": MEASURED, "exact": chance, "mean": float(np.mean(found)), "se": se, "repeats": draws}


def case_rows(numbers: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows for the numbers of an erratum's finding, by their names."""
    return [
        {"panel": CASES, "curve": name, "kind": CASES, "exact": float(value)}
        for name, value in numbers.items()
    ]


def cases(frame: Any) -> dict[str, float]:
    """What those rows say, by name."""
    counted = frame.filter(frame["kind"] == CASES)
    return dict(zip(counted["curve"], counted["exact"], strict=True))


def point(mean: float, se: float | None) -> dict[str, Any]:
    """A simulated number in a chart, with a bar of two standard errors to each side."""
    bar = 2 * (se or 0.0)
    return {"kind": "simulated", "y": mean, "low": mean - bar, "high": mean + bar}


def line_and_point(place: Mapping[str, Any], row: Mapping[str, Any], se: str = "se") -> list[dict[str, Any]]:
    """What a row knows exactly as a place of a line, and what was simulated as a point; each if it is there.

    Args:
        place: where in the chart: `curve`, `x`, perhaps `panel`.
        row: with `exact`, `mean`, and a standard error of the mean.
        se: which entry that is.
    """
    line = [] if row["exact"] is None else [{**place, "kind": "exact", "y": row["exact"]}]
    return line if row["mean"] is None else [*line, {**place, **point(row["mean"], row[se])}]


def charted(rows: Iterable[Mapping[str, Any]], along: str, *, most: float = math.inf) -> list[dict[str, Any]]:
    """Lines of what is exact or promised, and points with bars of two standard errors of what was drawn.

    Args:
        rows: with `curve`, `kind`, `exact`, perhaps `panel`; `mean` and `se` where draws were made.
        along: which entry is on the horizontal axis.
        most: larger promises are left out.
    """
    found: list[dict[str, Any]] = []
    for row in rows:
        if row["kind"] == CASES:
            continue
        place = {"curve": row["curve"], "x": row[along], "panel": row.get("panel") or ""}
        drawn = row["kind"] == MEASURED
        if row["exact"] is not None and row["exact"] <= most:
            found.append({**place, "kind": "exact" if drawn else row["kind"], "y": row["exact"]})
        if row.get("mean") is not None:
            found.append({**place, **point(row["mean"], row["se"])})
    return found
