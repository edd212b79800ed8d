"""The default grid: as fine as a budget can search, by public facts alone, so that heaps are found."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.quantile_methods.cases import BUDGETS, RELATIONS, ask

import sfumato as sf
from sfumato.data.admission import admit
from sfumato.laws import SeededBits
from sfumato.privacy import PureDP
from sfumato.quantile_methods.method import COARSEST, FINEST, Points

F = Fraction
H = F(1, 2)


def facts(**others):
    return ask("auto", bounds=(0, 100), nulls="lower", **{"step": None, "rows": 1000, **others}).facts


@given(
    st.integers(1, 10**12),
    st.integers(1, 10**12),
    st.fractions(F(1, 1000), 100),
    st.fractions(F(1, 1000), 100),
    st.sampled_from([(H,), (F(1, 10), F(9, 10)), (F(1, 1000),), (F(1, 4), H)]),
)
def test_the_grid_grows_with_values_and_epsilon_between_its_limits(size, more, epsilon, extra, orders):
    given = facts(rows=size, probs=orders, budget=PureDP(epsilon))
    assert COARSEST <= given.resolution <= FINEST
    assert 2**given.resolution // 5 <= given.grid.cells <= 2**given.resolution
    assert facts(rows=size + more, probs=orders, budget=PureDP(epsilon)).resolution >= given.resolution
    assert facts(rows=size, probs=orders, budget=PureDP(epsilon + extra)).resolution >= given.resolution


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_many_values_have_the_finest_grid_and_few_the_coarsest(budget):
    assert facts(rows=10**6, budget=budget).grid.step == F(5, 10**8)
    assert facts(rows=1, budget=budget).grid.step == F(5, 10**4)
    # In between there are others.
    assert {facts(rows=n, budget=budget).resolution for n in range(1, 2000, 4)} == set(range(18, 33))


def test_where_nothing_is_known_of_the_size_the_grid_is_the_finest():
    unknown = ask("single", bounds=(0, 100), step=None, neighbours="add-remove").facts
    assert unknown.size is None
    assert unknown.grid.cells == 2 * 10**9 + 1


ENDS = st.fractions(-1000, 1000, max_denominator=1000) | st.decimals(-1000, 1000, places=3).map(F)


@given(ENDS, ENDS, st.integers(COARSEST, FINEST))
def test_round_numbers_are_points_where_the_bounds_are_round(one, other, bits):
    lower, upper = sorted((one, other))
    if upper - lower < F(1, 1000):
        return
    grid = replace(facts(), bounds=(lower, upper), points=Points(bits=bits)).grid
    assert 2**bits // 5 <= grid.cells <= 2**bits
    assert (grid.lower, grid.upper) == (lower, upper)
    if not lower * 1000 % 1 and not upper * 1000 % 1 and bits >= 26:
        # The step is a digit times a power of ten, so that it divides a thousandth or is one.
        middle = F(round((lower + upper) * 500), 1000)
        assert not (middle - lower) % grid.step


def test_heaps_at_round_numbers_and_at_both_bounds_are_answered_exactly():
    for heap in (0.0, 37.0, 100.0, 12.5):
        release = sf.median(np.full(2000, heap), bounds=(0, 100), epsilon=1, bits=SeededBits(3))
        assert release.value == heap


def test_of_many_orders_the_outermost_do_not_make_the_grid_coarse():
    # One order in 200 has 50 of 10^4 values beyond it: by that alone the grid would be the coarsest.
    many = tuple(F(i, 200) for i in range(1, 200))
    assert facts(probs=many, rows=10**4).resolution == FINEST
    assert facts(probs=(F(1, 200),), rows=10**4).resolution < FINEST


def test_outer_orders_have_fewer_records_to_find_a_heap_with():
    by_order = [facts(probs=(order,)).resolution for order in (F(1, 1000), F(1, 5), F(3, 10), H)]
    assert by_order == sorted(by_order)
    assert by_order[0] < by_order[-1]
    assert facts(probs=(F(1, 5),)).resolution == facts(probs=(F(4, 5),)).resolution


def test_a_step_is_kept_and_so_are_points_of_integers():
    assert facts(step=F(1, 4), rows=1).grid.cells == 401
    release = sf.median(np.arange(9), bounds=(0, 100), epsilon=0.01, bits=SeededBits(1))
    assert release.query.facts.grid.cells == 101


def test_far_from_zero_the_grid_is_what_float64_resolves():
    far = ask("auto", bounds=(10**9, 10**9 + 1), rows=10**9, step=None, nulls="lower").facts
    assert far.resolution == FINEST
    assert 1 < far.grid.cells < 2**32


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("share", [0, "auto"], ids=str)
def test_neighbours_have_the_same_grid(relation, share):
    # So many values and one more would have different grids, if their number were read from the data.
    bits = {size: facts(rows=size).resolution for size in range(20, 400)}
    edges = [size for size in range(20, 399) if bits[size] != bits[size + 1]]
    assert edges
    for size in edges:
        asked = replace(ask("auto", bounds=(0, 100), step=None, neighbours=None), interval_share=share)
        if relation == "add-remove":
            columns = (np.ones(size), np.ones(size + 1))
        else:
            columns = (np.append(np.ones(size), 1.0), np.append(np.ones(size), np.nan))
        for hint in (None, size):
            one, other = (
                replace(asked, n_hint=hint).bind(admit(column), sf.Field(), relation) for column in columns
            )
            assert one.facts == other.facts
            assert one.facts.grid == other.facts.grid


# --- heaps ----------------------------------------------------------------------------------------

RUNS = 300


def found(**others):
    """How often the median of a thousand equal values is the cell of that value."""
    bits, hits = SeededBits(2), 0
    for _ in range(RUNS):
        release = sf.median(
            np.full(1000, 0.3), bounds=(0, 1), epsilon=0.1, nulls="lower", verify=0, bits=bits, **others
        )
        grid = release.query.facts.grid
        hits += release.value == float(grid.value(int(grid.index([0.3])[0])))
    return hits / RUNS


def test_a_heap_of_equal_values_is_found():
    # The heap outweighs a point elsewhere by e^(0.1 1000 / 4) = e^25 and there are 2 10^5 of them: it is
    # missed with a chance below 2 10^5 e^-25 < 3e-6.
    share = found()
    print(f"a thousand equal values, epsilon 0.1: found in {share:.1%} of {RUNS} releases")
    assert share >= 0.99


def test_a_heap_of_equal_values_is_found_with_a_share_for_the_interval():
    share = found(interval_share="auto")
    print(f"with an interval: found in {share:.1%} of {RUNS} releases")
    assert share >= 0.99


def test_on_the_finest_grid_the_same_heap_is_missed():
    # There 2^32 points weigh e^22.2 together, so near to e^25 that a heap is missed once in a while.
    share = found(step=F(1, 2**32 - 1))
    print(f"on 2^32 points: found in {share:.1%} of {RUNS} releases")
    assert share < 0.99
