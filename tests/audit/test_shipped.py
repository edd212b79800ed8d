"""The catalogue of what is shipped: nothing is missing from it, everything in it holds, and it can fail."""

import math
import pickle
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import sfumato.mechanisms
from sfumato.audit import shipped, worst_case
from sfumato.audit.choices import worst_choice, worst_crossing, worst_listed, worst_stream
from sfumato.audit.shipped import METHOD_OPTIONS, QUESTIONS, RELATIONS
from sfumato.audit.shipped_local import designs, worst_truths
from sfumato.audit.target import Target, in_words
from sfumato.errors import InvalidParameter
from sfumato.local.binary import Warner
from sfumato.local.records import _KINDS as DESIGNS
from sfumato.mechanisms import (
    MECHANISMS,
    AboveThreshold,
    ExponentialMechanism,
    LaplaceMechanism,
    SparseMechanism,
    TopMechanism,
)
from sfumato.mechanisms.moves import AnyQueries, SameDirection
from sfumato.privacy import ZCDP, Amount, ApproxDP, PureDP
from sfumato.quantile_methods import METHODS
from sfumato.statistics import STATISTICS, Mean

CATALOGUE = shipped()


def of_group(group):
    return [target for target in CATALOGUE if target.group == group]


def subjects(group):
    return {target.subject for target in of_group(group)}


# --- nothing is missing ---------------------------------------------------------------------------


def test_every_statistic_has_a_line():
    assert subjects("statistics") == set(STATISTICS)
    assert {kind for kind, _ in QUESTIONS.values()} == set(STATISTICS.values())


def test_every_quantile_method_has_a_line():
    assert subjects("quantiles") == set(METHODS) == set(METHOD_OPTIONS)


def test_every_mechanism_has_a_line():
    with_law = {name for name, value in vars(sfumato.mechanisms).items() if hasattr(value, "law")}
    assert subjects("mechanisms") == with_law & set(sfumato.mechanisms.__all__)
    assert {kind.__name__ for kind in MECHANISMS} <= subjects("mechanisms")


def test_every_local_design_has_a_line():
    assert subjects("local") == set(DESIGNS)


def test_the_catalogue_notices_what_has_no_line(monkeypatch):
    class Unheard(Mean):
        name = "unheard"

    monkeypatch.setitem(STATISTICS, "unheard", Unheard)
    with pytest.raises(AssertionError):
        test_every_statistic_has_a_line()
    monkeypatch.setitem(METHODS, "unheard", METHODS["single"])
    with pytest.raises(AssertionError):
        test_every_quantile_method_has_a_line()
    monkeypatch.setattr(sfumato.mechanisms, "Unheard", MECHANISMS[0], raising=False)
    monkeypatch.setattr(sfumato.mechanisms, "__all__", [*sfumato.mechanisms.__all__, "Unheard"])
    with pytest.raises(AssertionError):
        test_every_mechanism_has_a_line()


def test_a_quantile_method_without_a_line_is_audited_with_its_defaults(monkeypatch):
    monkeypatch.setitem(METHODS, "unheard", METHODS["single"])
    assert [target for target in shipped(quick=True) if target.title == "unheard"]


@pytest.mark.parametrize("subject", sorted(STATISTICS))
def test_every_statistic_meets_every_relation_null_rule_and_kind_of_budget_that_it_takes(subject):
    found = {
        (query.neighbours, query.nulls, type(query.budget))
        for query in (target.run.args[0] for target in of_group("statistics") if target.subject == subject)
    }
    needs_public_size = subject in ("inverse_mean", "inverse_proportion", "exponential_mean")
    relations = RELATIONS[:1] if needs_public_size else RELATIONS
    nulls = ("lower", "upper") if needs_public_size else ("drop", "lower", "upper")
    assert found == {(r, n, b) for r in relations for n in nulls for b in (PureDP, ApproxDP, ZCDP)}


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_quantile_method_meets_both_relations_and_every_kind_of_budget(name):
    asked = [target.run.args[0] for target in of_group("quantiles") if target.subject == name]
    assert {query.neighbours for query in asked} == set(RELATIONS)
    assert {type(query.budget) for query in asked} == {PureDP, ApproxDP, ZCDP}
    assert {query.nulls for query in asked} == {"drop", "lower"}


# --- its form -------------------------------------------------------------------------------------


@pytest.mark.parametrize("quick", [False, True])
def test_names_are_unique_with_their_claims(quick):
    named = Counter((target.group, target.name, target.claimed) for target in shipped(quick=quick))
    assert max(named.values()) == 1


def test_targets_travel_to_other_processes():
    for target in CATALOGUE:
        copy = pickle.loads(pickle.dumps(target))
        assert (copy.name, copy.cost) == (target.name, target.cost)


def test_costs_are_told_in_words():
    assert in_words(PureDP(0.1)) == "epsilon 0.1"
    assert in_words(ApproxDP(1, 1e-6)) == "epsilon 1, delta 1e-06"
    assert in_words(ZCDP(Fraction(1, 3))) == "rho 0.3333"
    assert in_words(Amount()) == "nothing"


