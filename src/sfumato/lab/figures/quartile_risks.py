"""Figure 11 of [A24]: the squared risk of private quartiles against the budget."""

import math
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import Any

from sfumato.lab import published_several as published
from sfumato.lab import several_exact as exact
from sfumato.lab.datasets import uniform
from sfumato.lab.figure import Effort, Figure, Mode, Statement
from sfumato.lab.measured import LEGEND
from sfumato.lab.own import with_own
from sfumato.lab.several_risks import (
    Rows,
    agree_with_laws,
    all_below,
    asked_for,
    curves,
    frame,
    orders,
    place,
    query,
    recorded,
    risk_rows,
    script,
    with_exact,
)
from sfumato.lab.trials import sample_quantiles

RECORDS = 100
EPSILONS = (0.1, 0.5, 0.7, 0.8, 0.9, 1.0, 2.0)
SETS, REPEATS = 60, 50
QUARTILES = orders(3)
NAMES = {"joint": "JointExp", "recursive": "RecExp", "independent": "IndExp"}
# Averages over 12 data sets with 60 draws each, and the last digit that they have.
RECORDED: dict[Mode, dict[float, dict[str, tuple[float, float]]]] = {
    "published": {
        0.1: {"joint": (0.078, 0.001), "recursive": (0.105, 0.001)},
        0.5: {"joint": (0.0155, 0.0001), "recursive": (0.0215, 0.0001)},
        1.0: {"joint": (0.0052, 0.0001), "recursive": (0.0066, 0.0001)},
        2.0: {"joint": (0.0015, 0.0001), "recursive": (0.0021, 0.0001)},
    },
    "corrected": {
        0.1: {"joint": (0.0885, 0.0001), "recursive": (0.142, 0.001), "independent": (0.101, 0.001)},
        1.0: {"joint": (0.0077, 0.0001), "recursive": (0.0127, 0.0001), "independent": (0.0205, 0.0001)},
        2.0: {"joint": (0.0026, 0.0001), "recursive": (0.0050, 0.0001), "independent": (0.0070, 0.0001)},
    },
}


def numbers(mode: Mode, effort: Effort, own: Mapping[str, Any]) -> Any:
    """The squared risk of each method at each budget."""
    source = uniform()
    if mode == "published":
        subjects: dict[str, Any] = {
            "joint": script(published.joint, QUARTILES),
            "recursive": script(published.recursive, QUARTILES, own_interval=True),
        }
    else:
        subjects = {method: query(method, QUARTILES) for method in NAMES}
    rows = risk_rows(
        with_own(subjects, asked_for(own, QUARTILES)),
        source=source,
        n=RECORDS,
        epsilons=EPSILONS,
        risk="squared",
        effort=effort,
        sets=effort.draws(SETS),
        repeats=effort.draws(REPEATS, least=10),
        panel="",
        count=len(QUARTILES),
    )
    _exact(rows, mode, partial(with_exact, rows, source=source, effort=effort))
    return frame(rows)


def _exact(rows: Rows, mode: Mode, fill: Any) -> None:
    def quartiles(data: Any, _: Any, rate: float, truth: Any) -> Any:
        return exact.quartiles_recursive_squared(data, rate, rate, truth)

    if mode == "published":
        fill(
            "joint",
            exact.joint_squared,
            lambda eps: published.joint_rate(eps, [0.25, 0.5, 0.75]),
            truth=published.quantiles,
        )
        fill("recursive", quartiles, lambda eps: eps / (math.log2(3) + 1), truth=published.quantiles)
        return
    # Two levels have half of the budget each, and a node half of that for a rate.
    fill("joint", exact.joint_squared, lambda eps: eps / 4, truth=sample_quantiles)
    fill("recursive", quartiles, lambda eps: eps / 4, truth=sample_quantiles)
    fill("independent", exact.sorted_squared, lambda eps: eps / 6, truth=sample_quantiles)


def chart(table: Any, mode: Mode) -> Any:
    """Risk against budget, both on logarithmic axes."""
    from sfumato.charts import comparison

    under = {
        "published": "rates of the script",
        "corrected": "ε in all if a record is replaced",
    }
    return comparison(
        curves(table, "epsilon", NAMES),
        title="Squared risk of three private quartiles",
        subtitle=[
            f"{RECORDS} uniform records in [0, 1]; {under[mode]}",
            LEGEND,
        ],
        along="budget ε",
        unit="squared error, summed over the quartiles",
        log_x=True,
        log_y=True,
    )


def check(table: Any, mode: Mode) -> tuple[Statement, ...]:
    """Decreasing in the budget, a joint draw below the recursion, and the recorded averages."""
    at = partial(place, table)
    methods = [name for name in NAMES if mode == "corrected" or name != "independent"]
    found = [agree_with_laws(table)]
    for method in methods:
        risks = [at(curve=method, epsilon=epsilon)["exact"] for epsilon in EPSILONS]
        falls = all(later < earlier for earlier, later in pairwise(risks))
        means = [at(curve=method, epsilon=epsilon)["mean"] for epsilon in (0.1, 0.5, 1.0, 2.0)]
        falls &= all(later < earlier for earlier, later in pairwise(means))
        told = f"{NAMES[method]} falls with ε: {means[0]:.3g} at 0.1, {means[-1]:.3g} at 2"
        found.append(Statement(told, falls))
    pairs = [(at(curve="joint", epsilon=eps), at(curve="recursive", epsilon=eps)) for eps in EPSILONS]
    found.append(all_below("JointExp is below RecExp at every ε", pairs))
    if mode == "corrected":
        pairs = [(at(curve="joint", epsilon=eps), at(curve="independent", epsilon=eps)) for eps in EPSILONS]
        found.append(all_below("JointExp is below IndExp at every ε", pairs))
        pairs = [
            (at(curve="recursive", epsilon=eps), at(curve="independent", epsilon=eps)) for eps in EPSILONS
        ]
        found.append(all_below("RecExp is below IndExp from ε = 0.5 on", pairs[1:]))
        found.append(all_below("RecExp is above IndExp at ε = 0.1", [pairs[0][::-1]]))
    for epsilon, by_method in RECORDED[mode].items():
        for method, (value, unit) in by_method.items():
            words = f"{NAMES[method]} at ε = {epsilon:g}"
            found.append(recorded(words, at(curve=method, epsilon=epsilon), value, unit, 12, 60))
    return tuple(found)


FIGURE = Figure(
    number="11",
    name="quartile-risks",
    source="A24",
    title="Quartiles: a joint draw, the recursion and independent draws",
    captions={
        "published": "The risk falls as the budget grows, and JointExp stays below RecExp. The two are not "
        "calibrated alike: JointExp has ε for records that are added or removed, and RecExp has rates that "
        "cost more than ε.",
        "corrected": "With the same ε in all for each method, if a record is replaced, JointExp is the "
        "lowest at every budget. RecExp is above IndExp at ε = 0.1, where answers say little, and below it "
        "from ε = 0.5 on.",
    },
    numbers=numbers,
    chart=chart,
    check=check,
    errata=("E24", "E28"),
    compares=True,
)
