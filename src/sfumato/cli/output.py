"""Where text goes: results to standard output, progress to standard error, and quietly if nobody reads."""

import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from rich import box
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from sfumato.checks import compact
from sfumato.cli.status import PIPE_CLOSED
from sfumato.query import Cost
from sfumato.safe_text import visible

# Where there is no terminal nothing is folded to fit one, and a line stays a line.
WIDE = 120
# Columns of numbers, which are aligned by their last digit.
NUMBERS = ("loss", "tight", "pairs", "epsilon at least", "draws")
TEXTS = ("evidence", "accuracy")
# In seconds: what takes less gets no bar.
PATIENCE = 1.0


class SafeConsole(Console):
    """A console on which names of others do not steer the terminal: they reach it as text alone."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of a renderable, with control characters of its texts written as escapes."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)


class Output(SafeConsole):
    """A console that ends the process quietly when its reader has gone away."""

    def on_broken_pipe(self) -> NoReturn:
        """Nobody reads: no message would arrive."""
        self.quiet = True
        let_go()
        raise SystemExit(PIPE_CLOSED)


def let_go() -> None:
    """Let nothing more reach a closed pipe, of which the interpreter would complain at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def output() -> Output:
    """Standard output as it is now."""
    console = Output(highlight=False, emoji=False, markup=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDE
    return console


def print_json(record: Any) -> None:
    """One JSON document, and nothing else, on standard output."""
    output().print(json.dumps(record, indent=2, allow_nan=False), soft_wrap=True)


def progress() -> Progress:
    """A bar on standard error; none where it is no terminal."""
    console = SafeConsole(stderr=True)
    return Progress(
        TextColumn("auditing"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


@contextmanager
def stages(words: str) -> Iterator[Callable[..., None]]:
    """A bar on standard error after a second, if that is a terminal; what is given tells how far it is."""
    console = SafeConsole(stderr=True)
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    task = bar.add_task(words, total=None)

    def tell(words: str, done: float | None = None, total: float | None = None) -> None:
        bar.update(task, description=words, completed=done, total=total)

    # By a clock of its own: a long read calls nothing while it lasts.
    clock = threading.Timer(PATIENCE, bar.start)
    clock.daemon = True
    clock.start()
    try:
        yield tell
    finally:
        clock.cancel()
        clock.join()
        bar.stop()


def warn(words: str) -> None:
    """A line on standard error."""
    SafeConsole(stderr=True, highlight=False, emoji=False, markup=False).print(
        f"sfumato: {words}", soft_wrap=True
    )


def table(first: str, *others: str) -> Table:
    """A table whose first column takes the room that is left: long texts are folded, and none is cut off."""
    made = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, header_style="bold")
    made.add_column(first, overflow="fold")
    for name in others:
        side: JustifyMethod = "right" if name in NUMBERS else "left"
        made.add_column(name, justify=side, overflow="fold", no_wrap=name not in TEXTS)
    return made


def grid_of(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> Table:
    """A table of texts, whose first so many columns stand left and the others right."""
    made = Table(box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0), show_edge=False, header_style="bold")
    for place, name in enumerate(head):
        side: JustifyMethod = "left" if place < left else "right"
        made.add_column(Text(visible(name)), justify=side, overflow="fold", no_wrap=place >= left)
    for row in rows:
        made.add_row(*(Text(visible(cell)) for cell in row))
    return made


def in_symbols(cost: Cost, console: Console, *, rounded: bool = True) -> str:
    """A cost as short as the terminal can show it: "ε 1 δ 1e-06", or "eps 1 delta 1e-06"."""
    from sfumato.audit.target import in_words

    greek = {"epsilon": "ε", "delta": "δ", "rho": "ρ"} if "utf" in console.encoding else {"epsilon": "eps"}
    text = (in_words(cost) if rounded else _exactly(cost)).replace(",", "")
    for word, letter in greek.items():
        text = text.replace(word, letter)
    return text


def _exactly(cost: Cost) -> str:
    parts = ((name, getattr(cost, name, None)) for name in ("epsilon", "delta", "rho"))
    return " ".join(f"{name} {compact(value)}" for name, value in parts if value) or "nothing"
