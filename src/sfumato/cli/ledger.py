"""`sfumato ledger`: what was spent and what remains, and the curator's acts."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

import sfumato
from sfumato.cli.options import (
    DEFAULT_LEDGER,
    Dataset,
    Delta,
    Epsilon,
    Force,
    Json,
    LedgerUrl,
    Rho,
    budget_of,
    each_line,
    new_group,
)
from sfumato.cli.output import grid_of, in_symbols, output, print_json, stages, warn
from sfumato.cli.outputs import refusing, replacing
from sfumato.cli.status import DONE, LEDGER, VIOLATED, Refused
from sfumato.errors import LedgerDamaged
from sfumato.privacy import Amount
from sfumato.release import printable

SCHEMA = 1
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept in the ledger.")]
Target = Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it.", show_default=False)]

app = new_group(
    "ledger",
    "See what was spent and what remains; open, renew and retire budgets.",
    epilog=each_line(
        "The ledger is --ledger, else the environment variable SFUMATO_LEDGER, else",
        f"{DEFAULT_LEDGER} here. It is only ever added to, and every entry commits to all before",
        "it: `verify` finds any entry that was changed, removed or put back.",
    ),
)


@app.command()
def show(
    dataset: Annotated[
        str | None,
        typer.Argument(metavar="[DATASET]", help="List the entries of this one.", show_default=False),
    ] = None,
    ledger: LedgerUrl = None,
    as_json: Json = False,
) -> None:
    """Show every data set with its cap, what was spent and what remains."""
    books = _opened(ledger)
    names = list(books.datasets())
    if dataset is not None and dataset not in names:
        known = ", ".join(map(repr, names)) or "none"
        raise Refused(f"the ledger has no data set {dataset!r}; it has {known}")
    budgets = [_budget(books, name) for name in names if dataset in (None, name)]
    entries = [] if dataset is None else list(books.entries(dataset))
    head = books.head
    if as_json:
        print_json(
            {
                **_document(books),
                "head": head._asdict(),
                "datasets": [_budget_record(budget) for budget in budgets],
                **({} if dataset is None else {"entries": [_entry_record(entry) for entry in entries]}),
            }
        )
        return
    console = output()
    if not budgets:
        console.print("The ledger is empty: no data set was opened yet.")
        return
    rows = [
        (
            *map(printable, (each.dataset, each.unit)),
            each.neighbours,
            *_exactly(console, each.cap, each.spent, each.left),
        )
        for each in budgets
    ]
    console.print(grid_of(("data set", "unit", "neighbours", "cap", "spent", "left"), rows, left=3))
    for each in budgets:
        if each.listed is not None:
            console.print(_listed_words(each), soft_wrap=True)
    people = [account for each in budgets for account in each.analysts]
    if people:
        console.print()
        rows = [
            (
                *map(printable, (account.analyst, account.dataset)),
                *_exactly(console, account.analyst_cap, account.analyst_spent, account.remaining),
            )
            for account in people
        ]
        console.print(grid_of(("analyst", "data set", "own cap", "spent", "left"), rows, left=2))
    if entries:
        console.print()
        console.print(_entry_table(entries, console))
    console.print(f"\nHead: entry {head.sequence}, {head.hash}", soft_wrap=True)


@app.command()
def verify(
    ledger: LedgerUrl = None,
    prices: Annotated[
        bool, typer.Option("--prices", help="Prove (epsilon, delta) prices again too, which takes longer.")
    ] = False,
    receipts: Annotated[
        list[Path] | None,
        typer.Option("--receipt", metavar="FILE", help="A receipt whose entry must be there; repeatable."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Work every entry out again; exits with 1 if anything is wrong."""
    problems: tuple[str, ...]
    heads = [_entry_of_receipt(path) for path in receipts or ()]
    try:
        books = _opened(ledger)
        with stages("verifying"):
            found = books.verify(prices=prices, heads=heads)
        head, problems = found.head, found.problems
    except LedgerDamaged as damage:
        # So damaged that it does not open.
        head, problems = None, (str(damage),)
    if as_json:
        print_json(
            {
                "schema": SCHEMA,
                "version": sfumato.__version__,
                "holds": not problems,
                "problems": list(problems),
                "head": None if head is None else head._asdict(),
            }
        )
    elif problems:
        for problem in problems:
            warn(problem)
    else:
        output().print(f"The ledger holds: {head.sequence} entries. Head: {head.hash}", soft_wrap=True)
    raise typer.Exit(VIOLATED if problems else DONE)


@app.command()
def export(target: Target, ledger: LedgerUrl = None, force: Force = False, as_json: Json = False) -> None:
    """Write all entries as JSON, for a reviewer who has no database."""
    books = _opened(ledger)
    with stages("exporting"), replacing(target, force=force) as new:
        books.export(new)
    _done(books, as_json, f"All entries are in {target}", file=str(target))


@app.command()
def backup(target: Target, ledger: LedgerUrl = None, force: Force = False, as_json: Json = False) -> None:
    """Write a copy from which the ledger can be restored."""
    books = _opened(ledger)
    with stages("copying"), replacing(target, force=force) as new:
        books.backup(new)
    _done(books, as_json, f"The copy is {target}; entries after this one are not in it", file=str(target))


