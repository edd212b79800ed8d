"""A table of fictional people with salaries, for the demo, the examples and the benchmarks."""

import io
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.laws.bits import SeededBits
from sfumato.safe_text import csv_bytes
from sfumato.whole_files import write_file

ROWS = 50_000
SEED = 1503
# The departments, how many of a hundred people work there, and what a beginner earns.
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
HOURS = (0.5, 0.6, 0.75, 0.8)


def people(rows: int = ROWS, seed: int = SEED) -> dict[str, Any]:
    """Columns of so many people, none of whom exists; the same seed gives the same people.

    >>> table = people(3)
    >>> list(table), len(table["salary"])
    (['age', 'department', 'salary', 'part_time', 'commute_minutes'], 3)
    """
    from scipy.special import betaincinv, ndtri

    bits = SeededBits(seed)

    def uniform() -> Any:
        # Inside (0, 1): the middles of 2^53 cells.
        return ((bits.words(rows) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53

    # Ages are few, so a table of them is enough, and much faster than as many inverses as rows.
    ages = betaincinv(1.9, 2.3, (np.arange(4096) + 0.5) / 4096)
    age = np.rint(18 + 49 * ages[(uniform() * 4096).astype(np.int64)]).astype(np.int64)
    shares = np.cumsum([share for share, _ in DEPARTMENTS.values()]) / 100
    department = np.searchsorted(shares, uniform(), side="right")
    part_time = uniform() < np.where(age >= 60, 0.30, 0.16)

    # Pay grows by experience and flattens; its spread is lognormal; one in 500 is an executive.
    starts = np.array([start for _, start in DEPARTMENTS.values()])
    experience = 1 - np.exp(-(age - 18) / 18)
    full_time = starts[department] * (1 + 0.9 * experience) * np.exp(0.24 * ndtri(uniform()))
    executive = uniform() < 0.002
    full_time = np.where(executive, full_time * (1 + uniform() ** (-1 / 1.6)), full_time)
    hours = np.where(part_time, np.array(HOURS)[(uniform() * len(HOURS)).astype(np.int64)], 1.0)

    commute = np.round(4 - 13 * np.log(uniform() * uniform()), 1)
    return {
        "age": age,
        "department": np.array(list(DEPARTMENTS))[department],
        "salary": np.rint(full_time * hours).astype(np.int64),
        "part_time": part_time,
        # Not everybody said how long the way is.
        "commute_minutes": np.where(uniform() < 0.04, np.nan, commute),
    }


def frame(rows: int = ROWS, seed: int = SEED) -> Any:
    """The same as a Polars frame, with missing values as nulls."""
    import polars

    made = polars.DataFrame(people(rows, seed))
    return made.with_columns(polars.col("commute_minutes").fill_nan(None))


def write(path: Path, rows: int = ROWS, seed: int = SEED) -> None:
    """Write the table as CSV, or as Parquet where the path ends in .parquet."""
    made, written = frame(rows, seed), io.BytesIO()
    if path.suffix == ".parquet":
        made.write_parquet(written)
    write_file(path, written.getvalue() or csv_bytes(made))
