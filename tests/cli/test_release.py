"""`sfumato release`: files, prices, repetitions, refusals and what must never be seen."""

import errno
import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading

import polars
import pytest
from tests.cli.people import CANARIES, files_of, no_charts, replaced
from tests.cli.running import ROOT, called, ran

from sfumato.cli import release as command
from sfumato.ledger.sql import SqlLedger
from sfumato.publishing import Publication

FILES = {"release.json", "receipt.json", "results.csv", "results.parquet"}
RELEASE = ("release", "plan.toml", "-o", "out")
WRONG = (("income", "integer"), ("note", "real"))


def spent(name="people", ledger="ledger.db"):
    return float(SqlLedger(ledger).account(name).spent.epsilon)


def test_a_release_writes_all_files_and_tells_price_and_rest(home):
    status, printed, complained = called(*RELEASE)
    assert status == 0
    assert "is new in the ledger" in complained
    files = files_of(home / "out")
    assert set(files) == FILES | {"report.html"}
    for told in (
        "mean income by team",
        "95 % interval",
        "Charged: ε 1",
        "Left for people: ε 1",
        "report.html",
    ):
        assert told in printed
    publication = Publication.read(files["release.json"])
    assert publication.results[0].name == "people"
    # A public key without rows is answered as every other one.
    assert "nobody" in printed
    receipt = json.loads(files["receipt.json"])
    assert receipt["release_sha256"] == hashlib.sha256(files["release.json"]).hexdigest()
    assert receipt["price"]["epsilon"] == "1"
    table, same = (
        polars.read_csv(home / "out" / "results.csv"),
        polars.read_parquet(home / "out" / "results.parquet"),
    )
    assert table.height == same.height == 1 + 3 + 3 + 3
    assert table["value"].to_list() == pytest.approx(same["value"].to_list(), rel=1e-15)
    assert files["report.html"].startswith(b"<!")
    assert spent() == 1


def test_repeated_it_writes_the_same_bytes_and_charges_nothing(home, without_charts):
    first = called(*RELEASE)
    assert first[0] == 0
    assert 'pip install "sfumato[charts]"' in first[2]
    before = files_of(home / "out")
    status, printed, _ = called(*RELEASE)
    assert (status, files_of(home / "out")) == (0, before)
    assert "Paid for before, at ε 1; nothing was charged now." in printed
    assert called("release", "plan.toml", "-o", "other")[0] == 0
    assert files_of(home / "other") == before
    assert spent() == 1


def test_again_draws_anew_and_pays_again_until_the_cap(home, without_charts):
    assert called(*RELEASE)[0] == 0
    status, printed, complained = called(*RELEASE, "--again")
    assert (status, printed, spent()) == (2, "", 1)
    assert "out holds another release; nothing was charged" in complained
    status, printed, complained = called("release", "plan.toml", "-o", "second", "--again")
    assert (status, spent()) == (0, 2)
    assert "takes it up at no cost" in complained
    assert files_of(home / "second")["release.json"] != files_of(home / "out")["release.json"]
    status, printed, complained = called("release", "plan.toml", "-o", "third", "--again")
    assert (status, printed, spent()) == (3, "", 2)
    assert "does not fit: nothing is left" in complained
    assert not (home / "third").exists()
    request = json.loads((home / "second" / "release.json").read_bytes())["request"]
    assert called("release", "plan.toml", "-o", "fourth", "--request", request)[0] == 0
    assert files_of(home / "fourth") == files_of(home / "second")


def test_a_request_that_was_something_else_is_refused(home, without_charts):
    assert called(*RELEASE, "--request", "monday")[0] == 0
    replaced(home / "plan.toml", "share = 0.1", "share = 0.05")
    status, printed, complained = called("release", "plan.toml", "-o", "other", "--request", "monday")
    assert (status, printed, spent()) == (2, "", 1)
    assert "monday" in complained
    for wrong in (("--request", "x", "--again"), ("--request", ""), ("--analyst", ""), ("--request", "a\nb")):
        assert called("release", "plan.toml", "-o", "other", *wrong)[0] == 2
    assert spent() == 1


def test_json_is_one_document_alone(home, without_charts):
    status, printed, _ = called(*RELEASE, "--json")
    document = json.loads(printed)
    assert status == 0
    assert list(document) == [
        *("schema", "version", "fresh", "request", "price", "composition", "remaining", "warnings"),
        *("folder", "files", "results", "receipt"),
    ]
    assert (document["fresh"], len(document["results"]), set(document["files"])) == (True, 10, FILES)
    assert document["remaining"]["epsilon"] == "1"
    assert not json.loads(called(*RELEASE, "--json")[1])["fresh"]


