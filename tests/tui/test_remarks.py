"""What an agent only announced between tools is one line, which opens; the rest of its reply is whole."""

from tests.tui.stage import Scene, Script, Stage

from bullpen.tui.fold import Fold, FoldTitle

TOOL = {"tool": {"name": "Bash", "input": {"command": "ls"}, "output": "ok"}}
TEXTS = ("I'll look at the tests now.", "Let me run them.", "Two fail.", "I'll mend them.")
SCRIPT: Script = [*(step for text in TEXTS for step in ({"say": text}, TOOL)), {"say": "It was the clock."}]
HEADING = "2 remarks while it worked: I'll look at the tests now."


def test_remarks_are_folded_at_once_and_when_the_conversation_is_opened_again(stage: Stage) -> None:
    stage.agent("max", SCRIPT)

    async def folded(scene: Scene) -> None:
        await scene.sees(HEADING, "Two fail.", "I'll mend them.", "It was the clock.")
        assert "Let me run them." not in scene.text
        (fold,) = [title.parent for title in scene.app.screen.query(FoldTitle) if HEADING in str(title.visual)]
        assert isinstance(fold, Fold)
        await fold.toggle()
        await scene.sees("Let me run them.")

    async def story(scene: Scene) -> None:
        await scene.say("Look.")
        await folded(scene)

    stage.play(folded, resume=stage.play(story))
