"""One query is asked for thousands of intervals of the same noise, so its radii are remembered."""

from functools import lru_cache

import pytest

from sfumato.laws import DiscreteGaussian, DiscreteLaplace

LAWS = (DiscreteLaplace, DiscreteGaussian)
RADII = {law: lru_cache(maxsize=4096)(law.radius) for law in LAWS}


@pytest.fixture(autouse=True)
def _radii_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    for law in LAWS:
        monkeypatch.setattr(law, "radius", RADII[law])
