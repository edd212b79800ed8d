"""`sfumato release`: pay for what a plan asks, release it, and write the files."""

import io
import json
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Annotated, Any

import typer
from rich.text import Text

import sfumato
from sfumato.cli.failures import reason, told
from sfumato.cli.options import Force, Json, LedgerOfPlan, PlanFile, each_line, ledger_of
from sfumato.cli.output import in_symbols, output, print_json, stages, warn
from sfumato.cli.outputs import folder_for
from sfumato.cli.published import print_results
from sfumato.cli.status import UNWRITTEN, Refused
from sfumato.errors import MissingExtra, SfumatoError
from sfumato.release import printable
from sfumato.safe_text import csv_bytes
from sfumato.whole_files import read_file, write_file

EXAMPLES = each_line(
    "Examples:",
    "  sfumato release plan.toml -o out",
    "  sfumato release plan.toml -o out --ledger postgresql://curator@host/ledger",
    "  sfumato release plan.toml -o out --json > release.log",
    "",
    "Repeated, a plan gives the release that was paid for, at no cost, whatever the",
    "data hold by then. A new edition in the plan, or --again, draws anew and pays.",
    "",
    "Exit status: 0 done, 2 the plan or a file cannot be used, 3 the budget does not",
    "suffice, 4 the ledger cannot be used, 5 paid for but not all was drawn or",
    "written: run the same command again, which costs nothing.",
)
SCHEMA = 1
RELEASE, RECEIPT, CSV, PARQUET, REPORT = (
    *("release.json", "receipt.json", "results.csv", "results.parquet"),
    "report.html",
)
KEPT = (
    "it is paid for and kept in the ledger, and the same command with a folder that can be written to "
    "writes it at no further cost"
)


