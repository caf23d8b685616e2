"""`bullpen preview`: the exact prompt that an agent would be given. Nothing is stored, nothing is sent."""

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bullpen.cli.database import add_database_option
from bullpen.cli.opening import team_file
from bullpen.cli.plain.explanation import prompt_lines
from bullpen.database import Database, open_database
from bullpen.team.file import LoadedTeam, load_team
from bullpen.text.safe import printable
from bullpen.view.listing import find_conversation
from bullpen.view.preview import Supposed, new_conversation, preview


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="team.toml", help="the team file (default: the conversation's)"
    )
    parser.add_argument("--to", required=True, metavar="NAME", help="the agent")
    parser.add_argument("--session", metavar="ID", help="in this conversation, or last (default: a new one)")
    parser.add_argument("--message", metavar="TEXT", help="if you said this now (default: the last message)")
    parser.add_argument("--as", dest="sender", metavar="NAME", help="which person of the team says it")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    add_database_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the prompt and its report."""
    supposed = None if options.message is None else Supposed(text=options.message, sender=options.sender)
    with _opened(options) as (database, conversation_id, loaded):
        shown = preview(database, conversation_id, loaded, options.to, supposed)
    if options.json:
        sys.stdout.buffer.write(msgspec.json.encode(shown.as_json()) + b"\n")
    else:
        print(printable("\n".join(prompt_lines(shown.explanation))))
    return 0


@contextlib.contextmanager
def _opened(options: argparse.Namespace) -> Iterator[tuple[Database, str, LoadedTeam]]:
    """Open the conversation to look into, or a new one that is gone afterwards."""
    if options.session is None:
        loaded = load_team(team_file(None, options.file))
        with new_conversation(loaded) as (database, conversation_id):
            yield database, conversation_id, loaded
        return
    with open_database(options.db) as database:
        conversation = find_conversation(database, options.session)
        yield database, conversation.id, load_team(team_file(conversation, options.file))
