"""Forks of conversations, on the genuine CLIs: what their models are asked, and what stays as it was."""

import asyncio
from pathlib import Path
from typing import Any

from tests.agents.real_cli.scene import SECRET, Scene, said, text_of
from tests.agents.real_cli.turn import clis

from bullpen.testing.models import Reply


def begins_with(request: list[Any], earlier: list[Any]) -> bool:
    """Return whether a request begins with an earlier one. The id of codex's own instructions is the session's."""
    first, instructions = dict(request[0]), dict(earlier[0])
    if first.get("role") == instructions.get("role") == "developer":
        first.pop("id")
        instructions.pop("id")
    return [first, *request[1 : len(earlier)]] == [instructions, *earlier[1:]]


def files_below(folder: Path) -> dict[Path, tuple[bytes, int]]:
    """Return every session file with its bytes and the time of its last change."""
    files = (file for file in folder.rglob("*.jsonl") if {"projects", "sessions"} & set(file.parts))
    return {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in files}


# Qwen Code continues a copy in test_import_native.py, too.
@clis("claude", "codex", rarely=["qwen"])
def test_a_fork_continues_a_copy_and_both_conversations_remember_and_pay_on_their_own(cli: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path, cli)

    def answer(text: str = "", **others: Any) -> Reply:
        return Reply(text=text, input_tokens=100, cached_tokens=0, output_tokens=10, **others)

    async def converse() -> tuple[str, str, dict[str, list[Any]]]:
        asked: dict[str, list[Any]] = {}
        reading = answer(tool_calls=(scene.read_secret(),))
        original, asked["original"] = await scene.ask(None, "Read secret.txt.", reading, answer("I have read it."))
        fork = scene.fork(original)
        file, before = scene.session_file, scene.session_file.read_bytes()
        _, asked["fork"] = await scene.ask(fork, "In the fork: what did it say?", answer("I remember."))
        assert file.read_bytes() == before, "the session of the other conversation is only read"
        _, asked["fork again"] = await scene.ask(fork, "In the fork: and again?", answer("Still."))
        assert file.read_bytes() == before
        _, asked["original again"] = await scene.ask(original, "In the original: what now?", answer("Mine."))
        return original, fork, asked

    original, fork, asked = asyncio.run(converse())

    assert scene.origins(fork) == ["forked", "resumed"]
    assert scene.origins(original) == ["new", "resumed"]
    (own,) = set(scene.sessions(fork))
    assert set(scene.sessions(original)) == {scene.uses(fork)[0].id}
    assert own not in scene.sessions(original)
    assert scene.uses(fork)[1].id == own
    assert scene.used(fork) == [(100, 10)] * 2
    assert scene.used(original) == [(200, 20), (100, 10)]
    for name in ("fork", "original again"):
        assert SECRET in text_of(asked[name])
        if cli != "qwen":
            assert begins_with(asked[name], asked["original"])
        news = text_of(asked[name][len(asked["original"]) :])
        assert "Read secret.txt." not in news
    if cli != "qwen":
        assert asked["fork again"][: len(asked["fork"])] == asked["fork"]
    assert "In the fork" not in text_of(asked["original again"])
    assert text_of(asked["fork again"]).count("In the fork: what did it say?") == 1


@clis("claude", rarely=["codex", "qwen"])
def test_an_agent_whose_session_is_not_as_it_was_there_is_rebuilt(cli: str, tmp_path: Path) -> None:
    """Either the conversation went on before the fork did, or it was forked before the agent's last turn."""
    scene = Scene(tmp_path, cli)

    async def converse() -> dict[str, list[Any]]:
        original, _ = await scene.ask(None, "The colour is blue.", Reply(text="Noted: blue."))
        overtaken = scene.fork(original)
        await scene.ask(original, "The colour is red.", Reply(text="Noted: red."))
        earlier = scene.fork(original, 2)
        before = files_below(scene.home)
        asked = dict([await scene.ask(fork, "Which colour?", Reply(text="Blue.")) for fork in (overtaken, earlier)])
        after = files_below(scene.home)
        assert {file: after[file] for file in before} == before
        return asked

    for fork, asked in asyncio.run(converse()).items():
        (use,) = scene.uses(fork)
        assert (use.origin, use.reason) == ("rebuilt", "its session was continued elsewhere")
        assert text_of(asked).count("The colour is blue.") == 1
        assert "The colour is red." not in text_of(asked)


@clis("claude", rarely=["codex", "qwen"])
def test_an_earlier_fork_continues_a_copy_of_a_session_that_the_agent_has_left_since(cli: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path, cli)

    async def converse() -> tuple[str, list[Any], list[Any]]:
        original, first = await scene.ask(None, "The colour is blue.", Reply(text="Noted: blue."))
        async with scene.talking(original) as (conversation, models):
            await conversation.forget("agent", by="kim")
            models.script(Reply(text="Noted: red."))
            await said(conversation, "The colour is red.")
        fork = scene.fork(original, 2)
        _, asked = await scene.ask(fork, "Which colour?", Reply(text="Blue."))
        return fork, first, asked

    fork, first, asked = asyncio.run(converse())

    assert scene.origins(fork) == ["forked"]
    if cli != "qwen":
        assert begins_with(asked, first)
    assert "The colour is red." not in text_of(asked)
