"""Populations to draw data from: each samples itself and knows its mean, variance and quantiles."""

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, int]


class Population(Protocol):
    """A law of single values. Samples are filled row after row, so that more rows continue the same ones."""

    def sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        """Independent values, one a record."""
        ...

    @property
    def mean(self) -> float:
        """The expected value."""
        ...

    @property
    def variance(self) -> float:
        """The expected squared distance from the mean."""
        ...

    def quantile(self, order: float) -> float:
        """The smallest value that at least the share `order` of the population does not exceed."""
        ...


@dataclass(frozen=True)
class Uniform:
    """Equally likely everywhere from low to high."""

    low: float
    high: float

    def sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return self.low + (self.high - self.low) * rng.random(shape)

    @property
    def mean(self) -> float:
        return (self.low + self.high) / 2

    @property
    def variance(self) -> float:
        return (self.high - self.low) ** 2 / 12

    def quantile(self, order: float) -> float:
        return self.low + (self.high - self.low) * order


@dataclass(frozen=True)
class Normal:
    """The bell curve."""

    mean: float
    sd: float

    def sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return self.mean + self.sd * rng.standard_normal(shape)

    @property
    def variance(self) -> float:
        return self.sd**2

    def quantile(self, order: float) -> float:
        return NormalDist(self.mean, self.sd).inv_cdf(order)


@dataclass(frozen=True)
class Lognormal:
    """The exponential of a normal value."""

    mu: float
    sigma: float

    def sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return np.asarray(np.exp(self.mu + self.sigma * rng.standard_normal(shape)))

    @property
    def mean(self) -> float:
        return math.exp(self.mu + self.sigma**2 / 2)

    @property
    def variance(self) -> float:
        return math.expm1(self.sigma**2) * self.mean**2

    def quantile(self, order: float) -> float:
        return math.exp(NormalDist(self.mu, self.sigma).inv_cdf(order))


@dataclass(frozen=True)
class Beta:
    """Beta(a, b), stretched from [0, 1] to [low, high]."""

    a: float
    b: float
    low: float
    high: float

    def sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return self.low + (self.high - self.low) * rng.beta(self.a, self.b, shape)

    @property
    def mean(self) -> float:
        return self.low + (self.high - self.low) * self.a / (self.a + self.b)

    @property
    def variance(self) -> float:
        total = self.a + self.b
        return (self.high - self.low) ** 2 * self.a * self.b / (total**2 * (total + 1))

    def quantile(self, order: float) -> float:
        from scipy.special import betaincinv

        return self.low + (self.high - self.low) * float(betaincinv(self.a, self.b, order))


@dataclass(frozen=True)
class Poisson:
    """The number of events where so many are expected."""

    mean: float

    def sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return rng.poisson(self.mean, shape).astype(np.float64)

    @property
    def variance(self) -> float:
        return self.mean

    def quantile(self, order: float) -> float:
        from scipy.stats import poisson

        return float(poisson.ppf(order, self.mean))


@dataclass(frozen=True)
class Integers:
    """Equally likely whole numbers from low to high, both of them included."""

    low: int
    high: int

    def sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return rng.integers(self.low, self.high, shape, endpoint=True).astype(np.float64)

    @property
    def mean(self) -> float:
        return (self.low + self.high) / 2

    @property
    def variance(self) -> float:
        return ((self.high - self.low + 1) ** 2 - 1) / 12

    def quantile(self, order: float) -> float:
        return float(self.low + _rank(order, self.high - self.low + 1) - 1)


@dataclass(frozen=True)
class Atoms:
    """A few values, in increasing order, each with its probability; all are positive and sum to 1."""

    values: tuple[float, ...]
    probabilities: tuple[float, ...]

    @cached_property
    def _cumulative(self) -> Array:
        return np.cumsum(self.probabilities)

    def sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        # The last sum may fall short of 1 by a rounding error.
        index = np.searchsorted(self._cumulative[:-1], rng.random(shape), side="right")
        return np.asarray(self.values)[index]

    @property
    def mean(self) -> float:
        return float(np.dot(self.values, self.probabilities))

    @property
    def variance(self) -> float:
        return float(np.dot((np.asarray(self.values) - self.mean) ** 2, self.probabilities))

    def quantile(self, order: float) -> float:
        # Sums such as 0.1 + 0.2 miss the order that they stand for by a few units of the last digit.
        return self.values[int(np.searchsorted(self._cumulative[:-1], order - 1e-12, side="left"))]


@dataclass(frozen=True)
class Clusters:
    """Normal heaps around centers, each with its width and its share of the records."""

    centers: tuple[float, ...]
    sds: tuple[float, ...]
    shares: tuple[float, ...]

    def sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        # Two streams: with one, the heaps of a second set would depend on how many sets are drawn.
        return self.sample_from(tuple(rng.spawn(2)), shape)

    def sample_from(self, streams: tuple[np.random.Generator, ...], shape: Shape) -> Array:
        """The same from two streams, which go on where they are."""
        of_heap, of_place = streams
        heap = np.searchsorted(np.cumsum(self.shares)[:-1], of_heap.random(shape), side="right")
        place = of_place.standard_normal(shape)
        return np.asarray(np.asarray(self.centers)[heap] + np.asarray(self.sds)[heap] * place)

    @property
    def mean(self) -> float:
        return float(np.dot(self.centers, self.shares))

    @property
    def variance(self) -> float:
        within = np.asarray(self.sds) ** 2
        between = (np.asarray(self.centers) - self.mean) ** 2
        return float(np.dot(within + between, self.shares))

    def quantile(self, order: float) -> float:
        from scipy.optimize import brentq
        from scipy.special import ndtr

        def excess(place: float) -> float:
            heights = ndtr((place - np.asarray(self.centers)) / np.asarray(self.sds))
            return float(np.dot(heights, self.shares)) - order

        # Between the smallest and the largest quantile of the heaps the share passes the order.
        ends = [NormalDist(*heap).inv_cdf(order) for heap in zip(self.centers, self.sds, strict=True)]
        low, high = min(ends), max(ends)
        return low if low == high else float(brentq(excess, low - 1e-9 * abs(low), high + 1e-9 * abs(high)))


@dataclass(frozen=True)
class Rows:
    """Data that are there already, as packed float64; a sample takes rows of them with replacement."""

    packed: bytes

    @property
    def array(self) -> Array:
        """The values in the order of their source, read-only."""
        return np.frombuffer(self.packed, dtype="<f8")

    def sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return self.array[rng.integers(0, self.array.size, shape)]

    @property
    def mean(self) -> float:
        return math.fsum(self.array) / self.array.size

    @property
    def variance(self) -> float:
        return float(np.mean((self.array - self.mean) ** 2))

    def quantile(self, order: float) -> float:
        return float(np.sort(self.array)[_rank(order, self.array.size) - 1])


def _rank(order: float, size: int) -> int:
    # An order such as 0.07 times 100 is 7.000000000000001: the digits beyond float64 are noise.
    return max(1, math.ceil(order * size * (1 - 1e-13)))
