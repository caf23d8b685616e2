"""What agents change on workers is seen, shown and taken back as on one machine; workers do it where the files are."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from unittest.mock import AsyncMock

import psycopg
import pytest
from tests.cluster.files_stage import OWNER, WRITES, FilesStage, opened, until_there
from tests.cluster.processes import Processes, Started
from tests.cluster.repositories import git

from bullpen.cli import main
from bullpen.cluster import remote_agent
from bullpen.conversation.recorded_agents import NOT_RECORDED
from bullpen.conversation.unfinished_changes import UnfinishedChanges
from bullpen.errors import FilesDiffer, NothingToUndo, WorkerAway


@pytest.fixture
def stage(tmp_path: Path, url: str, processes: Processes) -> FilesStage:
    return FilesStage(tmp_path, url, processes)


async def test_what_a_turn_changes_on_a_worker_is_recorded_with_a_diff_that_applies(stage: FilesStage) -> None:
    team = stage.prepare(max=WRITES)
    stage.start_worker()
    async with opened(stage.url, team) as seen:
        await seen.talk()

        (record,) = stage.records(seen.conversation.id)
        changes = record.changes
        assert (record.kind, record.member, record.state) == ("turn", "max", "done")
        assert changes.folder == f"gpu-box@box:{stage.folder}"
        assert [(file.path, file.kind, file.added, file.removed) for file in changes.files] == [
            ("a.txt", "changed", 1, 0)
        ]
        assert not changes.note
        assert [event.record.changes.files[0].path for event in seen.changed] == ["a.txt"]

    git(stage.folder, "checkout", "-q", "a.txt")
    git(stage.folder, "apply", given=changes.patch)
    assert stage.text == "one\ntwo\n"


async def test_it_is_taken_back_and_brought_back_on_the_worker_also_by_another_node(stage: FilesStage) -> None:
    team = stage.prepare(max=WRITES)
    stage.start_worker()
    async with opened(stage.url, team) as seen:
        await seen.talk()
        await seen.conversation.undo()
        assert stage.text == "one\n"
        await seen.conversation.redo()
        assert stage.text == "one\ntwo\n"
        conversation_id = seen.conversation.id

    async with opened(stage.url, team, conversation_id) as seen:
        await seen.conversation.undo()
        assert stage.text == "one\n"
        await seen.conversation.rewind("1")
        assert stage.text == "one\ntwo\n"
        kinds = [record.kind for record in stage.records(conversation_id)]
        assert kinds == ["turn", "undo", "redo", "undo", "rewind"]


async def test_what_a_person_changed_on_the_worker_is_told_apart_and_never_overwritten(stage: FilesStage) -> None:
    team = stage.prepare(max=WRITES)
    stage.start_worker()
    async with opened(stage.url, team) as seen:
        await seen.talk()
        (stage.folder / "b.txt").write_text("mine\n")
        (stage.folder / "a.txt").write_text("mine\n")

        with pytest.raises(FilesDiffer, match=r"'a\.txt' has changed since"):
            await seen.conversation.undo()

        assert stage.text == "mine\n"
        people = stage.records(seen.conversation.id)[-1]
        assert people.kind == "people"
        assert [file.path for file in people.changes.files] == ["a.txt", "b.txt"]


async def test_people_are_told_once_of_a_member_on_the_node_whose_changes_are_not_recorded(stage: FilesStage) -> None:
    team = stage.prepare(max=WRITES)
    here = team.parent / "here"
    here.mkdir()
    for name, permissions in (("lea", "edit"), ("bob", "read-only")):
        command = '["sh", "-c", "cat > /dev/null; pwd; touch made-by-$0", "' + name + '"]'
        entry = f'[[member]]\nname = "{name}"\ncwd = "here"\npermissions = "{permissions}"\ncommand = {command}\n'
        team.write_text(f"{team.read_text()}\n{entry}")
    stage.start_worker()
    await until_there(stage.url)
    async with opened(stage.url, team) as seen:
        for name in ("lea", "bob", "lea", "max"):
            await seen.talk(f"[NEXT: {name}] Go.")

        assert (here / "made-by-lea").exists()
        assert seen.troubles == [NOT_RECORDED.format("lea"), NOT_RECORDED.format("bob")]
        assert [record.member for record in stage.records(seen.conversation.id)] == ["max"]


async def test_who_only_reads_costs_nothing(stage: FilesStage) -> None:
    team = stage.prepare(permissions="read-only", max=[{"say": "Hello."}])
    stage.start_worker()
    async with opened(stage.url, team) as seen:
        await seen.talk()
        conversation_id = seen.conversation.id

    assert stage.records(conversation_id) == []
    assert not (stage.file.parent / "home" / "worker-files").exists()


async def test_an_undo_while_the_worker_is_away_is_refused_in_a_sentence_and_works_when_it_is_back(
    stage: FilesStage,
) -> None:
    team = stage.prepare(max=WRITES)
    worker = stage.start_worker()
    async with opened(stage.url, team) as seen:
        await seen.talk()
        await asyncio.to_thread(worker.stop)
        with pytest.raises(WorkerAway, match="The worker box of the pool gpu-box, which has these files, is away"):
            await seen.conversation.undo()
        assert stage.text == "one\ntwo\n"

        stage.start_worker()
        await until_there(stage.url)
        while stage.text != "one\n":
            try:
                await seen.conversation.undo()
            except WorkerAway:
                await asyncio.sleep(0.01)
        with pytest.raises(NothingToUndo):
            await seen.conversation.undo()


async def test_what_a_turn_changed_whose_worker_was_killed_is_known_when_it_is_back(stage: FilesStage) -> None:
    team = stage.prepare(max=[WRITES[0], {"hang": True}], eva=[{"say": "Fine."}])
    worker = stage.start_worker()
    async with opened(stage.url, team) as seen:
        await seen.conversation.say("[NEXT: max] Go.")
        while "two" not in stage.text:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(stage.lose, worker)
        await seen.until_told("What turn 1 changed is not known yet")
        assert [record.state for record in stage.records(seen.conversation.id)] == ["begun"]

        stage.start_worker()
        await until_there(stage.url)
        while True:
            try:
                await seen.conversation.undo()
                break
            except (WorkerAway, NothingToUndo):
                await asyncio.sleep(0.01)

        assert stage.text == "one\n"
        first = stage.records(seen.conversation.id)[0]
        assert [file.path for file in first.changes.files] == ["a.txt"]
        assert "bullpen stopped during this turn" in first.changes.note


async def test_what_a_killed_turn_changed_is_not_taken_for_what_people_did(
    stage: FilesStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = stage.prepare(max=[WRITES[0], {"hang": True}])
    worker = stage.start_worker()
    async with opened(stage.url, team) as seen:
        await seen.conversation.say("[NEXT: max] Go.")
        while "two" not in stage.text:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(stage.lose, worker)
        await seen.until_told("What turn 1 changed is not known yet")
        stage.start_worker()
        await until_there(stage.url)

        with monkeypatch.context() as patch:
            # As if the worker had come back a moment after that was tried.
            patch.setattr(UnfinishedChanges, "complete", AsyncMock(return_value=[]))
            while True:
                try:
                    await seen.conversation.undo()
                except NothingToUndo:
                    break
                except WorkerAway:
                    await asyncio.sleep(0.01)

        assert [record.kind for record in stage.records(seen.conversation.id)] == ["turn"]
        while True:
            # It is completed first, and its worker may be away for another moment.
            try:
                await seen.conversation.undo()
                break
            except (NothingToUndo, WorkerAway):
                await asyncio.sleep(0.01)
        assert [record.kind for record in stage.records(seen.conversation.id)] == ["turn", "undo"]


@pytest.mark.parametrize("end", [Started.kill, Started.stop])
async def test_who_adopts_a_turn_records_what_it_changed(
    stage: FilesStage, processes: Processes, end: Callable[[Started], object]
) -> None:
    team = stage.prepare(max=[*WRITES[:1], stage.waits, {"write_file": {"path": "b.txt", "text": "b\n"}}, WRITES[1]])
    stage.start_worker()
    node = processes.start(OWNER, stage.url, str(team), "new", "Go.")
    conversation_id = node.line()
    while "two" not in stage.text:
        await asyncio.sleep(0.01)

    await asyncio.to_thread(end, node)
    async with opened(stage.url, team, conversation_id) as seen:
        stage.go.touch()
        await seen.conversation.until_quiet()

        (record,) = stage.records(conversation_id)
        assert [file.path for file in record.changes.files] == ["a.txt", "b.txt"]
        assert (record.kind, record.state, record.changes.note) == ("turn", "done", "")
        await seen.conversation.undo()
    assert stage.text == "one\n"
    assert not (stage.folder / "b.txt").exists()
    assert stage.started() == ["max"]


async def test_without_git_names_are_known_and_nothing_can_be_taken_back(stage: FilesStage, tmp_path: Path) -> None:
    team = stage.prepare(max=WRITES)
    (tmp_path / "empty").mkdir()
    stage.start_worker(PATH=str(tmp_path / "empty"))
    async with opened(stage.url, team) as seen:
        await seen.talk()

        (record,) = stage.records(seen.conversation.id)
        assert [file.path for file in record.changes.files] == ["a.txt"]
        assert "Only names and sizes are known" in record.changes.note
        with pytest.raises(Exception, match="Nothing was touched"):
            await seen.conversation.undo()
    assert stage.text == "one\ntwo\n"


async def test_members_that_edit_stay_on_the_worker_that_has_the_files(stage: FilesStage, tmp_path: Path) -> None:
    team = stage.prepare(max=WRITES)
    stage.start_worker()
    other = stage.file.with_name("other.toml")
    other.write_text(stage.file.read_text().replace('"box"', '"other"'))
    first = stage.file
    stage.file = other
    stage.start_worker(BULLPEN_HOME=str(tmp_path / "other-home"))
    stage.file = first
    await until_there(stage.url, 2)
    async with opened(stage.url, team) as seen:
        for count in range(4):
            (stage.folder / "a.txt").write_text(f"{count}\n")
            await seen.talk()

        folders = {record.changes.folder for record in stage.records(seen.conversation.id)}
    assert len(folders) == 1


async def test_a_turn_whose_worker_dies_before_it_takes_it_waits_for_the_one_that_has_the_files(
    stage: FilesStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_agent, "NO_WORKER_SECONDS", 0)
    monkeypatch.setattr(remote_agent, "WATCH_SECONDS", 0.01)
    team = stage.prepare(max=WRITES, lea=[{"hang": True}])
    stage.write_file(permissions="edit", at_once=1)
    box = stage.start_worker()
    await until_there(stage.url)
    async with opened(stage.url, team) as busy, opened(stage.url, team) as seen, opened(stage.url, team) as other:
        await busy.conversation.say("Stay. [NEXT: lea]")
        while stage.started() != ["lea"]:
            await asyncio.sleep(0.01)
        for waiting in (seen, other):
            await waiting.conversation.say("Go. [NEXT: max]")
            await until_ordered(stage.url, waiting.conversation.id)
        stage.write_file(permissions="edit", name="spare")
        stage.start_worker(BULLPEN_HOME=str(tmp_path / "spare"))
        await until_there(stage.url, 2)

        await asyncio.to_thread(stage.lose, box)
        for waiting in (seen, other):
            await waiting.until_noticed(
                "box, which has the files of this conversation in gpu-box, is away. "
                "The turn waits until it is back; it can be cancelled."
            )

        await other.conversation.cancel()
        await other.conversation.until_quiet()
        assert stage.started() == ["lea"]

        stage.write_file(permissions="edit")
        stage.start_worker()
        await seen.conversation.until_quiet()

        assert stage.started() == ["lea", "max"]
        assert stage.text == "one\ntwo\n"
        assert [len(one.notices) for one in (seen, other)] == [1, 1]


async def until_ordered(url: str, conversation_id: str) -> None:
    """Wait until a turn of a conversation waits for a worker."""
    query = "SELECT FROM bullpen_cluster.orders WHERE conversation = %s AND NOT is_errand"
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        while not await (await connection.execute(query, [conversation_id])).fetchall():
            await asyncio.sleep(0.01)


async def test_a_shell_takes_back_what_was_changed_in_a_conversation_that_nobody_has_open(
    stage: FilesStage, capsys: pytest.CaptureFixture[str]
) -> None:
    team = stage.prepare(max=WRITES)
    worker = stage.start_worker()
    async with opened(stage.url, team) as seen:
        await seen.talk()
        conversation_id = seen.conversation.id
        assert await in_a_shell("undo", "--session", conversation_id, "--db", stage.url) == 1
        assert f"Conversation {conversation_id} is open in process" in capsys.readouterr().err
    words = ("--session", conversation_id, "--db", stage.url)

    assert await in_a_shell("undo", *words) == 0

    assert "a.txt" in capsys.readouterr().out
    assert stage.text == "one\n"
    assert await in_a_shell("redo", *words) == 0
    assert stage.text == "one\ntwo\n"
    assert await in_a_shell("undo", "1", *words) == 0
    assert await in_a_shell("rewind", "1", *words) == 0
    assert stage.text == "one\ntwo\n"
    await asyncio.to_thread(stage.lose, worker)
    capsys.readouterr()

    assert await in_a_shell("undo", *words) == 1

    said = capsys.readouterr().err
    assert "The worker box of the pool gpu-box, which has these files, " in said
    assert "Traceback" not in said
    assert stage.text == "one\ntwo\n"


async def in_a_shell(*words: str) -> int:
    """Return how a command ends."""
    return await asyncio.to_thread(main, list(words))
