"""Announcing: what a worker tells nodes of itself: its file, which agents are ready, and its instruction files."""

import asyncio
import hashlib
import os
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import Struct

from bullpen.agents.registry import agent_spec
from bullpen.cluster.worker_file import WorkerFile
from bullpen.doctor import examine
from bullpen.team.instruction_files import InstructionFile
from bullpen.team.instruction_imports import ReadInstructions
from bullpen.text.clean import byte_length

MOST_BYTES = 256 * 1024
"""Of all instruction files together; a longer one is left out, and said to be."""


class AgentThere(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One type of agent on a worker."""

    name: str
    version: str = ""
    problems: tuple[str, ...] = ()


class InstructionsThere(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An instruction file in a folder of a worker."""

    folder: str
    name: str
    hash: str = ""
    text: str = ""
    problem: str = ""
    """Why its text, or what it imports, is not here."""


class Announcement(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a worker tells of itself."""

    agents: tuple[AgentThere, ...] = ()
    instructions: tuple[InstructionsThere, ...] = ()
    allows: WorkerFile | None = None
    """What its file lets others run; None: it did not say."""
    tools: bool = False
    """Whether agents there can call the tools of their turns; older workers do not know of them."""

    @property
    def folders(self) -> tuple[str, ...]:
        """The names of its folders."""
        return () if self.allows is None else tuple(self.allows.folders)

    def has_folder(self, cwd: str) -> bool:
        """Return whether a member's cwd can be in one of its folders, as far as names tell."""
        return len(self.folders) == 1 or next(iter(PurePosixPath(cwd).parts), "") in self.folders


async def announcement(file: WorkerFile) -> bytes:
    """Return what to announce, looking at this machine."""
    folder = Path(next(iter(file.folders.values())))
    found = await asyncio.gather(*(examine(agent_spec(name), cwd=folder) for name in file.agents))
    agents = tuple(
        AgentThere(
            name=finding.agent,
            version=finding.version or "",
            problems=tuple(f"{problem.text} {problem.hint}".strip() for problem in finding.problems),
        )
        for finding in found
    )
    instructions = await asyncio.to_thread(_instructions, file)
    return msgspec.msgpack.encode(
        Announcement(agents=agents, instructions=tuple(instructions), allows=file, tools=True)
    )


def read_announcement(data: bytes) -> Announcement:
    """Return what a worker announced; nothing of one that cannot be read."""
    try:
        return msgspec.msgpack.decode(data, type=Announcement)
    except msgspec.MsgspecError:
        return Announcement()


def _instructions(file: WorkerFile) -> list[InstructionsThere]:
    names = dict.fromkeys(name for agent in file.agents for name in agent_spec(agent).instruction_files)
    found, room = list[InstructionsThere](), MOST_BYTES
    for folder, path in file.folders.items():
        for name in names:
            if not os.path.lexists(os.path.join(path, name)):  # noqa: PTH118
                continue
            read = ReadInstructions(outside_allowed=False)
            read.add(InstructionFile(name=name, folder=Path(path)))
            problem = " ".join(read.problems)
            if not read.texts:
                found.append(InstructionsThere(folder=folder, name=name, problem=problem))
                continue
            (text,) = read.texts
            size = byte_length(text)
            if size > room:
                too_long = f"{name} has {size:,} bytes, more than a worker announces."
                found.append(InstructionsThere(folder=folder, name=name, problem=too_long))
                continue
            room -= size
            digest = hashlib.sha256(text.encode()).hexdigest()
            found.append(InstructionsThere(folder=folder, name=name, hash=digest, text=text, problem=problem))
    return found
