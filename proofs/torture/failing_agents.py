"""Agents in this process that fail at random, and what must hold of who runs when: a model of its own.

Each program (a CLI with a model) may be out of quota for everybody who uses it. Time is ours, and jumps.
"""

import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from msgspec import Struct

from bullpen.agents.runner import Reply
from bullpen.clock import milliseconds
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.member_agent import MemberAgent
from bullpen.conversation.running_turn import RunningTurn
from bullpen.errors import AgentFailed
from bullpen.routing.queue import WaitingTurn
from bullpen.turn_events import Failed, FailureKind, Finished, Started, ToolStarted, Usage

RESTS: dict[FailureKind, int] = {"quota": 1800, "overloaded": 120, "not_signed_in": 600, "not_installed": 600}
"""Seconds, as the docs say."""
OTHERS: tuple[FailureKind, ...] = ("crashed", "timed_out", "prompt_too_long")
POLITE = ("Thank you!", "Understood.", "I could not do it: 429.", "max failed: its quota is used up.", "Agreed.")
MOST_TOKENS = 400


class Run(Struct):
    """A program that took a turn."""

    turn: str
    role: str
    program: str
    tokens: int
    rest: int = 0
    """Until when the program cannot be used after it."""
    changed: bool = False
    is_started: bool = True
    """Whether its program was installed."""


class Clock:
    """Time that jumps."""

    def __init__(self) -> None:
        self._ahead = 0

    def now(self) -> int:
        return milliseconds() + self._ahead

    def jump_to(self, moment: int) -> None:
        self._ahead += max(0, moment - self.now()) + 1


class FailingAgents:
    """Takes the turns of all agents of one conversation."""

    def __init__(self, chance: random.Random, clock: Clock, folder: Path) -> None:
        self.problems: list[str] = []
        self.counts: Counter[str] = Counter()
        self.runs: list[Run] = []
        self.spent = 0
        """Tokens since a person last spoke or continued, of turns that have ended."""
        self.budgets: dict[str, int] = {}
        """What the team file gives: tokens to all of them, which is "", and turns to some members."""
        self.caps: dict[str, int] = {}
        """What a person has raised that to."""
        self.used: Counter[str] = Counter()
        """How much of each is used, by turns that have ended."""
        self.conversation: Conversation | None = None
        self.names: list[str] = []
        self._rests: dict[str, int] = {}
        self._begun: set[str] = set()
        self._chance, self._clock, self._folder = chance, clock, folder
        self._luck = chance.choice([0.1, 0.4, 0.7])

    def wake_all(self) -> None:
        """Note that a person wants every program to be tried again."""
        self._rests.clear()

    def raise_budgets(self) -> None:
        """Note that a person has raised what is used up."""
        for whose, amount in self.budgets.items():
            if self.used[whose] >= self.caps[whose]:
                self.caps[whose] = max(self.caps[whose], self.used[whose]) + amount

    def begins(self, turn: WaitingTurn, agent: MemberAgent) -> None:
        """Check that a turn may begin that was just taken out of the queue."""
        conversation = self.conversation
        assert conversation is not None
        member, limits, program = conversation.team.member(turn.member), conversation.team.limits, _program(agent)
        where = f"turn {turn.id} of {member.name} with {program}"
        if turn.id in self._begun:
            self.problems.append(f"{where} began twice")
        self._begun.add(turn.id)
        if member.stand_in and self._clock.now() < self._rests.get(program, 0):
            self.problems.append(f"{where} was asked while it rests")
        if limits.tokens is not None and self.spent >= limits.tokens:
            self.problems.append(f"{where} began beyond the cap: {self.spent} of {limits.tokens} tokens were used")
        for whose in ("", member.name):
            if whose in self.caps and self.used[whose] >= self.caps[whose]:
                spent = f"{self.used[whose]} of {self.caps[whose]} are used"
                self.problems.append(f"{where} began beyond the budget of {whose or 'all'}: {spent}")

    def ended(self, turn_id: str) -> None:
        """Note that the end of a turn is stored."""
        for run in self.runs:
            if run.turn == turn_id:
                self.spent += run.tokens
                self.used[""] += run.tokens
                self.used[run.role] += run.is_started
                self._rests[run.program] = max(run.rest, self._rests.get(run.program, 0))

    async def take_turn(self, agent: MemberAgent, given: Any, running: RunningTurn, *, emit: Any) -> Reply:
        """Reply or fail; in place of MemberAgent.take_turn."""
        del given
        name, usage = agent.member.name, Usage(input_tokens=self._chance.randint(0, MOST_TOKENS))
        run = Run(running.turn.id, name, _program(agent), usage.input_tokens)
        if any(one.turn == run.turn for one in self.runs):
            self.problems.append(f"turn {run.turn} of {name} ran twice")
        self.runs.append(run)
        self._count(run)
        emit(usage)
        if self._chance.random() < self._luck:
            self._fail(run, agent, emit)
        text = f"Reply {len(self.runs)}. {self._last_words(name)}"
        emit(Finished(text=text))
        return Reply(text=text, usage=usage, started=Started(), command=("x",), seconds=0)

    def _count(self, run: Run) -> None:
        assert self.conversation is not None
        member, progress = self.conversation.team.member(run.role), self.conversation.progress
        if progress.turns > self.conversation.team.limits.turns_per_message:
            self.problems.append(f"turn {run.turn} of {run.role} began beyond the cap of turns")
        self.counts["turns that ran"] += 1
        self.counts["stand-ins that ran"] += f"{member.agent}/{member.model or ''}" != run.program

    def _fail(self, run: Run, agent: MemberAgent, emit: Any) -> None:
        assert self.conversation is not None
        kind = self._chance.choice((*RESTS, *RESTS, *OTHERS))
        if self._chance.random() < 0.3:
            emit(ToolStarted(id="1", name="Bash", input={"command": "true"}))
            if agent.member.permissions != "read-only" and self._chance.random() < 0.5:
                (self._folder / f"made-{run.turn}").write_text("x")
                run.changed = True
        seconds = self._chance.choice([None, 1, 60, 7200]) if kind == "quota" else None
        if kind in RESTS and self.conversation.team.member(run.role).stand_in:
            run.rest = self._clock.now() + 1000 * max(20, RESTS[kind] if seconds is None else seconds)
        run.is_started = kind != "not_installed"
        self.counts[f"failures: {kind.replace('_', ' ')}"] += 1
        failed = Failed(kind=kind, message="no luck", reset_at=None if seconds is None else f"{seconds}s")
        raise AgentFailed(agent.member.name, failed)

    def _last_words(self, name: str) -> str:
        others = [other for other in self.names if other != name]
        match self._chance.randrange(6):
            case 0 if len(others) > 1:
                return f"[NEXT: {others[0]} & {others[1]}]"
            case 1 | 2 if others:
                return f"[NEXT: {self._chance.choice(others)}]"
            case _:
                return self._chance.choice(POLITE)


