"""One theme for all charts, and the one place that imports Altair."""

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.errors import InvalidParameter, MissingExtra

Records = Sequence[Mapping[str, Any]]

# More marks than this are no picture, and slow every reader's browser.
MOST_MARKS = 5_000
# Okabe and Ito: told apart with any colour vision, and dark enough for thin lines on white.
INK, PALE, AXIS = "#1f2933", "#d9e1e8", "#8595a3"
BLUE, VERMILION, GREEN, PURPLE, BLACK, ORANGE, INDIGO = (
    "#0072B2",
    "#D55E00",
    "#007A5A",
    "#A4508B",
    "#333333",
    "#B07500",
    "#43309B",
)
# Letters are thin: words beside a curve are darker than the curve where its own colour is too pale to read.
WORDS = {VERMILION: "#B54F00", ORANGE: "#8F5F00"}
# What parts words from the lines that they cross, and cells from each other: the colour of the page.
PAGE = "#ffffff"
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
CURVES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, INDIGO, BLACK)
# Cells of a map keep their colours on a dark page, and so do the two colours of words on them.
ON_PALE, ON_DEEP = "#101418", "#fdfdfd"
LEVELS = (
    "#440154",
    "#472d7b",
    "#3b528b",
    "#2c728e",
    "#21918c",
    "#28ae80",
    "#5ec962",
    "#addc30",
    "#fde725",
)
NAMED = ("#56B4E9", "#E69F00", "#009E73", "#F0E442", "#CC79A7", "#D55E01", "#BBBBBB")
# What a dark page shows in place of each colour, by attribute selectors on the SVG.
LIGHT_TO_DARK = {
    INK: "#e8ebee",
    PALE: "#2c353f",
    AXIS: "#7b8794",
    BLUE: "#5cb3e6",
    VERMILION: "#ff8f4d",
    GREEN: "#3fc29b",
    PURPLE: "#e08fc8",
    BLACK: "#c3cbd3",
    ORANGE: "#e3b341",
    INDIGO: "#b0a4f5",
    WORDS[VERMILION]: "#ff9d63",
    WORDS[ORANGE]: "#e8bd57",
    PAGE: "#1a2027",
    **{colour: colour for colour in (ON_PALE, ON_DEEP, *LEVELS, *NAMED)},
}
PADDING = 14
# Letters of a page may be broader than those that a picture was laid out with, by this share.
BROADER = 0.15
_FONT = "Helvetica, Arial, sans-serif"


def altair() -> Any:
    """The package, or a refusal that names the extra."""
    try:
        import altair
    except ImportError as error:
        raise MissingExtra('a chart needs the package altair: pip install "sfumato[charts]"') from error
    return altair


def finished(
    chart: Any,
    title: str | list[str],
    subtitle: Sequence[str],
    *,
    size: int = 12,
    spare: Mapping[str, float] | None = None,
) -> Any:
    """The chart with its titles and the one theme of all charts.

    Args:
        size: of the smallest letters.
        spare: pixels at the "left" or the "right" for the words there, where a page has broader letters.
    """
    alt = altair()
    text = {"labelFont": _FONT, "titleFont": _FONT, "labelColor": INK, "titleColor": INK}
    axis = {
        **text,
        "labelFontSize": size,
        "titleFontSize": max(size, 13),
        "titleFontWeight": "normal",
        "labelLimit": 200,
    }
    axis |= {"gridColor": PALE, "domainColor": AXIS, "tickColor": AXIS}
    axis |= {"labelOverlap": "greedy", "labelSeparation": 6, "labelFlush": False}
    heading = {"font": _FONT, "color": INK, "fontSize": 15, "anchor": "start", "offset": 14, "limit": 680}
    heading |= {"subtitleFont": _FONT, "subtitleColor": INK, "subtitleFontSize": size, "subtitlePadding": 5}
    # An empty line below a title would be as high as a full one.
    below = {"subtitle": list(subtitle)} if subtitle else {}
    titles = {"title": alt.TitleParams(text=title, **below)} if title else {}
    config = alt.Config(
        # Descriptions of marks are made of expressions, which read a backslash in a name as an escape.
        font=_FONT,
        axis=axis,
        title=heading,
        header={"labelFont": _FONT},
        view={"stroke": None},
        mark={"aria": False},
    )
    padding = {side: PADDING + (spare or {}).get(side, 0.0) for side in ("left", "right", "top", "bottom")}
    # Opaque, because no single ink reads well on a white and on a dark page.
    # All at once, because Altair copies a chart for each property that is set by itself.
    return chart.properties(**titles, background="white", padding=padding, config=config)


def channels(**shown: str) -> dict[str, Any]:
    """What is shown where, by Altair's classes: to look them up by itself takes it most of a chart's time."""
    alt = altair()
    return {name: getattr(alt, name.capitalize())(words) for name, words in shown.items()}


def enough(data: Sequence[Any]) -> None:
    """Refuse an empty picture, and one of too many marks."""
    if not 1 <= len(data) <= MOST_MARKS:
        got = f"{len(data):,}" if len(data) else "0 that its axes can show"
        raise InvalidParameter(f"rows must be 1 to {MOST_MARKS:,} records for a picture, got {got}")


def extent(data: Records, name: str) -> tuple[float, float]:
    """The least and the largest entry of this name."""
    values = [row[name] for row in data]
    return min(values), max(values)


def number_tip(alt: Any, name: str) -> Any:
    """A number as it is shown where the pointer rests."""
    return alt.Tooltip(f"{name}:Q", format=",.4~g")
