"""The command line: `sfumato audit`. Typer and Rich come with the extra `cli`."""

import sys

__all__ = ["main"]

MISSING = 'sfumato: the command line needs the packages typer and rich: pip install "sfumato[cli]"\n'


def main() -> None:
    """Run the command line with the arguments of the process, and exit.

    Guarantee:
        The exit status is 0 if every claim holds, 1 if one is violated, 2 if something could not be done,
        and 130 after an interrupt; docs/cli.md has the list.

    >>> callable(main)
    True
    """
    try:
        from sfumato.cli.app import run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        sys.stderr.write(MISSING)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    run()
