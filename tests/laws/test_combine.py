import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws.fit import fit
from tests.laws.scripted import ScriptedBits

from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws import (
    Choice,
    Clamped,
    DiscreteGaussian,
    DiscreteLaplace,
    Geometric,
    Joint,
    Law,
    Point,
    SeededBits,
    Shifted,
)

NOISE = DiscreteLaplace(Fraction(3))


@given(st.integers(-(10**40), 10**40), st.integers(-100, 100))
def test_shifting_is_exact_for_integers_of_any_size(center, k):
    law = Shifted(NOISE, center)
    assert law.logpmf(center + k) == NOISE.logpmf(k)
    assert law.cdf(center + k) == NOISE.cdf(k)
    assert law.sf(center + k) == NOISE.sf(k)
    assert law.logcdf(center + k) == NOISE.logcdf(k)
    assert law.logsf(center + k) == NOISE.logsf(k)
    one = law.sample(SeededBits(3))
    assert type(one) is int
    assert one - center == NOISE.sample(SeededBits(3))
    many = law.sample(SeededBits(3), 10)
    assert [int(x) - center for x in many] == NOISE.sample(SeededBits(3), 10).tolist()
    assert law.logpmf(many).tolist() == NOISE.logpmf(NOISE.sample(SeededBits(3), 10)).tolist()
    assert many.dtype == (np.int64 if abs(center) < 2**62 else object)
    assert law.radius(0.9) == NOISE.radius(0.9)
    assert law.variance == NOISE.variance
    assert math.isclose(law.mean, center)


@pytest.mark.parametrize(
    "edge", [2**62 - 1, 2**62, 2**63 - 1, 2**63, 2**64, -(2**62), -(2**63), -(2**63) - 1]
)
def test_shifting_never_wraps_at_the_edges_of_machine_integers(edge):
    for law in (Shifted(NOISE, edge), Shifted(NOISE, np.array([edge, 0], dtype=object))):
        drawn = law.sample(SeededBits(1), 50)
        values = drawn if drawn.ndim == 1 else drawn[:, 0]
        assert all(abs(int(value) - edge) < 500 for value in values)
        assert np.isfinite(law.logpmf(drawn)).all()


def test_a_vector_center_gets_independent_noise_on_each_coordinate():
    center = np.array([10, -20, 3000], dtype=np.int64)
    law = Shifted(NOISE, center)
    noise = NOISE.sample(SeededBits(5), 3)
    drawn = law.sample(SeededBits(5))
    assert drawn.dtype == np.int64
    assert (drawn - center).tolist() == noise.tolist()
    assert math.isclose(law.logpmf(drawn), sum(NOISE.logpmf(noise)))
    assert isinstance(law.logpmf(drawn), float)
    assert law.cdf(drawn).tolist() == NOISE.cdf(noise).tolist()
    assert law.sf(drawn).tolist() == NOISE.sf(noise).tolist()
    assert law.mean.tolist() == [10, -20, 3000]
    assert law.variance.tolist() == [NOISE.variance] * 3
    batch = law.sample(SeededBits(5), 40_000)
    assert batch.shape == (40_000, 3)
    assert law.logpmf(batch).shape == (40_000,)
    for coordinate in range(3):
        draws = batch[:, coordinate] - center[coordinate]
        assert not fit(draws, lambda factor: DiscreteLaplace(Fraction(3 * factor))).rejected
    assert abs(np.corrcoef(batch.T) - np.eye(3)).max() < 6.1 / 200


def test_a_vector_center_is_copied_and_locked():
    center = np.array([1, 2])
    law = Shifted(NOISE, center)
    center[0] = 100
    assert law.center.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        law.center[0] = 5


def test_an_empty_vector_is_a_center_too():
    law = Shifted(NOISE, np.array([], dtype=np.int64))
    assert law.sample(ScriptedBits([])).shape == (0,)
    assert law.logpmf(np.array([], dtype=np.int64)) == 0


