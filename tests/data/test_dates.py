"""Dates in declared facts, questions, conditions, answers, charts and plans."""

import datetime as dt
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pytest

import sfumato as sf
from sfumato.data.conditions import Between
from sfumato.data.field import Field
from sfumato.data.moments import moment_number, read_moment, written
from sfumato.errors import InvalidParameter, MissingBounds, NotSupported, SchemaMismatch

PARIS = ZoneInfo("Europe/Paris")
YEAR = (dt.date(2020, 1, 1), dt.date(2020, 12, 31))
DAYS = [dt.date(2020, 1, 1) + dt.timedelta(days=i) for i in range(366)]


def test_bounds_of_a_field_may_be_dates_or_text_and_are_exact_numbers():
    wanted = (Fraction(18262), Fraction(18627))
    assert Field(bounds=YEAR).bounds == wanted
    assert Field(bounds=YEAR).kind == "date"
    assert Field(bounds=("2020-01-01", "2020-12-31"), kind="date").bounds == wanted
    seconds = Field(bounds=("2020-01-01", "2020-01-02T00:00:00.000001+01:00"), kind="datetime").bounds
    assert seconds == (18262 * 86400, 18262 * 86400 + 82800 + Fraction(1, 10**6))
    assert (
        Field(bounds=(dt.datetime(2020, 1, 1), dt.datetime(2020, 10, 25, 2, 30, tzinfo=PARIS))).kind
        == "datetime"
    )


@pytest.mark.parametrize(
    ("facts", "rule"),
    [
        ({"bounds": YEAR, "kind": "integer"}, "bounds must be numbers"),
        ({"bounds": (YEAR[0], 3)}, "must be"),
        ({"bounds": ("2020-13-01", "2021-01-01"), "kind": "date"}, "ISO text"),
        ({"bounds": ("2020-01-01", "2021-01-01")}, "must be a number"),
        ({"bounds": (0.5, 7), "kind": "date"}, "whole days"),
        ({"bounds": (dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1)), "kind": "date"}, "without a time"),
        ({"bounds": (YEAR[1], YEAR[0])}, "lower must be below upper"),
        ({"categories": ("a",), "kind": "date"}, "categories must be None"),
    ],
)
def test_a_field_of_dates_refuses_what_is_no_date(facts, rule):
    if facts == {"bounds": (YEAR[0], 3)}:
        assert Field(bounds=(YEAR[0], 20000)).bounds == (18262, 20000)
    with pytest.raises(InvalidParameter, match=rule):
        Field(**facts)


def _release(query_of, values=DAYS, **options):
    return query_of(values, epsilon=1e6, **options)


def test_a_statistic_of_dates_answers_and_prints_dates():
    median = _release(sf.median, bounds=YEAR)
    assert str(median.dates) in ("2020-07-01", "2020-07-02")
    assert median.value == float(median.dates.astype(int))
    assert str(median.dates) in str(median)
    assert str(median.dates) in median._repr_html_()
    assert "clamped to [2020-01-01, 2020-12-31]" in str(median)
    assert median.to_dict()["reads"] == "date"
    deciles = _release(sf.deciles, bounds=YEAR)
    assert deciles.dates.dtype == "M8[D]"
    assert [row[1] for row in deciles.texts()] == deciles.dates.astype(str).tolist()
    mean = _release(sf.mean, bounds=YEAR)
    assert abs(mean.value - (18262 + 182.5)) < 0.01
    bars = _release(sf.histogram, edges=[YEAR[0], dt.date(2020, 7, 1), YEAR[1]])
    assert bars.query.labels() == ("[2020-01-01, 2020-07-01)", "[2020-07-01, 2020-12-31]")
    assert bars.value.tolist() == [182, 184]
    with pytest.raises(NotSupported, match="answer that is a date"):
        _ = bars.dates
    passed = _release(sf.first_passing, at=DAYS, count=30)
    assert str(passed.dates) == "2020-01-31"


def test_no_threshold_that_is_passed_is_shown_without_a_warning():
    # Both ends of the interval are infinite then; warnings are errors in the tests.
    passed = _release(sf.first_passing, at=DAYS, count=10**6)
    assert passed.value is None
    assert "[none, none]" in str(passed)


def test_datetimes_are_told_to_the_second_of_utc():
    hours = [dt.datetime(2020, 1, 1, tzinfo=PARIS) + dt.timedelta(hours=i) for i in range(240)]
    bounds = (dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 11))
    mean = _release(sf.mean, hours, bounds=bounds)
    # The mean of what is clamped to the start: the first hour of Paris is an hour before that of UTC.
    exact = sum(max(float(moment_number(h)), float(moment_number(bounds[0]))) for h in hours) / 240
    assert abs(mean.value - exact) < 5
    assert mean.dates == np.datetime64(round(mean.value), "s")
    assert str(mean).count("2020-01-05T") >= 1


def test_a_release_of_dates_reads_back_from_json():
    from sfumato.quantile_methods.registry import read_query

    mean = _release(sf.mean, bounds=YEAR)
    again = read_query("mean", mean.parameters)
    assert again == mean.query
    assert again.reads == "date"


