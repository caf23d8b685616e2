"""The API does what its description says, and the description is made from the calls."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from bullpen.testing.site import Site, site
from bullpen.testing.stage import write_team
from bullpen.web.api import CALLS
from bullpen.web.app import ROUTES
from bullpen.web.guard import MOST_BODY_BYTES
from bullpen.web.openapi import PATH, description

WAIT_SECONDS = 60


@asynccontextmanager
async def api(folder: Path, script: list[dict[str, object]]) -> AsyncIterator[tuple[Site, httpx.AsyncClient]]:
    team = write_team(folder, {"max": script, "sarah": [{"say": "Fine."}]})
    async with (
        site(folder, team) as served,
        httpx.AsyncClient(base_url=f"{served.url}/api", headers=served.headers, timeout=WAIT_SECONDS) as client,
    ):
        yield served, client


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Tell whether a value is what a JSON schema describes; as much of JSON Schema as msgspec writes."""
    if "$ref" in schema:
        return fits(value, description()["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    if "anyOf" in schema:
        return any(fits(value, one) for one in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    if "const" in schema:
        return bool(value == schema["const"])
    types: dict[str, Any] = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None)}
    match schema.get("type"):
        case "object":
            properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
            return (
                isinstance(value, dict)
                and set(schema.get("required", ())) <= set(value)
                and all(fits(item, properties.get(name, others or {})) for name, item in value.items())
                and set(value) <= (set(properties) if properties else set(value))
            )
        case "array":
            return isinstance(value, list) and all(fits(item, schema.get("items", {})) for item in value)
        case None:
            return True
        case name:
            return isinstance(value, types[name]) and not (name == "integer" and isinstance(value, bool))


def described(method: str, path: str, answer: httpx.Response) -> bool:
    """Tell whether an answer is one that the description has for a call."""
    responses = description()["paths"][path][method.lower()]["responses"]
    schema = responses[str(answer.status_code)]["content"]["application/json"]["schema"]
    return answer.headers["content-type"] == "application/json" and fits(answer.json(), schema)


def test_the_description_has_every_call_and_no_other() -> None:
    routes = {(method, path) for method, path, _ in ROUTES if path.startswith("/api/") and path != PATH}

    in_description = {(method.upper(), path) for path, calls in description()["paths"].items() for method in calls}

    assert in_description == routes
    assert len(routes) == len(CALLS)


def test_the_schema_checker_can_say_no() -> None:
    schema = description()["paths"]["/api/conversations"]["get"]["responses"]["200"]["content"]["application/json"]

    assert fits([], schema["schema"])
    assert not fits([{"id": "x"}], schema["schema"])
    assert not fits({}, schema["schema"])


def test_the_description_is_served(tmp_path: Path) -> None:
    async def story() -> Any:
        async with api(tmp_path, []) as (_, client):
            return (await client.get("/openapi.json")).json()

    served = asyncio.run(story())

    assert served == json.loads(json.dumps(description()))
    assert served["openapi"] == "3.1.0"


def test_a_whole_conversation_by_program_as_described(tmp_path: Path) -> None:
    script: list[dict[str, object]] = [{"say": "It is done. [NEXT: sarah]"}]

    async def story() -> None:
        async with api(tmp_path, script) as (served, client):
            one = "/api/conversations/{id}"
            begun = await client.post("/conversations")
            assert begun.status_code == 201
            assert described("POST", "/api/conversations", begun)
            here = f"/conversations/{begun.json()['id']}"
            said = await client.post(f"{here}/messages", json={"text": "Do it.", "id": "my-own-id-1"})
            again = await client.post(f"{here}/messages", json={"text": "Do it.", "id": "my-own-id-1"})
            assert [said.status_code, again.status_code, again.json()] == [201, 200, said.json()]
            assert described("POST", f"{one}/messages", said)
            assert described("POST", f"{one}/messages", again)
            opened = served.hub.get(begun.json()["id"])
            assert opened is not None
            await asyncio.wait_for(opened.conversation.until_quiet(), WAIT_SECONDS)
            messages = await client.get(f"{here}/messages")
            assert described("GET", f"{one}/messages", messages)
            spoke = [(m["message"]["speaker"]["roleId"], m["message"]["content"]) for m in messages.json()]
            assert spoke == [("kim", "Do it."), ("max", "It is done. [NEXT: sarah]"), ("sarah", "Fine.")]
            newest = await client.get(f"{here}/messages", params={"limit": 1})
            assert [m["sequence"] for m in newest.json()] == [3]
            for path, call in [
                ("/api/conversations", "/conversations"),
                (one, here),
                (f"{one}/queue", f"{here}/queue"),
                ("/api/search", "/search?q=done"),
            ]:
                answer = await client.get(call)
                assert answer.status_code == 200
                assert described("GET", path, answer), answer.text
            assert [hit["sequence"] for hit in (await client.get("/search?q=done")).json()] == [2]
            task = await client.post(f"{here}/task", json={"task": "Ship it"})
            assert task.json()["task"] == "Ship it"
            assert described("POST", f"{one}/task", task)
            closed = await client.post(f"{here}/close")
            assert described("POST", f"{one}/close", closed)
            assert closed.json()["is_open"] is False
            assert (await client.post(f"{here}/messages", json={"text": "x"})).status_code == 409
            again = await client.post(f"{here}/open")
            assert described("POST", f"{one}/open", again)
            assert again.json()["is_open"] is True

    asyncio.run(story())


def test_a_failed_turn_is_decided_by_program(tmp_path: Path) -> None:
    async def story() -> None:
        async with api(tmp_path, [{"exit": 3}]) as (served, client):
            begun = (await client.post("/conversations")).json()["id"]
            here, opened = f"/conversations/{begun}", served.hub.get(begun)
            assert opened is not None
            await client.post(f"{here}/messages", json={"text": "Do it."})
            await asyncio.wait_for(opened.conversation.until_quiet(), WAIT_SECONDS)
            state = (await client.get(here)).json()
            assert [(one["member"], one["state"]) for one in state["undecided"]] == [("max", "failed")]
            after = await client.post(f"{here}/hand-over", json={"member": "sarah"})
            assert described("POST", "/api/conversations/{id}/hand-over", after)
            await asyncio.wait_for(opened.conversation.until_quiet(), WAIT_SECONDS)
            messages = (await client.get(f"{here}/messages")).json()
            assert [m["message"]["content"] for m in messages] == ["Do it.", "Fine."]

    asyncio.run(story())


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/messages", b'{"text": ""}', 400),
        ("POST", "/messages", b"{", 400),
        ("POST", "/messages", b'{"text": "a", "id": "../../x"}', 400),
        ("POST", "/messages", b'{"text": "a", "unknown": 1}', 400),
        ("POST", "/messages", b'{"text": "a", "sender": "nobody"}', 400),
        ("POST", "/cancel", b"", 409),
        ("POST", "/retry", b"", 409),
        ("POST", "/drop", b'{"turn": "99"}', 409),
        ("POST", "/hand-over", b"{}", 400),
        ("GET", "/nothing", b"", 404),
        ("GET", "/messages?after=-1", b"", 400),
        ("GET", "/messages?before=null", b"", 400),
        ("GET", "/messages?limit=0", b"", 400),
        ("GET", "/messages?limit=1&limit=2", b"", 400),
        ("GET", "/messages?limit=1000000000000000", b"", 400),
        ("GET", "/watch?after=", b"", 400),
    ],
)
def test_what_does_not_work_is_said_in_a_sentence(
    method: str, path: str, body: bytes, status: int, tmp_path: Path
) -> None:
    async def story() -> httpx.Response:
        async with api(tmp_path, []) as (_, client):
            begun = (await client.post("/conversations")).json()["id"]
            return await client.request(method, f"/conversations/{begun}{path}", content=body)

    answer = asyncio.run(story())

    assert (answer.status_code, list(answer.json())) == (status, ["error"])
    assert re.fullmatch(r"[A-Z][^\n]+[.?]", answer.json()["error"])


