"""A share of the budget for two outer orders: what both parts lose together, and what they cost.

`pytest tests/quantile_methods/test_framed.py -s` prints how tight every charge is.
"""

import math
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
from scipy.stats import chi2
from tests.laws.fit import FALSE_ALARM
from tests.quantile_methods.cases import RELATIONS, Line, ask, fine_query, law_of, lines

import sfumato as sf
from sfumato.audit import compare, worst_case
from sfumato.audit.exact import least_cost, loss_of
from sfumato.audit.listings import listing
from sfumato.audit.pairs import neighbouring_pairs
from sfumato.data.admission import admit
from sfumato.laws import Joint as Product
from sfumato.laws import SeededBits
from sfumato.laws.chain import slack
from sfumato.privacy import ZCDP, ApproxDP, PureDP
from sfumato.privacy.composition import approx_satisfied
from sfumato.privacy.conversions import zcdp_rho
from sfumato.quantile_methods import Independent, InverseSensitivity, Joint, Recursive, Single, framed
from sfumato.quantile_methods.framed import LEAST_SHARE, MOST_SHARE, REACH, Framed
from sfumato.quantile_methods.method import EMPHASIS, buy
from sfumato.query import raw

F = Fraction
H = F(1, 2)
THIRDS = (F(1, 3), F(2, 3))
SHARES = (F(1, 5), "auto")
BUDGETS = (PureDP(1), ZCDP(0.1), ApproxDP(1, 0.1), ApproxDP(1, 1e-6))
ASKED = [
    (Single(), (H,)),
    (Independent(), (H,)),
    (Independent(), THIRDS),
    (Joint(subcells=1), THIRDS),
    (Recursive(subcells=1), THIRDS),
]
each_relation = pytest.mark.parametrize("relation", RELATIONS)
each_share = pytest.mark.parametrize("share", SHARES, ids=str)
each_asked = pytest.mark.parametrize(("method", "orders"), ASKED, ids=str)
each_budget = pytest.mark.parametrize("budget", BUDGETS, ids=repr)


def row(*parts):
    *words, tightness = parts
    return f"{' '.join(map(str, words))}: {tightness:.4f}"


# --- audits ---------------------------------------------------------------------------------------


def coarse_frames():
    """Outer points without places inside a cell, so that outcomes can be listed.

    Into how many points a cell is divided is public and the loss is bounded for any number, on any line of
    points: the law is that of a longer or a shorter line. The sharp audit below has all 2^24 places.
    """
    stack = ExitStack()
    for kind in (Joint, Recursive):
        stack.enter_context(patch.object(framed, kind.__name__, partial(kind, subcells=1)))
    return stack


def assert_small_data_sets_keep_the_claim(query, size, cells):
    with coarse_frames():
        worst = worst_case(query, size=size, cells=cells)
    assert worst.loss.holds, f"{worst}\n  {worst.left}\n  {worst.right}"
    return worst


@each_asked
@each_relation
@each_budget
def test_no_neighbours_lose_more_than_was_charged(method, orders, relation, budget):
    single = len(orders) == 1
    size, top = (3, 2) if single else (3, 1)
    for share, nulls in ((F(1, 5), "drop"), ("auto", "lower")):
        query = ask(
            method,
            orders,
            bounds=(0, top),
            budget=budget,
            neighbours=relation,
            nulls=nulls,
            n_hint=4,
            interval_share=share,
        )
        assert isinstance(query.chosen, Framed)
        worst = assert_small_data_sets_keep_the_claim(query, size, top + 1)
        assert worst.loss.amount > 0 or isinstance(budget, ApproxDP)
        print(row(method, relation, nulls, budget, share, worst.loss.tightness))


def test_a_frame_of_recursive_draws_keeps_the_claim_too():
    # Budgets so small that a joint draw would be all rounding have another frame.
    tiny = ask(bounds=(0, 1), rows=3, budget=PureDP(100 * slack(2)), interval_share=H)
    assert isinstance(tiny.chosen._frame(tiny.facts), Recursive)
    assert isinstance(replace(tiny, budget=PureDP(1)).chosen._frame(tiny.facts), Recursive)
    with patch.object(framed, "slack", lambda orders: 1):
        for relation in RELATIONS:
            query = ask(bounds=(0, 2), neighbours=relation, n_hint=4, interval_share=F(1, 5))
            assert isinstance(query.chosen._frame(query.facts), Recursive)
            worst = assert_small_data_sets_keep_the_claim(query, 3, 3)
            print(row("frame of recursive draws", relation, worst.loss.tightness))


