"""Quantiles and the counts that verify them as one law: what is counted follows from what is drawn."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from sfumato.audit import listed
from sfumato.audit.coordinates import changed_coordinates, moved
from sfumato.audit.divergence import RENYI_BLOCKS, Cells, Noise, merged
from sfumato.audit.listed import Pair, Ratios
from sfumato.audit.listings import cells, check_count, listing
from sfumato.laws import Law, Shifted, ZeroSumLaplace
from sfumato.laws.zero_sum import log_total
from sfumato.quantile_methods.adaptive import AdaptiveLaw, CountsLaw
from sfumato.quantile_methods.framed import FramedLaw
from sfumato.quantile_methods.joint import JointLaw
from sfumato.query import Outcome


class Move(NamedTuple):
    """One changed count: the laws of both sides, moved together to where the left center is 0."""

    left: Law
    right: Law
    by: int

    @property
    def part(self) -> Noise:
        """The comparison of the two."""
        return Noise(Shifted(self.left, 0), Shifted(self.right, self.by))


class ZeroSumMove(NamedTuple):
    """A record that leaves one of some counts for another, all of which have noise that adds up to zero."""

    scale: Fraction
    counts: int

    @property
    def part(self) -> Cells:
        """The comparison of the two laws: three log ratios are all that an outcome can have.

        An outcome tells how the noise of the two counts that differ has its signs. Proof:
        docs/proofs/laplace.md.
        """
        loss, rest = 2 / float(self.scale), log_total(self.scale, self.counts - 1)
        most = rest - log_total(self.scale, self.counts) - math.log(-math.expm1(-loss))
        middle = math.log(max(-math.expm1(most) - math.exp(most - loss), 0.0) or 5e-324)
        left = np.array([most, middle, most - loss])
        return Cells(Pair(left, left[::-1]), tuple(range(len(left))))


Moves = tuple[Move | ZeroSumMove, ...]


@dataclass(frozen=True, eq=False)
class Adaptive:
    """A part whose first draws are listed, and whose counts have noise around what follows from them.

    For every first draw the counts differ in a few coordinates of noise. The part is the union
    over the first draws of their comparisons, each shifted by the two log masses of its draw. Draws whose
    counts move alike are kept together.

    Args:
        first: the first draws, merged where neither law tells them apart.
        moves: how the counts move after each of them; None where what is counted tells the two laws apart.
        worst: the outcome at a first draw whose counts are the exact ones of the left law, or of the right.
    """

    first: Cells
    moves: tuple[Moves | None, ...]
    worst: Callable[[int, bool], Outcome]

    listed = False

    @cached_property
    def ratios(self) -> Ratios:
        """The log ratio of a draw and those of its counts add up, and each is attained after any draw."""
        return Ratios(*(float(side.max()) for side in self._losses))

    @property
    def seen(self) -> Ratios:
        return self.ratios

    @property
    def worst_outcome(self) -> Outcome | None:
        if math.isinf(self.ratios.worse):
            return None
        up, down = self._losses
        left = self.ratios.up >= self.ratios.down
        return self.worst(int((up if left else down).argmax()), left)

    def below(self, blocks: int, losses: Sequence[float] = ()) -> Pair:
        return self._union(lambda moves: _below(moves, blocks))

    def above(self, blocks: int, losses: Sequence[float] = ()) -> Pair:
        return self._union(lambda moves: _above(moves, blocks))

    def far(self, order: float) -> Pair:
        return self._union(lambda moves: _far(moves, order))

    def rho_above(self) -> float:
        if math.isinf(self.first.ratios.worse) or None in self._groups:
            return math.inf
        # Adaptive composition: what the first draw costs, and the most that counts cost after any.
        together = self.first.rho_above() + max(_rho(moves) for moves in self._groups if moves is not None)
        if math.isinf(self.ratios.worse):
            return together
        chords = listed.worse(self.above(RENYI_BLOCKS), listed.concentrated_above)
        return min(together, chords, self.ratios.range**2 / 8)

    @cached_property
    def _losses(self) -> tuple[Any, Any]:
        """The largest log ratio of the outcomes after each first draw, in either direction."""
        possible = np.isfinite(self.first.pair.left) | np.isfinite(self.first.pair.right)
        counts = [_ratios(moves) for moves in self.moves]
        up, down = (np.array([getattr(each, side) for each in counts]) for side in ("up", "down"))
        losses = self.first.pair.losses
        return np.where(possible, losses + up, -np.inf), np.where(possible, down - losses, -np.inf)

    @cached_property
    def _groups(self) -> dict[Moves | None, Pair]:
        """The masses of the first draws after which counts move alike, one cell for each log ratio."""
        places: dict[Moves | None, list[int]] = {}
        for place, moves in enumerate(self.moves):
            places.setdefault(moves, []).append(place)
        return {
            moves: listed.gathered(Pair(*(side[some] for side in self.first.pair)))
            for moves, some in places.items()
        }

    def _union(self, counts: Callable[[Moves], Pair]) -> Pair:
        found = []
        for moves, first in self._groups.items():
            if moves is None:
                nothing = np.full(len(first.left), -np.inf)
                found += [Pair(first.left, nothing), Pair(nothing, first.right)]
            else:
                found.append(listed.product(first, counts(moves)) if moves else first)
        return Pair(*(np.concatenate(side) for side in zip(*found, strict=True)))


def adaptive_part(left: AdaptiveLaw, right: AdaptiveLaw) -> Adaptive:
    """Two laws of verified quantiles: every first draw, and how the counts that follow it move."""
    first = first_draws(left.first, right.first)
    laws = left, right
    moves = tuple(_moves(*(_after(law, drawn) for law in laws)) for drawn in first.outcomes)

    def worst(place: int, of_left: bool) -> Outcome:
        drawn = first.outcomes[place]
        after: Any = _after(laws[0] if of_left else laws[1], drawn)
        return (*drawn, *after.places, *after.counts.center.tolist())

    return Adaptive(first, moves, worst)


def first_draws(left: Any, right: Any) -> Cells:
    """Every draw of two laws of quantiles; of joint draws one for all that have the same ranks and cells.

    Thresholds follow from answers, and these from the cells that points are in.
    """
    if isinstance(left, FramedLaw) and isinstance(right, FramedLaw):
        own = first_draws(left.own, right.own)
        outer = first_draws(left.outer, right.outer)
        check_count(len(own.outcomes) * len(outer.outcomes))
        both = tuple((*a, *b) for a, b in itertools.product(own.outcomes, outer.outcomes))
        return Cells(listed.product(own.pair, outer.pair), both)
    if isinstance(left, JointLaw) and isinstance(right, JointLaw) and left.points == right.points:
        return _joint_draws(left, right)
    return cells(listing(left), listing(right))


def _joint_draws(left: JointLaw, right: JointLaw) -> Cells:
    """All points of a cell between two neighbouring records of either law are equally likely in both."""
    records = {int(point) + 1 for law in (left, right) for point in law.chain.misfits()[0]}
    begins = left.ranks.begins().tolist()
    starts = sorted({*begins, *(point for point in records if point < left.points)})
    lengths = [b - a for a, b in itertools.pairwise([*starts, left.points])]
    orders = left.chain.orders
    check_count(math.comb(len(starts) + orders - 1, orders))
    runs = list(itertools.combinations_with_replacement(range(len(starts)), orders))
    tuples = tuple(tuple(starts[run] for run in each) for each in runs)
    many = np.array([sum(_log_tuples(lengths, each)) for each in runs])
    return Cells(Pair(*(many + [law.logpmf(each) for each in tuples] for law in (left, right))), tuples)


def _log_tuples(lengths: Sequence[int], runs: Sequence[int]) -> Iterator[float]:
    """The logarithms of how many tuples that do not decrease have their points in these runs, run by run."""
    for run, same in itertools.groupby(runs):
        points = len(list(same))
        yield math.log(math.comb(lengths[run] + points - 1, points))


@lru_cache(maxsize=1 << 15)
def _after(law: AdaptiveLaw, drawn: Outcome) -> CountsLaw:
    """The law of the counts after a draw; kept, since a law meets many neighbours."""
    return law.after(drawn)


def _moves(left: CountsLaw, right: CountsLaw) -> Moves | None:
    if left.places != right.places:
        return None
    one, other = left.counts, right.counts
    if isinstance(one, ZeroSumLaplace) and isinstance(other, ZeroSumLaplace):
        return _zero_sum_moves(one, other)
    if isinstance(one, ZeroSumLaplace) or isinstance(other, ZeroSumLaplace):
        # The noise tells the two laws apart.
        return None
    found = []
    for pair in changed_coordinates(one, other):
        here, there, _ = moved(*pair)
        if not (isinstance(here, Shifted) and isinstance(there, Shifted)):
            return None
        found.append(Move(here.noise, there.noise, int(there.center)))
    return tuple(found)


def _zero_sum_moves(left: ZeroSumLaplace, right: ZeroSumLaplace) -> Moves | None:
    if (left.scale, len(left.center)) != (right.scale, len(right.center)):
        return None
    away = right.center - left.center
    if not away.any():
        return ()
    if sorted(away[away != 0].tolist()) != [-1, 1]:
        # Other totals have no outcome in common. Nothing else happens to a record that is replaced.
        return None
    return (ZeroSumMove(left.scale, len(left.center)),)


@lru_cache(maxsize=256)
def _ratios(moves: Moves | None) -> Ratios:
    if moves is None:
        return Ratios(math.inf, math.inf)
    each = [move.part.ratios for move in moves]
    return Ratios(sum(ratios.up for ratios in each), sum(ratios.down for ratios in each))


@lru_cache(maxsize=256)
def _rho(moves: Moves) -> float:
    return sum(move.part.rho_above() for move in moves)


@lru_cache(maxsize=64)
def _below(moves: Moves, blocks: int) -> Pair:
    return _one([move.part.below(blocks) for move in moves], blocks, above=False)


@lru_cache(maxsize=64)
def _above(moves: Moves, blocks: int) -> Pair:
    return _one([move.part.above(blocks) for move in moves], blocks, above=True)


@lru_cache(maxsize=256)
def _far(moves: Moves, order: float) -> Pair:
    return _one([move.part.far(order) for move in moves], RENYI_BLOCKS, above=False)


def _one(pairs: list[Pair], blocks: int, *, above: bool) -> Pair:
    return listed.gathered(merged([listed.gathered(pair) for pair in pairs], blocks, above=above))
