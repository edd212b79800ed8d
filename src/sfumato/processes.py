"""Independent tasks in processes of their own, and their results as they come."""

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TypeVar

from sfumato.errors import InvalidParameter

Task = TypeVar("Task")
Result = TypeVar("Result")


def results(
    function: Callable[[Task], Result], tasks: Sequence[tuple[int, Task]], jobs: int
) -> Generator[tuple[int, Result], None, None]:
    """The place and the result of every task, in the order in which they end; one job is this process."""
    if jobs == 1 or len(tasks) < 2:
        for place, task in tasks:
            yield place, function(task)
        return
    for _, task in tasks:
        _require_sendable(task)
    others = set(multiprocessing.active_children())
    # New interpreters: forked ones would copy locks, and the thread that draws a progress bar.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=context, initializer=_end_with_parent)
    try:
        with _deaf():
            places = {pool.submit(_result, function, task): place for place, task in tasks}
        for future in as_completed(places):
            yield places[future], future.result()
    except BrokenProcessPool as error:
        raise InvalidParameter(
            "a worker process ended before its task did: try fewer jobs, or 1; a script that starts some "
            'needs if __name__ == "__main__": around what it does, and its functions must stand in a file'
        ) from error
    except BaseException:
        # What is under way would be waited for at exit.
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise
    else:
        # Nothing is under way. Python 3.11 may otherwise wake a pool at exit whose pipe is closed already.
        pool.shutdown(wait=True)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _end_with_parent() -> None:
    """Have this worker end when whoever started it was killed: nobody would stop it."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _result(function: Callable[[Task], Result], task: Task) -> Result:
    """What a task gives; an error that cannot be sent on is told in words."""
    try:
        return function(task)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            told = RuntimeError(f"{type(error).__name__}: {error}")
            told.__notes__ = getattr(error, "__notes__", [])
            raise told from None
        raise


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes that are started meanwhile do not hear Ctrl-C, so that only this one tells of it."""
    if threading.current_thread() is not threading.main_thread():
        yield  # where Python lets nobody change what a signal does
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _require_sendable(task: object) -> None:
    try:
        pickle.dumps(task)
    except Exception as error:
        raise InvalidParameter(
            "jobs must be 1 for what cannot be sent to another process, such as a lambda or a function "
            "defined inside another"
        ) from error
