"""Laws of a query given a secret: a finite law, a mixture of normal laws, and one of normal vectors.

They are public statements about the world, made before any datum is read; none of them is fitted here.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.checks import Number, decimal, exact, positive, shown
from sfumato.errors import InvalidParameter

__all__ = ["Finite", "Mixture", "QueryLaw", "VectorMixture"]

Floats = NDArray[np.float64]
_SMALLEST = Fraction(1, 10**100)
MAX_COMPONENTS, MAX_VALUES, MAX_DIMENSION = 200, 20_000, 50


@dataclass(frozen=True, init=False)
class Finite:
    """A law on finitely many numbers, with exact probabilities.

    Guarantee:
        None of its own: it is a public statement about the query. Numbers are read exactly and never rounded.

    Args:
        probabilities: how likely each value is; above zero and together exactly 1. Values and probabilities
            may be whole numbers, decimals or fractions such as `Fraction(1, 3)`.

    Raises:
        InvalidParameter: there are no values, a probability is not positive, or their sum is not 1.

    >>> flu = Finite({0: 0.5, 3: 0.25, 4: 0.25})
    >>> flu.mean, flu.values
    (Fraction(7, 4), (Fraction(0, 1), Fraction(3, 1), Fraction(4, 1)))
    """

    values: tuple[Fraction, ...]
    weights: tuple[Fraction, ...]

    def __init__(self, probabilities: Mapping[Any, Number]) -> None:
        checked_mapping("probabilities", probabilities)
        given = {tame("value", exact("value", value)): chance for value, chance in probabilities.items()}
        if len(given) < len(probabilities):
            raise InvalidParameter("probabilities must name every value once")
        values = tuple(sorted(given))
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "weights", _shares("probabilities", [given[value] for value in values]))

    @property
    def mean(self) -> Fraction:
        """The expectation."""
        return sum((value * weight for value, weight in self), Fraction(0))

    def __iter__(self) -> Any:
        return iter(zip(self.values, self.weights, strict=True))

    def rounded(self, granularity: Fraction) -> "Finite":
        """The law of the number of lattice steps nearest to the value; halves go up."""
        found: dict[Fraction, Fraction] = {}
        for value, weight in self:
            place = Fraction((value / granularity + Fraction(1, 2)).__floor__())
            found[place] = found.get(place, Fraction(0)) + weight
        return Finite(found)


@dataclass(frozen=True, init=False)
class Mixture:
    """A mixture of normal laws on the line.

    Guarantee:
        None of its own: it is a public statement about the query. Numbers are read exactly, as decimals or
        fractions; a certificate is about these numbers.

    Args:
        weights: how likely each component is; above zero and together exactly 1.
        means: the mean of each component.
        deviations: the standard deviation of each component, above zero.

    Raises:
        InvalidParameter: no components, unequal numbers of them, weights that do not sum to 1, or a deviation
            that is not positive.

    >>> Mixture([0.6, 0.4], [0, 5], [1, 0.5]).mean
    Fraction(2, 1)
    >>> Mixture([0.6, 0.3], [0, 5], [1, 0.5])
    Traceback (most recent call last):
    sfumato.errors.InvalidParameter: weights must sum to 1 exactly, got 0.9: write thirds as Fraction(1, 3)
    """

    weights: tuple[Fraction, ...]
    means: tuple[Fraction, ...]
    deviations: tuple[Fraction, ...]

    def __init__(
        self, weights: Iterable[Number], means: Iterable[Number], deviations: Iterable[Number]
    ) -> None:
        shares = _shares("weights", list(weights))
        object.__setattr__(self, "weights", shares)
        object.__setattr__(self, "means", _each("means", means, len(shares), exact))
        object.__setattr__(self, "deviations", _each("deviations", deviations, len(shares), positive))

    @classmethod
    def normal(cls, mean: Number, deviation: Number) -> "Mixture":
        """One normal law."""
        return cls([1], [mean], [deviation])

    @property
    def mean(self) -> Fraction:
        """The expectation."""
        return sum((w * m for w, m in zip(self.weights, self.means, strict=True)), Fraction(0))

    def shifted(self, by: Number) -> "Mixture":
        """The same mixture, moved."""
        step = exact("by", by)
        return Mixture(self.weights, [mean + step for mean in self.means], self.deviations)

    @property
    def floats(self) -> tuple[Floats, Floats, Floats]:
        """Weights, means and deviations as nearest floats."""
        numbers = (self.weights, self.means, self.deviations)
        weights, means, deviations = (np.array([float(n) for n in each]) for each in numbers)
        return weights, means, deviations


@dataclass(frozen=True, init=False)
class VectorMixture:
    """A mixture of normal laws of vectors, for queries with several answers.

    Guarantee:
        None of its own: it is a public statement about the query. Numbers are read exactly.

    Args:
        weights: how likely each component is; above zero and together exactly 1.
        means: one vector for each component.
        covariances: one symmetric positive definite matrix for each component.

    Raises:
        InvalidParameter: unequal sizes, weights that do not sum to 1, or a matrix that is not a covariance.

    >>> VectorMixture([1], [[0, 1]], [[[1, 0.5], [0.5, 1]]]).dimension
    2
    """

    weights: tuple[Fraction, ...]
    means: tuple[tuple[Fraction, ...], ...]
    covariances: tuple[tuple[tuple[Fraction, ...], ...], ...]

    def __init__(self, weights: Iterable[Number], means: Iterable[Any], covariances: Iterable[Any]) -> None:
        shares = _shares("weights", list(weights))
        centers, matrices = list(means), list(covariances)
        if not len(centers) == len(matrices) == len(shares):
            raise InvalidParameter(f"means and covariances must be {len(shares)}, as many as weights")
        size = len(centers[0])
        if not 1 <= size <= MAX_DIMENSION:
            raise InvalidParameter(f"means must be vectors of 1 to {MAX_DIMENSION} numbers")
        object.__setattr__(self, "weights", shares)
        vectors = tuple(_each("means", center, size, exact) for center in centers)
        object.__setattr__(self, "means", vectors)
        object.__setattr__(self, "covariances", tuple(checked_covariance(one, size) for one in matrices))

    @property
    def dimension(self) -> int:
        """How many numbers the query has."""
        return len(self.means[0])


QueryLaw = Finite | Mixture | VectorMixture


def checked_mapping(name: str, value: object) -> None:
    """Refuse what is no mapping, and an empty one."""
    if not isinstance(value, Mapping) or not value:
        raise InvalidParameter(f"{name} must be a mapping with at least one entry, got {shown(value)}")


def checked_covariance(matrix: Any, size: int) -> tuple[tuple[Fraction, ...], ...]:
    """A symmetric positive definite matrix of exact numbers."""
    rows = list(matrix)
    if len(rows) != size:
        raise InvalidParameter(f"covariances must be matrices of {size} rows and columns")
    read = tuple(_each("covariances", row, size, exact) for row in rows)
    if any(read[i][j] != read[j][i] for i in range(size) for j in range(i)):
        raise InvalidParameter("covariances must be symmetric")
    values = np.linalg.eigvalsh(np.array([[float(number) for number in row] for row in read]))
    # Nearer to zero, a rounded eigenvalue does not show that the matrix is positive definite.
    if not values[0] > 1e-9 * values[-1] > 0:
        raise InvalidParameter("covariances must be positive definite, and well away from singular")
    return read


def alike(left: QueryLaw, right: QueryLaw) -> bool:
    """Whether two laws are one, however their components are ordered or split."""
    return _merged(left) == _merged(right)


def _merged(law: QueryLaw) -> dict[Any, Fraction]:
    if isinstance(law, Finite):
        return dict(law)
    shapes: Any = law.deviations if isinstance(law, Mixture) else law.covariances
    found: dict[Any, Fraction] = {}
    for weight, *component in zip(law.weights, law.means, shapes, strict=True):
        found[tuple(component)] = found.get(tuple(component), Fraction(0)) + weight
    return found


def common_step(laws: Iterable[Finite]) -> Fraction:
    """The largest step of a lattice through zero that holds every value; 1 if all values are zero."""
    values = [value for law in laws for value in law.values if value]
    if not values:
        return Fraction(1)
    bottom = lcm(*(value.denominator for value in values))
    return Fraction(gcd(*(int(value * bottom) for value in values)), bottom)


def _each(
    name: str, numbers: Iterable[Any], count: int, read: Callable[[str, object], Fraction]
) -> tuple[Fraction, ...]:
    found = tuple(tame(name, read(name, number)) for number in numbers)
    if len(found) != count:
        raise InvalidParameter(f"{name} must be {count} numbers, got {len(found)}")
    return found


def tame(name: str, number: Fraction) -> Fraction:
    """A number that is zero or of a size that floats can square."""
    # So that sums, squares and ratios of floats neither overflow nor underflow.
    if number and not _SMALLEST <= abs(number) <= 1 / _SMALLEST:
        raise InvalidParameter(f"{name} must be zero or from 1e-100 to 1e100 in size, got {shown(number)}")
    return number


def _shares(name: str, numbers: list[Any]) -> tuple[Fraction, ...]:
    most = MAX_COMPONENTS if name == "weights" else MAX_VALUES
    if not 1 <= len(numbers) <= most:
        raise InvalidParameter(f"{name} must be 1 to {most} numbers, got {len(numbers)}")
    shares = tuple(tame(name, positive(name, number)) for number in numbers)
    total = sum(shares, Fraction(0))
    if total != 1:
        raise InvalidParameter(
            f"{name} must sum to 1 exactly, got {decimal(total)}: write thirds as Fraction(1, 3)"
        )
    return shares
