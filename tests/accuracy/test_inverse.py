"""The smallest budget for a wanted accuracy: certified, minimal among short decimals, true of releases."""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.accuracy import Accuracy, Found, Scenario, epsilon_for
from sfumato.accuracy.budget_search import Curve, index_below, short_decimal
from sfumato.data.admission import admit
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws import SeededBits
from sfumato.privacy import ZCDP, ApproxDP, Budget, PureDP
from sfumato.quantile_methods import Quantiles
from sfumato.query import raw
from sfumato.statistics import Count, Histogram, InverseMean, Mean, MostCommon, Proportion, Sum, Variance

ROWS = 2000
LEVELS = (0.5, 0.9, 0.99)
DECILES = tuple(order / 10 for order in range(1, 10))
SALARIES = Scenario.named("lognormal", mu=10.4, sigma=0.5)
BUDGETS = [PureDP(1), ApproxDP(1, 1e-6), ZCDP(0.5)]
PUBLIC = {"neighbours": "substitution", "nulls": "lower", "rows": ROWS}
RELATIONS = [("substitution", "lower"), ("add-remove", None)]

KINDS = {
    "count": (lambda **facts: Count(between=(0, 1000), **facts), {"error": 7}),
    "sum": (lambda **facts: Sum(bounds=(0, 100), **facts), {"error": 777}),
    "mean": (lambda **facts: Mean(bounds=(0, 100), **facts), {"error": 0.5}),
    "proportion": (lambda **facts: Proportion(between=(40, 60), **facts), {"error": 0.01}),
    "histogram": (lambda **facts: Histogram(bins=5, bounds=(0, 100), **facts), {"error": 12}),
    "variance": (lambda **facts: Variance(bounds=(0, 100), **facts), {"error": 30}),
    "median": (lambda **facts: Quantiles(probs=(0.5,), bounds=(0, 100), **facts), {"rank_error": 40}),
    "deciles": (lambda **facts: Quantiles(probs=DECILES, bounds=(0, 100), **facts), {"rank_error": 200}),
}


def size_of(budget):
    return budget.rho if isinstance(budget, ZCDP) else budget.epsilon


def holds(found):
    """The certificate, computed again from the query alone."""
    asked = {"n": found.accuracy.rows, "confidence": found.accuracy.confidence}
    figures = []
    for share in (1, Fraction(9, 10)):
        size = size_of(found.budget) * share
        budget = replace_epsilon(found.budget, size) if not isinstance(found.budget, ZCDP) else ZCDP(size)
        accuracy = replace(found.query, budget=budget).accuracy(**asked)
        figures.append(accuracy.error if found.figure == "error" else accuracy.rank_error)
    return figures[0] <= found.target < figures[1]


def replace_epsilon(budget, size):
    return PureDP(size) if isinstance(budget, PureDP) else ApproxDP(size, budget.delta)


@pytest.mark.parametrize(("neighbours", "nulls"), RELATIONS)
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_the_target_is_met_and_not_at_nine_tenths(kind, budget, neighbours, nulls):
    make, target = KINDS[kind]
    found = epsilon_for(make(budget=budget, neighbours=neighbours, nulls=nulls), n=ROWS, **target)
    assert found.certified
    assert holds(found)
    assert type(found.budget) is type(budget)
    assert getattr(found.budget, "delta", None) == getattr(budget, "delta", None)
    assert found.query.budget == found.budget
    size = size_of(found.budget)
    assert size == Fraction(f"{float(size):.3g}"), "three digits"
    assert (found.epsilon, found.rho) == (
        (None, float(size)) if isinstance(budget, ZCDP) else (float(size), None)
    )
    # The next smaller decimal of three digits misses the target: nothing was given away.
    before = short_decimal(index_below(size, 3) - 1, 3)
    smaller = ZCDP(before) if isinstance(budget, ZCDP) else replace_epsilon(budget, before)
    missed = replace(found.query, budget=smaller).accuracy(ROWS)
    assert (missed.error if "error" in target else missed.rank_error) > found.target


