"""The hub: the conversations that this server has open. They stay open even if no page shows them."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from bullpen.app import NO_EXTRAS, open_conversation
from bullpen.clock import milliseconds, sleep
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.files_to_fork import FilesHere
from bullpen.conversation.member_agent import Extra
from bullpen.database import Database, SharedDatabase
from bullpen.errors import BullpenError, ReadOnlyHere, StoreError, UnknownConversation
from bullpen.exchange.forking import fork_conversation
from bullpen.team.file import LoadedTeam, load_team, read_loaded
from bullpen.team.trust import Trust
from bullpen.view.listing import (
    ConversationSummary,
    all_conversations,
    archive,
    conversation_summary,
    unarchive,
)
from bullpen.view.state import ConversationView
from bullpen.web.attention import AttentionFeed
from bullpen.web.live import LiveConversation
from bullpen.web.nodes import Nodes

if TYPE_CHECKING:
    from bullpen.telemetry.telemetry import Telemetry

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

logger = logging.getLogger(__name__)

AGAIN_SECONDS = 1.0
"""Before a conversation is opened again that could not be."""
MOST_OPEN = 100
MOST_OPEN_ON_A_NODE = 1_000
MOST_TEAMS = 30


class Hub:
    """Opens conversations and keeps them open: closing a tab does not end their turns."""

    def __init__(
        self,
        shared: SharedDatabase,
        *,
        team: LoadedTeam | None = None,
        trust: Trust | None = None,
        extra: Mapping[str, Extra] = NO_EXTRAS,
        telemetry: "Telemetry | None" = None,
        nodes: Nodes | None = None,
    ) -> None:
        self.team = team
        """The team of new conversations; None: none can be started."""
        self.database = shared.database
        self._shared = shared
        self.trust = trust or Trust()
        self.telemetry = telemetry
        """What its conversations are followed by, if that is asked for."""
        self._extra = extra
        self.everywhere = AttentionFeed()
        """Where a person is needed, on all nodes."""
        self.attention = self.everywhere if nodes is None else AttentionFeed(self.everywhere)
        """Where a person is needed in what is open here."""
        self._open: dict[str, _Opened] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._opening: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._nodes = nodes
        self._is_leaving = False

    def get(self, conversation_id: str) -> LiveConversation | None:
        """Return a conversation that is open here."""
        opened = self._open.get(conversation_id)
        if opened is not None and opened.live.conversation.is_lost:
            self._leave(conversation_id)
            return None
        return None if opened is None else opened.live

    async def require(self, conversation_id: str) -> LiveConversation:
        """Return a conversation that is open here, or raise UnknownConversation or ReadOnlyHere."""
        opened = self.get(conversation_id)
        if opened is None:
            await self.read(conversation_summary, conversation_id)
            raise ReadOnlyHere(f"Conversation {conversation_id} is not open here. Continue it first.")
        return opened

    async def begin(self, team: Path | None = None) -> LiveConversation:
        """Start a conversation of the team in a file, or of the one that the server was started with."""
        if team is not None:
            return await self._opened(await asyncio.to_thread(self.trusted_team, team), None)
        if self.team is None:
            raise ReadOnlyHere(
                "This server has no team. Start `bullpen serve` with a team file to start conversations."
            )
        return await self._opened(self.team, None)

    def people(self) -> list[str]:
        """Return the people in the team of new conversations, and in those of conversations that are open here."""
        teams = [opened.live.conversation.team for opened in self._open.values()]
        everyone = [*([self.team.team] if self.team else []), *teams]
        return list(dict.fromkeys(person.name for team in everyone for person in team.people))

    async def team_files(self) -> list[Path]:
        """Return the team files that are known here: the server's own first, then as they were last used."""
        used = [Path(one.team_path) for one in await self.read(all_conversations) if one.team_path]
        return list(dict.fromkeys([*([self.team.path] if self.team else []), *used]))[:MOST_TEAMS]

    def adopt(self, team: LoadedTeam) -> None:
        """Start new conversations with a changed team, if the server was started with its file."""
        if self.team is not None and self.team.path == team.path:
            self.team = team

    async def resume(self, conversation_id: str) -> LiveConversation:
        """Open a conversation again, if its team file exists and is trusted, and no other process has it open."""
        stored = await self.read(conversation_summary, conversation_id)
        opened = self.get(conversation_id)
        return opened or await self._opened(await asyncio.to_thread(self._team_of, stored), conversation_id)

    async def take_over(self, conversation_id: str) -> LiveConversation:
        """Continue a conversation whose node has died or left: as if nothing had happened."""
        if (opened := self.get(conversation_id)) is not None:
            return opened
        stored = await self.read(conversation_summary, conversation_id)
        team = await asyncio.to_thread(self._team_of, stored)
        return await self._opened(team, conversation_id, continues=True)

    async def fork(self, conversation_id: str, at: int | None, *, with_files: bool = False) -> str:
        """Fork a conversation at a message, or at its end, and open the new one if it can be continued here."""
        # Not in the database's own thread, where turns wait for it: a long conversation takes a while.
        find = FilesHere if self._nodes is None else self._nodes.finding_files()
        fork = await asyncio.to_thread(
            fork_conversation, self.database, conversation_id, at, with_files=with_files, find=find
        )
        with suppress(BullpenError):
            await self.resume(fork.id)
        return fork.id

    async def release(self, conversation_id: str) -> None:
        """Close a conversation without running turns, so that another process may open it."""
        opened = await self.require(conversation_id)
        if opened.conversation.running:
            raise ReadOnlyHere("An agent is working in this conversation. Cancel its turn first, or wait.")
        await self._open.pop(conversation_id).close()
        self.attention.forget(conversation_id)

    async def archive(self, conversation_id: str) -> None:
        """Close a conversation here, and take it out of the lists."""
        if self.get(conversation_id) is None:
            await self.read(archive, conversation_id, at=milliseconds())
            return
        await self.release(conversation_id)
        # Nothing is left of one in which nothing was said.
        with suppress(UnknownConversation):
            await self.read(archive, conversation_id, at=milliseconds())

    async def unarchive(self, conversation_id: str) -> None:
        """Put a conversation back into the lists."""
        await self.read(unarchive, conversation_id)

    async def read(
        self,
        work: Callable[Concatenate[Database, Arguments], Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Call a function with the database, in its thread."""
        return await self._shared.read(work, *args, **kwargs)

    def why_read_only(self, stored: ConversationSummary) -> str:
        """Return why a conversation cannot be continued here, or "". Reads files: do not call it in the event loop."""
        if stored.open_in is not None:
            return f"It is open in process {stored.open_in}. Continue there; new messages appear here."
        try:
            self._team_of(stored)
        except BullpenError as error:
            return str(error)
        return ""

    async def close(self) -> None:
        """Close every conversation. Running turns are cancelled, and waiting turns are kept.

        Other nodes continue those of a node.
        """
        self._is_leaving = True
        opened, self._open = list(self._open.values()), {}
        await asyncio.gather(*(one.close() for one in opened), *self._leaving)
        self.attention.frames.close()
        self.everywhere.frames.close()

    async def _opened(self, team: LoadedTeam, resume: str | None, *, continues: bool = False) -> LiveConversation:
        # Shielded: a browser that disconnects must not leave a conversation half open.
        return await asyncio.shield(asyncio.ensure_future(self._keep_open(team, resume, continues=continues)))

    async def _keep_open(self, team: LoadedTeam, resume: str | None, *, continues: bool) -> LiveConversation:
        async with self._opening.setdefault(resume or "", asyncio.Lock()):
            already = self.get(resume) if resume else None
            if already is not None:
                return already
            most = MOST_OPEN if self._nodes is None else MOST_OPEN_ON_A_NODE
            if self._is_leaving:
                raise ReadOnlyHere("This server is being stopped.")
            if len(self._open) >= most:
                raise ReadOnlyHere(f"{len(self._open)} conversations are open here. Close one first.")
            opened = await _Opened.begin(self._entering(team, resume, continues=continues), self._take_state)
            self._open[opened.live.conversation.id] = opened
            return opened.live

    def _entering(
        self, team: LoadedTeam, resume: str | None, *, continues: bool
    ) -> Callable[[], AbstractAsyncContextManager[Conversation]]:
        entering = partial(
            open_conversation, team, self.database, self._shared.thread, resume, self._extra, self.telemetry
        )
        if self._nodes is None:
            return entering
        return partial(
            entering,
            remote=self._nodes.team,
            continues=continues,
            node=self._nodes.number,
            hands_over=lambda: self._is_leaving,
        )

    def _take_state(self, view: ConversationView) -> None:
        """Take the new state of a conversation: where a person is needed, or that another process has taken it."""
        opened = self._open.get(view.id)
        if opened is not None and opened.live.conversation.is_lost:
            self._leave(view.id)
        else:
            self.attention.update(view)

    def _leave(self, conversation_id: str) -> None:
        """Close a conversation that another process has taken: here it can only be read, or opened again later."""
        leaving = asyncio.create_task(self._closed(conversation_id, self._open.pop(conversation_id)))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)
        self.attention.forget(conversation_id)

    async def _closed(self, conversation_id: str, opened: "_Opened") -> None:
        """Close a conversation; if nobody has taken it, and only what is stored is uncertain, open it again."""
        is_uncertain = opened.live.conversation.is_uncertain
        await opened.close()
        while is_uncertain and not self._is_leaving:
            try:
                await self.take_over(conversation_id)
                return
            except StoreError as error:
                logger.warning("not opened again conversation=%s error=%s", conversation_id, error)
                await sleep(AGAIN_SECONDS)
            except BullpenError as error:
                logger.warning("not opened again conversation=%s error=%s", conversation_id, error)
                return

    def _team_of(self, stored: ConversationSummary) -> LoadedTeam:
        """Return the team of a stored conversation, or raise an error that says why it may not run."""
        if self._nodes is not None and (pooled := self._pooled_team(stored)) is not None:
            return pooled
        if not stored.team_path:
            way = f"In a terminal: bullpen chat TEAM.toml --resume {stored.id}"
            raise ReadOnlyHere(f"It was not started from a team file. {way}")
        return self.trusted_team(Path(stored.team_path))

    def _pooled_team(self, stored: ConversationSummary) -> LoadedTeam | None:
        """Return the team as it is stored, if nothing of it runs on this machine: then workers decide what may run."""
        text = self.database.conversation(stored.id).team_file
        loaded = read_loaded(Path(stored.team_path or stored.id), text)
        return loaded if all(agent.pool for agent in loaded.team.agents) else None

    def trusted_team(self, path: Path) -> LoadedTeam:
        """Return the team in a file, or raise an error that says why it may not run. Reads the file."""
        if self.team is not None and self.team.path == path:
            # The team runs as it was trusted when the server was started, even if the file has changed since.
            return self.team
        loaded = load_team(path)
        if not self.trust.knows(loaded.path, loaded.text):
            raise ReadOnlyHere(
                f"{path} is not trusted, or has changed. To trust it, run in a terminal: bullpen serve {path}"
            )
        return loaded


class _Opened:
    """An open conversation, with the task that entered it and will leave it."""

    def __init__(self, live: LiveConversation, task: "asyncio.Task[None]", leave: asyncio.Event) -> None:
        self.live = live
        self._task = task
        self._leave = leave

    @classmethod
    async def begin(
        cls,
        enter: Callable[[], AbstractAsyncContextManager[Conversation]],
        on_state: Callable[[ConversationView], None],
    ) -> "_Opened":
        leave = asyncio.Event()
        entered: asyncio.Future[LiveConversation] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(_stay(enter, on_state, entered, leave))
        return cls(await entered, task, leave)

    async def close(self) -> None:
        self._leave.set()
        await self._task


async def _stay(
    enter: Callable[[], AbstractAsyncContextManager[Conversation]],
    on_state: Callable[[ConversationView], None],
    entered: "asyncio.Future[LiveConversation]",
    leave: asyncio.Event,
) -> None:
    try:
        async with enter() as conversation:
            live = LiveConversation(conversation, on_state)
            following = asyncio.create_task(live.feed.follow())
            entered.set_result(live)
            await leave.wait()
        # It ends after the last event of the closed conversation.
        await following
    except Exception as error:
        if entered.done():
            raise
        entered.set_exception(error)
