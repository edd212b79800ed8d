r"""A run of many rounds under one budget: charged before the updates are read, stopped before it is passed.

What a round costs is the same for every round, so the number of rounds that a budget pays for is a public
number, known before the first. A run counts rounds, and refuses the one that would be too many.
"""

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

from sfumato.checks import Number, between, float_up, one_of, shown, whole
from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.federated.aggregate import Aggregator, Round
from sfumato.federated.calibrating import MAX_ROUNDS, checked_budget, most_rounds
from sfumato.federated.clipping import Clipped, Update
from sfumato.laws import Bits
from sfumato.ledger import Ledger
from sfumato.one_process import OneProcess
from sfumato.privacy import ZCDP, Amount, ApproxDP, Event, Neighbours, PureDP, budget_from_dict, compose
from sfumato.privacy.records import read_fraction
from sfumato.whole_files import write_file

FORMAT, KIND = 1, "federated run"
UNIT = "client"
# How the two accountants are named, here and in a composition.
ACCOUNTANTS = {"gaussian": "Gaussian", "zcdp": "zCDP"}


@dataclass(frozen=True, kw_only=True)
class Paid:
    """What a ledger records of a run: one round, or all of them."""

    name: ClassVar[str] = "federated"
    neighbours: Neighbours
    event: Event
    cost: ApproxDP | ZCDP
    column: str = "updates"


