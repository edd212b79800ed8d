"""Figure 2: means with Gaussian noise at a small budget, beside Laplace noise."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from sfumato.lab import noisy_means as means
from sfumato.lab.figure import Effort, Figure, Mode, Statement
from sfumato.lab.judging import as_printed, compared
from sfumato.lab.noisy_means import Panel

EPSILON = 0.1
BUDGETS = (0.1, 0.2, 0.4, 0.8)
LAPLACE = Panel(name="Laplace noise, 0.1-DP", kind="laplace", epsilon=EPSILON)
GAUSSIAN: dict[Mode, Panel] = {
    "published": Panel(name="Gaussian noise, c = 5", kind="gaussian", epsilon=EPSILON),
    "corrected": Panel(
        name="Gaussian noise, exact calibration, (0.1, 1e-5)-DP", kind="analytic gaussian", epsilon=EPSILON
    ),
}


def numbers(mode: Mode, effort: Effort, own: Mapping[str, Any]) -> Any:
    """Bins, moments and risks for both noises, and the ratio of their spreads at several budgets."""
    return means.numbers((GAUSSIAN[mode], LAPLACE), mode, effort, ratios=BUDGETS)


def chart(frame: Any, mode: Mode) -> Any:
    """Two histograms on one axis."""
    title = f"A private mean with Gaussian noise, ε = {EPSILON:g}, beside Laplace noise"
    return means.chart(frame, mode, (GAUSSIAN[mode], LAPLACE), title=title, reach=140)


def check(frame: Any, mode: Mode) -> tuple[Statement, ...]:
    """The spreads and peaks in print, and the ratio of the noises."""
    gaussian = GAUSSIAN[mode]
    in_print = {"noise": "50", "spread": "50.8", "top": "8"} if mode == "published" else {}
    ratios = frame.filter(pl.col("quantity") == means.RATIO)["exact"].to_list()
    wide, narrow = (means.value(frame, panel.name, means.SPREAD) for panel in (gaussian, LAPLACE))
    statements = [
        *means.printed(frame, gaussian, center="500", **in_print),
        *means.printed(frame, LAPLACE, center="500", spread="16.8", rough_top="24"),
        compared(
            "with Laplace noise the highest bin has {:.3g} answers, more than the {:.3g} of a normal law: "
            "Laplace noise is pointed",
            means.value(frame, LAPLACE.name, means.TOP),
            means.value(frame, LAPLACE.name, means.ROUGH_TOP),
            lambda left, right: left > 1.1 * right,
        ),
        *means.simulated(frame, gaussian),
        *means.simulated(frame, LAPLACE),
        compared(
            "answers with Gaussian noise have the standard deviation {:.4g}, those with Laplace noise {:.4g}",
            wide,
            narrow,
            lambda left, right: left > right,
        ),
    ]
    if mode == "published":
        statements += [
            as_printed(f"the ratio of the noises at ε = {epsilon:g}", ratio, "3.54")
            for epsilon, ratio in zip(BUDGETS, ratios, strict=True)
        ]
    else:
        statements.append(
            compared(
                "with the exact calibration the ratio of the noises is at most {:.4g}, not {:.4g}",
                max(ratios),
                means.CONSTANT / 2**0.5,
                lambda left, right: 1 < left < right,
            )
        )
    return tuple(statements)


FIGURE = Figure(
    number="2",
    name="gaussian-means-small-budget",
    source="A24",
    title="A mean with Gaussian noise at a small budget",
    captions={
        "published": "At ε = 0.1 Gaussian noise with c = 5 hides the data: its standard deviation is 50, "
        "that of the mean of uniform data 9. Laplace noise at the same ε is narrower by c/√2 = 3.54, at "
        "every ε. The two promise different things: Gaussian noise is (ε, δ)-DP with δ = 1e-5, not ε-DP as "
        "the text has it.",
        "corrected": "The same with the smallest Gaussian noise that is (0.1, 1e-5)-DP, drawn by "
        "sfumato. It is narrower than with c = 5, but still wider than Laplace noise, which is 0.1-DP "
        "without δ.",
    },
    errata=("E20", "E30"),
    numbers=numbers,
    chart=chart,
    check=check,
)
