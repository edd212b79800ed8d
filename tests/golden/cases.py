"""What the golden file records: seeded releases of everything, and exit statuses of every command.

`python -m tests.golden.cases` writes the file again. Do that only for an issue that says which values change.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from tests.cli.people import PLAN, people
from tests.cli.running import called
from tests.contracts import engines
from tests.engines import mapping

import sfumato as sf
from sfumato.laws import SeededBits
from sfumato.query import encode

FILE = Path(__file__).with_name("golden.json")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SEED = 11
BUDGETS = {"epsilon": sf.PureDP(1), "rho": sf.ZCDP(0.125), "epsilon and delta": sf.ApproxDP(1, 1e-6)}
# What is drawn for groups and for people with several rows: each kind of law once.
SOME = ("count", "sum", "mean", "variance", "histogram of bins", "most common", "quantiles by auto")
FOUND = ("count", "mean", "quantiles by joint")
ON_ENGINES = ("count", "mean", "histogram of text", "quantiles by recursive", "a median")


def _plain(value: Any) -> Any:
    """A number, array or tuple of them in the types of JSON; floats as they are."""
    if isinstance(value, tuple | list | np.ndarray):
        return [_plain(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value


def _asked(ask: Callable[[], Any]) -> Any:
    """An answer, or the kind of its refusal."""
    try:
        return ask()
    except sf.SfumatoError as refusal:
        return {"refused": type(refusal).__name__}


def record(release: Any) -> Any:
    """What a release is: integers as text, because other readers of JSON round them."""
    if hasattr(release, "releases"):
        return {json.dumps(encode(key)): record(part) for key, part in release.releases.items()}
    return {
        "outcome": " ".join(map(str, release.outcome)),
        "event": release.event.to_dict(),
        "cost": release.cost.to_dict(),
        "value": _plain(release.value),
        "interval": _asked(lambda: _plain(release.interval(0.95))),
        "population interval": _asked(lambda: _plain(release.population_interval(0.95))),
    }


def _answer(data: sf.Dataset, budget: Any, question: sf.Question) -> Any:
    with sf.Session(data, budget=budget, bits=SeededBits(SEED)) as session:
        return record(session.answer_all([question])[0])


def _one(name: str, relation: str, kind: str) -> Any:
    query = replace(engines.LINES[name].query, budget=BUDGETS[kind])
    data = engines.dataset(mapping(engines.people()), relation)
    return _asked(lambda: _answer(data, BUDGETS[kind], sf.Question(query=query)))


def _by_team(name: str, relation: str) -> Any:
    data = engines.dataset(mapping(engines.people()), relation)
    return _answer(data, engines.BUDGET, sf.Question(query=engines.LINES[name].query, by=("team",)))


def _found(name: str, relation: str) -> Any:
    budget = sf.ApproxDP(4, 0.2)
    data = engines.dataset(mapping(engines.people()), relation)
    query = replace(engines.LINES[name].query, budget=budget)
    return _answer(data, budget, sf.Question(query=query, by=("team",), groups=sf.Groups(keys="private")))


def _by_people(name: str, relation: str) -> Any:
    frame = mapping(engines.people()) | {"person": np.arange(engines.SIZE) // 2}
    data = sf.Dataset(frame, unit="person", rows_per_unit=2, neighbours=relation, schema=engines.SCHEMA)
    return _answer(data, engines.BUDGET, sf.Question(query=engines.LINES[name].query))


def on_engine(engine: str) -> Any:
    """A batch of questions of the same table in one engine."""
    data = engines.dataset(engines.native(engine, engines.people()), "add-remove")
    asked = [
        sf.Question(query=engines.LINES[name].query, by=by) for name in ON_ENGINES for by in ((), ("member",))
    ]
    with sf.Session(data, budget=sf.PureDP(len(asked)), bits=SeededBits(SEED)) as session:
        return [record(release) for release in session.answer_all(asked)]


def drawn() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The name of each case in memory, and what makes it."""
    for name, line in engines.LINES.items():
        for relation in line.relations:
            for kind in BUDGETS:
                yield f"{name}, {relation}, {kind}", partial(_one, name, relation, kind)
    for relation in engines.RELATIONS:
        for name in SOME:
            yield f"{name} by team, {relation}", partial(_by_team, name, relation)
            yield f"{name} of people, {relation}", partial(_by_people, name, relation)
        for name in FOUND:
            yield f"{name} by found teams, {relation}", partial(_found, name, relation)


