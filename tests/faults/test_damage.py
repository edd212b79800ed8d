"""Changed, missing and forged entries, flipped bits, older copies: all of it is refused or noticed."""

import random
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from tests.faults.clients import DATASET, item
from tests.faults.damage import (
    ENTRIES,
    FACTS,
    REPLIES,
    at,
    attack,
    contents,
    copied,
    cut,
    delete,
    fill,
    flip,
    flip_in_file,
    forge,
    noticed,
    still_spends,
    swap,
)

from sfumato.errors import LedgerDamaged

CHARGES = 8


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A folder with a ledger that nobody has open."""
    folder = tmp_path_factory.mktemp("sound")
    fill(at(folder), CHARGES)
    assert noticed(at(folder)) is None
    return folder


def test_one_flipped_bit_in_any_row_is_noticed(sound, tmp_path):
    luck = random.Random(1)
    for n in range(100):
        table, key = (
            (ENTRIES, "sequence") if n % 5 else ((REPLIES, "request"), (FACTS, "identity"))[n // 5 % 2]
        )
        folder = copied(sound, tmp_path / "copy")
        attack(folder / "ledger.db", flip(table, key, luck))
        assert noticed(at(folder)) is not None, f"flip {n} in {table}"
        still_spends(at(folder))


def test_one_flipped_bit_anywhere_in_the_file_is_noticed_or_changes_nothing(sound, tmp_path):
    before, luck, seen = contents(at(sound)), random.Random(2), 0
    for _ in range(50):
        folder = copied(sound, tmp_path / "copy")
        place, bit = flip_in_file(folder / "ledger.db", luck)
        words = noticed(at(folder))
        seen += words is not None
        assert words is not None or contents(at(folder)) == before, f"bit {bit} of byte {place}"
    assert seen


@pytest.mark.parametrize(
    "act",
    [delete(1), delete(7), swap(7, 8), swap(1, 12), cut(12), cut(0), forge],
    ids=[
        "first row deleted",
        "row deleted",
        "rows swapped",
        "far rows swapped",
        "end cut off",
        "emptied",
        "forged",
    ],
)
def test_rows_that_are_moved_removed_or_forged_are_noticed(sound, tmp_path, act):
    folder = copied(sound, tmp_path / "copy")
    attack(folder / "ledger.db", act)
    assert noticed(at(folder)) is not None


def test_an_older_copy_is_refused_and_spends_nothing(sound, tmp_path):
    assert_an_older_copy_is_refused(sound, tmp_path)


def assert_an_older_copy_is_refused(sound: Path, folder: Path) -> None:
    """A ledger is put back to an earlier state, with the files that SQLite keeps beside it."""
    now = copied(sound, folder / "now")
    with at(now).open() as ledger:
        ledger.account(DATASET).charge(item())
    for path in now.glob("ledger.db*"):
        path.unlink()
    for path in sound.glob("ledger.db*"):
        shutil.copy(path, now)
    with pytest.raises(LedgerDamaged, match="older than its anchor"), at(now).open():
        pass
    assert not still_spends(at(now))


def test_a_ledger_that_is_replaced_while_it_is_open_takes_no_charge(sound, tmp_path):
    now = copied(sound, tmp_path / "now")
    with at(now).open() as ledger:
        account = ledger.account(DATASET)
        account.charge(item())
        (now / "ledger.db").rename(now / "moved.db")
        with pytest.raises(LedgerDamaged, match="removed"):
            account.charge(item())
        shutil.copy(sound / "ledger.db", now)
        with pytest.raises(LedgerDamaged, match="replaced"):
            account.charge(item())


def test_a_ledger_overwritten_in_place_by_an_older_copy_loses_no_charge_unnoticed(sound, tmp_path):
    now = copied(sound, tmp_path / "now")
    with at(now).open() as ledger:
        ledger.account(DATASET).charge(item())
    with at(now).open() as ledger:
        account = ledger.account(DATASET)
        for path in now.glob("ledger.db-*"):
            path.unlink()
        (now / "ledger.db").write_bytes((sound / "ledger.db").read_bytes())
        # The open connection has the pages in memory, and may write to a log that has no name any more.
        with suppress(LedgerDamaged):
            account.charge(item())
    assert noticed(at(now)) is not None
    assert not still_spends(at(now))


def test_losing_the_write_ahead_log_is_noticed(sound, tmp_path):
    now = copied(sound, tmp_path / "now")
    with at(now).open() as ledger:
        ledger.account(DATASET).charge(item())
        # As a crash leaves them: the log is not yet folded into the file.
        left = copied(now, tmp_path / "left")
    assert (left / "ledger.db-wal").stat().st_size
    whole = copied(left, tmp_path / "whole")
    assert noticed(at(whole)) is None
    for path in left.glob("ledger.db-*"):
        path.unlink()
    assert "older than its anchor" in noticed(at(left))
    assert not still_spends(at(left))


def test_a_stale_write_ahead_log_changes_nothing_unnoticed(sound, tmp_path):
    now = copied(sound, tmp_path / "now")
    with at(now).open() as ledger:
        ledger.account(DATASET).charge(item())
        stale = copied(now, tmp_path / "stale")
    with at(now).open() as ledger:
        ledger.account(DATASET).charge(item())
        ledger.account(DATASET).charge(item())
        before = ledger.entries()
    for path in stale.glob("ledger.db-*"):
        shutil.copy(path, now)
    assert noticed(at(now)) is not None or contents(at(now))[0] == before


def test_the_anchor_of_another_ledger_a_torn_line_and_garbage_are_told_apart(sound, tmp_path):
    folder = copied(sound, tmp_path / "copy")
    anchor, kept = folder / "anchor", (sound / "anchor").read_bytes()
    anchor.write_bytes(kept + b"99 abc")  # a crash in the middle of a line
    assert noticed(at(folder)) is None
    assert still_spends(at(folder))
    assert noticed(at(folder)) is None
    for wrong in (kept[:-3] + b"00\n", b"letter\n", b"\0" * 300, kept + b"99 " + b"a" * 64 + b"\n"):
        folder = copied(sound, tmp_path / "copy")
        (folder / "anchor").write_bytes(wrong)
        assert noticed(at(folder)) is not None
        assert not still_spends(at(folder))
    (tmp_path / "other").mkdir()
    fill(at(tmp_path / "other"), 1)
    folder = copied(sound, tmp_path / "copy")
    shutil.copy(tmp_path / "other" / "anchor", folder)
    assert noticed(at(folder)) is not None
    assert not still_spends(at(folder))


def test_a_clock_that_is_set_back_changes_no_sum_and_breaks_no_chain(sound, tmp_path, monkeypatch):
    folder = copied(sound, tmp_path / "copy")
    with at(folder).open() as ledger:
        account = ledger.account(DATASET)
        spent = account.spent
        earlier = ledger.entries()[0].time.replace("20", "19", 1)
        monkeypatch.setattr("sfumato.ledger.sql.now", lambda: earlier)
        entry = account.charge(item())
        assert ledger.entries()[-1].time == earlier
        assert account.spent == spent + entry.price
    assert noticed(at(folder)) is None
