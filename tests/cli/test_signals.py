"""Signals while something is open."""

import asyncio
import os
import signal

import pytest

from bullpen.cli.signals import handling


@pytest.mark.parametrize("before", [signal.SIG_DFL, signal.SIG_IGN])
def test_a_hang_up_is_taken_unless_whoever_started_us_ignores_it(before: signal.Handlers) -> None:
    taken: list[str] = []
    expected = ["end", "hang-up"] if before is signal.SIG_DFL else ["end"]

    async def story() -> None:
        handlers = {signal.SIGHUP: lambda: taken.append("hang-up"), signal.SIGTERM: lambda: taken.append("end")}
        with handling(handlers, is_leaving=lambda: False):
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGTERM)
            while len(taken) < len(expected):
                await asyncio.sleep(0.001)

    old = signal.signal(signal.SIGHUP, before)
    try:
        asyncio.run(story())
        assert signal.getsignal(signal.SIGHUP) is before
    finally:
        signal.signal(signal.SIGHUP, old)

    assert sorted(taken) == expected
