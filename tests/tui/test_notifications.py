"""A person who looks elsewhere is told that it is their turn; who is refused something has the time to read why."""

from tests.tui.stage import Scene, Stage
from textual.events import AppBlur, AppFocus


def test_the_terminal_is_told_while_another_window_is_in_front(stage: Stage) -> None:
    stage.agent("max", [{"say": "Done."}])

    async def story(scene: Scene) -> None:
        written: list[str] = []
        scene.app.notifier._write = written.append
        scene.app.post_message(AppBlur())
        await scene.conversation.say("Go.")
        await scene.until(lambda: any("\x1b]9;bullpen: It waits for you, kim." in text for text in written))
        assert any("\x1b]2;◆ (1) Shop · bullpen" in text for text in written)
        written.clear()
        scene.app.post_message(AppFocus())
        await scene.settled()
        await scene.conversation.say("Again.")
        await scene.quiet()
        await scene.until(lambda: len(scene.app.screen.query("MessageView")) == 4)
        assert not any("\x1b]9;" in text for text in written)

    stage.play(story)


def test_a_refusal_stays_as_long_as_a_person_needs_to_read_it(stage: Stage) -> None:
    stage.agent("max", [{"say": "Done."}])

    async def story(scene: Scene) -> None:
        await scene.say("/undo")
        await scene.sees("There is nothing to undo")
        (refused,) = scene.app._notifications
        assert refused.timeout == 3 + len(refused.message) / 10 > 9
        scene.app.clear_notifications()
        scene.app.screen.notify("Short.")
        await scene.until(lambda: bool(scene.app._notifications))
        assert [one.timeout for one in scene.app._notifications] == [5]

    stage.play(story)
