"""Writes salaries.csv: 20,000 fictional employees, the same bytes at every run.

    python examples/salaries/make_salaries.py

Nobody in the file exists. The seed makes the example reproducible; it has nothing to do with privacy, and
no release of sfumato takes one.
"""

import sys
from pathlib import Path

import numpy as np

ROWS = 20_000
SEED = 1503
TARGET = Path(__file__).with_name("salaries.csv")

# Public facts: the departments, how many of a hundred employees work there, and the salary of a beginner.
DEPARTMENTS = {
    "administration": (9, 31_000),
    "customer service": (14, 27_000),
    "engineering": (21, 43_000),
    "finance": (6, 41_000),
    "logistics": (13, 28_000),
    "production": (24, 30_000),
    "research": (4, 46_000),
    "sales": (9, 34_000),
}


def salaries_csv() -> str:
    """The whole file as text."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    names = list(DEPARTMENTS)
    shares = np.array([share for share, _ in DEPARTMENTS.values()]) / 100
    starts = np.array([start for _, start in DEPARTMENTS.values()])

    age = np.clip(np.rint(18 + 49 * rng.beta(1.9, 2.3, ROWS)), 18, 67).astype(int)
    department = rng.choice(len(names), size=ROWS, p=shares)
    part_time = rng.random(ROWS) < np.where(age >= 60, 0.30, 0.16)

    # Pay grows by experience and flattens; its spread is lognormal; one in 500 is an executive.
    experience = 1 - np.exp(-(age - 18) / 18)
    full_time = starts[department] * (1 + 0.9 * experience) * np.exp(rng.normal(0, 0.24, ROWS))
    executive = rng.random(ROWS) < 0.002
    full_time = np.where(executive, full_time * (2 + rng.pareto(1.6, ROWS)), full_time)
    hours = np.where(part_time, rng.choice([0.5, 0.6, 0.75, 0.8], ROWS), 1.0)
    salary = np.rint(full_time * hours).astype(int)

    commute = np.round(4 + rng.gamma(2.1, 12.5, ROWS), 1)
    unknown = rng.random(ROWS) < 0.04

    lines = ["age,department,salary,part_time,commute_minutes"]
    for row in range(ROWS):
        minutes = "" if unknown[row] else f"{commute[row]:.1f}"
        whether = "true" if part_time[row] else "false"
        lines.append(f"{age[row]},{names[department[row]]},{salary[row]},{whether},{minutes}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    target.write_text(salaries_csv(), encoding="utf-8", newline="\n")
