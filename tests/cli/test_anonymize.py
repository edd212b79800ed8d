"""`sfumato anonymize` and `sfumato anonymity measure`: files in, files out, and what goes wrong in words."""

import csv
import errno
import fcntl
import gzip
import io
import json
import os
import shutil
import signal
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest
from tests.cli.running import called, ran, started

import sfumato.anonymity.anonymizing as anonymizing_file
import sfumato.cli.anonymize as anonymize_file
from sfumato import whole_files
from sfumato.errors import MissingExtra

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "anonymity"
QUASI = ("--quasi", "age,sex,postcode")
ROLES = (*QUASI, "--keep", "admitted,illness,cost", "--drop", "name,insurance")
GOAL_ROLES = (*QUASI, "--keep", "admitted,cost", "--drop", "name,insurance")
PATIENTS = (EXAMPLE / "patients.csv").read_text("utf-8")
PATIENTS_OF_MANY = [f"{i * 7 % 90},{'fm'[i % 2]},{i * 31 % 977}\n" for i in range(200_000)]


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
    assert list(rows[0]) == ["age", "sex", "postcode", "admitted", "illness"]
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
    options = (*GOAL_ROLES, "--k", "6", "--sensitive", "illness")
    status, printed, complained = called("anonymize", "patients.csv", *options, "-o", "one", "--json")
    assert status == 0
    assert "there is no report" in complained
    record = json.loads(printed)
    assert record["after"]["k"] >= 6
    assert record["files"] == ["anonymized.csv", "summary.json"]
    (here / "plan.toml").write_text(
        'version = 1\nquasi = ["age", "sex", "postcode"]\nk = 6\nsensitive = ["illness"]\n'
        'keep = ["admitted", "cost"]\ndrop = ["name", "insurance"]\n'
    )
    assert called("anonymize", "patients.csv", "--plan", "plan.toml", "-o", "two")[0] == 0
    one, two = ((here / name / "anonymized.csv").read_bytes() for name in ("one", "two"))
    assert one == two


def test_cells_that_are_not_coarsened_are_written_as_they_stood(here, undrawn):
    text = "age,code,cost,note\n" + "".join(
        f'{20 + i % 3},007,1.{i % 3}0,"a, ""b"" {i}"\n' for i in range(12)
    )
    (here / "t.csv").write_text(text, "utf-8")
    options = ("--quasi", "age", "--k", "4", "--sensitive", "cost", "--keep", "code,note")
    assert called("anonymize", "t.csv", *options, "-o", "out")[0] == 0
    given, found = rows_of(text), rows_of((here / "out" / "anonymized.csv").read_text("utf-8"))
    for name in ("code", "cost", "note"):
        assert Counter(row[name] for row in found) == Counter(row[name] for row in given)
    assert {row["cost"] for row in found} == {"1.00", "1.10", "1.20"}


def test_columns_that_are_published_as_they_are_are_counted_and_warned_of(here):
    rows = rows_of(PATIENTS)
    text = "age,sex,cost,code\n" + "".join(f"{r['age']},{r['sex']},{r['cost']},c{r['age']}\n" for r in rows)
    (here / "t.csv").write_text(text)
    asked = ("anonymize", "t.csv", "--quasi", "age,sex", "--k", "5", "--keep", "cost,code", "-o", "out")
    status, printed, complained = called(*asked)
    assert status == 0
    found = rows_of((here / "out" / "anonymized.csv").read_text())
    alone = sum(count == 1 for count in classes(found, ["cost"]).values())
    together = sum(count == 1 for count in classes(found, ["age", "sex", "cost", "code"]).values())
    assert f"rows with a value that no other row has, of 1,000: 'cost' {alone:,}" in complained
    assert f"{together:,} of 1,000 rows are unique in the quasi-identifiers with 'cost', 'code'" in complained
    assert "'code' determines 'age', and undoes its coarsening in " in complained
    assert ["cost", "keep", f"{alone:,}"] in [line.split()[:3] for line in printed.splitlines()]
    record = json.loads((here / "out" / "summary.json").read_text())
    assert record["linkage"]["kept_with_quasi"] == together
    assert len(record["warnings"]) == complained.count("sfumato: ") == 3
    page = (here / "out" / "report.html").read_text("utf-8")
    assert "determines &#39;age&#39;, and undoes its coarsening" in page
    assert f"finds {together:,} of 1,000 rows" in page
    printed = called("anonymity", "measure", "out/anonymized.csv", "--quasi", "age,sex")[1]
    assert ["cost", f"{alone:,}", "/"] in [line.split()[:3] for line in printed.splitlines()]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_formulas_of_the_table_are_neutral_in_csv_and_exact_elsewhere(here, undrawn, ending):
    cells = ["=1+1", "-5", "\x1b[31m", "a", "@x", "-"] * 2
    frame = pl.DataFrame({"age": [*range(12)], "=note": cells, "\x1b[2J": [-1.5] * 12})
    frame.write_csv("t.csv")
    frame.write_parquet("t.parquet")
    asked = ("--quasi", "age", "--keep", "=note", "--keep", "\x1b[2J", "--k", "4", "-o", "out")
    status, printed, complained = called("anonymize", f"t.{ending}", *asked)
    assert status == 0
    assert "\x1b" not in printed + complained
    if ending == "parquet":
        found = pl.read_parquet("out/anonymized.parquet")
        assert sorted(found.get_column("=note")) == sorted(cells)
        return
    found = rows_of((here / "out" / "anonymized.csv").read_text("utf-8"))
    assert set(found[0]) == {"age", "'=note", "'\\x1b[2J"}
    expected = {"'=1+1", "-5", "'\\x1b[31m", "a", "'@x", "-"}
    assert {row["'=note"] for row in found} == expected
    assert {row["'\\x1b[2J"] for row in found} == {"-1.5"}


