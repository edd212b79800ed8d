"""A copy of a ledger that is put back, or goes on beside the first; and clocks that jump."""

import shutil
import threading
from datetime import UTC, datetime, timedelta

import pytest
from tests.ledger.items import count, opened

import sfumato as sf
from sfumato.ledger import chain, failpoints
from sfumato.ledger.anchor import Anchor
from sfumato.ledger.store import read_url


def filled(url, anchor, cap=10):
    ledger = sf.SqlLedger(url, anchor=anchor)
    return ledger, opened(ledger, cap=sf.PureDP(cap))


@pytest.mark.parametrize("logs", ["with its log", "without its log"])
@pytest.mark.parametrize("open_now", [True, False])
def test_an_old_copy_of_the_file_between_two_charges_is_refused(tmp_path, logs, open_now):
    now, old = tmp_path / "now", tmp_path / "old"
    now.mkdir()
    ledger, account = filled(now / "ledger.db", tmp_path / "anchor")
    account.charge(count())
    if logs == "without its log":
        ledger.close()
    shutil.copytree(now, old)
    account.charge(count())
    if not open_now:
        ledger.close()
    for file in now.iterdir():
        file.unlink()
    for file in old.iterdir():
        shutil.copy(file, now)
    for act in (
        lambda: account.charge(count()),
        lambda: sf.SqlLedger(now / "ledger.db", anchor=tmp_path / "anchor"),
    ):
        with pytest.raises(sf.LedgerDamaged, match=r"older than its anchor|was replaced while it was open"):
            act()


def test_an_old_dump_of_a_database_is_refused(postgres_server, tmp_path):
    url = postgres_server.database()
    name = read_url(url).database
    ledger, account = filled(url, tmp_path / "anchor")
    account.charge(count())
    ledger.close()
    postgres_server.run(f"CREATE DATABASE {name}_old TEMPLATE {name}")
    account.charge(count())
    ledger.close()
    postgres_server.run(f"DROP DATABASE {name}", f"ALTER DATABASE {name}_old RENAME TO {name}")
    for act in (lambda: account.charge(count()), lambda: sf.SqlLedger(url, anchor=tmp_path / "anchor")):
        with pytest.raises(sf.LedgerDamaged, match="older than its anchor: it ends at entry 2, and entry 3"):
            act()


def test_an_old_copy_of_both_file_and_anchor_is_noticed_by_what_was_published(tmp_path):
    ledger, account = filled(tmp_path / "ledger.db", tmp_path / "anchor")
    first = account.charge(count())
    ledger.close()
    for name in ("ledger.db", "anchor"):
        shutil.copy(tmp_path / name, tmp_path / f"{name}.old")
    later = account.charge(count())
    ledger.close()
    for name in ("ledger.db", "anchor"):
        shutil.copy(tmp_path / f"{name}.old", tmp_path / name)
    # The documented limit: nothing here remembers the later entry, and so the copy goes on.
    with sf.SqlLedger(tmp_path / "ledger.db", anchor=tmp_path / "anchor") as again:
        again.account("people").charge(count(0.25))
        assert again.verify().sound
        published = [chain.Head(entry.number, entry.hash) for entry in (first, later)]
        assert again.verify(heads=published[:1]).sound
        (problem,) = again.verify(heads=published).problems
        assert problem == "entry 3 is not the one that was published: an older copy has gone on"


# --- two copies that both go on ----------------------------------------------------------------------


