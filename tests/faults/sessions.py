"""An analyst with a session on real rows, who is interrupted between the charge and the answer."""

import json
from hashlib import sha256
from typing import Any

import numpy as np
from tests.faults.clients import DATASET, NEIGHBOURS, Journal, Place, die_at

import sfumato.session
from sfumato.data.dataset import Dataset
from sfumato.data.field import Field
from sfumato.ledger import failpoints
from sfumato.privacy import PureDP
from sfumato.session import Session
from sfumato.statistics import Mean

AGES = np.arange(1000) % 60 + 18


def ask(place: Place, path: str, requests: tuple[str, ...], point: str | None = None, visit: int = 1) -> None:
    """Ask for a mean by each request, and write down the bytes of each answer."""
    journal = Journal(path)
    if point is not None:
        die_at(point, visit)
    people = Dataset(
        {"age": AGES},
        unit="row",
        neighbours=NEIGHBOURS,
        schema={"age": Field(bounds=(18, 90), nulls="drop")},
        name=DATASET,
    )
    query, draw = Mean(column="age", budget=PureDP(0.1)), sfumato.session.draw

    def drawn(*arguments: Any) -> Any:
        answers = draw(*arguments)
        journal.say("drew", request, str(answers[0].outcome))
        return answers

    sfumato.session.draw = drawn
    try:
        with place.open() as ledger:
            session = Session(people, budget=PureDP(100), ledger=ledger.account(DATASET))
            journal.say("ready")
            for request in requests:
                release = session.answer(query, request=request)
                content = json.dumps(release.to_dict(), sort_keys=True).encode()
                journal.say("outcome", request, str(release.outcome))
                journal.say("told", request, sha256(content).hexdigest())
    except KeyboardInterrupt:
        journal.say("interrupted")


def interrupt_at(place: Place, path: str, requests: tuple[str, ...], point: str, visit: int) -> None:
    """The same, with Ctrl-C in place of a kill: the interpreter raises KeyboardInterrupt at the point."""
    left = visit

    def reached(name: str) -> None:
        nonlocal left
        left -= name == point
        if name == point and not left:
            raise KeyboardInterrupt

    failpoints.fail_point = reached
    ask(place, path, requests)
