"""Groups of units in memory: at most so many of each, uniformly chosen, and no person sways another."""

import itertools
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from tests.data.test_contributions import chi_square, law_of
from tests.laws.fit import FALSE_ALARM

from sfumato.data import contributions
from sfumato.data.admission import admit
from sfumato.data.conditions import Between, read_conditions
from sfumato.data.contributions import chosen, kept, kept_groups
from sfumato.data.part import groups_changed
from sfumato.data.selection import Selections
from sfumato.laws import Bits, SeededBits, SystemBits


def labels_of(ids):
    return admit(list(ids)).labels()


def law_of_groups(rows, most, width=1, choose=chosen, keep=kept_groups, count=3):
    """The exact law of the rows that stay, for rows given as (unit, group)."""
    ids, codes = [unit for unit, _ in rows], np.array([group for _, group in rows], dtype=np.uint8)

    def draw(bits):
        original = contributions.chosen
        contributions.chosen = lambda *given: choose(*given, width=width)
        try:
            flags = keep(labels_of(ids), codes, count, most, bits)
        finally:
            contributions.chosen = original
        return tuple(range(len(rows))) if flags is None else tuple(np.flatnonzero(flags).tolist())

    return law_of(draw, width)


def uniform_law(rows, most, count=3):
    """The definition: for each unit independently, every set of `most` of its groups alike."""
    groups = defaultdict(set)
    for unit, group in rows:
        if unit is not None and group < count:
            groups[unit].add(group)
    sets = [
        [(unit, chosen_groups) for chosen_groups in itertools.combinations(sorted(of), min(most, len(of)))]
        for unit, of in groups.items()
    ]
    law = Counter()
    for choice in itertools.product(*sets):
        stay = dict(choice)
        law[
            tuple(
                row
                for row, (unit, group) in enumerate(rows)
                if unit is not None and (group >= count or group in stay[unit])
            )
        ] += 1
    total = sum(law.values())
    return {outcome: Fraction(number, total) for outcome, number in law.items()}


