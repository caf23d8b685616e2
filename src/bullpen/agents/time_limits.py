"""The end of a program within its time limits: of silence, of failed connections, and of the whole turn."""

import asyncio
from typing import Any

from bullpen.agents.asked_time import AskedTime
from bullpen.agents.failures import server_trouble
from bullpen.agents.process import Child
from bullpen.agents.spec import AgentSpec
from bullpen.agents.transcript import Transcript, Unreachable
from bullpen.clock import first_of, monotonic
from bullpen.text.numbers import counted, duration

# A CLI may still clean up after its final event; codex takes five seconds if it finds no plugins.
LINGER_SECONDS = 30.0
UNREACHABLE_SECONDS = 180.0
"""A CLI that reports only failed connections for so long is stopped. Some of them would try again forever.

It is stopped with such a report: one that is silent after one may be thinking, until its idle timeout.
"""
ASKING_SECONDS = 0.5
"""How often it is looked at whether a program still waits for an answer."""


class CannotConnect(Exception):
    """The program has reported nothing but failed connections for too long: a sentence, and its own last reason."""


async def end_of(
    spec: AgentSpec,
    child: Child,
    transcript: Transcript,
    asked: AskedTime,
    idle_timeout: float,
    total_timeout: float,
) -> int:
    """Return the exit code, or raise TimeoutError or CannotConnect if the program gets nowhere or runs for too long.

    While it waits for an answer, its time does not count.
    """
    began = monotonic()
    waiting = asyncio.ensure_future(child.wait())
    spoken, failing = _last_word(transcript), _next_failure(transcript)
    try:
        while not waiting.done():
            has_verdict = transcript.verdict is not None
            failing = _next_failure(transcript) if failing.done() else failing
            ends: list[asyncio.Future[Any]] = [waiting, failing, *([] if spoken.done() else [spoken])]
            if has_verdict and not spec.ends_by_itself:
                return 0
            if asked.is_asking and not has_verdict:
                await first_of(ends, ASKING_SECONDS)
                continue
            silence = min(idle_timeout, LINGER_SECONDS) if has_verdict else idle_timeout
            deadline = began + total_timeout + asked.seconds
            idle_deadline = max(child.last_activity, asked.ended_at) + silence
            if monotonic() >= deadline:
                raise TimeoutError(f"It did not finish within {total_timeout:g} seconds.")
            is_silent, lost = monotonic() >= idle_deadline, None if has_verdict else transcript.unreachable
            if lost and (is_silent or lost.latest - lost.since >= min(idle_timeout, UNREACHABLE_SECONDS)):
                raise CannotConnect(_failed_connections(lost), lost.reason)
            if is_silent:
                raise TimeoutError(f"It wrote nothing for {silence:g} seconds.")
            await first_of(ends, min(deadline, idle_deadline) - monotonic())
        return 0 if transcript.verdict is not None and not spec.ends_by_itself else waiting.result()
    finally:
        waiting.cancel()


def _failed_connections(lost: Unreachable) -> str:
    for_so_long = duration(monotonic() - lost.since)
    return f"{server_trouble(lost.reason).before} {for_so_long} ({counted(lost.attempts, 'attempt')}): {lost.reason}"


def _next_failure(transcript: Transcript) -> "asyncio.Future[None]":
    """Return a future that is done when a connection fails from now on."""
    failed = asyncio.get_running_loop().create_future()

    def on_unreachable() -> None:
        if not failed.done():
            failed.set_result(None)

    transcript.on_unreachable = on_unreachable
    return failed


def _last_word(transcript: Transcript) -> "asyncio.Future[Any]":
    """Return a future that is done when the program has said what may be its last word."""
    spoken = asyncio.get_running_loop().create_future()
    before = transcript.on_verdict

    def on_verdict() -> None:
        before()
        if not spoken.done():
            spoken.set_result(None)

    transcript.on_verdict = on_verdict
    return spoken
