"""The kinds of expressions: checked against those of the columns, they leave steps on numbers and flags."""

import datetime as dt
from collections.abc import Mapping
from typing import Any

from sfumato.checks import shown
from sfumato.data.expression_dates import date_part, moment
from sfumato.data.expression_steps import Bound, Step
from sfumato.data.expressions import Expression
from sfumato.errors import InvalidParameter, SchemaMismatch

NUMBERS = ("integer", "real")
DATES = ("date", "datetime")
KINDS = (*NUMBERS, "boolean", "text", *DATES, "unknown")
_FEW = 20


def bind(expression: Expression, kinds: Mapping[str, str]) -> Bound:
    """An expression with the kinds of its columns; nothing is read.

    Raises:
        SchemaMismatch: a column is missing, or of a kind that its place does not take.
        InvalidParameter: there is no column, or a constant does not fit what it is compared with.
    """
    if not isinstance(expression, Expression):
        raise InvalidParameter(f"an expression is needed, such as col('age') >= 18, got {shown(expression)}")
    if not expression.columns:
        raise InvalidParameter(f"an expression must name a column, got {expression.words}")
    for name in expression.columns:
        if name not in kinds:
            known = ", ".join(map(repr, list(kinds)[:_FEW])) or "none"
            raise SchemaMismatch(f"column {name!r} is not in the data, whose columns are {known}")
        if kinds[name] not in KINDS:
            raise SchemaMismatch(f"column {name!r} stores {kinds[name]}, which expressions do not take")
    kind, step = _Binding(kinds).typed(expression)
    return Bound(kind, step, {name: kinds[name] for name in expression.columns})


Typed = tuple[str, Step]


