"""Definitions of anonymity row by row and in fractions: slow, and too plain to be wrong in the same way."""

import math
from collections import Counter
from fractions import Fraction


def classes(table, quasi):
    """The rows of each class by what they show."""
    found = {}
    for row in range(len(next(iter(table.values())))):
        found.setdefault(tuple(table[name][row] for name in quasi), []).append(row)
    return found


def distinct(counts):
    """The number of values."""
    return sum(count > 0 for count in counts)


def entropy_met(counts, least):
    """Whether n^n >= l^n times the product of c^c, in integers."""
    n, least = sum(counts), Fraction(least)
    right = least.numerator**n * math.prod(count**count for count in counts if count)
    return n**n * least.denominator**n >= right


def recursive_met(counts, c, place):
    """Whether r_1 < c (r_l + ... + r_m)."""
    falling = sorted(counts, reverse=True)
    return falling[0] < Fraction(c) * sum(falling[place - 1 :])


def shares(counts):
    """Counts over their sum."""
    return [Fraction(count, sum(counts)) for count in counts]


def ordered_distance(counts, total):
    """The earth mover's distance with the values at 0, 1/(m-1), ..., 1."""
    moved, running = Fraction(0), Fraction(0)
    for q, p in zip(shares(counts), shares(total), strict=True):
        running += q - p
        moved += abs(running)
    return moved / max(len(total) - 1, 1)


def equal_distance(counts, total):
    """Half the sum of the differences."""
    return sum(abs(q - p) for q, p in zip(shares(counts), shares(total), strict=True)) / 2


def sensitive_counts(table, quasi, column):
    """The counts of the values by class and in the table, in the order of the values; null is the last."""
    values = sorted(set(table[column]), key=lambda value: (value is None, value if value is not None else 0))
    whole = Counter(table[column])
    by_class = []
    for rows in classes(table, quasi).values():
        held = Counter(table[column][row] for row in rows)
        by_class.append([held[value] for value in values])
    return by_class, [whole[value] for value in values]
