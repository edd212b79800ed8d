"""A full disk, a read-only file or folder, a sync that fails: refused in words, and no spend is lost."""

import errno
import fcntl
from pathlib import Path

import pytest
from tests.faults.clients import (
    DATASET,
    NEIGHBOURS,
    PATIENCE,
    PROCESSES,
    Journal,
    Place,
    budget,
    digest,
    item,
)
from tests.faults.disks import (
    grow,
    limit_files,
    obey_permissions,
    open_and_spend,
    small_disk,
    spend_until_refused,
)

from sfumato.errors import LedgerUnavailable
from sfumato.ledger import SqlLedger


def opened(place: Place, charges: int) -> Place:
    with place.open() as ledger:
        ledger.open(DATASET, cap=budget("pure", charges), neighbours=NEIGHBOURS)
    return place


def beside(folder: Path, anchor: Path | None = None) -> Place:
    return Place(f"sqlite:///{folder / 'ledger.db'}", str((anchor or folder) / "anchor"))


def run(target, *arguments) -> None:
    process = PROCESSES.Process(target=target, args=arguments, daemon=True)
    process.start()
    process.join(PATIENCE)
    assert process.exitcode == 0, "it ended with a traceback"


def assert_refused_and_kept(place: Place, steps, words: str) -> None:
    """The last step was refused as it should be; all that was told before is in the ledger."""
    *before, last = steps
    assert last.word == "LedgerUnavailable"
    assert words in last.text
    assert before
    with place.open() as ledger:
        assert ledger.verify().sound
        account = ledger.account(DATASET)
        paid = {entry.request for entry in ledger.entries() if entry.kind == "spend"}
        assert {step.request for step in before} <= paid
        for step in before:
            if step.word == "told":
                assert account.answered(step.request, digest(step.request)).hex() == step.text
        # With room again, the request that failed is charged once, whatever became of the first try.
        account.charge(item(), request=last.request, digest=digest(last.request))
        paid.add(last.request)
        assert account.spent.epsilon == len(paid) * item().cost.epsilon
        assert ledger.verify().sound


def test_a_file_that_cannot_grow_stops_the_spending_and_loses_nothing(tmp_path):
    place = opened(beside(tmp_path), 2000)
    run(spend_until_refused, place, str(tmp_path / "journal"), limit_files, 2000)
    assert_refused_and_kept(place, Journal.read(tmp_path / "journal"), "disk")


@pytest.mark.parametrize("small", ["all", "anchor"])
def test_a_full_disk_stops_the_spending_and_loses_nothing(tmp_path, small):
    with small_disk(tmp_path / "disk", "400k" if small == "all" else "8k") as disk:
        if disk is None:
            pytest.skip("a small disk can be mounted by root only")
        place = opened(beside(disk) if small == "all" else beside(tmp_path, disk), 2000)
        run(spend_until_refused, place, str(tmp_path / "journal"), None, 2000)
        grow(disk)
        assert_refused_and_kept(
            place, Journal.read(tmp_path / "journal"), "disk" if small == "all" else "space"
        )


@pytest.mark.parametrize("what", ["file", "folder", "anchor", "anchor folder"])
def test_what_is_read_only_takes_no_charge_and_says_so(tmp_path, what):
    data, other = tmp_path / "data", tmp_path / "other"
    data.mkdir(), other.mkdir()
    place = opened(beside(data, other), 5)
    path = {"file": data / "ledger.db", "folder": data, "anchor": other / "anchor", "anchor folder": other}[
        what
    ]
    if what == "anchor folder":
        (other / "anchor").unlink()
    path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        run(open_and_spend, place, str(tmp_path / "journal"), obey_permissions)
    finally:
        path.chmod(0o755)
    (step,) = Journal.read(tmp_path / "journal")
    assert step.word == "LedgerUnavailable"
    assert "read-only" in step.text or "permission" in step.text
    with place.open() as ledger:
        assert ledger.verify().sound
        if "anchor" not in what:
            assert not ledger.account(DATASET).spent.epsilon


def test_a_missing_folder_and_a_folder_in_place_of_the_file_are_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "nowhere" / "ledger.db", tmp_path / "folder"):
        with pytest.raises(LedgerUnavailable), Place(str(path), str(tmp_path / "anchor")).open():
            pass


def hold_the_anchor(path: str, pipe) -> None:
    with Path(path).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        pipe.send("held")
        pipe.recv()


def test_a_process_that_hangs_with_the_anchor_stops_nobody_for_ever(tmp_path):
    place = opened(beside(tmp_path), 5)
    ours, theirs = PROCESSES.Pipe()
    with SqlLedger(place.url, anchor=place.anchor, patience=0.1) as ledger:
        account = ledger.account(DATASET)
        process = PROCESSES.Process(target=hold_the_anchor, args=(place.anchor, theirs), daemon=True)
        process.start()
        assert ours.recv() == "held"
        with pytest.raises(LedgerUnavailable, match="locked by another process for too long; no entry was"):
            account.charge(item(), request="r", digest="d")
        process.kill()
        process.join(PATIENCE)
        account.charge(item(), request="r", digest="d")
        assert account.spent.epsilon == item().cost.epsilon
        assert ledger.verify().sound


def test_a_sync_that_fails_is_an_error_and_the_retry_is_charged_once(tmp_path, monkeypatch):
    assert_a_failing_sync_is_an_error(tmp_path, monkeypatch)


def assert_a_failing_sync_is_an_error(folder: Path, monkeypatch) -> None:
    place = opened(beside(folder), 5)
    with place.open() as ledger:
        account = ledger.account(DATASET)
        with monkeypatch.context() as patched:

            def fail(file):
                raise OSError(errno.EIO, "Input/output error")

            patched.setattr("os.fsync", fail)
            with pytest.raises(LedgerUnavailable, match="anchor"):
                account.charge(item(), request="r", digest="d")
        account.charge(item(), request="r", digest="d")
        assert account.spent.epsilon == item().cost.epsilon
        assert ledger.verify().sound
