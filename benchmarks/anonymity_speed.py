"""Mondrian on five quasi-identifiers, beside one group-by of Polars over the same columns, in one run.

Goals for 10^6 rows, five quasi-identifiers and k = 10, from a Polars frame to the classes with their labels:
strict Mondrian in under 20 times the time of one group-by that counts rows, and with less further memory at
the peak than 4 times the table. Two tables: an everyday one (age, sex, 1,000 postcodes, education, income),
and one with five columns of a million values each. The relaxed form, diverse classes and the growth with
the rows are shown beside them.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from timing import finish, medians, show, verdict

from sfumato.anonymity import anonymize
from sfumato.anonymity.goals import DistinctDiversity, KAnonymity
from sfumato.anonymity.mondrian import mondrian
from sfumato.anonymity.partition import Partition
from sfumato.anonymity.rows import rows_of

K = 10
TIMES, SPACE = 20, 4
SENSITIVE = "illness"


def everyday(n: int) -> pl.DataFrame:
    drawn = np.random.default_rng(1)

    def texts(words: str, count: int) -> pl.Series:
        names = pl.Series([f"{words} {i:04}" for i in range(count)])
        return names.gather(drawn.integers(0, count, n))

    return pl.DataFrame(
        {
            "age": drawn.integers(0, 100, n),
            "sex": texts("sex", 2),
            "postcode": texts("postcode", 1_000),
            "education": texts("education", 16),
            "income": np.minimum(drawn.lognormal(10, 0.6, n), 99_999).astype(np.int64),
        }
    )


def wide(n: int) -> pl.DataFrame:
    drawn = np.random.default_rng(2)
    return pl.DataFrame({f"column {j}": drawn.integers(0, 10**6, n) for j in range(5)})


TABLES: dict[str, Callable[[int], pl.DataFrame]] = {"everyday": everyday, "wide": wide}


def cut(frame: pl.DataFrame, *, relaxed: bool = False) -> Partition:
    return mondrian(rows_of(frame, frame.columns), [KAnonymity(K)], relaxed=relaxed)


def cut_diverse(frame: pl.DataFrame) -> Partition:
    quasi = [name for name in frame.columns if name != SENSITIVE]
    return mondrian(rows_of(frame, quasi, [SENSITIVE]), [KAnonymity(K), DistinctDiversity(SENSITIVE, 3)])


def speed(n: int, repeats: int, short: bool) -> None:
    for name, make in TABLES.items():
        frame = make(n)
        illness = pl.Series(SENSITIVE, np.random.default_rng(3).integers(0, 20, n))
        with_illness = frame.with_columns(illness)
        contenders: dict[str, Callable[[], Any]] = {
            "group-by of Polars": lambda frame=frame: frame.group_by(frame.columns).len(),
            "Mondrian, strict": lambda frame=frame: cut(frame),
            "Mondrian, relaxed": lambda frame=frame: cut(frame, relaxed=True),
            "Mondrian, strict, 3 illnesses": lambda frame=with_illness: cut_diverse(frame),
            "anonymize, from table to table": lambda frame=frame: anonymize(frame, quasi=frame.columns, k=K),
        }
        # By itself a group-by is faster than in turns with what needs much memory: the harder goal.
        alone = {"group-by of Polars, by itself": contenders["group-by of Polars"]}
        times = {**medians(alone, repeats), **medians(contenders, repeats)}
        once = min(seconds for what, seconds in times.items() if "group-by" in what)
        rows = []
        for what, seconds in times.items():
            judged = verdict(seconds < TIMES * once, short=short) if what == "Mondrian, strict" else ""
            rows.append((what, f"{seconds * 1e3:.0f}", f"{seconds / once:.1f}", judged))
        found = cut(frame)
        title = f"{name}, {n:,} rows, k = {K}, {found.count:,} classes of {found.sizes.min()} rows or more"
        show(f"{title}, median of {repeats}", ("", "ms", "x group-by", f"goal {TIMES}"), rows)


def growth(sizes: tuple[int, ...], repeats: int) -> None:
    for name, make in TABLES.items():
        rows = []
        for n in sizes:
            frame = make(n)
            seconds = medians({"cut": lambda frame=frame: cut(frame)}, repeats)["cut"]
            per_row = seconds / n * 1e9
            rows.append(
                (f"{n:,}", f"{seconds * 1e3:.1f}", f"{per_row:.0f}", f"{per_row / math.log2(n / K):.0f}")
            )
        header = ("rows", "ms", "ns a row", "ns a row / log2(rows / k)")
        show(f"growth of strict Mondrian, {name}, median of {repeats}", header, rows)


# --- memory --------------------------------------------------------------------------------------


def status(field: str) -> int:
    """A size that the kernel tells of this process, in bytes."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) * 1024


def measure(path: str) -> None:
    """In a process of its own: how far the resident memory rises above what it is with the table loaded."""
    cut(everyday(1_000))  # libraries are loaded before
    before = status("VmRSS")
    frame = pl.read_ipc(path)
    Path("/proc/self/clear_refs").write_text("5", "ascii")  # the peak begins again at what is held now
    # Not what is resident now: room that was needed for reading may be given back later.
    loaded = before + frame.estimated_size()
    rows = rows_of(frame, frame.columns)
    coded = status("VmRSS")
    classes = mondrian(rows, [KAnonymity(K)])
    peak = status("VmHWM")
    sizes = {
        "table": frame.estimated_size(),
        "codes": coded - loaded,
        "cuts": peak - coded,
        "all": peak - loaded,
    }
    print(json.dumps({**sizes, "classes": classes.count}))


def memory(n: int, short: bool) -> None:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, make in TABLES.items():
            path = Path(folder) / f"{name}.arrow"
            make(n).write_ipc(path)
            command = [sys.executable, __file__, "--measure", str(path)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            found = json.loads(done.stdout.splitlines()[-1])
            times = {what: found[what] / found["table"] for what in ("codes", "cuts", "all")}
            said = verdict(times["all"] < SPACE, short=short)
            figures = [f"{times[what]:.2f}" for what in ("codes", "cuts", "all")]
            rows.append((name, f"{found['table'] / 2**20:.0f}", *figures, said))
    header = ("table", "MiB", "coded rows, x table", "cuts, x table", "both, x table", f"goal {SPACE}")
    show(f"further memory at the peak, strict Mondrian, {n:,} rows, a process of its own", header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes and few repeats, for a smoke test")
    parser.add_argument("--measure", metavar="FILE", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        measure(asked.measure)
        return
    short = asked.quick
    speed(20_000 if short else 10**6, 3 if short else 7, short)
    growth((10**3, 10**4) if short else (10**4, 10**5, 10**6), 3 if short else 5)
    memory(20_000 if short else 10**6, short)
    finish()


if __name__ == "__main__":
    main()