def test_numbers_with_zeros_in_front_are_words_unless_a_type_is_given(here, undrawn):
    (here / "t.csv").write_text("code\n" + "007\n" * 3 + "100\n" * 3)
    assert called("anonymize", "t.csv", "--quasi", "code", "--k", "6", "-o", "words")[0] == 0
    assert rows_of((here / "words" / "anonymized.csv").read_text())[0]["code"] == "{007, 100}"
    numbers = ("--type", "code=integer", "-o", "numbers")
    assert called("anonymize", "t.csv", "--quasi", "code", "--k", "6", *numbers)[0] == 0
    assert rows_of((here / "numbers" / "anonymized.csv").read_text())[0]["code"] == "[7, 100]"


def test_codes_that_are_masked_are_words_whatever_they_look_like(here, undrawn):
    tree = '{ a = ["11", "12"], b = ["21", "22"] }'
    (here / "h.toml").write_text(f'[hierarchies.code]\nkind = "tree"\ntree = {tree}\n')
    frame = pl.DataFrame({"code": [11, 12, 21, 22] * 3})
    frame.write_csv("t.csv")
    frame.write_parquet("t.parquet")
    asked = ("--quasi", "code", "--k", "6", "--method", "full-domain", "--hierarchies", "h.toml")
    for ending in ("csv", "parquet"):
        status, _, complained = called("anonymize", f"t.{ending}", *asked, "-o", ending)
        assert (status, "there is no report" in complained) == (0, True)
    assert Counter(pl.read_parquet(here / "parquet" / "anonymized.parquet")["code"]) == {"a": 6, "b": 6}
    assert Counter(pl.read_csv(here / "csv" / "anonymized.csv")["code"]) == {"a": 6, "b": 6}


def test_semicolons_stay_semicolons(here, undrawn):
    (here / "t.csv").write_text('age;ill\n1;"a;b"\n2;c,d\n')
    assert called("anonymize", "t.csv", "--quasi", "age", "--keep", "ill", "--k", "2", "-o", "out")[0] == 0
    assert (here / "out" / "anonymized.csv").read_text() == 'age;ill\n[1, 2];"a;b"\n[1, 2];c,d\n'


def test_numbers_that_are_missing_are_no_words(here, undrawn):
    (here / "t.csv").write_text("age,on\n1,2024-02-30\n,x\nNA,x\n3,2024-02-28\n2,x\nNA,x\n")
    assert called("anonymize", "t.csv", "--quasi", "age", "--keep", "on", "--k", "3", "-o", "out")[0] == 0
    found = Counter(row["age"] for row in rows_of((here / "out" / "anonymized.csv").read_text()))
    assert found == {"[1, 3]": 3, "null": 3}
    # A day that is on no calendar is a word, and its column text.
    (here / "d.csv").write_text("on\n" + "2024-02-30\n" * 2 + "2024-02-28\n" * 2)
    assert called("anonymize", "d.csv", "--quasi", "on", "--k", "4", "-o", "days")[0] == 0
    assert rows_of((here / "days" / "anonymized.csv").read_text())[0]["on"] == "{2024-02-28, 2024-02-30}"


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
    assert called("anonymize", path, *ROLES, "--k", "5", "-o", "out")[0] == 0
    out = here / "out" / f"anonymized{ending}"
    if ending.endswith("gz"):
        assert out.read_bytes()[4:8] == bytes(4)  # no time, so that the same table gives the same bytes
    if ending == ".parquet":
        found = pl.read_parquet(out)
    elif ending == ".arrow":
        found = pl.read_ipc(out)
    else:
        found = pl.read_csv(out, separator="\t" if ending == ".tsv" else ",", try_parse_dates=True)
    kept = ["admitted", "illness", "cost"]
    assert found.select(kept).schema == frame.select(kept).schema
    assert found.height == 1_000
    assert found.group_by("age", "sex", "postcode").len()["len"].min() >= 5


