"""Agents that remember, on the genuine CLIs: what their models are asked, and what becomes of their sessions."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.agents.real_cli.scene import SECRET, Scene, every_cli, history, said, text_of, until
from tests.agents.real_cli.turn import clis

from bullpen.agents.session_lock import SessionLock
from bullpen.testing.models import ModelRequest, Reply, ToolCall


@every_cli
def test_it_uses_what_it_learned_three_turns_before(cli: str, tmp_path: Path) -> None:
    """Its model answers from nothing but what it is asked, after the file is gone."""
    scene = Scene(tmp_path, cli)

    first, second, answer = asyncio.run(read_and_remember(scene))

    assert answer == f"It said {SECRET}."
    assert scene.origins() == ["new", "resumed"]
    if cli != "qwen":
        assert second[: len(first)] == first
    news = text_of(second[len(first) :])
    for text in ("What did the file say?", "Ann agrees.", "Bob disagrees."):
        assert news.count(text) == 1, text
    assert "Read secret.txt" not in news


@pytest.mark.needs("claude")
def test_without_a_memory_of_its_own_it_does_not_know_what_it_read(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "claude")
    scene.write_team('memory = "shared"')

    _, _, answer = asyncio.run(read_and_remember(scene))

    assert answer == "I do not know."


async def read_and_remember(scene: Scene) -> tuple[list[Any], list[Any], str]:
    """Let the agent read a secret, and ask for it when others have spoken; return both requests, and its answer."""

    def from_memory(request: ModelRequest) -> Reply:
        return Reply(text=f"It said {SECRET}." if SECRET in "\n".join(request.texts) else "I do not know.")

    async with scene.talking() as (conversation, models):
        models.script(Reply(tool_calls=(scene.read_secret(),)), Reply(text="I have read it. [NEXT: ann]"))
        await said(conversation, "Read secret.txt, and keep it to yourself.")
        (scene.project / "secret.txt").unlink()
        first = history(models.requests[-1])
        assert SECRET in text_of(first)
        await said(conversation, "[NEXT: bob] What do you think?")
        models.script(from_memory)
        answer = await said(conversation, "[NEXT: agent] What did the file say?")
        return first, history(models.requests[-1]), answer


@pytest.mark.parametrize("turns", [4, pytest.param(20, marks=pytest.mark.torture)])
@pytest.mark.parametrize("cli", ["claude", "codex"])
def test_among_others_each_request_begins_with_the_one_before(cli: str, turns: int, tmp_path: Path) -> None:
    scene = Scene(tmp_path, cli)

    async def converse() -> list[ModelRequest]:
        async with scene.talking() as (conversation, models):
            for number in range(1, turns + 1):
                models.script(Reply(text=f"answer {number}", input_tokens=100, cached_tokens=0, output_tokens=10))
                await said(conversation, f"[NEXT: ann, bob, agent] question {number}")
            return models.requests

    requests = asyncio.run(converse())

    assert len(requests) == turns
    assert scene.origins() == ["new"] + ["resumed"] * (turns - 1)
    assert scene.used() == [(100, 10)] * turns, "each turn uses only what it used itself"
    for number, (before, request) in enumerate(pairwise(requests), start=2):
        earlier, now = history(before), history(request)
        assert now[: len(earlier)] == earlier
        news = text_of(now[len(earlier) :])
        for text in (f"question {number}", "Ann agrees.", "Bob disagrees.", f"answer {number - 1}"):
            assert news.count(text) == 1, text
        assert f"question {number - 1}\\n" not in news
        same = {key: before.body[key] for key in before.body if key in ("tools", "system", "instructions", "model")}
        assert same == {key: request.body[key] for key in same}


@clis("claude", rarely=["codex"])
def test_without_a_model_in_the_team_file_each_request_begins_with_the_one_before_too(cli: str, tmp_path: Path) -> None:
    """An earlier Claude Code took another model when it was resumed without one: nothing was in a cache then."""
    scene = Scene(tmp_path, cli)
    team = scene.project / "team.toml"
    lines = team.read_text(encoding="utf-8").splitlines()
    team.write_text("\n".join(line for line in lines if not line.startswith("model =")), encoding="utf-8")

    async def converse() -> list[ModelRequest]:
        async with scene.talking() as (conversation, models):
            for number in range(1, 4):
                models.script(Reply(text=f"answer {number}"))
                await said(conversation, f"question {number}")
            return models.requests

    requests = asyncio.run(converse())

    assert scene.origins() == ["new", "resumed", "resumed"]
    for before, request in pairwise(requests):
        assert history(request)[: len(history(before))] == history(before)
        assert all(
            request.body.get(key) == before.body.get(key) for key in ("model", "system", "instructions", "tools")
        )


@pytest.mark.needs("codex")
def test_codex_continues_in_another_folder_and_is_told_of_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "codex")
    other = scene.project / "other"
    other.mkdir()
    make = ToolCall(name="exec_command", arguments={"cmd": "touch made"})

    async def converse() -> list[Any]:
        conversation_id, _ = await scene.ask(None, "The colour is blue.", Reply(text="Noted: blue."))
        scene.write_team('cwd = "other"')
        _, asked = await scene.ask(conversation_id, "Make it.", Reply(tool_calls=(make,)), Reply(text="Made."))
        return asked

    asked = asyncio.run(converse())

    assert scene.origins() == ["new", "resumed"]
    assert text_of(asked).count("The colour is blue.") == 1
    assert f"<cwd>{other}</cwd>" in text_of(asked)
    assert (other / "made").exists()


@pytest.mark.needs("codex")
def test_a_command_that_codex_had_not_told_of_when_it_was_cancelled_is_not_kept_quiet(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "codex")

    async def converse() -> str:
        async with scene.talking() as (conversation, models):
            models.script(Reply(tool_calls=(scene.slow(),)))
            await conversation.say("Do the slow thing.")
            await until(lambda: (scene.project / "began").exists())
            await conversation.cancel()
            await conversation.until_quiet()
            await conversation.drop()
            models.script(Reply(text="Understood."))
            await conversation.say("Never mind.")
            await conversation.until_quiet()
            return text_of(history(models.requests[-1]))

    asked = asyncio.run(converse())

    assert "Your turn 1 was cancelled before it was done." in asked
    assert "Files may have been changed: look at them before you continue." in asked


# Qwen Code's is cancelled in test_acp_memory.py, too.
@clis("claude", "codex", rarely=["qwen"])
def test_a_turn_that_was_cancelled_while_a_tool_ran_is_taken_back_and_told(cli: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path, cli)

    async def converse() -> tuple[list[Any], list[Any]]:
        async with scene.talking() as (conversation, models):
            models.script(Reply(tool_calls=(scene.read_secret(),)), Reply(text="I have read it."))
            await said(conversation, "Read secret.txt.")
            first = history(models.requests[-1])
            models.script(Reply(text="Wait for it.", tool_calls=(scene.slow(),)))
            await conversation.say("Do the slow thing.")
            await until(lambda: (scene.project / "began").exists())
            await conversation.cancel()
            await conversation.until_quiet()
            models.script(Reply(text="Understood."))
            await conversation.drop()
            await conversation.say("Never mind. What was in the file?")
            await conversation.until_quiet()
            return first, history(models.requests[-1])

    first, last = asyncio.run(converse())

    assert scene.origins() == ["new", "resumed", "resumed"]
    if cli != "qwen":
        assert last[: len(first)] == first
    news = text_of(last[len(first) :])
    assert SECRET in text_of(last)
    assert news.count("Do the slow thing.") == 1, "what the cancelled turn was given is given again, once"
    assert "was cancelled before it was done. It had begun to answer: “Wait for it." in news
    if cli != "codex":
        assert "touch began; sleep 300" in news, "codex does not tell of a command before it has run for a while"


Change = Callable[[Scene], None]


def _gone(scene: Scene) -> None:
    scene.session_file.unlink()


def _cut(scene: Scene) -> None:
    file = scene.session_file
    file.write_bytes(file.read_bytes()[:-100])


def _garbage(scene: Scene) -> None:
    scene.session_file.write_bytes(b"garbage\n" * 10_000)


def _garbage_line(scene: Scene) -> None:
    lines = scene.session_file.read_bytes().splitlines(keepends=True)
    lines[1:1] = [b"garbage\n"]
    scene.session_file.write_bytes(b"".join(lines))


def _added(scene: Scene) -> None:
    with scene.session_file.open("ab") as file:
        file.write(b"{}\n")


REASONS: dict[Change, str] = {
    _gone: "the file of its session is gone",
    _cut: "the file of its session is not what its last turn left",
    _garbage: "the file of its session is not what its last turn left",
    _garbage_line: "the file of its session is not what its last turn left",
    _added: "somebody else continued its session",
}


@pytest.mark.timeout(300)
@clis("claude", rarely=["codex", "qwen"])
def test_a_session_that_is_not_as_it_was_left_is_rebuilt(cli: str, tmp_path: Path) -> None:
    """Each turn leaves a new session, to which the next thing is done."""
    scene = Scene(tmp_path, cli)

    async def converse() -> list[ModelRequest]:
        async with scene.talking() as (conversation, models):
            models.script(Reply(text="Noted: blue."))
            await said(conversation, "The colour is blue.")
            for change in REASONS:
                change(scene)
                models.script(Reply(text="Blue."))
                assert await said(conversation, "Which colour?") == "Blue."
            return models.requests

    _, *requests = asyncio.run(converse())

    _, *uses = scene.uses()
    assert [(use.origin, use.reason) for use in uses] == [("rebuilt", reason) for reason in REASONS.values()]
    for change, request in zip(REASONS, requests, strict=True):
        prompt = "\n".join(request.texts)
        assert prompt.count("The colour is blue.") == 1, f"{change.__name__}: it is in the new session's first prompt"
        assert "Noted: blue." in prompt


@pytest.mark.needs("qwen")
def test_a_session_that_only_the_cli_does_not_find_is_rebuilt_in_the_same_turn(tmp_path: Path) -> None:
    """The file is there, and as it was left, but qwen looks for it only in this folder's project."""
    scene = Scene(tmp_path, "qwen")

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
    last = scene.uses()[-1]
    assert last.origin == "rebuilt"
    assert "No saved session found" in last.reason


