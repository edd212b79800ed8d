"""The gallery: figures as files and as one page that stands on its own, whole or not there."""

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from tests.lab.small_figures import (
    ALL,
    ALONE,
    BROKEN,
    FAILING,
    GOOD,
    HOSTILE,
    HOSTILE_NAME,
    LONG,
    SLOW,
    TRACE,
)

from sfumato.charts import svg
from sfumato.errors import InvalidParameter
from sfumato.lab import figures, gallery_page
from sfumato.lab import gallery as gallery_module
from sfumato.lab.errata import ERRATA
from sfumato.lab.figure import QUICK, Effort, Statement
from sfumato.lab.gallery import Drawn, draw, gallery, write
from sfumato.lab.gallery_page import GENERATOR, MOST_ROWS, Plate, shorter
from sfumato.lab.own import Own

ROOT = Path(__file__).resolve().parents[2]
FEW = tuple(erratum for erratum in ERRATA if erratum.id in ("E36", "E38", "E39"))
ENDINGS = (".csv", ".png", ".svg")


@pytest.fixture(scope="module")
def few():
    """Three errata in the place of all, whose computations take longest."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(gallery_module, "ERRATA", FEW)
        patched.setattr(gallery_page, "ERRATA", FEW)
        yield


@pytest.fixture(scope="module")
def hung(few, tmp_path_factory):
    """A gallery of everything that can be in one."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(figures, "FIGURES", ALL)
        return gallery(tmp_path_factory.mktemp("gallery"), effort="quick")


@pytest.fixture(scope="module")
def page(hung):
    return hung.path.read_text("utf-8")


