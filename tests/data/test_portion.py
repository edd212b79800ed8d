"""The groups of rows of a small table, against keys that are compared one by one."""

import narwhals as nw
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.data.portion import WHOLE_TABLE, GroupKeys, places_of

TEAMS, FLAGS = ("red", "blue", "7"), (True, False)
# Those that no 64 bits hold cross over as text, and so do the others of their column.
WIDE = (2**70, -(2**65), 7)
COLUMNS = {
    "team": (TEAMS, (*TEAMS, "green", None), pl.String),
    "member": (FLAGS, (*FLAGS, None), pl.Boolean),
    "code": ((3, -4, 0), (3, -4, 0, 5, None), pl.Int64),
    "wide": (WIDE, (*map(str, WIDE), "8", None), pl.String),
}


def modelled(groups, rows):
    """The group of every row, by its whole key."""
    wide = [groups.by.index(name) for name in groups.by if name == "wide"]

    def key_of(row):
        return tuple(int(v) if place in wide and v is not None else v for place, v in enumerate(row))

    rest = len(groups.keys) if groups.other else -1
    return [groups.keys.index(key_of(row)) if key_of(row) in groups.keys else rest for row in rows]


def series(groups, rows):
    frame = pl.DataFrame(
        {
            name: pl.Series([row[place] for row in rows], dtype=COLUMNS[name][2])
            for place, name in enumerate(groups.by)
        }
    )
    return [nw.from_native(frame)[name] for name in groups.by]


@st.composite
def tables(draw, columns=COLUMNS):
    by = tuple(draw(st.permutations(sorted(columns)))[: draw(st.integers(1, len(columns)))])
    key = st.tuples(*(st.sampled_from(columns[name][0]) for name in by))
    row = st.tuples(*(st.sampled_from(columns[name][1]) for name in by))
    keys = tuple(draw(st.lists(key, max_size=6, unique=True)))
    return GroupKeys(by, keys, other=draw(st.booleans())), draw(st.lists(row, max_size=30))


@given(tables())
@settings(max_examples=150)
def test_every_row_is_in_the_group_of_its_key(table):
    groups, rows = table
    assert groups.groups_of(series(groups, rows)).tolist() == modelled(groups, rows)


class ByParts(GroupKeys):
    """A mutant: rows are in a group as soon as every part of their key is a part of some key."""

    def _key(self, places):
        values = tuple(self.values(i)[place] for i, place in enumerate(places))
        return None if min(places) < 0 else values if values in self.keys else self.keys[0]


def test_a_row_of_known_parts_but_no_key_is_in_no_group():
    by, keys = ("team", "member"), (("red", True), ("blue", False))
    rows = [("red", False), ("blue", False), ("red", True), (None, True), ("red", None)]
    for other, rest in ((False, -1), (True, 2)):
        groups = GroupKeys(by, keys, other=other)
        assert groups.groups_of(series(groups, rows)).tolist() == [rest, 1, 0, rest, rest]
        assert ByParts(by, keys, other=other).groups_of(series(groups, rows)).tolist()[0] == 0


def test_many_columns_of_many_values_are_told_apart():
    # 255 texts and none in each of nine columns: their product is 2**72, and 64 bits would lose the first.
    by = tuple("abcdefghi")
    groups = GroupKeys(by, tuple((str(value),) * 9 for value in range(255)))
    rows = [("0",) * 9, ("1", *"00000000"), ("254",) * 9, (*"00000000", "1"), ("1",) * 9]
    frame = nw.from_native(pl.DataFrame(rows, schema=list(by), orient="row"))
    assert groups.groups_of([frame[name] for name in by]).tolist() == [0, -1, 254, -1, 1]


def test_keys_may_be_none_and_rows_may_be_none():
    nobody = GroupKeys(("team",), (), other=True)
    assert nobody.count == 1
    assert nobody.values(0) == ()
    assert nobody.groups_of(series(nobody, [("red",), (None,)])).tolist() == [0, 0]
    assert GroupKeys(("team",), ()).groups_of(series(nobody, [("red",)])).tolist() == [-1]
    assert nobody.groups_of(series(nobody, [])).tolist() == []


def test_the_whole_table_is_one_group_without_keys():
    assert WHOLE_TABLE.groups.count == 1
    with pytest.raises(ValueError, match="one group"):
        WHOLE_TABLE.groups.groups_of([])


def test_values_are_those_of_a_column_once_and_in_order():
    groups = GroupKeys(("team", "member"), (("red", True), ("blue", True), ("red", False)))
    assert groups.values(0) == ("red", "blue")
    assert groups.values(1) == (True, False)


def test_integers_are_found_as_text_and_text_is_not_found_as_integers():
    assert places_of(WIDE) == {2**70: 0, -(2**65): 1, 7: 2, str(2**70): 0, str(-(2**65)): 1, "7": 2}
    assert 7 not in places_of(TEAMS)
    assert "True" not in places_of(FLAGS)
