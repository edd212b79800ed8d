"""Private selection of keys: the table keeps its promise exactly, is the best, and is what is drawn."""

import itertools
import math
from fractions import Fraction
from functools import cached_property

import numpy as np
import pytest
from scipy.stats import binom
from tests.laws.fit import FALSE_ALARM

from sfumato.audit import compare, exact, worst_case
from sfumato.audit.kept_keys import hockey_stick, worst_selection
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws import Bits, Law, SeededBits, SystemBits, exp_bounds
from sfumato.mechanisms import PartitionSelection
from sfumato.mechanisms import partition_selection as module
from sfumato.mechanisms.partition_selection import UNIT, _Chances, selection_table
from sfumato.privacy import ApproxDP, ApproxEvent, SummedAccountant

FINE = 512  # bits of e^-epsilon in tests, far more than the table has
PARAMETERS = [
    ("1", "1e-6"),
    ("0.1", "1e-9"),
    ("1/3", "1e-15"),
    ("0.01", "0.001"),
    ("5", "1e-5"),
    ("30", "1e-30"),
    ("500", "0.4"),
    ("1e-9", "0.03"),
    ("1e-60", "1/7"),
    ("2", "0.999"),
]


def selection(epsilon="1", delta="0.01", **options):
    return PartitionSelection(epsilon=Fraction(epsilon), delta=Fraction(delta), **options)


def growths(epsilon, bits=FINE):
    """Fractions below and above e^epsilon."""
    low, high = exp_bounds(Fraction(epsilon), bits)
    return Fraction(1 << bits, high), Fraction(1 << bits, max(low, 1))


# --- the table -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "delta"), PARAMETERS)
def test_the_table_satisfies_both_inequalities_exactly_and_in_both_directions(epsilon, delta):
    table, growth = selection_table(*map(Fraction, (epsilon, delta))), growths(epsilon)[0]
    slack = UNIT * Fraction(delta)
    assert table[0] == 0
    assert table[-1] == UNIT
    for one, other in itertools.pairwise(table):
        assert one < other
        # growth is below e^epsilon, so these are stronger than what is claimed
        assert other <= growth * one + slack
        assert UNIT - one <= growth * (UNIT - other) + slack
        assert one <= growth * other + slack
        assert UNIT - other <= growth * (UNIT - one) + slack


def best_chances(delta, growth, count):
    """The largest chances that any strategy has, with a given bound of e^epsilon, in exact fractions."""
    chances, delta = [Fraction(0)], Fraction(delta)
    for _ in range(count):
        last = chances[-1]
        chances.append(min(growth * last + delta, 1 - (1 - last - delta) / growth, Fraction(1)))
        # Fractions of ever more digits; rounding them up keeps them an upper bound.
        chances[-1] = min(Fraction(math.ceil(chances[-1] * 2**FINE), 2**FINE), Fraction(1))
    return chances


@pytest.mark.parametrize(("epsilon", "delta"), PARAMETERS)
def test_no_strategy_keeps_more_and_rounding_loses_next_to_nothing(epsilon, delta):
    table = selection_table(*map(Fraction, (epsilon, delta)))
    above = growths(epsilon)[1] if Fraction(epsilon) < 300 else Fraction(2**900)
    best = best_chances(delta, above, len(table))
    for count, chance in enumerate(table):
        assert Fraction(chance, UNIT) <= best[count]
        assert Fraction(chance, UNIT) >= best[count] * (1 - Fraction(1, 2**60))
    assert best[len(table) - 1] == 1
    # One person less is certain for no strategy, but where rounding the best itself decides.
    assert best[len(table) - 2] < 1 or UNIT - table[-2] < 2**20


