"""A run among crashes and other processes: no round is read that is not on disk, and none is forgotten."""

import errno
import math
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from tests.federated.test_run import FOLLOWS, UPDATE, StolenBits, settings, unread

from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.federated import Run, run
from sfumato.ledger import MemoryLedger, SqlLedger
from sfumato.privacy import ZCDP, Amount, ApproxDP

START = """
import os, signal, sys
import numpy as np
import sfumato as sf
from sfumato.federated import Aggregator, Run

facts = {"expected_clients": 4, "neighbours": "add-remove", "shapes": ((2, 3), (3,))}
plan = Aggregator(bound=1, noise_multiplier=1, **facts)
update = [np.ones((2, 3)), np.zeros(3)]
file = sys.argv[1]
"""
KILLED = """
def updates():
    os.kill(os.getpid(), signal.SIGKILL)
    yield update

Run(plan, sf.ZCDP(3), file=file).round(updates())
"""
RACING = """
print(flush=True)
input()
released = 0
while True:
    try:
        Run(plan, sf.ZCDP(20), file=file).round([update])
        released += 1
    except sf.BudgetExceeded:
        break
    except sf.InvalidParameter as refused:
        assert "one run at a time" in str(refused), refused
print(released)
"""


def started(code, file):
    return subprocess.Popen(
        [sys.executable, "-c", START + code, str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_server_that_is_killed_while_it_reads_has_paid_for_the_round(tmp_path):
    file = tmp_path / "run.json"
    for killed in (1, 2):
        process = started(KILLED, file)
        process.communicate(timeout=120)
        assert process.returncode == -signal.SIGKILL
        assert Run(settings(), ZCDP(3), file=file).charged == killed


def test_two_processes_do_not_release_more_than_one_file_pays_for(tmp_path):
    file = tmp_path / "run.json"
    both = [started(RACING, file) for _ in range(2)]
    for process in both:
        process.stdout.readline()
    for process in both:
        process.stdin.write("\n")
        process.stdin.flush()
    released = [int(process.communicate(timeout=120)[0]) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    # A round whose end met another's beginning is lost; none is had twice.
    assert sum(released) <= Run(settings(), ZCDP(20), file=file).charged == 40


def test_a_look_at_the_file_and_the_write_that_follows_are_one(tmp_path, monkeypatch):
    import fcntl

    file, held = tmp_path / "run.json", []
    plain = run.write_file

    def write(path, content):
        beside = os.open(tmp_path / ".run.json.lock", os.O_RDWR)
        try:
            fcntl.flock(beside, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.append(path)
        finally:
            os.close(beside)
        plain(path, content)

    monkeypatch.setattr(run, "write_file", write)
    Run(settings(), ZCDP(3), file=file).round([UPDATE])
    assert held == [file, file]  # the charge, and the bound


def test_the_end_of_one_round_does_not_forget_what_another_run_charged(tmp_path):
    file = tmp_path / "run.json"
    one = Run(settings(), ZCDP(3), file=file)

    def meanwhile():
        Run(settings(), ZCDP(3), file=file).charge()
        yield UPDATE

    with pytest.raises(InvalidParameter, match=r"^file must belong to one run at a time"):
        one.round(meanwhile())
    assert Run(settings(), ZCDP(3), file=file).charged == 2


def test_a_full_disk_stops_the_round_before_anything_is_read(tmp_path, monkeypatch):
    file = tmp_path / "run.json"
    ledger = MemoryLedger(ZCDP(3), neighbours="add-remove", unit="client")
    full = Run(settings(), ZCDP(3), file=file, ledger=ledger)
    full.round([UPDATE])

    def no_room(path, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(run, "write_file", no_room)
        with pytest.raises(OSError, match="No space left"):
            full.round(unread())
    assert (full.charged, Run(settings(), ZCDP(3), file=file, ledger=ledger).charged) == (1, 1)
    assert ledger.spent == Amount(rho=1)  # it was paid first: a crash may cost a round, and never gives one
    full.round([UPDATE])
    assert full.charged == 2


def test_a_bound_that_cannot_be_kept_is_not_followed(tmp_path):
    file = tmp_path / "run.json"
    here = Run(settings(adaptive=FOLLOWS), ZCDP(3), file=file)
    answer = Run(settings(bound=1000), ZCDP(3)).round([UPDATE])
    here.charge()
    with pytest.raises(InvalidParameter, match=r"^answer must be the Round of the settings"):
        here.follow(answer)
    assert Run(settings(adaptive=FOLLOWS), ZCDP(3), file=file).aggregator == here.aggregator == here.start


@pytest.mark.parametrize("cap", [ZCDP(100), ApproxDP(50, 1e-3)])
def test_a_run_goes_on_only_with_the_ledger_that_paid_for_its_beginning(tmp_path, cap):
    def ledger(name):
        return MemoryLedger(cap, neighbours="add-remove", unit="client", dataset=name)

    file, paid = tmp_path / "run.json", ledger("phones")
    given = (settings(), ApproxDP(12, 1e-5))
    unpaid = Run(*given, file=file)
    assert Run.from_dict(unpaid.to_dict(), ledger=paid).charged == 0
    unpaid.charge()
    with pytest.raises(InvalidParameter, match=r"^ledger must be the one that the run was charged to"):
        Run(*given, file=file, ledger=paid)
    file.unlink()
    first = Run(*given, file=file, ledger=paid)
    first.charge()
    for other in (None, ledger("watches")):
        with pytest.raises(InvalidParameter, match=r"^ledger must be the one that the run was charged to"):
            Run(*given, file=file, ledger=other)
        with pytest.raises(InvalidParameter, match=r"^ledger must be the one that the run was charged to"):
            Run.from_dict(first.to_dict(), ledger=other)
    before = paid.spent
    Run(*given, file=file, ledger=paid).charge()
    assert (paid.spent == before) == isinstance(cap, ApproxDP)


def test_a_durable_ledger_of_epsilon_pays_once_for_a_run_that_is_killed_and_goes_on(tmp_path):
    def attempt(bits=None):
        ledger = SqlLedger(f"{tmp_path}/ledger.db", anchor=f"{tmp_path}/anchor")
        account = ledger.open("phones", cap=ApproxDP(13, 1e-4), neighbours="add-remove", unit="client")
        going = Run(settings(), ApproxDP(12, 1e-5), ledger=account, file=tmp_path / "run.json")
        going.round([UPDATE], bits)
        return account.spent

    with pytest.raises(KeyboardInterrupt):
        attempt(StolenBits())
    for _ in range(4):
        assert attempt() == Amount(epsilon=12, delta=1e-5)
    with pytest.raises(BudgetExceeded):
        attempt()


@pytest.mark.parametrize(
    "broken", [{"aggregator": 3}, {"budget": None}, {"bound": 1.5}, {"charged": True}, {"rounds": math.nan}]
)
def test_a_broken_record_is_refused_by_name(broken):
    record = Run(settings(), ZCDP(3)).to_dict()
    with pytest.raises(InvalidParameter):
        Run.from_dict({**record, **broken})


def test_an_update_is_read_once_and_after_the_charge_is_on_disk(tmp_path):
    file, seen = tmp_path / "run.json", []

    def updates():
        for _ in range(3):
            seen.append(run.read_state(file).charged)
            yield [np.ones((2, 3)), np.zeros(3)]

    Run(settings(), ZCDP(3), file=file).round(updates())
    assert seen == [1, 1, 1]
