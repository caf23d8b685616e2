"""One key, or one request, says yes or no to a hand-over in every door; Enter alone says neither."""

import asyncio
import json
import os
from collections.abc import Callable, Coroutine
from pathlib import Path

import httpx
import pytest
from tests.tui.stage import Scene, Script, Stage
from tests.view.doors import plain_chat

from bullpen.conversation.conversation import Conversation
from bullpen.testing.site import site

ASKS: Script = [{"say": "Do it. [NEXT: ada]"}]
DOES: Script = [{"say": "I have done it."}]
QUESTION = "max hands over to ada, which has full permissions (turn 2). That needs your yes."


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    made = Stage(tmp_path)
    made.agent("max", ASKS)
    made.agent("ada", DOES, cli="gemini", more='permissions = "full"')
    return made


async def last_words(conversation: Conversation) -> str:
    await conversation.until_quiet()
    (newest,) = await conversation.messages(limit=1)
    return newest.message.content


async def in_plain_chat(stage: Stage, line: str) -> str:
    async with plain_chat(stage.team, stage.folder) as (conversation, send):
        await send("Go.")
        await conversation.until_quiet()
        await send("")
        assert not conversation.running, "Enter alone is not a yes"
        await send(line)
        return await last_words(conversation)


async def in_the_api(stage: Stage, choice: int) -> str:
    async with (
        site(stage.folder, stage.team) as served,
        httpx.AsyncClient(base_url=f"{served.url}/api", headers=served.headers, timeout=60) as client,
    ):
        conversation = (await served.hub.begin()).conversation
        here = f"/conversations/{conversation.id}"
        await client.post(f"{here}/messages", json={"text": "Go."})
        await conversation.until_quiet()
        (decision,) = (await client.get(here)).json()["decisions"]
        assert (decision["kind"], decision["text"]) == ("allow", QUESTION)
        chosen = decision["choices"][choice]
        (await client.post(f"{here}/{chosen['action']}", json=chosen["given"])).raise_for_status()
        return await last_words(conversation)


Answer = Callable[[Stage], Coroutine[None, None, str]]


@pytest.mark.parametrize(
    "answer",
    [lambda stage: in_plain_chat(stage, "y"), lambda stage: in_the_api(stage, 0)],
    ids=["plain chat", "api"],
)
def test_a_yes(answer: Answer, stage: Stage) -> None:
    assert asyncio.run(answer(stage)) == "I have done it."


@pytest.mark.parametrize(
    "answer",
    [lambda stage: in_plain_chat(stage, "/dismiss"), lambda stage: in_the_api(stage, 1)],
    ids=["plain chat", "api"],
)
def test_a_no(answer: Answer, stage: Stage) -> None:
    assert asyncio.run(answer(stage)) == "Do it. [NEXT: ada]"


def test_words_that_hand_over_to_full_permissions_need_more_than_enter_too(stage: Stage) -> None:
    for script in stage.folder.glob("agents/max/script*"):
        script.write_text(json.dumps([{"say": "That was my part. Over to ada."}]))

    assert asyncio.run(in_plain_chat(stage, "y")) == "I have done it."
    assert asyncio.run(in_plain_chat(stage, "/dismiss")) == "That was my part. Over to ada."


@pytest.mark.parametrize(("keys", "words"), [("1", "I have done it."), ("3", "Do it. [NEXT: ada]")])
def test_a_key_on_the_full_screen(keys: str, words: str, stage: Stage) -> None:
    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("which has full permissions", "1 Allow", "3 Don't allow")
        await scene.press("2")
        assert len(scene.conversation.unallowed) == 1, "only these keys decide"
        await scene.press("backspace")
        await scene.press(*keys.split())
        await scene.until(lambda: not scene.conversation.unallowed)
        assert await last_words(scene.conversation) == words
        await scene.until(lambda: "1 Allow" not in scene.text)

    stage.play(story)
