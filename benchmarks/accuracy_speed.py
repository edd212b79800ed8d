"""How long it takes to know the accuracy before, and an interval after: closed forms and simulations.

A simulation is timed on its first call; the next one with the same public facts is remembered.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from timing import finish, medians, quick, show, verdict

import sfumato as sf
from sfumato.accuracy import Scenario, epsilon_for

PUBLIC = {"neighbours": "substitution", "nulls": "lower", "budget": sf.PureDP(1)}
BOUNDS = (0, 250_000)
SALARIES = Scenario.named("lognormal", mu=10.4, sigma=0.5)
CLOSED, SIMULATED = 5e-3, 2.0


def queries(rows: int) -> dict[str, object]:
    numeric = {**PUBLIC, "rows": rows, "bounds": BOUNDS}
    plain = {**numeric, "verify": 0}
    return {
        "count": sf.Count(between=(0, 30_000), rows=rows, **PUBLIC),
        "mean": sf.Mean(**numeric),
        "mean, private size": sf.Mean(
            **{**numeric, "rows": None, "neighbours": "add-remove", "nulls": "drop"}
        ),
        "variance": sf.Variance(**numeric),
        "histogram": sf.Histogram(bins=20, **numeric),
        "median": sf.Quantiles(probs=[0.5], **plain),
        "deciles": sf.Quantiles(probs=[i / 10 for i in range(1, 10)], **plain),
        "percentiles": sf.Quantiles(probs=[i / 100 for i in range(1, 100)], **plain),
    }


def once(run: Callable[[], object]) -> float:
    """Seconds of the processor, which other work on the machine does not lengthen as it does the clock."""
    start = time.process_time()
    run()
    return time.process_time() - start


def simulated(rows: int) -> dict[str, float]:
    """First calls, each with a budget of its own, so that nothing is remembered."""
    asked = queries(rows)
    values = np.random.default_rng(1).lognormal(10.4, 0.5, rows)
    found = {}
    for name in ("median", "deciles", "percentiles"):
        times = []
        for epsilon in (1.01, 1.02, 1.03):
            query = replace(asked[name], budget=sf.PureDP(epsilon))
            times.append(once(lambda query=query: query.accuracy(rows, scenario=SALARIES)))
        found[f"accuracy of {name} under a scenario"] = float(np.median(times))
    for name, function in (("median", sf.median), ("deciles", sf.deciles)):
        times = []
        for epsilon in (1.01, 1.02, 1.03):
            release = function(values, bounds=BOUNDS, epsilon=epsilon, interval_share="auto")
            times.append(once(release.interval))
        found[f"interval of {name} with a share"] = float(np.median(times))
    return found


def closed(rows: int) -> list[tuple[str, float]]:
    asked = queries(rows)
    contenders = {f"accuracy of {name}": partial(query.accuracy, rows) for name, query in asked.items()}
    contenders["epsilon for a mean within 100"] = partial(epsilon_for, asked["mean"], error=100, n=rows)
    return list(medians(contenders).items())


def main() -> None:
    short = quick(__doc__)
    for rows in (1_000,) if short else (1_000, 100_000):
        lines = [
            (name, f"{took * 1e3:.2f}", "a search" if "for" in name else verdict(took <= CLOSED, short=short))
            for name, took in closed(rows)
        ]
        show(f"closed forms, {rows:,} rows (goal {CLOSED * 1e3:g} ms)", ("what", "ms", "goal"), lines)
        lines = [
            (name, f"{took:.2f}", verdict(took <= SIMULATED, short=short))
            for name, took in simulated(rows).items()
        ]
        show(f"simulations, {rows:,} rows (goal {SIMULATED:g} s)", ("what", "s", "goal"), lines)
    finish()


if __name__ == "__main__":
    main()
