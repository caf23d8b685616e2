"""What `bullpen undo`, `redo` and `rewind` share: their options, doing it, and saying what was done."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bullpen.app import put_files
from bullpen.cli.cluster_option import need_cluster
from bullpen.cli.database import add_database_option
from bullpen.conversation.events import LeftByUndo
from bullpen.conversation.file_history import FileChoice
from bullpen.conversation.undo_rules import left_by_undo
from bullpen.database import Database, open_database
from bullpen.errors import NothingToUndo
from bullpen.file_changes import ChangeRecord
from bullpen.terminal.tables import safe_line
from bullpen.view.changes import record_words
from bullpen.view.listing import LAST, ConversationSummary, find_conversation
from bullpen.view.turn_lookup import find_turn


def add_options(parser: argparse.ArgumentParser, meaning: str, *, is_needed: bool = False) -> None:
    """Describe the options."""
    parser.add_argument(
        "turn",
        metavar="TURN",
        nargs=None if is_needed else "?",
        help=f"{meaning}; 14, or #12: that ended with message 12",
    )
    parser.add_argument("--session", metavar="ID", default=LAST, help="the conversation (default: the latest here)")
    add_database_option(parser, or_server=True)


def put_and_print(choice: FileChoice, options: argparse.Namespace) -> int:
    """Put the files as they are wanted, and print which were touched."""
    for record in (_put_there if isinstance(options.db, str) else _put_here)(choice, options):
        print(safe_line(record_words(record)))
        for file in record.changes.files:
            print(safe_line(f"  {file.kind}: {file.path}"))
    return 0


def _put_here(choice: FileChoice, options: argparse.Namespace) -> list[ChangeRecord]:
    with open_database(options.db) as database:
        conversation_id, turn_id, choice = _meant(choice, options, database)
        return put_files(database, conversation_id, choice, turn_id)


def _put_there(choice: FileChoice, options: argparse.Namespace) -> list[ChangeRecord]:
    """Let the workers do it that have the files of a conversation on a server."""
    need_cluster()
    from bullpen.cluster.put_files import put_files_there

    return asyncio.run(put_files_there(options.db, partial(_meant, choice, options)))


def _meant(choice: FileChoice, options: argparse.Namespace, database: Database) -> tuple[str, str | None, FileChoice]:
    """Print which conversation is meant; return it, the turn, and what is done. No turn: the last that can be meant."""
    conversation = find_conversation(database, options.session)
    print(safe_line(f"In {conversation.id}{_with_team(conversation)}:"), flush=True)
    turn_id = find_turn(database, conversation.id, options.turn).id if options.turn else None
    if choice == "undo" and (options.all or _wants_all(database.changes(conversation.id, patches=False), turn_id)):
        choice = "undo all"
    return conversation.id, turn_id, choice


def _wants_all(records: Sequence[ChangeRecord], turn_id: str | None) -> bool:
    """Return whether to take back what a person perhaps changed: asked at a terminal; else say how to do it."""
    try:
        found = left_by_undo(records, turn_id)
    except NothingToUndo:
        # That is said once the conversation is ours, and what a dead process left in it has been ended.
        found = None
    if found is None:
        return False
    turn, left = found
    question = LeftByUndo.of(turn, left).text
    if sys.stdin.isatty() and sys.stderr.isatty():
        print(safe_line(f"{question} [y/N] "), end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().casefold() in ("y", "yes")
    print(safe_line(f"{question} It stays; to do that: bullpen undo {turn} --all"), file=sys.stderr)
    return False


def _with_team(conversation: ConversationSummary) -> str:
    """Return which team file it has: its name if it is in this folder."""
    file = Path(conversation.team_path)
    return f" ({file.name if file.parent == Path.cwd() else file})" if conversation.team_path else ""
