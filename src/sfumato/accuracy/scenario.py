"""Scenarios: public assumptions about data, from which accuracy is known before anything is read."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from sfumato.checks import Number, exact, one_of, pair, readable, shown, whole
from sfumato.data.admission import admit
from sfumato.errors import InvalidParameter
from sfumato.grid import Floats
from sfumato.laws import Bits
from sfumato.release import Release

# Laws without ends are cut where float64 still tells shares apart.
LEAST_SHARE = 2.0**-40
# So many values are typical enough for any number of them.
MOST_TYPICAL = 10**7
# Moments of clamped laws are sums over so many shares.
_STEPS = 2**17
_FARTHEST = 1e150
_KNOTS = 2**12


@dataclass(frozen=True, repr=False)
class Scenario:
    """What is publicly assumed about a column: a law, a public data set, or quantiles released before.

    Make one with `named`, `of_data`, `of_quantiles` or `of_release`.

    Guarantee:
        Holds public numbers only, and is equal to another one with the same content. It decides what accuracy
        is foreseen and how an interval is read, never what a release costs or how it is drawn.

    >>> salaries = Scenario.named("lognormal", mu=10.4, sigma=0.5)
    >>> salaries
    Scenario(lognormal with mu 10.4 and sigma 0.5)
    >>> salaries.typical(3).round().tolist()
    [20258.0, 32860.0, 53301.0]
    """

    kind: str
    parameters: tuple[tuple[str, float], ...] = ()
    # Arrays as bytes of float64, so that scenarios are compared and hashed by content.
    shares: bytes = b""
    points: bytes = b""

    def __post_init__(self) -> None:
        if self.kind not in ("data", "quantiles"):
            _, wanted = _LAWS[one_of("name", self.kind, tuple(_LAWS))]
            given = tuple(name for name, _ in self.parameters)
            if given != wanted:
                rule = f"parameters of {self.kind} must be {' and '.join(wanted)}"
                raise InvalidParameter(f"{rule}, got {', '.join(given) or 'none'}")
            _check_law(self.kind, dict(self.parameters))

    @classmethod
    def named(cls, name: str, **parameters: Number) -> "Scenario":
        """A law by its name and its parameters.

        Args:
            name: "uniform" (low, high), "normal" (mean, sd), "lognormal" (mu, sigma), "exponential" (mean),
                "poisson" (mean), "beta" (a, b, low, high), "bernoulli" (share) or "constant" (value).
            parameters: those named after the law; all of them.

        Raises:
            InvalidParameter: no such law, a parameter that it does not have or needs, or one out of range.
        """
        _, wanted = _LAWS[one_of("name", name, tuple(_LAWS))]
        # In the order of the law, so that equal scenarios are equal however they are written.
        known = [key for key in wanted if key in parameters]
        others = [key for key in parameters if key not in wanted]
        return cls(name, tuple((key, _number(key, parameters[key])) for key in known + others))

    @classmethod
    def of_data(cls, values: Any) -> "Scenario":
        """The values of a public data set, such as last year's or a neighbour's; never of the private one.

        Args:
            values: an array, a list or a series of at least one finite number.
        """
        column = admit(values)
        column.require("integer", "real")
        found = np.concatenate([np.empty(0), *column.chunks()])
        if not len(found) or not np.isfinite(found).all():
            raise InvalidParameter("values must be at least one number, all finite and none missing")
        return cls("data", points=(np.sort(found) + 0.0).tobytes())

    @classmethod
    def of_quantiles(
        cls, probs: Sequence[Number], values: Sequence[Number], *, bounds: tuple[Number, Number]
    ) -> "Scenario":
        """Straight lines between quantiles that are known, with the bounds at orders 0 and 1.

        Args:
            probs: increasing orders inside (0, 1).
            values: the quantile of each order, not decreasing and inside the bounds.
            bounds: (lower, upper).
        """
        orders, known = _numbers("probs", probs), _numbers("values", values)
        low, high = (_number("bounds", end) for end in pair("bounds", bounds))
        if len(orders) != len(known) or not len(orders):
            raise InvalidParameter(
                f"values must be one for each of probs, got {len(known)} for {len(orders)}"
            )
        if not (orders[0] > 0 and orders[-1] < 1 and (np.diff(orders) > 0).all()):
            raise InvalidParameter(f"probs must increase inside (0, 1), got probs={shown(probs)}")
        if (np.diff(known, prepend=low, append=high) < 0).any() or not low < high:
            raise InvalidParameter(
                f"values must not decrease and be inside the bounds, got values={shown(values)}"
            )
        shares, points = np.array([0.0, *orders, 1.0]), np.array([low, *known, high])
        return cls("quantiles", shares=shares.tobytes(), points=points.tobytes())

    @classmethod
    def of_release(cls, release: Any) -> "Scenario":
        """Straight lines between the quantiles of a release: what is known after paying once.

        Raises:
            InvalidParameter: no release of quantiles, or one that was made without bounds.
        """
        query: Any = release.query if isinstance(release, Release) else None
        if query is None or query.name != "quantiles":
            raise InvalidParameter("release must be a Release of quantiles, such as sf.quantiles(...)")
        if query.bounds is None:
            raise InvalidParameter("release must have bounds; without any, use Scenario.of_quantiles")
        bounds = (float(query.lower), float(query.upper))
        released = np.clip(np.atleast_1d(np.asarray(release.value, dtype=np.float64)), *bounds)
        known = dict(zip(query.probs, released.tolist(), strict=True))
        orders = sorted(known)
        return cls.of_quantiles(orders, [known[order] for order in orders], bounds=bounds)

    def quantile(self, shares: Any) -> Floats:
        """The smallest value that at least these shares of the data are at or below; finite at 0 and 1."""
        asked = np.asarray(shares, dtype=np.float64)
        if not ((asked >= 0) & (asked <= 1)).all():
            raise InvalidParameter("shares must be in [0, 1]")
        if self.kind == "data":
            # A share such as 0.07 times 100 is a little above 7 in float64, and means 7.
            ranks = np.ceil(asked * (1 - 2.0**-50) * len(self._points)).astype(np.int64)
            return np.asarray(self._points[np.maximum(ranks - 1, 0)])
        if self.kind == "quantiles":
            return _on_lines(asked, np.frombuffer(self.shares), self._points)
        law, _ = _LAWS[self.kind]
        return np.asarray(law(asked, **dict(self.parameters)), dtype=np.float64)

    def typical(self, n: int) -> Floats:
        """A data set of `n` values that is as even as the scenario allows, increasing; read-only."""
        return _typical(self, whole("n", n, least=0, most=MOST_TYPICAL))

    @property
    def fixed(self) -> bool:
        """Whether all data sets of a size are the same: a public data set, or one value."""
        return self.kind in ("data", "constant")

    def drawn(self, n: int, bits: Bits) -> Floats:
        """`n` independent values, increasing, by seeded bits; of a public data set, its typical values."""
        if self.fixed:
            return self.typical(n)
        count = whole("n", n, least=0, most=MOST_TYPICAL)
        # Uniform order statistics are sums of exponential gaps over their total; nothing needs to be sorted.
        uniform = ((bits.words(count + 1) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        sums = np.cumsum(-np.log(uniform))
        shares = sums[:-1] / sums[-1]
        if self.kind != "beta" or count <= _KNOTS:
            return self.quantile(shares)
        # Its inverse is slow; between near order statistics a straight line is as good.
        knots = shares[np.linspace(0, count - 1, _KNOTS).astype(np.int64)]
        return np.asarray(np.interp(shares, knots, self.quantile(knots)))

    @property
    def mean(self) -> float:
        """The expectation."""
        return self.moments()[0]

    @property
    def variance(self) -> float:
        """The variance."""
        return self.moments()[1]

    def moments(self, bounds: tuple[Number, Number] | None = None) -> tuple[float, float]:
        """Mean and variance, of values clamped to the bounds if there are any.

        Clamped laws are integrated on 131,072 shares, which errs by less than 1e-5 of the bounds' width in
        the mean; all else is a closed form.
        """
        if bounds is None and self.kind in _MOMENTS:
            return _MOMENTS[self.kind](**dict(self.parameters))
        if bounds is None and self.kind == "quantiles":
            return _line_moments(np.frombuffer(self.shares), self._points)
        even = self._points if self.kind == "data" else self.quantile((np.arange(_STEPS) + 0.5) / _STEPS)
        if bounds is not None:
            low, high = (_number("bounds", end) for end in pair("bounds", bounds))
            if not low < high:
                raise InvalidParameter(f"bounds must increase, got bounds={shown(bounds)}")
            even = np.clip(even, low, high)
        return float(even.mean()), float(even.var())

    @cached_property
    def words(self) -> str:
        """The assumption in words."""
        if self.kind == "data":
            count = len(self._points)
            return f"a public data set of {count:,} value{'s' * (count != 1)}"
        if self.kind == "quantiles":
            count = len(self._points) - 2
            return f"straight lines between {count:,} quantile{'s' * (count != 1)}"
        stated = [f"{name} {readable(value)}" for name, value in self.parameters]
        *others, last = stated
        return f"{self.kind} with {', '.join(others)}{' and ' * bool(others)}{last}"

    def __repr__(self) -> str:
        return f"Scenario({self.words})"

    @cached_property
    def _points(self) -> Floats:
        return np.frombuffer(self.points)


def _number(name: str, value: object) -> float:
    number = exact(name, value)
    if abs(number) > _FARTHEST:  # before float64, which would overflow
        raise InvalidParameter(f"{name} must be at most {_FARTHEST:g} in size, got {name}={shown(value)}")
    return float(number)


def _numbers(name: str, given: object) -> Floats:
    listed = given.tolist() if isinstance(given, np.ndarray) else given
    if not isinstance(listed, list | tuple):
        raise InvalidParameter(f"{name} must be a list of numbers, got {name}={shown(given)}")
    return np.array([_number(name, item) for item in listed])


@lru_cache(maxsize=8)
def _typical(scenario: Scenario, n: int) -> Floats:
    values = scenario.quantile((np.arange(n) + 0.5) / max(n, 1))
    values.flags.writeable = False
    return values


def _on_lines(asked: Floats, shares: Floats, points: Floats) -> Floats:
    left = np.clip(np.searchsorted(shares, asked, side="right") - 1, 0, len(shares) - 2)
    slope = (points[left + 1] - points[left]) / (shares[left + 1] - shares[left])
    # Rounding must not lift a value above the end of its line, or quantiles could decrease.
    return np.minimum(points[left] + slope * (asked - shares[left]), points[left + 1])


def _line_moments(shares: Floats, points: Floats) -> tuple[float, float]:
    weights, low, high = np.diff(shares), points[:-1], points[1:]
    mean = float(weights @ (low + high)) / 2
    low, high = low - mean, high - mean
    return mean, float(weights @ (low**2 + low * high + high**2)) / 3


def _inner(shares: Floats) -> Floats:
    return np.clip(shares, LEAST_SHARE, 1 - LEAST_SHARE)


def _uniform(shares: Floats, *, low: float, high: float) -> Floats:
    return np.minimum(low + (high - low) * shares, high)


def _normal(shares: Floats, *, mean: float, sd: float) -> Floats:
    from scipy.special import ndtri

    return np.asarray(mean + sd * ndtri(_inner(shares)))


def _lognormal(shares: Floats, *, mu: float, sigma: float) -> Floats:
    return np.exp(_normal(shares, mean=mu, sd=sigma))


def _exponential(shares: Floats, *, mean: float) -> Floats:
    return -mean * np.log1p(-_inner(shares))


def _poisson(shares: Floats, *, mean: float) -> Floats:
    counts, known = _poisson_table(mean)
    return counts[np.searchsorted(known, _inner(shares))]


@lru_cache(maxsize=8)
def _poisson_table(mean: float) -> tuple[Floats, Floats]:
    """All counts that matter and the shares at or below them: a search is exact and fast."""
    from scipy.special import pdtr

    away = 9 * math.sqrt(mean) + 60
    counts = np.arange(max(math.floor(mean - away), 0), math.ceil(mean + away) + 1, dtype=np.float64)
    known = pdtr(counts, mean)
    known[-1] = 1.0
    return counts, known


def _beta(shares: Floats, *, a: float, b: float, low: float, high: float) -> Floats:
    from scipy.special import betaincinv

    return np.asarray(np.minimum(low + (high - low) * betaincinv(a, b, shares), high))


def _bernoulli(shares: Floats, *, share: float) -> Floats:
    # 1 - 0.9 is a little below 0.1 in float64, and means it.
    return np.where(shares > (1 - share) * (1 + 2.0**-50), 1.0, 0.0)


def _constant(shares: Floats, *, value: float) -> Floats:
    return np.full(shares.shape, value)


_LAWS: dict[str, tuple[Callable[..., Floats], tuple[str, ...]]] = {
    "uniform": (_uniform, ("low", "high")),
    "normal": (_normal, ("mean", "sd")),
    "lognormal": (_lognormal, ("mu", "sigma")),
    "exponential": (_exponential, ("mean",)),
    "poisson": (_poisson, ("mean",)),
    "beta": (_beta, ("a", "b", "low", "high")),
    "bernoulli": (_bernoulli, ("share",)),
    "constant": (_constant, ("value",)),
}

_MOMENTS: dict[str, Callable[..., tuple[float, float]]] = {
    "uniform": lambda low, high: ((low + high) / 2, (high - low) ** 2 / 12),
    "normal": lambda mean, sd: (mean, sd**2),
    "lognormal": lambda mu, sigma: (
        math.exp(mu + sigma**2 / 2),
        math.expm1(sigma**2) * math.exp(2 * mu + sigma**2),
    ),
    "exponential": lambda mean: (mean, mean**2),
    "poisson": lambda mean: (mean, mean),
    "beta": lambda a, b, low, high: (
        low + (high - low) * a / (a + b),
        (high - low) ** 2 * a * b / ((a + b) ** 2 * (a + b + 1)),
    ),
    "bernoulli": lambda share: (share, share * (1 - share)),
    "constant": lambda value: (value, 0.0),
}


def _check_law(name: str, values: dict[str, float]) -> None:
    for key in ("sd", "sigma", "a", "b", *(["mean"] if name != "normal" else [])):
        if key in values and values[key] <= 0:
            raise InvalidParameter(f"{key} must be positive, got {key}={values[key]:g}")
    if "low" in values and not values["low"] < values["high"]:
        raise InvalidParameter(f"low must be below high, got low={values['low']:g}, high={values['high']:g}")
    if name == "bernoulli" and not 0 <= values["share"] <= 1:
        raise InvalidParameter(f"share must be in [0, 1], got share={values['share']:g}")
    if name == "lognormal" and abs(values["mu"]) + 8 * values["sigma"] + values["sigma"] ** 2 > 300:
        rule = "|mu| + 8 sigma + sigma² must be at most 300, so that values are finite"
        raise InvalidParameter(f"{rule}, got mu={values['mu']:g}, sigma={values['sigma']:g}")
    if name == "poisson" and values["mean"] > 1e7:
        raise InvalidParameter(
            f"mean must be at most 1e7, above which a normal law is the same, got mean={values['mean']:g}"
        )
    if name == "beta" and not all(1e-2 <= values[key] <= 1e6 for key in ("a", "b")):
        raise InvalidParameter(f"a and b must be in [0.01, 1e6], got a={values['a']:g}, b={values['b']:g}")
