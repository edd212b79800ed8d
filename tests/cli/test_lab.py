"""`sfumato lab`: lists, single figures, galleries; exit statuses, files, JSON, interrupts."""

import errno
import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.cli.running import called, started
from tests.lab.small_figures import ALL, BROKEN, FAILING, GOOD, HOSTILE, LONG

import sfumato
from sfumato import whole_files
from sfumato.lab import figures, gallery_page
from sfumato.lab import gallery as gallery_module
from sfumato.lab.errata import ERRATA


@pytest.fixture
def registry(monkeypatch):
    """Puts figures, and few errata, in the place of what is shipped."""
    few = tuple(erratum for erratum in ERRATA if erratum.id in ("E36", "E38"))
    monkeypatch.setattr(gallery_module, "ERRATA", few)
    monkeypatch.setattr(gallery_page, "ERRATA", few)

    def put(*chosen):
        monkeypatch.setattr(figures, "FIGURES", {figure.number: figure for figure in chosen})

    put(*ALL.values())
    return put


# --- list -----------------------------------------------------------------------------------------


def test_the_list_has_number_name_source_and_title(registry):
    registry(GOOD, FAILING)
    status, printed, complained = called("lab", "list")
    assert (status, complained) == (0, "")
    rows = [line.split() for line in printed.splitlines()]
    assert rows[0] == ["figure", "name", "source", "compares", "title"]
    assert rows[2] == ["1", "errors-by-scale", "A24", "yes", "Errors", "by", "scale"]
    assert rows[3] == ["C1", "half", "C22", "Half"]


def test_the_list_of_what_is_shipped_has_every_figure():
    status, printed, _ = called("lab", "list", "--json")
    document = json.loads(printed)
    assert status == 0
    assert document["version"] == sfumato.__version__
    listed = [figure["number"] for figure in document["figures"]]
    assert listed == list(figures.FIGURES)
    assert set(document["figures"][0]) == {"number", "name", "source", "title", "compares"}


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_list_fits_the_terminal(columns, monkeypatch, registry):
    monkeypatch.setenv("COLUMNS", str(columns))
    registry(GOOD, FAILING, LONG)
    printed = called("lab", "list")[1]
    assert max(map(len, printed.splitlines())) <= columns
    assert "…" not in printed


# --- one figure -----------------------------------------------------------------------------------


def test_a_figure_tells_its_caption_and_what_holds(registry):
    status, printed, complained = called("lab", "figure", "1", "--quick")
    assert (status, complained) == (0, "")
    lines = printed.splitlines()
    assert lines[0] == "Figure 1: Errors by scale"
    assert "Errors equal to the scale." in printed
    assert "Errors that are twice as large." not in printed
    assert any(line.startswith("holds  the simulated means") for line in lines)
    assert called("lab", "figure", "errors-by-scale", "--quick")[1] == printed


def test_a_statement_that_fails_is_the_exit_status_and_told_in_words(registry):
    status, printed, _ = called("lab", "figure", "C1", "--mode", "both", "--quick")
    assert status == 1
    assert "FAILS  a published number is half of what it is" in printed
    assert "holds  a published number is half of what it is" in printed
    assert called("lab", "figure", "C1", "--mode", "corrected", "--quick")[0] == 0


def test_both_modes_are_written_as_files(registry, tmp_path):
    status, printed, complained = called(
        "lab", "figure", "1", "--mode", "both", "-o", tmp_path / "out", "--quick"
    )
    assert (status, complained) == (0, "")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [
        f"1-errors-by-scale-{mode}.{ending}"
        for mode in ("corrected", "published")
        for ending in ("csv", "json", "png", "svg")
    ]
    assert all(name in printed for name in names)


def test_the_json_of_a_figure_has_statements_and_the_table(registry):
    status, printed, _ = called("lab", "figure", "C1", "--mode", "both", "--json", "--quick", "--seed", "5")
    document = json.loads(printed)
    assert status == 1
    assert document["holds"] is False
    assert document["effort"] == {"share": 0.1, "seed": 5}
    first, second = document["modes"]
    assert (first["mode"], first["holds"], second["holds"]) == ("published", False, True)
    assert first["table"][0].keys() == {"curve", "x", "exact", "mean", "se"}
    assert len(first["table"]) == 3
    assert document["files"] == []


def test_numbers_that_json_does_not_know_are_null(registry):

    def odd(mode, effort, own):
        return pl.DataFrame(
            {
                "curve": ["a", "b"],
                "x": [1.0, 2.0],
                "exact": [1.0, 1.0],
                "mean": [1.0, 1.0],
                "se": [float("nan"), float("inf")],
            }
        )

    registry(replace(GOOD, numbers=odd, check=lambda frame, mode: ()))
    status, printed, _ = called("lab", "figure", "1", "--json")
    assert status == 0
    assert [row["se"] for row in json.loads(printed)["modes"][0]["table"]] == [None, None]


