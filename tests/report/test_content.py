"""What a report says: every number, in words, escaped, and nothing from elsewhere."""

import builtins
import math
import re
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import pytest
from tests.report.publications import (
    EMPTY,
    HOSTILE,
    PURE,
    RECEIPT,
    TEAMS,
    asked_of,
    hostile_page,
    page,
    people,
    questions,
    salaries,
)

import sfumato as sf
from sfumato.errors import MissingExtra
from sfumato.laws import SeededBits
from sfumato.privacy import ZCDP, Amount, ApproxDP, zcdp_epsilon
from sfumato.question import Question
from sfumato.report import html
from sfumato.report.figures import MOST_DOTS, MOST_PANELS, distinct, figure
from sfumato.report.meaning import meaning, one_in, up
from sfumato.report.numbers import Cell, Group, groups
from sfumato.report.words import heading, number, plain, text

VOID = {"meta", "br", "img", "hr", "link", "input"}


class Page(HTMLParser):
    """Elements with their attributes, texts of table cells, headings, and whether tags are balanced."""

    def __init__(self, source):
        super().__init__()
        self.tags, self.cells, self.headings, self.text, self.open = [], [], [], [], []
        self.feed(source)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")
        if re.fullmatch("h[1-6]", tag):
            self.headings.append([tag, ""])

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
        if {"td", "th"} & set(self.open):
            self.cells[-1] += data
        if self.headings and self.headings[-1][0] in self.open:
            self.headings[-1][1] += data

    def named(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def read():
    return Page(page())


def words(source):
    return " ".join("".join(Page(source).text).replace("\u00a0", " ").split())


# --- content ---------------------------------------------------------------------------------------


def missing_numbers(cells, publication):
    """Numbers whose value and interval are in no cell, as they are rounded for readers."""
    joined = {" ".join(cell.split()) for cell in cells}
    lost = []
    for result in publication.results:
        for _, release in result.releases:
            for _, value, low, high in release.texts():
                ends = f"{low} to {high}"
                shown = {value} if not low else {value, ends}
                if f"{value} {ends}" not in joined and not shown <= joined:
                    lost.append((result.name, value))
    return lost


def test_every_number_of_the_publication_is_in_a_table_with_its_interval(read):
    assert missing_numbers(read.cells, salaries()) == []


def test_a_page_that_loses_a_number_or_an_end_is_noticed(read):
    (value,) = {
        release.texts()[0][1] for key, release in salaries().results[1].releases if key == (TEAMS[0],)
    }
    without = [cell.replace(value, "0") for cell in read.cells]
    assert missing_numbers(without, salaries())
    assert missing_numbers([cell.replace("\u00a0to", " or") for cell in read.cells], salaries())


def test_headings_are_the_names_of_the_plan_in_its_order(read):
    assert read.headings == [
        ["h1", "Pay & people"],
        ["h2", "Results"],
        ["h3", "People"],
        ["h3", "Mean pay"],
        ["h3", "Deciles"],
        ["h3", "Deciles by team"],
        ["h3", "Ages"],
        ["h3", "Teams"],
        ["h3", "Part"],
        ["h3", "Largest"],
        ["h2", "What the budget means"],
        ["h2", "Methods"],
        ["h2", "What is not protected"],
        ["h2", "Price, record and how to check"],
    ]


def test_every_table_has_a_caption_and_headers_with_a_scope(read):
    assert len(read.named("table")) == len(read.named("caption"))
    assert all(one.get("scope") in ("col", "row") for one in read.named("th"))


def test_every_chart_has_a_name_that_states_numbers(read):
    charts = read.named("svg")
    assert len(charts) == 2 * 7  # for a wide page and for a phone; a label has no chart
    for chart in charts:
        assert chart["role"] == "img"
        assert re.search(r"\d", chart["aria-label"])
        assert "95 % interval" in chart["aria-label"]
    group = next(row for row in salaries().rows_of_numbers() if row["team"] == "sales")
    assert group["result"] == "mean pay"
    assert any("Highest:" in chart["aria-label"] for chart in charts)


def test_a_group_without_rows_is_in_the_table_and_in_the_pictures(read):
    assert sum(cell == EMPTY for cell in read.cells) >= 3
    assert page().count(f">{EMPTY}</text>") >= 4


def test_the_record_is_on_the_page(read):
    said = words(page())
    for fact in ("ab12" * 16, "77aa" * 16, "1234", "plan-12ab", "9f2c" * 16, "2.3.1", "the sum of all costs"):
        assert fact in said
    assert "sfumato ledger verify" in said
    assert "Ledger hash" not in words(html(replace(salaries(), results=())))


def test_what_seeded_bits_drew_is_marked_as_not_private():
    assert "must not be published" not in page()
    asked = questions()[:1]
    assert "must not be published" in html(asked_of(people(200), asked, bits=SeededBits(1)))


def test_verified_intervals_are_said_with_their_part_of_the_cost_and_what_was_foreseen():
    asked = sf.Quantiles(column="salary", budget=PURE(1), probs=(0.25, 0.5), verify="auto")
    for by in ((), ("team",)):
        said = words(html(asked_of(people(2000), [Question(query=asked, by=by, name="verified")])))
        assert "half of the rest verifies the intervals" in said
        assert re.search(r"foreseen ?verified intervals about [\d,]+( to [\d,]+)? ranks wide", said)
        assert "the interval is verified by counts and holds on any data" in said
    assert "verified" not in words(page())


def test_a_note_of_all_groups_is_said_once_and_that_of_one_names_it():
    result = salaries().results[1]
    # Noise that makes rows where there are none is rare, and leaves no such note: the outcome without noise.
    empty = {
        key: replace(made, outcome=(0,) * len(made.outcome)) for key, made in result.releases if EMPTY in key
    }
    others = tuple((key, made) for key, made in result.releases if key not in empty)
    drawn = replace(result, releases=(*others, *empty.items()))
    said = words(html(replace(salaries(), results=(drawn,))))
    assert said.count("values are clamped to [0, 150000]") == 1
    assert re.search(f"{EMPTY}: the answer is dominated by noise", said)


# --- what comes from the plan and the data -----------------------------------------------------------


@pytest.fixture(scope="module")
def hostile():
    return hostile_page()


def test_hostile_names_are_text_and_no_markup(hostile):
    read = Page(hostile)
    assert not {"script", "img", "b", "iframe", "object"} & ({tag for tag, _ in read.tags} - {"b"})
    assert all(one == {} for one in read.named("b"))
    assert not any(name.startswith("on") for _, attributes in read.tags for name in attributes)
    assert len(read.named("style")) == len(read.named("title")) == 1
    said = "".join(read.text)
    for name in HOSTILE[:5]:
        assert name in said
    assert "49" not in re.findall(r"\d+", read.headings[0][1])
    assert "\u202e" not in hostile
    assert "👩‍👩‍👧" in said


def test_a_page_without_escapes_is_noticed(hostile):
    broken = hostile.replace("&lt;script&gt;", "<script>")
    with pytest.raises(AssertionError):
        test_hostile_names_are_text_and_no_markup(broken)


@pytest.mark.parametrize("source", ["page", "hostile"])
def test_the_page_refers_to_nothing_elsewhere_and_runs_nothing(source, hostile):
    shown = page() if source == "page" else hostile
    read = Page(shown)
    for _, attributes in read.tags:
        for name in ("src", "href", "xlink:href", "srcset", "action", "data"):
            assert attributes.get(name, "#").startswith("#")
    assert re.findall(r"url\((?!#)", shown) == []
    assert "@import" not in shown
    policy = next(one["content"] for one in read.named("meta") if "http-equiv" in one)
    assert policy.startswith("default-src 'none'")
    assert "script" not in policy


def test_ids_are_unique_and_every_reference_has_its_target(read):
    ids = [one["id"] for _, one in read.tags if "id" in one]
    assert len(ids) == len(set(ids))
    wanted = {one["href"][1:] for one in read.named("a")} | set(re.findall(r"url\(#([^)]+)\)", page()))
    wanted |= {one["aria-labelledby"] for _, one in read.tags if "aria-labelledby" in one}
    assert wanted <= set(ids)


@pytest.mark.parametrize(("high", "cut"), [(90.0, False), (1e6, True)])
def test_an_interval_far_wider_than_all_values_is_drawn_to_the_edge(high, cut):
    query = sf.Quantiles(column="pay", budget=PURE(1), probs=(0.2, 0.8))
    cells = tuple(
        Cell(label, value, value - 5, end, str(value), (str(value - 5), str(end)))
        for label, value, end in (("20 %", 50.0, 55.0), ("80 %", 80.0, high))
    )
    drawn = figure(query, (Group((), cells),), ("Quantiles of pay",), "r1")
    assert drawn.cut == cut
    # The axis is that of the values, and the sentence has the end that the picture has not.
    assert "1,000,000" not in re.sub('aria-label="[^"]*"', "", drawn.wide)
    assert str(high) in drawn.wide


def test_the_caption_says_that_intervals_were_cut(monkeypatch):
    cut = "Intervals that reach the edge of the picture go on beyond it"
    only = replace(salaries(), results=salaries().results[4:5])
    assert cut not in words(html(only))
    drawn = figure(salaries().results[4].releases[0][1].query, groups(only.results[0].releases), ("x",), "r1")
    monkeypatch.setattr("sfumato.report.page.figure", lambda *_: replace(drawn, cut=True))
    assert cut in words(html(only))


def test_bars_over_ranges_of_different_widths_lie():
    made = {}
    for name, cells in (("equal", (0, 10, 20, 30)), ("unequal", (0, 10, 15, 30))):
        release = sf.histogram(np.arange(30), edges=cells, epsilon=1)
        result = replace(salaries().results[4], releases=(((), release),))
        made[name] = html(replace(salaries(), results=(result,)))
    # The labels of lying bars stand in the picture.
    assert ">10 to 15</text>" in made["unequal"]
    assert ">10 to 20</text>" not in made["equal"]


def test_names_that_a_cut_makes_equal_stay_apart():
    assert distinct(["a" * 50, "a" * 51, "b"], 10) == ["aaaaaaaaa…", "aaaaaaaaa… (2)", "b"]


def test_what_cannot_be_seen_is_written_out():
    assert plain("a\x1b[31m\u202e") == "a\\x1b[31m\\u202e"
    assert number(Fraction(1, 4)) == "0.25"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (
            sf.Count(budget=PURE(1), column="team", equals=("a", "b")),
            "Number of rows with team equal to a or b",
        ),
        (sf.Count(budget=PURE(1), column="age", between=(1, 20)), "Number of rows with age from 1 to 20"),
        (sf.Quantiles(budget=PURE(1), column="pay", probs=(0.5,)), "Median of pay"),
        (sf.Quantiles(budget=PURE(1), column="pay", probs=(0.1, 0.7)), "Quantiles of pay"),
        (sf.Variance(budget=PURE(1), column="net_pay"), "Variance of net pay"),
    ],
)
def test_headings_name_conditions_and_usual_quantiles(query, said):
    assert text(heading(query, (), ())) == said


