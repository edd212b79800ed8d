"""Figure 19: one draw of the exponential mean for each number of cells, at ε = 3.0."""

from collections.abc import Mapping
from typing import Any

from sfumato.lab import grid_draws
from sfumato.lab.figure import Effort, Figure, Mode, Statement

EPSILON = 3.0


def numbers(mode: Mode, effort: Effort, own: Mapping[str, Any]) -> Any:
    """One draw for each N, and the spread of many at some N."""
    return grid_draws.numbers(mode, effort, EPSILON)


def chart(frame: Any, mode: Mode) -> Any:
    """Draws against N, and their spread."""
    return grid_draws.chart(frame, mode, EPSILON)


def check(frame: Any, mode: Mode) -> tuple[Statement, ...]:
    """The spread and the radius in print, for every N."""
    return grid_draws.check(frame, mode, EPSILON, spread="0.000943", radius="0.00200")


FIGURE = Figure(
    number="19",
    name="draws-on-finer-grids-large-budget",
    source="A24",
    title="Draws on finer and finer grids with a large budget",
    captions={
        "published": "As figure 18 with a larger budget: the cloud is narrower, 95 % within 0.0020 of 1/2, "
        "and as little inclined to shrink with N.",
        "corrected": "Drawn by sfumato. The spread is that of the limit for every N; coupled by one "
        "random number, the draws settle.",
    },
    errata=("E31", "E35"),
    numbers=numbers,
    chart=chart,
    check=check,
)
