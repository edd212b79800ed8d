"""The first threshold that a count passes: what is counted, what it loses, how far it errs, how it prints."""

import itertools
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.hostile import assert_one_line

import sfumato as sf
from sfumato.audit import exact, worst_case
from sfumato.data.admission import admit
from sfumato.data.column import Column
from sfumato.grid import Ints
from sfumato.laws import SeededBits
from sfumato.laws.crossing import FirstCrossing
from sfumato.mechanisms import AboveThreshold
from sfumato.privacy import ZCDP, Amount, ApproxDP, PureDP
from sfumato.quantile_methods import read_query
from sfumato.query import parameters, raw
from sfumato.statistics import FirstPassing

RELATIONS = ("substitution", "add-remove")
NULLS = ("drop", "lower", "upper")
each_relation = pytest.mark.parametrize("relation", RELATIONS)
each_rule = pytest.mark.parametrize("nulls", NULLS)
each_noise = pytest.mark.parametrize("noise", ["auto", "laplace"])
each_direction = pytest.mark.parametrize("from_above", [False, True], ids=["upwards", "downwards"])
NAN, INF = float("nan"), float("inf")
AT = (0, 2.5, 5, 9)


def query(relation: str = "add-remove", **options: Any) -> FirstPassing:
    return FirstPassing(**{"budget": PureDP(1), "at": AT, "count": 2, "neighbours": relation, **options})


# --- what is counted -----------------------------------------------------------------------------


def expected(values: np.ndarray, nulls: str, from_above: bool) -> list[int]:
    """The counts in the order of the scan, straight from the documentation."""
    place = {"drop": None, "lower": -INF, "upper": INF}[nulls]
    kept = values[~np.isnan(values)] if place is None else np.where(np.isnan(values), place, values)
    if from_above:
        return [int((kept >= point).sum()) for point in reversed(AT)]
    return [int((kept <= point).sum()) for point in AT]


@each_rule
@each_direction
@pytest.mark.parametrize(
    "values",
    [
        [0.0, 2.5, 2.5000000001, 5, 9, 9.5, NAN, NAN, INF, -INF, -3],
        [NAN] * 3,
        [],
        list(np.linspace(-4, 14, 200_000)),
    ],
    ids=["corners", "nulls", "empty", "many"],
)
def test_the_counts_are_those_of_numpy(values, from_above, nulls):
    asked = query(nulls=nulls, from_above=from_above)
    array = np.array(values, dtype=np.float64)
    assert asked.look(admit(array)).tolist() == expected(array, nulls, from_above)


@each_relation
@each_direction
def test_without_noise_the_answer_is_the_first_that_passes(relation, from_above):
    values = np.array([1.0, 2, 3, 4, 6, 7, 8, 20])
    for count in range(9):
        release = sf.first_passing(
            values, at=AT, count=count, epsilon=10**6, neighbours=relation, from_above=from_above
        )
        scan = reversed(AT) if from_above else AT
        passed = (values >= point if from_above else values <= point for point in scan)
        order = list(reversed(AT)) if from_above else list(AT)
        first = next((t for t, inside in zip(order, passed, strict=True) if inside.sum() > count), None)
        assert release.value == first


def test_bounds_and_step_are_short_for_thresholds():
    listed = query(at=tuple(Fraction(i, 10) for i in range(11)))
    spaced = query(at=None, bounds=(0, 1), step=0.1)
    assert listed.thresholds.tolist() == spaced.thresholds.tolist()
    assert query(at=None, bounds=(0, 1), step=0.3).thresholds.tolist() == [0.0, 0.3, 0.6, 0.9]
    schema = {"x": sf.Field(bounds=(0, 10))}
    data = sf.Dataset({"x": [1.0, 4.0, 4.0]}, unit="row", neighbours="add-remove", schema=schema)
    asked = FirstPassing(column="x", budget=PureDP(10**5), step=1, count=1)
    assert sf.Session(data, budget=PureDP(10**6)).answer(asked).value == 4


# --- what it loses -------------------------------------------------------------------------------


@each_relation
@each_rule
@each_noise
@each_direction
def test_no_small_data_set_loses_more_than_was_charged(relation, nulls, noise, from_above):
    for budget in (PureDP(1), PureDP(3), ZCDP(0.1)):
        asked = query(relation, budget=budget, nulls=nulls, noise=noise, from_above=from_above)
        worst = worst_case(asked, size=3, cells=4)
        print(worst, nulls, noise)
        assert worst.loss.holds, worst
        # One-sided noise shows its loss on few thresholds; two-sided noise needs a run of them.
        assert worst.loss.tightness > (0.999 if noise == "auto" and isinstance(budget, PureDP) else 0.2)


