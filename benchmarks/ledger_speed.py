"""How many charges a second a ledger makes durable, beside bare commits of SQLite in the same folder.

Goals: one process makes at least 150 charges a second durable on SQLite, pure and zCDP; a ledger of 100,000
entries is verified within 5 s. A batch under an (epsilon, delta) cap is priced once, and timed apart.
"""

import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from timing import finish, quick, show, turns, verdict

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.postgres import Server, binaries

import sfumato as sf
from sfumato.ledger import SqlLedger
from sfumato.ledger.chain import Act, Head, Record, enter, read_numbers, standing_of, total_of
from sfumato.question import Question

RATE, CHECK = 150, 5.0
CLIENTS = 8
PUBLIC = {"neighbours": "add-remove"}
KINDS: dict[str, tuple[object, object]] = {
    "pure": (sf.PureDP(8000), sf.Count(budget=sf.PureDP(0.001), **PUBLIC)),
    "zCDP": (sf.ZCDP(8000), sf.Count(budget=sf.ZCDP(0.001), **PUBLIC)),
}


def bare(folder: Path) -> Callable[[], None]:
    """One durable commit of a row of the size of an entry."""
    database = sqlite3.connect(folder / "bare.db", isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, text TEXT)")

    def commit() -> None:
        database.execute("BEGIN IMMEDIATE")
        database.execute("INSERT INTO rows (text) VALUES (?)", ("x" * 1000,))
        database.execute("COMMIT")

    return commit


def repeat(act: Callable[[], object], times: int) -> Callable[[], None]:
    def run() -> None:
        for _ in range(times):
            act()

    return run


def rates(folder: Path, times: int, repeats: int, short: bool) -> None:
    """Charges of one process."""
    acts = {"bare SQLite commit": repeat(bare(folder), times)}
    for kind, (cap, query) in KINDS.items():
        ledger = SqlLedger(f"sqlite:///{folder / kind}.db", anchor=folder / f"{kind}.anchor")
        ledger.open("data", cap=cap, neighbours="add-remove")
        account = ledger.account("data")
        acts[f"charge, {kind}"] = repeat(lambda account=account, query=query: account.charge(query), times)
    middle = {name: statistics.median(taken) / times for name, taken in turns(acts, repeats).items()}
    bare_time = middle["bare SQLite commit"]
    rows = []
    for name, took in middle.items():
        goal = verdict(1 / took >= RATE, short=short) if name.startswith("charge") else ""
        rows.append((name, f"{1 / took:,.0f}", f"{took * 1e3:.2f}", f"{took / bare_time:.1f}", goal))
    show("durable, one process, SQLite", ("act", "per second", "ms", "x bare", f"goal {RATE}/s"), rows)


def spend(url: str, anchor: str, times: int, pipe) -> None:
    account = SqlLedger(url, anchor=anchor).account("data")
    query = KINDS["pure"][1]
    pipe.send("ready")
    pipe.recv()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        account.charge(query)
        taken.append(time.perf_counter() - start)
    pipe.send(taken)


def crowd(url: str, anchor: str, times: int) -> tuple[float, list[float]]:
    """Charges a second of all processes together, and the seconds of each charge."""
    SqlLedger(url, anchor=anchor).open("data", cap=KINDS["pure"][0], neighbours="add-remove")
    context = get_context("spawn")
    pipes = []
    for _ in range(CLIENTS):
        ours, theirs = context.Pipe()
        context.Process(target=spend, args=(url, anchor, times, theirs), daemon=True).start()
        pipes.append(ours)
    for pipe in pipes:
        pipe.recv()
    start = time.perf_counter()
    for pipe in pipes:
        pipe.send("go")
    taken = [seconds for pipe in pipes for seconds in pipe.recv()]
    return CLIENTS * times / (time.perf_counter() - start), taken