def test_nothing_is_replaced_unasked_and_the_same_again_is_the_same(here, undrawn):
    once = ("anonymize", "patients.csv", *ROLES, "-o", "out")
    assert called(*once, "--k", "5")[0] == 0
    assert called(*once, "--k", "5")[0] == 0
    before = {path.name: path.read_bytes() for path in (here / "out").iterdir()}
    status, _, complained = called(*once, "--k", "7")
    assert status == 2
    assert "exists already; give another place, or --force" in complained
    assert {path.name: path.read_bytes() for path in (here / "out").iterdir()} == before
    assert called(*once, "--k", "7", "--force")[0] == 0


@pytest.mark.parametrize(
    ("option", "goal"),
    [
        (("--entropy", "illness=1.5"), 'kind = "entropy-diversity"\ncolumn = "illness"\nl = 1.5'),
        (("--recursive", "illness=4,2"), 'kind = "recursive-diversity"\ncolumn = "illness"\nc = 4\nl = 2'),
        (("--diversity", "illness=2"), 'kind = "distinct-diversity"\ncolumn = "illness"\nl = 2'),
        (("--closeness", "illness=0.4"), 'kind = "closeness"\ncolumn = "illness"\nt = 0.4'),
    ],
)
def test_every_goal_of_a_plan_is_an_option(here, undrawn, option, goal):
    assert called("anonymize", "patients.csv", *GOAL_ROLES, "--k", "2", *option, "-o", "one")[0] == 0
    (here / "p.toml").write_text(
        'version = 1\nquasi = ["age", "sex", "postcode"]\nkeep = ["admitted", "cost"]\n'
        f'drop = ["name", "insurance"]\nk = 2\n[[goals]]\n{goal}\n'
    )
    assert called("anonymize", "patients.csv", "--plan", "p.toml", "-o", "two")[0] == 0
    assert called("anonymize", "patients.csv", *ROLES, "--k", "2", "-o", "none")[0] == 0
    one, two, none = ((here / name / "anonymized.csv").read_bytes() for name in ("one", "two", "none"))
    assert one == two != none


def test_order_and_metric_are_options(here, undrawn):
    (here / "t.csv").write_text("age,n\n" + "".join(f"{20 + 7 * i % 10},{i}\n" for i in range(20)))
    levels = ("--method", "full-domain", "--metric", "height")
    asked = ("anonymize", "t.csv", "--quasi", "age", "--keep", "n", "--k", "4")
    assert called(*asked, *levels, "--order", "kept", "-o", "out")[0] == 0
    assert [row["n"] for row in rows_of((here / "out" / "anonymized.csv").read_text())] == [
        str(i) for i in range(20)
    ]
    assert "metric must be one of" in called(*asked, "--metric", "beauty", "-o", "no")[2]


def test_names_with_commas_stand_in_quotes(here, undrawn):
    (here / "t.csv").write_text('"town, country",a b,é\n' + "Rome,1,x\n" * 4)
    quasi = ("--quasi", '"town, country", a b')
    assert called("anonymize", "t.csv", *quasi, "--sensitive", "é", "--k", "2", "-o", "out")[0] == 0
    status, printed, _ = called("anonymity", "measure", "t.csv", *quasi, "--quasi", "é")
    assert (status, printed.split(",")[0]) == (0, "4 rows in 1 class")
    status, _, complained = called("anonymity", "measure", "t.csv", "--quasi", '"town')
    assert (status, "--quasi must be names with commas between them" in complained) == (2, True)


def test_a_disk_that_is_full_leaves_all_files_or_none(here, undrawn, monkeypatch):
    once = ("anonymize", "patients.csv", *ROLES, "-o", "out")
    whole = anonymize_file.write_file

    def full(path, content):
        if "summary" in path.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(path, content)

    monkeypatch.setattr(anonymize_file, "write_file", full)
    status, printed, complained = called(*once, "--k", "5")
    assert (status, printed, "no space left" in complained) == (2, "", True)
    assert not (here / "out").exists()
    monkeypatch.undo()
    monkeypatch.chdir(here)
    assert called(*once, "--k", "5")[0] == 0
    before = {path.name: path.read_bytes() for path in (here / "out").iterdir()}
    monkeypatch.setattr(anonymize_file, "write_file", full)
    assert called(*once, "--k", "7", "--force")[0] == 2
    assert {path.name: path.read_bytes() for path in (here / "out").iterdir()} == before


