"""Words, points and lines that annotate a plot, where they hide least of it."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

from sfumato.charts.panels import number, on_axis, words
from sfumato.charts.rulers import Ruler, across
from sfumato.charts.theme import AXIS, INK, PAGE, Records, altair
from sfumato.errors import InvalidParameter

# So far from what they name do words stand.
_APART = 7
_STEP = 6.0

Place = tuple[float, float]


def note_layers(
    marks: Records, data: Records, x: Ruler, y: Ruler, size: tuple[float, float], letters: int
) -> tuple[list[Any], list[Any]]:
    """What annotates: lines to stand below; points and words to stand above all else.

    Args:
        marks: records with `x`, `y` or both, and `text`.
        data: records of curves, which words keep away from if they can.
        x, y: the axes.
        size: of the plot.
        letters: the size of the letters.
    """
    alt = altair()
    lines: list[Any] = []
    above: list[Any] = []
    drawn = list(_drawn(data, x, y, size))
    for mark in marks:
        axes = {"x": x, "y": y}
        given = {name: number(mark[name]) for name in axes if mark.get(name) is not None}
        if not given:
            raise InvalidParameter("marks must have x, y or both in every record")
        if not all(on_axis(at, axes[name].log) for name, at in given.items()):
            continue
        text = words(mark.get("text", ""), 28)
        base = alt.Chart(alt.Data(values=[{**given, "text": text}]))
        channels = {"x": alt.X, "y": alt.Y}
        place = {name: channels[name](f"{name}:Q", scale=axes[name].scale()) for name in given}
        if len(given) == 2:
            above.append(base.mark_point(filled=True, size=80, color=INK, opacity=1).encode(**place))
        else:
            rule = base.mark_rule(color=AXIS, strokeWidth=1.5, strokeDash=[5, 3], clip=True)
            lines.append(rule.encode(**place))
        if text:
            left, top = _freest(text, given, drawn, x, y, size, letters)
            style = {"fontSize": letters, "lineBreak": "\n", "lineHeight": letters + 2, "color": INK}
            # An edge in the colour of the page keeps the words apart from the lines that they cross.
            for edge in ({"stroke": PAGE, "strokeWidth": 4, "strokeJoin": "round"}, {}):
                said = base.mark_text(**style, **edge, align="left", baseline="top")
                above.append(said.encode(x=alt.value(left), y=alt.value(top), text=alt.Text("text:N")))
    return lines, above


def _freest(
    text: str,
    given: dict[str, float],
    drawn: list[Place],
    x: Ruler,
    y: Ruler,
    size: tuple[float, float],
    letters: int,
) -> Place:
    """The left and the top of the text where it hides the fewest points; the first such place of some."""
    broad, tall = across(text, letters), (text.count("\n") + 1.0) * (letters + 2)
    width, height = size
    right = x.share(given["x"]) * width if "x" in given else None
    down = (1 - y.share(given["y"])) * height if "y" in given else None
    if right is not None and down is not None:
        lefts = [right + _APART, right - _APART - broad, right - broad / 2]
        tops = [down - _APART - tall, down + _APART]
    elif right is not None:
        lefts = [right + _APART, right - _APART - broad]
        tops = [2.0, height - tall - 4, height / 2 - tall / 2]
    else:
        level = down or 0.0
        lefts = [_APART, width - broad - _APART, (width - broad) / 2]
        tops = [level - tall - 2, level + 4]
    # Out of the plot is worse than over a curve.
    places = [(left, top) for top in tops for left in lefts]

    def hidden(place: Place) -> float:
        left, top = place
        out = max(-left, left + broad - width, -top, top + tall - height, 0.0)
        ends = left + broad + 3, top + tall + 2
        covered = sum(left - 3 <= at <= ends[0] and top - 2 <= low <= ends[1] for at, low in drawn)
        return 1000 * (out > 0) + out + covered

    return min(places, key=hidden)


def _drawn(data: Records, x: Ruler, y: Ruler, size: tuple[float, float]) -> Iterator[Place]:
    """Where curves are drawn, in pixels, a few apart."""
    width, height = size
    curves: dict[tuple[str, str], list[Place]] = {}
    for row in data:
        place = (x.share(row["x"]) * width, (1 - y.share(row["y"])) * height)
        curves.setdefault((row["curve"], row["kind"]), []).append(place)
    for places in curves.values():
        places.sort()
        yield places[0]
        for (left, top), (right, bottom) in itertools.pairwise(places):
            parts = max(min(math.ceil(math.hypot(right - left, bottom - top) / _STEP), 200), 1)
            for i in range(1, parts + 1):
                yield left + (right - left) * i / parts, top + (bottom - top) * i / parts
