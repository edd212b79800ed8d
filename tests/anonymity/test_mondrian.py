"""Mondrian beside a plain recursion over lists of rows, and what every partition must keep."""

import sys
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.anonymity.mondrian_reference import Reference, Row, described, meets_of

from sfumato.anonymity import mondrian_cuts
from sfumato.anonymity.goals import (
    Checker,
    Closeness,
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    RecursiveDiversity,
)
from sfumato.anonymity.hierarchies import Tree
from sfumato.anonymity.mondrian import mondrian
from sfumato.anonymity.rows import Rows, rows_of
from sfumato.errors import InvalidParameter

# The module, whatever the folder shows under its name.
front = sys.modules[mondrian.__module__]
TREE = Tree({"east": ["a", "b", "f"], "west": {"north": ["c", "d"], "south": ["e"]}})
LEAVES = ("a", "b", "f", "c", "d", "e")


# --- tables --------------------------------------------------------------------------------------


def table_of(seed: int, n: int, *, wide: bool = False) -> dict[str, list[Any]]:
    """Columns of all kinds with ties and some nulls; a permutation of its rows is the same table."""
    drawn = np.random.default_rng(seed)

    def some(values: Sequence[Any], nulls: float) -> list[Any]:
        places = drawn.integers(0, len(values), n)
        return [None if drawn.random() < nulls else values[i] for i in places]

    numbers = list(range(1000)) if wide else [0, 1, 2, 3, 7, 10]
    days = [date(2020, 1, 1) + timedelta(days=d) for d in (0, 1, 30, 366)]
    return {
        "number": some(numbers, 0.1 if seed % 2 else 0.0),
        "text": some(["p", "q", "r", "s"], 0.1),
        "node": some(LEAVES, 0.1 if seed % 3 else 0.0),
        "real": some([0.5, 0.25, 2.0, -1.0], 0.2 if seed % 5 == 0 else 0.0),
        "day": some(days, 0.1),
        "ill": some(["x", "y", "z"], 0.0),
    }


QUASI = ("number", "text", "node", "real", "day")
GOALS = {
    "k = 1": [KAnonymity(1)],
    "k = 2": [KAnonymity(2)],
    "k = 3": [KAnonymity(3)],
    "distinct": [KAnonymity(2), DistinctDiversity("ill", 2)],
    "entropy": [KAnonymity(2), EntropyDiversity("ill", Fraction(3, 2))],
    "recursive": [RecursiveDiversity("ill", Fraction(2), 2)],
    "closeness": [KAnonymity(2), Closeness("ill", Fraction(2, 5))],
}


def cases(seeds: range) -> list[tuple[Rows, dict[str, Tree]]]:
    """Random tables of 2 to 12 rows with one to three quasi-identifiers, with and without the tree."""
    found = []
    for seed in seeds:
        drawn = np.random.default_rng([seed, 1])
        quasi = [str(name) for name in drawn.permutation(QUASI)[: drawn.integers(1, 4)]]
        trees = {"node": TREE} if "node" in quasi and seed % 4 else {}
        found.append((rows_of(table_of(seed, int(drawn.integers(2, 13))), quasi, ["ill"]), trees))
    return found


def compared(seeds: range, goals: Sequence[Any], relaxed: bool, **mistakes: Any) -> tuple[int, int]:
    """How many tables could be cut, and for how many of these the reference finds the same."""
    tried = same = 0
    for rows, trees in cases(seeds):
        try:
            partition = mondrian(rows, goals, relaxed=relaxed, trees=trees)
        except InvalidParameter:
            everything = [Row((), (code,)) for code in rows.sensitive[0].codes.tolist()]
            assert not meets_of(rows, goals)(everything)
            continue
        reference = Reference(rows, meets_of(rows, goals), relaxed=relaxed, trees=trees, **mistakes)
        tried += 1
        same += list(described(partition, rows).items()) == list(reference.described().items())
    return tried, same


