"""A small table of people with planted values that nobody may ever see, and a plan for it."""

from pathlib import Path

import numpy as np

from sfumato.errors import MissingExtra

# Values so odd that they can come from nowhere else.
CANARIES = ("canary-zqx-71", "193746528", "8675309.4242", "Ωcanary€")
PLAN = """
version = 1
title = "People"
about = "A test."

[data]
path = "people.csv"
name = "people"
unit = "row"
neighbours = "add-remove"

[budget]
epsilon = 1

[ledger]
cap = { epsilon = 2 }

[columns.age]
type = "integer"
bounds = [0, 120]

[columns.income]
type = "real"
bounds = [0, 100_000]
nulls = "drop"

[columns.team]
type = "text"
categories = ["red", "blue", "nobody"]

[[queries]]
name = "people"
statistic = "count"
column = "age"
share = 0.1

[[queries]]
name = "mean income by team"
statistic = "mean"
column = "income"
group_by = ["team"]
share = 0.4

[[queries]]
name = "teams"
statistic = "histogram"
column = "team"
share = 0.2

[[queries]]
name = "quartiles of age"
statistic = "quartiles"
column = "age"
n_hint = 400
share = 0.3
"""


def people(rows=400):
    """CSV text with canaries among the values of every column."""
    rng = np.random.Generator(np.random.PCG64(8))
    lines = ["id,age,income,team,note"]
    for row in range(rows):
        income = "" if rng.random() < 0.05 else f"{rng.gamma(4, 9000):.2f}"
        team = "red" if rng.random() < 0.6 else "blue"
        lines.append(f"p{row},{rng.integers(18, 90)},{income},{team},nothing")
    lines.append(f"p{rows},{CANARIES[1]},{CANARIES[2]},{CANARIES[0]},{CANARIES[3]}")
    return "\n".join(lines) + "\n"


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by name."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def replaced(path: Path, old: str, new: str) -> None:
    """Change a text in a file; it must be there."""
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def no_charts(publication, receipt=None):
    """In place of the report, where the extra charts is to be missing."""
    raise MissingExtra('a report needs: pip install "sfumato[charts]"')
