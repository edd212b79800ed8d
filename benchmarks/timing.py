"""Fair timing: the contenders take turns within one run, and medians are compared."""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Mapping

from rich.console import Console
from rich.table import Table

Contenders = Mapping[str, Callable[[], object]]


def quick(description: str) -> bool:
    """Whether the script was asked for a short run, which shows that it works and proves no figure."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes and few repeats, for a smoke test")
    return bool(parser.parse_args().quick)


def turns(contenders: Contenders, repeats: int) -> dict[str, list[float]]:
    """The seconds of each contender, repeat by repeat; they take turns, so that a busy moment hits all."""
    for run in contenders.values():
        run()  # caches, tables and lazy imports are made once and not timed
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def medians(contenders: Contenders, repeats: int = 7) -> dict[str, float]:
    """The median seconds of each contender."""
    return {name: statistics.median(times) for name, times in turns(contenders, repeats).items()}


def show(title: str, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print a table."""
    table = Table(title=title, title_justify="left")
    for i, name in enumerate(header):
        table.add_column(name, justify="right" if i else "left")
    for row in rows:
        table.add_row(*row)
    Console(width=110).print(table)


_missed: list[bool] = []


def verdict(holds: bool, *, short: bool = False) -> str:
    """A word for a goal, noted for `finish`; a short run does not judge."""
    if short:
        return "not judged"
    _missed.append(not holds)
    return "holds" if holds else "MISSED"


def finish() -> None:
    """End the script, with exit code 1 if a goal was missed."""
    if any(_missed):
        sys.exit(f"{sum(_missed)} of {len(_missed)} goals were missed")
