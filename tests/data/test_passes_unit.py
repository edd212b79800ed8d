"""Rounds, batches and frames of passes over a small table, and the requests that one group-by answers."""

from fractions import Fraction
from functools import partial
from itertools import product

import narwhals as nw
import numpy as np
import polars as pl
import pytest

import sfumato as sf
from sfumato.data import count_requests, passes
from sfumato.data.conditions import Condition
from sfumato.data.count_requests import CellRequest, Refinement, TallyRequest
from sfumato.data.lazy_axes import GridAxis
from sfumato.data.lazy_table import LazyTable, Staged
from sfumato.data.matches import Matches
from sfumato.data.passes import Passes
from sfumato.data.portion import GroupKeys, Portion
from sfumato.data.requests import LatticeRequest, MatchRequest
from sfumato.data.rounds import Unanswered, together
from sfumato.errors import EngineFault
from sfumato.grid import Grid, Lattice
from sfumato.laws import SeededBits

TEAMS = GroupKeys(("team",), (("red",), ("blue",)), other=True)
BOTH = GroupKeys(("team", "member"), tuple(product(("red", "blue"), (True, False))))
MEMBERS = (Condition("member", Matches(), "is true"),)
GRID = GridAxis(Grid(0, 1, cells=2**10))
LATTICE = Lattice(Fraction(0), Fraction(1, 2**20), 0, 2**20)


def people(rows=400, seed=2):
    generator = np.random.default_rng(seed)

    def drawn(values):
        return [values[place] for place in generator.integers(0, len(values), rows)]

    x = [None if each > 0.9 else each for each in generator.uniform(0, 1, rows)]
    return pl.DataFrame(
        {"team": drawn(["red", "blue", "green", None]), "member": drawn([True, False, None]), "x": x}
    )


PEOPLE = people()


def opened(frame=PEOPLE):
    table = LazyTable(nw.from_native(frame.lazy()))
    return Passes(table, lambda groups: table.frame)


def in_one_round(held, requests):
    return held.settled([partial(held.ask, each) for each in requests])


def rows_of(portion, frame=PEOPLE):
    """The rows of every group of a portion, by plain filters."""
    if portion.where:
        frame = frame.filter(pl.col("member").fill_null(False))
    groups = portion.groups
    found = [
        frame.filter(*(pl.col(name) == part for name, part in zip(groups.by, key, strict=True)))
        for key in groups.keys
    ]
    if groups.other:
        listed = [key[0] for key in groups.keys]
        found.append(frame.filter(~pl.col("team").is_in(listed).fill_null(False)))
    return found


def cells_of(rows, grid=GRID.grid):
    values = rows["x"].drop_nulls().to_numpy()
    return np.unique(grid.index(values), return_counts=True)


PORTIONS = [Portion(where, groups) for where, groups in product(((), MEMBERS), (GroupKeys(), TEAMS, BOTH))]


@pytest.fixture
def group_bys(monkeypatch):
    """The group-bys of every scan."""
    seen, run = [], passes.aggregate
    monkeypatch.setattr(
        passes, "aggregate", lambda frame, sets, told: (seen.append(sets), run(frame, sets, told))[1]
    )
    return seen


@pytest.mark.parametrize("portion", PORTIONS, ids=lambda each: f"{each.groups.by} {len(each.where)}")
def test_answers_are_those_of_the_rows_of_each_group(portion):
    ask = opened().ask
    groups = rows_of(portion)
    assert ask(MatchRequest(portion, "x")) == [
        {"rows": len(rows), "present": rows["x"].count()} for rows in groups
    ]
    shift = 4
    tallied = ask(TallyRequest(portion, "team", ("blue", "red")))
    for rows, found, (cells, counts) in zip(
        groups, tallied, ask(CellRequest(portion, "x", GRID, shift)), strict=True
    ):
        listed = [int((rows["team"] == name).sum()) for name in ("blue", "red")]
        missing = rows["team"].null_count()
        assert found == (listed, len(rows) - sum(listed) - missing, missing)
        blocks, sizes = np.unique(
            GRID.grid.index(rows["x"].drop_nulls().to_numpy()) >> shift, return_counts=True
        )
        known = cells >= 0
        assert cells[known].tolist() == blocks.tolist()
        assert counts[known].tolist() == sizes.tolist()
        assert counts[~known].sum() == rows["x"].null_count()


