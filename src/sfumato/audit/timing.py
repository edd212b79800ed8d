"""The attack on the time of a call: whether it tells the noise or the data."""

import copy
import gc
import io
import itertools
import pickle
import time
from collections.abc import Callable
from math import erfc, sqrt
from typing import Any

import numpy as np

from sfumato.audit.outcomes import numbers_of
from sfumato.audit.result import AttackResult
from sfumato.checks import between, whole
from sfumato.grid import Floats
from sfumato.laws.bits import default_bits

# Calls whose times are thrown away: caches and lazy imports are made by them.
_WARM_UP = 20
# So many bytes are read before a call: more than the nearest cache holds.
_SCRATCH = 2**17
# By what factor neighbours must be further apart than two copies of the same data.
_CLEARLY = 2.0


def timing(
    mechanism: Callable[[Any], Any],
    left: Any,
    right: Any = None,
    *,
    calls: int = 4000,
    level: float = 1e-6,
) -> AttackResult:
    """Whether the time of a call goes with the size of the noise, or differs between neighbours.

    Two tests on ranks, so that pauses of a busy machine count as one late call each. The rank correlation of
    time and distance of the answer from the median answer; and, if `right` is given, calls on both in turns
    of random order, with the signed ranks of their differences in time.

    Where an object lies in memory changes the time of a call too, so that no call sees the same object
    twice: each is given a fresh copy, made outside of the time that is measured. A control of calls on
    another series of copies of `left` must be clearly exceeded: by a factor of two.

    What a first series of calls finds must be found again in a second one: early calls of a process differ
    in time for a while, from what lies where in memory.

    Guarantee:
        Succeeds wrongly with probability at most about `level`, however busy the machine is: the noise is
        independent between calls and the order within turns is random, so that under "time tells nothing" all
        permutations are equally likely. The tail of the permutations is that of the normal law with their
        exact variance. No time is compared with a fixed number. Data that cannot be copied are not compared.

    Args:
        mechanism: called as `mechanism(data)`.
        left, right: two neighbouring data sets; without `right` only the noise is tested.
        calls: how many timed calls on each.
        level: the probability of a false alarm.

    Raises:
        InvalidParameter: a parameter out of range.

    References:
        [Jin22].

    >>> from fractions import Fraction
    >>> from sfumato.laws import DiscreteLaplace, SystemBits
    >>> noise = DiscreteLaplace(Fraction(100))
    >>> def leaky(value):  # a loop as long as the noise is large
    ...     drawn = noise.sample(SystemBits())
    ...     return value + drawn + sum(0 for _ in range(100 * abs(drawn)))
    >>> timing(leaky, 0, calls=400).verdict
    'succeeded'
    """
    count = whole("calls", calls, least=50, most=10**7)
    share = float(between("level", level, 0, 1)) / 2
    # The last one is the control.
    copies = [_copies(data) for data in ((left,) if right is None else (left, right, left))]
    fresh = [each for each in copies if each is not None]
    compared = len(copies) > 1 and len(fresh) == len(copies)
    inputs = fresh if compared else [copies[0] or (lambda: left)]
    missing = right is not None and not compared
    found = _series(mechanism, inputs, count, share, missing=missing)
    return _series(mechanism, inputs, count, share, missing=missing) if found.succeeded else found


def _series(
    mechanism: Callable[[Any], Any],
    inputs: list[Callable[[], Any]],
    count: int,
    share: float,
    *,
    missing: bool,
) -> AttackResult:
    """The tests on one series of calls; `missing` if neighbours cannot be compared."""
    seconds, answers = _timed(mechanism, inputs, count)
    figures: dict[str, float] = {}
    said: list[str] = []
    sizes = _distances(answers)
    if sizes is None:
        said.append("answers are no numbers")
    else:
        figures["correlation"] = correlation = _rank_correlation(seconds[0], sizes)
        # The permutation variance of a rank correlation is 1 / (n - 1), with or without ties.
        figures["p_noise"] = _tail(correlation * sqrt(count - 1))
        said.append(f"rank correlation of time and noise {correlation:+.3f}, p = {figures['p_noise']:.2g}")
    told = figures.get("p_noise", 1.0) < share
    if len(inputs) > 1:
        figures["deviations"] = deviations = _signed_ranks(seconds[0] - seconds[1])
        figures["p_data"] = _tail(deviations)
        figures["control"] = control = _signed_ranks(seconds[0] - seconds[2])
        said.append(f"neighbours {deviations:+.1f} standard errors apart, p = {figures['p_data']:.2g}")
        said.append(f"two copies {control:+.1f} apart")
        told |= figures["p_data"] < share and abs(deviations) > _CLEARLY * abs(control)
    elif missing:
        said.append("data cannot be copied, so that neighbours are not compared")
    return AttackResult(attack="timing", succeeded=told, evidence="; ".join(said), figures=figures)


