"""OwnWorkspaces: agents in worktrees of their own: brought up to date before a turn, merged when it has ended."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from bullpen.clock import milliseconds
from bullpen.conversation import conflicts
from bullpen.conversation.conflicts import Settling
from bullpen.conversation.events import FilesChanged, Trouble
from bullpen.conversation.file_history import CheckFolder, FileHistory, files_home
from bullpen.conversation.journal import Journal
from bullpen.conversation.looks import look_between_turns
from bullpen.conversation.member_agent import MemberAgent
from bullpen.conversation.merging import Brought, bring, complete
from bullpen.conversation.turn_agents import TurnAgents
from bullpen.conversation.unfinished_changes import UnfinishedChanges
from bullpen.conversation.unresolved_marks import Marks, UnresolvedMarks
from bullpen.conversation.watched_folder import WatchedFolder, all_of
from bullpen.errors import BullpenError, FilesError, NoOwnWorkspace, WorkerAway
from bullpen.file_changes import ChangeRecord
from bullpen.files.compare import is_tree
from bullpen.files.own_workspace import OwnState
from bullpen.files.workspace import FolderSnapshots
from bullpen.files.worktrees import Worktree
from bullpen.files.worktrees_here import WorktreesHere
from bullpen.routing.queue import WaitingTurn
from bullpen.routing.rounds import Candidate, candidate_of
from bullpen.store.base import Store

logger = logging.getLogger(__name__)


class Ended(Struct, kw_only=True):
    """A turn in a workspace of its own that has ended, until its work is merged."""

    turn: WaitingTurn
    is_stored: asyncio.Event
    """Set when its reply is stored, so that the merge comes after it."""
    reply: str = ""
    """The id of the message that it ended with."""
    merge: asyncio.Task[None] | None = None


class OwnWorkspaces:
    """The worktrees of the agents of a conversation."""

    def __init__(
        self, journal: Journal, history: FileHistory | None, agents: TurnAgents, unfinished: UnfinishedChanges
    ) -> None:
        self._journal = journal
        self._state = journal.state
        self._history = history
        self._worktrees = None if history is None else history.worktrees
        self._agents = agents.of_members
        self._unfinished = unfinished
        self._ended: dict[str, Ended] = {}
        self.marks = UnresolvedMarks(journal)

    @property
    def is_merging(self) -> bool:
        """Whether work of turns that have ended is not in the shared folder yet, and nobody must decide about it."""
        return any(ended.merge is not None for ended in self._ended.values())

    async def finish(self) -> None:
        """Wait until the work of all turns that have ended is merged."""
        await all_of(ended.merge for ended in self._ended.values() if ended.merge is not None)

    def of(self, member: str, turn_id: str = "", *, begins: bool = False) -> Worktree | None:
        """Return the worktree of an agent, or the one for a turn only; made or not; None if there is none. Blocks.

        It must be said if a turn begins in it.
        """
        agent, candidate = self._agents.get(member), candidate_of(self._state.progress.rounds, turn_id)
        if self._worktrees is None or (agent is not None and agent.is_elsewhere != self._worktrees.are_elsewhere):
            return None
        if candidate is not None:
            # A retry may begin on another machine than the first try.
            found = None if begins else self.of_candidate(candidate)
            if found is not None or agent is None or agent.member.permissions == "read-only":
                return found
            return self._worktrees.of(member, agent.shared or agent.folder, candidate.place, begins=begins)
        if agent is not None and agent.shared is not None:
            return self._worktrees.of(member, agent.shared, begins=begins)
        return self._worktrees.found(member)

    def of_candidate(self, candidate: Candidate) -> Worktree | None:
        """Return the worktree of one of several, if it was made. Blocks."""
        return None if self._worktrees is None else self._worktrees.found(candidate.member, candidate.place)

    # Before a turn

    async def until_merged(self, turn: WaitingTurn) -> None:
        """Wait until everything is in the shared folder that a turn follows: of its relay, or of who asked for it."""
        before = [
            ended.merge
            for ended in self._ended.values()
            if ended.merge is not None
            and (turn.member == ended.turn.member or turn.message_id in (ended.turn.message_id, ended.reply))
        ]
        await all_of(before)

    async def bring_up_to_date(self, turn: WaitingTurn, agent: MemberAgent, tree: str) -> tuple[Path, str]:
        """Bring all files of the shared folder into a turn's worktree; return it, and the id of what is in it then."""
        own = await asyncio.to_thread(self.of, turn.member, turn.id, begins=True)
        if own is None:
            raise NoOwnWorkspace(agent.member.name, "this conversation does not keep files.")
        return own.path, await asyncio.to_thread(own.bring_up_to_date, tree, agent.folder)

    def base_of(self, turn: WaitingTurn) -> str:
        """Return the id of the files that a turn's worktree was made with, before anything was done in it. Blocks."""
        own = self.of(turn.member, turn.id)
        return "" if own is None else own.state.base

    def begin(self, member: str, turn_id: str) -> None:
        """Note which turn works in a worktree now. Blocks."""
        if (own := self.of(member, turn_id)) is not None:
            own.note(turn=turn_id, is_apart=False, is_unseen=True)

    # After a turn

    def seen(self, member: str, turn_id: str, tree: str) -> None:
        """Note what is in a worktree, before anything else is done with it. Blocks."""
        own = self.of(member, turn_id)
        if own is not None and is_tree(tree):
            own.note(seen=tree)

    def merge_after(self, turn: WaitingTurn, before: "asyncio.Task[Any]", shared: WatchedFolder) -> None:
        """Bring what a turn did into the shared folder, after its reply is stored, and nobody changes files there.

        `before` is what must be done first: looking at it, and checking it.
        """
        ended = Ended(turn=turn, is_stored=asyncio.Event())
        self._ended[turn.id] = ended
        ended.merge = asyncio.create_task(self._merge_after(ended, before, shared))
        shared.merges.add(ended.merge)
        ended.merge.add_done_callback(shared.merges.discard)
        ended.merge.add_done_callback(lambda _: self._forget(turn.id))

    def replied(self, turn_id: str, message_id: str) -> None:
        """Note with which message a turn ended, before anybody is asked to answer it."""
        if turn_id in self._ended:
            self._ended[turn_id].reply = message_id

    def stored(self, turn_id: str) -> None:
        """Note that the end of a turn is stored."""
        if turn_id in self._ended:
            self._ended[turn_id].is_stored.set()

    def _forget(self, turn_id: str) -> None:
        del self._ended[turn_id]
        self._journal.changed.set()

    async def _merge_after(self, ended: Ended, before: "asyncio.Task[Any]", shared: WatchedFolder) -> None:
        await all_of([before])
        await ended.is_stored.wait()
        await self.merge(ended.turn.member, ended.turn.id, shared)

    async def merge(self, member: str, turn_id: str, shared: WatchedFolder, *, again: str = "/merge") -> bool:
        """Bring what an agent did into the shared folder, or ask people about the conflicts; return if it is there.

        `again` is the command that tries it again.
        """
        where = ""
        try:
            await self.complete_left()
            own = await asyncio.to_thread(self.of, member, turn_id)
            if own is None or self._history is None:
                return False
            where = f" It is in {own.path}."
            async with shared.alone():
                # What a person has changed is not taken for what is merged.
                await look_between_turns(shared, self._history, self._journal)
                brought = await self._unfinished.do(bring, self._history, own, turn_id=turn_id, at=milliseconds())
                self._tell(brought.record, shared)
            if brought.conflicts:
                files = [conflict.path for conflict in brought.conflicts]
                await self._journal.shielded(lambda: self._commit_conflict(turn_id, member, files))
                return False
            await self._journal.shielded(lambda: self._commit_over(turn_id, member))
            await self.tell_of_marks(member)
            return True
        except BullpenError as error:
            logger.warning("not merged conversation=%s error=%s", self._state.conversation_id, error)
            self._unfinished.are_left |= isinstance(error, WorkerAway)
            text = f"What {member} did in turn {turn_id} is not in the shared folder: {error}{where}"
            self._journal.publish(Trouble(text=f"{text} To try again: {again} {member}"))
            return False

    def _tell(self, record: ChangeRecord | None, shared: WatchedFolder) -> None:
        if record is not None:
            # What is merged is not taken for what a person changed.
            shared.known = record.changes.after
            self._journal.publish(FilesChanged.of(record))

    async def _commit_conflict(self, turn_id: str, member: str, files: Sequence[str]) -> None:
        await self._journal.commit(conflicts.found(self._state, turn_id, member, files, at=milliseconds()))

    async def _commit_over(self, turn_id: str, member: str) -> None:
        if (entry := conflicts.over(self._state, turn_id, member, at=milliseconds())) is not None:
            await self._journal.commit(entry)

    # What a person decides

    async def settle(
        self, how: Settling, turn_id: str, own: Worktree, shared: WatchedFolder, check: CheckFolder, resolver: str
    ) -> Brought:
        """Do what a person has decided about a conflict."""
        if self._history is None:
            return Brought()
        if how == "apart":
            await asyncio.to_thread(own.note, is_apart=True)
            return Brought()
        brought = await self._unfinished.do(
            bring, self._history, own, turn_id=turn_id, at=milliseconds(), how=how, resolver=resolver, check=check
        )
        self._tell(brought.record, shared)
        return brought

    async def end_conflicts(self) -> None:
        """Settle the conflicts of which nothing is left, since it was taken back. The journal's lock is held."""
        for turn_id, conflict in list(self._state.progress.conflicts.items()):
            with suppress(FilesError):
                own = await asyncio.to_thread(self.of, conflict.member, turn_id)
                if own is not None and not await asyncio.to_thread(own.has_unmerged_work):
                    await asyncio.to_thread(own.note, seen=(await _state_of(own)).base)
                    entry = conflicts.settled(self._state, turn_id, "keep", is_nothing=True, at=milliseconds())
                    await self._journal.commit(entry)

    async def brought_back(self, record: ChangeRecord) -> Worktree | None:
        """Return the worktree into which a redo or a rewind has brought back what is to be merged, as after a turn."""
        own = await asyncio.to_thread(self.of, record.member)
        if record.kind not in ("redo", "rewind") or own is None or Path(record.changes.folder) != own.path:
            return None
        await asyncio.to_thread(own.note, is_unseen=True)
        return own if await self._is_due(own, interrupted=True) else None

    async def tell_of_marks(self, resolver: str | None = None) -> None:
        """Tell people which files still have conflict marks: those that an agent was to resolve, or all."""
        await self.marks.look()
        for about, marks in await asyncio.to_thread(self._marked, resolver):
            self.marks.tell(about, marks)

    def _marked(self, resolver: str | None) -> list[tuple[str, Marks]]:
        found = []
        for own in () if self._worktrees is None else self._worktrees.all():
            state = own.state
            if not state.marked or resolver not in (None, state.resolver):
                continue
            left = own.still_marked(state.marked)
            if left != state.marked:
                with suppress(FilesError):
                    own.note(marked=left)
            if left:
                found.append((own.path.name, Marks(own=own, files=left, resolver=state.resolver)))
        return found

    # What a crash left

    async def start(self, completed: Sequence[ChangeRecord]) -> dict[str, str]:
        """Complete what the process before this one had begun, and merge what it had not.

        Return what agents are to be asked that resolve conflicts, by the turns: both versions are in the files.
        """
        questions, rounds = await self._completed_candidates(), self._state.progress.rounds
        asked = {
            conflict.member: turn_id
            for turn_id, conflict in self._state.progress.conflicts.items()
            if candidate_of(rounds, turn_id) is None
        }
        for member in sorted(
            {*asked}.union(member for member, agent in self._agents.items() if agent.shared is not None)
        ):
            with self._left_for_later():
                await self._unfinished.do(self._completed, member)
                own = await asyncio.to_thread(self.of, member)
                interrupted = any(record.kind == "turn" and record.member == member for record in completed)
                if own is None:
                    continue
                if member not in asked and await self._is_due(own, interrupted=interrupted):
                    await self._merge_on_opening(own)
                elif member in asked:
                    questions |= await self._decided(own, asked[member])
        return questions

    async def _completed_candidates(self) -> dict[str, str]:
        """Do the same for best of several, where what is picked is merged later."""
        progress, questions = self._state.progress, dict[str, str]()
        for candidate in [one for known in progress.rounds.values() for one in known.candidates]:
            with self._left_for_later():
                await self._unfinished.do(self._completed, candidate.member, candidate.turn)
                own = await asyncio.to_thread(self.of_candidate, candidate)
                if own is not None and candidate.turn in progress.conflicts:
                    questions |= await self._decided(own, candidate.turn)
        return questions

    async def _decided(self, own: Worktree, turn_id: str) -> dict[str, str]:
        """Settle a conflict that was decided, if only that was not stored any more; or return what is to be asked."""
        if await asyncio.to_thread(own.has_unmerged_work):
            return {}
        if question := (await _state_of(own)).question:
            return {turn_id: question}
        await self._journal.shielded(partial(self._commit_over, turn_id, own.member))
        return {}

    @contextmanager
    def _left_for_later(self) -> Iterator[None]:
        """Open a conversation also if a worktree cannot be looked at now: its worker may be away."""
        try:
            yield
        except FilesError as error:
            logger.warning("own workspace not reached conversation=%s error=%s", self._state.conversation_id, error)

    async def complete_left(self) -> None:
        """Complete what was begun while its worker went away, and is there again."""
        if not self._unfinished.are_left:
            return
        await self._unfinished.complete_left()
        for member in [member for member, agent in self._agents.items() if agent.shared is not None]:
            await self._unfinished.do(self._completed, member)
        for candidate in [one for known in self._state.progress.rounds.values() for one in known.candidates]:
            await self._unfinished.do(self._completed, candidate.member, candidate.turn)

    def _completed(self, member: str, turn_id: str = "") -> None:
        try:
            own = self.of(member, turn_id)
            if own is not None and self._history is not None and (last := own.state.turn):
                complete(own, self._history.of_turn(last))
        except (FilesError, OSError) as error:
            # Its next turn says it again, if it is still so.
            logger.warning("own workspace not completed member=%s error=%s", member, error)

    async def _merge_on_opening(self, own: Worktree) -> None:
        if self._history is not None:
            workspace = await asyncio.to_thread(self._history.snapshots.workspace, own.shared)
            await self.merge(own.member, (await _state_of(own)).turn, WatchedFolder(workspace, ""))

    async def _is_due(self, own: Worktree, *, interrupted: bool) -> bool:
        return await self._state.read(_is_due, await _state_of(own), interrupted)


async def _state_of(own: Worktree) -> OwnState:
    return await asyncio.to_thread(lambda: own.state)


def _is_due(store: Store, conversation_id: str, state: OwnState, interrupted: bool) -> bool:
    """Return whether a worktree may hold what a turn with a reply did, and what is not in the shared folder."""
    if not state.turn or state.is_apart:
        return False
    return (interrupted or state.is_unseen or state.seen != state.base) and store.turn(
        conversation_id, state.turn
    ).state == "done"


def own_folders(store: Store, conversation_id: str) -> Callable[[str, Path], Path] | None:
    """Return a function that says where an agent works in its worktree: at the same place as in the shared folder.

    None if files are not kept beside this store.
    """
    home = files_home(store)
    return None if home is None else WorktreesHere(FolderSnapshots(home), conversation_id).folder
