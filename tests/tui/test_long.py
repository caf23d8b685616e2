"""A long conversation: only what is looked at is on the screen."""

from collections.abc import Callable
from pathlib import Path

from tests.tui.stage import Scene, Stage

from bullpen.messages import ConversationMessage, Speaker
from bullpen.store import conversation_rows, message_rows
from bullpen.store.base import StateChange
from bullpen.store.conversation_rows import place_of
from bullpen.store.sqlite import SqliteStore
from bullpen.tui.transcript import MOST_ON_SCREEN, PAGE, Transcript

LENGTH = 300
KIM = Speaker(role_id="kim", role_name="Kim", type="human")
MAX = Speaker(role_id="max", role_name="Max", type="ai")


def write_conversation(db: Path, team: Path, length: int, *, timestamp: Callable[[int], int] = lambda _: 1) -> str:
    """Store a conversation in one go; saying it would take as many commits."""
    store = SqliteStore(db)
    store.create("long-road-1", team="Shop", team_file=team.read_text(), started_at=1)
    with store._database.writing() as rows:
        place = place_of(rows, "long-road-1")
        link = place.head
        for sequence in range(1, length + 1):
            speaker = (KIM, MAX)[sequence % 2]
            message = ConversationMessage(
                id=f"m{sequence}", content=f"Word {sequence}.", speaker=speaker, timestamp=timestamp(sequence)
            )
            _, link = message_rows.add(rows, place.number, link, sequence, message)
        conversation_rows.apply(rows, place.number, StateChange(), 1, end=(length, link))
    store.close()
    return "long-road-1"


def test_a_long_conversation_is_a_few_pages_on_the_screen(stage: Stage) -> None:
    stage.agent("max", [{"say": "And one more."}])
    conversation_id = write_conversation(stage.db, stage.team, LENGTH)

    async def story(scene: Scene) -> None:
        transcript = scene.app.screen.query_one(Transcript)

        def numbers() -> list[int]:
            return [view.sequence for view in transcript.views]

        await scene.sees(f"Word {LENGTH}.")
        assert numbers() == list(range(LENGTH - PAGE + 1, LENGTH + 1))

        # Up, page by page: what is read stays where it is, and what is far below goes.
        await scene.press("tab")
        for page in range(2, 6):
            before = numbers()[0]
            await scene.press("home")
            await scene.sees(f"Word {before}.", f"Word {before + 1}.")
            assert numbers()[0] == before - PAGE
            assert len(numbers()) == min(page * PAGE, MOST_ON_SCREEN)
        assert not transcript.is_at_end

        # What others say meanwhile does not disturb; the newest is one key away.
        await scene.conversation.say("Still there?")
        await scene.quiet()
        assert LENGTH + 1 not in numbers()
        await scene.press("end")
        await scene.sees("Still there?", "And one more.")
        assert len(numbers()) <= PAGE

        # A place far back is opened with what is around it, and scrolling down leads on from there.
        await transcript.open_at(100)
        await scene.sees("Word 100.")
        assert numbers() == list(range(100 - PAGE // 2, 100 - PAGE // 2 + PAGE))
        transcript.scroll_end(animate=False)
        await scene.until(lambda: numbers()[-1] >= 100 + PAGE)
        assert len(transcript.query("*")) < 12 * MOST_ON_SCREEN

    stage.play(story, size=(80, 24), resume=conversation_id)
