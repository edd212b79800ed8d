"""The contract of the most common category: what other statistics promise of numbers, for a choice."""

import itertools
import json
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.hostile import CANARY_TEXT, assert_one_line, published
from tests.statistics.cases import BUDGETS, EPSILONS, NULLS, RELATIONS

import sfumato as sf
from sfumato.audit.pairs import column, neighbouring_pairs, universe
from sfumato.data.admission import admit
from sfumato.data.column import Column
from sfumato.laws import SeededBits
from sfumato.mechanisms.exponential import VARIANTS
from sfumato.privacy import ZCDP, Amount, ApproxDP, PureDP
from sfumato.quantile_methods import read_query
from sfumato.query import parameters, raw
from sfumato.statistics import MostCommon

LETTERS = ("a", "b", "c", "d")
WORDS = ["b"] * 90 + ["a"] * 60 + ["d"] * 10 + ["z"] * 500 + [None] * 300
COLUMN = admit(np.array(WORDS, dtype=object))

every_relation = pytest.mark.parametrize("neighbours", RELATIONS)
every_null_rule = pytest.mark.parametrize("nulls", NULLS)
every_method = pytest.mark.parametrize("method", VARIANTS)
every_number = pytest.mark.parametrize("picks", [1, 3])


ONE = PureDP(1)


def asked(budget: Any = ONE, neighbours: str = "add-remove", **others: Any) -> MostCommon:
    rows = len(WORDS) if neighbours == "substitution" else None
    given = {"categories": LETTERS, "nulls": "drop", "rows": rows} | others
    return MostCommon(budget=budget, neighbours=neighbours, **given)


# --- the contract of statistics ----------------------------------------------------------------


@every_relation
@every_null_rule
@every_method
@every_number
def test_answers_costs_and_json_under_every_budget(neighbours, nulls, method, picks):
    bits = SeededBits(1)
    for budget in BUDGETS:
        query = asked(budget, neighbours, nulls=nulls, method=method, picks=picks)
        outcome = raw(query.law(query.look(COLUMN)).sample(bits))
        assert query.possible(outcome)
        value = query.value(outcome)
        assert value in LETTERS if picks == 1 else len(set(value) & set(LETTERS)) == picks
        assert len(query.labels()) == picks
        assert all(isinstance(note, str) and note for note in query.notes(outcome))
        if isinstance(budget, ZCDP):
            assert query.event.rho == query.cost.rho == budget.rho
        else:
            assert query.cost == PureDP(budget.epsilon)
            assert query.event.pure_epsilon == budget.epsilon
        again = read_query(query.name, json.loads(json.dumps(parameters(query))))
        assert again == query
        assert hash(again) == hash(query)
        assert (again.event, again.cost, again.described) == (query.event, query.cost, query.described)


@every_relation
@every_null_rule
@every_method
def test_without_noise_the_answer_is_that_of_a_counter(neighbours, nulls, method):
    truth = [word for word, _ in Counter(w for w in WORDS if w in LETTERS).most_common(3)]
    given = {"categories": LETTERS, "nulls": nulls, "neighbours": neighbours, "method": method}
    for values in (WORDS, np.array(WORDS, object), pd.Series(WORDS), pl.Series(WORDS)):
        release = sf.most_common(values, epsilon=100, picks=3, bits=SeededBits(2), **given)
        assert list(release.value) == truth
        assert sf.most_common(values, epsilon=100, bits=SeededBits(2), **given).value == "b"
        assert sf.read_release(release.to_json()) == release


@every_relation
def test_numbers_and_booleans_are_categories_too(neighbours):
    given = {"epsilon": 100, "neighbours": neighbours}
    for values in ([3, 3, 5, None] * 20, np.array([3, 3, 5] * 20), pl.Series([3.0, 3.0, 5.5] * 20)):
        assert sf.most_common(values, categories=[5, 3], **given).value == 3
    assert sf.most_common([True, False, True, None] * 9, categories=[False, True], **given).value is True


@every_relation
@every_method
def test_error_shrinks_with_epsilon_and_grows_with_confidence_and_picks(neighbours, method):
    for kind in (PureDP, lambda e: ApproxDP(e, 1e-6), lambda e: ZCDP(e**2 / 2)):
        weak, middle, strong = (asked(kind(e), neighbours, method=method) for e in EPSILONS)
        errors = [query.error(0, 0.95) for query in (weak, middle, strong)]
        assert errors[0] > errors[1] > errors[2] >= 0
        assert all(error == int(error) for error in errors)
        assert middle.error(0, 0.5) < middle.error(0, 0.999)
        assert middle.error(0, 0.95) < asked(kind(1), neighbours, method=method, picks=2).error(0, 0.95)


@every_relation
@every_method
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_the_count_of_the_answer_is_as_near_the_largest_as_promised(neighbours, method, confidence):
    query = asked(PureDP(Fraction(1, 3)), neighbours, method=method)
    for counts in (
        (9, 9, 9, 9),
        (20, 0, 0, 0),
        (20, 12, 8, 3),
        (0, 0, 0, 0),
        (30, 29, 10, 9),
        (40, 31, 31, 31),
    ):
        law = query.law(list(counts))
        far = np.array([max(counts) - count > query.error(0, confidence) for count in counts])
        assert law.probability(law.outcomes())[far].sum() <= 1 - confidence + 1e-12


