"""How what agents write is laid out."""

import unicodedata

from rich.cells import cell_len
from tests.tui.stage import Scene, Stage
from textual.content import Content

from bullpen.tui.markdown import Fence
from bullpen.tui.step_folds import SIGNS

DIFF = "--- a/login.py\n+++ b/login.py\n@@ -1 +1 @@\n-old = 1\n+new = 2\n same = 3\n"


def styles_of(content: Content) -> dict[str, set[str]]:
    """Return the styles in each line."""
    lines = content.split("\n")
    return {line.plain: {str(span.style) for span in line.spans if span.style} for line in lines}


def lines_of(scene: Scene) -> list[str]:
    """Return the lines on the screen without the bars beside messages and quotes."""
    return [line.strip("▌ ") for line in scene.text.split("\n")]


def test_a_diff_is_coloured() -> None:
    styles = styles_of(Fence.highlight(DIFF, "diff"))

    assert any("$text-success" in style for style in styles["+new = 2"])
    assert any("$text-error" in style for style in styles["-old = 1"])
    assert not any("$text-success" in style or "$text-error" in style for style in styles[" same = 3"])


def test_a_long_line_of_code_is_not_cut(stage: Stage) -> None:
    words = [f"word{number:02}" for number in range(40)]
    stage.agent("max", [{"say": f"```python\nnames = {' '.join(words)}\n```"}])

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.quiet()
        await scene.sees(*words)

    stage.play(story, size=(80, 24))


def test_lines_stay_lines_while_they_come_and_after(stage: Stage) -> None:
    steps = [f"step {number} of it" for number in range(1, 6)]
    stage.agent("max", [{"say": "\n".join(steps), "chunk": 4}, {"hang": True}], [{"say": "Done."}])

    async def story(scene: Scene) -> None:
        await scene.type("first line")
        await scene.press("ctrl+j")
        await scene.say("second line")
        await scene.sees(*steps)
        assert {"first line", "second line", *steps} <= set(lines_of(scene)), scene.text
        await scene.press("f9", "f9")

    stage.play(story, size=(80, 30))


def test_lines_stay_lines_in_lists_quotes_and_bold_words(stage: Stage) -> None:
    steps = ["- a list", "  of two lines", "", "> a quote", "> of two lines", "", "**bold", "over** two"]
    stage.agent("max", [{"say": "\n".join(steps)}])

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.quiet()
        lines = lines_of(scene)
        assert lines.count("of two lines") == 2, scene.text
        assert "over two" in lines, scene.text

    stage.play(story, size=(80, 30))


def test_no_sign_of_a_step_can_be_two_columns_wide() -> None:
    assert {unicodedata.east_asian_width(sign) for sign in SIGNS.values()} <= {"N", "Na"}
    assert {cell_len(sign) for sign in SIGNS.values()} == {1}
