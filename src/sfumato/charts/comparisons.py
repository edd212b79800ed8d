"""Curves compared: exact ones as lines, simulated ones as points with error bars, in panels on one scale."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.charts.notes import note_layers
from sfumato.charts.panels import (
    COLUMN,
    FRAME,
    GAP,
    columns_of,
    end_layers,
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
    room_of_names,
    with_key,
    words,
)
from sfumato.charts.rulers import Ruler, across, log_domain, log_ruler, ruler
from sfumato.charts.theme import (
    BLACK,
    BROADER,
    CURVES,
    KINDS,
    PAGE,
    SOLID,
    Records,
    altair,
    enough,
    finished,
    number_tip,
)
from sfumato.checks import one_of
from sfumato.errors import InvalidParameter

MOST_CURVES = 14
_SHAPES = (
    *("circle", "square", "triangle-up", "diamond"),
    *("triangle-down", "cross", "triangle-right", "triangle-left"),
)
_DASHES = (SOLID, [7, 4], [2, 3], [9, 3, 2, 3], [12, 4], [5, 2], [3, 6], [14, 3, 2, 3, 2, 3])
# Less than this is no plot: the names then stand above all panels.
_LEAST_PLOT = 150
_FEW = 15
_FARTHEST = 4
# Names that are longer than so many times their height need panels below each other.
_SHORT = 6.5


@dataclass(frozen=True)
class Look:
    """How a curve is drawn: its colour, the dashes of its lines by kind, the shape of its points."""

    colour: str
    dashes: Mapping[str, list[int]]
    shape: str


def comparison(
    rows: Records,
    *,
    title: str = "",
    subtitle: Sequence[str] = (),
    along: str = "x",
    unit: str = "y",
    log_x: bool = False,
    log_y: bool = False,
    panels: Sequence[str] | None = None,
    columns: int | None = None,
    shared: bool = True,
    marks: Records = (),
    zero: bool = False,
    width: int | None = None,
    height: int = 240,
) -> Any:
    """Curves by name, each named where it ends: lines of exact values, points of simulated ones.

    Guarantee:
        Shows `x` and `y` of every record that has a place on the axes, and `low` and `high` where they are
        given; what is not finite, or not positive on a logarithmic axis, is left out. Records of one curve
        have one colour in all panels, and no two curves have the same colour and the same dashes or points.

    Args:
        rows: records with `curve` (its name), `kind` (one of `KINDS`: "simulated" are points, the others
            lines), `x`, `y`; `low` and `high` for an error bar; `panel` for the name of its panel. A Polars
            frame will do. A name breaks into lines at "\\n".
        title, subtitle: what stands above, the second one line each.
        along, unit: the titles of the axes, with units.
        log_x, log_y: whether an axis is logarithmic.
        panels: the names of the panels in their order; others follow.
        columns: how many panels stand side by side, 2 unless told.
        shared: whether all panels have the same axes.
        marks: records with `x` and `y` (a point), `x` (an upright line) or `y` (a level one), and `text`;
            with `panel` in that panel alone.
        zero: whether the axis of y starts at zero.
        width: of the whole picture in pixels, 560 or, for panels side by side, 680 unless told.
        height: of one plot.

    Raises:
        MissingExtra: Altair is not installed.
        InvalidParameter: nothing to show, too much for a picture, or an unknown kind.

    >>> rows = [{"curve": "Laplace", "kind": "exact", "x": x, "y": 1 / x} for x in (1, 10)]
    >>> rows += [{"curve": "Laplace", "kind": "simulated", "x": 3, "y": 0.34, "low": 0.3, "high": 0.38}]
    >>> len(comparison(rows, log_x=True, log_y=True).to_dict()["layer"])
    5
    """
    alt = altair()
    data = curve_records(rows, log_x, log_y)
    enough(data)
    names = panel_names(data, panels)
    looks = looks_of(data)
    beside = columns_of(columns, len(names))
    longest = max(across(label, 1, bold=True) for label in _labels(looks, 2).values())
    if columns is None and len(names) in (2, 3) and longest > _SHORT:
        # Long names leave no room for two plots side by side.
        beside = 1
    size = 14 if beside > 1 else 13
    labels = _labels(looks, beside)
    total = width or (COLUMN if beside > 1 else 560)
    wide, tall = room_of_names(list(labels.values()), size)
    spare = BROADER * wide
    height = max(height, int(tall))
    by_panel = [in_panel(data, name) for name in names]
    noted = [in_panel(marks, name) for name in names]
    headroom = 0.1 if any(mark.get("y") is None for mark in marks) else 0.0

    def upright(some: Records, notes: Records) -> Ruler:
        more = [float(mark["y"]) for mark in notes if on_axis(number(mark.get("y")), log_y)]
        if log_y:
            low, high = log_domain(some, "y")
            # Error bars are shown whole, unless they are so long that they would press all else together.
            barred = [row for row in some if "low" in row]
            low = min([low, *(max(row["low"], row["y"] / _FARTHEST) / 1.05 for row in barred)])
            high = max([high, *(min(row["high"], row["y"] * _FARTHEST) * 1.05 for row in barred)])
            high *= (high / low) ** headroom
            return log_ruler(min([low, *more]), max([high, *more]), height, size=size, upright=True)
        ends = [end for row in some for end in (row["y"], row.get("low"), row.get("high")) if end is not None]
        return ruler([*ends, *more], height, log=False, zero=zero, headroom=headroom, size=size, upright=True)

    def level(some: Records, notes: Records, room: float) -> Ruler:
        more = [float(mark["x"]) for mark in notes if on_axis(number(mark.get("x")), log_x)]
        return ruler([*(row["x"] for row in some), *more], room, log=log_x, margin=0.03, size=size)

    ups = [upright(data, marks)] * len(names) if shared else list(map(upright, by_panel, noted))
    axis_room = max(up.breadth(size) for up in ups) + size + 22
    # On one scale the numbers stand at the left alone.
    axes = axis_room + (beside - 1) * (0 if shared else axis_room)
    plot = (total - FRAME - spare - axes - GAP * (beside - 1)) / beside - wide
    direct = plot >= _LEAST_PLOT
    plot = plot if direct else plot + wide - 8
    acrosses = (
        [level(data, marks, plot)] * len(names)
        if shared
        else [level(*both, plot) for both in zip(by_panel, noted, strict=True)]
    )
    drawn = []
    for i, (some, notes, x, y) in enumerate(zip(by_panel, noted, acrosses, ups, strict=True)):
        left = i % beside == 0 or not shared
        frame = {
            "x": alt.X("x:Q", title=along, scale=x.scale(), axis=x.axis()),
            "y": alt.Y(
                "y:Q",
                title=unit if left else None,
                scale=y.scale(),
                axis=y.axis(titlePadding=9) if left else y.axis(labels=False, ticks=False, domain=False),
            ),
        }
        below, above = note_layers(notes, some, x, y, (plot, height), size)
        layers = [*curve_layers(some, looks, frame, y), *below, *panel_title(names[i], plot, size)]
        if direct:
            layers += end_layers(_ends(some, looks, labels), y, plot, height, size)
        drawn.append(alt.layer(*layers, *above, width=plot, height=height))
    picture = joined(drawn, beside)
    if not direct:
        picture = with_key(picture, key(key_entries(looks, data), total - FRAME - axis_room, size))
    above_it = heading(title, subtitle, total - FRAME, size)
    return finished(picture, *above_it, size=size, spare={"right": spare if direct else 0.0})


def curve_records(rows: Any, log_x: bool = False, log_y: bool = False) -> list[dict[str, Any]]:
    """The records of curves in JSON's types, without those that have no place on the axes."""
    data: list[dict[str, Any]] = []
    for row in records(rows):
        kind = str(one_of("kind", entry(row, "kind"), tuple(KINDS)))
        x, y = number(entry(row, "x")), number(entry(row, "y"))
        if not (on_axis(x, log_x) and on_axis(y, log_y)):
            continue
        found = {"curve": str(entry(row, "curve")), "kind": kind, "panel": str(row.get("panel") or "")}
        ends = {name: number(row.get(name)) for name in ("low", "high")}
        if not on_axis(ends["low"], log_y) and ends["low"] <= 0 and log_y:
            # A bar that reaches zero leaves a logarithmic axis at its lower end.
            ends["low"] = y / 1000
        bars = ends if all(on_axis(end, log_y) for end in ends.values()) else {}
        data.append({**found, "x": x, "y": y, **bars})
    return data


