"""Files that are written whole or not at all."""

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_file(path: Path, content: bytes) -> None:
    """Write a file durably; after any crash it is the old one or the new one."""
    with in_place_of(path) as temporary, temporary.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def in_place_of(path: Path) -> Iterator[Path]:
    """A new name beside the path to write to, which takes its place once all is there."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        yield temporary
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _settle(path.parent)


def _settle(folder: Path) -> None:
    """Have the new name on the disk too; where folders cannot be opened, the system does it by itself."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
