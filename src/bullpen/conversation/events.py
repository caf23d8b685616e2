"""The events of a conversation, as viewers get them. Each is one JSON object."""

from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bullpen.approvals import Answer, ApprovalRecord, Scope
from bullpen.check_results import CheckResult
from bullpen.conversation.budget_events import BudgetRaised, BudgetReached
from bullpen.file_changes import ChangeRecord
from bullpen.messages import ConversationMessage
from bullpen.routing.asks import OpenAsk
from bullpen.routing.missed_hand_overs import MissedHandOver
from bullpen.routing.progress import FilesLeft, MergeConflict, ProgramChange
from bullpen.routing.queue import WaitingTurn
from bullpen.routing.reviews import Review
from bullpen.routing.rounds import Candidate, Round
from bullpen.text.asked_words import words_of
from bullpen.text.names import listed
from bullpen.turn_events import ApprovalAsked, Event, Failed, Usage

PauseKind = Literal["cap", "failed", "cancelled", "interrupted", "left_over", "elsewhere", "trouble"]
FEW = 5
Ending = Literal["done", "failed", "cancelled", "interrupted"]


class Said(Struct, frozen=True, kw_only=True, tag="said", tag_field="type"):
    """A message is stored."""

    sequence: int
    message: ConversationMessage
    turn_id: str | None = None
    """The turn that it ends, if an agent said it."""
    reason: str = ""
    """Why it goes to its addressees, if its author did not name them."""
    notes: tuple[str, ...] = ()
    """What did not work: unknown names, hand-overs that are not allowed, markers that are not read."""
    rebuilt: str = ""
    """Why its turn began a new session in the place of the agent's last one."""


class Queued(Struct, frozen=True, kw_only=True, tag="queued", tag_field="type"):
    """Turns were added to the queue."""

    turns: tuple[WaitingTurn, ...]


class Dropped(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="dropped", tag_field="type"):
    """Turns were removed from the queue, and will not begin."""

    turns: tuple[WaitingTurn, ...]
    by: str = ""
    """Who decided it, if a person did."""


class Reordered(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="reordered", tag_field="type"):
    """The queue is in another order."""

    turns: tuple[WaitingTurn, ...]
    by: str = ""
    """Who decided it, if a person did."""


class TurnBegan(Struct, frozen=True, kw_only=True, tag="turn_began", tag_field="type"):
    """An agent has begun a turn."""

    turn: WaitingTurn
    at: int
    prompt_bytes: int
    cuts: tuple[str, ...] = ()
    """What was left out of its prompt, one phrase each."""
    stand_in: str = ""
    """Who stands in for the member, by its name in the team file."""


class TurnEvent(Struct, frozen=True, kw_only=True, tag="turn_event", tag_field="type"):
    """An agent says or does something during its turn."""

    turn_id: str
    member: str
    event: Event


class TurnEnded(Struct, frozen=True, kw_only=True, tag="turn_ended", tag_field="type"):
    """A turn has ended. If it has a reply, Said comes first."""

    turn_id: str
    member: str
    state: Ending
    seconds: float
    usage: Usage | None = None
    failure: Failed | None = None


class HandOverMissed(Struct, frozen=True, kw_only=True, tag="hand_over_missed", tag_field="type"):
    """An agent probably meant to hand over, and did not."""

    member: str
    message_id: str
    names: tuple[str, ...]
    quote: str
    text: str
    """What happened, in a sentence."""

    @classmethod
    def of(cls, missed: MissedHandOver, message_id: str) -> "HandOverMissed":
        """Return the event for a missed hand-over."""
        return cls(
            member=missed.sender,
            message_id=message_id,
            names=missed.members,
            quote=missed.quote,
            text=missed.sentence,
        )


class HandOverDismissed(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag="hand_over_dismissed", tag_field="type"
):
    """A person dismissed a missed hand-over."""

    by: str = ""
    """Who decided it, if a person did."""


