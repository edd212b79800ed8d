"""T4: neighbouring tables leave the same trace, and centers that differ within the declared sensitivity."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.contracts.replay import (
    NULLS,
    Table,
    assert_corner_tables_leave_the_same_trace,
    assert_same_trace,
    budgets,
    replay,
)

CI_PAIRS = 2_000
SEARCH = settings.default.max_examples > 1_000

numbers = st.one_of(
    st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1e308, -1e308, 2.0**50 + 0.25]),
    st.floats(-10, 10),
    st.floats(),
)
rows = st.tuples(numbers, st.sampled_from(["a", "b", "c", None]), st.sampled_from([True, False, None]))
bounds = st.sampled_from([(0, 1), (-1, 3), (1, 3), (-7, -2), (0, 250_000), (0.1, 0.7)])
nulls = st.sampled_from(NULLS)


@st.composite
def questions(draw):
    budget, noise = draw(st.sampled_from(budgets()))
    common = {"budget": budget, "noise": noise, "nulls": draw(nulls)}
    kind = draw(st.sampled_from(["count", "share", "sum", "mean", "variance", "histogram", "categories"]))
    if kind in ("sum", "mean", "variance"):
        return kind, {**common, "column": "number", "bounds": draw(bounds)}
    if kind == "histogram":
        cells = draw(st.integers(1, 5))
        return kind, {**common, "column": "number", "bins": cells, "bounds": draw(bounds)}
    if kind == "categories":
        listed = draw(st.sampled_from([("a",), ("a", "b"), ("b", "z"), ("a", "b", "c")]))
        return "histogram", {**common, "column": "text", "categories": listed, "other": draw(st.booleans())}
    name = "count" if kind == "count" else "proportion"
    which = draw(st.integers(0, 2))
    if which == 0:
        return name, {**common, "column": "text", "equals": ("a", "z")}
    if which == 1:
        return name, {**common, "column": "number", "between": (-1, 2)}
    return name, {**common, "column": "truth"}


@st.composite
def neighbours(draw):
    common = draw(st.lists(rows, max_size=6))
    changed = draw(rows)
    place = draw(st.integers(0, len(common)))
    with_it = [*common[:place], changed, *common[place:]]
    if draw(st.booleans()):
        return "add-remove", Table(with_it), Table(common)
    other = [*common[:place], draw(rows), *common[place:]]
    return "substitution", Table(with_it), Table([other[i] for i in draw(st.permutations(range(len(other))))])


@pytest.mark.slow
def test_neighbouring_tables_leave_the_same_trace():
    pairs = 0

    @settings(max_examples=10 * CI_PAIRS if SEARCH else CI_PAIRS)
    @given(neighbours(), st.lists(questions(), min_size=1, max_size=3), st.integers(0, 2**32))
    def check(tables, asked, seed):
        nonlocal pairs
        pairs += 1
        relation, left, right = tables
        assert_same_trace(*(replay(table, relation, asked, seed) for table in (left, right)))

    check()
    assert pairs >= CI_PAIRS


def test_tables_of_extreme_rows_leave_the_same_trace():
    assert_corner_tables_leave_the_same_trace()


def test_the_trace_tells_what_was_drawn():
    table = Table([(1.0, "a", True), (2.0, None, None)])
    asked = [("sum", {"budget": budgets()[0][0], "column": "number", "bounds": (0, 4), "nulls": "drop"})]
    (answer,) = replay(table, "add-remove", asked, seed=1)
    (draw,) = answer.draws
    assert draw.center.size == 1
    assert draw.center[0] == np.round(3.0 / float(answer.query.lattice.step))
    assert answer.words > 0