def parts_of(law):
    """The two independent parts as the auditor takes them apart: joint draws are exact on any grid."""
    return Product((law.own, law.outer))


def sharp(method, orders, relation, *, size, places, nulls="drop", budget=BUDGETS[0], share=SHARES[0]):
    """The largest loss over records at a few places far apart, as a part of what was charged."""
    worst = 0.0
    for line in lines(places):
        given = {"interval_share": share, "n_hint": size, "nulls": nulls, "budget": budget}
        query = fine_query(line, method, orders, relation, **given)
        rows = size if relation == "substitution" else None
        cost = least_cost(replace(query, rows=rows))
        records = (*map(float, line.places), math.nan)
        known = {}
        for pair in neighbouring_pairs(records, size, relation):
            for chosen in pair:
                if chosen not in known:
                    known[chosen] = parts_of(law_of(query, [records[i] for i in chosen]))
            loss = loss_of(compare(*(known[chosen] for chosen in pair)), cost)
            # Recursive draws on so many points are looked at from below only.
            assert loss.holds or (method.name == "recursive" and loss.verdict == "undecided"), (pair, loss)
            worst = max(worst, loss.tightness)
    return worst


@each_asked
@each_relation
def test_records_far_apart_come_near_the_charge_and_never_pass_it(method, orders, relation):
    size, places = (4, 2) if len(orders) == 1 else (3, 1)
    for nulls in ("drop", "lower"):
        loss = sharp(method, orders, relation, size=size, places=places, nulls=nulls)
        print(row("sharp", method, relation, nulls, loss))
        if method == Single() and relation == "add-remove":
            # The shares leave nothing: some pair loses all that was charged for both parts.
            assert loss >= 0.999


@each_relation
def test_the_law_is_that_of_two_independent_parts(relation):
    with coarse_frames():
        query = ask(bounds=(0, 2), neighbours=relation, n_hint=4, interval_share=H, budget=PureDP(4))
        law = law_of(query, [0.0, 0.0, 2.0, math.nan])
        outcomes = list(law.outcomes())
        chances = np.exp([law.logpmf(outcome) for outcome in outcomes])
        assert law.count == len(outcomes) == len(set(outcomes)) == 18
        assert chances.sum() == pytest.approx(1, abs=1e-12)
        for outcome in outcomes:
            assert query.possible(outcome)
            assert law.logpmf(outcome) == law.own.logpmf(outcome[:1]) + law.outer.logpmf(outcome[1:])
        bits, places = SeededBits(1), {outcome: i for i, outcome in enumerate(outcomes)}
        seen = np.bincount([places[law.sample(bits)] for _ in range(4000)], minlength=len(outcomes))

    def rejects(wanted):
        expected = wanted / wanted.sum() * seen.sum()
        return chi2.sf(((seen - expected) ** 2 / expected).sum(), len(seen) - 1) < FALSE_ALARM

    assert not rejects(chances)
    assert rejects(chances**0.5)


def test_outer_points_on_all_their_places_are_too_many_to_list_and_are_not_made():
    # There are about 10^15 pairs of them: an auditor reads their number and refuses.
    law = law_of(ask(bounds=(0, 2), rows=3, interval_share=F(1, 5)), [0.0, 1.0, 2.0])
    assert law.count > 10**14
    assert iter(law.outcomes()) is not None
    with pytest.raises(sf.NotSupported, match="outcomes"):
        listing(law)


# --- what it costs --------------------------------------------------------------------------------


@each_asked
@each_relation
@each_share
@each_budget
def test_both_parts_cost_exactly_the_budget(method, orders, relation, share, budget):
    for size in (4, 1000, 10**7):
        query = ask(method, orders, budget=budget, neighbours=relation, n_hint=size, interval_share=share)
        if relation == "substitution":
            query = replace(query, rows=size)
        assert_costs_the_budget(query, budget)


def assert_costs_the_budget(query, budget):
    event, cost = query.event, query.cost
    if isinstance(cost, PureDP):
        assert cost.epsilon == budget.epsilon
        assert event.pure_epsilon == budget.epsilon
        assert type(event.pure_epsilon) is F
        return
    assert cost == budget
    rho = budget.rho if isinstance(budget, ZCDP) else zcdp_rho(budget.epsilon, budget.delta)
    assert event.rho <= rho
    # Roots are rounded down after 80 binary digits.
    assert float(event.rho) == pytest.approx(float(rho), rel=1e-12)
    if isinstance(budget, ApproxDP):
        assert approx_satisfied(event, budget)


