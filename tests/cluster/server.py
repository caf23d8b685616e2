"""A PostgreSQL server of our own, from the programs that Debian installs."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
from psycopg import sql

PROGRAMS = Path("/usr/lib/postgresql")


class Server:
    """A running server."""

    def __init__(self, folder: Path, programs: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self._programs = programs

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        self._run("pg_ctl", "-w", "-D", self.folder / "data", "-l", self.folder / "log", "-o", options, "start")

    def stop(self) -> None:
        """Stop it as a crash would."""
        self._run("pg_ctl", "-w", "-D", self.folder / "data", "-m", "immediate", "stop")

    def initialize(self) -> None:
        self._run("initdb", "-D", self.folder / "data", "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8")

    def _run(self, program: str, *arguments: object) -> None:
        done = subprocess.run(
            [self._programs / program, *map(str, arguments)],
            user=_user(),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if program != "pg_ctl" else subprocess.DEVNULL,
            stderr=subprocess.STDOUT if program != "pg_ctl" else subprocess.DEVNULL,
            timeout=60,
        )
        assert done.returncode == 0, f"{program}: {done.stdout!r}"


@contextmanager
def running() -> Iterator[Server]:
    """Run a server until the end."""
    programs = programs_here()
    assert programs is not None
    folder = Path(tempfile.mkdtemp(prefix="bullpen-postgres-"))
    try:
        if (user := _user()) is not None:
            shutil.chown(folder, user)
        server = Server(folder, programs, _free_port())
        server.initialize()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def programs_here() -> Path | None:
    """Return the folder with the newest server's programs."""
    found = sorted(PROGRAMS.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


@contextmanager
def database(url: str, template: str = "template0") -> Iterator[str]:
    """Make a new database on a server, as a copy of another, and remove it at the end."""
    name = f"test_{uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        made = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
        connection.execute(made)
    try:
        yield url.rpartition("/")[0] + f"/{name}"
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _user() -> str | None:
    """Return who runs the server: never root, who may not."""
    return "postgres" if os.getuid() == 0 and _exists("postgres") else None


def _exists(user: str) -> bool:
    try:
        return bool(pwd.getpwnam(user))
    except KeyError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
