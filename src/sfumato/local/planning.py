"""The one rule for variances of estimated shares, and what follows from it before a survey is held."""

import math
from typing import Any

import numpy as np

from sfumato.checks import Number, one_of, positive, whole
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.local.binary import TwoSamples
from sfumato.local.cost import exact_number, probability
from sfumato.local.design import Channel, Floats
from sfumato.local.ranges import Ranges
from sfumato.local.records import check_channel
from sfumato.local.tally import MOST_ANSWERS

OF = ("population", "respondents")
# Answers that depend on the truth less than this are beyond what float64 and any survey can use.
LEAST_GAP = 1e-12


def supports(design: Channel) -> tuple[float, float, float]:
    """The probabilities that an answer supports a true and another label, and their difference."""
    true, false = design.support
    gap = float(true - false)
    if abs(gap) < LEAST_GAP:
        raise NotSupported(f"answers of this design depend on the truth by less than {LEAST_GAP}")
    return float(true), float(false), gap


def covariance(design: Channel, answered: Floats, size: int, of: str = "population") -> Floats:
    r"""The covariance of estimated shares, from the probabilities that an answer supports each label.

    With :math:`\lambda = q + (p-q)f` it is :math:`\lambda(1-\lambda)/(n(p-q)^2)` on the diagonal for a
    population. For the respondents themselves the spread of their own shares is taken away; where a truth
    is rounded at random first that spread is not known, and the larger covariance stands for both.
    """
    true, false, gap = supports(design)
    shares = (answered - false) / gap
    if one_of("of", of, OF) == "population" or design.rounded:
        spread = -np.outer(answered, answered) if design.exclusive else -gap * gap * np.outer(shares, shares)
        np.fill_diagonal(spread, answered * (1 - answered))
    else:
        # Linear in the shares, which lie in [0, 1].
        own = np.clip(shares, 0.0, 1.0)
        pairs = false * false + (own[:, None] + own[None, :]) * false * gap
        # An answer supports one label only, so two labels exclude each other; bits are independent.
        spread = -pairs if design.exclusive else np.zeros((len(own), len(own)))
        np.fill_diagonal(spread, own * true * (1 - true) + (1 - own) * false * (1 - false))
    result: Floats = spread / (size * gap * gap)
    return result


def standard_error(
    design: Any, *, share: Number, respondents: int, of: str = "population", rate: Number | None = None
) -> float:
    r"""The standard error of one estimated share or mean, before anyone has answered.

    Guarantee:
        The exact one, for a share that is `share` in the population, or among the respondents themselves;
        for `OneBitMean` exact for the population, and never too small for the respondents. It is what an
        estimate's own standard error estimates. Proof: docs/proofs/randomised-response.md.

    Args:
        design: a design for shares, or `OneBitMean`, for which `share` is where the mean lies between the
            bounds (0 to 1).
        share: the true share, in [0, 1].
        respondents: how many answer; half of them in each sample of `TwoSamples`.
        of: "population" for respondents drawn at random from it, or "respondents" for themselves.
        rate: the true rate of an innocuous yes, for `TwoSamples` only.

    Raises:
        NotSupported: a mean through `Ranges`, or `TwoSamples` for the respondents, who differ between them.

    >>> from sfumato.local import Warner
    >>> round(standard_error(Warner(keep=0.75), share=0.2, respondents=2000), 5)
    0.02133
    """
    value = float(probability("share", share))
    size = whole("respondents", respondents, least=1, most=MOST_ANSWERS)
    if isinstance(design, TwoSamples):
        return _two_samples_error(design, value, size, one_of("of", of, OF), rate)
    if rate is not None:
        raise InvalidParameter("rate must be given for two samples only")
    channel = check_channel(design)
    if isinstance(channel, Ranges):
        raise NotSupported("the error of a mean through ranges depends on all shares; see OneBitMean")
    _, false, gap = supports(channel)
    low, high = channel.span
    variance = covariance(channel, np.array([false + gap * value]), size, of)[0, 0]
    return float(high - low) * math.sqrt(float(variance))


def _two_samples_error(design: TwoSamples, share: float, size: int, of: str, rate: Number | None) -> float:
    if rate is None:
        raise InvalidParameter("rate must be given for two samples, whose error depends on it")
    if of == "respondents":
        raise NotSupported("two samples have different respondents: take of='population'")
    first, second = design.sensitive
    total = 0.0
    for place, weight in ((0, 1 - second), (1, 1 - first)):
        true, false = (float(p) for p in design.sample(place, rate=rate).support)
        answered = false + (true - false) * share
        total += float(weight / (first - second)) ** 2 * answered * (1 - answered) / (size / 2)
    return math.sqrt(total)


def respondents_needed(
    design: Any, *, share: Number, error: Number, of: str = "population", rate: Number | None = None
) -> int:
    """How many respondents bring the standard error of a share or mean down to `error`.

    Guarantee:
        The least number, by the variance of `standard_error`; for `TwoSamples` both samples together.

    Raises:
        InvalidParameter: an error so small that more than 10**15 respondents would be needed.

    >>> from sfumato.local import Warner
    >>> respondents_needed(Warner(keep=1), share=0.2, error=0.01)
    1600
    >>> respondents_needed(Warner(keep=0.75), share=0.2, error=0.01)
    9100
    """
    wanted = positive("error", exact_number("error", error))
    single = standard_error(design, share=share, respondents=1, of=of, rate=rate)
    if exact_number("single", single) ** 2 > wanted**2 * MOST_ANSWERS:
        raise InvalidParameter(f"error must be reached by {MOST_ANSWERS} respondents, got a smaller one")
    # The variance falls as one over the number; a grain of float rounding must not ask for one more.
    return max(math.ceil((single / float(wanted)) ** 2 * (1 - 1e-12)), 1)
