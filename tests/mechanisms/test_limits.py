"""The limits of public parameters of mechanisms, what they say, and the direction of their roundings."""

import math
from fractions import Fraction
from functools import lru_cache
from types import SimpleNamespace

import mpmath as mp
import numpy as np
import pytest

from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws import SeededBits
from sfumato.laws.coins import exp_coin
from sfumato.laws.selection import Selection, power_coin
from sfumato.mechanisms.above_threshold import AboveThreshold
from sfumato.mechanisms.additive import Sensitivity, additive
from sfumato.mechanisms.bounded_noise import BoundedAnswers, BoundedComparison, BoundedNoiseMechanism
from sfumato.mechanisms.exponential import ExponentialMechanism, TopMechanism, _read
from sfumato.mechanisms.gaussian import GaussianMechanism
from sfumato.mechanisms.geometric import ClampedGeometric
from sfumato.mechanisms.laplace import LaplaceMechanism
from sfumato.mechanisms.moves import AnyQueries, CountsAtOrder, SameDirection, cube_root
from sfumato.mechanisms.sparse import MAX_CROSSINGS, Sparse, SparseMechanism
from sfumato.mechanisms.transcripts import Transcripts
from sfumato.privacy import ZCDP, ApproxDP, PureDP

one = Fraction(1)
approx = ApproxDP(1, 1e-6)
scan = SparseMechanism.calibrated(1, sensitivity=1)
choice = ExponentialMechanism(sensitivity=1, epsilon=1)
top = TopMechanism(picks=3, sensitivity=1, epsilon=1)


def sparse(crossings):
    return SparseMechanism(moves=AnyQueries(1), crossings=crossings, threshold_scale=one, query_scale=one)


# What takes a value between two limits, the name of the parameter, and the limits, both included.
WHOLE = [
    (lambda v: LaplaceMechanism(sensitivity=v, scale=one), "sensitivity", 1, 2**200),
    (
        lambda v: GaussianMechanism(sensitivity_squared=v, sigma_squared=one, coordinates=2),
        "sensitivity_squared",
        1,
        2**400,
    ),
    (
        lambda v: GaussianMechanism(sensitivity_squared=4, sigma_squared=one, coordinates=v),
        "coordinates",
        1,
        2**32,
    ),
    (lambda v: Sensitivity(v, 1, 1), "l1", 0, 2**200),
    (lambda v: Sensitivity(1, v, 1), "l2_squared", 0, 2**400),
    (lambda v: Sensitivity(1, 1, v), "coordinates", 0, 2**32),
    (AnyQueries, "sensitivity", 1, 2**50),
    (SameDirection, "sensitivity", 1, 2**50),
    (sparse, "crossings", 1, MAX_CROSSINGS),
    (lambda v: SparseMechanism.calibrated(10**6, sensitivity=1, crossings=v), "crossings", 1, MAX_CROSSINGS),
    (lambda v: Sparse(scan, v, SeededBits(1)), "threshold", -(2**60), 2**60),
    (lambda v: Transcripts(scan, (1,), v), "threshold", -(2**60), 2**60),
    (lambda v: choice.radius(v, 0.9), "count", 1, 2**22),
    (lambda v: choice.radius(9, 0.9, best=v), "best", 1, 9),
    (lambda v: TopMechanism(picks=v, sensitivity=1, epsilon=1), "picks", 1, 10_000),
    (
        lambda v: TopMechanism.under(ZCDP(1), picks=v, sensitivity=one, monotone=True, variant="flip"),
        "picks",
        1,
        10_000,
    ),
    (lambda v: top.radius(v, 0.9), "count", 3, 2**22),
    (lambda v: AboveThreshold.general(1, 1).radius(v, 0.9), "queries", 1, 2**40),
]
every_whole = pytest.mark.parametrize(
    ("make", "name", "least", "most"), WHOLE, ids=[f"{k} {w[1]}" for k, w in enumerate(WHOLE)]
)


@every_whole
def test_whole_parameters_are_taken_from_the_least_to_the_most_and_no_further(make, name, least, most):
    for inside in (least, most):
        made = make(inside)
        kept = getattr(made, name) if name in getattr(made, "__dataclass_fields__", ()) else inside
        assert kept == inside
        assert type(kept) is int
    for outside in (least - 1, most + 1, True, 1.0, None):
        with pytest.raises(InvalidParameter, match=rf"\b{name} must be "):
            make(outside)


