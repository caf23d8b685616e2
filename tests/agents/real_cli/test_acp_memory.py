"""Qwen Code remembers also if people are asked: its session is loaded in the Agent Client Protocol, and still asks."""

import asyncio
from pathlib import Path

import pytest
from tests.agents.real_cli.scene import SECRET, Scene, history, said, text_of, until

from bullpen.approvals import Answer
from bullpen.conversation.conversation import Conversation
from bullpen.testing.models import ModelServer, Reply, ToolCall

pytestmark = [pytest.mark.timeout(300), pytest.mark.needs("qwen")]
TOUCH = ToolCall(name="run_shell_command", arguments={"command": "touch made", "is_background": False})


def qwen(folder: Path, permissions: str = "ask") -> Scene:
    scene = Scene(folder, "qwen")
    scene.write_team(permissions=permissions)
    return scene


def counted(text: str) -> Reply:
    return Reply(text=text, input_tokens=100, output_tokens=10, cached_tokens=0)


async def read_secret(scene: Scene, conversation: Conversation, models: ModelServer) -> None:
    models.script(Reply(tool_calls=(scene.read_secret(),)), Reply(text="I have read it."))
    await said(conversation, "Read secret.txt.")
    (scene.project / "secret.txt").unlink()


def test_it_knows_what_it_read_before_and_is_given_only_what_is_new(tmp_path: Path) -> None:
    scene = qwen(tmp_path)

    async def converse() -> list[str]:
        async with scene.talking() as (conversation, models):
            await read_secret(scene, conversation, models)
            for number in (2, 3):
                models.script(counted(f"answer {number}"))
                await said(conversation, f"[NEXT: ann, agent] question {number}")
            return [text_of(history(request)) for request in models.requests[-2:]]

    second, third = asyncio.run(converse())

    assert scene.origins() == ["new", "resumed", "resumed"]
    assert scene.used()[1:] == [(100, 10)] * 2, "each turn uses only what it used itself"
    for asked in (second, third):
        assert asked.count(SECRET) == 1
        assert asked.count("Read secret.txt.") == 1
    assert (third.count("question 2"), third.count("answer 2"), third.count("question 3")) == (1, 1, 1)


def test_a_session_that_was_loaded_asks_before_a_command(tmp_path: Path) -> None:
    scene = qwen(tmp_path)
    made = scene.project / "made"

    async def converse() -> tuple[bool, bool]:
        async with scene.talking() as (conversation, models):
            await read_secret(scene, conversation, models)
            models.script(Reply(tool_calls=(TOUCH,)), Reply(text="Made."))
            await conversation.say("Make it.")
            await until(lambda: bool(conversation.approvals.open))
            was_there = made.exists()
            ((turn, question),) = conversation.approvals.open
            await conversation.answer(turn, question, Answer(verdict="yes"), by="kim")
            await conversation.until_quiet()
            return was_there, made.exists()

    assert asyncio.run(converse()) == (False, True)
    assert scene.origins() == ["new", "resumed"]


def test_a_turn_that_is_cancelled_while_it_asks_leaves_nothing_in_the_session(tmp_path: Path) -> None:
    scene = qwen(tmp_path)

    async def converse() -> str:
        async with scene.talking() as (conversation, models):
            await read_secret(scene, conversation, models)
            models.script(Reply(text="Wait for it.", tool_calls=(TOUCH,)))
            await conversation.say("Do the slow thing.")
            await until(lambda: bool(conversation.approvals.open))
            await conversation.cancel()
            await conversation.until_quiet()
            await conversation.drop()
            models.script(Reply(text="Understood."))
            await conversation.say("Never mind.")
            await conversation.until_quiet()
            return text_of(history(models.requests[-1]))

    asked = asyncio.run(converse())

    assert scene.origins() == ["new", "resumed", "resumed"]
    assert asked.count(SECRET) == 1
    assert asked.count("Do the slow thing.") == 1, "what the cancelled turn was given is given again, once"
    assert "was cancelled before it was done. It had begun to answer: “Wait for it." in asked
    assert not (scene.project / "made").exists()


@pytest.mark.torture
def test_a_session_that_it_does_not_find_is_rebuilt_in_the_same_turn(tmp_path: Path) -> None:
    scene = qwen(tmp_path)

    async def converse() -> str:
        async with scene.talking() as (conversation, models):
            models.script(Reply(text="Noted: blue."))
            await said(conversation, "The colour is blue.")
            file = scene.session_file
            elsewhere = file.parents[2] / "elsewhere" / "chats"
            elsewhere.mkdir(parents=True)
            file.rename(elsewhere / file.name)
            models.script(Reply(text="Blue."))
            return await said(conversation, "Which colour?")

    assert asyncio.run(converse()) == "Blue."
    assert scene.uses()[-1].origin == "rebuilt"


@pytest.mark.torture
def test_permissions_may_change_from_turn_to_turn(tmp_path: Path) -> None:
    scene = qwen(tmp_path, "edit")

    async def converse() -> str:
        conversation_id, _ = await scene.ask(None, "The colour is blue.", Reply(text="Noted: blue."))
        scene.write_team(permissions="ask")
        await scene.ask(conversation_id, "The shape is round.", Reply(text="Noted: round."))
        scene.write_team(permissions="read-only")
        _, asked = await scene.ask(conversation_id, "Which?", Reply(text="Blue and round."))
        return text_of(asked)

    asked = asyncio.run(converse())

    assert scene.origins() == ["new", "resumed", "resumed"]
    assert [asked.count(words) for words in ("The colour is blue.", "The shape is round.")] == [1, 1]
