"""Two people who answer what agents ask: at random, at the same time, too late, and with doors that close."""

import asyncio
import random
from collections.abc import Awaitable, Iterable
from contextlib import suppress

from proofs.torture.asking_team import APPROVED, IMPATIENT, AskingTeam

from bullpen.approvals import Answer, Scope
from bullpen.conversation.approvals import Unattended
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Asked
from bullpen.errors import BullpenError, NothingAsked

SCOPES: tuple[Scope, ...] = ("once", "once", "turn", "conversation", "team")
LONGEST_SECONDS = 15.0
"""An agent whose question is lost waits for ever."""


class People:
    """Whoever is there during one life of a conversation."""

    def __init__(self, team: AskingTeam, conversation: Conversation, chance: random.Random) -> None:
        self._team = team
        self._conversation = conversation
        self._random = chance
        self._doors: set[asyncio.Task[object]] = set()
        self._at_work: set[tuple[str, str]] = set()

    async def live(self, turns: int) -> None:
        """Let agents work, and answer what they ask; sometimes leave while they still do."""
        conversation = self._conversation
        for _ in range(turns):
            await self._settle()
            conversation.approvals.unattended = Unattended(allow=(APPROVED,)) if self._random.random() < 0.2 else None
            whom = self._random.choice(["a", "b", "c", "a & b", "a & c", "a & b & c"])
            await conversation.say(f"Go. [NEXT: {whom}]", sender="kim")
            leaves = self._random.random() < 0.15
            await self._answer_until_quiet(self._random.uniform(0, 0.3) if leaves else LONGEST_SECONDS, leaves=leaves)
            if leaves:
                return
        await self._all(self._doors)

    async def _settle(self) -> None:
        """Decide on what has not ended well."""
        conversation = self._conversation
        with suppress(BullpenError):
            for ended in conversation.undecided:
                await conversation.skip(ended.id)
            await conversation.continue_turns()

    async def _answer_until_quiet(self, seconds: float, *, leaves: bool) -> None:
        quiet = asyncio.ensure_future(self._conversation.until_quiet())
        deadline = asyncio.get_running_loop().time() + seconds
        while not quiet.done() and asyncio.get_running_loop().time() < deadline:
            for key, event in list(self._conversation.approvals.open.items()):
                if key not in self._at_work:
                    self._at_work.add(key)
                    self._open_door(self._deal_with(event))
            await asyncio.wait([quiet], timeout=0.002)
        if not quiet.done() and not leaves:
            left = [f"{event.member}: {event.question.command}" for event in self._conversation.approvals.open.values()]
            self._team.note("lost", f"nothing happened for {seconds:g} seconds, and {left or 'nothing'} is asked")
            await self._conversation.cancel()
        quiet.cancel()

    async def _deal_with(self, event: Asked) -> None:
        if event.member == IMPATIENT:
            await asyncio.sleep(self._random.uniform(0, 0.12))
        else:
            await asyncio.sleep(self._random.choice([0, 0, 0, 0.01, 0.05]))
        match self._random.randrange(20):
            case 0 | 1 | 2 | 3:
                await self._all([self._answer(event, "kim"), self._answer(event, "lee")])
            case 4:
                await self._all([self._answer(event, "kim"), self._cancel(event)])
            case 5 | 6:
                # A door closes while the answer is on its way. Somebody else answers, or is told that it counts.
                door = self._open_door(self._answer(event, "kim"))
                await asyncio.sleep(self._random.choice([0, 0, 0.001, 0.003]))
                door.cancel()
                await asyncio.sleep(0.05)
                await self._answer(event, "lee")
                await self._look_whether_it_is_over(event)
            case 7:
                await self._answer(event, "lee", question="q77")
                await self._answer(event, "lee")
            case _:
                await self._answer(event, self._random.choice(["kim", "lee"]))

    async def _answer(self, event: Asked, by: str, question: str = "") -> None:
        question, scope = question or event.question.id, self._random.choice(SCOPES)
        answer = self._random_answer()
        said = [event.turn_id, question, by, answer.verdict, answer.command, scope]
        self._team.note("says", self._conversation.id, *said)
        try:
            await self._conversation.answer(event.turn_id, question, answer, scope=scope, by=by)
            self._team.note("accepted", self._conversation.id, *said)
        except NothingAsked as error:
            self._team.note("lost" if question == event.question.id else "told", str(error))
        except BullpenError as error:
            self._team.note("told", type(error).__name__)

    async def _look_whether_it_is_over(self, event: Asked) -> None:
        for _ in range(200):
            if (event.turn_id, event.question.id) not in self._conversation.approvals.open:
                return
            await asyncio.sleep(0.01)
        self._team.note("lost", f"the answer to {event.question.command!r} is stored, and it is still asked")

    def _random_answer(self) -> Answer:
        match self._random.randrange(40):
            case 0:
                return Answer(verdict="stop", reason="enough")
            case 1 | 2:
                return Answer(verdict="yes", command="make 4")
            case number if number < 18:
                return Answer(verdict="no", reason="not today")
            case _:
                return Answer(verdict="yes")

    async def _cancel(self, event: Asked) -> None:
        await asyncio.sleep(self._random.choice([0, 0, 0.001]))
        with suppress(BullpenError):
            await self._conversation.cancel(event.turn_id, by="lee")
            self._team.note("told", "cancelled")

    def _open_door(self, work: Awaitable[object]) -> "asyncio.Task[object]":
        task: asyncio.Task[object] = asyncio.ensure_future(work)
        self._doors.add(task)
        task.add_done_callback(self._doors.discard)
        return task

    async def _all(self, work: Iterable[Awaitable[object]]) -> None:
        for outcome in await asyncio.gather(*work, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome
