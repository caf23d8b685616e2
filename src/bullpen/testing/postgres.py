"""A PostgreSQL server for tests: in a folder of its own, with its own user and password, on loopback and a socket."""

import ctypes
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Self
from urllib.parse import quote

PR_SET_PDEATHSIG = 1
# Loaded here, since little can be done between fork and exec.
_prctl = getattr(ctypes.CDLL(None), "prctl", None)

USER, PASSWORD, DATABASE = "kai", "not a secret: öffne/dich", "postgres"
NOBODY = "nobody"
WAIT_SECONDS = 60.0
PORTS = range(20_000, 32_000)
# Tests kill processes and servers, but never the power.
SETTINGS = ("fsync=off", "full_page_writes=off", "max_connections=200", "shared_buffers=32MB", "jit=off")


def programs() -> Path | None:
    """Return the folder with initdb and postgres, where Debian puts it too; None if there is no PostgreSQL."""
    found = [*Path("/usr/lib/postgresql").glob("*/bin/initdb"), *map(Path, filter(None, [shutil.which("initdb")]))]
    newest = max(found, key=lambda path: [int(part) for part in path.parts if part.isdecimal()], default=None)
    return None if newest is None else newest.parent


class PostgresServer:
    """A server of one's own. It refuses to run as root, so root lends it to nobody."""

    def __init__(self, *settings: str) -> None:
        found = programs()
        if found is None:
            raise FileNotFoundError("There is no PostgreSQL here. On Debian: apt-get install postgresql")
        self._programs = found
        self._settings = settings or SETTINGS
        self.folder = Path(tempfile.mkdtemp(prefix="bullpen-postgres-", dir="/tmp"))
        self._user = NOBODY if os.geteuid() == 0 else None
        if self._user:
            account = pwd.getpwnam(self._user)
            os.chown(self.folder, account.pw_uid, account.pw_gid)
        self._process: subprocess.Popen[bytes] | None = None
        self._make()
        self.port = free_port()
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def url(self, *, schema: str = "", password: str = PASSWORD, host: str = "127.0.0.1") -> str:
        """Return the address of the database; with a schema, of everything in this schema."""
        options = f"?options={quote(f'-csearch_path={schema}')}" if schema else ""
        return f"postgresql://{USER}:{quote(password, safe='')}@{host}:{self.port}/{DATABASE}{options}"

    def socket_url(self) -> str:
        """Return the address by its socket."""
        return f"postgresql://{USER}:{quote(PASSWORD, safe='')}@/{DATABASE}?host={self.folder}&port={self.port}"

    @property
    def pid(self) -> int:
        """Its first process; the others are children of it."""
        if self._process is None:
            raise RuntimeError("PostgreSQL does not run: start it first.")
        return self._process.pid

    def start(self, *, recovers_for: float = 0.0) -> None:
        """Start it, and wait until it answers; after a crash, let its recovery take some seconds longer."""
        before = len(self._log())
        options = [f"port={self.port}", "listen_addresses=127.0.0.1", f"unix_socket_directories={self.folder}"]
        given = [word for option in (*options, *self._settings) for word in ("-c", option)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self.folder / "data", *given],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                user=self._user,
                cwd=self.folder,
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )
        if recovers_for:
            while b"database system was" not in self._log()[before:]:
                time.sleep(0.001)
            self._process.send_signal(signal.SIGSTOP)
            time.sleep(recovers_for)
            self._process.send_signal(signal.SIGCONT)
        deadline = time.monotonic() + WAIT_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start: {(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT ends what runs, SIGQUIT is as sudden as a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(WAIT_SECONDS)
            self._process = None

    def close(self) -> None:
        """Stop it and remove everything."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _make(self) -> None:
        password = self.folder / "password"
        password.write_text(PASSWORD, encoding="utf-8")
        password.chmod(0o644)
        data = self.folder / "data"
        options = ("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync")
        subprocess.run(
            [str(self._programs / "initdb"), "-D", str(data), "-U", USER, "--pwfile", str(password), *options],
            check=True,
            stdout=subprocess.DEVNULL,
            user=self._user,
            cwd=self.folder,
        )
        password.unlink()

    def _log(self) -> bytes:
        log = self.folder / "log"
        return log.read_bytes() if log.exists() else b""

    def _answers(self) -> bool:
        ready: list[Path | str] = [self._programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(ready, check=False).returncode == 0


def _end_with_parent() -> None:
    """In the new process: stop as suddenly when the one that started it is killed, where the system can do that."""
    if _prctl is not None:
        _prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


def free_port() -> int:
    """Return a port that nobody uses, also not for a connection in a moment: systems take other ones for those."""
    while True:
        port = random.choice(PORTS)  # noqa: S311 (no secret)
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
