"""The limits of public parameters of the privacy folder, and of what is rounded up or down."""

import math
from fractions import Fraction

import mpmath as mp
import pytest
from tests.privacy import oracle

from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws.bounded import MAX_BOUND
from sfumato.privacy import (
    ZCDP,
    Amount,
    ApproxDP,
    ApproxEvent,
    BoundedNoiseEvent,
    ComposedEvent,
    ConcentratedEvent,
    FreeEvent,
    GaussianEvent,
    LaplaceEvent,
    PureDP,
    PureEvent,
    RangeEvent,
    calibration,
    conversions,
    events,
    gaussian,
    records,
)
from sfumato.privacy.bounded_noise import bounded_noise_bound, bounded_noise_delta, check_budget
from sfumato.privacy.calibration import gaussian_sigma_squared, laplace_scale
from sfumato.privacy.conversions import decimal_down, decimal_up, exp_up, log_fraction, zcdp_rho
from sfumato.privacy.gaussian import Part, check_part, gaussian_delta, gaussian_vector_delta

pure = PureEvent(1, "exponential")
approx = ApproxDP(1, 1e-6)

# What takes a value between two limits, the name of the parameter, and the limits, both included.
WHOLE = [
    (lambda v: LaplaceEvent(v, 1), "sensitivity", 1, 2**256),
    (lambda v: GaussianEvent(4, 1, v), "coordinates", 1, 2**32),
    (lambda v: BoundedNoiseEvent(v, 9, 2, 1), "sensitivity", 1, 2**22),
    (lambda v: BoundedNoiseEvent(1, v, 2, 1), "bound", 1, 2**22),
    (lambda v: BoundedNoiseEvent(1, 9, v, 1), "power", 1, 3),
    (lambda v: BoundedNoiseEvent(1, 9, 2, v), "queries", 1, 10**7),
    (lambda v: laplace_scale(v, 1), "sensitivity", 1, 2**256),
    (lambda v: gaussian_delta(1, 4, v), "shift", 1, 2**200),
    (
        lambda v: gaussian_sigma_squared(ZCDP(1), sensitivity_squared=4, coordinates=v),
        "coordinates",
        1,
        2**32,
    ),
    (lambda v: check_part(4, 4, v), "coordinates", 1, 2**32),
    (
        lambda v: gaussian_vector_delta(1, sigma_squared=9, sensitivity_squared=1, coordinates=v),
        "coordinates",
        1,
        2**32,
    ),
    (lambda v: bounded_noise_delta(1, bound=9, power=2, sensitivity=v), "sensitivity", 1, 2**22),
    (lambda v: bounded_noise_delta(1, bound=3, power=2, sensitivity=9, queries=v), "queries", 1, 10**7),
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
        with pytest.raises(InvalidParameter, match=rf"^{name} must be .*, got {name}="):
            make(outside)


@pytest.mark.parametrize("name", ["sensitivity", "queries"])
def test_a_bound_is_looked_for_with_the_same_limits(name):
    given = {"sensitivity": 1, "queries": 1}
    assert bounded_noise_bound(approx, **given) == bounded_noise_bound(approx, **given, power=None)
    for outside in (0, 1 + (MAX_BOUND if name == "sensitivity" else 10**7), True, 1.0):
        with pytest.raises(InvalidParameter, match=rf"^{name} must be "):
            bounded_noise_bound(approx, **{**given, name: outside})


def test_a_budget_is_split_into_one_to_a_million_parts():
    budget = PureDP(1)
    assert budget.split(1) == (budget,)
    assert len(budget.split(10**6)) == 10**6
    for outside in (0, 10**6 + 1, 1.0):
        with pytest.raises(InvalidParameter, match=r"^parts must be .*, got parts="):
            budget.split(outside)


# Numbers of a closed interval: who takes them, the name, the ends, and a little beyond each.
tiny = Fraction(1, 10**400)
CLOSED = [
    (lambda v: gaussian_delta(v, 4, 1), "epsilon", 0, 1000),
    (lambda v: gaussian_delta(1, v, 1), "sigma_squared", Fraction(1, 10**6), 2**400),
    (lambda v: check_part(4, v, 2), "sigma_squared", Fraction(1, 10**6), 2**400),
    (lambda v: check_part(v, 4, 2), "sensitivity_squared", Fraction(1, 2**400), 2**400),
    (lambda v: GaussianEvent(v, 4, 2), "sensitivity_squared", Fraction(1, 2**400), 2**400),
    (lambda v: GaussianEvent(4, v, 2), "sigma_squared", Fraction(1, 2**400), 2**400),
    (lambda v: conversions.zcdp_delta(v, 1), "rho", Fraction(1, 10**300), 10**12),
    (lambda v: conversions.zcdp_delta(1, v), "epsilon", Fraction(1, 10**300), 10**12),
    (lambda v: conversions.zcdp_epsilon(v, 0.1), "rho", Fraction(1, 10**300), 10**12),
    (lambda v: check_budget(ApproxDP(v, 1e-6)), "epsilon", Fraction(1, 10**4), 1000),
    (lambda v: bounded_noise_delta(v, bound=9, power=2, sensitivity=1), "epsilon", 0, 1000),
]


@pytest.mark.parametrize(
    ("make", "name", "least", "most"), CLOSED, ids=[f"{k} {c[1]}" for k, c in enumerate(CLOSED)]
)
def test_numbers_are_taken_from_the_least_to_the_most_and_no_further(make, name, least, most):
    make(least)
    make(most)
    below = [] if "check_part" in make.__code__.co_names and name == "sensitivity_squared" else [least - tiny]
    if name == "epsilon" and "zcdp_delta" in make.__code__.co_names:
        make(0)  # a delta may be asked for at an epsilon of zero
    for outside in (*below, -1, most + Fraction(1, 10**6), float("inf")):
        with pytest.raises(InvalidParameter, match=rf"^{name} must be .*, got {name}=(?!None)"):
            make(outside)


def test_deltas_of_bounded_noise_go_down_to_a_limit():
    assert check_budget(ApproxDP(1, Fraction(1, 10**30))).delta == Fraction(1, 10**30)
    with pytest.raises(InvalidParameter, match=r"^delta must be at least 1e-30, got delta=9e-31$"):
        check_budget(ApproxDP(1, Fraction(9, 10**31)))
    for bad in (PureDP(1), ZCDP(1), None):
        with pytest.raises(InvalidParameter, match=r"^budget must be an ApproxDP.*got budget="):
            check_budget(bad)


def test_a_gaussian_is_calibrated_up_to_the_limits_of_its_budget():
    def calibrated(epsilon, delta, square=4, coordinates=2):
        budget = ApproxDP(epsilon, delta)
        return gaussian_sigma_squared(budget, sensitivity_squared=square, coordinates=coordinates)

    assert calibrated(1000, Fraction(1, 10**300)) > 0
    assert calibrated(Fraction(1, 10**9), 0.5) > 0
    for epsilon in (1000 + Fraction(1, 8), Fraction(1, 10**9 + 1)):
        with pytest.raises(
            InvalidParameter, match=r"^epsilon must be in \[1e-9, 1000\], got epsilon=(?!None)"
        ):
            calibrated(epsilon, 0.1)
    with pytest.raises(InvalidParameter, match=r"^delta must be at least 1e-300, got delta=1e-301"):
        calibrated(1, Fraction(1, 10**301))
    with pytest.raises(InvalidParameter, match=r"^sensitivity_squared must be at most 2\^400, got ~?[0-9]"):
        calibrated(1, 0.1, square=2**400 + 1)
    with pytest.raises(InvalidParameter, match=r"^budget must be an ApproxDP or a ZCDP, got budget=PureDP"):
        gaussian_sigma_squared(PureDP(1), sensitivity_squared=4, coordinates=1)
    for budget in (approx, ZCDP(1)):
        with pytest.raises(InvalidParameter, match=r"square of a whole number .*sensitivity_squared=5$"):
            gaussian_sigma_squared(budget, sensitivity_squared=5, coordinates=1)
        assert gaussian_sigma_squared(budget, sensitivity_squared=5, coordinates=2) > 0
    with pytest.raises(
        NotSupported, match=r"^sigma_squared must stay in .* but about ~?[0-9.e+]+ is needed$"
    ):
        calibrated(Fraction(1, 10**6), Fraction(1, 10**300), square=2**400)


@pytest.mark.parametrize("value", [1, 3, Fraction(1, 3), 10**40 + 1, Fraction(7, 10**40)], ids=str)
def test_short_numbers_are_rounded_up_to_24_bits_and_no_further(value):
    short = calibration._short_up(Fraction(value))
    assert value <= short < value * (1 + Fraction(1, 2**23))
    odd = short.numerator // (short.numerator & -short.numerator)
    assert odd.bit_length() <= 24
    assert short.denominator.bit_count() == 1
    assert calibration._short_up(short) == short


def test_the_smallest_variance_that_fits_is_found_to_the_last_short_bit():
    for edge in (Fraction(7, 3), Fraction(10**9), Fraction(1, 1000), Fraction(5)):
        for safe in (edge / 50, edge, 3 * edge, 1000 * edge):
            if safe < gaussian.MIN_SIGMA_SQUARED:
                continue
            found = calibration._smallest(lambda variance, edge=edge: variance >= edge, safe)
            assert edge <= found <= edge * (1 + Fraction(1, 2**22))
    assert calibration._smallest(lambda variance: True, Fraction(1)) <= gaussian.MIN_SIGMA_SQUARED * (
        1 + Fraction(1, 2**22)
    )


def test_variances_of_calibration_stay_inside_the_proved_range_with_its_ends():
    for end in (gaussian.MIN_SIGMA_SQUARED, gaussian.MAX_SIGMA_SQUARED):
        assert calibration._bounded(end) == end
    for outside in (gaussian.MIN_SIGMA_SQUARED / 2, gaussian.MAX_SIGMA_SQUARED + 1):
        with pytest.raises(NotSupported, match=r"^sigma_squared must stay in \[1e-6, 2\^400\]"):
            calibration._bounded(outside)


def test_a_search_that_ends_where_the_promise_fails_is_refused():
    answers = iter([True, False, *[False] * 200])
    with pytest.raises(NotSupported, match=r"^no sigma_squared near [0-9.]+ was proved to meet the budget"):
        calibration._smallest(lambda variance: next(answers), Fraction(3))


# --- events and records --------------------------------------------------------------------------


def test_as_many_events_as_the_limit_are_composed_and_no_more(monkeypatch):
    monkeypatch.setattr(events, "MAX_PARTS", 3)
    assert len(ComposedEvent([pure] * 3).parts) == 3
    assert len(ComposedEvent([pure]).parts) == 1
    for parts in ([], [pure] * 4, [ComposedEvent([pure] * 2)] * 2):
        with pytest.raises(InvalidParameter, match=r"^parts must be 1 to 3 events, got [04]$"):
            ComposedEvent(parts)
    with pytest.raises(InvalidParameter, match=r"^events must be privacy events, got 3$"):
        ComposedEvent([3])


@pytest.mark.parametrize("text", ["x", "x" * 200])
def test_names_of_one_to_two_hundred_characters_are_taken(text):
    assert PureEvent(1, text).name == FreeEvent(text).reason == text


@pytest.mark.parametrize("text", ["", "x" * 201, "a\nb", 3, None], ids=range(5))
def test_names_that_are_empty_long_or_no_text_are_refused(text):
    makers = [lambda kind=kind: kind(1, text) for kind in (PureEvent, RangeEvent, ConcentratedEvent)]
    for kind in (PureEvent, RangeEvent, ConcentratedEvent):
        record = {**kind(1, "x").to_dict(), "name": text}
        makers.append(lambda record=record: events.event_from_dict(record))
    free = [
        lambda: FreeEvent(text),
        lambda: events.event_from_dict({**FreeEvent("x").to_dict(), "reason": text}),
    ]
    for name, make in [*(("name", make) for make in makers), *(("reason", make) for make in free)]:
        with pytest.raises(
            InvalidParameter, match=rf"^{name} must be printable text of 1 to 200 characters, got {name}="
        ):
            make()


@pytest.mark.parametrize(
    "event",
    [
        LaplaceEvent(3, Fraction(1, 10)),
        GaussianEvent(9, Fraction(7, 3), 2),
        BoundedNoiseEvent(2, 9, 3, 5),
        PureEvent(Fraction(1, 3), "a"),
        ApproxEvent(Fraction(1, 3), Fraction(1, 7), "a"),
        RangeEvent(Fraction(1, 3), "a"),
        ConcentratedEvent(Fraction(1, 3), "a"),
        FreeEvent("a"),
    ],
    ids=repr,
)
def test_every_field_of_an_event_is_written_printed_and_read_back_by_its_name(event):
    record = event.to_dict()
    assert events.event_from_dict(record) == event
    for name in (key for key in record if key not in ("format", "type")):
        assert str(getattr(event, name)) == record[name]
        assert f"{name}=" in repr(event)
        for missing in ({k: v for k, v in record.items() if k != name}, {**record, name.upper(): "1"}):
            with pytest.raises(InvalidParameter, match=r"must have exactly the fields"):
                events.event_from_dict(missing)
        if name not in ("name", "reason"):
            with pytest.raises(InvalidParameter, match=rf"^{name} must be exact text"):
                events.event_from_dict({**record, name: "x"})
            with pytest.raises(InvalidParameter, match=rf"^{name} must be "):
                events.event_from_dict({**record, name: "0"})


RECORD = {"format": 1, "type": "laplace", "sensitivity": "3", "scale": "1/10"}


def test_a_record_is_read_back_exactly():
    assert events.event_from_dict(RECORD) == LaplaceEvent(3, Fraction(1, 10))
    assert LaplaceEvent(3, Fraction(1, 10)).to_dict() == RECORD
    digits = "1" * 300
    assert records.read_fraction({"x": digits}, "x") == int(digits)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"format": 2}, r"^format of event must be 1, got format=2$"),
        ({"format": True}, r"^format of event must be 1, got format=True$"),
        ({"format": 1.0}, r"^format of event must be 1, got format=1\.0$"),
        ({"type": "poisson"}, r"^type of event must be one of laplace, gaussian, .*, got type='poisson'$"),
        ({"type": 3}, r"^type of event must be one of laplace, gaussian, .*, got type=3$"),
        ({"more": "1"}, r"^event of type laplace must have exactly the fields sensitivity, scale$"),
        ({"scale": "0.1"}, r"^scale must be exact text such as \"1/10\", got scale='0\.1'$"),
        ({"scale": 3}, r"^scale must be exact text such as \"1/10\", got scale=3$"),
        ({"scale": "1/0"}, r"^scale must have a denominator above zero, got scale='1/0'$"),
        ({"scale": "1/"}, r"^scale must be exact text such as \"1/10\", got scale='1/'$"),
        ({"scale": "9" * 2501}, r"^scale must be exact text such as \"1/10\", got scale='999"),
        ({"sensitivity": "1/2"}, r"^sensitivity must be a whole number, got sensitivity=0\.5$"),
    ],
    ids=range(12),
)
def test_a_record_that_was_changed_is_refused_with_the_field_and_its_value(changed, message):
    with pytest.raises(InvalidParameter, match=message):
        events.event_from_dict({**RECORD, **changed})


