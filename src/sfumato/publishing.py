"""From a plan and its file to what is published: read, charge, draw, store the outcome, and render it."""

import hashlib
import platform
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from sfumato import __version__
from sfumato.asked import ask_all
from sfumato.batch import Batch
from sfumato.data.dataset import Dataset
from sfumato.errors import LedgerDamaged, SchemaMismatch, SfumatoError
from sfumato.outcome import require_storable
from sfumato.privacy import Amount, ApproxDP
from sfumato.privacy.records import short_text
from sfumato.publication import Publication
from sfumato.question import Question
from sfumato.session import CHANGED, Session

if TYPE_CHECKING:
    from sfumato.ledger.account import Account
    from sfumato.ledger.sql import SqlLedger
    from sfumato.plan import Plan

__all__ = ["Publication", "Published", "publish"]

# What a receipt names the versions of: all that decides numbers.
_PACKAGES = ("numpy", "scipy", "polars", "sqlalchemy", "cryptography", "dp-accounting")
_ENGINES = {"duckdb": ("duckdb",), "spark": ("pyspark",)}


@dataclass(frozen=True)
class Published:
    """A publication with its bytes, its receipt, and what the curator should know.

    Warnings follow from public facts. Notices follow from the content of the data and are for the curator's
    eyes
    alone: they must not be published.
    """

    publication: Publication
    reply: bytes
    receipt: dict[str, Any]
    fresh: bool
    warnings: tuple[str, ...]
    notices: tuple[str, ...]
    remaining: Amount


def publish(
    plan: "Plan",
    *,
    ledger: str | None = None,
    analyst: str | None = None,
    request: str | None = None,
    progress: Callable[[str], None] = lambda step: None,
    before_charge: Callable[[str], None] = lambda request: None,
) -> Published:
    """Reads the file of a plan, charges the plan as one batch, draws the answers and stores the outcome.

    Guarantee:
        Nothing is charged for a plan or a file that cannot be used. The charge is durable before anything is
        computed from the data. A request is charged once and has one outcome, which is stored before anything
        is made of it: the same request returns the same bytes, whatever the file holds by then.

    Args:
        plan: a plan, as `plan.read` gives it.
        ledger: the address of the ledger, in place of that of the plan.
        analyst: who is charged, in place of the name in the plan.
        request: a name for this release; unless given, it follows from the questions and the edition of the
            plan, and from nothing in the data.
        progress: called with a few words before each step.
        before_charge: called with the name of the request; what it raises comes before the charge.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import sfumato as sf
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "people.csv").write_text("age\\n31\\n45\\n60\\n")
    >>> _ = (folder / "plan.toml").write_text('''
    ... version = 1
    ... title = "Ages"
    ... data = { path = "people.csv", name = "people", unit = "row", neighbours = "add-remove" }
    ... budget.epsilon = 1
    ... columns.age = { type = "integer", bounds = [0, 120] }
    ... queries = [{ statistic = "mean", column = "age" }]
    ... ''')
    >>> sf.publish(sf.plan.read(folder / "plan.toml")).publication.price
    Amount(epsilon=1.0)
    """

    url, analyst = ledger or plan.ledger_url, analyst or plan.ledger.analyst
    digest = plan.request_digest
    request = request or _request(digest, plan.data.name, analyst)
    stored = _earlier(plan, url, analyst, request, digest, before_charge)
    return stored or _drawn(plan, url, analyst, request, digest, progress, before_charge)


def _earlier(
    plan: "Plan", url: str, analyst: str, request: str, digest: str, before: Callable[[str], None]
) -> Published | None:
    """What was published by this request before, whatever the file holds now; None if it is new."""
    from sfumato.data.tables import table_fingerprint
    from sfumato.ledger.sql import SqlLedger

    if not SqlLedger.exists(url):
        return None
    with SqlLedger(url) as books:
        if plan.data.name not in books.datasets():
            return None
        account = books.account(plan.data.name, analyst=analyst)
        stored = account.answered(request, digest)
        if stored is None:
            return None
        before(request)
        try:
            content = table_fingerprint(plan.data_path, books.key)
        except (SfumatoError, OSError):
            content = ""
        changed = account.content(request) not in (None, content)
        return _published(plan, account, stored, fresh=False, notices=(CHANGED,) if changed else ())


