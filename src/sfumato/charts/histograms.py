"""Bars from edge to edge with curves over them: what was drawn, beside the law it was drawn from."""

from collections.abc import Sequence
from typing import Any

from sfumato.charts.comparisons import curve_layers, curve_records, key_entries, looks_of
from sfumato.charts.notes import note_layers
from sfumato.charts.panels import (
    COLUMN,
    FRAME,
    GAP,
    columns_of,
    entry,
    heading,
    in_panel,
    joined,
    key,
    number,
    on_axis,
    panel_names,
    panel_title,
    records,
    with_key,
)
from sfumato.charts.rulers import Ruler, even_ruler, ruler
from sfumato.charts.theme import CURVES, Records, altair, enough, finished, number_tip
from sfumato.errors import InvalidParameter

_MOST_SERIES = 3


def histogram(
    rows: Records,
    *,
    curves: Records = (),
    title: str = "",
    subtitle: Sequence[str] = (),
    along: str = "value",
    unit: str = "density",
    panels: Sequence[str] | None = None,
    columns: int | None = None,
    shared: bool = True,
    marks: Records = (),
    width: int | None = None,
    height: int = 220,
) -> Any:
    """Bars over bins, in panels, with curves over them that a key above names.

    Guarantee:
        Shows `value` of every record as a bar from `start` to `end` and from zero, and every point of the
        curves; what is not finite is left out.

    Args:
        rows: records with `start`, `end`, `value`; `series` for the name of what was drawn, at most 3;
            `panel` for the name of its panel. A Polars frame will do.
        curves: records as for `comparison`.
        title, subtitle, panels, columns, shared, marks, width: as for `comparison`.
        along, unit: the titles of the axes, with units.
        height: of one plot.

    Raises:
        MissingExtra: Altair is not installed.
        InvalidParameter: nothing to show, too much for a picture, or an unknown kind.

    >>> rows = [{"start": i, "end": i + 1, "value": 3 - i} for i in range(3)]
    >>> chart = histogram(rows, curves=[{"curve": "law", "kind": "exact", "x": x, "y": 1} for x in (0, 3)])
    >>> len(chart.to_dict()["vconcat"])
    2
    """
    alt = altair()
    bars = _bars(rows)
    over = curve_records(curves)
    enough([*bars, *over])
    enough(bars)
    series = list(dict.fromkeys(row["series"] for row in bars))
    if len(series) > _MOST_SERIES:
        raise InvalidParameter(f"rows must have at most {_MOST_SERIES} series, got {len(series)}")
    fills = dict(zip(series, CURVES, strict=False))
    # The curves have the colours that no bars have.
    looks = looks_of(over, CURVES[len(series) :])
    names = panel_names([*bars, *over], panels)
    beside = columns_of(columns, len(names))
    size = 14 if beside > 1 else 13
    total = width or (COLUMN if beside > 1 else 560)
    by_panel, lines, noted = ([in_panel(some, name) for name in names] for some in (bars, over, marks))
    headroom = 0.1 if any(mark.get("y") is None for mark in marks) else 0.0

    def upright(some: Records, some_lines: Records) -> Ruler:
        tops = [row["value"] for row in some] + [row["y"] for row in some_lines]
        return ruler([*tops, 0.0], height, log=False, zero=True, headroom=headroom, size=size, upright=True)

    def level(some: Records, some_lines: Records, notes: Records, room: float) -> Ruler:
        ends = [row[name] for row in some for name in ("start", "end")] + [row["x"] for row in some_lines]
        ends += [float(mark["x"]) for mark in notes if on_axis(number(mark.get("x")), log=False)]
        return even_ruler(min(ends), max(ends), room, size=size)

    ups = [upright(bars, over)] * len(names) if shared else list(map(upright, by_panel, lines))
    axis_room = max(up.breadth(size) for up in ups) + size + 22
    axes = axis_room + (beside - 1) * (0 if shared else axis_room)
    plot = (total - FRAME - axes - GAP * (beside - 1)) / beside - 13
    drawn = []
    for i, (some, own, notes, y) in enumerate(zip(by_panel, lines, noted, ups, strict=True)):
        x = level(bars, over, marks, plot) if shared else level(some, own, notes, plot)
        left = i % beside == 0 or not shared
        axis = y.axis(titlePadding=9) if left else y.axis(labels=False, ticks=False, domain=False)
        heights = {"title": unit if left else None, "scale": y.scale(), "axis": axis}
        level_axis = {"title": along, "scale": x.scale(), "axis": x.axis(grid=False)}
        layers = []
        for name in series:
            boxes = alt.Chart(alt.Data(values=[row for row in some if row["series"] == name]))
            narrow = plot / max(len(some), 1)
            mark = boxes.mark_rect(
                color=fills[name],
                opacity=1,
                fillOpacity=0.35,
                stroke=fills[name],
                strokeWidth=min(0.8, 0.12 * narrow),
            )
            layers.append(
                mark.encode(
                    x=alt.X("start:Q", **level_axis),
                    x2=alt.X2("end:Q"),
                    y=alt.Y("floor:Q", **heights),
                    y2=alt.Y2("value:Q"),
                    tooltip=[number_tip(alt, entry) for entry in ("start", "end", "value")],
                )
            )
        below, above = note_layers(notes, [*own, *_tops(some)], x, y, (plot, height), size)
        frame = {"x": alt.X("x:Q", **level_axis), "y": alt.Y("y:Q", **heights)}
        layers += [*curve_layers(own, looks, frame, y), *below, *panel_title(names[i], plot, size), *above]
        drawn.append(alt.layer(*layers, width=plot, height=height))
    picture = joined(drawn, beside)
    named = [{"text": name, "colour": fills[name], "bar": True} for name in series if name]
    named += key_entries(looks, over)
    if named:
        picture = with_key(picture, key(named, total - FRAME - axis_room, size))
    return finished(picture, *heading(title, subtitle, total - FRAME, size), size=size)


def _bars(rows: Any) -> list[dict[str, Any]]:
    """The bars that are finite, in JSON's types."""
    data: list[dict[str, Any]] = []
    for row in records(rows):
        found = {name: number(entry(row, name)) for name in ("start", "end", "value")}
        if all(on_axis(value, log=False) for value in found.values()):
            labels = {name: str(row.get(name) or "") for name in ("series", "panel")}
            data.append({**labels, **found, "floor": 0.0})
    return data


def _tops(bars: Records) -> list[dict[str, Any]]:
    """Bars as curves of their upper ends and down to zero, for words to keep away from."""
    middles = [(row, (row["start"] + row["end"]) / 2) for row in bars]
    return [
        {"curve": f"{row['series']} {middle}", "kind": "exact", "x": middle, "y": end}
        for row, middle in middles
        for end in (row["value"], 0.0)
    ]
