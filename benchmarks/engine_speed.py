"""Deciles and whole plans on tables that stay in their engine, beside the engine's own quantiles, in one run.

Goals at epsilon 1 under substitution, for lognormal salaries and public bounds (0, 250,000): nine deciles of
10^7 rows on Polars lazy at most 1.0 times the nine quantiles of Polars itself; on DuckDB at most 1.2 times
quantile_cont of the nine in one list; on Spark, 10^8 rows that Spark generated and stored as Parquet, at most
1.3 times percentile_approx with accuracy 10,000, and nearer to the true values. Twelve questions in one batch
at most 3 times the time of one, which is the mean of the twelve asked one by one. The memory of the process
at 10^6, 10^7 and 10^8 rows of a folder of Parquet files does not grow with the rows.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from timing import finish, medians, show, verdict

import sfumato as sf

BOUNDS = (0, 250_000)
DECILES = tuple(i / 10 for i in range(1, 10))
TEAMS = ("red", "green", "blue", "white")
SCHEMA = {
    "salary": sf.Field(bounds=BOUNDS),
    "hours": sf.Field(bounds=(0, 80)),
    "team": sf.Field(categories=TEAMS),
}
FILE_ROWS = 10**6
# A salary of the row's number: a lognormal law by two uniforms from a hash, as in `salaries`.
UNIFORM = "((xxhash64(id, {}) & 4503599627370495) + 0.5D) / 4503599627370496D"
NORMAL = f"sqrt(-2 * ln({UNIFORM.format(1)})) * cos(6.283185307179586D * {UNIFORM.format(2)})"
ON_SPARK = f"exp(10.6D + 0.5D * {NORMAL}) AS salary"
GROWTH = 1.25


def salaries(n: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).lognormal(10.6, 0.5, n)


def table(n: int, seed: int = 1) -> pl.DataFrame:
    drawn = np.random.default_rng(seed + 1_000)
    teams = pl.Series(np.array(TEAMS)[drawn.integers(0, len(TEAMS), n)])
    return pl.DataFrame({"salary": salaries(n, seed), "hours": drawn.uniform(0, 60, n), "team": teams})


def ask(native: Any, *questions: sf.Question) -> Any:
    data = sf.Dataset(native, unit="row", neighbours="substitution", schema=SCHEMA)
    return sf.Session(data, budget=sf.PureDP(100)).answer_all(questions)


def deciles(native: Any) -> np.ndarray:
    schema = {"salary": SCHEMA["salary"]}
    data = sf.Dataset(native, unit="row", neighbours="substitution", schema=schema)
    query = sf.Quantiles(probs=DECILES, budget=sf.PureDP(1), column="salary")
    return np.asarray(sf.Session(data, budget=sf.PureDP(1)).answer(query).value)


def twelve() -> list[sf.Question]:
    """What an office would publish of such a table."""
    about = {"budget": sf.PureDP(1), "column": "salary"}
    median = sf.Quantiles(**about, probs=(0.5,), scalar=True)
    queries = [
        sf.Count(**about, between=(0, 20_000)),
        sf.Sum(**about),
        sf.Mean(**about),
        sf.Variance(**about),
        sf.Proportion(**about, between=(100_000, 250_000)),
        sf.Histogram(**about, bins=50),
        sf.Histogram(budget=sf.PureDP(1), column="team"),
        median,
        sf.Quantiles(**about, probs=DECILES),
        sf.Quantiles(budget=sf.PureDP(1), column="hours", probs=(0.5,), scalar=True),
    ]
    grouped = [sf.Question(query=sf.Mean(**about), by=["team"]), sf.Question(query=median, by=["team"])]
    return [*(sf.Question(query=query) for query in queries), *grouped]


def duckdb_relation(source: Any) -> Any:
    import duckdb

    database = duckdb.connect()
    if isinstance(source, pl.DataFrame):
        database.register("given", source.to_arrow())
        database.execute("CREATE TABLE people AS SELECT * FROM given")
        return database.table("people")
    return database.read_parquet(f"{source}/*.parquet")


def spark_session(memory: str = "2g") -> Any:
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    warnings.simplefilter("ignore", FutureWarning)
    from pyspark.sql import SparkSession

    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.log.level": "OFF",
    }
    builder = SparkSession.builder.appName("engine_speed")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


# --- deciles beside the engine's own -------------------------------------------------------------


def compare(
    title: str,
    peers: dict[str, Callable[[], Any]],
    own: Callable[[], Any],
    goal: float,
    repeats: int,
    short: bool,
) -> None:
    """Ours beside the engine's own ways to the same numbers; the fastest of them is what counts."""
    times = medians({**peers, "sfumato": own}, repeats)
    best = min(times[name] for name in peers)
    rows = []
    for name, seconds in times.items():
        judged = verdict(seconds / best <= goal, short=short) if name == "sfumato" else ""
        rows.append((name, f"{seconds * 1e3:.0f}", f"{seconds / best:.2f}", judged))
    show(f"{title}, median of {repeats}", ("nine deciles", "ms", "x fastest own", f"goal {goal}"), rows)


