"""`bullpen restore`: a backup in the place of the database, or what the database has without a log that was lost."""

import argparse
from pathlib import Path

from bullpen.cli.backup import STUCK
from bullpen.cli.database import add_database_option
from bullpen.database import restore
from bullpen.errors import WrongUsage
from bullpen.terminal.tables import safe_line
from bullpen.text.numbers import counted, local_time


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("file", metavar="FILE", nargs="?", help="a backup that `bullpen backup` has written")
    parser.add_argument(
        "--what-is-left", action="store_true", help="continue with what the database has without a log that was lost"
    )
    add_database_option(parser)


def run(options: argparse.Namespace) -> int:
    """Put it in place, and say what is there now and where the other one is."""
    if options.what_is_left == (options.file is not None):
        raise WrongUsage("Name a backup, or add --what-is-left. Nothing was changed.")
    restored = restore(options.db, None if options.file is None else Path(options.file))
    contents = restored.contents
    what = f"{counted(contents.conversations, 'conversation')} with {counted(contents.messages, 'message')}"
    last = f", the last of {local_time(contents.last_at)}" if contents.last_at else ""
    print(f"There are now {what}{last}.")
    if contents.stuck:
        print(STUCK.format(counted(contents.stuck, "conversation")))
    if restored.kept is not None:
        print(safe_line(f"The database as it was: {restored.kept}"))
    for finding in restored.findings:
        print(safe_line(f"Not as it was written: {finding.text}"))
    return 1 if restored.findings else 0
