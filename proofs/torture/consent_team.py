"""Hostile agents in the dialects of all CLIs, a person who answers at random, and what must hold after that."""

import asyncio
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace
from proofs.torture.consent_wants import (
    ALLOW,
    DENY,
    FREE,
    PLAIN,
    USUAL_FILES,
    commands,
    edits,
    hostile_folder,
    is_covered,
    is_denied,
)
from proofs.torture.teams import TURN, tell_agents_their_turns
from tests.conversation.stage import Stage

from bullpen.agents import agent_spec
from bullpen.agents.registry import spec_for
from bullpen.agents.spec import AgentSpec
from bullpen.approvals import Answer, ApprovalRecord, Scope
from bullpen.conversation import member_agent
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Asked
from bullpen.errors import BullpenError
from bullpen.store.sqlite import SqliteStore
from bullpen.team import trust
from bullpen.text.asked_words import words_of
from bullpen.turn_events import ApprovalAsked

PROGRAM = Path(__file__).with_name("consent_asker.py")
DIALECTS = ("claude", "codex", "gemini", "qwen", "opencode", "copilot", "vibe", "acp")
WANTS, LATE = "CONSENT_WANTS", "CONSENT_LATE"
SCOPES: tuple[Scope, ...] = ("once", "once", "turn", "conversation", "team")
LONGEST_TURN_SECONDS = 60.0
WITHOUT_A_YES, NOT_SHOWN, NOBODY_GAVE, HIDDEN = (
    "ran without a yes to exactly that",
    "is not what was shown",
    "has a yes that nobody gave",
    "hides its end",
)


def let_commands_ask_as_clis() -> None:
    """Let members that are programs speak the protocol that the last word of their command names."""

    def spec(agent: str, command: tuple[str, ...] = (), *, name: str = "") -> AgentSpec:
        found = spec_for(agent, command, name=name)
        dialect = command[-1]
        asking = spec_for("acp", command) if dialect == "acp" else agent_spec(dialect).with_permissions("ask")
        asking = replace(
            asking,
            command=command,
            permissions={"ask": ()},
            asking=None,
            sessions=None,
            tools=None,
            settings={},
            rule_arguments=lambda *_: (),
            ends_by_itself=False,
        )
        return replace(found, asking=asking)

    for module in (member_agent, trust):
        setattr(module, "spec_for", spec)  # noqa: B010
    tell_agents_their_turns()


