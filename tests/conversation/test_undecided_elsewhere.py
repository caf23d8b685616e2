"""What a turn of one conversation wrote that makes programs run holds the agents of others in the same folder, too."""

import asyncio
import io
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.conversation.stage import Stage, events_so_far, said, tell, until_at_work, waiting
from tests.conversation.test_program_changes import ASKED, Project

from bullpen.app import open_team
from bullpen.cli import main
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Continued, Paused
from bullpen.conversation.file_history import FileHistory
from bullpen.conversation.owner import this_process
from bullpen.conversation.program_changes import ProgramQuestions
from bullpen.conversation.undecided_elsewhere import undecided_elsewhere
from bullpen.exchange.files import write_export
from bullpen.exchange.forking import fork_conversation
from bullpen.exchange.importing import import_conversation, read_import
from bullpen.routing.progress import ProgramChange, Progress
from bullpen.store.base import StateChange
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.clock import ManualClock
from bullpen.testing.store_contract import CHANGES, OWNER, begin, start


@pytest.fixture
def project(stage: Stage) -> Project:
    return Project(stage)


async def asked_in_a_first_conversation(project: Project) -> str:
    project.builder("echo x > .envrc")
    async with project.stage.open() as first:
        await tell(first, "[NEXT: builder] Go.")
        assert list(first.progress.programs) == ["1"]
    return first.id


def text_of(first: str) -> str:
    return (
        f"In conversation {first}, which works in the same folder, {ASKED} Decide there, with `bullpen chat --resume "
        f"{first}`. While this stays open, it continues by itself then; else type /continue."
    )


def other_team(project: Project, folder: Path) -> Path:
    """Return another team file with the same agents, in another place, whose reader works in this folder."""
    there = project.stage.folder / "another"
    there.mkdir()
    text = project.stage.write().read_text(encoding="utf-8").replace('cwd = "repo"', f'cwd = "{folder}"')
    (there / "team.toml").write_text(text, encoding="utf-8")
    return there / "team.toml"


async def test_a_new_conversation_waits_for_the_decision_in_the_first(project: Project) -> None:
    first = await asked_in_a_first_conversation(project)
    async with project.stage.open() as second:
        assert await tell(second, "[NEXT: reader] Read.") == ["kim: [NEXT: reader] Read."]
        assert events_so_far(second, Paused) == [Paused(kind="elsewhere", text=text_of(first))]
        assert (waiting(second), second.progress.asked_elsewhere) == (["reader"], first)
        # Going on changes nothing, nor do other words.
        await second.continue_turns()
        await second.until_quiet()
        assert (waiting(second), second.progress.asked_elsewhere) == (["reader"], first)
        assert "reader: I am reader." not in await tell(second, "Now?")
    async with project.stage.open(resume=first) as again:
        await again.keep_programs("1")
    async with project.stage.open(resume=second.id) as second:
        await second.continue_turns()
        await second.until_quiet()
        assert (waiting(second), second.progress.asked_elsewhere) == ([], "")
        assert "reader: I am reader." in await said(second)


async def test_it_continues_by_itself_when_that_is_decided(project: Project) -> None:
    first = await asked_in_a_first_conversation(project)
    async with project.stage.open() as second:
        await tell(second, "[NEXT: reader] Read.")
        async with project.stage.open(resume=first) as again:
            await again.keep_programs("1")
        while (await said(second))[-1] != "reader: I am reader.":
            await asyncio.sleep(0.01)
        assert len(events_so_far(second, Paused)) == len(events_so_far(second, Continued)) == 1


async def test_it_does_not_end_another_pause_by_itself(project: Project, clock: ManualClock) -> None:
    first = await asked_in_a_first_conversation(project)
    (project.stage.folder / "other").mkdir()
    project.stage.agent("slow", [{"say": "Begun."}, {"hang": True}], cwd="other")
    async with project.stage.open() as second:
        await second.say("[NEXT: slow] Go.")
        await until_at_work(second, "slow")
        await second.say("[NEXT: reader] Read.")
        while not second.progress.asked_elsewhere:
            await asyncio.sleep(0.01)
        await second.cancel()
        async with project.stage.open(resume=first) as again:
            await again.keep_programs("1")
        clock.advance(1.5)
        # What it stores before that is stored before this.
        await second.reorder([turn.id for turn in second.waiting])
        await second.reorder([turn.id for turn in second.waiting])
        assert (waiting(second), second.paused) == (["reader"], "Turn 1 of slow was cancelled.")


async def test_a_conversation_that_is_open_already_waits_too(project: Project) -> None:
    project.builder("echo x > .envrc")
    async with project.stage.open() as second:
        assert (await tell(second, "[NEXT: reader] Read."))[-1] == "reader: I am reader."
        first = await asked_in_a_first_conversation(project)
        assert (await tell(second, "[NEXT: reader] Again."))[-1] == "kim: [NEXT: reader] Again."
        assert second.progress.asked_elsewhere == first


@pytest.mark.parametrize(
    ("where", "is_held"),
    [
        ("repo", True),
        ("repo/sub", True),
        (".", True),
        ("link", True),
        ("worktree", True),
        ("repository", False),
        ("other", False),
    ],
)
async def test_it_is_about_the_folder_and_its_repository(where: str, is_held: bool, project: Project) -> None:
    base = project.stage.folder
    (base / "repo" / "sub").mkdir()
    (base / "link").symlink_to("repo")
    project.git("worktree", "add", "-q", str(base / "worktree"))
    for name in ("repository", "other"):
        (base / name).mkdir()
    await asked_in_a_first_conversation(project)
    async with open_team(other_team(project, base / where), db=project.stage.db) as second:
        await tell(second, "[NEXT: reader] Read.")
        assert (waiting(second) == ["reader"]) is is_held


