"""What waits for a person, as `bullpen inbox` prints it."""

from bullpen.clock import now
from bullpen.terminal.tables import print_heading, print_indented, safe_line
from bullpen.text.numbers import elapsed
from bullpen.view.inbox import Item

LOOK_SECONDS = 0.5
"""How often it is looked what waits."""
NOTHING = "Nothing waits for you. Agents that ask appear here while a conversation is open."


def print_item(item: Item) -> None:
    """Print what waits, all of it, and where."""
    since = elapsed(now() - item.since / 1000)
    print_heading(item.decision.text)
    closed = " · nobody has it open" if item.pid is None else ""
    print(safe_line(f"{item.title} · {item.conversation} · team {item.team} · for {since}{closed}"))
    if item.decision.shown:
        print_indented(item.decision.shown)
    if item.decision.length:
        print_heading(item.decision.length)


def print_choices(item: Item) -> None:
    """Print the answers that there are, as they are typed where the conversation is open."""
    for choice in item.decision.choices:
        print(safe_line(f"  {choice.typed}  {choice.purpose}"))
