"""Figure 5: draws of a private median at a large budget."""

from collections.abc import Mapping
from typing import Any

from sfumato.lab import drawn_medians as medians
from sfumato.lab import uniform_medians as uniform
from sfumato.lab.figure import Effort, Figure, Mode, Statement
from sfumato.lab.figures.medians_at_a_small_budget import SMALL

LARGE = uniform.Budget(epsilon=0.8, reach=3, bins=60)
PRINTED = {"published": 0.50, "corrected": 0.74}
LEAST_RATIO = 8


def numbers(mode: Mode, effort: Effort, own: Mapping[str, Any]) -> Any:
    """500 draws on one data set, their law, and its error over many data sets, also at the small budget."""
    return uniform.numbers(LARGE, mode, effort, beside=[SMALL])


def chart(frame: Any, mode: Mode) -> Any:
    """A narrow peak, in which single cells between records are seen."""
    return uniform.chart(frame, mode, f"A private median, ε = {LARGE.epsilon:g}")


def check(frame: Any, mode: Mode) -> tuple[Statement, ...]:
    """The error in print, far below that at the small budget, and draws that fit their law."""
    wide, narrow = (uniform.average(frame, budget)["exact"] for budget in (SMALL, LARGE))
    return (
        uniform.printed(frame, LARGE, PRINTED[mode], 0.01),
        Statement(
            f"the error at ε = {SMALL.epsilon:g} is {wide / narrow:.1f} times that at ε = {LARGE.epsilon:g}, "
            f"above {LEAST_RATIO}",
            wide / narrow > LEAST_RATIO,
        ),
        *uniform.simulated(frame, mode),
        medians.fits(frame, uniform.THESE),
    )


FIGURE = Figure(
    number="5",
    name="medians-at-a-large-budget",
    source="A24",
    title="A private median at a large budget",
    captions={
        "published": "At ε = 0.8 the draws are within a few records of the sample median: the error is near "
        "0.5, more than eight times below that at ε = 0.05. The density is a staircase, one step for each "
        "cell between two records, and each step is e^ε times lower than the one before.",
        "corrected": "At the declared cost the steps are e^(ε/2) high, and the error is near 0.8. Here as "
        "before the error is a matter of ranks: a few records to each side, whatever their values are.",
    },
    errata=("E24", "E25"),
    numbers=numbers,
    chart=chart,
    check=check,
)
