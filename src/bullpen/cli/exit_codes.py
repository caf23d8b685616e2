"""How a conversation was left: for the exit code, and for the person who comes back."""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from bullpen.conversation.conversation import Conversation
from bullpen.text.safe import printable

Ending = Literal["done", "undecided", "paused", "timeout", "interrupted"]

ENDINGS: dict[Ending, int] = {"done": 0, "undecided": 3, "paused": 4, "timeout": 5, "interrupted": 130}

EXIT_CODES = """\
exit codes:
  0    done: nobody is at work, and it is a person's turn
  1    an error, said on stderr
  2    wrong usage
  3    a turn failed, was cancelled or interrupted, and waits for a person's decision
  4    paused, at a cap or by a person
  5    --timeout was over; what ran was cancelled
  130  Ctrl-C; what ran was cancelled. A second Ctrl-C leaves at once
"""


def ending_of(conversation: Conversation) -> Ending:
    """Return how a quiet conversation stands."""
    if conversation.undecided:
        return "undecided"
    return "done" if conversation.paused is None else "paused"


def say_next(conversation: Conversation, ending: Ending, db: Path | None) -> None:
    """Say on stderr which conversation it was, how it stands, and what to do next."""
    where = "" if db is None else f" --db {shlex.quote(str(db))}"
    print(printable("\n".join(_lines(conversation, ending, where))), file=sys.stderr)


def _lines(conversation: Conversation, ending: Ending, where: str) -> Iterator[str]:
    undecided, waiting = conversation.undecided, conversation.waiting
    yield ""
    match ending:
        case "timeout":
            yield "The time was over, and what ran was cancelled."
        case "interrupted":
            yield "What ran was cancelled."
        case "paused":
            yield f"Paused: {conversation.paused}"
        case "undecided" | "done":
            pass
    if undecided:
        names = ", ".join(f"turn {turn.id} of {turn.member}" for turn in undecided)
        yield f"Waiting for your decision: {names}. In chat: /retry, /skip or /hand NAME."
    if waiting:
        yield f"In the queue: {', '.join(turn.member for turn in waiting)}."
    yield f"This was {conversation.id}. Go on: bullpen chat --resume {conversation.id}{where}"
    if conversation.progress.turns_made:
        yield f"What did an agent see?  bullpen explain last --session {conversation.id}{where}"
