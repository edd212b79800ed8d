"""Bounded contributions: a uniform choice of each unit's rows, which no other unit's rows can sway."""

import itertools
import math
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2
from tests.data.engines import INTEGERS, NAN, REALS, TEXT
from tests.laws.fit import FALSE_ALARM

from sfumato.data import contributions
from sfumato.data.admission import admit
from sfumato.data.contributions import chosen, kept
from sfumato.data.dataset import Dataset
from sfumato.data.field import Field
from sfumato.errors import InvalidParameter, SchemaMismatch
from sfumato.laws import Bits, SeededBits, SystemBits


class Branch(Bits):
    """Bits of which a test follows every branch: each question has finitely many, equally likely answers."""

    private = False

    def __init__(self, width, answers):
        self.width, self._answers, self.asked = width, answers, []

    def _next(self, options):
        place = len(self.asked)
        self.asked.append(options)
        return self._answers[place] if place < len(self._answers) else 0

    def words(self, count):
        # The first bits of every word are followed; the others decide nothing.
        found = [self._next(1 << self.width) << (64 - self.width) for _ in range(count)]
        return np.array(found, dtype=np.uint64)

    def below(self, bound):
        return self._next(bound)


def law_of(draw, width):
    """The exact law of what `draw` returns, over all branches of its bits."""
    law, answers = defaultdict(Fraction), []
    while True:
        bits = Branch(width, answers)
        outcome = draw(bits)
        answers = [*answers, *[0] * (len(bits.asked) - len(answers))]
        law[outcome] += math.prod((Fraction(1, options) for options in bits.asked), start=Fraction(1))
        while answers and answers[-1] + 1 == bits.asked[len(answers) - 1]:
            answers.pop()
        if not answers:
            assert sum(law.values()) == 1
            return dict(law)
        answers[-1] += 1


def law_of_kept(ids, most, width, choose=chosen, keep=kept):
    """The exact law of the kept rows, with keys of so few bits that many tie."""

    def draw(bits):
        original = contributions.chosen
        contributions.chosen = lambda *given: choose(*given, width=width)
        try:
            return tuple(keep(admit(list(ids)), most, bits).tolist())
        finally:
            contributions.chosen = original

    return law_of(draw, width)


def uniform_law(ids, most):
    """The definition: for each unit independently, every set of `most` of its rows alike."""
    rows = defaultdict(list)
    for row, unit in enumerate(ids):
        if unit is not None:
            rows[unit].append(row)
    sets = [list(itertools.combinations(of, min(most, len(of)))) for of in rows.values()]
    law = Counter(tuple(sorted(itertools.chain(*choice))) for choice in itertools.product(*sets))
    total = sum(law.values())
    return {outcome: Fraction(count, total) for outcome, count in law.items()}


TINY = [
    ("aa", 1, 2),
    ("aaa", 1, 2),
    ("aaa", 2, 2),
    ("aaaa", 2, 1),
    ("aab", 1, 2),
    ("abab", 1, 1),
    ("abaab", 2, 1),
    ("abcab", 1, 1),
    (("a", None, "a", None, "b"), 1, 2),
    ((3, 3, 5, 3), 2, 2),
    ((2**40, 7, 2**40), 1, 3),
    ("aabbb", 1, 1),
]


@pytest.mark.parametrize(("ids", "most", "width"), TINY)
def test_the_kept_rows_have_exactly_the_uniform_law_however_many_keys_tie(ids, most, width):
    assert law_of_kept(ids, most, width) == uniform_law(ids, most)


def test_without_ties_a_key_decides_alone():
    # With keys of three bits most branches have no tie, and still every pair of rows is alike.
    law = law_of_kept("aaa", 2, 3)
    assert law == {(0, 1): Fraction(1, 3), (0, 2): Fraction(1, 3), (1, 2): Fraction(1, 3)}


