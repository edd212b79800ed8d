"""From a file to a plan, or to an error that names file, line and field."""

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from sfumato.plan.model import (
    MOST_COLUMNS,
    MOST_DERIVED,
    MOST_QUERIES,
    AccuracyTable,
    BudgetTable,
    ColumnTable,
    DataTable,
    GroupsTable,
    LedgerTable,
    Plan,
    QueryTable,
)
from sfumato.plan.positions import TooDeep, positions
from sfumato.plan.problems import Place, PlanError, Problem, problem_at
from sfumato.plan.values import seen

MOST_BYTES = 2**20
MOST_ON_A_LINE = 2**16
MOST_DOTS = 200
MOST_ERRORS = 1000
MOST_ROOT_KEYS = 100

_AT = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
# What tomllib says, and what that means to somebody who writes a plan.
_SYNTAX = {
    "Cannot overwrite a value": "this key is given twice",
    "Cannot declare": "this table is given twice",
    "Cannot mutate immutable": "this key is given twice, or added to what is complete",
    "Cannot redefine": "this table is given twice",
    "Invalid value": "no value that TOML knows: text needs quotes, and numbers, lists and tables their form",
    "Expected '=' after a key": "a key needs = and a value after it",
    "Expected newline or end of document": "there is something after the value; a value ends its line",
    "Invalid initial character for a key": "a line starts with a key or with [table]",
    "Invalid statement": "a line starts with a key or with [table]",
    'Expected "': "text of several lines is not closed: its last three quotes are missing",
    "Expected '\"": "text of several lines is not closed: its last three quotes are missing",
    "Unterminated string": "text is not closed: its last quote is missing",
    "Illegal character": "there is a control character, or text is not closed on its line",
    "Unclosed array": "a list is not closed, or a comma is missing",
    "Unclosed inline table": "a table in braces is not closed on its line, or a comma is missing",
    "Duplicate inline table key": "a key is given twice in the table",
    "Unescaped '\\' in a string": "a backslash in text must be doubled, or the text put in single quotes",
    "Invalid hex value": "a backslash code in text is not complete",
    "Expected ']": "a table's name must be closed with ]",
    "Invalid date or datetime": "this is no date, and a plan needs none",
}
_TABLES: list[tuple[tuple[Any, ...], type[BaseModel]]] = [
    ((), Plan),
    (("data",), DataTable),
    (("budget",), BudgetTable),
    (("ledger",), LedgerTable),
    (("ledger", "cap"), BudgetTable),
    (("columns", str), ColumnTable),
    (("queries", int), QueryTable),
    (("queries", int, "accuracy"), AccuracyTable),
    (("queries", int, "groups"), GroupsTable),
]
# What people write for a key that has another name here.
_MEANT = {
    "by": "group_by",
    "groupby": "group_by",
    "filter": "where",
    "derived": "derive",
    "expressions": "derive",
    "backend": "engine",
    "pyspark": "spark",
    "quantiles": "probs",
    "eps": "epsilon",
    "kind": "type",
    "range": "bounds",
    "values": "categories",
    "levels": "categories",
    "weight": "share",
    "query": "queries",
    "column": "columns",
    "null": "nulls",
    "file": "path",
    "neighbors": "neighbours",
    "threshold": "passes",
    "count": "passes",
    "float": "real",
    "number": "real",
    "numeric": "real",
    "double": "real",
    "decimal": "real",
    "int": "integer",
    "string": "text",
    "str": "text",
    "bool": "boolean",
    "average": "mean",
    "percentiles": "quantiles",
    "mode": "most_common",
}


