"""WorkerFile: what others may run on a machine, in the words of that machine. A node's word never counts for more."""

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from bullpen.agents.environment import matches
from bullpen.agents.registry import agent_spec, spec_for
from bullpen.agents.spec import AgentSpec
from bullpen.cluster.orders import Work
from bullpen.errors import NotAllowedHere, UnknownAgent
from bullpen.permissions import Permission

LEVELS: tuple[Permission, ...] = ("read-only", "edit", "ask", "full")


class WorkerFile(Struct, frozen=True, kw_only=True):
    """What a worker lets others run."""

    folders: dict[str, str]
    """Where agents may work, by the name that a member's cwd begins with."""
    agents: tuple[str, ...] = ()
    """The types of agents that may run."""
    commands: tuple[tuple[str, ...], ...] = ()
    """Other programs that may run, each with exactly these arguments."""
    checks: tuple[tuple[str, ...], ...] = ()
    """Commands that may run after turns as checks, beside those above."""
    permissions: Permission = "read-only"
    """What an agent may do at most."""
    allow: tuple[str, ...] = ()
    """Commands that an agent may be allowed to run without being asked."""
    models: tuple[str, ...] = ()
    """Models that a member's entry may name; without a name, an agent runs with the one of its CLI's own settings."""
    sandbox: bool = False
    """Whether the system holds agents here to their permissions; what may do everything is never held."""
    writable: tuple[str, ...] = ()
    """What they may write then beside their folders."""
    arguments: tuple[str, ...] = ()
    """Arguments that a member's entry may add."""
    env: tuple[str, ...] = ()
    """Names of variables that a member may ask for; a trailing * matches any ending."""
    at_once: int = 4
    """How many turns run at the same time."""
    name: str = ""
    """What others see; empty: the name of the machine."""

    def spec_for(self, work: Work) -> AgentSpec:
        """Return what an order runs; NotAllowedHere is raised if it may not."""
        if work.command and work.command not in self.commands:
            raise NotAllowedHere(f"the command {' '.join(work.command)!r} is not among its commands")
        try:
            if not work.command and agent_spec(work.agent).name not in self._agents():
                raise NotAllowedHere(f"the agent {work.agent!r} is not among its agents")
            return spec_for(work.agent, work.command, name=work.member)
        except UnknownAgent as error:
            raise NotAllowedHere(f"there is no agent {work.agent!r} there") from error

    def check(self, work: Work) -> None:
        """Raise NotAllowedHere if an order asks for more than the file gives."""
        if work.permissions not in LEVELS[: LEVELS.index(self.permissions) + 1]:
            raise NotAllowedHere(f'permissions = "{work.permissions}" is more than its "{self.permissions}"')
        if work.model is not None and work.model not in self.models:
            raise NotAllowedHere(f"the model {work.model!r} is not among its models")
        for what, wanted, given in (("allow", work.allow, self.allow), ("arguments", work.arguments, self.arguments)):
            if missing := [one for one in wanted if one not in given]:
                raise NotAllowedHere(f"{what} does not hold {missing[0]!r}")
        if missing := [name for name in work.env if not matches(name, self.env)]:
            raise NotAllowedHere(f"env does not hold {missing[0]!r}")

    def check_command(self, command: tuple[str, ...]) -> None:
        """Raise NotAllowedHere if a command may not run as a check."""
        if command not in (*self.checks, *self.commands):
            raise NotAllowedHere(f"the command {' '.join(command)!r} is not among its checks")

    def place_of(self, cwd: str) -> tuple[Path, Path]:
        """Return which of its folders a place is in, and the place; NotAllowedHere is raised for one in none."""
        wanted = Path(cwd)
        if wanted.is_absolute():
            candidates = [(Path(root), wanted) for root in self.folders.values()]
        elif wanted.parts and wanted.parts[0] in self.folders:
            root = Path(self.folders[wanted.parts[0]])
            candidates = [(root, root.joinpath(*wanted.parts[1:]))]
        else:
            candidates = [(Path(root), Path(root) / wanted) for root in self.folders.values()][:1]
            if len(self.folders) > 1:
                candidates = []
        for root, folder in candidates:
            if folder.resolve().is_relative_to(root.resolve()):
                return root.resolve(), folder.resolve()
        raise NotAllowedHere(f"{cwd!r} is not in one of its folders ({', '.join(self.folders)})")

    def environment_for(self, work: Work, ours: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Return the variables that an order asks for, with the values of this machine."""
        return {name: ours[name] for name in work.env if name in ours}

    def _agents(self) -> list[str]:
        return [agent_spec(name).name for name in self.agents]
