"""Outcomes of any kind as a table of numbers, so that events can be searched for in them."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.grid import Floats
from sfumato.laws.bits import Integers
from sfumato.release import Release

# What has no numbers is told apart by its kind; numbers have this one.
NUMBER = 0
# So many numbers of an outcome are looked at digit by digit.
_DIGITS = 16
# A prime, so that numbers beyond all floats that differ a little differ here; and room to code them in.
_PRIME = 2**52 - 47
_NAMES = ("how it is built", "the digits of all its numbers", "the signs of its zeros")


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Outcomes one a row: numbers, NaN where there is none, a code for what has no numbers, and marks.

    Marks are what the floats leave out: how an outcome is built (types, lengths, keys, texts), and what
    rounding to a float takes from its numbers. There is a column for each that varies, with its name.

    The step from an outcome to its row is a function of the outcome that is fixed by the first half of the
    draws. So a row tells no more than the outcome does, and a bound found on rows is one for the mechanism.
    """

    numbers: Floats
    kinds: Integers
    marks: Floats
    names: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.kinds)

    @property
    def width(self) -> int:
        """How many numbers the longest outcome has."""
        return int(self.numbers.shape[1])

    def part(self, start: int, stop: int) -> "Outcomes":
        """Some consecutive outcomes."""
        return Outcomes(self.numbers[start:stop], self.kinds[start:stop], self.marks[start:stop], self.names)


class Row(NamedTuple):
    """One outcome: its numbers as floats, what the floats leave out of each, and how it is built."""

    numbers: list[float]
    digits: list[float]
    built: str

    @property
    def text(self) -> str:
        """A text that tells it from other outcomes."""
        left_out = [digits for digits in self.digits if digits]
        return f"{self.built} {[number.hex() for number in self.numbers]} {left_out}"


