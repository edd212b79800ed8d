"""Groups: every declared key has its rows, in their order, whatever the data hold."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.engines import BOOLEANS, INTEGERS, REALS, TEXT

from sfumato.data.conditions import Between
from sfumato.data.dataset import Dataset
from sfumato.data.field import Field
from sfumato.data.groups import MAX_KEYS, all_keys, key_codes, partition
from sfumato.data.part import Part
from sfumato.errors import InvalidParameter, SchemaMismatch
from sfumato.laws import SeededBits

SCHEMA = {"team": Field(categories=("red", "blue")), "level": Field(categories=(1, 2, 3))}
TABLE = {"team": ["red", "green", None, "blue", "red"], "level": [3, 1, 2, None, 3], "pay": [1, 2, 3, 4, 5]}


def data(neighbours="add-remove", **facts):
    return Dataset(TABLE, **{"unit": "row", "neighbours": neighbours, "schema": SCHEMA, **facts})


def numbers(column):
    return np.concatenate([*column.chunks(), []]).tolist()


def test_every_declared_key_is_answered_in_order_whether_it_has_rows_or_not():
    assert data().keys(["team"]) == (("red",), ("blue",))
    assert data().keys(("team", "level"))[:4] == (("red", 1), ("red", 2), ("red", 3), ("blue", 1))
    assert data().keys() == ((),)
    parts = data().parts("pay", by=("team", "level"), bits=SeededBits(1))
    assert [numbers(part) for part in parts] == [[], [], [1, 5], [], [], []]
    assert [numbers(part) for part in data().parts("pay", by=["team"], bits=SeededBits(1))] == [[1, 5], [4]]
    assert [numbers(part) for part in data().parts("pay", bits=SeededBits(1))] == [[1, 2, 3, 4, 5]]


def test_a_part_has_the_kind_of_the_whole_whatever_it_holds():
    for name in TABLE:
        whole = data().column(name)
        for part in data().parts(name, by=("team", "level"), bits=SeededBits(1)):
            assert (part.name, part.kind, part.nullable) == (whole.name, whole.kind, whole.nullable)


REFUSED = {
    "no list": ("team", "^by must be a list of column names, got by='team'$"),
    "no names": ([1], "^by must be a list of column names"),
    "nothing": (None, "^by must be a list of column names, got by=None$"),
    "twice": (["team", "team"], "^by must be distinct column names"),
    "no such column": (["planet"], "^column 'planet' is not in the data"),
    "undeclared": (["pay"], "^by must name columns with declared categories.* got 'pay'$"),
}


@pytest.mark.parametrize(("by", "message"), REFUSED.values(), ids=REFUSED)
def test_groups_that_public_facts_rule_out_are_refused_before_any_charge(by, message):
    for refuse in (lambda: data().require({}, by), lambda: data().keys(by)):
        with pytest.raises((InvalidParameter, SchemaMismatch), match=message):
            refuse()


def test_groups_are_at_most_ten_thousand():
    assert len(all_keys([tuple(range(100)), tuple(range(100))])) == MAX_KEYS
    with pytest.raises(InvalidParameter, match=r"^by must make at most 10000 groups, got 10100"):
        all_keys([tuple(range(101)), tuple(range(100))])


def test_categories_that_the_column_never_holds_make_no_groups():
    facts = {"pay": Field(categories=("a",))}
    with pytest.raises(SchemaMismatch, match=r"^column 'pay' stores real, so categories must be int"):
        data(schema=facts).keys(["pay"])


CHANGES = {
    ("add-remove", None): (None, None, None),
    ("substitution", None): (None, None, 2),
    ("add-remove", 3): (3, 3, 3),
    ("substitution", 3): (6, 6, 6),
}


@pytest.mark.parametrize(("facts", "changes"), CHANGES.items())
def test_how_many_rows_one_person_changes_follows_from_unit_relation_and_groups(facts, changes):
    neighbours, most = facts
    unit = {"unit": "row"} if most is None else {"unit": "level", "rows_per_unit": most}
    private = data(neighbours, **unit)
    where = {"team": ["red", "blue"]}
    assert private.part() == Part(changes=changes[0])
    assert private.part(where) == Part(changes=changes[1], among=(("team", "red or blue"),))
    among = (("team", "red or blue"), ("level", "2"))
    assert private.part(where, ["level"], (2,)) == Part(changes=changes[2], among=among)
    assert private.part(by=["team"]).changes == changes[2]


@pytest.mark.parametrize(
    "key", [("green",), ("red", 1), "red", ["red"], (1,), (True,), (None,)], ids=lambda key: str(key)
)
def test_a_key_is_one_of_the_declared_ones(key):
    with pytest.raises(InvalidParameter, match=r"^key must "):
        data().part(by=["team"], key=key)


SOURCES = [
    *((make, ["a", "b", "c"], ("b", "a")) for make in TEXT.values()),
    *((make, [1, 2, 2**60 + 1], (2**60 + 1, 1)) for make in INTEGERS.values()),
    *((make, [1.0, 2.0, 0.5], (2, 1)) for make in REALS.values()),
    *((make, [True, False], (False, True)) for make in BOOLEANS.values()),
]


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(draw=st.data())
def test_the_rows_of_every_key_are_those_of_plain_python(draw):
    sources = draw.draw(st.lists(st.sampled_from(SOURCES), min_size=1, max_size=3))
    size = draw.draw(st.integers(0, 9))
    table, schema, rows = {"place": np.arange(size)}, {}, []
    for number, (make, values, categories) in enumerate(sources):
        row = st.one_of(st.none(), st.sampled_from(values))
        rows.append(draw.draw(st.lists(row, min_size=size, max_size=size)))
        table[f"by{number}"] = make(rows[-1])
        schema[f"by{number}"] = Field(categories=categories)
    private = Dataset(table, unit="row", neighbours="add-remove", schema=schema)
    names = list(schema)
    places = [(i, tuple(column[i] for column in rows)) for i in range(size)]
    wanted = [[i for i, found in places if found == key] for key in private.keys(names)]
    for _ in range(2):  # the second time from what was kept
        parts = private.parts("place", by=names, bits=SeededBits(1))
        assert [numbers(part) for part in parts] == wanted


def broken_partition(codes, count):
    """A mutant: rows without a key go to the last group."""
    return partition(np.minimum(codes, count - 1), count)


def test_rows_without_a_key_are_in_no_group():
    codes = np.array([2, 0, 1, 2, 0], dtype=np.uint8)
    rows, starts = partition(codes, 2)
    assert (rows.tolist(), starts.tolist()) == ([1, 4, 2], [0, 2, 3])
    assert broken_partition(codes, 2)[0].tolist() != rows.tolist()


@pytest.mark.parametrize("sizes", [(3, 2), (200, 50), (254, 1), (1, 255), (2, 128), (100, 100)])
def test_key_codes_fit_their_type_at_every_size(sizes):
    first, second = (np.arange(size + 2, dtype=np.uint16) for size in sizes)
    codes = key_codes([np.repeat(first, len(second)), np.tile(second, len(first))], sizes)
    wanted = [
        i * sizes[1] + j if i < sizes[0] and j < sizes[1] else sizes[0] * sizes[1]
        for i in range(sizes[0] + 2)
        for j in range(sizes[1] + 2)
    ]
    assert codes.tolist() == wanted


def test_conditions_and_groups_hold_together():
    table = {"team": pl.Series(["red", "blue"] * 5, dtype=pl.Categorical), "x": np.arange(10)}
    private = Dataset(table, unit="row", neighbours="add-remove", schema={"team": SCHEMA["team"]})
    parts = private.parts("x", where={"x": Between(3, 7)}, by=["team"], bits=SeededBits(1))
    assert [numbers(part) for part in parts] == [[4, 6], [3, 5, 7]]


def test_public_facts_are_asked_for_without_reading_a_value():
    def unread(*_):
        raise AssertionError("read")

    private = data()
    for name in TABLE:
        column = private.column(name)
        for reader in ("_floats", "_tally", "_take", "_codes", "_labels"):
            object.__setattr__(column, reader, unread)
    private.require({"team": "red"}, ["level"])
    private.part({"team": "red"}, ["level"], (2,))
    assert len(private.keys(["level", "team"])) == 6
    with pytest.raises(AssertionError, match="read"):
        private.parts("pay", where={"team": "red"}, bits=SeededBits(1))
