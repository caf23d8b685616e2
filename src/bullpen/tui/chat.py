"""ChatScreen: the conversation, its members and queue, the notice and the composer, and what each key does."""

from collections.abc import Awaitable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.events import Key
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from bullpen.conversation.conversation import Conversation
from bullpen.conversation.running_turn import RunningTurn
from bullpen.errors import BullpenError
from bullpen.text.numbers import counted
from bullpen.tui.change_line import ChangedLine
from bullpen.tui.composer import Composer, SuggestionList
from bullpen.tui.key_line import KeyLine
from bullpen.tui.members import MembersPanel
from bullpen.tui.message import MessageView
from bullpen.tui.new_below import NewBelow
from bullpen.tui.note_line import NoteLine
from bullpen.tui.notice import NoticeBar, question_of
from bullpen.tui.queue import QueuePanel
from bullpen.tui.running_heads import RunningHeads
from bullpen.tui.second_press import QUESTION_SECONDS, SecondPress
from bullpen.tui.slash_commands import SCREEN_COMMANDS, SlashCommands
from bullpen.tui.status import StatusBar
from bullpen.tui.text import one_line
from bullpen.tui.text_screen import TextScreen
from bullpen.tui.transcript import Transcript
from bullpen.tui.turn import TurnView
from bullpen.tui.updates import CardsShown, Changed, Updates, Waiting
from bullpen.view.best_of import result_changes, results_of
from bullpen.view.change_reading import change_part
from bullpen.view.choices import Choice, Decision
from bullpen.view.command_arguments import Text
from bullpen.view.commands import ACTIONS, Command, Typed, is_command_line, read_form, typed_choice
from bullpen.view.completion import names_of
from bullpen.view.entered import JUST_CAME, Entered, entered
from bullpen.view.listing import conversations_beside
from bullpen.view.status_lines import why_last_waits

if TYPE_CHECKING:
    from bullpen.tui.changes_screen import ChangesScreen

WIDE, HIGH = 100, 20
WARM_UP_SECONDS = 0.5
MOST_ADDRESSEES = 120
"""Characters that tell what Enter does."""
MOST_RECORDS = 50
"""Records of changes that are shown line by line at once, the latest."""


def _key(key: str, action: str, word: str, help_text: str, *, show: bool = False) -> Binding:
    """Return a key that works everywhere on this screen."""
    display = key.upper() if key[0] == "f" else None
    return Binding(key, action, word, tooltip=help_text, priority=True, show=show, key_display=display)


