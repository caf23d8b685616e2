"""Random conversations in which agents look up all they can.

`python -m proofs.torture.looking_up_trials COUNT SEED MISTAKE FOLDER` prints what it found as JSON.
"""

import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from proofs.torture.looking_up_mistakes import plant

if __name__ == "__main__":
    # Before anything imports the module that has the mistake.
    plant(sys.argv[3], Path(sys.argv[4]))

import pytest
from proofs.torture.looking_agents import AGENTS, LIMITED, LookingAgents

from bullpen.app import open_team
from bullpen.conversation import toolbox
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.member_agent import MemberAgent
from bullpen.exchange.forking import fork_conversation
from bullpen.store.sqlite import SqliteStore
from bullpen.store.thread import StoreThread, run

MOST_STEPS = 2
PER_DATABASE = 25
"""Conversations, each with its fork, so that each can find the others."""
TEAM = """\
hand_over_note = false
[limits]
turns_per_message = 8
identical_replies = 1000
back_and_forth = 1000
[[member]]
name = "kim"
"""


def at_once(_: StoreThread, work: Callable[[], Any]) -> "asyncio.Future[Any]":
    """Do the work of a store's thread here: two threads that wait for each other take three times as long."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    run((loop, done, work))
    return done


@asynccontextmanager
async def no_door(*_: object) -> AsyncIterator[tuple[str, ...]]:
    """Open no socket: these agents call in this process."""
    yield ("nobody",)


class Trials:
    """Conversations in one database, each with a fork, which is a conversation, too."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance = folder, chance
        self.db = folder / "c.db"
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []

    def team(self) -> Path:
        members = "".join(
            f'[[member]]\nname = "{name}"\nagent = "claude"\ntools = true\npermissions = "read-only"\n'
            f'visibility = "{"addressed" if name in LIMITED else "all"}"\nmemory = "shared"\n'
            for name in AGENTS
        )
        path = self.folder / "team.toml"
        path.write_text(TEAM + members, encoding="utf-8")
        return path

    def play(self, pairs: int) -> None:
        with SqliteStore(self.db) as store, pytest.MonkeyPatch.context() as patch:
            agents = LookingAgents(store, self.chance)

            async def take_turn(agent: MemberAgent, given: Any, running: Any, *, emit: Any) -> Any:
                return await agents.take_turn(agent, given, running, emit=emit)

            patch.setattr(MemberAgent, "take_turn", take_turn)
            patch.setattr(StoreThread, "_submit", at_once)
            patch.setattr(toolbox, "open_door", no_door)
            for _ in range(pairs):
                asyncio.run(asyncio.wait_for(self._play(store, agents), 100))
            self.counts += agents.counts
            self.problems += agents.problems

    async def _play(self, store: SqliteStore, agents: LookingAgents) -> None:
        first = await self._talk(agents, None, self.chance.randint(1, MOST_STEPS))
        at = self.chance.randint(1, store.message_count(first))
        fork = fork_conversation(store, first, at).id
        for conversation_id in self.chance.sample([first, fork], 2):
            await self._talk(agents, conversation_id, 1)
        self.counts["forks"] += 1

    async def _talk(self, agents: LookingAgents, resume: str | None, steps: int) -> str:
        async with open_team(self.team(), resume=resume, db=self.db) as conversation:
            agents.conversation = conversation
            for _ in range(steps):
                await self._step(conversation, agents)
            # A judge or a person picks before anything else happens.
            agents.rounds.clear()
            return conversation.id

    async def _step(self, conversation: Conversation, agents: LookingAgents) -> None:
        a, b, c, d = self.chance.sample(AGENTS, 4)
        whom = self.chance.choice(
            [
                a,
                f"{a} & {b}",
                f"{a}, {b}",
                f"{a} & {b} & {c}, {d}",
                f"{a}, {b} & {c}",
                f"{a} | {b}",
                f"{a} | {b} -> {c}",
            ]
        )
        await self._say(conversation, agents, whom)
        if "|" not in whom and self.chance.random() < 0.3:
            await self._say(conversation, agents, self.chance.choice([b, f"{c} & {d}"]))
        await self._settle(conversation)
        if "|" in whom:
            await self._between(conversation, agents, whom)

    async def _say(self, conversation: Conversation, agents: LookingAgents, whom: str) -> None:
        self.counts[f"asked {''.join(sign for sign in whom if sign in '&,|>')}"] += 1
        task = f"[NEXT: {whom}] {agents.tricky()}"
        if "|" in whom:
            message_id = f"task-{len(agents.known)}"
            agents.rounds[message_id] = whom.rpartition("-> ")[2] if "->" in whom else ""
            await conversation.say(task, message_id=message_id)
        else:
            await conversation.say(task)

    async def _between(self, conversation: Conversation, agents: LookingAgents, whom: str) -> None:
        """Ask one of several again before it is decided whose result is picked, and pick one."""
        if any(one.state == "asking" for one in conversation.progress.rounds.values()):
            await self._say(conversation, agents, self.chance.choice(whom.replace("->", "|").split(" | ")))
            await self._settle(conversation)
            for one in conversation.progress.rounds.values():
                if one.state == "asking" and (done := one.in_state("done")):
                    await conversation.pick(done[0].turn)
            self.counts["asked before one is picked"] += 1
        agents.rounds.clear()
        await self._settle(conversation)

    async def _settle(self, conversation: Conversation) -> None:
        """Wait until nothing happens any more; what failed is tried again or left."""
        await conversation.until_quiet()
        while conversation.undecided:
            for ended in conversation.undecided:
                await (conversation.retry if self.chance.random() < 0.5 else conversation.skip)(ended.id)
            await conversation.until_quiet()
        if conversation.paused:
            await conversation.drop()
            await conversation.continue_turns()
            await conversation.until_quiet()


def played(conversations: int, seed: int, folder: Path) -> dict[str, Any]:
    """Play so many conversations, in as many databases as that takes."""
    counts: Counter[str] = Counter()
    problems: list[str] = []
    pairs = conversations // 2
    for first in range(0, pairs, PER_DATABASE):
        place = folder / f"from-{first}"
        place.mkdir()
        trials = Trials(place, random.Random(f"{seed} {first}"))
        trials.play(min(PER_DATABASE, pairs - first))
        counts += trials.counts
        problems += [f"seed {seed}, from {first}: {problem}" for problem in trials.problems]
    return {"counts": counts, "problems": problems}


if __name__ == "__main__":
    count_, seed_, _, folder_ = sys.argv[1:]
    print(json.dumps(played(int(count_), int(seed_), Path(folder_))))
