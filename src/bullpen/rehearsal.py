"""Rehearsal: every agent of a team takes one turn with its real CLI and a scripted local model. No tokens are used.

It checks that the program starts in its folder with its flags, the prompt arrives intact, and its permissions hold.
"""

import asyncio
import os
import secrets
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from bullpen.agents.environment import matches
from bullpen.agents.registry import known_agents
from bullpen.app import open_team
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.member_agent import Extra, MemberAgent, agent_for
from bullpen.store.base import Store, Turn, TurnRecord
from bullpen.team.file import LoadedTeam
from bullpen.testing.models import ModelServer, Reply, ToolCall
from bullpen.testing.settings import CliSettings, claude_settings, codex_settings, gemini_settings, qwen_settings

ANSWER = "This is a rehearsal, and I am here."


class Setup(Struct, frozen=True, kw_only=True):
    """How to rehearse one CLI: settings that make it use our models, and the tool call that writes a file."""

    settings: Callable[[str, Path], CliSettings]
    write: Callable[[Path], ToolCall]


SETUPS: Mapping[str, Setup] = {
    "claude-code": Setup(
        settings=claude_settings,
        write=lambda file: ToolCall(name="Write", arguments={"file_path": str(file), "content": "rehearsed"}),
    ),
    "openai-codex": Setup(
        settings=codex_settings,
        write=lambda file: ToolCall(name="exec_command", arguments={"cmd": f"echo rehearsed > {file.name}"}),
    ),
    "google-gemini": Setup(
        settings=gemini_settings,
        write=lambda file: ToolCall(name="write_file", arguments={"file_path": str(file), "content": "rehearsed"}),
    ),
    "qwen-code": Setup(
        settings=qwen_settings,
        write=lambda file: ToolCall(name="write_file", arguments={"file_path": str(file), "content": "rehearsed"}),
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
    loaded = _in_the_shared_folder(loaded)
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


def _in_the_shared_folder(loaded: LoadedTeam) -> LoadedTeam:
    """Return the team without worktrees: what is rehearsed is the same in them, and they would have to be removed."""
    members = tuple(replace(member, workspace="shared") for member in loaded.team.members)
    return replace(loaded, team=replace(loaded.team, members=members))


def _extra(agent: MemberAgent, models: ModelServer, home: Path) -> Extra:
    settings = SETUPS[agent.spec.name].settings(models.base_url, home)
    return Extra(env=settings.env, arguments=settings.arguments)


async def _rehearsed(conversation: Conversation, own: MemberAgent, models: ModelServer) -> Rehearsed:
    member, agent = own.member.name, own.spec.name
    if agent not in SETUPS:
        return Rehearsed(member=member, agent=agent, remark="Not run: it cannot use a scripted model.")
    file = own.folder / f"bullpen-rehearsal-{secrets.token_hex(4)}.txt"
    models.script(Reply(tool_calls=(SETUPS[agent].write(file),)), Reply(text=ANSWER))
    try:
        person = conversation.team.people[0].name
        await conversation.say(f"[NEXT: {member}] This is a rehearsal: please say that you are here.", sender=person)
        await conversation.until_quiet()
        has_written = await asyncio.to_thread(file.exists)
    finally:
        await asyncio.to_thread(file.unlink, missing_ok=True)
    turn, record = await conversation.read(_last_turn)
    if conversation.undecided:
        await conversation.skip()
    checks = tuple(_checks(own, turn, record, models, has_written))
    seconds = ((turn.ended_at or 0) - (turn.started_at or 0)) / 1000
    return Rehearsed(member=member, agent=agent, checks=checks, seconds=seconds)


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
