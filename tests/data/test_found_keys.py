"""Keys that data hold: the same keys, units and order from every library and engine as in plain Python."""

import math
from collections import defaultdict

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.engines import BOOLEANS, INTEGERS, REALS, TEXT
from tests.engines import LAZY

from sfumato.checks import MAX_NAME
from sfumato.data.admission import admit
from sfumato.data.found_keys import found_keys, keys_frame, lazy_found_keys
from sfumato.data.groups import listed_codes
from sfumato.data.selection import Selections
from sfumato.errors import SchemaMismatch
from sfumato.laws import SeededBits

# Spark takes a warning about the version of pandas for its own business.
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


def plain(rows, ids=None):
    """The definition: the units of every key, in the order of the keys."""
    found = defaultdict(set)
    for place, row in enumerate(rows):
        unit = place if ids is None else ids[place]
        if unit is not None and all(_named(value) for value in row):
            found[tuple(int(value) if type(value) is float else value for value in row)].add(unit)
    keys = sorted(found)
    return keys, [len(found[key]) for key in keys]


def _named(value):
    if value is None:
        return False
    if type(value) is float:
        return math.isfinite(value) and value == math.floor(value) and abs(value) < 2**53
    return type(value) is not str or len(value) <= MAX_NAME


LONG = "x" * (MAX_NAME + 1)
SOURCES = [
    *((make, ["a", "b", "", "é", "B"]) for make in TEXT.values()),
    *((make, [1, 2, -5, 2**53, 2**53 + 1]) for make in INTEGERS.values()),
    *((make, [1.0, -2.0, 0.5, -0.0, 2.0**53, math.inf]) for make in REALS.values()),
    *((make, [True, False]) for make in BOOLEANS.values()),
]


def types_of(keys):
    return [tuple(map(type, key)) for key in keys]


@settings(max_examples=120, deadline=None, derandomize=True, database=None)
@given(draw=st.data())
def test_found_keys_are_those_of_plain_python_from_every_library(draw):
    sources = draw.draw(st.lists(st.sampled_from(SOURCES), min_size=1, max_size=3))
    size = draw.draw(st.integers(0, 12))
    columns = [
        draw.draw(st.lists(st.one_of(st.none(), st.sampled_from(values)), min_size=size, max_size=size))
        for _, values in sources
    ]
    by = [admit(make(rows)) for (make, _), rows in zip(sources, columns, strict=True)]
    ids = draw.draw(st.lists(st.one_of(st.none(), st.integers(0, 3)), min_size=size, max_size=size))
    rows = list(zip(*columns, strict=True))
    for units in (None, ids):
        labels = None if units is None else admit(pl.Series(units, dtype=pl.Int64)).labels()
        keys, counts = found_keys(by, labels)
        assert (keys, counts.tolist()) == plain(rows, units)
        assert types_of(keys) == types_of(plain(rows, units)[0])
        some = np.flatnonzero(np.arange(size) % 3)
        keys, counts = found_keys(by, labels, some)
        wanted = plain([rows[i] for i in some], None if units is None else [units[i] for i in some])
        assert (keys, counts.tolist()) == wanted
    # What was found can be asked for: every row is at its key, and all others are together.
    keys, _ = found_keys(by)
    listed = keys[::-2]
    keyed = [plain([row])[0] for row in rows]
    wanted = [listed.index(key[0]) if key and key[0] in listed else len(listed) for key in keyed]
    assert listed_codes(by, listed).tolist() == wanted


TABLE = {
    "team": ("text", ["b", "a", None, "B", "é", "a", "", LONG, LONG[1:], "a", "z\u0301"]),
    "level": ("integer", [2**53, 2**53 + 1, 1, -5, 1, 2**53 + 1, None, 1, 1, 1, 7]),
    "code": ("real", [1.0, 2.0, 0.5, math.nan, -0.0, 2.0, math.inf, 0.0, 2.0**53, None, -3.0]),
    "flag": ("boolean", [True, False, None, True, True, False, False, True, True, True, False]),
    "id": ("integer", [1, 1, 2, 3, None, 1, 2, 2, 2, 9, 1]),
}
ASKED = [["team"], ["level"], ["code"], ["flag"], ["flag", "team"], ["code", "level", "team"]]


@pytest.mark.parametrize("name", LAZY)
@pytest.mark.parametrize("by", ASKED[3:], ids=str)
def test_engines_find_the_same_keys_in_the_same_order(name, by):
    frame = nw.from_native(LAZY[name](TABLE)).lazy()
    rows = list(zip(*(TABLE[column][1] for column in by), strict=True))
    for ids in (None, "id"):
        keys, counts = lazy_found_keys(frame, by, ids=ids)
        wanted = plain(rows, None if ids is None else TABLE["id"][1])
        assert (keys, counts.tolist()) == wanted
        assert types_of(keys) == types_of(wanted[0])


@pytest.mark.parametrize("name", ["polars lazy", "duckdb"])
@pytest.mark.parametrize("by", ASKED, ids=str)
def test_keys_of_few_units_stay_in_the_engine(name, by):
    frame = nw.from_native(LAZY[name](TABLE)).lazy()
    rows = list(zip(*(TABLE[column][1] for column in by), strict=True))
    keys, counts = plain(rows)
    for least in (1, 2, 3):
        wanted = [(key, count) for key, count in zip(keys, counts, strict=True) if count >= least]
        found = lazy_found_keys(frame, by, frame.collect_schema(), least=least)
        assert list(zip(found[0], found[1].tolist(), strict=True)) == wanted
        crossed = keys_frame(frame, by, frame.collect_schema(), least=least).collect()
        assert len(crossed) == len(wanted)