@pytest.mark.parametrize("relaxed", [False, True], ids=["strict", "relaxed"])
@pytest.mark.parametrize("goals", GOALS.values(), ids=GOALS)
def test_small_tables_are_cut_as_a_plain_recursion_cuts_them(goals: list[Any], relaxed: bool) -> None:
    tried, same = compared(range(150), goals, relaxed)
    assert same == tried > 50


@pytest.mark.parametrize("mistake", ["upto", "narrowest"])
def test_a_recursion_with_a_mistake_is_noticed(mistake: str) -> None:
    tried, same = compared(range(60), [KAnonymity(2)], False, **{mistake: True})
    assert same < tried


@pytest.mark.parametrize("relaxed", [False, True], ids=["strict", "relaxed"])
def test_small_groups_long_keys_and_sparse_tables_change_nothing(
    monkeypatch: pytest.MonkeyPatch, relaxed: bool
) -> None:
    monkeypatch.setattr(mondrian_cuts, "GROUP_ROWS", 3)
    monkeypatch.setattr(mondrian_cuts, "KEY_BITS", 0)
    monkeypatch.setattr(mondrian_cuts, "CELLS", 0)
    for goals in ([KAnonymity(2)], GOALS["distinct"]):
        tried, same = compared(range(100), goals, relaxed)
        assert same == tried > 50


# --- larger tables -------------------------------------------------------------------------------


@pytest.mark.parametrize("relaxed", [False, True], ids=["strict", "relaxed"])
@pytest.mark.parametrize("goals", [GOALS["k = 3"], GOALS["entropy"], GOALS["closeness"]], ids=["k", "l", "t"])
def test_every_row_is_in_a_class_and_every_class_meets_the_goals(goals: list[Any], relaxed: bool) -> None:
    for seed in range(5):
        rows = rows_of(table_of(seed, 700, wide=True), QUASI, ["ill"])
        partition = mondrian(rows, goals, relaxed=relaxed, trees={"node": TREE})
        assert partition.classes.min() == 0
        assert partition.classes.max() == partition.count - 1 > 20
        assert partition.sizes.sum() == 700
        assert Checker(rows, goals).met(partition.classes, partition.count).all()
        assert all(0 <= losses.min() <= losses.max() <= 1 for losses in partition.losses)


def test_parts_one_row_too_small_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Careless(mondrian_cuts.Cutter):
        def __init__(self, columns: Any, *, least: int, fits: Any, relaxed: bool) -> None:
            super().__init__(columns, least=least - 1, fits=fits, relaxed=relaxed)

    monkeypatch.setattr(front, "Cutter", Careless)
    rows = rows_of(table_of(0, 700, wide=True), QUASI, ["ill"])
    assert mondrian(rows, [KAnonymity(3)]).sizes.min() < 3


def permuted(seed: int, relaxed: bool) -> bool:
    """Whether a table of 300 rows with many ties gives the same classes in another order of its rows."""
    table = table_of(seed, 300)
    order = np.random.default_rng(seed).permutation(300)
    moved = {name: [values[i] for i in order] for name, values in table.items()}
    found = []
    for one in (table, moved):
        rows = rows_of(one, QUASI[:3], ["ill"])
        partition = mondrian(rows, GOALS["distinct"], relaxed=relaxed, trees={"node": TREE})
        found.append(list(described(partition, rows).items()))
    return found[0] == found[1]


@pytest.mark.parametrize("relaxed", [False, True], ids=["strict", "relaxed"])
def test_the_order_of_the_rows_does_not_matter(relaxed: bool) -> None:
    assert all(permuted(seed, relaxed) for seed in range(20))


def test_ties_dealt_in_the_order_of_the_rows_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "_dealt", lambda rows, columns: np.arange(rows.n, dtype=np.int32))
    assert not all(permuted(seed, True) for seed in range(20))


