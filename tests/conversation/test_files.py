"""What turns change is recorded, told to agents, taken back and brought back; a crash in the middle is completed."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.conversation.repository_stage import Repository, kinds, records, said
from tests.conversation.stage import Stage, until_at_work

from bullpen.conversation.files_in_prompts import files_note
from bullpen.errors import FilesDiffer, FilesNotKept, FolderInUse, NothingToUndo
from bullpen.files.snapshot import Snapshot
from bullpen.files.workspace import Workspace
from bullpen.store.sqlite import SqliteStore


class Project(Repository):
    """A repository with a builder that runs commands in it, and a reviewer that only reads."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.write("a.py", "one\ntwo\n")
        self.commit()
        self.write("notes.txt", "untracked\n")
        stage.people_and_agents("kim", "reviewer")
        stage.members["reviewer"]["cwd"] = "repo"

    def builder(self, commands: str, name: str = "builder") -> None:
        """Let an agent run these commands in the shared folder."""
        self.agent(name, commands, workspace="shared")


@pytest.fixture
def project(stage: Stage) -> Project:
    return Project(stage)


async def test_what_a_command_changed_is_recorded_with_its_turn(project: Project) -> None:
    project.builder("echo three >> a.py; echo new > n.py; rm notes.txt")
    before = (
        project.git("status", "--porcelain"),
        project.git("stash", "list"),
        project.git("log", "--all", "--oneline"),
    )
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: builder] Go.")
        (record,) = await records(conversation)
    assert (record.kind, record.turn_id, record.member, record.state) == ("turn", "1", "builder", "done")
    assert kinds(record) == {"a.py": "changed", "n.py": "added", "notes.txt": "deleted"}
    assert (record.changes.added, record.changes.removed) == (2, 1)
    assert "+three" in record.changes.patch
    project.write("a.py", "one\ntwo\n")
    (project.folder / "n.py").unlink()
    project.write("notes.txt", "untracked\n")
    assert before == (
        project.git("status", "--porcelain"),
        project.git("stash", "list"),
        project.git("log", "--all", "--oneline"),
    )


async def test_nothing_is_looked_at_for_an_agent_that_may_only_read(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Path] = []
    look = Workspace.snapshot

    def counted(workspace: Workspace) -> Snapshot:
        looks.append(workspace.root)
        return look(workspace)

    monkeypatch.setattr(Workspace, "snapshot", counted)
    project.stage.put_claude_on_the_path(monkeypatch)
    project.stage.agent("reviewer", [{"say": "Fine."}], agent="claude", cwd="repo")
    project.builder("true")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: reviewer] Look.")
        assert (looks, await records(conversation)) == ([], [])
        await said(conversation, "[NEXT: builder] Go.")
    assert looks == [project.folder] * 2


async def test_a_turn_that_fails_or_is_cancelled_has_its_changes_recorded(project: Project) -> None:
    project.builder("echo half >> a.py; exit 3")
    project.builder("echo more >> a.py; sleep 100", "slow")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: builder] Go.")
        await conversation.skip()
        await conversation.say("[NEXT: slow] Go.")
        await _until(lambda: (project.read("a.py") or "").endswith("more\n"))
        await conversation.cancel()
        await conversation.until_quiet()
        failed, cancelled = await records(conversation)
    assert "+half" in failed.changes.patch
    assert (cancelled.turn_id, kinds(cancelled)) == ("2", {"a.py": "changed"})


async def test_without_git_it_is_said_once_what_is_not_known(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bullpen.files.workspace.find_git", lambda: None)
    project.builder("echo three >> a.py")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: builder] Go.")
        (record,) = await records(conversation)
        assert not conversation.undecided
    assert kinds(record) == {"a.py": "changed"}
    assert record.changes.note == "Only names and sizes are known: git is not installed."


async def test_a_file_that_is_too_large_is_named_only_if_it_may_have_been_changed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bullpen.files.snapshot.MOST_FILE_BYTES", 1000)
    project.write("large.bin", "x" * 2000)
    project.builder("true")
    project.builder("echo three >> a.py", "editor")
    project.builder("echo y >> large.bin", "painter")
    async with project.stage.open() as conversation:
        for name in ("builder", "editor", "painter", "builder"):
            await said(conversation, f"[NEXT: {name}] Go.")
        made = await records(conversation)
    large = "large.bin is too large to be kept, so changes there are not known."
    assert [(one.member, one.changes.note) for one in made if one.changes.files or one.changes.note] == [
        ("editor", ""),
        ("painter", large),
    ]


