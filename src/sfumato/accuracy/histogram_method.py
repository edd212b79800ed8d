r"""How far the histogram method is from a population's quantile: theorems that hold, and published ones.

The method divides the bounds into K steps of width h and answers with the step at which a noisy cumulative
count first passes :math:`qn` plus noise: its left edge, or its middle. What is known of the scan is a radius
:math:`\alpha` that its counts keep from the target but with probability :math:`\beta`; it comes from
`above_threshold_alpha`, `above_threshold_radius` or `AboveThreshold.radius`, for K queries and this failure.
Nine deciles that share a budget have a ninth of it each, and noise of nine times the scale.
"""

import math
from fractions import Fraction

from sfumato.accuracy.crossing import published_above_threshold_alpha
from sfumato.accuracy.order_statistics import MOST_ROWS, at_least, at_most
from sfumato.accuracy.population import Population, checked_bounds, quantile_of, shares_around
from sfumato.checks import Number, boolean, inside, normal, shown, whole
from sfumato.errors import InvalidParameter

MOST_STEPS = 2**40


def histogram_quantile_failure(
    *,
    rows: int,
    steps: int,
    order: Number,
    distance: Number,
    failure: Number,
    radius: Number,
    law: Population = None,
    bounds: tuple[Number, Number] = (0, 1),
    middle: bool = False,
) -> float:
    r"""How likely the histogram method is further than a distance from the population's quantile, at most.

    Statement: let n independent draws of a law F with quantile d of order q be clamped to the bounds, and A
    be the left edge of the step of the first crossing. Unless the scan fails, :math:`X_{(\lceil
    qn-\alpha\rceil)}-h\le A\le X_{(\lfloor qn+\alpha\rfloor+1)}`, so that :math:`P(|A-d|>\gamma)\le
    \beta+P(\mathrm{Bin}(n,F(d+\gamma))\le\lfloor qn+\alpha\rfloor)+P(\mathrm{Bin}(n,F(d-\gamma+h))\ge\lceil
    qn-\alpha\rceil)`. For the middle of the step, h/2 is added to A.

    Hypotheses, checked: :math:`\lceil qn-\alpha\rceil\ge1` and :math:`\lfloor qn+\alpha\rfloor+1\le n`.
    Replaces theorems 2.2.3.1 and 2.2.4.1 of [C22]; errata E7 and E13: see `published_histogram_failure`, and
    for normal data, what is outside the bounds must be clamped.

    Guarantee:
        At least the probability, for every law, also with atoms. Proof: docs/proofs/histogram-method.md.

    Args:
        rows: the number n of records.
        steps: into how many steps K the bounds are divided.
        order: q, inside (0, 1).
        distance: the distance gamma, positive, in units of the values.
        failure: the probability beta with which the scan may leave its radius, inside (0, 1).
        radius: alpha, in ranks, for this failure and as many queries as steps.
        law: a distribution function, or what has quantiles; uniform on the bounds unless given.
        bounds: to which the data are clamped.
        middle: whether the answer is the middle of the step, and not its left edge.

    Raises:
        InvalidParameter: a number out of its range, a radius that leaves no rank, a law that gives no shares.

    References:
        [C22].

    >>> from sfumato.accuracy import above_threshold_alpha
    >>> radius = above_threshold_alpha(queries=1000, failure=0.01, threshold_scale=18, query_scale=36)
    >>> terms = {"rows": 10_000, "steps": 1000, "order": 0.5, "failure": 0.01, "radius": radius}
    >>> [round(histogram_quantile_failure(distance=gamma, **terms), 4) for gamma in (0.06, 0.07)]
    [0.2354, 0.0113]
    """
    size, cells, q, beta, alpha = _checked(rows, steps, order, failure, radius)
    reach = normal("distance", distance)
    lower, upper = ends = checked_bounds(bounds)
    low, high = math.ceil(q * size - alpha), math.floor(q * size + alpha)
    if low < 1 or high >= size:
        raise InvalidParameter(
            f"radius must leave a rank on both sides of the order's, got radius={shown(radius)} for "
            f"rows={size}, order={shown(order)}"
        )
    step = (upper - lower) / cells
    shift = step / 2 if boolean("middle", middle) else 0.0
    center = quantile_of(law, float(q), ends)
    left, right = center - reach + step - shift, center + reach - shift
    below, above = shares_around(law, left, right, ends)
    # Answers are inside the bounds, so that nothing is beyond them; clamped data are inside them too.
    too_high = at_most(high, size, above if right >= lower else 0.0) if center + reach < upper else 0.0
    too_low = at_least(low, size, below if left < upper else 1.0) if center - reach > lower else 0.0
    return min(beta + too_high + too_low, 1.0)


