"""Data sets: tables of any library, with their public facts checked before any query."""

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato.data.dataset import Dataset
from sfumato.data.field import Field
from sfumato.errors import InvalidParameter, MissingExtra, NotSupported, SchemaMismatch, SfumatoError
from sfumato.privacy import PureDP
from sfumato.session import Session

FRAMES = {
    "mapping": {"age": np.array([31, 45]), "name": ["x", "y"]},
    "mapping of series": {"age": pl.Series([31, 45]), "name": pl.Series(["x", "y"])},
    "pandas": pd.DataFrame({"age": [31, 45], "name": ["x", "y"]}),
    "polars": pl.DataFrame({"age": [31, 45], "name": ["x", "y"]}),
    "arrow": pa.table({"age": [31, 45], "name": ["x", "y"]}),
}


def dataset(frame, **facts):
    return Dataset(frame, **{"unit": "row", "neighbours": "add-remove", **facts})


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_every_kind_of_table_gives_the_same_columns(frame):
    data = dataset(frame, schema={"age": Field(bounds=(0, 120))})
    age, name = data.column("age"), data.column("name")
    assert (age.name, age.kind, age.rows) == ("age", "integer", 2)
    assert (name.name, name.kind, name.rows) == ("name", "text", 2)
    assert np.concatenate(list(age.chunks())).tolist() == [31, 45]
    assert data.field("age").bounds == (0, 120)
    assert data.field("name") == Field()


def test_a_column_is_called_what_the_data_set_calls_it():
    assert dataset({"age": pd.Series([1], name="other")}).column("age").name == "age"


def test_column_names_that_are_no_text_are_used_as_text():
    data = dataset(pd.DataFrame([[1, 2.5]]))
    assert (data.column("0").kind, data.column("1").kind) == ("integer", "real")
    pairs = pd.DataFrame([[1, 2.5]], columns=pd.MultiIndex.from_tuples([("a", "x"), ("b", "y")]))
    assert dataset(pairs).column("('b', 'y')").kind == "real"


DUPLICATES = {
    "pandas": pd.DataFrame([[1, 2]], columns=["a", "a"]),
    "arrow": pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]),
    "mapping": {1: [1], "1": [2]},
    "pandas of two types": pd.DataFrame([[1, 2]], columns=[1, "1"]),
}


@pytest.mark.parametrize("frame", DUPLICATES.values(), ids=DUPLICATES)
def test_two_columns_of_one_name_are_refused(frame):
    with pytest.raises(SchemaMismatch, match=r"^frame must have distinct column names"):
        dataset(frame)


BAD = {
    "no table": (lambda: dataset(None), "^frame must be "),
    "a list": (lambda: dataset([987654.321]), "^frame must be .*got list$"),
    "a series": (lambda: dataset(pl.Series([1])), "^frame must be .*got Series$"),
    "unequal lengths": (lambda: dataset({"a": [1], "b": [1, 2]}), "^frame must have columns of one length"),
    "a number": (lambda: dataset({"a": 987654.321}), "^column 'a' must be an array, got float$"),
    "no dimension": (lambda: dataset({"a": np.array(3.0)}), "^column 'a' must be an array, got ndarray$"),
    "nothing": (lambda: dataset({"a": None}), "^column 'a' must be an array, got NoneType$"),
    "another unit": (
        lambda: dataset({"a": [1]}, unit="person"),
        "^unit must be 'row' or the name of an id column, got unit='person'; the columns are 'a'$",
    ),
    "no unit": (lambda: dataset({"a": [1]}, unit=None), "^unit must be 'row' or the name of an id column"),
    "no relation": (lambda: dataset({"a": [1]}, neighbours=None), "^neighbours must be one of"),
    "another relation": (lambda: dataset({"a": [1]}, neighbours="bounded"), "^neighbours must be one of"),
    "no name": (lambda: dataset({"a": [1]}, name=""), "^name must be 1 to 200 printable"),
    "two lines": (lambda: dataset({"a": [1]}, name="a\nb"), r"^name must be .*got name='a\\nb'$"),
    "a number as name": (lambda: dataset({"a": [1]}, name=5), "^name must be .*got name=5$"),
    "no schema": (lambda: dataset({"a": [1]}, schema=["a"]), "^schema must map names to Field"),
    "no field": (lambda: dataset({"a": [1]}, schema={"a": (0, 1)}), "^schema must map names to Field"),
    "unknown column": (lambda: dataset({"a": [1]}, schema={"b": Field()}), "^column 'b' is not in the data"),
    "unhashable column": (lambda: dataset({"a": [1]}).column(["a"]), r"^column \['a'\] is not in the data"),
    "no columns": (
        lambda: dataset({}).column("a"),
        "^column 'a' is not in the data, whose columns are none$",
    ),
    "reversed bounds": (
        lambda: Field(bounds=(5, 1)),
        "^lower must be below upper, got lower=5.0, upper=1.0$",
    ),
    "one bound": (lambda: Field(bounds=5), "^bounds must be a pair"),
    "NaN bound": (lambda: Field(bounds=(0, float("nan"))), "^upper must be finite"),
    "unknown kind": (lambda: Field(kind="time"), "^kind must be one of 'integer', 'real', 'text', 'boolean'"),
    "unknown as kind": (lambda: Field(kind="unknown"), "^kind must be one of"),
    "no step": (lambda: Field(step=0), "^step must be positive, got step=0$"),
    "text as step": (lambda: Field(step="1"), "^step must be a number"),
    "a step of text": (lambda: Field(kind="text", step=1), "^step must be None for kind='text', got step=1$"),
    "bounds of booleans": (
        lambda: Field(kind="boolean", bounds=(0, 1)),
        r"^bounds must be None for kind='boolean', got bounds=\(0, 1\)$",
    ),
    "numbers of text": (
        lambda: Field(kind="text", categories=(1,)),
        "^categories must be str for kind='text'",
    ),
    "text of numbers": (
        lambda: Field(kind="integer", categories=("1",)),
        "^categories must be int for kind='integer'",
    ),
    "numbers of booleans": (
        lambda: Field(kind="boolean", categories=(0, 1)),
        "^categories must be bool for kind='boolean'",
    ),
    "another stored type": (
        lambda: dataset({"a": ["x"]}, schema={"a": Field(kind="integer")}),
        "^column 'a' is declared integer, but it stores text$",
    ),
    "unknown null rule": (lambda: Field(nulls="zero"), "^nulls must be one of"),
}


