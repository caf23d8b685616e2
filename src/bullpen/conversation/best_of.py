"""BestOfSeveral: rounds move on when turns end: a judge or a person is asked, results are merged, worktrees removed."""

import asyncio
import logging
from collections.abc import Iterator
from functools import partial

from bullpen.clock import milliseconds
from bullpen.conversation import rounds
from bullpen.conversation.entry import Entry
from bullpen.conversation.events import Trouble
from bullpen.conversation.file_history import FileHistory
from bullpen.conversation.journal import Journal
from bullpen.conversation.turn_files import TurnFiles
from bullpen.conversation.watched_folder import all_of
from bullpen.errors import BullpenError, StoreConflict, StoreError
from bullpen.routing.rounds import Candidate, CandidateState
from bullpen.store.base import Store
from bullpen.team.team import Team

logger = logging.getLogger(__name__)

OVER: tuple[CandidateState, ...] = ("merged", "gone")


class BestOfSeveral:
    """The rounds of one conversation."""

    def __init__(self, team: Team, journal: Journal, history: FileHistory | None, files: TurnFiles) -> None:
        self._agents = frozenset(agent.name for agent in team.agents)
        self._journal = journal
        self._state = journal.state
        self._history = history
        self._files = files
        self._at_work: dict[str, asyncio.Task[None]] = {}
        """What is merged or removed now, by the candidate's turn."""
        self._tried: set[Candidate] = set()
        """What was done, or cannot be done until a person says that it is tried again."""
        self._gone: set[str] = set()
        """The turns of which no worktree is left."""

    async def advance(self, *, is_opening: bool = False) -> None:
        """Do all that is due. The journal's lock is held. Nobody is asked before it is known what turns changed."""
        try:
            while not self._is_waiting and (entry := self._next(may_judge=not is_opening)) is not None:
                await self._journal.commit(entry)
            for key, one in list(self._state.progress.rounds.items()):
                if one.state == "decided" and not one.is_told:
                    await self._journal.commit_message(partial(rounds.told, self._state, key, at=milliseconds()))
                elif one.state == "decided" and all(candidate.turn in self._gone for candidate in one.candidates):
                    await self._journal.commit(rounds.without_round(self._state, key, at=milliseconds()))
        except (StoreError, StoreConflict) as error:
            # It is tried again whenever something changes.
            logger.warning("a round does not move on conversation=%s error=%s", self._state.conversation_id, error)
            return
        for candidate in self._due():
            self._begin(candidate)
        self._files.is_bringing = bool(self._at_work)

    @property
    def _is_waiting(self) -> bool:
        """Whether it is not known yet what turns changed, or what checks say about it."""
        return self._files.has_last_looks or self._files.checks.is_checking

    def try_again(self) -> None:
        """Try to merge again what could not be merged."""
        self._tried.clear()
        self._journal.changed.set()

    async def finish(self) -> None:
        """Wait until nothing is merged or removed."""
        await all_of(self._at_work.values())

    def _next(self, *, may_judge: bool) -> Entry | None:
        return rounds.next_step(self._state, self._agents, may_judge=may_judge, at=milliseconds())

    def _due(self) -> Iterator[Candidate]:
        """Yield the candidates whose work is to be merged, or whose worktree is to be removed."""
        progress = self._state.progress
        for one in progress.rounds.values():
            is_over = one.state == "decided" and not one.in_state("picked") and not one.in_state("waiting")
            for candidate in one.candidates:
                is_tried = candidate.turn in self._at_work or candidate in self._tried
                if is_tried or candidate.turn in progress.conflicts:
                    continue
                if candidate.state in ("picked", "gone", "merged") or is_over:
                    yield candidate

    def _begin(self, candidate: Candidate) -> None:
        self._tried.add(candidate)
        task = asyncio.create_task(self._settle(candidate))
        self._at_work[candidate.turn] = task
        task.add_done_callback(lambda _: self._forget(candidate))

    def _forget(self, candidate: Candidate) -> None:
        del self._at_work[candidate.turn]
        self._files.is_bringing = bool(self._at_work)
        self._journal.changed.set()

    async def _settle(self, candidate: Candidate) -> None:
        try:
            if candidate.state == "picked":
                if await self._is_merged(candidate):
                    await self._note(candidate, "merged")
                    await self._removed(candidate)
            elif candidate.state in OVER:
                await self._removed(candidate)
            elif await asyncio.to_thread(self._files.own.of_candidate, candidate) is None:
                # Nothing is left of it but what it said.
                await self._note(candidate, "gone")
        except (BullpenError, OSError) as error:
            logger.warning("a result is left conversation=%s error=%s", self._state.conversation_id, error)

    async def _is_merged(self, candidate: Candidate) -> bool:
        own = await asyncio.to_thread(self._files.own.of_candidate, candidate)
        if own is None or self._history is None:
            return not await self._is_lost(candidate)
        shared = await self._files.folder(self._history, own.shared)
        merge = self._files.own.merge(candidate.member, candidate.turn, shared, again="/pick")
        return await self._files.merging(shared, merge)

    async def _is_lost(self, candidate: Candidate) -> bool:
        """Return whether the worktree of a candidate that changed files is not there any more, and say so."""
        if not await self._state.read(_has_changed_files, candidate.turn):
            return False
        text = f"{candidate.member}'s result cannot be merged: somebody has removed its worktree."
        self._journal.publish(Trouble(text=f"{text} What it was can be read: /diff {candidate.turn}"))
        await self._note(candidate, "gone")
        return True

    async def _note(self, candidate: Candidate, new: CandidateState) -> None:
        async def commit() -> None:
            await self._journal.commit(rounds.became(self._state, candidate.turn, new, at=milliseconds()))

        await self._journal.shielded(commit)

    async def _removed(self, candidate: Candidate) -> None:
        """Remove a candidate's worktree."""
        own = await asyncio.to_thread(self._files.own.of_candidate, candidate)
        if own is not None:
            await asyncio.to_thread(own.remove)
            self._files.forget(own.path)
        self._gone.add(candidate.turn)


def _has_changed_files(store: Store, conversation_id: str, turn_id: str) -> bool:
    records = store.changes(conversation_id, turn_ids=[turn_id], patches=False)
    return any(record.kind == "turn" and record.changes.files for record in records)
