"""`bullpen diff`: what a turn changed in the files, or several turns, line by line."""

import argparse
import sys
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from bullpen.cli.database import add_database_option
from bullpen.cli.plain.diff import diff_lines, stat_lines
from bullpen.database import Database, open_database
from bullpen.file_changes import ChangeRecord
from bullpen.terminal.colors import Colours, wants_colours
from bullpen.view.change_lookup import find_changes, is_of_several
from bullpen.view.combined_changes import kept_beside, with_combined
from bullpen.view.listing import LAST, find_conversation


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument(
        "turns",
        metavar="TURN|A..B",
        nargs="?",
        default="",
        help="14; #12: the turn that ended with message 12; 5..9: from before turn 5 to after turn 9 as one, with "
        "what people changed meanwhile; all: everything as one (default: the latest that changed files)",
    )
    parser.add_argument("--session", metavar="ID", default=LAST, help="the conversation (default: the latest here)")
    parser.add_argument("--stat", action="store_true", help="only the names of the files, and how many lines")
    parser.add_argument("--json", action="store_true", help="print JSON for programs, one record for each change")
    add_database_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print what was asked for; return 1 if nothing was changed."""
    with open_database(options.db) as database:
        conversation_id = find_conversation(database, options.session).id
        records = find_changes(database, conversation_id, options.turns, patches=not options.stat)
        if options.json:
            print(_json(records, patches=not options.stat))
        elif records:
            is_one = is_of_several(options.turns)
            combined = with_combined(records, kept_beside(database)) if is_one else records
            _print(records, combined, only_names=options.stat)
        else:
            print(nothing_changed(database, conversation_id, options.turns))
    return 0 if records else 1


def nothing_changed(database: Database, conversation_id: str, reference: str) -> str:
    """Return a sentence that says so."""
    if reference and find_changes(database, conversation_id, patches=False):
        everything = f"`bullpen diff all --stat --session {conversation_id}`"
        return f"No change of files is recorded there. {everything} shows everything in this conversation."
    return f"No change of files is recorded in {conversation_id}. Agents that may edit files are watched for it."


def _print(records: Sequence[ChangeRecord], combined: Sequence[ChangeRecord], *, only_names: bool) -> None:
    colours = Colours(None, on=wants_colours(sys.stdout))
    for line in stat_lines(records, colours, combined) if only_names else diff_lines(combined, colours):
        print(line)


def _json(records: Sequence[ChangeRecord], *, patches: bool) -> str:
    if not patches:
        records = [replace(record, changes=replace(record.changes, patch="")) for record in records]
    return msgspec.json.encode(records).decode()
