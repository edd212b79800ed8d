"""The attack on low-order bits: float noise lands on other numbers for other data."""

from collections.abc import Callable
from math import inf, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.features import lattice_features
from sfumato.audit.outcomes import numbers_of
from sfumato.audit.result import AttackResult
from sfumato.audit.statistical import FEWEST, MOST, Progress, checked_delta, clopper_pearson, draw, estimate
from sfumato.checks import Number, between, float_up, positive, whole
from sfumato.grid import Floats

# Without a claim, low-order bits must tell more than any mechanism in use would admit.
_LARGE_EPSILON = 3.0


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
    with np.errstate(invalid="ignore", over="ignore"):
        noise = released - value
        # Were the output possible, the noise would be the rounded difference or a float beside it.
        candidates = (noise, np.nextafter(noise, -inf), np.nextafter(noise, inf))
        possible: NDArray[np.bool_] = np.any([value + each == released for each in candidates], axis=0)
    return ~possible


def low_bits(
    mechanism: Callable[..., Any],
    left: Any,
    right: Any,
    *,
    values: tuple[float, float] | None = None,
    epsilon: Number | None = None,
    delta: Number = 0,
    samples: int = 10_000,
    confidence: Number = 0.999,
    batched: bool = False,
    progress: Progress | None = None,
) -> AttackResult:
    """Tells two data sets apart by the low-order bits of what is released.

    Two distinguishers. Outputs that no float noise can give on the other value are counted, where the values
    before noise are known or are sums or means of the data. And for any numbers, the lattice that they lie
    on: how fine the multiples of powers of two are for their magnitude, learnt on half of the draws and
    tested on the others.

    Guarantee:
        Succeeds wrongly with probability at most 1 - `confidence` against a mechanism that keeps the epsilon
        claimed at `delta`, if draws are independent. Without a claim, low-order bits that tell more than an
        epsilon of 3 count as success.

    Args:
        mechanism: called as `mechanism(data)`, or as `mechanism(data, size)` if `batched`.
        left, right: two neighbouring data sets, or two numbers.
        values: the values before noise; otherwise `left` and `right` themselves if these are numbers, and
            their sums and means if they are columns.
        epsilon, delta: what is claimed.
        samples: how many draws on each data set.
        confidence: how surely a success is one.
        batched: whether the mechanism returns `size` independent outcomes at once.
        progress: called now and then with the number of draws done and to do.

    Raises:
        InvalidParameter: a parameter out of range.

    References:
        [Mironov12], [Haney22], [Jin22].

    >>> from sfumato.laws import SeededBits
    >>> bits = SeededBits(1)
    >>> def naive(value, size):  # Laplace noise by the inverse of its distribution function, in floats
    ...     uniform = bits.words(size) / 2**64 - 0.5
    ...     return value - np.sign(uniform) * np.log1p(-2 * np.abs(uniform))
    >>> low_bits(naive, 0.0, 1.0, batched=True).verdict
    'succeeded'
    """
    size = whole("samples", samples, least=FEWEST, most=MOST)
    limit = _LARGE_EPSILON if epsilon is None else float_up(positive("epsilon", epsilon))
    allowed = checked_delta(delta)
    failure = (1 - between("confidence", confidence, 0, 1)) / 2
    drawn = draw(mechanism, left, right, size, batched=batched, progress=progress)
    one, other = (_numbers(sample) for sample in drawn)
    if not np.isfinite(one).any() or not np.isfinite(other).any() or one.shape != other.shape:
        return AttackResult(attack="low-order bits", succeeded=False, evidence="outcomes are no numbers")
    figures: dict[str, float] = {}
    words = f"{len(one):,} draws on each side lie on one lattice"
    found = estimate(one, other, delta=allowed, confidence=1 - failure, look_at=lattice_features)
    bound = figures["epsilon"] = found.epsilon
    if bound > limit:
        words = f"epsilon is at least {bound:.3g}, by {found.event}"
    guesses = [values] if values else _guesses(left, right) if one.shape[1] == 1 else []
    most = -inf
    for guess in guesses:
        told, name, shares = _told(one, other, guess, float(failure) / (4 * len(guesses)), allowed)
        if told > most:
            most = told
            figures |= shares
        if told > max(limit, bound):
            bound = told
            words = f"{shares[f'impossible_{name}']:.1%} of outputs on the {name} are impossible on the other"
    return AttackResult(attack="low-order bits", succeeded=bound > limit, evidence=words, figures=figures)


def _told(
    one: Floats, other: Floats, guess: tuple[float, float], failure: float, delta: float
) -> tuple[float, str, dict[str, float]]:
    """The epsilon that impossible outputs prove, on which side they are, and how many on each."""
    shares, proved = {}, []
    for name, sample, opposite, value in (("left", one, other, guess[1]), ("right", other, one, guess[0])):
        # What float noise cannot give must also be rare on its own side: else it is another noise.
        hits, control = (_impossible(each[:, 0], value) for each in (sample, opposite))
        lower = clopper_pearson(hits, len(sample), failure)[0] - delta
        upper = clopper_pearson(control, len(opposite), failure)[1]
        proved.append((log(lower / upper) if lower > 0 else 0.0, name))
        shares[f"impossible_{name}"] = hits / len(sample)
    return *max(proved), shares


def _impossible(outputs: Floats, value: float) -> int:
    return int((impossible_outputs(outputs, value) & ~np.isnan(outputs)).sum())


def _numbers(sample: Any) -> Floats:
    """Outcomes as rows of numbers; what is no number, or no row of the first one's length, is NaN."""
    if isinstance(sample, np.ndarray) and sample.dtype.kind in "biuf" and sample.dtype.itemsize <= 8:
        return sample.astype(np.float64).reshape(len(sample), -1)
    listed = [numbers_of(outcome) for outcome in sample]
    width = next((len(row) for row in listed if row is not None), 1)
    numbers = np.full((len(listed), width), np.nan)
    for i, row in enumerate(listed):
        if row is not None and len(row) == width:
            numbers[i] = row
    return numbers


def _guesses(left: Any, right: Any) -> list[tuple[float, float]]:
    """What the values before noise may be: the inputs themselves, or the sums and the means of columns."""
    try:
        one, other = (np.asarray(each, dtype=np.float64) for each in (left, right))
    except (TypeError, ValueError):
        return []
    if one.size == 0 or other.size == 0:
        return []
    pairs = [(float(one.sum()), float(other.sum())), (float(one.mean()), float(other.mean()))]
    return [pair for pair in dict.fromkeys(pairs) if np.isfinite(pair).all() and pair[0] != pair[1]]
