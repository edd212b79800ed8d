"""Cells of two axes: numbers as colours, or which of some names holds where."""

import bisect
import math
import textwrap
from collections.abc import Sequence
from typing import Any

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
    panel_names,
    panel_title,
    records,
    with_key,
    words,
)
from sfumato.charts.rulers import across, plain
from sfumato.charts.theme import INK, LEVELS, NAMED, ON_DEEP, ON_PALE, PAGE, Records, altair, enough, finished
from sfumato.checks import shown
from sfumato.errors import InvalidParameter

# From this step of the scale on, dark letters read better than light ones.
_PALE_FROM = 4
_CELL = (112, 30)
_HIGHEST = 360


def heatmap(
    rows: Records,
    *,
    title: str = "",
    subtitle: Sequence[str] = (),
    along: str = "x",
    unit: str = "y",
    value: str = "value",
    text: str | None = None,
    log: bool = False,
    names: Sequence[str] = (),
    panels: Sequence[str] | None = None,
    columns: int | None = None,
    width: int = COLUMN,
) -> Any:
    """Cells of two axes, each with a number or a name, in its colour and written in it where it fits.

    Guarantee:
        Every record is a cell at its `x` and `y`; one whose number is not finite is left out. The same number
        or name has the same colour everywhere. Where words do not fit into the cells, a key has them.

    Args:
        rows: records with `x` and `y`, numbers or words, and `value` (a number) or `name` (at most
            7 of them); `text` for the words in the cell; `panel` for the name of its panel. A Polars frame
            will do. Numbers grow to the right and upwards; words stand in the order of the records.
        title, subtitle, panels, columns: as for `comparison`.
        along, unit: the titles of the axes, with units.
        value: the title of the numbers.
        text: how numbers are written in cells, such as ".2f"; "" for not at all.
        log: whether colours follow the logarithm of the number.
        names: the names that have the first colours, so that several maps agree; others follow.
        width: of the whole picture at most, in pixels.

    Raises:
        MissingExtra: Altair is not installed.
        InvalidParameter: nothing to show, too much for a picture, or too many names.

    >>> cells = [{"x": n, "y": m, "name": "single" if m < 9 else "all"} for n in (1, 2) for m in (1, 99)]
    >>> heatmap(cells, along="n", unit="quantiles").to_dict()["layer"][0]["mark"]["type"]
    'rect'
    """
    alt = altair()
    data = _cells(rows, text, log)
    enough(data)
    colours, entries = _colours(data, log, names)
    titles = panel_names(data, panels)
    beside = columns_of(columns, len(titles))
    size = 14 if beside > 1 else 13
    wide, high = _order(data, "x"), _order(data, "y")
    left = max(across(name, size) for name in high) + size + 26
    plot = (min(width, COLUMN) - FRAME - beside * left - GAP * (beside - 1)) / beside
    cell = min(_CELL[0], plot / len(wide))
    fit = _fitted(data, cell - 4, size)
    lines = max(row["text"].count("\n") for row in data) + 1
    written = any(row["text"] for row in data)
    # Cells without words may be low, so that a map of many fits a screen.
    step = max(_CELL[1], lines * (size + 2) + 8) if written else min(_CELL[1], max(_HIGHEST / len(high), 8))
    for row in data:
        row["fill"], row["ink"] = colours[row["shade"]]
    few = math.ceil(max(across(name, size) + 8 for name in wide) / cell)
    broken = {"labelExpr": "split(datum.value, '\\n')", "labelLimit": 220}
    sparse = {"values": [name for i, name in enumerate(wide) if i % few == 0]} if few > 1 else {}
    axis = alt.Axis(labelAngle=0, **broken, **sparse)
    rare = math.ceil((size + 6) / step)
    least = {"values": [name for i, name in enumerate(high) if i % rare == 0]} if rare > 1 else {}
    left_axis = alt.Axis(titlePadding=9, **broken, **least)
    x = alt.X("x:N", sort=wide, title=along, scale=alt.Scale(domain=wide), axis=axis)
    y = alt.Y("y:N", sort=high, title=unit, scale=alt.Scale(domain=high), axis=left_axis)
    drawn = []
    for name in titles:
        some = in_panel(data, name)
        box = alt.Chart(alt.Data(values=some)).mark_rect(stroke=PAGE, strokeWidth=1 if cell > 24 else 0.4)
        tips = [alt.Tooltip(f"{part}:N") for part in ("x", "y", "text")]
        layers = [box.encode(x=x, y=y, fill=alt.Fill("fill:N", scale=None), tooltip=tips)]
        # Vega centres the first line of several, so texts of two lines are moved up by half of one.
        for count in range(lines):
            those = [row for row in some if row["text"] and row["text"].count("\n") == count]
            style = {"fontSize": size, "baseline": "middle", "lineBreak": "\n", "lineHeight": size + 2}
            texts = alt.Chart(alt.Data(values=those)).mark_text(**style, dy=-count * (size + 2) / 2)
            ink = alt.Color("ink:N", scale=None)
            layers += [texts.encode(x=x, y=y, text=alt.Text("text:N"), color=ink)] if those else []
        size_of = {"width": cell * len(wide), "height": step * len(high)}
        drawn.append(alt.layer(*layers, *panel_title(name, size_of["width"], size), **size_of))
    picture = joined(drawn, beside)
    if not fit:
        room = width - FRAME - left
        named = "name" in data[0]
        picture = with_key(
            picture, key(entries, room, size) if named else _levels(entries, value, room, size)
        )
    return finished(picture, *heading(title, subtitle, width - FRAME, size), size=size)


