"""Every file is written whole, under a new random name, and through no link that somebody planted."""

import os
import re
import stat
from pathlib import Path

import pytest

import sfumato as sf
from sfumato import whole_files
from sfumato.cli.outputs import folder_for, write_new
from sfumato.cli.status import Refused
from sfumato.lab.cache import Cache
from sfumato.whole_files import holds, read_file, replacement, require_writable, write_file

SOURCE = Path(sf.__file__).parent


@pytest.fixture
def victim(tmp_path):
    """A file outside the output folder, which nobody may change."""
    path = tmp_path / "victim.txt"
    path.write_bytes(b"precious")
    yield path
    assert path.read_bytes() == b"precious"


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "out"
    path.mkdir()
    return path


def test_a_finished_file_replaces_a_link_and_not_its_target(folder, victim):
    (folder / "results.csv").symlink_to(victim)
    write_file(folder / "results.csv", b"new")
    assert not (folder / "results.csv").is_symlink()
    assert os.listdir(folder) == ["results.csv"]


def test_links_under_the_old_predictable_names_are_left_alone(folder, victim):
    planted = {f".{os.getpid()}.probe", f".results.csv.{os.getpid()}.new", "results.csv.partial"}
    for name in planted:
        (folder / name).symlink_to(victim)
    with folder_for(folder):
        write_file(folder / "results.csv", b"new")
    assert set(os.listdir(folder)) == {*planted, "results.csv"}


@pytest.mark.parametrize("write", [require_writable, lambda folder: write_file(folder / "a", b"new")])
def test_a_link_under_the_very_name_is_refused(folder, victim, monkeypatch, write):
    monkeypatch.setattr(os, "urandom", bytes)
    for name in ("a", "probe"):
        (folder / f".{name}.{'0' * 16}.new").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write(folder)


def test_names_of_new_files_are_random(folder):
    seen = set()
    for _ in range(3):
        with replacement(folder / "a"):
            seen |= set(os.listdir(folder)) - {"a"}
    assert len(seen) == 3
    assert all(re.fullmatch(r"\.a\.[0-9a-f]{16}\.new", name) for name in seen)


def test_a_failed_write_leaves_nothing(folder):
    def fail():
        with replacement(folder / "a") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert os.listdir(folder) == []


def test_modes_follow_the_umask_and_private_files_are_private(folder):
    before = os.umask(0o022)
    try:
        write_file(folder / "public", b"")
        write_file(folder / "private", b"", mode=whole_files.PRIVATE)
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == {"public": 0o644, "private": 0o600}


def test_only_a_regular_file_holds_a_content(folder, victim):
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to(victim)
    (folder / "endless").symlink_to("/dev/zero")
    (folder / "file").write_bytes(b"precious")
    found = {path.name for path in folder.iterdir() if holds(path, b"precious")}
    assert found == {"file"}
    for name in ("pipe", "link", "endless"):
        with pytest.raises(OSError, match="Not a regular file"):
            read_file(folder / name)


def test_a_link_in_the_way_is_replaced_by_force_alone(folder, victim):
    (folder / "plan.toml").symlink_to(victim)
    with pytest.raises(Refused, match="exists already"):
        write_new(folder / "plan.toml", b"precious", force=False)
    write_new(folder / "plan.toml", b"new", force=True)
    assert (folder / "plan.toml").read_bytes() == b"new"


def test_a_folder_that_is_a_link_is_used(folder, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(folder)
    with folder_for(link):
        write_file(link / "a", b"new")
    assert (folder / "a").read_bytes() == b"new"
    assert link.is_symlink()


def test_copies_of_a_ledger_are_private_and_follow_no_link(folder, victim):
    books = sf.SqlLedger(folder / "ledger.db", anchor=folder / "anchor")
    books.open("people", cap=sf.PureDP(1), neighbours="add-remove")
    (folder / "copy.jsonl.partial").symlink_to(victim)
    for write, name in ((books.backup, "copy.jsonl"), (books.export, "export.jsonl")):
        write(folder / name)
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    (folder / "link.jsonl").symlink_to(folder / "nothing")
    with pytest.raises(sf.errors.InvalidParameter, match="there already"):
        books.backup(folder / "link.jsonl")


def test_an_anchor_that_is_a_link_is_refused(folder, victim):
    (folder / "anchor").symlink_to(victim)
    with pytest.raises(sf.errors.LedgerUnavailable, match="anchor"):
        sf.SqlLedger(folder / "ledger.db", anchor=folder / "anchor").open(
            "people", cap=sf.PureDP(1), neighbours="add-remove"
        )


def test_the_cache_of_the_laboratory_replaces_links(folder, victim):
    (folder / "ab").mkdir()
    (folder / "ab" / "cd.json").symlink_to(victim)
    Cache(folder).write("abcd", [1])
    assert Cache(folder).read("abcd") == [1]


def test_nothing_else_in_the_package_writes_files():
    # Doctests may. SQLite opens its own files; the anchor and the lock are opened without following links.
    writing = re.compile(
        r"\.write_(?:text|bytes|csv|parquet|ipc)\((?!written|text|binary)|O_CREAT|mkstemp|NamedTemp"
    )
    known = {"whole_files.py", "ledger/anchor.py", "ledger/sqlite.py", "federated/run.py"}
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if writing.search(line) and not line.lstrip().startswith((">>>", "..."))
    }
    assert found == known
