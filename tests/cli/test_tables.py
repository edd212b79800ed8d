"""Plans of folders, patterns and engines, from the command line."""

import json
import tomllib

import polars as pl
import pytest
from tests.cli.people import CANARIES, files_of, replaced
from tests.cli.running import called

from sfumato.ledger.sql import SqlLedger


@pytest.fixture
def parts(home):
    """The table of the plan in a folder of partitions."""
    head, *lines = (home / "people.csv").read_text("utf-8").splitlines()
    for year in range(3):
        folder = home / "people" / f"year={2024 + year}"
        folder.mkdir(parents=True)
        (folder / "part.csv").write_text("\n".join([head, *lines[year::3], ""]), "utf-8")
    (home / "people" / "_SUCCESS").write_text("")
    replaced(home / "plan.toml", 'path = "people.csv"', 'path = "people"')
    return home


@pytest.mark.parametrize("engine", [None, "polars", "duckdb"])
def test_a_folder_is_released_by_an_engine_which_is_recorded(engine, parts, without_charts):
    if engine is not None:
        replaced(parts / "plan.toml", 'name = "people"\nunit', f'name = "people"\nengine = "{engine}"\nunit')
    status, printed, complained = called("release", "plan.toml", "-o", "out", "--json")
    assert status == 0, complained
    released = json.loads((parts / "out" / "release.json").read_text("utf-8"))
    receipt = json.loads((parts / "out" / "receipt.json").read_text("utf-8"))
    assert released.get("engine") == receipt.get("engine") == engine
    if engine == "duckdb":
        assert receipt["software"]["duckdb"] == released["versions"]["duckdb"]
    counted = next(result for result in released["results"] if result["name"] == "people")
    assert abs(int(counted["releases"][0]["release"]["outcome"][0]) - 401) < 400
    everything = b"".join(files_of(parts / "out").values()).decode("utf-8", "replace")
    assert not any(canary in everything + printed + complained for canary in CANARIES)
    # The same folder again costs nothing, and returns the same bytes.
    assert called("release", "plan.toml", "-o", "again", "--json")[0] == 0
    assert (parts / "again" / "release.json").read_bytes() == (parts / "out" / "release.json").read_bytes()


def test_a_folder_that_cannot_be_used_is_refused_before_a_ledger_is_there(parts, without_charts):
    part = parts / "people" / "year=2025" / "part.csv"
    part.write_text(part.read_text("utf-8") + f"p,{CANARIES[0]},1,red,x\n", "utf-8")
    status, printed, complained = called("release", "plan.toml", "-o", "out")
    assert (status, printed) == (2, "")
    assert "column 'age' is declared integer" in complained
    assert CANARIES[0] not in complained
    assert not (parts / "ledger.db").exists()
    part.write_text("id,age\n1,2\n")
    assert "year=.../part.csv has other columns" in called("plan", "check", "plan.toml")[2]


def test_a_plan_is_begun_and_checked_for_a_folder_a_pattern_and_an_arrow_file(parts):
    pl.read_csv(parts / "people.csv", infer_schema_length=None).write_ipc(parts / "people.arrow")
    names = {"people": "people", "people/*/part.csv": "people", "people.arrow": "people"}
    for path, name in names.items():
        status, _, complained = called("plan", "new", path, "-o", "new.toml", "--force")
        assert (status, complained) == (0, "")
        begun = tomllib.loads((parts / "new.toml").read_text("utf-8"))
        assert begun["data"]["path"] == path
        assert ("year" in begun["columns"]) == (path != "people.arrow")
        if "*" not in path:
            assert begun["title"] == name
        replaced(parts / "plan.toml", 'path = "people"', f'path = "{path}"')
        status, printed, complained = called("plan", "check", "plan.toml")
        assert (status, complained) == (0, "")
        assert "is not there yet" not in printed
        replaced(parts / "plan.toml", f'path = "{path}"', 'path = "people"')
    replaced(parts / "plan.toml", 'path = "people"', 'path = "nowhere/*.csv"')
    assert "nowhere/*.csv is not there yet" in called("plan", "check", "plan.toml")[1]


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_an_engine_that_fails_after_the_charge_tells_that_it_is_paid_for(engine, home, without_charts):
    folder = home / "damaged"
    folder.mkdir()
    table = pl.read_csv(home / "people.csv", infer_schema_length=None)
    table.write_parquet(folder / "part.parquet", compression="uncompressed", statistics=False)
    content = bytearray((folder / "part.parquet").read_bytes())
    # The pages are damaged, and the schema behind them is not.
    pages = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    content[4:pages] = b"\xff" * (pages - 4)
    (folder / "part.parquet").write_bytes(content)
    replaced(home / "plan.toml", 'path = "people.csv"', f'path = "damaged"\nengine = "{engine}"')
    status, printed, complained = called("release", "plan.toml", "-o", "out")
    assert (status, printed) == (5, ""), complained
    last = complained.splitlines()[-1]
    assert last.startswith(f"{engine} could not answer: "), complained
    assert "epsilon 1.0 was charged, and the same command finishes the release at no further cost" in last
    spent = called("ledger", "show", "--ledger", "ledger.db")
    assert called("release", "plan.toml", "-o", "out")[0] == 5
    assert called("ledger", "show", "--ledger", "ledger.db") == spent
    # It does, once the data can be read.
    table.write_parquet(folder / "part.parquet")
    assert called("release", "plan.toml", "-o", "out")[0] == 0
    entries = SqlLedger("ledger.db").entries()
    assert [entry.kind for entry in entries] == ["open", "spend", "reply"]


