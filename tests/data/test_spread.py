"""The places of the records of one cell, against the list of reversed bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.spread import spread, spread_below


def reversed_bits(number, bits):
    return int(format(number, f"0{bits}b")[::-1], 2) if bits else 0


def places(count, bits):
    """Where the first `count` records go; after 2**bits of them the places are taken again."""
    return sorted(reversed_bits(k % 2**bits, bits) for k in range(1, count + 1))


def found(count, bits):
    return spread(np.arange(count), np.full(count, count), bits).tolist()


@pytest.mark.parametrize("bits", range(6))
def test_every_count_takes_the_places_of_the_reversed_bits(bits):
    for count in range(3 * 2**bits + 2):
        model = places(count, bits)
        assert found(count, bits) == model
        for part in range(2**bits + 1):
            assert spread_below(part, count, bits) == sum(place < part for place in model)


@pytest.mark.parametrize("bits", range(7))
def test_one_record_more_takes_one_more_place_and_moves_no_other(bits):
    for count in range(2 ** (bits + 1)):
        before, after = (np.bincount(found(n, bits), minlength=2**bits) for n in (count, count + 1))
        assert np.abs(after - before).sum() == 1


@given(bits=st.integers(0, 30), count=st.integers(1, 2**40), data=st.data())
def test_large_counts_agree_with_the_number_below(bits, count, data):
    orders = np.array(sorted(data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=8))))
    spots = spread(orders, np.full(len(orders), count), bits)
    assert (np.diff(spots) >= 0).all()
    for order, spot in zip(orders.tolist(), spots.tolist(), strict=True):
        assert 0 <= spot < 2**bits
        upto = spread_below(spot + 1, count, bits) if spot + 1 < 2**bits else count
        assert spread_below(spot, count, bits) <= order < upto


@given(bits=st.integers(1, 24), count=st.integers(1, 2**24))
def test_the_records_lie_evenly(bits, count):
    for part in (1, 2 ** (bits - 1), 2**bits - 1):
        # The van der Corput sequence: off by at most one for each bit.
        assert abs(spread_below(part, count, bits) - count * part / 2**bits) <= bits + 1
