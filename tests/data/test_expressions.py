"""Expressions: built by operators, checked by public kinds before any charge, told in words and in facts."""

import copy
import datetime as dt
import json
import pickle
from decimal import Decimal
from fractions import Fraction

import narwhals as nw
import numpy as np
import pytest
from tests.data.expression_trees import KINDS, trees

import sfumato as sf
from sfumato.data.admission import admit
from sfumato.data.expression_frames import MAX_SIZE, as_frame_expr
from sfumato.data.expression_text import parse
from sfumato.data.expression_values import derived, rows_where
from sfumato.data.expressions import MAX_DEPTH, MAX_NODES, Expression, col, when
from sfumato.errors import InvalidParameter, SchemaMismatch

WORDS = {
    "salary / hours": col("salary") / col("hours"),
    "age >= 18 and region in ['north', 'south']": (col("age") >= 18)
    & col("region").is_in(["north", "south"]),
    "a - (b - c) - d": col("a") - (col("b") - col("c")) - col("d"),
    "-(a + 1) * 0.1": -(col("a") + 1) * Decimal("0.1"),
    "not (a or b) and c": ~(col("a") | col("b")) & col("c"),
    "a < b": col("b") > col("a"),
    "a != -3": col("a") != -3,
    "region not in ['x']": ~col("region").is_in(["x"]),
    "col('odd name') > 2": 2 < col("odd name"),  # noqa: SIM300  reason: the turned form is the test
    "col('None') == True": col("None") == True,  # noqa: E712  reason: that is how it is written
    "when(a > 0, b, 0)": when(col("a") > 0, col("b"), 0),
    "clip(a, -1, 1.5)": col("a").clip(-1, 1.5),
    "born < '2000-01-31'": col("born") < dt.date(2000, 1, 31),
    "age >= 18 and age <= 65": col("age").between(18, 65),
    "year(born) == 2000": col("born").year() == 2000,
    "(a == 1) == b": (col("a") == 1) == col("b"),
    "1e+22 + a": 1e22 + col("a"),
}


@pytest.mark.parametrize(("words", "expression"), WORDS.items(), ids=WORDS)
def test_an_expression_is_told_in_the_words_of_a_plan(words, expression):
    assert expression.words == words
    assert repr(expression) == f"<Expression {words}>"
    assert parse(words).equals(expression)


def test_the_words_of_every_random_expression_read_back_as_the_same():
    for tree in trees(seed=21, count=300):
        assert parse(tree.words).equals(tree), tree.words
        assert json.loads(tree.key) == tree.facts()


SAME = {
    "order of and": (col("a") & col("b"), col("b") & col("a")),
    "brackets of or": ((col("a") | col("b")) | col("c"), col("a") | (col("b") | col("c"))),
    "repetition": (col("a") & col("b") & col("a"), col("a") & col("b")),
    "sides": (col("x") > 3, 3 < col("x")),  # noqa: SIM300  reason: the turned form is the test
    "denied comparison": (~(col("x") > 3), col("x") <= 3),
    "denied twice": (~~col("a"), col("a")),
    "order of a sum": (col("x") + 1, 1 + col("x")),
    "order of equality": (col("x") == col("y"), col("y") == col("x")),
    "order of a list": (col("t").is_in(["a", "b"]), col("t").is_in(["b", "a", "a"])),
    "a list of one": (col("t").is_in(["a"]), col("t") == "a"),
    "spellings of a number": (col("x") > 0.5, col("x") > Fraction(1, 2)),
    "a sign of zero": (col("x") > 0, col("x") > -0.0),
    "a range": (col("x").between(1, 2), (col("x") <= 2) & (col("x") >= 1)),
    "a date and its text": (col("d") < dt.date(2000, 1, 31), col("d") < "2000-01-31"),
}
OTHERS = {
    "sides": (col("x") - col("y"), col("y") - col("x")),
    "brackets of a sum": ((col("x") + col("y")) + col("z"), col("x") + (col("y") + col("z"))),
    "strictness": (col("x") < 3, col("x") <= 3),
    "a bit": (col("x") < 0.1, col("x") < 0.1 + 2**-56),
    "a kind": (col("x") == 1, col("x") == True),  # noqa: E712  reason: that is how it is written
    "a name": (col("x") == "y", col("x") == col("y")),
    "and or": (col("a") & col("b"), col("a") | col("b")),
    "branches": (when(col("a"), 1, 2), when(col("a"), 2, 1)),
    "ends": (col("x").clip(0, 1), col("x").clip(0, 2)),
}


@pytest.mark.parametrize(("left", "right"), SAME.values(), ids=SAME)
def test_spellings_of_the_same_have_the_same_facts(left, right):
    assert left.equals(right)
    assert left.key == right.key


@pytest.mark.parametrize(("left", "right"), OTHERS.values(), ids=OTHERS)
def test_what_means_something_else_has_other_facts(left, right):
    assert not left.equals(right)


