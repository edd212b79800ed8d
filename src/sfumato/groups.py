"""Which groups are answered: public keys, those that enough people share, the largest, and the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, Literal, cast

import numpy as np

from sfumato.checks import Number, boolean, exact, keep, one_of, shown, whole
from sfumato.data.groups import Key
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.grid import Ints
from sfumato.laws import Bits, Law, Peeled
from sfumato.mechanisms.partition_selection import PartitionSelection
from sfumato.privacy import ZCDP, Amount, ApproxDP, Budget, ComposedEvent, Event, Neighbours, PureDP
from sfumato.query import Cost, encode, raw
from sfumato.statistics.most_common import MostCommon

MOST_TOP = 10_000
# So many found keys can be answered at most; without a limit a reply could have any length.
MOST_FOUND = 1_000_000
KEYS: tuple[Literal["public", "private"], ...] = ("public", "private")


@dataclass(frozen=True, kw_only=True)
class Groups:
    """Which groups of a question are answered, and what is spent on finding them.

    Guarantee:
        Public parameters only. Keys that come from the data are named by partition selection with a delta
        that is charged, so that a group of one person appears with at most that chance.
        Proofs: docs/proofs/partition-selection.md, docs/proofs/parts.md.

    Args:
        keys: "public" for every combination of declared categories; "private" for the keys that the data
            hold, of which those that enough people share are named.
        other: whether the rows of no answered group make one more, whose key is None in every column.
        top: the largest groups alone, so many, chosen privately by how many people are in them.
        share: the part of the budget, inside (0, 1), that finds keys, where that costs anything.
        least: with private keys: groups of fewer people are never named, and dropped where they are counted.
        most: with private keys: at most so many groups are answered, the first in the order of their keys.
            This bounds the size of the answer before anything is paid; rows of further groups are among the
            others.

    Raises:
        InvalidParameter: a parameter is out of range.

    >>> Groups(keys="private", other=True).share
    Fraction(1, 4)
    """

    keys: Literal["public", "private"] = "public"
    other: bool = False
    top: int | None = None
    share: Number = Fraction(1, 4)
    least: int = 1
    most: int = 10_000

    def __post_init__(self) -> None:
        one_of("keys", self.keys, KEYS)
        boolean("other", self.other)
        if self.top is not None:
            keep(self, top=whole("top", self.top, least=1, most=MOST_TOP))
        share = exact("share", self.share)
        if not 0 < share < 1:
            raise InvalidParameter(f"share must be inside (0, 1), got share={shown(self.share)}")
        keep(self, share=share, least=whole("least", self.least, least=1, most=2**62))
        if self.least > 1 and self.keys == "public":
            raise InvalidParameter(f"least goes with keys='private', got least={self.least}")
        keep(self, most=whole("most", self.most, least=1, most=MOST_FOUND))
        if self.most != type(self).most and self.keys == "public":
            raise InvalidParameter(f"most goes with keys='private', got most={self.most}")

    @classmethod
    def read(cls, given: object) -> "Groups":
        """Groups as such, or as a mapping of their parameters."""
        if isinstance(given, cls):
            return given
        known = {field.name for field in fields(cls)}
        if not isinstance(given, Mapping) or not set(given) <= known:
            raise InvalidParameter(f"groups must be Groups(...), got groups={shown(given)}")
        return cls(**given)

    @property
    def private(self) -> bool:
        """Whether keys come from the data."""
        return self.keys == "private"

    def facts(self) -> dict[str, Any]:
        """All parameters but those with their usual values, in JSON's types.

        >>> Groups(top=3).facts(), Groups().facts()
        ({'top': 3}, {})
        """
        said = {field.name: getattr(self, field.name) for field in fields(self)}
        usual = {field.name: field.default for field in fields(self)}
        return {name: encode(value) for name, value in said.items() if value != usual[name]}

    def priced(self, budget: Budget, moved: int, neighbours: Neighbours) -> "tuple[KeySearch | None, Budget]":
        """How keys are found, and what is left for the statistic; `KeySearch.beside` comes after that.

        Args:
            budget: what keys and statistic may cost together.
            moved: how many keys one person can move by one.
        """
        if not self.private and self.top is None:
            return None, budget
        share, rest = Fraction(self.share), 1 - Fraction(self.share)
        steps = self.private + (self.top is not None)
        if not self.private:
            search = KeySearch(None, self.top, _part(budget, share), moved, neighbours, self.most)
            return search, _part(budget, rest)
        if not isinstance(budget, ApproxDP):
            rule = "ApproxDP(epsilon, delta): to name keys of the data takes a delta"
            raise (NotSupported if isinstance(budget, ZCDP) else InvalidParameter)(
                f"budget must be {rule}, got {budget!r}"
            )
        each = share / steps
        selection = PartitionSelection(
            epsilon=budget.epsilon * each, delta=budget.delta / 2, groups=moved, least=self.least
        )
        left = ApproxDP(budget.epsilon * rest, budget.delta / 2)
        top = None if self.top is None else PureDP(budget.epsilon * each)
        return KeySearch(selection, self.top, top, moved, neighbours, self.most), left


def _part(budget: Budget, share: Fraction) -> Budget:
    if isinstance(budget, ZCDP):
        return ZCDP(budget.rho * share)
    if isinstance(budget, PureDP):
        return PureDP(budget.epsilon * share)
    return ApproxDP(budget.epsilon * share, budget.delta * share)


@dataclass(frozen=True)
class KeySearch:
    """How the keys of groups are found: those that enough people share, then the largest."""

    selection: PartitionSelection | None
    top: int | None
    budget: Budget | None
    moved: int
    neighbours: Neighbours
    most: int

    def beside(self, cost: Cost, budget: Budget) -> "KeySearch":
        """The search beside a statistic of this cost: what delta that leaves of the budget names keys."""
        if self.selection is None or not isinstance(budget, ApproxDP):
            return self
        left = budget.delta - (cost.delta if isinstance(cost, Amount | ApproxDP) else 0)
        return replace(self, selection=replace(self.selection, delta=left))

    @property
    def answered(self) -> int:
        """How many keys are answered, at most."""
        return self.most if self.top is None else min(self.most, self.top)

    @property
    def least(self) -> int:
        """Keys of fewer people need not be counted."""
        return 1 if self.selection is None else self.selection.least

    @property
    def event(self) -> Event:
        """What finding the keys costs, for an accountant."""
        events: list[Event] = [] if self.selection is None else [self.selection.event]
        return ComposedEvent([*events, *([self._largest.event] if self.top is not None else [])])

    @property
    def cost(self) -> Amount:
        """What finding the keys costs."""
        total = Amount() if self.selection is None else Amount.of(self.selection.cost)
        if self.top is None:
            return total
        cost = self._largest.cost
        return total + (cost if isinstance(cost, Amount) else Amount.of(cost))

    @property
    def words(self) -> str:
        """How keys are found, in words."""
        found = (
            [] if self.selection is None else [self.selection.described(), f"at most {self.most:,} groups"]
        )
        if self.top is not None:
            most = "the largest was" if self.top == 1 else f"the {self.top:,} largest were"
            found.append(f"{most} chosen privately, by numbers of people")
        return "; ".join(found)

    def found(self, keys: Sequence[Key], counts: Ints, bits: Bits) -> tuple[Key, ...]:
        """The keys that are answered, in the order given, by how many people each has."""
        kept = np.ones(len(keys), dtype=np.bool_)
        if self.selection is not None:
            kept = self.selection.kept(counts, bits)
        places = np.flatnonzero(kept)
        if self.top is not None and self.top < len(places):
            chosen = raw(self._law(counts[places]).sample(bits))
            # In the order of the keys: neither by size nor by the draw.
            places = np.sort(places[list(chosen)])
        # A function of the keys that were selected, which costs nothing.
        places = places[: self.most]
        return tuple(keys[place] for place in places.tolist())

    def _law(self, counts: Ints) -> Law:
        """The law of the places of the largest."""
        query = self._largest
        first = query.mechanism.each.law(counts)
        return cast(Law, first if query.picks == 1 else Peeled(first, query.picks))

    @property
    def _largest(self) -> MostCommon:
        """The choice of the largest; what it costs does not depend on how many keys there are."""
        if self.top is None or self.budget is None:
            raise InvalidParameter("top must be given to choose the largest groups, got top=None")
        # Under substitution as many keys lose a person as gain one.
        changes = self.moved if self.moved > 1 or self.neighbours == "substitution" else None
        return MostCommon(
            budget=self.budget,
            neighbours=self.neighbours,
            categories=tuple(range(self.top)),
            picks=self.top,
            changes=changes,
        )


def without(query: Any, budget: Budget) -> Any:
    """The query with what is left of its budget."""
    return query if budget == query.budget else replace(query, budget=budget)
