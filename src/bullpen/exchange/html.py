"""A conversation as one self-contained HTML page: no scripts, no requests, light and dark, readable on a phone."""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha256
from html import escape
from pathlib import Path

from bullpen.exchange.approvals import ShownApproval
from bullpen.exchange.changes import ShownChanges
from bullpen.exchange.checks import ShownCheck
from bullpen.exchange.formatting import addressees_of, all_entries, sender_of, utc_time
from bullpen.exchange.visible import visible
from bullpen.markers.stripping import text_for_people
from bullpen.store.base import Store, StoredConversation, Turn
from bullpen.text.clean import one_line
from bullpen.text.numbers import counted, spent
from bullpen.view.activity import Activity
from bullpen.view.chips import chips
from bullpen.view.listing import conversation_activity, title_of
from bullpen.view.messages import NOTE, ShownMessage, is_note, kind_words, rebuilt_words
from bullpen.view.turn_lookup import turn_that_said
from bullpen.view.unanswered import UnansweredTurn

STYLE = Path(__file__).with_name("export.css")
COLOURS = 6


def html_pieces(store: Store, conversation_id: str) -> Iterator[str]:
    """Yield a conversation piece by piece."""
    colours: dict[str, int] = {}
    yield _beginning(store.conversation(conversation_id), conversation_activity(store, conversation_id))
    for entry in all_entries(store, conversation_id):
        if isinstance(entry, ShownChanges | ShownCheck | ShownApproval):
            yield _between(entry)
            continue
        member = _agent_of(entry)
        if member:
            colours.setdefault(member, len(colours) % COLOURS)
        if isinstance(entry, UnansweredTurn):
            yield _unanswered(entry, colours)
        else:
            turn = turn_that_said(store, conversation_id, entry.message) if member else None
            yield _article(entry, turn, colours)
    yield "</main>\n</body>\n</html>\n"


def _agent_of(entry: ShownMessage | UnansweredTurn) -> str:
    if isinstance(entry, UnansweredTurn):
        return entry.member
    return entry.message.speaker.role_id if entry.message.speaker.type == "ai" else ""


