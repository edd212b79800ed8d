"""Two laws compared: how far apart they are, in the currency of every definition of privacy."""

import itertools
import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from typing import Any, NamedTuple, cast

import numpy as np

from sfumato.audit import divergence, listed
from sfumato.audit.adaptive import adaptive_part
from sfumato.audit.coordinates import MOST_OUTCOMES, changed_coordinates, is_noise, moved
from sfumato.audit.divergence import Between, Cells, Known, Noise, Sandwich
from sfumato.audit.listed import Pair, Ratios
from sfumato.audit.listings import Listing, cells, listing
from sfumato.audit.ordered import chain_part, recursive_part
from sfumato.checks import Number, exact, shown
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.grid import Floats, Ints
from sfumato.laws import Choice, Clamped, Law, Point, Shifted
from sfumato.laws.graded import Graded
from sfumato.mechanisms.transcripts import Transcripts
from sfumato.privacy.conversions import zcdp_delta
from sfumato.quantile_methods.adaptive import AdaptiveLaw
from sfumato.quantile_methods.crossings import ScansLaw
from sfumato.quantile_methods.framed import FramedLaw
from sfumato.quantile_methods.independent import NodesLaw
from sfumato.quantile_methods.joint import JointLaw
from sfumato.quantile_methods.node import Node
from sfumato.quantile_methods.recursive import RecursiveLaw

# Products of so few cells are one list, which takes less time than part by part.
FEW_CELLS = 1 << 12


