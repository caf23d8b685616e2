"""What a person changed during a turn: told apart from what the agent did, named, and left alone by an undo."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.conversation.repository_stage import OwnProject, records
from tests.conversation.stage import Script, Stage, events_so_far, tell, until_at_work

from bullpen.conversation import told_apart
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import FilesChanged, LeftByUndo
from bullpen.conversation.told_apart import ToolTimes
from bullpen.errors import NothingToDecide, NothingToUndo
from bullpen.file_changes import ChangeRecord, FileChange, FolderChanges
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.clock import ManualClock
from bullpen.turn_events import ToolFinished, ToolStarted
from bullpen.view.changes import record_words
from bullpen.view.command_arguments import Undone
from bullpen.view.command_effects import undo
from bullpen.view.commands import run_command
from bullpen.view.entered import entered
from bullpen.view.state import conversation_view, stored_view

WRITES: dict[str, Any] = {
    "tool": {
        "name": "Write",
        "input": {"file_path": "made.txt", "content": "made"},
        "output": "",
        "runs": "echo made > made.txt",
    }
}
READS: dict[str, Any] = {"tool": {"name": "Read", "input": {"file_path": "a.txt"}, "output": "a"}}


@pytest.fixture
def team(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage.put_claude_on_the_path(monkeypatch)
    stage.person("kim")
    (stage.folder / "work").mkdir()
    (stage.folder / "work" / "notes.md").write_text("one\n")
    return stage


async def talked(team: Stage, conversation: Conversation) -> ChangeRecord:
    """Let an agent work until a person has changed a file, and return what was recorded."""
    asking = asyncio.create_task(tell(conversation, "Go. [NEXT: max]"))
    await until_at_work(conversation, "max")
    (team.folder / "work" / "notes.md").write_text("one\ntwo\n")
    (team.folder / "work" / "go").touch()
    await asking
    return (await records(conversation))[-1]


def agent(team: Stage, *script: dict[str, Any]) -> None:
    steps: Script = [*script, {"say": "Let me see."}, {"wait_for": "go"}, {"say": "Done."}]
    team.agent("max", steps, agent="claude", permissions="edit", cwd="work")


def marked(record: ChangeRecord) -> dict[str, bool]:
    return {file.path: file.is_perhaps_a_persons for file in record.changes.files if file.path != "go"}


async def test_what_no_tool_named_is_perhaps_a_persons(team: Stage) -> None:
    agent(team, READS, WRITES)
    async with team.open() as conversation:
        record = await talked(team, conversation)

        assert marked(record) == {"made.txt": False, "notes.md": True}
        assert "notes.md were perhaps changed by a person: no tool of max ran then that could." in record.changes.note
        assert "/undo 1 asks before it takes them back." in record_words(record)
        assert [event.record.changes.note for event in events_so_far(conversation, FilesChanged)][-1:] == [
            record.changes.note
        ]


async def test_an_undo_leaves_it_and_one_of_all_does_not(team: Stage) -> None:
    agent(team, WRITES)
    async with team.open() as conversation:
        await talked(team, conversation)
        await undo(conversation, Undone(turn="1"), None)
        assert not (team.folder / "work" / "made.txt").exists()
        assert (team.folder / "work" / "notes.md").read_text() == "one\ntwo\n"
        assert "2 files perhaps changed by a person stayed." in record_words((await records(conversation))[-1])
        assert await conversation.undo("1") is None, "nothing else is left"
        await conversation.redo("1")
        assert conversation.progress.files_left == {}
        assert (team.folder / "work" / "made.txt").exists()
        await undo(conversation, Undone(turn="1", everything=True), None)
        assert (team.folder / "work" / "notes.md").read_text() == "one\n"
        assert not (team.folder / "work" / "made.txt").exists()
        with pytest.raises(NothingToUndo, match="is taken back already"):
            await undo(conversation, Undone(turn="1", everything=True), None)


async def test_an_undo_leaves_what_was_moved_away_from_where_a_person_wrote(team: Stage) -> None:
    moves = {"tool": {**WRITES["tool"], "runs": "mv notes.md made.txt"}}
    writes = {"tool": {**WRITES["tool"], "input": {"file_path": "new.txt"}, "runs": "echo new > new.txt"}}
    agent(team, moves, writes)
    work = team.folder / "work"
    async with team.open() as conversation:
        record = await talked(team, conversation)
        assert marked(record) == {"notes.md": True, "made.txt": False, "new.txt": False}
        await undo(conversation, Undone(turn="1"), None)
        assert {path.name: path.read_text() for path in work.iterdir()} == {
            "go": "",
            "notes.md": "one\ntwo\n",
            "made.txt": "one\n",
        }
        assert "and so did made.txt, with what was there before" in record_words((await records(conversation))[-1])
        await undo(conversation, Undone(turn="1", everything=True), None)
        assert (work / "notes.md").read_text() == "one\n"
        assert not (work / "made.txt").exists()
        await conversation.redo("1")
        assert (work / "notes.md").read_text() == "one\ntwo\n"
        with pytest.raises(NothingToUndo, match="turn 1 is not taken back"):
            await conversation.redo("1")


@pytest.mark.parametrize(("typed", "notes"), [("1", "one\n"), ("y", "one\n"), ("3", "one\ntwo\n"), ("n", "one\ntwo\n")])
async def test_an_undo_asks_before_it_takes_that_back(typed: str, notes: str, team: Stage) -> None:
    agent(team, WRITES)
    async with team.open() as conversation:
        await talked(team, conversation)
        await undo(conversation, Undone(), None)
        assert conversation_view(conversation).activity.name == "waits"
        (asked,) = cards = conversation_view(conversation).decisions
        assert asked.text.startswith("go and notes.md are perhaps yours: no tool of max that ran in turn 1 can have ")
        assert asked.keys == "1 Take back  3 Leave it"
        with SqliteStore(team.db) as other:
            assert stored_view(other, conversation.id).decisions == cards
        assert [event.text for event in events_so_far(conversation, LeftByUndo)] == [asked.text]

        does = entered(conversation, typed, cards)
        assert does.line == f"{asked.choices[0 if typed in '1y' else 1].label}: {does_what(typed)}"
        assert does.command is not None
        await run_command(does.command, conversation)

        assert conversation_view(conversation).decisions == ()
        assert (team.folder / "work" / "notes.md").read_text() == notes


def does_what(typed: str) -> str:
    return "take that back, too; /redo brings it back" if typed in "1y" else "leave these files as they are"


async def test_what_an_undo_asks_is_still_asked_when_the_conversation_is_opened_again(team: Stage) -> None:
    agent(team, WRITES)
    async with team.open() as conversation:
        await talked(team, conversation)
        await conversation.undo()
        cards = conversation_view(conversation).decisions
    async with team.open(resume=conversation.id) as again:
        assert conversation_view(again).decisions == cards
        with pytest.raises(NothingToDecide):
            await again.leave_files("7")
        await again.leave_files("1")
        assert again.progress.files_left == {}


async def test_beside_a_shell_nothing_is_told_apart(team: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told_apart, "SLACK_MILLISECONDS", 60_000)
    shell: dict[str, Any] = {
        "tool": {"name": "Bash", "input": {"command": "x"}, "output": "", "runs": "echo made > made.txt"}
    }
    agent(team, shell)
    async with team.open() as conversation:
        record = await talked(team, conversation)

    assert marked(record) == {"made.txt": False, "notes.md": False}, "it came soon after it"


async def test_what_another_turn_changed_that_ended_sooner_is_not_a_persons(team: Stage) -> None:
    agent(team)
    team.agent("ann", [WRITES, {"say": "Made."}], agent="claude", permissions="edit", cwd="work")
    async with team.open() as conversation:
        asking = asyncio.create_task(tell(conversation, "Go. [NEXT: max & ann]"))
        while not any(event.record.member == "ann" for event in events_so_far(conversation, FilesChanged)):
            await asyncio.sleep(0.01)
        (team.folder / "work" / "go").touch()
        await asking
        found = [record for record in await records(conversation) if record.kind == "turn"]

    assert {record.member: marked(record) for record in found} == {
        "max": {"made.txt": False},
        "ann": {"made.txt": False},
    }
    assert not any("a person" in record.changes.note for record in found)


async def test_nobody_else_is_in_a_workspace_of_its_own(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.put_claude_on_the_path(monkeypatch)
    project = OwnProject(stage)
    steps: Script = [{"say": "Let me see."}, {"wait_for": "go"}, {"say": "Done."}]
    stage.agent("max", steps, agent="claude", permissions="edit", cwd="repo", workspace="own")
    async with stage.open() as conversation:
        asking = asyncio.create_task(tell(conversation, "Go. [NEXT: max]"))
        await until_at_work(conversation, "max")
        (project.own(conversation, "max") / "go").touch()
        await asking
        changes = [record.changes for record in await records(conversation)]

    assert [(file.path, file.is_perhaps_a_persons) for one in changes for file in one.files] == [("go", False)] * 2


@pytest.mark.usefixtures("commands_are_watched")
async def test_a_command_that_may_only_read_is_watched(stage: Stage) -> None:
    stage.person("kim")
    stage.agent("cat", command=["sh", "-c", "echo x > made.txt"], cwd=".")
    async with stage.open() as conversation:
        await tell(conversation, "Go. [NEXT: cat]")
        (record,) = await records(conversation)
        assert marked(record)["made.txt"] is False, "nobody knows what it did when"
        await conversation.undo("1")

    assert not (stage.folder / "made.txt").exists()


SHELL = ToolStarted(id="1", name="Bash", input={"command": "make"})
IN_BACKGROUND = ToolStarted(id="1", name="Bash", input={"command": "make", "run_in_background": True})
EDIT = ToolStarted(id="1", name="Edit", input={"file_path": "a.txt"})


@pytest.mark.parametrize(
    ("tool", "path", "seconds", "is_a_persons"),
    [
        (SHELL, "a.txt", 5, False),
        (SHELL, "a.txt", -1, False),
        (SHELL, "a.txt", 11, False),
        (SHELL, "a.txt", 13, True),
        (SHELL, "a.txt", -3, True),
        (SHELL, "a.txt", None, False),
        (EDIT, "a.txt", 5, False),
        (EDIT, "a.txt", 13, True),
        (EDIT, "b.txt", 5, True),
        (EDIT, "b.txt", None, True),
        (EDIT, "b.txt", -8, False),
        (EDIT, "b.txt", 73, False),
        (IN_BACKGROUND, "a.txt", 60, False),
    ],
)
def test_a_file_is_the_turns_if_a_tool_could_have_changed_it_then(
    tool: ToolStarted,
    path: str,
    seconds: int | None,
    is_a_persons: bool,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = ToolTimes("/x", "/x")
    clock.advance(5)
    began = clock.time()
    monkeypatch.setattr(
        told_apart, "_changed_at", lambda *_: None if seconds is None else int(1000 * (began + seconds))
    )
    times.on_event(tool)
    clock.advance(10)
    times.on_event(ToolFinished(id="1"))
    clock.advance(60)

    changes = FolderChanges(folder="/x", files=(FileChange(path=path, kind="changed"),))
    told = times.told_apart(changes, "1", "max", Path("/x"))

    assert (told.files[0].is_perhaps_a_persons, bool(told.note)) == (is_a_persons, is_a_persons)


@pytest.mark.parametrize(("seconds", "is_a_persons"), [(1, False), (15, False), (25, True), (35, False), (45, True)])
def test_each_tool_has_its_time(
    seconds: int, is_a_persons: bool, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first tool ends before the two that it overlaps; a fourth comes later."""
    began = clock.time()
    times = ToolTimes("/x", "/x")
    begins, ends = {0: "1", 2: "2", 3: "3", 30: "4"}, {5: "1", 6: "3", 18: "2", 40: "4"}
    for _ in range(60):
        now = round(clock.time() - began)
        if now in begins:
            times.on_event(replace(SHELL, id=begins[now]))
        if now in ends:
            times.on_event(ToolFinished(id=ends[now]))
        clock.advance(1)
    monkeypatch.setattr(told_apart, "_changed_at", lambda *_: int(1000 * (began + seconds)))

    changes = FolderChanges(folder="/x", files=(FileChange(path="a.txt", kind="changed"),))

    assert times.told_apart(changes, "1", "max", Path("/x")).files[0].is_perhaps_a_persons == is_a_persons


@pytest.mark.usefixtures("commands_are_watched")
async def test_commands_that_change_nothing_at_the_same_time_are_not_talked_about(stage: Stage) -> None:
    stage.person("kim")
    (stage.folder / "work").mkdir()
    for name in ("a", "b"):
        stage.agent(name, command=["sh", "-c", "echo fine"], cwd="work")
    async with stage.open() as conversation:
        await tell(conversation, "Go. [NEXT: a & b]")
        assert [(record.changes.files, record.changes.note) for record in await records(conversation)] == [((), "")] * 2
        assert not events_so_far(conversation, FilesChanged)
