"""Text of people and agents as harmless HTML: none of their tags, no images, no scripts.

There are three defences, each sufficient by itself: markdown-it without HTML, nh3 with a short list of allowed tags,
and the page's Content-Security-Policy.
"""

from collections.abc import MutableMapping
from html import escape
from typing import Any

import nh3
from markdown_it.rules_core import StateCore, block, inline, normalize, text_join
from markdown_it.token import Token
from markupsafe import Markup

from bullpen.exchange.rendering import MOST_CELLS, MOST_CHARACTERS, SCHEMES, SafeMarkdown, cells_in, highlighted
from bullpen.exchange.visible import visible
from bullpen.markers.stripping import strip_all_markers
from bullpen.text.patterns import pattern

MOST_SHOWN = 1_000_000
TAGS = frozenset(
    {
        *("a", "b", "blockquote", "br", "code", "del", "div", "em", "h3", "h4", "h5", "h6", "hr", "li", "ol"),
        *("p", "pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
    }
)
ATTRIBUTES = {
    "a": {"href"},
    "code": {"class"},
    "div": {"class"},
    "ol": {"start"},
    # What is too wide scrolls, and must do so by keyboard, too.
    "pre": {"class", "tabindex"},
    "span": {"class"},
    "table": {"tabindex"},
    "td": {"class"},
    "th": {"class"},
}


WORDS = frozenset({"text", "code_inline", "image", "softbreak"})
_LOOKS = pattern(r"(?:^|(?<=\s))(?:#{1,6}(?=\s)|[`~]{3}\w*|\|?(?::?-{2,}:?\|)+(?::?-{2,}:?)?|\|)(?=\s|$)")
"""Of headings, blocks of code, tables, wherever they are: lines have become one."""


def render(text: str) -> Markup:
    """Return a Markdown text as safe HTML."""
    shown = visible(text)
    if len(shown) > MOST_CHARACTERS or cells_in(shown) > MOST_CELLS:
        return plain(shown)
    return _cleaned(_MARKDOWN.render(shown))


def blocks_of(text: str, names: MutableMapping[str, Any]) -> list[Token]:
    """Return the blocks of a Markdown text; what is in their lines is not read yet. `names` is kept between texts."""
    # A table with too many cells is shown as it was typed.
    state = StateCore(text, _MARKDOWN if cells_in(text) <= MOST_CELLS else _WITHOUT_TABLES, names)
    normalize(state)
    block(state)
    return state.tokens


def html_of(blocks: list[Token], names: MutableMapping[str, Any]) -> Markup:
    """Return blocks as safe HTML."""
    state = StateCore("", _MARKDOWN, names, blocks)
    inline(state)
    text_join(state)
    return _cleaned(_MARKDOWN.renderer.render(state.tokens, _MARKDOWN.options, names))


def plain(text: str) -> Markup:
    """Return a text as it was typed; if it is very long, its end is left out, with a note."""
    rest = len(text) - MOST_SHOWN
    more = f'<p class="more">{rest:,} more characters are in the export.</p>' if rest > 0 else ""
    return Markup(f'<pre class="typed" tabindex="0">{escape(visible(text[:MOST_SHOWN]))}</pre>{more}')  # noqa: S704 (escaped)


def words(text: str) -> str:
    """Return a part of a Markdown text on one line, without the signs that only say how it looks."""
    tokens = _MARKDOWN.parseInline(_LOOKS.sub(" ", strip_all_markers(text)))
    parts = (part.content for token in tokens for part in token.children or () if part.type in WORDS)
    return " ".join("".join(parts).split())


def code(text: str, language: str = "") -> Markup:
    """Return highlighted code, without a frame."""
    return _cleaned(highlighted(visible(text), language))


def _cleaned(html: str) -> Markup:
    cleaned = nh3.clean(
        html,
        tags=set(TAGS),
        attributes={tag: set(names) for tag, names in ATTRIBUTES.items()},
        url_schemes=set(SCHEMES),
        link_rel="noopener noreferrer nofollow",
        strip_comments=True,
    )
    return Markup(cleaned)  # noqa: S704 (nh3 has just made it safe)


_MARKDOWN = SafeMarkdown()
_WITHOUT_TABLES = SafeMarkdown(tables=False)
