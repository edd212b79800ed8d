"""Clients killed at random instants and at every fail point: nothing is lost, refunded or told twice."""

import pytest
from tests.faults.births import kill_at_birth
from tests.faults.clients import DATASET, NEIGHBOURS, budget
from tests.faults.kills import kill_at_points, kill_at_random

from sfumato.ledger.failpoints import FAIL_POINTS


def opened(place, charges):
    with place.open() as ledger:
        ledger.open(DATASET, cap=budget("pure", charges), neighbours=NEIGHBOURS)
    return place


def test_kills_at_random_instants_lose_and_refund_nothing(place, tmp_path):
    tally = kill_at_random(opened(place, 40), tmp_path, seed=1, kills=6, clients=2)
    assert tally.kills == 6
    assert tally.charges == 40


def test_deaths_at_every_fail_point_lose_and_refund_nothing(place, tmp_path):
    tally = kill_at_points(opened(place, 24), tmp_path, FAIL_POINTS, seed=2, times=1)
    assert tally.kills == len(FAIL_POINTS)
    assert tally.charges == 24


@pytest.mark.parametrize("point", [None, "before-commit", "after-commit", "before-anchor"])
def test_a_ledger_that_is_half_made_is_finished_by_the_next(sqlite_place, tmp_path, point):
    kill_at_birth(sqlite_place, tmp_path, seed=3, point=point)
