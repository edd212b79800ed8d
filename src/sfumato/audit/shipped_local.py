"""The designs of randomised response in the catalogue: every two truths of one respondent are neighbours."""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

from sfumato.audit.exact import Loss, WorstCase
from sfumato.audit.target import Target
from sfumato.local import (
    DirectEncoding,
    ForcedResponse,
    OneBitMean,
    PermanentUnary,
    Ranges,
    TwoSamples,
    UnaryEncoding,
    UnrelatedQuestion,
    Warner,
)
from sfumato.local.design import Matrix
from sfumato.privacy import PureDP

_NAMES = ("bus", "bicycle", "car")


def designs() -> list[Any]:
    """Every design that protects its respondents, at one small choice of its parameters or more."""
    third, quarter = Fraction(1, 3), Fraction(1, 4)
    return [
        Warner(keep=Fraction(3, 4)),
        Warner.of_epsilon(1),
        ForcedResponse(truth=Fraction(2, 3), yes=Fraction(1, 4), no=Fraction(1, 12)),
        UnrelatedQuestion(sensitive=Fraction(7, 10), rate=third),
        TwoSamples(sensitive=(Fraction(7, 10), Fraction(3, 10)), rate_between=(quarter, Fraction(4, 5))),
        DirectEncoding.of_epsilon(_NAMES, epsilon=1),
        UnaryEncoding.of_epsilon(_NAMES, epsilon=1),
        UnaryEncoding.of_epsilon(_NAMES, epsilon=1, form="symmetric"),
        PermanentUnary(categories=_NAMES, permanent=(1 - quarter, quarter), instant=(1 - quarter, third)),
        Ranges.of_epsilon(bounds=(0, 5000), epsilon=1, steps=5),
        OneBitMean.of_epsilon(bounds=(0, 120), epsilon=1),
    ]


def local_targets() -> Iterator[Target]:
    """Every design with what an answer costs its respondent."""
    for design in designs():
        name = type(design).__name__
        detail = f"{design.words()}" if hasattr(design, "words") else "both samples, the worst rates"
        yield Target(
            group="local",
            subject=design.TYPE,
            title=name,
            detail=detail,
            cost=PureDP(design.epsilon),
            run=partial(worst_truths, design),
        )
        if isinstance(design, PermanentUnary):
            cost = PureDP(design.report_epsilon)
            run = partial(worst_truths, design.reported, cost)
            yield Target(
                group="local",
                subject=design.TYPE,
                title=name,
                detail=f"one report, {detail}",
                cost=cost,
                run=run,
            )


def worst_truths(design: Any, cost: PureDP | None = None) -> WorstCase:
    """The largest loss between any two truths, from the exact probabilities of all answers."""
    claimed = cost or PureDP(design.epsilon)
    worst: tuple[Fraction | float, Any, Any] | None = None
    pairs = 0
    for matrix in _channels(design):
        for (left, one), (right, other) in itertools.permutations(enumerate(matrix), 2):
            pairs += left < right
            for p, q in zip(one, other, strict=True):
                odds = p / q if q else math.inf if p else Fraction(1)
                if worst is None or odds > worst[0]:
                    worst = odds, left, right
    if worst is None:
        raise AssertionError("a design has two truths or more")
    odds, left, right = worst
    amount = math.log(odds.numerator) - math.log(odds.denominator) if isinstance(odds, Fraction) else math.inf
    loss = Loss(amount, float(claimed.epsilon), claimed)
    return WorstCase(type(design).__name__, loss, pairs, f"truth {left}", f"truth {right}")


def _channels(design: Any) -> Iterator[Matrix]:
    if isinstance(design, TwoSamples):
        for number, rate in itertools.product((0, 1), design.rate_between):
            yield design.sample(number, rate=rate).matrix()
    elif isinstance(design, PermanentUnary):
        yield design.kept.matrix()
    else:
        yield design.matrix()
