"""The density of a quantile by smooth inverse sensitivity, on values in [0, 1]."""

from dataclasses import dataclass

import numpy as np

from sfumato.grid import Floats


@dataclass(frozen=True, eq=False)
class SmoothLaw:
    """Cells from edge to edge and the share of the law below each edge; even within a cell."""

    edges: Floats
    below: Floats

    @classmethod
    def of(cls, data: Floats, rank: int, radius: float, epsilon: float) -> "SmoothLaw":
        """Of the record of this rank among sorted data, smoothed over a radius, for a budget."""
        ups, downs = data[rank - 1 :] + radius, data[:rank][::-1] - radius
        edges = np.clip(np.concatenate([[0.0], downs[::-1], ups, [1.0]]), 0, 1)
        levels = np.concatenate([np.arange(len(downs), 0, -1), [0], np.arange(1, len(ups) + 1)])
        masses = np.concatenate([[0.0], np.cumsum(np.exp(-epsilon / 2 * levels) * np.diff(edges))])
        return cls(edges, masses / masses[-1])

    def beyond(self, center: float, reach: Floats) -> Floats:
        """How likely the answer is further than each distance from a point."""
        low, high = (np.interp(center + sign * np.asarray(reach), self.edges, self.below) for sign in (-1, 1))
        return np.asarray(1 - (high - low))
