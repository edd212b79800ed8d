"""Files that a command writes: whole or not at all, and never over something else unasked."""

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sfumato.cli.failures import reason
from sfumato.cli.status import UNUSABLE, Refused

FORCE = "give another place, or --force to replace it"


def write_file(path: Path, content: bytes) -> None:
    """Write a file durably; after any crash it is the old one or the new one."""
    with _in_place_of(path) as temporary, temporary.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def write_new(path: Path, content: bytes, *, force: bool) -> None:
    """Write a file that is not there yet; one that is there is replaced by --force alone."""
    with refusing():
        if not force and _exists(path) and path.read_bytes() != content:
            raise Refused(f"{path} exists already; {FORCE}")
        if path.parent != Path():
            path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, content)


@contextmanager
def replacing(path: Path, *, force: bool) -> Iterator[Path]:
    """A new name to write to, which takes the place of a file once all is there; an old one stays so long."""
    with refusing():
        if not path.parent.is_dir():
            raise Refused(f"{path.parent}: there is no such folder")
        if _exists(path) and not force:
            raise Refused(f"{path} exists already; {FORCE}")
        if _exists(path) and not path.is_file():
            raise Refused(f"{path} is no file that could be replaced")
        with _in_place_of(path) as temporary:
            yield temporary


@contextmanager
def folder_for(folder: Path) -> Iterator[None]:
    """A folder that can be written to, seen before anything is paid for; gone again if nothing came of it."""
    with refusing():
        if folder.exists() and not folder.is_dir():
            raise Refused(f"{folder} is a file; -o names the folder to write to")
        new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".{os.getpid()}.probe"
        probe.write_bytes(b"")
        probe.unlink()
    try:
        yield
    finally:
        if new:
            with contextlib.suppress(OSError):  # as it should, where there are files in it
                folder.rmdir()


@contextmanager
def refusing(status: int = UNUSABLE, more: str = "") -> Iterator[None]:
    """Tell what the operating system refuses in words."""
    try:
        yield
    except OSError as error:
        raise Refused(reason(error) + more, status) from error


@contextmanager
def _in_place_of(path: Path) -> Iterator[Path]:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        yield temporary
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _settle(path.parent)


def _exists(path: Path) -> bool:
    return os.path.lexists(path)


def _settle(folder: Path) -> None:
    """Have the new name on the disk too; where folders cannot be opened, the system does it by itself."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
