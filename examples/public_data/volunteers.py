"""A register that must stay private, and volunteers whose answers are public: weights, and what they cost.

Everybody in the register has an age, an income and an education. A survey of volunteers has these too, and
asked for more: they are younger and richer than the register. One release of the register's means gives
weights on the volunteers, and then any question to them is answered for the register, at no further cost.

    python examples/public_data/volunteers.py
"""

import numpy as np

from sfumato.laws import SeededBits
from sfumato.public_data import Features, Logistic, Weights, weights

EDUCATION = ("school", "trade", "university")


def people(
    generator: np.random.Generator, rows: int, *, age: float, shares: tuple[float, ...]
) -> dict[str, np.ndarray]:
    """Fictional people: an age, an education, an income that follows from both, and hours of sport."""
    ages = generator.normal(age, 14, rows).clip(18, 95)
    education = generator.choice(3, rows, p=shares)
    income = np.exp(generator.normal(7.4 + 0.25 * education, 0.4, rows))
    sport = generator.poisson(np.exp(1.9 - ages / 45 + 0.15 * education))
    return {"age": ages, "education": np.array(EDUCATION)[education], "income": income, "sport": sport * 1.0}


def survey() -> Weights:
    """Weights on volunteers for a register, and some questions."""
    generator = np.random.default_rng(7)
    register = people(generator, 20_000, age=52, shares=(0.4, 0.4, 0.2))
    volunteers = people(generator, 3_000, age=41, shares=(0.2, 0.35, 0.45))
    features = Features(numbers={"age": (18, 95)}, categories={"education": EDUCATION}, squares=True)
    # An example is run again and again, and shows the same numbers; a release never takes seeded bits.
    found = weights(
        register, volunteers, features=features, epsilon=0.5, neighbours="substitution", bits=SeededBits(7)
    )
    print(found)
    print()
    print("                          volunteers  weighted  register  95 % interval")
    active = volunteers["sport"] >= 4
    for words, asked, truth in (
        ("hours of sport", volunteers["sport"], register["sport"].mean()),
        ("four hours or more", active, (register["sport"] >= 4).mean()),
        ("income", volunteers["income"], register["income"].mean()),
    ):
        estimate = found.mean(asked)
        low, high = estimate.interval(0.95)
        print(f"{words:24}{asked.mean():12.3f}{estimate.value:10.3f}{truth:10.3f}  {low:.3f} to {high:.3f}")
    median = found.quantile("income", 0.5)
    low, high = median.interval()
    truth = np.median(register["income"])
    print(
        f"{'median income':24}{np.median(volunteers['income']):12.3f}{median.value:10.3f}{truth:10.3f}"
        f"  {low:.3f} to {high:.3f}"
    )
    print()
    print("where the error of the first number comes from:")
    print(found.mean(volunteers["sport"]))
    return found


def toy(runs: int = 20, rows: int = 4_000, epsilon: float = 0.5) -> dict[str, float]:
    """Root mean squared errors of a share: three Gaussian columns, the private ones shifted."""
    truth = 0.42074  # the chance that a normal number is above 0.2
    errors: dict[str, list[float]] = {"unweighted": [], "tilting": [], "logistic": []}
    for run in range(runs):
        generator = np.random.default_rng(run)
        public = {name: generator.normal(size=rows) for name in ("a", "b", "c")}
        private = {
            name: generator.normal(shift, size=rows) for name, shift in (("a", 0.8), ("b", -0.5), ("c", 0.0))
        }
        share = public["a"] > 1
        errors["unweighted"].append(share.mean() - truth)
        for method in ("tilting", "logistic"):
            asked = "tilting" if method == "tilting" else Logistic(penalty=0.01)
            found = weights(
                private,
                public,
                features=["a", "b", "c"],
                epsilon=epsilon,
                neighbours="substitution",
                method=asked,
                bits=SeededBits(run),
            )
            errors[method].append(found.mean(share).value - truth)
    return {name: float(np.sqrt(np.mean(np.square(each)))) for name, each in errors.items()}


def main() -> None:
    survey()
    print()
    print("errors of a share over 20 runs, 4,000 private and public rows, epsilon 0.5:")
    found = toy()
    for name, error in found.items():
        print(f"  {name:12}{error:.4f}  {error / found['unweighted']:.3f} of the error without weights")


if __name__ == "__main__":
    main()
