"""Figure 17 of [A24]: the run time of quantiles that are not private."""

from typing import Any

from sfumato.lab.figure import Figure, Mode, Statement
from sfumato.lab.run_times import NAMES, chart_of, medians, numbers, ratio


def check(table: Any, mode: Mode) -> tuple[Statement, ...]:
    """No private method is as fast."""
    times = medians(table)
    fastest = min(times[name] for name in NAMES if name != "plain")
    return (
        ratio(
            "the fastest private method over quantiles that are not private", fastest, times["plain"], least=1
        ),
    )


FIGURE = Figure(
    number="17",
    name="plain-run-time",
    source="A24",
    title="Run time of quantiles that are not private",
    captions={
        "published": "The fastest of the four: nothing is drawn.",
        "corrected": "The fastest of the four: nothing is drawn. Exact laws on integers cost more than "
        "floating point.",
    },
    numbers=numbers,
    chart=chart_of("plain"),
    check=check,
    compares=True,
    alone=True,
)