def _drawn(
    plan: "Plan",
    url: str,
    analyst: str,
    request: str,
    digest: str,
    progress: Callable[[str], None],
    before_charge: Callable[[str], None],
) -> Published:
    """Read the data, charge, draw and store the outcome, and publish it."""
    from sfumato.data.file_faults import shown_path
    from sfumato.data.files import FileFault
    from sfumato.data.tables import table_fingerprint, table_stamp
    from sfumato.plan import questions

    progress("reading the data")
    before = table_stamp(plan.data_path)
    with ThreadPoolExecutor(1) as pool:
        # What needs no data is found while the threads of the reader parse the file.
        ahead = pool.submit(_ahead, plan)
        data = _data(plan)
        rows = _public_rows(plan, data)
        listed = questions(plan, rows=rows)
        budget = plan.budget.value
        within = budget if isinstance(budget, ApproxDP) else None
        facts = _rehearsed(plan, data, listed, rows, request, analyst, within)
        before_charge(request)
        progress("opening the ledger")
        from sfumato.ledger.sql import SqlLedger  # by now loaded

        with SqlLedger(url) as books:
            content = table_fingerprint(plan.data_path, books.key)
            if table_stamp(plan.data_path) != before:
                # What was read would be charged as what is there now.
                raise FileFault(shown_path(plan.data_path), "changed")
            notices = _other_names(books, plan, content)
            warnings = _open(books, plan)
            account = books.account(data.name, analyst=analyst)
            with Session(data, budget=budget, ledger=account) as session:
                fresh = account.entry(request) is None
                # An interval that is calibrated twice at the same time takes longer than to wait.
                wait([ahead])
                progress("drawing the answers")
                stored = session.answer_once(
                    listed,
                    request=request,
                    digest=digest,
                    facts=facts,
                    within=within,
                    fingerprint=content,
                )
            if fresh and table_stamp(plan.data_path) != before:
                notices += ("the data were changed while the answers were drawn: it is not sure of which",)
            return _published(plan, account, stored, fresh=fresh, warnings=warnings, notices=notices)


def _rehearsed(
    plan: "Plan",
    data: Dataset,
    listed: Sequence[Question],
    rows: int | None,
    request: str,
    analyst: str,
    within: ApproxDP | None,
) -> dict[str, Any]:
    """The public facts of a release, after all that can be refused without a ledger: nothing is made then."""
    from sfumato.ledger.terms import opening

    opening(**_terms(plan))
    short_text("request", request)
    short_text("analyst", analyst)
    with Session(data, budget=plan.budget.value) as session:
        batch = session.price(listed, within=within)
    facts = _publication(plan, rows, batch, request).facts()
    require_storable(facts, ask_all(data, listed))
    return facts


def _terms(plan: "Plan") -> dict[str, Any]:
    """What a new data set is opened with."""
    return {
        "dataset": plan.data.name,
        "cap": plan.cap,
        "neighbours": plan.data.neighbours,
        "unit": plan.data.unit,
        "analysts": plan.ledger.analysts,
    }


def _published(
    plan: "Plan",
    account: "Account",
    stored: bytes,
    *,
    fresh: bool,
    warnings: tuple[str, ...] = (),
    notices: tuple[str, ...] = (),
) -> Published:
    """What an outcome is published as: all of it follows from the bytes that the ledger keeps."""
    publication = Publication.of_outcome(stored)
    reply = publication.to_json().encode()
    if publication.plan_digest != plan.digest:
        warnings += ("the plan was edited since, but asks the same: title and names are as released",)
    receipt = _receipt(publication, reply, account)
    return Published(publication, reply, receipt, fresh, warnings, notices, account.remaining)


def _data(plan: "Plan") -> Dataset:
    from sfumato.data.tables import open_table
    from sfumato.plan.binding import data_facts, stored_fields

    facts = data_facts(plan)
    table = open_table(plan.data_path, stored_fields(plan), columns=plan.needed, engine=plan.data.engine)
    return Dataset(table, **facts)