@each_noise
@pytest.mark.parametrize(
    ("relation", "left", "right"),
    [
        # Added below a run of thresholds; and moved from its end to below it, where the last counts both.
        ("add-remove", [5000.0], [5000.0, -1.0]),
        ("substitution", [3998.5], [-1.0]),
    ],
    ids=RELATIONS[::-1],
)
def test_the_charge_is_reached_in_long_runs(noise, relation, left, right):
    asked = FirstPassing(
        budget=PureDP(1), at=range(4000), count=0, neighbours=relation, nulls="lower", noise=noise
    )
    loss = exact(asked, np.array(left), np.array(right))
    print(f"{relation}, {asked.described}: {loss.amount:.4f}")
    assert loss.holds
    assert loss.amount > 0.99


def scales_of_add_remove(self: FirstPassing, epsilon: Fraction) -> AboveThreshold:
    return AboveThreshold.for_order(epsilon, 0, one_sided=self.noise != "laplace")


def nulls_at_the_first_only(self: FirstPassing, column: Column) -> Ints:
    counts = _look(self, column)
    counts[1:] -= column.nulls()
    return counts


def out_of_order(self: FirstPassing, view: Ints) -> FirstCrossing:
    return _law(self, view[::-1])


_look, _law = FirstPassing.look, FirstPassing.law
BROKEN = {
    "the scales of add-remove under substitution": ("_scan", scales_of_add_remove, "substitution", "lower"),
    "nulls counted at the first threshold only": ("look", nulls_at_the_first_only, "add-remove", "lower"),
    "thresholds out of order": ("law", out_of_order, "add-remove", "drop"),
}


@pytest.mark.parametrize(("name", "new", "relation", "nulls"), BROKEN.values(), ids=BROKEN)
def test_a_broken_variant_is_caught(monkeypatch, name, new, relation, nulls):
    asked = query(relation, nulls=nulls)
    assert worst_case(asked, size=3, cells=4).loss.holds
    monkeypatch.setattr(FirstPassing, name, new)
    worst = worst_case(query(relation, nulls=nulls), size=3, cells=4)
    print(f"{new.__name__}: {worst.loss.amount:.4f}")
    assert not worst.loss.holds
    assert worst.loss.amount > 1.2


def test_a_scan_repeated_until_a_threshold_is_passed_is_caught():
    # Reporting no answer is an outcome; leaving it out and drawing again is not free.
    asked = query("add-remove", at=(0, 1), count=1)
    worst = 0.0
    for left in itertools.combinations_with_replacement((0.0, 1.0, 2.0), 3):
        for added in (0.0, 1.0, 2.0):
            laws = [asked.law(asked.look(admit(np.array(values)))) for values in (left, (*left, added))]
            logs = [law.logpmf(np.arange(2)) for law in laws]
            ratios = [one - np.log(np.exp(one).sum()) for one in logs]
            worst = max(worst, float(np.abs(ratios[0] - ratios[1]).max()))
            assert np.abs(laws[0].logpmf(np.arange(3)) - laws[1].logpmf(np.arange(3))).max() <= 1 + 1e-11
    print(f"repeated until passed: {worst:.4f}")
    assert worst > 1.5


# --- costs ---------------------------------------------------------------------------------------


@each_relation
@each_noise
def test_what_is_charged_is_what_the_event_costs(relation, noise):
    for epsilon in (Fraction(1, 100), 1, 50):
        asked = query(relation, budget=PureDP(epsilon), noise=noise)
        assert asked.event.pure_epsilon == asked.cost.epsilon == asked.mechanism.cost == epsilon
        near = query(relation, budget=ApproxDP(epsilon, 1e-6), noise=noise)
        assert near.cost == PureDP(epsilon)
        assert near.event == asked.event
        rho = Fraction(epsilon) ** 2 / 2
        concentrated = query(relation, budget=ZCDP(rho), noise=noise)
        assert concentrated.event.rho == concentrated.cost.rho == rho
        assert concentrated.mechanism.log_range**2 / 8 <= rho
        # The noise is not wider than that needs: a range bound is worth a third or nothing.
        assert concentrated.mechanism.log_range**2 / 8 > rho * Fraction(999, 1000)


def test_add_remove_needs_half_the_noise_of_substitution():
    scales = {r: (query(r).mechanism.threshold_scale, query(r).mechanism.query_scale) for r in RELATIONS}
    assert scales == {"substitution": (2, 2), "add-remove": (1, 1)}
    assert query("add-remove").error(0, 0.95) < query("substitution").error(0, 0.95)


