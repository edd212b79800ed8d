"""How much noise is enough: the search for the smallest scale that the bounds of a certificate allow.

A search only proposes: whatever it returns is proved again, on all pairs, before it becomes a certificate.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from sfumato.errors import NotSupported
from sfumato.privacy.pufferfish_certificate import NO_DISTANCE, PURE, lattice_steps, proved
from sfumato.privacy.pufferfish_couplings import infinity_distance
from sfumato.privacy.pufferfish_laws import Finite, Mixture, VectorMixture
from sfumato.privacy.pufferfish_model import Comparison, Pufferfish

# Scales are searched to one part in 2^10, and rounding to the lattice may cost one part in 2^12.
_FINE, _LATTICE = 11, 13
_DOUBLINGS = 120
# Laws of the query that hardly differ need next to no noise: a search for none at all would not end.
_HALVINGS = 24


class Terms(NamedTuple):
    """What a bound is asked for: a method, a target and noise on a lattice."""

    method: str
    epsilon: Fraction
    delta: Fraction
    scale: Fraction
    granularity: Fraction
    grid_step: Fraction


def _holds(model: Pufferfish, terms: Terms) -> bool:
    """Whether every pair is proved to stay within the target."""
    limit = terms.epsilon if terms.method in PURE else terms.delta
    enough = float(limit) if terms.method in PURE else math.inf
    return all(proved(one, terms, enough=enough) <= limit for one in model.comparisons)


def _smallest(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest whole number above `low` that is found to hold; `high` does."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _bracket(holds: Callable[[Fraction], bool], start: Fraction) -> Fraction:
    """A power of two that holds while half of it does not, or that is far below where the search began."""
    size = Fraction(2) ** _exponent(start)
    if _quietly(holds, size):
        for _ in range(_HALVINGS):
            if not _quietly(holds, size / 2):
                break
            size /= 2
        return size
    for _ in range(_DOUBLINGS):
        size *= 2
        if _quietly(holds, size):
            return size
    holds(size)  # says why nothing is found, if anything does
    raise NotSupported("no noise is found that is enough")


def _quietly(holds: Callable[[Fraction], bool], size: Fraction) -> bool:
    try:
        return holds(size)
    except NotSupported:  # nothing can be proved of so little noise, or of so much
        return False


def _exponent(number: Fraction) -> int:
    """The power of two at most the number."""
    power = number.numerator.bit_length() - number.denominator.bit_length()
    return power if Fraction(2) ** power <= number else power - 1


def _start(model: Pufferfish) -> Fraction:
    """The size of what tells the pairs apart, roughly: where a search begins."""
    distances = [_distance(one) for one in model.comparisons]
    if all(distances):
        return max(distance for distance in distances if distance)
    sizes = [Fraction(0)]
    for one in model.comparisons:
        if isinstance(one.left, Mixture):
            sizes += [abs(one.left.mean - one.right.mean), *one.left.deviations, *one.right.deviations]
    return max(sizes) or Fraction(1)


def _distance(one: Comparison) -> Fraction | None:
    return None if isinstance(one.left, VectorMixture) else infinity_distance(one.left, one.right)


def _wasserstein(model: Pufferfish, target: Terms, step: Fraction | None) -> Terms:
    distances = [infinity_distance(one.left, one.right) for one in model.comparisons]
    known = [distance for distance in distances if distance is not None]
    if len(known) < len(distances):
        raise NotSupported(NO_DISTANCE)
    if not max(known):
        raise NotSupported("the laws of every pair are equal: the query tells nothing and needs no noise")
    granularity = step or Fraction(2) ** (_exponent(max(known)) - _LATTICE)
    steps = max(lattice_steps(one, granularity) or 0 for one in model.comparisons)
    if not steps:
        raise NotSupported("the rounded query has equal laws for every pair: it needs no noise")
    return target._replace(granularity=granularity, scale=steps * granularity / target.epsilon)


def _laplace(model: Pufferfish, target: Terms, step: Fraction | None) -> Terms:
    slack = target.epsilon / 1024
    asked = target._replace(grid_step=slack if slack < 1 else Fraction(1, 2))
    if isinstance(model.comparisons[0].left, Finite):
        # What the largest move asks for is always enough; less often is.
        safe = _wasserstein(model, asked, step)._replace(grid_step=Fraction(0))
        top = safe.scale
        for _ in range(_HALVINGS):
            if not _quietly(lambda scale: _holds(model, safe._replace(scale=scale)), top / 2):
                break
            top /= 2
        return _refined(model, safe, top)

    def holds(scale: Fraction) -> bool:
        lattice = step or Fraction(2) ** (_exponent(scale * target.epsilon) - _LATTICE)
        return _holds(model, asked._replace(scale=scale, granularity=lattice))

    top = _bracket(holds, _start(model) / target.epsilon)
    fixed = asked._replace(
        granularity=step or Fraction(2) ** (_exponent(top * target.epsilon / 2) - _LATTICE)
    )
    try:
        holds(top / 2)
    except NotSupported:  # so little noise is beyond what can be computed: a finer search would be in vain
        return fixed._replace(scale=top)
    return _refined(model, fixed, top)


def _refined(model: Pufferfish, fixed: Terms, top: Fraction) -> Terms:
    unit = top / 2**_FINE
    found = _smallest(
        lambda n: _quietly(lambda scale: _holds(model, fixed._replace(scale=scale)), n * unit), 0, 2**_FINE
    )
    return fixed._replace(scale=found * unit)


def _gaussian(model: Pufferfish, target: Terms, step: Fraction | None) -> Terms:
    # A lattice coarser than what tells the secrets apart would hide them by rounding, and the query too.
    coarsest = _start(model) / 8

    def fixed(scale: Fraction, finer: int) -> Terms:
        lattice = step or Fraction(2) ** _exponent(min(scale / finer, coarsest))
        return target._replace(granularity=lattice)

    top = _bracket(
        lambda scale: _holds(model, fixed(scale, 16)._replace(scale=scale)), _start(model) / target.epsilon
    )
    fine = fixed(top, 128)
    if _quietly(lambda scale: _holds(model, fine._replace(scale=scale)), top):
        return _refined(model, fine, top)
    return _refined(model, fixed(top, 16), top)


def _coupling(model: Pufferfish, target: Terms, step: Fraction | None) -> Terms:
    def terms(steps: int, granularity: Fraction) -> Terms:
        return target._replace(granularity=granularity, scale=steps * granularity / target.epsilon)

    fine = 2**_LATTICE

    def holds(distance: Fraction) -> bool:
        lattice = step or distance / fine
        return _holds(model, terms(max(1, math.ceil(distance / lattice)), lattice))

    top = _bracket(holds, max(_start(model), step or Fraction(0)))
    granularity = step or top / fine
    most = max(1, math.ceil(top / granularity))
    return terms(_smallest(lambda n: _holds(model, terms(n, granularity)), 0, most), granularity)


SEARCHES: dict[str, Callable[[Pufferfish, Terms, Fraction | None], Terms]] = {
    "wasserstein": _wasserstein,
    "coupling": _coupling,
    "laplace-certified": _laplace,
    "gaussian-exact": _gaussian,
}
