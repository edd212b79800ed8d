"""Figure R1: how fast the law on N cells tends to its limit, and in which sense draws do."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from sfumato.accuracy import (
    MeanLimit,
    characteristic_bound,
    characteristic_distance,
    independent_gap_tail,
    limit_distance_bound,
    published_independent_gap_limit,
    wasserstein_distance,
)
from sfumato.lab.figure import Effort, Figure, Mode, Statement
from sfumato.lab.judging import all_agree, as_printed, compared
from sfumato.lab.mean_grids import drawn, law, rate, source
from sfumato.lab.measured import line_and_point

ROWS, EPSILON, ETA = 20, 0.8, 0.05
RATE = rate(EPSILON, ROWS)
FREQUENCIES = (1, 5, 20)
CENTERS: dict[Mode, tuple[float, ...]] = {"published": (0.5,), "corrected": (0.5, 0.3, 0.0)}
SIZES = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
GAP_SIZES = (5, 10, 20, 50, 100, 1000, 10_000)
DRAWS = 20_000
ROUNDING = 1e-12
# What the printed expression gives for this rate and this gap.
PRINTED_GAP = 0.296
# N times the largest difference on the points k/N, k < N, to the digits known.
CONSTANTS = {0.5: "0.045", 0.3: "0.23", 0.0: "3.7"}
TRANSFORM, OPEN, MOVED, FREE, TIED = (
    "difference of characteristic functions",
    "the same without the point 1",
    "Wasserstein distance",
    "chance of a gap, independent",
    "chance of a gap, coupled",
)
COLUMNS = {
    "quantity": pl.String,
    "center": pl.Float64,
    "cells": pl.Int64,
    "exact": pl.Float64,
    "bound": pl.Float64,
    "mean": pl.Float64,
    "se": pl.Float64,
}


def numbers(mode: Mode, effort: Effort, own: Mapping[str, Any]) -> Any:
    """Distances with their bounds for each center and N; chances that a draw is far from one of the limit."""
    rows: list[tuple[Any, ...]] = []
    # In print 1 is no point of the grid.
    closed = mode == "corrected"
    for center in CENTERS[mode]:
        limit = MeanLimit(center, RATE)
        apart = characteristic_distance(limit, 1000, FREQUENCIES, closed=False)
        rows.append((OPEN, center, 1000, apart, None, None, None))
        for cells in SIZES:
            bound = characteristic_bound(limit, cells, FREQUENCIES[-1], closed=closed)
            found = characteristic_distance(limit, cells, FREQUENCIES, closed=closed)
            rows.append((TRANSFORM, center, cells, found, bound, None, None))
            if closed:
                moved, most = wasserstein_distance(limit, cells), limit_distance_bound(limit, cells)
                rows.append((MOVED, center, cells, moved, most, None, None))
    return pl.DataFrame(rows + _gaps(mode, effort), schema=COLUMNS, orient="row")


def _gaps(mode: Mode, effort: Effort) -> list[tuple[Any, ...]]:
    """The chance that Y_N - Y is at least eta: exact and drawn, for independent and for coupled draws."""
    limit, count = MeanLimit(0.5, RATE), effort.draws(DRAWS)
    randomness, rng = source(mode, effort.seed), np.random.default_rng([effort.seed, 1])
    rows: list[tuple[Any, ...]] = []
    for cells in GAP_SIZES:
        points = law(mode, cells, EPSILON, ROWS)
        places = np.arange(points.low, points.high + 1)
        chances, sums = np.exp(points.logpmf(places)), points.cdf(places)
        below = limit.cdf(places / cells - ETA)
        # Coupled, k is drawn for the numbers between two sums, and those up to `below` are far enough.
        far = np.clip(below - (sums - chances), 0, chances)
        tied = float(far[far > ROUNDING].sum())
        uniform = rng.random(count)
        other = limit.quantile(uniform)
        alone = drawn(mode, cells, EPSILON, count, randomness, ROWS)
        same = places[np.minimum(np.searchsorted(sums, uniform), len(places) - 1)] / cells
        for name, exact, drawn_at in ((FREE, float(chances @ below), alone), (TIED, tied, same)):
            seen = float(np.mean(drawn_at - other >= ETA))
            error = math.sqrt(max(exact * (1 - exact), 0.0) / count)
            rows.append((name, 0.5, cells, exact, None, seen, error))
    rows.append((f"{FREE}, limit", 0.5, None, independent_gap_tail(RATE, ETA), None, None, None))
    return rows


def chart(frame: Any, mode: Mode) -> Any:
    """Distances on logarithmic axes, with their bounds; below them the chances of a gap."""
    from sfumato.charts import comparison, stacked

    pictures = []
    words = {TRANSFORM: "|Φ_N - Φ|, largest of t = 1, 5, 20", MOVED: "Wasserstein distance"}
    for name in (TRANSFORM, MOVED):
        rows = []
        for row in frame.filter(pl.col("quantity") == name).iter_rows(named=True):
            at = {"x": row["cells"]}
            rows.append(at | {"curve": f"θ = {row['center']:g}", "kind": "exact", "y": row["exact"]})
            if row["center"] == 0.5:
                rows.append(at | {"curve": "bound, any θ", "kind": "bound", "y": row["bound"]})
                rows.append(at | {"curve": "1/N", "kind": "reference", "y": 1 / row["cells"]})
        if rows:
            pictures.append(
                comparison(
                    rows, along="number of cells N", unit=words[name], log_x=True, log_y=True, height=220
                )
            )
    rows = []
    for name, label in ((FREE, "independent"), (TIED, "coupled")):
        for row in frame.filter(pl.col("quantity") == name).iter_rows(named=True):
            rows += line_and_point({"curve": label, "x": row["cells"]}, row)
    marks = [{"y": PRINTED_GAP, "text": "in print"}] if mode == "published" else []
    unit = f"P(Y_N - Y ≥ {ETA:g}), θ = 1/2"
    pictures.append(
        comparison(rows, along="number of cells N", unit=unit, log_x=True, zero=True, marks=marks, height=190)
    )
    subtitle = [
        f"the exponential mean of {ROWS} records with mean θ on N cells, ε = {EPSILON:g}, λ = {RATE:g}"
    ]
    return stacked(pictures, title="Convergence in law, and its rate", subtitle=subtitle)


def check(frame: Any, mode: Mode) -> tuple[Statement, ...]:
    """Slopes of -1, constants, bounds; independent draws that stay apart and coupled ones that do not."""
    statements: list[Statement] = []
    for name in (TRANSFORM, MOVED):
        for center in CENTERS[mode]:
            rows = frame.filter((pl.col("quantity") == name) & (pl.col("center") == center)).sort("cells")
            if not len(rows):
                continue
            cells, exact, bound = (rows[column].to_numpy() for column in ("cells", "exact", "bound"))
            fine = cells >= 1000
            slope = float(np.polyfit(np.log(cells[fine]), np.log(exact[fine]), 1)[0])
            words = f"{name}, θ = {center:g}: the slope from N = 1,000 on is {slope:.4f}, which is -1"
            statements.append(Statement(words, abs(slope + 1) < 0.01))
            share = float((exact / bound).max())
            words = f"{name}, θ = {center:g}: at most {share:.3f} of its bound, for every N"
            statements.append(Statement(words, share <= 1))
    for center, constant in CONSTANTS.items():
        open_grid = frame.filter((pl.col("quantity") == OPEN) & (pl.col("center") == center))
        if len(open_grid):
            times = float(open_grid["exact"][0]) * int(open_grid["cells"][0])
            words = f"N |Φ_N - Φ| at N = 1,000 without the point 1, θ = {center:g},"
            statements.append(as_printed(words, times, constant))
    # A looser bound, |t|/N + e^(2λ/N) - 1, which is easier to remember.
    rows = frame.filter(pl.col("quantity") == TRANSFORM)
    loose = FREQUENCIES[-1] / rows["cells"].to_numpy() + np.expm1(2 * RATE / rows["cells"].to_numpy())
    share = float((rows["exact"].to_numpy() / loose).max())
    words = f"the differences are at most {share:.3f} of |t|/N + e^(2λ/N) - 1 at t = {FREQUENCIES[-1]}"
    return (*statements, Statement(words, share <= 1), *_draws_apart(frame, mode))


def _draws_apart(frame: Any, mode: Mode) -> tuple[Statement, ...]:
    limit = float(frame.filter(pl.col("quantity") == f"{FREE}, limit")["exact"][0])
    statements = [as_printed("P(Y' - Y ≥ 0.05) for two independent draws of the limit", limit, "0.3986")]
    for name in (FREE, TIED):
        rows = frame.filter(pl.col("quantity") == name).sort("cells")
        statements.append(all_agree(name, *(rows[column].to_numpy() for column in ("mean", "exact", "se"))))
    free = frame.filter((pl.col("quantity") == FREE) & (pl.col("cells") == GAP_SIZES[-1]))["exact"][0]
    statements.append(
        compared(
            "independent draws do not converge in probability: at N = 10,000 the chance of a gap is "
            "{:.4f}, in the limit {:.4f}",
            free,
            limit,
            lambda left, right: abs(left - right) < 1e-3,
        )
    )
    coupled = frame.filter((pl.col("quantity") == TIED) & (pl.col("cells") >= 50))
    words = f"coupled by their quantiles they do: from N = 50 on it is {coupled['exact'].max():g}"
    statements.append(Statement(words, coupled["exact"].max() == 0 and coupled["mean"].max() == 0))
    if mode == "published":
        statements.append(
            compared(
                "in print the chance is {:.3f} and tends to {:g} as the rate grows, where the truth is "
                "0.3986 and 0",
                PRINTED_GAP,
                published_independent_gap_limit(),
                lambda value, _: abs(value - limit) > 0.1,
            )
        )
    return tuple(statements)


FIGURE = Figure(
    number="R1",
    name="convergence-in-law",
    source="sfumato",
    title="Convergence in law with its rate",
    captions={
        "published": "In print the law on N cells tends to its limit for θ = 1/2, without a rate; the "
        "difference of the characteristic functions Φ falls like 1/N. The chance of a gap between "
        "independent draws of the two is 0.40 at every fine grid, and not 0.296 as printed. It does not "
        "fall; coupled by quantiles it is nought.",
        "corrected": "For every θ the distance of the laws, of their characteristic functions Φ above and by "
        "Wasserstein in the middle, is of the order 1/N, slower by a constant where the mean is at an end, "
        "and below the bound. Independent draws from both laws stay apart for ever, "
        "because they are independent; coupled by their quantiles they meet.",
    },
    errata=("E33", "E35"),
    numbers=numbers,
    chart=chart,
    check=check,
)