@pytest.mark.parametrize("budget", [PureDP(1), ZCDP(0.1), ApproxDP(1, 1e-6)], ids=repr)
@each_share
def test_a_session_charges_the_budget_and_its_preview_says_so(budget, share):
    values = np.arange(300.0)
    for relation, probs in product(RELATIONS, ([0.5], [0.25, 0.5, 0.75])):
        data = sf.Dataset({"x": values}, unit="row", neighbours=relation)
        query = sf.Quantiles(
            column="x", probs=probs, budget=budget, bounds=(0, 300), n_hint=300, interval_share=share
        )
        session = sf.Session(data, budget=budget, bits=SeededBits(2))
        assert session.preview(query).cost == session.answer(query).cost
        with pytest.raises(sf.BudgetExceeded):
            session.answer(query)


@pytest.mark.parametrize("budget", [PureDP(1), ZCDP(0.1), ApproxDP(1, 1e-6), ApproxDP(0.1, 0.3)], ids=repr)
@each_share
@each_relation
def test_a_private_number_of_values_is_counted_within_the_same_budget(budget, share, relation):
    for orders in ((H,), THIRDS):
        query = ask("auto", orders, budget=budget, neighbours=relation, interval_share=share)
        if relation == "substitution":
            # Under substitution the number of rows is public, and nothing is counted.
            assert replace(query, rows=9)._counted is None
            continue
        counted = query._counted
        assert counted is not None
        whole = zcdp_rho(budget.epsilon, budget.delta) if isinstance(budget, ApproxDP) else None
        for count in (-5, 1, 30, 1000, 10**9):
            facts = counted.settled(count)
            after = query._pick(facts)[0].terms(facts).event
            noise, rest = counted.noise.event, facts.budget
            if isinstance(rest, PureDP):
                assert query.cost == PureDP(1)
                assert noise.pure_epsilon + after.pure_epsilon == query.event.pure_epsilon == 1
            else:
                assert after.rho <= rest.rho
                assert noise.rho + after.rho <= (whole if whole is not None else budget.rho)


def test_what_follows_a_count_keeps_its_part_on_all_small_data_sets():
    query = ask(Single(), bounds=(0, 1), neighbours="add-remove", interval_share="auto")
    records = (0.0, 1.0, math.nan)
    for count in (1, 3, 1000):
        rest = query._counted.settled(count).budget
        known = {}
        for pair in neighbouring_pairs(records, 3, "add-remove"):
            for chosen in pair:
                if chosen not in known:
                    known[chosen] = parts_of(law_of(query, [records[i] for i in chosen]).after((count,)))
            loss = loss_of(compare(*(known[chosen] for chosen in pair)), rest)
            assert loss.holds, (count, pair, loss)
    assert rest == PureDP(F(19, 20))


# --- the public parts -----------------------------------------------------------------------------


def test_the_share_of_auto_follows_from_public_facts_alone():
    parts = []
    for size in (10, 500, 1000, 10**4, 10**7):
        facts = ask(bounds=(0, 100), rows=size, nulls="lower", interval_share="auto").facts
        parts.append(Framed(method=Single(), share="auto").part(facts))
    assert parts == sorted(parts, reverse=True)
    assert parts[0] == MOST_SHARE
    assert parts[2] == F(1, 5)
    assert parts[-1] == LEAST_SHARE
    assert Framed(method=Single(), share=F(3, 7)).part(facts) == F(3, 7)