async def test_what_was_written_in_a_workspace_of_its_own_holds_others_in_the_repository(project: Project) -> None:
    project.builder("echo x > .envrc", workspace="own")
    async with project.stage.open() as first:
        await tell(first, "[NEXT: builder] Go.")
    async with project.stage.open() as second:
        await tell(second, "[NEXT: reader] Read.")
        assert second.progress.asked_elsewhere == first.id


async def test_a_deleted_conversation_holds_nobody(project: Project) -> None:
    first = await asked_in_a_first_conversation(project)
    with SqliteStore(project.stage.db) as store:
        store.delete(first, at=1)
    async with project.stage.open() as second:
        assert (await tell(second, "[NEXT: reader] Read."))[-1] == "reader: I am reader."


def leave_to_a_dead_process(project: Project, conversation: Conversation) -> None:
    """Leave a conversation as kill -9 does: it has an owner, who has neither a process nor a lock."""
    with SqliteStore(project.stage.db) as store:
        gone = replace(this_process(), pid=2**22 + 1, start_time=1)
        assert store.claim(conversation.id, gone, is_alive=lambda _: False)


@pytest.mark.parametrize("killed_in", [(FileHistory, "finish"), (ProgramQuestions, "ask")])
async def test_what_a_killed_process_could_not_ask_is_asked_before_others_begin(
    killed_in: tuple[type[Any], str], project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def not_asked(_: object) -> None:
        pass

    def killed(*_: object) -> None:
        raise OSError("killed")

    project.builder("echo x > .envrc; echo exit > .git/hooks/pre-push")
    with monkeypatch.context() as patched:
        patched.setattr(*killed_in, killed if killed_in[1] == "finish" else not_asked)
        async with project.stage.open() as first:
            await tell(first, "[NEXT: builder] Go.")
            assert first.progress.programs == {}
    leave_to_a_dead_process(project, first)
    async with project.stage.open() as second:
        await tell(second, "[NEXT: reader] Read.")
        assert (waiting(second), second.progress.asked_elsewhere) == (["reader"], first.id)
    async with project.stage.open(resume=first.id) as again:
        await again.until_quiet()
        asked = ProgramChange(member="builder", files=(".envrc",), beside=(".git/hooks/pre-push",))
        assert again.progress.programs == {"1": asked}


async def test_a_conversation_that_cannot_be_read_holds_nobody(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await asked_in_a_first_conversation(project)
    with SqliteStore(project.stage.db) as store, store._database.writing() as db:
        db.execute("UPDATE states SET progress = '{\"programs\": 1}'")
    async with project.stage.open() as second:
        assert (await tell(second, "[NEXT: reader] Read."))[-1] == "reader: I am reader."
    assert first != second.id


def test_run_stops_with_a_sentence_and_exit_code_3(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    project.builder("echo x > .envrc")
    run = ["run", "--trust", "--db", str(project.stage.db), str(project.stage.write())]
    assert main([*run, "[NEXT: builder] Go."]) == 3
    capsys.readouterr()

    assert main([*run, "[NEXT: reader] Read."]) == 3

    said = capsys.readouterr()
    assert "Decide there, with `bullpen chat --resume " in " ".join((said.out + said.err).split())
    assert "I am reader." not in said.out


def test_folders_on_workers_are_told_apart_by_their_pools(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "c.db") as store:
        begin(store, "c")
        store.claim("c", OWNER, is_alive=lambda _: False)
        start(store)
        changes = replace(CHANGES.changes, folder="big@one:/srv/project")
        store.add_changes("c", replace(CHANGES, changes=changes), owner=OWNER)
        progress = Progress(programs={"m1-max": ProgramChange(member="max", files=("a",))})
        store.update("c", at=1, change=StateChange(progress=msgspec.to_builtins(progress)), owner=OWNER)

        def is_held(folder: str) -> bool:
            return undecided_elsewhere(store, "other", [Path(folder)], None, is_first=True) is not None

        held = ("big:/srv/project", "big@two:/srv/project/sub", "big:/srv", "big:/srv/project#ann#3")
        assert [is_held(folder) for folder in held] == [True] * 4
        free = ("small:/srv/project", "big:/srv/projects", str(tmp_path))
        assert [is_held(folder) for folder in free] == [False] * 3


async def test_a_fork_asks_only_what_the_original_still_asks_and_an_import_nothing(project: Project) -> None:
    first = await asked_in_a_first_conversation(project)
    with SqliteStore(project.stage.db) as store:
        early = fork_conversation(store, first, at=None).id
        write_export(store, first, file := io.StringIO(), "json")
    async with project.stage.open(resume=early) as fork:
        await fork.until_quiet()
        assert list(fork.progress.programs) == ["1"]
        await fork.keep_programs("1")
    async with project.stage.open(resume=first) as again:
        await again.keep_programs("1")
    with SqliteStore(project.stage.db) as store:
        late = fork_conversation(store, first, at=None).id
        imported = import_conversation(store, read_import(file.getvalue().encode()))
    for conversation_id in (early, late, imported):
        async with project.stage.open(resume=conversation_id) as copy:
            await copy.until_quiet()
            assert copy.progress.programs == {}
