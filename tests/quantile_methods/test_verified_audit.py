"""Verified quantiles: quantiles and counts together lose no more than was charged, and defects show.

`pytest tests/quantile_methods/test_verified_audit.py -s` prints how tight every charge is.
"""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.quantile_methods.cases import NARROW, RELATIONS, WIDE, Line, ask, fine_query, law_of
from tests.quantile_methods.mutants import QUANTILE_MUTANTS

from sfumato.audit import compare, exact, worst_by_groups, worst_case
from sfumato.audit import listed as lists
from sfumato.audit.adaptive import Adaptive, first_draws
from sfumato.audit.listed import Pair
from sfumato.data.part import Part
from sfumato.errors import NotSupported
from sfumato.privacy import ZCDP, ApproxDP, PureDP
from sfumato.quantile_methods import FromHistogram, Independent, Interpolated, Joint, Recursive, Single
from sfumato.quantile_methods.adaptive import AdaptiveLaw
from sfumato.quantile_methods.framed import Framed, FramedLaw
from sfumato.quantile_methods.thresholds import Position
from sfumato.quantile_methods.verified import Verified

F = Fraction
H = (F(1, 2),)
THIRDS = (F(1, 3), F(2, 3))
QUARTILES = (F(1, 4), F(1, 2), F(3, 4))
each_relation = pytest.mark.parametrize("relation", RELATIONS)
# A budget, what becomes of nulls, and the share that verifies.
RULES = (
    (PureDP(1), "drop", F(1, 4)),
    (PureDP(1), "lower", F(3, 4)),
    (ZCDP(0.1), "drop", F(1, 4)),
    (ApproxDP(1, 0.1), "lower", F(3, 4)),
)
ASKED = [
    (Single(), H),
    (Single(flip=True), H),
    (Independent(), THIRDS),
    (Joint(subcells=1), QUARTILES),
    (Recursive(subcells=1), QUARTILES),
    (Interpolated(subcells=1, drawn=2), QUARTILES),
    (FromHistogram(steps=8), H),
]


def counted(method, orders, relation, **others):
    """A verified query on a tiny grid."""
    given = {"bounds": (0, 2), "n_hint": 4, "verify": F(1, 4), **others}
    return ask(method, orders, neighbours=relation, **given)


# --- two laws against all their outcomes ----------------------------------------------------------


def every_outcome(left, right, reach):
    """The log masses of both laws at all draws, each with all counts near the exact ones."""
    logs = [], []
    for drawn in left.first.outcomes():
        after = [law.after(drawn) for law in (left, right)]
        assert after[0].places == after[1].places
        centers = [law.counts.center for law in after]
        low, high = np.minimum(*centers) - reach, np.maximum(*centers) + reach
        around = [np.arange(a, b + 1) for a, b in zip(low, high, strict=True)]
        counts = np.stack(np.meshgrid(*around, indexing="ij"), axis=-1).reshape(-1, len(low))
        for law, counted_law, found in zip((left, right), after, logs, strict=True):
            found.append(law.first.logpmf(drawn) + counted_law.counts.logpmf(counts))
            some = (*drawn, *counted_law.places, *counts[-1].tolist())
            assert law.logpmf(some) == pytest.approx(found[-1][-1], rel=1e-12)
            moved = (*drawn, *(cell + 1 for cell in counted_law.places), *counts[-1].tolist())
            assert law.logpmf(moved) == -math.inf
    return Pair(*(np.concatenate(found) for found in logs))


def framed(law):
    return isinstance(law.first, FramedLaw)


LISTED = [
    (Joint(subcells=1), THIRDS, (0.0, 1.0, 2.0), (0.0, 1.0, 1.0)),
    (Joint(subcells=2), THIRDS, (0.0, 1.0, 2.0), (0.0, 1.0, 0.0)),
    (Recursive(subcells=1), THIRDS, (0.0, 0.0, 2.0), (0.0, 1.0, 2.0)),
    (Independent(), THIRDS, (0.0, 2.0, 2.0), (0.0, 2.0, math.nan)),
]


TWO = (Position(F(1, 4), above=False), Position(F(3, 4), above=True))


