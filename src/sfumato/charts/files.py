"""Charts as files that stand on their own."""

import os
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from sfumato.charts.theme import altair
from sfumato.checks import shown
from sfumato.errors import InvalidParameter, MissingExtra
from sfumato.whole_files import write_file

SUFFIXES = (".svg", ".png", ".html", ".json")
# No link to an editor elsewhere: the page asks the network for nothing.
_OPTIONS = "{mode: 'vega-lite', actions: {export: true, source: false, compiled: false, editor: false}}"
_GLOBAL = "window.vegaEmbed = vegaEmbed;"
_TAG = re.compile(r"<[^<>]*>")
_NUMBERED = re.compile(r'((?: id="|url\(#)(?:clip|gradient_))(\d+)')
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>sfumato</title></head>
<body><div id="picture"></div><script>{script}</script></body>
</html>
"""


def save(chart: Any, path: str | os.PathLike[str]) -> Path:
    """Writes a chart as .svg, .png, .html or .json, by the ending of the path; needs no network.

    Guarantee:
        The file stands on its own: pictures hold all they show, and a page holds the scripts it runs.

    Args:
        chart: what a function of this module returned.
        path: where to; a PNG has two pixels for each of the chart.

    Raises:
        InvalidParameter: another ending.
        MissingExtra: Altair or vl-convert is not installed.

    >>> import tempfile
    >>> from sfumato.charts import values_with_intervals
    >>> chart = values_with_intervals([{"label": "mean", "value": 3.0, "low": 2.5, "high": 3.5}])
    >>> save(chart, tempfile.mkdtemp() + "/mean.json").name
    'mean.json'
    """
    _require_chart(chart)
    target = Path(path)
    ending = target.suffix.lower()
    if ending not in SUFFIXES:
        raise InvalidParameter(f"path must end in {', '.join(SUFFIXES)}, got path={shown(str(path))}")
    write_file(target, content(chart, ending))
    return target


def content(chart: Any, ending: str) -> bytes:
    """What a file with this ending holds of a chart."""
    if ending == ".json":
        return f"{chart.to_json(indent=2)}\n".encode()
    vl_convert = _converter(ending)
    if ending == ".html":
        # Words of the chart stand inside a script, which "</script>" in one of them would end.
        spec = chart.to_json(indent=None).replace("<", "\\u003c")
        draw = f"vegaEmbed(document.getElementById('picture'), {spec}, {_OPTIONS});"
        return _PAGE.format(script=f"{vl_convert.javascript_bundle(_GLOBAL)}\n{draw}").encode()
    if ending == ".svg":
        return f"{_renumbered(vl_convert.vegalite_to_svg(chart.to_dict()))}\n".encode()
    return bytes(vl_convert.vegalite_to_png(chart.to_dict(), scale=2))


def svg(chart: Any, *, alt: str, prefix: str) -> str:
    """A chart as an SVG element to stand inside a page, with a name for readers who hear it.

    Guarantee:
        Scales with its width, has no background, refers to nothing outside itself, and its ids start with the
        prefix. Words of the chart and its name are escaped.

    Args:
        chart: what a function of this module returned.
        alt: what the picture shows, in a sentence.
        prefix: of all ids, so that those of two charts on a page differ.

    Raises:
        InvalidParameter: no chart, or a prefix that is no name.
        MissingExtra: Altair or vl-convert is not installed.

    >>> from sfumato.charts import values_with_intervals
    >>> chart = values_with_intervals([{"label": "mean", "value": 3.0, "low": 2.5, "high": 3.5}])
    >>> svg(chart, alt="A mean of 3.", prefix="mean").startswith('<svg viewBox="0 0 ')
    True
    """
    _require_chart(chart)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", prefix):
        raise InvalidParameter(f"prefix must be letters and digits, got prefix={shown(prefix)}")
    spec = chart.to_dict(validate=False)  # Altair checked its parts when they were made
    spec["background"] = "transparent"
    root = ElementTree.fromstring(_renumbered(_converter(".svg").vegalite_to_svg(spec)))
    size = {name: root.get(name, "0") for name in ("viewBox", "width", "height")}
    _bare(root, prefix)
    root.attrib.clear()
    root.attrib |= {**size, "role": "img", "aria-label": alt}
    return ElementTree.tostring(root, encoding="unicode")


def _renumbered(drawing: str) -> str:
    """The drawing with the ids of a first one: Vega goes on counting from picture to picture."""
    numbers: dict[str, int] = {}

    def from_zero(found: "re.Match[str]") -> str:
        return f"{found[1]}{numbers.setdefault(found[2], len(numbers))}"

    return _TAG.sub(lambda tag: _NUMBERED.sub(from_zero, tag[0]), drawing)


def _require_chart(chart: Any) -> None:
    if not isinstance(chart, altair().TopLevelMixin):
        raise InvalidParameter(f"chart must be a chart, such as release.plot(), got {type(chart).__name__}")


def _bare(element: ElementTree.Element, prefix: str) -> None:
    """The element without what only scripts and other readers use, and with ids of its own."""
    # A page in HTML knows the elements of SVG without their namespace.
    element.tag = element.tag.rpartition("}")[2]
    for name, value in list(element.attrib.items()):
        plain = name.rpartition("}")[2]
        if plain in ("class", "role", "pointer-events") or plain.startswith("aria-"):
            del element.attrib[name]
        elif plain == "id":
            element.attrib[name] = f"{prefix}-{value}"
        elif "#" in value and ("url(" in value or plain == "href"):
            element.attrib[name] = value.replace("#", f"#{prefix}-", 1)
    for child in list(element):
        _bare(child, prefix)
        nothing = child.get("display") == "none" or (child.tag == "path" and _unpainted(child))
        if nothing or (child.tag == "g" and len(child) == 0):
            element.remove(child)


def _unpainted(path: ElementTree.Element) -> bool:
    # Vega puts a path without paint behind every group.
    return not any(name in path.attrib for name in ("fill", "stroke"))


def _converter(ending: str) -> Any:
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtra(f'a chart as {ending} needs: pip install "sfumato[charts]"') from error
    return vl_convert
