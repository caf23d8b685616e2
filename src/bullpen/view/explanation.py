"""Explanation: what an agent was given in a turn, or would be given now; what was left out, and why. All as data."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from bullpen.context.prompt import AssemblerOutput
from bullpen.context.report import ChangedMessage, PromptReport
from bullpen.conversation.conversation import Conversation
from bullpen.errors import UnknownMessage
from bullpen.memory import SessionUse
from bullpen.store.base import Store, StoredMessage, Turn
from bullpen.text.clean import byte_length
from bullpen.text.numbers import counted, size
from bullpen.view.activity import turn_word
from bullpen.view.decided import Decision, decisions_about
from bullpen.view.not_offered import NotOffered, Offer, not_offered
from bullpen.view.session_messages import messages_in_session
from bullpen.view.summaries import summary_numbers
from bullpen.view.turn_lookup import find_turn

Fate = Literal["kept", "cut", "dropped"]

SUMMED_UP = "it is a summary, which is given only in the place of what it covers"
RIVALS = "it did the same task, or was to judge it, and no result had been picked"
FIRST_WORDS_CHARACTERS = 60
MOST_PARTS = 8
"""Turns that brought messages into a session, named in one sentence."""


class SeenMessage(Struct, frozen=True, kw_only=True):
    """A message that a turn was offered, and what became of it."""

    sequence: int | None
    """None: the store does not know it."""
    id: str
    speaker: str
    first_words: str
    said_bytes: int
    """What was said, as it is stored; markers and white space may be gone in the prompt."""
    fate: Fate
    why: str = ""
    since_turn: str | None = None
    """The turn in which it got into the agent's session; empty: it came with a copy of a session; None: it is new."""


class Explanation(Struct, frozen=True, kw_only=True):
    """What one agent was given. A prompt of None was never given to anybody: the turn has not started."""

    conversation_id: str
    member: str
    turn: Turn | None
    """None: it would be given this if it were asked now."""
    seconds: float | None
    """How long the turn took, once it has ended."""
    answers: SeenMessage
    """The message that it answered."""
    asked_by: SeenMessage
    """The message that asked for the turn: in a relay the one that began it, else the same."""
    session: SessionUse | None = None
    """The agent's own session in which the turn runs; None: it has none, and the prompt is all that the model gets."""
    known: tuple[SeenMessage, ...] = ()
    """The messages that are already in that session, oldest first. With the new ones, they are what the model gets."""
    context: tuple[SeenMessage, ...] = ()
    """The messages that it was offered beside that, oldest first."""
    not_offered: tuple[NotOffered, ...] = ()
    summed_up: str = ""
    """What it was given to sum up, in a sentence; empty: it was not asked for a summary."""
    stand_in: str = ""
    """Who stood in for the member, by its name in the team file."""
    agent_type: str | None = None
    max_bytes: int = 0
    total_bytes: int = 0
    section_bytes: dict[str, int] = {}
    instruction_bytes_cut: int = 0
    cuts: tuple[str, ...] = ()
    """Every cut in a phrase."""
    remarks: tuple[str, ...] = ()
    """Every cut, and everything else that is not as one might expect."""
    changed: tuple[ChangedMessage, ...] = ()
    """Messages that are not in the prompt quite as they were said."""
    later_messages: int = 0
    """How many messages had come after the one that it answered; they were not offered."""
    team_task_bytes_cut: int = 0
    instruction_files: tuple[str, ...] = ()
    """The files whose rules it was given, with those that they import."""
    read_by_itself: tuple[str, ...] = ()
    """Those that its program reads by itself."""
    instruction_problems: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    system: str | None = None
    prompt: str | None = None
    stream_bytes: int = 0
    stream_is_cut: bool = False
    decisions: tuple[Decision, ...] = ()
    """What people decided about the turn, oldest first: a yes to the hand-over, a retry."""

    @property
    def title(self) -> str:
        """Which turn it is, or that there is none yet."""
        return "The next turn" if self.turn is None else f"Turn {self.turn.id}"

    @property
    def state(self) -> str:
        """What the turn does or how it ended, in a word; empty: there is none yet."""
        return "" if self.turn is None else turn_word(self.turn.state)

    @property
    def messages(self) -> tuple[SeenMessage, ...]:
        """Every message that it knew or was offered, the one to answer last."""
        return (*self.known, *self.new)

    @property
    def new(self) -> tuple[SeenMessage, ...]:
        """Every message that was offered in the prompt, the one to answer last."""
        return (*self.context, self.answers)

    @property
    def in_session(self) -> str:
        """In which session the turn runs, for people; nothing if it has none."""
        use = self.session
        if use is None:
            return ""
        # A copy of a session that a person had with the CLI continues no turn.
        held = f"{f'after turn {use.continues}, ' if use.continues else ''}with {counted(use.turns, 'turn')} in it"
        match use.origin:
            case "new":
                return f"a new one{f', {use.id}' if use.id else ''}"
            case "rebuilt":
                return f"rebuilt: {use.reason}"
            case "forked":
                return f"a copy of {use.id}, {held}"
            case _:
                return f"{use.id}, continued {held}"

    @property
    def rules(self) -> str:
        """The instruction files that hold for it, for people; nothing if there are none that we know of."""
        by_itself = (
            f"{', '.join(self.read_by_itself)} (its program reads that by itself)" if self.read_by_itself else ""
        )
        return ", ".join(filter(None, [*self.instruction_files, by_itself]))

    @property
    def known_sentence(self) -> str:
        """How many messages are in its session already, and since which turns, for a narrow place."""
        parts = [f"{_numbers([*seen])} {_since(turn)}" for turn, seen in groupby(self.known, key=_turn_of)]
        more = f", and {len(parts) - MOST_PARTS:,} more" if len(parts) > MOST_PARTS else ""
        which = f": {', '.join(parts[:MOST_PARTS])}{more}" if parts else ""
        return f"{counted(len(self.known), 'message')} already in its session{which}"

    @property
    def tool_uses(self) -> tuple[str, ...]:
        """What the agent did with the tools of the turn."""
        uses = self.turn.uses if self.turn is not None else ()
        return tuple(f"{use.words} ({size(use.bytes)})" if use.bytes else use.words for use in uses)

    @property
    def sections(self) -> tuple[tuple[str, int], ...]:
        """The parts of the prompt that are not empty, with their sizes in bytes."""
        return tuple((name.replace("_", " "), size) for name, size in self.section_bytes.items() if size)


