"""Expressions on lazy tables: one narwhals expression for every engine, with the values of eager ones."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sfumato.checks import shown
from sfumato.data.expression_kinds import NUMBERS, bind
from sfumato.data.expression_steps import FLAGS, Step, in_order, size, uses
from sfumato.data.expressions import Expression
from sfumato.errors import InvalidParameter

if TYPE_CHECKING:
    import narwhals as nw

Reader = Callable[[str], "nw.Expr"]
_STEP = "sfumato_step_"
# One expression that is written out in full; `with_expressions` has no such limit.
MAX_SIZE = 2_000
_LEAVES = ("literal", "truth", "flag")


def as_frame_expr(
    expression: Expression,
    kinds: Mapping[str, str],
    *,
    number: Reader,
    text: Reader,
    flag: Reader,
    engine: str = "",
) -> "nw.Expr":
    """A short expression for a lazy frame: Float64 with null for null, or Boolean; nothing in it can raise.

    Parts of dates and nested quotients are written out many times: `with_expressions` is for these.

    Args:
        expression: what is computed.
        kinds: the public kinds of the columns.
        number: a column as Float64, with null for null and NaN; of dates the days, of times the seconds.
        text: a column as String.
        flag: a column as Boolean.
        engine: "duckdb" or "spark" for engines whose quotients are exact as they are; any other is made so.

    Raises:
        SchemaMismatch: a column is missing or of another kind, or the result is neither number nor flag.
        InvalidParameter: a constant does not fit what it is compared with.
    """
    bound = bind(expression, kinds)
    bound.require(*NUMBERS, "boolean", "unknown", what=f"the expression {expression.words}")
    if size(bound.step) > MAX_SIZE:
        raise InvalidParameter(
            f"an expression must be at most {MAX_SIZE} operations of an engine, where parts of quotients and "
            f"comparisons are written out more than once, got {shown(size(bound.step))}: nest fewer of them"
        )
    frames = _Frames(number, text, flag, exact=engine in ("duckdb", "spark"))
    return frames.flag(bound.step) if bound.is_flag else frames.finished(bound.step)


def with_expressions(
    frame: "nw.LazyFrame[Any]",
    made: Mapping[str, Expression],
    kinds: Mapping[str, str],
    *,
    number: Reader,
    text: Reader,
    flag: Reader,
    engine: str = "",
) -> "nw.LazyFrame[Any]":
    """A lazy frame with one more column for each expression, as `as_frame_expr` has it.

    What is used more than once becomes a column on the way, so that no engine is told it twice: the plans of
    some are limited in depth, and all grow fast by quotients of quotients and by parts of dates.
    """
    bounds = {name: bind(expression, kinds) for name, expression in made.items()}
    for name, bound in bounds.items():
        bound.require(*NUMBERS, "boolean", "unknown", what=f"the derived column {name!r}")
    frames = _Frames(number, text, flag, exact=engine in ("duckdb", "spark"))
    for stage in frames.stages([bound.step for bound in bounds.values()]):
        frame = frame.with_columns(*stage)
    wanted = [
        (frames.flag(bound.step) if bound.is_flag else frames.finished(bound.step)).alias(name)
        for name, bound in bounds.items()
    ]
    return frame.with_columns(*wanted).drop(*frames.names)


class _Frames:
    """The steps of an expression as narwhals expressions."""

    def __init__(self, number: Reader, text: Reader, flag: Reader, *, exact: bool) -> None:
        import narwhals as nw

        # The columns on the way, by their steps.
        self._made: dict[object, str] = {}
        self._nw, self._exact, self._read = nw, exact, {"column": number, "text": text, "flag": flag}

    @property
    def names(self) -> tuple[str, ...]:
        """The columns on the way."""
        return tuple(self._made.values())

    def stages(self, steps: list[Step]) -> "list[list[nw.Expr]]":
        """Columns on the way, for what is used more than once; each stage needs only those before it."""
        ordered = in_order(steps)
        often: dict[object, int] = dict.fromkeys(map(_key, steps), 2)
        for step in ordered:
            for times, part in uses(step):
                often[_key(part)] = often.get(_key(part), 0) + times
        found: list[list[nw.Expr]] = []
        levels: dict[object, int] = {}
        for step in ordered:
            if _key(step) in self._made:
                continue
            level = max((levels[_key(part)] for part in step.inputs), default=0)
            levels[_key(step)] = level
            if often[_key(step)] < 2 or step.operation in _LEAVES:
                continue
            made = self.flag(step) if step.operation in FLAGS else self.number(step)
            name = f"{_STEP}{len(self._made)}"
            found += [[] for _ in range(level + 1 - len(found))]
            found[level].append(made.alias(name))
            self._made[_key(step)] = name
            levels[_key(step)] = level + 1
        return found

    def finished(self, step: Step) -> "nw.Expr":
        """The numbers as they leave: null for NaN, and zero without a sign, of which engines give either."""
        value = self.number(step)
        known = self._when(~value.is_nan(), value) if _can_be_nan(step) else value
        return self._when(value == 0.0, self._nw.lit(0.0), known)

    def _when(self, condition: "nw.Expr", then: "nw.Expr", otherwise: "nw.Expr | None" = None) -> "nw.Expr":
        chosen = self._nw.when(condition).then(then)
        return chosen if otherwise is None else chosen.otherwise(otherwise)

    def _known(self, step: Step) -> "nw.Expr":
        """Numbers with null for NaN, which engines would compare as if it were the largest number."""
        value = self.number(step)
        return self._when(~value.is_nan(), value) if _can_be_nan(step) else value

    def number(self, step: Step) -> "nw.Expr":
        """Numbers that may still be NaN for null."""
        if _key(step) in self._made:
            return self._nw.col(self._made[_key(step)])
        operation = step.operation
        if operation == "column":
            return self._read["column"](step.value)
        if operation == "literal":
            return self._nw.lit(step.value, dtype=self._nw.Float64)
        if operation == "when":
            condition = self.flag(step.inputs[0])
            return self._when(condition, self.number(step.inputs[1]), self.number(step.inputs[2]))
        if operation == "fill":
            first = self._known(step.inputs[0])
            return self._when(first.is_null(), self.number(step.inputs[1]), first)
        if operation == "clip":
            return self._clipped(step)
        return self._arithmetic(operation, [self.number(each) for each in step.inputs])

    def _arithmetic(self, operation: str, inputs: "list[nw.Expr]") -> "nw.Expr":
        first, second = inputs[0], inputs[-1]
        if operation == "divide":
            # No engine may see a zero here: some raise, others give an infinity.
            return first / self._of_rows(self._when(second != 0.0, second), first)
        if operation == "sqrt":
            return self._when(first >= 0.0, first).sqrt()
        if operation == "floor":
            # Spark's floor is an integer of 64 bits; beyond 2**53 every float is whole.
            return self._when(first.abs() < 2.0**53, self._whole(first), first)
        if operation == "whole":
            return self._whole(first)
        plain: dict[str, Callable[[], nw.Expr]] = {
            "add": lambda: first + second,
            "subtract": lambda: first - second,
            "multiply": lambda: first * second,
            "negative": lambda: first * -1.0,
            "abs": lambda: first.abs(),
        }
        return plain[operation]()

    def _of_rows(self, divisor: "nw.Expr", beside: "nw.Expr") -> "nw.Expr":
        """A divisor that is no scalar: Polars multiplies by the inverse of one, which is off by a bit."""
        # It also keeps as a scalar what was chosen alike everywhere. Where this adds 1, the quotient is null.
        return divisor if self._exact else divisor + beside.is_null().cast(self._nw.Float64)

    def _whole(self, value: "nw.Expr") -> "nw.Expr":
        return value.floor().cast(self._nw.Float64)

    def _clipped(self, step: Step) -> "nw.Expr":
        value = self._known(step.inputs[0])
        low, high = (self._nw.lit(end, dtype=self._nw.Float64) for end in step.value)
        return self._when(value < low, low, self._when(value > high, high, value))

    def flag(self, step: Step) -> "nw.Expr":
        """Flags with null for what is not known."""
        if _key(step) in self._made:
            return self._nw.col(self._made[_key(step)])
        operation, inputs = step.operation, step.inputs
        if operation == "flag":
            return self._read["flag"](step.value)
        if operation == "truth":
            return self._nw.lit(step.value, dtype=self._nw.Boolean)
        if operation in ("less", "at_most", "equal"):
            return self._compared(operation, self._known(inputs[0]), self._known(inputs[1]))
        if operation == "in":
            return self._one_of(self._known(inputs[0]), step.value)
        if operation == "text_in":
            name, listed = step.value
            return self._one_of(self._read["text"](name), listed)
        if operation == "text_null":
            return self._read["text"](step.value).is_null()
        if operation == "is_null":
            return self._known(inputs[0]).is_null()
        return self._joined(operation, [self.flag(each) for each in inputs])

    def _joined(self, operation: str, flags: "list[nw.Expr]") -> "nw.Expr":
        if operation == "not":
            return ~flags[0]
        if operation == "same":
            return flags[0] == flags[1]
        if operation == "is_unknown":
            return flags[0].is_null()
        if operation == "fill_flag":
            return self._when(flags[0].is_null(), flags[1], flags[0])
        if operation == "when_flag":
            return self._when(*flags)
        found = flags[0]
        for each in flags[1:]:
            found = found & each if operation == "and" else found | each
        return found

    def _compared(self, operation: str, left: "nw.Expr", right: "nw.Expr") -> "nw.Expr":
        if operation == "less":
            return left < right
        return left <= right if operation == "at_most" else left == right

    def _one_of(self, value: "nw.Expr", listed: tuple[Any, ...]) -> "nw.Expr":
        # What is null is in no list and not outside of one.
        return value == listed[0] if len(listed) == 1 else value.is_in(listed)


def _key(step: Step) -> object:
    # A column is one, however often it is named; a step lives as long as what is built of it.
    return ("column", step.value) if step.operation == "column" else id(step)


def _can_be_nan(step: Step) -> bool:
    # A column has null for NaN already, and what is bounded was made so.
    if step.operation in ("column", "literal", "clip"):
        return False
    inputs = step.inputs[1:] if step.operation in ("when", "fill") else step.inputs
    if step.operation in ("when", "fill", "negative", "abs", "floor", "whole", "sqrt"):
        return any(_can_be_nan(each) for each in inputs)
    return True
