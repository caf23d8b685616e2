"""One HTML page that needs nothing, and in which nothing that was said is more than text."""

import base64
import io
import re
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

from bullpen.exchange.files import write_export
from bullpen.messages import ConversationMessage, Routing, Speaker
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.conversations import write_example

OUR_TAGS = {"html", "head", "meta", "title", "style", "body", "header", "h1", "p", "div", "main", "article", "h2"}
OUR_TAGS |= {
    "a",
    "bdi",
    "span",
    "code",
    "pre",
    "em",
    "strong",
    "ul",
    "ol",
    "li",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
}
OUR_TAGS |= {"h3", "blockquote", "details", "summary", "br"}


class Page(HTMLParser):
    """What a reader of the page finds in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.said: list[str] = []
        self._inside = 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        if ("class", "said") in attrs:
            self.said.append("")
            self._inside = 1
        elif self._inside and tag == "div":
            self._inside += 1

    def handle_endtag(self, tag: str) -> None:
        if self._inside and tag == "div":
            self._inside -= 1

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.said[-1] += data


def exported(store: SqliteStore, conversation_id: str = "quiet-river-4f2a") -> str:
    file = io.StringIO()
    write_export(store, conversation_id, file, "html")
    return file.getvalue()


def test_a_conversation_is_one_page_that_loads_nothing(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "a.db") as store:
        write_example(store)

        text = exported(store)

    page = Page(text)
    style = re.search("<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(sha256(style[1].encode()).digest()).decode()
    assert f"style-src &#x27;sha256-{digest}&#x27;" in text
    assert "default-src &#x27;none&#x27;" in text
    assert page.tags <= OUR_TAGS
    assert {value for name, value in page.attributes if name in ("href", "src")} == {f"#m{n}" for n in range(1, 7)}
    assert page.said[0].strip() == "Where do we start?"
    assert "set_cookie(🍪)" in page.said[3]
    assert 'name="viewport"' in text
    assert "prefers-color-scheme: dark" in text


def test_nothing_that_was_said_is_markup(tmp_path: Path) -> None:
    evil = """</div></article><script>alert(1)</script><img src=x onerror='a' "> &amp; <style>*{}</style>"""
    evil += " \x1b[31m\x00\u202e"
    speaker = Speaker(role_id="m", role_name=evil, type="ai")
    with SqliteStore(tmp_path / "a.db") as store:
        store.create("c<b>", team=evil, team_file="", started_at=1, team_task=evil)
        routing = Routing(resolved_addressees=(evil,))
        store.append("c<b>", ConversationMessage(id="m", content=evil, speaker=speaker, routing=routing))

        text = exported(store, "c<b>")

    page = Page(text)
    assert page.tags <= OUR_TAGS
    assert not {name for name, _ in page.attributes} & {"src", "onerror", "style"}
    # An entity is what it stands for, as in any Markdown.
    shown = evil.replace("\x1b", "␛").replace("\0", "␀").replace("\u202e", "⟨U+202E⟩").replace("&amp;", "&")
    assert page.said[-1].strip() == shown


def test_markdown_is_rendered_and_harmless(tmp_path: Path) -> None:
    said = (
        "# Plan\n\n- **one**\n\n| a | b |\n|:-:|---|\n| 1 | 2 |\n\n```python\ndef f():\n    return 1\n```\n\n"
        "[site](https://example.com 'x') [bad](javascript:alert(1)) ![p](https://example.com/p.png) [NEXT: max]"
    )
    with SqliteStore(tmp_path / "a.db") as store:
        store.create("c", team="T", team_file="", started_at=1)
        speaker = Speaker(role_id="m", role_name="Max", type="ai")
        store.append("c", ConversationMessage(id="m", content=said, speaker=speaker, timestamp=1))

        text = exported(store, "c")

    page = Page(text)
    assert page.tags <= OUR_TAGS
    assert {"h3", "ul", "table", "pre", "strong"} <= page.tags
    assert '<span class="k-k">def</span>' in text
    assert {value for name, value in page.attributes if name == "href"} == {"#m1", "https://example.com"}
    assert ("rel", "noopener noreferrer nofollow") in page.attributes
    assert not {name for name, _ in page.attributes} & {"src", "style", "title", "onclick"}
    assert "[NEXT: max]" not in text