@pytest.mark.parametrize("most", [512, 0], ids=["listed", "by group"])
@pytest.mark.parametrize("portion", PORTIONS, ids=lambda each: f"{each.groups.by} {len(each.where)}")
def test_refinements_of_groups_are_found_by_one_group_by_with_each_its_own_blocks(
    portion, most, monkeypatch, group_bys
):
    monkeypatch.setattr(count_requests, "MOST_LISTED", most)
    shift, held = 6, opened()
    wanted = {group: (group, group + 3) for group in range(portion.groups.count)}
    requests = [
        Refinement(portion, "x", GRID, shift, tuple((group, block) for block in blocks))
        for group, blocks in wanted.items()
    ]
    found = in_one_round(held, requests)
    assert [len(sets) for sets in group_bys] == [1]
    for group, rows in enumerate(rows_of(portion)):
        cells, counts = cells_of(rows)
        keep = np.isin(cells >> shift, wanted[group])
        assert [part.tolist() for part in found[group][group]] == [
            cells[keep].tolist(),
            counts[keep].tolist(),
        ]
        assert keep.any() or not len(rows)


def test_refinements_beside_others_find_the_same(group_bys):
    whole, teams = Portion(), Portion(MEMBERS, TEAMS)
    requests = [
        Refinement(whole, "x", GRID, 6, ((0, 3),)),
        Refinement(teams, "x", GRID, 5, ((0, 1), (2, 9))),
        MatchRequest(teams, "x"),
    ]
    alone = [opened().ask(each) for each in requests]
    group_bys.clear()
    held = opened()
    found = in_one_round(held, requests)
    assert [len(sets) for sets in group_bys] == [3]
    assert repr(found) == repr(alone)


def test_refinements_alone_leave_out_all_rows_that_none_of_them_needs(monkeypatch):
    crossed, run = [], passes.aggregate

    def seen(frame, sets, told):
        tables = run(frame, sets, told)
        crossed.extend(len(table) for table in tables)
        return tables

    monkeypatch.setattr(passes, "aggregate", seen)
    requests = [
        Refinement(Portion(), "x", GRID, 6, ((0, 3),)),
        Refinement(Portion(), "x", GRID, 5, ((0, 20),)),
    ]
    found = in_one_round(opened(), requests)
    cells, counts = cells_of(PEOPLE)
    for request, ((told, sizes),), rows in zip(requests, found, crossed, strict=True):
        keep = cells >> request.shift == request.blocks[0][1]
        assert (told.tolist(), sizes.tolist()) == (cells[keep].tolist(), counts[keep].tolist())
        # The cells of its own blocks, and one number for all rows of the other's.
        assert rows == keep.sum() + 1


def test_one_pass_answers_all_that_is_asked_in_a_round(group_bys):
    held, begun = opened(), []
    first, second = MatchRequest(Portion(), "x"), MatchRequest(Portion(MEMBERS), "x")

    def once():
        begun.append("once")
        return held.ask(first)[0]["rows"]

    def twice():
        begun.append("twice")
        # What is asked next depends on what was answered.
        return held.ask(first)[0]["rows"], held.ask(second)[0]["rows"]

    def never():
        begun.append("never")
        return "nothing asked"

    found = held.settled([twice, never, once, twice])
    members = PEOPLE["member"].sum()
    assert found == [(400, members), "nothing asked", 400, (400, members)]
    assert held.count == len(group_bys) == 2
    assert begun == ["twice", "never", "once", "twice", "twice", "once", "twice", "twice", "twice"]
    assert held.settled([once]) == [400]
    assert held.count == 2, "what is known is not asked again"
    assert held.settled([]) == []


def test_outside_of_a_round_a_request_is_answered_at_once():
    held = opened()
    assert held.ask(MatchRequest(Portion(), "x"))[0]["rows"] == 400
    assert held.ask(MatchRequest(Portion(), "x"))[0]["rows"] == 400
    assert held.count == 1


