r"""An accountant that Flower's own privacy wrappers can use, by the exact curve of composed Gaussians.

Releases with noise multipliers :math:`z_i` are together as private as one Gaussian with the multiplier
:math:`1/\mu`, :math:`\mu^2 = \sum 1/z_i^2`. Its curve is known, so nothing is lost in a conversion: Flower's
own accountant goes through Rényi divergences and states a larger epsilon for the same noise.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Protocol

from sfumato.checks import between, exact, float_up, positive, shown, whole
from sfumato.errors import InvalidParameter, MissingExtra, NotSupported
from sfumato.privacy import gaussian_vector_delta, zcdp_delta, zcdp_epsilon
from sfumato.privacy.gaussian import MAX_EPSILON

__all__ = ["SfumatoAccountant"]

_SCHEMA = 1
_METHOD = "sfumato-gaussian"
_MOST_RELEASES = 10**9
# The curve is that of noise on a lattice; on one so fine it is the curve of continuous noise, rounded up.
_FINE = 2**160
# Halvings of an interval of epsilons no longer than MAX_EPSILON: what is left is below 1e-10.
_HALVINGS = 44


class PrivacyConfig(Protocol):
    """What is read of Flower's configuration of an accountant."""

    target_delta: float
    population_size: int
    neighboring_relation: Any
    sampling_method: Any
    max_epsilon: float | None


class GaussianPrivacyEvent(Protocol):
    """What is read of Flower's record of one noisy average."""

    noise_multiplier: float
    sample_size: int
    population_size: int


class SfumatoAccountant:
    r"""Adds up Gaussian releases for Flower's strategies and states the smallest epsilon that is proved.

    Guarantee:
        All releases composed are together :math:`(\varepsilon, \delta)`-DP for every pair that `get_epsilon`
        and `get_delta` return, if each adds independent Gaussian noise of `noise_multiplier` times the
        largest change by one client, and the multipliers were fixed before the first release. Where a
        strategy asks a sample of fixed size, a client that joins displaces another, and the change is twice
        the clipping bound. The deltas are upper bounds, at most 1e-6 (relative) above the exact
        curve. No gain from sampling clients is claimed. Whether Flower's wrapper adds that noise is not
        checked here: it adds floats of NumPy's generator, where `CentralDP` draws exactly.

    Args:
        config: a `PrivacyConfig` of Flower, with the sampling method "no-amplification".

    Raises:
        NotSupported: another sampling method, or another neighbour relation.
        InvalidParameter: an event of another population, or a number out of range.

    References:
        [BW18] for the curve; docs/proofs/gaussian.md, theorem 3, for its bound.

    >>> from types import SimpleNamespace as Record
    >>> config = Record(
    ...     target_delta=1e-5,
    ...     population_size=100,
    ...     neighboring_relation="add-or-remove-one",
    ...     sampling_method="no-amplification",
    ...     max_epsilon=12.0,
    ... )
    >>> event = Record(noise_multiplier=1.0, sample_size=10, population_size=100)
    >>> accountant = SfumatoAccountant(config)
    >>> accountant.compose(event, count=5)
    >>> round(accountant.get_epsilon(1e-5), 2), accountant.would_exceed(event)
    (11.48, True)
    """

    def __init__(self, config: PrivacyConfig) -> None:
        sampling, relation = _word(config.sampling_method), _word(config.neighboring_relation)
        if sampling != "no-amplification":
            raise NotSupported(
                f"sampling_method={shown(sampling)} is not accounted for: no gain from sampling clients is "
                'claimed, choose "no-amplification"'
            )
        if relation != "add-or-remove-one":
            raise NotSupported(
                f"neighboring_relation={shown(relation)} is not accounted for: the noise multiplier is "
                'relative to what one more client changes, choose "add-or-remove-one"'
            )
        self._delta = between("target_delta", config.target_delta, 0, 1)
        self._population = whole("population_size", config.population_size, least=1, most=10**12)
        limit = config.max_epsilon
        self._limit = None if limit is None else positive("max_epsilon", limit)
        self._config = config
        self._compositions: list[tuple[GaussianPrivacyEvent, int]] = []

    @property
    def config(self) -> PrivacyConfig:
        """The configuration it was made with."""
        return self._config

    @property
    def num_releases(self) -> int:
        """How many releases were composed."""
        return sum(count for _, count in self._compositions)

    def compose(self, event: GaussianPrivacyEvent, count: int = 1) -> None:
        """Add `count` releases of the same kind."""
        self._inverse_square(event, count)
        self._compositions.append((event, int(count)))

    def get_epsilon(self, delta: float) -> float:
        """The epsilon of all releases at a delta; zero before the first."""
        return _epsilon(self._spent(), between("delta", delta, 0, 1))

    def get_delta(self, epsilon: float) -> float:
        """The delta of all releases at an epsilon; zero before the first."""
        limit = exact("epsilon", epsilon)
        if limit < 0:
            raise InvalidParameter(f"epsilon must be at least 0, got epsilon={shown(epsilon)}")
        spent = self._spent()
        return _delta(spent, limit) if spent else 0.0

    def get_privacy_spent(self, delta: float | None = None) -> Any:
        """What was spent, as Flower's record of it, at the delta of the configuration unless told."""
        try:
            from flwr.supercore.privacy_accounting import PrivacySpent
        except ImportError as error:
            raise MissingExtra(
                'a PrivacySpent of Flower needs the package flwr: pip install "sfumato[flower]"'
            ) from error
        target = self._config.target_delta if delta is None else delta
        return PrivacySpent(
            epsilon=self.get_epsilon(target),
            delta=float(target),
            num_releases=self.num_releases,
            accounting_method=_METHOD,
        )

    def would_exceed(
        self, event: GaussianPrivacyEvent, max_epsilon: float | None = None, count: int = 1
    ) -> bool:
        """Whether `count` more releases would pass the limit; changes nothing."""
        limit = self._limit if max_epsilon is None else positive("max_epsilon", max_epsilon)
        if limit is None:
            raise InvalidParameter("max_epsilon must be given, here or in the configuration")
        later = self._spent() + self._inverse_square(event, count)
        return Fraction(_epsilon(later, self._delta)) > limit

    def state_dict(self) -> dict[str, object]:
        """All that was composed, in JSON's types."""
        return {
            "schema_version": _SCHEMA,
            "backend": _METHOD,
            "config": self._facts(),
            "compositions": [
                {
                    "event": {
                        "noise_multiplier": event.noise_multiplier,
                        "sample_size": event.sample_size,
                        "population_size": event.population_size,
                    },
                    "count": count,
                }
                for event, count in self._compositions
            ],
        }

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Take over what `state_dict` gave of an accountant with the same configuration."""
        if state.get("schema_version") != _SCHEMA or state.get("backend") != _METHOD:
            raise InvalidParameter("state must be what state_dict of this accountant gave")
        if state.get("config") != self._facts():
            raise InvalidParameter("state must have the configuration of this accountant")
        stored = state.get("compositions")
        if not isinstance(stored, list):
            raise InvalidParameter("state must list its compositions")
        restored: list[tuple[GaussianPrivacyEvent, int]] = []
        for entry in stored:
            event, count = _read(entry)
            self._inverse_square(event, count)
            restored.append((event, count))
        self._compositions = restored

    def _facts(self) -> dict[str, object]:
        config = self._config
        return {
            "target_delta": config.target_delta,
            "population_size": config.population_size,
            "neighboring_relation": _word(config.neighboring_relation),
            "sampling_method": _word(config.sampling_method),
            "max_epsilon": config.max_epsilon,
        }

    def _spent(self) -> Fraction:
        return sum((self._inverse_square(event, count) for event, count in self._compositions), Fraction(0))

    def _inverse_square(self, event: GaussianPrivacyEvent, count: int) -> Fraction:
        """What `count` such releases add to the squared mu."""
        if event.population_size != self._population:
            raise InvalidParameter(
                f"population_size of an event must be that of the configuration, "
                f"{self._population}, got population_size={shown(event.population_size)}"
            )
        releases = whole("count", count, least=1, most=_MOST_RELEASES)
        return releases / positive("noise_multiplier", event.noise_multiplier) ** 2


class _Stored:
    """An event read from a state."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.noise_multiplier = float(positive("noise_multiplier", fields["noise_multiplier"]))
        self.sample_size = whole("sample_size", fields["sample_size"], least=1, most=10**12)
        self.population_size = whole("population_size", fields["population_size"], least=1, most=10**12)


