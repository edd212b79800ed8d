"""Many laws of runs at once: each row has the law of `Graded`, and words on an edge are left to integers."""

from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws.scripted import ScriptedBits
from tests.laws.test_graded import edge_words, expected_run, fits

from sfumato.errors import InvalidParameter
from sfumato.laws import SeededBits, graded_rows
from sfumato.laws.graded_rows import STRETCH, GradedRows
from sfumato.laws.grades import grades
from sfumato.laws.weights import Groups


@pytest.fixture(autouse=True, params=[0, 10**9], ids=["by stretches", "by all runs"])
def worth(request, monkeypatch):
    """Both ways to find a run: in sums over stretches first, or in those over all runs."""
    monkeypatch.setattr(graded_rows, "WORTH", request.param)


LENGTHS = np.array([[3, 0, 1, 2, 10, 4], [0, 0, 2, 5, 1, 0], [1, 1, 1, 1, 1, 1]])
LEVELS = np.array([[4, 9, 1, 0, 2, 30], [0, 3, 4, 0, 1, 2], [7, 3, 0, 0, 5, 300]])
GRADES = grades(Fraction(1, 2), 1)


def laws(lengths=LENGTHS, levels=LEVELS, graded=GRADES):
    return GradedRows(lengths, levels, graded)


@st.composite
def many_rows(draw):
    runs = draw(st.integers(1, 9))
    rows = draw(st.integers(1, 4))
    row = st.lists(st.integers(0, 4), min_size=runs, max_size=runs).filter(any)
    levels = st.lists(st.integers(0, 300), min_size=runs, max_size=runs)
    shared = draw(st.booleans())
    given_levels = [draw(levels) for _ in range(1 if shared else rows)]
    return np.array([draw(row) for _ in range(rows)]), np.array(given_levels)


calibrations = st.sampled_from([(Fraction(1, 2), 1), (Fraction(5, 18), 20), (Fraction(10**5), 3)])


def run_chances(graded):
    """The exact probability of each run of one law."""
    return [Fraction(mass, graded._total) for mass in graded._masses]


def reached(words, row, found, *, rows):
    """Which runs of one row the words are decided for by floats alone; None where integers have to decide."""
    runs, undecided = found._runs(np.tile(np.array(words, dtype=np.uint64), (rows, 1)))
    return [
        None if open_ else int(run)
        for run, open_ in zip(runs[row].tolist(), undecided[row].tolist(), strict=True)
    ]


@given(many_rows(), calibrations)
def test_every_row_is_the_law_of_graded_on_that_row(pair, calibration):
    lengths, levels = pair
    found = laws(lengths, levels, grades(*calibration))
    every = np.broadcast_to(levels, lengths.shape)
    assert found.points.tolist() == lengths.sum(axis=1).tolist()
    for row in range(len(lengths)):
        weights = grades(*calibration).weights(np.repeat(every[row], lengths[row]))
        one = found.law(row)
        chances = [one.probability(point) for point in range(one.points)]
        assert chances == [Fraction(weight, sum(weights)) for weight in weights]
        # What integers settle, and what floats say of runs.
        for uniform in (0, 2**63, 2**64 - 1):
            settled = found._settled(row, uniform, ScriptedBits([2**63] * 9))
            assert settled == expected_run(one, Fraction(2 * uniform + 1, 2**65))
        assert found.shares[row] == pytest.approx([float(chance) for chance in run_chances(one)], rel=1e-9)


def wrong_runs(found, words):
    """How many words floats give to a run that exact arithmetic does not."""
    wrong = 0
    for row in range(len(found.lengths)):
        sums = list(accumulate(found.law(row)._masses))
        for word, run in zip(words, reached(words, row, found, rows=len(found.lengths)), strict=True):
            # The run of the least and of the largest real that start with the word: the first whose sum is
            # above that share of the total.
            reals = (word * 2**64, word * 2**64 + 2**64 - 1)
            ends = {bisect_right(sums, real * sums[-1] >> 128) for real in reals}
            wrong += run is not None and ends != {run}
    return wrong


def test_runs_of_more_than_one_stretch_are_found_at_their_edges():
    rng = np.random.default_rng(5)
    for count in (STRETCH - 1, STRETCH, STRETCH + 1, 5 * STRETCH):
        lengths, levels = rng.integers(0, 3, (2, count)), rng.integers(0, 9, (2, count))
        lengths[:, -1] = (0, 1)
        for found in (laws(lengths, levels), laws(lengths, levels[:1])):
            assert wrong_runs(found, edge_words(found.law(0)) + edge_words(found.law(1))) == 0


def test_laws_with_other_levels_on_the_same_runs_are_laws_of_their_own():
    other = laws(levels=LEVELS[:1]).regraded(LEVELS, grades(Fraction(3), 2))
    fresh = laws(graded=grades(Fraction(3), 2))
    assert np.array_equal(other.sample(SeededBits(4), 500), fresh.sample(SeededBits(4), 500))
    assert np.array_equal(other.shares, fresh.shares)


@given(many_rows(), st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=6))
def test_floats_choose_the_run_of_exact_arithmetic_or_none(pair, words):
    found = laws(*pair)
    assert wrong_runs(found, words) == 0
    # At the edges of every row too.
    assert (
        wrong_runs(found, [word for row in range(len(pair[0])) for word in edge_words(found.law(row))]) == 0
    )


class NoSlack(GradedRows):
    """Floats always decide, however near the edge."""

    def _runs(self, words):
        return super()._runs(words)[0], np.zeros(words.shape, dtype=bool)


class NextRun(GradedRows):
    """One run too far."""

    def _runs(self, words):
        runs, undecided = super()._runs(words)
        return np.minimum(runs + 1, self.lengths.shape[1] - 1), undecided


