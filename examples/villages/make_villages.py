"""Writes a table of fictional people and where they work: the data of plan.toml, the same at every run.

    python examples/villages/make_villages.py [PATH]

Nobody in the file exists. A few villages have most of the work, and many have one or two people, whom a table
by village would give away.
"""

import csv
import sys
from pathlib import Path

import numpy as np

PEOPLE, VILLAGES, SEED = 6_000, 400, 1512
STARTS = [
    "Al",
    "Bar",
    "Col",
    "Dun",
    "Esk",
    "Fen",
    "Gar",
    "Hol",
    "Ing",
    "Ket",
    "Lang",
    "Mor",
    "Nor",
    "Old",
    "Pen",
    "Ram",
    "Sel",
    "Thor",
    "Up",
    "Wal",
]
ENDS = [
    "by",
    "dale",
    "don",
    "ford",
    "ham",
    "hurst",
    "ley",
    "mere",
    "mouth",
    "ness",
    "ridge",
    "stead",
    "stow",
    "thorpe",
    "ton",
    "wick",
    "worth",
    "field",
    "bury",
    "gate",
]


def rows():
    """A row for every job: who, in which village, and what it pays a year."""
    rng = np.random.default_rng(SEED)
    names = [start + end for start in STARTS for end in ENDS]
    villages = rng.permutation(names)[:VILLAGES]
    weights = 1 / np.arange(1, VILLAGES + 1) ** 1.6
    for person in range(PEOPLE):
        for _ in range(rng.choice([1, 2, 3], p=[0.8, 0.15, 0.05])):
            village = rng.choice(villages, p=weights / weights.sum())
            known = rng.random() > 0.02
            yield f"p{person:05}", village if known else "", round(float(rng.lognormal(10.1, 0.5)))


if __name__ == "__main__":
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("villages.csv")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["person", "village", "pay"])
        writer.writerows(rows())
    print(path)
