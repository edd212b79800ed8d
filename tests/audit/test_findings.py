"""Mistakes that were published, implemented or nearly made, and what the exact audit says of each.

`pytest tests/audit/test_findings.py -s` prints the true level of every one beside its claim.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.quantile_methods.cases import ORDERS, WIDE, Line, fine_query
from tests.quantile_methods.mutants import QUANTILE_MUTANTS

from sfumato.audit import compare, exact
from sfumato.laws import Choice, Clamped, DiscreteGaussian, DiscreteLaplace, FirstCrossing, Shifted
from sfumato.mechanisms import ExponentialMechanism
from sfumato.privacy import RangeEvent
from sfumato.quantile_methods import Joint, Recursive, Single

F = Fraction


def found(what, claimed, level):
    print(f"{what}: claims {claimed:.6g}, costs {level:.6g}")


def on_line(method, orders, relation, widths, left, right):
    """The exact audit of two columns: how many records are at each place of a line of billions of points."""
    line = Line.of(widths)
    query = fine_query(line, method, orders, relation, nulls="lower")
    return exact(query, line.data(left), line.data(right))


# --- published weights and constants ----------------------------------------------------------------------


def test_the_published_weight_of_a_quantile_costs_twice_its_epsilon_under_substitution():
    given = (Single(), ORDERS[0], "substitution", (0, WIDE, 4, 0), (9, 3, 8), (8, 3, 9))
    assert on_line(*given).verdict == "holds"
    with QUANTILE_MUTANTS["weights of the published algorithm"].defect():
        loss = on_line(*given)
    found("quantile with weight exp(-epsilon |i - pn|)", 1, loss.amount)
    assert loss.verdict == "VIOLATED"
    assert 1.99 <= loss.amount <= 2 + 1e-9


def test_even_constants_of_a_recursion_fail_on_uneven_orders():
    given = (
        Recursive(subcells=1),
        ORDERS[5],
        "substitution",
        (2, 4, 1024, 4, WIDE, 2),
        (2, 5, 4, 9, 0),
        (2, 4, 4, 9, 1),
    )
    assert on_line(*given).verdict == "undecided"
    assert on_line(*given).amount <= 1
    with QUANTILE_MUTANTS["half the range at every node"].defect():
        loss = on_line(*given)
    found("recursion on (.05, .5, .95) of 20 records with half the range at every node", 1, loss.amount)
    assert loss.verdict == "VIOLATED"
    assert loss.amount >= 1.069


# Each defect with the pair that shows it, and the level that it reaches there at least.
ROUNDED = [
    ("target rounded up", (Single(), ORDERS[0], "add-remove", (WIDE, 4, 0), (4, 2), (4, 3)), 2.0),
    (
        "target rounded down",
        (Single(), ORDERS[0], "add-remove", (0, WIDE, 4, 0), (2, 3, 2), (2, 3, 3)),
        2.0,
    ),
    (
        "child sizes rounded, substitution",
        (Recursive(subcells=1), ORDERS[4], "substitution", (1024, 2, WIDE, 1024), (1, 3, 1), (0, 3, 2)),
        1.163,
    ),
    (
        "child sizes rounded, add-remove",
        (Recursive(subcells=1), ORDERS[4], "add-remove", (2, 4, WIDE, 4), (1, 0, 3), (2, 0, 3)),
        1.5,
    ),
    (
        "records at the released point split to balance ranks",
        (Recursive(subcells=1), ORDERS[4], "add-remove", (2, WIDE, 1024, 4), (0, 2, 4), (1, 2, 4)),
        1.344,
    ),
    (
        "joint gaps rounded",
        (Joint(subcells=1), ORDERS[3], "add-remove", (2, 1024, WIDE, 4), (1, 0, 4), (2, 0, 4)),
        1.5,
    ),
]


@pytest.mark.parametrize(("name", "given", "level"), ROUNDED, ids=[row[0] for row in ROUNDED])
def test_a_rounded_rank_costs_up_to_twice(name, given, level):
    assert on_line(*given).amount <= 1 + 1e-9
    with QUANTILE_MUTANTS[name].defect():
        loss = on_line(*given)
    found(name, 1, loss.amount)
    assert loss.verdict == "VIOLATED"
    assert loss.amount >= level - 0.001


def test_halved_noise_of_a_scan_over_arbitrary_queries_costs_half_as_much_again():
    threshold = DiscreteLaplace(F(2))
    # The values before the last hold the threshold high, and rise with it; the last one falls.
    left, right = [30] * 30 + [0], [31] * 30 + [-1]
    levels = []
    for scale in (F(4), F(2)):
        laws = [
            FirstCrossing(np.array(values), 0, threshold, DiscreteLaplace(scale)) for values in (left, right)
        ]
        levels.append(compare(*laws).epsilon().upper)
    found("AboveThreshold with the noise of counts on arbitrary queries", 1, levels[1])
    assert 0.999 <= levels[0] <= 1 + 1e-9
    assert 1.499 <= levels[1] <= 1.5 + 1e-9


# --- the normal distribution without its root of two ----------------------------------------------------


def gaussian_delta(sigma, epsilon):
    """The continuous hockey stick of two normal laws one unit apart."""
    from scipy.stats import norm

    return norm.cdf(0.5 / sigma - epsilon * sigma) - math.exp(epsilon) * norm.cdf(
        -0.5 / sigma - epsilon * sigma
    )


def test_an_inverse_of_the_normal_law_without_its_root_of_two_misses_its_delta():
    epsilon, delta = 0.5, 1e-5
    sigma = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    assert sigma == pytest.approx(9.6896, abs=1e-4)
    # One unit of the data is so many steps of the lattice; the law is as good as continuous there.
    steps = 10**6
    levels = []
    for deviation in (sigma, sigma / math.sqrt(2)):
        noise = DiscreteGaussian(F(round((deviation * steps) ** 2)))
        level = compare(Shifted(noise, 0), Shifted(noise, steps)).delta(epsilon)
        assert level.exact
        assert level.upper == pytest.approx(gaussian_delta(deviation, epsilon), rel=1e-6)
        levels.append(level)
    found("Gaussian noise by mu + sigma erfinv(2u - 1)", delta, levels[1].lower)
    assert levels[0].upper < delta
    assert levels[1].lower == pytest.approx(1.465e-5, abs=1e-8)


# --- truncation, and a claim that is too large -------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "level"), [(F(1, 10), 0.191), (F(2, 5), 0.685), (F(1), 1.490)], ids=str)
def test_truncated_noise_costs_more_than_clamped_noise(epsilon, level):
    # A mean of n records in [0, 1] moves by 1/n; the lattice has `steps` points in each such move.
    records, steps = 100, 400
    noise = DiscreteLaplace(steps / epsilon)
    top = records * steps

    def truncated(center):
        logs = np.asarray(Shifted(noise, center).logpmf(np.arange(top + 1)))
        return Choice(np.exp(logs - logs.max()))

    clamped = compare(*(Clamped(Shifted(noise, center), 0, top) for center in (0, steps)))
    assert clamped.exponent == epsilon
    cost = compare(truncated(0), truncated(steps)).epsilon().upper
    e = float(epsilon)
    closed = e + math.log((2 - math.exp(-e) - math.exp(-(records - 1) * e)) / (1 - math.exp(-records * e)))
    found(f"Laplace noise truncated to the bounds, scale 1/(n {e:g})", e, cost)
    assert closed == pytest.approx(level, abs=1e-3)
    assert cost == pytest.approx(closed, abs=3e-3)


@pytest.mark.parametrize(("epsilon", "level"), [(0.1, 0.0953), (1.0, 0.714), (3.0, 1.660)])
def test_inverse_sensitivity_of_a_proportion_costs_less_than_it_claims(epsilon, level):
    records = max(40, math.ceil(40 / epsilon))
    ratio = math.exp(-epsilon / 2)

    def law(total):
        return Choice(ratio ** np.abs(np.arange(records + 1.0) - total))

    cost = max(compare(law(total), law(total + 1)).epsilon().upper for total in (0, 1, records // 2))
    found("inverse sensitivity of a proportion", epsilon, cost)
    assert cost == pytest.approx(epsilon / 2 + math.log(1 + ratio - ratio**2), rel=1e-6)
    assert cost == pytest.approx(level, abs=6e-4)
    assert cost < epsilon


# --- zCDP
# ----------------------------------------------------------------------------------------------------


def test_permute_and_flip_has_no_bounded_range_and_its_rho_is_not_that_of_one():
    flip = ExponentialMechanism(sensitivity=1, epsilon=1, variant="flip")
    plain = ExponentialMechanism(sensitivity=1, epsilon=1, variant="exponential")
    worst = {}
    for mechanism in (flip, plain):
        spans, rhos = [], []
        for high in (1, 2, 4, 8):
            for count in (2, 3, 10, 300):
                laws = [
                    mechanism.law(scores)
                    for scores in ([high] + [0] * (count - 1), [high - 1] + [1] * (count - 1))
                ]
                comparison = compare(*laws)
                spans.append(comparison.parts[0].ratios.range if comparison.parts else 0.0)
                rhos.append(comparison.rho())
                # What the ledger charges holds for each.
                assert rhos[-1].upper <= float(mechanism.event.rho) * (1 + 1e-9)
        worst[mechanism.variant] = max(spans), max(rho.lower for rho in rhos)
    found("permute-and-flip charged as a bounded range", 1, worst["flip"][0])
    assert worst["flip"][0] > 1.6
    assert worst["exponential"][0] <= 1 + 1e-9
    as_range = float(RangeEvent(F(1), "exponential").rho)
    found("permute-and-flip at the rho of a bounded range", as_range, worst["flip"][1])
    # The exact divergence refutes the charge of a range, for permute-and-flip and not for the other.
    assert worst["flip"][1] > as_range
    assert worst["exponential"][1] <= as_range * (1 + 1e-9)