def looks_of(data: Records, colours: Sequence[str] = CURVES) -> dict[str, Look]:
    """How each curve is drawn, in the order of the curves; what is a reference is black."""
    kinds: dict[str, list[str]] = {}
    for row in data:
        if row["kind"] not in kinds.setdefault(row["curve"], []):
            kinds[row["curve"]].append(row["kind"])
    if len(kinds) > MOST_CURVES:
        raise InvalidParameter(f"rows must have at most {MOST_CURVES} curves, got {len(kinds)}")
    plainly = {curve for curve, those in kinds.items() if those == ["reference"]}
    free = itertools.cycle([colour for colour in colours if not plainly or colour != BLACK])
    shapes = itertools.cycle(_SHAPES)
    taken: list[list[int]] = []
    looks = {}
    for curve, those in kinds.items():
        dashes: dict[str, list[int]] = {}
        for kind in those:
            dash = KINDS[kind][1]
            # Points tell curves apart; lines alone need dashes of their own.
            if "simulated" not in those:
                # Only what is exact is solid.
                others = _DASHES if dash == SOLID else _DASHES[1:]
                dash = next((d for d in (dash, *others) if d not in taken), dash)
                taken.append(dash)
            dashes[kind] = dash
        looks[curve] = Look(BLACK if curve in plainly else next(free), dashes, next(shapes))
    return looks


