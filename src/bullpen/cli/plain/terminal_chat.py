"""A chat at a terminal: people write while agents stream."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from bullpen.app import open_team
from bullpen.cli.exit_codes import ending_of, say_next
from bullpen.cli.opening import Opening
from bullpen.cli.plain.transcript import Show
from bullpen.cli.plain.typed_line import ChatLines
from bullpen.cli.signals import INTERRUPTED_EXIT, LEAVING, handling
from bullpen.cli.viewer import following, greet, show_state, status_of
from bullpen.clock import monotonic, sleep
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import ConversationEvent, TurnEvent
from bullpen.team.team import Team
from bullpen.terminal.colors import Colours, wants_colours
from bullpen.terminal.input_area import InputArea
from bullpen.terminal.input_history import InputHistory, history_of
from bullpen.terminal.keys import ESCAPE_SECONDS, Key, KeyReader, Pressed, Typed
from bullpen.terminal.line_editor import Complete, LineEditor
from bullpen.terminal.notifier import Notifier
from bullpen.terminal.raw_mode import RawTerminal
from bullpen.terminal.tables import safe_line
from bullpen.terminal.wrapping import wrapped
from bullpen.view.activity import ACTIVITIES
from bullpen.view.attention import attention
from bullpen.view.choices import STOP, Choice, Decision
from bullpen.view.completion import names_of, options_for
from bullpen.view.shown_cards import SETTLED_SECONDS, TOO_EARLY, ShownCards
from bullpen.view.state import conversation_view

TWICE_SECONDS = 2.0
STATUS_SECONDS = 1.0
READ_BYTES = 64 * 1024


async def chat_in_terminal(opening: Opening, sender: str | None) -> int:
    """Talk until the person leaves. Return the exit code."""
    async with open_team(opening.loaded, resume=opening.resume, db=opening.opens) as conversation:
        chat = TerminalChat(conversation, sender, InputHistory(history_of(opening.loaded.path)), opening.db)
        await chat.talk(is_resumed=opening.resume is not None)
        say_next(conversation, ending_of(conversation), opening.db)
    return chat.exit_code


class TerminalChat:
    """Keys, signals and the conversation's events, all in one event loop."""

    def __init__(self, conversation: Conversation, sender: str | None, history: InputHistory, db: Path | None) -> None:
        self.exit_code = 0
        team = conversation.team
        self._conversation = conversation
        self._sender = sender
        self._history = history
        self._editor = LineEditor(self._history.entries(), completion_for(team))
        person = sender or (team.people[0].name if len(team.people) == 1 else "you")
        self._prompt = f"{safe_line(person)} ▸ "
        self._area = InputArea(self._editor, self._prompt)
        self._notifier = Notifier(safe_line(team.name), _write_to_terminal)
        self._show = Show(
            self._area,
            Colours(team, on=wants_colours(sys.stdout)),
            lambda: conversation_view(conversation).decisions,
            in_chat=True,
            repeats_people=False,
        )
        self._lines = ChatLines(conversation, self._show, sender, db)
        self._db = db
        self._terminal = RawTerminal(sys.stdin.fileno())
        self._keys = KeyReader()
        self._cards = ShownCards()
        self._begun: Sequence[Decision] = ()
        """What the person had read that waits for an answer when they began the line."""
        self._sent: asyncio.Queue[Callable[[], Awaitable[bool]]] = asyncio.Queue()
        self._left = asyncio.Event()
        self._interrupted_at = -TWICE_SECONDS
        self._tasks: set[asyncio.Task[None]] = set()

    async def talk(self, *, is_resumed: bool) -> None:
        """Take keys and show what happens until the person leaves."""
        loop = asyncio.get_running_loop()
        at_once = self._terminal.restore_at_once
        with self._terminal.on(), handling(self._signals(), is_leaving=self._left.is_set, restore=at_once):
            await self._greet(is_resumed=is_resumed)
            loop.add_reader(sys.stdin.fileno(), self._read)
            try:
                async with following(self._conversation, self._tell, self._show.catch_up) as follower:
                    workers = [asyncio.ensure_future(work) for work in (self._send(), self._keep_status())]
                    await follower.until(self._left.wait())
                    for worker in workers:
                        worker.cancel()
                    await asyncio.gather(*workers, return_exceptions=True)
                    await follower.until_shown()
            finally:
                loop.remove_reader(sys.stdin.fileno())
                self._history.shorten()
                self._area.leave()

    async def _greet(self, *, is_resumed: bool) -> None:
        if is_resumed:
            await show_state(self._conversation, self._show)
        await greet(self._conversation, self._show, self._db)
        self._show_cards()

    def _tell(self, event: ConversationEvent) -> None:
        self._show.tell(event)
        if not isinstance(event, TurnEvent):
            # Those come by the hundred, and the status is renewed every second anyway.
            self._show_status()
            # After the keys that were pressed before this was written: they are read in the next round of the loop.
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self._show_cards)

    def _show_cards(self) -> None:
        """Note what is written now that keys can answer."""
        self._cards.show(self._show.asked())
        self._draw()
        if self._cards.first is not None and not self._cards.is_settled:
            asyncio.get_running_loop().call_later(SETTLED_SECONDS, self._draw)

    def _read(self) -> None:
        """Take what was typed."""
        try:
            data = os.read(sys.stdin.fileno(), READ_BYTES)
        except OSError:
            data = b""
        if not data:
            # The terminal is gone.
            self._leave(LEAVING[signal.SIGHUP])
            return
        self._take(self._keys.feed(data))
        if self._keys.may_be_escape:
            asyncio.get_running_loop().call_later(ESCAPE_SECONDS, lambda: self._take(self._keys.flush()))

    def _take(self, keys: Iterable[Key]) -> None:
        for key in keys:
            if key in (Pressed("focus in"), Pressed("focus out")):
                self._notifier.is_in_front = key == Pressed("focus in")
                continue
            self._notifier.key_pressed()
            self._interrupted_at = -TWICE_SECONDS
            if key == Pressed("end of input"):
                self._end_of_input()
            elif key == Pressed("redraw"):
                self._area.clear_screen()
            else:
                self._edit(key)
        self._draw()

    def _edit(self, key: Key) -> None:
        if not self._editor.text:
            self._begun = self._cards.settled
            if (choice := self._cards.choice(_card_key(key))) and (card := self._cards.first):
                if choice != TOO_EARLY:
                    self._choose(choice, card)
                return
        if (text := self._editor.press(key)) is not None:
            begun = self._begun
            self._history.add(text)
            self._submit(text, lambda: self._lines.take(text, begun))

    def _choose(self, choice: Choice, card: Decision) -> None:
        """Answer what a card asks, or begin an answer that needs words."""
        if choice.begins:
            self._editor.put(choice.begins)
        else:
            self._submit(f"{choice.key} {choice.label}", lambda: self._lines.choose(choice, card))

    def _draw(self) -> None:
        """Draw the line, and what Enter does with it; where nothing is written, what keys answer."""
        if self._editor.text:
            hint = self._lines.line(self._editor.text, self._begun)
        else:
            hint = self._cards.first.keys if self._cards.first is not None and self._cards.is_settled else ""
        self._area.draw(hint=safe_line(hint))

    def _submit(self, text: str, does: Callable[[], Awaitable[bool]]) -> None:
        self._show.interrupt()
        self._area.leave(keep=wrapped(self._prompt + text.replace("\n", "\n… "), self._area.columns, ""))
        self._sent.put_nowait(does)

    async def _send(self) -> None:
        """Do what was sent, in order. What could not be said goes back into the line, unless the next one is begun."""
        while True:
            does = await self._sent.get()
            await does()
            if self._lines.unsent and not self._editor.text:
                self._begun = self._cards.settled
                self._editor.put(self._lines.unsent)
            if self._lines.wants_to_leave:
                self._leave(0)
            self._area.status(status_of(self._conversation))
            self._show_cards()

    async def _keep_status(self) -> None:
        while True:
            await sleep(STATUS_SECONDS)
            self._show_status()

    def _show_status(self) -> None:
        """Show who is working, and tell a person who looks elsewhere that it is their turn."""
        self._area.status(status_of(self._conversation))
        waits = attention(conversation_view(self._conversation), self._sender)
        self._notifier.show(ACTIVITIES[waits.activity].sign, waits.count, waits.text)

    def _end_of_input(self) -> None:
        """Leave on Ctrl-D, as shells do: only from an empty line."""
        if self._editor.text:
            self._editor.press(Pressed("delete"))
            return
        self._lines.leave()
        if self._lines.wants_to_leave:
            self._leave(0)

    def _interrupt(self) -> None:
        """Cancel the running turns on Ctrl-C; leave if it comes twice with no other key between."""
        now = monotonic()
        if now - self._interrupted_at < TWICE_SECONDS:
            self._leave(INTERRUPTED_EXIT)
            return
        self._interrupted_at = now
        self._editor.remember(self._editor.clear())
        if self._conversation.running or self._conversation.running_checks:
            self._show.note("Cancelling. Ctrl-C again leaves.", "yellow")
            task = asyncio.ensure_future(self._cancel())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._show.note("No turn is running. Ctrl-C again leaves.", "yellow")
        self._area.draw()

    async def _cancel(self) -> None:
        await self._lines.take("/cancel")

    def _leave(self, exit_code: int) -> None:
        self.exit_code = exit_code
        self._left.set()

    def _signals(self) -> dict[signal.Signals, Callable[[], None]]:
        leaving = {number: partial(self._leave, code) for number, code in LEAVING.items()}
        drawing = {signal.SIGWINCH: self._area.draw, signal.SIGTSTP: self._stop, signal.SIGCONT: self._continue}
        return {**leaving, **drawing, signal.SIGINT: self._interrupt}

    def _stop(self) -> None:
        """Give the terminal back while we are stopped."""
        self._area.leave()
        self._terminal.restore()
        os.kill(os.getpid(), signal.SIGSTOP)

    def _continue(self) -> None:
        self._terminal.enter()
        self._area.forget()
        self._area.draw()


def _card_key(key: Key) -> str:
    """Return what a key is called on cards; nothing, if it was pasted."""
    match key:
        case Typed(text=text, is_pasted=False):
            return text
        case Pressed(name="escape"):
            return STOP
        case _:
            return ""


def _write_to_terminal(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def completion_for(team: Team) -> Complete:
    """Return what Tab completes in a chat of this team."""
    names = names_of(team)

    def complete(before: str) -> tuple[str, Sequence[str]]:
        options = options_for(before, names)
        typed = before[len(before) - options[0].replaces :] if options else ""
        return typed, [option.insert for option in options]

    return complete
