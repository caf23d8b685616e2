"""Several processes, and processes that are killed: nothing acknowledged is lost or doubled, and one of many wins."""

import os
import pickle
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeVar

import pytest
from tests import forked
from tests.store.children import Child, in_parallel

from bullpen.errors import StoreReadOnly, TurnConflict
from bullpen.store.base import Owner, TurnEnd
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import GIVEN, MAX, OWNER, alive, asked, begin, dead, said

KILLS = 16
MOST_LINES = 12
NOBODY = 65534

Result = TypeVar("Result")


def talk(path: Path, life: int, acknowledge: int) -> None:
    """Take over a conversation, say and answer without end, and tell of everything that is stored."""
    owner = Owner(token=f"life {life}", pid=os.getpid(), start_time=life, boot_id="")
    with SqliteStore(path) as store:
        assert store.claim("c", owner, is_alive=dead)
        interrupted = store.recover("c", at=0, owner=owner)
        os.write(acknowledge, b"".join(f"interrupted {turn.id}\n".encode() for turn in interrupted))
        for number in range(10_000):
            question, answer = f"{life}-{number}-question", f"{life}-{number}-answer"
            store.append("c", said(question, "why? " * number), turns=[asked(question)], owner=owner)
            os.write(acknowledge, f"said {question}\n".encode())
            store.start_turn("c", f"{question}-max", owner=owner, given=GIVEN, at=0)
            os.write(acknowledge, f"started {question}-max\n".encode())
            end = TurnEnd(turn_id=f"{question}-max", state="done", at=0)
            store.append("c", said(answer, "because", speaker=MAX), finishes=end, owner=owner)
            os.write(acknowledge, f"said {answer}\n".encode())


def test_nothing_acknowledged_is_lost_or_doubled_by_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "bullpen.db"
    chance = random.Random(4)
    with SqliteStore(path) as store:
        begin(store, "c")
    acknowledged: list[str] = []
    for life in range(KILLS):
        child = Child(partial(talk, path, life))
        written = child.kill(after_lines=chance.randrange(MOST_LINES))
        acknowledged += written.decode().splitlines()

    told = {kind: [line.split(" ")[1] for line in acknowledged if line.startswith(kind)] for kind in KINDS}
    with SqliteStore(path) as store:
        stored = [one.message.id for one in store.messages("c")]
        states = {turn.id: turn.state for turn in store.turns("c")}
        last = {turn.id for turn in store.running("c")}
        findings = store.fsck()
    assert len(told["said"]) > KILLS // 2
    assert findings == []
    assert len(set(stored)) == len(stored)
    assert [message for message in stored if message in set(told["said"])] == told["said"]
    # What was stored and not told of is the one thing that each process was doing when it was killed.
    assert len(stored) - len(told["said"]) <= KILLS
    assert all(states[turn] in ("done", "interrupted", "running") for turn in told["started"])
    assert len(set(told["interrupted"])) == len(told["interrupted"])
    interrupted = {turn for turn, state in states.items() if state == "interrupted"}
    # The last process may have been killed before it told of those that it found.
    assert set(told["interrupted"]) <= interrupted
    assert interrupted.isdisjoint(last)
    assert len(last) <= 1


KINDS = ("said", "started", "interrupted")


def test_one_of_many_processes_takes_a_turn(tmp_path: Path) -> None:
    path = tmp_path / "bullpen.db"
    turns = [asked("m1", f"agent{number}") for number in range(20)]
    with SqliteStore(path) as store:
        begin(store, "c")
        store.claim("c", OWNER, is_alive=alive)
        store.append("c", said("m1"), turns=turns, owner=OWNER)

    def take_all(_: int) -> list[str]:
        taken = []
        with SqliteStore(path) as store:
            for turn in turns:
                with suppress(TurnConflict):
                    taken.append(store.start_turn("c", turn.id, owner=OWNER, given=GIVEN, at=1).id)
        return taken

    taken = in_parallel(take_all, 3)

    assert sorted(chain(*taken)) == sorted(turn.id for turn in turns)


def test_one_of_many_processes_becomes_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "bullpen.db"
    with SqliteStore(path) as store:
        begin(store, "c")

    def claim(number: int) -> bool:
        owner = Owner(token=str(number), pid=os.getpid(), start_time=0, boot_id="")
        with SqliteStore(path) as store:
            return store.claim("c", owner, is_alive=alive)

    claims = in_parallel(claim, 4)

    assert sorted(claims) == [False, False, False, True]
    with SqliteStore(path) as store:
        owner = store.conversation("c").owner
    assert owner is not None
    assert claims[int(owner.token)]


