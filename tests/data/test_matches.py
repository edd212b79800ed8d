"""Conditions: how many records meet them, equal to a plain loop."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.admission import admit
from sfumato.data.column import CHUNK
from sfumato.data.counts import Sums
from sfumato.data.matches import Matches
from sfumato.errors import SchemaMismatch


@given(st.lists(st.none() | st.floats()), st.floats(-10, 10), st.floats(0, 5))
def test_values_in_a_closed_range_are_counted_as_a_loop_does(values, low, width):
    high = low + width
    known = [v for v in values if v is not None and not math.isnan(v)]
    array = np.array([math.nan if v is None else v for v in values], dtype=float)
    expected = Sums(len(known), sum(low <= v <= high for v in known))
    assert Matches(between=(low, high)).sums(admit(array)) == expected


def test_both_ends_of_a_range_count_and_infinities_do_not():
    values = [0.0, 1.0, np.nextafter(1, 2), -5e-324, math.inf, -math.inf, math.nan]
    assert Matches(between=(0.0, 1.0)).sums(admit(values)) == Sums(6, 2)


@given(st.lists(st.none() | st.sampled_from("abcd")))
def test_text_categories_are_counted_as_a_loop_does(values):
    known = [v for v in values if v is not None]
    expected = Sums(len(known), sum(v in ("a", "c") for v in known))
    for given_ in (
        np.array(values, object),
        pd.Series(values, dtype=object),
        pl.Series(values, dtype=pl.String),
    ):
        assert Matches(equals=("a", "c")).sums(admit(given_)) == expected


def test_true_values_are_counted_when_no_condition_is_given():
    assert Matches().sums(admit([True, None, False, True])) == Sums(3, 2)
    assert Matches().sums(admit(np.ones(CHUNK + 3, bool))) == Sums(CHUNK + 3, CHUNK + 3)


@pytest.mark.parametrize(
    ("matches", "values", "hint"),
    [
        (Matches(), [1, 2], "give equals= or between="),
        (Matches(), ["a"], "give equals= or between="),
        (Matches(between=(0.0, 1.0)), ["a"], "between= needs numbers"),
        (Matches(between=(0.0, 1.0)), [True], "between= needs numbers"),
        (Matches(equals=("a",)), [1.0], "must be int"),
        (Matches(equals=(True,)), [1], "must be int"),
        (Matches(equals=("a",)), [True], "must be bool"),
    ],
)
def test_a_condition_on_the_wrong_kind_of_column_is_refused(matches, values, hint):
    for check in (matches.require, matches.sums):
        with pytest.raises(SchemaMismatch, match=hint):
            check(admit(values))
