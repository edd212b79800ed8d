"""Attacks on released numbers: what an observer can tell without knowing the law."""

from math import inf, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.checks import between
from sfumato.errors import InvalidParameter
from sfumato.grid import Floats

Outcomes = NDArray[Any]


def impossible_outputs(outputs: Floats, value: float) -> NDArray[np.bool_]:
    """Which outputs no float64 noise can give when it is added to `value`: the attack on low-order bits.

    The sum of two floats is rounded, and skips numbers that another value would reach. Where an output is
    impossible, an observer knows for certain that the data's value was not `value`, whatever epsilon
    promised. Outputs of an exact mechanism lie on one lattice for all values, and none is impossible.

    Guarantee:
        What is marked is impossible, in IEEE 754 arithmetic; no output that the sum can give is marked.

    Args:
        outputs: released numbers.
        value: what the data's value might have been.

    References:
        [Mironov12].

    >>> noise = np.log(np.arange(1, 1000) / 1000)  # one side of naive Laplace noise of scale 1
    >>> bool(impossible_outputs(0.0 + noise, 0.0).any()), bool(impossible_outputs(1.0 + noise, 1.0).any())
    (False, False)
    >>> round(float(impossible_outputs(0.0 - noise, 1.0).mean()), 1)  # the value was 0, and certainly not 1
    0.3
    """
    released = np.asarray(outputs, dtype=np.float64)
    noise = released - value
    # Were the output possible, the noise would be the rounded difference or a float beside it.
    candidates = (noise, np.nextafter(noise, -inf), np.nextafter(noise, inf))
    possible: NDArray[np.bool_] = np.any([value + each == released for each in candidates], axis=0)
    return ~possible


def epsilon_lower_bound(left: Outcomes, right: Outcomes, *, confidence: float = 0.95) -> float:
    """An epsilon that the mechanism surely exceeds, from draws on two neighbouring data sets alone.

    Half of the draws choose a threshold, the other half bound the probabilities of both sides of it by the
    method of Clopper and Pearson. It is blind to events rarer than about one in the number of draws, so
    a small bound proves nothing; a bound above the claim refutes it.

    Guarantee:
        Above the true pure epsilon with probability at most 1 - `confidence`, if the draws are independent.

    Args:
        left, right: equally many scalar outcomes on each data set.
        confidence: how surely the bound holds.

    References:
        [ClopperPearson34].

    >>> from fractions import Fraction
    >>> from sfumato.laws import DiscreteLaplace, SeededBits
    >>> noise = DiscreteLaplace(Fraction(1)).sample(SeededBits(1), 40_000)
    >>> 0.9 < epsilon_lower_bound(noise[:20_000], noise[20_000:] + 1) <= 1
    True
    """
    one, other = np.asarray(left), np.asarray(right)
    if one.ndim != 1 or one.shape != other.shape or len(one) < 2:
        raise InvalidParameter("left and right must be equally many outcomes, at least 2")
    failure = 1 - float(between("confidence", confidence, 0, 1))
    half = len(one) // 2
    threshold = _best_threshold(one[:half], other[:half], failure)
    return _bound(_count(one[half:], threshold), _count(other[half:], threshold), len(one) - half, failure)


def _best_threshold(one: Outcomes, other: Outcomes, failure: float) -> Any:
    """The t for which "at most t" or its opposite tells the data sets apart best, as far as the draws say."""
    spread = np.quantile(np.concatenate([one, other]), np.linspace(0, 1, 101), method="nearest")
    return max(np.unique(spread), key=lambda t: _bound(_count(one, t), _count(other, t), len(one), failure))


def _count(draws: Outcomes, threshold: Any) -> int:
    return int(np.count_nonzero(draws <= threshold))


def _bound(one: int, other: int, size: int, failure: float) -> float:
    """A lower bound of |log P/Q|, over an event and its opposite, from how often it was seen on each side."""
    from scipy.special import betaincinv  # here, because `import sfumato` loads NumPy alone

    best = 0.0
    for likely, unlikely in (
        (one, other),
        (other, one),
        (size - one, size - other),
        (size - other, size - one),
    ):
        # Eight Clopper-Pearson bounds are looked at, which share the probability of failing.
        lower = betaincinv(likely, size - likely + 1, failure / 8) if likely else 0.0
        upper = betaincinv(unlikely + 1, size - unlikely, 1 - failure / 8) if unlikely < size else 1.0
        best = max(best, log(lower / upper) if lower else 0.0)
    return best
