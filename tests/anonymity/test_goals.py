"""Goals against their definitions on all small classes, and which of them survive that classes merge."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.anonymity import definitions

from sfumato.anonymity import Closeness, DistinctDiversity, EntropyDiversity, KAnonymity, RecursiveDiversity
from sfumato.anonymity import class_counts as counting
from sfumato.anonymity import goals as goals_file
from sfumato.anonymity.class_counts import ClassCounts
from sfumato.anonymity.entropy import reaches
from sfumato.anonymity.goals import Checker
from sfumato.anonymity.rows import Coded, Rows, rows_of
from sfumato.errors import InvalidParameter


def all_counts(values, most):
    """All counts of so many values with 1 to `most` rows."""
    every = itertools.product(range(most + 1), repeat=values)
    return [counts for counts in every if 0 < sum(counts) <= most]


def met(goal, tables):
    """Which classes meet a goal, by their counts."""
    table = np.array(tables, dtype=np.int64)
    return goal.met(table.sum(axis=1), {"s": table}).tolist()


SMALL = all_counts(4, 6)
TOTALS = ((3, 2, 4, 1), (6, 6, 6, 6), (1, 0, 7, 9))
THRESHOLDS = [Fraction(i, 12) for i in range(13)] + [Fraction(1, 7), Fraction(333, 1000)]
LEASTS = [1, 1.5, 2, 2.5, 3, 4, Fraction(8, 3)]
FACTORS = [Fraction(1, 2), 1, Fraction(4, 3), 2, 3.5]


def bound(t, distance, total):
    """Closeness to a table of these counts."""
    return Closeness("s", t, distance, whole=total)


def disagreements(judge, expected):
    """How many small classes a goal judges in another way than the definition."""
    return sum(found != expected(counts) for found, counts in zip(judge(SMALL), SMALL, strict=True))


def test_sizes_and_distinct_values_are_counted():
    for k in range(1, 8):
        assert met(KAnonymity(k), SMALL) == [sum(counts) >= k for counts in SMALL]
        assert met(DistinctDiversity("s", k), SMALL) == [definitions.distinct(c) >= k for c in SMALL]


@pytest.mark.parametrize("least", LEASTS)
def test_entropy_is_compared_as_integers_are(least):
    goal = EntropyDiversity("s", least)
    assert not disagreements(lambda all_: met(goal, all_), lambda c: definitions.entropy_met(c, goal.l))


@pytest.mark.parametrize("c", FACTORS)
@pytest.mark.parametrize("place", [1, 2, 3, 4, 5])
def test_recursive_diversity_is_its_definition(c, place):
    goal = RecursiveDiversity("s", c, place)
    expected = lambda counts: definitions.recursive_met(counts, goal.c, place)  # noqa: E731
    assert not disagreements(lambda all_: met(goal, all_), expected)


DISTANCES = {"ordered": definitions.ordered_distance, "equal": definitions.equal_distance}


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("total", TOTALS)
def test_closeness_is_compared_as_fractions_are(distance, total):
    for t in THRESHOLDS:
        goal = bound(t, distance, total)
        expected = lambda counts, t=t: DISTANCES[distance](counts, total) <= t  # noqa: E731
        assert not disagreements(lambda all_, goal=goal: met(goal, all_), expected)


# --- what the comparisons above would notice ---


def _closeness_over_m(all_, t, total):
    return [definitions.ordered_distance(c, total) * (len(total) - 1) / len(total) <= t for c in all_]


def _distinct_over_the_table(all_, least):
    return [definitions.distinct(np.sum(all_, axis=0)) >= least] * len(all_)


def _entropy_by_floats(all_, least):
    found = []
    for counts in all_:
        n = sum(counts)
        entropy = -sum(c / n * math.log(c / n) for c in counts if c)
        found.append(math.exp(entropy) >= least)
    return found


def _recursive_from_the_rarest(all_, c, place):
    found = []
    for counts in all_:
        rising = sorted(counts)
        found.append(rising[0] < c * sum(rising[place - 1 :]))
    return found


def _recursive_or_equal(all_, c, place):
    return [sorted(r)[-1] <= c * sum(sorted(r, reverse=True)[place - 1 :]) for r in all_]


MUTANTS = {
    "a distance over m": (
        lambda all_: _closeness_over_m(all_, Fraction(1, 4), TOTALS[0]),
        lambda c: definitions.ordered_distance(c, TOTALS[0]) <= Fraction(1, 4),
    ),
    "values of the table": (
        lambda all_: _distinct_over_the_table(all_, 2),
        lambda c: definitions.distinct(c) >= 2,
    ),
    "entropy by floats": (lambda all_: _entropy_by_floats(all_, 3), lambda c: definitions.entropy_met(c, 3)),
    "rarest first": (
        lambda all_: _recursive_from_the_rarest(all_, 2, 2),
        lambda c: definitions.recursive_met(c, 2, 2),
    ),
    "at most for below": (
        lambda all_: _recursive_or_equal(all_, 2, 2),
        lambda c: definitions.recursive_met(c, 2, 2),
    ),
    "distance below t": (
        lambda all_: [definitions.equal_distance(c, TOTALS[1]) < Fraction(1, 2) for c in all_],
        lambda c: definitions.equal_distance(c, TOTALS[1]) <= Fraction(1, 2),
    ),
    "more than k": (lambda all_: [sum(c) > 3 for c in all_], lambda c: sum(c) >= 3),
}


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_wrong_goal_disagrees_with_the_definition(mutant):
    assert disagreements(*mutant) > 0


# --- entropies on the boundary ---


@pytest.mark.parametrize("equal", range(2, 60))
def test_equally_frequent_values_meet_their_number_exactly(equal):
    for each in (1, 3, 10**6):
        counts = [each] * equal
        assert met(EntropyDiversity("s", equal), [counts]) == [True]
        assert met(EntropyDiversity("s", equal + Fraction(1, 10**15)), [counts]) == [False]
        assert met(EntropyDiversity("s", equal), [[each * 10**3] * (equal - 1) + [each * 10**3 - 1]]) == [
            False
        ]


def test_unequal_values_can_meet_a_whole_number_exactly():
    # 8^8 / 4^4 = 2^16 = 4^8, and scaled alike.
    for times in (1, 7, 10**5):
        counts = [4 * times] + [times] * 4
        assert reaches(counts, Fraction(4))
        assert not reaches(counts, 4 + Fraction(1, 10**30))
        assert reaches(counts, 4 - Fraction(1, 10**30))


def test_small_entropies_are_decided_as_by_integers():
    for counts in all_counts(3, 9):
        for least in (1, Fraction(3, 2), 2, Fraction(5, 2), 3):
            assert reaches(counts, Fraction(least)) == definitions.entropy_met(counts, least)


# --- what merging does ---


def merging_goals(total):
    """Goals with thresholds that some classes meet and some do not."""
    return {
        "k": KAnonymity(3),
        "distinct": DistinctDiversity("s", 2),
        "entropy": EntropyDiversity("s", 2),
        "entropy, real": EntropyDiversity("s", 1.7),
        "recursive": RecursiveDiversity("s", 2, 2),
        "recursive, 3": RecursiveDiversity("s", Fraction(5, 2), 3),
        "ordered": bound(Fraction(1, 4), "ordered", total),
        "equal": bound(Fraction(1, 3), "equal", total),
    }


MERGED = all_counts(3, 6)
NAMES = tuple(merging_goals((1, 1, 1)))
SURVIVES = ("k", "distinct")


def merged(goal):
    """For all pairs of classes: whether the first meets the goal, the second, both together."""
    first = np.repeat(MERGED, len(MERGED), axis=0)
    second = np.tile(MERGED, (len(MERGED), 1))
    return np.array(met(goal, first)), np.array(met(goal, second)), np.array(met(goal, first + second))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("total", [(6, 6, 6), (7, 1, 2), (0, 5, 9), (4, 0, 3)])
def test_merging_classes_that_meet_a_goal_meets_it(name, total):
    first, second, both = merged(merging_goals(total)[name])
    assert np.any(first & second)
    assert np.all(both[first & second])


@pytest.mark.parametrize("name", NAMES)
def test_only_k_and_distinct_values_survive_a_class_that_does_not_meet_them(name):
    goal = merging_goals((6, 6, 6))[name]
    first, _, both = merged(goal)
    survives = bool(np.all(both[first]))
    assert survives == (name in SURVIVES) == goal.monotone


def test_goals_that_every_class_meets_survive_anything():
    everything = [
        EntropyDiversity("s", 1),
        RecursiveDiversity("s", Fraction(3, 2), 1),
        bound(1, "ordered", (6, 6, 6)),
        bound(1, "equal", (6, 6, 6)),
    ]
    for goal in everything:
        assert goal.monotone
        assert all(met(goal, MERGED))
    assert not RecursiveDiversity("s", 1, 1).monotone
    assert not all(met(RecursiveDiversity("s", 1, 1), MERGED))


def test_a_suppressed_class_can_come_back_and_spoil_a_good_one():
    # So levels above one that keeps a limit on suppression need not keep it, and must be searched.
    def lost(goal, tables):
        return sum(sum(c) for c, kept in zip(tables, met(goal, tables), strict=True) if not kept)

    fine, coarse = [[2, 2, 0], [3, 0, 0]], [[5, 2, 0]]
    for goal in (EntropyDiversity("s", 2), RecursiveDiversity("s", 2, 2), bound(0.2, "equal", (5, 5, 0))):
        assert (lost(goal, fine), lost(goal, coarse)) == (3, 7)


# --- the checker ---


def random_rows(rng, n, values, columns=2):
    """Rows with nothing but sensitive columns that matter."""
    quasi = (Coded("q", np.zeros(n, dtype=np.int32), (0,), True),)
    sensitive = []
    for j in range(columns):
        codes = np.unique(rng.integers(0, values, n), return_inverse=True)[1].astype(np.int32)
        sensitive.append(Coded(f"s{j}", codes, tuple(range(int(codes.max()) + 1)), j == 0))
    return Rows(quasi, tuple(sensitive))


def random_goals(rng):
    """A few goals together."""
    every = [
        KAnonymity(int(rng.integers(1, 5))),
        DistinctDiversity("s0", int(rng.integers(1, 4))),
        EntropyDiversity("s1", [1, 1.5, 2, 3][rng.integers(4)]),
        RecursiveDiversity("s0", [1, 2, 2.5][rng.integers(3)], int(rng.integers(1, 4))),
        Closeness("s0", [0.1, 0.25, 0.5][rng.integers(3)]),
        Closeness("s1", [0.25, 0.5, 0.75][rng.integers(3)]),
    ]
    return [every[i] for i in sorted(rng.choice(len(every), rng.integers(1, 4), replace=False))]


def met_by_definition(goal, counts, total, ordered):
    """One class, by its counts of the goal's column."""
    match goal:
        case KAnonymity(k=k):
            return sum(counts) >= k
        case DistinctDiversity(l=least):
            return definitions.distinct(counts) >= least
        case EntropyDiversity(l=least):
            return definitions.entropy_met(counts, least)
        case RecursiveDiversity(c=c, l=place):
            return definitions.recursive_met(counts, c, place)
        case Closeness(t=t):
            return DISTANCES["ordered" if ordered else "equal"](counts, total) <= t
    raise AssertionError


