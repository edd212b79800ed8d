"""What is to be hidden, from whom: secrets, the pairs that must look alike, and scenarios of the world."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sfumato.checks import shown
from sfumato.errors import InvalidParameter
from sfumato.privacy.pufferfish_laws import Finite, Mixture, QueryLaw, VectorMixture, checked_mapping
from sfumato.privacy.records import short_text

__all__ = ["Comparison", "Pufferfish", "Scenario"]

MAX_PAIRS = 100_000


class Comparison(NamedTuple):
    """One pair of secrets in one scenario, with the two laws of the query that must look alike."""

    scenario: str
    first: str
    second: str
    left: Any
    right: Any

    @property
    def key(self) -> tuple[str, str, str]:
        """Its names."""
        return self.scenario, self.first, self.second


@dataclass(frozen=True, init=False)
class Scenario:
    """One belief about the world: the law of the query given each secret.

    Guarantee:
        None of its own: a public statement.

    Args:
        name: what the scenario is called.
        laws: the law for each secret, or None where the secret has probability zero.

    Raises:
        InvalidParameter: no laws, or something else than a law.

    >>> Scenario("mild", {"ill": Finite({1: 1}), "well": Finite({0: 1})}).secrets
    ('ill', 'well')
    """

    name: str
    laws: tuple[tuple[str, QueryLaw | None], ...]

    def __init__(self, name: str, laws: Mapping[str, QueryLaw | None]) -> None:
        object.__setattr__(self, "name", short_text("scenario", name))
        checked_mapping(f"scenario {name!r}", laws)
        for secret, law in laws.items():
            short_text("secret", secret)
            if law is not None and not isinstance(law, Finite | Mixture | VectorMixture):
                raise InvalidParameter(
                    f"a law must be a Finite, a Mixture, a VectorMixture or None, got {shown(law)}"
                )
        object.__setattr__(self, "laws", tuple(laws.items()))

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets that it speaks of."""
        return tuple(secret for secret, _ in self.laws)


@dataclass(frozen=True, init=False)
class Pufferfish:
    r"""Secrets, the pairs of them that must not be told apart, and the scenarios under which.

    Guarantee:
        A release is :math:`(\varepsilon, \delta)`-Pufferfish private for this model if, in every scenario and
        for both secrets of every pair, no event is likelier than :math:`e^\varepsilon` times plus
        :math:`\delta`. It protects these secrets under these scenarios and nothing else, and two releases
        have no common bound. Definition and proofs: docs/proofs/pufferfish.md.

    Args:
        scenarios: for each scenario, by name, the law of the query given each secret; None for a secret that
            has probability zero there. They are public, or fitted to public data, or paid for elsewhere.
        pairs: the pairs of secrets that must look alike; every one is compared in every scenario.

    Raises:
        InvalidParameter: no scenario or pair, a secret without a law, a pair that is possible in no scenario,
            or laws of different kinds.

    References:
        [KM14] for the definition.

    >>> model = Pufferfish(
    ...     scenarios={"usual": {"ill": Finite({1: 0.5, 2: 0.5}), "well": Finite({0: 0.5, 1: 0.5})}},
    ...     pairs=[("ill", "well")],
    ... )
    >>> [comparison.key for comparison in model.comparisons]
    [('usual', 'ill', 'well')]
    """

    scenarios: tuple[Scenario, ...]
    pairs: tuple[tuple[str, str], ...]

    def __init__(
        self, scenarios: Mapping[str, Mapping[str, QueryLaw | None]], pairs: Iterable[tuple[str, str]]
    ) -> None:
        checked_mapping("scenarios", scenarios)
        object.__setattr__(self, "scenarios", tuple(Scenario(name, laws) for name, laws in scenarios.items()))
        object.__setattr__(self, "pairs", tuple(_checked_pair(pair) for pair in pairs))
        if not 1 <= len(self.pairs) * len(self.scenarios) <= MAX_PAIRS:
            raise InvalidParameter(f"pairs must be at least one, and at most {MAX_PAIRS} over all scenarios")
        if len({frozenset(pair) for pair in self.pairs}) < len(self.pairs):
            raise InvalidParameter("pairs must name every pair once: both directions are always covered")
        possible = {frozenset((comparison.first, comparison.second)) for comparison in self.comparisons}
        for first, second in self.pairs:
            if frozenset((first, second)) not in possible:
                raise InvalidParameter(f"the pair ({first!r}, {second!r}) is possible in no scenario")
        _check_kinds([law for scenario in self.scenarios for _, law in scenario.laws if law is not None])

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Every pair in every scenario where both secrets are possible."""
        found = []
        for scenario in self.scenarios:
            laws = dict(scenario.laws)
            for first, second in self.pairs:
                for secret in (first, second):
                    if secret not in laws:
                        raise InvalidParameter(
                            f"scenario {scenario.name!r} must have a law for the secret {secret!r}, "
                            "or None if it has probability zero"
                        )
                if laws[first] is not None and laws[second] is not None:
                    found.append(Comparison(scenario.name, first, second, laws[first], laws[second]))
        return tuple(found)

    @property
    def dimension(self) -> int:
        """How many numbers the query has."""
        law = self.comparisons[0].left
        return law.dimension if isinstance(law, VectorMixture) else 1


def _checked_pair(pair: Any) -> tuple[str, str]:
    if not isinstance(pair, tuple | list) or len(pair) != 2 or pair[0] == pair[1]:
        raise InvalidParameter(f"a pair must be two different secrets, got {shown(pair)}")
    return short_text("secret", pair[0]), short_text("secret", pair[1])


def _check_kinds(laws: list[QueryLaw]) -> None:
    kinds = {(type(law), law.dimension if isinstance(law, VectorMixture) else 1) for law in laws}
    if len(kinds) > 1:
        raise InvalidParameter("all laws of a model must be of one kind, and vectors of one length")
