"""A real PostgreSQL server for the tests: made in a temporary folder, with a socket there, always stopped.

Where durability is concerned it has the settings of a user's server: fsync and synchronous commits.
"""

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path

ROLE = "sfumato"
SETTINGS = {
    "listen_addresses": "",  # the socket alone: no port to be taken, nobody else on the machine
    "max_connections": "64",
    "shared_buffers": "16MB",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "log_min_messages": "fatal",
}
INITDB = ("-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
MISSING = (
    "no PostgreSQL server is installed (initdb and postgres are neither on PATH nor in /usr/lib/postgresql)"
)
PATIENCE = 60.0


def binaries() -> Path | None:
    """The folder of initdb and postgres, the newest version if there are several; None if there is none."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    on_path = shutil.which("initdb")
    folders = [*reversed(installed), *([Path(on_path).resolve().parent] if on_path else [])]
    return next(
        (path for path in folders if all((path / name).exists() for name in ("initdb", "postgres"))), None
    )


def _unprivileged() -> dict[str, object]:
    # A PostgreSQL server refuses to run as root.
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            person = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": person.pw_uid, "group": person.pw_gid, "extra_groups": ()}
    raise RuntimeError("root needs a user called postgres or nobody to run a PostgreSQL server as")


_libc = ctypes.CDLL(None, use_errno=True)


def _stop_when_the_parent_dies() -> None:
    # PR_SET_PDEATHSIG; without it a test run that is killed would leave its server behind.
    _libc.prctl(1, signal.SIGQUIT)


def _children(parent: int) -> list[int]:
    # Each is the leader of a group of its own, so that the group of the server does not reach them.
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[1]) == parent:
            found.append(int(status.parent.name))
    return found


class Server:
    """A PostgreSQL server of its own; `start` makes its folder, `stop` removes it."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._process: subprocess.Popen[bytes] | None = None
        self.folder: Path | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        found = binaries()
        if found is None:
            raise RuntimeError(MISSING)
        identity = _unprivileged()
        if self.folder is None:
            # Not below pytest's folder, which may be root's alone; and the path of a socket must be short.
            self.folder = Path(tempfile.mkdtemp(prefix="pg-"))
            if identity:
                os.chown(self.folder, identity["user"], identity["group"])  # type: ignore[arg-type]
            subprocess.run(
                [found / "initdb", "-D", self.folder / "data", "-U", ROLE, *INITDB],
                check=True,
                cwd=self.folder,
                capture_output=True,
                **identity,
            )
        options = [text for name, value in SETTINGS.items() for text in ("-c", f"{name}={value}")]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [found / "postgres", "-D", self.folder / "data", "-k", self.folder, *options],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_stop_when_the_parent_dies,
                # A signal to the terminal's group is for the tests, which then stop the server.
                start_new_session=True,
                **identity,
            )
        self._wait()

    def _wait(self) -> None:
        import psycopg

        end = time.monotonic() + PATIENCE
        while True:
            try:
                psycopg.connect(self._target("postgres"), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                if not self.running or time.monotonic() > end:
                    raise RuntimeError(f"PostgreSQL did not start: {self.log()}") from None
                time.sleep(0.02)

    def log(self) -> str:
        """What the server wrote, the last of it."""
        return "" if self.folder is None else (self.folder / "log").read_text(errors="replace")[-2000:]

    def database(self) -> str:
        """The address of a new, empty database, as a ledger takes it."""
        name = f"test_{next(self._numbers)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE template0")
        return f"postgresql+psycopg://{ROLE}@/{name}?host={self.folder}"

    def run(self, *statements: str) -> None:
        """Run statements about databases, which no transaction may hold."""
        import psycopg

        with psycopg.connect(self._target("postgres"), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def kill(self) -> None:
        """Kill the server and all its processes at once, without a chance to tidy up."""
        assert self._process is not None
        server = self._process.pid
        os.kill(server, signal.SIGSTOP)  # so that no process is started between the look and the kill
        for process in (server, *_children(server)):
            os.kill(process, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def stop(self) -> None:
        """Stop the server and remove all that it kept."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)  # at once: nothing of it is kept
            try:
                self._process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    def _target(self, database: str) -> str:
        return f"host={self.folder} user={ROLE} dbname={database}"