class OtherRow(GradedRows):
    """Sums of the row above."""

    def _runs(self, words):
        runs, undecided = super()._runs(words)
        return np.roll(runs, 1, axis=0), undecided


@pytest.mark.parametrize("mutant", [NoSlack, NextRun, OtherRow])
def test_a_mutant_of_the_search_gives_words_to_wrong_runs(mutant):
    words = [word for row in range(3) for word in edge_words(laws().law(row))]
    assert wrong_runs(mutant(LENGTHS, LEVELS, GRADES), words) > 0


def test_words_near_an_edge_are_left_to_integers_on_both_sides_of_it():
    found = laws()
    for row in range(3):
        edge = Fraction(0)
        inner = [chance for chance in run_chances(found.law(row)) if chance][:-1]
        for chance in inner:
            edge += chance
            word = int(edge * 2**64)
            near = [min(max(word + away, 0), 2**64 - 1) for away in (-(2**14), -1000, 0, 1000, 2**14)]
            assert reached(near, row, found, rows=3) == [None] * 5


@pytest.mark.parametrize("following", [0, 1, 2**63, 2**64 - 1])
def test_a_word_on_an_edge_is_continued_and_not_drawn_anew(following):
    lengths, levels = LENGTHS[:1], LEVELS[:1]
    found = laws(lengths, levels)
    one, ends, undecided = found.law(0), np.cumsum(lengths[0]), 0
    for word in edge_words(one):
        if reached([word], 0, found, rows=1) != [None]:
            continue
        undecided += 1
        expected = expected_run(one, Fraction(word * 2**64 + following, 2**128))
        real = {expected_run(one, Fraction(word * 2**64 + rest, 2**128)) for rest in (0, 2**64 - 1)}
        seen = []
        settle = Groups.settle

        def watched(groups, prefix, bits, seen=seen, settle=settle):
            seen.append(prefix)
            return settle(groups, prefix, bits)

        bits = ScriptedBits([word, following, *[2**63] * 20])
        with patch.object(Groups, "settle", watched):
            point = int(found.sample(bits, 1)[0, 0])
        assert seen == [word]
        # Where integers find that the word decides by itself, what follows it chooses the place in the run.
        run = expected if len(real) > 1 else min(real)
        assert ends[run] - lengths[0, run] <= point < ends[run]
    assert undecided >= 5


def draws_fit(found, seed, size):
    draws = found.sample(SeededBits(seed), size)
    return [fits(draws[row], found.law(row)) for row in range(len(draws))]


def test_draws_fit_the_law_of_every_row_and_reject_laws_that_are_a_little_off():
    draws = laws().sample(SeededBits(11), 40_000)
    for row in range(3):
        assert fits(draws[row], laws().law(row))
        for c in (Fraction(9, 20), Fraction(11, 20)):
            assert not fits(draws[row], laws(graded=grades(c, 1)).law(row))


def test_draws_that_integers_decide_fit_too():
    with patch.object(
        GradedRows,
        "_runs",
        lambda self, words: (np.zeros(words.shape, dtype=np.int64), np.ones(words.shape, dtype=bool)),
    ):
        assert draws_fit(laws(), 12, 4000) == [True] * 3


@pytest.mark.parametrize("mutant", [NextRun, OtherRow])
def test_draws_of_a_mutant_do_not_fit(mutant):
    lengths = np.array([[1, 2, 1], [2, 1, 1]])
    assert all(draws_fit(laws(lengths, LEVELS[:2, :3]), 11, 40_000))
    assert not all(draws_fit(mutant(lengths, LEVELS[:2, :3], GRADES), 11, 40_000))


def test_draws_of_a_row_are_independent_of_each_other_and_of_other_rows():
    found = laws(np.ones((2, 2), dtype=np.int64), np.zeros((1, 2), dtype=np.int64))
    draws = found.sample(SeededBits(3), 40_000)
    pairs = np.bincount(2 * draws[0] + draws[1], minlength=4)
    following = np.bincount(2 * draws[0, :-1] + draws[0, 1:], minlength=4)
    for counts in (pairs, following):
        assert abs(counts - 10_000).max() < 6.2 * np.sqrt(40_000 * 3 / 16)


def test_empty_runs_are_never_drawn_and_one_point_is_always():
    found = laws(np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]]), np.array([[0, 700, 0]]))
    assert (found.sample(SeededBits(1), 50) == 0).all()


def test_weights_of_any_size_neither_overflow_nor_vanish():
    # Weights from 2**462 to 1, on a line of 2**56 points.
    graded = grades(Fraction(1, 10**6), 100_000, 2**56)
    wide = np.array([[2**56, 1, 2**56 - 1], [1, 0, 2**56]])
    levels = np.array([[graded.last, 0, graded.last]])
    found = laws(wide, levels, graded)
    for sums in (found._sums, found._edges):
        assert np.isfinite(sums).all()
        assert (sums > 0).all()
    for row in range(2):
        chances = [float(chance) for chance in run_chances(found.law(row))]
        assert found.shares[row] == pytest.approx(chances, rel=1e-9)
    draws = found.sample(SeededBits(5), 1000)
    assert (draws >= 0).all()
    assert (draws < found.points[:, None]).all()


def test_rows_without_points_and_levels_of_another_shape_are_refused():
    with pytest.raises(InvalidParameter, match="a point in every row"):
        laws(np.array([[1, 0], [0, 0]]), np.array([[0, 1]]))
    for levels in (LEVELS[:2], LEVELS[:, :2], LEVELS[0]):
        with pytest.raises(InvalidParameter, match="as many runs"):
            laws(LENGTHS, levels)
