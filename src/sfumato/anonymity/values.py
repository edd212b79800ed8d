"""The distinct numbers of a column as an array: a Python object for each would be most of the memory."""

from collections.abc import Iterator, Sequence
from typing import Any, overload

from numpy.typing import NDArray


class DistinctNumbers(Sequence[object]):
    """Distinct integers or floats in order, None after them if some row is null; read as a tuple would be."""

    def __init__(self, array: NDArray[Any], *, null: bool = False) -> None:
        self.array = array
        self.null = null

    def __len__(self) -> int:
        return len(self.array) + self.null

    @overload
    def __getitem__(self, place: int) -> object: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[object]: ...
    def __getitem__(self, place: int | slice) -> object:
        if isinstance(place, slice):
            return tuple(self[one] for one in range(*place.indices(len(self))))
        one = range(len(self))[place]
        return None if one == len(self.array) else self.array[one].item()

    def __iter__(self) -> Iterator[object]:
        yield from self.array.tolist()
        if self.null:
            yield None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.array!r}, null={self.null})"

    def __hash__(self) -> int:
        return hash(tuple(self))