def test_no_threshold_in_a_class_leaves_k_rows_on_both_sides() -> None:
    for seed in range(20):
        rows = rows_of(table_of(seed, 200, wide=seed % 2 == 0), ("number", "text", "real", "day"))
        partition = mondrian(rows, [KAnonymity(5)])
        for c in range(partition.count):
            inside = partition.classes == c
            for coded in rows.quasi:
                lower = np.cumsum(np.bincount(coded.codes[inside], minlength=len(coded.values)))
                assert not ((lower >= 5) & (lower[-1] - lower >= 5)).any()


def test_no_node_of_a_tree_could_be_parted_into_children_of_k_rows() -> None:
    for seed in range(20):
        rows = rows_of(table_of(seed, 200), ("node", "number"))
        partition = mondrian(rows, [KAnonymity(5)], trees={"node": TREE})
        reference = Reference(rows, len, trees={"node": TREE})
        for c in range(partition.count):
            codes = rows.quasi[0].codes[partition.classes == c].tolist()
            if len(set(codes)) > 1:
                parts = reference._parts([Row((code,), ()) for code in codes], 0, False)
                assert min(map(len, parts)) < 5


# --- ties ----------------------------------------------------------------------------------------


def test_equal_rows_are_dealt_with_their_sensitive_values_spread() -> None:
    # 100 rows at 1 and one on each side: the cuts go through equal rows.
    table = {"age": [0] + [1] * 100 + [2], "ill": ["flu"] * 51 + ["none"] * 51}
    rows = rows_of(table, ["age"], ["ill"])
    partition = mondrian(rows, [KAnonymity(10), EntropyDiversity("ill", Fraction(19, 10))], relaxed=True)
    assert partition.labels == (("[0, 1]", "1", "[1, 2]"),)
    for c in range(partition.count):
        flu = np.count_nonzero(rows.sensitive[0].codes[partition.classes == c] == 0)
        assert abs(2 * flu - partition.sizes[c]) <= 2


def test_equal_rows_sorted_by_their_sensitive_values_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def homogeneous(rows: Rows, columns: Any) -> Any:
        return np.lexsort((rows.sensitive[0].codes, rows.quasi[0].codes)).astype(np.int32)

    monkeypatch.setattr(front, "_dealt", homogeneous)
    table = {"age": [0] + [1] * 100 + [2], "ill": ["flu"] * 51 + ["none"] * 51}
    goals = [KAnonymity(10), EntropyDiversity("ill", Fraction(19, 10))]
    assert mondrian(rows_of(table, ["age"], ["ill"]), goals, relaxed=True).count == 1


def test_the_relaxed_form_parts_ties_in_halves_and_the_strict_form_does_not() -> None:
    rows = rows_of({"age": [1] * 7 + [2, 3, 4]}, ["age"])
    assert mondrian(rows, [KAnonymity(4)]).count == 1
    relaxed = mondrian(rows, [KAnonymity(4)], relaxed=True)
    assert relaxed.sizes.tolist() == [5, 5]
    assert relaxed.labels == (("1", "[1, 4]"),)


def test_parts_that_show_the_same_are_one_class() -> None:
    # Halves of 24 rows at 1 show "1" twice.
    rows = rows_of({"age": [0] + [1] * 46 + [2]}, ["age"])
    partition = mondrian(rows, [KAnonymity(6)], relaxed=True)
    assert len(set(partition.labels[0])) == partition.count == 3
    assert partition.sizes.sum() == 48


# --- what is shown -------------------------------------------------------------------------------


def test_nulls_are_parted_from_numbers_where_enough_of_them_are_there() -> None:
    ages = [20, 21, 30, 31, None, None]
    partition = mondrian(rows_of({"age": ages}, ["age"]), [KAnonymity(2)])
    assert partition.labels == (("[20, 21]", "[30, 31]", "null"),)
    assert partition.losses[0].tolist() == [1 / 11, 1 / 11, 0]


def test_a_null_alone_stays_with_the_highest_numbers() -> None:
    partition = mondrian(rows_of({"age": [20, 21, 30, 31, None]}, ["age"]), [KAnonymity(2)])
    assert partition.labels == (("[20, 30]", "null or 31"),)
    assert partition.losses[0].tolist() == [10 / 11, 1]


