"""An undo asks before it takes back what a person perhaps changed: the same question and digits in every door."""

import asyncio
import os
from pathlib import Path

import pytest
from tests.conversation.stage import until_at_work
from tests.tui.stage import Script, Stage
from tests.view.doors import DOORS

from bullpen.conversation.conversation import Conversation
from bullpen.view.state import conversation_view

WRITES: Script = [
    {
        "tool": {
            "name": "Write",
            "input": {"file_path": "made.txt", "content": "made"},
            "output": "",
            "runs": "echo made > made.txt",
        }
    },
    {"say": "Let me see."},
    {"wait_for": "../go"},
    {"say": "Done."},
]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    made = Stage(tmp_path)
    made.agent("max", WRITES, more='permissions = "edit"\ncwd = "work"')
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "notes.md").write_text("one\n")
    return made


async def talked(conversation: Conversation, folder: Path) -> None:
    """Let an agent work until a person has changed a file."""
    await conversation.say("Go.")
    await until_at_work(conversation, "max")
    (folder / "work" / "notes.md").write_text("one\ntwo\n")
    (folder / "go").touch()
    await conversation.until_quiet()


@pytest.mark.parametrize(("answer", "notes"), [("1", "one\n"), ("3", "one\ntwo\n")])
@pytest.mark.parametrize("door", [name for name in DOORS if name != "api"])
def test_an_undo_asks(door: str, answer: str, notes: str, stage: Stage) -> None:
    async def story() -> None:
        async with DOORS[door](stage.team, stage.folder) as (conversation, send):
            await talked(conversation, stage.folder)
            await send("/undo")
            (card,) = conversation_view(conversation).decisions
            assert card.text.startswith("notes.md is perhaps yours: ")
            assert (stage.folder / "work" / "notes.md").read_text() == "one\ntwo\n"

            await send(answer)
            assert conversation_view(conversation).decisions == ()

    asyncio.run(story())
    assert [file.name for file in (stage.folder / "work").iterdir()] == ["notes.md"]
    assert (stage.folder / "work" / "notes.md").read_text() == notes
