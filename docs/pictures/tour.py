"""Draw the moving picture of the README: one message, two agents, a red check that goes back, and an approval."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.tui.stage import Scene, Script, Stage  # noqa: E402

SIZE = (112, 34)
ASKED = "Our shop needs coffee for 3. Max, please add it; Ada, which pages must change? [NEXT: max & ada]"
FIRST = "prices = {'tea': 2, 'coffee': '3'}\n"
MENDED = "prices = {'tea': 2, 'coffee': 3}\n"
CHECK = "import prices; assert sum(prices.prices.values()) == 5, 'the sum is wrong'"


def draw_tour(folder: Path) -> None:
    """Play the conversation, keep the screen at its turning points, and write them as one picture that moves."""
    os.environ["BULLPEN_HOME"] = str(folder / "home")
    # Where the agents keep their sessions.
    os.environ["CLAUDE_CONFIG_DIR"] = os.environ["CODEX_HOME"] = str(folder / "sessions")
    os.environ["PATH"] = f"{folder / 'bin'}:{os.environ['PATH']}"
    frames: list[tuple[str, float]] = []
    _stage(folder).play(lambda scene: _story(scene, folder, frames), size=SIZE)
    (HERE / "tour.svg").write_text(moving(frames), encoding="utf-8")


def _stage(folder: Path) -> Stage:
    stage = Stage(folder)
    stage.head('name = "Shop"\n[[check]]\nname = "tests"\ncommand = ["python3", "check.py"]\non_red = "return"\n')
    (folder / "check.py").write_text(CHECK, encoding="utf-8")
    (folder / "prices.py").write_text("prices = {'tea': 2}\n", encoding="utf-8")
    # Only what the team works on is part of the shop.
    (folder / ".gitignore").write_text("*\n!*.py\n", encoding="utf-8")
    subprocess.run(["git", "init", "-q", folder], check=True)
    stage.agent("max", *_builds(folder), cli="claude", more='role = "builds"\npermissions = "edit"')
    stage.agent("ada", _looks(folder), cli="gemini", more='role = "writes the docs"')
    stage.agent("sarah", _reviews(folder), cli="codex", more='role = "reviews"\nreviews = "max"\nuntil = "approved"')
    return stage


def _builds(folder: Path) -> tuple[Script, Script]:
    usage = {"usage": {"input": 18_400, "output": 950, "cached": 12_000}, "cost": 0.0712}
    return (
        [
            {"tool": {"name": "Read", "input": {"file_path": "prices.py"}, "output": "prices = {'tea': 2}"}},
            {"wait_for": str(folder / "side by side")},
            _writes(FIRST),
            {"say": "Coffee is in `prices.py`, for 3."},
            usage,
        ],
        [
            {"tool": {"name": "Read", "input": {"file_path": "check.py"}, "output": CHECK}},
            {"wait_for": str(folder / "mended")},
            _writes(MENDED),
            {"say": "It was a text, not a number. Now it is **3**.\n\n[NEXT: sarah]"},
            {"usage": {"input": 2_100, "output": 180, "cached": 19_000}, "cost": 0.0094},
        ],
    )


def _writes(text: str) -> dict[str, Any]:
    does = f"printf %s {shlex.quote(text)} > prices.py"
    return {"tool": {"name": "Write", "input": {"file_path": "prices.py"}, "output": "Done.", "runs": does}}


def _looks(folder: Path) -> Script:
    return [
        {"tool": {"name": "run_shell_command", "input": {"command": "grep -rl tea docs"}, "output": "docs/menu.md"}},
        {"wait_for": str(folder / "side by side")},
        {"say": "Only one: `docs/menu.md` lists the prices."},
        {"usage": {"input": 7_100, "output": 140, "cached": 0}},
    ]


def _reviews(folder: Path) -> Script:
    return [
        {"tool": {"name": "shell", "input": {"command": "git diff"}, "output": "+prices = {'tea': 2, 'coffee': 3}"}},
        {"wait_for": str(folder / "reviewed")},
        {"say": "The price is a number, and the sum is right.\n\n[VERDICT: approve]"},
        {"usage": {"input": 9_400, "output": 260, "cached": 4_000}},
    ]


async def _story(scene: Scene, folder: Path, frames: list[tuple[str, float]]) -> None:
    def keep(seconds: float) -> None:
        frames.append((scene.app.export_screenshot(title="bullpen chat"), seconds))

    keep(1.5)
    await scene.type(ASKED)
    keep(2.5)
    await scene.press("enter")
    await scene.sees("prices.py", "grep -rl tea docs")
    keep(3)
    (folder / "side by side").touch()
    await scene.sees("red", "check.py")
    keep(3.5)
    (folder / "mended").touch()
    await scene.sees("green", "git diff")
    keep(3)
    (folder / "reviewed").touch()
    await scene.quiet()
    keep(5)


def moving(frames: list[tuple[str, float]]) -> str:
    """Return one picture that shows others for some seconds each, over and over, without a script."""
    total, begin, styles, groups = sum(seconds for _, seconds in frames), 0.0, [], []
    for number, (svg, seconds) in enumerate(frames):
        first, last = (round(100 * at / total, 2) for at in (begin, begin + seconds))
        shown = f"{first}%,{max(first, last - 0.01):g}%{{visibility:visible}}{last:g}%{{visibility:hidden}}"
        styles.append(f"@keyframes f{number}{{0%{{visibility:{'hidden' if number else 'visible'}}}{shown}}}")
        styles.append(f".f{number}{{visibility:hidden;animation:f{number} {total:g}s steps(1) infinite}}")
        groups.append(f'<g class="f{number}">{_plain(svg, number)}</g>')
        begin += seconds
    # Who wants nothing to move sees the end.
    last_frame = f".f{len(frames) - 1}{{visibility:visible}}"
    still = f"@media (prefers-reduced-motion:reduce){{g{{animation:none!important}}{last_frame}}}"
    box = re.search(r'viewBox="[^"]+"', frames[0][0])
    assert box is not None
    style = f"<style>{''.join(styles)}{still}</style>"
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box[0]}>{style}{"".join(groups)}</svg>\n'


def _plain(svg: str, number: int) -> str:
    """Return a screen with names of its own, and without a font from elsewhere: who shows it makes no request."""
    svg = re.sub(r"@font-face \{.*?\}|<!--.*?-->", "", svg, flags=re.DOTALL)
    return re.sub(r"terminal-\d+", f"t{number}", svg).strip()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        draw_tour(Path(name))