class HostileTeam:
    """One conversation of hostile agents in a hostile folder."""

    def __init__(self, folder: Path, seed: str) -> None:
        folder.mkdir(parents=True)
        self.random = random.Random(seed)
        self.log, self.shown = folder / "agents.log", dict[tuple[str, str], ApprovalAsked]()
        self.said: dict[tuple[str, str], tuple[Answer, Scope]] = {}
        self.problems: list[str] = []
        self.root = folder / "project"
        self.root.mkdir()
        hostile_folder(self.root, self.random)
        self._stage = Stage(folder)
        self._stage.limits.update({"identical_replies": 1000, "turns_per_message": 1000})
        self._stage.person("kim")
        for name in DIALECTS:
            program = [sys.executable, "-S", "-E", str(PROGRAM), str(self.log), seed, name]
            self._stage.members[name] = {
                "name": name,
                "command": program,
                "permissions": "ask",
                "env": [TURN, WANTS, LATE],
                "allow": list(ALLOW),
                "deny": list(DENY),
                "cwd": "project",
            }

    async def play(self, turns: int) -> None:
        """Let agents ask in so many turns."""
        async with self._stage.open() as conversation:
            watching = asyncio.ensure_future(self._answer_all(conversation))
            for _ in range(turns):
                folder = str(self.root)
                wants = [*commands(self.random, folder), *edits(self.random, self.root)]
                os.environ[WANTS] = json.dumps([want.as_given for want in wants])
                os.environ[LATE] = json.dumps([want.as_given for want in wants if want.command in PLAIN])
                await conversation.say(f"[NEXT: {self.random.choice(DIALECTS)}] Go.", sender="kim")
                try:
                    await asyncio.wait_for(conversation.until_quiet(), LONGEST_TURN_SECONDS)
                except TimeoutError:
                    self.problems.append(f"a turn does not end: {[*conversation.approvals.open]}")
                    await conversation.cancel()
                    break
                for turn in list(conversation.undecided):
                    with suppress(BullpenError):
                        await conversation.skip(turn.turn.id)
                with suppress(BullpenError):
                    await conversation.drop()
            watching.cancel()

    async def _answer_all(self, conversation: Conversation) -> None:
        async for event in conversation.watch():
            if isinstance(event, Asked):
                await self._answer(conversation, event)

    async def _answer(self, conversation: Conversation, event: Asked) -> None:
        key, asked = (event.turn_id, event.question.id), event.question
        self.shown[key] = asked
        answer, scope = self._random_answer(asked), self.random.choice(SCOPES)
        self.said[key] = answer, scope
        if self.random.random() < 0.01:
            with suppress(BullpenError):
                await conversation.cancel(event.turn_id, by="kim")
        # What cannot be held for longer can still be answered once.
        for held in (scope, "once"):
            with suppress(BullpenError):
                await conversation.answer(*key, answer, scope=held, by="kim")
                break

    def _random_answer(self, asked: ApprovalAsked) -> Answer:
        match self.random.randrange(60):
            case 0:
                return Answer(verdict="stop", reason="enough")
            case 1 | 2 | 3 | 4 | 5 | 6 if asked.can_change:
                return Answer(verdict="yes", command="make other")
            case number if number < 30:
                return Answer(verdict="no")
            case _:
                return Answer(verdict="yes")

    # What must hold

    def wrong(self, counts: Counter[str]) -> Iterator[str]:
        """Yield every broken promise."""
        yield from self.problems
        with SqliteStore(self._stage.db) as store:
            (about,) = store.conversations()
            records = store.approvals(about.id)
            yield from (finding.text for finding in store.fsck())
        questions = {(one.turn_id, one.question): one.asked for one in records if one.asked is not None}
        counts["questions"] += len(questions)
        yield from self._wrongly_run(records, questions, counts)
        yield from self._wrongly_shown(questions)
        yield from self._wrongly_answered(records, questions, counts)

    def _wrongly_run(
        self, records: list[ApprovalRecord], questions: dict[Any, ApprovalAsked], counts: Counter[str]
    ) -> Iterator[str]:
        """Yield what ran without a yes: each yes lets one thing run, once, exactly as it was asked for."""
        allowed: Counter[tuple[str, ...]] = Counter()
        for record in records:
            if record.answer is not None and record.answer.verdict == "yes":
                asked = questions[record.turn_id, record.question]
                what = record.answer.command or asked.command
                allowed[record.turn_id, what, asked.folder if what else _edit_of(asked)] += 1
        for turn, kind, command, path, content, folder in _read(self.log):
            if kind != "ran":
                continue
            counts["commands and edits that ran"] += 1
            # Claude Code does not say where a command runs: in its folder.
            where = (os.path.normpath(folder), str(self.root)) if command else (_edit(path, content),)
            found = next(((turn, command, one) for one in where if allowed[turn, command, one]), None)
            if found is not None:
                allowed[found] -= 1
            elif not self._is_free(command, path):
                yield f"{command or path!r} in {folder} ({content!r}, turn {turn}) {WITHOUT_A_YES}"
            else:
                counts["of them free"] += 1

    def _is_free(self, command: str, path: str) -> bool:
        if command:
            return command in FREE
        return any(os.path.realpath(path) == os.path.realpath(self.root / name) for name in USUAL_FILES)

    def _wrongly_shown(self, questions: dict[Any, ApprovalAsked]) -> Iterator[str]:
        wanted = {(turn, command) for turn, kind, command, *_ in _read(self.log) if kind == "asked"}
        for (turn, _), asked in questions.items():
            if asked.command and (turn, asked.command) not in wanted:
                yield f"{asked.command!r} of turn {turn} {NOT_SHOWN}: nobody asked for it"
            end = asked.command.split()[-1:] or [""]
            if asked.command.isascii() and not words_of(asked).endswith(end[0][-40:]):
                yield f"{words_of(asked)!r} {HIDDEN}: {end[0]!r}"
        for key, shown in self.shown.items():
            if key in questions and questions[key] != shown:
                yield f"{shown!r} {NOT_SHOWN}: {questions[key]!r} is stored"

    def _wrongly_answered(
        self, records: list[ApprovalRecord], questions: dict[Any, ApprovalAsked], counts: Counter[str]
    ) -> Iterator[str]:
        for record in records:
            if record.answer is None:
                continue
            key = (record.turn_id, record.question)
            asked, given = questions[key], self.said.get(key)
            source = "a person" if record.by else record.because.partition(":")[0]
            counts[f"answered by {source}: {record.answer.verdict}"] += 1
            if record.by and (given is None or given[0] != record.answer):
                yield f"{asked.command!r} {NOBODY_GAVE}: {record.answer} by {record.by}"
            if is_denied(asked.command) and (key in self.shown or record.answer.verdict == "yes"):
                yield f"{asked.command!r} is denied, and {NOBODY_GAVE}"
            if record.by or record.answer.verdict != "yes":
                continue
            is_held = any(_is_held(before, record, questions) for before in records[: record.number - 1])
            if not (is_covered(asked.command) or is_held):
                yield f"{asked.command or asked.paths!r} {NOBODY_GAVE}: {record.because}"


def _is_held(before: ApprovalRecord, record: ApprovalRecord, questions: dict[Any, ApprovalAsked]) -> bool:
    """Return whether a person has said yes for longer to exactly the same, of the same member."""
    if not before.by or before.answer != Answer(verdict="yes") or before.member != record.member:
        return False
    if before.scope == "once" or (before.scope == "turn" and before.turn_id != record.turn_id):
        return False
    one, other = (questions[each.turn_id, each.question] for each in (before, record))
    same = ("kind", "tool", "command", "folder", "paths", "diff", "details")
    return all(getattr(one, name) == getattr(other, name) for name in same)


def _edit_of(asked: ApprovalAsked) -> str:
    """Return which files an edit writes, and what, as it was shown."""
    added = [line[1:] for line in asked.diff.splitlines() if line.startswith("+") and not line.startswith("+++ ")]
    return f"{asked.paths[:1]} {added}"


def _edit(path: str, content: str) -> str:
    return f"{(path,)} {content.splitlines()}"


def _read(log: Path) -> list[list[str]]:
    return [msgspec.json.decode(line) for line in log.read_bytes().splitlines()] if log.exists() else []
