"""Text of people and agents as harmless HTML: none of their tags, no images, no scripts.

There are three defences, each sufficient by itself: markdown-it without HTML, nh3 with a short list of allowed tags,
and the page's Content-Security-Policy.
"""

from collections.abc import MutableMapping, Sequence
from html import escape
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore, block, inline, normalize, text_join
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from bullpen.web.visible import visible

MOST_CHARACTERS = 200_000
"""The longest text that is rendered as Markdown; a longer one is shown as plain text."""
MOST_SHOWN = 1_000_000
MOST_HIGHLIGHTED = 30_000
LONGEST_HIGHLIGHTED_LINE = 1_000
"""Some lexers are very slow for longer lines, and an agent may write anything."""

LANGUAGES = frozenset(
    {
        *("bash", "c", "console", "cpp", "csharp", "css", "diff", "dockerfile", "go", "graphql", "html", "ini"),
        *("java", "javascript", "js", "json", "jsx", "kotlin", "lua", "make", "markdown", "md", "nginx", "php"),
        *("powershell", "py", "pycon", "python", "ruby", "rust", "scala", "sh", "shell", "sql", "swift"),
        *("toml", "ts", "tsx", "typescript", "xml", "yaml", "yml", "zig", "zsh"),
    }
)
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
}
MOST_CELLS = 10_000
SCHEMES = frozenset({"http", "https", "mailto"})

_FORMATTER: HtmlFormatter[str] = HtmlFormatter(nowrap=True, classprefix="k-")


def render(text: str) -> Markup:
    """Return a Markdown text as safe HTML."""
    shown = visible(text)
    if len(shown) > MOST_CHARACTERS or _cells_in(shown) > MOST_CELLS:
        return plain(shown)
    return _cleaned(_MARKDOWN.render(shown))


def blocks_of(text: str, names: MutableMapping[str, Any]) -> list[Token]:
    """Return the blocks of a Markdown text; what is in their lines is not read yet. `names` is kept between texts."""
    # A table with too many cells is shown as it was typed.
    state = StateCore(text, _MARKDOWN if _cells_in(text) <= MOST_CELLS else _WITHOUT_TABLES, names)
    normalize(state)
    block(state)
    return state.tokens


def html_of(blocks: list[Token], names: MutableMapping[str, Any]) -> Markup:
    """Return blocks as safe HTML."""
    state = StateCore("", _MARKDOWN, names, blocks)
    inline(state)
    text_join(state)
    return _cleaned(_MARKDOWN.renderer.render(state.tokens, _MARKDOWN.options, names))


def _cells_in(text: str) -> int:
    """Return how many cells the tables may have: missing ones are filled in, so kilobytes could become megabytes."""
    rows = [line.count("|") for line in text.split("\n") if "|" in line]
    return len(rows) * max(rows, default=0)


def plain(text: str) -> Markup:
    """Return a text as it was typed; if it is very long, its end is left out, with a note."""
    rest = len(text) - MOST_SHOWN
    more = f'<p class="more">{rest:,} more characters are in the export.</p>' if rest > 0 else ""
    return Markup(f'<pre class="typed" tabindex="0">{escape(visible(text[:MOST_SHOWN]))}</pre>{more}')  # noqa: S704 (escaped)


def code(text: str, language: str = "") -> Markup:
    """Return highlighted code, without a frame."""
    return _cleaned(_highlighted(visible(text), language))


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


def _highlighted(text: str, language: str) -> str:
    name = language.strip().split(" ")[0].lower()
    too_much = len(text) > MOST_HIGHLIGHTED or any(len(line) > LONGEST_HIGHLIGHTED_LINE for line in text.split("\n"))
    if name not in LANGUAGES or too_much:
        return escape(text)
    try:
        return highlight(text, get_lexer_by_name(name, stripnl=False), _FORMATTER)
    except ClassNotFound:
        return escape(text)


def _fence(_: RendererHTML, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: Any) -> str:
    token = tokens[index]
    return f'<pre class="code" tabindex="0"><code>{_highlighted(token.content, token.info)}</code></pre>\n'


def _image(_: RendererHTML, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: Any) -> str:
    """Return an image's text and address. It is never loaded, since the request would reveal the reader."""
    token = tokens[index]
    address = escape(str(token.attrs.get("src", "")))
    return f'<span class="picture">🖼 {escape(token.content)} <code>{address}</code></span>'


def _heading(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: Any) -> str:
    """Return a heading below those of the page, at most one level below the heading before it."""
    token = tokens[index]
    levels: list[int] = env.setdefault("headings", [])
    if token.nesting > 0:
        level = int(token.tag[1:])
        levels[:] = [*(above for above in levels if above < level), level]
    token.tag = f"h{min(2 + len(levels), 6)}"
    return str(renderer.renderToken(tokens, index, options, env))


def _table(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: Any) -> str:
    tokens[index].attrSet("tabindex", "0")
    return str(renderer.renderToken(tokens, index, options, env))


class _OurMarkdown(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802 (its name there)
        """Return whether an address may become a link: it needs a harmless scheme."""
        scheme, colon, _ = url.partition(":")
        return bool(colon) and scheme.lower() in SCHEMES


def _markdown(*, tables: bool = True) -> MarkdownIt:
    markdown = _OurMarkdown("commonmark", {"html": False, "breaks": True, "linkify": False, "maxNesting": 20})
    markdown.enable(["table", "strikethrough"] if tables else ["strikethrough"])
    for name, rule in {
        "fence": _fence,
        "code_block": _fence,
        "image": _image,
        "heading_open": _heading,
        "heading_close": _heading,
        "table_open": _table,
    }.items():
        markdown.add_render_rule(name, rule)
    return markdown


_MARKDOWN = _markdown()
_WITHOUT_TABLES = _markdown(tables=False)
