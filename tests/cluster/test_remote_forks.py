"""Forks with files of conversations whose members work on workers: the files are in a worktree on the worker."""

import asyncio
import json
import time
from pathlib import Path

import pytest
from tests.cluster.files_stage import FilesStage, opened, until_there
from tests.cluster.forking_process import STEPS, fork_there
from tests.cluster.processes import Processes, Started
from tests.cluster.serving import start_node

from bullpen.cli import main
from bullpen.errors import BullpenError, NothingToUndo
from bullpen.exchange.forking import UNFINISHED, Fork
from bullpen.files.own_workspace import own_workspaces
from bullpen.store.postgres.store import PostgresStore
from bullpen.view.listing import delete

COUNTS = "n=$(cat n.txt 2> /dev/null || echo 0); echo $((n + 1)) > n.txt; pwd"


class Forks(FilesStage):
    """A worker with a repository in which ann writes the number of her turn into a file, and bob reads it."""

    def __init__(self, folder: Path, url: str, processes: Processes) -> None:
        super().__init__(folder, url, processes)
        self.team = folder / "team.toml"
        self.checks = ""
        self.members: dict[str, dict[str, object]] = {}
        self.agent("ann", COUNTS)
        self.agent("bob", "cat n.txt; pwd", permissions="read-only")

    def agent(self, name: str, script: str, **keys: object) -> None:
        """Let an agent run a script in each of its turns."""
        command = ["sh", "-c", f"cat > /dev/null; {script}"]
        self.commands.append(command)
        given = {"name": name, "pool": "gpu-box", "cwd": "project", "permissions": "edit", "command": command}
        self.members[name] = given | keys
        lines = ['name = "stage"', "[[member]]", 'name = "kim"']
        for member in self.members.values():
            lines += ["[[member]]", *(f"{key} = {json.dumps(value)}" for key, value in member.items())]
        self.team.write_text("\n".join([*lines, self.checks]), encoding="utf-8")

    async def worker(self, name: str = "box", **others: object) -> Started:
        """Start a worker, and wait until it is there."""
        self.write_file(name=name, permissions="edit", **others)
        home = {} if name == "box" else {"BULLPEN_HOME": str(self.file.parent / name)}
        started = self.start_worker(**home)
        await until_there(self.url)
        return started

    async def talk(self, *names: str, resume: str | None = None) -> str:
        """Let members take turns, and return the conversation."""
        async with opened(self.url, self.team, resume) as seen:
            for name in names:
                await seen.talk(f"[NEXT: {name}] Go.")
            assert seen.troubles == []
            return seen.conversation.id

    async def fork(self, conversation_id: str, at: int | None = None) -> Fork:
        return await fork_there(self.url, conversation_id, at)

    def read(self, name: str = "n.txt", folder: Path | None = None) -> str | None:
        file = (folder or self.folder) / name
        return file.read_text() if file.exists() else None

    def last_words(self, conversation_id: str) -> str:
        with PostgresStore(self.url) as store:
            return store.messages(conversation_id)[-1].message.content

    def ids(self) -> set[str]:
        with PostgresStore(self.url) as store:
            return {one.id for one in store.conversations()}

    def delete(self, conversation_id: str) -> None:
        with PostgresStore(self.url) as store:
            delete(store, conversation_id, at=round(time.time() * 1000))


def places(fork: Fork) -> list[Path]:
    """Return where the files of a fork are on its worker."""
    assert all(folder.startswith("gpu-box@box:") for folder in fork.folders)
    return [Path(folder.partition(":")[2]) for folder in fork.folders]


@pytest.fixture
def forks(tmp_path: Path, url: str, processes: Processes) -> Forks:
    return Forks(tmp_path, url, processes)


async def test_agents_of_a_fork_work_on_the_worker_with_the_files_of_that_moment(forks: Forks) -> None:
    (forks.folder / "notes.txt").write_text("not committed\n")
    await forks.worker()
    first = await forks.talk("ann", "ann", "ann")
    (forks.folder / "notes.txt").write_text("changed later\n")

    fork = await forks.fork(first, at=4)

    (folder,) = places(fork)
    assert folder.parent == forks.home / "worktrees" / fork.id
    assert (forks.read(folder=folder), forks.read("notes.txt", folder)) == ("2\n", "not committed\n")
    assert f"- gpu-box@box:{forks.folder} is here: {fork.folders[0]}" in forks.last_words(fork.id)
    await forks.talk("ann", "bob", resume=fork.id)
    assert forks.last_words(fork.id) == f"3\n{folder}"
    assert (forks.read(folder=folder), forks.read()) == ("3\n", "3\n")
    await forks.talk("ann", resume=fork.id)
    assert (forks.read(folder=folder), forks.read()) == ("4\n", "3\n")
    record = forks.records(fork.id)[-1]
    assert record.changes.folder == fork.folders[0]
    assert "-3\n+4" in record.changes.patch