@pytest.mark.parametrize("seed", range(40))
def test_the_checker_says_what_the_definitions_say(seed):
    rng = np.random.default_rng(seed)
    n, count = int(rng.integers(1, 120)), int(rng.integers(1, 12))
    rows = random_rows(rng, n, int(rng.integers(1, 40)))
    goals = random_goals(rng)
    classes = rng.integers(-1, count, n)
    some = np.sort(rng.choice(n, rng.integers(1, n + 1), replace=False))
    checker = Checker(rows, goals)
    for held, given in ((np.arange(n), None), (some, some)):
        found = checker.met(classes[held], count, rows=given)
        for c in range(count):
            inside = held[classes[held] == c]
            expected = len(inside) > 0
            for goal in goals:
                coded = rows.column(goal.column) if hasattr(goal, "column") else rows.sensitive[0]
                counts = np.bincount(coded.codes[inside], minlength=len(coded.values)).tolist()
                total = coded.counts.tolist()
                expected = expected and met_by_definition(goal, counts, total, coded.ordered)
            assert found[c] == expected
    assert checker.monotone == all(goal.monotone for goal in goals)


def test_sizes_alone_are_decided_without_looking_at_values(monkeypatch):
    monkeypatch.setattr(goals_file, "ClassCounts", None)
    rows = rows_of({"q": [1, 1, 2], "s": [1, 2, 3]}, ["q"], ["s"])
    checker = Checker(rows, [KAnonymity(2)])
    assert checker.sizes_only
    assert checker.k == 2
    assert checker.met(rows.quasi[0].codes, 2).tolist() == [True, False]


