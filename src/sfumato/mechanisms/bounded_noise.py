"""Bounded noise: many answers of which none is ever further off than a hard bound."""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from numbers import Rational
from threading import Lock
from typing import Literal, cast

import numpy as np

from sfumato.checks import Number, between, compact, exact, inside, keep, one_of, positive, readable, shown
from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.grid import Ints
from sfumato.laws import Bits, BoundedNoise, DiscreteGaussian, Law, Shifted
from sfumato.laws.bounded import MAX_BOUND, checked_power
from sfumato.one_process import OneProcess
from sfumato.privacy import (
    Accountant,
    ApproxDP,
    BoundedNoiseEvent,
    bounded_noise_bound,
    bounded_noise_delta,
    gaussian_sigma_squared,
)
from sfumato.privacy.bounded_noise import bounded_satisfied, check_budget

# A shift of this many steps makes the lattice of the Gaussian competitor so fine that it does not show.
_FINE = 2**30
# The largest finite longdouble has 4,933.
_MOST_DIGITS = 5000


@dataclass(frozen=True, kw_only=True)
class BoundedNoiseMechanism:
    r"""Adds bounded noise to each of several integers, which may be asked for one after the other.

    Guarantee:
        :math:`(\varepsilon, \delta)`-DP with `budget` for all `queries` answers together, if one change of a
        record moves each integer by at most `sensitivity`; under substitution and under add-remove alike,
        with the sensitivity of that relation. The next integer may depend on earlier answers. No answer is
        off by `bound` or more, with probability one. Proof: docs/proofs/bounded-noise.md.

    Args:
        sensitivity: the largest change of one integer.
        bound: the noise stays strictly inside (-bound, bound).
        power: 1, 2 or 3, the shape of the noise.
        queries: how many integers are answered; fixed in advance.
        budget: what they cost together; checked.

    Raises:
        InvalidParameter: a number out of range, a pure or zero-concentrated budget, or one that the noise is
            not proved to meet.

    References:
        [DaganKur22].

    >>> mechanism = BoundedNoiseMechanism.calibrated(ApproxDP(1, 1e-6), sensitivity=1, queries=1000)
    >>> mechanism.bound, mechanism.power, mechanism.radius(1), mechanism.max_error_quantile(0.95)
    (530, 1, 529, 489)
    """

    sensitivity: int
    bound: int
    power: int
    queries: int
    budget: ApproxDP

    def __post_init__(self) -> None:
        check_budget(self.budget)
        keep(self, power=checked_power(self.power))
        event = self.event  # checks the numbers
        keep(self, sensitivity=event.sensitivity, bound=event.bound, queries=event.queries)
        if not bounded_satisfied(event, self.budget):
            raise InvalidParameter(f"budget must cover the event {event!r}, got budget={self.budget!r}")

    @classmethod
    def calibrated(
        cls,
        budget: ApproxDP,
        *,
        sensitivity: int,
        queries: int,
        power: int | Literal["auto"] = "auto",
    ) -> "BoundedNoiseMechanism":
        """The mechanism with the smallest bound that a budget pays for; "auto" takes the best power."""
        wanted = None if isinstance(power, str) and power == "auto" else _power(power)
        bound, chosen = bounded_noise_bound(budget, sensitivity=sensitivity, queries=queries, power=wanted)
        return cls(sensitivity=sensitivity, bound=bound, power=chosen, queries=queries, budget=budget)

    @property
    def event(self) -> BoundedNoiseEvent:
        """What all answers together cost."""
        return BoundedNoiseEvent(
            sensitivity=self.sensitivity, bound=self.bound, power=self.power, queries=self.queries
        )

    @property
    def noise(self) -> BoundedNoise:
        """The law of the noise of one answer."""
        return BoundedNoise(self.bound, self.power)

    @property
    def std(self) -> float:
        """The standard deviation of one answer."""
        return math.sqrt(self.noise.variance)

    def law(self, value: int | Ints) -> Law:
        """The law of the answer when the data's value is `value`."""
        return Shifted(self.noise, value)

    def described(self, step: Fraction = Fraction(1)) -> str:
        """The mechanism in words, in units where one step of the integers is `step`."""
        text = f"noise of power {self.power} below {readable(float(self.bound * step))}"
        return f"{text}, standard deviation {readable(self.std * float(step))}"

    def delta_at(self, epsilon: Number) -> float:
        """The delta of all answers together at another epsilon."""
        return bounded_noise_delta(
            epsilon, bound=self.bound, power=self.power, sensitivity=self.sensitivity, queries=self.queries
        )

    def radius(self, confidence: Number) -> int:
        """The smallest t with P(one error is at most t) >= confidence; at confidence 1 the hard bound."""
        if exact("confidence", confidence) == 1:
            return self.bound - 1
        return self.noise.radius(between("confidence", confidence, 0, 1))  # type: ignore[arg-type]  # reason: read exactly

    def max_error_quantile(self, confidence: Number) -> int:
        """The smallest t with P(all errors are at most t) >= confidence."""
        return self.noise.radius(_one_of_many(confidence, self.queries))  # type: ignore[arg-type]  # reason: read exactly

    @cached_property
    def gaussian_std(self) -> float:
        """The standard deviation of Gaussian noise for the same budget and answers that all move at once.

        Its L2 sensitivity is `sensitivity` times the root of `queries`. It is calibrated on a lattice so fine
        that it is the analytic Gaussian mechanism to 1e-6, which favours the competitor a little.
        """
        return self._gaussian_unit * math.sqrt(self._gaussian.sigma_squared)

    def gaussian_maximum(self, confidence: Number) -> float:
        """The quantile of the largest of all errors with that Gaussian noise, two-sided."""
        needed = _one_of_many(confidence, self.queries)
        return float(self._gaussian_unit * self._gaussian.radius(needed))  # type: ignore[arg-type]  # reason: read exactly

    @cached_property
    def _gaussian(self) -> DiscreteGaussian:
        return DiscreteGaussian(
            gaussian_sigma_squared(self.budget, sensitivity_squared=_FINE**2, coordinates=1)
        )

    @property
    def _gaussian_unit(self) -> float:
        return self.sensitivity * math.sqrt(self.queries) / _FINE

    def compared(self, confidence: Number = Fraction(95, 100)) -> "BoundedComparison":
        """How this noise compares with Gaussian noise for the same budget."""
        return BoundedComparison(
            queries=self.queries,
            confidence=inside("confidence", confidence),
            bound=self.bound,
            maximum=self.max_error_quantile(confidence),
            std=self.std,
            gaussian_maximum=self.gaussian_maximum(confidence),
            gaussian_std=self.gaussian_std,
        )


