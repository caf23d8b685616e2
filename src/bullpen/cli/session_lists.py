"""`bullpen sessions list`, `show` and `search`: reading, in as little time as it takes to print."""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from bullpen.check_results import CheckResult
from bullpen.cli.typed_commands import to_type
from bullpen.database import Database, open_database
from bullpen.errors import NoConversations
from bullpen.exchange.formatting import addressees_of, sender_of
from bullpen.file_changes import ChangeRecord
from bullpen.terminal.tables import print_heading, print_indented, print_table, safe_line
from bullpen.text.numbers import counted, day_or_clock, local_time, money
from bullpen.view import listing
from bullpen.view.activity import ACTIVITIES
from bullpen.view.change_lookup import changes_after
from bullpen.view.changes import record_words
from bullpen.view.checks import SIGNS, check_light, check_line, check_output, checks_after
from bullpen.view.listing import ConversationSummary, Hit, all_conversations, find_conversation
from bullpen.view.messages import ShownMessage, kind_words, plain_messages, rebuilt_words
from bullpen.view.unanswered import UnansweredTurn

COLUMNS = ("id", "team", "folder", "last", "messages", "cost", "state", "title")
MAY_BE_EMPTY = ("folder", "cost")
IN_JSON = (
    *("id", "team", "title", "started_at", "last_at", "messages", "state", "queued", "running", "waits_for", "paused"),
    *("activity", "first_words", "folder", "cost_usd", "is_estimate", "tokens"),
)
PAGE_MESSAGES = 200


def list_all(options: argparse.Namespace) -> int:
    """Print all conversations, the latest first."""
    try:
        with open_database(options.db) as database:
            listed = all_conversations(database)
            conversations = [one for one in listed if one.is_archived == options.archived and _fits(one, options)]
    except NoConversations:
        conversations = []
    if options.json:
        print(msgspec.json.encode([_as_json(conversation) for conversation in conversations]).decode())
    elif conversations:
        _print_conversations(conversations)
    elif options.words or options.team or options.folder:
        print("No conversation is like that. What was said in them: bullpen sessions search WORDS")
    else:
        print("Nothing is archived." if options.archived else NoConversations())
    return 0


def _fits(conversation: ConversationSummary, options: argparse.Namespace) -> bool:
    """Return whether the list is to have a conversation."""
    title = f"{conversation.title} {conversation.id}".casefold()
    if not all(word.casefold() in title for word in options.words):
        return False
    if options.team and options.team.casefold() != conversation.team.casefold():
        return False
    return not options.folder or Path(conversation.folder).is_relative_to(options.folder.resolve())


def _print_conversations(conversations: Sequence[ConversationSummary]) -> None:
    rows = [_row(conversation) for conversation in conversations]
    kept = [index for index, name in enumerate(COLUMNS) if name not in MAY_BE_EMPTY or any(row[index] for row in rows)]
    print_table([COLUMNS[index] for index in kept], [[row[index] for index in kept] for row in rows])


def show(options: argparse.Namespace) -> int:
    """Print the last messages of a conversation."""
    with open_database(options.db) as database:
        conversation = find_conversation(database, options.id)
        if options.memory:
            _show_memories(database, conversation, options)
            return 0
        messages = _wanted(database, conversation, options)
        if options.json:
            for shown in messages:
                rebuilt = {"rebuilt": shown.rebuilt} if shown.rebuilt else {}
                fields = {**msgspec.to_builtins(shown.message), "sequence": shown.sequence, **rebuilt}
                print(msgspec.json.encode(fields).decode())
        else:
            earlier = 0 if options.all else conversation.messages - options.last
            changes = changes_after(database, conversation.id, first=earlier + 1 if earlier > 0 else 0)
            checks = checks_after(database, conversation.id, first=max(earlier + 1, 0))
            _print_conversation(conversation, messages, earlier, changes, checks)
    return 0


def _show_memories(database: Database, conversation: ConversationSummary, options: argparse.Namespace) -> None:
    """Print what each agent remembers between its turns."""
    from bullpen.view.state import stored_view

    memories = {member.name: member.memory for member in stored_view(database, conversation.id).members}
    if not options.json:
        print_heading(f"{conversation.id}  team {conversation.team}: what its agents remember")
        if not any(memories.values()):
            command = to_type(f"chat TEAM.toml --resume {conversation.id}", options.db)
            print_indented(f"It has no agents yet. Continue it with a team: {command}")
    for name, memory in memories.items():
        if memory is not None and options.json:
            print(msgspec.json.encode({"member": name, **msgspec.to_builtins(memory)}).decode())
        elif memory is not None:
            print_indented(safe_line(f"{name}: {memory.sentence}"))


