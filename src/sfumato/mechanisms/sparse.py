"""Sparse: which values of a stream are above a threshold, paid for by the crossings and not by the values."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Integral
from threading import Lock

from sfumato.checks import Number, between, boolean, compact, inside, keep, positive, readable, shown, whole
from sfumato.errors import BudgetExceeded, InvalidParameter, NotSupported
from sfumato.laws import Bits, DiscreteLaplace
from sfumato.laws.crossing import LARGEST_VALUE
from sfumato.laws.law import checked_scale
from sfumato.mechanisms.above_threshold import AboveThreshold
from sfumato.mechanisms.moves import AnyQueries, CountsAtOrder, Moves, SameDirection
from sfumato.mechanisms.transcripts import Answer, Comparisons, Transcripts
from sfumato.one_process import OneProcess
from sfumato.privacy import Accountant, PureEvent

MAX_CROSSINGS = 2**30


@dataclass(frozen=True, kw_only=True)
class SparseMechanism:
    r"""The public side of `Sparse`: noise scales, what they cost and how accurate they are.

    Guarantee:
        Pure DP, for the scales :math:`b_T` of the threshold, :math:`b_n` of the values and :math:`b_a` of the
        numbers, with :math:`\varepsilon = \Delta/b_T + 2c\Delta/b_n + c\Delta/b_a` for any values of
        sensitivity :math:`\Delta` and :math:`c` crossings;
        :math:`\max\{\Delta/b_T + c\Delta\max(1/b_n, 1/b_a),\; c\Delta/b_n + c\Delta/b_a\}` for values that
        all move in the same direction; and :math:`\max\{(b-a)/b_T + (c-1)b/b_n,\; a/b_T + cb/b_n\} +
        c(b-a)/b_a` for the values :math:`bF - an` at increasing points under add-remove. Terms with
        :math:`b_a` only if numbers are released. Two-sided and one-sided noise cost the same.
        Proof: docs/proofs/above-threshold.md.

    Args:
        moves: how one record can move the values: `AnyQueries`, `SameDirection` or `CountsAtOrder`.
        crossings: how many values may be above before the stream halts.
        threshold_scale: the scale of the threshold's noise, drawn once; at most 2^52.
        query_scale: the scale of the noise that each value is compared with; at most 2^52.
        answer_scale: the scale of the fresh noise of each released number; None for no numbers.
        one_sided: geometric noise of half the variance, in place of discrete Laplace noise, in comparisons.

    Raises:
        InvalidParameter: a scale, a sensitivity or a number of crossings that is not positive or too large.

    References:
        [LSL17] for the single threshold draw and the split; [DR14].

    >>> mechanism = SparseMechanism.calibrated(1, sensitivity=1, crossings=4, same_direction=True)
    >>> mechanism.cost, float(mechanism.threshold_scale), float(mechanism.query_scale)
    (Fraction(1, 1), 3.52, 5.587301587301587)
    >>> mechanism.radius(1000, 0.95)
    53
    """

    moves: Moves
    crossings: int
    threshold_scale: Fraction
    query_scale: Fraction
    answer_scale: Fraction | None = None
    one_sided: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.moves, Moves):
            raise InvalidParameter(
                f"moves must be AnyQueries, SameDirection or CountsAtOrder, got moves={shown(self.moves)}"
            )
        keep(self, crossings=whole("crossings", self.crossings, least=1, most=MAX_CROSSINGS))
        boolean("one_sided", self.one_sided)
        for name in ("threshold_scale", "query_scale"):
            keep(self, **{name: checked_scale(name, getattr(self, name))})
        if self.answer_scale is not None:
            keep(self, answer_scale=checked_scale("answer_scale", self.answer_scale))

    @classmethod
    def calibrated(
        cls,
        epsilon: Number,
        *,
        sensitivity: int,
        crossings: int = 1,
        same_direction: bool = False,
        one_sided: bool = True,
        answers: Number | None = None,
    ) -> "SparseMechanism":
        """The scales of a pure cost of `epsilon` with the least noise in comparisons; see `Sparse.open`."""
        together = boolean("same_direction", same_direction)
        moves = (SameDirection if together else AnyQueries)(sensitivity)
        return cls._costing(epsilon, moves, crossings, answers, one_sided)

    @classmethod
    def for_order(
        cls,
        epsilon: Number,
        *,
        order: Number,
        crossings: int = 1,
        one_sided: bool = True,
        answers: Number | None = None,
    ) -> "SparseMechanism":
        """For counts F that pass the share `order` of all n records, under add-remove.

        With the order a/b in lowest terms the values are b F - a n, for the counts F up to points that
        increase along the stream, and the threshold is a public number of such units, usually 0. For an order
        above 1/2 count from the other end, with 1 - order. Numbers are in the same units.

        >>> mechanism = SparseMechanism.for_order(1, order=Fraction(1, 4), crossings=3)
        >>> mechanism.cost, float(mechanism.threshold_scale / 4), float(mechanism.query_scale / 4)
        (Fraction(1, 1), 1.75, 3.5)
        """
        return cls._costing(epsilon, CountsAtOrder(order), crossings, answers, one_sided)  # type: ignore[arg-type]  # reason: read exactly

    @classmethod
    def _costing(
        cls, epsilon: Number, moves: Moves, crossings: int, answers: Number | None, one_sided: bool
    ) -> "SparseMechanism":
        crossings = whole("crossings", crossings, least=1, most=MAX_CROSSINGS)
        total = positive("epsilon", epsilon)
        numbers = Fraction(0) if answers is None else total * inside("answers", answers)
        threshold_scale, query_scale = moves.scales(total, crossings, numbers)
        mechanism = cls(
            moves=moves,
            crossings=crossings,
            threshold_scale=threshold_scale,
            query_scale=query_scale,
            answer_scale=crossings * moves.sensitivity / numbers if numbers else None,
            one_sided=one_sided,
        )
        if mechanism.cost > total:
            raise InvalidParameter(f"no scales were found for epsilon={compact(total)}")
        return mechanism

    @property
    def cost(self) -> Fraction:
        """The exact pure epsilon, of the comparisons and of the numbers."""
        return max(
            self.moves.losses(self.threshold_scale, self.query_scale, self.crossings, self.answer_scale)
        )

    @property
    def event(self) -> PureEvent:
        """What a stream costs, however long it becomes."""
        return PureEvent(self.cost, "above-threshold")

    @cached_property
    def comparison(self) -> AboveThreshold:
        """The same noise with one crossing: its laws, its centring and its accuracy hold for each value."""
        return AboveThreshold(
            moves=self.moves,
            threshold_scale=self.threshold_scale,
            query_scale=self.query_scale,
            one_sided=self.one_sided,
        )

    @cached_property
    def answer_noise(self) -> DiscreteLaplace | None:
        """The law of what is added to each released number."""
        return None if self.answer_scale is None else DiscreteLaplace(self.answer_scale)

    def described(self) -> str:
        """The mechanism in words."""
        kind = "one-sided geometric" if self.one_sided else "discrete Laplace"
        scales = " and ".join(readable(float(scale)) for scale in (self.threshold_scale, self.query_scale))
        text = f"up to {counted(self.crossings)} with {kind} noise of scales {scales}"
        if self.answer_scale is None:
            return text
        return f"{text}, numbers with discrete Laplace noise of scale {readable(float(self.answer_scale))}"

    def law(self, values: Sequence[int], threshold: int) -> Transcripts:
        """The law of all answers to these values, for audits."""
        return Transcripts(self, tuple(values), threshold)

    def radius(self, queries: int, confidence: float) -> int:
        """How far on the wrong side of the threshold a value can be, in units of the values.

        Guarantee:
            With probability at least `confidence`, of the first `queries` values all that are told to be
            below are at most this far above the threshold, and all that are told to be above are less than
            this far below it: a union bound over the noise, rounded against ourselves. The values may be
            chosen after seeing earlier answers. So it is the alpha of (alpha, beta)-accuracy at
            beta = 1 - confidence.

        Args:
            queries: how many values are offered at most.
            confidence: inside (0, 1).
        """
        return self.comparison.radius(queries, confidence)

    def answer_radius(self, confidence: float) -> int:
        """How far any released number can be from its value: all of them are within, with this confidence.

        Raises:
            NotSupported: no numbers are released.
        """
        if self.answer_noise is None:
            raise NotSupported("answer_radius needs numeric answers: open with answers=0.5 or another share")
        failure = (1 - between("confidence", confidence, 0, 1)) / self.crossings
        # As a float 1 - failure would lose a small failure.
        return self.answer_noise.radius(1 - failure)  # type: ignore[arg-type]  # reason: read exactly


class Sparse(OneProcess):
    r"""Tells of each integer of a stream whether it is above a threshold, until `crossings` of them were.

    The noise of the threshold is drawn once, when the stream is opened. Values below cost nothing more. That
    the values end before the stream halts is an outcome as any other: fewer crossed, or none.

    The values are numbers that you compute, and how far one record can move them is your promise. For counts
    about a data set `Session.open_stream` knows it, and needs none.

    Guarantee:
        All answers together are pure DP with `cost`, known and charged before the first value, if one record
        moves every value by at most `sensitivity`; the next value may depend on earlier answers. A stream
        cannot be copied, stored or forked, since the copy would answer with the same noise.
        Proof: docs/proofs/above-threshold.md, several crossings.

    Args:
        mechanism: the public parameters; `Sparse.open` finds those of a given epsilon.
        threshold: a public integer of magnitude at most 2^60.
        bits: where randomness comes from.
        accountant: charged with `event` before anything is drawn; None if the caller has charged it.

    Raises:
        BudgetExceeded: the accountant cannot pay; nothing was drawn.
        InvalidParameter: a public parameter breaks a rule.

    References:
        [LSL17], [DR14].

    >>> from sfumato.laws import SystemBits
    >>> stream = Sparse.open(1, sensitivity=1, threshold=500, crossings=2, bits=SystemBits())
    >>> stream.cost
    Fraction(1, 1)
    >>> [stream.offer(value) for value in (3, 900, 40, 1200)]
    ['below', 'above', 'below', 'above']
    >>> stream.remaining, stream.halted
    (0, True)
    >>> stream.offer(7)
    Traceback (most recent call last):
    sfumato.errors.BudgetExceeded: 2 crossings told, as paid for: open another stream to ask for more
    """

    noun = "a stream"

    def __init__(
        self, mechanism: SparseMechanism, threshold: int, bits: Bits, *, accountant: Accountant | None = None
    ) -> None:
        if not isinstance(mechanism, SparseMechanism):
            raise InvalidParameter(f"mechanism must be a SparseMechanism, got mechanism={shown(mechanism)}")
        self._threshold = whole("threshold", threshold, least=-LARGEST_VALUE, most=LARGEST_VALUE)
        if not isinstance(bits, Bits):
            raise InvalidParameter(f"bits must be a source of bits, got bits={shown(bits)}")
        self._mechanism, self._bits = mechanism, bits
        self._remaining = mechanism.crossings
        self._lock = Lock()
        if accountant is not None and not callable(getattr(accountant, "charge", None)):
            raise InvalidParameter(f"accountant must be an accountant, got accountant={shown(accountant)}")
        if accountant is not None:
            accountant.charge(mechanism.event)
        self._comparisons = Comparisons(mechanism, self._threshold, bits)

    @classmethod
    def open(
        cls,
        epsilon: Number,
        *,
        sensitivity: int,
        threshold: int,
        crossings: int = 1,
        same_direction: bool = False,
        one_sided: bool = True,
        answers: Number | None = None,
        bits: Bits,
        accountant: Accountant | None = None,
    ) -> "Sparse":
        """A stream that costs exactly `epsilon`, however long it becomes.

        Args:
            epsilon: the pure cost of all answers together.
            sensitivity: how far one record can move any value; the caller's promise.
            threshold: a public integer.
            crossings: after how many answers of "above" the stream halts.
            same_direction: the promise that no record moves one value up and another down, as with counts
                under add-remove; the values then need half the noise.
            one_sided: geometric noise of half the variance in the comparisons.
            answers: the share of epsilon, inside (0, 1), for numbers in place of "above"; None for none.
            bits: where randomness comes from.
            accountant: charged with the whole before anything is drawn; None if the caller has charged it.

        >>> from sfumato.laws import SeededBits
        >>> stream = Sparse.open(
        ...     2, sensitivity=1, threshold=500, same_direction=True, answers=0.5, bits=SeededBits(1)
        ... )
        >>> stream.offer(20), abs(stream.offer(900) - 900) <= stream.mechanism.answer_radius(1 - 1e-9)
        ('below', True)
        """
        mechanism = SparseMechanism.calibrated(
            epsilon,
            sensitivity=sensitivity,
            crossings=crossings,
            same_direction=same_direction,
            one_sided=one_sided,
            answers=answers,
        )
        return cls(mechanism, threshold, bits, accountant=accountant)

    @property
    def mechanism(self) -> SparseMechanism:
        """The public parameters."""
        return self._mechanism

    @property
    def threshold(self) -> int:
        """The public threshold, without noise."""
        return self._threshold

    @property
    def cost(self) -> Fraction:
        """The exact pure epsilon of the whole stream; it does not depend on the answers."""
        return self._mechanism.cost

    @property
    def event(self) -> PureEvent:
        """What the whole stream costs, for an accountant."""
        return self._mechanism.event

    @property
    def remaining(self) -> int:
        """How many more values may be above."""
        return self._remaining

    @property
    def halted(self) -> bool:
        """Whether all crossings were told."""
        return self._remaining <= 0

    @property
    def private(self) -> bool:
        """False if seeded bits draw the noise; then nothing of it must be published."""
        return self._bits.private

    def offer(self, value: int) -> Answer:
        """Whether the value is above the threshold: "below", "above", or a noisy number in its place.

        Raises:
            BudgetExceeded: the stream has halted; the value was not looked at.
            InvalidParameter: the value is no integer; it is not shown.
            NotSupported: the process was forked after the stream was opened.
        """
        self.require_open()
        number = _integer(value)
        # Two threads must not both be told the last crossing.
        with self._lock:
            self.require_open()
            answer = self._comparisons.told(number)
            self._remaining -= answer != "below"
            return answer

    def require_open(self) -> None:
        """Refuse if nothing more can be told: all crossings were, or this is another process."""
        # A copy would have the same threshold, and crossings of its own.
        self.require_process()
        if self.halted:
            told = counted(self._mechanism.crossings)
            raise BudgetExceeded(f"{told} told, as paid for: open another stream to ask for more")

    def __repr__(self) -> str:
        return f"Sparse(threshold={self._threshold}, remaining={self._remaining}, cost={compact(self.cost)})"


def counted(crossings: int) -> str:
    """A number of crossings in words."""
    return "1 crossing" if crossings == 1 else f"{crossings} crossings"


def _integer(value: object) -> int:
    # `whole` would show the value, which is a fact about the data.
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidParameter("value must be a whole number")
    return int(value)
