"""Figure 16 of [A24]: the run time of RecExp."""

from typing import Any

from sfumato.lab.figure import Figure, Mode, Statement
from sfumato.lab.run_times import chart_of, medians, numbers, ratio


def check(table: Any, mode: Mode) -> tuple[Statement, ...]:
    """As many draws as IndExp has, and about its time."""
    times = medians(table)
    return (ratio("RecExp over IndExp", times["recursive"], times["independent"], least=1 / 3, most=3),)


FIGURE = Figure(
    number="16",
    name="recursive-run-time",
    source="A24",
    title="Run time of RecExp",
    captions={
        "published": "Within a factor of 3 of IndExp: both make one draw for each quantile, the recursion on "
        "fewer and fewer records.",
        "corrected": "Within a factor of 3 of IndExp: both make one draw for each quantile. The recursion "
        "makes the law of a branch only when it knows the answer above it.",
    },
    numbers=numbers,
    chart=chart_of("recursive"),
    check=check,
    errata=("E28",),
    compares=True,
    alone=True,
)
