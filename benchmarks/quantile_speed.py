"""Private quantiles of an unsorted float64 array beside NumPy's own and the peers, in one run and one thread.

Goals at epsilon 1 under substitution, as a ratio to NumPy on the same array:
the median at most 0.6 (10^6 rows) and 0.5 (10^7) of np.median; nine deciles 1.0 and 0.6 of np.quantile by the
most accurate method, 0.8 and 0.5 by `recursive`; 99 percentiles of 10^6 rows twice np.quantile. A thousand
rows take 1 ms (median) and 5 ms (deciles). At 10^7 rows, memory beside the array is below that of the array.
Beside each peer, under the relation that it is calibrated for: faster, and at most its rank error.

Seconds are those of the processor, of all threads, so that a busy machine disturbs no comparison.
"""

import argparse
import math
import statistics
import time
import tracemalloc
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from quantile_peers import BOUNDS, peers
from rich.progress import track
from timing import finish, show, verdict

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.quantile_methods import METHODS

# Orders by their number; then the goals, as multiples of NumPy's time by the number of rows.
GOALS = (
    (1, "auto", {10**6: 0.6, 10**7: 0.5}),
    (9, "auto", {10**6: 1.0, 10**7: 0.6}),
    (9, "recursive", {10**6: 0.8, 10**7: 0.5}),
    (99, "auto", {10**6: 2.0}),
)
SMALL_GOALS = {1: 1.0, 9: 5.0}  # milliseconds at a thousand rows
# A method that took so many seconds for some orders is not timed with more.
PATIENCE = 4.0
# What a contender may spend on a comparison, in seconds, and how often it runs at most and at least.
SHARE, MOST, LEAST = 4.0, 200, 4
SETS = 4
Key = Hashable


def data(n: int, seed: int = 0) -> np.ndarray:
    """Normal values inside the bounds, in no order."""
    return np.clip(np.random.default_rng(seed).normal(100, 30, n), *BOUNDS)


def orders(count: int) -> list[Fraction]:
    return [Fraction(i, count + 1) for i in range(1, count + 1)]


def ours(
    values: np.ndarray, count: int, method: str = "auto", neighbours: str = "substitution"
) -> Callable[[], sf.Release]:
    """The call of a user who wants no verified intervals; a method that needs no bounds is given none."""
    bounded = method == "auto" or METHODS[method].needs_bounds
    options = {
        "bounds": BOUNDS if bounded else None,
        "epsilon": 1,
        "neighbours": neighbours,
        "method": method,
        "verify": 0,
    }
    if count == 1:
        return lambda: sf.median(values, **options)
    return lambda: sf.quantiles(values, orders(count), **options)


def numpys(values: np.ndarray, count: int) -> Callable[[], object]:
    probs = [float(q) for q in orders(count)]
    return partial(np.median, values) if count == 1 else partial(np.quantile, values, probs)


def beside_numpy(sizes: Sequence[int], short: bool) -> None:
    rows = []
    for n in track(sizes, "beside NumPy", transient=True):
        values = data(n)
        for count in (1, 9) if short else (1, 9, 99):
            called = [method for number, method, _ in GOALS if number == count]
            contenders = {method: ours(values, count, method) for method in called}
            repeats = 3 if short else 7 if n >= 10**7 else 50 if n <= 10**3 else 15
            runs = {"numpy": numpys(values, count), **contenders}
            turned = race({key: lambda _, run=run: run() for key, run in runs.items()}, math.inf, repeats)
            times = {key: took for key, took, _ in turned}
            for method in called:
                ratio = times[method] / times["numpy"]
                goal = next(g for number, name, g in GOALS if (number, name) == (count, method)).get(n)
                small = SMALL_GOALS.get(count) if n == 10**3 and method == "auto" else None
                said, holds = "", True
                if goal is not None:
                    said, holds = f"{goal:.1f} x", ratio <= goal
                elif small is not None:
                    said, holds = f"{small:.0f} ms", times[method] * 1e3 <= small
                rows.append(
                    (
                        f"{n:,}",
                        str(count),
                        method,
                        f"{times['numpy'] * 1e3:.3f}",
                        f"{times[method] * 1e3:.3f}",
                        f"{times[method] / n * 1e9:.1f}",
                        f"{ratio:.2f}",
                        said,
                        verdict(holds, short=short) if said else "",
                    )
                )
    header = ("rows", "orders", "method", "numpy ms", "sfumato ms", "ns a row", "x numpy", "goal", "verdict")
    show("quantiles beside np.median and np.quantile of the same array, epsilon 1", header, rows)


def memory(n: int, short: bool) -> None:
    values = data(n)
    rows = []
    contenders = {"np.median": numpys(values, 1), "np.quantile, 9 orders": numpys(values, 9)}
    contenders["median"] = ours(values, 1)
    for method in ("auto", "recursive"):
        contenders[f"9 deciles, {method}"] = ours(values, 9, method)
    if not short:
        contenders["99 percentiles, auto"] = ours(values, 99)
    for name, run in contenders.items():
        tracemalloc.start()
        run()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        judged = "" if name.startswith("np.") else verdict(peak < values.nbytes, short=short)
        rows.append((name, f"{peak / 2**20:.1f} MiB", f"{peak / values.nbytes:.2f}", judged))
    title = f"memory beside an array of {n:,} rows ({values.nbytes / 2**20:.0f} MiB), at its peak"
    show(title, ("what", "peak", "x array", "goal below 1"), rows)


