"""What agents write is shown and never obeyed, however it is meant and however much it is."""

import re
import unicodedata

import pytest
from tests.tui.stage import Scene, Script, Stage

from bullpen.tui.app import BullpenApp
from bullpen.tui.markdown import safe_parser
from bullpen.tui.message import MessageView
from bullpen.tui.middle_fold import MiddleFold
from bullpen.tui.step_folds import StepFold
from bullpen.tui.text import beginning, code_line, one_line, shown
from bullpen.tui.text_screen import LinesView
from bullpen.tui.transcript import Transcript

ATTACKS = [
    "\x1b[2J\x1b[31mred\x1b]0;owned\x07\x9b1m \x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "left \u202eright\u2066 \u200f \u061c ltr",
    "[bold red]markup[/bold red] [@click=app.bell]x[/] [/] [not closed",
    "[link](javascript:alert(1)) ![image](http://evil.example/x.png) <http://evil.example> http://evil.example",
    "<script>alert(1)</script> <b>bold</b>\n\n<!-- hidden -->\n\n[hidden]: http://evil.example",
    "&#27;[31m &#x202e; &#155; &lt;",
    "| a | b |\n|---|---|\n| [/red] | [@click=app.exit]x[/] |",
    "# " + "#" * 50 + "\n\n" + "> " * 60 + "deep\n\n" + "- " * 60 + "deep",
    "```\x1b[31m python title='[/]'\nprint('\x1b[0m')\n```",
    "```[/nonsense]\n[/]\n```",
    "a\rb\u2028c\u2029d\x0be\x0cf\x85g\x00h",
    "1" * 400 + ". list\n\n99999999999. list\n\n0. list",
    "\ud7ff\ufdd0\ufffe \U000e0041 \u200b\u200d\ufe0f" + "e" + "\u0301" * 500,
    "===\n---\n***\n___\n\n    \t\n\t\t\n```",
    "# \n\n## \n\n- \n\n> \n\n1. \n\n|\n|-|",
]


def is_harmless(text: str) -> bool:
    """Tell whether no character would move, colour, reorder or ring."""
    bidi = {chr(code) for code in (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))}
    return not any((unicodedata.category(one) == "Cc" and one != "\n") or one in bidi for one in text)


def test_no_text_is_a_command_once_it_is_made_safe() -> None:
    for attack in ATTACKS:
        made = (shown(attack), one_line(attack), code_line(attack), beginning(attack).text)
        parts = [part for token in safe_parser().parse(shown(attack)) for part in token.children or ()]
        assert all(is_harmless(text) for text in (*made, *(part.content for part in parts)))


@pytest.mark.parametrize("attack", ["\n\n".join(ATTACKS[place::2]) for place in range(2)], ids=["a", "b"])
def test_nothing_an_agent_says_reaches_the_terminal_as_a_command(stage: Stage, attack: str) -> None:
    script: Script = [
        {"think": attack},
        {"tool": {"name": f"Bash{attack[:20]}", "input": {"command": attack, attack: attack}, "output": attack}},
        {"tool": {"name": "Edit", "input": {"file_path": attack}, "output": attack, "failed": True}},
        {"tool": {"name": "Write", "input": {"file_path": f"{attack}.py", "content": attack}, "output": attack}},
        {"say": f"BEGIN\n\n{attack}\n\nEND", "chunk": 150},
    ]
    stage.agent("max", script, [{"error": 500, "message": attack}])

    async def story(scene: Scene) -> None:
        screens: list[str] = []

        def has_answered() -> bool:
            screens.append(scene.text)
            return len(scene.app.screen.query(MessageView)) == 2

        await scene.say("Go.")
        await scene.until(has_answered)
        await scene.press("tab", "down", "enter")
        for fold in scene.app.screen.query(StepFold):
            await fold.toggle()
        await scene.settled()
        screens.append(scene.text)
        view = next(view for view in scene.app.screen.query(MessageView) if view.sequence == 2)
        view.focus()
        await scene.press("enter")
        await scene.until(lambda: bool(scene.app.screen.query(LinesView)))
        screens.append(scene.text)
        await scene.press("escape", "ctrl+o")
        screens.append(scene.text)
        await scene.press("escape")
        await scene.say("Again.")
        await scene.sees("1 Retry")
        screens.append(scene.text)
        # What the mouse rests on would be shown in a tooltip.
        assert not [widget for widget in scene.app.screen.query("Transcript *") if widget.tooltip]
        assert all(is_harmless(screen) for screen in screens)
        assert is_harmless(re.sub("<[^>]*>", "", scene.app.export_screenshot()))

    stage.play(story, size=(100, 50))


def test_a_link_is_shown_with_where_it_leads_and_opens_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(BullpenApp, "open_url", lambda _, url, **__: opened.append(url))
    stage.agent("max", [{"say": "See [the docs](http://evil.example) and <b>this</b> &amp; that."}])

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.sees("See [the docs](http://evil.example) and <b>this</b> &amp; that.")
        for view in scene.app.screen.query("MarkdownParagraph"):
            await scene.pilot.click(view, offset=(6, 0))
        assert opened == []

    stage.play(story)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x" * 12_000, id="a long line"),
        pytest.param("- item\n" * 1_500, id="a list of 1,500 items"),
        pytest.param("```python\n" + "f(x)[0] = {'a': 1}\n" * 800, id="long code"),
        pytest.param("| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 1_500, id="a table of 1,500 rows"),
        pytest.param("[" * 10_000 + "](" * 5_000, id="brackets without end"),
    ],
)
def test_what_is_long_is_shown_in_part_and_read_in_full(stage: Stage, text: str) -> None:
    stage.agent("max", [{"say": text, "chunk": 20_000}])

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.until(lambda: bool(scene.app.screen.query(MiddleFold)))
        assert len(scene.app.screen.query_one(Transcript).query("*")) < 1_500

        await scene.press("tab", "enter")
        await scene.until(lambda: bool(scene.app.screen.query(LinesView)))
        view = scene.app.screen.query_one(LinesView)
        view.scroll_end(animate=False)
        await scene.settled()
        assert f"{len(text):,} characters" in scene.text
        assert text.rstrip()[-1] in scene.text.splitlines()[-2]

    stage.play(story, size=(80, 24))