@dataclass(frozen=True, eq=False)
class Comparison:
    """How far apart two laws are, in both directions.

    Every figure is a pair of numbers that hold the truth between them, equal where it is known exactly: see
    `Between`. Figures are right up to the rounding of float64, about 1e-9 of their size.

    Guarantee:
        Exact for laws whose outcomes can be listed, or merged into runs of equally likely ones, and for their
        independent products of up to 2^17 cells; for a joint draw of quantiles on any grid the pure epsilon
        is exact. Elsewhere the lower number is that of a post-processing of the two laws, and the upper one
        that of a pair of which the two laws are a post-processing, so that both are certain. docs/audit.md.

    >>> from sfumato.laws import Choice
    >>> found = compare(Choice([1, 2, 1]), Choice([2, 1, 1]))
    >>> str(found.epsilon()), str(found.delta(0)), found.worst_outcome
    ('0.693147', '0.25', 0)
    """

    parts: tuple[Sandwich, ...]

    def epsilon(self, delta: Number = 0) -> Between:
        """The smallest epsilon at which the hockey stick is at most delta; the pure one at 0.

        Args:
            delta: from 0 to 1.

        >>> from sfumato.laws import Choice
        >>> round(compare(Choice([1, 3]), Choice([2, 2])).epsilon(0.1).upper, 6)
        0.470004
        """
        wanted = exact("delta", delta)
        if not 0 <= wanted <= 1:
            raise InvalidParameter(f"delta must be from 0 to 1, got delta={shown(delta)}")
        if not wanted:
            return Between(self._sum("seen").worse, self._sum("ratios").worse)
        if not self.parts:
            return Between(0.0, 0.0)
        found = []
        for side, pairs in enumerate(self._lists):
            whole = divergence.merged(pairs, divergence.BLOCKS, above=bool(side))
            found.append(listed.worse(whole, lambda pair: listed.smallest_epsilon(pair, float(wanted))))
        return Between(found[0], min(found[1], self._sum("ratios").worse))

    def delta(self, epsilon: Number) -> Between:
        """The hockey stick: the largest P(A) - exp(epsilon) Q(A) over all sets A of outcomes.

        Args:
            epsilon: at least 0.
        """
        at = exact("epsilon", epsilon)
        if at < 0:
            raise InvalidParameter(f"epsilon must be at least 0, got epsilon={shown(epsilon)}")
        return self.finer_delta(at, 1)

    def finer_delta(self, epsilon: Fraction, finer: int) -> Between:
        """The same, with so many times more blocks where outcomes have no end."""
        found = divergence.hockey_stick(self.parts, float(epsilon), finer)
        if found.exact or self._rho_above == math.inf:
            return found
        # What a rho converts to holds as well.
        return Between(found.lower, min(found.upper, zcdp_delta(max(self._rho_above, 1e-300), epsilon)))

    def renyi(self, order: Number) -> Between:
        """The Rényi divergence of an order above 1.

        Args:
            order: above 1.
        """
        at = exact("order", order)
        if at <= 1:
            raise InvalidParameter(f"order must be above 1, got order={shown(order)}")
        lower = max(
            sum(listed.renyi(pair, float(at)) for pair in pairs)
            for pairs in self._both([part.far(float(at)) for part in self.parts])
        )
        if all(part.listed for part in self.parts):
            return Between(lower, lower)
        sides = self._both([part.above(divergence.RENYI_BLOCKS) for part in self.parts])
        upper = max(sum(listed.renyi(pair, float(at)) for pair in pairs) for pairs in sides)
        return Between(lower, min(upper, self._rho_above * float(at)))

    def rho(self, *, thorough: bool = True) -> Between:
        """The supremum of the Rényi divergence over its order, for all orders above 1: what zCDP bounds.

        The lower number is found by a search over the orders, up to 32 where outcomes have no end; the upper
        one by chords between the orders, or by theorems on the range of the log ratio and on Gaussian noise.

        Args:
            thorough: look at many orders, from both sides; else at few, which takes less time.
        """
        if any(math.isinf(part.ratios.worse) and part.listed for part in self.parts):
            return Between(math.inf, math.inf)
        if not self.parts:
            return Between(0.0, 0.0)
        pairs = [part.below(0) for part in self.parts if part.listed]
        few = len(pairs) == 1 or math.prod(len(pair.left) for pair in pairs) <= FEW_CELLS
        if len(pairs) == len(self.parts) and few:
            lower = listed.concentrated(*reduce(listed.product, pairs), thorough=thorough)
            return Between(lower, self._rho_above if thorough else self._sum("ratios").range ** 2 / 8)
        if self._rho_above == math.inf and any(isinstance(part, Noise) for part in self.parts):
            return Between(math.inf, math.inf)
        return Between(self._search(thorough), self._rho_above)

    @property
    def worst_outcome(self) -> Any:
        """An outcome with the largest log ratio, of what differs: one, or a tuple; None if it has no name."""
        named = tuple(part.worst_outcome for part in self.parts)
        return named[0] if len(named) == 1 else named or None

    @property
    def exponent(self) -> Fraction | None:
        """The pure epsilon as a fraction, where all that differs is Laplace noise; None elsewhere."""
        return divergence.laplace_exponent(self.parts)

    def _sum(self, which: str) -> Ratios:
        # The parts are independent, so that the worst outcomes of each are attained together.
        each = [getattr(part, which) for part in self.parts]
        return Ratios(sum(ratios.up for ratios in each), sum(ratios.down for ratios in each))

    @cached_property
    def _lists(self) -> tuple[list[Pair], list[Pair]]:
        return divergence.lists_of(self.parts)

    @cached_property
    def _rho_above(self) -> float:
        return sum(part.rho_above() for part in self.parts)

    def _search(self, thorough: bool) -> float:
        fixed = all(part.listed or isinstance(part, Known) for part in self.parts)
        largest = 1e3 if fixed else divergence.LARGEST_ORDER
        # Orders less one: the supremum may lie at order 1 itself.
        beyond = np.geomspace(1e-6 if thorough else 0.1, largest, 25 if fixed else 15 if thorough else 4)
        worst = self._over_order(2.0)
        if worst >= self._rho_above * (1 - (1e-9 if thorough else 1e-5)):
            return worst
        for _ in range(7 if thorough else 1):
            found = [self._over_order(1 + float(each)) for each in beyond]
            best = int(np.argmax(found))
            worst = max(worst, found[best])
            beyond = np.geomspace(beyond[max(best - 1, 0)], beyond[min(best + 1, len(beyond) - 1)], 7)
        return worst

    def _over_order(self, order: float) -> float:
        sides = self._both([part.far(order) for part in self.parts])
        return max(sum(listed.renyi(pair, order) for pair in pairs) for pairs in sides) / order

    @staticmethod
    def _both(pairs: list[Pair]) -> tuple[list[Pair], list[Pair]]:
        return pairs, [pair.swapped for pair in pairs]


def compare(left: Law, right: Law) -> Comparison:
    """How far apart two laws are: as epsilon, as delta, as a Rényi divergence and as a rho.

    Guarantee:
        As `Comparison` says: exact for lists and runs, certain bounds on both sides elsewhere.

    Args:
        left, right: laws of the same kind: noise around centers, clamped or not, vectors and tuples of it;
            weighted choices and runs of points; first crossings, transcripts and selections; quantiles of any
            method, and those that counts verify.

    Raises:
        NotSupported: a law whose outcomes can be neither listed nor taken apart.

    >>> from sfumato.laws import DiscreteLaplace, Shifted
    >>> found = compare(Shifted(DiscreteLaplace(2), 0), Shifted(DiscreteLaplace(2), 1))
    >>> str(found.epsilon()), found.exponent
    ('0.5', Fraction(1, 2))
    """
    return Comparison(tuple(part(*pair) for pair in changed_coordinates(left, right)))


