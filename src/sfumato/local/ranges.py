"""Numbers such as incomes: through ranges of a public scale, or as one bit for the mean alone."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from sfumato.checks import Number, boolean, compact, pair, whole
from sfumato.errors import InvalidParameter
from sfumato.grid import exact_bounds
from sfumato.laws.bits import Bits, Integers
from sfumato.local.binary import Binary, Warner
from sfumato.local.cost import Odds, asked_epsilon, exact_number
from sfumato.local.design import Channel, Matrix, Outputs
from sfumato.local.dithering import binned, dithered
from sfumato.local.encodings import DirectEncoding, UnaryEncoding, encoding

FEWEST_STEPS, MOST_STEPS = 4, 64


def _bounds(lower: object, upper: object) -> tuple[Fraction, Fraction]:
    return exact_bounds(exact_number("lower", lower), exact_number("upper", upper))


def usual_steps(respondents: int, epsilon: Number) -> int:
    """The number of steps that balances their width against the noise, between 4 and 64.

    >>> usual_steps(10_000, 1), usual_steps(100, 0.1)
    (22, 4)
    """
    size = whole("respondents", respondents, least=1, most=10**12)
    asked = asked_epsilon(epsilon)
    if asked == math.inf or asked > 20:
        return MOST_STEPS
    # (e^x - 1)^2 / e^x is 4 sinh(x/2)^2.
    steps = math.cbrt(size * 4 * math.sinh(float(asked) / 2) ** 2)
    return min(max(round(steps), FEWEST_STEPS), MOST_STEPS)


@dataclass(frozen=True, init=False)
class Ranges(Channel):
    r"""A number told as a randomised place on a public scale, for its mean, variance and quantiles.

    Guarantee:
        The epsilon of `encoding`, whatever the number is: it is clamped to the bounds and rounded before the
        channel. With `dither` it is rounded to one of its two grid points at random with exact probabilities,
        so that the mean has no error of rounding; without it, the answers give shares and quantiles only.
        Proof: docs/proofs/randomised-response.md.

    Args:
        lower, upper: public bounds; numbers outside are clamped to them.
        encoding: a direct or unary encoding whose categories are the places: the ends of `steps` equal steps
            with dither, else the steps. `of_epsilon` makes it.
        dither: whether to round at random to an end, or to tell the step.

    Raises:
        InvalidParameter: bounds out of order, or too few places.

    References:
        [Wang17] for the encodings.

    >>> design = Ranges.of_epsilon(bounds=(0, 5000), epsilon=1, steps=5)
    >>> design.cost, design.encoding.categories
    (LocalDP(epsilon=1.0), ('0', '1000', '2000', '3000', '4000', '5000'))
    """

    TYPE: ClassVar[str] = "ranges"
    lower: Fraction
    upper: Fraction
    encoding: DirectEncoding | UnaryEncoding
    dither: bool

    def __init__(
        self, *, lower: Number, upper: Number, encoding: DirectEncoding | UnaryEncoding, dither: bool
    ) -> None:
        low, high = _bounds(lower, upper)
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)
        object.__setattr__(self, "dither", boolean("dither", dither))
        if not isinstance(encoding, DirectEncoding | UnaryEncoding):
            raise InvalidParameter("encoding must be a DirectEncoding or a UnaryEncoding")
        object.__setattr__(self, "encoding", encoding)

    @classmethod
    def of_epsilon(
        cls,
        *,
        bounds: tuple[Number, Number],
        epsilon: Number,
        steps: int | None = None,
        respondents: int | None = None,
        dither: bool = True,
        method: str = "auto",
    ) -> "Ranges":
        """The design that costs at most `epsilon`; without `steps`, by the number of respondents to come."""
        low, high = _bounds(*pair("bounds", bounds))
        if steps is None:
            if respondents is None:
                raise InvalidParameter("steps or respondents must be given, to know how fine the scale is")
            steps = usual_steps(respondents, epsilon)
        count = whole("steps", steps, least=2, most=1024)
        names = scale_names(low, high, count, dither=boolean("dither", dither))
        channel = encoding(names, epsilon=epsilon, method=method)
        return cls(lower=low, upper=high, encoding=channel, dither=dither)

    @property
    def steps(self) -> int:
        """The number of equal steps from one bound to the other."""
        return len(self.encoding.categories) - self.dither

    @property
    def step(self) -> Fraction:
        """The width of a step."""
        return (self.upper - self.lower) / self.steps

    @property
    def labels(self) -> tuple[str, ...]:
        """The places of the scale."""
        return self.encoding.labels

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        """That of the channel."""
        return self.encoding.support

    @property
    def exclusive(self) -> bool:
        """Whether an answer names one place."""
        return self.encoding.exclusive

    @property
    def rounded(self) -> bool:
        """Whether numbers are rounded at random: with dither."""
        return self.dither

    @property
    def odds(self) -> Odds:
        """Those of the channel."""
        return self.encoding.odds

    def matrix(self) -> Matrix:
        """The channel from places; a number's law is a mixture of one or two of its rows."""
        return self.encoding.matrix()

    def place(self, truths: Any, bits: Bits) -> Integers:
        """The place of each number: its step, or one end of it at random."""
        if self.dither:
            return dithered(truths, lower=self.lower, upper=self.upper, steps=self.steps, bits=bits)
        return binned(truths, lower=self.lower, upper=self.upper, steps=self.steps)

    def draw(self, places: Integers, bits: Bits) -> Outputs:
        """A randomised answer for each place."""
        return self.encoding.draw(places, bits)

    def spoken(self, output: Outputs) -> Any:
        """One answer as it is sent."""
        return self.encoding.spoken(output)

    def heard(self, answers: Any) -> Outputs:
        """Answers as they were received, checked."""
        return self.encoding.heard(answers)

    def counted(self, outputs: Outputs) -> tuple[int, ...]:
        """How many answers support each place."""
        return self.encoding.counted(outputs)

    def words(self) -> str:
        """The design in words."""
        kind = "rounded at random to their ends" if self.dither else "told as bins"
        ends = f"[{compact(self.lower)}, {compact(self.upper)}]"
        return f"{self.steps} steps of {ends}, {kind}; {self.encoding.words()}"


