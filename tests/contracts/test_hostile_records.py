"""A table is refused by its types or answered: no stored value decides, in any column, role or engine.

Each table is compared with one of the same types that holds zeros: what is admitted, the error, the charge,
all warnings and all that is written to the terminal must be the same.
"""

import datetime as dt
import os
import tempfile
import uuid
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.contracts.hostile_records import BYTES, RECORDS, records
from tests.engines import SPARK

import sfumato as sf
from sfumato.data.admission import admit
from sfumato.data.lazy_table import LazyTable
from sfumato.data.tables import open_table
from sfumato.laws import SeededBits

BUDGET = sf.PureDP(1)
MANY = sf.PureDP(10_000)
FOLDER = tempfile.TemporaryDirectory()
BOUNDS = {
    "date": (dt.date(2000, 1, 1), dt.date(2020, 1, 1)),
    "datetime": (dt.datetime(2000, 1, 1), dt.datetime(2020, 1, 1)),
}
WHOLE = (0, 1, 2**53 + 1, 2**63 - 1, -(2**63))
CATEGORIES = {"text": ("a", "b", "c", "d"), "boolean": (False, True), "integer": WHOLE, "real": (0, 1)}
COUNT = sf.Count(budget=BUDGET, column="v", equals=1)
MEAN = sf.Mean(budget=BUDGET, column="v", bounds=(0, 10))


# --- engines --------------------------------------------------------------------------------------


def duckdb_table(table: pa.Table) -> Any:
    connection = duckdb.connect()
    connection.register("given", table)
    connection.execute("CREATE TABLE held AS SELECT * FROM given")
    connection.unregister("given")
    return connection.table("held")


def duckdb_view(table: pa.Table) -> Any:
    connection = duckdb.connect()
    connection.register("given", table)
    return connection.table("given")


def parquet(table: pa.Table) -> str:
    path = f"{FOLDER.name}/{uuid.uuid4()}.parquet"
    pq.write_table(table, path)
    return path


def spark_frame(table: pa.Table) -> Any:
    frame = SPARK.session().createDataFrame(table)
    assert frame.sparkSession.conf.get("spark.sql.ansi.enabled") == "true"
    return frame


@dataclass(frozen=True)
class Engine:
    """How an engine gets a table, which types it cannot hold, and which values its own reader refuses."""

    made: Callable[[pa.Table], Any]
    missing: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    # Which columns questions are about that take long, but in the slow tests, and which ids.
    few: tuple[str, ...] = field(default=tuple(RECORDS))
    ids: tuple[str, ...] = field(default=tuple(RECORDS))

    @property
    def held(self) -> list[str]:
        return [name for name in RECORDS if not name.startswith(self.missing)]

    def read(self, among: tuple[str, ...] = tuple(RECORDS)) -> list[str]:
        return [name for name in self.held if name not in self.unread and name in among]


