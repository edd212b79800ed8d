"""Hierarchies in TOML: a table [hierarchies.<column>] for each, and labels in CSV files that it may name."""

import csv
import difflib
import io
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from sfumato.anonymity.hierarchies import Cuts, Dates, Hierarchy, Listed, Prefix, Ranges, Tree
from sfumato.checks import shown
from sfumato.errors import InvalidParameter

MOST_BYTES = 2**26


@dataclass(frozen=True)
class _Kind:
    """What makes a hierarchy, which keys it takes, and of which one must be there."""

    make: Callable[..., Hierarchy]
    keys: tuple[str, ...]
    one_of: tuple[str, ...] = ()


def read_hierarchies(path: str | Path) -> dict[str, Hierarchy]:
    """Reads hierarchies from a TOML file with a table [hierarchies.<column>] for each.

    The key `kind` says what the other keys mean:

    - "ranges": width, origin, factor, levels, as `Ranges`; or cuts, as `Cuts`;
    - "tree": tree, nested tables and lists of names, or parents, from child to parent, as `Tree`;
    - "prefix": width, levels, mask, as `Prefix`;
    - "dates": levels, as `Dates`;
    - "listed": rows, as `Listed`, or file, a CSV file without a header, relative to this one, with delimiter.

    All take `missing`, the label of missing cells.

    Guarantee:
        Reads these files alone, and no table. Numbers are read as they are written: 0.1 is one tenth.

    Args:
        path: of the file.

    Raises:
        InvalidParameter: a file cannot be read or breaks a rule; the message names file, line and key.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
    ...     _ = file.write('[hierarchies.age]\\nkind = "ranges"\\nwidth = 5\\nlevels = 2'), file.flush()
    ...     read_hierarchies(file.name)["age"].levels_of([21, 37]).labels[1]
    ('[20, 25)', '[35, 40)')
    """
    file = Path(path)
    text = _read(file)
    try:
        said = tomllib.loads(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidParameter(f"{file}: is no TOML: {str(error) or 'too deep'}") from None
    unknown = [key for key in said if key != "hierarchies"]
    tables = said.get("hierarchies")
    if unknown or not isinstance(tables, Mapping):
        words = f"got {shown(unknown[0])}" if unknown else "got none"
        raise InvalidParameter(f"{file}: must have tables [hierarchies.<column>] and no others, {words}")
    try:
        return hierarchies_of(tables, folder=file.parent)
    except _Wrong as error:
        line = line_of(text, error.column, error.key)
        place = "" if line is None else f", line {line}"
        raise InvalidParameter(f"{file}{place}: {error}") from None


def hierarchies_of(tables: Mapping[str, Any], *, folder: Path) -> dict[str, Hierarchy]:
    """The hierarchies that tables of a TOML file describe; files that they name are relative to `folder`."""
    return {column: _hierarchy(column, table, folder) for column, table in tables.items()}


class _Wrong(InvalidParameter):
    """A table that breaks a rule, with the column and the key."""

    def __init__(self, column: str, key: str, words: str) -> None:
        self.column, self.key = column, key
        super().__init__(f"hierarchies.{column}{f'.{key}' if key else ''}: {words}")


def _hierarchy(column: str, table: object, folder: Path) -> Hierarchy:
    if not isinstance(table, Mapping):
        raise _Wrong(column, "", f"must be a table with a kind, got {shown(table)}")
    name = table.get("kind")
    if not isinstance(name, str) or name not in _KINDS:
        listed = ", ".join(repr(kind) for kind in _KINDS)
        raise _Wrong(column, "kind", f"must be one of {listed}, got {shown(name)}")
    kind = _KINDS[name]
    for key in table:
        if key not in ("kind", "missing", *kind.keys):
            near = difflib.get_close_matches(key, kind.keys, 1)
            meant = f"did you mean {near[0]}?" if near else f"it takes {', '.join(kind.keys)}"
            raise _Wrong(column, key, f"is no key of kind = {name!r}; {meant}")
    given = [key for key in kind.one_of if key in table]
    if kind.one_of and len(given) != 1:
        words = "must be given" if not given else "must not be given together"
        raise _Wrong(column, given[-1] if given else "", f"{' or '.join(kind.one_of)} {words}")
    options = {key: value for key, value in table.items() if key != "kind"}
    if "file" in options:
        options["rows"] = _listed_rows(column, options, folder)
    elif "delimiter" in options:
        raise _Wrong(column, "delimiter", "goes with file")
    try:
        return kind.make(**{key: value for key, value in options.items() if key not in ("file", "delimiter")})
    except _Wrong:
        raise
    except InvalidParameter as error:
        # The rules of hierarchies begin with the name of what breaks them.
        key = next((key for key in table if str(error).startswith(f"{key} ")), given[0] if given else "")
        raise _Wrong(column, key, str(error)) from None


def _ranges(*, cuts: object = None, **options: Any) -> Hierarchy:
    if cuts is None:
        return Ranges(**options)
    beside = next((key for key in options if key != "missing"), None)
    if beside is not None:
        raise InvalidParameter(f"{beside} must not be given together with cuts")
    return Cuts(cuts, **options)  # type: ignore[arg-type]  # reason: checked by the class


def _tree(*, tree: Any = None, parents: Any = None, **options: Any) -> Hierarchy:
    names = tree if parents is None else parents
    flat = isinstance(names, Mapping) and all(isinstance(above, str) for above in names.values())
    if flat != (tree is None):
        words = "nested tables, and lists of names" if parents is None else "a table from child to parent"
        key = "tree" if parents is None else "parents"
        raise InvalidParameter(f"{key} must be {words}, got {shown(names)}")
    return Tree(names, **options)


_KINDS = {
    "ranges": _Kind(_ranges, ("width", "origin", "factor", "levels", "cuts"), ("width", "cuts")),
    "tree": _Kind(_tree, ("tree", "parents"), ("tree", "parents")),
    "prefix": _Kind(Prefix, ("width", "levels", "mask")),
    "dates": _Kind(Dates, ("levels",)),
    "listed": _Kind(Listed, ("rows", "file", "delimiter"), ("rows", "file")),
}


def _listed_rows(column: str, options: Mapping[str, Any], folder: Path) -> list[list[str]]:
    named, delimiter = options["file"], options.get("delimiter", ",")
    if not isinstance(named, str) or not named:
        raise _Wrong(column, "file", f"must be the path of a CSV file, got {shown(named)}")
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n':
        raise _Wrong(column, "delimiter", f"must be one character, got {shown(delimiter)}")
    try:
        text = _read(folder / named)
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except InvalidParameter as error:
        raise _Wrong(column, "file", str(error)) from None
    except csv.Error as error:
        raise _Wrong(column, "file", f"{named} is no CSV: {error}") from None
    return [row for row in rows if row]


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise InvalidParameter(f"{file}: must have at most {MOST_BYTES:,} bytes")
        return content.decode("utf-8-sig")
    except OSError as error:
        raise InvalidParameter(f"{file}: cannot be read: {error.strerror or 'no such file'}") from None
    except UnicodeDecodeError:
        raise InvalidParameter(f"{file}: must be text in UTF-8") from None


def line_of(text: str, column: str, key: str) -> int | None:
    """The line of a key below the header of its table, or else of the header; None where there is no header.

    >>> line_of('[hierarchies.age]\\nkind = "ranges"\\nwidth = 0', "age", "width")
    3
    """
    found, inside = None, False
    quoted = rf"""(?:{re.escape(column)}|"{re.escape(column)}"|'{re.escape(column)}')"""
    header = re.compile(rf"\s*\[\s*hierarchies\s*\.\s*{quoted}\s*(\.\s*{re.escape(key)}\s*)?(?:\.[^\]]*)?\]")
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("["):
            match = header.match(line)
            inside = match is not None
            if match is not None and (found is None or (key and match[1])):
                found = number
        elif inside and key and re.match(rf"\s*{re.escape(key)}\s*=", line):
            return number
    return found