def _copies(data: Any) -> Callable[[], Any] | None:
    """A maker of copies that share nothing with the data nor with each other; None if there is none."""
    try:
        stream = io.BytesIO()
        pickler = pickle.Pickler(stream, protocol=5)
        pickler.fast = True  # what the data hold twice is written twice: its place in memory must not tell
        pickler.dump(data)
        stored = stream.getvalue()
        pickle.loads(stored)
        return lambda: pickle.loads(stored)
    except Exception:  # what cannot be stored may still be copied
        pass
    try:
        copy.deepcopy(data)
    except Exception:
        return None
    return lambda: copy.deepcopy(data)


def _small(make: Callable[[], Any]) -> bool:
    return isinstance(make(), bool | int | float | str | None)


def _timed(
    mechanism: Callable[[Any], Any], inputs: list[Callable[[], Any]], count: int
) -> tuple[list[Floats], list[Any]]:
    """The seconds of every call on each input, in random order within a turn, and the first's answers."""
    orders = list(itertools.permutations(range(len(inputs))))
    made, drawn = default_bits().below_each(len(orders), 2 * count).reshape(2, count).tolist()
    # Single numbers leave no trace in a cache, and small differences in time are seen better in a warm one.
    scratch = b"" if all(map(_small, inputs)) else bytes(_SCRATCH)
    seconds = [np.empty(count) for _ in inputs]
    answers: list[list[Any]] = [[] for _ in inputs]
    for make in inputs * _WARM_UP:
        _call(mechanism, make())
    collecting = gc.isenabled()
    gc.disable()
    try:
        for turn in range(count):
            # Copies are made in an order of its own, so that what lies where is random too.
            copies: list[Any] = [None] * len(inputs)
            for place in orders[made[turn]]:
                copies[place] = inputs[place]()
            for place in orders[drawn[turn]]:
                if scratch:
                    scratch.count(1)  # a cache that remembers how a copy was made forgets it
                start = time.perf_counter_ns()
                answer = _call(mechanism, copies[place])
                seconds[place][turn] = time.perf_counter_ns() - start
                # All answers are kept: to free one would be a part of the time of the next call.
                answers[place].append(answer)
    finally:
        if collecting:
            gc.enable()
    return seconds, answers[0]


def _call(mechanism: Callable[[Any], Any], data: Any) -> Any:
    try:
        return mechanism(data)
    except Exception:  # an error takes its time too
        return None


def _distances(answers: list[Any]) -> Floats | None:
    """How far each answer is from the median answer, summed over its numbers."""
    rows = [numbers_of(answer) for answer in answers]
    width = {len(row) for row in rows if row is not None}
    if len(width) != 1:
        return None
    nothing = np.full(width.pop(), np.nan)
    numbers = np.array([nothing if row is None else row for row in rows])
    numbers[~np.isfinite(numbers)] = np.nan
    numbers = numbers[:, ~np.isnan(numbers).all(axis=0)]
    if not numbers.size:
        return None
    with np.errstate(over="ignore"):
        return np.asarray(np.nansum(np.abs(numbers - np.nanmedian(numbers, axis=0)), axis=1))


def _ranks(numbers: Floats) -> Floats:
    """Ranks from 1 on; equal numbers share the middle of theirs."""
    _, places, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[places], dtype=np.float64)


def _rank_correlation(one: Floats, other: Floats) -> float:
    first, second = (_ranks(each) - (len(each) + 1) / 2 for each in (one, other))
    spread = sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / spread if spread else 0.0


def _signed_ranks(differences: Floats) -> float:
    """The sum of the signed ranks in standard errors, given the sizes: each sign is a fair coin."""
    moved = differences[differences != 0]
    ranks = _ranks(np.abs(moved))
    spread = sqrt(float(ranks @ ranks))
    return float(np.sign(moved) @ ranks) / spread if spread else 0.0


def _tail(deviations: float) -> float:
    return erfc(abs(deviations) / sqrt(2))