FEW = (
    *("date32", "timestamp s", "timestamp ms", "timestamp us", "timestamp ns", "timestamp us UTC"),
    *(
        "decimal128",
        "decimal128 beyond its digits",
        "float64",
        "uint64",
        "string",
        "dictionary",
        "json",
        "null",
    ),
)
STORED = ("float64", "decimal128", "timestamp us", "timestamp us UTC", "null")
IDS = ("float64", "decimal128", "decimal128 beyond its digits", "uint64", "string", "timestamp us", "null")
ODD_ZONES = ("timestamp us +14:30", "timestamp us Mars", "timestamp us no zone")
NOT_POLARS = ("tens", "decimal256", *ODD_ZONES, "interval", "dictionary with codes", "run ends", "union")
NOT_DUCKDB = ("float16", "tens", "decimal256", "dictionary with codes")
# DuckDB and Spark have no types for these, or refuse the values when a table is filled.
NOT_HELD_BY_DUCKDB = (
    *NOT_DUCKDB,
    *("timestamp s UTC", "timestamp ms UTC", "duration s", "duration ms"),
    *("string", "large string", "dictionary", "wide dictionary", "json"),
)
NOT_SPARK = (
    *("uint", "float16", "tens", "decimal256", "date64", "time32", "time64"),
    *("decimal32 beyond", "decimal64 beyond", "decimal128 beyond", "short decimal128 beyond"),
    *("timestamp s", "timestamp ms", "timestamp ns", "duration s", "duration ms", "duration ns", "interval"),
    *(
        "string view",
        "binary view",
        "dictionary with",
        "run ends",
        "uuid",
        "json",
        "bool8",
        "opaque",
        "union",
    ),
)
# Parquet has no types for these, and its readers check that text is UTF-8.
NOT_PARQUET = (
    *(
        "tens",
        "decimal256",
        "timestamp s",
        "interval",
        "dictionary",
        "wide",
        "struct of",
        "run ends",
        "union",
    ),
)
TEXT = ("string", "large string", "string view")
ENGINES = {
    "pyarrow": Engine(lambda table: table),
    "pandas arrow": Engine(lambda table: table.to_pandas(types_mapper=pd.ArrowDtype)),
    "polars": Engine(pl.from_arrow, NOT_POLARS),
    "polars lazy": Engine(lambda table: pl.from_arrow(table).lazy(), NOT_POLARS, (), FEW, IDS),
    "polars parquet": Engine(
        lambda table: pl.scan_parquet(parquet(table)), (*NOT_PARQUET, *ODD_ZONES), TEXT, STORED, ("float64",)
    ),
    "duckdb": Engine(duckdb_table, NOT_HELD_BY_DUCKDB, (), FEW, IDS),
    # Instants are microseconds there, which 64 bits do not hold of the first two. The decimal is read as what
    # the memory held before, and two passes may differ.
    "duckdb arrow": Engine(
        duckdb_view,
        NOT_DUCKDB,
        ("timestamp s UTC", "timestamp ms UTC", "short decimal128 beyond its digits"),
        ("string", "dictionary"),
        ("string",),
    ),
    "duckdb parquet": Engine(
        lambda table: duckdb.connect().read_parquet(parquet(table)),
        NOT_PARQUET,
        ("timestamp ms", "timestamp ms UTC", *TEXT, "json"),
        STORED,
        ("float64",),
    ),
    "spark": Engine(spark_frame, NOT_SPARK, (), (*STORED, "date32", "string"), ("float64", "string")),
    "spark parquet": Engine(
        lambda table: SPARK.session().read.parquet(parquet(table)),
        (*NOT_PARQUET, "float16", "time32", "time64", "timestamp ns", "uuid"),
        ("timestamp ms", "timestamp ms UTC", "decimal128 beyond its digits"),
        ("float64",),
        ("timestamp us",),
    ),
}


@pytest.fixture(autouse=True, scope="module")
def files_are_removed():
    yield
    FOLDER.cleanup()


@lru_cache
def table(engine: str, *, hostile: bool) -> Any:
    return ENGINES[engine].made(records(ENGINES[engine].held, hostile=hostile))


# --- outcomes -------------------------------------------------------------------------------------


def outcome(capfd: Any, ask: Callable[[], Any]) -> tuple[Any, ...]:
    """What is told of an attempt: its result or error, the warnings, and what is written."""
    capfd.readouterr()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            result = ask()
        except BaseException as error:
            result = (type(error).__name__, str(error))
    return result, [str(each.message) for each in warned], capfd.readouterr()


def kinds(data: sf.Dataset, names: Any) -> dict[str, Any]:
    """What every column is admitted as, or the refusal."""
    found = {}
    for name in names:
        try:
            column = data.column(name)
            found[name] = (column.kind, column.reads)
        except sf.SfumatoError as error:
            found[name] = str(error)
    return found


def values(name: str, kind: str, reads: str) -> list[sf.Question]:
    about = {"budget": BUDGET, "column": name}
    asked: list[Any] = [sf.Count(**about)]
    if kind == "text":
        asked += [sf.Histogram(**about, categories=CATEGORIES["text"], other=True)]
        asked += [sf.Histogram(**about, categories=("a",))]
    elif kind == "boolean":
        asked += [sf.Proportion(**about)]
    else:
        about["bounds"] = BOUNDS.get(reads, (0, 10))
        asked += [
            sf.Mean(**about),
            sf.Quantiles(**about, probs=(0.5,), n_hint=8),
            sf.Histogram(**about, bins=3),
        ]
        if reads == "number" and kind != "unknown":
            about = {"budget": BUDGET, "column": name, "categories": CATEGORIES[kind]}
            asked += [sf.Histogram(**about, other=True)]
    # The last one takes rows out of the column first.
    return [*(sf.Question(query=each) for each in asked), sf.Question(query=asked[-1], where={"v": 1})]