def test_integers_of_any_width_are_keys():
    values = [2**63, 5, 2**63, -(2**100)]
    frame = nw.from_native(pl.LazyFrame({"n": pl.Series(values, dtype=pl.Int128)}))
    keys = [(-(2**100),), (5,), (2**63,)]
    assert lazy_found_keys(frame, ["n"])[0] == keys
    assert found_keys([admit(pl.Series(values, dtype=pl.Int128))])[0] == keys
    unsigned = np.array([2**64 - 1, 0, 2**64 - 1], dtype=np.uint64)
    assert found_keys([admit(unsigned)])[0] == [(0,), (2**64 - 1,)]


HOSTILE = {
    "surrogates": np.array(["\ud800", "a", "\ud800"], dtype=object),
    "objects": np.array([{}, "a", b"a"], dtype=object),
    "broken Unicode": np.frombuffer(np.array([0x7FFFFFFF, 97, 0x7FFFFFFF], np.uint32).tobytes(), dtype="U1"),
    "long text": [LONG, "a", LONG],
}


@pytest.mark.parametrize("column", HOSTILE.values(), ids=HOSTILE)
def test_what_names_no_group_is_no_key_and_never_raises(column):
    keys, counts = found_keys([admit(column)])
    assert (keys, counts.tolist()) == ([("a",)], [1])
    assert listed_codes([admit(column)], keys).tolist() == [1, 0, 1]


def test_text_of_spark_that_is_no_unicode_is_no_key():
    frame = LAZY["spark"]({"team": ("text", ["a", "b"])})
    broken = frame.selectExpr("case when team = 'b' then cast(X'80' as string) else team end as team")
    assert lazy_found_keys(nw.from_native(broken).lazy(), ["team"])[0] == [("a",)]


def test_lists_without_a_value_have_no_keys():
    keys, counts = found_keys([admit([None, None])])
    assert (keys, counts.tolist()) == ([], [])
    assert listed_codes([admit([None, None])], []).tolist() == [0, 0]


REFUSED = [
    lambda dates: found_keys([admit(dates)]),
    lambda dates: lazy_found_keys(nw.from_native(pl.LazyFrame({"d": dates})), ["d"]),
]


@pytest.mark.parametrize("refuse", REFUSED)
def test_dates_make_no_groups(refuse):
    dates = pl.Series([0, 1]).cast(pl.Date)
    with pytest.raises(SchemaMismatch, match=r"^column '\w+' stores date"):
        refuse(dates.alias("d"))


def test_many_columns_of_many_values_do_not_overflow():
    rng = np.random.default_rng(1)
    columns = [rng.integers(-(2**62), 2**62, 2_000) for _ in range(6)]
    columns = [np.concatenate([column, column[:500]]) for column in columns]
    by = [admit(column) for column in columns]
    keys, counts = found_keys(by)
    assert len(keys) == 2_000
    assert counts.sum() == 2_500
    codes = listed_codes(by, keys)
    assert [keys[code] for code in codes.tolist()] == list(zip(*(c.tolist() for c in columns), strict=True))


def no_prefixes(columns, keys):
    """A mutant: the place of a key is found by the place of each of its values alone."""
    alone = [list(dict.fromkeys((key[i],) for key in keys)) for i in range(len(columns))]
    return np.maximum.reduce(
        [listed_codes([column], values) for column, values in zip(columns, alone, strict=True)]
    )


def test_a_row_with_the_values_of_two_keys_has_neither():
    by, keys = [admit(["a", "b", "a"]), admit(["x", "y", "y"])], [("a", "x"), ("b", "y")]
    assert listed_codes(by, keys).tolist() == [0, 1, 2]
    assert no_prefixes(by, keys).tolist() != [0, 1, 2]


def numbers(column):
    return np.concatenate([*column.chunks(), []]).astype(int).tolist()


def test_keys_that_were_selected_split_a_column_like_public_ones():
    team = admit(["red", "blue", None, "red", "green", "blue"], "team")
    row = admit(np.arange(6), "row")
    private = Selections(None, 1)
    keys, counts = private.found((team,), (), SeededBits(1))
    assert (keys, counts.tolist()) == ([("blue",), ("green",), ("red",)], [2, 1, 2])
    chosen = (("red",), ("blue",))
    parts = private.split(row, (), ((team, ()),), SeededBits(1), keys=chosen)
    assert [numbers(part) for part in parts] == [[0, 3], [1, 5]]
    parts = private.split(row, (), ((team, ()),), SeededBits(1), keys=chosen, other=True)
    assert [numbers(part) for part in parts] == [[0, 3], [1, 5], [2, 4]]
    parts = private.split(row, (), ((team, ("red", "blue")),), SeededBits(1), other=True)
    assert [numbers(part) for part in parts] == [[0, 3], [1, 5], [2, 4]]
    (rest,) = private.split(row, (), ((team, ()),), SeededBits(1), keys=(), other=True)
    assert numbers(rest) == list(range(6))
