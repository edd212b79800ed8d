"""The ledger beside a model of thirty lines, step by step: sums, caps, request ids, replies, copies."""

import os
import shutil
from fractions import Fraction
from pathlib import Path
from tempfile import mkdtemp

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.ledger.items import NEIGHBOURS, Crumb

import sfumato as sf

NAMES, ANALYSTS, REQUESTS = ("people", "firms"), ("ada", "bob"), ("r1", "r2", "r3")
names, analysts = st.sampled_from(NAMES), st.sampled_from(ANALYSTS)
requests, digests = st.sampled_from(REQUESTS), st.sampled_from(("d1", "d2"))
prices = st.sampled_from([Fraction(1, 10), Fraction(1, 7), Fraction(1, 3), Fraction(1, 10**30)])


class Model:
    """What a ledger should know, in dictionaries."""

    def __init__(self):
        self.caps, self.spent, self.allowed, self.by = {}, {}, {}, {}
        self.retired, self.requests, self.replies = set(), {}, {}

    def fits(self, name, analyst, price):
        alone = self.by.get((name, analyst), 0) + price
        return (
            name not in self.retired
            and self.spent[name] + price <= self.caps[name]
            and alone <= self.allowed.get((name, analyst), alone)
        )

    def charge(self, name, analyst, price, request, digest):
        """The name of the error, or None."""
        if request in self.requests:
            return None if self.requests[request] == (name, analyst, digest) else "RequestConflict"
        if not self.fits(name, analyst, price):
            return "BudgetExceeded"
        self.spent[name] += price
        self.by[name, analyst] = self.by.get((name, analyst), 0) + price
        if request is not None:
            self.requests[request] = (name, analyst, digest)
        return None


def outcome(act):
    try:
        return None, act()
    except sf.SfumatoError as error:
        return type(error).__name__, None


class Ledgers(RuleBasedStateMachine):
    """Whatever is asked of it, the ledger does what the model does."""

    def __init__(self):
        super().__init__()
        self.folder = Path(mkdtemp())
        self.model = Model()
        self.copies = 0
        self.place = self.folder / "ledger.db"

    @initialize(caps=st.tuples(prices, prices))
    def start(self, caps):
        self.ledger = sf.SqlLedger(self.place, anchor=self.folder / "anchor")
        for name, cap in zip(NAMES, caps, strict=True):
            self.ledger.open(name, cap=sf.PureDP(3 * cap), neighbours=NEIGHBOURS)
            self.model.caps[name], self.model.spent[name] = 3 * cap, Fraction(0)

    @rule(name=names, analyst=analysts, price=prices, request=st.none() | requests, digest=digests)
    def charge(self, name, analyst, price, request, digest):
        asked = {} if request is None else {"request": request, "digest": digest}
        account = self.ledger.account(name, analyst=analyst)
        error, _ = outcome(lambda: account.charge(Crumb(price), **asked))
        assert error == self.model.charge(name, analyst, price, request, digest)

    @rule(name=names, analyst=analysts, request=requests, reply=st.binary(max_size=3))
    def keep(self, name, analyst, request, reply):
        error, kept = outcome(lambda: self.ledger.account(name, analyst=analyst).keep(request, reply))
        asked = self.model.requests.get(request)
        if asked is None:
            assert error == "InvalidParameter"
        elif asked[:2] != (name, analyst):
            assert error == "RequestConflict"
        else:
            assert kept == self.model.replies.setdefault(request, reply)

    @rule(name=names, analyst=analysts, request=requests, digest=digests)
    def answered(self, name, analyst, request, digest):
        error, reply = outcome(lambda: self.ledger.account(name, analyst=analyst).answered(request, digest))
        if self.model.requests.get(request, (name, analyst, digest)) != (name, analyst, digest):
            assert error == "RequestConflict"
        else:
            assert (error, reply) == (None, self.model.replies.get(request))

    @rule(name=names, analyst=analysts, cap=prices)
    def allow(self, name, analyst, cap):
        error, _ = outcome(lambda: self.ledger.allow(name, analyst, sf.PureDP(cap)))
        if name in self.model.retired:
            assert error == "BudgetExceeded"
        elif self.model.by.get((name, analyst), 0) > cap:
            assert error == "InvalidParameter"
        else:
            assert error is None
            self.model.allowed[name, analyst] = cap

    @rule(name=names, more=prices)
    def renew(self, name, more):
        error, _ = outcome(lambda: self.ledger.renew(name, sf.PureDP(more), reason="more"))
        assert (error == "BudgetExceeded") == (name in self.model.retired)
        if error is None:
            self.model.caps[name] += more

    @rule(name=names, sure=st.integers(0, 5))
    def retire(self, name, sure):
        if sure == 0:
            outcome(lambda: self.ledger.retire(name, reason="done"))
            self.model.retired.add(name)

    @rule()
    def reopen(self):
        self.ledger.close()
        self.ledger = sf.SqlLedger(self.place, anchor=self.folder / "anchor")

    @rule()
    def move_to_a_copy(self):
        self.copies += 1
        backup = self.folder / f"backup-{self.copies}"
        self.ledger.backup(backup)
        self.place = self.folder / f"restored-{self.copies}.db"
        self.ledger.close()
        self.ledger = sf.SqlLedger.restore(backup, self.place, anchor=self.folder / "anchor")

    @invariant()
    def sums_and_caps_are_those_of_the_model(self):
        for name in self.model.caps:
            account = self.ledger.account(name)
            assert account.spent.epsilon == self.model.spent[name]
            assert account.cap.epsilon == self.model.caps[name]
            for analyst in ANALYSTS:
                one = self.ledger.account(name, analyst=analyst)
                assert one.analyst_spent.epsilon == self.model.by.get((name, analyst), 0)

    def teardown(self):
        report = self.ledger.verify()
        assert report.sound, report
        assert {each.name: each.spent.epsilon for each in report.datasets} == self.model.spent
        self.ledger.close()
        shutil.rmtree(self.folder)


TestLedgers = Ledgers.TestCase
SEARCH = os.environ.get("HYPOTHESIS_PROFILE") == "search"
TestLedgers.settings = settings(
    max_examples=500 if SEARCH else 8, stateful_step_count=50 if SEARCH else 25, deadline=None
)