# --- everything holds -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("group", ["statistics", "quantiles", "mechanisms", "local"])
def test_every_claim_holds_on_the_smallest_data_sets(group):
    for target in shipped(quick=True):
        if target.group == group:
            worst = target.audit()
            assert worst.loss.holds, f"{target.name}, {target.claimed}: {worst}"
            assert worst.pairs > 0
            # What a ledger takes is never more than what is claimed.
            assert worst.loss.charged <= charged(target.cost) * (1 + 1e-12)


def charged(cost):
    if isinstance(cost, ApproxDP):
        return float(cost.delta)
    return float(cost.rho if isinstance(cost, ZCDP) else cost.epsilon)


@pytest.mark.parametrize("design", designs(), ids=repr)
def test_designs_attain_what_they_claim(design):
    assert worst_truths(design).loss.tightness == pytest.approx(1, abs=1e-9)


# --- it can fail: broken variants -----------------------------------------------------------------


class HalfTheNoise(LaplaceMechanism):
    def law(self, value):
        return LaplaceMechanism(sensitivity=self.sensitivity, scale=self.scale / 2).law(value)


def test_half_the_noise_is_a_violation():
    broken = HalfTheNoise(sensitivity=1, scale=Fraction(1))
    target = Target(
        group="mechanisms",
        subject="x",
        title="x",
        detail="y",
        cost=PureDP(1),
        run=partial(worst_case, broken),
    )
    worst = target.audit()
    assert worst.loss.verdict == "VIOLATED"
    assert worst.loss.tightness == pytest.approx(2)


@pytest.mark.parametrize("variant", ["flip", "exponential", "base2"])
def test_the_promise_of_monotone_scores_broken_is_a_violation(variant):
    class Moved(ExponentialMechanism):
        @property
        def rate(self):
            return self.epsilon / self.sensitivity

    options = {"sensitivity": 1, "epsilon": 1, "variant": variant}
    assert worst_choice(ExponentialMechanism(**options), candidates=3, top=3).loss.holds
    assert worst_choice(Moved(**options), candidates=3, top=3).loss.verdict == "VIOLATED"


def test_picks_that_pay_for_one_are_a_violation():
    class Unpaid(TopMechanism):
        @property
        def each(self):
            return ExponentialMechanism(sensitivity=self.sensitivity, epsilon=self.epsilon)

    assert worst_choice(Unpaid(picks=2, sensitivity=1, epsilon=1), candidates=3, top=2).loss.tightness > 1.5


def test_a_scan_with_half_the_query_noise_is_a_violation():
    right = AboveThreshold.general(1, 1)
    shape = {"values": 3, "rows": 3, "run": 60}
    assert worst_crossing(right, **shape).loss.holds
    together = replace(right, moves=SameDirection(1), query_scale=right.query_scale / 2)

    class Dishonest(AboveThreshold):
        @property
        def cost(self):
            return Fraction(1)

    wrong = Dishonest(
        moves=AnyQueries(1), threshold_scale=together.threshold_scale, query_scale=together.query_scale
    )
    assert worst_crossing(wrong, **shape).loss.tightness > 1.4


def test_a_stream_that_pays_for_one_crossing_of_two_is_a_violation():
    class Dishonest(SparseMechanism):
        @property
        def cost(self):
            return Fraction(1)

    once = SparseMechanism.calibrated(1, sensitivity=1, crossings=1)
    scales = {"threshold_scale": once.threshold_scale, "query_scale": once.query_scale}
    assert worst_stream(Dishonest(moves=AnyQueries(1), crossings=1, **scales), values=2).loss.holds
    wrong = worst_stream(Dishonest(moves=AnyQueries(1), crossings=2, **scales), values=3)
    assert wrong.loss.verdict == "VIOLATED"


def test_a_design_that_keeps_the_truth_more_often_than_it_says_is_a_violation():
    wrong = worst_truths(Warner(keep=Fraction(4, 5)), PureDP(Warner(keep=Fraction(3, 4)).epsilon))
    assert wrong.loss.verdict == "VIOLATED"
    certain = worst_truths(Silent(), PureDP(1))
    assert certain.loss.amount == math.inf


class Silent:
    """A design that never lies."""

    def matrix(self):
        return (Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))


def test_the_worst_pair_is_told():
    logs = {"a": np.log([0.5, 0.5]), "b": np.log([0.25, 0.75]), "c": np.log([0.5, 0.5])}
    worst = worst_listed("a law", logs.__getitem__, [("a", "c"), ("a", "b"), ("c", "a")], PureDP(1))
    assert (worst.left, worst.right, worst.pairs) == ("a", "b", 3)
    assert worst.loss.amount == pytest.approx(math.log(2))
    with pytest.raises(InvalidParameter, match="no neighbouring pairs"):
        worst_listed("a law", logs.__getitem__, [], PureDP(1))