def test_a_preview_states_the_accuracy_and_reads_nothing():
    schema = {"word": sf.Field(categories=LETTERS)}
    data = sf.Dataset({"word": WORDS}, unit="row", neighbours="add-remove", schema=schema)
    session = sf.Session(data, budget=sf.PureDP(1))
    preview = session.preview(sf.MostCommon(column="word", budget=sf.PureDP(0.5)))
    assert "a count within 6 of the largest with 95 % confidence, costs PureDP(epsilon=0.5)" in str(preview)
    assert session.answer(sf.MostCommon(column="word", budget=sf.PureDP(1))).value in LETTERS


@every_relation
@every_null_rule
def test_columns_with_next_to_nothing_are_answered_like_any_other(neighbours, nulls):
    for values in ([], [None] * 5, ["z"] * 5, ["a"], pl.Series([], dtype=pl.String)):
        release = sf.most_common(values, categories=LETTERS, epsilon=1, neighbours=neighbours, nulls=nulls)
        assert release.value in LETTERS
        assert release.cost == PureDP(1)
        assert sf.read_release(release.to_json()) == release


def test_noise_that_hides_the_answer_is_noted_where_the_rows_are_public():
    for rows, hidden in ((10, True), (10**4, False)):
        notes = sf.most_common(["a"] * rows, categories=LETTERS, epsilon=0.5, nulls="lower").notes
        assert ("dominated by noise" in " ".join(notes)) == hidden


def test_intervals_are_refused():
    query = asked()
    with pytest.raises(sf.NotSupported, match="interval needs a number"):
        query.interval((0,), 0.95)
    with pytest.raises(sf.NotSupported, match="population_interval needs a mean, proportion or variance"):
        query.population_interval((0,), 0.95)


@pytest.mark.parametrize(
    "budget", [PureDP(1e-12), PureDP(1e6), ApproxDP(1e-9, 1e-300), ZCDP(1e-24), ZCDP(10**11)]
)
@every_relation
@every_method
def test_the_smallest_and_the_largest_budgets_are_answered(budget, neighbours, method):
    query = asked(budget, neighbours, method=method, picks=2)
    assert query.possible(raw(query.law(query.look(COLUMN)).sample(SeededBits(3))))
    assert query.error(0, 0.95) >= 0


# --- privacy -----------------------------------------------------------------------------------


def worst_loss(query: MostCommon, size: int = 4) -> float:
    """The largest log ratio over all neighbours of so many records, nulls and strangers among them."""
    records = universe(query, 3)
    known: dict[Any, np.ndarray] = {}

    def logs(chosen: tuple[int, ...]) -> np.ndarray:
        if chosen not in known:
            law: Any = query.law(query.look(column(chosen, records)))
            known[chosen] = np.array([law.logpmf(outcome) for outcome in law.outcomes()])
        return known[chosen]

    pairs = neighbouring_pairs(records, size, query.neighbours or "add-remove")
    return max(float(np.abs(logs(left) - logs(right)).max()) for left, right in pairs)


@every_relation
@every_method
@pytest.mark.parametrize("picks", [1, 2])
def test_no_neighbours_lose_more_than_was_charged(neighbours, method, picks):
    loss = worst_loss(asked(PureDP(1), neighbours, method=method, picks=picks, categories=LETTERS[:3]))
    print(f"{neighbours}, {method}, {picks} picks: {loss:.4f} of 1")
    assert 0.4 < loss <= 1 + 1e-11


@every_relation
def test_two_categories_attain_the_charge(neighbours):
    assert worst_loss(asked(PureDP(1), neighbours, categories=LETTERS[:2])) == pytest.approx(1, abs=1e-11)


@dataclass(frozen=True, kw_only=True)
class AddRemoveConstant(MostCommon):
    """Charges a replaced record as one that is added."""

    @property
    def promise(self) -> tuple[Fraction, bool]:
        return Fraction(1), True


@dataclass(frozen=True, kw_only=True)
class WholePicks(MostCommon):
    """Gives every pick the whole epsilon."""

    @property
    def promise(self) -> tuple[Fraction, bool]:
        sensitivity, monotone = super().promise
        return sensitivity / self.picks, monotone


@dataclass(frozen=True, kw_only=True)
class SeenCategories(MostCommon):
    """Leaves out categories that nobody has."""

    def law(self, view: Any) -> Any:
        return super().law([int(count) if count else -(10**6) for count in view])


def made(kind: Any, neighbours: str, **others: Any) -> MostCommon:
    given = {"budget": PureDP(1), "nulls": "drop", "categories": LETTERS[:2]} | others
    return kind(neighbours=neighbours, **given)


