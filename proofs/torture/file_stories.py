"""What is done with files in a process that is killed: what it begins with, what is done, and what must come of it."""

import os
import shutil
import stat
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from tests.conversation.repository_stage import OwnProject, said
from tests.conversation.stage import Stage, until_at_work

from bullpen.conversation.conversation import Conversation
from bullpen.store.sqlite import SqliteStore
from bullpen.view.listing import delete

State = dict[str, tuple[str, bytes]]
"""By path: whether it is a file, one that can be executed, or a link; and its contents."""
Kind = Literal["put", "settle", "turn", "delete"]

LINES = "".join(f"line {number}\n" for number in range(20))
FILES = {
    "a.txt": LINES,
    "b.txt": "b\n" * 50,
    "gone.txt": "gone\n",
    "folder/deep/c.txt": "c\n",
    "tool.sh": "#!/bin/sh\n",
}
PICTURE = bytes(range(256)) * 300
WORK = """sed -i 's/^line 3$/of the agent/' a.txt; mkdir -p new/er; echo one > new/er/one.txt; rm -f gone.txt
if [ -e b.txt ]; then mv b.txt moved.txt; fi; chmod +x tool.sh; cp {here}/picture picture; ln -sfn a.txt link
rm -rf folder; echo file > folder
"""
WORK_AGAIN = "sed -i 's/^line 5$/again/' a.txt; rm -f link; mkdir link; echo x > link/x; echo two >> new/er/one.txt\n"
FIX = "sed -i -e '/^<<<<<<</d' -e '/^=======/d' -e '/^>>>>>>>/d' a.txt"


class Scene(OwnProject):
    """A repository and a conversation, which can be put back to what they were before something was done."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        stage = Stage(folder / "live")
        stage.folder.mkdir()
        super().__init__(stage)
        here = stage.folder
        (here / "picture").write_bytes(PICTURE)
        for name, text in FILES.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            self.write(name, text)
        # What a template would bring is nothing to us, and copied each time.
        shutil.rmtree(self.folder / ".git" / "hooks")
        self.commit()
        self.write("untracked.txt", "untracked\n")
        for name, workspace in (("builder", "shared"), ("ann", "own")):
            self.agent(name, f"sh {here}/work", workspace=workspace)
        self.agent("fixer", FIX, workspace="shared")
        self.let_work(WORK.format(here=here))
        self.conversation_id = ""
        self.before: State = {}
        self.wanted: State = {}
        self.untouched = b""
        self.records = 0
        self.kept = folder / "kept"

    def let_work(self, commands: str) -> None:
        (self.stage.folder / "work").write_text(commands, encoding="utf-8")

    def keep(self, conversation: Conversation, records: int) -> None:
        """Take what is now for the beginning."""
        self.conversation_id, self.records, self.before = conversation.id, records, self.files()

    def copy(self) -> None:
        """Keep everything as it is, to begin with it again and again."""
        self.untouched = self.repository()
        shutil.copytree(self.stage.folder, self.kept, symlinks=True)

    def reset(self) -> None:
        """Put everything back to the beginning, at the same place."""
        shutil.rmtree(self.stage.folder)
        shutil.copytree(self.kept, self.stage.folder, symlinks=True)

    def files(self, root: Path | None = None) -> State:
        """Return all files of the shared folder, also those that git ignores."""
        found: State = {}
        root = root or self.folder
        for where, folders, names in os.walk(root):
            if where == str(root):
                folders[:] = [name for name in folders if name != ".git"]
                names = [name for name in names if name != ".git"]
            links = [name for name in folders if (Path(where) / name).is_symlink()]
            for name in (*names, *links):
                path = Path(where) / name
                found[str(path.relative_to(root))] = _state(path)
        return found

    def repository(self) -> bytes:
        """Return what the person's repository has that is not about worktrees: index, HEAD, branches, stash."""
        git = self.folder / ".git"
        names = ("index", "HEAD", "packed-refs", "refs/stash", "logs/HEAD")
        parts = [(git / name).read_bytes() for name in names if (git / name).exists()]
        return b"\0".join([*parts, self.git("for-each-ref").encode()])

    def locks(self) -> list[str]:
        """Return the files with which git, or we, would keep others out of the person's repository."""
        locks = (self.folder / ".git").rglob("*.lock")
        return sorted(str(path.relative_to(self.folder)) for path in locks)


def _state(path: Path) -> tuple[str, bytes]:
    if path.is_symlink():
        return "link", os.fsencode(path.readlink())
    return "executable" if path.stat().st_mode & stat.S_IXUSR else "file", path.read_bytes()


