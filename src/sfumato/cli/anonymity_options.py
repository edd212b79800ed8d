"""The options of `sfumato anonymize` and `sfumato anonymity`: names of columns, and goals, in words."""

import csv
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.checks import shown
from sfumato.cli.options import number
from sfumato.cli.outputs import refusing
from sfumato.cli.status import Refused

if TYPE_CHECKING:
    from sfumato.anonymity import AnonymityPlan
    from sfumato.anonymity.goals import Goal


def plan_of(
    roles: Mapping[str, Sequence[str] | None],
    goals: Mapping[str, Sequence[str] | None],
    choices: Mapping[str, str | None],
    k: int | None,
    hierarchies: Path | None,
    suppression: str | None,
    types: Sequence[str] | None,
) -> "AnonymityPlan":
    """What options say, as a plan: texts by role, by kind of goal and by choice."""
    from sfumato.anonymity.hierarchy_file import read_hierarchies
    from sfumato.anonymity.plan_file import AnonymityPlan
    from sfumato.anonymity.settings import Settings, listed_goals

    found: Mapping[str, Any] = {}
    if hierarchies is not None:
        with refusing():
            found = read_hierarchies(hierarchies)
    named: dict[str, Any] = {role: names_of(f"--{role}", given) for role, given in roles.items()}
    chosen: dict[str, Any] = {key: value for key, value in choices.items() if value is not None}
    settings = Settings(
        **named,
        **chosen,
        goals=listed_goals(k, [_goal(kind, text) for kind, texts in goals.items() for text in texts or ()]),
        hierarchies=found,
        suppression=number("--suppression", suppression or "0"),
    )
    return AnonymityPlan(settings=settings, types=dict(pair("--type", text) for text in types or ()))


def _goal(kind: str, text: str) -> "Goal":
    from sfumato.anonymity import Closeness, DistinctDiversity, EntropyDiversity, RecursiveDiversity

    option = f"--{kind}"
    name, said = pair(option, text)
    if kind == "entropy":
        return EntropyDiversity(name, number(option, said))
    if kind == "closeness":
        return Closeness(name, number(option, said))
    if kind == "diversity":
        return DistinctDiversity(name, _whole(option, said))
    times, comma, place = said.partition(",")
    if not comma:
        raise Refused(f"{option} must be COLUMN=C,L, got {shown(text)}")
    return RecursiveDiversity(name, number(option, times), _whole(option, place))


def _whole(option: str, text: str) -> Any:
    """A whole number; another one as it is, which goals refuse in words of their own."""
    found: Fraction = number(option, text)
    return int(found) if found.denominator == 1 else found


def names_of(option: str, given: Sequence[str] | None) -> tuple[str, ...]:
    """Names of columns, with commas between them or in options of their own; quotes hold a comma.

    >>> names_of("--quasi", ['age, sex', '"town, country"'])
    ('age', 'sex', 'town, country')
    """
    try:
        lines = list(csv.reader(given or (), skipinitialspace=True, strict=True))
    except csv.Error:
        raise Refused(f"{option} must be names with commas between them, got {shown(given)}") from None
    return tuple(name.strip() for line in lines for name in line if name.strip())


def pair(option: str, text: str) -> tuple[str, str]:
    """A column and what is said of it."""
    name, equals, value = text.rpartition("=")
    if not (name and equals and value):
        raise Refused(f"{option} must be COLUMN=VALUE, got {shown(text)}")
    return name, value
