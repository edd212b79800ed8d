"""AboveThreshold: the first of many queries whose noisy answer passes a noisy threshold."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from sfumato.checks import between, boolean, compact, exact, keep, positive, readable, shown, whole
from sfumato.errors import InvalidParameter
from sfumato.grid import Ints
from sfumato.laws import DiscreteLaplace, Geometric
from sfumato.laws.crossing import FirstCrossing, IntegerNoise
from sfumato.laws.law import checked_scale
from sfumato.mechanisms.moves import AnyQueries, CountsAtOrder, Moves, Pair, SameDirection, cube_root
from sfumato.privacy import PureEvent

# What a query's noise counts for against the threshold's. The noise of many queries adds up to an early
# crossing; exact laws of uniform counts at steps of 0.03 to 3 scales have their smallest error near this.
_QUERY_WEIGHT = 3


@dataclass(frozen=True, kw_only=True)
class AboveThreshold:
    r"""Tells the first of many integer queries that is above a threshold, or that none is.

    One noise on the threshold serves all comparisons, and every query has its own; queries that are not above
    cost nothing more. Scales are in units of the integers compared.

    Guarantee:
        Pure DP, for the scales :math:`b_T` of the threshold and :math:`b_n` of the queries, with
        :math:`\varepsilon = \Delta/b_T + 2\Delta/b_n` for any queries of sensitivity :math:`\Delta`,
        :math:`\Delta/b_T + \Delta/b_n` for queries that all move in the same direction, and
        :math:`\max((b-a)/b_T,\; a/b_T + b/b_n)` for the queries :math:`bF - an` under add-remove. Two-sided
        and one-sided noise cost the same. Proof: docs/proofs/above-threshold.md.

    Args:
        moves: how one record can move the queries: `AnyQueries`, `SameDirection` or `CountsAtOrder`.
        threshold_scale: the scale of the threshold's noise, at most 2^52.
        query_scale: the scale of each query's noise, at most 2^52.
        one_sided: geometric noise of half the variance, in place of discrete Laplace noise.

    Raises:
        InvalidParameter: a scale or a sensitivity that is not positive or too large, an order above 1/2.

    References:
        [DR14], algorithm 1, for any queries.

    >>> import numpy as np
    >>> from sfumato.laws import SystemBits
    >>> mechanism = AboveThreshold.same_direction(1, sensitivity=1)
    >>> mechanism.cost, mechanism.threshold_scale, mechanism.query_scale
    (Fraction(1, 1), Fraction(2, 1), Fraction(2, 1))
    >>> mechanism.law(np.array([0, 10, 500, 900]), 250).sample(SystemBits())
    2
    >>> median = AboveThreshold.for_order(1, order=Fraction(1, 2))
    >>> counts, rows = np.array([0, 10, 500, 900]), 900
    >>> median.law(2 * counts, 1 * rows).sample(SystemBits())
    2
    """

    moves: Moves
    threshold_scale: Fraction
    query_scale: Fraction
    one_sided: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.moves, Moves):
            raise InvalidParameter(
                f"moves must be AnyQueries, SameDirection or CountsAtOrder, got moves={shown(self.moves)}"
            )
        boolean("one_sided", self.one_sided)
        for name in ("threshold_scale", "query_scale"):
            keep(self, **{name: checked_scale(name, getattr(self, name))})

    @classmethod
    def general(cls, epsilon: object, sensitivity: int, *, one_sided: bool = True) -> "AboveThreshold":
        """For any queries of this sensitivity, at a pure cost of `epsilon`."""
        moves = AnyQueries(sensitivity)
        unit = moves.sensitivity / positive("epsilon", epsilon)
        return cls(
            moves=moves,
            threshold_scale=2 * unit,
            query_scale=4 * unit,
            one_sided=one_sided,
        )._costing(epsilon)

    @classmethod
    def same_direction(cls, epsilon: object, sensitivity: int, *, one_sided: bool = True) -> "AboveThreshold":
        """For queries that a record moves in one direction, as counts under substitution."""
        moves = SameDirection(sensitivity)
        unit = moves.sensitivity / positive("epsilon", epsilon)
        return cls(
            moves=moves,
            threshold_scale=2 * unit,
            query_scale=2 * unit,
            one_sided=one_sided,
        )._costing(epsilon)

    @classmethod
    def for_order(cls, epsilon: object, order: object, *, one_sided: bool = True) -> "AboveThreshold":
        """For the first point whose count passes the share `order` of all records, under add-remove.

        With the order a/b in lowest terms, `law` takes b F as values and a n as threshold, for the counts F
        up to increasing points. For an order above 1/2 count from the other end, with 1 - order.
        """
        moves = CountsAtOrder(exact("order", order))
        # Of all pairs that meet the bound, the one that minimises bT^2 + 3 bn^2; (1-q)/bT <= epsilon first.
        q = moves.order
        share = max(1 - q, q + cube_root(_QUERY_WEIGHT * q))
        unit = q.denominator / positive("epsilon", epsilon)
        return cls(
            moves=moves,
            threshold_scale=share * unit,
            query_scale=unit / (1 - q / share),
            one_sided=one_sided,
        )._costing(epsilon)

    def _costing(self, epsilon: object) -> "AboveThreshold":
        if self.cost > positive("epsilon", epsilon):
            raise InvalidParameter(
                f"no scales were found for epsilon={compact(positive('epsilon', epsilon))}"
            )
        return self

    @property
    def cost(self) -> Fraction:
        """The exact pure epsilon."""
        return max(self._losses)

    @property
    def log_range(self) -> Fraction:
        """A bound of how far apart the log ratios of two outcomes can be; at most twice the cost."""
        return sum(self._losses, Fraction(0))

    @property
    def _losses(self) -> Pair:
        return self.moves.losses(self.threshold_scale, self.query_scale)

    @property
    def event(self) -> PureEvent:
        """What a release costs."""
        return PureEvent(self.cost, "above-threshold")

    @cached_property
    def threshold_noise(self) -> IntegerNoise:
        """The law of the threshold's noise, before it is centred."""
        return self._noise(self.threshold_scale)

    @cached_property
    def query_noise(self) -> IntegerNoise:
        """The law of each query's noise, before it is centred."""
        return self._noise(self.query_scale)

    def _noise(self, scale: Fraction) -> IntegerNoise:
        return Geometric(scale) if self.one_sided else DiscreteLaplace(scale)

    @cached_property
    def centring(self) -> int:
        """What is added to the threshold so that one-sided noise does not favour either side."""
        # Only the difference of the two noises is ever compared; the integer is public, so it costs nothing.
        return round(self.query_noise.mean - self.threshold_noise.mean)

    def described(self, step: Fraction = Fraction(1)) -> str:
        """The mechanism in words, in units where one step of the integers is `step`."""
        kind = "one-sided geometric" if self.one_sided else "discrete Laplace"
        scales = (readable(float(scale * step)) for scale in (self.threshold_scale, self.query_scale))
        return f"first crossing with {kind} noise of scales {' and '.join(scales)}"

    def law(self, values: Ints, threshold: int) -> FirstCrossing:
        """The law of the answer: an index into `values`, or their number if none is above."""
        return FirstCrossing(values, threshold + self.centring, self.threshold_noise, self.query_noise)

    def radius(self, queries: int, confidence: float) -> int:
        """How far from true the answer can be, in units of the values.

        Guarantee:
            With probability at least `confidence`, every value before the answer is at most this far above
            the threshold, and the value of the answer is less than this far below it: a union bound over the
            noise, rounded against ourselves.

        Args:
            queries: the number of values.
            confidence: inside (0, 1).

        >>> AboveThreshold.same_direction(Fraction(1, 10), sensitivity=1).radius(1000, 0.95)
        199
        """
        number = whole("queries", queries, least=1, most=2**40)
        failure = 1 - between("confidence", confidence, 0, 1)
        return min(self._radius(number, failure, Fraction(part, 16)) for part in range(1, 16))

    def _radius(self, queries: int, failure: Fraction, part: Fraction) -> int:
        """The radius if this part of the failure is left to the threshold's noise."""
        threshold = _largest(self.threshold_noise, failure * part)
        query = _largest(self.query_noise, failure * (1 - part) / queries)
        # A value that does not cross exceeds the threshold by at most centring + its noise - the query's.
        if self.one_sided:
            return max(self.centring + threshold, query - self.centring, 0)
        return threshold + query


def _largest(noise: IntegerNoise, failure: Fraction) -> int:
    """What the magnitude of the noise exceeds with at most this probability."""
    # As a float 1 - failure would lose a small failure.
    return noise.radius(1 - failure)  # type: ignore[arg-type]  # reason: fractions are read exactly
