"""What the tests of streams share: exact losses over all short streams and over long runs."""

import itertools
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest

from sfumato.laws.law import log_cdf, log_sf
from sfumato.mechanisms.sparse import SparseMechanism

# Float64 in the log probabilities; the bounds themselves are exact.
ROUNDING = 1e-11

Values = tuple[int, ...]
Pattern = tuple[bool, ...]  # True for above
LogMass = Callable[[Values, Pattern], float]

both_kinds = pytest.mark.parametrize("one_sided", [True, False], ids=["one-sided", "two-sided"])
both_moves = pytest.mark.parametrize("same_direction", [True, False], ids=["same", "any"])


def calibrated(crossings: int = 1, **options) -> SparseMechanism:
    return SparseMechanism.calibrated(1, **{"sensitivity": 1, "crossings": crossings, **options})


def log_mass(mechanism: SparseMechanism) -> LogMass:
    """The log probability of a pattern; its factors commute, so that equal multisets are computed once."""

    @cache
    def canonical(below: Values, above: Values) -> float:
        answers = ("below",) * len(below) + ("above",) * len(above)
        return mechanism.law(below + above, 0).logpmf(answers)

    def logs(values: Values, pattern: Pattern) -> float:
        pairs = sorted(zip(pattern, values, strict=True))
        return canonical(
            tuple(value for above, value in pairs if not above),
            tuple(value for above, value in pairs if above),
        )

    return logs


def summed_log_mass(mechanism: SparseMechanism, seed: int = 1) -> LogMass:
    """The same by one sum over the threshold's noise, many times faster; held against the law at random."""
    threshold, query = noises(mechanism)
    # e^-60 of the wider noise is left out on either side.
    reach = 60 * int(max(mechanism.threshold_scale, mechanism.query_scale) + 1)
    bars = np.arange(0 if mechanism.one_sided else -reach, reach + 1)
    start, centring = np.asarray(threshold.logpmf(bars)), mechanism.comparison.centring

    @cache
    def tails(value: int, above: bool) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.asarray((log_sf if above else log_cdf)(query, bars + centring - value))

    @cache
    def canonical(pairs: tuple[tuple[bool, int], ...]) -> float:
        total = start + sum(tails(value, above) for above, value in pairs)
        highest = total.max()
        return float(highest + np.log(np.exp(total - highest).sum()))

    def logs(values: Values, pattern: Pattern) -> float:
        return canonical(tuple(sorted(zip(pattern, values, strict=True))))

    law, rng = log_mass(mechanism), np.random.default_rng(seed)
    for _ in range(40):
        count = int(rng.integers(1, 5))
        values = tuple(rng.integers(-6, 6, count).tolist())
        told = (False,) * (count - 1) + (bool(rng.integers(2)),)
        assert abs(logs(values, told) - law(values, told)) <= ROUNDING
    return logs


def patterns(length: int, crossings: int) -> list[Pattern]:
    """What can be told about this many values, if the stream has not halted before the last."""
    every = itertools.product((False, True), repeat=length)
    return [p for p in every if sum(p) < crossings or (sum(p) == crossings and p[-1])]


def audit(logs: LogMass, crossings: int, length: int, moves: Sequence[int], values=range(-2, 2)) -> float:
    """The largest log ratio over all values of this length, all moves of each and all patterns."""
    reach = max(abs(move) for move in moves)
    wide = range(values[0] - reach, values[-1] + reach + 1)
    worst = 0.0
    for shorter in range(1, length + 1):
        for pattern in patterns(shorter, crossings):
            table = np.array([logs(row, pattern) for row in itertools.product(wide, repeat=shorter)])
            table = table.reshape((len(wide),) * shorter)
            here = table[(slice(reach, reach + len(values)),) * shorter]
            for move in itertools.product(moves, repeat=shorter):
                moved = table[tuple(slice(reach + by, reach + by + len(values)) for by in move)]
                worst = max(worst, float(np.abs(here - moved).max()))
    return worst


def long_run_loss(
    logs: LogMass, crossings: int, same_direction: bool, many: int = 3000, low: int = -25
) -> float:
    """Many values go up and do not cross; those that cross go down, or stay: the worst case of the proof."""
    down = 0 if same_direction else -1
    pattern = (False,) * many + (True,) * crossings
    here = logs((0,) * many + (low,) * crossings, pattern)
    return here - logs((1,) * many + (low + down,) * crossings, pattern)


def noises(mechanism: SparseMechanism) -> tuple:
    return mechanism.comparison.threshold_noise, mechanism.comparison.query_noise
