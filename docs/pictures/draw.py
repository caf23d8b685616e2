"""Draw the pictures of the docs from real runs: `make pictures`."""

import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text
from tests.agents.real_cli import install

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WIDTH = 96


def draw(name: str, title: str, command: list[str], env: dict[str, str]) -> None:
    """Run a command as in a terminal and write what it shows as a picture."""
    shown = subprocess.run(
        [sys.executable, "-m", "bullpen", *command],
        env={**env, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "TERM": "xterm-256color"},
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
    console.print(Text.from_ansi(f"$ bullpen {' '.join(command)}\n{shown}"))
    svg = console.export_svg(title=title, unique_id=name)
    # No font from elsewhere: a page that shows the picture makes no request.
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    (HERE / f"{name}.svg").write_text(svg, encoding="utf-8")


def main() -> None:
    """Draw every picture, with the genuine CLIs that `make test-all` installs."""
    home = ROOT / ".cache" / "pictures"
    (home / "bin").mkdir(parents=True, exist_ok=True)
    for name in ("claude", "codex", "gemini"):
        link = home / "bin" / name
        link.unlink(missing_ok=True)
        link.symlink_to(install.binaries() / name)
    env = {
        "HOME": str(home),
        "PATH": f"{home / 'bin'}:{os.environ['PATH']}",
        "GEMINI_API_KEY": "x",
        "CODEX_API_KEY": "x",
    }
    for name in ("full_screen.py", "tour.py"):
        subprocess.run([sys.executable, str(HERE / name)], check=True)
    draw("doctor", "bullpen doctor", ["doctor", "claude", "codex", "gemini"], env)


if __name__ == "__main__":
    main()
