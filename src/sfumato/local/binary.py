"""Yes-or-no questions: Warner's design, forced response, and the unrelated question."""

import math
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from sfumato.checks import Number, boolean, compact, inside, pair, whole
from sfumato.errors import InvalidParameter
from sfumato.laws.bits import Bits, Integers
from sfumato.local.cost import Odds, asked_epsilon, coins, exact_number, falling, probability, worst_odds
from sfumato.local.design import UNREADABLE, Channel, Design, Matrix, Outputs, listed


class Binary(Channel):
    """A channel from yes or no to yes or no, told by the probability of "yes" under each truth."""

    exclusive = True

    @property
    def labels(self) -> tuple[str, ...]:
        """What is estimated."""
        return ("yes",)

    @property
    def odds(self) -> Odds:
        """The larger of the odds of "yes" and of "no"; infinite if a trait decides innocuous answers."""
        true, false = self.support
        if self.trait:
            # Who knows the trait knows what the innocuous answer was: one of the two answers is then certain.
            return math.inf
        return max(worst_odds(true, false), worst_odds(1 - true, 1 - false))

    def matrix(self) -> Matrix:
        """The probabilities of "no" and "yes" if the truth is no, then if it is yes."""
        true, false = self.support
        return (1 - false, false), (1 - true, true)

    def place(self, truths: Any, bits: Bits) -> Integers:
        """1 for a truth of yes, 0 for no."""
        items = listed("truths", truths)
        if not all(isinstance(item, bool | np.bool_) for item in items):
            raise InvalidParameter(UNREADABLE.format(rule="True or False"))
        return np.array(items, dtype=np.int64)

    def draw(self, places: Integers, bits: Bits) -> Outputs:
        """1 for an answer of yes."""
        true, false = self.support
        # Both coins are tossed for everybody, so that the bits used do not tell the truth.
        if_true, if_false = coins(true, bits, len(places)), coins(false, bits, len(places))
        return np.where(places == 1, if_true, if_false).astype(np.int64)

    def spoken(self, output: Outputs) -> bool:
        """True for yes."""
        return bool(output)

    def heard(self, answers: Any) -> Outputs:
        """Answers as 0 and 1; files often hold them as such."""
        items = listed("answers", answers)
        if not all(isinstance(a, np.bool_ | Integral) and a in (0, 1) for a in items):
            raise InvalidParameter("answers must be True or False, or 1 and 0")
        return np.array([int(answer) for answer in items], dtype=np.int64)

    def counted(self, outputs: Outputs) -> tuple[int, ...]:
        """How many say yes."""
        return (int(outputs.sum()),)


def _tells_something(true: Fraction, false: Fraction) -> None:
    if true == false:
        raise InvalidParameter("the answer must depend on the truth: this design has epsilon 0")


@dataclass(frozen=True, init=False)
class Warner(Binary):
    r"""Warner's design: the answer is the truth with probability `keep`, else its opposite.

    Guarantee:
        :math:`\varepsilon = |\ln(p/(1-p))|` for each answer, p being `keep`; no binary design of the same
        epsilon has a smaller variance. Proof: docs/proofs/randomised-response.md.

    Args:
        keep: the probability of the truth, not 1/2; the respondent's device points to the statement "I have
            the trait" with this probability and to its negation otherwise.

    Raises:
        InvalidParameter: keep is no probability, or is 1/2, with which answers tell nothing.

    References:
        [Warner65].

    >>> Warner(keep=0.75).cost
    LocalDP(epsilon=1.098612288669)
    >>> Warner.of_epsilon(1).cost
    LocalDP(epsilon=1.0)
    """

    TYPE: ClassVar[str] = "warner"
    keep: Fraction

    def __init__(self, *, keep: Number) -> None:
        object.__setattr__(self, "keep", probability("keep", keep))
        _tells_something(*self.support)

    @classmethod
    def of_epsilon(cls, epsilon: Number) -> "Warner":
        """The design that costs at most `epsilon`, and less by at most 2^-63 of its odds."""
        return cls(keep=1 / (1 + falling(asked_epsilon(epsilon))))

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        """The probability of "yes" under each truth."""
        return self.keep, 1 - self.keep

    def words(self) -> str:
        """The design in words."""
        return f"Warner: the truth with probability {float(self.keep):.6g}, else its opposite"


@dataclass(frozen=True, init=False)
class ForcedResponse(Binary):
    r"""Forced response: a device says whether to tell the truth, to say yes, or to say no.

    Guarantee:
        :math:`\varepsilon = \max(\ln\frac{t+y}{y}, \ln\frac{t+n}{n})` for the probabilities t, y, n of truth,
        yes and no; infinite if yes or no is never forced. Proof: docs/proofs/randomised-response.md.

    Args:
        truth, yes, no: the probabilities of the three instructions; they add up to exactly 1.

    Raises:
        InvalidParameter: they do not add up to 1, or truth is 0.

    References:
        [Boruch71], [Greenberg69] for the variance.

    >>> ForcedResponse(truth=0.6, yes=0.25, no=0.15).cost
    LocalDP(epsilon=1.609437912435)
    """

    TYPE: ClassVar[str] = "forced"
    truth: Fraction
    yes: Fraction
    no: Fraction

    def __init__(self, *, truth: Number, yes: Number, no: Number) -> None:
        for name, value in (("truth", truth), ("yes", yes), ("no", no)):
            object.__setattr__(self, name, probability(name, value))
        total = self.truth + self.yes + self.no
        if total != 1:
            raise InvalidParameter(f"truth, yes and no must add up to 1, got a sum of {compact(total)}")
        _tells_something(*self.support)

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        """The probability of "yes" under each truth."""
        return self.truth + self.yes, self.yes

    def words(self) -> str:
        """The design in words."""
        truth, yes, no = (f"{float(p):.6g}" for p in (self.truth, self.yes, self.no))
        return f"forced response: truth {truth}, yes {yes}, no {no}"


