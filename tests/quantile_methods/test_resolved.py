"""Stored quantiles hold what was resolved: a version with other rules reads them as they were drawn."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato import session
from sfumato.asked import ask_all, digest_of
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.grid import MAX_CELLS
from sfumato.laws import SeededBits
from sfumato.outcome import most_bytes, read_outcome, write_outcome
from sfumato.quantile_methods import (
    EquiDepth,
    FromHistogram,
    Quantiles,
    Unbounded,
    counted,
    equi_depth,
    framed,
    interpolated,
    method,
    node_counts,
    query,
    tree,
)
from sfumato.query import encode
from sfumato.question import Question
from sfumato.release import SLOPES

TEAMS = ("many", "some", "few")
ROWS = 1500
DECILES = tuple(Fraction(i, 10) for i in range(1, 10))
MANY = tuple(Fraction(i, 60) for i in range(1, 60))
ODD = (0, Fraction(4, 3))
ROUND = (0, 1)

# For each case the parameters of a query, of its data set and whether each team is answered.
CASES = {
    "one": {"probs": (0.5,), "verify": 0},
    "one, verified": {"probs": (0.5,), "verify": "auto"},
    "one, verified, no round step": {"probs": (0.5,), "verify": "auto", "bounds": ODD},
    "one, framed": {"probs": (0.5,), "interval_share": "auto"},
    "one, framed, no round step": {"probs": (0.9,), "interval_share": "auto", "bounds": ODD},
    "one, framed by a share": {"probs": (0.1,), "interval_share": 0.2},
    "several": {"probs": DECILES, "verify": 0},
    "several, no round step": {"probs": DECILES, "verify": 0, "bounds": ODD},
    "several, verified": {"probs": DECILES, "verify": "auto"},
    "several, verified by a share": {"probs": DECILES, "verify": 0.3, "bounds": ODD},
    "several on a step": {"probs": DECILES, "verify": 0, "step": Fraction(1, 10**6)},
    "a method by name": {"probs": DECILES, "verify": 0, "method": "recursive"},
    "few integers": {"column": "age", "probs": DECILES, "bounds": None, "verify": 0},
    "few integers, verified": {"column": "age", "probs": DECILES, "bounds": None, "verify": "auto"},
    "many": {"probs": MANY, "verify": 0},
    "small budget": {"probs": (0.05, 0.5), "budget": sf.PureDP(0.01), "bounds": ODD, "verify": "auto"},
    "concentrated": {"probs": (0.5,), "verify": "auto", "budget": sf.ZCDP(0.1)},
    "approximate": {"probs": DECILES, "verify": "auto", "budget": sf.ApproxDP(1, 1e-6)},
    "approximate, framed": {"probs": (0.5,), "interval_share": "auto", "budget": sf.ApproxDP(0.2, 1e-3)},
    "a tree": {"probs": MANY, "method": "tree"},
    "a tree of some leaves": {"probs": DECILES, "method": sf.quantile_methods.Tree(leaves=500)},
    "an approximate tree": {"probs": DECILES, "method": "tree", "budget": sf.ApproxDP(0.2, 1e-3)},
    "leaves of equal depth": {"probs": MANY, "method": "equi_depth", "budget": sf.PureDP(9)},
    "lines": {"probs": MANY, "method": "interpolated", "verify": 0},
    "lines, verified": {"probs": MANY, "method": "interpolated", "verify": "auto"},
    "a histogram": {"probs": DECILES, "method": "histogram", "verify": 0},
    "without bounds": {"probs": (0.5,), "method": "unbounded", "bounds": None},
}
RELATIONS = {
    "a public number": {"neighbours": "substitution", "nulls": "lower"},
    "a private number": {"neighbours": "add-remove"},
    "several rows": {"neighbours": "add-remove", "unit": "person"},
    "several rows replaced": {"neighbours": "substitution", "unit": "person"},
}


def dataset(neighbours, unit="row", **_):
    values = SeededBits(5).words(ROWS) * 2.0**-64
    # The teams have 1,300, 170 and 30 rows: their counts lead to different choices.
    teams = np.array(TEAMS)[np.searchsorted([1300, 1470], np.arange(ROWS), side="right")]
    frame = {
        "pay": values,
        "age": (values * 90).astype(np.int64),
        "team": teams,
        "person": np.arange(ROWS) // 2,
    }
    schema = {"team": sf.Field(categories=TEAMS), "age": sf.Field(bounds=(0, 90))}
    several = {} if unit == "row" else {"rows_per_unit": 2}
    return sf.Dataset(frame, unit=unit, neighbours=neighbours, schema=schema, name="people", **several)


def question(case, relation, by=()):
    nulls = {"nulls": relation["nulls"]} if "nulls" in relation and not by else {}
    given = {"column": "pay", "budget": sf.PureDP(1), "bounds": ROUND, **nulls, **case}
    return Question(query=Quantiles(**given), by=by)


def other_rules(monkeypatch):
    """A version in which every rule is another."""
    choose = query.choose

    def chosen(facts, **options):
        name = choose(facts, **options)[0]
        return ("inverse_sensitivity" if name == "single" else "independent"), "another reason"

    monkeypatch.setattr(query, "choose", chosen)
    resolution = method.Facts.resolution.fget
    monkeypatch.setattr(
        method.Facts,
        "resolution",
        property(lambda facts: facts.points.bits if facts.points else 37 - resolution(facts) // 2),
    )
    monkeypatch.setattr(query, "verify_share", lambda share, facts: Fraction(1, 7))
    monkeypatch.setattr(query, "outer_share", lambda facts: Fraction(1, 3))
    monkeypatch.setattr(query, "SHARE", Fraction(1, 5))
    monkeypatch.setattr(query, "most_of_leaves", lambda _: 0)
    monkeypatch.setattr(counted.Counted.under.__func__, "__defaults__", (Fraction(1, 5),))
    monkeypatch.setattr(tree, "PURE_LEAVES", 8)
    monkeypatch.setattr(tree, "CONCENTRATED_LEAVES", 3)
    branching = node_counts.best_branching
    monkeypatch.setattr(node_counts, "best_branching", lambda *facts, **noise: branching(*facts, **noise) + 1)
    monkeypatch.setattr(interpolated, "informative", lambda facts, most=7: min(7, most))
    monkeypatch.setattr(equi_depth, "LEAVES", (16, 2048))
    monkeypatch.setattr(equi_depth, "PARTS", (2, 16))
    monkeypatch.setattr(equi_depth, "SHARES", (Fraction(1, 5),))
    for cached in (EquiDepth.plan, EquiDepth.nodes):
        cached.cache_clear()
    for kind, name, option in ((FromHistogram, "_number", "steps"), (Unbounded, "growth", "ratio")):
        monkeypatch.setattr(kind, name, otherwise(getattr(kind, name), option))
    monkeypatch.setattr(framed, "LEAST_SHARE", Fraction(2, 5))
    monkeypatch.setattr(framed, "MOST_SHARE", Fraction(1, 2))


def otherwise(rule, option):
    """The rule, with another answer where the option is left open."""
    return lambda self, facts: rule(self, facts) + 1 if getattr(self, option) is None else rule(self, facts)


def told(release):
    """All that a reader can ask of a release."""
    notes = release.query.notes(release.outcome)
    found = [release.value, release.query.described, notes, release.cost, release.event.to_dict()]
    for scenario in (None, "any data", SLOPES):
        for ask in (release.interval, release.population_interval):
            try:
                # At the level of the files, whose widths are calibrated already.
                found.append(ask(0.95, scenario=scenario))
            except NotSupported as refusal:
                found.append(str(refusal))
    return [part.tolist() if isinstance(part, np.ndarray) else part for part in map(listed, found)]


def listed(part):
    return [np.asarray(end).tolist() for end in part] if isinstance(part, tuple) else part


def releases(answer):
    return list(answer.releases.values()) if hasattr(answer, "releases") else [answer]


@pytest.mark.parametrize("relation", RELATIONS.values(), ids=RELATIONS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_other_rules_change_nothing_of_what_was_stored(case, relation, monkeypatch):
    data, groups = dataset(**relation), ((), ("team",))
    asked = ask_all(data, [question(case, relation, by) for by in groups])
    answers = session.draw(data, asked, SeededBits(1))
    outcome = write_outcome({}, asked, answers)
    assert len(outcome) <= most_bytes({}, asked)
    files = [[release.to_json() for release in releases(answer)] for answer in answers]
    before = [[told(release) for release in releases(answer)] for answer in answers]
    other_rules(monkeypatch)
    for answer, stored, was, again in zip(answers, files, before, read_outcome(outcome).answers, strict=True):
        for drawn, text, said, kept in zip(releases(answer), stored, was, releases(again), strict=True):
            assert kept.query == drawn.query
            assert told(kept) == said
            read = sf.read_release(text)
            assert read == drawn
            assert told(read) == said
            assert read.to_json() == text


@pytest.mark.parametrize("relation", RELATIONS.values(), ids=RELATIONS)
def test_these_rules_are_others(relation, monkeypatch):
    """What the test above would show if nothing were stored."""

    def drawn():
        data = dataset(**relation)
        cases = ["one", "one, verified, no round step", "one, framed", "several", "several, verified"]
        asked = ask_all(data, [question(CASES[case], relation, ("team",)) for case in cases])
        return [releases(answer)[0].query.resolved for answer in session.draw(data, asked, SeededBits(1))]

    before = drawn()
    other_rules(monkeypatch)
    after = drawn()
    for was, found in zip(before, after, strict=True):
        assert was.method != found.method
        assert was.points != found.points
    assert before[1].verify != after[1].verify
    assert before[1].frame != after[1].frame
    assert before[1].outer != after[1].outer
    assert before[2].frame != after[2].frame


NAMED = ("a tree", "leaves of equal depth", "lines", "lines, verified", "a histogram", "without bounds")


@pytest.mark.parametrize("name", NAMED)
def test_rules_of_options_are_others_too(name, monkeypatch):
    """What the test of other rules would show if options that were left open were stored as open."""

    def resolved():
        data = dataset(**RELATIONS["a public number"])
        (asked,) = ask_all(data, [question(CASES[name], RELATIONS["a public number"])])
        return asked.any.resolved.method

    before = resolved()
    other_rules(monkeypatch)
    after = resolved()
    for option in before.by_rule:
        assert getattr(before, option) not in (None, "auto")
    assert any(getattr(before, option) != getattr(after, option) for option in before.by_rule)


def test_an_option_that_was_left_open_is_refused_in_what_is_read():
    release = sf.quantiles(np.arange(500) / 500, MANY, bounds=ROUND, epsilon=1, nulls="lower", method="tree")
    record = release.to_dict()
    options = dict(dict(record["parameters"]["resolved"][1:])["method"][1:])
    sf.read_release(changed(record, method=["tree", *([*pair] for pair in options.items())]))
    for hostile in ({"leaves": None}, {"branching": None}, {"noise": "auto"}, {"leaves": 0}, {"leaves": "9"}):
        method = ["tree", *([*pair] for pair in (options | hostile).items())]
        with pytest.raises(InvalidParameter):
            sf.read_release(changed(record, method=method))


def test_each_choice_is_stored_once_however_many_groups_came_to_it():
    data = dataset(neighbours="add-remove")
    asked = ask_all(data, [question({"probs": DECILES}, {}, ("team",))])
    answers = session.draw(data, asked, SeededBits(1))
    (stored,) = json.loads(write_outcome({}, asked, answers))["questions"]
    made = [release.query.resolved for release in releases(answers[0])]
    assert len({choice.method.name for choice in made}) > 1
    assert len(stored["resolved"]) == len(set(made))
    assert stored["parameters"]["resolved"] is None
    # Nothing is counted first, so that all groups come to the same.
    same = ask_all(data, [question({"probs": (0.5,), "verify": 0}, {}, ("team",))])
    (stored,) = json.loads(write_outcome({}, same, session.draw(data, same, SeededBits(1))))["questions"]
    assert "resolved" not in stored
    assert stored["parameters"]["resolved"][0] == "resolved"


@pytest.mark.parametrize("relation", RELATIONS.values(), ids=RELATIONS)
def test_no_choice_is_longer_than_was_foreseen(relation):
    data = dataset(**relation)
    asked = ask_all(data, [question(case, relation, ("team",)) for case in CASES.values()])
    for one, answer in zip(asked, session.draw(data, asked, SeededBits(1)), strict=True):
        for release in releases(answer):
            found, longest = release.query.resolved, one.any.longest_resolved
            assert len(json.dumps(encode(found))) <= len(json.dumps(encode(longest)))


def test_a_query_that_was_answered_asks_the_same_question_of_other_data():
    data = dataset(neighbours="add-remove")
    asked = question({"probs": (0.5,), "verify": "auto"}, {})
    with sf.Session(data, budget=sf.PureDP(9)) as opened:
        first = opened.answer(asked.query)
        again = opened.answer(first.query)
    assert first.query.resolved is not None
    assert again.query.resolved is not None
    facts = digest_of(data, [Question(query=first.query)])
    assert facts == digest_of(data, [Question(query=replace(first.query, resolved=None))])


def changed(record, **changes):
    """The record with other choices; they are stored as pairs behind a name."""
    pairs = dict(record["parameters"]["resolved"][1:]) | changes
    resolved = ["resolved", *([name, value] for name, value in pairs.items() if value is not KeyError)]
    return {**record, "parameters": {**record["parameters"], "resolved": resolved}}


def points(bits=32, cells=2**20, closed=False):
    return ["points", ["bits", bits], ["cells", cells], ["closed", closed]]


HOSTILE = {
    "an open method": {"method": "auto"},
    "an unknown method": {"method": "quicksort"},
    "an unknown option": {"method": ["single", ["depth", 3]]},
    "a method without bounds": {"method": "unbounded"},
    "a tree with outer orders": {"method": "tree"},
    "no method": {"method": None},
    "something else": {"extra": 1},
    "nothing said": {"said": KeyError},
    "a number said": {"said": 3},
    "a line said": {"said": "a\nb"},
    "too much said": {"said": "x" * 201},
    "no points": {"points": None},
    "points without a name": {"points": [["bits", 32], ["cells", 9], ["closed", True]]},
    "too many points": {"points": points(cells=MAX_CELLS + 1)},
    "absurdly many points": {"points": points(cells=10**30)},
    "no cells": {"points": points(cells=None)},
    "0 cells": {"points": points(cells=0)},
    "one closed cell": {"points": points(cells=1, closed=True)},
    "half a cell": {"points": points(cells=0.5)},
    "cells as text": {"points": points(cells="9")},
    "too many bits": {"points": points(bits=10**9)},
    "no bits": {"points": points(bits=None)},
    "closed by a number": {"points": points(closed=1)},
    "no outer points": {"outer": None},
    "absurd outer points": {"outer": points(cells=2**40)},
    "no frame": {"frame": 0},
    "all of it as the frame": {"frame": 1},
    "a frame as text": {"frame": "auto"},
    "nothing that verifies": {"verify": 0},
    "less than nothing": {"verify": -1},
    "a huge share": {"verify": {"fraction": "9" * 999}},
    "a count as text": {"count": "auto"},
    "a count that was not drawn": {"count": {"fraction": "1/20"}},
    "pure as text": {"pure": "yes"},
}


@pytest.mark.parametrize("changes", HOSTILE.values(), ids=HOSTILE)
def test_choices_that_were_not_written_are_refused(changes):
    release = sf.median(np.arange(500) / 500, bounds=ROUND, epsilon=1, nulls="lower", verify="auto")
    record = release.to_dict()
    assert sf.read_release(changed(record)) == release
    with pytest.raises(InvalidParameter):
        sf.read_release(changed(record, **changes))


@pytest.mark.parametrize("given", [None, [], "auto", 5, {}, ["resolved"], {"fraction": "1/2"}], ids=str)
def test_releases_whose_choices_are_open_are_refused(given):
    record = sf.median(np.arange(500) / 500, bounds=ROUND, epsilon=1, nulls="lower").to_dict()
    with pytest.raises(InvalidParameter):
        sf.read_release({**record, "parameters": {**record["parameters"], "resolved": given}})


def test_choices_that_contradict_the_question_are_refused():
    record = sf.quantiles(
        np.arange(500) / 500, DECILES, bounds=ROUND, epsilon=1, nulls="lower", method="joint", verify=0.3
    ).to_dict()
    sf.read_release(changed(record))
    for changes in (
        {"method": ["recursive", ["subcells", 4]]},
        {"verify": {"fraction": "1/2"}},
        {"frame": {"fraction": "1/2"}},
        {"outer": points()},
    ):
        with pytest.raises(InvalidParameter, match="resolved"):
            sf.read_release(changed(record, **changes))
