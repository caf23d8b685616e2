"""Agents that remember, killed again and again: `python -m proofs.torture.remembering_kills KILLS SEED MISTAKE FOLDER`.

Prints what it found as JSON. A conversation lives in a child process that dies at a named point around the sessions of
its agents, or at a random moment; the next child goes on with it. After a few kills another conversation begins.
What the agents' models got is then compared with what is stored: their logs are written by the scripted agents.
"""

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from proofs.torture.remembering_mistakes import plant

if __name__ == "__main__":
    # Before anything imports the module that has the mistake.
    plant(sys.argv[3], Path(sys.argv[4]))

from proofs.torture.killing_itself import dying, wrap
from proofs.torture.kills import read_until
from proofs.torture.remembering_checks import rebuilt_without_cause, seen_too_early
from tests.conversation.remembering import RememberingStage
from tests.conversation.what_models_got import problems, what_was_asked

from bullpen.agents import held_session
from bullpen.agents.session_lock import SessionLock
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.member_agent import MemberAgent
from bullpen.conversation.memories import Memories
from bullpen.conversation.running_turn import RunningTurn
from bullpen.errors import BullpenError
from bullpen.store import conversation_rows, memory_rows
from bullpen.store.sqlite import SqliteStore

Tell = Callable[..., None]

AROUND: dict[str, tuple[Any, str]] = {
    "planning a session": (Memories, "_planned"),
    "taking a session": (Memories, "enter"),
    "locking a session": (SessionLock, "hold"),
    "unlocking a session": (SessionLock, "release"),
    "a session is put back": (Memories, "put_back"),
    "its file is cut": (held_session, "put_back"),
    "the session is read": (Memories, "after"),
    "its file is marked": (held_session, "mark_of"),
    "a turn is started": (SqliteStore, "start_turn"),
    "a turn is given again": (SqliteStore, "give_again"),
    "a turn is ended": (SqliteStore, "end_turn"),
    "a reply is stored": (SqliteStore, "append"),
    "a memory is added": (memory_rows, "add"),
    "recovering": (SqliteStore, "recover"),
}
POINTS = (
    *(f"{when} {what}" for what in AROUND for when in ("before", "after")),
    "within a commit",
    "before the CLI starts",
    "when the CLI has taken the prompt",
    "when the CLI has replied",
    "after the CLI has ended",
)
RARE = ("given again", "file is cut")
KILLS_PER_CONVERSATION = 20
LONGEST_LIFE_SECONDS = 6.0
WHOM = ("a", "b", "c", "a & b", "a, b", "b & c, a", "a & b & c", "c, a & b")


