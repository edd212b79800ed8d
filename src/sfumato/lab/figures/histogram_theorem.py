"""Figure C4: how often the median by the histogram method is near, against what theorem 2.2.3.1 says."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.accuracy import histogram_quantile_failure, published_histogram_failure
from sfumato.grid import Floats
from sfumato.lab import datasets
from sfumato.lab.decile_bounds import PARTS, scan_radius
from sfumato.lab.decile_errors import near_median
from sfumato.lab.figure import Effort, Figure, Mode, Statement
from sfumato.lab.judging import STANDARD_ERRORS, all_agree
from sfumato.lab.measured import MEASURED, charted, share

ROWS, DISTANCE, FAILURE = 10_000, 0.1, Fraction(1, 20)
# For so many steps a budget at which the theorem claims the same: α = 8 (log K + log(2/β)) / ε is 400.
BUDGETS = {
    100: Fraction(166, 1000),
    1_000: Fraction(212, 1000),
    10_000: Fraction(258, 1000),
    100_000: Fraction(304, 1000),
    1_000_000: Fraction(35, 100),
}
# What 400 draws gave in print, with the claim.
IN_PRINT, DRAWS_IN_PRINT = {100_000: 0.845, 1_000_000: 0.683}, 400
CLAIM = 0.949
SETS, FEWEST_SETS, DRAWS, FEWEST_DRAWS = 200, 24, 400, 24
CLAIMED, PROVED, FOUND = "claimed", "proved", "found"
SAME, NINE = "the budget of the theorem", "nine times that budget"


def numbers(mode: Mode, effort: Effort, own: Mapping[str, Any]) -> Any:
    """The chance to be within 0.1, as claimed or proved, exactly on given data, and by draws."""
    import polars as pl

    sets = effort.draws(SETS, least=FEWEST_SETS)
    data = np.sort(datasets.uniform().draw(sets, ROWS, effort.seed), axis=1)
    rng = np.random.default_rng(effort.seed)
    draws = effort.draws(DRAWS, least=FEWEST_DRAWS)
    rows: list[dict[str, Any]] = []
    for panel, times in ((SAME, 1), (NINE, PARTS))[: 1 if mode == "published" else 2]:
        for steps, budget in BUDGETS.items():
            epsilon = times * budget
            place = {"panel": panel, "steps": steps, "epsilon": float(epsilon)}
            rows.append({**place, **_told(mode, steps, epsilon)})
            exact = [near_median(each, steps, epsilon, DISTANCE) for each in data]
            near = [_is_near(data[i % sets], steps, float(epsilon), rng) for i in range(draws)]
            rows.append(
                {
                    **place,
                    "curve": FOUND,
                    **share(float(np.mean(exact)), near),
                    "exact_se": float(np.std(exact, ddof=1)) / math.sqrt(sets),
                    "sets": sets,
                }
            )
    return pl.DataFrame(rows, infer_schema_length=None)


def _told(mode: Mode, steps: int, epsilon: Fraction) -> dict[str, Any]:
    terms: dict[str, Any] = {"rows": ROWS, "steps": steps, "distance": DISTANCE, "failure": FAILURE}
    if mode == "published":
        fails = published_histogram_failure(epsilon=epsilon, **terms)
        return {"curve": CLAIMED, "kind": "published", "exact": 1 - fails}
    radius = scan_radius(ROWS, epsilon, cells=steps, beta=FAILURE)
    fails = histogram_quantile_failure(order=Fraction(1, 2), radius=radius, **terms)
    return {"curve": PROVED, "kind": "bound", "exact": 1 - fails}


def _is_near(data: Floats, steps: int, epsilon: float, rng: np.random.Generator) -> bool:
    """Whether one draw of the published scan, step by step, ends within the distance of 1/2."""
    unit = PARTS / epsilon
    bar = len(data) / 2 + rng.laplace(scale=2 * unit)
    first, last = round((0.5 - DISTANCE) * steps), round((0.5 + DISTANCE) * steps)
    # The answer for a crossing at edge j + 1 is the edge j.
    counts = np.searchsorted(data, np.arange(1, last + 2) / steps)
    crossed = counts + rng.laplace(scale=4 * unit, size=last + 1) > bar
    return bool(not crossed[:first].any() and crossed[first:].any())


def chart(frame: Any, mode: Mode) -> Any:
    """A claim that does not fall, above a chance that does."""
    from sfumato.charts import comparison

    several = frame["panel"].n_unique() > 1
    rows = charted(frame.iter_rows(named=True), "steps")
    # A bar of a probability ends at 1.
    rows = [{**row, "high": min(row["high"], 1.0)} if "high" in row else row for row in rows]
    rows = rows if several else [{**row, "panel": ""} for row in rows]
    return comparison(
        rows,
        title="Is the median of 10,000 uniform values within 0.1?",
        subtitle=[
            "one of nine deciles; ε grows with log K, from 0.17 to 0.35",
            "line with points: exact and simulated, with two standard errors",
        ],
        along="number of steps K",
        unit="probability to be within 0.1",
        log_x=True,
        zero=True,
        columns=2 if several else None,
    )


def _at(frame: Any, curve: str, steps: int, panel: str = SAME) -> dict[str, Any]:
    kept = (frame["curve"] == curve) & (frame["steps"] == steps) & (frame["panel"] == panel)
    return dict(frame.filter(kept).row(0, named=True))


def check(frame: Any, mode: Mode) -> tuple[Statement, ...]:
    """The claim is not kept for many steps; what is proved is."""
    drawn = frame.filter(frame["kind"] == MEASURED)
    statements = [all_agree("chances to be near", drawn["mean"], drawn["exact"], drawn["se"])]
    if mode == "corrected":
        for panel in (SAME, NINE):
            gaps = {
                s: _at(frame, FOUND, s, panel)["exact"] - _at(frame, PROVED, s, panel)["exact"]
                for s in BUDGETS
            }
            promised = [_at(frame, PROVED, steps, panel)["exact"] for steps in BUDGETS]
            statements.append(
                Statement(
                    f"at {panel} what is proved is {min(promised):.3f} to {max(promised):.3f}, and what is "
                    f"found is above it by {min(gaps.values()):.3f} at least",
                    min(gaps.values()) >= 0,
                )
            )
        least = min(_at(frame, PROVED, steps, NINE)["exact"] for steps in BUDGETS)
        statements.append(
            Statement(
                f"at nine times the budget the corrected bound promises {least:.3f} at least", least > 0.9
            )
        )
        return tuple(statements)
    for steps, printed in IN_PRINT.items():
        claimed, found = _at(frame, CLAIMED, steps)["exact"], _at(frame, FOUND, steps)
        error = math.sqrt(printed * (1 - printed) / DRAWS_IN_PRINT + found["exact_se"] ** 2)
        statements += [
            Statement(
                f"at K = {steps:,} and ε = {found['epsilon']:g} the claim is {claimed:.4f}; the reference "
                f"is {CLAIM}",
                abs(claimed - CLAIM) <= 0.001,
            ),
            Statement(
                f"there the chance is {found['exact']:.3f}; the reference is {printed} from "
                f"{DRAWS_IN_PRINT} draws, with a standard error of {error:.3f}",
                abs(found["exact"] - printed) <= STANDARD_ERRORS * error + 0.0005,
            ),
            Statement(
                f"the theorem is false at K = {steps:,}: {found['exact']:.3f} is below {claimed:.3f} by "
                f"{(claimed - found['exact']) / found['exact_se']:.0f} standard errors",
                claimed - found["exact"] > STANDARD_ERRORS * found["exact_se"],
            ),
        ]
    few = [_at(frame, FOUND, steps)["exact"] - _at(frame, CLAIMED, steps)["exact"] for steps in (100, 1_000)]
    statements.append(
        Statement(f"at K = 100 and 1,000 the claim is kept, by {few[0]:.3f} and {few[1]:.3f}", min(few) > 0)
    )
    return tuple(statements)


FIGURE = Figure(
    number="C4",
    name="histogram-theorem",
    source="C22",
    title="The theorem on the histogram method",
    captions={
        "published": "Theorem 2.2.3.1 claims that the median is within 0.1 with a probability of 0.949 at "
        "each of these numbers of steps and budgets. With many more steps than records it is not: 0.85 at "
        "100,000 steps and 0.68 at a million. The proof takes the whole budget for each of nine deciles.",
        "corrected": "With a ninth of the budget for each decile nothing can be promised at those budgets; "
        "at nine times as much the corrected bound promises about 0.95, and the median is always near.",
    },
    errata=("E2", "E7", "E13"),
    numbers=numbers,
    chart=chart,
    check=check,
)
