"""How the text of a cell becomes a value of the declared kind: one grammar for all engines."""

import re
from datetime import date

from sfumato.data.file_types import FileKind

# What stands for a missing value in columns of numbers and booleans, beside the empty cell.
NULL = "NA"
TRUE = ("true", "True", "TRUE", "1")
FALSE = ("false", "False", "FALSE", "0")

# All engines know these forms of regular expressions, and read them alike.
_SPACE, _END = r"\A[ \t]*", r"\r?\z"
_DIGITS = r"([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?"
_INFINITE = r"[iI][nN][fF]([iI][nN][iI][tT][yY])?"
_YEAR = r"([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_DAY = rf"{_YEAR}-[0-9]{{2}}-[0-9]{{2}}"
_HOUR = r"([01][0-9]|2[0-3]):[0-5][0-9]"
BLANK = r"\A([ \t]*\r?|NA)\z"
INTEGER = rf"{_SPACE}[+-]?[0-9]+{_END}"
DECIMAL = rf"{_SPACE}[+-]?{_DIGITS}{_END}"
ABOVE = rf"{_SPACE}[+]?{_INFINITE}{_END}"
BELOW = rf"{_SPACE}-{_INFINITE}{_END}"
NO_NUMBER = rf"{_SPACE}[+-]?[nN][aA][nN]{_END}"
# What may stand around a number.
AROUND = " \t\r"
DATE = rf"{_SPACE}{_DAY}{_END}"
MINUTE = rf"{_SPACE}{_DAY}[T ]{_HOUR}Z?{_END}"
SECOND = rf"{_SPACE}{_DAY}[T ]{_HOUR}:[0-5][0-9]([.][0-9]{{1,6}})?Z?{_END}"
_CELLS = {"integer": (INTEGER,), "real": (DECIMAL, ABOVE, BELOW, NO_NUMBER)}
_CELLS |= {"date": (DATE,), "datetime": (DATE, MINUTE, SECOND)}


def fits(cell: str | None, kind: FileKind) -> bool:
    """Whether the text of a cell is null or a value of a kind.

    >>> fits("34", "integer"), fits("34.0", "integer"), fits("NA", "integer"), fits("1e400", "real")
    (True, False, True, True)
    """
    if kind == "text" or not cell:
        return True
    if kind == "boolean":
        return cell in (*TRUE, *FALSE, NULL)
    forms = (form.replace(r"\z", r"\Z") for form in (BLANK, *_CELLS[kind]))
    sound = any(re.match(form, cell) for form in forms)
    if kind == "real" or not sound or re.match(BLANK.replace(r"\z", r"\Z"), cell):
        return sound
    if kind != "integer":
        try:
            date.fromisoformat(cell.strip(AROUND)[:10])
        except ValueError:
            return False
        return True
    digits = cell.strip(AROUND).lstrip("+-").lstrip("0")
    return len(digits) <= 19 and -(2**63) <= int(cell.strip(AROUND)) < 2**63