def test_a_search_says_what_is_wrong_with_its_limit(tmp_path: Path) -> None:
    async def story() -> httpx.Response:
        async with api(tmp_path, []) as (_, client):
            return await client.get("/search", params={"q": "done", "limit": "many"})

    answer = asyncio.run(story())

    assert answer.status_code == 400
    assert "limit" in answer.json()["error"]


@pytest.mark.parametrize(
    ("headers", "length", "status"),
    [
        ({"Authorization": "Bearer wrong"}, 0, 401),
        ({"Origin": "http://evil.example"}, 0, 403),
        ({}, MOST_BODY_BYTES + 1, 413),
        ({"Host": "evil.example"}, 0, 421),
    ],
)
def test_who_is_not_let_in_is_told_so_as_described(
    headers: dict[str, str], length: int, status: int, tmp_path: Path
) -> None:
    async def story() -> httpx.Response:
        async with api(tmp_path, []) as (_, client):
            return await client.request("GET", "/conversations", headers=headers, content=b"x" * length)

    answer = asyncio.run(story())

    assert answer.status_code == status
    assert described("GET", "/api/conversations", answer), answer.text


def test_another_method_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    async def story() -> list[tuple[int, str]]:
        async with api(tmp_path, []) as (_, client):
            answers = [await client.put(path) for path in ("/conversations", "/search", "/conversations/x/cancel")]
            return [(answer.status_code, answer.headers["allow"]) for answer in answers]

    assert asyncio.run(story()) == [(405, "GET, HEAD, POST"), (405, "GET, HEAD"), (405, "POST")]


def test_a_body_is_required_where_nothing_works_without_it() -> None:
    bodies = {
        path: calls["post"].get("requestBody") for path, calls in description()["paths"].items() if "post" in calls
    }

    required = {path.rpartition("/")[2] for path, body in bodies.items() if body and body["required"]}

    assert required == {
        "messages",
        "commands",
        "tell",
        "hand-over",
        "ask",
        "forget",
        "merge",
        "pick",
        "resolve",
        "reorder",
        "rewind",
        "tokens",
        "invitations",
    }


def test_events_are_as_described(tmp_path: Path) -> None:
    async def story() -> dict[str, str]:
        async with api(tmp_path, []) as (_, client):
            here = f"/conversations/{(await client.post('/conversations')).json()['id']}"
            await client.post(f"{here}/task", json={"task": "Ship it"})
            async with client.stream("GET", f"{here}/watch", params={"after": 0}) as answer:
                lines = answer.aiter_lines()
                while not (line := await anext(lines)).startswith("event"):
                    pass
                return dict(field.split(": ", 1) for field in [line, await anext(lines), await anext(lines)])

    event = asyncio.run(story())

    content = description()["paths"]["/api/conversations/{id}/watch"]["get"]["responses"]["200"]["content"]
    schema = content["text/event-stream"]["schema"]
    assert fits(event, schema)
    assert fits(json.loads(event["data"]), schema["properties"]["data"]["contentSchema"])
    assert not fits({"number": "1"}, schema["properties"]["data"]["contentSchema"])
