"""A conversation as Markdown, for people.

Messages are quoted, with "> " before each line. So nothing in a message can end the quote, and a heading outside one
is always ours. Markup in a message still works, but HTML does not: in a page it could end the quote.
"""

import re
from collections.abc import Iterator

from bullpen.exchange.approvals import ShownApproval
from bullpen.exchange.changes import ShownChanges
from bullpen.exchange.checks import ShownCheck
from bullpen.exchange.formatting import addressees_of, all_entries, sender_of, utc_time
from bullpen.markers.blocks import BlockReader
from bullpen.store.base import Store, StoredConversation
from bullpen.text.clean import one_line
from bullpen.text.numbers import counted
from bullpen.view.activity import Activity
from bullpen.view.chips import chips
from bullpen.view.listing import conversation_activity, title_of
from bullpen.view.messages import NOTE as NOBODY_ASKED
from bullpen.view.messages import ShownMessage, is_note, kind_words, rebuilt_words
from bullpen.view.unanswered import UnansweredTurn

NOTE = "Messages are quoted word for word. A heading inside a quote is part of the message."

_LINE_BREAK = re.compile("(\r\n|\n|\r)")
# Anything that may start a tag; a link in angle brackets is harmless.
_TAG = re.compile(r"<(?=[A-Za-z/!?])(?!(?:https?|mailto):)")
# The definition of a link, which may continue on the next line. It would not be shown, and would change how the text
# after it is read.
_DEFINITION = re.compile(r"^([ \t>*+\-0-9.)]*+)\[(?=(?:[^\[\]\\]|\\.)*+(?:\]:|\\?$))")
_FENCE = re.compile("`+")
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&$])")


def markdown_pieces(store: Store, conversation_id: str) -> Iterator[str]:
    """Yield a conversation piece by piece."""
    yield _beginning(store.conversation(conversation_id), conversation_activity(store, conversation_id))
    for entry in all_entries(store, conversation_id):
        match entry:
            case UnansweredTurn():
                yield _unanswered(entry)
            case ShownChanges():
                yield _changes(entry)
            case ShownCheck():
                yield _folded(entry.heading, entry.output)
            case ShownApproval():
                yield _folded(entry.heading, entry.text)
            case _:
                yield _message(entry)


def _beginning(conversation: StoredConversation, now: Activity) -> str:
    time = utc_time(conversation.started_at)
    about = f"Team {_plain(one_line(conversation.team))} · {time} · {counted(conversation.messages, 'message')}"
    about += f" · {now.sign} {now.word}"
    title = one_line(title_of(conversation.title, conversation.first_words))
    lines = [f"# {_plain(title)}", "", f"{conversation.id} · {about}", "", NOTE, ""]
    if conversation.team_task:
        lines += ["Team task:", "", quoted(conversation.team_task), ""]
    return "\n".join(lines)


def _message(stored: ShownMessage) -> str:
    to = addressees_of(stored.message)
    names = _plain(sender_of(stored.message)) + (f" → {_plain(to)}" if to else "")
    names += "".join(f" · {one.sign} {_plain(one.words)}" for one in chips(stored.message))
    names += f" ({NOBODY_ASKED})" if is_note(stored.message) else ""
    names += f" ({kind})" if (kind := kind_words(stored.message)) else ""
    time = utc_time(stored.message.timestamp)
    rebuilt = f"\n{_plain(one_line(rebuilt_words(stored.rebuilt)))}\n" if stored.rebuilt else ""
    heading = f"## #{stored.sequence} {names}{f' · {time}' if time else ''}"
    return f"\n{heading}\n\n{quoted(stored.message.content)}\n{rebuilt}"


def _unanswered(turn: UnansweredTurn) -> str:
    """Return a turn without a reply: how it ended, what it had said, and what it did."""
    lines = [
        f"\n### {_plain(one_line(turn.member))}, {turn.signed}",
        "",
        _plain(one_line(turn.reason)),
    ]
    lines += ["", *(f"- {_plain(one_line(line))}" for line in turn.done)] if turn.done else []
    lines += ["", quoted(turn.said)] if turn.said else []
    return "\n".join([*lines, ""])


def _changes(changes: ShownChanges) -> str:
    """Return what changed: how much, in which files, and the patch as a quote, between longer fences than any in it."""
    lines = ["", f"**{_plain(changes.heading)}**", ""]
    lines += [f"- {_plain(path)}: {about}" for path, about in changes.files]
    lines += ["", *(_plain(note) for note in changes.notes)] if changes.notes else []
    if changes.patch:
        fence = "`" * max(3, 1 + max(map(len, _FENCE.findall(changes.patch)), default=0))
        patch = [f"{fence}diff", *changes.patch.split("\n"), fence]
        lines += ["", *(f"> {line}" for line in patch)]
    return "\n".join([*lines, ""])


def _folded(heading: str, text: str) -> str:
    """Return what a check said or an agent asked, and its text as a quote, between longer fences than any in it."""
    fence = "`" * max(3, 1 + max(map(len, _FENCE.findall(text)), default=0))
    lines = [fence, *text.split("\n"), fence] if text else []
    return "\n".join(["", f"**{_plain(heading)}**", "", *(f"> {line}" for line in lines), ""])


def quoted(text: str) -> str:
    """Return a text as a quote that it cannot leave."""
    return "".join(_quoted_pieces(text)) or ">"


def _quoted_pieces(text: str) -> Iterator[str]:
    reader = BlockReader()
    # Pieces are lines and line breaks in turn.
    for piece in _LINE_BREAK.split(text):
        if _LINE_BREAK.fullmatch(piece):
            yield "\n"
        else:
            is_code = reader.read(_as_quoted(piece)) == "code"
            yield f"> {piece if is_code else _harmless(piece)}"


def _harmless(line: str) -> str:
    """Return a line without tags and link definitions."""
    return _DEFINITION.sub(r"\1\\[", _TAG.sub("&lt;", line))


def _as_quoted(line: str) -> str:
    """Return a line with the columns that it will have after its "> ", where tabs are shorter."""
    return f"> {line}".expandtabs(4)[2:] if "\t" in line else line


def _plain(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", text)
