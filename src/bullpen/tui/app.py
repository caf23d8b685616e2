"""BullpenApp: the themes, leaving, and a sentence instead of a traceback."""

import os
import time
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from bullpen.conversation.conversation import Conversation
from bullpen.tui.chat import ChatScreen
from bullpen.tui.text import one_line
from bullpen.tui.theme import DARK, LIGHT, THEMES, is_light

# How long the question whether to leave is open.
LEAVING_SECONDS = 5.0


class BullpenApp(App[None]):
    """One conversation on the full screen."""

    TITLE = "bullpen"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+t", "theme", "Dark or light", priority=True, show=False),
        Binding("ctrl+q", "leave", "Leave", priority=True),
    ]

    def __init__(self, conversation: Conversation, *, sender: str | None = None) -> None:
        super().__init__()
        self._conversation = conversation
        self._sender = sender
        self._asked_to_leave_at = float("-inf")
        self.crash: Exception | None = None
        """What ended the app, if it was not the person."""
        # Over a slow connection, animations only delay what they lead to.
        self.animation_level = "none"
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = LIGHT.name if is_light(os.environ.get("COLORFGBG", "")) else DARK.name

    def on_mount(self) -> None:
        """Show the conversation."""
        self.push_screen(ChatScreen(self._conversation, sender=self._sender))

    def action_theme(self) -> None:
        """Switch between dark and light."""
        self.theme = LIGHT.name if self.theme == DARK.name else DARK.name

    def action_leave(self) -> None:
        """Leave; while turns are running, only the second time."""
        running = self._conversation.running.values()
        now = time.monotonic()
        if running and now - self._asked_to_leave_at > LEAVING_SECONDS:
            self._asked_to_leave_at = now
            names = one_line(", ".join(turn.turn.member for turn in running), 100)
            working = f"{names} {'is' if len(running) == 1 else 'are'} working"
            self.notify(f"{working}. ctrl+q again cancels that and leaves.", severity="warning", markup=False)
        else:
            self.exit()

    def action_help_quit(self) -> None:
        """Answer ctrl+c, which many press to leave or to stop something."""
        self.notify("ctrl+q leaves. F9 stops running turns.", markup=False)

    def _handle_exception(self, error: Exception) -> None:
        """End quietly: the caller tells the person in a sentence what happened."""
        self.crash = self.crash or error
        self._return_code = 1
        if self._exception is None:
            self._exception = error
            self._exception_event.set()
        self._close_messages_no_wait()
