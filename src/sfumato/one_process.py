"""State that a copy would spend again: used in one process, and neither copied nor stored."""

import os
from typing import ClassVar, NoReturn, Self, SupportsIndex

from sfumato.errors import NotSupported


class OneProcess:
    """A budget that is kept in memory; a forked, copied or unpickled one would be spent a second time."""

    # What messages call the object.
    noun: ClassVar[str]
    _process: int

    def __new__(cls, *_: object, **__: object) -> Self:
        self = super().__new__(cls)
        self._process = os.getpid()
        return self

    def require_process(self) -> None:
        """Refuse a forked process, which holds a copy."""
        if os.getpid() != self._process:
            raise NotSupported(
                f"{self.noun} must be used in the process that opened it: open another one here"
            )

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise NotSupported(f"{self.noun} cannot be copied or stored: the copy would be spent once more")