def test_the_first_half_is_a_geometric_sum_and_the_second_its_mirror():
    table = selection_table(Fraction(1, 2), Fraction(1, 10**6))
    chances = np.array([chance / UNIT for chance in table])
    first = 1e-6 * np.expm1(np.arange(len(table)) / 2) / np.expm1(0.5)
    half = first <= (1 - 1e-6) / (1 + math.exp(0.5))
    assert chances[half] == pytest.approx(first[half], rel=1e-12)
    assert half.sum() > 20
    for one, other in itertools.pairwise(table[int(half.sum()) : -1]):
        assert (UNIT - one) / UNIT == pytest.approx(math.exp(0.5) * (UNIT - other) / UNIT + 1e-6, rel=1e-9)
    about = 4 * math.log1p(math.tanh(0.25) / 1e-6)
    assert about <= len(table) - 1 <= about + 3


@pytest.mark.parametrize(
    ("epsilon", "delta", "groups"), [("1", "1e-6", 1), ("1", "1e-6", 3), ("1", "1e-15", 99)]
)
def test_a_key_of_one_person_is_kept_with_the_delta_of_one_key_at_most(epsilon, delta, groups):
    chosen = selection(epsilon, delta, groups=groups)
    each = Fraction(delta) / groups
    assert chosen.singleton == chosen.chance(1)
    assert each * (1 - Fraction(1, 2**64)) < chosen.singleton <= each
    assert chosen.chance(0) == 0


def test_chances_reach_one_at_the_threshold_and_stay_there():
    chosen = selection("1", "1e-6", least=4)
    assert chosen.threshold == 28 + 3
    assert [chosen.chance(count) for count in range(4)] == [0] * 4
    assert chosen.chance(4) == selection("1", "1e-6").chance(1)
    assert chosen.chance(30) < chosen.chance(31) == chosen.chance(10**9) == 1


# --- the audit -------------------------------------------------------------------------------------


AUDITED = [("1", "1e-6", 1, 1), ("0.5", "1e-15", 1, 1), ("1/3", "1e-5", 1, 10), ("30", "1e-9", 1, 1)]
AUDITED += [("1", "0.01", 2, 1), ("3", "0.01", 2, 4), ("9", "0.02", 3, 1)]


@pytest.mark.parametrize(("epsilon", "delta", "groups", "least"), AUDITED)
def test_no_neighbours_lose_more_than_delta_and_some_lose_nearly_that(epsilon, delta, groups, least):
    chosen = selection(epsilon, delta, groups=groups, least=least)
    worst = worst_selection(chosen)
    print(worst)
    assert worst.loss.verdict == "holds"
    assert worst.loss.tightness >= 0.99
    assert worst.left == (least - 1,) * groups
    assert worst.right == (least,) * groups


def test_the_audit_by_floats_agrees():
    chosen = selection("1", "0.001")
    pairs = itertools.pairwise(chosen.law(count) for count in range(chosen.threshold + 2))
    deltas = [compare(one, other).delta(1).upper for one, other in pairs]
    assert max(deltas) == pytest.approx(0.001, rel=1e-9)


def test_the_audit_of_the_front_door_knows_selections():
    chosen = selection("1", "1e-12", least=3)
    loss = exact(chosen, 2, 3)
    assert (loss.verdict, loss.amount) == ("holds", pytest.approx(1e-12))
    assert exact(chosen, 30, 31).verdict == exact(chosen, [5, 30, 7], np.array([5, 31, 7])).verdict == "holds"
    assert exact(chosen, [5, 30], [6, 31]).verdict == "VIOLATED"
    assert exact(chosen, 4, 4).amount == 0
    assert worst_case(chosen) == worst_selection(chosen)
    for left, right in (([1, 2], [1]), (-1, 0), (1.5, 2)):
        with pytest.raises(InvalidParameter, match=r"must "):
            exact(chosen, left, right)
    with pytest.raises(NotSupported, match="at most 12 keys that differ"):
        exact(chosen, [1] * 13, [2] * 13)


def test_too_many_neighbours_are_not_listed():
    with pytest.raises(NotSupported, match="too many to list"):
        worst_selection(selection("1", "1e-6", groups=3))


class Broken(PartitionSelection):
    """A selection whose table is that of a mistake."""

    @cached_property
    def _chances(self):
        table = tuple(self.broken())
        return _Chances(table, np.array([min(each >> 128, 2**64 - 1) for each in table], dtype=np.uint64))


