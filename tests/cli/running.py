"""The command line, called in this process and run in one of its own."""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

from typer.testing import CliRunner

from sfumato.cli.app import app
from sfumato.cli.failures import told
from sfumato.cli.status import FAULT

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "audit_own"
OWN = ("audit", "noisy:count", "--left", "[1, 1, 1]", "--right", "[1, 1]", "--epsilon", "1")


def called(*arguments):
    """The exit status, standard output and standard error of the command line in this process."""
    result = CliRunner().invoke(app, list(map(str, arguments)))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        status, words = told(result.exception)
        if status == FAULT:
            raise result.exception
        return status, result.stdout, result.stderr + words
    return result.exit_code, result.stdout, result.stderr


def started(*arguments, here=ROOT, **environment):
    """The same in a process of its own."""
    inherited = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
    return subprocess.Popen(
        [sys.executable, "-m", "sfumato", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        cwd=here,
        env={**inherited, "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8", **environment},
        # A shell starts what it puts into the background deaf to Ctrl-C, and children inherit that.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )


def ran(*arguments, here=ROOT, **environment):
    process = started(*arguments, here=here, **environment)
    printed, complained = process.communicate(timeout=120)
    return process.returncode, printed, complained
