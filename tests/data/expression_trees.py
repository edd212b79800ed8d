"""Random expressions over a hostile table, and what they mean row by row in plain Python, as an oracle."""

import datetime as dt
import math

import pyarrow as pa

from sfumato.data.expression_kinds import bind
from sfumato.data.expression_steps import size
from sfumato.data.expressions import as_expression, col, when
from sfumato.laws import SeededBits

INF, NAN = math.inf, math.nan
REALS = [0.0, -0.0, 1.0, -1.0, 0.1, 0.3, -2.5, 3.0, 5e-324, -5e-324, 2.0**53, 2.0**53 + 2, 1e308, -1e308]
REALS += [1.7976931348623157e308, 1e-300, INF, -INF, NAN, None, 40.0, 7.0, 1e15 + 0.5, -0.5]
WHOLES = [0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 7, 40, None, 18, 65]
TEXTS = ["north", "south", "NORTH", "", " ", "é", "é", "a\0b", "'; --", '"', "🜁", "north ", None, "%"]
FLAGS = [True, False, None]
DATES = [dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(2000, 2, 29), dt.date(1900, 2, 28), None]
DATES += [dt.date(1900, 3, 1), dt.date(2024, 2, 29), dt.date(2023, 12, 31), dt.date(1600, 1, 1)]
TIMES = [dt.datetime(1970, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), None]
TIMES += [dt.datetime(2024, 2, 29, 12, 30, 15, 123_456), dt.datetime(1950, 3, 1), dt.datetime(2200, 7, 4, 1)]
KINDS = {
    "x": "real",
    "odd name": "real",
    "n": "integer",
    "t": "text",
    "b": "boolean",
    "c": "boolean",
    "d": "date",
    "s": "datetime",
}
STORED = {
    "real": pa.float64(),
    "integer": pa.int64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
}
POOLS = dict(zip(KINDS, [REALS, REALS, WHOLES, TEXTS, FLAGS, FLAGS, DATES, TIMES], strict=True))


class Draws:
    """Choices from a seed."""

    def __init__(self, seed):
        self._bits = SeededBits(seed)

    def below(self, count):
        return int(self._bits.words(1)[0]) % count

    def one(self, options):
        return options[self.below(len(options))]


def hostile_rows(count=97, seed=5):
    """Rows as tuples in the order of KINDS; every value of every pool occurs."""
    draws = Draws(seed)
    columns = [[*pool, *(draws.one(pool) for _ in range(count - len(pool)))] for pool in POOLS.values()]
    return list(zip(*columns, strict=True))


def arrow_table(rows):
    """The rows in Arrow, with their number, by which they are put in order again."""
    columns = zip(*rows, strict=True)
    made = {
        name: pa.array(values, STORED[kind], from_pandas=False)
        for (name, kind), values in zip(KINDS.items(), columns, strict=True)
    }
    return pa.table({**made, "row": pa.array(range(len(rows)), pa.int64())})


def number(draws, depth):
    """A random expression that is a number."""
    if depth == 0 or draws.below(8) == 0:
        leaf = draws.below(7)
        names = ["x", "odd name", "n"]
        return col(names[leaf]) if leaf < 3 else as_expression(draws.one([0, 1, -2.5, 0.1, 2**53, 1e308, 3]))
    pick = draws.below(17)
    left = number(draws, depth - 1)
    if pick < 8:
        right = number(draws, depth - 1)
        return (left + right, left - right, left * right, left / right)[pick % 4]
    if pick == 8:
        return -left
    if pick < 12:
        return (left.abs(), left.floor(), left.sqrt())[pick - 9]
    if pick == 12:
        return left.clip(-3, draws.one([-2.5, 0, 100]))
    if pick == 13:
        return left.fill_null(number(draws, depth - 1))
    if pick == 14:
        return when(flag(draws, depth - 1), left, number(draws, depth - 1))
    moment = col(draws.one(["d", "s"]))
    if pick == 15:
        return getattr(moment, draws.one(["year", "month", "day", "weekday"]))()
    filled = {"d": dt.date(1999, 12, 31), "s": dt.datetime(1999, 12, 31, 23)}[moment.value]
    return moment.fill_null(filled) - moment


