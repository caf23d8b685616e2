"""Worker: takes orders of its pools, and runs them as its own file allows."""

import asyncio
import logging
import platform
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

import msgspec
from msgspec import Struct

from bullpen.agents.check_run import CheckRun
from bullpen.agents.crash_records import end_leftover_processes
from bullpen.agents.environment import child_environment
from bullpen.agents.process_tree import may_use_tools
from bullpen.agents.runner import Reply, run_turn, to_the_end
from bullpen.agents.spec import AgentSpec, Emit
from bullpen.clock import monotonic, sleep
from bullpen.cluster.announcing import announcement, read_announcement
from bullpen.cluster.bell import Bell, ring
from bullpen.cluster.database import Database
from bullpen.cluster.doing import again_if_it_fails, doing
from bullpen.cluster.file_desk import FileDesk
from bullpen.cluster.file_work import CheckWork, FileAnswer
from bullpen.cluster.joining import namesake, obstacle
from bullpen.cluster.membership import CANCELS, Member, Process, channel_of, joined
from bullpen.cluster.orders import Errand, Order, Work, errand_queues_of, new_attempt, next_order, queues_of
from bullpen.cluster.outcomes import Ending, Outcome, Result, end
from bullpen.cluster.telling import Telling
from bullpen.cluster.tidying import tidy_for_ever
from bullpen.cluster.turn_log import BeganAgain, Ran, Said, Wrote
from bullpen.cluster.words import WORDS, Listening
from bullpen.cluster.worker_events import (
    Away,
    Began,
    Ended,
    Examined,
    GivenUp,
    Joined,
    Waits,
    Watch,
    WorkerEvent,
    nobody_watches,
)
from bullpen.cluster.worker_file import WorkerFile
from bullpen.cluster.worker_places import HOME
from bullpen.cluster.worker_session import WorkerSession
from bullpen.config import data_folder
from bullpen.context.prompt import AssemblerOutput
from bullpen.errors import AgentFailed, NotAllowedHere
from bullpen.sandbox.rules import SandboxRules
from bullpen.tools.door import open_door
from bullpen.turn_events import Event, Failed

logger = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
"""How often to look for orders even if nobody rings."""
LAST_SECONDS = 5.0
"""How long a worker that stops waits for the answer to whether there is another order."""


class Worker(Struct, frozen=True, kw_only=True):
    """One process that runs orders of some pools."""

    url: str
    pools: tuple[str, ...]
    file: WorkerFile
    watch: Watch = nobody_watches

    @property
    def name(self) -> str:
        """What others see."""
        return self.file.name or platform.node()

    @property
    def channels(self) -> list[str]:
        """Where it is said that a turn was ordered."""
        return list(map(channel_of, queues_of(self.pools, self.name)))

    @property
    def errand_channels(self) -> list[str]:
        """Where it is said that an errand was."""
        return list(map(channel_of, errand_queues_of(self.pools, self.name)))

    def tell(self, event: WorkerEvent) -> None:
        """Tell who watches. If that fails, as when its terminal is gone, the work does not."""
        try:
            self.watch(event)
        except Exception as error:
            logger.warning("not told event=%s error=%r", type(event).__name__, error)

    async def run(self, stopping: asyncio.Event) -> None:
        """Run orders until it is told to stop; then wait for those that run. Cancel it to end those as well.

        CannotJoin is raised if it may not be part of the cluster.
        """
        await self._until_it_can_join()
        # Before it says that it lives: what was interrupted does not run any more then.
        await asyncio.to_thread(end_leftover_processes)
        announced = await announcement(self.file)
        self.tell(Examined(read_announcement(announced)))
        desk: FileDesk | None = None
        async with Database(self.url, on_away=lambda is_away: self.tell(Away(is_away))) as database:
            while await self._has_its_name(database, stopping):
                bell = Bell(self.url, CANCELS, WORDS, *self.channels, *self.errand_channels)
                process = Process(kind="worker", name=self.name, pools=self.pools, announced=announced)
                shift = Shift(self, database, bell)
                async with joined(database, bell, process, stop_turns=shift.stop_turns) as member:
                    logger.info("worker joined id=%d pools=%s", member.id, ",".join(self.pools))
                    self.tell(Joined(member.id))
                    desk = desk or await self._desk(database)
                    async with doing(partial(tidy_for_ever, database, desk, member.id)):
                        await shift.work(member, desk, stopping)
                    if member.given_up.is_set():
                        self.tell(GivenUp())

    async def _has_its_name(self, database: Database, stopping: asyncio.Event) -> bool:
        """Wait until no other worker has its name; return whether it is not stopped by then."""
        told = ""
        while not stopping.is_set() and (reason := await namesake(database, self.name, self.pools)):
            if reason != told:
                self.tell(Waits(reason))
            told = reason
            await sleep(LOOK_SECONDS)
        return not stopping.is_set()

    async def _desk(self, database: Database) -> FileDesk:
        ((cluster,),) = await database.do("SELECT cluster_name()")
        return FileDesk(self.file, data_folder() / HOME, cluster)

    async def _until_it_can_join(self) -> None:
        told = ""
        while reason := await asyncio.to_thread(obstacle, self.url):
            if reason != told:
                self.tell(Waits(reason))
            told = reason
            await sleep(LOOK_SECONDS)


