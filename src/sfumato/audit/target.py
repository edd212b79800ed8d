"""One line of the catalogue: something that is shipped, what it claims to cost, and its audit."""

from collections.abc import Callable
from dataclasses import dataclass

from sfumato.audit.exact import WorstCase
from sfumato.query import Cost


@dataclass(frozen=True, kw_only=True)
class Target:
    """Something that the package ships, under one choice of its public parameters, with its audit.

    Guarantee:
        `audit` compares the laws that a release draws from; what is exact is said at `sfumato.audit.Loss`.

    Args:
        group: "statistics", "quantiles", "mechanisms" or another kind of thing.
        subject: its key in the registry of its group.
        title: how it is asked for, in words.
        detail: the other choices: relation, nulls, options.
        cost: what it claims to cost at most.
        run: the audit; a function that another process can load.

    >>> from sfumato.audit.shipped import shipped
    >>> target = next(target for target in shipped() if target.title == "mean")
    >>> target.name, target.claimed
    ('mean, substitution, nulls drop', 'epsilon 1')
    >>> print(target.audit())
    mean, substitution: 315 pairs, worst loss 1.0000 of PureDP(epsilon=1.0), holds
    """

    group: str
    subject: str
    title: str
    detail: str
    cost: Cost
    run: Callable[[], WorstCase]

    @property
    def name(self) -> str:
        """What tells it from all others."""
        return f"{self.title}, {self.detail}"

    @property
    def claimed(self) -> str:
        """The cost in words."""
        return in_words(self.cost)

    def audit(self) -> WorstCase:
        """The largest loss over all its small neighbouring inputs."""
        return self.run()


def in_words(cost: Cost) -> str:
    """A cost such as "epsilon 1, delta 1e-06", or "nothing"."""
    parts = ((name, getattr(cost, name, None)) for name in ("epsilon", "delta", "rho"))
    return ", ".join(f"{name} {float(value):.4g}" for name, value in parts if value) or "nothing"
