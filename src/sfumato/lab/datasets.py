"""Seeded generators of data sets, each with public bounds; fixed and real data beside them."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sfumato import checks
from sfumato.errors import InvalidParameter
from sfumato.lab.populations import (
    Atoms,
    Beta,
    Clusters,
    Integers,
    Lognormal,
    Normal,
    Poisson,
    Population,
    Uniform,
)
from sfumato.lab.real_data import REAL, Adapter, real
from sfumato.lab.source import LARGEST, Bounds, Source, bounds_of, fixed, number, ordered

__all__ = [
    "Source",
    "uniform",
    "normal",
    "beta",
    "bernoulli",
    "integers",
    "lognormal",
    "poisson",
    "clusters",
    "atoms",
    "fixed",
    "real",
    "REAL",
    "Adapter",
]


def uniform(low: object = 0, high: object = 1, *, bounds: object = None) -> Source:
    """Values equally likely everywhere between low and high.

    Args:
        low: where the values begin.
        high: where they end.
        bounds: public bounds; low and high unless told otherwise.

    >>> uniform().variance == 1 / 12
    True
    """
    ends = ordered("low", low, "high", high)
    return _source(
        "uniform",
        (low, high),
        f"uniform on {_span(ends)}",
        Uniform(*ends),
        ends if bounds is None else bounds,
    )


def normal(mean: object, sd: object, bounds: object) -> Source:
    """Normal values, not clipped: some lie beyond any bounds.

    Args:
        mean: the centre.
        sd: the standard deviation, positive.
        bounds: public bounds that mechanisms clamp to.

    >>> normal(500, 125, bounds=(0, 1000)).quantile(0.5)
    500.0
    """
    law = Normal(number("mean", mean), _positive("sd", sd))
    return _source("normal", (mean, sd), f"normal, mean {law.mean:g}, sd {law.sd:g}", law, bounds)


def beta(a: object = 2, b: object = 2, low: object = 0, high: object = 1, *, bounds: object = None) -> Source:
    """Values of a Beta law, on [0, 1] or stretched to [low, high].

    Args:
        a: the first shape, positive; 2 and 2 give a hill in the middle.
        b: the second shape, positive.
        low: where the values begin.
        high: where they end.
        bounds: public bounds; low and high unless told otherwise.

    >>> beta().mean, beta().variance
    (0.5, 0.05)
    """
    ends = ordered("low", low, "high", high)
    law = Beta(_positive("a", a), _positive("b", b), *ends)
    shown = (a, b) if ends == (0.0, 1.0) else (a, b, low, high)
    return _source(
        "beta", shown, f"Beta({law.a:g}, {law.b:g}) on {_span(ends)}", law, ends if bounds is None else bounds
    )


def bernoulli(share: object) -> Source:
    """Zeros and ones, with a share of ones.

    Args:
        share: the probability of a one, inside (0, 1).

    >>> bernoulli(0.3).mean, bernoulli(0.3).bounds
    (0.3, (0.0, 1.0))
    """
    ones = float(checks.inside("share", share))
    law = Atoms((0.0, 1.0), (1 - ones, ones))
    return _source("bernoulli", (share,), f"zeros and ones, a share {ones:g} of ones", law, (0, 1))


def integers(low: int, high: int, *, bounds: object = None) -> Source:
    """Whole numbers from low to high, both included, all equally likely.

    Args:
        low: the smallest.
        high: the largest; `integers(0, 199)` has 200 values.
        bounds: public bounds; low and high unless told otherwise.

    >>> integers(0, 199).mean, integers(1, 6).quantile(0.5)
    (99.5, 3.0)
    """
    first = checks.whole("low", low, least=-LARGEST, most=LARGEST)
    last = checks.whole("high", high, least=-LARGEST, most=LARGEST)
    ends = ordered("low", first, "high", last)
    words = f"whole numbers from {first:,} to {last:,}"
    return _source("integers", (first, last), words, Integers(first, last), bounds, support=ends)


def lognormal(mu: object, sigma: object, bounds: object) -> Source:
    """Exponentials of normal values: positive, with a long upper tail, not clipped.

    Args:
        mu: the mean of the logarithms, in [-300, 300].
        sigma: the standard deviation of the logarithms, positive and at most 10.
        bounds: public bounds that mechanisms clamp to.

    >>> round(lognormal(10, 0.5, bounds=(0, 200_000)).quantile(0.5))
    22026
    """
    law = Lognormal(number("mu", mu), _positive("sigma", sigma))
    if abs(law.mu) > 300 or law.sigma > 10:
        rule = "mu must be in [-300, 300] and sigma at most 10"
        raise InvalidParameter(f"{rule}, got mu={checks.shown(mu)}, sigma={checks.shown(sigma)}")
    words = f"lognormal, logarithms of mean {law.mu:g} and sd {law.sigma:g}"
    return _source("lognormal", (mu, sigma), words, law, bounds)


def poisson(mean: object, bounds: object) -> Source:
    """Counts of rare events, not clipped.

    Args:
        mean: the expected count, positive and at most 1e9.
        bounds: public bounds that mechanisms clamp to.

    >>> poisson(3, bounds=(0, 20)).quantile(0.5)
    3.0
    """
    law = Poisson(_positive("mean", mean))
    if law.mean > 10**9:
        raise InvalidParameter(f"mean must be at most 1e9, got mean={checks.shown(mean)}")
    return _source("poisson", (mean,), f"Poisson, mean {law.mean:g}", law, bounds)


def clusters(
    centers: Sequence[object], sd: object, bounds: object, *, shares: Sequence[object] | None = None
) -> Source:
    """A few narrow normal heaps with empty stretches between them, not clipped.

    Args:
        centers: the middles of the heaps.
        sd: the standard deviation of every heap, or a sequence with one for each.
        bounds: public bounds that mechanisms clamp to.
        shares: the share of the records in each heap; equal unless told otherwise.

    >>> source = clusters([20, 50, 90], 0.5, bounds=(0, 100), shares=[0.25, 0.5, 0.25])
    >>> source.mean, source.quantile(0.5)
    (52.5, 50.0)
    """
    middles = _numbers("centers", centers)
    several = sd if isinstance(sd, list | tuple | np.ndarray) else [sd] * len(middles)
    widths = tuple(_positive("sd", one) for one in several)
    equal = [Fraction(1, len(middles))] * len(middles)
    parts = _shares("shares", equal if shares is None else shares)
    if not len(middles) == len(widths) == len(parts):
        sizes = f"got {len(middles)} centers, {len(widths)} sd, {len(parts)} shares"
        raise InvalidParameter(f"centers, sd and shares must be equally many, {sizes}")
    words = f"{len(middles)} heaps around {', '.join(f'{middle:g}' for middle in middles)}"
    law = Clusters(middles, widths, tuple(map(float, parts)))
    return _source("clusters", (list(centers), sd), words, law, bounds)


def atoms(values: Sequence[object], probabilities: Sequence[object], *, bounds: object = None) -> Source:
    """A few values, each with its probability.

    Args:
        values: different numbers.
        probabilities: one for each value, positive, with sum 1.
        bounds: public bounds; the smallest and the largest value unless told otherwise.

    >>> atoms([0, 10], [0.9, 0.1]).mean
    1.0
    """
    numbers, parts = _numbers("values", values), _shares("probabilities", probabilities)
    if len(numbers) != len(parts):
        sizes = f"got {len(numbers)} values and {len(parts)} probabilities"
        raise InvalidParameter(f"values and probabilities must be equally many, {sizes}")
    if len(set(numbers)) < max(len(numbers), 2):
        raise InvalidParameter(f"values must be different, at least two, got values={checks.shown(values)}")
    pairs = sorted(zip(numbers, map(float, parts), strict=True))
    law = Atoms(tuple(value for value, _ in pairs), tuple(share for _, share in pairs))
    words = f"{len(pairs)} values with given probabilities"
    ends = (law.values[0], law.values[-1])
    return _source("atoms", (list(values),), words, law, bounds, support=ends)


def _source(
    name: str,
    shown: Sequence[object],
    words: str,
    law: Population,
    bounds: object,
    *,
    support: Bounds | None = None,
) -> Source:
    told = ", ".join(checks.shown(one) for one in shown)
    ends = support if bounds is None and support else bounds_of(bounds)
    return Source(name=f"{name}({told})", words=words, bounds=ends, population=law)


def _span(ends: Bounds) -> str:
    return f"[{ends[0]:g}, {ends[1]:g}]"


def _positive(name: str, value: object) -> float:
    checks.positive(name, value)
    return number(name, value)


def _numbers(name: str, values: Sequence[object]) -> tuple[float, ...]:
    if not isinstance(values, list | tuple | np.ndarray) or not len(values):
        raise InvalidParameter(f"{name} must be a sequence of numbers, got {name}={checks.shown(values)}")
    return tuple(number(name, value) for value in values)


def _shares(name: str, values: Sequence[object]) -> tuple[Fraction, ...]:
    _numbers(name, values)
    parts = tuple(checks.positive(name, value) for value in values)
    total = sum(parts, start=Fraction(0))
    # A sum such as 3 x 0.3333333 is meant as 1; a forgotten share is not.
    if abs(total - 1) > Fraction(1, 10**6):
        raise InvalidParameter(f"{name} must sum to 1, got a sum of {checks.decimal(total)}")
    return tuple(part / total for part in parts)
