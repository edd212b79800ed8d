"""Permanent bits with fresh noise on every report: the two stages of RAPPOR, without hashing."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from sfumato.checks import MAX_BITS, Number, compact, pair
from sfumato.errors import InvalidParameter
from sfumato.laws.bits import Bits, Integers
from sfumato.local.cost import LocalDP, Odds, coins, epsilon_of, probability
from sfumato.local.design import Matrix, Outputs
from sfumato.local.encodings import Categorical, UnaryEncoding


@dataclass(frozen=True, init=False)
class PermanentUnary(Categorical):
    r"""Unary answers in two stages: bits drawn once and kept, and fresh noise on them in every report.

    Guarantee:
        All reports ever made from one kept vector cost together the epsilon of the first stage, `epsilon`;
        one report by itself costs less, `report_epsilon`. A respondent needs a `Memory`, which holds the kept
        bits: whoever reads it learns as much as from all reports, `epsilon`, so it stays on the device.
        Proof: docs/proofs/randomised-response.md.

    Args:
        categories: the public categories, different texts.
        permanent: the probabilities that a bit of 1 and a bit of 0 are kept as 1.
        instant: the probabilities that a kept bit of 1 and of 0 are reported as 1.

    References:
        [Erlingsson14]: there the first pair is (1 - f/2, f/2).

    >>> design = PermanentUnary(categories=["a", "b"], permanent=(0.75, 0.25), instant=(0.75, 0.5))
    >>> design.epsilon > design.report_epsilon, design.support
    (True, (Fraction(11, 16), Fraction(9, 16)))
    """

    TYPE: ClassVar[str] = "permanent"
    exclusive = False
    categories: tuple[str, ...]
    permanent: tuple[Fraction, Fraction]
    instant: tuple[Fraction, Fraction]

    def __init__(
        self,
        *,
        categories: Sequence[str],
        permanent: tuple[Number, Number],
        instant: tuple[Number, Number],
    ) -> None:
        for name, values in (("permanent", permanent), ("instant", instant)):
            one, zero = (probability(name, value) for value in pair(name, values))
            if one <= zero:
                got = f"{name}=({compact(one)}, {compact(zero)})"
                raise InvalidParameter(f"{name} must give a 1 more often to a 1 than to a 0, got {got}")
            object.__setattr__(self, name, (one, zero))
        if any(share.denominator.bit_length() > MAX_BITS for share in self.support):
            rule = f"combine to probabilities of at most {MAX_BITS} bits, got longer ones"
            raise InvalidParameter(f"permanent and instant must {rule}")
        object.__setattr__(self, "categories", self._stage(categories, *self.permanent).categories)

    @classmethod
    def of_epsilon(
        cls,
        categories: Sequence[str],
        *,
        epsilon: Number,
        instant: tuple[Number, Number] = (Fraction(3, 4), Fraction(1, 4)),
    ) -> "PermanentUnary":
        """The design whose reports cost at most `epsilon` all together; kept bits are symmetric."""
        kept = UnaryEncoding.of_epsilon(categories, epsilon=epsilon, form="symmetric")
        return cls(categories=categories, permanent=kept.support, instant=instant)

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        """The probability that one report has the true bit set, and that it has another set."""
        one, zero = self.instant
        p, q = (kept * one + (1 - kept) * zero for kept in self.permanent)
        return p, q

    @property
    def kept(self) -> UnaryEncoding:
        """The first stage."""
        return self._stage(self.categories, *self.permanent)

    @property
    def reported(self) -> UnaryEncoding:
        """Both stages in one: the channel of a single report."""
        return self._stage(self.categories, *self.support)

    def _stage(self, categories: Sequence[str], one: Fraction, zero: Fraction) -> UnaryEncoding:
        return UnaryEncoding(categories=categories, one_if_one=one, one_if_zero=zero)

    @property
    def odds(self) -> Odds:
        """The worst odds of all reports together: those of the kept bits."""
        return self.kept.odds

    @property
    def report_epsilon(self) -> Odds:
        """The epsilon of one report, to somebody who sees no other."""
        return epsilon_of(self.reported.odds)

    @property
    def report_cost(self) -> LocalDP:
        """What one report costs, to somebody who sees no other."""
        return LocalDP(self.report_epsilon)

    def matrix(self) -> Matrix:
        """The probabilities of one report, by the true category."""
        return self.reported.matrix()

    def draw(self, places: Integers, bits: Bits) -> Outputs:
        """One report of each respondent, with a vector of its own."""
        return self.report(self.kept.draw(places, bits), bits)

    def report(self, kept: Outputs, bits: Bits) -> Outputs:
        """Fresh noise on kept bits."""
        one, zero = self.instant
        if_one, if_zero = coins(one, bits, kept.size), coins(zero, bits, kept.size)
        return np.where(kept.ravel() == 1, if_one, if_zero).astype(np.int64).reshape(kept.shape)

    def spoken(self, output: Outputs) -> tuple[int, ...]:
        """The bits."""
        return self.reported.spoken(output)

    def heard(self, answers: Any) -> Outputs:
        """Answers as rows of bits."""
        return self.reported.heard(answers)

    def counted(self, outputs: Outputs) -> tuple[int, ...]:
        """How many reports have each bit set."""
        return self.reported.counted(outputs)

    def words(self) -> str:
        """The design in words."""
        (p, q), (one, zero) = ((f"{float(x):.6g}" for x in stage) for stage in (self.permanent, self.instant))
        return f"permanent unary encoding: bits kept with ({p}, {q}), reported with ({one}, {zero})"
