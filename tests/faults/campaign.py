"""The full campaign against the ledger: storms, kills and damage, on SQLite and on PostgreSQL.

    python tests/faults/campaign.py --kills 500 --jobs 2

Each part has a ledger of its own. A part raises at the first lost spend, refund, request with two answers,
overspend, or chain that does not verify, and the campaign ends with exit code 1.
"""

import argparse
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.faults import damage, storm
from tests.faults.births import kill_at_birth
from tests.faults.clients import DATASET, NEIGHBOURS, Place, budget
from tests.faults.kills import Tally, kill_at_points, kill_at_random, kill_the_server
from tests.postgres import MISSING, Server, binaries

from sfumato.ledger.failpoints import FAIL_POINTS

PART = 25  # kills of one ledger: it stays short, and is verified whole after each of them
DEATHS = 50  # at each fail point
CLIENTS, SPENDS = 8, 200
FLIPS = 200
SERVER_KILLS = 10

Run = Callable[[Place, Path], Tally]


@dataclass(frozen=True)
class Part:
    """A piece of the campaign, and the line of the report that it counts for."""

    line: str
    run: Run
    url: str | None = None  # of an empty database on the server; else a SQLite file is made


def opened(place: Place, charges: int, kind: str = "pure") -> Place:
    with place.open() as ledger:
        ledger.open(DATASET, cap=budget(kind, charges), neighbours=NEIGHBOURS)
    return place


def kills(seed: int, number: int, place: Place, folder: Path) -> Tally:
    kind = ("pure", "zcdp")[seed % 2]
    return kill_at_random(opened(place, 20 * number, kind), folder, seed=seed, kills=number, kind=kind)


def deaths(seed: int, point: str, times: int, place: Place, folder: Path) -> Tally:
    return kill_at_points(opened(place, 4 * times), folder, (point,), seed=seed, times=times)


def birth(seed: int, point: str | None, place: Place, folder: Path) -> Tally:
    return kill_at_birth(place, folder, seed=seed, point=point)


def server_kills(number: int, place: Place, folder: Path) -> Tally:
    server = Server()
    server.start()
    try:
        own = opened(Place(server.database(), place.anchor), 40 * number)
        return kill_the_server(server, own, folder, seed=1, kills=number)
    finally:
        server.stop()


def storm_data_set(kind: str, place: Place, folder: Path) -> Tally:
    return Tally(charges=storm.storm_a_data_set(place, folder, clients=CLIENTS, asked=SPENDS, kind=kind))


def storm_analysts(whole: Fraction, place: Place, folder: Path) -> Tally:
    spent = storm.storm_analysts(place, folder, clients=CLIENTS, asked=SPENDS, whole=whole)
    return Tally(charges=sum(spent.values()))


