"""Sample quantiles and counts in strips: bounds against exact laws, and published ones where they fail."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import betainc, ndtr, ndtri

from sfumato.accuracy import (
    MeanLimit,
    exact_quantile_concentration,
    min_count,
    published_min_count,
    published_quantile_concentration,
    quantile_concentration,
)
from sfumato.accuracy.order_statistics import at_least, at_most
from sfumato.errors import InvalidParameter

DECILES = [Fraction(i, 10) for i in range(1, 10)]
SIZES = (1, 5, 20, 100, 1000, 20_000)
DISTANCES = (0.001, 0.01, 0.05, 0.1, 0.3, 0.9)
MOST = 1 + 1e-12


def exponential(value):
    return -math.expm1(-max(value, 0.0))


LAWS = {"uniform": None, "normal": ndtr, "exponential": exponential, "truncated": MeanLimit(0.3, 20)}


def binomial_tail(rows, share, counts):
    """The exact probability that a binomial number is one of the counts."""
    return sum(math.comb(rows, j) * share**j * (1 - share) ** (rows - j) for j in counts)


def test_binomial_tails_are_those_of_exact_sums():
    for rows, share in itertools.product((1, 2, 7, 30), (Fraction(1, 100), Fraction(1, 3), Fraction(9, 10))):
        for count in range(-1, rows + 2):
            high = binomial_tail(rows, share, range(max(count, 0), rows + 1))
            low = binomial_tail(rows, share, range(min(count, rows) + 1))
            assert at_least(count, rows, float(share)) == pytest.approx(float(high), rel=1e-11)
            assert at_most(count, rows, float(share)) == pytest.approx(float(low), rel=1e-11)


@pytest.mark.parametrize("values", [(0, 1, 2, 3, 4), (0, 0, 0, 1, 5), (0, 2, 2, 2, 9)], ids=str)
def test_every_sample_of_a_law_with_atoms_is_within_the_bounds(values):
    def cdf(value):
        return sum(atom <= value for atom in values) / len(values)

    for rows, order in itertools.product((1, 2, 3, 5), (Fraction(1, 10), Fraction(1, 2), Fraction(4, 5))):
        rank = math.ceil(order * rows)
        center = sorted(values)[math.ceil(order * len(values)) - 1]
        ranked = [sorted(sample)[rank - 1] for sample in itertools.product(values, repeat=rows)]
        for distance in (0.5, 1, 1.5, 3.5):
            terms = {"rows": rows, "order": order, "distance": distance, "law": cdf}
            truth = np.mean(np.abs(np.array(ranked) - center) > distance)
            if distance != 1:  # with an atom at the end of the distance it is an upper bound
                assert exact_quantile_concentration(**terms) == pytest.approx(truth, abs=1e-12)
            assert truth <= exact_quantile_concentration(**terms) * MOST
            assert truth <= quantile_concentration(**terms) * MOST


@pytest.mark.parametrize("name", LAWS)
def test_no_exact_law_passes_the_bound(name):
    compared = 0
    for rows, order, distance in itertools.product(SIZES, DECILES, DISTANCES):
        terms = {"rows": rows, "order": order, "distance": distance, "law": LAWS[name]}
        assert exact_quantile_concentration(**terms) <= quantile_concentration(**terms) * MOST
        compared += 1
    assert compared == 324


def test_uniform_data_have_the_closed_form_and_the_published_one_is_weaker():
    for rows, order, distance in itertools.product(SIZES, DECILES, DISTANCES):
        terms = {"rows": rows, "order": order, "distance": distance}
        bound = quantile_concentration(**terms)
        published = published_quantile_concentration(rows=rows, distance=distance)
        # P(|d' - d| > gamma/2), with gamma twice the distance.
        gamma = 2 * distance
        assert published == pytest.approx(2 * math.exp(-rows * gamma**2 / 12))
        if distance < 0.99 * min(order, 1 - order):
            assert bound == pytest.approx(min(2 * math.exp(-rows * gamma**2 / 2), 1))
        assert bound <= published or published >= 1
        assert exact_quantile_concentration(**terms) <= published * MOST


def test_the_exact_law_is_the_beta_law_of_the_rank():
    for rows, order, distance in itertools.product((10, 1000), DECILES, (0.01, 0.05)):
        rank, d = math.ceil(order * rows), float(order)
        beta = betainc(rank, rows - rank + 1, d - distance)
        beta += 1 - betainc(rank, rows - rank + 1, d + distance)
        found = exact_quantile_concentration(rows=rows, order=order, distance=distance)
        assert found == pytest.approx(beta, abs=1e-14)
    # And a simulation of it: sorted data, no formula.
    draws = np.sort(np.random.default_rng(5).random((20_000, 25)), axis=1)
    for order in (0.1, 0.5, 0.72):
        share = np.mean(np.abs(draws[:, math.ceil(order * 25) - 1] - order) > 0.1)
        exact = exact_quantile_concentration(rows=25, order=order, distance=0.1)
        assert share == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 20_000))


def test_a_law_can_be_given_by_its_quantiles():
    class Normal:
        def quantile(self, shares):
            return ndtri(np.clip(shares, 1e-300, 1 - 1e-16))

    for rows, order, distance in itertools.product((10, 1000), (0.1, 0.5, 0.93), (0.02, 0.4)):
        terms = {"rows": rows, "order": order, "distance": distance}
        for function in (quantile_concentration, exact_quantile_concentration):
            assert function(law=Normal(), **terms) == pytest.approx(function(law=ndtr, **terms), rel=1e-9)


@pytest.mark.parametrize("factor", [1.3, 2, 6])
def test_an_exponent_that_is_too_large_is_noticed(factor):
    def broken(rows, order, distance):
        return min(2 * math.exp(-2 * factor * rows * distance**2), 1)

    # The median is where the bound is nearest to the truth.
    assert any(
        exact_quantile_concentration(rows=rows, order=0.5, distance=scaled / math.sqrt(rows))
        > broken(rows, 0.5, scaled / math.sqrt(rows)) * MOST
        for rows in (100, 10_000)
        for scaled in (0.5, 1, 2, 3)
    )


# --- counts in strips ----------------------------------------------------------------------------


def exact_min_count(rows, share, least):
    """P(Bin < least)."""
    return at_most(math.ceil(least) - 1, rows, share)


STRIPS = list(
    itertools.product((10, 100, 2000, 10**6), (1e-5, 0.01, 0.05, 0.3, 0.9), (0.01, 0.2, 0.7, 0.99, 3))
)


def test_no_strip_has_too_few_records_more_often_than_bounded():
    for rows, share, part in STRIPS:
        least = part * rows * share
        bound = min_count(rows=rows, share=share, least=least)
        assert exact_min_count(rows, share, least) <= bound * MOST
        assert (bound == 1) == (part >= 1)
        if part < 1:
            assert published_min_count(rows=rows, share=share, least=least) == pytest.approx(2 * bound)


def test_a_strip_bound_with_half_the_variance_is_noticed():
    assert any(
        exact_min_count(rows, share, least := part * rows * share)
        > math.exp(-((rows * share - least) ** 2) / (rows * share)) * MOST
        for rows, share, part in STRIPS
        if part < 1
    )


def test_the_published_lemma_is_false_without_its_hypothesis():
    # 100 rows, gamma = 0.02 and so strips of 0.01, 5 records wanted where 1 is expected.
    terms = {"rows": 100, "share": 0.01, "least": 5}
    assert round(exact_min_count(**terms), 3) == 0.997
    assert round(published_min_count(**terms), 4) == 0.0007
    assert min_count(**terms) == 1
    false = [
        (rows, share, part)
        for rows, share, part in STRIPS
        if exact_min_count(rows, share, part * rows * share)
        > published_min_count(rows=rows, share=share, least=part * rows * share)
    ]
    assert len(false) >= 10
    assert all(part > 1 for _, _, part in false)


def test_normal_data_are_served_at_every_decile():
    # What two lemmas on normal data were for: sample deciles, and the strips beside them.
    for order, gamma, rows in itertools.product(DECILES, (0.05, 0.2, 0.64, 1.28), (50, 1000, 30_000)):
        terms = {"rows": rows, "order": order, "distance": gamma / 2, "law": ndtr}
        assert exact_quantile_concentration(**terms) <= quantile_concentration(**terms) * MOST
        center = ndtri(float(order))
        for low, high in ((center - gamma, center - gamma / 2), (center + gamma / 2, center + gamma)):
            share = float(ndtr(high) - ndtr(low))
            for least in (0.3 * rows * share, 0.9 * rows * share, 1.1 * rows * share):
                bound = min_count(rows=rows, share=share, least=least)
                assert exact_min_count(rows, share, least) <= bound * MOST


# --- what is refused -----------------------------------------------------------------------------

HOSTILE = (math.nan, math.inf, -1, 0, "1", None, True, 10**400, [1])
DISTANCE = {"rows": 9, "order": 0.5, "distance": 0.1}
STRIP = {"rows": 9, "share": 0.5, "least": 2}
FUNCTIONS = [
    (quantile_concentration, DISTANCE),
    (exact_quantile_concentration, DISTANCE),
    (published_quantile_concentration, {"rows": 9, "distance": 0.1}),
    (min_count, STRIP),
    (published_min_count, STRIP),
]


@pytest.mark.parametrize(("function", "given"), FUNCTIONS, ids=lambda part: getattr(part, "__name__", ""))
def test_hostile_numbers_are_refused(function, given):
    assert 0 <= function(**given) <= 2
    for name, value in itertools.product(given, HOSTILE):
        with pytest.raises(InvalidParameter, match=name):
            function(**{**given, name: value})


@pytest.mark.parametrize(
    "law",
    [
        "normal",
        0.5,
        lambda value: 0.5,
        lambda value: math.nan,
        lambda value: 2.0,
        lambda value: "half",
        lambda: 0.5,
        lambda value: 1 - ndtr(value),
        lambda value: max(1 - abs(value), 0.0),
        MeanLimit,
        type("NoNumbers", (), {"quantile": lambda self, shares: math.nan})(),
    ],
)
def test_what_is_no_law_is_refused(law):
    for function in (quantile_concentration, exact_quantile_concentration):
        with pytest.raises(InvalidParameter, match=r"^law must "):
            function(law=law, **DISTANCE)


def test_extreme_numbers_are_answered():
    assert quantile_concentration(rows=2**40, order=0.5, distance=1e300) == 0
    assert quantile_concentration(rows=2**40, order=0.5, distance=1e-300) == 1
    assert quantile_concentration(rows=1, order=1e-300, distance=0.1, law=ndtr) == 1
    assert published_quantile_concentration(rows=2**40, distance=1e300) == 0
    assert min_count(rows=2**40, share=0.5, least=1e300) == 1
    assert published_min_count(rows=1, share=1e-299, least=1e300) == 0
    assert exact_quantile_concentration(rows=2**40, order=0.5, distance=1e-6) == pytest.approx(
        0.036, abs=1e-3
    )
