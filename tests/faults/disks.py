"""Disks that are full, cannot be written, or report errors, as a process meets them."""

import ctypes
import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.clients import DATASET, Journal, Place, digest, item

from sfumato.errors import SfumatoError


def spend_until_refused(place: Place, journal: str, hurt: Callable[[], None] | None, most: int) -> None:
    """Charge and keep until sfumato refuses; any other error ends the process with a traceback."""
    diary = Journal(journal)
    with place.open() as ledger:
        account = ledger.account(DATASET)
        if hurt is not None:
            hurt()
        for n in range(most):
            try:
                account.charge(item(), request=f"r{n}", digest=digest(f"r{n}"))
                diary.say("charged", f"r{n}")
                reply = account.keep(f"r{n}", os.urandom(2000))
                diary.say("told", f"r{n}", reply.hex())
            except SfumatoError as error:
                diary.say(type(error).__name__, f"r{n}", str(error))
                return


def open_and_spend(place: Place, journal: str, hurt: Callable[[], None]) -> None:
    """Open a ledger after the harm and charge; say in which words that is refused."""
    hurt()
    try:
        with place.open() as ledger:
            ledger.account(DATASET).charge(item())
            Journal(journal).say("charged")
    except SfumatoError as error:
        Journal(journal).say(type(error).__name__, "", str(error))


def limit_files() -> None:
    """From now on no file of this process may grow beyond 300 kB, which looks like a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def obey_permissions() -> None:
    """Permissions hold for root too, from now on: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH are given up."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = _Header(0x20080522, 0), (_Sets * 2)()
    if libc.capget(ctypes.byref(header), sets):
        raise OSError(ctypes.get_errno(), "capget")
    for name in ("effective", "permitted"):
        setattr(sets[0], name, getattr(sets[0], name) & ~0b110)
    if libc.capset(ctypes.byref(header), sets):
        raise OSError(ctypes.get_errno(), "capset")


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path | None]:
    """A disk of this size at the folder; None where this process may not mount one."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def grow(disk: Path) -> None:
    """Make room on a small disk."""
    subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