@pytest.mark.parametrize("budget", [PureDP(16), ZCDP(4)], ids=repr)
@pytest.mark.parametrize(("method", "orders", "left", "right"), LISTED, ids=str)
def test_a_comparison_is_that_of_all_draws_with_all_counts(method, orders, left, right, budget, monkeypatch):
    # So large a budget that nearly all noise is within eight steps, and few counts.
    monkeypatch.setattr(Verified, "positions", lambda *_: TWO)
    query = counted(method, orders, "substitution", budget=budget, verify=F(1, 2), n_hint=None, rows=3)
    laws = [law_of(query, values) for values in (left, right)]
    assert all(isinstance(law, AdaptiveLaw) for law in laws)
    pair = every_outcome(*laws, reach=8)
    for side in pair:
        assert np.exp(side).sum() == pytest.approx(1, abs=1e-6)
    found = compare(*laws)
    assert isinstance(found.parts[0], Adaptive)
    if isinstance(budget, PureDP):
        assert found.epsilon().exact
        assert found.epsilon().upper == pytest.approx(lists.log_ratios(pair).worse, rel=1e-9)
        one, other = (law.logpmf(found.worst_outcome) for law in laws)
        assert abs(one - other) == pytest.approx(found.epsilon().upper, rel=1e-9)
    else:
        assert found.epsilon().lower == math.inf
        assert found.worst_outcome is None
    for epsilon in (0, 0.5, 2, 4):
        low, high = found.delta(epsilon)
        true = lists.hockey_stick(*pair, epsilon)
        assert low - 1e-6 <= true <= high + 1e-6
        assert high - low < 1e-6
    for order in (1.5, 2, 4):
        low, high = found.renyi(order)
        true = lists.worse(pair, lambda each: lists.renyi(each, order))  # noqa: B023  reason: used at once
        assert low * (1 - 1e-4) <= true <= high * (1 + 1e-4)
    low, high = found.rho()
    assert low * (1 - 1e-3) <= lists.concentrated(*pair)
    assert found.renyi(2).lower / 2 <= low * (1 + 1e-9) <= high * (1 + 1e-6)


def test_a_frame_with_all_its_places_has_mass_one_and_the_losses_of_single_places():
    query = counted(Single(), H, "substitution", rows=3)
    laws = [law_of(query, values) for values in ([0.0, 1.0, 2.0], [0.0, 2.0, 2.0])]
    assert laws[0].first.count > 10**14
    first = first_draws(*(law.first for law in laws))
    for side, law in zip(first.pair, laws, strict=True):
        assert np.exp(side).sum() == pytest.approx(1, rel=1e-9)
        # Many tuples are one cell, and each of them has the same log ratio.
        many = side - np.array([law.first.logpmf(drawn) for drawn in first.outcomes])
        assert many.min() >= -1e-9
    ratios = [laws[0].first.logpmf(drawn) - laws[1].first.logpmf(drawn) for drawn in first.outcomes]
    assert np.abs(first.pair.losses - ratios).max() < 1e-9
    choose = np.random.default_rng(5)
    worst = compare(*laws).epsilon().upper
    for _ in range(300):
        drawn = (int(choose.integers(3)), *sorted(choose.integers(3 * 2**24, size=2).tolist()))
        after = [law.after(drawn) for law in laws]
        assert after[0].places == after[1].places
        for law in after:
            outcome = (*drawn, *law.places, *law.counts.center.tolist())
            one, other = (each.logpmf(outcome) for each in laws)
            assert abs(one - other) <= worst + 1e-9


def test_merged_joint_draws_are_compared_as_if_all_were_listed():
    laws = [law_of(ask(Joint(subcells=8), THIRDS, rows=4), v) for v in ([0.0, 0, 1, 3], [0.0, 1, 1, 3])]
    merged = first_draws(*laws)
    assert len(merged.outcomes) < laws[0].count
    every = compare(*laws).parts[0]
    assert merged.ratios == pytest.approx(every.ratios, rel=1e-9)
    for epsilon in (0, 0.2, 0.5):
        one, other = (lists.hockey_stick(*part.pair, epsilon) for part in (merged, every))
        assert one == pytest.approx(other, rel=1e-9)


def test_grids_too_long_to_list_are_refused_in_the_usual_words():
    query = counted(Recursive(), QUARTILES, "substitution", rows=3)
    with pytest.raises(NotSupported, match="an audit lists up to 20,000 outcomes"):
        compare(*(law_of(query, values) for values in ([0.0, 1.0, 2.0], [0.0, 2.0, 2.0])))
    fine = counted(Single(), H, "substitution", bounds=(0, 500), rows=3)
    with pytest.raises(NotSupported, match="use a larger step, fewer orders"):
        compare(*(law_of(fine, values) for values in ([0.0, 1.0, 2.0], [0.0, 2.0, 2.0])))


# --- no neighbours lose more than was charged -----------------------------------------------------


