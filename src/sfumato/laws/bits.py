"""Where randomness comes from: the only file of the package that makes any.

Bits of the system keep no state between calls, so a fork, a thread or a restored virtual machine cannot
replay them. Bits of a request can be replayed by whoever holds its secret: the ledger, until the outcome is
stored. Seeded bits are a separate type with ``private = False``: what they draw is marked as not private, and
no ledger takes it.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache
from hashlib import shake_256
from itertools import count as counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.checks import shown, whole
from sfumato.errors import InvalidParameter, MissingExtra

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]

# Below this many bytes setting up AES costs more than asking the kernel.
_KERNEL_BYTES = 4096
# One key encrypts at most this much; 256 KiB is far from any birthday bound on 128-bit counter blocks.
_BLOCK_BYTES = 1 << 18
_ZEROS = bytes(_BLOCK_BYTES)


class Bits(ABC):
    """A source of independent uniform bits.

    Guarantee:
        `integer`, `below` and `below_each` are exactly uniform if the words are.

    >>> bits: Bits = SystemBits()
    >>> bits.private, bits.below(6) in range(6)
    (True, True)
    """

    private: ClassVar[bool]

    @abstractmethod
    def words(self, count: int) -> Words:
        """`count` independent uniform 64-bit words."""

    def integer(self, width: int) -> int:
        """A uniform integer of `width` bits, the first word on top.

        >>> 0 <= SystemBits().integer(100) < 2**100
        True
        """
        count = -(-width // 64)
        joined = int.from_bytes(self.words(count).astype(">u8").tobytes(), "big")
        return joined >> (64 * count - width)

    def below(self, bound: int) -> int:
        """A uniform integer in 0..bound-1, for a positive bound of any size.

        >>> SystemBits().below(1)
        0
        """
        if bound < 1:
            raise InvalidParameter(f"bound must be positive, got bound={shown(bound)}")
        width = (bound - 1).bit_length()
        while True:
            value = self.integer(width)
            if value < bound:
                return value

    def below_each(self, bound: int | Integers, count: int) -> Integers:
        """`count` uniform integers in 0..bound-1; an array gives each place its own bound.

        >>> bool((SystemBits().below_each(6, 1000) < 6).all())
        True
        """
        bounds = np.broadcast_to(np.asarray(bound, dtype=np.int64), (count,))
        if count and bounds.min() < 1:
            raise InvalidParameter("bound must be positive in every place")
        moduli = bounds.astype(np.uint64)
        # Words under 2^64 mod bound are redrawn; the rest are a whole number of copies of 0..bound-1.
        spare = (np.uint64(0) - moduli) % moduli
        values = self.words(count)
        again = np.flatnonzero(values < spare)
        if again.size:
            values = values.copy()
            while again.size:
                values[again] = self.words(again.size)
                again = again[values[again] < spare[again]]
        return (values % moduli).astype(np.int64)


class SystemBits(Bits):
    """Bits of the operating system's generator; no state of our own, safe across forks.

    Guarantee:
        Words are those of the kernel's generator: indistinguishable from uniform to any feasible adversary,
        and never repeated by a fork, a thread or a restored machine. docs/proofs/samplers.md.

    >>> SystemBits().words(3).shape
    (3,)
    """

    private = True

    def words(self, count: int) -> Words:
        """`count` words from the kernel."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


class KeyedBits(Bits):
    """AES-256 in counter mode, with a fresh key from the kernel for every 256 KiB; about twice as fast.

    Guarantee:
        Words are indistinguishable from uniform if AES-256 is a pseudo-random permutation. No key
        outlives a call, so there is nothing to rewind, share across a fork, or leak later.

    Raises:
        MissingExtra: the package `cryptography` is not installed.

    >>> KeyedBits().words(1000).shape
    (1000,)
    """

    private = True

    def __init__(self) -> None:
        self._encryptor = _aes_counter_mode()

    def words(self, count: int) -> Words:
        """`count` words; small requests go straight to the kernel."""
        size = 8 * count
        if size < _KERNEL_BYTES:
            return np.frombuffer(os.urandom(size), dtype=np.uint64)
        if size <= _BLOCK_BYTES:
            return np.frombuffer(self._block(size), dtype=np.uint64)
        starts = range(0, size, _BLOCK_BYTES)
        stream = b"".join(self._block(min(_BLOCK_BYTES, size - start)) for start in starts)
        return np.frombuffer(stream, dtype=np.uint64)

    def _block(self, size: int) -> bytes:
        block: bytes = self._encryptor(os.urandom(32)).update(
            _ZEROS if size == _BLOCK_BYTES else _ZEROS[:size]
        )
        return block


@lru_cache(maxsize=1)
def _aes_counter_mode() -> Callable[[bytes], Any]:
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES
        from cryptography.hazmat.primitives.ciphers.modes import CTR
    except ImportError as error:
        raise MissingExtra('KeyedBits needs the package cryptography: pip install "sfumato[fast]"') from error
    # A key is used for one block only, so the counter may always start at zero.
    start = CTR(bytes(16))
    return lambda key: Cipher(AES(key), start).encryptor()


class RequestBits(Bits):
    """Bits that follow from the secret of one charged request: drawing again gives the same outcome.

    A process that is stopped between the draw and the commit of its outcome leaves the request charged and
    unanswered. The next process draws the very same outcome, so that nobody gains a second draw by stopping
    processes.

    Guarantee:
        Words are indistinguishable from uniform to whoever does not hold the secret, if SHAKE-256 is a
        pseudo-random function. docs/proofs/samplers.md.

    Args:
        secret: 32 bytes of the system's bits, which the ledger deletes once the outcome is stored.
        content: what is drawn from; other content gives independent bits, so that a difference between two
            outcomes never cancels the noise.

    >>> bool((RequestBits(bytes(32), b"rows").words(4) == RequestBits(bytes(32), b"rows").words(4)).all())
    True
    """

    private = True

    def __init__(self, secret: bytes, content: bytes) -> None:
        if len(secret) != 32:
            raise InvalidParameter(f"secret must be 32 bytes, got {len(secret)}")
        # The secret has a fixed length, so that no two pairs of arguments are absorbed alike.
        self._key = shake_256(secret + content).digest(32)
        self._calls = counter()

    def words(self, count: int) -> Words:
        """The next `count` words."""
        call = next(self._calls).to_bytes(8, "big")
        return np.frombuffer(shake_256(self._key + call).digest(8 * count), dtype=np.uint64)


class SeededBits(Bits):
    """Reproducible bits for tests and the lab; never for a release.

    Guarantee:
        The same seed gives the same words. No privacy: `private` is False, what is drawn from them says so,
        and no ledger takes it.

    >>> bool((SeededBits(7).words(4) == SeededBits(7).words(4)).all())
    True
    """

    private = False

    def __init__(self, seed: int) -> None:
        # The one generator of the package; imported here so that releases never load it.
        from numpy.random import Philox  # noqa: TID251  reason: seeded bits are for tests and the lab

        self._stream = Philox(whole("seed", seed, least=0, most=2**128 - 1))

    def words(self, count: int) -> Words:
        """The next `count` words of the seeded stream."""
        raw: Words = self._stream.random_raw(count)
        return raw


def default_bits() -> Bits:
    """The fastest private bits at hand: keyed if `cryptography` is installed, else the system's.

    Guarantee:
        Private bits, never seeded ones.

    >>> default_bits().private
    True
    """
    try:
        return KeyedBits()
    except MissingExtra:
        return SystemBits()
