"""RunningTurn: one turn while it runs: what it has said so far, and what will be recorded."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from bullpen.agents.asked_time import AskedTime
from bullpen.agents.dialogue import Ask, Tell, nobody
from bullpen.agents.failures import RETRIES, server_trouble
from bullpen.clock import milliseconds
from bullpen.errors import AgentFailed, BullpenError, WorkerLost
from bullpen.memory import Memory
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import EndState, PackedStream, TurnEnd
from bullpen.store.packing import StreamPacker
from bullpen.text.numbers import clock
from bullpen.text.secrets import without_secrets
from bullpen.turn_events import (
    ApprovalAsked,
    ApprovalOver,
    Event,
    Failed,
    Finished,
    Notice,
    Started,
    TextDelta,
    Thinking,
    TodoList,
    ToolFinished,
    ToolStarted,
    Usage,
    is_work,
)

if TYPE_CHECKING:
    from bullpen.conversation.turn_tools import TurnTools

logger = logging.getLogger(__name__)

ASKING = "waiting for an answer"
TRIES_AGAIN = tuple(trouble.now for _, trouble in RETRIES)
CANCELLED = Failed(kind="cancelled", message="The turn was cancelled.")
# Some agents use a thousand tools in a turn. Nobody scrolls back through more.
MOST_STEPS = 1_000
MOST_KEPT_BYTES = 16 * 1024 * 1024
"""Of the output that is stored while it comes; all of it is stored when the turn ends, up to the stream's limit."""


