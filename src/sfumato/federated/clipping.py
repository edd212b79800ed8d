r"""One client's update, clipped to a bound and written as integers on a public lattice.

The lattice has the step :math:`g = C / 2^{20}` for the bound :math:`C`. What leaves `clip` is an integer
vector :math:`k` with :math:`\sum k_i^2 \le 2^{40}`, decided by integers: the sensitivity that the noise is
made for is a fact about integers, whatever float64 did before. Proof: docs/proofs/federated.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.checks import Number, boolean, keep, positive, shown, whole
from sfumato.errors import InvalidParameter
from sfumato.grid import Ints

Update = Sequence[NDArray[Any]]
Shapes = tuple[tuple[int, ...], ...]
Floats = NDArray[np.float64]

# Steps of the lattice from zero to the bound.
STEPS = 2**20
MAX_STEPS = 2**24
MAX_COORDINATES = 2**32
SMALLEST_BOUND, LARGEST_BOUND = Fraction(1, 10**100), Fraction(10**100)
# Sums of squares are formed in int64, of so few entries at a time that none can pass this.
_LARGEST_SUM = 2**62
# How much a vector shrinks if float64 left it outside the ball: far above its rounding, far below the noise.
_SHRINK = 1 - 2.0**-30


@dataclass(frozen=True, eq=False)
class Clipped:
    r"""A clipped update: integers on the lattice, and whether its norm fitted the bound unclipped.

    Guarantee:
        The sum of squares of `integers` is at most `steps` squared; an update that could not be used is all
        zeros and has no vote, just like a client that did not answer. Proof: docs/proofs/federated.md.

    Raises:
        InvalidParameter: the integers are outside the ball, or not as many as `shapes` say.

    >>> import numpy as np
    >>> clip([np.array([3.0, 4.0])], bound=10).vote, clip([np.array([np.nan, 4.0])], bound=10).vote
    (1, 0)
    """

    # What a client sent is not for logs.
    integers: Ints = field(repr=False)
    shapes: Shapes
    norm_fits: bool = field(repr=False)
    usable: bool = field(default=True, repr=False)
    steps: int = STEPS

    def __post_init__(self) -> None:
        keep(self, shapes=checked_shapes(self.shapes))
        keep(self, steps=whole("steps", self.steps, least=1, most=MAX_STEPS))
        boolean("norm_fits", self.norm_fits)
        boolean("usable", self.usable)
        if not self.sound:
            raise InvalidParameter("integers must lie in the ball of radius steps and fill shapes")

    @property
    def sound(self) -> bool:
        """Whether the integers fill the shapes inside the ball: an array may change after it was checked."""
        found: object = self.integers
        if not isinstance(found, np.ndarray) or found.shape != (coordinates_of(self.shapes),):
            return False
        return inside_ball(found, self.steps)

    @property
    def arrays(self) -> tuple[Ints, ...]:
        """The integers, layer by layer."""
        return unflatten(self.integers, self.shapes)

    @property
    def vote(self) -> int:
        """+1 if the norm fitted the bound, -1 if it was clipped, 0 if the update could not be used."""
        return 0 if not self.usable else 1 if self.norm_fits else -1

    def values(self, bound: Number) -> tuple[Floats, ...]:
        """The clipped update in the units of the update, for the bound that it was clipped to."""
        step = float(checked_bound(bound) / self.steps)
        return tuple(np.multiply(array, step, dtype=np.float64) for array in self.arrays)


def clip(
    update: Update | None, bound: Number, *, shapes: Shapes | None = None, steps: int = STEPS
) -> Clipped:
    r"""An update scaled into the ball of radius `bound`, over all layers together, as integers.

    The vector is multiplied by :math:`\min(1, C/\|u\|_2)`, divided by the step :math:`C/2^{20}` and
    rounded towards zero.

    Guarantee:
        Whatever the update is, the integers have an L2 norm of at most `steps`, checked in integers. An
        update with a number that is not finite, of another shape or of no real type is the zero update
        without a vote; nothing about an update raises. Proof: docs/proofs/federated.md.

    Args:
        update: a list or tuple of NumPy arrays of floats or integers, one for each layer: the difference from
            the model that was sent. None is the zero update of a client that did not answer.
        bound: the clipping bound C, from 1e-100 to 1e100; read exactly.
        shapes: what the layers must look like; those of the update if not given.
        steps: steps of the lattice from zero to the bound.

    Raises:
        InvalidParameter: bound, shapes or steps is out of range.

    References:
        [MRTZ18] for flat clipping, [KLS21] for a lattice in federated learning.

    >>> import numpy as np
    >>> clip([np.array([3.0]), np.array([4.0])], bound=1).values(1)
    (array([0.59999943]), array([0.79999924]))
    """
    limit = checked_bound(bound)
    radius = whole("steps", steps, least=1, most=MAX_STEPS)
    wanted = None if shapes is None else checked_shapes(shapes)
    vector = flatten(update, wanted)
    if vector is None:
        kept = wanted or ()
        return Clipped(np.zeros(coordinates_of(kept), dtype=np.int64), kept, False, False, radius)
    if wanted is None:
        wanted = tuple(np.shape(array) for array in update or ())
    peak = float(np.max(np.abs(vector), initial=0.0))
    if peak == 0.0:
        return Clipped(np.zeros(len(vector), dtype=np.int64), wanted, True, True, radius)
    # Where NumPy was told to raise, a number that is too small for float64 must not.
    with np.errstate(all="ignore"):
        # Divided by the largest entry nothing overflows, and denormal numbers have all their digits.
        vector /= peak
        length, share = norm(vector), peak / float(limit)
        integers = on_lattice(vector, radius * min(share, 1.0 / length), radius)
    return Clipped(integers, wanted, share * length <= 1.0, True, radius)


def on_lattice(directions: Floats, factor: float, radius: int) -> Ints:
    """The entries times a factor, rounded towards zero, in the ball: the last word is in integers."""
    while True:
        integers = (directions * factor).astype(np.int64)
        if inside_ball(integers, radius):
            return integers
        factor *= _SHRINK


def inside_ball(integers: Ints, radius: int) -> bool:
    """Whether the sum of squares is at most the square of the radius, exactly."""
    if integers.dtype != np.int64:
        return False
    # Bounded entries first, so that no square and no sum of a chunk can leave int64.
    if len(integers) and (int(integers.max()) > radius or int(integers.min()) < -radius):
        return False
    chunk = _LARGEST_SUM // radius**2
    pieces = (integers[start : start + chunk] for start in range(0, len(integers), chunk))
    return sum(int(np.dot(piece, piece)) for piece in pieces) <= radius * radius


def norm(vector: Floats) -> float:
    """The L2 norm of a vector whose entries are at most 1."""
    return math.sqrt(float(np.dot(vector, vector)))


def flatten(update: Update | None, shapes: Shapes | None) -> Floats | None:
    """All layers as one float64 vector of finite numbers; None if the update cannot be used."""
    if not isinstance(update, list | tuple):
        return None
    layers = [layer for layer in update if isinstance(layer, np.ndarray | np.generic)]
    if len(layers) != len(update) or (shapes is not None and tuple(map(np.shape, layers)) != shapes):
        return None
    if any(layer.dtype.kind not in "fiu" for layer in layers):
        return None
    with np.errstate(all="ignore"):
        flat = [np.asarray(layer, dtype=np.float64).ravel() for layer in layers]
    vector = np.concatenate(flat) if flat else np.zeros(0)
    return vector if bool(np.isfinite(vector).all()) else None


def unflatten(vector: NDArray[Any], shapes: Shapes) -> tuple[NDArray[Any], ...]:
    """A vector as layers."""
    cuts = np.cumsum([math.prod(shape) for shape in shapes], dtype=np.int64)
    pieces = np.split(vector, cuts[:-1]) if shapes else []
    return tuple(piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True))


def coordinates_of(shapes: Shapes) -> int:
    """How many numbers an update has."""
    return sum(math.prod(shape) for shape in shapes)


def checked_bound(bound: object) -> Fraction:
    """A clipping bound for which float64 has room on both sides."""
    value = positive("bound", bound)
    if not SMALLEST_BOUND <= value <= LARGEST_BOUND:
        raise InvalidParameter(f"bound must be in [1e-100, 1e100], got bound={shown(bound)}")
    return value


def checked_shapes(shapes: object) -> Shapes:
    """The shapes of the layers of a model."""
    if not isinstance(shapes, list | tuple) or not all(isinstance(shape, list | tuple) for shape in shapes):
        raise InvalidParameter(f"shapes must be a tuple of shapes, got shapes={shown(shapes)}")
    sizes = tuple(
        tuple(whole("shapes", size, least=0, most=MAX_COORDINATES) for size in shape) for shape in shapes
    )
    if coordinates_of(sizes) > MAX_COORDINATES:
        raise InvalidParameter(f"shapes must have at most 2^32 entries, got {coordinates_of(sizes)}")
    return sizes
