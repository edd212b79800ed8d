"""Clipping: whatever an update holds, the integers are in the ball; that is a sum of Python integers here."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.federated import Clipped, clip, clipping
from sfumato.federated.clipping import STEPS, inside_ball

ANY_FLOAT = st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True)
FINITE = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True)


def square(clipped):
    return sum(int(k) ** 2 for k in clipped.integers)


@given(
    st.lists(st.lists(ANY_FLOAT, max_size=6), max_size=4),
    st.floats(1e-100, 1e100),
    st.sampled_from([np.float64, np.float32, np.float16]),
    st.sampled_from([1, 2, 3, 1000, STEPS, 2**24]),
)
def test_no_update_leaves_the_ball(layers, bound, kind, steps):
    with np.errstate(over="ignore"):
        update = [np.array(layer, dtype=kind) for layer in layers]
    found = clip(update, bound, steps=steps)
    assert square(found) <= steps**2
    finite = all(np.isfinite(layer).all() for layer in update)
    assert found.usable == finite
    assert finite or not found.integers.any()


@given(st.lists(FINITE, min_size=1, max_size=6), st.fractions(Fraction(1, 10**9), 10**9))
def test_the_integers_are_the_exact_clipped_update_to_one_step(values, bound):
    exact = [Fraction(value) for value in values]
    norm_squared = sum((value**2 for value in exact), Fraction(0))
    found = clip([np.array(values)], bound)
    for k, value in zip(found.integers.tolist(), exact, strict=True):
        if norm_squared <= bound**2:
            wanted = value / bound * STEPS
            assert abs(k - wanted) <= 1 + Fraction(1, 2**20)
        else:
            # The exact size is a root: steps |value| / norm, here to the integer below.
            size = Fraction(math.isqrt(math.floor(STEPS**2 * value**2 / norm_squared)))
            assert abs(abs(k) - size) <= 1 + Fraction(1, 2**20)
            assert k == 0 or (k > 0) == (value > 0)


def test_every_small_lattice_point_stays_itself_or_shrinks_into_the_ball():
    # Norms that are exactly the bound are where rounding could go outside: all points of a small lattice.
    for steps in (1, 2, 3, 5, 13):
        for point in itertools.product(range(-steps - 1, steps + 2), repeat=2):
            for bound in (1, 0.1, 3.0, Fraction(1, 3)):
                values = [float(Fraction(k) * Fraction(bound) / steps) for k in point]
                found = clip([np.array(values)], bound, steps=steps)
                assert square(found) <= steps**2
                assert all(abs(int(k)) <= abs(p) for k, p in zip(found.integers, point, strict=True))


def test_many_equal_entries_on_the_sphere_stay_on_it():
    found = clip([np.full(2**20, 1.0)], bound=2**10)
    assert square(found) == STEPS**2
    assert found.norm_fits


@pytest.mark.parametrize("mistake", [0.5, 0.9, 0.999])
def test_the_ball_holds_even_if_the_float_norm_is_too_small(monkeypatch, mistake):
    update = [np.random.default_rng(3).normal(size=10_000)]
    right = clip(update, bound=1)
    norm = clipping.norm
    monkeypatch.setattr(clipping, "norm", lambda vector: norm(vector) * mistake)
    # A shrink of 2^-30 a step would take long for a norm that is half of what it should be.
    monkeypatch.setattr(clipping, "_SHRINK", 0.99)
    assert square(clip(update, bound=1)) <= STEPS**2
    monkeypatch.setattr(clipping, "inside_ball", lambda integers, radius: True)
    assert square(clip(update, bound=1)) > STEPS**2, "without the check in integers it would leak"
    assert square(right) <= STEPS**2


@pytest.mark.parametrize(
    "update",
    [
        [np.array([1.0, np.nan])],
        [np.array([np.inf, 1.0])],
        [np.array([-np.inf, 1.0])],
        [np.array([1.0, 2.0, 3.0])],
        [np.array([[1.0, 2.0]])],
        [np.array([1.0]), np.array([2.0])],
        [],
        [np.array([1 + 2j, 0])],
        [np.array(["a", "b"])],
        [np.array([1.0, None], dtype=object)],
        [np.array([True, False])],
        [[1.0, 2.0]],
        [None],
        "ab",
        7,
        None,
        {"a": np.zeros(2)},
        [np.array([1e400, 0], dtype=np.longdouble) * np.longdouble(10)],
    ],
    ids=str,
)
def test_an_update_that_cannot_be_used_is_that_of_a_client_that_did_not_answer(update):
    found = clip(update, bound=1, shapes=((2,),))
    assert found.integers.tolist() == [0, 0]
    assert (found.usable, found.vote, found.norm_fits) == (False, 0, False)


def test_zero_tiny_and_huge_updates_are_clipped_without_a_warning():
    assert clip([np.zeros(3)], bound=1).integers.tolist() == [0, 0, 0]
    assert clip([np.zeros(3)], bound=1).vote == 1
    assert clip([np.zeros((0, 4)), np.zeros(0)], bound=1).integers.size == 0
    tiny = clip([np.array([5e-324, -5e-324])], bound=1)
    assert tiny.integers.tolist() == [0, 0]
    assert tiny.vote == 1
    at_the_tiny_bound = clip([np.array([3e-100, 4e-100])], bound=1e-100)
    assert at_the_tiny_bound.integers.tolist() == [629145, 838860]
    huge = clip([np.array([3e307, 4e307] * 50)], bound=1)
    assert huge.vote == -1
    assert huge.integers[:2].tolist() == [int(share / math.sqrt(50) * STEPS) for share in (0.6, 0.8)]
    assert square(huge) <= STEPS**2


def test_layers_of_any_real_kind_are_clipped_together_and_left_alone():
    layers = [
        np.array([[3.0]], dtype=np.float32),
        np.float64(0),
        np.zeros((2, 0)),
        np.array([4], dtype=np.int8),
    ]
    before = [np.copy(layer) for layer in layers]
    found = clip(layers, bound=10)
    assert [array.shape for array in found.arrays] == [(1, 1), (), (2, 0), (1,)]
    assert found.integers.tolist() == [3 * STEPS // 10, 0, 4 * STEPS // 10]
    assert all((old == new).all() for old, new in zip(before, layers, strict=True))
    values = found.values(10)
    assert [value.shape for value in values] == [(1, 1), (), (2, 0), (1,)]
    assert abs(values[0][0, 0] - 3) < 10 / STEPS


def test_the_vote_says_whether_the_norm_fitted():
    assert clip([np.array([3.0, 4.0])], bound=5).vote == 1
    assert clip([np.array([3.0, 4.0])], bound=4.9999).vote == -1
    assert clip(None, bound=5).vote == 0


def test_the_check_of_the_ball_is_exact_at_its_edge_and_never_wraps():
    edge = np.full(2**20, 2**10, dtype=np.int64)
    assert inside_ball(edge, STEPS)
    edge[7] += 1
    assert not inside_ball(edge, STEPS)
    assert not inside_ball(np.full(2**10, 2**62, dtype=np.int64), STEPS)
    assert not inside_ball(np.array([-(2**63)], dtype=np.int64), STEPS)
    assert not inside_ball(np.array([0.5]), STEPS)
    assert inside_ball(np.full(4, 2**23, dtype=np.int64), 2**24)
    assert not inside_ball(np.full(4, 2**23 + 1, dtype=np.int64), 2**24)
    with pytest.raises(InvalidParameter, match=r"^integers must lie in the ball"):
        Clipped(np.array([STEPS, 1]), ((2,),), True)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"bound": 0}, "bound must be positive"),
        ({"bound": -1}, "bound must be positive"),
        ({"bound": math.nan}, "bound must be finite"),
        ({"bound": math.inf}, "bound must be finite"),
        ({"bound": 1e-101}, "bound must be in"),
        ({"bound": 1e101}, "bound must be in"),
        ({"bound": "1"}, "bound must be a number"),
        ({"bound": 1, "steps": 0}, "steps must be in"),
        ({"bound": 1, "steps": 2**24 + 1}, "steps must be in"),
        ({"bound": 1, "shapes": 3}, "shapes must be a tuple"),
        ({"bound": 1, "shapes": (3,)}, "shapes must be a tuple"),
        ({"bound": 1, "shapes": ((-1,),)}, "shapes must be in"),
        ({"bound": 1, "shapes": ((2**20, 2**20),)}, "shapes must have at most"),
    ],
)
def test_public_parameters_are_checked(arguments, rule):
    with pytest.raises(InvalidParameter, match=f"^{rule}"):
        clip([np.array([1.0, 2.0])], **arguments)


@pytest.mark.parametrize(
    "entries", [[5e-324, 1e308], [5e-324, 3e-310], [1e-200, 1.0], [1.7e308, 1.7e308], [-1e-310, 1e-310]]
)
def test_nothing_about_an_update_raises_where_numpy_was_told_to_raise(entries):
    expected = clip([np.array(entries)], 0.5)
    with np.errstate(all="raise"):
        for kind in (np.float64, np.longdouble):
            found = clip([np.array(entries, dtype=kind)], 0.5)
            assert (found.integers == expected.integers).all()
            assert found.vote == expected.vote


def test_a_clipped_update_is_checked_whatever_it_is_made_of():
    shapes, zeros = ((2,), (2,)), np.zeros(4, dtype=np.int64)
    for integers in (None, [0] * 4, zeros.reshape(4, 1), zeros.reshape(2, 2), zeros[:3], zeros.astype(float)):
        with pytest.raises(InvalidParameter, match=r"^integers must lie in the ball"):
            Clipped(integers, shapes, True)
    for steps in (0, -1, 2.0**20, 2**63):
        with pytest.raises(InvalidParameter, match=r"^steps must be"):
            Clipped(zeros, shapes, True, True, steps)
    for flag in (math.nan, np.array([1, 2]), "yes", 1):
        with pytest.raises(InvalidParameter, match=r"^norm_fits must be True or False"):
            Clipped(zeros, shapes, flag)
        with pytest.raises(InvalidParameter, match=r"^usable must be True or False"):
            Clipped(zeros, shapes, True, flag)
    assert Clipped(zeros, [[2], [2]], True).shapes == shapes


def test_an_update_is_not_printed():
    assert repr(clip([np.array([0.125, 0.5])], 1)) == "Clipped(shapes=((2,),), steps=1048576)"


def test_a_sum_of_squares_does_not_wrap_around_into_the_ball():
    # In int64 these sums are -2^63 and 0.
    for count in (2**15, 2**16):
        assert not inside_ball(np.full(count, clipping.MAX_STEPS, dtype=np.int64), clipping.MAX_STEPS)
