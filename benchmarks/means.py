"""One private mean, variance and histogram of a NumPy array, beside NumPy's own and the peers, in one run.

The peers answer at epsilon 1 with the same bounds. diffprivlib adds floating-point noise, which the attack of
docs/proofs/samplers.md breaks; OpenDP's mean needs the public size, as ours under substitution.
"""

import warnings
from collections.abc import Callable

import numpy as np
from timing import medians, quick, show

import sfumato as sf

BOUNDS = (0.0, 250_000.0)
Contenders = dict[str, Callable[[], object]]


def ours(values: np.ndarray) -> dict[str, Contenders]:
    public = {"bounds": BOUNDS, "epsilon": 1, "nulls": "lower"}
    private = {"bounds": BOUNDS, "epsilon": 1, "neighbours": "add-remove"}
    return {
        "mean": {
            "numpy (not private)": lambda: np.clip(values, *BOUNDS).mean(),
            "sfumato, substitution": lambda: sf.mean(values, **public),
            "sfumato, add-remove": lambda: sf.mean(values, **private),
        },
        "variance": {
            "numpy (not private)": lambda: np.clip(values, *BOUNDS).var(),
            "sfumato, substitution": lambda: sf.variance(values, **public),
            "sfumato, add-remove": lambda: sf.variance(values, **private),
        },
        "histogram of 100 bins": {
            "numpy (not private)": lambda: np.histogram(values, bins=100, range=BOUNDS),
            "sfumato, substitution": lambda: sf.histogram(values, bins=100, **public),
        },
    }


def diffprivlib(values: np.ndarray) -> dict[str, Contenders]:
    try:
        from diffprivlib import tools
    except ImportError:
        return {}
    options = {"epsilon": 1.0}
    return {
        "mean": {"diffprivlib": lambda: tools.mean(values, bounds=BOUNDS, **options)},
        "variance": {"diffprivlib": lambda: tools.var(values, bounds=BOUNDS, **options)},
        "histogram of 100 bins": {
            "diffprivlib": lambda: tools.histogram(values, bins=100, range=BOUNDS, **options)
        },
    }


def opendp(values: np.ndarray) -> dict[str, Contenders]:
    try:
        import opendp.prelude as dp
    except ImportError:
        return {}
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=len(values))
    space = domain, dp.symmetric_distance()
    clamped = space >> dp.t.then_clamp(bounds=BOUNDS)
    spread = BOUNDS[1] / len(values)
    mean = clamped >> dp.t.then_mean() >> dp.m.then_laplace(scale=spread)
    variance = clamped >> dp.t.then_variance() >> dp.m.then_laplace(scale=spread * BOUNDS[1])
    return {"mean": {"opendp": lambda: mean(values)}, "variance": {"opendp": lambda: variance(values)}}


def main() -> None:
    warnings.simplefilter("ignore")
    for n in (10**3,) if quick(__doc__) else (10**3, 10**6):
        values = np.random.default_rng(1).normal(100_000, 30_000, n)
        for statistic, contenders in ours(values).items():
            for peer in (diffprivlib(values), opendp(values)):
                contenders |= peer.get(statistic, {})
            times = medians(contenders)
            base = times["numpy (not private)"]
            rows = [(name, f"{took * 1e3:.3f}", f"{took / base:.1f}") for name, took in times.items()]
            show(f"{statistic} of {n:,} rows", ("what", "ms", "x numpy"), rows)


if __name__ == "__main__":
    main()