class RoundedUp(Broken):
    def broken(self):
        shrink, step, table = exp_bounds(self.epsilon, 192)[0], math.ceil(self.delta * UNIT), [0]
        while table[-1] < UNIT:
            last = table[-1]
            dropped = shrink * max(UNIT - last - step, 0) // UNIT
            table.append(min(math.ceil(Fraction(last * UNIT, shrink)) + step, UNIT - dropped))
        return table


class WithoutTheSecondTerm(Broken):
    def broken(self):
        table = [0]
        while table[-1] < UNIT:
            table.append(min(int(growths(self.epsilon)[0] * table[-1] + self.delta * UNIT), UNIT))
        return table


class GroupsIgnored(Broken):
    def broken(self):
        return selection_table(self.epsilon, self.delta)


class DroppedBelowLeast(Broken):
    """Keys of few people are dropped, and the others keep the chance of their whole number."""

    def broken(self):
        table = selection_table(self.epsilon / self.groups, self.delta / self.groups)
        return [0, *table[self.least :]]


class ThresholdByFloat(Broken):
    def broken(self):
        table = selection_table(self.epsilon, self.delta)
        about = 2 / float(self.epsilon) * math.log1p(math.tanh(float(self.epsilon) / 2) / float(self.delta))
        return [*table[: round(about)], UNIT]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (RoundedUp, {}),
        (WithoutTheSecondTerm, {}),
        (GroupsIgnored, {"groups": 2}),
        (DroppedBelowLeast, {"least": 3}),
        (ThresholdByFloat, {}),
    ],
)
def test_the_audit_refuses(kind, options):
    worst = worst_selection(kind(epsilon=Fraction(1), delta=Fraction(1, 100), **options))
    assert worst.loss.verdict == "VIOLATED"
    assert worst_selection(selection("1", "0.01", **options)).loss.verdict == "holds"


def test_lowering_by_one_too_few_names_keys_of_fewer_than_least():
    class OffByOne(PartitionSelection):
        def _chance(self, count):
            return super()._chance(count + 1)

    def never_below(chosen):
        assert not any(chosen.chance(count) for count in range(chosen.least))

    never_below(selection(least=5))
    with pytest.raises(AssertionError):
        never_below(OffByOne(epsilon=Fraction(1), delta=Fraction(1, 100), least=5))


# --- people with several keys ----------------------------------------------------------------------


def worst_of_people(chosen, keys, limit, people, relation):
    """The exact delta over all small tables: each person has up to `limit` of the keys."""
    low = exp_bounds(chosen.epsilon, 384)[0]
    persons = [set(each) for size in range(limit + 1) for each in itertools.combinations(range(keys), size)]

    def masses(table):
        counts = [sum(key in person for person in table) for key in range(keys)]
        sides = ((1 - chosen.chance(count), chosen.chance(count)) for count in counts)
        return tuple(map(math.prod, itertools.product(*sides)))

    found = Fraction(0)
    for common in itertools.combinations_with_replacement(persons, people):
        others = [masses((*common, person)) for person in persons]
        before = [masses(common)] if relation == "add-remove" else others
        for left, right in itertools.product(before, others):
            found = max(found, hockey_stick(left, right, low), hockey_stick(right, left, low))
    return found


CASES = [(1, "add-remove", 1), (1, "substitution", 2), (2, "add-remove", 2), (2, "substitution", 4)]


