"""What waits for a person, as `bullpen inbox` prints it."""

from pathlib import Path

from bullpen.cli.typed_commands import to_type
from bullpen.clock import now
from bullpen.terminal.tables import print_heading, print_indented, safe_line
from bullpen.text.numbers import counted, elapsed
from bullpen.view.inbox import Inbox, Item

LOOK_SECONDS = 0.5
"""How often it is looked what waits."""
NOTHING = "Nothing waits for you. Agents that ask appear here while a conversation is open."


def print_item(item: Item) -> None:
    """Print what waits, all of it, and where."""
    since = elapsed(now() - item.since / 1000)
    print_heading(item.decision.text)
    print(safe_line(f"{item.title} · {item.conversation} · team {item.team} · for {since}"))
    if item.decision.shown:
        print_indented(item.decision.shown)
    if item.decision.length:
        print_heading(item.decision.length)


def print_choices(item: Item) -> None:
    """Print the answers that there are, as they are typed where the conversation is open."""
    for choice in item.decision.choices:
        print(safe_line(f"  {choice.typed}  {choice.purpose}"))


def print_closed(found: Inbox, db: Path | None) -> None:
    """Print which conversations need a person although nobody has them open."""
    if found.closed:
        verb = "needs" if len(found.closed) == 1 else "need"
        first = to_type(f"chat --resume {found.closed[0]}", db)
        print(f"{counted(len(found.closed), 'conversation')} that nobody has open {verb} you, too: {first}")