def _read(entry: Any) -> tuple[GaussianPrivacyEvent, int]:
    try:
        event = _Stored(entry["event"])
        return event, whole("count", entry["count"], least=1, most=_MOST_RELEASES)
    except (KeyError, TypeError) as error:
        raise InvalidParameter("state must list events with their counts") from error


def _word(choice: Any) -> str:
    """The text of a choice that may be an enumeration of Flower or its text."""
    return str(getattr(choice, "value", choice))


def _delta(square: Fraction, epsilon: Fraction) -> float:
    """An upper bound of delta at an epsilon for Gaussian noise with 1/z^2 = `square`."""
    if epsilon > MAX_EPSILON:
        return zcdp_delta(square / 2, epsilon)
    return gaussian_vector_delta(
        epsilon, sigma_squared=_FINE / square, sensitivity_squared=_FINE, coordinates=1
    )


def _epsilon(square: Fraction, delta: Fraction) -> float:
    """An epsilon at which the bound of delta is at most `delta`, within 1e-9 of the smallest."""
    if not square:
        return 0.0
    high = Fraction(zcdp_epsilon(square / 2, delta))
    if high > MAX_EPSILON or Fraction(_delta(square, high)) > delta:
        return float_up(high)
    low = Fraction(0)
    if Fraction(_delta(square, low)) <= delta:
        return 0.0
    for _ in range(_HALVINGS):
        middle = Fraction(float((low + high) / 2))
        if Fraction(_delta(square, middle)) <= delta:
            high = middle
        else:
            low = middle
    return float_up(high)
