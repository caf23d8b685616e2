"""Reading up in the conversation while it continues."""

from unittest import mock

import pytest
from rich.console import RenderableType
from tests.tui.stage import Scene, Stage
from tests.tui.test_long import write_conversation
from textual.dom import NoScreen
from textual.geometry import Size
from textual.screen import Screen
from textual.widgets import Static

from bullpen.tui.app import BullpenApp
from bullpen.tui.new_below import NewBelow
from bullpen.tui.transcript import PAGE, Transcript


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


def test_the_transcript_is_never_blank_when_a_reply_replaces_its_live_view(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.agent("max", [{"say": "\n\n".join(f"Word {number}." for number in range(1, 61)), "chunk": 90, "delay": 0.01}])
    frames: list[str] = []
    monkeypatch.setattr("textual.screen.UPDATE_PERIOD", 1 / 60)
    display = BullpenApp._display

    def recorded(self: BullpenApp, screen: Screen[None], renderable: RenderableType | None) -> None:
        display(self, screen, renderable)
        frames.append("\n".join("".join(part.text for part in strip) for strip in screen._compositor.render_strips()))

    async def story(scene: Scene) -> None:
        monkeypatch.setattr(BullpenApp, "_display", recorded)
        await scene.say("Go.")
        await scene.quiet()
        await scene.sees("Word 60.")
        words = [frame.count("Word ") for frame in frames]
        filled = next(place for place, count in enumerate(words) if count > 5)
        assert min(words[filled:]) > 5, words

    stage.play(story, size=(80, 24))


def test_a_part_that_is_removed_before_it_is_painted_does_not_end_the_screen(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}])
    conversation_id = write_conversation(stage.db, stage.team, 3)

    async def story(scene: Scene) -> None:
        await scene.sees("Word 3.")
        header = transcript_of(scene).views[-1].query(Static).first()
        # Textual takes a widget out of the tree at once, and out of the layout later. If it is painted in between:
        painted = mock.Mock(side_effect=NoScreen("node has no screen"))
        with mock.patch.object(header, "render_lines", painted):
            scene.app.screen._compositor._dirty_regions.add(header.region)
            scene.app.screen._compositor_refresh()
        assert painted.called
        await scene.sees("Word 3.")
        assert scene.app.is_running

    stage.play(story, size=(80, 24), resume=conversation_id)


def test_nothing_is_new_below_for_who_has_not_scrolled_up(stage: Stage) -> None:
    """A message that came just when the notice had taken a part of the screen counted as one out of sight."""
    stage.agent("max", [{"stderr": "no"}, {"exit": 3}])
    conversation_id = write_conversation(stage.db, stage.team, 15)
    followed: list[tuple[bool, bool]] = []

    async def story(scene: Scene) -> None:
        await scene.sees("Word 15.")
        transcript = transcript_of(scene)
        size_updated = transcript._size_updated

        def resized(size: Size, virtual: Size, container: Size, layout: bool = True) -> bool:
            updated = size_updated(size, virtual, container, layout)
            followed.append((transcript.scroll_y < transcript.max_scroll_y - 1, transcript.is_following))
            return updated

        with mock.patch.object(transcript, "_size_updated", resized):
            await scene.say("Go.")
            await scene.sees("1 Retry")
        assert any(is_behind for is_behind, _ in followed)
        assert all(is_following for _, is_following in followed)

    stage.play(story, size=(80, 24), resume=conversation_id)


def test_messages_that_come_below_are_counted_and_one_key_or_click_away(stage: Stage) -> None:
    stage.agent("max", [{"say": "And one more."}])
    conversation_id = write_conversation(stage.db, stage.team, 15)

    async def story(scene: Scene) -> None:
        await scene.sees("Word 15.")
        assert " new" not in scene.text
        for leave in ("end", "click"):
            await scene.press("pageup", "pageup")
            await scene.conversation.say("Another person speaks.")
            await scene.quiet()
            await scene.sees("↓ 2 new")
            assert "And one more." not in scene.text
            if leave == "end":
                await scene.press("end")
            else:
                await scene.pilot.click(NewBelow)
            await scene.sees("Another person speaks.", "And one more.")
            await scene.until(lambda: " new" not in scene.text)

    stage.play(story, size=(80, 24), resume=conversation_id)


@pytest.mark.parametrize("length", [15, 4 * PAGE])
def test_what_a_person_says_comes_into_view(stage: Stage, length: int) -> None:
    stage.agent("max", [{"say": "And one more."}])
    conversation_id = write_conversation(stage.db, stage.team, length)

    async def story(scene: Scene) -> None:
        await scene.sees(f"Word {length}.")
        await scene.press("tab")
        # Of the longer one, the end is not loaded any more.
        while transcript_of(scene).is_at_end and transcript_of(scene).views[0].sequence > 1:
            await scene.press("home")
        await scene.press("home")
        await scene.until(lambda: f"Word {length}." not in scene.text)
        assert transcript_of(scene).is_at_end == (length < PAGE)
        await scene.say("Here I am.")
        await scene.sees("Here I am.")
        await scene.quiet()
        await scene.sees("And one more.")
        numbers = [view.sequence for view in transcript_of(scene).views]
        assert numbers == list(range(numbers[0], length + 3))

    stage.play(story, size=(80, 24), resume=conversation_id)


def test_reading_down_to_the_end_follows_again(stage: Stage) -> None:
    stage.agent("max", [{"say": "And one more."}])
    conversation_id = write_conversation(stage.db, stage.team, 15)

    async def story(scene: Scene) -> None:
        await scene.sees("Word 15.")
        await scene.press("pageup")
        await scene.conversation.say("Another person speaks.")
        await scene.quiet()
        await scene.sees("↓ 2 new")
        for _ in range(4):
            await scene.press("pagedown")
        await scene.until(lambda: " new" not in scene.text)
        await scene.conversation.say("Again.")
        await scene.sees("Again.")

    stage.play(story, size=(80, 24), resume=conversation_id)
