"""`bullpen inbox`: what waits for a person in all conversations, whichever process has them open, or none."""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bullpen.cli.database import add_database_option
from bullpen.cli.inbox_items import LOOK_SECONDS, NOTHING, print_choices, print_item
from bullpen.cli.typed_commands import to_type
from bullpen.database import Database, open_database
from bullpen.errors import NoConversations
from bullpen.terminal.raw_mode import is_terminal
from bullpen.view.inbox import Item, inbox

SOMETHING_WAITS = 3
EXIT_CODES = f"""\
exit codes:
  0  nothing waits for a person
  1  an error, printed on stderr
  2  wrong usage
  {SOMETHING_WAITS}  something waits for a person
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXIT_CODES
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="team.toml", help="only conversations of this team file (default: all)"
    )
    parser.add_argument("--as", dest="sender", metavar="NAME", help="which person of the team you are")
    parser.add_argument("--watch", action="store_true", help="stay, and ring the bell when something new waits")
    parser.add_argument("--json", action="store_true", help="print JSON for programs; with --watch, a line for each")
    add_database_option(parser)


def run(options: argparse.Namespace) -> int:
    """Answer what waits, one after the other; without a terminal, print it."""
    try:
        database = open_database(options.db)
    except NoConversations:
        if options.watch:
            raise
        print("[]" if options.json else NOTHING)
        return 0
    with database:
        if is_terminal() and not options.json:
            from bullpen.cli.inbox_desk import InboxDesk

            left = InboxDesk(database, options).answer_all()
        elif options.watch:
            _print_new(database, options)
            left = []
        else:
            left = inbox(database, options.file)
            _print_all(left, options)
    return SOMETHING_WAITS if left else 0


def _print_all(found: Sequence[Item], options: argparse.Namespace) -> None:
    if options.json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
        return
    for item in found:
        print_item(item)
        print_choices(item)
        print()
    if found:
        print(f"To answer, run this in a terminal: {to_type('inbox', options.db)}")
    else:
        print(NOTHING)


def _print_new(database: Database, options: argparse.Namespace) -> None:
    """Print everything when it begins to wait, until somebody stops it."""
    for item in new_items(database, options.file):
        if options.json:
            sys.stdout.buffer.write(msgspec.json.encode(item) + b"\n")
            sys.stdout.buffer.flush()
        else:
            print_item(item)
            print_choices(item)
            print(flush=True)


def new_items(database: Database, team: Path | None) -> Iterator[Item]:
    """Yield everything that waits, each once, for as long as anybody asks."""
    known: set[tuple[str, str, str]] = set()
    while True:
        items = inbox(database, team)
        yield from (item for item in items if item.key not in known)
        known = {item.key for item in items}
        time.sleep(LOOK_SECONDS)
