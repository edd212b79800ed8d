"""What the tests of hostile input share: every front function, its query, and what it should answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import sfumato as sf

RELATIONS = ("substitution", "add-remove")
CANARY_NUMBER, CANARY_TEXT = 987654.321, "CANARY-7f3a91"


@dataclass(frozen=True)
class Asked:
    """A front function with public parameters, the query class behind it, and the exact answer."""

    function: Callable[..., sf.Release]
    kind: Any
    parameters: dict[str, Any]
    exact: Callable[[np.ndarray], Any]

    def front(self, values, *, epsilon=1, neighbours="substitution", **others):
        return self.function(values, epsilon=epsilon, neighbours=neighbours, **{**self.parameters, **others})

    def query(self, *, epsilon=1, **others):
        return self.kind(budget=sf.PureDP(epsilon), column="x", **{**self.parameters, **others})


def clamped(values):
    return np.clip(values, 0, 10)


NUMERIC = {
    "count": Asked(sf.count, sf.Count, {}, len),
    "count between": Asked(sf.count, sf.Count, {"between": (2, 5)}, lambda x: ((x >= 2) & (x <= 5)).sum()),
    "sum": Asked(sf.sum, sf.Sum, {"bounds": (0, 10)}, lambda x: clamped(x).sum()),
    "mean": Asked(sf.mean, sf.Mean, {"bounds": (0, 10)}, lambda x: clamped(x).mean()),
    "variance": Asked(sf.variance, sf.Variance, {"bounds": (0, 10)}, lambda x: clamped(x).var()),
    "proportion": Asked(
        sf.proportion, sf.Proportion, {"between": (2, 5)}, lambda x: ((x >= 2) & (x <= 5)).mean()
    ),
    "histogram": Asked(
        sf.histogram,
        sf.Histogram,
        {"bins": 5, "bounds": (0, 10)},
        lambda x: np.bincount(np.minimum(clamped(x) // 2, 4).astype(int), minlength=5),
    ),
    "histogram of edges": Asked(
        sf.histogram,
        sf.Histogram,
        {"edges": (0, 1, 10)},
        lambda x: np.array([(clamped(x) < 1).sum(), (clamped(x) >= 1).sum()]),
    ),
}


def published(release):
    """Everything that a reader of a release can see."""
    parts = (release, release._repr_html_(), release.to_json(), release.notes, release.method, release.event)
    return "\n".join(str(part) for part in (*parts, release.cost, release.parameters))


def assert_one_line(error):
    """An error made on purpose: one line, not too long, with nothing of the data in it."""
    assert isinstance(error, sf.SfumatoError), repr(error)
    message = str(error)
    assert message
    assert "\n" not in message
    assert len(message) < 400
    assert "987654" not in message
    assert "CANARY" not in message
    return message
