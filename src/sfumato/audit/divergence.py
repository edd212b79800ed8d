"""Pairs of laws between two pairs of finite lists, from which every divergence is bounded on both sides.

A law with independent parts is compared part by part. A part is either listed, cell by cell, and then both
lists are the part itself; or it has more outcomes than can be listed, and neighbouring ones form blocks.
Merging the outcomes of a block never increases a divergence: the list `below`. Putting its masses at the two
ends of its log ratios never decreases one, because the block is then a post-processing of the list: the list
`above`. docs/audit.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from typing import Any, Protocol

import numpy as np

from sfumato.audit import listed
from sfumato.audit.coordinates import bounds_of, center_of, noise_of
from sfumato.audit.listed import Pair, Ratios
from sfumato.grid import Floats
from sfumato.laws import DiscreteGaussian, DiscreteLaplace, Law

# Blocks of a part, and steps of the log ratio where several parts are made one. Finer ones decide close
# cases.
BLOCKS = 4_001
FINER = (1, 8, 32)
# The Rényi divergence is a sum over the parts, and smooth: fewer blocks do.
RENYI_BLOCKS = 2_001
# Products of parts with at most so many cells are listed as they are.
MOST_CELLS = 1 << 17
# Steps of the log ratio of two parts together, at most.
MOST_STEPS = 1 << 16
# The orders of a search where a part is an endless law, whose blocks must reach the further the larger the
# order.
LARGEST_ORDER = 32.0


class Between(tuple[float, float]):
    """Two numbers that hold a divergence between them; equal where it is known exactly.

    Guarantee:
        The divergence is at least `lower` and at most `upper`, up to the rounding of float64.

    >>> known, bounded = Between(0.5, 0.5), Between(0.25, 0.5)
    >>> known.exact, bounded.exact, str(bounded)
    (True, False, 'between 0.25 and 0.5')
    """

    def __new__(cls, lower: float, upper: float) -> "Between":
        """The lower number is never the larger one, whatever rounding did."""
        return super().__new__(cls, (float(lower), max(float(lower), float(upper))))

    @property
    def lower(self) -> float:
        """The divergence is at least this."""
        return self[0]

    @property
    def upper(self) -> float:
        """The divergence is at most this."""
        return self[1]

    @property
    def exact(self) -> bool:
        """Whether both are equal up to the rounding of float64."""
        return self.lower == self.upper or self.upper - self.lower <= 1e-9 * self.upper

    def __str__(self) -> str:
        return f"{self.lower:.6g}" if self.exact else f"between {self.lower:.6g} and {self.upper:.6g}"


class Sandwich(Protocol):
    """One part of a comparison."""

    @property
    def seen(self) -> Ratios:
        """Log ratios that outcomes of the laws attain."""

    @property
    def ratios(self) -> Ratios:
        """What no log ratio passes; the suprema themselves wherever they are known."""

    @property
    def worst_outcome(self) -> Any:
        """An outcome with the largest log ratio, None if it cannot be named."""

    @property
    def listed(self) -> bool:
        """Whether both lists are the part itself."""

    def below(self, blocks: int, losses: Sequence[float] = ()) -> Pair:
        """A post-processing of the part; exact where the log ratio passes one of the `losses`."""

    def above(self, blocks: int, losses: Sequence[float] = ()) -> Pair:
        """A list of which the part is a post-processing; exact where the ratio passes one of the `losses`."""

    def far(self, order: float) -> Pair:
        """A post-processing of the part, good for the Rényi divergence of this order."""

    def rho_above(self) -> float:
        """A number that no Rényi divergence of the part passes when divided by its order."""


@dataclass(frozen=True, eq=False)
class Cells:
    """A part that is listed: every outcome, or every run of outcomes that are equally likely in both laws."""

    pair: Pair
    outcomes: Any

    listed = True

    @cached_property
    def ratios(self) -> Ratios:
        return listed.log_ratios(self.pair)

    @property
    def seen(self) -> Ratios:
        return self.ratios

    @property
    def worst_outcome(self) -> Any:
        return self.outcomes[listed.worst_cell(self.pair)]

    def below(self, blocks: int, losses: Sequence[float] = ()) -> Pair:
        return self.pair

    def above(self, blocks: int, losses: Sequence[float] = ()) -> Pair:
        return self.pair

    def far(self, order: float) -> Pair:
        return self.pair

    def rho_above(self) -> float:
        if math.isinf(self.ratios.worse):
            return math.inf
        chords = listed.worse(self.pair, listed.concentrated_above)
        return min(chords, self.ratios.range**2 / 8)


@dataclass(frozen=True, eq=False)
class Known:
    """A part with known log ratios and some cells: `seen` is attained, `ratios` is never passed."""

    seen: Ratios
    ratios: Ratios
    worst_outcome: Any
    cells: Pair

    listed = False

    def below(self, blocks: int, losses: Sequence[float] = ()) -> Pair:
        """The cells that are known, and all other outcomes as one."""
        with np.errstate(divide="ignore"):
            rest = [np.log1p(-min(np.exp(logs).sum(), 1.0)) for logs in self.cells]
        return Pair(*(np.append(logs, other) for logs, other in zip(self.cells, rest, strict=True)))

    def above(self, blocks: int, losses: Sequence[float] = ()) -> Pair:
        """All outcomes at the two ends of the log ratios."""
        one = np.ones(1)
        return listed.split(one, one, np.array([-self.ratios.down]), np.array([self.ratios.up]))

    def far(self, order: float) -> Pair:
        return self.below(0)

    def rho_above(self) -> float:
        # Hoeffding's lemma: log ratios in an interval of length r cost r^2/8.
        return self.ratios.range**2 / 8


@dataclass(frozen=True, eq=False)
class Noise:
    """A part that is noise around a center, clamped or not, in both laws; centers are small after a move."""

    left: Law
    right: Law
    start: int = 0

    listed = False

    @cached_property
    def ratios(self) -> Ratios:
        if _is_unbounded(self.left, self.right):
            return Ratios(math.inf, math.inf)
        return listed.log_ratios(self._marks[1])

    @property
    def seen(self) -> Ratios:
        return self.ratios

    @property
    def worst_outcome(self) -> Any:
        if _is_unbounded(self.left, self.right):
            return None
        outcomes, pair = self._marks
        return self.start + int(outcomes[listed.worst_cell(pair)])

    @cached_property
    def _marks(self) -> tuple[Any, Pair]:
        """Outcomes that decide the log ratio, and their log probabilities."""
        low, high, kinks = _window(self.left, self.right, beyond=0)
        few = high - low <= 401
        # Log probabilities of Laplace laws are straight between their kinks, so that these decide.
        spread = range(low, high + 1) if few else (low + (high - low) * i // 64 for i in range(65))
        outcomes = _integers(sorted({*spread, *(kink + side for kink in kinks for side in (-1, 0, 1))}))
        return outcomes, Pair(*(np.asarray(law.logpmf(outcomes)) for law in (self.left, self.right)))

    def below(self, blocks: int, losses: Sequence[float] = ()) -> Pair:
        return _log_pair(*self._blocks(blocks, losses)[:2])

    def above(self, blocks: int, losses: Sequence[float] = ()) -> Pair:
        p, q, edges = self._blocks(blocks, losses)
        if noise_of(self.left) != noise_of(self.right):
            # Nothing is known of how the ratio runs inside a block: as if each outcome gave its law away.
            return _log_pair(np.append(p, 0 * q), np.append(0 * p, q))
        first = self._losses([edges[0], *(edge + 1 for edge in edges)])
        last = self._losses([*edges, edges[-1] + 1])
        if self._gaussian and center_of(self.left) != center_of(self.right):
            # Beyond the window the ratio runs on without end.
            sign = math.copysign(math.inf, center_of(self.right) - center_of(self.left))
            first[0], last[-1] = sign, -sign
        return listed.split(p, q, np.minimum(first, last), np.maximum(first, last))

    def far(self, order: float) -> Pair:
        # The divergence of a high order comes from outcomes many times the distance beyond the centers.
        p, q, edges = self._blocks(RENYI_BLOCKS, (), beyond=math.ceil(order))
        if edges[-1] - edges[0] == len(edges) - 1:
            # Single outcomes do not underflow; what lies beyond them would only add.
            at = _integers(edges)
            return Pair(*(np.asarray(law.logpmf(at)) for law in (self.left, self.right)))
        # A probability that underflowed is raised to the smallest float, which makes the divergence smaller.
        if bounds_of(self.left) == bounds_of(self.right):
            p, q = (np.where((p > 0) | (q > 0), np.maximum(mass, 5e-324), 0.0) for mass in (p, q))
        return _log_pair(p, q)

    def rho_above(self) -> float:
        if self._gaussian:
            # Proved in docs/proofs/gaussian.md, and clamping is post-processing.
            distance = center_of(self.left) - center_of(self.right)
            return float(distance**2 / (2 * noise_of(self.left).sigma_squared))  # type: ignore[attr-defined]
        if math.isinf(self.ratios.worse):
            return math.inf
        chords = listed.worse(self.above(RENYI_BLOCKS), listed.concentrated_above)
        return min(self.ratios.range**2 / 8, chords)

    @property
    def _gaussian(self) -> bool:
        """Whether both laws have the same Gaussian noise and the same ends."""
        noise, ends = noise_of(self.left), (bounds_of(self.left), bounds_of(self.right))
        return isinstance(noise, DiscreteGaussian) and noise == noise_of(self.right) and ends[0] == ends[1]

    def _losses(self, outcomes: Sequence[int]) -> Floats:
        at = _integers(outcomes)
        return Pair(*(np.asarray(law.logpmf(at)) for law in (self.left, self.right))).losses

    @cached_property
    def _kept(self) -> dict[Any, tuple[Floats, Floats, list[int]]]:
        return {}

    def _blocks(
        self, limit: int, losses: Sequence[float], beyond: int = 0
    ) -> tuple[Floats, Floats, list[int]]:
        """Probabilities of both laws on blocks, single outcomes where there are few; the last of each."""
        key = limit, tuple(losses), beyond
        if key not in self._kept:
            self._kept[key] = self._made(limit, losses, beyond)
        return self._kept[key]

    def _made(self, limit: int, losses: Sequence[float], beyond: int) -> tuple[Floats, Floats, list[int]]:
        low, high, kinks = _window(self.left, self.right, beyond)
        if high - low < limit:
            edges = list(range(low, high + 1))
        else:
            spread = {low + (high - low) * i // (limit - 1) for i in range(limit)}
            spread |= {kink + side for kink in kinks for side in (-1, 0)}
            for loss in losses:
                spread |= {edge for edge in self._passed(loss, low, high) if low <= edge <= high}
            edges = sorted(spread)
        at = _integers(edges)
        return _block_masses(self.left, at), _block_masses(self.right, at), edges

    def _passed(self, loss: float, low: int, high: int) -> tuple[int, ...]:
        """The last outcome before the log ratio passes `loss`, if it is monotone."""
        ends = self._losses([low, high])
        rising = ends[1] > ends[0]
        while low < high:
            middle = (low + high) // 2
            at = float(self._losses([middle])[0])
            if (at >= loss) == rising:
                high = middle
            else:
                low = middle + 1
        return low - 1, low


def laplace_exponent(parts: Sequence[Sandwich]) -> Fraction | None:
    """The pure privacy loss as an exact number where all the noise is Laplace, None elsewhere.

    Probabilities are then proportional to exp(-|o - center| / scale), and so are the tails that a clamp
    gathers at its ends, if the centers lie between them.
    """
    total = Fraction(0)
    for part in parts:
        if not isinstance(part, Noise):
            return None
        one, other = part.left, part.right
        noise, ends = noise_of(one), bounds_of(one)
        if not isinstance(noise, DiscreteLaplace) or (noise, ends) != (noise_of(other), bounds_of(other)):
            return None
        low, high = sorted((center_of(one), center_of(other)))
        if ends.lower == ends.upper or not ends.lower <= low <= high <= ends.upper:
            return None
        total += (high - low) / noise.scale
    return total


def hockey_stick(parts: Sequence[Sandwich], epsilon: float, finer: int = 1) -> Between:
    """The largest P(A) - exp(epsilon) Q(A) over all sets A of outcomes, in the worse direction."""
    if not parts:
        return Between(0.0, 0.0)
    around = (epsilon, -epsilon) if len(parts) == 1 else ()
    lists = lists_of(parts, around, finer)
    return Between(
        *(max(_stick(each, epsilon), _stick([p.swapped for p in each], epsilon)) for each in lists)
    )


def lists_of(
    parts: Sequence[Sandwich], losses: Sequence[float] = (), finer: int = 1
) -> tuple[list[Pair], list[Pair]]:
    """The lists below and above each part, as one list or two: sums over the last are taken by its order."""
    blocks = BLOCKS * finer
    found = []
    for above in (False, True):
        pairs = [part.above(blocks, losses) if above else part.below(blocks, losses) for part in parts]
        if math.prod(len(pair.left) for pair in pairs) <= MOST_CELLS:
            found.append([merged(pairs, blocks, above=above)])
            if all(part.listed for part in parts):
                return found[0], found[0]
        else:
            *first, last = sorted(pairs, key=lambda pair: len(pair.left))
            found.append([merged(first, blocks, above=above), last] if first else [last])
    return found[0], found[1]


def merged(pairs: Sequence[Pair], steps: int, *, above: bool) -> Pair:
    """Independent parts as one list: all products of cells, or sums of log ratios on equal steps."""
    if len(pairs) == 1:
        return pairs[0]
    if math.prod(len(pair.left) for pair in pairs) <= MOST_CELLS:
        return reduce(listed.product, pairs)
    # The time of a convolution grows with the square of the steps.
    step = max(sum(listed.span(pair) for pair in pairs), 1e-300) / min(2 * steps, MOST_STEPS)
    return reduce(listed.convolved, (listed.ladder(pair, step, above=above) for pair in pairs)).pair


def _stick(pairs: list[Pair], epsilon: float) -> float:
    if len(pairs) == 1:
        return listed.one_sided(pairs[0], epsilon)
    first, last = pairs
    losses, masses = first.losses, np.exp(first.left)
    certain, inner = np.isposinf(losses), np.isfinite(losses)
    # A cell of infinite loss counts whole, and one of no mass not at all.
    found = listed.sticks(last, epsilon - losses[inner]) @ masses[inner] + masses[certain].sum()
    return min(float(found), 1.0)


def _is_unbounded(left: Law, right: Law) -> bool:
    """Whether the ratio grows for ever on some side, as it does for all but Laplace tails of one scale."""
    noise, ends = noise_of(left), bounds_of(left)
    endless = ends.lower == -math.inf or ends.upper == math.inf
    return endless and (isinstance(noise, DiscreteGaussian) or noise != noise_of(right))


def _window(left: Law, right: Law, beyond: int) -> tuple[int, int, list[int]]:
    """A range that holds all but 1e-14 of both laws, and the outcomes where the shape of one changes."""
    one, other = center_of(left), center_of(right)
    noises: list[Any] = [noise_of(left), noise_of(right)]
    reach = max(map(_reach, noises)) + 2
    reach += beyond * abs(other - one)
    ends = {end for law in (left, right) for end in bounds_of(law) if math.isfinite(end)}
    return min(one, other) - reach, max(one, other) + reach, [one, other, *(int(end) for end in ends)]


@lru_cache(maxsize=256)
def _reach(noise: Any) -> int:
    return int(noise.radius(1 - 1e-14))


def _block_masses(law: Law, edges: Any) -> Floats:
    below, above = np.asarray(law.cdf(edges)), np.asarray(law.sf(edges))
    # Differences are taken in the smaller of the two tails, where they keep their accuracy.
    inside = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))
    return np.concatenate([below[:1], np.maximum(inside, 0.0), above[-1:]])


def _log_pair(p: Floats, q: Floats) -> Pair:
    with np.errstate(divide="ignore"):
        return Pair(np.log(p), np.log(q))


def _integers(outcomes: Sequence[int]) -> Any:
    small = min(outcomes) > -(2**62) and max(outcomes) < 2**62
    return np.array(outcomes, dtype=np.int64 if small else object)
