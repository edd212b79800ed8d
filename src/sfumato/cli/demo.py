"""`sfumato demo`: a release from beginning to end, of people who do not exist."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.options import Force, Json, each_line
from sfumato.cli.output import output, stages
from sfumato.cli.outputs import folder_for, write_new
from sfumato.cli.release import released
from sfumato.safe_text import csv_bytes

EXAMPLES = each_line(
    "Example: sfumato demo -o demo",
    "",
    "The folder gets the table, the plan, the ledger and, in out, what is published.",
    "A second run finds the release in the ledger, and costs nothing.",
)


def demo(
    folder: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Where the files go.")
    ] = Path("sfumato-demo"),
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Release statistics of 50,000 fictional people under one budget, with a report."""
    from sfumato import plan
    from sfumato.lab import salaries

    source, target = folder / "salaries.csv", folder / "plan.toml"
    with folder_for(folder):
        with stages("inventing people"):
            table = csv_bytes(salaries.frame())
        write_new(source, table, force=force)
        write_new(target, files("sfumato.cli").joinpath("demo.toml").read_bytes(), force=force)
        if not as_json:
            console = output()
            console.print(f"{salaries.ROWS:,} people, none of whom exists: {source}", soft_wrap=True)
            console.print(f"What is asked, and at which price: {target}\n", soft_wrap=True)
        released(plan.read(target), folder / "out", force=force, as_json=as_json)
