"""Rehearsal: every agent of a team takes one turn with its real CLI and a scripted local model. No tokens are used.

It checks that the program starts in its folder with its flags, the prompt arrives intact, and its permissions hold.
"""

import asyncio
import os
import secrets
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bullpen.agents.environment import matches
from bullpen.agents.registry import known_agents
from bullpen.app import open_team
from bullpen.approvals import Answer, ApprovalRecord
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.member_agent import Extra, MemberAgent, agent_for
from bullpen.errors import AnsweredAlready, NothingAsked
from bullpen.store.base import Store, Turn, TurnRecord
from bullpen.team.file import LoadedTeam
from bullpen.testing.models import ModelServer, Reply, ToolCall
from bullpen.testing.settings import SETTINGS, CliSettings

ANSWER = "This is a rehearsal, and I am here."


class Setup(Struct, frozen=True, kw_only=True):
    """How to rehearse one CLI: settings that make it use our models, and the tool call that writes a file."""

    settings: Callable[[str, Path], CliSettings]
    write: Callable[[Path], ToolCall]
    run: Callable[[str], ToolCall]
    """Runs a command."""


SETUPS: Mapping[str, Setup] = {
    "claude-code": Setup(
        settings=SETTINGS["claude"],
        write=lambda file: ToolCall(name="Write", arguments={"file_path": str(file), "content": "rehearsed"}),
        run=lambda command: ToolCall(name="Bash", arguments={"command": command, "description": "x"}),
    ),
    "openai-codex": Setup(
        settings=SETTINGS["codex"],
        write=lambda file: ToolCall(name="exec_command", arguments={"cmd": f"echo rehearsed > {file.name}"}),
        run=lambda command: ToolCall(name="exec_command", arguments={"cmd": command}),
    ),
    "google-gemini": Setup(
        settings=SETTINGS["gemini"],
        write=lambda file: ToolCall(name="write_file", arguments={"file_path": str(file), "content": "rehearsed"}),
        run=lambda command: ToolCall(name="run_shell_command", arguments={"command": command, "description": "x"}),
    ),
    "qwen-code": Setup(
        settings=SETTINGS["qwen"],
        write=lambda file: ToolCall(name="write_file", arguments={"file_path": str(file), "content": "rehearsed"}),
        run=lambda command: ToolCall(
            name="run_shell_command", arguments={"command": command, "description": "x", "is_background": False}
        ),
    ),
    "pi": Setup(
        settings=SETTINGS["pi"],
        write=lambda file: ToolCall(name="write", arguments={"path": str(file), "content": "rehearsed"}),
        run=lambda command: ToolCall(name="bash", arguments={"command": command}),
    ),
    "github-copilot": Setup(
        settings=SETTINGS["copilot"],
        write=lambda file: ToolCall(name="create", arguments={"path": str(file), "file_text": "rehearsed"}),
        run=lambda command: ToolCall(name="bash", arguments={"command": command, "description": "x"}),
    ),
    "mistral-vibe": Setup(
        settings=SETTINGS["vibe"],
        write=lambda file: ToolCall(name="write_file", arguments={"path": str(file), "content": "rehearsed"}),
        run=lambda command: ToolCall(name="bash", arguments={"command": command}),
    ),
    "opencode": Setup(
        settings=SETTINGS["opencode"],
        write=lambda file: ToolCall(name="write", arguments={"filePath": str(file), "content": "rehearsed"}),
        run=lambda command: ToolCall(name="bash", arguments={"command": command, "description": "x"}),
    ),
}


class Check(Struct, frozen=True, kw_only=True):
    """The result of one check."""

    passed: bool
    text: str


class Rehearsed(Struct, frozen=True, kw_only=True):
    """The result for one agent; without checks it could not be rehearsed, and `remark` says why."""

    member: str
    agent: str
    checks: tuple[Check, ...] = ()
    remark: str = ""
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)


async def rehearse(loaded: LoadedTeam) -> AsyncIterator[Rehearsed]:
    """Run one turn of every agent of the team, and yield each result as soon as it is known."""
    loaded = _turns_alone(loaded)
    agents = [agent_for(agent, loaded.root) for agent in loaded.team.agents]
    with tempfile.TemporaryDirectory(prefix="bullpen-rehearsal-") as folder, _without_our_keys():
        async with AsyncExitStack() as stack:
            models = {agent.member.name: await stack.enter_async_context(ModelServer()) for agent in agents}
            extras = {
                agent.member.name: _extra(agent, models[agent.member.name], Path(folder, str(number)))
                for number, agent in enumerate(agents)
                if agent.spec.name in SETUPS
            }
            opened = open_team(loaded, db=Path(folder, "rehearsal.db"), extra=extras)
            conversation = await stack.enter_async_context(opened)
            for agent in agents:
                yield await _rehearsed(conversation, agent, models[agent.member.name])