async def test_an_undo_in_a_fork_also_of_earlier_turns_changes_only_its_own_files(forks: Forks) -> None:
    await forks.worker()
    first = await forks.talk("ann", "ann")
    fork = await forks.fork(first)
    (folder,) = places(fork)
    async with opened(forks.url, forks.team, fork.id) as seen:
        await seen.talk("[NEXT: ann] Go.")
        await seen.conversation.undo()
        assert forks.read(folder=folder) == "2\n"
        await seen.conversation.undo("2")
        assert forks.read(folder=folder) == "1\n"
        await seen.conversation.rewind("2")
        assert forks.read(folder=folder) == "2\n"
        await seen.conversation.undo()
    assert (forks.read(folder=folder), forks.read()) == ("1\n", "2\n")

    second = await forks.fork(fork.id)
    async with opened(forks.url, forks.team, second.id) as seen:
        await seen.conversation.undo("1")
    assert [forks.read(folder=one) for one in (*places(second), folder)] == [None, "1\n"]
    assert forks.read() == "2\n"


async def test_members_of_a_fork_with_workspaces_of_their_own_and_checks(forks: Forks) -> None:
    command = ["sh", "-c", "cat n.txt; pwd"]
    forks.checks = f'[[check]]\nname = "reads"\ncommand = {json.dumps(command)}\ncwd = "project"'
    forks.agent("ann", COUNTS)
    forks.agent("lea", COUNTS, workspace="own")
    await forks.worker(checks=[command])
    first = await forks.talk("lea")
    fork = await forks.fork(first)
    (folder,) = places(fork)

    await forks.talk("lea", "ann", resume=fork.id)

    assert (forks.read(folder=folder), forks.read()) == ("3\n", "1\n")
    own = forks.home / "worktrees" / fork.id / f"{fork.id}.lea"
    of_lea, of_ann = forks.results(fork.id)[-2:]
    assert [of_lea.output, of_ann.output] == [f"2\n{own}\n", f"3\n{folder}\n"]
    assert forks.records(first)[-1].changes.folder == f"gpu-box@box:{forks.folder}"


async def test_a_fork_never_changes_to_another_worker_and_waits_for_its_own(forks: Forks) -> None:
    box = await forks.worker()
    fork = await forks.fork(await forks.talk("ann"))
    box.stop()
    await forks.worker("other")
    async with opened(forks.url, forks.team, fork.id) as seen:
        away = "box, which has the files of this conversation in gpu-box, is away. "
        for name in ("ann", "bob"):
            await seen.conversation.say(f"[NEXT: {name}] Go.")
        while not any(away in told for told in [*seen.troubles, *seen.notices]):
            await asyncio.sleep(0.01)
        forks.write_file(name="box", permissions="edit")
        forks.start_worker()
        await seen.conversation.until_quiet()
    with PostgresStore(forks.url) as store:
        said = [one.message.content for one in store.messages(fork.id)[-2:]]
    assert all(words.endswith(str(places(fork)[0])) for words in said)
    assert (forks.read(folder=places(fork)[0]), forks.read()) == ("2\n", "1\n")


async def test_while_the_worker_is_away_it_is_refused_and_nothing_is_written(forks: Forks) -> None:
    box = await forks.worker()
    first = await forks.talk("ann")
    box.stop()
    await forks.worker("other")

    with pytest.raises(BullpenError, match=r"cannot be forked: The worker box of the pool gpu-box.* is away\."):
        await forks.fork(first)

    assert forks.ids() == {first}
    assert forks.worktrees() == []


async def test_what_cannot_be_forked_is_refused_in_a_sentence(forks: Forks) -> None:
    box = await forks.worker()
    asked = await forks.talk("kim")
    with pytest.raises(BullpenError, match="so there are no files to fork"):
        await forks.fork(asked)
    first = await forks.talk("ann")
    box.stop()
    forks.write_file(name="box", permissions="read-only")
    box = forks.start_worker()
    await until_there(forks.url)
    with pytest.raises(BullpenError, match="cannot be forked: The worker box does not do this"):
        await forks.fork(first)
    assert forks.ids() == {asked, first}
    assert forks.worktrees() == []


