"""bullpen sessions delete: agents' worktrees go with their conversation, unless they hold work that was not merged."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from bullpen.app import open_team
from bullpen.cli import main

Printed = pytest.CaptureFixture[str]

TEAM = """
[[member]]
name = "kim"

[[member]]
name = "ann"
command = ["sh", "-c", "cat > /dev/null; echo new > new.txt; echo Done."]
permissions = "edit"
workspace = "own"
cwd = "repo"

[[member]]
name = "bob"
command = ["sh", "-c", "cat > /dev/null; echo half > half.txt; exit 3"]
permissions = "edit"
workspace = "own"
cwd = "repo"
"""


class Folder:
    """A repository in which two agents work in worktrees; bob always fails."""

    def __init__(self, path: Path) -> None:
        self.db, self.team, self.repo = path / "c.db", path / "team.toml", path / "repo"
        self.team.write_text(TEAM, encoding="utf-8")
        self.repo.mkdir()
        (self.repo / "a.txt").write_text("a\n", encoding="utf-8")
        names = ("-c", "user.name=kim", "-c", "user.email=kim@example.org")
        for words in (("init", "-q"), ("add", "-A"), (*names, "commit", "-qm", "first")):
            subprocess.run(["git", *words], cwd=self.repo, check=True)

    async def talk(self, *names: str) -> str:
        async with open_team(self.team, db=self.db) as conversation:
            for name in names:
                await conversation.say(f"[NEXT: {name}] Go.")
                await conversation.until_quiet()
            return conversation.id

    def worktrees(self) -> int:
        return len(list((self.repo / ".git" / "worktrees").glob("*")))

    def delete(self, *words: str) -> int:
        return main(["sessions", "delete", "last", "--yes", *words, "--db", str(self.db)])


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_worktrees_are_removed(folder: Folder, capsys: Printed) -> None:
    asyncio.run(folder.talk("ann"))
    assert folder.worktrees() == 1
    assert folder.delete() == 0
    assert folder.worktrees() == 0
    assert not list(folder.db.with_name("c.db-files").glob("worktrees/*"))
    assert (folder.repo / "new.txt").exists(), "what was merged stays"
    assert "Deleted" in capsys.readouterr().out


def test_not_while_one_holds_work_that_is_nowhere_else(folder: Folder, capsys: Printed) -> None:
    conversation_id = asyncio.run(folder.talk("ann", "bob"))
    assert folder.delete() == 1
    place = folder.db.with_name("c.db-files") / "worktrees" / conversation_id / f"{conversation_id}.bob"
    assert capsys.readouterr().err == (
        f"bullpen: There is work that was not merged: of bob in {place}. Open the conversation and say /merge NAME, or "
        "delete it with --force. Nothing was deleted.\n"
    )
    assert folder.worktrees() == 2
    assert (place / "half.txt").exists()
    assert folder.delete("--force") == 0
    assert folder.worktrees() == 0


def test_not_while_one_holds_commits(folder: Folder, capsys: Printed) -> None:
    conversation_id = asyncio.run(folder.talk("ann"))
    place = folder.db.with_name("c.db-files") / "worktrees" / conversation_id / f"{conversation_id}.ann"
    names = ("-c", "user.name=ann", "-c", "user.email=ann@example.org")
    subprocess.run(["git", *names, "commit", "-q", "--allow-empty", "-m", "mine"], cwd=place, check=True)
    assert folder.delete() == 1
    assert "There is work that was not merged: of ann" in capsys.readouterr().err


def test_commits_of_an_agent_stay_in_its_next_turn(folder: Folder, capsys: Printed) -> None:
    conversation_id = asyncio.run(folder.talk("ann"))
    place = folder.db.with_name("c.db-files") / "worktrees" / conversation_id / f"{conversation_id}.ann"
    names = ("-c", "user.name=ann", "-c", "user.email=ann@example.org")
    for where, subject in ((place, "mine"), (folder.repo, "of a person")):
        subprocess.run(["git", *names, "commit", "-q", "--allow-empty", "-m", subject], cwd=where, check=True)

    async def again() -> None:
        async with open_team(folder.team, db=folder.db, resume=conversation_id) as conversation:
            await conversation.say("[NEXT: ann] Again.")
            await conversation.until_quiet()

    asyncio.run(again())
    assert subprocess.check_output(["git", "log", "-1", "--format=%s"], cwd=place) == b"mine\n"
    assert folder.delete() == 1
    assert "There is work that was not merged: of ann" in capsys.readouterr().err


def test_what_a_worktree_of_another_conversation_holds_can_still_be_merged(folder: Folder) -> None:
    left = asyncio.run(folder.talk("bob"))
    asyncio.run(folder.talk("ann"))
    place = folder.db.with_name("c.db-files") / "worktrees" / left / f"{left}.bob"
    (folder.repo / "later.txt").write_text("later\n", encoding="utf-8")
    subprocess.run(["rm", "-rf", str(place)], check=True)

    assert folder.delete() == 0

    async def merged() -> None:
        async with open_team(folder.team, db=folder.db, resume=left) as conversation:
            await conversation.merge("bob")

    asyncio.run(merged())
    assert (folder.repo / "half.txt").read_text(encoding="utf-8") == "half\n"
