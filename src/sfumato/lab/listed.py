"""Laws of numbers as lists of answers and their probabilities, from which every risk is a sum."""

from collections.abc import Callable
from typing import Any

import numpy as np

from sfumato.grid import Floats, Ints
from sfumato.laws import Clamped, Shifted
from sfumato.quantile_methods.single import FlipLaw
from sfumato.query import raw

Listed = tuple[Floats, Floats]
# Answers are computed one by one for so many outcomes; more are read off the line that they lie on.
MOST_OUTCOMES, MOST_FLIPPED = 4096, 32
# Noise on finer lattices is taken in so many blocks, each by its middle: a relative error below 1e-7.
MOST_BLOCKS = 2**16
# What is left out at both ends of the noise.
_BEYOND = 2.0**-50


def listed(law: Any, value: Callable[[tuple[int, ...]], Any]) -> Listed | None:
    """Every answer, one row of coordinates each, and its probability; None if there are too many."""
    inner = law.law if isinstance(law, Clamped) else law
    if isinstance(inner, Shifted) and isinstance(inner.center, int):
        return _noisy(law, inner, value)
    count = getattr(law, "count", None)
    # The chance of a point under permute-and-flip is a polynomial of all the others.
    most = MOST_FLIPPED if isinstance(law, FlipLaw) else MOST_OUTCOMES
    if not hasattr(law, "outcomes") or count is None or count > most:
        return None
    outcomes = list(law.outcomes())
    chances = np.exp([float(law.logpmf(one)) for one in outcomes])
    return _rows([value(raw(one)) for one in outcomes]), chances


def _rows(answers: list[Any]) -> Floats:
    return np.array([np.atleast_1d(np.asarray(one, dtype=np.float64)) for one in answers])


def _noisy(law: Any, inner: Shifted, value: Callable[[tuple[int, ...]], Any]) -> Listed | None:
    reach = int(inner.noise.radius(1 - _BEYOND))
    width = -(-(2 * reach + 1) // MOST_BLOCKS)
    starts = np.arange(-reach, reach + 1, width)
    middles = inner.center + starts + (width - 1) // 2
    chances = np.diff(inner.noise.cdf(np.append(starts, starts[-1] + width) - 1))
    if isinstance(law, Clamped):
        middles = np.clip(middles, law.lower, law.upper)
    answers = _answers(middles, value)
    return None if answers is None else (answers, chances / chances.sum())


def _answers(outcomes: Ints, value: Callable[[tuple[int, ...]], Any]) -> Floats | None:
    distinct, places = np.unique(outcomes, return_inverse=True)
    if len(distinct) <= MOST_OUTCOMES:
        return _rows([value((int(one),)) for one in distinct])[places]
    # An answer is a line in the outcome, cut off at the ends of what is possible.
    knots = distinct[np.linspace(0, len(distinct) - 1, 65).astype(np.int64)]
    known = _rows([value((int(one),)) for one in knots])
    if known.shape[1] != 1:
        return None
    heights = known[:, 0]
    inside = (heights > heights[0]) & (heights < heights[-1])
    if inside.sum() < 3:
        return None
    first, last = np.flatnonzero(inside)[[0, -1]]
    slope = (heights[last] - heights[first]) / float(knots[last] - knots[first])

    def line(at: Ints) -> Floats:
        straight = heights[first] + slope * (at - knots[first]).astype(np.float64)
        return np.asarray(np.clip(straight, heights[0], heights[-1]))

    if not np.allclose(line(knots), heights, rtol=0, atol=1e-9 * np.ptp(heights)):
        return None
    return line(outcomes)[:, None]
