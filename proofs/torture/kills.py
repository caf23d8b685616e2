"""kill -9, again and again: `python -m proofs.torture.kills MOMENTS ROUNDS SEED FOLDER` prints what it found as JSON.

One conversation lives in a child process that is killed at a random moment, or when it reaches a named point; the next
child goes on where it stopped. MOMENTS children die at random, and in each round one waits for each point. Before a
person's message is sent, and after it is acknowledged, the child says so.
"""

import asyncio
import json
import os
import random
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from proofs.torture.killing_itself import dying, wrap
from proofs.torture.teams import LoopingTeam, tell_agents_their_turns

from bullpen import open_team
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.member_agent import MemberAgent
from bullpen.errors import NothingRuns, TurnConflict
from bullpen.store import conversation_rows
from bullpen.store.sqlite import SqliteStore

METHODS = ("claim", "append", "update", "start_turn", "end_turn", "requeue", "recover", "reorder", "release")
POINTS = (
    *(f"{when} {method}" for method in METHODS for when in ("before", "after")),
    "within a commit",
    "before an agent",
    "after an agent",
)
LONGEST_LIFE_SECONDS = 1.0
ENOUGH_ROUNDS = 10
"""After so many every point must have been reached, or it is none."""
FINAL = {"done", "failed", "cancelled", "interrupted", "dropped"}
LIMITS = {"turns_per_message": 6, "back_and_forth": 4}


