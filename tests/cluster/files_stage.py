"""A worker with a git repository and agents that may edit files, and a conversation with what a viewer sees of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from tests.cluster.processes import Processes
from tests.cluster.repositories import git, repository
from tests.cluster.stage import Script, WorkerStage

from bullpen.app import open_conversation
from bullpen.check_results import CheckResult
from bullpen.cluster.node import open_node
from bullpen.cluster.remote_team import RemoteTeam
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import FilesChanged, Trouble, TurnEvent
from bullpen.file_changes import ChangeRecord
from bullpen.store.postgres.store import PostgresStore
from bullpen.store.thread import StoreThread
from bullpen.team.file import load_team
from bullpen.turn_events import Notice

OWNER = "tests.cluster.owner_process"
WRITES: Script = [{"write_file": {"path": "a.txt", "text": "one\ntwo\n"}}, {"say": "Done."}]


class FilesStage(WorkerStage):
    """A worker with a git repository, and agents that may edit files."""

    def __init__(self, folder: Path, url: str, processes: Processes) -> None:
        super().__init__(folder, url, processes)
        repository(self.folder)

    def prepare(
        self,
        permissions: str = "edit",
        checks: str = "",
        allowed: object = (),
        workspace: str = "shared",
        **members: Script,
    ) -> Path:
        """Write the worker's file, and a team."""
        team = self.write_team(**members)
        keys = f'permissions = "{permissions}"\nworkspace = "{workspace}"\n'
        text = team.read_text().replace('pool = "', f'{keys}pool = "')
        team.write_text(f"{text}\n{checks}")
        self.write_file(permissions="edit", checks=allowed)
        return team

    @property
    def text(self) -> str:
        """What is in the file that agents change."""
        return (self.folder / "a.txt").read_text()

    @property
    def home(self) -> Path:
        """Where the worker keeps what is not in its folders."""
        return self.file.parent / "home" / "worker-files"

    def worktrees(self) -> list[str]:
        """Return the names of the worktrees that the repository knows, but its own."""
        printed = git(self.folder, "worktree", "list", "--porcelain").splitlines()
        paths = [Path(line.removeprefix("worktree ")) for line in printed if line.startswith("worktree ")]
        return sorted(path.name for path in paths if path != self.folder)

    def records(self, conversation_id: str) -> list[ChangeRecord]:
        """Return what was changed in a conversation."""
        with PostgresStore(self.url) as store:
            return store.changes(conversation_id)

    def results(self, conversation_id: str) -> list[CheckResult]:
        """Return what its checks said."""
        with PostgresStore(self.url) as store:
            return store.checks(conversation_id)


class Opened:
    """A conversation with what a viewer sees."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.changed: list[FilesChanged] = []
        self.troubles: list[str] = []
        self.notices: list[str] = []
        self._task = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        async for event in self.conversation.watch():
            match event:
                case FilesChanged():
                    self.changed.append(event)
                case Trouble():
                    self.troubles.append(event.text)
                case TurnEvent(event=Notice() as notice):
                    self.notices.append(notice.text)
                case _:
                    pass

    async def talk(self, text: str = "Go.") -> None:
        """Say something, and wait until nothing happens any more."""
        await self.conversation.say(text)
        await self.conversation.until_quiet()

    async def until_told(self, text: str) -> None:
        """Wait until people are told something."""
        while not any(text in one for one in self.troubles):
            await asyncio.sleep(0.01)

    async def until_noticed(self, text: str) -> None:
        """Wait until a turn says something of itself."""
        while text not in self.notices:
            await asyncio.sleep(0.01)


@asynccontextmanager
async def opened(url: str, team: Path, resume: str | None = None) -> AsyncIterator[Opened]:
    """Open a conversation on a node of its own."""
    thread = StoreThread()
    async with open_node(url, name="n") as node:
        with node.open_store() as store:
            remote = partial(RemoteTeam, node)
            async with open_conversation(
                load_team(team), store, thread, resume, remote=remote, continues=True
            ) as conversation:
                seen = Opened(conversation)
                await asyncio.sleep(0)
                yield seen
    thread.close()


async def until_there(url: str, count: int = 1) -> None:
    """Wait until workers have joined."""
    async with open_node(url, name="n") as node:
        while len(node.workers("gpu-box")) < count:
            await node.look_at_workers()
            await asyncio.sleep(0.01)