# --- commands -----------------------------------------------------------------------------------------

LEDGER = ("ledger", "open", "visits", "--neighbours", "add-remove", "--unit", "row", "--epsilon", "1")
QUASI = ("--quasi", "age,sex,postcode", "--keep", "admitted,illness,cost", "--drop", "name,insurance")
# In this order, in one folder: later ones read what earlier ones wrote.
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("--version",),
    ("nonsense",),
    ("plan", "new", "people.csv", "-o", "new.toml"),
    ("plan", "check", "new.toml"),
    ("plan", "check", "plan.toml"),
    ("plan", "preview", "plan.toml", "--rows", "400"),
    ("plan", "schema"),
    ("choose-epsilon", "mean", "--error", "250", "--rows", "20000", "--bounds", "0", "250000"),
    ("release", "missing.toml", "-o", "out"),
    ("release", "plan.toml", "-o", "out"),
    ("release", "plan.toml", "-o", "out"),
    ("release", "large.toml", "-o", "large"),
    ("report", "out", "--force"),
    ("ledger", "show"),
    ("ledger", "show", "--ledger", "nowhere.db"),
    ("ledger", "verify"),
    LEDGER,
    ("ledger", "renew", "visits", "--epsilon", "1", "--reason", "a year later"),
    ("ledger", "allow", "visits", "alice", "--epsilon", "0.5"),
    ("ledger", "admit", "visits", "alice"),
    ("ledger", "retire", "visits", "--reason", "done"),
    ("ledger", "backup", "copy.jsonl"),
    ("ledger", "restore", "copy.jsonl", "--ledger", "again.db"),
    ("ledger", "export", "all.json"),
    ("ledger", "begin-anew"),
    ("ledger", "begin-anew", "--ledger", "nowhere.db"),
    ("audit", "--list"),
    ("audit", "--only", "count", "--quick", "--jobs", "1"),
    ("audit", "nothing-of-this-name"),
    ("anonymize", "patients.csv", *QUASI, "--k", "5", "-o", "anonymous"),
    ("anonymize", "patients.csv", "--quasi", "age", "--k", "1000000", "-o", "nobody"),
    ("anonymity", "measure", "patients.csv", "--quasi", "age,sex"),
    ("lab", "list"),
    ("lab", "figure", "nothing"),
    ("lab", "figure", "1", "--quick", "-o", "figure"),
    ("lab", "all", "--nonsense"),
    ("demo", "-o", "demo"),
)


def statuses() -> list[list[Any]]:
    """The exit status of every command."""
    here = Path.cwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            Path("people.csv").write_text(people(), "utf-8")
            Path("plan.toml").write_text(PLAN, "utf-8")
            Path("large.toml").write_text(PLAN.replace("epsilon = 1\n", "epsilon = 2\n", 1), "utf-8")
            shutil.copy(EXAMPLES / "anonymity" / "patients.csv", "patients.csv")
            return [[" ".join(command), called(*command)[0]] for command in COMMANDS]
        finally:
            os.chdir(here)


def golden() -> dict[str, Any]:
    """All of it."""
    return {
        "drawn": {name: make() for name, make in drawn()},
        "engines": on_engine("numpy"),
        "commands": statuses(),
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(golden(), indent=0, ensure_ascii=False) + "\n", "utf-8")
