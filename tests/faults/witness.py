"""Holds a ledger to everything that was ever seen of it and of its clients."""

import json
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

from tests.faults.clients import DATASET, PRICE, Place, Step, digest

from sfumato.errors import SfumatoError
from sfumato.ledger.chain import Record
from sfumato.ledger.sql import SqlLedger
from sfumato.privacy import Amount, Budget


class Seen(Protocol):
    """A client as the witness sees it."""

    def steps(self) -> list[Step]:
        """All that it wrote down."""


class Witness:
    """Remembers entries and answers; AssertionError when a later look contradicts them."""

    def __init__(self, place: Place, clients: Sequence[Seen]) -> None:
        self.place = place
        self.clients = clients
        self.looks = 0
        self.told: dict[str, str] = {}
        self.spent = Fraction(0)
        self.cap = Fraction(0)
        self.spent_by: Counter[str] = Counter()
        self._before: tuple[Record, ...] = ()

    @property
    def charges(self) -> int:
        return sum(entry.kind == "spend" for entry in self._before)

    def look(self) -> None:
        """Compare the ledger with what was seen of it before and with all journals."""
        # The journals first: clients may go on meanwhile, and what they add after this look is no matter.
        steps = [step for client in self.clients for step in client.steps()]
        self.looks += 1
        try:
            with self.place.open() as ledger:
                report = ledger.verify()
                assert report.sound, str(report)
                self._read(ledger)
                self._hold_to(ledger, steps)
        except SfumatoError as error:
            raise AssertionError(f"the ledger cannot be used any more: {error}") from error

    def _read(self, ledger: SqlLedger) -> None:
        entries = ledger.entries()
        assert entries[: len(self._before)] == self._before, "an entry was changed, lost or refunded"
        assert [entry.sequence for entry in entries] == list(range(1, len(entries) + 1)), (
            "a number is missing"
        )
        self._before = entries
        kinds = {entry.kind for entry in entries}
        assert kinds <= {"open", "allow", "spend", "reply"}, "a client did what only the curator does"
        spends = [entry for entry in entries if entry.kind == "spend"]
        self.spent_by = Counter(str(entry.analyst) for entry in spends)
        # Added up here from the prices alone; the total that the ledger keeps is compared with it.
        self.spent = sum((text_number(str(entry.price)) for entry in spends), Fraction(0))
        assert self.spent == len(spends) * PRICE, "a charge has another price"
        assert not entries or text_number(entries[-1].dataset_spent) == self.spent, "the total is no sum"
        self.cap = number(ledger.account(DATASET).cap)
        assert self.spent <= self.cap, f"{self.spent} was spent of a cap of {self.cap}"

    def _hold_to(self, ledger: SqlLedger, steps: list[Step]) -> None:
        paid = Counter(entry.request for entry in self._before if entry.kind == "spend")
        assert not [request for request, times in paid.items() if times > 1], "a request was charged twice"
        for word, request, text in steps:
            if word in ("charged", "drawn", "told"):
                assert request in paid, f"{request} was {word} and is not in the ledger"
            if word == "told":
                assert self.told.setdefault(request, text) == text, f"{request} has two answers"
            assert word != "broken", f"a client met {text}"
        for analyst in {text for word, _, text in steps if word == "refused"}:
            left = number(ledger.account(DATASET, analyst=analyst).remaining)
            assert left < PRICE, f"{analyst} was refused though {left} is left"

    def ask_all_again(self) -> None:
        """Every answer that a client was ever told is the one that the ledger keeps."""
        with self.place.open() as ledger:
            account = ledger.account(DATASET)
            for request, text in self.told.items():
                assert account.answered(request, digest(request)) == text.encode(), (
                    f"{request} has two answers"
                )


def number(amount: Amount | Budget) -> Fraction:
    """The one number of a pure or zCDP amount."""
    return getattr(amount, "epsilon", Fraction(0)) or getattr(amount, "rho", Fraction(0))


def text_number(text: str) -> Fraction:
    """The one number of an amount as it is stored."""
    (found,) = json.loads(text).values()
    return Fraction(found)
