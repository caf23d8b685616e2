"""Agents in worktrees of their own: brought up to date, merged, and people are asked about conflicts."""

import asyncio
import os
import shutil
from pathlib import Path
from random import Random
from threading import Event

import pytest
from msgspec.structs import replace
from tests.conversation.repository_stage import LINES, OwnProject, kinds, line, records, said
from tests.conversation.same_line import Trials
from tests.conversation.stage import Stage, events_so_far, until_at_work

from bullpen.conversation.broadcast import Viewer
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Decided, FilesChanged, Trouble, TroubleOver
from bullpen.conversation.journal import Journal
from bullpen.conversation.own_workspaces import OwnWorkspaces
from bullpen.errors import FolderInUse, NoConflict, NothingToMerge
from bullpen.files.workspace import Workspace
from bullpen.store.sqlite import SqliteStore
from bullpen.view.changes import record_words

STAYED = "Without a reply, this stayed in ann's worktree: /merge ann brings it."


@pytest.fixture
def project(stage: Stage) -> OwnProject:
    return OwnProject(stage)


async def test_a_turn_works_in_a_worktree_and_is_merged_when_it_ends(project: OwnProject) -> None:
    project.agent(
        "ann", f"{line(2, 'of ann')}; cat notes.txt > copy.txt; pwd > pwd.txt; git status --short > status.txt"
    )
    project.write("b.txt", "changed by kim\n")
    before = project.git("status", "--porcelain"), project.git("log", "--all", "--oneline")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann] Go.")
        turn, merge = await records(conversation)
        own = project.own(conversation, "ann")
    assert (turn.kind, turn.changes.folder, merge.kind, merge.changes.folder) == (
        *("turn", str(own)),
        *("merge", str(project.folder)),
    )
    assert kinds(turn) == {"a.txt": "changed", "copy.txt": "added", "pwd.txt": "added", "status.txt": "added"}
    assert kinds(merge) == kinds(turn)
    assert (merge.turn_id, merge.member, merge.state) == ("1", "ann", "done")
    assert "+of ann" in merge.changes.patch
    assert project.read("a.txt") == LINES.replace("line 2", "of ann")
    assert project.read("copy.txt") == "untracked\n"
    assert project.read("pwd.txt") == f"{own}\n"
    assert project.read("status.txt") == " M a.txt\n M b.txt\n?? copy.txt\n?? notes.txt\n?? pwd.txt\n?? status.txt\n"
    assert len(project.worktrees()) == 1
    for name in ("copy.txt", "pwd.txt", "status.txt"):
        (project.folder / name).unlink()
    project.write("a.txt", LINES)
    assert before == (project.git("status", "--porcelain"), project.git("log", "--all", "--oneline"))


async def test_two_at_the_same_time_come_together(project: OwnProject) -> None:
    go = project.stage.folder / "go"
    wait = f"while [ ! -e {go} ]; do sleep 0.02; done"
    project.agent("ann", f"{line(1, 'of ann')}; {wait}")
    project.agent("bob", f"{line(7, 'of bob')}; {wait}")
    async with project.stage.open() as conversation:
        await conversation.say("[NEXT: ann] Go.")
        await conversation.say("[NEXT: bob] Go.")
        await until_at_work(conversation, "ann", "bob")
        go.touch()
        await conversation.until_quiet()
        assert not conversation.progress.conflicts
        kept = project.own(conversation, "ann")
        assert project.read("a.txt") == LINES.replace("line 1", "of ann").replace("line 7", "of bob")
        project.agent("ann", "true")
        await said(conversation, "[NEXT: ann] Again.")
        assert project.own(conversation, "ann") == kept
        assert project.read("a.txt", kept) == project.read("a.txt"), "what bob did is in ann's worktree"


async def test_the_next_of_a_relay_sees_what_the_one_before_it_did(project: OwnProject) -> None:
    seen = project.stage.folder / "seen"
    project.agent("ann", line(1, "of ann"))
    project.agent("bob", line(2, "of bob"))
    project.agent("reader", f"cat a.txt > {seen}", permissions="read-only")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann, bob, reader] Go.")
        assert not conversation.progress.conflicts
    expected = LINES.replace("line 1", "of ann").replace("line 2", "of bob")
    assert seen.read_text(encoding="utf-8") == expected
    assert project.read("a.txt") == expected


