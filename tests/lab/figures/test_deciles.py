"""The figures of the report and the slides of 2022: their statements hold, and broken numbers are noticed."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from sfumato.data.admission import admit
from sfumato.lab import decile_bounds as bounds
from sfumato.lab.decile_errors import PUBLISHED, SAME, SMOOTH, deciles, errors, near_median, survival
from sfumato.lab.errata_thresholds import scan
from sfumato.lab.figure import MODES, QUICK
from sfumato.lab.figures import bounds_of_deciles as s1
from sfumato.lab.figures import counts_in_strips as c3
from sfumato.lab.figures import decile_concentration as c2
from sfumato.lab.figures import histogram_against_inverse_sensitivity as s2
from sfumato.lab.figures import histogram_illustration as c1
from sfumato.lab.figures import histogram_mean_error as c5
from sfumato.lab.figures import histogram_theorem as c4
from sfumato.lab.figures import inverse_sensitivity_tail as c6
from sfumato.lab.figures import time_by_size as s3
from sfumato.lab.smooth_law import SmoothLaw
from sfumato.laws import DiscreteLaplace

FIGURES = {module.FIGURE.number: module.FIGURE for module in (c1, c2, c3, c4, c5, c6, s1, s2, s3)}
CASES = [(number, mode) for number in FIGURES for mode in MODES]
_KEPT = {}


@pytest.fixture(params=CASES, ids=lambda case: "-".join(case), scope="module")
def case(request):
    return request.param


def frame_of(number, mode):
    """The numbers at reduced effort, computed once."""
    if (number, mode) not in _KEPT:
        _KEPT[number, mode] = FIGURES[number].numbers(mode, QUICK, {})
    return _KEPT[number, mode]


def broken(number, mode, frame):
    return [each.words for each in FIGURES[number].check(frame, mode) if not each.holds]


def test_every_statement_holds(case):
    number, mode = case
    statements = FIGURES[number].check(frame_of(number, mode), mode)
    assert statements
    assert broken(number, mode, frame_of(number, mode)) == []


def test_the_picture_is_drawn(case):
    number, mode = case
    drawn = FIGURES[number].chart(frame_of(number, mode), mode).to_dict()
    assert drawn["title"]["text"]


def test_both_captions_name_what_is_seen():
    for figure in FIGURES.values():
        assert set(figure.captions) == set(MODES)
        assert figure.captions["published"] != figure.captions["corrected"]


# A frame with one mistake each: where it is, and what becomes of a number there.
SHIFTED = ("mean", pl.col("mean") + 6 * pl.col("se") + 1e-6)
MUTANTS = [
    ("C1", "published", pl.col("part") == c1.COUNT, "x", pl.col("x") - 0.25),
    ("C1", "published", pl.col("part") == c1.COUNT, "exact", pl.col("exact") + 1),
    ("C1", "published", pl.col("part") == c1.ANSWER, "x", pl.col("x") + 0.25),
    ("C1", "corrected", (pl.col("part") == c1.LAW) & (pl.col("x") == 0.75), "x", pl.lit(1.0)),
    ("C1", "corrected", (pl.col("part") == c1.LAW) & (pl.col("x") == 0.5), "x", pl.lit(0.6)),
    ("C1", "corrected", pl.col("part") == c1.LAW, *SHIFTED),
    ("C2", "published", pl.col("curve") == c2.PUBLISHED, "exact", pl.col("exact") / 6),
    ("C2", "published", pl.col("curve") == "factor", "exact", pl.lit(5.0)),
    ("C2", "corrected", pl.col("curve") == c2.HOEFFDING, "exact", pl.col("exact") ** 4),
    ("C2", "corrected", pl.col("curve") == "broken", "exact", pl.lit(1.0)),
    ("C2", "corrected", pl.col("curve") == c2.FOUND, *SHIFTED),
    ("C3", "published", pl.col("curve") == c3.LEMMA, "exact", pl.lit(1.0)),
    ("C3", "corrected", pl.col("curve") == c3.BOUND, "exact", pl.col("exact") ** 2 / 2),
    ("C3", "corrected", pl.col("curve") == c3.FOUND, *SHIFTED),
    ("C4", "published", pl.col("curve") == c4.FOUND, "exact", pl.lit(0.95)),
    ("C4", "published", pl.col("curve") == c4.CLAIMED, "exact", pl.lit(0.8)),
    ("C4", "corrected", pl.col("curve") == c4.PROVED, "exact", pl.lit(0.99)),
    ("C4", "corrected", pl.col("curve") == c4.FOUND, *SHIFTED),
    ("C5", "published", pl.col("curve") == c5.REPORT, "exact", pl.lit(0.5)),
    ("C5", "corrected", pl.col("curve") == c5.CLOSED, "exact", pl.col("exact") / 2),
    ("C5", "corrected", pl.col("curve") == "corrected", "exact", pl.lit(0.5)),
    ("C5", "corrected", pl.col("curve") == c5.FOUND, *SHIFTED),
    ("C6", "published", pl.col("curve") == c6.THEOREM, "exact", pl.lit(1.0)),
    ("C6", "published", pl.col("curve") == c6.THEOREM, "exact", pl.col("exact") / 20),
    ("C6", "corrected", pl.col("curve") == c6.PROVED, "exact", pl.col("exact") / 2),
    ("C6", "corrected", pl.col("curve") == "replaced", "exact", pl.lit(2.0)),
    ("C6", "corrected", pl.col("curve") == c6.FOUND, *SHIFTED),
    ("S1", "published", pl.col("curve") == bounds.SLIDE_FIVE, "exact", pl.col("exact") * 1.2),
    ("S1", "published", pl.col("curve") == bounds.SLIDE_THREE, "exact", pl.col("exact") / 2),
    ("S1", "published", pl.col("curve") == bounds.SLIDE_FIVE, "exact", pl.col("exact") / 9),
    ("S1", "corrected", pl.col("curve") == s1.OBSERVED[SMOOTH], "exact", pl.col("exact") * 4),
    ("S1", "published", pl.col("curve") == bounds.REPORT, "exact", pl.lit(0.1)),
    ("S1", "corrected", pl.col("curve") == bounds.CLOSED, "exact", pl.col("exact") / 2),
    ("S1", "corrected", pl.col("curve") == bounds.BINOMIAL, "exact", pl.col("exact") / 9),
    ("S1", "corrected", pl.col("curve") == bounds.TAIL, "exact", pl.col("exact") / 9),
    ("S1", "corrected", pl.col("curve") == s1.OBSERVED[PUBLISHED], *SHIFTED),
    ("S2", "published", pl.col("curve") == SMOOTH, "exact", pl.col("exact") * 4),
    ("S2", "published", pl.col("curve") == bounds.SLIDE_FIVE, "exact", pl.col("exact") * 1.2),
    ("S2", "published", pl.col("curve") == PUBLISHED, "exact", pl.col("exact") / 2),
    ("S2", "published", pl.col("curve") == bounds.SLIDE_THREE, "exact", pl.col("exact") / 9),
    ("S2", "corrected", pl.col("curve") == SAME, "exact", pl.col("exact") * 2.2),
    ("S2", "corrected", pl.col("curve") == SAME, "exact", pl.col("exact") / 2),
    ("S2", "corrected", pl.col("curve") == bounds.CLOSED, "exact", pl.col("exact") / 2),
    ("S2", "corrected", pl.col("curve") == bounds.TAIL, "exact", pl.col("exact") / 9),
    ("S2", "corrected", pl.col("curve") == bounds.BINOMIAL, "exact", pl.col("exact") / 9),
    ("S2", "corrected", pl.col("curve") == SAME, *SHIFTED),
    ("S3", "published", pl.col("curve") == s3.SMOOTH_NAME, "least", (pl.col("n") / 2**15) ** 2.0),
    ("S3", "published", pl.col("curve") == s3.HISTOGRAM, "least", (pl.col("n") / 2**15) ** 0.3),
    ("S3", "corrected", pl.col("curve") == s3.SMOOTH_NAME, "least", (pl.col("n") / 2**15) ** 2.0),
]


@pytest.mark.parametrize(("number", "mode", "where", "column", "wrong"), MUTANTS)
def test_a_wrong_number_breaks_a_statement(number, mode, where, column, wrong):
    frame = frame_of(number, mode)
    changed = frame.with_columns(pl.when(where).then(wrong).otherwise(pl.col(column)).alias(column))
    assert not changed.equals(frame)
    assert broken(number, mode, changed)


def test_survival_is_that_of_the_exact_law():
    data = np.sort(np.random.default_rng(7).random(200))
    # With a large budget the noise is a sum over integers, with a small one an integral.
    for name, epsilon, digits in ((PUBLISHED, 2, 1e-4), (SAME, 2, 1e-4), (PUBLISHED, 80, 1e-9)):
        query = deciles(name, epsilon, len(data))
        law = query.law(query.look(admit(data, "value")))
        for place in (0, 4, 8):
            crossing = law.scans[place].law(law.counts)
            exact = np.append(1.0, crossing.sf(np.arange(crossing.points - 1)))
            margins = crossing.values - crossing.threshold
            found = survival(margins, crossing.threshold_noise, crossing.query_noise)
            assert np.abs(found - exact).max() < digits
            # A few per cent more noise is another law, and would be noticed.
            wider = DiscreteLaplace(crossing.query_noise.scale * Fraction(21, 20))
            assert np.abs(survival(margins, crossing.threshold_noise, wider) - exact).max() > 10 * digits


@pytest.mark.parametrize("name", [PUBLISHED, SAME, SMOOTH])
def test_exact_errors_are_those_of_many_draws(name):
    data = np.sort(np.random.default_rng(11).random(500))
    found = errors(name, 5, data, 1500, 3, (Fraction(3, 10), Fraction(9, 10)))
    for exact, drawn in ((found.ranks, found.drawn_ranks), (found.values, found.drawn_values)):
        se = drawn.std(axis=0, ddof=1) / len(drawn) ** 0.5
        assert (np.abs(drawn.mean(axis=0) - exact) < 4 * se).all()
        assert not (np.abs(drawn.mean(axis=0) - 1.3 * exact) < 4 * se).any()


def test_each_decile_has_a_ninth_of_the_budget():
    query = deciles(PUBLISHED, 1, 1000)
    mechanism = query.chosen.scans(query.facts)[0].mechanism
    assert mechanism.threshold_scale / 10 == 18
    assert mechanism.query_scale / 10 == 36
    assert query.cost.epsilon == 1


def test_the_median_is_near_as_often_as_the_law_of_the_scan_says():
    data, steps, epsilon = np.sort(np.random.default_rng(5).random(300)), 64, Fraction(3)
    counts = np.searchsorted(data, np.arange(1, steps + 1) / steps)
    law = scan(epsilon / 9).law(counts, len(data) // 2)
    # Left edges within 6/64 of 1/2 are those of the steps 26 to 38.
    exact = float(law.cdf(38)) - float(law.cdf(25))
    assert 0.1 < exact < 0.99
    assert near_median(data, steps, epsilon, 6 / 64) == pytest.approx(exact, rel=1e-9)
    assert near_median(data, steps, epsilon / 2, 6 / 64) < exact - 0.01


def test_the_density_of_smooth_inverse_sensitivity_is_that_of_the_product():
    data = np.sort(np.random.default_rng(9).random(50))
    law = SmoothLaw.of(data, 25, 0.01, 2.0)
    assert law.below[-1] == pytest.approx(1)
    answers = c6._answers(data, c6.Setting(50, 2, 0.01, (0.05,)), 1)
    assert len(answers) == c6.DRAWS
    query = np.array([0.02, 0.05, 0.1])
    drawn = np.concatenate([c6._answers(data, c6.Setting(50, 2, 0.01, ()), seed) for seed in range(150)])
    exact = law.beyond(float(data[24]), query)
    found = (np.abs(drawn - data[24])[:, None] > query).mean(axis=0)
    assert (np.abs(found - exact) < 4 * np.sqrt(exact * (1 - exact) / len(drawn))).all()
    narrow = SmoothLaw.of(data, 25, 0.01, 4.0).beyond(float(data[24]), query)
    assert (np.abs(found - narrow) > 4 * np.sqrt(exact * (1 - exact) / len(drawn))).any()


def test_a_mechanism_of_a_readers_own_is_measured_on_the_same_data(monkeypatch):
    from sfumato.lab.own import Own

    def population(values, probs):
        return np.array([float(p) for p in probs])

    monkeypatch.setattr(s2, "SIZES", (1_000,))
    frame = s2.numbers("published", QUICK, {"population": Own(function=population, probs=[0.5])})
    mine = frame.filter(frame["curve"] == "population")
    assert mine["epsilon"].to_list() == [0.1, 1.0]
    assert 1 < mine["mean"][0] == mine["mean"][1] < 30
    assert "population" in str(s2.chart(frame, "published").to_dict())


def test_bounds_summed_from_above_are_not_below_the_integral():
    flat = bounds._summed(lambda distance: max(1 - 4 * distance, 0.0), 0.5)
    assert 1 / 8 < flat < 1.1 / 8


def test_what_leaves_no_rank_has_no_bound():
    assert bounds.binomial_mean(1000, Fraction(1, 2), Fraction(1, 10)) is None
    assert bounds.slide_ranks(1000, Fraction(1, 2), Fraction(1, 10)) is None


def test_the_published_scan_that_forgets_to_empty_its_list_is_noticed(monkeypatch):
    """With one copy of the counts nothing lies above the range, and the statement fails."""
    monkeypatch.setattr(c1, "NINTH", 1)
    frame = c1.numbers("published", QUICK, {})
    assert broken("C1", "published", frame)


def test_seeded_numbers_are_the_same_twice():
    for number in ("C1", "C3"):
        again = FIGURES[number].numbers("published", QUICK, {})
        assert again.equals(frame_of(number, "published"))
