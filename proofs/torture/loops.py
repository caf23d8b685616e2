"""Random teams that loop: `python -m proofs.torture.loops COUNT SEED FOLDER` prints what it found as JSON.

Every reply hands over to somebody, so nothing but a cap ends a conversation. Some are killed on the way.
"""

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from proofs.torture.teams import LoopingTeam, tell_agents_their_turns

from bullpen import open_team
from bullpen.conversation.conversation import Conversation

LONGEST_SECONDS = 30
ONE_IN = 5
"""So many teams for each that is killed on the way."""


class Loops:
    """Runs the teams, one after the other."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.stops: Counter[str] = Counter()
        self.problems: list[str] = []
        self.turns = self.kills = 0

    def run(self, count: int) -> dict[str, Any]:
        for number in range(self.seed, self.seed + count):
            team = LoopingTeam(self.folder / str(number), number)
            team.write()
            if number % ONE_IN == 0:
                self._kill_one(team)
            asyncio.run(self._run_one(team, killed=number % ONE_IN == 0))
            self.turns += len(team.runs())
        return {
            "teams": count,
            "killed": self.kills,
            "turns": self.turns,
            "stops": self.stops,
            "problems": self.problems,
        }

    def _kill_one(self, team: LoopingTeam) -> None:
        """Let the team loop in a process that is killed while the agents are at it."""
        pid = os.fork()
        if pid == 0:
            asyncio.run(_begin(team, die_after=team.random.randint(1, 6)))
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        self.kills += os.WIFSIGNALED(status)

    async def _run_one(self, team: LoopingTeam, *, killed: bool) -> None:
        file = team.folder / "conversation"
        resume = file.read_text() if killed else None
        async with open_team(team.path, resume=resume, db=team.db) as conversation:
            try:
                if resume is not None:
                    self._check_counts(team, conversation)
                    before = len(team.runs())
                    await conversation.until_quiet()
                    if len(team.runs()) > before:
                        self.problems.append(f"{team.folder}: something ran by itself after the kill")
                await asyncio.wait_for(self._until_it_stops(team, conversation), LONGEST_SECONDS)
            except TimeoutError:
                self.problems.append(f"{team.folder} does not stop")

    async def _until_it_stops(self, team: LoopingTeam, conversation: Conversation) -> None:
        await conversation.say(team.word())
        for _ in range(2):
            before = len(team.runs())
            await conversation.until_quiet()
            self._check_counts(team, conversation)
            if len(team.runs()) - before > team.limits["turns_per_message"]:
                self.problems.append(f"{team.folder}: more turns than the cap allows")
            if conversation.paused is None:
                self.problems.append(f"{team.folder} is quiet without a cap")
            self.stops[" ".join((conversation.paused or "").split()[-4:])] += 1
            await conversation.continue_turns()
        await conversation.until_quiet()

    def _check_counts(self, team: LoopingTeam, conversation: Conversation) -> None:
        if conversation.progress.turns > team.limits["turns_per_message"]:
            self.problems.append(f"{team.folder}: {conversation.progress.turns} turns counted")


async def _begin(team: LoopingTeam, die_after: int) -> None:
    async with open_team(team.path, db=team.db) as conversation:
        (team.folder / "conversation").write_text(conversation.id)
        await conversation.say(team.word())
        while len(team.runs()) < die_after and not conversation.paused:
            await asyncio.sleep(0.002)
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    tell_agents_their_turns()
    count, seed, folder = sys.argv[1:]
    print(json.dumps(Loops(Path(folder), int(seed)).run(int(count))))