def methods(n: int, counts: Sequence[int]) -> None:
    values = data(n)
    rows = []
    for method in track(["auto", *METHODS], "methods", transient=True):
        cells: list[str] = []
        times = [0.0]
        for count in counts:
            if times[0] > PATIENCE:
                cells.append("skipped")
                continue
            run = ours(values, count, method)
            times = []
            try:
                # The first run fills caches, and is not counted unless it is long.
                while len(times) < 6 and sum(times) < PATIENCE:
                    start = time.process_time()
                    run()
                    times.append(time.process_time() - start)
            except SfumatoError:
                cells.append("")
                times = [0.0]
                continue
            cells.append(f"{statistics.median(times[1:] or times) * 1e3:.1f}")
        rows.append((method, *cells))
    header = ("method", *(f"m = {count}" for count in counts))
    show(f"ms of each method, {n:,} rows, m orders (skipped: over {PATIENCE:.0f} s before)", header, rows)


def rank_error(ordered: np.ndarray, probs: Iterable[Fraction], answers: Sequence[float]) -> float:
    """The mean distance of q n to [#{x < o}, #{x <= o}], so that ties are one answer."""
    targets = np.array([float(q) for q in probs]) * len(ordered)
    below, upto = (np.searchsorted(ordered, answers, side=side) for side in ("left", "right"))
    return float(np.maximum(np.maximum(below - targets, targets - upto), 0).mean())


Run = Callable[[int], Any]


def race(contenders: dict[Key, Run], share: float, most: int) -> Iterator[tuple[Key, float, list]]:
    """Runs in turns until each has used its share: the contender, its median seconds, and all its answers."""
    times: dict[Key, list[float]] = {key: [] for key in contenders}
    answers: dict[Key, list[Sequence[float]]] = {key: [] for key in contenders}
    for run in contenders.values():
        run(0)
    keys, shuffled = list(contenders), np.random.default_rng(1)
    for turn in range(most):
        # In another sequence each time, so that nobody always follows the one that fills the caches.
        for place in shuffled.permutation(len(keys)):
            key = keys[place]
            if sum(times[key]) < share or turn < LEAST:
                start = time.process_time()
                answers[key].append(contenders[key](turn))
                times[key].append(time.process_time() - start)
    for key in contenders:
        yield key, statistics.median(times[key]), answers[key]


def beside_peers(sizes: Sequence[int], share: float, most: int, short: bool) -> None:
    jobs = [(n, count) for count in (1, 9) for n in sizes]
    for n, count in track(jobs, "peers", transient=True):
        # Several data sets, so that no list of candidates is lucky.
        sets, probs = [data(n, seed) for seed in range(SETS)], orders(count)
        ordered = [np.sort(values) for values in sets]
        contenders: dict[Key, Run] = {}
        for relation in ("add-remove", "substitution"):
            calls = [ours(values, count, "auto", relation) for values in sets]
            contenders["sfumato", relation] = lambda turn, calls=calls: np.atleast_1d(
                calls[turn % SETS]().value
            )
        for peer in peers([float(q) for q in probs]):
            contenders[peer.name, peer.neighbours] = lambda turn, peer=peer, sets=sets: peer.answer(
                sets[turn % SETS]
            )
        measured = {}
        for key, took, answers in race(contenders, share, most):
            errors = [rank_error(ordered[i % SETS], probs, answer) for i, answer in enumerate(answers)]
            spread = statistics.stdev(errors) / len(errors) ** 0.5
            measured[key] = took, statistics.fmean(errors), spread, len(errors)
        rows = []
        for (name, relation), (took, error, spread, runs) in measured.items():
            own_time, own_error, own_spread, _ = measured["sfumato", relation]
            compared = ("", "", "")
            if name != "sfumato":
                slower = own_time > took
                worse = own_error > error + 4 * (spread**2 + own_spread**2) ** 0.5
                said = verdict(not slower and not worse, short=short)
                if said == "MISSED":
                    said += ": " + " and ".join(["time"] * slower + ["error"] * worse)
                compared = (f"{took / own_time:.1f}", f"{error / max(own_error, 1e-3):.1f}", said)
            shown = (name, relation, f"{took * 1e3:.2f}", f"{error:.2f} ± {spread:.2f}", str(runs))
            rows.append((*shown, *compared))
        header = ("what", "relation", "ms", "rank error", "runs", "time, x", "error, x", "verdict")
        title = "one median" if count == 1 else "nine deciles"
        show(f"{title} of {n:,} rows, epsilon 1 in all; x: times sfumato's under this relation", header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes and few repeats, for a smoke test")
    parser.add_argument("--part", choices=("numpy", "memory", "methods", "peers"), help="one part only")
    asked = parser.parse_args()
    short = asked.quick
    parts = {
        "numpy": lambda: beside_numpy((10**3, 10**4) if short else [10**k for k in range(3, 8)], short),
        "memory": lambda: memory(10**5 if short else 10**7, short),
        "methods": lambda: methods(10**4 if short else 10**6, (1, 9) if short else (1, 9, 99, 999)),
        "peers": lambda: beside_peers(
            (10**3,) if short else (10**3, 10**5, 10**6), 0.2 if short else SHARE, 5 if short else MOST, short
        ),
    }
    for name, run in parts.items():
        if asked.part in (None, name):
            run()
    finish()


if __name__ == "__main__":
    main()
