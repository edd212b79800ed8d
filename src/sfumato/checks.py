"""Checks of public parameters: each returns the exact value or raises an error that states the rule."""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import TypeVar

import numpy as np

from sfumato.errors import InvalidParameter

Number = int | float | Fraction | Decimal
T = TypeVar("T")

# A number written with more digits than this is a mistake or an attack on the big-integer arithmetic.
MAX_BITS = 2048
_SMALLEST, _LARGEST = Fraction(1, 10**300), Fraction(10**300)
# The longest name of a column, a category, a candidate or a result, in characters: a reply repeats names, and
# its length has to be bounded before a charge. Names of data sets, analysts and requests are shorter still.
MAX_NAME = 1_000
# Nearer to 1, float64 no longer tells the parts of a failure apart.
SUREST = 1 - Fraction(1, 10**9)


def exact(name: str, value: object) -> Fraction:
    """The exact value of a finite number, read from its shortest decimal form: 0.1 is 1/10.

    >>> exact("epsilon", 0.1)
    Fraction(1, 10)
    """
    if (
        type(value) is Fraction
        # A fraction of NumPy integers keeps them, and would wrap.
        and type(value.numerator) is type(value.denominator) is int
        and max(value.numerator.bit_length(), value.denominator.bit_length()) <= MAX_BITS
    ):
        return value  # already exact; the checks below cost more than most of what calls this
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise InvalidParameter(f"{name} must be a number, got {name}={shown(value)}")
    if isinstance(value, Rational):
        fraction = Fraction(int(value.numerator), int(value.denominator))
    elif not (value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)):
        raise InvalidParameter(f"{name} must be finite, got {name}={value}")
    elif isinstance(value, Decimal):
        fraction = _decimal_fraction(name, value)
    else:
        # str() of Python and NumPy floats of any width is the shortest decimal that reads back.
        fraction = Fraction(str(value))
    if max(fraction.numerator.bit_length(), fraction.denominator.bit_length()) > MAX_BITS:
        raise InvalidParameter(f"{name} must be a number of at most {MAX_BITS} bits, got a longer one")
    return fraction


def _decimal_fraction(name: str, value: Decimal) -> Fraction:
    # An exponent is cheap to write and dear to expand: 1e-999999999 has a billion digits.
    if abs(value.adjusted()) > MAX_BITS or len(value.as_tuple().digits) > MAX_BITS:
        raise InvalidParameter(f"{name} must be a number of at most {MAX_BITS} bits, got a longer one")
    return Fraction(value)


def positive(name: str, value: object) -> Fraction:
    """The exact value of a positive finite number."""
    fraction = exact(name, value)
    if fraction <= 0:
        raise InvalidParameter(f"{name} must be positive, got {name}={shown(value)}")
    return fraction


def normal(name: str, value: object) -> float:
    """The nearest float of a positive number from 1e-300 to 1e300: formulas in float64 hold there."""
    number = positive(name, value)
    if not _SMALLEST <= number <= _LARGEST:
        raise InvalidParameter(f"{name} must be in [1e-300, 1e300], got {name}={shown(value)}")
    return float(number)


def between(name: str, value: object, low: Number, high: Number) -> Fraction:
    """The exact value of a number strictly inside (low, high)."""
    fraction = exact(name, value)
    if not low < fraction < high:
        raise InvalidParameter(f"{name} must be inside ({low}, {high}), got {name}={shown(value)}")
    return fraction


