"""A team of scripted agents, real processes in a real folder with a real database, and its full screen."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from bullpen.app import open_team
from bullpen.conversation.conversation import Conversation
from bullpen.tui.app import BullpenApp

Script = list[dict[str, Any]]
Story = Callable[["Scene"], Awaitable[None]]

SOURCE = Path(__file__).parents[2] / "src"
PATIENCE_SECONDS = 60.0

# Each turn plays the next script; the last one is played again and again.
WRAPPER = """#!/bin/sh
cd "{folder}" || exit 9
turn=$(($(cat {name}.turn 2>/dev/null || echo 0) + 1))
echo $turn > {name}.turn
script={name}.$turn.json
[ -f $script ] || script={name}.last.json
PYTHONPATH="{source}" exec "{python}" -m bullpen.testing.agent --as {cli} --script $script "$@"
"""


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
        for number, script in enumerate(scripts, start=1):
            (self.folder / f"{name}.{number}.json").write_text(json.dumps(script))
        (self.folder / f"{name}.last.json").write_text(json.dumps(scripts[-1]))
        program = self.folder / "bin" / name
        program.write_text(WRAPPER.format(folder=self.folder, name=name, cli=cli, source=SOURCE, python=sys.executable))
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
        for _ in range(2):
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
        await self.until(lambda: all(word in self.text for word in words))

    async def quiet(self) -> None:
        """Wait until no turn is running and the screen shows it."""
        await self.conversation.until_quiet()
        await self.settled()

    async def type(self, text: str) -> None:
        """Type characters, one by one."""
        await self.pilot.press(*(NAMES.get(character, character) for character in text))
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