def _fitted(data: list[dict[str, Any]], room: float, size: int) -> bool:
    """Whether all words fit into cells, broken into lines; else they are made short, or left out."""
    for row in data:
        lines = [
            line
            for given in words(row["text"]).split("\n")
            for line in textwrap.wrap(given, max(int(room / across("n", size)), 1), break_long_words=False)
        ]
        row["fitted"] = "\n".join(lines)
    fit = all(not row["fitted"] or across(row["fitted"], size) <= room for row in data)
    shorts = {} if fit or "name" not in data[0] else _shorts([row["name"] for row in data])
    short_enough = all(across(short, size) <= room for short in shorts.values())
    for row in data:
        fitted = row.pop("fitted")
        row["text"] = fitted if fit else shorts.get(row.get("name", ""), "") if short_enough else ""
    return fit and all(row["text"] for row in data)


def _shorts(names: list[str]) -> dict[str, str]:
    """The first letters of every name, as many as tell it from the others."""
    distinct = list(dict.fromkeys(names))
    for letters in range(1, 5):
        found = {name: words(name[:letters]) for name in distinct}
        if len(set(found.values())) == len(distinct):
            return found
    return {name: str(i + 1) for i, name in enumerate(distinct)}


def _levels(edges: list[dict[str, Any]], title: str, width: float, size: int) -> Any:
    """The colours of numbers side by side, with the numbers at which they meet."""
    alt = altair()
    last = max(edge["right"] for edge in edges)
    x = alt.Scale(domain=[0, last], nice=False)
    start = alt.X("left:Q", axis=None, scale=x)
    boxes = alt.Chart(alt.Data(values=edges)).mark_rect(height=14)
    style = {"fontSize": size, "color": INK, "baseline": "top"}
    numbers = [{"left": edge["left"], "text": edge["text"]} for edge in edges]
    numbers.append({"left": last, "text": edges[-1]["until"]})
    texts = alt.Chart(alt.Data(values=numbers)).mark_text(**style).encode(x=start, text=alt.Text("text:N"))
    name = alt.Chart(alt.Data(values=[{"text": words(title)}])).mark_text(**{**style, "align": "left"})
    fill = alt.Fill("colour:N", scale=None)
    return alt.layer(
        name.encode(x=alt.value(0), y=alt.value(0), text=alt.Text("text:N")),
        boxes.encode(x=start, x2=alt.X2("right:Q"), y=alt.value(29), fill=fill),
        texts.encode(y=alt.value(39)),
        width=min(width - 20, 480),
        height=54,
    )


