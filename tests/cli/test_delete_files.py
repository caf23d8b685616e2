"""bullpen sessions delete: what files were goes with the last conversation that names it, and no other undo is lost."""

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.files.stage import kept_bytes

from bullpen.app import open_team
from bullpen.cli import main
from bullpen.files.holding import hold

Printed = pytest.CaptureFixture[str]

TEAM = """
[[member]]
name = "kim"

[[member]]
name = "ann"
command = ["sh", "-c", "head -c 100000 /dev/urandom > new.bin; cat >> said.txt; echo Done."]
permissions = "edit"
cwd = "project"
"""


class Folder:
    """A project in which ann writes into two files in every turn."""

    def __init__(self, path: Path) -> None:
        self.db, self.team, self.project = path / "c.db", path / "team.toml", path / "project"
        self.kept = self.db.with_name("c.db-files")
        self.team.write_text(TEAM, encoding="utf-8")
        self.project.mkdir()

    def talk(self, turns: int = 1) -> str:
        async def story() -> str:
            async with open_team(self.team, db=self.db) as conversation:
                for _ in range(turns):
                    await conversation.say("[NEXT: ann] Go.")
                    await conversation.until_quiet()
                return conversation.id

        return asyncio.run(story())

    def run(self, *words: str) -> int:
        return main([*words, "--db", str(self.db)])

    def files(self) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in self.project.iterdir()}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_what_another_conversation_names_stays(folder: Folder, capsys: Printed) -> None:
    gone, before = folder.talk(3), folder.files()
    kept = folder.talk()
    size = kept_bytes(folder.kept)
    assert folder.run("fsck") == 0
    assert " What files were takes " in capsys.readouterr().out

    assert folder.run("sessions", "delete", gone, "--yes") == 0

    assert "With it went " in capsys.readouterr().out
    assert kept_bytes(folder.kept) < size - 100_000
    assert folder.run("undo", "--session", kept) == 0
    assert folder.files() == before
    assert folder.run("sessions", "delete", kept, "--yes") == 0
    assert kept_bytes(folder.kept) == 0


def test_not_while_another_process_uses_it(folder: Folder, capsys: Printed) -> None:
    gone = folder.talk()
    # As a process does in which another conversation is open.
    handle = hold(folder.kept)
    size = kept_bytes(folder.kept)

    assert folder.run("sessions", "delete", gone, "--yes") == 0
    said = capsys.readouterr().out
    assert "since other conversations are open. Later: bullpen fsck --repair --db " in said
    assert folder.run("fsck", "--repair") == 0
    assert "stays, since other conversations are open" in capsys.readouterr().out
    assert kept_bytes(folder.kept) == size
    assert handle is not None
    os.close(handle)
    assert folder.run("fsck", "--repair") == 0
    assert "of what files were in conversations that are deleted" in capsys.readouterr().out
    assert kept_bytes(folder.kept) == 0


def test_not_if_a_record_cannot_be_read(folder: Folder) -> None:
    gone, damaged = folder.talk(), folder.talk()
    with closing(sqlite3.connect(folder.db)) as db, db:
        db.execute("UPDATE changes SET record = x'00' WHERE conversation = (SELECT max(conversation) FROM changes)")
    size = kept_bytes(folder.kept)

    assert folder.run("sessions", "delete", gone, "--yes") == 0

    assert damaged != gone
    assert kept_bytes(folder.kept) == size
