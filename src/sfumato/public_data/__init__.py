"""Weights on public records that reproduce private expectations: one release, any number of estimates.

    found = weights(private, public, features=["age"], epsilon=0.5, neighbours="substitution")
    found.mean("income").interval(0.95)    # a column that the public table has
    model.fit(X, y, sample_weight=found.sample_weight())

With a ledger: `Session.weights`. docs/public-data.md says what is protected, and what intervals rest on.

The private side: `features` and `feature_map` turn a row into integers of bounded length; `moments` releases
their sums for tilting, `logistic` the slopes of a regression, certified by `certified`. Post-processing:
`tilting` finds weights, `cover` refuses tables that do not cover, `weighted` and `estimates` answer, and
`redrawing` simulates large noise for intervals.
"""

from sfumato.public_data.cover import NotCovered
from sfumato.public_data.estimates import Estimate, QuantileEstimate
from sfumato.public_data.features import Features
from sfumato.public_data.logistic import Slopes
from sfumato.public_data.moments import FeatureSums
from sfumato.public_data.weighted import Weights
from sfumato.public_data.weighting import Logistic, Tilting, weights

__all__ = [
    "Estimate",
    "FeatureSums",
    "Features",
    "Logistic",
    "NotCovered",
    "QuantileEstimate",
    "Slopes",
    "Tilting",
    "Weights",
    "weights",
]
