"""Filters of warnings belong to the whole process: whoever changes them does so alone."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Literal

_ALONE = RLock()


@contextmanager
def all_warnings(action: Literal["ignore", "error"]) -> Iterator[None]:
    """Ignore all warnings, or raise them, for one thread at a time.

    Two threads that did this at once would restore each other's filters, for the rest of the process.
    """
    with _ALONE, warnings.catch_warnings():
        warnings.simplefilter(action)
        yield
