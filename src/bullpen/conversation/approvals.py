"""Approvals: what running agents ask, who or what answers, and for how long an answer holds."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

from msgspec import Struct

from bullpen.agents.runner import to_the_end
from bullpen.approvals import Answer, ApprovalRecord, Scope
from bullpen.clock import milliseconds
from bullpen.conversation.events import Answered, Asked, Trouble
from bullpen.conversation.journal import Journal
from bullpen.conversation.patience import patiently
from bullpen.conversation.running_turn import RunningTurn
from bullpen.errors import (
    AnsweredAlready,
    BullpenError,
    CannotChange,
    HoldsOnce,
    NothingAsked,
    NotTheOwner,
    StoreConflict,
    StoreError,
    StoreUncertain,
    UnknownConversation,
)
from bullpen.team.answer_scopes import may_hold_longer
from bullpen.team.approval_rules import allowing, denying, is_like
from bullpen.team.team import Member
from bullpen.text.asked_words import words_of
from bullpen.text.numbers import counted
from bullpen.turn_events import ApprovalAsked

NOBODY_ANSWERED = "nobody answered within"
"""How the reason of an answer begins that came when people had not answered in time."""
TAKEN_BACK = (
    "Your earlier “always” for {member} was wider than what you were shown, so it holds no more, and you are asked "
    "again: {what}"
)
MEANWHILE = "The agent waits until its question and the answer can be stored."

Key = tuple[str, str]
"""A turn, and which of its questions."""


class Given(Struct, frozen=True, kw_only=True):
    """An answer, where it comes from, and for how long it holds."""

    answer: Answer
    by: str = ""
    scope: Scope = "once"
    because: str = ""


class StandingAnswers(Protocol):
    """What people have said yes to once and for all."""

    def holds(self, member: str, asked: ApprovalAsked) -> bool:
        """Return whether they said yes to exactly this."""

    def remember(self, member: str, asked: ApprovalAsked) -> None:
        """Remember that they did."""

    def take_back_wider(self, member: str, asked: ApprovalAsked) -> bool:
        """Forget what they said yes to that was wider than this; return whether there was anything."""


class Unattended(Struct, frozen=True, kw_only=True):
    """What holds where no person can be asked."""

    allow: tuple[str, ...] = ()
    """Rules on what agents may do besides what the team file allows."""
    reason: str = "Nobody can be asked here."


class Approvals:
    """The questions of one conversation."""

    def __init__(self, journal: Journal, standing: StandingAnswers | None = None) -> None:
        self.open: dict[Key, Asked] = {}
        """The questions that wait for a person, oldest first."""
        self.unattended: Unattended | None = None
        """None: people can be asked."""
        self._journal = journal
        self._state = journal.state
        self._standing = standing
        self._answers: dict[Key, asyncio.Future[Answer]] = {}
        self._held: list[tuple[ApprovalRecord, ApprovalAsked]] | None = None
        """What was said yes to for longer than once; None: it was not read yet."""

    async def ask(self, member: Member, running: RunningTurn, asked: ApprovalAsked) -> Answer:
        """Return the answer to a question of a running turn. Both are stored before the agent hears anything.

        The next owner of a turn that runs elsewhere asks the same again: what is stored then counts.
        """
        turn_id = running.turn.id
        self._answers[turn_id, asked.id] = asyncio.get_running_loop().create_future()
        try:
            note = partial(self._note_question, member.name, turn_id, asked)
            if known := await patiently(self._journal, note, MEANWHILE):
                return known
            if (given := await self._by_rule(member, turn_id, asked)) is None:
                if answer := await self._by_person(member, turn_id, asked):
                    return answer
                given = _too_late(member)
            note_answer = partial(self._unless_answered, member.name, turn_id, asked, given)
            return await patiently(self._journal, note_answer, MEANWHILE)
        except asyncio.CancelledError:
            # The turn ends, or its CLI does not want to know any more. What is stored is not left open.
            await to_the_end(self._over(member.name, running, asked))
            raise
        finally:
            self.open.pop((turn_id, asked.id), None)
            self._answers.pop((turn_id, asked.id), None)

    async def adopt(self, running: RunningTurn) -> None:
        """Open the questions again that an earlier owner of a turn has asked: people need not wait for its worker."""
        for record, asked in await self._unanswered(running):
            self._open(Asked(turn_id=record.turn_id, member=record.member, question=asked, at=record.at))

    async def close(self, running: RunningTurn) -> None:
        """Close the questions of a turn that has ended, also those that only an earlier owner has heard."""
        for record, asked in await self._unanswered(running):
            await self._over(record.member, running, asked)
            self.open.pop((record.turn_id, record.question), None)

    async def _unanswered(self, running: RunningTurn) -> list[tuple[ApprovalRecord, ApprovalAsked]]:
        """Return the questions of a turn that are stored without an answer; none if they cannot be read."""
        with suppress(StoreError):
            records = await self._state.approvals([running.turn.id])
            answered = {record.question for record in records if record.answer is not None}
            return [(one, one.asked) for one in records if one.asked is not None and one.question not in answered]
        return []

    def _open(self, event: Asked) -> None:
        """Ask people, unless they are asked already."""
        key = (event.turn_id, event.question.id)
        if key not in self.open:
            self.open[key] = event
            self._journal.publish(event)

    async def answer(self, turn_id: str, question: str, answer: Answer, *, scope: Scope = "once", by: str) -> None:
        """Answer a question as a person. The first answer counts: AnsweredAlready is raised for any other."""
        key = (turn_id, question)
        if (event := self.open.get(key)) is None:
            raise await self._why_not_open(key)
        if answer.command and not event.question.can_change:
            raise CannotChange(event.member)
        if scope != "once" and answer.verdict == "yes" and not may_hold_longer(event.question):
            raise HoldsOnce(event.member)
        # What is run instead was not asked for: nothing holds for longer because of it.
        holds = answer.verdict == "yes" and not answer.command
        given = Given(answer=answer, by=by, scope=scope if holds else "once")
        # To its end, even if the door closes through which it came: an answer that is stored must reach the agent.
        await to_the_end(self._accept(event, given))

    async def _accept(self, event: Asked, given: Given) -> None:
        key = (event.turn_id, event.question.id)
        try:
            await self._note_answer(event.member, event.turn_id, event.question, given)
        except NotTheOwner:
            raise
        except StoreConflict:
            raise await self._why_not_open(key) from None
        self.open.pop(key, None)
        if (waiting := self._answers.get(key)) is not None and not waiting.done():
            waiting.set_result(given.answer)
        await self._remember(event, given)

    async def _remember(self, event: Asked, given: Given) -> None:
        """Keep what is always allowed. The agent does not wait for it: what it asked is answered already."""
        if given.scope != "team" or self._standing is None:
            return
        try:
            await self._state.in_store(self._standing.remember, event.member, event.question)
        except (BullpenError, OSError) as error:
            text = f"Your yes to {event.member} counts in this conversation, but is not kept for others: {error}"
            self._journal.publish(Trouble(text=text))

    async def _note_question(self, member: str, turn_id: str, asked: ApprovalAsked) -> Answer | None:
        """Store a question; if it is stored already, return its answer. StoreConflict is raised for another one."""
        try:
            await self._stored(_question(member, turn_id, asked))
        except NotTheOwner:
            raise
        except StoreConflict:
            known = [one for one in await self._state.approvals([turn_id]) if one.question == asked.id]
            if asked not in [one.asked for one in known]:
                raise
            return next((one.answer for one in known if one.answer is not None), None)
        return None

    async def _note_answer(self, member: str, turn_id: str, asked: ApprovalAsked, given: Given) -> None:
        record = ApprovalRecord(
            turn_id=turn_id,
            member=member,
            question=asked.id,
            at=milliseconds(),
            answer=given.answer,
            by=given.by,
            scope=given.scope,
            because=given.because,
        )
        await self._stored(record)
        if given.scope != "once" and self._held is not None:
            self._held.append((record, asked))
        self._journal.publish(Answered.of(record, asked, was_waiting=(turn_id, asked.id) in self.open))

    async def _stored(self, record: ApprovalRecord) -> ApprovalRecord:
        if self._journal.lost is not None:
            raise self._journal.lost
        try:
            return await self._journal.shielded(partial(self._state.note_approval, record))
        except (NotTheOwner, UnknownConversation, StoreUncertain) as error:
            self._journal.lose(error)
            raise

    async def _by_rule(self, member: Member, turn_id: str, asked: ApprovalAsked) -> Given | None:
        """Return the answer that needs no person; what is denied is never asked."""
        if rule := denying(member.deny, asked):
            reason = f"The team does not let you do this (deny: {rule}). Do not try it in another way."
            return Given(answer=Answer(verdict="no", reason=reason), because=f"deny: {rule}")
        if rule := allowing(member.allow, asked):
            return _yes(f"allow: {rule}")
        if because := await self._held_for(member.name, turn_id, asked):
            return _yes(because)
        if self.unattended is None:
            return None
        if rule := allowing(self.unattended.allow, asked):
            return _yes(f"approve: {rule}")
        return Given(answer=Answer(verdict="no", reason=self.unattended.reason), because="nobody can be asked")

    async def _held_for(self, member: str, turn_id: str, asked: ApprovalAsked) -> str:
        """Return because of which earlier answer nobody is asked; nothing if there is none."""
        await self._take_back_wider(member, asked)
        if not may_hold_longer(asked):
            return ""
        if self._held is None:
            self._held = _held_in(await self._state.approvals())
        for record, before in self._held:
            if (
                record.member == member
                and is_like(asked, before)
                and (record.scope != "turn" or record.turn_id == turn_id)
            ):
                return f"{record.by} allowed it for the {record.scope}"
        if self._standing is not None and await self._state.in_store(self._standing.holds, member, asked):
            return "always allowed for this team"
        return ""

    async def _take_back_wider(self, member: str, asked: ApprovalAsked) -> None:
        """Say once that an earlier version kept a yes that was wider than what was shown; it holds no more."""
        if self._standing is None:
            return
        with suppress(BullpenError, OSError):
            if await self._state.in_store(self._standing.take_back_wider, member, asked):
                self._journal.publish(Trouble(text=TAKEN_BACK.format(member=member, what=words_of(asked))))

    async def _by_person(self, member: Member, turn_id: str, asked: ApprovalAsked) -> Answer | None:
        """Return the answer of a person, which is stored by then; None: nobody answered in time."""
        waiting = self._answers[turn_id, asked.id]
        if not waiting.done():
            self._open(Asked(turn_id=turn_id, member=member.name, question=asked, at=milliseconds()))
        try:
            async with asyncio.timeout(member.ask_timeout):
                return await asyncio.shield(waiting)
        except TimeoutError:
            return None

    async def _unless_answered(self, member: str, turn_id: str, asked: ApprovalAsked, given: Given) -> Answer:
        """Store an answer that no person gave, unless one has just done so; return the one that counts."""
        try:
            await self._note_answer(member, turn_id, asked, given)
        except NotTheOwner:
            raise
        except StoreConflict:
            known = await self._state.approvals([turn_id])
            answers = [one.answer for one in known if one.question == asked.id and one.answer is not None]
            if not answers:
                raise
            return answers[0]
        return given.answer

    async def _over(self, member: str, running: RunningTurn, asked: ApprovalAsked) -> None:
        """Store that nobody answers any more, if that can be stored, and nobody else asks it in our place."""
        if self._journal.lost is None and not running.is_left:
            given = Given(answer=Answer(verdict="no", reason="It was cancelled."), because=running.asks_no_more)
            with suppress(StoreError, StoreConflict, UnknownConversation):
                await self._unless_answered(member, running.turn.id, asked, given)

    async def _why_not_open(self, key: Key) -> Exception:
        """Return why a question cannot be answered."""
        turn_id, question = key
        for record in await self._state.approvals([turn_id]):
            if record.question == question and record.answer is not None:
                return AnsweredAlready(record.by or record.because, record.answer.verdict)
        return NothingAsked(turn_id, question)


def _question(member: str, turn_id: str, asked: ApprovalAsked) -> ApprovalRecord:
    return ApprovalRecord(turn_id=turn_id, member=member, question=asked.id, at=milliseconds(), asked=asked)


def _yes(because: str) -> Given:
    return Given(answer=Answer(verdict="yes"), because=because)


def _too_late(member: Member) -> Given:
    number = member.ask_timeout / 60
    minutes = counted(int(number), "minute") if number.is_integer() else f"{number:g} minutes"
    reason = f"Nobody answered within {minutes}. Do without it, or say what you need."
    return Given(answer=Answer(verdict="no", reason=reason), because=f"{NOBODY_ANSWERED} {minutes}")


def _held_in(records: Sequence[ApprovalRecord]) -> list[tuple[ApprovalRecord, ApprovalAsked]]:
    """Return what was said yes to for longer than once."""
    questions = {(record.turn_id, record.question): record.asked for record in records if record.asked is not None}
    return [
        (record, asked)
        for record in records
        # What another conversation or a file says was allowed there.
        if not record.is_copy
        and record.answer is not None
        and record.answer.verdict == "yes"
        and record.scope != "once"
        and (asked := questions.get((record.turn_id, record.question))) is not None
    ]
