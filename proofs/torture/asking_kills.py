"""Agents that ask, and kill -9: `python -m proofs.torture.asking_kills QUESTIONS SEED MISTAKE FOLDER`.

Prints what it found as JSON. Conversations live in a child process that dies at a named point around a question, or at
a random moment, or is closed; the next child continues. After a few lives another team begins.
"""

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from proofs.torture.asking_mistakes import plant

if __name__ == "__main__":
    # Before anything imports the module that has the mistake.
    plant(sys.argv[3], Path(sys.argv[4]))

from proofs.torture.asking_checks import wrong
from proofs.torture.asking_people import People
from proofs.torture.asking_team import CONVERSATION, AskingTeam, let_commands_ask
from proofs.torture.killing_itself import dying, wrap
from proofs.torture.kills import read_until

from bullpen.agents.dialogue import Dialogue
from bullpen.approvals import ApprovalRecord
from bullpen.store import approval_rows
from bullpen.store.sqlite import SqliteStore

POINTS = (
    *(f"{when} {what} is stored" for what in ("a question", "an answer") for when in ("before", "after")),
    "within the commit of a question or an answer",
    "before an agent hears an answer",
    "after an agent hears an answer",
)
LIVES = 12
"""Of one team."""
CONVERSATIONS = 2
LONGEST_LIFE_SECONDS = 40.0
HEARING_SECONDS = 0.03
"""So long a process lives that is about to die: what an agent may hear too early, it hears then."""


class Torture:
    """The parent: starts children, waits for their deaths, and compares the evidence with what is stored."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.problems: list[str] = []
        self.ends: Counter[str] = Counter()
        self.reached: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()

    def run(self, questions: int) -> dict[str, Any]:
        let_commands_ask()
        for number in range(questions):
            if self.counts["questions"] >= questions or len(self.problems) > 100:
                break
            self._torture(number)
        return {
            "kills": self.ends,
            "reached": self.reached,
            "points": len(POINTS),
            "problems": self.problems,
            "counts": self.counts,
        }

    def _torture(self, number: int) -> None:
        team = AskingTeam(self.folder / f"team-{number}", self.random.randrange(1_000_000))
        conversations = [asyncio.run(_begin(team)) for _ in range(CONVERSATIONS)]
        for life in range(LIVES):
            point = self.random.choice(["", *POINTS]) if life % 3 else "closed"
            self._live_and_die(team, self.random.choice(conversations), point)
        for conversation_id in conversations:
            asyncio.run(_end(team, conversation_id))
        with SqliteStore(team.db) as store:
            self.problems += [f"team {number}: {problem}" for problem in wrong(team, store, self.counts)]

    def _live_and_die(self, team: AskingTeam, conversation_id: str, point: str) -> None:
        reader, writer = os.pipe()
        chance = random.Random(self.random.random())
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            _child(team, conversation_id, point, chance, writer)
        os.close(writer)
        life = LONGEST_LIFE_SECONDS if point else chance.uniform(0.1, 1.5)
        said = read_until(reader, time.monotonic() + life)
        os.kill(pid, signal.SIGKILL)
        said += read_until(reader, None)
        os.close(reader)
        os.waitpid(pid, 0)
        news = [json.loads(line) for line in said.decode().splitlines()]
        self._count(point, is_there=["died"] in news)
        self.problems += [text for kind, *rest in news if kind == "failed" for text in rest]

    def _count(self, point: str, *, is_there: bool) -> None:
        if point == "closed":
            self.counts["closed"] += 1
        elif not point:
            self.ends["at a random moment"] += 1
        elif is_there:
            self.ends["at a named point"] += 1
            self.reached[point] += 1
        else:
            self.ends["before it came to its named point"] += 1


async def _begin(team: AskingTeam) -> str:
    async with team.open() as conversation:
        await conversation.set_task("Ask.")
        return conversation.id


async def _end(team: AskingTeam, conversation_id: str) -> None:
    """Open it once more, so that it is known what was interrupted."""
    async with team.open(conversation_id) as conversation:
        await conversation.drop()


def _child(team: AskingTeam, conversation_id: str, point: str, chance: random.Random, writer: int) -> None:
    def tell(*words: Any) -> None:
        os.write(writer, json.dumps(words).encode() + b"\n")

    try:
        os.setsid()
        os.environ[CONVERSATION] = conversation_id
        _die_at(point, chance.randint(1, 12), lambda: tell("died"))
        asyncio.run(_life(team, conversation_id, chance, turns=4 if point == "closed" else 1000))
    except BaseException as error:
        tell("failed", f"{type(error).__name__}: {error}")
    finally:
        os._exit(1)


async def _life(team: AskingTeam, conversation_id: str, chance: random.Random, *, turns: int) -> None:
    while turns > 0:
        most = min(turns, chance.randint(2, 6))
        async with team.open(conversation_id) as conversation:
            await People(team, conversation, chance).live(most)
        turns -= most


def _die_at(point: str, times: int, last_word: Callable[[], None]) -> None:
    """Let this process kill itself when it reaches a point for the nth time. The product knows nothing of it."""
    die = dying(times, last_word)
    is_before = point.startswith("before")
    if point.endswith("is stored"):
        _wrap_store(die, "question" if "question" in point else "answer", before=is_before)
    elif "commit" in point:
        wrap(approval_rows, "values_of", die, before=False)
    elif point.endswith("hears an answer"):
        wrap(Dialogue, "_answered", die, before=is_before)


def _wrap_store(die: Callable[[], None], what: str, *, before: bool) -> None:
    real = SqliteStore.note_approval

    def note_approval(self: SqliteStore, conversation_id: str, record: ApprovalRecord, **keys: Any) -> ApprovalRecord:
        is_it = (record.answer is not None) == (what == "answer")
        if is_it and before:
            time.sleep(HEARING_SECONDS)
            die()
        stored = real(self, conversation_id, record, **keys)
        if is_it and not before:
            die()
        return stored

    setattr(SqliteStore, "note_approval", note_approval)  # noqa: B010


if __name__ == "__main__":
    questions_, seed_, _, folder_ = sys.argv[1:]
    print(json.dumps(Torture(Path(folder_), int(seed_)).run(int(questions_))))
