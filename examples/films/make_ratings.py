"""A public catalogue of films, and private marks of 800 users, the same at every run.

Neither the films nor the users exist. The seed makes the example reproducible; it has nothing to do with
privacy, and no release of sfumato takes one.
"""

import numpy as np

USERS = 800
SEED = 2207

# Public facts: pace, humour, darkness and romance of each film, each from 0 to 4.
CATALOGUE = {
    "Harbour Lights": (1, 1, 1, 4),
    "The Long Tide": (1, 0, 3, 2),
    "Orchard Street": (1, 3, 0, 3),
    "Night Ferry": (3, 0, 4, 1),
    "Two Left Shoes": (3, 4, 0, 2),
    "Paper Lanterns": (0, 1, 1, 3),
    "The Clockmaker": (2, 1, 2, 1),
    "Red Signal": (4, 0, 3, 0),
    "Summer Cabin": (1, 3, 0, 4),
    "Glass Mountain": (4, 1, 2, 1),
    "A Quiet Debt": (1, 0, 4, 0),
    "Attic Tapes": (0, 0, 4, 0),
}
# How many of a hundred users have seen a film, and how much they like it on average.
_SEEN = (62, 40, 55, 35, 70, 25, 30, 45, 50, 33, 22, 0)
_LIKED = (3.9, 3.1, 3.6, 3.2, 3.4, 3.7, 2.9, 3.0, 3.8, 2.6, 3.3, 3.0)
MARKS = (0, 5)

# What one household watched to the end: a private profile, one evening a row.
_EVENINGS = {
    "Harbour Lights": 44,
    "Summer Cabin": 38,
    "Paper Lanterns": 31,
    "Orchard Street": 22,
    "Two Left Shoes": 15,
}
PROFILE = tuple(film for film, evenings in _EVENINGS.items() for _ in range(evenings))


def ratings() -> dict[str, np.ndarray]:
    """For each film the mark of every user, from 0 to 5, and NaN from those who gave none."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    table = {}
    for film, seen, liked in zip(CATALOGUE, _SEEN, _LIKED, strict=True):
        marks = np.clip(np.rint(liked + 1.6 * (rng.random(USERS) + rng.random(USERS) - 1) * 2), *MARKS)
        table[film] = np.where(100 * rng.random(USERS) < seen, marks, np.nan)
    # One user alone has seen this one, and is delighted.
    table["Attic Tapes"][17] = 5.0
    return table
