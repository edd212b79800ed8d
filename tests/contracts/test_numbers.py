"""Numbers of NumPy as parameters: every public value keeps plain numbers, which do not wrap.

A class with a number among its fields must be in `GIVEN`; one that is missing, or that keeps what it was
given in place of what was checked, fails.
"""

import ast
import inspect
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato
from sfumato import laws, mechanisms, quantile_methods, statistics
from sfumato.errors import SfumatoError
from sfumato.laws import DiscreteLaplace, Geometric, Selection
from sfumato.mechanisms import moves
from sfumato.mechanisms.moves import AnyQueries, CountsAtOrder, SameDirection
from sfumato.mechanisms.sparse import SparseMechanism
from sfumato.privacy import ApproxDP, PureDP
from sfumato.query import encode, parameters

HALF = Fraction(1, 2)
QUERY = {"budget": PureDP(1), "neighbours": "substitution", "nulls": "lower", "rows": 100}
BOUNDED = {**QUERY, "bounds": (0, 100)}
STREAM = SparseMechanism.calibrated(1, sensitivity=1, crossings=2)

# Large numbers that fit one byte, so that sums and products of them wrap in it.
GIVEN: dict[Any, dict[str, Any]] = {
    AnyQueries: {"sensitivity": 100},
    SameDirection: {"sensitivity": 100},
    CountsAtOrder: {"order": HALF},
    mechanisms.AboveThreshold: {"moves": AnyQueries(1), "threshold_scale": 100, "query_scale": HALF},
    mechanisms.SparseMechanism: {
        "moves": AnyQueries(100),
        "crossings": 100,
        "threshold_scale": 100,
        "query_scale": 100,
        "answer_scale": 9,
    },
    mechanisms.Transcripts: {"mechanism": STREAM, "values": (100, -100), "threshold": 100},
    mechanisms.Sensitivity: {"l1": 100, "l2_squared": 100, "coordinates": 100},
    mechanisms.LaplaceMechanism: {"sensitivity": 100, "scale": 100},
    mechanisms.GaussianMechanism: {"sensitivity_squared": 100, "sigma_squared": 100, "coordinates": 100},
    mechanisms.ZeroSumMechanism: {"scale": 100},
    laws.ZeroSumLaplace: {"scale": 100, "center": (100, 100, -100)},
    mechanisms.ClampedGeometric: {"scale": 100, "lower": -100, "upper": 100},
    mechanisms.ExponentialMechanism: {"sensitivity": 100, "epsilon": HALF},
    mechanisms.TopMechanism: {"picks": 100, "sensitivity": 100, "epsilon": HALF},
    mechanisms.BoundedNoiseMechanism: {
        "sensitivity": 1,
        "bound": 120,
        "power": 1,
        "queries": 2,
        "budget": ApproxDP(1, Fraction(1, 100)),
    },
    mechanisms.PartitionSelection: {
        "epsilon": 2,
        "delta": Fraction(1, 100),
        "groups": 100,
        "least": 100,
    },
    laws.BoundedNoise: {"bound": 100, "power": 2},
    laws.Clamped: {"law": DiscreteLaplace(Fraction(1)), "lower": -100, "upper": 100},
    laws.DiscreteGaussian: {"sigma_squared": 100},
    laws.DiscreteLaplace: {"scale": 100},
    laws.Geometric: {"scale": 100},
    laws.FirstCrossing: {
        "values": (100, -100),
        "threshold": 100,
        "threshold_noise": Geometric(HALF),
        "query_noise": Geometric(HALF),
    },
    laws.Shifted: {"noise": DiscreteLaplace(Fraction(1)), "center": 100},
    laws.Selection: {"scores": (100, -100, HALF), "rate": 100, "variant": "flip"},
    laws.Peeled: {"first": Selection((1, 2), HALF, "flip"), "picks": 2},
    laws.TruncatedLaplace: {"center": 100, "scale": 100, "low": -100, "high": 120, "flat": 100},
    statistics.Count: {**QUERY, "between": (3, 100)},
    statistics.Sum: BOUNDED,
    statistics.Mean: {**BOUNDED, "interval_share": HALF},
    statistics.Variance: BOUNDED,
    statistics.Proportion: {**QUERY, "between": (3, 100)},
    statistics.Histogram: {**BOUNDED, "bins": 100},
    statistics.FirstPassing: {**QUERY, "at": (1, 100), "count": 100},
    statistics.InverseMean: {**BOUNDED, "points": 100, "radius": HALF},
    statistics.InverseProportion: {**QUERY, "between": (3, 100), "radius": 100},
    statistics.ExponentialMean: {**BOUNDED, "points": 100},
    statistics.MostCommon: {**QUERY, "categories": ("a", "b"), "picks": 2},
    statistics.Choose: {"candidates": ("a", "b"), "sensitivity": 100, "budget": PureDP(1), "picks": 2},
    quantile_methods.Quantiles: {
        **BOUNDED,
        "probs": (HALF,),
        "step": 1,
        "n_hint": 100,
        "interval_share": HALF,
        "verify": 0,
    },
    quantile_methods.FromHistogram: {"steps": 100},
    quantile_methods.Interpolated: {"drawn": 100, "subcells": 64, "emphasis": 1},
    quantile_methods.Joint: {"subcells": 64, "emphasis": 1},
    quantile_methods.Recursive: {"subcells": 64, "emphasis": 1},
    quantile_methods.Single: {"emphasis": 1},
    quantile_methods.InverseSensitivity: {"radius": 100},
    quantile_methods.Tree: {"branching": 100, "leaves": 100},
    quantile_methods.EquiDepth: {
        "leaves": 64,
        "parts": 4,
        "share": HALF,
        "branching": 100,
        "subcells": 64,
    },
    quantile_methods.Unbounded: {"ratio": 100, "unit": 1, "largest": 100, "lower": -100},
}
# What a computation returns, and the common part of all statistics, which cannot be made.
NOT_GIVEN = {mechanisms.BoundedComparison, mechanisms.OneShotRelease, statistics.Statistic}
NUMBERS = ("int", "Fraction", "Number", "float")
# Its numbers are read by its event, which is what is charged.
BY_EVENT = {mechanisms.BoundedNoiseMechanism}
# One of a few plain numbers, and refused otherwise.
CHOSEN = {"power"}
KINDS = (np.int8, np.int64, np.float64, np.float32)


