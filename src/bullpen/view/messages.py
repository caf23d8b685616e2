"""Messages as a door shows them: each with its place, and the turn that it ended."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from bullpen.errors import UnknownMessage
from bullpen.markers.stripping import text_for_people
from bullpen.messages import ConversationMessage, Routing
from bullpen.routing.summaries import covered_by
from bullpen.store.base import Store, StoredMessage, Turn
from bullpen.text.clean import clean_text
from bullpen.text.numbers import spent
from bullpen.view.steps import recorded_steps
from bullpen.view.stored_answers import answer_steps
from bullpen.view.turn_lookup import turn_that_said
from bullpen.view.unanswered import UnansweredTurn, unanswered_turns

PAGE = 50
NOTE = "a note: nobody was asked"
MOST_LOOKED_THROUGH = 64 * 1024
"""Bytes of a record in which we look for steps: a page has many, and one that is longer than an answer has some."""


class ShownMessage(Struct, frozen=True, kw_only=True):
    """A message in its conversation."""

    sequence: int
    """1 is the first."""
    message: ConversationMessage
    turn: str | None = None
    """The turn that ended with it, if an agent said it."""
    spent: str = ""
    """How long that turn took and what it used, in words."""
    has_steps: bool = False
    """Whether that turn probably did something besides answering."""
    unanswered: tuple[UnansweredTurn, ...] = ()
    """Turns that ended after it without a reply."""
    rebuilt: str = ""
    """Why that turn began a new session in the place of the agent's last one."""


def rebuilt_words(why: str) -> str:
    """Return what is written beside a message whose turn began a new session; nothing for any other."""
    return f"rebuilt: {why}" if why else ""


def rebuilt_replies(store: Store, conversation_id: str, stored: Sequence[StoredMessage]) -> dict[str, str]:
    """Return which of these messages are of turns that began a new session, and why."""
    said = [one.message for one in stored if one.message.speaker.type == "ai"]
    turns = [turn.id for message in said if (turn := turn_that_said(store, conversation_id, message)) is not None]
    left = store.memories(conversation_id, turn_ids=turns) if turns else []
    return {one.reply_id: one.memory.reason for one in left if one.memory.reason}


def shown_messages(
    store: Store, conversation_id: str, *, before: int | None = None, after: int | None = None, limit: int = PAGE
) -> list[ShownMessage]:
    """Return messages with their turns, oldest first: the newest ones, those before a number, or the first after it."""
    stored = store.messages(conversation_id, before=before, after=after, limit=limit)
    shown = _with_answers(store, conversation_id, [_shown(store, conversation_id, one) for one in stored])
    return _with_what_followed(store, conversation_id, stored, shown)


def plain_messages(
    store: Store, conversation_id: str, *, before: int | None = None, after: int | None = None, limit: int = PAGE
) -> list[ShownMessage]:
    """Return the same without their turns, which take longer to find."""
    stored = store.messages(conversation_id, before=before, after=after, limit=limit)
    shown = [ShownMessage(sequence=one.sequence, message=one.message) for one in stored]
    return _with_what_followed(store, conversation_id, stored, shown)


def is_note(message: ConversationMessage) -> bool:
    """Return whether a person stored it with /note: it names nobody, and answers nothing that waited for them."""
    return message.speaker.type == "human" and message.routing == Routing()


def kind_words(message: ConversationMessage) -> str:
    """Return what a message is, if it is more than that: "summary of #1 to #40"."""
    covered = covered_by(message)
    return "" if covered is None else covered.summary_of


def was_streamed(reply: ConversationMessage, pieces: Iterable[str]) -> bool:
    """Return whether what an agent wrote during its turn ends with its reply, so that nothing is left to show."""
    return clean_text("".join(pieces)).strip().endswith(reply.content.strip())


def message_text(store: Store, conversation_id: str, sequence: int) -> str:
    """Return what was said in a message, without the markers that routed it."""
    found = store.messages(conversation_id, after=sequence - 1, limit=1)
    if not found or found[0].sequence != sequence:
        raise UnknownMessage(f"#{sequence}")
    return text_for_people(found[0].message.content)


def _with_what_followed(
    store: Store, conversation_id: str, stored: list[StoredMessage], shown: list[ShownMessage]
) -> list[ShownMessage]:
    """Return messages with the turns that ended after them without a reply, and why their own began a new session."""
    turns = unanswered_turns(store, conversation_id, stored)
    rebuilt = rebuilt_replies(store, conversation_id, stored)
    if not turns and not rebuilt:
        return shown
    return [
        replace(
            one,
            unanswered=tuple(turn for turn in turns if turn.after == one.sequence),
            rebuilt=rebuilt.get(one.message.id, ""),
        )
        for one in shown
    ]


def _shown(store: Store, conversation_id: str, stored: StoredMessage) -> ShownMessage:
    turn = turn_that_said(store, conversation_id, stored.message)
    if turn is None:
        return ShownMessage(sequence=stored.sequence, message=stored.message)
    return ShownMessage(
        sequence=stored.sequence,
        message=stored.message,
        turn=turn.id,
        spent=_spent(turn),
        has_steps=_has_steps(store, conversation_id, turn),
    )


def _with_answers(store: Store, conversation_id: str, shown: list[ShownMessage]) -> list[ShownMessage]:
    """Return messages; who answered what a turn asked is also something that happened in it."""
    answers = answer_steps(store, conversation_id, [one.turn for one in shown if one.turn and not one.has_steps])
    return [replace(one, has_steps=True) if one.turn in answers else one for one in shown] if answers else shown


def _has_steps(store: Store, conversation_id: str, turn: Turn) -> bool:
    record = store.short_record(conversation_id, turn.id, most=MOST_LOOKED_THROUGH)
    # What is damaged is told to those who open it; the page is shown all the same.
    return record is None or len(recorded_steps(record)) > 0


def _spent(turn: Turn) -> str:
    started, ended = turn.started_at, turn.ended_at
    return "" if started is None or ended is None else spent((ended - started) / 1000, turn.usage)
