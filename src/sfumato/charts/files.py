"""Charts as files that stand on their own."""

import os
from pathlib import Path
from typing import Any

from sfumato.charts.theme import altair
from sfumato.checks import shown
from sfumato.errors import InvalidParameter, MissingExtra

SUFFIXES = (".svg", ".png", ".html", ".json")
# No link to an editor elsewhere: the page asks the network for nothing.
_OPTIONS = "{mode: 'vega-lite', actions: {export: true, source: false, compiled: false, editor: false}}"
_GLOBAL = "window.vegaEmbed = vegaEmbed;"
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
    module = altair()
    if not isinstance(chart, module.TopLevelMixin):
        raise InvalidParameter(f"chart must be a chart, such as release.plot(), got {type(chart).__name__}")
    target = Path(path)
    ending = target.suffix.lower()
    if ending not in SUFFIXES:
        raise InvalidParameter(f"path must end in {', '.join(SUFFIXES)}, got path={shown(str(path))}")
    if ending == ".json":
        target.write_text(chart.to_json(indent=2) + "\n", "utf-8")
        return target
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtra(f'a chart as {ending} needs: pip install "sfumato[charts]"') from error
    if ending == ".html":
        # Words of the chart stand inside a script, which "</script>" in one of them would end.
        spec = chart.to_json(indent=None).replace("<", "\\u003c")
        draw = f"vegaEmbed(document.getElementById('picture'), {spec}, {_OPTIONS});"
        target.write_text(_PAGE.format(script=f"{vl_convert.javascript_bundle(_GLOBAL)}\n{draw}"), "utf-8")
    elif ending == ".svg":
        target.write_text(vl_convert.vegalite_to_svg(chart.to_dict()) + "\n", "utf-8")
    else:
        target.write_bytes(vl_convert.vegalite_to_png(chart.to_dict(), scale=2))
    return target