def _turns_alone(loaded: LoadedTeam) -> LoadedTeam:
    """Return the team without what follows a turn: checks and reviewers ask again, worktrees must be removed."""
    alone: dict[str, Any] = {"workspace": "shared", "stand_in": (), "reviews": "", "until": None}
    members = tuple(replace(member, **alone) for member in loaded.team.members)
    return replace(loaded, team=replace(loaded.team, members=members, checks=()))


def _extra(agent: MemberAgent, models: ModelServer, home: Path) -> Extra:
    settings = SETUPS[agent.spec.name].settings(models.base_url, home)
    return Extra(env=settings.env, arguments=settings.arguments)


async def _rehearsed(conversation: Conversation, own: MemberAgent, models: ModelServer) -> Rehearsed:
    member, agent = own.member.name, own.spec.name
    if agent not in SETUPS:
        return Rehearsed(member=member, agent=agent, remark="Not run: it cannot use a scripted model.")
    file = own.folder / f"bullpen-rehearsal-{secrets.token_hex(4)}.txt"
    is_asking = own.member.permissions == "ask"
    call = SETUPS[agent].run(f"touch {file.name}") if is_asking else SETUPS[agent].write(file)
    models.script(Reply(tool_calls=(call,)), Reply(text=ANSWER))
    person = conversation.team.people[0].name
    was_there: list[bool] = []
    answering = asyncio.create_task(_say_yes(conversation, person, file, was_there))
    try:
        await conversation.say(f"[NEXT: {member}] This is a rehearsal: please say that you are here.", sender=person)
        await conversation.until_quiet()
        has_written = await asyncio.to_thread(file.exists)
    finally:
        answering.cancel()
        await asyncio.to_thread(file.unlink, missing_ok=True)
    turn, record = await conversation.read(_last_turn)
    if conversation.undecided:
        await conversation.skip()
    checks = tuple(_checks(own, turn, record, models, has_written))
    if is_asking and turn.failure is None:
        asked = await conversation.read(_asked_in_last_turn)
        checks = (*checks[:-1], _check_of_questions(asked, has_written=has_written, was_early=any(was_there)))
    seconds = ((turn.ended_at or 0) - (turn.started_at or 0)) / 1000
    return Rehearsed(member=member, agent=agent, checks=checks, seconds=seconds)


async def _say_yes(conversation: Conversation, person: str, file: Path, was_there: list[bool]) -> None:
    """Answer what is asked with yes, after a look whether it was done already."""
    while True:
        for turn_id, question in list(conversation.approvals.open):
            was_there.append(await asyncio.to_thread(file.exists))
            with suppress(AnsweredAlready, NothingAsked):
                await conversation.answer(turn_id, question, Answer(verdict="yes"), by=person)
        await asyncio.sleep(0.02)


def _asked_in_last_turn(store: Store, conversation_id: str) -> list[ApprovalRecord]:
    return store.approvals(conversation_id, turn_ids=[store.turns(conversation_id)[-1].id])


def _check_of_questions(records: Sequence[ApprovalRecord], *, has_written: bool, was_early: bool) -> Check:
    """Return whether it asked before it ran a command, and did what it was answered."""
    answers = [record.answer for record in records if record.answer is not None]
    is_agreed = any(answer.verdict == "yes" for answer in answers)
    if not answers:
        return Check(passed=False, text="it did not ask before it ran a command, and its permissions are ask")
    if was_early:
        return Check(passed=False, text="it ran a command before it was answered, and its permissions are ask")
    did = "ran it after the yes" if has_written else "did not run it"
    return Check(passed=has_written == is_agreed, text=f"it asked before it ran a command, and {did}")


def _last_turn(store: Store, conversation_id: str) -> tuple[Turn, TurnRecord]:
    turn = store.turns(conversation_id)[-1]
    record = store.record(conversation_id, turn.id)
    if record is None:
        raise AssertionError("a turn that has ended has a record")
    return turn, record


def _checks(
    own: MemberAgent, turn: Turn, record: TurnRecord, models: ModelServer, has_written: bool
) -> Iterator[Check]:
    if turn.failure is not None:
        yield Check(passed=False, text=turn.failure.explanation)
        return
    yield Check(passed=True, text=f"it answered in {own.folder}")
    given = [text for text in (record.prompt, record.system) if text]
    texts = [text for request in models.requests for text in request.texts]
    size = sum(len(text.encode()) for text in given)
    arrived = all(any(part.strip() in text for text in texts) for part in given)
    yield Check(passed=arrived, text=f"its prompt of {size:,} bytes arrived {'intact' if arrived else 'CHANGED'}")
    may_write = own.member.permissions != "read-only"
    wrote = "it wrote a file" if has_written else "it could not write a file"
    yield Check(passed=has_written == may_write, text=f"{wrote}, and its permissions are {own.member.permissions}")


@contextmanager
def _without_our_keys() -> Iterator[None]:
    """Hide every environment variable that could give the CLIs a real model or a real key."""
    patterns: Sequence[str] = [name for spec in known_agents().values() for name in spec.environment]
    hidden = {name: value for name, value in os.environ.items() if matches(name, tuple(patterns))}
    for name in hidden:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden)
