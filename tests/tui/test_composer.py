"""Writing: names complete themselves, lines are kept, and nothing is sent that was not meant to be."""

from tests.tui.stage import Scene, Stage
from textual import events

from bullpen.tui.composer import Composer


def composer_of(scene: Scene) -> Composer:
    return scene.app.screen.query_one(Composer)


def team(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}], more='role = "Architect"')
    stage.agent("sarah", [{"say": "No."}], cli="codex")


async def nothing_was_said(scene: Scene) -> bool:
    return await scene.conversation.messages() == []


def test_a_name_completes_and_enter_takes_what_is_selected_and_does_not_send(stage: Stage) -> None:
    team(stage)

    async def story(scene: Scene) -> None:
        await scene.type("Please @sa")
        await scene.sees("@sarah")
        await scene.press("tab")
        assert composer_of(scene).text == "Please @sarah "

        composer_of(scene).text = ""
        await scene.type("@")
        await scene.sees("@kim     person", "@max     Architect", "@sarah")
        await scene.press("down", "enter")
        assert composer_of(scene).text == "@sarah "
        assert await nothing_was_said(scene)

    stage.play(story)


def test_enter_sends_after_a_whole_name(stage: Stage) -> None:
    team(stage)

    async def story(scene: Scene) -> None:
        await scene.type("Please ask @max")
        await scene.press("enter")
        await scene.sees("Kim →", "Please ask @max")
        assert composer_of(scene).text == ""

    stage.play(story)


def test_a_command_completes_and_runs(stage: Stage) -> None:
    team(stage)

    async def story(scene: Scene) -> None:
        await scene.type("/he")
        await scene.sees("/help", "show what you can do now")
        await scene.press("tab", "enter")
        await scene.sees("Now", "nothing waits for you")

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
        assert composer_of(scene).text == "one\n/hel\n@sarah "

    stage.play(story)


def test_pasted_lines_wait_to_be_sent(stage: Stage) -> None:
    team(stage)

    async def story(scene: Scene) -> None:
        scene.app.screen.post_message(events.Paste("first\r\nsecond\rthird\n\x1b[31mred\x1b]0;title\x07\u202e"))
        await scene.settled()
        assert composer_of(scene).text == "first\nsecond\nthird\n\ufffd[31mred\ufffd]0;title\ufffd\ufffd"
        assert await nothing_was_said(scene)

    stage.play(story)


def test_text_and_enter_in_one_packet_are_sent(stage: Stage) -> None:
    """Over a slow connection, what was typed and the enter after it arrive together."""
    team(stage)

    async def story(scene: Scene) -> None:
        for key, character in (("a", "a"), ("enter", "\r"), ("b", "b"), ("enter", "\r"), ("c", "c")):
            scene.app.post_message(events.Key(key, character))
        await scene.settled()
        await scene.quiet()
        said = [stored.message.content for stored in await scene.conversation.messages()]
        assert [text for text in said if text in ("a", "b")] == ["a", "b"]
        assert composer_of(scene).text == "c"

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


def test_what_was_changed_in_the_history_is_not_lost_and_a_draft_is_back_after_something_from_it_was_sent(
    stage: Stage,
) -> None:
    team(stage)

    async def story(scene: Scene) -> None:
        await scene.say("First.")
        await scene.quiet()
        await scene.type("Draft")
        await scene.press("up", "enter")
        await scene.quiet()
        assert composer_of(scene).text == "Draft"

        composer_of(scene).text = ""
        await scene.say("Second.")
        await scene.quiet()
        await scene.press("up")
        await scene.type(" Changed")
        seen = []
        for key in ("up", "down", "down"):
            await scene.press(key)
            seen.append(composer_of(scene).text)
        assert seen == ["First.", "Second.", "Second. Changed"]

    stage.play(story)


def test_what_cannot_be_said_stays_in_the_composer(stage: Stage) -> None:
    team(stage)

    async def story(scene: Scene) -> None:
        await scene.type("[FROM: nobody] Hello.")
        await scene.press("enter")
        await scene.sees("nobody")
        assert composer_of(scene).text == "[FROM: nobody] Hello."
        assert await nothing_was_said(scene)

    stage.play(story)


def test_a_draft_grows_when_the_window_gets_narrower_and_its_end_stays_in_sight(stage: Stage) -> None:
    team(stage)

    async def story(scene: Scene) -> None:
        composer_of(scene).insert(f"first {'word ' * 20}")
        await narrowed(scene, 40)
        assert composer_of(scene).size.height == composer_of(scene).wrapped_document.height

        composer_of(scene).insert(f"{'word ' * 50}end")
        await narrowed(scene, 30)
        await scene.sees("end")

    stage.play(story)


async def narrowed(scene: Scene, columns: int) -> None:
    await scene.pilot.resize_terminal(columns, 30)
    await scene.until(lambda: composer_of(scene).region.width == columns - 2)
