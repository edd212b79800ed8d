"""The fuzzer in short: cases that must pass, defects that must be found, what the grammar draws."""

import pytest
from tests import engines
from tests.fuzz.campaign import explained, judged, searched
from tests.fuzz.cases import LAZY, MEMORY, ROUTES, SPARK
from tests.fuzz.comparison import Tally
from tests.fuzz.defects import DEFECTS
from tests.fuzz.grammar import draw_case
from tests.fuzz.shrinking import shrunk
from tests.fuzz.values import TYPES

from sfumato.quantile_methods import METHODS, Quantiles
from sfumato.statistics import STATISTICS

CASES, PARTS = 200, 4


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_tells_neighbours_apart(part):
    seeds = range(part, CASES, PARTS)
    tally, failed = searched(seeds, MEMORY + LAZY)
    assert not failed, "\n".join(explained(draw_case(seed)) or text for seed, text in failed.items())
    # Most cases are answered, and their laws compared.
    assert tally.cases == len(seeds)
    assert tally.answers > 0.5 * tally.cases
    assert tally.losses > 0.5 * tally.cases
    assert tally.references > tally.cases


def test_nothing_tells_neighbours_apart_on_spark():
    engines.SPARK.session()  # what Spark logs when it starts is not about a case
    tally, failed = searched(range(10), SPARK)
    assert not failed, "\n".join(explained(draw_case(seed, SPARK)) or text for seed, text in failed.items())
    assert tally.answers > 0


@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_found(name):
    defect = DEFECTS[name]
    for seed in range(defect.cases):
        case = draw_case(seed, defect.engines, ("session",))
        with defect.planted():
            found = {difference.check for difference in judged(case)}
        if defect.check in found:
            assert not judged(case), "the case fails without the defect"
            return
    pytest.fail(f"{name} was not found in {defect.cases} cases")


def test_a_failing_case_is_made_smaller():
    defect = DEFECTS["a filter that ignores its condition"]
    with defect.planted():
        case = next(
            case
            for case in (draw_case(seed, ("numpy",), ("session",)) for seed in range(defect.cases))
            if len(case.rows) > 2 and judged(case)
        )
        small = shrunk(case, lambda smaller: bool(judged(smaller)))
        assert judged(small)
    assert len(str(small)) < len(str(case))
    assert len(small.rows) <= len(case.rows)


def test_a_case_follows_from_its_number():
    for seed in range(20):
        assert str(draw_case(seed)) == str(draw_case(seed))
    assert str(draw_case(1)) != str(draw_case(2))


def test_the_grammar_reaches_every_engine_route_type_and_statistic():
    cases = [draw_case(seed) for seed in range(1500)]
    asks = [ask for case in cases for ask in case.asks]
    assert {case.engine for case in cases} == {*MEMORY, *LAZY}
    assert {case.route for case in cases} == {*ROUTES}
    assert {column.type for case in cases for column in case.columns} == {*TYPES}
    assert {ask.statistic for ask in asks} == {*STATISTICS.values(), Quantiles}
    methods = {type(ask.parameters["method"]) for ask in asks if ask.statistic is Quantiles}
    assert methods == {*METHODS.values()}
    assert {type(case.budget).__name__ for case in cases} == {"PureDP", "ApproxDP", "ZCDP"}
    assert {len(case.table("left")) for case in cases} >= {0, 1, 2, 3, 6} - {0}
    assert {case.neighbours for case in cases} == {"add-remove", "substitution"}


def test_neighbours_differ_in_one_person():
    for seed in range(300):
        case = draw_case(seed)
        sides = [where for where, _ in case.rows if where != "both"]
        if case.rows_per_unit is None:
            assert sorted(sides) == (["left", "right"] if case.neighbours == "substitution" else ["left"])
        else:
            place = [column.name for column in case.columns].index(case.unit)
            for side in set(sides):
                people = {repr(row[place]) for where, row in case.rows if where == side}
                assert len(people) == 1, people


def test_a_tally_adds_up():
    assert Tally(cases=1, losses=2) + Tally(cases=3) == Tally(cases=4, losses=2)
