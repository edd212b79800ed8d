"""A session that dies between the charge and the answer: the retry has one answer, and one charge."""

import os
import random
import signal
import time

import pytest
from tests.faults.clients import DATASET, NEIGHBOURS, PATIENCE, PROCESSES, Journal, budget
from tests.faults.sessions import ask, interrupt_at
from tests.faults.witness import Witness

from sfumato.ledger.failpoints import FAIL_POINTS

REQUESTS = tuple(f"r{n}" for n in range(3))


class Analyst:
    """One who starts again after each interruption, and asks for everything once more."""

    def __init__(self, place, folder):
        with place.open() as ledger:
            ledger.open(DATASET, cap=budget("pure", len(REQUESTS)), neighbours=NEIGHBOURS)
        self.place, self.folder, self.journals = place, folder, []
        self.witness = Witness(place, [self])

    def start(self, target, *arguments, requests=REQUESTS):
        self.journals.append(str(self.folder / f"{len(self.journals)}.journal"))
        process = PROCESSES.Process(
            target=target, args=(self.place, self.journals[-1], requests, *arguments), daemon=True
        )
        process.start()
        return process

    def live(self, target, *arguments, requests=REQUESTS):
        process = self.start(target, *arguments, requests=requests)
        process.join(PATIENCE)
        self.witness.look()
        return process.exitcode

    def steps(self):
        return [step for path in self.journals for step in Journal.read(path)]

    def assert_one_answer_each(self):
        for _ in range(2):
            assert self.live(ask) == 0
            told = [step.request for step in Journal.read(self.journals[-1]) if step.word == "told"]
            assert tuple(told) == REQUESTS
        assert self.witness.charges == len(REQUESTS)
        assert self.witness.spent == self.witness.cap


@pytest.mark.parametrize(
    ("database", "points"), [("sqlite", FAIL_POINTS), ("postgres", ("after-commit", "before-reply"))]
)
def test_a_session_that_is_killed_answers_once_and_is_charged_once(request, tmp_path, database, points):
    analyst = Analyst(request.getfixturevalue(f"{database}_place"), tmp_path)
    for n, point in enumerate(points):
        # Early lives leave requests that later ones find charged, or answered.
        if analyst.live(ask, point, 1 + n % 2) != -signal.SIGKILL:
            assert [step.word for step in Journal.read(analyst.journals[-1])].count("told") == len(REQUESTS)
    analyst.assert_one_answer_each()


@pytest.mark.parametrize(
    ("database", "point"),
    [
        ("sqlite", "before-commit"),
        ("sqlite", "after-commit"),
        ("sqlite", "before-reply"),
        ("postgres", "before-commit"),
    ],
)
def test_a_process_that_is_stopped_between_any_two_commits_leaves_one_outcome(
    request, tmp_path, database, point
):
    """A request commits its charge, its secret and its outcome: one process dies at each of them."""
    analyst = Analyst(request.getfixturevalue(f"{database}_place"), tmp_path)
    for commit, name in enumerate(REQUESTS, 1):
        visit = 1 if point == "before-reply" else commit
        assert analyst.live(ask, point, visit, requests=(name,)) == -signal.SIGKILL
        assert analyst.live(ask, requests=(name,)) == 0
    analyst.assert_one_answer_each()
    steps = analyst.steps()
    drawn = [(step.request, step.text) for step in steps if step.word == "drew"]
    shown = {(step.request, step.text) for step in steps if step.word == "outcome"}
    # What was drawn again was drawn as before, and that is what was shown.
    assert set(drawn) == shown
    assert len(shown) == len(REQUESTS)
    assert (len(drawn) > len(shown)) == (point != "after-commit")


@pytest.mark.parametrize("point", ["before-commit", "before-anchor"])
def test_ctrl_c_at_a_point_is_no_refund_and_no_second_charge(sqlite_place, tmp_path, point):
    analyst = Analyst(sqlite_place, tmp_path)
    assert analyst.live(interrupt_at, point, 1) == 0
    assert analyst.steps()[-1].word == "interrupted"
    assert analyst.witness.charges == (point != "before-commit")
    analyst.assert_one_answer_each()


def test_ctrl_c_at_random_instants_is_no_refund_and_no_second_charge(sqlite_place, tmp_path):
    analyst, luck = Analyst(sqlite_place, tmp_path), random.Random(1)
    for _ in range(3):
        process = analyst.start(ask)
        end = time.monotonic() + PATIENCE
        while not Journal.read(analyst.journals[-1]) and process.is_alive() and time.monotonic() < end:
            time.sleep(0.001)
        time.sleep(luck.uniform(0, 0.02))
        os.kill(process.pid, signal.SIGINT)
        process.join(PATIENCE)
        assert process.exitcode == 0, "it ended with a traceback"
        analyst.witness.look()
    analyst.assert_one_answer_each()
