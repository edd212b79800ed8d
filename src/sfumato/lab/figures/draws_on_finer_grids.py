"""Figure 18: one draw of the exponential mean for each number of cells, at ε = 0.8."""

from collections.abc import Mapping
from typing import Any

from sfumato.lab import grid_draws
from sfumato.lab.figure import Effort, Figure, Mode, Statement

EPSILON = 0.8


def numbers(mode: Mode, effort: Effort, own: Mapping[str, Any]) -> Any:
    """One draw for each N, and the spread of many at some N."""
    return grid_draws.numbers(mode, effort, EPSILON)


def chart(frame: Any, mode: Mode) -> Any:
    """Draws against N, and their spread."""
    return grid_draws.chart(frame, mode, EPSILON)


def check(frame: Any, mode: Mode) -> tuple[Statement, ...]:
    """The spread and the radius in print, for every N."""
    return grid_draws.check(frame, mode, EPSILON, spread="0.003536", radius="0.00749")


FIGURE = Figure(
    number="18",
    name="draws-on-finer-grids",
    source="A24",
    title="Draws on finer and finer grids",
    captions={
        "published": "One draw for each N, on even and on odd grids. The draws do not come closer to 1/2 "
        "as N grows, and their spread stays √2/λ = 0.0035, λ = nε/2: what converges is the law of a draw, "
        "not the draw. In the text the utility is -|o - 1/2|, which does not look at the data; here it is "
        "the mean of data with mean 1/2.",
        "corrected": "The exponential mean of sfumato, with N from ten thousand to ten million. "
        "Independent draws keep their spread for ever. If all grids use the same random number, u = 0.9, "
        "their draws settle at once: the lack of convergence is a matter of the coupling, not of the law.",
    },
    errata=("E31", "E35"),
    numbers=numbers,
    chart=chart,
    check=check,
)
