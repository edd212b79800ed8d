"""Streams of counts about a data set: which of them are above a threshold, paid for by the crossings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from sfumato.checks import Number, compact, shown, whole
from sfumato.data.column import Category, Column
from sfumato.data.counts import NullRule
from sfumato.errors import InvalidParameter
from sfumato.laws import Bits
from sfumato.laws.crossing import LARGEST_VALUE
from sfumato.mechanisms.sparse import Sparse, SparseMechanism, counted
from sfumato.mechanisms.transcripts import Answer
from sfumato.one_process import OneProcess
from sfumato.privacy import Neighbours, PureDP, PureEvent
from sfumato.release import printable
from sfumato.statistics import Count

# How many counts the printed accuracy is for.
_SHOWN_COUNTS = 1000


@dataclass(frozen=True, kw_only=True)
class StreamTerms:
    """The public side of a stream of counts: what a ledger is charged with before anything is drawn."""

    name: ClassVar[str] = "stream"

    mechanism: SparseMechanism
    threshold: int
    neighbours: Neighbours
    default_column: str | None

    @classmethod
    def of(
        cls,
        *,
        threshold: int,
        crossings: int,
        budget: PureDP,
        answers: Number | None,
        one_sided: bool,
        neighbours: Neighbours,
        column: str | None,
    ) -> "StreamTerms":
        """The terms with the least noise that a pure budget pays for."""
        if not isinstance(budget, PureDP):
            raise InvalidParameter(f"budget must be PureDP for a stream, got budget={shown(budget)}")
        mechanism = SparseMechanism.calibrated(
            budget.epsilon,
            sensitivity=1,
            crossings=crossings,
            # One more record adds 0 or 1 to every count; one replaced record may lower one and raise another.
            same_direction=neighbours == "add-remove",
            one_sided=one_sided,
            answers=answers,
        )
        bar = whole("threshold", threshold, least=-LARGEST_VALUE, most=LARGEST_VALUE)
        return cls(mechanism=mechanism, threshold=bar, neighbours=neighbours, default_column=column)

    @property
    def column(self) -> str:
        """The column that the counts are about, for the ledger."""
        return self.default_column or "any column"

    @property
    def event(self) -> PureEvent:
        """What the whole stream costs, for an accountant."""
        return self.mechanism.event

    @property
    def cost(self) -> PureDP:
        """What the whole stream costs."""
        return PureDP(self.mechanism.cost)


class Stream(OneProcess):
    r"""Tells of counts about a data set whether they are above a threshold, until `crossings` of them were.

    `Session.open_stream` opens one, and charges for the whole of it. Counts that are below cost nothing more.

    Guarantee:
        All answers together are pure DP with `cost`, whatever counts are offered and however they were chosen
        after earlier answers. One record moves a count by at most 1, and under add-remove all counts in the
        same direction, so that no sensitivity has to be promised. Proof: docs/proofs/above-threshold.md,
        counts about a data set.

    Args:
        terms: the public parameters, which have been charged.
        bind: finds the column of a count, or refuses by public facts.
        bits: where randomness comes from.

    >>> from sfumato.data.dataset import Dataset
    >>> from sfumato.privacy import PureDP
    >>> from sfumato.session import Session
    >>> data = Dataset({"age": list(range(100)) * 50}, unit="row", neighbours="add-remove")
    >>> session = Session(data, budget=PureDP(1))
    >>> stream = session.open_stream(column="age", threshold=1000, crossings=2, budget=PureDP(1))
    >>> [stream.offer(between=ages) for ages in ((0, 9), (0, 59), (95, 120), (20, 90))]
    ['below', 'above', 'below', 'above']
    >>> session.remaining, stream.halted
    (Amount(), True)
    """

    noun = "a stream"

    def __init__(self, terms: StreamTerms, bind: Callable[[Any], tuple[Any, Column]], bits: Bits) -> None:
        self._terms, self._bind = terms, bind
        self._sparse = Sparse(terms.mechanism, terms.threshold, bits)

    @property
    def mechanism(self) -> SparseMechanism:
        """The noise, what it costs and how accurate it is."""
        return self._terms.mechanism

    @property
    def threshold(self) -> int:
        """The public threshold."""
        return self._terms.threshold

    @property
    def cost(self) -> Fraction:
        """The exact pure epsilon of the whole stream, charged when it was opened."""
        return self.mechanism.cost

    @property
    def event(self) -> PureEvent:
        """What was charged, for an accountant."""
        return self._terms.event

    @property
    def remaining(self) -> int:
        """How many more counts may be above."""
        return self._sparse.remaining

    @property
    def halted(self) -> bool:
        """Whether all crossings were told."""
        return self._sparse.halted

    @property
    def private(self) -> bool:
        """False if seeded bits draw the noise; then nothing of it must be published."""
        return self._sparse.private

    def error(self, counts: int, confidence: float = 0.95) -> int:
        """How far on the wrong side of the threshold a count can be, if so many are offered at most.

        Guarantee:
            With this confidence no count that is told to be below is more than this above the threshold, and
            none that is told to be above is this far below it or further.
        """
        return self.mechanism.radius(counts, confidence)

    def offer(
        self,
        query: Count | None = None,
        *,
        column: str | None = None,
        equals: Category | Sequence[Category] | None = None,
        between: tuple[float, float] | None = None,
        nulls: NullRule | None = None,
    ) -> Answer:
        """Whether a count is above the threshold: "below", "above", or a noisy number in its place.

        Args:
            query: a `Count`, whose own budget is not used, since the stream was paid for; or nothing, and
            column, equals, between, nulls: what to count, as in `Count`; the column may be left out if the
                stream was opened for one.

        Raises:
            BudgetExceeded: the stream has halted.
            InvalidParameter, SchemaMismatch: a public fact is wrong.
            NotSupported: the process was forked after the stream was opened.
            SfumatoError: the session is closed.
            After any of these the data were not looked at, and the stream is as it was.
        """
        self._sparse.require_open()
        bound, found = self._bind(self._count(query, column, equals, between, nulls))
        return self._sparse.offer(bound.look(found).first)

    def _count(
        self, query: object, column: str | None, equals: Any, between: Any, nulls: NullRule | None
    ) -> Count:
        if query is not None:
            # A subclass could look at the data in its own way.
            if type(query) is not Count:
                raise InvalidParameter(f"query must be a Count, got {shown(query)}")
            if any(part is not None for part in (column, equals, between, nulls)):
                raise InvalidParameter("query and the parts of a count must not both be given")
            return query
        name = column if column is not None else self._terms.default_column
        if name is None:
            raise InvalidParameter("column must be given, here or when the stream is opened")
        return Count(budget=self._terms.cost, column=name, equals=equals, between=between, nulls=nulls)

    def __str__(self) -> str:
        told = self.mechanism.crossings - self.remaining
        within = self.error(_SHOWN_COUNTS)
        lines = [
            f"stream of counts of {printable(self._terms.column)} above {self.threshold:,}",
            f"  crossings: {told} told, {self.remaining} remaining",
            f"  cost: {self._terms.cost!r} for all of it, {self._terms.neighbours}, charged when opened",
            f"  method: {self.mechanism.described()}",
            f"  accuracy: up to {_SHOWN_COUNTS:,} answers are all right at 95 % confidence, but for counts "
            f"within {within:,} of the threshold",
        ]
        if self.mechanism.answer_scale is not None:
            lines.append(f"  numbers: within ±{self.mechanism.answer_radius(0.95):,}, all of them")
        if not self.private:
            lines.append("  note: NOT PRIVATE: drawn with seeded bits, for tests and teaching only")
        return "\n".join(lines)

    def __repr__(self) -> str:
        remaining, cost = counted(self.remaining), compact(self.cost)
        return f"Stream(threshold={self.threshold}, {remaining} remaining, cost={cost})"
