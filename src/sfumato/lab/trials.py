"""What an experiment needs of anything that answers: draws on many data sets, the truth, and exact risks."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

import numpy as np

from sfumato.grid import Floats
from sfumato.lab.source import Source
from sfumato.laws import SeededBits

Risk = Literal["squared", "absolute", "sup", "rank", "coverage", "time"]
RISKS: tuple[Risk, ...] = get_args(Risk)


@dataclass(frozen=True)
class Randomness:
    """Two generators for one cell of an experiment: bits for exact laws, and NumPy's for anything else."""

    bits: SeededBits
    rng: np.random.Generator

    @classmethod
    def of(cls, seed: int) -> "Randomness":
        """Both from one seed, and independent of each other."""
        return cls(SeededBits(seed), np.random.default_rng(seed))


class Trial(Protocol):
    """A mechanism with its settings, on the data sets that are the rows of an array."""

    def truth(self) -> Floats:
        """What is estimated: (sets, coordinates)."""

    def population(self, source: Source) -> Floats | None:
        """The same of what the data are drawn from, where it is known."""

    def draw(self, repeats: int, random: Randomness) -> Floats:
        """Answers: (sets, repeats, coordinates)."""

    def ranks_off(self, answers: Floats) -> Floats:
        """How many ranks answers are from their targets, of the same shape."""

    def covered(self, repeats: int, confidence: float, truth: Floats, random: Randomness) -> Floats:
        """The share of the intervals of a draw that hold the truth: (sets, repeats)."""

    def seconds(self, repeats: int, random: Randomness) -> Floats:
        """How long an answer takes from the data on: (sets, repeats)."""

    def exact(self, risk: Risk, truth: Floats) -> "Expected | None":
        """What the law says of the loss on each data set, where it does."""


@dataclass(frozen=True)
class Expected:
    """The mean of a loss on each data set, and its variance where that is known: (sets,)."""

    mean: Floats
    variance: Floats | None

    @classmethod
    def listed(
        cls,
        risk: Risk,
        laws: Sequence[tuple[Floats, Floats]],
        truth: Floats,
        ranks_off: Callable[[int, Floats], Floats],
    ) -> "Expected":
        """From every answer on each data set with its probability; `ranks_off` tells ranks on one of them."""
        found = []
        for place, (values, chances) in enumerate(laws):
            if risk == "rank":
                each = ranks_off(place, values).mean(axis=1)
            else:
                each = losses(risk, values[None], truth[place : place + 1])[0]
            found.append((chances @ each, chances @ each**2))
        mean, square = np.array(found).T
        return cls(mean, np.maximum(square - mean**2, 0.0))


def losses(risk: Risk, answers: Floats, truth: Floats) -> Floats:
    """The loss of every draw: (sets, repeats) for answers of (sets, repeats, coordinates).

    >>> losses("squared", np.array([[[1.0, 2.0]]]), np.array([[0.0, 0.0]])).tolist()
    [[5.0]]
    """
    off = np.abs(answers - truth[:, None, :])
    if risk == "squared":
        return np.asarray((off**2).sum(axis=2))
    return np.asarray(off.max(axis=2) if risk == "sup" else off.mean(axis=2))


def sample_quantiles(rows: Floats, orders: Sequence[Any]) -> Floats:
    """Of every row the value of rank ceil(p n) for each order p.

    >>> sample_quantiles(np.array([[3.0, 1.0, 2.0]]), [0.5, 1]).tolist()
    [[2.0, 3.0]]
    """
    ordered, size = np.sort(rows, axis=1), rows.shape[1]
    # 0.07 times 100 is a little above 7 in float64, and means 7.
    places = [max(math.ceil(float(order) * size * (1 - 2.0**-50)), 1) - 1 for order in orders]
    return np.asarray(ordered[:, places], dtype=np.float64)


def ranks_between(ordered: Any, asked: Any, targets: Floats) -> Floats:
    """How far the ranks of some numbers, in one sorted data set, are from targets; ties have all their ranks.

    >>> ranks_between(np.array([1.0, 2.0, 2.0, 3.0]), np.array([[2.0]]), np.array([2.5])).tolist()
    [[0.0]]
    """
    below = np.searchsorted(ordered, asked, side="left")
    upto = np.searchsorted(ordered, asked, side="right")
    return np.asarray(np.maximum(np.maximum(below - targets, targets - upto), 0.0))
