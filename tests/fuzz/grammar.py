"""The hostile grammar: a case from a seed, with every choice open and the odd ones likely."""

import datetime as dt
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.data import expression_trees
from tests.fuzz.cases import LAZY, MEMORY, Ask, Case, Column, Row
from tests.fuzz.values import INTERNAL, NAMES, PATTERNS, SIGNALLING, TYPES, Stored
from tests.hostile import CANARY_TEXT

import sfumato as sf
from sfumato.audit.shipped import METHOD_OPTIONS, QUESTIONS
from sfumato.data.expressions import Expression
from sfumato.quantile_methods import METHODS, Quantiles
from sfumato.statistics import InverseProportion, Proportion, Sum, Variance

BUDGETS = (sf.PureDP(1), sf.PureDP(1), sf.ApproxDP(1, 0.01), sf.ApproxDP(2, 1e-6), sf.ZCDP(0.1))
CSV_TYPES = ("int64", "float64", "boolean", "text", "date", "datetime")
TYPES_OF = {
    "numpy": ("int8", "int64", "uint64", "float32", "float64", "boolean", "text", "date", "datetime"),
    "pandas": ("int8", "int64", "uint64", "float32", "float64", "boolean", "text", "categorical", "datetime"),
    "spark": (
        "int8",
        "int32",
        "int64",
        "float32",
        "float64",
        "decimal",
        "boolean",
        "text",
        "date",
        "datetime",
    ),
}
# The names that expressions have for columns of each kind.
ROLES = {"real": ("x", "odd name"), "integer": ("n",), "text": ("t",), "boolean": ("b", "c"), "date": ("d",)}
ROLES |= {"datetime": ("s",)}
IDS: dict[str, tuple[Any, ...]] = {
    "int64": (1, 2, 3, 0, 2**63 - 1, None),
    "text": ("p", "q", "r", "\ufeffp", " p", "P", None),
    "float64": (1.0, 2.0, -0.0, 3.5, math.nan, SIGNALLING, math.inf, 2.0**53, None),
}
# What a reader of text may take for the beginning of a file.
MARKED = ("\ufeffa", "\ufeffb", "\ufeff")
BOUNDS = ((-1, 3), (0, 3), (0, 2), (1, 3), (-7, -2))


@dataclass
class Draws:
    """Choices from a seed, also for the expressions of tests/data/expression_trees.py."""

    luck: random.Random

    def below(self, count: int) -> int:
        return self.luck.randrange(count)

    def one(self, options: Sequence[Any]) -> Any:
        return options[self.luck.randrange(len(options))]

    def chance(self, share: float) -> bool:
        return self.luck.random() < share

    def some(self, options: Sequence[Any], count: int) -> list[Any]:
        return self.luck.sample(list(options), min(count, len(options)))


def draw_case(seed: int, engines: Sequence[str] = MEMORY + LAZY, routes: Sequence[str] = ()) -> Case:
    """The case of a seed, on one of these engines and by one of these routes."""
    draws = Draws(random.Random(f"sfumato {seed}"))
    engine = draws.one(engines)
    files = engine.startswith(("csv", "parquet"))
    usual = ("session", "session", "session", "ledger", *(["command"] if files else ()))
    route = draws.one([each for each in usual if not routes or each in routes] or ["session"])
    neighbours = draws.one(("add-remove", "substitution"))
    columns = draw_columns(draws, engine, route)
    rows_per_unit = draws.one((1, 2, 3)) if draws.chance(0.45) else None
    unit = "row"
    if rows_per_unit is not None:
        unit = _fresh(draws, engine, route, [column.name for column in columns])
        # A plan takes whole numbers and text for ids.
        columns = (Column(unit, draws.one(tuple(IDS)[: 2 if route == "command" else 3])), *columns)
    groups_per_unit = rows_per_unit and (draws.one((1, 2)) if draws.chance(0.2) else None)
    most = None if engine in LAZY else min(rows_per_unit or 0, groups_per_unit or 99)
    rows = draw_rows(draws, engine, columns, neighbours, rows_per_unit, most)
    schema = {column.name: facts for column in columns if (facts := draw_field(draws, column, route))}
    roles = draw_roles(draws, columns)
    derived = draw_derived(draws, [column.name for column in columns], roles)
    budget = draws.one(BUDGETS)
    case = Case(
        seed=seed,
        engine=engine,
        route=route,
        neighbours=neighbours,
        columns=columns,
        rows=rows,
        asks=(),
        budget=budget,
        unit=unit,
        rows_per_unit=rows_per_unit,
        groups_per_unit=groups_per_unit,
        schema=schema | {name: {"bounds": draws.one(BOUNDS)} for name in derived if draws.chance(0.8)},
        derived=derived,
        roles=roles,
    )
    return _asked(case, tuple(draw_ask(draws, case) for _ in range(draws.one((1, 1, 2, 3)))))


