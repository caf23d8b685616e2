"""`bullpen move`: conversations copied from a file to a PostgreSQL server, or back."""

import argparse

from bullpen.database import open_source, open_target, shown_address
from bullpen.exchange.moving import move
from bullpen.terminal.tables import safe_line
from bullpen.text.numbers import counted
from bullpen.view.listing import find_conversation

ABOUT = """\
FILE is a database of bullpen, and ADDRESS looks like postgresql://user@host:5432/database. Keep the password out of
the command: PGPASSWORD and ~/.pgpass are read. Everything of a conversation is copied: messages, turns with what agents
were given and printed, memories, decisions, changes of files and checks. Each is compared with what was copied before
it is final. What was copied stays where it was, and is not continued there by itself.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("id", metavar="ID", nargs="*", help="only these conversations (default: all)")
    parser.add_argument("--from", dest="source", required=True, metavar="FILE|ADDRESS", help="where they are")
    parser.add_argument("--to", dest="target", required=True, metavar="FILE|ADDRESS", help="where to copy them")
    parser.epilog = ABOUT


def run(options: argparse.Namespace) -> int:
    """Copy, and say what is there then."""
    copied = there = messages = 0
    with open_source(options.source) as source, open_target(options.target) as target:
        ids = [find_conversation(source, reference).id for reference in options.id]
        for moved in move(source, target, ids):
            copied, there = copied + (not moved.was_there), there + moved.was_there
            messages += 0 if moved.was_there else moved.messages
    what = f"{counted(copied, 'conversation')} with {counted(messages, 'message')}"
    where = safe_line(shown_address(options.target))
    print(f"{where}: {what} copied, all as they were written.")
    if there:
        print(f"{counted(there, 'conversation')} there already, exactly the same.")
    print(f"{safe_line(shown_address(options.source))} was left as it is. From now on, speak in only one of the two.")
    return 0
