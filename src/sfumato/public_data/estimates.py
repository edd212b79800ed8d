"""What a weighted number says about the private records, and where its error comes from."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from sfumato.checks import checked_confidence, one_of, readable
from sfumato.grid import Floats

Target = Literal["population", "sample"]
TARGETS: tuple[Target, ...] = ("population", "sample")

# A margin, and no derivation: normal errors then stay within a nominal 95 % interval 96.6 % of the time.
CARE = 1.08
# A sliver of normal noise makes the law of Laplace noises smooth; it widens an interval by less than 0.1 %.
_SLIVER = 0.03
# The sum repeats itself after 2 pi / 0.02 spreads, far beyond any quantile.
_WIDTH = 0.02


@dataclass(frozen=True, kw_only=True)
class Errors:
    """The parts of the error of one number, each a standard deviation unless it says otherwise."""

    # That of a finite public table, and of a finite private one for either target.
    public_sampling: float
    private_sampling: dict[Target, float]
    # Scales of independent Laplace noises, or the standard deviation of Gaussian noise as the one entry.
    laplace: tuple[float, ...]
    gaussian: float
    # By how much the weighted features miss the released means, carried over to the number.
    regularisation: float
    # How far a private number with the very same means of features can be below and above.
    unexplained: tuple[float, float]
    # The share of the weighted variance of the values that is linear in the features.
    explained: float
    # How many independent rows tell the spread of the public sampling.
    freedom: float

    def times(self, size: float) -> "Errors":
        """The errors of a number that is so many times as large."""
        return replace(
            self,
            public_sampling=self.public_sampling * size,
            private_sampling={target: spread * size for target, spread in self.private_sampling.items()},
            laplace=tuple(scale * size for scale in self.laplace),
            gaussian=self.gaussian * size,
            regularisation=self.regularisation * size,
            unexplained=(self.unexplained[0] * size, self.unexplained[1] * size),
        )

    @property
    def noise(self) -> float:
        """The standard deviation of the noise for privacy."""
        return math.hypot(self.gaussian, math.sqrt(2) * math.hypot(0.0, *self.laplace))


@dataclass(frozen=True, eq=False)
class Bend:
    """Simulated errors of a number by noise: to first order, and as the weights were found again for each."""

    linear: Floats
    found: Floats

    def excess(self, level: float, spread: float) -> tuple[float, float]:
        """How much further noise reaches below and above than to first order, beside a normal error.

        Never less than zero: draws that leave what weights can give end at its edge.
        """
        tail = (1 + level) / 2
        linear = mixed_quantile(self.linear, spread, tail)
        below, above = (mixed_quantile(self.found, spread, share) for share in (1 - tail, tail))
        return max(-below - linear, 0.0), max(above - linear, 0.0)


@dataclass(frozen=True)
class Estimate:
    """A number about the private records by weighted public ones, with the parts of its error.

    Guarantee:
        Post-processing of released numbers by public rows: costs nothing more. The interval holds
        approximately, for many rows, if the log of the ratio of densities is linear in the features; what it
        leaves out, that this may be false, is told by `unexplained`.

    Args:
        value: the weighted number.
        errors: the parts of its error.

    >>> errors = Errors(
    ...     public_sampling=0.3, private_sampling={"population": 0.4, "sample": 0.2}, laplace=(),
    ...     gaussian=0.5, regularisation=0.0, unexplained=(-1.0, 1.0), explained=0.9,
    ...     freedom=500.0)
    >>> estimate = Estimate(2.0, errors)
    >>> round(estimate.standard_error(), 3), [round(end, 2) for end in estimate.interval(0.95)]
    (0.707, [0.5, 3.5])
    """

    value: float
    errors: Errors
    # Simulated errors by noise, where that is so large that first order does not tell them.
    bend: Callable[[Target], Bend] | None = field(default=None, repr=False, compare=False)

    @property
    def sampling(self) -> float:
        """The standard deviation by sampling, of the public and of the private records."""
        return math.hypot(self.errors.public_sampling, self.errors.private_sampling["population"])

    @property
    def noise(self) -> float:
        """The standard deviation by the noise that protects the private records."""
        return self.errors.noise

    @property
    def regularisation(self) -> float:
        """What the penalty takes away from this number, by an estimate; an interval is widened by it."""
        return self.errors.regularisation

    @property
    def unexplained(self) -> tuple[float, float]:
        """How far off the number can be, below and above, if the ratio of densities has any other shape.

        Holds for every private population on the public values that has the same means of the features; both
        are zero where the values are linear in the features.
        """
        return self.errors.unexplained

    @property
    def explained(self) -> float:
        """The share of the variance of the values that is linear in the features.

        Near 1 the released means tell the number by themselves; near 0 it rests on the shape of the weights.
        """
        return self.errors.explained

    def standard_error(self, target: Target = "population") -> float:
        """The standard deviation of the estimate, about the number of the private population or sample."""
        one_of("target", target, TARGETS)
        errors = self.errors
        return math.hypot(errors.public_sampling, errors.private_sampling[target], errors.noise)

    def interval(self, confidence: float = 0.95, *, target: Target = "population") -> tuple[float, float]:
        """Where the private number lies with about this confidence.

        Args:
            confidence: inside (0, 1).
            target: "population" for the expectation that the private records are draws of, "sample" for
                the number of the private records themselves.
        """
        below, above = self.reach(confidence, target)
        return self.value - below, self.value + above

    def reach(self, confidence: float = 0.95, target: Target = "population") -> tuple[float, float]:
        """How far the interval goes below and above the value."""
        level = checked_confidence(confidence)
        one_of("target", target, TARGETS)
        errors = self.errors
        public = errors.public_sampling * student_factor(level, errors.freedom)
        wider = math.hypot(public, errors.private_sampling[target])
        half = quantile(math.hypot(wider, errors.gaussian), errors.laplace, level)
        below, above = 0.0, 0.0
        if self.bend is not None:
            # For the population, the sampling of private rows was simulated with the noise.
            rest = public if target == "population" else wider
            below, above = self.bend(target).excess(level, rest)
        drift = abs(errors.regularisation)
        return CARE * (half + below) + drift, CARE * (half + above) + drift

    def __str__(self) -> str:
        low, high = self.interval()
        below, above = self.unexplained
        return (
            f"{readable(self.value)}  95 % interval [{readable(low)}, {readable(high)}]\n"
            f"  standard deviations: sampling {readable(self.sampling)}, noise {readable(self.noise)}\n"
            f"  bias: regularisation {readable(self.regularisation)}; by a wrong shape at most "
            f"{readable(below)} to {readable(above)}, and the features explain {100 * self.explained:.0f} %"
        )


def student_factor(level: float, freedom: float) -> float:
    """By how much Student's quantile is above the normal one, for a spread told by so many rows."""
    from scipy.stats import norm, t

    tail = (1 + level) / 2
    return float(t.ppf(tail, freedom) / norm.ppf(tail))


