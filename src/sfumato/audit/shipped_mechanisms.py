"""The mechanisms of the catalogue: numbers with noise, choices, scans, streams, selections of keys."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import fields
from fractions import Fraction
from functools import partial
from typing import Any

from sfumato.audit.choices import (
    worst_bounded,
    worst_choice,
    worst_crossing,
    worst_partition,
    worst_stream,
)
from sfumato.audit.exact import WorstCase, worst_case
from sfumato.audit.kept_keys import worst_selection
from sfumato.audit.secrets import flu_in_a_household, worst_secrets
from sfumato.audit.target import Target
from sfumato.mechanisms import (
    AboveThreshold,
    BoundedNoiseMechanism,
    ClampedGeometric,
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    PartitionSelection,
    SparseMechanism,
    TopMechanism,
    WassersteinMechanism,
    ZeroSumMechanism,
)
from sfumato.mechanisms.exponential import VARIANTS
from sfumato.privacy import ZCDP, ApproxDP, PureDP
from sfumato.query import Cost

# How many starts the pairs of numbers have.
CELLS = 6


def numeric_mechanisms() -> list[Any]:
    """Every mechanism that disturbs a number, at small and large sensitivities and scales."""
    laplace = [
        LaplaceMechanism(sensitivity=sensitivity, scale=sensitivity / epsilon)
        for sensitivity in (1, 2, 5, 1000, 2**31 + 1)
        for epsilon in (Fraction(1, 100), Fraction(1), Fraction(10, 3))
    ]
    gaussian = [
        GaussianMechanism(
            sensitivity_squared=squared, sigma_squared=squared / (2 * rho), coordinates=coordinates
        )
        for squared, coordinates in ((1, 1), (2, 2), (9, 1), (25, 2), (2**62, 1), (2**40, 2))
        for rho in (Fraction(1, 200), Fraction(1, 2))
    ]
    clamped = [
        ClampedGeometric(scale=1 / epsilon, lower=0, upper=upper)
        for upper in (None, 1, 20)
        for epsilon in (Fraction(1, 50), Fraction(1), Fraction(3))
    ]
    return [*laplace, *gaussian, *clamped]


def mechanism_targets(*, quick: bool = False) -> Iterator[Target]:
    """Every mechanism under the choices that change its law or its cost."""
    for mechanism in numeric_mechanisms():
        gaussian = isinstance(mechanism, GaussianMechanism)
        cost = ZCDP(mechanism.event.rho) if gaussian else _pure(mechanism)
        yield _target(mechanism, _options(mechanism), cost, partial(worst_case, mechanism, cells=CELLS))
    yield from _partitions()
    yield from _choices(quick)
    yield from _scans(quick)
    yield from _streams(quick)
    yield from _bounded(quick)
    yield from _selections(quick)
    yield from _secrets()


def _partitions() -> Iterator[Target]:
    for epsilon, counts in itertools.product((Fraction(1, 10), Fraction(1), Fraction(3)), (2, 3)):
        mechanism = ZeroSumMechanism.calibrated(epsilon)
        run = partial(worst_partition, mechanism, counts=counts, total=3)
        yield _target(mechanism, f"{counts} counts, {_options(mechanism)}", _pure(mechanism), run)


def _choices(quick: bool) -> Iterator[Target]:
    candidates, top = (2, 4) if quick else (3, 3)
    for variant, monotone in itertools.product(VARIANTS, (False, True)):
        kind: dict[str, Any] = {"variant": variant, "monotone": monotone}
        detail = f"{variant}, {'scores move together' if monotone else 'any scores'}"
        one = ExponentialMechanism(sensitivity=Fraction(1), epsilon=Fraction(1), **kind)
        wide = ExponentialMechanism(sensitivity=Fraction(2), epsilon=Fraction(1), **kind)
        several = TopMechanism(picks=2, sensitivity=Fraction(1), epsilon=Fraction(1), **kind)
        run = partial(worst_choice, one, candidates=candidates, top=top)
        yield _target(one, detail, _pure(one), run)
        yield _target(one, detail, ZCDP(one.event.rho), partial(run, zcdp=True))
        yield _target(
            wide, f"{detail}, sensitivity 2", _pure(wide), partial(worst_choice, wide, candidates=2, top=7)
        )
        run = partial(worst_choice, several, candidates=3, top=1 if quick else 3)
        yield _target(several, f"2 picks, {detail}", _pure(several), run)


def _scans(quick: bool) -> Iterator[Target]:
    for one_sided in (True, False):
        sides = _sides(one_sided)
        made = {
            "any queries": AboveThreshold.general(1, 1, one_sided=one_sided),
            "queries that move together": AboveThreshold.same_direction(1, 1, one_sided=one_sided),
        }
        for order in (Fraction(0), Fraction(1, 4), Fraction(3, 10), Fraction(1, 2)):
            made[f"counts at the order {order}"] = AboveThreshold.for_order(1, order, one_sided=one_sided)
        for moves, mechanism in made.items():
            run = partial(worst_crossing, mechanism, values=2 if quick else 3, rows=3 if quick else 5, run=60)
            yield _target(mechanism, f"{moves}, {sides}", _pure(mechanism), run)


def _streams(quick: bool) -> Iterator[Target]:
    for one_sided, together, crossings in itertools.product((True, False), (False, True), (1, 2)):
        for answers in (None, Fraction(1, 3)):
            mechanism = SparseMechanism.calibrated(
                1,
                sensitivity=1,
                crossings=crossings,
                same_direction=together,
                one_sided=one_sided,
                answers=answers,
            )
            detail = f"{'same direction' if together else 'any values'}, {_sides(one_sided)}, "
            detail += f"{crossings} crossing{'s' * (crossings > 1)}{', with numbers' if answers else ''}"
            run = partial(worst_stream, mechanism, values=2 if quick or answers else 3)
            yield _target(mechanism, detail, _pure(mechanism), run)
    for order, crossings in itertools.product((Fraction(1, 4), Fraction(1, 2)), (1, 2)):
        mechanism = SparseMechanism.for_order(1, order=order, crossings=crossings)
        detail = f"counts at the order {order}, {crossings} crossing{'s' * (crossings > 1)}"
        run = partial(worst_stream, mechanism, values=2 if quick else 3)
        yield _target(mechanism, detail, _pure(mechanism), run)


def _bounded(quick: bool) -> Iterator[Target]:
    cost = ApproxDP(1, 0.01)
    for queries, power in itertools.product((1,) if quick else (1, 2), (1, 2, 3)):
        mechanism = BoundedNoiseMechanism.calibrated(cost, sensitivity=1, queries=queries, power=power)
        detail = f"{queries} answer{'s' * (queries > 1)}, power {power}"
        yield _target(mechanism, detail, cost, partial(worst_bounded, mechanism))


def _selections(quick: bool) -> Iterator[Target]:
    made = [("1", "1e-6", 1, 1), ("0.1", "1e-12", 1, 5), ("2", "0.01", 2, 1)]
    for epsilon, delta, groups, least in made if quick else [*made, ("1", "0.01", 2, 3), ("6", "0.2", 3, 2)]:
        mechanism = PartitionSelection(
            epsilon=Fraction(epsilon), delta=Fraction(delta), groups=groups, least=least
        )
        yield _target(mechanism, _options(mechanism), mechanism.cost, partial(worst_selection, mechanism))


def _secrets() -> Iterator[Target]:
    failing = Fraction(1, 1000)
    for method, delta in (("wasserstein", 0), ("laplace-certified", 0), ("gaussian-exact", failing)):
        made = WassersteinMechanism.calibrated(flu_in_a_household(), epsilon=1, delta=delta, method=method)
        proved = made.certificate
        cost = ApproxDP(proved.epsilon, proved.delta) if proved.delta else PureDP(proved.epsilon)
        yield _target(made, f"flu in a household, {method}", cost, partial(worst_secrets, made))


def _target(mechanism: Any, detail: str, cost: Cost, run: Callable[[], WorstCase]) -> Target:
    name = type(mechanism).__name__
    return Target(group="mechanisms", subject=name, title=name, detail=detail, cost=cost, run=run)


def _pure(mechanism: Any) -> Cost:
    return PureDP(mechanism.event.pure_epsilon)


def _options(mechanism: Any) -> str:
    chosen = ((field.name, getattr(mechanism, field.name)) for field in fields(mechanism))
    known = ((name.replace("_", " "), value) for name, value in chosen if value is not None)
    return ", ".join(f"{name} {float(value):.4g}" for name, value in known)


def _sides(one_sided: bool) -> str:
    return "one-sided" if one_sided else "two-sided"