@dataclass(frozen=True, init=False)
class UnrelatedQuestion(Binary):
    r"""The unrelated question: the sensitive one, or else an innocuous one whose rate of yes is known.

    Guarantee:
        The epsilon of forced response with :math:`y = (1-p)r` and :math:`n = (1-p)(1-r)`, for the probability
        p of the sensitive question and the rate r, because the device draws the innocuous answer. With
        ``trait=True`` a trait of the respondent decides it, which others may know: epsilon is infinite.
        Proof: docs/proofs/randomised-response.md.

    Args:
        sensitive: the probability that the sensitive question is the one to answer.
        rate: the probability of an innocuous yes.
        trait: whether the innocuous answer is a real trait, such as a birthday; such answers can be estimated
            from, but no device of this package gives them.

    References:
        [Greenberg69].

    >>> UnrelatedQuestion(sensitive=0.6, rate=0.5).cost
    LocalDP(epsilon=1.38629436112)
    >>> UnrelatedQuestion(sensitive=0.6, rate=0.5, trait=True).cost
    LocalDP(epsilon=inf)
    """

    TYPE: ClassVar[str] = "unrelated"
    sensitive: Fraction
    rate: Fraction
    trait: bool

    def __init__(self, *, sensitive: Number, rate: Number, trait: bool = False) -> None:
        object.__setattr__(self, "sensitive", probability("sensitive", sensitive))
        object.__setattr__(self, "rate", inside("rate", exact_number("rate", rate)))
        object.__setattr__(self, "trait", boolean("trait", trait))
        _tells_something(*self.support)

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        """The probability of "yes" under each truth."""
        return self.sensitive + (1 - self.sensitive) * self.rate, (1 - self.sensitive) * self.rate

    def words(self) -> str:
        """The design in words."""
        kind = "a real trait" if self.trait else "drawn by the device"
        asked, rate = float(self.sensitive), float(self.rate)
        return f"unrelated question: sensitive {asked:.6g}, else yes with probability {rate:.6g}, {kind}"


def _two_inside(name: str, values: object) -> tuple[Fraction, Fraction]:
    first, second = (inside(name, exact_number(name, value)) for value in pair(name, values))
    return first, second


@dataclass(frozen=True, init=False)
class TwoSamples(Design):
    r"""The unrelated question with an unknown rate: two samples with different shares of the sensitive one.

    Guarantee:
        Each respondent answers once, at the epsilon of the worse sample and the worst rate in the public
        range `rate_between`, if a device draws the innocuous answer. With ``trait=True`` epsilon is infinite.
        Proof: docs/proofs/randomised-response.md.

    Args:
        sensitive: the probabilities of the sensitive question in the first and the second sample, different.
        rate_between: a public range of the unknown rate of an innocuous yes, inside (0, 1).
        trait: whether the innocuous answer is a real trait, which others may know.

    Raises:
        InvalidParameter: equal probabilities, or a range that is empty or reaches 0 or 1.

    References:
        [Greenberg69].

    >>> design = TwoSamples(sensitive=(0.7, 0.3), rate_between=(0.2, 0.8))
    >>> design.cost, design.sample(0, rate=0.4).rate
    (LocalDP(epsilon=2.538973871059), Fraction(2, 5))
    """

    TYPE: ClassVar[str] = "two samples"
    sensitive: tuple[Fraction, Fraction]
    rate_between: tuple[Fraction, Fraction]
    trait: bool

    def __init__(
        self,
        *,
        sensitive: tuple[Number, Number],
        rate_between: tuple[Number, Number],
        trait: bool = False,
    ) -> None:
        first, second = (
            inside("sensitive", exact_number("sensitive", p)) for p in pair("sensitive", sensitive)
        )
        ends = pair("rate_between", rate_between)
        low, high = (inside("rate_between", exact_number("rate_between", end)) for end in ends)
        if first == second:
            raise InvalidParameter(f"sensitive must differ between the samples, got {compact(first)} twice")
        if low > high:
            got = f"rate_between=({compact(low)}, {compact(high)})"
            raise InvalidParameter(f"rate_between must not decrease, got {got}")
        object.__setattr__(self, "sensitive", (first, second))
        object.__setattr__(self, "rate_between", (low, high))
        object.__setattr__(self, "trait", boolean("trait", trait))

    def sample(self, number: int, *, rate: Number) -> UnrelatedQuestion:
        """The design of the devices of sample 0 or 1; `rate` is known to who sets them up."""
        which = whole("number", number, least=0, most=1)
        share = exact_number("rate", rate)
        low, high = self.rate_between
        if not low <= share <= high:
            raise InvalidParameter(f"rate must be in [{compact(low)}, {compact(high)}], got {compact(share)}")
        return UnrelatedQuestion(sensitive=self.sensitive[which], rate=share, trait=self.trait)

    @property
    def odds(self) -> Odds:
        """The worst odds in either sample, at either end of the range of the rate."""
        # The odds of yes fall with the rate and those of no rise, so the ends are the worst.
        return max(self.sample(i, rate=r).odds for i in (0, 1) for r in self.rate_between)

    def words(self) -> str:
        """The design in words."""
        first, second = (f"{float(p):.6g}" for p in self.sensitive)
        kind = "a real trait" if self.trait else "drawn by the device"
        return f"unrelated question of unknown rate, {kind}: sensitive {first} and {second} in two samples"
