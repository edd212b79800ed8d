"""All that can be known about a plan without its data."""

import dataclasses
import difflib
import math
from collections.abc import Generator, Iterator, Mapping

from sfumato.data.groups import MAX_KEYS
from sfumato.errors import SfumatoError
from sfumato.plan.allocation import allocate
from sfumato.plan.binding import bound, charged
from sfumato.plan.model import ColumnTable, Plan, QueryTable, Range
from sfumato.plan.problems import Place, PlanError, Problem
from sfumato.plan.queries import KINDS, declared_field, option_problems, plain, refusal
from sfumato.plan.values import parse_expression, seen
from sfumato.privacy import ApproxDP, PureDP
from sfumato.quantile_methods import METHODS, Quantiles
from sfumato.statistics.public_size import PublicSize

Found = Iterator[tuple[Place, str]]

_HOLDS = {"integer": int, "real": int, "text": str, "boolean": bool, "date": int, "datetime": int}
# Dates are numbers of days or of seconds.
_NUMBERS = ("integer", "real", "date", "datetime")


def check(plan: Plan) -> None:
    """Finds whatever is wrong with a plan that can be known without its data.

    Guarantee:
        Reads the plan and, if the data file is there, its header; no value, and spends nothing.

    Args:
        plan: as `read` gives it.

    Raises:
        PlanError: with every problem found, each with file, line and field.

    >>> from sfumato.plan import PlanError, parse
    >>> plan = parse('''
    ... version = 1
    ... title = "Ages"
    ... data = { path = "people.csv", name = "people", unit = "row", neighbours = "add-remove" }
    ... budget.epsilon = 0.5
    ... columns.age = { type = "integer" }
    ... queries = [{ statistic = "mean", column = "age" }, { statistic = "median", column = "agee" }]
    ... ''')
    >>> try:
    ...     check(plan)
    ... except PlanError as error:
    ...     print(error)
    plan.toml, line 6, columns.age.bounds: is missing: mean needs [lower, upper] from public knowledge
    plan.toml, line 7, queries.2.column: is not under [columns]; did you mean age?
    """
    _raise(plan, [*_data(plan), *_ledger(plan), *_columns(plan), *_derived(plan), *_names(plan)])
    _raise(plan, [problem for index in range(len(plan.queries)) for problem in _query(plan, index)])
    for name in plan.columns:
        declared_field(plan, name)
    _bind(plan)
    for index, part in enumerate(allocate(plan).budgets):
        bound(plan, index, part)
    _header(plan)


def _raise(plan: Plan, found: list[tuple[Place, str]]) -> None:
    problems = dict.fromkeys(plan.problem(place, words) for place, words in found)
    if problems:
        raise PlanError(sorted(problems, key=lambda each: each.line or 0))


def _data(plan: Plan) -> Found:
    data = plan.data
    if data.unit == "row":
        if data.rows_per_unit is not None:
            yield ("data", "rows_per_unit"), "must be left out with unit = 'row': each row is one person"
        if data.groups_per_unit is not None:
            yield ("data", "groups_per_unit"), "must be left out with unit = 'row': a row is in one group"
        return
    if data.rows_per_unit is None:
        words = f"is missing: at most how many rows of each {data.unit} count?"
        yield ("data", "rows_per_unit"), words
    if data.unit in plan.derive:
        yield ("data", "unit"), "must be a column of the data, not one that is derived"
    elif data.unit not in plan.columns:
        yield ("data", "unit"), f"must be 'row' or a column under [columns]{_near(data.unit, plan)}"
    elif plan.columns[data.unit].type not in ("integer", "text"):
        yield ("columns", data.unit, "type"), "must be 'integer' or 'text' for a column of ids"


def _ledger(plan: Plan) -> Found:
    if plan.ledger.analysts is not None and plan.ledger.analyst not in plan.ledger.analysts:
        yield ("ledger", "analysts"), plain(f"must list the analyst of this plan, {plan.ledger.analyst!r}")
    if plan.ledger.cap is None:
        return
    cap, budget = plan.ledger.cap.value, plan.budget.value
    if type(cap) is type(budget) and not budget.fits(cap):  # type: ignore[arg-type]
        yield ("ledger", "cap"), plain(f"must be at least the budget of this plan, {budget!r}, got {cap!r}")
    elif isinstance(cap, PureDP) and not isinstance(budget, PureDP):
        yield (
            ("ledger", "cap"),
            "must have a delta, or be a rho, to pay for a budget that is not epsilon alone",
        )