def read(path: str | Path) -> Plan:
    """The plan in a file, its form checked; `check` then looks at what it means.

    Guarantee:
        Reads the plan alone, never the data, and spends nothing.

    Raises:
        PlanError: the file cannot be read, is no TOML, or breaks a rule; with file, line and field.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "plan.toml")
    >>> _ = file.write_text("version = 1\\ntitel = 'Ages'")
    >>> try:
    ...     read(file)
    ... except PlanError as error:
    ...     print(str(error).splitlines()[-1])
    plan.toml, line 2, titel: is no key of a plan; did you mean title?
    """
    place = Path(path)
    try:
        with place.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        why = {FileNotFoundError: "there is no such file", IsADirectoryError: "this is a folder, not a file"}
        words = why.get(type(error), "the file cannot be opened for reading")
        raise PlanError([Problem(str(place), None, "", words)]) from None
    if len(content) > MOST_BYTES:
        raise PlanError([Problem(place.name, None, "", f"a plan has at most {MOST_BYTES:,} bytes")])
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        words = "a plan must be saved as UTF-8 text"
        raise PlanError([Problem(place.name, line, "", words)]) from None
    return parse(text, path=place)


def parse(text: str, *, path: str | Path = "plan.toml") -> Plan:
    """The plan in a text, as `read` does for a file.

    Guarantee:
        Reads nothing but the text, and spends nothing.

    Args:
        text: the plan in TOML.
        path: where the text would stand: messages name it, and relative paths start there.

    Raises:
        PlanError: the text is no TOML or breaks a rule; with file, line and field.

    >>> try:
    ...     parse("version = 1\\nversion = 1")
    ... except PlanError as error:
    ...     print(error)
    plan.toml, line 2: this key is given twice
    """
    place = Path(path)
    if len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise PlanError([Problem(place.name, None, "", f"a plan has at most {MOST_BYTES:,} bytes")])
    tree = _toml(text, place.name)
    try:
        lines = positions(text)
    except TooDeep as deep:
        words = "tables or lists stand too deep inside each other"
        raise PlanError([Problem(place.name, deep.line, "", words)]) from None
    if "version" in tree and (type(tree["version"]) is not int or tree["version"] != 1):
        # Another version may have other keys: what else is unknown to this one tells nothing.
        words = f"must be 1, the version of plans that this program reads, got {seen(tree['version'])}"
        raise PlanError([problem_at(place.name, lines, ("version",), words)])
    for key, most in (("queries", MOST_QUERIES), ("columns", MOST_COLUMNS), ("derive", MOST_DERIVED)):
        listed = tree.get(key)
        if isinstance(listed, list | dict) and len(listed) > most:
            beyond = list(listed)[most] if isinstance(listed, dict) else most
            words = f"must be at most {most:,}, got {len(listed):,}"
            raise PlanError([problem_at(place.name, lines, (key, beyond), words)])
    # Of a thousand unknown keys a hundred are enough to tell.
    tree = dict(islice(tree.items(), MOST_ROOT_KEYS))
    try:
        plan = Plan.model_validate(tree)
    except ValidationError as wrong:
        errors = wrong.errors(include_url=False)[:MOST_ERRORS]
        # A list with wrong items also counts as too short, which is no news.
        held = {error["loc"][:1] for error in errors if len(error["loc"]) > 1}
        errors = [error for error in errors if error["type"] != "too_short" or error["loc"] not in held]
        meant = {
            (*error["loc"][:-1], _guess(error)) for error in errors if error["type"] == "extra_forbidden"
        }
        found = [
            (_place(error), _words(error))
            for error in errors
            if error["type"] != "missing" or error["loc"] not in meant
        ]
        problems = [problem_at(place.name, lines, where, words) for where, words in found]
        raise PlanError(sorted(dict.fromkeys(problems), key=lambda each: each.line or 0)) from None
    plan._path, plan._text, plan._lines = place, text, lines
    return plan


def _toml(text: str, file: str) -> dict[str, Any]:
    for number, line in enumerate(text.split("\n"), start=1):
        # tomllib takes quadratic time for a key of thousands of parts.
        if line.count(".") > MOST_DOTS and len(line.split("=", 1)[0].split("#")[0]) > MOST_ON_A_LINE:
            raise PlanError([Problem(file, number, "", "this key is too long")])
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        said = str(error)
        found = _AT.search(said)
        number = int(found.group(1)) if found and found.group(1) else text.count("\n") + 1
        raise PlanError([Problem(file, number, "", _syntax(_AT.sub("", said)))]) from None
    except (RecursionError, MemoryError):
        words = "tables or lists stand too deep inside each other"
        raise PlanError([Problem(file, None, "", words)]) from None
    except (ValueError, InvalidOperation, OverflowError):
        raise PlanError([Problem(file, None, "", "a number or a date is out of range")]) from None


