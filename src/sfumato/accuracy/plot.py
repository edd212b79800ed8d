"""Errors of a query as a picture."""

from collections.abc import Sequence
from typing import Any

from sfumato.accuracy.curves import MEASURES, curves
from sfumato.accuracy.scenario import Scenario
from sfumato.charts import error_curves, stacked
from sfumato.charts.releases import shortened, statistic_words
from sfumato.checks import Number, exact
from sfumato.errors import NotSupported

_ALONG = {"n": "number of values n", "candidates": "number of candidates"}


def plot(
    query: Any,
    *,
    n: int | None = None,
    confidence: Number = 0.95,
    scenario: Scenario | None = None,
    epsilons: Sequence[Number] | None = None,
    sizes: Sequence[int] | None = None,
    measure: str = "auto",
) -> Any:
    """Draws the errors of a query against its budget and against the number of values, with published bounds.

    Guarantee:
        Shows the numbers of `curves`, which are known before any data are read; nothing is spent. The dot is
        the query at its own budget.

    Args:
        query, n, confidence, scenario, epsilons, sizes, measure: as for `curves`.

    Raises:
        InvalidParameter: `n` is needed and not known, or a parameter breaks a rule.
        NotSupported: the error is zero or unbounded wherever it was looked at.
        MissingExtra: Altair is not installed.

    >>> import sfumato as sf
    >>> facts = {"neighbours": "substitution", "nulls": "lower", "rows": 1000}
    >>> chart = plot(sf.Mean(budget=sf.PureDP(1), bounds=(0, 1), **facts))
    >>> len(chart.to_dict()["vconcat"])
    2
    """
    asked: dict[str, Any] = {"n": n, "confidence": confidence, "scenario": scenario, "measure": measure}
    records = curves(query, **asked, epsilons=epsilons, sizes=sizes)
    if not records:
        raise NotSupported(f"plot needs an error that is positive and finite, and this {query.name} has none")
    level = f"{100 * float(exact('confidence', confidence)):.6g} %"
    mean = measure == MEASURES[2] or (measure == "auto" and query.name == "inverse_proportion")
    unit = shortened(str(records[0]["unit"]))
    words = f"mean error ({unit})" if mean else f"error at {level} ({unit})"
    if any(record["kind"] == "reference" for record in records):
        # Beside errors of another measure, the curve says which its own is.
        own, words = records[0]["curve"], f"error ({unit})"
        records = [{**row, "curve": f"{own} at {level}"} if row["curve"] == own else row for row in records]
    panels = []
    for panel in dict.fromkeys(record["panel"] for record in records):
        rows = [record for record in records if record["panel"] == panel]
        panels.append(error_curves(rows, along=_ALONG.get(panel, panel), unit=words, marker=_marker(rows)))
    return stacked(panels, title=_title(query), subtitle=_subtitle(query, records, scenario))


def _marker(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The query at its own budget, on its first curve."""
    own = next((row for row in rows if row["own"]), None)
    return own and {"x": own["x"], "error": own["error"], "text": f"this query: {own['error']:.3g}"}


def _title(query: Any) -> str:
    return f"error of the {statistic_words(query)} of {shortened(query.column)}, {query.budget!r}"


def _method_words(chosen: Any) -> str:
    """The name of the method that draws quantiles, and whether counts verify them."""
    verified = ", verified by counts" if chosen.name == "verified" else ""
    while chosen.name in ("verified", "framed"):
        chosen = chosen.method
    return str(chosen.name).replace("_", " ") + verified


def _subtitle(query: Any, records: list[dict[str, Any]], scenario: Scenario | None) -> list[str]:
    own = {record["panel"]: record["x"] for record in records if record["own"]}
    at = [f"n = {int(own['n']):,}"] if "n" in own else []
    at += [f"{int(own['candidates']):,} candidates"] if "candidates" in own else []
    at += [f"method {_method_words(query.chosen)}"] if query.name == "quantiles" and not query.sized else []
    at += [f"data like {scenario.words}"] if scenario is not None else []
    return ["; ".join(at)] if at else []
