"""Expressions from text: what is listed is read, all else is refused by name and place, nothing runs."""

import ast
import builtins
import inspect

import pytest

from sfumato.data import expression_text
from sfumato.data.expression_text import MAX_LENGTH, parse
from sfumato.data.expressions import col, when
from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.laws import SeededBits

READ = {
    "age": col("age"),
    "  age >= 18\n  and region in ['north', 'south']": (col("age") >= 18)
    & col("region").is_in(["north", "south"]),
    "18 <= age < 65": (col("age") >= 18) & (col("age") < 65),
    "a and b or not c": (col("a") & col("b")) | ~col("c"),
    "col('odd name') / col(\"it's\")": col("odd name") / col("it's"),
    "0.1 * x - -2": 0.1 * col("x") - -2,
    "t not in ['a', 'b']": ~col("t").is_in(["a", "b"]),
    "n in [-1, 2.5]": col("n").is_in([-1, 2.5]),
    "x is None or y is not None": col("x").is_null() | ~col("y").is_null(),
    "b == True": col("b") == True,  # noqa: E712  reason: that is how it is written
    "abs(x) + floor(x) + sqrt(x)": col("x").abs() + col("x").floor() + col("x").sqrt(),
    "clip(x, -1, 2)": col("x").clip(-1, 2),
    "between(x, 1, y)": col("x").between(1, col("y")),
    "fill_null(x, 0)": col("x").fill_null(0),
    "is_null(x)": col("x").is_null(),
    "when(x > 0, x, 0)": when(col("x") > 0, col("x"), 0),
    "year(d) == 2000 and month(d) < 3 and day(d) > weekday(d)": (col("d").year() == 2000)
    & (col("d").month() < 3)
    & (col("d").day() > col("d").weekday()),
    "year + when": col("year") + col("when"),
    "größe > 1": col("größe") > 1,
    "\N{LATIN SMALL LIGATURE FI}t > 1": col("\N{LATIN SMALL LIGATURE FI}t") > 1,
    "t == 'it\\'s (((# not code'": col("t") == "it's (((# not code",
    "1_000 < n": col("n") > 1000,
}


@pytest.mark.parametrize(("text", "expression"), READ.items(), ids=READ)
def test_what_is_listed_is_read(text, expression):
    assert parse(text).equals(expression)


REFUSED = {
    "x.real": "an attribute, at character 1",
    "1 + x[0]": "a subscript, at character 5",
    "lambda: x": "a lambda",
    "(y := 3) > x": "an assignment",
    "f'{x}' == t": "a string with a prefix",
    "t == b'a'": "a string with a prefix, at character 6",
    "x if b else y": r"if and else \(use when\)",
    "[i for i in x]": "a comprehension",
    "{'a': 1}": "a dictionary",
    "{1}": "a set",
    "x in (1, 2)": "in without a list",
    "x in y": "in without a list",
    "x in [y]": "a list of anything but constants",
    "x in [-'a']": "a minus before what is no number",
    "x, y": "a tuple",
    "[x]": "a list",
    "x ** 2": r"\*\* \(powers are rounded differently by engines\)",
    "x // 2": "//",
    "x % 2": "%",
    "x & y": r"& \(use and\)",
    "x | y": r"\| \(use or\)",
    "~x": r"~ \(use not\)",
    "+x": r"\+ before a value",
    "x == None": r"None but after is \(use is_null\), at character 6",
    "x is 3": r"is but before None \(use ==\)",
    "x is None == y": "a comparison after a list or None",
    "x > 1j": "a complex number",
    "x > ...": r"\.\.\.",
    "exp(x)": "a call of anything but col, abs",
    "__import__('os')": "a call of anything but",
    "x.__class__()": "a call of anything but",
    "abs(x, y)": "abs with 2 arguments in place of 1",
    "abs(*x)": "arguments with names or stars",
    "clip(x, low=1)": "arguments with names or stars",
    "col(x)": "col without one name in quotes",
    "x > 1 # big": "a comment, at character 7",
    "x > \\\n1": "a backslash",
    "x > 1; y": "can not be read at character 6",
    "x = 1": "can not be read",
    "": "can not be read",
    "x >": "can not be read",
    "x > 1e999": "must be finite",
    "x > '\\ud800'": "UTF-8 can encode",
    "x\0": "a zero character",
    "await x": "(can not|await)",
    "t == '\\d'": "can not be read",
}


@pytest.mark.parametrize(("text", "message"), REFUSED.items(), ids=[ascii(text) for text in REFUSED])
def test_what_is_not_listed_is_refused_by_its_name_and_place(text, message):
    with pytest.raises(InvalidParameter, match=message):
        parse(text)


DEEP = {
    "parentheses": "(" * 10**5 + "x" + ")" * 10**5,
    "parentheses in bounds": "(" * 4000 + "x" + ")" * 4000,
    "brackets that stay open": "[" * 9000,
    "signs": "-" * 9000 + "x",
    "denials": "not " * 2000 + "x",
    "a sum": "x" + "+x" * 4000,
    "powers": "2" + "**2" * 3000,
    "calls": "abs(" * 1500 + "x" + ")" * 1500,
    "comparisons": "x" + "<x" * 3000,
    "choices": "x if y else " * 700 + "x",
    "lambdas": "lambda:" * 1200 + "x",
    "formatted strings": "f'{" * 100 + "x",
    "digits": "9" * 9000,
    "a long text": "t == '" + "a" * MAX_LENGTH + "'",
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_depth_and_length_are_refused_and_crash_nothing(text):
    with pytest.raises(InvalidParameter):
        parse(text)


def test_only_text_is_read():
    for given in (3, None, b"x", col("x")):
        with pytest.raises(InvalidParameter, match="an expression must be text"):
            parse(given)


def test_no_text_of_any_kind_gets_another_error():
    pieces = [
        "x",
        "1",
        " ",
        "(",
        ")",
        "'",
        '"',
        "in",
        "[",
        "]",
        ",",
        "+",
        "==",
        "not",
        ".",
        "\\",
        "#",
        "{",
        "}",
    ]
    pieces += [
        "col",
        "abs",
        "None",
        "is",
        "f",
        "\n",
        "é",
        ":=",
        "lambda",
        "0x",
        "1e",
        "_",
        "\0",
        "and",
        "*",
        "🜁",
    ]
    bits = SeededBits(31)
    readable = 0
    for words in bits.words(3000 * 12).reshape(3000, 12).tolist():
        text = "".join(pieces[word % len(pieces)] for word in words[: 1 + words[0] % 12])
        try:
            parse(text)
            readable += 1
        except SfumatoError:
            pass
    assert readable > 10


def test_nothing_is_run(monkeypatch):
    def never(*_args, **_kwargs):
        raise AssertionError("text was run")

    parsed = ast.parse
    monkeypatch.setattr(builtins, "eval", never)
    monkeypatch.setattr(builtins, "exec", never)
    monkeypatch.setattr(ast, "parse", lambda source, mode: parsed(source, mode=mode))
    parse("when(x > 0, abs(x), 0)")
    called = {
        node.func.id
        for node in ast.walk(parsed(inspect.getsource(expression_text)))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & {"eval", "exec", "compile", "getattr", "__import__"}