# --- against releases ------------------------------------------------------------------------------


def share_within(query, values, truth, target, draws, seed=99):
    """The share of independent releases, on these values, whose every number is within the target."""
    column = admit(values, query.column)
    law, bits = query.law(query.look(column)), SeededBits(seed)
    inside = 0
    for _ in range(draws):
        off = np.abs(np.asarray(query.value(raw(law.sample(bits)))) - truth)
        inside += bool(np.max(off) <= target * (1 + 1e-9))
    return inside / draws


def below(found):
    size = size_of(found.budget) * Fraction(9, 10)
    return replace(found.query, budget=ZCDP(size) if found.rho else replace_epsilon(found.budget, size))


VALUES = np.linspace(1, 99, ROWS)
TRUTHS = {
    "count": ROWS / 2,
    "sum": math.fsum(VALUES),
    "mean": VALUES.mean(),
    "proportion": np.mean((VALUES >= 40) & (VALUES <= 60)),
    "variance": VALUES.var(),
}


@pytest.mark.parametrize(
    ("budget", "facts"),
    [(PureDP(1), PUBLIC), (ZCDP(0.5), PUBLIC), (PureDP(1), {"neighbours": "add-remove"})],
    ids=["pure, substitution", "zCDP, substitution", "pure, add-remove"],
)
@pytest.mark.parametrize("kind", TRUTHS)
def test_releases_keep_the_error_and_those_at_nine_tenths_do_not(kind, budget, facts):
    make, target = KINDS[kind]
    query = (
        Count(between=(0, 50), budget=budget, **facts) if kind == "count" else make(budget=budget, **facts)
    )
    found = epsilon_for(query, n=ROWS, **target)
    draws = 4000
    slack = 4 * math.sqrt(0.95 * 0.05 / draws)
    assert share_within(found.query, VALUES, TRUTHS[kind], found.target, draws) > 0.95 - slack
    if found.accuracy.how == "exact":  # else it is a bound, and a smaller budget may do on these data
        # The exact share at nine tenths is at most 0.934 for Laplace and 0.938 for Gaussian noise.
        assert share_within(below(found), VALUES, TRUTHS[kind], found.target, draws) < 0.95 - slack / 4


def test_each_count_of_a_histogram_keeps_the_error():
    make, target = KINDS["histogram"]
    found = epsilon_for(make(budget=PureDP(1), neighbours="add-remove"), **target)
    counts = found.query.look(admit(VALUES, "values"))
    shares = []
    for query in (found.query, below(found)):
        law, bits = query.law(counts), SeededBits(5)
        off = np.array([np.abs(np.subtract(raw(law.sample(bits)), counts)) for _ in range(4000)])
        shares.append(np.mean(off <= found.target))
    # Exactly 0.9506 and 0.9332, with standard deviations below 0.002.
    assert shares[1] < 0.94 < 0.945 < shares[0]


