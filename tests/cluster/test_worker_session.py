"""A worker decides in which session an order runs: by the file, under its lock, and never by the node's word alone."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bullpen.agents.held_session import WantedSession
from bullpen.agents.registry import agent_spec
from bullpen.agents.runner import Reply
from bullpen.agents.session_file import mark_of
from bullpen.agents.session_lock import SessionLock
from bullpen.agents.spec import Emit
from bullpen.cluster.orders import SessionOrder, Work
from bullpen.cluster.worker_session import WorkerSession
from bullpen.context.prompt import AssemblerOutput
from bullpen.errors import AgentFailed, NotAllowedHere, SessionLost
from bullpen.memory import FileMark, SessionUse
from bullpen.turn_events import Failed, Started, TextDelta, Usage

ID, FRESH = "11111111-2222-4333-8444-555555555501", "11111111-2222-4333-8444-555555555502"
FIRST, MORE = b'{"turn":1}\n', b'{"turn":2}\n'
CHANGED = "the file of its session is not what its last turn left"
CRASHED = AgentFailed("claude", Failed(kind="crashed", message="x"))
Act = Callable[[Emit], None]


class Machine:
    """A worker's machine with one session of claude, and a program that does what a test says."""

    def __init__(self, folder: Path) -> None:
        sessions = agent_spec("claude").sessions
        assert sessions is not None
        self.sessions = sessions
        self.environment = {"CLAUDE_CONFIG_DIR": str(folder)}
        self.file = folder / "projects" / "p" / f"{ID}.jsonl"
        self.file.parent.mkdir(parents=True)
        self.file.write_bytes(FIRST)
        self.mark = mark_of(self.file)
        self.ran: list[tuple[str, str, str]] = []
        """What was run: its prompt, and how it got which session."""
        self.told: list[str] = []

    def session(self, worker: str = "box", **others: Any) -> WorkerSession:
        values: dict[str, Any] = {
            "use": SessionUse(origin="resumed", id=ID, turns=1),
            "wanted": WantedSession(id=ID, mark=self.mark),
            "worker": "box",
            "fresh": SessionUse(origin="rebuilt", id=FRESH),
            "prompt": "all",
        }
        order = SessionOrder(**{**values, **others})
        return WorkerSession(self.sessions, self.environment, order, worker, lambda _: None)

    def run(self, session: WorkerSession, *acts: Act) -> Reply:
        """Run an order; each time the program is started, it does the next of the acts, or adds to the session."""
        work, left = Work(member="max", prompt="news", idle_timeout=1, total_timeout=1), list(acts)

        async def run(given: AssemblerOutput, *, session: SessionUse | None, emit: Emit) -> Reply:
            assert session is not None
            self.ran.append((given.prompt, session.origin, session.id))
            if left:
                left.pop(0)(emit)
            else:
                with self.file.with_stem(session.id).open("ab") as file:
                    file.write(MORE)
            return Reply(text="Yes.", usage=Usage(), started=Started(session_id=session.id), command=(), seconds=0)

        return asyncio.run(session.run(work, run, self.told.append))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Machine(tmp_path)


def lost(_: Emit) -> None:
    raise SessionLost("claude", Failed(kind="session_lost", message="No conversation found."))


def test_it_is_continued_and_what_it_left_is_told(machine: Machine) -> None:
    reply = machine.run(machine.session())

    assert machine.ran == [("news", "resumed", ID)]
    assert machine.told == []
    assert reply.session is not None
    assert (reply.session.id, reply.session.worker, reply.session.file) == (ID, "box", mark_of(machine.file))
    lock = SessionLock(ID)
    assert lock.hold()
    lock.release()