class Shift:
    """The time from joining the cluster to leaving it, or to being given up by the others."""

    def __init__(self, worker: Worker, database: Database, bell: Bell) -> None:
        self._worker = worker
        self._database = database
        self._bell = bell
        self._desk: FileDesk
        self._rings = asyncio.Event()
        """Set when something may have been ordered."""
        self._errand_rings = asyncio.Event()
        """Set when an errand may have been ordered, or there is room for a turn again."""
        self._is_stopping = False
        self._errands: set[tuple[str, str]] = set()
        self._turns: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._begun: set[tuple[str, str]] = set()
        self._unwanted: set[tuple[str, str]] = set()
        self._sessions: dict[tuple[str, str], WorkerSession] = {}

    def stop_turns(self, keys: Sequence[tuple[str, str]]) -> None:
        """End turns that somebody wants to end. One that has not begun yet is named again with the next beat."""
        for key in self._begun.intersection(keys) - self._unwanted:
            self._unwanted.add(key)
            self._turns[key].cancel()

    async def work(self, member: Member, desk: FileDesk, stopping: asyncio.Event) -> None:
        """Take orders and run them, until this worker stops or was given up."""
        self._desk = desk
        given_up = asyncio.create_task(member.given_up.wait())
        stop = asyncio.create_task(stopping.wait())
        taking = asyncio.create_task(self._take(member))
        try:
            await asyncio.wait([given_up, stop, taking], return_when=asyncio.FIRST_COMPLETED)
            if taking.done():
                taking.result()
            # What it is given in this moment would be noted as running, and nobody would run it.
            self._is_stopping = True
            self._rings.set()
            self._errand_rings.set()
            await asyncio.wait([given_up, taking], timeout=LAST_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            taking.cancel()
            while self._turns and not given_up.done():
                await asyncio.wait([given_up, *self._turns.values()], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (given_up, stop, taking, *self._turns.values()):
                task.cancel()
            await to_the_end(_ended(taking, *self._turns.values()))

    async def _take(self, member: Member) -> None:
        attempt = new_attempt()
        turns, errands = self._worker.channels, self._worker.errand_channels
        with (
            self._bell.waiting(*turns, *errands) as self._rings,
            self._bell.waiting(*errands) as self._errand_rings,
        ):
            self._rings.set()
            while not self._is_stopping:
                # Errands never wait for turns: those may take hours, and people wait for errands.
                is_full = self._is_full
                await ring(self._errand_rings if is_full else self._rings, LOOK_SECONDS)
                self._errand_rings.clear()
                if self._is_stopping or (is_full and not self._is_full):
                    continue
                if not is_full:
                    self._rings.clear()
                order = await next_order(self._database, member.id, attempt, only_errands=is_full)
                if order is not None:
                    attempt = new_attempt()
                    self._begin(member, order)
                    # There may be more.
                    (self._errand_rings if is_full else self._rings).set()

    @property
    def _is_full(self) -> bool:
        return len(self._turns) - len(self._errands) >= self._worker.file.at_once

    def _begin(self, member: Member, order: Order) -> None:
        errand = order.errand
        if errand is None:
            task = asyncio.create_task(self._run(member, order))
        else:
            self._errands.add(order.key)
            task = asyncio.create_task(self._run_errand(member, order, errand))
        self._turns[order.key] = task
        task.add_done_callback(lambda _: self._forget(order.key))

    def _forget(self, key: tuple[str, str]) -> None:
        was_full = self._is_full
        del self._turns[key]
        self._errands.discard(key)
        if was_full:
            self._errand_rings.set()
        self._begun.discard(key)
        self._unwanted.discard(key)
        self._sessions.pop(key, None)

    async def _run(self, member: Member, order: Order) -> None:
        """Run an order, and say how it ended."""
        self._begun.add(order.key)
        began = monotonic()
        self._worker.tell(Began(order.conversation, _member_of(order), order.pool))
        telling = Telling(self._database, member.id, order.key, order.listener)
        listening = Listening(self._database, self._bell, member.id, order.key, telling)
        talk = [asyncio.create_task(again_if_it_fails(one)) for one in (telling.tell, listening.listen)]
        try:
            outcome = await self._outcome(order, telling, listening)
        finally:
            for task in talk:
                task.cancel()
        await to_the_end(self._say(member, order, outcome, began))

    async def _run_errand(self, member: Member, order: Order, errand: Errand) -> None:
        """Do something else than a turn, and say what came of it."""
        self._begun.add(order.key)
        kind: Ending = "ended"
        answer, run = b"", CheckRun()
        try:
            if isinstance(errand, CheckWork):
                await self._desk.check(order.conversation, errand, run)
            else:
                answer = await asyncio.to_thread(self._desk.answer, order.conversation, errand)
        except asyncio.CancelledError:
            kind = "cancelled" if order.key in self._unwanted else "lost"
        except Exception as error:
            logger.exception("errand not done key=%s", order.key)
            run.problem = f"The worker {self._worker.name} could not do it: {error}."
            answer = msgspec.msgpack.encode(FileAnswer(problem="failed", reason=str(error).rstrip(".")))
        if isinstance(errand, CheckWork):
            answer = msgspec.msgpack.encode(run)
        outcome = Outcome(kind=kind, result=Result(answer=answer))
        await to_the_end(self._answer(member, order, outcome))

    async def _answer(self, member: Member, order: Order, outcome: Outcome) -> None:
        is_its_end = await self._end(member, order, outcome)
        logger.info("errand ended key=%s kind=%s accepted=%s", order.key, outcome.kind, is_its_end)

    async def _say(self, member: Member, order: Order, outcome: Outcome, began: float) -> None:
        is_its_end = await self._end(member, order, outcome)
        logger.info("turn ended key=%s kind=%s accepted=%s", order.key, outcome.kind, is_its_end)
        seconds = monotonic() - began
        self._worker.tell(Ended(order.conversation, _member_of(order), seconds, outcome, is_its_end))
        if not is_its_end and (session := self._sessions.get(order.key)):
            await asyncio.to_thread(session.withdraw)

    async def _end(self, member: Member, order: Order, outcome: Outcome) -> bool:
        """End an order; if what came of it cannot be stored, with that: else people would wait forever."""
        try:
            return await end(self._database, member.id, order.key, outcome)
        except Exception as error:
            logger.exception("end not stored key=%s", order.key)
            message = f"What the worker {self._worker.name} says of its end cannot be stored: {error}."
            failed = Result(failure=Failed(kind="not_prepared", message=message))
            return await end(self._database, member.id, order.key, Outcome(kind="ended", result=failed))

    async def _outcome(self, order: Order, telling: Telling, listening: Listening) -> Outcome:
        log = telling.log
        try:
            reply = await self._reply(order, telling, listening)
        except asyncio.CancelledError:
            # If nobody wanted that, this worker is about to leave.
            kind: Ending = "cancelled" if order.key in self._unwanted else "lost"
            return Outcome(kind=kind, result=Result(log=log.packed()))
        except AgentFailed as error:
            return Outcome(kind="ended", result=Result(failure=error.event, log=log.packed()))
        except Exception as error:
            logger.exception("order not run key=%s", order.key)
            failure = Failed(kind="not_prepared", message=f"The worker {self._worker.name} could not run it: {error}.")
            telling.add(Said(failure))
            return Outcome(kind="ended", result=Result(failure=failure, log=log.packed()))
        return Outcome(kind="ended", result=Result(reply=reply, log=log.packed()))

    async def _reply(self, order: Order, telling: Telling, listening: Listening) -> Reply:
        file = self._worker.file

        def emit(event: Event) -> None:
            telling.add(Said(event))

        try:
            work = order.work
            file.check(work)
            spec, env = file.spec_for(work), file.environment_for(work)
            folder = self._desk.places.folder_for(order.conversation, work)
            session = self._session_for(order, work, spec, child_environment(spec, env), emit)
        except (NotAllowedHere, msgspec.MsgspecError) as error:
            raise self._refused(error, emit) from error
        run = partial(
            run_turn,
            spec,
            cwd=folder,
            permissions=work.permissions,
            allow=work.allow,
            model=work.model,
            arguments=work.arguments,
            env=env,
            idle_timeout=work.idle_timeout,
            total_timeout=work.total_timeout,
            on_command=lambda command: telling.add(Ran(command)),
            on_output=lambda data: telling.add(Wrote(data)),
            ask=listening.ask,
            on_tell=listening.on_tell,
            asked=listening.asked,
            sandbox=SandboxRules(is_on=file.sandbox, writable=file.writable),
        )
        async with _door_for(work, spec, listening) as server:
            run = partial(run, server=server)
            if session is None:
                return await run(AssemblerOutput(prompt=work.prompt, system_flag=work.system), emit=emit)
            return await session.run(work, run, lambda reason: telling.add(BeganAgain(reason)))

    def _session_for(
        self, order: Order, work: Work, spec: AgentSpec, environment: Mapping[str, str], emit: Emit
    ) -> WorkerSession | None:
        sessions = spec.with_permissions(work.permissions).sessions
        if work.session is None or sessions is None:
            return None
        session = WorkerSession(sessions, environment, work.session, self._worker.name, emit)
        self._sessions[order.key] = session
        return session

    def _refused(self, error: Exception, emit: Emit) -> AgentFailed:
        """Return what is said of an order that the worker's file does not let it run."""
        if isinstance(error, NotAllowedHere):
            message = f"The worker {self._worker.name} does not run this: {error}."
            hint = "Its own file decides what may run there. Change that, or the team file."
        else:
            message = f"The worker {self._worker.name} cannot read what it was asked to run: {error}."
            hint = "Are nodes and workers of the same version?"
        failure = Failed(kind="permission_refused", message=message, hint=hint)
        emit(failure)
        return AgentFailed(self._worker.name, failure)


@asynccontextmanager
async def _door_for(work: Work, spec: AgentSpec, listening: Listening) -> AsyncIterator[tuple[str, ...]]:
    """Yield the command of the MCP server through which a turn's agent calls its tools; nothing: it has none."""
    if not work.tools or spec.with_permissions(work.permissions).tools is None:
        yield ()
        return
    async with open_door(listening.call, may_use_tools) as server:
        yield server


def _member_of(order: Order) -> str:
    try:
        return order.work.member
    except msgspec.MsgspecError:
        return "somebody"


async def _ended(*tasks: asyncio.Task[None]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)
