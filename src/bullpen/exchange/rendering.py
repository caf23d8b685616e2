"""Markdown of people and agents as HTML: none of their tags, no images, links only to harmless addresses."""

from collections.abc import Sequence
from functools import cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

MOST_CHARACTERS = 200_000
"""The longest text that is rendered as Markdown; a longer one is shown as plain text."""
MOST_CELLS = 10_000
MOST_HIGHLIGHTED = 30_000
LONGEST_HIGHLIGHTED_LINE = 1_000
"""Some lexers are very slow for longer lines, and an agent may write anything."""
SCHEMES = frozenset({"http", "https", "mailto"})

LANGUAGES = frozenset(
    {
        *("bash", "c", "console", "cpp", "csharp", "css", "diff", "dockerfile", "go", "graphql", "html", "ini"),
        *("java", "javascript", "js", "json", "jsx", "kotlin", "lua", "make", "markdown", "md", "nginx", "php"),
        *("powershell", "py", "pycon", "python", "ruby", "rust", "scala", "sh", "shell", "sql", "swift"),
        *("toml", "ts", "tsx", "typescript", "xml", "yaml", "yml", "zig", "zsh"),
    }
)


def rendered_markdown(text: str) -> str:
    """Return a Markdown text as HTML in which none of its own markup works; a very long one as it was typed."""
    if len(text) > MOST_CHARACTERS or cells_in(text) > MOST_CELLS:
        return f'<pre class="typed" tabindex="0">{escape(text)}</pre>\n'
    return str(_markdown().render(text))


def cells_in(text: str) -> int:
    """Return how many cells the tables may have: missing ones are filled in, so kilobytes could become megabytes."""
    rows = [line.count("|") for line in text.split("\n") if "|" in line]
    return len(rows) * max(rows, default=0)


def highlighted(text: str, language: str) -> str:
    """Return code as HTML, in colours if its language is known and it is not too long."""
    name = language.strip().split(" ")[0].lower()
    too_much = len(text) > MOST_HIGHLIGHTED or any(len(line) > LONGEST_HIGHLIGHTED_LINE for line in text.split("\n"))
    if name not in LANGUAGES or too_much:
        return escape(text)
    try:
        return highlight(text, get_lexer_by_name(name, stripnl=False), _formatter())
    except ClassNotFound:
        return escape(text)


class SafeMarkdown(MarkdownIt):
    """CommonMark with tables, without HTML and images."""

    def __init__(self, *, tables: bool = True) -> None:
        super().__init__("commonmark", {"html": False, "breaks": True, "linkify": False, "maxNesting": 20})
        self.enable(["table", "strikethrough"] if tables else ["strikethrough"])
        for name, rule in _RULES.items():
            self.add_render_rule(name, rule)

    def validateLink(self, url: str) -> bool:  # noqa: N802 (its name there)
        """Return whether an address may become a link: it needs a harmless scheme."""
        scheme, colon, _ = url.partition(":")
        return bool(colon) and scheme.lower() in SCHEMES


def _fence(_: RendererHTML, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: Any) -> str:
    token = tokens[index]
    return f'<pre class="code" tabindex="0"><code>{highlighted(token.content, token.info)}</code></pre>\n'


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
    # What is too wide scrolls, and must do so by keyboard, too.
    tokens[index].attrSet("tabindex", "0")
    return str(renderer.renderToken(tokens, index, options, env))


def _cell(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: Any) -> str:
    # The alignment would be a style, which pages do not allow.
    _, _, side = str(tokens[index].attrs.pop("style", "")).partition("text-align:")
    if side in ("center", "right"):
        tokens[index].attrSet("class", f"to-{side}")
    return str(renderer.renderToken(tokens, index, options, env))


def _link(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: Any) -> str:
    tokens[index].attrs.pop("title", None)
    tokens[index].attrSet("rel", "noopener noreferrer nofollow")
    return str(renderer.renderToken(tokens, index, options, env))


_RULES = {
    "fence": _fence,
    "code_block": _fence,
    "image": _image,
    "heading_open": _heading,
    "heading_close": _heading,
    "table_open": _table,
    "td_open": _cell,
    "th_open": _cell,
    "link_open": _link,
}


@cache
def _markdown() -> SafeMarkdown:
    return SafeMarkdown()


@cache
def _formatter() -> HtmlFormatter[str]:
    return HtmlFormatter(nowrap=True, classprefix="k-")