def histogram_mean_error(
    *, rows: int, steps: int, order: Number, failure: Number, radius: Number, middle: bool = False
) -> float:
    r"""How far the histogram method is from a quantile of uniform data on average, at most.

    Statement: for n independent uniform draws on [0, 1],
    :math:`E|A-d|\le\max(d,1-d)\beta+h+\frac\alpha n+\sqrt{\frac\pi{2n}}`, and h/2 for h if the answer is the
    middle of the step. With a budget of :math:`\varepsilon` and :math:`\beta=n^{-1/2}` this is
    :math:`O(n^{-1/2}+\frac{\log n}{n\varepsilon})` for :math:`K\ge\sqrt n` steps, at most a power of n.

    Hypotheses: those of the scan alone; where no rank is left, the right side is above the left by itself.
    Replaces the mean errors of [C22] and [S22]: see `published_histogram_mean_error` and
    `published_histogram_closed_mean_error`. Erratum E9: the rate :math:`d\beta+O(n^{-1/2})` of [C22] is one
    for a fixed failure, number of steps and budget only.

    Guarantee:
        At least the mean absolute error, in parts of the width of the bounds.
        Proof: docs/proofs/histogram-method.md.

    Args:
        rows, steps, order, failure, radius, middle: as for `histogram_quantile_failure`.

    Raises:
        InvalidParameter: a number out of its range.

    References:
        [Hoeffding63], [C22], [S22].

    >>> from sfumato.accuracy import above_threshold_alpha
    >>> radius = above_threshold_alpha(queries=1000, failure=0.01, threshold_scale=18, query_scale=36)
    >>> round(histogram_mean_error(rows=10_000, steps=1000, order=0.5, failure=0.01, radius=radius), 4)
    0.072
    """
    size, cells, q, beta, alpha = _checked(rows, steps, order, failure, radius)
    width = 1 / (2 * cells) if boolean("middle", middle) else 1 / cells
    farthest = float(max(q, 1 - q))
    bound = farthest * beta + width + float(alpha / size) + math.sqrt(math.pi / (2 * size))
    return min(bound, farthest)


def published_histogram_failure(
    *, rows: int, steps: int, distance: Number, failure: Number, epsilon: Number
) -> float:
    r"""How likely a decile of the histogram method is further than a distance, as published: false.

    Statement, false: :math:`P(|A-d|>\gamma)\le\beta+2e^{-n\gamma^2/12}+2e^{-(n\gamma/2-\alpha)^2/(n\gamma)}`
    for uniform data, :math:`\gamma\le\frac1{10}` and :math:`\alpha=\frac8\varepsilon(\ln
    K+\ln\frac2\beta)`, with the budget :math:`\varepsilon` of all nine deciles. Source: [C22], theorem
    2.2.3.1. Erratum E7: each decile has a ninth of the budget, so that 8 must be 72; the width of a step is
    missing; and the last term is no bound for :math:`\gamma<2\alpha/n`. See `histogram_quantile_failure`.

    Guarantee:
        None. For 10,000 rows, 100,000 steps, a distance of 0.1, a failure of 0.05 and a budget of 0.304 the
        median is said to be near with a probability of 0.949, and is so with one below 0.87.

    Args:
        rows, steps, distance, failure: as for `histogram_quantile_failure`; the distance at most 1/10.
        epsilon: the budget of nine deciles.

    Raises:
        InvalidParameter: a number out of its range.

    References:
        [C22].

    >>> terms = {"rows": 10_000, "steps": 100_000, "distance": 0.1, "failure": 0.05, "epsilon": 0.304}
    >>> round(1 - published_histogram_failure(**terms), 3)
    0.949
    """
    size, cells, _, beta, _ = _checked(rows, steps, Fraction(1, 2), failure, 1)
    gamma = normal("distance", distance)
    if gamma > 0.1:
        raise InvalidParameter(f"distance must be at most 1/10, got distance={shown(distance)}")
    alpha = published_above_threshold_alpha(queries=cells, failure=failure, epsilon=epsilon)
    sampling = 2 * math.exp(-size * gamma**2 / 12)
    # As a product of two quotients, for a huge radius has no square.
    short = size * gamma / 2 - alpha
    return beta + sampling + 2 * math.exp(-(short / gamma) * (short / size))


def published_histogram_mean_error(
    *, rows: int, steps: int, order: Number, failure: Number, epsilon: Number
) -> float:
    r"""How far a decile of the histogram method is from uniform data's on average, as published: false.

    Statement, false: :math:`E|A-d|\le d\beta+2\sqrt{3\pi/n}+\frac8ne^\alpha` with the :math:`\alpha` of
    `published_histogram_failure`, which is integrated over all distances. Source: [C22]. Erratum E8: what is
    integrated is no bound below :math:`2\alpha/n` nor above 1/10; distances beyond d count below the
    median; the width of a step is missing. Where the budget is moderate the last term is vacuous:
    :math:`e^\alpha=(2K/\beta)^{8/\varepsilon}`. See `histogram_mean_error`.

    Guarantee:
        None. For 1,000,000 rows, 2 steps, a failure of 0.05 and a budget of 80 the ninth decile is said to
        have a mean error of 0.051; the left edges are 0 and 1/2, and it is 0.4.

    Args:
        rows, steps, order, failure: as for `histogram_quantile_failure`.
        epsilon: the budget of nine deciles.

    Raises:
        InvalidParameter: a number out of its range.

    References:
        [C22].

    >>> terms = {"rows": 1_000_000, "steps": 2, "order": 0.9, "failure": 0.05, "epsilon": 80}
    >>> round(published_histogram_mean_error(**terms), 3)
    0.051
    """
    size, cells, q, beta, _ = _checked(rows, steps, order, failure, 1)
    alpha = published_above_threshold_alpha(queries=cells, failure=failure, epsilon=epsilon)
    log = math.log(8 / size) + alpha
    vacuous = math.exp(log) if log < 709 else math.inf
    return float(q) * beta + 2 * math.sqrt(3 * math.pi / size) + vacuous


