"""Dialogue: what is said to a program while it runs: answers to its questions, and words of people."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from bullpen.agents.asked_time import AskedTime
from bullpen.agents.driver import Driver
from bullpen.approvals import NOBODY_ANSWERS, Answer
from bullpen.turn_events import ApprovalAsked, ApprovalOver, Event

Ask = Callable[[ApprovalAsked], Awaitable[Answer]]
"""Gets the answer to a question; it is cancelled when nobody waits for the answer any more."""
Tell = Callable[[str], bool]
"""Gives words to an agent that is working; False: its model does not get them in this turn."""

MOST_OPEN = 100
"""Questions of one turn at once. Any more are refused: no person could answer them."""
NOT_ANSWERED = Answer(verdict="no", reason="Nobody could be asked: something went wrong in bullpen.")
TOO_MANY = Answer(verdict="no", reason=f"You ask {MOST_OPEN} questions at once. Wait for the answers.")


async def nobody(_: ApprovalAsked) -> Answer:
    """Answer where there are no people."""
    return NOBODY_ANSWERS


class Dialogue:
    """One turn's talk with its program, by way of a driver."""

    def __init__(self, driver: Driver, ask: Ask, emit: Callable[[Event], None], asked: AskedTime, folder: Path) -> None:
        self._driver = driver
        self._folder = folder.resolve()
        self._ask = ask
        self._emit = emit
        self._write: Callable[[bytes], None] | None = None
        self._open: dict[str, _Asking] = {}
        """By the program's own ids."""
        self._tasks: set[asyncio.Future[Answer]] = set()
        """Also those of questions that were taken back, until they have ended."""
        self._used: set[str] = set()
        self._loop = asyncio.get_running_loop()
        self.over: asyncio.Future[None] = self._loop.create_future()
        """Done when nothing more is said."""
        self._asked = asked

    def take_outgoing(self) -> bytes:
        """Return what is to be sent next."""
        records, self._driver.outgoing[:] = list(self._driver.outgoing), []
        return b"".join(msgspec.json.encode(record) + b"\n" for record in records)

    def connect(self, write: Callable[[bytes], None]) -> None:
        """Send from now on what is to be sent."""
        self._write = write
        self.send()

    def send(self) -> None:
        """Send what is to be sent, if anything is."""
        if self._write is not None and self._driver.outgoing:
            self._write(self.take_outgoing())

    def tell(self, text: str) -> bool:
        """Give words to the agent; return whether its model gets them in this turn."""
        is_taken = self._write is not None and self._driver.tell(text)
        self.send()
        return is_taken

    def on_asked(self, question: ApprovalAsked) -> None:
        """Get an answer to a question. The same one is not asked twice at once, and none after the end.

        Another one with the same id takes the place of the first: no answer to that counts any more.
        """
        before = self._open.get(question.id)
        if self.over.done() or (before is not None and before.question == question):
            return
        self._take_back(question.id)
        if len(self._open) >= MOST_OPEN:
            self._driver.answer(question.id, TOO_MANY)
            return
        self._asked.begin()
        asked = replace(question, id=self._new_id(question.id), elsewhere=self._is_elsewhere(question))
        self._emit(asked)
        task = asyncio.ensure_future(self._ask(asked))
        self._tasks.add(task)
        self._open[question.id] = asking = _Asking(question, asked.id, task)
        # A task that is cancelled before it begins runs nothing of its own.
        task.add_done_callback(partial(self._answered, asking))

    def _is_elsewhere(self, asked: ApprovalAsked) -> bool:
        """Return whether a command would run in another folder than the agent's own, or nobody knows where."""
        is_here = asked.folder != "" and Path(asked.folder).resolve() == self._folder
        return asked.kind == "command" and not is_here

    def _new_id(self, given: str) -> str:
        """Return the id of a question: one that a program uses again gets a number.

        The answer to one question is never the answer to another.
        """
        ids = (given if number == 1 else f"{given}.{number}" for number in count(1))
        chosen = next(one for one in ids if one not in self._used)
        self._used.add(chosen)
        return chosen

    def on_over(self, over: ApprovalOver) -> None:
        """Ask nobody any more: the program has taken a question back."""
        self._take_back(over.id)

    def _take_back(self, question: str) -> None:
        if asking := self._open.pop(question, None):
            asking.task.cancel()

    def _answered(self, asking: "_Asking", task: "asyncio.Future[Answer]") -> None:
        self._asked.end()
        self._tasks.discard(task)
        # An answer that comes when the question was taken back is not the answer to another one with its id.
        is_answered = self._open.get(asking.question.id) is asking and not task.cancelled()
        if self._open.get(asking.question.id) is asking:
            del self._open[asking.question.id]
        if is_answered:
            # Without a record of the answer, nothing may be done.
            self._driver.answer(asking.question.id, NOT_ANSWERED if task.exception() else task.result())
        elif not task.cancelled():
            task.exception()
        self._emit(ApprovalOver(id=asking.known_as, is_answered=is_answered))
        self.send()

    def close(self, *, interrupted: bool = False) -> None:
        """Ask nobody any more; if it is interrupted, tell the program so."""
        for task in list(self._tasks):
            task.cancel()
        if interrupted:
            self._driver.interrupt()
            self.send()
        self._write = None
        if not self.over.done():
            self.over.set_result(None)

    async def closed(self) -> None:
        """Wait until nobody is asked any more."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))


class _Asking(NamedTuple):
    """A question that waits for its answer."""

    question: ApprovalAsked
    known_as: str
    task: "asyncio.Future[Answer]"
