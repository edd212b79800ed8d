"""One draw of the exponential mean for each number of cells: what settles down, and what does not."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from sfumato.accuracy import MeanLimit
from sfumato.lab.figure import Effort, Figure, Mode, Statement
from sfumato.lab.judging import agrees, all_agree, as_printed
from sfumato.lab.mean_grids import deviation, drawn, kurtosis, law, quantile, rate, source
from sfumato.lab.measured import line_and_point

DRAWS, MANY = 200, 4000
# The two rows of grids of the script: even from 30,000 on, odd from 10,000,001 on.
EVEN, ODD = "even N", "odd N"
ODD_START = 10_000_000
PUBLISHED = {EVEN: range(30_000, 30_400, 2), ODD: range(ODD_START + 1, ODD_START + 401, 2)}
ALL, COUPLED = "independent draws", "one random number for all N"
SHARE = 0.9
SIZES = (1000, 10_000, 100_000, 1_000_000, 10_000_000)
COLUMNS = {
    "curve": pl.String,
    "quantity": pl.String,
    "epsilon": pl.Float64,
    "cells": pl.Int64,
    "exact": pl.Float64,
    "mean": pl.Float64,
    "se": pl.Float64,
}
DRAW, SPREAD, RADIUS, OUTSIDE, BEYOND = (
    "draw",
    "standard deviation of a draw",
    "radius that holds 95 %",
    "share of draws outside",
    "chance of a draw outside",
)


def grids(mode: Mode) -> dict[str, Sequence[int]]:
    """The numbers of cells with one draw each, by curve."""
    if mode == "published":
        return dict(PUBLISHED)
    return {ALL: [round(10**power) for power in np.linspace(4, 7, DRAWS)]}


def numbers(mode: Mode, effort: Effort, epsilon: float, others: Sequence[float] = ()) -> Any:
    """The draws, their spread at several N by law and by many draws, and how many are outside of 95 %."""
    randomness = source(mode, effort.seed)
    rows: list[tuple[Any, ...]] = []
    limit = MeanLimit(0.5, rate(epsilon))
    radius = float(limit.quantile(0.975)) - 0.5
    rows.append(("limit", RADIUS, epsilon, None, radius, None, None))
    rows.append(("limit", SPREAD, epsilon, None, math.sqrt(limit.variance), None, None))
    for curve, sizes in grids(mode).items():
        draws = [float(drawn(mode, cells, epsilon, 1, randomness)[0]) for cells in sizes]
        rows += [(curve, DRAW, epsilon, cells, None, y, None) for cells, y in zip(sizes, draws, strict=True)]
        share = float(np.mean(np.abs(np.array(draws) - 0.5) > radius))
        error = math.sqrt(0.05 * 0.95 / len(draws))
        rows.append((curve, OUTSIDE, epsilon, None, 0.05, share, error))
        if mode == "corrected":
            coupled = [quantile(law(mode, cells, epsilon), SHARE) / cells for cells in sizes]
            rows += [(COUPLED, DRAW, epsilon, n, None, y, None) for n, y in zip(sizes, coupled, strict=True)]
            rows.append((COUPLED, DRAW, epsilon, None, float(limit.quantile(SHARE)), None, None))
    finest = law(mode, SIZES[-1], epsilon)
    steps = math.floor(radius * SIZES[-1])
    inside = finest.cdf(SIZES[-1] // 2 + steps) - finest.cdf(SIZES[-1] // 2 - steps - 1)
    rows.append(("law", BEYOND, epsilon, SIZES[-1], 1 - float(inside), None, None))
    count = effort.draws(MANY, least=400)
    for level in (epsilon, *others):
        for cells in SIZES:
            away = drawn(mode, cells, level, count, randomness) - 0.5
            spread = deviation(law(mode, cells, level), cells)
            error = spread / 2 * math.sqrt((kurtosis(cells, rate(level)) - 1) / count)
            seen = math.sqrt(float((away**2).mean()))
            rows.append(("many draws", SPREAD, level, cells, spread, seen, error))
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def chart(frame: Any, mode: Mode, epsilon: float) -> Any:
    """The draws against N with the band of 95 %, and below it their spread."""
    from sfumato.charts import comparison, stacked

    mine = frame.filter(pl.col("epsilon") == epsilon)
    radius = exact(frame, RADIUS)
    draws = mine.filter((pl.col("quantity") == DRAW) & pl.col("cells").is_not_null())
    marks = [
        {"y": 0.5 - radius, "text": "95 % between the lines"},
        {"y": 0.5 + radius, "text": ""},
    ]
    pictures = []
    if mode == "published":
        for name, start, words in ((EVEN, 0, "even N"), (ODD, ODD_START, f"odd N - {ODD_START:,}")):
            rows = _draws(draws.filter(pl.col("curve") == name), "draws", start)
            along = f"number of cells, {words}"
            pictures.append(comparison(rows, along=along, unit="draw", marks=marks, height=150))
    else:
        rows = _draws(draws.filter(pl.col("curve") == ALL), "independent")
        coupled = draws.filter(pl.col("curve") == COUPLED)
        rows += _line(coupled, f"coupled, u = {SHARE:g}", "second")
        pictures.append(
            comparison(rows, along="number of cells N", unit="draw", marks=marks, log_x=True, height=230)
        )
    spread = mine.filter((pl.col("quantity") == SPREAD) & (pl.col("curve") == "many draws"))
    rows = []
    for row in spread.iter_rows(named=True):
        rows += line_and_point({"curve": "of a draw", "x": row["cells"]}, row)
    pictures.append(
        comparison(
            rows, along="number of cells N", unit="standard deviation", log_x=True, zero=True, height=130
        )
    )
    title = f"Draws of the exponential mean on finer and finer grids, ε = {epsilon:g}"
    subtitle = [
        "1,000 records with mean 1/2; above: one draw for each N, and 1/2 as a line;",
        "below: the standard deviation of many draws at one N, by law (line) and by draws (points)",
    ]
    return stacked(pictures, title=title, subtitle=subtitle)


def _line(frame: Any, curve: str, kind: str, start: int = 0) -> list[dict[str, Any]]:
    return [
        {"curve": curve, "kind": kind, "x": row["cells"] - start, "y": row["mean"]}
        for row in frame.iter_rows(named=True)
    ]


def _draws(frame: Any, curve: str, start: int = 0) -> list[dict[str, Any]]:
    """The draws as points, and their expectation as the line of the same curve."""
    points = _line(frame, curve, "simulated", start)
    return points + [point | {"kind": "exact", "y": 0.5} for point in (points[0], points[-1])]


def exact(frame: Any, quantity: str) -> float:
    """The number of the limit law."""
    return float(frame.filter((pl.col("curve") == "limit") & (pl.col("quantity") == quantity))["exact"][0])


def check(frame: Any, mode: Mode, epsilon: float, *, spread: str, radius: str) -> tuple[Statement, ...]:
    """The spread and the radius in print; draws that keep them for every N; the coupled ones that settle."""
    mine = frame.filter(pl.col("epsilon") == epsilon)
    many = mine.filter((pl.col("quantity") == SPREAD) & (pl.col("curve") == "many draws"))
    finest = many.filter(pl.col("cells") == SIZES[-1])
    statements = [
        as_printed("the standard deviation of the limit", exact(frame, SPREAD), spread),
        as_printed("the radius that holds 95 % of the limit", exact(frame, RADIUS), radius),
        as_printed(f"the same of a draw at N = {SIZES[-1]:,}", float(finest["exact"][0]), spread),
        all_agree(
            "the spread of many draws at each N",
            *(many[name].to_numpy() for name in ("mean", "exact", "se")),
        ),
    ]
    outside = float(mine.filter(pl.col("quantity") == BEYOND)["exact"][0])
    words = f"at N = {SIZES[-1]:,} the chance outside of 1/2 ± {radius} is {outside:.6f}, at most 5 %"
    # The ends of the interval are rounded to points of the grid.
    statements.append(Statement(words, 0.049 < outside <= 0.05 + 1e-4))
    for row in mine.filter(pl.col("quantity") == OUTSIDE).iter_rows(named=True):
        words = f"{row['curve']}: the share outside of 1/2 ± {radius}"
        statements.append(agrees(words, row["mean"], row["exact"], row["se"]))
    for curve in grids(mode):
        one = mine.filter((pl.col("quantity") == DRAW) & (pl.col("curve") == curve)).sort("cells")
        away = (one["mean"].to_numpy() - 0.5)[len(one) // 2 :]
        square, limit = float((away**2).mean()), exact(frame, SPREAD) ** 2
        # The fourth moment of a Laplace law is 24 b^4, six times the squared variance.
        error = limit * math.sqrt(5 / len(away))
        words = f"{curve}: the mean squared distance from 1/2 in the finer half, over that of the limit,"
        statements.append(agrees(words, square / limit, 1.0, error / limit))
        statements.append(
            Statement(
                f"{curve}: the draws do not settle: the last ten still differ by {np.ptp(away[-10:]):.2g}",
                bool(np.ptp(away[-10:]) > 0.5 * math.sqrt(limit)),
            )
        )
    if mode == "corrected":
        coupled = mine.filter(pl.col("curve") == COUPLED)
        aim = float(coupled.filter(pl.col("cells").is_null())["exact"][0])
        path = coupled.filter(pl.col("cells").is_not_null())
        gaps = np.abs(path["mean"].to_numpy() - aim) * path["cells"].to_numpy()
        words = f"coupled by one random number, Y_N is within {gaps.max():.2f}/N of {aim:.6f} for every N"
        statements.append(Statement(words, bool(gaps.max() < 2)))
    return tuple(statements)


def figure(
    *,
    epsilon: float,
    spread: str,
    radius: str,
    others: Sequence[float] = (),
    more: Callable[[Any], tuple[Statement, ...]] = lambda frame: (),
    **facts: Any,
) -> Figure:
    """A figure of such draws at one budget, with the spread and the radius in print.

    Args:
        epsilon: the budget.
        spread, radius: as printed.
        others: budgets whose spread is in the table too.
        more: further statements about the table.
        facts: the other facts of the figure.
    """

    def checked(frame: Any, mode: Mode) -> tuple[Statement, ...]:
        return (*check(frame, mode, epsilon, spread=spread, radius=radius), *more(frame))

    return Figure(
        source="A24",
        errata=("E31", "E35"),
        numbers=lambda mode, effort, own: numbers(mode, effort, epsilon, others),
        chart=lambda frame, mode: chart(frame, mode, epsilon),
        check=checked,
        **facts,
    )
