"""What holds for every command: help, completion, statuses, faults without tracebacks, terminals."""

import errno
import os
import time

import pytest
from tests.cli.people import CANARIES
from tests.cli.running import called, ran

from sfumato.cli import outputs
from sfumato.cli.app import COMMANDS, app
from sfumato.cli.failures import told
from sfumato.cli.output import stages
from sfumato.cli.outputs import write_new
from sfumato.cli.status import SHORT, Refused
from sfumato.errors import BudgetExceeded, InvalidParameter, LedgerDamaged, LedgerUnavailable
from sfumato.whole_files import write_file

GROUPS = {
    "plan": ("new", "check", "preview", "schema"),
    "ledger": ("show", "verify", "export", "backup", "restore", "open", "allow", "renew", "retire"),
    "anonymity": ("measure",),
    "lab": ("list", "figure", "all"),
}
ALL = [(name,) for name in COMMANDS] + [(group, name) for group, names in GROUPS.items() for name in names]


@pytest.mark.parametrize("command", ALL, ids=" ".join)
def test_every_command_has_help_that_fits_80_columns(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    status, printed, complained = called(*command, "--help")
    assert (status, complained) == (0, "")
    assert max(map(len, printed.splitlines())) <= 90
    if command[0] not in GROUPS or len(command) == 2:
        assert "--json" in printed
    assert called(*command, "-h")[1] == printed


def test_the_help_lists_the_commands_in_order_in_full_and_the_statuses(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    printed = called("--help")[1]
    places = [printed.index(f"  {name}  ") for name in COMMANDS]
    assert places == sorted(places)
    for words in (*COMMANDS.values(), *SHORT.values()):
        assert words in printed
    assert {command.name for command in app.registered_commands} | {
        group.typer_instance.info.name for group in app.registered_groups
    } == set(COMMANDS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(shell):
    status, printed, complained = ran(
        "--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1"
    )
    assert (status, complained) == (0, "")
    assert "_COMPLETE" in printed


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (Refused("no"), 2, "no"),
        (Refused("late", 5), 5, "late"),
        (BudgetExceeded("too much"), 3, "too much"),
        (LedgerDamaged("changed"), 4, "changed"),
        (LedgerUnavailable("locked"), 4, "locked"),
        (InvalidParameter("wrong"), 2, "wrong"),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(), 141, ""),
        (PermissionError(errno.EACCES, "Permission denied", "x.csv"), 2, "x.csv: permission denied"),
        (OSError(errno.ENOSPC, "No space left on device"), 2, "no space left on device"),
        (UnicodeDecodeError("utf-8", CANARIES[0].encode(), 0, 1, "odd"), 2, "a file is not text in UTF-8"),
        (MemoryError(), 2, "there is not enough memory"),
        (ValueError(CANARIES[0]), 70, "a fault of sfumato itself: ValueError at an unknown place"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_every_failure_has_a_status_and_words_without_data(error, status, words):
    assert told(error) == (status, words)


def test_a_fault_of_the_program_tells_its_place_and_no_more(home, monkeypatch, capsys):
    from sfumato import plan
    from sfumato.cli.app import run

    def broken(path):
        return int(CANARIES[0])

    monkeypatch.setattr(plan, "read", broken)
    with pytest.raises(SystemExit) as exited:
        run(["plan", "check", "plan.toml"])
    printed, complained = capsys.readouterr()
    assert (exited.value.code, printed) == (70, "")
    assert complained.startswith("sfumato: a fault of sfumato itself: ValueError at cli/plan.py, line ")
    assert len(complained.splitlines()) == 1


def test_files_are_whole_or_not_there(tmp_path, monkeypatch):
    target = tmp_path / "file.txt"
    write_file(target, b"first")

    def torn(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(outputs.os, "fsync", torn)
    with pytest.raises(OSError, match="No space"):
        write_file(target, b"second")
    assert target.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["file.txt"]


def test_a_file_is_replaced_by_force_alone(tmp_path):
    target = tmp_path / "deeper" / "file.txt"
    write_new(target, b"first", force=False)
    write_new(target, b"first", force=False)
    with pytest.raises(Refused, match="exists already"):
        write_new(target, b"second", force=False)
    write_new(target, b"second", force=True)
    assert target.read_bytes() == b"second"
    with pytest.raises(Refused, match="is a directory"):
        write_new(tmp_path / "deeper", b"", force=False)


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_release_fits_the_terminal(home, without_charts, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert called("release", "plan.toml", "-o", "out")[0] == 0
    printed = called("release", "plan.toml", "-o", "out")[1]
    numbers = [line for line in printed.splitlines() if "[" in line]
    assert len(numbers) >= 8
    assert max(map(len, numbers)) <= columns
    assert "…" not in printed


def test_colour_is_for_terminals_and_latin_letters_for_those_without_greek(home):
    assert called("ledger", "open", "people", "--neighbours", "add-remove", "--epsilon", "1")[0] == 0
    printed = ran("ledger", "show", here=home, PYTHONIOENCODING="ascii")[1]
    assert "eps 1" in printed
    assert "\x1b[" not in printed
    assert "\x1b[" in ran("ledger", "show", here=home, FORCE_COLOR="1")[1]


def test_names_that_a_terminal_cannot_show_stop_nothing(home):
    assert called("ledger", "open", "Löhne 雪", "--neighbours", "add-remove", "--epsilon", "1")[0] == 0
    status, printed, complained = ran("ledger", "show", here=home, PYTHONIOENCODING="ascii")
    assert (status, complained) == (0, "")
    assert "L\\xf6hne \\u96ea" in printed


def test_no_bar_is_drawn_where_there_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr("sfumato.cli.output.PATIENCE", 0.0)
    with stages("waiting") as tell:
        tell("still waiting", 1, 2)
    assert capsys.readouterr() == ("", "")


def test_a_bar_is_drawn_on_standard_error_after_a_while(capsys, monkeypatch):
    monkeypatch.setattr("sfumato.cli.output.PATIENCE", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with stages("waiting") as tell:
        tell("still waiting", 1, 2)
        time.sleep(0.3)
    printed, complained = capsys.readouterr()
    assert printed == ""
    assert "waiting" in complained