def curve_layers(data: Records, looks: Mapping[str, Look], frame: Mapping[str, Any], y: Ruler) -> list[Any]:
    """Lines, then error bars, then points, of every curve in its colour."""
    alt = altair()
    lines, bars, points = [], [], []
    tips = [alt.Tooltip("curve:N"), alt.Tooltip("kind:N"), number_tip(alt, "x"), number_tip(alt, "y")]
    for curve, look in looks.items():
        for kind, dash in look.dashes.items():
            some = [row for row in data if row["curve"] == curve and row["kind"] == kind]
            if not some:
                continue
            base = alt.Chart(alt.Data(values=some))
            guess = kind == "simulated"
            lines_of_it = [row for row in data if row["curve"] == curve and row["kind"] != "simulated"]
            if not guess or len(lines_of_it) <= 1:
                # A simulation is known at its points, and guessed between them.
                thin = {"strokeWidth": 1.2, "opacity": 0.7} if guess else {"strokeWidth": 2.4}
                mark = base.mark_line(color=look.colour, strokeDash=dash, clip=True, **thin)
                lines.append(mark.encode(**frame, tooltip=tips))
            if any("low" in row for row in some):
                ends = {"y": alt.Y("low:Q", scale=y.scale()), "y2": alt.Y2("high:Q")}
                spans = alt.Chart(alt.Data(values=[row for row in some if "low" in row]))
                rule = spans.mark_rule(color=look.colour, strokeWidth=1.6, clip=True)
                bars.append(rule.encode(x=frame["x"], **ends))
            if guess:
                # Many points in a row would cover the line that they are compared with.
                dot, edge = (60, 0.8) if len(some) <= _FEW else (30, 0.5)
                style = {"filled": True, "opacity": 1, "stroke": PAGE, "strokeWidth": edge}
                dots = base.mark_point(shape=look.shape, size=dot, fill=look.colour, **style)
                points.append(dots.encode(**frame, tooltip=tips))
    return [*lines, *bars, *points]


def key_entries(looks: Mapping[str, Look], data: Records) -> list[dict[str, Any]]:
    """What stands in a key for each curve."""
    pointed = {row["curve"] for row in data if row["kind"] == "simulated"}
    lines: dict[str, set[tuple[float, float]]] = {}
    for row in data:
        if row["kind"] != "simulated":
            lines.setdefault(row["curve"], set()).add((row["x"], row["y"]))
    # Points whose line has no length are shown without one.
    bare = {curve for curve in pointed if len(lines.get(curve, ())) == 1}
    return [
        {
            "text": curve,
            "colour": look.colour,
            "dash": None if curve in bare else next(iter(look.dashes.values())),
            "shape": look.shape if curve in pointed else None,
        }
        for curve, look in looks.items()
    ]


def _labels(looks: Mapping[str, Look], columns: int) -> dict[str, str]:
    return {curve: words(curve, 15 if columns > 1 else 24) for curve in looks}


def _ends(data: Records, looks: Mapping[str, Look], labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """The last point of every curve, with what names it."""
    last: dict[str, Mapping[str, Any]] = {}
    for row in data:
        if row["curve"] not in last or row["x"] >= last[row["curve"]]["x"]:
            last[row["curve"]] = row
    found = []
    for curve, row in last.items():
        look = {"text": labels[curve], "colour": looks[curve].colour}
        found.append({"curve": curve, **look, "x": row["x"], "y": row["y"]})
    return found
