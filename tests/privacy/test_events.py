"""Events know their exact costs, hold no data and read back from what was stored."""

import json
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy import oracle
from tests.privacy.hostile import HOSTILE

from sfumato.errors import InvalidParameter
from sfumato.privacy.events import (
    ComposedEvent,
    ConcentratedEvent,
    FreeEvent,
    GaussianEvent,
    GaussianVectorEvent,
    LaplaceEvent,
    PureEvent,
    RangeEvent,
    event_from_dict,
)

sizes = st.fractions(min_value=Fraction(1, 10**9), max_value=10**9, max_denominator=10**9)
simple = st.one_of(
    st.builds(LaplaceEvent, st.integers(1, 2**60), sizes),
    st.builds(lambda d, s: GaussianEvent(d * d, s, 1), st.integers(1, 2**50), sizes),
    st.builds(GaussianEvent, sizes, sizes, st.integers(2, 1000)),
    st.builds(GaussianVectorEvent, sizes, sizes, st.integers(2, 1000)),
    st.builds(PureEvent, sizes, st.just("exponential")),
    st.builds(RangeEvent, sizes, st.just("quantiles")),
    st.builds(ConcentratedEvent, sizes, st.just("quantiles")),
    st.just(FreeEvent("public")),
)
events = st.one_of(simple, st.builds(ComposedEvent, st.lists(simple, min_size=1, max_size=4)))


@given(events)
def test_an_event_reads_back_from_json_exactly(event):
    again = event_from_dict(json.loads(json.dumps(event.to_dict())))
    assert again == event
    assert hash(again) == hash(event)


def test_stored_records_keep_their_meaning():
    # Written by the first version; a change of these lines would change what ledgers mean.
    stored = [
        {"format": 1, "type": "laplace", "sensitivity": "3", "scale": "30"},
        {
            "format": 1,
            "type": "gaussian",
            "sensitivity_squared": "4",
            "sigma_squared": "81/2",
            "coordinates": "1",
        },
        {
            "format": 1,
            "type": "gaussian-vector",
            "sensitivity_squared": "2",
            "sigma_squared": "36",
            "coordinates": "2",
        },
        {"format": 1, "type": "pure", "epsilon": "1/10", "name": "exponential"},
        {"format": 1, "type": "free", "reason": "public"},
        {"format": 1, "type": "range", "range": "1/4", "name": "quantiles"},
        {"format": 1, "type": "concentrated", "rho": "1/8", "name": "quantiles"},
    ]
    made = [
        LaplaceEvent(3, 30),
        GaussianEvent(4, 40.5, 1),
        GaussianVectorEvent(2, 36, 2),
        PureEvent(0.1, "exponential"),
        FreeEvent("public"),
        RangeEvent(0.25, "quantiles"),
        ConcentratedEvent(0.125, "quantiles"),
    ]
    assert [event_from_dict(record) for record in stored] == made
    assert [event.to_dict() for event in made] == stored
    assert ComposedEvent(made).to_dict() == {"format": 1, "type": "composed", "parts": stored}


def test_costs_are_exact():
    assert LaplaceEvent(3, 30).pure_epsilon == Fraction(1, 10)
    assert LaplaceEvent(3, 30).rho == Fraction(1, 200)
    assert GaussianEvent(4, 8, 1).rho == Fraction(1, 4)
    assert GaussianEvent(4, 8, 1).pure_epsilon is None
    assert PureEvent(0.2, "x").rho == Fraction(1, 50)
    assert FreeEvent("x").pure_epsilon == FreeEvent("x").rho == 0
    both = ComposedEvent([LaplaceEvent(3, 30), PureEvent(0.2, "x"), FreeEvent("y")])
    assert both.pure_epsilon == Fraction(3, 10)
    assert both.rho == Fraction(1, 200) + Fraction(1, 50)
    assert ComposedEvent([both, GaussianEvent(4, 8, 1)]).pure_epsilon is None


def test_composed_events_are_flat():
    inner = ComposedEvent([LaplaceEvent(1, 1), LaplaceEvent(1, 2)])
    assert ComposedEvent([inner, LaplaceEvent(1, 3)]).parts == (*inner.parts, LaplaceEvent(1, 3))