def ties_by_row(units, count, most, bits, width):
    """A mutant: rows with equal keys are taken in the order of the table."""
    keys = bits.words(len(units)) >> np.uint64(64 - width)
    order = np.lexsort((keys, units))
    starts = np.searchsorted(units[order], np.arange(count))
    return order[np.add.outer(starts, np.arange(most)).ravel()]


def first_rows(units, count, most, _bits, **_):
    """A mutant: the first rows of each unit and not a random choice."""
    order = np.argsort(units, kind="stable")
    starts = np.searchsorted(units[order], np.arange(count))
    return order[np.add.outer(starts, np.arange(most)).ravel()]


def one_key_for_all(units, count, _most, bits, **_):
    """A mutant: one coin for all units, whose choices then go together."""
    place = -bits.below(2)
    return np.array([np.flatnonzero(units == unit)[place] for unit in range(count)])


def one_more(units, count, most, bits, width):
    """A mutant: one row too many."""
    return chosen(units, count, most + 1, bits, width=width)


@pytest.mark.parametrize(
    ("mutant", "ids"),
    [(ties_by_row, "aaa"), (first_rows, "aaa"), (one_key_for_all, "aabb"), (one_more, "aaa")],
)
def test_the_exact_law_catches_a_wrong_choice(mutant, ids):
    assert law_of_kept(ids, 1, 1) == uniform_law(ids, 1)
    assert law_of_kept(ids, 1, 1, choose=mutant) != uniform_law(ids, 1)


def nulls_as_a_unit(ids, most, bits):
    """A mutant: rows without an id are one unit."""
    return kept(admit([0 if label is None else label for label in ids_of(ids)]), most, bits)


def ids_of(column):
    labels, known = column.labels()
    return [int(label) + 1 if here else None for label, here in zip(labels, known, strict=True)]


def test_the_exact_law_catches_rows_without_an_id_taken_for_a_unit():
    ids = ("a", None, None)
    assert law_of_kept(ids, 1, 1) == {(0,): 1}
    assert law_of_kept(ids, 1, 1, keep=nulls_as_a_unit) != {(0,): 1}


def without(ids, unit):
    places = [row for row, other in enumerate(ids) if other != unit]
    return tuple(ids[row] for row in places), places


def law_of_others(ids, unit, most, width, choose=chosen):
    """The law of the kept rows of all units but one."""
    law = defaultdict(Fraction)
    for outcome, chance in law_of_kept(ids, most, width, choose=choose).items():
        law[tuple(row for row in outcome if ids[row] != unit)] += chance
    return dict(law)


@pytest.mark.parametrize("ids", ["aabb", "abab", "aaab", "abba", "abcab"])
@pytest.mark.parametrize("most", [1, 2])
def test_a_unit_more_or_less_leaves_the_law_of_all_other_rows_as_it_is(ids, most):
    for unit in sorted(set(ids)):
        rest, places = without(tuple(ids), unit)
        smaller = {
            tuple(places[row] for row in outcome): chance
            for outcome, chance in law_of_kept(rest, most, 1).items()
        }
        assert law_of_others(tuple(ids), unit, most, 1) == smaller
        # And of its own rows at most so many are there, in every outcome.
        for outcome in law_of_kept(tuple(ids), most, 1):
            assert sum(ids[row] == unit for row in outcome) <= most


def swayed(units, count, most, bits, width):
    """A mutant: the presence of another crowded unit turns the choice around."""
    return (
        chosen(units, count, most, bits, width=width) if count == 1 else first_rows(units, count, most, bits)
    )


def test_the_law_of_the_others_catches_a_choice_that_depends_on_them():
    assert law_of_others("aabb", "b", 1, 1) == {(0,): Fraction(1, 2), (1,): Fraction(1, 2)}
    assert law_of_others("aabb", "b", 1, 1, choose=swayed) == {(0,): 1}


def chi_square(counts):
    expected = sum(counts) / len(counts)
    return chi2.sf(sum((count - expected) ** 2 / expected for count in counts), len(counts) - 1)


