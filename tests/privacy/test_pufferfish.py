"""Models, certificates and their verification, what a wrong model costs, and why nothing adds up."""

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.privacy.mixture_oracle import CASES, laplace_loss, model

from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws.coins import exp_bounds
from sfumato.mechanisms import LaplaceMechanism
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    ComposedEvent,
    LaplaceEvent,
    OneShotEvent,
    PureDP,
    accountant_for,
    compose,
    event_from_dict,
    for_changes,
    pld_delta,
    pld_epsilon,
)
from sfumato.privacy.pufferfish import (
    Certificate,
    Finite,
    JointMixture,
    Mixture,
    Pufferfish,
    VectorMixture,
    certify,
    infinity_distance,
    leakage,
    misspecified,
)

ILL, WELL = Finite({1: 0.5, 2: 0.5}), Finite({0: 0.5, 1: 0.5})
FLU = Pufferfish(scenarios={"usual": {"ill": ILL, "well": WELL}}, pairs=[("ill", "well")])
WIDER = model(*CASES["wider"])
TWO = Pufferfish(
    scenarios={
        "calm": {"a": Mixture.normal(0, 1), "b": Mixture.normal(1, 1), "c": Mixture.normal(3, 1)},
        "wild": {"a": Mixture.normal(0, 2), "b": Mixture.normal(2, 2), "c": None},
    },
    pairs=[("a", "b"), ("b", "c")],
)
METHODS = {"wasserstein": 0, "laplace-certified": 0, "gaussian-exact": 1e-4, "coupling": 1e-3}


# --- models ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenarios", "pairs", "rule"),
    [
        ({}, [("ill", "well")], "scenarios must be a mapping with at least one entry"),
        ({"usual": {}}, [("ill", "well")], "scenario 'usual' must be a mapping"),
        ({"usual": {"ill": ILL, "well": WELL}}, [], "pairs must be at least one"),
        (
            {"usual": {"ill": ILL}},
            [("ill", "well")],
            "scenario 'usual' must have a law for the secret 'well'",
        ),
        ({"usual": {"ill": ILL, "well": None}}, [("ill", "well")], "the pair .* is possible in no scenario"),
        ({"usual": {"ill": ILL, "well": 3}}, [("ill", "well")], "a law must be a Finite"),
        ({"usual": {"ill": ILL, "well": WELL}}, [("ill", "ill")], "a pair must be two different secrets"),
        ({"usual": {"ill": ILL, "well": WELL}}, ["ill"], "a pair must be two different secrets"),
        (
            {"usual": {"ill": ILL, "well": WELL}},
            [("ill", "well"), ("well", "ill")],
            "pairs must name every pair once",
        ),
        (
            {"usual": {"ill": ILL, "well": Mixture.normal(0, 1)}},
            [("ill", "well")],
            "all laws of a model must be of one kind",
        ),
    ],
)
def test_a_model_that_leaves_something_open_is_refused(scenarios, pairs, rule):
    with pytest.raises(InvalidParameter, match=f"^{rule}"):
        Pufferfish(scenarios=scenarios, pairs=pairs)


def test_a_secret_of_probability_zero_is_left_out_where_it_is_impossible():
    assert [one.key for one in TWO.comparisons] == [
        ("calm", "a", "b"),
        ("calm", "b", "c"),
        ("wild", "a", "b"),
    ]


def test_the_worst_pair_of_the_worst_scenario_decides():
    found = certify(TWO, epsilon=1, method="wasserstein")
    assert found.scale == 2
    assert {bound.key: float(bound.value) for bound in found.bounds} == {
        ("calm", "a", "b"): 0.5,
        ("calm", "b", "c"): 1.0,
        ("wild", "a", "b"): 1.0,
    }


