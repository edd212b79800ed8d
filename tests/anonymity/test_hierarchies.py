"""Hierarchies: labels, nesting, losses and refusals, against definitions written out."""

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.anonymity.hierarchies import Cuts, Dates, Listed, Prefix, Ranges, Tree
from sfumato.anonymity.levels import Levels, star
from sfumato.checks import exact
from sfumato.errors import InvalidParameter

WORLD = {"Europe": {"Iberia": ["Spain", "Portugal"], "North": ["Norway"]}, "Asia": ["Japan", "Korea"]}


def labels(levels: Levels, value: int) -> list[str]:
    return [levels.labels[level][levels.codes[level, value]] for level in range(levels.height + 1)]


def losses(levels: Levels, value: int) -> list[float]:
    return [float(levels.losses[level][levels.codes[level, value]]) for level in range(levels.height + 1)]


def nested(levels: Levels) -> bool:
    """The definition of refinement: who is together stays together."""
    count = levels.codes.shape[1]
    return all(
        low[i] != low[j] or high[i] == high[j]
        for low, high in pairwise(levels.codes.tolist())
        for i in range(count)
        for j in range(count)
    )


def test_ranges_double_their_width_from_a_public_origin() -> None:
    levels = Ranges(width=5, origin=2, factor=2, levels=3).levels_of([24, 2, 1])
    assert labels(levels, 0) == ["24", "[22, 27)", "[22, 32)", "[22, 42)", "*"]
    assert labels(levels, 1) == ["2", "[2, 7)", "[2, 12)", "[2, 22)", "*"]
    assert labels(levels, 2) == ["1", "[-3, 2)", "[-8, 2)", "[-18, 2)", "*"]


def test_an_end_belongs_to_the_range_that_begins_there_whatever_floats_make_of_it() -> None:
    # In float64 0.3 / 0.1 is below 3 and 0.7 / 0.1 is below 7.
    assert math.floor(0.3 / 0.1) == 2
    levels = Ranges(width=0.1, levels=1).levels_of([0.3, 0.7, 0.6999999])
    assert levels.labels[1] == ("[0.3, 0.4)", "[0.7, 0.8)", "[0.6, 0.7)")


@given(
    st.lists(
        st.one_of(
            st.integers(-(10**20), 10**20),
            st.floats(-1e12, 1e12),
            st.integers(-2000, 2000).map(lambda i: i / 10),
            st.decimals(-1000, 1000, places=3),
        ),
        min_size=1,
        max_size=12,
        unique=True,
    ),
    st.sampled_from([Fraction(1, 10), Fraction(3), Fraction(1, 3), Fraction(10**6)]),
    st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(-7, 3)]),
    st.integers(2, 5),
)
def test_numbers_lie_in_their_ranges_exactly(
    values: list, width: Fraction, origin: Fraction, factor: int
) -> None:
    hierarchy = Ranges(width=width, origin=origin, factor=factor, levels=3)
    levels = hierarchy.levels_of(values)
    assert nested(levels)
    for level in (1, 2, 3):
        wide = width * factor ** (level - 1)
        places = [math.floor((exact("v", value) - origin) / wide) for value in values]
        together = [[p == q for q in places] for p in places]
        codes = levels.codes[level].tolist()
        assert [[p == q for q in codes] for p in codes] == together


def test_the_loss_of_a_range_is_its_width_against_the_extent_of_the_table() -> None:
    levels = Ranges(width=5, levels=4).levels_of([0, 7, 40, None])
    assert losses(levels, 1) == [0, 5 / 40, 10 / 40, 20 / 40, 1, 1]
    assert losses(levels, 3) == [0, 0, 0, 0, 0, 1]
    assert labels(levels, 3) == ["null"] * 5 + ["*"]


def test_cuts_are_open_beyond_their_ends() -> None:
    levels = Cuts([[0, 18, 65], [18]]).levels_of([-3, 0, 17.5, 18, 65])
    assert levels.labels[1] == ("< 0", "[0, 18)", "[18, 65)", ">= 65")
    assert levels.labels[2] == ("< 18", ">= 18")
    assert losses(levels, 0) == [0, 3 / 68, 21 / 68, 1]
    # Where the cuts reach beyond the table, losses still do not fall from level to level.
    inside = Cuts([[18, 30], [30]]).levels_of([25, 35])
    assert losses(inside, 0) == sorted(losses(inside, 0))


