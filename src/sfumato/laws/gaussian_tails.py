r"""Tails of the discrete Gaussian, by sums for small sigma and by the error function for large.

Let f(x) = exp(-x^2 / (2 s)) with s = sigma^2, and Z the sum of f over the integers. Poisson summation gives
Z = sqrt(2 pi s) (1 + 2 sum_m exp(-2 pi^2 s m^2)). For the tail the midpoint form of Euler and Maclaurin gives
sum_{k>=n} f(k) = I(a) + f'(a)/24 - 7 f'''(a)/5760 + ..., with a = n - 1/2 and I(a) the integral of f from a.
Derivatives are Hermite polynomials times f; term m has relative size (z / (2 pi sigma))^(2m), z = a/sigma,
and f underflows at z = 39, so six terms leave less than 1e-13 from sigma = 128 on.
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.laws.law import Floats, nearest_float

# From this sigma on tails come from the Euler-Maclaurin formula, below it from a table of sums.
_LARGE = 128
# f(x) is zero in float64 beyond this many sigmas.
_REACH = 39.0
# Below this, subnormal rounding would break relative error bounds.
_TINY = 1e-290
# B_2m(1/2) / (2m)! for m = 1, 2, ...: coefficients of the midpoint Euler-Maclaurin formula.
_MIDPOINT = (
    Fraction(-1, 24),
    Fraction(7, 5760),
    Fraction(-31, 967680),
    Fraction(127, 154828800),
    Fraction(-73, 3503554560),
    Fraction(1414477, 2678117105664000),
)


@lru_cache(maxsize=256)
def log_normalizer(sigma_squared: Fraction) -> float:
    """log Z."""
    if sigma_squared < 1:
        rate = nearest_float(1 / (2 * sigma_squared))
        return math.log1p(2 * sum(math.exp(-rate * k * k) for k in range(39, 0, -1)))
    s = float(sigma_squared)
    return 0.5 * math.log(2 * math.pi * s) + math.log1p(2 * sum(_dual_terms(s)))


@lru_cache(maxsize=256)
def variance_of(sigma_squared: Fraction) -> float:
    """The variance: the derivative of log Z, in the form that converges fast."""
    if sigma_squared < 1:
        rate = nearest_float(1 / (2 * sigma_squared))
        weights = [(k * k, math.exp(-rate * k * k)) for k in range(39, 0, -1)]
        return 2 * sum(square * w for square, w in weights) / (1 + 2 * sum(w for _, w in weights))
    s = float(sigma_squared)
    terms = _dual_terms(s)
    moment = sum(m * m * term for m, term in zip(range(4, 0, -1), terms, strict=True))
    return s * (1 - 8 * math.pi**2 * s * moment / (1 + 2 * sum(terms)))


def _dual_terms(s: float) -> list[float]:
    # The terms of the Poisson sum for m = 4, ..., 1; s >= 1 makes the next one smaller than e^-490.
    return [math.exp(-2 * math.pi**2 * s * m * m) for m in range(4, 0, -1)]


def tail(sigma_squared: Fraction, start: Floats) -> Floats:
    """P(X >= start), elementwise."""
    # By symmetry P(X >= n) = 1 - P(X >= 1 - n) for n <= 0.
    distance = np.where(start >= 1, start, 1 - start)
    beyond = _far_tail(sigma_squared, distance)
    return np.where(start >= 1, beyond, 1 - beyond)


def log_tail(sigma_squared: Fraction, start: Floats) -> Floats:
    """log P(X >= start), elementwise; does not underflow."""
    beyond = _far_tail(sigma_squared, np.where(start >= 1, start, 1 - start))
    with np.errstate(divide="ignore"):
        logs = np.where(start >= 1, np.log(beyond), np.log1p(-beyond))
    lost = (start >= 1) & (beyond < _TINY)
    if lost.any():
        logs[lost] = _log_lost_tail(sigma_squared, start[lost])
    return logs


def _log_lost_tail(sigma_squared: Fraction, start: Floats) -> Floats:
    # Relative to one value of f nothing underflows; here z >= 35.
    half_rate = nearest_float(1 / (2 * sigma_squared))
    start = np.minimum(start, 1e200)
    steep = start * 2 * half_rate > 0.3
    sums, at = np.empty_like(start), np.where(steep, start, start - 0.5)
    # Falling by e^-0.3 or more at each step, 150 terms reach below e^-45 of the first.
    i = np.arange(150.0)
    sums[steep] = np.exp(-i * half_rate * i - 2 * half_rate * start[steep, None] * i).sum(axis=-1)
    # A slower fall means sigma >= 116, and the formula above with Mills' ratio by its asymptotic series.
    sigma = math.sqrt(float(sigma_squared))
    z = at[~steep] / sigma
    term = mills = 1.0 / z
    for odd in range(1, 20, 2):
        term = -term * odd / (z * z)
        mills = mills + term
    sums[~steep] = sigma * mills + _corrections(z, sigma)
    return np.log(sums) - at * half_rate * at - log_normalizer(sigma_squared)


def _far_tail(sigma_squared: Fraction, start: Floats) -> Floats:
    if sigma_squared < _LARGE**2:
        table = _tail_table(sigma_squared)
        return np.take(table, np.minimum(start, len(table) - 1).astype(np.int64))
    root = math.sqrt(float(2 * sigma_squared))
    v = np.minimum((start - 0.5) / root, 64.0)
    total = root * (math.sqrt(math.pi) / 2) * _erfc(v)
    total = total + np.exp(-v * v) * _corrections(v * math.sqrt(2), root / math.sqrt(2))
    return np.asarray(total * math.exp(-log_normalizer(sigma_squared)))


def _corrections(z: Floats, sigma: float) -> Floats:
    # The derivative of order n of f is (-1/sigma)^n He_n(z) f, here for odd n.
    total = np.zeros_like(z)
    previous, current = np.ones_like(z), z
    for m, coefficient in enumerate(_MIDPOINT, start=1):
        order = 2 * m - 1
        total = total + float(coefficient) * current / sigma**order
        for n in (order, order + 1):
            previous, current = current, z * current - n * previous
    return total


def _erfc(values: Floats) -> Floats:
    return np.array([math.erfc(v) for v in values.ravel().tolist()]).reshape(values.shape)


@lru_cache(maxsize=32)
def _tail_table(sigma_squared: Fraction) -> Floats:
    # P(X >= n) for n = 0, 1, ...; sums run from the far end so that small terms come first.
    reach = math.ceil(_REACH * math.sqrt(float(sigma_squared))) + 2
    k = np.arange(reach + 1, dtype=np.float64)
    with np.errstate(under="ignore", over="ignore"):
        weights = np.exp(-k * k * nearest_float(1 / (2 * sigma_squared)))
        table = np.cumsum(weights[::-1])[::-1] * math.exp(-log_normalizer(sigma_squared))
    table[-1] = 0.0
    return table