def test_of_two_copies_with_one_anchor_one_goes_on(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    ledger, account = filled(tmp_path / "ledger.db", None)
    ledger.close()
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(tmp_path / "ledger.db", tmp_path / "elsewhere" / "ledger.db")
    other = sf.SqlLedger(tmp_path / "elsewhere" / "ledger.db")
    assert other.anchor.path == ledger.anchor.path
    account.charge(count())
    with pytest.raises(sf.LedgerDamaged, match="older than its anchor"):
        other.account("people").charge(count())
    with pytest.raises(sf.LedgerDamaged, match="older than its anchor"):
        sf.SqlLedger(tmp_path / "elsewhere" / "ledger.db")
    account.charge(count())


@pytest.mark.parametrize("ahead", [1, 3])
def test_two_copies_that_charge_at_the_same_instant_do_not_both_answer(tmp_path, monkeypatch, ahead):
    """Both have looked at the anchor and committed before either writes to it."""
    ledger, account = filled(tmp_path / "ledger.db", tmp_path / "anchor")
    ledger.close()
    shutil.copy(tmp_path / "ledger.db", tmp_path / "copy.db")
    other = sf.SqlLedger(tmp_path / "copy.db", anchor=tmp_path / "anchor").account("people")
    first = threading.get_ident()
    done = []

    def meanwhile(point):
        if point == "before-anchor" and threading.get_ident() == first and not done:
            done.append(True)
            runner = threading.Thread(target=lambda: [account.charge(count()) for _ in range(ahead)])
            runner.start()
            runner.join()

    monkeypatch.setattr(failpoints, "fail_point", meanwhile)
    with pytest.raises(sf.LedgerDamaged, match=r"has another entry 2: a copy .* entry 2 \(spend\) is in the"):
        other.charge(count())
    assert account.spent.epsilon == ahead * count().cost.epsilon
    assert ledger.verify().sound


def test_charges_of_one_ledger_may_reach_the_anchor_in_any_order(tmp_path):
    anchor = Anchor(tmp_path / "anchor")
    heads = [chain.Head(number, f"{number:064x}") for number in range(200)]
    for number in (0, 5, 3, 5, 150, 149, 151, 5):
        anchor.write(heads[number])
    assert anchor.read() == heads[151]
    with pytest.raises(sf.LedgerDamaged, match="has another entry 150"):
        anchor.write(chain.Head(150, heads[7].hash))
    # After an accepted loss the numbers start again.
    anchor.write(heads[5], loss=True)
    anchor.write(chain.Head(6, heads[7].hash))
    anchor.write(chain.Head(5, heads[5].hash))


# --- clocks -------------------------------------------------------------------------------------------


class Clock:
    """A clock that shows what it is told to."""

    times = (
        datetime(2026, 1, 1, tzinfo=UTC),
        datetime(2025, 12, 31, 20, tzinfo=UTC),
        datetime(2061, 7, 1, tzinfo=UTC),
        datetime.min.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC) - timedelta(days=1),
        OverflowError("year is out of range"),
        ValueError("year 10000 is out of range"),
        OSError(75, "Value too large for defined data type"),
        datetime(2026, 1, 1, tzinfo=UTC),
    )

    def __init__(self):
        self.place = -1

    def now(self, zone):
        self.place = (self.place + 1) % len(self.times)
        found = self.times[self.place]
        if isinstance(found, Exception):
            raise found
        return found.astimezone(zone) if found.year not in (1, 9999) else found


def test_no_jump_of_the_clock_changes_a_sum_an_order_or_a_refusal(ledger_url, tmp_path, monkeypatch):
    monkeypatch.setattr(chain, "datetime", Clock())
    ledger, account = filled(ledger_url, tmp_path / "anchor", cap=1)
    account.charge(count(0.5), request="monday", digest="1f")
    ledger.renew("people", sf.PureDP(1), reason="more")
    for number in range(6):
        account.charge(count(0.25), request=f"r{number}", digest="1f")
        account.keep(f"r{number}", b"a reply")
    assert account.charge(count(0.5), request="monday", digest="1f").number == 2
    with pytest.raises(sf.BudgetExceeded):
        account.charge(count(0.25))
    ledger.retire("people", reason="it ended")
    with pytest.raises(sf.BudgetExceeded, match="retired"):
        account.charge(count(0.25))
    entries = ledger.entries()
    assert [entry.sequence for entry in entries] == list(range(1, 17))
    assert "unknown" in {entry.time for entry in entries}
    assert ledger.verify().sound
    ledger.backup(tmp_path / "backup")
    again = sf.SqlLedger.restore(tmp_path / "backup", tmp_path / "again.db", anchor=tmp_path / "anchor")
    assert again.verify().sound
    assert again.head == ledger.head
