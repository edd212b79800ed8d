"""Clients that are killed with SIGKILL, at random instants and at named fail points, and start again."""

import random
import signal
import time
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.faults.clients import PRICE, PROCESSES, Job, Journal, Place, Step, work
from tests.faults.witness import Witness
from tests.postgres import Server

ASKED = 200  # requests that a client is sent with; it rarely lives to answer ten
AGAIN = 3  # answered requests that are asked once more after a restart
WINDOW = 0.04  # seconds; several charges long
STEP = 0.002
PATIENCE = 600.0


@dataclass
class Client:
    """A client with many lives; in each it asks again for what it was not told, and for some that it was."""

    name: str
    place: Place
    folder: Path
    kind: str = "pure"
    defect: str | None = None
    process: BaseProcess | None = None
    journals: list[str] = field(default_factory=list)

    def start(
        self, *, point: str | None = None, visit: int = 1, asked: int = ASKED, stubborn: bool = False
    ) -> None:
        told = [step.request for step in self.steps() if step.word == "told"]
        known = set(told)
        names = (f"{self.name}-{n}" if n % 5 else f"shared-{n}" for n in range(len(known) + asked))
        requests = (*told[-AGAIN:], *(name for name in names if name not in known))
        self.journals.append(str(self.folder / f"{self.name}-{len(self.journals)}.journal"))
        job = Job(
            self.place,
            self.journals[-1],
            requests,
            kind=self.kind,
            point=point,
            visit=visit,
            defect=self.defect,
            stubborn=stubborn,
        )
        self.process = PROCESSES.Process(target=work, args=(job,), daemon=True)
        self.process.start()

    def steps(self) -> list[Step]:
        """All that it wrote down, in all its lives."""
        return [step for path in self.journals for step in Journal.read(path)]

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.is_alive()

    def wait_until_ready(self) -> None:
        assert self.process is not None
        end = time.monotonic() + PATIENCE
        while self.process.is_alive() and time.monotonic() < end:
            if any(step.word == "ready" for step in Journal.read(self.journals[-1])):
                return
            time.sleep(STEP)

    def end(self, *, kill: bool) -> bool:
        """Whether it ended by SIGKILL; any other failure is one of the product."""
        assert self.process is not None
        if kill:
            self.process.kill()
        self.process.join(PATIENCE)
        code = self.process.exitcode
        assert code in (0, -signal.SIGKILL), f"a client ended with exit code {code}: {self.steps()[-3:]}"
        return code == -signal.SIGKILL


@dataclass
class Tally:
    """What a campaign did and found; it raises at the first thing that is wrong."""

    kills: int = 0
    charges: int = 0
    replies: int = 0
    looks: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))


def crowd(
    place: Place, folder: Path, size: int, *, kind: str = "pure", defect: str | None = None
) -> list[Client]:
    return [Client(f"client{i}", place, folder, kind, defect) for i in range(size)]


def kill_at_random(
    place: Place,
    folder: Path,
    *,
    seed: int,
    kills: int,
    clients: int = 3,
    kind: str = "pure",
    defect: str | None = None,
) -> Tally:
    """Kill one of several clients at a random instant, look at the ledger, start it again; at last finish."""
    luck = random.Random(seed)
    several = crowd(place, folder, clients, kind=kind, defect=defect)
    witness = Witness(place, several)
    done = 0
    try:
        for client in several:
            client.start()
        while done < kills:
            victim = luck.choice(several)
            if luck.random() < 0.75:  # the rest of the kills hit while the ledger is opened
                victim.wait_until_ready()
            time.sleep(luck.uniform(0, WINDOW))
            done += victim.end(kill=True)
            witness.look()
            victim.start()
    finally:
        for client in several:
            client.end(kill=True)
    witness.look()
    finish(witness, several)
    return Tally(kills=done, charges=witness.charges, replies=len(witness.told), looks=witness.looks)


def kill_at_points(
    place: Place,
    folder: Path,
    points: tuple[str, ...],
    *,
    seed: int,
    times: int,
    kind: str = "pure",
    defect: str | None = None,
) -> Tally:
    """Let a client die at each named point, several times; each time look at the ledger and start again."""
    luck = random.Random(seed)
    (client,) = several = crowd(place, folder, 1, kind=kind, defect=defect)
    witness = Witness(place, several)
    done = 0
    for _ in range(times):
        for point in points:
            client.start(point=point, visit=luck.randint(1, 3), asked=8)
            assert client.end(kill=False), f"the fail point {point!r} was not reached"
            done += 1
            witness.look()
    finish(witness, several)
    return Tally(kills=done, charges=witness.charges, replies=len(witness.told), looks=witness.looks)


def kill_the_server(
    server: Server, place: Place, folder: Path, *, seed: int, kills: int, clients: int = 3
) -> Tally:
    """Kill the database server below clients that go on asking; start it again, look at the ledger."""
    luck = random.Random(seed)
    several = crowd(place, folder, clients)
    witness = Witness(place, several)
    try:
        for client in several:
            client.start(stubborn=True)
        for _ in range(kills):
            luck.choice(several).wait_until_ready()
            time.sleep(luck.uniform(0, 10 * WINDOW))
            server.kill()
            server.start()
            witness.look()
            for client in several:
                if not client.alive:
                    client.end(kill=False)
                    client.start(stubborn=True)
    finally:
        for client in several:
            client.end(kill=True)
    witness.look()
    finish(witness, several)
    return Tally(kills=kills, charges=witness.charges, replies=len(witness.told), looks=witness.looks)


def finish(witness: Witness, several: list[Client]) -> None:
    """Let one client live until the budget is spent, which it then is exactly; ask for all answers again."""
    several[0].start(asked=1 + int(witness.cap / PRICE))
    assert not several[0].end(kill=False)
    witness.look()
    assert witness.spent == witness.cap, f"{witness.spent} could be spent of a cap of {witness.cap}"
    witness.ask_all_again()