def _asked(case: Case, asks: tuple[Ask, ...]) -> Case:
    object.__setattr__(case, "asks", asks)
    return case


# --- the tables -----------------------------------------------------------------------------------


def _fresh(draws: Draws, engine: str, route: str, taken: Sequence[str]) -> str:
    """A new name; more than half of all names are plain."""
    names = draws.one(("abcdefgh", "abcdefgh", "abcdefgh", NAMES, NAMES, (*INTERNAL, *PATTERNS)))
    while True:
        name = draws.one(names)
        readable = name.isprintable() and name.strip() == name and name
        if name not in taken and name != "row" and (readable or not engine.startswith(("csv", "parquet"))):
            # Patterns matter where there is something that they match.
            if draws.chance(0.1) and taken and f"^{taken[-1]}$" not in taken and taken[-1].isidentifier():
                return f"^{taken[-1]}$"
            return str(name)


def draw_columns(draws: Draws, engine: str, route: str) -> tuple[Column, ...]:
    csv = engine.startswith("csv")
    types = CSV_TYPES if csv else TYPES_OF.get(engine, tuple(TYPES))
    found: list[Column] = []
    for _ in range(draws.one((1, 1, 2, 2, 3, 4))):
        name = _fresh(draws, engine, route, [column.name for column in found])
        # Text is read by everything, makes groups, and is what a line of a file may begin with.
        likely = 0.6 if csv and not found else 0.25
        found.append(Column(name, "text" if draws.chance(likely) else draws.one(types)))
    return tuple(found)


def pool(engine: str, stored: Stored) -> tuple[Any, ...]:
    """The values that a table of this engine can hold."""
    values = stored.pool
    if engine in ("numpy", "pandas") and stored.kind == "text":
        return (*values, "\ud800")
    if engine.startswith("csv"):
        if stored.kind == "text":
            found = [value for value in values if value is None or (value and not set(value) & set("\0\r\n"))]
            return (*found, *MARKED * 3)
        if stored.kind in ("date", "datetime"):
            return tuple(value for value in values if value is None or _in_calendar(value, stored))
    return values


def _in_calendar(value: int, stored: Stored) -> bool:
    day = value if stored.kind == "date" else value // (86_400 * 10**6)
    return -719_162 <= day <= 2_932_896


def draw_rows(
    draws: Draws,
    engine: str,
    columns: tuple[Column, ...],
    neighbours: str,
    rows_per_unit: int | None,
    most: int | None,
) -> tuple[tuple[str, Row], ...]:
    """Rows of both tables, and those of the one person by whom they differ."""
    pools = [pool(engine, column.stored) for column in columns]
    # Of few values there are ties, and statistics of a file that leave out the odd ones.
    pools = [draws.some(values, 4) if draws.chance(0.4) else values for values in pools]

    def row(*start: Any) -> Row:
        return (*start, *(draws.one(values) for values in pools[len(start) :]))

    count = draws.one((0, 1, 2, 3, 5))
    sides = ("left", "right") if neighbours == "substitution" else ("left",)
    if rows_per_unit is None:
        found = [("both", row()) for _ in range(count)]
        # The first line of a file is read by other code than the others.
        place = 0 if draws.chance(0.3) else draws.below(count + 1)
        changed = [(side, row()) for side in sides]
        return (*found[:place], *changed, *found[place:])
    ids = [each for each in IDS[columns[0].type] if each is not None or not engine.startswith("csv")]
    people = draws.some(ids, 2)
    others = [each for each in ids if unit_key(each) not in {unit_key(each) for each in people} - {None}]
    found, seen = [], {}
    for _ in range(count if others else 0):
        one = draws.one(others)
        seen[unit_key(one)] = seen.get(unit_key(one), 0) + 1
        # In memory all choices of rows take bits in turn: they compare if one person alone is cut down.
        if most is None or unit_key(one) is None or seen[unit_key(one)] <= most:
            found.append(("both", row(one)))
    for side, person in zip(sides, people, strict=False):
        for _ in range(draws.one((1, rows_per_unit, rows_per_unit + 2))):
            found.insert(draws.below(len(found) + 1), (side, row(person)))
    return tuple(found)