def public() -> list[Any]:
    """Every public value with a number among its fields."""
    folders = (laws, mechanisms, statistics, quantile_methods)
    found = [getattr(folder, name) for folder in folders for name in folder.__all__]
    found += [
        kind for kind in vars(moves).values() if inspect.isclass(kind) and kind.__module__ == moves.__name__
    ]
    kinds = {kind for kind in found if inspect.isclass(kind) and is_dataclass(kind)}
    return sorted(kinds, key=lambda kind: kind.__qualname__)


def has_numbers(kind: Any) -> bool:
    words = " ".join(str(field.type) for field in fields(kind))
    return any(word in words for word in NUMBERS)


def converted(value: Any, kind: type) -> Any:
    """A number, or each of several, as a number of NumPy, where that has room for it."""
    if isinstance(value, tuple):
        return tuple(converted(item, kind) for item in value)
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        return value
    if issubclass(kind, np.integer):
        if value.denominator == 1:
            return kind(int(value))
        return Fraction(kind(value.numerator), kind(value.denominator))
    return kind(float(value))


def is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(is_plain, value))
    if isinstance(value, Fraction):
        return type(value.numerator) is type(value.denominator) is int
    return not isinstance(value, np.generic)


def made(kind: Any, given: dict[str, Any]) -> Any:
    """The value, or the kind of error that refuses its parameters."""
    try:
        return kind(**given)
    except SfumatoError as error:
        return type(error)


