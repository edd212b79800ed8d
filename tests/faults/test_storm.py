"""Eight processes spend at once around a cap: nothing is overspent, and the cap is reached exactly."""

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest
from tests.faults.clients import DATASET, NEIGHBOURS, Place, budget
from tests.faults.storm import storm_a_data_set, storm_analysts, storm_one_request

CLIENTS = 8


def test_a_crowd_spends_exactly_the_cap_of_a_data_set(place, tmp_path):
    assert storm_a_data_set(place, tmp_path, clients=CLIENTS, asked=8) == 32


@pytest.mark.parametrize("whole", [Fraction(1), Fraction(4, 5)], ids=["analysts", "data set"])
def test_a_crowd_spends_exactly_the_caps_of_analysts_or_that_of_the_data_set(sqlite_place, tmp_path, whole):
    storm_analysts(sqlite_place, tmp_path, clients=CLIENTS, asked=8, whole=whole)


def test_a_request_of_many_processes_is_charged_once_and_has_one_answer(place, tmp_path):
    assert storm_one_request(place, tmp_path, clients=CLIENTS, asked=4) == 4


def test_threads_of_one_process_make_ledgers_of_their_own_at_the_same_time(tmp_path):
    def make(n):
        place = Place(f"sqlite:///{tmp_path / f'{n}.db'}", str(tmp_path / f"{n}.anchor"))
        with place.open() as ledger:
            ledger.open(DATASET, cap=budget("pure", n), neighbours=NEIGHBOURS)
            return ledger.verify().sound, ledger.account(DATASET).cap

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(make, range(1, 9))) == [(True, budget("pure", n)) for n in range(1, 9)]
