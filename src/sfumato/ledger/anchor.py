"""The anchor: a file outside the database that remembers the head, so that an older copy is noticed.

Each line is the number and the hash of an entry that was committed. The last line is what the ledger must
still contain. A crash between commit and anchor leaves the anchor behind the ledger, which is harmless.
"""

import fcntl
import math
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from sfumato.errors import LedgerDamaged, LedgerUnavailable
from sfumato.ledger.chain import Head
from sfumato.ledger.patience import patient
from sfumato.whole_files import PRIVATE, write_file

# Seconds between syncs. The commit itself is durable; a power cut leaves the anchor this much behind it.
EVERY = 1.0
# A number of up to 19 digits, a space, 64 digits of a hash, a mark and the end of the line.
_LONGEST = 128
# How many of the last lines an entry is compared with.
RECENT = 64
# Where a curator accepted a loss; what follows starts from an older entry.
_LOSS = "loss"
# The head of no ledger, for the anchor of one that its curator gave up.
GIVEN_UP = Head(0, "0" * 64)


def is_identity(value: object) -> bool:
    """Whether this can be the identity of a ledger; it becomes part of a path, so nothing else may be."""
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{32}", value) is not None


def default_anchor(identity: str) -> Path:
    """Where the head of a ledger is anchored unless the curator says otherwise."""
    if not is_identity(identity):
        raise LedgerDamaged("the ledger is damaged: its identity must be 32 hexadecimal digits")
    return _folder() / f"{identity}.anchor"


def _folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "sfumato" / "anchors"


class Note:
    """Which ledger was at a place last; it stays when the ledger is deleted, as its anchor does."""

    def __init__(self, place: str) -> None:
        self.path = _folder() / f"{sha256(os.fsencode(place)).hexdigest()[:32]}.place"

    def read(self) -> str | None:
        """The identity of the ledger; None if none was here."""
        try:
            found = self.path.read_text("ascii").strip()
        except FileNotFoundError:
            return None
        except OSError as fault:
            raise Anchor(self.path).unavailable(fault) from None
        except ValueError:
            found = ""
        if not is_identity(found):
            raise LedgerDamaged(f"the note {self.path} is damaged: it does not name a ledger")
        return found

    def write(self, identity: str) -> None:
        """Remember a ledger; a crash leaves the old note or the new one."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_file(self.path, f"{identity}\n".encode(), mode=PRIVATE)
        except OSError as fault:
            raise Anchor(self.path).unavailable(fault) from None

    def anchor(self) -> "Anchor | None":
        """The anchor of the ledger that was here."""
        identity = self.read()
        return None if identity is None else Anchor(default_anchor(identity))


class Anchor:
    """The file of heads; every write is locked and appended, and survives the process that made it."""

    def __init__(self, path: Path, *, patience: float = 60.0) -> None:
        self.path = path
        self._patience = patience
        self._synced = -math.inf

    def read(self) -> Head | None:
        """The last head; None if there is no file or nothing in it."""
        if not self._exists():
            return None
        with self._opened(os.O_RDONLY, fcntl.LOCK_SH) as file:
            return self._last(file)[0]

    def all(self) -> list[Head]:
        """Every head that the ledger must still contain, in order."""
        if not self._exists():
            return []
        with self._opened(os.O_RDONLY, fcntl.LOCK_SH) as file:
            size = os.fstat(file).st_size
            return self._heads(os.pread(file, size, 0).split(b"\n")[:-1])

    def _heads(self, lines: list[bytes]) -> list[Head]:
        heads: list[Head] = []
        for line in lines:
            head, lost = self._parse(line)
            if lost:
                heads.clear()
            elif heads and head.sequence <= heads[-1].sequence:
                raise LedgerDamaged(f"the anchor {self.path} is damaged: its numbers do not grow")
            heads.append(head)
        return heads

    def write(self, head: Head, *, loss: bool = False) -> None:
        """Append a head, unless a later one is there; after an accepted loss, an earlier one too."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as fault:
            raise self.unavailable(fault) from None
        with self._opened(os.O_RDWR | os.O_CREAT | os.O_APPEND, fcntl.LOCK_EX) as file:
            last, end = self._last(file)
            if last is not None and not loss and head.sequence <= last.sequence:
                self._require_same(file, head)
                return
            line = f"{head.sequence} {head.hash}{' ' + _LOSS if loss else ''}\n".encode()
            try:
                if os.fstat(file).st_size != end:
                    os.ftruncate(file, end)  # what a crash left of a line
                if os.write(file, line) != len(line):
                    os.ftruncate(file, end)
                    raise OSError("no space is left")
                if time.monotonic() - self._synced >= EVERY:
                    os.fsync(file)
                    self._synced = time.monotonic()
            except OSError as fault:
                raise self.unavailable(fault) from None

    def _require_same(self, file: int, head: Head) -> None:
        """Refuse an entry where another one with its number was anchored: two copies have both gone on."""
        size = os.fstat(file).st_size
        start = max(0, size - RECENT * _LONGEST)
        lines = os.pread(file, size - start, start).split(b"\n")[1 if start else 0 : -1]
        for found in self._heads(lines):
            if found.sequence == head.sequence and found.hash != head.hash:
                raise LedgerDamaged(
                    f"the anchor {self.path} has another entry {head.sequence}: a copy of this ledger was "
                    "charged meanwhile"
                )

    def _exists(self) -> bool:
        try:
            self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as fault:
            raise self.unavailable(fault) from None
        return True

    @contextmanager
    def _opened(self, flags: int, lock: int) -> Iterator[int]:
        # Opened anew each time: a lock belongs to an open file, and a forked process would share it.
        try:
            file = os.open(self.path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as fault:
            raise self.unavailable(fault) from None
        try:
            self._lock(file, lock)
            yield file
        finally:
            os.close(file)

    def _lock(self, file: int, lock: int) -> None:
        try:
            patient(lambda: fcntl.flock(file, lock | fcntl.LOCK_NB), self._patience)
        except BlockingIOError:
            raise LedgerUnavailable(
                f"the anchor {self.path} is locked by another process for too long"
            ) from None
        except OSError as fault:
            raise self.unavailable(fault) from None

    def _last(self, file: int) -> tuple[Head | None, int]:
        """The last whole line, and where it ends."""
        size = os.fstat(file).st_size
        start = max(0, size - 2 * _LONGEST)
        tail = os.pread(file, size - start, start)
        end = tail.rfind(b"\n")
        if end < 0:
            if size > _LONGEST:
                raise LedgerDamaged(f"the anchor {self.path} is damaged: it has a line that is no head")
            return None, 0
        return self._parse(tail[:end].rpartition(b"\n")[2])[0], start + end + 1

    def _parse(self, line: bytes) -> tuple[Head, bool]:
        words = line.split(b" ")
        lost = len(words) == 3 and words[2] == _LOSS.encode()
        sound = (len(words) == 2 or lost) and words[0].isdigit() and len(words[1]) == 64
        if not sound or words[1].strip(b"0123456789abcdef"):
            raise LedgerDamaged(f"the anchor {self.path} is damaged: it has a line that is no head")
        return Head(int(words[0]), words[1].decode()), lost

    def unavailable(self, fault: OSError) -> LedgerUnavailable:
        """The error that says why the file cannot be used."""
        reason = fault.strerror or str(fault)
        return LedgerUnavailable(
            f"the anchor {self.path} cannot be used ({reason.lower()}): make it so, or give another anchor"
        )