def filters(name: str, kind: str, reads: str) -> list[sf.Question]:
    column = sf.col(name)
    where: list[Any]
    if kind == "text":
        where = [{name: "a"}, column == "a"]
    elif kind == "boolean":
        where = [{name: True}, column]
    else:
        where = [{name: sf.Between(*BOUNDS.get(reads, (0, 10)))}]
        if reads != "number":
            where += [column.year() + column.month() + column.weekday() > 2000]
        elif kind != "unknown":
            where += [{name: CATEGORIES[kind]}, abs(column) / sf.col("v") * 2 > 3]
    return [sf.Question(query=COUNT, where=each) for each in where]


def groups(name: str, kind: str, reads: str) -> list[sf.Question]:
    if reads != "number" or kind == "unknown":
        return []
    found = sf.Groups(keys="private")
    query = sf.Count(budget=sf.ApproxDP(1, 1e-6), column="v")
    return [sf.Question(query=COUNT, by=[name]), sf.Question(query=query, by=[name], groups=found)]


def declared(admitted: dict[str, Any]) -> dict[str, sf.Field]:
    return {
        name: sf.Field(categories=CATEGORIES[each[0]])
        for name, each in admitted.items()
        if each[1:] == ("number",) and each[0] in CATEGORIES
    }


def answered(native: Any, names: Any, asked: Any, ledger: Any = None) -> Any:
    """Ask about every column that is admitted, at once; what was admitted, and what was charged."""
    about = {"unit": "row", "neighbours": "add-remove"}
    admitted = kinds(sf.Dataset(native, **about), names)
    data = sf.Dataset(native, **about, schema=declared(admitted))
    readable = {name: each for name, each in admitted.items() if not isinstance(each, str)}
    questions = [question for name, each in readable.items() for question in asked(name, *each)]
    session = sf.Session(data, budget=sf.ApproxDP(10_000, 0.5), ledger=ledger, bits=SeededBits(1))
    # The first one is about no hostile column, as those of some types have no question.
    session.answer_all([sf.Question(query=COUNT), *questions])
    return admitted, session.spent


def bystanders(native: Any) -> Any:
    """Ask about columns beside the hostile ones, with rows as units and with ids."""
    spent = []
    for about in ({"unit": "row"}, {"unit": "u", "rows_per_unit": 1}):
        data = sf.Dataset(native, neighbours="add-remove", **about)
        session = sf.Session(data, budget=MANY, bits=SeededBits(1))
        session.answer_all([sf.Question(query=COUNT), sf.Question(query=MEAN)])
        spent.append(session.spent)
    return spent


def units(native: Any, names: Any) -> Any:
    """Make each column the id, if it can be one."""
    found = {}
    for name in names:
        try:
            about = {"unit": name, "rows_per_unit": 1, "groups_per_unit": 1, "neighbours": "add-remove"}
            data = sf.Dataset(native, **about, schema={"v": sf.Field(categories=(0, 1))})
        except sf.SfumatoError as error:
            found[name] = str(error)
            continue
        session = sf.Session(data, budget=MANY, bits=SeededBits(1))
        session.answer_by(sf.Sum(budget=BUDGET, column="u", bounds=(0, 10)), ["v"])
        found[name] = session.spent
    return found


def fingerprinted(native: Any) -> int:
    """The fingerprint that goes with a charge, by its length."""
    return len(sf.Dataset(native, unit="row", neighbours="add-remove").fingerprint(bytes(32)))


ROLES: dict[str, Callable[[Any, list[str], list[str]], Any]] = {
    "a value": lambda native, names, ids: answered(native, names, values),
    "a filter": lambda native, names, ids: answered(native, names, filters),
    "a group": lambda native, names, ids: answered(native, names, groups),
    "an id": lambda native, names, ids: units(native, ids),
    "not asked about": lambda native, names, ids: bystanders(native),
    "fingerprinted": lambda native, names, ids: fingerprinted(native),
}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("engine", ENGINES)
def test_no_stored_value_decides_what_is_told(engine, role, capfd):
    held = ENGINES[engine]
    assert_nothing_is_told(engine, role, held.read(held.few), held.read(held.ids), capfd)


def assert_nothing_is_told(engine, role, names, ids, capfd):
    natives = [table(engine, hostile=hostile) for hostile in (True, False)]
    assert_same(*(outcome(capfd, lambda n=n: ROLES[role](n, names, ids)) for n in natives))


def assert_same(found, harmless):
    assert found == harmless
    # Neither was refused, and nothing was said.
    (result, warned, written) = found
    assert not (isinstance(result, tuple) and isinstance(result[1], str)), result
    assert (warned, tuple(written)) == ([], ("", ""))


