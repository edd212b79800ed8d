"""What public facts rule out is refused before anything is charged."""

import datetime as dt
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import sfumato as sf
from sfumato.checks import MAX_NAME
from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.laws import SeededBits
from sfumato.privacy import Amount

BUDGET = sf.PureDP(1)
TEXTS = {"half of a surrogate pair": "\ud800", "a text that is too long": "x" * (MAX_NAME + 1)}


def people(*names, **options):
    frame = {"x": np.arange(4.0), "t": ["a", "b", "a", "b"], **{name: np.arange(4) for name in names}}
    return sf.Dataset(frame, **{"unit": "row", "neighbours": "add-remove", **options})


def of_session(ask):
    """The same in a session about a table with a column of this name, where nothing may be charged."""

    def asked(text):
        with sf.Session(people(text), budget=sf.PureDP(10)) as session:
            try:
                ask(session, text)
            finally:
                assert session.spent == Amount()

    return asked


count = sf.Count(column="x", budget=BUDGET)
ENTRIES = {
    "a category": lambda text: sf.Field(categories=("a", text)),
    "a category of a histogram": lambda text: sf.Histogram(budget=BUDGET, categories=(text,)),
    "a category of a choice": lambda text: sf.MostCommon(budget=BUDGET, categories=(text, "a")),
    "a category that is counted": lambda text: sf.Count(budget=BUDGET, equals=text),
    "a candidate": lambda text: sf.Choose(candidates=("a", text), sensitivity=1, budget=BUDGET),
    "a column": lambda text: sf.Mean(column=text, bounds=(0, 1), budget=BUDGET),
    "a column of an expression": lambda text: sf.col(text),
    "a group": lambda text: sf.Question(query=count, by=[text]),
    "a filter": lambda text: sf.Question(query=count, where={text: 1}),
    "a category of a filter": lambda text: sf.Question(query=count, where={"t": ["a", text]}),
    "a result": lambda text: sf.Question(query=count, name=text),
    "a data set": lambda text: people(name=text),
    "an id column": lambda text: people(text, unit=text, rows_per_unit=1),
    "a declared column": lambda text: people(text, schema={text: sf.Field(bounds=(0, 1))}),
    "a derived column": lambda text: people(derived={text: sf.col("x") * 2}),
    "a filter of a session": of_session(lambda session, text: session.answer(count, where={text: 1})),
    "groups of a session": of_session(lambda session, text: session.answer_by(count, [text])),
    "a stream": of_session(
        lambda session, text: session.open_stream(threshold=1, budget=BUDGET, column=text)
    ),
    "candidates of a session": of_session(
        lambda session, text: session.choose([text], lambda columns: [0], sensitivity=1, budget=BUDGET)
    ),
    "weights": of_session(
        lambda session, text: session.weights({text: [0, 1]}, features=[text], budget=BUDGET)
    ),
    "a series": lambda text: sf.mean(pd.Series([1.0, 2.0], name=text), epsilon=1, bounds=(0, 1)),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_text_that_cannot_be_stored_or_sent_is_refused(entry, text):
    with pytest.raises(InvalidParameter) as refused:
        entry(text)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("text", ["\ud800", "a\0b", ""], ids=ascii)
def test_names_that_a_ledger_keeps_are_printable(text, tmp_path):
    with sf.SqlLedger(f"{tmp_path}/ledger.db", anchor=f"{tmp_path}/anchor") as ledger:
        opened = ledger.open("people", cap=BUDGET, neighbours="add-remove")
        session = sf.Session(people(name="people"), budget=BUDGET, ledger=opened)
        refused = [
            lambda: ledger.open(text, cap=BUDGET, neighbours="add-remove"),
            lambda: ledger.open("others", cap=BUDGET, neighbours="add-remove", unit=text),
            lambda: ledger.account("people", analyst=text),
            lambda: ledger.allow("people", text, cap=BUDGET),
            lambda: session.answer(count, request=text),
        ]
        for ask in refused:
            with pytest.raises(InvalidParameter, match="must be"):
                ask()
        assert opened.spent == Amount()


@pytest.mark.parametrize("name", [*TEXTS.values(), "a\0b"], ids=ascii)
def test_a_column_that_nobody_asks_about_may_have_any_name(name):
    with sf.Session(people(name), budget=sf.PureDP(10), bits=SeededBits(1)) as session:
        hostile = session.answer(count).outcome
    with sf.Session(people("plain"), budget=sf.PureDP(10), bits=SeededBits(1)) as session:
        assert session.answer(count).outcome == hostile


# A column of every type that tables in engines have, also of those that are not read.
ROWS = 6
TYPES = pl.DataFrame(
    {
        "integer": list(range(ROWS)),
        "real": [0.5 * place for place in range(ROWS)],
        "text": list("abcabc"),
        "boolean": [True, False] * 3,
        "date": [dt.date(2020, 1, place + 1) for place in range(ROWS)],
        "datetime": [dt.datetime(2020, 1, place + 1) for place in range(ROWS)],
        "null": pl.Series([None] * ROWS, dtype=pl.Null),
        "list": [[1]] * ROWS,
        "bytes": [b"x"] * ROWS,
        "decimal": pl.Series([1] * ROWS).cast(pl.Decimal(10, 2)),
        "category": pl.Series(list("abcabc"), dtype=pl.Categorical),
        "unsigned": pl.Series([1] * ROWS, dtype=pl.UInt64),
    }
)


def duckdb_table(frame):
    import duckdb

    return duckdb.connect().from_arrow(frame.with_columns(pl.col("category").cast(pl.String)).to_arrow())


TABLES = {
    "memory": lambda frame: frame,
    "polars": pl.DataFrame.lazy,
    "duckdb": duckdb_table,
}
ENGINES = ["memory", "polars", pytest.param("duckdb", marks=pytest.mark.slow)]
PRIVATE_KEYS = sf.Groups(keys="private", other=True)


def queries(column):
    approximate = sf.ApproxDP(1, Fraction(1, 10**6))
    yield sf.Count(column=column, budget=approximate)
    yield sf.Proportion(column=column, budget=BUDGET)
    for categories in (("a", "b"), (1, 2), (True, False)):
        yield sf.Histogram(column=column, categories=categories, other=True, budget=BUDGET)
        yield sf.MostCommon(column=column, categories=categories, budget=BUDGET)
    for bounds in ((0, 10), (dt.date(2020, 1, 1), dt.date(2020, 2, 1))):
        yield sf.Mean(column=column, bounds=bounds, budget=BUDGET)
        yield sf.Quantiles(column=column, probs=(0.5,), bounds=bounds, budget=BUDGET)


def filters(column):
    yield from ({column: value} for value in ("a", 1, True, sf.Between(0, 2)))
    yield {column: sf.Between(dt.date(2020, 1, 1), dt.date(2020, 1, 3))}
    named = sf.col(column)
    yield from (named > 1, named == "a", named, named.is_null(), named.year() == 2020, ~named)


def questions():
    for column in TYPES.columns:
        for query in queries(column):
            yield {"query": query}
        for where in filters(column):
            yield {"query": sf.Count(column="real", budget=BUDGET), "where": where}
        keyed = sf.Count(column="real", budget=sf.ApproxDP(1, Fraction(1, 10)))
        yield {"query": keyed, "by": [column], "groups": PRIVATE_KEYS}
        yield {"query": keyed, "by": ["text"], "groups": PRIVATE_KEYS, "where": sf.col(column).is_null()}
        yield {"query": keyed, "by": ["text"], "groups": PRIVATE_KEYS, "where": {column: sf.Between(0, 2)}}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rows", [ROWS, 0])
def test_a_question_is_answered_or_refused_for_nothing(engine, rows):
    data = sf.Dataset(TABLES[engine](TYPES.head(rows)), unit="row", neighbours="add-remove")
    answered = 0
    for asked in questions():
        with sf.Session(data, budget=sf.ApproxDP(10, Fraction(1, 2))) as session:
            done = False
            with suppress(SfumatoError):
                done = bool(session.answer_all([sf.Question(**asked)]))
            assert done or session.spent == Amount(), asked
            answered += done
    assert answered > 100


@pytest.mark.parametrize("engine", TABLES)
def test_a_derived_column_is_a_number_or_a_flag(engine):
    for name in ("text", "category", "list", "bytes"):
        with pytest.raises(SfumatoError, match=f"{name}"):
            sf.Dataset(
                TABLES[engine](TYPES), unit="row", neighbours="add-remove", derived={"d": sf.col(name)}
            )


@pytest.mark.parametrize("engine", TABLES)
def test_ids_may_be_computed(engine):
    data = sf.Dataset(
        TABLES[engine](TYPES),
        unit="who",
        rows_per_unit=1,
        groups_per_unit=1,
        neighbours="add-remove",
        derived={"who": (sf.col("integer") / 3).floor()},
        schema={"boolean": sf.Field(categories=(True, False))},
    )
    exact = sf.PureDP(10**5)
    with sf.Session(data, budget=sf.ApproxDP(10**6, Fraction(1, 2)), bits=SeededBits(1)) as session:
        assert session.answer(sf.Count(column="real", budget=exact)).value == 2
        grouped = session.answer_by(sf.Count(column="real", budget=exact), ["boolean"])
        assert sum(part.value for part in grouped.releases.values()) == 2
        largest = session.answer_by(
            sf.Count(column="real", budget=exact), ["boolean"], groups=sf.Groups(top=2)
        )
        assert sum(part.value for part in largest.releases.values()) == 2