class Elements(HTMLParser):
    """Tags with their attributes, and the words between them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)


# --- one figure -----------------------------------------------------------------------------------


def test_a_figure_is_drawn_by_number_name_or_value(monkeypatch):
    monkeypatch.setattr(figures, "FIGURES", {"1": GOOD})
    drawn = [draw(which, mode="published", effort="quick") for which in (1, "1", "errors-by-scale", GOOD)]
    assert all(each.table.equals(drawn[0].table) and each.holds for each in drawn)
    assert drawn[0].chart.to_dict()["title"]["text"] == "Mean absolute errors, published"
    assert str(drawn[0]).splitlines()[0] == "Figure 1, published: Errors by scale"
    assert "  holds: the simulated means" in str(drawn[0])
    assert "  FAILS: a published number" in str(draw(FAILING, mode="published"))


def test_effort_and_seed_reach_the_numbers():
    full, quick = (draw(GOOD, effort=effort).table for effort in ("full", "quick"))
    assert full["se"].max() < quick["se"].max()
    again, other = (draw(GOOD, effort=Effort(share=0.1, seed=seed)).table for seed in (2024, 7))
    assert again.equals(quick)
    assert not other.equals(quick)


def test_mechanisms_of_a_readers_own_go_to_the_figures_that_compare():
    mine = {"mine": Own(function=max, probs=[0.5])}
    assert set(draw(GOOD, own=mine).table["curve"]) == {"laplace", "mine"}
    with pytest.raises(InvalidParameter, match="own goes with figures that compare, and figure C1 does not"):
        draw(FAILING, own=mine)
    for wrong in ({"mine": 1}, {"mine": max}, {"": mine["mine"]}, {1: mine["mine"]}):
        with pytest.raises(InvalidParameter, match="subject must"):
            draw(GOOD, own=wrong)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"which": 99}, "figure must be one of"),
        ({"which": GOOD, "mode": "draft"}, "mode must be one of 'published', 'corrected', got mode='draft'"),
        ({"which": GOOD, "effort": "some"}, "effort must be one of 'full', 'quick', got effort='some'"),
    ],
)
def test_what_there_is_not_is_refused_in_words(asked, words):
    with pytest.raises(InvalidParameter, match=re.escape(words)):
        draw(**asked)


def test_a_drawn_figure_is_saved_as_picture_table_and_statements(tmp_path):
    drawn = draw(FAILING, mode="published", effort=QUICK)
    folder = tmp_path / "deeper"
    paths = drawn.save(folder)
    names = [f"C1-half-published.{ending}" for ending in ("csv", "json", "png", "svg")]
    assert sorted(path.name for path in paths) == sorted(path.name for path in folder.iterdir()) == names
    whole(folder.iterdir())
    rows = csv.DictReader(io.StringIO((folder / names[0]).read_text("utf-8")))
    assert [float(row["mean"]) for row in rows] == drawn.table["mean"].to_list()
    record = json.loads((folder / names[1]).read_text("utf-8"))
    assert record["caption"] == FAILING.captions["published"]
    assert record["holds"] is False
    assert [each["holds"] for each in record["statements"]] == [True, False]


def whole(paths):
    """Every file is complete."""
    for path in paths:
        content = path.read_bytes()
        if path.suffix == ".png":
            assert content.endswith(b"IEND\xaeB`\x82")
        elif path.suffix == ".svg":
            ElementTree.fromstring(content)
        elif path.suffix == ".json":
            json.loads(content)
        elif path.suffix == ".csv":
            assert content.endswith(b"\n")
        elif path.suffix == ".html":
            assert content.rstrip().endswith(b"</html>")


# --- the page -------------------------------------------------------------------------------------


def test_a_gallery_has_a_page_statements_and_three_files_a_plate(hung):
    names = {path.name for path in hung.path.parent.iterdir()}
    plates = {
        f"{figure.number}-{figure.name}-{mode}{ending}"
        for figure in (GOOD, LONG, FAILING, HOSTILE)
        for mode in ("published", "corrected")
        for ending in ENDINGS
    }
    assert names == {"index.html", "statements.json", *plates}
    whole(hung.path.parent.iterdir())


def test_the_page_asks_for_nothing_and_runs_nothing(page):
    elements = Elements(page)
    tags = {tag for tag, _ in elements.tags}
    assert tags.isdisjoint({"script", "link", "img", "iframe", "object", "base", "form"})
    for tag, attributes in elements.tags:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "srcset")]
        for name in ("href", "xlink:href"):
            target = attributes.get(name) or ""
            assert re.match(r"#|[A-Z]?\d+-[a-z-]+\.(svg|png|csv)$|statements\.json$|$", target), (tag, target)
    assert not re.search(r"url\((?!#)|@import", page)
    assert "default-src 'none'" in page


def test_every_id_is_unique_and_every_link_inside_the_page_leads_somewhere(page):
    tags = Elements(page).tags
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    inside = {a["href"][1:] for _, a in tags if (a.get("href") or "").startswith("#")}
    inside |= {name for _, a in tags for name in (a.get("aria-labelledby") or "").split()}
    assert inside <= set(ids)
    files = {a["href"] for tag, a in tags if tag == "a" and not a["href"].startswith("#")}
    assert len(files) == 1 + 8 * 3


def test_files_that_the_page_links_to_are_beside_it(hung, page):
    for target in re.findall(r'href="([^"#]+)"', page):
        assert (hung.path.parent / target).is_file()


def test_every_picture_has_a_name_a_caption_and_ids_of_its_own(page):
    tags = Elements(page).tags
    names = [attributes["aria-label"] for tag, attributes in tags if tag == "svg"]
    assert len(names) == len(set(names)) == 8
    assert names[0] == "Figure 1, as published: Errors by scale. The caption says what it shows."
    assert page.count("<figcaption>") == 8
    assert all(attributes.get("role") == "img" for tag, attributes in tags if tag == "svg")


def test_headings_go_down_by_single_steps(page):
    levels = [int(tag[1]) for tag, _ in Elements(page).tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(below <= above + 1 for above, below in pairwise(levels))


def test_hostile_words_are_shown_as_they_are_and_do_nothing(page):
    assert "<script" not in page
    assert "<img" not in page
    words = "".join(Elements(page).words)
    assert words.count(f"Caption {HOSTILE_NAME}") == 2
    assert words.count(f"Words {HOSTILE_NAME}") == 2
    assert "no numbers today <b>" in words
    cells = Elements(page).words
    assert cells.count(HOSTILE_NAME) >= 6


def test_a_statement_says_whether_it_holds_in_words_and_by_a_mark(page):
    text = " ".join("".join(Elements(page).words).split())
    assert "✗ fails a published number is half of what it is" in text
    assert text.count("✓ holds") > 15
    assert "25 of 26" in text


def test_what_fails_is_named_at_the_top(page):
    top = page[: page.index("<main>")]
    assert '<a href="#figure-C1-published">Figure C1, published</a>: a statement fails' in top
    assert '<a href="#figure-R1-published">Figure R1, published</a>: not drawn' in top
    assert "C1-corrected" not in top


def test_a_page_without_a_failure_has_no_alarm(few, tmp_path):
    found = gallery(tmp_path, which=[GOOD], modes=["corrected"], effort="quick")
    text = found.path.read_text("utf-8")
    assert 'class="alarm"' not in text
    assert 'class="plates"' in text
    # Of a few figures, the page has no other errata than theirs.
    assert re.findall(r'id="(E\d+)"', text) == ["E36", "E38"]
    assert 'id="errata"' not in text
    assert not found.failing
    assert not found.missing


def test_long_tables_are_cut_and_many_statements_folded(page):
    section = page[page.index('id="figure-2-published"') : page.index('id="figure-2-corrected"')]
    assert section.count("<tr>") == 1 + MOST_ROWS
    assert "The first 200 of 300 rows" in section
    assert "4 more statements, all of which hold" in section
    assert section.count("holds</span>") == 9


def test_what_fails_is_never_folded():
    statements = (*(Statement(f"s{place}", True) for place in range(9)), Statement("bad", False))
    plate = Plate(number="1", mode="published", statements=statements)
    assert plate.first[0] == Statement("bad", False)
    assert all(each.holds for each in plate.others)
    assert len(plate.first) == 5
    assert len(plate.first + plate.others) == 10


def test_errata_stand_with_their_figures_and_the_others_at_the_end(page):
    figure = page[page.index('id="figure-1"') : page.index('id="figure-2"')]
    later = page[page.index('id="figure-C1"') : page.index('id="figure-S1"')]
    end = page[page.index('id="errata"') :]
    assert 'id="E36"' in figure
    assert 'id="E38"' in figure
    by_id = {erratum.id: erratum for erratum in FEW}
    shown = "".join(Elements(figure).words)
    assert by_id["E36"].statement in shown
    assert by_id["E38"].finding().text in shown
    assert by_id["E38"].corrected in shown
    # The second time it is folded, and no target of links.
    assert "E36 <span" in later
    assert 'id="E36"' not in later
    assert re.findall(r'id="(E\d+)"', end) == ["E39"]


def test_the_statements_are_one_json_document(hung):
    record = json.loads((hung.path.parent / "statements.json").read_text("utf-8"))
    assert record["effort"] == {"share": 0.1, "seed": 2024}
    assert record["holds"] is False
    by_number = {figure["number"]: figure for figure in record["figures"]}
    assert list(by_number) == ["1", "2", "C1", "S1", "R1"]
    assert by_number["C1"]["modes"]["published"]["statements"][-1] == {
        "words": "a published number is half of what it is",
        "holds": False,
    }
    assert by_number["R1"]["modes"]["corrected"] == {
        "statements": [],
        "error": "RuntimeError: no numbers today <b>",
    }
    assert [(plate.number, plate.mode) for plate, _ in hung.failing] == [("C1", "published")]
    assert len(hung.missing) == 2


def test_a_shortened_picture_is_the_same_picture():
    drawing = svg(draw(GOOD).chart, alt="x", prefix="x")
    short = shorter(drawing)
    assert len(short) < 0.8 * len(drawing)

    def looks(element, inherited=()):
        style = {**dict(inherited), **element.attrib}
        if element.tag in ("path", "text", "line"):
            places = re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", style.get("d", ""))
            yield element.tag, style.get("fill"), style.get("stroke"), element.text, [*map(float, places)]
        kept = {name: style[name] for name in gallery_page._INHERITED & style.keys()}
        for child in element:
            yield from looks(child, kept)

    before, after = (list(looks(ElementTree.fromstring(text))) for text in (drawing, short))
    assert [each[:4] for each in before] == [each[:4] for each in after]
    for one, other in zip(before, after, strict=True):
        assert one[4] == pytest.approx(other[4], abs=0.006)
    assert len(before) > 10


# --- how it is made -------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_processes_write_what_one_writes(few, tmp_path):
    told = []
    asked = {"which": [GOOD, LONG], "modes": ["corrected"], "effort": "quick"}
    write(tmp_path / "one", **asked)
    path = write(tmp_path / "two", **asked, jobs=2, progress=lambda *state: told.append(state))
    for one in (tmp_path / "one").iterdir():
        assert one.read_bytes() == (tmp_path / "two" / one.name).read_bytes(), one.name
    assert path == tmp_path / "two" / "index.html"
    assert [state[1:] for state in told] == [(done, 4) for done in range(1, 5)]
    assert {"figure 1, corrected", "erratum E36"} <= {state[0] for state in told}


@pytest.mark.parametrize("kept", [True, False])
def test_what_measures_times_is_over_before_anything_else_begins(few, kept, tmp_path, monkeypatch):
    trace = tmp_path / "trace"
    trace.mkdir()
    monkeypatch.setenv(TRACE, str(trace))
    # The same figure without its mark takes its turn, so that the test can fail.
    which = [SLOW, replace(ALONE, alone=kept)]
    gallery(tmp_path / "out", which=which, modes=["corrected"], effort="quick")
    found = [path.read_text().split() for path in trace.iterdir()]
    (shared_start, _), (_, _, alone_end) = sorted(found, key=len)
    assert (float(alone_end) <= float(shared_start)) == kept


@pytest.mark.parametrize("place", [2, 8], ids=["in a picture", "in the page"])
def test_a_process_that_is_killed_in_a_write_leaves_no_half_file(place, tmp_path):
    code = f"""
