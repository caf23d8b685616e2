"""`bullpen sessions list`, `show` and `search`: reading, in as little time as it takes to print."""

import argparse
from collections.abc import Iterable, Iterator

import msgspec

from bullpen.cli.database import find_conversation, open_store
from bullpen.errors import BullpenError, NoConversations
from bullpen.exchange.formatting import addressees_of, all_messages, counted, sender_of
from bullpen.store.base import Store, StoredConversation, StoredMessage
from bullpen.terminal.tables import local_time, print_heading, print_indented, print_table, safe_line, short_time

COLUMNS = ("id", "team", "last", "messages", "state", "begins with")


def list_all(options: argparse.Namespace) -> int:
    """Print all conversations, the latest first."""
    try:
        with open_store(options) as store:
            conversations = store.conversations()
    except NoConversations:
        conversations = []
    if options.json:
        print(msgspec.json.encode([_as_json(conversation) for conversation in conversations]).decode())
    elif conversations:
        print_table(COLUMNS, map(_row, conversations))
    else:
        print(NoConversations())
    return 0


def show(options: argparse.Namespace) -> int:
    """Print the last messages of a conversation."""
    if options.last < 1:
        raise BullpenError("--last takes a number from 1 on.")
    with open_store(options) as store:
        conversation = find_conversation(store, options.id)
        messages = _wanted(store, conversation, options)
        if options.json:
            for stored in messages:
                print(
                    msgspec.json.encode({**msgspec.to_builtins(stored.message), "sequence": stored.sequence}).decode()
                )
        else:
            _print_conversation(conversation, messages, 0 if options.all else conversation.messages - options.last)
    return 0


def search(options: argparse.Namespace) -> int:
    """Print what was found, the newest first; 1 if nothing was."""
    if options.limit < 1:
        raise BullpenError("--limit takes a number from 1 on.")
    query = " ".join(options.query)
    with open_store(options) as store:
        where = None if options.session is None else find_conversation(store, options.session).id
        found = store.search(query, conversation_id=where, limit=options.limit)
    if options.json:
        print(msgspec.json.encode(found).decode())
    for message in () if options.json else found:
        print_heading(
            f"{message.conversation_id} #{message.sequence} {message.speaker.role_name}"
            f"  {local_time(message.timestamp)}"
        )
        print_indented(message.snippet)
    if not found and not options.json:
        print(f"Nothing found for {safe_line(query)}. Every word must occur in one message, as its beginning at least.")
    return 0 if found else 1


def _as_json(conversation: StoredConversation) -> dict[str, object]:
    names = ("id", "team", "started_at", "last_at", "messages", "state", "queued", "running", "waits_for", "paused")
    return {**{name: getattr(conversation, name) for name in names}, "first_words": conversation.first_words}


def _row(conversation: StoredConversation) -> tuple[str, ...]:
    return (
        conversation.id,
        conversation.team,
        short_time(conversation.last_at),
        f"{conversation.messages:,}",
        _state(conversation),
        conversation.first_words,
    )


def _state(conversation: StoredConversation) -> str:
    if conversation.state == "waiting":
        return f"waits for {conversation.waits_for}"
    return conversation.state


def _wanted(store: Store, conversation: StoredConversation, options: argparse.Namespace) -> Iterable[StoredMessage]:
    if options.all:
        return all_messages(store, conversation.id)
    return store.messages(conversation.id, limit=options.last)


def _print_conversation(conversation: StoredConversation, messages: Iterable[StoredMessage], earlier: int) -> None:
    print_heading(f"{conversation.id}  team {conversation.team}, {counted(conversation.messages, 'message')}")
    if conversation.paused is not None:
        print(f"It is paused: {safe_line(conversation.paused)}")
    if earlier > 0:
        print(f"{counted(earlier, 'earlier message')}: --last N or --all shows more.")
    for stored in messages:
        print_message(stored)


def print_message(stored: StoredMessage) -> None:
    """Print one message under its heading."""
    print()
    print_heading("  ".join(_heading(stored)))
    print_indented(stored.message.content)


def _heading(stored: StoredMessage) -> Iterator[str]:
    to = addressees_of(stored.message)
    yield f"#{stored.sequence}"
    yield sender_of(stored.message) + (f" → {to}" if to else "")
    yield local_time(stored.message.timestamp)
