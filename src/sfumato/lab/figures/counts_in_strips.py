"""Figure C3: how likely a strip has fewer records than wanted, and where the lemma on it is false."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.accuracy import min_count, published_min_count
from sfumato.accuracy.order_statistics import at_most
from sfumato.lab.errata_lemmas import normal_strips
from sfumato.lab.figure import Effort, Figure, Mode, Statement
from sfumato.lab.judging import all_agree, as_printed
from sfumato.lab.measured import MEASURED, case_rows, cases, charted, share

# A strip of half a γ: where 1 record is expected, and where 50 are.
FEW, MANY = "n = 100, γ = 0.02", "n = 1,000, γ = 0.1"
STRIPS: dict[str, tuple[int, Fraction, tuple[int, ...]]] = {
    FEW: (100, Fraction(1, 100), (1, 2, 3, 4, 5, 6)),
    MANY: (1_000, Fraction(1, 20), (20, 30, 35, 40, 45, 50, 55, 60, 65, 70, 80)),
}
DRAWS = 20_000
FOUND, LEMMA, BOUND = "one strip has fewer", "lemma, for two strips", "bound, for two strips"


def numbers(mode: Mode, effort: Effort, own: Mapping[str, Any]) -> Any:
    """Chances of fewer records than wanted, exact and drawn, beside the lemma or what replaces it."""
    import polars as pl

    rng = np.random.default_rng(effort.seed)
    rows: list[dict[str, Any]] = []
    for panel, (size, mass, wanted) in STRIPS.items():
        counts = rng.binomial(size, float(mass), effort.draws(DRAWS))
        for least in wanted:
            place = {"panel": panel, "least": least}
            exact = at_most(least - 1, size, float(mass))
            rows.append({**place, "curve": FOUND, **share(exact, counts < least)})
            terms: dict[str, Any] = {"rows": size, "share": mass, "least": least}
            if mode == "published":
                rows.append(
                    {**place, "curve": LEMMA, "kind": "published", "exact": published_min_count(**terms)}
                )
            else:
                # The union of two strips, which is nothing where it is above one.
                told = min(2 * min_count(**terms), 1.0)
                rows.append({**place, "curve": BOUND, "kind": "bound", "exact": told})
    rows += case_rows(normal_strips().numbers)
    return pl.DataFrame(rows, infer_schema_length=None)


def chart(frame: Any, mode: Mode) -> Any:
    """A chance that rises with the number wanted, and a lemma that falls again."""
    from sfumato.charts import comparison

    marks = [
        {"x": float(size * mass), "text": "expected", "panel": panel}
        for panel, (size, mass, _) in STRIPS.items()
    ]
    return comparison(
        charted(frame.iter_rows(named=True), "least"),
        title="Fewer records in a strip than wanted",
        subtitle=["line with points: exact and simulated; line without: what is promised for two strips"],
        along="records wanted, α",
        unit="probability of fewer",
        zero=True,
        columns=2,
        shared=False,
        marks=marks,
    )


def check(frame: Any, mode: Mode) -> tuple[Statement, ...]:
    """The lemma holds up to the number expected, and not beyond; with its hypothesis it holds."""
    drawn = frame.filter(frame["kind"] == MEASURED)
    statements = [all_agree("chances", drawn["mean"], drawn["exact"], drawn["se"])]
    told = frame.filter(frame["curve"] == (LEMMA if mode == "published" else BOUND))
    cells = list(zip(drawn["panel"], drawn["least"], drawn["exact"], told["exact"], strict=True))
    expected = {panel: float(size * mass) for panel, (size, mass, _) in STRIPS.items()}
    below = [found / limit for panel, least, found, limit in cells if least <= expected[panel]]
    above = [found / limit for panel, least, found, limit in cells if least > expected[panel] + 1]
    if mode == "published":
        exact, claim = next(
            (found, limit) for panel, least, found, limit in cells if (panel, least) == (FEW, 5)
        )
        statements += [
            as_printed("the chance that a strip has fewer than 5 of 100, with 1 expected,", exact, "0.997"),
            as_printed("what the lemma says there", claim, "0.0007"),
            Statement(
                f"up to the number expected the lemma holds, and the chance is {max(below):.2f} of it at "
                "most",
                max(below) <= 1,
            ),
            Statement(
                f"farther above it the lemma is false in {sum(each > 1 for each in above)} of {len(above)} "
                f"cases, by a factor of up to {max(above):.0f}",
                max(above) > 1000,
            ),
        ]
        return tuple(statements)
    counted = cases(frame)
    ratios = below + above
    statements += [
        Statement(
            f"the chance is {max(ratios):.2f} of the bound at most, in {len(ratios)} cases", max(ratios) <= 1
        ),
        Statement(
            f"for strips beside the deciles of normal data it is broken {counted['broken']:.0f} times in "
            f"{counted['cases']:.0f} exact cases, and would be {counted['without']:.0f} times without the "
            "condition",
            counted["broken"] == 0 and counted["cases"] == 900 and counted["without"] > 0,
        ),
    ]
    return tuple(statements)


FIGURE = Figure(
    number="C3",
    name="counts-in-strips",
    source="C22",
    title="Records in a strip beside a decile",
    captions={
        "published": "The more records are wanted, the likelier a strip has fewer. The lemma says so up to "
        "the number that is expected, and falls again beyond it, where it is false: with 5 wanted and 1 "
        "expected it says 0.0007, and the chance is 0.997.",
        "corrected": "With its hypothesis, no more wanted than expected, the bound holds; beyond it "
        "nothing is claimed.",
    },
    errata=("E6", "E12"),
    numbers=numbers,
    chart=chart,
    check=check,
)