@each_relation
@pytest.mark.parametrize(("method", "orders"), ASKED, ids=str)
@pytest.mark.parametrize(("budget", "nulls", "share"), RULES, ids=str)
def test_no_neighbours_lose_more_than_was_charged(method, orders, relation, budget, nulls, share):
    query = counted(method, orders, relation, budget=budget, nulls=nulls, verify=share, bounds=(0, 1))
    assert isinstance(query.chosen, Verified)
    assert isinstance(query.chosen.method, Framed) == (len(orders) == 1)
    worst = worst_case(query, size=3, cells=2)
    assert worst.loss.holds, f"{worst}\n  {worst.left}\n  {worst.right}"
    assert worst.loss.amount > 0 or isinstance(budget, ApproxDP)
    print(method, relation, nulls, budget, share, f"{worst.loss.tightness:.4f}")


@pytest.mark.parametrize("rows_per_unit", [None, 2])
@each_relation
def test_groups_and_people_with_several_rows_keep_the_claim(relation, rows_per_unit):
    changes = (2 if relation == "substitution" else 1) * (rows_per_unit or 1)
    part = Part(changes if changes > 1 else None)
    for budget in (PureDP(1), ZCDP(0.1)):
        query = counted(Joint(subcells=1), THIRDS, relation, budget=budget, bounds=(0, 1), nulls="lower")
        others = 0 if rows_per_unit else 1
        worst = worst_by_groups(query, part, rows_per_unit=rows_per_unit, others=others, cells=1)
        assert worst.loss.holds, f"{worst}\n  {worst.left}\n  {worst.right}"
        print("by groups", relation, rows_per_unit, budget, f"{worst.loss.tightness:.4f}")


# --- records far apart come near the charge -------------------------------------------------------


def loss_on(line, method, orders, relation, left, right, **others):
    """The largest log ratio at some draws of a long line, counts being the exact ones of either side."""
    size = sum(left)
    query = fine_query(line, method, orders, relation, verify=F(1, 4), n_hint=size, **others)
    laws = [law_of(query, line.data(counts)) for counts in (left, right)]
    parts = getattr(method, "subcells", 1)
    own = [point * parts for point in line.points]
    draws = itertools.combinations_with_replacement(own, len(orders))
    if framed(laws[0]):
        outer = [point << 24 for point in (0, *line.points, line.length - 1)]
        pairs = list(itertools.combinations_with_replacement(sorted(outer), 2))
        draws = ((*a, *b) for a, b in itertools.product(draws, pairs))
    worst = 0.0
    for drawn in draws:
        for law in laws:
            after = law.after(drawn)
            outcome = (*drawn, *after.places, *after.counts.center.tolist())
            one, other = (each.logpmf(outcome) for each in laws)
            worst = max(worst, abs(one - other))
    return worst


FAR = [
    (Single(), H, "substitution", (3, 4, 3), (2, 4, 4), 0.97),
    (Single(), H, "add-remove", (3, 3, 3), (4, 3, 3), 0.97),
    (Recursive(subcells=1), THIRDS, "substitution", (3, 4, 3), (2, 4, 4), 0.87),
    (Joint(subcells=1), THIRDS, "substitution", (3, 4, 3), (2, 4, 4), 0.74),
]


@pytest.mark.parametrize(("method", "orders", "relation", "left", "right", "least"), FAR, ids=str)
def test_records_far_apart_come_near_the_charge_and_never_pass_it(
    method, orders, relation, left, right, least
):
    losses = []
    for wide in range(4):
        line = Line.of([WIDE if place == wide else NARROW for place in range(4)])
        losses.append(loss_on(line, method, orders, relation, left, right, nulls="lower"))
    print(method, relation, f"{max(losses):.4f}")
    assert least <= max(losses) <= 1 + 1e-9


# --- defects --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in QUANTILE_MUTANTS if "verif" in name])
def test_a_defect_of_verification_shows(name):
    mutant = QUANTILE_MUTANTS[name]
    mutant.check()
    with mutant.defect(), pytest.raises(AssertionError) as caught:
        mutant.check()
    print(f"{name}: {str(caught.value).splitlines()[0][:150]}")


def test_thresholds_that_follow_the_data_give_them_away():
    query = counted(Joint(subcells=1), THIRDS, "substitution", nulls="lower")
    pair = np.array([0.0, 0, 1]), np.array([0.0, 1, 1])
    assert exact(query, *pair).holds
    with QUANTILE_MUTANTS["thresholds that verify at the true ranks"].defect():
        assert exact(query, *pair).amount == math.inf
        for budget in (ZCDP(0.1), ApproxDP(1, 0.1)):
            assert exact(replace(query, budget=budget), *pair).verdict == "VIOLATED"