@given(
    st.lists(st.integers(-30, 30).map(lambda i: i / 10), min_size=1, max_size=12, unique=True),
    st.lists(st.integers(-30, 30).map(lambda i: Fraction(i, 10)), min_size=1, max_size=6, unique=True).map(
        sorted
    ),
    st.sampled_from([float, lambda value: Decimal(str(value)), int]),
)
def test_numbers_lie_between_their_cuts_exactly(values: list, cuts: list, kind) -> None:  # type: ignore[no-untyped-def]
    numbers = list(dict.fromkeys(kind(value) for value in values))
    levels = Cuts([cuts]).levels_of(numbers)
    above = [sum(cut <= exact("v", number) for cut in cuts) for number in numbers]
    codes = levels.codes[1].tolist()
    assert [[p == q for q in codes] for p in codes] == [[p == q for q in above] for p in above]
    # A float compared with a fraction as it is in base 2 is on the wrong side of a cut.
    assert Fraction(3, 10) > 0.3
    assert Cuts([[0.3]]).levels_of([0.3]).labels[1] == (">= 0.3",)


@pytest.mark.parametrize("sign", [1, -1])
def test_ends_beyond_the_floats_are_exact_too(sign: int) -> None:
    # 1e308 and 1.5e308 are floats; 10**400 is beyond all of them.
    for cut in (Fraction(10**308), Fraction(10**400), Fraction(1, 10**400)):
        values = [-1.5e308, -1e308, -1.0, 0.0, 5e-324, 1e308, 1.5e308]
        codes = Cuts([[sign * cut]]).levels_of(values).codes[1].tolist()
        above = [exact("v", value) >= sign * cut for value in values]
        assert [code == codes[-1] for code in codes] == [each == above[-1] for each in above]
    for width in (10**400, Fraction(1, 10**400)):
        levels = Ranges(width=width, origin=sign * 10**400, levels=1).levels_of([0.5, 1.5])
        assert len(levels.labels[1]) == (1 if width > 1 else 2)


@pytest.mark.parametrize(
    ("cuts", "rule"),
    [
        ([[3, 2]], "increase"),
        ([[1, 2], [3]], "level below"),
        ([], "list of levels"),
        ([[]], "lists of numbers"),
        ("12", "list of levels"),
        ([["a"]], "a number"),
    ],
)
def test_cuts_that_are_none_are_refused(cuts: list, rule: str) -> None:
    with pytest.raises(InvalidParameter, match=rule):
        Cuts(cuts)


def test_a_tree_lifts_leaves_near_the_top_to_the_height_of_the_others() -> None:
    levels = Tree(WORLD).levels_of(["Japan", "Norway", "Spain", None])
    assert labels(levels, 0) == ["Japan", "Japan", "Asia", "*"]
    assert labels(levels, 1) == ["Norway", "North", "Europe", "*"]
    assert labels(levels, 2) == ["Spain", "Iberia", "Europe", "*"]
    assert labels(levels, 3) == ["null", "null", "null", "*"]
    assert losses(levels, 0) == [0, 0, 2 / 5, 1]
    assert losses(levels, 1) == [0, 0, 3 / 5, 1]
    assert losses(levels, 2) == [0, 2 / 5, 3 / 5, 1]


def test_a_tree_knows_children_leaves_and_common_ancestors() -> None:
    tree = Tree(WORLD)
    assert tree.children("*") == ("Europe", "Asia")
    assert tree.children("Spain") == ()
    assert tree.leaves("Europe") == ("Spain", "Portugal", "Norway")
    assert tree.leaves("Spain") == ("Spain",)
    assert tree.ancestor(["Spain", "Portugal"]) == "Iberia"
    assert tree.ancestor(["Spain", "Norway"]) == "Europe"
    assert tree.ancestor(["Spain", "Korea"]) == tree.root == "*"
    assert tree.ancestor(["Spain"]) == "Spain"
    assert tree.parent("Iberia") == "Europe"
    assert tree.height == 3


