"""Files that a command writes: whole or not at all, and never over something else unasked."""

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sfumato.cli.failures import reason
from sfumato.cli.status import UNUSABLE, Refused
from sfumato.whole_files import holds, in_place_of, require_writable, write_file

FORCE = "give another place, or --force to replace it"


def write_new(path: Path, content: bytes, *, force: bool) -> None:
    """Write a file that is not there yet; one that is there is replaced by --force alone."""
    with refusing():
        require_free(path, content, force=force)
        if path.parent != Path():
            path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, content)


def require_free(path: Path, content: bytes, *, force: bool) -> None:
    """Refuse to replace something else than this content, a link included, unless by force."""
    if path.is_dir() and not path.is_symlink():
        raise Refused(f"{path} is a directory")
    if not force and _exists(path) and not holds(path, content):
        raise Refused(f"{path} exists already; {FORCE}")


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
        with in_place_of(path) as temporary:
            yield temporary


@contextmanager
def folder_for(folder: Path) -> Iterator[None]:
    """A folder that can be written to, seen before anything is paid for; gone again if nothing came of it."""
    with refusing():
        if folder.exists() and not folder.is_dir():
            raise Refused(f"{folder} is a file; -o names the folder to write to")
        new = not folder.exists()
    # An interrupt may come at any line.
    try:
        with refusing():
            folder.mkdir(parents=True, exist_ok=True)
            require_writable(folder)
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


def _exists(path: Path) -> bool:
    return os.path.lexists(path)
