"""Writing: names complete themselves, lines are kept, and nothing is sent that was not meant to be."""

from tests.tui.stage import Scene, Stage
from textual import events

from bullpen.tui.composer import PASTE_SECONDS, Composer


def composer_of(scene: Scene) -> Composer:
    return scene.app.screen.query_one(Composer)


def team(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}], more='role = "Architect"')
    stage.agent("sarah", [{"say": "No."}], cli="codex")


async def nothing_was_said(scene: Scene) -> bool:
    return await scene.conversation.messages() == []


def test_a_name_becomes_a_marker(stage: Stage) -> None:
    team(stage)

    async def story(scene: Scene) -> None:
        await scene.type("Please @sa")
        await scene.sees("@sarah")
        await scene.press("tab")
        assert composer_of(scene).text == "Please [NEXT: sarah] "

    stage.play(story)


def test_enter_takes_what_is_selected_and_does_not_send(stage: Stage) -> None:
    team(stage)

    async def story(scene: Scene) -> None:
        await scene.type("@")
        await scene.sees("@kim     person", "@max     Architect", "@sarah")
        await scene.press("down", "enter")
        assert composer_of(scene).text == "[NEXT: max] "
        assert await nothing_was_said(scene)

    stage.play(story)


def test_a_command_completes_and_runs(stage: Stage) -> None:
    team(stage)

    async def story(scene: Scene) -> None:
        await scene.type("/he")
        await scene.sees("/help", "show every command")
        await scene.press("tab", "enter")
        await scene.sees("Everywhere")

    stage.play(story)


def test_in_a_later_line_names_complete_and_commands_do_not(stage: Stage) -> None:
    team(stage)

    async def story(scene: Scene) -> None:
        composer_of(scene).insert("one\n/he")
        await scene.press("l")
        assert composer_of(scene)._options == []
        composer_of(scene).insert("\n@sa")
        await scene.press("r")
        await scene.sees("@sarah")
        await scene.press("tab")
        assert composer_of(scene).text == "one\n/hel\n[NEXT: sarah] "

    stage.play(story)


def test_pasted_lines_wait_to_be_sent(stage: Stage) -> None:
    team(stage)

    async def story(scene: Scene) -> None:
        scene.app.screen.post_message(events.Paste("first\r\nsecond\rthird\n\x1b[31mred\x1b]0;title\x07\u202e"))
        await scene.settled()
        assert composer_of(scene).text == "first\nsecond\nthird\n\ufffd[31mred\ufffd]0;title\ufffd\ufffd"
        assert await nothing_was_said(scene)

    stage.play(story)


def test_lines_that_a_terminal_types_for_a_paste_are_not_sent(stage: Stage) -> None:
    team(stage)

    async def story(scene: Scene) -> None:
        composer = composer_of(scene)
        composer.paste_seconds = PASTE_SECONDS
        # A terminal without bracketed paste types the characters faster than anybody can.
        for key, character in (("a", "a"), ("enter", "\r"), ("b", "b"), ("enter", "\r")):
            scene.app.post_message(events.Key(key, character))
        await scene.settled()
        assert composer.text == "a\nb\n"
        assert await nothing_was_said(scene)

    stage.play(story)


def test_lines_are_begun_by_key(stage: Stage) -> None:
    team(stage)

    async def story(scene: Scene) -> None:
        await scene.type("one")
        await scene.press("ctrl+j")
        await scene.type("two")
        await scene.press("shift+enter")
        await scene.say("three")
        [stored, *_] = await scene.conversation.messages()
        assert stored.message.content == "one\ntwo\nthree"

    stage.play(story)


def test_up_brings_back_what_was_said_and_down_what_was_being_written(stage: Stage) -> None:
    team(stage)

    async def story(scene: Scene) -> None:
        await scene.say("First.")
        await scene.quiet()
        await scene.say("Second.")
        await scene.quiet()
        await scene.type("Draft")
        seen = []
        for key in ("up", "up", "up", "down", "down"):
            await scene.press(key)
            seen.append(composer_of(scene).text)
        assert seen == ["Second.", "First.", "First.", "Second.", "Draft"]

    stage.play(story)


def test_what_cannot_be_said_stays_in_the_composer(stage: Stage) -> None:
    team(stage)

    async def story(scene: Scene) -> None:
        await scene.type("[FROM: nobody] Hello.")
        await scene.press("escape", "enter")
        await scene.sees("nobody")
        assert composer_of(scene).text == "[FROM: nobody] Hello."
        assert await nothing_was_said(scene)

    stage.play(story)
