"""Writes a table of fictional people: the data of plan.toml, the same bytes at every run.

    python examples/salaries/make_salaries.py [PATH] [--rows N]

Nobody in the file exists. The seed makes the example reproducible; it has nothing to do with privacy, and
no release of sfumato takes one. A path that ends in .parquet gets Parquet, any other one CSV.
"""

import argparse
from pathlib import Path

from sfumato.lab import salaries

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write a table of fictional people with salaries.")
    parser.add_argument("path", nargs="?", type=Path, default=Path(__file__).with_name("salaries.csv"))
    parser.add_argument("--rows", type=int, default=salaries.ROWS)
    asked = parser.parse_args()
    salaries.write(asked.path, asked.rows)
    print(asked.path)
