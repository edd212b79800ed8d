"""Waiting for a lock that another process holds."""

import sqlite3
import time
from collections.abc import Callable
from typing import Any


def patient(action: Callable[[], Any], patience: float) -> Any:
    """Try again while others hold the lock: short pauses of uneven length, the same for all who wait.

    After `patience` seconds the last refusal is raised: a lock without a time limit would let one process
    that hangs stop all others, without a word.
    """
    end = time.monotonic() + patience
    while True:
        try:
            return action()
        except BlockingIOError:
            if time.monotonic() > end:
                raise
        except sqlite3.OperationalError as fault:
            if not str(fault.sqlite_errorname).startswith("SQLITE_BUSY") or time.monotonic() > end:
                raise
        time.sleep(0.0005 + (time.perf_counter_ns() % 1000) * 2e-6)
