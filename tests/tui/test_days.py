"""The days of a conversation, and the width of its text."""

from tests.tui.stage import Scene, Stage
from tests.tui.test_long import write_conversation

from bullpen.text.numbers import day
from bullpen.tui.day_line import DayLine
from bullpen.tui.message import MessageView
from bullpen.tui.transcript import Transcript

DAY = 24 * 60 * 60 * 1000
NOON = 20_000 * DAY + DAY // 2


def days_on(scene: Scene) -> dict[int, str]:
    """Return each line by the message that it is before."""
    lines = scene.app.screen.query(DayLine)
    return {line.first.sequence: str(line.content) for line in lines}


def test_a_line_stands_between_two_days(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}])
    conversation_id = write_conversation(stage.db, stage.team, 60, timestamp=lambda number: NOON + (number // 25) * DAY)

    async def story(scene: Scene) -> None:
        transcript = scene.app.screen.query_one(Transcript)
        first, second, third = (f"── {day(NOON + number * DAY)} ──" for number in range(3))
        await scene.sees("Word 60.")
        assert days_on(scene) == {41: second, 50: third}
        await scene.press("tab")
        await scene.press("home")
        await scene.until(lambda: transcript.views[0].sequence == 21)
        assert days_on(scene) == {21: first, 25: second, 50: third}
        await scene.say("A new day.")
        await scene.quiet()
        said = next(view for view in transcript.views if view.message.content == "A new day.")
        await scene.until(lambda: said.sequence in days_on(scene))
        assert len(set(days_on(scene).values())) == len(days_on(scene))

    stage.play(story, size=(80, 24), resume=conversation_id)


def test_a_conversation_of_today_needs_no_line(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}])

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.quiet()
        assert days_on(scene) == {}

    stage.play(story)


def test_text_is_not_wider_than_people_like_to_read(stage: Stage) -> None:
    stage.agent("max", [{"say": "word " * 200}])

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.quiet()
        widths = [view.content_size.width for view in scene.app.screen.query(MessageView)]
        assert set(widths) == {100}

    stage.play(story, size=(220, 50))
