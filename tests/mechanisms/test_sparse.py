"""Sparse: scales, the stream itself, and accuracy."""

import copy
import itertools
import math
import os
import pickle
from contextlib import suppress
from fractions import Fraction
from threading import Thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.mechanisms.streams import (
    both_kinds,
    both_moves,
    calibrated,
)

from sfumato.errors import BudgetExceeded, InvalidParameter, NotSupported, SfumatoError
from sfumato.laws import DiscreteLaplace, Geometric, SeededBits, SystemBits
from sfumato.mechanisms.above_threshold import AboveThreshold, AnyQueries, SameDirection
from sfumato.mechanisms.sparse import Sparse, SparseMechanism
from sfumato.privacy import PureAccountant, PureDP

# --- calibration ---------------------------------------------------------------------------------


@given(
    st.fractions(Fraction(1, 10**4), 100),
    st.integers(1, 10**6),
    st.integers(1, 1000),
    st.booleans(),
    st.none() | st.fractions(Fraction(1, 100), Fraction(99, 100)),
)
def test_a_stream_costs_exactly_epsilon(epsilon, sensitivity, crossings, same_direction, answers):
    mechanism = SparseMechanism.calibrated(
        epsilon, sensitivity=sensitivity, crossings=crossings, same_direction=same_direction, answers=answers
    )
    assert mechanism.cost == mechanism.event.pure_epsilon == epsilon
    part = sensitivity / mechanism.threshold_scale
    numbers = epsilon * (answers or 0)
    weight = crossings if same_direction else 2 * crossings
    queries = weight * sensitivity / mechanism.query_scale
    if same_direction:
        assert max(part + max(queries, numbers), queries + numbers) == epsilon
    else:
        assert queries == epsilon - part - numbers
    if not (same_direction and answers):
        # The split is 1 to weight^(2/3), whose cube root is a thousandth off at most.
        assert float((epsilon - numbers) / part - 1) == pytest.approx(weight ** (2 / 3), abs=2e-3)


@pytest.mark.parametrize("crossings", [1, 2, 5, 50])
@pytest.mark.parametrize("answers", [Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(4, 5)])
def test_no_other_split_has_less_noise_beside_numbers(crossings, answers):
    mechanism = calibrated(crossings, same_direction=True, answers=answers)
    best = mechanism.threshold_scale**2 + mechanism.query_scale**2
    moves = SameDirection(1)
    for threshold, query in itertools.product(range(1, 100), repeat=2):
        scales = Fraction(100, threshold), Fraction(100 * crossings, query)
        if max(moves.losses(*scales, crossings, mechanism.answer_scale)) <= 1:
            assert best <= (scales[0] ** 2 + scales[1] ** 2) * Fraction(10_001, 10_000)


@both_moves
@pytest.mark.parametrize("crossings", [1, 2, 5, 50])
def test_no_other_split_has_less_noise(crossings, same_direction):
    mechanism = calibrated(crossings, same_direction=same_direction)
    weight = crossings if same_direction else 2 * crossings
    best = mechanism.threshold_scale**2 + mechanism.query_scale**2
    for percent in range(1, 100):
        share = Fraction(percent, 100)
        assert best <= (share**-2 + (weight / (1 - share)) ** 2) * Fraction(100_001, 100_000)


def test_scales_of_the_specification():
    two = calibrated(1, same_direction=True)
    assert (two.threshold_scale, two.query_scale) == (2, 2)
    four = SparseMechanism.calibrated(1, sensitivity=3, crossings=4)
    assert (four.threshold_scale, four.query_scale) == (15, 30)
    assert four.event.name == "above-threshold"
    assert four.described() == "up to 4 crossings with one-sided geometric noise of scales 15 and 30"
    assert two.described().startswith("up to 1 crossing with")
    numbers = calibrated(2, answers=0.25, one_sided=False)
    assert numbers.answer_scale == 8
    assert numbers.described().endswith("numbers with discrete Laplace noise of scale 8")
    assert isinstance(numbers.comparison.query_noise, DiscreteLaplace)
    assert isinstance(four.comparison.query_noise, Geometric)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("epsilon", 0),
        ("epsilon", Fraction(1, 2**60)),
        ("sensitivity", 0),
        ("sensitivity", 1.5),
        ("threshold", 2**61),
        ("threshold", 0.5),
        ("crossings", 0),
        ("crossings", True),
        ("same_direction", 1),
        ("one_sided", "yes"),
        ("answers", 0),
        ("answers", 1),
        ("bits", None),
    ],
)
def test_parameters_out_of_range_are_refused_before_the_charge(name, wrong):
    given_ = {"epsilon": 1, "sensitivity": 1, "threshold": 0, "bits": SystemBits(), name: wrong}
    accountant = PureAccountant(PureDP(1))
    with pytest.raises(InvalidParameter, match=f"{name}|scale"):
        Sparse.open(given_.pop("epsilon"), accountant=accountant, **given_)
    assert accountant.spent.epsilon == 0


