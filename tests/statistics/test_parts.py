"""Queries about parts of a table, groups and people with several rows: exact audits of what is charged."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.audit import worst_by_groups
from sfumato.audit.shipped import METHOD_OPTIONS
from sfumato.data.admission import admit
from sfumato.data.field import Field
from sfumato.data.part import WHOLE, Part
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws import SeededBits
from sfumato.ledger import MemoryLedger
from sfumato.mechanisms import GaussianMechanism, Sensitivity
from sfumato.privacy import ZCDP, Amount, ApproxDP, PureDP, PureEvent, for_changes, gaussian_sigma_squared
from sfumato.quantile_methods import METHODS, Quantiles
from sfumato.quantile_methods.counted import SHARE
from sfumato.query import decode, parameters, raw
from sfumato.release import Release
from sfumato.statistics import (
    Count,
    ExponentialMean,
    FirstPassing,
    Histogram,
    InverseMean,
    InverseProportion,
    Mean,
    MostCommon,
    Proportion,
    Sum,
    Variance,
)

TEAM = (("team", "red"),)
PURE, CONCENTRATED, APPROXIMATE = PureDP(1), ZCDP(0.1), ApproxDP(1, 1e-3)
BUDGETS = (PURE, CONCENTRATED, APPROXIMATE)

QUERIES = {
    "count": (Count, {}),
    "count between": (Count, {"between": (0, 1)}),
    "proportion": (Proportion, {}),
    "sum over zero": (Sum, {"bounds": (-1, 1)}),
    "sum above zero": (Sum, {"bounds": (1, 3)}),
    "mean": (Mean, {"bounds": (-1, 3)}),
    "mean with its spread": (Mean, {"bounds": (-1, 3), "interval_share": Fraction(1, 10)}),
    "variance": (Variance, {"bounds": (-1, 3)}),
    "histogram": (Histogram, {"bins": 2, "bounds": (0, 3)}),
    "histogram with other": (Histogram, {"categories": ("a", "b"), "other": True}),
    "most common": (MostCommon, {"categories": ("a", "b")}),
    "most common by weights": (MostCommon, {"categories": ("a", "b"), "method": "exponential"}),
    "first passing": (FirstPassing, {"at": (0, 1), "count": 1}),
}
DRAWN = ("most common", "most common by weights", "first passing")
NOISY = [name for name in QUERIES if name not in DRAWN]

# Relation, how many rows one person has at most (None: the unit is a row), and the changes that follow.
UNITS = {
    "rows replaced": ("substitution", None, 2),
    "rows added": ("add-remove", None, None),
    "two rows added": ("add-remove", 2, 2),
    "two rows replaced": ("substitution", 2, 4),
}


def asked(name, budget, relation, nulls="lower", noise="auto"):
    kind, given = QUERIES[name]
    if isinstance(budget, ApproxDP) and name not in DRAWN:
        noise = "gaussian"
    return kind(budget=budget, neighbours=relation, nulls=nulls, noise=noise, **given)


def by_groups(query, unit, part=None, **options):
    _, rows_per_unit, changes = UNITS[unit]
    # People with two rows are many, and pairs of them more: fewer records, and no other rows.
    few = {} if rows_per_unit is None else {"cells": 1, "others": int(changes == 2)}
    return worst_by_groups(query, part or Part(changes), rows_per_unit=rows_per_unit, **{**few, **options})


# --- groups: one person against all groups at once ------------------------------------------------


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@pytest.mark.parametrize("name", QUERIES)
def test_all_groups_together_cost_what_is_charged_once(name, budget, unit):
    assert by_groups(asked(name, budget, UNITS[unit][0]), unit).loss.verdict == "holds"


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", [name for name in NOISY if "spread" not in name])
def test_no_smaller_epsilon_would_do_for_laplace_noise(name, unit):
    worst = by_groups(asked(name, PURE, UNITS[unit][0]), unit)
    assert worst.loss.exponent == 1 or worst.loss.tightness > 1 - 1e-9


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", ["sum over zero", "sum above zero", "mean", "variance", "histogram"])
def test_no_smaller_rho_would_do_for_gaussian_noise(name, unit):
    assert by_groups(asked(name, CONCENTRATED, UNITS[unit][0]), unit).loss.tightness > 1 - 1e-4


def test_counts_by_group_under_substitution_lose_exactly_epsilon():
    worst = by_groups(asked("count", PureDP(0.1), "substitution"), "rows replaced")
    assert worst.loss.exponent == Fraction(1, 10)
    assert worst.loss.holds
    # A row that goes from one group to the other does it.
    before, after = (sorted(group for group, _ in rows) for rows in (worst.left, worst.right))
    assert before != after
    assert len(before) == len(after)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("budget", [PURE, CONCENTRATED, ApproxDP(1, 0.1)], ids=repr)
@pytest.mark.parametrize("unit", UNITS)
def test_quantiles_of_all_groups_together_cost_what_is_charged_once(name, budget, unit):
    query = quantiles(name, budget, UNITS[unit][0])
    records = (0.0, 1.0, np.nan) if UNITS[unit][1] is None else (0.0, 1.0)
    assert by_groups(query, unit, records=records).loss.verdict == "holds"


def quantiles(name, budget, relation, orders=(Fraction(1, 2),), **given):
    return Quantiles(
        probs=orders,
        method=METHODS[name](**METHOD_OPTIONS[name][0]),
        budget=budget,
        neighbours=relation,
        nulls="lower",
        bounds=(0, 1),
        step=1,
        n_hint=4,
        **given,
    )


@pytest.mark.parametrize("unit", UNITS)
def test_a_tree_of_counts_by_group_is_charged_no_more_than_it_needs(unit):
    worst = by_groups(quantiles("tree", PURE, UNITS[unit][0]), unit, records=(0.0, 1.0))
    assert worst.loss.exponent == 1


@pytest.mark.parametrize("unit", UNITS)
def test_a_data_set_asks_its_groups_with_the_changes_that_were_audited(unit):
    relation, rows_per_unit, changes = UNITS[unit]
    frame = {"team": ["red", "blue"], "person": ["a", "b"], "values": [1.0, 2.0]}
    owner = {"unit": "row"} if rows_per_unit is None else {"unit": "person", "rows_per_unit": rows_per_unit}
    schema = {"team": Field(categories=("red", "blue")), "values": Field(bounds=(0, 10))}
    data = sf.Dataset(frame, neighbours=relation, schema=schema, **owner)
    assert data.part(by=("team",), key=("red",)) == Part(changes, TEAM)
    whole = None if rows_per_unit is None else changes
    assert data.part().changes == data.part(where={"team": "red"}).changes == whole
    with sf.Session(data, budget=PURE, bits=SeededBits(1)) as session:
        groups = session.answer_by(Mean(column="values", budget=PURE), by=["team"])
    assert groups["red"].query.changes == groups["blue"].query.changes == changes
    assert session.remaining == Amount()


# --- conditions: a replaced row may leave the part or join it -------------------------------------


@pytest.mark.parametrize("nulls", ["drop", "lower", "upper"])
@pytest.mark.parametrize("budget", [PURE, CONCENTRATED], ids=repr)
@pytest.mark.parametrize("name", QUERIES)
def test_a_row_that_leaves_or_joins_a_part_costs_what_is_charged(name, budget, nulls):
    query = asked(name, budget, "substitution", nulls)
    assert worst_by_groups(query, Part(), asked=1, others=2).loss.verdict == "holds"


@pytest.mark.parametrize("nulls", ["drop", "lower", "upper"])
@pytest.mark.parametrize("name", METHODS)
def test_quantiles_of_a_part_cost_what_is_charged(name, nulls):
    query = replace(quantiles(name, PURE, "substitution"), nulls=nulls)
    worst = worst_by_groups(query, Part(), asked=1, others=2, records=(0.0, 1.0, np.nan))
    assert worst.loss.verdict == "holds"


@pytest.mark.parametrize("unit", ["two rows added", "two rows replaced"])
@pytest.mark.parametrize("name", ["count", "sum over zero", "mean", "most common"])
def test_people_with_two_rows_in_a_whole_table_cost_what_is_charged(name, unit):
    query = asked(name, PURE, UNITS[unit][0])
    assert by_groups(query, unit, groups=1).loss.verdict == "holds"


@pytest.mark.parametrize(("nulls", "places"), [("drop", (0, 0)), ("lower", (3, 1)), ("upper", (3, 3))])
def test_nulls_inside_a_part_follow_their_rule(nulls, places):
    column, size_and_sum = admit(np.array([np.nan, np.nan, np.nan])), []
    for kind, bounds in ((Sum, (1, 3)), (Mean, (1, 3))):
        query = kind(budget=PURE, bounds=bounds, nulls=nulls).bind(column, Field(), "substitution", part())
        size_and_sum.append(query.look(column))
    rows, value = places
    summed, mean = size_and_sum
    assert summed.size == mean.size == rows
    step = Sum(budget=PURE, bounds=(1, 3), nulls=nulls).bind(column, Field(), "substitution", part()).lattice
    assert step.step * summed.first == rows * value


def part(changes=None):
    return Part(changes, TEAM)


# --- mutants: each audit above can fail -----------------------------------------------------------


class OneRow(Count):
    """Noise for one row, whatever one person can change."""

    def moved(self, sensitivity, *, one_sign):
        return sensitivity


class RowsNotSquared(Sum):
    """A rho divided by the rows, and not by their square."""

    def moved(self, sensitivity, *, one_sign):
        m = self.changed_rows
        return Sensitivity(m * sensitivity.l1, m * sensitivity.l2_squared, m * sensitivity.coordinates)


class AnySign(Sum):
    """Takes rows that leave and rows that join for orthogonal where they are not."""

    def moved(self, sensitivity, *, one_sign):
        return super().moved(sensitivity, one_sign=True)


class SpreadForOne(Mean):
    """Scales the sums and forgets the products that tell the spread."""

    @property
    def _noises(self):
        sums, _, charged = Mean._noises.func(self)
        alone = Mean._noises.func(replace(self, changes=None, neighbours="add-remove"))
        return sums, alone[1], charged


class PublicPart(Count):
    """Takes the number of rows of a part for public."""

    @property
    def rows_are_public(self):
        return True


class WholeChoice(MostCommon):
    """A choice at the whole budget for each row."""

    @property
    def row_budget(self):
        return self.budget


class WholeQuantiles(Quantiles):
    """Quantiles at the whole budget for each row."""

    @property
    def row_budget(self):
        return self.budget

    @property
    def event(self):
        return PureEvent(self.budget.epsilon, "quantiles")


@pytest.mark.parametrize("changes", [None, 1])
@pytest.mark.parametrize("name", QUERIES)
def test_two_rows_of_one_person_charged_as_one_are_caught(name, changes):
    worst = by_groups(asked(name, PURE, "add-remove"), "two rows added", Part(changes), cells=3)
    assert worst.loss.verdict == "VIOLATED"


def test_a_row_that_changes_its_group_charged_as_one_that_stays_is_caught():
    worst = by_groups(asked("count", PURE, "substitution"), "rows replaced", Part())
    assert worst.loss.exponent == 2
    assert worst.loss.verdict == "VIOLATED"


@pytest.mark.parametrize(
    ("query", "unit"),
    [
        (OneRow(budget=PURE, neighbours="substitution", nulls="lower"), "rows replaced"),
        (OneRow(budget=PURE, neighbours="add-remove", nulls="lower"), "two rows added"),
        (RowsNotSquared(budget=CONCENTRATED, neighbours="add-remove", bounds=(1, 3)), "two rows added"),
        (RowsNotSquared(budget=APPROXIMATE, neighbours="add-remove", bounds=(1, 3)), "two rows added"),
        (AnySign(budget=CONCENTRATED, neighbours="substitution", bounds=(-1, 1)), "rows replaced"),
        (WholeChoice(budget=PURE, neighbours="add-remove", categories=("a", "b")), "two rows added"),
        (
            SpreadForOne(budget=PURE, neighbours="add-remove", bounds=(-1, 3), interval_share=0.8),
            "two rows added",
        ),
        (PublicPart(budget=PURE, neighbours="substitution", nulls="lower"), "rows replaced"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_broken_calibration_is_caught(query, unit):
    if isinstance(query, RowsNotSquared) and isinstance(query.budget, ApproxDP):
        query = replace(query, noise="gaussian")
    worst = by_groups(query, unit, Part() if isinstance(query, PublicPart) else None, cells=3)
    assert worst.loss.verdict == "VIOLATED"


def test_quantiles_at_the_whole_budget_for_each_row_are_caught():
    given = parameters(quantiles("histogram", PURE, "add-remove"))
    query = WholeQuantiles(**{name: decode(value) for name, value in given.items()})
    assert by_groups(query, "two rows added", records=(0.0, 1.0)).loss.verdict == "VIOLATED"


def test_a_size_of_a_part_that_is_told_is_an_infinite_loss():
    query = PublicPart(budget=PURE, neighbours="substitution", nulls="lower")
    assert worst_by_groups(query, Part(), asked=1).loss.amount == np.inf


# --- what is charged ------------------------------------------------------------------------------

FIELD = Field(bounds=(0, 10), categories=(1, 2, 3))
COLUMN = admit(np.arange(10))
ANY = [
    Count(budget=PURE),
    Sum(budget=PURE),
    Mean(budget=PURE),
    Mean(budget=PURE, interval_share="auto"),
    Variance(budget=PURE),
    Proportion(budget=PURE, equals=3),
    Histogram(budget=PURE, bins=4),
    Histogram(budget=PURE, other=True),
    MostCommon(budget=PURE),
    MostCommon(budget=PURE, picks=2, method="base2"),
    FirstPassing(budget=PURE, at=(2, 4), count=3),
    Quantiles(budget=PURE, probs=(0.5,)),
    Quantiles(budget=PURE, probs=(0.1, 0.5, 0.9)),
    Quantiles(budget=PURE, probs=(0.1, 0.5, 0.9), n_hint=1000),
    Quantiles(budget=PURE, probs=(0.1, 0.5, 0.9), n_hint=1000, method="tree"),
    Quantiles(budget=PURE, probs=(0.5,), n_hint=1000, interval_share="auto"),
    Quantiles(budget=PURE, probs=(0.5,), method="unbounded"),
]
PARTS = [
    ("substitution", Part(None, TEAM)),
    ("substitution", Part(2, TEAM)),
    ("substitution", Part(6)),
    ("add-remove", Part(None, TEAM)),
    ("add-remove", Part(1)),
    ("add-remove", Part(3)),
    ("add-remove", Part(1000, TEAM)),
]


@pytest.mark.parametrize(("relation", "asked_of"), PARTS)
@pytest.mark.parametrize("budget", [PURE, ZCDP(0.1), ApproxDP(1, 1e-6), ApproxDP(0.5, 0.1)], ids=repr)
def test_ledgers_take_the_whole_budget_and_no_more(budget, relation, asked_of):
    for query in ANY:
        bound = replace(query, budget=budget).bind(COLUMN, FIELD, relation, asked_of)
        assert bound.cost in (budget, getattr(budget, "epsilon", None) and PureDP(budget.epsilon))
        ledger = MemoryLedger(budget, neighbours=relation)
        price = ledger.charge(bound).price
        if isinstance(budget, ZCDP):
            assert 0.099 < price.rho <= budget.rho
        else:
            assert 0.999 * budget.epsilon < price.epsilon <= budget.epsilon
        assert (bound.neighbours, bound.changes, bound.among) == (relation, asked_of.changes, asked_of.among)
        assert bound.rows is None
        assert not bound.size_is_public
        assert not bound.rows_are_public


@pytest.mark.parametrize("changes", [2, 3, 50])
def test_events_are_those_of_one_row_scaled(changes):
    for query in ANY:
        for budget in (PURE, ZCDP(0.1)):
            # As much noise, asked for with one row at a time.
            bound = replace(query, budget=budget).bind(COLUMN, FIELD, "add-remove", Part(changes))
            alone = replace(query, budget=bound.row_budget).bind(COLUMN, FIELD, "add-remove", Part())
            if not (isinstance(query, Mean | Sum | Variance)):  # their lattice follows the whole budget
                assert bound.event == for_changes(alone.event, changes)


def test_gaussian_noise_for_an_approximate_budget_is_at_its_exact_curve_for_all_rows():
    budget = ApproxDP(1, 1e-6)
    query = Sum(budget=budget, noise="gaussian", bounds=(0, 1)).bind(COLUMN, FIELD, "add-remove", Part(3))
    reach = query.lattice.high
    assert isinstance(query.mechanism, GaussianMechanism)
    best = gaussian_sigma_squared(budget, sensitivity_squared=9 * reach**2, coordinates=3)
    assert query.mechanism.sigma_squared == best
    by_rho = gaussian_sigma_squared(
        sf.privacy.per_change(budget, 3, pure=False), sensitivity_squared=reach**2, coordinates=1
    )
    assert best < by_rho


def test_a_count_first_is_scaled_with_what_follows():
    query = Quantiles(budget=PURE, probs=(0.1, 0.9)).bind(COLUMN, FIELD, "add-remove", Part(4))
    count, rest = query.event.parts
    assert (count.sensitivity, count.pure_epsilon) == (4, SHARE)
    assert rest == PureEvent(1 - SHARE, "quantiles")
    # What follows the count is what a hint of the same size gets, which the audits above list.
    hinted = Quantiles(budget=PureDP(1 - SHARE), probs=(0.1, 0.9), n_hint=50)
    hinted = hinted.bind(COLUMN, FIELD, "add-remove", Part(4))
    # A tree that is known before the data scales its noise for all rows at once.
    assert query._counted.settled(50) == replace(hinted.facts, several=None)


def test_the_size_of_a_part_is_not_taken_from_the_table():
    for neighbours in ("substitution", "add-remove"):
        for changes in (None, 2):
            query = Quantiles(budget=PURE, probs=(0.1, 0.9)).bind(COLUMN, FIELD, neighbours, part(changes))
            assert query.facts.size is None
            assert query.facts.size_is_public is False
            hinted = replace(query, n_hint=7)
            assert hinted.facts.size == 7
    whole = Quantiles(budget=PURE, probs=(0.1, 0.9), nulls="lower").bind(COLUMN, FIELD, "substitution", WHOLE)
    assert whole.facts.size == whole.rows == 10
    assert whole.facts.size_is_public


def test_a_table_of_other_rows_gives_the_same_query_for_a_part():
    other = admit(np.arange(1000))
    for query in ANY:
        for relation, asked_of in PARTS:
            here, there = (query.bind(column, FIELD, relation, asked_of) for column in (COLUMN, other))
            assert here == there


def test_quantiles_take_the_step_of_the_schema():
    field = Field(bounds=(0, 1000), step=100)
    bound = Quantiles(budget=PURE, probs=(0.5,)).bind(COLUMN, field, "add-remove")
    assert bound.step == 100
    assert not bound.on_points
    assert Quantiles(budget=PURE, probs=(0.5,), step=10).bind(COLUMN, field, "add-remove").step == 10
    integers = Quantiles(budget=PURE, probs=(0.5,)).bind(COLUMN, Field(bounds=(0, 1000)), "add-remove")
    assert integers.step == 1
    assert integers.on_points


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [InverseMean, ExponentialMean, InverseProportion])
@pytest.mark.parametrize("asked_of", [part(), Part(2), part(2)], ids=repr)
def test_statistics_of_a_public_size_refuse_a_part(kind, asked_of):
    column = admit(np.array([True, False])) if kind is InverseProportion else COLUMN
    instead = "proportion" if kind is InverseProportion else "mean"
    with pytest.raises(NotSupported, match=f"needs a public number of values: .*; use {instead}$"):
        kind(budget=PURE).bind(column, FIELD, "substitution", asked_of)


@pytest.mark.parametrize("changes", [0, -2, 1.5, True, "2", 10**6 + 2, [2]])
def test_changes_that_are_no_number_of_rows_are_refused(changes):
    with pytest.raises(InvalidParameter, match="changes must be"):
        Count(budget=PURE, changes=changes)


@pytest.mark.parametrize(
    "among",
    ["team", None, 3, (("team",),), (("team", 3),), ("team", "red"), (("a", "b", "c"),), {"team": "red"}],
)
def test_conditions_that_are_no_pairs_of_texts_are_refused(among):
    with pytest.raises(InvalidParameter, match="among must be pairs"):
        Count(budget=PURE, among=among)


def test_facts_that_contradict_each_other_are_refused():
    with pytest.raises(InvalidParameter, match="rows must be left out"):
        Count(budget=PURE, neighbours="substitution", among=TEAM, rows=10)
    with pytest.raises(InvalidParameter, match="rows must be left out"):
        Count(budget=PURE, neighbours="add-remove", changes=2, rows=10)
    with pytest.raises(InvalidParameter, match="changes must be even under substitution"):
        Count(budget=PURE, neighbours="substitution", changes=3)
    with pytest.raises(InvalidParameter, match="changes must be that of the data set, None, got changes=3"):
        Count(budget=PURE, changes=3).bind(COLUMN, FIELD, "add-remove", part())
    with pytest.raises(InvalidParameter, match=r"at least 1e-12 for each row .* changes=1000000"):
        Count(budget=PureDP(1e-7), changes=10**6)


# --- what a reader gets ---------------------------------------------------------------------------


def released(parts=PARTS):
    for query in ANY:
        for relation, asked_of in parts:
            bound = query.bind(COLUMN, FIELD, relation, asked_of)
            outcome = bound.law(bound.look(COLUMN)).sample(SeededBits(1))
            yield Release(bound, raw(outcome), private=True)


def test_releases_of_parts_are_read_back():
    for release in released(PARTS[1:2]):
        assert sf.read_release(release.to_json()) == release


def test_records_from_before_parts_are_read_as_whole_tables():
    release = sf.mean([1, 2, 3], bounds=(0, 10), epsilon=1, nulls="lower")
    record = release.to_dict()
    for name in ("changes", "among"):
        del record["parameters"][name]
    assert sf.read_release(json.dumps(record)) == release
    assert release.query.changes is None
    assert release.query.among == ()


@pytest.mark.parametrize(
    "hostile",
    [
        {"changes": 0},
        {"changes": "2"},
        {"changes": 2.0},
        {"changes": 10**30},
        {"changes": {"fraction": "2"}},
        {"among": "team"},
        {"among": [["team", 3]]},
        {"among": [["team", "red"]]},  # with a public number of rows
        {"among": [[["team"], "red"]]},
        {"among": {"fraction": "1"}},
        {"changes": 2},
    ],
    ids=str,
)
def test_records_with_hostile_parts_are_refused(hostile):
    record = sf.mean([1, 2, 3], bounds=(0, 10), epsilon=1, nulls="lower").to_dict()
    record["parameters"] |= hostile
    with pytest.raises(InvalidParameter):
        sf.read_release(record)


def test_notes_say_what_one_person_can_change():
    for release in released([PARTS[0], PARTS[6]]):
        query = release.query
        kept = query.changed_rows // (2 if query.neighbours == "substitution" else 1)
        used = f"at most {kept:,} rows of each person are used, and further ones are left out at random"
        assert any(note.startswith(used) for note in release.notes) == (kept > 1)
        assert any("the noise is scaled for it" in note for note in release.notes) == (query.changed_rows > 1)
        assert not any("nulls are left out" in note for note in release.notes)


def test_a_title_names_the_part():
    query = Count(budget=PURE, neighbours="add-remove", among=TEAM)
    assert str(Release(query, (3,), private=True)).startswith("count of values, team: red")


def test_accuracy_before_paying_is_that_of_the_noise_that_is_drawn():
    for query in (Mean(budget=PURE), Count(budget=PURE), Histogram(budget=PURE, bins=4)):
        one, four = (query.bind(COLUMN, FIELD, "add-remove", Part(changes)) for changes in (None, 4))
        assert four.accuracy(1000).error > 3 * one.accuracy(1000).error
    part_of = Mean(budget=PURE).bind(COLUMN, FIELD, "substitution", part())
    assert part_of.accuracy(1000).rows == 1000
    assert part_of.rows is None
    quantile = Quantiles(budget=PURE, probs=(0.5,)).bind(COLUMN, FIELD, "add-remove", Part(4))
    alone = Quantiles(budget=PURE, probs=(0.5,)).bind(COLUMN, FIELD, "add-remove")
    assert quantile.rank_error(0.95) > 3 * alone.rank_error(0.95)
