"""Released numbers with their intervals: points, ribbons and bars."""

import math
from collections.abc import Sequence
from typing import Any

from sfumato.charts.theme import BLUE, INK, Records, altair, enough, extent, finished, number_tip

_POINTS_TO = {"low": "left", "high": "right"}


def values_with_intervals(
    rows: Records, *, title: str = "", subtitle: Sequence[str] = (), unit: str = "value", width: int = 480
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

    Raises:
        MissingExtra: Altair is not installed.
        InvalidParameter: no records, or too many for a picture.

    >>> chart = values_with_intervals([{"label": "mean", "value": 3.0, "low": 2.5, "high": 3.5}])
    >>> chart.to_dict()["$schema"].rpartition("/")[2][:2]
    'v6'
    """
    alt, data = altair(), _intervals(rows)
    base = alt.Chart(alt.Data(values=data)).encode(y=alt.Y("label:N", sort=None, title=None))
    scale = alt.Scale(zero=False, nice=True, padding=12)
    few = alt.Axis(tickCount=max(width // 80, 2))
    bars = base.mark_rule(color=BLUE, strokeWidth=3, strokeCap="butt").encode(
        x=alt.X("low:Q", title=unit, scale=scale, axis=few), x2="high:Q", tooltip=_tips(alt, "label")
    )
    points = base.mark_point(color=BLUE, filled=True, size=90, opacity=1).encode(x="value:Q")
    words = base.mark_text(dy=-13, color=INK, fontSize=13).encode(x="value:Q", text="text:N")
    caps = [cap for side in ("low", "high") for cap in _caps(alt, base, side)]
    layers = alt.layer(bars, *caps, points, words)
    return finished(layers.properties(width=width, height=alt.Step(44)), title, subtitle)


def ribbon(
    rows: Records,
    *,
    title: str = "",
    subtitle: Sequence[str] = (),
    unit: str = "value",
    along: str = "order of the quantile",
    width: int = 480,
) -> Any:
    """Numbers along an axis, with the interval of each as a ribbon around them.

    Guarantee:
        Shows `value`, `low` and `high` of every record at its `order` and nothing else; between records the
        lines are there to guide the eye.

    Args:
        rows: records with `order`, `value`, `low`, `high`.
        title, subtitle, unit, width: as for `values_with_intervals`.
        along: the title of the axis of orders.

    Raises:
        MissingExtra: Altair is not installed.
        InvalidParameter: no records, or too many for a picture.

    >>> rows = [{"order": p, "value": 10 * p, "low": 9 * p, "high": 11 * p} for p in (0.25, 0.5, 0.75)]
    >>> len(ribbon(rows).to_dict()["data"]["values"])
    3
    """
    alt, data = altair(), _intervals(rows)
    low, high = (bound for bound in extent(data, "order"))
    pad = 0.05 * (high - low) or 0.5
    base = alt.Chart(alt.Data(values=data)).encode(
        x=alt.X("order:Q", title=along, scale=alt.Scale(domain=[low - pad, high + pad], nice=False))
    )
    band = base.mark_area(color=BLUE, opacity=0.25, line=False).encode(
        y=alt.Y("low:Q", title=unit, scale=alt.Scale(zero=False)), y2="high:Q"
    )
    # Whiskers where the numbers are: the ribbon between them is a guide and no statement.
    bars = base.mark_rule(color=BLUE, opacity=0.55, strokeWidth=1.5).encode(y="low:Q", y2="high:Q")
    line = base.mark_line(color=BLUE, strokeWidth=2).encode(y="value:Q")
    points = base.mark_point(color=BLUE, filled=True, size=45, opacity=1).encode(
        y="value:Q", tooltip=_tips(alt, "order")
    )
    layers = alt.layer(band, bars, line, points).properties(width=width, height=280)
    return finished(layers, title, subtitle)


def bars_with_errors(
    rows: Records,
    *,
    title: str = "",
    subtitle: Sequence[str] = (),
    unit: str = "count",
    along: str = "value",
    width: int = 480,
) -> Any:
    """Counts as bars, each with its interval: upright over bins, lying where cells have names.

    Guarantee:
        Shows `value`, `low` and `high` of every record and nothing else; bars start at zero.

    Args:
        rows: records with `label`, `value`, `low`, `high`, and `start` and `end` where a cell is a bin.
        title, subtitle, width: as for `values_with_intervals`.
        unit: the title of the axis of counts.
        along: the title of the axis of bins.

    Raises:
        MissingExtra: Altair is not installed.
        InvalidParameter: no records, or too many for a picture.

    >>> chart = bars_with_errors([{"label": "yes", "value": 7, "low": 4, "high": 10}])
    >>> chart.to_dict()["data"]["values"][0]["high"]
    10.0
    """
    alt, data = altair(), _intervals(rows)
    upright = all("start" in row for row in data)
    if upright:
        for row in data:
            row["middle"] = (row["start"] + row["end"]) / 2
        bins = alt.X("start:Q", title=along, scale=alt.Scale(zero=False, nice=False))
        cells = {"x": bins, "x2": "end:Q"}
        place: dict[str, Any] = {"x": "middle:Q"}
        count, until, shape = "y", "y2", {"height": 280}
    else:
        cells = place = {"y": alt.Y("label:N", sort=None, title=None)}
        count, until, shape = "x", "x2", {"height": alt.Step(26)}
    axis = (alt.Y if upright else alt.X)("value:Q", title=unit, scale=alt.Scale(zero=True))
    base = alt.Chart(alt.Data(values=data))
    # A bin is a rectangle from edge to edge, which does not start at zero by itself.
    body = base.transform_calculate(floor="0") if upright else base
    ends = {count: axis, until: "floor:Q"} if upright else {count: axis}
    mark = body.mark_rect if upright else body.mark_bar
    bars = mark(color=BLUE, opacity=0.35, stroke=BLUE, strokeWidth=0.8).encode(
        **cells, **ends, tooltip=_tips(alt, "label")
    )
    errors = base.mark_rule(color=INK, strokeWidth=1.6).encode(**place, **{count: "low:Q", until: "high:Q"})
    narrow = min(9, max(2, 0.5 * width / max(len(data), 1)))
    caps = [
        base.mark_tick(
            color=INK, opacity=1, thickness=1.6, size=narrow, orient="horizontal" if upright else "vertical"
        ).encode(**place, **{count: f"{side}:Q"})
        for side in ("low", "high")
    ]
    layers = alt.layer(bars, errors, *caps).properties(width=width, **shape)
    return finished(layers, title, subtitle)


def _intervals(rows: Records) -> list[dict[str, Any]]:
    """The records in JSON's types; ends that are infinite are moved to the edge of the picture and marked."""
    enough(rows)
    data: list[dict[str, Any]] = []
    for row in rows:
        found = {name: float(row[name]) for name in ("value", "low", "high")}
        found |= {name: float(row[name]) for name in ("order", "start", "end") if name in row}
        value = found["value"]
        words = {"label": str(row.get("label", "")), "text": str(row.get("text", f"{value:,.6g}"))}
        data.append({**words, **found})
    ends = [row[name] for row in data for name in ("value", "low", "high") if math.isfinite(row[name])]
    least, most = min(ends), max(ends)
    pad = 0.15 * (most - least) or max(abs(most), 1.0)
    for row in data:
        row["open_low"], row["open_high"] = row["low"] == -math.inf, row["high"] == math.inf
        row["low"], row["high"] = max(row["low"], least - pad), min(row["high"], most + pad)
    return data


def _tips(alt: Any, first: str) -> list[Any]:
    kind = "label:N" if first == "label" else f"{first}:Q"
    return [alt.Tooltip(kind), *(number_tip(alt, name) for name in ("value", "low", "high"))]


def _caps(alt: Any, base: Any, side: str) -> list[Any]:
    """The end of an interval: a tick where it ends, an arrow where it is open."""
    opened, closed = (
        alt.condition(test, alt.value(1), alt.value(0))
        for test in (f"datum.open_{side}", f"!datum.open_{side}")
    )
    arrow = base.mark_point(color=BLUE, filled=True, size=130, shape=f"triangle-{_POINTS_TO[side]}")
    tick = base.mark_tick(color=BLUE, thickness=3, size=13, orient="vertical")
    return [tick.encode(x=f"{side}:Q", opacity=closed), arrow.encode(x=f"{side}:Q", opacity=opened)]
