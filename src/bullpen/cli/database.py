"""What the commands that look into the store share: the option --db, and conversations as people name them."""

import argparse
from pathlib import Path

from bullpen.config import default_database
from bullpen.errors import AmbiguousConversation, NoConversations, UnknownConversation
from bullpen.store.base import Store, StoredConversation
from bullpen.store.sqlite import SqliteStore
from bullpen.view.turn_lookup import LAST


def add_database_option(parser: argparse.ArgumentParser, default: object = None) -> None:
    """Add --db. A command with commands below it gives argparse.SUPPRESS to those, so that either place will do."""
    parser.add_argument(
        "--db", type=Path, metavar="FILE", default=default, help="the file with the conversations (default: your own)"
    )


def database_path(options: argparse.Namespace) -> Path:
    """Return the file to look into."""
    return default_database() if options.db is None else Path(options.db)


def open_store(options: argparse.Namespace) -> SqliteStore:
    """Return the store, or raise NoConversations if there is none: looking must not make one."""
    path = database_path(options)
    if not path.exists():
        raise NoConversations
    return SqliteStore(path)


def find_conversation(store: Store, reference: str) -> StoredConversation:
    """Return the conversation with an id, or the only one whose id begins so, or the latest for "last"."""
    try:
        return store.conversation(reference)
    except UnknownConversation:
        known = store.conversations()
    if not known:
        raise NoConversations
    if reference == LAST:
        return known[0]
    fitting = [conversation for conversation in known if reference and conversation.id.startswith(reference)]
    if not fitting:
        raise UnknownConversation(reference)
    if len(fitting) > 1:
        raise AmbiguousConversation(reference, (conversation.id for conversation in fitting))
    return fitting[0]
