"""Draw the full screen in the middle of a real conversation of scripted agents, in dark and in light."""

import os
import re
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.tui.stage import Scene, Script, Stage  # noqa: E402

SIZE = (124, 40)

PLAN: Script = [
    {"think": "The login has no limit on attempts. Look at the route first, then at the tests."},
    {"tool": {"name": "Bash", "input": {"command": "rg -n 'def login' src"}, "output": "src/login.py:12:def login("}},
    {
        "tool": {
            "name": "Edit",
            "input": {"file_path": "src/login.py", "old_string": "def login(", "new_string": "@limited(5)\ndef login("},
            "output": "The file src/login.py has been updated.",
        }
    },
    {
        "tool": {
            "name": "Bash",
            "input": {"command": "pytest -q tests/test_login.py"},
            "output": "7 passed in 0.31s",
            "seconds": 3,
        }
    },
    {
        "say": "The login now stops after **five attempts** a minute, per account and per address:\n\n"
        "```python\n@limited(attempts=5, seconds=60, by=(account, address))\n"
        "def login(request: Request) -> Response:\n    user = authenticate(request.form)\n"
        '    return redirect("/") if user else refused()\n```\n\n'
        "| case | before | now |\n|---|---|---|\n"
        "| wrong password, 5 times | 200 | 200 |\n| once more | 200 | **429** |\n\n"
        "Sarah, please try to get around it. [NEXT: sarah, lee]"
    },
    {"usage": {"input": 18_400, "output": 950, "cached": 12_000}, "cost": 0.0712},
]
REVIEW: Script = [
    {"tool": {"name": "Bash", "input": {"command": "sed -n 1,60p src/login.py"}, "output": "@limited(attempts=5 ..."}},
    {
        "tool": {
            "name": "Bash",
            "input": {"command": "python attack.py --accounts 200"},
            "output": "429 x 195",
            "seconds": 2,
        }
    },
    {
        "say": "Two ways around it so far:\n\n"
        "1. `X-Forwarded-For` is trusted, so every request can come from a new address.\n"
        "2. The counter is per process: with four workers there are 20 attempts, not five.\n\nI am writing a test for ",
        "chunk": 9,
        "delay": 0.005,
    },
    {"hang": True},
]
CHECK: Script = [{"say": "The docs are up to date."}]


def draw_full_screen(folder: Path) -> None:
    """Play the conversation, and draw it in both themes."""
    os.environ["BULLPEN_HOME"] = str(folder / "home")
    # Where the agents keep their sessions.
    os.environ["CLAUDE_CONFIG_DIR"] = os.environ["CODEX_HOME"] = str(folder / "sessions")
    os.environ["PATH"] = f"{folder / 'bin'}:{os.environ['PATH']}"
    stage = Stage(folder)
    stage.head('name = "Shop"\ntask = "Nobody can guess a password by trying."\n')
    stage.agent("max", PLAN, cli="claude", more='role = "Architect"')
    stage.agent("sarah", REVIEW, cli="codex", more='role = "Reviewer"')
    stage.agent("lee", CHECK, cli="gemini", more='role = "Writer"')

    async def story(scene: Scene) -> None:
        await scene.say("The login has no rate limit. Max, can you add one and let Sarah check it?")
        await scene.sees("I am writing a test for")
        _save(scene, "tui-dark")
        await scene.press("ctrl+t")
        await scene.pilot.pause(0.3)
        _save(scene, "tui-light")

    stage.play(story, size=SIZE)


def _save(scene: Scene, name: str) -> None:
    svg = scene.app.export_screenshot(title="bullpen chat")
    # No font from elsewhere: a page that shows the picture makes no request.
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    (HERE / f"{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        draw_full_screen(Path(folder))
