"""Medians and means of sfumato beside those of diffprivlib and OpenDP, if they are installed.

    python examples/compare/peers.py                # two minutes; pictures in build/compare
    python examples/compare/peers.py --quick -o .   # fewer draws, pictures here

All answer on the same data sets, with the same bounds and the same epsilon, and are judged by the same risks.
Each keeps the neighbour relation that it is calibrated for, and the tables say which. Where a library has no
seed, as OpenDP, two runs differ by chance; the bars in the pictures say by how much.
"""

import argparse
import warnings
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import sfumato as sf
from sfumato import charts, lab
from sfumato.lab import datasets

BOUNDS = (0.0, 200.0)
DATA = datasets.lognormal(3.5, 0.5, bounds=BOUNDS)
EPSILONS = [0.1, 0.2, 0.5, 1.0, 2.0]
SIZES = [100, 1000]
PEERS = {"diffprivlib": "diffprivlib", "opendp": "OpenDP"}


def clamped_mean(values):
    """What all the means estimate."""
    return np.clip(values, *BOUNDS).mean()


def of_sfumato():
    public = {"budget": sf.PureDP(1), "bounds": BOUNDS}
    # Peers spend all of the budget on the median, and nothing on its interval.
    plain = {**public, "verify": 0}
    # Both relations, for peers of either kind. With nulls as the lower bound the number of values is public
    # under substitution, as the peers take it to be.
    relations = {"substitution": {"nulls": "lower"}, "add-remove": {}}
    return {
        "median": {
            f"sfumato, {name}": sf.Quantiles(probs=[0.5], neighbours=name, **plain, **more)
            for name, more in relations.items()
        },
        "mean": {
            f"sfumato, {name}": sf.Mean(neighbours=name, **public, **more) for name, more in relations.items()
        },
    }


def of_diffprivlib():
    from diffprivlib import tools

    def seed(rng):
        return int(rng.integers(2**31))

    def median(values, epsilon, bounds, rng):
        return tools.median(values, epsilon=epsilon, bounds=bounds, random_state=seed(rng))

    def mean(values, epsilon, bounds, rng):
        return tools.mean(values, epsilon=epsilon, bounds=bounds, random_state=seed(rng))

    return {
        "median": {"diffprivlib, substitution": lab.Own(function=median, probs=[0.5])},
        "mean": {"diffprivlib, substitution": lab.Own(function=mean, statistic=clamped_mean)},
    }


def of_opendp():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    atoms = dp.atom_domain(T=float, nan=False)
    candidates = np.linspace(*BOUNDS, 2001).tolist()

    def scaled(make, distance, epsilon):
        """The measurement whose cost at this distance is epsilon."""
        scale = dp.binary_search(lambda s: make(s).map(distance) <= epsilon, bounds=(1e-6, 1e6))
        return make(scale)

    @cache
    def chosen(epsilon):
        # The size stays open, and neighbours differ by one record that is added or removed.
        space = dp.vector_domain(atoms), dp.symmetric_distance()

        def make(scale):
            return space >> dp.m.then_private_quantile(dp.max_divergence(), candidates, 0.5, scale)

        return scaled(make, 1, epsilon)

    @cache
    def averaged(epsilon, size):
        # Of data whose size is public, two neighbours differ by one record removed and one added.
        space = dp.vector_domain(atoms, size=size), dp.symmetric_distance()
        mean = space >> dp.t.then_clamp(bounds=BOUNDS) >> dp.t.then_mean()
        return scaled(lambda scale: mean >> dp.m.then_laplace(scale=scale), 2, epsilon)

    def median(values, epsilon):
        return chosen(epsilon)(values)

    def mean(values, epsilon):
        return averaged(epsilon, len(values))(values)

    return {
        "median": {"OpenDP, add-remove": lab.Own(function=median, probs=[0.5])},
        "mean": {"OpenDP, substitution": lab.Own(function=mean, statistic=clamped_mean)},
    }


def subjects():
    """What is installed, by statistic, and the names of what is not."""
    found, missing = of_sfumato(), []
    for package, make in (("diffprivlib", of_diffprivlib), ("opendp", of_opendp)):
        if find_spec(package) is None:
            missing.append(package)
            continue
        for statistic, more in make().items():
            found[statistic] |= more
    return found, missing


def show(frame):
    """The root mean squared error of each, and how long one answer takes."""
    at = {(row["subject"], row["n"], row["epsilon"], row["risk"]): row for row in frame.iter_rows(named=True)}
    for name in dict.fromkeys(frame["subject"]):
        for n in SIZES:
            roots = [at[name, n, epsilon, "squared"]["mean"] ** 0.5 for epsilon in EPSILONS]
            took = at[name, n, 1.0, "time"]["mean"] * 1e6
            print(f"  {name:26} n = {n:5,}  {''.join(f'{root:9.3f}' for root in roots)}  {took:8,.0f} µs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer draws")
    parser.add_argument("-o", "--output", type=Path, default=Path("build/compare"), help="a folder")
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")  # peers warn of what is no matter here, such as numbers beyond the bounds
    sweep = {"n": SIZES, "epsilon": EPSILONS}
    sets, repeats = (20, 5) if asked.quick else (200, 10)

    found, missing = subjects()
    for package in missing:
        print(f"{PEERS[package]} is not installed and is left out")
    if missing:
        print('both peers are in the extra bench: pip install "sfumato[bench]"')
    for statistic, contenders in found.items():
        risks = lab.run(contenders, data=DATA, sweep=sweep, sets=sets, repeats=repeats, seed=1)
        times = lab.run(contenders, data=DATA, sweep=sweep, repeats=repeats, risks=["time"], seed=1)
        print(f"{statistic}, {DATA.words}, bounds {BOUNDS}: root mean squared error by epsilon, and time")
        print(f"{'epsilon':>40}{''.join(f'{epsilon:9}' for epsilon in EPSILONS)}")
        show(risks.vstack(times))
        picture = lab.picture(risks, along="epsilon", title=f"Private {statistic}s on the same data")
        print(charts.save(picture, asked.output / f"peers-{statistic}.svg"))


if __name__ == "__main__":
    main()
