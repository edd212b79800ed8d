"""Errors as lines on logarithmic axes, each named where it ends."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.charts.theme import INK, KINDS, SOLID, Records, altair, enough, extent, finished, number_tip
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
    domain = _log_domain(data, "error")
    across = list(extent(data, "x"))
    x = alt.X(
        "x:Q",
        title=along,
        scale=alt.Scale(type="log", domain=across, nice=False),
        axis=_log_axis(alt, across),
    )
    y = alt.Y(
        "error:Q",
        title=unit,
        scale=alt.Scale(type="log", domain=domain, nice=False),
        axis=_log_axis(alt, domain),
    )
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
        alt.Chart(alt.Data(values=_ends(data, domain, height)))
        .mark_text(align="left", dx=8, fontSize=12, fontWeight="bold", lineBreak="\n", lineHeight=13)
        .encode(
            x=alt.value(width),
            y=alt.Y("place:Q", scale=alt.Scale(type="log", domain=domain, nice=False)),
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
            own.mark_text(**words, stroke="white", strokeWidth=4, strokeJoin="round").encode(text="text:N"),
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
    for chart in bare:
        chart.config = alt.Undefined
        chart.background = alt.Undefined
        chart.padding = alt.Undefined
    joined = alt.vconcat(*bare, spacing=26).resolve_scale(color="independent", strokeDash="independent")
    return finished(joined, title, subtitle)


def _log_domain(data: Records, name: str) -> list[float]:
    """The values with some room above and below, on a logarithmic axis; lower bounds may leave it below."""
    low, high = extent(data, name)
    others = [row for row in data if row["kind"] != "lower bound"]
    low = max(low, extent(others, name)[0] / 100) if others else low
    room = max((high / low) ** 0.06, 1.25)
    return [low / room, high * room]


def _log_axis(alt: Any, domain: Sequence[float]) -> Any:
    """Ticks at 1, 2 and 5, at more over less than a decade, and at powers of ten over many."""
    first, last = math.floor(math.log10(domain[0])), math.ceil(math.log10(domain[1]))
    decades = math.log10(domain[1] / domain[0])
    digits = (1, 1.5, 2, 3, 4, 5, 6, 8) if decades < 0.9 else (1, 2, 5) if decades < 2.6 else (1,)
    step = max(1, math.ceil(decades / 7))
    ticks = [digit * 10.0**power for power in range(first, last + 1, step) for digit in digits]
    shown_ticks = [tick for tick in ticks if domain[0] <= tick * 1.0000001 and tick <= domain[1] * 1.0000001]
    small = min(domain) < 1e-4 or max(domain) >= 1e7
    return alt.Axis(values=shown_ticks, format=".0e" if small else ",~g", grid=True)


def _ends(data: Records, domain: Sequence[float], height: int) -> list[dict[str, Any]]:
    """The name of each curve at its right end, moved up or down so that no two names overlap."""
    decades = math.log(domain[1] / domain[0])
    last: dict[str, Mapping[str, Any]] = {}
    for row in data:
        if row["curve"] not in last or row["x"] >= last[row["curve"]]["x"]:
            last[row["curve"]] = row
    down = {
        name: min(height * math.log(domain[1] / row["error"]) / decades, height - 8.0)
        for name, row in last.items()
    }
    placed: list[list[Any]] = []
    for name, wanted in sorted(down.items(), key=lambda item: item[1]):
        placed.append([name, wanted])
    # Names that are too near are moved apart evenly, until none is; the plot's height is what they have.
    for _ in range(200):
        for above, below in itertools.pairwise(placed):
            lack = _LINE - (below[1] - above[1])
            if lack > 0:
                above[1] -= lack / 2
                below[1] += lack / 2
        placed[0][1], placed[-1][1] = max(placed[0][1], 4.0), min(placed[-1][1], height - 4.0)
    return [
        {"curve": name, "place": domain[1] * math.exp(-place / height * decades)} for name, place in placed
    ]
