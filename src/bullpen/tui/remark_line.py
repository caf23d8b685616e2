"""What an agent only announced before it used tools: a dim line, or one line that opens into several."""

from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from bullpen.tui.fold import Fold
from bullpen.tui.text import one_line
from bullpen.view.reply_parts import ReplyPart


def remark_line(part: ReplyPart, lines: str) -> Widget:
    """Return a line for remarks; `lines` are as many of them as are laid out, safe to show."""
    said = Content.styled(lines, "$text-muted")
    if len(part.remarks) == 1:
        return Static(said, classes="remark", markup=False)
    return Fold(Content(one_line(part.heading, 300)), lambda: [Static(said, markup=False)])