def test_a_record_of_events_holds_a_list_of_simple_ones():
    inner = ComposedEvent([pure]).to_dict()
    assert events.event_from_dict(inner) == ComposedEvent([pure])
    with pytest.raises(InvalidParameter, match=r"^parts must be a list, got str$"):
        events.event_from_dict({**inner, "parts": "x"})
    with pytest.raises(InvalidParameter, match=r"^parts must be simple events, got a composed one inside"):
        events.event_from_dict({**inner, "parts": [inner]})
    with pytest.raises(InvalidParameter, match=r"^event must be a mapping, got list$"):
        events.event_from_dict([])


def test_what_is_left_of_an_amount_is_never_negative():
    with pytest.raises(InvalidParameter, match=r"^epsilon must not be negative, got epsilon=-0\.5$"):
        Amount(epsilon=0.5) - Amount(epsilon=1)
    assert Amount(epsilon=1) - Amount(epsilon=1) == Amount()
    with pytest.raises(InvalidParameter, match=r"^cap must be of the kind PureDP, got cap=ZCDP"):
        PureDP(1).fits(ZCDP(1))
    with pytest.raises(InvalidParameter, match=r"^fraction must be in \(0, 1\], got fraction=1\.5$"):
        PureDP(1).share(1.5)
    with pytest.raises(InvalidParameter, match=r"^fraction must be in \(0, 1\], got fraction=0\.0$"):
        PureDP(1).share(0)
    assert PureDP(2).share(1) == PureDP(2)