@each_relation
@pytest.mark.parametrize(
    "budget", [PureDP(1e-12), PureDP(1e6), ApproxDP(1e-9, 1e-300), ZCDP(1e-24), ZCDP(10**11)], ids=str
)
def test_the_smallest_and_the_largest_budgets_are_answered(relation, budget):
    asked = query(relation, budget=budget, rows=50 if relation == "substitution" else None)
    outcome = raw(asked.law(asked.look(admit(np.arange(50.0)))).sample(SeededBits(7)))
    assert asked.possible(outcome)
    low, high = asked.interval(outcome, 0.999)
    value = asked.value(outcome)
    assert low <= (INF if value is None else value) <= high
    assert asked.notes(outcome)


# --- accuracy ------------------------------------------------------------------------------------


@each_relation
@each_noise
@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_the_error_covers_exactly_computed_answers(relation, noise, confidence):
    asked = query(relation, count=60, noise=noise)
    error = int(asked.error(0, confidence))
    covered = {error: 1.0, error // 5: 1.0}
    for reach in covered:
        # Counts just as far on each side of the public one as an answer must be right about, and between.
        steps = (60 - reach, 60, 60 + reach + 1)
        for counts in itertools.combinations_with_replacement(steps, len(AT)):
            law = asked.law(np.array(counts))
            truthful = [
                all(count <= 60 + reach for count in counts[:place])
                and (place == len(AT) or counts[place] > 60 - reach)
                for place in range(len(AT) + 1)
            ]
            masses = np.exp(law.logpmf(law.outcomes()))
            covered[reach] = min(covered[reach], float(masses[truthful].sum()))
    assert covered[error] >= confidence
    assert covered[error // 5] < confidence


def test_error_shrinks_with_epsilon_and_grows_with_confidence_and_thresholds():
    errors = [query(budget=PureDP(epsilon)).error(0, 0.95) for epsilon in (0.01, 1, 50)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > errors[1] > errors[2] >= 0
    assert query().error(0, 0.5) < query().error(0, 0.999)
    assert query(at=range(1000)).error(0, 0.95) > query().error(0, 0.95)
    for confidence in (0, 1, 1.5, NAN, "0.9", True):
        with pytest.raises(sf.InvalidParameter, match=r"^confidence must be"):
            query().error(0, confidence)


def test_the_interval_is_all_that_noise_in_counts_can_tell():
    # Counts next to the public one over all thresholds: any answer is within the error, the truth anywhere.
    assert query().interval((1,), 0.95) == (0.0, INF)
    assert query(from_above=True).interval((1,), 0.95) == (-INF, 9.0)
    assert query("substitution", rows=2).interval((1,), 0.95) == (INF, INF)
    with pytest.raises(sf.NotSupported, match="population_interval"):
        query().population_interval((1,), 0.95)


# --- releases ------------------------------------------------------------------------------------


def strict(text: str) -> Any:
    """JSON as other readers know it: without infinities."""
    return json.loads(text, parse_constant=lambda constant: pytest.fail(constant))


@each_relation
@each_direction
@pytest.mark.parametrize("count", [1, 10**6], ids=["passed", "none"])
@pytest.mark.parametrize("budget", [PureDP(100), ApproxDP(100, 1e-6), ZCDP(100)], ids=str)
def test_a_release_prints_and_survives_json_whether_or_not_a_threshold_was_passed(
    relation, from_above, count, budget
):
    values = [1.0, 2, 3, 4, 6, 7, 8]
    asked = {"at": AT, "count": count, "from_above": from_above, "neighbours": relation}
    release = sf.first_passing(values, budget=budget, **asked)
    again = sf.read_release(release.to_json())
    assert again == release
    assert hash(again) == hash(release)
    assert again.value == release.value
    stored = strict(release.to_json())
    assert stored["value"] == release.value
    assert (release.value is None) == (count == 10**6)
    shown = str(release).splitlines()
    assert shown[0] == "first passing of values"
    assert "none" in shown[1]
    assert ("none  [" in shown[1]) == (release.value is None)
    assert "<td" in release._repr_html_()
    assert again.interval(0.9) == release.interval(0.9)
    assert all(math.isfinite(part) or math.isinf(part) for part in release.interval(0.9))


def test_the_notes_tell_what_is_known_about_the_counts():
    asked = query(count=500)
    assert asked.notes((1,)) == (
        "at 95 % confidence there are more than 496 values at or below the answer and at most 504 values at "
        "or below any lower threshold",
    )
    assert asked.notes((4,)) == ("at 95 % confidence every threshold has at most 504 values at or below it",)
    (first, noise) = query(count=2, from_above=True).notes((0,))
    assert first == "at 95 % confidence there are at most 6 values at or above any higher threshold"
    assert noise.startswith("the answer is dominated by noise")
    assert query("substitution", rows=2).notes((0,)) == (
        "no threshold can be passed: the public number of rows is not above the count",
    )
    assert query("substitution", rows=2).value((0,)) is None


def test_a_query_survives_json_and_a_session_previews_it():
    for asked in (query(), query(at=None, bounds=(0, 1), step=0.1), query(at=np.array([1.5, 2.5]))):
        again = read_query(asked.name, json.loads(json.dumps(parameters(asked))))
        assert again == asked
        assert hash(again) == hash(asked)
        assert (again.event, again.described) == (asked.event, asked.described)
    data = sf.Dataset({"x": [1.0]}, unit="row", neighbours="add-remove")
    preview = sf.Session(data, budget=PureDP(2)).preview(
        FirstPassing(column="x", at=AT, count=500, budget=PureDP(1))
    )
    assert "counts within 4 of 500" in str(preview)


@pytest.mark.parametrize("outcome", [[], ["5"], ["-1"], ["1", "1"]], ids=str)
def test_outcomes_that_no_scan_draws_are_not_read(outcome):
    stored = {**sf.first_passing([1.0], at=AT, count=0, epsilon=1).to_dict(), "outcome": outcome}
    with pytest.raises(sf.InvalidParameter):
        sf.read_release(stored)


# --- hostile input -------------------------------------------------------------------------------


WRONG = {
    "no thresholds": {"at": ()},
    "falling": {"at": (3, 1)},
    "repeated": {"at": (1, 1)},
    "repeated as floats": {"at": (Fraction(1, 10), Fraction(1, 10) + Fraction(1, 10**30))},
    "NaN": {"at": (1, NAN)},
    "infinite": {"at": (1, INF)},
    "text": {"at": ("1", "2")},
    "one text": {"at": "12"},
    "a number": {"at": 5},
    "booleans": {"at": (False, True)},
    "a matrix": {"at": np.zeros((2, 2))},
    "too large": {"at": (0, 1e200)},
    "one too large": {"at": (1e200,)},
    "too many": {"at": range(2**21)},
    "both": {"bounds": (0, 1), "step": 0.5},
    "neither": {"at": None},
    "bounds without step": {"at": None, "bounds": (0, 1)},
    "a step of zero": {"at": None, "bounds": (0, 1), "step": 0},
    "a step too fine": {"at": None, "bounds": (0, 1), "step": 1e-9},
    "a step below float64": {"at": None, "bounds": (10**16, 10**16 + 1), "step": 0.25},
    "bounds that fall": {"at": None, "bounds": (1, 0), "step": 0.5},
    "no count": {"count": None},
    "half a count": {"count": 2.5},
    "a negative count": {"count": -1},
    "a true count": {"count": True},
    "a huge count": {"count": 2**60},
    "a direction in words": {"from_above": "yes"},
    "Gaussian noise": {"noise": "gaussian"},
    "another null rule": {"nulls": "skip"},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_parameters_that_break_a_rule_are_refused_in_one_line_without_a_charge(wrong):
    with pytest.raises(sf.SfumatoError) as caught:
        sf.first_passing([987654.321], **{"at": AT, "count": 2, "epsilon": 1, **wrong})
    assert_one_line(caught.value)
    ledger = sf.MemoryLedger(PureDP(1), neighbours="add-remove")
    data = sf.Dataset({"x": [987654.321]}, unit="row", neighbours="add-remove")
    session = sf.Session(data, budget=PureDP(1), ledger=ledger)
    with pytest.raises(sf.SfumatoError):
        session.answer(FirstPassing(**{"budget": PureDP(1), "column": "x", "at": AT, "count": 2, **wrong}))
    assert ledger.spent == Amount()


@pytest.mark.parametrize("values", [["a", "b"], [True, False], np.array(["x"], dtype=object)], ids=str)
def test_columns_without_numbers_are_refused(values):
    with pytest.raises(sf.SchemaMismatch):
        sf.first_passing(values, at=AT, count=0, epsilon=1)


@each_relation
@pytest.mark.parametrize("values", [[], [None], [NAN] * 4, [INF, -INF]], ids=str)
def test_columns_with_next_to_nothing_are_answered(relation, values):
    release = sf.first_passing(values, at=AT, count=1, epsilon=1, neighbours=relation)
    assert release.cost == PureDP(1)
    assert sf.read_release(release.to_json()) == release
    if relation == "substitution" and len(values) <= 1:
        assert release.value is None


@pytest.mark.parametrize("at", [(1, 10**400, 5), (5, 10**400, 10**401, 3), (10**400, 1)])
def test_thresholds_beyond_float64_that_do_not_rise_are_refused_by_name(at):
    with pytest.raises(sf.InvalidParameter, match=r"^at must increase"):
        FirstPassing(budget=PureDP(1), at=at, count=1)
