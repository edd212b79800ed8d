"""Means and proportions by inverse sensitivity, and the exponential mean: levels, audits, refusals."""

import itertools
import math
from dataclasses import fields
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from tests.statistics.drawn_whole import (
    ALL,
    PUBLIC,
    every_kind,
    law_of,
    query,
)

import sfumato as sf
from sfumato.accuracy import bernoulli_inverse_level, truncated_laplace_level
from sfumato.audit import exact, worst_case
from sfumato.data.counts import Sums
from sfumato.data.extremes import Extremes
from sfumato.errors import InvalidParameter, NotSupported, SchemaMismatch
from sfumato.grid import Lattice
from sfumato.laws import Choice, weight_table
from sfumato.ledger import MemoryLedger
from sfumato.privacy import Amount, ConcentratedEvent, PureEvent, RangeEvent

# --- levels -------------------------------------------------------------------------------------

WIDTH = 4


class OnFive(sf.InverseMean):
    """The mean of records 0, 1, 2, 3, 4, on a lattice so coarse that all changes can be listed."""

    @cached_property
    def lattice(self) -> Lattice:
        return Lattice(Fraction(0), Fraction(1), 0, WIDTH)


def fewest_changes(records: tuple[int, ...], point: Fraction, away: Fraction) -> int:
    """The least number of records to change, by trying all changes of all sets of records."""
    for changes in range(len(records) + 1):
        for chosen in itertools.combinations(range(len(records)), changes):
            rest = sum(record for place, record in enumerate(records) if place not in chosen)
            for new in itertools.product(range(WIDTH + 1), repeat=changes):
                if abs(rest + sum(new) - point) <= away:
                    return changes
    raise AssertionError("all records can be changed, and every point is between the ends")


@pytest.mark.parametrize(("size", "points"), [(1, 4), (2, 8), (3, 12), (3, 5), (2, 3)])
@pytest.mark.parametrize("radius", [0, Fraction(1, 3), 1, 9])
def test_levels_are_those_of_trying_all_changes(size, points, radius):
    asked = OnFive(budget=sf.PureDP(1), bounds=(0, WIDTH), rows=size, points=points, radius=radius, **PUBLIC)
    full = size * WIDTH
    table = asked.table(size).tolist()
    for records in itertools.combinations_with_replacement(range(WIDTH + 1), size):
        law = law_of(asked, records)
        away = Fraction(full, 2 * points) + size * Fraction(radius)
        levels = [fewest_changes(records, Fraction(k * full, points), away) for k in range(points + 1)]
        weights = [table[level] for level in levels]
        assert [law.probability(k) for k in range(points + 1)] == [
            Fraction(weight, sum(weights)) for weight in weights
        ]
        assert min(levels) == 0


def test_levels_beyond_the_table_count_as_its_last():
    values = np.linspace(0, 1, 500)
    asked = sf.InverseMean(budget=sf.PureDP(10), bounds=(0, 1), rows=500, points=5000, **PUBLIC)
    assert len(asked.table(500)) < 20
    chances = np.exp(law_of(asked, values).logpmf(np.arange(5001)))
    assert chances[0] == chances[100] == chances.min() > 0
    assert chances.sum() == pytest.approx(1)


# --- privacy ------------------------------------------------------------------------------------


@pytest.mark.parametrize("points", [1, 2, 5, 24, 60])
@pytest.mark.parametrize("radius", [0, 0.5, 2, 30])
@pytest.mark.parametrize("epsilon", [0.1, 1, 6])
def test_no_neighbours_lose_more_than_the_budget(points, radius, epsilon):
    asked = sf.InverseMean(budget=sf.PureDP(epsilon), bounds=(-1, 3), points=points, radius=radius, **PUBLIC)
    worst = worst_case(asked, size=3, cells=3)
    print(f"{worst} points={points} radius={radius}")
    assert worst.loss.holds


def test_the_losses_are_those_that_the_page_of_proofs_states():
    chosen = {"budget": sf.PureDP(1), **PUBLIC}
    ends = {"bounds": (-1, 3), "points": 24}
    stated = {
        0.773: sf.InverseMean(**chosen, **ends),
        0.779: sf.ExponentialMean(**chosen, **ends),
        0.684: sf.InverseProportion(**chosen),
        1.0: sf.InverseProportion(**chosen, recalibrated=True),
    }
    for loss, asked in stated.items():
        worst = worst_case(asked, size=4, cells=3)
        print(worst)
        assert round(worst.loss.amount, 3) == loss


@pytest.mark.parametrize("epsilon", [0.5, 1, 2])
def test_a_record_across_the_bounds_loses_what_truncation_does(epsilon):
    near = np.full(20, 1 - 1e-6)
    left, right = (np.where(np.arange(20) == 0, end, near) for end in (0.0, 1.0))
    asked = sf.InverseMean(budget=sf.PureDP(epsilon), bounds=(0, 1), rows=20, **PUBLIC)
    loss = exact(asked, left, right)
    assert loss.holds
    assert loss.amount == pytest.approx(epsilon / 2 + math.log(2 - math.exp(-epsilon / 2)), rel=1e-3)


