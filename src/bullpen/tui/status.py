"""StatusBar: the team, the conversation, its state and its task on one line."""

from textual.content import Content
from textual.widgets import Static

from bullpen.tui.text import one_line
from bullpen.view.state import ConversationView
from bullpen.view.status_lines import seconds_of


class StatusBar(Static):
    """The first line of the screen."""

    DEFAULT_CSS = """
    StatusBar { dock: top; height: 1; padding: 0 1; background: $panel; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self) -> None:
        super().__init__(id="status", markup=False)

    def show(self, view: ConversationView) -> None:
        """Show the state of the conversation."""
        self.update(
            Content.assemble(
                (one_line(view.team, 30), "bold $primary"),
                (f"  {view.id}", "dim"),
                (f"  {_state(view)}", "$text-success" if view.status == "working" else "$text-accent"),
                f"  ▸ {one_line(view.task, 100)}" if view.task else "",
            )
        )


def _state(view: ConversationView) -> str:
    match view.status:
        case "working":
            working = [f"{one.member} {seconds_of(one)}" for one in view.working]
            names = ", ".join([*working, *(f"{one.name} {seconds_of(one)}" for one in view.checking)])
            waiting = f" +{len(view.queue)}" if view.queue else ""
            return f"● {one_line(names, 50)}{waiting}"
        case "paused":
            return "‖ paused"
        case "your_turn":
            return f"◆ {one_line(view.waits_for or '', 20)}"
        case _:
            return "○ idle"
