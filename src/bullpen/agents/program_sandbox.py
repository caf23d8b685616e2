"""The sandbox around one turn's program: made before it starts, and what it refused is told while it runs.

Only loaded for a member with `sandbox = true`.
"""

import asyncio
import hashlib
import logging
import os
import shutil
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from bullpen.agents.cli_files import BULLPEN, named_programs, own_files
from bullpen.agents.spec import AgentSpec, Emit
from bullpen.config import data_folder, state_folder, trust_file
from bullpen.permissions import Permission
from bullpen.sandbox.held import Held, held
from bullpen.sandbox.layout import Surroundings
from bullpen.sandbox.mechanism import mechanism
from bullpen.sandbox.profile import Profile
from bullpen.sandbox.refusals import refusal, refused_paths
from bullpen.sandbox.rules import CannotHold, SandboxRules
from bullpen.turn_events import Event, Notice, ToolFinished

logger = logging.getLogger(__name__)

_OF_TEAMS = ("BULLPEN_HOME", "XDG_STATE_HOME")
MOST_TOLD = 5
"""Refusals of one turn that people are told."""


class Refusals:
    """Makes the sandbox, passes events on, and adds a notice where a tool's output says that something was refused."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._told: set[str] = set()
        self.profile: Profile | None = None
        self.tell: Callable[[str], object] = lambda _: None
        """Tells the agent, if it can be told anything while it works."""

    def emit(self, event: Event) -> None:
        """Pass an event on."""
        self._emit(event)
        if isinstance(event, ToolFinished):
            self.read(event.output)

    def read(self, output: str) -> None:
        """Look for refusals in what a program wrote."""
        if self.profile is None:
            return
        for path in refused_paths(output, self.profile):
            is_new = path not in self._told and len(self._told) < MOST_TOLD
            if is_new and PurePosixPath(path).parent != PurePosixPath("/") and Path(path).parent.is_dir():
                self._told.add(path)
                said = refusal(path, self.profile)
                self._emit(Notice(kind="warning", text=said))
                self.tell(f"(bullpen: {said})")

    @asynccontextmanager
    async def sandboxed(
        self,
        spec: AgentSpec,
        rules: SandboxRules,
        permissions: Permission,
        folder: Path,
        command: Sequence[str],
        environment: Mapping[str, str],
        server: Sequence[str],
    ) -> AsyncIterator[Held]:
        """Yield how to start a program so that it is held; what it left in places of settings is removed."""
        by = await asyncio.to_thread(mechanism)
        if not by.works:
            # A person has asked for it: without it, the program would do what it may not.
            raise CannotHold(f"It was not started, since no sandbox can hold it here: {by.why_not}.", by.hint)
        if BULLPEN in named_programs(spec.command):
            data = _data_of_team(command, folder)
            rules = replace(rules, writable=(*rules.writable, str(data)))
            environment = {**environment, "BULLPEN_HOME": str(data), "XDG_STATE_HOME": str(data / "state")}
        own, others = own_files(spec)
        around = Surroundings(
            folder=folder,
            command=command,
            environment=environment,
            own=own,
            others=others,
            ours=(data_folder(), state_folder()),
            sockets=(os.path.dirname(server[-1]),) if server else (),  # noqa: PTH120
        )
        manager = held(around, rules, permissions, by, state_folder() / "placeholders")
        try:
            started = manager.__enter__()
        except OSError as error:
            raise CannotHold(f"No sandbox could be made for it: {error}.") from error
        self.profile = started.profile
        try:
            team = {name: environment[name] for name in _OF_TEAMS if name in environment}
            started.environment = {**started.environment, **team}
            yield started
        finally:
            # What it left in its temporary folder may be much.
            await _to_the_end(lambda: manager.__exit__(None, None, None))
            for path in started.put_back:
                text = f"Where it was made during this turn, it would make programs run, so it was set aside: {path}"
                self._emit(Notice(kind="warning", text=text))


def _data_of_team(command: Sequence[str], folder: Path) -> Path:
    """Return where a team that is a member keeps its conversations; it trusts what its person has trusted."""
    name = hashlib.sha256("\0".join((str(folder), *command)).encode(errors="surrogateescape")).hexdigest()[:16]
    place = data_folder() / "teams" / name
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        shutil.copyfile(trust_file(), place / trust_file().name)
    return place


async def _to_the_end(work: Callable[[], object]) -> None:
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise
