"""What comes from outside: tampered records, strange types, and data frames, are read or refused in words."""

import decimal
import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.local.designs import CATEGORICAL, COLOURS, DESIGNS, RANGES

import sfumato as sf
from sfumato.laws import SeededBits
from sfumato.local import (
    DirectEncoding,
    LocalDP,
    Memory,
    OneBitMean,
    PermanentUnary,
    RangeEstimate,
    Ranges,
    Respondent,
    ShareEstimate,
    Tally,
    UnaryEncoding,
    Warner,
    design_from_dict,
    encoding,
    estimate,
    estimate_from_dict,
    respondents_needed,
    simulate,
    standard_error,
)

REFUSED = (sf.InvalidParameter, sf.NotSupported)
WARNER = Warner(keep=0.75)


def memory_of(design, answer, **change):
    entry = {"question": "?", "design": design.to_dict(), "answer": answer, **change}
    return json.dumps({"format": 1, "kept": [entry]})


def nested(depth):
    record = RANGES["dithered"].to_dict()
    outer = record
    for _ in range(depth):
        outer = {**record, "encoding": outer}
    return outer


@pytest.mark.parametrize(
    "text",
    [
        memory_of(DESIGNS["two samples"], True),
        memory_of(DESIGNS["trait"], True),
        memory_of(WARNER, [True]),
        memory_of(WARNER, None),
        memory_of(WARNER, True, question=3),
        json.dumps({"format": True, "kept": []}),
        json.dumps({"format": 1.0, "kept": []}),
        json.dumps({"format": 1, "kept": {"a": 1}}),
        json.dumps([1]),
        "[" * 100_000,
        "9" * 5000,
        b"\xff",
        None,
    ],
    ids=lambda text: str(text)[-60:],
)
def test_a_tampered_memory_is_refused(text):
    with pytest.raises(REFUSED):
        Memory.from_json(text)


@pytest.mark.parametrize("depth", [1, 2000])
def test_records_do_not_nest_without_end(depth):
    with pytest.raises(sf.InvalidParameter, match="direct or unary"):
        design_from_dict(nested(depth))


@pytest.mark.parametrize("number", [True, 1.0, "1", None, 2])
def test_only_the_number_of_the_format_is_a_format(number):
    record = estimate(WARNER, [True]).to_dict()
    with pytest.raises(sf.InvalidParameter, match="format of an estimate"):
        estimate_from_dict({**record, "format": number})


TINY = Warner(keep=Fraction(1, 2) + Fraction(1, 10**300))
LONG = (Fraction(2, 3) ** 900, Fraction(1, 3) ** 900)


@pytest.mark.parametrize(
    "call",
    [
        lambda: standard_error(DESIGNS["two samples"], share=0.5, respondents=10, rate=5),
        lambda: standard_error(DESIGNS["two samples"], share=0.5, respondents=10, rate=-1),
        lambda: standard_error(WARNER, share=0.5, respondents=10, rate=0.5),
        lambda: standard_error("x", share=0.5, respondents=10),
        lambda: respondents_needed(WARNER, share=0.5, error=Fraction(1, 10**320)),
        lambda: respondents_needed(WARNER, share=0.5, error=1e-200),
        lambda: simulate(WARNER, (True for _ in range(3)), bits=SeededBits(1)),
        lambda: simulate("x", [True], bits=SeededBits(1)),
        lambda: estimate(WARNER, [True]).interval(1 - Fraction(1, 10**20)),
        lambda: estimate(RANGES["dithered"], []).mean(1 - Fraction(1, 10**20)),
        lambda: estimate(TINY, [True]),
        lambda: standard_error(TINY, share=0.5, respondents=10),
        lambda: ShareEstimate("x", Tally(counts=[1], size=1)),
        lambda: RangeEstimate(WARNER, Tally(counts=[1], size=1)),
        lambda: PermanentUnary(categories=COLOURS, permanent=LONG, instant=LONG),
        lambda: Warner(keep=Fraction(1, 3**2000)),
        lambda: Tally(counts=5, size=5),
    ],
)
def test_what_can_not_be_is_refused_in_words(call):
    with pytest.raises(REFUSED):
        call()


def test_huge_epsilons_print():
    assert repr(LocalDP(10**400)).startswith("LocalDP(epsilon=~1e400")


class Money(float):
    def __str__(self):
        return f"${float(self):.2f}"

    __repr__ = __str__


class Loud(float):
    def __float__(self):
        raise RuntimeError(f"secret {float.__repr__(self)}")


class Cross(Fraction):
    @property
    def numerator(self):
        raise KeyError("secret 31.5")


@pytest.mark.parametrize("name", ["dithered", "binned", "unary ranges"])
def test_a_float_of_another_type_is_its_value(name):
    Respondent(RANGES[name], question="?", limit=9).answer(Money(0.1))