def test_what_is_no_mechanism_is_refused():
    with pytest.raises(InvalidParameter, match="mechanism"):
        Sparse(AboveThreshold.general(1, 1), 0, SystemBits())


@pytest.mark.parametrize("moves", [None, "any", 1, Fraction(1, 2), SameDirection])
def test_what_says_nothing_about_moves_is_refused(moves):
    scales = {"threshold_scale": Fraction(1), "query_scale": Fraction(1)}
    with pytest.raises(InvalidParameter, match=r"^moves must be"):
        SparseMechanism(moves=moves, crossings=2, **scales)
    with pytest.raises(InvalidParameter, match=r"^moves must be"):
        AboveThreshold(moves=moves, **scales)


# --- the stream ----------------------------------------------------------------------------------


def opened(**options) -> Sparse:
    return Sparse.open(1, **{"sensitivity": 1, "threshold": 0, "bits": SeededBits(3), **options})


FAR = 10**6


def test_a_stream_halts_after_its_crossings_and_says_no_more():
    stream = opened(crossings=2)
    assert (stream.remaining, stream.halted, stream.threshold) == (2, False, 0)
    assert [stream.offer(value) for value in (-FAR, FAR, np.int64(-FAR), np.int64(FAR))] == [
        "below",
        "above",
        "below",
        "above",
    ]
    assert (stream.remaining, stream.halted) == (0, True)
    for value in (FAR, -FAR, "text"):
        with pytest.raises(BudgetExceeded, match=r"^2 crossings told"):
            stream.offer(value)
    assert issubclass(BudgetExceeded, SfumatoError)


def test_a_stream_without_crossings_never_halts_and_costs_the_same():
    stream = opened(crossings=3)
    assert {stream.offer(-FAR) for _ in range(500)} == {"below"}
    assert stream.remaining == 3
    assert stream.cost == stream.event.epsilon == 1


def test_values_of_any_size_are_compared_without_wrapping():
    stream = opened(crossings=2, answers=0.5)
    assert stream.offer(-(2**200)) == "below"
    assert abs(stream.offer(2**200) - 2**200) < 1000


def test_the_whole_is_charged_when_the_stream_is_opened():
    accountant = PureAccountant(PureDP(Fraction(3, 2)))
    opened(crossings=5, accountant=accountant)
    assert accountant.spent.epsilon == 1
    with pytest.raises(BudgetExceeded):
        opened(accountant=accountant)
    assert accountant.spent.epsilon == 1


def test_the_threshold_is_drawn_once():
    # At equal values most of what two answers have in common is the threshold's noise.
    mechanism = SparseMechanism(
        moves=SameDirection(1), crossings=9, threshold_scale=Fraction(1000), query_scale=Fraction(1, 100)
    )
    middle = mechanism.comparison.centring + 700
    bits = SeededBits(9)
    seen = [{answer for _ in range(9) for answer in [s.offer(middle)]} for s in _streams(mechanism, bits)]
    assert all(len(answers) == 1 for answers in seen)
    assert {answer for answers in seen for answer in answers} == {"below", "above"}


def _streams(mechanism: SparseMechanism, bits: SeededBits) -> list[Sparse]:
    return [Sparse(mechanism, 0, bits) for _ in range(40)]


