"""What the genuine CLIs change, by their edit tools and by their shells, is seen, merged and taken back."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.agents.real_cli.scene import read_call, said
from tests.agents.real_cli.turn import MODELS, clis
from tests.conversation.repository_stage import kinds, records

from bullpen.app import open_team
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.member_agent import Extra
from bullpen.file_changes import ChangeRecord
from bullpen.files.own_paths import own_path
from bullpen.rehearsal import Rehearsed, rehearse
from bullpen.team.file import load_team
from bullpen.testing.models import ModelServer, Reply, ToolCall
from bullpen.testing.settings import SETTINGS

FILES = {"edited.txt": "one\ntwo\nthree\n", "shell.txt": "one\n", "old.txt": "moved\n" * 9, "gone.txt": "gone\n"}
SHELL = "echo by the shell >> shell.txt; mv old.txt moved.txt; rm gone.txt; mkdir new; echo 你好 > new/密.txt"
AFTER = {
    "edited.txt": "one\nby the tool\nthree\n",
    "shell.txt": "one\nby the shell\n",
    "moved.txt": FILES["old.txt"],
    "new/密.txt": "你好\n",
}
KINDS = {
    "edited.txt": "changed",
    "shell.txt": "changed",
    "moved.txt": "renamed",
    "gone.txt": "deleted",
    "new/密.txt": "added",
}
PERMISSIONS = {"claude": "edit", "codex": "edit", "gemini": "full", "qwen": "full"}
"""The least with which its shell may do this."""


class Project:
    """A repository in which one genuine CLI works."""

    def __init__(self, folder: Path, cli: str, workspace: str) -> None:
        self.cli, self.home, self.db = cli, folder / "home", folder / "c.db"
        self.workspace, self.kept = workspace, folder / "c.db-files"
        self.folder = folder / "project"
        self.folder.mkdir()
        for name, text in FILES.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-qm", "all")
        model = f'model = "{MODELS[cli]}"\n' if MODELS[cli] else ""
        agent = f'name = "agent"\nagent = "{cli}"\npermissions = "{PERMISSIONS[cli]}"\nworkspace = "{workspace}"\n'
        self.team = folder / "team.toml"
        self.team.write_text(f'name = "t"\n[[member]]\nname = "kim"\n[[member]]\ncwd = "project"\n{agent}{model}')

    def git(self, *words: str) -> None:
        names = ("-c", "user.name=kim", "-c", "user.email=kim@example.org")
        subprocess.run(["git", *names, *words], cwd=self.folder, check=True)

    def files(self) -> dict[str, str]:
        found = (path for path in self.folder.rglob("*") if path.is_file() and ".git" not in path.parts)
        return {str(path.relative_to(self.folder)): path.read_text(encoding="utf-8") for path in found}

    def place(self, conversation: Conversation) -> Path:
        """Return where the CLI works."""
        return own_path(self.kept, conversation.id, "agent") if self.workspace == "own" else self.folder

    @asynccontextmanager
    async def talking(self) -> AsyncIterator[tuple[Conversation, ModelServer]]:
        """Open a conversation with the CLI's model."""
        async with ModelServer() as models:
            settings = SETTINGS[self.cli](models.base_url, self.home)
            extra = Extra(env={**settings.env, "IS_SANDBOX": "1"}, arguments=settings.arguments)
            async with open_team(self.team, db=self.db, extra={"agent": extra}) as conversation:
                yield conversation, models


def edit_call(cli: str, file: Path) -> ToolCall:
    """Return the call of a CLI's edit tool that changes the second line."""
    change = {"file_path": str(file), "old_string": "two", "new_string": "by the tool"}
    match cli:
        case "claude":
            return ToolCall(name="Edit", arguments=change)
        case "codex":
            lines = f"*** Update File: {file.name}\n@@\n one\n-two\n+by the tool\n three\n"
            return ToolCall(name="apply_patch", arguments=f"*** Begin Patch\n{lines}*** End Patch\n")
        case "gemini":
            return ToolCall(name="replace", arguments={**change, "instruction": "Change the second line."})
        case _:
            return ToolCall(name="edit", arguments=change)


def shell_call(cli: str) -> ToolCall:
    match cli:
        case "claude":
            return ToolCall(name="Bash", arguments={"command": SHELL, "description": "x"})
        case "codex":
            return ToolCall(name="exec_command", arguments={"cmd": SHELL})
        case "gemini":
            return ToolCall(name="run_shell_command", arguments={"command": SHELL})
        case _:
            return ToolCall(name="run_shell_command", arguments={"command": SHELL, "is_background": False})


@clis("claude", "codex", rarely=["gemini", "qwen"])
def test_edits_by_tool_and_by_shell_are_seen_and_taken_back(cli: str, tmp_path: Path) -> None:
    project = Project(tmp_path, cli, "shared")

    (turn,) = asyncio.run(changed_and_taken_back(project))

    assert (turn.kind, turn.changes.folder) == ("turn", str(project.folder))
    check(turn)


@clis("claude", rarely=["codex"])
def test_edits_in_a_worktree_of_its_own_are_merged(cli: str, tmp_path: Path) -> None:
    project = Project(tmp_path, cli, "own")

    turn, merge = asyncio.run(changed_and_taken_back(project))

    assert Path(turn.changes.folder).is_relative_to(project.kept)
    assert (merge.kind, merge.changes.folder) == ("merge", str(project.folder))
    check(turn)
    check(merge)


async def changed_and_taken_back(project: Project) -> list[ChangeRecord]:
    """Let the CLI change files, and return what was recorded; undo and redo are checked against the folder."""
    async with project.talking() as (conversation, models):
        file = project.place(conversation) / "edited.txt"
        calls = (read_call(project.cli, file), edit_call(project.cli, file), shell_call(project.cli))
        models.script(*(Reply(tool_calls=(call,)) for call in calls), Reply(text="done"))
        assert await said(conversation, "[NEXT: agent] Go.") == "done"
        assert project.files() == AFTER
        seen = await records(conversation)
        await conversation.undo()
        assert project.files() == FILES
        await conversation.redo()
        assert project.files() == AFTER
    return seen


def check(record: ChangeRecord) -> None:
    """Check that a record has what was done with the tool and with the shell."""
    assert kinds(record) == KINDS
    lines = record.changes.patch.splitlines()
    for line in ("-two", "+by the tool", "+by the shell", "rename from old.txt", "-gone", "+你好"):
        assert line in lines


@pytest.mark.needs("claude")
@pytest.mark.parametrize("has_commit", [True, False])
def test_a_rehearsal_makes_no_worktree_and_leaves_nothing(has_commit: bool, tmp_path: Path) -> None:
    project = Project(tmp_path, "claude", "own")
    if not has_commit:
        shutil.rmtree(project.folder / ".git")
        project.git("init", "-q")

    async def rehearsed() -> list[Rehearsed]:
        return [one async for one in rehearse(load_team(project.team))]

    (one,) = asyncio.run(rehearsed())

    assert one.passed, one.checks
    assert f"it answered in {project.folder}" in [check.text for check in one.checks]
    assert project.files() == FILES
    assert not (project.folder / ".git" / "worktrees").exists()
    assert not project.kept.exists()
