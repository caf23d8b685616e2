"""ReviewLoop: reviews move on when turns end: a reviewer or a person is asked, and verdicts compared with the files."""

import asyncio
import logging
from functools import partial

from msgspec.structs import replace

from bullpen.clock import milliseconds
from bullpen.conversation import decisions, reviews
from bullpen.conversation.entry import Entry
from bullpen.conversation.file_history import FileHistory
from bullpen.conversation.journal import Journal
from bullpen.conversation.looks import look_between_turns
from bullpen.conversation.review_words import why_stale
from bullpen.conversation.turn_agents import TurnAgents, may_change_files
from bullpen.conversation.turn_files import TurnFiles
from bullpen.conversation.watched_folder import WatchedFolder
from bullpen.errors import BullpenError, StoreConflict, StoreError
from bullpen.file_changes import FolderChanges
from bullpen.routing.reviews import Review, asking

logger = logging.getLogger(__name__)


class ReviewLoop:
    """The reviews of one conversation."""

    def __init__(self, journal: Journal, history: FileHistory | None, agents: TurnAgents, files: TurnFiles) -> None:
        self._journal = journal
        self._state = journal.state
        self._history = history
        self._agents = agents
        self._files = files
        self._changed: set[str] = set()
        """Turns that have changed files, of builders that are not done."""

    # What people decide

    async def again(self, name: str | None, *, by: str) -> None:
        """Let a review continue for one more round, given by one of its members, or the only one that waits."""
        await self._journal.alone(lambda: self._decide(by, "again", partial(reviews.again, self._state, name)))

    async def end(self, name: str | None, *, by: str) -> None:
        """End a review without an approval."""
        await self._journal.alone(lambda: self._decide(by, "end-review", partial(reviews.end, self._state, by, name)))

    async def _decide(self, by: str, choice: str, build: "partial[Entry]") -> None:
        at = milliseconds()
        await self._journal.commit_built(lambda: decisions.decided_by(by, choice, build(at=at), at=at), by=by)

    # What happens by itself

    async def advance(self) -> None:
        """Do all that is due. The journal's lock is held. Nobody is asked before it is known what turns changed."""
        if not self._state.progress.reviews:
            return
        for builder in list(self._state.progress.reviews):
            try:
                while await self._step(builder):
                    pass
            except (StoreError, StoreConflict) as error:
                # It is tried again whenever something changes.
                logger.warning("a review does not move on conversation=%s error=%s", self._state.conversation_id, error)

    async def ask_on_opening(self) -> None:
        """Let a person decide before a reviewer is asked in a conversation that was opened again. The lock is held."""
        for one in list(self._state.progress.reviews.values()):
            if one.state in ("built", "judged"):
                why = f"bullpen stopped before {one.reviewer} could be asked."
                if one.state == "judged":
                    why = f"{one.reviewer} approved, and bullpen stopped before it had looked at the files."
                await self._journal.commit(reviews.ask_people(self._state, asking(one, why), at=milliseconds()))

    async def _step(self, builder: str) -> bool:
        """Do the next thing that is due in a review; return whether there may be more."""
        one = self._state.progress.reviews.get(builder)
        if one is None or self._journal.closing.is_set():
            return False
        match one.state:
            case "building" if not (one.turn or one.rounds or one.is_wanted or self._is_looking):
                await self._forget_if_nothing_changed(one)
                return False
            case "built" if not self._must_wait(one):
                await self._ask_reviewer(one)
            case "judged" if not self._is_looking:
                await self._compare(one)
            case "asking" if not one.is_asked:
                await self._journal.commit(reviews.ask_people(self._state, one, at=milliseconds()))
            case "approved" | "ended" if not one.is_told:
                changes = await self._all_changes(one)
                build = partial(reviews.told, self._state, builder, changes, at=milliseconds())
                await self._journal.commit_message(build)
            case _:
                return False
        return True

    @property
    def _is_looking(self) -> bool:
        """Whether it is not known yet what turns changed, or what checks say about it, or it is not merged yet."""
        return self._files.is_looking or self._files.checks.is_checking

    def _must_wait(self, one: Review) -> bool:
        """Return whether the builder's work is not ready for a review: being looked at, red, or in a conflict."""
        has_conflict = any(turn in self._state.progress.conflicts for turn in one.turns)
        return self._is_looking or has_conflict or reviews.is_being_fixed(self._state, one.builder)

    async def _ask_reviewer(self, one: Review) -> None:
        at = milliseconds()
        changed = [await self._has_changed(one.builder, turn) for turn in one.turns]
        if not (any(changed) or one.is_wanted or one.rounds):
            await self._journal.commit(reviews.forgotten(self._state, one.builder, at=at))
            return
        files = await self._files_now(one.builder)
        if one.turns and one.has_rounds_left:
            await self._journal.commit_built(partial(reviews.ask_reviewer, self._state, one.builder, files, at=at))
        elif one.has_rounds_left:
            # Nothing was built since it was asked last, so there is nothing new that it could answer.
            build = partial(reviews.ask_again, self._state, one.builder, files, None, at=at)
            await self._journal.commit_message(build)
        else:
            why = f"{one.reviewer} has been asked {one.most} times, and {one.builder} has changed more."
            await self._journal.commit(reviews.ask_people(self._state, asking(one, why), at=at))

    async def _has_changed(self, builder: str, turn_id: str) -> bool:
        """Return whether a turn has made something to review: of who is not to edit, what it says."""
        return not may_change_files(self._agents.of_members[builder]) or await self._files.has_changed(turn_id)

    async def _forget_if_nothing_changed(self, one: Review) -> None:
        """Forget a review that would begin when its builder is done, if there is nothing to review so far."""
        new = [turn for turn in one.turns if turn not in self._changed]
        self._changed.update([turn for turn in new if await self._has_changed(one.builder, turn)])
        if self._changed.isdisjoint(one.turns):
            await self._journal.commit(reviews.forgotten(self._state, one.builder, at=milliseconds()))

    async def _compare(self, one: Review) -> None:
        """Let an approval count, if the files are still those that it was given for."""
        at, given = milliseconds(), one.rounds[-1].files
        files = await self._files_now(one.builder)
        if files == given:
            approved = replace(one, state="approved", turns=())
            await self._journal.commit(reviews.changed(self._state, approved, at=at))
            return
        if not files:
            # Its worker may be away.
            why = f"{one.reviewer} approved, but the files cannot be looked at now, so they may have changed since."
            await self._journal.commit(reviews.ask_people(self._state, asking(one, why), at=at))
            return
        changes = await self._changes(one.builder, given, files)
        if one.has_rounds_left:
            build = partial(reviews.ask_again, self._state, one.builder, files, changes, at=at)
            await self._journal.commit_message(build)
        else:
            stale = asking(reviews.stale(one), why_stale(one, changes))
            await self._journal.commit(reviews.ask_people(self._state, stale, at=at))

    # Files

    async def _files_now(self, builder: str) -> str:
        """Return the id of all files that a builder works with; empty if nobody records them."""
        folder = await self._folder(builder)
        if folder is None or self._history is None:
            return ""
        try:
            return await look_between_turns(folder, self._history, self._journal)
        except BullpenError as error:
            logger.warning("not looked at conversation=%s error=%s", self._state.conversation_id, error)
            return ""

    async def _folder(self, builder: str) -> WatchedFolder | None:
        agent = self._agents.of_members[builder]
        is_known = self._history is not None and self._history.is_elsewhere == agent.is_elsewhere
        if self._history is None or not is_known or not may_change_files(agent):
            return None
        return await self._files.folder(self._history, agent.shared or agent.folder)

    async def _all_changes(self, one: Review) -> FolderChanges | None:
        """Return what was changed from the builder's first turn to the last round."""
        if self._history is None or not one.rounds or not one.rounds[-1].files:
            return None
        records = await self._state.in_store(self._history.of_turn, one.all_turns[0])
        # What was done in a workspace of its own counts when it is merged.
        first = next((record for kind in ("merge", "turn") for record in records if record.kind == kind), None)
        if first is None:
            return None
        return await self._changes(one.builder, first.changes.before, one.rounds[-1].files)

    async def _changes(self, builder: str, before: str, after: str) -> FolderChanges | None:
        folder = await self._folder(builder)
        if folder is None or not before or not after:
            return None
        try:
            return await asyncio.to_thread(folder.workspace.compare, before, after)
        except BullpenError:
            return None
