"""The ways in which a person or a program can give a command: plain chat, full screen, browser, API and editor."""

import asyncio
import html
import io
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from bullpen.app import open_team
from bullpen.cli.editor.session import EditorSession
from bullpen.cli.plain.transcript import Show
from bullpen.cli.plain.typed_line import ChatLines
from bullpen.conversation.conversation import Conversation
from bullpen.terminal.colors import Colours
from bullpen.terminal.page import StreamPage
from bullpen.testing.site import site
from bullpen.tui.app import BullpenApp
from bullpen.tui.chat import ChatScreen
from bullpen.tui.composer import Composer
from bullpen.tui.text_screen import LinesView
from bullpen.view.state import conversation_view

PATIENCE_SECONDS = 60.0
Type = Callable[[str], Awaitable[str]]
"""Types a line and sends it; returns what the person is told about it."""


@asynccontextmanager
async def plain_chat(team: Path, folder: Path) -> AsyncIterator[tuple[Conversation, Type]]:
    """`bullpen chat --plain`: the lines that a person sends."""
    async with open_team(team, db=folder / "c.db") as conversation:
        written = io.StringIO()
        view = conversation_view
        show = Show(StreamPage(written), Colours(None, on=False), lambda: view(conversation).decisions, in_chat=True)
        lines = ChatLines(conversation, show, None)

        async def send(text: str) -> str:
            for question in view(conversation).decisions:
                if question.choices and question.choices[0].key:
                    show.decision(question)
            before = len(written.getvalue())
            await lines.take(text)
            return written.getvalue()[before:].strip().removeprefix("! ")

        yield conversation, send


@asynccontextmanager
async def full_screen(team: Path, folder: Path) -> AsyncIterator[tuple[Conversation, Type]]:
    """`bullpen chat`: keys, and what appears in a corner of the screen."""
    async with open_team(team, db=folder / "c.db") as conversation:
        app = BullpenApp(conversation)
        async with app.run_test(size=(120, 40), notifications=True) as pilot:
            await pilot.pause()
            chat = app.screen
            assert isinstance(chat, ChatScreen)
            composer = chat.query_one(Composer)

            async def send(text: str) -> str:
                app.clear_notifications()
                composer.focus()
                with chat._context():
                    await chat.send(Composer.Sent(text))
                await pilot.pause()
                composer.load_text("")
                told = [notification.message for notification in app._notifications]
                while app.screen is not chat:
                    told += [line for view in app.screen.query(LinesView) for line in view._paragraphs]
                    app.pop_screen()
                # Everybody is told who decided what, sooner or later: that is not about this line.
                return "\n".join(message for message in told if not message.startswith("kim said "))

            yield conversation, send


@asynccontextmanager
async def browser(team: Path, folder: Path) -> AsyncIterator[tuple[Conversation, Type]]:
    """The page's form, sent as the page sends it."""
    async with site(folder, team) as served, httpx.AsyncClient(base_url=served.url, timeout=60) as client:
        await client.post(served.new_url(), headers={"Origin": served.url})
        conversation = (await served.hub.begin()).conversation

        async def send(text: str) -> str:
            headers = {"HX-Request": "true", "Origin": served.url}
            answer = await client.post(f"/c/{conversation.id}/messages", data={"text": text}, headers=headers)
            shown = re.sub(r"<button.*?</button>", "", answer.text, flags=re.DOTALL)
            return html.unescape(re.sub(r"<[^>]+>", "", shown.replace("</p><p>", "\n"))).strip()

        yield conversation, send


@asynccontextmanager
async def api(team: Path, folder: Path) -> AsyncIterator[tuple[Conversation, Type]]:
    """A program: what is not a command is a message."""
    async with (
        site(folder, team) as served,
        httpx.AsyncClient(base_url=f"{served.url}/api", headers=served.headers, timeout=60) as client,
    ):
        conversation = (await served.hub.begin()).conversation
        here = f"/conversations/{conversation.id}"

        async def send(text: str) -> str:
            answer = (await client.post(f"{here}/commands", json={"text": text})).json()
            if answer.get("error", "").startswith("This is a message"):
                answer = (await client.post(f"{here}/messages", json={"text": text})).json()
            return str(answer.get("error", answer.get("told", "")))

        yield conversation, send


class SilentClient:
    """An editor that hears everything and says nothing."""

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        pass

    def ask(self, method: str, params: dict[str, Any]) -> tuple[int, "asyncio.Future[Any]"]:
        return 1, asyncio.get_running_loop().create_future()

    def take_back(self, number: int) -> None:
        pass


@asynccontextmanager
async def in_editor(team: Path, folder: Path) -> AsyncIterator[tuple[Conversation, Type]]:
    """`bullpen acp`: what a person types in an editor."""
    async with open_team(team, db=folder / "c.db") as conversation:
        session = EditorSession(conversation, team.parent, SilentClient(), None, None)

        async def send(text: str) -> str:
            session._seen = conversation_view(conversation).decisions
            return (await session.do(text)).strip().removeprefix("! ")

        yield conversation, send
        await session.close()


DOORS = {
    "plain chat": plain_chat,
    "full screen": full_screen,
    "browser": browser,
    "api": api,
    "editor": in_editor,
}