def test_an_expression_has_no_truth_value_and_no_hash():
    for use in (bool, lambda e: e and e, lambda e: 18 <= e < 65, lambda e: e in [col("b")]):
        with pytest.raises(InvalidParameter, match=r"use & for and, \| for or"):
            use(col("a") > 1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(col("a"))
    assert not col("a").equals("a")


def test_an_expression_is_frozen_and_can_be_copied():
    expression = col("a") + 1
    with pytest.raises(AttributeError):
        expression.value = "b"
    assert copy.deepcopy(expression).equals(expression)
    assert pickle.loads(pickle.dumps(expression)).equals(expression)
    assert sf.col is col
    assert sf.when is when


def test_numbers_of_every_library_are_read_exactly():
    for number in (0.1, Decimal("0.1"), Fraction(1, 10), np.float64(0.1)):
        assert (col("x") < number).equals(col("x") < 0.1)
        assert (number * col("x")).equals(0.1 * col("x"))
    assert (np.int64(3) < col("x")).equals(col("x") > 3)
    assert (col("d") > np.datetime64("2000-01-31")).equals(col("d") > dt.date(2000, 1, 31))


REFUSED = {
    "no name": (lambda: col(3), "^name must be text of at most 1,000 characters"),
    "half a character": (
        lambda: col("x") == "\ud800",
        "^a constant must be text of at most 10,000 characters that UTF-8 can encode",
    ),
    "nothing": (lambda: col("x") == None, "got None: use is_null"),  # noqa: E711  reason: that is the test
    "an infinity": (lambda: col("x") < float("inf"), "must be finite"),
    "too large": (lambda: col("x") < 10**400, "must be a number that float64 can hold"),
    "an object": (lambda: col("x") + object(), "must be a number"),
    "an empty list": (lambda: col("x").is_in([]), "a list of 1 to"),
    "no list": (lambda: col("x").is_in("abc"), "needs a list"),
    "a mixed list": (lambda: col("x").is_in([1, "a"]), "of one kind"),
    "ends": (lambda: col("x").clip(2, 1), "low must be at most high"),
    "an end that is no number": (lambda: col("x").clip(col("y"), 1), "^low must be a number"),
}


@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED)
def test_a_constant_that_no_engine_can_take_is_refused_at_once(make, message):
    with pytest.raises(InvalidParameter, match=message):
        make()


def test_depth_and_parts_are_bounded():
    deep = wide = shared = col("x")
    for _ in range(MAX_DEPTH - 1):
        deep = deep + 1
    for place in range(MAX_NODES - 2):
        wide = wide & col(f"c{place}")
    for _ in range(8):
        shared = shared + shared
    assert (deep.depth, wide.nodes, wide.depth, shared.nodes) == (MAX_DEPTH, MAX_NODES, 2, 511)
    message = f"at most {MAX_NODES} parts, nested at most {MAX_DEPTH} deep"
    for grown in (lambda: deep + 1, lambda: wide & col("more"), lambda: shared + shared):
        with pytest.raises(InvalidParameter, match=message):
            grown()


def test_an_expression_that_would_grow_in_an_engine_is_refused_before_it_is_built():
    nested = col("x")
    for _ in range(12):
        nested = 1 / nested
    with pytest.raises(InvalidParameter, match=f"at most {MAX_SIZE} operations"):
        as_frame_expr(nested, {"x": "real"}, number=nw.col, text=nw.col, flag=nw.col)


MISMATCHED = {
    "a sum with text": (col("t") + 1, "t [+] 1 needs numbers, but column 't' stores text"),
    "a sum with a flag": (col("b") + 1, r"column 'b' stores boolean; use when\(condition, 1, 0\)"),
    "a number as a flag": (col("n") & col("b"), "n and b needs conditions, but column 'n' stores integer"),
    "text with a number": (col("t") == 1, "t == 1 needs a text, but 1 is real"),
    "an order of text": (col("t") < "m", "orders text, .* use is_in"),
    "an order of flags": (col("b") < col("c"), "have no order"),
    "two texts": (col("t") == col("t"), "must compare one column of text with a constant"),
    "made text": (when(col("b"), "x", "y") == "x", "would make text"),
    "filled text": (col("t").fill_null("x") == "x", "would make text"),
    "a list of numbers for text": (col("t").is_in([1, 2]), "needs a text"),
    "no such column": (col("planet") > 1, "^column 'planet' is not in the data, whose columns are 'x'"),
    "a year of a number": (col("x").year(), "needs a date, but column 'x' stores real"),
    "a date with a time": (col("d") < col("s"), "needs a datetime, but column 'd' stores date"),
    "a date for text": (col("t") == dt.date(2000, 1, 1), "needs a date, but column 't' stores text"),
    "a date and a number": (col("d") < 3, "compares a date, so a constant must be such as '2024-01-31'"),
    "no date": (col("d") < "soon", "compares a date, so a constant must be such as '2024-01-31', got 'soon'"),
    "a time for a date": (col("d") == dt.datetime(2000, 1, 1), "needs a datetime, but column 'd'"),
    "a sum of dates": (col("d") + col("d"), "needs numbers, but column 'd' stores date"),
    "no column": (when(Expression("literal", (), True), 1, 2), "must name a column"),
    "branches": (when(col("b"), 1, "x"), "needs numbers, but 'x' is text"),
}


