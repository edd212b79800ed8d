r"""The first of many noisy values to pass a noisy threshold.

The probability that value k is the first to cross is a sum over the integers t that the threshold's noise can
take, of :math:`P(\rho = t) \prod_{i<k} P(\nu \le t - m_i) P(\nu > t - m_k)`, with :math:`m_i` the value minus
the threshold. Between the points :math:`m_i` every factor is an entire function of t, so that the sum over a
long run of integers is a Gauss sum with few nodes; far from all of them the terms are a geometric
progression, whose sum is closed. Everything is done on logarithms.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.checks import whole
from sfumato.errors import InvalidParameter
from sfumato.laws.bits import Bits, Integers
from sfumato.laws.candidates import CHUNK
from sfumato.laws.geometric import Geometric, log_one_minus_exp
from sfumato.laws.laplace import DiscreteLaplace
from sfumato.laws.law import Floats, elementwise, nearest_float, smallest_radius

IntegerNoise = DiscreteLaplace | Geometric

# With noise below 2^62, no sum of the sampler leaves int64.
LARGEST_VALUE = 1 << 60
# The first block of a draw; later ones are four times longer each, up to a chunk of the noise sampler.
_FIRST_BLOCK = 16
# Nodes of a Gauss sum. On runs of one noise scale the error is far below that of float64.
_NODES = 24
# e^-40 of a sum may be left out, and a factor may be e^-40 away from a power: both are below 2^-57.
_NEGLIGIBLE = 40
# How far, in scales of the threshold's noise, the first and the later passes look for terms.
_FIRST_DEPTH = 64.0
_DEPTH_OF_FLOATS = 800.0
_DEEPEST = 1e15
# Log probabilities that one array of a pass holds.
_CELLS = 1 << 18


@dataclass(frozen=True, eq=False)
class FirstCrossing:
    """The first index k with values[k] + noise > threshold + noise, or the number of values if there is none.

    The threshold has one noise for all comparisons, every value has its own. The last outcome, `points` - 1,
    means that no value crossed.

    Guarantee:
        `sample` draws exactly this law, given uniform bits: both sides of each comparison are integers. The
        time of a draw depends on the outcome and on public numbers. `logpmf` errs by about 1e-12 of the
        larger of 1 and the logarithm. Proof: docs/proofs/above-threshold.md.

    Args:
        values: integers of magnitude at most 2^60, in the order of the scan; none at all is allowed.
        threshold: an integer of magnitude at most 2^60.
        threshold_noise: two-sided (`DiscreteLaplace`) or one-sided (`Geometric`), added as it is.
        query_noise: likewise, fresh for every value.

    Raises:
        InvalidParameter: values that are no row of integers, or an integer out of range.

    References:
        [DR14], algorithm 1.

    >>> from fractions import Fraction
    >>> from sfumato.laws.bits import SystemBits
    >>> noise = DiscreteLaplace(Fraction(2))
    >>> law = FirstCrossing(np.array([0, 5, 100]), 50, noise, noise)
    >>> law.points, law.sample(SystemBits())
    (4, 2)
    >>> law.logpmf(np.arange(4)).round(6).tolist()
    [-23.378943, -20.988338, -0.0, -22.897392]
    """

    values: Integers
    threshold: int
    threshold_noise: IntegerNoise
    query_noise: IntegerNoise

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _integer_row(self.values))
        threshold = whole("threshold", self.threshold, least=-LARGEST_VALUE, most=LARGEST_VALUE)
        object.__setattr__(self, "threshold", threshold)

    @property
    def points(self) -> int:
        """The number of outcomes: one for each value, and one for no crossing."""
        return len(self.values) + 1

    @property
    def count(self) -> int:
        """The number of outcomes, for audits that list them."""
        return self.points

    def outcomes(self) -> Integers:
        """Every outcome, 0..points-1."""
        return np.arange(self.points, dtype=np.int64)

    @elementwise
    def logpmf(self, outcome: Floats) -> Floats:
        """The log probability of each outcome; all of them are possible."""
        inside = (outcome >= 0) & (outcome < self.points)
        index = np.where(inside, outcome, 0).astype(np.int64)
        return np.where(inside, self._log_masses.at(index), -np.inf)

    @elementwise
    def cdf(self, outcome: Floats) -> Floats:
        """P(X <= outcome)."""
        index = np.clip(outcome, -1, self.points - 1).astype(np.int64)
        return np.where(outcome >= self.points - 1, 1.0, self._mass_before[index + 1])

    @elementwise
    def sf(self, outcome: Floats) -> Floats:
        """P(X > outcome)."""
        index = np.clip(outcome, -1, self.points - 1).astype(np.int64)
        return np.where(outcome < 0, 1.0, self._mass_from[index + 1])

    @property
    def mean(self) -> float:
        """The mean outcome."""
        return float((self._masses * self.outcomes()).sum())

    @property
    def variance(self) -> float:
        """The variance of the outcome."""
        return float((self._masses * (self.outcomes() - self.mean) ** 2).sum())

    def radius(self, confidence: float) -> int:
        """The smallest t such that the outcome is within t of the median with this confidence."""
        centre = int(np.searchsorted(self._mass_before[1:], 0.5))
        return smallest_radius(lambda t: self.cdf(centre - t - 1) + self.sf(centre + t), confidence)

    def sample(self, bits: Bits, size: int | None = None) -> int | Integers:
        """One outcome as an int, or `size` independent ones as an int64 array."""
        if size is None:
            return int(self._crossings(bits, 1)[0])
        group = CHUNK // _FIRST_BLOCK
        drawn = [self._crossings(bits, min(group, size - start)) for start in range(0, size, group)]
        return np.concatenate([np.empty(0, dtype=np.int64), *drawn])

    def _crossings(self, bits: Bits, count: int) -> Integers:
        bars = self.threshold + _drawn(self.threshold_noise, bits, count)
        found = np.full(count, len(self.values), dtype=np.int64)
        scanning = np.arange(count)
        start, length = 0, _FIRST_BLOCK
        while start < len(self.values) and scanning.size:
            block = self.values[start : start + length]
            noise = _drawn(self.query_noise, bits, scanning.size * block.size)
            crossed = block + noise.reshape(scanning.size, block.size) > bars[scanning, np.newaxis]
            done = crossed.any(axis=1)
            found[scanning[done]] = start + crossed[done].argmax(axis=1)
            scanning = scanning[~done]
            start += block.size
            length = min(4 * length, max(_FIRST_BLOCK, CHUNK // max(1, scanning.size)))
        return found

    @cached_property
    def _log_masses(self) -> "_LogMasses":
        return _LogMasses(self.values - self.threshold, self.threshold_noise, self.query_noise)

    @cached_property
    def _masses(self) -> Floats:
        with np.errstate(under="ignore"):
            return np.exp(self._log_masses.at(self.outcomes(), depth=_DEPTH_OF_FLOATS))

    @cached_property
    def _mass_before(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self._masses)])

    @cached_property
    def _mass_from(self) -> Floats:
        return np.concatenate([np.cumsum(self._masses[::-1])[::-1], [0.0]])


def _integer_row(values: Any) -> Integers:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InvalidParameter("values must be a row of integers")
    # Unsigned numbers are compared before they are converted, which would wrap them.
    if array.size and not -LARGEST_VALUE <= int(array.min()) <= int(array.max()) <= LARGEST_VALUE:
        raise InvalidParameter("values must be in [-2^60, 2^60]")
    copied = array.astype(np.int64)
    copied.flags.writeable = False
    return copied


def _drawn(noise: IntegerNoise, bits: Bits, count: int) -> Integers:
    drawn = noise.sample(bits, count)
    assert not isinstance(drawn, int)
    return drawn


class _LogMasses:
    """Log probabilities of all outcomes, found in passes that look ever further into the threshold's noise.

    Noise of magnitude above `depth` scales has probability e^-depth, so that a pass settles all outcomes
    that are more probable by far, and leaves the others to the next.
    """

    def __init__(self, margins: Integers, threshold: IntegerNoise, query: IntegerNoise) -> None:
        self._margins = margins
        self._threshold, self._query = threshold, query
        self._logs = np.full(len(margins) + 1, -np.inf)
        self._depth = 0.0
        self._complete = False

    def at(self, index: Integers, depth: float = math.inf) -> Floats:
        """Log probabilities; those below e^-depth need not be settled."""
        while not self._complete and self._depth < depth and not self._settled[index].all():
            self._look_further()
        # Rounding may leave the log of a sure outcome a little above zero.
        logs: Floats = np.minimum(self._logs[index], 0.0)
        return logs

    @property
    def _settled(self) -> NDArray[np.bool_]:
        return self._logs >= _NEGLIGIBLE - self._depth

    def _look_further(self) -> None:
        known = self._settled if self._depth else np.zeros(len(self._logs), dtype=bool)
        self._depth = max(_FIRST_DEPTH, self._depth * _DEPTH_OF_FLOATS / _FIRST_DEPTH)
        terms, self._complete = terms_of(self._margins, self._threshold, self._query, self._depth)
        found = self._pass(terms, -math.inf if self._complete else -self._depth)
        self._logs = np.where(known, self._logs, found)

    def _pass(self, terms: "_Terms", least: float) -> Floats:
        """All log probabilities from the given terms; minus infinity after none is above `least` any more."""
        found = np.full(len(self._logs), -np.inf)
        reached = terms.log_threshold(self._threshold)
        rows = max(1, _CELLS // len(reached))
        near = np.flatnonzero(self._margins > int(terms.base.min()) - _bend(self._query, len(self._margins)))
        start = 0
        while start < len(self._margins):
            stop = _next(near, start, len(self._margins))
            if stop - start > rows:
                found[start:stop] = self._far_below(terms, reached, self._margins[start:stop])
                start = stop
                continue
            block = self._margins[start : start + rows]
            log_cdf, log_sf = log_tails(self._query, terms.distances(block))
            # The i-th row is the product over all values before the i-th of this block.
            products = np.cumsum(np.vstack([reached, log_cdf]), axis=0)
            found[start : start + len(block)] = terms.log_sum(products[:-1] + log_sf)
            reached = products[-1]
            start += len(block)
            if terms.log_sum(reached[np.newaxis])[0] < least:
                return found
        found[-1] = terms.log_sum(reached[np.newaxis])[0]
        return found

    def _far_below(self, terms: "_Terms", reached: Floats, margins: Integers) -> Floats:
        """The log probabilities of values so low that not crossing is sure, up to a negligible part."""
        _, log_sf = log_tails(self._query, terms.distances(margins[:1]))
        # There P(nu > t - m) is a power, so that one sum serves all of them.
        rate = nearest_float(1 / self._query.scale)
        found: Floats = terms.log_sum(reached + log_sf)[0] + rate * (margins - margins[0])
        return found


def _next(places: Integers, start: int, end: int) -> int:
    """The first of the increasing places at or after `start`, else `end`."""
    index = int(np.searchsorted(places, start))
    return int(places[index]) if index < len(places) else end


def _bend(query: IntegerNoise, values: int) -> int:
    """Beyond this distance the factors of all values together differ from powers by less than e^-40."""
    return math.ceil(query.scale * math.ceil(_NEGLIGIBLE + math.log(values + 1)))


def log_tails(noise: IntegerNoise, x: Floats) -> tuple[Floats, Floats]:
    """log P(X <= x) and log P(X > x), each piece continued to real x: one for x >= 0, one for x <= -1."""
    rate = nearest_float(1 / noise.scale)
    right = x > -0.5
    if isinstance(noise, Geometric):
        steps = np.where(right, x + 1, 0.0)
        inside = log_one_minus_exp(np.where(right, rate * steps, 1.0))
        return np.where(right, inside, -np.inf), -rate * steps
    small = -rate * np.where(right, x + 1, -x) - math.log1p(math.exp(-rate))
    large = np.log1p(-np.exp(small))
    return np.where(right, large, small), np.where(right, small, large)


@dataclass(frozen=True)
class _Terms:
    """Where the sum over t is evaluated: at base + offset, first `weights` nodes, then both ends of each gap.

    The base is kept apart as an integer, since its distance to a value may need all its digits.
    """

    base: Integers
    offset: Floats
    log_weights: Floats
    gap_lengths: Floats

    def distances(self, margins: Integers) -> Floats:
        """t - m for each margin m, one row each."""
        apart: Floats = (self.base - margins[:, np.newaxis]) + self.offset
        return apart

    def log_threshold(self, noise: IntegerNoise) -> Floats:
        """The log probability of each t."""
        at_zero = noise.logpmf(0)
        rate = nearest_float(1 / noise.scale)
        logs: Floats = at_zero - rate * np.abs(self.base + self.offset)
        return logs

    def log_sum(self, logs: Floats) -> Floats:
        """The log of the sum over t of each row."""
        nodes, gaps = len(self.log_weights), len(self.gap_lengths)
        left, right = logs[:, nodes : nodes + gaps], logs[:, nodes + gaps :]
        parts = np.hstack(
            [logs[:, :nodes] + self.log_weights, _log_progression(left, right, self.gap_lengths)]
        )
        top = parts.max(axis=1)
        finite = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            total: Floats = finite + np.log(np.exp(parts - finite[:, np.newaxis]).sum(axis=1))
        return total


def _log_progression(first: Floats, last: Floats, terms: Floats) -> Floats:
    """The log of the sum of a geometric progression, from the logs of its ends."""
    with np.errstate(invalid="ignore", divide="ignore"):
        fall = np.abs(first - last) / (terms - 1)
        sloped = np.log(np.expm1(-fall * terms) / np.expm1(-fall))
    # Equal ends, and ends that are both impossible, have no slope.
    return np.maximum(first, last) + np.where(fall > 0, sloped, np.log(terms))


def terms_of(
    margins: Integers, threshold: IntegerNoise, query: IntegerNoise, depth: float
) -> tuple[_Terms, bool]:
    """The terms up to `depth` scales of the threshold's noise, and whether these are all that matter."""
    kinks = np.unique(margins)
    bend = _bend(query, len(margins))
    tail = math.ceil(threshold.scale * 2 * _NEGLIGIBLE)
    least, most = (int(kinks[0]), int(kinks[-1])) if kinks.size else (0, 0)
    lowest = 0 if isinstance(threshold, Geometric) else min(0, least - bend) - tail
    highest = max(0, most + bend) + tail
    # Scales far below one may lie more than any float apart: then all terms are looked at.
    reach = math.ceil(threshold.scale * math.ceil(depth)) if depth < _DEEPEST else highest - lowest
    low, high = max(lowest, -reach), min(highest, reach)
    edges = np.concatenate([[low, high + 1, 0], kinks, kinks - bend, kinks + bend])
    edges = np.unique(np.clip(edges, low, high + 1))
    starts, lengths = edges[:-1], np.diff(edges)
    width = max(1, math.floor(min(threshold.scale, query.scale)))
    terms = _placed(starts, lengths, _bends(starts, kinks, bend), width)
    return terms, (low, high) == (lowest, highest)


