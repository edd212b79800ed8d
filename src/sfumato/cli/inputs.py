"""What the arguments name: a function, a data set."""

import csv
import importlib
import json
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.checks import shown
from sfumato.cli.status import Refused
from sfumato.grid import Floats

_NAME = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_IN_MODULE = re.compile(rf"({_NAME}):({_NAME})")


def callable_from(text: str) -> Callable[..., Any]:
    """The function that MODULE:FUNCTION names; the current directory is looked at first."""
    found = _IN_MODULE.fullmatch(text)
    if found is None:
        raise Refused(f"the mechanism must be MODULE:FUNCTION, such as noisy:count, got {shown(text)}")
    function = _imported(*found.groups())
    if not callable(function):
        raise Refused(f"{text} is not callable: it is of type {type(function).__name__}")
    return function  # type: ignore[no-any-return]  # reason: the user's own


def data_from(option: str, text: str) -> Any:
    """A data set: MODULE:NAME, a .npy or .csv file, or JSON."""
    if text.endswith((".npy", ".csv")):
        return _file(option, Path(text))
    found = _IN_MODULE.fullmatch(text)
    if found is not None:
        return _imported(*found.groups())
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        kinds = "JSON, MODULE:NAME, or the path of a .npy or .csv file"
        raise Refused(f"{option} must be {kinds}, got {shown(text)}: {error}") from error


def tried(name: str, function: Callable[..., Any], option: str, data: Any, *, batched: bool) -> None:
    """Call the function once, so that a mistake in it is not taken for an outcome of every draw."""
    try:
        function(data, 1) if batched else function(data)
    except Exception as error:  # whatever the user's function does
        raise Refused(f"{name} fails on {option}: {explained(error)}") from error


def _imported(module: str, name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:  # whatever the user's module does when it is imported
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and f"{module}.".startswith(f"{missing}."):
            raise Refused(f"there is no module {module} in {here} or among what is installed") from error
        raise Refused(f"module {module} cannot be imported: {explained(error)}") from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise Refused(f"module {module} has no {name}")
        found = getattr(found, part)
    return found


def _file(option: str, path: Path) -> Any:
    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        with path.open(newline="", encoding="utf-8-sig") as lines:
            return _numbers([row for row in csv.reader(lines) if row])
    except FileNotFoundError as error:
        raise Refused(f"{option}: there is no file {path}") from error
    except (OSError, ValueError, csv.Error) as error:
        raise Refused(f"{option}: {path} cannot be read: {error}") from error


def _numbers(rows: list[list[str]]) -> Floats:
    """One column as a row of numbers, several as a matrix; a first line without any number is a header."""
    if rows and not any(_is_number(cell) for cell in rows[0]):
        rows = rows[1:]
    if len({len(row) for row in rows}) > 1:
        raise ValueError("its lines have different numbers of columns")
    # An empty cell is a missing value.
    read = np.array([[float(cell) if cell.strip() else np.nan for cell in row] for row in rows])
    return read[:, 0] if read.ndim == 2 and read.shape[1] == 1 else read


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return not cell.strip()
    return True


def explained(error: BaseException) -> str:
    """An exception in one line, with the place in the user's file where it was raised."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if each.filename != __file__]
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError) or not frames:
        return text
    return f"{text} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"
