"""A turn while it runs: pieces are gathered into frames."""

from typing import Any

import pytest
from tests.tui.stage import Scene, Stage
from textual.await_complete import AwaitComplete
from textual.screen import Screen

from bullpen.conversation.running_turn import RunningTurn
from bullpen.routing.queue import WaitingTurn
from bullpen.tui.markdown import Paragraph, SafeMarkdown
from bullpen.tui.step_folds import StepFold
from bullpen.tui.transcript import Transcript
from bullpen.tui.turn import MOST_FOLDS, TurnView
from bullpen.turn_events import TextDelta, ToolFinished, ToolStarted


def test_a_thousand_pieces_are_a_few_frames(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.agent("max", [{"say": "Yes."}])
    appended: list[str] = []
    append = SafeMarkdown.append

    def counted(self: SafeMarkdown, text: str) -> AwaitComplete:
        appended.append(text)
        return append(self, text)

    monkeypatch.setattr(SafeMarkdown, "append", counted)

    async def story(scene: Scene) -> None:
        transcript = scene.app.screen.query_one(Transcript)
        running = RunningTurn(WaitingTurn(id="7", member="max", message_id="m"))
        await transcript.begin("7", running, at=0)
        for number in range(1_000):
            event = TextDelta(f"{number} ")
            running.on_event(event)
            await transcript.on_turn_event("7", event)
        await scene.sees("997 998 999")
        assert "".join(appended).split() == [str(number) for number in range(1_000)]
        assert len(appended) < 10

    stage.play(story)


def test_a_paragraph_that_grows_is_laid_out_for_each_line_and_not_for_each_word(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.agent("max", [{"say": "Yes."}])
    words = [f"word{number}" for number in range(40)]
    layouts = 0
    lay_out = Screen._refresh_layout

    def counted(self: Screen[None], *options: Any, **named: Any) -> None:
        nonlocal layouts
        layouts += 1
        lay_out(self, *options, **named)

    async def story(scene: Scene) -> None:
        transcript = scene.app.screen.query_one(Transcript)
        running = RunningTurn(WaitingTurn(id="7", member="max", message_id="m"))
        await transcript.begin("7", running, at=0)
        await scene.settled()
        monkeypatch.setattr(Screen, "_refresh_layout", counted)
        for word in words:
            event = TextDelta(f"{word} ")
            running.on_event(event)
            await transcript.on_turn_event("7", event)
            await scene.sees(word)
        shown = scene.app.screen.query_one(TurnView).query_one(Paragraph)
        assert shown.size.height == shown.get_content_height(shown.size, scene.app.size, shown.size.width)
        assert " ".join(line.strip(" ▌│") for line in scene.text.split("\n")).count(" word") >= 36
        assert layouts < len(words) / 2

    stage.play(story)


def test_text_and_tools_stand_in_the_order_in_which_they_came(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}])

    async def story(scene: Scene) -> None:
        transcript = scene.app.screen.query_one(Transcript)
        running = RunningTurn(WaitingTurn(id="7", member="max", message_id="m"))
        await transcript.begin("7", running, at=0)
        for event in (
            TextDelta("I look first."),
            ToolStarted(id="1", name="Bash", input={"command": "ls"}),
            ToolFinished(id="1", output="a.py", changed_files=("a.py",)),
            TextDelta("Now I know."),
        ):
            running.on_event(event)
            await transcript.on_turn_event("7", event)
        await scene.sees("I look first.", "✓ Bash ls  ± a.py", "Now I know.")
        places = [scene.text.index(words) for words in ("I look first.", "✓ Bash ls", "Now I know.")]
        assert places == sorted(places)

    stage.play(story)


def test_of_many_tools_the_last_ones_are_on_the_screen(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}])

    async def story(scene: Scene) -> None:
        transcript = scene.app.screen.query_one(Transcript)
        running = RunningTurn(WaitingTurn(id="7", member="max", message_id="m"))
        await transcript.begin("7", running, at=0)
        for number in range(MOST_FOLDS + 10):
            await transcript.on_turn_event(
                "7", ToolStarted(id=str(number), name="Bash", input={"command": f"step {number}"})
            )
        await scene.sees(f"step {MOST_FOLDS + 9}")
        assert len(transcript.query(StepFold)) == MOST_FOLDS

    stage.play(story)


def test_an_edit_shows_its_diff_and_not_what_it_was_given(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}])
    given = {"file_path": "深.py", "old_string": "def x():\n\treturn 1", "new_string": "def x():\n\treturn '深'"}

    async def story(scene: Scene) -> None:
        transcript = scene.app.screen.query_one(Transcript)
        running = RunningTurn(WaitingTurn(id="7", member="max", message_id="m"))
        await transcript.begin("7", running, at=0)
        for event in (ToolStarted(id="1", name="Edit", input=given), ToolFinished(id="1", output="ok")):
            running.on_event(event)
            await transcript.on_turn_event("7", event)
        await scene.sees("✓ Edit 深.py +1 −1")
        await transcript.query_one(StepFold).toggle()
        await scene.sees("  def x():", "−     return 1", "+     return '深'")
        assert "old_string" not in scene.text

    stage.play(story)
