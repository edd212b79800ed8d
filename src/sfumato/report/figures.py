"""The charts of a result, for a wide page and for a phone, and what they show in a sentence."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from sfumato.charts import (
    bars_by_group,
    bars_with_errors,
    ribbon,
    ribbons_by_group,
    svg,
    values_with_intervals,
)
from sfumato.charts.theme import MOST_MARKS
from sfumato.grid import as_edges
from sfumato.report.numbers import Cell, Group
from sfumato.report.words import cut, text

# More groups than this are no picture any more; the table has all.
MOST_DOTS, MOST_PANELS = 60, 24
_CLOSE, _FEW_ORDERS = 12, 12
# An interval that is so many times as wide as all values together would leave no room for them.
_TOO_WIDE = 1.5


@dataclass(frozen=True)
class Figure:
    """A picture twice, for a wide page and for a phone, and how many of the groups it shows."""

    wide: str
    narrow: str
    shown: int
    groups: int
    kind: str
    cut: bool


def figure(query: Any, found: Sequence[Group], heading: Any, prefix: str) -> Figure | None:
    """The picture of a result, or None if its answer is no number."""
    several = len(found[0].cells) > 1
    kind = _kind(query, several)
    most = MOST_PANELS if several and found[0].key else MOST_DOTS
    marks = max(len(found[0].cells), 1)
    chosen = found[: max(1, min(most, MOST_MARKS // marks))]
    if marks > MOST_MARKS or not any(cell.drawn for group in chosen for cell in group.cells):
        return None
    words = sentence(query, found, heading)
    room = _room(chosen) if kind == "ribbon" else (-math.inf, math.inf)
    shown = [replace(group, cells=tuple(_inside(cell, room) for cell in group.cells)) for group in chosen]
    wide, narrow = (
        svg(_chart(query, shown, kind, small), alt=words, prefix=f"{prefix}{'n' if small else 'w'}")
        for small in (False, True)
    )
    return Figure(wide, narrow, len(chosen), len(found), kind, shown != list(chosen))


def sentence(query: Any, found: Sequence[Group], heading: Any) -> str:
    """What the picture shows, for readers who hear it: the main numbers with their intervals."""
    title = text(heading)
    start = f"{title}, with 95 % intervals."
    if len(found[0].cells) == 1:
        cells = [(group.name, group.cells[0]) for group in found if group.cells[0].drawn]
        if len(found) == 1:
            return f"{title}: {cells[0][1].words}, a 95 % interval." if cells else start
        return f"{start} {len(found)} groups. {_ends(cells)}"
    if query.name == "quantiles":
        middle = min(range(len(query.probs)), key=lambda i: abs(query.probs[i] - 0.5))
        if len(found) == 1:
            drawn = [found[0].cells[i] for i in sorted({0, middle, len(found[0].cells) - 1})]
            return f"{start} " + "; ".join(f"at {cell.label}: {cell.words}" for cell in drawn) + "."
        cells = [(group.name, group.cells[middle]) for group in found if group.cells[middle].drawn]
        return f"{start} {len(found)} groups. At {found[0].cells[middle].label}: {_ends(cells)}"
    if len(found) == 1:
        return f"{start} {_ends([(cell.label, cell) for cell in found[0].cells if cell.drawn])}"
    each = [(f"{group.name}, {cell.label}", cell) for group in found for cell in group.cells if cell.drawn]
    return f"{start} {len(found)} groups. {_ends(each)}"


def _ends(cells: Sequence[tuple[str, Cell]]) -> str:
    if not cells:
        return ""
    low, high = (pick(cells, key=lambda pair: pair[1].value) for pick in (min, max))
    return f"Highest: {cut(high[0])}, {high[1].words}. Lowest: {cut(low[0])}, {low[1].words}."


def _room(found: Sequence[Group]) -> tuple[float, float]:
    """What a ribbon may show of intervals: some room around the values."""
    values = [cell.value for group in found for cell in group.cells if cell.drawn]
    least, most = min(values), max(values)
    pad = _TOO_WIDE * (most - least)
    return (least - pad, most + pad) if pad else (-math.inf, math.inf)


def _inside(cell: Cell, room: tuple[float, float]) -> Cell:
    # Charts draw an end without a bound to the edge of the picture.
    low = cell.low if cell.low >= room[0] else -math.inf
    return replace(cell, low=low, high=cell.high if cell.high <= room[1] else math.inf)


def _kind(query: Any, several: bool) -> str:
    if not several:
        return "dots"
    if query.name == "quantiles":
        return "ribbon"
    return "bars" if query.name == "histogram" else "dots"


def _chart(query: Any, found: Sequence[Group], kind: str, narrow: bool) -> Any:
    if kind == "dots":
        return _dots(query, found, narrow)
    reads: Any = getattr(query, "reads", "number")
    # Half of a date tells nothing.
    longest = (18, 26) if reads == "number" else (26, 44)
    rows = _records(query, found, longest[0 if narrow else 1], narrow)
    column = cut(str(query.column).replace("_", " "), 22 if narrow else 36)
    up, across = (column, "% of the values that are lower")
    if kind == "bars":
        up, across = ("number of rows", column)
    lying = kind == "bars" and not _edges(query)
    orders = sorted({row["order"] for row in rows if "order" in row})
    if not found[0].key:
        if lying:
            return bars_with_errors(rows, unit=up, width=140 if narrow else 460)
        width = 250 if narrow else 590
        if kind == "bars":
            bars = bars_with_errors(rows, unit="", along=across, width=width, reads=reads)
            return _headed(bars, up)
        ticks = orders if len(orders) <= _FEW_ORDERS else ()
        return _headed(ribbon(rows, unit="", along=across, width=width, marked=ticks, reads=reads), up)
    columns = _columns(len(found), narrow)
    panel = (270 if narrow else 610) // columns - 22
    if lying:
        return _headed(
            bars_by_group(rows, unit="", columns=columns, width=panel - (40 if narrow else 30)), up
        )
    words = f"{up}, by {across}"
    if kind == "bars":
        bars = bars_by_group(rows, unit="", along="", columns=columns, width=panel, reads=reads)
        return _headed(bars, words)
    ends = (orders[0], orders[len(orders) // 2], orders[-1])
    ribbons = ribbons_by_group(
        rows, unit="", along="", columns=columns, width=panel, marked=ends, reads=reads
    )
    return _headed(ribbons, words)


def _headed(chart: Any, words: str) -> Any:
    """The chart with what its values are above its axis, where words of any length have room."""
    line = {"fontSize": 12, "fontWeight": "normal", "anchor": "start", "offset": 12, "limit": 640}
    return chart.properties(title={"text": words, **line})


def _columns(panels: int, narrow: bool) -> int:
    """How many pictures side by side leave the fewest gaps."""
    return min(panels, min((2,) if narrow else (4, 3), key=lambda across: -panels % across))


def _dots(query: Any, found: Sequence[Group], narrow: bool) -> Any:
    width = 250 if narrow else 560
    by_group = bool(found[0].key)
    named = [(group.name if by_group else cell.label, cell) for group in found for cell in group.cells]
    single = len(named) == 1
    longest = 15 if narrow else 32
    rows: list[dict[str, Any]] = [
        {
            "label": "" if single else label,
            "value": cell.value,
            "low": cell.low,
            "high": cell.high,
            "text": cell.shown,
        }
        for label, (_, cell) in zip(distinct([one for one, _ in named], longest), named, strict=True)
        if cell.drawn
    ]
    taken = 0 if single else min(7 * max(len(row["label"]) for row in rows), 190)
    return values_with_intervals(
        rows,
        unit=_unit(query),
        width=width + 40 - (taken if not narrow else min(taken, 90)),
        step=44 if len(rows) <= _CLOSE else 24,
        reads=getattr(query, "answer_reads", "number"),
    )


def _records(query: Any, found: Sequence[Group], longest: int, narrow: bool) -> list[dict[str, Any]]:
    """The numbers as records for a chart."""
    edges = _edges(query)
    names = distinct([group.name for group in found], 17 if narrow else 24)
    cell_names = distinct([cell.label for cell in found[0].cells], longest)
    rows: list[dict[str, Any]] = []
    for group, title in zip(found, names, strict=True):
        own = {"group": title} if group.key else {}
        part: list[dict[str, Any]] = []
        for place, (cell, label) in enumerate(zip(group.cells, cell_names, strict=True)):
            row = {**own, "label": label, "value": cell.value, "low": cell.low, "high": cell.high}
            if query.name == "quantiles":
                row["order"] = float(100 * query.probs[place])
            elif edges:
                row |= {"start": edges[place], "end": edges[place + 1]}
            if cell.drawn:
                part.append(row)
        rows += sorted(part, key=lambda row: row.get("order", 0))
    return rows


def _edges(query: Any) -> list[float]:
    """The edges of equal bins; bars over unequal ones would show areas that mean nothing."""
    if getattr(query, "grid", None) is None:
        return []
    edges = as_edges(query.grid)
    equal = len({high - low for low, high in pairwise(edges)}) == 1
    return [float(edge) for edge in edges] if equal else []


def distinct(names: Sequence[str], longest: int) -> list[str]:
    """Names cut to a length, and numbered where the cut made two of them equal.

    >>> distinct(["abcdef", "abcdeg"], 4)
    ['abc…', 'abc… (2)']
    """
    seen: dict[str, int] = {}
    found = []
    for one in names:
        short = cut(one, longest) or "(empty)"
        seen[short] = seen.get(short, 0) + 1
        found.append(short if seen[short] == 1 else f"{short} ({seen[short]})")
    return found


def _unit(query: Any) -> str:
    column = cut(str(query.column).replace("_", " "))
    return {
        "count": "number of rows",
        "proportion": "share of values",
        "inverse_proportion": "share of values",
        "variance": f"{column}, squared",
    }.get(query.name, column)
