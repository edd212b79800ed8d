"""Sentences about numbers that can fail: against digits in print, and within four standard errors."""

import math
from collections.abc import Callable
from decimal import Decimal

import numpy as np

from sfumato.lab.figure import Statement

# How many standard errors a simulated number may be from what it estimates.
STANDARD_ERRORS = 4


def as_printed(what: str, value: float, printed: str) -> Statement:
    """That a number computed exactly rounds to the digits in print.

    >>> as_printed("the spread", 9.2982, "9.298").holds, as_printed("the spread", 9.2982, "9.297").holds
    (True, False)
    """
    reference = Decimal(printed)
    half = 0.5 * 10.0 ** float(reference.as_tuple().exponent)
    digits = max(len(reference.as_tuple().digits) + 2, 4)
    words = f"{what} is {value:.{digits}g}; the reference is {printed}"
    # What falls on the edge of a digit may round either way.
    return Statement(words, abs(value - float(reference)) <= half * (1 + 1e-6))


def equals(what: str, value: float, reference: float, *, relative: float = 1e-9) -> Statement:
    """That two numbers are the same but for rounding."""
    words = f"{what} is {value:.10g}; the closed form is {reference:.10g}"
    return Statement(words, math.isclose(value, reference, rel_tol=relative, abs_tol=1e-300))


def agrees(what: str, mean: float, exact: float, se: float) -> Statement:
    """That a simulated number is within four standard errors of the exact one.

    >>> agrees("the mean", 10.3, 10, 0.1).words
    'the mean is 10.3 ± 0.1 by simulation and 10 exactly: 3.0 standard errors apart'
    """
    away = abs(mean - exact) / se if se > 0 else (0.0 if mean == exact else math.inf)
    simulated = f"{what} is {mean:.5g} ± {se:.2g} by simulation"
    words = f"{simulated} and {exact:.5g} exactly: {away:.1f} standard errors apart"
    return Statement(words, away <= STANDARD_ERRORS)


def all_agree(what: str, means: object, exacts: object, ses: object) -> Statement:
    """That each of several simulated numbers is within four standard errors of its exact one."""
    mean, exact, se = (np.asarray(each, dtype=np.float64) for each in (means, exacts, ses))
    away = np.abs(mean - exact) / np.where(se > 0, se, np.where(mean == exact, 1.0, 1e-300))
    worst = float(away.max()) if len(away) else math.inf
    words = f"{what}: {len(away)} simulated numbers, at most {worst:.1f} standard errors from the exact ones"
    return Statement(words, worst <= STANDARD_ERRORS)


def same_average(
    what: str, average: float, se: float, *, sets: int, printed: float, digit: float, others: int
) -> Statement:
    """That an average over data sets is the one in print, which was found on so many other data sets.

    The other average has a standard error too, by the same spread between data sets, and was rounded to a
    `digit`.

    >>> same_average("the risk", 2.33, 0.06, sets=150, printed=2.2, digit=0.1, others=150).words
    'the risk is 2.33 over 150 data sets; the reference is 2.2 over 150 others, 1.5 standard errors apart'
    """
    error = se * math.sqrt(1 + sets / others)
    apart = abs(average - printed)
    told = f"{average:.4g} over {sets} data sets; the reference is {printed:g} over {others} others"
    words = f"{what} is {told}, {apart / error:.1f} standard errors apart"
    return Statement(words, apart <= STANDARD_ERRORS * error + digit / 2)


def compared(what: str, left: float, right: float, holds: Callable[[float, float], bool]) -> Statement:
    """That two numbers stand in a relation, which the sentence says with two places for them."""
    return Statement(what.format(left, right), bool(holds(left, right)))
