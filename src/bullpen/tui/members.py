"""MembersPanel: who is working, for how long and on what; what everyone has used and remembers; who has failed."""

from collections.abc import Iterator

from textual.content import Content
from textual.widgets import Static

from bullpen.text.numbers import counted, day_or_clock, used
from bullpen.tui.text import one_line
from bullpen.tui.theme import COLORS
from bullpen.view.memory import MemoryView
from bullpen.view.state import ConversationView, MemberStatus, MemberView, Working
from bullpen.view.status_lines import seconds_of

SIGNS: dict[MemberStatus, tuple[str, str]] = {
    "working": ("●", "$text-success"),
    "undecided": ("✗", "$text-error"),
    "your_turn": ("◆", "$text-accent"),
    "idle": ("○", "dim"),
}
LEAST_WIDTH = 20
LONGEST_REVIEW = 120

Words = tuple[str, str]
"""A text and its style."""


class MembersPanel(Static):
    """A few lines for each member."""

    DEFAULT_CSS = "MembersPanel { height: auto; padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__(id="members", markup=False)
        self._view: ConversationView | None = None

    def show(self, view: ConversationView) -> None:
        """Show every member, and what all of them have used."""
        self._view = view
        members = [self._member(member) for member in view.members]
        total = used(view.total.tokens, view.total.cost_usd, is_estimate=view.total.is_estimate)
        self.update(Content("\n").join([*members, *([Content.styled(f"\nΣ {total}", "dim")] if total else [])]))

    def on_resize(self) -> None:
        """Break the lines where they end now."""
        if self._view is not None:
            self.show(self._view)

    def _member(self, member: MemberView) -> Content:
        sign, style = SIGNS[member.status]
        first = Content.assemble(
            (f"{sign} ", style),
            (one_line(member.display_name, 18), f"bold {COLORS[member.color]}"),
            (f" {_kind(member)}", "dim"),
        )
        doing = [_doing(member.working)] if member.working else []
        width = max(LEAST_WIDTH, self.content_size.width)
        remembered = list(_remembered(member.memory)) if member.memory else []
        parts = [*_lines(list(_spent(member)), width), *_lines(remembered, width)]
        review = (
            [Content.styled(f"  {one_line(member.review, LONGEST_REVIEW)}", "$text-accent")] if member.review else []
        )
        return Content("\n").join([first, *doing, *review, *parts])


def _kind(member: MemberView) -> str:
    return (
        "your turn"
        if member.status == "your_turn"
        else one_line(member.agent or "person", 14) + (" full" if member.has_full_permissions else "")
    )


def _doing(working: Working) -> Content:
    return Content.styled(f"  {one_line(working.doing, 16)} · {seconds_of(working)}", "$text-success")


def _spent(member: MemberView) -> Iterator[Words]:
    spent = member.spent
    if spent.turns:
        yield counted(spent.turns, "turn"), "dim"
    if usage := used(spent.tokens, spent.cost_usd, is_estimate=spent.is_estimate):
        yield usage, "dim"
    if spent.failures:
        yield f"{spent.failures:,} failed", "$text-error"


def _remembered(memory: MemoryView) -> Iterator[Words]:
    if not memory.session_id and not memory.copy_of:
        return
    yield from ((part, "dim") for part in memory.parts)
    if not memory.session_id:
        return
    yield f"since {day_or_clock(memory.since or 0)}", "dim"
    yield f"session {memory.short_id}", "dim"
    if memory.why:
        yield "forgets it in its next turn", "$text-warning"


def _lines(parts: list[Words], width: int) -> Iterator[Content]:
    """Yield parts on as few lines as they fit on, none of them broken."""
    line = Content("")
    for text, style in parts:
        part = Content.styled(text, style)
        longer = Content.assemble(line, (" · ", "dim"), part) if line else Content.assemble("  ", part)
        if line and longer.cell_length > width:
            yield line
            longer = Content.assemble("  ", part)
        line = longer
    if line:
        yield line
