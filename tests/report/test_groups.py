"""Reports of groups whose names come from the data: the other rows, how they were found, and none at all."""

from functools import cache

import numpy as np
import pytest
from tests.browsing import CONTRAST, OUTSIDE, OVERFLOW, Visit, browser, needs_chromium
from tests.report.publications import HOSTILE, publication
from tests.report.test_content import Page, words

import sfumato as sf
from sfumato.laws import SeededBits
from sfumato.privacy import Amount
from sfumato.question import Question
from sfumato.report import html
from sfumato.report.words import bare_heading, bound_words, found_words, group_name, text

__all__ = ["browser"]

SMALL = sf.ApproxDP(1, 1e-6)
NAMES = [*HOSTILE, "(other)", "y" * 1000]


def made_of(teams, *groups, bits=None, statistic=sf.Mean):
    frame = {"team": np.array([*teams, None], dtype=object)[:-1], "pay": np.arange(len(teams)) % 100.0}
    data = sf.Dataset(
        frame, unit="row", neighbours="add-remove", schema={"pay": sf.Field(bounds=(0, 100))}, name="pay"
    )
    query = statistic(column="pay", budget=SMALL)
    asked = [Question(query=query, by=["team"], groups=each) for each in groups]
    with sf.Session(data, budget=sf.ApproxDP(50, 1e-4), bits=bits) as session:
        answers = session.answer_all(asked)
    price = sum((one.found.cost for one in answers), Amount(epsilon=1))
    return publication(answers, asked, budget=sf.ApproxDP(50, 1e-4), price=price)


@cache
def hostile():
    teams = [name for name in NAMES for _ in range(150)] + ["lone", None, None]
    private = {"keys": "private"}
    return made_of(
        teams,
        sf.Groups(**private, other=True),
        sf.Groups(**private, top=2),
        sf.Groups(**private, least=10_000),
    )


@cache
def page():
    return html(hostile())


def test_the_other_rows_are_named_and_explained():
    read = Page(page())
    assert read.cells.count("(other)") == 1
    # A key of the data with this name is told apart.
    assert read.cells.count("'(other)'") >= 1
    assert "None" not in read.cells
    said = words(page())
    assert "(other) is all rows of no group that is shown" in said
    assert said.count("(other) is all rows") == 1


def test_the_page_says_how_groups_were_found_and_what_that_cost():
    said = words(page())
    assert said.count("Which groups are shown was decided privately too") == 3
    assert "keys of 95 people or more are always named" in said
    assert "the 2 largest were chosen privately, by numbers of people" in said
    assert "those of fewer than 10,000 never" in said
    assert said.count("This took ε = 0.25, δ = 0.000001 of the cost") == 3
    assert "A group of one person is shown with a chance of at most δ" in said
    # Nothing is said of declared groups, since there are none.
    assert "Every declared group" not in said
    # What each result costs is the search and the statistic.
    assert all(str(result.amount.epsilon) == "1" for result in hostile().results)


def test_a_result_without_groups_says_so_and_keeps_its_cost():
    said = words(page())
    assert said.count("No group is named here") == 1
    assert hostile().results[2].releases == ()
    assert hostile().results[2].amount.epsilon == 1
    only = html(made_of(["a"], sf.Groups(keys="private")))
    Page(only)
    assert "No group is named here" in only
    assert "<svg" not in only
    assert "A label has no interval" not in only


def test_keys_of_the_data_are_escaped_and_cut():
    Page(page())
    assert "<script>" not in page()
    assert "<img" not in page()
    assert "{{ 7*7 }}" in page()  # text of the data, which no template runs
    assert "y" * 300 not in page()
    assert "\u202e" not in page()


def test_an_empty_result_that_seeded_bits_drew_is_marked():
    seeded = made_of(["a"], sf.Groups(keys="private"), bits=SeededBits(1))
    assert "Not private." in html(seeded)
    assert "Not private." not in page()


def test_groups_have_small_pictures_of_quantiles_and_bars():
    teams = ["north"] * 300 + ["south"] * 200 + ["lone"]
    groups = sf.Groups(keys="private", other=True)
    drawn = html(made_of(teams, groups, statistic=_histogram))
    assert drawn.count(">(other)</text>") >= 2
    assert "lone" not in drawn


def _histogram(column, budget):
    return sf.Histogram(column=column, budget=budget, bins=4)


def test_words_of_groups():
    assert [group_name(part) for part in ("a", 7, True, None, "(other)")] == [
        "a",
        "7",
        "True",
        "(other)",
        "'(other)'",
    ]
    assert text(bare_heading("most_common", "pay_raise", ["team"], [("age", "over 30")])) == (
        "Most common of pay raise by team, where age is over 30"
    )
    assert found_words("", Amount()) == ""
    assert "in at most one group of a result" in text(bound_words("id", 3, 1))
    assert "group" not in text(bound_words("id", 3))


@needs_chromium
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_the_page_fits_and_can_be_read(browser, tmp_path, width, scheme):
    path = tmp_path / "report.html"
    path.write_text(page(), "utf-8")
    with Visit(browser, path.as_uri(), width, scheme) as visit:
        assert visit.page.evaluate(OVERFLOW) <= 0
        assert visit.page.evaluate(OUTSIDE) == []
        assert min(contrast for contrast, _ in visit.page.evaluate(CONTRAST)) >= 4.5
        assert visit.requests == [path.as_uri()]
        assert visit.complaints == []
