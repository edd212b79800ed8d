"""Figure 9: the risk of a private first quartile against the range of the values."""

import math
from collections.abc import Mapping
from typing import Any

from sfumato.lab import first_quartiles as risks
from sfumato.lab.figure import Effort, Figure, Mode, Statement
from sfumato.lab.first_quartiles import INTEGERS, LAPLACE, QEXP
from sfumato.lab.judging import STANDARD_ERRORS
from sfumato.lab.measured import LEGEND

ROWS, EPSILON, SETS, REPEATS = 1000, 0.2, 300, 200
WIDTHS = range(2, 201, 2)
SMALL = 10
# In print, over 60 data sets: risk over squared range, and the risk on whole numbers below 200.
SHARE, SHARE_DIGIT, WHOLE, WHOLE_DIGIT = 5.6e-5, 1e-6, 2.6, 0.1


def numbers(mode: Mode, effort: Effort, own: Mapping[str, Any]) -> Any:
    """Risks for ranges from 2 to 200, on uniform values and on the whole numbers of the script."""
    import polars as pl

    fixed: dict[str, Any] = {"sizes": [ROWS], "epsilons": [EPSILON], "repeats": REPEATS}
    sets = effort.draws(SETS)
    return pl.concat(
        [
            risks.risks(mode, effort, own, width=width, salt=width, sets=sets, whole=whole, **fixed)
            for whole in (False, True)
            for width in WIDTHS
        ]
    )


def chart(frame: Any, mode: Mode) -> Any:
    """Two parallel lines on logarithmic axes, and the whole numbers, which do not follow the lower one."""
    import polars as pl

    from sfumato.charts import comparison

    # A risk that is nearly nothing would stretch the axis over all the rest.
    shown = frame.filter((pl.col("curve") != INTEGERS) | ((pl.col("exact") > 1e-4) & (pl.col("mean") > 0)))
    return comparison(
        risks.chart_rows(shown, "width"),
        title=f"A private first quartile by the range, ε = {EPSILON:g}",
        subtitle=[
            f"{ROWS:,} records",
            LEGEND,
        ],
        along="range of the values Λ",
        unit="mean squared error",
        log_x=True,
        log_y=True,
        marks=[{"x": WIDTHS[-1], "y": 90, "text": "in print: “order 90”"}],
    )


def check(frame: Any, mode: Mode) -> tuple[Statement, ...]:
    """Laplace noise is 50 Λ² exactly; QExp is a tiny part of Λ², with a floor on whole numbers."""
    mine, whole = risks.curve(frame, QEXP), risks.curve(frame, INTEGERS)
    noisy = risks.at(frame, LAPLACE, width=200)["exact"]
    shares = mine["exact"] / mine["width"] ** 2
    error = float(shares.std()) / math.sqrt(len(shares))
    worst = mine["exact"].max()
    statements = [
        risks.laplace_formula(frame),
        Statement(
            f"the risk of Laplace noise at Λ = 200 is {noisy:.10g}; the closed form is 50 Λ² = 2,000,000",
            abs(noisy - 2e6) < 1e-3,
        ),
        *risks.simulated(frame),
        Statement(
            f"“order 90” is not there: the risk of QExp is {worst:.3g} at the most, on whole numbers "
            f"{whole['exact'].max():.3g}",
            max(worst, whole["exact"].max()) < 90 / math.sqrt(10),
        ),
    ]
    found, slack = risks.slope(frame, QEXP, "width")
    statements.append(
        Statement(
            f"the slope of QExp on logarithmic axes is {found:.4f}, standard error {slack:.4f}; 2 by the law",
            abs(found - 2) <= STANDARD_ERRORS * slack,
        )
    )
    if mode == "corrected":
        row = risks.at(frame, INTEGERS, width=SMALL)
        statements.append(
            Statement(
                f"sfumato releases whole numbers where the data are: at Λ = {SMALL} its risk is "
                f"{row['exact']:.2g}, under the floor of 1/3 of a draw from an interval",
                row["exact"] < 1 / 3,
            )
        )
        return tuple(statements)
    spread = float(mine["exact_se"][-1]) / WIDTHS[-1] ** 2 * math.sqrt(mine["sets"][-1])
    near = STANDARD_ERRORS * math.hypot(error, spread / math.sqrt(60)) + SHARE_DIGIT / 2
    statements += [
        Statement(
            f"the risk of QExp is {shares.mean():.3g} Λ² (standard error {error:.1g}); the reference is "
            f"{SHARE:.2g} Λ² over 60 data sets",
            abs(shares.mean() - SHARE) <= near,
        ),
        risks.reference(
            "the risk of QExp at Λ = 200", risks.at(frame, QEXP, width=200), 2.2, digit=0.1, others=60
        ),
        risks.reference(
            "the risk on whole numbers at Λ = 200",
            risks.at(frame, INTEGERS, width=200),
            WHOLE,
            digit=WHOLE_DIGIT,
            others=60,
        ),
        *(_floor(risks.at(frame, INTEGERS, width=width)) for width in range(2, SMALL + 1, 2)),
    ]
    return tuple(statements)


def _floor(row: Mapping[str, Any]) -> Statement:
    """That a draw from an interval between whole numbers is off by a third of a square, at the least."""
    width, found = row["width"], row["exact"]
    words = f"on whole numbers with Λ = {width} the risk is {found:.6f}, and the floor 1/3"
    if width % 4:
        return Statement(words, abs(found - 1 / 3) < 1e-4)
    # Then a quarter of the range is a whole number, and with exactly n/4 records below it the sample
    # quartile is a quarter of the way to it: 1/12 + 1/16 about a point inside the interval.
    chance = math.comb(ROWS, ROWS // 4) * 3 ** (ROWS * 3 // 4) / 4**ROWS
    mixed = 1 / 3 - chance * (1 / 3 - 7 / 48)
    error = (1 / 3 - 7 / 48) * math.sqrt(chance * (1 - chance) / row["sets"])
    return Statement(
        f"{words} but for samples with just n/4 records below Λ/4: {mixed:.4f} on average, "
        f"standard error {error:.4f}",
        abs(found - mixed) <= STANDARD_ERRORS * error + 1e-3,
    )


FIGURE = Figure(
    number="9",
    name="quartile-risk-by-range",
    source="A24",
    title="The risk of a first quartile against the range of the values",
    captions={
        "published": "Both risks grow like Λ², Laplace noise as 50 Λ² and QExp as 0.00006 Λ²: about two at "
        "Λ = 200, and not of the order of 90. On the whole numbers of the script QExp has a floor of 1/3, "
        "because it draws from an interval between two of them.",
        "corrected": "The quartile of sfumato at the declared cost. Its risk is nearly four times as large, "
        "and still far below that of Laplace noise. On whole numbers it answers with whole numbers, which "
        "may be just right (at Λ = 2 nearly always, and not shown); the curve has teeth because for Λ "
        "divisible by 4 the quartile of the population lies between two of them.",
    },
    errata=("E24", "E44"),
    numbers=numbers,
    chart=chart,
    check=check,
    compares=True,
)
