"""Best of several: every door asks which result is picked, and shows them."""

import asyncio
import io
import subprocess
from pathlib import Path

import httpx
import pytest
from tests.tui.stage import press_when_read
from tests.view.doors import plain_chat
from textual.pilot import Pilot
from textual.widgets import Button

from bullpen.app import open_team
from bullpen.cli.exit_codes import ending_of
from bullpen.cli.plain.transcript import Show
from bullpen.cli.plain.typed_line import ChatLines
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Trouble
from bullpen.errors import BullpenError
from bullpen.terminal.colors import Colours
from bullpen.terminal.page import StreamPage
from bullpen.testing.site import site
from bullpen.tui.app import BullpenApp
from bullpen.tui.check_fold import CheckFold
from bullpen.tui.compare_screen import Column, CompareScreen
from bullpen.tui.notice import NoticeBar
from bullpen.view.addressees import addressees
from bullpen.view.best_of import results_of
from bullpen.view.commands import ACTIONS, read_command, run_command
from bullpen.view.state import conversation_view, stored_view
from bullpen.view.status_lines import left_open_lines, queue_lines

TASK = "[NEXT: ann | bob | cyd] Write it."
QUESTION = (
    "ann (turn 1) and bob (turn 2) have each done the task. cyd (turn 3) has no result. Which result should be merged?"
)

CHECK = "cat a.txt; echo '<b>one more line</b>'; grep -q ann a.txt"
"""Green for ann, red for bob."""


