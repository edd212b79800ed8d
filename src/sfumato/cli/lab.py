"""`sfumato lab`: the figures of the sources, one by one or all as a gallery."""

import math
import os
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

import sfumato
from sfumato.cli.options import Json, each_line, new_group
from sfumato.cli.output import Output, grid_of, output, print_json, stages
from sfumato.cli.outputs import folder_for, refusing
from sfumato.cli.status import HELD, UNUSABLE, VIOLATED, Refused

SCHEMA = 1
BOTH = "both"
STATUS = (
    "Exit status: 0 if every statement holds, 1 if one fails, 2 if something cannot",
    "be used or drawn, 130 after Ctrl-C.",
)
Quick = Annotated[bool, typer.Option("--quick", help="A tenth of the draws.")]
Seed = Annotated[int | None, typer.Option(metavar="N", min=0, help="Another random seed than 2024.")]
Cache = Annotated[bool, typer.Option("--cache", help="Keep what runs found on disk, and use it again.")]

app = new_group("lab", "Draw the figures of the sources again, as published and corrected.")


@app.command("list", epilog=each_line("Example: sfumato lab list"))
def listing(as_json: Json = False) -> None:
    """List the figures, with their numbers and names.

    To those that compare, mechanisms of your own can be added in Python.
    """
    from sfumato.lab.figures import FIGURES

    if as_json:
        records = [{**figure.facts, "compares": figure.compares} for figure in FIGURES.values()]
        print_json({**_head(), "figures": records})
        return
    rows = [
        (each.number, each.name, each.source, "yes" if each.compares else "", each.title)
        for each in FIGURES.values()
    ]
    console = output()
    console.print(grid_of(("figure", "name", "source", "compares", "title"), rows, left=5))
    console.print("\nOne of them: sfumato lab figure NUMBER --mode both -o out", soft_wrap=True)


@app.command(
    epilog=each_line(
        "Examples:",
        "  sfumato lab figure 11",
        "  sfumato lab figure 11 --mode both -o out",
        "  sfumato lab figure quartile-risks --quick --json > quartiles.json",
        "",
        *STATUS,
    )
)
def figure(
    which: Annotated[
        str, typer.Argument(metavar="FIGURE", help="A number or a name of the list.", show_default=False)
    ],
    mode: Annotated[str, typer.Option(metavar="MODE", help="published, corrected, or both.")] = "corrected",
    target: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FOLDER", help="Write SVG, PNG, CSV and JSON files here."),
    ] = None,
    quick: Quick = False,
    seed: Seed = None,
    jobs: Annotated[int, typer.Option(metavar="N", min=1, max=256, help="Worker processes.")] = 1,
    cache: Cache = False,
    as_json: Json = False,
) -> None:
    """Compute a figure, and check the statements about it.

    As published it shows what the source computes, corrected what is right.
    """
    from sfumato.lab.figure import MODES
    from sfumato.lab.figures import find
    from sfumato.lab.gallery import draw

    if mode not in (*MODES, BOTH):
        raise Refused(f"--mode must be one of {', '.join(MODES)}, {BOTH}, got {mode!r}")
    chosen = find(which)
    effort = _effort(quick, seed, jobs, cache)
    drawn, files = [], []
    # A folder that cannot be written to is refused before anything is computed.
    with nullcontext() if target is None else folder_for(target), refusing(), stages("drawing") as tell:
        for each in (each for each in MODES if mode in (each, BOTH)):
            tell(f"figure {chosen.number}, {each}")
            drawn.append(draw(chosen, mode=each, effort=effort))
            files += [] if target is None else drawn[-1].save(target)
    holds = all(each.holds for each in drawn)
    if as_json:
        print_json(
            {
                **_head(),
                **chosen.facts,
                "effort": {"share": effort.share, "seed": effort.seed},
                "holds": holds,
                "modes": [{**one.record(), "table": _rows(one.table)} for one in drawn],
                "files": [str(path) for path in files],
            }
        )
    else:
        console = output()
        console.print(Text(f"Figure {chosen.number}: {chosen.title}", "bold"))
        for one in drawn:
            _print(one, console)
        if files:
            console.print(f"\nWritten: {', '.join(map(str, files))}", soft_wrap=True)
    raise typer.Exit(HELD if holds else VIOLATED)