# --- roundings -----------------------------------------------------------------------------------


@pytest.mark.parametrize("digits", [1, 3, 12])
@pytest.mark.parametrize("value", [1.0, 0.1, 1 / 3, 9.9999, 1e-11, 123456.789, 1e300, math.pi], ids=str)
def test_decimals_are_rounded_to_their_side_by_less_than_a_unit(value, digits):
    up, down = decimal_up(value, digits), decimal_down(value, digits)
    unit = Fraction(10) ** (math.floor(math.log10(value)) + 1 - digits)
    assert down <= Fraction(value) <= up
    assert up - Fraction(value) < unit or up == Fraction(1, 10**12)
    assert Fraction(value) - down < unit
    assert (up / unit).denominator == (down / unit).denominator == 1 or up == Fraction(1, 10**12)
    assert decimal_up(0.0) == decimal_up(1e-300) == Fraction(1, 10**12)


@pytest.mark.parametrize("log_value", [0.0, -1e-9, -1.0, -30.5, -700.0, -744.0, -2000.0, 3.0])
def test_a_probability_from_its_logarithm_is_never_below_and_hardly_above(log_value):
    found = exp_up(log_value)
    with mp.workdps(40):
        exact = mp.exp(min(log_value, 0))
        assert exact <= found <= min(1, exact * (1 + mp.mpf(10) ** -13) + mp.mpf(10) ** -322)


