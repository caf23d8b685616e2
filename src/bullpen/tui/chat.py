"""ChatScreen: the conversation, its members and queue, the notice and the composer, and what each key does."""

from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, Static

from bullpen.conversation.conversation import Conversation
from bullpen.errors import BullpenError
from bullpen.exchange.files import export_to
from bullpen.tui.bindings import rows
from bullpen.tui.commands import COMMANDS, Command, read_command
from bullpen.tui.composer import Composer
from bullpen.tui.fold import FoldTitle
from bullpen.tui.help_screen import HelpScreen
from bullpen.tui.member_screen import MemberScreen
from bullpen.tui.members import MembersPanel
from bullpen.tui.message import MessageView
from bullpen.tui.notice import NoticeBar
from bullpen.tui.prompt_screen import Given, PromptScreen, given_as, given_for
from bullpen.tui.queue import QueuePanel
from bullpen.tui.search_screen import SearchScreen
from bullpen.tui.status import StatusBar
from bullpen.tui.suggestions import OffersList
from bullpen.tui.tally import Taken
from bullpen.tui.task_screen import TaskScreen
from bullpen.tui.text import one_line
from bullpen.tui.text_screen import TextScreen
from bullpen.tui.theme import colors_of
from bullpen.tui.transcript import Transcript
from bullpen.tui.turn import TurnView
from bullpen.tui.updates import Newsroom

WIDE = 100


def _everywhere(key: str, letter: str, action: str, word: str, help_text: str, *, show: bool) -> Iterator[Binding]:
    """Yield a key that works everywhere, and a letter that does the same where letters are not text."""
    display = key.upper() if key[0] == "f" else None
    yield Binding(key, action, word, tooltip=help_text, priority=True, show=show, key_display=display)
    if letter:
        yield Binding(letter, action, word, tooltip=help_text, show=False)


