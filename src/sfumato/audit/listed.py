"""Laws whose outcomes can be listed: quantiles on small grids, first crossings."""

import math
from typing import Any, Protocol, runtime_checkable

import numpy as np

from sfumato.audit.divergence import ORDERS
from sfumato.errors import NotSupported
from sfumato.grid import Floats

# Audits compare every outcome of thousands of laws: more than this would take minutes.
MOST_OUTCOMES = 20_000


@runtime_checkable
class Listed(Protocol):
    """A law that lists its outcomes."""

    @property
    def count(self) -> float: ...
    def outcomes(self) -> Any: ...
    def logpmf(self, outcome: Any) -> Any: ...


def log_probabilities(law: Listed) -> Floats:
    """The log probability of every outcome, in the order of `outcomes`."""
    if law.count > MOST_OUTCOMES:
        raise NotSupported(
            f"an audit lists up to {MOST_OUTCOMES:,} outcomes, and here there are more: use a larger step, "
            "fewer orders, or a method with fewer subcells"
        )
    return np.array([law.logpmf(outcome) for outcome in law.outcomes()], dtype=np.float64)


def log_ratio(left: Floats, right: Floats) -> float:
    """The largest |log P(o) / Q(o)| over all outcomes o."""
    if len(left) != len(right):
        return math.inf
    possible = np.isfinite(left) | np.isfinite(right)
    with np.errstate(invalid="ignore"):
        return float(np.abs((left - right)[possible]).max(initial=0.0))


def hockey_stick(left: Floats, right: Floats, epsilon: float) -> float:
    """The largest P(A) - exp(epsilon) Q(A) over all sets A of outcomes, in the worse direction."""
    p, q = np.exp(left), np.exp(right)
    factor = math.exp(min(epsilon, 700.0))
    return max(float(np.maximum(one - factor * other, 0).sum()) for one, other in ((p, q), (q, p)))


def concentrated(left: Floats, right: Floats) -> float:
    """The largest Rényi divergence divided by its order, over four orders and both directions."""
    if np.isinf(log_ratio(left, right)):
        return math.inf
    return max(_renyi(*pair, order) / order for pair in ((left, right), (right, left)) for order in ORDERS)


def _renyi(p: Floats, q: Floats, order: float) -> float:
    kept = np.isfinite(p)
    terms = order * p[kept] + (1 - order) * q[kept]
    largest = terms.max()
    return float((largest + np.log(np.exp(terms - largest).sum())) / (order - 1))
