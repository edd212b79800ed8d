"""The mean squared error of a private mean, and which noise is the smaller one."""

import math
from fractions import Fraction

from sfumato.checks import Number, between, exact, normal, one_of, shown, whole
from sfumato.errors import InvalidParameter
from sfumato.privacy import ApproxDP, gaussian_sigma_squared

KINDS = ("laplace", "gaussian", "analytic gaussian")
MOST_ROWS = 2**62
# Noise for sums on so fine a lattice has the scale of continuous noise.
_LATTICE = 2**60


def mean_risk(
    kind: str,
    rows: int,
    variance: Number,
    width: Number,
    epsilon: Number,
    delta: Number | None = None,
    *,
    constant: Number | None = None,
) -> float:
    r"""The mean squared error of a private mean around the mean of the population.

    Statement: for n independent records with variance V in an interval of length b - a, and noise on their
    mean, which moves by at most :math:`D=(b-a)/n` with one record, :math:`E(M-\mu)^2=\frac Vn+\sigma^2` with
    :math:`\sigma^2=2D^2/\varepsilon^2` (Laplace) or :math:`c^2D^2/\varepsilon^2` (Gaussian,
    :math:`c^2\ge2\ln(1.25/\delta)`, :math:`\varepsilon<1`), or the least that
    :math:`(\varepsilon,\delta)` allows (analytic Gaussian). Source: [A24], [DR14]; [BW18] for the last.
    Erratum E29: a step of the printed derivation has :math:`E[Z^2]` for :math:`(EZ)^2`; the result is right.

    Guarantee:
        Equal to the risk of unclamped noise; for the analytic Gaussian to a relative 1e-5, from above. With
        variance 0 it is the error around the mean of the sample. Proof: docs/proofs/mean.md.

    Args:
        kind: "laplace", "gaussian" or "analytic gaussian".
        rows: n, public.
        variance: V, at most a quarter of the squared width.
        width: b - a.
        epsilon: the budget, below 1 for "gaussian".
        delta: inside (0, 1), for the Gaussians alone.
        constant: c for "gaussian"; the least that the printed theorem allows unless given.

    >>> uniform = 1000**2 / 12
    >>> round(mean_risk("laplace", 1000, uniform, 1000, 0.8), 2)
    86.46
    >>> round(mean_risk("gaussian", 1000, uniform, 1000, 0.8, 1e-5, constant=5), 2)
    122.4
    >>> round(mean_risk("analytic gaussian", 1000, uniform, 1000, 0.8, 1e-5), 2)
    104.24
    """
    size, span = whole("rows", rows, least=1, most=MOST_ROWS), normal("width", width)
    spread = exact("variance", variance)
    # float64 rounds what callers compute, such as width**2 / 4.
    if not 0 <= spread <= exact("width", width) ** 2 * (1 + Fraction(1, 10**12)) / 4:
        raise InvalidParameter(
            f"variance must be in [0, width^2 / 4], got variance={shown(variance)}, width={shown(width)}"
        )
    noise = span / size * _noise(kind, epsilon, delta, constant)
    return float(spread) / size + noise * noise


def gaussian_to_laplace(
    kind: str,
    epsilon: Number,
    delta: Number,
    *,
    answers: int = 1,
    constant: Number | None = None,
) -> float:
    r"""The standard deviation of Gaussian noise over that of Laplace noise, for one mean or several.

    Statement: for k means of the same records, each moved by at most D, Laplace noise of the scale
    :math:`kD/\varepsilon` gives :math:`\varepsilon`-DP and Gaussian noise of :math:`\sqrt k\sigma_1` gives
    :math:`(\varepsilon,\delta)`-DP. The ratio is :math:`\frac{\sigma_1\varepsilon}{D\sqrt{2k}}`, which for
    "gaussian" is :math:`c/\sqrt{2k}`. Erratum E22: at one answer it is above 1, so that the Gaussian peak is
    wider and lower, not "finer and higher". Erratum E30: :math:`c^2>2` if and only if
    :math:`\delta<1.25/e`; but the guarantees differ, and with many answers the order is reversed.

    Guarantee:
        That ratio. Below 1 the Gaussian is the smaller noise. Proof: docs/proofs/gaussian.md.

    Args:
        kind: "gaussian" or "analytic gaussian".
        epsilon, delta: the budget of all answers together.
        answers: k.
        constant: as for `mean_risk`.

    >>> round(gaussian_to_laplace("gaussian", 0.8, 1e-5, constant=5), 2)
    3.54
    >>> [round(gaussian_to_laplace("analytic gaussian", 0.8, 1e-5, answers=k), 2) for k in (1, 6, 7, 100)]
    [2.59, 1.06, 0.98, 0.26]
    """
    one_of("kind", kind, KINDS[1:])
    count = whole("answers", answers, least=1, most=2**40)
    ratio = _noise(kind, epsilon, delta, constant) * normal("epsilon", epsilon)
    return ratio / math.sqrt(2 * count)


def naive_median_loss(width: Number, epsilon: Number) -> float:
    r"""The mean absolute error of a median with Laplace noise for its worst sensitivity.

    Statement: one record can move a median from one bound to the other, so that the noise has the scale
    :math:`(b-a)/\varepsilon`, and :math:`E|M-\mathrm{median}|=(b-a)/\varepsilon`, for any number of records.
    Source: [S22]. Erratum E18: it holds; the integral printed over the half line is over the line.

    Guarantee:
        Equal to the mean absolute error of unclamped noise; the squared error is twice its square.
        Proof: docs/proofs/laplace.md.

    >>> naive_median_loss(1, 0.1), 2 * naive_median_loss(200, 0.2) ** 2
    (10.0, 2000000.0)
    """
    return normal("width", width) / normal("epsilon", epsilon)


def _noise(kind: str, epsilon: Number, delta: Number | None, constant: Number | None) -> float:
    """The standard deviation of the noise for a number that one record moves by at most 1."""
    one_of("kind", kind, KINDS)
    level = normal("epsilon", epsilon)
    if constant is not None and kind != "gaussian":
        raise InvalidParameter(f"constant must be left out for kind={kind!r}, got constant={shown(constant)}")
    if kind == "laplace":
        if delta is not None:
            raise InvalidParameter(f"delta must be left out for kind='laplace', got delta={shown(delta)}")
        return math.sqrt(2) / level
    failure = between("delta", delta, 0, 1)
    if kind == "analytic gaussian":
        budget = ApproxDP(epsilon=exact("epsilon", epsilon), delta=failure)
        variance = gaussian_sigma_squared(budget, sensitivity_squared=_LATTICE**2, coordinates=1)
        return math.sqrt(variance) / _LATTICE
    if level >= 1:
        raise InvalidParameter(f"epsilon must be below 1 for kind='gaussian', got epsilon={shown(epsilon)}")
    square = 2 * (math.log(1.25) + math.log(failure.denominator) - math.log(failure.numerator))
    least = math.sqrt(max(square, 0.0))
    if constant is None:
        return least / level
    chosen = normal("constant", constant)
    if chosen < least:
        raise InvalidParameter(
            f"constant must be at least sqrt(2 ln(1.25/delta)), {least:.6g}, got constant={shown(constant)}"
        )
    return chosen / level
