"""Agents that remember, on the genuine CLIs: what their models are asked, and what becomes of their sessions."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bullpen.agents.session_lock import SessionLock
from bullpen.app import open_team
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.member_agent import Extra
from bullpen.memory import SessionUse
from bullpen.rehearsal import SETUPS
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.models import ModelRequest, ModelServer, Reply, ToolCall

SPECS = {"claude": "claude-code", "codex": "openai-codex", "qwen": "qwen-code"}
MODELS = {"claude": "claude-sonnet-5", "codex": "gpt-5.5", "qwen": "qwen3-coder-plus"}
every_cli = pytest.mark.parametrize("cli", list(SPECS))
SECRET = "SECRET-4711 😀 密"


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "data"))


class Scene:
    """A team of one genuine CLI and two programs that only say something, with the requests of the CLI's model."""

    def __init__(self, folder: Path, cli: str) -> None:
        self.folder, self.cli = folder, cli
        self.project = folder / "project"
        self.project.mkdir()
        (self.project / "secret.txt").write_text(SECRET, encoding="utf-8")
        self.write_team()

    def write_team(self, *more: str, permissions: str = "full", model: str = "") -> None:
        lines = [
            'name = "memory"\nlead = "agent"\n[[member]]\nname = "kim"\n',
            f'[[member]]\nname = "agent"\nagent = "{self.cli}"\npermissions = "{permissions}"',
            f'model = "{model or MODELS[self.cli]}"',
            *more,
            '\n[[member]]\nname = "ann"\ncommand = ["echo", "Ann agrees."]',
            '\n[[member]]\nname = "bob"\ncommand = ["echo", "Bob disagrees."]',
        ]
        (self.project / "team.toml").write_text("\n".join(lines), encoding="utf-8")

    @asynccontextmanager
    async def talking(self) -> AsyncIterator[tuple[Conversation, ModelServer]]:
        async with ModelServer() as models:
            settings = SETUPS[SPECS[self.cli]].settings(models.base_url, self.folder / "home")
            env = {**settings.env, "IS_SANDBOX": "1"}
            arguments = [argument for argument in settings.arguments if argument not in ("-m", "gpt-5.5")]
            extra = {"agent": Extra(env=env, arguments=tuple(arguments))}
            last = self.conversation_id if (self.folder / "c.db").exists() else None
            async with open_team(
                self.project / "team.toml", db=self.folder / "c.db", extra=extra, resume=last
            ) as conversation:
                yield conversation, models

    @property
    def conversation_id(self) -> str:
        with SqliteStore(self.folder / "c.db") as store:
            (conversation,) = store.conversations()
        return conversation.id

    def uses(self) -> list[SessionUse | None]:
        """Return how each of the agent's turns got its session."""
        with SqliteStore(self.folder / "c.db") as store:
            (conversation,) = store.conversations()
            turns = [turn for turn in store.turns(conversation.id) if turn.member == "agent"]
            records = [store.record(conversation.id, turn.id) for turn in turns]
            return [record.report.session for record in records if record is not None]

    @property
    def origins(self) -> list[str]:
        return [use.origin if use else "shared" for use in self.uses()]

    @property
    def session_file(self) -> Path:
        patterns = {"claude": ".claude/projects/*/*.jsonl", "codex": ".codex/sessions/**/*.jsonl"}
        pattern = patterns.get(self.cli, ".qwen/projects/*/chats/*.jsonl")
        return max((self.folder / "home").glob(pattern), key=lambda file: file.stat().st_mtime_ns)

    def read_secret(self) -> ToolCall:
        file = str(self.project / "secret.txt")
        match self.cli:
            case "claude":
                return ToolCall(name="Read", arguments={"file_path": file})
            case "codex":
                return ToolCall(name="exec_command", arguments={"cmd": "cat secret.txt"})
            case _:
                return ToolCall(name="read_file", arguments={"file_path": file})

    def slow(self) -> ToolCall:
        match self.cli:
            case "claude":
                return ToolCall(name="Bash", arguments={"command": "touch began; sleep 300", "description": "x"})
            case "codex":
                return ToolCall(name="exec_command", arguments={"cmd": "touch began; sleep 300"})
            case _:
                arguments = {"command": "touch began; sleep 300", "is_background": False}
                return ToolCall(name="run_shell_command", arguments=arguments)


async def said(conversation: Conversation, text: str) -> str:
    await conversation.say(text)
    await conversation.until_quiet()
    assert not conversation.undecided, [ended.sentence for ended in conversation.undecided]
    return (await conversation.messages())[-1].message.content


def history(request: ModelRequest) -> list[Any]:
    """Return the messages of a request, without what only says where a cache ends."""
    messages = request.body.get("input") or request.body["messages"]
    plain = json.loads(json.dumps(messages))
    for message in plain:
        content = message.get("content")
        if isinstance(content, list):
            for block in content:
                block.pop("cache_control", None)
            if [block.get("type") for block in content] == ["text"]:
                message["content"] = content[0]["text"]
    return list(plain)


def text_of(messages: list[Any]) -> str:
    return json.dumps(messages, ensure_ascii=False)


