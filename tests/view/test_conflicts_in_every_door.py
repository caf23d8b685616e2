"""A conflict of an agent's own workspace is a question in every door, and has several answers."""

import asyncio
import io
import re
import subprocess
from pathlib import Path

import httpx
import pytest
from tests.tui.stage import press_when_read
from tests.view.doors import plain_chat
from textual.widgets import Button

from bullpen.app import open_team
from bullpen.cli.exit_codes import ending_of
from bullpen.cli.plain.transcript import Show
from bullpen.conversation.conversation import Conversation
from bullpen.terminal.colors import Colours
from bullpen.terminal.page import StreamPage
from bullpen.testing.site import site
from bullpen.tui.app import BullpenApp
from bullpen.tui.notice import NoticeBar
from bullpen.view.commands import ACTIONS
from bullpen.view.state import conversation_view, stored_view
from bullpen.view.status_lines import left_open_lines, queue_lines

QUESTION = (
    "What ann did in turn 1 is not in the shared folder yet: 'a.txt' was changed there meanwhile, in ways that cannot "
    "both be kept."
)


class Place:
    """A repository in which ann works in a worktree, and changes the shared folder as well, as a person would."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root, self.team = folder, folder / "repo", folder / "team.toml"
        self.root.mkdir()
        (self.root / "a.txt").write_text("base\n", encoding="utf-8")
        names = ("-c", "user.name=kim", "-c", "user.email=kim@example.org")
        for words in (("init", "-q"), ("add", "-A"), (*names, "commit", "-qm", "first")):
            subprocess.run(["git", *words], cwd=self.root, check=True)
        work = f"cat > /dev/null; echo of ann > a.txt; echo new > new.txt; echo of kim >> {self.root}/a.txt; echo Done."
        self.team.write_text(
            '[[member]]\nname = "kim"\n'
            f'[[member]]\nname = "ann"\ncommand = ["sh", "-c", "{work}"]\n'
            'permissions = "edit"\nworkspace = "own"\ncwd = "repo"\n'
            '[[member]]\nname = "bob"\ncommand = ["sh", "-c", "cat > /dev/null; echo of bob > a.txt; echo Done."]\n'
            'permissions = "edit"\ncwd = "repo"\n'
            '[[member]]\nname = "eve"\ncommand = ["sh", "-c", "cat > /dev/null; echo Read."]\n',
            encoding="utf-8",
        )

    def files(self) -> dict[str, str]:
        files = (path for path in sorted(self.root.iterdir()) if path.is_file())
        return {path.name: path.read_text(encoding="utf-8") for path in files}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def conflict(conversation: Conversation) -> None:
    await conversation.say("[NEXT: ann] Go.")
    await conversation.until_quiet()
    assert list(conversation.progress.conflicts) == ["1"]


def test_every_answer(place: Place) -> None:
    async def story() -> None:
        async with plain_chat(place.team, place.folder) as (conversation, send):
            await conflict(conversation)
            assert "There is no conflict of turn 9 to decide about." in await send("/take 9")
            assert "/resolve needs one name" in await send("/resolve")
            await send("/apart 1")
            assert place.files() == {"a.txt": "base\nof kim\n"}
            await send("/merge ann")
            assert list(conversation.progress.conflicts) == ["1"], "it is asked about again"
            await send("/keep")
            assert place.files() == {"a.txt": "base\nof kim\n", "new.txt": "new\n"}
            assert "There is nothing to merge" in await send("/merge ann")
            await send("/undo")
            assert place.files() == {"a.txt": "base\nof kim\n"}
            await conversation.say("[NEXT: ann] Again.")
            await conversation.until_quiet()
            await send("/resolve bob")
            await conversation.until_quiet()
            assert not conversation.progress.conflicts
            assert place.files() == {"a.txt": "of bob\n", "new.txt": "new\n"}

    asyncio.run(story())


def test_what_is_asked_is_the_same_from_memory_and_from_the_store(place: Place) -> None:
    async def story() -> None:
        async with open_team(place.team, db=place.folder / "c.db") as conversation:
            await conflict(conversation)
            view = conversation_view(conversation)
            stored = await conversation.read(stored_view)
            assert ending_of(conversation) == "undecided"
        assert view.status == stored.status == "paused"
        assert view.decisions == stored.decisions
        (decision,) = view.decisions
        assert (decision.kind, decision.text, decision.turn, decision.member) == ("conflict", QUESTION, "1", "ann")
        assert decision.others == ("ann", "bob"), "eve may not edit files"
        assert [choice.typed for choice in decision.choices] == ["/take 1", "/keep 1", "/resolve NAME 1", "/apart 1"]
        assert {choice.action for choice in decision.choices} <= set(ACTIONS)
        assert queue_lines(view) == ["turn 1  ann: /take, /keep, /resolve or /apart?"]
        assert list(left_open_lines(view)) == [
            "Not merged: turn 1 of ann. In chat: /take, /keep, /resolve NAME or /apart."
        ]

    asyncio.run(story())


def test_the_plain_chat_asks(place: Place) -> None:
    async def story() -> str:
        written = io.StringIO()
        async with open_team(place.team, db=place.folder / "c.db") as conversation:
            decisions = lambda: conversation_view(conversation).decisions  # noqa: E731
            show = Show(StreamPage(written), Colours(None, on=False), decisions, in_chat=True)
            with conversation.viewing() as viewer:
                await conflict(conversation)
                for numbered in await viewer.several():
                    show.tell(numbered.event)
        return written.getvalue()

    assert "3 Ask an agent  /resolve NAME 1" in asyncio.run(story())


def test_the_full_screen_has_buttons(place: Place) -> None:
    async def story() -> None:
        async with open_team(place.team, db=place.folder / "c.db") as conversation:
            app = BullpenApp(conversation)
            async with app.run_test(size=(120, 40)) as pilot:
                await conflict(conversation)
                notice = app.screen.query_one(NoticeBar)
                while notice.decision is None or len(notice.query(Button)) < 4:
                    await pilot.pause()
                labels = [str(button.label) for button in notice.query(Button)]
                words = [
                    "1 Take ann's",
                    "2 Keep shared",
                    "3 Ask an agent",
                    "4 Leave apart",
                ]
                assert labels == words
                await press_when_read(app, pilot, "1")
                while conversation.progress.conflicts:
                    await pilot.pause()
        assert place.files() == {"a.txt": "of ann\n", "new.txt": "new\n"}

    asyncio.run(story())


@pytest.mark.parametrize("width", [80, 50])
def test_every_button_is_on_a_narrow_full_screen(place: Place, width: int) -> None:
    name = "a-builder-with-a-long-name"
    place.team.write_text(place.team.read_text(encoding="utf-8").replace('"ann"', f'"{name}"'), encoding="utf-8")

    async def story() -> None:
        async with open_team(place.team, db=place.folder / "c.db") as conversation:
            app = BullpenApp(conversation)
            async with app.run_test(size=(width, 24)) as pilot:
                await conversation.say(f"[NEXT: {name}] Go.")
                await conversation.until_quiet()
                notice = app.screen.query_one(NoticeBar)
                while not _all_inside(notice, count=4):
                    await pilot.pause()
                await pilot.resize_terminal(140, 24)
                while len({button.region.y for button in notice.query(Button)}) > 1 or not _all_inside(notice, count=4):
                    await pilot.pause()

    asyncio.run(story())


def _all_inside(notice: NoticeBar, count: int) -> bool:
    """Return whether so many buttons can be seen whole, and no two are in one place."""
    regions = {button.region for button in notice.query(Button)}
    return len(regions) == count and all(notice.region.contains_region(one) and one.area for one in regions)


def test_the_browser_has_buttons(place: Place) -> None:
    async def story() -> None:
        async with (
            site(place.folder, place.team) as served,
            httpx.AsyncClient(base_url=served.url, timeout=60) as client,
        ):
            await client.post(served.new_url(), headers={"Origin": served.url})
            conversation = (await served.hub.begin()).conversation
            await conflict(conversation)
            page = (await client.get(f"/c/{conversation.id}")).text
            for shown in ('id="take-1"', 'id="keep-1"', 'id="resolve-1"', 'id="apart-1"', "Resolve with bob"):
                assert shown in page
            assert not re.search(r"\beve\b", page.partition('id="decisions"')[2].partition("</section>")[0])
            headers = {"HX-Request": "true", "Origin": served.url}
            answer = await client.post(f"/c/{conversation.id}/do/take", data={"turn": "1"}, headers=headers)
            answer.raise_for_status()
            assert not conversation.progress.conflicts
        assert place.files() == {"a.txt": "of ann\n", "new.txt": "new\n"}

    asyncio.run(story())