@pytest.mark.parametrize(
    "value",
    [
        Fraction(1, 2),
        Fraction(2),
        1 + Fraction(1, 10**30),
        1 - Fraction(1, 10**15),
        Fraction(10**500, 3),
        Fraction(7, 10**400),
        Fraction(1, 10**300),
        Fraction(10**300),
        Fraction(3, 4),
        Fraction(19, 10),
    ],
)
def test_logarithms_of_fractions_have_all_their_digits(value):
    with mp.workdps(60):
        exact = mp.log(mp.mpf(value.numerator) / value.denominator)
        assert abs(log_fraction(value) - exact) <= 1e-15 * abs(exact) * 4 + mp.mpf(10) ** -320


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1, 1e-6), (0.01, 1e-9), (30, 1e-30), (1000, 0.5), (1e-6, 1e-3)]
)
def test_the_rho_of_a_target_converts_back_to_just_within_it(epsilon, delta):
    rho = zcdp_rho(epsilon, delta)
    back = conversions.zcdp_epsilon(rho, delta)
    assert back <= epsilon
    assert back >= epsilon * (1 - 1e-8)
    # One part in a million more is too much.
    assert conversions.zcdp_epsilon(rho * (1 + Fraction(1, 10**6)), delta) > epsilon


# --- the curve of discrete Gaussian noise --------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0, 0.3])
@pytest.mark.parametrize("shift", [100, 200, 400])
def test_a_sum_that_is_cut_on_the_left_still_covers_all_outcomes(epsilon, shift):
    # The set where the loss passes epsilon starts below -40 sigma: the sum is cut there.
    sigma_squared = Fraction(2)
    start = math.floor(Fraction(str(epsilon)) * sigma_squared / shift - Fraction(shift, 2)) + 1
    for first in (-3, -6, -12):
        assert first > start or shift == 100
        found = gaussian._log_sum(Fraction(str(epsilon)), sigma_squared, shift, first, 120, True)
        with mp.workdps(40):
            weights = {y: mp.exp(-mp.mpf(y * y) / 4) for y in range(-200, 201)}
            total = mp.fsum(weights.values())
            loss = lambda y, shift=shift: (y * shift + mp.mpf(shift * shift) / 2) / 2 - oracle.real(epsilon)  # noqa: E731
            exact = mp.fsum(w * -mp.expm1(-loss(y)) for y, w in weights.items() if y >= start) / total
            uncut = mp.fsum(w * -mp.expm1(-loss(y)) for y, w in weights.items() if y >= first) / total
            left = (
                mp.exp(-mp.mpf(first * first) / 4) / -mp.expm1(mp.mpf(first) / 2) * mp.exp(mp.mpf(first) / 2)
            )
            assert exact * (1 - mp.mpf(10) ** -12) <= mp.exp(found)
            assert mp.exp(found) <= (uncut + left / total) * (1 + mp.mpf(10) ** -9)


