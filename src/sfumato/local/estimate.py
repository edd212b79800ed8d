"""The analyst's one call: from a design and randomised answers to an estimate, and back from JSON."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from sfumato.checks import pair, shown
from sfumato.errors import InvalidParameter
from sfumato.local.binary import TwoSamples
from sfumato.local.design import Channel
from sfumato.local.intervals import Pair, never_certain, wilson
from sfumato.local.range_estimate import RangeEstimate
from sfumato.local.ranges import Ranges
from sfumato.local.records import check_design, check_format, design_from_dict
from sfumato.local.shares import ShareEstimate
from sfumato.local.table import Figure, Reported, check_confidence
from sfumato.local.tally import Tally


@dataclass(frozen=True, repr=False)
class TwoSampleEstimate(Reported):
    r"""The share of a sensitive yes, and the unknown rate of the innocuous one, from two samples.

    Guarantee:
        Both values are unbiased. Intervals combine the score intervals of the two samples and hold about as
        often as promised: at least 93 % for 95 % with 70 answers or more in each sample, and 91 % with as few
        as five, where tested. Proof: docs/proofs/randomised-response.md.

    Args:
        design: the shares of the sensitive question in the two samples.
        first, second: the counts of yes in each.

    References:
        [Greenberg69], [Zou08] for the intervals.

    >>> design = TwoSamples(sensitive=(0.7, 0.3), rate_between=(0.2, 0.8))
    >>> found = TwoSampleEstimate(design, Tally(counts=[290], size=1000), Tally(counts=[410], size=1000))
    >>> round(found.share().value, 4), round(found.rate().value, 4)
    (0.2, 0.5)
    """

    design: TwoSamples
    first: Tally
    second: Tally

    def __post_init__(self) -> None:
        check_design(self.design)
        if any(len(tally.counts) != 1 for tally in self.tallies):
            raise InvalidParameter("counts must be one number of yes for each sample")

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """The counts of both samples."""
        return self.first, self.second

    @property
    def values(self) -> tuple[float, float]:
        """The unbiased share of a sensitive yes and rate of an innocuous one."""
        return tuple(self._combined(*weights)[0] for weights in self._weights())  # type: ignore[return-value]

    def share(self, confidence: float = 0.95) -> Figure:
        """The share of a sensitive yes."""
        return self._figure("yes", *self._weights()[0], confidence)

    def rate(self, confidence: float = 0.95) -> Figure:
        """The rate of an innocuous yes."""
        return self._figure("innocuous yes", *self._weights()[1], confidence)

    def figures(self, confidence: float = 0.95) -> tuple[Figure, ...]:
        """Both."""
        return self.share(confidence), self.rate(confidence)

    def _weights(self) -> tuple[Pair, Pair]:
        p, r = (float(share) for share in self.design.sensitive)
        # Answers of yes have the probabilities p s + (1 - p) t and r s + (1 - r) t; solved for s and t.
        return ((1 - r) / (p - r), -(1 - p) / (p - r)), (-r / (p - r), p / (p - r))

    def _combined(self, first: float, second: float) -> tuple[float, float]:
        if not all(tally.size for tally in self.tallies):
            return math.nan, math.nan
        value = variance = 0.0
        for weight, tally in zip((first, second), self.tallies, strict=True):
            yes = tally.counts[0] / tally.size
            value += weight * yes
            chance = never_certain(yes, tally.size)
            variance += weight**2 * chance * (1 - chance) / tally.size
        return value, math.sqrt(variance)

    def _figure(self, label: str, first: float, second: float, confidence: float) -> Figure:
        failure = check_confidence(confidence)
        value, error = self._combined(first, second)
        if math.isnan(value):
            return Figure(label, value, error, 0.0, 1.0, float(confidence))
        below = above = 0.0
        for weight, tally in zip((first, second), self.tallies, strict=True):
            yes = tally.counts[0] / tally.size
            limits = wilson(np.array([float(tally.counts[0])]), tally.size, failure)
            low, high = sorted(weight * (float(end[0]) - yes) for end in limits)
            below, above = below + low**2, above + high**2
        ends = (value - math.sqrt(below), value + math.sqrt(above))
        low, high = (min(max(end, 0.0), 1.0) for end in ends)
        return Figure(label, value, error, low, high, float(confidence), (0.0, 1.0))


@overload
def estimate(design: Ranges, answers: Any) -> RangeEstimate: ...
@overload
def estimate(design: TwoSamples, answers: Any) -> TwoSampleEstimate: ...
@overload
def estimate(design: Channel, answers: Any) -> ShareEstimate: ...


def estimate(design: Any, answers: Any) -> ShareEstimate | RangeEstimate | TwoSampleEstimate:
    r"""What randomised answers tell: shares, a mean, or a distribution, by the design of the question.

    Guarantee:
        Needs the design and the randomised answers, or their tally, and nothing else; what each respondent
        gave away was paid when answering. Shares and means are unbiased.
        Proof: docs/proofs/randomised-response.md.

    Args:
        design: any design of this folder.
        answers: the answers in any order, as a list, an array or a series, or a `Tally` of them; for
            `TwoSamples` a pair of either.

    Returns:
        A `ShareEstimate`; for `Ranges` a `RangeEstimate`, for `TwoSamples` a `TwoSampleEstimate`.

    References:
        [Warner65], [Greenberg69], [Wang17].

    >>> from sfumato.local import Warner
    >>> estimate(Warner(keep=0.75), [True, False, True, False]).values.tolist()
    [0.5]
    """
    check_design(design)
    if isinstance(design, TwoSamples):
        rate = design.rate_between[0]
        first, second = pair("answers", answers)
        sample = design.sample(0, rate=rate)
        return TwoSampleEstimate(design, Tally.of(sample, first), Tally.of(sample, second))
    tally = Tally.of(design, answers)
    return RangeEstimate(design, tally) if isinstance(design, Ranges) else ShareEstimate(design, tally)


def estimate_from_dict(record: Mapping[str, Any]) -> ShareEstimate | RangeEstimate | TwoSampleEstimate:
    """Reads back what `to_dict` of an estimate wrote.

    Guarantee:
        The result equals the estimate that was written: figures are computed anew from its counts.

    Raises:
        InvalidParameter: another format, or counts that cannot come from the design.

    >>> from sfumato.local import Warner
    >>> found = estimate(Warner(keep=0.75), [True, False, True, False])
    >>> estimate_from_dict(found.to_dict()) == found
    True
    """
    if not isinstance(record, Mapping):
        raise InvalidParameter(f"an estimate must be a mapping, got {type(record).__name__}")
    check_format(record, "an estimate")
    design = design_from_dict(record.get("design", {}))
    tallies = record.get("tallies")
    samples = 2 if isinstance(design, TwoSamples) else 1
    if not isinstance(tallies, list) or len(tallies) != samples:
        raise InvalidParameter(f"tallies must be a list of {samples}, got tallies={shown(tallies)}")
    read = [_tally(entry) for entry in tallies]
    found: ShareEstimate | RangeEstimate | TwoSampleEstimate
    found = estimate(design, read if samples == 2 else read[0])
    return found


def _tally(entry: object) -> Tally:
    if not isinstance(entry, Mapping) or set(entry) != {"counts", "size"}:
        raise InvalidParameter("a tally must have the fields counts and size")
    return Tally(counts=entry["counts"], size=entry["size"])