def test_pairs_that_occur_are_the_same_sorted_or_tabled():
    rng = np.random.default_rng(5)
    for _ in range(30):
        count, values, n = int(rng.integers(1, 9)), int(rng.integers(1, 600)), int(rng.integers(1, 60))
        classes, codes = rng.integers(0, count, n), rng.integers(0, values, n)
        table = np.zeros((count, values), dtype=np.int64)
        np.add.at(table, (classes, codes), 1)
        dense, sparse = ClassCounts.of_table(table), ClassCounts.of(classes, count, codes, values)
        for name in ("owners", "codes", "counts", "distinct", "sizes", "largest"):
            assert np.array_equal(getattr(dense, name), getattr(sparse, name)), name
        for top in range(5):
            expected = np.sort(table, axis=1)[:, : max(values - top, 0)].sum(axis=1)
            assert np.array_equal(sparse.without_top(top), expected)


@pytest.mark.parametrize("ordered", [True, False])
def test_distances_are_the_same_integers_by_64_bits_and_by_any(ordered, monkeypatch):
    rng = np.random.default_rng(6)
    for _ in range(40):
        count, values, n = int(rng.integers(1, 6)), int(rng.integers(1, 30)), int(rng.integers(6, 80))
        classes, codes = np.arange(n) % count, rng.integers(0, values, n)
        total = np.bincount(codes, minlength=values).astype(np.int64)
        found = ClassCounts.of(classes, count, codes, values)
        plain, scale = found.moved(total, ordered=ordered)
        monkeypatch.setattr(counting, "_SAFE", 0.0)
        exact, same = found.moved(total, ordered=ordered)
        monkeypatch.undo()
        assert scale == same
        assert plain.tolist() == exact.tolist()