class RunningTurn:
    """A running turn."""

    def __init__(self, turn: WaitingTurn) -> None:
        self.turn = turn
        self.began_at = milliseconds()
        self.may_be_left = False
        """Whether it continues elsewhere although nobody follows it here any more, if it has begun there."""
        self.is_recorded = False
        """Whether the store has recorded that it is running."""
        self.is_end_stored = False
        """Whether the store has recorded how it ended."""
        self.remark = ""
        """What people should know when it begins: who stands in for its member, and why."""
        self.model = ""
        """As its CLI says."""
        self.usage: Usage | None = None
        self.reported_usage: Usage | None = None
        """As the CLI reports it, which may be that of all turns in its session."""
        self.used_before: Usage | None = None
        """What earlier turns have used of that."""
        self.why_again = ""
        """Why its worker began a new session instead of continuing the one that was planned; empty: it did not."""
        self.knows_session = asyncio.Event()
        """Set when its worker has told that."""
        self.memory: Memory | None = None
        """The session that it leaves, once it has ended well."""
        self.has_begun = False
        """Whether the agent has said or done anything yet."""
        self.has_acted = False
        """Whether it has used a tool."""
        self.todo: TodoList | None = None
        self.steps: list[ToolStarted | ToolFinished | Notice] = []
        """What it did so far, except for what it said."""
        self.doing = "starting"
        """The last thing it began, in a few words."""
        self._tool = ""
        """The tool that it uses now, as far as it says so."""
        self._heard_at = self.began_at
        self.reply = ""
        """All that it has said, once it has finished."""
        self.texts_at: tuple[int, ...] = ()
        """Where in that each text begins but the first one: between them, it used tools."""
        self.doubt = ""
        """Why words may be missing in it."""
        self.ask: Ask = nobody
        """Answers what it asks."""
        self.asks_no_more = "it was over before an answer"
        """Why a question of it is closed that nobody has answered."""
        self.tell: Callable[[str], Awaitable[bool]] = _not_told
        """Gives it words while it works; says whether its model gets them in this turn."""
        self.can_be_told = False
        """Whether its CLI can take them."""
        self.tools: TurnTools | None = None
        """What it can call; None: nothing."""
        self.server: tuple[str, ...] = ()
        """The command of the MCP server through which it calls that."""
        self.asked = AskedTime()
        """How long people were asked."""
        self.why_ended = ""
        """Why bullpen itself ended it; empty: it did not."""
        self.is_cancelled = False
        """Whether a person has cancelled it: they need not be asked about it."""
        self.reported_at = 0
        """When it last said what it has used, if it has done nothing since: it may be about to end."""
        self._pieces: list[str] = []
        self._cancelled = CANCELLED
        self._command: tuple[str, ...] = ()
        self._packer = StreamPacker()
        self._stream: PackedStream | None = None
        self._not_kept = bytearray()
        self._room_to_keep = MOST_KEPT_BYTES

    @property
    def is_left(self) -> bool:
        """Whether it continues elsewhere. While the commit that begins it is under way, nobody can say."""
        return self.may_be_left and self.is_recorded

    @property
    def text(self) -> str:
        """All that it has said so far."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    @property
    def doing_now(self) -> str:
        """What it does, in a few words. One that has been silent for long may wait for something that we do not see."""
        minutes = (milliseconds() - self._heard_at) // 60_000
        if not minutes or self.doing == ASKING or self.doing.startswith(TRIES_AGAIN):
            return self.doing
        silence = f"silent for {minutes} min"
        return f"{self.doing}, {silence}" if self._tool else f"waiting? {silence}"

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return (milliseconds() - self.began_at) / 1000

    @property
    def worked(self) -> float:
        """For how many seconds it has worked: people who are asked may take their time."""
        return max(0.0, self.seconds - self.asked.seconds)

    def on_event(self, event: Event) -> None:
        """Remember what an event says."""
        self.has_begun = self.has_begun or is_work(event)
        self.has_acted = self.has_acted or isinstance(event, ToolStarted)
        self._heard_at = milliseconds()
        if isinstance(event, Usage | TextDelta | Thinking | ToolStarted | ToolFinished | ApprovalAsked):
            self.reported_at = self._heard_at if isinstance(event, Usage) else 0
        match event:
            case TextDelta():
                self._pieces.append(event.text)
                self.doing = "writing"
            case Thinking():
                self.doing = "thinking"
            case ToolStarted():
                self.doing = self._tool = event.name
                self._add_step(event)
            case ToolFinished():
                # The model has its result now.
                self.doing, self._tool = "thinking", ""
                self._add_step(event)
            case ApprovalAsked():
                self.doing = ASKING
            case ApprovalOver():
                self.doing = "thinking"
            case Notice(kind="retry", text=reason, attempts=attempts) if attempts:
                # One step that counts.
                if (
                    attempts > 1
                    and self.steps
                    and isinstance(self.steps[-1], Notice)
                    and self.steps[-1].kind == "retry"
                ):
                    self.steps.pop()
                self.doing = f"{server_trouble(reason).now}, attempt {attempts} since {clock(event.since)}"
                self._add_step(event)
            case Notice():
                self._add_step(event)
            case TodoList():
                self.todo = event
            case Started(model=str(model)):
                self.model = model
            case Usage():
                self.usage = event
            case Finished():
                self.reply, self.texts_at, self.doubt = event.text, event.texts_at, event.doubt
            case Failed(kind="cancelled"):
                self._cancelled = event
            case _:
                pass

    def on_begun_again(self, reason: str) -> None:
        """Remember that it runs in a new session: nothing was used in that before."""
        self.why_again = reason
        self.used_before = None
        self.knows_session.set()

    def on_tell(self, tell: Tell) -> None:
        """Remember how it can be told something, here."""

        async def told(text: str) -> bool:
            return tell(text)

        self.tell, self.can_be_told = told, True

    def on_command(self, command: tuple[str, ...]) -> None:
        """Remember the command line."""
        self._command = command

    def on_output(self, data: bytes) -> None:
        """Keep what the program writes, up to a limit."""
        self._heard_at = milliseconds()
        self._packer.feed(data)
        kept = data[: self._room_to_keep]
        self._room_to_keep -= len(kept)
        self._not_kept += kept

    def put_back(self, output: bytes) -> None:
        """Take output back that could not be stored; the next call returns it first."""
        self._not_kept[:0] = output

    def take_output(self) -> bytes:
        """Return what the program has written since the last call."""
        data = bytes(self._not_kept)
        self._not_kept.clear()
        return data

    def end(self, state: EndState, failure: Failed | None = None) -> TurnEnd:
        """Return the record of the turn's end. Nothing can be added to its stream after that."""
        if state == "cancelled":
            failure = self._cancelled
            if self.why_ended:
                failure = replace(failure, message=self.why_ended, hint="What it had said and done is kept.")
        if failure is not None and not failure.partial_text:
            failure = replace(failure, partial_text=self.reply or self.text)
        self._stream = self._stream or self._packer.finish()
        return TurnEnd(
            turn_id=self.turn.id,
            state=state,
            at=milliseconds(),
            usage=self.usage,
            failure=failure,
            command=self._command,
            stream=self._stream,
            memory=self.memory if state == "done" else None,
            uses=tuple(self.tools.uses) if self.tools is not None else (),
        )

    def _add_step(self, step: ToolStarted | ToolFinished | Notice) -> None:
        self.steps.append(step)
        if len(self.steps) > MOST_STEPS:
            del self.steps[: MOST_STEPS // 2]


async def _not_told(_: str) -> bool:
    return False


def how_it_ended(error: BaseException) -> tuple[EndState, Failed | None]:
    """Return the state of a turn after an error, and its failure."""
    match error:
        case asyncio.CancelledError():
            return "cancelled", None
        case WorkerLost():
            return "interrupted", error.event
        case AgentFailed():
            return "failed", error.event
        case BullpenError():
            return "failed", Failed(kind="not_prepared", message=str(error))
        case _:
            logger.error("unexpected error in a turn", exc_info=error)
            # The error is stored and shown, and its text may contain anything.
            message = without_secrets(f"This is a bug in bullpen, sorry: {type(error).__name__}: {error}")
            return "failed", Failed(kind="not_prepared", message=message, hint="Please report it.")
