"""Random teams with random failures: `python -m proofs.torture.failing_trials COUNT SEED MISTAKE FOLDER`.

It prints what it found as JSON.
"""

import asyncio
import json
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from proofs.torture.failing_mistakes import plant

if __name__ == "__main__":
    # Before anything imports the module that has the mistake.
    plant(sys.argv[3], Path(sys.argv[4]))

import pytest
from proofs.torture.failing_agents import Clock, FailingAgents, broken_promises

from bullpen.app import open_team
from bullpen.conversation import stand_ins, turn_loop
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import ConversationEvent, TurnEnded
from bullpen.conversation.journal import Journal
from bullpen.conversation.member_agent import MemberAgent
from bullpen.conversation.turn_loop import TurnLoop
from bullpen.errors import BullpenError
from bullpen.routing.queue import WaitingTurn
from bullpen.store.sqlite import SqliteStore

NAMES = ("ann", "bob", "cyd", "dan", "eve")
PROGRAMS = ("claude", "codex", "gemini", "qwen")
MOST_JUMPS = 60
LONGEST_SECONDS = 30
STABLE_LOOKS = 6
"""So often nothing may move before we believe that all sleeps."""


class Trial:
    """One team, and what happens to it."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance = folder, chance
        self.clock = Clock()
        self.agents = FailingAgents(chance, self.clock, folder)
        self.retried: set[str] = set()

    def team(self) -> Path:
        chance = self.chance
        names = NAMES[: chance.randint(2, len(NAMES))]
        self.agents.names = list(names)
        lines = ["hand_over_note = false", "[limits]", f"turns_per_message = {chance.randint(3, 12)}"]
        lines += ["identical_replies = 1000", f"overload_retries = {chance.choice([0, 0, 2])}"]
        if chance.random() < 0.5:
            lines.append(f"tokens = {chance.randint(100, 2000)}")
        if chance.random() < 0.4:
            self.agents.budgets[""] = self.agents.caps[""] = chance.randint(500, 4000)
            lines += ["[budget]", f"tokens = {self.agents.caps['']}"]
        lines += ['[[member]]\nname = "kim"']
        for name in names:
            others = [other for other in (*names, *PROGRAMS) if other != name]
            by = chance.sample(others, chance.randint(0, min(3, len(others))))
            may = chance.choice(["read-only", "read-only", "read-only", "edit"])
            lines.append(
                f'[[member]]\nname = "{name}"\nagent = "{chance.choice(PROGRAMS[:2])}"\n'
                f'model = "m{chance.randint(1, 2)}"\npermissions = "{may}"\n'
                f'stand_in = {json.dumps(by)}\nmemory = "shared"'
            )
            if by and chance.random() < 0.3:
                lines.append("stand_in_at = 0.5")
            if chance.random() < 0.2:
                self.agents.budgets[name] = self.agents.caps[name] = chance.randint(1, 5)
                lines.append(f"budget = {{ turns = {self.agents.caps[name]} }}")
        path = self.folder / "team.toml"
        path.write_text("\n".join(lines), encoding="utf-8")
        return path

    async def play(self) -> None:
        team, resume = self.team(), None
        for _ in range(self.chance.randint(1, 2)):
            async with open_team(team, resume=resume, db=self.folder / "c.db") as conversation:
                if resume is not None:
                    await self._continue(conversation)
                resume = conversation.id
                self.agents.conversation = conversation
                for _ in range(self.chance.randint(1, 2)):
                    await self._say(conversation)
        # What is left is not run any more, and must be in one state, too.
        async with open_team(team, resume=resume, db=self.folder / "c.db") as conversation:
            while conversation.undecided:
                await conversation.skip(conversation.undecided[0].id)
            if conversation.waiting:
                await conversation.drop()
            await conversation.until_quiet()

    async def _say(self, conversation: Conversation) -> None:
        names = self.agents.names
        first, second = self.chance.sample(names, 2)
        whom = self.chance.choice([first, first, f"{first}, {second}", f"{first} & {second}"])
        self.agents.spent = 0
        await conversation.say(f"[NEXT: {whom}] Go.")
        for _ in range(MOST_JUMPS):
            await self._until_nothing_moves(conversation)
            if not await self._decide(conversation):
                return
        self.agents.problems.append(f"turns of {[turn.member for turn in conversation.waiting]} do not end")

    async def _until_nothing_moves(self, conversation: Conversation) -> None:
        """Wait until all is quiet, or only sleeps."""
        asleep_for = 0
        while not conversation._journal.quiet.is_set() and asleep_for < STABLE_LOOKS:
            await asyncio.sleep(0.002)
            asleep_for = asleep_for + 1 if self._sleeps(conversation) else 0

    def _sleeps(self, conversation: Conversation) -> bool:
        loop = conversation._turns
        asleep = loop._stand_ins.asleep(self.clock.now())
        may_move = conversation.running or loop.tasks or conversation._journal.changed.is_set()
        return not may_move and any(turn.member in asleep for turn in conversation.waiting)

    async def _decide(self, conversation: Conversation) -> bool:
        """Do what is to be done next, and return whether there was anything."""
        agents = self.agents
        if conversation.undecided:
            ended = conversation.undecided[0]
            if self.chance.random() < 0.5:
                self.retried.add(ended.id)
                agents.spent = 0
                await conversation.retry(ended.id)
                agents.counts["retried by a person"] += 1
            else:
                agents.spent = 0
                await conversation.skip(ended.id)
            return True
        if conversation.paused is not None:
            agents.counts["caps reached"] += "since you last spoke" in conversation.paused
            if self.chance.random() < 0.5:
                return False
            await self._continue(conversation)
            return True
        if not conversation.waiting:
            return False
        if conversation.progress.blocked:
            # A turn before it failed and was left, or it may do more than who asked for it.
            await conversation.drop()
            return True
        if any(use.is_reached for use in conversation.budget_uses):
            agents.counts["budgets used up"] += 1
            if self.chance.random() < 0.5:
                await conversation.drop()
            else:
                agents.spent = 0
                agents.raise_budgets()
                await conversation.raise_budgets()
            return True
        agents.counts["slept"] += 1
        rests = [rest.until for rest in conversation.progress.rests.values() if rest.until > self.clock.now()]
        if not rests:
            agents.problems.append(f"{conversation.waiting[0].member} waits although nobody rests")
            return False
        self.clock.jump_to(min(rests))
        conversation._journal.changed.set()
        await asyncio.sleep(0.002)
        return True

    async def _continue(self, conversation: Conversation) -> None:
        self.agents.spent = 0
        self.agents.wake_all()
        await conversation.continue_turns()

    def run(self) -> list[str]:
        with pytest.MonkeyPatch.context() as patch:

            async def take_turn(agent: MemberAgent, given: Any, running: Any, *, emit: Any) -> Any:
                return await self.agents.take_turn(agent, given, running, emit=emit)

            next_turns, publish = TurnLoop._next_turns, Journal.publish

            async def begun(loop: TurnLoop) -> tuple[WaitingTurn, ...]:
                turns = await next_turns(loop)
                for turn in turns:
                    self.agents.begins(turn, loop._agents.of(turn))
                return turns

            def published(journal: Journal, *events: ConversationEvent) -> None:
                for event in events:
                    if isinstance(event, TurnEnded):
                        self.agents.ended(event.turn_id)
                publish(journal, *events)

            patch.setattr(TurnLoop, "_next_turns", begun)
            patch.setattr(Journal, "publish", published)
            patch.setattr(MemberAgent, "take_turn", take_turn)
            patch.setattr(stand_ins, "milliseconds", self.clock.now)
            patch.setattr(turn_loop, "milliseconds", self.clock.now)
            try:
                asyncio.run(asyncio.wait_for(self.play(), LONGEST_SECONDS))
            except TimeoutError:
                return [*self.agents.problems, "it does not end"]
            except BullpenError as error:
                return [*self.agents.problems, str(error)]
        with SqliteStore(self.folder / "c.db") as store:
            (conversation,) = store.conversations()
            turns, messages = store.turns(conversation.id), store.messages(conversation.id, limit=10_000)
        self.agents.counts["announcements"] += sum(one.message.speaker.role_id == "bullpen" for one in messages)
        return [*self.agents.problems, *broken_promises(self.agents, turns, messages, self.retried)]


def played(teams: int, seed: int, folder: Path) -> dict[str, Any]:
    """Let so many teams fail."""
    counts: Counter[str] = Counter()
    problems: list[str] = []
    for number in range(teams):
        place = folder / f"team-{number}"
        place.mkdir()
        trial = Trial(place, random.Random(f"{seed} {number}"))
        problems += [f"seed {seed}, team {number}: {problem}" for problem in trial.run()]
        counts += trial.agents.counts
    return {"counts": counts, "problems": problems}


if __name__ == "__main__":
    count_, seed_, _, folder_ = sys.argv[1:]
    print(json.dumps(played(int(count_), int(seed_), Path(folder_))))