class _Binding:
    """The kind and the step of every part, from the leaves up."""

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self._kinds = kinds
        # A part that is used twice is one step, which is computed once.
        self._found: dict[int, tuple[Expression, Typed]] = {}

    def typed(self, part: Expression) -> Typed:
        if id(part) not in self._found:
            # With the part itself: an id is another's as soon as its owner is gone.
            self._found[id(part)] = part, self._typed(part)
        return self._found[id(part)][1]

    def _typed(self, part: Expression) -> Typed:
        operation = part.operation
        if operation == "column":
            kind = self._kinds[part.value]
            return kind, Step({"boolean": "flag", "text": "text"}.get(kind, "column"), (), part.value)
        if operation == "literal":
            return _constant(part.value)
        if operation == "subtract":
            return self._difference(part)
        if operation in ("add", "multiply", "divide", "negative", "abs", "floor", "sqrt"):
            return "real", Step(operation, tuple(self._number(each, part) for each in part.inputs))
        if operation == "clip":
            return "real", Step("clip", (self._number(part.inputs[0], part),), part.value)
        if operation in ("and", "or", "not"):
            return "boolean", Step(operation, tuple(self._flag(each, part) for each in part.inputs))
        if operation in ("equal", "less", "at_most"):
            return "boolean", self._compared(part)
        if operation == "in":
            return "boolean", self._listed(part)
        if operation == "is_null":
            return "boolean", self._missing(part)
        if operation in ("fill_null", "when"):
            return self._chosen(part)
        return "real", self._date_part(part)

    def _number(self, part: Expression, place: Expression) -> Step:
        kind, step = self.typed(part)
        if kind not in (*NUMBERS, "unknown"):
            hint = "; use when(condition, 1, 0)" if kind == "boolean" else ""
            raise _mismatch(place, "numbers", part, kind, hint)
        return step

    def _flag(self, part: Expression, place: Expression) -> Step:
        kind, step = self.typed(part)
        if kind not in ("boolean", "unknown"):
            raise _mismatch(place, "conditions", part, kind, "; compare it with a value")
        return Step("flag", (), step.value) if kind == "unknown" else step

    def _difference(self, part: Expression) -> Typed:
        kinds = {self.typed(each)[0] for each in part.inputs}
        if kinds & set(DATES):
            common, *steps = self._alike(part, part.inputs)
            if common in DATES:
                return "real", Step("subtract", tuple(steps))
        return "real", Step("subtract", tuple(self._number(each, part) for each in part.inputs))

    def _alike(self, place: Expression, parts: tuple[Expression, ...]) -> tuple[Any, ...]:
        """The kind that some parts share, and their steps as of that kind."""
        typed = [self.typed(each) for each in parts]
        known = [kind for kind, _ in typed if kind != "unknown"]
        # A constant may be a date beside times, and text beside either.
        common = next((kind for kind in ("datetime", "date") if kind in known), known[0] if known else "real")
        common = "real" if common in NUMBERS else common
        steps = [_as(common, *each, part, place) for each, part in zip(typed, parts, strict=True)]
        return common, *steps

    def _compared(self, part: Expression) -> Step:
        common, left, right = self._alike(part, part.inputs)
        if common == "text":
            if part.operation != "equal":
                raise SchemaMismatch(
                    f"{_short(part)} orders text, and orders of text differ between engines: use is_in"
                )
            if {left.operation, right.operation} != {"text", "literal"}:
                raise SchemaMismatch(f"{_short(part)} must compare one column of text with a constant")
            name, text = (left, right) if left.operation == "text" else (right, left)
            return Step("text_in", (), (name.value, (text.value,)))
        if common == "boolean":
            if part.operation != "equal":
                raise SchemaMismatch(f"{_short(part)} orders conditions, which have no order: use == or !=")
            return Step("same", (left, right))
        return Step(part.operation, (left, right))

    def _listed(self, part: Expression) -> Step:
        # As a comparison with one of them: they are of one kind.
        common, step, _ = self._alike(part, (part.inputs[0], Expression("literal", (), part.value[0])))
        values = part.value
        if common in DATES:
            values = tuple(moment(common, value, _short(part)) for value in values)
        if common == "text":
            if step.operation != "text":
                raise SchemaMismatch(f"{_short(part)} must compare one column of text with constants")
            return Step("text_in", (), (step.value, values))
        if common == "boolean":
            tests = tuple(Step("same", (step, Step("truth", (), value))) for value in values)
            return tests[0] if len(tests) == 1 else Step("or", tests)
        return Step("in", (step,), tuple(sorted(set(values))))

    def _missing(self, part: Expression) -> Step:
        kind, step = self.typed(part.inputs[0])
        if kind == "boolean":
            return Step("is_unknown", (step,))
        if kind == "text":
            if step.operation != "text":
                raise InvalidParameter(f"{_short(part)} must name a column")
            return Step("text_null", (), step.value)
        if kind in DATES and step.operation == "literal":
            raise InvalidParameter(f"{_short(part)} must name a column")
        return Step("is_null", (step,))

    def _chosen(self, part: Expression) -> Typed:
        *condition, first, second = part.inputs
        common, *steps = self._alike(part, (first, second))
        if common == "text":
            raise SchemaMismatch(f"{_short(part)} would make text, which expressions only compare")
        flags = tuple(self._flag(each, part) for each in condition)
        name = "fill" if part.operation == "fill_null" else "when"
        return common, Step(f"{name}_flag" if common == "boolean" else name, (*flags, *steps))

    def _date_part(self, part: Expression) -> Step:
        kind, step = self.typed(part.inputs[0])
        if kind not in (*DATES, "unknown"):
            raise _mismatch(part, "a date", part.inputs[0], kind)
        return date_part(part.operation, kind, step)


def _as(common: str, kind: str, step: Step, part: Expression, place: Expression) -> Step:
    if kind == "unknown":
        return Step({"boolean": "flag", "text": "text"}.get(common, "column"), (), step.value)
    if part.operation == "literal" and common in DATES:
        return Step("literal", (), moment(common, part.value, _short(place)))
    if kind == common or (kind in NUMBERS and common == "real"):
        return step
    raise _mismatch(place, {"real": "numbers"}.get(common, f"a {common}"), part, kind)


def _constant(value: Any) -> Typed:
    if isinstance(value, bool):
        return "boolean", Step("truth", (), value)
    kind = {float: "real", str: "text"}.get(type(value), "date")
    return "datetime" if isinstance(value, dt.datetime) else kind, Step("literal", (), value)


def _short(part: Expression) -> str:
    words = part.words
    return words if len(words) <= 80 else f"{words[:77]}..."


def _mismatch(place: Expression, wanted: str, part: Expression, kind: str, hint: str = "") -> SchemaMismatch:
    stored = "stores" if part.operation == "column" else "is"
    named = f"column {part.value!r}" if part.operation == "column" else _short(part)
    return SchemaMismatch(f"{_short(place)} needs {wanted}, but {named} {stored} {kind}{hint}")
