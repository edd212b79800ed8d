"""Expressions from text: the syntax tree of a Python expression, read by a list of what may be in it."""

import ast
import re
from collections.abc import Callable
from typing import Any, NoReturn

from sfumato.checks import shown
from sfumato.data.expressions import MAX_DEPTH, Expression, as_expression, col, when
from sfumato.data.warning_filters import all_warnings
from sfumato.errors import InvalidParameter

MAX_LENGTH = 10_000

_BINARY: dict[type, Callable[[Any, Any], Expression]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
}
_COMPARISONS: dict[type, Callable[[Any, Any], Expression]] = {
    ast.Eq: lambda left, right: left == right,
    ast.NotEq: lambda left, right: left != right,
    ast.Lt: lambda left, right: left < right,
    ast.LtE: lambda left, right: left <= right,
    ast.Gt: lambda left, right: left > right,
    ast.GtE: lambda left, right: left >= right,
}
# The functions, and how many arguments each takes.
FUNCTIONS: dict[str, tuple[int, Callable[..., Expression]]] = {
    "abs": (1, lambda x: x.abs()),
    "floor": (1, lambda x: x.floor()),
    "sqrt": (1, lambda x: x.sqrt()),
    "year": (1, lambda x: x.year()),
    "month": (1, lambda x: x.month()),
    "day": (1, lambda x: x.day()),
    "weekday": (1, lambda x: x.weekday()),
    "is_null": (1, lambda x: x.is_null()),
    "fill_null": (2, lambda x, value: x.fill_null(value)),
    "clip": (3, lambda x, low, high: x.clip(_plain(low), _plain(high))),
    "between": (3, lambda x, low, high: x.between(low, high)),
    "when": (3, when),
}
_STRING = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_NAMES = {
    ast.Attribute: "an attribute",
    ast.Subscript: "a subscript",
    ast.Lambda: "a lambda",
    ast.NamedExpr: "an assignment",
    ast.JoinedStr: "a formatted string",
    ast.IfExp: "if and else (use when)",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.Dict: "a dictionary",
    ast.Set: "a set",
    ast.List: "a list (use it after in)",
    ast.Tuple: "a tuple (use a list after in)",
    ast.Starred: "a star",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
}
_SIGNS = {
    ast.Pow: "** (powers are rounded differently by engines)",
    ast.FloorDiv: "// (use floor(a / b))",
    ast.Mod: "%",
    ast.MatMult: "@",
    ast.BitAnd: "& (use and)",
    ast.BitOr: "| (use or)",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.Invert: "~ (use not)",
    ast.UAdd: "+ before a value",
}


def parse(text: str) -> Expression:
    """The expression that a plan's text says; the text is taken apart and never run.

    Raises:
        InvalidParameter: the text is too long or too deep, or holds anything that is not listed.

    >>> parse("age >= 18 and region in ['north', 'south']")
    <Expression age >= 18 and region in ['north', 'south']>
    """
    if not isinstance(text, str):
        raise InvalidParameter(f"an expression must be text, got {shown(text)}")
    if len(text) > MAX_LENGTH:
        raise InvalidParameter(
            f"an expression must have at most {MAX_LENGTH} characters, got {len(text)} characters"
        )
    # A plan may break a long line; each break is one blank, so that places stay.
    line = re.sub(r"[\r\n\t]", " ", text)
    source = line.lstrip(" ")
    shift = len(line) - len(source)
    _scan(source, shift)
    return _Reader(source, shift).expression(_tree(source, shift))


def _scan(source: str, shift: int) -> None:
    """Refuse what must not reach the parser: depth, comments, and strings of other kinds than plain ones."""
    # Strings are blanked out, of the same length, so that what is found is code.
    code = _STRING.sub(lambda found: "'" + " " * (len(found[0]) - 2) + "'", source)
    for sign, name in (("#", "a comment"), ("\\", "a backslash"), ("\0", "a zero character")):
        if sign in code:
            _refuse(name, shift + code.index(sign))
    prefixed = re.search(r"\w(?=['\"])", code)
    if prefixed and not re.search(r"\b(?:in|and|or|not|is)$", code[: prefixed.end()]):
        _refuse("a string with a prefix", shift + prefixed.start())
    depth = 0
    for place, sign in enumerate(code):
        depth += (sign in "([{") - (sign in ")]}")
        if depth > MAX_DEPTH:
            _refuse(f"more than {MAX_DEPTH} open brackets", shift + place)


def _tree(source: str, shift: int) -> ast.expr:
    place = 0
    try:
        with all_warnings("error"):
            return ast.parse(source, mode="eval").body
    except SyntaxError as error:
        place = max((error.offset or 1) - 1, 0)
    except (ValueError, MemoryError, RecursionError, Warning):
        raise InvalidParameter(
            f"an expression must be nested at most {MAX_DEPTH} deep and hold plain numbers and text"
        ) from None
    raise InvalidParameter(
        f"an expression must be written such as \"age >= 18 and region in ['north', 'south']\", "
        f"but it can not be read at character {shift + place + 1}"
    )


