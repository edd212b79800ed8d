"""Reports of dates and of conditions that are expressions: no number of days is shown to a reader."""

from datetime import UTC, date, datetime
from functools import cache

import numpy as np
from tests.report.publications import publication
from tests.report.test_content import words

import sfumato as sf
from sfumato.question import Question
from sfumato.report import html
from sfumato.report.words import heading, is_expression, labels, text

YEARS = [date(2020, 1, 1), date(2021, 1, 1), date(2023, 1, 1)]
RICH = "pay >= 50 and team in ['red', 'blue', 'green', 'yellow']"


@cache
def page():
    days = np.datetime64("2020-01-01") + np.arange(1000)
    frame = {"hired": days, "pay": np.arange(1000.0) % 100, "team": np.array(["red", "blue"] * 500)}
    data = sf.Dataset(
        frame, unit="row", neighbours="add-remove", schema={"pay": sf.Field(bounds=(0, 100))}, name="pay"
    )
    facts = {"column": "hired", "budget": sf.PureDP(1)}
    asked = [
        Question(query=sf.Histogram(**facts, edges=YEARS)),
        Question(query=sf.Mean(**facts, bounds=(YEARS[0], YEARS[-1]))),
        Question(query=sf.Count(**facts, between=(YEARS[0], YEARS[1]))),
    ]
    with sf.Session(data, budget=sf.PureDP(50)) as session:
        return html(publication(session.answer_all(asked), asked, budget=sf.PureDP(50)))


def test_ranges_bounds_and_edges_of_dates_are_dates():
    said = words(page())
    assert "2020-01-01 to 2021-01-01" in said
    assert "from 2020-01-01 to 2021-01-01" in said
    assert "bounds2020-01-01, 2023-01-01" in said
    assert "edges2020-01-01, 2021-01-01, 2023-01-01" in said
    for days in ("18,262", "18262", "18,628", "18628", "19358"):
        assert days not in page()


def test_times_are_told_as_finely_as_they_differ():
    facts = {"column": "at", "budget": sf.PureDP(1), "neighbours": "add-remove"}
    days = [datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 2, 1, tzinfo=UTC)]
    assert labels(sf.Histogram(**facts, edges=days)) == ["2024-01-01 to 2024-02-01"]
    halves = [days[0], days[1].replace(minute=30)]
    assert labels(sf.Histogram(**facts, edges=halves)) == ["2024-01-01T00:00 to 2024-02-01T00:30"]


def test_a_phone_shows_the_whole_of_a_range():
    # Both pictures have it.
    assert page().count(">2021-01-01 to 2023-01-01</text>") == 2


def test_a_condition_that_is_an_expression_stands_for_itself():
    query = sf.Mean(budget=sf.PureDP(1), bounds=(0, 1), column="pay")
    assert text(heading(query, [], [("pay, team", RICH)])) == f"Mean of pay, where {RICH}"
    assert text(heading(query, [], [("team", "red or blue")])) == "Mean of pay, where team is red or blue"


def test_what_is_no_expression_is_not_taken_for_one():
    for column, told in (("age", "18 to 65"), ("team", "red"), ("team", "a or b"), ("team", "pay > 3")):
        assert not is_expression(column, told)
