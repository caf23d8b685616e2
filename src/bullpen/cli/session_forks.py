"""`bullpen sessions fork`: a new conversation with the history of another one."""

import argparse

from bullpen.cli.typed_commands import to_type
from bullpen.database import open_database
from bullpen.exchange.forking import fork_conversation
from bullpen.terminal.tables import safe_line
from bullpen.text.numbers import counted
from bullpen.view.listing import find_conversation


def fork(options: argparse.Namespace) -> int:
    """Fork a conversation at a message, and say how to open the new one."""
    with open_database(options.db) as database:
        conversation = find_conversation(database, options.id)
        made = fork_conversation(database, conversation.id, options.at, with_files=options.with_files)
    print(safe_line(f"Forked {conversation.id} at message {made.at} as {made.id}: {made.title}"))
    count = counted(made.at + bool(made.folders), "message")
    print(f"It has {count}. Read it with: {to_type(f'sessions show {made.id}', options.db)}")
    for folder in made.folders:
        print(safe_line(f"Its files are in {folder}"))
    team = "" if made.team_path else " TEAM.toml"
    print(f"Continue it with: {to_type(f'chat{team} --resume {made.id}', options.db)}")
    return 0
