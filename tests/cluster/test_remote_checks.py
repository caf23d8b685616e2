"""Checks run on the worker that has the files, after turns that changed some, if the worker's own file lists them."""

import asyncio
import json
import sys
from pathlib import Path

import msgspec
import pytest
from tests.cluster.files_stage import OWNER, WRITES, FilesStage, opened
from tests.cluster.processes import Processes

from bullpen.cluster.file_work import FileWork, TakeSnapshot
from bullpen.cluster.node import open_node
from bullpen.store.postgres.store import PostgresStore


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def check(command: list[str], **others: object) -> str:
    keys = {"name": "tests", "command": command, "cwd": "project", **others}
    return "\n".join(["[[check]]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())])


@pytest.fixture
def stage(tmp_path: Path, url: str, processes: Processes) -> FilesStage:
    return FilesStage(tmp_path, url, processes)


async def test_a_check_runs_on_the_worker_and_its_result_is_stored(stage: FilesStage) -> None:
    command = python("import os; print(os.getcwd()); open('made.txt', 'w').close(); raise SystemExit(3)")
    team = stage.prepare(checks=check(command), allowed=[command], max=WRITES)
    stage.start_worker()
    async with opened(stage.url, team) as seen:
        await seen.talk()
        conversation_id = seen.conversation.id

    (result,) = stage.results(conversation_id)
    assert (result.state, result.exit_code, result.member) == ("red", 3, "max")
    assert result.output == f"{stage.folder}\n"
    assert result.workspace == f"gpu-box@box:{stage.folder}"
    turn, of_check = stage.records(conversation_id)
    assert [file.path for file in turn.changes.files] == ["a.txt"]
    assert (of_check.kind, of_check.check) == ("check", "tests")
    assert [file.path for file in of_check.changes.files] == ["made.txt"]


async def test_a_check_that_the_worker_does_not_list_is_not_started_and_that_is_said(stage: FilesStage) -> None:
    command = python("raise SystemExit(0)")
    team = stage.prepare(checks=check(command), max=WRITES)
    stage.start_worker()
    async with opened(stage.url, team) as seen:
        await seen.talk()

        (result,) = stage.results(seen.conversation.id)
        assert result.state == "not_started"
        assert "Its worker does not run this check" in result.note
        assert "is not among its checks" in result.note


async def test_cancelling_ends_a_check_on_the_worker(stage: FilesStage) -> None:
    command = python("import time; print('began', flush=True); open('began', 'w').close(); time.sleep(600)")
    team = stage.prepare(checks=check(command), allowed=[command], max=WRITES)
    stage.start_worker()
    async with opened(stage.url, team) as seen:
        await seen.conversation.say("Go.")
        while not (stage.folder / "began").exists():
            await asyncio.sleep(0.01)
        await seen.conversation.cancel()
        await seen.conversation.until_quiet()

        (result,) = stage.results(seen.conversation.id)
        assert result.state == "cancelled"
        assert result.output.startswith("began\n")


async def test_a_check_whose_worker_is_killed_is_interrupted(stage: FilesStage) -> None:
    command = python("import time; open('began', 'w').close(); time.sleep(600)")
    team = stage.prepare(checks=check(command), allowed=[command], max=WRITES)
    worker = stage.start_worker()
    async with opened(stage.url, team) as seen:
        await seen.conversation.say("Go.")
        while not (stage.folder / "began").exists():
            await asyncio.sleep(0.01)
        await asyncio.to_thread(stage.lose, worker)
        await seen.conversation.until_quiet()

        (result,) = stage.results(seen.conversation.id)
        assert result.state == "interrupted"
        assert "was lost while it did this" in result.note


async def test_what_an_owner_ordered_that_has_died_is_ended_by_the_next_one(
    stage: FilesStage, processes: Processes
) -> None:
    command = python("import time; open('began', 'a').write('x'); time.sleep(600)")
    team = stage.prepare(checks=check(command), allowed=[command], max=WRITES)
    stage.start_worker()
    node = processes.start(OWNER, stage.url, str(team), "new", "Go.")
    conversation_id = node.line()
    while not (stage.folder / "began").exists():
        await asyncio.sleep(0.01)
    node.kill()

    async with open_node(stage.url, name="n") as other:
        packed = msgspec.msgpack.encode(FileWork(folder="project", ask=TakeSnapshot()))
        # For a worker that is not there.
        place = "SELECT place_errand(%s, '!1', 'gpu-box', 'gone', %s, %s)"
        await other.database.do(place, conversation_id, packed, other.id)
    async with opened(stage.url, team, conversation_id) as seen:
        await seen.conversation.until_quiet()

        (result,) = stage.results(conversation_id)
        assert result.state == "interrupted"
        with PostgresStore(stage.url) as store:
            assert store.fsck(conversation_id) == []
    async with open_node(stage.url, name="n") as other:
        assert await other.database.do("SELECT FROM orders WHERE is_errand AND turn = '!1'") == []
        rows = await other.database.do("SELECT id FROM processes WHERE kind = 'node' AND ended_at IS NOT NULL LIMIT 1")
        late = "SELECT place_errand(%s, '!2', 'gpu-box', 'box', '', %s)"
        assert await other.database.do(late, conversation_id, rows[0][0]) == [(False,)]
    assert (stage.folder / "began").read_text() == "x"