def test_the_limits_are_the_numbers_that_are_documented():
    assert MAX_CROSSINGS >= 1000
    values = Transcripts(scan, (np.int64(-(2**60)), 2**60), 0).values
    assert values == (-(2**60), 2**60)
    assert {type(value) for value in values} == {int}


CONFIDENCES = {
    "choice": lambda c: choice.radius(100, c),
    "top": lambda c: top.radius(100, c),
    "crossing": lambda c: AboveThreshold.general(1, 1).radius(9, c),
    "stream": lambda c: SparseMechanism.calibrated(1, sensitivity=1, answers=0.5).answer_radius(c),
    "bounded": lambda c: bounded(10).max_error_quantile(c),
    "gaussian": lambda c: bounded(10).gaussian_maximum(c),
    "compared": lambda c: bounded(10).compared(c).maximum,
}


@lru_cache
def bounded(queries):
    return BoundedNoiseMechanism.calibrated(approx, sensitivity=1, queries=queries, power=2)


@pytest.mark.parametrize("radius", CONFIDENCES.values(), ids=CONFIDENCES)
def test_confidences_are_inside_zero_and_one_and_wider_ones_reach_further(radius):
    reached = [radius(confidence) for confidence in (1e-6, 0.5, 0.9, Fraction(999_999, 10**6))]
    assert reached == sorted(reached)
    assert reached[0] < reached[-1]
    for outside in (0, 1, -0.5, 1.5, float("nan"), True, None):
        with pytest.raises(InvalidParameter, match=r"^confidence must be "):
            radius(outside)


def test_bounded_noise_has_a_hard_radius_at_confidence_one():
    mechanism = bounded(10)
    assert mechanism.radius(1) == mechanism.bound - 1
    assert mechanism.radius(0.5) < mechanism.bound - 1
    for outside in (0, 1.5, True, None):
        with pytest.raises(InvalidParameter, match=r"^confidence must be "):
            mechanism.radius(outside)


# --- choices -------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["flip", "exponential", "base2"])
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(("count", "best"), [(2, 1), (1000, 1), (1000, 7), (2**22, 1)])
@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(19, 20), 1 - Fraction(1, 10**12)], ids=float)
def test_the_radius_of_a_choice_is_rounded_up_and_hardly(variant, monotone, count, best, confidence):
    mechanism = ExponentialMechanism(
        sensitivity=Fraction(3, 2), epsilon=Fraction(1, 7), monotone=monotone, variant=variant
    )
    found = mechanism.radius(count, confidence, best=best)
    with mp.workdps(40):
        failure = mp.mpf((1 - confidence).numerator) / (1 - confidence).denominator
        others, rate = count - best, mp.mpf(1) / 7 / (mp.mpf(3) / 2 if monotone else 3)
        odds = (
            others / ((best + 1) * failure)
            if variant == "flip"
            else others * (1 - failure) / (best * failure)
        )
        exact = max(mp.log(odds), 0) / rate
        assert exact <= found <= exact * (1 + mp.mpf(10) ** -11) + mp.mpf(10) ** -10
        assert found == 0 or found > exact * (1 + mp.mpf(10) ** -13)


def test_all_picks_of_a_top_share_the_failure():
    mechanism = TopMechanism(picks=4, sensitivity=2, epsilon=3, monotone=True, variant="exponential")
    each = ExponentialMechanism(sensitivity=2, epsilon=Fraction(3, 4), monotone=True, variant="exponential")
    assert mechanism.each == each
    assert mechanism.radius(50, Fraction(9, 10)) == each.radius(50, Fraction(39, 40))
    assert mechanism.described() == each.described() + ", 4 times in turn"
    assert each.described() == "exponential mechanism with a fall of 0.375 a unit of score"
    twice = TopMechanism(picks=2, sensitivity=1, epsilon=2)
    assert twice.described() == choice.described() + ", 2 times in turn"
    assert TopMechanism(picks=1, sensitivity=1, epsilon=1).described() == choice.described()


@pytest.mark.parametrize("budget", [PureDP(2), ApproxDP(2, 1e-6), ZCDP(2)], ids=str)
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("variant", ["flip", "exponential", "base2"])
def test_a_budget_buys_picks_of_the_kind_that_was_asked_for(budget, monotone, variant):
    bought = TopMechanism.under(budget, picks=4, sensitivity=Fraction(3), monotone=monotone, variant=variant)
    assert (bought.picks, bought.sensitivity, bought.monotone, bought.variant) == (4, 3, monotone, variant)
    concentrated = {"flip": 4, "exponential": 8, "base2": 8}[variant]
    assert bought.epsilon == (concentrated if isinstance(budget, ZCDP) else 2)


