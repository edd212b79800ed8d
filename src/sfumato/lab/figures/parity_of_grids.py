"""Figure 21: draws on coarse grids over the budget and the number of cells, where parity shows."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from sfumato.lab.figure import Effort, Figure, Mode, Statement
from sfumato.lab.judging import all_agree
from sfumato.lab.mean_grids import drawn, law, source
from sfumato.lab.measured import line_and_point

BUDGETS = tuple(round(0.01 + 0.05 * step, 2) for step in range(60))
CELLS = range(3, 31)
DRAWS = 2000
# The budgets that are also shown as lines against N: the law is wide, between, and as narrow as it can be.
SHOWN = (0.01, 0.06, 2.96)
# The budgets of the map: most happens below 0.3.
MAPPED = (0.01, 0.06, 0.11, 0.16, 0.21, 0.31, 0.51, 1.01, 1.51, 2.01, 2.51, 2.96)
# By the distance of a draw in half cells: even grids have 1/2, odd ones have two points half a cell away.
PLACES = ("at 1/2", "half a cell away", "farther")
COLUMNS = {
    "cells": pl.Int64,
    "epsilon": pl.Float64,
    "draw": pl.Float64,
    "chance_of_nearest": pl.Float64,
    "difference_of_nearest": pl.Float64,
    "exact": pl.Float64,
    "mean": pl.Float64,
    "se": pl.Float64,
    "draws": pl.Int64,
}


def numbers(mode: Mode, effort: Effort, own: Mapping[str, Any]) -> Any:
    """For each grid and budget one draw, the chance of the points next to 1/2, and E|Y - 1/2|."""
    randomness = source(mode, effort.seed)
    count = effort.draws(DRAWS, least=400)
    rows = []
    for cells in CELLS:
        for epsilon in BUDGETS:
            points = law(mode, cells, epsilon)
            places = np.arange(points.low, points.high + 1)
            chances = np.exp(points.logpmf(places))
            away = np.abs(places / cells - 0.5)
            nearest = chances[away <= away.min() + 1e-9]
            exact = float(chances @ away)
            shown = epsilon in SHOWN
            draws = drawn(mode, cells, epsilon, count if shown else 1, randomness)
            spread = math.sqrt(max(float(chances @ away**2) - exact**2, 0.0) / len(draws))
            mean = float(np.abs(draws - 0.5).mean()) if shown else None
            rows.append(
                (
                    cells,
                    epsilon,
                    float(draws[0]),
                    float(nearest.sum()),
                    float(np.ptp(nearest)),
                    exact,
                    mean,
                    spread if shown else None,
                    len(draws),
                )
            )
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def chart(frame: Any, mode: Mode) -> Any:
    """Where draws fall, or the chance of 1/2, as a map; their distance from 1/2 as lines against N."""
    from sfumato.charts import comparison, heatmap, stacked

    cells: list[dict[str, Any]] = []
    for row in frame.filter(pl.col("epsilon").is_in(MAPPED)).iter_rows(named=True):
        place = {"x": row["cells"], "y": row["epsilon"]}
        odd = row["cells"] % 2
        if mode == "corrected":
            cells.append(place | {"value": 0.0 if odd else row["chance_of_nearest"]})
        else:
            halves = round(abs(row["draw"] - 0.5) * 2 * row["cells"])
            cells.append(place | {"name": PLACES[min(halves, 2 if halves > odd else odd)]})
    above = heatmap(cells, along="number of cells N", unit="budget ε", value="chance of 1/2", text="")
    rows = []
    for row in frame.filter(pl.col("mean").is_not_null()).iter_rows(named=True):
        rows += line_and_point({"curve": f"ε = {row['epsilon']:g}", "x": row["cells"]}, row)
    below = comparison(rows, along="number of cells N", unit="mean distance from 1/2", zero=True, height=200)
    above_is = "where one draw falls" if mode == "published" else "the chance of 1/2, by law"
    subtitle = [
        f"1,000 records with mean 1/2; above: {above_is};",
        "below: the mean distance from 1/2, by law (lines) and by draws (points)",
    ]
    return stacked(
        [above, below], title="Draws on coarse grids: even and odd numbers of cells", subtitle=subtitle
    )


def check(frame: Any, mode: Mode) -> tuple[Statement, ...]:
    """Draws are points of the grid; even grids find 1/2, odd ones share it between two points."""
    number, draw = frame["cells"].to_numpy(), frame["draw"].to_numpy()
    off_grid = float(np.abs(draw * number - np.round(draw * number)).max())
    odd, even = frame.filter(pl.col("cells") % 2 == 1), frame.filter(pl.col("cells") % 2 == 0)
    largest = frame["epsilon"].max()
    least = float(even.filter(pl.col("epsilon") == largest)["chance_of_nearest"].min())
    rising = all(
        bool(np.all(np.diff(grid.sort("epsilon")["chance_of_nearest"].to_numpy()) >= -1e-12))
        for (_,), grid in even.group_by("cells")
    )
    unequal = float(odd["difference_of_nearest"].max())
    shared = float(odd.filter(pl.col("epsilon") == largest)["chance_of_nearest"].min())
    margin = float(((odd["draw"] - 0.5).abs() * 2 * odd["cells"]).min())
    last = [grids.filter(pl.col("epsilon") == largest) for grids in (even, odd)]
    on_even, on_odd = (2 * grids["cells"].to_numpy() * grids["exact"].to_numpy() for grids in last)
    # Where fewer than ten draws are expected to be farther, their mean distance is not nearly normal.
    farther = (1 - pl.col("chance_of_nearest")) * pl.col("draws")
    simulated = frame.filter(pl.col("mean").is_not_null() & (farther >= 10))
    return (
        Statement(f"all {len(frame):,} draws are k/N, to {off_grid:.1e} of a cell", off_grid < 1e-9),
        Statement(
            f"on even grids the chance of 1/2 grows with ε and is at least {least:.10f} at ε = {largest:g}",
            rising and least > 1 - 1e-9,
        ),
        Statement(
            f"on odd grids the two points next to 1/2 have equal chances, to {unequal:.1e}, which are "
            f"together at least {shared:.10f} at ε = {largest:g}",
            unequal < 1e-12 and shared > 1 - 1e-9,
        ),
        Statement(f"on odd grids every draw is at least {margin:.6g}/(2N) from 1/2", margin > 1 - 1e-9),
        Statement(
            f"parity shows at ε = {largest:g}: 2N E|Y - 1/2| is at most {on_even.max():.1e} on even grids "
            f"and at least {on_odd.min():.6g} on odd ones",
            bool(on_even.max() < 1e-9 and on_odd.min() > 1 - 1e-9),
        ),
        all_agree(
            "E|Y - 1/2| where ten draws or more are expected to be farther than the nearest points",
            *(simulated[name].to_numpy() for name in ("mean", "exact", "se")),
        ),
    )


FIGURE = Figure(
    number="21",
    name="parity-of-grids",
    source="A24",
    title="Draws over the budget and the number of cells",
    captions={
        "published": "One draw for each budget and each N from 3 to 30, by its distance from 1/2. On even "
        "grids 1/2 is a point, and is drawn nearly always once ε is above 0.3; on odd grids it is none, "
        "and every draw is at least 1/(2N) away. So the picture is striped by parity, not smooth in N.",
        "corrected": "The chance of 1/2 by the law of sfumato, whose last point is 1: none on odd grids. "
        "The stripes stay, because they come from the grid and not from chance. Below, the expected distance "
        "from 1/2 for three budgets as lines, with simulated points.",
    },
    errata=("E31",),
    numbers=numbers,
    chart=chart,
    check=check,
)