async def test_what_people_change_between_turns_is_told_apart(project: Project) -> None:
    project.builder("echo more >> a.py")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: builder] Go.")
        project.write("notes.txt", "mine\n")
        await said(conversation, "[NEXT: builder] Again.")
        first, people, second = await records(conversation)
    assert [record.kind for record in (first, people, second)] == ["turn", "people", "turn"]
    assert kinds(people) == {"notes.txt": "changed"}
    assert kinds(second) == {"a.py": "changed"}
    told = project.prompt_of("builder").read_text(encoding="utf-8")
    assert "Between turns, a person or another program changed 'notes.txt'." in told


async def test_what_people_change_while_the_conversation_is_closed_is_told_apart(project: Project) -> None:
    project.builder("echo more >> a.py")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: builder] Go.")
    project.write("notes.txt", "mine\n")
    async with project.stage.open(conversation.id) as again:
        await said(again, "[NEXT: builder] Again.")
        found = await records(again)
    assert [(record.kind, kinds(record)) for record in found] == [
        ("turn", {"a.py": "changed"}),
        ("people", {"notes.txt": "changed"}),
        ("turn", {"a.py": "changed"}),
    ]


async def test_what_a_person_changed_before_an_undo_stays_theirs(project: Project) -> None:
    project.builder("echo more >> a.py")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: builder] Go.")
        project.write("notes.txt", "mine\n")
        await conversation.undo()
        _, people, undone = await records(conversation)
    assert (people.kind, kinds(people)) == ("people", {"notes.txt": "changed"})
    assert (undone.kind, kinds(undone)) == ("undo", {"a.py": "changed"})
    assert project.read("notes.txt") == "mine\n"


async def test_undo_and_redo(project: Project) -> None:
    project.builder("echo three >> a.py; echo new > n.py; rm notes.txt")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: builder] Go.")
        undone = await conversation.undo()
        assert undone is not None
        assert (undone.kind, undone.turn_id, undone.person, undone.undoes) == ("undo", "1", "kim", 1)
        assert [project.read(name) for name in ("a.py", "n.py", "notes.txt")] == ["one\ntwo\n", None, "untracked\n"]
        with pytest.raises(NothingToUndo):
            await conversation.undo()
        redone = await conversation.redo("1")
        assert (redone.kind, redone.undoes) == ("redo", undone.number)
        assert [project.read(name) for name in ("a.py", "n.py", "notes.txt")] == ["one\ntwo\nthree\n", "new\n", None]
        assert [record.kind for record in await records(conversation)] == ["turn", "undo", "redo"]
        decisions = await conversation.read(lambda store, which: store.decisions(which))
        assert [(one.person, one.choice, one.turns) for one in decisions] == [
            ("kim", "undo", ("1",)),
            ("kim", "redo", ("1",)),
        ]


async def test_an_undo_refuses_to_overwrite_what_somebody_changed_since(project: Project) -> None:
    project.builder("echo three >> a.py; echo new > n.py")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: builder] Go.")
        project.write("a.py", "mine\n")
        with pytest.raises(FilesDiffer, match=r"'a\.py'"):
            await conversation.undo()
        assert (project.read("a.py"), project.read("n.py")) == ("mine\n", "new\n")
        assert [record.kind for record in await records(conversation)] == ["turn", "people"]


async def test_nothing_is_put_back_while_an_agent_may_change_files_there(project: Project) -> None:
    project.builder("echo three >> a.py")
    project.builder("sleep 100", "slow")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: builder] Go.")
        await conversation.say("[NEXT: slow] Go.")
        await until_at_work(conversation, "slow")
        with pytest.raises(FolderInUse, match="slow may be changing files"):
            await conversation.undo()
        await conversation.cancel()
        await conversation.undo("1")
    assert project.read("a.py") == "one\ntwo\n"


async def test_a_rewind_goes_to_the_files_after_a_turn_and_can_be_undone(project: Project) -> None:
    project.builder("echo more >> a.py")
    async with project.stage.open() as conversation:
        for _ in range(3):
            await said(conversation, "[NEXT: builder] Go.")
        project.write("notes.txt", "mine\n")
        record = await conversation.rewind("1")
        assert (record.kind, record.turn_id) == ("rewind", "1")
        assert (project.read("a.py"), project.read("notes.txt")) == ("one\ntwo\nmore\n", "untracked\n")
        undone = await conversation.undo()
        assert undone is not None
        assert (undone.kind, undone.about) == ("undo", "rewind")
        assert (project.read("a.py"), project.read("notes.txt")) == ("one\ntwo\nmore\nmore\nmore\n", "mine\n")
        assert (await conversation.redo()).about == "rewind"
        assert project.read("a.py") == "one\ntwo\nmore\n"


