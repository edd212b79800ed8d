"""A whole anonymisation as a TOML file: roles of columns, goals, method, hierarchies, suppression."""

import difflib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from sfumato.anonymity.anonymizing import Anonymized, carried_out
from sfumato.anonymity.goals import (
    Closeness,
    DistinctDiversity,
    EntropyDiversity,
    Goal,
    KAnonymity,
    RecursiveDiversity,
)
from sfumato.anonymity.hierarchy_file import hierarchies_of, line_of
from sfumato.anonymity.settings import Settings, listed_goals
from sfumato.checks import one_of, shown
from sfumato.errors import InvalidParameter

VERSION = 1
MOST_BYTES = 2**24
_KEYS = (
    *("version", "title", "table", "quasi", "sensitive", "keep", "drop", "k", "goals", "method", "metric"),
    *("suppression", "suppressed", "order", "hierarchies", "types"),
)
# For each kind of goal what makes it, and its keys beside the column, those that must be there first.
_GOALS: dict[str, tuple[Callable[..., Goal], tuple[str, ...], tuple[str, ...]]] = {
    "k-anonymity": (KAnonymity, ("k",), ()),
    "distinct-diversity": (DistinctDiversity, ("column", "l"), ()),
    "entropy-diversity": (EntropyDiversity, ("column", "l"), ()),
    "recursive-diversity": (RecursiveDiversity, ("column", "c", "l"), ()),
    "closeness": (Closeness, ("column", "t"), ("distance",)),
}


@dataclass(frozen=True, kw_only=True)
class AnonymityPlan:
    """What a plan file says: the settings, and which table they are for.

    Guarantee:
        Holds what the file says and nothing of the table. Carried out, it makes each class of rows meet the
        goals; that is no differential privacy.

    Args:
        settings: roles, goals and method.
        table: the file that the plan names, relative to the plan; None if it names none.
        title: what the report is called.
        types: how columns of a CSV file are read, where it is not to be seen from their cells.

    >>> parse_anonymity('version = 1\\nquasi = ["age"]\\nk = 5').settings.k
    5
    """

    settings: Settings
    table: Path | None = None
    title: str = "Anonymised table"
    types: Mapping[str, str] = field(default_factory=dict)

    def anonymize(self, table: Any) -> Anonymized:
        """Carry the plan out on a table in memory; `types` and `table` are for files alone."""
        return carried_out(table, self.settings)


def read_anonymity(path: str | Path) -> AnonymityPlan:
    """Reads the plan of an anonymisation from a TOML file.

    Guarantee:
        Reads the plan, and hierarchies in files that it names, but not the table. Numbers are read as they
        are written: 0.1 is one tenth.

    Args:
        path: of the file.

    Raises:
        InvalidParameter: the file is no TOML or breaks a rule; the message names the file and the key.
        OSError: the file cannot be read.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
    ...     _ = file.write('version = 1\\nquasi = ["age", "sex"]\\nk = 10'), file.flush()
    ...     read_anonymity(file.name).settings.quasi
    ('age', 'sex')
    """
    file = Path(path)
    with file.open("rb") as opened:
        content = opened.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise InvalidParameter(f"{file}: must have at most {MOST_BYTES:,} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidParameter(f"{file}: must be text in UTF-8") from None
    return parse_anonymity(text, path=file)


def parse_anonymity(text: str, *, path: str | Path = "anonymity.toml") -> AnonymityPlan:
    """Reads the plan of an anonymisation from text.

    Guarantee:
        As `read_anonymity`.

    Args:
        text: TOML.
        path: of the file that it is from: for messages, and where relative paths start.

    Raises:
        InvalidParameter: the text is no TOML or breaks a rule; the message names the file and the key.

    >>> parse_anonymity('version = 1\\nquasi = ["age"]\\nk = 0')
    Traceback (most recent call last):
    sfumato.errors.InvalidParameter: anonymity.toml: k must be in [1, 2147483647], got k=0
    """
    file = Path(path)
    try:
        # A depth that tomllib cannot follow is no plan either.
        said = tomllib.loads(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidParameter(f"{file}: is no TOML: {str(error) or 'too deep'}") from None
    try:
        return _plan(said, file)
    except InvalidParameter as error:
        # Hierarchies tell which column and key is wrong.
        column, key = getattr(error, "column", None), getattr(error, "key", "")
        line = None if column is None else line_of(text, column, key)
        place = "" if line is None else f", line {line}"
        raise InvalidParameter(f"{file}{place}: {error}") from None


def _plan(said: Mapping[str, Any], file: Path) -> AnonymityPlan:
    _known("", said, _KEYS)
    one_of("version", said.get("version"), (VERSION,))
    if "quasi" not in said:
        raise InvalidParameter("quasi must be given: the columns that others may know of a person")
    goals = [_goal(place, one) for place, one in enumerate(_tables("goals", said.get("goals", [])), start=1)]
    hierarchies = said.get("hierarchies", {})
    if not isinstance(hierarchies, Mapping):
        raise InvalidParameter(
            f"hierarchies must be tables, such as [hierarchies.age], got {shown(hierarchies)}"
        )
    types = said.get("types", {})
    if not isinstance(types, Mapping):
        raise InvalidParameter(f"types must be a table of columns, got types={shown(types)}")
    plain = ("method", "metric", "suppression", "suppressed", "order", "sensitive", "keep", "drop")
    settings = Settings(
        quasi=said["quasi"],
        goals=listed_goals(said.get("k"), goals),
        hierarchies=hierarchies_of(hierarchies, folder=file.parent),
        **{key: said[key] for key in plain if key in said},
    )
    table = _text("table", said)
    return AnonymityPlan(
        settings=settings,
        table=None if table is None else file.parent / table,
        title=_text("title", said) or "Anonymised table",
        types=dict(types),
    )


def _goal(place: int, said: Mapping[str, Any]) -> Goal:
    where = f"goals.{place}"
    kind = one_of(f"{where}.kind", said.get("kind"), tuple(_GOALS))
    made, needed, others = _GOALS[str(kind)]
    _known(f"{where}.", said, ("kind", *needed, *others))
    for key in needed:
        if key not in said:
            raise InvalidParameter(f"{where}.{key} must be given for kind={kind!r}")
    try:
        return made(**{key: value for key, value in said.items() if key != "kind"})
    except InvalidParameter as error:
        raise InvalidParameter(f"{where}: {error}") from None


def _known(where: str, said: Mapping[str, Any], keys: Sequence[str]) -> None:
    for key in said:
        if key not in keys:
            near = difflib.get_close_matches(key, keys, n=1)
            meant = f"did you mean {near[0]}?" if near else f"keys are {', '.join(keys)}"
            raise InvalidParameter(f"{where}{key} is no key of an anonymisation; {meant}")


def _tables(key: str, said: object) -> list[Mapping[str, Any]]:
    if not isinstance(said, list) or not all(isinstance(one, Mapping) for one in said):
        raise InvalidParameter(f"{key} must be tables, such as [[{key}]], got {key}={shown(said)}")
    return said


def _text(key: str, said: Mapping[str, Any]) -> str | None:
    value = said.get(key)
    if value is not None and not (isinstance(value, str) and value.strip()):
        raise InvalidParameter(f"{key} must be text, got {key}={shown(value)}")
    return value