def test_distances_beyond_64_bits_are_exact():
    large = 2**31 - 1
    table = np.array([[large, 0, 0], [0, 0, large]], dtype=np.int64)
    whole = (large * 3, large * 3, large * 3)
    for t, expected in ((Fraction(1, 2), True), (Fraction(1, 2) - Fraction(1, 10**20), False)):
        goal = bound(t, "ordered", whole)
        assert goal.met(table.sum(axis=1), {"s": table}).tolist() == [expected] * 2


def test_recursive_diversity_with_a_factor_of_many_digits_is_exact():
    tables = [[3 * 2**29, 2**30, 2**29 + i] for i in range(-2, 3)]
    for c in (Fraction(2**50 + 1, 2**50), Fraction(2**50 - 1, 2**50), Fraction(10**40, 3 * 10**39 + 7), 1):
        for place in (1, 2, 3):
            goal = RecursiveDiversity("s", c, place)
            assert met(goal, tables) == [definitions.recursive_met(t, goal.c, place) for t in tables]


def test_distances_beyond_64_bits_are_exact_where_classes_have_few_of_many_values():
    values, each = 10**6, 10**6
    total = np.full(values, 4 * 10**6, dtype=np.int64)
    counts = ClassCounts(
        2, values, np.array([0, 0, 1, 1]), np.array([0, values - 1, 3, 4]), np.array([each] * 4)
    )
    rows = int(total.sum())
    moved, scale = counts.moved(total, ordered=True)
    # Half at either end: the shares differ by |1/2 - i/m| after value i.
    halves = Fraction(values**2 // 2 - values, 2 * values * (values - 1))
    assert Fraction(int(moved[0]), scale * 2 * each * rows) == halves
    equal, scale = counts.moved(total, ordered=False)
    assert Fraction(int(equal[1]), scale * 2 * each * rows) == 1 - Fraction(2, values)


def test_parameters_are_read_exactly_and_refused_by_their_rule():
    assert Closeness("s", 0.1).t == Fraction(1, 10)
    assert EntropyDiversity("s", 2.5).l == Fraction(5, 2)
    assert RecursiveDiversity("s", 0.3, 2).c == Fraction(3, 10)
    for make in (
        lambda: KAnonymity(0),
        lambda: KAnonymity(2.0),
        lambda: DistinctDiversity("s", 0),
        lambda: DistinctDiversity(3, 2),
        lambda: EntropyDiversity("s", 0.9),
        lambda: RecursiveDiversity("s", 0, 2),
        lambda: RecursiveDiversity("s", 1, 0),
        lambda: Closeness("s", 1.1),
        lambda: Closeness("s", -0.1),
        lambda: Closeness("s", 0.1, "near"),
    ):
        with pytest.raises(InvalidParameter):
            make()


def test_a_goal_about_a_column_that_is_not_sensitive_is_refused():
    rows = rows_of({"q": [1], "s": [1]}, ["q"], ["s"])
    for goal in (DistinctDiversity("q", 2), EntropyDiversity("x", 2), Closeness("q", 1)):
        with pytest.raises(InvalidParameter, match="goals must be about sensitive columns"):
            Checker(rows, [goal])
    with pytest.raises(InvalidParameter, match="bound to rows"):
        Closeness("s", 0.5).met(np.array([1]), {"s": np.array([[1]])})
