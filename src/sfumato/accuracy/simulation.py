"""What simulations of public scenarios share: how many draws, and what a sample of errors tells."""

import math

import numpy as np

from sfumato.grid import Floats

# A preview is repeated exactly; nothing that is drawn from it leaves as a release.
SEED = 20_240_601
# Beyond so many values a rank error no longer depends on their number.
MOST_SIMULATED = 10**6


def tails(errors: Floats, confidence: float, sets: int = 1) -> tuple[Floats, Floats]:
    """For each column the error that a share `confidence` of the draws keeps, and its standard error.

    The latter is half the distance of the order statistics that are one standard deviation of their number
    away, which needs no density. Rows are draws, in `sets` equal stretches of draws on the same data, whose
    shares beyond the figure then tell that standard deviation.
    """
    draws = len(errors)
    ordered = np.sort(errors, axis=0)
    place = min(math.ceil(confidence * draws * (1 - 1e-12)), draws) - 1
    figure = ordered[place]
    away = np.full(figure.shape, math.sqrt(draws * confidence * (1 - confidence)))
    if sets > 1:
        beyond = (errors > figure).reshape(sets, -1, *figure.shape).mean(axis=1)
        away = np.maximum(away, draws * beyond.std(axis=0, ddof=1) / math.sqrt(sets))
    steps = np.ceil(away).astype(np.int64)
    low, high = np.maximum(place - steps, 0), np.minimum(place + steps, draws - 1)
    span = np.take_along_axis(ordered, high[None], 0) - np.take_along_axis(ordered, low[None], 0)
    return figure, span[0] / 2


def few_beyond(draws: int, confidence: float) -> tuple[str, ...]:
    """A note where too few of the draws are beyond the figure to know it well."""
    if draws * (1 - confidence) >= 10:
        return ()
    return (f"{draws:,} draws are few for a confidence of {confidence:g}: the figure may be too small",)
