"""How it looks: the screen as text, compared with what a person has looked at and liked.

To renew the files in screens/ after a change of looks: BULLPEN_NEW_SCREENS=1 pytest tests/tui/test_looks.py, and look.
"""

import os
import re
from pathlib import Path

import pytest
from rich.segment import Segment
from tests.tui.stage import Scene, Script, Stage
from textual.color import Color
from textual.constants import DIM_FACTOR
from textual.filter import dim_style

from bullpen.tui.theme import THEMES

SCREENS = Path(__file__).parent / "screens"

ANSWER: Script = [
    {"think": "Cookies first."},
    {"tool": {"name": "Bash", "input": {"command": "pytest -q"}, "output": "7 passed"}},
    {
        "say": '# Done\n\nThe login sets **one** cookie, `sid`:\n\n```python\nset_cookie("sid", secure=True)\n```\n\n'
        "- it is `HttpOnly`\n- it lasts a day\n  - or until logout\n\n"
        "| case | code |\n|---|---|\n| good | 302 |\n| bad | 401 |\n\n"
        "> Sarah asked for this.\n\n1. review\n2. merge\n\n[NEXT: sarah]"
    },
    {"usage": {"input": 12_000, "output": 345}, "cost": 0.0417},
]


def normalized(screen: str) -> str:
    """Return the screen without what is different every time, each kind as long as it is."""
    screen = re.sub(r"\b[a-z]+-[a-z]+-[0-9a-f]{6}\b(.*)", r"quiet-river-4f2a1c\1", screen)
    # What stands right of the id moves with its length, so the line keeps only its words.
    first, *rest = screen.split("\n")
    screen = "\n".join([" ".join(first.split()), *rest])
    return re.sub(r"\d\d:\d\d(?=  #)", "09:00", re.sub(r"\b\d\.\d s\b", "0.1 s", screen)) + "\n"


def contrast(segment: Segment) -> float:
    """Return the contrast of a piece of the screen, as WCAG 2 measures it."""
    assert segment.style is not None
    style = dim_style(segment.style, Color(0, 0, 0), DIM_FACTOR) if segment.style.dim else segment.style
    lightness = []
    for color in (style.color, style.bgcolor):
        assert color is not None
        parts = [part / 255 for part in color.get_truecolor()]
        red, green, blue = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        lightness.append(0.2126 * red + 0.7152 * green + 0.0722 * blue)
    return (max(lightness) + 0.05) / (min(lightness) + 0.05)


def test_dim_lines_can_be_read_in_both_themes(stage: Stage) -> None:
    stage.agent("max", [{"think": "Cookies first."}, {"say": "Let me think."}, {"hang": True}])
    words = ("no waiting turns", "turn 1", "Cookies first.", "Build the login.")

    def pieces(scene: Scene) -> list[Segment]:
        strips = scene.app.screen._compositor.render_strips()
        return [piece for strip in strips for piece in strip if any(word in piece.text for word in words)]

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("Cookies first.", "Let me think.")
        for is_over in (False, True):
            if is_over:
                await scene.press("escape", "escape")
                await scene.sees("turn 1 ")
            for theme in THEMES:
                scene.app.theme = theme.name
                await scene.settled()
                found = pieces(scene)
                assert len(found) >= 3
                assert {piece.text: contrast(piece) for piece in found if contrast(piece) < 4.5} == {}, theme.name

    stage.play(story)


async def compare(name: str, scene: Scene) -> None:
    """Wait until the screen looks as it was liked; on a busy machine its last part may come a moment later."""
    path = SCREENS / f"{name}.txt"
    if os.environ.get("BULLPEN_NEW_SCREENS"):
        await scene.settled()
        path.write_text(normalized(scene.text), encoding="utf-8")
    liked = path.read_text(encoding="utf-8")
    for _ in range(100):
        if normalized(scene.text) == liked:
            return
        await scene.pilot.pause(0.05)
    assert normalized(scene.text) == liked


@pytest.mark.parametrize("size", [(80, 24), (120, 50), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_the_screen_looks_as_it_was_liked(stage: Stage, size: tuple[int, int]) -> None:
    name = f"{size[0]}x{size[1]}"
    stage.agent("max", ANSWER, more='role = "Architect"')
    stage.agent("sarah", [{"error": 429, "message": "Usage limit reached."}], cli="codex", more='role = "Reviewer"')

    async def story(scene: Scene) -> None:
        await scene.say("Please do the login.")
        await scene.sees("1 Retry", "✗ failed")
        await compare(f"chat-{name}", scene)

    stage.play(story, size=size)


def test_the_help_looks_as_it_was_liked(stage: Stage) -> None:
    stage.agent("max", ANSWER)

    async def story(scene: Scene) -> None:
        await scene.press("f1")
        await compare("help-100x70", scene)

    stage.play(story, size=(100, 70))