def published_histogram_rank_mean_error(*, rows: int, order: Number, epsilon: Number) -> float:
    r"""How far a decile of the histogram method is from uniform data's on average, by ranks, as published.

    Statement, false for enormous data: with :math:`K=\frac{3n}{2\ln n}` steps, :math:`\beta=\frac1{\sqrt n\ln
    n}` and :math:`\alpha=\frac8\varepsilon\ln(3n\sqrt n)`, :math:`E|A-d|\le(d+1)\beta+\frac1K+E|X_{(\lfloor
    dn+\alpha\rfloor+1)}-d|+E|X_{(\lfloor dn-\alpha\rfloor)}-d|`. Source: [S22], slide 3 of 5, in the form
    of which slide 5 is the closed form. Erratum E16: the proof takes the budget of nine deciles for
    each, where 8 must be 72; and both ranks are added where the larger would do, which is why no error above
    it was found on data of usual size.

    Guarantee:
        None. At 10^12 rows, the seventh decile and a budget near 10^-9 the error is above it.

    Args:
        rows: the number n of records, at least 3.
        order: d, inside (0, 1).
        epsilon: the budget of nine deciles.

    Raises:
        InvalidParameter: a number out of its range, or a radius that leaves no rank: then it is undefined.

    References:
        [S22].

    >>> round(published_histogram_rank_mean_error(rows=10_000, order=0.5, epsilon=0.2), 3)
    0.122
    """
    size, q, beta, alpha = _of_slides(rows, order, epsilon)
    low, high = math.floor(q * size - alpha), math.floor(q * size + alpha) + 1
    if low < 1 or high > size:
        raise InvalidParameter(
            f"epsilon must leave a rank on both sides of the order's, got epsilon={shown(epsilon)} for "
            f"rows={size}, order={shown(order)}"
        )
    d = float(q)
    ranks = _mean_distance(low, size, d) + _mean_distance(high, size, d)
    return (d + 1) * beta + 2 * math.log(size) / (3 * size) + ranks


def published_histogram_closed_mean_error(*, rows: int, order: Number, epsilon: Number) -> float:
    r"""The closed form of `published_histogram_rank_mean_error`, as published: false, for it is below that.

    Statement, false: :math:`E|A-d|\le2\sqrt{\frac\pi{2n}}+\frac{d+1}{\sqrt n\ln n}+\frac{2\ln
    n}{3n}+\frac{16\ln3}\varepsilon\frac{\ln n}n`. Source: [S22], slide 5 of 5. Erratum E17: the last term
    must be :math:`2\alpha/n=\frac{16}{n\varepsilon}(\ln3+\frac32\ln n)`, which is a sum and not a product of
    logarithms, and with a ninth of the budget. See `histogram_mean_error`.

    Guarantee:
        None. For 10,000 rows, the median and a budget of 0.2 it is 0.108, below the 0.122 that it should
        dominate.

    Args:
        rows, order, epsilon: as for `published_histogram_rank_mean_error`.

    Raises:
        InvalidParameter: a number out of its range.

    References:
        [S22].

    >>> round(published_histogram_closed_mean_error(rows=10_000, order=0.5, epsilon=0.2), 3)
    0.108
    """
    size, q, beta, _ = _of_slides(rows, order, epsilon)
    sampling, step = 2 * math.sqrt(math.pi / (2 * size)), 2 * math.log(size) / (3 * size)
    ranks = 16 * math.log(3) / normal("epsilon", epsilon) * (math.log(size) / size)
    return sampling + (float(q) + 1) * beta + step + ranks


def _mean_distance(rank: int, rows: int, value: float) -> float:
    """The mean distance of an order statistic of uniform data from a value."""
    mean = rank / (rows + 1)
    short = value * at_least(rank, rows, value) - mean * at_least(rank + 1, rows + 1, value)
    return mean - value + 2 * max(short, 0.0)


def _of_slides(rows: object, order: object, epsilon: object) -> tuple[int, Fraction, float, Fraction]:
    size = whole("rows", rows, least=3, most=MOST_ROWS)
    alpha = 8 * (math.log(3) + 1.5 * math.log(size)) / normal("epsilon", epsilon)
    return size, inside("order", order), 1 / (math.sqrt(size) * math.log(size)), Fraction(alpha)


def _checked(
    rows: object, steps: object, order: object, failure: object, radius: object
) -> tuple[int, int, Fraction, float, Fraction]:
    size = whole("rows", rows, least=1, most=MOST_ROWS)
    cells = whole("steps", steps, least=1, most=MOST_STEPS)
    beta = normal("failure", inside("failure", failure))
    return size, cells, inside("order", order), beta, Fraction(normal("radius", radius))
