"""Exact errors of laws whose density is constant on each of finitely many intervals."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato.checks import Number, exact
from sfumato.errors import InvalidParameter
from sfumato.grid import Floats

# Squares of larger numbers would leave float64.
LARGEST = 1e150


def expected_absolute_error(
    edges: Sequence[Number] | Floats, log_density: Sequence[Number] | Floats, target: Number
) -> float:
    r"""The mean distance from a target of a draw with a piecewise constant density, exactly.

    Statement: if the density on :math:`(e_i,e_{i+1})` is proportional to :math:`e^{l_i}`, then
    :math:`E|Y-\theta|=\sum_ip_ia_i` with :math:`p_i\propto(e_{i+1}-e_i)e^{l_i}` and :math:`a_i` the distance
    of the middle of the interval, or :math:`\frac{(\theta-e_i)^2+(e_{i+1}-\theta)^2}{2(e_{i+1}-e_i)}` if the
    target is inside. Proof: docs/proofs/quantile-tails.md.

    Guarantee:
        Equal to the expectation to a relative 1e-12, for log densities however far apart: only sums of
        positive terms are formed. Intervals of no length have no weight.

    Args:
        edges: finite numbers in order, at most 1e150 in size; ties are allowed.
        log_density: the log of the density on each interval, up to a constant; minus infinity is none.
        target: the number theta.

    >>> round(expected_absolute_error([0, 1, 1, 3], [0, 500, 0], 1), 6)
    0.833333
    >>> round(expected_absolute_error([0, 100, 101, 200], [-5000, -10_000, -9000], 50), 6)
    25.0
    """
    left, right, logs, theta = _law(edges, log_density, target)
    within = (left < theta) & (theta < right)
    inner = ((theta - left) ** 2 + (right - theta) ** 2) / (2 * (right - left))
    return _mean(logs, np.where(within, inner, np.abs((left - theta) / 2 + (right - theta) / 2)))


def mean_squared_error(
    edges: Sequence[Number] | Floats, log_density: Sequence[Number] | Floats, target: Number
) -> float:
    r"""The mean squared distance from a target of a draw with a piecewise constant density, exactly.

    Statement: with the :math:`p_i` of `expected_absolute_error`,
    :math:`E(Y-\theta)^2=\sum_ip_i\bigl((m_i-\theta)^2+\frac{(e_{i+1}-e_i)^2}{12}\bigr)`, :math:`m_i` the
    middle. This is the difference of the cubes of the ends, without their cancellation. Proof:
    docs/proofs/quantile-tails.md.

    Guarantee:
        Equal to the expectation to a relative 1e-12, for log densities however far apart.

    Args:
        edges, log_density, target: as for `expected_absolute_error`.

    >>> round(mean_squared_error([0, 1, 3], [0, 0], 0), 6), round(mean_squared_error([0, 12], [0], 6), 6)
    (3.0, 12.0)
    """
    left, right, logs, theta = _law(edges, log_density, target)
    middle = (left - theta) / 2 + (right - theta) / 2
    return _mean(logs, middle**2 + (right - left) ** 2 / 12)


def _mean(logs: Floats, errors: Floats) -> float:
    """The mean of errors that are not negative, by the logs of their weights, the largest of which is 0."""
    # A far cell of little weight can be all of the error: it must not vanish before it is multiplied.
    with np.errstate(divide="ignore"):
        terms = logs + np.log(errors)
    top = terms.max()
    return float(np.exp(terms - top).sum() / np.exp(logs).sum() * np.exp(top)) if top > -np.inf else 0.0


def _law(edges: Any, log_density: Any, target: object) -> tuple[Floats, Floats, Floats, float]:
    """The ends of the intervals that have weight, the logs of their weights, and the target."""
    places, logs = numbers("edges", edges), numbers("log_density", log_density, lowest=-np.inf)
    theta = float(numbers("target", [exact("target", target)])[0])
    if len(places) != len(logs) + 1 or len(logs) < 1:
        raise InvalidParameter(
            f"edges must be one more than log_density, got {len(places)} edges and {len(logs)} densities"
        )
    if np.any(np.diff(places) < 0):
        raise InvalidParameter("edges must be in increasing order")
    keep = (np.diff(places) > 0) & (logs > -np.inf)
    if not keep.any():
        raise InvalidParameter("log_density must be finite on an interval that is longer than zero")
    left, right = places[:-1][keep], places[1:][keep]
    # The constant goes first: added to a log of thousands, the log of a width would lose its digits.
    masses = (logs[keep] - logs[keep].max()) + np.log(right - left)
    return left, right, masses - masses.max(), theta


def numbers(name: str, values: Any, *, lowest: float = -LARGEST) -> Floats:
    """A line of numbers as float64, refused without showing any of them."""
    kinds = f"{name} must be a line of numbers"
    if isinstance(values, str | bytes | dict | set):
        raise InvalidParameter(kinds)
    try:
        raw = np.asarray(values)
        found = raw.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter(kinds) from None
    if raw.ndim != 1 or raw.dtype.kind not in "iufO":
        raise InvalidParameter(kinds)
    if not np.all((found >= lowest) & (found <= LARGEST)):
        raise InvalidParameter(f"{name} must be numbers in [{lowest}, {LARGEST}]")
    return found
