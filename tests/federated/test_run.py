"""A run: two accountants, a stop before the budget is passed, and spending that survives a crash."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from sfumato.errors import BudgetExceeded, InvalidParameter, NotSupported
from sfumato.federated import Adaptive, Aggregator, Run, noise_for
from sfumato.federated.calibrating import affordable, most_rounds
from sfumato.laws import Bits, SeededBits
from sfumato.ledger import MemoryLedger, SqlLedger
from sfumato.privacy import ZCDP, Amount, ApproxDP, PureDP, compose


def settings(**changes):
    given = {
        "bound": 1,
        "noise_multiplier": 1,
        "expected_clients": 4,
        "neighbours": "add-remove",
        "shapes": ((2, 3), (3,)),
    }
    return Aggregator(**{**given, **changes})


UPDATE = [np.ones((2, 3)), np.zeros(3)]
FOLLOWS = Adaptive(lowest=0.01, highest=100)


def unread():
    """Updates that must not be looked at."""
    raise AssertionError("the updates were read")
    yield


class StolenBits(Bits):
    """The process dies when it first draws."""

    private = True

    def words(self, count):
        raise KeyboardInterrupt


def gaussian_delta(epsilon, ratio):
    """The curve of the continuous Gaussian, for sensitivity over sigma."""
    z = epsilon / ratio - ratio / 2
    return ndtr(-z) - math.exp(epsilon + log_ndtr(-z - ratio))


def gaussian_epsilon(delta, ratio):
    return brentq(lambda epsilon: gaussian_delta(epsilon, ratio) - delta, 0, 200, xtol=1e-12)


@pytest.mark.parametrize("rounds", [1, 5, 40])
@pytest.mark.parametrize("multiplier", [1, 4])
def test_the_gaussian_accountant_is_the_exact_curve_and_a_little_more(rounds, multiplier):
    run = Run(settings(noise_multiplier=multiplier), ZCDP(1000))
    for _ in range(rounds):
        run.charge()
    exact = gaussian_epsilon(1e-5, math.sqrt(rounds) / multiplier)
    assert exact <= run.epsilon(1e-5) <= exact * (1 + 1e-5)
    assert run.epsilon(1e-5) < run.epsilon(1e-5, accountant="zcdp")
    assert run.spent == Amount(rho=Fraction(rounds, 2 * multiplier**2))


def test_five_rounds_cost_what_two_other_accountants_say():
    run = Run(settings(), ApproxDP(12, 1e-5))
    assert run.epsilon(1e-5) == 0
    for _ in range(5):
        run.charge()
    assert run.epsilon(1e-5) == pytest.approx(11.48, abs=5e-4)
    assert run.epsilon(1e-5, accountant="zcdp") == pytest.approx(12.2997, abs=5e-4)
    dp_accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    event = dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(1.0), 5)
    by_loss = PLDAccountant().compose(event).get_epsilon(1e-5)
    assert run.epsilon(1e-5) == pytest.approx(by_loss, rel=1e-3)
    # Orders of Renyi divergences are a grid there and any number here, so zCDP is at most as large.
    by_orders = RdpAccountant().compose(event).get_epsilon(1e-5)
    assert by_orders == pytest.approx(12.30, abs=0.01)
    assert run.epsilon(1e-5) < run.epsilon(1e-5, accountant="zcdp") <= by_orders


@pytest.mark.parametrize("relation", ["add-remove", "substitution"])
@pytest.mark.parametrize("vote_noise", [None, Fraction(7, 10), 50])
def test_a_multiplier_costs_the_same_with_votes_and_twice_the_distance_by_substitution(relation, vote_noise):
    follows = None if vote_noise is None else Adaptive(lowest=0.01, highest=100, vote_noise=vote_noise)
    plan = settings(noise_multiplier=Fraction(13, 10), neighbours=relation, adaptive=follows)
    run = Run(plan, ZCDP(1000))
    for _ in range(7):
        run.charge()
    moved = 2 if relation == "substitution" else 1
    assert run.spent == Amount(rho=Fraction(7 * moved**2, 2) / Fraction(13, 10) ** 2)
    assert run.epsilon(1e-5) == pytest.approx(gaussian_epsilon(1e-5, moved * math.sqrt(7) / 1.3), rel=1e-6)
    dp_accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import PLDAccountant

    # What is drawn, and not what is claimed: the scales of the two laws over how far one client moves them.
    laws = [plan.noise] if plan.noise_on_votes is None else [plan.noise, plan.noise_on_votes]
    scales = [math.sqrt(law.sigma_squared) / (moved * plan.steps) for law in laws]
    parts = dp_accounting.ComposedDpEvent([dp_accounting.GaussianDpEvent(scale) for scale in scales])
    by_loss = PLDAccountant().compose(dp_accounting.SelfComposedDpEvent(parts, 7)).get_epsilon(1e-5)
    assert run.epsilon(1e-5) == pytest.approx(by_loss, rel=1e-6)


@pytest.mark.parametrize("follows", [None, FOLLOWS])
@pytest.mark.parametrize(
    ("budget", "rounds"), [(ApproxDP(12, 1e-5), 5), (ZCDP(3), 6), (ZCDP(Fraction(1, 2)), 1), (ZCDP(0.4), 0)]
)
def test_the_run_stops_before_the_budget_is_passed_and_reads_nothing(budget, rounds, follows):
    run = Run(settings(adaptive=follows), budget)
    assert run.rounds == run.rounds_left == rounds
    for _ in range(rounds):
        run.round([UPDATE, None])
    for attempt in (run.charge, run.require, lambda: run.round(unread())):
        with pytest.raises(BudgetExceeded, match=rf"^round {rounds + 1} does not fit"):
            attempt()
    assert run.rounds_left == 0
    assert run.charged == rounds
    if isinstance(budget, ApproxDP):
        assert run.epsilon(budget.delta) <= budget.epsilon
        more = compose([run.start.event_of(rounds + 1)], delta=budget.delta)
        assert more.epsilon > budget.epsilon
    else:
        assert run.spent.fits(Amount.of(budget))


def test_a_round_is_charged_before_its_updates_are_read():
    run = Run(settings(), ApproxDP(12, 1e-5))
    with pytest.raises(AssertionError, match="the updates were read"):
        run.round(unread())
    assert run.charged == 1


def test_fewer_rounds_than_the_budget_pays_for_may_be_asked_and_not_more():
    assert Run(settings(), ApproxDP(12, 1e-5), 3).rounds_left == 3
    with pytest.raises(InvalidParameter, match=r"^rounds must be at most 5, which is what the budget pays"):
        Run(settings(), ApproxDP(12, 1e-5), 6)


def test_the_number_of_rounds_is_the_largest_that_fits():
    for multiplier in (Fraction(1, 2), 3, 50):
        for budget in (ApproxDP(1, 1e-6), ApproxDP(20, 1e-9), ZCDP(0.7)):
            round_ = settings(noise_multiplier=multiplier)
            most = most_rounds(round_, budget)
            assert affordable(round_, budget, most)
            assert not affordable(round_, budget, most + 1)
    assert most_rounds(settings(noise_multiplier=2**20), ApproxDP(100, 0.5)) == 10**6


def test_on_a_coarse_lattice_every_coordinate_of_every_round_costs_something():
    coarse = settings(noise_multiplier=8, steps=4, shapes=((60,),))
    budget = ApproxDP(2, 1e-5)
    most = most_rounds(coarse, budget)
    assert 0 < most < most_rounds(settings(noise_multiplier=8), budget)
    costs = [compose([coarse.event_of(count)], delta=budget.delta).epsilon for count in (most, most + 1)]
    assert costs[0] <= budget.epsilon < costs[1]


def test_the_bound_moves_from_round_to_round_and_the_cost_does_not():
    run = Run(settings(adaptive=FOLLOWS, expected_clients=100), ZCDP(10))
    costs, bounds = [], []
    for _ in range(5):
        costs.append(run.round([UPDATE] * 100, SeededBits(run.charged)).event)
        bounds.append(run.aggregator.bound)
    assert len(set(costs)) == 1
    assert sorted(set(bounds)) == bounds
    assert run.spent == Amount(rho=Fraction(5, 2))


@pytest.mark.parametrize("relation", ["add-remove", "substitution"])
@pytest.mark.parametrize("follows", [None, FOLLOWS])
@pytest.mark.parametrize(
    ("budget", "rounds"), [(ApproxDP(1, 1e-5), 1), (ApproxDP(3, 1e-6), 100), (ZCDP(0.3), 7)]
)
def test_the_calibrated_noise_lasts_for_the_rounds_and_less_does_not(relation, follows, budget, rounds):
    given = {"neighbours": relation, "adaptive": follows, "expected_clients": 10**6}
    multiplier = noise_for(budget, rounds, coordinates=9, **given)
    assert Run(settings(noise_multiplier=multiplier, **given), budget).rounds >= rounds
    less = settings(noise_multiplier=multiplier * Fraction(999_997, 10**6), **given)
    assert most_rounds(less, budget) < rounds
    moved = 2 if relation == "substitution" else 1
    if isinstance(budget, ZCDP):
        wanted = moved * math.sqrt(rounds / (2 * float(budget.rho)))
    else:
        epsilon, delta = float(budget.epsilon), float(budget.delta)
        wanted = 1 / brentq(lambda ratio: gaussian_delta(epsilon, ratio) - delta, 1e-3, 10, xtol=1e-14)
        wanted *= moved * math.sqrt(rounds)
    assert wanted * (1 - 1e-9) <= float(multiplier) <= wanted * (1 + 1e-4)


def test_the_search_for_noise_goes_far_below_what_zcdp_asks_for():
    for budget in (ApproxDP(0.001, 0.9), ApproxDP(1000, 0.5), ApproxDP(3, 0.7)):
        multiplier = noise_for(budget, 1, neighbours="add-remove", coordinates=2)
        assert affordable(settings(noise_multiplier=multiplier, shapes=((2,),)), budget, 1)
        if multiplier > Fraction(1, 100):
            less = settings(noise_multiplier=multiplier * Fraction(999_997, 10**6), shapes=((2,),))
            assert not affordable(less, budget, 1)


def test_votes_may_take_almost_all_of_the_privacy_and_not_more():
    budget, terms = ApproxDP(1, 1e-5), {"neighbours": "add-remove", "coordinates": 9}
    alone = noise_for(budget, 10, **terms)
    # zCDP would ask for a multiplier that is 12 % larger, at which these votes alone cost too much.
    for factor in (Fraction(501, 1000), Fraction(54, 100), Fraction(9, 10)):
        follows = Adaptive(lowest=0.01, highest=100, vote_noise=alone * factor)
        found = noise_for(budget, 10, adaptive=follows, **terms)
        assert float(found) == pytest.approx(float(alone), rel=1e-5)
        assert Run(settings(noise_multiplier=found, adaptive=follows), budget).rounds >= 10
    follows = Adaptive(lowest=0.01, highest=100, vote_noise=alone * Fraction(499, 1000))
    with pytest.raises(InvalidParameter, match=r"^vote_noise must be above half of noise_multiplier"):
        noise_for(budget, 10, adaptive=follows, **terms)
    with pytest.raises(InvalidParameter, match=r"^adaptive must be an Adaptive, got adaptive=3"):
        noise_for(budget, 10, adaptive=3, **terms)


def test_a_budget_that_no_noise_keeps_is_refused():
    with pytest.raises(NotSupported, match=r"^noise_multiplier must be at most"):
        noise_for(ZCDP(1e-15), 10**6, neighbours="add-remove", coordinates=5)
    with pytest.raises(InvalidParameter, match=r"^budget must be an ApproxDP or a ZCDP"):
        noise_for(PureDP(1), 10, neighbours="add-remove", coordinates=5)
    with pytest.raises(InvalidParameter, match=r"^budget must have an epsilon"):
        Run(settings(), ApproxDP(1001, 1e-5))
    with pytest.raises(InvalidParameter, match=r"^aggregator must be an Aggregator"):
        Run(None, ApproxDP(1, 1e-5))


def test_spending_is_on_disk_before_anything_is_drawn(tmp_path):
    file = tmp_path / "run.json"
    run = Run(settings(), ApproxDP(12, 1e-5), file=file)
    with pytest.raises(KeyboardInterrupt):
        run.round([UPDATE], StolenBits())
    again = Run(settings(), ApproxDP(12, 1e-5), file=file)
    assert again.charged == 1
    assert again.rounds_left == 4


def test_a_killed_server_goes_on_with_its_spending_and_its_bound(tmp_path):
    file = tmp_path / "run.json"
    given = (settings(adaptive=FOLLOWS), ZCDP(3))
    for done in range(6):
        run = Run(*given, file=file)
        assert run.charged == done
        run.round([UPDATE] * 4)
        last = run.aggregator
    run = Run(*given, file=file)
    assert run.aggregator == last
    with pytest.raises(BudgetExceeded):
        run.round(unread())


def test_two_runs_cannot_spend_over_one_file_unnoticed(tmp_path):
    file = tmp_path / "run.json"
    one, two = (Run(settings(), ZCDP(3), file=file) for _ in range(2))
    one.charge()
    with pytest.raises(InvalidParameter, match=r"^file must belong to one run at a time"):
        two.charge()
    file.unlink()
    with pytest.raises(InvalidParameter, match=r"^file must be the record of a run"):
        one.charge()


def test_a_file_of_another_run_or_of_none_is_refused(tmp_path):
    file = tmp_path / "run.json"
    Run(settings(), ZCDP(3), file=file).charge()
    for other in ((settings(noise_multiplier=2), ZCDP(3)), (settings(), ZCDP(4)), (settings(), ZCDP(3), 2)):
        with pytest.raises(InvalidParameter, match=r"^file must hold a run with the same settings"):
            Run(*other, file=file)
    record = json.loads(file.read_text())
    changes = ({"charged": -1}, {"charged": 7}, {"format": 2}, {"type": "run"}, {"more": 1})
    for broken in (*({**record, **change} for change in changes), [], {}):
        file.write_text(json.dumps(broken))
        with pytest.raises(InvalidParameter):
            Run(settings(), ZCDP(3), file=file)
    file.write_text("{")
    with pytest.raises(InvalidParameter, match=r"^file must be the record of a run, got JSONDecodeError"):
        Run(settings(), ZCDP(3), file=file)


def test_a_run_is_read_back_from_json():
    run = Run(settings(adaptive=FOLLOWS, bound=0.1), ApproxDP(12, 1e-5), 4)
    run.round([UPDATE])
    again = Run.from_dict(json.loads(json.dumps(run.to_dict())))
    assert again.to_dict() == run.to_dict()
    assert (again.aggregator, again.charged, again.rounds_left) == (run.aggregator, 1, 3)
    none = Run(settings(), ZCDP(0.1))
    assert Run.from_dict(none.to_dict()).rounds == 0


def test_a_ledger_of_rho_is_charged_round_by_round():
    ledger = MemoryLedger(ZCDP(1), neighbours="add-remove", unit="client")
    run = Run(settings(), ApproxDP(12, 1e-5), ledger=ledger)
    run.round([UPDATE])
    assert ledger.spent == Amount(rho=0.5)
    run.round([UPDATE])
    with pytest.raises(BudgetExceeded):
        run.round(unread())
    assert (run.charged, ledger.spent) == (2, Amount(rho=1))


def test_a_ledger_of_epsilon_is_charged_once_for_the_whole_run():
    ledger = MemoryLedger(ApproxDP(20, 1e-4), neighbours="add-remove", unit="client")
    run = Run(settings(adaptive=FOLLOWS), ApproxDP(12, 1e-5), ledger=ledger)
    assert ledger.spent == Amount()
    for _ in range(5):
        run.round([UPDATE])
        assert ledger.spent == Amount(epsilon=12, delta=1e-5)
    assert [entry.event for entry in ledger.entries] == [run.start.event_of(5)]
    with pytest.raises(BudgetExceeded):
        Run(settings(), ApproxDP(12, 1e-5), ledger=ledger).round(unread())


def test_a_durable_ledger_remembers(tmp_path):
    def account():
        ledger = SqlLedger(f"{tmp_path}/ledger.db", anchor=f"{tmp_path}/anchor")
        return ledger.open("phones", cap=ZCDP(1), neighbours="add-remove", unit="client")

    with pytest.raises(KeyboardInterrupt):
        Run(settings(), ZCDP(5), ledger=account()).round([UPDATE], StolenBits())
    run = Run(settings(), ZCDP(5), ledger=account())
    run.round([UPDATE])
    with pytest.raises(BudgetExceeded):
        run.round(unread())


def test_a_ledger_for_something_else_is_refused_and_so_are_seeded_bits():
    def attempt(cap, **terms):
        given = {"neighbours": "add-remove", "unit": "client", **terms}
        return Run(settings(), ZCDP(1), ledger=MemoryLedger(cap, **given))

    for terms in ({"unit": "row"}, {"neighbours": "substitution"}):
        with pytest.raises(InvalidParameter, match=r"^ledger must have unit='client' and neighbours"):
            attempt(ZCDP(1), **terms)
    for cap in (PureDP(1), ApproxDP(1, 1e-5)):
        with pytest.raises(InvalidParameter, match=r"^ledger must have a ZCDP cap"):
            attempt(cap)
    run = attempt(ZCDP(1))
    with pytest.raises(InvalidParameter, match=r"^bits must be private when a ledger pays"):
        run.round(unread(), SeededBits(1))
    assert run.charged == 0


def test_what_is_no_source_of_bits_or_no_list_of_updates_is_refused_before_the_charge():
    run = Run(settings(), ZCDP(1))
    with pytest.raises(InvalidParameter, match=r"^bits must be a source of bits"):
        run.round(unread(), 3)
    with pytest.raises(InvalidParameter, match=r"^updates must be a list of updates, got NoneType"):
        run.round(None)
    assert run.charged == 0


def test_the_answer_of_a_round_with_another_bound_is_not_followed():
    run, other = Run(settings(), ZCDP(1)), settings(bound=settings().bound * 2)
    with pytest.raises(InvalidParameter, match=r"^answer must be the Round of the settings"):
        run.follow(other.release([]))
    assert run.aggregator == settings()
