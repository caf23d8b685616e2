"""How a conversation was left: for the exit code, and for the person who comes back."""

import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Literal

from bullpen.cli.typed_commands import to_type
from bullpen.conversation.conversation import Conversation
from bullpen.text.safe import printable
from bullpen.view.choices import DecisionKey, Kind
from bullpen.view.state import ConversationView, conversation_view
from bullpen.view.status_lines import NOTHING_KEPT, left_open_lines

Ending = Literal["done", "undecided", "paused", "timeout", "nobody", "red", "unapproved", "interrupted"]

ENDINGS: dict[Ending, int] = {
    "done": 0,
    "undecided": 3,
    "paused": 4,
    "timeout": 5,
    "nobody": 6,
    "red": 7,
    "unapproved": 8,
    "interrupted": 130,
}

DECIDED_BY_PEOPLE: tuple[Kind, ...] = ("failed", "question", "allow", "conflict", "pick", "programs")

EXIT_CODES = """\
exit codes:
  0    done: no turn is running, and it is a person's turn
  1    an error, printed on stderr
  2    wrong usage
  3    a person must decide: an agent asks a question, a turn failed, was cancelled or interrupted, a hand-over needs
       a yes, a merge conflicts, one of several results is to be picked, or files changed that make programs run;
       what was asked before this message, and holds up nothing now, does not count
  4    paused, at a limit, because a budget is used up, or by a person
  5    timed out; the running turns were cancelled
  6    nobody was asked: the message names nobody in the team, or what it wants is not possible; it is stored
  7    done, but a check was red when it last ran
  8    a review has not ended with an approval: a person decides, or has ended it, or it has not come so far
  130  Ctrl-C; the running turns were cancelled. A second Ctrl-C leaves at once
"""


def asked_in(conversation: Conversation) -> frozenset[DecisionKey]:
    """Return everything that a person is asked now."""
    return frozenset(one.key for one in conversation_view(conversation).decisions)


def ending_of(conversation: Conversation, asked_before: Collection[DecisionKey] = ()) -> Ending:
    """Return how a conversation ended in which no turn is running.

    What was asked before the message says nothing about how that went, unless turns still wait.
    """
    view = conversation_view(conversation)
    kinds = {one.kind for one in view.decisions if view.queue or one.key not in asked_before}
    if "budget" in kinds:
        return "paused"
    if conversation.progress.asked_elsewhere or not kinds.isdisjoint(DECIDED_BY_PEOPLE):
        return "undecided"
    if view.paused is not None:
        return "paused"
    is_reviewed = any(not one.is_over and one.state != "asking" for one in conversation.progress.reviews.values())
    return "unapproved" if is_reviewed or "review" in kinds else "done"


def say_next(conversation: Conversation, ending: Ending, db: Path | None, *, why: str = "") -> None:
    """Say on stderr which conversation it was, what its state is, and what to do next; and why nobody was asked."""
    view = conversation_view(conversation)
    lines = _lines(view, ending, db, why) if conversation.message_count else ["", NOTHING_KEPT]
    print(printable("\n".join(lines)), file=sys.stderr)


def _lines(view: ConversationView, ending: Ending, db: Path | None, why: str) -> Iterator[str]:
    yield ""
    match ending:
        case "timeout":
            yield "Timed out; the running turns were cancelled."
        case "interrupted":
            yield "The running turns were cancelled."
        case "paused":
            yield "Paused: a budget is used up." if view.paused is None else f"Paused: {view.paused}"
        case "nobody":
            yield f"Nobody was asked. {why or 'The message names nobody in the team.'}"
        case "red":
            yield "A check is red."
        case "unapproved" if not any(one.kind == "review" for one in view.decisions):
            yield "Not approved."
        case "unapproved" | "undecided" | "done":
            pass
    yield from left_open_lines(view)
    yield f"This was {view.id}. Continue: {to_type(f'chat --resume {view.id}', db)}"
    if view.total.turns:
        yield f"What did an agent see?  {to_type(f'explain last --session {view.id}', db)}"
