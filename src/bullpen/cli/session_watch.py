"""`bullpen sessions watch`: a conversation that another process runs, as it happens."""

import argparse
from pathlib import Path

from bullpen.cli.session_lists import print_message
from bullpen.cli.typed_commands import to_type
from bullpen.database import open_database
from bullpen.terminal.tables import print_heading, safe_line
from bullpen.view.listing import find_conversation
from bullpen.view.messages import ShownMessage
from bullpen.view.state import ConversationView
from bullpen.view.status_lines import sign_of
from bullpen.view.watching import watch


def watch_one(options: argparse.Namespace) -> int:
    """Print the last messages, and then what is said, until no process runs the conversation or Ctrl-C."""
    with open_database(options.db) as database:
        conversation = find_conversation(database, options.id)
        print_heading(f"{conversation.id}  team {conversation.team}. You are watching; Ctrl-C does not stop it.")
        before = ""
        for seen in watch(database, conversation.id, after=max(0, conversation.messages - options.last)):
            if isinstance(seen, ShownMessage):
                print_message(seen)
            elif (state := _state(seen, options.db)) != before:
                print(f"\n({safe_line(state)})", flush=True)
                before = state
    return 0


def _state(view: ConversationView, db: Path | None) -> str:
    waiting = f" Waiting: {', '.join(turn.member for turn in view.queue)}." if view.queue else ""
    if not view.is_owned:
        return f"No process is running it now.{waiting} Continue it: {to_type(f'chat --resume {view.id}', db)}"
    # Who watches may be anybody.
    now = view.activity_for("")
    who = [f"{sign_of(one)} {one.member} {one.words}" for one in view.working if one.activity != now.name]
    mine = [one.member for one in view.working if one.activity == now.name] + [one.name for one in view.checking]
    about = f": {', '.join(mine)}" if mine else f": {view.paused}" if view.paused is not None else ""
    return f"{'. '.join([f'{now.sign} {now.word}{about}', *who])}.{waiting}"
