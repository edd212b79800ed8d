"""The anchor: a head outside the database, by which an older copy or another history is noticed."""

import fcntl
import os
import shutil
import stat
import threading
from contextlib import ExitStack, contextmanager

import pytest
from tests.ledger.items import count, opened, tamper

import sfumato as sf
from sfumato.ledger import anchor as anchor_module
from sfumato.ledger import failpoints
from sfumato.ledger.anchor import Anchor, default_anchor
from sfumato.ledger.chain import Head

HASHES = [f"{number:064x}" for number in range(20)]


def head(number):
    return Head(number, HASHES[number])


@pytest.fixture
def anchor(tmp_path):
    return Anchor(tmp_path / "folder" / "anchor")


# --- the file -------------------------------------------------------------------------------------


def test_the_last_head_is_read_back_and_none_from_nothing(anchor):
    assert anchor.read() is None
    assert anchor.all() == []
    for number in (1, 2, 5):
        anchor.write(head(number))
    assert anchor.read() == head(5)
    assert anchor.all() == [head(1), head(2), head(5)]
    assert stat.S_IMODE(anchor.path.stat().st_mode) == 0o600


def test_a_head_never_goes_back(anchor):
    anchor.write(head(5))
    anchor.write(head(3))
    anchor.write(head(5))
    assert anchor.all() == [head(5)]


def test_after_an_accepted_loss_it_starts_again_and_the_past_stays_in_the_file(anchor):
    for number in (1, 2, 5):
        anchor.write(head(number))
    anchor.write(head(3), loss=True)
    anchor.write(head(4))
    assert anchor.all() == [head(3), head(4)]
    assert len(anchor.path.read_bytes().splitlines()) == 5


@pytest.mark.parametrize("left", range(1, 66))
def test_what_a_crash_left_of_a_line_is_cut_off(anchor, left):
    anchor.write(head(1))
    anchor.write(head(2))
    anchor.path.write_bytes(anchor.path.read_bytes()[:-left])
    assert anchor.read() == head(1)
    anchor.write(head(3))
    assert anchor.all() == [head(1), head(3)]


