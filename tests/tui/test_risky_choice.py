"""A yes to full permissions takes two presses: the first may have been meant for what the screen showed before."""

from tests.tui.stage import Scene, Stage
from tests.tui.test_chat import saying


def test_one_press_asks_and_the_second_allows(stage: Stage) -> None:
    stage.agent("max", saying("Do it. [NEXT: ada]"))
    stage.agent("ada", saying("I have done it."), cli="codex", more='permissions = "full"')

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("F8 Allow", "F7 Don't allow")
        await scene.press("f8")
        await scene.sees("F8 again: yes, let ada answer (/allow 2).")
        assert [turn.member for turn in scene.conversation.unallowed] == ["ada"]
        await scene.press("f8")
        await scene.sees("I have done it.")
        assert scene.conversation.unallowed == ()

    stage.play(story)
