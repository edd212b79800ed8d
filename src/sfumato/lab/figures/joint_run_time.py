"""Figure 15 of [A24]: the run time of JointExp."""

from typing import Any

from sfumato.lab.figure import Figure, Mode, Statement
from sfumato.lab.run_times import NAMES, chart_of, medians, numbers, ratio


def check(table: Any, mode: Mode) -> tuple[Statement, ...]:
    """A joint draw is the slowest: by much if all pairs of cells are summed, by less if they are scanned."""
    times = medians(table)
    others = max(times[name] for name in NAMES if name != "joint")
    if mode == "published":
        return (
            ratio("JointExp over RecExp", times["joint"], times["recursive"], least=2),
            ratio("JointExp over the slowest of the others", times["joint"], others, least=1),
        )
    return (
        ratio("JointExp over RecExp", times["joint"], times["recursive"], most=5),
        ratio("JointExp over IndExp", times["joint"], times["independent"], least=1),
    )


FIGURE = Figure(
    number="15",
    name="joint-run-time",
    source="A24",
    title="Run time of JointExp",
    captions={
        "published": "The slowest of the four, by more than a factor of 2: it sums over all pairs of cells "
        "between records, where the others sum over cells.",
        "corrected": "sfumato scans cells from left to right in place of all pairs, and only those near the "
        "targets, so that a joint draw is less far from the others.",
    },
    numbers=numbers,
    chart=chart_of("joint"),
    check=check,
    compares=True,
    alone=True,
)
