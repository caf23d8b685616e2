"""`bullpen sessions rename`, `archive` and `unarchive`: what a conversation is called, and whether lists show it."""

import argparse

from bullpen.clock import milliseconds
from bullpen.database import open_database
from bullpen.terminal.tables import safe_line
from bullpen.view import listing
from bullpen.view.listing import find_conversation, title_of, typed_title


def rename(options: argparse.Namespace) -> int:
    """Give a conversation another title; "-" removes it."""
    words = " ".join(options.title)
    with open_database(options.db) as database:
        conversation = find_conversation(database, options.id)
        title = None if words == "-" else typed_title(words)
        listing.rename(database, conversation.id, title)
        print(safe_line(f"{conversation.id} is called: {title_of(title, conversation.first_words)}"))
    return 0


def archive(options: argparse.Namespace) -> int:
    """Take a conversation out of the lists. It can still be found, read and resumed."""
    with open_database(options.db) as database:
        conversation = find_conversation(database, options.id)
        listing.archive(database, conversation.id, at=milliseconds(), can_wait=True)
    print(safe_line(f"Archived {conversation.id}: {conversation.title}"))
    return 0


def unarchive(options: argparse.Namespace) -> int:
    """Put a conversation back into the lists."""
    with open_database(options.db) as database:
        conversation = find_conversation(database, options.id)
        listing.unarchive(database, conversation.id)
    print(safe_line(f"{conversation.id} is in the list again: {conversation.title}"))
    return 0
