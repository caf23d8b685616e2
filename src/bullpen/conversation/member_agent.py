"""MemberAgent: one agent of a team: its CLI, its folder, its permissions."""

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from bullpen.agents.environment import child_environment
from bullpen.agents.inline_system_text import refuses_file
from bullpen.agents.registry import is_known, spec_for
from bullpen.agents.runner import Reply, find_program, run_turn
from bullpen.agents.settings_choice import choose_settings
from bullpen.agents.spec import AgentSpec, Emit, SessionSpec
from bullpen.context.agent_types import unknown_type_warning
from bullpen.context.prompt import AssemblerOutput
from bullpen.conversation.check_places import CheckRunner
from bullpen.conversation.forked_files import ForkedFiles
from bullpen.conversation.prepared_turn import PreparedTurn
from bullpen.conversation.running_turn import RunningTurn
from bullpen.errors import NeedsCluster
from bullpen.files.folders import Folders
from bullpen.files.worktrees import Worktrees
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import PoolOrder
from bullpen.team.sandboxes import rules_of
from bullpen.team.team import Member


class Extra(Struct, frozen=True, kw_only=True):
    """What a rehearsal adds to a member's own settings, to point its CLI at models that cost nothing."""

    env: Mapping[str, str] = {}
    arguments: tuple[str, ...] = ()


NOTHING_EXTRA = Extra()


class AnnouncedInstructions(Struct, frozen=True, kw_only=True):
    """What another machine says of an instruction file."""

    text: str = ""
    problem: str = ""
    """Why some of it is not there."""


class MemberAgent(Struct, frozen=True, kw_only=True):
    """An agent that can take turns."""

    member: Member
    spec: AgentSpec
    folder: Path
    """Where its program runs."""
    shared: Path | None = None
    """If it works in a worktree of its own, the folder that it has in common with others."""
    apart: str = ""
    """If that worktree is for one turn only, the turn it was made for."""
    extra: Extra = NOTHING_EXTRA
    agreed: Callable[[], Collection[str]] = frozenset
    """Returns the settings in its folder to which people have agreed."""

    @property
    def warning(self) -> str:
        """What people should know before its first turn."""
        agent = self.member.agent
        if not agent or is_known(agent):
            return ""
        return unknown_type_warning(agent)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of its program."""
        return child_environment(self.spec, {**self._environment(), **self.extra.env})

    @property
    def refuses_system_file(self) -> bool:
        """Whether its program is known to be too old for a file with the system text, so that its prompt has it."""
        if self.spec.system_file_flag is None or self.is_elsewhere:
            return False
        return refuses_file(find_program(self.spec.program, self.environment, self.folder))

    @property
    def sessions(self) -> SessionSpec | None:
        """How its program continues a session, with the permissions that it has."""
        return self.spec.with_permissions(self.member.permissions).sessions

    @property
    def has_tools(self) -> bool:
        """Whether it can call the tools of a turn."""
        return self.may_have_tools

    @property
    def may_have_tools(self) -> bool:
        """Whether the team file and its CLI let it."""
        return self.member.tools and self.spec.with_permissions(self.member.permissions).tools is not None

    @property
    def is_elsewhere(self) -> bool:
        """Whether its turns run on other machines, so that its sessions are there, too."""
        return bool(self.member.pool)

    def order_for(self, turn: WaitingTurn, prepared: PreparedTurn) -> PoolOrder | None:
        """Return what is ordered from workers in the commit that begins a turn; None if it runs here."""
        del turn, prepared
        return None

    async def until_reachable(self, tell: Callable[[str], None]) -> None:
        """Wait until it can be looked where its files are; `tell` tells people why that takes long."""

    def settled(self, turn: WaitingTurn) -> None:
        """Note that the end of a turn is stored."""

    async def adopt(self, running: RunningTurn, *, emit: Emit) -> PreparedTurn:
        """Take over a turn that began under another owner and runs elsewhere, and return what it was given."""
        raise NotImplementedError

    @property
    def reads_by_itself(self) -> Collection[str]:
        """The usual instruction files that its program reads by itself."""
        permission = self.member.permissions
        spec = self.spec.with_permissions(permission)
        if not spec.reads_by_itself(permission, True):
            return ()
        choice = choose_settings(spec, permission, self.folder, self.agreed, self.environment)
        return spec.reads_by_itself(permission, not choice.leaves_out)

    @property
    def announced_instructions(self) -> AnnouncedInstructions:
        """The instruction file of its folder, if that is on another machine."""
        return AnnouncedInstructions()

    async def take_turn(self, given: AssemblerOutput, running: RunningTurn, *, emit: Emit) -> Reply:
        """Let the agent answer, with all its settings from the team file."""
        member = self.member
        return await run_turn(
            self.spec,
            given,
            emit=emit,
            cwd=self.folder,
            permissions=member.permissions,
            allow=member.allow,
            model=member.model,
            arguments=(*member.arguments, *self.extra.arguments),
            env={**self._environment(), **self.extra.env},
            idle_timeout=member.idle_timeout,
            total_timeout=member.total_timeout,
            session=given.report.session,
            on_command=running.on_command,
            on_output=running.on_output,
            ask=running.ask,
            on_tell=running.on_tell,
            server=running.server,
            asked=running.asked,
            agreed=self.agreed,
            sandbox=rules_of(member),
        )

    def _environment(self) -> dict[str, str]:
        return {name: os.environ[name] for name in self.member.env if name in os.environ}


class RemoteTeam(Protocol):
    """The agents of a team whose turns run on workers."""

    @property
    def folders(self) -> Folders:
        """The folders in which they work."""

    @property
    def worktrees(self) -> Worktrees:
        """Those that some of them have for themselves."""

    @property
    def forked(self) -> ForkedFiles:
        """Which of the folders are elsewhere, if the conversation was forked with files; known from the start on."""

    @property
    def checks(self) -> CheckRunner:
        """Runs checks in them."""

    def agent(self, member: Member) -> MemberAgent:
        """Return one of them."""

    async def start(self) -> None:
        """End what earlier owners of the conversation have ordered, except for turns that run."""


def agent_for(
    member: Member,
    root: Path,
    extra: Extra = NOTHING_EXTRA,
    own: Callable[[str, Path], Path] | None = None,
    place: Callable[[Path], Path] = lambda folder: folder,
    agreed: Callable[[], Collection[str]] = frozenset,
) -> MemberAgent:
    """Return an agent of a team whose file is in `root`; UnknownAgent is raised for an unknown type without command.

    One in a pool runs elsewhere: NeedsCluster is raised.

    `own` says where it works if it has a workspace of its own, by its name and its folder; `place`, where a folder is
    in a fork with files.
    """
    if member.pool:
        raise NeedsCluster(member.name, member.pool)
    spec = spec_for(member.agent, member.command, name=member.name)
    folder = place((root / member.cwd).absolute())
    if member.workspace == "own" and member.permissions != "read-only" and own is not None:
        there = own(member.name, folder)
        return MemberAgent(member=member, spec=spec, folder=there, shared=folder, extra=extra, agreed=agreed)
    return MemberAgent(member=member, spec=spec, folder=folder, extra=extra, agreed=agreed)