class Torture:
    """The parent: starts children, waits for their deaths, and compares what models got with what is stored."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.problems: list[str] = []
        self.ends: Counter[str] = Counter()
        self.reached: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()

    def run(self, kills: int) -> dict[str, Any]:
        points = [(POINTS[number % len(POINTS)] if number % 4 else "") for number in range(kills)]
        self.random.shuffle(points)
        for first in range(0, kills, KILLS_PER_CONVERSATION):
            stage = self._stage(self.folder / f"conversation-{first}")
            self._torture(stage, points[first : first + KILLS_PER_CONVERSATION], first)
        return {
            "kills": self.ends,
            "reached": self.reached,
            "points": len(POINTS),
            "problems": self.problems,
            "counts": self.counts,
        }

    def _torture(self, stage: RememberingStage, points: list[str], first: int) -> None:
        conversation_id = asyncio.run(_begin(stage))
        broken: set[str] = set()
        for number, point in enumerate(points, start=first):
            broken |= self._live_and_die(stage, conversation_id, number, point)
        asyncio.run(_end(stage, conversation_id, first))
        found = self._wrong(stage, conversation_id, broken)
        self.problems += [f"conversation {first}: {problem}" for problem in dict.fromkeys(found)]

    def _stage(self, folder: Path) -> RememberingStage:
        """Return a team whose agents fail, or take their time, in some of their turns."""
        folder.mkdir(parents=True)
        stage = RememberingStage(folder)
        os.environ.update(stage.environment())
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        stage.limits.update({"identical_replies": 1000, "turns_per_message": 30})
        stage.person("kim")
        for name, cli in (("a", "claude"), ("b", "codex"), ("c", "claude")):
            stage.remembering(name, cli=cli)
            for turn in range(1, 200):
                match self.random.randrange(10):
                    case 0:
                        stage.script(name, [{"say": "half of it"}, {"exit": 3}], turn)
                    case 1:
                        stage.script(name, [{"think": "Hm."}, {"sleep": 0.2}, {"say": f"{name}:{turn} says so."}], turn)
        return stage

    def _live_and_die(self, stage: RememberingStage, conversation_id: str, number: int, point: str) -> set[str]:
        """Let a child live until it dies, and return the sessions that it has broken."""
        reader, writer = os.pipe()
        chance = random.Random(self.random.random())
        life = LONGEST_LIFE_SECONDS if point else chance.uniform(0.05, 1.5)
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            _child(stage, conversation_id, number, point, chance, writer)
        os.close(writer)
        said = _heard(reader, life)
        os.kill(pid, signal.SIGKILL)
        said += _heard(reader, None)
        os.close(reader)
        os.waitpid(pid, 0)
        news = [json.loads(line) for line in said.decode().splitlines()]
        self._count(point, is_there=["died"] in news)
        self.problems += [text for kind, *rest in news if kind == "failed" for text in rest]
        return {session for kind, *rest in news if kind == "breaking" for session in rest}

    def _count(self, point: str, *, is_there: bool) -> None:
        if not point:
            self.ends["at a random moment"] += 1
        elif is_there:
            self.ends["at a named point"] += 1
            self.reached[point] += 1
        else:
            self.ends["before it came to its named point"] += 1

    def _wrong(self, stage: RememberingStage, conversation_id: str, broken: set[str]) -> Iterator[str]:
        asked = what_was_asked(stage.folder / "homes")
        with SqliteStore(stage.db) as store:
            yield from problems(store, conversation_id, asked)
            yield from rebuilt_without_cause(store, conversation_id, broken)
            yield from seen_too_early(store, conversation_id, stage.folder / "homes", broken)
            yield from (finding.text for finding in store.fsck())
            self.counts["requests to models"] += len(asked)
            for turn in store.turns(conversation_id):
                self.counts[f"turns {turn.state}"] += 1
                record = store.record(conversation_id, turn.id) if turn.state == "done" else None
                if record is not None and record.report.session is not None:
                    self.counts[f"sessions {record.report.session.origin}"] += 1


async def _begin(stage: RememberingStage) -> str:
    async with stage.open() as conversation:
        await conversation.say("w0 begin [NEXT: a & b & c]")
        await conversation.until_quiet()
        return conversation.id


async def _end(stage: RememberingStage, conversation_id: str, number: int) -> None:
    """Let everybody answer in peace: what was lost would be missing now."""
    async with stage.open(resume=conversation_id) as conversation:
        await conversation.drop()
        for ended in conversation.undecided:
            await conversation.skip(ended.id)
        for last in range(2):
            await conversation.say(f"w{number}last{last} well? [NEXT: a & b & c]")
            await conversation.until_quiet()


def _child(
    stage: RememberingStage, conversation_id: str, number: int, point: str, chance: random.Random, writer: int
) -> None:
    def tell(*words: Any) -> None:
        os.write(writer, json.dumps(words).encode() + b"\n")

    try:
        os.setsid()
        _die_at(point, chance.randint(1, 1 if any(rare in point for rare in RARE) else 3), lambda: tell("died"))
        if "given again" in point:
            _move_all(stage, tell)
        asyncio.run(_life(stage, conversation_id, number, chance, tell))
    except BaseException as error:
        tell("failed", f"{type(error).__name__}: {error}")
    finally:
        os._exit(1)


async def _life(stage: RememberingStage, conversation_id: str, number: int, chance: random.Random, tell: Tell) -> None:
    """Talk, decide, cancel, forget and break sessions until the end."""
    for life in range(1000):
        async with stage.open(resume=conversation_id) as conversation:
            for count in range(chance.randint(2, 6)):
                # A turn may begin or end while we choose it.
                with suppress(BullpenError):
                    await _decide(conversation, chance)
                await conversation.say(f"w{number}x{life}x{count} hello [NEXT: {chance.choice(WHOM)}]")
                with suppress(BullpenError):
                    await _act(stage, conversation, chance, tell)


async def _decide(conversation: Conversation, chance: random.Random) -> None:
    for ended in conversation.undecided:
        match chance.choice(["retry", "retry", "skip", "hand over"]):
            case "retry":
                await conversation.retry(ended.id)
            case "skip":
                await conversation.skip(ended.id)
            case _:
                await conversation.hand_over(chance.choice(conversation.team.agents).name, ended.id)
    await conversation.continue_turns()


async def _act(stage: RememberingStage, conversation: Conversation, chance: random.Random, tell: Tell) -> None:
    match chance.randrange(16):
        case 0 | 1:
            await asyncio.sleep(chance.uniform(0, 0.4))
            await conversation.cancel()
        case 2:
            await conversation.forget(chance.choice("abc"))
        case 3 | 4:
            await conversation.until_quiet()
            _break(stage, chance, tell)
        case 5:
            await conversation.set_task(f"Task {chance.random()}")
        case 6 | 7:
            pass
        case _:
            await conversation.until_quiet()


def _break(stage: RememberingStage, chance: random.Random, tell: Tell) -> None:
    """Do to a session's file what may happen to it; nothing of it may mislead an agent."""
    file = chance.choice(stage.sessions(chance.choice(["claude", "claude", "codex"])))
    tell("breaking", file.stem[-36:])
    match chance.choice(["delete", "add", "change", "move", "move", "move"]):
        case "delete":
            file.unlink()
        case "add":
            with file.open("ab") as opened:
                opened.write(b"{}\n")
        case "change":
            file.write_bytes(file.read_bytes().replace(b"hello", b"jello"))
        case _ if "projects" in file.parts:
            _move(file)


