"""Single values by label, such as run times, with their medians."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato.charts.panels import FRAME, entry, heading, number, on_axis, records, words
from sfumato.charts.rulers import across, plain, ruler
from sfumato.charts.theme import BLUE, BROADER, INK, PAGE, Records, altair, enough, finished, number_tip

# Multiples of the golden ratio fill a strip evenly, without chance and without a pattern.
_GOLDEN = 0.6180339887498949


def strips(
    rows: Records,
    *,
    title: str = "",
    subtitle: Sequence[str] = (),
    unit: str = "value",
    log: bool = True,
    width: int = 560,
    step: int = 56,
) -> Any:
    """Every value as a dot by its label, with the median marked and written.

    Guarantee:
        Shows `value` of every record that has a place on the axis; what is not finite, or not positive on a
        logarithmic axis, is left out, of the medians too. Where a dot lies across its strip says nothing.

    Args:
        rows: records with `label` and `value`. A Polars frame will do. Labels appear in their order.
        title, subtitle: as for `comparison`.
        unit: the title of the axis of values, with its unit.
        log: whether the axis is logarithmic.
        width: of the whole picture, in pixels.
        step: the height of a strip.

    Raises:
        MissingExtra: Altair is not installed.
        InvalidParameter: nothing to show, or too much for a picture.

    >>> chart = strips([{"label": "median", "value": seconds} for seconds in (1.0, 2.0, 4.0)], unit="seconds")
    >>> chart.to_dict()["layer"][1]["data"]["values"][0]["text"]
    'median 2'
    """
    alt = altair()
    size = 13
    data: list[dict[str, Any]] = []
    for row in records(rows):
        found = number(entry(row, "value"))
        if on_axis(found, log):
            jitter = (_GOLDEN * len(data)) % 1.0
            data.append({"label": words(entry(row, "label"), 22), "value": found, "across": jitter})
    enough(data)
    groups: dict[str, list[float]] = {}
    for row in data:
        groups.setdefault(row["label"], []).append(row["value"])
    labels = list(groups)
    named = max(across(label, size) for label in labels)
    plot = width - FRAME - (1 + BROADER) * named - 22
    level = ruler([row["value"] for row in data], plot, log=log, margin=0.05, size=size)
    x = alt.X("value:Q", title=unit, scale=level.scale(), axis=level.axis())
    axis = alt.Axis(
        labelExpr="split(datum.value, '\\n')", labelLimit=240, ticks=False, domain=False, labelPadding=8
    )
    y = alt.Y("label:N", sort=labels, title=None, scale=alt.Scale(domain=labels, padding=0.15), axis=axis)
    offset = alt.YOffset("across:Q", scale=alt.Scale(domain=[-0.6, 1.4]))
    dots = (
        alt.Chart(alt.Data(values=data))
        .mark_point(filled=True, color=BLUE, size=26, opacity=0.55, clip=False)
        .encode(x=x, y=y, yOffset=offset, tooltip=[alt.Tooltip("label:N"), number_tip(alt, "value")])
    )
    middles: list[dict[str, Any]] = []
    for label, values in groups.items():
        middle = float(np.median(values))
        text = plain(float(f"{middle:.3g}"))
        # The first says what they all are.
        middles.append({"label": label, "value": middle, "text": text if middles else f"median {text}"})
    base = alt.Chart(alt.Data(values=middles)).encode(x=x, y=y)
    ticks = base.mark_tick(color=INK, thickness=3, size=0.62 * step, opacity=1)
    style = {"dy": -0.4 * step, "fontSize": size, "fontWeight": "bold", "color": INK}
    edge = {"stroke": PAGE, "strokeWidth": 4, "strokeJoin": "round"}
    texts = []
    for align, low, high in (("left", -1.0, 0.12), ("center", 0.12, 0.88), ("right", 0.88, 2.0)):
        some = [row for row in middles if low <= level.share(row["value"]) < high]
        words_at = alt.Chart(alt.Data(values=some)).encode(x=x, y=y, text=alt.Text("text:N"))
        shift = {"left": -6, "center": 0, "right": 6}[align]
        both = (edge, {}) if some else ()
        texts += [words_at.mark_text(**style, **more, align=align, dx=shift) for more in both]
    chart = alt.layer(dots, ticks, *texts, width=plot, height=step * len(labels))
    above = heading(title, subtitle, width - FRAME, size)
    return finished(chart, *above, size=size, spare={"left": BROADER * named})