async def test_an_agent_in_the_shared_folder_is_not_disturbed(project: OwnProject) -> None:
    go, seen = project.stage.folder / "go", project.stage.folder / "seen"
    project.agent("ann", line(1, "of ann"))
    wait = f"while [ ! -e {go} ]; do sleep 0.02; done; cat a.txt > {seen}; {line(6, 'of bob')}"
    project.agent("bob", wait, workspace="shared")
    async with project.stage.open() as conversation:
        await conversation.say("[NEXT: bob] Go.")
        await until_at_work(conversation, "bob")
        await conversation.say("[NEXT: ann] Go.")
        while not any(
            turn.kind == "turn" and turn.member == "ann" and turn.state == "done"
            for turn in await records(conversation)
        ):
            await asyncio.sleep(0.01)
        with pytest.raises(FolderInUse):
            await conversation.merge("ann")
        go.touch()
        await conversation.until_quiet()
        found = [(record.kind, record.member) for record in await records(conversation)]
    assert seen.read_text(encoding="utf-8") == LINES, "ann's work came only when bob had ended"
    assert project.read("a.txt") == LINES.replace("line 1", "of ann").replace("line 6", "of bob")
    assert sorted(found) == [("merge", "ann"), ("turn", "ann"), ("turn", "bob")]


async def conflict(project: OwnProject, conversation: Conversation) -> str:
    """Let ann and kim change the same line, ann also another file; return the turn."""
    go = project.stage.folder / "go"
    await conversation.say("[NEXT: ann] Go.")
    await until_at_work(conversation, "ann")
    project.write("a.txt", LINES.replace("line 4", "of kim"))
    go.touch()
    await conversation.until_quiet()
    go.unlink()
    (turn,) = conversation.progress.conflicts
    return turn


def conflicting(project: OwnProject) -> None:
    go = project.stage.folder / "go"
    wait = f"while [ ! -e {go} ]; do sleep 0.02; done"
    project.agent("ann", f"{wait}; {line(4, 'of ann')}; echo new > new.txt")


async def test_nothing_of_a_conflict_is_applied_and_people_are_asked(project: OwnProject) -> None:
    conflicting(project)
    async with project.stage.open() as conversation:
        turn = await conflict(project, conversation)
        found = conversation.progress.conflicts[turn]
        own = project.own(conversation, "ann")
    assert (found.member, found.files) == ("ann", ("a.txt",))
    assert project.read("a.txt") == LINES.replace("line 4", "of kim")
    assert project.read("new.txt") is None
    assert project.read("a.txt", own) == LINES.replace("line 4", "of ann")
    async with project.stage.open(conversation.id) as again:
        assert list(again.progress.conflicts) == [turn], "it is asked again after a restart"
        with pytest.raises(NoConflict):
            await again.settle("take", "99")
        await again.settle("take")
        assert not again.progress.conflicts
        with pytest.raises(NoConflict):
            await again.settle("keep")
    assert project.read("a.txt") == LINES.replace("line 4", "of ann")
    assert project.read("new.txt") == "new\n"


async def test_the_shared_version_can_be_kept(project: OwnProject) -> None:
    conflicting(project)
    async with project.stage.open() as conversation:
        turn = await conflict(project, conversation)
        await conversation.settle("keep", turn)
        assert project.read("a.txt") == LINES.replace("line 4", "of kim")
        assert project.read("new.txt") == "new\n", "all else is brought"
        project.agent("ann", "true")
    async with project.stage.open(conversation.id) as again:
        await said(again, "[NEXT: ann] Again.")
        assert not again.progress.conflicts
        assert project.read("a.txt", project.own(again, "ann")) == LINES.replace("line 4", "of kim")
        await again.undo()
    assert project.read("new.txt") is None, "a merge can be taken back"


async def test_an_undo_settles_the_conflict_of_its_turn_and_a_redo_asks_again(project: OwnProject) -> None:
    conflicting(project)
    async with project.stage.open() as conversation:
        turn = await conflict(project, conversation)
        await conversation.undo(turn)
        assert not conversation.progress.conflicts
        (decided,) = events_so_far(conversation, Decided)
        assert (decided.turn_id, decided.choice) == (turn, "nothing is left to merge")
        assert project.read("new.txt", project.own(conversation, "ann")) is None
        with pytest.raises(NoConflict):
            await conversation.take()
        await conversation.redo()
        assert list(conversation.progress.conflicts) == [turn]
        await conversation.undo()
    async with project.stage.open(conversation.id) as again:
        await again.until_quiet()
        assert not again.progress.conflicts
        assert project.read("a.txt") == LINES.replace("line 4", "of kim")
        await again.redo()
        await again.take()
    assert project.read("a.txt") == LINES.replace("line 4", "of ann")