@pytest.mark.slow
@pytest.mark.parametrize("role", ["a value", "a filter", "a group", "an id"])
@pytest.mark.parametrize("engine", [name for name, engine in ENGINES.items() if engine.few != tuple(RECORDS)])
def test_no_stored_value_of_any_type_decides_what_is_told(engine, role, capfd):
    every = ENGINES[engine].read()
    assert_nothing_is_told(engine, role, every, every, capfd)


# --- files that are opened here -------------------------------------------------------------------


def arrow_file(table: pa.Table) -> str:
    path = f"{FOLDER.name}/{uuid.uuid4()}.arrow"
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table)
    return path


KEPT = ("int", "uint", "float", "decimal", "short decimal", "bool", "date", "timestamp", *TEXT, "dictionary")
FAR = ("decimal128 beyond its digits", "timestamp ms", "timestamp ms UTC", "string")
# Polars tells the types of all files, and has none for these.
UNFILED = ("interval", "decimal256", "bool8", *ODD_ZONES, "dictionary of integers")
FORMATS = {"parquet": (parquet, NOT_PARQUET), "arrow": (arrow_file, ())}
SPARK_FILES = {
    "parquet": FAR,
    "arrow": ("date64", "timestamp s", "timestamp ns", "dictionary with codes beyond it", *FAR),
}
WAYS = (None, "polars", "duckdb", "spark")


def filed(form: str, way: str | None, names: Any = tuple(RECORDS)) -> list[str]:
    missing = (*UNFILED, *FORMATS[form][1], *(("float16",) if (form, way) == ("arrow", "duckdb") else ()))
    names = SPARK_FILES[form] if way == "spark" else names
    return [name for name in names if name.startswith(KEPT) and not name.startswith(missing)]


@lru_cache
def written(form: str, names: tuple[str, ...], *, hostile: bool) -> str:
    return FORMATS[form][0](records(names, hostile=hostile))


def opened(form: str, way: Any, names: list[str], schema: Any = None, *, hostile: bool = True) -> Any:
    path = written(form, tuple(names), hostile=hostile)
    return open_table(path, schema or {}, columns=[*names, "v", "u"], engine=way)


def cases() -> list[Any]:
    """Ways and roles; Spark takes long, and has but one role outside of the slow tests."""
    roles = ["a value", "a filter", "a group", "an id", "not asked about"]
    found = [(way, role) for way in WAYS for role in roles]
    slow = [pytest.mark.slow]
    return [
        pytest.param(*each, marks=slow if each[0] == "spark" and each[1] != "a value" else [])
        for each in found
    ]


@pytest.mark.parametrize(("way", "role"), cases())
@pytest.mark.parametrize("form", FORMATS)
def test_no_stored_value_decides_what_is_told_of_a_file(form, way, role, capfd):
    if way == "spark":
        SPARK.session()  # it writes to the terminal when it starts
    names = filed(form, way)
    assert {"string", "timestamp ms", "decimal128 beyond its digits"} <= {*names}
    ids = [name for name in names if name in IDS]

    def ask(hostile):
        return ROLES[role](opened(form, way, names, hostile=hostile), names, ids)

    assert_same(*(outcome(capfd, lambda hostile=hostile: ask(hostile)) for hostile in (True, False)))


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", FORMATS)
def test_text_of_a_file_that_is_not_utf_8_is_what_it_is_in_a_table(form, way, listed):
    schema = {"string": sf.Field(categories=("a", "", "b"))} if listed else None
    answers = []
    for native in (records(["string"], hostile=True), opened(form, way, ["string"], schema)):
        data = sf.Dataset(native, unit="row", neighbours="add-remove")
        about = {"column": "string", "categories": ("a", "", "b"), "other": True}
        found = sf.Session(data, budget=MANY).answer(sf.Histogram(budget=MANY, **about))
        answers.append([round(value) for value in found.value])
    assert answers[0] == answers[1] == [1, 1, 0, 5]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", FORMATS)
def test_ids_of_a_file_that_are_not_utf_8_are_told_apart(form, way):
    data = sf.Dataset(opened(form, way, ["string"]), unit="string", rows_per_unit=1, neighbours="add-remove")
    found = sf.Session(data, budget=MANY).answer(sf.Count(budget=MANY, column="v"))
    assert round(found.value) == len(BYTES)


# --- the same numbers -----------------------------------------------------------------------------


