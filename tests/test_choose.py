"""Choices at the front door and in a session: answers, costs, refusals, and audits of random neighbours."""

import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.hostile import assert_one_line

import sfumato as sf
from sfumato.laws import SeededBits
from sfumato.mechanisms.exponential import VARIANTS
from sfumato.privacy import Amount, ConcentratedEvent, RangeEvent
from sfumato.statistics.picks import rounded_up

FILMS = ("Harbour", "Orchard", "The Long Tide", "Night Ferry")
SCORES = [120, 480, 300, 10]
CANARY = 987654321.123
every_method = pytest.mark.parametrize("method", VARIANTS)


def choose(scores=SCORES, candidates=FILMS, **others):
    given = {"sensitivity": 1, "epsilon": 1, "bits": SeededBits(5)} | others
    return sf.choose(candidates, scores, **given)


def query(**others):
    given = {"candidates": FILMS, "sensitivity": 1, "budget": sf.PureDP(1)} | others
    return sf.Choose(**given)


# --- answers -----------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize(
    "scores",
    [
        SCORES,
        tuple(SCORES),
        np.array(SCORES),
        np.array(SCORES, dtype=object),
        np.array(SCORES, dtype=np.uint16),
        pd.Series(SCORES, index=FILMS),
        pd.Series(SCORES, dtype="Int64"),
        pl.Series(SCORES),
        pa.array(SCORES),
        pa.chunked_array([SCORES[:1], SCORES[1:]]),
    ],
    ids=lambda scores: type(scores).__name__,
)
def test_the_best_candidate_is_chosen_from_any_kind_of_scores(method, scores):
    assert choose(scores, method=method).value == "Orchard"


@pytest.mark.parametrize("method", ["flip", "exponential"])
def test_fractions_and_floats_count_with_their_exact_values(method):
    for scores in (
        [Fraction(1, 3), 10**3, 2.5, 0],
        np.array([0.5, 1e3, 2.5, 0]),
        pl.Series([0.5, 1e3, 2.5, 0]),
    ):
        assert choose(scores, method=method).value == "Orchard"
    assert choose(np.float32([0, 0, 900, 1]), method=method).value == "The Long Tide"


@every_method
def test_several_picks_come_in_the_order_of_choice(method):
    release = choose(picks=3, epsilon=3, method=method)
    assert release.value == ("Orchard", "The Long Tide", "Harbour")
    assert release.query.labels() == ("1", "2", "3")


@every_method
def test_huge_scores_are_told_apart(method):
    assert choose([10**9, 10**9 + 600, 0, -(10**9)], method=method).value == "Orchard"
    if method != "base2":
        assert choose([1e300, -1e300, 1e9, 5e-324], method=method).value == "Harbour"
        assert choose([1e308, 1.5e308, -1e308, 0.0], method=method).value == "Orchard"


@every_method
def test_adding_a_constant_changes_nothing(method):
    for shift in (10**30, -(10**9), 7):
        moved = [score + shift for score in (3, 4, 4, 0)]
        laws = [query(method=method).law(scores) for scores in ((3, 4, 4, 0), moved)]
        assert (laws[0].logpmf(np.arange(4)) == laws[1].logpmf(np.arange(4))).all()
        drawn = [law.sample(SeededBits(2), 200) for law in laws]
        assert (drawn[0] == drawn[1]).all()


@every_method
def test_ties_are_uniform(method):
    law = query(method=method).law([7, 7, 7, 7])
    assert law.probability(np.arange(4)) == pytest.approx([0.25] * 4, abs=1e-12)
    several = query(method=method, picks=2).law([7, 7, 7, 7])
    assert [math.exp(several.logpmf(o)) for o in several.outcomes()] == pytest.approx([1 / 12] * 12)


@every_method
def test_one_candidate_is_the_answer(method):
    release = choose([3], ["only"], method=method)
    assert release.value == "only"
    assert release.query.radius(0.95) == 0
    assert release.cost == sf.PureDP(1)


@pytest.mark.parametrize(
    "candidates",
    [
        ["a", "b"],
        ("a", 2),
        np.array(["a", "b"]),
        np.array([3, 4]),
        range(2),
        pd.Series(["x", "y"]),
        pl.Series([1.5, 2.5]),
        [True, "maybe"],
        [0.1, -3],
        ["é\n", "\0"],
        [10**300, "a" * 1_000],
    ],
    ids=ascii,
)
def test_labels_of_any_plain_kind_survive_json(candidates):
    release = choose([0, 10**4], candidates)
    assert release.value == list(candidates)[1]
    assert type(release.value) in (str, int, float, bool)
    again = sf.read_release(release.to_json())
    assert again == release
    assert again.value == release.value
    assert type(again.value) is type(release.value)
    assert str(again) == str(release)
    assert len(str(release).splitlines()) == 4 + len(release.notes)


