"""Noise that never reaches a given bound: a smooth bump on the integers, with an exact sampler."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from sfumato.checks import keep as store
from sfumato.checks import one_of, whole
from sfumato.laws.bits import Bits, Integers, Words
from sfumato.laws.candidates import as_fractions_of_one, collect
from sfumato.laws.coins import Uniform, exp_coin
from sfumato.laws.gaussian import check_exponential
from sfumato.laws.law import Floats, elementwise, smallest_radius

# One side of a table takes 32 MiB at this bound.
MAX_BOUND = 2**22
POWERS = (1, 2, 3)

# The float chance of keeping a candidate errs by less than 2^-39: see the proof.
_MARGIN = 2.0**-30
# Sums of sums of this many terms keep the relative error of a tail below 1e-12.
_ROW = 2048


@dataclass(frozen=True)
class BoundedNoise:
    r"""The bounded law centred at 0: P(i) proportional to exp(-(M^2 / (M^2 - i^2))^p) for :math:`|i| < M`.

    Guarantee:
        No outcome reaches the bound :math:`M`. `sample` draws exactly this law, given uniform bits and a
        float64 exponential that errs by less than 2^-30 (checked on a fixed table, to 2^-40, before the first
        draw). The float only filters; what it leaves open is settled by integers. The law is symmetric
        and log-concave. Proof: docs/proofs/bounded-noise.md.

    Args:
        bound: M, at least 1 and at most 2^22; tails take a table of 8 M bytes, made on first use.
        power: p, one of 1, 2 and 3. A larger one is flatter in the middle and falls more steeply at the ends.

    Raises:
        InvalidParameter: a bound or a power out of range.

    References:
        [DaganKur22] for the law; [CKS20] for the coins of its sampler.

    >>> from sfumato.laws.bits import SystemBits
    >>> law = BoundedNoise(bound=100, power=2)
    >>> round(law.variance**0.5, 4), law.radius(0.95), law.sf(99)
    (31.3428, 57, 0.0)
    >>> -100 < law.sample(SystemBits()) < 100
    True
    """

    bound: int
    power: int

    def __post_init__(self) -> None:
        store(
            self, bound=whole("bound", self.bound, least=1, most=MAX_BOUND), power=checked_power(self.power)
        )

    @elementwise
    def logpmf(self, outcome: Floats) -> Floats:
        """The log probability of each outcome."""
        inside = np.abs(outcome) < self.bound
        exponents = excess(np.where(inside, outcome, 0.0), self.bound, self.power)
        return np.where(inside, -exponents - math.log(self.table.total), -np.inf)

    @elementwise
    def cdf(self, outcome: Floats) -> Floats:
        """P(X <= outcome)."""
        return self._tail(-outcome)

    @elementwise
    def sf(self, outcome: Floats) -> Floats:
        """P(X > outcome)."""
        return self._tail(outcome + 1)

    @property
    def mean(self) -> float:
        """Zero."""
        return 0.0

    @property
    def variance(self) -> float:
        """The variance: near 0.158, 0.098 and 0.071 times the square of the bound, for powers 1, 2 and 3."""
        return self.table.variance

    def radius(self, confidence: float) -> int:
        """The smallest t with P(|X| <= t) >= confidence."""
        return smallest_radius(lambda t: 2 * float(self.sf(t)), confidence)

    def sample(self, bits: Bits, size: int | None = None) -> int | Integers:
        """One outcome as an int, or `size` independent ones as an int64 array."""
        check_exponential()
        return collect(partial(bounded_block, self.bound, self.power, bits), size)

    @property
    def table(self) -> "Table":
        """Sums over one side of the law, shared by equal laws."""
        return _table(self.bound, self.power)

    def _tail(self, start: Floats) -> Floats:
        """P(X >= start)."""
        table = self.table
        near = np.clip(np.abs(start - 0.5) + 0.5, 1, self.bound).astype(np.int64)
        tails = table.tails[near - 1] / table.total
        return np.where(start > 0, tails, 1.0 - tails)


def checked_power(power: object) -> int:
    """One of the powers as a Python integer, also if it comes as a NumPy one."""
    return one_of("power", int(power) if isinstance(power, np.integer) else cast(int, power), POWERS)


class Table(NamedTuple):
    """Sums of the weights exp(1 - (M^2 / (M^2 - i^2))^p): from 1, 2, ... M on, over all, and the variance."""

    tails: Floats
    total: float
    variance: float


# Two tables of the largest bound are 64 MiB.
@lru_cache(maxsize=2)
def _table(bound: int, power: int) -> Table:
    places = np.arange(1, bound, dtype=np.float64)
    with np.errstate(under="ignore"):
        weights = np.exp(-excess(places, bound, power))
        tails = np.append(_sums_from_the_end(weights), 0.0)
        total = 1.0 + 2.0 * float(tails[0])
        variance = 2.0 * float(np.sum(weights * places * places)) / total
    tails.flags.writeable = False
    return Table(tails, total, variance)


def _sums_from_the_end(values: Floats) -> Floats:
    # Two levels: a running sum over all would err by as many roundings as there are values.
    padded = np.zeros(-(-values.size // _ROW) * _ROW)
    padded[: values.size] = values[::-1]
    rows = np.cumsum(padded.reshape(-1, _ROW), axis=1)
    before = np.cumsum(np.append(0.0, rows[:-1, -1])) if rows.size else np.zeros(0)
    return np.asarray((rows + before[:, np.newaxis]).ravel()[: values.size][::-1])


def excess(places: Floats, bound: int, power: int) -> Floats:
    """(M^2 / (M^2 - i^2))^p - 1, by how much the exponent at i is above that at 0; 8 roundings at most."""
    # M - i and M + i are exact, so nothing cancels near the ends; nor does it near 0.
    x = places * places / ((bound - places) * (bound + places))
    if power == 1:
        return np.asarray(x)
    return np.asarray(x * (2 + x) if power == 2 else x * (3 + x * (3 + x)))


def exact_excess(place: int, bound: int, power: int) -> Fraction:
    """The same as an exact fraction."""
    return Fraction(bound * bound, bound * bound - place * place) ** power - 1


def bounded_block(bound: int, power: int, bits: Bits, count: int) -> Integers:
    """The outcomes kept among `count` uniform candidates."""
    places: Integers = bits.below_each(2 * bound - 1, count) - (bound - 1)
    return places[keep(places, bound, power, bits.words(count), bits)]


def keep(places: Integers, bound: int, power: int, coins: Words, bits: Bits) -> NDArray[np.bool_]:
    """Independent coins that come up with exactly the weight of each place."""
    with np.errstate(under="ignore"):
        chances = np.exp(-excess(places.astype(np.float64), bound, power))
    above = chances - as_fractions_of_one(coins, 64)
    kept = above > _MARGIN
    for at in np.flatnonzero(np.abs(above) <= _MARGIN):
        coin = exp_coin(exact_excess(int(places[at]), bound, power))
        kept[at] = Uniform(bits, int(coins[at]), 64).below(coin)
    return np.asarray(kept)