def test_the_audit_catches_the_mistakes_that_the_proof_warns_of():
    # A record that moves from one category to another moves both counts: exactly twice the charge.
    assert worst_loss(made(AddRemoveConstant, "substitution")) == pytest.approx(2, abs=1e-11)
    assert worst_loss(made(WholePicks, "add-remove", picks=2, categories=LETTERS[:3])) > 1.8
    assert worst_loss(made(SeenCategories, "add-remove")) > 10**5


@every_relation
def test_a_charge_is_made_before_the_column_is_read(neighbours):
    spent: list[Any] = []

    def tally() -> Counter[Any]:
        spent.append(session.spent)
        return Counter({(str, "a"): 10})

    words = Column("word", "text", True, 10, None, tally)
    data = sf.Dataset({"word": words}, unit="row", neighbours=neighbours)
    session = sf.Session(data, budget=sf.PureDP(1))
    session.answer(asked(PureDP(Fraction(3, 4)), column="word", neighbours=None, rows=None))
    assert spent == [Amount(epsilon=Fraction(3, 4))]
    with pytest.raises(sf.BudgetExceeded):
        session.answer(asked(column="word", neighbours=None, rows=None))
    assert len(spent) == 1


# --- hostile input -----------------------------------------------------------------------------


@every_relation
def test_no_word_of_the_data_is_in_anything_published(neighbours):
    for values in (
        [CANARY_TEXT] * 50,
        pl.Series([CANARY_TEXT, None]),
        np.array([CANARY_TEXT, 5, b""], object),
    ):
        release = sf.most_common(values, categories=["a", "b"], epsilon=1, neighbours=neighbours)
        assert "CANARY" not in published(release)


@every_relation
def test_equal_public_facts_give_an_equal_status_event_and_cost(neighbours):
    contents = [["a", "b"] * 3, [None] * 6, [CANARY_TEXT, "", "\n", "\x00", "é" * 500, None]]
    for kind in (lambda v: np.array(v, object), lambda v: pd.Series(v, dtype="string"), pl.Series):
        releases = [
            sf.most_common(kind(v), categories=LETTERS, epsilon=1, neighbours=neighbours)
            for v in contents
            if kind is not pl.Series or any(v)
        ]
        traces = [(r.event, r.cost, r.method, r.query, len(r.outcome)) for r in releases]
        assert all(trace == traces[0] for trace in traces)


@every_relation
def test_as_many_random_words_are_taken_whatever_the_data(neighbours):
    class Counted(SeededBits):
        used = 0

        def words(self, count: int) -> Any:
            self.used += count
            return super().words(count)

    taken = set()
    for values in (["a"] * 50, ["b"] * 50, [None] * 50, ["a", "b"] * 25):
        bits = Counted(4)
        sf.most_common(values, categories=LETTERS, epsilon=1, neighbours=neighbours, bits=bits)
        taken.add(bits.used)
    assert len(taken) == 1


BAD = {
    "no categories": ({"categories": None}, "categories must be given: they are public"),
    "empty": ({"categories": []}, "categories must be text, whole numbers or booleans"),
    "twice": ({"categories": ["a", "a"]}, "categories must be distinct"),
    "two kinds": ({"categories": ["a", 1]}, "categories must be distinct and of one type"),
    "no picks": ({"picks": 0}, "picks must be in "),
    "five picks": ({"picks": 5}, "picks must be at most the 4 options"),
    "method": ({"method": None}, "method must be one of"),
    "nulls": ({"nulls": "zero"}, "nulls must be one of"),
    "relation": ({"neighbours": "bounded"}, "neighbours must be one of"),
    "epsilon": ({"epsilon": 0}, "epsilon must be positive"),
}


@pytest.mark.parametrize(("given", "start"), BAD.values(), ids=BAD)
def test_parameters_that_break_a_rule_are_refused_by_name(given, start):
    with pytest.raises(sf.InvalidParameter) as refused:
        sf.most_common([CANARY_TEXT], **{"categories": LETTERS, "epsilon": 1} | given)
    assert assert_one_line(refused.value).startswith(start)


def test_a_choice_has_no_noise_to_choose_and_needs_fitting_categories():
    with pytest.raises(sf.InvalidParameter, match="noise must be left out for a choice"):
        asked(noise="laplace")
    with pytest.raises(sf.SchemaMismatch, match="categories must be str"):
        sf.most_common(["a"], categories=[1, 2], epsilon=1)
    for confidence in (0, 1, 1.5, float("nan"), "0.9", True):
        with pytest.raises(sf.InvalidParameter, match=r"^confidence must be"):
            asked().error(100, confidence)


def test_outcomes_that_could_not_be_drawn_are_not_read_back():
    record = sf.most_common(["a"], categories=LETTERS, epsilon=1, picks=2).to_dict()
    for outcome in (["0"], ["0", "0"], ["0", "4"], ["-1", "0"], ["0", "1", "2"]):
        with pytest.raises(sf.InvalidParameter, match="stored must be a release"):
            sf.read_release({**record, "outcome": outcome})
    for outcome in itertools.permutations(range(4), 2):
        assert sf.read_release({**record, "outcome": [str(part) for part in outcome]})