def test_numbers_are_asked_as_before_so_that_no_digest_moves():
    from sfumato.query import parameters

    query = sf.mean([1, 2, 3], bounds=(0, 10), epsilon=1).query
    assert query.reads == "number"
    assert parameters(query)["reads"] == type(query)(budget=query.budget).reads


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (lambda: _release(sf.sum, bounds=YEAR), NotSupported),
        (lambda: _release(sf.variance, bounds=YEAR), NotSupported),
        (lambda: _release(sf.mean, [1.0, 2.0], bounds=YEAR), InvalidParameter),
        (lambda: _release(sf.mean, [dt.datetime(2020, 1, 1)], bounds=YEAR), InvalidParameter),
        (lambda: _release(sf.count, [1.0, 2.0], between=YEAR), InvalidParameter),
        (lambda: _release(sf.histogram, ["a"], edges=YEAR), (InvalidParameter, SchemaMismatch)),
        (lambda: _release(sf.histogram, categories=["2020-01-01"]), SchemaMismatch),
        (lambda: _release(sf.proportion, equals=18262), SchemaMismatch),
        (lambda: _release(sf.mean, bounds=(YEAR[0], 20000)), InvalidParameter),
        (lambda: Between(YEAR[0], 5), InvalidParameter),
        (lambda: Between(YEAR[1], YEAR[0]), InvalidParameter),
    ],
)
def test_dates_where_they_mean_nothing_are_refused_in_words(asked, error):
    with pytest.raises(error):
        asked()


def test_a_range_of_dates_chooses_rows_of_a_column_of_dates_alone():
    schema = {"day": Field(bounds=YEAR), "x": Field(bounds=(0, 400))}
    frame = {"day": np.array(DAYS, "M8[D]"), "x": np.arange(366)}
    data = sf.Dataset(frame, unit="row", neighbours="add-remove", schema=schema)
    session = sf.Session(data, budget=sf.PureDP(10**6))
    march = Between(dt.date(2020, 3, 1), dt.date(2020, 3, 31))
    assert march.words == "2020-03-01 to 2020-03-31"
    release = session.answer(sf.Count(column="x", budget=sf.PureDP(1000)), where={"day": march})
    assert release.value == 31
    with pytest.raises(InvalidParameter, match="'x', which stores integer, got a date"):
        session.answer(sf.Count(column="x", budget=sf.PureDP(1000)), where={"x": march})
    with pytest.raises(SchemaMismatch, match="declared date, but it stores integer"):
        sf.Dataset(frame, unit="row", neighbours="add-remove", schema={"x": Field(kind="date")})
    with pytest.raises(SchemaMismatch, match="declared integer, but it stores date"):
        sf.Dataset(frame, unit="row", neighbours="add-remove", schema={"day": Field(kind="integer")})


def test_a_list_without_a_value_is_asked_as_its_neighbours_with_dates_are():
    full, blank = (_release(sf.median, values, bounds=YEAR) for values in ([DAYS[0]], [None]))
    assert full.parameters == blank.parameters


def test_text_without_a_public_list_of_categories_is_refused():
    for asked in (sf.histogram, sf.most_common):
        with pytest.raises(MissingBounds, match="categories"):
            asked(["a", "b"], epsilon=1)


@pytest.mark.parametrize(
    "value",
    [
        *(dt.date(*day) for day in ((1, 1, 1), (1969, 12, 31), (1970, 1, 1), (2000, 2, 29), (9999, 12, 31))),
        *(dt.datetime(*when) for when in ((1, 1, 1, 0, 0, 0, 1), (1969, 12, 31, 23, 59, 59, 999_999))),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999_999),
    ],
)
def test_every_date_is_written_as_it_was_read(value):
    reads = "datetime" if isinstance(value, dt.datetime) else "date"
    text = written(moment_number(value), reads, 0.0)
    assert read_moment("bounds", text, reads) == moment_number(value)


def test_charts_of_dates_have_dates_at_their_ticks_and_in_their_words():
    pytest.importorskip("altair")
    for release in (_release(sf.mean, bounds=YEAR), _release(sf.deciles, bounds=YEAR)):
        chart = release.plot().to_dict()
        assert "%Y-%m-%d" in str(chart)
        rows = chart["data"]["values"]
        assert [row["value_text"] for row in rows] == [text[1] for text in release.texts()]
    bars = _release(sf.histogram, bins=12, bounds=YEAR).plot().to_dict()
    assert "utcFormat" in str(bars)
    assert "utcFormat" not in str(sf.mean([1.0, 2.0], bounds=(0, 3), epsilon=1).plot().to_dict())


def test_a_plan_declares_dates_by_itself_or_as_text():
    from sfumato.plan import parse
    from sfumato.plan.queries import fields

    plan = parse(
        """
        version = 1
        title = "Births"
        data = { path = "people.csv", name = "people", unit = "row", neighbours = "add-remove" }
        budget.epsilon = 0.5
        columns.born = { type = "date", bounds = [1900-01-01, 2020-12-31] }
        columns.seen = { type = "datetime", bounds = ["2020-01-01", "2020-12-31T12:00:00+01:00"] }
        queries = [
            { statistic = "mean", column = "seen" },
            { statistic = "histogram", column = "born", edges = [1900-01-01, 1950-01-01, 2000-01-01] },
        ]
        """
    )
    found = fields(plan)
    assert found["born"].bound_texts == ("1900-01-01", "2020-12-31")
    assert found["seen"].bound_texts == ("2020-01-01T00:00:00", "2020-12-31T11:00:00")
