"""Hostile input to quantiles: one line that names the parameter, whatever the data are."""

import math
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from tests.hostile import CANARY_NUMBER, CANARY_TEXT, RELATIONS, assert_one_line, published
from tests.quantile_methods.cases import methods

import sfumato as sf
from sfumato.errors import MissingBounds, SchemaMismatch
from sfumato.laws import SeededBits
from sfumato.quantile_methods import METHODS, InverseSensitivity, Recursive, Single

F = Fraction
NAN, INF = float("nan"), float("inf")
DATA = np.linspace(0, 10, 60)
each_method = pytest.mark.parametrize("method", methods("any_grid"), ids=repr)


def asked(values=DATA, probs=(0.5,), **others):
    return sf.quantiles(values, probs, **{"bounds": (0, 10), "epsilon": 1, "method": "independent", **others})


def refused(call, *named, kind=sf.SfumatoError):
    """The one line of a refusal, which names the parameter."""
    with pytest.raises(kind) as caught:
        call()
    message = assert_one_line(caught.value)
    assert any(name in message for name in named), message
    return message


PROBS = {
    "NaN": [NAN],
    "one NaN of many": [0.1, NAN, 0.9],
    "infinity": [INF],
    "text": ["0.5"],
    "one text": "0.5",
    "None": None,
    "a None": [None],
    "empty list": [],
    "empty tuple": (),
    "empty array": np.array([]),
    "0": [0],
    "1": [1],
    "0.0": [0.0],
    "1.0": [1.0],
    "above 1": [1.01],
    "percent": [50],
    "negative": [-0.1],
    "two dimensions": np.array([[0.5, 0.6]]),
    "nested": [[0.5]],
    "too many": [0.5] * 10_001,
    "bool": [True],
    "numpy bool": np.array([True]),
    "complex": [0.5 + 0j],
    "complex array": np.array([0.5 + 0j]),
    "a number": 0.5,
    "a number as array": np.array(0.5),
    "set": {0.5},
    "dict": {0.5: 1},
    "iterator": iter([0.5]),
    "object": object(),
    "bytes": b"0.5",
    "texts as array": np.array(["0.5"]),
    "objects as array": np.array([None, 0.5], dtype=object),
    "too near to 0": [1e-6],
    "too near to 1": [1 - 1e-9],
    "subnormal": [5e-324],
    "long decimal": [Decimal("1e-99999")],
    "long fraction": [F(1, 10**1000)],
}


@pytest.mark.parametrize("probs", PROBS.values(), ids=PROBS)
def test_wrong_orders_are_refused(probs):
    refused(lambda: asked(probs=probs), "probs")


@pytest.mark.parametrize("prob", [NAN, 0, 1, -1, "0.5", None, [0.5], True, np.array([0.5])], ids=repr)
def test_a_wrong_single_order_is_refused(prob):
    refused(lambda: sf.quantile(DATA, prob, bounds=(0, 10), epsilon=1), "prob")


METHOD = {
    "unknown": "quicksort",
    "wrong case": "Recursive",
    "empty": "",
    "None": None,
    "number": 3,
    "class": Single,
    "list": ["recursive"],
    "bytes": b"single",
    "object": object(),
    "function": print,
    "unknown option": ("recursive", ("depth", 3)),
    "option without a value": ("recursive", ("subcells",)),
    "option with two values": ("recursive", ("subcells", 2, 4)),
    "option that is a number": ("recursive", 5),
    "option that is text": ("recursive", "subcells"),
    "unhashable option": ("recursive", ([], 3)),
    "nested name": (("recursive",),),
}


@pytest.mark.parametrize("method", METHOD.values(), ids=METHOD)
def test_wrong_methods_are_refused(method):
    refused(lambda: asked(method=method), "method")


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Single(flip="yes"), "flip"),
        (lambda: Single(flip=None), "flip"),
        (lambda: Recursive(subcells=3), "subcells"),
        (lambda: Recursive(subcells=0), "subcells"),
        (lambda: Recursive(subcells=2.0), "subcells"),
        (lambda: Recursive(subcells=2**31), "subcells"),
        (lambda: Recursive(subcells=None), "subcells"),
        (lambda: InverseSensitivity(radius=-1), "radius"),
        (lambda: InverseSensitivity(radius=NAN), "radius"),
        (lambda: InverseSensitivity(radius="1"), "radius"),
        (lambda: InverseSensitivity(radius=True), "radius"),
    ],
)
def test_wrong_options_are_refused(make, name):
    refused(make, name)


