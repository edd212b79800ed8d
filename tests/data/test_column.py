"""Admission: what a column is follows from its type, and nothing in its values can raise."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato.data.admission import admit
from sfumato.data.column import CHUNK, Column
from sfumato.errors import SchemaMismatch, SfumatoError

NAN = float("nan")


def same(left, right):
    return np.array_equal(np.asarray(left, dtype=float), np.asarray(right, dtype=float), equal_nan=True)


def read_only(array):
    array.flags.writeable = False
    return array


# what is given, the kind, whether it can hold nulls, its values
NUMBERS = {
    **{f"numpy {d}": (np.array([1, 2, 3], d), "integer", False, [1, 2, 3]) for d in "bhilBHIL"},
    **{f"numpy {d}": (np.array([1, NAN, 3], d), "real", True, [1, NAN, 3]) for d in "efdg"},
    "numpy big-endian": (np.array([1.5, 2.5], ">f8"), "real", True, [1.5, 2.5]),
    "numpy big-endian integers": (np.array([1, 258], ">i4"), "integer", False, [1, 258]),
    "numpy read-only": (read_only(np.array([1.0, 2.0])), "real", True, [1, 2]),
    "numpy with holes": (np.arange(10.0)[::3], "real", True, [0, 3, 6, 9]),
    "numpy backwards": (np.arange(4)[::-1], "integer", False, [3, 2, 1, 0]),
    "numpy column of a table": (np.arange(6).reshape(3, 2)[:, 1], "integer", False, [1, 3, 5]),
    "numpy masked": (np.ma.array([1, 2, 3], mask=[0, 1, 0]), "integer", True, [1, NAN, 3]),
    "numpy masked NaN": (np.ma.array([1, NAN, 3], mask=[0, 0, 1]), "real", True, [1, NAN, NAN]),
    "numpy masked boolean": (np.ma.array([True, False], mask=[0, 1]), "boolean", True, [1, NAN]),
    "numpy boolean": (np.array([True, False]), "boolean", False, [1, 0]),
    "numpy uint64 limit": (np.array([2**64 - 1], np.uint64), "integer", False, [2.0**64]),
    "numpy long double beyond float64": (np.array([np.longdouble("1e4000")]), "real", True, [np.inf]),
    "numpy infinities": (np.array([np.inf, -np.inf]), "real", True, [np.inf, -np.inf]),
    "numpy empty": (np.array([], int), "integer", False, []),
    "list": ([1, 2], "real", True, [1, 2]),
    "list of floats": ([1, 2.5], "real", True, [1, 2.5]),
    "list with None": ([1, None, 3], "real", True, [1, NAN, 3]),
    "list beyond float64": ([10**400, -(10**400)], "real", True, [np.inf, -np.inf]),
    "list of many kinds of numbers": (
        [1, 2.5, Decimal("0.5"), np.float32(1)],
        "real",
        True,
        [1, 2.5, 0.5, 1],
    ),
    "list of floats with None": ([1.5, None], "real", True, [1.5, NAN]),
    "list of booleans with None": ([True, None], "boolean", True, [1, NAN]),
    "list of None": ([None, None], "unknown", True, [NAN, NAN]),
    "empty list": ([], "unknown", True, []),
    "tuple": ((1, 2), "real", True, [1, 2]),
    "range": (range(3), "real", True, [0, 1, 2]),
    "pandas int64": (pd.Series([1, 2]), "integer", False, [1, 2]),
    "pandas float64": (pd.Series([1, NAN]), "real", True, [1, NAN]),
    "pandas Int64": (pd.Series([1, None], dtype="Int64"), "integer", True, [1, NAN]),
    "pandas UInt8": (pd.Series([1, None], dtype="UInt8"), "integer", True, [1, NAN]),
    "pandas Float64": (pd.Series([1.5, None], dtype="Float64"), "real", True, [1.5, NAN]),
    "pandas boolean": (pd.Series([True, None], dtype="boolean"), "boolean", True, [1, NAN]),
    "pandas bool": (pd.Series([True, False]), "boolean", False, [1, 0]),
    "pandas arrow int64": (
        pd.Series([2**60 + 1, None], dtype="int64[pyarrow]"),
        "integer",
        True,
        [2.0**60, NAN],
    ),
    "pandas odd index": (pd.Series([1, 2, 3], index=[7.5, 0, 0]), "integer", False, [1, 2, 3]),
    **{
        f"polars {d}": (pl.Series([1, None, 3], dtype=d), "integer", True, [1, NAN, 3])
        for d in (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
    },
    "polars Float32": (pl.Series([1.5, None], dtype=pl.Float32), "real", True, [1.5, NAN]),
    "polars Float64": (pl.Series([1.5, None, NAN]), "real", True, [1.5, NAN, NAN]),
    "polars Decimal": (pl.Series([Decimal("1.25"), None]), "real", True, [1.25, NAN]),
    "polars Boolean": (pl.Series([True, None]), "boolean", True, [1, NAN]),
    "polars beyond 2**53": (pl.Series([2**60 + 1]), "integer", True, [2.0**60]),
    "polars slice": (pl.Series(range(10)).slice(3, 2), "integer", True, [3, 4]),
    "arrow array": (pa.array([1, None, 3]), "integer", True, [1, NAN, 3]),
    "arrow sliced array": (pa.array([1, None, 3])[1:], "integer", True, [NAN, 3]),
    "arrow chunks": (pa.chunked_array([[1, None], [], [3]]), "integer", True, [1, NAN, 3]),
    "arrow sliced chunks": (pa.chunked_array([[1, 2], [3, 4]]).slice(1, 2), "integer", True, [2, 3]),
    "arrow beyond 2**53": (pa.array([2**53 + 1, None]), "integer", True, [2.0**53, NAN]),
    "arrow uint64 limit": (pa.array([2**64 - 1], pa.uint64()), "integer", True, [2.0**64]),
    "arrow half": (pa.array([np.float16(1.5), None], pa.float16()), "real", True, [1.5, NAN]),
    "arrow decimal": (pa.array([Decimal("1.25"), None]), "real", True, [1.25, NAN]),
    "arrow boolean": (pa.array([True, None]), "boolean", True, [1, NAN]),
    "arrow empty": (pa.chunked_array([], pa.float64()), "real", True, []),
}


@pytest.mark.parametrize(("given", "kind", "nullable", "values"), NUMBERS.values(), ids=NUMBERS)
def test_numbers_are_admitted_by_their_type_and_read_as_float64(given, kind, nullable, values):
    column = admit(given)
    assert (column.kind, column.nullable, len(column)) == (kind, nullable, len(values))
    chunks = list(column.chunks())
    assert all(chunk.dtype == np.float64 for chunk in chunks)
    assert same(np.concatenate([*chunks, []]), values)
    assert column.nulls() == np.isnan(np.array(values, dtype=float)).sum()


TEXT = ["b", None, "a", "b", ""]
TEXTS = {
    "list": TEXT,
    "numpy object": np.array(TEXT, object),
    "numpy masked": np.ma.array(["b", "x", "a", "b", ""], mask=[0, 1, 0, 0, 0]),
    "numpy StringDType": np.array(["b", NAN, "a", "b", ""], np.dtypes.StringDType(na_object=NAN)),
    "pandas str": pd.Series(TEXT),
    "pandas string": pd.Series(TEXT, dtype="string"),
    "pandas arrow string": pd.Series(TEXT, dtype="string[pyarrow]"),
    "pandas object": pd.Series(TEXT, dtype=object),
    "pandas object NA": pd.Series(["b", pd.NA, "a", "b", ""], dtype=object),
    "pandas object NaN": pd.Series(["b", NAN, "a", "b", ""], dtype=object),
    "pandas categorical": pd.Series(TEXT, dtype="category"),
    "polars String": pl.Series(TEXT),
    "polars Categorical": pl.Series(TEXT, dtype=pl.Categorical),
    "polars Enum": pl.Series(TEXT, dtype=pl.Enum(["", "a", "b", "never"])),
    "arrow string": pa.array(TEXT),
    "arrow large string": pa.array(TEXT, pa.large_string()),
    "arrow string view": pa.array(TEXT, pa.string_view()),
    "arrow dictionary": pa.array(TEXT).dictionary_encode(),
    "arrow chunks": pa.chunked_array([TEXT[:2], TEXT[2:]]),
}


@pytest.mark.parametrize("given", TEXTS.values(), ids=TEXTS)
def test_text_is_tallied_alike_from_every_frame(given):
    column = admit(given)
    assert (column.kind, column.nullable, len(column), column.nulls()) == ("text", True, 5, 1)
    assert column.tally(["a", "b", "c"]) == ([1, 2, 0], 1)
    with pytest.raises(SchemaMismatch, match="must be integer or real or boolean, but it stores text"):
        next(iter(column.chunks()), None)


@pytest.mark.parametrize(
    "given",
    [
        np.array([1, 0, 1]),
        np.ma.array([1, 0, 1, 5], mask=[0, 0, 0, 1]),
        pd.Series([1, 0, None, 1], dtype="Int64"),
        pd.Series([1, 0, None, 1], dtype="int64[pyarrow]"),
        pl.Series([1, 0, None, 1]),
        pa.array([1, 0, None, 1]),
    ],
    ids=lambda given: f"{type(given).__module__}.{type(given).__name__}",
)
def test_integer_categories_are_tallied_without_nulls(given):
    assert admit(given).tally([1, 7]) == ([2, 0], 1)
    # True == 1 in Python, but no integer column holds it.
    assert admit(given).tally([True]) == ([0], 3)


@pytest.mark.parametrize(
    "given", [pd.Series([True, None], dtype="boolean"), pl.Series([True, None]), [True, None]]
)
def test_boolean_categories_are_tallied_without_nulls(given):
    assert admit(given).tally([True, False]) == ([1, 0], 0)


def test_integers_beyond_float64_keep_their_own_category():
    big = [2**53, 2**53 + 1, 2**53 + 1]
    for given in (np.array(big), pd.Series(big), pl.Series(big), pa.array(big)):
        assert admit(given).tally([2**53 + 1]) == ([2], 1)
    with pytest.raises(SchemaMismatch, match=r"up to 2\*\*53 only"):
        admit(big).require_categories([2**53 + 1])


@pytest.mark.parametrize("given", [[1, None, 0, 1, 0.5], np.array([1, NAN, 0, 1, 0.5])])
def test_whole_numbers_are_categories_of_reals_too(given):
    admit(given).require_categories([7, 1])
    assert admit(given).tally([7, 1]) == ([0, 2], 2)
    assert admit(given).tally([0]) == ([1], 3)


def test_what_a_list_holds_does_not_change_how_it_is_treated():
    kinds = {(admit(given).kind, admit(given).nullable) for given in ([1, 2], [1, 2.5], [1, None], [2**70])}
    assert kinds == {("real", True)}


class Hostile(str):
    def __str__(self):
        raise RuntimeError("987654.321")


def test_objects_that_are_not_text_are_counted_as_other_and_never_raise():
    class Broken:
        def __eq__(self, _):
            raise RuntimeError("987654.321")

        __hash__ = object.__hash__

    given = np.empty(6, object)
    given[:] = ["a", Broken(), 3, [1], Hostile("a"), Decimal(1)]
    for column in (admit(given), admit(pd.Series(given))):
        assert column.kind == "text"
        assert column.tally(["a", "3"]) == ([2, 0], 4)


def test_the_kind_of_an_object_column_does_not_depend_on_its_values():
    for values in (["a", "b"], [1, 2], [None, None], [1.5, "x"], [datetime.date(2020, 1, 1), b"x"]):
        assert admit(pd.Series(values, dtype=object)).kind == "text"
        assert admit(np.array(values, object)).kind == "text"


REFUSED = {
    "no dimension": np.array(3.0),
    "two dimensions": np.zeros((2, 2)),
    "structured": np.zeros(2, [("a", int)]),
    "void": np.zeros(0, "V4"),
    "dates without a unit": np.array(["NaT"], "M8"),
    "dates of ten days": np.array(["2020-01-01"], "M8[10D]"),
    "durations": np.array([5], "m8[s]"),
    "complex": np.array([1j]),
    "bytes": np.array([b"a"]),
    "ragged list": [[987654.321], [2, 3]],
    "list of lists": [[987654.321], [2.0]],
    "pandas durations": pd.Series(pd.to_timedelta([1, 2])),
    "pandas complex": pd.Series([1j]),
    "pandas periods": pd.Series(pd.period_range("2020", periods=2)),
    "pandas intervals": pd.Series(pd.interval_range(0, 2)),
    "pandas frame": pd.DataFrame({"a": [987654.321]}),
    "polars times": pl.Series([datetime.time(12)]),
    "polars durations": pl.Series([datetime.timedelta(1)]),
    "polars list": pl.Series([[1], [2]]),
    "polars struct": pl.Series([{"a": 1}]),
    "polars object": pl.Series([object()], dtype=pl.Object),
    "polars binary": pl.Series([b"CANARY"]),
    "polars frame": pl.DataFrame({"a": [1]}),
    "polars lazy": pl.LazyFrame({"a": [1]}),
    "arrow times": pa.array([datetime.time(12)]),
    "arrow list": pa.array([[1]]),
    "arrow struct": pa.array([{"a": 1}]),
    "arrow table": pa.table({"a": [1]}),
    "arrow binary": pa.array([b"CANARY"]),
    "text": "CANARY-1",
    "nothing": None,
    "number": 987654.321,
    "mapping": {"a": 987654.321},
    "set": {987654.321},
    "generator": (x for x in [987654.321]),
}


@pytest.mark.parametrize("given", REFUSED.values(), ids=REFUSED)
def test_any_other_type_is_refused_in_one_line_without_its_values(given):
    with pytest.raises(SchemaMismatch) as caught:
        admit(given)
    message = str(caught.value)
    assert "\n" not in message
    assert "values" in message
    assert "CANARY" not in message
    assert "987654" not in message


@pytest.mark.parametrize(
    ("name", "shown"), [("age", "age"), (0, "0"), (None, "values"), ("", "values"), (("a", 1), "('a', 1)")]
)
def test_a_pandas_series_of_any_name_is_admitted(name, shown):
    assert admit(pd.Series([1], name=name)).name == shown
    assert admit(pd.Series([1], name=name), "own").name == "own"


def test_a_column_is_read_in_chunks_that_fit_a_cache():
    sizes = [len(chunk) for chunk in admit(np.zeros(2 * CHUNK + 5)).chunks()]
    assert sizes == [CHUNK, CHUNK, 5]
    assert admit(admit([1])).rows == 1


def test_categories_of_another_type_are_refused():
    with pytest.raises(SchemaMismatch, match="stores real, so categories must be int"):
        admit([1.5]).require_categories(["1"])
    for given, categories in (([1], [True]), ([True], [1]), (["1"], [1]), ([1], ["1"])):
        with pytest.raises(SchemaMismatch, match=r"so categories must be \w+, got"):
            admit(given).require_categories(categories)


def test_a_failure_in_reading_is_not_hidden():
    def broken(*_):
        raise SfumatoError("the file is unreadable")

    column = Column("x", "real", True, 3, broken, broken)
    with pytest.raises(SfumatoError, match="unreadable"):
        column.nulls()


BROKEN_TEXT = pa.Array.from_buffers(
    pa.string(), 3, [None, pa.py_buffer(np.array([0, 1, 2, 3], np.int32).tobytes()), pa.py_buffer(b"a\xffb")]
)


@pytest.mark.parametrize(
    "given",
    [
        BROKEN_TEXT,
        pa.chunked_array([BROKEN_TEXT]),
        BROKEN_TEXT.dictionary_encode(),
        pd.Series(pd.arrays.ArrowExtensionArray(BROKEN_TEXT)),
        np.frombuffer(np.array([97, 0x7FFFFFFF, 98], np.uint32).tobytes(), dtype="U1"),
    ],
    ids=["arrow", "chunked", "dictionary", "pandas", "numpy"],
)
def test_what_is_no_text_is_counted_as_other_and_never_raises(given):
    column = admit(given)
    assert column.tally(["a", "c"]) == ([1, 0], 2)
    assert column.nulls() == 0


@pytest.mark.parametrize("given", [np.array([], dtype=str), np.array([], dtype="U7"), np.array([""])[:0]])
def test_a_text_array_without_rows_is_tallied(given):
    assert admit(given).tally(["a"]) == ([0], 0)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_every_arrow_text_is_tallied(kind):
    assert admit(pa.array(["a", None, "b", "a"], kind)).tally(["a", "c"]) == ([2, 0], 1)
    assert admit(pa.array(["a", None, "b", "a"], kind)).nulls() == 1