def explain(store: Store, conversation_id: str, turn_id: str) -> Explanation:
    """Return what one turn saw."""
    turn = store.turn(conversation_id, turn_id)
    record = store.record(conversation_id, turn_id)
    asked_by = store.message(conversation_id, turn.message_id)
    if record is None:
        return Explanation(
            conversation_id=conversation_id,
            member=turn.member,
            turn=turn,
            seconds=None,
            answers=_seen(asked_by, "dropped", "not started"),
            asked_by=_seen(asked_by, "dropped", "not started"),
            decisions=decisions_about(store, conversation_id, turn_id),
        )
    answered = asked_by
    report = record.report
    if report.message_id not in ("", asked_by.message.id):
        answered = store.message(conversation_id, report.message_id)
    explained = _explained(store, conversation_id, turn.member, report, answered, prompt=record.prompt, turn_id=turn.id)
    reasons = {store.message(conversation_id, message_id).sequence: RIVALS for message_id in report.rivals}
    reasons |= dict.fromkeys(summary_numbers(store, conversation_id), SUMMED_UP)
    offer = Offer(
        answered=answered.sequence,
        context=tuple(seen.sequence for seen in explained.context),
        known=tuple(seen.sequence for seen in explained.known),
        summed_up=report.summed_up,
        reasons=reasons,
    )
    return replace(
        explained,
        turn=turn,
        seconds=_seconds(turn),
        asked_by=_seen(asked_by, "kept"),
        not_offered=tuple(not_offered(store, conversation_id, turn, offer)),
        command=record.command,
        system=record.system,
        stream_bytes=len(record.stream),
        stream_is_cut=record.stream_is_cut,
        decisions=decisions_about(store, conversation_id, turn_id),
    )


def explain_referenced(store: Store, conversation_id: str, reference: str) -> Explanation:
    """Return what the turn saw that a person means: a number, "last", or "#12" for the one that said message 12."""
    return explain(store, conversation_id, find_turn(store, conversation_id, reference).id)


async def explain_now(conversation: Conversation, member: str) -> Explanation:
    """Return what an agent would be given if it were asked about the last message now."""
    output = await conversation.preview(member)
    name = conversation.member(member).name
    answered = await conversation.read(_answered_by, output)
    return await conversation.read(explain_output, name, output, answered)


def explain_output(
    store: Store, conversation_id: str, member: str, output: AssemblerOutput, answered: StoredMessage
) -> Explanation:
    """Return what a prompt that was not sent would tell an agent."""
    explained = _explained(store, conversation_id, member, output.report, answered, prompt=output.prompt)
    return replace(explained, system=output.system_flag)


