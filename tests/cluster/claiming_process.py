"""A process that claims conversations at the same moment as others, and prints 1 for each that it got, or 0.

Arguments: the database, and the conversations' ids. For each it waits for a lock that somebody else holds.
"""

import signal
import sys

import psycopg

from bullpen.conversation.owner import is_alive, this_process
from bullpen.store.postgres.store import PostgresStore


def main(url: str, *ids: str) -> None:
    with PostgresStore(url) as store, psycopg.connect(url, autocommit=True) as starting:
        for number, one in enumerate(ids, start=1):
            starting.execute("SELECT pg_advisory_lock_shared(%s, %s)", [0, number])
            print(int(store.claim(one, this_process(), is_alive=lambda owner: is_alive(owner, store))), flush=True)
        # Those who leave free their locks, and are dead owners then: all stay until they are killed.
        signal.pause()


main(*sys.argv[1:])