def crowds(folder: Path, times: int) -> None:
    """Many processes at once, on each database that there is."""
    rows = []
    places = {"SQLite": f"sqlite:///{folder / 'crowd.db'}"}
    server = Server()
    try:
        if binaries() is not None and find_spec("psycopg") is not None:
            server.start()
            places["PostgreSQL"] = server.database()
        for name, url in places.items():
            rate, taken = crowd(url, str(folder / f"{name}.anchor"), times)
            p50, p99 = np.quantile(taken, (0.5, 0.99))
            longest = max(taken)
            rows.append(
                (name, f"{rate:,.0f}", f"{p50 * 1e3:.1f}", f"{p99 * 1e3:.1f}", f"{longest * 1e3:.0f}")
            )
    finally:
        server.stop()
    title = f"durable, {CLIENTS} processes on {os.cpu_count()} cores, {times} charges each"
    show(title, ("database", "per second", "p50 ms", "p99 ms", "longest ms"), rows)
    if len(places) == 1:
        print("PostgreSQL: no server, or no psycopg, is installed")


def batches(folder: Path, size: int, repeats: int) -> None:
    """A batch of questions under an (epsilon, delta) cap: priced by its own proof, then recorded."""
    frame = {"x": np.arange(1000) % 100}
    schema = {"x": sf.Field(bounds=(0, 100), nulls="drop")}
    people = sf.Dataset(frame, unit="row", neighbours="add-remove", schema=schema)
    cap = sf.ApproxDP(8000, 0.01)
    ledger = SqlLedger(f"sqlite:///{folder / 'batch.db'}", anchor=folder / "batch.anchor")
    session = sf.Session(people, budget=cap, ledger=ledger.open("data", cap=cap, neighbours="add-remove"))
    account = ledger.account("data")
    rows = []
    for n in range(repeats):
        # Another epsilon each time, so that no price is remembered.
        query = sf.Count(column="x", budget=sf.PureDP(0.01 + n / 10_000))
        start = time.perf_counter()
        batch = session.price([Question(query=query)] * size, within=sf.ApproxDP(2, 1e-6))
        account.charge(batch, request=f"r{n}", digest="d")
        first = time.perf_counter() - start
        start = time.perf_counter()
        account.charge(batch, request=f"r{n}", digest="d")
        rows.append((first, time.perf_counter() - start))
    first, again = (statistics.median(column) for column in zip(*rows, strict=True))
    title = f"a batch of {size} counts, (epsilon, delta) cap, priced once"
    times = [("priced and charged", f"{first * 1e3:.1f}"), ("asked again", f"{again * 1e3:.1f}")]
    show(title, ("act", "ms"), times)


def long_ledger(folder: Path, number: int) -> SqlLedger:
    """A ledger with so many entries, written by its own rules in one transaction."""
    path = folder / "long.db"
    ledger = SqlLedger(f"sqlite:///{path}", anchor=folder / "long.anchor")
    cap, query = KINDS["pure"]
    account = ledger.open("data", cap=cap, neighbours="add-remove")
    account.charge(query)
    *_, last = ledger.entries()
    standing, person, head = standing_of(last, None), total_of(last), ledger.head
    ledger.close()
    act = Act("spend", "data", last.payload, "analyst", price=read_numbers(last.price)[1])
    records = []
    for _ in range(number - head.sequence):
        record, standing, person = enter(act, standing, person, before=head, time=last.time)
        head = Head(record.sequence, record.hash)
        records.append(record)
    database = sqlite3.connect(path)
    names = ", ".join(Record._fields)
    places = ", ".join("?" * len(Record._fields))
    database.executemany(f"INSERT INTO ledger_entries ({names}) VALUES ({places})", records)
    database.commit()
    database.close()
    return ledger


def check(folder: Path, number: int, short: bool) -> None:
    """Every entry worked out again."""
    ledger = long_ledger(folder, number)
    start, worked = time.perf_counter(), time.process_time()
    report = ledger.verify()
    took, worked = time.perf_counter() - start, time.process_time() - worked
    assert report.sound
    assert report.entries == number
    goal = verdict(took <= CHECK, short=short)
    heads = ("entries", "seconds", "CPU seconds", f"goal {CHECK:.0f} s")
    show("verify", heads, [(f"{number:,}", f"{took:.2f}", f"{worked:.2f}", goal)])


def main() -> None:
    short = quick(__doc__)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rates(folder, times=20 if short else 200, repeats=2 if short else 7, short=short)
        batches(folder, size=5 if short else 20, repeats=1 if short else 5)
        crowds(folder, times=5 if short else 100)
        check(folder, 1_000 if short else 100_000, short)
    finish()


if __name__ == "__main__":
    main()
