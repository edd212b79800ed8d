"""A progress bar on the terminal, for what takes more than a second."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from time import monotonic
from typing import Any

# In seconds: when a bar first appears, and how often it moves.
PATIENCE, OFTEN = 1.0, 0.1


def steps(total: int, words: str) -> Iterator[int]:
    """The numbers from 0 to `total` - 1, with a bar on stderr after a second, if that is a terminal.

    >>> sum(steps(4, "counting"))
    6
    """
    start = shown = monotonic()
    bar: Any = None
    with ExitStack() as stack:
        for done in range(total):
            yield done
            now = monotonic()
            if now - start < PATIENCE or now - shown < OFTEN or not sys.stderr.isatty():
                continue
            shown = now
            bar = bar or _bar(stack, total, words)
            bar(done + 1)


def _bar(stack: ExitStack, total: int, words: str) -> Any:
    try:
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import Progress
    except ImportError:
        stack.callback(lambda: sys.stderr.write("\r" + " " * (len(words) + 8) + "\r"))
        return lambda done: (sys.stderr.write(f"\r{words}: {100 * done // total:3d} %"), sys.stderr.flush())
    progress = stack.enter_context(Progress(console=Console(stderr=True), transient=True))
    task = progress.add_task(escape(words), total=total)
    return lambda done: progress.update(task, completed=done)