def test_seeded_choices_fit_the_uniform_law_and_the_first_rows_do_not():
    units, most = 20_000, 2
    ids = np.tile(np.arange(units), 4)
    rows = kept(admit(ids), most, SeededBits(11))
    pairs = (rows // units)[np.argsort(rows % units, kind="stable")].reshape(units, most)
    counts = Counter(map(tuple, np.sort(pairs, axis=1).tolist()))
    listed = [counts[pair] for pair in itertools.combinations(range(4), most)]
    assert sum(listed) == units
    assert chi_square(listed) > FALSE_ALARM
    # A choice that takes the first row a twentieth more often than it should is noticed.
    assert chi_square([listed[0] + units // 20, *listed[1:-1], listed[-1] - units // 20]) < FALSE_ALARM


SOURCES = {
    **{f"text {name}": (make, ["a", "b", "", "é"]) for name, make in TEXT.items()},
    **{f"integer {name}": (make, [0, 2**53, 2**53 + 1, -(2**63)]) for name, make in INTEGERS.items()},
    **{f"real {name}": (make, [0.0, -0.0, 1.0, -7.0]) for name, make in REALS.items()},
}


@pytest.mark.parametrize(("make", "values"), SOURCES.values(), ids=SOURCES)
@settings(max_examples=15, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_every_unit_keeps_at_most_so_many_rows_and_all_if_it_has_no_more(make, values, data):
    ids = data.draw(st.lists(st.one_of(st.none(), st.sampled_from(values)), max_size=14))
    most = data.draw(st.integers(1, 4))
    rows = kept(admit(make(ids)), most, SeededBits(data.draw(st.integers(0, 99)))).tolist()
    assert rows == sorted(set(rows))
    have = Counter(unit for unit in ids if unit is not None)
    assert Counter(ids[row] for row in rows) == {unit: min(count, most) for unit, count in have.items()}


@pytest.mark.parametrize("dtype", ["i1", "u1", "i8", "u8", ">i4"])
def test_ids_at_the_ends_of_their_type_are_told_apart(dtype):
    limits = np.iinfo(dtype)
    ids = np.array([limits.min, limits.max, limits.min, 0, limits.max - 1], dtype=dtype)
    have = Counter(ids[kept(admit(ids), 1, SeededBits(1))].tolist())
    assert have == dict.fromkeys(set(ids.tolist()), 1)


HOSTILE = {
    "reals that are no ids": ([NAN, 0.5, float("inf"), 2.0**53, -(2.0**60), 3.0, 3.0], 1),
    "long integers in a list": ([2**53, 2**53 + 1, 10**400, 4], 1),
    "objects": (pd.Series([{}, [], 987654, None, "CANARY", b"x", object()], dtype=object), 1),
    "surrogates": (np.array(["\ud800", "\udfff", "\ud800", None], dtype=object), 2),
    "nothing": ([None, None], 0),
    "no rows": (np.array([], dtype=np.int64), 0),
    "no text": (pl.Series([], dtype=pl.String), 0),
    "nulls": (pl.Series([None, None], dtype=pl.String), 0),
    "broken Unicode": (np.frombuffer(np.array([97, 0x7FFFFFFF, 97], np.uint32).tobytes(), dtype="U1"), 2),
}


@pytest.mark.parametrize(("ids", "units"), HOSTILE.values(), ids=HOSTILE)
def test_odd_ids_never_raise_and_those_that_tell_no_unit_are_left_out(ids, units):
    data = Dataset({"id": ids, "x": np.arange(len(ids))}, unit="id", rows_per_unit=1, neighbours="add-remove")
    (part,) = data.parts("x", bits=SystemBits())
    assert part.rows == units


def person_data(**facts):
    table = {"id": pl.Series(["a", "b", "a", None, "a", "b"]), "x": np.arange(6), "t": ["u", "v"] * 3}
    given_facts = {"unit": "id", "rows_per_unit": 2, "neighbours": "add-remove"}
    return Dataset(table, schema={"t": Field(categories=("u", "v"))}, **{**given_facts, **facts})


def numbers(column):
    return np.concatenate([*column.chunks(), []]).astype(int).tolist()


def test_contributions_are_drawn_once_and_every_part_is_cut_from_them():
    data = person_data()
    (whole,) = data.parts("x", bits=SystemBits())
    again = [numbers(data.parts("x", bits=SystemBits())[0]) for _ in range(20)]
    assert again == [numbers(whole)] * 20
    groups = data.parts("x", by=["t"], bits=SystemBits())
    assert sorted(itertools.chain(*map(numbers, groups))) == numbers(whole)
    assert [row % 2 for row in numbers(groups[1])] == [1] * groups[1].rows
    (some,) = data.parts("x", where={"t": "u"}, bits=SystemBits())
    assert numbers(some) == [row for row in numbers(whole) if row % 2 == 0]


def test_what_test_bits_chose_is_never_used_by_private_ones():
    table = {"id": np.zeros(64, dtype=np.int64), "x": np.arange(64)}
    data = Dataset(table, unit="id", rows_per_unit=32, neighbours="add-remove")
    seeded = numbers(data.parts("x", bits=SeededBits(5))[0])
    private = numbers(data.parts("x", bits=SystemBits())[0])
    # The same by chance once in 10**18 runs.
    assert private != seeded
    assert numbers(data.parts("x", bits=SystemBits())[0]) == private
    assert numbers(data.parts("x", bits=SeededBits(6))[0]) == seeded


class Counting(SeededBits):
    drawn = 0

    def words(self, count):
        self.drawn += count
        return super().words(count)


def test_units_with_few_rows_cost_no_randomness():
    bits = Counting(1)
    assert kept(admit([1, 2, 3, 1]), 2, bits).tolist() == [0, 1, 2, 3]
    assert bits.drawn == 0
    assert kept(admit([1, 2, 3, 1, 1]), 2, bits).tolist()[0] <= 1
    assert bits.drawn == 3


BAD = {
    "rows of rows": ({"unit": "row"}, "^rows_per_unit must be None for unit='row', got rows_per_unit=2$"),
    "no bound": ({"rows_per_unit": None}, "^rows_per_unit must be given with an id column"),
    "zero": ({"rows_per_unit": 0}, r"^rows_per_unit must be in \[1, 1000000\], got rows_per_unit=0$"),
    "a real": ({"rows_per_unit": 1.5}, "^rows_per_unit must be a whole number"),
    "no such column": ({"unit": "person"}, "^unit must be 'row' or .*got unit='person'; the columns are"),
    "no name": ({"unit": 5}, "^unit must be 'row' or the name of an id column, got unit=5"),
}


@pytest.mark.parametrize(("facts", "message"), BAD.values(), ids=BAD)
def test_a_wrong_unit_is_refused(facts, message):
    with pytest.raises(InvalidParameter, match=message):
        person_data(**facts)


def test_a_boolean_tells_no_unit():
    with pytest.raises(SchemaMismatch, match=r"^column 'id' must be integer or real or text"):
        Dataset({"id": np.array([True])}, unit="id", rows_per_unit=1, neighbours="add-remove")


@pytest.mark.parametrize("most", [None, 3])
def test_a_column_named_row_leaves_no_doubt_whose_privacy_is_meant(most):
    with pytest.raises(InvalidParameter, match="'row'"):
        Dataset({"row": [1]}, unit="row", rows_per_unit=most, neighbours="add-remove")


def test_ids_are_not_read_when_the_data_set_is_made():
    def unread(*_):
        raise AssertionError("read")

    column = admit(np.array([1, 2]), "id")
    object.__setattr__(column, "_labels", unread)
    data = Dataset({"id": column, "x": np.arange(2)}, unit="id", rows_per_unit=1, neighbours="add-remove")
    data.part()
    with pytest.raises(AssertionError, match="read"):
        data.parts("x", bits=SystemBits())
