"""Choices in one line: the best of public candidates by private scores, the most common of categories."""

from collections.abc import Sequence
from typing import Any

from sfumato.checks import Number
from sfumato.data.column import Category
from sfumato.data.counts import NullRule
from sfumato.data.dataset import Dataset
from sfumato.front.gate import answer, one_budget
from sfumato.laws import Bits
from sfumato.laws.selection import Variant
from sfumato.privacy import Budget, Neighbours
from sfumato.query import Label
from sfumato.release import Release
from sfumato.session import Session
from sfumato.statistics import MostCommon
from sfumato.statistics.choose import relation


def choose(
    candidates: Sequence[Label],
    scores: Any,
    *,
    sensitivity: Number,
    epsilon: Number | None = None,
    budget: Budget | None = None,
    monotone: bool = False,
    picks: int = 1,
    method: Variant = "flip",
    neighbours: Neighbours | None = None,
    bits: Bits | None = None,
) -> Release:
    """The candidate with about the best private score, or the best few in order, released privately.

    Guarantee:
        Differential privacy at exactly the cost stated in the release, if `sensitivity` and `monotone` are
        right; see `sfumato.Choose`.

    Args:
        candidates: a public list of different texts, numbers or booleans; never read from the data.
        scores: a finite number for each candidate, more is better; a list, an array or a series. Integers and
            fractions count as they are, floats with their exact values.
        sensitivity: how far one record can move any one score.
        monotone: promises that no record raises one score while it lowers another, as when users are added or
            removed and each only adds to scores; doubles the rate. Refused under substitution.
        picks: how many to choose, best first; they share the budget.
        method: "flip", "exponential" or "base2"; docs/choosing.md says which when.
        neighbours: the relation that `sensitivity` was worked out for; "add-remove" if `monotone`, else
            "substitution", unless given.
        epsilon, budget, bits: as for `sfumato.count`.

    Raises:
        InvalidParameter: a parameter that breaks its rule, or scores that are not finite numbers.

    >>> import sfumato as sf
    >>> release = sf.choose(["tea", "coffee"], [120, 480], sensitivity=1, monotone=True, epsilon=1)
    >>> release.value
    'coffee'
    """
    whole = one_budget(epsilon, budget)
    data = Dataset({}, unit="row", neighbours=relation(neighbours, monotone))
    return Session(data, budget=whole, bits=bits).choose(
        candidates,
        lambda _: scores,
        sensitivity=sensitivity,
        budget=whole,
        monotone=monotone,
        picks=picks,
        method=method,
    )


def most_common(
    values: Any,
    *,
    categories: Sequence[Category] | None = None,
    picks: int = 1,
    epsilon: Number | None = None,
    budget: Budget | None = None,
    neighbours: Neighbours = "substitution",
    nulls: NullRule | None = None,
    method: Variant = "flip",
    bits: Bits | None = None,
) -> Release:
    """The most frequent of public categories, or the most frequent few in order, released privately.

    Guarantee:
        Differential privacy at exactly the cost stated in the release; see `sfumato.MostCommon`.

    Args:
        categories: the public list to choose from; values that are none of them, and nulls, count for none.
        picks: how many to choose, best first; they share the budget.
        method: "flip", "exponential" or "base2", as for `sfumato.choose`.

    The other arguments and the errors are those of `sfumato.count`.

    >>> import sfumato as sf
    >>> sf.most_common(["red"] * 90 + ["blue"] * 10, categories=["red", "blue"], epsilon=1).value
    'red'
    """
    query = MostCommon(
        budget=one_budget(epsilon, budget), categories=categories, picks=picks, nulls=nulls, method=method
    )
    return answer(values, query, neighbours, bits)
