"""What a person can do beside speaking, as data: a name, what it takes, and what the conversation then does."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import Struct

from bullpen.conversation.conversation import Conversation
from bullpen.errors import BullpenError, UnknownCommand


class Nothing(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nothing more to say."""


class OneTurn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A turn."""

    turn: str | None = None
    """Without one: the latest, or all that run."""


class Waiting(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Turns that wait."""

    turn: str | None = None
    member: str | None = None
    """All of this member's; without either: all that wait."""


class Somebody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A member, and the turn to take over."""

    member: str
    turn: str | None = None


class Names(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Members, as in [NEXT: …]."""

    names: str


class Order(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Waiting turns, the first one first."""

    turns: tuple[str, ...]


class Task(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the team works on."""

    task: str | None = None


class Action(Struct, frozen=True, kw_only=True):
    """One thing to do. Its `word` is what people type after a slash, and `rest` what the words behind it are."""

    name: str
    summary: str
    takes: type[Struct]
    act: Callable[[Conversation, Any], Awaitable[object]]
    rest: str | None = None
    typed: str = ""
    """Another word for it behind a slash, the same as in a terminal."""


ACTIONS = {
    action.name: action
    for action in (
        Action(
            name="cancel",
            summary="Stop one running turn, or all; the queue is kept.",
            takes=OneTurn,
            act=lambda conversation, given: conversation.cancel(given.turn),
            rest="turn",
        ),
        Action(
            name="go-on",
            summary="Lift a pause: what waits begins.",
            takes=Nothing,
            act=lambda conversation, _: conversation.continue_turns(),
            typed="go",
        ),
        Action(
            name="drop",
            summary="Take waiting turns out of the queue.",
            takes=Waiting,
            act=lambda conversation, given: conversation.drop(
                member=given.member, turn_ids=(given.turn,) if given.turn else ()
            ),
            rest="member",
        ),
        Action(
            name="retry",
            summary="Do a turn again that ended without a reply.",
            takes=OneTurn,
            act=lambda conversation, given: conversation.retry(given.turn),
            rest="turn",
        ),
        Action(
            name="skip",
            summary="Go on without a turn that ended without a reply.",
            takes=OneTurn,
            act=lambda conversation, given: conversation.skip(given.turn),
            rest="turn",
        ),
        Action(
            name="hand-over",
            summary="Let another member answer in its place.",
            takes=Somebody,
            act=lambda conversation, given: conversation.hand_over(given.member, given.turn),
            rest="member",
            typed="hand",
        ),
        Action(
            name="ask",
            summary="Ask members to answer the last message.",
            takes=Names,
            act=lambda conversation, given: conversation.ask(given.names),
            rest="names",
            typed="next",
        ),
        Action(
            name="reorder",
            summary="Let waiting turns begin first, in this order.",
            takes=Order,
            act=lambda conversation, given: conversation.reorder(given.turns),
        ),
        Action(
            name="task",
            summary="Set what the team works on.",
            takes=Task,
            act=lambda conversation, given: conversation.set_task(given.task),
            rest="task",
        ),
    )
}
_TYPED = {f"/{action.typed or action.name}": action for action in ACTIONS.values() if action.name != "reorder"}
COMMANDS = {word: action.summary for word, action in _TYPED.items()}
"""What can be typed instead of a message."""


def command_in(text: str) -> tuple[Action, Struct] | None:
    """Return what a text that begins with a slash asks for; None if it is a message. A path is a message."""
    word, _, rest = text.strip().partition(" ")
    if not word.startswith("/") or "/" in word[1:] or len(word) == 1 or "\n" in word:
        return None
    if word not in COMMANDS:
        raise UnknownCommand(word, COMMANDS)
    action = _TYPED[word]
    if action.name == "task" and not rest.strip():
        raise BullpenError("Say what the team works on: /task build the login.")
    given = {action.rest: rest.strip()} if action.rest and rest.strip() else {}
    return action, read_form(action.takes, given)


def read_form(kind: type[Struct], values: dict[str, Any]) -> Struct:
    """Return the values of a form as what an action takes; ValidationError says what is wrong."""
    filled = {name: value for name, value in values.items() if value not in ("", [])}
    return msgspec.convert(filled, kind, strict=False)
