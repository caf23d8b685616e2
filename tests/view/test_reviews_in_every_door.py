"""Reviews: every door shows how far one is, and asks when it is a person's to decide."""

import asyncio
from pathlib import Path

import httpx
import pytest
from tests.tui.stage import press_when_read
from tests.view.doors import plain_chat
from textual.widgets import Button

from bullpen.app import open_team
from bullpen.cli import main
from bullpen.cli.exit_codes import ending_of, say_next
from bullpen.conversation.conversation import Conversation
from bullpen.database import open_database
from bullpen.testing.site import site
from bullpen.tui.app import BullpenApp
from bullpen.tui.members import MembersPanel
from bullpen.tui.notice import NoticeBar
from bullpen.view.commands import ACTIONS
from bullpen.view.inbox import inbox
from bullpen.view.listing import all_conversations
from bullpen.view.state import conversation_view, stored_view
from bullpen.view.status_lines import left_open_lines, queue_lines, status_line, team_lines

QUESTION = "sarah still asks for changes in round 1 of 1. Should sarah and max continue for one more round?"
STATE = "sarah reviews max: round 1 of 1, waiting for your decision"
TEAM = """
[[member]]
name = "kim"
[[member]]
name = "max"
command = ["sh", "-c", "cat > /dev/null; echo Built."]
[[member]]
name = "sarah"
command = ["sh", "-c", "cat > /dev/null; cat verdict"]
reviews = "max"
until = "approved"
most_rounds = 1
"""


class Place:
    """A team whose reviewer says what a file does."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.team = folder, folder / "team.toml"
        self.team.write_text(TEAM, encoding="utf-8")
        self.says("changes")

    def says(self, verdict: str) -> None:
        (self.folder / "verdict").write_text(f"I have read it.\n[VERDICT: {verdict}]", encoding="utf-8")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def done(conversation: Conversation) -> None:
    await conversation.say("[NEXT: max] Build it.")
    await conversation.until_quiet()


def state(conversation: Conversation) -> tuple[str, int]:
    one = conversation.progress.reviews["max"]
    return one.state, len(one.rounds)


def test_every_answer(place: Place) -> None:
    async def story() -> None:
        async with plain_chat(place.team, place.folder) as (conversation, send):
            assert "There is no open review" in await send("/again")
            await done(conversation)
            assert "with 'kim'" in await send("/end-review kim")
            await send("/again")
            while state(conversation) != ("asking", 2):
                await asyncio.sleep(0.01)
            place.says("approve")
            await send("/again max")
            while state(conversation) != ("approved", 3):
                await asyncio.sleep(0.01)
            await conversation.until_quiet()
            place.says("changes")
            await done(conversation)
            await send("/end-review sarah")
            assert state(conversation) == ("ended", 1)

    asyncio.run(story())


def test_how_far_it_is_and_what_is_asked_is_the_same_from_memory_and_from_the_store(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    async def story() -> None:
        async with open_team(place.team, db=place.folder / "c.db") as conversation:
            await done(conversation)
            view, stored = conversation_view(conversation), await conversation.read(stored_view)
            assert ending_of(conversation) == "unapproved"
            say_next(conversation, "unapproved", None)
            assert capsys.readouterr().err.count("Not approved") == 1
        assert view.status == stored.status == "paused"
        assert view.decisions == stored.decisions
        (decision,) = view.decisions
        assert (decision.kind, decision.text, decision.turn) == ("review", QUESTION, "2")
        assert [choice.typed for choice in decision.choices] == ["/again", "/end-review"]
        assert {choice.action for choice in decision.choices} <= set(ACTIONS)
        assert [member.review for member in view.members] == ["", "", STATE]
        assert queue_lines(view) == [STATE, f"{QUESTION} /again or /end-review?"]
        assert status_line(view) == STATE
        assert team_lines(view)[-1] == f"  {STATE}"
        assert list(left_open_lines(view)) == [f"Not approved: {QUESTION} In chat: /again or /end-review."]

    asyncio.run(story())


def test_the_full_screen_asks_and_shows_how_far_it_is(place: Place) -> None:
    async def story() -> None:
        async with open_team(place.team, db=place.folder / "c.db") as conversation:
            await done(conversation)
            app = BullpenApp(conversation)
            async with app.run_test(size=(120, 30)) as pilot:
                notice = app.screen.query_one(NoticeBar)
                while len(notice.query(Button)) < 2:
                    await pilot.pause(0.02)
                labels = [str(one.label) for one in notice.query(Button)]
                assert labels == ["1 One more round", "2 End the review"]
                assert STATE in str(app.screen.query_one(MembersPanel).render())
                place.says("approve")
                await press_when_read(app, pilot, "1")
                while state(conversation) != ("approved", 2):
                    await pilot.pause(0.02)

    asyncio.run(asyncio.wait_for(story(), 60))


def test_the_browser_asks_and_shows_how_far_it_is(place: Place) -> None:
    async def story() -> None:
        async with (
            site(place.folder, place.team) as served,
            httpx.AsyncClient(base_url=served.url, timeout=60) as client,
        ):
            await client.post(served.new_url(), headers={"Origin": served.url})
            client.headers["Origin"] = served.url
            conversation = (await served.hub.begin()).conversation
            await done(conversation)
            page = (await client.get(f"/c/{conversation.id}")).text
            assert QUESTION in page
            assert STATE in page
            assert "One more round" in page
            await client.post(f"/c/{conversation.id}/do/end-review", data={"member": "max"})
            assert state(conversation) == ("ended", 1)

    asyncio.run(story())


def test_the_browser_shows_what_waits_in_a_conversation_that_is_not_open(place: Place) -> None:
    run(place)

    async def story() -> None:
        async with (
            site(place.folder / "home", place.team) as served,
            httpx.AsyncClient(base_url=served.url, timeout=60) as client,
        ):
            await client.post(served.new_url(), headers={"Origin": served.url})
            with open_database(None) as database:
                (one,) = all_conversations(database)
            page = (await client.get(f"/c/{one.id}")).text
            assert "This conversation is not open here." in page
            assert QUESTION in page

    asyncio.run(story())


def run(place: Place) -> int:
    return main(["run", "--trust", str(place.team), "Build it."])


def test_a_run_ends_with_8_unless_it_is_approved(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    code, unapproved = run(place), capsys.readouterr()
    with open_database(None) as database:
        summaries = all_conversations(database)
        waiting = inbox(database)
    found = ([one.state for one in summaries], len(waiting), all(one.needs_you for one in summaries))
    assert (code, found) == (8, (["undecided"], 1, True)), unapproved
    assert QUESTION in " ".join(unapproved.err.split())

    place.says("approve")
    code, approved = run(place), capsys.readouterr()
    assert code == 0, approved
    assert "sarah approved what max did, in round 1 of 1." in approved.out