def test_rational_weights_are_decided_by_their_own_coins():
    for variant, coin in (("base2", power_coin), ("exponential", lambda rate, gap: exp_coin(rate * gap))):
        law = Selection((9, 2), Fraction(1, 3), variant)
        assert law._coin(1)(300) == coin(Fraction(1, 3), 7)(300)
    assert power_coin(Fraction(1, 3), 7)(300) != exp_coin(Fraction(7, 3))(300)


def test_scores_are_read_from_rows_of_every_kind_and_from_nothing_else():
    listed = SimpleNamespace(to_list=lambda: [1, 2])
    arrow = SimpleNamespace(to_pylist=lambda: [1, 2])
    for scores in (
        [1, 2],
        (1, 2),
        np.array([1, 2]),
        np.array([1, 2], dtype=np.uint8),
        listed,
        arrow,
        range(1, 3),
    ):
        read = _read(scores, whole_only=True)
        assert read == (1, 2)
        assert {type(score) for score in read} == {int}
    halves = _read([0.5, Fraction(1, 2), np.float32(0.5), np.float16(0.5)], whole_only=False)
    assert halves == (Fraction(1, 2),) * 4
    for bad in (
        "12",
        b"12",
        3,
        {1, 2},
        None,
        np.array(3),
        np.array([[1]]),
        SimpleNamespace(to_list=lambda: 3),
    ):
        with pytest.raises(InvalidParameter, match=r"^scores must be "):
            _read(bad, whole_only=False)
    for bad in ([True], [None], ["1"], [float("inf")], [float("nan")], [1j], [np.longdouble(1)]):
        with pytest.raises(InvalidParameter, match=r"^scores must be integers, fractions or finite floats$"):
            _read(bad, whole_only=False)
    for bad in ([0.5], [Fraction(1, 2)], [True]):
        with pytest.raises(InvalidParameter, match=r"^scores must be integers for 'base2'$"):
            _read(bad, whole_only=True)


def test_one_to_as_many_scores_as_the_limit_are_taken(monkeypatch):
    monkeypatch.setattr("sfumato.mechanisms.exponential.MAX_CANDIDATES", 3)
    assert _read([1], whole_only=True) == (1,)
    assert _read([1, 2, 3], whole_only=True) == (1, 2, 3)
    for bad in ([], [1, 2, 3, 4]):
        with pytest.raises(InvalidParameter, match=r"^scores must be 1 to 3 numbers$"):
            _read(bad, whole_only=True)


# --- scans ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1, 1000, 10**6])
@pytest.mark.parametrize(
    "value", [0, 1, 8, 9, 27, 28, Fraction(1, 10**12), Fraction(1, 3), 10**36, 10**36 + 1], ids=str
)
def test_cube_roots_are_the_smallest_multiples_that_are_not_below(value, unit):
    root = cube_root(Fraction(value), unit)
    assert (root * unit).denominator == 1
    assert root**3 >= value
    assert root == 0 or (root - Fraction(1, unit)) ** 3 < value
    assert cube_root(Fraction(value)) == cube_root(Fraction(value), 1000)


def test_orders_are_taken_from_zero_to_one_half():
    assert CountsAtOrder(0).sensitivity == 1
    assert CountsAtOrder(0.5).order == Fraction(1, 2)
    assert CountsAtOrder(Fraction(2, 5)).sensitivity == 3
    for outside, text in ((Fraction(-1, 8), "-0.125"), (Fraction(5, 8), "0.625")):
        with pytest.raises(InvalidParameter, match=rf"^order must be in \[0, 1/2\] .*got order={text}$"):
            CountsAtOrder(outside)


def test_losses_are_the_sums_that_the_proof_adds_up():
    t, q, a = Fraction(7), Fraction(5), Fraction(3)
    assert AnyQueries(2).losses(t, q) == (2 / t + 4 / q,) * 2
    assert AnyQueries(2).losses(t, q, 3, a) == (2 / t + 3 * 2 * (2 / q + 1 / a),) * 2
    assert SameDirection(2).losses(t, q) == (2 / t + 2 / q, 2 / q)
    assert SameDirection(2).losses(t, q, 3, a) == (2 / t + 3 * 2 / a, 3 * 2 * (1 / q + 1 / a))
    assert SameDirection(2).losses(t, q, 3, 2 * q) == (2 / t + 3 * 2 / q, 3 * 2 * (1 / q + 1 / (2 * q)))
    order = CountsAtOrder(Fraction(2, 5))
    assert order.losses(t, q) == (max(3 / t, 2 / q), 2 / t + 5 / q)
    assert order.losses(t, q, 4, a) == (
        max(3 / t + 3 * 5 / q, 4 * 2 / q) + 4 * 3 / a,
        2 / t + 4 * 5 / q + 4 * 3 / a,
    )
    assert order.losses(10**9 * one, q, 4) == (max(Fraction(3, 10**9) + 3, 8 / q), Fraction(2, 10**9) + 4)


