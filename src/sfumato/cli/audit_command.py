"""The options of `sfumato audit`."""

from typing import Annotated, Any

import typer

from sfumato.cli.options import each_line

EXAMPLES = each_line(
    "Examples:",
    "  sfumato audit",
    "  sfumato audit --only mean --each",
    "  sfumato audit --json > audit.json",
    "  sfumato audit noisy:count --left '[1, 1]' --right '[1]' --epsilon 1",
    "",
    "Exit status: 0 if no claim is violated, 1 if one is, 2 if the arguments or",
    "what they name cannot be used, 130 after Ctrl-C.",
)


def audit(
    mechanism: Annotated[
        str | None,
        typer.Argument(
            metavar="MODULE:FUNCTION",
            help="Your own mechanism, in the current directory or installed; else all that is shipped.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Of what is shipped, only names that contain this.")
    ] = None,
    each: Annotated[bool, typer.Option("--each", help="A line for every audit, not every claim.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the names, and audit nothing.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller data sets, fewer choices.")] = False,
    jobs: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=256, help="Worker processes; as many as cores if not given."),
    ] = None,
    left: Annotated[
        str | None,
        typer.Option(metavar="DATA", help="A data set: JSON, MODULE:NAME, or a .npy or .csv file."),
    ] = None,
    right: Annotated[
        str | None, typer.Option(metavar="DATA", help="A neighbour: the same but for one person.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(metavar="E", help="What the mechanism claims.")] = None,
    delta: Annotated[float | None, typer.Option(metavar="D", help="What it claims; 0 if not given.")] = None,
    samples: Annotated[
        int | None, typer.Option(metavar="N", help="Draws on each data set; 100000 if not given.")
    ] = None,
    confidence: Annotated[
        float | None, typer.Option(metavar="C", help="How surely the bound holds; 0.95 if not given.")
    ] = None,
    batched: Annotated[
        bool, typer.Option("--batched", help="The function takes (data, size) and returns that many.")
    ] = False,
    attacks: Annotated[
        bool, typer.Option("--attacks", help="Also try low-order bits, timing, seeds and hostile data.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")] = False,
) -> None:
    """Compare privacy losses with what is claimed.

    Without an argument, everything that the package ships is audited on all small
    neighbouring data sets: pure losses are exact, others lie between two bounds.

    With MODULE:FUNCTION, draws of your own mechanism on two neighbouring data sets
    bound its epsilon from below. A bound above the claim refutes it; one below the
    claim proves nothing.
    """
    from sfumato.cli.audit import audit_callable, audit_shipped, list_shipped

    of_shipped = {"--only": only, "--each": each, "--list": listing, "--quick": quick, "--jobs": jobs}
    of_own = {
        "--left": left,
        "--right": right,
        "--epsilon": epsilon,
        "--delta": delta,
        "--samples": samples,
        "--confidence": confidence,
        "--batched": batched,
        "--attacks": attacks,
    }
    if mechanism is None:
        _refuse(of_own, "needs MODULE:FUNCTION, the mechanism to audit")
        if listing:
            status = list_shipped(only=only, quick=quick, as_json=as_json)
        else:
            status = audit_shipped(only=only, each=each, quick=quick, jobs=jobs, as_json=as_json)
    else:
        _refuse(of_shipped, "is for what is shipped, and not for MODULE:FUNCTION")
        if left is None or right is None or epsilon is None:
            raise typer.BadParameter("--left, --right and --epsilon must be given with MODULE:FUNCTION")
        status = audit_callable(
            mechanism,
            left,
            right,
            epsilon=epsilon,
            delta=0 if delta is None else delta,
            samples=100_000 if samples is None else samples,
            confidence=0.95 if confidence is None else confidence,
            batched=batched,
            attacks=attacks,
            as_json=as_json,
        )
    raise typer.Exit(status)


def _refuse(options: dict[str, Any], why: str) -> None:
    for name, value in options.items():
        if value is not None and value is not False:
            raise typer.BadParameter(f"{name} {why}")
