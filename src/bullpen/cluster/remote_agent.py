"""RemoteAgent: one agent of a team whose turns run on the workers of a pool."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import PurePosixPath

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bullpen.agents.failures import COMMON_HINTS, error_for
from bullpen.agents.runner import Reply, to_the_end
from bullpen.agents.spec import Emit
from bullpen.clock import sleep
from bullpen.cluster.database import GONE
from bullpen.cluster.errands import There, is_there
from bullpen.cluster.lines import Hearing
from bullpen.cluster.node import Node
from bullpen.cluster.ordered_sessions import notes_of, prepared_in, session_order, told_reason
from bullpen.cluster.orders import GivenUp, adopt, cancel, new_token, open_to_all, settle, work_for
from bullpen.cluster.outcomes import Outcome
from bullpen.cluster.remote_folders import RemoteFolders
from bullpen.cluster.remote_talk import RemoteTalk
from bullpen.cluster.turn_log import BeganAgain, Called, Line, Listens, Ran, Said, Took, Uncalled, Wrote
from bullpen.context.prompt import AssemblerOutput
from bullpen.conversation.member_agent import AnnouncedInstructions, MemberAgent
from bullpen.conversation.prepared_turn import PreparedTurn
from bullpen.conversation.running_turn import RunningTurn
from bullpen.errors import WorkerLost
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import PoolOrder
from bullpen.turn_events import Failed, Notice

NO_WORKER_SECONDS = 3.0
"""After which people are told that nobody serves a pool, and another worker may do without the member's session."""
NO_WORKER = "No worker serves the pool {!r} now. The turn waits for one; it can be cancelled."
AWAY = "{}, which has the files of this conversation in {}, is away. {}"
WAITS_FOR_IT = "The turn waits until it is back; it can be cancelled."
LOOK_SECONDS = 0.25
"""How often to look for one."""
WATCH_SECONDS = 1.0
"""How often to look whether the one that a turn waits for is there: many turns may wait."""


class Ordered(Struct, frozen=True):
    """A turn that was ordered and has not ended."""

    token: str
    """What its worker shows."""
    worker: str
    """The one that is to run it; empty: any."""
    is_adopted: bool = False
    """Whether another owner has ordered it."""