@pytest.mark.parametrize(
    "step", [0, -1, NAN, INF, "1", True, 3, 0.3, 1000, 1e-9, 1e-300, [1], F(1, 10**900)], ids=repr
)
def test_wrong_steps_are_refused(step):
    refused(lambda: asked(step=step), "step")


@pytest.mark.parametrize("hint", [0, -1, 1.0, 0.5, NAN, "9", True, 2**63, [3], F(3)], ids=repr)
@pytest.mark.parametrize("relation", RELATIONS)
def test_wrong_hints_are_refused(hint, relation):
    refused(lambda: asked(n_hint=hint, neighbours=relation), "n_hint")


@each_method
@pytest.mark.parametrize("hint", [1, 10**6, 2**62])
def test_hints_that_are_far_off_still_give_an_answer(method, hint):
    release = asked(method=method, n_hint=hint, neighbours="add-remove")
    assert np.isfinite(release.value).all()


BOUNDS = [
    (10, 0),
    (1, 1),
    (NAN, 1),
    (0, INF),
    (0,),
    (0, 1, 2),
    "01",
    5,
    ("a", "b"),
    (None, 1),
    (True, 5),
    (0, 1e-200),
]


@pytest.mark.parametrize("bounds", BOUNDS, ids=repr)
def test_wrong_bounds_are_refused(bounds):
    refused(lambda: asked(bounds=bounds), "bounds", "lower", "upper")


@each_method
def test_missing_bounds_are_named_unless_the_method_needs_none(method):
    if method.needs_bounds:
        refused(lambda: asked(bounds=None, method=method), "bounds", kind=MissingBounds)
        refused(lambda: asked(bounds=None, method="auto"), "bounds", kind=MissingBounds)
    else:
        assert np.isfinite(asked(bounds=None, method=method).value).all()


@each_method
@pytest.mark.parametrize(
    "column",
    [["a", "b"], [True, False], np.array(["x"]), pd.Series(["a"], dtype="category")],
    ids=["text", "boolean", "array of text", "categories"],
)
def test_columns_that_are_no_numbers_are_refused(method, column):
    refused(lambda: asked(column, method=method), "column", kind=SchemaMismatch)


def test_one_order_only_and_few_points_only():
    refused(lambda: asked(probs=[0.2, 0.5], method="single"), "single")
    refused(lambda: asked(method=Single(flip=True), step=F(1, 2**20)), "flip")


@pytest.mark.parametrize("extra", [{"weights": [1] * 60}, {"interpolation": "linear"}, {"axis": 0}], ids=str)
@pytest.mark.parametrize("function", [sf.quantiles, sf.quantile], ids=lambda function: function.__name__)
def test_arguments_of_other_libraries_are_not_taken_silently(function, extra):
    prob = 0.5 if function is sf.quantile else [0.5]
    with pytest.raises((sf.SfumatoError, TypeError), match=next(iter(extra))):
        function(DATA, prob, bounds=(0, 10), epsilon=1, **extra)


@pytest.mark.parametrize(
    "extra",
    [{"rows": 7}, {"column": "x"}, {"noise": "laplace"}, {"scalar": False}, {"probs": (0.5,)}],
    ids=str,
)
def test_private_parameters_of_the_query_are_not_arguments_of_the_front_door(extra):
    for call in (
        lambda: sf.median(DATA, bounds=(0, 10), epsilon=1, **extra),
        lambda: sf.quantile(DATA, 0.5, bounds=(0, 10), epsilon=1, **extra),
    ):
        with pytest.raises((sf.SfumatoError, TypeError)):
            call()


@each_method
@pytest.mark.parametrize("relation", RELATIONS)
def test_whatever_the_data_are_the_answer_is_there_and_shows_no_value(method, relation):
    columns = [
        np.empty(0),
        np.full(5, NAN),
        np.array([INF, -INF, NAN, 1e308, -1e308]),
        np.full(3, CANARY_NUMBER),
        np.array([5e-324, -0.0, 0.0]),
        np.array([2**63 - 1, -(2**63), 0]),
        [None, 3, CANARY_NUMBER],
    ]
    for values in columns:
        release = asked(values, method=method, neighbours=relation, n_hint=5, nulls="drop")
        assert np.isfinite(release.value).all()
        assert str(CANARY_NUMBER) not in published(release)


