"""Least squares on a tree of noisy counts, and what its errors are: pure functions of public numbers."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sfumato.grid import Floats, Ints
from sfumato.mechanisms import Additive, LaplaceMechanism

MAX_BRANCHING = 2**10
# Where the exponent of the bound for Laplace noise is looked at; any point of (0, 1) gives a valid bound.
_EXPONENTS = np.linspace(0.002, 0.998, 499)


def level_sizes(leaves: int, branching: int) -> list[int]:
    """The number of nodes of each level below the root, leaves first; at least one level.

    >>> level_sizes(10, 3)
    [10, 4, 2]
    """
    sizes = [leaves]
    while sizes[-1] > branching:
        sizes.append(-(-sizes[-1] // branching))
    return sizes


@lru_cache(maxsize=256)
def best_branching(leaves: int, *, concentrated: bool) -> int:
    """The branching with the least error of a prefix, from 2 to 1,024: the smallest one of some depth.

    A level adds about (b - 1) / 6 to the variance of a prefix, in units of that of one count. Of H levels,
    noise that adds up in L1 has H times the deviation, and in L2 the root of that (docs/proofs/tree.md).

    >>> [best_branching(leaves, concentrated=False) for leaves in (16, 121, 1001, 2**16)]
    [16, 11, 32, 16]
    """
    found: dict[int, int] = {}
    for depth in range(1, max(leaves.bit_length(), 1) + 1):
        branching = next(b for b in itertools.count(max(int(leaves ** (1 / depth)), 2)) if b**depth >= leaves)
        if branching <= MAX_BRANCHING:
            levels = depth**2 if concentrated else depth**3
            found.setdefault(branching, levels * (branching - 1))
    return min(found, key=lambda branching: found[branching])


def families(level: Floats, branching: int) -> Floats:
    """One row for each parent; children that do not exist are zeros, which add nothing."""
    parents = -(-len(level) // branching)
    padded = np.zeros(parents * branching)
    padded[: len(level)] = level
    return padded.reshape(parents, branching)


def parents_of(level: Ints, branching: int) -> Ints:
    """The exact counts one level up."""
    return np.add.reduceat(level, np.arange(0, len(level), branching))


def consistent(levels: Sequence[Floats], branching: int, total: float | None = None) -> list[Floats]:
    """The least-squares estimates of every level, whose children add up to their parents.

    Args:
        levels: noisy counts of equal variances, leaves first; a counted root is the last level.
        branching: how many children a node has, but for the last of each level, which may have fewer.
        total: the exact count of the root, where it is public.

    >>> [level.tolist() for level in consistent([np.array([1.0, 2.0]), np.array([6.0])], 2)]
    [[2.0, 3.0], [5.0]]
    """
    merged, spreads = [levels[0]], [np.ones(len(levels[0]))]
    for own in levels[1:]:
        below = families(merged[-1], branching).sum(axis=1)
        spread = families(spreads[-1], branching).sum(axis=1)
        # The weight of a count of variance 1 beside a sum of this variance, and the variance of both.
        weight = spread / (1 + spread)
        merged.append(below + weight * (own - below))
        spreads.append(weight)
    settled = merged[-1]
    if total is not None:
        settled = settled + (total - settled.sum()) * (spreads[-1] / spreads[-1].sum())
    found = [settled]
    for estimate, spread in zip(merged[-2::-1], spreads[-2::-1], strict=True):
        children, shares = families(estimate, branching), families(spread, branching)
        missing = (settled - children.sum(axis=1)) / shares.sum(axis=1)
        settled = (children + missing[:, np.newaxis] * shares).ravel()[: len(estimate)]
        found.append(settled)
    return found[::-1]


@dataclass(frozen=True, eq=False)
class PrefixErrors:
    """The variances of the number of records up to each edge of a full tree after least squares.

    In units of the variance of one noisy count. An estimated prefix is `part` of the estimated root plus an
    error that is independent of the root's, of variance `rest`; `top` is the variance of the sum of the
    root's children. Proof: docs/proofs/tree.md.
    """

    part: Floats
    rest: Floats
    top: float

    def variance(self, order: float, *, counted: bool, public: bool) -> float:
        """The largest variance of (records up to an edge) - order * (all records).

        Args:
            order: the part of all records that is the target.
            counted: whether the root has a noisy count of its own.
            public: whether the root is known exactly.
        """
        root = 0.0 if public else self.top / (1 + self.top) if counted else self.top
        return float(np.max((self.part - order) ** 2 * root + self.rest))


@lru_cache(maxsize=64)
def prefix_errors(leaves: int, branching: int) -> PrefixErrors:
    """Exact for a full tree; bounds for one with fewer leaves, whose missing counts are known to be 0."""
    part, rest, spread = np.ones(1), np.zeros(1), 1.0
    before = np.arange(branching)[:, np.newaxis]
    after = branching - 1 - before
    for level in range(len(level_sizes(leaves, branching))):
        if level:
            spread = branching * spread / (1 + branching * spread)
        mean = (before + part) / branching
        rest = rest + spread * (before * (1 - mean) ** 2 + (part - mean) ** 2 + after * mean**2)
        part, rest = mean.ravel(), rest.ravel()
    return PrefixErrors(part, rest, branching * spread)


def tail(mechanism: Additive, variance: float, failure: float) -> float:
    """What a sum of noise exceeds in size with probability at most `failure`.

    For weights of at most 1 in size whose squares add up to `variance`. Proof: docs/proofs/tree.md.
    """
    logs = math.log(2 / failure)
    if isinstance(mechanism, LaplaceMechanism):
        bounds = (logs - variance * np.log1p(-(_EXPONENTS**2))) / _EXPONENTS
        return float(mechanism.scale) * float(bounds.min())
    return math.sqrt(2 * float(mechanism.sigma_squared) * variance * logs)