# --- the meaning of the budget ---------------------------------------------------------------------


def percent(shown):
    return float(shown.replace("\u00a0%", "").removeprefix("nearly "))


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "3"])
def test_no_odds_change_by_more_than_the_table_says(epsilon):
    told = meaning(Amount(epsilon=Fraction(epsilon)))
    factor = math.exp(float(Fraction(epsilon)))
    assert float(told.factor.replace(",", "")) >= factor
    for row in told.rows:
        before, after, least = (percent(one) / 100 for one in (row.before, row.after, row.least))
        exact = before * factor / (before * factor + 1 - before)
        assert exact - 1e-12 <= after <= exact + 0.0011
        lowest = before / (before + factor * (1 - before))
        assert lowest - 0.0011 <= least <= lowest + 1e-12


def test_a_zero_concentrated_budget_is_told_as_epsilon_and_delta():
    told = meaning(Amount(rho=Fraction(1, 20)))
    assert told.one_in == "1 in 1,000,000"
    assert zcdp_epsilon(Fraction(1, 20), Fraction(1, 10**6)) <= float(told.epsilon) <= 1.48
    assert len(told.others) == 5


def test_no_test_is_right_more_often_than_the_table_says():
    # Randomised response with a rare disclosure is (epsilon, delta)-DP and tight at its corner.
    epsilon, delta = 1.0, 1e-3
    told = meaning(Amount(epsilon=1, delta=Fraction(1, 1000)))
    tell = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    false_alarm, right = (1 - delta) - tell, tell + delta
    for row in told.rows:
        alarm, most = percent(row.before) / 100, percent(row.after) / 100
        if alarm <= false_alarm:
            found = delta + (right - delta) * alarm / false_alarm
        else:
            found = right + (1 - right) * (alarm - false_alarm) / (1 - false_alarm)
        assert found <= most <= found + 0.0011


