"""The private side of weights by logistic regression: certified slopes, rounded, with exact noise."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from sfumato.checks import keep, positive, root_down, whole
from sfumato.data.dataset import Dataset
from sfumato.errors import InvalidParameter
from sfumato.grid import Floats, Ints
from sfumato.laws import Law
from sfumato.mechanisms import Additive, Sensitivity, additive
from sfumato.privacy import Budget, Event, Neighbours, PureDP, check_neighbours
from sfumato.public_data.certified import Objective, certified_slopes
from sfumato.public_data.feature_map import FeatureMap
from sfumato.public_data.moments import column_words
from sfumato.query import Cost, Outcome

# Where the number of rows is private the certificate must hold whatever it is: for all that memory holds.
MAX_PRIVATE_ROWS = 2**32
# Slopes are rounded so finely that this adds little to how far a row moves them.
_LATTICE_BITS = 14


@dataclass(frozen=True, kw_only=True)
class Slopes:
    r"""The slopes of a penalised logistic regression between private and public rows, released with noise.

    Guarantee:
        Costs at most `budget`. Minimisers of the objective are at most :math:`c/\Lambda` apart, with
        :math:`c = \sqrt2` when a row is replaced and 1 when one is added or removed, since a row with its
        intercept has length 1 at most and no two are at an obtuse angle; the certified slopes are within
        :math:`\tau/\Lambda` of them, on each side; rounding to a lattice of step :math:`h` adds at most
        :math:`h\sqrt d`. Proof: docs/proofs/public-data.md.

    Args:
        map: the fitted map, by the L2 norm; a vector has one more place, for the intercept.
        public: the public table.
        budget: what the release may cost.
        neighbours: what one person can change.
        rows: the number of private rows: public under substitution, a public guess under add-remove.
        penalty: the strength of the penalty for each private row, chosen without the data.

    >>> from sfumato.public_data.features import Features
    >>> table = Dataset({"x": [0.0, 1.0, 4.0]}, unit="row", neighbours="substitution")
    >>> fitted = Features(numbers=["x"]).fitted(table, norm="l2", steps=741455)
    >>> slopes = Slopes(map=fitted, public=table, budget=PureDP(1), neighbours="substitution", rows=100,
    ...     penalty=Fraction(1, 10))
    >>> round(float(slopes.moved), 3)
    0.142
    """

    name: ClassVar[str] = "weights"

    map: FeatureMap
    public: Dataset
    budget: Budget
    neighbours: Neighbours
    rows: int
    penalty: Fraction

    def __post_init__(self) -> None:
        check_neighbours(self.neighbours)
        if self.map.norm != "l2":
            raise InvalidParameter(f"norm must be 'l2' for slopes, got norm={self.map.norm!r}")
        if self.map.steps > MAX_MAP_STEPS:
            raise InvalidParameter(f"steps must be at most {MAX_MAP_STEPS}, got steps={self.map.steps}")
        keep(self, rows=whole("rows", self.rows, least=1, most=2**40))
        keep(self, penalty=positive("penalty", self.penalty))

    @property
    def column(self) -> str:
        """The columns that are read, for the ledger."""
        return column_words(self.map)

    @cached_property
    def public_vectors(self) -> Ints:
        """The public rows with their intercepts."""
        return with_intercept(self.map.vectors(self.public), self.map.steps)

    @property
    def coordinates(self) -> int:
        """The number of slopes, with that of the intercept."""
        return len(self.map.coordinates) + 1

    @cached_property
    def objective(self) -> Objective:
        """The public constants; lengths are in units of the bound on a whole vector."""
        weight = self.rows / len(self.public_vectors)
        return Objective(weight, float(self.penalty * self.rows), full_steps(self.map.steps))

    @property
    def most_rows(self) -> int:
        """How many private rows the certificate must hold for."""
        return self.rows if self.neighbours == "substitution" else MAX_PRIVATE_ROWS

    @cached_property
    def tolerance(self) -> Fraction:
        """The public bound on the gradient at the slopes that are rounded."""
        return self.objective.tolerance(self.most_rows, len(self.public_vectors), self.coordinates)

    @property
    def moved(self) -> Fraction:
        """How far one person can move the certified slopes, in L2."""
        # The intercepts keep two rows within a right angle, so the squares of their parts add up.
        changed = root_up_fraction(Fraction(2)) if self.neighbours == "substitution" else 1
        return (changed + 2 * self.tolerance) / Fraction(self.objective.penalty)

    @property
    def step(self) -> Fraction:
        """The step of the lattice of released slopes: a power of two."""
        return Fraction(2) ** (math.floor(math.log2(self.moved)) - _LATTICE_BITS)

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one person can move the rounded slopes, in steps of the lattice."""
        moved = self.moved / self.step
        root = root_up_fraction(Fraction(self.coordinates))
        squared = math.ceil((moved + root) ** 2)
        return Sensitivity(math.ceil(root * moved) + self.coordinates, squared, self.coordinates)

    @property
    def mechanism(self) -> Additive:
        """The noise on the integers."""
        kind = "laplace" if isinstance(self.budget, PureDP) else "gaussian"
        return additive(self.budget, self.sensitivity, kind)

    @property
    def event(self) -> Event:
        """What the release costs."""
        return self.mechanism.event

    @property
    def cost(self) -> Cost:
        """What the release costs, as a budget."""
        return self.budget

    def look(self, data: Dataset) -> Ints:
        """Read the data: the certified slopes, rounded to the lattice."""
        private = with_intercept(self.map.vectors(data), self.map.steps)
        slopes, _ = certified_slopes(self.objective, private, self.public_vectors, self.tolerance)
        return rounded(slopes, self.step)

    def law(self, view: Ints) -> Law:
        """The law of the integers that are released."""
        return self.mechanism.law(view)

    def read(self, outcome: Outcome) -> Floats:
        """The released slopes, that of the intercept first."""
        return np.array([float(whole * self.step) for whole in outcome])