def scale_names(lower: Fraction, upper: Fraction, steps: int, *, dither: bool) -> list[str]:
    """The names of the places of a scale: its points, or its ranges."""
    points = [compact(lower + (upper - lower) * i / steps) for i in range(steps + 1)]
    return points if dither else [f"{points[i]} to {points[i + 1]}" for i in range(steps)]


@dataclass(frozen=True, init=False)
class OneBitMean(Binary):
    r"""A number told as one bit: rounded at random to a bound, then randomised by Warner's design.

    Guarantee:
        :math:`\varepsilon = \ln(p/(1-p))`, p being `keep`, whatever the number is. The estimated mean has no
        error of rounding, its variance is at most
        :math:`(u-l)^2 (e^\varepsilon+1)^2 / (4n(e^\varepsilon-1)^2)`, and its interval holds the mean of the
        population, and that of the respondents, at least as often as it promises.
        Proof: docs/proofs/randomised-response.md.

    Args:
        lower, upper: public bounds; numbers outside are clamped to them.
        keep: the probability that the bit is sent as it is, above 1/2.

    References:
        [Warner65] for the channel, [Ding17] for the mean.

    >>> OneBitMean.of_epsilon(bounds=(0, 120), epsilon=1).cost
    LocalDP(epsilon=1.0)
    """

    TYPE: ClassVar[str] = "one bit"
    rounded = True
    lower: Fraction
    upper: Fraction
    keep: Fraction

    def __init__(self, *, lower: Number, upper: Number, keep: Number) -> None:
        low, high = _bounds(lower, upper)
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)
        object.__setattr__(self, "keep", Warner(keep=keep).keep)
        if self.keep < Fraction(1, 2):
            raise InvalidParameter(f"keep must be above 1/2, got keep={compact(self.keep)}")

    @classmethod
    def of_epsilon(cls, *, bounds: tuple[Number, Number], epsilon: Number) -> "OneBitMean":
        """The design that costs at most `epsilon`, and less by at most 2^-63 of its odds."""
        low, high = _bounds(*pair("bounds", bounds))
        return cls(lower=low, upper=high, keep=Warner.of_epsilon(epsilon).keep)

    @property
    def labels(self) -> tuple[str, ...]:
        """What is estimated."""
        return ("mean",)

    @property
    def span(self) -> tuple[Fraction, Fraction]:
        """The bounds: what a share of 0 and of 1 stand for."""
        return self.lower, self.upper

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        """The probability of "upper" if the number was rounded to it, and if not."""
        return self.keep, 1 - self.keep

    def place(self, truths: Any, bits: Bits) -> Integers:
        """1 for a number rounded to the upper bound."""
        return dithered(truths, lower=self.lower, upper=self.upper, steps=1, bits=bits)

    def words(self) -> str:
        """The design in words."""
        ends = f"[{compact(self.lower)}, {compact(self.upper)}]"
        return f"one bit: rounded at random to an end of {ends}, kept with probability {float(self.keep):.6g}"
