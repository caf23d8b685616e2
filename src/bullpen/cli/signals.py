"""Signals in an event loop: what Ctrl-C and the others do while a conversation is open."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import NoReturn

from bullpen.clock import monotonic
from bullpen.conversation.owner import end_running_agents

INTERRUPTED_EXIT = 130
# A shell reports a death by signal as 128 plus the signal's number.
LEAVING = {signal.SIGINT: INTERRUPTED_EXIT, signal.SIGTERM: 143, signal.SIGHUP: 129}


# A program between us and the terminal may hand on a Ctrl-C that we got already, so what comes sooner is the same one.
AGAIN_SECONDS = 0.5
STUCK_SECONDS = 5.0


@contextmanager
def handling(
    handlers: Mapping[signal.Signals, Callable[[], None]],
    *,
    is_leaving: Callable[[], bool],
    restore: Callable[[], None] = lambda: None,
) -> Iterator[None]:
    """Let signals call functions of the event loop for a while.

    One that asks to leave while `is_leaving`, or that the loop does not take, leaves at once, after `restore`;
    also after this, until the process has ended.
    A hang-up that was ignored when we were started, as nohup does, stays ignored.
    """
    loop = asyncio.get_running_loop()
    is_kept = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    taken = {number: handler for number, handler in handlers.items() if not (is_kept and number == signal.SIGHUP)}
    untaken = _UntakenSignals(is_leaving, restore)
    for number, handler in taken.items():
        loop.add_signal_handler(number, partial(untaken.take, number, handler))
        if number in LEAVING:
            # The loop is still woken up; this is called in addition, even if the loop is stuck.
            signal.signal(number, untaken.arrived)
    try:
        yield
    finally:
        for number in taken:
            loop.remove_signal_handler(number)
            if number in LEAVING and is_leaving():
                # What is left to do must not be torn by an exception, and the exit code must say why we left.
                signal.signal(number, untaken.arrived)


def leave_at_once(exit_code: int) -> NoReturn:
    """Leave without waiting. Running agents are killed; the next start says so."""
    end_running_agents()
    os._exit(exit_code)


class _UntakenSignals:
    """Leaves at once if the event loop is stuck: nobody may be reading what we write."""

    def __init__(self, is_leaving: Callable[[], bool], restore: Callable[[], None]) -> None:
        self._is_leaving = is_leaving
        self._restore = restore
        self._since: dict[int, float] = {}

    def arrived(self, number: int, _: FrameType | None) -> None:
        now = monotonic()
        if self._is_leaving() or any(now - since > AGAIN_SECONDS for since in self._since.values()):
            self._leave(number)
        if number not in self._since:
            self._since[number] = now
            timer = threading.Timer(STUCK_SECONDS, self._leave_if_untaken, [number, now])
            timer.daemon = True
            timer.start()

    def take(self, number: int, handler: Callable[[], None]) -> None:
        self._since.pop(number, None)
        handler()

    def _leave_if_untaken(self, number: int, since: float) -> None:
        if self._since.get(number) == since:
            self._leave(number)

    def _leave(self, number: int) -> None:
        self._restore()
        leave_at_once(LEAVING[signal.Signals(number)])


class Interruptions:
    """The first signal asks to leave in good order; a second one leaves at once, and the next start cleans up."""

    def __init__(self) -> None:
        self.exit_code: int | None = None
        self._asked = asyncio.Event()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Take signals for a while."""
        handlers = {number: partial(self._take, code) for number, code in LEAVING.items()}
        with handling(handlers, is_leaving=lambda: self.exit_code is not None):
            yield

    async def wait(self) -> None:
        """Wait until somebody wants to leave."""
        await self._asked.wait()

    def _take(self, exit_code: int) -> None:
        self.exit_code = exit_code
        self._asked.set()