@pytest.mark.parametrize("top", ["World", "*"])
def test_nested_names_and_parents_are_the_same_tree(top: str) -> None:
    parents = {
        "Spain": "Iberia",
        "Portugal": "Iberia",
        "Norway": "North",
        "Iberia": "Europe",
        "North": "Europe",
        "Japan": "Asia",
        "Korea": "Asia",
        "Europe": top,
        "Asia": top,
    }
    values = ["Spain", "Japan", "Norway"]
    found = Tree(parents).levels_of(values)
    assert (
        found.labels
        == Tree(WORLD).levels_of(values).labels
        == Tree({"World": WORLD}).levels_of(values).labels
    )


def test_numbers_are_leaves_by_what_they_show() -> None:
    # A TOML file gives decimals: 1.0 there is the number 1 of a column.
    assert Tree({"low": [Decimal("1.0"), Decimal("2.50")]}).levels_of([1, 2.5]).labels[0] == ("1", "2.5")
    assert Listed([[Decimal("1.0"), "low"]]).levels_of([1.0]).labels[1] == ("low",)
    # And a column of decimals is found by its digits, or by the number.
    for name in ("1.10", "1.1", Decimal("1.1"), Decimal("1.100")):
        assert Listed([[name, "low"]]).levels_of([Decimal("1.10")]).labels[1] == ("low",)
        assert Tree({"low": [name], "high": ["9"]}).levels_of([Decimal("1.10")]).labels[1] == ("low",)
    assert Tree({"low": [1, 2], "high": ["3"]}).levels_of([1, 2.0, 3]).labels[1] == ("low", "high")


@pytest.mark.parametrize(
    ("names", "rule"),
    [
        ({"a": "b", "b": "a"}, "below itself"),
        ({"x": {"a": ["c"]}, "y": {"b": ["c"]}}, "once"),
        ({"x": {"*": ["c"]}}, "it is the top"),
        ({"x": 3, "y": []}, "a mapping or a list"),
        ({}, "a mapping of names"),
        ({"x": "y", "a": {"b": []}}, "a mapping or a list"),
        ({"x": ["null"]}, "missing must not be a name"),
        ({"x": [["a"]]}, "must be text"),
        ({3: ["a"]}, "must be text"),
        ({"a": "a"}, "below itself"),
        ({"a": "b", "b": "a", "c": "d"}, "below itself"),
        ({"a": "b", "b": "c", "c": "b"}, "below itself"),
        ({"a": {"b": ["a"]}}, "once"),
        ({str(i): str(i + 1) for i in range(61)}, "at most 60 steps .* got 61"),
    ],
)
def test_what_is_no_tree_is_refused(names: dict, rule: str) -> None:
    with pytest.raises(InvalidParameter, match=rule):
        Tree(names)


def test_two_tops_lie_below_the_star_and_a_long_chain_is_read_quickly() -> None:
    assert Tree({"a": "x", "b": "y", "c": "*"}).levels_of(["a", "b", "c"]).labels == (
        ("a", "b", "c"),
        ("x", "y", "c"),
        ("*",),
    )
    wide = Tree({f"group {i}": {f"part {i}": [f"{i} {j}" for j in range(3)]} for i in range(20_000)})
    assert len(wide.leaves("*")) == 60_000
    with pytest.raises(InvalidParameter, match="at most 60 steps"):
        Tree({str(i): str(i + 1) for i in range(50_000)})


def test_prefixes_hide_one_more_character_at_each_level() -> None:
    levels = Prefix().levels_of(["75013", "7501", "20000", None])
    assert labels(levels, 0) == ["75013", "7501*", "750**", "75***", "7****", "*"]
    assert labels(levels, 1) == ["7501", "7501*", "750**", "75***", "7****", "*"]
    assert losses(levels, 0) == [0, 2 / 3, 2 / 3, 2 / 3, 2 / 3, 1]
    assert losses(levels, 2) == [0, 0, 0, 0, 0, 1]
    assert nested(levels)