def _bends(starts: Integers, kinks: Integers, bend: int) -> NDArray[np.bool_]:
    """Whether a stretch that starts at each place lies within `bend` of a kink."""
    if not kinks.size:
        return np.zeros(len(starts), dtype=bool)
    nearest = np.searchsorted(kinks, starts + bend, side="right") - 1
    close: NDArray[np.bool_] = (nearest >= 0) & (kinks[np.maximum(nearest, 0)] > starts - bend)
    return close


def _placed(starts: Integers, lengths: Integers, bends: NDArray[np.bool_], width: int) -> _Terms:
    short = lengths <= _NODES
    base, offset, log_weights = [_each_integer(starts[short], lengths[short])], [], []
    offset.append(np.zeros(len(base[0])))
    log_weights.append(np.zeros(len(base[0])))
    for start, length in zip(starts[bends & ~short].tolist(), lengths[bends & ~short].tolist(), strict=True):
        edges = np.array([start + length * i // -(-length // width) for i in range(-(-length // width) + 1)])
        if edges[1] - edges[0] < _NODES:
            base.append(np.arange(start, start + length))
            offset.append(np.zeros(length))
            log_weights.append(np.zeros(length))
            continue
        for left, right in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            nodes, weights = _gauss_sum(right - left)
            base.append(np.full(_NODES, left))
            offset.append(nodes)
            log_weights.append(weights)
    gaps = ~bends & ~short
    ends = [starts[gaps], starts[gaps] + lengths[gaps] - 1]
    return _Terms(
        np.concatenate([*base, *ends]),
        np.concatenate([*offset, np.zeros(2 * len(ends[0]))]),
        np.concatenate(log_weights),
        lengths[gaps].astype(np.float64),
    )


def _each_integer(starts: Integers, lengths: Integers) -> Integers:
    before = np.cumsum(lengths) - lengths
    places: Integers = np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))
    return places


@lru_cache(maxsize=1024)
def _gauss_sum(terms: int) -> tuple[Floats, Floats]:
    """Nodes and log weights with sum f(0..terms-1) = sum w f(x) for polynomials f of degree below 48."""
    # The recurrence of the orthogonal polynomials of Chebyshev and Gram on 0..terms-1.
    j = np.arange(1.0, _NODES)
    beta = j**2 * (float(terms) ** 2 - j**2) / (4 * (4 * j**2 - 1))
    nodes, vectors = np.linalg.eigh(np.diag(np.sqrt(beta), -1))
    with np.errstate(divide="ignore"):
        log_weights: Floats = math.log(terms) + 2 * np.log(np.abs(vectors[0]))
    return nodes + (terms - 1) / 2, log_weights
