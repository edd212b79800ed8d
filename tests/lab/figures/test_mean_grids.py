"""Figures 18 to 23 and R1: the exponential mean on finer and finer grids, and its limit."""

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from tests.laws.fit import fit

from sfumato.accuracy import MeanLimit
from sfumato.charts import svg
from sfumato.lab import grid_draws, mean_grids
from sfumato.lab.figure import MODES, QUICK
from sfumato.lab.figures import (
    convergence_in_law,
    draws_on_finer_grids,
    draws_on_finer_grids_large_budget,
    draws_on_finer_grids_small_budget,
    grid_law,
    grid_law_and_limit,
    parity_of_grids,
)
from sfumato.laws import SeededBits, TruncatedLaplace

MODULES = {
    "18": draws_on_finer_grids,
    "19": draws_on_finer_grids_large_budget,
    "20": draws_on_finer_grids_small_budget,
    "21": parity_of_grids,
    "22": grid_law,
    "23": grid_law_and_limit,
    "R1": convergence_in_law,
}
CASES = [(number, mode) for number in MODULES for mode in MODES]


@pytest.fixture(scope="module")
def frames():
    return {(number, mode): MODULES[number].FIGURE.numbers(mode, QUICK, {}) for number, mode in CASES}


def broken(number, frame, mode):
    return [each.words for each in MODULES[number].FIGURE.check(frame, mode) if not each.holds]


@pytest.mark.parametrize(("number", "mode"), CASES)
def test_every_statement_holds(frames, number, mode):
    assert broken(number, frames[number, mode], mode) == []


@pytest.mark.parametrize(("number", "mode"), CASES)
def test_the_picture_is_drawn(frames, number, mode):
    figure = MODULES[number].FIGURE
    picture = svg(figure.chart(frames[number, mode], mode), alt=figure.title, prefix="a")
    assert picture.count("<path") > 15


def changed(frame, column, value, *where):
    expression = pl.when(*where).then(value).otherwise(pl.col(column))
    return frame.with_columns(expression.alias(column))


