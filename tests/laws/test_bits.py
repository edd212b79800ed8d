import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2
from tests.laws.fit import FALSE_ALARM
from tests.laws.scripted import ScriptedBits

from sfumato.errors import InvalidParameter, MissingExtra
from sfumato.laws import KeyedBits, SeededBits, SystemBits, default_bits
from sfumato.laws import bits as bits_module

PRIVATE = [SystemBits, KeyedBits]
COUNTS = [0, 1, 16, 511, 512, 513, 32_768, 32_769, 100_000]


@pytest.mark.parametrize("kind", PRIVATE)
@pytest.mark.parametrize("count", COUNTS)
def test_any_number_of_words_can_be_drawn(kind, count):
    words = kind().words(count)
    assert words.shape == (count,)
    assert words.dtype == np.uint64
    assert len(np.unique(words)) == count


@pytest.mark.parametrize("kind", PRIVATE)
def test_private_bits_say_so_and_seeded_bits_do_not(kind):
    assert kind.private
    assert kind().private
    assert not SeededBits(1).private
    assert not isinstance(SeededBits(1), kind)


@pytest.mark.parametrize("kind", [*PRIVATE, lambda: SeededBits(5)])
@pytest.mark.parametrize("count", [400, 200_000])
def test_bytes_and_bits_are_evenly_spread(kind, count):
    words = kind().words(count)
    observed = np.bincount(words.view(np.uint8), minlength=256)
    expected = 8 * count / 256
    assert chi2.sf(((observed - expected) ** 2 / expected).sum(), 255) > FALSE_ALARM
    for place in range(64):
        ones = int((words >> np.uint64(place) & np.uint64(1)).sum())
        assert abs(ones - count / 2) < 6.7 * (count / 4) ** 0.5  # FALSE_ALARM / 64 on each side


@pytest.mark.parametrize("kind", PRIVATE)
def test_blocks_and_calls_never_repeat(kind):
    bits = kind()
    words = np.concatenate([bits.words(3 * 32_768 + 5), bits.words(32_768), bits.words(3)])
    assert len(np.unique(words)) == len(words)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("kind", PRIVATE)
@pytest.mark.parametrize("count", [16, 4096])
def test_forked_children_never_share_a_word(kind, count):
    bits = kind()
    bits.words(count)  # whatever state there could be exists before the fork
    read_ends = []
    for _ in range(2):
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                with os.fdopen(write_end, "wb") as pipe:
                    pipe.write(bits.words(count).tobytes())
            finally:
                os._exit(0)
        os.close(write_end)
        read_ends.append((read_end, child))
    received = [bits.words(count)]
    for read_end, child in read_ends:
        with os.fdopen(read_end, "rb") as pipe:
            received.append(np.frombuffer(pipe.read(), dtype=np.uint64))
        os.waitpid(child, 0)
    together = np.concatenate(received)
    assert len(together) == 3 * count
    assert len(np.unique(together)) == len(together)


def test_a_fresh_key_is_asked_of_the_kernel_for_every_block(monkeypatch):
    asked = []
    urandom = os.urandom
    monkeypatch.setattr(bits_module.os, "urandom", lambda size: asked.append(size) or urandom(size))
    KeyedBits().words(2 * 32_768 + 1000)
    assert asked == [32, 32, 32]
    asked.clear()
    KeyedBits().words(511)
    assert asked == [8 * 511]


def test_keyed_bits_are_the_counter_mode_of_their_key(monkeypatch):
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    key = bytes(range(32))
    monkeypatch.setattr(bits_module.os, "urandom", lambda size: key)
    words = KeyedBits().words(1024)
    # Counter mode is the block cipher of 0, 1, 2, ...: computed here one block at a time.
    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    blocks = b"".join(cipher.update(block.to_bytes(16, "big")) for block in range(512))
    assert words.tobytes() == blocks