class Undecided(Struct, frozen=True, kw_only=True, tag="undecided", tag_field="type"):
    """A turn ended without a reply; a person retries it, skips it, or hands it to another member."""

    turn: WaitingTurn
    state: Ending
    text: str


class Unallowed(Struct, frozen=True, kw_only=True, tag="unallowed", tag_field="type"):
    """An agent hands over to a member with full permissions; the turn begins only if a person allows it."""

    turn: WaitingTurn
    by: str
    text: str

    @classmethod
    def of(cls, turn: WaitingTurn, by: str) -> "Unallowed":
        """Return the event for a turn that an agent asked for."""
        text = f"{by} hands over to {turn.member}, which has full permissions (turn {turn.id}). That needs your yes."
        return cls(turn=turn, by=by, text=text)


class Conflicted(Struct, frozen=True, kw_only=True, tag="conflicted", tag_field="type"):
    """What an agent did in its own workspace conflicts with what others did meanwhile; a person decides."""

    turn_id: str
    member: str
    files: tuple[str, ...]
    text: str

    @classmethod
    def of(cls, turn_id: str, conflict: MergeConflict) -> "Conflicted":
        """Return the event for a conflict."""
        files, count = conflict.files, len(conflict.files) + conflict.more
        names = ", ".join(map(repr, files[:FEW])) + (f" and {count - FEW:,} more" if count > FEW else "")
        text = (
            f"What {conflict.member} did in turn {turn_id} is not in the shared folder yet: {names} "
            f"{'was' if len(files) == 1 else 'were'} changed there meanwhile, in ways that cannot both be kept."
        )
        return cls(turn_id=turn_id, member=conflict.member, files=files, text=text)


class ProgramsChanged(Struct, frozen=True, kw_only=True, tag="programs_changed", tag_field="type"):
    """A turn changed files that make programs run; a person decides before the next agent begins."""

    turn_id: str
    member: str
    files: tuple[str, ...]
    can_be_undone: bool
    """Whether bullpen has a copy of one of them as it was."""
    text: str

    @classmethod
    def of(cls, turn_id: str, change: ProgramChange) -> "ProgramsChanged":
        """Return the event for such files."""
        files = (*change.files, *change.beside)
        names = ", ".join(map(repr, files[:FEW])) + (f" and {len(files) - FEW:,} more" if len(files) > FEW else "")
        text = (
            f"{change.member} changed {names} in turn {turn_id}. Such files make programs run, so no agent begins "
            "until you decide."
        )
        if change.beside:
            text += f" bullpen keeps no copy of {', '.join(map(repr, change.beside[:FEW]))}: put that right yourself."
        can_be_undone = bool(change.files)
        return cls(turn_id=turn_id, member=change.member, files=files, text=text, can_be_undone=can_be_undone)


class LeftByUndo(Struct, frozen=True, kw_only=True, tag="left_by_undo", tag_field="type"):
    """An undo left files that a person perhaps changed during the turn; a person decides."""

    turn_id: str
    member: str
    files: tuple[str, ...]
    text: str

    @classmethod
    def of(cls, turn_id: str, left: FilesLeft) -> "LeftByUndo":
        """Return the event for such files."""
        names = [*left.files[:FEW], *([f"{len(left.files) - FEW:,} more"] if len(left.files) > FEW else [])]
        verb, them = ("is", "it") if len(left.files) == 1 else ("are", "them")
        text = (
            f"{listed(names)} {verb} perhaps yours: no tool of {left.member} that ran in turn "
            f"{turn_id} can have changed {them}. Take {them} back, too?"
        )
        return cls(turn_id=turn_id, member=left.member, files=left.files, text=text)


