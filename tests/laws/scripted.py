"""Bits that say what a test tells them to."""

from collections.abc import Iterable

import numpy as np

from sfumato.laws.bits import Bits, Words


class ScriptedBits(Bits):
    """Replays the given words, and fails when asked for more."""

    private = False

    def __init__(self, words: Iterable[int]) -> None:
        self._script = [int(word) for word in words]
        self.used = 0

    def words(self, count: int) -> Words:
        if self.used + count > len(self._script):
            raise AssertionError("the script is too short")
        taken = self._script[self.used : self.used + count]
        self.used += count
        return np.array(taken, dtype=np.uint64)

    @property
    def left(self) -> int:
        return len(self._script) - self.used


class EveryWord(Bits):
    """Gives prepared arrays of candidates, then answers every question for more bits with one pattern.

    A prefix p continued by the pattern for ever is one real number, so what the sampler must answer can be
    computed independently, word by word.
    """

    private = False

    def __init__(self, arrays: Iterable[Words], pattern: int) -> None:
        self._arrays = list(arrays)
        self.pattern = pattern

    def words(self, count: int) -> Words:
        array = self._arrays.pop(0)
        assert len(array) == count
        return array

    def integer(self, width: int) -> int:
        return self.pattern >> (64 - width)