# --- what a reader sees ------------------------------------------------------------------------


def test_text_states_choice_cost_relation_method_promise_and_accuracy():
    assert str(sf.Release(query(monotone=True), (1,), private=True)) == "\n".join(
        [
            "choice of candidates",
            "  choice  Orchard",
            "  cost: PureDP(epsilon=1.0), add-remove: "
            "one row is added or removed; the number of rows is private",
            "  method: permute-and-flip with a fall of 1 a unit of score",
            "  note: rests on the caller's promise that one record moves a score by at most 1, "
            "all in one direction",
            "  note: its score is within 3.41 of the best, at 95 % confidence",
        ]
    )


def test_several_choices_are_a_table():
    release = sf.Release(query(picks=2, method="exponential"), (2, 0), private=True)
    lines = str(release).splitlines()
    assert [line.split() for line in lines[1:4]] == [
        ["value"],
        ["1", "The", "Long", "Tide"],
        ["2", "Harbour"],
    ]
    assert "exponential mechanism with a fall of 0.25 a unit of score, 2 times in turn" in release.method
    assert "of the best left" in release.notes[1]
    assert release._repr_html_().count("<tr>") == 3


def test_a_choice_has_no_interval_and_says_what_it_has():
    release = choose()
    with pytest.raises(sf.NotSupported, match=r"release\.query\.radius\(confidence\)"):
        release.interval(0.95)
    with pytest.raises(sf.NotSupported, match="population_interval needs a mean"):
        release.population_interval(0.95)
    record = json.loads(release.to_json())
    assert record["interval"] is None
    assert record["value"] == release.value
    assert json.loads(choose(picks=2).to_json())["value"] == list(choose(picks=2).value)


def test_the_stated_radius_is_rounded_up():
    for epsilon in (Fraction(1, 7), 1, 3, 10**4):
        asked = query(budget=sf.PureDP(epsilon))
        text = asked.notes((0,))[1].split("within ")[1].split(" of")[0].replace(",", "")
        assert asked.radius(0.95) <= float(text) <= asked.radius(0.95) * 1.02


def test_html_escapes_labels():
    release = choose([0, 900], ["<i>", "<script>"])
    assert release.value == "<script>"
    assert "<script" not in release._repr_html_()


@pytest.mark.parametrize(
    "outcome", [["4"], ["-1"], ["0", "1"], [], ["1.0"]], ids=["beyond", "below", "two", "none", "real"]
)
def test_an_outcome_that_is_no_candidate_is_not_read(outcome):
    with pytest.raises(sf.InvalidParameter, match="stored must be a release"):
        sf.read_release({**choose().to_dict(), "outcome": outcome})


def test_the_same_candidate_twice_is_not_read():
    with pytest.raises(sf.InvalidParameter, match="stored must be a release"):
        sf.read_release({**choose(picks=2).to_dict(), "outcome": ["1", "1"]})


# --- costs -------------------------------------------------------------------------------------


@every_method
def test_a_budget_is_charged_exactly(method):
    for budget, cost in (
        (sf.PureDP(0.1), sf.PureDP(0.1)),
        (sf.ApproxDP(0.3, 1e-6), sf.PureDP(0.3)),
        (sf.ZCDP(0.1), sf.ZCDP(0.1)),
    ):
        for picks in (1, 3):
            asked = query(budget=budget, method=method, picks=picks)
            assert asked.cost == cost
            ledger = sf.MemoryLedger(budget, neighbours="substitution")
            assert ledger.charge(asked).price == Amount.of(cost)


def test_weights_cost_a_quarter_of_the_rho_of_a_pure_bound():
    for method, rho in (("flip", Fraction(1, 2)), ("exponential", Fraction(1, 8)), ("base2", Fraction(1, 8))):
        ledger = sf.MemoryLedger(sf.ZCDP(1), neighbours="substitution")
        assert ledger.charge(query(method=method)).price == Amount(rho=rho)
        ledger = sf.MemoryLedger(sf.ZCDP(1), neighbours="substitution")
        assert ledger.charge(query(method=method, picks=4)).price == Amount(rho=rho / 4)


def test_a_rho_buys_the_range_whose_square_it_is_eight_times():
    asked = query(budget=sf.ZCDP(Fraction(1, 8)), method="exponential")
    assert asked.mechanism.each.event == RangeEvent(1, "exponential")
    assert asked.event == ConcentratedEvent(Fraction(1, 8), "exponential")
    assert query(budget=sf.ZCDP(Fraction(1, 8))).mechanism.each.epsilon == Fraction(1, 2)