class Run(OneProcess):
    r"""Rounds of federated learning under one budget.

    Guarantee:
        All rounds together satisfy `budget`, for the whole data of one client, by the better of the Gaussian
        composition and zCDP on the discrete law. A round is charged before its updates are read; one that
        does not fit raises BudgetExceeded and nothing is read. With `file` or a durable `ledger` the charge
        is on disk before anything is drawn. No amplification by sampling of clients is claimed. Proof:
        docs/proofs/federated.md. Without `file` a forked process is refused, since its copy would spend the
        budget again.

    Args:
        aggregator: the settings of the first round; later rounds differ in the bound only.
        budget: ApproxDP or ZCDP, for all rounds together.
        rounds: stop after this many; as many as the budget pays for if not given.
        ledger: a ledger whose unit is "client". One with a ZCDP cap is charged round by round, one with an
            ApproxDP cap for the whole run before its first round.
        file: where the run keeps how many rounds were charged. If it exists, the run goes on from there. One
            run uses it at a time: another that charges meanwhile is refused.

    Raises:
        InvalidParameter: the budget does not pay for `rounds`, or `file` or `ledger` is of other settings.
        OSError: the file cannot be written; the round is not read.

    References:
        [MRTZ18]; [BW18] and [CKS20] for the costs.

    >>> import numpy as np, sfumato as sf
    >>> plan = Aggregator(
    ...     bound=1, noise_multiplier=1, expected_clients=2, neighbours="add-remove", shapes=((2,),)
    ... )
    >>> run = Run(plan, sf.ApproxDP(12, 1e-5))
    >>> run.rounds_left
    5
    >>> answer = run.round([[np.array([0.3, 0.4])], [np.array([0.1, 0.0])]])
    >>> run
    Run(ApproxDP(epsilon=12.0, delta=1e-05), rounds=5, charged=1)
    >>> run.rounds_left, run.epsilon(1e-5) < run.epsilon(1e-5, accountant="zcdp") < 12
    (4, True)
    """

    noun = "a run"

    def __init__(
        self,
        aggregator: Aggregator,
        budget: ApproxDP | ZCDP,
        rounds: int | None = None,
        *,
        ledger: Ledger | None = None,
        file: str | Path | None = None,
    ) -> None:
        if not isinstance(aggregator, Aggregator):
            raise InvalidParameter(f"aggregator must be an Aggregator, got aggregator={shown(aggregator)}")
        self.start = self.aggregator = aggregator
        self.budget = checked_budget(budget)
        self.charged = 0
        self.file = None if file is None else Path(file)
        self._ledger = ledger
        self._lock = Lock()
        most = most_rounds(aggregator, self.budget)
        self.rounds = most if rounds is None else whole("rounds", rounds, least=1, most=MAX_ROUNDS)
        if self.rounds > most:
            raise InvalidParameter(
                f"rounds must be at most {most}, which is what the budget pays for at this noise, "
                f"got rounds={rounds}"
            )
        self._check_ledger()
        if self.file is not None and self.file.exists():
            self._go_on(read_state(self.file))

    def __repr__(self) -> str:
        return f"Run({self.budget!r}, rounds={self.rounds}, charged={self.charged})"

    @property
    def rounds_left(self) -> int:
        """How many more rounds there are."""
        return self.rounds - self.charged

    @property
    def spent(self) -> Amount:
        """The zCDP cost of the rounds that were charged, exactly."""
        return Amount(rho=self.charged * self.aggregator.event.rho)

    def require(self) -> None:
        """BudgetExceeded if no round is left; nothing is charged."""
        if self.rounds_left <= 0:
            raise BudgetExceeded(
                f"round {self.charged + 1} does not fit: the run has {self.rounds} rounds within "
                f"{self.budget!r}"
            )

    def charge(self) -> None:
        """Charge one round durably, or raise BudgetExceeded and change nothing."""
        with self._alone():
            self.require()
            self._check_file()
            self._pay()
            self._save(self.charged + 1, self.aggregator.bound)
            self.charged += 1

    def round(self, updates: Iterable[Update | Clipped | None], bits: Bits | None = None) -> Round:
        """Charge one round, then read the updates, and move on to the released bound.

        An update is a list of NumPy arrays; a list of plain numbers, a bare array or a tensor counts as no
        update, and no error says so. `clip(update, bound, shapes=...).usable` tells, of an invented one.
        """
        if not isinstance(bits, Bits | None):
            raise InvalidParameter(f"bits must be a source of bits, got bits={shown(bits)}")
        if bits is not None and not bits.private and self._ledger is not None:
            raise InvalidParameter("bits must be private when a ledger pays, got seeded bits")
        if not isinstance(updates, Iterable):
            raise InvalidParameter(f"updates must be a list of updates, got {type(updates).__name__}")
        self.charge()
        answer = self.aggregator.release(updates, bits)
        self.follow(answer)
        return answer

    def follow(self, answer: Round) -> None:
        """Take the released bound for the next round; `round` does so itself."""
        with self._alone():
            if answer.bound != self.aggregator.bound:
                raise InvalidParameter("answer must be the Round of the settings of this round, got another")
            following = self.aggregator.after(answer)
            self._check_file()
            self._save(self.charged, following.bound)
            self.aggregator = following

    def epsilon(self, delta: Number, *, accountant: str = "gaussian") -> float:
        """The epsilon of the rounds charged so far, at a delta, by one of two accountants.

        "gaussian" is the exact curve of Gaussian noise with the effect of the lattice added, "zcdp" the
        conversion of the sum of rhos. Both are upper bounds for a number of rounds that was fixed in advance;
        if the run stops because of what it released, the promise is that of its budget.
        """
        name = ACCOUNTANTS[one_of("accountant", accountant, list(ACCOUNTANTS))]
        failure = between("delta", delta, 0, 1)
        if self.charged == 0:
            return 0.0
        return float_up(compose([self.start.event_of(self.charged)], delta=failure).considered[name])

    def to_dict(self) -> dict[str, object]:
        """A JSON-safe exact record of settings and spending; `from_dict` reads it back."""
        return self._state(self.charged, self.aggregator.bound)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], *, ledger: Ledger | None = None) -> "Run":
        """The run that `to_dict` recorded, with what it had spent; an old record forgets what came later."""
        state = _read(record)
        run = cls(state.start, state.budget, state.rounds or None, ledger=ledger)
        run._go_on(state)
        return run

    def _state(self, charged: int, bound: Fraction) -> dict[str, object]:
        return {
            "format": FORMAT,
            "type": KIND,
            "aggregator": self.start.to_dict(),
            "budget": self.budget.to_dict(),
            "rounds": self.rounds,
            "charged": charged,
            "bound": str(bound),
            "ledger": self._payer,
        }

    @property
    def _payer(self) -> str | None:
        return None if self._ledger is None else self._ledger.dataset

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Between a look at what was charged and the next charge, no other thread or process of this file."""
        if self.file is None:
            # Nothing but this memory knows what was charged; a file knows it for a forked process too.
            self.require_process()
        with self._lock, contextlib.nullcontext() if self.file is None else locked(self.file):
            yield

    def _save(self, charged: int, bound: Fraction) -> None:
        if self.file is not None:
            text = json.dumps(self._state(charged, bound), indent=1)
            write_file(self.file, text.encode("utf-8"))

    def _check_file(self) -> None:
        """Refuse to overwrite what another run charged."""
        if self.file is None or (self.charged == 0 and not self.file.exists()):
            return
        if read_state(self.file).charged != self.charged:
            raise InvalidParameter("file must belong to one run at a time, got one that another has charged")

    def _go_on(self, state: "State") -> None:
        if (state.start, state.budget, state.rounds) != (self.start, self.budget, self.rounds):
            raise InvalidParameter("file must hold a run with the same settings, got one with others")
        # A ledger that did not pay for the first rounds would never hear of them.
        if state.charged and state.ledger != self._payer:
            raise InvalidParameter(
                f"ledger must be the one that the run was charged to, that of {shown(state.ledger)}, "
                f"got that of {shown(self._payer)}"
            )
        self.charged = state.charged
        self.aggregator = replace(self.start, bound=state.bound)

    def _check_ledger(self) -> None:
        if self._ledger is None:
            return
        if self._ledger.unit != UNIT or self._ledger.neighbours != self.start.neighbours:
            raise InvalidParameter(
                f"ledger must have unit={UNIT!r} and neighbours={self.start.neighbours!r}, got "
                f"unit={self._ledger.unit!r}, neighbours={self._ledger.neighbours!r}"
            )
        cap = self._ledger.cap
        if isinstance(cap, PureDP) or (isinstance(cap, ApproxDP) and not isinstance(self.budget, ApproxDP)):
            raise InvalidParameter(
                f"ledger must have a ZCDP cap, or an ApproxDP one for an ApproxDP budget, got cap={cap!r}"
            )

    def _pay(self) -> None:
        if self._ledger is None:
            return
        if isinstance(self._ledger.cap, ZCDP):
            event = self.start.event
            self._ledger.charge(Paid(neighbours=self.start.neighbours, event=event, cost=ZCDP(event.rho)))
        elif self.charged == 0:
            event = self.start.event_of(self.rounds)
            self._ledger.charge(Paid(neighbours=self.start.neighbours, event=event, cost=self.budget))


@dataclass(frozen=True)
class State:
    """What the record of a run says."""

    start: Aggregator
    budget: ApproxDP | ZCDP
    rounds: int
    charged: int
    bound: Fraction
    ledger: str | None


def read_state(file: Path) -> State:
    """What a run wrote to a file."""
    try:
        record = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as fault:
        raise InvalidParameter(f"file must be the record of a run, got {type(fault).__name__}") from None
    return _read(record)


def _read(record: object) -> State:
    names = {"format", "type", "aggregator", "budget", "rounds", "charged", "bound", "ledger"}
    if not isinstance(record, Mapping) or set(record) != names:
        raise InvalidParameter(f"record must have exactly the fields {', '.join(sorted(names))}")
    if (record["format"], record["type"]) != (FORMAT, KIND):
        raise InvalidParameter("record must be that of a run, got another type or another format")
    parts = {name: record[name] for name in ("aggregator", "budget")}
    if not all(isinstance(part, Mapping) for part in parts.values()):
        raise InvalidParameter("record must have an aggregator and a budget, got something else")
    rounds = whole("rounds", record["rounds"], least=0, most=MAX_ROUNDS)
    payer = record["ledger"]
    return State(
        start=Aggregator.from_dict(parts["aggregator"]),
        budget=checked_budget(budget_from_dict(parts["budget"])),
        rounds=rounds,
        charged=whole("charged", record["charged"], least=0, most=rounds),
        bound=read_fraction(record, "bound"),
        ledger=None if payer is None else str(payer),
    )


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Keeps other processes out; the lock is a file beside it, because the file itself is replaced whole."""
    import fcntl  # only systems that have it can share a file between processes

    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    opened = os.open(file.with_name(f".{file.name}.lock"), flags, 0o600)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)