def described(value: Any) -> Any:
    """All that follows from a value and can be compared: fields, cost and what is stored."""
    if isinstance(value, type):
        return value
    told: list[Any] = []
    for field in fields(value):
        item = getattr(value, field.name)
        told.append(item.tolist() if isinstance(item, np.ndarray) else item)
    for name in ("cost", "event", "l1"):
        try:
            told.append(getattr(value, name, None))
        except SfumatoError as error:
            told.append(str(error))
    if hasattr(value, "neighbours"):
        told.append(str(parameters(value)))
    elif hasattr(value, "name"):
        told.append(str(encode(value)))
    if callable(getattr(value, "logpmf", None)) and not hasattr(value, "values"):
        told.append(
            value.logpmf((0, 1))
            if isinstance(value, laws.Peeled)
            else np.asarray(value.logpmf(np.arange(3))).tolist()
        )
    return told


def keeps_plain_numbers(kind: Any, given: dict[str, Any], number: type) -> bool:
    """Whether a value of NumPy's numbers is the value of plain ones, in every part."""
    free = {name: value for name, value in given.items() if name not in CHOSEN}
    floats = {name: converted(value, float) for name, value in free.items()}
    expected = made(kind, given | (floats if issubclass(number, np.floating) else {}))
    found = made(kind, given | {name: converted(value, number) for name, value in free.items()})
    if isinstance(found, type) or isinstance(expected, type):
        return found is expected
    keeper = found.event if kind in BY_EVENT else found
    kept = all(is_plain(getattr(keeper, field.name)) for field in fields(keeper))
    return kept and described(found) == described(expected)


@pytest.mark.parametrize("kind", public(), ids=lambda kind: kind.__name__)
def test_every_public_value_keeps_plain_numbers_and_costs_the_same(kind):
    if kind in NOT_GIVEN or (kind not in GIVEN and not has_numbers(kind)):
        pytest.skip("has no numbers that a caller gives")
    assert not isinstance(made(kind, GIVEN[kind]), type)
    for number in KINDS:
        assert keeps_plain_numbers(kind, GIVEN[kind], number), number


@pytest.mark.parametrize("kind", list(GIVEN), ids=lambda kind: kind.__name__)
def test_all_numbers_of_a_class_are_in_the_table(kind):
    # Some exclude others; those that are no numbers of their own are refused or read elsewhere.
    optional = {"count", "step", "bounds", "at", "edges", "rows", "changes", "equals", "categories"}
    wanted = {field.name for field in fields(kind) if any(word in str(field.type) for word in NUMBERS)}
    assert wanted - optional <= set(GIVEN[kind])


@pytest.mark.parametrize(
    "kind",
    [kind for kind in GIVEN if "changes" in {field.name for field in fields(kind)}],
    ids=lambda k: k.__name__,
)
def test_changes_of_several_rows_are_plain_numbers(kind):
    given = {name: value for name, value in GIVEN[kind].items() if name != "rows"} | {"changes": 100}
    for number in KINDS:
        assert keeps_plain_numbers(kind, given, number), number


@dataclass(frozen=True)
class Forgetful:
    """A value that checks its number and keeps what it was given."""

    sensitivity: int


@dataclass(frozen=True)
class HalfExact:
    """A value that keeps a fraction of NumPy's integers."""

    order: Fraction


@pytest.mark.parametrize(
    ("mutant", "given"), [(Forgetful, {"sensitivity": 100}), (HalfExact, {"order": HALF})]
)
def test_a_class_that_keeps_what_it_was_given_is_noticed(mutant, given):
    assert not keeps_plain_numbers(mutant, given, np.int8)


CHECKS = {"whole", "positive", "exact", "between", "inside", "normal", "checked_scale"}


def discarded(source: str) -> list[str]:
    """Checks of numbers in the making of a value whose result nothing keeps."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name in ("__post_init__", "__init__"):
            calls = [part.value for part in ast.walk(node) if isinstance(part, ast.Expr)]
            found += [
                ast.unparse(call)
                for call in calls
                if isinstance(call, ast.Call) and ast.unparse(call.func) in CHECKS
            ]
    return found


def test_no_value_throws_away_the_number_that_it_checked():
    sources = Path(sfumato.__file__).parent.rglob("*.py")
    assert not {path.name: found for path in sources if (found := discarded(path.read_text("utf-8")))}
    assert discarded('class A:\n    def __post_init__(self):\n        whole("a", self.a, least=1, most=2)')
