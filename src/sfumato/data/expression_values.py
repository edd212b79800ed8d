"""Expressions on tables in memory: derived columns and filters, computed chunk by chunk when read."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sfumato.data.codes import FEW, Codes, Flags
from sfumato.data.column import CHUNK, Column
from sfumato.data.expression_kinds import NUMBERS, bind
from sfumato.data.expression_steps import Bound, Step
from sfumato.data.expressions import Expression
from sfumato.grid import Floats


def derived(expression: Expression, columns: Mapping[str, Column], name: str) -> Column:
    """A column of numbers or flags that is computed from others; no value is read before it is asked for.

    Raises:
        SchemaMismatch: a column is missing or of another kind, or the result is neither number nor flag.

    >>> from sfumato.data.admission import admit
    >>> from sfumato.data.expressions import col
    >>> table = {"salary": admit([100.0, 90.0]), "hours": admit([40.0, 0.0])}
    >>> next(derived(col("salary") / col("hours"), table, "hourly").chunks()).tolist()
    [2.5, nan]
    """
    bound = bind(expression, public_kinds(columns))
    bound.require(*NUMBERS, "boolean", "unknown", what=f"the derived column {name!r} = {expression.words}")
    nullable = bound.nullable([used for used in expression.columns if columns[used].nullable])
    return _column(name, bound, nullable, _Table.of(bound, columns))


def rows_where(expression: Expression, columns: Mapping[str, Column]) -> Flags:
    """Which rows meet a condition: those where it is true; where it is null they do not.

    Raises:
        SchemaMismatch: a column is missing or of another kind, or the expression is no condition.

    >>> from sfumato.data.admission import admit
    >>> from sfumato.data.expressions import col
    >>> rows_where(col("age") >= 18, {"age": admit([17, 18, None])}).tolist()
    [False, True, False]
    """
    bound = bind(expression, public_kinds(columns))
    bound.require("boolean", "unknown", what=f"the condition {expression.words}")
    step = bound.step if bound.is_flag else Step("flag", (), bound.step.value)
    table = _Table.of(bound, columns)
    found = np.empty(table.rows, dtype=np.bool_)
    for start in range(0, table.rows, CHUNK):
        stop = min(start + CHUNK, table.rows)
        found[start:stop] = _Chunk(table, start, stop).flags(step, True)
    return found


def public_kinds(columns: Mapping[str, Column]) -> dict[str, str]:
    """The kinds of columns as expressions know them: dates apart from numbers."""
    return {name: column.holds for name, column in columns.items()}


class _Table:
    """The columns that an expression reads: numbers in chunks, and text as places in its public constants."""

    def __init__(
        self,
        rows: int,
        numbers: dict[str, Column],
        texts: dict[str, tuple[str, ...]],
        codes: dict[str, Callable[[], Codes]],
    ) -> None:
        self.rows, self.numbers, self.texts = rows, numbers, texts
        self._codes, self._known = codes, dict[str, Codes]()

    @classmethod
    def of(cls, bound: Bound, columns: Mapping[str, Column]) -> "_Table":
        def coded(name: str) -> Callable[[], Codes]:
            return lambda: columns[name].codes(texts[name])

        numbers = {name: columns[name] for name in bound.read}
        # A list of no text has no codes; one that is not asked for does no harm.
        texts = {name: listed or ("",) for name, listed in bound.texts.items()}
        rows = next(columns[name].rows for name in bound.kinds)
        return cls(rows, numbers, texts, {name: coded(name) for name in texts})

    def codes(self, name: str) -> Codes:
        if name not in self._known:
            self._known[name] = self._codes[name]()
        return self._known[name]

    def take(self, rows: Any) -> "_Table":
        def taken(name: str) -> Callable[[], Codes]:
            return lambda: self.codes(name)[rows]

        size = len(range(self.rows)[rows]) if isinstance(rows, slice) else len(rows)
        numbers = {name: column.take(rows) for name, column in self.numbers.items()}
        return _Table(size, numbers, self.texts, {name: taken(name) for name in self.texts})


def _column(name: str, bound: Bound, nullable: bool, table: _Table) -> Column:
    def floats(start: int, stop: int) -> Floats:
        chunk = _Chunk(table, start, stop)
        if not bound.is_flag:
            # Zero has no sign: engines differ in which one they give.
            return chunk.whole(chunk.numbers(bound.step)) + 0.0
        values = np.where(chunk.flags(bound.step, True), 1.0, 0.0)
        if nullable:
            values = np.where(chunk.flags(bound.step, False), 0.0, np.where(values == 1.0, 1.0, np.nan))
        return chunk.whole(values)

    def tally() -> Counter[Any]:
        found: Counter[Any] = Counter()
        for chunk in column.chunks():
            values, counts = np.unique(chunk[~np.isnan(chunk)], return_counts=True)
            for value, count in zip(values.tolist(), counts.tolist(), strict=True):
                key = (bool, bool(value)) if bound.is_flag else (float, value)
                found[key] += count
        return found

    kind: Any = "boolean" if bound.is_flag else "unknown" if bound.kind == "unknown" else "real"
    column = Column(
        name,
        kind,
        nullable,
        table.rows,
        floats,
        tally,
        lambda rows: _column(name, bound, nullable, table.take(rows)),
    )
    return column


_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "negative": np.negative,
    "abs": np.abs,
    "floor": np.floor,
    "whole": np.floor,
    "sqrt": np.sqrt,
}
# What a comparison is where it is true, and where it is false; both are false of NaN.
_COMPARED: dict[tuple[str, bool], Callable[..., Any]] = {
    ("less", True): np.less,
    ("less", False): np.greater_equal,
    ("at_most", True): np.less_equal,
    ("at_most", False): np.greater,
    ("equal", True): np.equal,
    ("equal", False): lambda left, right: np.less(left, right) | np.greater(left, right),
}


class _Chunk:
    """The steps of an expression on some rows: numbers with NaN for null; where flags are true or false."""

    def __init__(self, table: _Table, start: int, stop: int) -> None:
        self._table, self._start, self._stop = table, start, stop
        self._found: dict[object, Any] = {}

    def whole(self, values: Any) -> Floats:
        """A constant becomes a value of every row."""
        return np.broadcast_to(values, (self._stop - self._start,))

    def numbers(self, step: Step) -> Any:
        """The numbers of a step, NaN for null."""
        if id(step) not in self._found:
            # A warning would tell of the data.
            with np.errstate(all="ignore"):
                self._found[id(step)] = self._numbers(step)
        return self._found[id(step)]

    def flags(self, step: Step, side: bool) -> Any:
        """Where a flag is known to be of this side; null is of neither."""
        if (id(step), side) not in self._found:
            self._found[id(step), side] = self._flags(step, side)
        return self._found[id(step), side]

    def _column(self, name: str) -> Floats:
        read = self._table.numbers[name]._floats
        return np.full(self._stop - self._start, np.nan) if read is None else read(self._start, self._stop)

    def _numbers(self, step: Step) -> Any:
        operation = step.operation
        if operation == "column":
            return self._column(step.value)
        if operation == "literal":
            return np.float64(step.value)
        if operation == "when":
            condition = self.flags(step.inputs[0], True)
            return np.where(condition, self.numbers(step.inputs[1]), self.numbers(step.inputs[2]))
        inputs = [self.numbers(each) for each in step.inputs]
        if operation in _ARITHMETIC:
            return _ARITHMETIC[operation](*inputs)
        if operation == "divide":
            quotient = np.divide(*inputs)
            return quotient if np.all(inputs[1]) else np.where(inputs[1] == 0.0, np.nan, quotient)
        if operation == "clip":
            # NumPy's clip keeps NaN.
            return np.clip(inputs[0], *step.value)
        assert operation == "fill"
        return np.where(np.isnan(inputs[0]), inputs[1], inputs[0])

    def _flags(self, step: Step, side: bool) -> Any:
        operation, inputs = step.operation, step.inputs
        if operation == "flag":
            return self._column_flags(step, side)
        if operation == "truth":
            return np.bool_(step.value is side)
        if (operation, side) in _COMPARED:
            return _COMPARED[operation, side](*(self.numbers(each) for each in inputs))
        if operation == "not":
            return self.flags(inputs[0], not side)
        if operation in ("and", "or"):
            # True just if all are true, false as soon as one is; or the other way round.
            join = np.logical_and if (operation == "and") is side else np.logical_or
            found = self.flags(inputs[0], side)
            for each in inputs[1:]:
                found = join(found, self.flags(each, side))
            return found
        if operation == "same":
            left, right = inputs
            return (self.flags(left, True) & self.flags(right, side)) | (
                self.flags(left, False) & self.flags(right, not side)
            )
        if operation in ("in", "text_in"):
            return (self._number_in if operation == "in" else self._text_in)(step, side)
        if operation == "when_flag":
            condition = self.flags(inputs[0], True)
            return (condition & self.flags(inputs[1], side)) | (~condition & self.flags(inputs[2], side))
        if operation == "fill_flag":
            known = self.flags(inputs[0], True) | self.flags(inputs[0], False)
            return self.flags(inputs[0], side) | (~known & self.flags(inputs[1], side))
        missing = self._missing(step)
        return missing if side else ~missing

    def _column_flags(self, step: Step, side: bool) -> Any:
        return self._column(step.value) == (1.0 if side else 0.0)

    def _missing(self, step: Step) -> Any:
        if step.operation == "is_null":
            return np.isnan(self.numbers(step.inputs[0]))
        if step.operation == "is_unknown":
            return ~(self.flags(step.inputs[0], True) | self.flags(step.inputs[0], False))
        return self._text_codes(step.value) == len(self._table.texts[step.value]) + 1

    def _number_in(self, step: Step, side: bool) -> Any:
        values, listed = self.numbers(step.inputs[0]), step.value
        if len(listed) <= FEW:
            found = np.equal(values, listed[0])
            for each in listed[1:]:
                found = found | np.equal(values, each)
        else:
            ordered = np.array(listed)
            place = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
            found = ordered[place] == values
        return found if side else ~(found | np.isnan(values))

    def _text_codes(self, name: str) -> Codes:
        return self._table.codes(name)[self._start : self._stop]

    def _text_in(self, step: Step, side: bool) -> Any:
        name, listed = step.value
        wanted = set(listed)
        # One flag for every code: the texts, any other text, and null, which is of neither side.
        known = [(text in wanted) is side for text in self._table.texts[name]]
        return np.array([*known, not side, False]).take(self._text_codes(name))