def _ahead(plan: "Plan") -> None:
    """Load what the ledger needs, and calibrate the intervals of queries whose facts are all in the plan.

    Only saves time: what fails here is found again, and told, where it is needed.
    """
    from sfumato.ledger import sql  # noqa: F401 (loaded for later)
    from sfumato.plan.allocation import allocate
    from sfumato.plan.binding import bound

    if plan.size_is_public and plan.data.rows is None:
        return
    rows = plan.data.rows if plan.size_is_public else None
    for index, budget in enumerate(allocate(plan, rows).budgets):
        query = bound(plan, index, budget, rows)
        if hasattr(query, "prepare"):
            query.prepare()


def _request(*facts: str) -> str:
    return f"plan-{hashlib.sha256(' '.join(facts).encode()).hexdigest()[:32]}"


def _public_rows(plan: "Plan", data: Dataset) -> int | None:
    """The number of rows, where it is public, which a plan may state but not contradict."""
    if not plan.size_is_public:
        return None
    public, stated = data.column(plan.needed[0]).rows, plan.data.rows
    if stated not in (None, public):
        raise SchemaMismatch(f"rows must be the public number of rows, {public}, got rows={stated}")
    return public


def _other_names(books: "SqlLedger", plan: "Plan", content: str) -> tuple[str, ...]:
    """The names under which the same content was charged before."""
    return tuple(
        f"the content of this file was released before under the name {other!r}: budgets of both add up"
        for other in books.names_like(content, besides=plan.data.name)
    )


def _open(books: "SqlLedger", plan: "Plan") -> tuple[str, ...]:
    """Open the data set in the ledger if it is new; what the curator should know."""
    warnings = []
    if books.came_after is not None:
        count = books.came_after.sequence
        warnings.append(
            f"another ledger, with {count:,} entries, was here before: its charges are not counted"
        )
    if plan.data.name not in books.datasets():
        books.open(**_terms(plan))
        warnings.append(
            f"the data set {plan.data.name!r} is new in the ledger; its cap is {Amount.of(plan.cap).words}"
        )
    return tuple(warnings)


def _publication(plan: "Plan", rows: int | None, batch: Batch, request: str) -> Publication:
    """The publication before its results are drawn."""
    cost = batch.cost
    return Publication(
        title=plan.title,
        about=plan.about,
        dataset=plan.data.name,
        unit=plan.data.unit,
        rows_per_unit=plan.data.rows_per_unit,
        groups_per_unit=plan.data.groups_per_unit,
        neighbours=plan.data.neighbours,
        rows=rows,
        budget=plan.budget.value,
        price=cost if isinstance(cost, Amount) else Amount.of(cost),
        composition=batch.composition,
        request=request,
        edition=plan.edition,
        plan_digest=plan.digest,
        version=__version__,
        engine=plan.data.engine,
        versions={"python": platform.python_version(), **_versions(plan.data.engine)},
        results=(),
    )


def _receipt(publication: Publication, reply: bytes, account: "Account") -> dict[str, Any]:
    """What shows that the release was paid for: the entry of the ledger, the events, the versions."""
    entry = account.entry(publication.request)
    if entry is None:
        raise LedgerDamaged("the ledger no longer has the charge that its reply is for")
    return {
        "format": 1,
        "software": {"sfumato": publication.version, **publication.versions},
        **({} if publication.engine is None else {"engine": publication.engine}),
        "dataset": publication.dataset,
        "analyst": account.analyst,
        "unit": publication.unit,
        "rows_per_unit": publication.rows_per_unit,
        "neighbours": publication.neighbours,
        "request": publication.request,
        "edition": publication.edition,
        "plan_digest": publication.plan_digest,
        "release_sha256": hashlib.sha256(reply).hexdigest(),
        "price": entry.price.to_dict(),
        "composition": publication.composition,
        "event": entry.event.to_dict(),
        "ledger": {"id": account.ledger.identity, "sequence": entry.number, "hash": entry.hash},
    }


def _versions(engine: str | None) -> dict[str, str]:
    found = {}
    for package in (*_PACKAGES, *_ENGINES.get(engine or "", ())):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