async def test_a_redo_brings_back_what_does_not_conflict_any_more(project: OwnProject) -> None:
    conflicting(project)
    async with project.stage.open() as conversation:
        await conflict(project, conversation)
        await conversation.undo()
        project.write("a.txt", LINES)
        await conversation.redo()
        assert not conversation.progress.conflicts
    assert (project.read("a.txt"), project.read("new.txt")) == (LINES.replace("line 4", "of ann"), "new\n")


@pytest.mark.parametrize("how", ["take", "keep", "resolve"])
async def test_who_settles_a_conflict_of_which_nothing_is_left_is_told(project: OwnProject, how: str) -> None:
    conflicting(project)
    async with project.stage.open() as conversation:
        turn = await conflict(project, conversation)
        own = project.own(conversation, "ann")
        project.git("checkout", "a.txt", folder=own)
        (own / "new.txt").unlink()
        settle = (
            conversation.let_resolve("ann")
            if how == "resolve"
            else conversation.settle("take" if how == "take" else "keep", turn)
        )
        with pytest.raises(NothingToMerge, match="did is in the shared folder, or was taken back"):
            await settle
        assert not conversation.progress.conflicts
        assert conversation.message_count == 2, "nobody is asked to resolve nothing"
    assert project.read("a.txt") == LINES.replace("line 4", "of kim")


async def test_it_can_stay_apart_and_is_merged_later(project: OwnProject) -> None:
    conflicting(project)
    async with project.stage.open() as conversation:
        turn = await conflict(project, conversation)
        await conversation.settle("apart", turn)
        assert not conversation.progress.conflicts
        assert project.read("new.txt") is None
    project.agent("ann", "cat a.txt > mine.txt")
    async with project.stage.open(conversation.id) as again:
        assert project.read("new.txt") is None, "opening it does not merge it"
        await said(again, "[NEXT: ann] Again.")
        (found,) = again.progress.conflicts.values()
        assert found.files == ("a.txt",), "its next turn merges again"
        project.write("a.txt", LINES)
        await again.merge("ann")
        assert not again.progress.conflicts
        with pytest.raises(NothingToMerge):
            await again.merge("ann")
    assert project.read("a.txt") == LINES.replace("line 4", "of ann")
    assert project.read("mine.txt") == LINES.replace("line 4", "of ann"), "it continued in its own workspace"


async def test_a_member_can_resolve_it(project: OwnProject) -> None:
    conflicting(project)
    fix = "sed -i -e '/^<<<<<<</d' -e '/^=======/d' -e '/^>>>>>>>/d' a.txt"
    project.agent("bob", fix)
    async with project.stage.open() as conversation:
        turn = await conflict(project, conversation)
        await conversation.let_resolve("bob", turn)
        await conversation.until_quiet()
        assert not conversation.progress.conflicts
        asked = (await conversation.messages(limit=2))[0].message.content
    assert asked.startswith("[NEXT: bob] Please resolve a conflict: ann (turn 1)")
    assert "- 'a.txt'" in project.prompt_of("bob").read_text(encoding="utf-8")
    assert project.read("a.txt") == LINES.replace("line 4", "of kim\nof ann")
    assert project.read("new.txt") == "new\n"


