"""The command line: plans, releases, reports, ledgers and audits, as `sfumato` and `python -m sfumato`."""

import sys

__all__ = ["main"]

MISSING = "sfumato: the package {} is missing, which the command line needs: pip install sfumato\n"


def main() -> None:
    """Run the command line with the arguments of the process, and exit.

    Guarantee:
        The exit status says what happened; docs/cli.md has the list. What goes wrong is told on standard
        error, without a traceback and without a datum.

    >>> callable(main)
    True
    """
    try:
        from sfumato.cli.app import run
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name not in ("typer", "rich"):
            raise
        sys.stderr.write(MISSING.format(name))
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    run()