# --- certificates ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pair", [FLU, WIDER, TWO], ids=["finite", "wider", "two scenarios"])
def test_a_certificate_verifies_and_every_edit_of_it_fails(method, pair):
    if method == "wasserstein" and pair is WIDER:
        with pytest.raises(NotSupported, match=r"no bound on how far .* take method='laplace-certified'"):
            certify(pair, epsilon=1, method=method)
        return
    found = certify(pair, epsilon=1, delta=METHODS[method], method=method)
    assert found.verify(pair) is found
    assert found.epsilon <= 1
    assert found.delta <= METHODS[method]
    again = Certificate.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again == found
    assert again.verify(pair) == found
    less = Fraction(95, 100)
    edits = [{"scale": found.scale * less}, {"epsilon": found.epsilon * less}, {"bounds": found.bounds[:-1]}]
    edits += [{"bounds": found.bounds * 2}]
    edits += [{"granularity": found.scale * Fraction(3, 4)}] if method != "coupling" else []
    low = tuple(replace(bound, value=bound.value * less) for bound in found.bounds)
    if found.worst.value:
        edits.append({"bounds": low})
        edits.append(
            {
                "bounds": low,
                "epsilon" if method in ("wasserstein", "laplace-certified") else "delta": low[0].value,
            }
        )
    if method in ("wasserstein", "laplace-certified"):
        edits += [{"epsilon": found.epsilon * 2}, {"delta": Fraction(1, 10**6)}]
    for edit in edits:
        if edit.get("bounds") == ():
            edit = {"bounds": (replace(found.bounds[0], second="nobody"),)}
        edited = replace(found, **edit)
        with pytest.raises(InvalidParameter):
            edited.verify(pair)


def test_a_certificate_is_for_its_own_model():
    found = certify(FLU, epsilon=1, method="wasserstein")
    wider = Pufferfish(scenarios={"usual": {"ill": Finite({5: 1}), "well": WELL}}, pairs=[("ill", "well")])
    with pytest.raises(InvalidParameter, match="is proved"):
        found.verify(wider)
    other = Pufferfish(scenarios={"other": {"ill": ILL, "well": WELL}}, pairs=[("ill", "well")])
    with pytest.raises(InvalidParameter, match="does not cover exactly the pairs"):
        found.verify(other)


@pytest.mark.parametrize("method", ["wasserstein", "laplace-certified"])
def test_an_exact_bound_has_no_tolerance(method):
    # Nothing was rounded here, so that a scale that is short by a part in 10^12 is short.
    pair = model(Mixture.normal(0, 1), Mixture.normal(2, 1))
    found = certify(pair, epsilon=1, method=method)
    assert (found.scale, found.epsilon) == (2, 1)
    with pytest.raises(InvalidParameter, match="is proved"):
        replace(found, scale=2 - Fraction(1, 10**12)).verify(pair)


def test_more_noise_than_is_claimed_for_is_proved_too():
    found = certify(WIDER, epsilon=1, method="laplace-certified")
    more = replace(found, scale=found.scale * 2)
    assert more.verify(WIDER) is more


def test_what_cannot_be_proved_is_not_verified():
    found = certify(WIDER, epsilon=1, method="laplace-certified")
    with pytest.raises(InvalidParameter, match="the certificate is not proved: no bound on how far"):
        replace(found, method="wasserstein").verify(WIDER)
    with pytest.raises(InvalidParameter, match="model must be a Pufferfish"):
        found.verify("WIDER")
    with pytest.raises(InvalidParameter, match=r"^bounds must be"):
        replace(found, bounds=[1])
    for value in ("1", math.nan):
        with pytest.raises(InvalidParameter, match=r"^value must be"):
            replace(found.worst, value=value)


def test_a_failure_of_many_components_still_fits_into_a_record():
    generator = np.random.default_rng(3)
    laws = []
    for _ in range(2):
        parts = [int(n) for n in generator.integers(1, 10**6, 30)]
        means = [round(float(x), 3) for x in generator.normal(0, 10, 30)]
        deviations = [round(float(x), 3) for x in np.exp(generator.normal(0, 1, 30))]
        laws.append(Mixture([Fraction(n, sum(parts)) for n in parts], means, deviations))
    found = certify(model(*laws), epsilon=1, delta=1e-3, method="coupling")
    assert found.delta.denominator.bit_length() <= 401
    assert Certificate.from_dict(found.to_dict()).verify(model(*laws)) == found


@pytest.mark.parametrize("method", METHODS)
def test_laws_that_are_equal_but_written_otherwise_need_no_noise(method):
    for left, right in (
        (Mixture([0.5, 0.5], [0, 0], [1, 1]), Mixture.normal(0, 1)),
        (Mixture([0.5, 0.5], [0, 1], [1, 2]), Mixture([0.5, 0.5], [1, 0], [2, 1])),
    ):
        with pytest.raises(NotSupported, match="needs no noise"):
            certify(model(left, right), epsilon=1, delta=METHODS[method], method=method)


