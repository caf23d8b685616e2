"""GitHub Copilot CLI remembers: its session continues, with other permissions too, and has nothing of bad turns."""

import asyncio
from pathlib import Path

import pytest
from tests.agents.real_cli.scene import SECRET, Scene, history, said, text_of, until
from tests.agents.real_cli.trials import command_calls
from tests.agents.real_cli.turn import write_call

from bullpen.approvals import Answer
from bullpen.testing.models import Reply

pytestmark = [pytest.mark.timeout(300), pytest.mark.needs("copilot")]


def counted(text: str) -> Reply:
    return Reply(text=text, input_tokens=100, output_tokens=10, cached_tokens=0)


def test_what_one_turn_may_do_the_next_one_may_not(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "copilot")
    made, written = scene.project / "made", scene.project / "written"

    async def converse() -> tuple[bool, str]:
        touch = command_calls("copilot", [f"touch {made}"])
        conversation_id, _ = await scene.ask(None, "Make it.", touch, Reply(text="Made."))
        was_made = made.exists()
        made.unlink()
        scene.write_team(permissions="read-only")
        write = Reply(tool_calls=(write_call("copilot", written),))
        _, asked = await scene.ask(conversation_id, "Again.", touch, write, Reply(text="It was refused."))
        return was_made, text_of(asked)

    was_made, asked = asyncio.run(converse())

    assert was_made
    assert scene.origins() == ["new", "resumed"]
    assert asked.count("Make it.") == 1
    assert not made.exists()
    assert not written.exists()


def test_a_turn_that_is_cancelled_leaves_nothing_in_the_session(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "copilot")

    async def converse() -> str:
        async with scene.talking() as (conversation, models):
            models.script(Reply(tool_calls=(scene.read_secret(),)), Reply(text="I have read it."))
            await said(conversation, "Read secret.txt.")
            models.script(command_calls("copilot", ["touch began; sleep 300"]))
            await conversation.say("Do the slow thing.")
            await until((scene.project / "began").exists)
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
    assert "was cancelled before it was done" in asked


def test_people_are_asked_in_a_session_that_continues(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "copilot")
    scene.write_team(permissions="ask")
    made = scene.project / "made"

    async def converse() -> tuple[bool, str]:
        async with scene.talking() as (conversation, models):
            models.script(Reply(tool_calls=(scene.read_secret(),)), counted("I have read it."))
            await said(conversation, "Read secret.txt.")
            models.script(command_calls("copilot", [f"touch {made}"]), counted("Made."))
            await conversation.say("Make it.")
            await until(lambda: bool(conversation.approvals.open))
            was_there = made.exists()
            ((turn, question),) = conversation.approvals.open
            await conversation.answer(turn, question, Answer(verdict="yes"), by="kim")
            await conversation.until_quiet()
            models.script(counted("Third."))
            await said(conversation, "Third?")
            return was_there, text_of(history(models.requests[-1]))

    was_there, asked = asyncio.run(converse())

    assert (was_there, made.exists()) == (False, True)
    assert scene.origins() == ["new", "resumed", "resumed"]
    assert [asked.count(words) for words in (SECRET, "Read secret.txt.", "Make it.", "Third?")] == [1, 1, 1, 1]
    assert scene.used()[-1] == (100, 10), "each turn uses only what it used itself"


@pytest.mark.torture
def test_a_session_continues_with_and_without_questions(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "copilot")

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
