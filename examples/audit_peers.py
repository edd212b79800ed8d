"""The black-box audit and the attacks of sfumato.audit, on sfumato and on whichever peers are installed.

    python examples/audit_peers.py           # a few minutes
    python examples/audit_peers.py --quick   # a few draws, which show that it runs and prove nothing

Peers that are not installed are left out: opendp, diffprivlib, python-dp. Every mechanism claims epsilon 1.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import sfumato as sf
from sfumato.audit import attack, statistical

VALUES = 0.0, 1.0  # two numbers one apart
COLUMNS = np.array([1.0, 0.25, 0.5, 0.75, 0.0]), np.array([1.0, 0.25, 0.5, 0.75, 1.0])


class Case(NamedTuple):
    """A mechanism and two inputs that it must not tell apart at epsilon 1."""

    name: str
    mechanism: Callable[..., Any]
    left: Any
    right: Any


def of_sfumato() -> Iterator[Case]:
    yield Case("sfumato sum", lambda x: sf.sum(x, bounds=(0, 1), epsilon=1).value, *COLUMNS)
    yield Case("sfumato mean", lambda x: sf.mean(x, bounds=(0, 1), epsilon=1).value, *COLUMNS)
    yield Case("sfumato median", lambda x: sf.median(x, bounds=(0, 1), epsilon=1).value, *COLUMNS)


def of_numpy() -> Iterator[Case]:
    rng = np.random.default_rng()
    yield Case("NumPy Laplace (control)", lambda x: x + rng.laplace(), *VALUES)
    yield Case("NumPy mean (control)", lambda x: np.clip(x, 0, 1).mean() + rng.laplace(scale=0.2), *COLUMNS)


def of_diffprivlib() -> Iterator[Case]:
    from diffprivlib import mechanisms, tools

    noise = mechanisms.Laplace(epsilon=1, sensitivity=1)
    yield Case("diffprivlib Laplace", noise.randomise, *VALUES)

    def mean(x: Any, random_state: Any = None) -> Any:
        return tools.mean(x, epsilon=1, bounds=(0, 1), random_state=random_state)

    def median(x: Any, random_state: Any = None) -> Any:
        return tools.median(x, epsilon=1, bounds=(0, 1), random_state=random_state)

    yield Case("diffprivlib mean", mean, *COLUMNS)
    yield Case("diffprivlib median", median, *COLUMNS)


def of_opendp() -> Iterator[Case]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    whole = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=1.0)
    real = dp.m.make_laplace(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=1.0)
    yield Case("opendp Laplace, integers", whole, 0, 1)
    yield Case("opendp Laplace, floats", real, *VALUES)


def of_pydp() -> Iterator[Case]:
    from pydp.algorithms.numerical_mechanisms import LaplaceMechanism

    noise = LaplaceMechanism(epsilon=1.0, sensitivity=1.0)
    yield Case("python-dp Laplace", lambda x: noise.add_noise(float(x)), *VALUES)


def cases() -> Iterator[Case]:
    for make in (of_sfumato, of_numpy, of_diffprivlib, of_opendp, of_pydp):
        try:
            yield from make()
        except ImportError as error:
            print(f"({error.name} is not installed)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few draws, for a smoke test")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")  # peers warn of what is measured here
    for name, mechanism, left, right in cases():
        print(f"{name}, epsilon 1")
        found = statistical(mechanism, left, right, epsilon=1, samples=100 if quick else 20_000)
        print(f"  draws: {found}")
        for result in attack(mechanism, left, right, epsilon=1, samples=100 if quick else 5_000):
            print(f"  {result}")


if __name__ == "__main__":
    main()