def _columns(plan: Plan) -> Found:
    for name, column in plan.columns.items():
        place = ("columns", name)
        for key in ("bounds", "step"):
            if getattr(column, key) is not None and column.type not in _NUMBERS:
                yield (*place, key), f"goes with numbers, but the type of this column is {seen(column.type)}"
        if column.categories is not None:
            yield from _categories((*place, "categories"), column.categories, column)
        if column.nulls in ("lower", "upper") and column.type == "text":
            yield (*place, "nulls"), "must be 'drop' for text, which has no lower or upper bound"


def _categories(place: Place, listed: tuple[object, ...], column: ColumnTable) -> Found:
    if column.type in ("date", "datetime"):
        yield place, "goes with text, whole numbers, true and false, not with dates"
        return
    wanted = _HOLDS[column.type]
    wrong = next((item for item in listed if type(item) is not wanted), None)
    if wrong is not None:
        kinds = {int: "whole numbers", str: "text in quotes", bool: "true and false"}
        yield place, f"must be {kinds[wanted]} for the type {seen(column.type)}, got {seen(wrong)}"


def _derived(plan: Plan) -> Found:
    kinds = {name: column.type for name, column in plan.columns.items() if name not in plan.derive}
    if not kinds:
        yield ("columns",), "must have a column of the data, and not only derived ones"
    for name, text in plan.derive.items():
        if name not in plan.columns:
            words = "is not under [columns]: give it a type there, and bounds from public knowledge"
            yield ("derive", name), words
            continue
        found = yield from _expression(("derive", name), text, plan, kinds)
        declared = plan.columns[name].type
        if found not in (None, "integer", "real", "boolean"):
            yield ("derive", name), f"must give a number, or true and false, but {seen(text)} is {found}"
        elif found is not None and declared != found:
            yield ("columns", name, "type"), f"must be {seen(found)}, which the expression gives"


def _expression(
    place: Place, text: str, plan: Plan, kinds: Mapping[str, str]
) -> Generator[tuple[Place, str], None, str | None]:
    """What is wrong with an expression, and the kind of what it gives if nothing is."""
    expression = parse_expression(text)
    for name in expression.columns:
        if name in plan.derive and name not in kinds:
            yield place, f"must use columns of the data, but {name} is derived"
            return None
        if name not in kinds:
            yield place, f"{seen(name)} is not under [columns]{_near(name, plan)}"
            return None
    try:
        return str(expression.kind(kinds))
    except SfumatoError as error:
        yield place, plain(str(error))
        return None


def _names(plan: Plan) -> Found:
    first: dict[str, int] = {}
    for index, query in enumerate(plan.queries):
        if first.setdefault(query.title, index) != index:
            other = f"queries.{first[query.title] + 1}"
            words = f"must be a name of its own: {other} is called {seen(query.title)} too"
            yield ("queries", index, "name"), words


def _query(plan: Plan, index: int) -> Found:
    query, place = plan.queries[index], ("queries", index)
    keyed = {"by": "group_by"}
    yield from (((*place, keyed.get(name, name)), words) for name, words in option_problems(query))
    if query.share is not None and query.accuracy is not None:
        yield (*place, "accuracy"), "must not be given with share: one of the two decides the budget"
    if query.column is not None and query.column not in plan.columns:
        yield (*place, "column"), f"is not under [columns]{_near(query.column, plan)}"
    elif query.column is not None:
        yield from _facts(plan, query, place)
    yield from _where(plan, query, place)
    yield from _groups(plan, query, place)
    yield from _method(query, place)
    yield from _accuracy(query, place)
    yield from _size(plan, query, place)