@each_relation
@pytest.mark.parametrize("orders", [(H,), THIRDS, (F(1, 100_000),), (F(99_999, 100_000),)], ids=str)
def test_outer_orders_lie_outside_of_those_asked_for(orders, relation):
    for size, share, epsilon in product((1, 4, 1000, 10**9), SHARES, (F(1, 10**6), F(1), F(100))):
        budget = PureDP(epsilon)
        query = ask("auto", orders, rows=size, n_hint=size, neighbours=relation, budget=budget)
        query = replace(query, interval_share=share)
        # Tiny budgets have shorter fractions for orders.
        first, last, facts = query.orders[0], query.orders[-1], query.facts
        low, high = query.chosen.outer_orders(facts)
        assert 0 < low < first
        assert last < high < 1
        finest = max(facts.finest, 4 * first.denominator)
        assert max(low.denominator, high.denominator) <= finest
        away = REACH / buy(budget.share(query.chosen.part(facts)), 1).range / size
        away = max(away, (last - first) / 2, F(1, finest))
        # A short fraction is not quite at the distance that is wanted; half of what is left there is enough.
        assert float(first - low) == pytest.approx(float(min(away, first / 2)), abs=1 / finest)
        assert float(high - last) == pytest.approx(float(min(away, (1 - last) / 2)), abs=1 / finest)


def test_neighbours_have_the_same_public_facts():
    for relation in RELATIONS:
        asked = ask(bounds=(0, 100), neighbours=None, interval_share="auto", n_hint=1000, step=None)
        sizes = (1000, 1000) if relation == "substitution" else (1000, 1001)
        one, other = (
            asked.bind(admit(np.where(np.arange(size) < nulls, np.nan, 1.0)), sf.Field(), relation)
            for size, nulls in zip(sizes, (5, 6), strict=True)
        )
        assert one == other
        assert one.chosen.outer_orders(one.facts) == other.chosen.outer_orders(other.facts)


# --- releases -------------------------------------------------------------------------------------


@each_relation
@each_share
@pytest.mark.parametrize("hint", [None, 20])
def test_a_release_survives_json(relation, share, hint):
    # So few values that their interval needs no simulation.
    values = np.random.default_rng(3).normal(50, 10, 20)
    methods = ("auto", "independent", "recursive", "joint", InverseSensitivity(radius=1))
    for method, probs in product(methods, ([0.5], [0.75, 0.25])):
        release = sf.quantiles(
            values,
            probs,
            bounds=(0, 100),
            epsilon=F(1, 10),
            method=method,
            neighbours=relation,
            n_hint=hint,
            interval_share=share,
            bits=SeededBits(4),
        )
        counted = hint is None and relation == "add-remove"
        if method != "auto":
            assert len(release.outcome) == counted + len(probs) + 2
        again = sf.read_release(release.to_json())
        assert again == release
        assert again.query.interval_share == share
        assert np.array_equal(again.value, release.value)
        assert again.to_json() == release.to_json()
        assert again.to_json() != release.to_json().replace("interval_share", "")
        assert "outer pair" in release.method or counted


@each_asked
@each_relation
def test_foreign_outcomes_are_refused(method, orders, relation):
    query = ask(method, orders, bounds=(0, 100), neighbours=relation, n_hint=50, rows=50, interval_share=H)
    good = raw(law_of(query, np.arange(50.0)).sample(SeededBits(5)))
    assert query.possible(good)
    cells = query.facts.grid.cells * framed.Joint().subcells
    for bad in (
        (),
        good[:1],
        good[:-1],
        good[1:],
        (*good, 0),
        (101, *good[1:]),
        (-1, *good[1:]),
        (*good[:-1], cells),
        (*good[:-2], -1, good[-1]),
        # The outer points do not decrease.
        (*good[:-2], good[-1] + 1, good[-1]),
    ):
        assert not query.possible(bad), bad
    # Without a share the same query has no outer points.
    assert not replace(query, interval_share=0).possible(good)
    assert replace(query, interval_share=0).possible(good[:-2])


def test_answers_are_those_of_the_method_and_outer_points_are_their_own():
    query = ask(Single(), bounds=(0, 100), rows=50, interval_share=H)
    places = framed.Joint().subcells
    outcome = (40, 30 * places, 55 * places + 7)
    assert query.value(outcome).tolist() == [40]
    assert query.chosen.outer_answers(outcome, query.facts) == [30, 55]
    assert query.chosen.brackets(outcome, query.facts) == [(40, 41)]
    assert query.chosen.ends(query.facts) == (0, 100)


def test_a_share_of_nothing_is_the_method_alone():
    plain, none = ask(rows=9), ask(rows=9, interval_share=0)
    assert plain == none
    assert none.chosen == Single(emphasis=EMPHASIS)
    assert none.event == plain.event


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "share",
    [
        -1,
        F(-1, 10**9),
        1e-12,
        0.999,
        1,
        1.5,
        "yes",
        "Auto",
        "",
        math.nan,
        math.inf,
        True,
        False,
        None,
        (0.5,),
        1j,
    ],
)
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(sf.InvalidParameter, match="interval_share"):
        ask(interval_share=share)
    with pytest.raises(sf.InvalidParameter, match="interval_share"):
        sf.median([1.0, 2.0], bounds=(0, 3), epsilon=1, interval_share=share)


