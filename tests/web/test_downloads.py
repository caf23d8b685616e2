"""A conversation is sent while it is read: a long one takes no more memory than a short one."""

import asyncio
import json
import tracemalloc
from pathlib import Path

import httpx
import pytest

from bullpen.store.base import TurnEnd
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.site import Site, site
from bullpen.testing.store_contract import GIVEN, MAX, OWNER, alive, asked, begin, said

SHORT, LONG = 1_000, 10_000
WAIT_SECONDS = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a database with a short and a long conversation, in which every tenth message is an answer."""
    folder = tmp_path_factory.mktemp("long")
    with SqliteStore(folder / "conversations.db") as store:
        for name in ("short", "long"):
            begin(store, name)
            store.claim(name, OWNER, is_alive=alive)
        assert store._database._connection is not None
        # Nobody waits for the disk: nothing here is to survive a power cut.
        store._database._connection.execute("PRAGMA synchronous = OFF")
        for name, messages in (("short", SHORT), ("long", LONG)):
            for number in range(messages):
                write_message(store, name, number)
    return folder


def write_message(store: SqliteStore, name: str, number: int) -> None:
    if number % 10 != 9:
        turns = [asked(f"m{number}")] if number % 10 == 8 else []
        store.append(name, said(f"m{number}", f"Message {number} of a long talk. " * 8), turns=turns, owner=OWNER)
        return
    turn = f"m{number - 1}-max"
    store.start_turn(name, turn, owner=OWNER, given=GIVEN, at=1)
    end = TurnEnd(turn_id=turn, state="done", at=2)
    store.append(name, said(f"m{number}", "It is done.", speaker=MAX), finishes=end, owner=OWNER)


async def received(served: Site, name: str, file_format: str) -> tuple[int, int]:
    """Return how many bytes an export has, and how much memory is needed at most while it is sent and thrown away."""
    size = 0
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    async with (
        httpx.AsyncClient(base_url=served.url, headers=served.headers, timeout=WAIT_SECONDS) as client,
        client.stream("GET", f"/c/{name}/export/{file_format}") as answer,
    ):
        assert answer.status_code == 200
        async for chunk in answer.aiter_bytes():
            size += len(chunk)
    return size, tracemalloc.get_traced_memory()[1] - before


@pytest.mark.parametrize("file_format", ["json", "md"])
def test_ten_times_as_many_messages_take_no_more_memory(folder: Path, file_format: str) -> None:
    async def story() -> None:
        async with site(folder) as served:
            tracemalloc.start()
            try:
                # The first one also loads what every export needs.
                await received(served, "short", file_format)
                short, little = await received(served, "short", file_format)
                long, much = await received(served, "long", file_format)
            finally:
                tracemalloc.stop()
            assert long > 9 * short
            # What is on its way in buffers depends on how busy the machine is; the whole text would be a lot more.
            assert much - little < long / 3, (little, much, long)

    asyncio.run(story())


def test_what_is_sent_is_the_export_with_every_message_and_turn(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "conversations.db") as store:
        begin(store, "c")
        store.claim("c", OWNER, is_alive=alive)
        for number in range(200):
            write_message(store, "c", number)

    async def story() -> None:
        async with (
            site(tmp_path) as served,
            httpx.AsyncClient(base_url=served.url, headers=served.headers, timeout=WAIT_SECONDS) as client,
        ):
            answer = await client.get("/c/c/export/json")
            assert answer.headers["content-disposition"] == 'attachment; filename="c.json"'
            document = answer.json()
            assert [one["sequence"] for one in document["messages"]] == list(range(1, 201))
            assert [one["id"] for one in document["turns"]] == [f"m{number}-max" for number in range(8, 200, 10)]
            assert [one["replyId"] for one in document["turns"]] == [f"m{number}" for number in range(9, 200, 10)]
            missing = await client.get("/c/nowhere-1/export/json")
            assert (missing.status_code, "There is no conversation" in missing.text) == (404, True)
            assert json.loads((await client.get("/c/c/export/json", headers={"Accept-Encoding": ""})).text) == document

    asyncio.run(story())
