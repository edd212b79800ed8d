"""The one gate to the data: charge the ledger, then look."""

from dataclasses import dataclass
from threading import Lock
from typing import Self

from sfumato.checks import between, shown, whole
from sfumato.data.column import Column
from sfumato.data.counts import MAX_ROWS
from sfumato.data.dataset import Dataset
from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.laws import Bits, default_bits
from sfumato.ledger import Ledger, MemoryLedger, check_budget
from sfumato.privacy import Amount, Budget
from sfumato.query import Charged, Cost, Query, raw
from sfumato.release import Release, printable


@dataclass(frozen=True)
class Preview:
    """What an answer would cost and how accurate it would be; nothing was read or spent."""

    query: Query
    cost: Cost
    error: float | None
    confidence: float
    remaining: Amount

    def __str__(self) -> str:
        if self.error is None:
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
        was charged there. A charge is made before the data are read and is never refunded.
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
        self._lock = Lock()

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

    def preview(self, query: Query, *, confidence: float = 0.95, rows: int | None = None) -> Preview:
        """Cost and accuracy before paying; `rows` is a guess of the number of rows where it is private."""
        between("confidence", confidence, 0, 1)
        guess = None if rows is None else whole("rows", rows, least=0, most=MAX_ROWS)
        bound, _ = self._bind(query)
        size = bound.rows if bound.rows is not None else guess
        if size is None and not bound.sized:
            size = 0
        error = None if size is None else bound.error(size, confidence)
        return Preview(bound, bound.cost, error, confidence, self.remaining)

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

    def _charge(self, item: Charged) -> None:
        with self._lock:
            if not self._open:
                raise SfumatoError("the session is closed: open another one to ask for more")
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
