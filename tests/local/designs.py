"""Designs of every kind, and exact laws that do not go through the product."""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.laws.bits import Bits
from sfumato.local import (
    DirectEncoding,
    ForcedResponse,
    OneBitMean,
    PermanentUnary,
    Ranges,
    TwoSamples,
    UnaryEncoding,
    UnrelatedQuestion,
    Warner,
)

COLOURS = ("red", "green", "blue")

BINARY = {
    "Warner 3/4": Warner(keep=0.75),
    "Warner 1/5": Warner(keep=0.2),
    "Warner of 1": Warner.of_epsilon(1),
    "Warner of 1/3": Warner.of_epsilon(Fraction(1, 3)),
    "forced": ForcedResponse(truth=0.6, yes=0.25, no=0.15),
    "unrelated": UnrelatedQuestion(sensitive=0.7, rate=0.3),
    "one bit": OneBitMean.of_epsilon(bounds=(-1, 3), epsilon=1),
}
CATEGORICAL = {
    "direct": DirectEncoding.of_epsilon(COLOURS, epsilon=1),
    "direct of 7": DirectEncoding.of_epsilon([*COLOURS, *"abcd"], epsilon=2.5),
    "optimised": UnaryEncoding.of_epsilon(COLOURS, epsilon=1),
    "symmetric": UnaryEncoding.of_epsilon(COLOURS, epsilon=0.5, form="symmetric"),
    "permanent": PermanentUnary(categories=COLOURS, permanent=(0.75, 0.25), instant=(0.75, 0.5)),
}
RANGES = {
    "dithered": Ranges.of_epsilon(bounds=(-1, 3), epsilon=1, steps=4),
    "binned": Ranges.of_epsilon(bounds=(0, 0.3), epsilon=2, steps=3, dither=False),
    "unary ranges": Ranges.of_epsilon(bounds=(0, 10), epsilon=1, steps=4, method="optimised"),
}
SHARES: dict[str, Any] = {**BINARY, **CATEGORICAL}
CHANNELS: dict[str, Any] = {**SHARES, **RANGES}
DESIGNS: dict[str, Any] = {
    **CHANNELS,
    "two samples": TwoSamples(sensitive=(0.7, 0.2), rate_between=(0.25, 0.5)),
    "trait": UnrelatedQuestion(sensitive=0.7, rate=0.3, trait=True),
    "identity": Warner.of_epsilon(math.inf),
}
# What each design was asked to cost, where an epsilon was asked for.
ASKED = {
    "Warner of 1": 1,
    "Warner of 1/3": Fraction(1, 3),
    "one bit": 1,
    "direct": 1,
    "direct of 7": 2.5,
    "optimised": 1,
    "symmetric": 0.5,
    "dithered": 1,
    "binned": 2,
    "unary ranges": 1,
}


def supports(design: Any) -> np.ndarray:
    """Which answer of the matrix supports which label, by the meaning of an answer."""
    labels = len(design.labels)
    if labels == 1:
        return np.array([[0], [1]])
    if getattr(design, "encoding", design).exclusive:
        return np.eye(labels, dtype=int)
    return np.array(list(itertools.product((0, 1), repeat=labels)))


def worst_ratio(rows: Any) -> Fraction:
    """The largest ratio of two rows of a matrix, over all answers."""
    return max(
        left[a] / right[a] for left, right in itertools.permutations(rows, 2) for a in range(len(left))
    )


class Branches(Bits):
    """Coins that take a given path; the probability of the path is kept, so that all paths give a law."""

    private = False

    def __init__(self, path: list[int]) -> None:
        self.path = path
        self.used: list[int] = []
        self.chance = Fraction(1)

    def words(self, count: int) -> np.ndarray:
        raise AssertionError("a coin was tossed that the enumeration does not know")

    def branch(self, chances: list[Fraction]) -> int:
        options = [i for i, chance in enumerate(chances) if chance]
        step = len(self.used)
        choice = self.path[step] if step < len(self.path) else options[0]
        if step >= len(self.path):
            self.path.append(choice)
        self.used.append(len(options) - 1 - options.index(choice))
        self.chance *= chances[choice]
        self.options = options
        return choice

    def below_each(self, bound: Any, count: int) -> np.ndarray:
        return np.array([self.branch([Fraction(1, bound)] * bound) for _ in range(count)])


def branching_coins(p: Fraction, bits: Branches, count: int) -> np.ndarray:
    return np.array([bits.branch([1 - p, p]) == 1 for _ in range(count)], dtype=bool)


def law_of(draw: Any) -> Iterator[tuple[Any, Fraction]]:
    """Every outcome of a draw with the exact probability of its path of coins."""
    path: list[int] = []
    while True:
        bits = Branches(path)
        outcome = draw(bits)
        yield outcome, bits.chance
        # The next path in order: raise the last coin that has another side left.
        while bits.used and not bits.used[-1]:
            bits.used.pop()
        if not bits.used:
            return
        path = path[: len(bits.used)]
        path[-1] += 1
