"""What an analyst needs of the answers: how many there are, and how many support each label."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.checks import whole
from sfumato.errors import InvalidParameter
from sfumato.laws.bits import Bits
from sfumato.local.design import listed
from sfumato.local.records import check_channel

MOST_ANSWERS = 10**15
# Respondents that are simulated at a time, so that rows of bits stay small.
_CHUNK = 1 << 14


@dataclass(frozen=True, init=False)
class Tally:
    """Counts of randomised answers: all that an estimate needs, and nothing that a respondent said.

    Guarantee:
        Sums of randomised answers: post-processing, at no cost to anyone. Tallies of disjoint groups of
        respondents add up to the tally of all of them.

    Args:
        counts: how many answers support each label of the design.
        size: how many answers there are.

    >>> Tally(counts=[30], size=100) + Tally(counts=[12], size=50)
    Tally(counts=(42,), size=150)
    """

    counts: tuple[int, ...]
    size: int

    def __init__(self, *, counts: Sequence[int], size: int) -> None:
        answers = whole("size", size, least=0, most=MOST_ANSWERS)
        numbers = tuple(whole("a count", count, least=0, most=answers) for count in listed("counts", counts))
        object.__setattr__(self, "counts", numbers)
        object.__setattr__(self, "size", answers)

    @classmethod
    def of(cls, design: Any, answers: Any) -> "Tally":
        """The tally of answers to a design; a tally is checked against it and returned."""
        channel = check_channel(design)
        if isinstance(answers, Tally):
            return answers.checked(channel)
        outputs = channel.heard(answers)
        return cls(counts=channel.counted(outputs), size=len(outputs))

    def checked(self, design: Any) -> "Tally":
        """Itself, if it can come from a design."""
        channel = check_channel(design)
        labels = len(channel.labels)
        if len(self.counts) != labels:
            raise InvalidParameter(f"counts must be one for each of {labels} labels, got {len(self.counts)}")
        if channel.exclusive and labels > 1 and sum(self.counts) != self.size:
            raise InvalidParameter("counts must add up to size, because an answer names one category")
        return self

    def __add__(self, other: "Tally") -> "Tally":
        if not isinstance(other, Tally):
            return NotImplemented
        if len(self.counts) != len(other.counts):
            raise InvalidParameter("tallies of different designs do not add up")
        sums = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        return Tally(counts=sums, size=self.size + other.size)


def simulate(design: Any, truths: Any, *, bits: Bits) -> Tally:
    """The tally of one answer from each of many respondents, for studies and for planning a survey.

    Guarantee:
        Drawn exactly by the channel of the design, as each respondent's device would. Needs all truths in
        one place, so it is no way to run a survey.

    Args:
        design: any design but `TwoSamples`, whose samples are simulated one by one.
        truths: the truth of each respondent, as its device would be told.
        bits: where randomness comes from; seeded bits make a study reproducible.

    >>> from sfumato.laws import SeededBits
    >>> from sfumato.local import Warner
    >>> simulate(Warner(keep=0.9), [True] * 700 + [False] * 300, bits=SeededBits(1)).size
    1000
    """
    channel, items = check_channel(design), listed("truths", truths)
    total = Tally(counts=[0] * len(channel.labels), size=0)
    for start in range(0, len(items), _CHUNK):
        outputs = channel.draw(channel.place(items[start : start + _CHUNK], bits), bits)
        total = total + Tally(counts=channel.counted(outputs), size=len(outputs))
    return total