async def test_who_is_to_resolve_it_is_asked_once_also_after_a_crash(
    project: OwnProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    conflicting(project)
    fix = "sed -i -e '/^<<<<<<</d' -e '/^=======/d' -e '/^>>>>>>>/d' a.txt"
    project.agent("bob", f"{fix}; echo asked >> asked.txt", workspace="shared")

    async def killed(*_: object) -> None:
        raise RuntimeError("killed")

    async with project.stage.open() as conversation:
        await conflict(project, conversation)
        with monkeypatch.context() as patched:
            patched.setattr(Journal, "commit_message", killed)
            with pytest.raises(RuntimeError):
                await conversation.let_resolve("bob")
    assert "<<<<<<< ours" in (project.read("a.txt") or "")
    for _ in range(2):
        async with project.stage.open(conversation.id) as again:
            await again.until_quiet()
            assert not again.progress.conflicts
    assert project.read("a.txt") == LINES.replace("line 4", "of kim\nof ann")
    assert project.read("asked.txt") == "asked\n"


@pytest.mark.parametrize("workspace", ["shared", "own"])
async def test_marks_that_were_not_resolved_are_told_until_they_are_gone(project: OwnProject, workspace: str) -> None:
    conflicting(project)
    project.agent("bob", "true", workspace=workspace)
    async with project.stage.open() as conversation:
        turn = await conflict(project, conversation)
        with conversation.viewing() as viewer:
            await conversation.let_resolve("bob", turn)
            await conversation.until_quiet()
            told = await troubles(conversation, viewer)
    assert [text.split(",")[0] for text in told] == ["'a.txt' still has conflict marks"]
    async with project.stage.open(conversation.id) as again:
        with again.viewing(after=0) as viewer:
            assert await troubles(again, viewer) == told, "also after a restart"
        project.write("a.txt", LINES)
    async with project.stage.open(conversation.id) as again:
        with again.viewing(after=0) as viewer:
            assert await troubles(again, viewer) == []


@pytest.mark.parametrize("when", ["a turn", "a command"])
async def test_it_is_said_when_marks_are_gone_that_people_were_told_of(project: OwnProject, when: str) -> None:
    conflicting(project)
    project.agent("bob", "true", workspace="shared")
    project.agent("max", f"cp {project.stage.folder}/whole a.txt" if when == "a turn" else "true", workspace="shared")
    (project.stage.folder / "whole").write_text(LINES, encoding="utf-8")
    async with project.stage.open() as conversation:
        await conversation.let_resolve("bob", await conflict(project, conversation))
        await conversation.until_quiet()
        (told,) = events_so_far(conversation, Trouble)
        await conversation.rename("Marks")
        await conversation.until_quiet()
        assert not events_so_far(conversation, TroubleOver)
        if when == "a turn":
            await said(conversation, "[NEXT: max] Go.")
        else:
            project.write("a.txt", LINES)
            await conversation.rename("No marks")
            await conversation.until_quiet()
        (over,) = events_so_far(conversation, TroubleOver)
    assert over == TroubleOver(about=told.about, text="The conflict marks in 'a.txt' are gone.")
    assert told.about


async def troubles(conversation: Conversation, viewer: Viewer) -> list[str]:
    """Return what people were told that went wrong."""
    found, last = [], conversation.last_number
    if not last:
        return []
    async for numbered in viewer:
        if isinstance(numbered.event, Trouble):
            found.append(numbered.event.text)
        if numbered.number >= last:
            break
    return found


@pytest.mark.parametrize("how", ["take", "keep", "resolve"])
async def test_what_is_merged_by_a_decision_is_not_taken_for_a_persons_change(project: OwnProject, how: str) -> None:
    conflicting(project)
    project.agent("bob", "true", workspace="shared")
    async with project.stage.open() as conversation:
        turn = await conflict(project, conversation)
        if how == "resolve":
            await conversation.let_resolve("bob", turn)
        else:
            await conversation.settle("take" if how == "take" else "keep", turn)
            await conversation.say("[NEXT: bob] Go on.")
        await conversation.until_quiet()
        found = [(record.kind, sorted(kinds(record))) for record in await records(conversation)]
    assert [files for kind, files in found if kind == "people"] == [["a.txt"]], "what kim did, and nothing else"
    merged = ["new.txt"] if how == "keep" else ["a.txt", "new.txt"]
    assert [files for kind, files in found if kind == "merge"] == [merged]


async def test_what_a_person_changed_during_a_turn_stays_theirs(project: OwnProject) -> None:
    project.agent("max", f"echo more >> a.txt; echo kim > {project.folder}/kims.txt")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: max] Go.")
        found = [(record.kind, sorted(kinds(record))) for record in await records(conversation)]
    assert found == [("turn", ["a.txt"]), ("people", ["kims.txt"]), ("merge", ["a.txt"])]


