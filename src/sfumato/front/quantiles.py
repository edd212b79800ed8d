"""Quantiles in one line, and bounds where none are known."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal, TypedDict, Unpack

from sfumato.checks import Number, inside
from sfumato.data.counts import NullRule
from sfumato.errors import NotSupported
from sfumato.front.gate import answer, one_budget
from sfumato.laws import Bits
from sfumato.privacy import Budget, Neighbours
from sfumato.quantile_methods import Quantiles, Unbounded
from sfumato.release import Release


class QuantileOptions(TypedDict, total=False):
    """The options that all functions for quantiles share; `quantiles` explains them."""

    bounds: tuple[Number, Number] | None
    epsilon: Number | None
    budget: Budget | None
    neighbours: Neighbours
    method: Any
    step: Number | None
    n_hint: int | None
    interval_share: Number | Literal["auto"]
    verify: Number | Literal["auto"]
    nulls: NullRule | None
    weights: None
    bits: Bits | None


def quantiles(
    values: Any,
    probs: Sequence[Number],
    *,
    bounds: tuple[Number, Number] | None = None,
    epsilon: Number | None = None,
    budget: Budget | None = None,
    neighbours: Neighbours = "substitution",
    method: Any = "auto",
    step: Number | None = None,
    n_hint: int | None = None,
    interval_share: Number | Literal["auto"] = 0,
    verify: Number | Literal["auto"] = "auto",
    nulls: NullRule | None = None,
    weights: None = None,
    bits: Bits | None = None,
) -> Release:
    """Quantiles of values clamped to public bounds, released privately for one budget together.

    Guarantee:
        Differential privacy at exactly the cost stated in the release; see `sfumato.Quantiles`.

    Args:
        probs: orders inside (0, 1), such as (0.25, 0.5, 0.75); up to 10,000 of them.
        bounds: (lower, upper), from public knowledge and never from the data.
        method: "auto", or one of `sfumato.quantile_methods.METHODS` by name or as a value with its options.
        step: the distance between points that can be answered; 1 for integers and very fine for reals.
        n_hint: a guess of the number of rows where that is private.
        interval_share: the part of the budget that makes the interval narrow: 0 for none, a number from 0.01
            to 0.99, or "auto".
        verify: the part of the budget that counts values around the answers, so that the intervals hold on
            any data: 0 for none, a number from 0.01 to 0.99, or "auto" (see `sfumato.Quantiles`).
        weights: refused, because a record of a large weight could not be hidden.

    The other arguments and the errors are those of `sfumato.count`.

    >>> import sfumato as sf
    >>> sf.quantiles(range(1, 1000), (0.25, 0.75), bounds=(0, 1000), epsilon=1e4).value.round(-1).tolist()
    [250.0, 750.0]
    """
    return _quantiles(
        values,
        probs,
        bounds=bounds,
        epsilon=epsilon,
        budget=budget,
        neighbours=neighbours,
        method=method,
        step=step,
        n_hint=n_hint,
        interval_share=interval_share,
        verify=verify,
        nulls=nulls,
        weights=weights,
        bits=bits,
    )


def quantile(values: Any, prob: Number, **options: Unpack[QuantileOptions]) -> Release:
    """One quantile of values clamped to public bounds, released privately.

    Guarantee:
        Differential privacy at exactly the cost stated in the release; see `sfumato.Quantiles`.

    Args:
        prob: the order, inside (0, 1).
        options: those of `sfumato.quantiles`.

    >>> import sfumato as sf
    >>> sf.quantile(range(1, 1000), 0.9, bounds=(0, 1000), step=1, epsilon=1e4).value
    900.0
    """
    return _quantiles(values, (inside("prob", prob),), scalar=True, **options)


def median(values: Any, **options: Unpack[QuantileOptions]) -> Release:
    """The median of values clamped to public bounds, released privately.

    Guarantee:
        Differential privacy at exactly the cost stated in the release; see `sfumato.Quantiles`.

    Args:
        options: those of `sfumato.quantiles`.

    >>> import sfumato as sf
    >>> sf.median(range(1, 1000), bounds=(0, 1000), step=1, epsilon=1e4).value
    500.0
    """
    return _quantiles(values, (Fraction(1, 2),), scalar=True, **options)


def deciles(values: Any, **options: Unpack[QuantileOptions]) -> Release:
    """The nine deciles of values clamped to public bounds, released privately for one budget together.

    Guarantee:
        Differential privacy at exactly the cost stated in the release; see `sfumato.Quantiles`.

    Args:
        options: those of `sfumato.quantiles`.

    >>> import sfumato as sf
    >>> sf.deciles(range(1, 1000), bounds=(0, 1000), epsilon=1e4).value[[0, 8]].round(-1).tolist()
    [100.0, 900.0]
    """
    return _quantiles(values, [Fraction(i, 10) for i in range(1, 10)], **options)


def find_bounds(
    values: Any,
    *,
    coverage: Number = Fraction(98, 100),
    lower: Number | None = None,
    largest: Number = 2**60,
    unit: Number = 1,
    ratio: Number = 2,
    epsilon: Number | None = None,
    budget: Budget | None = None,
    neighbours: Neighbours = "substitution",
    nulls: NullRule | None = None,
    bits: Bits | None = None,
) -> Release:
    """Bounds that hold about this share of the values, found privately, for use as `bounds=` elsewhere.

    Guarantee:
        Differential privacy at exactly the cost stated in the release, which is spent in addition to whatever
        uses the bounds; see `sfumato.quantile_methods.Unbounded`.

    Args:
        coverage: the share of the values that should lie between the bounds.
        lower: the smallest possible value, where that is public, such as 0 for amounts.
        largest: no bound is larger, on either side.
        unit: the size of numbers below which bounds need not be told apart.
        ratio: bounds are at most so many times too large; a smaller ratio needs more data.

    The other arguments and the errors are those of `sfumato.quantiles`.

    >>> import sfumato as sf
    >>> sf.find_bounds(range(100, 1100), lower=0, epsilon=1e4).value.round(9).tolist()
    [63.0, 2047.0]
    """
    share = inside("coverage", coverage)
    query = Quantiles(
        budget=one_budget(epsilon, budget),
        probs=((1 - share) / 2, (1 + share) / 2),
        method=Unbounded(lower=lower, largest=largest, unit=unit, ratio=ratio, side="outward"),
        nulls=nulls,
    )
    return answer(values, query, neighbours, bits)


def _quantiles(
    values: Any,
    probs: Sequence[Number],
    *,
    scalar: bool = False,
    bounds: tuple[Number, Number] | None = None,
    epsilon: Number | None = None,
    budget: Budget | None = None,
    neighbours: Neighbours = "substitution",
    method: Any = "auto",
    step: Number | None = None,
    n_hint: int | None = None,
    interval_share: Number | Literal["auto"] = 0,
    verify: Number | Literal["auto"] = "auto",
    nulls: NullRule | None = None,
    weights: None = None,
    bits: Bits | None = None,
) -> Release:
    if weights is not None:
        raise NotSupported(
            "weights are not supported for quantiles: a record of weight w moves the ranks by w, so that the "
            "noise would have to hide the largest possible weight"
        )
    query = Quantiles(
        budget=one_budget(epsilon, budget),
        probs=probs,
        scalar=scalar,
        bounds=bounds,
        method=method,
        step=step,
        n_hint=n_hint,
        interval_share=interval_share,
        verify=verify,
        nulls=nulls,
    )
    return answer(values, query, neighbours, bits)
