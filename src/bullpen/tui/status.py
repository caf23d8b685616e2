"""StatusBar: the team, the conversation and its task on one line; in a narrow terminal, who is at work too."""

from textual.content import Content
from textual.widgets import Static

from bullpen.conversation.conversation import Conversation
from bullpen.tui.text import duration, one_line


class StatusBar(Static):
    """The first line of the screen."""

    DEFAULT_CSS = """
    StatusBar { dock: top; height: 1; padding: 0 1; background: $panel; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, conversation: Conversation) -> None:
        super().__init__(id="status", markup=False)
        self._conversation = conversation

    def on_mount(self) -> None:
        """Let the time of those at work run."""
        self.show()
        self.set_interval(1.0, self.show)

    def show(self) -> None:
        """Show how things stand."""
        conversation = self._conversation
        task = f"  ▸ {one_line(conversation.team_task, 100)}" if conversation.team_task else ""
        self.update(
            Content.assemble(
                (f"{one_line(conversation.team.name, 30)}", "bold $primary"),
                (f"  {conversation.id}", "dim"),
                (f"  {self._state()}", "$text-success" if conversation.running else "$text-accent"),
                task,
            )
        )

    def _state(self) -> str:
        conversation = self._conversation
        if conversation.running:
            names = ", ".join(f"{turn.turn.member} {duration(turn.seconds)}" for turn in conversation.running.values())
            waiting = f" +{len(conversation.waiting)}" if conversation.waiting else ""
            return f"● {one_line(names, 50)}{waiting}"
        if conversation.undecided or conversation.paused is not None:
            return "‖ paused"
        if conversation.waits_for is not None:
            return f"◆ {one_line(conversation.waits_for, 20)}"
        return "○ idle"