async def test_what_is_not_a_text_is_put_beside_to_be_resolved(project: OwnProject) -> None:
    (project.folder / "logo").write_bytes(b"\0base")
    project.commit()
    go = project.stage.folder / "go"
    wait = f"while [ ! -e {go} ]; do sleep 0.02; done"
    project.agent("ann", f"{wait}; printf '\\0ann' > logo; rm b.txt")
    project.agent("bob", "true")
    async with project.stage.open() as conversation:
        await conversation.say("[NEXT: ann] Go.")
        await until_at_work(conversation, "ann")
        (project.folder / "logo").write_bytes(b"\0kim")
        project.write("b.txt", "of kim\n")
        go.touch()
        await conversation.until_quiet()
        await conversation.let_resolve("bob")
        await conversation.until_quiet()
    assert (project.folder / "logo").read_bytes() == b"\0kim"
    assert (project.folder / "logo.from-ann").read_bytes() == b"\0ann"
    assert project.read("b.txt") == "of kim\n"
    told = project.prompt_of("bob").read_text(encoding="utf-8")
    assert "with the ending .from-ann" in told
    assert "ann deleted these, and others changed them. Keep or delete them:\n\n- 'b.txt'" in told


async def test_a_turn_without_a_reply_leaves_its_work_where_it_is(project: OwnProject) -> None:
    project.agent("ann", f"{line(3, 'half')}; exit 3")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann] Go.")
        await conversation.skip()
        assert project.read("a.txt") == LINES
        (turn,) = await records(conversation)
        assert kinds(turn) == {"a.txt": "changed"}
        assert turn.changes.note == STAYED
        await conversation.merge("ann")
    assert project.read("a.txt") == LINES.replace("line 3", "half")


async def test_who_cancels_a_turn_is_told_at_once_what_it_left_in_its_worktree(project: OwnProject) -> None:
    began = project.stage.folder / "began"
    project.agent("ann", f"{line(3, 'half')}; touch {began}; sleep 60")
    async with project.stage.open() as conversation:
        await conversation.say("[NEXT: ann] Go.")
        while not began.exists():
            await asyncio.sleep(0.01)
        with conversation.viewing() as viewer:
            await conversation.cancel()
            told = conversation.last_number
            words = []
            async for numbered in viewer:
                if isinstance(numbered.event, FilesChanged):
                    words.append(record_words(numbered.event.record))
                if numbered.number == told:
                    break
    assert words == [f"ann changed 1 file in turn 1 (+1 −1). {STAYED}"]


async def test_nobody_else_has_changed_what_a_killed_turn_left_in_its_worktree(project: OwnProject) -> None:
    project.agent("ann", f"{line(3, 'half')}; exit 3")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann] Go.")
        (record,) = await records(conversation)
    with SqliteStore(project.stage.db) as store:
        changes = replace(record.changes, after="", files=(), patch="", note="")
        store.add_changes(conversation.id, replace(record, state="begun", changes=changes))
    async with project.stage.open(conversation.id) as again:
        found = (await records(again))[-1]
    assert kinds(found) == {"a.txt": "changed"}
    assert found.changes.note == f"bullpen stopped during this turn. {STAYED}"


async def test_undo_redo_and_rewind_are_about_the_shared_folder(project: OwnProject) -> None:
    project.agent("ann", line(1, "of ann"))
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann] Go.")
        await conversation.undo("1")
        assert project.read("a.txt") == LINES
        await conversation.redo()
        assert project.read("a.txt") == LINES.replace("line 1", "of ann")
        project.write("a.txt", "all new\n")
        await conversation.rewind("1")
        assert project.read("a.txt") == LINES.replace("line 1", "of ann")
        await conversation.undo()
        assert project.read("a.txt") == "all new\n"


async def test_without_a_commit_or_a_repository_a_turn_fails_and_says_what_to_do(
    project: OwnProject, tmp_path: Path
) -> None:
    (project.stage.folder / "plain").mkdir()
    (project.stage.folder / "empty").mkdir()
    project.git("init", "-q", folder=project.stage.folder / "empty")
    project.agent("ann", "touch made", cwd="plain")
    project.agent("bob", "touch made", cwd="empty")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann & bob] Go.")
        reasons = {ended.member: ended.reason for ended in conversation.undecided}
    assert "plain is not in a git repository. Make it one with `git init`, and commit something." in reasons["ann"]
    assert "empty has no commit yet. Commit something first." in reasons["bob"]
    assert not list(tmp_path.rglob("made"))