class ChatScreen(Screen[None]):
    """One conversation. Everything it does, the conversation does; what goes wrong is said in a sentence."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        *_everywhere("f1", "question_mark", "help", "Help", "This list", show=True),
        *_everywhere("f2", "b", "panel", "Panel", "Show or hide the members and the queue", show=False),
        *_everywhere("f3", "slash", "search", "Search", "Find what was said, and go there", show=True),
        *_everywhere("f4", "t", "task", "Task", "Read and change the team's task", show=True),
        *_everywhere("f5", "g", "go_on", "Go on", "Go on after a pause", show=False),
        *_everywhere("f6", "r", "retry", "Retry", "Do the turn again that ended without a reply", show=False),
        *_everywhere("f7", "s", "skip", "Skip", "Go on without that turn", show=False),
        *_everywhere("f8", "h", "hand_over", "Hand over", "Let another member answer", show=True),
        *_everywhere("f9", "x", "cancel", "Cancel", "Stop the turn you are at, or everyone at work", show=True),
        *_everywhere("ctrl+o", "p", "prompt", "Prompt", "The exact prompt behind a message, and its report", show=True),
        *_everywhere("ctrl+g", "", "queue", "Queue", "To the queue", show=False),
        Binding("i", "write", "Write", tooltip="To the composer", show=False),
    ]
    CSS = """
    ChatScreen { layout: vertical; background: $background; }
    ChatScreen #middle { height: 1fr; }
    ChatScreen #side { width: 34; border-left: vkey $border-blurred; padding: 1 0 0 0; }
    ChatScreen.-narrow #side { display: none; }
    ChatScreen.-narrow.with-panel #side { display: block; width: 30; }
    ChatScreen.-wide.without-panel #side { display: none; }
    ChatScreen #side > .heading { color: $text-muted; text-style: bold; padding: 0 1; }
    ChatScreen #side > #members { margin: 0 0 1 0; }
    ChatScreen > Composer { margin: 0 1; }
    ChatScreen > Footer { padding: 0 1; }
    ChatScreen FooterKey { margin: 0 2 0 0; }
    ChatScreen.-narrow #transcript { padding: 0 1; }
    """

    def __init__(self, conversation: Conversation, *, sender: str | None) -> None:
        super().__init__()
        self.conversation = conversation
        self._sender = sender
        self._taken: dict[str, Taken] = {}
        self._colors = colors_of(conversation.team)
        self._is_sending = False
        self._newsroom = Newsroom(self, conversation, self._taken)

    def compose(self) -> ComposeResult:
        """Yield everything on the screen."""
        conversation, colors = self.conversation, self._colors
        names = {member.name: member.role or member.agent or member.type for member in conversation.team.members}
        yield StatusBar(conversation)
        with Horizontal(id="middle"):
            yield Transcript(conversation, colors=colors)
            with Vertical(id="side"):
                yield Static("Members", classes="heading")
                yield MembersPanel(conversation, colors=colors, taken=self._taken)
                yield Static("Queue", classes="heading")
                yield QueuePanel(conversation, colors=colors)
        yield NoticeBar()
        yield OffersList()
        yield Composer(names=names, commands=COMMANDS)
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        """Let the person write, and follow the news."""
        self.query_one(Composer).focus()
        self.run_worker(self._newsroom.follow(), exclusive=True, group="news", exit_on_error=True)

    # What a person says

    @on(Composer.Sent)
    async def say(self, event: Composer.Sent) -> None:
        """Say it, or do what the command says. What does not work stays in the composer."""
        command = read_command(event.text)
        if command is not None:
            await self._do(command)
            return
        if self._is_sending:
            return
        self._is_sending = True
        try:
            await self.conversation.say(event.text, sender=self._sender)
        except BullpenError as error:
            self.complain(error)
        else:
            self._clear(event.text)
        finally:
            self._is_sending = False

    @on(Composer.Offered)
    def offer(self, event: Composer.Offered) -> None:
        """Show what can follow."""
        self.query_one(OffersList).show(event.options, event.marked)

    @on(Composer.Left)
    def leave_composer(self) -> None:
        """Go to the newest message."""
        views = self.query_one(Transcript).views
        if views:
            views[-1].focus()

    # What a person does with keys

    def action_help(self) -> None:
        """Show every key."""
        self.app.push_screen(HelpScreen(KEYS))

    def action_panel(self) -> None:
        """Show or hide the members and the queue."""
        self.toggle_class("with-panel" if self.has_class("-narrow") else "without-panel")

    async def action_queue(self) -> None:
        """Go to the queue."""
        self.add_class("with-panel")
        self.remove_class("without-panel")
        self.query_one(QueuePanel).focus()

    def action_write(self) -> None:
        """Go to the composer."""
        self.query_one(Composer).focus()

    @work
    async def action_search(self, words: str = "") -> None:
        """Find something, and go there."""
        sequence = await self.app.push_screen_wait(SearchScreen(self.conversation, words))
        if sequence is not None:
            await self.query_one(Transcript).open_at(sequence)

    @work
    async def action_task(self) -> None:
        """Change the team's task."""
        task = await self.app.push_screen_wait(TaskScreen(self.conversation.team_task or ""))
        if task is not None:
            await self.attempt(self.conversation.set_task(task or None, by=self._sender))

    async def action_go_on(self) -> None:
        """Lift a pause."""
        await self.attempt(self.conversation.continue_turns())

    async def action_retry(self) -> None:
        """Do a turn again."""
        await self.attempt(self.conversation.retry())

    async def action_skip(self) -> None:
        """Go on without a turn, or leave a missed hand-over as it is."""
        if self._newsroom.missed is not None and not self.conversation.undecided:
            await self.action_leave_it()
        else:
            await self.attempt(self.conversation.skip())

    async def action_leave_it(self) -> None:
        """Take a notice away that needs no more than to be read."""
        await self._newsroom.dismiss()

    @work
    async def action_hand_over(self) -> None:
        """Let somebody else answer: in place of a turn that failed, or as an agent meant it, or simply next."""
        missed, undecided = self._newsroom.missed, self.conversation.undecided
        if missed is not None and not undecided:
            await self._newsroom.dismiss()
            await self.attempt(self.conversation.ask(", ".join(missed.names)))
            return
        failed = undecided[-1].member if undecided else None
        agents = [agent for agent in self.conversation.team.agents if agent.name != failed]
        question = f"Who answers instead of {failed}?" if failed else "Who answers the last message?"
        member = await self.app.push_screen_wait(
            MemberScreen(question, {agent.name: agent.role or agent.agent for agent in agents})
        )
        if member is not None:
            await self.attempt(
                self.conversation.hand_over(member) if self.conversation.undecided else self.conversation.ask(member)
            )

    async def action_cancel(self) -> None:
        """Stop the turn that has the focus, else everyone at work."""
        turn_id = self.focused.turn_id if isinstance(self.focused, TurnView) else None
        await self.attempt(self.conversation.cancel(turn_id))

    async def action_drop_all(self) -> None:
        """Drop every turn that waits."""
        await self.attempt(self.conversation.drop())

    @work
    async def action_prompt(self) -> None:
        """Show what the agent was given that said a message."""
        view = self.query_one(Transcript).chosen
        routing = view.stored.message.routing if view else None
        if view is None or routing is None or routing.parent_message_id is None:
            self.notify("No agent was prompted for this. Move to a message of an agent.", markup=False)
            return
        await self._explain(self.conversation.read(given_for, view.stored.message))

    @on(QueuePanel.Reordered)
    async def reorder(self, event: QueuePanel.Reordered) -> None:
        """Let turns begin in another order; the mark moves with its turn."""
        await self.attempt(self.conversation.reorder(event.turn_ids))

    @on(QueuePanel.Dropped)
    async def drop(self, event: QueuePanel.Dropped) -> None:
        """Drop turns."""
        await self.attempt(self.conversation.drop(turn_ids=event.turn_ids))

    @on(MessageView.Opened)
    def read_whole(self, event: MessageView.Opened) -> None:
        """Show a message as it was said."""
        who = one_line(event.message.speaker.role_name, 40)
        title = Content.assemble((who, "bold"), f"  {len(event.message.content):,} characters")
        self.app.push_screen(TextScreen(title, event.message.content))

    # Helpers

    async def attempt(self, work: Awaitable[Any]) -> bool:
        """Do something; if it does not work, say why."""
        try:
            await work
        except BullpenError as error:
            self.complain(error)
            return False
        return True

    def complain(self, error: BullpenError) -> None:
        """Say what went wrong."""
        self.notify(one_line(str(error), 500), severity="warning", markup=False)

    async def _do(self, command: Command) -> None:
        """Do what a command says."""
        if command.name not in COMMANDS:
            self.notify(
                f"There is no command /{command.name}. To say it, begin with a space.", severity="warning", markup=False
            )
            return
        self._clear(f"/{command.name} {command.rest}".strip())
        match command.name, command.rest:
            case "export", name:
                await self._export(name)
            case "next", names:
                await self.attempt(self.conversation.ask(names))
            case "hand", name if name:
                await self.attempt(self.conversation.hand_over(name))
            case "drop", name:
                await self.attempt(self.conversation.drop(member=name or None))
            case "task", task if task:
                await self.attempt(self.conversation.set_task(task, by=self._sender))
            case "prompt", name if name:
                await self._preview(name)
            case "explain", turn if turn:
                await self._explain(self.conversation.read(given_as, turn))
            case "search", words:
                self.action_search(words)
            case "theme", _:
                await self.run_action("app.theme")
            case "quit", _:
                await self.run_action("app.leave")
            case name, _:
                await self.run_action({"go": "go_on", "hand": "hand_over", "explain": "prompt"}.get(name, name))

    async def _export(self, name: str) -> None:
        path = Path(name or f"{self.conversation.id}.md").expanduser()
        if await self.attempt(self.conversation.read(export_to, path)):
            self.notify(f"Written to {one_line(str(path), 200)}.", markup=False)

    async def _explain(self, reading: Awaitable[Given | None]) -> None:
        try:
            given = await reading
        except BullpenError as error:
            self.complain(error)
            return
        if given is None:
            self.notify("Nothing is recorded about that turn.", markup=False)
        else:
            self.app.push_screen(PromptScreen(given))

    async def _preview(self, member: str) -> None:
        try:
            output = await self.conversation.preview(member)
        except BullpenError as error:
            self.complain(error)
            return
        given = Given(member=member, report=output.report, system=output.system_flag, prompt=output.prompt)
        self.app.push_screen(PromptScreen(given))

    def _clear(self, said: str) -> None:
        composer = self.query_one(Composer)
        composer.remember(said)
        composer.load_text("")


KEYS = {
    "Everywhere": [*rows(ChatScreen.BINDINGS), ("ctrl+t", "Dark or light"), ("ctrl+q", "Leave")],
    "While you write": rows(Composer.BINDINGS),
    "Among the messages": [*rows(Transcript.BINDINGS), *rows(MessageView.BINDINGS), *rows(FoldTitle.BINDINGS)],
    "In the queue": rows(QueuePanel.BINDINGS),
}
