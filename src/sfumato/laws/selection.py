"""The law of a choice among finitely many candidates by their scores, and of several such choices in turn."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Rational
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.checks import keep, positive, shown, whole
from sfumato.errors import InvalidParameter
from sfumato.laws.bits import Bits, Integers, Words
from sfumato.laws.coins import Bounds, Uniform, exp_bounds, exp_coin
from sfumato.laws.law import Floats, elementwise

Score = int | Fraction
Variant = Literal["flip", "exponential", "base2"]

# A base of e^-512 already makes any step behind the best one impossible in practice; its bits stay few.
STEEPEST = Fraction(512)
# Far above the error of any float64 exponential, and of a base below: nearer ties are left to integers.
_SLACK = 2.0**-39
# Coins of one pass.
_CELLS = 1 << 20
# Nodes of a Gauss rule on one panel: exact for all polynomials of degree 47.
_NODES = 24


@dataclass(frozen=True, eq=False)
class Selection:
    """The law of one index: by permute-and-flip, or in proportion to weights.

    Guarantee:
        `sample` draws exactly the law of the weights, given uniform bits: a float decides a coin only where
        it is far from a tie, else integers do with the same bits. "flip" takes as many coins as there are
        candidates, whatever the scores; the others repeat that many with a chance of at most 0.37. `logpmf`
        errs by about 1e-12 of the larger of 1 and the logarithm. Proof: docs/proofs/exponential.md.

    >>> law = Selection((3, 5, 5), Fraction(1, 2), "exponential")
    >>> law.logpmf(np.arange(3)).round(4).tolist()
    [-1.862, -0.862, -0.862]
    """

    scores: tuple[Score, ...]
    rate: Fraction
    variant: Variant

    def __post_init__(self) -> None:
        keep(self, scores=tuple(map(_plain, self.scores)), rate=positive("rate", self.rate))

    @property
    def points(self) -> int:
        """The number of candidates."""
        return len(self.scores)

    @property
    def count(self) -> int:
        """How many outcomes there are."""
        return self.points

    def outcomes(self) -> Integers:
        """Every index."""
        return np.arange(self.points)

    def sample(self, bits: Bits, size: int | None = None) -> Any:
        """One index, or `size` independent ones."""
        count = 1 if size is None else whole("size", size, least=0, most=2**40)
        draw = self._flip if self.variant == "flip" else self._reject
        rows = max(_CELLS // self.points, 1)
        parts = [draw(bits, min(rows, count - start)) for start in range(0, count, rows)]
        drawn = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
        return int(drawn[0]) if size is None else drawn

    @elementwise
    def logpmf(self, outcome: Floats) -> Floats:
        """The log probability of each index."""
        inside = (outcome >= 0) & (outcome < self.points)
        return np.where(inside, self._logs[np.where(inside, outcome, 0).astype(np.int64)], -np.inf)

    def probability(self, outcome: Any) -> Any:
        """The probability of each index."""
        with np.errstate(under="ignore"):
            values = np.exp(self.logpmf(outcome))
        return float(values) if np.ndim(values) == 0 else values

    @cached_property
    def expected_loss(self) -> float:
        """How far the score is below the best, on average."""
        chances = self.probability(self.outcomes())
        gaps = np.array([ratio(gap.numerator, gap.denominator) for gap in self.gaps])
        possible = chances > 0
        return float(chances[possible] @ gaps[possible])

    def without(self, index: int) -> "Selection":
        """The law once a candidate is gone."""
        return Selection(self.scores[:index] + self.scores[index + 1 :], self.rate, self.variant)

    @cached_property
    def gaps(self) -> list[Score]:
        """How far every score is below the best, exactly."""
        best = max(self.scores)
        return [best - score for score in self.scores]

    @cached_property
    def _exponents(self) -> Floats:
        c = self.rate
        return np.array([ratio(c.numerator * g.numerator, c.denominator * g.denominator) for g in self.gaps])

    @cached_property
    def _chances(self) -> Floats:
        with np.errstate(under="ignore"):
            return np.exp(-self._exponents)

    def _coin(self, index: int) -> Bounds:
        gap = self.gaps[index]
        return power_coin(self.rate, int(gap)) if self.variant == "base2" else exp_coin(self.rate * gap)

    def _heads(self, places: Integers, bits: Bits) -> NDArray[np.bool_]:
        """Independent coins that come up with exactly the weight of each place."""
        words: Words = bits.words(places.size).reshape(places.shape)
        spots = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
        away = self._chances[places] - spots
        heads: NDArray[np.bool_] = away > 0
        for at in map(tuple, np.argwhere(np.abs(away) <= _SLACK)):
            heads[at] = Uniform(bits, int(words[at]), 64).below(self._coin(int(places[at])))
        return heads

    def _flip(self, bits: Bits, count: int) -> Integers:
        # The first success in random order is uniform among all successes; the best always succeeds.
        heads = self._heads(np.broadcast_to(self.outcomes(), (count, self.points)), bits)
        order: Integers = np.cumsum(heads, axis=1, dtype=np.int64)
        wanted = 1 + bits.below_each(order[:, -1], count)
        found: Integers = np.argmax(order == wanted[:, None], axis=1)
        return found

    def _reject(self, bits: Bits, count: int) -> Integers:
        drawn = np.empty(count, dtype=np.int64)
        waiting = np.arange(count)
        while waiting.size:
            # As many proposals as candidates: one is accepted with a chance of at least 1 - 1/e.
            shape = (waiting.size, self.points)
            places = bits.below_each(self.points, waiting.size * self.points).reshape(shape)
            heads = self._heads(places, bits)
            done = heads.any(axis=1)
            first = np.argmax(heads[done], axis=1)
            drawn[waiting[done]] = places[done][np.arange(len(first)), first]
            waiting = waiting[~done]
        return drawn

    @cached_property
    def _logs(self) -> Floats:
        with np.errstate(under="ignore"):
            if self.variant != "flip":
                return np.asarray(-self._exponents - math.log(math.fsum(self._chances)))
            nodes, weights = _graded_rule(math.fsum(self._chances))
            step = max(_CELLS // len(nodes), 1)
            parts = [self._chances[start : start + step] for start in range(0, self.points, step)]
            others = sum(np.log1p(-part[:, None] * nodes).sum(axis=0) for part in parts)
            integrals = [np.exp(others - np.log1p(-part[:, None] * nodes)) @ weights for part in parts]
            return np.asarray(np.log(np.concatenate(integrals)) - self._exponents)


@dataclass(frozen=True, eq=False)
class Peeled:
    """The law of several indices in the order of choice, each drawn from those that are left.

    Guarantee:
        `sample` follows exactly the law that `logpmf` states. Proof: docs/proofs/exponential.md.

    >>> law = Peeled(Selection((0, 0, 0), Fraction(1), "flip"), 2)
    >>> round(math.exp(law.logpmf((2, 0))), 12)
    0.166666666667
    """

    first: Selection
    picks: int

    def __post_init__(self) -> None:
        keep(self, picks=whole("picks", self.picks, least=1, most=self.first.points))

    @property
    def count(self) -> int:
        """How many outcomes there are."""
        return math.perm(self.first.points, self.picks)

    def outcomes(self) -> Iterator[tuple[int, ...]]:
        """Every tuple of different indices."""
        return itertools.permutations(range(self.first.points), self.picks)

    def sample(self, bits: Bits, size: int | None = None) -> Any:
        """One tuple of indices, or an array of `size` independent ones."""
        rows = np.empty(
            (1 if size is None else whole("size", size, least=0, most=2**40), self.picks), np.int64
        )
        # Draws that have chosen the same so far go on together, with one law.
        waiting = [(np.arange(len(rows)), self.first, list(range(self.first.points)))]
        while waiting:
            drawn, law, left = waiting.pop()
            turn = self.first.points - len(left)
            places = law.sample(bits, len(drawn))
            rows[drawn, turn] = np.array(left)[places]
            if turn + 1 < self.picks:
                for place in np.unique(places).tolist():
                    rest = left[:place] + left[place + 1 :]
                    waiting.append((drawn[places == place], law.without(place), rest))
        return tuple(rows[0].tolist()) if size is None else rows

    def logpmf(self, outcome: Sequence[int]) -> float:
        """The log probability of a tuple of indices."""
        every = range(self.first.points)
        if len(outcome) != self.picks or len({*outcome} & {*every}) != self.picks:
            return -math.inf
        law, left, total = self.first, list(every), 0.0
        for index in outcome:
            place = left.index(index)
            total += law.logpmf(place)
            left.pop(place)
            law = law.without(place)
        return total


def power_coin(rate: Fraction, steps: int) -> Bounds:
    """Bounds of the probability q^steps, for the rational q = `base(rate)`, by integer arithmetic alone."""
    top, width = base(rate)

    def bounds(precision: int) -> tuple[int, int]:
        # q <= e^(-rate/2) and ln 2 < 7/10, so that here 2^precision q^steps < 1.
        if 10 * steps * rate >= 14 * precision and steps:
            return 0, 1
        # Every squaring doubles the error at most and adds a unit: 2^(bits + 2) units in all.
        wide = precision + steps.bit_length() + 4
        square = (top << wide) >> width, -(-(top << wide) >> width)
        product = 1 << wide, 1 << wide
        for place in range(steps.bit_length()):
            if steps >> place & 1:
                product = product[0] * square[0] >> wide, -(-product[1] * square[1] >> wide)
            square = square[0] * square[0] >> wide, -(-square[1] * square[1] >> wide)
        spare = wide - precision
        return product[0] >> spare, -(-product[1] >> spare)

    return bounds


def base(rate: Fraction) -> tuple[int, int]:
    """Integers x and y with e^-rate <= x / 2^y < 1, nearer to e^-rate than 2^-100 rate of it; rate <= 512.

    >>> x, y = base(Fraction(1))
    >>> round(x / 2**y, 12)
    0.367879441171
    """
    if rate > STEEPEST:
        raise InvalidParameter(f"rate must be at most {STEEPEST}, got rate={shown(rate)}")
    width = 128 + 2 * math.ceil(rate) + math.ceil(1 / rate).bit_length()
    return exp_bounds(rate, width)[1], width


def _plain(score: Score) -> Score:
    """A score of Python's integers: those of NumPy, also in fractions, would wrap."""
    if type(score) is int:
        return score
    if type(score) is Fraction and type(score.numerator) is type(score.denominator) is int:
        return score
    if not isinstance(score, Rational):
        raise InvalidParameter("scores must be integers or fractions")
    return Fraction(int(score.numerator), int(score.denominator))


def _graded_rule(total: float) -> tuple[Floats, Floats]:
    """Nodes and weights on (0, 1) for products of 1 - p s that fall as fast as e^(-total s)."""
    edges = [0.0, 1.0]
    while edges[1] * total > 1.5:
        edges.insert(1, edges[1] / 2)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    low, high = np.array(edges[:-1])[:, None], np.array(edges[1:])[:, None]
    return (low + (high - low) * (nodes + 1) / 2).ravel(), ((high - low) / 2 * weights).ravel()


def ratio(numerator: int, denominator: int) -> float:
    """The nearest float of a non-negative ratio; infinite where it is out of range, as no score may raise."""
    return math.inf if numerator.bit_length() - denominator.bit_length() > 1000 else numerator / denominator