def test_centers_that_are_no_integers_are_refused_without_being_shown():
    for bad in (1.5, True, None, "77777", [1.5, 77777.25], [[77777]], np.array(["77777"])):
        with pytest.raises(InvalidParameter) as error:
            Shifted(NOISE, bad)
        assert "77777" not in str(error.value)


def test_outcomes_of_a_shifted_law_must_be_integers():
    for law in (Shifted(NOISE, 5), Shifted(NOISE, [5, 6])):
        for bad in (0.5, [0.5, 1.5], True):
            with pytest.raises(InvalidParameter):
                law.logpmf(bad)


CLAMPED = [
    Clamped(Shifted(NOISE, 4), 0, 10),
    Clamped(Shifted(NOISE, -30), 0, 10),
    Clamped(Shifted(NOISE, 40), 0, 10),
    Clamped(Shifted(NOISE, 4), 0, None),
    Clamped(Shifted(NOISE, 4), None, 7),
    Clamped(Shifted(NOISE, 4), None, None),
    Clamped(Shifted(NOISE, 4), 5, 5),
    Clamped(DiscreteGaussian(Fraction(20)), -3, 8),
    Clamped(Geometric(Fraction(5)), 2, 9),
    Clamped(Choice([1, 2, 3, 4]), 1, 2),
    Clamped(Choice([3, *[0] * 50, 4]), 1, 60),
]


def label(law: Clamped) -> str:
    return f"{type(law.law).__name__}-{law.lower}-{law.upper}"


@pytest.mark.parametrize("law", CLAMPED, ids=label)
def test_clamping_moves_the_tails_to_the_ends(law):
    k = np.arange(-400, 500)
    inner = np.exp(law.law.logpmf(k))
    moved = np.clip(k, law.lower, law.upper) if (law.lower, law.upper) != (None, None) else k
    exact = np.array([math.fsum(inner[moved == value]) for value in k])
    pmf = np.exp(law.logpmf(k))
    assert np.allclose(pmf, exact, rtol=1e-11, atol=1e-300)
    assert math.isclose(math.fsum(pmf), 1, rel_tol=1e-12)
    assert np.allclose(law.cdf(k), np.cumsum(exact), rtol=1e-11)
    assert np.allclose(law.sf(k), np.cumsum(exact[::-1])[::-1] - exact, rtol=1e-9, atol=1e-14)
    mean = float((exact * k).sum())
    assert math.isclose(law.mean, mean, rel_tol=1e-9, abs_tol=1e-9)
    assert math.isclose(law.variance, float((exact * (k - mean) ** 2).sum()), rel_tol=1e-8, abs_tol=1e-9)
    radius = law.radius(0.9)
    median = int(k[np.searchsorted(np.cumsum(exact), 0.5)])
    assert exact[np.abs(k - median) <= radius].sum() >= 0.9 - 1e-9
    assert radius == 0 or exact[np.abs(k - median) < radius].sum() < 0.9
    drawn = law.sample(SeededBits(2), 2000)
    assert drawn.tolist() == np.clip(law.law.sample(SeededBits(2), 2000), drawn.min(), drawn.max()).tolist()
    assert np.isfinite(law.logpmf(drawn)).all()
    single = law.sample(SeededBits(2))
    assert isinstance(single, int)
    assert math.isfinite(law.logpmf(single))
    assert isinstance(law, Law)


def test_the_ends_keep_their_logs_far_below_the_range_of_floats():
    for noise in (NOISE, DiscreteGaussian(Fraction(9)), Geometric(Fraction(3))):
        center = -5000
        law = Clamped(Shifted(noise, center), None, 0)
        assert math.isclose(law.logpmf(0), noise.logsf(4999), rel_tol=1e-12)
        assert -math.inf < law.logpmf(0) < -1500
    assert Clamped(Shifted(NOISE, 5000), 0, None).logpmf(0) == NOISE.logcdf(-5000)


