"""The recipes in docs/cookbook.md work, with programs that follow a script in place of the CLIs."""

import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from tests.test_docs import ROOT, blocks

from bullpen.testing.stage import Script, put_on_path

COOKBOOK = ROOT / "docs" / "cookbook.md"
NAME = re.compile(r"\A(?:#!.*\n)?# (\S+)\n")

CLAUDE: list[Script] = [
    [
        {"tool": {"name": "Bash", "input": {"command": "pytest -q"}, "output": "3 passed"}},
        {"write_file": {"path": "price.py", "text": "PRICE = 2\n"}},
        {"say": "Fixed, and the tests pass."},
    ],
    [{"write_file": {"path": "login.py", "text": "# a login\n"}}, {"say": "It is in login.py."}],
    [{"say": "Nothing to add.\n\n[VERDICT: approve]"}],
]
"""What Claude does on the page, turn by turn."""

CODEX: list[Script] = [
    [{"write_file": {"path": "sign_in.py", "text": "# a longer login\n"}}, {"say": "It is in sign_in.py."}],
    [{"say": "I have compared both. Keep ../shop-max: it is half as long."}],
    [{"say": "price.py: fine, and tested.\n\n[VERDICT: approve]"}],
]


class Shop:
    """A git repository with one file, and a shell in it that finds bullpen and the stand-ins."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "shop"
        self.folder.mkdir()
        self._programs = folder / "bin"
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            "PATH": f"{self._programs}{os.pathsep}{os.environ['PATH']}",
            "BULLPEN_HOME": str(folder / "data"),
            "ANTHROPIC_API_KEY": "x",
            "CODEX_API_KEY": "x",
            "XDG_STATE_HOME": str(folder / "state"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            **{f"GIT_{who}_{what}": "kim" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        }
        self.play(claude=CLAUDE, codex=CODEX)
        self.write("bin/bullpen", f'#!/bin/sh\nexec {sys.executable} -m bullpen "$@"\n', at=folder)
        self.write("price.py", "PRICE = 1\n")
        assert self.run("git init -q -b main && git add price.py && git commit -q -m Begin").returncode == 0

    def play(self, **plays: list[Script]) -> None:
        """Let the stand-ins follow other scripts, from the first turn on."""
        for cli in plays:
            shutil.rmtree(self.folder.parent / f"{cli}.turns", ignore_errors=True)
        put_on_path(self.folder.parent, plays)

    def write(self, name: str, text: str, *, at: Path | None = None) -> None:
        path = (at or self.folder) / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", command],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def follow(page: Path, shop: Shop) -> None:
    """Write every file of a page, and run every command; lines below a command are among those that it prints."""
    for (language, code), (following, expected) in pairwise([*blocks(page), ("", "")]):
        if language == "console":
            done = [shop.run(line.removeprefix("$ ")) for line in code.splitlines()]
            assert [one for one in done if one.returncode] == []
            if following == "text":
                printed = without_ids(done[-1].stdout)
                lines = iter(printed.splitlines())
                assert [line for line in without_ids(expected).splitlines() if line not in lines] == [], printed
        elif language != "text":
            name = NAME.match(code)
            assert name, code
            shop.write(name[1], code)


def test_every_recipe_works(shop: Shop) -> None:
    follow(COOKBOOK, shop)

    assert shop.run("git log --format=%s main").stdout.splitlines()[0] == "Correct the price"
    assert "login.py" in shop.run("git ls-files").stdout
    assert '"type":"quiet"' in (shop.folder / "events.jsonl").read_text(encoding="utf-8")


def without_ids(text: str) -> str:
    """Return a text without what differs in every run, and without remarks about files written without a tool."""
    text = re.sub(r" \S+ was perhaps changed by a person: .*$", "", text, flags=re.MULTILINE)
    return re.sub(r", \d+ ms$|, [\d.]+ s$", "", re.sub(r"\w+-\w+-[0-9a-f]{6}", "ID", text), flags=re.MULTILINE)
