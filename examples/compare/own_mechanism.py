"""Two mechanisms of your own beside those of sfumato: a function that draws, and a law.

    python examples/compare/own_mechanism.py                # a minute or two; pictures in build/compare
    python examples/compare/own_mechanism.py --quick -o .   # fewer draws, pictures here

Both are private under substitution of one record, at the epsilon that they are given, up to floating point.
They are here to be compared. To see what an audit says of a mechanism: examples/audit_own.
"""

import argparse
from functools import reduce
from itertools import product
from pathlib import Path

import numpy as np

import sfumato as sf
from sfumato import charts, lab
from sfumato.lab import datasets

QUARTILES = (0.25, 0.5, 0.75)
CELLS, CANDIDATES = 32, 21
BOUNDS = (0, 200)


def noisy_histogram(rows, size, epsilon, bounds, rng, probs=QUARTILES):
    """Quantiles from counts with Laplace noise: a record that moves changes two counts by one."""
    width = (bounds[1] - bounds[0]) / CELLS
    cells = np.clip((rows - bounds[0]) // width, 0, CELLS - 1).astype(int)
    counts = np.stack([np.bincount(row, minlength=CELLS) for row in cells])
    noise = rng.laplace(scale=2 / epsilon, size=(len(rows), size, CELLS))
    reached = np.cumsum(counts[:, None] + noise, axis=2)
    # The first cell in which so many records are reached; the last one if noise swallowed them.
    short = [(reached < float(order) * rows.shape[1]).cumprod(axis=2).sum(axis=2) for order in probs]
    return bounds[0] + width * (np.stack(short, axis=2).clip(max=CELLS - 1) + 0.5)


def few_candidates(values, epsilon, bounds, probs=QUARTILES):
    """Quantiles as a law: the exponential mechanism on a few places, for each with its part of epsilon."""
    places = np.linspace(*bounds, CANDIDATES)
    ranks = np.searchsorted(np.sort(values), places)
    off = [np.abs(ranks - float(order) * len(values)) for order in probs]
    chances = [np.exp(-epsilon / (2 * len(probs)) * distance) for distance in off]
    likely = reduce(np.multiply.outer, [each / each.sum() for each in chances])
    return lab.Points(np.sort(list(product(places, repeat=len(probs))), axis=1), likely.ravel())


def in_a_figure(effort):
    """Figure 11 of the report of 2024, with two curves more."""
    histogram = lab.Own(function=noisy_histogram, probs=QUARTILES, batched=True)
    candidates = lab.Own(function=few_candidates, probs=QUARTILES)
    return lab.draw("11", effort=effort, own={"my histogram": histogram, "my candidates": candidates})


def in_an_experiment(sets, repeats):
    """Medians beside that of sfumato, on data of your choice."""
    about = {"bounds": BOUNDS, "neighbours": "substitution", "verify": 0}
    ours = sf.Quantiles(probs=[0.5], method="single", budget=sf.PureDP(1), **about)
    one = {"probs": [0.5], "settings": {"probs": [0.5]}}
    return lab.run(
        {
            "sfumato": ours,
            "my histogram": lab.Own(function=noisy_histogram, batched=True, **one),
            "my candidates": lab.Own(function=few_candidates, **one),
        },
        data=datasets.lognormal(3.5, 0.5, bounds=BOUNDS),
        sweep={"n": [100, 1000], "epsilon": [0.05, 0.1, 0.2, 0.5, 1, 2]},
        sets=sets,
        repeats=repeats,
        seed=1,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer draws")
    parser.add_argument("-o", "--output", type=Path, default=Path("build/compare"), help="a folder")
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)

    frame = in_an_experiment(sets=20 if asked.quick else 200, repeats=20)
    for row in frame.iter_rows(named=True):
        exact = "not known" if row["exact"] is None else f"{row['exact']:9.3f}"
        place = f"{row['subject']:13}  n = {row['n']:4}  epsilon = {row['epsilon']:4}"
        print(f"{place}  exact {exact}  simulated {row['mean']:9.3f} ± {row['noise_se']:.3f}")
    picture = lab.picture(frame, along="epsilon", title="Medians of our own, and of sfumato")
    print(charts.save(picture, asked.output / "own-median.svg"))

    drawn = in_a_figure("quick" if asked.quick else "full")
    for path in drawn.save(asked.output):
        print(path)
    print(drawn)


if __name__ == "__main__":
    main()
