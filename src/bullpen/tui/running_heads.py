"""RunningHeads: who works, on what and for how long, in lines above the composer that never scroll away."""

from collections.abc import Iterator

from textual.content import Content
from textual.widgets import Static

from bullpen.text.numbers import used
from bullpen.tui.text import one_line
from bullpen.tui.theme import COLORS, sign_of
from bullpen.view.activity import ACTIVITIES, WORKING
from bullpen.view.state import ConversationView, RunningCheck, Working
from bullpen.view.status_lines import seconds_of

MOST_LINES = 3
WIDE = 64
"""Columns from which on the first line says how to cancel and to tell; elsewhere the keys below do."""


class RunningHeads(Static):
    """A line for each running turn and check; only visible while there are any."""

    DEFAULT_CSS = """
    RunningHeads { display: none; height: auto; padding: 0 2; text-wrap: nowrap; text-overflow: ellipsis; }
    RunningHeads.busy { display: block; }
    """

    def __init__(self) -> None:
        super().__init__(id="running", markup=False)
        self._view: ConversationView | None = None
        self._shown = Content("")

    def show(self, view: ConversationView) -> None:
        """Show those that run now, and how many others if there are many."""
        self._view = view
        lines = list(_lines(view))
        if lines:
            lines[0] = Content.assemble(lines[0], (_keys(view, self.size.width), "dim"))
        if len(lines) > MOST_LINES:
            more = f"  +{len(lines) - MOST_LINES + 1} more"
            lines = [*lines[: MOST_LINES - 1], Content.styled(more, "dim")]
        shown = Content("\n").join(lines)
        if not shown.is_same(self._shown):
            self._shown = shown
            self.set_class(bool(lines), "busy")
            self.update(shown)

    def on_resize(self) -> None:
        """Say as much as there is room for now."""
        if self._view is not None:
            self.show(self._view)


def _lines(view: ConversationView) -> Iterator[Content]:
    names = {member.name: member.display_name for member in view.members}
    for one in _working(view):
        yield _turn(one, names.get(one.member, one.member), COLORS[view.colors.get(one.member, "white")])
    for check in view.checking:
        yield _check(check)


def _working(view: ConversationView) -> list[Working]:
    """Return who works; who waits for a person is never one of those that there is no room for."""
    return sorted(view.working, key=lambda one: one.activity != "waits")


def _turn(one: Working, name: str, color: str) -> Content:
    usage = used(one.tokens, one.cost_usd, is_estimate=one.is_estimate)
    spent = f" · {usage}" if usage else ""
    return Content.assemble(
        sign_of(ACTIVITIES[one.activity]),
        (one_line(name, 24), f"bold {color}"),
        f" {one_line(one.words, 30)} · {seconds_of(one)}",
        (spent, "dim"),
    )


def _check(check: RunningCheck) -> Content:
    return Content.assemble(sign_of(WORKING), (one_line(check.name, 30), "bold"), f" runs · {seconds_of(check)}")


def _keys(view: ConversationView, width: int) -> str:
    """Return how to cancel and to tell, as far as there is room."""
    if width < WIDE:
        return ""
    return f"   esc cancel · /tell {one_line(_working(view)[0].member, 20)} …" if view.working else "   esc cancel"
