"""Where text goes: results to standard output, progress to standard error, and quietly if nobody reads."""

import json
import os
import sys
from typing import Any, NoReturn

from rich import box
from rich.console import Console, JustifyMethod
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from sfumato.audit.target import in_words
from sfumato.cli.status import PIPE_CLOSED
from sfumato.query import Cost

# Where there is no terminal nothing is folded to fit one, and a line stays a line.
WIDE = 120
# Columns of numbers, which are aligned by their last digit.
NUMBERS = ("loss", "tight", "pairs", "epsilon at least", "draws")
TEXTS = ("evidence",)


class Output(Console):
    """A console that ends the process quietly when its reader has gone away."""

    def on_broken_pipe(self) -> NoReturn:
        """Nobody reads: no message would arrive."""
        self.quiet = True
        # Else the interpreter would complain when it flushes the closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(PIPE_CLOSED)


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
    console = Console(stderr=True)
    return Progress(
        TextColumn("auditing"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def table(first: str, *others: str) -> Table:
    """A table whose first column takes the room that is left: long texts are folded, and none is cut off."""
    made = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, header_style="bold")
    made.add_column(first, overflow="fold")
    for name in others:
        side: JustifyMethod = "right" if name in NUMBERS else "left"
        made.add_column(name, justify=side, overflow="fold", no_wrap=name not in TEXTS)
    return made


def in_symbols(cost: Cost, console: Console) -> str:
    """A cost as short as the terminal can show it: "ε 1 δ 1e-06", or "eps 1 delta 1e-06"."""
    greek = {"epsilon": "ε", "delta": "δ", "rho": "ρ"} if "utf" in console.encoding else {"epsilon": "eps"}
    text = in_words(cost).replace(",", "")
    for word, letter in greek.items():
        text = text.replace(word, letter)
    return text
