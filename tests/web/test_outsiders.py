"""Somebody of another team reads a conversation, and changes nothing in it, whether it is open here or not."""

import asyncio
from pathlib import Path

import httpx
import pytest
from tests.web.test_access import KIM, client_of, shop

from bullpen.conversation.owner import this_process
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.site import Site
from bullpen.web.access import NEEDS
from bullpen.web.identity import OWNER, Identity

WAIT_SECONDS = 20
ADA = Identity(role="member", person="ada")
TAKING_PART = [(method, path) for (method, path), need in NEEDS.items() if need == "member" and "{id}" in path]
BODY = {"text": "/note I was here", "title": "I was here", "task": "Mine"}


async def said(served: Site, here: str) -> str:
    """Say something in a conversation, wait for the answer, and return the conversation's id."""
    conversation_id = here.rpartition("/")[2]
    opened = served.hub.get(conversation_id)
    assert opened is not None
    await opened.conversation.say("Hello.", sender="kim")
    await asyncio.wait_for(opened.conversation.until_quiet(), WAIT_SECONDS)
    return conversation_id


async def all_that_is_stored(client: httpx.AsyncClient, served: Site, conversation_id: str) -> list[object]:
    api = f"{served.url}/api/conversations"
    parts = [f"{api}/{conversation_id}/{part}" for part in ("messages", "decisions", "queue")]
    return [(await client.get(address)).json() for address in (api, f"{api}/{conversation_id}", *parts)]


@pytest.mark.parametrize("place", ["open here", "closed"])
def test_nothing_that_takes_part_is_done_for_an_outsider(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with shop(tmp_path, monkeypatch) as (served, here), client_of(served, ADA) as ada:
            conversation_id = await said(served, here)
            if place == "closed":
                await served.hub.release(conversation_id)
            before = await all_that_is_stored(ada, served, conversation_id)
            for method, path in TAKING_PART:
                address = path.format(id=conversation_id, action="task", number=1, file=0)
                as_json, as_form = (BODY, None) if path.startswith("/api/") else (None, BODY)
                answer = await ada.request(method, f"{served.url}{address}", json=as_json, data=as_form)
                assert (path, answer.status_code) == (path, 403)
                assert "ada, who is not in the team" in answer.text
            assert await all_that_is_stored(ada, served, conversation_id) == before

    asyncio.run(story())


def test_its_people_open_rename_and_archive_it_and_it_is_stored_who_renamed_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with (
            shop(tmp_path, monkeypatch) as (served, here),
            client_of(served, KIM) as kim,
            client_of(served, OWNER) as owner,
        ):
            page = f"{served.url}/c/{await said(served, here)}"
            assert (await kim.post(f"{here}/close")).status_code == 200
            before = (await owner.get(f"{served.url}/api/conversations")).json()
            assert (await kim.post(f"{page}/rename", data={"title": "Closed"})).status_code == 303
            assert (await owner.post(f"{page}/rename", data={"title": "By its owner"})).status_code == 303
            (listed,) = (await owner.get(f"{served.url}/api/conversations")).json()
            assert listed == {**before[0], "title": "By its owner"}
            assert (await kim.post(f"{page}/archive")).status_code == 303
            assert (await kim.post(f"{page}/unarchive")).status_code == 303
            assert (await kim.post(f"{here}/open")).status_code == 200
            made = (await owner.get(f"{here}/decisions")).json()
            assert [(one["person"], one["choice"]) for one in made] == [("kim", "rename"), ("owner", "rename")]
            assert all(one["at"] > 0 for one in made)

    asyncio.run(story())


def test_what_an_owner_decides_is_never_that_of_who_spoke_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> list[str]:
        async with shop(tmp_path, monkeypatch) as (served, here), client_of(served, OWNER) as owner:
            page = f"{served.url}/c/{await said(served, here)}"
            await owner.post(f"{here}/task", json={"task": "Mine"})
            await owner.post(f"{here}/ask", json={"names": "max"})
            await owner.post(f"{page}/do/continue")
            await owner.post(f"{here}/commands", json={"text": "/task -"})
            await owner.post(f"{page}/rename", data={"title": "Mine"})
            await owner.post(f"{here}/commands", json={"text": "/task ours", "sender": "lee"})
            return [one["person"] for one in (await owner.get(f"{here}/decisions")).json()]

    assert asyncio.run(story()) == ["owner"] * 5 + ["lee"]


def test_what_another_process_took_is_read_here_and_can_be_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with shop(tmp_path, monkeypatch) as (served, here), client_of(served, OWNER) as owner:
            conversation_id = await said(served, here)
            other, us = SqliteStore(tmp_path / "conversations.db"), this_process()
            assert other.claim(conversation_id, us, is_alive=lambda _: False)
            # Whoever speaks first learns it.
            assert (await owner.post(f"{here}/messages", json={"text": "Hi.", "sender": "kim"})).status_code == 409
            state = (await owner.get(here)).json()
            assert [state["is_open"], state["is_owned"], state["decisions"]] == [False, True, []]
            assert served.hub.get(conversation_id) is None
            assert (await owner.post(f"{here}/open")).status_code == 409
            assert (await owner.post(f"{here}/continue")).status_code == 409
            other.release(conversation_id, us)
            assert (await owner.post(f"{here}/open")).status_code == 200
            again = await owner.post(f"{here}/messages", json={"text": "Again.", "sender": "kim"})
            assert again.status_code == 201
            other.close()

    asyncio.run(story())
