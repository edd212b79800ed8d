"""Figure 8: the risk of a private first quartile against the number of records."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from sfumato.lab import first_quartiles as risks
from sfumato.lab.figure import Effort, Figure, Mode, Statement
from sfumato.lab.first_quartiles import INTEGERS, LAPLACE, QEXP
from sfumato.lab.judging import STANDARD_ERRORS
from sfumato.lab.measured import LEGEND

WIDTH, EPSILON, SETS, REPEATS = 200, 0.2, 600, 200
SIZES = range(10, 1001, 10)
# Recorded averages over 150 other data sets, and their last digits.
PRINTED = {10: (4131, 1), 50: (682, 1), 100: (207, 1), 500: (9.8, 0.1), 1000: (2.2, 0.1)}
# The order of a hundred: nearer to it than to ten and to a thousand, by their ratio.
HUNDRED = 10**1.5, 10**2.5


def numbers(mode: Mode, effort: Effort, own: Mapping[str, Any]) -> Any:
    """Risks for n = 10 to 1,000 on uniform values, and of QExp on the whole numbers of the script."""
    import polars as pl

    fixed: dict[str, Any] = {"width": WIDTH, "sizes": SIZES, "epsilons": [EPSILON], "repeats": REPEATS}
    sets = effort.draws(SETS)
    return pl.concat(
        [risks.risks(mode, effort, own, sets=sets, whole=whole, **fixed) for whole in (False, True)]
    )


def chart(frame: Any, mode: Mode) -> Any:
    """Two straight lines on logarithmic axes: a level one far above a falling one."""
    import polars as pl

    from sfumato.charts import comparison

    rate = "exp(-ε|i - pn|), cost 2ε" if mode == "published" else "exp(-ε|i - pn|/2), cost ε"
    return comparison(
        # On whole numbers the line would cover this one.
        risks.chart_rows(frame.filter(pl.col("curve") != INTEGERS), "n"),
        title=f"A private first quartile by the number of records, ε = {EPSILON:g}",
        subtitle=[
            f"uniform on [0, {WIDTH}]; weights {rate}",
            LEGEND,
        ],
        along="number of records n",
        unit="mean squared error",
        log_x=True,
        log_y=True,
        marks=[{"y": 100, "text": "in print: “order 10²”"}],
    )


def check(frame: Any, mode: Mode) -> tuple[Statement, ...]:
    """Laplace noise does not fall with n; QExp falls like n^-2; "order 100" is right near n = 100 only."""
    mine, noisy = risks.curve(frame, QEXP), risks.curve(frame, LAPLACE)
    statements = [risks.laplace_formula(frame), *risks.simulated(frame)]
    low, high = noisy["exact"].min(), noisy["exact"].max()
    statements.append(
        Statement(
            f"the risk of Laplace noise is from {low:.4g} to {high:.4g} for all n; the closed form is 2e+06",
            abs(low - 2e6) < 1e-3 and abs(high - 2e6) < 1e-3,
        )
    )
    if mode == "published":
        statements += [
            risks.reference(
                f"the risk of QExp at n = {n:,}", risks.at(frame, QEXP, n=n), value, digit=digit, others=150
            )
            for n, (value, digit) in PRINTED.items()
        ]
    coarse = [risks.at(frame, QEXP, n=n)["exact"] for n in PRINTED]
    told = ", ".join(f"{value:.3g}" for value in coarse)
    statements.append(
        Statement(
            f"the risk of QExp falls all the way: {told} at n = {', '.join(map(str, PRINTED))}",
            all(left > right for left, right in pairwise(coarse)),
        )
    )
    found, error = risks.slope(frame, QEXP, "n", 500)
    statements.append(
        Statement(
            f"from n = 500 on the slope of QExp on logarithmic axes is {found:.2f}, standard error "
            f"{error:.2f}; the limit is -2",
            abs(found + 2) <= 0.05 + STANDARD_ERRORS * error,
        )
    )
    near = mine.filter(mine["exact"].is_between(*HUNDRED))["n"]
    first, last = (near.min(), near.max()) if len(near) else (0, 0)
    expected = (50 <= first <= 100 <= last <= 400) if mode == "published" else (100 <= first <= last <= 700)
    statements.append(
        Statement(
            f"“order 10²” holds from n = {first} to {last} only: the risk is {coarse[0]:.0f} at n = 10 and "
            f"{coarse[-1]:.2g} at n = 1,000",
            expected and coarse[0] > 10 * HUNDRED[1] and coarse[-1] < HUNDRED[0],
        )
    )
    return tuple(statements)


FIGURE = Figure(
    number="8",
    name="quartile-risk-by-size",
    source="A24",
    title="The risk of a first quartile against the number of records",
    captions={
        "published": "The risk of Laplace noise for the whole range is the same at every n, two million. "
        "That of QExp falls from four thousand to two, in the end like 1/n². The remark that it is of the "
        "order of 100 is right near n = 100 only. The legend says Gaussian; the script has QExp, on whole "
        "numbers, with weights that cost 2ε.",
        "corrected": "The quartile of sfumato at the declared cost, ε = 0.2 if records are replaced. At half "
        "the rate its risk is nearly four times as large for large n, and the picture is the same: Laplace "
        "noise stays at two million, and QExp falls like 1/n².",
    },
    errata=("E18", "E24", "E44"),
    numbers=numbers,
    chart=chart,
    check=check,
    compares=True,
)
