"""Errors as lines on logarithmic axes, each named where it ends."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.charts.rulers import Ruler, log_domain, log_ruler, spread
from sfumato.charts.theme import (
    INK,
    KINDS,
    PADDING,
    PAGE,
    SOLID,
    Records,
    altair,
    enough,
    extent,
    finished,
    number_tip,
)
from sfumato.checks import one_of

_LINE = 17


def error_curves(
    rows: Records,
    *,
    title: str = "",
    subtitle: Sequence[str] = (),
    along: str = "epsilon",
    unit: str = "error",
    marker: Mapping[str, float] | None = None,
    width: int = 360,
    height: int = 230,
) -> Any:
    """Errors as lines by name on two logarithmic axes, each named where it ends.

    Guarantee:
        Shows `x` and `error` of every record that is positive and finite; the others have no place on a
        logarithmic axis and are left out.

    Args:
        rows: records with `curve` (its name), `kind` (one of `KINDS`), `x` and `error`.
        title, subtitle: as for `values_with_intervals`.
        along, unit: the titles of the axes.
        marker: `x` and `error` of one point to be marked, and its `text`.
        width, height: of the plot itself, in pixels; names need 190 more on the right.

    Raises:
        MissingExtra: Altair is not installed.
        InvalidParameter: nothing to show, too much for a picture, or an unknown kind.

    >>> rows = [{"curve": "exact", "kind": "exact", "x": x, "error": 1 / x} for x in (1, 10)]
    >>> len(error_curves(rows).to_dict()["layer"])
    2
    """
    alt = altair()
    data: list[dict[str, Any]] = [
        {
            "curve": str(row["curve"]),
            "kind": str(row["kind"]),
            "x": float(row["x"]),
            "error": float(row["error"]),
        }
        for row in rows
        if 0 < float(row["error"]) < math.inf and 0 < float(row["x"]) < math.inf
    ]
    enough(data)
    drawn = {str(row["curve"]): KINDS[str(one_of("kind", row["kind"], tuple(KINDS)))] for row in data}
    low, high = log_domain(data, "error")
    upright = log_ruler(low, high, height, upright=True)
    level = log_ruler(*extent(data, "x"), width)
    x = alt.X("x:Q", title=along, scale=level.scale(), axis=level.axis())
    y = alt.Y("error:Q", title=unit, scale=upright.scale(), axis=upright.axis())
    names = list(drawn)
    colour = alt.Color(
        "curve:N", legend=None, scale=alt.Scale(domain=names, range=[drawn[n][0] for n in names])
    )
    dash = alt.StrokeDash(
        "curve:N", legend=None, scale=alt.Scale(domain=names, range=[drawn[n][1] for n in names])
    )
    # What is known exactly is drawn broad and first, so that a bound that equals it does not hide it.
    solid = [name for name in names if drawn[name][1] == SOLID]
    lines = [
        alt.Chart(alt.Data(values=[row for row in data if (row["curve"] in solid) == broad]))
        .mark_line(clip=True, strokeWidth=4.5 if broad else 2.2)
        .encode(
            x=x,
            y=y,
            color=colour,
            strokeDash=dash,
            tooltip=["curve:N", number_tip(alt, "x"), number_tip(alt, "error")],
        )
        for broad in ([True] if solid else []) + ([False] if len(solid) < len(names) else [])
    ]
    # A simulation is known at its points, and guessed between them.
    known = [row for row in data if row["kind"] == "simulated"]
    if known:
        dots = alt.Chart(alt.Data(values=known)).mark_point(filled=True, size=55, opacity=1, clip=True)
        lines.append(dots.encode(x="x:Q", y="error:Q", color=colour))
    labels = (
        alt.Chart(alt.Data(values=_ends(data, upright, height)))
        .mark_text(align="left", dx=8, fontSize=12, fontWeight="bold", lineBreak="\n", lineHeight=13)
        .encode(
            x=alt.value(width),
            y=alt.Y("place:Q", scale=upright.scale()),
            text="curve:N",
            color=colour,
        )
    )
    layers = [*lines, labels]
    if marker is not None:
        spot = {"x": float(marker["x"]), "error": float(marker["error"]), "text": str(marker.get("text", ""))}
        own = alt.Chart(alt.Data(values=[spot])).encode(x="x:Q", y="error:Q")
        # Beside a line that falls there is room above it, beside one that rises below.
        own_line = sorted((row["x"], row["error"]) for row in data if row["curve"] == data[0]["curve"])
        rises = own_line[-1][1] > own_line[0][1]
        words = {
            "dx": 9,
            "dy": 14 if rises else -11,
            "align": "left",
            "color": INK,
            "fontSize": 12,
            "fontWeight": "bold",
        }
        layers += [
            own.mark_point(shape="circle", filled=True, size=95, color=INK, opacity=1),
            # A white edge keeps the words apart from the lines that they cross.
            own.mark_text(**words, stroke=PAGE, strokeWidth=4, strokeJoin="round").encode(text="text:N"),
            own.mark_text(**words).encode(text="text:N"),
        ]
    return finished(alt.layer(*layers).properties(width=width, height=height), title, subtitle)


def stacked(charts: Sequence[Any], *, title: str = "", subtitle: Sequence[str] = ()) -> Any:
    """Several charts below each other under one title.

    Guarantee:
        The charts as they are, with axes and colours of their own.

    Raises:
        MissingExtra: Altair is not installed.

    >>> one = error_curves([{"curve": "exact", "kind": "exact", "x": x, "error": 1 / x} for x in (1, 10)])
    >>> len(stacked([one, one]).to_dict()["vconcat"])
    2
    """
    alt = altair()
    bare = [chart.copy(deep=True) for chart in charts]
    size = max(chart.config.axis["labelFontSize"] for chart in bare)
    spare = {side: max(chart.padding[side] for chart in bare) - PADDING for side in ("left", "right")}
    for chart in bare:
        chart.config = alt.Undefined
        chart.background = alt.Undefined
        chart.padding = alt.Undefined
    joined = alt.vconcat(*bare, spacing=26).resolve_scale(color="independent", strokeDash="independent")
    return finished(joined, title, subtitle, size=size, spare=spare)


def _ends(data: Records, upright: Ruler, height: int) -> list[dict[str, Any]]:
    """The name of each curve at its right end, moved up or down so that no two names overlap."""
    last: dict[str, Mapping[str, Any]] = {}
    for row in data:
        if row["curve"] not in last or row["x"] >= last[row["curve"]]["x"]:
            last[row["curve"]] = row
    down = [height * (1 - max(upright.share(row["error"]), 0.0)) for row in last.values()]
    places = spread(down, [_LINE * (name.count("\n") + 1.0) for name in last], height)
    return [
        {"curve": name, "place": upright.at(1 - place / height)}
        for name, place in zip(last, places, strict=True)
    ]
