"""What verified intervals cost and how wide they will be, before anything is read, against releases."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import sfumato as sf
from sfumato.accuracy import Scenario
from sfumato.data.admission import admit
from sfumato.laws import SeededBits
from sfumato.quantile_methods import Tree
from sfumato.quantile_methods.foreseen_width import part_words
from sfumato.query import raw

F = Fraction
EVEN = Scenario.named("uniform", low=0, high=1000)
PUBLIC = {"neighbours": "substitution", "nulls": "lower"}
HINTED = {"neighbours": "add-remove", "n_hint": 2000}
COUNTED = {"neighbours": "add-remove"}


def query(count=3, rows=2000, **facts):
    given = {
        "budget": sf.PureDP(1),
        "probs": [F(i, count + 1) for i in range(1, count + 1)],
        "bounds": (0, 1000),
        "verify": "auto",
        **PUBLIC,
        **facts,
    }
    public = given["neighbours"] == "substitution"
    return sf.Quantiles(**given, rows=rows if public else None)


def drawn(asked, rows, draws):
    """Widths of intervals on values that are spread evenly, one row a draw."""
    law = asked.law(asked.look(admit(np.arange(rows) * 1000 / rows)))
    bits = SeededBits(1)
    ends = [asked.interval(raw(law.sample(bits)), 0.95) for _ in range(draws)]
    return np.array([np.atleast_1d(high) - np.atleast_1d(low) for low, high in ends])


@pytest.mark.parametrize("facts", [PUBLIC, HINTED, COUNTED], ids=["public", "hinted", "counted"])
@pytest.mark.parametrize("count", [1, 3, 9])
@pytest.mark.parametrize("budget", [sf.PureDP(1), sf.ZCDP(F(1, 8)), sf.ApproxDP(1, 1e-6)], ids=repr)
def test_intervals_are_about_as_wide_as_foreseen(facts, count, budget):
    asked = query(count, budget=budget, **facts)
    stated = asked.accuracy(2000)
    assert len(stated.interval_ranks) == count
    assert stated.interval_widths is None
    found = drawn(asked, 2000, 120).mean() * 2000 / 1000
    assert np.mean(stated.interval_ranks) == pytest.approx(found, rel=0.25)


def test_under_a_scenario_the_width_is_told_in_value():
    stated = query(3).accuracy(2000, scenario=EVEN)
    found = drawn(query(3), 2000, 120).mean(axis=0)
    assert stated.interval_widths == pytest.approx(found, rel=0.3)
    assert stated.interval_ranks == query(3).accuracy(2000).interval_ranks
    wide = f"{min(stated.interval_widths):.2g} to {max(stated.interval_widths):.2g} in value wide"
    assert stated.within.endswith(wide)
    assert query(3).accuracy(2000, scenario=EVEN) == stated


def test_more_rows_than_are_simulated_have_a_width_too():
    stated = query(1, 10**7).accuracy(10**7, scenario=EVEN)
    assert stated.interval_widths[0] == pytest.approx(stated.interval_ranks[0] * 1000 / 10**7, rel=0.01)


def test_the_width_grows_with_confidence_and_shrinks_with_the_budget():
    by_level = [np.mean(query(3).accuracy(confidence=level).interval_ranks) for level in (0.5, 0.9, 0.99)]
    by_size = [np.mean(query(3, budget=sf.PureDP(e)).accuracy().interval_ranks) for e in (8, 2, F(1, 2))]
    for widths in (by_level, by_size):
        assert all(a < b for a, b in pairwise(widths))


def test_repeated_orders_have_widths_of_their_own():
    twice = query(probs=(0.75, 0.25, 0.75)).accuracy().interval_ranks
    once = query(probs=(0.25, 0.75)).accuracy().interval_ranks
    assert twice == (once[1], once[0], once[1])


@pytest.mark.parametrize("facts", [{"verify": 0}, {"method": Tree()}, {"interval_share": "auto"}], ids=str)
def test_without_verification_no_width_is_told(facts):
    asked = query(**facts)
    assert asked.divided == ""
    assert "verif" not in asked.described
    assert asked.accuracy().interval_ranks is None
    assert "verif" not in str(asked.accuracy())


def test_words_say_which_part_verifies():
    assert query(3).divided == "half of the budget verifies the intervals"
    assert query(1).divided == "two fifths of the budget verifies the intervals"
    assert query(1, budget=sf.ZCDP(1)).divided == "half of the budget verifies the intervals"
    assert query(verify=F(1, 8)).divided == "12.5 % of the budget verifies the intervals"
    assert query(**COUNTED).divided == "half of the rest verifies the intervals, unless values are few"
    assert query(verify=F(1, 2), **COUNTED).divided == "half of the rest verifies the intervals"
    unless = "half of the rest verifies the intervals, unless values are few"
    many = f"{unless} or a tree tells them"
    assert query(20, **COUNTED, step=1).divided == many
    assert query(20, **COUNTED, method=Tree()).divided == ""
    assert query(20, **COUNTED, method="recursive").divided == unless
    for asked in (query(3), query(**COUNTED), query(20, **COUNTED)):
        assert asked.described.endswith(f"; {asked.divided}")
    assert part_words(F(1, 100), "it") == "1 % of it verifies the intervals"


def test_a_preview_says_how_wide_and_at_which_part_of_the_cost():
    given = {"unit": "row", "neighbours": "substitution", "schema": {"x": sf.Field(bounds=(0, 2000))}}
    data = sf.Dataset({"x": np.arange(2000.0)}, **given)
    session = sf.Session(data, budget=sf.PureDP(3))
    asked = sf.Quantiles(column="x", probs=(0.25, 0.5), budget=sf.PureDP(1), nulls="lower")
    told = str(session.preview(asked))
    assert "; verified intervals about " in told
    assert told.endswith("; half of the budget verifies the intervals")
    plain = str(session.preview(replace(asked, verify=0)))
    assert "verif" not in plain
