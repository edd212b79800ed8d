"""Five shifts between a public and a private population, with questions whose true answers are known."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from sfumato.public_data import Features

Table = dict[str, Any]
TRUTH_ROWS = 300_000


@dataclass(frozen=True)
class Shift:
    """Draws of both populations, the features whose ratio of densities is log-linear, and questions."""

    name: str
    public: Callable[[np.random.Generator, int], Table]
    private: Callable[[np.random.Generator, int], Table]
    features: Features
    questions: dict[str, Callable[[Table], np.ndarray]]

    @cache  # noqa: B019  reason: five shifts, kept for the whole run
    def truths(self) -> dict[str, float]:
        """The private expectations, by a sample hundreds of times as large as any in the tests."""
        table = self.private(np.random.default_rng(20_26), TRUTH_ROWS)
        return {name: float(np.mean(question(table))) for name, question in self.questions.items()}

    def __hash__(self) -> int:
        return hash(self.name)


def gaussians(means, sds):
    def draw(generator, rows):
        return {
            f"x{place}": generator.normal(mean, sd, rows)
            for place, (mean, sd) in enumerate(zip(means, sds, strict=True), 1)
        }

    return draw


def correlated(correlation):
    def draw(generator, rows):
        first, other = generator.normal(size=rows), generator.normal(size=rows)
        return {"x1": first, "x2": correlation * first + np.sqrt(1 - correlation**2) * other}

    return draw


CATEGORIES = {"job": ("office", "farm", "shop", "none"), "sex": ("f", "m")}


def labelled(job, sex):
    def draw(generator, rows):
        jobs, sexes = generator.choice(4, rows, p=job), generator.choice(2, rows, p=sex)
        pay = np.array([30.0, 18.0, 22.0, 8.0])[jobs] + 4.0 * sexes + generator.normal(0, 5, rows)
        return {
            "job": np.array(CATEGORIES["job"])[jobs],
            "sex": np.array(CATEGORIES["sex"])[sexes],
            "pay": pay,
        }

    return draw


def heavy(generator, rows):
    """Student's t with 3 degrees of freedom beside an exponential that is cut at 4."""
    cut = -np.log(1 - generator.random(rows) * (1 - np.exp(-4.0)))
    return {"x1": generator.standard_t(3, rows), "x2": cut}


def heavy_tilted(generator, rows):
    """The same, kept with a chance that is log-linear in x1, clamped to [-3, 3], and in x2."""
    kept = [heavy(generator, 4 * rows) for _ in range(3)]
    table = {name: np.concatenate([each[name] for each in kept]) for name in kept[0]}
    chance = np.exp(0.35 * (np.clip(table["x1"], -3, 3) - 3) - 0.5 * table["x2"])
    held = generator.random(len(chance)) < chance
    assert held.sum() >= rows
    return {name: values[held][:rows] for name, values in table.items()}


SHIFTS = {
    each.name: each
    for each in (
        Shift(
            "mean",
            gaussians((0, 0, 0), (1, 1, 1)),
            gaussians((0.8, -0.5, 0), (1, 1, 1)),
            Features(numbers=["x1", "x2", "x3"]),
            {
                "share": lambda t: t["x1"] > 1,
                "square": lambda t: t["x2"] ** 2,
                "mean": lambda t: t["x1"] + t["x3"],
            },
        ),
        Shift(
            "variance",
            gaussians((0, 0), (1, 1)),
            gaussians((0, 0.2), (0.7, 1.1)),
            Features(numbers=["x1", "x2"], squares=True),
            {
                "share": lambda t: np.abs(t["x1"]) > 1,
                "size": lambda t: np.abs(t["x2"]),
                "mean": lambda t: t["x2"],
            },
        ),
        Shift(
            "categories",
            labelled((0.25, 0.25, 0.25, 0.25), (0.5, 0.5)),
            labelled((0.4, 0.1, 0.3, 0.2), (0.35, 0.65)),
            Features(categories=CATEGORIES),
            {
                "pay": lambda t: t["pay"],
                "share": lambda t: t["pay"] > 25,
                "farm": lambda t: (t["job"] == "farm") & (t["sex"] == "f"),
            },
        ),
        Shift(
            "correlation",
            correlated(0.0),
            correlated(0.4),
            Features(numbers=["x1", "x2"], squares=True, interactions=True),
            {
                "both": lambda t: (t["x1"] > 0.5) & (t["x2"] > 0.5),
                "size": lambda t: np.abs(t["x1"] + t["x2"]),
                "product": lambda t: t["x1"] * t["x2"],
            },
        ),
        Shift(
            "heavy tails",
            heavy,
            heavy_tilted,
            Features(numbers={"x1": (-3, 3), "x2": (0, 4)}),
            {
                "share": lambda t: t["x1"] > 1,
                "tail": lambda t: np.abs(t["x1"]) > 3,
                "mean": lambda t: t["x2"],
            },
        ),
    )
}
