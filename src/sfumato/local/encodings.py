"""One of several public categories: direct encoding, unary encodings, and the choice between them."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from sfumato.checks import Number, compact, one_of, shown
from sfumato.errors import InvalidParameter, NotSupported
from sfumato.laws.bits import Bits, Integers
from sfumato.local.cost import Odds, asked_epsilon, coins, falling, probability, worst_odds
from sfumato.local.design import UNREADABLE, Channel, Matrix, Outputs, listed
from sfumato.privacy.records import short_text

MOST_CATEGORIES = 4096
# A unary answer is one of 2^k; beyond this many categories its matrix is not written out.
MOST_WRITTEN = 10


def _categories(values: Sequence[str]) -> tuple[str, ...]:
    items = tuple(short_text("a category", item) for item in listed("categories", values))
    if not 2 <= len(items) <= MOST_CATEGORIES:
        raise InvalidParameter(f"categories must be 2 to {MOST_CATEGORIES}, got {len(items)}")
    if len(set(items)) != len(items):
        raise InvalidParameter(f"categories must differ, got categories={shown(items)}")
    return items


class Categorical(Channel):
    """A channel whose truths are public categories."""

    categories: tuple[str, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The categories."""
        return self.categories

    def place(self, truths: Any, bits: Bits) -> Integers:
        """The place of each truth among the categories."""
        where = {category: place for place, category in enumerate(self.categories)}
        # Compared as exact text, for a number or a list has no place among the categories.
        items = listed("truths", truths)
        places = [where.get(str.__str__(item), -1) if isinstance(item, str) else -1 for item in items]
        if -1 in places:
            raise InvalidParameter(UNREADABLE.format(rule="one of the categories"))
        return np.array(places, dtype=np.int64)


@dataclass(frozen=True, init=False)
class DirectEncoding(Categorical):
    r"""Direct encoding: the true category with probability `keep`, else another, all equally likely.

    Guarantee:
        :math:`\varepsilon = \ln(p/q)` for each answer, with p the probability to keep and
        :math:`q = (1-p)/(k-1)` that of each other of the k categories.
        Proof: docs/proofs/randomised-response.md.

    Args:
        categories: the public categories, different texts.
        keep: the probability of the true category, above 1/k.

    Raises:
        InvalidParameter: too few or equal categories, or a keep that tells nothing.

    References:
        [Warner65], [Wang17].

    >>> design = DirectEncoding.of_epsilon(["bus", "bicycle", "car"], epsilon=1)
    >>> design.cost, round(float(design.keep), 4)
    (LocalDP(epsilon=1.0), 0.5761)
    """

    TYPE: ClassVar[str] = "direct"
    exclusive = True
    categories: tuple[str, ...]
    keep: Fraction

    def __init__(self, *, categories: Sequence[str], keep: Number) -> None:
        object.__setattr__(self, "categories", _categories(categories))
        object.__setattr__(self, "keep", probability("keep", keep))
        if self.keep * len(self.categories) <= 1:
            rule = f"above 1/{len(self.categories)}, with which answers tell nothing"
            raise InvalidParameter(f"keep must be {rule}, got keep={compact(self.keep)}")

    @classmethod
    def of_epsilon(cls, categories: Sequence[str], *, epsilon: Number) -> "DirectEncoding":
        """The design that costs at most `epsilon`, and less by at most 2^-63 of its odds."""
        others = len(_categories(categories)) - 1
        return cls(categories=categories, keep=1 / (1 + others * falling(asked_epsilon(epsilon))))

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        """The probability of the true category, and of each other."""
        return self.keep, (1 - self.keep) / (len(self.categories) - 1)

    @property
    def odds(self) -> Odds:
        """The ratio of the two."""
        return worst_odds(*self.support)

    def matrix(self) -> Matrix:
        """One row for each true category, one column for each answer."""
        same, other = self.support
        places = range(len(self.categories))
        return tuple(tuple(same if i == j else other for j in places) for i in places)

    def draw(self, places: Integers, bits: Bits) -> Outputs:
        """With probability p - q the truth, else any category: p - q + q is p."""
        same, other = self.support
        honest = coins(same - other, bits, len(places))
        anything = bits.below_each(len(self.categories), len(places))
        return np.where(honest, places, anything)

    def spoken(self, output: Outputs) -> str:
        """The name of the category."""
        return self.categories[int(output)]

    def heard(self, answers: Any) -> Outputs:
        """The places of the answers."""
        where = {category: place for place, category in enumerate(self.categories)}
        items = listed("answers", answers)
        if not all(isinstance(answer, str) and answer in where for answer in items):
            raise InvalidParameter("answers must be categories of the design")
        return np.array([where[answer] for answer in items], dtype=np.int64)

    def counted(self, outputs: Outputs) -> tuple[int, ...]:
        """How many answers name each category."""
        return tuple(np.bincount(outputs, minlength=len(self.categories)).tolist())

    def words(self) -> str:
        """The design in words."""
        return f"direct encoding: the true category with probability {float(self.keep):.6g}, else another"


