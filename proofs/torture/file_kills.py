"""Killed while files are put back and merged: `python -m proofs.torture.file_kills PART OF SEED MISTAKE FOLDER`.

Prints what it found as JSON. Each story is done in a child process that dies at one step. Then the conversation is
opened again, in some trials by another child that dies, too; and it is compared what is there with what must be.
PART of OF: which of the steps are tried, so that several processes can share them, or few of them be tried. With a
mistake, the steps of one story are tried in any order, until one is wrong.
"""

import asyncio
import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from proofs.torture.file_mistakes import MISTAKES, plant

if __name__ == "__main__":
    # Before anything imports the module that has the mistake.
    plant(sys.argv[4], Path(sys.argv[5]))

from proofs.torture.file_checks import Wrong, check
from proofs.torture.file_steps import at_each, dying_at
from proofs.torture.file_stories import STORIES, Scene, Story, delete_all
from tests.conversation.killed_merges import wait_for_its_children

from bullpen.store.sqlite import SqliteStore

KILLED_TWICE = 0.25
"""How often the process that opens it again is killed as well."""
MOST_STEPS_OF_OPENING = 120


class Kills:
    """Tries steps of all stories, and keeps what was wrong."""

    def __init__(self, folder: Path, part: int, of: int, seed: int) -> None:
        self.folder, self.part, self.of = folder, part, of
        self.random = random.Random(f"{seed} {part}")
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []

    def run(self, mistake: str) -> dict[str, Any]:
        names = [MISTAKES[mistake].story] if mistake else list(STORIES)
        for number, name in enumerate(names):
            self._play(name, STORIES[name], Scene(self.folder / f"story-{number}"), number, is_enough=bool(mistake))
        return {"counts": self.counts, "problems": self.problems}

    def _play(self, name: str, story: Story, scene: Scene, number: int, *, is_enough: bool) -> None:
        """Try the steps of a story; if one problem is enough, in any order, until there is one."""
        asyncio.run(story.prepare(scene))
        scene.copy()
        steps = self._counted(story, scene)
        scene.wanted = scene.files()
        self.counts["steps in all stories"] += steps
        tried = list(range((self.part + number) % self.of, steps, self.of))
        self.random.shuffle(tried)
        for step in tried:
            if is_enough and self.problems:
                return
            scene.reset()
            where = f"{name}, step {step} of {steps}"
            try:
                self._kill(story, scene, step)
                check(story, scene, self.counts)
            except Wrong as wrong:
                self.problems.append(f"{where}: {wrong}")
            except Exception as error:
                self.problems.append(f"{where}: {type(error).__name__}: {error}")

    def _counted(self, story: Story, scene: Scene) -> int:
        """Do it once without dying, and return how many steps that takes."""
        reader, writer = os.pipe()

        def act() -> None:
            count = 0

            def step(*_: object) -> None:
                nonlocal count
                count += 1

            at_each(step, SqliteStore)
            _do(story, scene)
            os.write(writer, str(count).encode())

        assert _forked(act) == (0, "")
        os.close(writer)
        with os.fdopen(reader) as told:
            return int(told.read())

    def _kill(self, story: Story, scene: Scene, step: int) -> None:
        chance = random.Random(self.random.random())

        def act() -> None:
            at_each(dying_at(step, chance), SqliteStore)
            _do(story, scene)

        self._count("kills", _forked(act))
        if story.kind != "delete" and self.random.random() < KILLED_TWICE:
            last = self.random.randrange(MOST_STEPS_OF_OPENING)

            wait_for_its_children(scene.stage.db, scene.conversation_id)

            def opened() -> None:
                at_each(dying_at(last, chance), SqliteStore)
                asyncio.run(_opened(scene))

            self._count("kills while it was opened again", _forked(opened))

    def _count(self, what: str, ended: tuple[int, str]) -> None:
        code, error = ended
        if code == -signal.SIGKILL:
            self.counts[what] += 1
        elif code:
            raise Wrong(f"before it was killed: {error}")


def _do(story: Story, scene: Scene) -> None:
    if story.kind == "delete":
        delete_all(scene)
    else:
        asyncio.run(_acted(story, scene))


async def _acted(story: Story, scene: Scene) -> None:
    async with scene.stage.open(scene.conversation_id) as conversation:
        await story.act(conversation)


async def _opened(scene: Scene) -> None:
    async with scene.stage.open(scene.conversation_id) as conversation:
        await conversation.until_quiet()


def _forked(work: Callable[[], None]) -> tuple[int, str]:
    """Do something in a child, and return its exit code, and the error with which it ended."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setsid()
            work()
            code = 0
        except BaseException as error:
            os.write(writer, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(code)
    os.close(writer)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    # What it has started may hold the other end.
    os.set_blocking(reader, False)
    with os.fdopen(reader, "rb") as told:
        return code, (told.read() or b"").decode()


if __name__ == "__main__":
    part_, of_, seed_, mistake_, folder_ = sys.argv[1:]
    print(json.dumps(Kills(Path(folder_), int(part_), int(of_), int(seed_)).run(mistake_)))