def quantile(spread: float, scales: tuple[float, ...], level: float) -> float:
    """The number that |N + L1 + L2 + ...| stays below with this probability: one normal, some Laplace noises.

    >>> round(quantile(1.0, (), 0.95), 4)
    1.96
    >>> round(quantile(1e-9, (1.0,), 0.95), 3)  # -log(0.05) for one Laplace noise
    2.997
    """
    from scipy.optimize import brentq
    from scipy.stats import norm

    bell = float(norm.ppf((1 + level) / 2))
    laplace = np.array([scale for scale in scales if scale > 0])
    total = math.hypot(spread, *(math.sqrt(2) * laplace))
    if total == 0:
        return 0.0
    if not laplace.size or math.sqrt(2) * float(np.linalg.norm(laplace)) < 1e-6 * total:
        return bell * total
    # In units of the whole spread; the characteristic function is inverted, term by term of a fine sum.
    sliver = max(spread / total, _SLIVER)
    points = np.arange(0.5, 7 / sliver / _WIDTH) * _WIDTH
    heights = np.exp(-((sliver * points) ** 2) / 2)
    for scale in laplace / total:
        heights /= 1 + (scale * points) ** 2

    def above(reach: float) -> float:
        return float(2 / math.pi * _WIDTH * np.sum(heights * np.sin(points * reach) / points)) - level

    high = 2 * bell
    while above(high) < 0 and high < 1e3:
        high *= 2
    return float(brentq(above, 0.0, high, xtol=1e-9)) * total


def mixed_quantile(draws: Floats, spread: float, share: float) -> float:
    """The quantile of simulated draws, each with a normal error of this spread.

    >>> mixed_quantile(np.array([1.0, 3.0]), 0.1, 0.5).__round__(6)
    2.0
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr

    narrow = max(spread, 1e-3 * float(np.std(draws)))
    if narrow == 0:
        return float(draws[0])

    def above(value: float) -> float:
        return float(np.mean(ndtr((value - draws) / narrow))) - share

    return float(brentq(above, draws.min() - 40 * narrow, draws.max() + 40 * narrow))


def weighted_quantile(values: Floats, weights: Floats, share: float) -> float:
    """The smallest value that at least this share of the weight does not exceed.

    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]), 0.5)
    2.0
    """
    order = np.argsort(values, kind="stable")
    heights = np.cumsum(weights[order])
    place = int(np.searchsorted(heights, share * heights[-1] * (1 - 1e-12)))
    return float(values[order][min(place, len(values) - 1)])


@dataclass(frozen=True, eq=False)
class QuantileEstimate:
    """A quantile over the private records, with the interval that the error of its share gives.

    Guarantee:
        As for `Estimate`: the interval has the values at which the estimated share could be the wanted one.

    >>> from sfumato.laws import SeededBits
    >>> from sfumato.privacy import PureDP
    >>> from sfumato.public_data import weights
    >>> private, public = {"age": [float(50 + i % 30) for i in range(5000)]}, {"age": range(20, 80)}
    >>> found = weights(private, public, features=["age"], budget=PureDP(1), neighbours="substitution",
    ...     bits=SeededBits(1))
    >>> median = found.quantile("age", 0.5)
    >>> 60 < median.value < 75, median.interval()[0] < median.value < median.interval()[1]
    (True, True)
    """

    value: float
    share: float
    # The estimated share of the records up to the value, or below it.
    below: Estimate
    numbers: Floats
    weights: Floats

    def interval(self, confidence: float = 0.95, *, target: Target = "population") -> tuple[float, float]:
        """Where the private quantile lies with about this confidence; as for `Estimate`.

        An end is infinite where it may lie beyond all public values, which then do not tell it.
        """
        below, above = self.below.reach(confidence, target)
        least, most = self.share - above, self.share + below
        low = weighted_quantile(self.numbers, self.weights, least) if least > 0 else -math.inf
        high = weighted_quantile(self.numbers, self.weights, most) if most < 1 else math.inf
        return low, high

    def __str__(self) -> str:
        low, high = self.interval()
        return f"{readable(self.value)}  95 % interval [{readable(low)}, {readable(high)}]"
