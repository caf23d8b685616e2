"""InboxDesk: what waits for a person at a terminal, one after the other, each answered with one key or a command."""

import argparse
import os
import select
import sys
import termios
from collections import deque
from collections.abc import Iterator
from typing import Any

import msgspec

from bullpen.cli import main
from bullpen.cli.inbox_items import LOOK_SECONDS, NOTHING, print_item
from bullpen.clock import pause
from bullpen.database import Database
from bullpen.errors import BullpenError, UnknownConversation
from bullpen.private_door import Decided, decide
from bullpen.terminal.keys import ESCAPE_SECONDS, Key, KeyReader, Pressed, Typed
from bullpen.terminal.line_editor import LineEditor
from bullpen.terminal.notifier import Notifier
from bullpen.terminal.raw_mode import RawTerminal
from bullpen.terminal.tables import safe_line
from bullpen.text.numbers import counted
from bullpen.view.activity import ASLEEP, WAITS
from bullpen.view.choices import NO, STOP, YES, Choice
from bullpen.view.inbox import Item, inbox, owner_token, what_became_of
from bullpen.view.shown_cards import SETTLED_SECONDS
from bullpen.view.state import team_of
from bullpen.view.typed_answers import read_typed

READ_BYTES = 4096
LETTERS = {YES: "y", NO: "n"}
"""Letters that answer as well as the digits on a card."""
LATER, LEAVE, COMMAND = "later", "leave", "/"


