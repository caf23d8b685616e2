"""StatusBar: the team, the state of the conversation, its id and its task on one line."""

from textual.content import Content
from textual.widgets import Static

from bullpen.tui.text import one_line
from bullpen.tui.theme import LIGHTS
from bullpen.view.state import ConversationView

NARROW = 60
"""The columns of a small screen, where the name of the team is cut first: the state is always seen."""


class StatusBar(Static):
    """The first line of the screen."""

    DEFAULT_CSS = """
    StatusBar { dock: top; height: 1; padding: 0 1; background: $panel; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self) -> None:
        super().__init__(id="status", markup=False)

    def show(self, view: ConversationView, person: str | None = None) -> None:
        """Show the state of the conversation, as one person sees it."""
        now, waiting = view.activity_for(person), f" +{len(view.queue)}" if view.queue else ""
        line = Content.assemble(
            (one_line(view.team, 30 if self.app.size.width > NARROW else 20), "bold $primary"),
            (f"  {now.sign} {one_line(now.word, 40)}", LIGHTS[now.light]),
            (waiting, "dim"),
            (f"  {view.id}", "dim"),
            f"  ▸ {one_line(view.task, 100)}" if view.task else "",
        )
        # It is always one line: the others stay where they are.
        self.update(line, layout=False)
