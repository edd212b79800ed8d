"""The one gate to the data: charge the ledger, then look."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Self

from sfumato.accuracy.scenario import Scenario
from sfumato.accuracy.statement import Accuracy
from sfumato.checks import Number, between, shown, whole
from sfumato.data.column import Column
from sfumato.data.counts import MAX_ROWS
from sfumato.data.dataset import Dataset
from sfumato.errors import InvalidParameter, NotSupported, SfumatoError
from sfumato.laws import Bits, default_bits
from sfumato.laws.selection import Variant
from sfumato.ledger import Ledger, MemoryLedger, check_budget
from sfumato.privacy import Amount, Budget, PureDP
from sfumato.query import Charged, Cost, Label, Query, raw
from sfumato.release import Release, printable
from sfumato.statistics.choose import Choose
from sfumato.streams import Stream, StreamTerms


@dataclass(frozen=True)
class Preview:
    """What an answer would cost and how accurate it would be; nothing was read or spent."""

    query: Query
    cost: Cost
    error: float | None
    confidence: float
    remaining: Amount
    # Under a scenario, where one was given.
    accuracy: Accuracy | None = None

    def __str__(self) -> str:
        if self.accuracy is not None:
            accuracy = f"{100 * float(self.confidence):.6g} % {self.accuracy.within}"
        elif self.error is None:
            accuracy = "accuracy depends on the private number of rows"
        else:
            sure = f"{100 * float(self.confidence):.6g} % confidence"
            accuracy = f"{self.query.accuracy_words(self.error)} with {sure}"
        about = f"{self.query.name} of {printable(self.query.column)}"
        return f"{about}: {accuracy}, costs {self.cost!r} of {self.remaining!r}"


class Session:
    """Answers queries about one data set under one budget.

    Args:
        data: the data set.
        budget: the cap of this session.
        ledger: where charges on the data set are recorded, with a cap of its own; both caps hold.
        bits: where randomness comes from; the operating system unless given.

    Guarantee:
        All answers together cost at most `budget`, and at most the ledger's cap together with all else that
        was charged there. A charge is made before the data are read and is never refunded. A forked process
        is refused, since its copy would spend the budget again.
        Proof: docs/proofs/composition.md.

    >>> from sfumato.data.dataset import Field
    >>> from sfumato.laws import SeededBits
    >>> from sfumato.privacy import PureDP
    >>> from sfumato.statistics import Mean
    >>> schema = {"age": Field(bounds=(0, 120))}
    >>> data = Dataset({"age": [31, 45, 60]}, unit="row", neighbours="substitution", schema=schema)
    >>> with Session(data, budget=PureDP(1), bits=SeededBits(1)) as session:
    ...     release = session.answer(Mean(column="age", budget=PureDP(0.25)))
    >>> session.remaining
    Amount(epsilon=0.75)
    """

    def __init__(
        self, data: Dataset, *, budget: Budget, ledger: Ledger | None = None, bits: Bits | None = None
    ) -> None:
        if not isinstance(data, Dataset):
            raise InvalidParameter(f"data must be a Dataset, got {type(data).__name__}")
        if bits is not None and not isinstance(bits, Bits):
            raise InvalidParameter(f"bits must be a source of bits, got bits={shown(bits)}")
        self._bits = bits or default_bits()
        if ledger is not None:
            _check_ledger(ledger, data, self._bits)
        self._data = data
        cap = check_budget("budget", budget)
        self._own = MemoryLedger(cap, neighbours=data.neighbours, dataset=data.name)
        self._ledger = ledger
        self._open = True
        self._lock, self._process = Lock(), os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session; what is left of its budget cannot be spent any more."""
        self._open = False

    @property
    def spent(self) -> Amount:
        """What this session was charged."""
        return self._own.spent

    @property
    def remaining(self) -> Amount:
        """What this session may still spend."""
        return self._own.remaining

    def preview(
        self,
        query: Query,
        *,
        confidence: float = 0.95,
        rows: int | None = None,
        scenario: Scenario | None = None,
    ) -> Preview:
        """Cost and accuracy before paying; nothing is read or spent.

        Args:
            confidence: of the accuracy that is stated.
            rows: a guess of the number of rows where it is private.
            scenario: what is publicly assumed about the data, for the accuracy on data like that.

        Raises:
            InvalidParameter: a parameter is out of range, or a scenario needs `rows`.
            NotSupported: a scenario with a query whose answer is no number.
        """
        between("confidence", confidence, 0, 1)
        guess = None if rows is None else whole("rows", rows, least=0, most=MAX_ROWS)
        bound, _ = self._bind(query)
        size = bound.rows if bound.rows is not None else guess
        if size is None and not bound.sized:
            size = 0
        error = None if size is None else bound.error(size, confidence)
        accuracy = None
        if scenario is not None:
            if size is None:
                raise InvalidParameter("rows must be given with a scenario: they are private, got rows=None")
            accuracy = bound.accuracy(size or None, confidence=confidence, scenario=scenario)
        return Preview(bound, bound.cost, error, confidence, self.remaining, accuracy)

    def answer(self, query: Query) -> Release:
        """Charge for the query, then read the data and draw the answer.

        Raises:
            BudgetExceeded: the charge does not fit; the data were not read.
            InvalidParameter, SchemaMismatch: a public fact is wrong; nothing was charged.
        """
        bound, column = self._bind(query)
        self._charge(bound)
        outcome = raw(bound.law(bound.look(column)).sample(self._bits))
        return Release(bound, outcome, self._bits.private)

    def choose(
        self,
        candidates: Sequence[Label],
        scores: Callable[[Mapping[str, Any]], Any],
        *,
        sensitivity: Number,
        budget: Budget,
        monotone: bool = False,
        picks: int = 1,
        method: Variant = "flip",
    ) -> Release:
        """Charge for a choice, then compute the scores and choose a candidate, or several.

        Args:
            scores: a function that is given copies of the columns by name, of the types that the data set
                was given, and returns a score for each candidate. It is called after the charge; what it
                raises is passed on and stays charged.
            candidates, sensitivity, budget, monotone, picks, method: as for `sfumato.Choose`.

        Raises:
            BudgetExceeded: the charge does not fit; the scores were not computed.
            InvalidParameter: a public fact is wrong, and nothing was charged; or the scores are not finite
                numbers, one for each candidate.
        """
        if not callable(scores):
            raise InvalidParameter("scores must be a function of the columns, called after the charge")
        item = Choose(
            candidates=candidates,
            sensitivity=sensitivity,
            budget=budget,
            monotone=monotone,
            picks=picks,
            method=method,
            neighbours=self._data.neighbours,
        )
        self._charge(item)
        law = item.law(scores(self._data.columns))
        return Release(item, raw(law.sample(self._bits)), self._bits.private)

    def open_stream(
        self,
        *,
        threshold: int,
        budget: PureDP,
        crossings: int = 1,
        column: str | None = None,
        answers: Number | None = None,
        one_sided: bool = True,
    ) -> Stream:
        """Charge for a stream of counts, then draw its threshold; each count is read when it is offered.

        Args:
            threshold: the public whole number that counts are compared with.
            budget: the pure cost of all answers together, however many counts are offered.
            crossings: after how many answers of "above" the stream halts.
            column: what the counts are about, where an offer does not say.
            answers: the share of the budget, inside (0, 1), for numbers in place of "above"; None for none.
            one_sided: geometric noise of half the variance in the comparisons.

        Raises:
            BudgetExceeded: the charge does not fit; nothing was drawn.
            InvalidParameter, SchemaMismatch: a public fact is wrong; nothing was charged.
        """
        terms = StreamTerms.of(
            threshold=threshold,
            crossings=crossings,
            budget=budget,
            answers=answers,
            one_sided=one_sided,
            neighbours=self._data.neighbours,
            column=None if column is None else self._data.column(column).name,
        )
        self._charge(terms)
        return Stream(terms, self._bind_while_open, self._bits)

    def _bind_while_open(self, query: Query) -> tuple[Query, Column]:
        self._require_open()
        return self._bind(query)

    def _require_open(self) -> None:
        # A forked process is a copy, with a budget of its own.
        if os.getpid() != self._process:
            raise NotSupported("a session answers in the process that opened it: open another one here")
        if not self._open:
            raise SfumatoError("the session is closed: open another one to ask for more")

    def _charge(self, item: Charged) -> None:
        with self._lock:
            self._require_open()
            if self._ledger is not None:
                # The session's own cap is tested first, so that a refusal by either leaves both unchanged.
                self._own.require(item)
                self._ledger.charge(item)
            self._own.charge(item)

    def _bind(self, query: Query) -> tuple[Query, Column]:
        """The query with the public facts of the data filled in, and its column; before any charge."""
        if not hasattr(type(query), "bind"):
            raise InvalidParameter(f"query must be a statistic such as Mean(...), got {shown(query)}")
        column = self._data.column(query.column)
        bound = query.bind(column, self._data.field(query.column), self._data.neighbours)
        bound.check(column)
        return bound, column


def _check_ledger(ledger: Ledger, data: Dataset, bits: Bits) -> None:
    if not all(hasattr(ledger, part) for part in ("charge", "neighbours", "dataset")):
        raise InvalidParameter(f"ledger must be a ledger such as MemoryLedger, got ledger={shown(ledger)}")
    if not bits.private:
        raise InvalidParameter("bits must not be seeded when a ledger is kept: such answers are not private")
    for fact, kept, here in (
        ("neighbours", ledger.neighbours, data.neighbours),
        ("dataset", ledger.dataset, data.name),
    ):
        if kept != here:
            raise InvalidParameter(f"{fact} must be that of the ledger, {kept!r}, got {fact}={here!r}")
