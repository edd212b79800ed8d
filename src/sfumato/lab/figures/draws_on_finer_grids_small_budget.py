"""Figure 20: one draw of the exponential mean for each number of cells, at ε = 0.1."""

from typing import Any

import polars as pl

from sfumato.lab import grid_draws
from sfumato.lab.figure import Statement
from sfumato.lab.judging import equals

EPSILON = 0.1
# That of figure 19, which the spread is compared with.
LARGE = 3.0


def wider(frame: Any) -> tuple[Statement, ...]:
    """How many times as wide the cloud is as that of figure 19."""
    at_finest = frame.filter(
        (pl.col("quantity") == grid_draws.SPREAD) & (pl.col("cells") == grid_draws.SIZES[-1])
    )
    spreads = dict(zip(at_finest["epsilon"], at_finest["exact"], strict=True))
    ratio = spreads[EPSILON] / spreads[LARGE]
    return (equals("the spread over that of figure 19", ratio, 30, relative=1e-4),)


FIGURE = grid_draws.figure(
    number="20",
    name="draws-on-finer-grids-small-budget",
    title="Draws on finer and finer grids with a small budget",
    captions={
        "published": "As figure 18 with a small budget: the cloud is thirty times as wide as that of "
        "figure 19, because the spread is √2/λ, and does not shrink with N either.",
        "corrected": "Drawn by sfumato. The spread is that of the limit for every N; coupled by one "
        "random number, the draws settle.",
    },
    epsilon=EPSILON,
    spread="0.0283",
    radius="0.0599",
    others=(LARGE,),
    more=wider,
)