async def _undo(conversation: Conversation) -> None:
    await conversation.undo()


async def _redo(conversation: Conversation) -> None:
    await conversation.redo()


class Story(Struct, frozen=True):
    """Something that is done with files."""

    kind: Kind
    prepare: Callable[[Scene], Coroutine[Any, Any, None]]
    act: Callable[[Conversation], Coroutine[Any, Any, None]]
    back: Callable[[Conversation], Coroutine[Any, Any, None]] = _undo
    """Takes it back; it may have to be called more than once."""
    has_a_turn: bool = False
    """Whether an agent takes a turn, which may be cut off in the middle."""


async def _one_turn(scene: Scene) -> None:
    async with scene.stage.open() as conversation:
        await said(conversation, "[NEXT: builder] Go.")
        scene.keep(conversation, 1)


async def _one_turn_undone(scene: Scene) -> None:
    async with scene.stage.open() as conversation:
        await said(conversation, "[NEXT: builder] Go.")
        await conversation.undo()
        scene.keep(conversation, 2)


async def _two_turns(scene: Scene) -> None:
    async with scene.stage.open() as conversation:
        await said(conversation, "[NEXT: builder] Go.")
        scene.write("untracked.txt", "of kim\n")
        scene.let_work(WORK_AGAIN)
        await said(conversation, "[NEXT: builder] Again.")
        scene.write("kim.txt", "of kim\n")
        scene.keep(conversation, 3)


async def _nothing(scene: Scene) -> None:
    async with scene.stage.open() as conversation:
        await said(conversation, "[NEXT: reader] Hello.")
        _let_kim_write(scene)
        scene.keep(conversation, 0)


async def _worktree(scene: Scene) -> None:
    scene.let_work("echo first > first.txt\n")
    async with scene.stage.open() as conversation:
        await said(conversation, "[NEXT: ann] Hello.")
        _let_kim_write(scene)
        scene.let_work(WORK.format(here=scene.stage.folder))
        scene.keep(conversation, 2)


def _let_kim_write(scene: Scene) -> None:
    scene.write("a.txt", LINES.replace("line 15", "of kim"))
    scene.write("untracked.txt", "of kim\n")


async def _conflict(scene: Scene) -> None:
    here = scene.stage.folder
    scene.let_work(f"while [ ! -e {here}/go ]; do sleep 0.01; done\n{WORK.format(here=here)}")
    async with scene.stage.open() as conversation:
        await conversation.say("[NEXT: ann] Go.")
        await until_at_work(conversation, "ann")
        scene.write("a.txt", LINES.replace("line 3", "of kim"))
        scene.write("untracked.txt", "of kim\n")
        (here / "go").touch()
        await conversation.until_quiet()
        assert conversation.progress.conflicts
        scene.keep(conversation, 1)


async def _rewind(conversation: Conversation) -> None:
    await conversation.rewind("1")


async def _let_builder(conversation: Conversation) -> None:
    await said(conversation, "[NEXT: builder] Go.")


async def _let_ann(conversation: Conversation) -> None:
    await said(conversation, "[NEXT: ann] Go.")


async def _take(conversation: Conversation) -> None:
    await conversation.settle("take")


async def _keep(conversation: Conversation) -> None:
    await conversation.settle("keep")


async def _apart(conversation: Conversation) -> None:
    await conversation.settle("apart")


async def _resolve(conversation: Conversation) -> None:
    await conversation.let_resolve("fixer")
    await conversation.until_quiet()


async def _never(_: Conversation) -> None:
    raise AssertionError("a conversation is not open when it is deleted")


def delete_all(scene: Scene, *, force: bool = False) -> None:
    """Delete the conversation, with all worktrees."""
    with SqliteStore(scene.stage.db) as store:
        delete(store, scene.conversation_id, at=1, force=force)


STORIES = {
    "a turn in the shared folder": Story("turn", _nothing, _let_builder),
    "undo": Story("put", _one_turn, _undo, _redo),
    "redo": Story("put", _one_turn_undone, _redo),
    "rewind": Story("put", _two_turns, _rewind),
    "a first turn in a worktree, and its merge": Story("turn", _nothing, _let_ann),
    "a later turn in a worktree, and its merge": Story("turn", _worktree, _let_ann),
    "taking the agent's version": Story("settle", _conflict, _take),
    "keeping the shared version": Story("settle", _conflict, _keep),
    "leaving it apart": Story("settle", _conflict, _apart),
    "letting an agent resolve it": Story("settle", _conflict, _resolve, has_a_turn=True),
    "deleting the conversation": Story("delete", _worktree, _never),
}
