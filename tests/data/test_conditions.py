"""Conditions: what `where` may say is checked by public facts, and a null meets none."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.engines import BOOLEANS, INTEGERS, REALS, TEXT

import sfumato as sf
from sfumato.data.conditions import Between, read_conditions
from sfumato.data.dataset import Dataset
from sfumato.data.field import Field
from sfumato.errors import InvalidParameter, SchemaMismatch
from sfumato.laws import SeededBits

WORDS = {
    "red": ("red", "red"),
    "several": (["red", "blue"], "red or blue"),
    "a tuple": (("red",), "red"),
    "an array": (np.array(["red", "blue"]), "red or blue"),
    "a number": (7, "7"),
    "a boolean": (True, "true"),
    "booleans": ([True, False], "true or false"),
    "a range": (Between(18, 65), "18 to 65"),
    "decimals": (Between(0.1, Decimal("2.50")), "0.1 to 2.5"),
    "a third": (Between(Fraction(1, 3), 1), "1/3 to 1"),
    "of NumPy": (Between(np.int64(-3), np.float64(0.5)), "-3 to 0.5"),
}


@pytest.mark.parametrize(("condition", "words"), WORDS.values(), ids=WORDS)
def test_a_condition_is_put_in_words(condition, words):
    (read,) = read_conditions({"column": condition})
    assert (read.column, read.words) == ("column", words)
    assert hash(read) == hash(read_conditions({"column": condition})[0])


REFUSED = {
    "no mapping": (["team"], "^where must map columns to conditions"),
    "nothing": ({"team": None}, "^where of 'team' must be text, whole numbers or booleans, got "),
    "no category": ({"team": []}, "^where of 'team' must be text"),
    "a real": ({"team": 0.5}, "^where of 'team' must be text, whole numbers or booleans, got .*0.5$"),
    "two types": ({"team": ["red", 1]}, "^where of 'team' must be distinct and of one type"),
    "twice": ({"team": ["red", "red"]}, "^where of 'team' must be distinct"),
    "a set": ({"team": {"red"}}, "^where of 'team' must be text"),
    "no such column": ({"planet": "red"}, "^column 'planet' is not in the data"),
    "no name": ({3: "red"}, "^column 3 is not in the data"),
    "undeclared": (
        {"team": "green"},
        r"^where must .*'team', which are \('red', 'blue'\), got 'green'$",
    ),
    "one undeclared": ({"team": ["red", "green"]}, "^where must name declared categories.*got 'green'$"),
    "another type": ({"team": 1}, "^column 'team' stores text, so categories must be str"),
    "a range of text": (
        {"team": Between(0, 1)},
        "^column 'team' must be integer or real",
    ),
    "a range of booleans": ({"member": Between(0, 1)}, "^column 'member' must be integer or real"),
    "a boolean of numbers": ({"age": True}, "^column 'age' stores real, so categories must be int"),
    "a number of booleans": ({"member": 1}, "^column 'member' stores boolean, so categories must be bool"),
    "too long a number": ({"age": 2**53 + 1}, r"^column 'age' stores real, which .* up to 2\*\*53 only$"),
}
ROWS = {"team": ["red", "CANARY", None], "age": [987654.321, None, 20], "member": [True, None, False]}
DATA = Dataset(ROWS, unit="row", neighbours="add-remove", schema={"team": Field(categories=("red", "blue"))})


@pytest.mark.parametrize(("where", "message"), REFUSED.values(), ids=REFUSED)
def test_a_condition_that_public_facts_rule_out_is_refused_before_any_charge(where, message):
    for refuse in (DATA.require, DATA.part, lambda where: DATA.parts("age", where=where, bits=SeededBits(1))):
        with pytest.raises((InvalidParameter, SchemaMismatch), match=message) as caught:
            refuse(where)
        assert "CANARY" not in str(caught.value)
        assert "987654" not in str(caught.value)


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (2, 1, "^low must be at most high, got low=2, high=1$"),
        ("a", 1, "^low must be a number"),
        (0, float("nan"), "^high must be finite"),
        (0, float("inf"), "^high must be finite"),
        (True, 2, "^low must be a number, got low=True$"),
        (0, 10**400, r"^low and high must be below 2\*\*1023"),
    ],
)
def test_a_range_has_two_finite_ends_in_order(low, high, message):
    with pytest.raises(InvalidParameter, match=message):
        sf.Between(low, high)


def test_text_without_declared_categories_is_compared_with_what_is_given():
    data = Dataset({"word": ["a", "b", None, "a"]}, unit="row", neighbours="add-remove")
    data.require({"word": "never seen"})
    (part,) = data.parts("word", where={"word": ["a", "never seen"]}, bits=SeededBits(1))
    assert part.codes(["a"]).tolist() == [0, 0]


def test_a_column_without_a_value_takes_any_condition_and_meets_none():
    data = Dataset({"x": [None, None]}, unit="row", neighbours="add-remove")
    for condition in ("red", 3, True, Between(0, 1)):
        data.require({"x": condition})
        assert data.parts("x", where={"x": condition}, bits=SeededBits(1))[0].rows == 0


def options():
    """Sources of every kind, with what they may hold and the categories asked for."""
    for table, values, categories in (
        (TEXT, ["a", "b", "c", "é"], ["a", "é"]),
        (INTEGERS, [0, 1, 2, 2**53 + 1], [1, 2**53 + 1]),
        (REALS, [0.0, -0.0, 1.5, 2.0], [0, 2]),
        (BOOLEANS, [True, False], [True]),
    ):
        for make in table.values():
            yield make, values, categories


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_rows_that_meet_all_conditions_are_those_of_plain_python(data):
    cases = data.draw(st.lists(st.sampled_from(list(options())), min_size=1, max_size=3))
    size = data.draw(st.integers(0, 8))
    table = {"place": np.arange(size)}
    where, kept = {}, np.ones(size, dtype=bool)
    for number, (make, values, categories) in enumerate(cases):
        row = st.one_of(st.none(), st.sampled_from(values))
        rows = data.draw(st.lists(row, min_size=size, max_size=size))
        numeric = type(values[0]) in (int, float)
        ranged = numeric and data.draw(st.booleans())
        name = f"column{number}"
        table[name] = make(rows)
        where[name] = Between(0.5, 2) if ranged else categories
        meets = [r is not None and (0.5 <= r <= 2 if ranged else r in categories) for r in rows]
        kept &= np.array(meets, dtype=bool)
    private = Dataset(table, unit="row", neighbours="add-remove")
    (part,) = private.parts("place", where=where, bits=SeededBits(1))
    assert np.concatenate([*part.chunks(), []]).tolist() == np.flatnonzero(kept).tolist()