TINY = [
    ([("a", 0), ("a", 1)], 1, 2),
    ([("a", 0), ("a", 0), ("a", 1)], 1, 2),
    ([("a", 0), ("a", 1), ("a", 2)], 2, 2),
    ([("a", 2), ("b", 0), ("a", 1), ("b", 0), ("b", 2)], 1, 1),
    ([("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 1)], 1, 2),
    ([("a", 3), ("a", 0), ("a", 1), (None, 0)], 1, 2),
    ([("a", 0), (None, 1), ("b", 0)], 1, 1),
    ([(7, 0), (2, 1), (7, 1), (2**40, 1), (2**40, 0)], 1, 1),
]


@pytest.mark.parametrize(("rows", "most", "width"), TINY)
def test_the_groups_that_stay_have_exactly_the_uniform_law_however_many_keys_tie(rows, most, width):
    assert law_of_groups(rows, most, width) == uniform_law(rows, most)


def first_groups(labels, codes, count, most, _bits):
    """A mutant: the groups that come first in the order of the keys."""
    units = labels[0]
    flags = np.ones(len(codes), dtype=bool)
    for unit in set(units.tolist()):
        allowed = sorted({int(code) for code in codes[units == unit] if code < count})[:most]
        flags[(units == unit) & ~np.isin(codes, allowed)] = False
    return flags


def by_rows(labels, codes, count, most, bits):
    """A mutant: the group of a row that is drawn, so that a group of many rows is kept more often."""
    rows = kept(admit(labels[0]), most, bits)
    pairs = {(int(labels[0][row]), int(codes[row])) for row in rows}
    return np.array([(int(unit), int(code)) in pairs for unit, code in zip(labels[0], codes, strict=True)])


def one_more(labels, codes, count, most, bits):
    """A mutant: one group too many."""
    return kept_groups(labels, codes, count, most + 1, bits)


def not_bounded(*_):
    """A mutant: all groups."""
    return


def same_for_all(labels, codes, count, most, bits):
    """A mutant: the groups are drawn once, and everybody keeps those."""
    return codes == bits.below(count)


@pytest.mark.parametrize("mutant", [first_groups, by_rows, one_more, not_bounded, same_for_all])
def test_the_exact_law_catches_a_wrong_choice_of_groups(mutant):
    rows = [("a", 0), ("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    assert law_of_groups(rows, 1, count=2) == uniform_law(rows, 1, count=2)
    assert law_of_groups(rows, 1, keep=mutant, count=2) != uniform_law(rows, 1, count=2)


PEOPLE = [
    [("a", 0), ("b", 0), ("a", 1), ("b", 1)],
    [("a", 0), ("b", 2), ("b", 1), ("a", 0), ("b", 2), ("a", 1)],
    [("b", 0), ("c", 1), ("a", 0), ("b", 1), ("c", 1)],
]


def law_without(rows, person, most, keep):
    """The law of what stays of all rows but one person's, told by their places."""
    law = defaultdict(Fraction)
    for outcome, chance in law_of_groups(rows, most, keep=keep).items():
        law[tuple(row for row in outcome if rows[row][0] != person)] += chance
    return dict(law)


def law_of_the_rest(rows, person, most, keep):
    """The same where this person has no rows at all."""
    places = [row for row, (unit, _) in enumerate(rows) if unit != person]
    law = law_of_groups([rows[row] for row in places], most, keep=keep)
    return {tuple(places[row] for row in outcome): chance for outcome, chance in law.items()}


def by_size_of_group(labels, codes, count, most, _bits):
    """A mutant: everybody keeps the largest of their groups, which depends on the others."""
    units, sizes = labels[0], np.bincount(codes, minlength=count)
    flags = np.ones(len(codes), dtype=bool)
    for unit in set(units.tolist()):
        allowed = sorted(set(codes[units == unit].tolist()), key=lambda code: (-sizes[code], code))[:most]
        flags[(units == unit) & ~np.isin(codes, allowed)] = False
    return flags


@pytest.mark.parametrize("rows", PEOPLE)
def test_a_person_more_or_less_leaves_the_law_of_all_other_groups_as_it_is(rows):
    for person in sorted({unit for unit, _ in rows}):
        assert law_without(rows, person, 1, kept_groups) == law_of_the_rest(rows, person, 1, kept_groups)
        for outcome in law_of_groups(rows, 1):
            assert len({rows[row][1] for row in outcome if rows[row][0] == person}) <= 1


def test_the_law_of_the_others_catches_groups_chosen_by_what_others_do():
    swayed = [("a", 0), ("a", 1), ("b", 1)]
    assert law_without(swayed, "b", 1, kept_groups) == law_of_the_rest(swayed, "b", 1, kept_groups)
    assert law_without(swayed, "b", 1, by_size_of_group) != law_of_the_rest(swayed, "b", 1, by_size_of_group)


class Replay(Bits):
    """Recorded words: each row, and each group of a person, gets its own in every table that holds it."""

    private = False

    def __init__(self, requests):
        self._requests = list(requests)

    def words(self, count):
        words = self._requests.pop(0)
        assert len(words) == count
        return np.array(words, dtype=np.uint64)


def word(*name):
    return int(SeededBits(hash(name) % 2**64).words(1)[0])


def requests(table, rows_per_unit, groups_per_unit):
    """What is drawn, by the definition: a word for each row of a crowded unit, then one for each group."""
    have = Counter(unit for _, unit, _ in table)
    crowded = [number for number, unit, _ in table if have[unit] > rows_per_unit]
    words = {number: word(1, number) for number in crowded}
    stay = set()
    for unit in have:
        mine = [number for number, other, _ in table if other == unit]
        stay |= set(sorted(mine, key=words.get)[:rows_per_unit] if have[unit] > rows_per_unit else mine)
    pairs = list(dict.fromkeys((unit, team) for number, unit, team in table if number in stay))
    groups = Counter(unit for unit, _ in pairs)
    asked = [word(2, *pair) for pair in pairs if groups[pair[0]] > groups_per_unit]
    return [list(words.values())] * bool(crowded) + [asked] * bool(asked)


def bounded(table, rows_per_unit, groups_per_unit, make=Selections):
    """The rows (number, unit, team) that are counted."""
    numbers, units, teams = (np.array(column) for column in zip(*table, strict=True))
    selections = make(admit(units), rows_per_unit, groups_per_unit)
    grouped = ((admit(teams, "team"), tuple(range(5))),)
    bits = Replay(requests(table, rows_per_unit, groups_per_unit))
    parts = selections.split(admit(numbers, "row"), (), grouped, bits)
    rows = np.concatenate([np.concatenate([*part.chunks(), []]) for part in parts]).astype(int).tolist()
    of = {row[0]: row for row in table}
    return {of[row] for row in rows}


def random_table(rng, size=40):
    units, teams = rng.integers(0, 8, size).tolist(), rng.integers(0, 5, size).tolist()
    return list(zip(range(size), units, teams, strict=True))


def differs_by_one_person(table, person, most, groups, make=Selections, drawn=None):
    """Whether the counted rows differ in at most so many rows and groups of one person, and in no others."""
    bounds = drawn or (most, groups)
    more = bounded(table, *bounds, make)
    rest = bounded([row for row in table if row[1] != person], *bounds, make)
    changed = more ^ rest
    own = all(row[1] == person for row in changed)
    return own and len(changed) <= most and len({row[2] for row in changed}) <= groups


@pytest.mark.parametrize(("most", "groups"), [(3, 2), (6, 3), (2, 1), (8, 8)])
def test_tables_that_differ_in_one_person_differ_in_its_bounded_rows_and_groups_alone(most, groups):
    rng = np.random.default_rng(most)
    for _ in range(15):
        table = random_table(rng)
        for person in range(8):
            assert differs_by_one_person(table, person, most, groups)


class FirstOfTheTable(Selections):
    """A mutant: the first rows of the whole table, and not of each person."""

    def _rows(self, tested, bits):
        return np.arange(min(24, len(self._ids)))


class AllGroups(Selections):
    """A mutant: groups are not bounded."""

    def _stays(self, *_):
        return None


BROKEN = {
    "one row more": (4, 2, Selections, (5, 2)),
    "one group more": (4, 2, Selections, (4, 3)),
    "groups not bounded": (4, 2, AllGroups, None),
    "a choice among the rows of all": (4, 8, FirstOfTheTable, None),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_the_replay_catches_more_rows_more_groups_and_a_choice_that_others_sway(broken):
    most, groups, make, drawn = broken
    rng = np.random.default_rng(5)
    cases = [(random_table(rng), person) for person in range(8) for _ in range(5)]
    assert all(differs_by_one_person(*case, most, groups) for case in cases)
    assert not all(differs_by_one_person(*case, most, groups, make, drawn) for case in cases)


def test_seeded_groups_fit_the_uniform_law():
    units = 20_000
    ids, codes = np.repeat(np.arange(units), 6), np.tile(np.array([0, 0, 0, 1, 2, 3], dtype=np.uint8), units)
    flags = kept_groups((ids, np.ones(len(ids), dtype=bool)), codes, 4, 2, SeededBits(3))
    stay = [codes[row : row + 6][flags[row : row + 6]].tolist() for row in range(0, len(ids), 6)]
    pairs = Counter(tuple(sorted(set(groups))) for groups in stay)
    listed = [pairs[pair] for pair in itertools.combinations(range(4), 2)]
    assert sum(listed) == units
    assert chi_square(listed) > FALSE_ALARM
    assert chi_square([listed[0] + units // 20, *listed[1:-1], listed[-1] - units // 20]) < FALSE_ALARM


def numbers(column):
    return np.concatenate([*column.chunks(), []]).astype(int).tolist()


def selections(groups, rows=64):
    """One person in eight teams, and another who is in one; the numbers of the rows as a column."""
    ids = admit(np.array([0] * rows + [1] * 2))
    teams = admit(np.array([*(np.arange(rows) % 8), 5, 5]), "team")
    return Selections(ids, 10**6, groups), admit(np.arange(rows + 2), "row"), ((teams, tuple(range(8))),)


def test_the_same_groups_are_one_choice_and_conditions_come_after_it():
    private, row, grouped = selections(4)
    first = [numbers(part) for part in private.split(row, (), grouped, SystemBits())]
    assert sum(any(number < 64 for number in part) for part in first) == 4
    # More questions than there are orders kept.
    for most in range(8):
        private.split(row, (), ((grouped[0][0], tuple(range(most + 1))),), SystemBits())
    assert [numbers(part) for part in private.split(row, (), grouped, SystemBits())] == first
    tested = tuple((condition, row) for condition in read_conditions({"row": Between(0, 31)}))
    some = [numbers(part) for part in private.split(row, tested, grouped, SystemBits())]
    assert some == [[number for number in part if number <= 31] for part in first]
    # Without groups there is nothing to choose.
    assert numbers(private.split(row, (), (), SystemBits())[0]) == list(range(66))


def test_groups_that_test_bits_chose_are_never_used_by_private_ones():
    private, row, grouped = selections(1)
    seeded = [numbers(part) for part in private.split(row, (), grouped, SeededBits(1))]
    fresh = selections(1)[0].split(row, (), grouped, SeededBits(1))
    assert seeded == [numbers(part) for part in fresh]
    # Eight groups, forty data sets: all of them agree once in 10**36 runs.
    same = []
    for _ in range(40):
        data = selections(1)[0]
        data.split(row, (), grouped, SeededBits(1))
        same.append([numbers(part) for part in data.split(row, (), grouped, SystemBits())] == seeded)
    assert not all(same)


def test_all_rows_of_no_key_are_the_last_group_and_count_as_one():
    private, row, grouped = selections(1)
    teams = grouped[0][0]
    two = ((0,), (1,))
    with_other = private.split(row, (), ((teams, ()),), SeededBits(1), keys=two, other=True)
    assert len(with_other) == 3
    own = [[number for number in numbers(part) if number < 64] for part in with_other]
    assert sorted(map(len, own))[:2] == [0, 0]
    assert numbers(with_other[2])[-2:] == [64, 65]
    # Without the bucket rows of no key are no group: one of the two keys is always kept.
    for seed in range(20):
        private, row, grouped = selections(1)
        parts = private.split(row, (), ((teams, ()),), SeededBits(seed), keys=two)
        assert sorted(map(len, map(numbers, parts))) == [0, 8]


def as_text(values):
    return pl.Series(values).cast(pl.String)


ANY = [as_text, lambda values: as_text(values).to_arrow(), lambda values: as_text(values).to_list()]


@pytest.mark.parametrize("make", ANY)
def test_all_libraries_choose_the_same_groups_with_the_same_bits(make):
    rng = np.random.default_rng(1)
    ids, teams, row = rng.integers(0, 30, 300), rng.integers(0, 6, 300), admit(np.arange(300), "row")
    plain = Selections(admit(ids), 6, 2).split(row, (), ((admit(teams), tuple(range(6))),), SeededBits(4))
    text = ((admit(make(teams)), tuple("012345")),)
    parts = Selections(admit(make(ids)), 6, 2).split(row, (), text, SeededBits(4))
    assert [numbers(part) for part in parts] == [numbers(part) for part in plain]


def test_all_combinations_that_are_listed_are_the_same_question():
    private, row, grouped = selections(1)
    keys = tuple((team,) for team in range(8))
    first = [numbers(part) for part in private.split(row, (), grouped, SystemBits())]
    assert [numbers(part) for part in private.split(row, (), grouped, SystemBits(), keys=keys)] == first


def test_found_keys_count_units_of_bounded_rows_and_groups():
    private, _, grouped = selections(3)
    keys, units = private.found((grouped[0][0],), (), SeededBits(1))
    # Of the first person three keys, and the one of the second.
    assert units.sum() == 4
    assert (5,) in keys
    assert len(keys) in (3, 4)
    everyone = Selections(None, 1).found((grouped[0][0],), (), SeededBits(1))
    assert everyone[1].tolist() == [8, 8, 8, 8, 8, 10, 8, 8]


def test_how_many_groups_a_person_can_change_is_what_enumeration_finds():
    teams = range(4)
    for rows, groups, replaced in itertools.product((1, 2, 3), (None, 1, 2), (False, True)):
        tables = [
            set(table)
            for size in range(rows + 1)
            for table in itertools.combinations_with_replacement(teams, size)
            if groups is None or len(set(table)) <= groups
        ]
        # The groups that a person is in, and those of whoever comes instead.
        worst = max(len(old | new) for old in tables for new in (tables if replaced else [set()]))
        assert worst == min(groups_changed(rows, groups, replaced=replaced), len(teams))
    assert groups_changed(None, None, replaced=False) == 1
    assert groups_changed(None, None, replaced=True) == 2