def test_empty_text_and_any_characters_have_prefixes() -> None:
    levels = Prefix().levels_of(["", "é", "e\u0301", "\U0001f600x"])
    assert levels.labels[1:] == (("**", "é*", "e*", "\U0001f600*"), ("*",))
    assert Prefix().levels_of([""]).labels == (("",), ("*",))
    assert Listed([["", "none"], ["a", "some"]]).levels_of(["", "a"]).labels[1] == ("none", "some")
    assert Tree({"none": [""], "some": ["a"]}).levels_of(["", "a"]).labels[1] == ("none", "some")


def test_whole_numbers_get_zeros_in_front() -> None:
    levels = Prefix(width=5, levels=2, mask="x").levels_of([1013, 75013])
    assert labels(levels, 0) == ["01013", "0101x", "010xx", "*"]


def test_dates_texts_and_datetimes_share_their_periods() -> None:
    day = dt.date(2024, 5, 13)
    levels = Dates().levels_of([day, dt.datetime(2024, 5, 13, 23, 59), "2024-05-13T08:00", "1999-12-31"])
    assert labels(levels, 0) == ["2024-05-13", "2024-05", "2024-Q2", "2024", "2020s", "*"]
    assert levels.codes[:, 0].tolist() == levels.codes[:, 1].tolist() == levels.codes[:, 2].tolist()
    assert labels(levels, 3)[2:5] == ["1999-Q4", "1999", "1990s"]


