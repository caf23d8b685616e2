"""What happened in a conversation besides what was said, in a line: the same in every door that writes lines."""

from collections.abc import Iterable

from bullpen.conversation.budget_events import BudgetRaised
from bullpen.conversation.events import (
    Continued,
    ConversationEvent,
    Decided,
    Dropped,
    Lagged,
    Queued,
    Reordered,
    TaskSet,
    Trouble,
    TroubleOver,
)
from bullpen.routing.queue import WaitingTurn
from bullpen.text.numbers import counted


def happened(event: ConversationEvent) -> str:
    """Return what an event is about, in a few words; nothing for those that are shown in another way."""
    match event:
        case Queued(turns=turns):
            return f"asked: {_members(turns)}"
        case Dropped(turns=turns):
            return f"dropped: {_members(turns)}"
        case Reordered(turns=turns):
            return f"the queue is now: {_members(turns)}"
        case Decided(turn_id=turn_id, choice=choice, by=by):
            return f"{by}, turn {turn_id}: {choice}" if by else f"turn {turn_id}: {choice}"
        case Continued():
            return "Continued."
        case TaskSet(task=task, by=by):
            return f"{by} set the team's task: {task}" if task else f"{by} removed the team's task."
        case BudgetRaised(text=text, by=by):
            return f"{by}: {text}" if by else text
        case Trouble(text=text) | TroubleOver(text=text):
            return text
        case Lagged(missed=missed):
            return f"({counted(missed, 'event')} missing here; the messages are complete.)"
        case _:
            return ""


def _members(turns: Iterable[WaitingTurn]) -> str:
    return ", ".join(turn.member for turn in turns)