def _cells(rows: Any, text: str | None, log: bool) -> list[dict[str, Any]]:
    """The records that have a colour, in JSON's types."""
    data: list[dict[str, Any]] = []
    for row in records(rows):
        place: dict[str, Any] = {name: _label(entry(row, name)) for name in ("x", "y")}
        place |= {"panel": str(row.get("panel") or ""), "given_x": row["x"], "given_y": row["y"]}
        if row.get("name") is not None:
            name = str(row["name"])
            data.append({**place, "name": name, "text": str(row.get("text", name))})
            continue
        found = number(entry(row, "value"))
        if math.isfinite(found) and (found > 0 or not log):
            written = plain(float(f"{found:.3g}")) if text is None else format(found, text) if text else ""
            data.append({**place, "value": found, "text": str(row.get("text", written))})
    if len({"name" in row for row in data}) > 1:
        raise InvalidParameter("rows must all have a value, or all a name")
    return data


def _one_line(name: str) -> str:
    return words(name).replace("\n", " ")


def _label(value: Any) -> str:
    return plain(float(value)) if _is_number(value) else words(value, 18)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _order(data: list[dict[str, Any]], name: str) -> list[str]:
    """The labels of an axis in their order; numbers grow to the right and upwards."""
    given = {row[name]: row.pop(f"given_{name}") for row in data}
    labels = list(given)
    if all(_is_number(value) for value in given.values()):
        labels.sort(key=lambda label: float(given[label]), reverse=name == "y")
    return labels


def _colours(
    data: list[dict[str, Any]], log: bool, first: Sequence[str]
) -> tuple[dict[Any, tuple[str, str]], list[dict[str, Any]]]:
    """The colours of a cell and of words in it by its shade, and what a key says of them."""
    if "name" in data[0]:
        names = list(dict.fromkeys(row["name"] for row in data))
        if len(names) > len(NAMED):
            raise InvalidParameter(f"rows must have at most {len(NAMED)} names, got {shown(names)}")
        for row in data:
            row["shade"] = row["name"]
        fills = dict(zip(dict.fromkeys([*first, *names]), NAMED, strict=False))
        spare = [fill for fill in NAMED if fill not in {fills.get(name) for name in names}]
        # What is beyond the list has a colour that nothing in this map has.
        fills = {name: fills.get(name) or spare.pop(0) for name in names}
        shorts = _shorts(names)
        entries = [
            {"text": f"{shorts[name]} {_one_line(name)}", "colour": fill, "box": True}
            for name, fill in fills.items()
        ]
        return {name: (fill, ON_PALE) for name, fill in fills.items()}, entries
    values = [math.log(row["value"]) if log else row["value"] for row in data]
    low, high = min(values), max(values)
    edges = [low + (high - low) * i / len(LEVELS) for i in range(1, len(LEVELS))]
    for row, found in zip(data, values, strict=True):
        row["shade"] = bisect.bisect_right(edges, found) if high > low else 0
    # What is nothing beside the largest is written as nothing.
    low = 0.0 if not log and abs(low) < 1e-9 * (high - low) else low
    starts = [plain(float(f"{math.exp(edge) if log else edge:.2g}")) for edge in (low, *edges, high)]
    entries = [
        {"colour": fill, "left": i, "right": i + 1, "text": starts[i], "until": starts[i + 1]}
        for i, fill in enumerate(LEVELS)
    ]
    inks = [ON_PALE if i >= _PALE_FROM else ON_DEEP for i in range(len(LEVELS))]
    return dict(enumerate(zip(LEVELS, inks, strict=True))), entries
