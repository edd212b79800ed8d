"""Fair timing: the contenders take turns within one run, and medians are compared."""

import statistics
import time
from collections.abc import Callable, Mapping

from rich.console import Console
from rich.table import Table


def medians(contenders: Mapping[str, Callable[[], object]], repeats: int = 7) -> dict[str, float]:
    """The median seconds of each contender; they take turns, so that a busy moment hits all of them."""
    for run in contenders.values():
        run()  # caches, tables and lazy imports are made once and not timed
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


def show(title: str, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print a table."""
    table = Table(title=title, title_justify="left")
    for i, name in enumerate(header):
        table.add_column(name, justify="right" if i else "left")
    for row in rows:
        table.add_row(*row)
    Console(width=110).print(table)


def verdict(holds: bool) -> str:
    """A word for a goal."""
    return "holds" if holds else "MISSED"
