"""Fewer group-bys for the same counts: what they tell is what each would have told by itself."""

import math
from collections import Counter

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.data.key_sets import ROWS, KeySet, grouped
from sfumato.data.merging import MOST_GROUPS, merged, told_by

SIZES = {"a": 2, "b": 3, "c": 40, "d": 300, "e": 2**15, "f": 2**16 + 2, "g": 2**33}
KEYS = st.lists(st.sampled_from(sorted(SIZES)), max_size=3, unique=True)
SETS = st.lists(
    st.builds(lambda keys, sums: KeySet(tuple(keys), sums), KEYS, st.sampled_from([(), (), ("x",)])),
    min_size=1,
    max_size=8,
)


def frame():
    """Rows of a few values of every key, nulls among them."""
    generator = np.random.default_rng(5)
    drawn = {name: generator.integers(0, min(size, 4), 200).tolist() for name, size in SIZES.items()}
    columns = {name: [None if cell == 3 else cell for cell in cells] for name, cells in drawn.items()}
    return pl.DataFrame({**columns, "x": list(range(200))})


ROWS_OF_ALL = frame()


def told(table, each):
    """A small table as rows by key, with counts and sums."""
    return {
        tuple(row[key] for key in each.keys): (row[ROWS], *(row[name] for name in each.sums))
        for row in table.rows(named=True)
    }


def small(each, wrap=lambda table: table):
    return nw.from_native(
        wrap(grouped(nw.from_native(ROWS_OF_ALL.lazy()), each).collect("polars").to_native())
    )


@given(SETS)
@settings(max_examples=80)
def test_every_set_is_told_by_a_group_by_that_is_run(sets):
    found, places = merged(sets, SIZES)
    assert len(found) <= len(sets)
    assert set(places) == set(range(len(found)))
    tables = [small(each) for each in found]
    for each, place in zip(sets, places, strict=True):
        assert set(each.keys) <= set(found[place].keys)
        assert told(told_by(tables[place], found[place], each), each) == told(small(each), each)


@given(SETS)
def test_sums_are_found_by_their_own_keys_and_joined_keys_are_few(sets):
    found, places = merged(sets, SIZES)
    for each, place in zip(sets, places, strict=True):
        if each.sums:
            assert found[place] == each
            assert Counter(places)[place] == 1
    for each in found:
        assert each in sets or math.prod(SIZES[key] for key in each.keys) <= MOST_GROUPS


def test_sets_of_few_keys_are_joined_until_there_are_many():
    sets = [KeySet((key,)) for key in "abcd"]
    assert merged(sets, SIZES) == ([KeySet(("a", "b", "c")), KeySet(("d",))], [0, 0, 0, 1])
    sizes = {"a": 2, "b": 4, "c": 2**5, "d": MOST_GROUPS // 2**8}
    assert merged(sets, sizes) == ([KeySet(("a", "b", "c", "d"))], [0] * 4)
    assert merged(sets, {**sizes, "d": sizes["d"] + 1})[1] == [0, 0, 0, 1]


def test_the_same_set_is_found_once_and_a_set_of_many_keys_tells_the_part_of_it():
    many, part = KeySet(("f", "a")), KeySet(("f",))
    assert merged([part, many, many], SIZES) == ([many], [0, 0, 0])
    # A sum takes longer by more keys, and its table holds no more than its own columns.
    summed = KeySet(("f", "a"), ("x",))
    assert merged([part, summed], SIZES) == ([summed, part], [1, 0])


@pytest.mark.parametrize(
    "wrap", [lambda table: table, lambda table: table.to_arrow()], ids=["polars", "arrow"]
)
def test_counts_of_joined_keys_are_added_up_and_nulls_with_them(wrap):
    both, one = KeySet(("a", "c")), KeySet(("c",))
    table = small(both, wrap)
    assert told(told_by(table, both, one), one) == told(small(one), one)
    assert (None,) in told(small(one), one)
    everyone = told_by(table, both, KeySet(()))
    assert told(everyone, KeySet(())) == {(): (200,)}
    # A mutant: the last row of each key in place of the sum.
    assert told(table, one) != told(small(one), one)


def test_a_table_without_rows_tells_one_without_rows():
    both, one = KeySet(("a", "b")), KeySet(("b",))
    empty = pa.table(
        {"a": pa.array([], pa.int64()), "b": pa.array([], pa.int64()), ROWS: pa.array([], pa.int64())}
    )
    found = told_by(nw.from_native(empty), both, one)
    assert found.columns == ["b", ROWS]
    assert len(found) == 0
