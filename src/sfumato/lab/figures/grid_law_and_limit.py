"""Figure 23: a histogram of the limit, with the law of a fine grid over it."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from sfumato.accuracy import MeanLimit, truncated_laplace_level
from sfumato.lab.figure import Effort, Figure, Mode, Statement
from sfumato.lab.judging import agrees, all_agree, as_printed, compared, equals
from sfumato.lab.mean_grids import ROWS, drawn, law, rate, source

EPSILON, LEVEL, CELLS = 0.8, 0.4, 10_000
DRAWS, BINS = 1000, 50
LOW, HIGH = 4800, 5200
# So fine a grid of the product is the limit, to five digits.
FINE = 2**24
BIN, GRID, LIMIT, OTHER, GAP, SPREAD, COST = (
    "bin",
    "N times the law on the grid",
    "density of the limit",
    "density with ε' = ε",
    "largest difference on the grid",
    "standard deviation of a draw",
    "privacy level",
)
COLUMNS = {
    "quantity": pl.String,
    "start": pl.Float64,
    "end": pl.Float64,
    "exact": pl.Float64,
    "mean": pl.Float64,
    "se": pl.Float64,
}


def numbers(mode: Mode, effort: Effort, own: Mapping[str, Any]) -> Any:
    """The bins as densities; N times the law of figure 22; two densities; what they differ by."""
    limit, other = MeanLimit(0.5, ROWS * LEVEL), MeanLimit(0.5, ROWS * EPSILON)
    count = effort.draws(DRAWS, least=DRAWS)
    randomness = source(mode, effort.seed)
    if mode == "published":
        draws = randomness.laplace(0.5, 1 / (ROWS * LEVEL), count)
    else:
        draws = drawn(mode, FINE, EPSILON, count, randomness)
    edges = np.linspace(draws.min(), draws.max(), BINS + 1)
    seen, _ = np.histogram(draws, edges)
    chances = np.diff(limit.cdf(edges))
    widths = np.diff(edges)
    rows: list[tuple[Any, ...]] = []
    for a, b, width, s, p in zip(edges, edges[1:], widths, seen, chances, strict=False):
        error = math.sqrt(p * (1 - p) / count)
        rows.append((BIN, a, b, p / width, s / count / width, error / width))
    places = np.arange(LOW, HIGH + 1)
    grid = CELLS * np.exp(law(mode, CELLS, EPSILON).logpmf(places))
    for name, values in (
        (GRID, grid),
        (LIMIT, limit.density(places / CELLS)),
        (OTHER, other.density(places / CELLS)),
    ):
        rows += [(name, k / CELLS, None, float(y), None, None) for k, y in zip(places, values, strict=True)]
    # Over all points of the grid, not only those that are shown.
    everywhere = np.arange(CELLS)
    whole = CELLS * np.exp(law(mode, CELLS, EPSILON).logpmf(everywhere))
    for name, density in ((LIMIT, limit), (OTHER, other)):
        gap = float(np.abs(whole - density.density(everywhere / CELLS)).max())
        rows.append((f"{GAP}, {name}", None, None, gap, None, None))
    centred = draws - 0.5
    spread = math.sqrt(limit.variance)
    # The fourth moment of a Laplace law is six times its squared variance.
    error = spread / 2 * math.sqrt(5 / count)
    rows.append((SPREAD, None, None, spread, math.sqrt(float((centred**2).mean())), error))
    rows.append((COST, None, None, truncated_laplace_level(ROWS, Fraction(str(LEVEL))), None, None))
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def chart(frame: Any, mode: Mode) -> Any:
    """The histogram with the law of the grid over it, and the density of the other rate."""
    from sfumato.charts import histogram

    bins = frame.filter(pl.col("quantity") == BIN)
    rows = [{"start": r["start"], "end": r["end"], "value": r["mean"]} for r in bins.iter_rows(named=True)]
    kinds = {GRID: ("N × P(k/N)", "exact"), LIMIT: ("limit density", "reference")}
    if mode == "published":
        kinds[OTHER] = ("density with ε' = ε", "published")
    curves = []
    for row in frame.filter(pl.col("quantity").is_in(list(kinds))).iter_rows(named=True):
        name, kind = kinds[row["quantity"]]
        curves.append({"curve": name, "kind": kind, "x": row["start"], "y": row["exact"]})
    drawn_from = "a Laplace law" if mode == "published" else f"the exponential mean on {FINE:,} cells"
    return histogram(
        rows,
        curves=curves,
        title="The limit of the exponential mean, and the law on a grid",
        subtitle=[
            f"bars: {DRAWS:,} draws of {drawn_from}",
            f"lines: the law on N = {CELLS:,} cells with ε = {EPSILON:g}, and its limit, ε' = {LEVEL:g}",
        ],
        along="answer",
        unit="density",
    )


def check(frame: Any, mode: Mode) -> tuple[Statement, ...]:
    """The peak, how near the law of the grid is to its limit, and that only half the budget fits."""
    by_name = {row["quantity"]: row for row in frame.iter_rows(named=True)}
    limit = frame.filter(pl.col("quantity") == LIMIT)["exact"].to_numpy()
    near, far = (by_name[f"{GAP}, {name}"]["exact"] for name in (LIMIT, OTHER))
    bins = frame.filter(pl.col("quantity") == BIN)
    # Where a bin expects fewer than five draws, its count is not nearly normal.
    full = bins.filter(pl.col("exact") * (pl.col("end") - pl.col("start")) * DRAWS >= 5)
    falls = {name: _fall(frame.filter(pl.col("quantity") == name)) for name in (GRID, LIMIT, OTHER)}
    spread, cost = by_name[SPREAD], by_name[COST]["exact"]
    return (
        equals("the peak of the density", float(limit.max()), ROWS * LEVEL / 2),
        as_printed("the largest difference of N P(k/N) and the density of the limit", near, "0.0267"),
        Statement(f"this difference, {near:.4f}, is below 0.05", near < 0.05),
        compared(
            "with ε' = ε in place of ε/2 the largest difference is {:.4g}, {:.4g} times as much",
            far,
            far / near,
            lambda gap, times: gap > 100 and times > 1000,
        ),
        Statement(
            f"log densities fall at the rates {falls[GRID]:.6g} on the grid, {falls[LIMIT]:.6g} in the "
            f"limit and {falls[OTHER]:.6g} with ε' = ε: the first two agree, at nε/2 = {rate(EPSILON):g}",
            math.isclose(falls[GRID], rate(EPSILON), rel_tol=1e-6)
            and math.isclose(falls[GRID], falls[LIMIT], rel_tol=1e-6)
            and falls[OTHER] > 1.9 * falls[GRID],
        ),
        agrees("the standard deviation of the draws", spread["mean"], spread["exact"], spread["se"]),
        all_agree("the bins that expect five draws", *(full[c].to_numpy() for c in ("mean", "exact", "se"))),
        as_printed("the exact privacy level of the limit", cost, "0.685"),
        compared(
            "the limit is truncated, so that its level is {:.4f}, above ε' = {:g}",
            cost,
            LEVEL,
            lambda level, claimed: level > claimed,
        ),
    )


def _fall(curve: Any) -> float:
    """How fast the log falls, between the last points of the right side."""
    last = np.log(curve.sort("start")["exact"].to_numpy()[-2:])
    return float(last[0] - last[1]) * CELLS


FIGURE = Figure(
    number="23",
    name="grid-law-and-limit",
    source="A24",
    title="The limit and the law on a grid",
    captions={
        "published": "Draws of a Laplace law with ε' = 0.4, and N times the law of figure 22, ε = 0.8, on "
        "them: one curve. The two rates agree only for ε' = ε/2; with ε' = ε the density would be the "
        "dotted one. The text calls the limit the Laplace mechanism of degree ε'. It is that law truncated "
        "to [0, 1], whose exact level is 0.685, not 0.4.",
        "corrected": "Draws of sfumato on a grid so fine that it is the limit, and N times the law for "
        "N = 10,000. They differ by less than 0.03 where the density is 200. What is charged is ε = 0.8; "
        "the exact level of the limit is 0.685.",
    },
    errata=("E33",),
    numbers=numbers,
    chart=chart,
    check=check,
)
