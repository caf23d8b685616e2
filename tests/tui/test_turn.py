"""A turn while it runs: pieces are gathered into frames."""

import pytest
from tests.tui.stage import Scene, Stage
from textual.await_complete import AwaitComplete

from bullpen.conversation.running import RunningTurn
from bullpen.events import TextDelta, ToolFinished, ToolStarted
from bullpen.routing.queue import WaitingTurn
from bullpen.tui.markdown import SafeMarkdown
from bullpen.tui.steps import StepFold
from bullpen.tui.transcript import Transcript
from bullpen.tui.turn import MOST_FOLDS


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
            running.take(event)
            await transcript.take("7", event)
        await scene.sees("997 998 999")
        assert "".join(appended).split() == [str(number) for number in range(1_000)]
        assert len(appended) < 10

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
            running.take(event)
            await transcript.take("7", event)
        await scene.sees("I look first.", "✓ Bash ls  ± a.py", "Now I know.")
        places = [scene.text.index(words) for words in ("I look first.", "✓ Bash ls", "Now I know.")]
        assert places == sorted(places)

    stage.play(story)


def test_of_a_thousand_tools_the_last_ones_are_on_the_screen(stage: Stage) -> None:
    stage.agent("max", [{"say": "Yes."}])

    async def story(scene: Scene) -> None:
        transcript = scene.app.screen.query_one(Transcript)
        running = RunningTurn(WaitingTurn(id="7", member="max", message_id="m"))
        await transcript.begin("7", running, at=0)
        for number in range(200):
            await transcript.take("7", ToolStarted(id=str(number), name="Bash", input={"command": f"step {number}"}))
        await scene.sees("step 199")
        assert len(transcript.query(StepFold)) == MOST_FOLDS

    stage.play(story)