def bits_of(numbers: Any) -> list[str]:
    return ["null" if each is None or np.isnan(each) else float(each).hex() for each in numbers]


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "pyarrow"])
def test_extremes_are_the_same_numbers_in_every_engine(engine):
    # Stored decimals with more digits than their type has are no values of it; DuckDB and Polars make other
    # types of dates in milliseconds, and Polars milliseconds of seconds.
    changed = ("date64", "timestamp s") if "polars" in engine else ("date64",)
    names = [name for name in ENGINES[engine].read() if "beyond" not in name and not name.startswith(changed)]
    plain = records(names, hostile=True)
    native = table(engine, hostile=True)
    admitted = kinds(sf.Dataset(native, unit="row", neighbours="add-remove"), names)
    read = {}
    for name in names:
        try:
            column = admit(plain[name], name)
        except sf.SfumatoError:
            continue
        if column.kind not in ("text", "unknown") and not isinstance(admitted[name], str):
            read[name] = bits_of(np.concatenate(list(column.chunks())))
    frame = nw.from_native(native)
    if isinstance(frame, nw.LazyFrame):
        lazy = LazyTable(frame)
        asked = [lazy.number(name).alias(f"n{place}") for place, name in enumerate(read)]
        held = lazy.only(read).select(*asked).collect("pyarrow")
        found = {name: bits_of(held[f"n{place}"].to_list()) for place, name in enumerate(read)}
    else:
        columns = {name: admit(frame[name].to_native(), name) for name in read}
        found = {name: bits_of(np.concatenate(list(each.chunks()))) for name, each in columns.items()}
    # Rows of Spark are in no order.
    assert {name: sorted(bits) for name, bits in found.items()} == {
        name: sorted(bits) for name, bits in read.items()
    }
    assert len(found) >= 10


# --- objects --------------------------------------------------------------------------------------


class Odd:
    """An object that raises whatever it is asked."""

    def _raise(self, *arguments: Any, **options: Any) -> Any:
        raise RuntimeError("CANARY")

    __eq__ = __hash__ = __float__ = __int__ = __index__ = __bool__ = __len__ = __iter__ = _raise
    __str__ = __repr__ = __array__ = __lt__ = __gt__ = __getattr__ = _raise
    __class__ = property(_raise)  # type: ignore[assignment]


class OddNumber(float):
    """A number with methods that raise."""

    __float__ = __gt__ = __lt__ = __eq__ = __hash__ = __str__ = __repr__ = Odd._raise
    __class__ = property(Odd._raise)  # type: ignore[assignment]


class OddInteger(int):
    """The same, beyond float64."""

    __float__ = __gt__ = __lt__ = __eq__ = __hash__ = __str__ = __repr__ = Odd._raise


class OddText(str):
    """Text with methods that raise."""

    __eq__ = __hash__ = __str__ = __repr__ = __len__ = __iter__ = __array__ = encode = Odd._raise


def objects(items: Any) -> np.ndarray:
    return np.fromiter(items, dtype=object, count=len(items))


def _patterns(kind: str, harmless: float = 0.0) -> tuple[Any, Any]:
    """Floats of a type of NumPy from all patterns of bits that matter."""
    width = np.dtype(kind).itemsize
    top = {2: 0x7C00, 4: 0x7F800000, 8: 0x7FF0 << 48}[width]
    bits = [top | 1, (top << 1) | 3, top, 1, 0, top - 1, top | 77]
    return np.array(bits, f"u{width}").view(kind), np.full(len(bits), harmless, kind)