async def test_agents_are_told_of_a_rewind_that_was_taken_back(project: Project) -> None:
    project.builder("echo more >> a.py")
    async with project.stage.open() as conversation:
        for _ in range(2):
            await said(conversation, "[NEXT: builder] Go.")
        await conversation.rewind("1")
        await said(conversation, "[NEXT: reviewer] Look.")
        await conversation.undo()
        since_look = await conversation.read(lambda store, which: files_note(store, which, 6))
        await said(conversation, "[NEXT: reviewer] Again.")
        await conversation.redo()
        brought_back = await conversation.read(lambda store, which: files_note(store, which, 8))
    first, second = project.stage.prompts("reviewer")
    assert "kim put these files back to what they were after turn 1: 'a.py'." in first
    assert "the rewind" not in second, "who is given everything again is told of nothing that is as it was"
    assert since_look == "kim took back the rewind to turn 1, which had put back 'a.py'."
    assert brought_back == "kim brought back the rewind to turn 1, which had put back 'a.py'."


async def test_a_refused_undo_names_the_turn_that_changed_the_file_since(project: Project) -> None:
    project.builder("echo more >> a.py")
    project.builder("echo other >> a.py", "bob")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: builder] Go.")
        await said(conversation, "[NEXT: bob] Go.")
        with pytest.raises(FilesDiffer, match=r"Turn 2 \(bob\) changed that: /undo 2 first, or /rewind\."):
            await conversation.undo("1")
        await conversation.undo("2")
        project.write("a.py", "mine\n")
        with pytest.raises(FilesDiffer, match=r"Keep or undo that first\."):
            await conversation.undo("1")


async def test_agents_are_told_what_was_taken_back(project: Project) -> None:
    project.builder("echo more >> a.py")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: builder] Go.")
        await conversation.undo()
        await said(conversation, "[NEXT: reviewer] Look.")
        (prompt,) = project.stage.prompts("reviewer")
        assert "kim took back what turn 1 of builder changed in 'a.py'." in prompt
        await conversation.redo()
        await said(conversation, "[NEXT: reviewer] Again.")
    assert "took back" not in project.stage.prompts("reviewer")[1]


async def test_a_diff_marker_shows_what_a_turn_changed(project: Project) -> None:
    project.builder("echo '```` and [NEXT: nobody]' >> a.py")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: builder, reviewer] Go. [DIFF]")
        await said(conversation, "[NEXT: reviewer] And this? [DIFF: 9]")
        await said(conversation, "[NEXT: reviewer] And this? [DIFF: 2]")
        await conversation.undo()
        await said(conversation, "[NEXT: reviewer] And this? [DIFF]")
        await said(conversation, "[NEXT: reviewer] And this? [DIFF: 1]")
    shown, unknown, none, nothing, gone = project.stage.prompts("reviewer")
    assert "What turn 1 of builder changed: 1 file, +1 -0." in shown
    assert "`````diff\ndiff --git a/a.py b/a.py\n" in shown
    assert "+```` and [NEXT: nobody]\n`````" in shown
    assert "there is no such turn" in unknown
    assert "but reviewer changed no files in it" in none
    assert "no turn has changed files" in nothing
    assert "It was taken back since." in gone


async def test_a_large_diff_keeps_to_the_budget_and_says_what_is_missing(project: Project) -> None:
    project.builder("seq 1 2000 > big.txt; echo small > aaa.txt; echo after > zzz.txt")
    project.stage.members["reviewer"]["max_bytes"] = 16_384
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: builder, reviewer] Go. [DIFF]")
    (prompt,) = project.stage.prompts("reviewer")
    assert len(prompt.encode()) <= 16_384
    assert "Not shown here, for lack of room: 1 file." in prompt
    assert "+small" in prompt
    assert "+after" in prompt, "a large file hides none of those after it"
    assert "'big.txt': added" in prompt


async def test_of_a_binary_file_an_agent_is_told_only_that_it_differs(project: Project) -> None:
    project.builder(r"printf '\000\001 GIT binary patch\n' > b.bin; printf 'diff\n\nGIT binary patch\nend\n' > c.txt")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: builder, reviewer] Go. [DIFF]")
    (prompt,) = project.stage.prompts("reviewer")
    assert "'b.bin': added, binary" in prompt
    assert "\nBinary files differ\ndiff --git a/c.txt b/c.txt\n" in prompt
    assert "literal" not in prompt
    assert "+GIT binary patch\n+end\n" in prompt, "only what git itself says"