# The intercept and the features are each at most a half of the squared bound of 2^20 steps.
MAX_MAP_STEPS = math.isqrt(2**39)


def full_steps(steps: int) -> int:
    """The bound on a vector with its intercept, if the rest of it is at most `steps` long.

    >>> full_steps(3) ** 2 >= 2 * 3**2 > (full_steps(3) - 1) ** 2
    True
    """
    return math.isqrt(2 * steps * steps - 1) + 1


def with_intercept(vectors: Ints, steps: int) -> Ints:
    """Vectors with the intercept as the first coordinate, as large as the others together may be."""
    return np.column_stack([np.full(len(vectors), steps, dtype=np.int64), vectors])


def rounded(slopes: Floats, step: Fraction) -> Ints:
    """Slopes rounded to the nearest point of a lattice, exactly."""
    return np.array([round(Fraction(slope) / step) for slope in slopes.tolist()], dtype=np.int64)


def root_up_fraction(square: Fraction) -> Fraction:
    """A number with few digits at least the square root."""
    return root_down(square) + Fraction(1, 2**79)


def default_penalty(public: Ints, steps: int, noise_at_one: float) -> Fraction:
    """The rule that fixes the penalty publicly: noise about as large as the sampling error of a typical mean.

    Args:
        public: the integer vectors of the public rows, without intercepts.
        steps: how many steps are one unit of length, of a vector with its intercept.
        noise_at_one: the standard deviation of the noise on a slope at a penalty of 1; it falls as 1/penalty.
    """
    spread = (public / steps).std(axis=0)
    # The covariance of a number of variance 1 with the features is at most that of the principal direction.
    typical = float(np.linalg.norm(spread)) / math.sqrt(len(spread))
    wanted = noise_at_one * typical * math.sqrt(len(public))
    return Fraction(f"{min(max(wanted, 1e-5), 1e3):.3g}")
