"""Public places for the records of one cell: the k-th, from 1, goes where the reversed bits of k say.

The first record is thus in the middle of its cell.
One more record takes one more place and moves no other, so that both neighbour relations are kept without any
randomness; and however many there are, they lie evenly.
"""

import numpy as np

from sfumato.grid import Ints


def spread(order: Ints, count: Ints, bits: int) -> Ints:
    """The place of the `order`-th smallest, from 0, of the first `count` places out of 2**bits.

    >>> spread(np.arange(5), np.full(5, 5), 3).tolist()  # places 4, 2, 6, 1, 5 in order
    [1, 2, 4, 5, 6]
    """
    # With a record of number 0, whose place 0 is the smallest, numbers begin at 0.
    count = count + 1
    left = order + 1
    number = np.zeros_like(left)  # the record's own number, found from its lowest bit up
    place = np.zeros_like(left)
    # Beyond the bits that their numbers need, all have the same.
    for i in range(min(bits, int(count.max(initial=0)).bit_length())):
        # Of the records whose numbers begin like this one, those with the next bit 0 have the lower places.
        lower = _alike(number, count, i + 1)
        upper = left >= lower
        left -= np.where(upper, lower, 0)
        number += np.where(upper, 1 << i, 0)
        place += np.where(upper, 1 << (bits - 1 - i), 0)
    return place


def spread_below(part: int, count: int, bits: int) -> int:
    """How many of the first `count` records have a place below `part`, which may be one past the last.

    >>> [spread_below(part, 5, 3) for part in range(9)]
    [0, 0, 1, 2, 2, 3, 4, 5, 5]
    """
    if part >> bits:
        return count
    number = below = 0
    for i in range(bits):
        if part >> (bits - 1 - i) & 1:
            below += int(_alike(np.int64(number), np.int64(count + 1), i + 1))
            number |= 1 << i
    return max(below - 1, 0)


def _alike(number: Ints | np.int64, count: Ints | np.int64, bits: int) -> Ints:
    """How many of the numbers below `count` have the same lowest bits as `number`."""
    return np.asarray((count - number + (1 << bits) - 1) >> bits)
