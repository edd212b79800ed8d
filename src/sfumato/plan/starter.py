"""A plan to begin with, from the names and types of a file alone."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from sfumato.data.file_faults import is_number
from sfumato.data.file_types import FileKind
from sfumato.errors import InvalidParameter
from sfumato.plan.queries import KINDS
from sfumato.release import printable

SCHEMA_FILE = "plan.schema.json"
# What TOML refuses in text, and what some editors take for the end of a line.
_UNSAFE = r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]"

_HEAD = """\
#:schema {schema}
# (For editors that know TOML: sfumato plan schema > {schema})
#
# A plan: which statistics of which data are released, and what they may cost.
# Fill in what is marked "fill in", then run: sfumato plan check {plan}
# It was begun from the names and types of the columns; no value was looked at for it.

version = 1
title = {title}
# about = "What readers of the report should know first."

[data]
path = {path}
# engine = "duckdb"    # or "spark": what reads the data; Polars unless given
name = {name}    # the public name that budgets attach to: one name for the same people
# Whose privacy is protected? "row" if each row is one person. Else the column with the person's id, and then
# also rows_per_unit: at most so many rows of each person are used.
unit = "row"
# rows_per_unit = 3
# groups_per_unit = 2    # and in at most so many groups of a query
# May others know how many rows there are? "substitution": yes, it is public. "add-remove": no, it is hidden.
# fill in:
# neighbours = "add-remove"
# rows = 10_000    # the number of rows if it is public; else a public guess of it, for previews

[budget]
# What all queries may cost together. Smaller is more private and less accurate: `sfumato choose-epsilon`.
# fill in:
# epsilon = 1.0
# delta = 1e-6     # or rho = 0.1 alone

# [ledger]
# url = "sqlite:///ledger.db"      # beside the plan
# cap = {{ epsilon = 3.0 }}          # what may be spent on these data in all

# The columns. Bounds and categories must come from public knowledge, such as a law, a form or a code book:
# read from the data, they would tell who is in them. Values outside the bounds are clamped; values that are
# no category belong to no group. Take out the columns that no query needs.
"""

_NUMBERS = """
[columns.{name}]
type = "{kind}"{guess}
# fill in, if a query needs sums, means or quantiles of it:
# bounds = [0, 100]
# step = {step}          # the distance of possible values, if there is one
# nulls = "drop"    # missing values: left out, or counted as "lower" or "upper" bound
"""
_WORDS = """
[columns.{name}]
type = "{kind}"{guess}
# fill in, if a query counts it, or has it in where or group_by:
# categories = [{example}]
"""
_DATES = """
[columns.{name}]
type = "{kind}"
# fill in, if a query needs means or quantiles of it:
# bounds = [2020-01-01, 2020-12-31]
"""
_OTHER = """
# [columns.{name}] has a type that is not a number, text, a date, true or false, and cannot be used.
"""
_QUERIES = """
# The queries, each with a name, a statistic, a column and a share of the budget (equal shares if none says).
# Statistics: {statistics}.

[[queries]]
name = "number of rows"
statistic = "count"
{mean}
# [[queries]]
# name = "deciles by group"
# statistic = "deciles"
# column = {number}
# group_by = [{group}]
# where = {{ {group_key} = "one of its categories" }}
# share = 0.5                          # or accuracy = {{ rank_error = 100, confidence = 0.95 }}
# n_hint = 1_000                       # a public guess of the rows in each group
"""
_MEAN = """
[[queries]]
name = {title}
statistic = "mean"
column = {column}
"""


def starter(path: str | Path, *, beside: str | Path | None = None) -> str:
    """A commented plan for a file, to be filled in; made from its header and types.

    Guarantee:
        No value of the data goes into it. It is TOML, and `check` says what is still missing.

    Args:
        path: the CSV, Parquet or Arrow file, a folder of such files, or a pattern.
        beside: the file that the plan will be written to; plan.toml in the folder of the data unless given.

    Raises:
        FileFault: the file cannot be read.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "people.csv")
    >>> _ = file.write_text("age,team\\n31,red\\n")
    >>> print(starter(file).split("[columns.age]")[1].split("\\n[columns")[0])
    <BLANKLINE>
    type = "integer"  # a guess from the first rows: say what the column may hold
    # fill in, if a query needs sums, means or quantiles of it:
    # bounds = [0, 100]
    # step = 1          # the distance of possible values, if there is one
    # nulls = "drop"    # missing values: left out, or counted as "lower" or "upper" bound
    <BLANKLINE>
    """
    from sfumato.data.tables import table_format, table_header

    file = Path(path)
    target = file.with_name("plan.toml") if beside is None else Path(beside)
    columns = table_header(file)
    if any(map(is_number, (column for column, _ in columns))):
        raise InvalidParameter(
            "the first line of the file must name its columns, but it holds a number, as a line of data: "
            "give the columns names, so that no value gets into the plan"
        )
    typed = table_format(file) != "csv"
    ending = r"(\.csv|\.parquet|\.pq|\.gz|\.arrow|\.feather|\.ipc)+$"
    bare = re.sub(ending, "", file.name, flags=re.IGNORECASE)
    # A pattern is no name; the folder that it is in has one.
    name = (
        file.absolute().parent.name if re.search(r"[*?\[]", bare) and not file.exists() else bare
    ) or "data"
    head = _HEAD.format(
        schema=SCHEMA_FILE,
        plan=printable(target.name),
        title=_quoted(name),
        path=_quoted(_from(target.parent, file)),
        name=_quoted(name),
    )
    return head + "".join(_columns(columns, typed=typed)) + _queries(columns)


def _from(folder: Path, file: Path) -> str:
    try:
        return os.path.relpath(file, folder)
    except ValueError:  # on another drive
        return str(file.absolute())


def _columns(columns: tuple[tuple[str, FileKind | None], ...], *, typed: bool) -> Iterator[str]:
    guess = "" if typed else "  # a guess from the first rows: say what the column may hold"
    for name, kind in columns:
        key = _key(name)
        if kind in ("integer", "real"):
            yield _NUMBERS.format(name=key, kind=kind, guess=guess, step="1" if kind == "integer" else "0.01")
        elif kind in ("text", "boolean"):
            example = '"first", "second"' if kind == "text" else "true, false"
            yield _WORDS.format(name=key, kind=kind, guess=guess, example=example)
        elif kind is not None:
            yield _DATES.format(name=key, kind=kind)
        else:
            yield _OTHER.format(name=key)


def _queries(columns: tuple[tuple[str, FileKind | None], ...]) -> str:
    numbers = [name for name, kind in columns if kind in ("integer", "real")]
    words = [name for name, kind in columns if kind == "text"]
    mean = ""
    if numbers:
        mean = _MEAN.format(title=_quoted(f"mean of {numbers[-1]}"), column=_quoted(numbers[-1]))
    group = words[0] if words else "group"
    number = numbers[-1] if numbers else "amount"
    return _QUERIES.format(
        statistics=", ".join(KINDS),
        mean=mean,
        number=_quoted(number),
        group=_quoted(group),
        group_key=_key(group),
    )


def _quoted(text: str) -> str:
    """Text as TOML writes it, on one line, whatever it holds."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    safe = re.sub(_UNSAFE, lambda found: f"\\u{ord(found.group()):04x}", escaped)
    return f'"{safe}"'


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)
