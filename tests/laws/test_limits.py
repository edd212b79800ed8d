"""The limits of parameters of laws, the shapes and types of draws, and tails at the far ends."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from tests.laws.scripted import ScriptedBits

from sfumato.errors import InvalidParameter
from sfumato.laws import (
    BoundedNoise,
    Choice,
    Clamped,
    DiscreteGaussian,
    DiscreteLaplace,
    Geometric,
    Point,
    SeededBits,
    Shifted,
    TruncatedLaplace,
)
from sfumato.laws.bounded import MAX_BOUND
from sfumato.laws.choice import weight_table
from sfumato.laws.crossing import LARGEST_VALUE, FirstCrossing
from sfumato.laws.grades import MAX_PARTS, Grades
from sfumato.laws.law import MAX_SCALE, as_floats, log_cdf, log_sf, nearest_float, smallest_radius
from sfumato.laws.selection import STEEPEST, Peeled, Selection, base
from sfumato.laws.truncated import MOST_POINTS, WIDEST
from sfumato.laws.weights import RunWeights

one, two = Fraction(1), Fraction(2)
flip = Selection((3, 5, 5, 1), one, "flip")

# What takes a value between two limits, the name of the parameter, and the limits, both included.
WHOLE = [
    (lambda v: SeededBits(v), "seed", 0, 2**128 - 1),
    (lambda v: BoundedNoise(v, 2), "bound", 1, MAX_BOUND),
    (lambda v: Clamped(Geometric(one), v, None), "lower", -(2**1000), 2**1000),
    (lambda v: Clamped(Geometric(one), None, v), "upper", -(2**1000), 2**1000),
    (lambda v: FirstCrossing([1], v, Geometric(one), Geometric(one)), "threshold", -(2**60), 2**60),
    (lambda v: Grades(one, v), "parts", 1, MAX_PARTS),
    (lambda v: Grades(one, 3, v), "bits", 62, 400),
    (lambda v: Peeled(flip, v), "picks", 1, 4),
    (lambda v: TruncatedLaplace(v, one, v, max(v, 0) if type(v) is int else 0), "low", -(2**50), 2**50),
    (lambda v: TruncatedLaplace(Fraction(-5), one, -5, v), "high", -5, MOST_POINTS - 5),
    (lambda v: weight_table(one, v), "steps", 0, 2**32),
]
every_whole = pytest.mark.parametrize(("make", "name", "least", "most"), WHOLE, ids=[w[1] for w in WHOLE])


@every_whole
def test_whole_parameters_are_taken_from_the_least_to_the_most_and_no_further(make, name, least, most):
    for inside in (least, most):
        made = make(inside)
        kept = getattr(made, name) if name in getattr(made, "__dataclass_fields__", ()) else inside
        assert kept == inside
        assert type(kept) is int
    for outside in (least - 1, most + 1, True, 1.0, None if name not in ("lower", "upper", "steps") else "1"):
        with pytest.raises(InvalidParameter, match=rf"^{name} must be "):
            make(outside)


SCALES = [
    (DiscreteLaplace, "scale", MAX_SCALE),
    (Geometric, "scale", MAX_SCALE),
    (DiscreteGaussian, "sigma_squared", MAX_SCALE**2),
    (lambda v: TruncatedLaplace(two, v, 0, 4), "scale", Fraction(WIDEST)),
]


@pytest.mark.parametrize(("make", "name", "most"), SCALES, ids=["laplace", "geometric", "gaussian", "cut"])
def test_scales_are_positive_numbers_up_to_the_most_and_no_further(make, name, most):
    assert getattr(make(most), name) == most
    assert getattr(make(0.1), name) == Fraction(1, 10)
    for outside in (0, -1, most + Fraction(1, 10**6), float("nan"), True, "1"):
        with pytest.raises(InvalidParameter, match=rf"^{name} must be .*, got {name}=(?!None)"):
            make(outside)


def test_the_limits_are_the_numbers_that_are_documented():
    assert (MAX_BOUND, MAX_PARTS, MAX_SCALE) == (2**22, 100_000, 2**52)
    assert (MOST_POINTS, WIDEST, STEEPEST, LARGEST_VALUE) == (2**50, 2**1000, 512, 2**60)


@pytest.mark.parametrize("center", [Fraction(0), Fraction(5, 2), Fraction(7), Fraction(20)], ids=str)
@pytest.mark.parametrize("flat", [0, 3])
@pytest.mark.parametrize("confidence", [0.05, 0.3, 0.5, 0.9, 0.999])
def test_the_radius_of_a_truncated_law_is_the_smallest_that_covers(center, flat, confidence):
    law = TruncatedLaplace(center, Fraction(3), 0, 20, flat)
    points = np.array(law.outcomes())
    away, chances = np.abs(points - round(center)), np.exp(law.logpmf(points))
    radius = law.radius(confidence)
    assert chances[away <= radius].sum() >= confidence
    assert radius == 0 or chances[away < radius].sum() < confidence


def test_a_center_lies_between_the_ends_and_a_flat_part_may_have_no_width():
    for center in (0, 4):
        assert TruncatedLaplace(center, one, 0, 4, 0).center == center
    for center in (Fraction(-1, 8), 4 + Fraction(1, 8)):
        with pytest.raises(
            InvalidParameter, match=rf"^center must be in \[0, 4\], got center={float(center)}$"
        ):
            TruncatedLaplace(center, one, 0, 4)
    with pytest.raises(InvalidParameter, match=r"^flat must not be negative, got flat=-0\.125$"):
        TruncatedLaplace(two, one, 0, 4, Fraction(-1, 8))
    # Numbers are read as their decimals, and kept as they were read.
    read = TruncatedLaplace(0.1, 0.2, 0, 4, 0.3)
    assert (read.center, read.scale, read.flat) == (Fraction(1, 10), Fraction(1, 5), Fraction(3, 10))
    with pytest.raises(InvalidParameter, match=r"^center must be a number"):
        TruncatedLaplace("2", one, 0, 4)
    with pytest.raises(InvalidParameter, match=r"^flat must be a number"):
        TruncatedLaplace(two, one, 0, 4, "2")


def test_a_base_is_known_up_to_the_steepest_rate():
    x, y = base(STEEPEST)
    assert 0 < x < 1 << y
    with pytest.raises(InvalidParameter, match=r"^rate must be at most 512, got rate=513"):
        base(Fraction(513))


def test_values_that_are_compared_go_up_to_two_to_the_sixty():
    noise = Geometric(one)
    ends = FirstCrossing(np.array([-LARGEST_VALUE, LARGEST_VALUE]), 0, noise, noise)
    assert ends.values.tolist() == [-LARGEST_VALUE, LARGEST_VALUE]
    for outside in (-LARGEST_VALUE - 1, LARGEST_VALUE + 1):
        with pytest.raises(InvalidParameter, match=r"^values must be in \[-2\^60, 2\^60\]"):
            FirstCrossing(np.array([0, outside]), 0, noise, noise)
    for bad in (np.array([[1]]), np.array([1.0]), np.array([True]), 3):
        with pytest.raises(InvalidParameter, match=r"^values must be a row of integers"):
            FirstCrossing(bad, 0, noise, noise)


# --- draws ---------------------------------------------------------------------------------------

SCALARS = {
    "laplace": DiscreteLaplace(two),
    "geometric": Geometric(two),
    "gaussian": DiscreteGaussian(two),
    "bounded": BoundedNoise(9, 2),
    "truncated": TruncatedLaplace(two, one, 0, 4),
    "clamped": Clamped(DiscreteLaplace(two), -1, 3),
    "clamped below": Clamped(DiscreteLaplace(two), -1, None),
    "not clamped": Clamped(DiscreteLaplace(two), None, None),
    "shifted": Shifted(DiscreteLaplace(two), 5),
    "choice": Choice([1, 2, 1]),
    "choice by floats": Choice([0.5, 2.0, 1.0]),
    "choice of runs": Choice.of_runs([2, 0, 3], [1, 2, 0], [4, 1]),
    "crossing": FirstCrossing(np.array([0, 3]), 1, Geometric(one), Geometric(one)),
    "flip": flip,
    "exponential": Selection((3, 5, 5, 1), one, "exponential"),
    "base2": Selection((3, 5, 5, 1), one, "base2"),
}
every_scalar = pytest.mark.parametrize("law", SCALARS.values(), ids=SCALARS)


@every_scalar
@pytest.mark.parametrize("size", [0, 1, 2, 100])
def test_draws_of_a_size_are_rows_of_integers_and_one_draw_is_an_integer(law, size):
    drawn = law.sample(SeededBits(1), size)
    assert drawn.shape == (size,)
    assert drawn.dtype == np.int64
    assert np.isfinite(law.logpmf(drawn)).all()
    assert type(law.sample(SeededBits(1))) is int


def test_no_draws_take_no_bits():
    for law in SCALARS.values():
        assert len(law.sample(ScriptedBits([]), 0)) == 0
    peeled = Peeled(flip, 2).sample(ScriptedBits([]), 0)
    assert peeled.shape == (0, 2)
    assert peeled.dtype == np.int64


@pytest.mark.parametrize(
    "law", [SCALARS["truncated"], flip, SCALARS["exponential"]], ids=["cut", "flip", "exp"]
)
def test_sizes_of_draws_go_up_to_two_to_the_forty(law):
    # No script is that long; that more is asked for means that the size was accepted.
    with pytest.raises(AssertionError, match="the script is too short"):
        law.sample(ScriptedBits([]), 2**40)
    for outside in (-1, 2**40 + 1, 1.0, True):
        with pytest.raises(InvalidParameter, match=r"^size must be "):
            law.sample(ScriptedBits([]), outside)


def test_sizes_of_rows_of_picks_have_the_same_limits():
    law = Peeled(flip, 2)
    assert law.sample(SeededBits(1), 100).shape == (100, 2)
    assert law.sample(SeededBits(1), 1).shape == (1, 2)
    assert type(law.sample(SeededBits(1))) is tuple
    for outside in (-1, 2**40 + 1, 1.0, True):
        with pytest.raises(InvalidParameter, match=r"^size must be "):
            law.sample(ScriptedBits([]), outside)


@pytest.mark.parametrize(
    ("lower", "upper"), [(-(2**70), 2**70), (0, 2**63), (-(2**63) - 1, 0), (2**63, 2**64)]
)
def test_ends_beyond_int64_give_exact_python_integers(lower, upper):
    law = Clamped(Shifted(DiscreteLaplace(two), 0), lower, upper)
    drawn = law.sample(SeededBits(2), 20)
    assert drawn.dtype == object
    assert all(type(value) is int and lower <= value <= upper for value in drawn)
    plain = DiscreteLaplace(two).sample(SeededBits(2), 20)
    assert drawn.tolist() == [min(max(int(value), lower), upper) for value in plain]


def test_ends_of_int64_itself_keep_int64():
    law = Clamped(DiscreteLaplace(two), -(2**63), 2**63 - 1)
    drawn = law.sample(SeededBits(2), 20)
    assert drawn.dtype == np.int64
    assert drawn.tolist() == DiscreteLaplace(two).sample(SeededBits(2), 20).tolist()


# --- probabilities -------------------------------------------------------------------------------


@every_scalar
def test_one_outcome_gives_a_float_and_a_table_of_outcomes_a_table(law):
    questions = [law.logpmf] if isinstance(law, Selection) else [law.logpmf, law.cdf, law.sf]
    outcomes = np.array([[0, 1], [2, 3]])
    for question in questions:
        assert type(question(1)) is float
        answers = question(outcomes)
        assert answers.shape == (2, 2)
        assert answers.dtype == np.float64
        assert question(np.zeros(0, dtype=np.int64)).shape == (0,)
        for bad in (0.5, "1", True, np.array([1.0])):
            with pytest.raises(InvalidParameter, match=r"^outcome must be an integer"):
                question(bad)
        np.testing.assert_array_equal(answers.ravel(), [question(k) for k in range(4)])


@every_scalar
def test_the_distribution_function_adds_up_to_one_from_both_ends(law):
    if isinstance(law, Selection):
        return
    points = np.arange(-40, 41)
    chances = np.exp(law.logpmf(points))
    np.testing.assert_allclose(law.cdf(points) + law.sf(points), 1, atol=1e-14)
    np.testing.assert_allclose(np.diff(law.cdf(points)), chances[1:], atol=1e-14)
    np.testing.assert_allclose(-np.diff(law.sf(points)), chances[1:], atol=1e-14)
    for far in (10**30, 10**400):
        assert (law.cdf(-far), law.sf(-far), law.cdf(far), law.sf(far)) == (0, 1, 1, 0)
        assert law.logpmf(far) == -np.inf or law.logpmf(far) < -1e10


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(7), Fraction(2**40)], ids=str)
@pytest.mark.parametrize("depth", [1, 30, 300, 690])
def test_tails_far_out_have_their_exact_digits(scale, depth):
    k = int(depth * scale)
    with mpmath.workdps(50):
        rate = mpmath.mpf(scale.denominator) / scale.numerator
        fall = mpmath.exp(-rate * (k + 1))
        two_sided = fall / (1 + mpmath.exp(-rate))
        for law, exact in ((Geometric(scale), fall), (DiscreteLaplace(scale), two_sided)):
            assert abs(law.sf(k) - exact) <= 1e-12 * exact
            assert abs(log_sf(law, k) - mpmath.log(exact)) <= 1e-12 * max(1, depth)
        law = DiscreteLaplace(scale)
        assert law.cdf(-k - 1) == law.sf(k)
        assert log_cdf(law, -k - 1) == log_sf(law, k)


def test_logarithms_of_tails_are_floats_for_one_outcome_and_do_not_warn_at_zero():
    law = Choice([1, 2, 1])
    assert type(log_cdf(law, 1)) is type(log_sf(law, 1)) is float
    assert log_cdf(law, 1) == pytest.approx(np.log(0.75))
    assert log_sf(law, 0) == pytest.approx(np.log(0.75))
    assert log_cdf(law, -1) == log_sf(law, 2) == -np.inf
    assert log_sf(law, np.array([0, 2])).tolist() == [pytest.approx(np.log(0.75)), -np.inf]


def test_the_smallest_radius_is_found_exactly_and_zero_is_one():
    for wanted in range(40):
        steps = []

        def beyond(t, wanted=wanted, steps=steps):
            steps.append(t)
            return 0.05 if t >= wanted else 0.2

        assert smallest_radius(beyond, 0.9) == wanted
        assert min(steps) == 0
    # The limit counts as covered, but what is above it by a rounding does not.
    limit = 0.5 * (1 - 1e-11)
    assert smallest_radius(lambda t: limit, 0.5) == 0
    assert smallest_radius(lambda t: limit if t else 0.5, 0.5) == 1
    assert smallest_radius(lambda t: limit if t > 4 else 0.5, 0.5) == 5


@every_scalar
def test_confidences_are_inside_zero_and_one(law):
    if isinstance(law, Selection):
        return
    assert law.radius(1e-9) >= 0
    assert law.radius(0.99) >= law.radius(0.5) >= law.radius(0.01)
    for outside in (0, 1, -0.1, 1.1, float("nan"), True, None):
        with pytest.raises(InvalidParameter, match=r"^confidence must be "):
            law.radius(outside)


def test_floats_stay_inside_what_products_with_zero_can_bear():
    assert nearest_float(Fraction(1, 3)) == 1 / 3
    assert nearest_float(Fraction(10**299)) == 1e299
    assert nearest_float(Fraction(10**300)) == nearest_float(Fraction(10**400)) == 1e300
    assert as_floats([2**2000, -(2**2000), 3]).tolist() == [np.inf, -np.inf, 3]
    assert as_floats([[2**70]]).shape == (1, 1)
    assert as_floats([]).dtype == np.float64
    assert as_floats(np.array([2**63], dtype=np.uint64)).tolist() == [2.0**63]


def test_a_point_is_all_of_its_law():
    law = Point(3)
    assert law.logpmf(3) == 0
    assert law.logpmf(2) == law.logpmf(4) == -np.inf
    assert (law.cdf(2), law.cdf(3), law.sf(2), law.sf(3)) == (0, 1, 1, 0)


# --- runs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lengths", [[1], [1, 1], [2, 1], [1, 2], [5, 0, 1], [0, 3, 0], [2, 3, 4]])
def test_masses_before_and_from_every_index_are_sums_of_probabilities(lengths):
    table = [8, 3, 1]
    law = Choice.of_runs(lengths, list(range(len(lengths))), table)
    weights = [table[level] for level, length in enumerate(lengths) for _ in range(length)]
    total = sum(weights)
    assert law.points == len(weights)
    assert [law.probability(i) for i in range(-1, len(weights) + 1)] == [
        0,
        *(Fraction(weight, total) for weight in weights),
        0,
    ]
    for i in range(-2, len(weights) + 2):
        below = sum(weights[: max(i + 1, 0)])
        assert law.cdf(i) == pytest.approx(below / total, rel=1e-14)
        assert law.sf(i) == pytest.approx(1 - below / total, rel=1e-14, abs=1e-16)


@pytest.mark.parametrize("name", ["lengths", "levels"])
@pytest.mark.parametrize("bad", [[], [-1], [0.5], [[1]], "1"])
def test_runs_that_are_no_rows_of_counts_are_refused_by_name(name, bad):
    given = {"lengths": [1], "levels": [0], name: bad}
    with pytest.raises(InvalidParameter, match=rf"^{name} must be a sequence of non-negative numbers"):
        Choice.of_runs(**given, table=[1])


def test_runs_add_up_to_less_than_two_to_the_sixty_two():
    # The sum is taken in floats, so that it may not come within a rounding of the limit.
    nearly = 2**62 - 2**10
    assert Choice.of_runs([nearly], [nearly], [1]).points == nearly
    for lengths, levels in (([2**61, 2**61], [0, 0]), ([1, 1], [0, 2**62])):
        with pytest.raises(InvalidParameter, match=r"^lengths and levels must add up to less than 2\^62"):
            RunWeights(np.array(lengths), np.array(levels), [1])
    with pytest.raises(InvalidParameter, match=r"^lengths and levels must be equally long"):
        RunWeights(np.array([1]), np.array([0, 0]), [1])
