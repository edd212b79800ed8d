"""`sfumato anonymize`: coarsen a table until every class of its rows meets the goals, and report on it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

import sfumato
from sfumato.checks import shown
from sfumato.cli.options import Force, Json, each_line, number
from sfumato.cli.output import grid_of, output, print_json, stages, warn
from sfumato.cli.outputs import FORCE, folder_for, refusing
from sfumato.cli.status import Refused
from sfumato.errors import MissingExtra
from sfumato.release import printable
from sfumato.whole_files import write_file

EXAMPLES = each_line(
    "Examples:",
    "  sfumato anonymize people.csv --quasi age,sex,postcode --k 10 -o out",
    "  sfumato anonymize people.csv --quasi age,sex --k 5 --sensitive illness \\",
    "      --diversity illness=3 --identifiers name,phone -o out",
    "  sfumato anonymize people.csv --plan anonymity.toml -o out",
    "",
    "The folder gets the table in the format that it came in, a report with what is",
    "not protected, and a summary in JSON. This is not differential privacy: the",
    "report shows how to release the same table with it.",
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
    identifiers: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMNS", help="What names a person: dropped.", show_default=False),
    ] = None,
    diversity: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=L", help="So many different values in each class.", show_default=False),
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
    suppression: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Which share of rows may be suppressed.")
    ] = None,
    suppressed: Annotated[
        str | None,
        typer.Option(metavar="HOW", help="Suppressed rows: remove or star.", show_default="remove"),
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

    # The order in which they stand in the help.
    given = (
        quasi,
        k,
        sensitive,
        identifiers,
        diversity,
        closeness,
        method,
        hierarchies,
        suppression,
        suppressed,
        types,
    )
    if folder is None:
        raise typer.BadParameter("give -o FOLDER, where the files go")
    if plan is not None:
        if any(one is not None for one in given):
            raise typer.BadParameter("give --plan alone, or the options in place of it")
        with refusing():
            asked = read_anonymity(plan)
    else:
        asked = _from_options(*given)
    path = table if table is not None else asked.table
    if path is None:
        raise typer.BadParameter("give TABLE, or a plan that names one")
    _carry_out(asked, path, folder, force=force, as_json=as_json)


def _from_options(
    quasi: list[str] | None,
    k: int | None,
    sensitive: list[str] | None,
    identifiers: list[str] | None,
    diversity: list[str] | None,
    closeness: list[str] | None,
    method: str | None,
    hierarchies: Path | None,
    suppression: str | None,
    suppressed: str | None,
    types: list[str] | None,
) -> Any:
    from sfumato.anonymity import Closeness, DistinctDiversity
    from sfumato.anonymity.hierarchy_file import read_hierarchies
    from sfumato.anonymity.plan_file import AnonymityPlan
    from sfumato.anonymity.settings import Settings, listed_goals

    if quasi is None:
        raise typer.BadParameter("give --quasi, or --plan")
    wanted: list[Any] = []
    for text in diversity or ():
        name, most = pair("--diversity", text)
        many = number("--diversity", most)
        wanted.append(DistinctDiversity(name, int(many) if many.denominator == 1 else many))  # type: ignore[arg-type]
    for text in closeness or ():
        name, most = pair("--closeness", text)
        wanted.append(Closeness(name, number("--closeness", most)))
    found: Mapping[str, Any] = {}
    if hierarchies is not None:
        with refusing():
            found = read_hierarchies(hierarchies)
    options = {"method": method, "suppressed": suppressed}
    settings = Settings(
        quasi=names_of(quasi),
        sensitive=names_of(sensitive),
        identifiers=names_of(identifiers),
        goals=listed_goals(k, wanted),
        hierarchies=found,
        suppression=number("--suppression", suppression or "0"),
        **{key: value for key, value in options.items() if value is not None},
    )
    return AnonymityPlan(settings=settings, types=dict(pair("--type", text) for text in types or ()))


def names_of(given: Sequence[str] | None) -> tuple[str, ...]:
    """Names of columns, with commas between them or in options of their own."""
    return tuple(name.strip() for text in given or () for name in text.split(",") if name.strip())


def pair(option: str, text: str) -> tuple[str, str]:
    """A column and what is said of it."""
    name, equals, value = text.rpartition("=")
    if not (name and equals and value):
        raise Refused(f"{option} must be COLUMN=VALUE, got {shown(text)}")
    return name, value


def _carry_out(asked: Any, path: Path, folder: Path, *, force: bool, as_json: bool) -> None:
    from sfumato.anonymity.anonymizing import carried_out
    from sfumato.anonymity.hierarchies import Prefix, Tree
    from sfumato.anonymity.table_files import read_table, table_bytes

    settings = asked.settings
    notes: list[str] = []
    with folder_for(folder), stages("reading the table") as tell:
        stored = read_table(path)
        words = [name for name, one in settings.hierarchies.items() if isinstance(one, Prefix | Tree)]
        typed = stored.typed((*settings.quasi, *settings.sensitive), asked.types, words)
        tell("anonymising")
        result = carried_out(typed, settings, stored=stored.frame)
        files = {f"anonymized{stored.ending}": table_bytes(result.table, stored)}
        tell("drawing the report")
        page = _page(result, asked.title, path, notes)
        if page is not None:
            files[REPORT] = page
        record = _record(result, path, folder, [*files, SUMMARY])
        files[SUMMARY] = (json.dumps(record, indent=2, allow_nan=False) + "\n").encode()
        _write(folder, files, force=force)
    for note in notes:
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
    """Write all files; none if one of them would replace another one unasked."""
    with refusing():
        for name, content in files.items():
            there = folder / name
            if not force and there.exists() and there.read_bytes() != content:
                raise Refused(f"{there} exists already; {FORCE}")
        for name, content in files.items():
            write_file(folder / name, content)


def _record(result: Any, path: Path, folder: Path, files: Sequence[str]) -> dict[str, Any]:
    head = {"schema": SCHEMA, "version": sfumato.__version__, "table": str(path), "folder": str(folder)}
    return {**head, "files": list(files), "differential_privacy": False, **result.to_dict()}


def _print(result: Any, folder: Path, files: Sequence[str]) -> None:
    from sfumato.anonymity.settings import goal_words

    console = output()
    kept, rows = result.after.rows, result.rows
    console.print(
        f"{kept:,} of {rows:,} rows are published, in {result.after.classes:,} classes of "
        f"{result.after.k:,} rows or more; before, the smallest class had {result.before.k:,}.",
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
    console.print(f"Written to {folder}: {', '.join(files)}", soft_wrap=True)
    console.print("k-anonymity is not differential privacy: the report shows what it leaves open.")
    if REPORT in files:
        console.print(Text(f"Open the report: {folder / REPORT}", style="bold green"), soft_wrap=True)
