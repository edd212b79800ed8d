"""Keys and names of others in files and on terminals: no formula, no escape sequence, nothing lost."""

import csv
import json
import os

import polars as pl
import pytest
from rich.text import Text
from tests.cli.running import called
from tests.test_safe_text import original

from sfumato.cli import output
from sfumato.cli.app import run

KEYS = [
    "=1+1",
    "+A1",
    "-A1",
    "@SUM(1)",
    "-5",
    "\tx",
    "\x1b[31mred",
    "a\u202eb",
    "＝1",
    "'tis",
    "two\rlines",
    "x;=1",
]
PLAN = """
version = 1
title = "Keys"

[data]
path = "keys.parquet"
name = "keys"
unit = "row"
neighbours = "add-remove"

[budget]
epsilon = 5
delta = 1e-6

[ledger]
cap = { epsilon = 5, delta = 1e-6 }

[columns."=key"]
type = "text"

[[queries]]
name = "=people"
statistic = "count"
group_by = ["=key"]
groups = { keys = "private" }
"""
STEERING = {"\x1b", "\x07", "\r", "\x9b", "\u202e", "\u2066"}


@pytest.fixture
def keys(home):
    pl.DataFrame({"=key": [key for key in KEYS for _ in range(200)]}).write_parquet(home / "keys.parquet")
    (home / "plan.toml").write_text(PLAN, "utf-8")
    return home


def test_results_hold_no_formula_in_csv_and_exact_keys_in_parquet_and_json(keys):
    status, printed, complained = called("release", "plan.toml", "-o", "out")
    assert status == 0
    assert not STEERING & set(printed + complained)
    with open("out/results.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    table = pl.read_parquet("out/results.parquet")
    assert sorted(table.get_column("=key")) == sorted(KEYS)
    assert [original(row["'=key"]) for row in rows] == table.get_column("=key").to_list()
    assert {row["result"] for row in rows} == {"'=people"}
    assert all(float(row["value"]) for row in rows)
    assert "-5" in {row["'=key"] for row in rows}
    stored = json.loads((keys / "out" / "release.json").read_bytes())
    assert all(json.dumps(key)[1:-1] in json.dumps(stored) for key in KEYS)
    page = (keys / "out" / "report.html").read_text("utf-8")
    assert not STEERING & set(page)


def test_a_console_shows_escape_sequences_as_text(capsys):
    name = "a\x1b[31mb\u202e\x9bc"
    console = output.output()
    console.print(name)
    console.print(Text(name))
    console.print(output.grid_of(["name"], [[name]]))
    output.warn(name)
    printed, complained = capsys.readouterr()
    assert not STEERING & set(printed + complained)
    assert printed.count("a\\x1b[31mb\\u202e\\x9bc") == 3


def test_errors_show_escape_sequences_as_text(home, capsys):
    with pytest.raises(SystemExit):
        run(["plan", "check", "no\x1b[31m\u202e\n.toml"])
    with pytest.raises(SystemExit):
        run(["anonymity", "measure", "no\x1b[31m\u202e\n.csv", "--quasi", "a\x1b"])
    complained = capsys.readouterr().err
    assert not STEERING & set(complained)
    assert len(complained.splitlines()) == 2


def test_styles_of_our_own_reach_a_terminal(capsys):
    output.Output(force_terminal=True).print(Text("a\x1b[31mb", style="bold"))
    assert capsys.readouterr().out == "\x1b[1ma\\x1b[31mb\x1b[0m\n"


@pytest.mark.parametrize("name", ["release.json", "results.csv"])
def test_a_planted_link_or_pipe_stops_a_release_before_the_charge(keys, without_charts, name):
    (keys / "victim").write_bytes(b"precious")
    for place, plant in (("links", lambda path: path.symlink_to(keys / "victim")), ("pipes", os.mkfifo)):
        (keys / place).mkdir()
        plant(keys / place / name)
        status, _, complained = called("release", "plan.toml", "-o", place)
        assert (status, "nothing was charged" in complained) == (2, True)
    assert called("release", "plan.toml", "-o", "links", "--force")[0] == 0
    assert (keys / "victim").read_bytes() == b"precious"
    assert not (keys / "links" / name).is_symlink()