@pytest.mark.parametrize(
    ("worker", "spoil", "reason"),
    [
        ("box", lambda machine: machine.file.unlink(), "the file of its session is gone"),
        ("other", lambda machine: machine.file.unlink(), "its session is on another worker, box"),
        ("box", lambda machine: machine.file.write_bytes(FIRST + MORE), "somebody else continued its session"),
        (
            "box",
            lambda machine: machine.file.write_bytes(MORE),
            "the file of its session is not what its last turn left",
        ),
    ],
    ids=["gone", "elsewhere", "longer", "changed"],
)
def test_it_begins_again_with_all_that_was_said_and_says_why(
    worker: str, spoil: Callable[[Machine], None], reason: str, machine: Machine
) -> None:
    spoil(machine)

    reply = machine.run(machine.session(worker))

    assert machine.ran == [("all", "rebuilt", FRESH)]
    assert machine.told == [reason]
    assert reply.session is not None
    assert reply.session.id == FRESH


def test_while_another_turn_runs_in_it_it_is_not_continued(machine: Machine) -> None:
    other = SessionLock(ID)
    assert other.hold()

    machine.run(machine.session())

    assert machine.told == ["another turn runs in its session"]
    other.release()


def test_what_the_cli_does_not_find_begins_again_at_once(machine: Machine) -> None:
    machine.run(machine.session(), lost)

    assert machine.ran == [("news", "resumed", ID), ("all", "rebuilt", FRESH)]
    assert machine.told == ["No conversation found"]


def test_what_has_done_something_does_not_begin_again(machine: Machine) -> None:
    def half(emit: Emit) -> None:
        emit(TextDelta("half"))
        machine.file.write_bytes(FIRST + MORE)
        lost(emit)

    with pytest.raises(SessionLost):
        machine.run(machine.session(), half)

    assert machine.ran == [("news", "resumed", ID)]
    assert machine.file.read_bytes() == FIRST


@pytest.mark.parametrize("error", [asyncio.CancelledError(), CRASHED])
def test_after_a_bad_end_its_file_is_put_back(error: BaseException, machine: Machine) -> None:
    def half(_: Emit) -> None:
        machine.file.write_bytes(FIRST + MORE)
        raise error

    with pytest.raises(type(error)):
        machine.run(machine.session(), half)

    assert machine.file.read_bytes() == FIRST
    lock = SessionLock(ID)
    assert lock.hold()
    lock.release()


def test_what_came_too_late_is_taken_out_unless_somebody_continued(machine: Machine) -> None:
    late, other = machine.session(), b'{"by":"hand"}\n'
    machine.run(late)
    assert machine.file.read_bytes() == FIRST + MORE

    late.withdraw()
    assert machine.file.read_bytes() == FIRST

    late = machine.session(wanted=WantedSession(id=ID, mark=mark_of(machine.file)))
    machine.run(late)
    machine.file.write_bytes(FIRST + MORE + other)
    late.withdraw()
    assert machine.file.read_bytes() == FIRST + MORE + other


def test_an_empty_mark_vouches_for_nothing_so_nobody_can_have_a_session_emptied(machine: Machine) -> None:
    empty = FileMark(size=0, digest="e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")

    machine.run(machine.session(wanted=WantedSession(id=ID, mark=empty, left_until=9_999_999_999_999)))

    assert machine.told == ["the file of its session is gone"]
    assert machine.file.read_bytes() == FIRST


@pytest.mark.parametrize("name", ["../../../etc/passwd", "--dangerously-skip-permissions", "a b c d e f g", "*" * 10])
@pytest.mark.parametrize("which", ["use", "fresh"])
def test_what_is_not_the_id_of_a_session_is_refused(which: str, name: str, machine: Machine) -> None:
    order: dict[str, Any] = {which: SessionUse(origin="resumed", id=name)}

    with pytest.raises(NotAllowedHere, match="is not the id of a session"):
        machine.session(**order)


@pytest.mark.parametrize(
    "others",
    [
        {"use": SessionUse(origin="resumed", id=FRESH)},
        {"use": SessionUse(origin="forked", id=ID)},
        {"wanted": None},
        {"fresh": SessionUse(origin="resumed", id=FRESH)},
    ],
    ids=["another one", "in a copy", "without its file", "in the place of it"],
)
def test_a_session_is_continued_only_by_who_knows_its_file(others: dict[str, Any], machine: Machine) -> None:
    with pytest.raises(NotAllowedHere, match="is not the one that it knows"):
        machine.session(**others)
