"""What figures 12 and 13 share: RecExp and IndExp against the number of quantiles."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from sfumato.grid import Floats
from sfumato.lab import published_several as published
from sfumato.lab.datasets import Source
from sfumato.lab.figure import Effort, Statement
from sfumato.lab.judging import agrees
from sfumato.lab.own import Own, with_own
from sfumato.lab.several_risks import (
    Orders,
    Rows,
    all_below,
    asked_for,
    orders,
    place,
    query,
    risk_rows,
)
from sfumato.lab.trials import Risk

EPSILON = 1.0
COUNTS = tuple(range(1, 92, 10))
FEW, MANY = 100, 10_000
# On many records the recursion is below from nine quantiles on.
COUNTS_OF_MANY = (9, 31, 61, 91)
FEW_PANEL, MANY_PANEL = f"n = {FEW}", f"n = {MANY:,}"
NAMES = {"recursive": "RecExp", "independent": "IndExp"}
MECHANISMS = {"recursive": published.recursive, "independent": published.independent}
# What the script plots: squares with the last estimate among them, that estimate, and the largest one.
SUMMED, LAST, LARGEST = "sum", "last estimate", "largest estimate"


def script_number(
    rows: Floats,
    size: int,
    rng: np.random.Generator,
    *,
    epsilon: float,
    probs: Sequence[float],
    mechanism: str,
    number: str,
) -> Floats:
    """What the script makes of every draw in place of a risk, by the name of that number."""
    drawn = MECHANISMS[mechanism](rows, size, rng, epsilon=epsilon, probs=probs)
    if number == SUMMED:
        return published.squared_as_summed(drawn, published.quantiles(rows, probs)[:, None])
    return published.largest_estimate(drawn) if number == LARGEST else np.asarray(drawn[..., -1])


def nothing(values: Floats) -> float:
    """What the script's own numbers are compared with, so that their mean is taken as it is."""
    return 0.0


def plotted(number: str, probs: Orders, mechanism: str) -> Own:
    """A number of the script as an experiment: its mean absolute distance from nothing."""
    settings = {"probs": [float(p) for p in probs], "mechanism": mechanism, "number": number}
    return Own(function=script_number, statistic=nothing, settings=settings, batched=True)


def as_published(
    subjects: Any, *, source: Source, risk: Risk, effort: Effort, panel: str, own: Mapping[str, Any] = {}
) -> Rows:
    """Rows for each number of quantiles on few records; `subjects` makes the mechanisms for some orders.

    Mechanisms of a reader's own have the risk by its proper meaning.
    """
    sets, repeats = effort.draws(24, least=12), effort.draws(50, least=10)
    rows: Rows = []
    for count in COUNTS:
        probs = orders(count)
        told: dict[str, Any] = {"source": source, "n": FEW, "epsilons": (EPSILON,), "effort": effort}
        told |= {"sets": sets, "repeats": repeats, "panel": panel, "count": count}
        theirs = subjects(probs)
        with_own(theirs, own)
        rows += risk_rows(theirs, risk=risk, **told)
        if own:
            rows += risk_rows(asked_for(own, probs), risk="sup" if risk == "sup" else "squared", **told)
    return rows


def as_corrected(
    *, source: Source, risk: Risk, effort: Effort, own: Mapping[str, Any], beside: Any = None
) -> Rows:
    """Rows for each number of quantiles on few and on many records, with one budget in all.

    `beside` makes further mechanisms for some orders, which are drawn from on few records alone.
    """
    rows: Rows = []
    few = (FEW, FEW_PANEL, COUNTS, effort.draws(24, least=12), effort.draws(20, least=5))
    many = (MANY, MANY_PANEL, COUNTS_OF_MANY, effort.draws(8, least=4), effort.draws(20, least=5))
    for n, panel, counts, sets, repeats in (few, many):
        for count in counts:
            probs = orders(count)
            subjects: dict[str, Any] = {method: query(method, probs, EPSILON) for method in NAMES}
            subjects |= beside(probs) if beside is not None and n == FEW else {}
            rows += risk_rows(
                with_own(subjects, asked_for(own, probs)),
                source=source,
                n=n,
                epsilons=(EPSILON,),
                risk=risk,
                effort=effort,
                sets=sets,
                repeats=repeats,
                panel=panel,
                count=count,
            )
    return rows


def claims(table: Any) -> tuple[Statement, ...]:
    """That "RecExp is below IndExp" fails on few records, and holds on many."""

    def pairs(panel: str, lower: str, upper: str, counts: Iterable[int]) -> list[tuple[Any, Any]]:
        found = [
            [place(table, panel=panel, curve=curve, orders=m) for curve in (lower, upper)] for m in counts
        ]
        return [(one, other) for one, other in found]

    few = pairs(FEW_PANEL, "independent", "recursive", [count for count in COUNTS if count >= 31])
    many = pairs(MANY_PANEL, "recursive", "independent", COUNTS_OF_MANY)
    drawn, known = (place(table, panel=FEW_PANEL, curve=curve, orders=1) for curve in NAMES)
    return (
        all_below(f"{FEW_PANEL}: RecExp is not below IndExp but above it for 31 to 91 quantiles", few),
        all_below(f"{MANY_PANEL}: RecExp is below IndExp for 9 to 91 quantiles", many),
        agrees(
            "one quantile is the same draw by both: RecExp", drawn["mean"], known["exact"], drawn["noise_se"]
        ),
    )
