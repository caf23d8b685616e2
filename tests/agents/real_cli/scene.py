"""A conversation with one genuine CLI and two programs that only say something, and what the CLI's model is asked."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bullpen.app import open_team
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.member_agent import Extra
from bullpen.exchange.forking import fork_conversation
from bullpen.memory import SessionUse
from bullpen.rehearsal import SETUPS
from bullpen.store.base import Turn
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.models import ModelRequest, ModelServer, Reply, ToolCall

SPECS = {"claude": "claude-code", "codex": "openai-codex", "qwen": "qwen-code", "pi": "pi", "copilot": "github-copilot"}
MODELS = {"claude": "claude-sonnet-5", "codex": "gpt-5.5", "qwen": "qwen3-coder-plus", "pi": "m1", "copilot": "m1"}
every_cli = pytest.mark.parametrize("cli", ["claude", "codex", "qwen"])
SECRET = "SECRET-4711 😀 密"
SESSION_FILES = {
    "claude": ".claude/projects/*/*.jsonl",
    "codex": ".codex/sessions/**/*.jsonl",
    "qwen": ".qwen/projects/*/chats/*.jsonl",
    "pi": ".pi/agent/sessions/*/*.jsonl",
    "copilot": ".copilot/session-state/*/events.jsonl",
}
WAITING_SECONDS = 60


class Scene:
    """A team of one genuine CLI and two programs, with its conversations in one database."""

    def __init__(self, folder: Path, cli: str, db: Path | None = None) -> None:
        self.cli = cli
        self.home = folder / "home"
        self.project = folder / "project"
        self.db = db or folder / "c.db"
        self.project.mkdir(exist_ok=True)
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
    async def talking(self, conversation_id: str | None = None) -> AsyncIterator[tuple[Conversation, ModelServer]]:
        """Open a conversation, a new one if none is named, with the model that its CLI asks."""
        async with ModelServer() as models:
            settings = SETUPS[SPECS[self.cli]].settings(models.base_url, self.home)
            env = {**settings.env, "IS_SANDBOX": "1"}
            extra = {"agent": Extra(env=env, arguments=settings.arguments)}
            team = self.project / "team.toml"
            async with open_team(team, db=self.db, extra=extra, resume=conversation_id) as conversation:
                yield conversation, models

    async def ask(self, conversation_id: str | None, question: str, *replies: Reply) -> tuple[str, list[Any]]:
        """Return the id of the conversation, and what the model was asked last."""
        async with self.talking(conversation_id) as (conversation, models):
            models.script(*replies)
            assert await said(conversation, question) == "\n\n".join(reply.text for reply in replies if reply.text)
            return conversation.id, history(models.requests[-1])

    def fork(self, conversation_id: str, at: int | None = None) -> str:
        with SqliteStore(self.db) as store:
            return fork_conversation(store, conversation_id, at).id

    @property
    def conversation_id(self) -> str:
        """The only conversation."""
        with SqliteStore(self.db) as store:
            (conversation,) = store.conversations()
        return conversation.id

    def turns(self, conversation_id: str | None = None) -> list[Turn]:
        """Return the agent's turns; of the only conversation if none is named."""
        with SqliteStore(self.db) as store:
            turns = store.turns(conversation_id or self.conversation_id)
        return [turn for turn in turns if turn.member == "agent"]

    def uses(self, conversation_id: str | None = None) -> list[SessionUse]:
        """Return how each of the agent's turns got its session."""
        conversation_id = conversation_id or self.conversation_id
        turns = self.turns(conversation_id)
        with SqliteStore(self.db) as store:
            records = [store.record(conversation_id, turn.id) for turn in turns]
        return [record.report.session for record in records if record is not None and record.report.session]

    def origins(self, conversation_id: str | None = None) -> list[str]:
        return [use.origin for use in self.uses(conversation_id)]

    def used(self, conversation_id: str | None = None) -> list[tuple[int, int]]:
        """Return how many tokens went into each of the agent's turns, and came out."""
        usages = [turn.usage for turn in self.turns(conversation_id) if turn.usage]
        return [(usage.input_tokens, usage.output_tokens) for usage in usages]

    def sessions(self, conversation_id: str) -> list[str]:
        """Return the session that each of the agent's turns left."""
        with SqliteStore(self.db) as store:
            return [left.memory.session_id for left in store.memories(conversation_id)]

    @property
    def session_file(self) -> Path:
        """The session file that was written last."""
        return max(self.home.glob(SESSION_FILES[self.cli]), key=lambda file: file.stat().st_mtime_ns)

    def read_secret(self) -> ToolCall:
        return read_call(self.cli, self.project / "secret.txt")

    def slow(self) -> ToolCall:
        command = "touch began; sleep 300"
        match self.cli:
            case "claude":
                return ToolCall(name="Bash", arguments={"command": command, "description": "x"})
            case "codex":
                return ToolCall(name="exec_command", arguments={"cmd": command})
            case _:
                return ToolCall(name="run_shell_command", arguments={"command": command, "is_background": False})


def read_call(cli: str, file: Path) -> ToolCall:
    """Return the call with which a CLI's model reads a file of the project."""
    match cli:
        case "claude":
            return ToolCall(name="Read", arguments={"file_path": str(file)})
        case "codex":
            return ToolCall(name="exec_command", arguments={"cmd": f"cat {file.name}"})
        case "pi":
            return ToolCall(name="read", arguments={"path": str(file)})
        case "copilot":
            return ToolCall(name="view", arguments={"path": str(file)})
        case _:
            return ToolCall(name="read_file", arguments={"file_path": str(file)})


async def said(conversation: Conversation, text: str) -> str:
    """Say something, and return what was answered last."""
    await conversation.say(text)
    await conversation.until_quiet()
    assert not conversation.undecided, [ended.sentence for ended in conversation.undecided]
    return (await conversation.messages())[-1].message.content


def history(request: ModelRequest) -> list[Any]:
    """Return the messages of a request, without what only says where a cache ends."""
    messages = request.body.get("input") or request.body["messages"]
    plain = json.loads(json.dumps(messages))
    for message in plain:
        # What a CLI adds for its vendor, and spaces in what a model wrote as JSON, are nothing that was said.
        message.pop("__copilotMessageSource", None)
        message.pop("refusal", None)
        for call in message.get("tool_calls") or ():
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
        content = message.get("content")
        if isinstance(content, list):
            for block in content:
                block.pop("cache_control", None)
            if [block.get("type") for block in content] == ["text"]:
                message["content"] = content[0]["text"]
    return list(plain)


def text_of(messages: list[Any]) -> str:
    return json.dumps(messages, ensure_ascii=False)


async def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(WAITING_SECONDS):
        while not is_so():
            await asyncio.sleep(0.05)