def test_a_flipped_bit_in_the_last_line_is_damage_or_another_head(anchor):
    anchor.write(head(1))
    anchor.write(head(2))
    sound = anchor.path.read_bytes()
    for place in range(len(sound) // 2, len(sound)):
        for bit in range(8):
            changed = bytearray(sound)
            changed[place] ^= 1 << bit
            anchor.path.write_bytes(changed)
            try:
                assert anchor.read() != head(2)
            except sf.LedgerDamaged as error:
                assert "anchor" in str(error)  # noqa: PT017  reason: either outcome is right


@pytest.mark.parametrize(
    "text", ["no head\n", "1 abc\n", f"x {HASHES[1]}\n", f"1 {HASHES[1]} more\n", "x" * 999]
)
def test_a_file_that_is_no_anchor_is_refused(anchor, text):
    anchor.path.parent.mkdir()
    anchor.path.write_text(text)
    with pytest.raises(sf.LedgerDamaged, match="is damaged"):
        anchor.read()
    with pytest.raises(sf.LedgerDamaged, match="is damaged"):
        anchor.write(head(2))
    assert anchor.path.read_text() == text


def test_numbers_that_do_not_grow_are_damage(anchor):
    anchor.path.parent.mkdir()
    anchor.path.write_text(f"2 {HASHES[2]}\n1 {HASHES[1]}\n")
    with pytest.raises(sf.LedgerDamaged, match="do not grow"):
        anchor.all()


def test_a_full_disk_leaves_no_half_line(anchor, monkeypatch):
    anchor.write(head(1))
    plain = os.write
    with monkeypatch.context() as patch:
        patch.setattr(anchor_module.os, "write", lambda file, line: plain(file, line[:10]))
        with pytest.raises(sf.LedgerUnavailable, match="no space is left"):
            anchor.write(head(2))
    assert anchor.all() == [head(1)]
    anchor.write(head(2))
    assert anchor.read() == head(2)


def test_it_is_synced_at_first_and_then_once_in_a_while(anchor, monkeypatch):
    synced = []
    plain = os.fsync
    clock = [100.0]
    monkeypatch.setattr(anchor_module.os, "fsync", lambda file: synced.append(clock[0]) or plain(file))
    monkeypatch.setattr(anchor_module.time, "monotonic", lambda: clock[0])
    for number in range(1, 10):
        anchor.write(head(number))
        clock[0] += 0.5
    assert synced == [100.0, 101.0, 102.0, 103.0, 104.0]


def test_a_place_that_cannot_be_written_is_unavailable(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "anchor", tmp_path):
        with pytest.raises(sf.LedgerUnavailable, match="give another anchor"):
            Anchor(path).write(head(1))


@contextmanager
def held(path, seconds=4.0):
    """The file is locked by somebody else, for these seconds at most."""
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(file, fcntl.LOCK_EX)
    ended = threading.Event()

    def let_go():
        ended.wait(seconds)
        os.close(file)

    holder = threading.Thread(target=let_go)
    holder.start()
    try:
        yield
    finally:
        ended.set()
        holder.join()


def a_lock_that_another_holds_is_not_waited_for_for_ever(folder):
    anchor = Anchor(folder / "locked", patience=0.05)
    anchor.write(head(1))
    refused = 0
    with held(anchor.path):
        for act in (anchor.read, anchor.all, lambda: anchor.write(head(2))):
            try:
                act()
            except sf.LedgerUnavailable as error:
                refused += "is locked by another process for too long" in str(error)
    assert refused == 3
    assert anchor.read() == head(1)


def test_a_lock_that_another_holds_is_not_waited_for_for_ever(tmp_path):
    a_lock_that_another_holds_is_not_waited_for_for_ever(tmp_path)


def test_a_lock_that_is_let_go_in_time_is_taken(tmp_path):
    anchor = Anchor(tmp_path / "locked")
    anchor.write(head(1))
    with held(anchor.path, seconds=0.1):
        anchor.write(head(2))
    assert anchor.all() == [head(1), head(2)]


# --- with a ledger --------------------------------------------------------------------------------


def test_by_default_it_is_in_the_state_folder_under_the_identity(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    ledger = sf.SqlLedger(tmp_path / "ledger.db")
    assert ledger.anchor.path == tmp_path / "state" / "sfumato" / "anchors" / f"{ledger.identity}.anchor"
    assert ledger.anchor.read() == ledger.head == (0, ledger.start)
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    name = "0123456789abcdef" * 2
    assert default_anchor(name) == tmp_path / "home/.local/state/sfumato/anchors" / f"{name}.anchor"
    assert list(tmp_path.glob("*.ini")) == []


def test_every_charge_moves_it(ledger_url, tmp_path):
    ledger = sf.SqlLedger(ledger_url, anchor=tmp_path / "anchor")
    account = opened(ledger)
    for number in range(2, 5):
        assert account.charge(count()).number == number
        assert ledger.anchor.read() == ledger.head


def test_a_locked_anchor_refuses_a_charge_and_says_whether_it_was_made(ledger_url, tmp_path, monkeypatch):
    ledger = sf.SqlLedger(ledger_url, anchor=tmp_path / "anchor", patience=0.2)
    account = opened(ledger)
    with (
        held(tmp_path / "anchor"),
        pytest.raises(sf.LedgerUnavailable, match="too long; no entry was made"),
    ):
        account.charge(count(), request="monday", digest="1f")
    assert ledger.head.sequence == 1
    with ExitStack() as later, monkeypatch.context() as patch:

        def lock(point):
            if point == "before-anchor":
                later.enter_context(held(tmp_path / "anchor"))

        patch.setattr(failpoints, "fail_point", lock)
        with pytest.raises(sf.LedgerUnavailable, match=r"too long; entry 2 \(spend\) is in the ledger"):
            account.charge(count(), request="monday", digest="1f")
    assert account.charge(count(), request="monday", digest="1f").number == 2
    assert ledger.anchor.read() == ledger.head
    assert account.spent.epsilon == count().cost.epsilon


def an_older_copy_is_refused(folder):
    path = folder / "ledger.db"
    ledger = sf.SqlLedger(path, anchor=folder / "anchor")
    account = opened(ledger)
    account.charge(count())
    ledger.close()
    shutil.copy(path, folder / "old.db")
    account.charge(count(0.5))
    ledger.close()
    refused = 0
    shutil.copy(folder / "old.db", path)
    for act in (
        lambda: sf.SqlLedger(path, anchor=folder / "anchor"),
        lambda: account.charge(count(0.5)),
    ):
        try:
            act()
        except sf.LedgerDamaged as error:
            refused += "is older than its anchor: it ends at entry 2, and entry 3 was anchored" in str(error)
    assert refused == 2


def test_an_older_copy_is_refused(tmp_path):
    an_older_copy_is_refused(tmp_path)


def test_the_last_entry_cannot_be_cut_off_and_put_back_differently(ledger_url, tmp_path):
    ledger = sf.SqlLedger(ledger_url, anchor=tmp_path / "anchor")
    account = opened(ledger)
    account.charge(count(0.5))
    tamper(ledger_url, "DELETE FROM ledger_entries WHERE sequence = 2")
    with pytest.raises(sf.LedgerDamaged, match="older than its anchor"):
        account.charge(count())
    assert "entry 2 was anchored and is missing: this is an older copy" in ledger.verify().problems


def test_an_anchor_that_was_left_behind_by_a_crash_is_brought_up(ledger_url, tmp_path):
    ledger = sf.SqlLedger(ledger_url, anchor=tmp_path / "anchor")
    account = opened(ledger)
    kept = (tmp_path / "anchor").read_bytes()
    account.charge(count())
    (tmp_path / "anchor").write_bytes(kept)
    again = sf.SqlLedger(ledger_url, anchor=tmp_path / "anchor")
    assert again.anchored_before
    assert again.anchor.read() == again.head


def test_a_lost_anchor_is_made_again_and_told(ledger_url, tmp_path):
    ledger = sf.SqlLedger(ledger_url, anchor=tmp_path / "anchor")
    opened(ledger)
    (tmp_path / "anchor").unlink()
    again = sf.SqlLedger(ledger_url, anchor=tmp_path / "anchor")
    assert not again.anchored_before
    assert sf.SqlLedger(ledger_url, anchor=tmp_path / "anchor").anchored_before


def test_the_anchor_of_another_ledger_is_refused(tmp_path):
    for name in ("one", "two"):
        opened(sf.SqlLedger(tmp_path / name, anchor=tmp_path / f"{name}.anchor"))
    with pytest.raises(sf.LedgerDamaged, match="was changed"):
        sf.SqlLedger(tmp_path / "one", anchor=tmp_path / "two.anchor")
    with pytest.raises(sf.InvalidParameter, match="anchor must be the path"):
        sf.SqlLedger(tmp_path / "one", anchor=7)


def test_another_ledger_that_is_put_in_the_place_of_one_is_told_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "ledger.db"
    with sf.SqlLedger(path) as first, sf.SqlLedger(tmp_path / "other.db") as other:
        opened(first)
        head = first.head
        assert first.came_after is other.came_after is None
    assert sf.SqlLedger(path).came_after is None
    (tmp_path / "other.db").replace(path)
    assert sf.SqlLedger(path).came_after == head
    assert sf.SqlLedger(path).came_after is None
