"""What every figure of the laboratory has, so that the gallery and the pages can show it."""

import re
from pathlib import Path

from sfumato.lab import figures, gallery_page

ROOT = Path(__file__).resolve().parents[2]


def test_the_documentation_lists_every_figure():
    page = (ROOT / "docs" / "lab.md").read_text("utf-8")
    listed = re.findall(r"^\| (\w+) \| (.+?) \| `([a-z0-9-]+)` \| (yes)? ?\|$", page, re.MULTILINE)
    shipped = figures.FIGURES.values()
    wanted = {(each.number, each.title, each.name, "yes" if each.compares else "") for each in shipped}
    assert set(listed) == wanted
    assert len(listed) == len(wanted)


def test_every_shipped_figure_can_be_shown():
    gallery_page.known(tuple(figures.FIGURES.values()))
    for figure in figures.FIGURES.values():
        assert figure.source in gallery_page.PARTS
        assert set(figure.captions) == {"published", "corrected"}
        assert all(figure.captions.values())
        assert re.fullmatch(r"[a-z0-9-]+", figure.name)


def test_figures_that_measure_times_are_marked():
    marked = {figure.number for figure in figures.FIGURES.values() if figure.alone}
    assert marked == {"14", "15", "16", "17", "S3"}
