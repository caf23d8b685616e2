"""How often the store waits for the server, seen by a proxy between them."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from msgspec.structs import replace
from tests.store.postgres.server import needs_own_server, new_schema, shared

from bullpen.store.base import StateChange, Store, TurnEnd
from bullpen.store.postgres.store import PostgresStore
from bullpen.testing.store_contract import ASKED, CHANGES, GIVEN, MAX, OWNER, asked, begin, dead, said

pytestmark = needs_own_server


class Proxy:
    """Passes on what both say, and counts how often the client speaks after the server has answered."""

    def __init__(self, port: int) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._server = port
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self.trips = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for one in (self._listener, *self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server))
                self._sockets += [client, server]
                is_answered = [True]
                for source, target in ((client, server), (server, client)):
                    work = (source, target, is_answered, source is client)
                    threading.Thread(target=self._pass_on, args=work, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, is_answered: list[bool], is_client: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 20):
                with self._lock:
                    self.trips += is_client and is_answered[0]
                    is_answered[0] = not is_client
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)


@contextmanager
def watched() -> Iterator[tuple[PostgresStore, Proxy]]:
    url = new_schema()
    proxy = Proxy(shared().port)
    with PostgresStore(url.replace(f":{shared().port}/", f":{proxy.port}/")) as store:
        begin(store, "c")
        store.claim("c", OWNER, is_alive=dead)
        yield store, proxy
    proxy.close()


def begun(store: Store) -> None:
    store.append("c", said("m0"), turns=[asked("m0")], owner=OWNER)
    store.start_turn("c", "m0-max", owner=OWNER, given=GIVEN, at=1)


def replied(store: Store) -> None:
    end = TurnEnd(turn_id="m0-max", state="done", at=2)
    change = StateChange(paused="why", title="new")
    turns = [asked("m9", name) for name in ("sarah", "carol")]
    store.append("c", said("m9", speaker=MAX), turns=turns, finishes=end, change=change, owner=OWNER)


def read_together(store: Store) -> None:
    with store.reading_together():
        for _ in range(5):
            store.turns("c")
            assert store.message_count("c") == 1


CASES: dict[str, tuple[Callable[[Store], object], int]] = {
    "a message": (lambda store: store.append("c", said("m9"), owner=OWNER), 2),
    "a reply with turns": (replied, 2),
    "many messages": (lambda store: store.extend("c", [said(f"n{number}") for number in range(20)], owner=OWNER), 2),
    "a start": (lambda store: store.append("c", said("m9"), turns=[asked("m9")], owner=OWNER), 2),
    "an end": (lambda store: store.end_turn("c", TurnEnd(turn_id="m0-max", state="failed", at=1), owner=OWNER), 2),
    "changes": (lambda store: store.add_changes("c", replace(CHANGES, turn_id="m0-max"), owner=OWNER), 2),
    "a question": (lambda store: store.note_approval("c", replace(ASKED, turn_id="m0-max"), owner=OWNER), 2),
    "open questions": (lambda store: store.open_approvals("c"), 2),
    "a beat": (lambda store: store.beat("c", OWNER, at=1), 2),
    "reading messages": (lambda store: store.messages("c"), 2),
    "reading turns": (lambda store: store.turns("c"), 2),
    "reading the same thing again and again": (read_together, 3),
    "reading a record": (lambda store: store.record("c", "m0-max"), 2),
}


@pytest.mark.parametrize("case", CASES)
def test_it_waits_for_the_server_no_more_often_than_this(case: str) -> None:
    act, most = CASES[case]
    with watched() as (store, proxy):
        begun(store)
        before = proxy.trips
        act(store)

        assert 1 <= proxy.trips - before <= most
