"""Words: what is said to an agent that runs on a worker: answers to its questions and calls, and what people tell it.

They go through the database, which has stored them by then in any case; so they need no connection, and no owner that
lives until they are heard. A word that is left again is there once, and a worker hears each one once.
"""

import asyncio
import hashlib
import logging
from itertools import count
from typing import LiteralString

import msgspec
from msgspec import Struct
from msgspec.msgpack import Decoder

from bullpen.agents.asked_time import AskedTime
from bullpen.agents.dialogue import Tell
from bullpen.approvals import Answer
from bullpen.cluster.bell import Bell, ring
from bullpen.cluster.database import Database
from bullpen.cluster.telling import Telling
from bullpen.cluster.turn_log import Called, Listens, Took, Uncalled
from bullpen.tools.calls import MOST_CALLS, TOO_MANY_CALLS, Call, WrongCall, read_call
from bullpen.tools.calls import Answer as CallAnswer
from bullpen.turn_events import ApprovalAsked

logger = logging.getLogger(__name__)

WORDS = "bullpen_words"
LOOK_SECONDS = 5.0
"""How often to look even if nobody rings."""
SAID_TOO_MUCH = Answer(verdict="no", reason="Nobody can be asked any more: you have said too much in this turn.")


class Answered(Struct, frozen=True, tag="answered"):
    """The answer to a question, which is stored."""

    question: str
    answer: Answer


class Told(Struct, frozen=True, tag="told"):
    """What a person tells an agent while it works."""

    id: str
    text: str


class Returned(Struct, frozen=True, tag="returned"):
    """What a call of a tool returned, or why it failed."""

    call: int
    text: str
    is_error: bool = False


Word = Answered | Told | Returned

_decoder = Decoder[Word](Word)


async def leave_word(database: Database, node: int, key: tuple[str, str], word: Word) -> None:
    """Leave a word for the agent of a turn of this node, unless that has ended."""
    packed = msgspec.msgpack.encode(word)
    query: LiteralString = "SELECT leave_word(%s, %s, %s, %s, %s)"
    # What a call returned to one owner is what it returned, even if another one has looked it up again.
    name = f"call-{word.call}" if isinstance(word, Returned) else hashlib.sha256(packed).hexdigest()
    await database.do(query, node, *key, name, packed)


class Listening:
    """The words for one turn, on its worker."""

    def __init__(self, database: Database, bell: Bell, worker: int, key: tuple[str, str], telling: Telling) -> None:
        self._database = database
        self._bell = bell
        self._worker = worker
        self._key = key
        self._telling = telling
        self._tell: Tell = lambda _: False
        self._can_hear = asyncio.Event()
        self._open: dict[str, asyncio.Future[Answer]] = {}
        self._calls: dict[int, asyncio.Future[Returned]] = {}
        self._numbers = count(1)
        self._heard = 0
        self.asked = AskedTime()
        """How long the agent has waited for what it called."""

    def on_tell(self, tell: Tell) -> None:
        """Give words to an agent that can hear some."""
        self._tell = tell
        self._telling.add(Listens())
        self._can_hear.set()

    def ask(self, question: ApprovalAsked) -> "asyncio.Future[Answer]":
        """Return what becomes the answer to a question that was just told."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        if self._telling.log.is_full:
            answer.set_result(SAID_TOO_MUCH)
            return answer
        self._open[question.id] = answer
        answer.add_done_callback(lambda _: self._open.pop(question.id))
        return answer

    async def call(self, call: Call) -> CallAnswer:
        """Return what a call of a tool gives, from whichever owner the conversation has by then."""
        try:
            read_call(call.tool, call.arguments)
        except WrongCall as error:
            return CallAnswer(id=call.id, text=str(error), is_error=True)
        if self._telling.log.is_full:
            return CallAnswer(id=call.id, text=SAID_TOO_MUCH.reason, is_error=True)
        number = next(self._numbers)
        if number > MOST_CALLS:
            return CallAnswer(id=call.id, text=TOO_MANY_CALLS, is_error=True)
        waiting = self._calls[number] = asyncio.get_running_loop().create_future()
        self._telling.add(Called(number, call.tool, call.arguments))
        self._can_hear.set()
        try:
            with self.asked.asking():
                returned = await waiting
        except asyncio.CancelledError:
            self._telling.add(Uncalled(number))
            raise
        finally:
            del self._calls[number]
        return CallAnswer(id=call.id, text=returned.text, is_error=returned.is_error)

    async def listen(self) -> None:
        """Pass words on as they come, until it is cancelled."""
        await self._can_hear.wait()
        query: LiteralString = "SELECT number, word FROM words_of(%s, %s, %s, %s)"
        with self._bell.waiting(WORDS, payload=" ".join(self._key)) as ringing:
            while True:
                ringing.clear()
                for number, word in await self._database.do(query, self._worker, *self._key, self._heard):
                    self._heard = number
                    self._hear(word)
                await ring(ringing, LOOK_SECONDS)

    def _hear(self, packed: bytes) -> None:
        try:
            word = _decoder.decode(packed)
        except msgspec.MsgspecError as error:
            logger.warning("word not read key=%s error=%s", self._key, error)
            return
        match word:
            case Answered():
                waiting = self._open.get(word.question)
                if waiting is not None and not waiting.done():
                    waiting.set_result(word.answer)
            case Told():
                self._telling.add(Took(word.id, self._tell(word.text)))
            case Returned():
                call = self._calls.get(word.call)
                if call is not None and not call.done():
                    call.set_result(word)