@app.command(
    epilog=each_line(
        "Example: sfumato ledger restore copy.jsonl --ledger ledger.db",
        "",
        "The copy is what `sfumato ledger backup copy.jsonl` wrote: text, a JSON record on",
        "every line.",
        "",
        "What was spent after the copy was made is not in it. If the anchor shows that",
        "something was, the copy is refused; with --accept-loss all that was left of every",
        "cap counts as spent.",
    )
)
def restore(
    source: Annotated[Path, typer.Argument(metavar="COPY", help="What `backup` wrote.", show_default=False)],
    ledger: LedgerUrl = None,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Take an older copy; all that was left counts as spent.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring a ledger back from a copy."""
    from sfumato.ledger.sql import SqlLedger

    with refusing(LEDGER), stages("restoring"):
        books = SqlLedger.restore(source, ledger or DEFAULT_LEDGER, accept_loss=accept_loss)
    _done(books, as_json, f"The ledger is restored, up to entry {books.head.sequence}")


@app.command(
    "begin-anew",
    epilog=each_line(
        "Example: sfumato ledger begin-anew --ledger ledger.db\n",
        "For a ledger that is lost with every copy of it. What was spent there is not counted.",
    ),
)
def begin_anew(ledger: LedgerUrl = None, as_json: Json = False) -> None:
    """Give a missing ledger up, and begin a new one in its place."""
    from sfumato.ledger.sql import SqlLedger

    books = SqlLedger.begin_anew(ledger or DEFAULT_LEDGER)
    lost = books.came_after.sequence if books.came_after else 0
    _done(books, as_json, f"A new ledger is begun; {lost:,} entries of the lost one are given up", lost=lost)


@app.command("open")
def open_dataset(
    dataset: Dataset,
    neighbours: Annotated[
        str,
        typer.Option("--neighbours", metavar="RELATION", help="substitution or add-remove; fixed for ever."),
    ],
    unit: Annotated[
        str,
        typer.Option(
            "--unit", metavar="NAME", help="Whose privacy: row, or the id column of units; fixed for ever."
        ),
    ] = "row",
    analysts: Annotated[
        list[str] | None,
        typer.Option("--analyst", metavar="NAME", help="Who may be charged, if not everybody; repeatable."),
    ] = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    ledger: LedgerUrl = None,
    as_json: Json = False,
) -> None:
    """Open a data set with its cap; `sfumato release` does it too, by its plan."""
    from sfumato.ledger.sql import SqlLedger
    from sfumato.ledger.terms import opening

    terms: dict[str, Any] = {"neighbours": neighbours, "unit": unit, "analysts": analysts or None}
    terms["cap"] = budget_of(epsilon, delta, rho)
    opening(dataset, **terms)  # what is refused makes no ledger
    books = SqlLedger(ledger or DEFAULT_LEDGER)
    _told_account(books, books.open(dataset, **terms), as_json)


@app.command()
def admit(
    dataset: Dataset,
    analysts: Annotated[list[str], typer.Argument(metavar="ANALYST...", help="Who.", show_default=False)],
    ledger: LedgerUrl = None,
    as_json: Json = False,
) -> None:
    """List analysts for a data set: from the first list on, nobody else is charged."""
    books = _opened(ledger)
    books.admit(dataset, analysts)
    budget = _budget(books, dataset)
    _done(books, as_json, _listed_words(budget), dataset=dataset, listed=budget.listed)


@app.command()
def allow(
    dataset: Dataset,
    analyst: Annotated[str, typer.Argument(metavar="ANALYST", help="Who.", show_default=False)],
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    ledger: LedgerUrl = None,
    as_json: Json = False,
) -> None:
    """Cap what one analyst may spend on a data set."""
    cap = budget_of(epsilon, delta, rho)
    books = _opened(ledger)
    books.allow(dataset, analyst, cap)
    _told_account(books, books.account(dataset, analyst=analyst), as_json)


@app.command()
def renew(
    dataset: Dataset,
    reason: Reason,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    ledger: LedgerUrl = None,
    as_json: Json = False,
) -> None:
    """Add to the cap of a data set: an entry of its own, with the reason."""
    added = budget_of(epsilon, delta, rho)
    books = _opened(ledger)
    books.renew(dataset, added, reason=reason)
    _told_account(books, books.account(dataset), as_json)


@app.command()
def retire(dataset: Dataset, reason: Reason, ledger: LedgerUrl = None, as_json: Json = False) -> None:
    """Close a data set for ever: nothing more can be spent on it."""
    books = _opened(ledger)
    books.retire(dataset, reason=reason)
    _done(
        books, as_json, f"{printable(dataset)} is retired: nothing more can be spent on it", dataset=dataset
    )


def _entry_of_receipt(receipt: Path) -> Any:
    """The entry that a receipt names."""
    from sfumato.ledger.chain import Head

    with refusing():
        content = receipt.read_bytes()
    try:
        entry = json.loads(content)["ledger"]
        return Head(int(entry["sequence"]), str(entry["hash"]))
    except (ValueError, LookupError, TypeError, RecursionError):
        raise Refused(f"{receipt} is not a receipt of a release") from None


def _opened(given: str | None) -> Any:
    """A ledger that is there: looking at one must not make it."""
    from sfumato.ledger.sql import SqlLedger

    return SqlLedger(given or DEFAULT_LEDGER, create=False)


class _Budget(NamedTuple):
    """What a data set has, whoever asks, and the accounts of analysts with caps of their own."""

    dataset: str
    unit: str
    neighbours: str
    cap: Any
    spent: Any
    left: Any
    retired: bool
    # Who may be charged; None for everybody.
    listed: list[str] | None
    analysts: tuple[Any, ...]


def _budget(books: Any, name: str) -> _Budget:
    from sqlalchemy import select

    from sfumato.ledger.chain import amount_of
    from sfumato.ledger.schema import entries

    capped = select(entries.c.analyst).where(entries.c.dataset == name, entries.c.kind == "allow")
    with books.store.reading() as connection:
        standing, _ = books.totals(connection, name, None)
        people = sorted(set(connection.scalars(capped)))
    account, total, retired = books.account(name), standing.total, standing.retired
    listed = None if standing.analysts is None else sorted(standing.analysts)
    left = Amount() if retired else amount_of(total.fields, total.left)
    spent = amount_of(total.fields, total.spent)
    analysts = tuple(books.account(name, analyst=person) for person in people)
    return _Budget(
        name, account.unit, account.neighbours, account.cap, spent, left, retired, listed, analysts
    )


def _budget_record(budget: _Budget) -> dict[str, Any]:
    return {
        "dataset": budget.dataset,
        "unit": budget.unit,
        "neighbours": budget.neighbours,
        "cap": budget.cap.to_dict(),
        "spent": budget.spent.to_dict(),
        "remaining": budget.left.to_dict(),
        "retired": budget.retired,
        "listed": budget.listed,
        "analysts": [
            {
                "analyst": account.analyst,
                "cap": account.analyst_cap.to_dict(),
                "spent": account.analyst_spent.to_dict(),
                "remaining": account.remaining.to_dict(),
            }
            for account in budget.analysts
        ],
    }


def _listed_words(budget: _Budget) -> str:
    names = ", ".join(map(printable, budget.listed or ())) or "nobody yet"
    return f"Only listed analysts may spend on {printable(budget.dataset)}: {names}"


def _document(books: Any) -> dict[str, Any]:
    return {"schema": SCHEMA, "version": sfumato.__version__, "ledger": books.identity}


def _done(books: Any, as_json: bool, words: str, **facts: Any) -> None:
    head = books.head
    if as_json:
        print_json({**_document(books), **facts, "head": head._asdict()})
    else:
        output().print(f"{words}. Head: entry {head.sequence}, {head.hash}", soft_wrap=True)


def _told_account(books: Any, account: Any, as_json: bool) -> None:
    if as_json:
        print_json({**_document(books), **_account_record(account)})
        return
    console = output()
    name, unit = map(printable, (account.dataset, account.unit))
    words = f"{name}, by {unit}, {account.neighbours}: cap {_exact(account.cap, console)}"
    if account.analyst_cap is not None:
        words += f", of which {printable(account.analyst)} may spend {_exact(account.analyst_cap, console)}"
    spent, left = _exact(account.spent, console), _exact(account.remaining, console)
    console.print(f"{words}; spent {spent}, left {left}", soft_wrap=True)


def _account_record(account: Any) -> dict[str, Any]:
    own = account.analyst_cap
    return {
        "dataset": account.dataset,
        "unit": account.unit,
        "neighbours": account.neighbours,
        "analyst": account.analyst,
        "cap": account.cap.to_dict(),
        "analyst_cap": None if own is None else own.to_dict(),
        "spent": account.spent.to_dict(),
        "remaining": account.remaining.to_dict(),
    }


def _entry_record(entry: Any) -> dict[str, Any]:
    facts = ("sequence", "time", "kind", "dataset", "analyst", "request", "hash")
    price = None if entry.price is None else json.loads(entry.price)
    return {**{name: getattr(entry, name) for name in facts}, "price": price, "facts": entry.facts}


def _entry_table(entries: list[Any], console: Any) -> Any:
    from sfumato.ledger.chain import amount_of, listed_numbers

    rows = []
    for entry in entries:
        facts = entry.facts
        paid = None if entry.price is None else json.loads(entry.price)
        amount = paid or facts.get("cap") or facts.get("added")
        words = "" if amount is None else _exact(amount_of(*listed_numbers(amount)), console)
        about = entry.request or facts.get("reason", "")
        named = (entry.time[:16].replace("T", " "), entry.kind, entry.analyst or "", about)
        rows.append((str(entry.sequence), *map(printable, named), words))
    return grid_of(("entry", "time (UTC)", "what", "analyst", "request or reason", "amount"), rows, left=5)


def _exactly(console: Any, *amounts: Any) -> Iterator[str]:
    return (_exact(amount, console) for amount in amounts)


def _exact(amount: Any, console: Any) -> str:
    return in_symbols(amount, console, rounded=False)