def test_seed_effort_jobs_and_cache_reach_the_figure(registry, monkeypatch):

    seen = []

    def numbers(mode, effort, own):
        seen.append(effort)
        return GOOD.numbers(mode, effort, own)

    registry(replace(GOOD, numbers=numbers))
    called("lab", "figure", "1")
    called("lab", "figure", "1", "--quick", "--seed", "3", "--jobs", "4", "--cache")
    assert [(e.share, e.seed, e.jobs, e.cache) for e in seen] == [(1.0, 2024, 1, False), (0.1, 3, 4, True)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("figure", "99"), "figure must be one of 1, 2, C1, S1, R1, or its name, got figure='99'"),
        (("figure", "1", "--mode", "draft"), "--mode must be one of published, corrected, both, got 'draft'"),
        (("figure", "1", "--jobs", "0"), "--jobs"),
        (("figure", "1", "--seed", "-1"), "--seed"),
        (("figure",), "FIGURE"),
        (("all",), "-o"),
        (("all", "-o", "out", "--jobs", "many"), "--jobs"),
    ],
)
def test_what_cannot_be_used_is_told_in_words(registry, arguments, words):
    status, printed, complained = called("lab", *arguments)
    assert (status, printed) == (2, "")
    assert words in complained


# --- the gallery ----------------------------------------------------------------------------------


def test_a_gallery_of_what_holds(registry, tmp_path):
    registry(GOOD, LONG)
    status, printed, complained = called("lab", "all", "-o", tmp_path / "g", "--quick", "--jobs", "1")
    assert (status, complained) == (0, "")
    lines = printed.splitlines()
    assert lines[0].split() == ["figure", "mode", "title", "hold", "seconds"]
    assert lines[2].split()[:-1] == ["1", "published", "Errors", "by", "scale", "1", "of", "1"]
    assert "20 of 20 statements hold" in printed
    assert lines[-1] == f"The gallery is {tmp_path / 'g' / 'index.html'}"
    assert (tmp_path / "g" / "index.html").is_file()


def test_a_gallery_with_a_failing_statement_exits_with_1(registry, tmp_path):
    registry(FAILING, BROKEN)
    status, printed, _ = called("lab", "all", "-o", tmp_path, "--quick", "--jobs", "1", "--json")
    document = json.loads(printed)
    assert status == 1
    assert document["holds"] is False
    by_plate = {(figure["number"], figure["mode"]): figure for figure in document["figures"]}
    assert by_plate["C1", "published"]["failing"] == ["a published number is half of what it is"]
    assert by_plate["R1", "corrected"]["error"] == "RuntimeError: no numbers today <b>"
    assert Path(document["page"]).is_file()


def test_a_figure_that_cannot_be_drawn_exits_with_2_and_stops_no_other(registry, tmp_path):
    registry(BROKEN, GOOD)
    status, printed, _ = called("lab", "all", "-o", tmp_path, "--quick", "--jobs", "1")
    assert status == 2
    assert "Figure R1, published, NOT DRAWN: RuntimeError: no numbers today <b>" in printed
    assert (tmp_path / "1-errors-by-scale-published.svg").is_file()
    assert (tmp_path / "index.html").is_file()


def test_hostile_names_reach_the_terminal_as_text(registry, tmp_path):
    registry(HOSTILE)
    status, printed, _ = called("lab", "all", "-o", tmp_path, "--quick", "--jobs", "1")
    assert status == 0
    assert "onerror" in printed


def test_jobs_are_those_given_or_all_cores(registry, tmp_path, monkeypatch):
    seen = []
    made = gallery_module.gallery

    def noted(folder, *, jobs, **more):
        seen.append(jobs)
        return made(folder, jobs=1, **more)

    monkeypatch.setattr(gallery_module, "gallery", noted)
    registry(GOOD)
    called("lab", "all", "-o", tmp_path, "--quick", "--jobs", "3")
    called("lab", "all", "-o", tmp_path, "--quick")
    assert seen == [3, os.cpu_count()]


@pytest.mark.parametrize("command", [("figure", "1"), ("all",)], ids=" ".join)
def test_a_folder_that_cannot_be_written_to_is_refused_before_anything_is_computed(
    registry, command, tmp_path, monkeypatch
):
    seen = []
    registry(replace(GOOD, numbers=lambda *given: seen.append(given)))
    (tmp_path / "file").write_text("x", "utf-8")
    status, printed, complained = called("lab", *command, "-o", tmp_path / "file", "--quick")
    assert (status, printed) == (2, "")
    assert "is a file; -o names the folder to write to" in complained

    def read_only(path, mode):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(whole_files, "_create", read_only)
    status, printed, complained = called("lab", *command, "-o", tmp_path / "new", "--quick")
    assert (status, printed) == (2, "")
    assert "read-only file system" in complained
    assert not (tmp_path / "new").exists()
    assert seen == []


def test_the_page_of_something_else_is_refused(registry, tmp_path):
    (tmp_path / "index.html").write_text("mine", "utf-8")
    status, printed, complained = called("lab", "all", "-o", tmp_path, "--quick")
    assert (status, printed) == (2, "")
    assert "folder must not hold the page of something else" in complained
    assert (tmp_path / "index.html").read_text("utf-8") == "mine"


def test_ctrl_c_ends_the_gallery_and_leaves_no_page(tmp_path):
    process = started("lab", "all", "-o", str(tmp_path / "out"), "--jobs", "2")
    deadline = time.monotonic() + 60
    while not (tmp_path / "out").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    printed, complained = process.communicate(timeout=60)
    assert (process.returncode, printed, complained) == (130, "", "")
    left = [path.name for path in (tmp_path / "out").iterdir()] if (tmp_path / "out").exists() else []
    assert "index.html" not in left
    assert not [name for name in left if name.startswith(".")]