def test_single_values_intervals_and_sets_are_told_apart() -> None:
    table = {
        "age": [24, 24, 24, 60, 61, 70],
        "real": [0.5, 1.0, 1.5, 2.0, 2.0, 2.0],
        "when": [datetime(2020, 1, 1, 12), datetime(2021, 1, 1)] * 3,
        "price": [Decimal("1.10")] * 5 + [Decimal("2.00")],
        "sex": ["f", "m", "f", "f", "f", "f"],
        "member": [True, False, True, True, True, True],
    }
    partition = mondrian(rows_of(table, list(table)), [KAnonymity(3)])
    assert list(zip(*partition.labels, strict=True)) == [
        ("24", "[0.5, 1.5]", "[2020-01-01 12:00:00, 2021-01-01 00:00:00]", "1.10", "{f, m}", "{false, true}"),
        ("[60, 70]", "2", "[2020-01-01 12:00:00, 2021-01-01 00:00:00]", "[1.10, 2.00]", "f", "true"),
    ]


def test_large_sets_show_their_ends_and_their_number() -> None:
    names = [f"town {i}" for i in range(10)]
    partition = mondrian(rows_of({"town": names * 2}, ["town"]), [KAnonymity(20)])
    assert partition.labels == (("{town 0, ..., town 9: 10 values}",),)
    assert partition.losses[0].tolist() == [1.0]


def test_trees_show_the_lowest_node_that_a_class_has_in_common() -> None:
    table = {"node": ["a", "b", "c", "d", "c", "e"]}
    partition = mondrian(rows_of(table, ["node"]), [KAnonymity(2)], trees={"node": TREE})
    assert partition.labels == (("east", "west"),)
    assert partition.losses[0].tolist() == [0.5, 0.5]
    finer = mondrian(
        rows_of({"node": [*table["node"], "e"]}, ["node"]), [KAnonymity(2)], trees={"node": TREE}
    )
    assert finer.labels == (("east", "north", "e"),)


def test_numbers_too_long_for_floats_are_as_wide_as_their_places() -> None:
    table = {"huge": [-1e308, 0.0, 1e308, 1e308], "close": [2**60, 2**60 + 1, 2**60 + 2, 2**60 + 3]}
    partition = mondrian(rows_of(table, ["huge", "close"]), [KAnonymity(2)])
    assert partition.classes.tolist() == [0, 0, 1, 1]
    assert [losses.tolist() for losses in partition.losses] == [[0.5, 0.0], [1 / 3, 1 / 3]]


def test_a_column_of_nulls_alone_is_never_cut() -> None:
    partition = mondrian(rows_of({"none": [None] * 4, "age": [1, 2, 3, 4]}, ["none", "age"]), [KAnonymity(2)])
    assert partition.labels == (("null", "null"), ("[1, 2]", "[3, 4]"))


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("goal", "named"),
    [
        (KAnonymity(5), r"KAnonymity\(k=5\)"),
        (DistinctDiversity("ill", 3), r"DistinctDiversity\(column='ill', l=3\)"),
    ],
)
def test_a_goal_that_the_whole_table_misses_is_named(goal: Any, named: str) -> None:
    rows = rows_of({"age": [1, 2, 3, 4], "ill": ["x", "y", "x", "x"]}, ["age"], ["ill"])
    with pytest.raises(InvalidParameter, match=named):
        mondrian(rows, [KAnonymity(2), goal])


def test_trees_of_other_columns_and_flags_that_are_none_are_refused() -> None:
    rows = rows_of({"age": [1, 2, 3, 4]}, ["age"])
    with pytest.raises(InvalidParameter, match="trees must be of quasi-identifiers, got one for 'node'"):
        mondrian(rows, [KAnonymity(2)], trees={"node": TREE})
    with pytest.raises(InvalidParameter, match="relaxed must be True or False"):
        mondrian(rows, [KAnonymity(2)], relaxed=1)  # type: ignore[arg-type]
