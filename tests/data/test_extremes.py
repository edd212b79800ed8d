"""Sums with their smallest and largest records: as sorting everything gives them, in chunks of any size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data import extremes
from sfumato.data.extremes import Extremes
from sfumato.errors import InvalidParameter, SchemaMismatch
from sfumato.grid import Lattice

LATTICE = Lattice.over(-2, 6, points=2**20, origin=2)
numbers = st.one_of(st.floats(-10, 10), st.sampled_from([np.nan, np.inf, -np.inf, 1e308, -0.0]))


def sorted_points(values: np.ndarray, nulls: str) -> np.ndarray:
    filled = np.where(np.isnan(values), -2.0 if nulls == "lower" else 6.0, values)
    return np.sort(LATTICE.round(filled) - LATTICE.low)


@given(st.lists(numbers, max_size=40), st.integers(0, 50), st.sampled_from(["lower", "upper"]))
def test_the_extremes_are_those_of_sorted_data(values, keep, nulls):
    data = np.array(values, dtype=np.float64)
    found, points = Extremes.of(data, LATTICE, nulls=nulls, keep=keep), sorted_points(data, nulls)
    assert (found.size, found.total) == (len(points), int(points.sum()))
    assert found.smallest.tolist() == points[:keep].tolist()
    assert found.largest.tolist() == points[::-1][:keep].tolist()


@pytest.mark.parametrize("keep", [0, 1, 87, 70_000, 150_000, 10**6])
def test_many_rows_are_narrowed_chunk_by_chunk(keep):
    data = np.random.default_rng(5).normal(1, 3, 4 * extremes.CHUNK + 17)
    found, points = Extremes.of(data, LATTICE, nulls="lower", keep=keep), sorted_points(data, "lower")
    assert found.total == int(points.sum())
    assert (found.smallest == points[:keep]).all()
    assert (found.largest == points[::-1][:keep]).all()


def test_what_has_no_place_on_the_lattice_is_refused():
    with pytest.raises(InvalidParameter, match=r"^nulls must be one of 'lower', 'upper'"):
        Extremes.of([1.0], LATTICE, nulls="drop", keep=1)
    with pytest.raises(SchemaMismatch):
        Extremes.of(["a"], LATTICE, nulls="lower", keep=1)