@pytest.mark.parametrize("size", [1, 2])
def test_one_and_two_rows_are_private_too(size):
    for kind in ALL.values():
        assert worst_case(query(kind), size=size, cells=2).loss.holds


@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
def test_the_exact_level_of_a_proportion_is_below_its_claim(epsilon):
    asked = sf.InverseProportion(budget=sf.PureDP(epsilon), **PUBLIC)
    worst = worst_case(asked, size=7)
    assert worst.loss.amount == pytest.approx(bernoulli_inverse_level(7, epsilon), rel=1e-9)
    many = sf.InverseProportion(budget=sf.PureDP(epsilon), rows=10**6, **PUBLIC)
    left, right = (many.law(Sums(10**6, s)) for s in (0, 1))
    loss = left.logpmf(0) - right.logpmf(0)
    print(f"epsilon {epsilon}: {loss:.4f}")
    assert loss == pytest.approx(bernoulli_inverse_level(10**6, epsilon), rel=1e-9)
    assert loss < epsilon


@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
@pytest.mark.parametrize("radius", [0, 1])
def test_recalibrated_weights_spend_the_budget_and_no_more(epsilon, radius):
    asked = sf.InverseProportion(budget=sf.PureDP(epsilon), recalibrated=True, radius=radius, **PUBLIC)
    worst = worst_case(asked, size=6)
    assert worst.loss.holds
    assert worst.loss.tightness >= 1 - 1e-9


class WholeBudgetALevel(sf.InverseMean):
    """Weights fall by e^-epsilon a level, and not by e^(-epsilon/2)."""

    def table(self, rows):
        return weight_table(self.range, rows)


class RadiusAtLevelZeroAlone(sf.InverseMean):
    """The radius widens the points that cost nothing, and is forgotten for all others."""

    def law(self, view):
        plain = sf.InverseMean(**{**_fields(self), "radius": 0}).law(view)
        smooth = super().law(view)
        top = max(smooth.probability(k) for k in range(self.last + 1))
        # Weights in units of level 0, which one point of the plain law always has.
        best = max(plain.probability(k) for k in range(self.last + 1))
        weights = [
            Fraction(1) if smooth.probability(k) == top else plain.probability(k) / best
            for k in range(self.last + 1)
        ]
        scale = math.lcm(*(weight.denominator for weight in weights))
        return Choice([int(weight * scale) for weight in weights])


class ClampsTheMeanAndNotTheRecords(sf.InverseMean):
    """Values are summed as they are; only the mean is moved into the bounds."""

    def look(self, column):
        found = super().look(column)
        values = np.concatenate(list(column.chunks()))
        filled = np.clip(np.where(np.isnan(values), float(self.lower), values), -100, 100)
        total = round(float(filled.sum() - len(values) * float(self.lower)) / float(self.lattice.step))
        total = min(max(total, 0), found.size * self.lattice.width)
        return Extremes(found.size, total, found.smallest, found.largest)


class TruncatedNoise(sf.ExponentialMean):
    """Laplace noise of the scale of the Laplace mechanism, drawn again until it falls between the bounds."""

    def scale(self, rows):
        return super().scale(rows) / 2


class SteepProportion(sf.InverseProportion):
    """Weights fall by e^-epsilon a record, as those of the clamped geometric do."""

    def fall(self, rows):
        return self.range


def _fields(asked: Any) -> dict[str, Any]:
    return {field.name: getattr(asked, field.name) for field in fields(asked)}


MUTANTS = {
    "a whole budget a level": (WholeBudgetALevel, {"bounds": (-1, 3), "points": 24}),
    "a radius at level zero alone": (RadiusAtLevelZeroAlone, {"bounds": (-1, 3), "points": 24, "radius": 2}),
    "a clamped mean of wild records": (ClampsTheMeanAndNotTheRecords, {"bounds": (-1, 3), "points": 24}),
    "truncated noise": (TruncatedNoise, {"bounds": (-1, 3), "points": 24}),
    "a steep proportion": (SteepProportion, {}),
}


@pytest.mark.parametrize(("make", "own"), MUTANTS.values(), ids=MUTANTS)
def test_the_audit_catches_each_mutant(make, own):
    worst = worst_case(make(budget=sf.PureDP(1), **PUBLIC, **own), size=4, cells=3)
    print(worst)
    assert not worst.loss.holds
    assert worst.loss.amount > 1.01


