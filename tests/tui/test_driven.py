"""What driving the full screen at random has found."""

from tests.tui.stage import Scene, Stage
from tests.tui.test_long import write_conversation
from textual import events
from textual.widgets import Input

from bullpen.tui.conversations_screen import ConversationsScreen
from bullpen.tui.message import MessageView
from bullpen.tui.transcript import Transcript


def test_the_mouse_on_something_that_has_just_gone_does_no_harm(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}])

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.quiet()
        view = scene.app.screen.query(MessageView).last()
        x, y = view.query("MarkdownParagraph").first().region.offset
        with scene.app.batch_update():
            await view.remove()
            for kind in (events.MouseDown, events.MouseMove, events.MouseUp):
                await scene.app.on_event(kind(None, x, y, 0, 0, 1, False, False, False, x, y))
        await scene.settled()
        assert scene.app.is_running

    stage.play(story)


def test_what_is_typed_while_a_list_is_left_does_no_harm(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}])

    async def story(scene: Scene) -> None:
        await scene.press("ctrl+l")
        screen = scene.app.screen
        assert isinstance(screen, ConversationsScreen)
        line = screen.query_one(Input)
        await screen.query("*").remove()
        screen.on_input_changed(Input.Changed(line, "words"))
        await scene.press("escape")
        assert scene.app.is_running

    stage.play(story)


def test_a_dialog_that_is_left_twice_does_not_take_the_conversation_with_it(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}])

    async def story(scene: Scene) -> None:
        chat = scene.app.screen
        await scene.press("f1")
        dialog = scene.app.screen
        assert dialog is not chat
        dialog.dismiss()
        dialog.dismiss()
        await scene.settled()
        assert scene.app.screen is chat

    stage.play(story)


def test_the_palette_takes_any_key_at_any_moment(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}])

    async def story(scene: Scene) -> None:
        chat = scene.app.screen
        for _ in range(5):
            for key in ("ctrl+p", "pagedown", "pageup", "x", "pagedown", "escape", "escape"):
                scene.app.post_message(events.Key(key, key if len(key) == 1 else None))
            await scene.settled()
        await scene.until(lambda: scene.app.screen is chat)
        assert scene.app.is_running

    stage.play(story, size=(30, 10))


def test_messages_that_go_while_older_or_newer_ones_are_read_do_no_harm(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}])
    conversation_id = write_conversation(stage.db, stage.team, 60)

    async def story(scene: Scene) -> None:
        transcript = scene.app.screen.query_one(Transcript)
        await scene.sees("Word 60.")
        for load in (transcript._load_older, transcript._load_newer):
            async with transcript._changing:
                worker = load()
                await scene.pilot.pause()
                await transcript._messages.remove_children()
            await worker.wait()
            await transcript._trim_above()
            await transcript.open_end()
        await scene.sees("Word 60.")

    stage.play(story, size=(80, 24), resume=conversation_id)
