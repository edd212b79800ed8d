"""Quantiles that are drawn first, and noisy counts whose places follow from them."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sfumato.data.ranks import Ranks
from sfumato.laws import Bits, Law, ZeroSumLaplace
from sfumato.quantile_methods.method import Facts, QuantileLaw
from sfumato.query import Outcome, raw


@dataclass(frozen=True, eq=False)
class CountsLaw:
    """The places of counts, which are public once the quantiles are drawn, and the noisy counts."""

    places: Outcome
    counts: Law | ZeroSumLaplace

    def sample(self, bits: Bits) -> Outcome:
        """One outcome."""
        return (*self.places, *raw(self.counts.sample(bits)))

    def logpmf(self, outcome: Outcome) -> float:
        """The log probability of the counts."""
        number = len(self.places)
        if outcome[:number] != self.places:
            return -math.inf
        return float(np.sum(self.counts.logpmf(np.array(outcome[number:]))))


class Counting(Protocol):
    """A method that counts values once its quantiles are drawn."""

    def counted(self, facts: Facts) -> int:
        """How many integers follow the quantiles."""
        ...

    def after(self, drawn: Outcome, ranks: Ranks, facts: Facts) -> CountsLaw:
        """The law of what follows these quantiles."""
        ...


@dataclass(frozen=True, eq=False)
class AdaptiveLaw:
    """The quantiles, then the noisy counts around them."""

    first: QuantileLaw
    ranks: Ranks
    method: Counting
    facts: Facts

    def sample(self, bits: Bits) -> Outcome:
        """The quantiles, then what follows from them."""
        drawn = raw(self.first.sample(bits))
        return (*drawn, *self.after(drawn).sample(bits))

    def after(self, drawn: Outcome) -> CountsLaw:
        """The law of the counts once the quantiles are known."""
        return self.method.after(drawn, self.ranks, self.facts)

    def logpmf(self, outcome: Outcome) -> float:
        """The log probability of the quantiles and of what followed."""
        number = len(outcome) - self.method.counted(self.facts)
        own = self.first.logpmf(outcome[:number])
        return own + self.after(outcome[:number]).logpmf(outcome[number:]) if own > -math.inf else own

    @property
    def count(self) -> float:
        """Counts have no end: an audit compares them by the noise, and lists the quantiles."""
        return math.inf

    def outcomes(self) -> tuple[Outcome, ...]:
        """Not listed."""
        return ()
