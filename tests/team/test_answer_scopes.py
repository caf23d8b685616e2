"""For how long a yes may hold: never longer than once for a file outside of the agent's folder."""

from pathlib import Path
from typing import Any

import pytest

from bullpen.conversation.events import Asked
from bullpen.team.answer_scopes import may_hold_longer
from bullpen.turn_events import ApprovalAsked
from bullpen.view.decisions import decisions


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    return folder


def edit(folder: Path, *paths: str, **given: Any) -> ApprovalAsked:
    return ApprovalAsked(id="1", kind="edit", tool="Write", paths=paths, diff="+x\n", folder=str(folder), **given)


@pytest.mark.parametrize("path", ["a.py", "src/a.py", "./a.py", "src/../a.py", "new/deep/a.py"])
def test_a_file_in_the_folder_may_be_allowed_for_longer(folder: Path, path: str) -> None:
    assert may_hold_longer(edit(folder, path))
    assert may_hold_longer(edit(folder, str(folder / path)))


@pytest.mark.parametrize(
    "path", ["/etc/hosts", "../a.py", "link/a.py", "~/.bashrc", "file:///etc/hosts", "a/../../x", "a\0b"]
)
def test_a_file_elsewhere_is_allowed_once(folder: Path, path: str) -> None:
    assert not may_hold_longer(edit(folder, path))
    assert not may_hold_longer(edit(folder, "a.py", path)), "one of several is enough"
    reads = ApprovalAsked(id="1", kind="tool", tool="Read", folder=str(folder), details={"x": [{"path": path}]})
    assert not may_hold_longer(reads) or path == "link/a.py" or path == "a\0b", "no path that is not named as one"
    assert not may_hold_longer(ApprovalAsked(id="1", kind="tool", tool="Read", folder=str(folder), paths=(path,)))


def test_an_edit_of_which_no_file_is_known_is_allowed_once(folder: Path) -> None:
    assert not may_hold_longer(edit(folder))
    assert not may_hold_longer(ApprovalAsked(id="1", kind="edit", paths=("a.py",)))
    assert not may_hold_longer(edit(folder, "a.py", details={"grantRoot": "."}))


def test_a_command_may_be_allowed_for_longer_unless_its_cli_names_a_file_elsewhere(folder: Path) -> None:
    command = ApprovalAsked(id="1", kind="command", command="cat /etc/hosts", folder=str(folder))

    assert may_hold_longer(command)
    assert not may_hold_longer(ApprovalAsked(id="1", kind="command", command="ls /", paths=("/",), folder=str(folder)))


def test_what_cannot_hold_longer_is_not_offered(folder: Path) -> None:
    def offered(asked: ApprovalAsked) -> list[str]:
        asks = [Asked(turn_id="1", member="max", question=asked, at=0)]
        (decision,) = decisions(undecided=(), paused=None, waiting=0, held=(), missed=None, agents=(), asked=asks)
        return [choice.typed for choice in decision.choices]

    assert offered(edit(folder, "a.py")) == ["/yes", "/yes conversation", "/no REASON", "/stop"]
    assert offered(edit(folder, "/etc/hosts")) == ["/yes", "/no REASON", "/stop"]