def test_a_geometric_series_is_summed_from_its_second_term():
    for rate in (1e-9, 0.1, 1.0, 30.0):
        with mp.workdps(30):
            assert abs(gaussian._geometric(rate) - 1 / mp.expm1(rate)) <= 1e-13 / rate


@pytest.mark.parametrize("sigma_squared", [0.01, 0.3, 1, 4, 15.9, 16, 16.1, 40, 10**6])
def test_the_sum_of_all_weights_is_never_overstated_and_hardly_understated(sigma_squared):
    variance = Fraction(str(sigma_squared))
    with mp.workdps(40):
        reach = int(15 * math.sqrt(sigma_squared)) + 5
        if sigma_squared > 10**5:
            exact = mp.sqrt(2 * mp.pi * sigma_squared)
        else:
            exact = mp.fsum(
                mp.exp(-mp.mpf(y * y) / (2 * oracle.real(variance))) for y in range(-reach, reach + 1)
            )
        found = gaussian._log_total(variance)
        assert mp.log(exact) - 1e-12 <= found <= mp.log(exact) + 1e-14


def test_small_scales_are_left_to_the_other_bound():
    small = [Part(Fraction(1), Fraction(99, 100), 1)]
    assert gaussian.log_rounded_delta(Fraction(1), small) == 0
    assert gaussian.log_rounded_delta(Fraction(1), [*small, Part(Fraction(1), Fraction(10**6), 1)]) == 0
    # What is left of epsilon is used up at this scale, so that nothing is proved.
    assert gaussian.log_rounded_delta(Fraction(1, 100), [Part(Fraction(1), Fraction(1), 5)]) == 0
    assert gaussian.log_rounded_delta(Fraction(20), [Part(Fraction(1), Fraction(60), 1)]) < -10
    assert gaussian.log_rounded_delta(Fraction(10), [Part(Fraction(1), Fraction(1), 1)]) < -3