@every_cli
def test_what_it_read_in_one_turn_is_in_the_next_ones_request(cli: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path, cli)

    async def converse() -> tuple[list[Any], list[Any]]:
        async with scene.talking() as (conversation, models):
            models.script(Reply(tool_calls=(scene.read_secret(),)), Reply(text="I have read it."))
            await said(conversation, "Read secret.txt.")
            first = history(models.requests[-1])
            models.script(Reply(text="I remember."))
            assert await said(conversation, "What did it say?") == "I remember."
            return first, history(models.requests[-1])

    first, second = asyncio.run(converse())

    assert SECRET in text_of(first)
    assert SECRET in text_of(second)
    assert scene.origins == ["new", "resumed"]
    if cli != "qwen":
        assert second[: len(first)] == first
    news = text_of(second[len(first) :])
    assert "What did it say?" in news
    assert "Read secret.txt." not in news


@pytest.mark.parametrize("cli", ["claude", "codex"])
def test_twenty_turns_among_others_each_request_begins_with_the_one_before(cli: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path, cli)

    async def converse() -> list[ModelRequest]:
        async with scene.talking() as (conversation, models):
            for number in range(1, 21):
                models.script(Reply(text=f"answer {number}"))
                await said(conversation, f"[NEXT: ann, bob, agent] question {number}")
            return models.requests

    requests = asyncio.run(converse())

    assert len(requests) == 20
    assert scene.origins == ["new"] + ["resumed"] * 19
    for number, (before, request) in enumerate(pairwise(requests), start=2):
        earlier, now = history(before), history(request)
        assert now[: len(earlier)] == earlier
        news = text_of(now[len(earlier) :])
        for text in (f"question {number}", "Ann agrees.", "Bob disagrees.", f"answer {number - 1}"):
            assert news.count(text) == 1, text
        assert f"question {number - 1}\\n" not in news
        same = {key: before.body[key] for key in before.body if key in ("tools", "system", "instructions", "model")}
        assert same == {key: request.body[key] for key in same}


@every_cli
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

    assert scene.origins == ["new", "resumed", "resumed"]
    if cli != "qwen":
        assert last[: len(first)] == first
    news = text_of(last[len(first) :])
    assert SECRET in text_of(last)
    assert news.count("Do the slow thing.") == 1, "what the cancelled turn was given is given again, once"
    assert "was cancelled before it was done. It had begun to answer: Wait for it." in news
    if cli != "codex":
        assert "touch began; sleep 300" in news, "codex does not tell of a command before it has run for a while"


async def until(is_so: Callable[[], bool]) -> None:
    for _ in range(1200):
        if is_so():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it did not happen")


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


@every_cli
@pytest.mark.parametrize("change", list(REASONS), ids=lambda change: change.__name__[1:])
def test_a_session_that_is_not_as_it_was_left_is_rebuilt(cli: str, change: Change, tmp_path: Path) -> None:
    scene = Scene(tmp_path, cli)

    async def converse() -> tuple[ModelRequest, str]:
        async with scene.talking() as (conversation, models):
            models.script(Reply(text="Noted: blue."))
            await said(conversation, "The colour is blue.")
            change(scene)
            models.script(Reply(text="Blue."))
            answer = await said(conversation, "Which colour?")
            return models.requests[-1], answer

    request, answer = asyncio.run(converse())

    assert answer == "Blue."
    last = scene.uses()[-1]
    assert last is not None
    assert (last.origin, last.reason) == ("rebuilt", REASONS[change])
    prompt = "\n".join(request.texts)
    assert prompt.count("The colour is blue.") == 1, "it is in the new session's first prompt, and in no other"
    assert "Noted: blue." in prompt


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
    assert last is not None
    assert last.origin == "rebuilt"
    assert "No saved session found" in last.reason


@every_cli
def test_permissions_and_instructions_apply_to_the_very_next_turn(cli: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path, cli)

    async def converse(script: Callable[[Conversation, ModelServer], Awaitable[None]]) -> list[ModelRequest]:
        async with scene.talking() as (conversation, models):
            await script(conversation, models)
            return models.requests

    async def first(conversation: Conversation, models: ModelServer) -> None:
        models.script(Reply(text="One."))
        await said(conversation, "First.")

    async def second(conversation: Conversation, models: ModelServer) -> None:
        write = {
            "claude": ToolCall(name="Write", arguments={"file_path": str(scene.project / "made"), "content": "x"}),
            "codex": ToolCall(name="exec_command", arguments={"cmd": "echo x > made"}),
            "qwen": ToolCall(name="write_file", arguments={"file_path": str(scene.project / "made"), "content": "x"}),
        }[cli]
        models.script(Reply(tool_calls=(write,)), Reply(text="Two."))
        await said(conversation, "Second.")

    asyncio.run(converse(first))
    scene.write_team('system_instruction = "You speak like a pirate."', permissions="read-only")
    requests = asyncio.run(converse(second))

    assert scene.origins == ["new", "resumed"]
    assert "You speak like a pirate." in "\n".join(requests[0].texts)
    assert "First." in "\n".join(requests[0].texts)
    assert not (scene.project / "made").exists()