async def test_the_same_line_at_the_same_time_again_and_again(project: OwnProject) -> None:
    trials = Trials(project, Random(6))
    assert await trials.play(0, 6) == ""
    assert trials.counts["conflicts shown"] > 2


async def test_a_worktree_that_somebody_removed_is_made_again_with_the_work_in_it(project: OwnProject) -> None:
    conflicting(project)
    async with project.stage.open() as conversation:
        turn = await conflict(project, conversation)
        own = project.own(conversation, "ann")
        project.git("worktree", "remove", "--force", "--force", str(own))
        assert not own.exists()
        await conversation.settle("apart", turn)
        project.agent("ann", "cat a.txt > mine.txt")
    async with project.stage.open(conversation.id) as again:
        await said(again, "[NEXT: ann] Again.")
        assert project.read("mine.txt", own) == LINES.replace("line 4", "of ann")
        assert len(project.worktrees()) == 1
        shutil.rmtree(own)
        await again.settle("take")
    assert project.read("a.txt") == LINES.replace("line 4", "of ann"), "it was known what was in it"
    assert project.read("mine.txt") == LINES.replace("line 4", "of ann")


async def test_what_a_process_left_undone_is_merged_when_it_is_opened_again(
    project: OwnProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.agent("ann", line(1, "of ann"))

    async def killed(*_: object) -> None:
        pass

    with monkeypatch.context() as patched:
        patched.setattr(OwnWorkspaces, "merge", killed)
        async with project.stage.open() as conversation:
            await said(conversation, "[NEXT: ann] Go.")
    assert project.read("a.txt") == LINES
    async with project.stage.open(conversation.id) as again:
        assert project.read("a.txt") == LINES.replace("line 1", "of ann")
        assert [record.kind for record in await records(again)] == ["turn", "merge"]


async def test_it_is_merged_also_if_the_process_that_completes_it_is_killed_as_well(
    project: OwnProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.agent("ann", line(1, "of ann"))

    async def killed(*_: object) -> None:
        pass

    with monkeypatch.context() as patched:
        patched.setattr(OwnWorkspaces, "merge", killed)
        patched.setattr(OwnWorkspaces, "seen", lambda *_: None)
        async with project.stage.open() as conversation:
            await said(conversation, "[NEXT: ann] Go.")
        async with project.stage.open(conversation.id):
            pass
    assert project.read("a.txt") == LINES
    async with project.stage.open(conversation.id):
        assert project.read("a.txt") == LINES.replace("line 1", "of ann")


async def test_nested_repositories_links_and_deleted_files_come_along(project: OwnProject) -> None:
    (project.folder / "nested").mkdir()
    project.git("init", "-q", folder=project.folder / "nested")
    project.write("nested/inner.txt", "inner\n")
    project.git("add", "-A", folder=project.folder / "nested")
    project.git("commit", "-qm", "inner", folder=project.folder / "nested")
    project.git("add", "nested")
    project.write(".gitignore", "*.log\n")
    project.write("big.log", "ignored\n")
    (project.folder / "link").symlink_to("a.txt")
    project.commit()
    head = project.git("rev-parse", "HEAD", folder=project.folder / "nested")
    project.agent(
        "ann",
        "ls > seen.txt; echo more >> nested/inner.txt; rm b.txt; ln -sf notes.txt link; echo x > x.log; chmod +x a.txt",
    )
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann] Go.")
        assert [ended.reason for ended in conversation.undecided] == []
        assert not conversation.progress.conflicts
    assert (project.read("seen.txt") or "").split() == ["a.txt", "b.txt", "link", "nested", "notes.txt", "seen.txt"]
    assert project.read("nested/inner.txt") == "inner\nmore\n"
    assert project.read("b.txt") is None
    assert (project.folder / "link").readlink() == Path("notes.txt")
    assert os.access(project.folder / "a.txt", os.X_OK)
    assert project.read("x.log") is None, "what git ignores stays in the worktree"
    assert project.read("big.log") == "ignored\n"
    assert project.git("rev-parse", "HEAD", folder=project.folder / "nested") == head


async def test_no_hook_or_filter_of_the_repository_is_run(project: OwnProject) -> None:
    ran = project.stage.folder / "ran"
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        hook = project.folder / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\necho {name} >> {ran}\n", encoding="utf-8")
        hook.chmod(0o755)
    for kind in ("clean", "smudge"):
        project.git("config", f"filter.f.{kind}", f"sh -c 'echo {kind} >> {ran}; cat'")
    project.write(".gitattributes", "*.txt filter=f\n")
    project.agent("ann", "echo more >> b.txt")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann] Go.")
        ran.unlink(missing_ok=True)
        project.write("a.txt", "new\n")
        await said(conversation, "[NEXT: ann] Go.")
    assert project.read("b.txt") == "b\nmore\nmore\n"
    assert not ran.exists()


