"""Small random tables with ties, single classes, single values and nulls, drawn from a seed."""

import numpy as np

WORDS = ("ash", "birch", "cedar", "élan", "fir", "oak")


def random_table(seed, *, nulls=False):
    """Two quasi-identifiers and two sensitive columns, one of numbers and one of text, as lists."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    # One case of five has a single class; others have few or many.
    quasi = rng.integers(0, 1 if seed % 5 == 0 else int(rng.integers(2, 5)), (2, n))
    numbers = rng.choice([0, 1, 2.5, 10, -3, 7], int(rng.integers(1, 7)), replace=False)
    words = rng.choice(WORDS, int(rng.integers(1, 7)), replace=False)
    # Some values are far more frequent than others.
    pay = numbers[np.minimum(rng.geometric(0.4, n) - 1, len(numbers) - 1)].tolist()
    tree = words[np.minimum(rng.geometric(0.4, n) - 1, len(words) - 1)].tolist()
    if nulls:
        pay = [None if lost else value for value, lost in zip(pay, rng.random(n) < 0.2, strict=True)]
        tree = [None if lost else value for value, lost in zip(tree, rng.random(n) < 0.2, strict=True)]
    return {"age": quasi[0].tolist(), "sex": [WORDS[i] for i in quasi[1]], "pay": pay, "tree": tree}


QUASI = ("age", "sex")
SENSITIVE = ("pay", "tree")
