"""What pictures of several panels share: records, places, keys and words that annotate."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.charts.rulers import Ruler, across, spread, wrapped
from sfumato.charts.theme import BROADER, INK, WORDS, Records, altair
from sfumato.checks import shown, whole
from sfumato.errors import InvalidParameter

# A page has a column of this many pixels; the frame around a picture takes some.
COLUMN, FRAME = 680, 28
GAP = 24
_LONGEST = 60
# Longer words than this are broken, also in titles.
_WORD = 60


def records(rows: Any) -> list[Mapping[str, Any]]:
    """Records, also of a Polars frame."""
    return list(rows.to_dicts()) if hasattr(rows, "to_dicts") else list(rows)


def entry(row: Mapping[str, Any], name: str) -> Any:
    """An entry that every record must have."""
    if name not in row:
        raise InvalidParameter(f"rows must have {name!r} in every record, got {shown(sorted(map(str, row)))}")
    return row[name]


def number(value: Any) -> float:
    """A number of a record; what is missing is not a number."""
    try:
        return math.nan if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter(
            f"rows must have numbers where an axis shows them, got {shown(value)}"
        ) from None


def on_axis(value: float, log: bool) -> bool:
    """Whether a value has a place on an axis."""
    return math.isfinite(value) and (value > 0 or not log)


def words(text: Any, letters: int = _LONGEST) -> str:
    """A name as it is written beside a mark: printable, broken into lines, and cut where it is very long."""
    lines = [
        line for given in str(text).split("\n") for line in textwrap.wrap(_printable(given), letters) or [""]
    ]
    return "\n".join([*lines[:3], "…"] if len(lines) > 4 else lines)


def heading(title: str, subtitle: Sequence[str], width: float, size: int) -> tuple[list[str], list[str]]:
    """The titles, broken into lines that are no longer than the picture is wide."""
    given = [subtitle] if isinstance(subtitle, str) else subtitle
    below = [line for text in given for line in wrapped(_breakable(text), width, size)]
    return wrapped(_breakable(title), width, 15, bold=True), below


def panel_names(rows: Records, wanted: Sequence[str] | None) -> list[str]:
    """The panels in their order: the wanted ones first, if they have records."""
    if isinstance(wanted, int | str):
        raise InvalidParameter(f"panels must be names in their order, got panels={shown(wanted)}")
    # What has no panel, where others have one, belongs to all.
    present = dict.fromkeys(row["panel"] for row in rows if row["panel"]) or {"": None}
    first = [str(name) for name in wanted or () if str(name) in present]
    return [*first, *(name for name in present if name not in first)]


def columns_of(columns: int | None, panels: int) -> int:
    """How many panels stand side by side."""
    return min(panels, 2 if columns is None else whole("columns", columns, least=1, most=4))


def joined(charts: Sequence[Any], columns: int) -> Any:
    """One picture of all panels."""
    alt = altair()
    if len(charts) == 1:
        return charts[0]
    return alt.concat(*charts, columns=columns, spacing={"row": 22, "column": GAP}, align="each")


def in_panel(rows: Records, name: str) -> list[Any]:
    """The records of a panel, and those of all panels."""
    return [row for row in rows if str(row.get("panel") or "") in (name, "")]


def panel_title(name: str, width: float, size: int) -> list[Any]:
    """The name of a panel above its left end."""
    if not name:
        return []
    text = words(name, max(int(width / across("n", size, bold=True)), 12))
    style = {"fontSize": size, "fontWeight": "bold", "color": INK, "align": "left", "baseline": "bottom"}
    style |= {"lineBreak": "\n", "lineHeight": size + 2, "dy": -9 - text.count("\n") * (size + 2)}
    alt = altair()
    base = alt.Chart(alt.Data(values=[{"text": text}])).mark_text(**style)
    return [base.encode(x=alt.value(0), y=alt.value(0), text=alt.Text("text:N"))]


def end_layers(ends: Records, upright: Ruler, width: float, height: float, size: int) -> list[Any]:
    """The name of each curve beside its right end, with a thin line to it where it had to move.

    Args:
        ends: records with `curve`, `text`, `colour`, and the last point of the curve, `x` and `y`.
        upright: the ruler of y.
        width, height: of the plot.
        size: of the letters.
    """
    alt = altair()
    if not ends:
        return []
    down = [height * (1 - min(max(upright.share(row["y"]), 0.0), 1.0)) for row in ends]
    places = spread(down, [_height(row["text"], size) for row in ends], height)
    data = [
        {
            "curve": row["curve"],
            "text": row["text"],
            "ink": WORDS.get(row["colour"], row["colour"]),
            "colour": row["colour"],
            "x": row["x"],
            "end": upright.at(1 - at / height),
            "place": upright.at(1 - place / height),
            # Vega centres the first line of several.
            "first": upright.at(1 - (place - row["text"].count("\n") * (size + 1) / 2) / height),
        }
        for row, at, place in zip(ends, down, places, strict=True)
    ]
    base = alt.Chart(alt.Data(values=data))
    scale = upright.scale()
    last = max(row["x"] for row in data)
    leaders = []
    # From a curve that ends early the line is long, and must not look as if the curve went on.
    for dash, those in (
        ([], [row for row in data if row["x"] == last]),
        ([1, 4], [row for row in data if row["x"] < last]),
    ):
        rule = alt.Chart(alt.Data(values=those)).mark_rule(strokeWidth=1, opacity=0.75, strokeDash=dash)
        spot = {"x": alt.X("x:Q"), "x2": alt.value(width + 9)}
        ends_at = {"y": alt.Y("end:Q", scale=scale), "y2": alt.Y2("place:Q")}
        leaders += [rule.encode(**spot, **ends_at, color=alt.Color("colour:N", scale=None))] if those else []
    style = {"fontSize": size, "fontWeight": "bold", "lineBreak": "\n", "lineHeight": size + 1}
    names = base.mark_text(align="left", baseline="middle", dx=12, **style).encode(
        x=alt.value(width),
        y=alt.Y("first:Q", scale=scale),
        text=alt.Text("text:N"),
        color=alt.Color("ink:N", scale=None),
    )
    return [*leaders, names]


def room_of_names(names: Sequence[str], size: int) -> tuple[float, float]:
    """The breadth of the longest name beside a plot, and the height of all of them."""
    return (
        max(across(name, size, bold=True) for name in names) + 14,
        sum(_height(name, size) for name in names),
    )


def key(entries: Records, width: float, size: int) -> Any:
    """Names with a piece of what they name, in lines no longer than the width.

    Args:
        entries: records with `text`, `colour`, and `dash` for a line, `shape` for points, `bar`, or `box` for
            a cell; without a colour it is words alone.
        width: of the picture.
        size: of the letters.
    """
    alt = altair()
    step, left, data = size + 8, 0.0, []
    down = step / 2
    for row in entries:
        text = words(row["text"], 60).partition("\n")[0] if len(row["text"]) > 60 else _printable(row["text"])
        sample = 26.0 if row["colour"] else 0.0
        room = sample + 8 + (1 + BROADER) * across(text, size, bold=True) + 16
        if left and left + room > width:
            left, down = 0.0, down + step
        data.append(
            {**row, "text": text, "left": left, "middle": left + 13, "right": left + sample, "down": down}
        )
        left += room
    height = down + step / 2
    level = {"axis": None, "scale": alt.Scale(domain=[0, width], nice=False)}
    place = {
        "x": alt.X("left:Q", **level),
        "y": alt.Y("down:Q", axis=None, scale=alt.Scale(domain=[height, 0], nice=False)),
    }
    middle = {**place, "x": alt.X("middle:Q", **level)}
    layers = []
    for row in data:
        base = alt.Chart(alt.Data(values=[row]))
        colour = row["colour"]
        if row.get("bar") or row.get("box"):
            faint = 0.35 if row.get("bar") else 1.0
            box = base.mark_square(size=190, filled=True, color=colour, opacity=1, fillOpacity=faint)
            layers.append(box.encode(**middle))
        if row.get("dash"):
            line = base.mark_rule(color=colour, strokeWidth=2.4, strokeDash=row["dash"])
            layers.append(line.encode(**place, x2=alt.X2("right:Q")))
        if row.get("shape"):
            points = base.mark_point(filled=True, size=70, shape=row["shape"], color=colour, opacity=1)
            layers.append(points.encode(**middle))
        name = base.mark_text(
            align="left",
            baseline="middle",
            dx=7,
            fontSize=size,
            fontWeight="bold",
            color=INK if row.get("box") else _ink(colour),
        )
        layers.append(name.encode(**{**place, "x": alt.X("right:Q", **level)}, text=alt.Text("text:N")))
    return alt.layer(*layers, width=width, height=height)


def with_key(chart: Any, names: Any) -> Any:
    """The chart below its key."""
    return altair().vconcat(names, chart, spacing=8)


def _breakable(text: str) -> str:
    return " ".join(part for word in _printable(text).split() for part in textwrap.wrap(word, _WORD))


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _ink(colour: str | None) -> str:
    return INK if colour is None else WORDS.get(colour, colour)


def _height(text: str, size: int) -> float:
    return (text.count("\n") + 1) * (size + 1) + 3.0
