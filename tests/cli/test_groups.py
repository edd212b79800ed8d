"""Groups whose names come from the data, from the command line: previews, tables and files."""

import json

import polars as pl
import pytest
from tests.cli.running import called

PLAN = """
version = 1
title = "Villages"

[data]
path = "villages.csv"
name = "villages"
unit = "row"
neighbours = "add-remove"
rows = 900

[budget]
epsilon = 2
delta = 1e-6

[ledger]
cap = { epsilon = 9, delta = 1e-4 }

[columns.village]
type = "text"

[columns.pay]
type = "real"
bounds = [0, 100]
"""
JOBS = """
[[queries]]
name = "jobs"
statistic = "count"
group_by = ["village"]
groups = { keys = "private", other = true, least = 5 }
share = 0.5
"""
PAY = """
[[queries]]
name = "pay"
statistic = "quantiles"
column = "pay"
probs = [0.25, 0.5, 0.75]
method = "tree"
step = 1
n_hint = 300
group_by = ["village"]
groups = { keys = "private", top = 1, other = true }
share = 0.4
"""
NONE = """
[[queries]]
name = "none"
statistic = "mean"
column = "pay"
group_by = ["village"]
groups = { keys = "private", least = 5000 }
share = 0.1
"""
LONE = "Canaryton"
ROWS = ["North"] * 500 + ["South <b>&"] * 300 + ["=1+1"] * 100 + [""] * 40 + [LONE]
HEADER = "result,statistic,column,where,village,label,value,low,high,confidence,cost"


@pytest.fixture
def villages(home):
    lines = [f'"{name}",{place % 100}' if name else f",{place % 100}" for place, name in enumerate(ROWS)]
    (home / "villages.csv").write_text("\n".join(["village,pay", *lines, ""]), "utf-8")
    (home / "plan.toml").write_text(PLAN + JOBS + PAY + NONE, "utf-8")
    return home


def test_a_preview_says_that_groups_are_not_known_yet(villages):
    status, printed, complained = called("plan", "preview", "plan.toml")
    assert (status, complained) == (0, "")
    told = " ".join(printed.split())
    assert "in each group that is named" in told
    assert "0 groups" not in told
    assert "ε 2 δ 1e-06" in told or "eps 2 delta 1e-06" in told
    found = json.loads(called("plan", "preview", "plan.toml", "--json")[1])
    # How many rows a group has whose key is not known is nothing to guess.
    assert [query["groups"] for query in found["queries"]] == [0, 1, 0]
    assert found["queries"][2]["rows"] is None


def test_a_release_tells_how_groups_were_found_and_of_none(villages):
    status, printed, complained = called("release", "plan.toml", "-o", "out")
    assert status == 0, complained
    told = " ".join(printed.split())
    assert (
        "people or more are always named, those of fewer than 5 never; at most 10,000 groups; costs" in told
    )
    assert "the largest was chosen privately, by numbers of people" in told
    assert "no group is named: none was found to have enough people" in told
    assert "(other)" in told
    assert LONE not in told
    table = pl.read_csv(villages / "out" / "results.csv")
    assert set(table["village"]) == {"North", "South <b>&", "'=1+1", "(other)"}
    assert table.columns == HEADER.split(",")
    assert pl.read_parquet(villages / "out" / "results.parquet").shape == table.shape
    page = (villages / "out" / "report.html").read_text("utf-8")
    assert "No group is named here" in page
    assert "South &lt;b&gt;&amp;" in page
    record = json.loads((villages / "out" / "release.json").read_text("utf-8"))
    assert [len(result["releases"]) for result in record["results"]] == [4, 2, 0]
    assert record["results"][0]["releases"][-1]["key"] == [None]
    # The same plan again is the same reply, and costs nothing.
    status, printed, complained = called("release", "plan.toml", "-o", "again")
    assert (status, complained) == (0, "")
    assert "nothing was charged now" in printed
    for name in ("release.json", "results.csv", "report.html"):
        assert (villages / "again" / name).read_bytes() == (villages / "out" / name).read_bytes()
    assert called("report", "out/release.json", "-o", "page.html")[0] == 0


def test_a_release_of_no_group_at_all_writes_tables_with_a_header(villages):
    (villages / "plan.toml").write_text(PLAN + NONE, "utf-8")
    status, printed, complained = called("release", "plan.toml", "-o", "out")
    assert status == 0, complained
    assert "no group is named" in printed
    assert (villages / "out" / "results.csv").read_text("utf-8").strip() == HEADER
    frame = pl.read_parquet(villages / "out" / "results.parquet")
    assert (frame.shape, frame.columns) == ((0, 11), HEADER.split(","))
    assert json.loads(called("release", "plan.toml", "-o", "out", "--json")[1])["results"] == []
