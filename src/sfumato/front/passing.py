"""The first threshold that a count passes, in one line."""

from collections.abc import Sequence
from typing import Any

from sfumato.checks import Number
from sfumato.data.counts import NullRule
from sfumato.front.gate import answer, one_budget
from sfumato.laws import Bits
from sfumato.mechanisms import Noise
from sfumato.privacy import Budget, Neighbours
from sfumato.release import Release
from sfumato.statistics import FirstPassing


def first_passing(
    values: Any,
    *,
    count: int,
    at: Sequence[Number] | None = None,
    bounds: tuple[Number, Number] | None = None,
    step: Number | None = None,
    from_above: bool = False,
    epsilon: Number | None = None,
    budget: Budget | None = None,
    neighbours: Neighbours = "substitution",
    nulls: NullRule | None = None,
    noise: Noise = "auto",
    bits: Bits | None = None,
) -> Release:
    """The lowest public threshold that more than `count` values are at or below, released privately.

    Guarantee:
        Differential privacy at exactly the cost stated in the release, however many thresholds there are; see
        `sfumato.FirstPassing`.

    Args:
        count: the public number of values that must be passed.
        at: the thresholds, increasing; or `bounds` and `step` for equally spaced ones.
        from_above: from the highest threshold down, for values at or above.
        noise: "auto" for one-sided geometric noise, or "laplace" for two-sided noise.

    The other arguments and the errors are those of `sfumato.count`.

    >>> import sfumato as sf
    >>> sf.first_passing(range(100), count=30, at=range(0, 100, 10), epsilon=1e4).value
    30.0
    >>> sf.first_passing(range(100), count=500, at=range(0, 100, 10), epsilon=1e4).value is None
    True
    """
    query = FirstPassing(
        budget=one_budget(epsilon, budget),
        at=at,
        bounds=bounds,
        step=step,
        count=count,
        from_above=from_above,
        nulls=nulls,
        noise=noise,
    )
    return answer(values, query, neighbours, bits)
