"""Figure 22: the probabilities of the points of a fine grid near 1/2."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from sfumato.accuracy import central_normaliser, published_even_normaliser
from sfumato.lab.figure import Effort, Figure, Mode, Statement
from sfumato.lab.judging import agrees, all_agree, as_printed, compared, equals
from sfumato.lab.mean_grids import drawn, law, rate, source
from sfumato.lab.measured import point

EPSILON, CELLS = 0.8, 10_000
LOW, HIGH = 4900, 5100
DRAWS = 200_000
POINT, WINDOW = "point", "window"
SIMULATED = ("mean", "exact", "se")
COLUMNS = {
    "quantity": pl.String,
    "x": pl.Float64,
    "exact": pl.Float64,
    "mean": pl.Float64,
    "se": pl.Float64,
    "by_the_printed_line": pl.Float64,
}


def numbers(mode: Mode, effort: Effort, own: Mapping[str, Any]) -> Any:
    """The probability of each point of the window and of the window: exact, drawn, and by a line in print."""
    places = np.arange(LOW, HIGH + 1)
    points = law(mode, CELLS, EPSILON)
    if mode == "published":
        # As in print: the weight over the closed form of the sum.
        weights = np.exp(-rate(EPSILON) * np.abs(places / CELLS - 0.5))
        chances = weights / central_normaliser(rate(EPSILON), CELLS)
    else:
        chances = np.exp(points.logpmf(places))
    wrong = central_normaliser(rate(EPSILON), CELLS) / published_even_normaliser(rate(EPSILON), CELLS)
    count = effort.draws(DRAWS, least=20_000)
    draws = np.rint(drawn(mode, CELLS, EPSILON, count, source(mode, effort.seed)) * CELLS).astype(int)
    seen = np.bincount(draws, minlength=CELLS + 1)[LOW : HIGH + 1] / count
    rows: list[tuple[Any, ...]] = [
        (POINT, k / CELLS, p, s, math.sqrt(p * (1 - p) / count), p * wrong)
        for k, p, s in zip(places.tolist(), chances.tolist(), seen.tolist(), strict=True)
    ]
    inside = float(chances.sum())
    error = math.sqrt(inside * (1 - inside) / count)
    rows.append((WINDOW, None, inside, float(seen.sum()), error, inside * wrong))
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def chart(frame: Any, mode: Mode) -> Any:
    """The peak with simulated points, and its logarithm."""
    from sfumato.charts import comparison, stacked

    rows = []
    for place, row in enumerate(frame.filter(pl.col("quantity") == POINT).iter_rows(named=True)):
        at = {"curve": "P(k/N)", "x": row["x"]}
        rows.append(at | {"kind": "exact", "y": row["exact"]})
        # All 201 points with their bars would be a smear.
        if place % 5 == 0:
            rows.append(at | point(row["mean"], row["se"]))
        if mode == "published":
            wrong = {"curve": "by the printed sum", "kind": "published", "x": row["x"]}
            rows.append(wrong | {"y": row["by_the_printed_line"]})
    above = comparison(rows, along="answer k/N", unit="probability", zero=True, height=210)
    below = comparison(rows, along="answer k/N", unit="probability, log scale", log_y=True, height=170)
    title = f"The law of the exponential mean near 1/2, ε = {EPSILON:g}, N = {CELLS:,}"
    subtitle = ["1,000 records with mean 1/2; points: shares of draws with two standard errors, every fifth"]
    return stacked([above, below], title=title, subtitle=subtitle)


def check(frame: Any, mode: Mode) -> tuple[Statement, ...]:
    """The peak, the mass of the window, its symmetry, and the two slopes of its logarithm."""
    points = frame.filter(pl.col("quantity") == POINT)
    exact = points["exact"].to_numpy()
    middle = len(exact) // 2
    slopes = np.diff(np.log(exact)) * CELLS
    fall = rate(EPSILON)
    window = frame.filter(pl.col("quantity") == WINDOW)
    unequal = float(np.abs(exact / exact[::-1] - 1).max())
    bent = float(np.abs(np.abs(slopes) - fall).max())
    statements = [
        as_printed("the peak", float(exact[middle]), "0.0199973"),
        equals("the peak, against λ/(2N),", float(exact[middle]), fall / (2 * CELLS), relative=2e-4),
        as_printed("the mass of [0.49, 0.51]", float(window["exact"][0]), "0.98205"),
        compared(
            "the mass of [0.49, 0.51] is {:.5f}, in the limit {:.5f}",
            float(window["exact"][0]),
            -math.expm1(-fall / 100),
            lambda ours, limit: abs(limit - 0.98168) < 5e-6 and 0 < ours - limit < 1e-3,
        ),
        Statement(f"the law is symmetric around 1/2, to {unequal:.1e}", unequal < 1e-9),
        Statement(
            f"the logarithm is straight with the slopes {slopes[0]:+.4f} and {slopes[-1]:+.4f}, ±λ, to "
            f"{bent:.1e}",
            bool(bent < 1e-6 * fall and slopes[0] > 0 > slopes[-1]),
        ),
        agrees("the share of draws in [0.49, 0.51]", *(float(window[c][0]) for c in SIMULATED)),
        all_agree("the share of draws at ten neighbouring points", *_tens(points)),
    ]
    if mode == "published":
        statements.append(
            compared(
                "divided by the printed line for even N the peak would be {:.3g}, not {:.3g}",
                float(points["by_the_printed_line"][middle]),
                float(exact[middle]),
                lambda wrong, right: wrong < right / 20,
            )
        )
    return tuple(statements)


def _tens(points: Any) -> tuple[Any, Any, Any]:
    """Simulated share, exact chance and standard error of ten points together; one alone has few draws."""
    draws = (points["exact"] * (1 - points["exact"]) / points["se"] ** 2)[0]
    first = points.sort("x").head(len(points) // 10 * 10)
    seen, chance = (first[name].to_numpy().reshape(-1, 10).sum(axis=1) for name in ("mean", "exact"))
    return seen, chance, np.sqrt(chance * (1 - chance) / draws)


FIGURE = Figure(
    number="22",
    name="grid-law",
    source="A24",
    title="The law on a fine grid near 1/2",
    captions={
        "published": "A pointed peak of height λ/(2N) = 0.02 with straight sides on a logarithmic scale: a "
        "Laplace law cut into points. The window holds 98.2 % of it. A line of the text for the sum of the "
        "weights at even N is wrong; by it the peak would be 25 times lower (dotted).",
        "corrected": "The law that sfumato draws from, with the sum of the weights that is right for "
        "even N, and the shares of its own draws.",
    },
    errata=("E34",),
    numbers=numbers,
    chart=chart,
    check=check,
)