@pytest.mark.parametrize("method", ["tree", "equi_depth", "unbounded"])
@each_share
def test_methods_that_tell_their_interval_or_have_no_bounds_take_no_share(method, share):
    with pytest.raises(sf.InvalidParameter, match=f"interval_share must be 0 for the method '{method}'"):
        ask(method, interval_share=share)
    assert ask(method, interval_share=0).interval_share == 0


def test_a_share_is_read_exactly():
    for given in (0.1, F(1, 10), np.float64(0.1), np.float32(0.1)):
        share = ask(interval_share=given).interval_share
        assert share == F(1, 10)
        assert type(share) is F


# --- mutants --------------------------------------------------------------------------------------


def own_with_the_whole_budget(method, facts):
    return replace(facts, budget=method._whole(facts), points=facts.made)


def outer_with_the_whole_budget(method, facts):
    return replace(facts, budget=method._whole(facts), orders=method.outer_orders(facts), points=None)


def outer_free(method, facts):
    return method.method.terms(method.own(facts))


def shares_of_both_the_whole(method, facts):
    return facts.budget.share(F(4, 5)) if isinstance(facts.budget, PureDP) else facts.budget


MUTANTS = {
    "own part with the whole budget": ("own", own_with_the_whole_budget),
    "outer part with the whole budget": ("outer", outer_with_the_whole_budget),
    "outer part not charged": ("terms", outer_free),
    "a part of the budget lost": ("_whole", shares_of_both_the_whole),
}
# The last one is private; only its price is wrong.
LEAKS = list(MUTANTS)[:3]


def check_cost():
    for budget in (PureDP(1), ZCDP(0.1)):
        assert_costs_the_budget(
            ask(neighbours="add-remove", n_hint=4, budget=budget, interval_share=F(1, 5)), budget
        )


def check_loss():
    sharp(Single(), (H,), "add-remove", size=4, places=2)


def test_what_notices_the_defects_is_green_without_them():
    check_cost()
    check_loss()


@pytest.fixture
def nothing_kept():
    """Facts that were derived before a defect, or with it, are forgotten."""
    for kept in (Framed.own, Framed.outer):
        getattr(kept, "cache_clear", lambda: None)()
    yield
    for kept in (Framed.own, Framed.outer):
        getattr(kept, "cache_clear", lambda: None)()


@pytest.mark.usefixtures("nothing_kept")
@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_price_is_noticed(name):
    with patch.object(Framed, *MUTANTS[name]), pytest.raises(AssertionError):
        check_cost()


@pytest.mark.usefixtures("nothing_kept")
@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_is_noticed(name):
    with patch.object(Framed, *MUTANTS[name]), pytest.raises(AssertionError) as caught:
        check_loss()
    print(f"{name}: {str(caught.value).splitlines()[0][:150]}")


def by_the_number_of_values(method, view, facts):
    """The shares and the outer orders follow the number of values, which is private."""
    facts = replace(facts, size=view[0].size)
    own = method.method.law(view[0], method.own(facts))
    return framed.FramedLaw(own, method._frame(facts).law(view[1], method.outer(facts)))


def test_shares_that_follow_a_private_number_are_noticed():
    part = Framed(method=Single(), share="auto").part
    facts = ask(nulls="lower").facts
    size = next(
        n for n in range(1000, 1100) if part(replace(facts, size=n)) != part(replace(facts, size=n + 1))
    )
    line = Line.of([0, 2**31, 4, 0])
    counts = (size // 2, 3, size - size // 2 - 3)

    def loss():
        query = fine_query(line, Single(), (H,), "add-remove", interval_share="auto", n_hint=1000)
        more = (counts[0] + 1, *counts[1:])
        laws = [parts_of(law_of(query, line.data(each))) for each in (counts, more)]
        return loss_of(compare(*laws), least_cost(query))

    assert loss().holds
    with patch.object(Framed, "law", by_the_number_of_values):
        found = loss()
        print(f"shares that follow a private number: loss {found.amount:.3f} of 1")
        assert found.verdict == "VIOLATED"
