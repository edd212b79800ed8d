"""The exponential mechanism on a finite public set: which candidate has about the best private score."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from sfumato.checks import between, boolean, keep, one_of, positive, readable, root_down, whole
from sfumato.errors import InvalidParameter
from sfumato.laws.selection import STEEPEST, Peeled, Score, Selection, Variant, ratio
from sfumato.privacy import ZCDP, Budget, ComposedEvent, PureEvent, RangeEvent

VARIANTS: tuple[Variant, ...] = ("flip", "exponential", "base2")
MAX_CANDIDATES = 2**22
MAX_PICKS = 10_000


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
            keep(self, **{name: positive(name, getattr(self, name))})
        boolean("monotone", self.monotone)
        one_of("variant", self.variant, VARIANTS)

    @property
    def rate(self) -> Fraction:
        """How much the log weight falls for a score lower by one."""
        rate = self.epsilon / (self.sensitivity if self.monotone else 2 * self.sensitivity)
        return min(rate, STEEPEST) if self.variant == "base2" else rate

    @property
    def event(self) -> PureEvent | RangeEvent:
        """What a release costs."""
        # The log ratio of permute-and-flip can span nearly twice its pure cost.
        kind = PureEvent if self.variant == "flip" else RangeEvent
        return kind(self.epsilon, "exponential")

    def described(self) -> str:
        """The mechanism in words."""
        name = "permute-and-flip" if self.variant == "flip" else "exponential mechanism"
        rate = readable(ratio(self.rate.numerator, self.rate.denominator))
        return f"{name} with a fall of {rate} a unit of score"

    def law(self, scores: Any) -> Selection:
        """The law of the index chosen.

        Floats count with their exact values, so that the sensitivity must hold for them as they were rounded.
        Scores must be finite: by the promise of the sensitivity they are so for all data or for none, and
        refusing them tells nothing about a record.

        Args:
            scores: an integer, a fraction or a float for every candidate ("base2": integers), in a list, an
                array or a series; more is better.

        Raises:
            InvalidParameter: no scores or more than 2^22, or something that is no finite number.
        """
        return Selection(_read(scores, whole_only=self.variant == "base2"), self.rate, self.variant)

    def radius(self, count: int, confidence: float | Fraction, *, best: int = 1) -> float:
        r"""How far below the best score the score of the candidate chosen can be.

        Guarantee:
            With probability at least `confidence`, :math:`1 - \beta`, the loss is at most
            :math:`\frac1c \ln\frac{(n-m)(1-\beta)}{m\beta}` for the exponential mechanism, which some scores
            attain, and :math:`\frac1c \ln\frac{n-m}{(m+1)\beta}` for permute-and-flip (zero if negative);
            rounded up. Both are below the textbook's :math:`\frac1c \ln\frac n{m\beta}`, and theorems of
            `sfumato.accuracy`. Proof: docs/proofs/exponential.md.

        Args:
            count: the number n of candidates.
            confidence: inside (0, 1).
            best: how many candidates m share the best score at least.

        >>> flip = ExponentialMechanism(sensitivity=1, epsilon=1)
        >>> round(flip.radius(1000, 0.95), 2)
        18.42
        >>> round(ExponentialMechanism(sensitivity=1, epsilon=1, variant="exponential").radius(1000, 0.95), 2)
        19.7
        """
        number = whole("count", count, least=1, most=MAX_CANDIDATES)
        best = whole("best", best, least=1, most=number)
        others = number - best
        failure = 1 - between("confidence", confidence, 0, 1)
        if self.variant == "flip":
            odds = others / ((best + 1) * failure)
        else:
            odds = others * (1 - failure) / (best * failure)
        if odds <= 1:
            return 0.0
        # A logarithm of a fraction errs by far less than 1e-12; below 2^-100 of c a base is off its rate.
        log = math.log(odds.numerator) - math.log(odds.denominator)
        return (log + 1e-12) * ratio(self.rate.denominator, self.rate.numerator) * (1 + 1e-12)


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
        keep(self, picks=whole("picks", self.picks, least=1, most=MAX_PICKS))
        for name in ("sensitivity", "epsilon"):
            keep(self, **{name: positive(name, getattr(self, name))})
        boolean("monotone", self.monotone)
        one_of("variant", self.variant, VARIANTS)

    @classmethod
    def under(
        cls, budget: Budget, *, picks: int, sensitivity: Fraction, monotone: bool, variant: Variant
    ) -> Self:
        r"""The mechanism with the largest rate that a budget pays for.

        A pure or approximate budget pays :math:`\varepsilon/k` a pick. A rho pays :math:`\sqrt{8\rho/k}` for
        a mechanism of bounded range, and :math:`\sqrt{2\rho/k}`, half of that, for permute-and-flip.

        >>> from sfumato.privacy import ZCDP
        >>> kind = {"picks": 2, "sensitivity": Fraction(1), "monotone": True}
        >>> [TopMechanism.under(ZCDP(1), variant=way, **kind).each.rate for way in ("flip", "exponential")]
        [Fraction(1, 1), Fraction(2, 1)]
        """
        if isinstance(budget, ZCDP):
            number = whole("picks", picks, least=1, most=MAX_PICKS)
            worth = 2 if variant == "flip" else 8
            epsilon = number * root_down(worth * budget.rho / number)
        else:
            epsilon = budget.epsilon
        return cls(picks=picks, sensitivity=sensitivity, epsilon=epsilon, monotone=monotone, variant=variant)

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

    def described(self) -> str:
        """The mechanism in words."""
        return self.each.described() + (f", {self.picks} times in turn" if self.picks > 1 else "")

    def law(self, scores: Any) -> Peeled:
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
        number = whole("count", count, least=self.picks, most=MAX_CANDIDATES)
        failure = 1 - between("confidence", confidence, 0, 1)
        return self.each.radius(number, 1 - failure / self.picks)


def _read(scores: Any, *, whole_only: bool) -> tuple[Score, ...]:
    if isinstance(scores, np.ndarray) and scores.ndim == 1:
        # Longer floats than float64 stay as they are, and are refused below.
        scores = scores.tolist()
    elif not isinstance(scores, Sequence | np.ndarray):
        # pandas and Polars have the one, PyArrow the other; all give plain numbers, and no number for a null.
        listed = getattr(scores, "to_list", None) or getattr(scores, "to_pylist", None)
        scores = listed() if listed is not None else scores
    if not isinstance(scores, Sequence) or isinstance(scores, str | bytes):
        raise InvalidParameter("scores must be a row of integers, fractions or floats")
    if not 1 <= len(scores) <= MAX_CANDIDATES:
        raise InvalidParameter(f"scores must be 1 to {MAX_CANDIDATES} numbers")
    return tuple(_score(item, whole_only) for item in scores)


def _score(value: object, whole_only: bool) -> Score:
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    if whole_only:
        raise InvalidParameter("scores must be integers for 'base2'")
    if isinstance(value, Fraction):
        # A fraction of NumPy integers keeps them, and would wrap.
        return Fraction(int(value.numerator), int(value.denominator))
    if not isinstance(value, float | np.float32 | np.float16) or not math.isfinite(value):
        raise InvalidParameter("scores must be integers, fractions or finite floats")
    return Fraction(float(value))