async def test_of_two_workers_the_one_is_forked_that_was_used_then(forks: Forks) -> None:
    box = await forks.worker()
    first = await forks.talk("ann")
    box.stop()
    other = await forks.worker("other")
    async with opened(forks.url, forks.team, first) as seen:
        await seen.talk("[NEXT: ann] Go.")
    assert forks.records(first)[-1].changes.folder.startswith("gpu-box@other:")
    await forks.worker()
    await until_there(forks.url, 2)

    early, late = await forks.fork(first, at=2), await forks.fork(first)

    assert places(early)
    assert [folder.partition(":")[0] for folder in late.folders] == ["gpu-box@other"]
    # As after the turn on the other worker, which could be taken back now.
    (forks.folder / "n.txt").write_text("1\n")
    async with opened(forks.url, forks.team, late.id) as seen:
        with pytest.raises(NothingToUndo):
            await seen.conversation.undo("1")
    assert forks.read() == "1\n"
    other.stop()


async def test_a_fork_whose_files_were_removed_runs_nothing_in_those_of_the_other_conversation(forks: Forks) -> None:
    await forks.worker()
    fork = await forks.fork(await forks.talk("ann"))
    for own in own_workspaces(forks.home, fork.id):
        own.remove()
    async with opened(forks.url, forks.team, fork.id) as seen:
        for name in ("ann", "bob"):
            await seen.talk(f"[NEXT: {name}] Go.")
        reasons = [ended.reason for ended in seen.conversation.undecided]
    assert len(reasons) == 2
    assert all("that this conversation was forked with are not there" in reason for reason in reasons)
    assert forks.read() == "1\n"


async def test_killed_at_any_step_nobody_works_in_the_other_conversations_files(
    forks: Forks, processes: Processes
) -> None:
    worker = await forks.worker()
    first = await forks.talk("ann", "ann")
    for step in STEPS:
        node = processes.start("tests.cluster.forking_process", forks.url, first, "2", step)
        assert node.line() == "forking"
        node.wait()
        (half,) = forks.ids() - {first}
        with PostgresStore(forks.url) as store:
            stored = store.conversation(half)
        assert stored.paused == UNFINISHED, step
        if stored.messages and step != "while it is made":
            async with opened(forks.url, forks.team, half) as seen:
                await seen.talk("[NEXT: ann] Go.")
                await seen.conversation.continue_turns()
                await seen.conversation.until_quiet()
        assert forks.read() == "2\n", step
        forks.delete(half)
    used = [path.name for path in (forks.home / "worktrees").glob("*/*") if forks.read(folder=path) == "2\n"]
    assert len(used) == 1, "of that which was made, in which somebody worked"
    worker.stop()
    await forks.worker()
    while forks.worktrees() != used:
        await asyncio.sleep(0.01)


async def test_a_deleted_fork_is_removed_from_its_worker_but_for_work_that_is_nowhere_else(forks: Forks) -> None:
    worker = await forks.worker()
    first = await forks.talk("ann", "ann")
    unused, used, kept = [await forks.fork(first) for _ in range(3)]
    await forks.talk("ann", resume=used.id)
    worker.stop()
    for one in (first, unused.id, used.id):
        forks.delete(one)

    await forks.worker()
    names = sorted(places(one)[0].name for one in (used, kept))
    while forks.worktrees() != names:
        await asyncio.sleep(0.01)

    assert forks.read(folder=places(used)[0]) == "3\n"
    async with opened(forks.url, forks.team, kept.id) as seen:
        await seen.conversation.undo("2")
        await seen.conversation.undo("1")
    assert forks.read(folder=places(kept)[0]) is None
    assert forks.read() == "2\n"


async def test_a_node_forks_with_files_and_so_does_a_shell(
    forks: Forks, processes: Processes, capsys: pytest.CaptureFixture[str]
) -> None:
    await forks.worker()
    first = await forks.talk("ann", "ann")
    node = start_node(processes, forks.url, "one")
    async with node.client() as client:
        answer = await client.post(f"/api/conversations/{first}/fork", json={"at": 2, "with_files": True})
        assert answer.status_code == 201, answer.text
    words = ("sessions", "fork", first, "--at", "2", "--with-files", "--db", forks.url)
    assert await asyncio.to_thread(main, [*words]) == 0
    printed = capsys.readouterr().out
    made = forks.ids() - {first, answer.json()["id"]}
    assert all(f"Read and continue it at a node of the cluster, at /c/{one}" in printed for one in made)
    for one in forks.ids() - {first}:
        (own,) = own_workspaces(forks.home, one)
        assert forks.read(folder=own.path) == "1\n"
        assert one not in made or f"Its files are in gpu-box@box:{own.path}" in printed
