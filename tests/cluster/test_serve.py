"""Two nodes serve the same conversations: any of them takes any request, and what one leaves, the other continues."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.cluster.processes import Processes
from tests.cluster.serving import ServingNode, start_node
from tests.cluster.stage import WorkerStage


@pytest.fixture
def stage(tmp_path: Path, url: str, processes: Processes) -> WorkerStage:
    return WorkerStage(tmp_path, url, processes)


async def begun(node: ServingNode) -> str:
    async with node.client() as client:
        answer = await client.post("/api/conversations")
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])


async def said_in(node: ServingNode, one: str) -> list[tuple[str, str]]:
    async with node.client() as client:
        answer = await client.get(f"/api/conversations/{one}/messages")
        assert answer.status_code == 200, answer.text
        return [(m["message"]["speaker"]["roleId"], m["message"]["content"]) for m in answer.json()]


async def say(node: ServingNode, one: str, text: str, message_id: str = "") -> httpx.Response:
    async with node.client() as client:
        return await client.post(
            f"/api/conversations/{one}/messages", json={"text": text, **({"id": message_id} if message_id else {})}
        )


async def until_said(node: ServingNode, one: str, text: str) -> list[tuple[str, str]]:
    while text not in [content for _, content in await said_in(node, one)]:
        await asyncio.sleep(0.1)
    return await said_in(node, one)


class Watching:
    """A program that watches a conversation at one node, and connects again whenever its stream ends."""

    def __init__(self, node: ServingNode, one: str) -> None:
        self.events: list[dict[str, Any]] = []
        self.streams = 0
        self._task = asyncio.create_task(self._watch(node, one))

    async def _watch(self, node: ServingNode, one: str) -> None:
        async with node.client() as client:
            while True:
                async for event in self._events(client, one):
                    self.events.append(event)
                await asyncio.sleep(0.2)

    async def _events(self, client: httpx.AsyncClient, one: str) -> AsyncIterator[dict[str, Any]]:
        try:
            async with client.stream("GET", f"/api/conversations/{one}/events") as answer:
                if answer.status_code != 200:
                    return
                self.streams += 1
                async for line in answer.aiter_lines():
                    if line.startswith("data: "):
                        yield json.loads(line[6:])["event"]
        except httpx.HTTPError:
            return

    def seen(self, words: str) -> bool:
        return any(words in json.dumps(event) for event in self.events)

    async def until(self, words: str) -> None:
        while not self.seen(words):
            await asyncio.sleep(0.02)

    def stop(self) -> None:
        self._task.cancel()


async def test_a_node_passes_on_what_another_one_has(stage: WorkerStage, processes: Processes) -> None:
    team = stage.write_team(max=[{"say": "Hello "}, {"sleep": 0.5}, {"say": "you."}])
    stage.write_file()
    stage.start_worker()
    a = start_node(processes, stage.url, "a", str(team))
    b = start_node(processes, stage.url, "b")
    one = await begun(a)
    watching = Watching(b, one)

    answer = await say(b, one, "Hi.", "first-message")

    assert answer.status_code == 201, answer.text
    again = await say(b, one, "Hi.", "first-message")
    assert again.status_code == 200
    await watching.until("Hello you.")
    assert await said_in(b, one) == await said_in(a, one) == [("kim", "Hi."), ("max", "Hello you.")]
    async with b.client() as client:
        state = (await client.get(f"/api/conversations/{one}")).json()
        assert state["is_open"]
        page = await client.get(f"/c/{one}")
        assert "Hello you." in page.text
    watching.stop()


async def test_a_conversation_survives_its_node_in_front_of_somebody_at_the_other(
    stage: WorkerStage, processes: Processes
) -> None:
    team = stage.write_team(max=[{"say": "Hello "}, {"sleep": 5}, {"say": "you."}])
    stage.write_file()
    stage.start_worker()
    a = start_node(processes, stage.url, "a", str(team))
    b = start_node(processes, stage.url, "b")
    one = await begun(a)
    watching = Watching(b, one)
    assert (await say(b, one, "Hi.", "first-message")).status_code == 201
    await watching.until("Hello ")

    a.process.kill()
    killed = time.monotonic()
    streams = watching.streams
    while watching.streams == streams:
        await asyncio.sleep(0.02)
    print(f"seconds until the stream is back: {time.monotonic() - killed:.2f}")

    assert await until_said(b, one, "Hello you.") == [("kim", "Hi."), ("max", "Hello you.")]
    await watching.until("Hello you.")
    assert stage.started() == ["max"]
    watching.stop()