@app.command(
    "all",
    epilog=each_line(
        "Examples:",
        "  sfumato lab all -o gallery",
        "  sfumato lab all -o gallery --quick --jobs 2",
        "",
        "All figures take some five minutes on two cores, and one or two with --quick.",
        'It needs the extra charts: pip install "sfumato[charts]"',
        "",
        *STATUS,
    ),
)
def everything(
    target: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="FOLDER", help="Where to write.", show_default=False),
    ],
    quick: Quick = False,
    seed: Seed = None,
    jobs: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=256, help="Worker processes; as many as cores if not given."),
    ] = None,
    cache: Cache = False,
    as_json: Json = False,
) -> None:
    """Draw all figures in both modes, and write a gallery.

    It is one page that stands on its own, with SVG, PNG and CSV files beside it.
    Figures that measure times are computed first, by themselves.
    """
    from sfumato.lab.gallery import gallery

    start = time.monotonic()
    effort = _effort(quick, seed, 1, cache)
    with folder_for(target), refusing(), stages("drawing") as tell:
        found = gallery(target, effort=effort, jobs=jobs or os.cpu_count() or 1, progress=tell)
    statements = [each for plate in found.plates for each in plate.statements]
    if as_json:
        print_json(
            {
                **_head(),
                "page": str(found.path),
                "effort": {"share": effort.share, "seed": effort.seed},
                "holds": not found.failing and not found.missing,
                "statements": len(statements),
                "figures": [
                    {
                        "number": plate.number,
                        "mode": plate.mode,
                        "statements": len(plate.statements),
                        "failing": [each.words for each in plate.statements if not each.holds],
                        "error": plate.error or None,
                        "seconds": round(plate.seconds, 1),
                    }
                    for plate in found.plates
                ],
            }
        )
    else:
        _print_gallery(found, len(statements), time.monotonic() - start)
    raise typer.Exit(VIOLATED if found.failing else UNUSABLE if found.missing else HELD)


def _effort(quick: bool, seed: int | None, jobs: int, cache: bool) -> Any:
    from sfumato.lab.figure import FULL, QUICK, Effort

    base = QUICK if quick else FULL
    return Effort(share=base.share, seed=base.seed if seed is None else seed, jobs=jobs, cache=cache)


def _head() -> dict[str, Any]:
    return {"schema": SCHEMA, "version": sfumato.__version__}


def _rows(table: Any) -> list[dict[str, Any]]:
    """The table as records; JSON knows neither NaN nor infinity."""

    def shown(value: Any) -> Any:
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return [{key: shown(value) for key, value in row.items()} for row in table.iter_rows(named=True)]


def _verdict(holds: bool) -> Text:
    return Text("holds", "green") if holds else Text("FAILS", "bold red")


def _print(drawn: Any, console: Output) -> None:
    console.print()
    console.print(Text(drawn.mode, "bold"))
    console.print(Text(drawn.figure.captions[drawn.mode]))
    made = grid_of(("", ""), (), left=2)
    made.show_header = False
    made.box = None
    for each in drawn.statements:
        made.add_row(_verdict(each.holds), Text(each.words))
    console.print(made)


def _print_gallery(found: Any, statements: int, seconds: float) -> None:
    console = output()
    rows = []
    for plate in found.plates:
        held = sum(each.holds for each in plate.statements)
        verdict = "NOT DRAWN" if plate.error else f"{held} of {len(plate.statements)}"
        title = next(figure.title for figure in found.figures if figure.number == plate.number)
        rows.append((plate.number, plate.mode, title, verdict, f"{plate.seconds:.1f}"))
    console.print(grid_of(("figure", "mode", "title", "hold", "seconds"), rows, left=3))
    for plate, statement in found.failing:
        console.print(Text(f"\nFigure {plate.number}, {plate.mode}, FAILS: {statement.words}", "bold red"))
    for plate in found.missing:
        console.print(Text(f"\nFigure {plate.number}, {plate.mode}, NOT DRAWN: {plate.error}", "bold red"))
    held = statements - len(found.failing)
    console.print(f"\n{held} of {statements} statements hold, {seconds:.0f} s.", soft_wrap=True)
    console.print(f"The gallery is {found.path}", soft_wrap=True)
