"""Options that several commands take, each written once."""

import os
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.checks import exact, shown
from sfumato.cli.status import Refused
from sfumato.privacy import ZCDP, ApproxDP, PureDP
from sfumato.privacy.definitions import Budget

LEDGER_VARIABLE = "SFUMATO_LEDGER"
DEFAULT_LEDGER = "ledger.db"

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document, and nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there already.")]
PlanFile = Annotated[
    Path, typer.Argument(metavar="PLAN", help="A plan file, such as plan.toml.", show_default=False)
]
_LEDGER = f"A path such as {DEFAULT_LEDGER}, or a URL such as postgresql://user@host/name."
LedgerUrl = Annotated[
    str | None,
    typer.Option("--ledger", metavar="URL", envvar=LEDGER_VARIABLE, help=_LEDGER, show_default=False),
]
# The variable stands behind the ledger that a plan names, so that it is not read in place of the option.
LedgerOfPlan = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="URL",
        help=_LEDGER,
        show_default=f"that of the plan, else ${LEDGER_VARIABLE}, else {DEFAULT_LEDGER} beside the plan",
    ),
]
Dataset = Annotated[
    str, typer.Argument(metavar="DATASET", help="The public name of a data set.", show_default=False)
]
Epsilon = Annotated[str | None, typer.Option("--epsilon", metavar="E", help="An epsilon; pure if alone.")]
Delta = Annotated[
    str | None, typer.Option("--delta", metavar="D", help="The delta that goes with the epsilon.")
]
Rho = Annotated[
    str | None, typer.Option("--rho", metavar="R", help="A zero-concentrated rho, in place of both.")
]


def new_group(name: str, words: str, **more: Any) -> typer.Typer:
    """A group of commands that looks like all others."""
    return typer.Typer(
        name=name,
        help=words,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        **more,
    )


def ledger_of(plan: Any, given: str | None) -> str:
    """The ledger of a release: the one given, else the plan's own, else that of the environment."""
    named = None if plan.ledger.url is not None else os.environ.get(LEDGER_VARIABLE)
    address: str = given or named or plan.ledger_url
    return address


def budget_of(epsilon: str | None, delta: str | None, rho: str | None) -> Budget:
    """The budget that the options name, read exactly: 0.1 is 1/10."""
    if (epsilon is None) == (rho is None) or (rho is not None and delta is not None):
        raise typer.BadParameter("give --epsilon, or --epsilon with --delta, or --rho")
    if rho is not None:
        return ZCDP(number("--rho", rho))
    if delta is not None:
        return ApproxDP(number("--epsilon", str(epsilon)), number("--delta", delta))
    return PureDP(number("--epsilon", str(epsilon)))


def number(option: str, text: str) -> Fraction:
    """A number as it was written, exactly: 0.1 is 1/10."""
    try:
        return exact(option, Decimal(text))
    except InvalidOperation as error:
        raise Refused(f"{option} must be a number, got {shown(text)}") from error


def each_line(*lines: str) -> str:
    """An epilog that keeps its lines; an empty one starts a paragraph."""
    return "\n\n".join(f"\b\n{paragraph}" for paragraph in "\n".join(lines).split("\n\n"))