def unit_key(value: Any) -> Any:
    """What tells people apart; None for a value that is no id."""
    if isinstance(value, float):
        return int(value) if abs(value) < 2**53 and value == int(value) else None
    return value


# --- what is public --------------------------------------------------------------------------------


def draw_categories(draws: Draws, kind: str) -> tuple[Any, ...]:
    if kind == "boolean":
        return (False, True)
    if kind == "integer":
        return draws.one(((1, 2), (3, 5), (1, 2**53 + 1, 0)))
    words = ["a", "b", "c", *(text for text in TYPES["text"].pool if text and text != CANARY_TEXT)]
    found = draws.some(words[:3], 2) + draws.some(words, draws.one((1, 2)))
    # Half a surrogate pair, which no file and few engines can write.
    return tuple(dict.fromkeys([*["\ud800"] * draws.chance(0.04), *found]))


def draw_field(draws: Draws, column: Column, route: str) -> dict[str, Any] | None:
    kind = column.stored.kind
    if draws.chance(0.1) and route != "command":
        return None
    declared: dict[str, Any] = {}
    if kind in ("integer", "real") and draws.chance(0.8):
        declared["bounds"] = draws.one(BOUNDS)
    if kind in ("text", "boolean") or (kind == "integer" and draws.chance(0.4)):
        declared["categories"] = draw_categories(draws, kind)
    if kind == "date":
        declared["bounds"] = (dt.date(1970, 1, 1), dt.date(1970, 1, 4))
    if kind == "datetime":
        declared["bounds"] = (dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 1, 0, 0, 3))
    if draws.chance(0.5) and (kind in ("integer", "real") or route != "command"):
        declared["nulls"] = draws.one(("drop", "lower", "upper"))
    if draws.chance(0.2) and kind != "unknown":
        declared["kind"] = kind
    return declared


def draw_roles(draws: Draws, columns: Sequence[Column]) -> dict[str, str]:
    roles: dict[str, str] = {}
    for column in columns:
        free = [role for role in ROLES.get(column.stored.kind, ()) if role not in roles]
        if free:
            roles[free[0]] = column.name
    return roles


def draw_tree(draws: Draws, roles: dict[str, str], made: Any) -> Expression | None:
    for _ in range(12):
        tree: Expression = made(draws, draws.one((1, 1, 2)))
        if tree.columns and set(tree.columns) <= set(roles):
            return tree
    return None


def draw_derived(draws: Draws, taken: Sequence[str], roles: dict[str, str]) -> dict[str, Expression]:
    tree = draw_tree(draws, roles, expression_trees.number) if roles and draws.chance(0.3) else None
    name = draws.one(
        [name for name in draws.one(("abc", NAMES, INTERNAL, PATTERNS)) if name.isprintable() and name]
    )
    if tree is None or name.casefold() in {each.casefold() for each in taken}:
        return {}
    return {name: tree}


# --- what is asked ---------------------------------------------------------------------------------


def draw_ask(draws: Draws, case: Case) -> Ask:
    name = draws.one([*(column.name for column in case.columns), *case.derived])
    column = case.column(name)
    kind = "real" if column is None else column.stored.kind
    made, parameters = draw_statistic(draws, kind)
    declared = case.schema.get(name, {}).get("categories")
    for option in {"categories", "equals"} & set(parameters):
        # A plan takes declared categories alone.
        if case.route == "command" and declared:
            parameters[option] = declared[: len(parameters[option])]
    where: Any = None
    if draws.chance(0.2) and case.roles:
        where = draw_tree(draws, dict(case.roles), expression_trees.flag)
    elif draws.chance(0.3):
        where = dict(filter(None, (_condition(draws, case, each) for each in draws.some(case.columns, 2))))
    by, groups = _by(draws, case) if draws.chance(0.35) else ((), None)
    return Ask(made, name, parameters, where, by, groups)