def part(left: Any, right: Any) -> Sandwich:
    """One part of a comparison, from two laws that cannot be taken apart further."""
    if is_noise(left) and is_noise(right):
        return Noise(*moved(left, right))
    runs = _runs_of(left), _runs_of(right)
    if runs[0] is not None and runs[1] is not None:
        return _run_cells(runs[0], runs[1])
    if isinstance(left, JointLaw) and isinstance(right, JointLaw) and left.count > MOST_OUTCOMES:
        return chain_part(left, right)
    if isinstance(left, RecursiveLaw) and isinstance(right, RecursiveLaw) and left.count > MOST_OUTCOMES:
        return recursive_part(left, right)
    if isinstance(left, Transcripts) and isinstance(right, Transcripts) and left.mechanism.answer_noise:
        return _numbered(left, right)
    if isinstance(left, AdaptiveLaw) and isinstance(right, AdaptiveLaw):
        return adaptive_part(left, right)
    return cells(listing(left), listing(right))


def cells_of(left: Listing, right: Listing) -> Comparison:
    """The comparison of two laws by their lists."""
    return Comparison((cells(left, right),))


def is_listed(law: Any) -> bool:
    """Whether a law is compared outcome by outcome."""
    if isinstance(law, NodesLaw | FramedLaw | AdaptiveLaw):
        return False
    long = isinstance(law, JointLaw | RecursiveLaw | ScansLaw) and law.count > MOST_OUTCOMES
    numbered = isinstance(law, Transcripts) and law.mechanism.answer_noise is not None
    return not long and not numbered and hasattr(law, "outcomes")


class _Runs(NamedTuple):
    """Runs of equally likely integers: the first of each, one past the last of all, and log probabilities."""

    starts: list[int]
    end: int
    logs: Floats


@lru_cache(maxsize=1024)
def _runs_of(law: Any) -> _Runs | None:
    """A law on integers as runs, None if it is no such law; kept, since a law meets many neighbours."""
    if isinstance(law, Point) and isinstance(law.value, int):
        return _Runs([law.value], law.value + 1, np.zeros(1))
    if isinstance(law, Node):
        return _shifted(_runs_of(law.law), law.first)
    if isinstance(law, Choice | Graded):
        ends = np.unique(law.ends[law.ends > 0])
        starts: Ints = np.concatenate([[0], ends[:-1]])
        if isinstance(law, Choice):
            logs = np.asarray(law.logpmf(starts))
        else:
            logs = np.array([law.logpmf(start) for start in starts.tolist()])
        return _Runs(starts.tolist(), int(ends[-1]), logs)
    if isinstance(law, Shifted) and isinstance(law.center, int):
        return _shifted(_runs_of(cast(Hashable, law.noise)), law.center)
    if isinstance(law, Clamped):
        return _clamped(_runs_of(cast(Hashable, law.law)), law)
    return None


def _shifted(runs: _Runs | None, by: int) -> _Runs | None:
    return None if runs is None else _Runs([start + by for start in runs.starts], runs.end + by, runs.logs)


def _clamped(runs: _Runs | None, law: Clamped) -> _Runs | None:
    if runs is None:
        return None
    low = runs.starts[0] if law.lower is None else law.lower
    high = runs.end - 1 if law.upper is None else law.upper
    starts = sorted({low, high, *(s for s in (*runs.starts, low + 1, runs.end) if low < s < high)})
    return _Runs(starts, high + 1, np.array([float(law.logpmf(start)) for start in starts]))


def _run_cells(left: _Runs, right: _Runs) -> Cells:
    """The runs of both laws, cut where either of them changes."""
    starts = sorted({*left.starts, *right.starts, left.end, right.end})
    lengths = np.log([float(b - a) for a, b in itertools.pairwise(starts)])
    logs = []
    for runs in (left, right):
        place = np.searchsorted(
            np.array(runs.starts, dtype=object), np.array(starts[:-1], dtype=object), "right"
        )
        inside = (place > 0) & np.array([start < runs.end for start in starts[:-1]])
        logs.append(np.where(inside, runs.logs[np.maximum(place - 1, 0)] + lengths, -np.inf))
    return Cells(Pair(*logs), starts[:-1])


def _numbered(left: Transcripts, right: Transcripts) -> Sandwich:
    """Transcripts with numbers in place of "above": patterns, each with noise of its own."""
    patterns = cells(listing(left), listing(right))
    noise = left.mechanism.answer_noise
    if noise is None or noise != right.mechanism.answer_noise:
        raise NotSupported("transcripts are compared with answers of one noise, or with none")
    ratios = []
    for pattern, loss in zip(patterns.outcomes, patterns.pair.losses.tolist(), strict=True):
        moves = [
            a - b for a, b, told in zip(left.values, right.values, pattern, strict=False) if told != "below"
        ]
        most = float(sum(abs(move) for move in moves) / noise.scale)
        ratios.append((loss + most, most - loss))
    up, down = (max(ratio[side] for ratio in ratios) for side in (0, 1))
    return Known(Ratios(up, down), Ratios(up, down), None, patterns.pair)
