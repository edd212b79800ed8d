"""How large the classes of a table are: which share of its rows shares its class with how many."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from sfumato.charts.theme import BLUE, INK, VERMILION, WORDS, altair, finished
from sfumato.checks import shown, whole
from sfumato.errors import InvalidParameter

Sizes = Mapping[int, int]
_MOST = 2**53
_STEPS = (1, 2, 5)
# Wider names of bins than this stand aslant.
_LEVEL = 44


def class_sizes(
    tables: Mapping[str, Sizes],
    *,
    k: int | None = None,
    title: str = "",
    subtitle: Sequence[str] = (),
    width: int = 560,
    height: int = 130,
) -> Any:
    """Shares of rows by the size of their class, one panel a table, on one axis.

    Guarantee:
        The bars of a panel add up to all rows of its table. Bars of classes below `k` have a colour of their
        own, and `k` is an edge of the bins.

    Args:
        tables: by the name of each panel, how many classes there are of each size.
        k: the size that classes should have.
        title, subtitle: what stands above, the second one line each.
        width, height: of one panel, in pixels.

    Raises:
        MissingExtra: Altair is not installed.
        InvalidParameter: no table, or a size or a number of classes that is none.

    >>> chart = class_sizes({"before": {1: 6, 2: 2}, "after": {5: 2}}, k=5)
    >>> [panel["title"]["text"] for panel in chart.to_dict()["vconcat"]]
    ['before', 'after']
    """
    alt = altair()
    least = None if k is None else whole("k", k, least=1, most=_MOST)
    checked = {str(name): _checked(sizes) for name, sizes in tables.items()}
    if not any(checked.values()):
        raise InvalidParameter(f"tables must have a class in one of them, got tables={shown(dict(tables))}")
    edges = bins(max(max(sizes, default=1) for sizes in checked.values()), least)
    names = [_name(low, high) for low, high in pairwise(edges)]
    aslant = width / len(names) < _LEVEL
    panels = []
    for place, (name, sizes) in enumerate(checked.items()):
        last = place == len(checked) - 1
        data = list(_records(sizes, edges, least))
        axis = alt.Axis(labelAngle=-40 if aslant else 0, labelOverlap=False, labels=last, ticks=last)
        base = alt.Chart(alt.Data(values=data)).encode(
            x=alt.X(
                "size:O",
                sort=names,
                title="number of rows in the class" if last else None,
                axis=axis,
            )
        )
        scale = alt.Scale(domain=[0, 1.12], nice=False)
        ticks = alt.Axis(values=[0, 0.5, 1], labelExpr="format(100 * datum.value, '.0f') + ' %'")
        colour = alt.Color("colour:N", scale=None)
        bars = base.mark_bar(opacity=1, width={"band": 0.82}).encode(
            y=alt.Y("share:Q", title="share of rows", scale=scale, axis=ticks),
            color=colour,
            tooltip=[alt.Tooltip("size:O"), alt.Tooltip("share:Q", format=".2%"), alt.Tooltip("classes:Q")],
        )
        said = base.mark_text(baseline="bottom", dy=-4, fontSize=12).encode(
            y=alt.Y("share:Q", scale=scale), text=alt.Text("text:N"), color=alt.Color("ink:N", scale=None)
        )
        heading = alt.TitleParams(
            text=name, anchor="start", fontSize=13, fontWeight="bold", color=INK, offset=4, limit=width
        )
        panels.append(alt.layer(bars, said, width=width, height=height, title=heading))
    return finished(alt.vconcat(*panels, spacing=14), title, subtitle)


def bins(largest: int, k: int | None = None) -> list[int]:
    """Edges 1, 2, 5, 10, ... of half-open bins up to the largest size, with `k` among them.

    >>> bins(12, 3), bins(100)
    ([1, 2, 3, 5, 10, 20], [1, 2, 5, 10, 20, 50, 100, 200])
    """
    edges = {1, k or 1}
    power, reached = 1, False
    while not reached:
        for step in _STEPS:
            edges.add(power * step)
            if power * step > max(largest, k or 1):
                reached = True
                break
        power *= 10
    return sorted(edges)


def _checked(sizes: Sizes) -> dict[int, int]:
    found = {}
    for size, classes in sizes.items():
        many = whole("the number of classes", classes, least=0, most=_MOST)
        if many:
            found[whole("the size of a class", size, least=1, most=_MOST)] = many
    return found


def _records(sizes: Sizes, edges: Sequence[int], k: int | None) -> Iterator[dict[str, Any]]:
    rows = sum(size * classes for size, classes in sizes.items())
    for low, high in pairwise(edges):
        inside = {size: classes for size, classes in sizes.items() if low <= size < high}
        held = sum(size * classes for size, classes in inside.items())
        small = k is not None and low < k
        yield {
            "size": _name(low, high),
            "share": held / rows if rows else 0.0,
            "classes": sum(inside.values()),
            "text": _percent(held, rows),
            "colour": VERMILION if small else BLUE,
            "ink": WORDS[VERMILION] if small else BLUE,
        }


def _percent(part: int, whole: int) -> str:
    """A share in words that is 0 or 100 % only where it is just that."""
    if not part:
        return ""
    share = 100 * part / whole
    if share < 0.5:
        return "<1 %"
    return ">99 %" if share >= 99.5 and part < whole else f"{share:.0f} %"


def _name(low: int, high: int) -> str:
    return f"{low:,}" if high == low + 1 else f"{low:,}–{high - 1:,}"  # reason: a range
