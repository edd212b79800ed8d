"""Ledgers whose makers are killed while they make them; the next one who comes finishes them."""

import random
import time
from pathlib import Path

from tests.faults.clients import DATASET, NEIGHBOURS, PATIENCE, PROCESSES, Journal, Place, budget, die_at
from tests.faults.kills import Tally


def create(place: Place, journal: str, point: str | None = None, visit: int = 1) -> None:
    """Make a ledger and open a data set in it."""
    if point is not None:
        die_at(point, visit)
    with place.open() as ledger:
        Journal(journal).say("made", text=ledger.identity)
        ledger.open(DATASET, cap=budget("pure", 1), neighbours=NEIGHBOURS)
    Journal(journal).say("opened")


def kill_at_birth(
    place: Place, folder: Path, *, seed: int, within: float = 0.2, point: str | None = None
) -> Tally:
    """Kill the maker of a ledger at a random instant, or at a point, and make it again."""
    luck = random.Random(seed)
    journal = str(folder / "birth.journal")
    maker = PROCESSES.Process(target=create, args=(place, journal, point, luck.randint(1, 3)), daemon=True)
    maker.start()
    if point is None:
        time.sleep(luck.uniform(0, within))
        maker.kill()
    maker.join(PATIENCE)
    seen = {step.word: step.text for step in Journal.read(journal)}
    with place.open() as ledger:
        ledger.verify()
        assert seen.get("made", ledger.identity) == ledger.identity, "the ledger was made twice"
        assert "opened" not in seen or DATASET in ledger.datasets(), "a data set was lost"
        if DATASET not in ledger.datasets():
            ledger.open(DATASET, cap=budget("pure", 1), neighbours=NEIGHBOURS)
        assert ledger.account(DATASET).cap == budget("pure", 1)
    return Tally(kills=int(maker.exitcode != 0), looks=1)