SCAN = {"moves": AnyQueries(1), "threshold_scale": one, "query_scale": one}


@pytest.mark.parametrize("name", ["threshold_scale", "query_scale", "answer_scale"])
def test_scales_of_a_scan_are_positive_and_at_most_two_to_the_fifty_two(name):
    makers = [lambda **given: SparseMechanism(crossings=1, **given)]
    makers += [] if name == "answer_scale" else [AboveThreshold]
    for make in makers:
        assert getattr(make(**{**SCAN, name: 2**52}), name) == 2**52
        assert getattr(make(**{**SCAN, name: 0.1}), name) == Fraction(1, 10)
        for outside in (0, -1, 2**52 + 1, "1", True):
            with pytest.raises(InvalidParameter, match=rf"^{name} must be .*, got {name}=(?!None)"):
                make(**{**SCAN, name: outside})
        for moves in (None, 1):
            with pytest.raises(InvalidParameter, match=rf"^moves must be AnyQueries, .* got moves={moves}$"):
                make(**{**SCAN, "moves": moves})
        with pytest.raises(InvalidParameter, match=r"^one_sided must be True or False"):
            make(**SCAN, one_sided=1)


def test_scans_are_described_in_units_of_a_step():
    law = AboveThreshold(moves=AnyQueries(1), threshold_scale=Fraction(4), query_scale=Fraction(6))
    assert law.described() == "first crossing with one-sided geometric noise of scales 4 and 6"
    assert law.described(Fraction(1, 2)) == "first crossing with one-sided geometric noise of scales 2 and 3"
    two = AboveThreshold(moves=AnyQueries(1), threshold_scale=one, query_scale=one, one_sided=False)
    assert two.described() == "first crossing with discrete Laplace noise of scales 1 and 1"
    stream = SparseMechanism(**SCAN, crossings=2, answer_scale=Fraction(9), one_sided=False)
    assert stream.described() == (
        "up to 2 crossings with discrete Laplace noise of scales 1 and 1, "
        "numbers with discrete Laplace noise of scale 9"
    )
    assert sparse(1).described() == "up to 1 crossing with one-sided geometric noise of scales 1 and 1"
    with pytest.raises(NotSupported, match=r"^answer_radius needs numeric answers"):
        sparse(1).answer_radius(0.9)


def test_numbers_of_all_crossings_share_the_failure():
    stream = SparseMechanism(**SCAN, crossings=5, answer_scale=Fraction(9))
    assert stream.answer_radius(0.9) == stream.answer_noise.radius(Fraction(98, 100))


# --- additive noise ------------------------------------------------------------------------------


def test_additive_mechanisms_are_described_in_units_of_a_step():
    laplace = LaplaceMechanism(sensitivity=1, scale=Fraction(10))
    assert laplace.described() == "discrete Laplace noise of scale 10"
    assert laplace.described(Fraction(1, 4)) == "discrete Laplace noise of scale 2.5"
    gaussian = GaussianMechanism(sensitivity_squared=1, sigma_squared=Fraction(16), coordinates=1)
    assert gaussian.described() == "discrete Gaussian noise of standard deviation 4"
    assert gaussian.described(Fraction(1, 8)) == "discrete Gaussian noise of standard deviation 0.5"
    assert Sensitivity.scalar(3) == Sensitivity(3, 9, 1)


def test_the_noise_that_a_budget_cannot_buy_is_refused_by_name():
    scalar = Sensitivity.scalar(1)
    with pytest.raises(InvalidParameter, match=r"^noise='gaussian' needs an ApproxDP or ZCDP budget"):
        additive(PureDP(1), scalar, "gaussian")
    with pytest.raises(InvalidParameter, match=r"^noise='laplace' needs a PureDP or ApproxDP budget"):
        additive(ZCDP(1), scalar, "laplace")
    with pytest.raises(InvalidParameter, match=r"^noise must be one of 'auto', 'laplace', 'gaussian'"):
        additive(PureDP(1), scalar, "cauchy")
    assert type(additive(approx, scalar, "laplace")) is LaplaceMechanism
    assert type(additive(approx, scalar, "gaussian")) is GaussianMechanism
    assert type(additive(approx, scalar)) is LaplaceMechanism
    assert type(additive(ZCDP(1), scalar)) is GaussianMechanism
    wide = Sensitivity(100, 100, 100)
    assert additive(approx, wide) == additive(approx, wide, "gaussian")
    assert additive(approx, wide).coordinates == 100