@dataclass(frozen=True, init=False)
class UnaryEncoding(Categorical):
    r"""Unary encoding: one bit for each category, each randomised by itself.

    Guarantee:
        :math:`\varepsilon = \ln\frac{p(1-q)}{(1-p)q}` for each answer, with p and q the probabilities that a
        bit of 1 and a bit of 0 are sent as 1. Proof: docs/proofs/randomised-response.md.

    Args:
        categories: the public categories, different texts.
        one_if_one, one_if_zero: p and q, with p above q.

    Raises:
        InvalidParameter: too few or equal categories, or p not above q.

    References:
        [Erlingsson14] for the symmetric form (p + q = 1), [Wang17] for the optimised one (p = 1/2).

    >>> design = UnaryEncoding.of_epsilon(["bus", "bicycle", "car"], epsilon=1)
    >>> design.cost, design.one_if_one, round(float(design.one_if_zero), 4)
    (LocalDP(epsilon=1.0), Fraction(1, 2), 0.2689)
    """

    TYPE: ClassVar[str] = "unary"
    exclusive = False
    categories: tuple[str, ...]
    one_if_one: Fraction
    one_if_zero: Fraction

    def __init__(self, *, categories: Sequence[str], one_if_one: Number, one_if_zero: Number) -> None:
        object.__setattr__(self, "categories", _categories(categories))
        object.__setattr__(self, "one_if_one", probability("one_if_one", one_if_one))
        object.__setattr__(self, "one_if_zero", probability("one_if_zero", one_if_zero))
        if self.one_if_one <= self.one_if_zero:
            got = f"one_if_one={compact(self.one_if_one)}, one_if_zero={compact(self.one_if_zero)}"
            raise InvalidParameter(f"one_if_one must be above one_if_zero, got {got}")

    @classmethod
    def of_epsilon(
        cls, categories: Sequence[str], *, epsilon: Number, form: str = "optimised"
    ) -> "UnaryEncoding":
        """The design that costs at most `epsilon`; `form` is "optimised" or "symmetric"."""
        asked = asked_epsilon(epsilon)
        if one_of("form", form, ["optimised", "symmetric"]) == "symmetric":
            low = falling(asked / 2)
            return cls(categories=categories, one_if_one=1 / (1 + low), one_if_zero=low / (1 + low))
        low = falling(asked)
        # Without protection a half of the ones would be lost for nothing.
        one = Fraction(1, 2) if low else Fraction(1)
        return cls(categories=categories, one_if_one=one, one_if_zero=low / (1 + low))

    @property
    def support(self) -> tuple[Fraction, Fraction]:
        """The probability that the bit of the true category is sent as 1, and that another is."""
        return self.one_if_one, self.one_if_zero

    @property
    def odds(self) -> Odds:
        """Two truths differ in two bits; the worst answer has the one bit set and the other not."""
        p, q = self.support
        return worst_odds(p, q) * worst_odds(1 - q, 1 - p)

    def matrix(self) -> Matrix:
        """One row for each true category, one column for each vector of bits, counted in binary."""
        count = len(self.categories)
        if count > MOST_WRITTEN:
            raise NotSupported(f"a matrix has at most 2**{MOST_WRITTEN} columns, and this one 2**{count}")
        answers = list(itertools.product((0, 1), repeat=count))
        return tuple(tuple(self._chance(truth, answer) for answer in answers) for truth in range(count))

    def _chance(self, truth: int, answer: tuple[int, ...]) -> Fraction:
        p, q = self.support
        ones = (p if place == truth else q for place in range(len(answer)))
        chances = (one if bit else 1 - one for one, bit in zip(ones, answer, strict=True))
        return math.prod(chances, start=Fraction(1))

    def draw(self, places: Integers, bits: Bits) -> Outputs:
        """One row of bits for each place."""
        p, q = self.support
        size, count = len(places), len(self.categories)
        # Every bit tosses the coin of a 0, and every respondent that of a 1, whatever the truth is.
        sent = coins(q, bits, size * count).reshape(size, count)
        sent[np.arange(size), places] = coins(p, bits, size)
        return sent.astype(np.int64)

    def spoken(self, output: Outputs) -> tuple[int, ...]:
        """The bits."""
        return tuple(int(bit) for bit in output)

    def heard(self, answers: Any) -> Outputs:
        """Answers as rows of bits."""
        rows = [listed("an answer", answer) for answer in listed("answers", answers)]
        flat = [bit for row in rows for bit in row]
        right = all(len(row) == len(self.categories) for row in rows)
        if not right or not all(isinstance(b, np.bool_ | Integral) and b in (0, 1) for b in flat):
            raise InvalidParameter(f"each answer must be {len(self.categories)} bits, 0 or 1")
        return np.array(flat, dtype=np.int64).reshape(len(rows), len(self.categories))

    def counted(self, outputs: Outputs) -> tuple[int, ...]:
        """How many answers have each bit set."""
        return tuple(outputs.sum(axis=0, dtype=np.int64).tolist())

    def words(self) -> str:
        """The design in words."""
        p, q = (float(share) for share in self.support)
        return f"unary encoding: the true bit is sent as 1 with probability {p:.6g}, each other with {q:.6g}"


