"""A stage: a folder with a team file whose agents play scripts, and a database for their conversations."""

import asyncio
import json
import os
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from bullpen.app import open_team
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import ConversationEvent
from bullpen.testing.played import PROCESS_OPTION
from bullpen.testing.stage import AGENT, write_program, write_scripts

Script = list[dict[str, Any]]
HANG: Script = [{"say": "half of it"}, {"hang": True}]
GO: dict[str, Any] = {"wait_for": "go"}
"""A step that takes until the stage says go."""
FAIL: Script = [{"say": "half of it"}, {"stderr": "no such luck\n"}, {"exit": 3}]


class Stage:
    """Sets a team up, opens its conversations, and shows what each agent was given."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.db = folder / "data" / "conversations.db"
        self.settings: dict[str, Any] = {"hand_over_note": False}
        self.defaults: dict[str, Any] = {}
        self.limits: dict[str, Any] = {}
        self.summaries: dict[str, Any] = {}
        self.members: dict[str, dict[str, Any]] = {}
        self.checks: list[dict[str, Any]] = []

    def person(self, name: str, **keys: Any) -> None:
        self.members[name] = {"name": name, **keys}

    def agent(self, name: str, *turns: str | Script, **keys: Any) -> None:
        """Add an agent that plays these turns, and the last one again; a text is a turn that says it."""
        folder = self._folder(name, turns or (f"I am {name}.",))
        runs = {"arguments": [f"--turns={folder}"]} if keys.get("agent") else {"command": self._command(folder)}
        self.members[name] = {"name": name, **runs, **keys}

    def process(self, name: str) -> None:
        """Let an agent play in a process of its own even if its script needs none."""
        member = self.members[name]
        runs = "arguments" if "arguments" in member else "command"
        member[runs] = [*member[runs], PROCESS_OPTION]

    def go(self) -> None:
        """Let all go on who wait for that."""
        (self.folder / "go").touch()

    def _folder(self, name: str, turns: Sequence[str | Script]) -> Path:
        """Write the scripts of an agent's turns into its folder, and return that."""
        folder = self.folder / "agents" / name
        write_scripts(folder, [turn if isinstance(turn, list) else [{"say": turn}] for turn in turns])
        return folder

    def put_claude_on_the_path(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let members with agent = "claude" play their scripts in the stream of that CLI."""
        self.put_on_the_path("claude", monkeypatch)

    def put_on_the_path(self, cli: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let members with this agent type play their scripts in the stream of that CLI."""
        program = self.folder / "bin" / cli
        program.parent.mkdir(exist_ok=True)
        write_program(program, cli)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    def people_and_agents(self, people: str, agents: str) -> None:
        """Add people and agents by name: "kim lee", "a b c"."""
        for name in people.split():
            self.person(name)
        for name in agents.split():
            self.agent(name)

    def let_all_edit(self) -> None:
        """Let every agent edit the same folder, so that turns of different messages begin one after the other."""
        for member in self.members.values():
            if "command" in member or "agent" in member:
                member["permissions"] = "edit"

    @property
    def path(self) -> Path:
        return self.folder / "team.toml"

    def write(self) -> Path:
        lead = {"lead": "a"} if "a" in self.members else {}
        lines = [_line(key, value) for key, value in {**lead, **self.settings}.items()]
        lines += ["[defaults]", *(_line(key, value) for key, value in self.defaults.items())]
        lines += ["[limits]", *(_line(key, value) for key, value in self.limits.items())]
        lines += ["[summaries]", *(_line(key, value) for key, value in self.summaries.items())]
        for member in self.members.values():
            lines += ["[[member]]", *(_line(key, value) for key, value in member.items())]
        for check in self.checks:
            lines += ["[[check]]", *(_line(key, value) for key, value in check.items())]
        self.path.write_text("\n".join(lines), encoding="utf-8")
        return self.path

    def open(self, resume: str | None = None) -> AbstractAsyncContextManager[Conversation]:
        return open_team(self.write(), resume=resume, db=self.db)

    def prompts(self, name: str) -> list[str]:
        """Return what an agent was given, turn by turn."""
        folder = self.folder / "agents" / name
        numbers = sorted(int(path.name.partition("-")[2]) for path in folder.glob("prompt-*"))
        return [(folder / f"prompt-{number}").read_text(encoding="utf-8") for number in numbers]

    def prompt(self, name: str) -> str:
        """Return what an agent was given last."""
        return self.prompts(name)[-1]

    def _command(self, folder: Path) -> list[str]:
        return [*AGENT, "--as", "text", "--turns", str(folder)]


async def said(conversation: Conversation) -> list[str]:
    """Return every message as "speaker: words"."""
    return [
        f"{stored.message.speaker.role_id}: {stored.message.content}"
        for stored in await conversation.messages(limit=99)
    ]


async def tell(conversation: Conversation, text: str, **keys: Any) -> list[str]:
    """Say something, wait until all is quiet, and return everything said by now."""
    await conversation.say(text, **keys)
    await conversation.until_quiet()
    return await said(conversation)


async def until_at_work(conversation: Conversation, *names: str) -> None:
    """Wait until these agents have said something that is not their last word."""
    while not all(any(r.turn.member == name and r.text for r in conversation.running.values()) for name in names):
        await asyncio.sleep(0.005)


async def until_said(conversation: Conversation, text: str) -> None:
    """Wait until a running turn has said something."""
    while not any(text in running.text for running in conversation.running.values()):
        await asyncio.sleep(0.01)


def events_so_far(conversation: Conversation, kind: type[Any] | None = None) -> list[Any]:
    """Return all the news since the conversation was opened, or those of one kind."""
    everything: list[ConversationEvent] = [numbered.event for numbered in conversation._journal.broadcast._recent]
    return [news for news in everything if kind is None or isinstance(news, kind)]


def waiting(conversation: Conversation) -> list[str]:
    return [turn.member for turn in conversation.waiting]


def _line(key: str, value: Any) -> str:
    if isinstance(value, dict):
        return f"{key} = {{ {', '.join(_line(name, one) for name, one in value.items())} }}"
    return f"{key} = {json.dumps(value, ensure_ascii=False)}"
