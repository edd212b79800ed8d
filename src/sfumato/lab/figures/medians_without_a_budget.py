"""Figure 6: draws of a private median at nearly no budget."""

import math
from collections.abc import Mapping
from typing import Any

from sfumato.lab import drawn_medians as medians
from sfumato.lab import uniform_medians as uniform
from sfumato.lab.figure import Effort, Figure, Mode, Statement
from sfumato.lab.judging import as_printed, equals

# The product refuses budgets below that: they are noise in all but name.
NOTHING: dict[Mode, uniform.Budget] = {
    "published": uniform.Budget(epsilon=math.exp(-32), reach=None, bins=20),
    "corrected": uniform.Budget(epsilon=1e-12, reach=None, bins=20),
}
# How far the logarithm of the density may be from a constant.
FLAT = {"published": 1e-11, "corrected": 1e-9}
LEVEL = 0.01


def numbers(mode: Mode, effort: Effort, own: Mapping[str, Any]) -> Any:
    """500 draws on one data set, and their law."""
    return uniform.numbers(NOTHING[mode], mode, effort)


def chart(frame: Any, mode: Mode) -> Any:
    """No peak at all."""
    return uniform.chart(frame, mode, f"A private median, ε = {NOTHING[mode].epsilon:.2g}")


def check(frame: Any, mode: Mode) -> tuple[Statement, ...]:
    """The law is uniform, the draws pass a test for that, and the error is that of a guess."""
    flat = medians.one(frame, "largest log ratio of densities", uniform.THESE)["exact"]
    middle = medians.one(frame, "root mean squared error about the middle", uniform.THESE)["exact"]
    guess = uniform.WIDTH / math.sqrt(12)
    return (
        Statement(
            f"the log density changes by {flat:.2g} in all, less than {FLAT[mode]:g}: the law is uniform",
            flat < FLAT[mode],
        ),
        medians.fits(frame, uniform.THESE, LEVEL),
        as_printed("the root mean squared error about the middle of the range", middle, "57.7"),
        # The grid has 200,001 points, both ends among them: a little wider than a uniform law on the line.
        equals("the root mean squared error about the middle", middle, guess, relative=1e-5),
        *uniform.simulated(frame, mode),
    )


FIGURE = Figure(
    number="6",
    name="medians-without-a-budget",
    source="A24",
    title="A private median at nearly no budget",
    captions={
        "published": "At ε = e^(-32) the draws are uniform on [0, 200]: they say nothing of the data, and "
        "their error is that of a guess, 57.7 about the middle.",
        "corrected": "sfumato takes budgets from 1e-12 on. At that one the draws are uniform as well, with "
        "the same error: privacy without accuracy.",
    },
    errata=("E24", "E25"),
    numbers=numbers,
    chart=chart,
    check=check,
)