def _facts(plan: Plan, query: QueryTable, place: Place) -> Found:
    """What a statistic needs to know of its column."""
    name = str(query.column)
    column = plan.columns[name]
    kind, words = KINDS[query.statistic], query.statistic
    unbounded = str(query.method).startswith("unbounded") or (query.method or ("",))[0] == "unbounded"
    ranged = "bounds" in kind.options and words not in ("histogram", "first_passing") and not unbounded
    if words == "histogram":
        ranged = query.bins is not None
    if words == "first_passing":
        ranged = query.at is None
    if ranged or words in ("sum", "mean"):
        if column.type not in _NUMBERS:
            yield (*place, "column"), f"must be a column of numbers for {words}, but {name} is {column.type}"
        elif column.bounds is None and query.bounds is None:
            needs = f"is missing: {words} needs [lower, upper] from public knowledge"
            yield ("columns", name, "bounds"), needs
    cells = (query.bins, query.edges, query.categories, column.categories)
    if words == "histogram" and all(each is None for each in cells):
        if column.type in _NUMBERS:
            yield place, "needs bins = a number of bins, or edges = [...], or categories of the column"
        else:
            yield ("columns", name, "categories"), "is missing: histogram needs them, from public knowledge"
    if words == "most_common" and query.categories is None and column.categories is None:
        yield ("columns", name, "categories"), "is missing: most_common needs them, from public knowledge"
    share = words in ("proportion", "inverse_proportion") and query.equals is None and query.between is None
    if share and column.type != "boolean":
        yield place, f"needs equals or between: {name} is {column.type}, not true and false"
    for key in ("categories", "equals"):
        listed = getattr(query, key)
        if listed is not None:
            yield from _categories((*place, key), listed, column)
    if query.equals is not None and column.categories is not None:
        yield from _strangers((*place, "equals"), query.equals, name, column)
    if query.between is not None and column.type not in _NUMBERS:
        yield (*place, "between"), f"goes with numbers, but {name} is {column.type}"


def _strangers(place: Place, listed: tuple[object, ...], name: str, column: ColumnTable) -> Found:
    known = dict.fromkeys(column.categories or ())
    for item in listed:
        if item not in known and type(item) is _HOLDS.get(column.type):
            close = difflib.get_close_matches(str(item), [str(each) for each in known], n=1)
            near = f"; did you mean {close[0]}?" if close else ""
            yield place, f"{seen(item)} is not among the categories of {name}{near}"


def _where(plan: Plan, query: QueryTable, place: Place) -> Found:
    if isinstance(query.where, str):
        kinds = {name: column.type for name, column in plan.columns.items()}
        found = yield from _expression((*place, "where"), query.where, plan, kinds)
        if found not in (None, "boolean"):
            yield (*place, "where"), "must be a condition, such as 'age >= 18', and not a number or text"
        return
    for name, condition in query.where.items():
        here = (*place, "where", name)
        if name not in plan.columns:
            yield here, f"is not under [columns]{_near(name, plan)}"
            continue
        column = plan.columns[name]
        if isinstance(condition, Range):
            if column.type not in _NUMBERS:
                yield here, f"between goes with numbers, but {name} is {column.type}"
        elif column.categories is None and column.type != "boolean":
            words = "is missing: conditions name public categories, which are declared here"
            yield ("columns", name, "categories"), words
        else:
            yield from _categories(here, condition, column)
            if column.categories is not None:
                yield from _strangers(here, condition, name, column)


def _groups(plan: Plan, query: QueryTable, place: Place) -> Found:
    here = (*place, "group_by")
    if len(set(query.by)) < len(query.by):
        yield here, f"must name each column once, got {seen(query.by)}"
    yield from _found_groups(plan, query, place)
    known = [name for name in query.by if name in plan.columns]
    for index, name in enumerate(query.by):
        if name not in plan.columns:
            yield (*here, index), f"{seen(name)} is not under [columns]{_near(name, plan)}"
        elif query.keys_are_private:
            kind = plan.columns[name].type
            if kind not in ("text", "integer", "boolean"):
                yield (
                    (*here, index),
                    f"must be text, integer or boolean for keys = 'private', but is {kind}",
                )
        elif plan.columns[name].categories is None:
            words = (
                "is missing: groups are made of public categories, declared here; without them, ask for "
                "groups = { keys = 'private' } in the query, which takes a delta"
            )
            yield ("columns", name, "categories"), words
    if query.keys_are_private:
        return
    count = math.prod(len(plan.columns[name].categories or (0,)) for name in known)
    if count > MAX_KEYS:
        yield here, f"must make at most {MAX_KEYS:,} groups, got {count:,}"


def _found_groups(plan: Plan, query: QueryTable, place: Place) -> Found:
    groups = query.groups
    if groups is None:
        return
    here = (*place, "groups")
    if not query.by:
        yield here, "goes with group_by: which columns make the groups?"
    private = groups.keys == "private"
    if private and not isinstance(plan.budget.value, ApproxDP):
        yield (*here, "keys"), "must be 'public' unless the budget has a delta, which names of groups cost"
    if groups.least is not None and not private:
        yield (*here, "least"), "goes with keys = 'private'"
    if groups.share is not None and not private and groups.top is None:
        yield (*here, "share"), "goes with keys = 'private' or top, which are found at a cost"
    if query.accuracy is not None and (private or groups.top is not None):
        words = "must be left out where groups are found: give share, which pays for both"
        yield (*place, "accuracy"), words


