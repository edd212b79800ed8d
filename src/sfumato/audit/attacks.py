"""Attacks on a callable: what an observer can tell without knowing the law."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sfumato.audit.low_order import low_bits
from sfumato.audit.probes import edge_cases, seed_reuse
from sfumato.audit.result import AttackResult
from sfumato.audit.timing import timing
from sfumato.checks import Number


def attack(
    mechanism: Callable[[Any], Any],
    left: Any,
    right: Any,
    *,
    epsilon: Number | None = None,
    delta: Number = 0,
    samples: int = 4000,
    bounds: tuple[Number, Number] | None = None,
    progress: Callable[[str], Any] | None = None,
) -> list[AttackResult]:
    """Runs every attack on a mechanism: low-order bits, timing, seeds, and hostile data.

    Guarantee:
        Each result states its own level; see `low_bits`, `timing`, `seed_reuse` and `edge_cases`. Hostile
        data are fed only where `left` is a column of numbers.

    Args:
        mechanism: called as `mechanism(data)`.
        left, right: two neighbouring data sets.
        epsilon, delta: what is claimed.
        samples: how many draws on each data set an attack may take.
        bounds: where answers must lie, if the mechanism promises it.
        progress: called with the name of each attack before it begins.

    Raises:
        InvalidParameter: a parameter out of range.

    >>> import sfumato as sf
    >>> def total(data):
    ...     return sf.sum(data, bounds=(0, 10), epsilon=1)
    >>> found = attack(total, [1.0, 2.0, 3.0], [1.0, 2.0, 4.0], epsilon=1, samples=100)
    >>> [result.attack for result in found if not result.succeeded]
    ['low-order bits', 'timing', 'seed reuse', 'hostile data']
    """
    attacks: dict[str, Callable[[], AttackResult]] = {
        "low-order bits": lambda: low_bits(
            mechanism, left, right, epsilon=epsilon, delta=delta, samples=samples
        ),
        "timing": lambda: timing(mechanism, left, right, calls=samples),
        "seed reuse": lambda: seed_reuse(mechanism, left, right, epsilon=epsilon, delta=delta),
    }
    if isinstance(left, Sequence | np.ndarray) and not isinstance(left, str):
        attacks["hostile data"] = lambda: edge_cases(mechanism, epsilon=epsilon, delta=delta, bounds=bounds)
    results = []
    for name, run in attacks.items():
        if progress is not None:
            progress(name)
        results.append(run())
    return results