@every_cli
def test_permissions_and_instructions_apply_to_the_very_next_turn(cli: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path, cli)
    made = scene.project / "made"
    write = {
        "claude": ToolCall(name="Write", arguments={"file_path": str(made), "content": "x"}),
        "codex": ToolCall(name="exec_command", arguments={"cmd": "echo x > made"}),
        "qwen": ToolCall(name="write_file", arguments={"file_path": str(made), "content": "x"}),
    }[cli]

    conversation_id, _ = asyncio.run(scene.ask(None, "First.", Reply(text="One.")))
    scene.write_team('system_instruction = "You speak like a pirate."', permissions="read-only")

    async def converse() -> ModelRequest:
        async with scene.talking(conversation_id) as (conversation, models):
            models.script(Reply(tool_calls=(write,)), Reply(text="Two."))
            await said(conversation, "Second.")
            return models.requests[0]

    request = asyncio.run(converse())

    assert scene.origins() == ["new", "resumed"]
    assert "You speak like a pirate." in "\n".join(request.texts)
    assert "First." in "\n".join(request.texts)
    assert not made.exists()


@pytest.mark.parametrize(
    ("cli", "origin"),
    [
        ("claude", "resumed"),
        ("codex", "rebuilt"),
        pytest.param("qwen", "resumed", marks=pytest.mark.torture),
    ],
)
def test_another_model_goes_on_only_where_the_cli_can(cli: str, origin: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path, cli)
    other = {"claude": "claude-haiku-5", "codex": "gpt-5.4", "qwen": "qwen3-max"}[cli]

    async def converse() -> ModelRequest:
        conversation_id, _ = await scene.ask(None, "The colour is blue.", Reply(text="Noted: blue."))
        scene.write_team(model=other)
        async with scene.talking(conversation_id) as (conversation, models):
            await said(conversation, "Which colour?")
            return models.requests[-1]

    request = asyncio.run(converse())

    assert scene.origins() == ["new", origin]
    assert "\n".join(request.texts).count("The colour is blue.") == 1
    assert request.model == other


