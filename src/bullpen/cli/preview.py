"""`bullpen preview`: the exact prompt that an agent would be given. Nothing is stored, nothing is sent."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from bullpen.cli.database import add_database_option
from bullpen.cli.opening import team_file
from bullpen.cli.plain.explanation import prompt_lines
from bullpen.cli.team_and_message import add_words, message_text, team_and_message
from bullpen.database import Database, open_database
from bullpen.errors import BullpenError, NoConversations, WrongUsage
from bullpen.team.file import LoadedTeam, load_team, team_path
from bullpen.text.safe import printable
from bullpen.view.listing import LAST, ConversationSummary, find_conversation, last_conversation
from bullpen.view.preview import Supposed, new_conversation, preview

NEW = "new"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.usage = 'bullpen preview --to NAME [options] [team.toml] ["message" | -]'
    add_words(parser, "the team file, and what you might say (default: the last message)")
    parser.add_argument("--to", required=True, metavar="NAME", help="the agent")
    parser.add_argument(
        "--session", metavar="ID", help="in this conversation, or new (default: the last one here, else a new one)"
    )
    parser.add_argument("--message", metavar="TEXT", help="the message, if you prefer an option")
    parser.add_argument("--as", dest="sender", metavar="NAME", help="which person of the team says it")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    add_database_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the prompt and its report."""
    team, message = team_and_message(options, resumes=options.session is not None)
    if message is not None and options.message is not None:
        raise WrongUsage("There are two messages, one of them with --message. Give only one.")
    text = message_text(message if options.message is None else options.message)
    supposed = None if text is None else Supposed(text=text, sender=options.sender)
    with _opened(options, team) as (database, conversation_id, loaded):
        shown = preview(database, conversation_id, loaded, options.to, supposed)
    if options.json:
        sys.stdout.buffer.write(msgspec.json.encode(shown.as_json()) + b"\n")
    else:
        print(printable("\n".join(prompt_lines(shown.explanation))))
    return 0


@contextmanager
def _opened(options: argparse.Namespace, team: Path | None) -> Iterator[tuple[Database, str, LoadedTeam]]:
    """Open the conversation to look into, or a new one that is gone afterwards."""
    with ExitStack() as until_shown:
        found = None if options.session == NEW else _found(options, team, until_shown)
        if found is None:
            loaded = load_team(team_file(None, team))
            yield *until_shown.enter_context(new_conversation(loaded)), loaded
            return
        database, conversation = found
        if options.session is None and not options.json:
            last = "the last one here" if team is None else f"the last one of {team}"
            print(printable(f"In {conversation.id}, {last}; in a new one: --session {NEW}"), file=sys.stderr)
        yield database, conversation.id, load_team(team_file(conversation, team))


def _found(
    options: argparse.Namespace, team: Path | None, until_shown: ExitStack
) -> tuple[Database, ConversationSummary] | None:
    """Return the conversation that is named; if none is, the last one here or of the team file, if there is one."""
    try:
        database = until_shown.enter_context(open_database(options.db))
    except NoConversations:
        if options.session is not None:
            raise
        return None
    if options.session is not None and (options.session != LAST or team is None):
        return database, find_conversation(database, options.session)
    last = last_conversation(database, team)
    if last is not None and (team is None or last.team_path == str(team_path(team))):
        return database, last
    if options.session == LAST:
        raise BullpenError(f"No conversation of {team} has begun yet. To see a prompt in a new one: --session {NEW}")
    return None