async def test_commits_of_people_arrive_and_those_of_the_agent_stay(project: OwnProject) -> None:
    project.agent("ann", "git log --format=%s > log.txt")
    names = "git -c user.name=ann -c user.email=a@example.org"
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann] Go.")
        assert project.read("log.txt") == "all\n"
        project.commit()
        await said(conversation, "[NEXT: ann] Go.")
        assert project.read("log.txt") == "all\nall\n", "its worktree is at the person's commit"
    project.agent("ann", f"echo mine > mine.txt; git add mine.txt; {names} commit -qm mine")
    async with project.stage.open(conversation.id) as again:
        await said(again, "[NEXT: ann] Go.")
        await said(again, "[NEXT: ann] Go.")
        own = project.own(again, "ann")
    assert project.read("mine.txt") == "mine\n"
    assert project.git("log", "--format=%s", folder=own).splitlines()[0] == "mine"
    assert project.git("log", "--format=%s") == "all\nall\n"


async def test_a_turn_that_is_cancelled_while_its_worktree_is_made(
    project: OwnProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.agent("ann", line(1, "of ann"))
    fill, begun, go = Workspace.fill, Event(), Event()

    def slow(workspace: Workspace, tree: str) -> None:
        begun.set()
        go.wait()
        fill(workspace, tree)

    monkeypatch.setattr(Workspace, "fill", slow)
    async with project.stage.open() as conversation:
        await conversation.say("[NEXT: ann] Go.")
        await asyncio.to_thread(begun.wait)
        await conversation.cancel()
        await conversation.retry()
        go.set()
        await conversation.until_quiet()
        assert not conversation.undecided
    assert project.read("a.txt") == LINES.replace("line 1", "of ann")
    assert len(project.worktrees()) == 1


async def test_a_turn_that_waits_for_a_merge_can_be_cancelled_without_it(project: OwnProject) -> None:
    go = project.stage.folder / "go"
    project.agent("ann", line(1, "of ann"))
    project.agent("bob", f"while [ ! -e {go} ]; do sleep 0.02; done", workspace="shared")
    async with project.stage.open() as conversation:
        await conversation.say("[NEXT: bob] Go.")
        await until_at_work(conversation, "bob")
        await conversation.say("[NEXT: ann, reader] Go.")
        while not any(running.turn.member == "reader" for running in conversation.running.values()):
            await asyncio.sleep(0.01)
        (waiting,) = (turn for turn, running in conversation.running.items() if running.turn.member == "reader")
        await conversation.cancel(waiting)
        go.touch()
        await conversation.continue_turns()
        await conversation.until_quiet()
        assert [record.kind for record in await records(conversation)].count("merge") == 1
    assert project.read("a.txt") == LINES.replace("line 1", "of ann")


async def test_a_folder_that_git_ignores_has_no_worktree(project: OwnProject) -> None:
    project.write(".gitignore", "build\n")
    (project.folder / "build").mkdir()
    project.write("build/x", "x\n")
    project.agent("ann", "echo more >> x", cwd="repo/build")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann] Go.")
        (ended,) = conversation.undecided
    assert "git ignores" in ended.reason
    assert project.read("build/x") == "x\n"
    assert project.worktrees() == []


async def test_an_agent_works_at_the_same_place_of_its_worktree(project: OwnProject) -> None:
    (project.folder / "deep" / "er").mkdir(parents=True)
    project.write("deep/er/x", "x\n")
    project.agent("ann", "pwd > x", cwd="repo/deep/er")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann] Go.")
        assert project.read("deep/er/x") == f"{project.own(conversation, 'ann') / 'deep' / 'er'}\n"
