"""The one gate to the data: charge the ledger, then look."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from types import MappingProxyType
from typing import Any, Self, cast
from warnings import warn

from sfumato.accuracy.scenario import Scenario
from sfumato.accuracy.statement import Accuracy
from sfumato.asked import Asked, ask, ask_all, digest_of
from sfumato.batch import Batch
from sfumato.checks import Number, between, shown, whole
from sfumato.data.column import Column
from sfumato.data.counts import MAX_ROWS
from sfumato.data.dataset import Dataset, Where
from sfumato.drawing import draw
from sfumato.errors import InvalidParameter, NotSupported, SfumatoError
from sfumato.grouped import GroupedRelease
from sfumato.groups import Groups
from sfumato.laws import Bits, RequestBits, default_bits
from sfumato.laws.selection import Variant
from sfumato.ledger import Ledger, MemoryLedger, check_budget
from sfumato.one_process import OneProcess
from sfumato.outcome import read_outcome, require_storable, write_outcome
from sfumato.privacy import Amount, ApproxDP, Budget, PureDP
from sfumato.public_data.features import Features
from sfumato.public_data.weighted import Weights
from sfumato.public_data.weighting import Method, weighting
from sfumato.query import Charged, Cost, Label, Query, Released, raw
from sfumato.question import Question
from sfumato.release import Release, printable
from sfumato.result import Answered
from sfumato.statistics.choose import Choose
from sfumato.streams import Stream, StreamTerms

CHANGED = "The data have changed since this request was answered: the stored answer is returned."


@dataclass(frozen=True)
class Preview:
    """What an answer would cost and how accurate it would be; nothing was read or spent."""

    query: Query
    cost: Cost
    error: float | None
    confidence: float
    remaining: Amount
    # Under a scenario, where one was given, and of intervals that are verified.
    accuracy: Accuracy | None = None

    def __str__(self) -> str:
        if self.accuracy is not None:
            accuracy = f"{100 * float(self.confidence):.6g} % {self.accuracy.within}"
        elif self.error is None:
            accuracy = "accuracy depends on the private number of rows"
        else:
            sure = f"{100 * float(self.confidence):.6g} % confidence"
            accuracy = f"{self.query.accuracy_words(self.error)} with {sure}"
        part = "".join(f", {printable(column)}: {printable(words)}" for column, words in _among(self.query))
        about = f"{self.query.name} of {printable(self.query.column)}{part}"
        divided = getattr(self.query, "divided", "")
        return (
            f"{about}: {accuracy}, costs {self.cost!r} of {self.remaining!r}{f'; {divided}' * bool(divided)}"
        )


class Session(OneProcess):
    """Answers queries about one data set under one budget.

    Args:
        data: the data set.
        budget: the cap of this session.
        ledger: where charges on the data set are recorded, with a cap of its own; both caps hold. The address
            of a database, such as "sqlite:///ledger.db", is opened; a data set that is new there gets this
            budget as its cap.
        bits: where randomness comes from; the operating system unless given.

    Guarantee:
        All answers together cost at most `budget`, and at most the ledger's cap together with all else that
        was charged there. A charge is made before the data are read and is never refunded. A forked process
        is refused, since its copy would spend the budget again.
        Proof: docs/proofs/composition.md.

    >>> from sfumato.data.field import Field
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

    noun = "a session"

    def __init__(
        self, data: Dataset, *, budget: Budget, ledger: Ledger | str | None = None, bits: Bits | None = None
    ) -> None:
        if not isinstance(data, Dataset):
            raise InvalidParameter(f"data must be a Dataset, got {type(data).__name__}")
        if bits is not None and not isinstance(bits, Bits):
            raise InvalidParameter(f"bits must be a source of bits, got bits={shown(bits)}")
        self._bits = bits or default_bits()
        cap = check_budget("budget", budget)
        if ledger is not None and not type(self._bits).private:
            raise InvalidParameter(
                "bits must not be seeded when a ledger is kept: such answers are not private"
            )
        self._opened = isinstance(ledger, str)
        self._ledger = open_account(ledger, data, cap) if isinstance(ledger, str) else ledger
        if self._ledger is not None:
            _check_ledger(self._ledger, data)
        self._data = data
        self._own = MemoryLedger(cap, neighbours=data.neighbours, dataset=data.name, unit=data.unit)
        self._open = True
        self._lock = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session; what is left of its budget cannot be spent any more."""
        self._open = False
        if self._opened:
            self._ledger.ledger.close()  # type: ignore[union-attr]

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
        where: Where = None,
        by: Sequence[str] = (),
        groups: Groups | None = None,
        confidence: float = 0.95,
        rows: int | None = None,
        scenario: Scenario | None = None,
    ) -> Preview:
        """Cost and accuracy before paying; nothing is read or spent.

        Args:
            where, by, groups: which rows, and which groups of them, as for `answer` and `answer_by`.
            confidence: of the accuracy that is stated.
            rows: a guess of the number of rows, of each group if there are some, where it is private.
            scenario: what is publicly assumed about the data, for the accuracy on data like that.

        Raises:
            InvalidParameter: a parameter is out of range, or a scenario needs `rows`.
            NotSupported: a scenario with a query whose answer is no number.
        """
        between("confidence", confidence, 0, 1)
        guess = None if rows is None else whole("rows", rows, least=0, most=MAX_ROWS)
        question = Question(query=query, where={} if where is None else where, by=by, groups=groups)
        asked = ask(self._data, question)
        bound = asked.any
        size = bound.rows if bound.rows is not None else guess
        if size is None and not bound.sized:
            size = 0
        error = None if size is None else bound.error(size, confidence)
        accuracy = None
        if scenario is not None and size is None:
            raise InvalidParameter("rows must be given with a scenario: they are private, got rows=None")
        divided: str = getattr(bound, "divided", "")
        if scenario is not None or (divided and size is not None):
            accuracy = bound.accuracy(size or None, confidence=confidence, scenario=scenario)
        return Preview(bound, asked.charged.cost, error, confidence, self.remaining, accuracy)

    def answer(self, query: Query, *, where: Where = None, request: str | None = None) -> Release:
        """Charge for the query, then read the data and draw the answer.

        Args:
            where: public conditions on other columns, for the rows that meet them all: a category, several
                categories, or `Between(low, high)`; or an expression of columns that is true or false.
            request: a name for this request, where a ledger of a database is kept: asking again by the same
                name returns the same answer and charges nothing, whatever the data hold by then.

        Raises:
            BudgetExceeded: the charge does not fit; the data were not read.
            InvalidParameter, SchemaMismatch: a public fact is wrong; nothing was charged.
            RequestConflict: another question was asked by this name.
        """
        (release,) = self.answer_all(
            [Question(query=query, where={} if where is None else where)], request=request
        )
        return release  # type: ignore[return-value]

    def answer_by(
        self,
        query: Query,
        by: Sequence[str],
        *,
        where: Where = None,
        groups: Groups | None = None,
        request: str | None = None,
    ) -> GroupedRelease:
        """Charge once, then answer the query for every group, those without rows included.

        Args:
            by: columns with declared categories; every combination is a group.
            groups: other groups: the keys that the data hold, the largest, all other rows as one more.
            where, request: as for `answer`.

        The errors are those of `answer`.
        """
        question = Question(query=query, where={} if where is None else where, by=by, groups=groups)
        if not question.by:
            raise InvalidParameter("by must name at least one column, got none; answer takes the whole table")
        (release,) = self.answer_all([question], request=request)
        return release  # type: ignore[return-value]

    def answer_all(
        self, questions: Sequence[Question], *, request: str | None = None, within: ApproxDP | None = None
    ) -> tuple[Answered, ...]:
        """Charge for all questions as one batch, then read the data and draw the answers.

        Args:
            questions: all of them are fixed before the first answer, so that the best proof prices them.
            request: as for `answer`.
            within: what the batch may cost, where it may spend a delta to lower its epsilon.

        The errors are those of `answer`.
        """
        if request is None:
            asked = ask_all(self._data, questions)
            self._charge(self._item(asked, within))
            return draw(self._data, asked, self._bits)
        return read_outcome(self.answer_once(questions, request=request, within=within)).answers

    def answer_once(
        self,
        questions: Sequence[Question],
        *,
        request: str,
        digest: str | None = None,
        facts: Mapping[str, Any] = MappingProxyType({}),
        within: ApproxDP | None = None,
        fingerprint: str | None = None,
    ) -> bytes:
        """The outcome of a request: stored when it is first drawn, the same bytes ever after.

        The data that the session has now play no part once there is an outcome; a warning tells the curator
        if they are others.

        Args:
            digest: what the request asks for, in short; a digest of the questions unless given.
            facts: public facts in JSON's types, which are stored with the outcome.
            fingerprint: a keyed fingerprint of the data, which the ledger compares with those of other names;
                that of the data set unless given.
            questions, request, within: as for `answer_all`.
        """
        ledger: Any = self._ledger
        if not hasattr(ledger, "answered"):
            raise InvalidParameter(
                "request needs a ledger in a database, such as ledger='sqlite:///ledger.db', "
                f"got request={shown(request)}"
            )
        self._require_open()
        digest = digest_of(self._data, questions) if digest is None else digest
        content = self._data.fingerprint(ledger.ledger.key) if fingerprint is None else fingerprint
        stored: bytes | None = ledger.answered(request, digest)
        if stored is not None:
            if ledger.content(request) not in (None, content):
                warn(
                    f"{CHANGED} Ask by another name to pay for an answer about the data of now.", stacklevel=3
                )
            return stored
        asked = ask_all(self._data, questions)
        require_storable(facts, asked)
        item = self._item(asked, within)
        if fingerprint is None:
            self._warn_of_other_names(content)
        self._charge(item, request=request, digest=digest, fingerprint=content)
        try:
            secret = ledger.secret(request)
            if secret is None:  # another process was quicker
                return cast(bytes, ledger.answered(request, digest))
            # The outcome is stored before anything is made of it. A process that dies in between leaves the
            # secret, from which the next one draws the same; if two draw, both return what was stored first.
            answers = draw(self._data, asked, RequestBits(secret, (digest + content).encode()))
            return cast(bytes, ledger.keep(request, write_outcome(facts, asked, answers)))
        except BaseException as fault:
            fault.add_note(
                f"request {request!r} was charged {item.cost!r}: asking again by this name costs nothing more"
            )
            raise

    def price(self, questions: Sequence[Question], *, within: ApproxDP | None = None) -> Batch:
        """What the questions would cost as one batch; nothing is read or spent."""
        return self._batch(ask_all(self._data, questions), within)

    def _batch(self, asked: Sequence[Asked], within: ApproxDP | None) -> Batch:
        if not isinstance(within, ApproxDP | None):
            raise InvalidParameter(f"within must be ApproxDP, got within={shown(within)}")
        return Batch(tuple(one.charged for one in asked), self._data.neighbours, within)

    def _item(self, asked: Sequence[Asked], within: ApproxDP | None) -> Charged:
        # One question is charged by its own name and at its own cost.
        return asked[0].charged if len(asked) == 1 and within is None else self._batch(asked, within)

    def _release(self, item: Released, law: Any) -> Release:
        # The type says whether bits are private; an attribute of one object could be set.
        return Release(item, raw(law.sample(self._bits)), type(self._bits).private)

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
        self._require_rows("choose")
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
        columns = self._data.columns  # refused before the charge where an engine holds them
        self._charge(item)
        return self._release(item, item.law(scores(columns)))

    def weights(
        self, public: Any, *, features: Features | Sequence[str], budget: Budget, method: Method = "tilting"
    ) -> Weights:
        """Charge for weights on a public table, then read the data and draw what they follow from.

        The arguments and the errors are those of `sfumato.public_data.weights`. BudgetExceeded comes before
        the data are read; a refusal by what was released stays charged.
        """
        self._require_rows("weights")
        item = weighting(self._data, public, features=features, budget=budget, method=method)
        self._charge(item)
        return item.drawn(self._data, self._bits)

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
        self._require_rows("a stream")
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
        self.require_process()
        if not self._open:
            raise SfumatoError("the session is closed: open another one to ask for more")

    def _require_rows(self, what: str) -> None:
        if self._data.unit != "row":
            raise NotSupported(
                f"{what} needs unit='row', got unit={self._data.unit!r}: its rows are not bounded"
            )

    def _charge(self, item: Charged, **about: Any) -> None:
        # Before the lock, which a thread of the parent may have held when the process was forked.
        self.require_process()
        with self._lock:
            self._require_open()
            if self._ledger is not None:
                # The session's own cap is tested first, so that a refusal by either leaves both unchanged.
                self._own.require(item)
                books = getattr(self._ledger, "ledger", None)
                if books is not None and "fingerprint" not in about:
                    about["fingerprint"] = self._data.fingerprint(books.key)
                    self._warn_of_other_names(about["fingerprint"])
                self._ledger.charge(item, **about)
            self._own.charge(item)

    def _warn_of_other_names(self, content: str) -> None:
        books: Any = self._ledger.ledger  # type: ignore[union-attr]
        for name in books.names_like(content, besides=self._data.name):
            words = f"these data were charged before under the name {name!r}: budgets of both add up"
            warn(words, stacklevel=5)

    def _bind(self, query: Query) -> tuple[Query, Column]:
        """The query about the whole table, and its column, for a count of a stream."""
        asked = ask(self._data, Question(query=query))
        return asked.any, asked.column


def open_account(url: str, data: Dataset, cap: Budget) -> Ledger:
    """The account of a data set in the ledger of a database; opened there with this cap if it is new."""
    from sfumato.ledger.sql import SqlLedger
    from sfumato.ledger.terms import opening

    opening(data.name, cap=cap, neighbours=data.neighbours, unit=data.unit)  # what is refused makes no ledger
    ledger = SqlLedger(url)
    if data.name not in ledger.datasets():
        ledger.open(data.name, cap=cap, neighbours=data.neighbours, unit=data.unit)
    return ledger.account(data.name)


def _among(query: Query) -> tuple[tuple[str, str], ...]:
    return getattr(query, "among", ())


def _check_ledger(ledger: Ledger, data: Dataset) -> None:
    if not all(hasattr(ledger, part) for part in ("charge", "neighbours", "dataset", "unit")):
        raise InvalidParameter(f"ledger must be a ledger such as MemoryLedger, got ledger={shown(ledger)}")
    for fact, kept, here in (
        ("neighbours", ledger.neighbours, data.neighbours),
        ("dataset", ledger.dataset, data.name),
        ("unit", ledger.unit, data.unit),
    ):
        if kept != here:
            raise InvalidParameter(f"{fact} must be that of the ledger, {kept!r}, got {fact}={here!r}")