@pytest.mark.parametrize(("limit", "relation", "groups"), CASES)
def test_every_person_of_a_small_table_is_protected(limit, relation, groups):
    chosen = selection("2", "0.1", groups=groups)
    found = worst_of_people(chosen, 2 * limit, limit, 2 - limit // 2, relation)
    print(limit, relation, float(found / chosen.delta))
    assert found <= chosen.delta
    if relation == "add-remove":
        assert found >= Fraction(9, 10) * chosen.delta


def test_substitution_needs_twice_the_groups():
    wrong, right = selection("1", "0.001", groups=1), selection("1", "0.001", groups=2)
    assert worst_of_people(wrong, 2, 1, 12, "add-remove") <= wrong.delta
    assert worst_of_people(wrong, 2, 1, 12, "substitution") > 200 * wrong.delta
    assert worst_of_people(right, 2, 1, 12, "substitution") <= right.delta


# --- what is drawn ---------------------------------------------------------------------------------


class Scripted(Bits):
    """Words that are given, one after the other."""

    private = False

    def __init__(self, words):
        self.left = list(words)

    def words(self, count):
        taken, self.left = self.left[:count], self.left[count:]
        assert len(taken) == count
        return np.array(taken, dtype=np.uint64)


@pytest.mark.parametrize("count", [1, 2, 5, 9, 13])
def test_a_chance_is_compared_to_its_last_bit(count):
    chosen = selection("1", "0.001")
    numerator = int(chosen.chance(count) * UNIT)
    first, second, third = (numerator >> shift & (2**64 - 1) for shift in (128, 64, 0))

    def kept(*words):
        bits = Scripted(words)
        answer = chosen.kept(np.array([count]), bits).tolist()
        assert not bits.left
        return answer == [True]

    assert kept(first - 1)
    assert not kept(first + 1)
    assert kept(first, second - 1)
    assert not kept(first, second + 1)
    assert kept(first, second, third - 1) if third else True
    # Level to the last bit: the real is in [T, T+1) / 2^192, not below the chance.
    assert not kept(first, second, third)


def test_impossible_and_certain_keys_need_no_luck():
    chosen = selection("1", "0.001", least=2)
    lucky, unlucky = 0, 2**64 - 1
    counts = np.array([-5, 0, 1, chosen.threshold, 2**62])
    assert chosen.kept(counts, Scripted([lucky] * 2)).tolist() == [False, False, False, True, True]
    assert chosen.kept(counts, Scripted([unlucky] * 2)).tolist() == [False, False, False, True, True]


def test_words_are_taken_in_the_order_of_the_keys_that_can_be_kept():
    chosen = selection("0.5", "0.001", least=3)
    counts = np.random.default_rng(1).integers(0, chosen.threshold + 5, 5000)
    kept = chosen.kept(counts, SeededBits(9))
    assert (kept == chosen.kept(counts, SeededBits(9))).all()
    assert (kept != chosen.kept(counts, SeededBits(10))).any()
    # Whoever counts may drop keys of few people before.
    enough = counts >= 3
    assert (chosen.kept(counts[enough], SeededBits(9)) == kept[enough]).all()
    assert not kept[~enough].any()


def rejected(chosen, counts, kept):
    """Whether draws are too many or too few for some count, at the false-alarm level of the project."""
    for count in np.unique(counts):
        here, chance = counts == count, float(chosen.chance(int(count)))
        draws, hits = int(here.sum()), int(kept[here].sum())
        tail = 2 * min(binom.cdf(hits, draws, chance), binom.sf(hits - 1, draws, chance))
        if tail < FALSE_ALARM:
            return True
    return False


def test_draws_have_the_chances_of_the_table_and_not_those_of_one_a_little_off():
    chosen = selection("0.7", "0.01")
    counts = np.repeat(np.arange(1, chosen.threshold + 2), 200_000)
    kept = chosen.kept(counts, SeededBits(4))
    assert not rejected(chosen, counts, kept)
    assert rejected(selection("0.72", "0.01"), counts, kept)
    assert rejected(selection("0.7", "0.011"), counts, kept)
    singles = chosen.kept(np.ones(10**6, dtype=np.int64), SeededBits(5))
    assert 0.009 < singles.mean() < 0.011


def test_the_law_of_one_key_is_the_same_coin():
    chosen = selection("1", "0.01")
    law = chosen.law(3)
    assert isinstance(law, Law)
    assert law.probability(1) == chosen.chance(3)
    assert law.probability(0) == 1 - chosen.chance(3)
    assert law.logpmf(np.arange(3)).tolist() == pytest.approx(
        [math.log1p(-float(chosen.chance(3))), math.log(chosen.chance(3)), -math.inf]
    )
    draws = law.sample(SeededBits(3), 200_000)
    assert not rejected(chosen, np.full(200_000, 3), draws == 1)
    assert chosen.law(0).sample(SystemBits()) == 0
    assert chosen.law(chosen.threshold).sample(SystemBits()) == 1


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.uint8, np.uint32, np.uint64, np.int64])
def test_counts_of_any_width_are_the_same_numbers(kind):
    chosen = selection("1", "1e-6", least=200)
    counts = np.array([0, 1, 100, 127], dtype=kind)
    assert not chosen.kept(counts, SystemBits()).any()
    assert selection("2", "0.1").kept(counts, SystemBits()).tolist()[2:] == [True, True]
    assert chosen.kept(np.zeros(0, dtype=kind), SystemBits()).shape == (0,)
    if kind is np.uint64:
        assert chosen.kept(np.array([2**64 - 1], dtype=kind), SystemBits()).tolist() == [True]


