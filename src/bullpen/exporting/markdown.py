"""A conversation as Markdown, for people.

What was said stands in quotes, each line behind "> ". So nothing in a message can end it, and a heading outside a quote
is always ours. Markup in a message still works, but HTML does not: in a page it could end the quote.
"""

import re
from collections.abc import Iterator

from bullpen.context.text import one_line
from bullpen.exporting.reading import Writable, addressees_of, all_messages, counted, sender_of, utc_time
from bullpen.store.base import Store, StoredConversation, StoredMessage

NOTE = "What was said is quoted, word for word. A heading inside a quote is part of what was said."

_LINE_BREAK = re.compile("(\r\n|\n|\r)")
# Everything that may begin a tag; a link in angle brackets is harmless.
_TAG = re.compile(r"<(?=[A-Za-z/!?])(?!(?:https?|mailto):)")
# https://spec.commonmark.org/0.31.2/#fenced-code-blocks, but only at the margin: one within a list ends with the list.
_FENCE = re.compile(r"(?P<fence>`{3,}(?=[^`]*$)|~{3,})")
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&$])")


def write_markdown(store: Store, conversation_id: str, file: Writable) -> None:
    """Write a conversation piece by piece."""
    file.write(_beginning(store.conversation(conversation_id)))
    for stored in all_messages(store, conversation_id):
        file.write(_message(stored))


def _beginning(conversation: StoredConversation) -> str:
    time = utc_time(conversation.started_at)
    about = f"Team {_plain(one_line(conversation.team))} · {time} · {counted(conversation.messages, 'message')}"
    lines = [f"# {_plain(conversation.id)}", "", about, "", NOTE, ""]
    if conversation.team_task:
        lines += ["Team task:", "", quoted(conversation.team_task), ""]
    return "\n".join(lines)


def _message(stored: StoredMessage) -> str:
    to = addressees_of(stored.message)
    names = _plain(sender_of(stored.message)) + (f" → {_plain(to)}" if to else "")
    time = utc_time(stored.message.timestamp)
    return f"\n## #{stored.sequence} {names}{f' · {time}' if time else ''}\n\n{quoted(stored.message.content)}\n"


def quoted(text: str) -> str:
    """Return a text as a quote that it cannot leave."""
    return "".join(_quoted_pieces(text)) or ">"


def _quoted_pieces(text: str) -> Iterator[str]:
    fence = ""
    # Pieces are lines and line breaks in turn.
    for piece in _LINE_BREAK.split(text):
        if _LINE_BREAK.fullmatch(piece):
            yield "\n"
            continue
        opening = _FENCE.match(piece)
        if fence:
            yield f"> {piece}"
            fence = "" if _closes(piece, fence) else fence
        else:
            yield f"> {_TAG.sub('&lt;', piece)}"
            fence = opening["fence"] if opening else ""


def _closes(line: str, fence: str) -> bool:
    found = re.match(rf" {{0,3}}{fence[0]}{{{len(fence)},}}[ \t]*$", line)
    return found is not None


def _plain(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", text)
