"""GuardedProgram: a program that a guardian runs for us."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from bullpen.agents import guardian, process_tree
from bullpen.agents.guardian_program import ANSWER, END, ENDED

logger = logging.getLogger(__name__)

# Killed processes are gone at once; thousands take a busy machine longer, and what cannot be killed is not waited for.
GONE_SECONDS = 10.0


class GuardedProgram:
    """Its guardian tells us its exit code, and ends all that it leaves."""

    def __init__(
        self,
        its_guardian: guardian.Guardian,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdio: Sequence[int],
        turn_id: str,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._turn_id = turn_id
        self._guardian = its_guardian
        self.guardian_pid: int | None = its_guardian.pid
        self.exited: asyncio.Future[int] = self._loop.create_future()
        self._rest_ended: asyncio.Future[bool] = self._loop.create_future()
        self._family: list[process_tree.ProcessId] = []
        try:
            self.pid = its_guardian.start(argv, cwd=cwd, env=env, stdio=stdio)
            self._loop.add_reader(its_guardian.channel, self._hear)
        except (guardian.CannotStart, ValueError):
            guardian.give_back(its_guardian)
            raise
        except BaseException:
            guardian.let_go(its_guardian)
            raise

    async def end_rest(self) -> bool:
        """End what the program has left, and return whether nothing of it is left."""
        with contextlib.suppress(OSError):
            self._guardian.channel.sendall(END)
        await asyncio.wait([self._rest_ended], timeout=GONE_SECONDS)
        self._loop.remove_reader(self._guardian.channel)
        is_heard = self._rest_ended.done()
        if is_heard and self._rest_ended.result():
            guardian.give_back(self._guardian)
            return True
        guardian.let_go(self._guardian)
        return await process_tree.end_until_gone(self._turn_id, self._family) and is_heard

    def abandon(self) -> None:
        """Let the guardian end the program and what it has started, without waiting for that."""
        self._loop.remove_reader(self._guardian.channel)
        guardian.let_go(self._guardian)

    def _hear(self) -> None:
        """Learn that the program has ended, that nothing is left of it, or that the guardian was killed."""
        try:
            said = self._guardian.channel.recv(ANSWER.size)
        except OSError:
            # Killed before it had read what we said last.
            said = b""
        word, number = ANSWER.unpack(said) if said else (b"", 0)
        if word == ENDED:
            self.exited.set_result(number)
            return
        self._loop.remove_reader(self._guardian.channel)
        self._rest_ended.set_result(bool(word))
        if not self.exited.done():
            self._end_unguarded()

    def _end_unguarded(self) -> None:
        """Nobody can tell any more how the program ends, or find all that it leaves, so it is ended now."""
        program = process_tree.process_id(self.pid)
        self._family = [*filter(None, [program]), *process_tree.descendants(self.pid)]
        process_tree.end(self._family)
        self.exited.set_result(-signal.SIGKILL)
