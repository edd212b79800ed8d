"""An expression as text for people and plans, and as facts that are the same for every spelling."""

import datetime as dt
import json
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.data.expressions import Expression

# How tightly an operator binds; what binds less than its place is put in parentheses.
_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _ATOM = range(1, 9)
_ARITHMETIC = {
    "add": ("+", _SUM),
    "subtract": ("-", _SUM),
    "multiply": ("*", _PRODUCT),
    "divide": ("/", _PRODUCT),
}
_COMPARISONS = {"equal": ("==", "=="), "less": ("<", ">"), "at_most": ("<=", ">=")}


def in_words(expression: "Expression") -> str:
    """The expression in the form that plans take."""
    return _words(expression)[0]


def _words(expression: "Expression") -> tuple[str, int]:
    operation, inputs = expression.operation, expression.inputs
    if operation == "column":
        return _name(expression.value), _ATOM
    if operation == "literal":
        return constant_words(expression.value), _ATOM
    if operation in _ARITHMETIC:
        sign, level = _ARITHMETIC[operation]
        return f"{_placed(inputs[0], level)} {sign} {_placed(inputs[1], level + 1)}", level
    if operation == "negative":
        return f"-{_placed(inputs[0], _SIGN)}", _SIGN
    if operation in ("and", "or"):
        level = _AND if operation == "and" else _OR
        return f" {operation} ".join(_placed(each, level + 1) for each in inputs), level
    if operation in _COMPARISONS:
        return _compared(inputs, *_COMPARISONS[operation]), _COMPARE
    if operation == "in":
        return f"{_placed(inputs[0], _SUM)} in {_list(expression.value)}", _COMPARE
    if operation == "not":
        return _denied(inputs[0])
    listed = [_words(each)[0] for each in inputs]
    if operation == "clip":
        listed += map(constant_words, expression.value)
    return f"{operation}({', '.join(listed)})", _ATOM


def _denied(inner: "Expression") -> tuple[str, int]:
    if inner.operation == "equal":
        return _compared(inner.inputs, "!=", "!="), _COMPARE
    if inner.operation == "in":
        return f"{_placed(inner.inputs[0], _SUM)} not in {_list(inner.value)}", _COMPARE
    return f"not {_placed(inner, _NOT)}", _NOT


def _compared(inputs: "tuple[Expression, ...]", sign: str, turned: str) -> str:
    left, right = inputs
    # People put the constant last.
    if left.operation == "literal" and right.operation != "literal":
        left, right, sign = right, left, turned
    return f"{_placed(left, _SUM)} {sign} {_placed(right, _SUM)}"


def _placed(expression: "Expression", level: int) -> str:
    words, own = _words(expression)
    return words if own >= level else f"({words})"


def _list(listed: tuple[Any, ...]) -> str:
    return f"[{', '.join(map(constant_words, listed))}]"


def _name(name: str) -> str:
    plain = name.isascii() and name.isidentifier() and not iskeyword(name)
    return name if plain else f"col({name!r})"


def constant_words(value: Any) -> str:
    """A constant as plans take it; a date is its ISO text."""
    if isinstance(value, dt.date):
        return repr(value.isoformat())
    if isinstance(value, float) and value.is_integer() and abs(value) < 10**15:
        return str(int(value))
    return repr(value)


def canonical(expression: "Expression") -> list[Any]:
    """Facts in JSON's types: what differs only in order, in signs or in repetition becomes the same."""
    operation, inputs = expression.operation, expression.inputs
    if operation == "column":
        return ["column", expression.value]
    if operation == "literal":
        return ["literal", _fact(expression.value)]
    parts = [canonical(each) for each in inputs]
    if operation in ("and", "or"):
        # A denial may have hidden a chain inside this one.
        flat = [part for each in parts for part in (each[1:] if each[0] == operation else [each])]
        distinct = _distinct(flat)
        return distinct[0] if len(distinct) == 1 else [operation, *distinct]
    if operation in ("add", "multiply", "equal"):
        # Of two terms: float64 sums depend on how three are bracketed.
        return [operation, *sorted(parts, key=json.dumps)]
    if operation == "not":
        return _denial(parts[0])
    if operation == "in":
        listed = _distinct([["literal", _fact(value)] for value in expression.value])
        if len(listed) == 1:
            return ["equal", *sorted([parts[0], listed[0]], key=json.dumps)]
        return ["in", parts[0], [each[1] for each in listed]]
    if operation == "clip":
        return ["clip", *parts, [_fact(end) for end in expression.value]]
    return [operation, *parts]


def _denial(fact: list[Any]) -> list[Any]:
    # Numbers that are not null are less, equal or greater, so a denied comparison is the turned one.
    if fact[0] in ("less", "at_most"):
        return ["at_most" if fact[0] == "less" else "less", fact[2], fact[1]]
    return fact[1] if fact[0] == "not" else ["not", fact]


def _distinct(parts: list[Any]) -> list[Any]:
    found = {json.dumps(part): part for part in parts}
    return [found[key] for key in sorted(found)]


def _fact(value: Any) -> list[Any]:
    if isinstance(value, dt.date):
        return ["text", value.isoformat()]
    if isinstance(value, float):
        return ["number", value.hex()]
    return ["text" if isinstance(value, str) else "boolean", value]
