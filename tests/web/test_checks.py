"""What checks said, in pages and for programs."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.web.changed_files import ID
from tests.web.test_api import described
from tests.web.test_changes import API, article, opened

from bullpen.check_results import CheckResult
from bullpen.conversation.broadcast import Numbered
from bullpen.conversation.events import Checked, event_json
from bullpen.store.base import Store
from bullpen.testing.site import Site
from bullpen.web.updates import update

RED = CheckResult(
    turn_id="1",
    member="max",
    name="pytest",
    command=("pytest", "-q"),
    workspace="/p",
    state="red",
    at=5,
    exit_code=1,
    seconds=2.1,
    output="<b>1 failed</b> \u202e",
)
GREEN = replace(RED, name="lint", state="green", exit_code=0, output="")


async def stored(served: Site, *results: CheckResult) -> list[CheckResult]:
    def add(store: Store, conversation_id: str) -> list[CheckResult]:
        owner = store.conversation(conversation_id).owner
        return [store.add_check(conversation_id, one, owner=owner) for one in results]

    return await served.hub.read(add, ID)


def test_they_are_below_the_message_of_their_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with opened(tmp_path, monkeypatch) as (served, client):
            red, green, failed = await stored(served, RED, GREEN, replace(RED, turn_id="2", name="after"))
            page = (await client.get(f"/c/{ID}")).text
            said = article(page, red.after_message)
            assert said.index('class="check red"') < said.index('class="check green"')
            assert "pytest: red (exit 1), 2.1 s" in said
            assert "&lt;b&gt;1 failed&lt;/b&gt; ⟨U+202E⟩" in said
            assert "lint: green, 2.1 s" in said
            assert green.after_message == red.after_message
            # A turn without a reply has them beside what is left of it.
            assert "after: red (exit 1)" in article(page, failed.after_message)
            newer = (await client.get(f"/c/{ID}/newer?after=3")).text
            assert newer.count("data-check=") == 3
            talk = (await served.hub.require(ID)).conversation
            made = await update(Numbered(1, Checked(result=red)), talk)
            assert made is not None
            assert made.event == "checked"
            assert b"pytest: red" in made.data

    asyncio.run(story())


def test_programs_list_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with opened(tmp_path, monkeypatch) as (served, client):
            red, green, _ = await stored(served, RED, GREEN, replace(RED, turn_id="2"))
            every = await client.get(f"{API}/checks", headers=served.headers)
            assert described("GET", "/api/conversations/{id}/checks", every)
            assert [one["number"] for one in every.json()] == [1, 2, 3]
            first = every.json()[0]
            assert (first["state"], first["exit_code"], first["command"]) == ("red", 1, ["pytest", "-q"])
            of_turn = (await client.get(f"{API}/checks?turn=1&after=1", headers=served.headers)).json()
            assert [one["name"] for one in of_turn] == [green.name]
            assert len((await client.get(f"{API}/checks?limit=2", headers=served.headers)).json()) == 2
            assert (await client.get(f"{API}/checks?turn=99", headers=served.headers)).status_code == 404
            see = await client.post(f"{API}/commands", json={"text": "/checks 1"}, headers=served.headers)
            assert see.json()["see"] == f"/c/{ID}?at={red.after_message}#m{red.after_message}"
            assert b'"type":"checked"' in event_json(Checked(result=red))

    asyncio.run(story())


def test_where_no_check_ran_a_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with opened(tmp_path, monkeypatch) as (served, client):
            assert (await client.get(f"{API}/checks", headers=served.headers)).json() == []
            answer = await client.post(f"{API}/commands", json={"text": "/checks"}, headers=served.headers)
            assert "No check has run in this conversation." in answer.text

    asyncio.run(story())
