"""Reading up in the conversation while it continues."""

from tests.tui.stage import Scene, Stage
from tests.tui.test_long import write_conversation

from bullpen.tui.transcript import Transcript


def transcript_of(scene: Scene) -> Transcript:
    return scene.app.screen.query_one(Transcript)


def test_paging_up_and_down_again_follows_the_conversation_again(stage: Stage) -> None:
    """PageDown to the end crashed: the transcript was anchored in the middle of the animation that had scrolled it."""
    stage.agent("max", [{"say": "And one more."}])
    conversation_id = write_conversation(stage.db, stage.team, 15)

    async def story(scene: Scene) -> None:
        await scene.sees("Word 15.")
        transcript_of(scene).views[-1].focus()
        await scene.press("pageup", "pageup")
        assert not transcript_of(scene).is_following
        await scene.press("pagedown", "pagedown", "pagedown")
        await scene.until(lambda: transcript_of(scene).is_following)
        assert transcript_of(scene).is_anchored

    stage.play(story, size=(80, 24), resume=conversation_id)