def search(options: argparse.Namespace) -> int:
    """Print what was found, the newest first; return 1 if nothing was."""
    query = " ".join(options.query)
    with open_database(options.db) as database:
        where = None if options.session is None else find_conversation(database, options.session).id
        found = listing.search(database, query, conversation_id=where, limit=options.limit)
    if options.json:
        print(msgspec.json.encode([_hit_as_json(hit) for hit in found]).decode())
    for hit in () if options.json else found:
        print_heading(f"{hit.conversation} #{hit.sequence} {hit.speaker}  {local_time(hit.timestamp)}")
        print_indented(hit.snippet)
    if not found and not options.json:
        print(f"Nothing found for {safe_line(query)}. One message must have every word, or a word that begins with it.")
    return 0 if found else 1


def _as_json(conversation: ConversationSummary) -> dict[str, object]:
    return {name: getattr(conversation, name) for name in IN_JSON}


def _hit_as_json(hit: Hit) -> dict[str, object]:
    return {
        "conversation_id": hit.conversation,
        "message_id": hit.message_id,
        "sequence": hit.sequence,
        "speaker": hit.said_by,
        "timestamp": hit.timestamp,
        "snippet": hit.snippet,
    }


def _row(conversation: ConversationSummary) -> tuple[str, ...]:
    now = ACTIVITIES[conversation.activity]
    return (
        conversation.id,
        conversation.team,
        _short(conversation.folder),
        day_or_clock(conversation.last_at),
        f"{conversation.messages:,}",
        "" if conversation.cost_usd is None else money(conversation.cost_usd, is_estimate=conversation.is_estimate),
        f"{now.sign} {now.word}" + (f", {conversation.queued} queued" if conversation.queued else ""),
        conversation.title,
    )


def _short(folder: str) -> str:
    home = str(Path.home())
    return f"~{folder.removeprefix(home)}" if folder == home or folder.startswith(f"{home}/") else folder


def _wanted(
    database: Database, conversation: ConversationSummary, options: argparse.Namespace
) -> Iterable[ShownMessage]:
    if not options.all:
        return plain_messages(database, conversation.id, limit=options.last)
    return _all_messages(database, conversation)


def _all_messages(database: Database, conversation: ConversationSummary) -> Iterator[ShownMessage]:
    """Yield every message there is now, oldest first, holding one page at a time."""
    last, end = 0, conversation.messages
    while last < end:
        page = plain_messages(database, conversation.id, after=last, before=end + 1, limit=PAGE_MESSAGES)
        if not page:
            return
        yield from page
        last = page[-1].sequence


def _print_conversation(
    conversation: ConversationSummary,
    messages: Iterable[ShownMessage],
    earlier: int,
    changes: Mapping[int, Sequence[ChangeRecord]],
    checks: Mapping[int, Sequence[CheckResult]],
) -> None:
    print_heading(f"{conversation.id}  team {conversation.team}, {counted(conversation.messages, 'message')}")
    if conversation.paused is not None:
        print(f"Paused: {safe_line(conversation.paused)}")
    if earlier > 0:
        print(f"{counted(earlier, 'earlier message')}: --last N or --all shows more.")
    for shown in messages:
        print_message(shown)
        for record in changes.get(shown.sequence, ()):
            print(f"± {safe_line(record_words(record))}")
        for result in checks.get(shown.sequence, ()):
            _print_check(result)


def _print_check(result: CheckResult) -> None:
    """Print what a check said, and if it is red, all that is kept of its output."""
    print(f"{SIGNS[check_light(result)]} {safe_line(check_line(result))}")
    if result.is_broken:
        print_indented(check_output(result))


def _print_unanswered(turn: UnansweredTurn) -> None:
    """Print a turn without a reply: how it ended, what it did, and what it had said."""
    print()
    print_heading(f"{turn.member}, {turn.heading}  {local_time(turn.at)}")
    print_indented("\n".join(filter(None, [turn.reason, *turn.done, turn.said])))


def print_message(shown: ShownMessage) -> None:
    """Print one message under its heading."""
    print()
    print_heading("  ".join(_heading(shown)))
    print_indented(shown.message.content)
    if shown.rebuilt:
        print(f"({safe_line(rebuilt_words(shown.rebuilt))})")
    for turn in shown.unanswered:
        _print_unanswered(turn)


def _heading(shown: ShownMessage) -> Iterator[str]:
    to = addressees_of(shown.message)
    yield f"#{shown.sequence}"
    yield sender_of(shown.message) + (f" → {to}" if to else "")
    yield local_time(shown.message.timestamp)
    if kind := kind_words(shown.message):
        yield kind
