"""How one budget pays for a mean and for the spread of its values, at a joint price."""

from fractions import Fraction
from math import isqrt

from sfumato.checks import exact, shown
from sfumato.errors import InvalidParameter
from sfumato.mechanisms import Additive, GaussianMechanism, LaplaceMechanism, Sensitivity, additive
from sfumato.statistics.statistic import Statistic

# The share that benchmarks/interval_shares.py found best over its cells.
AUTO = Fraction(1, 10)
# A smaller share tells nothing, and its noise would leave 64-bit integers.
LEAST = Fraction(1, 100)
# Squares in this ratio to the sums, and fewer, cost nothing: docs/proofs/mean.md, "The spread".
_FREE_LAPLACE, _FREE_GAUSSIAN, _FREE_ADDED = Fraction(1, 4), Fraction(2, 3), Fraction(12, 25)


def checked_share(share: object) -> Fraction:
    """A share of the budget, 0 or neither tiny nor nearly all; "auto" stands for the best default."""
    if isinstance(share, str) and share == "auto":
        return AUTO
    return share_of("interval_share", share)


def share_of(name: str, share: object) -> Fraction:
    """A number that is a share of a budget, 0 or neither tiny nor nearly all."""
    if isinstance(share, str):
        raise InvalidParameter(f"{name} must be 'auto' or a number, got {shown(share)}")
    part = exact(name, share)
    if part and not LEAST <= part <= 1 - LEAST:
        rule = f"0 or in [{float(LEAST)}, {float(1 - LEAST)}]"
        raise InvalidParameter(f"{name} must be {rule}, got {name}={shown(share)}")
    return part


def divided(share: Fraction, *, substitution: bool, gaussian: bool) -> tuple[Fraction, Fraction]:
    """What the sums and the products may cost each by themselves, as parts of what both cost together.

    The parts are of epsilon, or of rho for Gaussian noise. The first is never below 1 - share.

    >>> divided(Fraction(1, 10), substitution=True, gaussian=False)
    (Fraction(1, 1), Fraction(1, 4))
    >>> divided(Fraction(1, 10), substitution=False, gaussian=False)
    (Fraction(9, 10), Fraction(1, 10))
    """
    if not substitution and not gaussian:
        return 1 - share, share
    free = _FREE_LAPLACE if not gaussian else _FREE_GAUSSIAN if substitution else _FREE_ADDED
    if share <= free / (1 + free):
        return Fraction(1), free
    together = _together(1 - share, share, substitution=substitution, gaussian=gaussian)
    return (1 - share) / together, share / together


def _together(first: Fraction, second: Fraction, *, substitution: bool, gaussian: bool) -> Fraction:
    """What both cost together where the products are not free, rounded up where it is a root."""
    if not gaussian:
        return second * (1 + first / (4 * second)) ** 2
    if not substitution:
        return max(first, first / 2 + second)
    # The largest d²(a + b(2 - d)²) on [0, 2] with b = 4 second, a = first is at (3 - u)/2: the proof's u.
    turn = _root_up(1 - first / (2 * second))
    between = first * (3 - turn) ** 3 / (32 * (1 - turn)) if turn < 1 else first + second
    return min(max(first, between), first + second)


def _root_up(square: Fraction) -> Fraction:
    """A number at least the square root, by less than 2^-60."""
    return Fraction(isqrt((square.numerator << 120) // square.denominator) + 1, 1 << 60)


def calibrated(
    query: Statistic, sensitivity: Sensitivity, width: int, share: Fraction
) -> tuple[Additive, Additive, Additive]:
    """The noise on each sum, the noise on the products, and what both are charged as.

    `sensitivity` is that of the sums; one record moves the products by at most a fourth of the squared width.
    The noise is of the kind that the sums would get alone. Where one person can change several rows, the
    noise is that much larger and what is charged is for all of them.
    """
    alone, substitution = query.noise_on(sensitivity), query.substitution
    products = max(width**2 // 4, 1)
    if isinstance(alone, LaplaceMechanism):
        epsilon = alone.event.pure_epsilon / query.changed_rows
        first, second = divided(share, substitution=substitution, gaussian=False)
        return (
            LaplaceMechanism(sensitivity=sensitivity.l1, scale=sensitivity.l1 / (first * epsilon)),
            LaplaceMechanism(sensitivity=products, scale=width**2 / (4 * second * epsilon)),
            alone,
        )
    first, second = divided(share, substitution=substitution, gaussian=True)
    square, coordinates = sensitivity.l2_squared, sensitivity.coordinates
    together = query.moved(
        Sensitivity(sensitivity.l1, square, coordinates + 1, one_vector=False), one_sign=True
    )
    charged = additive(query.budget, together, "gaussian")
    assert isinstance(charged, GaussianMechanism)
    variance = charged.sigma_squared
    return (
        GaussianMechanism(
            sensitivity_squared=square, sigma_squared=variance / first, coordinates=coordinates
        ),
        GaussianMechanism(
            sensitivity_squared=products**2,
            sigma_squared=variance * width**4 / (16 * second * square),
            coordinates=1,
        ),
        charged,
    )
