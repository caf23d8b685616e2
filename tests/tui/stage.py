"""A team of scripted agents in a real folder with a real database, and its full screen."""

import asyncio
import json
import shlex
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from textual.events import Key
from textual.pilot import Pilot

from bullpen.app import open_team
from bullpen.conversation.conversation import Conversation
from bullpen.testing.stage import AGENT
from bullpen.tui.app import BullpenApp
from bullpen.tui.chat import ChatScreen

Script = list[dict[str, Any]]
Story = Callable[["Scene"], Awaitable[None]]

SOURCE = Path(__file__).parents[2] / "src"
PATIENCE_SECONDS = 60.0


class Stage:
    """Makes the team file and the programs of its members."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.db = folder / "bullpen.db"
        self._members = ['[[member]]\nname = "kim"\ndisplay_name = "Kim"\n']
        self._head = 'name = "Shop"\ntask = "Build the login."\n'
        (folder / "bin").mkdir()

    def head(self, text: str) -> None:
        """Say something else at the top of the team file."""
        self._head = text

    def agent(self, name: str, *scripts: Script, cli: str = "claude", more: str = "") -> None:
        """Add a member that plays these scripts in the stream of a CLI."""
        folder = self.folder / "agents" / name
        folder.mkdir(parents=True)
        for number, script in enumerate(scripts, start=1):
            (folder / f"script-{number}").write_text(json.dumps(script))
        (folder / "script").write_text(json.dumps(scripts[-1]))
        program = self.folder / "bin" / name
        program.write_text(f'#!/bin/sh\nexec {shlex.join(AGENT)} --as {cli} --turns={folder} "$@"\n')
        program.chmod(0o755)
        runs = f'command = ["{program}"]' if cli == "text" else f'agent = "{cli}"'
        if cli != "text":
            (self.folder / "bin" / cli).write_text(program.read_text())
            (self.folder / "bin" / cli).chmod(0o755)
        self._members.append(f'[[member]]\nname = "{name}"\ndisplay_name = "{name.capitalize()}"\n{runs}\n{more}\n')

    @property
    def team(self) -> Path:
        """The team file, written."""
        path = self.folder / "team.toml"
        path.write_text("\n".join([self._head, *self._members]))
        return path

    def play(self, story: Story, *, size: tuple[int, int] = (120, 40), resume: str | None = None) -> str:
        """Open the screen, let the story happen, and return the conversation's id."""
        return asyncio.run(self._play(story, size, resume))

    def said(self, *texts: str) -> str:
        """Let a person say something on another day, without a screen; return the conversation's id."""
        return asyncio.run(self._said(texts))

    async def _said(self, texts: Iterable[str]) -> str:
        async with open_team(self.team, db=self.db) as conversation:
            for text in texts:
                await conversation.say(text)
                await conversation.until_quiet()
            return conversation.id

    async def _play(self, story: Story, size: tuple[int, int], resume: str | None) -> str:
        async with open_team(self.team, db=self.db, resume=resume) as conversation:
            app = BullpenApp(conversation)
            async with app.run_test(size=size, notifications=True) as pilot:
                scene = Scene(app, pilot, conversation)
                await scene.settled()
                await story(scene)
            return conversation.id


class Scene:
    """The screen while a story happens on it."""

    def __init__(self, app: BullpenApp, pilot: Pilot[None], conversation: Conversation) -> None:
        self.app = app
        self.pilot = pilot
        self.conversation = conversation

    async def settled(self) -> None:
        """Wait until everything that came is on the screen."""
        await self.pilot.pause()

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so; fail loudly if it never is."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not is_so():
                    await self.pilot.pause(0.02)
        except TimeoutError:
            raise AssertionError(f"it never came to this. On the screen:\n{self.text}") from None
        await self.settled()

    async def sees(self, *words: str) -> None:
        """Wait until these words are on the screen."""

        def is_seen() -> bool:
            text = self.text
            return all(word in text for word in words)

        await self.until(is_seen)
        await self.until(self._is_read)

    def _is_read(self) -> bool:
        """Return whether keys answer what is asked: a person has looked at it for a moment."""
        if not isinstance(chat := self.app.screen, ChatScreen) or not chat._notice.shown:
            return True
        return chat._notice.shown == chat._composer.cards.settled and chat._composer.cards.is_settled

    async def quiet(self) -> None:
        """Wait until no turn is running and the screen shows it."""
        await self.conversation.until_quiet()
        await self.settled()

    async def type(self, text: str) -> None:
        """Type characters, faster than anybody can look."""
        for character in text:
            self.app.post_message(Key(NAMES.get(character, character), character))
        await self.settled()

    async def press(self, *keys: str) -> None:
        """Press keys."""
        await self.pilot.press(*keys)
        await self.settled()

    async def say(self, text: str) -> None:
        """Type something and send it."""
        await self.type(text)
        await self.press("enter")

    @property
    def text(self) -> str:
        """Everything on the screen, as text."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


NAMES = {" ": "space", "/": "slash", "@": "at", ".": "full_stop", "?": "question_mark", "[": "left_square_bracket"}


async def press_when_read(app: BullpenApp, pilot: Pilot[None], key: str) -> None:
    """Press a key that answers what is asked, as soon as it does."""
    assert isinstance(app.screen, ChatScreen)
    cards = app.screen._composer.cards
    while cards.first is None or not cards.is_settled:
        await pilot.pause(0.02)
    await pilot.press(key)
