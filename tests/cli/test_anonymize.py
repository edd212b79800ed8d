"""`sfumato anonymize` and `sfumato anonymity measure`: files in, files out, and what goes wrong in words."""

import csv
import gzip
import io
import json
import shutil
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from tests.cli.running import called, ran

from sfumato.errors import MissingExtra

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "anonymity"
QUASI = ("--quasi", "age,sex,postcode")
PATIENTS = (EXAMPLE / "patients.csv").read_text("utf-8")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("patients.csv", "anonymity.toml"):
        shutil.copy(EXAMPLE / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def undrawn(monkeypatch):
    """As if the extra charts was not installed: nothing is drawn, which takes longest."""

    def missing(*_, **__):
        raise MissingExtra("a report needs the package jinja2")

    monkeypatch.setattr("sfumato.report.anonymity_page.anonymity_html", missing)


def rows_of(text, separator=","):
    return list(csv.DictReader(io.StringIO(text), delimiter=separator))


def classes(rows, names):
    return Counter(tuple(row[name] for name in names) for row in rows)


def test_the_example_runs_and_meets_its_goals(here):
    status, printed, complained = called("anonymize", "--plan", "anonymity.toml", "-o", "out")
    assert (status, complained) == (0, "")
    assert "reached: at least 5 rows in each class" in printed
    assert "not differential privacy" in printed
    assert sorted(path.name for path in (here / "out").iterdir()) == [
        "anonymized.csv",
        "report.html",
        "summary.json",
    ]
    rows = rows_of((here / "out" / "anonymized.csv").read_text("utf-8"))
    assert list(rows[0]) == ["age", "sex", "postcode", "admitted", "illness", "cost"]
    names = ["age", "sex", "postcode", "admitted"]
    assert min(classes(rows, names).values()) >= 5
    ills = {}
    for row in rows:
        ills.setdefault(tuple(row[name] for name in names), set()).add(row["illness"])
    assert min(map(len, ills.values())) >= 2
    summary = json.loads((here / "out" / "summary.json").read_text("utf-8"))
    assert summary["kept"] == len(rows) >= 950
    assert summary["differential_privacy"] is False
    assert "Patients of two hospitals" in (here / "out" / "report.html").read_text("utf-8")


def test_options_alone_do_the_same_as_a_plan_and_json_is_one_document(here, undrawn):
    options = (*QUASI, "--k", "6", "--sensitive", "illness", "--identifiers", "name,insurance")
    status, printed, complained = called("anonymize", "patients.csv", *options, "-o", "one", "--json")
    assert status == 0
    assert "there is no report" in complained
    record = json.loads(printed)
    assert record["after"]["k"] >= 6
    assert record["files"] == ["anonymized.csv", "summary.json"]
    (here / "plan.toml").write_text(
        'version = 1\nquasi = ["age", "sex", "postcode"]\nk = 6\nsensitive = ["illness"]\n'
        'identifiers = ["name", "insurance"]\n'
    )
    assert called("anonymize", "patients.csv", "--plan", "plan.toml", "-o", "two")[0] == 0
    one, two = ((here / name / "anonymized.csv").read_bytes() for name in ("one", "two"))
    assert one == two


def test_cells_that_are_not_coarsened_are_written_as_they_stood(here, undrawn):
    text = "age,code,cost,note\n" + "".join(
        f'{20 + i % 3},007,1.{i % 3}0,"a, ""b"" {i}"\n' for i in range(12)
    )
    (here / "t.csv").write_text(text, "utf-8")
    options = ("--quasi", "age", "--k", "4", "--sensitive", "cost")
    assert called("anonymize", "t.csv", *options, "-o", "out")[0] == 0
    given, found = rows_of(text), rows_of((here / "out" / "anonymized.csv").read_text("utf-8"))
    for name in ("code", "cost", "note"):
        assert Counter(row[name] for row in found) == Counter(row[name] for row in given)
    assert {row["cost"] for row in found} == {"1.00", "1.10", "1.20"}


def test_numbers_with_zeros_in_front_are_words_unless_a_type_is_given(here, undrawn):
    (here / "t.csv").write_text("code\n" + "007\n" * 3 + "100\n" * 3)
    assert called("anonymize", "t.csv", "--quasi", "code", "--k", "6", "-o", "words")[0] == 0
    assert rows_of((here / "words" / "anonymized.csv").read_text())[0]["code"] == "{007, 100}"
    numbers = ("--type", "code=integer", "-o", "numbers")
    assert called("anonymize", "t.csv", "--quasi", "code", "--k", "6", *numbers)[0] == 0
    assert rows_of((here / "numbers" / "anonymized.csv").read_text())[0]["code"] == "[7, 100]"


@pytest.mark.parametrize("ending", [".csv.gz", ".tsv", ".parquet", ".arrow"])
def test_the_table_is_written_in_the_format_that_it_came_in(here, undrawn, ending):
    frame = pl.read_csv(io.StringIO(PATIENTS), try_parse_dates=True)
    path = here / f"table{ending}"
    written = io.BytesIO()
    if ending == ".parquet":
        frame.write_parquet(written)
    elif ending == ".arrow":
        frame.write_ipc(written)
    else:
        frame.write_csv(written, separator="\t" if ending == ".tsv" else ",")
    content = written.getvalue()
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    assert called("anonymize", path, *QUASI, "--k", "5", "-o", "out")[0] == 0
    out = here / "out" / f"anonymized{ending}"
    if ending == ".parquet":
        found = pl.read_parquet(out)
    elif ending == ".arrow":
        found = pl.read_ipc(out)
    else:
        found = pl.read_csv(out, separator="\t" if ending == ".tsv" else ",", try_parse_dates=True)
    assert found.drop("age", "sex", "postcode").schema == frame.drop("age", "sex", "postcode").schema
    assert found.height == 1_000
    assert found.group_by("age", "sex", "postcode").len()["len"].min() >= 5


def test_nothing_is_replaced_unasked_and_the_same_again_is_the_same(here, undrawn):
    once = ("anonymize", "patients.csv", *QUASI, "-o", "out")
    assert called(*once, "--k", "5")[0] == 0
    assert called(*once, "--k", "5")[0] == 0
    before = {path.name: path.read_bytes() for path in (here / "out").iterdir()}
    status, _, complained = called(*once, "--k", "7")
    assert status == 2
    assert "exists already; give another place, or --force" in complained
    assert {path.name: path.read_bytes() for path in (here / "out").iterdir()} == before
    assert called(*once, "--k", "7", "--force")[0] == 0


WRONG = [
    (("patients.csv", *QUASI, "--k", "5"), "give -o FOLDER"),
    (("patients.csv", "-o", "out"), "give --quasi, or --plan"),
    (("--quasi", "age", "--k", "2", "-o", "out"), "give TABLE, or a plan that names one"),
    (("patients.csv", *QUASI, "-o", "out"), "goals must have at least one goal, or k be given"),
    (("patients.csv", *QUASI, "--k", "0", "-o", "out"), "k must be in [1, 2147483647], got k=0"),
    (("patients.csv", *QUASI, "--k", "2000", "-o", "out"), "the table has 1,000 rows"),
    (("patients.csv", "--quasi", "height", "--k", "2", "-o", "out"), "has no column 'height'"),
    (("none.csv", *QUASI, "--k", "2", "-o", "out"), "none.csv does not exist"),
    (("patients.csv", "--plan", "none.toml", "-o", "out"), "none.toml: no such file"),
    (("patients.csv", "--plan", "anonymity.toml", "--k", "2", "-o", "out"), "give --plan alone"),
    (("patients.csv", *QUASI, "--k", "2", "--diversity", "illness", "-o", "out"), "must be COLUMN=VALUE"),
    (("patients.csv", *QUASI, "--k", "2", "--closeness", "illness=x", "-o", "out"), "must be a number"),
    (
        ("patients.csv", *QUASI, "--k", "2", "--diversity", "illness=1.5", "-o", "out"),
        "l must be a whole number",
    ),
    (("patients.csv", *QUASI, "--k", "2", "--type", "age=star", "-o", "out"), "types.age must be one of"),
    (("patients.csv", *QUASI, "--k", "2", "--type", "sex=integer", "-o", "out"), "'sex' is declared integer"),
    (("patients.csv", *QUASI, "--k", "2", "--hierarchies", "none.toml", "-o", "out"), "cannot be read"),
    (("patients.csv", *QUASI, "--k", "2", "-o", "patients.csv"), "is a file; -o names the folder"),
]


@pytest.mark.parametrize(("arguments", "words"), WRONG)
def test_what_cannot_be_used_is_told_and_leaves_nothing(here, arguments, words):
    status, printed, complained = called("anonymize", *arguments)
    assert status == 2
    assert words in complained
    assert printed == ""
    assert not (here / "out").exists()


def test_a_column_without_a_name_is_refused(here):
    (here / "t.csv").write_text("age,\n1,2\n")
    status, _, complained = called("anonymize", "t.csv", "--quasi", "age", "--k", "1", "-o", "out")
    assert (status, "must have a name" in complained) == (2, True)


def test_messages_show_no_cell_of_the_table(here):
    (here / "t.csv").write_text("age,born\ncanary-71,1\n12,2\n")
    for options in (("--type", "age=integer"), ("--k", "3"), ("--quasi", "born", "--type", "born=date")):
        status, printed, complained = called("anonymize", "t.csv", "--quasi", "age", *options, "-o", "out")
        assert status == 2
        assert "canary" not in printed + complained


def test_a_table_is_measured(here):
    status, printed, _ = called("anonymity", "measure", "patients.csv", *QUASI, "--sensitive", "illness")
    assert status == 0
    assert printed.startswith("1,000 rows in ")
    assert "k = 1" in printed
    status, printed, _ = called("anonymity", "measure", "patients.csv", *QUASI, "--json")
    record = json.loads(printed)
    assert (status, record["k"], record["rows"]) == (0, 1, 1_000)
    assert record["risk"]["highest"] == 1.0
    status, _, complained = called("anonymity", "measure", "patients.csv")
    assert (status, "give --quasi" in complained) == (2, True)


def test_it_runs_as_a_process_without_a_traceback(here):
    status, _, complained = ran("anonymize", "none.csv", *QUASI, "--k", "5", "-o", "out", here=here)
    assert status == 2
    assert complained == "sfumato: none.csv does not exist\n"
