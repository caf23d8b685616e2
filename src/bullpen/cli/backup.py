"""`bullpen backup`: everything that was said in one file, while it is in use."""

import argparse
from pathlib import Path

from bullpen.cli.database import add_database_option
from bullpen.database import back_up
from bullpen.terminal.tables import safe_line
from bullpen.text.numbers import counted

NOT_IN_IT = """\
in a backup are all conversations, with what agents were given and printed. Not in it are team files, which team files
you trust, what you typed before, and which browsers are signed in: copy the folder to keep these too.
"""

STUCK = "{} in it would refuse what is said. Nothing is damaged: bullpen fsck --repair mends it."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("file", metavar="FILE", help="the backup to write, for example backup.db")
    parser.add_argument("--force", action="store_true", help="overwrite the file if it exists")
    add_database_option(parser, or_server=True)
    parser.epilog = NOT_IN_IT


def run(options: argparse.Namespace) -> int:
    """Write a backup and say what is in it."""
    contents = back_up(options.db, Path(options.file), overwrite=options.force)
    what = f"{counted(contents.conversations, 'conversation')} with {counted(contents.messages, 'message')}"
    print(safe_line(f"{options.file}: {what}, all as they were written."))
    if contents.stuck:
        print(STUCK.format(counted(contents.stuck, "conversation")))
    if isinstance(options.db, str):
        print("Read it with --db, or bring it into an empty database with: bullpen move --from FILE --to ADDRESS")
    else:
        print("Read it with --db, or put it back with bullpen restore. Browsers that are signed in are not in it.")
    return 0