def storm_request(place: Place, folder: Path) -> Tally:
    return Tally(charges=storm.storm_one_request(place, folder, clients=CLIENTS, asked=SPENDS // 4))


def flips(place: Place, folder: Path) -> Tally:
    """One bit of a row, and one bit of the file, each on a copy; unnoticed only where nothing is changed."""
    luck = random.Random(1)
    (folder / "sound").mkdir()
    damage.fill(damage.at(folder / "sound"), 40)
    before = damage.contents(damage.at(folder / "sound"))
    for n in range(2 * FLIPS):
        copy = damage.copied(folder / "sound", folder / "copy")
        if n % 2:
            damage.attack(copy / "ledger.db", damage.flip(damage.ENTRIES, "sequence", luck))
        else:
            damage.flip_in_file(copy / "ledger.db", luck)
        words = damage.noticed(damage.at(copy))
        assert words or (not n % 2 and damage.contents(damage.at(copy)) == before), (
            f"flip {n} was not noticed"
        )
        damage.still_spends(damage.at(copy))
    return Tally(looks=2 * FLIPS)


def place(server: Server | None) -> str | None:
    return None if server is None else server.database()


def parts(number: int, server: Server | None) -> Iterator[Part]:
    """SQLite in full; PostgreSQL a fifth of it, and its server killed too."""
    for where, name, share in ((None, "SQLite", 1), (server, "PostgreSQL", 5)):
        if name == "PostgreSQL" and where is None:
            continue
        pieces = max(1, number // share // PART)
        sizes = [number // share // pieces + (i < number // share % pieces) for i in range(pieces)]
        for seed, size in enumerate(sizes):
            yield Part(f"{name}: kills at random instants", partial(kills, seed, size), place(where))
        for seed, point in enumerate(FAIL_POINTS):
            yield Part(
                f"{name}: deaths at {point}", partial(deaths, seed, point, DEATHS // share), place(where)
            )
        for seed in range(DEATHS // share):
            yield Part(f"{name}: kills while a ledger is made", partial(birth, seed, None), place(where))
        for kind in ("pure", "zcdp"):
            yield Part(f"{name}: storm on a data set, {kind}", partial(storm_data_set, kind), place(where))
        for whole, words in ((Fraction(1), "their caps"), (Fraction(3, 5), "the cap of the data set")):
            yield Part(f"{name}: storm of analysts, {words}", partial(storm_analysts, whole), place(where))
        yield Part(f"{name}: storm on the same requests", storm_request, place(where))
    yield Part("SQLite: flipped bits", flips)
    if server is not None:
        yield Part("PostgreSQL: kills of the server", partial(server_kills, SERVER_KILLS))


def perform(part: Part) -> Tally:
    with tempfile.TemporaryDirectory(prefix="faults-", ignore_cleanup_errors=True) as folder:
        path = Path(folder)
        url = part.url or f"sqlite:///{path / 'ledger.db'}"
        return part.run(Place(url, str(path / "anchor")), path)


def report(lines: dict[str, Tally], seconds: float) -> None:
    print(f"{'':56}{'kills':>8}{'charges':>9}{'replies':>9}{'verified':>9}")
    for line, tally in lines.items():
        print(f"{line:56}{tally.kills:8}{tally.charges:9}{tally.replies:9}{tally.looks:9}")
    whole = sum(lines.values(), Tally())
    print(f"{'all':56}{whole.kills:8}{whole.charges:9}{whole.replies:9}{whole.looks:9}")
    print(f"\n{seconds:.0f} s; lost 0, refunded 0, overspent 0, requests with two answers 0, chains broken 0")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=500, help="at random instants, on SQLite")
    parser.add_argument("--jobs", type=int, default=2, help="ledgers that are hurt at the same time")
    parser.add_argument("--only", default="", help="parts whose line has these words")
    asked = parser.parse_args()
    start = time.monotonic()
    lines: dict[str, Tally] = {}
    with ExitStack() as stack:
        server = None
        if binaries() is None:
            print(f"PostgreSQL is left out: {MISSING}")
        else:
            server = Server()
            stack.callback(server.stop)
            server.start()
        chosen = [part for part in parts(asked.kills, server) if asked.only in part.line]
        if not chosen:
            sys.exit(f"no part has the words {asked.only!r}")
        # Processes, because the standard library's own processes are not to be started by several threads.
        pool = stack.enter_context(ProcessPoolExecutor(asked.jobs, mp_context=get_context("spawn")))
        running = {pool.submit(perform, part): part for part in chosen}
        lines = {part.line: Tally() for part in chosen}
        for number, done in enumerate(as_completed(running), 1):
            part = running[done]
            if (fault := done.exception()) is not None:
                pool.shutdown(wait=False, cancel_futures=True)
                traceback.print_exception(fault)
                sys.exit(f"{part.line}: {fault}")
            lines[part.line] += done.result()
            if sys.stderr.isatty():
                print(f"\r{number} of {len(chosen)} parts", end="", file=sys.stderr)
    report(lines, time.monotonic() - start)


if __name__ == "__main__":
    main()
