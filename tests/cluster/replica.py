"""A replica of a server of one's own."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg

from bullpen.testing.postgres import NOBODY, PASSWORD, USER, PostgresServer, free_port, programs


@contextmanager
def replica_of(server: PostgresServer, name: str) -> Iterator[str]:
    """Start a replica with this name, and yield its address."""
    found, folder, user = programs(), server.folder / name, NOBODY if os.geteuid() == 0 else None
    assert found is not None
    source = ["--host", "127.0.0.1", "--port", str(server.port), "--username", USER]
    subprocess.run(
        [found / "pg_basebackup", *source, "--pgdata", folder, "--write-recovery-conf", "--checkpoint", "fast"],
        check=True,
        user=user,
        cwd=server.folder,
        env={**os.environ, "PGPASSWORD": PASSWORD},
    )
    port = free_port()
    options = [f"port={port}", f"cluster_name={name}", "listen_addresses=127.0.0.1", "fsync=off", "jit=off"]
    # It refuses to follow with fewer than the server has.
    options += ["max_connections=200", f"unix_socket_directories={server.folder}"]
    words = [word for option in options for word in ("-c", option)]
    with (server.folder / f"log-{name}").open("ab") as log:
        process = subprocess.Popen(
            [found / "postgres", "-D", folder, *words], stdout=log, stderr=log, user=user, cwd=server.folder
        )
    try:
        _wait_until_it_follows(server, name)
        parts = urlsplit(server.url())
        yield urlunsplit(parts._replace(netloc=parts.netloc.replace(str(server.port), str(port))))
    finally:
        process.terminate()
        process.wait()


def _wait_until_it_follows(server: PostgresServer, name: str) -> None:
    query = "SELECT FROM pg_stat_replication WHERE application_name = %s AND state = 'streaming'"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        while not connection.execute(query, [name]).fetchall():
            time.sleep(0.01)