def _beginning(conversation: StoredConversation, now: Activity) -> str:
    title = _shown(title_of(conversation.title, conversation.first_words))
    facts = (
        conversation.id,
        f"Team {one_line(conversation.team)}",
        utc_time(conversation.started_at),
        counted(conversation.messages, "message"),
        f"{now.sign} {now.word}",
    )
    task, style = conversation.team_task, STYLE.read_text(encoding="utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(_policy(style))}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p>{_shown(" · ".join(fact for fact in facts if fact))}</p>
{f'<p class="task" dir="auto">{_shown(task)}</p>' if task else ""}
</header>
<main>
"""


def _policy(style: str) -> str:
    """Return that the page may not load or run anything, even if it was injected; its one style has this hash."""
    digest = b64encode(sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-{digest}'"


def _article(stored: ShownMessage, turn: Turn | None, colours: Mapping[str, int]) -> str:
    message, number = stored.message, stored.sequence
    name, to, text = sender_of(message), addressees_of(message), message.content
    colour = f" c{colours[message.speaker.role_id]}" if message.speaker.role_id in colours else ""
    heading = _named(name)
    heading += f'<span class="to">to <bdi>{_shown(to)}</bdi></span>' if to else ""
    for one in chips(message):
        heading += f'<span class="chip {one.light}">{one.sign} {_shown(one.words)}</span>'
    heading += f'<span class="to">{NOTE}</span>' if is_note(message) else ""
    heading += f'<span class="to">{kind}</span>' if (kind := kind_words(message)) else ""
    # The addressees are above it.
    said = _rendered(text_for_people(text))
    return (
        f'<article class="{escape(message.speaker.type)}{colour}" id="m{number}">\n'
        f'<h2>{heading}<a href="#m{number}">{utc_time(message.timestamp) or f"#{number}"}</a></h2>\n'
        f'<div class="said" dir="auto">{said}</div>\n{_rebuilt(stored)}{_below(turn)}</article>\n'
    )


def _unanswered(turn: UnansweredTurn, colours: Mapping[str, int]) -> str:
    """Return a turn without a reply: how it ended, what it had said, and what it did."""
    steps = "".join(f"<li>{_shown(one_line(line))}</li>" for line in turn.done)
    said = f'<div class="said" dir="auto">{_rendered(turn.said)}</div>\n' if turn.said else ""
    return (
        f'<article class="ai unanswered c{colours[turn.member]}">\n<h2>{_named(one_line(turn.member))}</h2>\n'
        f"<details><summary>{_shown(one_line(turn.signed))}</summary>\n<p>{_shown(turn.reason)}</p>\n"
        f"{f'<ul>{steps}</ul>' if steps else ''}{said}</details>\n</article>\n"
    )


def _changes(changes: ShownChanges) -> str:
    """Return what changed: how much, and folded below it in which files, and the patch."""
    # As with Markdown, commands start faster without it.
    from bullpen.exchange.rendering import highlighted

    files = "".join(f"<li><bdi><code>{_shown(path)}</code></bdi> {_shown(about)}</li>" for path, about in changes.files)
    notes = "".join(f"<p>{_shown(note)}</p>\n" for note in changes.notes)
    patch = f'<pre class="code" tabindex="0"><code>{highlighted(visible(changes.patch), "diff")}</code></pre>\n'
    return (
        f'<div class="changes{" of-reply" if changes.is_of_reply else ""}"><details>'
        f"<summary>{_shown(changes.heading)}</summary>\n"
        f"{f'<ul>{files}</ul>' if files else ''}{notes}{patch if changes.patch else ''}</details></div>\n"
    )


def _between(entry: ShownChanges | ShownCheck | ShownApproval) -> str:
    match entry:
        case ShownChanges():
            return _changes(entry)
        case ShownCheck():
            return _check(entry)
        case _:
            return _approval(entry)


def _approval(approval: ShownApproval) -> str:
    """Return what an agent asked or was answered, and folded below it all of it."""
    heading, text = _shown(approval.heading), _shown(approval.text)
    if not text:
        return f'<div class="changes approval"><p>{heading}</p></div>\n'
    return (
        f'<div class="changes approval"><details><summary>{heading}</summary>\n'
        f'<pre class="code" tabindex="0"><code>{text}</code></pre>\n</details></div>\n'
    )


def _check(check: ShownCheck) -> str:
    """Return what a check said, and folded below it what it wrote."""
    return (
        f'<div class="changes check {check.light}{" of-reply" if check.is_of_reply else ""}"><details>'
        f'<summary>{_shown(check.heading)}</summary>\n<pre class="code" tabindex="0"><code>{_shown(check.output)}'
        "</code></pre>\n</details></div>\n"
    )


def _named(name: str) -> str:
    return f'<span class="face" aria-hidden="true">{_shown(_initials(name))}</span><bdi>{_shown(name)}</bdi>'


def _rendered(text: str) -> str:
    # Nothing else needs what this imports, and commands start faster without.
    from bullpen.exchange.rendering import rendered_markdown

    return rendered_markdown(visible(text))


def _rebuilt(stored: ShownMessage) -> str:
    return f'<p class="spent">{_shown(rebuilt_words(stored.rebuilt))}</p>\n' if stored.rebuilt else ""


def _below(turn: Turn | None) -> str:
    if turn is None or turn.started_at is None or turn.ended_at is None:
        return ""
    words = spent((turn.ended_at - turn.started_at) / 1000, turn.usage)
    return f'<p class="spent">{_shown(words)}</p>\n'


def _initials(name: str) -> str:
    words = list(_words(name))
    return "".join(word[0] for word in words[:2]).upper() or "?"


def _words(name: str) -> Iterator[str]:
    yield from name.replace("-", " ").replace("_", " ").split()


def _shown(text: str) -> str:
    return escape(visible(text))