@pytest.mark.parametrize(("make", "message"), BAD.values(), ids=BAD)
def test_a_wrong_public_fact_is_refused_in_one_line(make, message):
    with pytest.raises((InvalidParameter, SchemaMismatch), match=message) as caught:
        make()
    assert isinstance(caught.value, SfumatoError)
    assert "\n" not in str(caught.value)
    assert "987654" not in str(caught.value)


def test_what_decides_privacy_has_no_default():
    with pytest.raises(TypeError, match="unit"):
        Dataset({"a": [1]}, neighbours="add-remove")
    with pytest.raises(TypeError, match="neighbours"):
        Dataset({"a": [1]}, unit="row")


def test_admission_reads_no_values():
    class Unread:
        def __len__(self):
            return 2

        def __iter__(self):
            raise AssertionError("read")

    data = dataset({"a": Unread()}, schema={"a": Field(bounds=(0, 1))})
    assert data.schema["a"].bounds == (0, 1)


def test_a_declared_kind_fits_what_can_store_it():
    stored = {
        "integer": [np.array([1]), [1], [None]],
        "real": [np.array([1]), np.array([1.5]), [None]],
        "text": [["a"], np.array(["a"]), [None]],
        "boolean": [[True], np.array([True]), [None]],
    }
    for kind, columns in stored.items():
        for values in columns:
            data = dataset({"a": values}, schema={"a": Field(kind=kind)})
            assert data.field("a").kind == kind
    for kind, other in (("text", [1.0]), ("boolean", [1]), ("integer", [True]), ("real", ["a"])):
        with pytest.raises(SchemaMismatch, match=f"^column 'a' is declared {kind}, but it stores "):
            dataset({"a": other}, schema={"a": Field(kind=kind)})


def test_a_field_keeps_its_facts():
    field = Field(bounds=(0, 120), nulls="drop", kind="real", step=0.5)
    assert (field.bounds, field.nulls, field.kind, field.step) == ((0, 120), "drop", "real", 0.5)
    assert Field(kind="integer", categories=(1, 2)).categories == (1, 2)
    # A step is read exactly, as it is written.
    assert Field(step=0.1).step == Fraction(1, 10)


def test_a_table_of_duckdb_without_pyarrow_is_refused_before_anything_is_asked(monkeypatch):
    duckdb = pytest.importorskip("duckdb")
    monkeypatch.setattr("sfumato.data.lazy_source.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="tables of duckdb need the package pyarrow"):
        dataset(duckdb.connect().sql("select 1 as a"))


def test_scores_of_a_table_in_an_engine_are_refused_before_the_charge():
    session = Session(dataset(pl.LazyFrame({"a": [1, 2]})), budget=PureDP(1))
    with pytest.raises(NotSupported, match="scores need a table in memory"):
        session.choose(["x"], lambda columns: [1.0], sensitivity=1, budget=PureDP(1))
    assert session.spent.epsilon == 0