@pytest.mark.parametrize(("neighbours", "nulls"), RELATIONS)
def test_the_median_of_a_scenario_keeps_the_error_in_value(neighbours, nulls):
    # Without verification the accuracy of a single quantile is exact and not simulated.
    given = {"neighbours": neighbours, "nulls": nulls, "verify": 0}
    query = Quantiles(probs=(0.5,), bounds=(0, 200_000), budget=PureDP(1), **given)
    found = epsilon_for(query, error=500, n=ROWS, scenario=SALARIES)
    assert found.certified
    values = SALARIES.typical(ROWS)
    truth = values[ROWS // 2 - 1]
    rows = ROWS if neighbours == "substitution" else None
    here, less = (
        share_within(replace(each, rows=rows), values, truth, 500, 4000)
        for each in (found.query, below(found))
    )
    assert here > 0.95 - 0.0138  # four standard deviations
    assert less < 0.9465


def test_deciles_of_a_scenario_keep_the_error_in_value_up_to_the_monte_carlo_error():
    query = Quantiles(
        probs=DECILES,
        bounds=(0, 200_000),
        budget=PureDP(1),
        neighbours="substitution",
        nulls="lower",
        rows=ROWS,
    )
    # So near that all deciles are drawn.
    found = epsilon_for(query, error=2000, scenario=SALARIES)
    assert found.certified
    assert found.accuracy.how == "simulated"
    assert 0 < found.accuracy.monte_carlo < 0.1 * found.target
    values = SALARIES.typical(ROWS)
    truth = values[np.ceil(np.array(DECILES) * ROWS).astype(int) - 1]
    law, bits = found.query.law(found.query.look(admit(values, "values"))), SeededBits(7)
    off = np.abs([found.query.value(raw(law.sample(bits))) - truth for _ in range(600)])
    measured = np.quantile(off, 0.95, axis=0).max()
    # Two independent simulations, the larger of nine figures in each.
    assert abs(measured - found.accuracy.error) < 5 * found.accuracy.monte_carlo
    assert measured < found.below.error + 4 * found.below.monte_carlo


def test_deciles_by_rank_keep_the_bound_on_any_data():
    query = Quantiles(probs=DECILES, bounds=(0, 1), budget=PureDP(1), **PUBLIC)
    found = epsilon_for(query, rank_error=150)
    for values in (np.linspace(0, 1, ROWS), np.linspace(0, 1, ROWS) ** 8, np.repeat([0.2, 0.7], ROWS // 2)):
        law, bits = found.query.law(found.query.look(admit(values, "values"))), SeededBits(3)
        misses = 0
        for _ in range(150):
            released = found.query.value(raw(law.sample(bits)))
            low, high = (np.searchsorted(values, released + side) for side in (-1e-6, 1e-6))
            wanted = np.array(DECILES) * ROWS
            misses += bool(np.max(np.maximum(low - wanted, wanted - high)) > 150)
        assert misses <= 17  # 150 draws at a failure of at most 0.05: 7.5 and 3.5 standard deviations


# --- the search ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Invented:
    """A query with any error as a function of the size of its budget."""

    budget: Budget
    error: object = field(hash=False)
    name: str = "invented"
    column: str = "values"
    cost: object = None

    def accuracy(self, n=None, *, confidence=0.95, scenario=None):
        size = size_of(self.budget)
        return Accuracy(
            statistic=self.name, confidence=confidence, labels=("x",), errors=(self.error(size),), how="exact"
        )


@given(
    st.lists(st.floats(-6, 3), min_size=1, max_size=12, unique=True),
    st.integers(0, 11),
    st.sampled_from(BUDGETS),
)
def test_the_first_decimal_of_a_staircase_is_found(places, which, budget):
    # A staircase that falls by 1 at each of some sizes: the target is met from one of them on.
    stairs = sorted(Fraction(10**place).limit_denominator(10**12) for place in places)
    met = stairs[min(which, len(stairs) - 1)]
    target = sum(stair > met for stair in stairs)
    query = Invented(budget=budget, error=lambda size: float(sum(stair > size for stair in stairs)))
    if met > 1000 and not isinstance(budget, ZCDP):
        return
    found = epsilon_for(query, error=target)
    lowest = Fraction(1, 10**12) if isinstance(budget, ZCDP) else Fraction(1, 10**6)
    index = index_below(max(met, lowest), 3)
    expected = index if short_decimal(index, 3) >= met else index + 1
    assert size_of(found.budget) == short_decimal(expected, 3)
    assert found.certified or size_of(found.budget) == lowest


@given(st.integers(0, 10**6), st.floats(0.0, 0.3), st.floats(0.01, 100))
def test_an_error_that_is_not_monotone_is_certified_all_the_same(seed, noise, target):
    def bumpy(size):
        place = int(np.log(float(size)) * 500)
        return float(np.random.default_rng([seed, place % 10**6]).uniform(1, 1 + noise)) / float(size)

    found = epsilon_for(Invented(budget=PureDP(1), error=bumpy), error=target)
    assert found.certified


@given(st.integers(-15, 15), st.floats(0, 1, exclude_max=True), st.integers(1, 5))
def test_short_decimals_are_in_order_and_found_again(decade, share, digits):
    index = math.floor((decade + share) * 9 * 10 ** (digits - 1))
    here, after = short_decimal(index, digits), short_decimal(index + 1, digits)
    assert here < after
    assert here == Fraction(f"{float(here):.{digits - 1}e}")
    assert index_below(here, digits) == index_below((here + after) / 2, digits) == index
    assert index_below(here * (1 - Fraction(1, 10**30)), digits) == index - 1


def test_few_accuracies_are_computed(monkeypatch):
    asked = []
    plain = Curve.beside
    monkeypatch.setattr(Curve, "beside", lambda self, size: asked.append(size) or plain(self, size))
    make, _ = KINDS["mean"]
    epsilon_for(make(budget=PureDP(1), neighbours="add-remove"), error=0.02, n=ROWS)
    assert len(asked) <= 6
    asked.clear()
    make, target = KINDS["count"]
    epsilon_for(make(budget=PureDP(1), neighbours="add-remove"), **target)
    assert len(asked) <= 16


@pytest.mark.parametrize("wrong", [-1, -8, 40], ids=["the lower end", "too far down", "too far up"])
def test_a_search_that_ends_elsewhere_is_noticed(monkeypatch, wrong):
    plain = Curve.first
    monkeypatch.setattr(Curve, "first", lambda self, *args: plain(self, *args) + wrong)
    monkeypatch.setattr(
        "sfumato.accuracy.inverse._settled", lambda curve, index, *_: (index, _less(curve, index))
    )
    make, target = KINDS["mean"]
    found = epsilon_for(make(budget=PureDP(1), neighbours="substitution", nulls="lower"), n=ROWS, **target)
    assert not found.certified
    assert not holds(found)


def _less(curve, index):
    return curve.beside(curve.decimal(index) * Fraction(9, 10))


def test_more_is_asked_for_more_accuracy_and_less_with_more_rows():
    query = Mean(bounds=(0, 100), budget=PureDP(1), neighbours="add-remove")
    by_error = [epsilon_for(query, error=error, n=ROWS).epsilon for error in (2, 1, 0.5, 0.1)]
    by_rows = [epsilon_for(query, error=1, n=rows).epsilon for rows in (10_000, 1000, 100)]
    by_confidence = [
        epsilon_for(query, error=1, n=ROWS, confidence=level).epsilon for level in (0.5, 0.9, 0.99)
    ]
    for epsilons in (by_error, by_rows, by_confidence):
        assert epsilons == sorted(set(epsilons))


# --- ends and refusals -----------------------------------------------------------------------------


def test_a_target_that_any_budget_meets_is_told():
    found = epsilon_for(Mean(bounds=(0, 1), budget=PureDP(1), neighbours="add-remove"), error=1, n=10)
    assert found.epsilon == 1e-6
    assert not found.certified
    assert "which would do as well" in str(found)
    free = epsilon_for(Count(budget=PureDP(1), neighbours="substitution", nulls="lower", rows=9), error=0)
    assert not free.certified
    assert "costs nothing" in str(free)


def test_an_error_of_nothing_is_possible_for_counts():
    found = epsilon_for(Count(budget=PureDP(1), neighbours="add-remove"), error=0)
    assert found.certified
    assert 3 < found.epsilon < 4  # 2 / (1 + e^eps) falls to 0.05 at ln 39 = 3.66
    assert found.epsilon == 3.67


def test_a_target_out_of_reach_is_refused_with_what_can_be_reached():
    query = Mean(bounds=(0, 1), budget=PureDP(1), neighbours="add-remove")
    with pytest.raises(InvalidParameter, match=r"error=1e-12 is out of reach: at epsilon = 1000\.0 it is"):
        epsilon_for(query, error=1e-12, n=10)
    with pytest.raises(InvalidParameter, match=r"rank_error=0\.1 is out of reach: at rho = 1000000\.0"):
        epsilon_for(
            Quantiles(probs=(0.5,), bounds=(0, 1), budget=ZCDP(1), neighbours="add-remove"),
            rank_error=0.1,
            n=10,
        )


MEAN = Mean(bounds=(0, 1), budget=PureDP(1), neighbours="add-remove")
MEDIAN = Quantiles(probs=(0.5,), bounds=(0, 1), budget=PureDP(1), neighbours="add-remove", verify=0)


@pytest.mark.parametrize(
    ("query", "asked", "words"),
    [
        (MEAN, {}, "one of error and rank_error must be given"),
        (MEAN, {"error": 1, "rank_error": 1}, "one of error and rank_error must be given"),
        (MEAN, {"error": -1, "n": 9}, "error must be positive"),
        (MEAN, {"error": math.nan, "n": 9}, "error must be finite"),
        (MEAN, {"error": "1", "n": 9}, "error must be a number"),
        (MEAN, {"error": 1e400, "n": 9}, "error must be finite"),
        (MEAN, {"error": 10**400, "n": 9}, r"error must be in \[1e-300, 1e300\]"),
        (MEAN, {"rank_error": 1, "n": 9}, "rank_error goes with quantiles, not with a mean"),
        (MEAN, {"error": 0.1}, "n must be given"),
        (MEAN, {"error": 0.1, "n": -1}, "n must be in"),
        (MEAN, {"error": 0.1, "n": 9, "confidence": 1}, "confidence must be"),
        (MEAN, {"error": 0.1, "n": 9, "scenario": "normal"}, "scenario must be"),
        (MEDIAN, {"error": 0.1, "n": 9}, "error in units of the data needs a scenario for quantiles"),
        (Mean(bounds=(0, 1), budget=PureDP(1)), {"error": 0.1, "n": 9}, "neighbours must be"),
        ("mean", {"error": 1}, "query must be a statistic"),
        (Mean, {"error": 1}, "query must be a statistic"),
        (None, {"error": 1}, "query must be a statistic"),
    ],
)
def test_what_makes_no_sense_is_refused(query, asked, words):
    with pytest.raises(InvalidParameter, match=words):
        epsilon_for(query, **asked)


def test_a_choice_has_no_error_to_ask_for():
    with pytest.raises(NotSupported, match="accuracy needs a number"):
        epsilon_for(MostCommon(categories=("a", "b"), budget=PureDP(1), neighbours="add-remove"), error=1)


def test_other_ways_to_release_a_mean_are_searched_too():
    query = InverseMean(bounds=(0, 1), budget=PureDP(1), neighbours="substitution", nulls="lower")
    found = epsilon_for(query, error=0.01, n=ROWS)
    assert found.certified
    assert holds(found)


def test_the_words_say_target_certificate_and_scenario():
    found = epsilon_for(Count(budget=ApproxDP(1, 1e-6), neighbours="add-remove"), error=10)
    assert isinstance(found, Found)
    assert str(found).splitlines() == [
        f"count of values: epsilon = {found.epsilon}, delta = 1e-06",
        "  within ±10 with 95 % confidence; wanted: ±10",
        f"  at epsilon = {float(found.budget.epsilon * 9 / 10)}: within ±12, which does not reach it",
    ]
    assert repr(found) == str(found)
    ranks = epsilon_for(MEDIAN, rank_error=30, n=1000, scenario=Scenario.named("uniform", low=0, high=1))
    assert "95 % confidence; wanted: 30 ranks" in str(ranks)
    assert "if the data are like this: uniform with low 0 and high 1" in str(ranks)