class RemoteAgent(MemberAgent, frozen=True, kw_only=True):
    """An agent that can take turns elsewhere."""

    conversation_id: str
    node: Node
    folders: RemoteFolders
    is_edited: bool = False
    """Whether somebody in its pool may change files."""
    ordered: dict[str, Ordered] = msgspec.field(default_factory=dict)
    """The turns that were ordered, by their ids."""

    @property
    def is_pinned(self) -> bool:
        """Whether all of its pool work on one worker: as long as it lives, or always in a fork with files."""
        return self.is_edited or bool(self.folders.fork_on(self.member.pool))

    @property
    def has_tools(self) -> bool:
        """Whether it can call the tools of a turn: no worker of its pool is too old to know of them.

        One that is not there yet is taken to be as new as this node, so that all turns are told the same.
        """
        return self.may_have_tools and all(one.tools for one in self.node.announced(self.member.pool))

    @property
    def announced_instructions(self) -> AnnouncedInstructions:
        """The CLI's usual instruction file in its folder, as a worker announced it, unless it reads that by itself."""
        folder = next(iter(PurePosixPath(self.member.cwd).parts), "")
        for announcement in self.node.announced(self.member.pool):
            only = announcement.folders[0] if len(announcement.folders) == 1 else ""
            known = {there.name: there for there in announcement.instructions if there.folder in (folder, only)}
            if name := next((name for name in self.spec.instruction_files if name in known), ""):
                # On a worker nobody agrees to settings, and without these it may not read the file itself.
                if name in self.spec.reads_by_itself(self.member.permissions, False):
                    break
                return AnnouncedInstructions(text=known[name].text, problem=known[name].problem)
        return AnnouncedInstructions()

    def order_for(self, turn: WaitingTurn, prepared: PreparedTurn) -> PoolOrder | None:
        """Return what the workers of the pool are to run."""
        member = self.member
        apart = None if self.shared is None else self.apart
        ordered = self.ordered[turn.id] = Ordered(new_token(), self._worker_for(prepared))
        forked = self.folders.forked_there(There(member.pool, self.folders.fork_on(member.pool)))
        ordered_work = work_for(member, prepared.output, session_order(prepared))
        work = replace(ordered_work, apart=apart, forked=forked, tools=self.has_tools)
        return PoolOrder(
            pool=member.pool,
            worker=ordered.worker,
            work=msgspec.msgpack.encode(work),
            notes=notes_of(prepared),
            token=ordered.token,
            node=self.node.id,
        )

    def _worker_for(self, prepared: PreparedTurn) -> str:
        """Return the worker that is to run a turn: where its files are, or its session; empty: any."""
        if self.is_pinned:
            return self.folders.worker_of(self.member.pool)
        left = prepared.plan.left if prepared.plan else None
        there = There(self.member.pool, left.memory.worker if left else "")
        return there.worker if is_there(self.node, there) else ""

    async def until_reachable(self, tell: Callable[[str], None]) -> None:
        """Wait for a worker that has its folder, if somebody may change files there."""
        if not self.is_pinned:
            return
        with suppress(*GONE):
            # One that has just left would keep the turn waiting for its files.
            await self.node.look_at_workers()
        waited = 0.0
        while True:
            worker, gone = await self.folders.choose(self.member.pool, self.member.cwd)
            if worker or self.member.permissions == "read-only":
                break
            await sleep(LOOK_SECONDS)
            waited += LOOK_SECONDS
            if waited == NO_WORKER_SECONDS:
                is_gone = gone and self.folders.fork_on(self.member.pool)
                pool = self.member.pool
                tell(AWAY.format(gone, pool, WAITS_FOR_IT) if is_gone else NO_WORKER.format(pool))
        if worker and gone:
            tell(AWAY.format(gone, self.member.pool, f"{worker} is used."))

    async def take_turn(self, given: AssemblerOutput, running: RunningTurn, *, emit: Emit) -> Reply:
        """Follow a turn that was ordered to its end."""
        del given
        return await self._follow(running, self.ordered.pop(running.turn.id), emit)

    async def adopt(self, running: RunningTurn, *, emit: Emit) -> PreparedTurn:
        """Take over a turn that another owner has ordered; its worker begins again with what it said."""
        try:
            order = await adopt(self.node.database, self.node.id, self.conversation_id, running.turn.id)
        except GivenUp:
            raise self._not_ours(running) from None
        if order is None:
            raise self._lost(running, emit, "Its order is gone.")
        self.ordered[running.turn.id] = Ordered(order.token, order.worker, is_adopted=True)
        return prepared_in(order)

    async def _follow(self, running: RunningTurn, ordered: Ordered, emit: Emit) -> Reply:
        key = self.conversation_id, running.turn.id
        talk = RemoteTalk(self.node.database, self.node.id, key, running)

        def take(line: Line) -> None:
            match line:
                case Ran():
                    running.on_command(line.command)
                case Said():
                    emit(line.event)
                    if not hearing.is_over:
                        talk.on_event(line.event)
                case Wrote():
                    running.on_output(line.data)
                case BeganAgain():
                    running.on_begun_again(told_reason(line.reason))
                case Listens():
                    talk.on_listens()
                case Took():
                    talk.on_took(line)
                case Called():
                    (talk.on_called_before if hearing.is_over else talk.on_called)(line)
                case Uncalled():
                    talk.on_uncalled(line)

        hearing = Hearing(ordered.token, take, is_adopted=ordered.is_adopted)
        following = asyncio.ensure_future(self.node.outcome(key, hearing))
        watching = asyncio.ensure_future(self._watch(key, ordered, hearing, emit))
        try:
            outcome = await asyncio.shield(following)
            if outcome.kind == "lost":
                running.asks_no_more = f"its worker of {self.member.pool} is gone"
        except asyncio.CancelledError:
            if running.is_left:
                following.cancel()
                raise
            await to_the_end(self._cancelled(key, running, following))
            raise
        finally:
            watching.cancel()
            await to_the_end(talk.close())
        return self._reply(running, outcome, emit)

    def _reply(self, running: RunningTurn, outcome: Outcome, emit: Emit) -> Reply:
        result = outcome.result
        if result.reply is not None:
            return result.reply
        if result.failure is not None:
            raise error_for(self.spec, result.failure)
        if outcome.kind == "cancelled":
            # By an owner before us, who did not live to store it.
            failure = Failed(kind="cancelled", message="The turn was cancelled.", partial_text=running.text)
            emit(failure)
            raise asyncio.CancelledError
        raise self._lost(running, emit, f"The worker of {self.member.pool} that ran it is gone.")

    def _lost(self, running: RunningTurn, emit: Emit, why: str) -> WorkerLost:
        hint = COMMON_HINTS["worker_lost"]
        failure = Failed(kind="worker_lost", message=why, hint=hint, partial_text=running.text)
        emit(failure)
        return WorkerLost(self.spec.name, failure)

    async def _cancelled(self, key: tuple[str, str], running: RunningTurn, following: asyncio.Future[Outcome]) -> None:
        """Cancel a turn, and wait for its end: then nothing of it runs any more, or its worker is gone."""
        if not await cancel(self.node.database, self.node.id, *key):
            following.cancel()
            raise self._not_ours(running)
        await following

    def _not_ours(self, running: RunningTurn) -> asyncio.CancelledError:
        """Leave a turn to its next owner."""
        running.may_be_left = True
        return asyncio.CancelledError()

    def settled(self, turn: WaitingTurn) -> None:
        """Remove the order: the end of the turn is stored."""
        self.ordered.pop(turn.id, None)
        self.node.do_soon(settle(self.node.database, self.node.id, self.conversation_id, turn.id))

    async def _watch(self, key: tuple[str, str], ordered: Ordered, hearing: Hearing, emit: Emit) -> None:
        """Tell people if nobody is there who may take a turn: it waits, and can be cancelled.

        If the worker that has its session has no room for it, or has died, any other may take it. The one that has its
        files is waited for.
        """
        await sleep(NO_WORKER_SECONDS)
        if not self.is_pinned and not hearing.heard:
            await open_to_all(self.node.database, self.node.id, *key)
        told = ""
        while not hearing.heard:
            missing = self._missing(ordered)
            if missing and missing != told:
                emit(Notice(kind="warning", text=missing))
            told = missing
            await sleep(WATCH_SECONDS)

    def _missing(self, ordered: Ordered) -> str:
        """Return who is not there that a turn waits for, as a sentence; empty: somebody is there."""
        pool = self.member.pool
        if self.is_pinned and ordered.worker:
            is_away = not is_there(self.node, There(pool, ordered.worker))
            return AWAY.format(ordered.worker, pool, WAITS_FOR_IT) if is_away else ""
        return "" if self.node.has_worker(pool) else NO_WORKER.format(pool)
