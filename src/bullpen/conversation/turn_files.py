"""TurnFiles: what turns change in their folders: a look at the folder before each one, and another one after it."""

import asyncio
import logging
from collections.abc import Collection, Coroutine, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bullpen.clock import milliseconds
from bullpen.conversation.check_places import CheckRunner, ChecksHere
from bullpen.conversation.collision_watch import CollisionWatch
from bullpen.conversation.conflicts import Settling
from bullpen.conversation.events import FilesChanged, Trouble
from bullpen.conversation.file_history import FileChoice, FileHistory, stays_note
from bullpen.conversation.journal import Journal
from bullpen.conversation.looks import look_between_turns
from bullpen.conversation.member_agent import MemberAgent
from bullpen.conversation.merging import Brought
from bullpen.conversation.own_workspaces import OwnWorkspaces
from bullpen.conversation.program_changes import ProgramQuestions, digests_for, turns_to_look_at, with_programs
from bullpen.conversation.recorded_agents import RecordedAgents
from bullpen.conversation.told_apart import ToolTimes
from bullpen.conversation.turn_agents import TurnAgents, may_change_files
from bullpen.conversation.turn_checks import TurnChecks
from bullpen.conversation.undecided_elsewhere import Elsewhere, undecided_elsewhere
from bullpen.conversation.unfinished_changes import UnfinishedChanges
from bullpen.conversation.watched_folder import WatchedFolder, all_of
from bullpen.errors import (
    BullpenError,
    FolderInUse,
    NoOwnWorkspace,
    NothingToMerge,
    NothingToUndo,
    WorkerAway,
    WorkerRefused,
)
from bullpen.file_changes import ChangeRecord, FolderChanges
from bullpen.files.folders import Files
from bullpen.files.snapshot import LeftOut
from bullpen.files.workspace import NOT_KEPT
from bullpen.routing.progress import FilesLeft
from bullpen.routing.queue import WaitingTurn
from bullpen.team.team import Check
from bullpen.turn_events import Event

logger = logging.getLogger(__name__)