@pytest.mark.parametrize(("expression", "message"), MISMATCHED.values(), ids=MISMATCHED)
def test_a_kind_that_does_not_fit_is_refused_in_words_and_no_value_is_read(expression, message):
    with pytest.raises((SchemaMismatch, InvalidParameter), match=message):
        expression.kind(KINDS)


def test_kinds_are_told_before_any_value_is_read():
    kinds = {"real": col("n") / 2, "boolean": col("n") > 2, "integer": col("n"), "date": col("d")}
    for kind, expression in kinds.items():
        assert expression.kind(KINDS) == kind
    assert (col("d") - col("d")).kind(KINDS) == "real"
    assert (col("e") / 2).kind({"e": "unknown"}) == "real"
    with pytest.raises(SchemaMismatch, match="stores duration, which expressions do not take"):
        (col("e") / 2).kind({"e": "duration"})
    table = {"d": admit(np.array(["2000-01-01"], dtype="datetime64[D]")), "t": admit(["a"])}
    for expression in (col("d"), col("t")):
        with pytest.raises(SchemaMismatch, match=r"^the derived column 'made' = . must be integer or real"):
            derived(expression, table, "made")
    with pytest.raises(SchemaMismatch, match=r"^the condition year\(d\) must be boolean"):
        rows_where(col("d").year(), table)


NULLABLE = {
    "a column": (col("n"), False),
    "a sum of integers": (col("n") + col("n") * 2, False),
    "a large product": (col("n") * 1e300 * 1e300, True),
    "a quotient": (col("n") / 2, True),
    "a filled quotient": ((col("n") / 2).fill_null(0), False),
    "a nullable column": (col("x") + 1, True),
    "a question": (col("x").is_null(), False),
    "a comparison": (col("n") > 3, False),
    "of a nullable one": (col("x") > 3, True),
    "a choice": (when(col("x") > 3, 1, 2), False),
    "text": (col("t") == "a", True),
}


@pytest.mark.parametrize(("expression", "nullable"), NULLABLE.values(), ids=NULLABLE)
def test_whether_a_derived_column_can_be_null_is_a_public_fact(expression, nullable):
    table = {"n": admit(np.arange(3)), "x": admit([1.0, None, 5.0]), "t": admit(["a", None, "b"])}
    column = derived(expression, table, "made")
    assert column.nullable is nullable
    assert column.nulls() == 0 or nullable


def test_a_column_without_a_value_is_null_in_every_place():
    table = {"e": admit([None, None]), "x": admit([1.0, 2.0])}
    for expression in (col("e") + 1, col("e") == "a", col("e") & (col("x") > 0), col("e") > col("x")):
        assert derived(expression, table, "made").nulls() == 2
    assert rows_where(col("e").is_null() & (col("x") > 1), table).tolist() == [False, True]
    assert rows_where(col("e"), table).tolist() == [False, False]


def test_a_derived_column_is_used_like_any_other():
    table = {"salary": admit([10.0, 20.0, None, 5.0]), "hours": admit([2.0, 0.0, 1.0, 5.0])}
    hourly = derived(col("salary") / col("hours"), table, "hourly")
    assert np.concatenate(list(hourly.chunks())).tolist()[::3] == [5.0, 1.0]
    assert hourly.tally((5, 1)) == ([1, 1], 0)
    high = derived(col("hourly") > 2, {"hourly": hourly}, "high")
    assert high.kind == "boolean"
    assert high.tally((True, False)) == ([1, 1], 0)
    assert high.codes((True, False)).tolist() == [0, 3, 3, 1]


def test_no_value_is_read_before_it_is_asked_for():
    read = []
    column = admit(np.arange(200_000.0))
    watched = copy.copy(column)

    def floats(start, stop):
        read.append(start)
        return column._floats(start, stop)

    object.__setattr__(watched, "_floats", floats)
    made = derived(col("x") * 2, {"x": watched}, "made")
    assert not read
    next(made.chunks())
    assert read == [0]


def test_parts_of_a_date_are_those_of_the_calendar():
    # All days of 400 years, after which the calendar repeats, and some of every century from year 1 to 9999.
    days = np.concatenate([np.arange(-73_000, 73_097), np.arange(-719_162, 2_932_897, 997)])
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    known = {
        "year": dates.astype("datetime64[Y]").astype(int) + 1970,
        "month": months.astype(int) % 12 + 1,
        "day": (dates - months.astype("datetime64[D]")).astype(int) + 1,
        "weekday": (days + 3) % 7 + 1,
    }
    # Seconds in float64 tell microseconds apart up to the year 2242.
    near = np.abs(days) < 2**33 // 86_400
    last = dates.astype("datetime64[us]") + np.where(near, 86_399_999_999, 86_399_000_000)
    for part, wanted in known.items():
        for stored in (dates, dates.astype("datetime64[s]"), last):
            column = derived(getattr(col("d"), part)(), {"d": admit(stored)}, part)
            np.testing.assert_array_equal(np.concatenate(list(column.chunks())), wanted)
