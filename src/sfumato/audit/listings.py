"""Laws as lists: every outcome with its log probability, where there are few enough."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from sfumato.audit.coordinates import MOST_OUTCOMES
from sfumato.audit.divergence import Cells
from sfumato.audit.listed import Pair
from sfumato.errors import NotSupported
from sfumato.grid import Floats
from sfumato.laws import Point
from sfumato.mechanisms.transcripts import Transcripts


class Listing(NamedTuple):
    """Every outcome of a law and its log probability."""

    outcomes: Sequence[Any]
    logs: Floats


def listing(law: Any) -> Listing:
    """A law whose outcomes can be listed."""
    outcomes = _outcomes(law)
    if outcomes is None:
        raise NotSupported(f"a law of type {type(law).__name__} cannot be audited yet")
    if isinstance(outcomes, np.ndarray):
        return Listing(tuple(outcomes.tolist()), np.asarray(law.logpmf(outcomes), dtype=np.float64))
    found = tuple(outcomes)
    return Listing(found, np.array([law.logpmf(outcome) for outcome in found], dtype=np.float64))


def cells(left: Listing, right: Listing) -> Cells:
    """Two lists as one, on the outcomes of either."""
    if left.outcomes == right.outcomes:
        return Cells(Pair(left.logs, right.logs), left.outcomes)
    one, other = (dict(zip(each.outcomes, each.logs, strict=True)) for each in (left, right))
    outcomes = tuple(dict.fromkeys((*one, *other)))
    logs = (np.array([law.get(outcome, -math.inf) for outcome in outcomes]) for law in (one, other))
    return Cells(Pair(*logs), outcomes)


def check_count(count: float) -> None:
    """Refuse more outcomes than an audit lists."""
    if count > MOST_OUTCOMES:
        raise NotSupported(
            f"an audit lists up to {MOST_OUTCOMES:,} outcomes, and here there are more: use a larger step, "
            "fewer orders, or a method with fewer subcells"
        )


def _outcomes(law: Any) -> Iterable[Any] | None:
    found: Iterable[Any]
    if isinstance(law, Point):
        return (law.value,)
    if isinstance(law, Transcripts):
        count, found = 2.0 ** len(law.values), law.patterns()
    elif hasattr(law, "outcomes"):
        count, found = law.count, law.outcomes()
    else:
        return None
    check_count(count)
    return found