def test_what_makers_ask_for_together_takes_one_round():
    one, two = MatchRequest(Portion(), "x"), CellRequest(Portion(), "x", GRID)

    def in_turn(*makers):
        """A mutant of `together`: the second is not begun before the first is answered."""
        return [make() for make in makers]

    for ask_all, rounds in ((together, 1), (in_turn, 2)):
        held = opened()
        asked = lambda: ask_all(lambda: held.ask(one), lambda: held.ask(two))  # noqa: B023, E731
        held.settled([asked])
        assert held.count == rounds


def test_together_begins_all_makers_and_gives_what_they_give_in_order():
    begun = []

    def unanswered():
        begun.append(1)
        raise Unanswered

    with pytest.raises(Unanswered):
        together(unanswered, lambda: begun.append(2), unanswered)
    assert begun == [1, 2, 1]
    assert together(lambda: "a", lambda: None) == ["a", None]
    with pytest.raises(ZeroDivisionError):
        together(unanswered, lambda: 1 // 0)


def test_an_error_of_a_maker_ends_the_round():
    held = opened()
    with pytest.raises(ZeroDivisionError):
        held.settled([lambda: held.ask(MatchRequest(Portion(), "x")), lambda: 1 // 0])
    assert held.ask(TallyRequest(Portion(), "team", ("red",)))[0][0] == [PEOPLE["team"].eq("red").sum()]
    assert held.settled([lambda: held.ask(MatchRequest(Portion(), "x"))[0]["rows"]]) == [400]


def test_equal_requests_and_equal_sums_are_found_once(group_bys):
    held = opened()
    requests = [
        MatchRequest(Portion(), "x"),
        MatchRequest(Portion(), "x"),
        MatchRequest(Portion(), "member", Matches()),
        LatticeRequest(Portion(), "x", LATTICE, squares=False),
        LatticeRequest(Portion(), "x", LATTICE, squares=True),
    ]
    found = [each[0] for each in in_one_round(held, requests)]
    ((only,),) = group_bys
    assert only.keys == ()
    shared = sum("rows" in name for name in only.sums), sum("present" in name for name in only.sums)
    assert shared == (1, 2), "the rows once, and the values of each column once"
    assert found[0] == found[1] == {"rows": 400, "present": PEOPLE["x"].count()}
    points = np.rint(PEOPLE["x"].drop_nulls().to_numpy() * 2**20).astype(int).tolist()
    assert (found[3]["first"], found[3]["second"]) == (sum(points), 0)
    assert (found[4]["first"], found[4]["second"]) == (sum(points), sum(point**2 for point in points))


def test_keys_that_hold_the_same_are_one_column(group_bys):
    held = opened()
    requests = [CellRequest(Portion(), "x", GRID), CellRequest(Portion((), TEAMS), "x", GRID)]
    requests.append(TallyRequest(Portion(), "team", ("red", "blue")))
    in_one_round(held, requests)
    ((cells, by_team, tally),) = group_bys
    assert set(by_team.keys) == {*cells.keys, tally.keys[0]}


@pytest.mark.parametrize(("most", "scans"), [(1, 6), (2, 3), (5, 2), (6, 1), (48, 1)])
def test_more_requests_than_a_plan_takes_are_answered_by_more_scans(most, scans, monkeypatch):
    requests = [CellRequest(portion, "x", GRID) for portion in PORTIONS]
    expected = [repr(opened().ask(each)) for each in requests]
    monkeypatch.setattr(passes, "MOST_REQUESTS", most)
    held = opened()
    assert [repr(each) for each in in_one_round(held, requests)] == expected
    assert held.count == scans


def test_requests_of_one_group_by_stay_together_however_many(monkeypatch):
    monkeypatch.setattr(passes, "MOST_REQUESTS", 2)
    held = opened()
    requests = [
        MatchRequest(Portion(where), column) for where in ((), MEMBERS) for column in ("x", "member", "team")
    ]
    in_one_round(held, requests)
    assert held.count == 1


def test_groups_with_rows_of_their_own_are_read_from_their_own_frame():
    half = PEOPLE.head(100)
    table = LazyTable(nw.from_native(PEOPLE.lazy()))
    frames = {(): table.frame, ("team",): LazyTable(nw.from_native(half.lazy())).frame}
    held = Passes(table, lambda groups: frames[groups.by])
    whole, teams = MatchRequest(Portion(), "x"), MatchRequest(Portion((), TEAMS), "x")
    found = held.settled([lambda: held.ask(whole), lambda: held.ask(teams)])
    assert held.count == 2
    assert found[0][0]["rows"] == 400
    assert [each["rows"] for each in found[1]] == [len(rows) for rows in rows_of(teams.portion, half)]


def test_a_column_of_nulls_alone_has_all_its_rows():
    # Its values are a constant, of which an engine may make one row.
    nulls = pl.DataFrame({"x": pl.Series([None] * 7, dtype=pl.Null)})
    held = opened(nulls)
    assert held.ask(MatchRequest(Portion(), "x")) == [{"rows": 7, "present": 0}]
    cells, counts = held.ask(CellRequest(Portion(), "x", GRID))[0]
    assert (cells.tolist(), counts.tolist()) == ([-1], [7])


def test_what_an_engine_raises_is_told_by_its_kind_alone():
    def broken(values):
        raise ValueError("a secret of the rows")

    read = pl.col("x").map_batches(broken, return_dtype=pl.Float64, is_elementwise=True)
    table = LazyTable(nw.from_native(PEOPLE.lazy().with_columns(read)))
    with pytest.raises(EngineFault) as raised:
        Passes(table, lambda groups: table.frame).ask(MatchRequest(Portion(), "x"))
    assert "secret" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None


class Totals:
    """The answer to a request whose every row counts so often."""

    def __init__(self, rows, times):
        self._rows, self._times = rows, times

    def total(self, name):
        return [sum(self._rows[name]) * self._times]


@pytest.mark.parametrize("engine", ["polars", "duckdb", "another"])
@pytest.mark.parametrize("squares", [False, True])
def test_sums_of_parts_are_exact_for_any_number_of_rows(engine, squares):
    # All parts of the points and of their products, of one row at a time, are added up for 2**35 rows.
    widest = Lattice(Fraction(0), Fraction(1, 2**38), -(2**38), 2**38 - 1)
    x = [0.0, 1.0, 0.5, 1 / 3, 1e-9, None, 7.0, -1.0, 1 - 1e-9, -0.7]
    table = LazyTable(nw.from_native(pl.LazyFrame({"x": x})))
    table.engine = engine
    staged = Staged(table, ["x"], [Portion()])
    frame = staged.frame(table.frame)
    request = LatticeRequest(Portion(), "x", widest, squares)
    for stage in request.stages(staged, "s"):
        frame = frame.with_columns(*stage)
    terms = request.terms(staged, "s")
    found = frame.with_columns(*(value.alias(label) for label, value in terms.items())).collect()
    rows = {label: found[label].to_list() for label in terms}
    times = 2**35
    (sums,) = request.read(Totals(rows, times), {label: label for label in terms})
    points = widest.round([each for each in x if each is not None]).tolist()
    whole = [point - widest.low for point in points]
    assert sums["rows"] == len(x) * times
    assert sums["present"] == (len(x) - 1) * times
    assert sums["first"] == sum(whole) * times
    assert sums["second"] == (sum(point**2 for point in whole) * times if squares else 0)
    assert sums["second"] > 2**63 or not squares
    if engine == "another":
        assert all(abs(value) * times < 2**63 for label in terms for value in rows[label])


def test_refinements_by_wide_integer_keys_find_their_groups(monkeypatch):
    monkeypatch.setattr("sfumato.data.count_requests.MOST_LISTED", 0)
    keys = (2**60, 2**60 + 1)
    frame = pl.DataFrame(
        {"x": [i / 7 for i in range(900)], "k": pl.Series([keys[i % 2] for i in range(900)], dtype=pl.UInt64)}
    )
    schema = {"x": sf.Field(bounds=(0, 200)), "k": sf.Field(categories=keys)}
    median = sf.Quantiles(probs=(0.5,), budget=sf.PureDP(50), column="x", step=0.001, n_hint=450)
    found = []
    for table in (frame, frame.lazy()):
        data = sf.Dataset(table, unit="row", neighbours="add-remove", schema=schema)
        answers = sf.Session(data, budget=sf.PureDP(50), bits=SeededBits(5)).answer_by(median, ["k"])
        found.append([answers[key].outcome for key in answers.keys])
    assert found[0] == found[1]
