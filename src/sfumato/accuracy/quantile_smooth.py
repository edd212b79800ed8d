r"""How far a quantile by smooth inverse sensitivity is from those of the sample and of the population.

The mechanism: answers within :math:`\rho` of the sample quantile :math:`d_i=x_{(\lceil pn\rceil)}` have level
0, and beyond each further record, moved outwards by :math:`\rho`, the level grows by one; the density is
proportional to :math:`e^{-\varepsilon\,\mathrm{level}/2}` between the bounds a and b.
"""

import math

from sfumato.checks import Number, normal, shown, whole
from sfumato.errors import InvalidParameter

MOST_ROWS = 2**62


def inverse_sensitivity_quantile_tail(
    *,
    rows: int,
    density: Number,
    reach: Number,
    step: Number,
    radius: Number,
    width: Number,
    epsilon: Number,
) -> float:
    r"""A bound for the chance that a quantile by smooth inverse sensitivity misses that of the sample.

    Statement: for n independent records between a and b whose law has a density of at least :math:`p_{\min}`
    within :math:`2\gamma` of its quantile :math:`d_l`, and :math:`0<u\le\gamma/4`,
    :math:`P(|M-d_i|>2u+\rho)\le\frac{b-a}{\min(2\rho,\rho+\gamma,b-a)}e^{-np_{\min}u\varepsilon/4}
    +2e^{-2n\gamma^2p_{\min}^2}+\bigl(\lceil2\gamma/u\rceil+2\bigr)e^{-np_{\min}u/8}`. Hypotheses: those, so
    that :math:`4\gamma\le b-a` and :math:`4\gamma p_{\min}\le1`; :math:`d_i` is the quantile of the *sample*.
    Source: [AD20], [C22] theorem 3.2.0.1. Erratum E15: the theorem holds; its proof has an inequality
    reversed, u must be positive, and :math:`d_i\pm\rho` may be out of bounds, which the minimum accounts for.
    Read with the population quantile it is false: `inverse_sensitivity_population_tail`. Proof:
    docs/proofs/quantile-tails.md.

    Guarantee:
        At least the probability, over data and draw, whatever the order of the quantile; at most 1.

    Args:
        rows: n.
        density: p_min, of the law.
        reach: gamma, in units of the data.
        step: u, positive, at most a quarter of the reach.
        radius: rho, positive.
        width: b - a.
        epsilon: the budget of this one quantile.

    >>> public = dict(rows=10_000, density=1, reach=0.25, radius=0.001, width=1, epsilon=1)
    >>> [round(inverse_sensitivity_quantile_tail(step=step, **public), 7) for step in (0.006, 0.012)]
    [0.0477182, 1.35e-05]
    """
    n, low, gamma, u, rho, span, level = _checked(rows, density, reach, step, radius, width, epsilon)
    return _tail(n, low, gamma, gamma, u, rho, span, level)


def inverse_sensitivity_population_tail(
    *,
    rows: int,
    density: Number,
    reach: Number,
    step: Number,
    drift: Number,
    radius: Number,
    width: Number,
    epsilon: Number,
) -> float:
    r"""A bound for the chance that a quantile by smooth inverse sensitivity misses that of the population.

    Statement: for :math:`0<v\le\gamma`, :math:`P(|M-d_l|>2u+\rho+v)\le
    \frac{b-a}{\min(2\rho,\rho+2\gamma-v,b-a)}e^{-np_{\min}u\varepsilon/4}
    +2e^{-2nv^2p_{\min}^2}+\bigl(\lceil2v/u\rceil+2\bigr)e^{-np_{\min}u/8}`. The event that
    :math:`|d_i-d_l|\le v` is paid for once: it is never above the bound of
    `inverse_sensitivity_quantile_tail` plus :math:`2e^{-2nv^2p_{\min}^2}`. Hypotheses: as there. Proof:
    docs/proofs/quantile-tails.md.

    Guarantee:
        At least the probability, over data and draw, whatever the order of the quantile; at most 1.

    Args:
        rows, density, reach, step, radius, width, epsilon: as for `inverse_sensitivity_quantile_tail`.
        drift: v, how far the sample quantile may be from that of the population.

    >>> public = dict(rows=10_000, density=1, reach=0.25, radius=0.001, width=1, epsilon=1)
    >>> round(inverse_sensitivity_population_tail(step=0.012, drift=0.02, **public), 6)
    0.000673
    """
    n, low, gamma, u, rho, span, level = _checked(rows, density, reach, step, radius, width, epsilon)
    v = normal("drift", drift)
    if v > gamma:
        raise InvalidParameter(f"drift must be at most reach, got drift={shown(drift)}, reach={shown(reach)}")
    return _tail(n, low, v, 2 * gamma - v, u, rho, span, level)


def _tail(
    n: int, low: float, away: float, margin: float, u: float, rho: float, span: float, level: float
) -> float:
    """The bound if sample and population quantile differ by `away` at most; `margin` is left to the ends."""
    ratio = span / min(2 * rho, rho + margin, span)
    draw = math.exp(math.log(ratio) - n * low * u * level / 4)
    middle = 2 * math.exp(-2 * n * (low * away) ** 2)
    cells = (math.ceil(2 * away / u) + 2) * math.exp(-n * low * u / 8)
    return min(draw + middle + cells, 1.0)


def _checked(
    rows: int,
    density: Number,
    reach: Number,
    step: Number,
    radius: Number,
    width: Number,
    epsilon: Number,
) -> tuple[int, float, float, float, float, float, float]:
    n = whole("rows", rows, least=1, most=MOST_ROWS)
    low, gamma, u = normal("density", density), normal("reach", reach), normal("step", step)
    rho, span, level = normal("radius", radius), normal("width", width), normal("epsilon", epsilon)
    if u > gamma / 4:
        raise InvalidParameter(
            f"step must be at most a quarter of reach, got step={shown(step)}, reach={shown(reach)}"
        )
    # The comparisons forgive the rounding of float64, which the bound does not feel.
    if 4 * gamma > span * (1 + 1e-12):
        raise InvalidParameter(
            f"reach must be at most a quarter of width, got reach={shown(reach)}, width={shown(width)}"
        )
    if 4 * gamma * low > 1 + 1e-12:
        raise InvalidParameter(
            f"density must be at most 1/(4 reach), the mass of its range being at most 1, "
            f"got density={shown(density)}, reach={shown(reach)}"
        )
    return n, low, gamma, u, rho, span, level
