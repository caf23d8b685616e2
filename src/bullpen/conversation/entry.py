"""Entry: one change of a conversation, built before anything is written."""

from msgspec import UNSET, Struct, UnsetType

from bullpen.context.prompt import AssemblerOutput
from bullpen.conversation.events import ConversationEvent, Said
from bullpen.messages import ConversationMessage
from bullpen.routing.progress import Progress
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import Decision, PoolOrder, TurnEnd


class Change(Struct, frozen=True, kw_only=True):
    """Changes besides messages and turns; UNSET fields stay as they are."""

    team_task: str | UnsetType | None = UNSET
    waits_for: str | UnsetType | None = UNSET
    paused: str | UnsetType | None = UNSET
    progress: Progress | UnsetType = UNSET
    title: str | UnsetType | None = UNSET
    decision: Decision | None = None
    """Who decided it; None: it follows from something else."""


NO_CHANGE = Change()


class BegunTurn(Struct, frozen=True, kw_only=True):
    """A turn that begins, and its agent's prompt."""

    turn: WaitingTurn
    given: AssemblerOutput
    order: PoolOrder | None = None
    """What workers are to run for it; None: it runs here."""


class Entry(Struct, frozen=True, kw_only=True):
    """One thing that happens: a message, a turn that begins or ends, or a person's decision. Stored in one commit."""

    at: int
    message: ConversationMessage | None = None
    begins: BegunTurn | None = None
    ends: TurnEnd | None = None
    """The running turn that ends: with the message, if there is one, else without a reply."""
    retries: str | None = None
    """The turn that the first of the new turns retries."""
    turns: tuple[WaitingTurn, ...] = ()
    """New turns in the queue."""
    drops: tuple[WaitingTurn, ...] = ()
    """Waiting turns that will not begin."""
    puts_first: tuple[WaitingTurn, ...] = ()
    """Waiting turns that begin before all others, in this order."""
    change: Change = NO_CHANGE
    said: Said | None = None
    """The event for the message."""
    events: tuple[ConversationEvent, ...] = ()
    """The events after that."""
