"""Every statistic with its exact counterpart in NumPy, and the public choices that it is tested under."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.data.admission import admit
from sfumato.data.column import Column
from sfumato.laws import Clamped, Joint, Point, Shifted
from sfumato.mechanisms.additive import Noise
from sfumato.privacy import ZCDP, ApproxDP, Budget, PureDP
from sfumato.statistics import (
    Count,
    ExponentialMean,
    FirstPassing,
    Histogram,
    InverseMean,
    InverseProportion,
    Mean,
    MostCommon,
    Proportion,
    Sum,
    Variance,
)

RELATIONS = ("substitution", "add-remove")
NULLS = ("drop", "lower", "upper")
EPSILONS = (0.01, 1, 50)
BUDGETS: tuple[Budget, ...] = (
    *(PureDP(epsilon) for epsilon in EPSILONS),
    *(ApproxDP(epsilon, 1e-6) for epsilon in EPSILONS),
    *(ZCDP(epsilon**2 / 2) for epsilon in EPSILONS),
)
BOUNDS = (-2.5, 10.1)
LOW, HIGH = BOUNDS


def noises(budget: Budget) -> tuple[Noise, ...]:
    if isinstance(budget, PureDP):
        return ("auto", "laplace")
    return ("auto", "gaussian") if isinstance(budget, ZCDP) else ("auto", "laplace", "gaussian")


def clamped(values: Any, nulls: str) -> np.ndarray:
    """What the documentation says becomes of the values: nulls follow the rule, the rest is clamped."""
    array = np.asarray(values, dtype=np.float64)
    missing = np.isnan(array)
    if nulls == "drop":
        return np.clip(array[~missing], LOW, HIGH)
    return np.clip(np.where(missing, LOW if nulls == "lower" else HIGH, array), LOW, HIGH)


def matching(values: Any, nulls: str) -> np.ndarray:
    """Whether each value that counts is in [0, 5]; a null matches under "upper" only."""
    array = np.asarray(values, dtype=np.float64)
    missing = np.isnan(array)
    inside = (array >= 0) & (array <= 5)
    return inside[~missing] if nulls == "drop" else np.where(missing, nulls == "upper", inside)


def binned(values: Any, nulls: str, edges: Any) -> np.ndarray:
    kept = clamped(values, nulls)
    return np.histogram(np.clip(kept, edges[0], edges[-1]), edges)[0]


def categorised(values: Any, nulls: str) -> np.ndarray:
    """Counts of 0, of 5 and of all others; nulls that are kept are others."""
    array = np.asarray(values, dtype=np.float64)
    listed = [int((array == 0).sum()), int((array == 5).sum())]
    rows = len(array) - (int(np.isnan(array).sum()) if nulls == "drop" else 0)
    return np.array([*listed, rows - sum(listed)])


@dataclass(frozen=True)
class Kind:
    """A statistic, its own parameters, what it must equal without noise, and how near."""

    id: str
    make: Any
    own: dict[str, Any]
    exact: Callable[[Any, str], Any]
    tolerance: Callable[[Any, int], float] = lambda query, rows: 0.0

    def query(self, budget: Budget, neighbours: str, nulls: str, noise: str, rows: int) -> Any:
        public = rows if neighbours == "substitution" else None
        chosen = {"neighbours": neighbours, "nulls": nulls, "noise": noise, "rows": public}
        return self.make(budget=budget, **chosen, **self.own)

    @property
    def is_vector(self) -> bool:
        return self.make is Histogram


FIVE_EDGES = (LOW, 0.0, 1.0, 2.0, 7.0, HIGH)
KINDS = (
    Kind("count of all", Count, {}, lambda v, nulls: len(clamped(v, nulls))),
    Kind("count", Count, {"between": (0, 5)}, lambda v, nulls: int(matching(v, nulls).sum())),
    Kind(
        "sum",
        Sum,
        {"bounds": BOUNDS},
        lambda v, nulls: clamped(v, nulls).sum(),
        lambda query, rows: float(query.lattice.step) * rows / 2 + 1e-9,
    ),
    Kind(
        "mean",
        Mean,
        {"bounds": BOUNDS},
        lambda v, nulls: clamped(v, nulls).mean(),
        lambda query, rows: float(query.lattice.step) / 2 + 1e-12,
    ),
    Kind(
        "mean with its spread",
        Mean,
        {"bounds": BOUNDS, "interval_share": Fraction(1, 10)},
        lambda v, nulls: clamped(v, nulls).mean(),
        lambda query, rows: float(query.lattice.step) / 2 + 1e-12,
    ),
    Kind(
        "variance",
        Variance,
        {"bounds": BOUNDS},
        lambda v, nulls: clamped(v, nulls).var(),
        # Each value moves by half a step at most, in a range of this half-width.
        lambda query, rows: float(query.lattice.step) * (HIGH - LOW) / 2 * 1.1,
    ),
    Kind("proportion", Proportion, {"between": (0, 5)}, lambda v, nulls: matching(v, nulls).mean()),
    Kind(
        "histogram of bins", Histogram, {"edges": FIVE_EDGES}, lambda v, nulls: binned(v, nulls, FIVE_EDGES)
    ),
    Kind(
        "histogram of two bins",
        Histogram,
        {"edges": (LOW, 3, HIGH)},
        lambda v, nulls: binned(v, nulls, (LOW, 3, HIGH)),
    ),
)
CATEGORIES = Kind("histogram of categories", Histogram, {"categories": (0, 5), "other": True}, categorised)
ALL_KINDS = (*KINDS, CATEGORIES)
# Statistics whose answer is no number: each has a contract of its own, in the file of this folder named here.
ELSEWHERE = {MostCommon: "test_most_common.py"}
ELSEWHERE |= {FirstPassing: "test_first_passing.py"}
# Statistics that need a public number of rows, and refuse all other facts.
ELSEWHERE |= dict.fromkeys((InverseMean, InverseProportion, ExponentialMean), "test_inverse_sensitivity.py")


def values_for(kind: Kind) -> tuple[Any, Column]:
    """Data with values outside the bounds and with nulls, as floats and as the column that holds them."""
    if kind is CATEGORIES:
        numbers = np.array([0, 5, 5, 3, 0, 0, 9, 2, 0, 5] * 20)
        masked = np.ma.masked_array(numbers, mask=np.arange(len(numbers)) % 9 == 0)
        return masked.astype(np.float64).filled(np.nan), admit(masked)
    values = np.linspace(-7, 17, 200) ** 3 / 300
    values[::9] = np.nan
    return values, admit(values)


def queries(kind: Kind, neighbours: str, nulls: str, rows: int) -> Iterator[Any]:
    for budget in BUDGETS:
        for noise in noises(budget):
            yield kind.query(budget, neighbours, nulls, noise, rows)


def centre(law: Any) -> tuple[int, ...]:
    """The outcome without noise, before any clamp."""
    if isinstance(law, Clamped):
        return centre(law.law)
    if isinstance(law, Joint):
        return tuple(value for part in law.parts for value in centre(part))
    if isinstance(law, Shifted):
        return tuple(int(value) for value in np.atleast_1d(law.center))
    assert isinstance(law, Point)
    return (int(law.value),)


def noise_parts(law: Any) -> tuple[Any, ...]:
    """The noise law of each number in `centre(law)`."""
    if isinstance(law, Clamped):
        return noise_parts(law.law)
    if isinstance(law, Joint):
        return tuple(noise for part in law.parts for noise in noise_parts(part))
    if isinstance(law, Shifted):
        return (law.noise,) * len(np.atleast_1d(law.center))
    return ()


def outcomes(law: Any, bits: Any, size: int) -> list[tuple[int, ...]]:
    """`size` independent outcomes as a release would store them."""
    drawn = law.sample(bits, size)
    if isinstance(drawn, tuple):
        return list(zip(*(part.tolist() for part in drawn), strict=True))
    listed = drawn.tolist()
    return [tuple(item) if isinstance(item, list) else (item,) for item in listed]