@pytest.mark.parametrize("order", [1.5, 2, 4, 32])
@pytest.mark.parametrize(("sigma_squared", "shift"), [(0.3, 1), (2.25, 1), (2.25, 3), (40, 5)])
def test_the_rho_of_a_gaussian_event_covers_the_renyi_divergence_of_the_law(order, sigma_squared, shift):
    pair = oracle.shifted_pair(
        oracle.gaussian_law(sigma_squared, reach=int(40 * shift + 40 * sigma_squared)), shift
    )
    rho = oracle.real(GaussianEvent(shift * shift, sigma_squared, 1).rho)
    divergence = oracle.renyi(pair, order)
    assert divergence <= order * rho * (1 + mp.mpf(10) ** -12)
    # A charge ten per cent too small would be seen wherever the lattice attains the bound.
    if sigma_squared >= 2 and order == 2:
        assert divergence > order * rho * 0.9


@pytest.mark.parametrize("order", [1.5, 2, 4, 32])
@pytest.mark.parametrize(("scale", "sensitivity"), [(0.5, 1), (2, 1), (2, 3), (10, 4)])
def test_the_costs_of_a_laplace_event_cover_the_law(order, scale, sensitivity):
    event = LaplaceEvent(sensitivity, scale)
    law = oracle.laplace_law(scale)
    pair = [(p, q) for p, q in oracle.shifted_pair(law, sensitivity) if p > 0 and q > 0]
    worst = max(mp.log(p / q) for p, q in pair)
    assert mp.almosteq(worst, oracle.real(event.pure_epsilon), mp.mpf(10) ** -10)
    assert oracle.renyi(pair, order) <= order * oracle.real(event.rho) * (1 + mp.mpf(10) ** -12)


@pytest.mark.parametrize("value", HOSTILE, ids=repr)
@pytest.mark.parametrize(
    "make",
    [
        lambda v: LaplaceEvent(v, 1),
        lambda v: LaplaceEvent(1, v),
        lambda v: GaussianEvent(v, 1, 2),
        lambda v: GaussianEvent(1, v, 2),
        lambda v: GaussianEvent(1, 1, v),
        lambda v: PureEvent(v, "x"),
    ],
)
def test_hostile_parameters_are_refused_with_name_and_rule(make, value):
    with pytest.raises(
        InvalidParameter,
        match=r"(sensitivity|scale|sensitivity_squared|sigma_squared|coordinates|epsilon) must be",
    ):
        make(value)


@pytest.mark.parametrize("extreme", [1e-300, 1e300])
def test_gaussian_squares_beyond_any_lattice_are_refused(extreme):
    with pytest.raises(InvalidParameter, match="sigma_squared must be in"):
        GaussianEvent(1, extreme, 1)
    with pytest.raises(InvalidParameter, match="sensitivity_squared must be in"):
        GaussianEvent(extreme, 1, 2)


def test_one_coordinate_moves_by_a_whole_number():
    assert GaussianEvent(2**100, 1, 1).rho == 2**99
    for square in (2, 8, Fraction(1, 4), 2**101):
        with pytest.raises(InvalidParameter, match="square of a whole number"):
            GaussianEvent(square, 1, 1)
        GaussianEvent(square, 1, 2)


@pytest.mark.parametrize("name", ["", "x" * 201, "two\nlines", None, 3], ids=repr)
def test_names_are_short_printable_texts(name):
    with pytest.raises(InvalidParameter, match="name must be printable text"):
        PureEvent(1, name)
    with pytest.raises(InvalidParameter, match="reason must be printable text"):
        FreeEvent(name)


def test_only_events_compose():
    with pytest.raises(InvalidParameter, match="events must be privacy events"):
        ComposedEvent([1])
    with pytest.raises(InvalidParameter, match="parts must be 1 to"):
        ComposedEvent([])


@pytest.mark.parametrize(
    "record",
    [
        None,
        {"format": 1, "type": "laplace", "sensitivity": "1.5", "scale": "1"},
        {"format": 1, "type": "laplace", "sensitivity": "3/2", "scale": "1"},
        {"format": 1, "type": "laplace", "sensitivity": 1, "scale": "1"},
        {"format": 1, "type": "laplace", "sensitivity": "1", "scale": "0"},
        {"format": 1, "type": "laplace", "sensitivity": "1"},
        {"format": 1, "type": "composed", "parts": "laplace"},
        {"format": 1, "type": "composed", "parts": []},
        {"format": 1, "type": "composed", "parts": [{"format": 1, "type": "composed", "parts": []}]},
        {"format": 1, "type": "composed", "parts": [3]},
        {"format": 1, "type": "free", "reason": 3},
        {"format": 9, "type": "free", "reason": "x"},
    ],
    ids=repr,
)
def test_a_damaged_record_is_refused(record):
    with pytest.raises(InvalidParameter):
        event_from_dict(record)