def whole(name: str, value: object, *, least: int, most: int) -> int:
    """An integer in [least, most]; booleans and floats are refused."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidParameter(f"{name} must be a whole number, got {name}={shown(value)}")
    number = int(value)
    if not least <= number <= most:
        raise InvalidParameter(f"{name} must be in [{least}, {most}], got {name}={shown(number)}")
    return number


def keep(owner: object, **checked: object) -> None:
    """Store checked values as the fields of a frozen dataclass: what was checked is what is computed with.

    A NumPy integer that passed `whole` would wrap in sums and products; the Python integer does not.
    """
    for name, value in checked.items():
        object.__setattr__(owner, name, value)


def pair(name: str, value: object) -> tuple[object, object]:
    """The two items of a tuple, a list or an array of two."""
    items = value.tolist() if isinstance(value, np.ndarray) and value.ndim == 1 else value
    if not isinstance(items, list | tuple) or len(items) != 2:
        raise InvalidParameter(f"{name} must be a pair (lower, upper), got {name}={shown(value)}")
    return items[0], items[1]


def inside(name: str, value: object) -> Fraction:
    """An exact share: above 0 and below 1."""
    share = exact(name, value)
    if not 0 < share < 1:
        raise InvalidParameter(f"{name} must be inside (0, 1), got {name}={shown(value)}")
    return share


def checked_confidence(confidence: object) -> float:
    """A confidence above 0, and so far below 1 that float64 tells parts of its failure."""
    level = exact("confidence", confidence)
    if not 0 < level <= SUREST:
        rule = f"inside (0, 1), at most {float(SUREST)}"
        raise InvalidParameter(f"confidence must be {rule}, got confidence={shown(confidence)}")
    return float(level)


def boolean(name: str, value: object) -> bool:
    """A flag: True or False, and nothing that merely counts as one."""
    if not isinstance(value, bool):
        raise InvalidParameter(f"{name} must be True or False, got {name}={shown(value)}")
    return value


def is_text(value: object, most: int = MAX_NAME) -> bool:
    """Whether a value is text that can be stored and sent anywhere: not too long, and of UTF-8.

    >>> is_text("naïve"), is_text("\\ud800"), is_text("x" * 1001)
    (True, False, False)
    """
    if not isinstance(value, str) or len(value) > most:
        return False
    try:
        # Half of a surrogate pair is a character of Python's, and of no encoding.
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def checked_text(name: str, value: object, most: int = MAX_NAME) -> str:
    """Public text that can be stored and sent anywhere: a name, a category, a label."""
    if not is_text(value, most):
        raise InvalidParameter(
            f"{name} must be text of at most {most:,} characters that UTF-8 can encode; got {shown(value)}"
        )
    return str(value)


def one_of(name: str, value: T, options: Sequence[T]) -> T:
    """`value` if it is one of the options."""
    if not any(type(value) is type(option) and value == option for option in options):
        listed = ", ".join(repr(option) for option in options)
        raise InvalidParameter(f"{name} must be one of {listed}, got {name}={shown(value)}")
    return value


def shown(value: object) -> str:
    """A public value for a message: decimals for fractions, never more than a short line."""
    if isinstance(value, Fraction):
        return decimal(value)
    scalar = hasattr(value, "item") and getattr(value, "ndim", 1) == 0
    try:
        text = " ".join(repr(value.item() if scalar else value).split())  # type: ignore[attr-defined]
    except ValueError:  # Python refuses to print integers of thousands of digits
        return "a number too long to show"
    return text if len(text) <= 80 else f"{text[:77]}..."


def decimal(value: Fraction) -> str:
    """A fraction as the shortest decimal of its nearest float, or as a ratio if the float is not exact."""
    if abs(value) >= 10**308:
        return f"~{'-' * (value < 0)}1e{len(str(abs(int(value)))) - 1}"
    nearest = float(value)
    if Fraction(str(nearest)) == value:
        return str(nearest)
    return str(value) if len(str(value)) <= 24 else f"~{nearest:.12g}"


def compact(value: Fraction) -> str:
    """A public number for people: whole numbers without a point, others as `decimal`.

    >>> compact(Fraction(250_000)), compact(Fraction(1, 10))
    ('250000', '0.1')
    """
    return str(value.numerator) if value.denominator == 1 and abs(value) < 10**24 else decimal(value)


def readable(number: float) -> str:
    """A size for people, to six digits or to the unit.

    >>> readable(86.6666666), readable(1_000_000.0)
    ('86.6667', '1,000,000')
    """
    return f"{number:,.0f}" if 1000 <= abs(number) < 10**15 else f"{number:.6g}"


def root_down(square: Fraction) -> Fraction:
    """A number with few digits at most the square root, exact where the root is short.

    >>> root_down(Fraction(1, 4))
    Fraction(1, 2)
    """
    scale = 2**80
    return Fraction(math.isqrt(square.numerator * scale**2 // square.denominator), scale)


def float_up(value: Fraction) -> float:
    """The smallest float that is at least `value`; for costs that must never be understated."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def float_down(value: Fraction) -> float:
    """The largest float that is at most `value`; for caps that must never be overstated."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)
