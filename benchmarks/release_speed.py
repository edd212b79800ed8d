"""From a CSV file to a release, beside Polars that reads the same file and computes the same without privacy.

Each run is a process of its own, from its start to its end; the contenders take turns. Goals for 10^7 rows of
5 columns and the plan of examples/salaries: at most twice the time of Polars, and a peak below 2 GiB.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from timing import finish, quick, show, verdict

PLAN = Path(__file__).parent.parent / "examples" / "salaries" / "plan.toml"
EDGES = [20_000, 30_000, 40_000, 50_000, 60_000, 80_000]
REPEATS = 5
GOAL_RATIO = 2.0
GOAL_GIB = 2.0


def whole_table(folder: Path) -> None:
    """Polars reads the file and computes what the plan asks for."""
    import polars as pl

    statistics_of(pl.read_csv(folder / "salaries.csv"))


def needed_columns(folder: Path) -> None:
    """The same with the three columns that the plan needs, which a user would have to name."""
    import polars as pl

    columns = ["salary", "department", "commute_minutes"]
    statistics_of(pl.scan_csv(folder / "salaries.csv").select(columns).collect(engine="streaming"))


def statistics_of(table: "object") -> None:
    """Count, means, histograms and deciles by department, not private."""
    import polars as pl

    assert isinstance(table, pl.DataFrame)
    salary = pl.col("salary")
    print(table.height, table["salary"].mean())
    print(table.filter(pl.col("department") == "production")["commute_minutes"].mean())
    print(table["salary"].cut(EDGES, left_closed=True).value_counts())
    print(table["department"].value_counts())
    deciles = [salary.quantile(k / 10, interpolation="higher").alias(f"decile {k}") for k in range(1, 10)]
    print(table.group_by("department").agg(deciles))


def published(folder: Path) -> None:
    """sfumato from the plan to the reply that the ledger keeps."""
    from sfumato import plan, publishing

    address = f"sqlite:///{folder}/ledger-{time.time_ns()}.db"
    publishing.publish(plan.read(folder / "plan.toml"), ledger=address)


def command(folder: Path) -> None:
    """`sfumato release`, with all the files that it writes and the report."""
    from sfumato.cli import main

    name = str(time.time_ns())
    address = f"sqlite:///{folder}/ledger-{name}.db"
    sys.argv = ["sfumato", "release", f"{folder}/plan.toml", "-o", f"{folder}/{name}", "--ledger", address]
    main()


CONTENDERS: dict[str, Callable[[Path], None]] = {
    "polars, read_csv": whole_table,
    "polars, needed columns": needed_columns,
    "sfumato, publish": published,
    "sfumato release, with report": command,
}


def make(folder: Path, rows: int) -> None:
    """The table of the example, longer; by a process of its own, whose memory no other one inherits."""
    shutil.copy(PLAN, folder)
    script = PLAN.with_name("make_salaries.py")
    arguments = [sys.executable, str(script), str(folder / "salaries.csv"), "--rows", str(rows)]
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)


def run(name: str, folder: Path) -> tuple[float, float, float]:
    """The seconds of a fresh process, those of its processors, and its peak memory in GiB."""
    start = time.perf_counter()
    arguments = [sys.executable, __file__, "--child", name, str(folder)]
    with tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=said)
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            sys.exit(f"{name} ended with {child.returncode}: {said.read()}")
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20


def main() -> None:
    short = quick(__doc__)
    rows = 10**5 if short else 10**7
    repeats = 1 if short else REPEATS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, rows)
        size = (folder / "salaries.csv").stat().st_size / 2**20
        found: dict[str, list[tuple[float, float, float]]] = {contender: [] for contender in CONTENDERS}
        for _ in range(repeats):
            for contender, runs in found.items():
                runs.append(run(contender, folder))
    seconds = {contender: statistics.median(run[0] for run in runs) for contender, runs in found.items()}
    processor = {contender: statistics.median(run[1] for run in runs) for contender, runs in found.items()}
    peaks = {contender: max(run[2] for run in runs) for contender, runs in found.items()}
    table = []
    for contender in CONTENDERS:
        ratios = [seconds[contender] / seconds[other] for other in list(CONTENDERS)[:2]]
        ours = contender.startswith("sfumato")
        holds = ratios[0] <= GOAL_RATIO and peaks[contender] < GOAL_GIB
        table.append(
            (
                contender,
                f"{seconds[contender]:.2f}",
                f"{processor[contender]:.2f}",
                *(f"{ratio:.2f}" for ratio in ratios),
                f"{peaks[contender]:.2f}",
                verdict(holds, short=short) if ours else "",
            )
        )
    show(
        f"a release of {rows:,} rows, a file of {size:,.0f} MiB; medians of {repeats} runs that take turns",
        (
            "what",
            "s",
            "processor s",
            "x read_csv",
            "x needed columns",
            "peak GiB",
            f"goal {GOAL_RATIO:g} and {GOAL_GIB:g} GiB",
        ),
        table,
    )
    finish()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        CONTENDERS[sys.argv[2]](Path(sys.argv[3]))
    else:
        main()