class Unpicked(Struct, frozen=True, kw_only=True, tag="unpicked", tag_field="type"):
    """Several members have done the same task, apart from each other; a person picks one result."""

    round: str
    """The first of their turns."""
    candidates: tuple[Candidate, ...]
    text: str

    @classmethod
    def of(cls, key: str, one: Round) -> "Unpicked":
        """Return the event for a round whose candidates have ended."""
        done = one.in_state("done")
        failed = [f"{candidate.member} (turn {candidate.turn})" for candidate in one.in_state("failed")]
        members = [f"{candidate.member} (turn {candidate.turn})" for candidate in done]
        sentences = [
            one.why_asked,
            f"{listed(members)} {'has a result' if len(done) == 1 else 'have each done the task'}." if done else "",
            f"{listed(failed)} {'has' if len(failed) == 1 else 'have'} no result." if failed else "",
            "Which result should be merged?" if done else "There is nothing to pick.",
        ]
        return cls(round=key, candidates=(*done, *one.in_state("failed")), text=" ".join(filter(None, sentences)))


class Unapproved(Struct, frozen=True, kw_only=True, tag="unapproved", tag_field="type"):
    """A review has not ended with an approval, and a person decides: one more round, or the end of it."""

    builder: str
    reviewer: str
    turn_id: str
    """The last turn in which the reviewer was asked."""
    rounds: int
    """How many there were."""
    text: str

    @classmethod
    def of(cls, one: Review) -> "Unapproved":
        """Return the event for a review about which a person decides."""
        text = f"{one.why_asked} {one.question}"
        turn_id = one.rounds[-1].turn if one.rounds else ""
        return cls(builder=one.builder, reviewer=one.reviewer, turn_id=turn_id, rounds=one.number, text=text)


class Offered(Struct, frozen=True, kw_only=True, tag="offered", tag_field="type"):
    """An agent's reply offers answers with [ASK: …]; the one that a person chooses is said to it."""

    turn_id: str
    member: str
    choices: tuple[str, ...]

    @classmethod
    def of(cls, turn_id: str, ask: OpenAsk) -> "Offered":
        """Return the event for such a reply."""
        return cls(turn_id=turn_id, member=ask.member, choices=ask.choices)


class Decided(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="decided", tag_field="type"):
    """A person has decided about a turn: one without a reply, one that needs a yes, or one with a conflict."""

    turn_id: str
    choice: str
    by: str = ""
    """Who decided it, if a person did."""


class Asked(Struct, frozen=True, kw_only=True, tag="asked", tag_field="type"):
    """A running agent asks people before it does something, and waits."""

    turn_id: str
    member: str
    question: ApprovalAsked
    at: int


class Answered(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="answered", tag_field="type"):
    """A question of a running agent is answered: by a person, or by a rule."""

    turn_id: str
    member: str
    question: str
    answer: Answer
    scope: Scope = "once"
    by: str = ""
    """Who answered; empty: no person did."""
    because: str = ""
    """Why it was answered without a person."""
    about: str = ""
    """What was asked, in a few words."""
    was_waiting: bool = False
    """Whether people were asked; a rule answers without that."""

    @classmethod
    def of(cls, record: ApprovalRecord, asked: ApprovalAsked | None = None, *, was_waiting: bool = False) -> "Answered":
        """Return the event for a stored answer."""
        if record.answer is None:
            raise TypeError("a question is not an answer")
        return cls(
            turn_id=record.turn_id,
            member=record.member,
            question=record.question,
            answer=record.answer,
            scope=record.scope,
            by=record.by,
            because=record.because,
            about="" if asked is None else words_of(asked),
            was_waiting=was_waiting,
        )


class Paused(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="paused", tag_field="type"):
    """No turn begins until a person continues."""

    kind: PauseKind
    text: str
    by: str = ""
    """Who decided it, if a person did."""


class Continued(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="continued", tag_field="type"):
    """A person ended the pause, and waiting turns begin."""

    by: str = ""
    """Who decided it, if a person did."""


