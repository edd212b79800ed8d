"""Which keys of a table may be named, where the keys themselves come from the data."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.checks import inside, keep, positive, readable, shown, whole
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws import Bits, Choice, exp_bounds
from sfumato.laws.bits import Integers, Words
from sfumato.laws.coins import Uniform, ratio_coin
from sfumato.privacy import ApproxDP, ApproxEvent

Flags = NDArray[np.bool_]

# The page of the proof, and the name in a ledger.
PROOF = "partition-selection"
# Chances are integers over 2^192, and e^-epsilon is known to as many bits.
BITS = 192
UNIT = 1 << BITS
# So many digits of the delta of one key are kept at least, which is what rounding can lose of it.
_DELTA_BITS = 64
LEAST_DELTA = Fraction(1, 1 << (BITS - _DELTA_BITS))
# Tables longer than this are refused: 2^20 chances take about a second and 60 MB.
MOST_ENTRIES = 1 << 20
MOST_GROUPS = 10**6
MOST_COUNT = 2**62


class _Chances(NamedTuple):
    """The chance of each lowered count over 2^192, the last one certain; and the first word of each."""

    table: tuple[int, ...]
    words: Words


@dataclass(frozen=True, kw_only=True)
class PartitionSelection:
    r"""Keeps a key of the data with a chance that grows with how many people have it.

    What a key is may be known from the data alone: a key that nobody has is never kept, one of few people
    rarely, and one of `threshold` people always. If a person has one key (`groups` is 1) no strategy with
    this guarantee keeps any key with a larger chance, up to the rounding of the table.

    Guarantee:
        :math:`(\varepsilon, \delta)`-DP for the set of all kept keys, if one change of the data moves the
        counts of at most `groups` keys, each by at most one. Each of them has :math:`\varepsilon/g` and
        :math:`\delta/g`, and the table of chances over :math:`2^{192}` satisfies the inequalities exactly.
        Under add-remove `groups` is how many keys one person can have; under substitution twice that. Kept
        keys are shown in an order that does not depend on the data, such as that of the keys themselves.
        Proof: docs/proofs/partition-selection.md.

    Args:
        epsilon: of the whole selection.
        delta: of the whole selection; a key of one person is kept with at most the chance delta / groups.
        groups: how many keys one change of the data can move, each by one.
        least: keys of fewer people than this are never kept, so that whoever counts may drop them.

    Raises:
        InvalidParameter: a parameter out of range.
        NotSupported: delta / groups is below 2^-128, or the table of chances would be longer than 2^20.

    References:
        [DVGM22].

    >>> selection = PartitionSelection(epsilon=1, delta=1e-6)
    >>> selection.threshold, selection.chance(0), float(selection.chance(1)), selection.chance(28)
    (28, Fraction(0, 1), 1e-06, Fraction(1, 1))
    >>> from sfumato.laws import SystemBits
    >>> selection.kept(np.array([0, 28, 10**6]), SystemBits()).tolist()
    [False, True, True]
    """

    epsilon: Fraction
    delta: Fraction
    groups: int = 1
    least: int = 1

    def __post_init__(self) -> None:
        keep(self, epsilon=positive("epsilon", self.epsilon), delta=inside("delta", self.delta))
        keep(self, groups=whole("groups", self.groups, least=1, most=MOST_GROUPS))
        keep(self, least=whole("least", self.least, least=1, most=MOST_COUNT))
        self._chances  # noqa: B018  reason: a table that would be too long is refused here

    @property
    def event(self) -> ApproxEvent:
        """What the selection of all keys costs."""
        return ApproxEvent(self.epsilon, self.delta, PROOF)

    @property
    def cost(self) -> ApproxDP:
        """The same as a budget."""
        return ApproxDP(self.epsilon, self.delta)

    @property
    def threshold(self) -> int:
        """The smallest count of people whose key is always kept."""
        return len(self._chances.table) - 1 + self.least - 1

    @property
    def singleton(self) -> Fraction:
        """The chance that a key is kept that one person alone has: at most delta / groups."""
        return self.chance(1)

    def chance(self, count: int) -> Fraction:
        """The exact probability that a key of so many people is kept."""
        return Fraction(self._chance(whole("count", count, least=0, most=MOST_COUNT)), UNIT)

    def law(self, count: int) -> Choice:
        """The law of 1 for kept and 0 for not, for a key of so many people."""
        chance = self._chance(whole("count", count, least=0, most=MOST_COUNT))
        return Choice([UNIT - chance, chance])

    def kept(self, counts: Any, bits: Bits) -> Flags:
        """Which of several keys are kept, by the number of people of each.

        A word of bits is taken for each key of `least` people or more, in the order given: the same seeded
        bits keep the same keys whether or not the others were dropped before.
        """
        given = _whole_numbers(counts)
        table, tops = self._chances
        chosen = np.zeros(len(given), dtype=np.bool_)
        places = np.flatnonzero(given >= self.least)
        # From here counts are positive, so that lowering them cannot wrap.
        rows: Integers = np.minimum(given[places] - (self.least - 1), len(table) - 1)
        words = bits.words(len(places))
        found: Flags = words < tops[rows]
        certain = rows == len(table) - 1
        # A word level with the first word of a chance decides nothing: further bits of the same real do.
        for place in np.flatnonzero((words == tops[rows]) & ~certain):
            chance = Fraction(table[rows[place]], UNIT)
            found[place] = Uniform(bits, int(words[place]), 64).below(ratio_coin(chance))
        chosen[places] = found | certain
        return chosen

    def described(self) -> str:
        """The mechanism in words."""
        never = f", those of fewer than {readable(self.least)} never" if self.least > 1 else ""
        return f"keys of {readable(self.threshold)} people or more are always named{never}"

    def _chance(self, count: int) -> int:
        table = self._chances.table
        return table[min(max(count - (self.least - 1), 0), len(table) - 1)]

    @cached_property
    def _chances(self) -> _Chances:
        return _chances_of(self.epsilon / self.groups, self.delta / self.groups)


def _whole_numbers(counts: Any) -> Integers:
    given = np.asarray(counts)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise InvalidParameter("counts must be whole numbers in an array of one dimension")
    if given.dtype == np.uint64:  # what would wrap is far above every threshold
        given = np.minimum(given, np.uint64(MOST_COUNT))
    return given.astype(np.int64)


@lru_cache(maxsize=4)
def _chances_of(epsilon: Fraction, delta: Fraction) -> _Chances:
    table = selection_table(epsilon, delta)
    words = np.array([min(chance >> (BITS - 64), (1 << 64) - 1) for chance in table], dtype=np.uint64)
    words.flags.writeable = False
    return _Chances(table, words)


def selection_table(epsilon: Fraction, delta: Fraction) -> tuple[int, ...]:
    r"""Chances over 2^192 for the counts 0, 1, 2, ... of one key, up to the first that is certain.

    With W = 2^192, the table starts at 0, does not fall, ends at W, and satisfies exactly
    T[n+1] <= e^epsilon T[n] + delta W and W - T[n] <= e^epsilon (W - T[n+1]) + delta W, because e^-epsilon is
    rounded up, delta down, and each chance down. Proof: docs/proofs/partition-selection.md.

    >>> table = selection_table(Fraction(1), Fraction(1, 10))
    >>> [round(chance / UNIT, 4) for chance in table]
    [0.0, 0.1, 0.3718, 0.8057, 0.9653, 1.0]
    """
    if delta < LEAST_DELTA:
        raise NotSupported(f"delta / groups must be at least 2^-128 for a selection, got {shown(delta)}")
    shrink = exp_bounds(epsilon, BITS)[1]  # at least W e^-epsilon, at most W
    step = delta.numerator * UNIT // delta.denominator
    table = [0]
    while table[-1] < UNIT:
        if len(table) > MOST_ENTRIES:
            raise NotSupported(
                f"a selection with epsilon={shown(epsilon)} and delta={shown(delta)} for one key needs more "
                f"than {MOST_ENTRIES} chances: a larger epsilon, or fewer groups"
            )
        last = table[-1]
        kept = (last << BITS) // shrink + step
        # What is left over must be divided by at most e^epsilon: rounding it up lowers the chance.
        dropped = -(-shrink * max(UNIT - last - step, 0) >> BITS)
        table.append(min(kept, UNIT - dropped))
    return tuple(table)