def test_a_time_with_a_zone_counts_as_its_day_in_utc_whatever_holds_it() -> None:
    import pandas as pd
    import polars as pl

    from sfumato.anonymity.rows import rows_of

    east = dt.datetime(2024, 1, 1, 0, 30, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    days = Dates(levels=("day",))
    for column in (
        [east],
        pl.Series([east]).dt.convert_time_zone("Asia/Tokyo"),
        pd.Series(pd.to_datetime([east], utc=True).tz_convert("Asia/Tokyo")),
        ["2024-01-01T00:30+02:00"],
    ):
        values = rows_of({"x": column}, ["x"]).quasi[0].values
        assert days.levels_of(values).labels[0] == ("2023-12-31",)
    with pytest.raises(InvalidParameter, match="1 distinct values"):
        days.levels_of(["0001-01-01T00:30+02:00"])


@given(st.lists(st.dates(), min_size=1, max_size=12, unique=True))
def test_periods_are_those_of_the_calendar(days: list[dt.date]) -> None:
    levels = Dates().levels_of(days)
    assert nested(levels)
    for i, day in enumerate(days):
        shown = labels(levels, i)
        assert shown[0] == day.isoformat()
        assert shown[1] == f"{day.year:04d}-{day.month:02d}"
        assert shown[2] == f"{day.year:04d}-Q{math.ceil(day.month / 3)}"
        assert shown[3:] == [f"{day.year:04d}", f"{day.year - day.year % 10:04d}s", "*"]


def test_the_loss_of_a_period_is_its_days_against_those_of_the_table() -> None:
    levels = Dates(levels=("day", "month", "year")).levels_of([dt.date(2023, 1, 1), dt.date(2024, 12, 31)])
    assert losses(levels, 0) == [0, 30 / 730, 364 / 730, 1]


def test_listed_labels_are_read_level_by_level() -> None:
    rows = [["a1", "a", "*"], ["a2", "a", "*"], ["b1", "b", "*"]]
    levels = Listed(rows).levels_of(["a1", "b1"])
    assert levels.labels == (("a1", "b1"), ("a", "b"), ("*",))
    assert Listed([["f", "*", "*"], ["m", "*", "*"]]).levels_of(["f", "m"]).labels == (("f", "m"), ("*",))
    # a2 is not in the table, but who reads "a" does not know.
    assert losses(levels, 0) == [0, 2 / 3, 1]
    assert losses(levels, 1) == [0, 0, 1]


@pytest.mark.parametrize(
    ("rows", "rule"),
    [
        ([["a", "x", "p"], ["b", "x", "q"]], "must not split"),
        ([["a", "x"], ["a", "y"]], "once"),
        ([["a", "x"], ["b"]], "2 to"),
        ([["a", "x"], ["b", "x", "y"]], "equally many"),
        ([], "a list of rows"),
        (["ab"], "2 to"),
        ([["a", ["b"]]], "must hold text"),
        ([["a", ""]], "must hold text"),
    ],
)
def test_labels_that_are_no_hierarchy_are_refused(rows: list, rule: str) -> None:
    with pytest.raises(InvalidParameter, match=rule):
        Listed(rows)


UNKNOWN = [
    (Ranges(width=5), ["secret", 3]),
    (Ranges(width=5), [True, 3]),
    (Cuts([[1]]), [float("inf"), Decimal("NaN"), 4]),
    (Tree(WORLD), ["secret", "Spain"]),
    (Tree(WORLD), ["Europe", "Spain"]),
    (Prefix(width=3), ["secret"]),
    (Prefix(width=3), [-1]),
    (Prefix(width=3), [1.5]),
    (Dates(), ["secret"]),
    (Dates(), [2024]),
    (Listed([["a", "b"]]), ["secret"]),
]


@pytest.mark.parametrize(("hierarchy", "values"), UNKNOWN)
def test_unknown_values_are_counted_and_never_shown(hierarchy: Ranges, values: list) -> None:
    with pytest.raises(InvalidParameter, match=r"column 'where' has [12] distinct values") as caught:
        hierarchy.levels_of(values, "where")
    assert not any(
        str(value) in str(caught.value) for value in ("secret", "-1", "1.5", "inf", "2024", "Europe")
    )


def test_a_text_that_looks_like_a_missing_cell_is_refused_until_they_are_told_apart() -> None:
    with pytest.raises(InvalidParameter, match="set `missing`"):
        Prefix().levels_of(["null", None])
    assert Prefix(missing="no answer").levels_of(["null", None]).labels[0] == ("null", "no answer")


def test_a_column_without_a_hierarchy_shows_its_values_or_nothing() -> None:
    assert star([1, 2, None], "x").labels == (("1", "2", "null"), ("*",))


def test_levels_without_a_common_top_are_refused() -> None:
    codes = np.array([[0, 1]], dtype=np.int32)
    with pytest.raises(InvalidParameter, match="must be one group"):
        Levels(codes, (("a", "b"),), (np.zeros(2),))


def test_levels_that_split_a_group_are_refused() -> None:
    codes = np.array([[0, 0, 1], [0, 1, 1], [0, 0, 0]], dtype=np.int32)
    shown = (("a", "b"), ("x", "y"), ("*",))
    lost = (np.zeros(2), np.zeros(2), np.ones(1))
    with pytest.raises(InvalidParameter, match="must not split"):
        Levels(codes, shown, lost, "age")


@pytest.mark.parametrize("wrong", [(0.5, 0.2, 1.0), (0.0, 1.5, 1.0), (-0.5, 0.0, 1.0)])
def test_losses_that_fall_or_leave_the_unit_interval_are_refused(wrong: tuple[float, ...]) -> None:
    codes = np.zeros((3, 1), dtype=np.int32)
    with pytest.raises(InvalidParameter, match="losses"):
        Levels(codes, (("a",), ("b",), ("*",)), tuple(np.array([loss]) for loss in wrong))


def test_the_loss_of_one_value_among_others_that_falls_is_refused() -> None:
    codes = np.array([[0, 1], [0, 1], [0, 0]], dtype=np.int32)
    lost = (np.array([0.5, 0.0]), np.array([0.2, 0.0]), np.ones(1))
    with pytest.raises(InvalidParameter, match="losses"):
        Levels(codes, (("a", "b"), ("c", "d"), ("*",)), lost)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Ranges(width=0),
        lambda: Ranges(width=1, factor=1),
        lambda: Ranges(width=1, levels=0),
        lambda: Ranges(width=1, origin=float("nan")),
        lambda: Ranges(width=1, missing=""),
        lambda: Prefix(mask="**"),
        lambda: Prefix(width=0),
        lambda: Prefix(width=3, levels=4),
        lambda: Dates(levels=("year", "month")),
        lambda: Dates(levels=()),
        lambda: Dates(levels="week"),
    ],
)
def test_parameters_that_break_a_rule_are_refused(make) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidParameter):
        make()