@each_method
def test_an_empty_column_with_a_public_number_of_rows_is_answered_or_refused_by_its_rule(method):
    for probs in ([0.5], [0.5, 0.5]):
        release = asked(np.empty(0), probs, method=method, nulls="lower", n_hint=5)
        assert np.isfinite(release.value).all()


@pytest.mark.parametrize("budget", [1, 0, -1, NAN, "1", None, sf.PureDP])
def test_wrong_budgets_are_refused(budget):
    refused(lambda: sf.quantiles(DATA, [0.5], bounds=(0, 10), budget=budget), "budget", "epsilon")


def test_wrong_names_are_refused():
    refused(lambda: asked(neighbours="swap"), "neighbours")
    refused(lambda: asked(nulls="keep"), "nulls")
    refused(lambda: asked(bits=3), "bits")
    refused(lambda: sf.Quantiles(probs=[0.5], budget=sf.PureDP(1), noise="laplace"), "noise")
    refused(lambda: sf.Quantiles(probs=[0.5, 0.6], budget=sf.PureDP(1), scalar=True), "scalar")
    refused(lambda: sf.Quantiles(probs=[0.5], budget=sf.PureDP(1), scalar="yes"), "scalar")
    refused(lambda: sf.Quantiles(budget=sf.PureDP(1)), "probs")


@pytest.mark.parametrize("confidence", [0, 1, -1, NAN, "0.9", None, 1 - 1e-12])
def test_wrong_confidences_are_refused(confidence):
    release = asked()
    refused(lambda: release.interval(confidence), "confidence")
    refused(lambda: release.population_interval(confidence), "confidence")


def test_stored_releases_with_other_content_are_refused():
    release = asked(probs=[0.2, 0.8], method=Recursive(subcells=4), bits=SeededBits(1))
    record = release.to_dict()
    changes = {
        "outcome": [["5"], [], ["-1", "3"], ["1", "2", "3"], [str(2**70)] * 2, ["9", "3"], [CANARY_TEXT] * 2],
        "parameters": [
            {**record["parameters"], "method": method}
            for method in (
                ["recursive", 5],
                ["recursive", ["subcells", 3]],
                ["recursive", ["a", 1, 2]],
                [],
                {},
                "x",
                None,
            )
        ],
    }
    for key, values in changes.items():
        for value in values:
            with pytest.raises(sf.SfumatoError) as caught:
                sf.read_release({**record, key: value})
            assert_one_line(caught.value)


@each_method
def test_previews_need_no_data_and_charge_nothing(method):
    data = sf.Dataset({"x": DATA}, unit="row", neighbours="substitution")
    session = sf.Session(data, budget=sf.PureDP(1))
    preview = session.preview(
        sf.Quantiles(column="x", probs=[0.5], bounds=(0, 10), method=method, budget=sf.PureDP(1))
    )
    assert preview.cost == sf.PureDP(1)
    assert not math.isnan(preview.error)
    assert "quantiles" in str(preview)
    assert session.remaining.epsilon == 1


SMALL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 * 2**30, 2 * 2**30))
import numpy as np
import sfumato as sf
sf.median(np.arange(100.0), bounds=(0, 100), epsilon=float(sys.argv[1]), method=sys.argv[2])
"""


@pytest.mark.parametrize(("method", "epsilon"), [("single", "1e-6"), ("recursive", "1e-12")])
def test_a_tiny_budget_takes_neither_long_nor_much_memory(method, epsilon):
    # Budgets down to 1e-12 are allowed for every statistic.
    found = subprocess.run(
        [sys.executable, "-c", SMALL, epsilon, method], timeout=8, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr[-300:]


@pytest.mark.parametrize("name", METHODS)
def test_a_huge_budget_is_answered(name):
    release = asked(np.arange(11), method=name, epsilon=10**6, n_hint=11)
    assert np.isfinite(release.value).all()
