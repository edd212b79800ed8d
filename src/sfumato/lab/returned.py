"""What counts as numbers among the things that a reader's functions return."""

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from sfumato.grid import Floats


def finite(given: Any) -> Floats | None:
    """Finite numbers in an array, or None: text and gaps are no numbers, even where NumPy reads them as such.

    >>> finite([1, 2.5]), finite("1.5"), finite(None), finite([1, None]), finite(float("nan"))
    (array([1. , 2.5]), None, None, None, None)
    """
    if np.ma.isMaskedArray(given):
        return None
    try:
        found = np.asarray(given)
        if found.dtype.kind == "O" and all(isinstance(one, Real | Decimal) for one in found.flat):
            found = found.astype(np.float64)
    except (TypeError, ValueError, OverflowError):  # lists of different lengths, or too large a number
        return None
    if found.dtype.kind not in "buif":
        return None
    found = found.astype(np.float64)
    return found if np.isfinite(found).all() else None


def told_kind(given: Any) -> str:
    """What something is, without its values.

    >>> told_kind(None), told_kind([1, 2]), told_kind(np.zeros((2, 3))), told_kind(float("nan"))
    ('None', 'a list of 2', 'an array of shape (2, 3)', 'nan')
    """
    if isinstance(given, np.ndarray) and given.ndim:
        some = "" if given.dtype.kind in "buif" and np.isfinite(given).all() else ", not all finite numbers"
        return f"an array of shape {given.shape}{some}"
    if isinstance(given, list | tuple):
        return f"a {type(given).__name__} of {len(given)}"
    if given is None or (isinstance(given, float) and not np.isfinite(given)):
        return str(given)
    return type(given).__name__
