"""bullpen undo, redo and rewind: in a real folder, from a conversation that nobody has open."""

import asyncio
import io
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bullpen.app import open_team
from bullpen.cli import main
from bullpen.conversation.conversation import Conversation
from bullpen.file_changes import ChangeRecord
from bullpen.store.sqlite import SqliteStore

ROOT = Path(__file__).parents[2]
Printed = pytest.CaptureFixture[str]

TEAM = """
[[member]]
name = "kim"

[[member]]
name = "builder"
command = ["sh", "-c", "cat > /dev/null; echo more >> notes.txt; echo new > new.txt; echo Done."]
permissions = "edit"
cwd = "work"
"""


class Folder:
    """A folder without git in which a builder works, and the database beside it."""

    def __init__(self, path: Path) -> None:
        self.db, self.team = path / "c.db", path / "team.toml"
        self.work = path / "work"
        self.work.mkdir()
        self.team.write_text(TEAM, encoding="utf-8")
        (self.work / "notes.txt").write_text("one\n", encoding="utf-8")

    def files(self) -> dict[str, str]:
        return {file.name: file.read_text(encoding="utf-8") for file in sorted(self.work.iterdir())}

    async def build(self, times: int, then: str = "") -> str:
        async with open_team(self.team, db=self.db) as conversation:
            for _ in range(times):
                await conversation.say("[NEXT: builder] Go.")
                await conversation.until_quiet()
            if then:
                await conversation.say(then)
                await conversation.until_quiet()
            return conversation.id

    def run(self, *words: str) -> int:
        return main([*words, "--db", str(self.db)])


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_the_commands_of_the_first_hour_work_after_a_reviewer_has_spoken(folder: Folder, capsys: Printed) -> None:
    reviewer = '[[member]]\nname = "reviewer"\ncommand = ["echo", "Fine."]\ncwd = "work"\n'
    folder.team.write_text(f"{TEAM}\n{reviewer}", encoding="utf-8")
    asyncio.run(folder.build(1, then="[NEXT: reviewer] Look at it."))
    section = (ROOT / "docs" / "first-hour.md").read_text(encoding="utf-8").partition("## See what changed")[2]
    commands = re.findall(r"^\$ bullpen (.+)$", section.partition("\n## ")[0], re.MULTILINE)

    assert commands
    assert [(one, folder.run(*one.split())) for one in commands] == [(one, 0) for one in commands], capsys.readouterr()


def test_undo_and_redo_say_what_they_touched(folder: Folder, capsys: Printed) -> None:
    conversation_id = asyncio.run(folder.build(1))
    capsys.readouterr()
    assert folder.run("undo") == 0
    assert folder.files() == {"notes.txt": "one\n"}
    assert capsys.readouterr().out == (
        f"In {conversation_id} ({folder.team}):\n"
        "kim took back turn 1: 2 files (+0 −2).\n  deleted: new.txt\n  changed: notes.txt\n"
    ).replace("+0 ", "")
    assert folder.run("redo", "1") == 0
    assert folder.files() == {"new.txt": "new\n", "notes.txt": "one\nmore\n"}
    assert "kim brought back turn 1" in capsys.readouterr().out


def test_it_takes_back_what_the_last_conversation_here_did_whichever_team_file_it_has(
    folder: Folder, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.team.parent)
    asyncio.run(folder.build(1))
    other = folder.team.with_name("other.toml")
    other.write_text(TEAM.replace("new.txt", "other.txt"), encoding="utf-8")
    folder.team = other
    conversation_id = asyncio.run(folder.build(1))
    capsys.readouterr()

    assert folder.run("undo") == 0
    assert folder.files() == {"new.txt": "new\n", "notes.txt": "one\nmore\n"}
    assert capsys.readouterr().out.startswith(f"In {conversation_id} (other.toml):\nkim took back turn 1")
    assert folder.run("undo", "--session", "last") == 1
    printed = capsys.readouterr()
    assert printed.out == f"In {conversation_id} (other.toml):\n"
    assert "nothing" in printed.err


def test_a_rewind_goes_to_the_files_after_a_turn(folder: Folder, capsys: Printed) -> None:
    asyncio.run(folder.build(2))
    assert folder.run("rewind", "1") == 0
    assert folder.files()["notes.txt"] == "one\nmore\n"
    assert folder.run("rewind", "1") == 1
    assert "The files are as they were after turn 1." in capsys.readouterr().err


def test_it_refuses_what_it_cannot_do_in_a_sentence(folder: Folder, capsys: Printed) -> None:
    asyncio.run(folder.build(1))
    (folder.work / "notes.txt").write_text("mine\n", encoding="utf-8")
    assert folder.run("undo") == 1
    assert "'notes.txt' has changed since, so nothing was touched" in capsys.readouterr().err
    assert folder.run("redo") == 1
    assert "There is nothing to redo" in capsys.readouterr().err
    assert folder.run("undo", "9") == 1
    assert "There is no turn '9'" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        folder.run("rewind")
    assert folder.files()["notes.txt"] == "mine\n"


def test_who_has_the_conversation_open_undoes_it_there(folder: Folder, capsys: Printed) -> None:
    async def story() -> None:
        async with open_team(folder.team, db=folder.db) as conversation:
            await _built(conversation)
            assert await asyncio.to_thread(folder.run, "undo") == 1

    asyncio.run(story())
    assert "is open in process" in capsys.readouterr().err
    assert folder.files()["notes.txt"] == "one\nmore\n"


async def _built(conversation: Conversation) -> None:
    await conversation.say("[NEXT: builder] Go.")
    await conversation.until_quiet()


@pytest.fixture
def talked_over(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """Return a folder in which a person perhaps changed a file while the builder worked."""
    asyncio.run(folder.build(1))

    def marked(record: ChangeRecord) -> ChangeRecord:
        files = (replace(one, is_perhaps_a_persons=one.path == "notes.txt") for one in record.changes.files)
        return replace(record, changes=replace(record.changes, files=tuple(files)))

    stored = SqliteStore.changes

    def changes(*given: Any, **more: Any) -> list[ChangeRecord]:
        return [marked(one) if one.kind == "turn" else one for one in stored(*given, **more)]

    monkeypatch.setattr(SqliteStore, "changes", changes)
    return folder


ASKED = "notes.txt is perhaps yours: no tool of builder that ran in turn 1 can have changed it. Take it back, too?"


def test_without_a_terminal_undo_leaves_what_is_perhaps_yours_and_says_how_it_is_taken_back(
    talked_over: Folder, capsys: Printed
) -> None:
    assert talked_over.run("undo") == 0
    assert talked_over.files() == {"notes.txt": "one\nmore\n"}
    assert f"{ASKED} It stays; to do that: bullpen undo 1 --all" in capsys.readouterr().err

    assert talked_over.run("redo") == 0
    assert talked_over.run("undo", "--all") == 0
    assert talked_over.files() == {"notes.txt": "one\n"}
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("answer", "notes"), [("y", "one\n"), ("", "one\nmore\n")])
def test_at_a_terminal_undo_asks(
    answer: str, notes: str, talked_over: Folder, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = io.StringIO(f"{answer}\n")
    monkeypatch.setattr(typed, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", typed)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)

    assert talked_over.run("undo", "1") == 0
    assert talked_over.files() == {"notes.txt": notes}
    assert capsys.readouterr().err == f"{ASKED} [y/N] "