def _program(agent: MemberAgent) -> str:
    """Return what has a quota of its own."""
    return f"{agent.member.agent}/{agent.member.model or ''}"


def broken_promises(agents: FailingAgents, stored: Any, messages: Any, by_people: set[str]) -> list[str]:
    """Return what is wrong with the turns of a conversation that has ended; `by_people` were retried by a person."""
    turns = {turn.id: turn for turn in stored}
    said = {one.message.id: one.message for one in messages}
    found = [f"turn {turn.id} is {turn.state}" for turn in stored if turn.state in ("queued", "running")]
    found += [
        f"turn {t.id} is {t.state} with the reply {t.reply_id}"
        for t in stored
        if (t.state == "done") != bool(t.reply_id)
    ]
    replies = Counter(turn.reply_id for turn in stored if turn.reply_id)
    found += [f"{reply} is the reply of {count} turns" for reply, count in replies.items() if count > 1]
    for turn in stored:
        asking = said.get(turn.message_id)
        to = asking.routing.resolved_addressees if asking is not None and asking.routing is not None else ()
        if turn.member not in to:
            found.append(f"turn {turn.id} of {turn.member} was woken by {turn.message_id}, which asks {to}")
    runs = {run.turn: run for run in agents.runs}
    answered: dict[tuple[str, str, int], int] = defaultdict(int)
    for turn in stored:
        answered[turn.message_id, turn.member, turn.step] += turn.state == "done"
        before = runs.get(turn.retry_of or "")
        if before is not None and before.changed and before.turn not in by_people:
            found.append(f"turn {turn.id} is taken over although {before.program} had changed files in {before.turn}")
    found += [
        f"{member} answered {message} {count} times" for (message, member, _), count in answered.items() if count > 1
    ]
    retried = Counter(turn.retry_of for turn in stored if turn.retry_of)
    found += [f"turn {turn} was taken over {count} times" for turn, count in retried.items() if count > 1]
    assert all(turn.retry_of in turns for turn in stored if turn.retry_of)
    return found