@pytest.mark.parametrize("name", ["lower", "upper"])
def test_ends_of_a_clamped_count_have_the_limits_of_the_law(name):
    other = {"upper": None} if name == "lower" else {"lower": None}
    for inside in (-(2**1000), 2**1000, None):
        assert getattr(ClampedGeometric(scale=one, **{name: inside}, **other), name) == inside
    for outside in (-(2**1000) - 1, 2**1000 + 1, 0.5):
        with pytest.raises(InvalidParameter, match=rf"^{name} must be "):
            ClampedGeometric(scale=one, **{name: outside}, **other)
    assert ClampedGeometric(scale=one, lower=3, upper=3).law(9).sample(SeededBits(1)) == 3
    with pytest.raises(InvalidParameter, match=r"^lower must be at most upper, got lower=4, upper=3$"):
        ClampedGeometric(scale=one, lower=4, upper=3)


# --- bounded noise -------------------------------------------------------------------------------


def test_sensitivities_in_steps_of_the_granularity_have_a_limit():
    def opened(sensitivity, granularity=None):
        bits = SeededBits(1)
        return BoundedAnswers.open(
            approx, sensitivity=sensitivity, queries=1, granularity=granularity, bits=bits, power=2
        )

    with pytest.raises(InvalidParameter, match=r"^sensitivity must be a whole number without .*=0\.5$"):
        opened(0.5)
    with pytest.raises(
        InvalidParameter, match=r"^sensitivity must be at most 4194304 steps .*, got 4194305$"
    ):
        opened(2**22 + 1)
    with pytest.raises(
        InvalidParameter, match=r"^sensitivity must be at most 4194304 steps .*, got 8388608$"
    ):
        opened(2**20, Fraction(1, 8))
    # The limit itself passes the check, but no bound is that wide.
    with pytest.raises(NotSupported, match=r"."):
        opened(2**22)
    assert opened(3).bound == opened(Fraction(3, 8), Fraction(1, 8)).bound * 8


@pytest.mark.parametrize(
    ("bound", "maximum", "words"),
    [
        (100, 90, r"^bounded noise wins: hard bound 1\.00 of the 90% maximum of Gaussian noise, unless "),
        (
            50,
            40,
            r"^bounded noise wins: hard bound 0\.50 .* unless the true L2 sensitivity is below 0\.50 of",
        ),
        (
            101,
            100,
            r"^a draw: 90% maximum 1\.00 of that of Gaussian noise, but hard bound 1\.01 times as large$",
        ),
        (125, 110, r"^bounded noise loses: hard bound 1\.25 and 90% maximum 1\.10 times the 90% maximum of "),
    ],
    ids=["even", "wins", "draw", "loses"],
)
def test_the_verdict_names_the_winner_and_both_ratios(bound, maximum, words):
    compared = BoundedComparison(
        queries=1,
        confidence=Fraction(9, 10),
        bound=bound,
        maximum=maximum,
        std=1.0,
        gaussian_maximum=100.0,
        gaussian_std=1.0,
    )
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(compared.verdict)
    assert compared.bound_ratio == bound / 100
    assert compared.maximum_ratio == maximum / 100


def test_a_comparison_holds_the_figures_of_its_mechanism():
    mechanism = bounded(10)
    compared = mechanism.compared()
    assert (compared.queries, compared.confidence, compared.bound) == (10, Fraction(95, 100), mechanism.bound)
    assert compared.maximum == mechanism.max_error_quantile(Fraction(95, 100))
    assert compared.gaussian_maximum == mechanism.gaussian_maximum(Fraction(95, 100))
    assert (compared.std, compared.gaussian_std) == (mechanism.std, mechanism.gaussian_std)
    assert mechanism.std == math.sqrt(mechanism.noise.variance)
    text = mechanism.described(Fraction(1, 10))
    assert text.startswith(f"noise of power 2 below {mechanism.bound / 10:g}, standard deviation ")
    assert text.endswith(f"{mechanism.std / 10:.6g}")