def test_no_planted_value_is_ever_seen(home):
    """Not in files, the terminal, the ledger or an error, for plans that work and for plans that fail."""
    seen = [
        ran(*RELEASE, here=home),
        called("ledger", "show", "people"),
        called("ledger", "export", "export.json"),
        called("plan", "new", "people.csv", "-o", "new.toml"),
    ]
    assert [status for status, _, _ in seen] == [0] * 4
    facts = "unit = 'row', neighbours = 'add-remove' }\nbudget.epsilon = 1"
    for column in (
        "income = { type = 'integer', bounds = [0, 1] }",
        "note = { type = 'real', bounds = [0, 1] }",
    ):
        (home / "bad.toml").write_text(
            f"version = 1\ntitle = 'x'\ndata = {{ path = 'people.csv', name = 'bad', {facts}\n"
            f"columns.{column}\nqueries = [{{ statistic = 'mean', column = '{column.split()[0]}' }}]\n"
        )
        seen.append(called("release", "bad.toml", "-o", "bad"))
    # Broken lines that hold canaries.
    with (home / "people.csv").open("a", encoding="utf-8") as file:
        file.write(f'{CANARIES[0]},"{CANARIES[1]},{CANARIES[3]}\n')
    seen += [
        called("release", "plan.toml", "-o", "out2"),
        called("plan", "new", "people.csv", "-o", "newer.toml"),
    ]
    assert [status for status, _, _ in seen[4:7]] == [2, 2, 2]
    (home / "people.csv").unlink()
    texts = [text.encode() for _, *both in seen for text in both]
    stored = files_of(home.parent)
    assert {"home/ledger.db", "home/out/report.html", "home/out/results.parquet"} <= set(stored)
    texts += stored.values()
    for canary in CANARIES:
        assert not [text for text in texts if canary.encode() in text], canary


KILLED = """
import os, signal, sys
import sfumato.report
from sfumato.cli import release
from sfumato.cli.app import run
from sfumato.ledger import failpoints
from tests.cli.people import no_charts

place = sys.argv[1]
written = release.write_file

def die(name):
    if name == place:
        os.kill(os.getpid(), signal.SIGKILL)

def write(path, content):
    die(path.name)
    written(path, content)

failpoints.fail_point, release.write_file, sfumato.report.html = die, write, no_charts
run(["release", "plan.toml", "-o", "out"])
"""