def test_numbers_of_a_promise_are_rounded_against_us():
    assert up(2.711, 3) == "2.72"
    assert up(1.0, 3) == "1"
    assert up(123456.0, 3) == "124,000"
    assert one_in(Fraction(3, 10)) == "1 in 3"
    assert "nearly 100" in meaning(Amount(epsilon=20)).rows[-1].after
    assert meaning(Amount(epsilon=5000)).factor
    assert meaning(Amount()).kind == "free"


@pytest.mark.parametrize(
    ("budget", "price", "said"),
    [
        (PURE(1), Amount(epsilon=1), "a factor of at most 2.72"),
        (ApproxDP(1, 1e-6), Amount(epsilon=1, delta=Fraction(1, 10**6)), "with a chance of 1 in 1,000,000"),
        (ZCDP(0.05), Amount(rho=Fraction(1, 20)), "ρ = 0.05"),
    ],
)
@pytest.mark.parametrize("relation", ["substitution", "add-remove"])
def test_the_budget_is_explained_for_each_definition_and_relation(budget, price, said, relation):
    one = replace(salaries(), results=(), budget=budget, price=price, neighbours=relation)
    said_there = words(html(replace(one, rows=3000 if relation == "substitution" else None)))
    assert said in said_there
    assert ("to take part or not" in said_there) == (relation == "add-remove")
    assert ("It is public here: 3,000" in said_there) == (relation == "substitution")


