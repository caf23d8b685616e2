"""Figure: a reply in the browser while it is written: what is sent, and what is not rendered yet."""

import html
import re
from collections.abc import Iterator

from msgspec import Struct

from benchmarks.report import Figure
from bullpen.web.growing_markdown import GrowingMarkdown
from bullpen.web.markdown import render
from bullpen.web.page_feed import GROW_SECONDS
from bullpen.web.updates import growth_json

CHARACTERS_A_SECOND = 300
"""As a fast model writes."""
STEP = round(CHARACTERS_A_SECOND * GROW_SECONDS)
BEFORE_SECONDS = 0.5
"""How often the whole turn was sent again in an earlier version."""
CHARACTERS, QUICK_CHARACTERS = 6_000, 2_000
TIMES = 10
GOAL_RAW = 20
GOAL_RATIO = 12
"""Of what is sent for ten times the text: linear, with room for where the blocks happen to end."""
SAMPLE = """The session was kept **in memory**, so a restart logged *everybody* out. I moved it into `store.sessions`:

```python
def restore(store: Store, cookie: str) -> Session | None:
    row = store.sessions.get(digest(cookie))
    return None if row is None or row.expires <= now() else row.session
```

## What changed

Two things, see [the docs](https://example.com/login?from=chat):
- the cookie holds **256 bits**, and the store only their hash
- `test_restart.py` logs in, restarts, and is still logged in

| name | what it **does** |
|---|---|
| `restore` | finds the session |
| `rotate` | gives it a new cookie |

> Sessions survive a restart. They end after 14 days, or when you log out everywhere.

"""


class Stream(Struct, frozen=True, kw_only=True):
    """What was sent for one reply."""

    characters: int
    sent: int
    sent_before: int
    """What an earlier version would have sent: all of it, again and again."""
    raw: int
    """The most characters that were ever shown otherwise than in the end."""


def measure(*, quick: bool) -> Figure:
    """Let a reply grow, and count what a page is sent and shows."""
    short = _stream(QUICK_CHARACTERS if quick else CHARACTERS)
    long = _stream(TIMES * short.characters)
    ratio, ratio_before = long.sent / short.sent, long.sent_before / short.sent_before
    raw = max(short.raw, long.raw)
    return Figure(
        title="A reply in the browser while it is written",
        goal=f"at most {GOAL_RAW} characters not rendered yet at any moment, at {CHARACTERS_A_SECOND} characters a "
        f"second; for {TIMES} times the text at most {GOAL_RATIO} times the bytes",
        met=raw <= GOAL_RAW and ratio <= GOAL_RATIO,
        measured=f"{raw} characters, {ratio:.1f} times the bytes",
        columns=("reply", "sent", "sent if all of it were sent every half second", "most characters not rendered yet"),
        rows=[_row(short), _row(long), ("ratio", f"{ratio:.1f}", f"{ratio_before:.0f}", "")],
        meaning=f"Markdown with code, lists, tables and links arrives {STEP} characters at a time, every "
        f"{GROW_SECONDS * 1000:.0f} ms, and is rendered each time. A character is not rendered yet if the page shows "
        "it differently from the end. What is sent is what changes: finished blocks once, the last one as "
        "far as it differs.",
    )


def _stream(characters: int) -> Stream:
    text = (SAMPLE * (characters // len(SAMPLE) + 1))[:characters]
    growing, final = GrowingMarkdown(), _words(render(text))
    sent = raw = 0
    for piece in _pieces(text, STEP):
        growing.add(piece)
        growth = growing.grow()
        sent += len(growth_json("1", growth)) if growth else 0
        raw = max(raw, _not_yet(_words(growing.html), final))
    step = round(BEFORE_SECONDS * CHARACTERS_A_SECOND)
    sent_before = sum(len(render(text[:end])) for end in range(step, len(text) + step, step))
    return Stream(characters=len(text), sent=sent, sent_before=sent_before, raw=raw)


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def _words(shown: str) -> str:
    return re.sub(r"\s+", "", html.unescape(re.sub(r"<[^>]*>", "", shown)))


def _not_yet(shown: str, final: str) -> int:
    """Return how many characters at the end are other than they will be."""
    if final.startswith(shown):
        return 0
    pairs = enumerate(zip(shown, final, strict=False))
    return len(shown) - next((at for at, (one, other) in pairs if one != other), min(len(shown), len(final)))


def _row(stream: Stream) -> tuple[str, ...]:
    return (
        f"{stream.characters:,} characters",
        f"{stream.sent / 1000:,.0f} KB",
        f"{stream.sent_before / 1000:,.0f} KB",
        str(stream.raw),
    )
