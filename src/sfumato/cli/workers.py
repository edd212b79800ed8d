"""Many audits at once, in processes of their own, and what each found."""

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from sfumato.audit import Target, WorstCase
from sfumato.cli.status import Refused

HOLDS, BROKEN, OPEN, FAILED = "holds", "VIOLATED", "undecided", "NOT AUDITED"


@dataclass(frozen=True)
class Finding:
    """What the audit of a target found, or why it found nothing."""

    target: Target
    worst: WorstCase | None
    error: str = ""

    @property
    def verdict(self) -> str:
        """One word, or two."""
        return FAILED if self.worst is None else self.worst.loss.verdict

    @property
    def exact(self) -> bool:
        """Whether the loss is known, and not only bounded from both sides."""
        return self.worst is not None and self.worst.loss.upper is None


def audited(targets: Sequence[Target], jobs: int, done: Callable[[], None]) -> list[Finding]:
    """The findings in the order of the targets; `done` is called after each."""
    if jobs == 1 or len(targets) < 2:
        return [_told(_audit(target), done) for target in targets]
    # A new interpreter for each: a forked one would copy the thread that draws the progress bar.
    pool = ProcessPoolExecutor(min(jobs, len(targets)), mp_context=multiprocessing.get_context("spawn"))
    # Workers are born deaf to Ctrl-C, so that only this process reports it.
    listening = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        places = {pool.submit(_audit, target): place for place, target in enumerate(targets)}
        signal.signal(signal.SIGINT, listening)
        found = {places[future]: _told(future.result(), done) for future in as_completed(places)}
    except BrokenProcessPool as error:
        raise Refused("a worker process ended before its audit did; try fewer --jobs") from error
    except KeyboardInterrupt:
        for child in multiprocessing.active_children():
            child.terminate()
        raise
    finally:
        signal.signal(signal.SIGINT, listening)
        pool.shutdown(wait=False, cancel_futures=True)
    return [found[place] for place in range(len(targets))]


def _audit(target: Target) -> Finding:
    try:
        return Finding(target, target.audit())
    except Exception as error:  # one audit that fails must not hide what the others find
        return Finding(target, None, f"{type(error).__name__}: {error}")


def _told(finding: Finding, done: Callable[[], None]) -> Finding:
    done()
    return finding
