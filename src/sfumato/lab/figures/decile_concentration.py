"""Figure C2: how far the deciles of a sample are from those of its population, and what is said of it."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.accuracy import (
    Scenario,
    exact_quantile_concentration,
    published_quantile_concentration,
    quantile_concentration,
)
from sfumato.lab import datasets
from sfumato.lab.errata_lemmas import normal_concentration, normal_deciles, uniform_deciles
from sfumato.lab.figure import Effort, Figure, Mode, Statement
from sfumato.lab.judging import all_agree, equals
from sfumato.lab.measured import CASES, MEASURED, case_rows, charted, share

ROWS, SETS, FEWEST_SETS = 1_000, 4_000, 800
MEDIAN, NINTH = Fraction(1, 2), Fraction(9, 10)
FOUND, PUBLISHED, HOEFFDING = "chance", "lemma of the report", "Hoeffding's bound"
UNIFORM_MEDIAN, UNIFORM_NINTH, NORMAL_NINTH = (
    "median, uniform",
    "ninth decile, uniform",
    "ninth decile, normal",
)
PANELS: dict[Mode, dict[str, Fraction]] = {
    "published": {UNIFORM_MEDIAN: MEDIAN, UNIFORM_NINTH: NINTH},
    "corrected": {UNIFORM_MEDIAN: MEDIAN, NORMAL_NINTH: NINTH},
}
# Distances in units of the standard deviation of the sample quantile, for many records.
DISTANCES = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)


def numbers(mode: Mode, effort: Effort, own: Mapping[str, Any]) -> Any:
    """Chances that a sample decile is further away than a distance, exact and drawn, beside bounds."""
    import polars as pl

    sets = effort.draws(SETS, least=FEWEST_SETS)
    rows: list[dict[str, Any]] = []
    for panel, order in PANELS[mode].items():
        is_normal = panel == NORMAL_NINTH
        law = Scenario.named("normal", mean=0, sd=1) if is_normal else None
        source = datasets.normal(0, 1, (-8, 8)) if is_normal else datasets.uniform()
        center = source.quantile(float(order))
        density = math.exp(-(center**2) / 2) / math.sqrt(2 * math.pi) if is_normal else 1.0
        unit = math.sqrt(order * (1 - order) / ROWS) / density
        rank = math.ceil(order * ROWS)
        sample = np.partition(source.draw(sets, ROWS, effort.seed), rank - 1, axis=1)[:, rank - 1]
        for distance in (unit * times for times in DISTANCES):
            place = {"panel": panel, "distance": distance}
            terms: dict[str, Any] = {"rows": ROWS, "order": order, "distance": distance, "law": law}
            exact = exact_quantile_concentration(**terms)
            rows.append({**place, "curve": FOUND, **share(exact, np.abs(sample - center) > distance)})
            if mode == "published":
                told = published_quantile_concentration(rows=ROWS, distance=distance)
                rows.append({**place, "curve": PUBLISHED, "kind": "published", "exact": told})
            else:
                told = quantile_concentration(**terms)
                rows.append({**place, "curve": HOEFFDING, "kind": "bound", "exact": told})
    # All cases of the errata, by name.
    for finding in (uniform_deciles(), normal_concentration(), normal_deciles()):
        rows += case_rows(finding.numbers)
    return pl.DataFrame(rows, infer_schema_length=None)


def chart(frame: Any, mode: Mode) -> Any:
    """The chance and a bound that falls beside it, on a logarithmic axis."""
    from sfumato.charts import comparison

    return comparison(
        charted(frame.iter_rows(named=True), "distance"),
        title=f"A decile of {ROWS:,} values against that of their population",
        subtitle=[
            "line with points: exact and simulated, with two standard errors; line without: what is promised"
        ],
        along="distance s from the population's decile",
        unit="probability to be further away than s",
        log_y=True,
        columns=2,
        shared=False,
    )


def check(frame: Any, mode: Mode) -> tuple[Statement, ...]:
    """The bounds hold; the exponent of the published one is six times smaller."""
    drawn = frame.filter(frame["kind"] == MEASURED)
    statements = [all_agree("chances", drawn["mean"], drawn["exact"], drawn["se"])]
    name = PUBLISHED if mode == "published" else HOEFFDING
    told = frame.filter(frame["curve"] == name)
    shares = [found / limit for found, limit in zip(drawn["exact"], told["exact"], strict=True)]
    statements.append(
        Statement(
            f"{name} holds in all {len(shares)} cases: the chance is {min(shares):.1e} to {max(shares):.2f} "
            "of it",
            len(shares) > 0 and max(shares) <= 1,
        )
    )
    counts = frame.filter(frame["kind"] == CASES)

    def number(entry: str, which: int = 0) -> float:
        return float(counts.filter(counts["curve"] == entry)["exact"][which])

    if mode == "published":
        statements += [
            Statement(
                f"in {number('cases'):.0f} exact cases the lemma is broken {number('broken'):.0f} times; "
                "the reference is 0 of 180",
                number("cases") == 180 and number("broken") == 0,
            ),
            equals("Hoeffding's exponent over that of the lemma", number("factor"), 6.0),
            Statement(
                f"the lemma for normal data is about no distance at all for {number('below'):.0f} deciles "
                f"of nine, and its proof has {number('constant'):.2f} where it says 5; the references are 4 "
                "and 1.33",
                number("below") == 4 and abs(number("constant") - 25 / (6 * math.pi)) < 1e-12,
            ),
        ]
        return tuple(statements)
    statements += [
        Statement(
            f"in {number('cases', 1):.0f} exact cases of normal data Hoeffding's bound is broken "
            f"{number('broken', 1):.0f} times",
            number("cases", 1) == 432 and number("broken", 1) == 0,
        ),
        Statement(
            "the deciles of the normal law, √2 erfinv(2i/10 - 1), agree with its inverse to "
            f"{number('digits'):.0f} digits; the ninth is {number('ninth'):.4f}",
            number("digits") >= 12 and abs(number("ninth") - 1.2815515655) < 1e-9,
        ),
    ]
    return tuple(statements)


FIGURE = Figure(
    number="C2",
    name="decile-concentration",
    source="C22",
    title="Deciles of a sample and of its population",
    captions={
        "published": "The lemma on deciles of uniform data holds, and is far above the chance that it "
        "bounds: its exponent is six times smaller than need be, and it says nothing where it is above one.",
        "corrected": "Hoeffding's bound follows the chance much closer, and serves every law: to the right "
        "the ninth decile of normal data, for which the lemma of the report is not proved.",
    },
    errata=("E5", "E10", "E11"),
    numbers=numbers,
    chart=chart,
    check=check,
)