KILLS: list[tuple[str, str, list[signal.Signals]]] = [
    ("claude", "in a tool", [signal.SIGTERM]),
    ("codex", "streaming", [signal.SIGKILL]),
]
ALL_KILLS = [
    pytest.param(cli, moment, [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], marks=pytest.mark.torture)
    for cli in ("claude", "codex", "qwen")
    for moment in ("streaming", "in a tool")
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("cli", "moment", "ends"), [*KILLS, *ALL_KILLS])
def test_a_cli_that_is_killed_loses_nothing_of_what_it_knew(
    cli: str, moment: str, ends: list[signal.Signals], tmp_path: Path
) -> None:
    """Each end is followed by another attempt: what its model is asked shows what was left of its session."""
    scene = Scene(tmp_path, cli)
    began = scene.project / "began"

    slow = (
        Reply(text="word " * 500, chunk_characters=5, wait_for=tmp_path / "never")
        if moment == "streaming"
        else Reply(tool_calls=(scene.slow(),))
    )

    async def converse() -> list[list[Any]]:
        async with scene.talking() as (conversation, models):
            models.script(Reply(tool_calls=(scene.read_secret(),)), Reply(text="I have read it."))
            await said(conversation, "Read secret.txt.")
            asked = [history(models.requests[-1])]
            for end in ends:
                before = len(models.requests)
                models.script(slow)
                await conversation.say(f"Do the slow thing until {end.name}.")
                await until(lambda before=before: len(models.requests) > before)  # type: ignore[misc]
                if moment == "in a tool":
                    await until(began.exists)
                    began.unlink()
                for pid in processes_of(scene):
                    # One of them may end because another one did.
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, end)
                await conversation.until_quiet()
                assert [ended.state for ended in conversation.undecided] == ["failed"], end
                models.script(Reply(text="SECRET."))
                await conversation.retry()
                await conversation.until_quiet()
                asked.append(history(models.requests[-1]))
            return asked

    asked = asyncio.run(converse())

    assert scene.origins() == ["new", *["resumed"] * 2 * len(ends)]
    for end, (earlier, request) in zip(ends, pairwise(asked), strict=True):
        if cli != "qwen":
            assert request[: len(earlier)] == earlier
        assert SECRET in text_of(request)
        assert text_of(request).count(f"Do the slow thing until {end.name}.") == 1


