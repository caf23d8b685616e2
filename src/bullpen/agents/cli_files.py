"""Which files in a person's home folder are a program's own, and which are those of other CLIs."""

import re
from collections.abc import Iterator, Sequence

from bullpen.agents.acp_programs import ACP_PROGRAMS
from bullpen.agents.registry import known_agents
from bullpen.agents.spec import AgentSpec
from bullpen.sandbox.rules import OwnFiles, OwnFolder

BULLPEN = "bullpen"
"""A team as a member: its agents are those of any CLI."""


def own_files(spec: AgentSpec) -> tuple[OwnFiles, list[OwnFiles]]:
    """Return a program's own files, and those of the others. One that bullpen does not know has those that it names."""
    own = [spec.own_files] if spec.own_files.folders else list(_named(spec.command))
    others = [one.own_files for one in known_agents().values() if one.own_files not in own]
    return _together(own), others


def named_programs(command: Sequence[str]) -> frozenset[str]:
    """Return the words of a command that could be programs."""
    return frozenset(re.findall(r"[\w-]+", " ".join(command)))


def _named(command: Sequence[str]) -> Iterator[OwnFiles]:
    words = named_programs(command)
    for spec in known_agents().values():
        if words & {spec.program, *spec.aliases} or BULLPEN in words:
            yield spec.own_files
    for program in ACP_PROGRAMS:
        if program.command[0] in words:
            yield OwnFiles(folders=tuple(OwnFolder(path=folder) for folder in program.folders))


def _together(own: list[OwnFiles]) -> OwnFiles:
    return OwnFiles(
        folders=tuple(folder for one in own for folder in one.folders),
        copies=tuple(copy for one in own for copy in one.copies),
        reads=tuple(name for one in own for name in one.reads),
        fails=" ".join(one.fails for one in own if one.fails),
    )
