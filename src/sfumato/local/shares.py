"""Estimates of shares, and of a mean told by one bit, from the counts of randomised answers."""

from dataclasses import dataclass

import numpy as np

from sfumato.checks import boolean, one_of
from sfumato.errors import NotSupported
from sfumato.local.design import Channel, Floats
from sfumato.local.intervals import exact_limits, mapped, never_certain, respondents_interval, wilson
from sfumato.local.planning import OF, covariance, supports
from sfumato.local.table import Figure, Reported, check_confidence
from sfumato.local.tally import Tally

CONSISTENT = ("none", "clip", "project")


@dataclass(frozen=True, repr=False)
class ShareEstimate(Reported):
    r"""Shares of a yes-or-no question or of categories, or a mean told by one bit, from randomised answers.

    Guarantee:
        `values` is unbiased. The default interval holds the population's value with at least its confidence,
        for every number of answers. All of it is post-processing and costs nobody anything.
        Proof: docs/proofs/randomised-response.md.

    Args:
        design: the design of the question.
        tally: the counts of the answers.

    References:
        [Warner65], [Wang17], [ClopperPearson34].

    >>> from sfumato.local import Warner
    >>> print(ShareEstimate(Warner(keep=0.75), Tally(counts=[700], size=2000)))
    randomised response, 2,000 answers
           estimate  standard error   95 % interval
      yes     0.200          0.0213  [0.158, 0.243]
      each respondent: LocalDP(epsilon=1.098612288669)
      design: Warner: the truth with probability 0.75, else its opposite
    """

    design: Channel
    tally: Tally

    def __post_init__(self) -> None:
        self.tally.checked(self.design)
        supports(self.design)

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """The counts behind it."""
        return (self.tally,)

    @property
    def labels(self) -> tuple[str, ...]:
        """What each value is about."""
        return self.design.labels

    @property
    def values(self) -> Floats:
        """The unbiased estimates, which may leave [0, 1] or the bounds; not a number if nobody answered."""
        return self._placed(self.raw_shares)

    @property
    def raw_shares(self) -> Floats:
        """The unbiased shares; for a mean, where it lies between the bounds."""
        _, false, gap = supports(self.design)
        if not self.tally.size:
            return np.full(len(self.labels), np.nan)
        shares: Floats = (np.array(self.tally.counts) / self.tally.size - false) / gap
        return shares

    def _placed(self, shares: Floats) -> Floats:
        low, high = self.design.span
        placed: Floats = float(low) + float(high - low) * shares
        return placed

    def consistent(self, method: str = "project") -> Floats:
        """The values without impossible ones: "none" as they are, "clip" and rescale, or "project".

        "project" is the nearest set of shares that are not negative and add up to one. Both are biased where
        a share is near zero; use `values` for sums and comparisons.
        """
        return self._placed(consistent(self.raw_shares, method))

    def covariance(self, of: str = "population") -> Floats:
        """The estimated covariance of the values, as estimates for the population or the respondents.

        For `OneBitMean` it is that for the population, which is never too small for the respondents.
        """
        one_of("of", of, OF)
        low, high = self.design.span
        size, counts = self.tally.size, np.array(self.tally.counts)
        if not size:
            return np.full((len(self.labels), len(self.labels)), np.nan)
        spread = covariance(self.design, counts / size, size, of)
        # Where all answers are alike the observed share says that there is no error, which can not be.
        low_share, high_share = sorted(float(p) for p in self.design.support)
        for i in np.flatnonzero((counts == 0) | (counts == size)).tolist():
            answered = np.array([never_certain(counts[i] / size, size, low_share, high_share)])
            spread[i, i] = covariance(self.design, answered, size, of)[0, 0]
        scaled: Floats = float(high - low) ** 2 * spread
        return scaled

    def standard_errors(self, of: str = "population") -> Floats:
        """The root of each variance; `of` as in `covariance`."""
        errors: Floats = np.sqrt(np.diag(self.covariance(of)))
        return errors

    def interval(
        self,
        confidence: float = 0.95,
        *,
        method: str = "exact",
        of: str = "population",
        simultaneous: bool = False,
    ) -> tuple[Floats, Floats]:
        """Where each value lies with this confidence: both ends, one for each label.

        Args:
            confidence: how often it holds the truth.
            method: "exact" for binomial limits, which hold at least as often as promised, or "wilson", which
                does so about as often; both are mapped from answers to truths.
            of: "population", or "respondents" for the value among these very respondents, by "exact" only.
            simultaneous: whether all intervals hold at once.
        """
        failure = check_confidence(confidence)
        one_of("method", method, ["exact", "wilson"])
        if boolean("simultaneous", simultaneous):
            failure /= len(self.labels)
        own = one_of("of", of, OF) == "respondents"
        if own and method == "wilson":
            raise NotSupported("wilson intervals are for the population; those of respondents are exact")
        true, false, _ = supports(self.design)
        counts, size = np.array(self.tally.counts, dtype=np.float64), self.tally.size
        if not size:
            low, high = np.zeros(len(counts)), np.ones(len(counts))
        elif own and not self.design.rounded:
            each = [respondents_interval(c, size, true, false, failure) for c in self.tally.counts]
            low, high = np.array(each).T
        else:
            # Where a truth is rounded at random this covers the respondents too, because given numbers spread
            # no more than random ones [Hoeffding56].
            limits = wilson if method == "wilson" else exact_limits
            low, high = mapped(limits(counts, size, failure), true, false)
        return self._placed(low), self._placed(high)

    def figures(self, confidence: float = 0.95) -> tuple[Figure, ...]:
        """The values with standard errors and exact intervals."""
        low, high = self.interval(confidence)
        least, most = (float(end) for end in self.design.span)
        columns = (self.values, self.standard_errors(), low, high)
        return tuple(
            Figure(
                label, float(value), float(error), float(start), float(end), float(confidence), (least, most)
            )
            for label, value, error, start, end in zip(self.labels, *columns, strict=True)
        )


def consistent(values: Floats, method: str) -> Floats:
    """Raw shares as they are, clipped to [0, 1] and rescaled, or the nearest point of the simplex.

    A single share has no others to add up with, and is clipped.
    """
    one_of("method", method, CONSISTENT)
    if method == "none" or not np.isfinite(values).all():
        return values.copy()
    if len(values) == 1:
        return np.clip(values, 0.0, 1.0)
    return projected(values) if method == "project" else _rescaled(values)


def projected(values: Floats) -> Floats:
    """The nearest point of the simplex: one number is taken from all shares, and none stays below zero."""
    falling = np.sort(values)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(values) + 1)
    threshold = excess[np.flatnonzero(falling > excess)[-1]]
    nearest: Floats = np.maximum(values - threshold, 0.0)
    return nearest


def _rescaled(values: Floats) -> Floats:
    positive = np.clip(values, 0.0, None)
    total = positive.sum()
    # If nothing is left above zero the answers tell no category from another.
    return positive / total if total > 0 else np.full(len(values), 1 / len(values))
