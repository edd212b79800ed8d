"""Seeded draws, costs, intervals and exit statuses stay as they were, wherever the code is moved to."""

import json
import math
from functools import lru_cache

import pytest
from tests.engines import ENGINES
from tests.golden import cases

DRAWN = dict(cases.drawn())


@lru_cache
def golden():
    return json.loads(cases.FILE.read_text("utf-8"))


def same(found, kept):
    """Equal, floats up to what mathematical libraries differ by."""
    if isinstance(kept, dict):
        if not isinstance(found, dict) or found.keys() != kept.keys():
            return False
        return all(same(found[name], kept[name]) for name in kept)
    if isinstance(kept, list):
        return isinstance(found, list) and len(found) == len(kept) and all(map(same, found, kept))
    if isinstance(kept, float) and isinstance(found, float):
        return math.isclose(found, kept, rel_tol=1e-9, abs_tol=1e-12)
    return type(found) is type(kept) and found == kept


def read_back(value):
    """The value as the file has it."""
    return json.loads(json.dumps(value))


def assert_same(found, kept):
    assert same(read_back(found), kept), f"{json.dumps(read_back(found))} was {json.dumps(kept)}"


@pytest.mark.parametrize("name", DRAWN)
def test_seeded_releases_are_what_they_were(name):
    assert_same(DRAWN[name](), golden()["drawn"][name])


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_releases_what_it_did(engine):
    assert_same(cases.on_engine(engine), golden()["engines"])


def test_commands_end_as_they_did():
    assert cases.statuses() == golden()["commands"]


def test_nothing_was_dropped_from_the_file_or_from_the_cases():
    assert golden()["drawn"].keys() == DRAWN.keys()
    assert len(golden()["engines"]) == 2 * len(cases.ON_ENGINES)


def test_one_integer_or_one_status_more_is_seen():
    kept = golden()["drawn"]["count, add-remove, epsilon"]
    assert same(kept, read_back(kept))
    for name, changed in (
        ("outcome", kept["outcome"] + "0"),
        ("value", kept["value"] + 1),
        ("event", {}),
        ("cost", None),
    ):
        assert not same(kept | {name: changed}, kept)
    assert not same([1.0, 2.0], [1.0, 2.0 + 1e-6])
    assert not same(1, 1.0)
    assert not same([0], [False])
