"""The weights of all paths of a chain, order by order, and the runs of orders that share a piece."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from sfumato.laws.bits import Bits, Integers
from sfumato.laws.chain_steps import Blocks, Kernels, Passage
from sfumato.laws.law import Floats
from sfumato.laws.wide import Rate, Wide, aligned, choose, wide


class Targets:
    """The numbers of records wanted before each point, as whole numbers and fractions."""

    def __init__(self, gaps: list[Fraction]) -> None:
        unit = math.lcm(*(gap.denominator for gap in gaps))
        shares = [gap.numerator * (unit // gap.denominator) for gap in gaps]
        split = [divmod(total, unit) for total in accumulate(shares)]
        self.size = split.pop()[0]
        self.bases = [base for base, _ in split]
        self._gaps, self._shares = gaps, shares
        self._holds: dict[int, tuple[float, int]] = {}
        fractions = {rest: Fraction(rest, unit) for rest in {rest for _, rest in split}}
        self.parts = [fractions[rest] for _, rest in split]

    def shift(self, number: int) -> int:
        """How far the floor of a target is from the one before."""
        return self.bases[number] - self.bases[number - 1]

    def hold(self, number: int, rate: Rate) -> tuple[float, int]:
        """The weight of a gap without records."""
        share = self._shares[number]
        if share not in self._holds:
            self._holds[share] = rate.hold(self._gaps[number])
        return self._holds[share]


@dataclass
class Link:
    """The passage from the states of one order to those of the next, and the weights of the first."""

    passage: Passage
    parts: tuple[Fraction, Fraction]
    before: Kernels
    after: Kernels
    mass: Wide

    def push(self) -> Wide:
        """The weight that flows into each state of the target."""
        return self.passage.push(self.mass, self.before, self.after)

    def pull(self, state: int) -> tuple[int, Wide]:
        """The first source of a state of the target, and the weights from there."""
        return self.passage.pull(state, self.mass, self.before, self.after)

    def cost(self, before: int, after: int) -> Fraction:
        """The least deviation between two states."""
        return self.passage.cost(before, after, self.parts)


class Runs(NamedTuple):
    """Weights by run length: for r orders in a piece there are C(L + r - 1, r) multisets of points.

    `fresh` has a weight for each state and runs of one order, `grown` a row for each longer one and a column
    for each state that has some; `column` tells which, and the last column is zero. `mass` adds all up.
    """

    mass: Wide
    fresh: Wide
    grown: Wide | None = None
    column: Integers | None = None


class Sweep:
    """The weights of all paths through the blocks, summed up to each order."""

    def __init__(
        self, blocks: Blocks, targets: Targets, lengths: Iterable[Floats], *, keep: bool = True
    ) -> None:
        parts = [Fraction(0), *targets.parts, Fraction(0)]
        self.links: list[Link] = []
        # Longer runs are found again from those of one order; kept for all orders they would fill the memory.
        self._starts: list[tuple[Wide, Floats, tuple[float, int]]] = []
        one = wide(np.ones(1), 0)
        runs = Runs(one, one)
        after = blocks.point.kernels(Fraction(0))
        for number, stretches in enumerate(lengths):
            before, after = after, blocks.kernels(parts[number + 1])
            between = parts[number], parts[number + 1]
            passage = blocks.passage(between, targets.shift(number)) if number else blocks.first(between[1])
            link = Link(passage, between, before, after, runs.mass)
            hold = targets.hold(number, blocks.rate)
            runs = _extended(runs, link.push(), passage, stretches, hold)
            if keep:
                self.links.append(link)
                self._starts.append((runs.fresh, stretches, hold))
        final = blocks.last(parts[-2]), (parts[-2], parts[-1])
        self.links.append(Link(*final, after, blocks.point.kernels(Fraction(0)), runs.mass))
        self.total = wide(*self.links[-1].push())

    def runs(self, order: int, state: int) -> Wide:
        """The weights of the numbers of orders, up to this one, that share a piece."""
        length = float(self._starts[order - 1][1][state])
        mantissas, exponents = [], []
        first = order
        while state >= 0:
            fresh = self._starts[first - 1][0]
            mantissa, exponent = float(fresh.mantissa[state]), int(fresh.exponent[state])
            # The same products as in the sums, to the last bit.
            for run, (_, _, hold) in enumerate(self._starts[first:order], start=1):
                mantissa, shift = math.frexp(mantissa * ((length + run) / (run + 1) * hold[0]))
                exponent += shift + hold[1]
            mantissas.append(mantissa)
            exponents.append(exponent)
            state = int(self.links[first - 1].passage.back[state])
            first -= 1
        return wide(np.array(mantissas), np.array(exponents))

    def run(self, order: int, state: int, bits: Bits) -> int:
        """How many orders, up to this one, share the piece."""
        if self.links[order - 1].passage.back[state] < 0:
            return 1
        return choose(self.runs(order, state), bits) + 1


def _extended(runs: Runs, inflow: Wide, passage: Passage, lengths: Floats, hold: tuple[float, int]) -> Runs:
    """The runs that start in each state, and those that come there from the same piece."""
    fresh = wide(inflow.mantissa * lengths, inflow.exponent)
    kept = passage.kept
    if not kept.size:
        return Runs(fresh, fresh)
    kept = kept[lengths[kept] > 0]
    if not kept.size:
        return Runs(fresh, fresh)
    before = passage.back[kept]
    rows, width = 1, len(kept)
    if runs.grown is not None and runs.column is not None:
        there = runs.column[before]
        older = runs.grown.mantissa[:, there]
        rows += len(older)
        while rows > 1 and not older[rows - 2].any():
            rows -= 1
    # The last column stays zero.
    mantissa, exponent = np.zeros((rows, width + 1)), np.zeros((rows, width + 1), dtype=np.int64)
    mantissa[0, :-1], exponent[0, :-1] = runs.fresh.mantissa[before], runs.fresh.exponent[before]
    if rows > 1 and runs.grown is not None:
        mantissa[1:, :-1], exponent[1:, :-1] = older[: rows - 1], runs.grown.exponent[: rows - 1, there]
    length = np.arange(1.0, rows + 1)[:, None]
    mantissa[:, :-1] *= (lengths[kept] + length) / (length + 1) * hold[0]
    exponent += hold[1]
    grown = wide(mantissa, exponent)
    column = np.full(len(lengths), -1)
    column[kept] = np.arange(width)
    own = fresh.take(kept)
    more = Wide(grown.mantissa[:, :-1], grown.exponent[:, :-1])
    top = np.maximum(more.exponent.max(axis=0), own.exponent)
    mass = Wide(fresh.mantissa.copy(), fresh.exponent.copy())
    mass.mantissa[kept], mass.exponent[kept] = wide(aligned(more, top).sum(axis=0) + aligned(own, top), top)
    return Runs(mass, fresh, grown, column)


def multiset(number: int, length: int, bits: Bits) -> list[int]:
    """A uniform multiset of 0..number-1, sorted."""
    if length == 1:
        return [bits.below(number)]
    # Subsets of number + length - 1 integers are multisets once the k-th smallest is lowered by k;
    # the subset is uniform by Floyd's algorithm.
    chosen: set[int] = set()
    for most in range(number - 1, number + length - 1):
        drawn = bits.below(most + 1)
        chosen.add(most if drawn in chosen else drawn)
    return [value - place for place, value in enumerate(sorted(chosen))]
