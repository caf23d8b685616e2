"""Signals in an event loop: what Ctrl-C and the others do while a conversation is open."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NoReturn

from bullpen.conversation.owner import end_running_agents

INTERRUPTED_EXIT = 130
# A shell reports a death by signal as 128 plus the signal's number.
LEAVING = {signal.SIGINT: INTERRUPTED_EXIT, signal.SIGTERM: 143, signal.SIGHUP: 129}


@contextmanager
def handling(handlers: dict[signal.Signals, Callable[[], None]]) -> Iterator[None]:
    """Let signals call functions of the event loop for a while.

    A hang-up that was ignored when we were started, as nohup does, stays ignored.
    """
    loop = asyncio.get_running_loop()
    is_kept = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    taken = {number: handler for number, handler in handlers.items() if not (is_kept and number == signal.SIGHUP)}
    for number, handler in taken.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in taken:
            loop.remove_signal_handler(number)


def leave_at_once(exit_code: int) -> NoReturn:
    """Leave without waiting. Running agents are killed; the next start says so."""
    end_running_agents()
    os._exit(exit_code)


class Interruptions:
    """The first signal asks to leave in good order; a second one leaves at once, and the next start cleans up."""

    def __init__(self) -> None:
        self.exit_code: int | None = None
        self._asked = asyncio.Event()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Take signals for a while."""
        with handling({number: partial(self._take, code) for number, code in LEAVING.items()}):
            yield

    async def wait(self) -> None:
        """Wait until somebody wants to leave."""
        await self._asked.wait()

    def _take(self, exit_code: int) -> None:
        if self.exit_code is not None:
            leave_at_once(exit_code)
        self.exit_code = exit_code
        self._asked.set()