@pytest.mark.parametrize(
    "truth",
    [
        Loud(31.5),
        Cross(63, 2),
        decimal.Decimal("sNaN"),
        decimal.Decimal("31.5E-900"),
        Fraction(31337, 3**2000),
        np.array(31.5),
        True,
        np.True_,
    ],
    ids=lambda truth: type(truth).__name__,
)
@pytest.mark.parametrize(
    "design", [RANGES["dithered"], RANGES["binned"], OneBitMean.of_epsilon(bounds=(0, 9), epsilon=1)]
)
def test_no_error_of_a_strange_number_shows_it(design, truth):
    with pytest.raises(sf.InvalidParameter, match="at most 2048 bits") as caught:
        Respondent(design, question="?", limit=9).answer(truth)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "31" not in str(caught.value)


@pytest.mark.parametrize(
    "truth", [10**700, -(10**700), np.float32(math.inf), np.longdouble("3.3"), np.int64(3)]
)
def test_numbers_far_beyond_the_bounds_are_clamped(truth):
    design = Ranges.of_epsilon(bounds=(0, 100), epsilon=math.inf, steps=2)
    told = Respondent(design, question="?", limit=math.inf).answer(truth)
    if abs(truth) > 100:
        assert told == ("100" if truth > 0 else "0")


FRAMES = {
    "list": lambda values: values,
    "tuple": tuple,
    "array": np.array,
    "pandas": pd.Series,
    "polars": pl.Series,
}


@pytest.mark.parametrize("name", FRAMES)
def test_answers_come_as_lists_arrays_and_series(name):
    made = FRAMES[name]
    for yes_or_no in ([True, False, True], [1, 0, 1]):
        assert estimate(WARNER, made(yes_or_no)) == estimate(WARNER, Tally(counts=[2], size=3))
    direct = CATEGORICAL["direct"]
    assert estimate(direct, made(["red", "blue", "red"])).tally.counts == (2, 0, 1)
    assert simulate(WARNER, made([True] * 50), bits=SeededBits(1)) == simulate(
        WARNER, [True] * 50, bits=SeededBits(1)
    )


def test_rows_of_bits_may_hold_numpy_integers_and_booleans():
    design = CATEGORICAL["optimised"]
    expected = Tally(counts=[1, 0, 1], size=1)
    for row in (
        [1, 0, 1],
        [np.int64(1), np.int64(0), np.int64(1)],
        np.array([True, False, True]),
        pd.Series([1, 0, 1]),
    ):
        assert Tally.of(design, [row]) == expected


def test_series_with_missing_answers_are_refused():
    for answers in (pd.Series([True, None]), pl.Series([True, None]), pd.Series([1.0, math.nan])):
        with pytest.raises(sf.InvalidParameter, match="True or False"):
            estimate(WARNER, answers)


def test_numpy_numbers_make_the_same_designs():
    half = Fraction(np.int64(3), np.int64(4))
    assert Warner(keep=half) == Warner(keep=np.float64(0.75)) == WARNER
    assert type(Warner(keep=half).keep.numerator) is int
    made = Ranges.of_epsilon(bounds=(np.int64(0), np.int64(8)), epsilon=np.int64(1), steps=np.int64(4))
    assert made == Ranges.of_epsilon(bounds=(0, 8), epsilon=1, steps=4)
    assert json.dumps(made.to_dict())
    assert type(Tally(counts=np.array([3]), size=np.int64(5)).counts[0]) is int
    assert encoding(COLOURS, epsilon=Fraction(np.int64(1), np.int64(2))) == encoding(COLOURS, epsilon=0.5)
    assert LocalDP(Fraction(np.int64(1), np.int64(2))) == LocalDP(0.5)
    figure = estimate(WARNER, [True]).figures(np.float64(0.9))[0]
    assert type(figure.confidence) is float


def test_answers_that_do_not_fit_the_design_are_noted_and_printed_with_few_digits():
    found = estimate(Warner.of_epsilon(0.1), Tally(counts=[35], size=100))
    assert found.interval()[0] == found.interval()[1] == 0
    assert "do not fit the design" in found.notes[0]
    assert "[0.00, 0.00]" in str(found)
    fine = estimate(Warner.of_epsilon(0.1), Tally(counts=[50], size=100))
    assert not fine.notes
    scale = Ranges.of_epsilon(bounds=(0, 10), epsilon=0.1, steps=2, method="optimised")
    assert "do not fit the design" in estimate(scale, Tally(counts=[900, 0, 0], size=1000)).notes[0]


def test_permanent_bits_are_made_for_an_epsilon():
    design = PermanentUnary.of_epsilon(COLOURS, epsilon=2)
    assert design.epsilon == 2
    assert design.kept == UnaryEncoding.of_epsilon(COLOURS, epsilon=2, form="symmetric")
    assert design.report_epsilon < 2
    assert design_from_dict(design.to_dict()) == design
    assert DirectEncoding.of_epsilon(COLOURS, epsilon=2).cost == design.cost
