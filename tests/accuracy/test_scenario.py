"""Scenarios: quantile functions against an independent library, exact ends, content, and refusals."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import special, stats

import sfumato as sf
from sfumato.accuracy import Scenario
from sfumato.laws import SeededBits

LAWS = {
    "uniform": ({"low": -2, "high": 5}, stats.uniform(-2, 7)),
    "normal": ({"mean": 3, "sd": 2}, stats.norm(3, 2)),
    "lognormal": ({"mu": 10.4, "sigma": 0.5}, stats.lognorm(0.5, scale=math.exp(10.4))),
    "exponential": ({"mean": 4}, stats.expon(scale=4)),
    "poisson": ({"mean": 6.5}, stats.poisson(6.5)),
    "beta": ({"a": 2, "b": 3, "low": 10, "high": 30}, stats.beta(2, 3, 10, 20)),
    "bernoulli": ({"share": 0.3}, stats.bernoulli(0.3)),
    "constant": ({"value": 7}, None),
}
SHARES = np.concatenate([np.linspace(0.0005, 0.9995, 401), [1e-9, 1 - 1e-9]])


def named(name):
    return Scenario.named(name, **LAWS[name][0])


@pytest.mark.parametrize("name", sorted(set(LAWS) - {"constant"}))
def test_quantiles_are_those_of_an_independent_library(name):
    np.testing.assert_allclose(named(name).quantile(SHARES), LAWS[name][1].ppf(SHARES), rtol=1e-9)


@pytest.mark.parametrize("name", sorted(set(LAWS) - {"constant"}))
def test_means_and_variances_are_those_of_an_independent_library(name):
    scenario, law = named(name), LAWS[name][1]
    np.testing.assert_allclose((scenario.mean, scenario.variance), law.stats("mv"), rtol=1e-9)


@pytest.mark.parametrize("name", sorted(LAWS))
def test_quantiles_never_decrease_and_are_finite_at_both_ends(name):
    shares = np.concatenate([[0.0], np.sort(np.random.default_rng(1).random(5000)), [1.0]])
    values = named(name).quantile(shares)
    assert np.isfinite(values).all()
    assert (np.diff(values) >= 0).all()


@pytest.mark.parametrize(("name", "low", "high"), [("uniform", -2, 5), ("beta", 10, 30), ("bernoulli", 0, 1)])
def test_bounded_laws_are_exact_at_shares_0_and_1(name, low, high):
    assert named(name).quantile([0, 1]).tolist() == [low, high]


@pytest.mark.parametrize(("a", "b"), [(2, 0.5), (0.01, 3), (500, 0.2), (1e6, 1e6), (0.01, 0.01)])
def test_a_beta_quantile_has_the_share_that_was_asked_for(a, b):
    shares = np.linspace(0.01, 0.99, 99)
    values = Scenario.named("beta", a=a, b=b, low=0, high=1).quantile(shares)
    # Where values crowd at an end, neighbours of float64 are far apart in share.
    low, high = (
        special.betainc(a, b, values * (1 - 1e-12)),
        special.betainc(a, b, np.minimum(values + 2e-16, 1)),
    )
    assert ((low <= shares * (1 + 1e-9)) & (shares * (1 - 1e-9) <= high)).all()


def test_a_poisson_quantile_is_right_at_the_shares_where_it_jumps():
    for mean in (0.3, 6.5, 90.0, 4e6):
        counts = np.unique(np.floor(mean + math.sqrt(mean) * np.linspace(-3, 4, 29)).clip(0))
        shares = special.pdtr(counts, mean)
        found = Scenario.named("poisson", mean=mean).quantile(shares)
        assert (special.pdtr(found, mean) >= shares).all()
        assert ((found == 0) | (special.pdtr(found - 1, mean) < shares)).all()
        # A continuous inverse that is rounded up without a look at both sides is wrong at some of them.
    shares = special.pdtr(np.arange(30), 6.5)
    assert (np.ceil(special.pdtrik(shares, 6.5)) != np.arange(30)).any()


def test_typical_values_are_the_quantiles_at_the_middles_of_equal_shares():
    assert Scenario.named("uniform", low=0, high=10).typical(5).tolist() == [1, 3, 5, 7, 9]
    assert Scenario.named("bernoulli", share=0.3).typical(10).sum() == 3
    assert Scenario.named("bernoulli", share=0.9).typical(10).sum() == 9
    assert named("normal").typical(0).tolist() == []
    with pytest.raises(ValueError, match="read-only"):
        named("normal").typical(3)[0] = 1.0


def test_a_public_data_set_is_typical_of_itself_in_any_order():
    values = np.random.default_rng(2).normal(size=997)
    scenario = Scenario.of_data(values)
    assert (scenario.typical(997) == np.sort(values)).all()
    assert scenario == Scenario.of_data(values[::-1].tolist())
    assert hash(scenario) == hash(Scenario.of_data(values[::-1]))
    assert scenario != Scenario.of_data(values + 1)
    assert scenario.mean == pytest.approx(values.mean())
    assert scenario.variance == pytest.approx(values.var())


def test_the_share_of_a_public_data_set_at_or_below_its_quantile_is_reached_and_not_before():
    scenario = Scenario.of_data(np.arange(1, 101))
    for percent in range(1, 101):
        assert scenario.quantile(percent / 100) == percent


def test_a_public_data_set_is_copied_and_kept():
    values = np.array([3.0, 1.0, 2.0])
    scenario = Scenario.of_data(values)
    values[:] = 9
    assert scenario.typical(3).tolist() == [1, 2, 3]


def test_lines_between_quantiles_pass_through_them_and_end_at_the_bounds():
    scenario = Scenario.of_quantiles([0.25, 0.5], [10, 40], bounds=(0, 100))
    assert scenario.quantile([0, 0.125, 0.25, 0.375, 0.5, 0.75, 1]).tolist() == [0, 5, 10, 25, 40, 70, 100]
    # The mean and the variance of lines, against an integral.
    even = scenario.quantile((np.arange(10**6) + 0.5) / 10**6)
    assert scenario.mean == pytest.approx(even.mean(), rel=1e-9)
    assert scenario.variance == pytest.approx(even.var(), rel=1e-6)


def test_a_release_of_quantiles_becomes_lines_between_its_answers():
    data = np.random.default_rng(3).normal(50, 10, 4000)
    release = sf.quantiles(data, [0.5, 0.25, 0.75, 0.5], bounds=(0, 100), epsilon=1)
    scenario = Scenario.of_release(release)
    orders, answers = np.array([0.25, 0.5, 0.75]), np.unique(release.value)
    np.testing.assert_allclose(scenario.quantile(orders), answers)
    assert scenario.words == "straight lines between 3 quantiles"
    assert Scenario.of_release(sf.median(data, bounds=(0, 100), epsilon=1)).quantile(1) == 100


@pytest.mark.parametrize(
    ("name", "bounds"),
    [("normal", (2, 4)), ("lognormal", (0, 50_000)), ("poisson", (5, 8)), ("beta", (0, 25))],
)
def test_moments_of_clamped_values_are_those_of_an_independent_sum(name, bounds):
    mean, variance = named(name).moments(bounds)
    clamped = np.clip(LAWS[name][1].ppf((np.arange(400_000) + 0.5) / 400_000), *bounds)
    width = bounds[1] - bounds[0]
    assert mean == pytest.approx(clamped.mean(), abs=1e-5 * width)
    assert variance == pytest.approx(clamped.var(), abs=2e-5 * width**2)


def test_drawn_values_have_the_law_and_typical_ones_are_more_even():
    scenario = named("lognormal")
    values = scenario.drawn(20_000, SeededBits(1))
    assert (np.diff(values) >= 0).all()
    assert stats.kstest(values, LAWS["lognormal"][1].cdf).pvalue > 1e-6
    # The test can fail: another law, and values that are too even for independent ones.
    assert stats.kstest(values * 1.05, LAWS["lognormal"][1].cdf).pvalue < 1e-6
    gaps = np.diff(LAWS["lognormal"][1].cdf(values)) * 20_000
    assert stats.kstest(gaps, "expon").pvalue > 1e-6
    assert (
        stats.kstest(np.diff(LAWS["lognormal"][1].cdf(scenario.typical(20_000))) * 20_000, "expon").pvalue
        < 1e-6
    )
    assert (scenario.drawn(9, SeededBits(1)) == scenario.drawn(9, SeededBits(1))).all()
    fixed = Scenario.of_data([1, 2, 3])
    assert fixed.drawn(3, SeededBits(1)).tolist() == [1, 2, 3]


def test_drawn_values_of_a_slow_law_have_the_law():
    values = named("beta").drawn(30_000, SeededBits(2))
    assert stats.kstest(values, LAWS["beta"][1].cdf).pvalue > 1e-6
    gaps = np.diff(LAWS["beta"][1].cdf(values)) * 30_000
    assert stats.kstest(gaps, "expon").pvalue > 1e-6


def test_equal_parameters_make_equal_scenarios_however_they_are_written():
    first = Scenario.named("lognormal", mu=10.4, sigma=0.5)
    assert first == Scenario.named("lognormal", sigma=Fraction(1, 2), mu=np.float64(10.4))
    assert len({first, Scenario.named("lognormal", mu=10.4, sigma=0.5), named("normal")}) == 2


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        (named("lognormal"), "lognormal with mu 10.4 and sigma 0.5"),
        (named("beta"), "beta with a 2, b 3, low 10 and high 30"),
        (Scenario.of_data(range(1000)), "a public data set of 1,000 values"),
        (Scenario.of_quantiles([0.5], [1], bounds=(0, 2)), "straight lines between 1 quantile"),
        (named("constant"), "constant with value 7"),
    ],
    ids=lambda item: item if isinstance(item, str) else item.kind,
)
def test_a_scenario_says_in_words_what_it_assumes(scenario, words):
    assert scenario.words == words
    assert repr(scenario) == f"Scenario({words})"


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: Scenario.named("cauchy", mean=0), "name must be one of"),
        (lambda: Scenario.named(["normal"]), "name must be one of"),
        (lambda: Scenario.named("normal", mean=0), "parameters of normal must be mean and sd, got mean"),
        (lambda: Scenario.named("constant", value=1, sd=2), "parameters of constant must be value"),
        (lambda: Scenario.named("normal", mean=0, sd=0), "sd must be positive"),
        (lambda: Scenario.named("normal", mean=math.nan, sd=1), "mean must be finite"),
        (lambda: Scenario.named("normal", mean="3", sd=1), "mean must be a number"),
        (lambda: Scenario.named("normal", mean=10**200, sd=1), "mean must be at most 1e"),
        (lambda: Scenario.named("uniform", low=1, high=1), "low must be below high"),
        (lambda: Scenario.named("bernoulli", share=1.5), r"share must be in \[0, 1\]"),
        (lambda: Scenario.named("lognormal", mu=0, sigma=40), "so that values are finite"),
        (lambda: Scenario.named("poisson", mean=10**12), "mean must be at most 1e7"),
        (lambda: Scenario.named("exponential", mean=-1), "mean must be positive"),
        (lambda: Scenario.named("beta", a=1e-9, b=1, low=0, high=1), "a and b must be in"),
        (lambda: Scenario("normal"), "parameters of normal must be mean and sd, got none"),
        (lambda: Scenario.of_data([]), "values must be at least one number"),
        (lambda: Scenario.of_data([1.0, math.nan]), "all finite and none missing"),
        (lambda: Scenario.of_data([1.0, None]), "all finite and none missing"),
        (lambda: Scenario.of_data([1.0, math.inf]), "all finite"),
        (lambda: Scenario.of_quantiles([0.5, 0.2], [1, 2], bounds=(0, 3)), "probs must increase"),
        (lambda: Scenario.of_quantiles([0.2, 0.5], [2, 1], bounds=(0, 3)), "values must not decrease"),
        (lambda: Scenario.of_quantiles([0.2], [4], bounds=(0, 3)), "inside the bounds"),
        (lambda: Scenario.of_quantiles([0.2], [1, 2], bounds=(0, 3)), "values must be one for each"),
        (lambda: Scenario.of_quantiles([], [], bounds=(0, 3)), "at least one|one for each"),
        (lambda: Scenario.of_quantiles("0.2", [1], bounds=(0, 3)), "probs must be a list"),
        (lambda: Scenario.of_quantiles([0], [1], bounds=(0, 3)), "probs must increase inside"),
        (lambda: Scenario.of_release(7), "release must be a Release of quantiles"),
        (lambda: Scenario.of_release(sf.count([1, 2], epsilon=1)), "release must be a Release of quantiles"),
        (lambda: named("normal").quantile(1.5), "shares must be in"),
        (lambda: named("normal").quantile(math.nan), "shares must be in"),
        (lambda: named("normal").typical(-1), "n must be in"),
        (lambda: named("normal").typical(2.0), "n must be a whole number"),
        (lambda: named("normal").typical(True), "n must be a whole number"),
        (lambda: named("normal").moments((1, 1)), "bounds must increase"),
    ],
)
def test_what_is_no_scenario_is_refused_by_name(make, rule):
    with pytest.raises(sf.InvalidParameter, match=rule):
        make()


def test_text_is_no_public_data_set():
    with pytest.raises(sf.SchemaMismatch):
        Scenario.of_data(["a", "b"])


def test_a_release_without_bounds_is_refused():
    method = sf.quantile_methods.Unbounded(lower=0)
    release = sf.quantiles(np.arange(5000.0), [0.5], epsilon=1, method=method)
    with pytest.raises(sf.InvalidParameter, match="release must have bounds"):
        Scenario.of_release(release)