@pytest.mark.parametrize("scale", [10**4, 2**30, 2**45])
def test_moments_of_wide_clamped_laws_agree_with_integrals(scale):
    # Noise centred at the lower end: max(X, 0) has mean r/((1+r)(1-r)) and second moment half the variance.
    law = Clamped(DiscreteLaplace(Fraction(scale)), 0, None)
    r = math.exp(-1 / scale)
    mean = r / ((1 + r) * -math.expm1(-1 / scale))
    assert math.isclose(law.mean, mean, rel_tol=1e-8)
    assert math.isclose(law.variance, law.law.variance / 2 - mean**2, rel_tol=1e-7)
    # Clamped on both sides at one scale: E max(0, min(X, b)) of the continuous law is (1 - 1/e) b / 2.
    both = Clamped(DiscreteLaplace(Fraction(scale)), 0, scale)
    assert math.isclose(both.mean, (1 - math.exp(-1)) * scale / 2, rel_tol=3 / scale)


def test_clamping_works_on_integers_of_any_size():
    law = Clamped(Shifted(NOISE, 10**30), 10**30 - 2, 10**30 + 2)
    drawn = law.sample(SeededBits(1), 100)
    assert drawn.dtype == object
    assert {int(x) - 10**30 for x in drawn} == {-2, -1, 0, 1, 2}
    assert abs(law.sample(SeededBits(1)) - 10**30) <= 2
    assert math.isclose(law.mean, 1e30)
    assert 0 < law.variance < 4
    assert (
        Clamped(NOISE, -(10**30), 10**30).sample(SeededBits(1), 5).tolist()
        == NOISE.sample(SeededBits(1), 5).tolist()
    )


def test_clamping_limits_must_be_in_order():
    with pytest.raises(InvalidParameter, match="lower must be at most upper"):
        Clamped(NOISE, 3, 2)


def test_joint_parts_are_independent_and_drawn_in_order():
    law = Joint((Shifted(NOISE, 5), Point(7), Choice([1, 3])))
    bits = SeededBits(4)
    expected = (Shifted(NOISE, 5).sample(bits), 7, Choice([1, 3]).sample(bits))
    drawn = law.sample(SeededBits(4))
    assert drawn == expected
    assert math.isclose(law.logpmf(drawn), NOISE.logpmf(drawn[0] - 5) + Choice([1, 3]).logpmf(drawn[2]))
    assert law.logpmf((5, 8, 0)) == -math.inf
    assert math.isclose(law.cdf((5, 7, 0)), NOISE.cdf(0) / 4)
    assert math.isclose(law.sf((5, 6, 0)), NOISE.sf(0) * 3 / 4)
    assert law.mean == (5.0, 7.0, 0.75)
    assert law.variance == (NOISE.variance, 0.0, 0.1875)
    many = law.sample(SeededBits(4), 100)
    assert [len(part) for part in many] == [100, 100, 100]
    assert law.logpmf(many).shape == (100,)
    with pytest.raises(NotSupported, match="parts"):
        law.radius(0.9)
    for method in (law.logpmf, law.cdf, law.sf):
        with pytest.raises(InvalidParameter, match="3 parts"):
            method((1, 2))
    assert Joint(()).sample(ScriptedBits([])) == ()
    assert isinstance(law, Law)


@pytest.mark.parametrize("value", [0, -3, 10**30])
def test_a_point_is_always_its_value_and_draws_nothing(value):
    law = Point(value)
    assert law.sample(ScriptedBits([])) == value
    assert law.sample(ScriptedBits([]), 4).tolist() == [value] * 4
    assert law.logpmf(value) == 0
    assert law.logpmf(value + 1) == -math.inf
    assert law.logpmf(np.array([value, value - 1])).tolist() == [0, -math.inf]
    assert (law.cdf(value - 1), law.cdf(value), law.cdf(value + 1)) == (0, 1, 1)
    assert (law.sf(value - 1), law.sf(value), law.sf(value + 1)) == (1, 0, 0)
    assert law.mean == float(value)
    assert law.variance == 0
    assert law.radius(0.99) == 0
