"""The analyst's side: unbiased by enumeration, with the variances of the formulas, and read from counts."""

import itertools
import json
import math
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from tests.local.designs import BINARY, CATEGORICAL, CHANNELS, COLOURS, DESIGNS, SHARES, supports

import sfumato as sf
from sfumato.laws import SeededBits
from sfumato.local import (
    DirectEncoding,
    ForcedResponse,
    Tally,
    TwoSamples,
    UnaryEncoding,
    Warner,
    estimate,
    estimate_from_dict,
    respondents_needed,
    simulate,
    standard_error,
)
from sfumato.local.planning import covariance
from sfumato.local.shares import consistent, projected


def stated_covariance(design, shares, size, of="population"):
    """The rule of the package at true shares."""
    p, q = map(float, design.support)
    return covariance(design, q + (p - q) * np.array(shares, dtype=float), size, of)


def exact_moments(design, truths):
    """Mean and covariance of the estimator, over all answers of respondents with these truths, exactly."""
    support, rows = supports(design), design.matrix()
    p, q = design.support
    size, labels = len(truths), len(design.labels)
    mean = [Fraction(0)] * labels
    second = [[Fraction(0)] * labels for _ in range(labels)]
    for answers in itertools.product(range(len(rows[0])), repeat=size):
        chance = math.prod((rows[t][a] for t, a in zip(truths, answers, strict=True)), start=Fraction(1))
        counts = [int(sum(support[a][v] for a in answers)) for v in range(labels)]
        shares = [(Fraction(count, size) - q) / (p - q) for count in counts]
        for u in range(labels):
            mean[u] += chance * shares[u]
            for v in range(labels):
                second[u][v] += chance * shares[u] * shares[v]
    spread = [[second[u][v] - mean[u] * mean[v] for v in range(labels)] for u in range(labels)]
    return mean, np.array(spread, dtype=float)


def truth_sets(design):
    kinds = len(design.matrix())
    size = 3 if kinds == 2 else 2
    return list(itertools.combinations_with_replacement(range(kinds), size))[:6]


def own_shares(design, truths):
    if len(design.labels) == 1:
        return [Fraction(sum(truths), len(truths))]
    return [Fraction(truths.count(v), len(truths)) for v in range(len(design.labels))]


@pytest.mark.parametrize("name", [name for name in SHARES if name not in ("direct of 7", "one bit")])
def test_the_estimator_is_unbiased_with_the_stated_covariance_by_enumeration(name):
    design = SHARES[name]
    for truths in truth_sets(design):
        mean, spread = exact_moments(design, truths)
        shares = own_shares(design, truths)
        assert mean == shares
        stated = stated_covariance(design, shares, len(truths), "respondents")
        assert np.allclose(spread, stated, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in SHARES if name != "direct of 7"])
