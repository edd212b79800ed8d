"""One theme for all charts, and the one place that imports Altair."""

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.errors import InvalidParameter, MissingExtra

Records = Sequence[Mapping[str, Any]]

# More marks than this are no picture, and slow every reader's browser.
MOST_MARKS = 5_000
# Okabe and Ito: told apart with any colour vision, and dark enough for thin lines on white.
INK, PALE, AXIS = "#1f2933", "#d9e1e8", "#8595a3"
BLUE, VERMILION, GREEN, PURPLE, BLACK, ORANGE = (
    "#0072B2",
    "#D55E00",
    "#007A5A",
    "#A4508B",
    "#333333",
    "#B07500",
)
SOLID = [1, 0]
# A curve is known by colour and by dashes, so that a print in grey tells as much.
KINDS: dict[str, tuple[str, list[int]]] = {
    "exact": (BLUE, SOLID),
    "simulated": (BLUE, SOLID),
    "bound": (GREEN, [6, 5]),
    "published": (VERMILION, [3, 3]),
    "lower bound": (PURPLE, [8, 3, 2, 3]),
    "reference": (BLACK, [2, 2]),
    "second": (ORANGE, [12, 3]),
}
_FONT = "Helvetica, Arial, sans-serif"


def altair() -> Any:
    """The package, or a refusal that names the extra."""
    try:
        import altair
    except ImportError as error:
        raise MissingExtra('a chart needs the package altair: pip install "sfumato[charts]"') from error
    return altair


def finished(chart: Any, title: str, subtitle: Sequence[str]) -> Any:
    """The chart with its titles and the one theme of all charts."""
    alt = altair()
    text = {"labelFont": _FONT, "titleFont": _FONT, "labelColor": INK, "titleColor": INK}
    axis = {**text, "labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": "normal", "labelLimit": 200}
    axis |= {"gridColor": PALE, "domainColor": AXIS, "tickColor": AXIS}
    axis |= {"labelOverlap": "greedy", "labelSeparation": 6, "labelFlush": False}
    heading = {"font": _FONT, "color": INK, "fontSize": 15, "anchor": "start", "offset": 14, "limit": 680}
    heading |= {"subtitleFont": _FONT, "subtitleColor": INK, "subtitleFontSize": 12, "subtitlePadding": 5}
    titles = {"title": alt.TitleParams(text=title, subtitle=list(subtitle))} if title else {}
    config = alt.Config(
        # Descriptions of marks are made of expressions, which read a backslash in a name as an escape.
        font=_FONT,
        axis=axis,
        title=heading,
        header={"labelFont": _FONT},
        view={"stroke": None},
        mark={"aria": False},
    )
    # Opaque, because no single ink reads well on a white and on a dark page.
    # All at once, because Altair copies a chart for each property that is set by itself.
    return chart.properties(**titles, background="white", padding=14, config=config)


def channels(**shown: str) -> dict[str, Any]:
    """What is shown where, by Altair's classes: to look them up by itself takes it most of a chart's time."""
    alt = altair()
    return {name: getattr(alt, name.capitalize())(words) for name, words in shown.items()}


def enough(data: Sequence[Any]) -> None:
    """Refuse an empty picture, and one of too many marks."""
    if not 1 <= len(data) <= MOST_MARKS:
        raise InvalidParameter(f"rows must be 1 to {MOST_MARKS:,} records for a picture, got {len(data):,}")


def extent(data: Records, name: str) -> tuple[float, float]:
    """The least and the largest entry of this name."""
    values = [row[name] for row in data]
    return min(values), max(values)


def number_tip(alt: Any, name: str) -> Any:
    """A number as it is shown where the pointer rests."""
    return alt.Tooltip(f"{name}:Q", format=",.4~g")
