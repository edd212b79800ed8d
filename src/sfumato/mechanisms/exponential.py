"""The exponential mechanism on a finite public set: which candidate has about the best private score."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.checks import between, boolean, one_of, positive, readable, shown, whole
from sfumato.errors import InvalidParameter
from sfumato.laws.bits import Bits, Integers, Words
from sfumato.laws.coins import Bounds, Uniform, exp_bounds, exp_coin
from sfumato.laws.law import Floats, elementwise
from sfumato.privacy import ComposedEvent, PureEvent, RangeEvent

Score = int | Fraction
Scores = Sequence[int | float | Fraction] | NDArray[Any]
Variant = Literal["flip", "exponential", "base2"]

VARIANTS: tuple[Variant, ...] = ("flip", "exponential", "base2")
MAX_CANDIDATES = 2**22
MAX_PICKS = 10_000
# A base of e^-512 already makes any step behind the best one impossible in practice; its bits stay few.
_STEEPEST = Fraction(512)
# Far above the error of any float64 exponential, and of a base below: nearer ties are left to integers.
_SLACK = 2.0**-39
# Coins of one pass.
_CELLS = 1 << 20
# Nodes of a Gauss rule on one panel: exact for all polynomials of degree 47.
_NODES = 24


@dataclass(frozen=True, kw_only=True)
class ExponentialMechanism:
    r"""Chooses one of finitely many public candidates, the better its private score the more likely.

    Guarantee:
        For scores of which one record moves each by at most :math:`\Delta`, pure DP with :math:`\varepsilon`;
        "exponential" and "base2" also have a log ratio that spans at most :math:`\varepsilon` over all
        candidates, hence :math:`\varepsilon^2/8`-zCDP. With :math:`c = \varepsilon/(2\Delta)`, or
        :math:`\varepsilon/\Delta` if `monotone`, a candidate whose score is g below the best weighs exactly
        :math:`e^{-cg}` ("base2": exactly :math:`q^g`, with one rational :math:`q \ge e^{-c}`).
        Proof: docs/proofs/exponential.md.

    Args:
        sensitivity: how far one record can move the score of any one candidate.
        epsilon: the pure cost.
        monotone: promises that no record raises one score while it lowers another, as when records are added
            or removed and each only adds to scores. Not true where a record is replaced by another.
        variant: "flip" (permute-and-flip) never has a larger expected loss than "exponential" and is the best
            for one release; "exponential" costs a quarter of its rho, for many releases under zCDP; "base2"
            is the latter with rational weights, for integer scores.

    Raises:
        InvalidParameter: a sensitivity or an epsilon that is not positive, a flag or variant that is none.

    References:
        [MT07], [DR14] for the mechanism, [MS20] for permute-and-flip, [Ilvento20] for rational weights.

    >>> from sfumato.laws import SystemBits
    >>> mechanism = ExponentialMechanism(sensitivity=1, epsilon=1, monotone=True)
    >>> mechanism.event.pure_epsilon, mechanism.rate
    (Fraction(1, 1), Fraction(1, 1))
    >>> law = mechanism.law([12, 80, 311, 45])
    >>> law.sample(SystemBits()), law.expected_loss < 1e-90
    (2, True)
    """

    sensitivity: Fraction
    epsilon: Fraction
    monotone: bool = False
    variant: Variant = "flip"

    def __post_init__(self) -> None:
        for name in ("sensitivity", "epsilon"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        boolean("monotone", self.monotone)
        one_of("variant", self.variant, VARIANTS)

    @property
    def rate(self) -> Fraction:
        """How much the log weight falls for a score lower by one."""
        rate = self.epsilon / (self.sensitivity if self.monotone else 2 * self.sensitivity)
        return min(rate, _STEEPEST) if self.variant == "base2" else rate

    @property
    def event(self) -> PureEvent | RangeEvent:
        """What a release costs."""
        # The log ratio of permute-and-flip can span nearly twice its pure cost.
        kind = PureEvent if self.variant == "flip" else RangeEvent
        return kind(self.epsilon, "exponential")

    def described(self) -> str:
        """The mechanism in words."""
        name = "permute-and-flip" if self.variant == "flip" else "exponential mechanism"
        rate = readable(_ratio(self.rate.numerator, self.rate.denominator))
        return f"{name} with a fall of {rate} a unit of score"

    def law(self, scores: Scores) -> "Selection":
        """The law of the index chosen.

        Floats count with their exact values, so that the sensitivity must hold for them as they were rounded.
        Scores must be finite: by the promise of the sensitivity they are so for all data or for none, and
        refusing them tells nothing about a record.

        Args:
            scores: an integer, a fraction or a float for every candidate ("base2": integers); more is better.

        Raises:
            InvalidParameter: no scores or more than 2^22, or something that is no finite number.
        """
        return Selection(_read(scores, whole_only=self.variant == "base2"), self.rate, self.variant)

    def radius(self, count: int, confidence: float | Fraction) -> float:
        r"""How far below the best score the score of the candidate chosen can be.

        Guarantee:
            With probability at least `confidence`, :math:`1 - \beta`, the loss is at most
            :math:`\frac1c \ln\frac{(n-1)(1-\beta)}{\beta}` for the exponential mechanism, which some scores
            attain, and :math:`\frac1c \ln\frac{n-1}{2\beta}` for permute-and-flip (zero if negative); rounded
            up. Both are below the textbook's :math:`\frac{2\Delta}{\varepsilon} \ln\frac n\beta`.
            Proof: docs/proofs/exponential.md.

        Args:
            count: the number n of candidates.
            confidence: inside (0, 1).

        >>> flip = ExponentialMechanism(sensitivity=1, epsilon=1)
        >>> round(flip.radius(1000, 0.95), 2)
        18.42
        >>> round(ExponentialMechanism(sensitivity=1, epsilon=1, variant="exponential").radius(1000, 0.95), 2)
        19.7
        """
        others = whole("count", count, least=1, most=MAX_CANDIDATES) - 1
        failure = 1 - between("confidence", confidence, 0, 1)
        odds = others / (2 * failure) if self.variant == "flip" else others * (1 - failure) / failure
        if odds <= 1:
            return 0.0
        # A logarithm of a fraction errs by far less than 1e-12; below 2^-100 of c a base is off its rate.
        log = math.log(odds.numerator) - math.log(odds.denominator)
        return (log + 1e-12) * _ratio(self.rate.denominator, self.rate.numerator) * (1 + 1e-12)


@dataclass(frozen=True, kw_only=True)
class TopMechanism:
    r"""Chooses several candidates, best first, by peeling: one draw after another, without those chosen.

    Guarantee:
        Pure DP with :math:`\varepsilon`, of which every pick costs an equal share; under zCDP the shares add
        up by their squares. With "exponential" this is also exactly the law of the one-shot method, the
        largest of all scores with Gumbel noise added once. Proof: docs/proofs/exponential.md.

    Args:
        picks: how many candidates to choose.
        sensitivity, epsilon, monotone, variant: as for `ExponentialMechanism`; `epsilon` is the whole cost.

    >>> from sfumato.laws import SystemBits
    >>> mechanism = TopMechanism(picks=2, sensitivity=1, epsilon=1, monotone=True)
    >>> mechanism.event.pure_epsilon
    Fraction(1, 1)
    >>> mechanism.law([300, 0, 600]).sample(SystemBits())
    (2, 0)
    """

    picks: int
    sensitivity: Fraction
    epsilon: Fraction
    monotone: bool = False
    variant: Variant = "flip"

    def __post_init__(self) -> None:
        whole("picks", self.picks, least=1, most=MAX_PICKS)
        for name in ("sensitivity", "epsilon"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        boolean("monotone", self.monotone)
        one_of("variant", self.variant, VARIANTS)

    @property
    def each(self) -> ExponentialMechanism:
        """The mechanism of one pick."""
        share = self.epsilon / self.picks
        kind: dict[str, Any] = {"monotone": self.monotone, "variant": self.variant}
        return ExponentialMechanism(sensitivity=self.sensitivity, epsilon=share, **kind)

    @property
    def event(self) -> ComposedEvent:
        """What a release costs."""
        return ComposedEvent([self.each.event] * self.picks)

    def law(self, scores: Scores) -> "Peeled":
        """The law of the indices chosen, in the order of choice."""
        first = self.each.law(scores)
        if first.points < self.picks:
            raise InvalidParameter(
                f"picks must be at most the number of candidates, {first.points}, got picks={self.picks}"
            )
        return Peeled(first, self.picks)

    def radius(self, count: int, confidence: float | Fraction) -> float:
        """How far below the best that is left any pick can be, for all picks at once.

        >>> round(TopMechanism(picks=5, sensitivity=1, epsilon=1).radius(1000, 0.95), 1)
        108.2
        """
        whole("count", count, least=self.picks, most=MAX_CANDIDATES)
        failure = 1 - between("confidence", confidence, 0, 1)
        return self.each.radius(count, 1 - failure / self.picks)


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

    @property
    def points(self) -> int:
        """The number of candidates."""
        return len(self.scores)

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
        gaps = np.array([_ratio(gap.numerator, gap.denominator) for gap in self.gaps])
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
        return np.array([_ratio(c.numerator * g.numerator, c.denominator * g.denominator) for g in self.gaps])

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
    """The law of several indices, each drawn from those that are left.

    Guarantee:
        `sample` follows exactly the law that `logpmf` states. Proof: docs/proofs/exponential.md.

    >>> law = Peeled(Selection((0, 0, 0), Fraction(1), "flip"), 2)
    >>> round(math.exp(law.logpmf((2, 0))), 12)
    0.166666666667
    """

    first: Selection
    picks: int

    def sample(self, bits: Bits) -> tuple[int, ...]:
        """One tuple of indices, in the order of choice."""
        law, left = self.first, list(range(self.first.points))
        chosen: list[int] = []
        while len(chosen) < self.picks:
            place = law.sample(bits)
            chosen.append(left.pop(place))
            law = law.without(place)
        return tuple(chosen)

    def logpmf(self, outcome: Sequence[int]) -> float:
        """The log probability of a tuple of indices."""
        law, left, total = self.first, list(range(self.first.points)), 0.0
        if len(outcome) != self.picks or len({*outcome} & {*left}) != self.picks:
            return -math.inf
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
    if rate > _STEEPEST:
        raise InvalidParameter(f"rate must be at most {_STEEPEST}, got rate={shown(rate)}")
    width = 128 + 2 * math.ceil(rate) + math.ceil(1 / rate).bit_length()
    return exp_bounds(rate, width)[1], width


def _graded_rule(total: float) -> tuple[Floats, Floats]:
    """Nodes and weights on (0, 1) for products of 1 - p s that fall as fast as e^(-total s)."""
    edges = [0.0, 1.0]
    while edges[1] * total > 1.5:
        edges.insert(1, edges[1] / 2)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    low, high = np.array(edges[:-1])[:, None], np.array(edges[1:])[:, None]
    return (low + (high - low) * (nodes + 1) / 2).ravel(), ((high - low) / 2 * weights).ravel()


def _ratio(numerator: int, denominator: int) -> float:
    """The nearest float of a non-negative ratio; infinite where it is out of range, as no score may raise."""
    return math.inf if numerator.bit_length() - denominator.bit_length() > 1000 else numerator / denominator


def _read(scores: Any, *, whole_only: bool) -> tuple[Score, ...]:
    if isinstance(scores, np.ndarray) and scores.ndim == 1 and scores.dtype.kind in "iuf":
        # Longer floats than float64 stay as they are, and are refused below.
        scores = scores.tolist()
    if not isinstance(scores, Sequence) or isinstance(scores, str | bytes):
        raise InvalidParameter("scores must be a row of integers, fractions or floats")
    if not 1 <= len(scores) <= MAX_CANDIDATES:
        raise InvalidParameter(f"scores must be 1 to {MAX_CANDIDATES} numbers, got {len(scores)}")
    return tuple(_score(item, whole_only) for item in scores)


def _score(value: object, whole_only: bool) -> Score:
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    if whole_only:
        raise InvalidParameter('scores must be integers for variant="base2"')
    if isinstance(value, Fraction):
        return value
    if not isinstance(value, float | np.float32 | np.float16) or not math.isfinite(value):
        raise InvalidParameter("scores must be integers, fractions or finite floats")
    return Fraction(float(value))