class ChatScreen(Screen[None]):
    """One conversation. What a person wants is done by the conversation; what goes wrong is said in a sentence."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-short"), (HIGH, "-high")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        _key("f1", "help", "Help", "This list", show=True),
        _key("f2", "panel", "Panel", "Show or hide the members and the queue"),
        _key("f3", "search", "Find", "Find what was said, and go there", show=True),
        _key("f4", "task", "Task", "Read and change the team's task", show=True),
        _key("f9", "cancel", "Cancel", "Cancel the selected turn, or every running turn; asks first"),
        _key("f10", "forget", "Forget", "What each agent remembers; let one begin a new session"),
        Binding(
            "escape", "cancel_all", "Cancel", tooltip="Cancel every running turn; asks first. Else back to writing"
        ),
        _key("ctrl+o", "prompt", "Prompt", "What an agent was given for a message, exactly", show=True),
        _key("ctrl+r", "diff", "Diff", "What a turn changed in the files, line by line"),
        _key("f12", "changes", "Changes", "Everything that was changed in the files"),
        _key("ctrl+g", "queue", "Queue", "To the queue"),
        _key("ctrl+l", "conversations", "Conversations", "Open another conversation of this folder, or a new one"),
        _key("pageup", "page(-1)", "Up", "Scroll up in the conversation"),
        _key("pagedown", "page(1)", "Down", "Scroll down in the conversation"),
        _key("ctrl+end", "newest", "Newest", "To the newest message"),
    ]
    CSS = """
    ChatScreen { layout: vertical; background: $background; }
    ChatScreen #middle { height: 1fr; }
    ChatScreen #side { width: 36; border-left: vkey $border-blurred; padding: 1 0 0 0;
        scrollbar-size-vertical: 1; }
    ChatScreen.-narrow #side { display: none; }
    ChatScreen.-narrow.with-panel #side { display: block; width: 30; }
    ChatScreen.-wide.without-panel #side { display: none; }
    ChatScreen #side > .heading { color: $text-muted; text-style: bold; padding: 0 1; }
    ChatScreen #side > #members { margin: 0 0 1 0; }
    ChatScreen > Composer { margin: 0 1; }
    ChatScreen > Footer { padding: 0 1; }
    ChatScreen FooterKey { margin: 0 2 0 0; }
    ChatScreen.-narrow FooterKey { margin: 0 1 0 0; }
    ChatScreen.-narrow #transcript { padding: 0 1; }
    /* The composer and the question above it are always there: in 14 lines, both with a note or suggestions. */
    ChatScreen.-short RunningHeads { max-height: 1; }
    ChatScreen.-short.with-note RunningHeads { display: none; }
    ChatScreen.-short NoticeBar { max-height: 7; }
    ChatScreen.-short.with-note NoticeBar { max-height: 6; }
    ChatScreen.-short.with-suggestions NoticeBar { max-height: 1; }
    ChatScreen.-short #asked { max-height: 2; scrollbar-size-vertical: 1; }
    ChatScreen.-short.with-note #asked { max-height: 1; }
    ChatScreen.-short #choices { max-height: 3; overflow-y: auto; scrollbar-size-vertical: 1; }
    ChatScreen.-short NoteLine { max-height: 2; }
    ChatScreen.-short SuggestionList { max-height: 5; }
    ChatScreen.-short Composer { max-height: 5; }
    ChatScreen.-short.with-card Composer { max-height: 3; }
    """

    class Left(Message):
        """A person wants to be in another conversation; None is a new one."""

        def __init__(self, conversation_id: str | None, team_path: str) -> None:
            super().__init__()
            self.conversation_id = conversation_id
            self.team_path = team_path

    class ForkWanted(Message):
        """A person wants a new conversation with the messages up to a number, or with all."""

        def __init__(self, conversation_id: str, at: int | None) -> None:
            super().__init__()
            self.conversation_id = conversation_id
            self.at = at

    def __init__(
        self,
        conversation: Conversation,
        *,
        sender: str | None,
        folder: str = "",
        draft: str = "",
        history: list[str] | None = None,
    ) -> None:
        super().__init__()
        self.conversation = conversation
        self._sender = sender
        self._folder = folder
        self._composer = Composer(names=names_of(conversation.team), more=SCREEN_COMMANDS, history=history)
        self._draft = draft
        self._second_press = SecondPress()
        self._asked_to_cancel = ""
        self._updates = Updates(self, conversation, sender)
        # Made here, and not looked for: a key may come before they are on the screen.
        self._transcript = Transcript(conversation, colors=self._updates.view.colors)
        self._queue, self._notice, self._suggestions = QueuePanel(), NoticeBar(), SuggestionList()
        self._commands = SlashCommands(self, conversation, sender, self.say)
        self._listed: ChangesScreen | None = None
        """All changes, while they are on the screen above this one."""
        self._on_escape: tuple[bool, bool] | None = None
        """What the footer says of escape: whether it cancels, and whether it stops an agent that asks."""

    def compose(self) -> ComposeResult:
        """Yield everything on the screen."""
        yield StatusBar()
        with Horizontal(id="middle"):
            yield self._transcript
            with VerticalScroll(id="side", can_focus=False):
                yield Static("Members", classes="heading")
                yield MembersPanel()
                yield Static("Queue", classes="heading")
                yield self._queue
        yield NewBelow()
        yield RunningHeads()
        yield self._notice
        yield NoteLine()
        yield self._suggestions
        yield self._composer
        yield KeyLine()

    def on_mount(self) -> None:
        """Let the person write, and follow the conversation."""
        self.watch(self, "focused", self._show_where_keys_go)
        self._composer.take_back(self._draft)
        self._composer.focus()
        self.run_worker(self._updates.follow(), exclusive=True, group="events", exit_on_error=True)
        self.set_interval(1.0, self._updates.tick)
        self.set_timer(WARM_UP_SECONDS, self._warm_up)

    def _warm_up(self) -> None:
        """Import what the first reply needs while nobody waits for it."""
        self.run_worker(partial(import_module, "bullpen.tui.markdown"), thread=True, exit_on_error=False)

    @property
    def draft(self) -> str:
        """What the person is writing."""
        return self._composer.draft

    # What a person says

    @on(Composer.Sent)
    async def send(self, event: Composer.Sent) -> None:
        """Say it, or run it if it is a command. What does not work is back in the composer."""
        if await self.attempt(self._send(event.text, event.seen)):
            self._composer.remember(event.text)
        else:
            self._composer.take_back(event.text)

    @on(Composer.Chosen)
    async def choose_with_key(self, event: Composer.Chosen) -> None:
        """Answer what the card asks."""
        await self._choose(event.choice)

    @on(Composer.Changed)
    def show_enter(self) -> None:
        """Show on the composer's border what Enter does."""
        if (text := self._composer.text) and self.focused is self._composer:
            completes = self._composer.completes
            line = f"completes {completes}" if completes else self._entered(text, self._composer.seen).line
            self._composer.border_subtitle = Content(one_line(line, MOST_ADDRESSEES))
        else:
            self._show_where_keys_go(self.focused)

    @on(CardsShown)
    def show_cards(self) -> None:
        """Note what can be answered now that it is on the screen, and not before."""
        self._composer.cards.show(self._notice.shown if self.is_current else ())
        self.show_enter()

    def on_screen_suspend(self) -> None:
        """Let no key answer what another screen covers."""
        self._composer.cards.show(())

    def on_screen_resume(self) -> None:
        """Note what can be seen again."""
        self.call_after_refresh(self.show_cards)

    @on(Composer.Suggested)
    def suggest(self, event: Composer.Suggested) -> None:
        """Show what can follow."""
        self._suggestions.show(event.options, event.selected)
        self.show_enter()

    @on(Composer.Left)
    def leave_composer(self) -> None:
        """Go to the newest message."""
        views = self._transcript.views
        if views:
            views[-1].focus()

    @on(Transcript.Unseen)
    def show_unseen(self, event: Transcript.Unseen) -> None:
        """Say how many messages have come below."""
        self.query_one(NewBelow).show(event.count)

    @on(Composer.Ended)
    async def action_newest(self) -> None:
        """Show the newest message."""
        await self._transcript.show_newest()

    def write(self) -> None:
        """Let the next key write, wherever the focus is."""
        if self.focused is not self._composer and self._composer.is_attached:
            self.set_focus(self._composer)

    def on_key(self, event: Key) -> None:
        """Write what was typed before the composer was there."""
        if event.is_printable:
            self._composer.post_message(event.copy())

    # What a person does with keys

    def action_help(self) -> None:
        """Show every key."""
        from bullpen.tui.all_keys import all_keys
        from bullpen.tui.help_screen import HelpScreen
        from bullpen.view.state import conversation_view

        self.app.push_screen(HelpScreen(conversation_view(self.conversation), all_keys(self.BINDINGS)))

    def action_panel(self) -> None:
        """Show or hide the members and the queue."""
        self.toggle_class("with-panel" if self.has_class("-narrow") else "without-panel")
        self.call_after_refresh(self.show_enter)

    def action_queue(self) -> None:
        """Go to the queue."""
        # In a narrow terminal the panel stays only if it was asked for in one.
        self.set_class(self.has_class("-narrow") or self.has_class("with-panel"), "with-panel")
        self.remove_class("without-panel")
        # The panel may have been hidden, and has its place only after the next refresh.
        self.call_after_refresh(self._queue.focus)
        self.call_after_refresh(self._queue.scroll_visible, animate=False)

    def action_page(self, by: int) -> None:
        """Scroll the conversation by a page."""
        scroll = self._transcript.scroll_page_down if by > 0 else self._transcript.scroll_page_up
        scroll(animate=False)

    @work
    async def action_search(self, words: str = "") -> None:
        """Find something, and go there."""
        from bullpen.tui.search_screen import SearchScreen

        sequence = await self.app.push_screen_wait(SearchScreen(self.conversation, words))
        if sequence is not None:
            await self._transcript.open_at(sequence)

    @work
    async def action_conversations(self, words: str = "") -> None:
        """Open another conversation, or a new one."""
        from bullpen.tui.conversations_screen import ConversationsScreen

        listed = await self.conversation.read(conversations_beside, self._folder)
        chosen = await self.app.push_screen_wait(ConversationsScreen(listed, self.conversation.id, words))
        if chosen is not None:
            self.post_message(
                self.Left(chosen or None, next((one.team_path for one in listed if one.id == chosen), ""))
            )

    def action_new(self) -> None:
        """Begin a new conversation."""
        self.post_message(self.Left(None, ""))

    def action_fork(self, at: int | None = None) -> None:
        """Fork the conversation at the message with this number, else at the selected one, else at its end."""
        selected = self._transcript.selected
        number = at if at is not None or selected is None else selected.sequence
        self.post_message(self.ForkWanted(self.conversation.id, number))

    def begin_command(self, command: Command) -> None:
        """Run a command, or let the person type what it needs; what they were writing is one key up."""
        if command.argument and not command.argument.startswith("["):
            self._composer.replace_draft(f"/{command.name} ")
            self.write()
        else:
            self.post_message(Composer.Sent(f"/{command.name}"))

    @work
    async def action_task(self) -> None:
        """Change the team's task."""
        from bullpen.tui.task_screen import TaskScreen

        task = await self.app.push_screen_wait(TaskScreen(self.conversation.team_task or ""))
        if task is not None:
            await self.attempt(self.conversation.set_task(task or None, by=self._sender))

    async def action_choose(self, action: str, number: int, about: str) -> None:
        """Do what the button of a choice says, if it is still offered."""
        choice = self._choice(action, number)
        if choice is None or about != question_of(choice):
            self.notify("That is not asked any more. Nothing was answered.", severity="warning", markup=False)
        elif choice.key and choice not in _choices(self._composer.cards.settled):
            self.notify(JUST_CAME, severity="warning", markup=False)
        elif choice.action == "discard" and not self.is_sure(_again(choice), about):
            return
        else:
            await self._choose(choice)

    async def _choose(self, choice: Choice) -> None:
        if choice.action == "pick":
            self.action_compare(choice.given["turn"])
        elif choice.begins:
            self._composer.replace_draft(choice.begins)
            self.write()
        else:
            await self.attempt(self._run(typed_choice(choice)))

    @on(Waiting)
    def show_escape(self) -> None:
        """Say on the footer what escape does now."""
        if not self.conversation.running and not self.conversation.running_checks:
            self._take_back(self._asked_to_cancel)
        now = self._can_cancel, self._choice("stop") is not None
        if now != self._on_escape:
            self._on_escape = now
            self.refresh_bindings()

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """What each key does now: escape has the name of what it does."""
        active = super().active_bindings
        if (esc := active.get("escape")) is not None and esc.binding.action == "cancel_all":
            # While somebody works, nothing else on the line is as important.
            word = esc.binding.description if self._choice("stop") is None else "Stop"
            first = {"escape": esc._replace(binding=replace(esc.binding, description=word, show=self._can_cancel))}
            active = first | {key: one for key, one in active.items() if key != "escape"}
        return active

    @property
    def _can_cancel(self) -> bool:
        return bool(self.conversation.running or self.conversation.running_checks)

    @work
    async def action_compare(self, turn: str = "") -> None:
        """Show several results beside each other, and do with them what the person chooses."""
        from bullpen.tui.compare_screen import CompareScreen

        try:
            results = await self.conversation.read(results_of, turn)
            changes = [await self.conversation.read(result_changes, one) for one in results.results]
        except BullpenError as error:
            self.notify(one_line(str(error), 500), severity="warning", markup=False)
            return
        chosen = await self.app.push_screen_wait(CompareScreen(results, changes, self.conversation))
        if chosen is not None:
            which = {"member": chosen.member} if chosen.member else {"everything": "true"}
            given = {"turn": results.round, **which}
            await self.attempt(self._run(Typed(ACTIONS[chosen.action], read_form(ACTIONS[chosen.action].takes, given))))

    @work
    async def action_forget(self) -> None:
        """Show what the agents remember, and let one of them begin a new session in its next turn."""
        from bullpen.tui.member_screen import MemberScreen

        remembered = {one.name: one.memory.short for one in self._updates.view.members if one.memory is not None}
        member = await self.app.push_screen_wait(MemberScreen("Who should begin a new session?", remembered))
        if member is not None:
            await self.attempt(self.conversation.forget(member, by=self._sender))

    async def action_cancel(self) -> None:
        """Cancel the turn that has the focus, else every running turn."""
        await self._cancel("F9", self.focused.turn_id if isinstance(self.focused, TurnView) else None)

    async def action_cancel_all(self) -> None:
        """Cancel every running turn and check; if none is running, go back to writing."""
        if self._can_cancel or self.focused is self._composer:
            await self._cancel("esc")
        else:
            self.write()

    async def action_prompt(self) -> None:
        """Show what the agent that said a message was given."""
        view = self._transcript.chosen
        if view is None or view.turn_id is None:
            self.notify("No agent was prompted for this. Move to a message of an agent.", markup=False)
        else:
            await self.attempt(self._commands.explain(Text(text=view.turn_id)))

    async def action_diff(self) -> None:
        """Show what the turn changed that ended with the selected message, else the latest that changed something."""
        view = self._transcript.selected
        await self.attempt(self._commands.diff(Text(text=(view.turn_id or "") if view is not None else "")))

    @work
    async def action_changes(self) -> None:
        """List what was changed in the conversation, and show what the person chooses."""
        from bullpen.tui.changes_screen import ChangesScreen

        changes = await self._commands.all_changes()
        if not changes.turns:
            self.notify("No change of files is recorded in this conversation.", markup=False)
            return
        listed = self._listed = ChangesScreen(changes)
        try:
            chosen = await self.app.push_screen_wait(listed)
        finally:
            self._listed = None
        if chosen is not None:
            await self.attempt(self._show_changes(*chosen))

    @on(Changed)
    @work(exclusive=True, group="changes")
    async def renew_changes(self) -> None:
        """Show in the list of changes what has changed by now, if it is on the screen."""
        # If the disk fails just now, the list is as it was.
        with suppress(BullpenError):
            changes = await self._commands.all_changes() if self._listed is not None else None
            if changes is not None and self._listed is not None and self._listed.is_mounted:
                self._listed.renew(changes)

    @on(ChangedLine.Opened)
    async def show_changed(self, event: ChangedLine.Opened) -> None:
        """Show one record line by line."""
        await self.attempt(self._show_changes((str(event.number),)))

    async def _show_changes(self, keys: Sequence[str], path: str = "") -> None:
        # Each may have a megabyte of lines.
        records = [await self.conversation.read(change_part, key) for key in keys[-MOST_RECORDS:]]
        self._commands.show_changes(records, path)

    async def say(self, text: str) -> bool:
        """Say or run something that was written elsewhere; a comment that could not be said is in the composer."""
        is_said = await self.attempt(self._send(text))
        if not is_said and not is_command_line(text):
            self._composer.take_back(text)
        return is_said

    @on(QueuePanel.Reordered)
    async def reorder(self, event: QueuePanel.Reordered) -> None:
        """Let turns begin in another order; the same turn stays selected."""
        await self.attempt(self.conversation.reorder(event.turn_ids, by=self._sender))

    @on(QueuePanel.Dropped)
    async def drop(self, event: QueuePanel.Dropped) -> None:
        """Drop turns, if the person is sure."""
        which = counted(len(event.turn_ids), "waiting turn") if event.turn_ids else "every waiting turn"
        if self.is_sure(f"{event.key} again drops {which}."):
            await self.attempt(self.conversation.drop(turn_ids=event.turn_ids, by=self._sender))

    @on(MessageView.Opened)
    def read_whole(self, event: MessageView.Opened) -> None:
        """Show a message as it was said."""
        who = one_line(event.message.speaker.role_name, 40)
        title = Content.assemble((who, "bold"), f"  {len(event.message.content):,} characters")
        self.app.push_screen(TextScreen(title, event.message.content))

    # Helpers

    def is_sure(self, question: str, about: str = "") -> bool:
        """Return whether a key that cannot be undone was pressed twice; the first time, say what the second does."""
        is_sure = self._second_press.confirms(question, about)
        if is_sure:
            self.app.clear_notifications()
        else:
            self.notify(question, severity="warning", timeout=QUESTION_SECONDS, markup=False)
        return is_sure

    def _take_back(self, question: str) -> None:
        """Remove what was asked, if nothing else was said since."""
        if [note.message for note in self.app._notifications][-1:] == [question]:
            self.app.clear_notifications()

    async def _cancel(self, key: str, turn_id: str | None = None) -> None:
        """Cancel one running turn or all of them, if the person is sure, and say which."""
        running = [turn for turn in self.conversation.running.values() if turn_id in (None, turn.turn.id)]
        checks = [] if turn_id else [one_line(one.name, 40) for one in self.conversation.running_checks]
        doing = at_work(running) if running else f"The check {', '.join(checks)} is running"
        self._asked_to_cancel = f"{doing}. {key} again cancels that."
        if (running or checks) and not self.is_sure(self._asked_to_cancel):
            return
        self.app.clear_notifications()
        cancel = ACTIONS["cancel"]
        await self.attempt(self._run(Typed(cancel, read_form(cancel.takes, {"turn": turn_id or ""}))))

    def _show_where_keys_go(self, focused: Widget | None) -> None:
        within = focused.ancestors_with_self if focused is not None else []
        kinds = {type(node) for node in within}
        place = next((words for kind, words in PLACES.items() if kind in kinds), "")
        line = f"{place} · type to write" if place else self._why_last_waits()
        self._composer.border_subtitle = Content(one_line(line, MOST_ADDRESSEES))

    def _why_last_waits(self) -> str:
        """Return why what was said last does not begin, where the panel does not show it."""
        is_told = not self.conversation.waiting or self.query_one("#side").display
        return "" if is_told else why_last_waits(self._updates.view)

    async def attempt(self, work: Awaitable[Any]) -> bool:
        """Do something and show the state after it; if it does not work, say why."""
        try:
            await work
        except BullpenError as error:
            self.notify(one_line(str(error), 500), severity="warning", markup=False)
            return False
        await self._updates.show_state()
        return True

    def _entered(self, text: str, seen: Sequence[Decision]) -> Entered:
        return entered(self.conversation, text, seen, self._sender, SCREEN_COMMANDS)

    async def _send(self, text: str, seen: Sequence[Decision] | None = None) -> None:
        typed = self._entered(text, self._notice.shown if seen is None else seen).command
        if typed is None:
            await self.conversation.say(text, sender=self._sender)
            await self._transcript.show_newest()
        else:
            await self._run(typed)

    async def _run(self, typed: Typed) -> None:
        """Run a command. /dismiss removes trouble first, which only this screen knows about."""
        if typed.command.name != "dismiss" or not await self._updates.dismiss_trouble():
            await self._commands.run(typed)

    def _choice(self, action: str, number: int = -1) -> Choice | None:
        """Return the choice that the notice offers for an action, or the one with this number if it is that."""
        choices = self._notice.decision.choices if self._notice.decision else ()
        if 0 <= number < len(choices) and choices[number].action == action:
            return choices[number]
        return next((choice for choice in choices if choice.action == action), None)


def _again(choice: Choice) -> str:
    """Return what is asked first before something that cannot be undone."""
    return f"Once more: {one_line(choice.purpose, 100)} ({choice.typed})."


def _choices(cards: Iterable[Decision]) -> list[Choice]:
    return [choice for card in cards for choice in card.choices]


def names(running: Iterable[RunningTurn]) -> str:
    """Return whose turns these are."""
    return one_line(", ".join(turn.turn.member for turn in running), 100)


def at_work(running: Collection[RunningTurn]) -> str:
    """Return who is working: "max is working"."""
    return f"{names(running)} {'is' if len(running) == 1 else 'are'} working"


PLACES: dict[type[Widget], str] = {
    Transcript: "reading · ↑ ↓ move · enter opens",
    QueuePanel: "queue · shift+↑ ↓ move · delete drops",
    NoticeBar: "deciding · enter chooses",
}
"""Where the keys go, as the frame of the composer says it while they do not write."""