@dataclass(frozen=True, kw_only=True)
class BoundedComparison:
    """Bounded noise beside Gaussian noise for the same budget and the same number of answers.

    Guarantee:
        Public numbers only, in steps of the integers. The Gaussian noise is that for answers which one record
        moves all at once; where the true L2 sensitivity is smaller the Gaussian figures fall in proportion.

    References:
        [DaganKur22], whose Gaussian baseline takes a wrong quantile: docs/proofs/bounded-noise.md.

    >>> mechanism = BoundedNoiseMechanism.calibrated(ApproxDP(1, 1e-6), sensitivity=1, queries=10)
    >>> print(mechanism.compared().verdict)
    bounded noise loses: hard bound 3.13 and 95% maximum 1.87 times the 95% maximum of Gaussian noise
    """

    queries: int
    confidence: Fraction
    bound: int
    maximum: int
    std: float
    gaussian_maximum: float
    gaussian_std: float

    @property
    def bound_ratio(self) -> float:
        """The hard bound, as a multiple of the quantile of the Gaussian maximum."""
        return self.bound / self.gaussian_maximum

    @property
    def maximum_ratio(self) -> float:
        """The quantile of the largest error, as a multiple of that of Gaussian noise."""
        return self.maximum / self.gaussian_maximum

    @property
    def verdict(self) -> str:
        """One sentence that says which noise to take."""
        level = f"{float(100 * self.confidence):g}%"
        if self.bound_ratio <= 1:
            return (
                f"bounded noise wins: hard bound {self.bound_ratio:.2f} of the {level} maximum of Gaussian "
                f"noise, unless the true L2 sensitivity is below {self.bound_ratio:.2f} of the worst"
            )
        if self.maximum_ratio <= 1:
            return (
                f"a draw: {level} maximum {self.maximum_ratio:.2f} of that of Gaussian noise, "
                f"but hard bound {self.bound_ratio:.2f} times as large"
            )
        return (
            f"bounded noise loses: hard bound {self.bound_ratio:.2f} and {level} maximum "
            f"{self.maximum_ratio:.2f} times the {level} maximum of Gaussian noise"
        )


