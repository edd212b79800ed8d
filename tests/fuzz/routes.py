"""What an observer sees of one of the two tables: answers, refusals, charges, warnings, logs, statuses."""

import json
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.cli.people import no_charts
from tests.fuzz.cases import Case, Side
from tests.fuzz.plans import plan_text
from tests.fuzz.tables import Void, is_file, native, needed, write
from typer.testing import CliRunner

import sfumato as sf
from sfumato.cli.app import app
from sfumato.cli.failures import told
from sfumato.data.dataset import Dataset
from sfumato.errors import SfumatoError
from sfumato.ledger.sql import SqlLedger


@dataclass
class Observation:
    """All that is seen of one run, apart from the numbers that were drawn."""

    # The type and the words of what was raised; the words of faults stay unread.
    error: tuple[str, str] | None = None
    # Whether it was an error that the library makes on purpose.
    deliberate: bool = True
    status: int | None = None
    charges: tuple[Any, ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()
    logs: str = ""
    # What was published, with every drawn number taken out.
    published: Any = None
    # All text that left the library, to look for values of the data in.
    words: str = ""
    # The data set that was read, and the questions as they were put to it.
    data: Any = None
    questions: tuple[sf.Question, ...] = ()


def observe(case: Case, side: Side, folder: Path) -> Observation:
    """Run a case on one of its tables, in a folder of its own."""
    folder.mkdir()
    seen = Observation()
    run = {"session": _by_session, "ledger": _by_ledger, "command": _by_command}[case.route]
    if is_file(case):
        write(case, side, folder)
    with _watched(seen), patch.dict(os.environ, {"XDG_STATE_HOME": str(folder / "state")}):
        run(case, side, folder, seen)
    seen.words += "\n".join((*(text for _, text in seen.warnings), seen.logs))
    if seen.error is not None:
        # Messages name files by their paths, and the two tables are in two folders.
        seen.error = seen.error[0], seen.error[1].replace(str(folder), "folder")
    return seen


@contextmanager
def _watched(seen: Observation) -> Iterator[None]:
    """Record warnings, log records, and whatever is written to standard error, by other languages too."""
    handler = _Kept()
    root = logging.getLogger()
    root.addHandler(handler)
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
            root.removeHandler(handler)
        file.seek(0)
        written = file.read().decode(errors="replace")
    seen.warnings = tuple((each.category.__name__, str(each.message)) for each in caught)
    seen.logs = "\n".join([*handler.lines, written])


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.getMessage()}")


@contextmanager
def _caught(seen: Observation) -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        if isinstance(error, Void):
            raise
        seen.deliberate = isinstance(error, SfumatoError)
        seen.error = type(error).__name__, str(error)
        if seen.deliberate:
            seen.words += f"{error}\n"


def _by_session(case: Case, side: Side, folder: Path, seen: Observation) -> None:
    with _caught(seen):
        data = _dataset(case, side, folder)
        facts = {"neighbours": case.neighbours, "dataset": "people", "unit": case.unit}
        ledger = sf.MemoryLedger(case.cap, **facts)
        try:
            _answered(case, data, seen, ledger=ledger)
        finally:
            seen.charges = tuple(map(_charge, ledger.entries))


def _dataset(case: Case, side: Side, folder: Path) -> Dataset:
    names = needed(case) if is_file(case) else [column.name for column in case.columns]
    return Dataset(native(case, side, folder), name="people", **case.facts(names))


def _by_ledger(case: Case, side: Side, folder: Path, seen: Observation) -> None:
    with _caught(seen):
        data = _dataset(case, side, folder)
        with SqlLedger(f"sqlite:///{folder / 'ledger.db'}", anchor=str(folder / "anchor")) as books:
            account = books.open("people", cap=case.cap, neighbours=case.neighbours, unit=case.unit)
            try:
                _answered(case, data, seen, ledger=account, request="first" if case.seed % 2 else None)
            finally:
                seen.charges = _charges(books)


def _answered(
    case: Case, data: Dataset, seen: Observation, *, ledger: Any, request: str | None = None
) -> None:
    questions = tuple(case.question(ask) for ask in case.asks)
    session = sf.Session(data, budget=case.cap, ledger=ledger)
    answers = session.answer_all(questions, request=request)
    # What is said about an answer comes after the charge too.
    texts = [f"{answer}\n{answer._repr_html_()}" for answer in answers]
    seen.data, seen.questions = data, questions
    seen.published = [type(answer).__name__ for answer in answers]
    if not _names_keys(case):
        seen.words += "\n".join(texts)


def _by_command(case: Case, side: Side, folder: Path, seen: Observation) -> None:
    (folder / "plan.toml").write_text(plan_text(case), "utf-8", errors="surrogatepass")
    read: list[Dataset] = []
    reading = Dataset.reading

    def recorded(data: Dataset, *about: Any) -> Any:
        read.append(data)
        return reading(data, *about)

    here = Path.cwd()
    os.chdir(folder)
    try:
        with patch("sfumato.report.html", no_charts), patch.object(Dataset, "reading", recorded):
            result = CliRunner().invoke(app, ["release", "plan.toml", "-o", "out", "--json"])
        seen.status, words = result.exit_code, result.stderr
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            seen.status, message = told(result.exception)
            words += message
            seen.deliberate = isinstance(result.exception, SfumatoError)
            seen.error = type(result.exception).__name__, message
        seen.words += words
        seen.logs += words
        if Path("ledger.db").exists():
            with SqlLedger("sqlite:///ledger.db") as books:
                seen.charges = _charges(books)
        if seen.status == 0:
            left_out = _DRAWN | ({"results"} if _draws_keys(case) else set())
            seen.published = _skeleton(json.loads(result.stdout), left_out)
            if not _names_keys(case):
                seen.words += result.stdout
            plan = sf.plan.read("plan.toml")
            rows = len(case.table(side)) if plan.size_is_public else None
            seen.data, seen.questions = read[0], tuple(sf.plan.questions(plan, rows=rows))
    finally:
        os.chdir(here)


def _names_keys(case: Case) -> bool:
    """Whether keys that the data hold may be published, for a delta that is paid."""
    return any(ask.groups is not None and ask.groups.get("keys") == "private" for ask in case.asks)


def _draws_keys(case: Case) -> bool:
    """Whether it is drawn which keys are published."""
    return _names_keys(case) or any(ask.groups is not None and "top" in ask.groups for ask in case.asks)


def _charge(entry: Any) -> tuple[Any, ...]:
    return entry.dataset, entry.statistic, entry.column, str(entry.event), entry.price


def _charges(books: SqlLedger) -> tuple[Any, ...]:
    """What the entries say of charges, without what must differ: fingerprints, times and hashes."""
    records = [record._asdict() for record in books.entries() if record.kind == "spend"]
    differing = ("fingerprint", "time", "previous", "hash")
    return tuple({name: fact for name, fact in record.items() if name not in differing} for record in records)


# Of a record in JSON: what was drawn, and what the ledger chains it by.
_DRAWN = {"value", "low", "high", "choice", "release_sha256", "hash", "id"}


def _skeleton(record: Any, left_out: set[str]) -> Any:
    if isinstance(record, dict):
        return {name: _skeleton(value, left_out) for name, value in record.items() if name not in left_out}
    if isinstance(record, list):
        return [_skeleton(value, left_out) for value in record]
    return record