def test_an_engine_by_another_name_is_told(parts):
    replaced(parts / "plan.toml", 'path = "people"', 'path = "people"\nengine = "pyspark"')
    status, _, complained = called("plan", "check", "plan.toml")
    assert status == 2
    assert "data.engine: must be one of 'polars', 'duckdb', 'spark', got 'pyspark'; did you mean spark?" in (
        complained
    )


def test_a_plan_with_a_derived_column_and_a_condition_in_text_is_released(parts, without_charts):
    derived = (
        '[columns.monthly]\ntype = "real"\nbounds = [0, 10_000]\n\n[derive]\nmonthly = "income / 12"\n\n'
    )
    asked = '[[queries]]\nname = "monthly"\nstatistic = "mean"\ncolumn = "monthly"\n'
    asked += 'where = "age >= 18 and age < 65"\n\n'
    replaced(
        parts / "plan.toml", '[[queries]]\nname = "people"', f'{derived}{asked}[[queries]]\nname = "people"'
    )
    replaced(parts / "plan.toml", "share = 0.4", "share = 0.3")
    replaced(parts / "plan.toml", 'path = "people"', 'path = "people"\nengine = "duckdb"')
    status, _, complained = called("release", "plan.toml", "-o", "out", "--json")
    assert status == 0, complained
    released = json.loads((parts / "out" / "release.json").read_text("utf-8"))
    found = next(result for result in released["results"] if result["name"] == "monthly")
    assert "age >= 18 and age < 65" in str(found["where"])


@pytest.mark.parametrize("path", ["people.csv", "people"])
def test_text_that_is_no_declared_category_is_read_alike_from_a_file_and_by_an_engine(
    path, parts, without_charts
):
    (parts / "plan.toml").write_text(
        f"""
version = 1
title = "Teams"
data = {{ path = "{path}", name = "{path}", unit = "row", neighbours = "add-remove" }}
budget = {{ epsilon = 4000, delta = 1e-5 }}
columns.team = {{ type = "text", categories = ["red"] }}
queries = [
    {{ name = "blue", statistic = "count", where = "team == 'blue'" }},
    {{ name = "no team", statistic = "count", where = "team == 'another value'" }},
    {{ name = "by team", statistic = "count", group_by = ["team"], groups = {{ keys = "private" }} }},
    {{ name = "own list", statistic = "histogram", column = "team", categories = ["blue"] }},
]
""",
        "utf-8",
    )
    # Noise of this budget is zero but for a chance that never comes.
    status, _, complained = called("release", "plan.toml", "-o", "out", "--json")
    assert status == 0, complained
    released = json.loads((parts / "out" / "release.json").read_text("utf-8"))
    found = {result["name"]: result["releases"] for result in released["results"]}
    teams = pl.read_csv(parts / "people.csv", infer_schema_length=None)["team"].drop_nulls().to_list()
    blue = teams.count("blue")
    assert blue > 0
    assert int(found["blue"][0]["release"]["outcome"][0]) == blue
    assert int(found["no team"][0]["release"]["outcome"][0]) == 0
    assert int(found["own list"][0]["release"]["outcome"][0]) == blue
    assert {part["key"][0]: int(part["release"]["outcome"][0]) for part in found["by team"]} == {
        team: teams.count(team) for team in set(teams) if teams.count(team) > 1
    }
