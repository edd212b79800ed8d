"""What a respondent gives away: exact odds, the epsilon that they are, and how such costs add up."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.checks import Number, compact, decimal, exact, whole
from sfumato.errors import InvalidParameter
from sfumato.laws.bits import Bits
from sfumato.laws.coins import exp_bounds
from sfumato.laws.weights import Groups

# Odds are exact fractions, or infinite where an answer can give a truth away.
Odds = Fraction | float

# An epsilon is stated to this many units a one, rounded up; what is asked for is rounded down to them.
UNITS = 10**12
LEAST_EPSILON, MOST_EPSILON = Fraction(1, 10**6), Fraction(100)


def exact_number(name: str, value: object) -> Fraction:
    """The exact value of a number, in Python's own integers also where a fraction holds NumPy's."""
    if isinstance(value, Fraction):
        value = Fraction(int(value.numerator), int(value.denominator))
    return exact(name, value)


def asked_epsilon(epsilon: Number) -> Odds:
    """An epsilon that a design can be made for: in whole units, or infinite for plain truths."""
    if isinstance(epsilon, float) and epsilon == math.inf:
        return math.inf
    value = exact_number("epsilon", epsilon)
    if not LEAST_EPSILON <= value <= MOST_EPSILON:
        rule = f"in [{compact(LEAST_EPSILON)}, {MOST_EPSILON}], or math.inf for no protection"
        raise InvalidParameter(f"epsilon must be {rule}, got epsilon={compact(value)}")
    return Fraction(math.floor(value * UNITS), UNITS)


def falling(epsilon: Odds) -> Fraction:
    """A rational that is at least e^-epsilon and above it by at most 2^-63 of it; 0 if epsilon is infinite.

    >>> float(falling(Fraction(1))), falling(math.inf)
    (0.36787944117144233, Fraction(0, 1))
    """
    if not isinstance(epsilon, Fraction):
        return Fraction(0)
    precision = 66 + math.ceil(epsilon * 3 / 2)  # 2^-(3x/2) < e^-x: all 64 bits or more are significant
    return Fraction(exp_bounds(epsilon, precision)[1], 1 << precision)


def epsilon_of(odds: Odds) -> Odds:
    """The least whole number of units that is at least the logarithm of `odds`, decided by integers.

    >>> epsilon_of(Fraction(3))
    Fraction(1098612288669, 1000000000000)
    """
    if not isinstance(odds, Fraction):
        return math.inf
    guess = math.log(odds.numerator) - math.log(odds.denominator)
    units = max(math.floor(guess * UNITS) - 2, 0)
    while not _at_most(odds, Fraction(units, UNITS)):
        units += 1
    return Fraction(units, UNITS)


def _at_most(odds: Fraction, epsilon: Fraction) -> bool:
    """Whether odds <= e^epsilon, exactly."""
    if epsilon == 0:
        return odds <= 1
    precision = 128 + math.ceil(epsilon * 3 / 2)
    while True:
        # e^-epsilon is irrational, so enough digits always tell it from 1/odds.
        low, high = exp_bounds(epsilon, precision)
        inverse = odds.denominator << precision
        if high * odds.numerator <= inverse:
            return True
        if low * odds.numerator > inverse:
            return False
        precision *= 2


def worst_odds(left: Fraction, right: Fraction) -> Odds:
    """The larger of both ratios of two probabilities of one answer; 1 if it is impossible under both."""
    if left == right:
        return Fraction(1)
    return max(left / right, right / left) if left and right else math.inf


def probability(name: str, value: object) -> Fraction:
    """An exact probability, 0 and 1 included."""
    share = exact_number(name, value)
    if not 0 <= share <= 1:
        raise InvalidParameter(f"{name} must be in [0, 1], got {name}={compact(share)}")
    return share


def coins(p: Fraction, bits: Bits, count: int) -> NDArray[np.bool_]:
    """`count` independent coins, each True with probability exactly `p`."""
    if p in (0, 1):
        return np.full(count, p == 1)
    heads: Any = Groups([p.denominator - p.numerator, p.numerator]).draw(bits, count) == 1
    return np.asarray(heads, dtype=np.bool_)


@dataclass(frozen=True, repr=False)
class LocalDP:
    r"""Local differential privacy: what one respondent's answers tell about that respondent.

    Guarantee:
        For any two truths :math:`x, y` of the respondent and every answer :math:`a`,
        :math:`P(a \mid x) \le e^{\varepsilon} P(a \mid y)`, whoever reads the answer. It is a cost of each
        respondent and is paid on the respondent's side, so it never touches a ledger.
        Proof: docs/proofs/randomised-response.md.

    Args:
        epsilon: not negative; `math.inf` for answers that can give the truth away.

    Raises:
        InvalidParameter: epsilon is negative or not a number.

    References:
        [Warner65], [Kasiviswanathan11].

    >>> LocalDP(0.5) + LocalDP(0.25)
    LocalDP(epsilon=0.75)
    >>> LocalDP(0.5).repeated(3).fits(LocalDP(1))
    False
    """

    epsilon: Odds

    def __init__(self, epsilon: Number) -> None:
        unlimited = isinstance(epsilon, float) and epsilon == math.inf
        value = math.inf if unlimited else exact_number("epsilon", epsilon)
        if value < 0:
            raise InvalidParameter(f"epsilon must not be negative, got epsilon={compact(Fraction(value))}")
        object.__setattr__(self, "epsilon", value)

    def __add__(self, other: "LocalDP") -> "LocalDP":
        """The cost of both, if their coins are independent."""
        return LocalDP(self.epsilon + other.epsilon)

    def repeated(self, times: int) -> "LocalDP":
        """The cost of as many answers, each with fresh coins."""
        count = whole("times", times, least=0, most=10**9)
        return LocalDP(self.epsilon * count if count else 0)

    def fits(self, limit: "LocalDP") -> bool:
        """Whether it is at most a limit; compared exactly."""
        return self.epsilon <= limit.epsilon

    @property
    def bounded(self) -> bool:
        """Whether there is any protection at all."""
        return isinstance(self.epsilon, Fraction)

    def __repr__(self) -> str:
        return f"LocalDP(epsilon={decimals(self.epsilon)})"


def decimals(epsilon: Odds) -> str:
    """An epsilon for people: a decimal, or inf."""
    if not isinstance(epsilon, Fraction):
        return "inf"
    return str(float(epsilon)) if epsilon < 10**300 else decimal(epsilon)


class _Costed(Protocol):
    @property
    def cost(self) -> LocalDP: ...


def questionnaire_cost(designs: Iterable[_Costed]) -> LocalDP:
    """What a respondent gives away by answering several questions, each with its own coins.

    Guarantee:
        The sum of the epsilons: the bound for all answers together, whatever relation the truths have.
        Proof: docs/proofs/randomised-response.md.

    Args:
        designs: the design of each question that is answered; one asked twice with fresh coins counts twice,
            one answered from a `Memory` counts once.

    >>> from sfumato.local import DirectEncoding, Warner
    >>> colours = DirectEncoding.of_epsilon(["red", "green", "blue"], epsilon=0.5)
    >>> questionnaire_cost([Warner.of_epsilon(1), colours])
    LocalDP(epsilon=1.5)
    """
    total = LocalDP(0)
    for design in designs:
        total = total + design.cost
    return total
