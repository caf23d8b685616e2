"""Forks of conversations, on the genuine CLIs: what their models are asked, and what stays as it was."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.real_cli.test_memory import SECRET, SPECS, Scene, every_cli, history, said, text_of

from bullpen.app import open_team
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.member_agent import Extra
from bullpen.exchange.forking import fork_conversation
from bullpen.memory import SessionUse
from bullpen.rehearsal import SETUPS
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.models import ModelServer, Reply


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "data"))


class Forks(Scene):
    """The same team, in several conversations of one database."""

    @asynccontextmanager
    async def talking_in(self, conversation_id: str | None) -> AsyncIterator[tuple[Conversation, ModelServer]]:
        async with ModelServer() as models:
            settings = SETUPS[SPECS[self.cli]].settings(models.base_url, self.folder / "home")
            arguments = [argument for argument in settings.arguments if argument not in ("-m", "gpt-5.5")]
            extra = {"agent": Extra(env={**settings.env, "IS_SANDBOX": "1"}, arguments=tuple(arguments))}
            team, db = self.project / "team.toml", self.folder / "c.db"
            async with open_team(team, db=db, extra=extra, resume=conversation_id) as conversation:
                yield conversation, models

    async def ask(self, conversation_id: str | None, question: str, *replies: Reply) -> tuple[str, list[Any]]:
        """Return the id of the conversation, and what the model was asked last."""
        async with self.talking_in(conversation_id) as (conversation, models):
            models.script(*replies)
            assert await said(conversation, question) == replies[-1].text
            return conversation.id, history(models.requests[-1])

    def fork(self, conversation_id: str, at: int | None = None) -> str:
        with SqliteStore(self.folder / "c.db") as store:
            return fork_conversation(store, conversation_id, at).id

    def uses_in(self, conversation_id: str) -> list[SessionUse]:
        """Return how each of the agent's turns got its session."""
        with SqliteStore(self.folder / "c.db") as store:
            records = [store.record(conversation_id, turn.id) for turn in store.turns(conversation_id)]
        return [record.report.session for record in records if record is not None and record.report.session]

    def sessions(self, conversation_id: str) -> list[str]:
        """Return the session that each of the agent's turns left."""
        with SqliteStore(self.folder / "c.db") as store:
            return [left.memory.session_id for left in store.memories(conversation_id)]


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


@every_cli
def test_a_fork_continues_a_copy_and_both_conversations_remember_on_their_own(cli: str, tmp_path: Path) -> None:
    scene = Forks(tmp_path, cli)

    async def converse() -> tuple[str, str, dict[str, list[Any]]]:
        asked: dict[str, list[Any]] = {}
        reading = Reply(tool_calls=(scene.read_secret(),))
        original, asked["original"] = await scene.ask(None, "Read secret.txt.", reading, Reply(text="I have read it."))
        fork = scene.fork(original)
        file, before = scene.session_file, scene.session_file.read_bytes()
        _, asked["fork"] = await scene.ask(fork, "In the fork: what did it say?", Reply(text="I remember."))
        assert file.read_bytes() == before, "the session of the other conversation is only read"
        _, asked["fork again"] = await scene.ask(fork, "In the fork: and again?", Reply(text="Still."))
        assert file.read_bytes() == before
        _, asked["original again"] = await scene.ask(original, "In the original: what now?", Reply(text="Mine."))
        return original, fork, asked

    original, fork, asked = asyncio.run(converse())

    assert [use.origin for use in scene.uses_in(fork)] == ["forked", "resumed"]
    assert [use.origin for use in scene.uses_in(original)] == ["new", "resumed"]
    (own,) = set(scene.sessions(fork))
    assert set(scene.sessions(original)) == {scene.uses_in(fork)[0].id}
    assert own not in scene.sessions(original)
    assert scene.uses_in(fork)[1].id == own
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


@every_cli
@pytest.mark.parametrize("when", ["earlier", "later"])
def test_an_agent_whose_session_is_not_as_it_was_there_is_rebuilt(cli: str, when: str, tmp_path: Path) -> None:
    """Either it is forked before the agent's last turn, or the conversation went on before the fork did."""
    scene = Forks(tmp_path, cli)

    async def converse() -> tuple[str, list[Any]]:
        original, _ = await scene.ask(None, "The colour is blue.", Reply(text="Noted: blue."))
        fork = scene.fork(original) if when == "later" else ""
        await scene.ask(original, "The colour is red.", Reply(text="Noted: red."))
        fork = fork or scene.fork(original, 2)
        before = files_below(scene.folder / "home")
        _, asked = await scene.ask(fork, "Which colour?", Reply(text="Blue."))
        after = files_below(scene.folder / "home")
        assert {file: after[file] for file in before} == before
        return fork, asked

    fork, asked = asyncio.run(converse())

    (use,) = scene.uses_in(fork)
    assert (use.origin, use.reason) == ("rebuilt", "its session was continued elsewhere")
    assert text_of(asked).count("The colour is blue.") == 1
    assert "The colour is red." not in text_of(asked)


@every_cli
def test_an_earlier_fork_continues_a_copy_of_a_session_that_the_agent_has_left_since(cli: str, tmp_path: Path) -> None:
    scene = Forks(tmp_path, cli)

    async def converse() -> tuple[str, list[Any], list[Any]]:
        original, first = await scene.ask(None, "The colour is blue.", Reply(text="Noted: blue."))
        async with scene.talking_in(original) as (conversation, models):
            await conversation.forget("agent", by="kim")
            models.script(Reply(text="Noted: red."))
            await said(conversation, "The colour is red.")
        fork = scene.fork(original, 2)
        _, asked = await scene.ask(fork, "Which colour?", Reply(text="Blue."))
        return fork, first, asked

    fork, first, asked = asyncio.run(converse())

    assert [use.origin for use in scene.uses_in(fork)] == ["forked"]
    if cli != "qwen":
        assert begins_with(asked, first)
    assert "The colour is red." not in text_of(asked)


@every_cli
def test_the_first_turn_of_a_fork_uses_only_what_it_used_itself(cli: str, tmp_path: Path) -> None:
    scene = Forks(tmp_path, cli)

    def reply(text: str) -> Reply:
        return Reply(text=text, input_tokens=100, cached_tokens=0, output_tokens=10)

    async def converse() -> tuple[str, str]:
        original, _ = await scene.ask(None, "One.", reply("1"))
        await scene.ask(original, "Two.", reply("2"))
        fork = scene.fork(original)
        await scene.ask(fork, "Three.", reply("3"))
        await scene.ask(fork, "Four.", reply("4"))
        return original, fork

    both = asyncio.run(converse())

    with SqliteStore(tmp_path / "c.db") as store:
        turns = [turn for conversation_id in both for turn in store.turns(conversation_id)]
    used = [(turn.usage.input_tokens, turn.usage.output_tokens) for turn in turns if turn.usage]
    assert len(used) == 4
    assert len(set(used)) == 1, used
