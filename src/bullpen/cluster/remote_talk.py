"""RemoteTalk: what an agent on a worker asks and calls, and what is said to it, as its conversation's owner sees it."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from bullpen.agents.dialogue import MOST_OPEN, NOT_ANSWERED
from bullpen.cluster.database import Database
from bullpen.cluster.orders import new_token
from bullpen.cluster.turn_log import Called, Took, Uncalled
from bullpen.cluster.words import Answered, Returned, Told, leave_word
from bullpen.conversation.running_turn import RunningTurn
from bullpen.tools.calls import Answer as CallAnswer
from bullpen.tools.calls import Call
from bullpen.turn_events import ApprovalAsked, ApprovalOver, Event

logger = logging.getLogger(__name__)

NO_TOOLS = "This member has no tools any more: the team file was changed. Continue without them."


class RemoteTalk:
    """The talk with the agent of one turn."""

    def __init__(self, database: Database, node: int, key: tuple[str, str], running: RunningTurn) -> None:
        self._database = database
        self._node = node
        self._key = key
        self._running = running
        self._asking: dict[str, asyncio.Task[None]] = {}
        """What is asked, until the worker has the answer or takes the question back."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._told: dict[str, asyncio.Future[bool]] = {}
        self._calling: dict[int, asyncio.Task[None]] = {}
        """What is called, until the worker has the answer or does not wait for it any more."""

    def on_event(self, event: Event) -> None:
        """Ask what the agent asks. An owner that has just adopted its turn hears all of it again."""
        match event:
            case ApprovalAsked() if event.id not in self._asking and len(self._asking) < MOST_OPEN:
                self._asking[event.id] = self._begin(self._ask(event))
            case ApprovalOver() if event.id in self._asking:
                self._asking.pop(event.id).cancel()
            case _:
                pass

    def on_listens(self) -> None:
        """Note that the agent can be told something."""
        self._running.tell, self._running.can_be_told = self._tell, True

    def on_took(self, took: Took) -> None:
        """Note whether the agent took what it was told."""
        if (told := self._told.get(took.word)) is not None and not told.done():
            told.set_result(took.is_taken)

    def on_called(self, called: Called) -> None:
        """Do what the agent calls. An owner that has just adopted its turn does all of it again, which changes nothing.

        What it looks up is not sent again, a hand-over or a note that is known already counts once, and a question that
        was answered is not asked again.
        """
        if called.call not in self._calling:
            task = self._calling[called.call] = self._begin(self._call(called))
            task.add_done_callback(lambda _: self._calling.pop(called.call, None))

    def on_uncalled(self, uncalled: Uncalled) -> None:
        """Give up what nobody waits for any more."""
        if (task := self._calling.get(uncalled.call)) is not None:
            task.cancel()

    def on_called_before(self, called: Called) -> None:
        """Note what was called in a turn that has ended by now."""
        if self._running.tools is not None:
            self._running.tools.recall(called.tool, called.arguments)

    async def close(self) -> None:
        """Ask and tell nothing any more: the turn has ended, or nobody follows it here."""
        for told in self._told.values():
            if not told.done():
                told.set_result(False)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _ask(self, asked: ApprovalAsked) -> None:
        try:
            answer = await self._running.ask(asked)
        except Exception:
            if self._running.is_left:
                # The next owner asks again.
                return
            logger.exception("not asked key=%s question=%s", self._key, asked.id)
            answer = NOT_ANSWERED
        await leave_word(self._database, self._node, self._key, Answered(asked.id, answer))

    async def _call(self, called: Called) -> None:
        if self._running.tools is None:
            answer = CallAnswer(id=called.call, text=NO_TOOLS, is_error=True)
        else:
            call = Call(id=called.call, tool=called.tool, arguments=called.arguments)
            answer = await self._running.tools.answer(call, number=called.call)
        # If it is left, the next owner answers.
        if not self._running.is_left:
            await leave_word(self._database, self._node, self._key, Returned(called.call, answer.text, answer.is_error))

    def _begin(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _tell(self, text: str) -> bool:
        """Tell the agent something, and return whether its model gets it in this turn, as its worker says."""
        word = Told(new_token(), text)
        told: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._told[word.id] = told
        try:
            await leave_word(self._database, self._node, self._key, word)
            return await told
        finally:
            del self._told[word.id]
