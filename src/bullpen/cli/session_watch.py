"""`bullpen sessions watch`: a conversation that another process runs, as it goes on."""

import argparse

from bullpen.cli.database import find_conversation, open_store
from bullpen.cli.session_lists import print_message
from bullpen.conversation.owner import is_alive
from bullpen.store.watching import Standing, follow
from bullpen.terminal.tables import print_heading, safe_line


def watch(options: argparse.Namespace) -> int:
    """Print the last messages, and then what is said, until nobody runs the conversation or Ctrl-C."""
    with open_store(options) as store:
        conversation = find_conversation(store, options.id)
        print_heading(f"{conversation.id}  team {conversation.team}. You are watching; Ctrl-C leaves it as it is.")
        after = max(0, conversation.messages - options.last)
        for seen in follow(store, conversation.id, after=after, is_alive=is_alive):
            if isinstance(seen, Standing):
                print(f"\n({safe_line(_told(seen, conversation.id))})", flush=True)
            else:
                print_message(seen)
    return 0


def _told(standing: Standing, conversation_id: str) -> str:
    waiting = f" Waiting: {', '.join(standing.waiting)}." if standing.waiting else ""
    if not standing.is_owned:
        return f"Nobody runs it now.{waiting} Go on with: bullpen chat --resume {conversation_id}"
    if standing.at_work:
        return f"{', '.join(standing.at_work)} at work.{waiting}"
    if standing.paused is not None:
        return f"It is paused: {standing.paused}{waiting}"
    return f"It waits for {standing.waits_for or 'a person'}.{waiting}"
