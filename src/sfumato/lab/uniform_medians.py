"""Private medians of a thousand uniform values: one figure at each of three budgets."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.lab import drawn_medians as medians
from sfumato.lab.drawn_medians import CENTER, COUNT, ROOT
from sfumato.lab.figure import Effort, Mode, Statement
from sfumato.lab.judging import agrees, same_average
from sfumato.lab.published_quantile import Cells, cells, sample_quantile

ROWS, WIDTH, DRAWS, SETS = 1000, 200.0, 500, 2000
BOUNDS = (0.0, WIDTH)
# The averages in print are over so many data sets.
OTHERS = 20
THESE, AVERAGE, MODEL = "these data", "average over data sets", "these data, density at half the rate"


@dataclass(frozen=True, kw_only=True)
class Budget:
    """A budget, and the part of the axis where its draws are: around the median, or all of it."""

    epsilon: float
    reach: float | None
    bins: int

    def window(self, center: float) -> tuple[float, float]:
        """From where to where bins are."""
        middle = round(center)
        return BOUNDS if self.reach is None else (middle - self.reach, middle + self.reach)

    def rate(self, mode: Mode) -> float:
        """The fall in log weight for one rank."""
        return self.epsilon if mode == "published" else self.epsilon / 2


def numbers(budget: Budget, mode: Mode, effort: Effort, beside: Sequence[Budget] = ()) -> Any:
    """Draws on one data set beside their law, and exact errors averaged over many data sets."""
    rng = np.random.default_rng([effort.seed, ROWS])
    values = WIDTH * rng.random(ROWS)
    if mode == "published":
        drawn = medians.by_density(values, budget.epsilon, BOUNDS, DRAWS, rng)
    else:
        drawn = medians.by_query(values, budget.epsilon, BOUNDS, DRAWS, effort.seed)
    window = budget.window(drawn.center)
    rows = WIDTH * rng.random((effort.draws(SETS), ROWS))
    model = cells(values[None], 0.5, budget.rate(mode), BOUNDS)
    center = sample_quantile(values[None], 0.5)
    return medians.table(
        [
            *medians.histogram_rows(drawn, window, budget.bins, THESE),
            *medians.risk_rows(drawn, THESE),
            medians.record(ROOT, MODEL, exact=math.sqrt(float(model.squared(center)[0]))),
            medians.record(
                "root mean squared error about the middle", THESE, exact=math.sqrt(drawn.squared(WIDTH / 2))
            ),
            medians.record(
                "largest log ratio of densities", THESE, exact=_unevenness(drawn, model, budget.rate(mode))
            ),
            *(
                medians.average_row(f"{AVERAGE}, ε = {other.epsilon:g}", rows, other.rate(mode), BOUNDS)
                for other in (budget, *beside)
            ),
        ]
    )


def _unevenness(drawn: medians.Draws, model: Cells, rate: float) -> float:
    """The logarithm of the largest density over the least."""
    least, most = drawn.law.heights.min(), drawn.law.heights.max()
    # By the weights if there is no grid, since widths between records have fewer digits than that.
    return float(np.log(most / least)) if drawn.step and least else rate * float(np.ptp(model.ranks))


def average(frame: Any, budget: Budget) -> dict[str, Any]:
    """The root mean squared error averaged over data sets, at a budget."""
    return medians.one(frame, ROOT, f"{AVERAGE}, ε = {budget.epsilon:g}")


def chart(frame: Any, mode: Mode, title: str) -> Any:
    """The histogram of the draws, with the density of the law and the sample median."""
    from sfumato.charts import histogram

    count, center = medians.one(frame, COUNT, THESE)["mean"], medians.one(frame, CENTER, THESE)["mean"]
    bars, steps = medians.bars_and_steps(frame, THESE, "law of a draw")
    return histogram(
        bars,
        curves=steps,
        title=title,
        subtitle=[f"{count:.0f} draws on one data set of {ROWS:,} uniform values on [0, {WIDTH:g}]"],
        along="private median",
        unit="density, per unit of value",
        marks=[{"x": center, "text": "sample median"}],
    )


def simulated(frame: Any, mode: Mode) -> tuple[Statement, ...]:
    """What holds at every budget: the draws have the error that their law says."""
    row = medians.one(frame, ROOT, THESE)
    found = [agrees("the root mean squared error on these data", row["mean"], row["exact"], row["se"])]
    if mode == "corrected":
        model = medians.one(frame, ROOT, MODEL)["exact"]
        words = f"sfumato's law has {row['exact']:.5g}, and the density at half the rate {model:.5g}"
        found.append(Statement(f"on these data {words}, within 1 %", abs(row["exact"] / model - 1) < 0.01))
    return tuple(found)


def printed(frame: Any, budget: Budget, value: float, digit: float) -> Statement:
    """That the error averaged over data sets is the one in print."""
    row = average(frame, budget)
    what = f"the root mean squared error at ε = {budget.epsilon:g}"
    return same_average(
        what, row["exact"], row["se"], sets=int(row["sets"]), printed=value, digit=digit, others=OTHERS
    )
