"""Tables of releases on terminals of any width: no name is broken."""

import io
from datetime import date, timedelta
from types import SimpleNamespace

import pytest
from rich.console import Console

import sfumato as sf
from sfumato.cli.published import print_results
from sfumato.question import Question
from sfumato.result import Result

TEAMS = ("administration", "sales")


@pytest.fixture(scope="module")
def result():
    first = date(2024, 1, 1)
    frame = {"day": [first + timedelta(days=i) for i in range(300)], "team": [*TEAMS] * 150}
    data = sf.Dataset(
        frame, unit="row", neighbours="add-remove", schema={"team": sf.Field(categories=TEAMS)}, name="days"
    )
    query = sf.Quantiles(
        column="day",
        probs=[i / 10 for i in range(1, 10)],
        bounds=(first, date(2024, 12, 31)),
        n_hint=150,
        budget=sf.PureDP(9),
    )
    question = Question(query=query, by=["team"])
    with sf.Session(data, budget=sf.PureDP(9)) as session:
        (answer,) = session.answer_all([question])
    return Result.of(question.title, answer, ())


@pytest.mark.parametrize("width", range(120, 137))
def test_no_name_is_broken_whatever_the_width(width, result):
    written = io.StringIO()
    console = Console(file=written, width=width, color_system=None)
    print_results(console, SimpleNamespace(results=(result,)))
    lines = written.getvalue().splitlines()
    for team in TEAMS:
        assert any(line.startswith(team) for line in lines)
    # Nine dates in a line where they fit with all gaps, and one with its interval where they do not.
    fits = width >= 14 + 9 * 10 + 10 * 3 - 1
    assert max(line.count("2024-") for line in lines) == (9 if fits else 3)
