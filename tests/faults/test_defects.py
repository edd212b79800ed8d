"""The harness can fail: every defect is noticed by the check that is there for it, which otherwise passes."""

from fractions import Fraction

import pytest
from tests.faults.clients import DATASET, NEIGHBOURS, budget
from tests.faults.damage import ENTRIES, at, attack, copied, fill, noticed
from tests.faults.defects import DEFECTS
from tests.faults.kills import kill_at_points
from tests.faults.storm import storm_a_data_set, storm_analysts, storm_one_request
from tests.faults.test_damage import assert_an_older_copy_is_refused
from tests.faults.test_disks import assert_a_failing_sync_is_an_error


def deaths(place, folder, defect, *points):
    with place.open() as ledger:
        ledger.open(DATASET, cap=budget("pure", 12), neighbours=NEIGHBOURS)
    kill_at_points(place, folder, points, seed=1, times=2, defect=defect)


# For each defect of a client: the check that must notice it.
CHECKS = {
    "charge after the draw": lambda place, folder, defect: deaths(place, folder, defect, "before-reply"),
    "ids of each process": lambda place, folder, defect: deaths(place, folder, defect, "after-commit"),
    "own answer instead of the first": lambda place, folder, defect: storm_one_request(
        place, folder, clients=4, asked=20, defect=defect
    ),
    "refund by renewal": lambda place, folder, defect: deaths(place, folder, defect, "before-reply"),
    "refund by removal": lambda place, folder, defect: deaths(place, folder, defect, "before-reply"),
    "cap of the analyst skipped": lambda place, folder, defect: storm_analysts(
        place, folder, clients=4, asked=6, whole=Fraction(2), defect=defect
    ),
    "cap of the data set skipped": lambda place, folder, defect: storm_a_data_set(
        place, folder, clients=2, asked=4, defect=defect
    ),
    "totals remembered": lambda place, folder, defect: storm_a_data_set(
        place, folder, clients=2, asked=4, defect=defect
    ),
    "anchor before commit": lambda place, folder, defect: deaths(place, folder, defect, "before-commit"),
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_defect_of_a_client_is_noticed(sqlite_place, tmp_path, name):
    with pytest.raises(AssertionError) as noticed:
        CHECKS[name](sqlite_place, tmp_path, name)
    print(f"{name}: {str(noticed.value).splitlines()[0]}")


def test_a_ledger_without_an_anchor_takes_an_older_copy(tmp_path):
    (tmp_path / "sound").mkdir()
    fill(at(tmp_path / "sound"), 2)
    assert_an_older_copy_is_refused(tmp_path / "sound", tmp_path)
    with DEFECTS["no anchor"](), pytest.raises(pytest.fail.Exception):
        assert_an_older_copy_is_refused(tmp_path / "sound", tmp_path)


def test_an_anchor_without_sync_hides_the_error_of_a_disk(tmp_path, monkeypatch):
    with DEFECTS["anchor without sync"](), pytest.raises(pytest.fail.Exception):
        assert_a_failing_sync_is_an_error(tmp_path, monkeypatch)


def test_a_hash_that_leaves_something_out_hides_a_change_of_it(tmp_path):
    def changed(connection):
        connection.execute(f"UPDATE {ENTRIES} SET time = replace(time, '20', '19') WHERE sequence = 3")

    def unnoticed() -> bool:
        (tmp_path / "sound").mkdir()
        fill(at(tmp_path / "sound"), 2)
        folder = copied(tmp_path / "sound", tmp_path / "copy")
        attack(folder / "ledger.db", changed)
        found = noticed(at(folder)) is None
        (tmp_path / "sound").rename(tmp_path / f"sound {found}")
        return found

    assert not unnoticed()
    with DEFECTS["time not hashed"]():
        assert unnoticed()


def test_every_defect_has_its_check():
    assert set(DEFECTS) == {*CHECKS, "no anchor", "anchor without sync", "time not hashed"}
