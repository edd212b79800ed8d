"""The same picture for every group, side by side on one scale."""

from collections.abc import Sequence
from typing import Any

from sfumato.charts.numbers import bar_layers, intervals, ribbon_layers
from sfumato.charts.theme import INK, Records, altair, finished
from sfumato.checks import whole
from sfumato.data.moments import Reads


def ribbons_by_group(
    rows: Records,
    *,
    title: str = "",
    subtitle: Sequence[str] = (),
    unit: str = "value",
    along: str = "order of the quantile",
    columns: int = 4,
    width: int = 130,
    marked: Sequence[float] = (),
    reads: Reads = "number",
) -> Any:
    """Numbers along an axis with their ribbons, one small picture for every group, on one scale.

    Guarantee:
        Shows `value`, `low` and `high` of every record at its `order`, in the picture of its `group`, and
        nothing else. All pictures have the same axes.

    Args:
        rows: records with `group`, `order`, `value`, `low`, `high`; groups appear in their order.
        title, subtitle, unit, along: as for `ribbon`.
        columns: how many pictures stand side by side.
        width: of one picture, in pixels.
        marked, reads: as for `ribbon`.

    Raises:
        MissingExtra: Altair is not installed.
        InvalidParameter: no records, or too many for a picture.

    >>> rows = [
    ...     {"group": g, "order": p, "value": p, "low": p - 1, "high": p + 1} for g in "ab" for p in (1, 2)
    ... ]
    >>> ribbons_by_group(rows).to_dict()["columns"]
    4
    """
    data = intervals(rows, reads)
    layers = ribbon_layers(data, unit=unit, along=along, marked=marked, ticks=4, dot=18, reads=reads)
    return finished(_faceted(layers, data, columns, width, 0.95 * width), title, subtitle)


def bars_by_group(
    rows: Records,
    *,
    title: str = "",
    subtitle: Sequence[str] = (),
    unit: str = "count",
    along: str = "value",
    columns: int = 4,
    width: int = 130,
    reads: Reads = "number",
) -> Any:
    """Counts as bars with their intervals, one small picture for every group, on one scale.

    Guarantee:
        Shows `value`, `low` and `high` of every record, in the picture of its `group`, and nothing else. All
        pictures have the same axes, and bars start at zero.

    Args:
        rows: records with `group`, `label`, `value`, `low`, `high`; `start` and `end` where a cell is a bin.
        title, subtitle, unit, along: as for `bars_with_errors`.
        columns, width: as for `ribbons_by_group`.
        reads: as for `bars_with_errors`.

    Raises:
        MissingExtra: Altair is not installed.
        InvalidParameter: no records, or too many for a picture.

    >>> rows = [{"group": g, "label": "yes", "value": 7, "low": 4, "high": 10} for g in "ab"]
    >>> bars_by_group(rows, columns=2).to_dict()["columns"]
    2
    """
    data = intervals(rows)
    layers, height = bar_layers(data, unit=unit, along=along, width=width, ticks=3, reads=reads)
    return finished(
        _faceted(layers, data, columns, width, 0.95 * width if height is None else height), title, subtitle
    )


def _faceted(layers: list[Any], data: list[dict[str, Any]], columns: int, width: int, height: Any) -> Any:
    """The layers once for every group, in the order of the groups."""
    alt = altair()
    header = alt.Header(
        title=None,
        labelColor=INK,
        labelFontSize=12,
        labelFontWeight="bold",
        labelLimit=width,
        labelAnchor="start",
    )
    across = whole("columns", columns, least=1, most=100)
    groups = list(dict.fromkeys(row["group"] for row in data))
    one = alt.layer(*layers, data=alt.Data(values=data), width=width, height=height)
    panels = one.facet(
        facet=alt.Facet("group:N", sort=groups, title=None, header=header),
        columns=across,
        spacing={"row": 16, "column": 18},
    )
    # A last row with gaps has no axis below the gaps unless every picture has its own.
    ragged = len(groups) % across
    return panels.resolve_axis(x="independent") if ragged else panels