def _syntax(said: str) -> str:
    return next((words for start, words in _SYNTAX.items() if said.startswith(start)), f"no TOML: {said}")


def _place(error: ErrorDetails) -> Place:
    # A key of a table that is itself wrong ends with this mark.
    return tuple(part for part in error["loc"] if part != "[key]")


def _words(error: ErrorDetails) -> str:
    """What pydantic found, in the words of somebody who writes a plan."""
    kind, got, context = error["type"], error["input"], error.get("ctx", {})
    place = _place(error)
    if kind == "missing":
        return f"is missing; {_description(place)}"
    if kind == "extra_forbidden":
        return _unknown(place)
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        options = context["expected"].replace(" or ", ", ")
        near = closest(got, re.findall(r"'([^']*)'", options)) if isinstance(got, str) else None
        return f"must be one of {options}, got {seen(got)}" + (f"; did you mean {near}?" if near else "")
    return _RULES.get(kind, "is not understood").format(got=_got(got, kind), **context)


_RULES = {
    "string_type": "must be text in quotes, got {got}",
    "string_too_short": "must not be empty",
    "string_too_long": "must be at most {max_length:,} characters, got more",
    "bool_type": "must be true or false, got {got}",
    "tuple_type": "must be a list, got {got}",
    "dict_type": "must be a table, got {got}",
    "model_type": "must be a table, got {got}",
    "model_attributes_type": "must be a table, got {got}",
    "too_short": "must hold at least one, got none",
    "too_long": "must hold at most {max_length:,}, got more",
}


def _got(value: object, kind: str) -> str:
    return "" if kind in ("string_too_long", "too_long") else seen(value)


def _model(place: Place) -> type[BaseModel] | None:
    for shape, model in _TABLES:
        if len(shape) == len(place) and all(
            isinstance(part, want) if isinstance(want, type) else part == want
            for part, want in zip(place, shape, strict=True)
        ):
            return model
    return None


def keys(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """The keys of a table with what they mean."""
    for name, field in model.model_fields.items():
        yield field.alias or name, field.description or ""


def _description(place: Place) -> str:
    model = _model(place[:-1])
    known: Mapping[str, str] = {} if model is None else dict(keys(model))
    words = known.get(str(place[-1]), "")
    return f"it says: {words[:1].lower()}{words[1:]}".rstrip(".") if words else "it must be given"


def _unknown(place: Place) -> str:
    names = _known(place[:-1])
    tables = {"queries": "a query", "columns": "a column"}
    what = tables.get(str(place[0]), "this table") if len(place) > 1 else "a plan"
    if len(place) > 1 and isinstance(place[-2], str) and place[0] == "queries":
        what = str(place[-2])
    near = closest(str(place[-1]), names)
    return f"is no key of {what}" + (f"; did you mean {near}?" if near else f", which has {', '.join(names)}")


def _guess(error: ErrorDetails) -> str | None:
    return closest(str(error["loc"][-1]), _known(error["loc"][:-1]))


def _known(place: Place) -> list[str]:
    model = _model(place)
    return [] if model is None else [name for name, _ in keys(model)]


def closest(given: str, names: list[str]) -> str | None:
    """What was probably meant by a word, among some; None if that is anybody's guess.

    >>> closest("Group-By", ["group_by", "where"]), closest("eps", ["epsilon"]), closest("xyz", ["where"])
    ('group_by', 'epsilon', None)
    """
    lower = given.lower().replace("-", "_").replace(" ", "_")[:100]
    if lower in names:
        return lower
    if _MEANT.get(lower) in names:
        return _MEANT[lower]
    return next(iter(difflib.get_close_matches(lower, names, n=1)), None)
