"""The commands and their options, as text in and exit status out."""

import io
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import sfumato
from sfumato.cli import (
    anonymity,
    anonymize,
    audit_command,
    choose_epsilon,
    demo,
    lab,
    ledger,
    plan,
    release,
    report,
)
from sfumato.cli.failures import told
from sfumato.cli.options import each_line, new_group
from sfumato.cli.output import let_go
from sfumato.cli.status import SHORT
from sfumato.safe_text import visible

ABOUT = "Statistics about people, published without exposing any of them."
EXAMPLES = each_line(
    "From a file to a report:",
    "  sfumato plan new people.csv        a plan to complete, from the header alone",
    "  sfumato plan preview plan.toml     accuracy and cost; nothing is read or spent",
    "  sfumato release plan.toml -o out   pay, release, and write the files and the report",
    "  sfumato ledger show                what was spent and what remains",
    "",
    "Without a file of your own: sfumato demo",
    "",
    "Exit status:",
    *(f"  {status:<4}{words}" for status, words in SHORT.items()),
    "docs/cli.md says more of each.",
)

# In the order in which they are met, with one line each.
COMMANDS = {
    "demo": "Release statistics of fictional people, with a report.",
    "plan": "Begin, check and preview a plan.",
    "choose-epsilon": "Find the budget for a wanted error.",
    "release": "Pay for a plan, release it, write tables and a report.",
    "report": "Write the report of a stored release again.",
    "ledger": "See what was spent; open, renew and retire budgets.",
    "audit": "Compare privacy losses with what is claimed.",
    "anonymize": "Coarsen a table until k rows share each combination.",
    "anonymity": "Measure how anonymous a table is.",
    "lab": "Draw the figures of the sources, as published and corrected.",
}


class InOrder(TyperGroup):
    """The commands in the order of the list above, groups among them."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names, for the help and for completion."""
        return list(COMMANDS)


app = new_group("sfumato", ABOUT, epilog=EXAMPLES, add_completion=True, cls=InOrder)
app.add_typer(plan.app, short_help=COMMANDS["plan"])
app.add_typer(ledger.app, short_help=COMMANDS["ledger"])
app.add_typer(anonymity.app, short_help=COMMANDS["anonymity"])
app.add_typer(lab.app, short_help=COMMANDS["lab"])
for _name, _command, _epilog in (
    ("demo", demo.demo, demo.EXAMPLES),
    ("choose-epsilon", choose_epsilon.choose_epsilon, choose_epsilon.EXAMPLES),
    ("release", release.release, release.EXAMPLES),
    ("report", report.report, report.EXAMPLES),
    ("audit", audit_command.audit, audit_command.EXAMPLES),
    ("anonymize", anonymize.anonymize, anonymize.EXAMPLES),
):
    app.command(_name, short_help=COMMANDS[_name], epilog=_epilog)(_command)


def run(arguments: list[str] | None = None) -> None:
    """Run the command line, and exit."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name that the terminal has no letters for is shown by their numbers, and stops nothing.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app(args=arguments)
    except (Exception, KeyboardInterrupt) as error:
        status, words = told(error)
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except OSError:
            # The interpreter would try again at exit, and end with a status of its own.
            let_go()
        if words:
            sys.stderr.write(f"sfumato: {visible(words)}\n")
        sys.exit(status)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sfumato {sfumato.__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Statistics about people, published without exposing any of them."""
