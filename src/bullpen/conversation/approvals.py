"""Approvals: what running agents ask, who or what answers, and for how long an answer holds."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from bullpen.agents.runner import to_the_end
from bullpen.approvals import Answer, ApprovalRecord, Scope
from bullpen.conversation.events import Answered, Asked
from bullpen.conversation.journal import Journal
from bullpen.conversation.running_turn import milliseconds
from bullpen.errors import (
    AnsweredAlready,
    CannotChange,
    NothingAsked,
    NotTheOwner,
    StoreConflict,
    StoreError,
    StoreUncertain,
    UnknownConversation,
)
from bullpen.team.approval_rules import allowing, denying, is_like
from bullpen.team.team import Member
from bullpen.turn_events import ApprovalAsked

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
        self._used: set[Key] = set()
        """The questions that were asked here."""
        self._held: list[tuple[ApprovalRecord, ApprovalAsked]] | None = None
        """What was said yes to for longer than once; None: it was not read yet."""

    async def ask(self, member: Member, turn_id: str, asked: ApprovalAsked) -> Answer:
        """Return the answer to a question of a running turn. Both are stored before the agent hears anything."""
        asked = await self._note_question(member.name, turn_id, asked)
        given = await self._by_rule(member, turn_id, asked)
        if given is None:
            return await self._by_person(member, turn_id, asked)
        await self._note_answer(member.name, turn_id, asked, given)
        return given.answer

    async def answer(self, turn_id: str, question: str, answer: Answer, *, scope: Scope = "once", by: str) -> None:
        """Answer a question as a person. The first answer counts: AnsweredAlready is raised for any other."""
        key = (turn_id, question)
        if (event := self.open.get(key)) is None:
            raise await self._why_not_open(key)
        if answer.command and not event.question.can_change:
            raise CannotChange(event.member)
        # What is run instead was not asked for: nothing holds for longer because of it.
        holds = answer.verdict == "yes" and not answer.command
        given = Given(answer=answer, by=by, scope=scope if holds else "once")
        try:
            await self._note_answer(event.member, turn_id, event.question, given)
        except StoreConflict:
            raise await self._why_not_open(key) from None
        self.open.pop(key, None)
        if (waiting := self._answers.get(key)) is not None and not waiting.done():
            waiting.set_result(answer)

    async def _note_question(self, member: str, turn_id: str, asked: ApprovalAsked) -> ApprovalAsked:
        """Store a question, and return it as it is stored: an id that was used before gets a number.

        A program may use an id again. The answer to one question is never the answer to another.
        """
        numbers = (asked.id if number == 1 else f"{asked.id}.{number}" for number in count(1))
        question = next(one for one in numbers if (turn_id, one) not in self._used)
        self._used.add((turn_id, question))
        asked = replace(asked, id=question)
        record = ApprovalRecord(turn_id=turn_id, member=member, question=question, at=milliseconds(), asked=asked)
        await self._stored(record)
        return asked

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
        if given.scope == "team" and self._standing is not None:
            await self._state.in_store(self._standing.remember, member, asked)
        if given.scope != "once" and self._held is not None:
            self._held.append((record, asked))
        self._journal.publish(Answered.of(record))

    async def _stored(self, record: ApprovalRecord) -> ApprovalRecord:
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

    async def _by_person(self, member: Member, turn_id: str, asked: ApprovalAsked) -> Answer:
        """Wait for a person, but not forever."""
        key = (turn_id, asked.id)
        waiting = self._answers[key] = asyncio.get_running_loop().create_future()
        event = self.open[key] = Asked(turn_id=turn_id, member=member.name, question=asked, at=milliseconds())
        self._journal.publish(event)
        try:
            async with asyncio.timeout(member.ask_timeout):
                return await asyncio.shield(waiting)
        except TimeoutError:
            minutes = f"{member.ask_timeout / 60:g} minutes"
            reason = f"Nobody answered within {minutes}. Do without it, or say what you need."
            given = Given(answer=Answer(verdict="no", reason=reason), because=f"nobody answered within {minutes}")
            return await self._unless_answered(member.name, turn_id, asked, given)
        except asyncio.CancelledError:
            # The turn ends, or its CLI does not want to know any more.
            given = Given(answer=Answer(verdict="no", reason="It was cancelled."), because="it was taken back")
            await to_the_end(self._over(member.name, turn_id, asked, given))
            raise
        finally:
            waiting.cancel()
            self.open.pop(key, None)
            del self._answers[key]

    async def _unless_answered(self, member: str, turn_id: str, asked: ApprovalAsked, given: Given) -> Answer:
        """Store an answer that no person gave, unless one has just done so; return the one that counts."""
        try:
            await self._note_answer(member, turn_id, asked, given)
        except StoreConflict:
            known = await self._state.approvals([turn_id])
            answers = [one.answer for one in known if one.question == asked.id and one.answer is not None]
            return answers[0] if answers else given.answer
        return given.answer

    async def _over(self, member: str, turn_id: str, asked: ApprovalAsked, given: Given) -> None:
        """Store that nobody answers any more, if that can be stored."""
        if self._journal.lost is None:
            with suppress(StoreError, StoreConflict):
                await self._unless_answered(member, turn_id, asked, given)

    async def _why_not_open(self, key: Key) -> Exception:
        """Return why a question cannot be answered."""
        turn_id, question = key
        for record in await self._state.approvals([turn_id]):
            if record.question == question and record.answer is not None:
                return AnsweredAlready(record.by or record.because, record.answer.verdict)
        return NothingAsked(turn_id, question)


def _yes(because: str) -> Given:
    return Given(answer=Answer(verdict="yes"), because=because)


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
