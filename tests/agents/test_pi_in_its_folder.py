"""Which files pi may change: its extension is asked as pi asks it."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from bullpen.agents.pi import IN_ITS_FOLDER
from bullpen.program_files import BEGINNINGS, ENDINGS, FILES, FOLDERS, LAST_NAMES

NODE = shutil.which("node")
pytestmark = [
    pytest.mark.foreign,
    pytest.mark.skipif(NODE is None, reason="pi needs node, and it is not installed"),
]
ASK = """\
import guard from "./guard.mjs";
let hears;
guard({ on: (_, heard) => { hears = heard; } });
const [cwd, ...paths] = process.argv.slice(2);
const answers = [];
for (const path of paths) {
  const event = { toolName: "write", input: { path } };
  answers.push(await hears(event, { cwd }).then((answer) => answer?.reason ?? "", (error) => error.message));
}
console.log(JSON.stringify(answers));
"""
SETTINGS = "You may not change hidden files, or files that make programs run."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    return folder


def answers(folder: Path, *paths: str) -> list[str]:
    """Return why each of these may not be written, or nothing."""
    shutil.copy(IN_ITS_FOLDER, folder.with_name("guard.mjs"))
    script = folder.with_name("ask.mjs")
    script.write_text(ASK, encoding="utf-8")
    argv = [str(NODE), str(script), str(folder), *paths]
    said = subprocess.run(argv, capture_output=True, encoding="utf-8", check=True, timeout=60).stdout
    return list(json.loads(said))


def test_usual_files_in_its_folder_may_be_changed(folder: Path) -> None:
    (folder / "link").symlink_to("src/new.txt")
    (folder / "lib").symlink_to(folder / "src")
    paths = [
        "head/made.txt",
        "made.txt",
        "src/a.py",
        "not/there/yet.txt",
        str(folder / "made.txt"),
        "link",
        "lib/new.txt",
    ]

    assert answers(folder, *paths) == [""] * len(paths)


def test_no_others_may_not_even_by_a_link_to_nothing(folder: Path) -> None:
    outside = folder.with_name("outside")
    outside.mkdir()
    (folder / "dangling").symlink_to(outside / "made.txt")
    (folder / "relative").symlink_to("../outside/made.txt")
    (folder / "twice").symlink_to("dangling")
    (folder / "src" / "no-folder").symlink_to(outside / "none")
    (folder / "there").symlink_to(outside)
    paths = [
        "../made.txt",
        str(outside / "x"),
        "dangling",
        "relative",
        "twice",
        "src/no-folder/x",
        "there/x",
        "~/x",
        "",
    ]

    assert answers(folder, *paths) == [f"You may only change files in {folder}."] * len(paths)


def test_links_in_a_circle_are_an_error(folder: Path) -> None:
    (folder / "one").symlink_to("two")
    (folder / "two").symlink_to("one")

    assert [answer.endswith("leads through too many links.") for answer in answers(folder, "one", "two/x")] == [
        True
    ] * 2


def test_what_decides_what_runs_may_not_be_changed(folder: Path) -> None:
    (folder / "link").symlink_to(".git/hooks/pre-commit")
    hidden = [".git", ".git/config", ".mcp.json", ".envrc", "src/.env", ".github/workflows/x.yml", "link"]
    (folder / "src" / "code.py").touch()
    (folder / "other-name").hardlink_to(folder / "src" / "code.py")
    alike = ["Team.TOML", "mcp\u200b.json", "mi\u017fe.toml", ". envrc".replace(" ", "\u00ad"), "other-name"]
    names = [*FILES, *LAST_NAMES, *(f"{one}x" for one in BEGINNINGS), *(f"x{ending}" for ending in ENDINGS)]
    names += [f"{one}/x.py" for one in FOLDERS]
    paths = [*hidden, *alike, *names, *(f"src/{name}" for name in names)]

    assert answers(folder, *paths) == [SETTINGS] * len(paths)
