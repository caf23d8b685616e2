"""Two nodes serve the same conversations: any of them takes any request, and what one leaves, the other continues."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from tests.cluster.processes import Processes
from tests.cluster.serving import ServingNode, start_node
from tests.cluster.stage import WorkerStage, give_up, two_workers

from bullpen.cli import main
from bullpen.store.postgres.store import PostgresStore
from bullpen.testing.postgres import free_port
from bullpen.web.identity import Visitor
from bullpen.web.passing import SECRET, VISITOR, packed


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
        await asyncio.sleep(0.05)
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
                await asyncio.sleep(0.05)

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
            await asyncio.sleep(0.01)

    def stop(self) -> None:
        self._task.cancel()


async def test_a_node_passes_on_what_another_one_has(stage: WorkerStage, processes: Processes) -> None:
    team = stage.write_team(max=[{"say": "Hello "}, {"say": "you."}])
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
    await until_said(b, one, "Hello you.")
    assert await said_in(b, one) == await said_in(a, one) == [("kim", "Hi."), ("max", "Hello you.")]
    async with b.client() as client:
        state = (await client.get(f"/api/conversations/{one}")).json()
        assert state["is_open"]
        page = await client.get(f"/c/{one}")
        assert "Hello you." in page.text
    watching.stop()


async def say_in_takeover(node: ServingNode, one: str, text: str, message_id: str) -> httpx.Response:
    """Say something again and again, with the same id, until the node has taken the conversation over."""
    while (answer := await say(node, one, text, message_id)).status_code == 409:
        await asyncio.sleep(0.05)
    return answer


async def test_a_conversation_on_two_workers_survives_its_node_in_front_of_somebody_at_the_other(
    stage: WorkerStage, processes: Processes
) -> None:
    team, other = two_workers(stage, processes)
    a = start_node(processes, stage.url, "a", str(team))
    b = start_node(processes, stage.url, "b")
    one = await begun(a)
    watching = Watching(b, one)
    assert (await say(b, one, "Hi.", "first-message")).status_code == 201
    await watching.until("Hello ")
    streams = watching.streams

    a.process.kill()
    answer = await say_in_takeover(b, one, "And me?", "second-message")

    assert answer.status_code == 201, answer.text
    assert (await say(b, one, "And me?", "second-message")).status_code == 200
    while watching.streams == streams:
        await asyncio.sleep(0.01)
    stage.go.touch()
    await watching.until("Hello max, hello kim.")
    with PostgresStore(stage.url) as store:
        while any(turn.state in ("queued", "running") for turn in store.turns(one)):
            await asyncio.sleep(0.01)
    said = await said_in(b, one)
    assert said[:3] == [("kim", "Hi."), ("kim", "And me?"), ("max", "Hello lea. [NEXT: lea]")]
    assert said.count(("lea", "Hello max, hello kim.")) == len(other.started())
    assert [content for who, content in said if who == "kim"] == ["Hi.", "And me?"]
    assert said.count(("max", "Hello lea. [NEXT: lea]")) == len(stage.started())
    watching.stop()


async def test_what_a_dead_node_leaves_is_continued_though_nobody_asks(
    stage: WorkerStage, processes: Processes
) -> None:
    team = stage.write_team(max=[{"say": "Hello "}, stage.waits, {"say": "you."}])
    stage.write_file()
    stage.start_worker()
    a = start_node(processes, stage.url, "a", str(team))
    start_node(processes, stage.url, "b")
    ones = [await begun(a) for _ in range(3)]
    for one in ones:
        assert (await say(a, one, "Hi.", "first-message")).status_code == 201
    with PostgresStore(stage.url) as store:
        before = [store.owner_of(one) for one in ones]
        a.process.kill()
        while any(store.owner_of(one) in before for one in ones):
            await asyncio.sleep(0.01)

        stage.go.touch()
        while any(store.conversation(one).messages < 2 for one in ones):
            await asyncio.sleep(0.01)

        assert [store.conversation(one).paused for one in ones] == [None] * 3
        assert [len(store.messages(one)) for one in ones] == [2, 2, 2]
    assert stage.started() == ["max"] * 3


async def test_what_a_stopped_node_leaves_is_continued_by_the_others(stage: WorkerStage, processes: Processes) -> None:
    team = stage.write_team(max=[{"say": "Hello "}, stage.waits, {"say": "you."}])
    stage.write_file()
    stage.start_worker()
    a = start_node(processes, stage.url, "a", str(team))
    b = start_node(processes, stage.url, "b")
    one = await begun(a)
    assert (await say(b, one, "Hi.", "first-message")).status_code == 201
    while not stage.started():
        await asyncio.sleep(0.01)

    assert await asyncio.to_thread(a.process.stop) == 0

    stage.go.touch()
    assert await until_said(b, one, "Hello you.") == [("kim", "Hi."), ("max", "Hello you.")]
    assert (await say(b, one, "Again.", "second-message")).status_code == 201
    assert stage.started()[:1] == ["max"]


async def test_a_page_at_one_node_hears_where_a_person_is_needed_on_another(
    stage: WorkerStage, processes: Processes
) -> None:
    team = stage.write_team(max=[{"say": "Half."}, {"hang": True}])
    stage.write_file()
    worker = stage.start_worker()
    a = start_node(processes, stage.url, "a", str(team))
    b = start_node(processes, stage.url, "b")
    one = await begun(a)
    async with b.client() as client, client.stream("GET", "/attention") as stream:
        assert (await say(b, one, "Hi.", "first-message")).status_code == 201
        while not stage.started():
            await asyncio.sleep(0.01)

        await asyncio.to_thread(stage.lose, worker)

        async for line in stream.aiter_lines():
            if line.startswith("data: ") and json.loads(line[6:])["count"]:
                assert json.loads(line[6:])["id"] == one
                break


async def test_a_frozen_node_is_given_up_and_comes_back(stage: WorkerStage, processes: Processes) -> None:
    team = stage.write_team(max=[{"say": "Hello."}])
    stage.write_file()
    stage.start_worker()
    a = start_node(processes, stage.url, "a", str(team))
    b = start_node(processes, stage.url, "b")
    one = await begun(a)
    assert (await say(b, one, "Hi.", "first-message")).status_code == 201
    await until_said(b, one, "Hello.")

    a.process.freeze()
    saying = asyncio.create_task(say(b, one, "And now?", "second-message"))
    await asyncio.to_thread(give_up, stage.url, a.url)
    answer = await saying

    assert answer.status_code == 201, answer.text
    a.process.wake()
    # It refuses what it does not own any more, and begins again; a page sends the same once more, too.
    status = 0
    while status not in (200, 201):
        with suppress(httpx.HTTPError):
            status = (await say(a, one, "Welcome.", "third-message")).status_code
        await asyncio.sleep(0.01)
    while len(await said_in(b, one)) < 6:
        await asyncio.sleep(0.01)
    found: list[tuple[str, str]] = []
    while len(found) < 6:
        with suppress(httpx.HTTPError):
            found = await said_in(a, one)
        await asyncio.sleep(0.01)
    said = [content for who, content in found if who == "kim"]
    assert said == ["Hi.", "And now?", "Welcome."]


async def test_who_has_access_is_the_same_on_all_nodes_and_roles_hold_through_a_hop(
    stage: WorkerStage, processes: Processes
) -> None:
    team = stage.write_team(max=[{"say": "Hello."}])
    a = start_node(processes, stage.url, "a", str(team))
    b = start_node(processes, stage.url, "b")
    one = await begun(a)
    async with a.client() as owner:
        made = (await owner.post("/api/tokens", json={"role": "viewer"})).json()
    viewer = {"Authorization": f"Bearer {made['token']}"}
    messages = f"/api/conversations/{one}/messages"
    async with httpx.AsyncClient(base_url=b.url, headers=viewer, timeout=30) as client:
        assert (await client.get("/api/me")).status_code == 200
        assert (await client.get(messages)).status_code == 200
        refused = await client.post(messages, json={"text": "Hi."})
        assert refused.status_code == 403
        assert "You can read here" in refused.json()["error"]

        forged = {VISITOR.decode(): packed(Visitor(role="owner", is_here=True)).decode(), SECRET.decode(): "guess"}
        assert (await client.post(messages, json={"text": "Hi."}, headers=forged)).status_code == 403

        async with client.stream("GET", f"/api/conversations/{one}/events") as stream:
            async with a.client() as owner:
                assert (await owner.post(f"/api/sessions/{made['id']}/revoke")).status_code == 200
            while (await client.get("/api/me")).status_code != 401:
                await asyncio.sleep(0.01)
            # Something to tell, and it is not told any more.
            assert (await say(b, one, "Bye.", "last-message")).status_code == 201
            assert "Bye." not in (await stream.aread()).decode()


async def test_what_other_nodes_pass_on_is_answered_only_with_the_secret(
    stage: WorkerStage, processes: Processes
) -> None:
    team = stage.write_team(max=[{"say": "Hello."}])
    a = start_node(processes, stage.url, "a", str(team))
    one = await begun(a)
    with psycopg.connect(stage.url) as connection:
        query = "SELECT passage, secret FROM bullpen_cluster.processes WHERE passage <> ''"
        ((passage, secret),) = connection.execute(query).fetchall()
    path = f"http://{passage}/api/conversations/{one}"
    owner = {VISITOR.decode(): packed(Visitor(role="owner", is_here=True)).decode()}
    async with httpx.AsyncClient(timeout=30) as client:
        assert (await client.get(path, headers=owner)).status_code == 403
        assert (await client.get(path, headers={**owner, SECRET.decode(): "guess"})).status_code == 403
        assert (await client.get(path, headers={**owner, **a.headers})).status_code == 403
        known = {**owner, SECRET.decode(): secret}
        assert (await client.get(path, headers=known)).status_code == 200
        # Nobody is on the machine of another node.
        assert (await client.get(f"http://{passage}/teams/x", headers=known)).status_code == 403
        elsewhere = await client.get(f"http://{passage}/api/conversations/calm-oak", headers=known)
        assert elsewhere.status_code == 421


async def test_who_signs_in_at_one_node_is_known_at_once_at_the_others(
    stage: WorkerStage, processes: Processes, capsys: pytest.CaptureFixture[str]
) -> None:
    public = "http://localhost:1"
    host = {"Host": "localhost:1", "Origin": public}
    nodes = []
    for name in "ab":
        port = free_port()
        node = start_node(processes, stage.url, name, "--public", public, "--port", str(port))
        assert node.url == public
        nodes.append(ServingNode(node.process, f"http://127.0.0.1:{port}", node.token))
    a, b = nodes
    async with a.client() as owner, b.client() as other:
        other.headers.pop("Authorization")
        for _ in range(10):
            made = (await owner.post("/api/invitations", json={"role": "viewer"})).json()["url"]
            assert made.startswith(f"{public}/enter/")
            path = made.removeprefix(public)
            assert (await other.get(path, headers=host)).status_code == 200
            entered = await owner.post(path, headers={**host, "Authorization": ""})
            assert entered.status_code == 303
            cookie = entered.headers["set-cookie"].partition(";")[0]
            assert (await other.get("/api/me", headers={**host, "Cookie": cookie})).status_code == 200
        assert (await other.get("/api/me", headers={**host, "Cookie": f"{cookie}x"})).status_code == 401
        # It cannot be reached from here, and nodes are there.
        assert await asyncio.to_thread(main, ["serve", "--cluster", stage.url, "--new-address"]) == 0
        assert f"{public}/enter/" in capsys.readouterr().out
        assert (await other.get("/api/me", headers={**host, "Host": "evil.example"})).status_code == 421
