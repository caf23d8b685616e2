"""MembersPanel: who is working, for how long and on what; what everyone has used and remembers; who has failed."""

from collections.abc import Iterator

from textual.content import Content
from textual.widgets import Static

from bullpen.text.numbers import counted, day_or_clock, used
from bullpen.tui.text import one_line
from bullpen.tui.theme import COLORS, LIGHTS, sign_of
from bullpen.view.activity import ACTIVITIES, ASLEEP
from bullpen.view.memory import MemoryView
from bullpen.view.state import ConversationView, MemberView
from bullpen.view.status_lines import seconds_of

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
        self._shown = Content("")

    def show(self, view: ConversationView) -> None:
        """Show every member, and what all of them have used."""
        self._view = view
        members = [self._member(member) for member in view.members]
        total = used(view.total.tokens, view.total.cost_usd, is_estimate=view.total.is_estimate)
        shown = Content("\n").join([*members, *([Content.styled(f"\nΣ {total}", "dim")] if total else [])])
        # Drawn only if it says something else: the whole screen is laid out again with it.
        if not shown.is_same(self._shown):
            self._shown = shown
            self.update(shown)

    def on_resize(self) -> None:
        """Break the lines where they end now."""
        if self._view is not None:
            self.show(self._view)

    def _member(self, member: MemberView) -> Content:
        first = Content.assemble(
            sign_of(ACTIVITIES[member.activity]),
            (one_line(member.display_name, 18), f"bold {COLORS[member.color]}"),
            (f" {_kind(member)}", "dim"),
        )
        width = max(LEAST_WIDTH, self.content_size.width)
        remembered = list(_remembered(member.memory)) if member.memory else []
        parts = [*_lines(list(_spent(member)), width), *_lines(remembered, width)]
        review = (
            [Content.styled(f"  {one_line(member.review, LONGEST_REVIEW)}", "$text-accent")] if member.review else []
        )
        return Content("\n").join([first, *_says(member), *review, *parts])


def _kind(member: MemberView) -> str:
    return one_line(member.agent or "person", 14) + (" full" if member.has_full_permissions else "")


def _says(member: MemberView) -> Iterator[Content]:
    """Yield what an agent does now, unless it is asleep."""
    now = ACTIVITIES[member.activity]
    if member.working is not None:
        words = f"  {one_line(member.working.words, 16)} · {seconds_of(member.working)}"
        yield Content.styled(words, LIGHTS[now.light])
    elif member.agent and now != ASLEEP:
        yield Content.styled(f"  {now.word}", LIGHTS[now.light])


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
