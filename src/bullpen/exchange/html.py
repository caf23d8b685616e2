"""A conversation as one self-contained HTML page: no scripts, no requests, light and dark, readable on a phone."""

import re
from base64 import b64encode
from hashlib import sha256
from html import escape

from bullpen.exchange.formatting import Writable, addressees_of, all_messages, sender_of, utc_time
from bullpen.store.base import Store, StoredConversation, StoredMessage
from bullpen.text.clean import one_line
from bullpen.text.numbers import counted

STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --paper: #fff; --faint: #5f6670; --line: #d9dce1; --card: #f5f6f8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e6ea; --paper: #16181b; --faint: #9aa1ab; --line: #34383e; --card: #1f2226; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 52rem; color: var(--ink); background: var(--paper);
  font: 1rem/1.55 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
header p, .task { color: var(--faint); margin: .25rem 0 1.5rem; }
article { border: 1px solid var(--line); border-radius: .5rem; margin: 0 0 1rem; overflow: hidden; }
article > h2 { display: flex; flex-wrap: wrap; gap: 0 .6rem; align-items: baseline; margin: 0; padding: .5rem .8rem;
  font-size: 1rem; background: var(--card); border-bottom: 1px solid var(--line); }
h2 a { color: var(--faint); font-weight: normal; text-decoration: none; }
h2 small, h2 .to { color: var(--faint); font-weight: normal; }
h2 small { margin-left: auto; }
.ai > h2 { border-left: .3rem solid #3b82c4; } .human > h2 { border-left: .3rem solid #3f9a5f; }
.system > h2 { border-left: .3rem solid var(--faint); }
.said { margin: 0; padding: .7rem .8rem; white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }
@media print { article { break-inside: avoid; } }
"""

# The page may not load or run anything, even if something was injected; its one style is allowed by its hash.
POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; "
    f"style-src 'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}'"
)


# HTML does not allow them, and they would affect a terminal that prints the file.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def write_html(store: Store, conversation_id: str, file: Writable) -> None:
    """Write a conversation piece by piece."""
    file.write(_beginning(store.conversation(conversation_id)))
    for stored in all_messages(store, conversation_id):
        file.write(_article(stored))
    file.write("</main>\n</body>\n</html>\n")


def _beginning(conversation: StoredConversation) -> str:
    title = _shown(conversation.title or conversation.id)
    facts = (
        f"Team {one_line(conversation.team)}",
        utc_time(conversation.started_at),
        counted(conversation.messages, "message"),
    )
    task = conversation.team_task
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p>{_shown(" · ".join(fact for fact in facts if fact))}</p>
{f'<div class="said task" dir="auto">Team task: {_shown(task)}</div>' if task else ""}
</header>
<main>
"""


def _article(stored: StoredMessage) -> str:
    message, number = stored.message, stored.sequence
    to = addressees_of(message)
    heading = f'<a href="#m{number}">#{number}</a><bdi>{_shown(sender_of(message))}</bdi>'
    heading += f'<span class="to">→ <bdi>{_shown(to)}</bdi></span>' if to else ""
    return (
        f'<article class="{escape(message.speaker.type)}" id="m{number}">\n'
        f"<h2>{heading}<small>{utc_time(message.timestamp)}</small></h2>\n"
        f'<div class="said" dir="auto">{_shown(message.content)}</div>\n</article>\n'
    )


def _shown(text: str) -> str:
    return escape(_CONTROLS.sub("\ufffd", text))
