"""`sfumato audit` of what is shipped: exit statuses, tables, JSON, interrupts and terminals."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest
from tests.cli.running import ROOT, called, ran, started

import sfumato
from sfumato.audit import Loss, Target, WorstCase, shipped
from sfumato.cli import audit as commands
from sfumato.cli import workers
from sfumato.cli.output import in_symbols, output
from sfumato.privacy import Amount, ApproxDP, PureDP

FEW = ("audit", "--quick", "--only", "mean, substitution, nulls lower")


def broken(amount=2.0, left="worse", right="better"):
    return WorstCase("planted", Loss(amount, 1.0, PureDP(1)), 7, left, right)


def failing():
    raise RuntimeError("no law today")


def planted(run, title="planted"):
    return Target(group="mechanisms", subject="x", title=title, detail="as it is", cost=PureDP(1), run=run)


@pytest.fixture
def catalogue(monkeypatch):
    """Puts targets in the place of what is shipped."""

    def put(*targets):
        monkeypatch.setattr(commands, "shipped", lambda quick: targets)

    return put


# --- what is shipped ------------------------------------------------------------------------------


def test_what_is_shipped_holds_and_the_table_says_so():
    status, printed, complained = called(*FEW, "--jobs", "1")
    assert (status, complained) == (0, "")
    lines = printed.splitlines()
    assert lines[0].split() == ["target", "claimed", "loss", "tight", "pairs", "verdict"]
    assert "every claim holds." in lines[-1]
    rows = [line.split() for line in lines if line.startswith("  mean ")]
    assert [row[-1] for row in rows] == ["holds"] * 3
    assert "VIOLATED" not in printed


def test_worker_processes_find_what_one_process_finds():
    (alone, first, _), (status, second, complained) = (
        called(*FEW, "--json", "--jobs", "1"),
        ran(*FEW, "--json"),
    )
    assert (alone, status, complained) == (0, 0, "")
    assert json.loads(first) == json.loads(second)


def test_a_violation_exits_with_1_and_names_the_pair(catalogue):
    catalogue(shipped(quick=True)[0], planted(broken))
    status, printed, _ = called("audit", "--jobs", "1")
    assert status == 1
    assert "VIOLATED: planted, as it is: a loss of 2 where epsilon 1 is claimed" in " ".join(printed.split())
    assert "between worse and better" in " ".join(printed.split())
    assert printed.splitlines()[-1].endswith(": 1 VIOLATED.")
    status, printed, _ = called("audit", "--jobs", "1", "--json")
    assert status == 1
    assert not json.loads(printed)["holds"]


def test_a_row_of_many_audits_shows_the_worst(catalogue):
    catalogue(planted(partial(broken, 0.5)), planted(broken), planted(partial(broken, 0.25)))
    status, printed, _ = called("audit", "--jobs", "1")
    (row,) = (line.split() for line in printed.splitlines() if line.startswith("  planted"))
    assert (status, row[-4:]) == (1, ["2.0000", "2.0000", "21", "VIOLATED"])
    assert (
        sum(line.startswith("  planted") for line in called("audit", "--jobs=1", "--each")[1].splitlines())
        == 3
    )


def test_an_audit_that_fails_exits_with_2_and_hides_nothing(catalogue):
    catalogue(planted(failing), shipped(quick=True)[0])
    status, printed, _ = called("audit", "--jobs", "1")
    assert status == 2
    assert "NOT AUDITED: planted, as it is: RuntimeError: no law today" in printed
    catalogue(planted(failing), planted(broken))
    assert called("audit", "--jobs", "1")[0] == 1
    record = json.loads(called("audit", "--jobs", "1", "--json")[1])["targets"][0]
    assert (record["verdict"], record["error"]) == ("not audited", "RuntimeError: no law today")


def test_an_open_verdict_is_neither_a_violation_nor_called_proved(catalogue):
    unsure = WorstCase("planted", Loss(0.5, 1.0, PureDP(1), None, 1.5), 7, "a", "b")
    catalogue(planted(lambda: unsure))
    status, printed, _ = called("audit", "--jobs", "1")
    assert status == 0
    assert printed.splitlines()[-1].endswith(": 1 undecided.")
    assert ">= 0.5000" in printed
    assert not json.loads(called("audit", "--jobs", "1", "--json")[1])["holds"]


def test_the_json_document_keeps_its_form():
    status, printed, complained = called(*FEW, "--jobs", "1", "--json")
    document = json.loads(printed)
    assert (status, complained) == (0, "")
    assert list(document) == ["schema", "version", "quick", "holds", "targets"]
    assert (document["schema"], document["version"], document["quick"]) == (1, sfumato.__version__, True)
    for record in document["targets"]:
        assert list(record) == [
            *("group", "subject", "name", "claimed", "verdict"),
            *("loss", "loss_at_most", "exact", "tightness", "pairs", "left", "right"),
        ]
        assert record["group"] == "statistics"
        assert record["verdict"] == "holds"
        assert record["claimed"] in ({"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}, {"rho": 0.1})
        assert record["loss"] <= record["loss_at_most"]


def test_an_infinite_loss_is_null_in_json(catalogue):
    catalogue(planted(partial(broken, math.inf)))
    record = json.loads(called("audit", "--jobs", "1", "--json")[1])["targets"][0]
    assert (record["loss"], record["tightness"], record["verdict"]) == (None, None, "violated")
    assert "inf" in called("audit", "--jobs", "1")[1]


def test_the_list_has_every_name_and_audits_nothing(monkeypatch):
    monkeypatch.setattr(Target, "audit", failing)
    status, printed, _ = called("audit", "--list")
    assert status == 0
    assert printed.splitlines() == [f"{each.group}: {each.name}: {each.claimed}" for each in shipped()]
    document = json.loads(called("audit", "--list", "--json", "--only", "Warner")[1])
    assert {record["subject"] for record in document["targets"]} == {"warner"}


def test_the_filter_ignores_case_and_reads_groups():
    assert called("audit", "--list", "--only", "LOCAL: warner")[1].count("\n") >= 2
    status, printed, complained = called("audit", "--only", "no such thing")
    assert (status, printed) == (2, "")
    assert "nothing that is shipped has 'no such thing' in its name" in complained


def test_a_worker_that_dies_is_reported(catalogue):
    catalogue(planted(partial(os._exit, 3)), planted(partial(os._exit, 3), "another"))
    status, printed, complained = called("audit", "--jobs", "2")
    assert (status, printed) == (2, "")
    assert "a worker process ended before its task did" in complained


# --- the process ----------------------------------------------------------------------------------


def test_the_version_and_the_help_are_printed():
    assert called("--version")[:2] == (0, f"sfumato {sfumato.__version__}\n")
    status, printed, _ = called("audit", "--help")
    assert status == 0
    for told in ("--only", "--list", "--json", "--quick", "--jobs", "--attacks", "Exit status:", "Examples:"):
        assert told in printed
    assert called("--help")[0] == 0


def test_ctrl_c_exits_with_130_and_no_traceback():
    process = started("audit", "--jobs", "2")
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    printed, complained = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (printed, complained) == ("", "")


def test_a_reader_that_goes_away_is_no_error():
    process = started("audit", "--list")
    process.stdout.readline()
    process.stdout.close()
    process.wait(timeout=60)
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.returncode in (0, 141)  # 0 if the pipe held all of it


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_its_packages_the_command_line_names_what_is_missing(missing, tmp_path):
    (tmp_path / f"{missing}.py").write_text(f"raise ModuleNotFoundError('No module', name={missing!r})\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT / "src")])
    status, printed, complained = ran("--version", PYTHONPATH=path)
    assert (status, printed) == (2, "")
    assert complained.splitlines() == [
        f"sfumato: the package {missing} is missing, which the command line needs: pip install sfumato"
    ]


def test_the_library_loads_neither_typer_nor_rich():
    code = "import sfumato, sys; sfumato.audit.shipped; print({'typer', 'rich'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": str(ROOT / "src")}
    )
    assert done.stdout == "set()\n"


# --- how it looks ---------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal_and_no_name_is_cut(columns, monkeypatch, catalogue):
    long = "a name of many words that no narrow terminal has room for on one line"
    catalogue(
        planted(partial(broken, 0.5), long), planted(partial(broken, 0.5), "AnUnbreakableNameOfAMechanism")
    )
    monkeypatch.setenv("COLUMNS", str(columns))
    status, printed, _ = called("audit", "--jobs", "1")
    assert status == 0
    assert max(map(len, printed.splitlines())) <= columns
    assert "…" not in printed
    first_column = "".join(line[2:].split("  ")[0].strip() for line in printed.splitlines()[2:])
    assert "".join(long.split()) in first_column.replace(" ", "")


def test_there_is_color_for_people_alone(monkeypatch):
    def colored(**environment):
        return "\x1b[" in ran(*FEW, "--jobs", "1", **environment)[1]

    assert not colored()
    assert colored(FORCE_COLOR="1")
    bare = ran(*FEW, "--jobs", "1", FORCE_COLOR="1", NO_COLOR="1")[1]
    assert "\x1b[32m" not in bare


def test_a_terminal_without_greek_is_told_in_latin(monkeypatch):
    status, printed, complained = ran(*FEW, "--jobs", "1", PYTHONIOENCODING="ascii")
    assert (status, complained) == (0, "")
    assert "eps 1 delta 1e-06" in printed
    console = output()
    assert in_symbols(ApproxDP(1, 1e-6), console) in ("ε 1 δ 1e-06", "eps 1 delta 1e-06")
    assert in_symbols(Amount(), console) == "nothing"


def test_progress_is_told_after_every_audit():
    told = []
    targets = [planted(broken), planted(failing)]
    found = workers.audited(targets, 1, lambda: told.append(1))
    assert len(told) == 2
    assert [finding.verdict for finding in found] == ["VIOLATED", "NOT AUDITED"]