def test_accuracy_is_known_before_the_data_and_gets_better_with_the_budget():
    assert query(monotone=True).radius(0.95) == pytest.approx(math.log(3 / 0.1), rel=1e-9)
    assert query().radius(0.95) == pytest.approx(2 * math.log(3 / 0.1), rel=1e-9)
    assert query(sensitivity=5).radius(0.95) == pytest.approx(10 * math.log(3 / 0.1), rel=1e-9)
    radii = [query(budget=sf.PureDP(e)).radius(0.95) for e in (0.1, 1, 10)]
    assert radii == sorted(radii, reverse=True)
    assert query().radius(0.5) < query().radius(0.99) < query(picks=2).radius(0.99)


# --- audits ------------------------------------------------------------------------------------


def losses(asked, monotone, seed, trials=150):
    """The largest log ratio over random small scores and random changes of one record."""
    rng, worst = np.random.default_rng(seed), 0.0
    outcomes = list(asked.law([0] * len(asked.candidates)).outcomes())
    for _ in range(trials):
        scores = rng.integers(0, 6, len(FILMS))
        low = 0 if monotone else -1
        moved = scores + rng.integers(low, 2, len(FILMS)) * rng.choice([-1, 1])
        if rng.random() < 0.2:  # one far candidate, and the two at the ends move in opposite directions
            scores = np.array([0, 60, 60, 60])
            moved = scores + np.array([1, -1, -1, -1] if not monotone else [1, 0, 0, 0])
        laws = [asked.law(each) for each in (scores, moved)]
        left, right = (np.array([law.logpmf(o) for o in outcomes]) for law in laws)
        worst = max(worst, float(np.abs(left - right).max()))
    return worst


@every_method
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("picks", [1, 2])
def test_no_random_neighbours_lose_more_than_was_charged(method, monotone, picks):
    asked = query(method=method, monotone=monotone, picks=picks)
    worst = losses(asked, monotone, seed=3)
    print(f"{method}, monotone={monotone}, {picks} picks: {worst:.4f} of 1")
    assert 0.45 < worst <= 1 + 1e-9
    if method == "flip" and picks == 1:
        assert worst > 0.999


@every_method
def test_the_audit_catches_scores_that_are_wrongly_called_monotone(method):
    worst = losses(query(method=method, monotone=True), monotone=False, seed=3)
    print(f"{method}, called monotone: {worst:.4f} of 1")
    assert worst > 1.9


@every_method
def test_a_replaced_record_costs_twice_under_the_constant_of_add_remove(method):
    # One record moves from one count to another: what "monotone" under substitution would cost.
    wrong = query(candidates=("a", "b"), method=method, monotone=True)
    ratio = wrong.law([0, 40]).logpmf(0) - wrong.law([1, 39]).logpmf(0)
    assert abs(ratio) == pytest.approx(2, abs=1e-9)


# --- refusals ----------------------------------------------------------------------------------


def test_monotone_goes_with_add_remove_only():
    assert query().neighbours == "substitution"
    assert query(monotone=True).neighbours == "add-remove"
    assert query(neighbours="add-remove").mechanism.each.rate == Fraction(1, 2)
    assert choose(monotone=True, neighbours="add-remove").query.mechanism.each.rate == 1
    for make in (query, choose):
        with pytest.raises(sf.InvalidParameter, match="can raise one score and lower another"):
            make(monotone=True, neighbours="substitution")


@pytest.mark.parametrize(
    "scores",
    [
        [CANARY, math.nan, 1, 2],
        [CANARY, math.inf, 1, 2],
        [CANARY, -math.inf, 1, 2],
        np.array([CANARY, np.nan, 1, 2]),
        [CANARY, None, 1, 2],
        [CANARY, True, 1, 2],
        [CANARY, "987654321", 1, 2],
        [CANARY, 1j, 1, 2],
        pl.Series([CANARY, None, 1, 2]),
        pd.Series([987654321, None, 1, 2], dtype="Int64"),
        pd.Series(["987654321"] * 4),
        pa.array([CANARY, None, 1, 2]),
        [CANARY, 1, 2],
        [CANARY] * 5,
        [],
        np.array([[CANARY] * 4]),
        CANARY,
        None,
        {CANARY: 1},
        {CANARY, 1.0},
        "987654321",
        b"1234",
    ],
    ids=lambda scores: type(scores).__name__,
)
def test_scores_that_are_no_finite_numbers_are_refused_without_showing_one(scores):
    with pytest.raises(sf.InvalidParameter, match=r"^scores must be") as refused:
        choose(scores)
    assert_one_line(refused.value)
    assert "nan" not in str(refused.value)