def test_a_million_keys_are_one_call():
    chosen = selection("0.1", "1e-9")
    counts = np.arange(10**6) % 1000
    kept = chosen.kept(counts, SeededBits(2))
    assert kept[counts >= chosen.threshold].all()
    assert not kept[counts == 0].any()


# --- parameters and costs --------------------------------------------------------------------------


def test_the_cost_is_what_is_stated_and_charged():
    chosen = PartitionSelection(epsilon=0.1, delta=1e-6, groups=3, least=2)
    assert chosen.event == ApproxEvent(Fraction(1, 10), Fraction(1, 10**6), "partition-selection")
    assert chosen.cost == ApproxDP(0.1, 1e-6)
    accountant = SummedAccountant(ApproxDP(0.2, 1e-5))
    for _ in range(2):
        accountant.charge(chosen.event, chosen.cost)
    assert accountant.remaining.epsilon == 0
    always = f"keys of {chosen.threshold} people or more are always named"
    assert chosen.described() == f"{always}, those of fewer than 2 never"
    assert "fewer" not in selection().described()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("epsilon", value) for value in (0, -1, math.inf, math.nan, "1", None, True)),
        *(("delta", value) for value in (0, 1, -0.1, 1.5, math.nan, "1", None)),
        *(("groups", value) for value in (0, -1, 10**6 + 1, 1.0, True, "2")),
        *(("least", value) for value in (0, -1, 2**62 + 1, 1.0, False)),
    ],
)
def test_parameters_out_of_range_are_refused(name, value):
    given = {"epsilon": 1, "delta": 0.01, name: value}
    with pytest.raises(InvalidParameter, match=f"^{name} must be"):
        PartitionSelection(**given)


def test_tables_without_end_and_deltas_without_digits_are_refused():
    with pytest.raises(NotSupported, match="delta / groups must be at least 2"):
        selection("1", "1e-39")
    about = 2 * math.log(math.tanh(0.5) / 3e-39)
    assert about < selection("1", "3e-39").threshold < about + 3
    with pytest.raises(NotSupported, match="delta / groups must be at least 2"):
        selection("1", "3e-39", groups=2)


def test_the_limit_of_the_table_is_the_number_of_its_chances(monkeypatch):
    length = len(selection_table(Fraction(1), Fraction(1, 100)))
    monkeypatch.setattr(module, "MOST_ENTRIES", length - 1)
    assert len(selection_table(Fraction(1), Fraction(1, 100))) == length
    monkeypatch.setattr(module, "MOST_ENTRIES", length - 2)
    with pytest.raises(NotSupported, match=r"more than \d+ chances: a larger epsilon, or fewer groups$"):
        selection_table(Fraction(1), Fraction(1, 100))


@pytest.mark.parametrize("counts", [[1.5], [[1, 2]], ["a"], np.array([True]), 3, [None]])
def test_counts_must_be_whole_numbers_in_a_row(counts):
    with pytest.raises(InvalidParameter, match=r"^counts must be whole numbers in an array of one dim"):
        selection().kept(counts, SystemBits())


@pytest.mark.parametrize("count", [-1, 1.0, 2**62 + 1, None])
def test_a_count_is_a_whole_number(count):
    for method in (selection().chance, selection().law):
        with pytest.raises(InvalidParameter, match=r"^count must be"):
            method(count)