def encoding(
    categories: Sequence[str], *, epsilon: Number, method: str = "auto"
) -> DirectEncoding | UnaryEncoding:
    r"""The design for a question with public categories; by default the one of smaller variance.

    Guarantee:
        Costs at most `epsilon`. "auto" takes direct encoding if :math:`k < 3e^{\varepsilon} + 2` for k
        categories and optimised unary encoding otherwise: the smaller variance for a rare category.
        Proof: docs/proofs/randomised-response.md.

    Args:
        categories: the public categories, different texts.
        epsilon: what an answer may cost its respondent.
        method: "auto", "direct", "optimised" or "symmetric".

    References:
        [Wang17].

    >>> few, many = (encoding([str(i) for i in range(k)], epsilon=1) for k in (10, 11))
    >>> type(few).__name__, type(many).__name__
    ('DirectEncoding', 'UnaryEncoding')
    """
    one_of("method", method, ["auto", "direct", "optimised", "symmetric"])
    if method == "auto":
        # (k - 2) e^-epsilon < 3, with the rational that is at least e^-epsilon.
        few = (len(_categories(categories)) - 2) * falling(asked_epsilon(epsilon)) < 3
        method = "direct" if few else "optimised"
    if method == "direct":
        return DirectEncoding.of_epsilon(categories, epsilon=epsilon)
    return UnaryEncoding.of_epsilon(categories, epsilon=epsilon, form=method)
