"""A handshake in the Agent Client Protocol: whether a program answers in it, and what it says it can do.

No session begins, so no model is asked, and the program writes nothing for later.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bullpen.acp_protocol import PROTOCOL_VERSION
from bullpen.agents.acp_driver import AcpDriver
from bullpen.agents.acp_words import Dialect, failure_of, introduction, other_version
from bullpen.agents.crash_records import CrashRecords
from bullpen.agents.process import Child
from bullpen.agents.runner import to_the_end
from bullpen.agents.spec import AgentSpec
from bullpen.agents.stream import LineSplitter, record_from

HANDSHAKE_SECONDS = 30.0
"""OpenCode needs half of that on a busy machine."""
MOST_BYTES = 1024 * 1024
MOST_ERROR_BYTES = 4096
FIRST = 1
"""The number of our only request."""


class Handshake(Struct, frozen=True):
    """What came of it."""

    is_good: bool
    sentence: str
    """What the program can do, or else what is wrong with it."""


def in_acp(spec: AgentSpec) -> AgentSpec | None:
    """Return how an agent is run that is spoken to in the protocol, always or if it asks people; else None."""
    return next((one for one in (spec, spec.asking) if one is not None and _dialect(one) is not None), None)


async def handshake(spec: AgentSpec, path: str, *, cwd: Path, environment: Mapping[str, str]) -> Handshake:
    """Start an agent, let it say what it can do, and end it."""
    heard = _Heard()
    greeting = {"jsonrpc": "2.0", "id": FIRST, "method": "initialize", "params": introduction()}
    try:
        child = Child(
            (path, *spec.command[1:]),
            cwd=cwd,
            env=environment,
            stdin=msgspec.json.encode(greeting) + b"\n",
            keep_stdin_open=True,
            on_stdout=heard.feed,
            on_stderr=heard.feed_errors,
            crash_records=CrashRecords(),
        )
    except OSError as error:
        return Handshake(False, f"It could not be started: {error.strerror or error}.")
    ended = asyncio.ensure_future(child.wait())
    either: list[asyncio.Future[Any]] = [ended, heard.answer]
    try:
        await asyncio.wait(either, timeout=HANDSHAKE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if heard.answer.done():
            return _understood(spec, heard.answer.result())
        if ended.done():
            return Handshake(False, f"It ended with exit code {ended.result()} before it answered{heard.last_words}.")
        return Handshake(False, f"It did not answer within {HANDSHAKE_SECONDS:g} seconds{heard.last_words}.")
    finally:
        ended.cancel()
        await to_the_end(child.stop())


class _Heard:
    """What a program has written so far, as far as it matters."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._lines = LineSplitter(MOST_BYTES)
        self._errors = b""

    def feed(self, data: bytes) -> None:
        """Look for the answer; some programs write other lines first."""
        for line in self._lines.feed(data):
            record = record_from(line)
            if record is not None and record.get("id") == FIRST and not self.answer.done() and "method" not in record:
                self.answer.set_result(record)

    def feed_errors(self, data: bytes) -> None:
        """Keep the end of what it writes to stderr."""
        self._errors = (self._errors + data)[-MOST_ERROR_BYTES:]

    @property
    def last_words(self) -> str:
        """Its last line there, if there is one."""
        lines = self._errors.decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f": {last.rstrip('.')}" if last else ""


def _understood(spec: AgentSpec, answer: dict[str, Any]) -> Handshake:
    """Return what an answer means."""
    match answer:
        case {"error": dict(error)}:
            return Handshake(False, f"It refused the handshake: {failure_of(error).message.rstrip('.')}.")
        case {"result": {"protocolVersion": version}} if version == PROTOCOL_VERSION:
            return Handshake(True, _abilities(spec, answer["result"]))
        case {"result": {"protocolVersion": version}}:
            return Handshake(False, other_version(version))
        case _:
            return Handshake(False, "It answered, but not in the Agent Client Protocol.")


def _abilities(spec: AgentSpec, result: dict[str, Any]) -> str:
    """Return what an agent says it can do, in a sentence."""
    capabilities = result.get("agentCapabilities")
    can_load = isinstance(capabilities, dict) and capabilities.get("loadSession") is True
    sessions = "it can load sessions" if can_load else "it cannot load sessions"
    dialect = _dialect(spec)
    is_set = dialect is not None and dialect.needs_mode
    asks = "it asks people, in a mode that bullpen sets" if is_set else "what it asks people is up to its own settings"
    return f"It speaks the Agent Client Protocol, version {PROTOCOL_VERSION}{_name(result)}; {sessions}; {asks}."


def _name(result: dict[str, Any]) -> str:
    match result.get("agentInfo"):
        case {"name": str(name), "version": str(version)}:
            return f", as {name} {version}"
        case _:
            return ""


def _dialect(spec: AgentSpec) -> Dialect | None:
    """Return the dialect of an agent that is spoken to in the protocol."""
    driver = spec.driver
    if not isinstance(driver, partial) or driver.func is not AcpDriver:
        return None
    dialect = driver.keywords.get("dialect")
    return dialect if isinstance(dialect, Dialect) else None