class BoundedAnswers(OneProcess):
    r"""Answers a fixed number of values with bounded noise; the number is paid for when the stream is opened.

    Guarantee:
        All answers together are :math:`(\varepsilon, \delta)`-DP with `budget`, charged before the first, if
        one record moves every value by at most the stated sensitivity; the next value may depend on earlier
        answers. With probability one each answer is strictly less than `bound` from its value. A stream
        cannot be copied, stored or forked, since the copy would count its answers anew.
        Proof: docs/proofs/bounded-noise.md.

    Args:
        mechanism: the public parameters; `BoundedAnswers.open` finds those of a given budget.
        bits: where randomness comes from.
        granularity: public; values are numbers, rounded to multiples of it. None if they are whole numbers.
        accountant: charged with the whole before anything is drawn; None if the caller has charged it.

    Raises:
        BudgetExceeded: the accountant cannot pay; nothing was drawn.
        InvalidParameter: a public parameter breaks a rule.
        NotSupported: the accountant's budget is pure or zero-concentrated.

    References:
        [DaganKur22].

    >>> from sfumato.laws import SystemBits
    >>> stream = BoundedAnswers.open(ApproxDP(1, 1e-6), sensitivity=1, queries=2, bits=SystemBits())
    >>> [abs(stream.answer(value) - value) < stream.bound for value in (70, 1200)]
    [True, True]
    >>> stream.remaining, stream.exhausted
    (0, True)
    >>> stream.answer(7)
    Traceback (most recent call last):
    sfumato.errors.BudgetExceeded: 2 values answered, as paid for: open another stream to ask for more
    """

    noun = "a stream"

    def __init__(
        self,
        mechanism: BoundedNoiseMechanism,
        bits: Bits,
        *,
        granularity: Number | None = None,
        accountant: Accountant | None = None,
    ) -> None:
        if not isinstance(mechanism, BoundedNoiseMechanism):
            raise InvalidParameter(
                f"mechanism must be a BoundedNoiseMechanism, got mechanism={shown(mechanism)}"
            )
        if not isinstance(bits, Bits):
            raise InvalidParameter(f"bits must be a source of bits, got bits={shown(bits)}")
        self._mechanism, self._bits = mechanism, bits
        self._granularity = None if granularity is None else positive("granularity", granularity)
        # Nothing is answered before the charge, not even if someone keeps the object of a refused one.
        self._remaining = 0
        self._lock = Lock()
        if accountant is not None:
            accountant.charge(mechanism.event, mechanism.budget)
        self._remaining = mechanism.queries

    @classmethod
    def open(
        cls,
        budget: ApproxDP,
        *,
        sensitivity: Number,
        queries: int,
        power: int | Literal["auto"] = "auto",
        granularity: Number | None = None,
        bits: Bits,
        accountant: Accountant | None = None,
    ) -> "BoundedAnswers":
        """A stream of `queries` answers that costs `budget`, with the smallest hard bound.

        Args:
            budget: an ApproxDP for all answers together.
            sensitivity: how far one record can move any value; the caller's promise. A whole number unless a
                granularity is given.
            queries: how many values will be answered.
            power: 1, 2 or 3, the shape of the noise; "auto" takes the one with the smallest bound.
            granularity: public; values are rounded to multiples of it, halves upwards, which moves by at most
                ceil(sensitivity / granularity) multiples. A tenth of the sensitivity costs little accuracy.
            bits: where randomness comes from.
            accountant: charged with the whole before anything is drawn; None if the caller has charged it.

        >>> from sfumato.laws import SeededBits
        >>> stream = BoundedAnswers.open(
        ...     ApproxDP(1, 1e-6), sensitivity=0.5, queries=10, granularity=0.0625, bits=SeededBits(1)
        ... )
        >>> float(stream.bound), abs(stream.answer(3.75) - 3.75) < stream.bound
        (58.125, True)
        """
        step = Fraction(1) if granularity is None else positive("granularity", granularity)
        steps = positive("sensitivity", sensitivity) / step
        if granularity is None and steps.denominator != 1:
            raise InvalidParameter(
                "sensitivity must be a whole number without a granularity, "
                f"got sensitivity={shown(sensitivity)}"
            )
        if steps > MAX_BOUND:
            raise InvalidParameter(
                f"sensitivity must be at most {MAX_BOUND} steps of the granularity, got {compact(steps)}"
            )
        mechanism = BoundedNoiseMechanism.calibrated(
            budget, sensitivity=lattice_sensitivity(steps), queries=queries, power=power
        )
        return cls(mechanism, bits, granularity=granularity, accountant=accountant)

    @property
    def mechanism(self) -> BoundedNoiseMechanism:
        """The public parameters, in steps of the granularity."""
        return self._mechanism

    @property
    def event(self) -> BoundedNoiseEvent:
        """What all answers together cost, for an accountant; they cost it even if fewer are asked for."""
        return self._mechanism.event

    @property
    def cost(self) -> ApproxDP:
        """What is charged for the whole stream."""
        return self._mechanism.budget

    @property
    def bound(self) -> Fraction:
        """No answer is this far from its value or further, in units of the values, rounding included."""
        return self._mechanism.bound * (self._granularity or Fraction(1))

    @property
    def remaining(self) -> int:
        """How many more values will be answered."""
        return self._remaining

    @property
    def exhausted(self) -> bool:
        """Whether all values that were paid for were answered."""
        return self._remaining == 0

    @property
    def private(self) -> bool:
        """False if seeded bits draw the noise; then nothing of it must be published."""
        return self._bits.private

    def answer(self, value: Number) -> int | Fraction:
        """The value with noise: a whole number, or a multiple of the granularity.

        That the value is a finite number is the caller's promise, for every data set: an error tells that it
        is not, which no noise hides. So what is refused is counted like an answer.

        Args:
            value: a whole number; with a granularity any number of at most 5,000 digits, read exactly.

        Raises:
            BudgetExceeded: all values that were paid for were answered; this one was not looked at.
            InvalidParameter: the value is no finite number of the right kind; it is not shown.
            NotSupported: the process was forked after the stream was opened.
        """
        self.require_process()
        # Two threads must not both be given the last answer.
        with self._lock:
            if self._remaining == 0:
                raise BudgetExceeded(
                    f"{_counted(self._mechanism.queries)}, as paid for: open another stream to ask for more"
                )
            # Counted before the value is looked at: whether it is refused is a fact about the data.
            self._remaining -= 1
            place = _place(value, self._granularity)
            noisy = place + cast(int, self._mechanism.noise.sample(self._bits))
        return noisy if self._granularity is None else noisy * self._granularity

    def __repr__(self) -> str:
        return f"BoundedAnswers(remaining={self._remaining}, bound={compact(self.bound)}, cost={self.cost!r})"


