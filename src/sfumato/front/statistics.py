"""Counts, sums, means, variances, proportions and histograms in one line each."""

from collections.abc import Sequence
from typing import Any, Literal

from sfumato.checks import Number
from sfumato.data.column import Category
from sfumato.data.counts import NullRule
from sfumato.front.gate import answer, one_budget
from sfumato.laws import Bits
from sfumato.mechanisms import Noise
from sfumato.privacy import Budget, Neighbours
from sfumato.release import Release
from sfumato.statistics import Count, Histogram, Mean, Proportion, Sum, Variance


def count(
    values: Any,
    *,
    equals: Category | Sequence[Category] | None = None,
    between: tuple[float, float] | None = None,
    epsilon: Number | None = None,
    budget: Budget | None = None,
    neighbours: Neighbours = "substitution",
    nulls: NullRule | None = None,
    noise: Noise = "auto",
    bits: Bits | None = None,
) -> Release:
    """The number of values, or of values that meet a public condition, released privately.

    Guarantee:
        Differential privacy at exactly the cost stated in the release; see `sfumato.Count`.

    Args:
        values: a NumPy array, a list, or a pandas, Polars or PyArrow series.
        equals, between: count only these categories, or values in this closed range.
        epsilon: short for `budget=PureDP(epsilon)`; one of the two must be given.
        neighbours: "substitution" (the number of rows is public) or "add-remove" (it is private).
        nulls: "drop", "lower" or "upper"; for a type that can hold no nulls the number of values is public.
        noise: "auto", "laplace" or "gaussian".
        bits: another source of randomness; seeded bits make a release that is marked not private.

    Raises:
        InvalidParameter, SchemaMismatch: a public fact is wrong; nothing was spent.

    >>> import sfumato as sf
    >>> import numpy as np
    >>> sf.count(np.array([3, 1, 4]), epsilon=1).value  # all rows of a type without nulls: a public number
    3
    """
    whole = one_budget(epsilon, budget)
    query = Count(budget=whole, equals=equals, between=between, nulls=nulls, noise=noise)
    return answer(values, query, neighbours, bits)


def proportion(
    values: Any,
    *,
    equals: Category | Sequence[Category] | None = None,
    between: tuple[float, float] | None = None,
    epsilon: Number | None = None,
    budget: Budget | None = None,
    neighbours: Neighbours = "substitution",
    nulls: NullRule | None = None,
    noise: Noise = "auto",
    bits: Bits | None = None,
) -> Release:
    """The share of values that are true, or that meet a public condition, released privately.

    Guarantee:
        Differential privacy at exactly the cost stated in the release; see `sfumato.Proportion`.

    Args:
        values: booleans, or any values with `equals=` or `between=`.

    The other arguments and the errors are those of `sfumato.count`.

    >>> import sfumato as sf
    >>> release = sf.proportion([True] * 70 + [False] * 30, epsilon=1e6)
    >>> release.value
    0.7
    """
    whole = one_budget(epsilon, budget)
    query = Proportion(budget=whole, equals=equals, between=between, nulls=nulls, noise=noise)
    return answer(values, query, neighbours, bits)


def sum(
    values: Any,
    *,
    bounds: tuple[Number, Number] | None = None,
    epsilon: Number | None = None,
    budget: Budget | None = None,
    neighbours: Neighbours = "substitution",
    nulls: NullRule | None = None,
    noise: Noise = "auto",
    bits: Bits | None = None,
) -> Release:
    """The sum of values clamped to public bounds, released privately.

    Guarantee:
        Differential privacy at exactly the cost stated in the release; see `sfumato.Sum`.

    Args:
        bounds: (lower, upper), from public knowledge and never from the data.

    The other arguments and the errors are those of `sfumato.count`.

    >>> import sfumato as sf
    >>> round(sf.sum([1, 2, 3], bounds=(0, 10), epsilon=1e6).value, 3)
    6.0
    """
    query = Sum(budget=one_budget(epsilon, budget), bounds=bounds, nulls=nulls, noise=noise)
    return answer(values, query, neighbours, bits)


def mean(
    values: Any,
    *,
    bounds: tuple[Number, Number] | None = None,
    epsilon: Number | None = None,
    budget: Budget | None = None,
    neighbours: Neighbours = "substitution",
    nulls: NullRule | None = None,
    noise: Noise = "auto",
    interval_share: Number | Literal["auto"] = 0,
    bits: Bits | None = None,
) -> Release:
    """The mean of values clamped to public bounds, released privately.

    Guarantee:
        Differential privacy at exactly the cost stated in the release; see `sfumato.Mean`.

    Args:
        interval_share: the share of the budget, 0, in [0.01, 0.99] or "auto", that also tells the spread, for
            a narrow `population_interval`; see `sfumato.Mean`.

    The other arguments and the errors are those of `sfumato.sum`.

    >>> import sfumato as sf
    >>> round(sf.mean([1, 2, 3], bounds=(0, 10), epsilon=1e6).value, 3)
    2.0
    """
    query = Mean(
        budget=one_budget(epsilon, budget),
        bounds=bounds,
        nulls=nulls,
        noise=noise,
        interval_share=interval_share,
    )
    return answer(values, query, neighbours, bits)


def variance(
    values: Any,
    *,
    bounds: tuple[Number, Number] | None = None,
    epsilon: Number | None = None,
    budget: Budget | None = None,
    neighbours: Neighbours = "substitution",
    nulls: NullRule | None = None,
    noise: Noise = "auto",
    bits: Bits | None = None,
) -> Release:
    """The variance (mean squared distance to the mean) of values clamped to bounds, released privately.

    Guarantee:
        Differential privacy at exactly the cost stated in the release; see `sfumato.Variance`.

    The arguments and the errors are those of `sfumato.sum`.

    >>> import sfumato as sf
    >>> round(sf.variance([0, 10], bounds=(0, 10), epsilon=1e6).value, 2)
    25.0
    """
    query = Variance(budget=one_budget(epsilon, budget), bounds=bounds, nulls=nulls, noise=noise)
    return answer(values, query, neighbours, bits)


def histogram(
    values: Any,
    *,
    bins: int | None = None,
    bounds: tuple[Number, Number] | None = None,
    edges: Sequence[Number] | None = None,
    categories: Sequence[Category] | None = None,
    other: bool = False,
    epsilon: Number | None = None,
    budget: Budget | None = None,
    neighbours: Neighbours = "substitution",
    nulls: NullRule | None = None,
    noise: Noise = "auto",
    bits: Bits | None = None,
) -> Release:
    """The number of values in each public bin or category, released privately.

    Guarantee:
        Differential privacy at exactly the cost stated in the release, for all cells together; see
        `sfumato.Histogram`.

    Args:
        bins, bounds: equal bins between two public bounds.
        edges: bins between public edges instead.
        categories, other: a public list of values instead, and whether all others are counted together.

    The other arguments and the errors are those of `sfumato.count`.

    >>> import sfumato as sf
    >>> sf.histogram(["a", "b", "a"], categories=["a", "b", "c"], epsilon=1e6).value.tolist()
    [2, 1, 0]
    """
    query = Histogram(
        budget=one_budget(epsilon, budget),
        bins=bins,
        bounds=bounds,
        edges=edges,
        categories=categories,
        other=other,
        nulls=nulls,
        noise=noise,
    )
    return answer(values, query, neighbours, bits)