def processes_of(scene: Scene) -> list[int]:
    """Return the processes of the CLI itself, without those of its tools."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes().split(b"\0")
            is_cli = any(scene.cli.encode() in Path(os.fsdecode(word)).name.encode() for word in command[:2])
            if entry.name.isdecimal() and (entry / "cwd").readlink() == scene.project and is_cli:
                found.append(int(entry.name))
    return found


@clis("claude", rarely=["codex", "qwen"])
def test_two_turns_at_once_in_one_session_run_apart(cli: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path, cli)

    async def converse() -> list[ModelRequest]:
        async with scene.talking() as (conversation, models):
            models.script(Reply(text="Noted: blue."))
            await said(conversation, "The colour is blue.")
            file = scene.session_file
            before = file.read_bytes()
            other = SessionLock(file.stem[-36:])
            assert other.hold()
            models.script(Reply(text="Blue, says the new one."))
            await said(conversation, "Which colour?")
            assert file.read_bytes() == before
            other.release()
            models.script(Reply(text="Blue, says the session."))
            await said(conversation, "And again?")
            return models.requests

    _, other, last = asyncio.run(converse())

    assert scene.origins() == ["new", "rebuilt", "resumed"]
    for request in (other, last):
        assert "\n".join(request.texts).count("The colour is blue.") == 1
    assert "Blue, says the new one." in "\n".join(last.texts)
