"""From a model of all records to the law of a linear query given one of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.checks import Number, exact, keep, whole
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.privacy.pufferfish_laws import Floats, Mixture, VectorMixture, tame

__all__ = ["Given", "JointMixture"]

# A component this much rarer than the likeliest, given the secret, is below every rounding.
_RAREST = 1e-100
# Variances of the query below this share of the terms that make them up are rounding and no variance.
_LEAST_VARIANCE = 1e-12


@dataclass(frozen=True, init=False)
class JointMixture:
    r"""A mixture of normal laws of all records together, correlations included.

    Guarantee:
        None of its own. `given(index, value).of(coefficients)` is the law of the linear query given that
        record: in component m its weight is proportional to :math:`w_m N(a; \mu_{mi}, \Sigma_{m,ii})`, its
        mean follows the regression on the record, and its variance does not depend on the value. Weights
        and deviations are rounded to float64, and a certificate is about the rounded law.
        Derivation: docs/proofs/pufferfish.md.

    Args:
        weights: how likely each component is; together exactly 1.
        means: one vector for each component, with one entry for each record.
        covariances: one symmetric positive definite matrix for each component.

    >>> diary = JointMixture([1], [[0, 0, 0]], [[[1, 0.5, 0.5], [0.5, 1, 0.5], [0.5, 0.5, 1]]])
    >>> diary.given(0, 1).of([1, 1, 1]).means  # the others follow: 1 + 0.5 + 0.5
    (Fraction(2, 1),)
    """

    records: VectorMixture

    def __init__(self, weights: Iterable[Number], means: Iterable[Any], covariances: Iterable[Any]) -> None:
        object.__setattr__(self, "records", VectorMixture(weights, means, covariances))

    def given(self, index: int, value: Number) -> "Given":
        """The model given that record `index`, counted from 0, equals `value`."""
        return Given(joint=self, index=index, value=value)


@dataclass(frozen=True, kw_only=True)
class Given:
    """A model given the value of one record; `of` is the law of a linear query.

    Guarantee:
        None of its own: the conditional law of a public model.

    Raises:
        NotSupported: the secret is an interval. List the values that matter as secrets of their own.

    >>> pair = JointMixture([1], [[0, 0]], [[[1, 0.8], [0.8, 1]]])
    >>> Given(joint=pair, index=0, value=2).of([0, 1]).means
    (Fraction(8, 5),)
    """

    joint: JointMixture
    index: int
    value: Number

    def __post_init__(self) -> None:
        _refuse_intervals(self.value)
        keep(self, index=whole("index", self.index, least=0, most=self.joint.records.dimension - 1))
        keep(self, value=tame("value", exact("value", self.value)))

    def of(self, coefficients: Iterable[Number]) -> Mixture:
        """The law of the sum of coefficient times record, given the secret."""
        records = self.joint.records
        c = [exact("coefficients", one) for one in coefficients]
        if len(c) != records.dimension:
            raise InvalidParameter(f"coefficients must be {records.dimension} numbers, got {len(c)}")
        i, a = self.index, Fraction(self.value)
        others = [k for k in range(len(c)) if k != i]
        means, deviations = [], []
        for mean, cov in zip(records.means, records.covariances, strict=True):
            shift = (a - mean[i]) / cov[i][i]
            means.append(c[i] * a + sum(c[k] * (mean[k] + cov[k][i] * shift) for k in others))
            terms = [
                c[k] * c[m] * (cov[k][m] - cov[k][i] * cov[i][m] / cov[i][i]) for k in others for m in others
            ]
            variance = float(sum(terms, Fraction(0)))
            if not variance > _LEAST_VARIANCE * float(sum(map(abs, terms), Fraction(0))):
                raise NotSupported(
                    "the query is known once the record is: it has no variance given the secret"
                )
            deviations.append(variance**0.5)
        return Mixture(_exact_shares(self._weights()), map(_short, means), deviations)

    def _weights(self) -> Floats:
        records, i, a = self.joint.records, self.index, Fraction(self.value)
        logs = []
        for weight, mean, cov in zip(records.weights, records.means, records.covariances, strict=True):
            spread = cov[i][i]
            exponent = float((a - mean[i]) ** 2 / (2 * spread))
            logs.append(np.log(float(weight)) - exponent - np.log(float(spread)) / 2)
        found = np.exp(np.array(logs) - max(logs))
        return np.asarray(np.maximum(found / found.sum(), _RAREST), dtype=np.float64)


def _refuse_intervals(value: object) -> None:
    if isinstance(value, tuple | list):
        raise NotSupported("a secret must be one value: an interval has no bound here; list its values")


def _exact_shares(weights: Floats) -> list[Fraction]:
    """The same weights as fractions that sum to 1 exactly: the largest takes the rounding."""
    shares = [Fraction(float(weight)) for weight in weights]
    largest = int(np.argmax(weights))
    shares[largest] += 1 - sum(shares, Fraction(0))
    return shares


def _short(number: Fraction | int) -> Fraction:
    # Exact where the decimal is short, as for most models; else the nearest float.
    read = Fraction(number)
    return read if read.denominator.bit_length() <= 64 else Fraction(float(read))
