"""The same table with differential privacy: a plan and a program to complete, by public facts alone."""

import keyword
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

FILL = "FILL IN"
NUMBERS, WORDS, DATES = ("integer", "real"), ("text", "boolean"), ("date", "datetime")
# What TOML refuses in text, what some editors take for the end of a line, and what turns text around.
_UNSAFE = r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
_HEAD = """\
# The same table with differential privacy.
# No value of the table was looked at for this file. Complete what is
# marked {fill} from public knowledge, such as a form or a code book:
# bounds and categories read from the data give people away. Then:
#     sfumato plan check {plan}
#     sfumato plan preview {plan}    (nothing is read or spent)
#     sfumato release {plan} -o out

version = 1
title = {title}

[data]
path = {path}
name = {name}  # the public name that budgets attach to
unit = "row"  # each row is one person
# "add-remove" hides how many rows there are, "substitution" tells it.
neighbours = "{fill}"

[budget]
# What all answers may cost together; smaller is more private.
epsilon = "{fill}"
"""


@dataclass(frozen=True)
class Asked:
    """One statistic of the plan: of which column, and by which groups."""

    statistic: str
    column: str | None
    by: str | None = None

    @property
    def name(self) -> str:
        """What it is called."""
        if self.column is None:
            return "number of rows"
        told = {"histogram": "rows by", "deciles": "deciles of"}[self.statistic]
        return f"{told} {self.column}" + (f", for each {self.by}" if self.by else "")


@dataclass(frozen=True)
class Release:
    """What would be released: the columns with their kinds, the file, and the statistics."""

    columns: tuple[tuple[str, str], ...]
    asked: tuple[Asked, ...]
    path: str
    title: str

    @property
    def toml(self) -> str:
        """The plan; its placeholders are text, so that `sfumato plan check` names each of them."""
        parts = [
            _HEAD.format(
                fill=FILL,
                plan="plan.toml",
                title=_quoted(self.title),
                path=_quoted(self.path),
                name=_quoted(_stem(self.path)),
            )
        ]
        parts += [_column(name, kind) for name, kind in self.columns]
        parts += [_query(one, dict(self.columns)) for one in self.asked]
        return "\n".join(parts)

    @property
    def python(self) -> str:
        """The same as a program."""
        return "\n".join(_program(self))


def private_release(
    columns: Sequence[tuple[str, str | None]],
    quasi: Sequence[str],
    sensitive: Sequence[str],
    *,
    path: str,
    title: str,
) -> Release:
    """What to ask in place of rows: how people spread over each column, and the secrets by group.

    >>> kinds = [("age", "integer"), ("ill", "text")]
    >>> asked = private_release(kinds, ["age"], ["ill"], path="a.csv", title="A")
    >>> [one.name for one in asked.asked]
    ['number of rows', 'rows by ill', 'rows by age']
    """
    kinds = {name: kind for name, kind in columns if kind is not None}
    known = [name for name in (*sensitive, *quasi) if name in kinds]
    groups = [name for name in quasi if kinds.get(name) in WORDS]
    asked = [Asked("count", None)]
    for name in known:
        spread = kinds[name] in DATES or (name in sensitive and kinds[name] in NUMBERS)
        asked.append(Asked("deciles" if spread else "histogram", name))
        if name in sensitive and groups:
            asked.append(Asked(asked[-1].statistic, name, groups[0]))
    used = tuple((name, kinds[name]) for name in dict.fromkeys((*quasi, *sensitive)) if name in kinds)
    return Release(used, tuple(asked), path, title)


def _column(name: str, kind: str) -> str:
    head = f"[columns.{_key(name)}]\ntype = {_quoted(kind)}\n"
    if kind == "boolean":
        return head + "categories = [true, false]\n"
    if kind == "text":
        return head + f'categories = ["{FILL}: every possible value"]\n'
    return head + f'bounds = ["{FILL}: the lowest", "{FILL}: the highest"]\nnulls = "drop"\n'


def _query(one: Asked, kinds: dict[str, str]) -> str:
    lines = ["[[queries]]", f"name = {_quoted(one.name)}", f"statistic = {_quoted(one.statistic)}"]
    if one.column is not None:
        lines.append(f"column = {_quoted(one.column)}")
        if one.statistic == "histogram" and kinds[one.column] in NUMBERS:
            lines.append("bins = 10")
    if one.by:
        lines.append(f"group_by = [{_quoted(one.by)}]")
    return "\n".join([*lines, ""])


def _program(release: Release) -> Iterator[str]:
    names = dict(zip((name for name, _ in release.columns), _constants(release), strict=True))
    parts = len(release.asked)
    yield "import sfumato as sf"
    yield "from sfumato.data import files"
    yield ""
    yield f"# {FILL}, from public knowledge and never from the table:"
    yield 'NEIGHBOURS = ...  # "add-remove" or "substitution"'
    yield f"BUDGET = ...  # sf.PureDP(...) for each of {parts} answers; they add up"
    for name, kind in release.columns:
        if kind != "boolean":
            wanted = 'every possible value: ("first", "second")' if kind == "text" else "(lowest, highest)"
            yield f"{names[name]} = ...  # {wanted}"
    yield ""
    yield "schema = {"
    for name, kind in release.columns:
        given = {"boolean": "categories=(True, False)", "text": f"categories={names[name]}"}
        field = given.get(kind, f'bounds={names[name]}, nulls="drop"')
        yield f"    {_quoted(name)}: sf.Field(kind={_quoted(kind)}, {field}),"
    yield "}"
    yield f"table = files.read({_quoted(release.path)}, schema, columns=list(schema))"
    yield 'data = sf.Dataset(table, unit="row", neighbours=NEIGHBOURS, schema=schema)'
    yield "questions = ["
    kinds = dict(release.columns)
    for one in release.asked:
        yield f"    {_question(one, kinds)},"
    yield "]"
    yield f"with sf.Session(data, budget=sf.PureDP({parts} * BUDGET.epsilon)) as session:"
    yield "    for answer in session.answer_all(questions):"
    yield "        print(answer)"
    yield ""


def _question(one: Asked, kinds: dict[str, str]) -> str:
    if one.column is None:
        # Any column counts all rows, if its nulls count as well.
        return (
            f'sf.Question(query=sf.Count(column={_quoted(next(iter(kinds)))}, nulls="lower", budget=BUDGET))'
        )
    name = _quoted(one.column)
    if one.statistic == "deciles":
        query = f"sf.Quantiles(column={name}, probs=[i / 10 for i in range(1, 10)], budget=BUDGET)"
    else:
        bins = ", bins=10" if kinds[one.column] in NUMBERS else ""
        query = f"sf.Histogram(column={name}{bins}, budget=BUDGET)"
    return f"sf.Question(query={query}{f', by=[{_quoted(one.by)}]' if one.by else ''})"


def _constants(release: Release) -> list[str]:
    """A name for each column that Python takes, each another one."""
    found: list[str] = []
    for name, _ in release.columns:
        bare = re.sub(r"\W", "_", name, flags=re.ASCII).upper().strip("_") or "COLUMN"
        bare = f"_{bare}" if bare[0].isdigit() or keyword.iskeyword(bare) else bare
        while bare in (*found, "NEIGHBOURS", "BUDGET"):
            bare += "_"
        found.append(bare)
    return found


def _stem(path: str) -> str:
    return PurePath(path).name.partition(".")[0] or "data"


def _quoted(text: str) -> str:
    """Text that TOML and Python read alike, on one line, whatever it holds."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    safe = re.sub(_UNSAFE, lambda found: f"\\u{ord(found.group()):04x}", escaped)
    return f'"{safe}"'


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)
