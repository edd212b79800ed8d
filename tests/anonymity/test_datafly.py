"""Datafly against its definition, row by row."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.anonymity.lattices import GOALS, HIERARCHIES, LIMITS, OTHER, QUASI, Definition, random_table

from sfumato.anonymity.datafly import datafly
from sfumato.anonymity.full_domain import full_domain
from sfumato.anonymity.goals import KAnonymity
from sfumato.anonymity.hierarchies import Ranges
from sfumato.anonymity.rows import rows_of
from sfumato.anonymity.utility import utility
from sfumato.errors import InvalidParameter


def greedy(definition, goals, limit, ties=min):  # type: ignore[no-untyped-def]
    """The levels that the method chooses; None where it fails."""
    node = [0] * len(QUASI)
    while True:
        gone = definition.judged(tuple(node), goals)[0]
        if gone <= limit * definition.n and gone < definition.n:
            return tuple(node)
        shown = {
            j: len({column[node[j]][value][0] for value in definition.table[name]})
            for j, (column, name) in enumerate(zip(definition.cells, QUASI, strict=True))
            if node[j] < len(column) - 1
        }
        if not shown:
            return None
        node[ties(j for j in shown if shown[j] == max(shown.values()))] += 1


def levels(table, hierarchies, goals, limit):  # type: ignore[no-untyped-def]
    try:
        return datafly(rows_of(table, QUASI, ["ill"]), hierarchies, goals, suppression=limit).levels
    except InvalidParameter as error:
        if "must be within reach" not in str(error):
            raise
        return None


@given(
    st.integers(0, 10**9),
    st.sampled_from(sorted(GOALS)),
    st.sampled_from(LIMITS),
    st.sampled_from([HIERARCHIES, OTHER]),
)
def test_the_column_with_most_labels_rises_until_few_rows_are_left(seed, name, limit, hierarchies) -> None:  # type: ignore[no-untyped-def]
    table = random_table(seed)
    expected = greedy(Definition(table, hierarchies), GOALS[name], limit)
    assert levels(table, hierarchies, GOALS[name], limit) == expected


def test_ties_that_go_to_the_last_column_are_noticed() -> None:
    wrong = 0
    for seed in range(40):
        table = random_table(seed)
        expected = greedy(Definition(table, HIERARCHIES), GOALS["k3"], Fraction(0), ties=max)
        wrong += levels(table, HIERARCHIES, GOALS["k3"], Fraction(0)) != expected
    assert wrong > 0


@given(st.integers(0, 10**9), st.sampled_from(["k2", "distinct", "all"]), st.sampled_from(LIMITS))
def test_greed_keeps_the_limit_and_is_never_better_than_the_best(
    seed: int, name: str, limit: Fraction
) -> None:
    rows = rows_of(random_table(seed, most=60), QUASI, ["ill"])
    try:
        found = datafly(rows, HIERARCHIES, GOALS[name], suppression=limit)
    except InvalidParameter:
        return
    assert found.suppressed <= limit * rows.n
    lost = utility(rows, found)
    for metric, value in (("loss", "gcp"), ("discernibility", "discernibility"), ("height", "height")):
        best = utility(rows, full_domain(rows, HIERARCHIES, GOALS[name], suppression=limit, metric=metric))  # type: ignore[arg-type]
        assert getattr(best, value) <= getattr(lost, value) + 1e-12


def test_settings_out_of_reach_are_refused() -> None:
    rows = rows_of({"age": [1, 2, 3]}, ["age"])
    with pytest.raises(
        InvalidParameter, match=r"suppression=0.0 no levels meet them: allow more suppression"
    ):
        datafly(rows, {"age": Ranges(width=1)}, [KAnonymity(4)])
