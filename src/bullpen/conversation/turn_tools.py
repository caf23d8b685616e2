"""TurnTools: what an agent's calls of tools do during a turn: it looks things up, hands over, asks, leaves notes."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from msgspec import Struct

from bullpen.approvals import Answer as PersonsAnswer
from bullpen.conversation.visible_history import VisibleHistory, tool_guard
from bullpen.errors import BullpenError
from bullpen.markers.grammar import Addressee
from bullpen.markers.stripping import strip_all_markers
from bullpen.routing.router import Router
from bullpen.team.reach import reach
from bullpen.team.team import Member
from bullpen.text.clean import clean_text
from bullpen.text.names import listed
from bullpen.tools.calls import (
    MOST_CALLS,
    TOO_MANY_CALLS,
    Answer,
    AskPerson,
    Call,
    HandOver,
    LeaveNote,
    ReadDiff,
    ReadHistory,
    ReadMessage,
    Search,
    SeeTeam,
    ToolCall,
    WrongCall,
    read_call,
)
from bullpen.tools.uses import ToolUse, UseKind
from bullpen.turn_events import ApprovalAsked

logger = logging.getLogger(__name__)

MOST_READ = 4 * 1024 * 1024
"""Bytes in one turn."""
MOST_USES = 1_000
"""That are kept with the turn."""
MOST_QUERY = 1_000
"""Characters."""
MOST_NOTES = 20
MOST_NOTE = 8_000
"""Characters of a note, or of what is said with a hand-over."""
MOST_CHOICES = 20
MOST_CHOICE = 200
"""Characters of a choice that is offered."""
MOST_OFFERED = 9
"""Choices of a question that is answered after the turn, as with [ASK: …]."""
WRONG = "Something went wrong in bullpen, so this was not done. Continue without it."


class Around(Struct, frozen=True, kw_only=True):
    """What the conversation around a turn does for its tools."""

    history: Callable[[], Awaitable[VisibleHistory]]
    read: Callable[..., Awaitable[tuple[str, str]]]
    """Calls a method of the history where the store may be read."""
    team: Callable[[], str]
    ask: Callable[[ApprovalAsked], Awaitable[PersonsAnswer]]
    note: Callable[[str], Awaitable[None]]
    is_apart: Callable[[], bool]
    """Whether its hand-overs are not followed, since it is one of several who do the same task, or judges."""


class TurnTools:
    """The calls of one turn. Nothing that a model sends breaks it: it is told what was wrong."""

    def __init__(self, member: Member, router: Router, around: Around) -> None:
        self.handed_over: list[tuple[Addressee, ...]] = []
        """A relay of groups, as with markers."""
        self.notes: list[str] = []
        """What was said with hand-overs, and asked for later."""
        self.offered: tuple[str, ...] = ()
        """The answers to what was asked last for later."""
        self.uses: list[ToolUse] = []
        """What was done, for people."""
        self.read_bytes = 0
        self._member = member
        self._router = router
        self._around = around
        self._history: VisibleHistory | None = None
        self._calls = 0
        self._left_notes = 0

    async def answer(self, call: Call, number: int | None = None) -> Answer:
        """Return what a call gives.

        `number` is its place in the turn; None: the next one. What it asks is known by that, so it must be the same
        for every owner who hears it.
        """
        self._calls += 1
        number = self._calls if number is None else number
        if number > MOST_CALLS:
            return Answer(id=call.id, text=TOO_MANY_CALLS, is_error=True)
        try:
            text = await self._done(read_call(call.tool, call.arguments), number)
        except (WrongCall, BullpenError) as error:
            return Answer(id=call.id, text=str(error), is_error=True)
        except Exception:
            logger.exception("a tool failed tool=%s", call.tool)
            return Answer(id=call.id, text=WRONG, is_error=True)
        return Answer(id=call.id, text=text)

    def recall(self, tool: str, arguments: dict[str, Any]) -> None:
        """Note again what counts when the turn ends, and an earlier owner of the conversation has been told of.

        What was looked up is not looked up again: people are told what was called.
        """
        with suppress(WrongCall, BullpenError):
            match read_call(tool, arguments):
                case HandOver() as call:
                    self._hand_over(call)
                case AskPerson(wait=False) as call:
                    self._ask_later(call)
                case AskPerson() as call:
                    self._used("ask", f"asked: {_quoted(clean_text(call.question))}")
                case LeaveNote():
                    self._used("note", "left a note")
                case Search() as call:
                    self._used("look up", f"searched for {_quoted(call.query)}")
                case ReadHistory() | ReadMessage() | ReadDiff():
                    self._used("look up", f"called {tool} {_given(arguments)}".rstrip())

    async def _done(self, call: ToolCall, number: int) -> str:
        match call:
            case ReadHistory():
                return await self._looked_up("read", "read", call.first, call.last, call.around)
            case Search():
                if len(call.query) > MOST_QUERY:
                    raise WrongCall(f"The query has {len(call.query):,} characters, and {MOST_QUERY:,} is the most.")
                return await self._looked_up("found", f"searched for {_quoted(call.query)}:", call.query)
            case ReadMessage():
                return await self._looked_up("message", "read", call.number, call.offset)
            case ReadDiff():
                return await self._looked_up("diff", "read", call.turn, call.message)
            case SeeTeam():
                return self._around.team()
            case HandOver():
                return self._hand_over(call)
            case AskPerson(wait=False):
                return self._ask_later(call)
            case AskPerson():
                return await self._ask(call, number)
            case LeaveNote():
                return await self._note(call.text)

    async def _looked_up(self, method: str, verb: str, *values: object) -> str:
        if self.read_bytes > MOST_READ:
            raise WrongCall(f"You have read {self.read_bytes:,} bytes in this turn, which is the most. Say your reply.")
        if self._history is None:
            self._history = await self._around.history()
        text, what = await self._around.read(getattr(self._history, method), *values)
        size = len(text.encode(errors="replace"))
        self.read_bytes += size
        self._used("look up", f"{verb} {what}", size)
        return text

    def _hand_over(self, call: HandOver) -> str:
        if self._around.is_apart():
            raise WrongCall("You are one of several who do the same task, so you cannot hand over: say your reply.")
        if self._note_too_long(call.note):
            raise WrongCall(f"The note has {len(call.note):,} characters, and {MOST_NOTE:,} is the most.")
        members = [self._reachable(name) for name in dict.fromkeys(call.to)]
        names = [Addressee(member.name) for member in members]
        groups = [tuple(names)] if call.at_once else [(name,) for name in names]
        self.handed_over.extend(group for group in groups if group not in self.handed_over)
        if note := strip_all_markers(clean_text(call.note)).strip():
            said = f"To {listed([member.name for member in members])}: {note}"
            self.notes = list(dict.fromkeys([*self.notes, said]))[:MOST_NOTES]
        how = "at the same time" if call.at_once and len(names) > 1 else "next"
        told = listed([member.name for member in members])
        self._used("hand over", f"handed over to {told}")
        asks = [member.name for member in members if reach(self._member, member) == "if_allowed"]
        allowed = f" A person is asked first whether {listed(asks)} may." if asks else ""
        return (
            f"{told} will answer {how}, when your turn has ended well.{allowed} Your reply is what you say at the end."
        )

    def _reachable(self, name: str) -> Member:
        member = self._router.member(name)
        if member.name == self._member.name:
            raise WrongCall("You cannot hand over to yourself.")
        if reach(self._member, member) == "never":
            raise WrongCall(f"You may not hand over to {member.name}.")
        return member

    def _ask_later(self, call: AskPerson) -> str:
        if self._around.is_apart():
            raise WrongCall("You are one of several who do the same task, so you cannot ask like this: say your reply.")
        question, choices = _question(call, MOST_OFFERED)
        question = strip_all_markers(question).strip() or question
        self.notes = list(dict.fromkeys([*self.notes, question]))[:MOST_NOTES]
        self.offered = tuple(dict.fromkeys(choice[:MOST_CHOICE] for choice in choices))
        self._used("ask", f"asked for later: {_quoted(question)}")
        return "The question is added to your reply. The answer will be a message to you; do not wait for it."

    async def _ask(self, call: AskPerson, number: int) -> str:
        question, choices = _question(call, MOST_CHOICES)
        asked = ApprovalAsked(
            id=f"ask_person.{number}", kind="question", tool="ask_person", why=question, choices=choices
        )
        self._used("ask", f"asked: {_quoted(question)}")
        answer = await self._around.ask(asked)
        if answer.verdict == "yes":
            return tool_guard().guarded(answer.text, has_own_start=False).text or "yes"
        refused = f"Not answered: {answer.reason}" if answer.reason else "A person did not want to answer."
        return tool_guard().guarded(refused, has_own_start=True).text

    async def _note(self, text: str) -> str:
        if self._around.is_apart():
            raise WrongCall("You are one of several who do the same task, so you cannot leave notes: say your reply.")
        note = clean_text(text).strip()
        if not note or self._note_too_long(note):
            raise WrongCall(f"A note has 1 to {MOST_NOTE:,} characters.")
        if self._left_notes >= MOST_NOTES:
            raise WrongCall(f"You have left {MOST_NOTES} notes in this turn, which is the most.")
        self._left_notes += 1
        await self._around.note(note)
        self._used("note", "left a note")
        return "The note is in the conversation."

    def _note_too_long(self, note: str) -> bool:
        return len(note) > MOST_NOTE

    def _used(self, kind: UseKind, words: str, size: int = 0) -> None:
        if len(self.uses) < MOST_USES:
            self.uses.append(ToolUse(kind=kind, words=words, bytes=size))


def _question(call: AskPerson, most: int) -> tuple[str, tuple[str, ...]]:
    question, choices = clean_text(call.question).strip(), tuple(clean_text(one).strip() for one in call.choices)
    if not question or len(question) > MOST_NOTE or len(choices) > most or not all(choices):
        raise WrongCall(f"Ask one question of at most {MOST_NOTE:,} characters, with at most {most} choices.")
    return question, choices


def _given(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}={clean_text(str(value))[:MOST_CHOICE]}" for name, value in arguments.items())


def _quoted(text: str) -> str:
    line = " ".join(text.split())
    return f"“{line if len(line) <= 80 else f'{line[:79]}…'}”"