def test_many_processes_make_one_file_and_write_into_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "bullpen.db"

    def write(number: int) -> None:
        with SqliteStore(path) as store:
            begin(store, f"c{number}")
            for sequence in range(10):
                store.append(f"c{number}", said(f"m{sequence}"))

    in_parallel(write, 4)

    with SqliteStore(path) as store:
        assert sorted((one.id, one.messages) for one in store.conversations()) == [(f"c{n}", 10) for n in range(4)]
        assert store.fsck() == []
    assert [file.name for file in path.parent.iterdir()] == ["bullpen.db"]


def test_many_processes_talk_in_one_conversation(tmp_path: Path) -> None:
    path = tmp_path / "bullpen.db"
    with SqliteStore(path) as store:
        begin(store, "c")

    def talk_along(number: int) -> list[int]:
        with SqliteStore(path) as store:
            return [store.append("c", said(f"{number}-{count}")).sequence for count in range(10)]

    sequences = in_parallel(talk_along, 3)

    assert sorted(chain(*sequences)) == list(range(1, 31))
    with SqliteStore(path) as store:
        assert store.fsck() == []


@pytest.mark.parametrize("stays_open", [True, False])
def test_a_second_store_in_a_process_does_not_give_up_the_locks_of_the_first(tmp_path: Path, stays_open: bool) -> None:
    """Closing a file ends all locks of a process on it; the next to come removed the log that we still wrote to."""
    path = tmp_path / "bullpen.db"
    with SqliteStore(path) as first:
        begin(first, "c")
        second = SqliteStore(path)
        if not stays_open:
            second.close()

        elsewhere(path, "store.append('c', said('elsewhere'))")
        first.append("c", said("acknowledged"))

        assert elsewhere(path, "print(*[one.message.id for one in store.messages('c')])") == "elsewhere acknowledged"
        second.close()


def elsewhere(path: Path, statement: str) -> str:
    """Run a statement in a new process: a forked one would believe that our connections are its own."""
    program = f"""
import sys
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import said
with SqliteStore(sys.argv[1]) as store: {statement}
"""
    command = [sys.executable, "-c", program, str(path)]
    return str(forked.run(command, check=True, capture_output=True, text=True).stdout).strip()


def test_a_viewer_reads_while_another_writes(tmp_path: Path) -> None:
    path = tmp_path / "bullpen.db"
    with SqliteStore(path) as writer, SqliteStore(path) as viewer:
        begin(writer, "c")
        for number in range(5):
            writer.append("c", said(f"m{number}"))
            assert [one.message.id for one in viewer.messages("c", limit=1)] == [f"m{number}"]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Give a folder that ordinary users can get into."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def as_nobody(function: Callable[[], Result]) -> Result:
    """Return what a function returns in a process that may do no more than an ordinary user."""

    def run(pipe: int) -> None:
        if os.getuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        os.write(pipe, pickle.dumps(function()))

    result: Result = pickle.loads(Child(run).wait())
    return result


@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o000, 0o755), (0o666, 0o000)])
def test_a_file_that_we_may_not_read(open_folder: Path, file_mode: int, folder_mode: int) -> None:
    path = open_folder / "data" / "bullpen.db"
    with SqliteStore(path) as store:
        begin(store, "c")
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    path.chmod(file_mode)
    path.parent.chmod(folder_mode)

    refusal = as_nobody(partial(refused, path))

    path.parent.chmod(0o700)
    assert refusal is not None
    assert refusal.startswith(f"{path} ")
    assert "--db" in refusal
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert [file.name for file in path.parent.iterdir()] == ["bullpen.db"]


@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o444, 0o777), (0o666, 0o555)])
def test_a_file_that_we_may_only_read(open_folder: Path, file_mode: int, folder_mode: int) -> None:
    path = open_folder / "data" / "bullpen.db"
    with SqliteStore(path) as store:
        begin(store, "c")
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    path.chmod(file_mode)
    path.parent.chmod(folder_mode)

    seen, told = as_nobody(partial(read_and_written, path))

    path.parent.chmod(0o700)
    assert seen == ["c"]
    assert told.startswith(f"{path} ")
    assert "--db" in told
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert [file.name for file in path.parent.iterdir()] == ["bullpen.db"]


def read_and_written(path: Path) -> tuple[list[str], str]:
    with SqliteStore(path) as store:
        seen = [conversation.id for conversation in store.conversations()]
        try:
            begin(store, "d")
        except StoreReadOnly as error:
            return seen, str(error)
    return seen, ""


def test_a_folder_in_which_nothing_can_be_made(open_folder: Path) -> None:
    open_folder.chmod(0o555)

    refusal = as_nobody(partial(refused, open_folder / "data" / "bullpen.db"))

    assert refusal is not None
    assert "cannot be created (Permission denied)" in refusal
    shutil.rmtree(open_folder / "data", ignore_errors=True)


def refused(path: Path) -> str | None:
    try:
        SqliteStore(path).close()
    except StoreReadOnly as error:
        return str(error)
    return None