def _method(query: QueryTable, place: Place) -> Found:
    if not isinstance(query.method, tuple):
        return
    name, *options = query.method
    if KINDS[query.statistic].made is not Quantiles:
        yield (*place, "method"), f"must be a name alone for {query.statistic}"
    elif name not in METHODS:
        yield (*place, "method", "name"), f"must be one of {', '.join(METHODS)}, got {seen(name)}"
    else:
        known = [field.name for field in dataclasses.fields(METHODS[name])]
        for key, _ in options:
            if key not in known:
                has = f"has the options {', '.join(known)}" if known else "has no options"
                yield (*place, "method", key), f"is no option of the method {name}, which {has}"


def _accuracy(query: QueryTable, place: Place) -> Found:
    if query.accuracy is None:
        return
    ranks = KINDS[query.statistic].made is Quantiles
    if ranks and query.accuracy.error is not None:
        words = "must be rank_error for quantiles: how far ranks are in value depends on the data"
        yield (*place, "accuracy", "error"), words
    if not ranks and query.accuracy.rank_error is not None:
        yield (*place, "accuracy", "rank_error"), f"goes with quantiles; give error for {query.statistic}"
    if query.statistic == "most_common":
        yield (*place, "accuracy"), "goes with numbers; give share for most_common"


def _size(plan: Plan, query: QueryTable, place: Place) -> Found:
    made = KINDS[query.statistic].made
    if not issubclass(made, PublicSize):
        return
    needs = f"{query.statistic} needs a public number of rows"
    if query.tested or query.by:
        key = "where" if query.tested else "group_by"
        yield (*place, key), f"must be left out: {needs}, and that of a part is private; use {made.instead}"
    if plan.data.unit != "row":
        yield (
            (*place, "statistic"),
            f"{needs}, and with several rows of a person it is private; use {made.instead}",
        )
    elif plan.data.neighbours == "add-remove":
        yield (*place, "statistic"), f"{needs}, and under add-remove it is private; use {made.instead}"
    column = plan.columns.get(query.column or "")
    if column is not None and (query.nulls or column.nulls or "drop") == "drop":
        words = f"must be 'lower' or 'upper': {needs}, and without missing values it is private"
        yield (*place, "nulls"), words


def _near(name: str, plan: Plan) -> str:
    """What may have been meant, and else what there is."""
    lower = {known.lower(): known for known in plan.columns}
    close = [lower[name.lower()]] if name.lower() in lower else []
    close = close or difflib.get_close_matches(name[:200], list(plan.columns)[:1000], n=1)
    if close:
        return f"; did you mean {close[0]}?"
    listed = ", ".join(list(plan.columns)[:8])
    return f", which has {listed}{', ...' if len(plan.columns) > 8 else ''}"


def _bind(plan: Plan) -> None:
    problems: list[Problem] = []
    trial = plan.budget.value.share(1)
    for index in range(len(plan.queries)):
        try:
            _ = charged(plan, index, trial).event
        except PlanError as error:
            problems += error.problems
        except SfumatoError as error:
            problems += refusal(plan, index, error).problems
    if problems:
        raise PlanError(dict.fromkeys(problems))


def _header(plan: Plan) -> None:
    """Whether the file has the columns, if it is there; nothing but its header is read."""
    from sfumato.data.tables import table_exists, table_format, table_header

    if not table_exists(plan.data_path):
        return
    try:
        stored = dict(table_header(plan.data_path))
        # The types of a CSV file are guesses.
        typed = table_format(plan.data_path) != "csv"
    except SfumatoError as error:
        raise plan.error(("data", "path"), str(error)) from None
    found: list[tuple[Place, str]] = []
    for name, column in plan.columns.items():
        if name in plan.derive:
            if name in stored:
                words = "is a column of the data already; give the derived one another name"
                found.append((("derive", name), words))
        elif name not in stored:
            close = difflib.get_close_matches(name, list(stored)[:10_000], n=1)
            near = f"; did you mean {close[0]}?" if close else ""
            found.append((("columns", name), f"is not a column of the data file{near}"))
        elif typed and stored[name] is not None and (stored[name] == "text") != (column.type == "text"):
            words = f"is {seen(column.type)}, but the data file stores {stored[name]}"
            found.append((("columns", name, "type"), words))
    _raise(plan, found)