def test_the_covariance_over_a_population_is_that_of_one_answer_by_enumeration(name):
    design = SHARES[name]
    rows, support = design.matrix(), supports(design)
    weights = [Fraction(i + 1, len(rows) * (len(rows) + 1) // 2) for i in range(len(rows))]
    answer = [sum(w * row[a] for w, row in zip(weights, rows, strict=True)) for a in range(len(rows[0]))]
    p, q = design.support
    chances = np.array(answer, dtype=float)
    scaled = (support - float(q)) / float(p - q)
    mean = chances @ scaled
    spread = (scaled - mean).T @ ((scaled - mean) * chances[:, None])
    shares = weights if len(design.labels) > 1 else [weights[1]]
    assert np.allclose(mean, np.array(shares, dtype=float))
    assert np.allclose(spread / 10, stated_covariance(design, shares, 10), rtol=1e-9)


def test_mutant_a_covariance_of_the_wrong_sign_is_noticed():
    design = CATEGORICAL["direct"]
    truths = (0, 1)
    _, spread = exact_moments(design, truths)
    stated = stated_covariance(design, [0.5, 0.5, 0.0], 2, "respondents")
    wrong = np.where(np.eye(3, dtype=bool), stated, -stated)
    assert np.allclose(spread, stated)
    assert not np.allclose(spread, wrong)


def test_mutant_swapped_probabilities_bias_the_estimate():
    design = CATEGORICAL["optimised"]
    tally = simulate(design, ["red"] * 20_000 + ["blue"] * 20_000, bits=SeededBits(2))
    right = estimate(design, tally)
    assert np.abs((right.values - [0.5, 0, 0.5]) / right.standard_errors()).max() < 4

    class Swapped(UnaryEncoding):
        @property
        def support(self):
            return self.one_if_zero, self.one_if_one

    mutant = Swapped(categories=COLOURS, one_if_one=design.one_if_one, one_if_zero=design.one_if_zero)
    with patch("sfumato.local.records._KINDS", {"unary": Swapped}):
        wrong = estimate(mutant, tally)
    assert np.abs((wrong.values - [0.5, 0, 0.5]) / right.standard_errors()).max() > 20


@pytest.mark.parametrize(
    ("design", "share", "size", "variance"),
    [
        (Warner(keep=0.75), 0.2, 2000, 4.550e-4),
        (ForcedResponse(truth=0.6, yes=0.25, no=0.15), 0.2, 2000, 3.238e-4),
    ],
)
def test_variances_are_those_of_the_binary_formulas(design, share, size, variance):
    assert standard_error(design, share=share, respondents=size) ** 2 == pytest.approx(variance, rel=2e-4)
    a, c = map(float, design.support)
    lam = c + (a - c) * share
    assert standard_error(design, share=share, respondents=size) ** 2 == pytest.approx(
        lam * (1 - lam) / (size * (a - c) ** 2)
    )


def test_warners_variance_has_its_two_parts():
    for p, share in itertools.product((0.6, 0.75, 0.9), (0, 0.1, 0.5)):
        parts = share * (1 - share) / 50 + p * (1 - p) / (50 * (2 * p - 1) ** 2)
        assert standard_error(Warner(keep=p), share=share, respondents=50) ** 2 == pytest.approx(parts)


@pytest.mark.parametrize("method", ["direct", "optimised"])
def test_simulated_variances_are_those_of_the_formula(method):
    names = [str(i) for i in range(8)]
    design = {"direct": DirectEncoding, "optimised": UnaryEncoding}[method].of_epsilon(names, epsilon=1)
    shares, size, runs = np.array([0.4, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05, 0.0]), 5000, 3000
    generator = np.random.default_rng(8)
    p, q = map(float, design.support)
    own = generator.multinomial(size, shares, size=runs)
    if method == "direct":
        counts = generator.multinomial(size, q + (p - q) * shares, size=runs)
    else:
        counts = generator.binomial(own, p) + generator.binomial(size - own, q)
    values = (counts / size - q) / (p - q)
    stated = stated_covariance(design, shares, size)
    # A sample covariance of normal numbers errs by this much; four of them.
    spread = np.sqrt((np.outer(np.diag(stated), np.diag(stated)) + stated**2) / runs)
    assert (np.abs(np.cov(values.T) - stated) < 4.5 * spread).all()
    for u in range(8):
        lam = q + (p - q) * shares[u]
        assert stated[u, u] == pytest.approx(lam * (1 - lam) / (size * (p - q) ** 2))
    given = stated_covariance(design, shares, size, "respondents")
    literature = q * (1 - q) / (size * (p - q) ** 2) + shares * (1 - p - q) / (size * (p - q))
    assert np.allclose(np.diag(given), literature)
    assert np.allclose(np.diag(stated - given), shares * (1 - shares) / size)


def test_a_rare_category_has_the_same_variance_under_any_number_of_categories_in_unary_encoding():
    e = math.e
    for count in (3, 30, 300):
        design = UnaryEncoding.of_epsilon([str(i) for i in range(count)], epsilon=1)
        variance = standard_error(design, share=0, respondents=1000) ** 2
        assert variance == pytest.approx(4 * e / (1000 * (e - 1) ** 2))


def test_an_estimate_of_answers_is_an_estimate_of_their_tally_in_any_order():
    design = CATEGORICAL["direct"]
    answers = ["red"] * 5 + ["blue"] * 2 + ["green"] * 3
    assert estimate(design, answers) == estimate(design, answers[::-1])
    assert estimate(design, answers) == estimate(design, Tally(counts=[5, 3, 2], size=10))
    assert estimate(design, answers).tally.counts == (5, 3, 2)
    bits = estimate(CATEGORICAL["optimised"], [(1, 0, 1), [0, 0, 1]])
    assert bits == estimate(CATEGORICAL["optimised"], np.array([[1, 0, 1], [0, 0, 1]]))
    assert bits.tally.counts == (1, 0, 2)


def test_without_protection_the_estimate_is_the_share_itself():
    for design in (
        Warner(keep=1),
        DirectEncoding.of_epsilon(COLOURS, epsilon=math.inf),
        UnaryEncoding.of_epsilon(COLOURS, epsilon=math.inf),
    ):
        counts = [3] if len(design.labels) == 1 else [3, 0, 7]
        found = estimate(design, Tally(counts=counts, size=10))
        assert found.values.tolist() == [count / 10 for count in counts]
        assert found.standard_errors("respondents") == pytest.approx(0)
        assert found.standard_errors()[0] == pytest.approx(math.sqrt(0.3 * 0.7 / 10))
        assert "give its respondent's truth away" in found.notes[0]
        low, high = found.interval(of="respondents")
        assert low.tolist() == high.tolist() == found.values.tolist()


@pytest.mark.parametrize("name", CHANNELS)
def test_nobody_has_answered_yet(name):
    design = CHANNELS[name]
    found = estimate(design, [])
    assert found.size == 0
    assert "nobody has answered" in found.notes
    assert "nan" not in str(found)
    for figure in found.figures():
        assert math.isnan(figure.value)
        assert figure.low < figure.high
    assert json.loads(found.to_json())["figures"][0]["value"] is None


def test_a_category_that_nobody_named_has_an_estimate_and_an_interval():
    found = estimate(CATEGORICAL["direct"], Tally(counts=[100, 0, 0], size=100))
    assert found.values[1] < 0
    assert found.values.sum() == pytest.approx(1)
    low, high = found.interval()
    assert low[1] == 0
    assert 0 <= high[1] < 0.1
    # Nobody said so, and yet the answer had a chance: the error is that of a share of zero.
    error = standard_error(CATEGORICAL["direct"], share=0, respondents=100)
    assert found.standard_errors()[1] == pytest.approx(error)
    assert found.consistent("clip").tolist() == [1, 0, 0]


def test_what_is_possible_is_clipped_for_display_only():
    found = estimate(Warner(keep=0.75), Tally(counts=[10], size=100))
    assert found.values[0] == pytest.approx(-0.3)
    assert found.figures()[0].value == pytest.approx(-0.3)
    assert found.figures()[0].possible == 0
    assert "-0.3" not in str(found)
    assert found.consistent("none")[0] == pytest.approx(-0.3)
    assert found.consistent("project").tolist() == found.consistent("clip").tolist() == [0]


def brute_projection(values, steps=60):
    """The nearest point of the simplex on a fine lattice."""
    best, place = math.inf, None
    for first in range(steps + 1):
        for second in range(steps + 1 - first):
            point = np.array([first, second, steps - first - second]) / steps
            distance = ((point - values) ** 2).sum()
            if distance < best:
                best, place = distance, point
    return place


@pytest.mark.parametrize(
    "values",
    [(0.5, 0.3, 0.4), (-0.2, 0.9, 0.5), (1.4, -0.3, -0.1), (0.2, 0.2, 0.2), (0, 0, -5), (0.6, 0.6, 0)],
)
def test_the_projection_is_the_nearest_point_of_the_simplex(values):
    values = np.array(values, dtype=float)
    nearest = projected(values)
    assert nearest.sum() == pytest.approx(1)
    assert (nearest >= 0).all()
    assert np.abs(nearest - brute_projection(values)).max() < 1 / 30
    # No lattice point is nearer than what was found.
    lattice = ((brute_projection(values) - values) ** 2).sum()
    assert ((nearest - values) ** 2).sum() <= lattice + 1e-12


def test_mutant_clipping_and_rescaling_is_not_the_projection():
    values = np.array([-0.2, 0.9, 0.5])
    clipped = consistent(values, "clip")
    assert clipped.sum() == pytest.approx(1)
    assert ((clipped - values) ** 2).sum() > ((projected(values) - values) ** 2).sum() + 1e-4


@pytest.mark.parametrize("name", DESIGNS)
def test_an_estimate_reads_back_from_json(name):
    design = DESIGNS[name]
    if isinstance(design, TwoSamples):
        found = estimate(design, (Tally(counts=[30], size=90), Tally(counts=[20], size=80)))
    else:
        labels = len(design.labels)
        exclusive = labels > 1 and getattr(design, "encoding", design).exclusive
        counts = [10] * labels
        found = estimate(design, Tally(counts=counts, size=10 * labels if exclusive else 30))
    again = estimate_from_dict(json.loads(found.to_json()))
    assert again == found
    assert again.to_dict() == found.to_dict()
    assert str(again) == str(found) == repr(found)
    assert repr(design.cost) in str(found)
    assert "<table>" in found._repr_html_()
    assert ("protected nobody" in str(found)) == (name == "trait")


@pytest.mark.parametrize(
    ("design", "answers", "words"),
    [
        (Warner(keep=0.75), [1, 2], "True or False"),
        (Warner(keep=0.75), [1.0, 0.0], "True or False"),
        (Warner(keep=0.75), np.array([[True, False]]), "True or False"),
        (Warner(keep=0.75), [None], "True or False"),
        (Warner(keep=0.75), "yes", "must be a sequence"),
        (Warner(keep=0.75), 3, "must be a sequence"),
        (CATEGORICAL["direct"], ["red", "violet"], "categories of the design"),
        (CATEGORICAL["direct"], [["red"]], "categories of the design"),
        (CATEGORICAL["optimised"], [(1, 0)], "3 bits"),
        (CATEGORICAL["optimised"], [(1, 0, 2)], "3 bits"),
        (CATEGORICAL["optimised"], ["101"], "must be a sequence"),
        (CATEGORICAL["direct"], Tally(counts=[1, 2], size=3), "one for each of 3"),
        (CATEGORICAL["direct"], Tally(counts=[1, 2, 3], size=7), "add up to size"),
        (DESIGNS["two samples"], [True, False, True], "must be a pair"),
        ("Warner", [True], "design must be one of"),
    ],
)
def test_answers_that_do_not_fit_the_design_are_refused(design, answers, words):
    with pytest.raises(sf.InvalidParameter, match=words):
        estimate(design, answers)


@pytest.mark.parametrize(
    "change",
    [{"format": 2}, {"tallies": []}, {"tallies": [{"counts": [1]}]}, {"design": {}}, {"tallies": None}],
)
def test_a_changed_estimate_is_refused(change):
    record = estimate(Warner(keep=0.75), [True]).to_dict()
    with pytest.raises(sf.InvalidParameter):
        estimate_from_dict({**record, **change})


def test_tallies_check_themselves_and_add_up():
    assert Tally(counts=[3], size=5) + Tally(counts=[1], size=2) == Tally(counts=[4], size=7)
    for wrong in ({"counts": [6], "size": 5}, {"counts": [-1], "size": 5}, {"counts": [0.5], "size": 5}):
        with pytest.raises(sf.InvalidParameter):
            Tally(**wrong)
    with pytest.raises(sf.InvalidParameter, match="do not add up"):
        Tally(counts=[1], size=1) + Tally(counts=[1, 0], size=1)
    with pytest.raises(sf.NotSupported):
        Tally.of(DESIGNS["two samples"], [True])
    with pytest.raises(sf.NotSupported):
        simulate(DESIGNS["two samples"], [True], bits=SeededBits(1))


def test_wrong_options_of_an_estimate_are_refused():
    found = estimate(Warner(keep=0.75), [True])
    for call in (
        lambda: found.interval(1.5),
        lambda: found.interval(method="wald"),
        lambda: found.interval(of="nobody"),
        lambda: found.interval(simultaneous=1),
        lambda: found.covariance("nobody"),
        lambda: found.consistent("magic"),
        lambda: standard_error(Warner(keep=0.75), share=2, respondents=10),
        lambda: standard_error(DESIGNS["two samples"], share=0.2, respondents=10),
        lambda: respondents_needed(Warner(keep=0.75), share=0.2, error=0),
    ):
        with pytest.raises(sf.InvalidParameter):
            call()
    with pytest.raises(sf.NotSupported):
        standard_error(CHANNELS["dithered"], share=0.2, respondents=10)


def test_the_number_of_respondents_needed_is_the_least():
    for design in (Warner.of_epsilon(1), CATEGORICAL["direct"], CATEGORICAL["optimised"]):
        needed = respondents_needed(design, share=0.1, error=0.01)
        assert standard_error(design, share=0.1, respondents=needed) <= 0.01
        assert standard_error(design, share=0.1, respondents=needed - 1) > 0.01


def test_two_samples_are_unbiased_with_the_stated_variance():
    design = TwoSamples(sensitive=(0.7, 0.2), rate_between=(0.25, 0.5))
    share, rate = Fraction(1, 5), Fraction(2, 5)
    laws = []
    for number in (0, 1):
        a, c = design.sample(number, rate=rate).support
        laws.append(c + (a - c) * share)
    size = 4
    mean = [0.0, 0.0]
    second = 0.0
    for first, other in itertools.product(range(size + 1), repeat=2):
        chance = 1.0
        for count, lam in ((first, laws[0]), (other, laws[1])):
            chance *= math.comb(size, count) * float(lam) ** count * float(1 - lam) ** (size - count)
        found = estimate(design, (Tally(counts=[first], size=size), Tally(counts=[other], size=size)))
        mean = [m + chance * value for m, value in zip(mean, found.values, strict=True)]
        second += chance * found.values[0] ** 2
    assert mean == pytest.approx([0.2, 0.4])
    stated = standard_error(design, share=share, rate=rate, respondents=2 * size)
    assert math.sqrt(second - 0.04) == pytest.approx(stated)


def test_simultaneous_intervals_are_wider_and_hold_the_single_ones():
    found = estimate(CATEGORICAL["direct"], Tally(counts=[50, 30, 20], size=100))
    low, high = found.interval()
    wide_low, wide_high = found.interval(simultaneous=True)
    assert (wide_low <= low).all()
    assert (wide_high >= high).all()
    assert (wide_high - wide_low > high - low).any()


def test_a_large_simulated_survey_is_within_four_standard_errors():
    generator = np.random.default_rng(3)
    truths = (generator.random(100_000) < 0.3).tolist()
    for name, design in BINARY.items():
        if name == "one bit":
            continue
        found = estimate(design, simulate(design, truths, bits=SeededBits(21)))
        assert abs(found.values[0] - np.mean(truths)) < 4 * found.standard_errors("respondents")[0], name
