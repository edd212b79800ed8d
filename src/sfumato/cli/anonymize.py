"""`sfumato anonymize`: coarsen a table until every class of its rows meets the goals, and report on it."""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

import sfumato
from sfumato.cli.anonymity_options import plan_of
from sfumato.cli.options import Force, Json, each_line
from sfumato.cli.output import grid_of, output, print_json, stages, warn
from sfumato.cli.outputs import folder_for, refusing, require_free
from sfumato.errors import MissingExtra
from sfumato.release import printable
from sfumato.whole_files import in_place_of, write_file

if TYPE_CHECKING:
    from sfumato.anonymity import AnonymityPlan

EXAMPLES = each_line(
    "Examples:",
    "  sfumato anonymize people.csv --quasi age,sex,postcode --k 10 --drop name -o out",
    "  sfumato anonymize people.csv --quasi age,sex --k 5 --sensitive illness \\",
    "      --diversity illness=3 --keep ward --drop name,phone -o out",
    "  sfumato anonymize people.csv --quasi age,sex --entropy illness=2.5 \\",
    "      --recursive salary=3,2 --closeness illness=0.2 --drop name -o out",
    "  sfumato anonymize people.csv --plan anonymity.toml -o out",
    "",
    "Every column of the table has one role: --quasi, --sensitive, --keep or --drop.",
    "The folder gets the table in the format that it came in, a report with what is",
    "not protected, and a summary in JSON. Publish the table alone: the other two",
    "count over the original. This is not differential privacy: the report shows how",
    "to release the same table with it. A name with a comma stands in quotes:",
    "--quasi 'age,\"town, country\"'.",
    "",
    "Exit status: 0 done, 2 arguments, the plan or the table cannot be used, or no",
    "coarsening meets the goals.",
)
SCHEMA = 1
REPORT, SUMMARY = "report.html", "summary.json"

Table = Annotated[
    Path, typer.Argument(metavar="TABLE", help="A CSV, Parquet or Arrow file.", show_default=False)
]
Quasi = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMNS", help="What others may know of a person: age,sex.", show_default=False),
]
Sensitive = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMNS", help="What nobody should learn of a person.", show_default=False),
]
Types = Annotated[
    list[str] | None,
    typer.Option(
        "--type", metavar="COLUMN=KIND", help="How to read a column of a CSV file: text.", show_default=False
    ),
]