def test_a_unit_of_several_rows_is_explained():
    made = replace(salaries(), results=(), unit="person_id", rows_per_unit=3)
    assert "Of the rows with the same person_id, at most 3 rows were used" in words(html(made))


# --- many groups, missing packages -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "query", "most"),
    [
        (1000, sf.Mean(column="salary", budget=PURE(1)), MOST_DOTS),
        (MOST_PANELS + 1, sf.Histogram(column="age", bins=2, bounds=(18, 67), budget=PURE(1)), MOST_PANELS),
    ],
    ids=["dots", "panels"],
)
def test_many_groups_have_a_table_of_all_and_a_picture_of_the_first(groups, query, most):
    asked = [Question(query=query, by=["team"], name="many")]
    made = asked_of(people(5000, teams=tuple(f"team {i}" for i in range(groups))), asked)
    source = html(made)
    assert missing_numbers(Page(source).cells, made) == []
    assert f"The picture has the first {most} of {groups:,} groups; the table has all of them" in words(
        source
    )
    assert len(source) < 1_000_000


def test_the_report_of_a_demo_is_small():
    assert len(page().encode()) < 700_000


@pytest.mark.parametrize("package", ["jinja2", "altair", "vl_convert"])
def test_a_missing_package_is_named_with_its_extra(package, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return real(name, *rest)

    made = replace(salaries(), results=salaries().results[:1])
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"sfumato\[charts\]"):
        html(made, RECEIPT)


def test_the_teams_are_all_in_the_report():
    assert all(team in page() for team in TEAMS)


def test_what_a_name_stands_for_is_said_below_it(read):
    words = "Share of part time that is true, where age is 30 to 40."
    assert words in " ".join("".join(read.text).split())


def test_a_result_without_a_name_of_its_own_is_named_in_words():
    data = people()
    page = html(
        asked_of(data, [Question(query=sf.Mean(column="salary", budget=sf.PureDP(1)), name="mean of salary")])
    )
    assert ">Mean of <bdi>salary</bdi></h3>" in page
