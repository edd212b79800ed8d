"""SipHash-2-4 of short rows of 64-bit words, many rows at once."""

from collections.abc import Sequence

import numpy as np

from sfumato.laws.bits import Words

# So many rows at a time stay in a core's cache.
_ROWS = 2**14
_START = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)


def siphash(key: bytes, columns: Sequence[Words]) -> Words:
    """The SipHash-2-4 of every row of some columns of words, under a key of 16 bytes.

    References:
        [AB12].

    >>> row = [np.array([word], dtype=np.uint64) for word in (0x0706050403020100, 0x0F0E0D0C0B0A0908)]
    >>> hex(siphash(bytes(range(16)), row)[0])
    '0x3f2acc7f57c29bdb'
    """
    found = np.empty(len(columns[0]), dtype=np.uint64)
    for start in range(0, len(found), _ROWS):
        stop = start + _ROWS
        found[start:stop] = _rows(key, [column[start:stop] for column in columns])
    return found


def _rows(key: bytes, columns: Sequence[Words]) -> Words:
    halves = (int.from_bytes(key[:8], "little"), int.from_bytes(key[8:16], "little"))
    state = [
        np.full(len(columns[0]), start ^ halves[i % 2], dtype=np.uint64) for i, start in enumerate(_START)
    ]
    # The last word of a message holds its length in bytes on top.
    length = np.full(len(columns[0]), (8 * len(columns) % 256) << 56, dtype=np.uint64)
    for word in (*columns, length):
        state[3] ^= word
        _mix(state, 2)
        state[0] ^= word
    state[2] ^= np.uint64(0xFF)
    _mix(state, 4)
    mixed: Words = state[0] ^ state[1] ^ state[2] ^ state[3]
    return mixed


def _mix(state: list[Words], rounds: int) -> None:
    a, b, c, d = state
    for _ in range(rounds):
        a += b
        _turn(b, 13)
        b ^= a
        _turn(a, 32)
        c += d
        _turn(d, 16)
        d ^= c
        a += d
        _turn(d, 21)
        d ^= a
        c += b
        _turn(b, 17)
        b ^= c
        _turn(c, 32)


def _turn(words: Words, places: int) -> None:
    high = words >> np.uint64(64 - places)
    words <<= np.uint64(places)
    words |= high