def on_polars(n: int, repeats: int, short: bool) -> None:
    lazy = table(n).lazy()
    # Nine expressions of one quantile each take many times longer than one of nine.
    own = lazy.select(pl.col("salary").quantile(list(DECILES), "linear"))
    peers = {
        "quantile of a list": own.collect,
        "quantile of a list, streaming": lambda: own.collect(engine="streaming"),
    }
    compare(f"Polars lazy, {n:,} rows", peers, lambda: deciles(lazy), 1.0, repeats, short)


def on_duckdb(n: int, repeats: int, short: bool) -> None:
    relation = duckdb_relation(table(n))
    listed = ", ".join(map(str, DECILES))
    compare(
        f"DuckDB, {n:,} rows",
        {"quantile_cont": lambda: relation.aggregate(f"quantile_cont(salary, [{listed}])").fetchall()},
        lambda: deciles(relation),
        1.2,
        repeats,
        short,
    )


def on_spark(n: int, repeats: int, short: bool, folder: Path) -> None:
    spark = spark_session()
    path = str(folder / "spark")
    spark.range(n).selectExpr(ON_SPARK).write.mode("overwrite").parquet(path)
    frame = spark.read.parquet(path)
    listed = ", ".join(map(str, DECILES))

    def approximate() -> Any:
        # A new plan every time: the shuffle of one that ran before would be reused.
        return frame.selectExpr(f"percentile_approx(salary, array({listed}), 10000) AS found").collect()

    compare(
        f"Spark local[2], {n:,} rows generated on Spark, in Parquet",
        {"percentile_approx": approximate},
        lambda: deciles(frame),
        1.3,
        repeats,
        short,
    )
    values = pl.scan_parquet(f"{path}/*.parquet").collect().to_series().sort().to_numpy()
    truth = np.array([values[min(int(q * n), n - 1)] for q in DECILES])
    theirs = np.abs(np.array(approximate()[0]["found"]) - truth)
    ours = np.abs(np.array([deciles(frame) for _ in range(3)]) - truth)
    rows = [
        ("percentile_approx", f"{theirs.mean():.3f}", f"{theirs.max():.3f}", ""),
        (
            "sfumato, epsilon 1, of 3",
            f"{ours.mean():.3f}",
            f"{ours.max():.3f}",
            verdict(bool(ours.mean() < theirs.mean()), short=short),
        ),
    ]
    show("distance to the true deciles, in money", ("nine deciles", "mean", "largest", "goal smaller"), rows)
    spark.stop()


# --- twelve questions in one batch ---------------------------------------------------------------