class Held(Struct, frozen=True, kw_only=True, tag="held", tag_field="type"):
    """A person spoke or decided during a pause: turns that were waiting are held, and the new ones begin."""

    turns: tuple[WaitingTurn, ...]


class TaskSet(Struct, frozen=True, kw_only=True, tag="task_set", tag_field="type"):
    """The team task has changed."""

    task: str | None
    by: str


class Renamed(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="renamed", tag_field="type"):
    """The conversation has another title."""

    title: str | None
    """None: it is called by its first words again."""
    by: str = ""
    """Who decided it, if a person did."""


class Forgotten(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="forgotten", tag_field="type"):
    """An agent's next turn begins a new session, built from the conversation."""

    member: str
    by: str = ""
    """Who decided it."""


class SummaryDropped(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="summary_dropped", tag_field="type"):
    """A person does not want a summary in prompts any more; the message stays."""

    number: int
    """Of the message that it is."""
    first: int
    last: int
    """The messages that it covered."""
    by: str = ""
    """Who decided it."""


class Quiet(Struct, frozen=True, kw_only=True, tag="quiet", tag_field="type"):
    """No turn is running, and none can begin."""

    waits_for: str | None


class Trouble(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="trouble", tag_field="type"):
    """Something went wrong in bullpen itself, or was left undone; the text says what to do."""

    text: str
    about: str = ""
    """What it is about, if bullpen says when it is over."""


class TroubleOver(Struct, frozen=True, kw_only=True, tag="trouble_over", tag_field="type"):
    """Trouble is over that people were told of."""

    about: str
    text: str


class FilesChanged(Struct, frozen=True, kw_only=True, tag="files_changed", tag_field="type"):
    """Files were changed: by a turn, by people between turns, or because somebody took changes back."""

    record: ChangeRecord
    """Without its patch and with the first files only; all of it can be read from the store."""

    @classmethod
    def of(cls, record: ChangeRecord) -> "FilesChanged":
        """Return the event for a record."""
        return cls(record=replace(record, changes=replace(record.changes.to_send(), patch="")))


class Checked(Struct, frozen=True, kw_only=True, tag="checked", tag_field="type"):
    """A check has begun after a turn that changed files, or has ended."""

    result: CheckResult


class Lagged(Struct, frozen=True, kw_only=True, tag="lagged", tag_field="type"):
    """This viewer was too slow and missed this many events. Messages can be read again."""

    missed: int


ConversationEvent = (
    Said
    | Queued
    | Dropped
    | Reordered
    | TurnBegan
    | TurnEvent
    | TurnEnded
    | HandOverMissed
    | HandOverDismissed
    | Undecided
    | Unallowed
    | Conflicted
    | ProgramsChanged
    | LeftByUndo
    | Unpicked
    | Unapproved
    | Offered
    | Asked
    | Answered
    | Decided
    | BudgetReached
    | BudgetRaised
    | Paused
    | Continued
    | Held
    | TaskSet
    | Renamed
    | Forgotten
    | SummaryDropped
    | FilesChanged
    | Checked
    | Quiet
    | Trouble
    | TroubleOver
    | Lagged
)

# Names that an earlier version used. They still work in this one.
_OLD_TAGS = {b"continued": b"went_on", b"hand_over_missed": b"missed_hand_over"}
_TAG = b'{"type":"'


def old_event_json(event: ConversationEvent) -> bytes:
    """Return an event as an earlier version wrote it, with the old name of its type."""
    tag, _, rest = msgspec.json.encode(event).removeprefix(_TAG).partition(b'"')
    return b'{"news":"%s"%s' % (_OLD_TAGS.get(tag, tag), rest)


def event_json(event: ConversationEvent) -> bytes:
    """Return an event as one JSON object, in this version also with the old name of its type."""
    tag, _, rest = msgspec.json.encode(event).removeprefix(_TAG).partition(b'"')
    return b'%s%s","news":"%s"%s' % (_TAG, tag, _OLD_TAGS.get(tag, tag), rest)
