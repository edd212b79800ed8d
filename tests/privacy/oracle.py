"""Slow, independent truth for the privacy tests: sums over every outcome, in many digits, by definition."""

import itertools
import math
from fractions import Fraction

import mpmath as mp


def real(value):
    """A number as mpmath reads it, exactly for fractions."""
    fraction = Fraction(str(value)) if isinstance(value, float) else Fraction(value)
    return mp.mpf(fraction.numerator) / fraction.denominator


def gaussian_law(sigma_squared, reach=None):
    """{outcome: probability} of the discrete Gaussian, normalised over a range that holds all but e^-200."""
    variance = real(sigma_squared)
    reach = reach or int(20 * math.sqrt(float(variance))) + 4
    weights = {k: mp.exp(-mp.mpf(k * k) / (2 * variance)) for k in range(-reach, reach + 1)}
    total = mp.fsum(weights.values())
    return {k: weight / total for k, weight in weights.items()}


def laplace_law(scale, reach=None):
    """{outcome: probability} of the discrete Laplace, normalised in closed form."""
    rate = mp.exp(-1 / real(scale))
    reach = reach or int(120 * float(scale)) + 4
    return {k: (1 - rate) / (1 + rate) * rate ** abs(k) for k in range(-reach, reach + 1)}


def shifted_pair(law, shift):
    """Probabilities of every outcome when the answer is `shift` and when it is 0."""
    outcomes = sorted(set(law) | {k + shift for k in law})
    return [(law.get(k - shift, mp.mpf(0)), law.get(k, mp.mpf(0))) for k in outcomes]


def product_pair(*pairs):
    """Probabilities of every tuple of outcomes of independent pairs."""
    joint = []
    for combination in itertools.product(*pairs):
        left, right = mp.mpf(1), mp.mpf(1)
        for one, other in combination:
            left, right = left * one, right * other
        joint.append((left, right))
    return joint


def hockey_stick(pair, epsilon):
    """The exact delta at epsilon: the sum of what passes e^epsilon, over every outcome."""
    factor = mp.exp(real(epsilon))
    return mp.fsum(left - factor * right for left, right in pair if left > factor * right)


def renyi(pair, order):
    """The Rényi divergence of the pair at an order."""
    total = mp.fsum(left**order * right ** (1 - order) for left, right in pair if left > 0 and right > 0)
    return mp.log(total) / (order - 1)


def losses(pair):
    """{loss: probability} under the first law, equal losses merged: enough to compose exactly."""
    merged = {}
    for left, right in pair:
        if left > 0 and right > 0:
            key = mp.nstr(mp.log(left / right), 25)
            merged[key] = merged.get(key, mp.mpf(0)) + left
    return {mp.mpf(key): mass for key, mass in merged.items()}


def compose_losses(*distributions):
    """The distribution of a sum of independent losses."""
    total = {mp.mpf(0): mp.mpf(1)}
    for distribution in distributions:
        step = {}
        for (one, mass), (other, weight) in itertools.product(total.items(), distribution.items()):
            key = mp.nstr(one + other, 20)
            step[key] = step.get(key, mp.mpf(0)) + mass * weight
        total = {mp.mpf(key): mass for key, mass in step.items()}
    return total


def delta_of_losses(distribution, epsilon):
    """The exact delta at epsilon of a distribution of losses."""
    limit = real(epsilon)
    return mp.fsum(mass * (1 - mp.exp(limit - loss)) for loss, mass in distribution.items() if loss > limit)


def continuous_delta(epsilon, ratio):
    """The delta of continuous Gaussian noise, ratio = shift / sigma, from its definition."""
    limit, m = real(epsilon), mp.mpf(ratio)
    return mp.ncdf(m / 2 - limit / m) - mp.exp(limit) * mp.ncdf(-m / 2 - limit / m)


def zcdp_delta(rho, epsilon):
    """The infimum over orders of the conversion of zCDP, by golden section on a convex exponent."""
    spent, limit = real(rho), real(epsilon)

    def exponent(t):
        alpha = 1 + mp.exp(t)
        return (alpha - 1) * (alpha * spent - limit) - mp.log(alpha - 1) + alpha * mp.log(1 - 1 / alpha)

    low, high, golden = mp.mpf(-200), mp.mpf(200), (mp.sqrt(5) - 1) / 2
    for _ in range(160):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if exponent(left) < exponent(right) else (left, high)
    return min(mp.mpf(1), mp.exp(exponent((low + high) / 2)))
