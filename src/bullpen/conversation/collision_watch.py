"""CollisionWatch: looks at a folder again and again while several turns work in it, and reports files that collide."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

from msgspec.structs import replace

from bullpen.clock import milliseconds, monotonic
from bullpen.conversation.collisions import Collision, Overlap, is_lost
from bullpen.conversation.events import FilesChanged
from bullpen.conversation.file_history import FileHistory
from bullpen.conversation.journal import Journal
from bullpen.conversation.member_agent import MemberAgent
from bullpen.errors import BullpenError
from bullpen.file_changes import ChangeRecord, FileChange, FileState
from bullpen.files.compare import is_tree
from bullpen.files.folders import Files
from bullpen.files.paths import path_of
from bullpen.files.snapshot import Snapshot
from bullpen.turn_events import Event

logger = logging.getLogger(__name__)

SECONDS = 0.25
"""How often the folder is looked at while nobody says that something was done."""
SOON = 0.05
"""How soon it is looked at again after a collision, since a file may be half written."""
SHARE = 10
"""Looks take at most this part of the time, 1/10, unless tools end."""
UNSEEN = "{} has overwritten what {} made of it before there was a look at that, so only what it was before is kept."
UNSURE = "They worked there at the same time, so which of them wrote which version is not known."


class CollisionWatch:
    """Watches one folder from the first turn in it to the last that overlaps."""

    def __init__(self, workspace: Files, history: FileHistory, journal: Journal) -> None:
        self.task: asyncio.Task[None] | None = None
        self._workspace = workspace
        self._history = history
        self._journal = journal
        self._overlap = Overlap(workspace.path_there)
        self._members: dict[str, str] = {}
        self._first = ""
        self._tree = ""
        self._seconds = SECONDS
        self._wake = asyncio.Event()
        self._looking = asyncio.Lock()
        self._found: dict[str, Collision] = {}
        """Collisions that are not told yet, by the paths of their files."""

    def begins(self, begun: ChangeRecord, agent: MemberAgent) -> None:
        """Note that a turn works there from now on. If it is not the only one, the watch begins."""
        turn_id, before = begun.turn_id, begun.changes.before
        alone = next(iter(self._overlap.turns), "")
        self._overlap.begins(turn_id, self._workspace.place_of(agent.folder), tells_tools=agent.spec.stream == "json")
        self._members[turn_id] = begun.member
        if not alone:
            self._first = before
        elif self.task is None and is_tree(self._first) and is_tree(before):
            self._tree = before
            self.task = asyncio.create_task(self._watch(alone))

    def on_event(self, turn_id: str, event: Event) -> None:
        """Note what a turn is doing, and look at once if it has just done something."""
        if self._overlap.on_event(turn_id, event):
            self._wake.set()

    async def look(self, ended: str = "") -> Snapshot:
        """Look at the folder now, and report what collides; `ended` is a turn that will write no more."""
        async with self._looking:
            began = monotonic()
            self._overlap.begin_look()
            now = await asyncio.to_thread(self._workspace.snapshot)
            if self.task is not None and is_tree(now.id):
                await self._seen(now.id, ended)
            self._seconds = SOON if self._found else max(SECONDS, SHARE * (monotonic() - began))
            return now

    def ends(self, turn_id: str) -> bool:
        """Note that a turn works there no more, after a last look; return whether it was the last one."""
        self._overlap.ends(turn_id)
        self._wake.set()
        return not self._overlap.turns

    async def _watch(self, alone: str) -> None:
        async with self._looking:
            await self._did_alone(alone)
        while self._overlap.turns:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), self._seconds)
            self._wake.clear()
            if self._overlap.turns:
                await self.look()

    async def _did_alone(self, turn_id: str) -> None:
        try:
            self._overlap.did(turn_id, await asyncio.to_thread(self._workspace.changed, self._first, self._tree))
        except BullpenError as error:
            logger.warning("not looked at for collisions error=%s", error)

    async def _seen(self, tree: str, ended: str) -> None:
        """Compare with the look before. Nothing that goes wrong here makes a turn fail."""
        before, self._tree = self._tree, tree
        try:
            files = await asyncio.to_thread(self._workspace.changed, before, tree) if before != tree else ()
            new = {one.file.path: one for one in self._overlap.seen(files)}
            due = [*self._settled(files, new), *self._written_by(ended)]
            if due:
                await self._report(await asyncio.to_thread(self._certain_or_lost, due), tree)
        except BullpenError as error:
            logger.warning("not looked at for collisions error=%s", error)

    def _settled(self, files: Sequence[FileChange], new: dict[str, Collision]) -> list[Collision]:
        """Return the collisions whose files have not changed since they were found, or only by somebody else again."""
        changed = {file.path: file for file in files}
        settled = [one for path, one in self._found.items() if path not in changed or path in new]
        half_written = {path: one for path, one in self._found.items() if path in changed and path not in new}
        self._found = new
        for path, one in half_written.items():
            self._found[path] = replace(one, file=replace(one.file, new=changed[path].new))
        return settled

    def _written_by(self, ended: str) -> list[Collision]:
        """Return the collisions that a turn has made which has ended; all of them after the last turn."""
        is_last = set(self._overlap.turns) == {ended}
        due = {path: one for path, one in self._found.items() if is_last or one.second == ended}
        self._found = {path: one for path, one in self._found.items() if path not in due}
        return list(due.values())

    def _certain_or_lost(self, found: Sequence[Collision]) -> list[Collision]:
        """Leave out where one turn may have made both versions, and nothing of the first is missing in the second."""
        differ = [one for one in found if one.file.old != one.file.new]
        return [one for one in differ if one.is_sure or self._is_lost(one)]

    def _is_lost(self, one: Collision) -> bool:
        base, first, second = (self._contents(state) for state in (one.base, one.file.old, one.file.new))
        return is_lost(base or b"", first, second)

    def _contents(self, state: FileState | None) -> bytes | None:
        return None if state is None else self._workspace.contents(state.blob)

    async def _report(self, found: Sequence[Collision], tree: str) -> None:
        groups: dict[tuple[str, str, bool, bool], list[Collision]] = {}
        for one in found:
            groups.setdefault((one.first, one.second, one.is_sure, one.is_first_seen), []).append(one)
        for group in groups.values():
            record = await asyncio.to_thread(self._record, group, tree)
            stored = await self._journal.state.in_store(self._history.add, record)
            self._overlap.told([one.file for one in group])
            self._journal.publish(FilesChanged.of(stored))

    def _record(self, group: Sequence[Collision], tree: str) -> ChangeRecord:
        one = group[0]
        first, second = self._members[one.first], self._members[one.second]
        # What else was changed since the look before is not part of it.
        before = self._workspace.tree_with(tree, {path_of(each.file): each.file.old for each in group})
        after = self._workspace.tree_with(tree, {path_of(each.file): each.file.new for each in group})
        changes = self._workspace.compare(before, after)
        note = "" if one.is_sure else UNSURE
        if not one.is_first_seen:
            note = UNSEEN.format(second, first)
        return ChangeRecord(
            kind="collision",
            turn_id=one.second,
            member=second,
            other=first,
            other_turn=one.first if one.is_first_seen else "",
            is_sure=one.is_sure,
            at=milliseconds(),
            changes=replace(changes, note=" ".join(filter(None, [changes.note, note]))),
        )