@pytest.mark.parametrize("value", [1.5, 123456.0, "123456", None, True, np.float64(3)])
def test_a_value_that_is_no_integer_is_refused_and_not_shown(value):
    stream = opened()
    with pytest.raises(InvalidParameter, match=r"^value must be a whole number$"):
        stream.offer(value)
    assert stream.remaining == 1


def test_a_stream_cannot_be_copied_or_stored():
    stream = opened()
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(NotSupported, match="copied"):
            duplicate(stream)


def test_a_forked_process_cannot_go_on_with_the_stream(monkeypatch):
    stream = opened()
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    with pytest.raises(NotSupported, match="process"):
        stream.offer(FAR)
    monkeypatch.undo()
    assert stream.offer(FAR) == "above"


def test_what_is_printed_does_not_depend_on_the_noise():
    assert {repr(opened(bits=SeededBits(seed))) for seed in range(20)} == {
        "Sparse(threshold=0, remaining=1, cost=1)"
    }
    assert not opened().private
    assert opened(bits=SystemBits()).private


def test_threads_together_are_told_no_more_crossings_than_were_paid_for():
    stream, told = opened(crossings=50, bits=SystemBits()), []

    def ask() -> None:
        # A stream that never halts must fail and not hang.
        with suppress(BudgetExceeded):
            for _ in range(100):
                told.append(stream.offer(FAR))

    threads = [Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == ["above"] * 50


def test_more_told_than_paid_for_is_still_halted():
    stream = opened(crossings=1)
    stream._remaining = -1
    assert stream.halted
    with pytest.raises(BudgetExceeded):
        stream.offer(FAR)


@pytest.mark.parametrize("accountant", [5, "x", object()])
def test_what_is_no_accountant_is_refused_by_name(accountant):
    with pytest.raises(InvalidParameter, match=r"^accountant must be"):
        Sparse(calibrated(), 0, SeededBits(1), accountant=accountant)


@both_moves
def test_a_number_of_numpy_is_charged_as_the_plain_one(same_direction):
    kind = SameDirection if same_direction else AnyQueries
    given = {"crossings": 2, "threshold_scale": 100, "query_scale": 200}
    wide = SparseMechanism(moves=kind(np.int8(100)), **given)
    assert wide.cost == SparseMechanism(moves=kind(100), **given).cost == (2 if same_direction else 3)


# --- accuracy ------------------------------------------------------------------------------------


@both_kinds
@both_moves
@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_the_radius_covers_exactly_computed_errors(confidence, same_direction, one_sided):
    mechanism = calibrated(2, same_direction=same_direction, one_sided=one_sided)
    radius = mechanism.radius(5, confidence)
    assert radius < mechanism.radius(5000, confidence)
    covered = {radius: 1.0, radius // 4: 1.0}
    for reach in covered:
        for signs in itertools.product((-1, 1), repeat=5):
            # Just as far away as an answer must be right about.
            values = tuple(reach + 1 if sign > 0 else -reach for sign in signs)
            law = mechanism.law(values, 0)
            right = sum(
                math.exp(law.logpmf(pattern))
                for pattern in law.patterns()
                if all((told == "above") == (sign > 0) for told, sign in zip(pattern, signs, strict=False))
            )
            covered[reach] = min(covered[reach], right)
    assert covered[radius] >= confidence
    assert covered[radius // 4] < confidence


def test_numbers_are_within_their_radius():
    mechanism = calibrated(4, answers=0.5)
    noise = mechanism.answer_noise
    radius = mechanism.answer_radius(0.95)
    assert 4 * 2 * noise.sf(radius) <= 0.05 < 4 * 2 * noise.sf(radius - 1)
    with pytest.raises(NotSupported, match="numeric"):
        calibrated().answer_radius(0.95)
    with pytest.raises(InvalidParameter, match="confidence"):
        mechanism.answer_radius(1.0)
    with pytest.raises(InvalidParameter, match="queries"):
        mechanism.radius(0, 0.9)


def test_one_crossing_is_as_accurate_as_above_threshold():
    together = calibrated(1, same_direction=True)
    assert together.comparison == AboveThreshold.same_direction(1, 1)
    assert together.radius(1000, 0.95) == AboveThreshold.same_direction(1, 1).radius(1000, 0.95)
    assert isinstance(calibrated().moves, AnyQueries)
