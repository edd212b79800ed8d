"""Codes, labels and taken rows: the same from every kind of source as row by row in plain Python."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.engines import BOOLEANS, INTEGERS, NAN, REALS, TEXT, expected_codes

from sfumato.data import series
from sfumato.data.admission import admit
from sfumato.data.column import CHUNK, Column
from sfumato.errors import SchemaMismatch

BIG = 2**62 + 1
TEXTS = ["a", "b", "ab", "", "é", "日本", "A", "never", "a "]
WHOLES = [0, 1, -1, 7, 2**53, 2**53 + 1, BIG, BIG + 1, -(2**63), 2**63 - 1]
NUMBERS = [0.0, -0.0, 1.0, 1.5, float("inf"), -float("inf"), NAN, 2.0**53, -7.0, 1e300]
# What each kind of source is given, and public categories that may or may not be there; some are many.
CASES = [
    *((TEXT[name], TEXTS, [*TEXTS, *(f"x{i}" for i in range(40))]) for name in TEXT),
    *((INTEGERS[name], WHOLES, [*WHOLES, 2**70, -(2**70), *range(10, 60)]) for name in INTEGERS),
    *((REALS[name], NUMBERS, [0, 1, -7, 2**53, *range(10, 60)]) for name in REALS),
    *((BOOLEANS[name], [True, False], [True, False]) for name in BOOLEANS),
]
IDS = [
    f"{kind} {name}"
    for kind, table in (("text", TEXT), ("integer", INTEGERS), ("real", REALS), ("boolean", BOOLEANS))
    for name in table
]


def rows_of(values):
    return st.lists(st.one_of(st.none(), st.sampled_from(values)), max_size=12)


@pytest.mark.parametrize(("make", "values", "public"), CASES, ids=IDS)
@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_codes_and_taken_rows_are_those_of_plain_python(make, values, public, data):
    rows = data.draw(rows_of(values))
    categories = data.draw(st.lists(st.sampled_from(public), min_size=1, unique=True))
    column = admit(make(rows), "x")
    assert column.codes(categories).tolist() == expected_codes(rows, categories)
    places = data.draw(st.lists(st.integers(0, max(len(rows) - 1, 0)), max_size=6 if rows else 0))
    taken = column.take(np.array(places, dtype=np.int64))
    assert (taken.name, taken.kind, taken.nullable) == (column.name, column.kind, column.nullable)
    assert taken.rows == len(places)
    assert taken.codes(categories).tolist() == expected_codes([rows[i] for i in places], categories)
    start = data.draw(st.integers(0, len(rows)))
    part = column.take(slice(start, start + 3))
    assert (part.kind, part.nullable, part.rows) == (
        column.kind,
        column.nullable,
        len(rows[start : start + 3]),
    )
    assert part.codes(categories).tolist() == expected_codes(rows[start : start + 3], categories)


@pytest.mark.parametrize(("make", "values", "public"), CASES, ids=IDS)
def test_codes_count_what_the_tally_counts(make, values, public):
    rows = [*values, None, *values[:2]]
    column = admit(make(rows))
    for categories in (public[:1], public[:3], public):
        counts, others = column.tally(categories)
        found = np.bincount(column.codes(categories), minlength=len(categories) + 2)
        # A real column holds one zero, however it is signed, and so has the tally.
        assert found.tolist() == [*counts, others, column.nulls()]


LABELLED = [(make, values) for make, values, _ in CASES[: -len(BOOLEANS)]]


@pytest.mark.parametrize(("make", "values"), LABELLED, ids=IDS[: -len(BOOLEANS)])
@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_labels_are_equal_just_where_the_ids_are(make, values, data):
    rows = data.draw(rows_of(values))
    labels, known = admit(make(rows)).labels()
    assert known.tolist() == [is_id(row) for row in rows]
    for i in range(len(rows)):
        for j in range(i):
            if known[i] and known[j]:
                assert (labels[i] == labels[j]) == (rows[i] == rows[j])


def is_id(row):
    return row is not None and not (isinstance(row, float) and not (abs(row) < 2**53 and row == int(row)))


def test_texts_of_one_digest_are_told_apart(monkeypatch):
    rows = ["a", "b", None, "a", "", None]
    monkeypatch.setattr(series, "_digests", lambda native: np.zeros(len(native), dtype=np.uint64))
    labels, known = admit(pl.Series(rows)).labels()
    assert known.tolist() == [row is not None for row in rows]
    assert labels[0] == labels[3]
    assert len({labels[0], labels[1], labels[4]}) == 3


def test_a_column_of_many_chunks_is_coded_whole():
    values = np.arange(2 * CHUNK + 5) % 7
    for given_column in (values, values * 1.0, pl.Series(values), values + 2**60):
        base = 2**60 if given_column is not values and np.asarray(given_column)[0] > 100 else 0
        codes = admit(given_column).codes([base + 3, base + 5])
        assert codes.tolist() == np.select([values == 3, values == 5], [0, 1], 2).tolist()


@pytest.mark.parametrize("width", [0, 253, 254, 65533, 65534])
def test_codes_fit_their_type_at_every_size(width):
    categories = list(range(width + 1))
    codes = admit(np.ma.array([0, width, -5, 0], mask=[0, 0, 0, 1])).codes(categories)
    assert codes.tolist() == [0, width, width + 1, width + 2]


@pytest.mark.parametrize("given_list", [[None, None], []])
def test_a_list_without_a_value_is_null_throughout(given_list):
    column = admit(given_list)
    assert column.codes(["a"]).tolist() == [2] * len(given_list)
    taken = column.take(np.arange(len(given_list))[:1])
    assert (taken.kind, taken.nullable, taken.rows) == ("unknown", True, len(given_list[:1]))
    assert not column.labels()[1].any()


def test_a_category_of_a_type_that_the_column_never_holds_is_nowhere():
    for rows in (np.array([1, 0]), [1.0, 0.0], pl.Series([1, 0])):
        assert admit(rows).codes([True, 1, "1"]).tolist() == [1, 3]
    assert admit([True, False]).codes([1, True]).tolist() == [1, 2]
    assert admit(["1"]).codes([1, "1"]).tolist() == [1]


class Hostile(str):
    def __str__(self):
        raise RuntimeError("987654.321")

    def __hash__(self):
        raise RuntimeError("987654.321")

    def __eq__(self, _):
        raise RuntimeError("987654.321")


class Broken:
    @property
    def __class__(self):
        raise RuntimeError("987654.321")

    def __eq__(self, _):
        raise RuntimeError("987654.321")

    __hash__ = None


def odd_objects():
    rows = np.empty(8, object)
    rows[:] = ["a", Broken(), 3, [1], Hostile("a"), None, "\ud800", NAN]
    return rows


@pytest.mark.parametrize("make", [lambda rows: rows, pd.Series, lambda rows: np.ma.array(rows)])
def test_no_object_raises_and_none_but_text_tells_a_unit(make):
    column = admit(make(odd_objects()))
    assert column.codes(["a", "\ud800"]).tolist() == [0, 2, 2, 2, 0, 3, 1, 3]
    labels, known = column.labels()
    assert known.tolist() == [True, False, False, False, True, False, True, False]
    assert labels[0] == labels[4] != labels[6]
    assert column.take(np.array([4, 1, 5])).codes(["a"]).tolist() == [0, 1, 2]


BYTES = pa.Array.from_buffers(
    pa.string(), 3, [None, pa.py_buffer(np.array([0, 1, 2, 3], np.int32).tobytes()), pa.py_buffer(b"a\xffb")]
)


@pytest.mark.parametrize(
    "given_text",
    [
        BYTES,
        pa.chunked_array([BYTES]),
        BYTES.dictionary_encode(),
        pd.Series(pd.arrays.ArrowExtensionArray(BYTES)),
        np.frombuffer(np.array([97, 0x7FFFFFFF, 98], np.uint32).tobytes(), dtype="U1"),
    ],
    ids=["arrow", "chunked", "dictionary", "pandas", "numpy"],
)
@pytest.mark.parametrize("many", [False, True])
def test_what_is_no_text_is_another_value_and_never_raises(given_text, many):
    categories = ["a", "c", *([f"x{i}" for i in range(30)] if many else [])]
    others = len(categories)
    column = admit(given_text)
    assert column.codes(categories).tolist() == [0, others, others]
    assert column.take(np.array([1, 0])).codes(categories).tolist() == [others, 0]
    labels, known = column.labels()
    assert known.all()
    assert len(set(labels.tolist())) == 3


@pytest.mark.parametrize("name", TEXT)
@pytest.mark.parametrize("many", [False, True])
def test_a_category_that_no_text_can_be_is_nowhere(name, many):
    categories = ["\ud800", "a\0", "a", *([f"x{i}" for i in range(30)] if many else [])]
    codes = admit(TEXT[name](["a", None])).codes(categories)
    assert codes.tolist() == [2, len(categories) + 1]


def test_pandas_categories_of_any_object_are_known_by_what_is_printed():
    column = admit(pd.Series(pd.Categorical([1, 2, None, 1])))
    assert column.codes(["1", "3"]).tolist() == [0, 2, 3, 0]
    assert column.tally(["1", "3"]) == ([2, 0], 1)


def test_only_admitted_columns_have_rows_to_take():
    with pytest.raises(SchemaMismatch, match="'x' has no rows that can be taken"):
        Column("x", "real", True, 3, None, dict).take(slice(0, 1))


@pytest.mark.slow
def test_two_gibibytes_of_text_in_chunks_of_arrow_are_no_fault():
    # As much as the offsets of short text reach, and a little more.
    chunk = pa.array(["x" * (2**30 + 1)])
    column = admit(pa.chunked_array([chunk, chunk]), "x")
    assert column.labels()[0].tolist() == [0, 0]
    assert column.codes(["a"]).tolist() == [1, 1]
