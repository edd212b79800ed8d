"""Writes patients.csv: 1,000 fictional patients of two hospitals. Nobody in it exists.

python make_patients.py
"""

import csv
from pathlib import Path

import numpy as np

FIRST = ("Ada", "Ben", "Cleo", "Dario", "Edda", "Finn", "Gaia", "Hugo", "Iris", "Jonas")
LAST = ("Abel", "Brandt", "Costa", "Duval", "Engel", "Fabri", "Greco", "Hahn", "Ivers", "Jansen")
POSTCODES = ("10115", "10117", "10119", "20095", "20097", "20099", "01067", "01069")
ILLNESSES = ("asthma", "diabetes", "flu", "fracture", "migraine", "stroke")


def patients(size: int = 1_000, seed: int = 7) -> list[dict[str, object]]:
    """Rows of fictional people; old people have other illnesses than young ones."""
    drawn = np.random.default_rng(seed)
    rows = []
    for number in range(size):
        age = int(np.clip(drawn.normal(52, 21), 0, 97))
        young = np.array([0.25, 0.06, 0.3, 0.25, 0.13, 0.01])
        old = np.array([0.02, 0.2, 0.06, 0.1, 0.02, 0.6])
        weight = np.clip((age - 25) / 50, 0, 1)
        illness = drawn.choice(ILLNESSES, p=(1 - weight) * young + weight * old)
        day = np.datetime64("2025-01-01") + int(drawn.integers(0, 365))
        rows.append(
            {
                "name": f"{drawn.choice(FIRST)} {drawn.choice(LAST)}",
                "insurance": f"K{10_000_000 + 7919 * number}",
                "age": age,
                "sex": drawn.choice(("female", "male")),
                "postcode": drawn.choice(POSTCODES),
                "admitted": str(day),
                "illness": illness,
                "cost": f"{float(drawn.lognormal(7.2, 0.6)):.2f}",
            }
        )
    return rows


if __name__ == "__main__":
    people = patients()
    with (Path(__file__).parent / "patients.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(people[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(people)
