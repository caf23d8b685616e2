"""Repositories in which agents run commands in their turns: in the folder itself, or in worktrees of their own."""

import shlex
import subprocess
from pathlib import Path

from tests.conversation.stage import Stage

from bullpen.conversation.conversation import Conversation
from bullpen.file_changes import ChangeRecord
from bullpen.files.own_paths import own_path
from bullpen.store.base import Store

LINES = "".join(f"line {number}\n" for number in range(9))


class Repository:
    """An empty repository on a stage, and agents that run commands in it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.folder = stage.folder / "repo"
        self.folder.mkdir()
        self.git("init", "-q")

    def git(self, *words: str, folder: Path | None = None) -> str:
        names = ("-c", "user.name=kim", "-c", "user.email=kim@example.org")
        done = subprocess.run(
            ["git", *names, *words], cwd=folder or self.folder, check=True, capture_output=True, text=True
        )
        return done.stdout

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", "all")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def read(self, name: str, folder: Path | None = None) -> str | None:
        file = (folder or self.folder) / name
        return file.read_text(encoding="utf-8") if file.exists() else None

    def agent(self, name: str, commands: str, workspace: str = "own", permissions: str = "edit", **keys: str) -> None:
        """Let an agent run these commands in each of its turns, after writing its prompt to a file."""
        prompt = shlex.quote(str(self.prompt_of(name)))
        command = ["sh", "-c", f"cat > {prompt}; echo Begun.; {commands}; echo Done."]
        given = {"command": command, "permissions": permissions, "cwd": "repo", "workspace": workspace}
        self.stage.members[name] = {"name": name, **given, **keys}

    def prompt_of(self, name: str) -> Path:
        return self.stage.folder / f"prompt-of-{name}"


class OwnProject(Repository):
    """A repository with one commit, one file that is not in it, and a reviewer that only reads."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.write("a.txt", LINES)
        self.write("b.txt", "b\n")
        self.commit()
        self.write("notes.txt", "untracked\n")
        stage.people_and_agents("kim", "")
        self.agent("reader", "true", permissions="read-only")

    def own(self, conversation: Conversation, name: str) -> Path:
        """Return where an agent's worktree is."""
        home = self.stage.db.with_name(f"{self.stage.db.name}-files")
        return own_path(home, conversation.id, name)

    def worktrees(self) -> list[str]:
        """Return the names of all worktrees that the repository knows, but its own."""
        printed = self.git("worktree", "list", "--porcelain").splitlines()
        paths = [line.removeprefix("worktree ") for line in printed if line.startswith("worktree ")]
        known = self.folder / ".git" / "worktrees"
        inside = sorted(one.name for one in known.iterdir()) if known.is_dir() else []
        assert len(inside) == len(paths) - 1
        return inside


def _records(store: Store, conversation_id: str) -> list[ChangeRecord]:
    return store.changes(conversation_id)


async def records(conversation: Conversation) -> list[ChangeRecord]:
    return await conversation.read(_records)


def kinds(record: ChangeRecord) -> dict[str, str]:
    return {file.path: file.kind for file in record.changes.files}


async def said(conversation: Conversation, text: str) -> None:
    await conversation.say(text)
    await conversation.until_quiet()


def line(number: int, text: str) -> str:
    """Return a command that changes one line of a.txt."""
    return f"sed -i 's/^line {number}$/{text}/' a.txt"
