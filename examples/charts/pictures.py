"""Draw the pictures of docs/charts.md: `python examples/charts/pictures.py docs/pictures`.

The data are fictional. Released numbers are drawn anew each time; curves of errors are always the same.
"""

import sys
from pathlib import Path

import sfumato as sf
from sfumato.accuracy import Scenario
from sfumato.laws import DiscreteLaplace, SeededBits

PAY = Scenario.named("lognormal", mu=10.3, sigma=0.45)
AGES = Scenario.named("uniform", low=18, high=90)
FACTS = {"neighbours": "substitution", "nulls": "lower", "rows": 2000}


def charts():
    """Every picture by its name."""
    data = sf.Dataset(
        {"pay": PAY.typical(2000).round(), "age": Scenario.named("normal", mean=44, sd=13).typical(2000)},
        unit="row",
        neighbours="substitution",
        schema={"pay": sf.Field(bounds=(0, 150_000)), "age": sf.Field(bounds=(15, 75))},
    )
    session = sf.Session(data, budget=sf.PureDP(4))
    one = sf.PureDP(1)
    tenths = [i / 10 for i in range(1, 10)]
    yield "mean", session.answer(sf.Mean(column="age", budget=one)).plot()
    deciles = sf.Quantiles(column="pay", probs=tenths, budget=one, nulls="lower")
    yield "deciles", session.answer(deciles).plot()
    yield "histogram", session.answer(sf.Histogram(column="age", bins=20, bounds=(15, 75), budget=one)).plot()

    mean = sf.Mean(column="age", budget=one, bounds=(18, 90), **FACTS)
    yield "errors-mean", sf.accuracy.plot(mean, scenario=AGES)
    median = sf.Quantiles(column="age", probs=(0.5,), budget=one, bounds=(18, 90), verify=0, **FACTS)
    yield "errors-median", sf.accuracy.plot(median, scenario=AGES)
    share = sf.InverseProportion(column="age", budget=one, between=(18, 30), **FACTS)
    yield "errors-proportion", sf.accuracy.plot(share)
    yield "comparison", comparison()


def comparison():
    """The noise of a count: its exact variance, and what 400 draws show of it."""
    rows = []
    for epsilon in (0.25, 0.5, 1.0, 2.0):
        noise = DiscreteLaplace(1 / epsilon)
        squares = noise.sample(SeededBits(7), size=400) ** 2
        mean, se = squares.mean(), squares.std() / 20
        point = {"curve": "discrete\nLaplace", "x": epsilon}
        rows.append({**point, "kind": "exact", "y": noise.variance})
        rows.append({**point, "kind": "simulated", "y": mean, "low": mean - 2 * se, "high": mean + 2 * se})
    return sf.charts.comparison(
        rows, title="Noise of a count", along="epsilon", unit="mean squared error", log_x=True, log_y=True
    )


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, chart in charts():
        print(sf.charts.save(chart, folder / f"{name}.svg"))