QUANTITY, CURVE, MEAN, EXACT, CELLS = (
    pl.col(name) for name in ("quantity", "curve", "mean", "exact", "cells")
)
IS_DRAW, IS_SPREAD = QUANTITY == grid_draws.DRAW, QUANTITY == grid_draws.SPREAD
IS_POINT, IS_WINDOW = QUANTITY == grid_law.POINT, QUANTITY == grid_law.WINDOW
IS_BIN, IS_GRID, IS_LIMIT, IS_COST = (
    name == QUANTITY
    for name in (
        grid_law_and_limit.BIN,
        grid_law_and_limit.GRID,
        grid_law_and_limit.LIMIT,
        grid_law_and_limit.COST,
    )
)
IS_GAP = QUANTITY.str.starts_with(grid_law_and_limit.GAP)
NEAREST = pl.col("chance_of_nearest")
rate_of = convergence_in_law
# The figure, what is broken and how, where, and what a failing statement must speak of.
MUTANTS = {
    "draws that settle": ("18 published mean", 0.5 + (MEAN - 0.5) * 1e3 / CELLS, IS_DRAW, "do not settle"),
    "draws that shrink": ("18 published mean", 0.5 + (MEAN - 0.5) / 20, IS_DRAW, "mean squared distance"),
    "a spread too large": ("19 published exact", 2 * EXACT, IS_SPREAD, "standard deviation of the limit"),
    "draws spread too far": ("18 corrected mean", 1.5 * MEAN, IS_SPREAD, "spread of many draws"),
    "too many outside": ("18 corrected mean", pl.lit(0.2), QUANTITY == grid_draws.OUTSIDE, "share outside"),
    "a law too wide": ("18 corrected exact", 2 * EXACT, QUANTITY == grid_draws.BEYOND, "chance outside"),
    "coupled draws that wander": ("20 corrected mean", MEAN + 1e-3, CURVE == grid_draws.COUPLED, "coupled"),
    "another ratio": ("20 corrected exact", EXACT * pl.col("epsilon"), IS_SPREAD, "figure 19"),
    "draws off the grid": ("21 published draw", pl.col("draw") + 0.001, CELLS == 7, "k/N"),
    "odd grids that hit 1/2": ("21 corrected draw", pl.lit(0.5), CELLS == 7, "every draw is at least"),
    "even grids that miss it": ("21 corrected chance_of_nearest", 0.9 * NEAREST, CELLS == 8, "chance of 1/2"),
    "odd grids that stray": ("21 published chance_of_nearest", 0.9 * NEAREST, CELLS == 9, "together"),
    "unequal neighbours": ("21 published difference_of_nearest", pl.lit(0.01), CELLS == 9, "equal chances"),
    "no parity": ("21 corrected exact", EXACT + 0.1, CELLS == 8, "parity shows"),
    "another distance": ("21 corrected mean", 1.5 * MEAN, CELLS == 30, "farther than"),
    "a lower peak": ("22 published exact", 0.99 * EXACT, IS_POINT, "peak"),
    "a skewed law": ("22 corrected exact", EXACT * (1 + pl.col("x") / 1e4), IS_POINT, "symmetric"),
    "a bent law": ("22 corrected exact", EXACT**1.01, IS_POINT, "slopes"),
    "a smaller window": ("22 corrected exact", EXACT - 0.001, IS_WINDOW, "mass of"),
    "draws elsewhere": ("22 published mean", 0.8 * MEAN, IS_POINT, "ten neighbouring points"),
    "another peak": ("23 published exact", 1.01 * EXACT, IS_LIMIT, "peak"),
    "a wider gap": ("23 corrected exact", 2 * EXACT, IS_GAP, "below 0.05"),
    "another rate": ("23 published exact", EXACT**2, IS_GRID, "rates"),
    "bins of another law": ("23 corrected mean", 1.5 * MEAN, IS_BIN, "bins"),
    "a level as claimed": ("23 published exact", pl.lit(0.4), IS_COST, "truncated"),
    "a slower rate": ("R1 corrected exact", EXACT * CELLS**0.1, QUANTITY == rate_of.MOVED, "slope"),
    "above its bound": ("R1 corrected exact", 50 * EXACT, QUANTITY == rate_of.TRANSFORM, "of its bound"),
    "another constant": ("R1 corrected exact", 1.1 * EXACT, QUANTITY == rate_of.OPEN, "3.7"),
    "independent draws that meet": (
        "R1 published exact",
        EXACT / 2,
        QUANTITY == rate_of.FREE,
        "do not converge",
    ),
    "coupled draws that part": ("R1 corrected mean", MEAN + 0.1, QUANTITY == rate_of.TIED, "coupled"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_number_breaks_its_statement(frames, name):
    place, value, where, words = MUTANTS[name]
    number, mode, column = place.split()
    failed = broken(number, changed(frames[number, mode], column, value, where), mode)
    assert any(words in one for one in failed)


def test_a_sampler_with_another_rate_is_noticed(monkeypatch):
    honest = mean_grids._printed
    monkeypatch.setattr(mean_grids, "_printed", lambda cells, fall, *rest: honest(cells, 1.3 * fall, *rest))
    assert any(
        "ten neighbouring" in one
        for one in broken("22", grid_law.FIGURE.numbers("published", QUICK, {}), "published")
    )
    frame = draws_on_finer_grids.FIGURE.numbers("published", QUICK, {})
    assert any("spread of many draws" in one for one in broken("18", frame, "published"))


def test_a_product_with_the_published_utility_draws_the_same_here():
    # With data of mean 1/2 both utilities are the same; it is elsewhere that -|o - 1/2| is deaf.
    ours = mean_grids.law("corrected", 30, 0.06)
    places = np.arange(31)
    weights = np.exp(-mean_grids.rate(0.06) * np.abs(places / 30 - 0.5))
    assert np.exp(ours.logpmf(places)) == pytest.approx(weights / weights.sum(), rel=1e-9)


@pytest.mark.parametrize("cells", [3, 4, 29, 30])
def test_the_published_law_has_no_point_at_one(cells):
    law = mean_grids.law("published", cells, 0.01)
    places = np.arange(cells)
    weights = np.exp(-mean_grids.rate(0.01) * np.abs(places / cells - 0.5))
    assert np.exp(law.logpmf(places)) == pytest.approx(weights / weights.sum(), rel=1e-9)
    assert np.isneginf(law.logpmf(cells))


@pytest.mark.parametrize("cells", [9, 10, 1001, 1000])
def test_published_draws_fit_their_law_and_no_other(cells):
    draws = np.rint(mean_grids._printed(cells, 5.0, 200_000, np.random.default_rng(18))).astype(int)

    def family(factor):
        scale = Fraction(cells, 5) * Fraction(factor).limit_denominator(10**6)
        return TruncatedLaplace(center=Fraction(cells, 2), scale=scale, low=0, high=cells - 1)

    assert not fit(draws, family).rejected
    assert fit(draws, lambda factor: family(1.05 * factor)).rejected
    assert fit(draws, lambda factor: family(factor / 1.05)).rejected


def test_quantiles_are_the_first_point_with_enough_below():
    law = mean_grids.law("corrected", 50, 0.06)
    sums = np.asarray(law.cdf(np.arange(51)))
    for share in (1e-9, 0.1, 0.5, 0.9, 0.999):
        assert mean_grids.quantile(law, share) == int(np.searchsorted(sums, share))


@pytest.mark.parametrize(("cells", "fall"), [(1000, 1500.0), (200, 40.0), (2000, 400.0)])
def test_the_kurtosis_is_that_of_the_enumerated_law(cells, fall):
    places = np.arange(cells) - cells // 2
    weights = np.exp(-fall / cells * np.abs(places))
    second, fourth = (float(weights @ places.astype(float) ** power) / weights.sum() for power in (2, 4))
    assert mean_grids.kurtosis(cells, fall) == pytest.approx(fourth / second**2, rel=1e-4)


def test_gaps_of_coupled_draws_are_found_exactly(frames):
    # Against a fine row of uniform numbers, on the coarsest grid.
    row = frames["R1", "corrected"].filter((QUANTITY == convergence_in_law.TIED) & (CELLS == 5))
    uniform = (np.arange(1_000_000) + 0.5) / 1_000_000
    limit = MeanLimit(0.5, convergence_in_law.RATE)
    law = mean_grids.law("corrected", 5, convergence_in_law.EPSILON, convergence_in_law.ROWS)
    ours = np.searchsorted(np.asarray(law.cdf(np.arange(6))), uniform) / 5
    share = np.mean(ours - limit.quantile(uniform) >= convergence_in_law.ETA)
    assert row["exact"][0] == pytest.approx(share, abs=5e-6)


def test_draws_are_the_same_for_the_same_seed_and_mode(frames):
    again = draws_on_finer_grids.FIGURE.numbers("corrected", QUICK, {})
    assert again.equals(frames["18", "corrected"])
    assert math.isclose(
        mean_grids.drawn("corrected", 100, 0.8, 1, SeededBits(7))[0],
        mean_grids.drawn("corrected", 100, 0.8, 1, SeededBits(7))[0],
    )
