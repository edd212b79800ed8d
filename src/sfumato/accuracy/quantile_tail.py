r"""How far the rank of a quantile is from its target, if it is drawn by the exponential mechanism.

A rank at the distance d from the target weighs :math:`e^{-cd}`. For a budget :math:`\varepsilon` the rate c
is :math:`\varepsilon/2` where the number of records is public. Answers are either all values between the
bounds ("data with gaps": n records make n + 1 cells) or the points of a public grid, where the distance of a
point is that of the target from the interval between the ranks below and up to the point.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sfumato.accuracy.piecewise import numbers
from sfumato.checks import Number, between, exact, normal, pair, positive, shown, whole
from sfumato.errors import InvalidParameter
from sfumato.grid import Floats, exact_bounds

HALF = Fraction(1, 2)
MOST_POINTS = 2**62
# Powers of e beyond this are 0 or infinity in float64.
_FAR = 745.0


def gap_ratio(values: Sequence[Number] | Floats, bounds: tuple[Number, Number]) -> float:
    r"""The range between the bounds over the smallest gap of the data: the psi of quantile tails.

    Statement: :math:`\psi=(b-a)/\min_i(x_{(i+1)}-x_{(i)})` over the n + 1 cells of the sorted records, the
    bounds being the first and the last point. Infinite with ties, and with a record at a bound.

    Guarantee:
        That number. It depends on the data: it is a diagnostic, and must not be published.

    Args:
        values: the records; those out of bounds are clamped.
        bounds: the lower and the upper one.

    >>> gap_ratio([1, 5, 7], (0, 10)), gap_ratio([5, 5], (0, 10))
    (10.0, inf)
    """
    low, _, widths = _cells(values, bounds)
    smallest = float(widths.min())
    return math.inf if smallest == 0 else float(low[-1] - low[0]) / smallest


def quantile_rank_tail(ratio: float, rate: Number, distance: Number, *, offset: Number = HALF) -> float:
    r"""A bound for the chance that the rank of a drawn quantile is so far from its target, by the gaps.

    Statement: let :math:`\tau\in[0,n]` be the target and cells weigh their length times
    :math:`e^{-c|i-\tau|}`. Then :math:`P(|i-\tau|\ge t)\le\frac B{1+B}`,
    :math:`B=(\psi-1)e^{-c(t-\delta)}`, for :math:`t>\delta`, the distance of :math:`\tau` from the nearest
    whole number. Hence also :math:`\le\psi e^{-c(t-1/2)}`. Source: [KSS22], [A24]. Erratum E26: the half is
    left out there, which is right for whole targets alone. Proof: docs/proofs/quantile-tails.md.

    Guarantee:
        At least the exact probability, for all data with this ratio. With ties it says nothing and is 1.

    Args:
        ratio: psi, from `gap_ratio` or a public bound; infinity is allowed.
        rate: c.
        distance: t, in ranks.
        offset: delta, in [0, 1/2]; 0 if the target is whole, and 1/2 is always right.

    >>> round(quantile_rank_tail(1000, 0.5, 30), 6), quantile_rank_tail(math.inf, 0.5, 30)
    (0.000392, 1.0)
    """
    psi, c, t, delta = _ratio(ratio), normal("rate", rate), _distance(distance), _offset(offset)
    return 1.0 if t <= delta or math.isinf(psi) else _odds(psi - 1, c * float(t - delta))


def quantile_rank_radius(ratio: float, rate: Number, failure: Number, *, offset: Number = HALF) -> float:
    r"""The rank error that a drawn quantile passes with a probability of at most `failure`, by the gaps.

    Statement: `quantile_rank_tail` solved for t:
    :math:`\delta+\frac1c\log\frac{(\psi-1)(1-\beta)}\beta`, or :math:`\delta` if that is less.

    Guarantee:
        The rank is farther from the target than this with probability at most `failure`.
        Proof: docs/proofs/quantile-tails.md.

    Args:
        ratio, rate, offset: as for `quantile_rank_tail`.
        failure: beta, inside (0, 1).

    >>> round(quantile_rank_radius(1000, 0.5, 0.05), 2)
    20.2
    """
    psi, c, delta = _ratio(ratio), normal("rate", rate), float(_offset(offset))
    beta = between("failure", failure, 0, 1)
    return math.inf if math.isinf(psi) else delta + max(_log_odds(psi - 1, beta), 0.0) / c


def published_quantile_rank_radius(ratio: float, epsilon: Number, failure: Number) -> float:
    r"""The rank error of a drawn quantile as it is in print: right for whole targets, false for others.

    Statement: :math:`|i-pn|\le\frac2\varepsilon(\log\psi-\log\beta)` with probability :math:`1-\beta`, for
    the rate :math:`c=\varepsilon/2`. Source: [A24], after [KSS22]. Erratum E26: true if pn is whole.
    Otherwise no cell is nearer than :math:`\delta`, and the statement fails where it promises less: one
    record in the middle, the median, :math:`\varepsilon=10`, :math:`\beta=0.9` gives 0.16, and every answer
    is 0.5 away. Erratum E24: for the weights :math:`e^{-\varepsilon|i-pn|}` that are printed with it the
    privacy level is :math:`2\varepsilon`.

    Guarantee:
        For whole pn only: farther than this with probability at most `failure`.

    Args:
        ratio: psi.
        epsilon: the budget, twice the rate.
        failure: beta.

    >>> [round(published_quantile_rank_radius(*case), 2) for case in ((1000, 1, 0.05), (2, 10, 0.9))]
    [19.81, 0.16]
    """
    psi, beta = _ratio(ratio), between("failure", failure, 0, 1)
    return 2 * (math.log(psi) - _log(beta)) / normal("epsilon", epsilon)


def quantile_rank_tail_exact(
    values: Sequence[Number] | Floats,
    bounds: tuple[Number, Number],
    *,
    target: Number,
    rate: Number,
    distance: Number,
) -> float:
    r"""The exact chance that the rank of a drawn quantile is so far from its target, for given data.

    Statement: :math:`P(|i-\tau|\ge t)=\sum_{|i-\tau|\ge t}w_ie^{-c|i-\tau|}/\sum_iw_ie^{-c|i-\tau|}` over the
    n + 1 cells of lengths :math:`w_i`.

    Guarantee:
        Equal to the sum, to a relative 1e-9. It depends on the data: a diagnostic, not to be published.

    Args:
        values: the records; those out of bounds are clamped.
        bounds: the lower and the upper one.
        target: tau, in [0, n]; read exactly, as is the distance, so that no rank is misplaced by rounding.
        rate: c.
        distance: t, in ranks.

    >>> data = range(1, 1000)
    >>> exact = quantile_rank_tail_exact(data, (0, 1000), target=499.5, rate=0.5, distance=10)
    >>> round(exact, 5), exact <= quantile_rank_tail(gap_ratio(data, (0, 1000)), 0.5, 10)
    (0.00674, True)
    """
    _, ranks, widths = _cells(values, bounds)
    tau, t, c = exact("target", target), _distance(distance), normal("rate", rate)
    if not 0 <= tau <= len(ranks) - 1:
        raise InvalidParameter(f"target must be in [0, number of values], got target={shown(target)}")
    keep = widths > 0
    away = np.abs(ranks[keep] - float(tau))
    with np.errstate(over="ignore"):  # what overflows has no weight
        logs = np.log(widths[keep]) - c * (away - away.min())
    weights = np.exp(logs - logs.max())
    far = (ranks <= max(math.floor(tau - t), -1)) | (ranks >= min(math.ceil(tau + t), len(ranks)))
    return float(weights[far[keep]].sum() / weights.sum())


def grid_rank_tail(points: int, rate: Number, distance: Number) -> float:
    r"""A bound for the chance that the rank of a quantile drawn from a public grid is so far off.

    Statement: a point weighs :math:`e^{-cd}`, d being the distance of the target from the interval between
    the number of records below the point and the number up to it. Then
    :math:`P(d\ge t)\le\frac B{1+B}\le B`, :math:`B=(G-1)e^{-ct}`, because some point has the distance 0.
    Ties do no harm. Hypothesis: that distance. With the plain :math:`|F-\tau|` and ties it is false: if all
    records are equal, no point is near. Source: [MT07]. Proof: docs/proofs/quantile-tails.md.

    Guarantee:
        At least the exact probability, whatever the data. All numbers are public: it can be published.

    Args:
        points: G, on the grid.
        rate: c.
        distance: t, in ranks.

    >>> round(grid_rank_tail(1000, 0.5, 30), 6)
    0.000306
    """
    number = whole("points", points, least=1, most=MOST_POINTS)
    return _odds(number - 1, normal("rate", rate) * float(_distance(distance)))


def epsilon_for_rank(
    rank_error: Number, failure: Number, points: int, *, rate_per_epsilon: Number = HALF
) -> float:
    r"""The budget for which the rank of a quantile drawn from a public grid is near enough.

    Statement: `grid_rank_tail` solved for the budget: with the rate :math:`c=k\varepsilon` and G points,
    :math:`\varepsilon=\frac1{kt}\log\frac{(G-1)(1-\beta)}\beta`, or 0 if that is negative: then a uniform
    draw will do. Hypothesis: the distance of `grid_rank_tail`. Proof: docs/proofs/quantile-tails.md.

    Guarantee:
        With this budget the rank is t or more away with probability at most :math:`\beta`, whatever the data.

    Args:
        rank_error: t, in ranks.
        failure: beta, inside (0, 1).
        points: G, on the grid, a public number.
        rate_per_epsilon: k: 1/2 for a public number of records, :math:`1/(2\max(p,1-p))` for a private one
            and the order p.

    >>> round(epsilon_for_rank(100, 0.01, 201), 3)
    0.198
    """
    t, k = normal("rank_error", rank_error), normal("rate_per_epsilon", rate_per_epsilon)
    number, beta = whole("points", points, least=1, most=MOST_POINTS), between("failure", failure, 0, 1)
    return max(_log_odds(number - 1, beta), 0.0) / (k * t)


def epsilon_for_value(
    tolerance: Number,
    failure: Number,
    points: int,
    *,
    rows: int,
    density: Number,
    rate_per_epsilon: Number = HALF,
) -> float:
    r"""The budget for which the value of a quantile drawn from a public grid is near enough.

    Statement: if the intervals of length v on both sides of the quantile hold at least :math:`n\,p_{\min}v`
    of the n records each, an answer that is more than v away is :math:`n\,p_{\min}v` ranks away, and
    `epsilon_for_rank` applies. Hypothesis: that share is a public fact about the data.

    Guarantee:
        With this budget the answer is more than v away with probability at most `failure`.
        Proof: docs/proofs/quantile-tails.md.

    Args:
        tolerance: v, in units of the data.
        failure, points, rate_per_epsilon: as for `epsilon_for_rank`.
        rows: n.
        density: the share of the records in a unit of values near the quantile, at least.

    >>> round(epsilon_for_value(20, 0.01, 201, rows=1000, density=1 / 200), 3)
    0.198
    """
    count = whole("rows", rows, least=1, most=MOST_POINTS)
    ranks = positive("tolerance", tolerance) * positive("density", density) * count
    if 2 * ranks > count:
        # Two intervals hold all records at most: more is no fact about any data.
        raise InvalidParameter(
            f"density must leave room for both sides of the quantile: tolerance * density at most 1/2, "
            f"got tolerance={shown(tolerance)} and density={shown(density)}"
        )
    return epsilon_for_rank(Fraction(ranks), failure, points, rate_per_epsilon=rate_per_epsilon)


def published_epsilon_for_value(width: Number, gap: Number, tolerance: Number, failure: Number) -> float:
    r"""The budget for an error in value as it is in print, where a width of values is taken for ranks.

    Statement: :math:`\varepsilon=\frac2v\bigl(\log\frac{b-a}{\mathrm{gap}}-\log\beta\bigr)` "for an error of
    at most v". Source: [A24]. Erratum E27: **false**. v is put where a number of ranks belongs: with few
    records nearly every answer is farther than v, and with many the budget is larger than needed. The gap is
    that of the private data, and its use is not charged. `epsilon_for_value` has the rank between.

    Guarantee:
        None. The number that is in print, for comparison.

    Args:
        width: b - a.
        gap: the smallest gap of the data.
        tolerance: v.
        failure: beta.

    >>> round(published_epsilon_for_value(201, 1, 20.1, 0.01), 5)
    0.98592
    """
    psi = positive("width", width) / positive("gap", gap)
    if psi < 1:
        raise InvalidParameter(f"gap must be at most width, got gap={shown(gap)} and width={shown(width)}")
    beta = between("failure", failure, 0, 1)
    return 2 * (_log(psi) - _log(beta)) / normal("tolerance", tolerance)


def _cells(values: object, bounds: object) -> tuple[Floats, Floats, Floats]:
    """The sorted records between the bounds with the bounds, the ranks of the cells, and their lengths."""
    low, high = (float(bound) for bound in exact_bounds(*pair("bounds", bounds)))
    records = np.clip(np.sort(numbers("values", values)), low, high)
    places = np.concatenate([[low], records, [high]])
    return places, np.arange(len(places) - 1, dtype=np.float64), np.diff(places)


def _distance(value: Number) -> Fraction:
    normal("distance", value)
    return exact("distance", value)


def _ratio(value: object) -> float:
    if isinstance(value, float) and value == math.inf:
        return math.inf
    ratio = exact("ratio", value)
    if not 1 <= ratio <= 10**300:
        raise InvalidParameter(f"ratio must be in [1, 1e300] or infinite, got ratio={shown(value)}")
    return float(ratio)


def _offset(value: Number) -> Fraction:
    offset = exact("offset", value)
    if not 0 <= offset <= HALF:
        raise InvalidParameter(f"offset must be in [0, 1/2], got offset={shown(value)}")
    return offset


def _odds(others: float, fall: float) -> float:
    """B / (1 + B) for B = others e^-fall."""
    if others <= 0:
        return 0.0
    log = math.log(others) - fall
    return 1 / (1 + math.exp(-log)) if log > -_FAR + 40 else math.exp(log)


def _log_odds(others: float, beta: Fraction) -> float:
    """log(others (1 - beta) / beta), without rounding a small beta to zero; minus infinity for no others."""
    return math.log(others) + _log(1 - beta) - _log(beta) if others > 0 else -math.inf


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)
