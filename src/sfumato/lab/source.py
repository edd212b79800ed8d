"""What a source of data sets is: a population or fixed data, with public bounds.

The bounds are part of the description, as a data curator would publish them, and are never computed from the
values. A law without bounds, such as the normal one, is not clipped: the mechanisms clamp.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.lab.populations import Array, Clusters, Population, Rows, Shape

Bounds = tuple[float, float]
# Beyond these sizes a draw would not fit in memory, or a formula in float64.
MOST_VALUES = 10**9
LARGEST = 10**15


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where data sets come from: a population to sample, or fixed data, with public bounds.

    Guarantee:
        The same source, number of records and seed give the same data sets, and more sets continue the same
        ones. Other sources, numbers of records and seeds give independent ones.

    Args:
        name: short, with its parameters, as in "uniform(0, 200)".
        words: what the values are, for a caption.
        bounds: public lower and upper bound; values may lie beyond them where the law has no end.
        population: the law of one record.
        fixed: whether the data are there already. Then `draw` without `n` gives them as they are, and with
            `n` so many rows taken with replacement, so that they are the population.

    >>> from sfumato.lab.datasets import uniform
    >>> source = uniform(0, 200)
    >>> source.name, source.bounds, source.mean, source.quantile(0.25)
    ('uniform(0, 200)', (0.0, 200.0), 100.0, 50.0)
    >>> source.draw(sets=3, n=5, seed=1).shape
    (3, 5)
    """

    name: str
    words: str
    bounds: Bounds
    population: Population = field(repr=False)
    fixed: bool = False

    def draw(self, sets: int = 1, n: int | None = None, seed: int = 0) -> Array:
        """Independent data sets of n records each as the rows of an array, not sorted.

        Args:
            sets: how many data sets.
            n: records in each of them; may be left out for fixed data only.
            seed: chooses the draws; a whole number from 0.

        Raises:
            InvalidParameter: a number is not in its range, or `n` is missing.

        >>> fixed([1, 2, 4], bounds=(0, 10)).draw(sets=2).tolist()
        [[1.0, 2.0, 4.0], [1.0, 2.0, 4.0]]
        """
        sets = checks.whole("sets", sets, least=1, most=MOST_VALUES)
        if n is None and self.size is not None:
            checks.whole("sets", sets, least=1, most=max(MOST_VALUES // self.size, 1))
        elif n is not None:
            checks.whole("n", n, least=1, most=MOST_VALUES // sets)
        return next(self.blocks(sets, n, seed, most=sets))

    def blocks(self, sets: int, n: int | None, seed: int, *, most: int) -> Iterator[Array]:
        """The data sets that `draw` gives, at most so many at a time: no more of them is in memory."""
        seed = checks.whole("seed", seed, least=0, most=2**64 - 1)
        counts = (min(most, sets - start) for start in range(0, sets, most))
        law = self.population
        if n is None:
            if not isinstance(law, Rows):
                raise InvalidParameter(f"n must be given to draw from {self.name}, got n=None")
            yield from (np.tile(law.array, (count, 1)) for count in counts)
            return
        n = checks.whole("n", n, least=1, most=MOST_VALUES)
        digest = int.from_bytes(hashlib.sha256(self.content).digest()[:16], "big")
        rng = np.random.default_rng(np.random.SeedSequence([seed, n, digest]))
        sample: Callable[[Shape], Array] = partial(law.sample, rng)
        if type(law) is Clusters:
            sample = partial(law.sample_from, tuple(rng.spawn(2)))
        yield from (np.asarray(sample((count, n)), dtype=np.float64) for count in counts)

    @property
    def content(self) -> bytes:
        """What identifies the source, the same in every process: its law with all digits, and its bounds."""
        law = self.population
        if isinstance(law, Rows):
            told = hashlib.sha256(law.packed).hexdigest()
        else:
            told = repr(law)
        return f"{type(law).__name__} {told} within {self.bounds!r}".encode()

    @property
    def size(self) -> int | None:
        """How many records there are, for fixed data; None for a law."""
        return self.population.array.size if isinstance(self.population, Rows) else None

    @property
    def mean(self) -> float:
        """The mean of the population, before any clamping."""
        return self.population.mean

    @property
    def variance(self) -> float:
        """The variance of the population, before any clamping."""
        return self.population.variance

    def quantile(self, order: object) -> float:
        """The smallest value that at least the share `order` of the population does not exceed.

        >>> from sfumato.lab.datasets import atoms
        >>> atoms([0, 1, 5], [0.5, 0.25, 0.25]).quantile(0.6)
        1.0
        """
        return self.population.quantile(float(checks.inside("order", order)))


def fixed(values: Any, bounds: object, *, name: str = "fixed", words: str = "") -> Source:
    """Data that you have, as they are: their mean and quantiles are those of the population.

    Args:
        values: numbers without gaps: a list, an array, or a column of a frame.
        bounds: public bounds, known without looking at the values.
        name: what a table calls them.
        words: what the values are, for a caption.

    Raises:
        InvalidParameter: there is no value, or one is no finite number; the message shows none of them.

    >>> source = fixed([3, 1, 2, 2], bounds=(0, 5))
    >>> source.mean, source.quantile(0.5), source.size, source.fixed
    (2.0, 2.0, 4, True)
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.full(1, np.nan)
    if np.ma.isMaskedArray(values):
        array = np.ma.filled(np.ma.asarray(values).astype(np.float64), np.nan)
    if array.ndim != 1 or not 1 <= array.size <= MOST_VALUES or not np.isfinite(array).all():
        raise InvalidParameter("values must be a column of at least one finite number, without gaps")
    told = words or f"{array.size:,} given values"
    population = Rows(array.astype("<f8").tobytes())
    return Source(name=name, words=told, bounds=bounds_of(bounds), population=population, fixed=True)


def bounds_of(bounds: object) -> Bounds:
    """A public lower and upper bound, in this order."""
    low, high = checks.pair("bounds", bounds)
    return ordered("lower", low, "upper", high)


def ordered(first: str, low: object, second: str, high: object) -> Bounds:
    """Two numbers, the first below the second."""
    ends = number(first, low), number(second, high)
    if not ends[0] < ends[1]:
        got = f"{first}={checks.shown(low)}, {second}={checks.shown(high)}"
        raise InvalidParameter(f"{first} must be below {second}, got {got}")
    return ends


def number(name: str, value: object) -> float:
    """A number that float64 holds to a fraction of a unit."""
    read = checks.exact(name, value)
    if abs(read) > LARGEST:
        raise InvalidParameter(f"{name} must be in [-1e15, 1e15], got {name}={checks.shown(value)}")
    return float(read)