def flag(draws, depth):
    """A random expression that is true or false."""
    pick = draws.below(18)
    if depth == 0:
        pick = draws.below(5)
    if pick < 2:
        return col(draws.one(["b", "c"]))
    if pick == 2:
        return col("t").is_in([draws.one(TEXTS[:12]) for _ in range(1 + draws.below(3))])
    if pick == 3:
        return col("t") == draws.one(TEXTS[:12]) if draws.below(2) else col("t").is_null()
    if pick == 4:
        name = draws.one(["d", "s"])
        day = draws.one([day for day in DATES if day is not None])
        return draws.one([col(name) >= day, col(name) < day.isoformat(), col(name) == day])
    if pick < 9:
        left, right = number(draws, depth - 1), number(draws, depth - 1)
        return draws.one([left < right, left <= right, left == right, left != right])
    if pick == 9:
        return number(draws, depth - 1).is_null()
    if pick == 10:
        wanted = draws.one([[0, 1], [0.1, 2**53, 7], list(range(-10, 41))])
        return number(draws, depth - 1).is_in(wanted)
    left, right = flag(draws, depth - 1), flag(draws, depth - 1)
    if pick == 16:
        return when(left, right, flag(draws, depth - 1))
    options = [left & right, left | right, ~left, left == right, left.is_null(), left.fill_null(right)]
    return options[(pick - 11) % 6] if pick < 17 else left.is_in([True])


def trees(seed, count, depth=4, largest=None):
    """Random expressions, numbers and flags in turn, each of which names a column and is soon computed."""
    draws, found = Draws(seed), []
    while len(found) < count:
        tree = (number, flag)[len(found) % 2](draws, depth)
        if tree.columns and (largest is None or size(bind(tree, KINDS).step) <= largest):
            found.append(tree)
    return found


def meaning(expression, row):
    """The value in one row, None for null, as docs/expressions.md has it; written without any array."""
    operation, inputs = expression.operation, expression.inputs
    if operation == "column":
        return known(row[expression.value])
    if operation == "literal":
        return plain(expression.value)
    if operation in ("and", "or"):
        return kleene(operation, [meaning(each, row) for each in inputs])
    if operation == "when":
        return meaning(inputs[1 if meaning(inputs[0], row) is True else 2], row)
    if operation in ("equal", "less", "at_most", "subtract", "fill_null"):
        values = alike(expression, row)
    else:
        values = [meaning(each, row) for each in inputs]
    if operation == "is_null":
        return values[0] is None
    if operation == "fill_null":
        return values[1] if values[0] is None else values[0]
    if None in values:
        return None
    if operation == "in":
        return any(plain(item) == values[0] for item in expression.value)
    return known(COMPUTED[operation](*values, *(expression.value if operation == "clip" else ())))


def alike(expression, row):
    # ISO text beside a date is that date, and a date beside a time is its midnight.
    values = [meaning(each, row) for each in expression.inputs]
    if any(each.value == "s" for each in expression.inputs):
        return [midnight(value) for value in values]
    if any(each.value == "d" for each in expression.inputs):
        return [dt.date.fromisoformat(value) if isinstance(value, str) else value for value in values]
    return values


def midnight(value):
    value = dt.datetime.fromisoformat(value) if isinstance(value, str) else value
    return dt.datetime.combine(value, dt.time()) if type(value) is dt.date else value


def known(value):
    value = plain(value)
    return None if isinstance(value, float) and math.isnan(value) else value


def plain(value):
    return float(value) if type(value) is int else value


def kleene(operation, values):
    decided = operation == "or"
    if decided in values:
        return decided
    return None if None in values else not decided


def quotient(left, right):
    return None if right == 0 else left / right


def difference(left, right):
    if isinstance(left, dt.datetime):
        since = [float((each - dt.datetime(1970, 1, 1)) / dt.timedelta(seconds=1)) for each in (left, right)]
        return since[0] - since[1]
    return float((left - right).days) if isinstance(left, dt.date) else left - right


COMPUTED = {
    "add": lambda left, right: left + right,
    "subtract": difference,
    "multiply": lambda left, right: left * right,
    "divide": quotient,
    "negative": lambda value: -value,
    "abs": abs,
    "floor": lambda value: value if math.isinf(value) else float(math.floor(value)),
    "sqrt": lambda value: math.sqrt(value) if value >= 0 else None,
    "clip": lambda value, low, high: min(max(value, low), high),
    "not": lambda value: not value,
    "equal": lambda left, right: left == right,
    "less": lambda left, right: left < right,
    "at_most": lambda left, right: left <= right,
    "year": lambda value: float(value.year),
    "month": lambda value: float(value.month),
    "day": lambda value: float(value.day),
    "weekday": lambda value: float(value.isoweekday()),
}


def bits_of(values):
    """Values as they are compared: the bits of numbers, and None."""
    found = [value if value is None or isinstance(value, bool) else float(value) for value in values]
    return [value.hex() if isinstance(value, float) else value for value in found]


def expected(expression, rows):
    """The meaning in every row; zero has no sign."""
    named = [dict(zip(KINDS, row, strict=True)) for row in rows]
    values = [meaning(expression, row) for row in named]
    return bits_of(value + 0.0 if isinstance(value, float) else value for value in values)