@pytest.mark.parametrize("epsilon", [0.1, 0.4, 1])
def test_truncated_noise_is_caught_at_its_exact_level_and_clamped_noise_is_not(epsilon):
    budget, size = sf.PureDP(epsilon), 4
    truncated = worst_case(
        TruncatedNoise(budget=budget, bounds=(0, 1), points=400, **PUBLIC), size=size, cells=2
    )
    assert not truncated.loss.holds
    assert truncated.loss.amount == pytest.approx(truncated_laplace_level(size, epsilon), rel=5e-3)
    clamped = worst_case(sf.Mean(budget=budget, bounds=(0, 1), **PUBLIC), size=size, cells=2)
    assert clamped.loss.holds
    assert clamped.loss.tightness == pytest.approx(1)
    # At half the budget a level, as the exponential mechanism has it, truncation is paid for.
    paid = worst_case(
        sf.ExponentialMean(budget=budget, bounds=(0, 1), points=400, **PUBLIC), size=size, cells=2
    )
    assert paid.loss.holds
    assert paid.loss.amount == pytest.approx(truncated_laplace_level(size, epsilon / 2), rel=5e-3)


@every_kind
def test_what_is_charged_is_what_the_event_costs(kind):
    asked = query(kind, rows=50)
    price = MemoryLedger(asked.budget, neighbours="substitution").charge(asked).price
    assert price == Amount.of(asked.cost) == Amount.of(sf.PureDP(1))
    if getattr(asked, "recalibrated", False):
        assert asked.event == PureEvent(1, "inverse-sensitivity")
        return
    assert asked.event == RangeEvent(1, "inverse-sensitivity")
    assert asked.event.rho == Fraction(1, 8)
    concentrated = query(kind, rows=50, budget=sf.ZCDP(0.1))
    assert concentrated.event == ConcentratedEvent(0.1, "inverse-sensitivity")
    assert concentrated.range**2 / 8 <= Fraction(1, 10)
    assert query(kind, budget=sf.ApproxDP(2, 1e-6)).cost == sf.PureDP(2)


# --- refusals -----------------------------------------------------------------------------------


@every_kind
def test_a_private_number_of_values_is_refused_before_the_charge(kind):
    make, own = kind
    public = {"budget": sf.PureDP(1), **own}
    with pytest.raises(NotSupported, match="needs a public number of values: neighbours must be 'subst"):
        make(neighbours="add-remove", **public)
    with pytest.raises(NotSupported, match="needs a public number of values: nulls must be 'lower' or"):
        make(neighbours="substitution", nulls="drop", **public)
    values = np.array([1.0, np.nan])
    for neighbours in ("add-remove", "substitution"):
        session = sf.Session(
            sf.Dataset({"x": values}, unit="row", neighbours=neighbours), budget=sf.PureDP(1)
        )
        with pytest.raises(NotSupported, match=r"use (mean|proportion)$"):
            session.answer(make(column="x", **public))
        assert session.spent == Amount()
    with pytest.raises(NotSupported, match="nulls must be"):
        worst_case(make(**public), size=2, neighbours="substitution")


@every_kind
def test_columns_and_options_that_do_not_fit_are_refused(kind):
    make, own = kind
    with pytest.raises(InvalidParameter, match=r"^noise must be left out"):
        make(budget=sf.PureDP(1), noise="laplace", **own)
    session = sf.Session(
        sf.Dataset(
            {"x": np.array([], dtype=np.int64), "w": np.array(["a"] * 0, dtype=object)},
            unit="row",
            neighbours="substitution",
        ),
        budget=sf.PureDP(1),
    )
    with pytest.raises(InvalidParameter, match=r"^rows must be at least 1"):
        session.answer(make(column="x", budget=sf.PureDP(1), **own))
    with pytest.raises(SchemaMismatch):
        session.answer(make(column="w", budget=sf.PureDP(1), nulls="lower", **own))
    assert session.spent == Amount()
    with pytest.raises(InvalidParameter, match=r"^rows must be"):
        query(kind).interval((0,), 0.9)


@pytest.mark.parametrize(
    ("make", "given_", "rule"),
    [
        (sf.InverseMean, {"points": 0}, "points must be in"),
        (sf.InverseMean, {"points": 2.0}, "points must be a whole number"),
        (sf.InverseMean, {"radius": -1}, "radius must not be negative"),
        (sf.InverseMean, {"radius": math.nan}, "radius must be finite"),
        (sf.ExponentialMean, {"points": True}, "points must be a whole number"),
        (sf.InverseProportion, {"radius": -1}, "radius must be in"),
        (sf.InverseProportion, {"radius": 0.5}, "radius must be a whole number"),
        (sf.InverseProportion, {"recalibrated": 1}, "recalibrated must be True or False"),
    ],
)
def test_parameters_that_break_a_rule_are_refused_by_name(make, given_, rule):
    with pytest.raises(InvalidParameter, match=f"^{rule}"):
        make(budget=sf.PureDP(1), **given_)


def test_recalibration_needs_a_pure_budget():
    for budget in (sf.ZCDP(0.1), sf.ApproxDP(1, 1e-6)):
        with pytest.raises(NotSupported, match=r"^recalibrated=True needs a pure budget"):
            sf.InverseProportion(budget=budget, recalibrated=True)
