"""Two mechanisms to audit from the command line: one keeps its claim, the other does not.

    sfumato audit noisy:count --left '[1, 1, 1]' --right '[1, 1]' --epsilon 1
    sfumato audit noisy:careless_count --left '[1, 1, 1]' --right '[1, 1]' --epsilon 1

A function takes a data set and returns one answer. `draws` takes a size too and returns that many, which
is faster: `--batched`.
"""

from fractions import Fraction

from sfumato.laws import DiscreteLaplace, SystemBits
from sfumato.mechanisms import LaplaceMechanism

BITS = SystemBits()
THREE, TWO = [1, 1, 1], [1, 1]  # neighbours: one person less


def count(data):
    """How many there are, with the noise that an epsilon of 1 needs."""
    return LaplaceMechanism(sensitivity=1, scale=Fraction(1)).law(len(data)).sample(BITS)


def careless_count(data):
    """The same with half the noise: it costs an epsilon of 2."""
    return LaplaceMechanism(sensitivity=1, scale=Fraction(1, 2)).law(len(data)).sample(BITS)


def draws(data, size):
    """Many answers of `count` at once."""
    return len(data) + DiscreteLaplace(Fraction(1)).sample(BITS, size)
