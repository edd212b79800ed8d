"""Coded columns: the same codes from any library, whatever the order of the rows; classes of equal rows."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.anonymity import definitions

from sfumato.anonymity.coding import coded_column
from sfumato.anonymity.partition import as_it_is, classes_of
from sfumato.anonymity.rows import cell, rows_of
from sfumato.errors import InvalidParameter, NotSupported, SchemaMismatch

NOON = datetime(2020, 2, 29, 12, 30, 1, 250_000)
COLUMNS = {
    "whole": ([3, 1, 2, 3, -7], True),
    "wide": ([3, 2**62, -(2**62), 3, 0], True),
    "real": ([0.5, -2.0, 0.5, 1e300, 3.25], True),
    "text": (["b", "a", "é", "b", "Z"], False),
    "flag": ([True, False, True, True, False], False),
    "day": (
        [date(2020, 1, 31), date(1999, 12, 31), date(2020, 1, 31), date(1, 1, 1), date(9999, 1, 1)],
        True,
    ),
    "moment": ([NOON, NOON - timedelta(days=1), NOON, datetime(1969, 1, 1), NOON], True),
}
WITH_NULL = {name: ([*values, None], ordered) for name, (values, ordered) in COLUMNS.items()}


def forms(values):
    """One column as every library holds it."""
    import pandas as pd
    import pyarrow as pa

    yield "list", {"x": values}
    yield "objects", {"x": np.array([*values, None], dtype=object)[:-1]}
    yield "polars", pl.DataFrame({"x": values})
    yield "lazy", pl.LazyFrame({"x": values})
    yield "series", {"x": pl.Series(values)}
    yield "arrow", pa.table({"x": values})
    yield "arrow array", {"x": pa.array(values)}
    yield "pandas", pd.DataFrame({"x": values})
    yield "pandas objects", pd.DataFrame({"x": pd.Series(values, dtype=object)})
    yield "narwhals", nw.from_native(pl.DataFrame({"x": values})).to_native()
    if None not in values and not isinstance(values[0], date):
        yield "array", {"x": np.array(values)}
    if None not in values and isinstance(values[0], date):
        moments = isinstance(values[0], datetime)
        yield "array", {"x": np.array(values, dtype="datetime64[us]" if moments else "datetime64[D]")}
    if isinstance(values[0], str):
        yield "category", pl.DataFrame({"x": pl.Series(values, dtype=pl.Categorical)})
        yield "pandas category", pd.DataFrame({"x": pd.Series(values, dtype="category")})
    if isinstance(values[0], int) and not isinstance(values[0], bool):
        yield "nullable", pd.DataFrame({"x": pd.Series(values, dtype="Int64")})
        yield "nullable by arrow", pd.DataFrame({"x": pd.Series(values, dtype="int64[pyarrow]")})


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("name", COLUMNS)
def test_every_library_gives_the_same_codes(name, nulls):
    values, ordered = (WITH_NULL if nulls else COLUMNS)[name]
    present = sorted({value for value in values if value is not None})
    expected = (*present, None) if nulls else tuple(present)
    for form, table in forms(values):
        if name == "wide" and nulls and form == "pandas":
            continue  # pandas itself makes floats of it
        (coded,) = rows_of(table, ["x"]).quasi
        assert coded.values == expected, form
        assert [coded.values[code] for code in coded.codes] == values, form
        assert coded.codes.dtype == np.int32
        kinds = {type(value) for value in coded.values}
        if not (nulls and form == "pandas"):  # which makes floats of whole numbers with nulls
            assert kinds == {type(value) for value in expected}, form
        assert coded.ordered == ordered, form
        assert coded.counts.sum() == len(values)


def test_null_and_nan_are_one_value():
    import pandas as pd

    for values in (
        [1.0, None, float("nan")],
        np.array([1.0, np.nan, np.nan]),
        pl.Series([1.0, None, float("nan")]),
        pd.Series([1.0, None, float("nan")]),
        np.ma.MaskedArray([1.0, np.nan, 3.0], mask=[0, 0, 1]),
        [Decimal(1), Decimal("nan"), None],
    ):
        (coded,) = rows_of({"x": values}, ["x"]).quasi
        assert coded.values == (1, None)
        assert coded.codes.tolist() == [0, 1, 1]


@pytest.mark.parametrize("values", [[None, None], pl.Series([None, None]), np.array([np.nan, np.nan])])
def test_a_column_of_nulls_has_one_value(values):
    (coded,) = rows_of({"x": values}, ["x"]).quasi
    assert coded.values == (None,)
    assert coded.codes.tolist() == [0, 0]


def test_zeros_are_one_and_show_no_sign():
    for values in ([-0.0, 0.0], [0.0, -0.0], np.array([-0.0, 0.0]), pl.Series([-0.0, 0.0])):
        (coded,) = rows_of({"x": values}, ["x"]).quasi
        assert coded.codes.tolist() == [0, 0]
        assert str(coded.values[0]) == "0.0"


def test_decimals_are_exact_and_one_whatever_their_digits():
    values = [Decimal("0.10"), Decimal("0.1"), Decimal("0.1000000000000000000000001")]
    for order in (values, values[::-1]):
        (coded,) = rows_of({"x": order}, ["x"]).quasi
        assert len(coded.values) == 2
        assert coded.ordered
    assert rows_of({"x": pl.Series(values)}, ["x"]).quasi[0].codes.tolist() == [0, 0, 1]


def test_instants_are_one_whatever_their_time_zone():
    import pandas as pd

    east = [datetime(2020, 1, 1, 12, tzinfo=UTC), datetime.fromisoformat("2020-01-01T14:00:00+02:00")]
    assert rows_of({"x": east}, ["x"]).quasi[0].codes.tolist() == [0, 0]
    zoned = pd.DataFrame({"x": pd.to_datetime(east, utc=True).tz_convert("Europe/Paris")})
    (coded,) = rows_of(zoned, ["x"]).quasi
    assert coded.values == (east[0],)


def test_numbers_that_mix_types_are_floats():
    (coded,) = rows_of({"x": [1, 2.5, Decimal("1.0"), np.int64(3)]}, ["x"]).quasi
    assert coded.values == (1.0, 2.5, 3.0)


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_does_not_change_values(seed):
    rng = np.random.default_rng(seed)
    for values, _ in WITH_NULL.values():
        column = [values[i] for i in rng.integers(0, len(values), 30)]
        order = rng.permutation(30)
        for make in (list, pl.Series):
            (plain,) = rows_of({"x": make(column)}, ["x"]).quasi
            (mixed,) = rows_of({"x": make([column[i] for i in order])}, ["x"]).quasi
            assert plain.values == mixed.values
            assert np.array_equal(plain.codes[order], mixed.codes)


def test_whole_numbers_far_apart_and_close_together_are_coded_alike():
    rng = np.random.default_rng(1)
    for span in (10, 10**4, 2**62):
        values = rng.integers(-span, span, 500)
        distinct, codes = np.unique(values, return_inverse=True)
        for column in (values, pl.Series(values), values.tolist()):
            (coded,) = rows_of({"x": column}, ["x"]).quasi
            assert coded.values == tuple(distinct.tolist())
            assert np.array_equal(coded.codes, codes)


SECRET = "Jeanne-d-Arc"


@pytest.mark.parametrize(
    ("table", "quasi", "sensitive", "error", "words"),
    [
        ({"x": [1]}, [], [], InvalidParameter, "at least one column"),
        ({"x": [1]}, "x", [], InvalidParameter, "list of column names"),
        ({"x": [1]}, [3], [], InvalidParameter, "list of column names"),
        ({"x": [1]}, ["y"], [], InvalidParameter, "columns of the table"),
        ({"x": [1]}, ["x"], ["y"], InvalidParameter, "columns of the table"),
        ({"x": [1]}, ["x", "x"], [], InvalidParameter, "each column once"),
        ({"x": [1]}, ["x"], ["x"], InvalidParameter, "each column once"),
        ({"x": []}, ["x"], [], InvalidParameter, "at least one row"),
        ({"x": [1.0, float("inf")]}, ["x"], [], InvalidParameter, "1 of its rows are infinite"),
        ({"x": [1, 10**400, 0.5]}, ["x"], [], InvalidParameter, "infinite"),
        ({"x": [1, SECRET]}, ["x"], [], SchemaMismatch, "only numbers"),
        ({"x": [Decimal(10**38), Decimal("0.1")]}, ["x"], [], SchemaMismatch, "at most 38 digits"),
        ({"x": [Decimal("1e-999999999")]}, ["x"], [], SchemaMismatch, "at most 38 digits"),
        ({"x": [True, 7]}, ["x"], [], SchemaMismatch, "only numbers"),
        ({"x": [{SECRET}]}, ["x"], [], SchemaMismatch, "only numbers"),
        ({"x": [date(2020, 1, 1), NOON]}, ["x"], [], SchemaMismatch, "only dates"),
        ({"x": pl.Series([[1], [2]])}, ["x"], [], SchemaMismatch, "not a number"),
        ({"x": pl.Series([timedelta(1)])}, ["x"], [], SchemaMismatch, "not a number"),
        ({"x": np.array([1j])}, ["x"], [], SchemaMismatch, "not a number"),
        ({"x": np.zeros((2, 2))}, ["x"], [], SchemaMismatch, "one-dimensional"),
        ({"x": [1], "y": [1, 2]}, ["x"], [], SchemaMismatch, "one length"),
        ({"x": 7}, ["x"], [], SchemaMismatch, "array"),
        ([1, 2], ["x"], [], InvalidParameter, "table must be"),
    ],
)
def test_what_cannot_be_read_is_refused_by_a_public_fact(table, quasi, sensitive, error, words):
    with pytest.raises(error, match=words) as raised:
        rows_of(table, quasi, sensitive)
    assert SECRET not in str(raised.value)


def test_columns_of_pandas_may_have_numbers_for_names_but_not_one_name_twice():
    import pandas as pd

    plain = pd.DataFrame([[7, 8, 9]], columns=[1, 0, "x"])
    assert [coded.values for coded in rows_of(plain, ["1", "0"]).quasi] == [(7,), (8,)]
    for names in (["a", "a"], [1, "1"]):
        with pytest.raises(SchemaMismatch, match="distinct column names"):
            rows_of(pd.DataFrame([[1, 2]], columns=names), [str(names[0])])


def test_a_table_in_an_engine_is_refused():
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        table = connection.sql("select 1 as x")
        with pytest.raises(NotSupported, match="row by row"):
            rows_of(table, ["x"])


@pytest.mark.parametrize("seed", range(20))
def test_classes_are_rows_of_equal_codes_in_the_order_of_codes(seed):
    rng = np.random.default_rng(seed)
    n, sizes = int(rng.integers(1, 60)), rng.integers(1, 5, int(rng.integers(1, 5))).tolist()
    columns = [rng.integers(0, size, n) for size in sizes]
    # Sizes far above the codes leave the dense way, and the 64 bits of one key.
    for given in (sizes, [size + 10**6 for size in sizes], [2**40] * len(sizes)):
        classes, keys = classes_of(columns, given)
        tuples = list(zip(*(column.tolist() for column in columns), strict=True))
        assert [tuple(key) for key in keys.tolist()] == sorted(set(tuples))
        assert [tuple(keys[c].tolist()) for c in classes] == tuples


def test_keys_beyond_64_bits_do_not_wrap_around():
    classes, keys = classes_of([np.array([0, 2**30]), np.array([0, 0])], [2**34, 2**34])
    assert classes.tolist() == [0, 1]
    assert keys.tolist() == [[0, 0], [2**30, 0]]


def test_a_table_as_it_is_shows_its_values_and_loses_nothing():
    table = {"age": [31.0, 58.5, 31.0, None], "sex": ["f", "m", "f", "m"]}
    found = as_it_is(rows_of(table, ["age", "sex"]))
    assert found.labels == (("31", "58.5", "null"), ("f", "m", "m"))
    assert found.classes.tolist() == [0, 1, 0, 2]
    assert found.sizes.tolist() == [2, 1, 1]
    assert (found.count, found.suppressed, found.n) == (3, 0, 4)
    assert not any(loss.any() for loss in found.losses)
    assert len(definitions.classes(table, ["age", "sex"])) == found.count


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (-3, "-3"),
        (1e300, "1e+300"),
        (Decimal("1E+3"), "1000"),
        (NOON, "2020-02-29 12:30:01.250000"),
    ],
)
def test_a_cell_shows_a_value_in_one_way(value, text):
    assert cell(value) == text


def test_an_instant_is_told_in_utc_whatever_holds_it():
    instants = pl.Series([datetime(2024, 1, 1, 0, 30), datetime(2024, 6, 1, 0, 30), None])
    berlin = instants.dt.replace_time_zone("Europe/Berlin")
    wanted = (datetime(2023, 12, 31, 23, 30, tzinfo=UTC), datetime(2024, 5, 31, 22, 30, tzinfo=UTC), None)
    for column in (berlin, berlin.to_pandas(), berlin.to_arrow(), berlin.to_list()):
        found = coded_column("admitted", column)
        assert found.values == wanted
        assert found.codes.tolist() == [0, 1, 2]


def test_sparse_columns_are_columns():
    sparse = pd.Series(pd.arrays.SparseArray([0, 0, 2, 1]))
    assert coded_column("visits", sparse).values == (0, 1, 2)


def test_numbers_kept_as_an_array_read_like_a_tuple():
    found = coded_column("age", pl.Series([40, None, 20, 30, 20])).values
    assert found == (20, 30, 40, None)
    assert (found[0], found[-1], found[1:3], len(found)) == (20, None, (30, 40), 4)
    assert [type(value) for value in found] == [int, int, int, type(None)]
    assert hash(found) == hash((20, 30, 40, None))
    with pytest.raises(IndexError):
        found[4]
