"""Many processes that spend at once around caps: exactly what fits is spent, by whoever comes first."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from tests.faults.clients import DATASET, NEIGHBOURS, PRICE, Job, Place, Step, budget, run_together
from tests.faults.witness import Witness

ANALYSTS = ("ada", "ben", "cleo", "dan")


@dataclass(frozen=True)
class Written:
    """Journals of processes that have ended."""

    lines: list[Step]

    def steps(self) -> list[Step]:
        return self.lines


def spends(steps: list[Step]) -> int:
    return sum(step.word == "charged" for step in steps)


def storm_a_data_set(
    place: Place, folder: Path, *, clients: int, asked: int, kind: str = "pure", defect: str | None = None
) -> int:
    """Ask for twice what the data set may spend; the number of spends, which must be exactly what fits."""
    fits = clients * asked // 2
    with place.open() as ledger:
        ledger.open(DATASET, cap=budget(kind, fits), neighbours=NEIGHBOURS)
    journals = run_together(
        [
            Job(
                place,
                str(folder / f"{i}.journal"),
                tuple(f"{i}-{n}" for n in range(asked)),
                kind=kind,
                defect=defect,
            )
            for i in range(clients)
        ]
    )
    witness = Witness(place, [Written(steps) for steps in journals])
    witness.look()
    assert witness.spent == fits * PRICE, f"{witness.spent} was spent of a cap of {fits * PRICE}"
    assert sum(map(spends, journals)) == fits == witness.charges
    return fits


def storm_analysts(
    place: Place, folder: Path, *, clients: int, asked: int, whole: Fraction, defect: str | None = None
) -> dict[str, int]:
    """Analysts with caps that are met at different times, under a cap that is `whole` of all their caps."""
    demand = clients * asked // len(ANALYSTS)  # of each analyst
    caps = {name: demand * (i + 1) // (len(ANALYSTS) + 1) for i, name in enumerate(ANALYSTS)}
    fits = int(sum(caps.values()) * whole)
    with place.open() as ledger:
        ledger.open(DATASET, cap=budget("pure", fits), neighbours=NEIGHBOURS)
        for name, cap in caps.items():
            ledger.allow(DATASET, name, budget("pure", cap))
    jobs = [
        Job(
            place,
            str(folder / f"{i}.journal"),
            tuple(f"{i}-{n}" for n in range(asked)),
            analyst=ANALYSTS[i % len(ANALYSTS)],
            defect=defect,
        )
        for i in range(clients)
    ]
    journals = run_together(jobs)
    witness = Witness(place, [Written(steps) for steps in journals])
    witness.look()
    spent = {name: witness.spent_by[name] for name in ANALYSTS}
    for name, cap in caps.items():
        assert spent[name] <= cap, f"{name} made {spent[name]} charges under a cap of {cap}"
        assert whole < 1 or spent[name] == cap, f"{name} could make {spent[name]} charges of {cap}"
    assert sum(spent.values()) == min(fits, sum(caps.values()))
    return spent


def storm_one_request(
    place: Place, folder: Path, *, clients: int, asked: int, defect: str | None = None
) -> int:
    """All processes ask the same requests; each is charged once and has one answer, told to all."""
    with place.open() as ledger:
        ledger.open(DATASET, cap=budget("pure", asked), neighbours=NEIGHBOURS)
    requests = tuple(f"same-{n}" for n in range(asked))
    journals = run_together(
        [Job(place, str(folder / f"{i}.journal"), requests, defect=defect) for i in range(clients)]
    )
    witness = Witness(place, [Written(steps) for steps in journals])
    witness.look()
    witness.ask_all_again()
    assert witness.spent == asked * PRICE
    assert witness.charges == asked
    for steps in journals:
        assert [step.request for step in steps if step.word == "told"] == list(requests)
    return asked
