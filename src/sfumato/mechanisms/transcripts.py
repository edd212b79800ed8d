"""The law of a stream of comparisons: one noisy threshold, and all that is told of a row of values."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from sfumato.checks import keep, whole
from sfumato.laws import Bits
from sfumato.laws.crossing import LARGEST_VALUE, log_tails, terms_of
from sfumato.laws.law import Floats

if TYPE_CHECKING:
    from sfumato.mechanisms.sparse import SparseMechanism

Answer = Literal["below", "above"] | int


class Comparisons:
    """One draw of the threshold's noise, and what it says of each value."""

    def __init__(self, mechanism: "SparseMechanism", threshold: int, bits: Bits) -> None:
        comparison = mechanism.comparison
        self._query_noise, self._answer_noise = comparison.query_noise, mechanism.answer_noise
        self._bits = bits
        self._bar = threshold + comparison.centring + cast(int, comparison.threshold_noise.sample(bits))

    def told(self, value: int) -> Answer:
        """Whether the value is above, by noise of its own."""
        if value + cast(int, self._query_noise.sample(self._bits)) <= self._bar:
            return "below"
        if self._answer_noise is None:
            return "above"
        # Fresh noise: that of the comparison tells how high the noisy threshold can be at most.
        return value + cast(int, self._answer_noise.sample(self._bits))


@dataclass(frozen=True)
class Transcripts:
    """The law of all answers to a given row of values: a tuple that ends with the row or when it halts.

    Guarantee:
        `sample` runs the stream, and `logpmf` errs by about 1e-12 of the larger of 1 and the logarithm.
        Proof: docs/proofs/above-threshold.md.

    >>> from sfumato.mechanisms.sparse import SparseMechanism
    >>> law = SparseMechanism.calibrated(1, sensitivity=1, crossings=2).law([-3, 5, 4], 0)
    >>> len(list(law.patterns())), round(sum(math.exp(law.logpmf(p)) for p in law.patterns()), 12)
    (7, 1.0)
    """

    mechanism: "SparseMechanism"
    values: tuple[int, ...]
    threshold: int

    def __post_init__(self) -> None:
        keep(self, values=tuple(map(_small, self.values)), threshold=_small(self.threshold))

    def patterns(self) -> Iterator[tuple[Answer, ...]]:
        """Every transcript of "below" and "above" that can happen."""
        for length in range(len(self.values) + 1):
            for pattern in itertools.product(("below", "above"), repeat=length):
                if self._possible(pattern):
                    yield cast(tuple[Answer, ...], pattern)

    def logpmf(self, transcript: Sequence[Answer]) -> float:
        """The log probability; where numbers are released, "above" stands for any of them."""
        if not self._possible(transcript):
            return -math.inf
        noise = self.mechanism.answer_noise
        numbers = 0.0
        for answer, value in zip(transcript, self.values, strict=False):
            if not isinstance(answer, str):
                numbers += -math.inf if noise is None else noise.logpmf(answer - value)
        return numbers + self._log_pattern([answer != "below" for answer in transcript])

    def sample(self, bits: Bits) -> tuple[Answer, ...]:
        """The answers of one stream."""
        comparisons, answers = Comparisons(self.mechanism, self.threshold, bits), list[Answer]()
        crossings = self.mechanism.crossings
        for value in self.values:
            answers.append(comparisons.told(value))
            crossings -= answers[-1] != "below"
            if not crossings:
                break
        return tuple(answers)

    def _possible(self, transcript: Sequence[object]) -> bool:
        told = sum(answer != "below" for answer in transcript)
        if told == self.mechanism.crossings:
            return transcript[-1] != "below" and len(transcript) <= len(self.values)
        return told < self.mechanism.crossings and len(transcript) == len(self.values)

    def _log_pattern(self, above: list[bool]) -> float:
        comparison = self.mechanism.comparison
        bar = self.threshold + comparison.centring
        margins = np.array([value - bar for value in self.values[: len(above)]], dtype=np.int64)
        # Given the threshold's noise t, values of the same margin and answer are equal factors.
        terms, _ = terms_of(margins, comparison.threshold_noise, comparison.query_noise, math.inf)
        logs = terms.log_threshold(comparison.threshold_noise)
        crossed = np.array(above, dtype=bool)
        for side in (False, True):
            places, counts = np.unique(margins[crossed == side], return_counts=True)
            tails: Floats = log_tails(comparison.query_noise, terms.distances(places))[int(side)]
            logs = logs + (counts[:, np.newaxis] * tails).sum(axis=0)
        return min(float(terms.log_sum(logs[np.newaxis])[0]), 0.0)


def _small(value: object) -> int:
    return whole("values and threshold", value, least=-LARGEST_VALUE, most=LARGEST_VALUE)
