"""What the processes do that are killed and crowded: spend, draw, keep, tell.

A client writes each step to a journal of its own before it goes on. A journal is what the world outside saw,
and the ledger is held to it: a step that was written down is not undone by a crash.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from tests.faults.defects import DEFECTS

from sfumato.errors import BudgetExceeded, LedgerUnavailable
from sfumato.ledger import failpoints
from sfumato.ledger.account import Account
from sfumato.ledger.sql import SqlLedger
from sfumato.privacy import ZCDP, Budget, PureDP
from sfumato.statistics import Count

DATASET = "census"
NEIGHBOURS = "add-remove"
PRICE = Fraction(1, 10)
PATIENCE = 600.0

# A process without threads that has imported what clients need: its forks start in milliseconds.
PROCESSES = get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        "alembic.command",
        "sqlalchemy.dialects.sqlite",
        "sqlalchemy.dialects.postgresql.psycopg",
        "tests.faults.clients",
        "tests.faults.births",
        "tests.faults.sessions",
    ]
)


@dataclass(frozen=True)
class Place:
    """Where a ledger and its anchor are."""

    url: str
    anchor: str

    @contextmanager
    def open(self) -> Iterator[SqlLedger]:
        ledger = SqlLedger(self.url, anchor=self.anchor)
        try:
            yield ledger
        finally:
            ledger.close()


@dataclass(frozen=True)
class Job:
    """What one client is to do."""

    place: Place
    journal: str
    requests: tuple[str, ...]
    analyst: str = "analyst"
    kind: str = "pure"
    point: str | None = None  # die there,
    visit: int = 1  # at this visit
    defect: str | None = None
    start: str | None = None  # wait until this file is there
    stubborn: bool = False  # ask again when the database is away


class Step(NamedTuple):
    """A line of a journal."""

    word: str
    request: str
    text: str


class Journal:
    """Lines that survive the death of the process: each is handed to the kernel in one write."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def say(self, word: str, request: str = "", text: str = "") -> None:
        os.write(self._file, f"{word}\t{request}\t{text}\n".encode())

    @staticmethod
    def read(path: str) -> list[Step]:
        """The whole lines of a journal, in order."""
        if not Path(path).exists():
            return []
        return [Step(*line.split("\t")) for line in Path(path).read_text().split("\n")[:-1]]


def budget(kind: str, charges: int) -> Budget:
    """A cap that so many charges fill exactly."""
    return PureDP(charges * PRICE) if kind == "pure" else ZCDP(charges * PRICE)


def item(kind: str = "pure") -> Count:
    """Something that costs a tenth of an epsilon or of a rho."""
    return Count(budget=budget(kind, 1), neighbours=NEIGHBOURS)


def digest(request: str) -> str:
    """What a request asks for, in short."""
    return sha256(request.encode()).hexdigest()


def die_at(point: str, visit: int) -> None:
    """From now on the process kills itself at this visit of the fail point."""
    left = visit

    def reached(name: str) -> None:
        nonlocal left
        left -= name == point
        if name == point and not left:
            os.kill(os.getpid(), signal.SIGKILL)

    failpoints.fail_point = reached


def serve(account: Account, request: str, kind: str, journal: Journal) -> None:
    """Answer one request as a session does: charge, draw, keep, tell."""
    reply = account.answered(request, digest(request))
    if reply is None:
        try:
            entry = account.charge(item(kind), request=request, digest=digest(request))
        except BudgetExceeded:
            journal.say("refused", request, account.analyst)
            return
        journal.say("charged", request, str(entry.number))
        drawn = os.urandom(8).hex()  # in place of noise: no two draws are equal
        journal.say("drawn", request, drawn)
        reply = account.keep(request, drawn.encode())
    journal.say("told", request, bytes(reply).decode())


def work(job: Job) -> None:
    """The life of a client."""
    journal = Journal(job.journal)
    journal.say("start")
    try:
        with DEFECTS[job.defect]() if job.defect else nullcontext():
            if job.point:
                die_at(job.point, job.visit)
            _live(job, journal)
    except BaseException as error:
        journal.say("broken", text=f"{type(error).__name__}: {error}".replace("\n", " ").replace("\t", " "))
        raise
    journal.say("done")


def _live(job: Job, journal: Journal) -> None:
    waiting = list(job.requests)
    while waiting:
        try:
            with job.place.open() as ledger:
                account = ledger.account(DATASET, analyst=job.analyst)
                journal.say("ready")
                while job.start and not Path(job.start).exists():
                    time.sleep(0.001)
                while waiting:
                    serve(account, waiting[0], job.kind, journal)
                    del waiting[0]
        except LedgerUnavailable:
            if not job.stubborn:
                raise
            journal.say("away")
            time.sleep(0.01)


def _ready(job: Job) -> bool:
    return any(step.word in ("ready", "broken") for step in Journal.read(job.journal))


def run_together(jobs: list[Job]) -> list[list[Step]]:
    """The journals of clients that all start at once and live to the end."""
    go = Path(jobs[0].journal).with_suffix(".go")
    lives = [PROCESSES.Process(target=work, args=(replace(job, start=str(go)),), daemon=True) for job in jobs]
    for life in lives:
        life.start()
    end = time.monotonic() + PATIENCE
    while not all(_ready(job) for job in jobs) and time.monotonic() < end:
        time.sleep(0.005)
    go.touch()
    for life in lives:
        life.join(PATIENCE)
    journals = [Journal.read(job.journal) for job in jobs]
    for life, steps in zip(lives, journals, strict=True):
        assert life.exitcode == 0, f"a client ended with exit code {life.exitcode}: {steps[-1:]}"
    return journals
