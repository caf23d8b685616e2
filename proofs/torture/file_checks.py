"""What must hold when a process was killed that worked with files, and the conversation is opened again."""

import asyncio
from collections import Counter

from proofs.torture.file_stories import Scene, State, Story, delete_all
from tests.conversation.killed_merges import wait_for_its_children
from tests.conversation.repository_stage import records

from bullpen.conversation.conversation import Conversation
from bullpen.errors import NothingToUndo
from bullpen.file_changes import ChangeRecord
from bullpen.files.own_paths import FOLDER
from bullpen.store.base import Store, Turn
from bullpen.store.sqlite import SqliteStore

TEMPORARY = ".bullpen-"


class Wrong(Exception):
    """A promise is broken, in a sentence."""


def check(story: Story, scene: Scene, counts: Counter[str]) -> None:
    """Open it again, and check everything; raises Wrong."""
    if story.kind in ("put", "settle") and not story.has_a_turn:
        _check_whole_files(scene)
    if story.kind == "delete":
        _expect(scene.files(), scene.before, "after deleting")
    else:
        wait_for_its_children(scene.stage.db, scene.conversation_id)
        asyncio.run(_opened(story, scene, counts))
    _check_repository(scene)
    _check_deleted(scene)


def _check_whole_files(scene: Scene) -> None:
    """Check that each file is as before or as wanted before anything is completed: nothing is half written."""
    now = scene.files()
    for path in sorted({*now, *scene.before, *scene.wanted}):
        is_temporary = path.rpartition("/")[2].startswith(TEMPORARY)
        if now.get(path) not in (scene.before.get(path), scene.wanted.get(path)) and not is_temporary:
            raise Wrong(f"right after the kill, {path} is neither as before nor as wanted")


async def _opened(story: Story, scene: Scene, counts: Counter[str]) -> None:
    async with scene.stage.open(scene.conversation_id) as conversation:
        await conversation.until_quiet()
        found = await records(conversation)
        if begun := [record.kind for record in found if record.state == "begun"]:
            raise Wrong(f"records are not completed: {begun}")
        if story.kind == "turn":
            await _check_turn(story, scene, conversation, counts)
        else:
            await _check_put(story, scene, conversation, found[scene.records :], counts)
        _check_temporary(scene)


async def _check_put(
    story: Story, scene: Scene, conversation: Conversation, new: list[ChangeRecord], counts: Counter[str]
) -> None:
    """Check that files are as before or as wanted, that it is said which, and that both ways are open."""
    is_asked = bool(conversation.progress.conflicts)
    is_done = not is_asked if story.kind == "settle" else any(record.changes.files for record in new)
    counts["as wanted when it was opened again" if is_done else "as before when it was opened again"] += 1
    await _retried(conversation)
    said = f"it is said that it was {'' if is_done else 'not '}done"
    _expect(scene.files(), scene.wanted if is_done else scene.before, said)
    if not is_done:
        await story.act(conversation)
        _expect(scene.files(), scene.wanted, "done again")
    while scene.files() != scene.before:
        try:
            await story.back(conversation)
        except NothingToUndo:
            break
    _expect(scene.files(), scene.before, "when all is taken back")


async def _retried(conversation: Conversation) -> int:
    """Let turns be done again that did not come to their end, and return how many."""
    undecided = list(conversation.undecided)
    for ended in undecided:
        await conversation.retry(ended.id)
    await conversation.continue_turns()
    await conversation.until_quiet()
    return len(undecided)


async def _check_turn(story: Story, scene: Scene, conversation: Conversation, counts: Counter[str]) -> None:
    """Bring the turn to its end, as a person would, and check that all of it is there, and can be taken back."""
    turns = await conversation.read(_turns)
    counts["turns that were done again"] += await _retried(conversation)
    if conversation.undecided:
        raise Wrong(f"the turn cannot be done again: {conversation.undecided[0].reason}")
    if len(turns) < 2:
        await story.act(conversation)
    _expect(scene.files(), scene.wanted, "when the turn is done")
    while scene.files() != scene.before:
        try:
            await story.back(conversation)
        except NothingToUndo:
            break
    _expect(scene.files(), scene.before, "when all is taken back")


def _turns(store: Store, conversation_id: str) -> list[Turn]:
    return store.turns(conversation_id)


def _expect(found: State, wanted: State, when: str) -> None:
    wrong = [path for path in sorted(found.keys() | wanted.keys()) if found.get(path) != wanted.get(path)]
    if wrong:
        told = [f"{path} ({_told(found, path)}, not {_told(wanted, path)})" for path in wrong[:5]]
        raise Wrong(f"{when}, these are wrong: {', '.join(told)}")


def _told(state: State, path: str) -> str:
    if path not in state:
        return "missing"
    kind, data = state[path]
    return f"{kind} of {len(data)} bytes"


def _check_temporary(scene: Scene) -> None:
    files = scene.stage.db.with_name(f"{scene.stage.db.name}-files")
    for root in (scene.folder, files / FOLDER):
        if left := [str(path) for path in root.rglob(f"{TEMPORARY}*")]:
            raise Wrong(f"left behind: {left}")


def _check_repository(scene: Scene) -> None:
    """Check that the person's repository is as before, but for the worktree of one agent."""
    if scene.repository() != scene.untouched:
        raise Wrong("HEAD, index, branches or stash of the person's repository are not as before")
    if locks := scene.locks():
        raise Wrong(f"locks are left: {locks}")
    known = scene.folder / ".git" / "worktrees"
    if known.is_dir() and len(left := sorted(one.name for one in known.iterdir())) > 1:
        raise Wrong(f"worktrees are left: {left}")


def _check_deleted(scene: Scene) -> None:
    """Delete the conversation, and check that nothing of its worktrees is left."""
    with SqliteStore(scene.stage.db) as store:
        if findings := store.fsck():
            raise Wrong(f"fsck: {findings[0].text}")
        is_there = any(one.id == scene.conversation_id for one in store.conversations())
    if is_there:
        delete_all(scene, force=True)
    if left := scene.worktrees():
        raise Wrong(f"the repository knows worktrees of a conversation that is deleted: {left}")
    files = scene.stage.db.with_name(f"{scene.stage.db.name}-files") / FOLDER
    if left := [str(path) for path in files.rglob("*")] if files.exists() else []:
        raise Wrong(f"of worktrees of a conversation that is deleted, this is left: {left[:3]}")
