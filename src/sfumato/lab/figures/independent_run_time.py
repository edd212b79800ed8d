"""Figure 14 of [A24]: the run time of IndExp."""

from typing import Any

from sfumato.lab.figure import Figure, Mode, Statement
from sfumato.lab.run_times import chart_of, medians, numbers, ratio


def check(table: Any, mode: Mode) -> tuple[Statement, ...]:
    """Privacy takes time."""
    times = medians(table)
    return (
        ratio("IndExp over quantiles that are not private", times["independent"], times["plain"], least=1),
    )


FIGURE = Figure(
    number="14",
    name="independent-run-time",
    source="A24",
    title="Run time of IndExp",
    captions={
        "published": "Four draws by NumPy take longer than four sample quantiles. Times are of this machine: "
        "compare medians with each other and with nothing else.",
        "corrected": "Four draws from exact laws on a grid take longer than four sample quantiles. Times are "
        "of this machine: compare medians with each other and with nothing else.",
    },
    numbers=numbers,
    chart=chart_of("independent"),
    check=check,
    compares=True,
    alone=True,
)