def anonymize(
    table: Annotated[
        Path | None,
        typer.Argument(
            metavar="TABLE", help="A CSV, Parquet or Arrow file.", show_default="that of the plan"
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FOLDER", help="Where the files go.", show_default=False),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A TOML file with all of it, in place of the options below."),
    ] = None,
    quasi: Quasi = None,
    k: Annotated[int | None, typer.Option("--k", metavar="K", help="How many rows must look alike.")] = None,
    sensitive: Sensitive = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMNS", help="What nobody knows of a person: published as it is.", show_default=False
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMNS", help="What is not published, such as names.", show_default=False),
    ] = None,
    diversity: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=L", help="So many different values in each class.", show_default=False),
    ] = None,
    entropy: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=L", help="As diverse as L equally frequent values.", show_default=False),
    ] = None,
    recursive: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=C,L",
            help="The top value below C times those from the L-th on.",
            show_default=False,
        ),
    ] = None,
    closeness: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=T", help="Each class so near to the whole table.", show_default=False),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="mondrian, mondrian-relaxed, full-domain or datafly.",
            show_default="mondrian",
        ),
    ] = None,
    hierarchies: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A TOML file with [hierarchies.COLUMN] tables.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What full-domain makes small: loss, discernibility or height.",
            show_default="loss",
        ),
    ] = None,
    suppression: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Which share of rows may be suppressed.")
    ] = None,
    suppressed: Annotated[
        str | None,
        typer.Option(metavar="HOW", help="Suppressed rows: remove or star.", show_default="remove"),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(metavar="HOW", help="Rows are sorted, or kept in their order.", show_default="sorted"),
    ] = None,
    types: Types = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Coarsen a table until k rows share each combination of what others may know.

    k-anonymity is a property of a table and no differential privacy: the report
    shows what it leaves open on this table.
    """
    from sfumato.anonymity.plan_file import read_anonymity

    choices = {"method": method, "metric": metric, "suppressed": suppressed, "order": order}
    goals = {"diversity": diversity, "entropy": entropy, "recursive": recursive, "closeness": closeness}
    roles = {"quasi": quasi, "sensitive": sensitive, "keep": keep, "drop": drop}
    given = (k, hierarchies, suppression, types, *choices.values(), *goals.values(), *roles.values())
    if folder is None:
        raise typer.BadParameter("give -o FOLDER, where the files go")
    if plan is not None:
        if any(one is not None for one in given):
            raise typer.BadParameter("give --plan alone, or the options in place of it")
        with refusing():
            asked = read_anonymity(plan)
    else:
        if quasi is None:
            raise typer.BadParameter("give --quasi, or --plan")
        asked = plan_of(roles, goals, choices, k, hierarchies, suppression, types)
    path = table if table is not None else asked.table
    if path is None:
        raise typer.BadParameter("give TABLE, or a plan that names one")
    _carry_out(asked, path, folder, force=force, as_json=as_json)


def _carry_out(asked: "AnonymityPlan", path: Path, folder: Path, *, force: bool, as_json: bool) -> None:
    from sfumato.anonymity.anonymizing import carried_out
    from sfumato.anonymity.hierarchies import Prefix, Tree
    from sfumato.anonymity.table_files import read_table, table_bytes

    settings = asked.settings
    notes: list[str] = []
    with folder_for(folder):
        with stages("reading the table"):
            stored = read_table(path)
            words = [name for name, one in settings.hierarchies.items() if isinstance(one, Prefix | Tree)]
            typed = stored.typed((*settings.quasi, *settings.sensitive), asked.types, words)
        # A search has a bar of its own, and two would write over each other.
        result = carried_out(typed, settings, stored=stored.frame)
        with stages("drawing the report") as tell:
            page = _page(result, asked.title, path, notes)
            tell("writing")
            files = {f"anonymized{stored.ending}": table_bytes(result.table, stored)}
            if page is not None:
                files[REPORT] = page
            record = _record(result, path, folder, [*files, SUMMARY])
            files[SUMMARY] = (json.dumps(record, indent=2, allow_nan=False) + "\n").encode()
            _write(folder, files, force=force)
    for note in (*notes, *result.linkage.warnings):
        warn(note)
    if as_json:
        print_json(record)
        return
    _print(result, folder, list(files))


def _page(result: Any, title: str, path: Path, notes: list[str]) -> bytes | None:
    from sfumato.report.anonymity_page import anonymity_html

    try:
        return anonymity_html(result, title=title, path=path.name).encode()
    except MissingExtra as missing:
        notes.append(f"there is no report: {missing}")
        return None


def _write(folder: Path, files: Mapping[str, bytes], *, force: bool) -> None:
    """Write all files, the table last; none if one cannot be written, or would replace another unasked."""
    with refusing(), _alone_in(folder), ExitStack() as all_there:
        for name, content in files.items():
            require_free(folder / name, content, force=force)
        for name, content in files.items():
            write_file(all_there.enter_context(in_place_of(folder / name)), content)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Let no other process of this kind write to the folder, whose files would be mixed with these."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems have no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _record(result: Any, path: Path, folder: Path, files: Sequence[str]) -> dict[str, Any]:
    head = {"schema": SCHEMA, "version": sfumato.__version__, "table": str(path), "folder": str(folder)}
    return {**head, "files": list(files), "differential_privacy": False, **result.to_dict()}


def _print(result: Any, folder: Path, files: Sequence[str]) -> None:
    from sfumato.anonymity.settings import goal_words

    console = output()
    after = result.after
    classes = f"{after.classes:,} class{'es' * (after.classes > 1)}"
    console.print(
        f"{after.rows:,} of {result.rows:,} row{'s' * (result.rows > 1)} published, in {classes} of "
        f"{after.k:,} row{'s' * (after.k > 1)} or more; before, the smallest class had {result.before.k:,}.",
        soft_wrap=True,
    )
    for goal in result.settings.goals:
        console.print(f"  reached: {printable(goal_words(goal))}", soft_wrap=True)
    for note in result.notes:
        console.print(f"  note: {note}", soft_wrap=True)
    labels, losses = result.partition.labels, dict(result.utility.losses)
    lines = [
        [
            printable(name),
            f"{100 * losses[name]:.1f} %",
            f"{len(set(texts)):,}",
            printable(max(texts, key=len, default="")[:40]),
        ]
        for name, texts in zip(result.settings.quasi, labels, strict=True)
    ]
    console.print(grid_of(["column", "lost", "labels", "longest label"], lines))
    linked = [
        [*map(printable, (name, role)), alone, together]
        for name, role, alone, together in result.linkage.table()
    ]
    if linked:
        head = ["published as it is", "role", "rows it singles out", "with the quasi-identifiers"]
        console.print(grid_of(head, linked, left=2))
    console.print(f"Written to {folder}: {', '.join(files)}", soft_wrap=True)
    console.print("k-anonymity is not differential privacy: the report shows what it leaves open.")
    if REPORT in files:
        console.print(Text(f"Open the report: {folder / REPORT}", style="bold green"), soft_wrap=True)