def test_a_record_that_is_none_is_refused():
    record = certify(FLU, epsilon=1, method="wasserstein").to_dict()
    broken = [{**record, "format": 2}, {**record, "type": "pure"}, {**record, "bounds": "all"}]
    broken += [{**record, "bounds": [["usual", "ill", "well"]]}, {**record, "scale": 2.0}, {"format": 1}]
    broken += [{**record, "method": "magic"}, {**record, "scale": "0"}, {**record, "delta": "1"}]
    for one in (*broken, {**record, "bounds": []}, [], {**record, "more": "1"}):
        with pytest.raises(InvalidParameter):
            Certificate.from_dict(one)


def test_parameters_that_break_a_rule_are_refused():
    for options, rule in (
        ({"epsilon": 0, "method": "wasserstein"}, "epsilon must be positive"),
        ({"epsilon": 1, "method": "magic"}, "method must be one of"),
        ({"epsilon": 1, "delta": 0.1, "method": "wasserstein"}, "delta must be 0 for method='wasserstein'"),
        ({"epsilon": 1, "method": "coupling"}, "delta must be inside"),
        ({"epsilon": 1, "method": "wasserstein", "granularity": 0}, "granularity must be positive"),
    ):
        with pytest.raises(InvalidParameter, match=f"^{rule}"):
            certify(FLU, **options)
    with pytest.raises(InvalidParameter, match="model must be a Pufferfish"):
        certify({"usual": {}}, epsilon=1, method="wasserstein")


def test_equal_laws_need_no_noise_and_get_no_certificate():
    same = Pufferfish(scenarios={"usual": {"ill": WELL, "well": WELL}}, pairs=[("ill", "well")])
    with pytest.raises(NotSupported, match="tells nothing and needs no noise"):
        certify(same, epsilon=1, method="wasserstein")
    assert infinity_distance(WELL, WELL) == 0


def test_vectors_are_certified_by_couplings_only():
    cov = [[1, 0.5], [0.5, 1]]
    laws = {"a": VectorMixture([1], [[0, 0]], [cov]), "b": VectorMixture([1], [[3, 4]], [cov])}
    pair = Pufferfish(scenarios={"usual": laws}, pairs=[("a", "b")])
    found = certify(pair, epsilon=1, delta=1e-6, method="coupling")
    assert found.delta == 0  # equal shapes: the coupling only moves
    # A move of length 5 is at most 5 sqrt(2) in L1, and rounding adds two steps.
    assert found.scale == pytest.approx(5 * math.sqrt(2), rel=2e-3)
    assert found.scale >= 5 * math.sqrt(2)
    found.verify(pair)
    for method in ("wasserstein", "laplace-certified", "gaussian-exact"):
        with pytest.raises(NotSupported, match="queries of one number"):
            certify(pair, epsilon=1, delta=METHODS[method], method=method)


def test_rounding_a_vector_may_add_a_step_to_each_coordinate():
    # 0.49 and 0.51 round to 0 and 1 in both coordinates: two steps, however near the laws are.
    cov = [[1e-6, 0], [0, 1e-6]]
    laws = {name: VectorMixture([1], [[x, x]], [cov]) for name, x in (("a", 0.49), ("b", 0.51))}
    pair = Pufferfish(scenarios={"usual": laws}, pairs=[("a", "b")])
    assert certify(pair, epsilon=1, delta=1e-6, method="coupling", granularity=1).scale >= 2


# --- differential privacy as a special case -------------------------------------------------------


def test_independent_records_need_what_the_laplace_mechanism_needs():
    others = {k: Fraction(math.comb(4, k), 16) for k in range(5)}
    laws = {str(a): Finite({k + a: p for k, p in others.items()}) for a in (0, 1)}
    count = Pufferfish(scenarios={"independent": laws}, pairs=[("0", "1")])
    for epsilon in (Fraction(1, 2), Fraction(1), Fraction(2)):
        plain = LaplaceMechanism.calibrated(epsilon=epsilon, sensitivity=1).scale
        for method in ("wasserstein", "laplace-certified"):
            found = certify(count, epsilon=epsilon, method=method)
            assert (found.scale, found.granularity, found.epsilon) == (plain, 1, epsilon)


