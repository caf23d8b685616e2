"""WorkerSession: in which session of its CLI an order runs, decided on the worker, where the session's file is."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec.structs import replace

from bullpen.agents.held_session import GONE, WantedSession, hold, session_left, take_out
from bullpen.agents.runner import Reply, to_the_end
from bullpen.agents.session_file import is_session_id
from bullpen.agents.session_lock import SessionLock
from bullpen.agents.spec import Emit, SessionSpec
from bullpen.cluster.orders import SessionOrder, Work
from bullpen.context.prompt import AssemblerOutput
from bullpen.errors import NotAllowedHere, SessionLost
from bullpen.memory import SessionLeft, SessionUse
from bullpen.turn_events import Event, Started, is_work


class RunTurn(Protocol):
    """Runs the agent's program of an order."""

    async def __call__(self, given: AssemblerOutput, *, session: SessionUse | None, emit: Emit) -> Reply:
        """Return what the agent said."""
        ...


class WorkerSession:
    """The session of one order, from taking it to leaving it."""

    def __init__(
        self, sessions: SessionSpec, environment: Mapping[str, str], order: SessionOrder, worker: str, emit: Emit
    ) -> None:
        """NotAllowedHere is raised for an order that is not what a node places; see `check`."""
        check(order)
        self._sessions = sessions
        self._environment = environment
        self._order = order
        self._worker = worker
        self._emit = emit
        self._use = order.use
        self._wanted = order.wanted
        self._lock: SessionLock | None = None
        self._left: SessionLeft | None = None
        self._has_begun = False
        self._reason = ""
        """Why it runs in a new session instead of the one that was ordered."""

    async def run(self, work: Work, run: RunTurn, on_again: Callable[[str], None]) -> Reply:
        """Run an order in the session that it names, or else in a new one; `on_again` is told why."""
        given = AssemblerOutput(prompt=work.prompt, system_flag=work.system)
        try:
            # To its end: who is cancelled meanwhile must know whether the session is held.
            await to_the_end(self._enter())
            if self._reason:
                given = self._begin_again(given, on_again)
            try:
                reply = await run(given, session=self._use, emit=self._on_event)
            except SessionLost as error:
                if self._has_begun or self._reason:
                    raise
                # It is shown within a sentence.
                self._reason = error.event.sentence.removesuffix(".")
                given = self._begin_again(given, on_again)
                reply = await run(given, session=self._use, emit=self._on_event)
            await to_the_end(self._look(reply.started))
        except BaseException:
            await to_the_end(asyncio.to_thread(self._put_back))
            raise
        finally:
            self.leave()
        return replace(reply, session=self._left)

    def withdraw(self) -> None:
        """Take out of the session what the turn left in it: it was given up before, so nobody knows of its end."""
        left, wanted = self._left, self._wanted
        if left is None or wanted is None or wanted.is_copied:
            return
        # As the turn left it, and nobody has continued since.
        _, lock = hold(self._sessions, self._environment, WantedSession(id=left.id, mark=left.file))
        if lock is not None:
            take_out(self._sessions, self._environment, wanted)
            lock.release()

    def leave(self) -> None:
        """Let others use the session."""
        if self._lock is not None:
            self._lock.release()

    async def _enter(self) -> None:
        if self._wanted is None:
            return
        self._reason, self._lock = await asyncio.to_thread(hold, self._sessions, self._environment, self._wanted)
        if self._reason == GONE and self._order.worker not in ("", self._worker):
            self._reason = f"its session is on another worker, {self._order.worker}"

    def _begin_again(self, given: AssemblerOutput, on_again: Callable[[str], None]) -> AssemblerOutput:
        """Begin a new session, and return what the agent is given in it."""
        self.leave()
        self._lock = self._wanted = None
        self._use = replace(self._order.fresh, reason=self._reason)
        on_again(self._reason)
        if self._order.prompt is None:
            return given
        return AssemblerOutput(prompt=self._order.prompt, system_flag=self._order.system)

    def _on_event(self, event: Event) -> None:
        self._has_begun = self._has_begun or is_work(event)
        if isinstance(event, Started) and self._use.origin == "forked":
            # When it says that it starts, a CLI has read all of what it copies.
            self.leave()
        self._emit(event)

    async def _look(self, started: Started) -> None:
        known = self._wanted.mark.size if self._wanted is not None and not self._wanted.is_copied else 0
        left = await asyncio.to_thread(session_left, self._sessions, self._environment, self._use, started, known)
        self._left = replace(left, worker=self._worker)

    def _put_back(self) -> None:
        if self._wanted is not None and self._lock is not None:
            take_out(self._sessions, self._environment, self._wanted)


def check(order: SessionOrder) -> None:
    """Raise NotAllowedHere for an order that names a session as nobody does, or that continues one unseen.

    An id could be a path or an option. And only who knows what is in a session's file may continue it: it may be the
    session of a person who works on this machine.
    """
    for use in (order.use, order.fresh):
        if use.id and not is_session_id(use.id):
            raise NotAllowedHere(f"{use.id!r} is not the id of a session")
    wanted = order.wanted
    of_wanted = None if wanted is None else (wanted.id, "forked" if wanted.is_copied else "resumed")
    is_of_wanted = (order.use.id, order.use.origin) == of_wanted
    if order.fresh.is_continued or is_of_wanted != order.use.is_continued:
        raise NotAllowedHere("the session that it continues is not the one that it knows")
