"""Budgets in memory: a forked, copied or stored one is refused, so that nothing is spent twice."""

import copy
import os
import pickle
import signal
import threading

import numpy as np
import pytest
from tests.ledger.items import count

import sfumato as sf
from sfumato.federated import Aggregator, Run
from sfumato.laws import SystemBits
from sfumato.local import Memory, Respondent, Warner
from sfumato.mechanisms.bounded_noise import BoundedAnswers
from sfumato.mechanisms.sparse import Sparse
from sfumato.privacy import LaplaceEvent, PureAccountant, SummedAccountant, ZCDPAccountant


def data():
    return sf.Dataset({"age": list(range(100))}, unit="row", neighbours="add-remove", name="people")


def memory_ledger():
    ledger = sf.MemoryLedger(sf.PureDP(1), neighbours="add-remove")
    return ledger, lambda: ledger.charge(count(1))


def required():
    ledger = sf.MemoryLedger(sf.PureDP(1), neighbours="add-remove")
    return ledger, lambda: ledger.require(count(1))


def accountant(kind, cap):
    one = kind(cap)
    return one, lambda: one.charge(LaplaceEvent(sensitivity=1, scale=1))


def session():
    one = sf.Session(data(), budget=sf.PureDP(1))
    return one, lambda: one.answer(sf.Count(column="age", budget=sf.PureDP(1)))


def session_on_a_ledger():
    ledger = sf.MemoryLedger(sf.PureDP(1), neighbours="add-remove", dataset="people")
    one = sf.Session(data(), budget=sf.PureDP(1), ledger=ledger)
    return one, lambda: one.answer(sf.Count(column="age", budget=sf.PureDP(1)))


def a_session_opened_in_the_child():
    ledger = sf.MemoryLedger(sf.PureDP(1), neighbours="add-remove", dataset="people")
    return ledger, lambda: sf.Session(data(), budget=sf.PureDP(1), ledger=ledger).answer(
        sf.Count(column="age", budget=sf.PureDP(1))
    )


def stream():
    one = sf.Session(data(), budget=sf.PureDP(1)).open_stream(threshold=-1000, budget=sf.PureDP(1))
    return one, lambda: one.offer(column="age")


def sparse():
    one = Sparse.open(1, sensitivity=1, threshold=-1000, bits=SystemBits())
    return one, lambda: one.offer(5)


def bounded_answers():
    one = BoundedAnswers.open(sf.ApproxDP(1, 1e-6), sensitivity=1, queries=1, bits=SystemBits())
    return one, lambda: one.answer(5)


def federated_run():
    plan = Aggregator(
        bound=1, noise_multiplier=1, expected_clients=2, neighbours="add-remove", shapes=((2,),)
    )
    one = Run(plan, sf.ApproxDP(12, 1e-5), 1)
    return one, lambda: one.round([[np.array([0.3, 0.4])]])


def respondent():
    one = Respondent(Warner.of_epsilon(1), question="voted?", limit=1)
    return one, lambda: one.answer(True)


def memory():
    one = Memory()
    device = Respondent(Warner.of_epsilon(1), question="voted?", limit=1, memory=one)
    return one, lambda: device.answer(True)


KEPT_IN_MEMORY = {
    "ledger": memory_ledger,
    "ledger, required": required,
    "pure accountant": lambda: accountant(PureAccountant, sf.PureDP(1)),
    "zCDP accountant": lambda: accountant(ZCDPAccountant, sf.ZCDP(1)),
    "summed accountant": lambda: accountant(SummedAccountant, sf.ApproxDP(1, 1e-6)),
    "session": session,
    "session on a ledger": session_on_a_ledger,
    "session opened in the child": a_session_opened_in_the_child,
    "stream": stream,
    "sparse": sparse,
    "bounded answers": bounded_answers,
    "federated run": federated_run,
    "respondent": respondent,
    "memory": memory,
}


def in_a_child(act):
    """What a forked process got: "refused", "spent", or the name of another error."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # a child that waits for ever is killed
        word = "lost"
        try:
            act()
            word = "spent"
        except sf.NotSupported as error:
            word = "refused" if "must be used in the process that opened it" in str(error) else str(error)
        except BaseException as error:
            word = repr(error)
        finally:
            os.write(writer, word.encode())
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as file:
        return file.read().decode()


@pytest.mark.parametrize("name", KEPT_IN_MEMORY)
def test_a_forked_process_cannot_spend_it_again(name):
    _, spend = KEPT_IN_MEMORY[name]()
    assert [in_a_child(spend) for _ in range(2)] == ["refused", "refused"]
    assert in_a_child(lambda: in_a_child(spend) == "refused" or os._exit(1)) == "spent"
    spend()


@pytest.mark.parametrize("name", KEPT_IN_MEMORY)
def test_it_is_neither_copied_nor_stored(name):
    kept, spend = KEPT_IN_MEMORY[name]()
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(sf.NotSupported, match=r"^a.* cannot be copied or stored"):
            duplicate(kept)
    spend()


def test_a_process_that_was_forked_under_the_lock_does_not_wait_for_ever():
    ledger, spend = memory_ledger()
    with ledger._lock:
        assert in_a_child(spend) == "refused"
    spend()


def test_a_run_with_a_file_goes_on_in_a_forked_process_and_is_charged_once(tmp_path):
    plan = Aggregator(
        bound=1, noise_multiplier=1, expected_clients=2, neighbours="add-remove", shapes=((2,),)
    )
    run = Run(plan, sf.ApproxDP(12, 1e-5), 1, file=tmp_path / "run.json")
    assert in_a_child(run.charge) == "spent"
    assert "one run at a time" in in_a_child(run.charge)
    with pytest.raises(sf.InvalidParameter, match="one run at a time"):
        run.charge()


def test_an_account_of_a_database_is_shared_by_forked_processes(tmp_path):
    ledger = sf.SqlLedger(tmp_path / "ledger.db", anchor=tmp_path / "anchor")
    account = ledger.open("people", cap=sf.PureDP(1), neighbours="add-remove")
    assert in_a_child(lambda: account.charge(count(0.75))) == "spent"
    assert "BudgetExceeded" in in_a_child(lambda: account.charge(count(0.75)))
    with pytest.raises(sf.BudgetExceeded):
        account.charge(count(0.75))


def test_threads_of_one_device_do_not_pass_its_limit():
    device = Respondent(Warner.of_epsilon(1), question="voted?", limit=3)
    outcomes = []

    def ask():
        try:
            outcomes.append(device.answer(True))
        except sf.BudgetExceeded:
            outcomes.append(None)

    threads = [threading.Thread(target=ask) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 30
    assert sum(outcome is not None for outcome in outcomes) == 3
