"""What a client's reply says about the model, for the server's strategy and the client's mods alike."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A client's array takes at most this many bytes for each number and for its header; more is not even opened.
_BYTES_EACH, _BYTES_HEADER = 16, 65_536


def difference(reply: Any, names: Sequence[str], layers: Sequence[NDArray[Any]]) -> list[NDArray[Any]] | None:
    """How far a client moved the model, or None if that cannot be told; nothing in a reply raises."""
    try:
        if reply.has_error() or len(reply.content.array_records) != 1:
            return None
        (record,) = reply.content.array_records.values()
        if set(record.keys()) != set(names):
            return None
        found = [_opened(record[name], old) for name, old in zip(names, layers, strict=True)]
        with np.errstate(over="ignore", invalid="ignore"):
            return [
                new.astype(np.float64) - old.astype(np.float64)
                for new, old in zip(found, layers, strict=True)
            ]
    except Exception:  # whatever a client sends, a broken reply is a client that did not answer
        return None


def _opened(array: Any, old: NDArray[Any]) -> NDArray[Any]:
    """The numbers of a client's array, which must be real and of the shape that was sent."""
    if tuple(array.shape) != old.shape or len(array.data) > _BYTES_EACH * old.size + _BYTES_HEADER:
        raise ValueError("another shape than was sent")
    found: NDArray[Any] = array.numpy()
    if found.shape != old.shape or found.dtype.kind not in "fiu":
        raise ValueError("another kind than was sent")
    return found