def draw_statistic(draws: Draws, kind: str) -> tuple[Any, dict[str, Any]]:
    """A statistic of the catalogue with its options, for a column of this kind."""
    rule = (
        {"nulls": draws.one(("drop", "lower", "upper"))}
        if draws.chance(0.4 if kind == "text" else 0.7)
        else {}
    )
    numeric = kind in ("integer", "real", "date", "datetime", "unknown")
    if numeric and draws.chance(0.25):
        return Quantiles, {**draw_quantiles(draws, kind), **rule}
    titles = [title for title, line in QUESTIONS.items() if kind in _kinds(*line)]
    made, options = QUESTIONS[draws.one(titles)]
    options = {name: _option(draws, name, value, kind) for name, value in options.items()}
    if draws.chance(0.4) and "bounds" in options and kind in ("integer", "real"):
        del options["bounds"]
    return made, {**options, **rule}


def draw_quantiles(draws: Draws, kind: str) -> dict[str, Any]:
    name = draws.one(tuple(METHODS))
    probs = (0.5,) if name in ("single", "inverse_sensitivity") or draws.chance(0.5) else (0.25, 0.5, 0.75)
    # Few points, so that all outcomes can be listed.
    found: dict[str, Any] = {"probs": probs, "step": 1}
    if draws.chance(0.7):
        found["n_hint"] = 4
    found["method"] = METHODS[name](**draws.one(METHOD_OPTIONS[name]))
    if kind in ("integer", "real", "unknown"):
        found["bounds"] = (0, draws.one((1, 2)))
    return found


def _kinds(made: Any, options: dict[str, Any]) -> tuple[str, ...]:
    """The kinds of columns that a line of the catalogue can be asked of."""
    listed = options.get("categories", options.get("equals"))
    if listed is not None:
        return ("text", "integer", "boolean") if isinstance(listed[0], str) else ("integer",)
    if not options:
        return ("boolean",) if made in (Proportion, InverseProportion) else (*ROLES, "unknown")
    # Days have no sum and no variance.
    moments = () if made in (Sum, Variance) else ("date", "datetime")
    return ("integer", "real", "unknown", *moments)


def _option(draws: Draws, name: str, value: Any, kind: str) -> Any:
    if name in ("categories", "equals") and kind in ("text", "integer", "boolean"):
        return draw_categories(draws, kind)[: len(value)]
    if kind in ("date", "datetime") and name in ("bounds", "between", "edges", "at"):
        return tuple(_moment(each, kind) for each in value)
    return value


def _moment(number: float, kind: str) -> dt.date:
    if kind == "date":
        return dt.date(1970, 1, 1) + dt.timedelta(days=math.floor(number * 10))
    return dt.datetime(1970, 1, 1) + dt.timedelta(seconds=number)


def _condition(draws: Draws, case: Case, column: Column) -> tuple[str, Any] | None:
    kind = column.stored.kind
    declared = case.schema.get(column.name, {}).get("categories")
    if kind in ("text", "boolean") or (kind == "integer" and draws.chance(0.5)):
        listed = declared or draw_categories(draws, kind)
        return column.name, draws.one((listed[0], listed[:1], listed[:2]))
    if kind in ("integer", "real"):
        return column.name, sf.Between(*draws.one(((0, 2), (-1, 1), (1, 1), (-1e300, 1e300))))
    if kind in ("date", "datetime"):
        return column.name, sf.Between(_moment(0, kind), _moment(2, kind))
    return None


def _by(draws: Draws, case: Case) -> tuple[tuple[str, ...], dict[str, Any] | None]:
    declared = [column.name for column in case.columns if "categories" in case.schema.get(column.name, {})]
    keyed = [
        column.name for column in case.columns if column.stored.kind in ("text", "integer", "boolean", "real")
    ]
    private = isinstance(case.budget, sf.ApproxDP) and draws.chance(0.5)
    names = draws.some(keyed if private else declared, draws.one((1, 1, 2)))
    if not names:
        return (), None
    groups = {"keys": "private"} if private else {}
    if draws.chance(0.3):
        groups["other"] = True
    if draws.chance(0.2):
        groups["top"] = draws.one((1, 2))
    return tuple(names), groups or None