@every_cli
def test_usage_is_that_of_the_turn_alone(cli: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path, cli)

    async def converse() -> None:
        async with scene.talking() as (conversation, models):
            for number in range(3):
                models.script(Reply(text=f"{number}", input_tokens=100, cached_tokens=0, output_tokens=10))
                await said(conversation, f"Question {number}")

    asyncio.run(converse())

    with SqliteStore(tmp_path / "c.db") as store:
        turns = store.turns(store.conversations()[0].id)
    used = [(turn.usage.input_tokens, turn.usage.output_tokens) for turn in turns if turn.usage]
    assert len(used) == 3
    assert len(set(used)) == 1, used


@pytest.mark.parametrize(("cli", "origin"), [("claude", "resumed"), ("codex", "rebuilt"), ("qwen", "resumed")])
def test_another_model_goes_on_only_where_the_cli_can(cli: str, origin: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path, cli)
    other = {"claude": "claude-haiku-5", "codex": "gpt-5.4", "qwen": "qwen3-max"}[cli]

    async def converse(question: str) -> ModelRequest:
        async with scene.talking() as (conversation, models):
            await said(conversation, question)
            return models.requests[-1]

    asyncio.run(converse("The colour is blue."))
    scene.write_team(model=other)
    request = asyncio.run(converse("Which colour?"))

    assert scene.origins == ["new", origin]
    assert "\n".join(request.texts).count("The colour is blue.") == 1
    assert request.model == other


@every_cli
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda end: end.name)
@pytest.mark.parametrize("moment", ["streaming", "in a tool"])
def test_a_cli_that_is_killed_loses_nothing_of_what_it_knew(
    cli: str, end: signal.Signals, moment: str, tmp_path: Path
) -> None:
    scene = Scene(tmp_path, cli)

    async def converse() -> tuple[list[Any], list[Any]]:
        async with scene.talking() as (conversation, models):
            models.script(Reply(tool_calls=(scene.read_secret(),)), Reply(text="I have read it."))
            await said(conversation, "Read secret.txt.")
            first = history(models.requests[-1])
            if moment == "streaming":
                models.script(Reply(text="word " * 500, chunk_characters=5, chunk_delay_seconds=1))
            else:
                models.script(Reply(tool_calls=(scene.slow(),)))
            asked = len(models.requests)
            await conversation.say("Do the slow thing.")
            await until(lambda: len(models.requests) > asked)
            if moment == "in a tool":
                await until(lambda: (scene.project / "began").exists())
            for pid in processes_of(scene):
                os.kill(pid, end)
            await conversation.until_quiet()
            assert [ended.state for ended in conversation.undecided] == ["failed"]
            models.script(Reply(text="SECRET."))
            await conversation.retry()
            await conversation.until_quiet()
            return first, history(models.requests[-1])

    first, last = asyncio.run(converse())

    assert scene.origins == ["new", "resumed", "resumed"]
    if cli != "qwen":
        assert last[: len(first)] == first
    assert SECRET in text_of(last)
    assert text_of(last[len(first) - (cli == "qwen") :]).count("Do the slow thing.") == 1


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


@every_cli
def test_two_turns_at_once_in_one_session_run_apart(cli: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path, cli)

    async def converse() -> list[ModelRequest]:
        async with scene.talking() as (conversation, models):
            models.script(Reply(text="Noted: blue."))
            await said(conversation, "The colour is blue.")
            file = scene.session_file
            before = file.read_bytes()
            (use,) = scene.uses()
            assert use is not None
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

    assert scene.origins == ["new", "rebuilt", "resumed"]
    for request in (other, last):
        assert "\n".join(request.texts).count("The colour is blue.") == 1
    assert "Blue, says the new one." in "\n".join(last.texts)


@pytest.mark.parametrize(
    ("cli", "memory", "answer"),
    [*((cli, "own", f"It said {SECRET}.") for cli in SPECS), ("claude", "shared", "I do not know.")],
)
def test_an_agent_uses_what_it_learned_three_turns_before(cli: str, memory: str, answer: str, tmp_path: Path) -> None:
    """Its model answers from nothing but what it is asked, after the file is gone."""
    scene = Scene(tmp_path, cli)
    scene.write_team(f'memory = "{memory}"')

    def from_memory(request: ModelRequest) -> Reply:
        return Reply(text=f"It said {SECRET}." if SECRET in "\n".join(request.texts) else "I do not know.")

    async def converse() -> str:
        async with scene.talking() as (conversation, models):
            models.script(Reply(tool_calls=(scene.read_secret(),)), Reply(text="I have read it. [NEXT: ann]"))
            await said(conversation, "Read secret.txt, and keep it to yourself.")
            (scene.project / "secret.txt").unlink()
            for name in ("bob", "ann"):
                await said(conversation, f"[NEXT: {name}] What do you think?")
            models.script(from_memory)
            return await said(conversation, "[NEXT: agent] What did the file say?")

    assert asyncio.run(converse()) == answer
