"""BullpenApp: the themes, leaving, and a sentence instead of a traceback."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, ClassVar

from textual import on, work
from textual.app import App, ScreenStackError
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.events import Event, Key, MouseDown, MouseEvent, MouseMove, Paste
from textual.notifications import SeverityLevel
from textual.screen import Screen

from bullpen.conversation.conversation import Conversation
from bullpen.errors import BullpenError
from bullpen.terminal.notifier import SAVE_TITLE, Notifier
from bullpen.tui.chat import ChatScreen, at_work
from bullpen.tui.key_line import KeyLine
from bullpen.tui.note_line import NoteLine
from bullpen.tui.open_conversations import OpenConversations
from bullpen.tui.palette import CommandProvider, Palette
from bullpen.tui.removed_widgets import survive_removed_widgets
from bullpen.tui.second_press import QUESTION_SECONDS, SecondPress
from bullpen.tui.text import one_line, reading_seconds
from bullpen.tui.text_screen import ReadingScreen
from bullpen.tui.theme import DARK, LIGHT, THEMES, is_light
from bullpen.tui.updates import Waiting
from bullpen.view.activity import most_urgent
from bullpen.view.attention import Attention

TERMINAL_SECONDS = 2.0
"""How often we check that the terminal is still there."""


class BullpenApp(App[None]):
    """One conversation on the full screen."""

    TITLE = "bullpen"
    # Textual does not read the styles of the screen that it begins with.
    CSS = ChatScreen.CSS
    COMMANDS = {CommandProvider}  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+p", "command_palette", "Commands", tooltip="Every command, found by its words", priority=True),
        Binding("ctrl+t", "theme", "Dark or light", priority=True, show=False),
        Binding("ctrl+q", "leave", "Leave", priority=True),
    ]

    def __init__(
        self,
        conversation: Conversation,
        *,
        sender: str | None = None,
        conversations: OpenConversations | None = None,
        draft: str = "",
    ) -> None:
        super().__init__()
        survive_removed_widgets()
        self._conversation = conversation
        self._conversations = conversations
        self._sender = sender
        self._history: list[str] = []
        """What a person has said in any of the conversations."""
        self._drafts = {conversation.id: draft}
        """What a person was writing in a conversation when they opened another one."""
        self._second_press = SecondPress()
        self.notifier = Notifier(one_line(conversation.team.name, 60), self._write_to_terminal)
        """Tells a person who looks elsewhere that it is their turn."""
        self._waiting: dict[str, Attention] = {}
        """What waits for the person, in each conversation that is open."""
        self.crash: Exception | None = None
        """What ended the app, if it was not the person."""
        # Over a slow connection, animations only delay what they lead to.
        self.animation_level = "none"
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = LIGHT.name if is_light(os.environ.get("COLORFGBG", "")) else DARK.name

    @on(Waiting)
    def show_what_waits(self, event: Waiting) -> None:
        """Show in the window's title what waits for the person, and tell them if they look elsewhere."""
        self._waiting[event.conversation_id] = event.attention
        waiting = self._waiting.values()
        sign = most_urgent(one.activity for one in waiting).sign
        self.notifier.show(sign, sum(one.count for one in waiting), *(one.text for one in waiting))

    def on_app_focus(self) -> None:
        """Note that the terminal is in front."""
        self.notifier.is_in_front = True

    def on_app_blur(self) -> None:
        """Note that it is not."""
        self.notifier.is_in_front = False

    def _write_to_terminal(self, sequence: str) -> None:
        if self._driver is not None:
            self._driver.write(sequence)

    def get_default_screen(self) -> Screen[None]:
        """Return the conversation: there is no other screen to draw before it."""
        return self._screen_for(self._conversation)

    def on_mount(self) -> None:
        """Keep the title of the window."""
        self._write_to_terminal(SAVE_TITLE)
        if not self.is_headless:
            self.set_interval(TERMINAL_SECONDS, self._leave_without_terminal)

    async def _flush_next_callbacks(self) -> None:
        """Leave although a widget that is being removed is cancelled by that: Textual would end with a traceback."""
        try:
            await super()._flush_next_callbacks()
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise

    def _leave_without_terminal(self) -> None:
        """Leave if the terminal is gone, which SIGHUP does not tell a program that was started with nohup."""
        if not os.isatty(sys.stdin.fileno()):
            self.exit(return_code=1)

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        """Tell a person something, such as a refusal, for as long as they need to read it."""
        seconds = reading_seconds(message) if timeout is None else timeout
        super().notify(message, title=title, severity=severity, timeout=seconds, markup=markup)
        self.set_timer(seconds, self._refresh_notifications)

    def _refresh_notifications(self) -> None:
        """Show what the person was told last on a line of the screen; Textual's boxes would cover the work."""
        with suppress(ScreenStackError):
            self.call_later(self._show_notes, self.screen)

    async def _show_notes(self, screen: Screen[Any]) -> None:
        notes = list(self._notifications)
        if not screen.is_attached or (not notes and not screen.query(NoteLine)):
            return
        if not screen.query(NoteLine):
            keys = screen.query(KeyLine)
            await screen.mount(NoteLine(), before=keys.first() if keys else None)
        screen.query_one(NoteLine).show(notes)

    def action_theme(self) -> None:
        """Switch between dark and light."""
        self.theme = LIGHT.name if self.theme == DARK.name else DARK.name

    async def on_event(self, event: Event) -> None:
        """Let text be written wherever the focus is, before anything else sees the key."""
        is_text = isinstance(event, Paste) or (isinstance(event, Key) and event.is_printable)
        if isinstance(event, Key):
            self.notifier.key_pressed()
        if is_text and not event.is_forwarded:
            while isinstance(self.screen, ReadingScreen):
                self.screen.action_leave()
            if isinstance(self.screen, ChatScreen):
                self.screen.write()
        if not isinstance(event, MouseEvent) or not self._is_over_what_has_gone(event):
            await super().on_event(event)

    def _is_over_what_has_gone(self, event: MouseEvent) -> bool:
        """Return whether the mouse is over something removed since the last frame: selecting text there fails."""
        widget, _ = self.screen.get_widget_and_offset_at(event.x, event.y)
        return isinstance(event, MouseDown | MouseMove) and widget not in (None, self.screen) and widget.parent is None

    @on(ChatScreen.Left)
    @work(exclusive=True, group="opening")
    async def open_conversation(self, event: ChatScreen.Left) -> None:
        """Show another conversation, or a new one. In this one, turns continue and what was being written is kept."""
        await self._open(lambda opened: opened.open(event.conversation_id, event.team_path))

    @on(ChatScreen.ForkWanted)
    @work(group="opening")
    async def fork_conversation(self, event: ChatScreen.ForkWanted) -> None:
        """Fork a conversation, and show the new one."""
        if await self._open(lambda opened: opened.fork(event.conversation_id, event.at)):
            self.notify("This is the fork. ctrl+l goes back to the other one.", markup=False)

    async def _open(self, wanted: Callable[[OpenConversations], Awaitable[Conversation]]) -> bool:
        """Show the conversation that is wanted, or say why that is not possible."""
        if self._conversations is None:
            self.notify("Other conversations cannot be opened here.", markup=False)
            return False
        try:
            conversation = await wanted(self._conversations)
        except BullpenError as error:
            self.notify(one_line(str(error), 500), severity="warning", markup=False)
            return False
        if conversation is not self._conversation and isinstance(self.screen, ChatScreen):
            await self._show(conversation, self.screen)
        return True

    async def _show(self, conversation: Conversation, leaving: ChatScreen) -> None:
        """Show a conversation. The first one stays below all others, with what is being written in it."""
        first = self.screen_stack[0]
        if leaving is not first:
            self._drafts[self._conversation.id] = leaving.draft
        self._conversation = conversation
        if isinstance(first, ChatScreen) and first.conversation is conversation:
            await super().pop_screen()
            return
        screen = self._screen_for(conversation)
        await (self.push_screen(screen) if leaving is first else self.switch_screen(screen))

    def pop_screen(self) -> AwaitComplete:
        """Remove a dialog. One that is left twice, by two quick keys, does not take the conversation with it."""
        return AwaitComplete() if isinstance(self.screen, ChatScreen) else super().pop_screen()

    def _screen_for(self, conversation: Conversation) -> ChatScreen:
        folder = str(self._conversations.loaded.path.parent) if self._conversations else ""
        draft = self._drafts.pop(conversation.id, "")
        return ChatScreen(conversation, sender=self._sender, folder=folder, draft=draft, history=self._history)

    def action_command_palette(self) -> None:
        """Show every command."""
        if isinstance(self.screen, ChatScreen):
            self.push_screen(Palette())

    def action_leave(self) -> None:
        """Leave; while turns are running, only the second time."""
        running = self._conversations.running if self._conversations else list(self._conversation.running.values())
        question = f"{at_work(running)}. ctrl+q again cancels that and leaves."
        if not running or self._second_press.confirms(question):
            self.exit()
        else:
            self.notify(question, severity="warning", timeout=QUESTION_SECONDS, markup=False)

    def action_help_quit(self) -> None:
        """Answer ctrl+c, which many press to leave or to stop something."""
        self.notify("ctrl+q leaves. esc cancels running turns.", markup=False)

    def _handle_exception(self, error: Exception) -> None:
        """End quietly: the caller tells the person in a sentence what happened."""
        self.crash = self.crash or error
        self._return_code = 1
        if self._exception is None:
            self._exception = error
            self._exception_event.set()
        self._close_messages_no_wait()