def test_ignoring_the_correlation_is_noticed():
    # Five measurements of one person, correlated by 0.8: the sum moves by 4.2 and not by 1.
    related = [[Fraction(1) if i == j else Fraction(4, 5) for j in range(5)] for i in range(5)]
    person = JointMixture([1], [[0] * 5], [related])
    low, high = (person.given(0, value).of([1] * 5) for value in (0, 1))
    right = certify(model(low, high), epsilon=1, method="laplace-certified")
    assert right.scale == pytest.approx(4.2, rel=1e-3)
    alone = JointMixture([1], [[0] * 5], [np.eye(5).tolist()])
    mutant = certify(
        model(*(alone.given(0, v).of([1] * 5) for v in (0, 1))), epsilon=1, method="laplace-certified"
    )
    assert laplace_loss(low, high, right.scale) <= 1
    assert laplace_loss(low, high, mutant.scale) > 3
    with pytest.raises(InvalidParameter, match="is proved"):
        mutant.verify(model(low, high))


# --- finite laws: everything enumerated ------------------------------------------------------------


def some_law(generator):
    weights = [int(w) for w in generator.integers(1, 5, generator.integers(1, 4))]
    values = generator.choice(7, len(weights), replace=False)
    return Finite({int(v): Fraction(w, sum(weights)) for v, w in zip(values, weights, strict=True)})


def exact_ratio(left, right, scale):
    """The largest ratio over outcomes -10 to 16, from below."""
    best = Fraction(0)
    for outcome in range(-10, 17):
        one, other = (
            [sum(w * exp_bounds(abs(outcome - v) / scale, 200)[side] for v, w in law) for side in (0, 1)]
            for law in (left, right)
        )
        best = max(best, one[0] / other[1], other[0] / one[1])
    return best


@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(1), Fraction(3)])
def test_no_outcome_of_a_finite_model_loses_more_than_the_certificate_says(epsilon):
    generator, tight = np.random.default_rng(5), 0
    for _ in range(12):
        left, right = some_law(generator), some_law(generator)
        if left == right:
            continue
        pair = Pufferfish(scenarios={"usual": {"a": left, "b": right}}, pairs=[("a", "b")])
        wide = certify(pair, epsilon=epsilon, method="wasserstein")
        least = certify(pair, epsilon=epsilon, method="laplace-certified")
        assert least.scale <= wide.scale
        for found in (wide, least):
            steps = [Finite({v / found.granularity: w for v, w in law}) for law in (left, right)]
            exact = math.log(exact_ratio(*steps, found.scale / found.granularity))
            assert exact <= float(found.epsilon) * (1 + 1e-12) <= float(epsilon) * (1 + 1e-12)
        # Laws that differ by less than epsilon need no noise; all others as much as they get.
        assert exact >= float(epsilon) * 0.98 or least.scale < wide.scale / 8000
        tight += exact >= float(epsilon) * 0.98
    assert tight >= 9


# --- a wrong model ----------------------------------------------------------------------------------


def test_misspecification_costs_two_tau_and_delta_grows():
    found = certify(FLU, epsilon=1, delta=0.01, method="gaussian-exact")
    left = misspecified(found, tau=0.1)
    assert left.epsilon == found.epsilon + Fraction(1, 5)
    assert -1e-17 <= float(left.delta) - float(found.delta) * math.exp(0.1) < 1e-12
    assert misspecified(found, tau=0).delta == found.delta
    assert misspecified(certify(FLU, epsilon=1, method="wasserstein"), tau=1).delta == 0
    with pytest.raises(InvalidParameter, match="tau must be in"):
        misspecified(found, tau=-1)


def test_no_world_near_the_model_loses_more_than_that():
    # Every way to move both conditionals by a factor within e^tau, at the corners.
    tau, found = 0.2, certify(FLU, epsilon=1, method="laplace-certified")
    limit = float(misspecified(found, tau=tau).epsilon)
    scale, worst = float(found.scale), 0.0
    for up, down in product((-1, 1), repeat=2):
        near = []
        for law, side in ((ILL, up), (WELL, down)):
            # The larger factor e^tau on one value; the other takes the rest, which stays within e^-tau.
            weights = np.array([float(w) for w in law.weights])
            weights[0] *= math.exp(side * tau * 0.9)
            weights[1] = 1 - weights[0]
            assert np.all(np.abs(np.log(weights / 0.5)) <= tau * 1.2)
            near.append((np.array([float(v) for v in law.values]), weights))
        outcomes = np.arange(-30, 31)
        chances = [
            (np.exp(-np.abs(outcomes[:, None] - values) / scale) * weights).sum(axis=1)
            for values, weights in near
        ]
        worst = max(worst, float(np.abs(np.log(chances[0] / chances[1])).max()))
    assert float(found.epsilon) < worst <= limit