class InboxDesk:
    """One terminal, and what it shows."""

    def __init__(self, database: Database, options: argparse.Namespace) -> None:
        self._database = database
        self._options = options
        self._terminal = RawTerminal(sys.stdin.fileno())
        self._keys = KeyReader()
        self._notifier = Notifier("inbox", _write)
        # The bell rings also for a person who looks at this window: it may be one of many.
        self._notifier.is_in_front = False
        self._later: set[tuple[str, str, str]] = set()
        """What was left for later."""
        self._is_waiting = False
        self._unread: deque[Key] = deque()
        """Keys that were pressed and that nobody has taken yet."""

    def answer_all(self) -> list[Item]:
        """Ask about everything that waits; return what is left of it. With --watch, until the person leaves."""
        with self._terminal.on():
            while True:
                found = self._look()
                waiting = [item for item in found if item.key not in self._later]
                if waiting:
                    self._is_waiting = False
                    if not self._ask(waiting[0], len(waiting)):
                        return self._look()
                elif not self._options.watch:
                    if not found:
                        print(NOTHING if not self._later else "Nothing waits for you any more.")
                    return found
                elif not self._stay():
                    return found

    def _look(self) -> list[Item]:
        found = inbox(self._database, self._options.file)
        if self._options.watch:
            texts = [f"{item.decision.text} {item.decision.shown}" for item in found]
            self._notifier.show((WAITS if found else ASLEEP).sign, len(found), *texts)
        return found

    def _stay(self) -> bool:
        """Wait for something new; return whether the person stays."""
        if not self._is_waiting:
            self._is_waiting = True
            later = f" {counted(len(self._later), 'thing')} left for later." if self._later else ""
            print(f"Nothing new waits for you.{later} The bell rings when something does; q leaves.", flush=True)
        return self._key(()) != LEAVE

    def _ask(self, item: Item, count: int) -> bool:
        """Ask about one thing; return whether the person stays."""
        print()
        print_item(item)
        keys = _keys_of(item)
        for key, choice in keys.items():
            print(safe_line(f"  {key}  {choice.label}"))
        for choice in item.decision.choices:
            if choice not in keys.values():
                print(safe_line(f"     {choice.typed}  {choice.purpose}"))
        more = f" ({count - 1} more)" if count > 1 else ""
        # What was typed before this was on the screen for a moment does not answer it.
        sys.stdout.flush()
        pause(SETTLED_SECONDS)
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        self._unread.clear()
        print(f"  Enter: later{more} · /: a command · q: leave", flush=True)
        keys = {**keys, **_letters_of(item)}
        while (pressed := self._key(tuple(keys))) == "":
            if item.key not in {one.key for one in self._look()}:
                print(safe_line(f"{what_became_of(self._database, item)}. It waits no more."), flush=True)
                return True
        if pressed == LEAVE:
            return False
        if pressed == LATER:
            self._later.add(item.key)
            return True
        self._decide(item, keys.get(pressed))
        return True

    def _decide(self, item: Item, choice: Choice | None) -> None:
        """Do what was chosen, or what is typed now; the person is told what became of it."""
        try:
            if choice is None:
                typed = COMMAND + self._line(COMMAND)
                action, given = self._read(typed, item)
            else:
                typed, action, given = choice.typed, choice.action, dict(choice.given)
                if choice.begins:
                    given["text"] = self._line("Why not? It reads that; Enter alone says only no: ")
            if action and item.pid is None:
                self._continue(item, typed)
            elif action:
                told = decide(self._token(item), Decided(action=action, given=given, by=self._options.sender))
                print(safe_line(told or what_became_of(self._database, item)) + ".", flush=True)
        except BullpenError as error:
            print(safe_line(f"! {error}"), flush=True)

    def _continue(self, item: Item, typed: str) -> None:
        """Open a conversation that nobody has open for what was decided, and show what comes of it."""
        words = ["run", "--resume", item.conversation, "--approve", "ask", typed]
        for option, value in (("--as", self._options.sender), ("--db", self._options.db)):
            words += [] if value is None else [option, str(value)]
        # It asks whether the team file may run, in lines.
        self._terminal.restore()
        try:
            main(words)
        finally:
            self._terminal.enter()

    def _read(self, line: str, item: Item) -> tuple[str, dict[str, Any]]:
        """Return what a command does; an answer is about this question, unless it names another turn."""
        team = team_of(self._database.conversation(item.conversation))
        typed = None if team is None else read_typed(line, team, [item.decision])
        if typed is None or typed.command.run is None:
            print("That is not a command that decides something. Nothing was done.")
            return "", {}
        given = msgspec.to_builtins(typed.given)
        filled = {name: value for name, value in given.items() if value not in (None, "", [], ())}
        return typed.command.action or typed.command.name, filled

    def _token(self, item: Item) -> str:
        token = owner_token(self._database, item.conversation)
        if token is None:
            raise UnknownConversation(item.conversation)
        return token

    def _line(self, prompt: str) -> str:
        """Read a line, which must not lose what was typed right after the key before it."""
        editor = LineEditor()
        while True:
            _write(f"\r{prompt}{safe_line(editor.text)}\x1b[J")
            for key in self._pressed():
                if key == Pressed("end of input"):
                    raise BullpenError("Nothing was done.")
                if (text := editor.press(key)) is not None:
                    print()
                    return text

    def _key(self, known: tuple[str, ...]) -> str:
        """Return a key that means something, or nothing after a while."""
        for key in self._pressed():
            match key:
                case Typed(is_pasted=True):
                    # Nobody reads what they paste as an answer.
                    pass
                case Pressed(name="end of input") | Typed(text="q"):
                    return LEAVE
                case Pressed(name="enter"):
                    return LATER if known else ""
                case Pressed(name="escape") if STOP in known:
                    return STOP
                case Typed(text=text) if known and (text == COMMAND or text in known):
                    return text
                case _:
                    pass
        return ""

    def _pressed(self) -> Iterator[Key]:
        """Yield what is pressed within a while; what nobody takes is there the next time."""
        seconds = ESCAPE_SECONDS if self._keys.may_be_escape else LOOK_SECONDS
        ready = self._unread or select.select([sys.stdin.fileno()], [], [], seconds)[0]
        if not ready:
            self._unread.extend(self._keys.flush())
        elif not self._unread:
            data = os.read(sys.stdin.fileno(), READ_BYTES)
            # Without a terminal there is nobody any more.
            self._unread = deque(self._keys.feed(data) if data else [Pressed("end of input")])
        while self._unread:
            yield self._unread.popleft()


def _keys_of(item: Item) -> dict[str, Choice]:
    """Return the keys of one thing. What needs a name, or cannot be undone, is typed."""
    return {choice.key: choice for choice in item.decision.choices if choice.key and not choice.lacks_name}


def _letters_of(item: Item) -> dict[str, Choice]:
    """Return the letters that mean yes and no, where that is asked."""
    choices = item.decision.choices if item.decision.is_yes_or_no else ()
    return {LETTERS[choice.key]: choice for choice in choices if choice.key in LETTERS}


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
