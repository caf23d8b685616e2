"""Markdown of agents: laid out, highlighted, and never obeyed. What is a link or HTML is shown as it is written."""

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from pygments.token import Token
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.content import Content
from textual.highlight import HighlightTheme, highlight
from textual.visual import VisualType
from textual.widgets import Markdown

# The blocks that we make safer have no public name.
from textual.widgets._markdown import (
    MarkdownBlock,
    MarkdownBulletList,
    MarkdownFence,
    MarkdownListItem,
    MarkdownOrderedList,
    MarkdownParagraph,
    MarkdownTable,
    MarkdownTableContent,
)

# Guessing a language tries hundreds of lexers, and some lexers take very long over a text made for it.
LANGUAGES = """
    bash c console cpp cs css diff dockerfile go html ini java javascript js json jsx kotlin lua make md markdown php
    powershell py python rb ruby rs rust scala sh shell sql swift toml ts tsx typescript xml yaml yml zsh
"""
MOST_HIGHLIGHTED = 6_000


def safe_parser() -> MarkdownIt:
    """Return a parser that hides nothing: a link shows where it leads, HTML and entities are text, lines stay lines.

    An entity could spell a control character that was filtered out of the text.
    """
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.core.ruler.push("lines", _keep_lines)
    return parser.disable(["link", "image", "autolink", "reference", "html_inline", "html_block", "entity"])


def _keep_lines(state: StateCore) -> None:
    """Let a line break be one. Textual shows it as a space, and markdown-it's own option is only for HTML."""
    for token in state.tokens:
        for child in token.children or ():
            if child.type == "softbreak":
                child.type = "hardbreak"


class Paragraph(MarkdownParagraph):
    """A paragraph that grows while it streams. The screen is only laid out again when it has grown by a line."""

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        """Show something else."""
        super().update(content, layout=False)
        if layout and not (self.is_attached and self._is_as_high_as_before()):
            self.refresh(layout=True)

    def _is_as_high_as_before(self) -> bool:
        return self.get_content_height(self.size, self.app.size, self.size.width) == self.size.height


class CodeTheme(HighlightTheme):
    """The colours of code, with those of a diff."""

    STYLES = HighlightTheme.STYLES | {
        Token.Generic.Inserted: "$text-success on $success 10%",
        Token.Generic.Deleted: "$text-error on $error 10%",
        Token.Generic.Heading: "bold",
        Token.Generic.Subheading: "$text-primary",
    }


class Fence(MarkdownFence):
    """Code, in colours if its language is a known one. A line that is too long continues on the next one."""

    @classmethod
    def highlight(cls, code: str, language: str, ansi: bool = False, dark: bool = False) -> Content:  # noqa: ARG003
        """Return the code, highlighted."""
        name = language.split()[0].lower() if language.split() else ""
        known = name in LANGUAGES.split() and len(code) <= MOST_HIGHLIGHTED
        return highlight(code, language=name if known else "text", theme=CodeTheme)


class TableContent(MarkdownTableContent):
    """A table without tooltips: Textual would take the text of a cell in them for markup."""

    def compose(self) -> ComposeResult:
        """Yield the cells."""
        for cell in super().compose():
            cell.tooltip = None
            yield cell


class Table(MarkdownTable):
    """A table of such cells."""

    def compose(self) -> ComposeResult:
        """Yield the table."""
        self._headers, self._rows = self._get_headers_and_rows()
        yield TableContent(self._headers, self._rows)


class GrowingList(MarkdownBlock):
    """A list to which items are added while it streams: those that are there stay, all but the last one."""

    async def _update_from_block(self, block: MarkdownBlock) -> None:
        there = list(self.children)
        items = sum(isinstance(item, MarkdownListItem) for item in block._blocks)
        if type(block) is not type(self) or not there or items < len(there):
            await super()._update_from_block(block)
            return
        fresh = list(block.compose())[len(there) - 1 :]
        await there[-1].remove()
        await self.mount_all(fresh)


class BulletList(GrowingList, MarkdownBulletList):
    """A list with bullets."""


class OrderedList(GrowingList, MarkdownOrderedList):
    """A list with numbers."""


class SafeMarkdown(Markdown):
    """One text. It is laid out when it is mounted, not later, so that those around it know its height at once."""

    DEFAULT_CSS = """
    SafeMarkdown { padding: 0; margin: 0 0 -1 0; }
    SafeMarkdown MarkdownH1, SafeMarkdown MarkdownH2 { margin: 0 0 1 0; content-align: left middle; }
    SafeMarkdown Fence, SafeMarkdown Fence:light { margin: 0 0 1 0; background: $surface; }
    SafeMarkdown Fence > Label { padding: 0 1; width: 100%; }
    SafeMarkdown MarkdownTable { width: auto; background: transparent; }
    SafeMarkdown MarkdownBlockQuote { margin: 0 0 1 0; }
    SafeMarkdown BulletList, SafeMarkdown OrderedList { margin: 0 0 1 0; padding: 0; }
    SafeMarkdown GrowingList GrowingList { margin: 0; }
    SafeMarkdown GrowingList Horizontal, SafeMarkdown GrowingList Vertical { height: auto; width: 1fr; }
    """
    BLOCKS = Markdown.BLOCKS | {
        "paragraph_open": Paragraph,
        "fence": Fence,
        "code_block": Fence,
        "table_open": Table,
        "bullet_list_open": BulletList,
        "ordered_list_open": OrderedList,
    }

    def __init__(self, text: str = "") -> None:
        super().__init__(parser_factory=safe_parser, open_links=False)
        self._markdown = text

    def compose(self) -> ComposeResult:
        """Yield the blocks."""
        yield from self._blocks_of(self._markdown)

    def _blocks_of(self, text: str) -> list[MarkdownBlock]:
        return list(self._parse_markdown(safe_parser().parse(text)))

    def update(self, markdown: str) -> AwaitComplete:  # noqa: ARG002
        """Do nothing: Textual calls this when the widget is mounted, to lay out what is laid out already."""
        return AwaitComplete()