# --- diagnostics ------------------------------------------------------------------------------------


def test_leakage_is_an_average_below_the_guarantee():
    for pair, method in ((WIDER, "laplace-certified"), (WIDER, "gaussian-exact"), (FLU, "wasserstein")):
        found = certify(pair, epsilon=1, delta=METHODS[method], method=method)
        [one] = leakage(pair, found)
        assert 0 < one.information < one.divergence < 1
        assert one.information <= math.log(2)


def test_leakage_of_a_shift_is_that_of_its_formula():
    pair = model(Mixture.normal(0, 3), Mixture.normal(2, 3))
    found = certify(pair, epsilon=1, delta=1e-4, method="gaussian-exact")
    [one] = leakage(pair, found)
    assert one.divergence == pytest.approx(4 / (2 * (9 + float(found.scale) ** 2)), rel=1e-3)


# --- nothing adds up ----------------------------------------------------------------------------------


EVENT = OneShotEvent(epsilon=1, delta=1e-6, name="pufferfish")


def test_the_event_reads_back_and_keeps_its_meaning():
    record = {"format": 1, "type": "one-shot", "epsilon": "1", "delta": "1/1000000", "name": "pufferfish"}
    assert EVENT.to_dict() == record
    assert event_from_dict(record) == EVENT
    pure = OneShotEvent(epsilon=1, delta=0, name="pufferfish")
    assert event_from_dict(pure.to_dict()) == pure
    assert repr(EVENT) == "OneShotEvent(epsilon=1, delta=1e-06, name='pufferfish')"
    for name, value in (("epsilon", "0"), ("delta", "1"), ("name", "")):
        with pytest.raises(InvalidParameter, match=f"^{name} must be"):
            event_from_dict({**record, name: value})


WAYS = {
    "pure": lambda event: accountant_for(PureDP(9)).charge(event),
    "pure, stated": lambda event: accountant_for(PureDP(9)).charge(event, PureDP(5)),
    "zcdp": lambda event: accountant_for(ZCDP(9)).charge(event),
    "zcdp, stated": lambda event: accountant_for(ZCDP(9)).charge(event, ZCDP(5)),
    "summed": lambda event: accountant_for(ApproxDP(9, 0.1)).charge(event),
    "summed, stated": lambda event: accountant_for(ApproxDP(9, 0.1)).charge(event, ApproxDP(5, 0.01)),
    "price": lambda event: accountant_for(ApproxDP(9, 0.1)).price(event),
    "require": lambda event: accountant_for(ApproxDP(9, 0.1)).require(event),
    "composed": lambda event: ComposedEvent([LaplaceEvent(1, 10), event]),
    "compose": lambda event: compose([event], delta=1e-3),
    "pld delta": lambda event: pld_delta([event], 1),
    "pld epsilon": lambda event: pld_epsilon([event], 1e-3),
    "changes": lambda event: for_changes(event, 3),
    "one change": lambda event: for_changes(event, 1),
    "pure epsilon": lambda event: event.pure_epsilon,
    "rho": lambda event: event.rho,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("event", [EVENT, OneShotEvent(1, 0, "pufferfish")], ids=["approximate", "pure"])
def test_whoever_adds_up_refuses_it_in_words(way, event):
    with pytest.raises(NotSupported, match=r"^OneShotEvent.* is one-shot: Pufferfish costs do not add up"):
        WAYS[way](event)


def test_two_releases_can_tell_what_neither_tells():
    # Two bits whose exclusive or is the secret: each alone is uniform whatever the secret is. So the query
    # "first bit" and the query "second bit" both lose nothing, without any noise; together they tell all.
    for secret in (0, 1):
        worlds = [(first, first ^ secret) for first in (0, 1)]
        assert sorted(first for first, _ in worlds) == sorted(second for _, second in worlds) == [0, 1]
        assert {first ^ second for first, second in worlds} == {secret}