class TurnFiles:
    """Records what each turn changes. Nothing that goes wrong here makes a turn fail."""

    def __init__(
        self,
        journal: Journal,
        history: FileHistory | None,
        agents: TurnAgents,
        checks: Sequence[Check] = (),
        runner: CheckRunner | None = None,
        root: Path = Path(),
    ) -> None:
        self._journal = journal
        self._state = journal.state
        self._history = history
        self._agents = agents
        self._folders: dict[Path, WatchedFolder] = {}
        self._may_be_known = self._state.messages > 0
        """Whether the store may know folders that are not in memory: not before the first message."""
        self._looked: dict[str, tuple[WatchedFolder, FolderChanges]] = {}
        self._of_turns: dict[str, WatchedFolder] = {}
        self._left_out: dict[str, tuple[LeftOut, ...]] = {}
        """What the look before a turn has left out."""
        self._tools: dict[str, ToolTimes] = {}
        self._entered: dict[str, WatchedFolder] = {}
        self._merges_into: dict[str, WatchedFolder] = {}
        self._watches: dict[str, CollisionWatch] = {}
        self._ending: set[asyncio.Task[None]] = set()
        """Watches of folders in which nobody works any more."""
        self._recorded = RecordedAgents(journal, history)
        self.programs = ProgramQuestions(journal)
        """What people are asked about files that make programs run."""
        self._unfinished = UnfinishedChanges(journal, history, self._folders, self.programs)
        self.own = OwnWorkspaces(journal, history, agents, self._unfinished)
        # In a fork with files, folders of the team are elsewhere, too.
        original = history.forked.original if history is not None else Path
        self.checks = TurnChecks(
            journal, history, checks, runner or ChecksHere(root, original), self.own, self.programs
        )
        self._has_looked_elsewhere = False
        self.is_bringing = False
        """Whether a picked result is being merged."""

    @property
    def is_looking(self) -> bool:
        """Whether it is not known yet what a turn has changed that has ended, or that is not merged yet."""
        return self.own.is_merging or self.is_bringing or self.has_last_looks

    @property
    def has_last_looks(self) -> bool:
        """Whether it is not known yet what a turn has changed that has ended."""
        return any(folder.last_looks for folder in self._folders.values())

    async def start(self, adopted: Sequence[WaitingTurn] = ()) -> dict[str, str]:
        """Complete what the process before this one had begun when it was killed, but for turns that still run.

        Return what agents are to be asked that resolve conflicts, by the turns.
        """
        await self.checks.start()
        if self._history is None:
            return {}
        for turn in adopted:
            await self._adopt(self._history, turn)
        for record in await self._state.in_store(self._history.unasked, turns_to_look_at(self._state.progress)):
            self.programs.note(record)
        completed = await self._unfinished.complete()
        questions = await self.own.start(completed)
        await self.own.tell_of_marks()
        return questions

    async def undecided_elsewhere(self, turns: Sequence[WaitingTurn]) -> Elsewhere | None:
        """Return what another conversation waits for before agents may begin in the folders of these turns."""
        agents = [self._agents.of(turn) for turn in turns]
        folders = {folder for agent in agents for folder in (agent.folder, agent.shared) if folder is not None}
        is_first, self._has_looked_elsewhere = not self._has_looked_elsewhere, True
        return await self._state.read(undecided_elsewhere, folders, self._history, is_first=is_first)

    async def look(self, turn: WaitingTurn) -> None:
        """Look at the folder of a turn that is about to begin, if its agent may change files."""
        agent = self._agents.of(turn)
        await self.own.until_merged(turn)
        if agent.member.workspace == "own" and agent.shared is None and may_change_files(agent):
            raise NoOwnWorkspace(turn.member, "this conversation does not keep files.")
        self._recorded.tell_of(agent)
        if self._history is None or not self._recorded.has(agent):
            return
        if agent.shared is None and self._history.is_elsewhere:
            await self._look_elsewhere(self._history, turn, agent)
            return
        if agent.shared is not None:
            await self.own.complete_left()
            shared = await self.folder(self._history, agent.shared)
            if not self._agents.is_apart(turn):
                self._merges_into[turn.id] = shared
            folder, before = await self._look_at_own(self._history, turn, agent, shared)
        else:
            folder, before = await self._look_at_shared(self._history, turn, agent)
        self._looked[turn.id] = folder, FolderChanges(folder=folder.path, before=before)

    async def _look_at_shared(
        self, history: FileHistory, turn: WaitingTurn, agent: MemberAgent
    ) -> tuple[WatchedFolder, str]:
        folder = await self.folder(history, agent.folder)
        # Known from now on; another machine may be asked for it.
        await asyncio.to_thread(folder.workspace.place_of, agent.folder)
        await folder.enter(turn.id)
        self._entered[turn.id] = folder
        return folder, await look_between_turns(folder, history, self._journal)

    async def _look_elsewhere(self, history: FileHistory, turn: WaitingTurn, agent: MemberAgent) -> None:
        """Look at a folder on a worker. Without that, the turn still takes place."""
        try:
            await self._unfinished.complete_left()
            folder, before = await self._look_at_shared(history, turn, agent)
            self._looked[turn.id] = folder, FolderChanges(folder=folder.path, before=before)
        except WorkerRefused as error:
            # It says so of the turn, too.
            logger.info("not looked at turn=%s error=%s", turn.id, error)
        except WorkerAway as error:
            text = f"What {turn.member} changes in turn {turn.id} will not be known: {error}"
            self._journal.publish(Trouble(text=text))

    async def _look_at_own(
        self, history: FileHistory, turn: WaitingTurn, agent: MemberAgent, shared: WatchedFolder
    ) -> tuple[WatchedFolder, str]:
        """Bring an agent's own workspace up to date, and return it with the id of all files in it."""
        async with shared.writing:
            now = await look_between_turns(shared, history, self._journal)
        path, before = await self.own.bring_up_to_date(turn, agent, now)
        folder = await self.folder(history, path)
        await asyncio.to_thread(folder.workspace.place_of, agent.folder)
        folder.known = before
        if self._agents.is_apart(turn):
            # A retry continues in its worktree: its result is all that is in it, not only what it adds.
            before = await asyncio.to_thread(self.own.base_of, turn) or before
        return folder, before

    async def begin(self, turn: WaitingTurn) -> None:
        """Store what the folder of a turn is that begins now, so that its changes can be found even after a crash."""
        if turn.id in self._looked and self._history is not None:
            folder, changes = self._looked[turn.id]
            place = await asyncio.to_thread(folder.workspace.place_of, self._agents.of(turn).folder)
            digests = await asyncio.to_thread(digests_for, folder.workspace, place)
            changes = replace(changes, digests=digests)
            begun = ChangeRecord(
                kind="turn", turn_id=turn.id, member=turn.member, at=milliseconds(), state="begun", changes=changes
            )
            begun = await self._state.in_store(self._history.add, begun)
            # Not before it is stored: with a full disk this is tried again.
            self._looked.pop(turn.id, None)
            self._left_out[turn.id] = folder.left_out
            self._works(self._history, turn, folder, begun)
            if self._agents.of(turn).shared is not None:
                await asyncio.to_thread(self.own.begin, turn.member, turn.id)

    def _works(self, history: FileHistory, turn: WaitingTurn, folder: WatchedFolder, begun: ChangeRecord) -> None:
        """Note that a turn works in a folder from now on."""
        folder.at_work[turn.id] = begun
        self._of_turns[turn.id] = folder
        if folder.path not in self._watches:
            self._watches[folder.path] = CollisionWatch(folder.workspace, history, self._journal)
        agent, workspace = self._agents.of(turn), folder.workspace
        self._watches[folder.path].begins(begun, agent)
        if len(folder.at_work) > 1:
            # What another turn has changed is not a person's.
            for other in folder.at_work:
                self._tools.pop(other, None)
        # Nobody here knows when files on another machine changed, and people do not edit in an agent's own worktree.
        elif agent.spec.stream == "json" and str(workspace.root) == workspace.path_there and agent.shared is None:
            self._tools[turn.id] = ToolTimes(workspace.path_there, workspace.place_of(agent.folder))

    async def _adopt(self, history: FileHistory, turn: WaitingTurn) -> None:
        """Look at what a turn changes that began under another owner, and still runs."""
        for begun in await self._state.in_store(history.begun):
            if begun.kind == "turn" and begun.turn_id == turn.id:
                agent, folder = self._agents.of(turn), await self.folder(history, Path(begun.changes.folder))
                try:
                    # Its worker may be asked for this.
                    await asyncio.to_thread(folder.workspace.place_of, agent.folder)
                    own = await asyncio.to_thread(self.own.of, turn.member, turn.id) if agent.shared else None
                except (WorkerAway, WorkerRefused) as error:
                    logger.warning("not watched turn=%s error=%s", turn.id, error)
                    return
                if own is None:
                    await folder.enter(turn.id)
                    self._entered[turn.id] = folder
                elif not self._agents.is_apart(turn):
                    self._merges_into[turn.id] = await self.folder(history, own.shared)
                self._works(history, turn, folder, begun)

    def leave(self, turn: WaitingTurn) -> None:
        """Forget a turn that continues under another owner, who looks at what it changes."""
        self._looked.pop(turn.id, None)
        self._left_out.pop(turn.id, None)
        self._tools.pop(turn.id, None)
        self._merges_into.pop(turn.id, None)
        folder, entered = self._of_turns.pop(turn.id, None), self._entered.pop(turn.id, None)
        if folder is not None:
            del folder.at_work[turn.id]
            self._end_watch(folder, turn.id)
        if entered is not None:
            entered.leave(turn.id)

    def on_event(self, turn: WaitingTurn, event: Event) -> None:
        """Note what a turn is doing that may change files."""
        folder = self._of_turns.get(turn.id)
        if folder is not None:
            self._watches[folder.path].on_event(turn.id, event)
        if turn.id in self._tools:
            self._tools[turn.id].on_event(event)

    def after(self, turn: WaitingTurn, *, has_reply: bool, is_checked: bool = False) -> None:
        """Begin to look at what a turn has changed whose agent has ended, and to check it. The next turn there waits.

        What a turn without a reply did in a workspace of its own stays there: the agent's next turn continues with it.
        """
        self._looked.pop(turn.id, None)
        shared = self._merges_into.pop(turn.id, None)
        folder, entered = self._of_turns.pop(turn.id, None), self._entered.pop(turn.id, None)
        if folder is None or self._history is None:
            if entered is not None:
                entered.leave(turn.id)
            return
        is_own, stays = self._agents.of(turn).shared is not None, shared is not None and not has_reply
        begun = folder.at_work[turn.id]
        task = asyncio.create_task(self._last_look(self._history, folder, begun, is_own=is_own, stays=stays))
        folder.last_looks.add(task)
        task.add_done_callback(folder.last_looks.discard)
        task.add_done_callback(lambda _: folder.leave(turn.id))
        task.add_done_callback(lambda _: self._journal.changed.set())
        own = self._agents.of(turn).shared
        checking = self.checks.after(turn, task, folder, own) if is_checked else None
        if has_reply and shared is not None:
            self.own.merge_after(turn, checking or task, shared)

    async def has_changed(self, turn_id: str) -> bool:
        """Return whether a turn that has ended changed files, or nobody can say that it did not. It is waited for."""
        looks = [look for folder in self._folders.values() for look in folder.last_looks]
        await all_of(looks)
        records = [] if self._history is None else await self._state.in_store(self._history.of_turn, turn_id)
        # A note says what could not be seen.
        return not records or any(
            record.state != "done" or record.changes.files or record.changes.note for record in records
        )

    async def finish(self, *, merges: bool = False) -> None:
        """Wait until all that has ended is recorded, and also merged."""
        await all_of(task for folder in self._folders.values() for task in folder.last_looks)
        await all_of(self._ending)
        if merges:
            await self.own.finish()

    async def put(self, choice: FileChoice, turn_id: str | None, person: str) -> ChangeRecord:
        """Put files back, or bring them back, as a person wants it. The journal's lock is held meanwhile."""
        if self._history is None:
            raise NothingToUndo("This conversation does not keep what its files were.")
        await self._unfinished.complete_left()
        for folder in self._folders.values():
            if not folder.at_work:
                # What a person has changed is not taken for what is put back.
                await look_between_turns(folder, self._history, self._journal)
        put = partial(self._history.put, check=self.check_nobody_works_in)
        record = await self._unfinished.put(put, choice, turn_id, person, at=milliseconds())
        await self.own.end_conflicts()
        return record

    async def left_by_undo(self, turn_id: str | None) -> tuple[str, FilesLeft] | None:
        """Return the turn that an undo takes back, and what of it a person perhaps changed and the undo leaves."""
        if self._history is None:
            return None
        await self._unfinished.complete_left()
        return await self._state.in_store(self._history.left_by_undo, turn_id)

    async def put_programs(self, turn_id: str, paths: Collection[str], person: str) -> None:
        """Put only these files back to what they were before a turn. The journal's lock is held meanwhile."""
        if self._history is None or not paths:
            return
        await self._unfinished.complete_left()
        put = partial(self._history.put_programs, check=self.check_nobody_works_in)
        await self._unfinished.put_programs(put, turn_id, paths, person, at=milliseconds())

    async def merge_again(self, record: ChangeRecord) -> None:
        """Merge what was brought back into an agent's own workspace; if others edit the shared folder, after that."""
        own = await self.own.brought_back(record)
        if own is not None and self._history is not None:
            shared = await self.folder(self._history, own.shared)
            turn_id = await asyncio.to_thread(lambda: own.state.turn)
            merge = asyncio.create_task(self.merging(shared, self.own.merge(own.member, turn_id, shared)))
            if not shared.at_work:
                await merge

    async def merge(self, member: str) -> None:
        """Bring what an agent did in its own workspace into the shared folder now; raises NothingToMerge."""
        own = await asyncio.to_thread(self.own.of, member)
        if own is None or self._history is None or not await asyncio.to_thread(own.has_unmerged_work):
            raise NothingToMerge(member)
        shared = await self.folder(self._history, own.shared)
        for workspace in (shared.workspace, own.workspace):
            await self._state.in_store(self.check_nobody_works_in, workspace)
        turn_id = await asyncio.to_thread(lambda: own.state.turn)
        await self.merging(shared, self.own.merge(member, turn_id, shared))

    async def settle(self, how: Settling, turn_id: str, *, resolver: str = "") -> Brought:
        """Do what a person has decided about a conflict."""
        own = await asyncio.to_thread(self.own.of, self._state.progress.conflicts[turn_id].member, turn_id)
        if own is None or self._history is None:
            return Brought(is_nothing=True)
        shared = await self.folder(self._history, own.shared)
        async with shared.writing:
            if how != "apart" and not shared.at_work:
                # What a person has changed is not taken for what is merged, nor the other way round.
                await look_between_turns(shared, self._history, self._journal)
            return await self.own.settle(how, turn_id, own, shared, self.check_nobody_works_in, resolver)

    async def merging(self, shared: WatchedFolder, work: Coroutine[Any, Any, bool]) -> bool:
        """Let nobody begin to edit a shared folder while work is brought into it."""
        merge = asyncio.create_task(work)
        shared.merges.add(merge)
        merge.add_done_callback(shared.merges.discard)
        return await merge

    def forget(self, root: Path) -> None:
        """Forget a folder that is not there any more."""
        self._folders.pop(root, None)
        self._may_be_known = True

    def check_nobody_works_in(self, workspace: Files) -> None:
        """Raise FolderInUse if a turn may change files there now. Called in the store's thread."""
        running = list(self._state.running.values())
        at_work = [turn.member for turn in running if self._is_in(workspace, turn)]
        looking = [folder for folder in self._folders.values() if folder.path == str(workspace.root)]
        at_work += [
            f"the check {record.check}" if record.check else record.member
            for folder in looking
            for record in folder.at_work.values()
        ]
        # Also before the first of them, and between two.
        at_work += ["its checks" for folder in looking if folder.checks and not folder.at_work]
        if at_work:
            raise FolderInUse(str(workspace.root), dict.fromkeys(at_work))

    def _is_in(self, workspace: Files, turn: WaitingTurn) -> bool:
        agent = self._agents.of(turn)
        if self._history is None or not self._recorded.has(agent):
            return False
        if self._history.is_elsewhere:
            folder = self._entered.get(turn.id) or self._of_turns.get(turn.id)
            return folder is not None and folder.path == str(workspace.root)
        return self._history.snapshots.workspace(agent.folder).root == workspace.root

    async def folder(self, history: FileHistory, path: Path) -> WatchedFolder:
        """Return the folder of this root, with who works in it."""
        workspace = await asyncio.to_thread(history.snapshots.workspace, path)
        if workspace.root not in self._folders:
            known = ""
            if self._may_be_known:
                known = await self._state.in_store(history.last_id, str(workspace.root))
            self._folders.setdefault(workspace.root, WatchedFolder(workspace, known))
        return self._folders[workspace.root]

    async def _last_look(
        self, history: FileHistory, folder: WatchedFolder, begun: ChangeRecord, *, is_own: bool, stays: bool
    ) -> ChangeRecord | None:
        others = [record.member for turn_id, record in folder.at_work.items() if turn_id != begun.turn_id]
        left_out, tools = self._left_out.pop(begun.turn_id, ()), self._tools.pop(begun.turn_id, None)
        try:
            after = await self._watches[folder.path].look(begun.turn_id)
            if after.is_away:
                self._unfinished.tell(begun, after.note)
                return None
            folder.seen(after)
            if is_own:
                await asyncio.to_thread(self.own.seen, begun.member, begun.turn_id, after.id)
            changes = await asyncio.to_thread(folder.workspace.compare, begun.changes.before, after.id)
            changes = await asyncio.to_thread(with_programs, folder.workspace, begun.changes, changes)
            if tools is not None:
                told = partial(tools.told_apart, root=folder.workspace.root)
                changes = await asyncio.to_thread(told, changes, begun.turn_id, begun.member)
            stayed = stays_note(begun.member, changes) if stays else ""
            # The last look says why.
            known = "" if after.note and changes.note == NOT_KEPT else changes.note
            unknown = after.note_since(left_out)
            beside = _at_the_same_time(others) if changes.files else ""
            note = " ".join(filter(None, [known, unknown, beside, stayed]))
            done = await self._state.in_store(history.finish, begun, replace(changes, note=note))
            self.programs.note(done)
            if done.changes.files or note:
                self._publish(done)
            if not is_own:
                await self.own.tell_of_marks(begun.member)
            return done
        except BullpenError as error:
            logger.warning("changes not recorded conversation=%s error=%s", self._state.conversation_id, error)
            self._journal.publish(Trouble(text=f"What turn {begun.turn_id} changed could not be recorded: {error}"))
            return None
        finally:
            del folder.at_work[begun.turn_id]
            self._end_watch(folder, begun.turn_id)

    def _end_watch(self, folder: WatchedFolder, turn_id: str) -> None:
        watch = self._watches[folder.path]
        if watch.ends(turn_id):
            del self._watches[folder.path]
            if watch.task is not None:
                self._ending.add(watch.task)
                watch.task.add_done_callback(self._ending.discard)

    def _publish(self, record: ChangeRecord) -> None:
        self._journal.publish(FilesChanged.of(record))


def _at_the_same_time(members: Iterable[str]) -> str:
    names = ", ".join(dict.fromkeys(members))
    return f"{names} worked here at the same time, so what it changed may be among these changes." if names else ""
