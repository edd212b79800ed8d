"""How far two laws of a query are apart: couplings that move little, always or with a small failure.

Proofs: docs/proofs/pufferfish.md. Floats choose a coupling; that it is one, and its failure, is settled by
exact fractions and tails that are rounded up.
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.checks import float_down
from sfumato.errors import NotSupported
from sfumato.privacy.pufferfish_laws import Finite, Floats, Mixture, QueryLaw, VectorMixture

# Covers the rounding of a tail of the normal or chi law, whose argument is below 40 in size.
_TAIL_ERROR = 1e-10
# Beyond, a tail is below the smallest float.
_LEAST_TAIL = 1e-300


def infinity_distance(left: QueryLaw, right: QueryLaw) -> Fraction | None:
    """The W-infinity distance of finite laws, or a bound on that of mixtures; None if no bound is known.

    Guarantee:
        Some coupling never moves further. Exact for finite laws. Components of a mixture are matched within
        the same deviation, in order, which is the best bottleneck of all couplings of their weights; if the
        weights of a deviation differ there is none. Proof: docs/proofs/pufferfish.md.

    References:
        [SWC17].

    >>> infinity_distance(Finite({0: 0.5, 3: 0.5}), Finite({1: 0.25, 4: 0.75}))
    Fraction(4, 1)
    """
    if isinstance(left, Finite) and isinstance(right, Finite):
        return _monotone(left, right)
    if isinstance(left, Mixture) and isinstance(right, Mixture):
        moved = Fraction(0)
        for deviation in {*left.deviations, *right.deviations}:
            mine, theirs = _alike(left, deviation), _alike(right, deviation)
            if sum(w for _, w in mine) != sum(w for _, w in theirs):
                return None
            moved = max(moved, _monotone(mine, theirs))
        return moved
    raise NotSupported(
        "method 'wasserstein' is for queries of one number: take method='coupling' for vectors"
    )


def _alike(mixture: Mixture, deviation: Fraction) -> list[tuple[Fraction, Fraction]]:
    places = zip(mixture.means, mixture.weights, mixture.deviations, strict=True)
    return sorted((mean, weight) for mean, weight, one in places if one == deviation)


def _monotone(
    left: Iterable[tuple[Fraction, Fraction]], right: Iterable[tuple[Fraction, Fraction]]
) -> Fraction:
    """The largest move of the quantile coupling, which no coupling on the line beats."""
    mine, theirs = list(left), list(right)
    largest, spare_left, spare_right = Fraction(0), Fraction(0), Fraction(0)
    i = j = -1
    while True:
        if not spare_left:
            i += 1
            if i == len(mine):
                return largest
            spare_left = mine[i][1]
        if not spare_right:
            j += 1
            spare_right = theirs[j][1]
        largest = max(largest, abs(mine[i][0] - theirs[j][0]))
        used = min(spare_left, spare_right)
        spare_left, spare_right = spare_left - used, spare_right - used


def coupling_failure(left: QueryLaw, right: QueryLaw, distance: Fraction) -> Fraction:
    """At least the probability that a coupling of two laws moves further than a distance, in L2.

    Guarantee:
        There is a coupling that moves further with at most the returned probability. Its weights solve a
        linear program and are made feasible in exact fractions; inside a pair of components the map is the
        optimal transport of normal laws, whose tails are rounded up. Proof: docs/proofs/pufferfish.md.

    References:
        [Ding24].

    >>> from sfumato.privacy.pufferfish import Mixture
    >>> narrow, wide = Mixture.normal(0, 1), Mixture.normal(1, 2)
    >>> round(float(coupling_failure(narrow, wide, Fraction(4))), 5)
    0.00135
    """
    costs = _costs(left, right, distance)
    plan = feasible(_plan(costs, left.weights, right.weights), costs, left.weights, right.weights)
    return sum((share * Fraction(cost) for share, cost in zip(plan, costs.flat, strict=True)), Fraction(0))


def _plan(costs: Floats, rows: tuple[Fraction, ...], columns: tuple[Fraction, ...]) -> Floats:
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, kron, vstack

    m, n = costs.shape
    ones_m, ones_n = np.ones((1, m)), np.ones((1, n))
    sums = vstack([kron(eye_array(m), ones_n), kron(ones_m, eye_array(n))])
    margins = np.array([float(share) for share in (*rows, *columns)])
    # The solver stops at differences of 1e-7: costs are stretched so that small ones count.
    least = costs[costs > _LEAST_TAIL * 2].min(initial=1.0)
    stretched = np.minimum(costs / max(least, 1e-12), 1e6)
    found = linprog(stretched.ravel(), A_eq=sums.tocsr(), b_eq=margins, method="highs")
    if found.x is None:  # any coupling is valid: the independent one always exists
        return np.outer(margins[:m], margins[m:])
    return np.asarray(found.x, dtype=np.float64).reshape(m, n)


def feasible(
    plan: Floats, costs: Floats, rows: tuple[Fraction, ...], columns: tuple[Fraction, ...]
) -> list[Fraction]:
    """An exact coupling of the weights near a rounded one, by rows: shrunk to fit, the rest where cheap."""
    shares = [[Fraction(max(float(x), 0.0)) for x in row] for row in plan]
    for i, (row, total) in enumerate(zip(shares, rows, strict=True)):
        mass = sum(row, Fraction(0))
        if mass > total:
            shares[i] = [x * total / mass for x in row]
    for j, total in enumerate(columns):
        mass = sum((row[j] for row in shares), Fraction(0))
        if mass > total:
            for row in shares:
                row[j] = row[j] * total / mass
    open_rows = [total - sum(row, Fraction(0)) for row, total in zip(shares, rows, strict=True)]
    open_columns = [total - sum((row[j] for row in shares), Fraction(0)) for j, total in enumerate(columns)]
    # Each place exhausts its row or its column, and both lack the same in total: nothing stays open.
    for place in np.argsort(costs, axis=None, kind="stable"):
        i, j = divmod(int(place), len(columns))
        moved = min(open_rows[i], open_columns[j])
        shares[i][j] += moved
        open_rows[i] -= moved
        open_columns[j] -= moved
    return [x for row in shares for x in row]


def _costs(left: QueryLaw, right: QueryLaw, distance: Fraction) -> Floats:
    """For each pair of components, at least the probability that the map moves further than `distance`."""
    if isinstance(left, VectorMixture) and isinstance(right, VectorMixture):
        return _vector_costs(left, right, distance)
    if isinstance(left, VectorMixture) or isinstance(right, VectorMixture):
        raise NotSupported("both laws of a pair must be of the same kind")
    mine, theirs = _components(left), _components(right)
    return np.array([[_line_cost(a, b, distance) for b in theirs] for a in mine])


def _components(law: Finite | Mixture) -> list[tuple[Fraction, Fraction]]:
    if isinstance(law, Finite):
        return [(value, Fraction(0)) for value in law.values]
    return list(zip(law.means, law.deviations, strict=True))


def _line_cost(a: tuple[Fraction, Fraction], b: tuple[Fraction, Fraction], distance: Fraction) -> float:
    from scipy.special import ndtr

    move, spread = b[0] - a[0], abs(b[1] - a[1])
    if not spread:
        return float(abs(move) > distance)
    tails = float(ndtr(float((move - distance) / spread))) + float(ndtr(float((-distance - move) / spread)))
    return _up(tails)


def _vector_costs(left: VectorMixture, right: VectorMixture, distance: Fraction) -> Floats:
    roots = [_root(_matrix(covariance)) for covariance in left.covariances]
    costs = np.ones((len(left.weights), len(right.weights)))
    for i, (mean, covariance) in enumerate(zip(left.means, left.covariances, strict=True)):
        for j, (other, target) in enumerate(zip(right.means, right.covariances, strict=True)):
            squared = sum(((b - a) ** 2 for a, b in zip(mean, other, strict=True)), Fraction(0))
            if covariance == target:
                costs[i, j] = float(squared > distance**2)
                continue
            room = float_down(distance) - np.sqrt(float(squared)) * (1 + 1e-12)
            if room > 0:
                costs[i, j] = _chi_tail(left.dimension, room / _stretch(roots[i], _matrix(target)))
    return costs


def _chi_tail(dimension: int, radius: float) -> float:
    from scipy.special import gammaincc

    return _up(float(gammaincc(dimension / 2, radius * radius * (1 - 1e-10) / 2)))


def _stretch(root: Floats, target: Floats) -> float:
    """At least the operator norm of (A - I) S^(1/2), with A the optimal map from S to the target."""
    inverse = np.linalg.inv(root)
    optimal = inverse @ _root(root @ target @ root) @ inverse
    size = float(np.linalg.norm((optimal - np.eye(len(root))) @ root, 2))
    condition = float(np.linalg.cond(root)) ** 2
    return size * (1 + 1e-9) + 1e-13 * condition * float(
        np.linalg.norm(root, 2) + np.linalg.norm(target, 2) ** 0.5
    )


def _root(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    result: Floats = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    return result


def _matrix(rows: Any) -> Floats:
    return np.array([[float(number) for number in row] for row in rows])


def _up(probability: float) -> float:
    return min(1.0, probability * (1 + _TAIL_ERROR) + _LEAST_TAIL)
