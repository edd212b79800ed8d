"""What goes wrong, as an exit status and words for people; never a traceback, and never a datum."""

import os
import traceback
from pathlib import Path

from sfumato.cli.status import EXCEEDED, FAULT, INTERRUPTED, LEDGER, PIPE_CLOSED, UNUSABLE, Refused
from sfumato.errors import BudgetExceeded, LedgerDamaged, LedgerUnavailable, SfumatoError
from sfumato.release import printable


def told(error: BaseException) -> tuple[int, str]:
    """The exit status and the message of an exception; no message where nobody is there to read it."""
    match error:
        case Refused():
            return error.status, str(error)
        case BudgetExceeded():
            return EXCEEDED, str(error)
        case LedgerUnavailable() | LedgerDamaged():
            return LEDGER, str(error)
        case SfumatoError():
            return UNUSABLE, str(error)
        case KeyboardInterrupt():
            return INTERRUPTED, ""
        case BrokenPipeError():
            return PIPE_CLOSED, ""
        case UnicodeError():
            # The message of the exception would show the bytes around the fault.
            return UNUSABLE, "a file is not text in UTF-8"
        case OSError() if error.strerror:
            return UNUSABLE, reason(error)
        case MemoryError():
            return UNUSABLE, "there is not enough memory"
        case _:
            return FAULT, f"a fault of sfumato itself: {type(error).__name__} at {_place(error)}"


def reason(error: OSError) -> str:
    """Why a file cannot be used, in words: "people.csv: no such file or directory"."""
    words = (error.strerror or "it cannot be used").lower()
    name = error.filename
    if name is None:
        return words
    path = os.fsdecode(name) if isinstance(name, str | bytes | os.PathLike) else str(name)
    return f"{printable(path)}: {words}"


def _place(error: BaseException) -> str:
    """The last line of our own code that the exception passed, without what the line worked on."""
    own = Path(__file__).resolve().parents[1]
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if own in Path(frame.filename).parents
    ]
    if not frames:
        return "an unknown place"
    return f"{Path(frames[-1].filename).relative_to(own).as_posix()}, line {frames[-1].lineno}"
