"""Sixteen processes that claim one conversation at once: one of them gets it, whether it had an owner or not."""

import time

import psycopg
from proofs.torture.cluster.field import PROCESS, Field

from bullpen.conversation.owner import this_process
from bullpen.store.postgres.store import PostgresStore

CLAIMING = "tests.cluster.claiming_process"
CLAIMERS = 16


def claim_at_once(field: Field, rounds: int) -> list[str]:
    """Let them claim so many conversations, and return which of those did not get one owner."""
    ids = [f"claimed-oak-{number:06}" for number in range(1, rounds + 1)]
    _create(field, ids)
    url = field.server.url()
    with psycopg.connect(url, autocommit=True) as starting:
        starting.execute("SELECT pg_advisory_lock(0, number) FROM generate_series(1, %s) AS number", [rounds])
        claimers = [field.processes.start(PROCESS, field.mistake, CLAIMING, url, *ids) for _ in range(CLAIMERS)]
        problems = []
        for number, one in enumerate(ids, start=1):
            _until_all_wait(starting, number)
            starting.execute("SELECT pg_advisory_unlock(0, %s)", [number])
            winners = [claimer.line() for claimer in claimers].count("1")
            if winners != 1:
                problems.append(f"claimed: {winners} of {CLAIMERS} became the owner of {one} at once")
    for claimer in claimers:
        claimer.kill()
    return problems


def _create(field: Field, ids: list[str]) -> None:
    """Begin conversations, of which each second one has an owner that is dead."""
    with PostgresStore(field.server.url()) as dying:
        for number, one in enumerate(ids):
            dying.create(one, team="claims", team_file="", started_at=0)
            if number % 2:
                dying.claim(one, this_process(), is_alive=lambda _: False)


def _until_all_wait(starting: psycopg.Connection, number: int) -> None:
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 0 AND objid = %s AND NOT granted"
    while (row := starting.execute(waiting, [number]).fetchone()) is None or row[0] < CLAIMERS:
        time.sleep(0.01)
