"""Typing anywhere writes; what cannot be undone asks first; and the screen says where keys go."""

from pathlib import Path

import pytest
from tests.tui.stage import Scene, Script, Stage
from textual import events

from bullpen.tui.chat import ChatScreen
from bullpen.tui.composer import Composer
from bullpen.tui.fold import FoldTitle
from bullpen.tui.message import MessageView
from bullpen.tui.prompt_screen import PromptScreen
from bullpen.tui.queue import QueuePanel
from bullpen.tui.text_screen import TextScreen

HANGING: Script = [{"think": "Hm."}, {"say": "Let me think about it. "}, {"hang": True}]
WORDS = "max, please stop: delete ALL 3 drops!"


def composer_of(scene: Scene) -> Composer:
    return scene.app.screen.query_one(Composer)


def test_typing_writes_wherever_the_focus_is(stage: Stage) -> None:
    """After esc, letters were commands: this sentence cancelled the turn and opened the task editor."""
    stage.agent("max", HANGING)
    stage.agent("sarah", [{"say": "Yes."}], cli="codex")

    async def story(scene: Scene) -> None:
        await scene.say("Go. [NEXT: max, sarah]")
        await scene.sees("Let me think", "1. sarah")
        places = [scene.app.screen.query(kind).first() for kind in (MessageView, FoldTitle, QueuePanel)]
        for place in (*places, None):
            scene.app.screen.set_focus(place)
            for character in WORDS:
                scene.app.post_message(events.Key(character, character))
            await scene.settled()
            assert composer_of(scene).text == WORDS
            assert scene.app.screen.focused is composer_of(scene)
            assert [turn.turn.member for turn in scene.conversation.running.values()] == ["max"]
            assert [turn.member for turn in scene.conversation.waiting] == ["sarah"]
            composer_of(scene).text = ""

    stage.play(story)


def test_what_is_pasted_anywhere_is_in_the_composer(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}])

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.quiet()
        await scene.press("tab")
        assert isinstance(scene.app.screen.focused, MessageView)
        scene.app.post_message(events.Paste("one\ntwo"))
        await scene.settled()
        assert composer_of(scene).text == "one\ntwo"

    stage.play(story)


def test_typing_leaves_what_is_only_read(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}])

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.quiet()
        await scene.press("tab", "enter")
        await scene.until(lambda: isinstance(scene.app.screen, TextScreen))
        await scene.type("quick")
        assert composer_of(scene).text == "quick"
        await scene.press("ctrl+o")
        await scene.until(lambda: isinstance(scene.app.screen, PromptScreen))
        await scene.type("do")
        assert composer_of(scene).text == "quickdo"

    stage.play(story)


def test_escape_stops_who_is_working_when_it_is_pressed_twice(stage: Stage) -> None:
    stage.agent("max", HANGING)

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("Let me think")
        await scene.type("A draft")
        await scene.press("escape")
        await scene.sees("max is working. esc again cancels that.")
        assert scene.conversation.running
        await scene.press("escape")
        await scene.sees("Cancelled: max.")
        assert not scene.conversation.running
        assert composer_of(scene).text == "A draft"
        await scene.press("escape")
        await scene.sees("No turn is running")

    stage.play(story)


def test_what_escape_would_cancel_is_said_only_while_somebody_works(stage: Stage, tmp_path: Path) -> None:
    stage.agent("max", [{"say": "One. "}, {"wait_for": str(tmp_path / "go")}, {"say": "Two."}])

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("One.")
        await scene.press("escape")
        await scene.sees("max is working. esc again cancels that.")
        (tmp_path / "go").touch()
        await scene.quiet()
        await scene.until(lambda: "esc again" not in scene.text)

    stage.play(story)


@pytest.mark.parametrize("columns", [30, 45, 80])
def test_no_key_of_the_last_line_is_cut(stage: Stage, columns: int) -> None:
    stage.agent("max", [{"say": "Yes."}])
    keys = ["F1 Help", "F3 Find", "F4 Task", "^o Prompt", "^q Leave", "^p Commands"]
    whole = [" ".join(keys[:most]) for most in range(1, 7)]

    async def story(scene: Scene) -> None:
        await scene.sees("F1 Help")
        await scene.until(
            lambda: scene.text.split("\n")[-1].strip() == [one for one in whole if len(one) <= columns - 2][-1]
        )
        await scene.pilot.resize_terminal(120, 30)
        await scene.sees(*keys)

    stage.play(story, size=(columns, 20))


def test_escape_goes_back_to_writing_when_nobody_works(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}])

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.quiet()
        await scene.press("tab")
        await scene.sees("reading · ↑ ↓ move · enter opens · type to write")
        await scene.press("escape")
        assert scene.app.screen.focused is composer_of(scene)
        assert "type to write" not in scene.text

    stage.play(story)


def test_dropping_turns_asks_first(stage: Stage) -> None:
    stage.agent("max", HANGING)
    stage.agent("sarah", [{"say": "Yes."}], cli="codex")

    async def story(scene: Scene) -> None:
        await scene.say("Go. [NEXT: max, sarah]")
        await scene.sees("1. sarah")
        await scene.press("ctrl+g")
        await scene.until(lambda: isinstance(scene.app.screen.focused, QueuePanel))
        await scene.sees("queue · shift+↑ ↓ move")
        await scene.press("delete")
        await scene.sees("delete again drops 1 waiting turn.")
        await scene.press("ctrl+delete")
        await scene.sees("ctrl+delete again drops every waiting turn.")
        assert len(scene.conversation.waiting) == 1
        await scene.press("ctrl+delete")
        await scene.until(lambda: not scene.conversation.waiting)

    stage.play(story)


def test_no_letter_is_a_command() -> None:
    screens = (ChatScreen, Composer, QueuePanel, MessageView, FoldTitle, TextScreen, PromptScreen)
    keys = [key for screen in screens for binding in screen.BINDINGS for key in binding.key.split(",")]  # type: ignore[union-attr]

    assert [key for key in keys if len(key) == 1] == []
    assert "space" not in keys


def test_a_key_for_a_panel_that_is_not_on_the_screen_yet_does_not_end_it(stage: Stage) -> None:
    stage.agent("max", [{"say": "Hello."}])

    async def story(scene: Scene) -> None:
        # On a slow machine, a key comes before everything is there.
        await scene.app.screen.query_one(QueuePanel).remove()
        await scene.press("ctrl+g")
        await scene.say("Hi")
        await scene.sees("Hi")

    stage.play(story)
