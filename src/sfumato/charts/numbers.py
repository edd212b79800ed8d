"""Released numbers with their intervals: points, ribbons and bars."""

import math
from collections.abc import Sequence
from typing import Any

from sfumato.charts.theme import BLUE, INK, Records, altair, channels, enough, extent, finished, number_tip
from sfumato.data.moments import Reads, written

_POINTS_TO = {"low": "left", "high": "right"}
# Axes count days or seconds; what stands at a tick is the date.
_TICKS: dict[Reads, dict[str, str]] = {
    "number": {},
    "date": {"labelExpr": "utcFormat(datum.value * 86400000, '%Y-%m-%d')"},
    "datetime": {"labelExpr": "utcFormat(datum.value * 1000, '%Y-%m-%d %H:%M')"},
}
# Below this height a number in words would stand in the line above it.
_LEAST_STEP = 34
# Narrower bins than this have no room for the ends of an error bar.
_LEAST_ROOM = 5


def values_with_intervals(
    rows: Records,
    *,
    title: str = "",
    subtitle: Sequence[str] = (),
    unit: str = "value",
    width: int = 480,
    step: int = 44,
    reads: Reads = "number",
) -> Any:
    """Numbers by label, each as a point with its interval and its value in words.

    Guarantee:
        Shows `value`, `low` and `high` of every record and nothing else; an end that is infinite is drawn
        open, to the edge of the picture.

    Args:
        rows: records with `label`, `value`, `low`, `high`, and `text` for the number in words.
        title, subtitle: what stands above, the second one line each.
        unit: the title of the axis of values.
        width: of the plot itself, in pixels.
        step: the height of a label in pixels; numbers in words need at least 34.
        reads: what the values stand for: "number", "date" (days since 1970-01-01) or "datetime" (seconds of
            UTC since then).

    Raises:
        MissingExtra: Altair is not installed.
        InvalidParameter: no records, or too many for a picture.

    >>> chart = values_with_intervals([{"label": "mean", "value": 3.0, "low": 2.5, "high": 3.5}])
    >>> chart.to_dict()["$schema"].rpartition("/")[2][:2]
    'v6'
    """
    alt, data = altair(), intervals(rows, reads)
    # One label that says what the heading says already would only take room.
    names = alt.Undefined if any(row["label"] for row in data) else None
    base = alt.Chart().encode(y=alt.Y("label:N", sort=None, title=None, axis=names))
    scale = alt.Scale(zero=False, nice=True, padding=12)
    few = alt.Axis(tickCount=max(width // (80 if reads == "number" else 130), 2), **_TICKS[reads])
    bars = base.mark_rule(color=BLUE, strokeWidth=3, strokeCap="butt").encode(
        x=alt.X("low:Q", title=unit, scale=scale, axis=few),
        **channels(x2="high:Q"),
        tooltip=_tips(alt, "label", reads),
    )
    points = base.mark_point(color=BLUE, filled=True, size=90, opacity=1).encode(**channels(x="value:Q"))
    words = base.mark_text(dy=-13, color=INK, fontSize=13).encode(**channels(x="value:Q", text="text:N"))
    caps = [cap for side in ("low", "high") for cap in _caps(alt, base, side)]
    drawn = (bars, *caps, points, *([words] if step >= _LEAST_STEP else []))
    layers = alt.layer(*drawn, data=alt.Data(values=data), width=width, height=alt.Step(step))
    return finished(layers, title, subtitle)


def ribbon(
    rows: Records,
    *,
    title: str = "",
    subtitle: Sequence[str] = (),
    unit: str = "value",
    along: str = "order of the quantile",
    width: int = 480,
    marked: Sequence[float] = (),
    reads: Reads = "number",
) -> Any:
    """Numbers along an axis, with the interval of each as a ribbon around them.

    Guarantee:
        Shows `value`, `low` and `high` of every record at its `order` and nothing else; between records the
        lines are there to guide the eye.

    Args:
        rows: records with `order`, `value`, `low`, `high`.
        title, subtitle, unit, width: as for `values_with_intervals`.
        along: the title of the axis of orders.
        marked: the orders that have a tick; unless given, round numbers.
        reads: as for `values_with_intervals`.

    Raises:
        MissingExtra: Altair is not installed.
        InvalidParameter: no records, or too many for a picture.

    >>> rows = [{"order": p, "value": 10 * p, "low": 9 * p, "high": 11 * p} for p in (0.25, 0.5, 0.75)]
    >>> len(ribbon(rows).to_dict()["data"]["values"])
    3
    """
    data = intervals(rows, reads)
    layers = ribbon_layers(data, unit=unit, along=along, marked=marked, reads=reads)
    alt = altair()
    return finished(alt.layer(*layers, data=alt.Data(values=data), width=width, height=280), title, subtitle)


def ribbon_layers(
    data: list[dict[str, Any]],
    *,
    unit: str,
    along: str,
    marked: Sequence[float] = (),
    ticks: int | None = None,
    dot: int = 45,
    reads: Reads = "number",
) -> list[Any]:
    """The layers of a ribbon, without their data: ticks at the orders `marked`, about `ticks` values."""
    alt = altair()
    low, high = extent(data, "order")
    pad = 0.05 * (high - low) or 0.5
    few: dict[str, Any] = {**({} if ticks is None else {"tickCount": ticks}), **_TICKS[reads]}
    at = {"values": list(marked)} if marked else {}
    base = alt.Chart().encode(
        x=alt.X(
            "order:Q",
            title=along,
            scale=alt.Scale(domain=[low - pad, high + pad], nice=False),
            axis=alt.Axis(**at),
        )
    )
    band = base.mark_area(color=BLUE, opacity=0.25, line=False).encode(
        y=alt.Y("low:Q", title=unit, scale=alt.Scale(zero=False), axis=alt.Axis(**few)),
        **channels(y2="high:Q"),
    )
    # Whiskers where the numbers are: the ribbon between them is a guide and no statement.
    bars = base.mark_rule(color=BLUE, opacity=0.55, strokeWidth=1.5).encode(
        **channels(y="low:Q", y2="high:Q")
    )
    line = base.mark_line(color=BLUE, strokeWidth=2).encode(**channels(y="value:Q"))
    points = base.mark_point(color=BLUE, filled=True, size=dot, opacity=1).encode(
        **channels(y="value:Q"), tooltip=_tips(alt, "order", reads)
    )
    return [band, bars, line, points]


def bars_with_errors(
    rows: Records,
    *,
    title: str = "",
    subtitle: Sequence[str] = (),
    unit: str = "count",
    along: str = "value",
    width: int = 480,
    reads: Reads = "number",
) -> Any:
    """Counts as bars, each with its interval: upright over bins, lying where cells have names.

    Guarantee:
        Shows `value`, `low` and `high` of every record and nothing else; bars start at zero.

    Args:
        rows: records with `label`, `value`, `low`, `high`, and `start` and `end` where a cell is a bin.
        title, subtitle, width: as for `values_with_intervals`.
        unit: the title of the axis of counts.
        along: the title of the axis of bins.
        reads: what the edges of bins stand for, as for `values_with_intervals`.

    Raises:
        MissingExtra: Altair is not installed.
        InvalidParameter: no records, or too many for a picture.

    >>> chart = bars_with_errors([{"label": "yes", "value": 7, "low": 4, "high": 10}])
    >>> chart.to_dict()["data"]["values"][0]["high"]
    10.0
    """
    data = intervals(rows)
    layers, height = bar_layers(data, unit=unit, along=along, width=width, reads=reads)
    alt = altair()
    size = {"width": width, "height": 280 if height is None else height}
    return finished(alt.layer(*layers, data=alt.Data(values=data), **size), title, subtitle)


def bar_layers(
    data: list[dict[str, Any]],
    *,
    unit: str,
    along: str,
    width: int,
    ticks: int | None = None,
    reads: Reads = "number",
) -> tuple[list[Any], Any]:
    """The layers of bars with errors, without their data, and the height that lying bars need."""
    alt = altair()
    upright = all("start" in row for row in data)
    ticks = max(width // 80, 2) if ticks is None and not upright else ticks
    few = {} if ticks is None else {"axis": alt.Axis(tickCount=ticks)}
    if upright:
        for row in data:
            row["middle"] = (row["start"] + row["end"]) / 2
        # Side by side, the last number of one picture would meet the first of the next.
        fewer: dict[str, Any] = {} if ticks is None else {"tickCount": max(ticks - 1, 1)}
        if reads != "number":
            fewer = {"tickCount": max(width // 130, 1), **_TICKS[reads]}
        fewer = {"axis": alt.Axis(**fewer)} if fewer else {}
        bins = alt.X("start:Q", title=along, scale=alt.Scale(zero=False, nice=False), **fewer)
        cells = {"x": bins, **channels(x2="end:Q")}
        place: dict[str, Any] = channels(x="middle:Q")
        count, until = "y", "y2"
    else:
        cells = place = {"y": alt.Y("label:N", sort=None, title=None)}
        count, until = "x", "x2"
    axis = (alt.Y if upright else alt.X)("value:Q", title=unit, scale=alt.Scale(zero=True), **few)
    base = alt.Chart()
    # A bin is a rectangle from edge to edge, which does not start at zero by itself.
    body = base.transform_calculate(floor="0") if upright else base
    ends = {count: axis, **channels(**{until: "floor:Q"})} if upright else {count: axis}
    mark = body.mark_rect if upright else body.mark_bar
    bars = mark(color=BLUE, opacity=0.35, stroke=BLUE, strokeWidth=0.8).encode(
        **cells, **ends, tooltip=_tips(alt, "label")
    )
    room = width / max(len({row["label"] for row in data}), 1) if upright else 26.0
    # Lines of many narrow bins would hide the bars that they belong to.
    thin = max(0.4, min(1.6, 0.35 * room))
    span = channels(**{count: "low:Q", until: "high:Q"})
    errors = base.mark_rule(color=INK, strokeWidth=thin).encode(**place, **span)
    caps = [
        base.mark_tick(
            color=INK,
            opacity=1,
            thickness=thin,
            size=min(9.0, 0.5 * room) if upright else 9.0,
            orient="horizontal" if upright else "vertical",
        ).encode(**place, **channels(**{count: f"{side}:Q"}))
        for side in ("low", "high")
        if room > _LEAST_ROOM
    ]
    return [bars, errors, *caps], None if upright else alt.Step(26)


def intervals(rows: Records, reads: Reads = "number") -> list[dict[str, Any]]:
    """The records in JSON's types; ends that are infinite are moved to the edge of the picture and marked."""
    enough(rows)
    data: list[dict[str, Any]] = []
    for row in rows:
        found = {name: float(row[name]) for name in ("value", "low", "high")}
        found |= {name: float(row[name]) for name in ("order", "start", "end") if name in row}
        value = found["value"]
        words = {"label": str(row.get("label", "")), "text": str(row.get("text", f"{value:,.6g}"))}
        words |= {"group": str(row["group"])} if "group" in row else {}
        data.append({**words, **found})
    ends = [row[name] for row in data for name in ("value", "low", "high") if math.isfinite(row[name])]
    least, most = min(ends), max(ends)
    pad = 0.15 * (most - least) or (max(abs(most), 1.0) if reads == "number" else 1.0)
    if reads != "number":
        for row in data:
            row |= {f"{name}_text": written(row[name], reads) for name in ("value", "low", "high")}
    for row in data:
        row["open_low"], row["open_high"] = row["low"] == -math.inf, row["high"] == math.inf
        row["low"], row["high"] = max(row["low"], least - pad), min(row["high"], most + pad)
    return data


def _tips(alt: Any, first: str, reads: Reads = "number") -> list[Any]:
    kind = "label:N" if first == "label" else f"{first}:Q"
    if reads != "number":
        return [
            alt.Tooltip(kind),
            *(alt.Tooltip(f"{name}_text:N", title=name) for name in ("value", "low", "high")),
        ]
    return [alt.Tooltip(kind), *(number_tip(alt, name) for name in ("value", "low", "high"))]


def _caps(alt: Any, base: Any, side: str) -> list[Any]:
    """The end of an interval: a tick where it ends, an arrow where it is open."""
    opened, closed = (
        alt.OpacityValue(0, condition={"test": test, "value": 1})
        for test in (f"datum.open_{side}", f"!datum.open_{side}")
    )
    arrow = base.mark_point(color=BLUE, filled=True, size=130, shape=f"triangle-{_POINTS_TO[side]}")
    tick = base.mark_tick(color=BLUE, thickness=3, size=13, orient="vertical")
    end = channels(x=f"{side}:Q")
    return [tick.encode(**end, opacity=closed), arrow.encode(**end, opacity=opened)]