class Torture:
    """The parent: starts children, kills them, and compares what they said with what is stored."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.team = LoopingTeam(folder, seed, fails=True, limits=LIMITS)
        self.random = random.Random(seed)
        self.acknowledged: set[str] = set()
        self.unanswered: tuple[str, str] | None = None
        """The message that the last child sent and that was not acknowledged: id and text."""
        self.deciding: set[str] = set()
        self.problems: list[str] = []
        self.openings: list[float] = []
        self.ends: Counter[str] = Counter()
        self.reached: Counter[str] = Counter()

    def run(self, moments: int, rounds: int) -> dict[str, Any]:
        self.team.write()
        self.conversation_id = asyncio.run(self._begin())
        points = [*[""] * moments, *POINTS * rounds]
        self.random.shuffle(points)
        for number, point in enumerate(points):
            self._live_and_die(number, point)
            self._check(thorough=number % 10 == 9)
        asyncio.run(self._end())
        self._check(thorough=True)
        if rounds >= ENOUGH_ROUNDS:
            self.problems += [f"the point {point!r} was never reached" for point in POINTS if not self.reached[point]]
        return {
            "kills": self.ends,
            "points": len(self.reached),
            "acknowledged": len(self.acknowledged),
            "runs": len(self.team.runs()),
            "slowest_opening": max(self.openings, default=0.0),
            "problems": self.problems,
        }

    async def _begin(self) -> str:
        async with open_team(self.team.path, db=self.team.db) as conversation:
            # Of one in which nothing happened, nothing is kept.
            await conversation.set_task("Survive.")
            return conversation.id

    async def _end(self) -> None:
        """Open it once more, and look at it in peace."""
        async with open_team(self.team.path, resume=self.conversation_id, db=self.team.db) as conversation:
            await conversation.until_quiet()
            if conversation.running:
                self.problems.append("something runs that nobody asked for")

    def _live_and_die(self, number: int, point: str) -> None:
        ran = self._turns("running")
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            _child(self, number, point, writer)
        os.close(writer)
        life = LONGEST_LIFE_SECONDS if point else self.random.uniform(0, 0.35)
        said = read_until(reader, time.monotonic() + life)
        os.kill(pid, signal.SIGKILL)
        said += read_until(reader, None)
        os.close(reader)
        _, status = os.waitpid(pid, 0)
        self._count(point, said)
        if os.WIFEXITED(status):
            self.problems.append(f"child {number} ended by itself: {said.decode()[-2000:]}")
        self._hear(said, ran)

    def _count(self, point: str, said: bytes) -> None:
        if not point:
            self.ends["at a random moment"] += 1
        elif said.rstrip().endswith(b'["died"]'):
            self.ends["at a named point"] += 1
            self.reached[point] += 1
        else:
            self.ends["before it came to its named point"] += 1

    def _hear(self, said: bytes, ran: set[str]) -> None:
        for line in said.decode().splitlines():
            match json.loads(line):
                case ["opened", float(seconds), list(undecided)]:
                    self.openings.append(seconds)
                    if not ran <= {*undecided}:
                        self.problems.append(f"{ran - {*undecided}} ran when it was killed, and nobody is asked")
                    ran = set()
                case ["sending", str(id_), str(text)]:
                    self.unanswered = (id_, text)
                case ["acknowledged", str(id_)]:
                    self.acknowledged.add(id_)
                    self.unanswered = None
                case ["deciding", str(id_)]:
                    self.deciding.add(id_)
                case ["failed", str(text)]:
                    self.problems.append(text)

    def _turns(self, state: str) -> set[str]:
        with SqliteStore(self.team.db) as store:
            return {turn.id for turn in store.turns(self.conversation_id) if turn.state == state}

    def _check(self, *, thorough: bool) -> None:
        with SqliteStore(self.team.db) as store:
            turns = store.turns(self.conversation_id)
            undecided = set(store.conversation(self.conversation_id).progress.get("undecided", ()))
            messages = store.messages(self.conversation_id) if thorough else []
            findings = store.fsck() if thorough else []
        self.problems += [finding.text for finding in findings]
        self.problems += [f"turn {id_} ran {n} times" for id_, n in Counter(self.team.runs()).items() if n > 1]
        for turn in turns:
            if turn.state not in {*FINAL, "queued", "running"}:
                self.problems.append(f"turn {turn.id} is {turn.state}")
            if turn.state == "interrupted" and turn.id not in undecided | self.deciding:
                self.problems.append(f"turn {turn.id} was interrupted, and nobody is asked")
        if thorough:
            self._check_messages([stored.message.id for stored in messages], turns)

    def _check_messages(self, ids: list[str], turns: list[Any]) -> None:
        if lost := self.acknowledged - {*ids}:
            self.problems.append(f"lost: {sorted(lost)}")
        if len(ids) != len({*ids}):
            self.problems.append("a message is there twice")
        replies = [turn.reply_id for turn in turns if turn.reply_id]
        of_people = [id_ for id_ in ids if id_.startswith("kim-")]
        if sorted([*replies, *of_people]) != sorted(ids):
            self.problems.append("there are replies without turns, or turns without their replies")
        if {*of_people} - self.acknowledged - {*(self.unanswered or ())}:
            self.problems.append("there are messages that nobody sent")


def read_until(reader: int, deadline: float | None) -> bytes:
    """Return what the child says, until it is dead or the time has come."""
    said = b""
    while deadline is None or (left := deadline - time.monotonic()) > 0:
        if deadline is not None and not select.select([reader], [], [], left)[0]:
            break
        piece = os.read(reader, 65536)
        if not piece:
            break
        said += piece
    return said


def _child(torture: Torture, number: int, point: str, writer: int) -> None:
    def tell(*words: Any) -> None:
        os.write(writer, json.dumps(words).encode() + b"\n")

    try:
        os.setsid()
        chance = random.Random(f"{torture.random.random()} {number}")
        _die_at(point, chance.randint(1, 3), lambda: tell("died"))
        asyncio.run(_life(torture, number, chance, tell))
    except BaseException as error:
        tell("failed", f"{type(error).__name__}: {error}")
    finally:
        os._exit(1)


async def _life(torture: Torture, number: int, chance: random.Random, tell: Callable[..., None]) -> None:
    """Speak, decide, cancel and go on until the end."""
    began = time.monotonic()
    team, resume = torture.team, torture.conversation_id
    while True:
        async with open_team(team.path, resume=resume, db=team.db) as conversation:
            undecided = [turn.id for turn in conversation.undecided]
            tell("opened", time.monotonic() - began, undecided)
            if torture.unanswered:
                await _send(conversation, *torture.unanswered, tell)
            for count in range(chance.randint(2, 8)):
                await _decide(conversation, chance, tell)
                await _send(conversation, f"kim-{number}-{time.monotonic_ns()}-{count}", team.word(), tell)
                await _act(conversation, chance)
        torture.unanswered = None
        began = time.monotonic()


async def _send(conversation: Conversation, id_: str, text: str, tell: Callable[..., None]) -> None:
    tell("sending", id_, text)
    await conversation.say(text, message_id=id_)
    tell("acknowledged", id_)


async def _decide(conversation: Conversation, chance: random.Random, tell: Callable[..., None]) -> None:
    for turn in conversation.undecided[: chance.randint(0, 3)]:
        tell("deciding", turn.id)
        match chance.choice(["retry", "skip", "hand over"]):
            case "retry":
                await conversation.retry(turn.id)
            case "skip":
                await conversation.skip(turn.id)
            case _:
                await conversation.hand_over(chance.choice(conversation.team.agents).name, turn.id)


async def _act(conversation: Conversation, chance: random.Random) -> None:
    # A turn may begin or end while we choose it.
    with suppress(NothingRuns, TurnConflict):
        await _do_something(conversation, chance)


async def _do_something(conversation: Conversation, chance: random.Random) -> None:
    match chance.choice(["wait", "wait", "go on", "cancel", "drop", "reorder", "nothing"]):
        case "wait":
            await conversation.until_quiet()
        case "go on":
            await conversation.continue_turns()
            await asyncio.sleep(chance.uniform(0, 0.05))
        case "cancel" if conversation.running:
            await conversation.cancel()
        case "drop":
            await conversation.drop()
        case "reorder" if conversation.waiting:
            await conversation.reorder([conversation.waiting[-1].id])


def _die_at(point: str, times: int, last_word: Callable[[], None]) -> None:
    """Let this process kill itself when it reaches a point for the nth time. The product knows nothing of it."""
    die = dying(times, last_word)
    when, _, method = point.partition(" ")
    if method in METHODS:
        wrap(SqliteStore, method, die, before=when == "before")
    elif point == "within a commit":
        wrap(conversation_rows, "apply", die, before=False)
    elif point:
        real = MemberAgent.take_turn

        async def take_turn(*args: Any, **keys: Any) -> Any:
            if when == "before":
                die()
            reply = await real(*args, **keys)
            die()
            return reply

        setattr(MemberAgent, "take_turn", take_turn)  # noqa: B010


if __name__ == "__main__":
    tell_agents_their_turns()
    moments, rounds, seed, folder = sys.argv[1:]
    print(json.dumps(Torture(Path(folder), int(seed)).run(int(moments), int(rounds))))