def test_without_cryptography_keyed_bits_name_the_extra_and_the_default_is_the_system(monkeypatch):
    bits_module._aes_counter_mode.cache_clear()
    try:
        monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers", None)
        with pytest.raises(MissingExtra, match=r'pip install "sfumato\[fast\]"'):
            KeyedBits()
        assert type(default_bits()) is SystemBits
    finally:
        bits_module._aes_counter_mode.cache_clear()
    monkeypatch.undo()
    assert type(default_bits()) is KeyedBits


def test_seeded_bits_repeat_with_their_seed_only():
    assert np.array_equal(SeededBits(1).words(50), SeededBits(1).words(50))
    assert not np.array_equal(SeededBits(1).words(50), SeededBits(2).words(50))
    bits = SeededBits(1)
    assert not np.array_equal(bits.words(50), bits.words(50))
    for bad in (-1, 1.5, None, True):
        with pytest.raises(InvalidParameter, match="seed"):
            SeededBits(bad)


@given(st.integers(0, 300), st.integers(0, 2**32))
def test_integers_have_their_width(width, seed):
    value = SeededBits(seed).integer(width)
    assert 0 <= value < 2**width or value == width == 0


def test_integers_take_the_top_bits_and_the_first_word_first():
    assert ScriptedBits([0xF123456789ABCDEF]).integer(64) == 0xF123456789ABCDEF
    assert ScriptedBits([0xF123456789ABCDEF]).integer(8) == 0xF1
    assert ScriptedBits([1, 2 << 60]).integer(68) == (1 << 4) | 2
    assert ScriptedBits([]).integer(0) == 0


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 6, 7, 8, 13])
def test_below_gives_each_value_equally_often_over_all_words(bound):
    # Every prefix of the needed width once; the rejected ones are followed by a word that is kept.
    width = (bound - 1).bit_length()
    values = []
    for prefix in range(1 << width):
        bits = ScriptedBits([prefix << (64 - width) if width else 0, 0])
        value = bits.below(bound)
        if bits.used == (1 if width else 0):
            values.append(value)
    assert values == list(range(bound))


@given(st.integers(1, 2**200), st.integers(0, 2**32))
def test_below_stays_below_any_bound(bound, seed):
    assert 0 <= SeededBits(seed).below(bound) < bound


def test_below_each_redraws_the_words_that_would_make_low_values_likelier():
    # 2^64 mod 3 = 1, so only the word 0 is redrawn.
    bits = ScriptedBits([0, 1, 2**64 - 1, 0, 5])
    assert bits.below_each(3, 3).tolist() == [5 % 3, 1, (2**64 - 1) % 3]
    assert bits.left == 0
    # A power of two divides 2^64: nothing is redrawn.
    assert ScriptedBits([0, 9]).below_each(8, 2).tolist() == [0, 1]
    # 2^64 mod (2^62 + 1) = 2^62 - 3: words below it are redrawn.
    bound = 2**62 + 1
    bits = ScriptedBits([2**62 - 4, 2**62 - 3])
    assert bits.below_each(bound, 1).tolist() == [2**62 - 3]


def test_below_each_takes_a_bound_for_every_place():
    bounds = np.array([1, 2, 3, 1000, 2**62], dtype=np.int64)
    drawn = SeededBits(3).below_each(np.tile(bounds, 1000), 5000).reshape(1000, 5)
    assert (drawn >= 0).all()
    assert (drawn < bounds).all()
    assert (drawn.max(axis=0) >= bounds - 1 - bounds // 50).all()


def test_bounds_must_be_positive():
    for call in (lambda bits: bits.below(0), lambda bits: bits.below_each(0, 3), lambda bits: bits.below(-5)):
        with pytest.raises(InvalidParameter, match="bound must be positive"):
            call(SystemBits())
    assert SystemBits().below_each(5, 0).shape == (0,)


def test_importing_the_laws_loads_no_generator_and_no_extra():
    code = (
        "import sys, sfumato.laws; "
        "print([name for name in ('numpy.random', 'cryptography', 'scipy') if name in sys.modules])"
    )
    source = os.path.dirname(os.path.dirname(os.path.dirname(bits_module.__file__)))
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == "[]"
