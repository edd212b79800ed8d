"""The exponential mechanism: exact audits over small sets, broken variants that they must catch, accuracy."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2
from tests.laws.fit import DETECTABLE, FALSE_ALARM

from sfumato.errors import InvalidParameter
from sfumato.laws import SeededBits, selection
from sfumato.laws.coins import Uniform, exp_floor
from sfumato.laws.selection import Selection, base, power_coin
from sfumato.mechanisms.exponential import VARIANTS, ExponentialMechanism, TopMechanism
from sfumato.privacy import PureEvent, RangeEvent

# Float64 in the log probabilities; the bounds themselves are exact.
ROUNDING = 1e-11
SPEC_SCORES = (0, 0, 0, 0, 0, 4, 5)

Vector = tuple[int, ...]
Pair = tuple[Vector, Vector]
LogLaw = Callable[[Vector], np.ndarray]


def mechanism(variant: str = "flip", *, sensitivity=1, epsilon=1, monotone=False) -> ExponentialMechanism:
    return ExponentialMechanism(
        sensitivity=sensitivity,
        epsilon=epsilon,
        monotone=monotone,
        variant=variant,  # type: ignore[arg-type]
    )


def log_law(of: ExponentialMechanism) -> LogLaw:
    return lambda scores: of.law(scores).logpmf(np.arange(len(scores)))


def pairs(sensitivity: int, *, monotone: bool) -> Iterator[Pair]:
    """All score vectors of 2 to 4 candidates, and all changes that one record may make."""
    for count, top in ((2, 7), (3, 4), (4, 2)):
        # Only the difference of scores matters, so that one direction and both signs are all there is.
        moves = range(sensitivity + 1) if monotone else range(-sensitivity, sensitivity + 1)
        if count == 4 and sensitivity > 1:
            moves = sorted({moves[0], 0, moves[-1]})  # type: ignore[assignment]
        for scores in itertools.product(range(top + 1), repeat=count):
            for move in itertools.product(moves, repeat=count):
                yield scores, tuple(a + b for a, b in zip(scores, move, strict=True))


def audit(law: LogLaw, neighbours: Iterable[Pair]) -> tuple[float, float]:
    """The largest log ratio, and the largest distance between the log ratios of two outcomes."""
    known: dict[Vector, np.ndarray] = {}

    def logs(scores: Vector) -> np.ndarray:
        if scores not in known:
            known[scores] = law(scores)
        return known[scores]

    loss = spread = 0.0
    for left, right in neighbours:
        ratios = logs(left) - logs(right)
        loss, spread = max(loss, np.abs(ratios).max()), max(spread, np.ptp(ratios))
    return float(loss), float(spread)


def weights(law: Selection) -> list[Fraction]:
    """The weights over the largest: exact for rational ones, else within 2^-300."""
    if law.variant == "base2":
        x, y = base(law.rate)
        return [Fraction(x, 2**y) ** int(gap) for gap in law.gaps]
    return [Fraction(exp_floor(law.rate * gap, 300), 2**300) for gap in law.gaps]


def enumerated(law: Selection) -> list[Fraction]:
    """The law by exact arithmetic: for permute-and-flip, over all orders of the candidates."""
    chances = weights(law)
    if law.variant != "flip":
        return [chance / sum(chances) for chance in chances]
    found = [Fraction(0)] * len(chances)
    for order in itertools.permutations(range(len(chances))):
        reached = Fraction(1, math.factorial(len(chances)))
        for place in order:
            found[place] += reached * chances[place]
            reached *= 1 - chances[place]
    return found


def log_of(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


# --- privacy -----------------------------------------------------------------------------------


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, 1), (1, 4), (2, Fraction(1, 2))])
@pytest.mark.parametrize("variant", VARIANTS)
def test_no_neighbours_lose_more_than_epsilon(variant, sensitivity, epsilon, monotone):
    tested = mechanism(variant, sensitivity=sensitivity, epsilon=epsilon, monotone=monotone)
    loss, spread = audit(log_law(tested), pairs(sensitivity, monotone=monotone))
    print(f"{variant}, {sensitivity}, {epsilon}: loss {loss / epsilon:.4f}, range {spread / epsilon:.4f}")
    assert loss <= epsilon + ROUNDING
    if variant == "flip":
        assert loss >= epsilon - ROUNDING
    else:
        assert epsilon - ROUNDING <= spread <= epsilon + ROUNDING


def test_two_candidates_attain_the_bound_of_permute_and_flip():
    general, same = mechanism(), mechanism(monotone=True)
    ratio = general.law([0, 200]).logpmf(0) - general.law([1, 199]).logpmf(0)
    assert -1 - ROUNDING <= ratio <= -1 + ROUNDING
    ratio = same.law([0, 200]).logpmf(0) - same.law([0, 199]).logpmf(0)
    assert -1 - ROUNDING <= ratio <= -1 + ROUNDING


def test_permute_and_flip_has_no_bounded_range():
    _, spread = audit(log_law(mechanism()), pairs(1, monotone=False))
    assert spread > 1.6
    assert isinstance(mechanism().event, PureEvent)
    assert isinstance(mechanism("exponential").event, RangeEvent)


@pytest.mark.parametrize("variant", ["flip", "exponential"])
@given(data=st.data())
def test_rational_and_float_scores_lose_no_more(variant, data):
    count = data.draw(st.integers(2, 6))
    epsilon = data.draw(st.fractions(Fraction(1, 50), 5, max_denominator=50))
    sensitivity = data.draw(st.fractions(Fraction(1, 50), 5, max_denominator=50))
    scores = data.draw(st.lists(st.floats(-50, 50), min_size=count, max_size=count))
    moves = data.draw(st.lists(st.fractions(-sensitivity, sensitivity), min_size=count, max_size=count))
    moved = [Fraction(score) + move for score, move in zip(scores, moves, strict=True)]
    law = mechanism(variant, sensitivity=sensitivity, epsilon=epsilon)
    every = np.arange(count)
    ratios = law.law(scores).logpmf(every) - law.law(moved).logpmf(every)
    assert np.abs(ratios).max() <= float(epsilon) + 1e-9


def test_events_name_the_costs():
    assert mechanism(epsilon=0.1).event.pure_epsilon == Fraction(1, 10)
    assert mechanism("exponential", epsilon=1).event.rho == Fraction(1, 8)
    assert mechanism("flip", epsilon=1).event.rho == Fraction(1, 2)


# --- mutants: the audit must catch each --------------------------------------------------------


def without_the_factor_two(scores: Vector) -> np.ndarray:
    return Selection(scores, Fraction(1), "exponential").logpmf(np.arange(len(scores)))


def scaled_by_the_private_range(scores: Vector) -> np.ndarray:
    reach = max(max(scores) - min(scores), 1)
    scaled = tuple(Fraction(4 * score, reach) for score in scores)
    return Selection(scaled, Fraction(1, 2), "exponential").logpmf(np.arange(len(scores)))


def with_floats_that_underflow(scores: Vector) -> np.ndarray:
    found = np.exp(np.array(scores, dtype=np.float64) / 2 - max(scores) / 2)
    with np.errstate(divide="ignore"):
        return np.log(found / found.sum())


@pytest.mark.parametrize(
    "law", [without_the_factor_two, log_law(mechanism(monotone=True)), scaled_by_the_private_range]
)
def test_the_audit_catches_a_wrong_calibration(law):
    loss, spread = audit(law, pairs(1, monotone=False))
    print(f"mutant: loss {loss:.3f}, range {spread:.3f}")
    assert loss > 1.3


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_monotone_flag_on_other_changes_costs_up_to_twice_as_much(variant):
    loss, spread = audit(log_law(mechanism(variant, monotone=True)), pairs(1, monotone=False))
    assert max(loss, spread) > 1.9


def test_far_scores_do_not_underflow_and_those_of_floats_do():
    near, far = (0, 1_490), (0, 1_491)
    for variant in VARIANTS:
        loss, _ = audit(log_law(mechanism(variant)), [(near, far), ((0, 10**6), (1, 10**6 - 1))])
        assert loss <= 1 + 1e-9
    assert audit(with_floats_that_underflow, [(near, far)])[0] == math.inf


# --- the law and its sampler -------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    "scores", [SPEC_SCORES, (3,), (7, 7, 7), (0, 1, 40, 41), (-5, 10**6, 3), (0, 10**40)]
)
def test_log_probabilities_are_those_of_exact_arithmetic(variant, scores):
    law = mechanism(variant).law(scores)
    if max(scores) < 100:  # beyond that the exact powers are too long, and 300 bits of an exponential too few
        exact = [log_of(chance) for chance in enumerated(law)]
        assert law.logpmf(law.outcomes()) == pytest.approx(exact, rel=1e-12, abs=1e-12)
    assert law.probability(law.outcomes()).sum() == pytest.approx(1, abs=1e-12)
    assert np.isfinite(law.logpmf(law.outcomes())).all()
    assert law.logpmf(len(scores)) == law.logpmf(-1) == -math.inf


@pytest.mark.parametrize("count", [49, 500, 20_000])
def test_log_probabilities_of_many_candidates_add_up_to_one(count):
    scores = np.arange(count) % 97
    for variant in VARIANTS:
        law = mechanism(variant, epsilon=Fraction(1, 3)).law(scores)
        assert law.probability(law.outcomes()).sum() == pytest.approx(1, abs=1e-11)
    ties = mechanism().law([1] * count)
    assert ties.logpmf(0) == pytest.approx(-math.log(count), abs=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("slack", [None, 4.0], ids=["floats first", "integers only"])
def test_draws_fit_the_law_and_no_law_a_little_away(variant, slack):
    tested = mechanism(variant)
    size = 1_000_000 if slack is None else 3_000
    with patch.object(selection, "_SLACK", selection._SLACK if slack is None else slack):
        seen = np.bincount(tested.law(SPEC_SCORES).sample(SeededBits(11), size), minlength=len(SPEC_SCORES))

    def p_value(epsilon: float) -> float:
        law = mechanism(variant, epsilon=epsilon).law(SPEC_SCORES)
        expected = law.probability(law.outcomes()) * size
        return float(chi2.sf(((seen - expected) ** 2 / expected).sum(), len(expected) - 1))

    assert p_value(1) > FALSE_ALARM
    if slack is None:
        assert p_value(1 + DETECTABLE) < FALSE_ALARM
        assert p_value(1 - DETECTABLE) < FALSE_ALARM


@pytest.mark.parametrize("variant", VARIANTS)
def test_floats_decide_as_integers_do(variant):
    law = mechanism(variant).law([0, 3, 5, 5, 9, 1000])
    fast = law.sample(SeededBits(5), 500)
    with patch.object(selection, "_SLACK", 4.0):
        assert (law.sample(SeededBits(5), 500) == fast).all()


def test_draws_are_split_into_passes_without_a_trace():
    law = mechanism().law([0, 1, 2])
    with patch.object(selection, "_CELLS", 30):
        assert len(law.sample(SeededBits(1), 25)) == 25
    assert law.sample(SeededBits(1), 0).tolist() == []
    assert isinstance(law.sample(SeededBits(1)), int)


@given(st.integers(0, 60), st.fractions(Fraction(1, 10**6), 512), st.integers(0, 200))
def test_bounds_of_a_power_hold_the_exact_power(steps, rate, precision):
    x, y = base(rate)
    low, high = power_coin(rate, steps)(precision)
    power = Fraction(x, 2**y) ** steps * 2**precision
    assert low <= power <= high <= low + 2


@given(st.fractions(Fraction(1, 10**9), 512))
def test_a_base_is_never_below_the_exponential_and_hardly_above(rate):
    x, y = base(rate)
    assert exp_floor(rate, y) < x < 2**y
    # One unit of the last place is this much of the base.
    assert Fraction(2, x - 2 if x > 2 else 1) <= rate / 2**100


def test_a_power_coin_counts_as_often_as_its_power():
    bits, rate = SeededBits(3), Fraction(1, 5)
    heads = sum(Uniform(bits).below(power_coin(rate, 4)) for _ in range(4_000))
    assert heads / 4_000 == pytest.approx(math.exp(-0.8), abs=0.05)


@pytest.mark.parametrize("variant", VARIANTS)
@given(scores=st.lists(st.integers(-20, 20), min_size=1, max_size=6), shift=st.integers(-(10**30), 10**30))
def test_only_differences_of_scores_count(variant, scores, shift):
    law, moved = (mechanism(variant).law([s + by for s in scores]) for by in (0, shift))
    assert (law.logpmf(law.outcomes()) == moved.logpmf(law.outcomes())).all()


@pytest.mark.parametrize("variant", ["flip", "exponential"])
def test_floats_count_with_their_exact_values(variant):
    law = mechanism(variant).law([0.1, 0.3, 1e-300])
    exact = mechanism(variant).law([Fraction(0.1), Fraction(0.3), Fraction(1e-300)])
    assert law.gaps == exact.gaps
    assert law.gaps[0] != Fraction(1, 5)
    singles = mechanism(variant).law(np.array([0.1, 0.3, 0], dtype=np.float32))
    assert singles.gaps[1] == 0


@pytest.mark.parametrize(
    "scores",
    [
        [1e308, -1e308],
        [5e-324, 0.0],
        [10**5000, 0],
        [Fraction(1, 3**4000), 0],
        np.array([2**63 - 1, -(2**63)]),
    ],
)
@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1, 1), (2**-1000, 1), (1, 2**-1000), (10**300, 1)])
def test_no_size_of_score_raises(scores, epsilon, sensitivity):
    for variant in ("flip", "exponential"):
        law = mechanism(variant, epsilon=epsilon, sensitivity=Fraction(sensitivity)).law(scores)
        assert law.sample(SeededBits(2)) in (0, 1)
        with patch.object(selection, "_SLACK", 4.0):
            assert law.sample(SeededBits(2)) in (0, 1)
        assert not np.isnan(law.logpmf(law.outcomes())).any()
        assert not math.isnan(law.expected_loss)


@pytest.mark.parametrize("epsilon", [2**-1000, 1, 10**300])
def test_rational_weights_take_integers_of_any_size(epsilon):
    law = mechanism("base2", epsilon=epsilon).law([10**5000, 0, 10**5000 - 1])
    with patch.object(selection, "_SLACK", 4.0):
        assert law.sample(SeededBits(2)) in (0, 1, 2)


# --- accuracy ----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [Fraction(1, 4), 1, 4])
def test_permute_and_flip_never_loses_more_on_average(epsilon):
    best = 1.0
    for scores in itertools.product(range(6), repeat=4):
        flip, plain = (mechanism(kind, epsilon=epsilon).law(scores).expected_loss for kind in VARIANTS[:2])
        assert flip <= plain * (1 + 1e-12)
        best = min(best, flip / plain if plain else 1)
    print(f"epsilon={epsilon}: permute-and-flip loses down to {best:.3f} of the exponential mechanism")
    assert best < 0.95


def beyond(law: Selection, radius: float) -> float:
    """The exact probability of a loss above the radius."""
    far = np.array([float(gap) > radius for gap in law.gaps])
    return float(law.probability(law.outcomes())[far].sum())


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("confidence", [0.3, 0.5, 0.9, 0.95, 0.999])
def test_losses_stay_within_the_radius_and_nearly_reach_it(variant, confidence, monotone):
    # Finer scores than the radius, so that the worst place can be found.
    unit = 1000
    tested = mechanism(variant, sensitivity=unit, monotone=monotone)
    for count in (2, 5, 50):
        radius = tested.radius(count, confidence)
        assert radius <= tested.sensitivity * 2 * math.log(count / (1 - confidence)) * (1 + 1e-9)
        worst = tested.law([0] + [-math.floor(radius) - 1] * (count - 1))
        assert beyond(worst, radius) <= 1 - confidence
        if radius and confidence >= 0.9:
            assert beyond(worst, radius) >= (1 - confidence) * (0.9 if variant == "flip" else 0.99)


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=12), st.sampled_from(VARIANTS), st.floats(0.01, 0.99)
)
def test_losses_of_any_scores_stay_within_the_radius(scores, variant, confidence):
    tested = mechanism(variant)
    assert beyond(tested.law(scores), tested.radius(len(scores), confidence)) <= 1 - confidence + 1e-12


def test_one_candidate_is_chosen_without_loss():
    for variant in VARIANTS:
        assert mechanism(variant).radius(1, 0.95) == 0
        assert mechanism(variant).law([5]).sample(SeededBits(0)) == 0


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scores",
    [
        [], "12", 5, None, [True], ["1"], [1 + 2j], [math.nan], [math.inf, 1], np.array([np.nan]),
        np.array([[1]]), np.array([True]), np.array([1], dtype=np.longdouble), {1, 2}, [None],
    ],
)  # fmt: skip
def test_scores_that_are_no_finite_numbers_are_refused_without_a_value(scores):
    with pytest.raises(InvalidParameter, match=r"^scores must be") as refused:
        mechanism().law(scores)
    assert "nan" not in str(refused.value)


def test_rational_weights_need_integers():
    for scores in ([1.0, 2.0], [Fraction(1)], np.array([1.0])):
        with pytest.raises(InvalidParameter, match="integers for 'base2'"):
            mechanism("base2").law(scores)


@pytest.mark.parametrize(
    "changed",
    [
        {"sensitivity": 0}, {"sensitivity": -1}, {"epsilon": 0}, {"epsilon": math.nan}, {"epsilon": "1"},
        {"monotone": 1}, {"variant": "gumbel"}, {"variant": None},
    ],
)  # fmt: skip
def test_parameters_are_checked(changed):
    given_ = {"sensitivity": 1, "epsilon": 1} | changed
    for make in (ExponentialMechanism, lambda **kept: TopMechanism(picks=2, **kept)):
        with pytest.raises(InvalidParameter, match=next(iter(changed))):
            make(**given_)


def test_rates_confidences_and_numbers_of_best_ones_are_checked():
    for best in (0, 6, 1.0):
        with pytest.raises(InvalidParameter, match="best"):
            mechanism().radius(5, 0.9, best=best)
    with pytest.raises(InvalidParameter, match="rate"):
        base(Fraction(513))
    with pytest.raises(InvalidParameter, match="confidence"):
        mechanism().radius(5, 1.0)


def test_descriptions_name_the_mechanism():
    assert mechanism().described() == "permute-and-flip with a fall of 0.5 a unit of score"
    assert mechanism("base2", monotone=True).described().startswith("exponential mechanism with a fall of 1 ")
    assert mechanism(epsilon=10**400).described()