@pytest.mark.parametrize("place", ["before-reply", "after-reply", "results.csv"])
def test_a_process_killed_after_the_charge_is_taken_up_by_the_same_command(home, without_charts, place):
    """The charge stays, is not made twice, and the files come out whole."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, place], env={**os.environ, "PYTHONPATH": path}, capture_output=True
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert spent() == 1
    there = files_of(home / "out") if (home / "out").exists() else {}
    assert set(there) == ({"release.json", "receipt.json"} if place == "results.csv" else set())
    status, printed, _ = called(*RELEASE)
    assert (status, spent()) == (0, 1)
    after = files_of(home / "out")
    assert set(after) == FILES
    assert {name: after[name] for name in there} == there
    assert "Paid for before, at ε 1; nothing was charged now." in printed


@pytest.mark.parametrize("broken", ["results.csv", "release.json", "receipt.json"])
def test_a_full_disk_after_the_charge_is_told_with_the_way_out(home, without_charts, monkeypatch, broken):
    written = command.write_file

    def full(path, content):
        if path.name == broken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        written(path, content)

    with monkeypatch.context() as patched:
        patched.setattr(command, "write_file", full)
        status, printed, complained = called(*RELEASE)
    assert (status, printed) == (5, "")
    assert "no space left on device" in complained
    assert "kept in the ledger" in complained
    assert called(*RELEASE)[0] == 0
    assert spent() == 1


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_release_that_cannot_be_shown_is_paid_for_and_written(home, more):
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            [sys.executable, "-m", "sfumato", *RELEASE, *more],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            stdout=full,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
    assert process.returncode == 5
    assert process.stderr.splitlines()[-1] == (
        "sfumato: the release is paid for and written to out, but could not be shown: no space left on device"
    )
    assert set(files_of(home / "out")) >= FILES
    assert spent() == 1


def test_a_refusal_does_not_wait_for_what_draws_the_report(home, monkeypatch):
    started = []
    monkeypatch.setattr("sfumato.report.prepare", lambda: started.append(threading.current_thread().daemon))
    replaced(home / "plan.toml", "epsilon = 2", "epsilon = 1")
    assert called(*RELEASE)[0] == 0
    assert called("release", "plan.toml", "-o", "b", "--again")[0] == 3
    assert started == [True, True]


def test_a_folder_with_something_else_is_refused_before_the_charge(home, without_charts):
    for name in ("release.json", "results.csv", "report.html"):
        folder = home / f"with-{name}"
        folder.mkdir()
        (folder / name).write_text("mine")
        status, printed, complained = called("release", "plan.toml", "-o", folder)
        assert (status, printed) == (2, "")
        assert "nothing was charged" in complained
        assert files_of(folder) == {name: b"mine"}
    assert SqlLedger(home / "ledger.db").datasets() == ()
    assert called("release", "plan.toml", "-o", home / "with-results.csv", "--force")[0] == 0
    assert set(files_of(home / "with-results.csv")) == FILES
    (home / "others").mkdir()
    (home / "others" / "notes.txt").write_text("mine")
    assert called("release", "plan.toml", "-o", "others")[0] == 0
    assert (home / "others" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_other_data_under_the_same_edition_give_the_same_files(home, without_charts, more):
    assert called(*RELEASE)[0] == 0
    before = files_of(home / "out")
    _, printed, complained = called(*RELEASE, *more)
    assert "changed" not in complained
    replaced(home / "people.csv", "p3,", "q3,")
    status, printed_now, complained = called(*RELEASE, *more)
    assert (status, files_of(home / "out")) == (0, before)
    # The curator is told on the terminal; what may be published does not differ.
    assert "The data have changed since this request was answered" in complained
    assert printed_now == printed
    assert spent() == 1


def test_a_new_edition_does_not_replace_a_release_unasked(home, without_charts):
    assert called(*RELEASE)[0] == 0
    before = files_of(home / "out")
    replaced(home / "plan.toml", "version = 1", 'version = 1\nedition = "2"')
    status, _, complained = called(*RELEASE)
    assert (status, files_of(home / "out")) == (2, before)
    assert "another release; nothing was charged" in complained
    assert spent() == 1
    assert called(*RELEASE, "--force")[0] == 0
    assert files_of(home / "out") != before
    assert spent() == 2


@pytest.mark.parametrize(
    ("stop", "place", "again"),
    [
        (KeyboardInterrupt, "sfumato.session.draw", False),
        (KeyboardInterrupt, "sfumato.publication.Publication.of_outcome", True),
        (MemoryError, "sfumato.session.draw", True),
        (OSError(28, "No space left"), "sfumato.session.write_outcome", False),
        (ZeroDivisionError, "sfumato.publication.Publication.of_outcome", False),
    ],
)
def test_whatever_stops_a_release_after_the_charge_tells_how_it_is_finished(
    home, without_charts, monkeypatch, stop, place, again
):
    def stopped(*_):
        raise stop

    with monkeypatch.context() as patched:
        patched.setattr(place, stopped)
        status, printed, complained = called(*RELEASE, *(("--again",) if again else ()))
    assert (status, printed, spent()) == (130 if stop is KeyboardInterrupt else 5, "", 1)
    last = complained.splitlines()[-1]
    assert "epsilon 1.0 was charged, and" in last
    if again:
        request = last.split("--request ")[1].split()[0]
        assert "in place of --again finishes the release at no further cost" in last
    else:
        assert "the same command finishes the release at no further cost" in last
    assert called(*RELEASE, *(("--request", request) if again else ()))[0] == 0
    assert spent() == 1


def test_what_stops_a_release_before_the_charge_tells_of_none(home, without_charts, monkeypatch):
    def stopped(*_, **about):
        raise KeyboardInterrupt

    monkeypatch.setattr("sfumato.session.Session._charge", stopped)
    status, printed, complained = called(*RELEASE)
    assert (status, printed, spent()) == (130, "", 0)
    assert "charged" not in complained


@pytest.mark.parametrize("target", ["people.csv", "people.csv/deeper", "/proc/no/such"])
def test_a_folder_that_cannot_be_is_refused_before_the_charge(home, target):
    status, printed, complained = called("release", "plan.toml", "-o", target)
    assert (status, printed) == (2, "")
    assert len(complained.splitlines()) == 1
    assert not (home / "ledger.db").exists()


def wrong_files(home):
    (home / "folder.csv").mkdir()
    (home / "empty.csv").write_text("")
    (home / "header.csv").write_text("id,age,income,team,note\n")
    (home / "picture.csv").write_bytes(bytes(range(256)) * 40)
    (home / "excel.csv").write_bytes(b"PK\x03\x04" + bytes(200))
    (home / "latin.csv").write_bytes("id,age,income,team,note\n1,2,3,\xe9,5\n".encode("latin-1"))
    (home / "ragged.csv").write_text("id,age,income,team,note\n1,2\n1,2,3,red,5,6,7\n")
    (home / "columns.csv").write_text("id,years\n1,2\n")
    (home / "not.parquet").write_text("id,age\n")


@pytest.mark.parametrize(
    "name",
    [
        *("missing.csv", "folder.csv", "empty.csv", "picture.csv", "excel.csv", "latin.csv", "ragged.csv"),
        *("columns.csv", "not.parquet"),
    ],
)
def test_a_wrong_data_file_is_told_in_few_words_and_costs_nothing(home, without_charts, name):
    wrong_files(home)
    replaced(home / "plan.toml", '"people.csv"', f'"{name}"')
    status, printed, complained = called(*RELEASE)
    assert (status, printed) == (2, ""), complained
    assert len(complained) < 600
    assert "Traceback" not in complained
    assert not (home / "out").exists()
    if (home / "ledger.db").exists():
        with sqlite3.connect(home / "ledger.db") as connection:
            kinds = [kind for (kind,) in connection.execute("select kind from ledger_entries")]
        assert "spend" not in kinds


def test_choices_stand_beside_numbers_in_the_tables(home, without_charts):
    replaced(home / "plan.toml", 'name = "teams"\nstatistic = "histogram"', 'statistic = "most_common"')
    status, _, complained = called(*RELEASE)
    assert status == 0, complained
    table = polars.read_csv(home / "out" / "results.csv")
    chosen = table.filter(table["statistic"] == "most_common")
    assert chosen["choice"].to_list() == ["red"]
    assert chosen["value"].to_list() == [None]
    assert table["choice"].null_count() == table.height - 1
    assert called(*RELEASE, "--json")[0] == 0


@pytest.mark.parametrize("name", ["value", "result", "cost", "choice"])
def test_groups_named_like_a_column_of_the_tables_keep_a_column_of_their_own(home, without_charts, name):
    replaced(home / "people.csv", "id,age,income,team,note", f"id,age,income,{name},note")
    replaced(home / "plan.toml", "[columns.team]", f"[columns.{name}]")
    replaced(home / "plan.toml", '["team"]', f'["{name}"]')
    replaced(
        home / "plan.toml",
        'name = "teams"\nstatistic = "histogram"\ncolumn = "team"',
        f'statistic = "most_common"\ncolumn = "{name}"',
    )
    assert called(*RELEASE)[0] == 0
    for table in (
        polars.read_csv(home / "out" / "results.csv"),
        polars.read_parquet(home / "out" / "results.parquet"),
    ):
        grouped = table.filter(table["statistic"] == "mean")
        assert grouped[f"{name} (group)"].to_list() == ["red", "blue", "nobody"]
        assert grouped["result"].to_list() == ["mean income by team"] * 3
        assert grouped["value"].null_count() == 0
        assert table.filter(table["statistic"] == "most_common")["choice"].to_list() == ["red"]


def test_a_table_without_rows_is_answered_as_any_other(home, without_charts):
    wrong_files(home)
    replaced(home / "plan.toml", '"people.csv"', '"header.csv"')
    assert called(*RELEASE)[0] == 0


def test_a_ledger_that_cannot_be_used_exits_with_4(home):
    (home / "text.db").write_text("no ledger at all, and long enough to be read as one " * 4)
    for url in (
        home / "text.db",
        "sqlite:////no/such/folder/ledger.db",
        "oracle://nowhere/x",
        "postgresql://127.0.0.1:1/x",
    ):
        status, printed, complained = called(*RELEASE, "--ledger", url)
        assert (status in (2, 4), printed) == (True, ""), (url, complained)
        assert len(complained.splitlines()) <= 2
        assert not (home / "out").exists()
    assert called(*RELEASE, "--ledger", home / "text.db")[0] == 4


def test_the_environment_names_the_ledger_and_the_option_wins(home, without_charts, monkeypatch):
    monkeypatch.setenv("SFUMATO_LEDGER", "from-environment.db")
    assert called(*RELEASE)[0] == 0
    assert spent(ledger="from-environment.db") == 1
    assert called("release", "plan.toml", "-o", "b", "--ledger", "by-option.db")[0] == 0
    assert spent(ledger="by-option.db") == 1
    assert not (home / "ledger.db").exists()


@pytest.mark.parametrize("written", ["own.db", "sqlite:///own.db"])
def test_a_ledger_that_the_plan_names_goes_before_the_environment(home, without_charts, monkeypatch, written):
    monkeypatch.setenv("SFUMATO_LEDGER", "from-environment.db")
    replaced(home / "plan.toml", "[ledger]\n", f'[ledger]\nurl = "{written}"\n')
    assert called(*RELEASE)[0] == 0
    assert spent(ledger="own.db") == 1
    assert called("release", "plan.toml", "-o", "b", "--ledger", "by-option.db")[0] == 0
    assert spent(ledger="by-option.db") == 1
    assert not (home / "from-environment.db").exists()


def test_the_demo_keeps_to_its_own_ledger(home, without_charts, monkeypatch):
    monkeypatch.setenv("SFUMATO_LEDGER", "from-environment.db")
    assert called("demo", "-o", "demo")[0] == 0
    assert (home / "demo" / "ledger.db").exists()
    assert not (home / "from-environment.db").exists()


def test_analysts_have_caps_of_their_own(home, without_charts):
    assert called("ledger", "open", "people", "--epsilon", "2", "--neighbours", "add-remove")[0] == 0
    assert called("ledger", "allow", "people", "alice", "--epsilon", "0.5")[0] == 0
    status, _, complained = called(*RELEASE, "--analyst", "alice")
    assert (status, spent()) == (3, 0)
    assert "alice" in complained
    assert called(*RELEASE, "--analyst", "bob")[0] == 0


def test_a_report_is_written_again_from_the_stored_release(home, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("sfumato.report.html", no_charts)
        assert called(*RELEASE)[0] == 0
        assert called("report", "out")[0] == 2
    status, printed, complained = called("report", "out")
    assert (status, complained) == (0, "")
    page = (home / "out" / "report.html").read_bytes()
    assert str(home / "out" / "report.html").endswith(printed.split()[-1])
    assert called("report", "out")[0] == 0
    status, printed, _ = called("report", "out/release.json", "-o", "page.html", "--json")
    assert (status, json.loads(printed)["report"]) == (0, "page.html")
    assert (home / "page.html").read_bytes() == page
    (home / "page.html").write_text("mine")
    assert called("report", "out", "-o", "page.html")[0] == 2
    assert (home / "page.html").read_text() == "mine"


def test_what_is_no_release_has_no_report(home, without_charts):
    assert called(*RELEASE)[0] == 0
    (home / "text.json").write_text("{}")
    (home / "binary.json").write_bytes(bytes(range(256)))
    for name in ("missing.json", "text.json", "binary.json", "people.csv", "."):
        status, printed, complained = called("report", name)
        assert (status, printed) == (2, ""), complained
        assert "Traceback" not in complained
    changed = (home / "out" / "release.json").read_text().replace("A test.", "Another.")
    (home / "out" / "release.json").write_text(changed)
    status, _, complained = called("report", "out")
    assert status == 2
    assert "or the release was changed" in complained


def test_the_demo_goes_from_nothing_to_a_release_and_costs_nothing_the_second_time(home, without_charts):
    status, printed, _ = called("demo", "-o", "demo")
    assert status == 0
    for told in ("50,000 people, none of whom exists", "salary deciles by department", "Charged: ε 1", "ε 2"):
        assert told in printed
    assert {path.name for path in (home / "demo").iterdir()} >= {
        "salaries.csv",
        "plan.toml",
        "ledger.db",
        "out",
    }
    before = files_of(home / "demo" / "out")
    assert set(before) == FILES
    table = polars.read_csv(home / "demo" / "out" / "results.csv")
    assert table.height == 1 + 1 + 1 + 7 + 8 + 9 * 8
    # The released count is near the truth, which is known here.
    assert abs(table["value"][0] - 50_000) < 1000
    status, printed, _ = called("demo", "-o", "demo", "--json")
    assert (status, json.loads(printed)["fresh"]) == (0, False)
    assert files_of(home / "demo" / "out") == before
    (home / "demo" / "plan.toml").write_text("mine")
    assert called("demo", "-o", "demo")[0] == 2
    assert (home / "demo" / "plan.toml").read_text() == "mine"