import os
from sfumato.lab import gallery
from tests.lab.small_figures import GOOD
calls, sync = [], os.fsync
def killed(descriptor):
    calls.append(descriptor)
    # Of each file the content is settled first, and then its name.
    if len(calls) == {2 * place - 1}:
        os.ftruncate(descriptor, 10)
        os.kill(os.getpid(), 9)
    sync(descriptor)
os.fsync = killed
gallery.write({str(tmp_path / "out")!r}, which=[GOOD], effort="quick")
"""
    path = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, timeout=120
    )
    assert done.returncode == -signal.SIGKILL
    there = {each for each in (tmp_path / "out").iterdir() if not each.name.startswith(".")}
    assert len(there) == place - 1
    assert "index.html" not in {each.name for each in there}
    whole(there)


def test_a_full_disk_leaves_the_old_page(few, tmp_path, monkeypatch):
    path = write(tmp_path, which=[GOOD], modes=["corrected"], effort="quick")
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sfumato.whole_files.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write(tmp_path, which=[GOOD], modes=["corrected"], effort=Effort(share=0.1, seed=3))
    assert path.read_bytes() == before
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".")]


def test_the_page_of_something_else_is_not_replaced(few, tmp_path):
    (tmp_path / "index.html").write_text("<h1>my page</h1>", "utf-8")
    with pytest.raises(InvalidParameter, match="folder must not hold the page of something else"):
        write(tmp_path, which=[GOOD], effort="quick")
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]


def test_a_gallery_replaces_a_gallery(few, tmp_path):
    path = write(tmp_path, which=[GOOD], modes=["corrected"], effort="quick")
    assert GENERATOR in path.read_text("utf-8")
    write(tmp_path, which=[LONG], modes=["corrected"], effort="quick")
    assert "Errors by scale" not in path.read_text("utf-8")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"which": ["99"]}, "figure must be one of"),
        ({"which": []}, "which must name every figure once"),
        ({"which": [GOOD, GOOD]}, "which must name every figure once"),
        ({"which": [replace(GOOD, errata=("E99",))]}, "figure 1 names errata that there are not: {'E99'}"),
        ({"which": [GOOD], "modes": ["draft"]}, "mode must be one of"),
        ({"which": [GOOD], "jobs": 0}, "jobs must be"),
        ({"which": [GOOD], "effort": "some"}, "effort must be one of"),
    ],
)
def test_a_gallery_of_what_there_is_not_is_refused_before_anything_is_made(asked, words, tmp_path):
    with pytest.raises(InvalidParameter, match=re.escape(words)):
        write(tmp_path / "new", **asked)
    assert not (tmp_path / "new").exists()


def test_a_figure_that_cannot_be_sent_to_a_process_is_refused_in_words(few, tmp_path):
    with pytest.raises(InvalidParameter, match="jobs must be 1 for what cannot be sent to another process"):
        write(tmp_path, which=[HOSTILE], jobs=2)


def test_a_drawn_figure_knows_its_files():
    drawn = draw(GOOD, effort="quick")
    assert isinstance(drawn, Drawn)
    assert list(drawn.files()) == [
        f"1-errors-by-scale-corrected{ending}" for ending in (".svg", ".png", ".csv")
    ]


def test_broken_is_broken():
    with pytest.raises(RuntimeError, match="no numbers today"):
        draw(BROKEN)