def lattice_sensitivity(steps: Fraction) -> int:
    """How many multiples a rounded value can move when the value moves by at most `steps` of them."""
    # |floor(a) - floor(b)| <= ceil(|a - b|); the floor of the sensitivity would be too small.
    return math.ceil(steps)


def _place(value: object, granularity: Fraction | None) -> int:
    # The functions of checks.py would show the value, which is a fact about the data.
    if granularity is None:
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise InvalidParameter("value must be a whole number")
        return int(value)
    if isinstance(value, bool) or not isinstance(value, Rational | float | Decimal | np.floating):
        raise InvalidParameter("value must be a number")
    if isinstance(value, Rational):
        number = Fraction(int(value.numerator), int(value.denominator))
    else:
        finite = value.is_finite() if isinstance(value, Decimal) else bool(np.isfinite(value))
        if not finite or (isinstance(value, Decimal) and not _short(value)):
            raise InvalidParameter(f"value must be a finite number of at most {_MOST_DIGITS} digits")
        number = Fraction(*value.as_integer_ratio())
    return math.floor(number / granularity + Fraction(1, 2))


def _short(value: Decimal) -> bool:
    # An exponent is cheap to write and dear to expand.
    return abs(value.adjusted()) <= _MOST_DIGITS and len(value.as_tuple().digits) <= _MOST_DIGITS


def _power(power: object) -> int:
    if isinstance(power, np.integer):
        power = int(power)
    return cast(int, one_of("power", power, (1, 2, 3, "auto")))


def _one_of_many(confidence: Number, count: int) -> Fraction:
    """The confidence that each of `count` independent errors needs for all of them together."""
    # As a float, one minus a small failure would lose it.
    failure = -math.expm1(math.log(inside("confidence", confidence)) / count)
    return 1 - Fraction(failure) * (1 - Fraction(1, 10**12))


def _counted(queries: int) -> str:
    return "1 value answered" if queries == 1 else f"{queries} values answered"
