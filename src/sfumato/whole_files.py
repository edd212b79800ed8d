"""Files that are written whole or not at all, and never through a symbolic link.

Whoever may write to a folder may plant links in it under any name. New files have random names and are
created exclusively, so that no link is followed; a finished file replaces a link of its name, and what the
link points to stays as it was. A folder that is itself a link is used: whoever named it chose it.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PUBLIC, PRIVATE = 0o666, 0o600


def write_file(path: Path, content: bytes, *, mode: int = PUBLIC) -> None:
    """Write a file durably; after any crash it is the old one or the new one."""
    with replacement(path, mode=mode) as file:
        file.write(content)


@contextmanager
def replacement(path: Path, *, mode: int = PUBLIC) -> Iterator[BinaryIO]:
    """A new file, open for writing, which is durable and takes the place of `path` at the end.

    The process's umask applies to the mode.
    """
    with in_place_of(path) as temporary, os.fdopen(_create(temporary, mode), "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def in_place_of(path: Path) -> Iterator[Path]:
    """A random name next to `path`; what `write_file` puts there takes the place of `path` at the end."""
    temporary = _random_name(path.parent, path.name)
    try:
        yield temporary
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _settle(path.parent)


def require_writable(folder: Path) -> None:
    """Create a file in a folder and remove it again; OSError if that is impossible."""
    probe = _random_name(folder, "probe")
    try:
        os.close(_create(probe, PRIVATE))
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()


def holds(path: Path, content: bytes) -> bool:
    """Whether `path` is a regular file with this content."""
    with contextlib.suppress(OSError):
        return read_file(path) == content
    return False


def read_file(path: Path) -> bytes:
    """The content of a regular file; OSError for a link, a pipe or a device, which may have no end."""
    # Looked at first because opening a device can do something, and again because it may be another one now.
    _require_regular(path, path.lstat())
    with open(path, "rb", opener=_unfollowed) as file:
        _require_regular(path, os.fstat(file.fileno()))
        return file.read()


def _require_regular(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "Not a regular file", str(path))


def _unfollowed(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _random_name(folder: Path, name: str) -> Path:
    return folder / f".{name}.{os.urandom(8).hex()}.new"


def _create(path: Path, mode: int) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)


def _settle(folder: Path) -> None:
    """Have the new name on the disk too; where folders cannot be opened, the system does it by itself."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