class Place:
    """A repository in which ann and bob write different versions of a file, and cyd fails."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root, self.team = folder, folder / "repo", folder / "team.toml"
        self.root.mkdir()
        (self.root / "a.txt").write_text("base\n", encoding="utf-8")
        names = ("-c", "user.name=kim", "-c", "user.email=kim@example.org")
        for words in (("init", "-q"), ("add", "-A"), (*names, "commit", "-qm", "first")):
            subprocess.run(["git", *words], cwd=self.root, check=True)
        self.team.write_text(
            '[[member]]\nname = "kim"\n'
            + "".join(
                f'[[member]]\nname = "{name}"\ncommand = ["sh", "-c", "cat > /dev/null; {work}"]\n'
                'permissions = "edit"\ncwd = "repo"\n'
                for name, work in {
                    "ann": "echo of ann > a.txt; echo Written by ann.",
                    "bob": "echo of bob > a.txt; echo more > b.txt; echo Written by bob.",
                    "cyd": "exit 3",
                }.items()
            )
            + f'[[check]]\nname = "tests"\ncwd = "repo"\ncommand = ["sh", "-c", "{CHECK}"]\n',
            encoding="utf-8",
        )

    def files(self) -> dict[str, str]:
        files = (path for path in sorted(self.root.iterdir()) if path.is_file())
        return {path.name: path.read_text(encoding="utf-8") for path in files}

    def worktrees(self) -> int:
        known = self.root / ".git" / "worktrees"
        return len(list(known.iterdir())) if known.is_dir() else 0


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def done(conversation: Conversation) -> None:
    await conversation.say(TASK)
    await conversation.until_quiet()


def states(conversation: Conversation, key: str = "1") -> list[str]:
    return [one.state for one in conversation.progress.rounds[key].candidates]


async def until(place: Place, worktrees: int) -> None:
    while place.worktrees() != worktrees:
        await asyncio.sleep(0.01)


async def until_focused(pilot: Pilot[None], column: Column) -> None:
    while not column.has_focus_within:
        await pilot.pause(0.02)


def test_every_answer(place: Place) -> None:
    async def story() -> None:
        async with plain_chat(place.team, place.folder) as (conversation, send):
            await done(conversation)
            assert "There is no result of 'kim' to pick or drop." in await send("/pick kim")
            assert "cyd has no result: turn 3 ended without a reply." in await send("/pick cyd")
            assert "Turn 9 is not one of several" in await send("/compare 9")
            assert place.files() == {"a.txt": "base\n"}
            await send("/pick bob")
            await until(place, 2)
            assert place.files() == {"a.txt": "of bob\n", "b.txt": "more\n"}
            await send("/discard ann")
            await until(place, 1)
            await send("/discard all")
            await until(place, 0)
            while conversation.progress.rounds:
                await asyncio.sleep(0.01)
            assert "/diff 1 shows what turn 1 changed" in await send("/compare 1")
            assert "Turn 9 is not one of several" in await send("/compare 9")

    asyncio.run(story())


def test_only_what_is_named_is_dropped(place: Place) -> None:
    async def story() -> None:
        async with plain_chat(place.team, place.folder) as (conversation, send):
            await done(conversation)
            said = await send("/discard")
            assert "/discard all for ann (turn 1), bob (turn 2) and cyd (turn 3)" in said
            assert "There is no result of '9'" in await send("/discard 9")
            assert states(conversation) == ["done", "done", "failed"]
            await send("/discard 1")
            assert states(conversation) == ["gone", "done", "failed"], "also the first turn of the task is only a turn"
            await send("/pick 2")
            await until(place, 1)
            assert place.files() == {"a.txt": "of bob\n", "b.txt": "more\n"}

    asyncio.run(story())


def test_with_two_tasks_the_question_says_which(place: Place) -> None:
    async def story() -> None:
        async with open_team(place.team, db=place.folder / "c.db") as conversation:
            await done(conversation)
            await conversation.say("[NEXT: ann | bob] Again.")
            await conversation.until_quiet()
            asked = [one for one in conversation_view(conversation).decisions if one.kind == "pick"]
            typed = [choice.typed for one in asked for choice in one.choices]
            assert typed == ["/pick TURN", "/discard all 4", "/pick TURN", "/discard all 1"]

            async def run(text: str) -> None:
                typed = read_command(text, conversation.team)
                assert typed is not None
                await run_command(typed, conversation)

            with pytest.raises(BullpenError, match=r"/discard all 1 or /discard all 4\?"):
                await run("/discard all")
            with pytest.raises(BullpenError, match="ann has several results: turn 4 and turn 1"):
                await run("/discard ann")
            await run("/discard all 1")
            assert states(conversation, "4") == ["done", "done"]

    asyncio.run(story())


def test_what_is_asked_is_the_same_from_memory_and_from_the_store(place: Place) -> None:
    async def story() -> None:
        async with open_team(place.team, db=place.folder / "c.db") as conversation:
            shown = addressees(conversation, TASK)
            assert shown is not None
            assert shown.line == "→ ann | bob | cyd, each apart; you pick"
            await done(conversation)
            view, stored = conversation_view(conversation), await conversation.read(stored_view)
            assert ending_of(conversation) == "undecided"
        assert view.status == stored.status == "paused"
        assert view.decisions == stored.decisions
        decision, failed = view.decisions
        assert failed.kind == "failed"
        assert (decision.kind, decision.text, decision.others) == ("pick", QUESTION, ("ann", "bob"))
        assert [choice.typed for choice in decision.choices] == ["/pick NAME", "/discard all"]
        assert {choice.action for choice in decision.choices} <= set(ACTIONS)
        assert queue_lines(view)[-1] == "turn 1  ann, bob: /pick NAME or /discard all?"
        assert list(left_open_lines(view))[-1] == (
            "Nothing is picked yet: ann, bob. In chat: /compare, /pick NAME or /discard all."
        )

    asyncio.run(story())


def test_the_plain_chat_asks_shows_and_tells(place: Place) -> None:
    async def story() -> str:
        written = io.StringIO()
        async with open_team(place.team, db=place.folder / "c.db") as conversation:
            decisions = lambda: conversation_view(conversation).decisions  # noqa: E731
            show = Show(StreamPage(written), Colours(None, on=False), decisions, in_chat=True)
            lines = ChatLines(conversation, show, None)
            with conversation.viewing() as viewer:
                await done(conversation)
                for numbered in await viewer.several():
                    show.tell(numbered.event)
                await lines.take("/compare")
                await lines.take("/pick ann")
                await until(place, 2)
                await conversation.until_quiet()
                for numbered in await viewer.several():
                    show.tell(numbered.event)
        return written.getvalue()

    written = " ".join(asyncio.run(story()).split())
    assert QUESTION in written
    assert "1 Pick one /pick NAME" in written
    assert "/discard all pick none, and drop what ann, bob and cyd did" in written
    assert "ann turn 1 · 1 file, +1 −1 Written by ann. ✓ tests: green" in written
    assert "bob turn 2 · 2 files, +2 −1 Written by bob. ✗ tests: red (exit 1)" in written
    assert written.count("What they wrote: /checks") == 1
    assert "What they wrote: /checks 2" in written
    assert "Nothing is merged yet: pick one, or drop all. /pick NAME, /discard NAME or /discard all" in written
    assert "kim picked the result of ann (turn 1). Not picked: bob (turn 2) and cyd (turn 3)." in written
    assert "What was not picked stays until /discard." in written


@pytest.mark.parametrize("columns", [80, 140])
def test_the_full_screen_shows_them_beside_each_other(place: Place, columns: int) -> None:
    async def story() -> None:
        async with open_team(place.team, db=place.folder / "c.db") as conversation:
            await done(conversation)
            app = BullpenApp(conversation)
            async with app.run_test(size=(columns, 30)) as pilot:
                await pilot.pause()
                notice = app.screen.query_one(NoticeBar)
                while len(notice.query(Button)) < 2:
                    await pilot.pause(0.02)
                assert [str(one.label) for one in notice.query(Button)] == ["1 Pick one", "Drop all /discard all"]
                await press_when_read(app, pilot, "1")
                while not isinstance(app.screen, CompareScreen):
                    await pilot.pause(0.02)
                assert [column.result.member for column in app.screen._columns] == ["ann", "bob", "cyd"]
                ann, bob, cyd = [list(column.query(CheckFold)) for column in app.screen._columns]
                assert [fold.line.light for fold in (*ann, *bob, *cyd)] == ["green", "red"]
                columns_shown = app.screen._columns
                await until_focused(pilot, columns_shown[0])
                await pilot.press("right")
                await until_focused(pilot, columns_shown[1])
                await pilot.press("c")
                assert [fold.is_open for fold in (*ann, *bob)] == [False, True]
                await pilot.press("c")
                assert [fold.is_open for fold in (*ann, *bob)] == [False, False]
                await pilot.press("3", "3")
                assert isinstance(app.screen, CompareScreen), "cyd has no result"
                await pilot.press("2")
                assert [one.message for one in app._notifications][-1] == "2 again: pick the result of bob."
                await pilot.press("2")
                await until(place, 2)
                assert place.files() == {"a.txt": "of bob\n", "b.txt": "more\n"}
                assert not [one.message for one in app._notifications if "again" in one.message]

    asyncio.run(story())


def test_trouble_on_the_full_screen_does_not_hide_what_waits_to_be_picked(place: Place) -> None:
    async def story() -> None:
        async with open_team(place.team, db=place.folder / "c.db") as talk:
            app = BullpenApp(talk)
            async with app.run_test() as pilot:
                await done(talk)
                talk._journal.publish(Trouble(text="'a.txt' still has conflict marks.", about="a"))
                notice = app.screen.query_one(NoticeBar)
                while notice.decision is None or notice.decision.kind != "trouble":
                    await pilot.pause()
                await pilot.pause()
                assert [str(one.label) for one in notice.query(Button)] == ["1 Leave it", "2 Pick one"]
                await press_when_read(app, pilot, "2")
                while not isinstance(app.screen, CompareScreen):
                    await pilot.pause()

    asyncio.run(asyncio.wait_for(story(), 60))


def test_the_full_screen_drops_all_only_when_asked_twice(place: Place) -> None:
    async def story() -> None:
        async with open_team(place.team, db=place.folder / "c.db") as conversation:
            await done(conversation)
            app = BullpenApp(conversation)
            async with app.run_test(size=(100, 30)) as pilot:
                notice = app.screen.query_one(NoticeBar)
                while len(notice.query(Button)) < 2:
                    await pilot.pause(0.02)
                drop = next(button for button in notice.query(Button) if "Drop all" in str(button.label))
                drop.press()
                await pilot.pause()
                assert states(conversation) == ["done", "done", "failed"]
                drop.press()
                await pilot.pause()
                await until(place, 0)

    asyncio.run(story())


def test_the_browser_shows_them_and_picks(place: Place) -> None:
    async def story() -> None:
        async with (
            site(place.folder, place.team) as served,
            httpx.AsyncClient(base_url=served.url, timeout=60) as client,
        ):
            await client.post(served.new_url(), headers={"Origin": served.url})
            client.headers["Origin"] = served.url
            talk = (await served.hub.begin()).conversation
            await done(talk)
            await _browse(place, client, talk)

    asyncio.run(story())


async def _browse(place: Place, client: httpx.AsyncClient, talk: Conversation) -> None:
    page = (await client.get(f"/c/{talk.id}")).text
    assert f'href="/c/{talk.id}/results?turn=1"' in page
    assert '<input type="hidden" name="everything" value="true"><button' in page.partition('id="discard-1"')[2]
    shown = await client.get(f"/c/{talk.id}/results?turn=1")
    assert shown.status_code == 200
    assert shown.text.count('<section class="result') == 3
    assert shown.text.count("Pick this one") == 2
    ann, bob, cyd = shown.text.split('<section class="result')[1:]
    assert ('class="check green"' in ann, 'class="check red"' in bob, 'class="check' in cyd) == (True, True, False)
    assert "&lt;b&gt;one more line" in bob
    found = (await client.get(f"/api/conversations/{talk.id}/results")).json()
    assert [[(check["light"], check["check"] > 0) for check in one["checks"]] for one in found["results"]] == [
        [("green", True)],
        [("red", True)],
        [],
    ]
    assert [(one["member"], one["summary"]) for one in found["results"]] == [
        ("ann", "1 file, +1 −1"),
        ("bob", "2 files, +2 −1"),
        ("cyd", ""),
    ]
    answer = await client.post(f"/c/{talk.id}/do/pick", data={"turn": "1", "member": "bob"})
    assert answer.status_code in (200, 204, 303)
    await until(place, 2)
    assert place.files() == {"a.txt": "of bob\n", "b.txt": "more\n"}
    found = (await client.get(f"/api/conversations/{talk.id}/results")).json()
    assert found["text"] == "kim picked the result of bob."


def test_results_are_those_of_the_task_that_is_meant(place: Place) -> None:
    async def story() -> None:
        async with open_team(place.team, db=place.folder / "c.db") as conversation:
            await done(conversation)
            await conversation.say("[NEXT: ann | bob] Again.")
            await conversation.until_quiet()
            first, second = [await conversation.read(results_of, turn) for turn in ("2", "")]
            assert (first.round, second.round) == ("1", "4")
            await conversation.pick("ann", "2")
            assert conversation.progress.rounds["1"].state == "decided"
            assert conversation.progress.rounds["4"].state == "asking"

    asyncio.run(story())
