"""Checking a ledger: each entry is worked out again from those before it and compared with what is stored."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from operator import lt

from sfumato.errors import SfumatoError
from sfumato.ledger.chain import (
    FIELDS,
    KINDS,
    Act,
    Head,
    Numbers,
    Record,
    Standing,
    Total,
    amount_of,
    budget_of,
    check_types,
    enter,
    hash_of,
    numbers_of,
    read_numbers,
)
from sfumato.privacy import ZCDP, Amount, ApproxDP, Budget, PureDP, accountant_for, event_from_dict

# A ledger that was overwritten has as many problems as entries; the first ones tell.
MOST_PROBLEMS = 100


@dataclass(frozen=True)
class Balance:
    """What was spent on a data set, and of which cap."""

    name: str
    spent: Amount
    cap: Budget
    retired: bool

    @property
    def remaining(self) -> Amount:
        """What is left."""
        return Amount.of(self.cap) - self.spent


@dataclass(frozen=True)
class Report:
    """What a check of a ledger found: how many entries, the head, what was spent, and what is wrong.

    Guarantee:
        Without problems, every entry follows from those before it: numbers, hashes, prices, totals and caps.
        The head commits to all of them.

    >>> str(Report(entries=0, head=Head(0, "c0ffee"), datasets=(), problems=()))
    'sound: 0 entries, head 0 c0ffee'
    """

    entries: int
    head: Head
    datasets: tuple[Balance, ...]
    problems: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __str__(self) -> str:
        words = "sound" if self.sound else f"damaged ({self.problems[0]})"
        return f"{words}: {self.entries} entries, head {self.head.sequence} {self.head.hash}"


class Replay:
    """A check under way; entries are handed over in order."""

    def __init__(self, start: str, *, prices: bool = False) -> None:
        self.head = Head(0, start)
        self.problems: list[str] = []
        self.replies: dict[str, str] = {}
        self._prices = prices
        self._requests: dict[str, tuple[str, str | None]] = {}
        self.standings: dict[str, Standing] = {}
        self.analysts: dict[tuple[str, str], Total] = {}

    def read(self, records: Iterable[Record]) -> None:
        """Check more entries."""
        for record in records:
            try:
                check_types(record)
            except SfumatoError as fault:
                self.problem(f"what follows entry {self.head.sequence} is not an entry: {fault}")
                continue
            self._check(record)
            self.head = Head(record.sequence, record.hash)

    def problem(self, words: str) -> None:
        """Note what is wrong."""
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(words)

    @property
    def balances(self) -> tuple[Balance, ...]:
        """Every data set as the entries leave it."""
        return tuple(
            Balance(name, amount_of(fields, spent), budget_of(fields, cap), standing.retired)
            for name, standing in self.standings.items()
            for fields, spent, cap in [standing.total]
            if cap is not None
        )

    def report(self) -> Report:
        """What was found."""
        return Report(self.head.sequence, self.head, self.balances, tuple(self.problems))

    def _check(self, record: Record) -> None:
        place = f"entry {record.sequence}"
        if record.sequence != self.head.sequence + 1:
            self.problem(f"entry {self.head.sequence + 1} is missing: {place} follows {self.head.sequence}")
        try:
            expected = self._expected(record)
        except (
            SfumatoError,
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            ArithmeticError,
            RecursionError,
        ) as fault:
            # What cannot be worked out is still hashed, so that a link of the chain is judged by itself.
            if hash_of(record._asdict()) != record.hash:
                self.problem(f"{place} was changed: its hash does not fit")
            self.problem(f"{place} breaks a rule: {_words(fault)}")
            return
        if expected != record:
            unlike = [name for name in Record._fields if getattr(expected, name) != getattr(record, name)]
            if hash_of(record._asdict()) != record.hash:
                self.problem(f"{place} was changed: its hash does not fit")
            unlike = [name for name in unlike if name != "hash"]
            if unlike:
                self.problem(f"{place} does not follow from the entries before it: {', '.join(unlike)}")

    def _expected(self, record: Record) -> Record:
        if record.kind not in KINDS:
            raise ValueError("it is of no known kind")
        person = None if record.analyst is None else (record.dataset, record.analyst)
        price = None if record.price is None else read_numbers(record.price)
        act = Act(
            record.kind,
            record.dataset,
            record.payload,
            record.analyst,
            record.request,
            record.digest,
            None if price is None else price[1],
        )
        standing = self.standings.get(record.dataset)
        if price is not None and (standing is None or price[0] != standing.total.fields):
            raise ValueError("its price is of another kind than the cap")
        self._check_request(act)
        if act.kind == "spend" and price is not None:
            needed = _price(record.payload, price[0], price[1] if self._prices else None)
            if any(map(lt, price[1], needed)):
                raise ValueError("its price is below that of its event")
        analyst = None if person is None else self.analysts.get(person)
        expected, after, total = enter(act, standing, analyst, before=self.head, time=record.time)
        self.standings[record.dataset] = after
        if person is not None and total is not None:
            self.analysts[person] = total
        if act.kind == "reply":
            self.replies[str(act.request)] = record.facts["sha256"]
        return expected

    def _check_request(self, act: Act) -> None:
        if act.kind == "spend" and act.request is not None:
            if act.request in self._requests:
                raise ValueError("its request was charged before")
            self._requests[act.request] = (act.dataset, act.analyst)
        if act.kind == "reply" and (
            act.request in self.replies or self._requests.get(str(act.request)) != (act.dataset, act.analyst)
        ):
            raise ValueError("it is no first reply to a charged request")


@lru_cache(maxsize=2**16)
def _price(payload: str, fields: tuple[str, ...], stated: Numbers | None) -> Numbers:
    """What an event costs at least; for (epsilon, delta), only if a proof of the stated price is wanted."""
    event = event_from_dict(json.loads(payload)["event"])
    if fields == FIELDS[PureDP]:
        if event.pure_epsilon is None:
            raise ValueError("its event has no pure price")
        return (event.pure_epsilon,)
    if fields == FIELDS[ZCDP]:
        return (event.rho,)
    if stated is not None:
        cost = ApproxDP(*stated) if all(stated) else None
        return numbers_of(accountant_for(ApproxDP(1, 1e-9)).price(event, cost), fields)
    return ()


def _words(fault: Exception) -> str:
    return str(fault) if isinstance(fault, SfumatoError) or type(fault) is ValueError else "it cannot be read"