ODD = [Odd(), OddText("a"), 10**5000, b"\xff", [1, [2]], pd.NA, pd.NaT, Decimal("sNaN"), Fraction(1, 3)]
ODD += [
    np.float32("nan"),
    np.datetime64("NaT"),
    OddNumber("nan"),
    OddInteger(10**400),
    "\ud800",
    float("nan"),
]
WORDS = ["a"] * len(ODD)
NUMBERS = [
    OddNumber(1),
    OddInteger(10**400),
    10**5000,
    Decimal("sNaN"),
    Fraction(10) ** 400,
    np.float32("nan"),
]
FARTHEST = np.array([-(2**63) + 1, 2**63 - 1, -(2**63), 0])
ZEROS = np.zeros(4, dtype=np.int64)
OBJECTS: dict[str, tuple[Any, Any]] = {
    "NumPy objects": (objects(ODD), objects(WORDS)),
    "pandas objects": (pd.Series(objects(ODD), dtype=object), pd.Series(objects(WORDS), dtype=object)),
    "a list of numbers": (NUMBERS, [1.0] * len(NUMBERS)),
    "a list of text": ([OddText("a"), "\ud800", None, "b"], ["a"] * 4),
    "pandas categories": (
        pd.Series(
            pd.Categorical.from_codes([0, 1, -1], pd.Index(objects(["\ud800", b"\xff"]), dtype=object))
        ),
        pd.Series(pd.Categorical.from_codes([1, 1, -1], pd.Index(objects(["a", "b"]), dtype=object))),
    ),
    **{f"NumPy {kind}": _patterns(kind) for kind in ("float16", "float32", "float64")},
    **{f"pandas {kind}": tuple(map(pd.Series, _patterns(kind))) for kind in ("float32", "float64")},
    "pandas Float64": tuple(pd.Series(each).astype("Float64") for each in _patterns("float64")),
    "NumPy longdouble": (np.array(["1e4000", "-1e4000", "nan"], np.longdouble), np.zeros(3, np.longdouble)),
    **{
        f"NumPy datetime64[{unit}]": (FARTHEST.view(f"M8[{unit}]"), ZEROS.view(f"M8[{unit}]"))
        for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")
    },
    **{
        f"pandas datetime64[{unit}, {zone}]": tuple(
            pd.Series(each.view(f"M8[{unit}]")).dt.tz_localize("UTC").dt.tz_convert(zone)
            for each in (FARTHEST, ZEROS)
        )
        for unit in ("s", "us", "ns")
        for zone in ("UTC", "Europe/Paris")
    },
    "NumPy text": (
        np.array([0x110000, 0xD800, 0xFFFFFFFF], np.uint32).view("U1"),
        np.array(["a", "a", "a"], dtype="U1"),
    ),
    "Polars Object": (pl.Series([{1}, 10**50], dtype=pl.Object), pl.Series(["a", "a"], dtype=pl.Object)),
    "Polars Int128": tuple(pl.Series(each, dtype=pl.Int128) for each in ([2**127 - 1, -(2**127)], [0, 0])),
    "Polars lists of dates": tuple(
        pl.Series(each).cast(pl.Date).reshape((2, 1)).arr.to_list()
        for each in ([2**31 - 1, -(2**31)], [0, 0])
    ),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_no_object_or_pattern_of_bits_decides_what_is_told(name, capfd):
    found = []
    for column in OBJECTS[name]:
        rows = len(column)
        plain = {"v": np.ones(rows, dtype=np.int64), "u": np.arange(rows)}

        def ask(column=column, plain=plain):
            told = [answered({**plain, "x": column}, ["x"], asked) for asked in (values, filters, groups)]
            data = sf.Dataset({**plain, "x": column}, unit="row", neighbours="add-remove")
            return (
                told,
                bystanders({**plain, "x": column}),
                units({**plain, "x": column}, ["x"]),
                len(data.fingerprint(bytes(32))),
            )

        found.append(outcome(capfd, ask))
    assert found[0] == found[1]
    assert len(found[0][0]) == 4, found[0][0]
    assert found[0][1:] == ([], ("", ""))


def test_the_comparison_can_fail(capfd):
    def warn():
        warnings.warn("CANARY", stacklevel=1)

    assert outcome(capfd, warn) != outcome(capfd, lambda: None)
    assert outcome(capfd, lambda: os.write(2, b"CANARY") and None) != outcome(capfd, lambda: None)
    assert outcome(capfd, lambda: 1 / 0) != outcome(capfd, lambda: None)


@pytest.mark.parametrize("engine", ["pyarrow", "pandas arrow", "polars"])
def test_a_charge_to_a_database_comes_for_every_table(engine, tmp_path, capfd):
    # A fingerprint of the table goes with the charge.
    found = []
    for hostile in (True, False):
        with sf.SqlLedger(f"sqlite:///{tmp_path}/{hostile}.db", anchor=tmp_path / f"{hostile}") as ledger:
            account = ledger.open("data", cap=sf.PureDP(1), neighbours="add-remove")

            def ask(hostile=hostile, account=account):
                native = table(engine, hostile=hostile)
                data = sf.Dataset(native, unit="row", neighbours="add-remove")
                session = sf.Session(data, budget=sf.PureDP(1), ledger=account)
                session.answer(COUNT)
                return session.spent

            found.append(outcome(capfd, ask))
    assert found[0] == found[1]
    assert found[0][0].epsilon == 1