def batches(n: int, repeats: int, short: bool) -> None:
    frame, rows = table(n), []
    for name, native in {"Polars lazy": frame.lazy(), "DuckDB": duckdb_relation(frame)}.items():
        contenders: dict[str, Callable[[], Any]] = {
            str(i): lambda native=native, question=question: ask(native, question)
            for i, question in enumerate(twelve())
        }
        contenders["all"] = lambda native=native: ask(native, *twelve())
        times = medians(contenders, repeats)
        together = times.pop("all")
        one, longest = statistics.fmean(times.values()), max(times.values())
        told = verdict(together / one <= 3, short=short)
        figures = (f"{one * 1e3:.0f}", f"{longest * 1e3:.0f}", f"{together * 1e3:.0f}")
        rows.append((name, *figures, f"{together / longest:.2f}", f"{together / one:.2f}", told))
    header = ("engine", "one, ms", "longest, ms", "twelve, ms", "x longest", "x one", "goal 3")
    show(f"twelve questions in one batch, {n:,} rows, median of {repeats}", header, rows)


# --- memory --------------------------------------------------------------------------------------


def parquet_folder(folder: Path, n: int) -> Path:
    """A folder of files of a million rows each."""
    path = folder / f"rows-{n}"
    if not path.exists():
        path.mkdir()
        for i in range(max(n // FILE_ROWS, 1)):
            part = table(min(n, FILE_ROWS), seed=i)
            part.write_parquet(path / f"part-{i:05}.parquet", row_group_size=100_000, statistics=False)
    return path


def peak_of(process: str) -> float:
    """The largest resident set of a process so far, in MiB."""
    lines = Path(f"/proc/{process}/status").read_text("ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def measure(engine: str, path: str) -> None:
    """In a process of its own: answer twelve questions, and print the peak of its memory in MiB."""
    java = 0.0
    if engine == "polars":
        ask(pl.scan_parquet(f"{path}/*.parquet"), *twelve())
    elif engine == "duckdb":
        ask(duckdb_relation(path), *twelve())
    else:
        spark = spark_session("1g")
        ask(spark.read.parquet(path), *twelve())
        java = peak_of(spark._jvm.java.lang.ProcessHandle.current().pid())
        spark.stop()
    # What getrusage tells begins with the memory of the process that started this one.
    print(json.dumps({"own": peak_of("self"), "java": java}))


def memory(sizes: tuple[int, ...], engines: tuple[str, ...], short: bool, folder: Path) -> None:
    rows = []
    for engine in engines:
        found = []
        for n in sizes:
            path = parquet_folder(folder, n)
            command = [sys.executable, __file__, "--measure", engine, str(path)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found.append(json.loads(done.stdout.splitlines()[-1]))
        own = [one["own"] for one in found]
        said = verdict(own[-1] <= GROWTH * own[0], short=short)
        rows.append((f"{engine}, Python", *(f"{mib:.0f}" for mib in own), f"{own[-1] / own[0]:.2f}", said))
        if engine == "spark":
            java = [one["java"] for one in found]
            rows.append(("spark, Java with 1 GiB of heap", *(f"{mib:.0f}" for mib in java), "", ""))
    header = ("MiB at the peak", *(f"{n:,} rows" for n in sizes), "last / first", f"goal {GROWTH}")
    show("twelve questions of a folder of Parquet files, resident memory of the process", header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes and few repeats, for a smoke test")
    parser.add_argument(
        "--part", choices=("polars", "duckdb", "spark", "batches", "memory"), help="one part only"
    )
    parser.add_argument("--measure", nargs=2, metavar=("ENGINE", "FOLDER"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        measure(*asked.measure)
        return
    short = asked.quick
    repeats = 3 if short else 7
    sizes, engines = (10**6, 10**7, 10**8), ("polars", "duckdb", "spark")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts: dict[str, Callable[[], None]] = {
            "polars": lambda: on_polars(10**6 if short else 10**7, repeats, short),
            "duckdb": lambda: on_duckdb(10**6 if short else 10**7, repeats, short),
            "batches": lambda: batches(10**5 if short else 10**7, 2 if short else 5, short),
            "spark": lambda: on_spark(10**7 if short else 10**8, 2 if short else 5, short, folder),
            "memory": lambda: memory((10**5, 10**6) if short else sizes, engines, short, folder),
        }
        for part, run in parts.items():
            if asked.part in (None, part):
                run()
    finish()


if __name__ == "__main__":
    main()