def _answered_by(store: Store, conversation_id: str, output: AssemblerOutput) -> StoredMessage:
    return store.message(conversation_id, output.report.message_id)


def _explained(
    store: Store,
    conversation_id: str,
    member: str,
    report: PromptReport,
    answered: StoredMessage,
    *,
    prompt: str,
    turn_id: str = "",
) -> Explanation:
    """Return what a prompt and its report say by themselves."""
    offered = [_find(store, conversation_id, message_id) for message_id in report.context_ids]
    answers = _current(report, answered, is_sent=bool(prompt))
    new = (*report.kept_ids, answered.message.id) if turn_id else ()
    known = messages_in_session(store, conversation_id, member, report.session, turn_id=turn_id, new=new)
    return Explanation(
        conversation_id=conversation_id,
        member=member,
        turn=None,
        seconds=None,
        answers=answers,
        asked_by=answers,
        session=report.session,
        known=tuple(_known(store, conversation_id, known)),
        context=tuple(_context(report, offered)),
        stand_in=report.stand_in,
        agent_type=report.agent_type,
        max_bytes=report.max_bytes,
        total_bytes=report.total_bytes,
        section_bytes=report.section_bytes,
        instruction_bytes_cut=report.instruction_bytes_cut,
        cuts=report.cuts,
        remarks=report.remarks,
        summed_up=report.summed_up.sentence if report.summed_up else "",
        changed=report.changed,
        later_messages=report.later_messages,
        team_task_bytes_cut=report.team_task_bytes_cut,
        instruction_files=report.instruction_files,
        read_by_itself=report.read_by_itself,
        instruction_problems=report.instruction_problems,
        prompt=prompt,
    )


def _seconds(turn: Turn) -> float | None:
    if turn.started_at is None or turn.ended_at is None:
        return None
    return (turn.ended_at - turn.started_at) / 1000


def _find(store: Store, conversation_id: str, message_id: str) -> StoredMessage | str:
    """Return a message, or its id if there is no such message."""
    try:
        return store.message(conversation_id, message_id)
    except UnknownMessage:
        return message_id


def _context(report: PromptReport, offered: Iterable[StoredMessage | str]) -> Iterator[SeenMessage]:
    for position, stored in enumerate(offered):
        if position >= report.dropped_messages:
            yield _seen(stored, "kept")
        elif report.message_bytes_cut:
            yield _seen(stored, "dropped", "the message alone filled the budget")
        else:
            yield _seen(stored, "dropped", f"did not fit into {report.max_bytes:,} bytes")


def _known(store: Store, conversation_id: str, known: dict[str, str]) -> list[SeenMessage]:
    seen = [
        replace(_seen(_find(store, conversation_id, message_id), "kept"), since_turn=turn)
        for message_id, turn in known.items()
    ]
    return sorted(seen, key=lambda one: one.sequence or 0)


def _turn_of(seen: SeenMessage) -> str:
    return seen.since_turn or ""


def _since(turn: str) -> str:
    return f"since turn {turn}" if turn else "from the session it is a copy of"


def _numbers(seen: list[SeenMessage]) -> str:
    """Return the places of messages that follow each other in a session."""
    first, last = seen[0].sequence, seen[-1].sequence
    return f"#{first}" if len(seen) == 1 else f"#{first} to #{last}"


def _current(report: PromptReport, stored: StoredMessage, *, is_sent: bool) -> SeenMessage:
    if not is_sent:
        return _seen(stored, "dropped", "nothing was sent")
    if report.message_bytes_cut:
        return _seen(stored, "cut", f"its last {report.message_bytes_cut:,} bytes did not fit")
    return _seen(stored, "kept")


def _seen(stored: StoredMessage | str, fate: Fate, why: str = "") -> SeenMessage:
    if isinstance(stored, str):
        return SeenMessage(sequence=None, id=stored, speaker="", first_words="", said_bytes=0, fate=fate, why=why)
    message = stored.message
    words = " ".join(message.content[: 4 * FIRST_WORDS_CHARACTERS].split())
    return SeenMessage(
        sequence=stored.sequence,
        id=message.id,
        speaker=message.speaker.role_name,
        first_words=words if len(words) <= FIRST_WORDS_CHARACTERS else f"{words[: FIRST_WORDS_CHARACTERS - 1]}…",
        said_bytes=byte_length(message.content),
        fate=fate,
        why=why,
    )
