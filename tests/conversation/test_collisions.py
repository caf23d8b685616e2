"""Files that turns at the same time in one folder both changed are told at once, and both versions are kept."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conversation.repository_stage import LINES, OwnProject, records, said
from tests.conversation.stage import Script, Stage, events_so_far

from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import FilesChanged
from bullpen.errors import FolderInUse, NoConflict, NothingToUndo
from bullpen.file_changes import ChangeRecord
from bullpen.files.snapshot import Snapshot
from bullpen.files.workspace import Workspace
from bullpen.view.changes import changes_of, record_words


class Together:
    """Agents that are asked together, and wait for each other: a test says when each may do its next step."""

    def __init__(self, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        self.project = OwnProject(stage)
        self.stage = stage
        stage.put_claude_on_the_path(monkeypatch)

    def command(self, name: str, *steps: str) -> None:
        """Add a program that tells nothing of its tools."""
        waits = "; ".join(f"{self._wait(name, number)}; {step}" for number, step in enumerate(steps))
        self.project.agent(name, f"{waits}; {self._wait(name, len(steps))}", workspace="shared")

    def claude(self, name: str, *tools: tuple[str, str, str]) -> None:
        """Add an agent that tells its tools: each with its name, the file it names, and what it does."""
        steps: Script = []
        for number, (tool, path, command) in enumerate(tools):
            given = {"command": command} if tool == "Bash" else {"file_path": str(self.project.folder / path)}
            steps += [self._reads(name, number), {"tool": {"name": tool, "input": given, "runs": command}}]
        script = [*steps, self._reads(name, len(tools)), {"say": "Done."}]
        self.stage.agent(name, script, agent="claude", permissions="edit", cwd="repo")

    def _reads(self, name: str, number: int) -> dict[str, Any]:
        given = {"file_path": str(self.project.folder / "a.txt")}
        return {"tool": {"name": "Read", "input": given, "runs": self._wait(name, number)}}

    def go(self, name: str, number: int) -> None:
        """Let an agent do its next step, or end after the last one."""
        self._file(name, number).touch()

    async def until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            await asyncio.sleep(0.01)

    async def until_read(self, name: str, text: str) -> None:
        await self.until(lambda: self.project.read(name) == text)

    def _wait(self, name: str, number: int) -> str:
        return f"while [ ! -e '{self._file(name, number)}' ]; do sleep 0.01; done"

    def _file(self, name: str, number: int) -> Path:
        return self.stage.folder / f"{name} may do {number}"


@pytest.fixture
def together(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Together:
    return Together(stage, monkeypatch)


def told(conversation: Conversation) -> list[ChangeRecord]:
    found = [event.record for event in events_so_far(conversation, FilesChanged)]
    return [record for record in found if record.kind == "collision"]


async def until_looked(conversation: Conversation) -> None:
    """Wait until there was a look at everything that is there now."""
    (watch,) = conversation._files._watches.values()
    await watch.look()


async def until_told(conversation: Conversation, count: int) -> None:
    while len(told(conversation)) < count:
        await until_looked(conversation)


async def until_at_work(conversation: Conversation, count: int) -> None:
    while len(conversation._files._of_turns) < count:
        await asyncio.sleep(0.01)


async def test_an_overwritten_file_is_told_at_once_and_either_version_can_be_taken(together: Together) -> None:
    together.claude("ann", ("Write", "b.txt", "echo ann > b.txt"))
    together.claude("bob", ("Write", "b.txt", "echo bob > b.txt"))
    async with together.stage.open() as conversation:
        await conversation.say("[NEXT: ann & bob] Go.")
        await until_at_work(conversation, 2)
        together.go("ann", 0)
        await together.until_read("b.txt", "ann\n")
        await until_looked(conversation)
        assert told(conversation) == []
        together.go("bob", 0)
        await together.until(lambda: bool(told(conversation)))
        (collision,) = told(conversation)
        assert len(conversation.running) == 2, "it is told while they work"
        with pytest.raises(FolderInUse):
            await conversation.take(collision.other_turn)
        together.go("ann", 1)
        together.go("bob", 1)
        await conversation.until_quiet()
        assert (collision.other, collision.member, collision.is_sure) == ("ann", "bob", True)
        assert [file.path for file in collision.changes.files] == ["b.txt"]
        assert record_words(collision) == (
            f"Collision: ann (turn {collision.other_turn}) and bob (turn {collision.turn_id}) both changed 'b.txt'. "
            f"Both versions are kept: /take {collision.other_turn} or /take {collision.turn_id} (+1 −1)."
        )
        stored = next(record for record in await records(conversation) if record.kind == "collision")
        assert "-ann\n+bob\n" in stored.changes.patch
        await conversation.take(collision.other_turn)
        assert together.project.read("b.txt") == "ann\n"
        await conversation.take(collision.turn_id)
        assert together.project.read("b.txt") == "bob\n"
        with pytest.raises(NothingToUndo):
            await conversation.take(collision.turn_id)
        await conversation.undo()
        assert together.project.read("b.txt") == "ann\n"
        with pytest.raises(NoConflict):
            await conversation.take("99")
        summed = changes_of(await records(conversation))
        assert {group.key for group in summed.members} == {"ann", "bob", "kim"}
        assert "collision · ann and bob" in [group.title for group in summed.turns]
    async with together.stage.open(resume=conversation.id) as conversation:
        together.project.agent("ann", "true", workspace="shared")
        await conversation.take(collision.turn_id)
        assert together.project.read("b.txt") == "bob\n", "the versions are still there in another process"


async def test_those_who_are_asked_next_are_told_of_it(together: Together) -> None:
    together.command("ann", "echo ann > b.txt")
    together.command("bob", "echo bob > b.txt")
    async with together.stage.open() as conversation:
        await conversation.say("[NEXT: ann & bob] Go.")
        await until_at_work(conversation, 2)
        for name in ("ann", "bob"):
            together.go(name, 0)
            await together.until_read("b.txt", f"{name}\n")
            await until_looked(conversation)
        for name in ("ann", "bob"):
            together.go(name, 1)
        await conversation.until_quiet()
        await said(conversation, "[NEXT: ann] Again.")
        prompt = together.project.prompt_of("ann").read_text(encoding="utf-8")
        assert "may have both changed 'b.txt' at the same time" in prompt


async def test_disjoint_files_are_not_told(together: Together) -> None:
    together.claude("ann", ("Write", "n.txt", "echo 1 > n.txt"), ("Edit", "n.txt", "echo 2 > n.txt"))
    together.claude("bob", ("Bash", "", "echo 1 > m.txt"), ("Bash", "", "echo 2 > m.txt"))
    async with together.stage.open() as conversation:
        await conversation.say("[NEXT: ann & bob] Go.")
        await until_at_work(conversation, 2)
        for number in (0, 1):
            for name in ("ann", "bob"):
                together.go(name, number)
            await together.until_read("n.txt", f"{number + 1}\n")
            await together.until_read("m.txt", f"{number + 1}\n")
            await until_looked(conversation)
        for name in ("ann", "bob"):
            together.go(name, 2)
        await conversation.until_quiet()
        assert told(conversation) == []
        assert together.project.read("a.txt") == LINES


async def test_of_three_agents_each_overwriting_is_told(together: Together) -> None:
    names = ("ann", "bob", "cat")
    for name in names:
        together.claude(name, ("Write", "b.txt", f"echo {name} > b.txt"))
    async with together.stage.open() as conversation:
        await conversation.say("[NEXT: ann & bob & cat] Go.")
        await until_at_work(conversation, 3)
        for number, name in enumerate(names):
            together.go(name, 0)
            await together.until_read("b.txt", f"{name}\n")
            await until_looked(conversation)
            await until_told(conversation, number)
        for name in names:
            together.go(name, 1)
        await conversation.until_quiet()
        assert [(one.other, one.member) for one in told(conversation)] == [("ann", "bob"), ("bob", "cat")]
        turn = next(one.other_turn for one in told(conversation))
        await conversation.take(turn)
        assert together.project.read("b.txt") == "ann\n"


async def test_the_same_contents_twice_are_not_told(together: Together) -> None:
    together.claude("ann", ("Write", "b.txt", "echo same > b.txt"))
    together.claude("bob", ("Write", "b.txt", "echo same > b.txt"))
    async with together.stage.open() as conversation:
        await conversation.say("[NEXT: ann & bob] Go.")
        await until_at_work(conversation, 2)
        for name in ("ann", "bob"):
            together.go(name, 0)
            await together.until_read("b.txt", "same\n")
            await until_looked(conversation)
            together.go(name, 1)
        await conversation.until_quiet()
        assert told(conversation) == []


async def test_programs_that_tell_nothing_may_have_collided_if_something_is_lost(together: Together) -> None:
    together.command("ann", "echo ann >> b.txt", "echo ann > n.txt")
    together.command("bob", "echo bob >> b.txt", "echo bob > n.txt")
    async with together.stage.open() as conversation:
        await conversation.say("[NEXT: ann & bob] Go.")
        await until_at_work(conversation, 2)
        for file, texts in {"b.txt": ("b\nann\n", "b\nann\nbob\n"), "n.txt": ("ann\n", "bob\n")}.items():
            for name, text in zip(("ann", "bob"), texts, strict=True):
                together.go(name, 0 if file == "b.txt" else 1)
                await together.until_read(file, text)
                await until_looked(conversation)
        await until_told(conversation, 1)
        (collision,) = told(conversation)
        for name in ("ann", "bob"):
            together.go(name, 2)
        await conversation.until_quiet()
    assert [file.path for file in collision.changes.files] == ["n.txt"], "nothing of b.txt is lost"
    assert not collision.is_sure
    assert "may both have changed 'n.txt'" in record_words(collision)
    assert "which of them wrote which version is not known" in record_words(collision)


async def test_what_is_changed_after_the_other_one_has_ended_counts(together: Together) -> None:
    together.claude("ann", ("Write", "b.txt", "echo ann > b.txt"))
    together.claude("bob", ("Bash", "", "echo 1 > n.txt"), ("Bash", "", "echo bob > b.txt"))
    async with together.stage.open() as conversation:
        await conversation.say("[NEXT: ann & bob] Go.")
        await until_at_work(conversation, 2)
        together.go("ann", 0)
        await together.until_read("b.txt", "ann\n")
        await until_looked(conversation)
        together.go("ann", 1)
        # What it changed is known, too, so bob is alone there.
        await together.until(lambda: bool(events_so_far(conversation, FilesChanged)))
        together.go("bob", 0)
        together.go("bob", 1)
        await together.until(lambda: bool(told(conversation)))
        together.go("bob", 2)
        await conversation.until_quiet()
        (collision,) = told(conversation)
    assert (collision.other, collision.member, collision.is_sure) == ("ann", "bob", True)


async def test_what_a_person_changes_meanwhile_is_not_a_collision(together: Together) -> None:
    together.claude("ann", ("Write", "b.txt", "echo ann > b.txt"))
    together.claude("bob", ("Write", "n.txt", "echo bob > n.txt"))
    async with together.stage.open() as conversation:
        await conversation.say("[NEXT: ann & bob] Go.")
        await until_at_work(conversation, 2)
        together.go("ann", 0)
        await together.until_read("b.txt", "ann\n")
        await until_looked(conversation)
        together.project.write("b.txt", "kim\n")
        await until_looked(conversation)
        for name, number in (("bob", 0), ("ann", 1), ("bob", 1)):
            together.go(name, number)
        await conversation.until_quiet()
        assert told(conversation) == []


async def test_one_agent_alone_is_looked_at_only_before_and_after(
    together: Together, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    look = Workspace.snapshot

    def counted(workspace: Workspace) -> Snapshot:
        looks.append(str(workspace.root))
        return look(workspace)

    monkeypatch.setattr(Workspace, "snapshot", counted)
    together.claude("ann", ("Bash", "", "echo 1 > n.txt"), ("Bash", "", "echo 2 > n.txt"))
    for number in range(3):
        together.go("ann", number)
    async with together.stage.open() as conversation:
        await said(conversation, "[NEXT: ann] Go.")
    assert len(looks) == 2