def test_two_processes_do_not_mix_their_files(here, undrawn, monkeypatch):
    tried = []

    def looked(path, content):
        descriptor = os.open(here / "out", os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)
        tried.append(path.name)
        path.write_bytes(content)

    monkeypatch.setattr(anonymize_file, "write_file", looked)
    assert called("anonymize", "patients.csv", *ROLES, "--k", "5", "-o", "out")[0] == 0
    assert len(tried) == 2


def test_no_bar_is_open_while_a_search_draws_its_own(here, undrawn, monkeypatch):
    opened, during = [], []
    stages, carried_out = anonymize_file.stages, anonymizing_file.carried_out

    @contextmanager
    def watched(words):
        with stages(words) as tell:
            opened.append(words)
            yield tell
            opened.remove(words)

    def seen(*arguments, **more):
        during.append(list(opened))
        return carried_out(*arguments, **more)

    monkeypatch.setattr(anonymize_file, "stages", watched)
    monkeypatch.setattr(anonymizing_file, "carried_out", seen)
    assert called("anonymize", "patients.csv", *ROLES, "--k", "5", "-o", "out")[0] == 0
    assert during == [[]]


def test_an_interrupt_while_the_folder_is_tried_leaves_no_folder(here, monkeypatch):
    def interrupted(path, mode):
        path.touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(whole_files, "_create", interrupted)
    assert called("anonymize", "patients.csv", *ROLES, "--k", "5", "-o", "out")[0] != 0
    assert not (here / "out").exists()


def test_an_interrupt_leaves_nothing(here):
    with (here / "long.csv").open("w") as file:
        file.write("age,sex,postcode\n" + "".join(PATIENTS_OF_MANY))
    process = started("anonymize", "long.csv", *QUASI, "--k", "2", "-o", "out", here=here)
    while not (here / "out").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    printed, complained = process.communicate(timeout=60)
    assert (process.returncode, printed) == (130, "")
    assert "Traceback" not in complained
    assert not (here / "out").exists()


WRONG = [
    (("patients.csv", *QUASI, "--k", "5"), "give -o FOLDER"),
    (("patients.csv", "-o", "out"), "give --quasi, or --plan"),
    (("--quasi", "age", "--k", "2", "-o", "out"), "give TABLE, or a plan that names one"),
    (("patients.csv", *QUASI, "-o", "out"), "goals must have at least one goal, or k be given"),
    (("patients.csv", *QUASI, "--k", "0", "-o", "out"), "k must be in [1, 2147483647], got k=0"),
    (("patients.csv", *ROLES, "--k", "2000", "-o", "out"), "the table has 1,000 rows"),
    (
        ("patients.csv", *QUASI, "--k", "2", "-o", "out"),
        "no role for 'name', 'insurance', 'admitted', 'illness'",
    ),
    (("patients.csv", "--quasi", "height", "--k", "2", "-o", "out"), "has no column 'height'"),
    (("none.csv", *QUASI, "--k", "2", "-o", "out"), "none.csv does not exist"),
    (("patients.csv", "--plan", "none.toml", "-o", "out"), "none.toml: no such file"),
    (("patients.csv", "--plan", "anonymity.toml", "--k", "2", "-o", "out"), "give --plan alone"),
    (("patients.csv", *QUASI, "--k", "2", "--diversity", "illness", "-o", "out"), "must be COLUMN=VALUE"),
    (("patients.csv", *QUASI, "--k", "2", "--closeness", "illness=x", "-o", "out"), "must be a number"),
    (("patients.csv", *QUASI, "--entropy", "illness=-1", "-o", "out"), "l must be"),
    (("patients.csv", *QUASI, "--recursive", "illness=3", "-o", "out"), "--recursive must be COLUMN=C,L"),
    (("patients.csv", *QUASI, "--recursive", "illness=3,", "-o", "out"), "--recursive must be a number"),
    (("patients.csv", *QUASI, "--recursive", "illness=3,1.5", "-o", "out"), "l must be a whole number"),
    (("patients.csv", "--plan", "anonymity.toml", "--order", "kept", "-o", "out"), "give --plan alone"),
    (("patients.csv", "--plan", "anonymity.toml", "--entropy", "a=2", "-o", "out"), "give --plan alone"),
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
    assert "illness, the worst class" in printed
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