def _move_all(stage: RememberingStage, tell: Tell) -> None:
    for file in stage.sessions("claude"):
        tell("breaking", file.stem)
        _move(file)


def _move(file: Path) -> None:
    """Put a session of claude where bullpen finds it, and claude does not."""
    (file.parents[1] / "elsewhere").mkdir(exist_ok=True)
    file.rename(file.parents[1] / "elsewhere" / file.name)


def _die_at(point: str, times: int, last_word: Callable[[], None]) -> None:
    """Let this process kill itself when it reaches a point for the nth time. The product knows nothing of it."""
    die = dying(times, last_word)
    when, _, what = point.partition(" ")
    if what in AROUND:
        wrap(*AROUND[what], die, before=when == "before")
    elif point == "within a commit":
        wrap(conversation_rows, "apply", die, before=False)
    elif point == "when the CLI has taken the prompt":
        _wrap_output(die, b"")
    elif point == "when the CLI has replied":
        _wrap_output(die, b" says so")
    elif point:
        _wrap_turn(die, before=when == "before")


def _wrap_output(die: Callable[[], None], wanted: bytes) -> None:
    real = RunningTurn.on_output

    def on_output(running: RunningTurn, chunk: bytes) -> None:
        real(running, chunk)
        if wanted in chunk:
            die()

    setattr(RunningTurn, "on_output", on_output)  # noqa: B010


def _wrap_turn(die: Callable[[], None], *, before: bool) -> None:
    real = MemberAgent.take_turn

    async def take_turn(*args: Any, **keys: Any) -> Any:
        if before:
            die()
        try:
            return await real(*args, **keys)
        finally:
            die()

    setattr(MemberAgent, "take_turn", take_turn)  # noqa: B010


def _heard(reader: int, seconds: float | None) -> bytes:
    """Return what the child says, until it is dead or the time has come."""
    return read_until(reader, None if seconds is None else time.monotonic() + seconds)


if __name__ == "__main__":
    kills_, seed_, _, folder_ = sys.argv[1:]
    print(json.dumps(Torture(Path(folder_), int(seed_)).run(int(kills_))))
