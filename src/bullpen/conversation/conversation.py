"""Conversation: people speak and decide, agents take turns, and viewers get an event for everything."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from msgspec.structs import replace

from bullpen.agents.runner import to_the_end
from bullpen.approvals import Answer, Scope
from bullpen.check_results import CheckResult
from bullpen.clock import milliseconds
from bullpen.context.history import History
from bullpen.context.manager import ContextManager, task_too_long
from bullpen.context.prompt import AssemblerOutput
from bullpen.conversation import asks, budgets, conflicts, decisions, files_left, program_changes, rounds
from bullpen.conversation.approvals import Approvals, StandingAnswers
from bullpen.conversation.best_of import BestOfSeveral
from bullpen.conversation.broadcast import Viewer
from bullpen.conversation.check_places import CheckRunner
from bullpen.conversation.conflicts import Settling
from bullpen.conversation.consequences import note, person_message, route_of_person
from bullpen.conversation.entry import Entry
from bullpen.conversation.events import ConversationEvent, Trouble
from bullpen.conversation.file_history import FileChoice, FileHistory
from bullpen.conversation.heartbeat import keep_alive
from bullpen.conversation.hidden_replies import last_visible
from bullpen.conversation.journal import Journal
from bullpen.conversation.member_agent import MemberAgent
from bullpen.conversation.memories import Memories
from bullpen.conversation.prompts import Prompts
from bullpen.conversation.resume import opening_events, resume
from bullpen.conversation.review_loop import ReviewLoop
from bullpen.conversation.running_turn import RunningTurn
from bullpen.conversation.state import ConversationState, UndecidedTurn
from bullpen.conversation.summaries import Summaries
from bullpen.conversation.turn_agents import NOBODY, TurnAgents
from bullpen.conversation.turn_files import TurnFiles
from bullpen.conversation.turn_loop import TurnLoop
from bullpen.conversation.workspaces import workspaces
from bullpen.errors import (
    AnsweredAlready,
    BullpenError,
    MessageDiffers,
    NobodyToAsk,
    NothingRuns,
    NothingSaid,
    NothingToMerge,
    NothingToSumUp,
    NothingToUndo,
    NotWorking,
    StoreUncertain,
    UnknownMessage,
    UnknownSender,
)
from bullpen.file_changes import ChangeRecord
from bullpen.markers.grammar import DEFAULT_INTENT, Markers, read_markers
from bullpen.memory import Memory
from bullpen.routing.budgets import BudgetUse
from bullpen.routing.obstacles import Checking
from bullpen.routing.progress import Progress
from bullpen.routing.queue import WaitingTurn
from bullpen.routing.rounds import Candidate, candidate_of, hidden_from
from bullpen.routing.router import Route, Router
from bullpen.store.base import Decision, Store, StoredMessage
from bullpen.team.team import Member, Team
from bullpen.text.clean import clean_text

NO_MARKERS = read_markers("")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
THE_OWNER = "owner"
"""Who decides where nobody says which of several people they are."""


class Conversation:
    """One conversation that this process owns. `open_team` makes it; closing it ends the running turns.

    Every change is an entry: built by a pure function, committed by the journal. Methods that change something return
    when it is stored.
    """

    def __init__(
        self,
        team: Team,
        state: ConversationState,
        agents: Mapping[str, MemberAgent],
        history: History,
        store: Store,
        root: Path,
        file_history: FileHistory | None = None,
        check_runner: CheckRunner | None = None,
        standing: StandingAnswers | None = None,
        stand_ins: Mapping[tuple[str, str], MemberAgent] = NOBODY,
    ) -> None:
        self.team = team
        self._state = state
        of_turns = TurnAgents(agents, state, None if file_history is None else file_history.worktrees, stand_ins)
        self._router = Router(team, of_turns.why_not_apart)
        self._journal = Journal(team, state, history)
        prompts = Prompts(self._journal.context, store, state.conversation_id, team, root)
        memories = Memories(store, state.conversation_id)
        place = file_history.forked.place if file_history is not None else Path
        self.root = root
        self.workspaces = workspaces(team.agents, root, place)
        """For each member that may edit files, the folder in which it may."""
        self._files = TurnFiles(self._journal, file_history, of_turns, team.checks, check_runner, root)
        self._best_of = BestOfSeveral(team, self._journal, file_history, self._files)
        self.reviews = ReviewLoop(self._journal, file_history, of_turns, self._files)
        """What agents review of each other's work."""
        self.approvals = Approvals(self._journal, standing)
        """What running agents ask."""
        self._summaries = Summaries(team, self._router, self._journal, of_turns)
        self._turns = TurnLoop(
            *(team, self._router, self._journal, of_turns, prompts, memories),
            *(self.workspaces, self._files, self._best_of, self.reviews, self._summaries, self.approvals),
        )
        self._loops: list[asyncio.Task[None]] = []

    # What a person says

    async def say(self, text: str, *, sender: str | None = None, message_id: str | None = None) -> StoredMessage:
        """Say something as a person, and return when it is stored. With an id of your own, sending it again is safe."""
        text = clean_text(text)
        if not text.strip():
            raise NothingSaid
        return await self._journal.alone(lambda: self._say(text, read_markers(text), sender, message_id))

    async def note(self, text: str, *, sender: str | None = None) -> StoredMessage:
        """Store a note as a person, for everyone to read. It asks nobody."""
        text = clean_text(text)
        if not text.strip():
            raise NothingSaid
        person = self._router.sender_of(NO_MARKERS, given=sender, waited_for=self._state.waits_for)
        build = partial(note, self._state, person, text, at=milliseconds())
        return await self._journal.alone(lambda: self._journal.commit_message(build))

    def route_of(self, text: str, *, sender: str | None = None) -> Route:
        """Return whom a person's message would ask, if it were said now."""
        markers = read_markers(text)
        person = self._router.sender_of(markers, given=sender, waited_for=self._state.waits_for)
        if markers.sum_up is not None:
            return self._router.route(person, self._router.with_summarizer(markers))
        return route_of_person(self._router, self._state, person, text, markers)

    async def _say(self, text: str, markers: Markers, sender: str | None, message_id: str | None) -> StoredMessage:
        try:
            person = self._router.sender_of(markers, given=sender, waited_for=self._state.waits_for)
            if markers.sum_up is not None:
                return await self._journal.commit_message(
                    await self._summaries.asking(person, text, markers), message_id
                )
            build = partial(person_message, self._router, self._state, person, text, markers, at=milliseconds())
            return await self._journal.commit_message(build, message_id)
        except (MessageDiffers, NothingToSumUp, UnknownSender):
            stored = None if message_id is None else await self._state.read(_message_or_none, message_id)
            if stored is None:
                raise
            return self._said_before(stored, text, markers, sender)

    def _said_before(self, stored: StoredMessage, text: str, markers: Markers, sender: str | None) -> StoredMessage:
        """Return a message that is sent again. Its sender must be the same, even if we now wait for someone else."""
        speaker = stored.message.speaker
        person = self._router.sender_of(markers, given=sender, waited_for=speaker.role_id)
        if stored.message.content != text or person.name != speaker.role_id:
            raise MessageDiffers(stored.message.id)
        return replace(stored, already_stored=True)

    async def tell(self, member: str, text: str, *, sender: str | None = None) -> bool:
        """Give words to an agent while it works; return whether its model gets them in this turn.

        They are stored first. If its CLI cannot take them now, they are said to it, for its next turn.
        """
        agent = self.agent(member)
        running = next((one for one in self.running.values() if one.turn.member == agent.name), None)
        if running is None:
            raise NotWorking(agent.name)
        if not running.can_be_told:
            await self.say(f"@{agent.name} {text}", sender=sender)
            return False
        await self.note(f"(to {agent.name} while it worked) {text}", sender=sender)
        if await running.tell(text):
            return True
        await self.ask(agent.name, by=sender)
        return False

    # What a person decides

    async def answer(
        self, turn_id: str, question: str, answer: Answer, *, scope: Scope = "once", by: str | None = None
    ) -> None:
        """Answer what a running agent asks. A "stop" also cancels its turn."""
        asked = self.approvals.open.get((turn_id, question))
        await self.approvals.answer(turn_id, question, answer, scope=scope, by=self._decider(by))
        if asked is not None and asked.question.kind == "question" and answer.verdict == "yes":
            person = decisions.last_person(self.team, self._state).name if by is None else by
            words = " ".join(asked.question.why.split())
            await self.note(f"(answered {asked.member}: {words}) {answer.text}", sender=person)
        if answer.verdict == "stop":
            with suppress(NothingRuns):
                await self.cancel(turn_id, by=by)

    async def answer_ask(self, turn_id: str, text: str, *, by: str | None = None) -> None:
        """Answer a reply that offered answers with [ASK: …]: the words are said to the agent, as a person's message.

        The first answer counts: AnsweredAlready is raised for any other.
        """
        text, at = clean_text(text), milliseconds()
        if not text.strip():
            raise BullpenError("Say which answer you mean: its number, or other words.")
        await self._check_asked(turn_id)
        person = decisions.last_person(self.team, self._state) if by is None else self.person(by)

        def build(message_id: str) -> Entry:
            entry = asks.answer(self._state, self._router, person, turn_id, text, message_id=message_id, at=at)
            return decisions.decided_by(person.name, asks.stored_choice(text), entry, at=at)

        await self._journal.alone(lambda: self._journal.commit_message(build))

    async def dismiss_ask(self, turn_id: str, *, by: str | None = None) -> None:
        """Leave such a reply without an answer."""
        await self._check_asked(turn_id)
        await self._decide(by, asks.NO_ANSWER, asks.dismiss, turn_id)

    async def _check_asked(self, turn_id: str) -> None:
        if turn_id not in self.progress.asks and (known := asks.answered_by(await self.read(decisions_in), turn_id)):
            raise AnsweredAlready(*known)

    async def cancel(self, *turn_ids: str, by: str | None = None, asks: bool = False) -> tuple[WaitingTurn, ...]:
        """Stop running turns, or all. If others wait in the queue, it pauses until a person continues or drops it.

        Nobody is asked about what they have cancelled, which can be retried, unless it was a time limit or a signal
        that `asks`. Checks that run after turns stop, too.
        """
        stopped = await self._files.checks.cancel(turn_ids)
        left = [turn_id for turn_id in turn_ids if turn_id not in {turn.id for turn in stopped}]
        if stopped and not left and (turn_ids or not self._state.running):
            return stopped
        turns = await self._journal.alone(lambda: self._cancelled(left, by, is_wanted=not asks))
        tasks = {turn: self._turns.tasks[turn.id] for turn in turns if turn.id in self._turns.tasks}
        for task in tasks.values():
            task.cancel()
        if tasks:
            await asyncio.wait(tasks.values())
            # Who leaves right after it is told what they have changed.
            await self._files.finish()
        return tuple(tasks)

    async def continue_turns(self, *, by: str | None = None) -> None:
        """End a pause: waiting turns begin, and the limits count from zero."""
        await self._decide(by, "continue", decisions.continue_turns)

    async def raise_budgets(self, whose: str | None = None, *, always: bool = False, by: str | None = None) -> None:
        """Raise what is used up, or nearly so: by the same amount, or for good; of a member, of "" or of everyone."""
        owners = None if whose is None else (whose and self.agent(whose).name,)
        build = partial(budgets.raise_budgets, always=always)
        await self._decide(by, f"raise {'always' if always else 'once'}", build, self.budget_uses, owners)

    async def drop(
        self,
        *,
        member: str | None = None,
        members: Collection[str] = (),
        turn_ids: Collection[str] = (),
        by: str | None = None,
    ) -> tuple[WaitingTurn, ...]:
        """Take waiting turns out of the queue: those with these ids and those of members; without either, all."""
        named = members if member is None else (member, *members)
        return (await self._decide(by, "drop", decisions.drop, self._router, named, turn_ids)).drops

    async def allow(self, *turn_ids: str, by: str | None = None) -> None:
        """Let waiting turns begin that an agent may not ask for by itself."""
        await self._decide(by, "allow", decisions.allow, turn_ids)

    async def keep_programs(self, turn_id: str, *, by: str | None = None) -> None:
        """Keep files that make programs run as a turn has made them; agents may begin again."""
        await self._decide(by, program_changes.KEPT, program_changes.settled, turn_id, "its files are kept")

    async def undo_programs(self, turn_id: str, *, by: str | None = None) -> None:
        """Put only those files back to what they were before the turn; agents may begin again."""
        program_changes.check_asked(self._state, turn_id)
        await self._files.finish(merges=True)
        await self._journal.alone(lambda: self._undo_programs(turn_id, self._decider(by)))

    async def _undo_programs(self, turn_id: str, person: str) -> None:
        program_changes.check_asked(self._state, turn_id)
        await self._files.put_programs(turn_id, self.progress.programs[turn_id].files, person)
        await self._commit_decision(
            person, program_changes.PUT_BACK, program_changes.settled, turn_id, "its files are put back"
        )

    async def retry(self, turn_id: str | None = None, *, by: str | None = None) -> WaitingTurn:
        """Retry a turn that ended without a reply; without an id, the latest."""
        return (await self._decide(by, "retry", decisions.retry, self._router, turn_id)).turns[0]

    async def skip(self, turn_id: str | None = None, *, by: str | None = None) -> None:
        """Continue without a turn that ended without a reply."""
        await self._decide(by, "skip", decisions.skip, turn_id)

    async def hand_over(self, member: str, turn_id: str | None = None, *, by: str | None = None) -> WaitingTurn:
        """Let another member answer in place of one whose turn ended without a reply."""
        entry = await self._decide(by, "hand-over", decisions.hand_over, self._router, member, turn_id)
        return entry.turns[0]

    async def ask(self, asked: str, *, by: str | None = None) -> tuple[WaitingTurn, ...]:
        """Ask members to answer the last message that they may see, written as in [NEXT: …]: "a, b" or "a & b"."""

        async def commit() -> Entry:
            person = decisions.last_person(self.team, self._state) if by is None else self.person(by)
            route = self._router.route(person, read_markers(f"[NEXT: {asked}]"), in_relay=True)
            given = (self._router, person, asked, await self._last_message_id(*(one.member for one in route.asked)))
            return await self._commit_decision(self._decider(by), "ask", decisions.ask, *given)

        return (await self._journal.alone(commit)).turns

    async def reorder(self, turn_ids: Sequence[str], *, by: str | None = None) -> None:
        """Let these waiting turns begin first, in this order."""
        await self._decide(by, "reorder", decisions.reorder, turn_ids)

    async def set_task(self, task: str | None, *, by: str | None = None) -> None:
        """Set the team task, or remove it."""
        await self._decide(by, "task", decisions.set_task, task)
        if note := task_too_long(task or ""):
            self._journal.publish(Trouble(text=note))

    async def rename(self, title: str | None, *, by: str | None = None) -> None:
        """Give the conversation another title; None: call it by its first words again."""
        await self._decide(by, "rename", decisions.rename, title)

    async def forget(self, member: str, *, by: str | None = None) -> None:
        """Let an agent's next turn begin a new session, built from the conversation."""
        await self._decide(by, "forget", decisions.forget, self._router, self._decider(by), member)

    async def sum_up(self, member: str = "", *, by: str | None = None) -> StoredMessage:
        """Ask a member for a summary of what agents are no longer shown; without a name, who usually writes them."""
        return await self.say(f"Please sum up. [SUM UP{f': {member}' if member else ''}]", sender=by)

    async def drop_summary(self, number: int | None = None, *, by: str | None = None) -> None:
        """Take a summary out of all prompts from now on; without a number, the one that is used now."""
        await self._summaries.drop(number, self._decider(by))

    async def undo(
        self, turn_id: str | None = None, *, by: str | None = None, everything: bool = False
    ) -> ChangeRecord | None:
        """Put the files back to what they were before a turn; without an id, before the last one that changed any.

        Unless everything is to be taken back, those that a person may have changed meanwhile stay, and people are asked
        about them. Returns None if there are no others.
        """
        if everything:
            return await self._put_files("undo all", turn_id, by)
        person = self._decider(by)
        await self._files.finish()
        record = await self._journal.alone(lambda: self._undo(turn_id, person))
        if record is not None:
            await self._files.merge_again(record)
        return record

    async def _undo(self, turn_id: str | None, person: str) -> ChangeRecord | None:
        left = await self._files.left_by_undo(turn_id)
        if left is None:
            return await self._put("undo", turn_id, person)
        turn, files = left
        record = None
        with suppress(NothingToUndo):
            record = await self._files.put("undo", turn, person)
        await self._journal.commit_built(partial(files_left.asked, self._state, turn, files, at=milliseconds()))
        return record

    async def leave_files(self, turn_id: str, *, by: str | None = None) -> None:
        """Leave the files of a turn that a person perhaps changed, and that an undo has left."""
        await self._decide(by, files_left.KEPT, files_left.settled, turn_id, files_left.KEPT)

    async def redo(self, turn_id: str | None = None, *, by: str | None = None) -> ChangeRecord:
        """Bring back what an undo took back; without an id, what the last one did."""
        return await self._put_files("redo", turn_id, by)

    async def rewind(self, turn_id: str, *, by: str | None = None) -> ChangeRecord:
        """Put the files into the state that they had after a turn."""
        return await self._put_files("rewind", turn_id, by)

    async def take(self, turn_id: str | None = None, *, by: str | None = None) -> None:
        """Take what a turn made of files: those of its conflict, or those that collided with another turn's."""
        if turn_id is None or turn_id in self.progress.conflicts:
            await self.settle("take", turn_id, by=by)
        else:
            await self._put_files("take", turn_id, by)

    async def _put_files(self, choice: FileChoice, turn_id: str | None, by: str | None) -> ChangeRecord:
        person = self._decider(by)
        await self._files.finish()
        record = await self._journal.alone(lambda: self._put(choice, turn_id, person))
        await self._files.merge_again(record)
        return record

    async def _put(self, choice: FileChoice, turn_id: str | None, person: str) -> ChangeRecord:
        record = await self._files.put(choice, turn_id, person)
        if record.turn_id in self.progress.files_left:
            settled = partial(files_left.settled, self._state, record.turn_id, files_left.TAKEN_BACK)
            await self._journal.commit_built(partial(settled, at=milliseconds()))
        return record

    async def settle(self, how: Settling, turn_id: str | None = None, *, by: str | None = None) -> bool:
        """Decide about a conflict of an agent's own workspace; without a turn, the latest one.

        "resolve" needs somebody who does it: `let_resolve`. Returns whether it was one of several results.
        Raises NothingToMerge if that work is not there any more, so that nothing was done.
        """
        await self._files.finish()
        chosen, conflict = conflicts.open_conflict(self._state, turn_id)
        if await self._journal.alone(lambda: self._settle(how, chosen, by)):
            raise NothingToMerge(conflict.member, was_asked=True)
        return candidate_of(self._state.progress.rounds, chosen) is not None

    async def let_resolve(self, member: str, turn_id: str | None = None, *, by: str | None = None) -> None:
        """Put both versions into the files of a conflict, and ask a member to resolve it."""
        name = self.agent(member).name
        await self._files.finish()
        chosen, conflict = conflicts.open_conflict(self._state, turn_id)
        if await self._journal.alone(lambda: self._settle("resolve", chosen, by, resolver=name)):
            raise NothingToMerge(conflict.member, was_asked=True)

    async def _ask_to_resolve(self, turn_id: str, text: str, decider: str, by: str | None) -> None:
        """Store the decision and the question at once: both versions are in the files by now."""
        at = milliseconds()
        person = decisions.last_person(self.team, self._state) if by is None else self.person(by)
        asked = partial(conflicts.to_resolve, self._state, self._router, person, turn_id, text, at=at)
        await self._journal.commit_message(
            lambda message_id: decisions.decided_by(decider, "resolve", asked(message_id=message_id), at=at)
        )

    async def _settle(self, how: Settling, turn_id: str, by: str | None, *, resolver: str = "") -> bool:
        """Return whether nothing was left to settle."""
        person = self._decider(by)
        chosen, _ = conflicts.open_conflict(self._state, turn_id)
        brought = await self._files.settle(how, chosen, resolver=resolver)
        if brought.question:
            await self._ask_to_resolve(chosen, brought.question, person, by)
        else:
            settled = partial(conflicts.settled, is_nothing=brought.is_nothing)
            await self._commit_decision(person, how, settled, chosen, how)
        return brought.is_nothing

    async def merge(self, member: str) -> None:
        """Bring what an agent did in its own workspace into the shared folder, if it was not yet."""
        await self._files.finish()
        await self._files.merge(self.agent(member).name)

    async def pick(self, name: str, turn_id: str | None = None, *, by: str | None = None) -> None:
        """Pick one of several results, by its member or its turn; it is merged when nobody edits the shared folder.

        `turn_id` says which task is meant: any turn of those who did it.
        """
        await self._files.finish()
        await self._decide(by, "pick", rounds.pick, self._decider(by), name, turn_id)
        self._best_of.try_again()

    async def discard(self, name: str | None = None, turn_id: str | None = None, *, by: str | None = None) -> None:
        """Drop one of several results that was not picked, or all that are left: their worktrees are removed.

        `turn_id` says which task is meant. Without a name, all of it that was not picked is dropped.
        """
        await self._files.finish()
        await self._decide(by, "discard", rounds.discard, name, turn_id)

    def droppable(self) -> tuple[Candidate, ...]:
        """Return what is left of several results and would be dropped together, or raise NothingToPick."""
        return rounds.droppable(self._state)

    async def dismiss_missed_hand_over(self, *, by: str | None = None) -> None:
        """Dismiss a missed hand-over."""
        await self._decide(by, "dismiss", decisions.dismiss_missed_hand_over)

    async def _decide(self, by: str | None, choice: str, decision: Callable[..., Entry], *arguments: object) -> Entry:
        return await self._journal.alone(lambda: self._commit_decision(self._decider(by), choice, decision, *arguments))

    async def _commit_decision(
        self, person: str, choice: str, decision: Callable[..., Entry], *arguments: object
    ) -> Entry:
        at = milliseconds()

        def build() -> Entry:
            return decisions.decided_by(person, choice, decision(self._state, *arguments, at=at), at=at)

        return (await self._journal.commit_built(build, by=person))[0]

    def _decider(self, by: str | None) -> str:
        """Return who decides: the one who is named, else the team's only person, else its owner."""
        if by is not None:
            return self.person(by).name
        return decider(self.team)

    async def _cancelled(self, turn_ids: Collection[str], by: str | None, *, is_wanted: bool) -> list[WaitingTurn]:
        """Return the turns to cancel. They are chosen here, where none of them can end meanwhile."""
        at = milliseconds()
        entry, turns = decisions.cancel(self._state, turn_ids, at=at)
        person = self._decider(by)
        await self._journal.commit(decisions.decided_by(person, "cancel", entry, at=at, about=turns))
        for turn in turns:
            if turn.id in self.running:
                self.running[turn.id].is_cancelled = is_wanted
        return turns

    # What people see

    @property
    def id(self) -> str:
        """The conversation's id."""
        return self._state.conversation_id

    @property
    def context(self) -> ContextManager:
        """The messages, the team task, and what each agent sees of them."""
        return self._journal.context

    @property
    def running(self) -> Mapping[str, RunningTurn]:
        """The running turns, by their ids."""
        return self._turns.running

    @property
    def budget_uses(self) -> tuple[BudgetUse, ...]:
        """How much of every budget is used by now."""
        return self._turns.budgets.uses

    @property
    def running_checks(self) -> tuple[CheckResult, ...]:
        """The checks that run now, after turns that have ended."""
        return tuple(self._files.checks.running.values())

    @property
    def checking(self) -> tuple[Checking, ...]:
        """The turns that have ended and whose files are being checked, or are about to be."""
        return tuple(self._state.checking.values())

    @property
    def team_task(self) -> str | None:
        """The team task, as agents read it."""
        return self.context.get_team_task()

    @property
    def title(self) -> str | None:
        """What a person calls it; None: nothing of its own."""
        return self._state.title

    @property
    def first_words(self) -> str:
        """The beginning of what a person said first."""
        return self._state.first_words

    @property
    def is_lost(self) -> bool:
        """Whether another process has taken it, so that nothing can be said or decided here any more."""
        return self._journal.lost is not None

    @property
    def is_uncertain(self) -> bool:
        """Whether that is because nobody knows what is stored: it must be opened again."""
        return isinstance(self._journal.lost, StoreUncertain)

    @property
    def waits_for(self) -> str | None:
        """The person whose message we wait for."""
        return self._state.waits_for

    @property
    def paused(self) -> str | None:
        """Why no turn begins until a person continues; None if not paused."""
        return self._state.paused

    @property
    def waiting(self) -> tuple[WaitingTurn, ...]:
        """The queue, the next turn first."""
        return self._state.queue.waiting

    @property
    def held(self) -> tuple[WaitingTurn, ...]:
        """Waiting turns that do not begin until a person releases them."""
        return tuple(turn for turn in self.waiting if turn.id in self._state.progress.held)

    @property
    def unallowed(self) -> tuple[WaitingTurn, ...]:
        """Waiting turns that begin only if a person allows them, the next one first."""
        return tuple(self._state.unallowed.values())

    @property
    def undecided(self) -> tuple[UndecidedTurn, ...]:
        """Turns that ended without a reply and wait for a person's decision, the latest last."""
        return tuple(self._state.undecided.values())

    @property
    def memories(self) -> Mapping[str, Memory]:
        """What the sessions of members hold that have a memory of their own, by their names."""
        return self._state.memories

    @property
    def progress(self) -> Progress:
        """What the limits have counted, what everyone has used, and what else is remembered."""
        return self._state.progress

    def member(self, name: str) -> Member:
        """Return the member with this name, or raise UnknownMember."""
        return self._router.member(name)

    def person(self, name: str) -> Member:
        """Return the person that somebody calls by this name, or raise UnknownSender."""
        return self._router.sender_of(NO_MARKERS, given=name)

    def agent(self, name: str) -> Member:
        """Return the agent that somebody calls by this name, or raise UnknownMember or NobodyToAsk."""
        return decisions.agent_named(self._router, name)

    @property
    def message_count(self) -> int:
        """How many messages there are."""
        return self._state.messages

    @property
    def last_number(self) -> int:
        """The number of the latest event, for `viewing`."""
        return self._journal.broadcast.number

    async def watch(self) -> AsyncIterator[ConversationEvent]:
        """Yield everything that happens from now on, until the conversation is closed."""
        with self.viewing() as viewer:
            async for numbered in viewer:
                yield numbered.event

    def viewing(self, after: int | None = None) -> AbstractContextManager[Viewer]:
        """Watch from now on, or from after the event with a number."""
        return self._journal.broadcast.viewing(after)

    async def until_quiet(self) -> None:
        """Wait until no turn is running and none can begin."""
        await self._journal.quiet.wait()

    async def messages(
        self, *, after: int | None = None, before: int | None = None, limit: int = 50
    ) -> list[StoredMessage]:
        """Return stored messages, oldest first: the newest ones, those before a number, or the first after one."""
        return await self._state.read(_messages, after, before, limit)

    async def read(
        self,
        work: Callable[Concatenate[Store, str, Arguments], Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Call something with the store and the conversation's id, outside of the event loop."""
        return await self._state.read(work, *args, **kwargs)

    async def preview(self, member: str) -> AssemblerOutput:
        """Return what an agent would be given if it were asked about the last message now."""
        name = self.agent(member).name
        message_id = await self._last_message_id(name)
        if message_id is None:
            raise NobodyToAsk(decisions.NOTHING_SAID_YET)
        turn = WaitingTurn(id="preview", member=name, message_id=message_id, intent=DEFAULT_INTENT)
        return await self._turns.prompt_for(turn)

    async def _last_message_id(self, *members: str) -> str | None:
        """Return the last message that all of these may see: not what others said who do the same task."""
        hidden = {turn for member in members for turn in hidden_from(self.progress.rounds, member)}
        last = await self.read(last_visible, hidden, self.progress.summaries)
        return last.message.id if last is not None else None

    # Opening and closing

    async def start(self, *, interrupted_at: int = 0, continues: bool = False) -> None:
        """Begin turns from now on. Turns that an earlier process left running are interrupted, waiting ones paused.

        Those on workers continue. If the conversation does, and only its process is another one, nothing is paused.
        """
        adopted = await self._state.adopt({member.name for member in self.team.agents if member.pool})
        entry = resume(self.team, self._state, at=milliseconds(), continues=continues)
        if entry is not None or self._state.lost:
            await self._journal.alone(lambda: self._resume(entry, interrupted_at))
        self._journal.publish(*opening_events(self.team, self._state))
        for turn_id, text in (await self._files.start(adopted)).items():
            await self._journal.shielded(partial(self._ask_to_resolve, turn_id, text, self._decider(None), None))
        self._turns.adopt(adopted)
        await self._journal.alone(lambda: self._best_of.advance(is_opening=True))
        if not continues:
            await self._journal.alone(self.reviews.ask_on_opening)
            self._summaries.wait_for_more()
        self._loops = [asyncio.create_task(self._turns.run()), asyncio.create_task(keep_alive(self._journal))]
        self._journal.changed.set()

    async def close(self) -> None:
        """Cancel the running turns, and store that. Waiting turns are still there when it is opened again.

        What runs on workers continues.
        """
        self._journal.closing.set()
        self._turns.leave_what_continues()
        tasks = [*self._turns.tasks.values(), *self._loops]
        for task in tasks:
            task.cancel()
        await to_the_end(_finish_all([*tasks, *self._journal.changes]))
        await to_the_end(self._files.checks.close())
        await to_the_end(self._files.finish(merges=True))
        await to_the_end(self._best_of.finish())
        self._journal.broadcast.close()
        self._journal.quiet.set()

    async def _resume(self, entry: Entry | None, interrupted_at: int) -> None:
        if entry is not None:
            await self._journal.commit(entry)
        if self._state.lost:
            # They ended when their process was last seen, which may be days ago.
            await self._state.interrupt_lost_turns(interrupted_at or milliseconds())


def decider(team: Team | None) -> str:
    """Return who decides if nobody is named: the only person of a team, else its owner."""
    return team.people[0].name if team is not None and len(team.people) == 1 else THE_OWNER


def _messages(
    store: Store, conversation_id: str, after: int | None, before: int | None, limit: int
) -> list[StoredMessage]:
    return store.messages(conversation_id, after=after, before=before, limit=limit)


def decisions_in(store: Store, conversation_id: str) -> list[Decision]:
    """Return what people decided."""
    return store.decisions(conversation_id)


def _message_or_none(store: Store, conversation_id: str, message_id: str) -> StoredMessage | None:
    try:
        return store.message(conversation_id, message_id)
    except UnknownMessage:
        return None


async def _finish_all(tasks: list[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)
