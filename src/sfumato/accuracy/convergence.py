r"""How the exponential mean on finer and finer grids tends to its limit: transforms, rates, gaps.

`MeanLimit` has the points k/N, k = 0..N, of the product. In print they end at (N - 1)/N: `closed=False`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sfumato.accuracy.mean_limits import MOST_CELLS, MeanLimit, kolmogorov_distance, wasserstein_distance
from sfumato.accuracy.piecewise import numbers
from sfumato.checks import Number, boolean, exact, normal, one_of, shown, whole
from sfumato.errors import InvalidParameter

DISTANCES: dict[str, Callable[[MeanLimit, int], float]] = {
    "kolmogorov": kolmogorov_distance,
    "wasserstein": wasserstein_distance,
}


def characteristic_at(limit: MeanLimit, cells: int, frequencies: Any, *, closed: bool = True) -> Any:
    r"""The characteristic function of the exponential mean on N cells, at each frequency.

    Statement: :math:`\Phi_N(t)=\sum_kP(k)e^{itk/N}`, :math:`P(k)\propto e^{-\lambda|k/N-\theta|}`.

    Guarantee:
        The sum, in float64.

    Args:
        limit: the law that it tends to, with its center and its rate.
        cells: N.
        frequencies: real numbers t.
        closed: whether 1 is a point, as in the product; in print it is not.

    >>> round(abs(complex(characteristic_at(MeanLimit(0.5, 8), 100, [1])[0])), 4)
    0.9879
    """
    places, chances = _points(limit, cells, closed)
    t = _frequencies(frequencies)
    # One frequency at a time: the table of all would not fit for many points.
    return np.array([np.exp(1j * one * places) @ chances for one in t])


def characteristic_distance(
    limit: MeanLimit, cells: int, frequencies: Any = (1, 5, 20), *, closed: bool = True
) -> float:
    r"""The largest difference of the characteristic functions on N cells and of the limit.

    Guarantee:
        Exact but for the rounding of float64; at most `characteristic_bound` at the largest frequency.

    Args:
        limit, cells, frequencies, closed: as for `characteristic_at`.

    >>> [round(1000 * characteristic_distance(MeanLimit(c, 8), 1000, closed=False), 3) for c in (0.5, 0.3, 0)]
    [0.045, 0.228, 3.71]
    """
    t = _frequencies(frequencies)
    if not len(t):
        raise InvalidParameter("frequencies must hold at least one number")
    return float(np.abs(characteristic_at(limit, cells, t, closed=closed) - limit.characteristic(t)).max())


def characteristic_bound(limit: MeanLimit, cells: int, frequency: Number, *, closed: bool = True) -> float:
    r"""A bound of order 1/N for the difference of the characteristic functions on N cells and of the limit.

    Statement: with m points, m = N + 1 if 1 is one of them and N else,
    :math:`|\Phi_N(t)-\Phi(t)|\le\frac{|t|}m+2\tanh\frac\lambda{2m}`. Proof:
    docs/proofs/inverse-sensitivity.md.

    Guarantee:
        At least `characteristic_distance`, for every center, rate and number of cells; at most 2.

    Args:
        limit, cells, closed: as for `characteristic_at`.
        frequency: t.

    >>> round(characteristic_bound(MeanLimit(0.3, 8), 1000, 1), 4)
    0.009
    """
    number = whole("cells", cells, least=1, most=2**62) + boolean("closed", closed)
    t = float(_frequencies([exact("frequency", frequency)])[0])
    return min(abs(t) / number + 2 * math.tanh(_checked(limit).rate / (2 * number)), 2.0)


def convergence_rate(limit: MeanLimit, cells_list: Sequence[int], *, distance: str = "wasserstein") -> float:
    r"""The power of N with which the law on N cells approaches its limit, fitted by least squares of logs.

    Statement: the slope of the line nearest to :math:`(\log N,\log d_N)`. All distances here are of the order
    1/N at most, and it tends to -1. For characteristic functions the term in 1/N comes from the ends of
    [0, 1]: where the density there is tiny, the slope is -2 until N is huge.

    Guarantee:
        The slope for these numbers of cells; no statement about others.

    Args:
        limit: the law that is approached.
        cells_list: at least two different numbers N.
        distance: "wasserstein", "kolmogorov" or "characteristic".

    >>> round(convergence_rate(MeanLimit(0.3, 8), [100, 1000, 10_000]), 2)
    -1.0
    """
    one_of("distance", distance, (*DISTANCES, "characteristic"))
    measure = DISTANCES.get(distance, characteristic_distance)
    given: object = cells_list
    listed = given if isinstance(given, Sequence | np.ndarray | range) else ()
    sizes = [whole("cells_list", cells, least=1, most=MOST_CELLS) for cells in listed]
    if len(set(sizes)) < 2:
        raise InvalidParameter("cells_list must hold at least two different numbers of cells")
    found = [measure(_checked(limit), cells) for cells in sizes]
    if min(found) <= 0:
        raise InvalidParameter("cells_list must hold numbers of cells so small that distances are positive")
    across, up = np.log(sizes), np.log(found)
    centred = across - across.mean()
    return float(centred @ up / (centred @ centred))


def central_normaliser(rate: Number, cells: int) -> float:
    r"""The sum of the weights of the exponential mean on k/N, k < N, around 1/2, in closed form.

    Statement: :math:`\sum_{k<N}e^{-\lambda|k/N-1/2|}` is :math:`e^{-\lambda/2}\frac{1+q-2q^{L+1}}{1-q}`,
    :math:`q=e^{\lambda/N}`, for N = 2L + 1, and :math:`(1-e^{-\lambda/2})\frac{q+1}{q-1}` for N = 2L. It is
    about :math:`\frac{2N}\lambda(1-e^{-\lambda/2})`. Source: [A24], with :math:`\lambda=n\varepsilon/2`.
    Erratum E34: the odd case is right, a line of the even case is not (`published_even_normaliser`).

    Guarantee:
        Equal to the sum, to a relative 1e-12, for all rates: it is formed from what is at most 1.

    Args:
        rate: lambda.
        cells: N.

    >>> round(central_normaliser(8, 14), 2), round(central_normaliser(8, 15), 2)
    (3.53, 3.64)
    """
    fall, number = normal("rate", rate), whole("cells", cells, least=1, most=2**53)
    half, odd = divmod(number, 2)
    step = -math.expm1(-fall / number)
    if not odd:
        return -math.expm1(-fall / 2) * (1 + math.exp(-fall / number)) / step
    sides = -math.expm1(-fall * half / number) - math.expm1(-fall * (half + 1) / number)
    return math.exp(-fall / (2 * number)) * sides / step


def published_even_normaliser(rate: Number, cells: int) -> float:
    r"""A line in print for the sum of the weights around 1/2 for an even number of cells: wrong.

    Statement: :math:`(1-e^{-\lambda/2})\bigl(1+\frac{2q}{(1-q)^2}\bigr)`, :math:`q=e^{\lambda/N}`. Source:
    [A24]. Erratum E34: **false** for every rate, by the factor :math:`\coth(\lambda/N)`; the
    equivalent that follows it is right.

    Guarantee:
        None. `central_normaliser` is the sum.

    >>> round(published_even_normaliser(8, 14), 2)
    6.83
    """
    fall, number = normal("rate", rate), whole("cells", cells, least=2, most=2**53)
    if number % 2:
        raise InvalidParameter(f"cells must be even, got cells={number}")
    q = math.exp(-fall / number)  # 2q/(1-q)^2 is the same for q and 1/q
    below = math.expm1(-fall / number)
    return -math.expm1(-fall / 2) * (1 + 2 * q / below / below)


def independent_gap_tail(rate: Number, gap: Number) -> float:
    r"""The chance that two independent draws of the limit around 1/2 differ by a gap or more, one way.

    Statement: for Y, Y' independent with the law of `MeanLimit` around 1/2,
    :math:`P(Y'-Y\ge\eta)=\frac{(\lambda\eta+2)e^{-\lambda\eta}+e^{-\lambda(1-\eta)}+e^{-\lambda}-4e^{-\lambda/2}}
    {4(1-e^{-\lambda/2})^2}` for :math:`\eta\le\frac12` and
    :math:`\frac{(\lambda(1-\eta)-1)e^{-\lambda\eta}+e^{-\lambda}}{4(1-e^{-\lambda/2})^2}` else. It is the
    limit of :math:`P(Y_N-Y\ge\eta)` for independent draws, which therefore do not converge in probability.
    That is a statement about the coupling: coupled by their quantiles they converge almost surely. Erratum
    E35: another expression is in print. Proof: docs/proofs/inverse-sensitivity.md.

    Guarantee:
        Equal to the probability, to 1e-12.

    Args:
        rate: lambda.
        gap: eta, in [0, 1].

    >>> round(independent_gap_tail(8, 0.05), 4), independent_gap_tail(8, 1)
    (0.3986, 0.0)
    """
    fall, eta = normal("rate", rate), exact("gap", gap)
    if not 0 <= eta <= 1:
        raise InvalidParameter(f"gap must be in [0, 1], got gap={shown(gap)}")
    near, far = float(eta), float(1 - eta)
    if fall < 2:
        # The terms cancel: the density is integrated instead, on both sides of its corner at 1/2.
        corner = max(near, 0.5)
        return _gap_mass(fall, near, corner) + _gap_mass(fall, corner, 1.0)
    if near <= 0.5:
        above = (fall * near + 2) * math.exp(-fall * near) + math.exp(-fall * far)
        above += math.exp(-fall) - 4 * math.exp(-fall / 2)
    else:
        above = (fall * far - 1) * math.exp(-fall * near) + math.exp(-fall)
    return max(above, 0.0) / (4 * math.expm1(-fall / 2) ** 2)


def published_independent_gap_limit() -> float:
    r"""What the published chance of a gap between independent draws tends to as the rate grows: 1/8, not 0.

    Statement: an expression :math:`\frac18+\dots` is in print for `independent_gap_tail`. Source: [A24].
    Erratum E35: **false**. It tends to 1/8, but the draws come together as the rate grows, so that
    the chance of any gap tends to 0; and at the rate 8 and the gap 0.05 it is 0.296 and not 0.399.

    Guarantee:
        None.

    >>> published_independent_gap_limit(), round(independent_gap_tail(200, 0.05), 4)
    (0.125, 0.0001)
    """
    return 0.125


def _gap_mass(fall: float, start: float, end: float) -> float:
    """The integral of the density of Y' - Y over [start, end], on one side of 1/2, for a small rate."""
    nodes, weights = np.polynomial.legendre.leggauss(24)
    d = start + (end - start) * (nodes + 1) / 2
    inner = d * np.exp(-fall * d) + np.exp(-fall * d) * -np.expm1(-fall * (1 - 2 * d)) / fall
    density = np.where(d <= 0.5, inner, (1 - d) * np.exp(-fall * d))
    peak = fall / (-2 * math.expm1(-fall / 2))
    return float(peak * peak * (end - start) / 2 * (weights @ density))


def _points(limit: MeanLimit, cells: int, closed: bool) -> tuple[Any, Any]:
    places, chances = _checked(limit).points(cells)
    if boolean("closed", closed):
        return places, chances
    # The last point can hold nearly all weight: what is left is normalised anew from its logs.
    logs = -limit.rate * np.abs(places[:-1] - limit.center)
    weights = np.exp(logs - logs.max())
    return places[:-1], weights / weights.sum()


def _checked(limit: object) -> MeanLimit:
    if not isinstance(limit, MeanLimit):
        raise InvalidParameter(f"limit must be a MeanLimit, got limit={shown(limit)}")
    return limit


def _frequencies(values: Any) -> Any:
    return numbers("frequencies", np.atleast_1d(values) if np.isscalar(values) else values)