def _refuse(what: str, place: int) -> NoReturn:
    raise InvalidParameter(f"an expression can not have {what}, at character {place + 1}")


def _plain(value: Expression) -> object:
    return value.value if value.operation == "literal" else value


class _Reader:
    """The syntax tree, part by part; what is not named here is refused."""

    def __init__(self, source: str, shift: int) -> None:
        self._bytes, self._shift = source.encode("utf-8"), shift

    def _refuse(self, what: str, node: Any) -> NoReturn:
        _refuse(what, self._shift + len(self._bytes[: node.col_offset].decode("utf-8")))

    def expression(self, node: ast.expr, depth: int = 1) -> Expression:
        if depth > 4 * MAX_DEPTH:
            self._refuse(f"parts nested more than {MAX_DEPTH} deep", node)

        def inner(part: ast.expr) -> Expression:
            return self.expression(part, depth + 1)

        match node:
            case ast.Name():
                # As it is written: the parser takes some letters for others that look like them.
                return col(self._bytes[node.col_offset : node.end_col_offset].decode("utf-8"))
            case ast.Constant():
                return as_expression(self._constant(node))
            case ast.BinOp() if type(node.op) in _BINARY:
                return _BINARY[type(node.op)](inner(node.left), inner(node.right))
            case ast.UnaryOp(op=ast.USub()):
                return -inner(node.operand)
            case ast.UnaryOp(op=ast.Not()):
                return ~inner(node.operand)
            case ast.BinOp() | ast.UnaryOp():
                self._refuse(_SIGNS[type(node.op)], node)
            case ast.BoolOp():
                parts = [inner(part) for part in node.values]
                whole = parts[0]
                for part in parts[1:]:
                    whole = whole & part if isinstance(node.op, ast.And) else whole | part
                return whole
            case ast.Compare():
                return self._compared(node, inner)
            case ast.Call():
                return self._called(node, inner)
        self._refuse(_NAMES.get(type(node), f"a part of the kind {type(node).__name__}"), node)

    def _constant(self, node: ast.Constant) -> object:
        if node.value is None:
            self._refuse("None but after is (use is_null)", node)
        if not isinstance(node.value, bool | int | float | str):
            kinds = {bytes: "bytes", complex: "a complex number"}
            self._refuse(kinds.get(type(node.value), "..."), node)
        return node.value

    def _compared(self, node: ast.Compare, inner: Callable[[ast.expr], Expression]) -> Expression:
        found: Expression | None = None
        left: Expression | None = inner(node.left)
        for sign, part in zip(node.ops, node.comparators, strict=True):
            if left is None:
                self._refuse("a comparison after a list or None", part)
            test, left = self._test(left, sign, part, inner)
            found = test if found is None else found & test
        assert found is not None  # the parser gives a comparison at least one sign
        return found

    def _test(
        self, left: Expression, sign: ast.cmpop, part: ast.expr, inner: Callable[[ast.expr], Expression]
    ) -> tuple[Expression, Expression | None]:
        if isinstance(sign, ast.Is | ast.IsNot):
            if not isinstance(part, ast.Constant) or part.value is not None:
                self._refuse("is but before None (use ==)", part)
            return (left.is_null() if isinstance(sign, ast.Is) else ~left.is_null()), None
        if isinstance(sign, ast.In | ast.NotIn):
            if not isinstance(part, ast.List):
                self._refuse("in without a list in square brackets", part)
            listed = left.is_in([self._item(item) for item in part.elts])
            return (listed if isinstance(sign, ast.In) else ~listed), None
        right = inner(part)
        return _COMPARISONS[type(sign)](left, right), right

    def _item(self, node: ast.expr) -> object:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self._item(node.operand)
            if isinstance(value, bool | str):
                self._refuse("a minus before what is no number", node)
            return -value  # type: ignore[operator]
        if not isinstance(node, ast.Constant):
            self._refuse("a list of anything but constants", node)
        return self._constant(node)

    def _called(self, node: ast.Call, inner: Callable[[ast.expr], Expression]) -> Expression:
        name = node.func.id if isinstance(node.func, ast.Name) else None
        if node.keywords or any(isinstance(part, ast.Starred) for part in node.args):
            self._refuse("arguments with names or stars", node)
        if name == "col":
            if len(node.args) != 1 or not isinstance(node.args[0], ast.Constant):
                self._refuse("col without one name in quotes", node)
            return col(node.args[0].value)  # type: ignore[arg-type]
        if name not in FUNCTIONS:
            listed = ", ".join(["col", *FUNCTIONS])
            self._refuse(f"a call of anything but {listed}", node)
        count, make = FUNCTIONS[name]
        if len(node.args) != count:
            self._refuse(f"{name} with {len(node.args)} arguments in place of {count}", node)
        return make(*(inner(part) for part in node.args))
