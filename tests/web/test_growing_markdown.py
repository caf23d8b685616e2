"""Markdown while it is written: what a page shows is at every moment almost the beginning of what it will show."""

import html as html_entities
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bullpen.web.growing_markdown import LONGEST_OPEN, LONGEST_READ, GrowingMarkdown
from bullpen.web.markdown import TAGS, render
from bullpen.web.templates import said
from bullpen.web.unfinished import completed_lines, completed_words

MOST_RAW = 20

RICH = """The session was kept **in memory**, so a restart logged *everybody* out. I moved it into `store.sessions`:

```python
def restore(store: Store, cookie: str) -> Session | None:
    return None if row is None else row.session
```

## What changed
Two things, see [the docs](https://example.com/a_b?c=d):
- the cookie holds **256 bits**, and the store only their hash
- `test_restart.py` logs in, restarts, and is still logged in
    1. nested 😀
    2. snake_case_names and 2 * 3 stay as they are

Text before a table:
| name | what it **does** |
|---|:-:|
| a | `x` |
| b | ~~gone~~ |

> Sessions survive a restart.
> They end after 14 days.

~~~diff
-    return None
+    return rotated(row.session)
~~~

---

Shall it be 14 days, as the docs say?"""


class Page:
    """What a browser does with the changes that it is sent."""

    def __init__(self) -> None:
        self.done = ""
        self.open = ""
        self.sent = 0

    def change(self, text: GrowingMarkdown) -> None:
        growth = text.grow()
        assert growth is not None
        units = self.open.encode("utf-16-le")[: 2 * growth.keep] + growth.rest.encode("utf-16-le")
        self.done += units[: 2 * growth.done].decode("utf-16-le")
        self.open = units[2 * growth.done :].decode("utf-16-le")
        self.sent += len(growth.rest)

    @property
    def html(self) -> str:
        return self.done + self.open


def words(html: str) -> str:
    """Return the text that people would read."""
    return re.sub(r"\s+", "", html_entities.unescape(re.sub(r"<[^>]*>", "", html)))


def grown(text: str, step: int) -> Page:
    page, growing = Page(), GrowingMarkdown()
    for start in range(0, len(text), step):
        growing.add(text[start : start + step])
        page.change(growing)
        assert page.html == growing.html
    return page


@pytest.mark.parametrize("step", [1, 3, 7, 40, 5_000])
def test_the_end_is_what_the_message_will_be(step: int) -> None:
    assert grown(RICH, step).html.strip() == said(RICH).strip()


@pytest.mark.parametrize("step", [1, 4, 12])
def test_at_most_twenty_characters_are_other_than_they_will_be(step: int) -> None:
    growing, final = GrowingMarkdown(), words(render(RICH))
    raw = []
    for start in range(0, len(RICH), step):
        growing.add(RICH[start : start + step])
        growing.grow()
        shown = words(growing.html)
        same = next((at for at, (one, other) in enumerate(zip(shown, final, strict=False)) if one != other), len(shown))
        raw.append(len(shown) - same)
    assert max(raw) <= MOST_RAW


@pytest.mark.parametrize(
    "block",
    [
        "Word after word, and **some** of them are `loud`. ",
        "```python\n" + "x = call('text', 1)  # why\n" * 5 + "```\n\n",
        "- an item of a **list**\n",
        RICH + "\n\n",
    ],
)
def test_what_is_sent_grows_as_the_text_does(block: str) -> None:
    repeats = 2 * LONGEST_OPEN // len(block) + 1

    short, long = (grown(block * count, 50).sent for count in (repeats, 4 * repeats))

    assert long < 6 * short


def test_long_blocks_are_divided_and_nothing_is_lost() -> None:
    code = "```python\n" + "value = 'text'\n" * 200
    listed = "".join(f"{number}. item\n" for number in range(1, 300))
    paragraph = "word **loud** and more " * 130
    clocks = "<123456> (7) " * 230

    for text in (code, listed, paragraph, clocks):
        page = grown(text, 50)
        assert words(page.html) == words(render(text))
        assert len(page.open) < 12 * LONGEST_OPEN


@pytest.mark.parametrize(
    "flood", ["x" * 45_000, "| a " * 12_000, "> quote\n" * 5_000, "|a|b|\n|-|-|\n" + "|c|d|\n" * 4_000]
)
def test_a_flood_is_not_rendered_again_and_again(flood: str) -> None:
    page = grown(flood, 4_000)

    assert len(page.open) < 12 * LONGEST_READ
    assert page.sent < 20 * len(flood)


def test_a_flood_at_once_is_shown_as_it_was_typed_and_only_its_end_is_read() -> None:
    growing = GrowingMarkdown()
    growing.add("**line**\n" * 100_000 + "the **end**")

    growth = growing.grow()

    assert growth is not None
    assert growing.html.startswith('<pre class="typed"')
    assert growing.html.count("<strong>line</strong>") < LONGEST_READ
    assert "the <strong>end</strong>" in growing.open_html


def test_a_marker_is_never_seen_even_while_it_is_written() -> None:
    page, growing, seen = Page(), GrowingMarkdown(), set()
    for character in "Please look.\n\n[NEXT: sarah & ada]\n\nThanks.":
        growing.add(character)
        page.change(growing)
        seen.add(words(page.html))

    assert not any("[" in text or "NEXT" in text for text in seen)
    assert words(page.html) == "Pleaselook.Thanks."


PIECES = (
    "a",
    "b c",
    "**",
    "*",
    "`",
    "```",
    "\n",
    "\n\n",
    "- ",
    "1. ",
    "| ",
    "|-|",
    "> ",
    "# ",
    "[x](",
    ")",
    "<b>",
    "_",
)
MORE_PIECES = ("~~", "    ", "\r", "😀", "\x1b[1m", "---", "[NEXT: x]", "<script>")


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES + MORE_PIECES)), st.integers(1, 6))
def test_no_text_breaks_it(pieces: list[str], step: int) -> None:
    tags = set(re.findall(r"</?([^\s>/]*)", grown("".join(pieces), step).html))

    assert tags <= TAGS


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("some **bo", "some **bo**"),
        ("some **bold*", "some **bold**"),
        ("some **", "some "),
        ("a `co", "a `co`"),
        ("a ``co`", "a ``co``"),
        ("a `", "a "),
        ("**bold and `code", "**bold and `code`**"),
        ("see [the docs](https://exa", "see the docs"),
        ("done [NEXT: sar", "done "),
        ("2 * 3 and snake_case", "2 * 3 and snake_case"),
        ("all **closed** `here`", "all **closed** `here`"),
        (r"not \*emphasis", r"not \*emphasis"),
    ],
)
def test_what_has_begun_is_ended(typed: str, shown: str) -> None:
    assert completed_words(typed) == shown


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("Text\n-", "Text"),
        ("Text\n- item", "Text\n- item"),
        ("Text\n\n1.", "Text\n"),
        ("| a | b", "| a | b|\n|---|---|"),
        ("| a | b |\n|-", "| a | b |\n|---|---|"),
        ("| a |\n|---|\n| 1", "| a |\n|---|\n| 1"),
        ("Text\n``", "Text"),
    ],
)
def test_a_line_that_is_only_markup_waits(typed: str, shown: str) -> None:
    assert completed_lines(typed) == shown
