"""What is wrong with a plan, told with file, line and field."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sfumato.errors import InvalidParameter
from sfumato.release import printable

Place = tuple[str | int, ...]
Lines = Mapping[Place, int]

MOST_SHOWN = 20


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: the file, the line if it is known, the field, and what to do about it."""

    file: str
    line: int | None
    field: str
    words: str

    def __str__(self) -> str:
        line = "" if self.line is None else f", line {self.line}"
        return f"{printable(self.file)}{line}{f', {self.field}' * bool(self.field)}: {self.words}"


class PlanError(InvalidParameter):
    """A plan file breaks a rule; each problem names the file, the line and the field.

    Guarantee:
        Nothing was charged and no value of the data was read; the message shows what the plan says and no
        data.

    Args:
        problems: all that was found, in the order of the file.

    >>> from sfumato.plan import parse
    >>> try:
    ...     parse("version = 2", path="people.toml")
    ... except PlanError as error:
    ...     print(error)
    people.toml, line 1, version: must be 1, the version of plans that this program reads, got 2
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems[:MOST_SHOWN]]
        more = len(self.problems) - MOST_SHOWN
        super().__init__("\n".join([*lines, *[f"and {more} more"] * (more > 0)]))


def problem_at(file: str, lines: Lines, place: Place, words: str) -> Problem:
    """A problem at a place of the file; where the place itself is missing, at what it is missing from."""
    known = next((lines[place[:end]] for end in range(len(place), 0, -1) if place[:end] in lines), 1)
    return Problem(file, known, field_words(place), words)


def field_words(place: Place) -> str:
    """A place as a reader counts: the first query is queries.1.

    >>> field_words(("queries", 1, "column")), field_words(("columns", "net pay"))
    ('queries.2.column', 'columns."net pay"')
    """
    return ".".join(str(part + 1) if isinstance(part, int) else _key(part) for part in place)


def _key(part: str) -> str:
    short = part if len(part) <= 60 else f"{part[:57]}..."
    return short if re.fullmatch(r"[A-Za-z0-9_-]+", short) else json.dumps(short)