def release(
    plan_file: PlanFile,
    folder: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Where the files go.", show_default=False)
    ],
    ledger: LedgerOfPlan = None,
    analyst: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who is charged, in place of the name in the plan.")
    ] = None,
    request: Annotated[
        str | None,
        typer.Option(metavar="ID", help="A name for this release: a second time it returns the first bytes."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Draw anew and pay again, even if this was released before.")
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Pay for what a plan asks, release it, and write tables, a report and a receipt.

    The charge is durable before the data are used. Nothing is charged for a plan
    or a file that cannot be used.
    """
    from sfumato import plan as plans

    asked = plans.read(plan_file)
    plans.check(asked)
    released(
        asked,
        folder,
        ledger=ledger_of(asked, ledger),
        analyst=analyst,
        request=request,
        again=again,
        force=force,
        as_json=as_json,
    )


def released(
    plan: Any,
    folder: Path,
    *,
    ledger: str | None = None,
    analyst: str | None = None,
    request: str | None = None,
    again: bool = False,
    force: bool = False,
    as_json: bool = False,
) -> list[str]:
    """Release a plan, print what came out, and write the files; returns their names."""
    import sfumato.report
    from sfumato.publishing import publish

    if "" in (analyst, request):
        raise typer.BadParameter("--analyst and --request must not be empty")
    if again and request is not None:
        raise typer.BadParameter("--again makes a request of its own, and goes without --request")
    notes: list[str] = []
    # While the answers are drawn, and not before it is known that there will be some; an error does not wait.
    loading = Thread(target=sfumato.report.prepare, daemon=True)

    requests: list[str] = []

    def before_charge(name: str) -> None:
        if not force:
            _refuse_other(folder, name)
        requests.append(name)
        loading.start()

    with folder_for(folder):
        if again:
            request = f"again-{time.time_ns()}-{os.getpid()}"
            warn(f"if this is interrupted, --request {request} takes it up at no cost")
        try:
            with _telling_of_charges(plan, ledger, requests, again=again), stages("reading the plan") as tell:
                published = publish(
                    plan,
                    ledger=ledger,
                    analyst=analyst,
                    request=request,
                    progress=tell,
                    before_charge=before_charge,
                )
                loading.join()
                notes += (*published.warnings, *published.notices)
                written = _written(published, folder, tell, notes)
        finally:
            # Not before: a bar that is drawn meanwhile would run through them.
            for words in notes:
                warn(words)
    try:
        if as_json:
            print_json(_record(published, folder, written))
        else:
            _print(published, folder, written)
    except BrokenPipeError:
        raise
    except OSError as error:
        words = f"the release is paid for and written to {folder}, but could not be shown: {reason(error)}"
        raise Refused(words, UNWRITTEN) from error
    return written


@contextmanager
def _telling_of_charges(plan: Any, ledger: str | None, requests: list[str], *, again: bool) -> Iterator[None]:
    """Say of whatever stops a release after its charge what was charged, and how it is finished for free."""
    try:
        yield
    except (Refused, MissingExtra):
        raise
    except (Exception, KeyboardInterrupt) as fault:
        price = _charged(plan, ledger, requests[0]) if requests else None
        if price is None:
            raise
        how = f"the command with --request {requests[0]} in place of --again" if again else "the same command"
        status, words = told(fault)
        paid = f"{price.words} was charged, and {how} finishes the release at no further cost"
        interrupted = isinstance(fault, KeyboardInterrupt)
        raise Refused(f"{words or 'interrupted'}; {paid}", status if interrupted else UNWRITTEN) from fault


def _charged(plan: Any, ledger: str | None, request: str) -> Any:
    """What was charged for a request; None if nothing was, or if the ledger does not say."""
    from sfumato.ledger.sql import SqlLedger

    with suppress(SfumatoError), SqlLedger(ledger or plan.ledger_url, create=False) as books:
        entry = books.account(plan.data.name).entry(request)
        return None if entry is None else entry.price
    return None


def _refuse_other(folder: Path, request: str) -> None:
    """Refuse a folder that holds another release, before anything is paid for."""
    source = folder / RELEASE
    there = [name for name in (RELEASE, RECEIPT, CSV, PARQUET, REPORT) if (folder / name).exists()]
    if not there:
        return
    try:
        same = json.loads(read_file(source))["request"] == request
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        same = False
    if not same:
        words = "another release" if source.exists() else f"{there[0]}, which this release does not explain"
        raise Refused(
            f"{folder} holds {words}; nothing was charged. Give another folder, or --force to replace it"
        )


def _written(published: Any, folder: Path, tell: Any, notes: list[str]) -> list[str]:
    """Write all files, the release itself first; what fails now is paid for already, and kept."""
    # All are a function of what the ledger keeps, so that a repetition writes the same bytes.
    receipt = json.dumps(published.receipt, indent=2, ensure_ascii=False) + "\n"
    files = {RELEASE: published.reply, RECEIPT: receipt.encode(), **_tables(published.publication)}
    with _kept():
        for name, content in files.items():
            write_file(folder / name, content)
    tell("drawing the report")
    try:
        page = sfumato.report.html(published.publication, published.receipt).encode()
    except MissingExtra as missing:
        notes.append(f"there is no report: {missing}; then `sfumato report` writes it")
        return list(files)
    with _kept():
        write_file(folder / REPORT, page)
    return [*files, REPORT]


@contextmanager
def _kept() -> Iterator[None]:
    """Tell of what could not be written that it is not lost."""
    try:
        yield
    except OSError as error:
        raise Refused(f"the release could not be written: {reason(error)}; {KEPT}", UNWRITTEN) from error


def _tables(publication: Any) -> dict[str, bytes]:
    """Every number in a row, in full precision; what was chosen and is no number in a column of its own."""
    import polars

    rows = publication.rows_of_numbers()
    words = [None if _is_number(row["value"]) else str(row["value"]) for row in rows]
    if any(word is not None for word in words):
        rows = [
            # A column of groups with this name keeps its own place.
            {
                **{"choice (group)" if name == "choice" else name: fact for name, fact in row.items()},
                "value": row["value"] if word is None else None,
                "choice": word,
            }
            for row, word in zip(rows, words, strict=True)
        ]
    # Groups that come from the data may all be too small to be named.
    names = publication.number_columns
    numbers = ("value", "low", "high", "confidence")
    empty = {name: polars.Float64 if name in numbers else polars.String for name in names}
    frame = polars.DataFrame(rows, schema=None if rows else empty, infer_schema_length=None)
    binary = io.BytesIO()
    frame.write_parquet(binary)
    return {CSV: csv_bytes(frame), PARQUET: binary.getvalue()}


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _print(published: Any, folder: Path, written: list[str]) -> None:
    console, publication = output(), published.publication
    if publication.title:
        console.print(Text(printable(publication.title), style="bold underline"))
        console.print()
    print_results(console, publication)
    price = in_symbols(publication.price, console)
    if published.fresh:
        console.print(
            f"Charged: {price}, by {publication.composition}, for all of it together.", soft_wrap=True
        )
    else:
        console.print(f"Paid for before, at {price}; nothing was charged now.", soft_wrap=True)
    left = in_symbols(published.remaining, console)
    console.print(f"Left for {printable(publication.dataset)}: {left}.", soft_wrap=True)
    console.print(f"Written to {folder}: {', '.join(written)}", soft_wrap=True)
    if REPORT in written:
        console.print(Text(f"Open the report: {folder / REPORT}", style="bold green"), soft_wrap=True)


def _record(published: Any, folder: Path, written: list[str]) -> dict[str, Any]:
    publication = published.publication
    return {
        "schema": SCHEMA,
        "version": sfumato.__version__,
        "fresh": published.fresh,
        "request": publication.request,
        "price": publication.price.to_dict(),
        "composition": publication.composition,
        "remaining": published.remaining.to_dict(),
        "warnings": list(published.warnings),
        "folder": str(folder),
        "files": written,
        "results": [
            {name: _plain(value) for name, value in row.items()} for row in publication.rows_of_numbers()
        ],
        "receipt": published.receipt,
    }


def _plain(value: Any) -> Any:
    """JSON has no infinity: null stands for it."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str) or _is_number(value) else str(value)
