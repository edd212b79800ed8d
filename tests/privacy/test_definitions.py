"""Budgets are exact: parts sum to the whole, decimals mean what they say, records read back."""

import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy.hostile import HOSTILE

from sfumato.errors import InvalidParameter
from sfumato.privacy.definitions import ZCDP, Amount, ApproxDP, PureDP, budget_from_dict

decimals = st.decimals(
    min_value=Decimal("1e-12"), max_value=Decimal("1e6"), allow_nan=False, places=12
).filter(bool)
deltas = st.decimals(
    min_value=Decimal("1e-12"), max_value=Decimal("0.999"), allow_nan=False, places=12
).filter(bool)
budgets = st.one_of(
    st.builds(PureDP, decimals), st.builds(ApproxDP, decimals, deltas), st.builds(ZCDP, decimals)
)


def test_a_float_is_read_as_the_decimal_that_it_prints():
    assert PureDP(0.1).epsilon == Fraction(1, 10)
    assert PureDP(np.float32(0.1)).epsilon == Fraction(1, 10)
    assert ZCDP(Decimal("0.30")) == ZCDP(0.3)
    assert ApproxDP(1, 1e-6).delta == Fraction(1, 10**6)


def test_budgets_print_as_decimals():
    assert repr(PureDP(0.1)) == "PureDP(epsilon=0.1)"
    assert repr(ApproxDP(0.5, 1e-6)) == "ApproxDP(epsilon=0.5, delta=1e-06)"
    assert repr(ZCDP(Fraction(1, 3))) == "ZCDP(rho=1/3)"
    assert repr(Amount()) == "Amount()"


@given(budgets, st.integers(1, 60))
def test_equal_parts_sum_exactly_to_the_whole(budget, count):
    parts = budget.split(count)
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    assert len(parts) == count
    assert total == budget


@given(budgets, st.fractions(min_value=Fraction(1, 1000), max_value=1, max_denominator=1000))
def test_a_share_and_its_complement_make_the_whole(budget, fraction):
    if fraction == 1:
        assert budget.share(fraction) == budget
    else:
        assert budget.share(fraction) + budget.share(1 - fraction) == budget


@given(budgets)
def test_a_budget_reads_back_from_json_exactly(budget):
    assert budget_from_dict(json.loads(json.dumps(budget.to_dict()))) == budget
    amount = Amount.of(budget)
    assert budget_from_dict(json.loads(json.dumps(amount.to_dict()))) == amount


def test_every_field_must_fit_the_cap():
    cap = ApproxDP(1, 1e-6)
    assert ApproxDP(1, 1e-6).fits(cap)
    assert not ApproxDP(1.000000000001, 1e-6).fits(cap)
    assert not ApproxDP(0.1, 1.0000001e-6).fits(cap)
    with pytest.raises(InvalidParameter, match="cap must be of the kind PureDP"):
        PureDP(1).fits(cap)


def test_different_kinds_have_no_sum():
    with pytest.raises(TypeError):
        PureDP(1) + ZCDP(1)


def test_budgets_are_frozen_and_hashable():
    with pytest.raises(AttributeError):
        PureDP(1).epsilon = Fraction(2)
    assert len({PureDP(0.1), PureDP(Fraction(1, 10)), ZCDP(0.1)}) == 2


@pytest.mark.parametrize("value", HOSTILE, ids=repr)
@pytest.mark.parametrize("make", [PureDP, ZCDP, lambda v: ApproxDP(v, 1e-6), lambda v: ApproxDP(1, v)])
def test_hostile_numbers_are_refused_with_the_rule(make, value):
    with pytest.raises(InvalidParameter, match=r"(epsilon|rho|delta) must be .*(got|longer)"):
        make(value)


@pytest.mark.parametrize("delta", [1, 1.0, 2, 1e300])
def test_a_delta_of_one_or_more_is_refused(delta):
    with pytest.raises(InvalidParameter, match=r"delta must be inside \(0, 1\), got delta="):
        ApproxDP(1, delta)


def test_extreme_but_valid_numbers_are_kept_exactly():
    assert PureDP(1e-300).epsilon == Fraction(1, 10**300)
    assert PureDP(1e300).epsilon == 10**300
    with pytest.raises(InvalidParameter, match="bits"):
        PureDP(Fraction(1, 10**700))


@pytest.mark.parametrize("fraction", [0, -0.1, 1.1, float("nan"), True, "half"], ids=repr)
def test_a_share_outside_the_unit_interval_is_refused(fraction):
    with pytest.raises(InvalidParameter, match="fraction must be"):
        PureDP(1).share(fraction)


@pytest.mark.parametrize("parts", [0, -1, 1.5, True, "2", 10**7], ids=repr)
def test_a_senseless_number_of_parts_is_refused(parts):
    with pytest.raises(InvalidParameter, match="parts must be"):
        PureDP(1).split(parts)


def test_an_amount_cannot_be_negative_or_absurdly_long():
    with pytest.raises(InvalidParameter, match="epsilon must not be negative"):
        Amount(epsilon=-1)
    with pytest.raises(InvalidParameter, match="epsilon must not be negative"):
        Amount(epsilon=1) - Amount(epsilon=2)
    with pytest.raises(InvalidParameter, match="bits"):
        Amount(epsilon=Fraction(1, 3**6000))


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        {},
        {"format": 2, "type": "pure", "epsilon": "1"},
        {"format": True, "type": "pure", "epsilon": "1"},
        {"format": 1, "type": "other", "epsilon": "1"},
        {"format": 1, "type": ["pure"], "epsilon": "1"},
        {"format": 1, "type": "pure", "epsilon": 0.1},
        {"format": 1, "type": "pure", "epsilon": "0.1"},
        {"format": 1, "type": "pure", "epsilon": "-1"},
        {"format": 1, "type": "pure", "epsilon": "0"},
        {"format": 1, "type": "pure", "epsilon": "1/0"},
        {"format": 1, "type": "pure", "epsilon": "1/00"},
        {"format": 1, "type": "pure", "epsilon": "9" * 5000},
        {"format": 1, "type": "pure", "epsilon": "１"},
        {"format": 1, "type": "pure", "epsilon": "1\n"},
        {"format": 1, "type": "pure"},
        {"format": 1, "type": "pure", "epsilon": "1", "delta": "1"},
        {"format": 1, "type": "approximate", "epsilon": "1", "delta": "1"},
    ],
    ids=repr,
)
def test_a_damaged_record_is_refused(record):
    with pytest.raises(InvalidParameter):
        budget_from_dict(record)