class Killed(Exception):
    """The process ends here."""


@pytest.mark.parametrize("step", ["before it", "in the middle", "after it"])
async def test_an_undo_that_was_killed_is_completed_when_it_is_opened_again(
    project: Project, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    project.builder("echo three >> a.py; echo new > n.py")
    apply = Workspace.apply

    def killed(workspace: Workspace, files: tuple[object, ...], *, back: bool) -> None:
        if step != "before it":
            apply(workspace, files[: None if step == "after it" else 1], back=back)  # type: ignore[arg-type]
        raise Killed

    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: builder] Go.")
        monkeypatch.setattr(Workspace, "apply", killed)
        with pytest.raises(Killed):
            await conversation.undo()
        monkeypatch.setattr(Workspace, "apply", apply)
    async with project.stage.open(conversation.id) as again:
        assert (project.read("a.py"), project.read("n.py")) == ("one\ntwo\n", None)
        undone = (await records(again))[-1]
        assert (undone.kind, undone.state) == ("undo", "done")
        assert "bullpen stopped while it put these files back" in undone.changes.note
        await again.redo()
    assert (project.read("a.py"), project.read("n.py")) == ("one\ntwo\nthree\n", "new\n")


async def test_completing_an_undo_leaves_alone_what_somebody_changed_since(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.builder("echo three >> a.py; echo new > n.py")
    apply = Workspace.apply

    def killed(*_: object, **__: object) -> None:
        raise Killed

    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: builder] Go.")
        monkeypatch.setattr(Workspace, "apply", killed)
        with pytest.raises(Killed):
            await conversation.undo()
        monkeypatch.setattr(Workspace, "apply", apply)
    project.write("a.py", "mine\n")
    async with project.stage.open(conversation.id) as again:
        undone = (await records(again))[-1]
    assert (project.read("a.py"), project.read("n.py")) == ("mine\n", None)
    assert "so they stay as they are: a.py." in undone.changes.note


async def test_what_a_killed_turn_changed_is_found_when_it_is_opened_again(project: Project) -> None:
    project.builder("echo three >> a.py")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: builder] Go.")
        (record,) = await records(conversation)
    with SqliteStore(project.stage.db) as store:
        changes = replace(record.changes, before=record.changes.after, after="", files=(), patch="")
        store.add_changes(conversation.id, replace(record, state="begun", changes=changes))
    project.write("n.py", "new\n")
    async with project.stage.open(conversation.id) as again:
        found = (await records(again))[-1]
    assert (found.state, kinds(found)) == ("done", {"n.py": "added"})
    assert "bullpen stopped during this turn" in found.changes.note


async def test_two_at_once_in_one_folder_say_so(project: Project) -> None:
    project.builder("while [ ! -e go ]; do sleep 0.05; done; echo a >> a.py", "first")
    project.builder("while [ ! -e go ]; do sleep 0.05; done; echo b >> b.py", "second")
    async with project.stage.open() as conversation:
        await conversation.say("[NEXT: first & second] Go.")
        await until_at_work(conversation, "first", "second")
        project.write("go", "")
        await conversation.until_quiet()
        notes = [record.changes.note for record in await records(conversation)]
    assert any("worked here at the same time" in note for note in notes)


async def _until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("name", ["c.db", "odd [*] na?me.db"])
@pytest.mark.parametrize("with_git", [True, False])
async def test_our_own_files_are_not_looked_at(
    project: Project, name: str, with_git: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(project.folder / "state"))
    if not with_git:
        shutil.rmtree(project.folder / ".git")
    project.stage.db = project.folder / "data" / name
    # As a turn that runs at the same time leaves a record of its processes.
    project.builder("echo more >> a.py; mkdir -p state/bullpen/running; echo > state/bullpen/running/$$.json")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: builder] Go.")
        await said(conversation, "[NEXT: builder] Go.")
        found = await records(conversation)
        assert [(kinds(record), record.changes.note) for record in found] == [({"a.py": "changed"}, "")] * 2


async def test_files_of_a_repository_around_the_folder_are_not_taken_for_those_of_a_turn(project: Project) -> None:
    project.builder("echo made > same.txt; rm -rf .git")
    around = project.folder.parent
    project.git("init", "-q", str(around))
    (around / "same.txt").write_text("made\n", encoding="utf-8")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: builder] Go.")
        with pytest.raises(FilesNotKept, match="is not a repository of its own any more"):
            await conversation.undo("1")
    assert (around / "same.txt").read_text(encoding="utf-8") == "made\n"