def test_rational_weights_need_integers():
    with pytest.raises(sf.InvalidParameter, match="scores must be integers for 'base2'"):
        choose([1.0, 2, 3, 4], method="base2")


BAD = {
    "no candidates": ({"candidates": []}, "candidates must be 1 to "),
    "text": ({"candidates": "abcd"}, "candidates must be a list of labels"),
    "a set": ({"candidates": {"a", "b"}}, "candidates must be a list of labels"),
    "nothing": ({"candidates": None}, "candidates must be a list of labels"),
    "a number": ({"candidates": 4}, "candidates must be a list of labels"),
    "twice": ({"candidates": ["a", "b", "a", "c"]}, "candidates must be different"),
    "equal numbers": ({"candidates": [1, True, 2, 3]}, "candidates must be different"),
    "equal texts": ({"candidates": [1, "1", 2, 3]}, "candidates must be different"),
    "a list within": ({"candidates": [["a"], "b", "c", "d"]}, "candidates must be texts, finite numbers"),
    "NaN": ({"candidates": [math.nan, 1, 2, 3]}, "candidates must be texts, finite numbers"),
    "None": ({"candidates": [None, 1, 2, 3]}, "candidates must be texts, finite numbers"),
    "long number": ({"candidates": [10**5000, 1, 2, 3]}, "candidates must be texts, finite numbers"),
    "no sensitivity": ({"sensitivity": 0}, "sensitivity must be positive"),
    "infinite sensitivity": ({"sensitivity": math.inf}, "sensitivity must be finite"),
    "sensitivity text": ({"sensitivity": "1"}, "sensitivity must be a number"),
    "monotone number": ({"monotone": 1}, "monotone must be True or False"),
    "no picks": ({"picks": 0}, "picks must be in "),
    "five picks": ({"picks": 5}, "picks must be at most the 4 options"),
    "real picks": ({"picks": 1.0}, "picks must be a whole number"),
    "method": ({"method": "gumbel"}, "method must be one of 'flip', 'exponential', 'base2'"),
    "relation": ({"neighbours": "bounded"}, "neighbours must be one of"),
    "tiny epsilon": ({"epsilon": 1e-13}, "epsilon must be in "),
    "no epsilon": ({"epsilon": 0}, "epsilon must be positive"),
    "bits": ({"bits": 7}, "bits must be a source of bits"),
}


@pytest.mark.parametrize(("given", "start"), BAD.values(), ids=BAD)
def test_parameters_that_break_a_rule_are_refused_by_name(given, start):
    with pytest.raises(sf.InvalidParameter) as refused:
        choose(**given)
    assert assert_one_line(refused.value).startswith(start)


def test_one_budget_is_asked_for():
    for given, end in (({"epsilon": None}, "got neither"), ({"budget": sf.PureDP(1)}, "got both")):
        with pytest.raises(sf.InvalidParameter, match=end):
            choose(**given)
    with pytest.raises(sf.InvalidParameter, match="budget must be PureDP"):
        choose(epsilon=None, budget=5)


@pytest.mark.parametrize("size", [5e-324, 3e-320, 1e-308, 1.23e-305, 0.00123, 5.99, 12345, 9.9e299, 1.7e308])
def test_a_bound_for_people_is_never_below_the_number(size):
    shown = Fraction(rounded_up(size).replace(",", ""))
    assert Fraction(size) <= shown <= Fraction(size) * Fraction(102, 100) + Fraction(10) ** -323


@pytest.mark.parametrize("sensitivity", [Fraction(1, 10**305), Fraction(1, 10**312), Fraction(1, 10**318)])
def test_a_choice_of_tiny_scores_can_be_printed(sensitivity):
    assert "within" in str(choose(sensitivity=sensitivity))


def test_fractions_of_numpy_integers_are_read_as_plain_ones():
    assert sf.PureDP(Fraction(np.int64(1), 10)) == sf.PureDP(Fraction(1, 10))
    wide = [Fraction(np.int64(1), 2), Fraction(np.int64(2**62), 3), Fraction(np.int64(-(2**62)), 3), 0]
    plain = [Fraction(int(score.numerator), int(score.denominator)) for score in wide]
    mechanism = sf.mechanisms.ExponentialMechanism(sensitivity=1, epsilon=Fraction(1, 10**18))
    assert (
        mechanism.law(wide).logpmf(np.arange(4)).tolist()
        == mechanism.law(plain).logpmf(np.arange(4)).tolist()
    )
    assert choose(scores=wide, epsilon=600).value == choose(scores=plain, epsilon=600).value
