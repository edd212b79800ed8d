"""The page of the gallery: figures in both modes, what holds of them, and the errata beside them."""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import sfumato
from sfumato.charts import svg, theme
from sfumato.errors import InvalidParameter, MissingExtra
from sfumato.lab.errata import ERRATA, SOURCES
from sfumato.lab.erratum import Erratum
from sfumato.lab.figure import MODES, Effort, Figure, Mode, Statement

if TYPE_CHECKING:
    from sfumato.lab.gallery import Drawn

INDEX, STATEMENTS = "index.html", "statements.json"
GENERATOR = '<meta name="generator" content="sfumato gallery '
# More rows are in the file alone.
MOST_ROWS = 200
# More statements are folded, if they hold.
OPEN_STATEMENTS = 5
# Of each source what its figures are called, in the order of the page.
PARTS = {
    "A24": "The report of 2024",
    "C22": "The report of 2022",
    "S22": "The slides of 2022",
    "sfumato": "Beyond the sources",
}
HEADS = {"published": "As published", "corrected": "Corrected"}
_PLACED = {"d", "transform", "x", "y", "x1", "x2", "y1", "y2", "width", "height", "r", "stroke-width"}
_INHERITED = {"fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray"}
_INHERITED |= {"stroke-linecap", "stroke-linejoin", "font-family", "font-size", "text-anchor"}
_NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")


@dataclass(frozen=True, kw_only=True)
class Plate:
    """A figure in one mode as the page shows it, or why it could not be drawn."""

    number: str
    mode: Mode
    statements: tuple[Statement, ...] = ()
    picture: str = ""
    columns: tuple[tuple[str, bool], ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    height: int = 0
    files: Mapping[str, bytes] = field(default_factory=dict)
    seconds: float = 0.0
    error: str = ""

    @property
    def holds(self) -> bool:
        """Whether it was drawn and every statement holds."""
        return not self.error and all(statement.holds for statement in self.statements)

    @property
    def first(self) -> tuple[Statement, ...]:
        """What is not folded: whatever fails, and a few more."""
        failing = tuple(each for each in self.statements if not each.holds)
        holding = tuple(each for each in self.statements if each.holds)
        return failing + holding[: max(0, OPEN_STATEMENTS - len(failing))]

    @property
    def others(self) -> tuple[Statement, ...]:
        """The other statements, all of which hold."""
        return tuple(each for each in self.statements if each not in self.first)


def plate(drawn: "Drawn", files: Mapping[str, bytes]) -> Plate:
    """What the page needs of a figure: its picture to stand inside, and the first rows of its table."""
    figure, table = drawn.figure, drawn.table
    head = f"Figure {figure.number}, {HEADS[drawn.mode].lower()}: {figure.title}"
    alt = f"{head}. The caption says what it shows."
    drawing = svg(drawn.chart, alt=alt, prefix=f"f{figure.number}-{drawn.mode}".lower())
    return Plate(
        number=figure.number,
        mode=drawn.mode,
        statements=drawn.statements,
        picture=shorter(drawing),
        columns=tuple((name, kind.is_numeric()) for name, kind in table.schema.items()),
        rows=tuple(tuple(map(_cell, row)) for row in table.head(MOST_ROWS).iter_rows()),
        height=table.height,
        files=files,
    )


def shorter(drawing: str) -> str:
    """An SVG of the same looks: places to a hundredth of a pixel, and said once what all of a group share.

    >>> shorter('<g><path d="M1.23456,0.5L3.00001,-2.5e-16" fill="red" opacity="1" /></g>')
    '<g fill="red"><path d="M1.23,0.5L3,0" /></g>'
    """
    root = ElementTree.fromstring(drawing)
    for element in reversed(list(root.iter())):  # children before their parents
        for name in _PLACED & element.attrib.keys():
            element.attrib[name] = _NUMBER.sub(_rounded, element.attrib[name])
        if element.get("opacity") == "1":
            del element.attrib["opacity"]
        for name in sorted(_INHERITED - element.attrib.keys()):
            values = {child.get(name) for child in element}
            if element.tag == "g" and len(values) == 1 and None not in values:
                element.attrib[name] = str(values.pop())
                for child in element:
                    del child.attrib[name]
    return ElementTree.tostring(root, encoding="unicode")


def known(chosen: Sequence[Figure]) -> None:
    """Refuse figures twice, and errata that there are not, before anything is computed."""
    numbers = [figure.number for figure in chosen]
    if len(set(numbers)) < len(numbers) or not numbers:
        raise InvalidParameter(f"which must name every figure once, got which={numbers}")
    ids = {erratum.id for erratum in ERRATA}
    for figure in chosen:
        if unknown := set(figure.errata) - ids:
            raise InvalidParameter(f"figure {figure.number} names errata that there are not: {unknown}")
    _template()


def html(
    chosen: Sequence[Figure], plates: Sequence[Plate], findings: Mapping[str, str], effort: Effort
) -> str:
    """The page, of what was drawn and found."""
    by_id = {erratum.id: erratum for erratum in ERRATA}
    seen: set[str] = set()
    parts = []
    for source, title in {**PARTS, **{each.source: each.source for each in chosen}}.items():
        shown = []
        for figure in chosen:
            if figure.source != source:
                continue
            errata = [(by_id[name], name not in seen) for name in dict.fromkeys(figure.errata)]
            seen |= set(figure.errata)
            shown.append((figure, [each for each in plates if each.number == figure.number], errata))
        if shown:
            words = SOURCES.get(source, "what the sources suggest and do not draw")
            parts.append((source, PARTS.get(source, title), words, shown))
    statements = [each for plate in plates for each in plate.statements]
    page: str = _template().render(
        version=sfumato.__version__,
        generator=GENERATOR,
        parts=parts,
        plates=plates,
        both=len({plate.mode for plate in plates}) == len(MODES),
        heads=HEADS,
        sources=SOURCES,
        findings=findings,
        others=[erratum for erratum in ERRATA if erratum.id in findings.keys() - seen],
        statements=len(statements),
        holding=sum(each.holds for each in statements),
        missing=[plate for plate in plates if plate.error],
        share=effort.share,
        seed=effort.seed,
        statements_file=STATEMENTS,
        colours={"ink": theme.INK, "pale": theme.PALE, "blue": theme.BLUE, "axis": theme.AXIS},
        in_the_dark=theme.LIGHT_TO_DARK,
    )
    return page.lstrip()


def _template() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise MissingExtra('a gallery needs the package jinja2: pip install "sfumato[charts]"') from error
    return _compiled(jinja2)


@cache
def _compiled(jinja2: Any) -> Any:
    # The report lends its style, so that both are read alike.
    folders = [jinja2.PackageLoader(f"sfumato.{name}", "templates") for name in ("lab", "report")]
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(folders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["erratum"] = lambda value: isinstance(value, Erratum)
    return environment.get_template("gallery.html")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _rounded(number: "re.Match[str]") -> str:
    return f"{round(float(number.group()), 2) + 0:g}" if abs(float(number.group())) < 1e4 else number.group()
