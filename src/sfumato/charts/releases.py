"""The picture of a release: which of the charts shows it, and what stands above."""

import textwrap
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.charts.numbers import bars_with_errors, ribbon, values_with_intervals
from sfumato.data.moments import written
from sfumato.errors import NotSupported
from sfumato.grid import as_edges
from sfumato.release import SLOPES, Release, printable, rounded

_LONGEST = 36
_LINE = 92
_USUAL = {2: "median", 4: "quartiles", 5: "quintiles", 10: "deciles", 20: "ventiles", 100: "percentiles"}


def release_chart(release: Release, confidence: float, *, simultaneous: bool, scenario: Any) -> Any:
    """The chart of a release: a point, a ribbon or bars, with the intervals of `release.interval`."""
    query: Any = release.query
    if not _is_number(release.value):
        raise NotSupported(
            f"plot needs an answer that is a number: that of this {statistic_words(query)} is a label or none"
        )
    span = release.interval(confidence, simultaneous=simultaneous, scenario=scenario)
    columns = [np.atleast_1d(np.asarray(part, dtype=np.float64)) for part in (release.value, *span)]
    rows = [
        {
            "label": shortened(label),
            "value": value,
            "low": low,
            "high": high,
            "text": _text(release, value, high - low),
        }
        for label, value, low, high in zip(query.labels(), *(part.tolist() for part in columns), strict=True)
    ]
    titles: dict[str, Any] = {
        "title": _title(release),
        "subtitle": _subtitle(release, confidence, simultaneous, scenario),
    }
    if query.name == "quantiles" and len(set(query.probs)) > 1:
        for row, order in zip(rows, query.probs, strict=True):
            row["order"] = float(order)
        rows.sort(key=lambda row: row["order"])
        return ribbon(rows, **titles, unit=shortened(query.column), reads=release.reads)
    if query.name != "histogram":
        return values_with_intervals(rows, **titles, unit=_unit(query), reads=release.reads)
    if query.grid is not None:
        edges = [float(edge) for edge in as_edges(query.grid)]
        for row, start, end in zip(rows, edges[:-1], edges[1:], strict=True):
            row |= {"start": start, "end": end}
    return bars_with_errors(
        rows, **titles, unit="number of values", along=shortened(query.column), reads=query.reads
    )


def _text(release: Release, value: float, width: float) -> str:
    if release.reads != "number":
        return written(value, release.reads, width)
    return rounded(int(value) if value.is_integer() and _whole(release) else value, width)


def shortened(name: str) -> str:
    """A name that fits a title or an axis: on one line, and cut where it is long.

    >>> shortened("a" * 50)
    'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…'
    """
    text = printable(name)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def statistic_words(query: Any) -> str:
    """The statistic in words; usual quantiles by their usual name."""
    if query.name == "quantiles":
        for parts, name in _USUAL.items():
            if sorted(query.probs) == [Fraction(i, parts) for i in range(1, parts)]:
                return name
    return str(query.name.replace("_", " "))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.ndarray | np.number) and not isinstance(value, bool)


def _whole(release: Release) -> bool:
    value = release.value
    return isinstance(value, int | np.integer) or (isinstance(value, np.ndarray) and value.dtype.kind == "i")


def _title(release: Release) -> str:
    return f"{statistic_words(release.query)} of {shortened(release.query.column)}, {release.cost!r}"


def _unit(query: Any) -> str:
    column = shortened(query.column)
    return {
        "count": "number of values",
        "proportion": "share of values",
        "inverse_proportion": "share of values",
        "variance": f"{column}, squared",
    }.get(query.name, column)


def _subtitle(release: Release, confidence: float, simultaneous: bool, scenario: Any) -> list[str]:
    several = len(release.query.labels()) > 1
    each = "" if not several else ", all together" if simultaneous else ", each by itself"
    shape = "bar" if release.query.name != "quantiles" or not several else "ribbon"
    lines = [f"{shape}: {100 * float(confidence):.6g} % interval for the value in the data{each}"]
    if scenario is not None:
        assumed = "as spread as released neighbours are" if scenario == SLOPES else None
        assumed = getattr(scenario, "words", assumed)
        known = "holds on any data" if assumed is None else f"assumed about the data: {assumed}"
        lines += textwrap.wrap(printable(known), _LINE)
    elif release.query.name == "quantiles":
        # What the interval of quantiles rests on is no detail.
        about = (note for note in release.notes if "interval" in note)
        lines += [line for note in about for line in textwrap.wrap(note, _LINE)]
    return lines + ([] if release.private else ["NOT PRIVATE: drawn with seeded bits"])