def tables(left: Any, right: Any) -> tuple[Outcomes, Outcomes]:
    """Both samples in one coding."""
    arrays = [_numeric(each) for each in _floats(left, right)]
    if arrays[0] is not None and arrays[1] is not None and arrays[0].shape[1] == arrays[1].shape[1]:
        first, second = (_plain(each) for each in arrays if each is not None)
        return _varying(first, second)
    samples = [[described(outcome) for outcome in _listed(each)] for each in (left, right)]
    # Width and codes follow from the first halves, so that no draw that bounds has a part in the choice.
    seen = [row for sample in samples for row in sample[: len(sample) // 2]]
    width = max((len(row.numbers) for row in seen), default=0)
    codes: dict[str, int] = {"": NUMBER}
    for row in seen:
        codes.setdefault(row.built, len(codes))
    first, second = (_coded(sample, width, codes) for sample in samples)
    return _varying(first, second)


def joined(parts: list[Outcomes]) -> Outcomes:
    """Parts of one coding, one after the other."""
    numbers, kinds, marks = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("numbers", "kinds", "marks")
    )
    return Outcomes(numbers, kinds, marks, parts[0].names)


def _floats(left: Any, right: Any) -> tuple[Any, Any]:
    """Lists of floats of one type as arrays, which are looked at much faster."""
    if isinstance(left, list) and isinstance(right, list):
        kinds = set(map(type, left)) | set(map(type, right))
        if len(kinds) == 1 and kinds <= {float, np.float64}:
            return np.array(left), np.array(right)
    return left, right


def _coded(sample: list[Row], width: int, codes: dict[str, int]) -> Outcomes:
    numbers = np.full((len(sample), width), np.nan)
    places = min(width, _DIGITS)
    marks = np.zeros((len(sample), len(_NAMES) + places))
    built = np.array([codes.get(row.built, len(codes)) for row in sample], dtype=np.int64)
    for i, row in enumerate(sample):
        # A shorter row ends in NaN, a longer one is cut.
        numbers[i, : len(row.numbers)] = row.numbers[:width]
        if any(row.digits):
            marks[i, 1] = float(hash(tuple(row.digits)) % _PRIME)
            cut = row.digits[:places]
            marks[i, len(_NAMES) : len(_NAMES) + len(cut)] = cut
    # What has no numbers is of a kind of its own.
    bare = np.array([not row.numbers for row in sample], dtype=np.bool_)
    marks[:, 0] = built
    marks[:, 2] = _zeros(numbers)
    return Outcomes(numbers, np.where(bare, built, NUMBER), marks, _named(places))


def _named(places: int) -> tuple[str, ...]:
    return (*_NAMES, *(f"the last digits of number {place}" for place in range(places)))


def _varying(first: Outcomes, second: Outcomes) -> tuple[Outcomes, Outcomes]:
    """Without the marks that are the same in the first half of all draws."""
    seen = np.concatenate([each.marks[: len(each) // 2] for each in (first, second)])
    kept = np.flatnonzero((seen != seen[:1]).any(axis=0)) if len(seen) else np.zeros(0, dtype=np.int64)
    names = tuple(first.names[place] for place in kept)
    one, other = (Outcomes(each.numbers, each.kinds, each.marks[:, kept], names) for each in (first, second))
    return one, other


def _zeros(numbers: Floats) -> Floats:
    """Which of the first numbers are negative zeros, as one number."""
    first = numbers[:, :_DIGITS]
    negative = (first == 0) & np.signbit(first)
    return np.asarray(negative @ 2.0 ** np.arange(first.shape[1]), dtype=np.float64)


def raised(error: Exception) -> str:
    """An exception as an outcome: its type, which an observer sees."""
    return f"raises {type(error).__name__}"


def numbers_of(outcome: Any) -> Floats | None:
    """The numbers of one outcome, or None if it has none: a value, a row of values, or those of a release."""
    shown = outcome.value if isinstance(outcome, Release) else outcome
    if isinstance(shown, str | bytes) or shown is None:
        return None
    try:
        array = np.atleast_1d(np.asarray(shown)).ravel()
        if array.dtype.kind == "c":
            array = np.concatenate([array.real, array.imag])
        with np.errstate(over="ignore"):
            return array.astype(np.float64)
    except Exception:  # objects may do anything when they are made numbers
        return None


def _numeric(sample: Any) -> NDArray[Any] | None:
    if not isinstance(sample, np.ndarray) or sample.dtype.kind not in "biufc" or sample.ndim not in (1, 2):
        return None
    array = sample if sample.ndim == 2 else sample[:, np.newaxis]
    return np.concatenate([array.real, array.imag], axis=1) if array.dtype.kind == "c" else array


def _plain(array: NDArray[Any]) -> Outcomes:
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = np.asarray(array, dtype=np.float64)
        digits = np.zeros((len(array), 0))
        if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
            # A float leaves out at most 11 bits of 64.
            digits = (array[:, :_DIGITS] & array.dtype.type(4095)).astype(np.float64)
            digits[(np.abs(numbers) < 2.0**53).all(axis=1)] = 0.0
        elif array.dtype.kind == "f" and array.dtype.itemsize > 8:
            digits = np.nan_to_num(array - numbers, posinf=0.0, neginf=0.0)[:, :_DIGITS].astype(np.float64)
    marks = np.column_stack([np.zeros((len(array), 2)), _zeros(numbers), digits])
    return Outcomes(numbers, np.zeros(len(array), dtype=np.int64), marks, _named(digits.shape[1]))


def _listed(sample: Any) -> list[Any]:
    if isinstance(sample, str | bytes) or not isinstance(sample, Iterable):
        raise InvalidParameter("left and right must be sequences of outcomes")
    return list(sample)


def described(outcome: Any) -> Row:
    """An outcome as numbers, and a text for all else that an observer sees of it."""
    if isinstance(outcome, Release):
        outcome = outcome.outcome  # all that a release shows follows from it
    if outcome is None or isinstance(outcome, str | bytes):
        return Row([], [], repr(outcome))
    row = Row([], [], "")
    try:
        return Row(row.numbers, row.digits, _built(outcome, row))
    except Exception as error:  # objects may do anything when they are looked at
        return Row([], [], f"{type(outcome).__name__}, {raised(error)} when looked at")


def _built(outcome: Any, row: Row) -> str:
    """How an outcome is built, in words; its numbers are put into the row."""
    kind = type(outcome).__name__
    if isinstance(outcome, Exception):
        return raised(outcome)
    if outcome is None or isinstance(outcome, str | bytes):
        return repr(outcome)
    if isinstance(outcome, bool | int | float | complex | np.number | np.bool_ | Decimal | Rational):
        return _number(outcome, row, kind)
    if isinstance(outcome, np.ndarray):
        shape = f"{kind} {outcome.dtype} {outcome.shape}"
        if outcome.dtype.kind not in "biufcO":
            return f"{shape} {outcome.tolist()!r}"
        if outcome.dtype.kind in "bf" and outcome.dtype.itemsize <= 8:
            row.numbers.extend(outcome.astype(np.float64).ravel().tolist())
            row.digits.extend([0.0] * outcome.size)
            return shape
        # Elements of the array, and not Python's, which would round long floats.
        return f"{shape} {_parts(outcome.ravel(), row)}"
    if isinstance(outcome, Mapping):
        return f"{kind} {list(map(_word, outcome))} {_parts(outcome.values(), row)}"
    if isinstance(outcome, set | frozenset):
        return f"{kind} {sorted(map(_word, outcome))}"
    if isinstance(outcome, list | tuple):
        return f"{kind} {_parts(outcome, row)}"
    try:
        number = float(outcome)
    except Exception:  # not a number, whatever it says about that
        return _word(outcome)
    row.numbers.append(number)
    row.digits.append(0.0)
    return kind


def _parts(items: Iterable[Any], row: Row) -> str:
    """How many parts there are, and the words for each where these are not all the same."""
    words = []
    for item in items:
        if item is None:  # a place without an answer, as in the reply to a stream of questions
            row.numbers.append(math.nan)
            row.digits.append(0.0)
        words.append(_built(item, row))
    same = len(set(words)) <= 1
    return f"{len(words)} of {words[:1]}" if same else " ".join([f"{len(words)}:", *words])


def _number(number: Any, row: Row, kind: str) -> str:
    if isinstance(number, complex | np.complexfloating):
        for part in (number.real, number.imag):
            _number(part, row, kind)
        return kind
    try:
        near = float(number)
    except OverflowError:
        near = math.inf if number > 0 else -math.inf
    except ValueError:  # a signalling NaN
        return repr(number)
    row.numbers.append(near)
    row.digits.append(_left_out(number, near))
    return kind


def _left_out(number: Any, near: float) -> float:
    """What a float leaves out of a number: their difference, or a code where no float is near."""
    if isinstance(number, bool | float | np.bool_) or near != near:
        return 0.0
    if isinstance(number, np.floating):
        if number.dtype.itemsize <= 8 or not np.isfinite(number):
            return 0.0
        number = Fraction(*number.as_integer_ratio())
    if isinstance(number, Decimal) and (not number.is_finite() or abs(number.adjusted()) > 400):
        return 0.0 if not number.is_finite() else float(hash(number.normalize().as_tuple()) % _PRIME)
    exact = Fraction(int(number)) if isinstance(number, int | np.integer) else Fraction(number)
    if math.isinf(near):
        return float((exact.numerator % _PRIME * 31 + exact.denominator) % _PRIME)
    return float(exact - Fraction(near))


def _word(outcome: Any) -> str:
    """An object as a word; the place where it lies in memory is not a part of it."""
    plain: Any = object.__repr__
    if type(outcome).__repr__ is plain:
        return type(outcome).__name__
    try:
        return repr(outcome)
    except Exception as error:  # an observer sees no more than that
        return f"{type(outcome).__name__}, {raised(error)} when shown"
