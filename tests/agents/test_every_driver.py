"""What holds for every driver: over recordings of genuine CLIs in any order, and with programs that misbehave."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.agents.misbehaving import PROTOCOLS, misbehaving

from bullpen.agents import Permission, Reply, agent_spec, process_tree, run_turn
from bullpen.agents.dialogue import MOST_OPEN, Ask
from bullpen.agents.driver import Driver, Opening
from bullpen.agents.qwen import ASKS, LASTING
from bullpen.agents.time_limits import LINGER_SECONDS
from bullpen.approvals import Answer
from bullpen.context import AssemblerInput
from bullpen.errors import AgentFailed
from bullpen.testing.clock import ManualClock
from bullpen.turn_events import ApprovalAsked, ApprovalOver, Event, Failed, Finished

RECORDINGS = Path(__file__).parent / "recordings" / "asking"
EVERY_RECORDING = sorted(RECORDINGS.glob("*/*.jsonl"))
YES, NO = Answer(verdict="yes"), Answer(verdict="no", reason="not today")
OPENING = Opening(prompt="hello", folder="/home/dev/project", permissions="ask")
every_protocol = pytest.mark.parametrize("protocol", list(PROTOCOLS))


@pytest.fixture(autouse=True)
def own_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


# Recordings, as they were and in any order.


def driver_of(cli: str) -> Driver:
    spec = agent_spec(cli).with_permissions("ask")
    assert spec.driver is not None
    return spec.driver(OPENING)


def said_by_agent(recording: Path) -> list[Any]:
    lines = [json.loads(line) for line in recording.read_text(encoding="utf-8").splitlines()]
    return [line.get("msg", line) for line in lines if line.get("from", "agent") != "client"]


def questions_in(records: list[Any]) -> Counter[str]:
    """Return how often each request of an agent stands in what it said."""
    ids = [record.get("request_id", record.get("id")) for record in records if _is_request(record)]
    return Counter(map(str, ids))


def _is_request(record: Any) -> bool:
    return record.get("type") == "control_request" or ("method" in record and "id" in record)


def replies_in(sent: list[Any]) -> Counter[str]:
    """Return how often each request of the agent was answered."""
    ids = [one["response"]["request_id"] for one in sent if one.get("type") == "control_response"]
    ids += [one["id"] for one in sent if "id" in one and "method" not in one]
    return Counter(map(str, ids))


def permitted(sent: list[Any]) -> bool:
    """Return whether anything was allowed."""
    text = json.dumps(sent)
    return any(word in text for word in ('"allow"', '"accept"', "proceed_once", '"once"', "allow_once"))


class Played:
    """What an agent said in any order, with the same answer to everything that it asks."""

    def __init__(self, cli: str, records: list[Any], answer: Answer | None) -> None:
        self.driver = driver_of(cli)
        self.events: list[Event] = []
        self.sent: list[Any] = []
        for record in records:
            self._send()
            try:
                new = list(self.driver.parse(record))
            except Exception:
                continue  # it is shown as a notice
            self.events += new
            for event in new:
                if isinstance(event, ApprovalAsked) and answer is not None:
                    self.driver.answer(event.id, answer)
                    self.driver.answer(event.id, YES)
        self._send()

    def _send(self) -> None:
        self.sent += self.driver.outgoing
        self.driver.outgoing.clear()

    def interrupted(self) -> "Played":
        self.driver.interrupt()
        self._send()
        return self


def any_order(records: list[Any], chance: random.Random) -> list[Any]:
    """Return what was said with some of it twice, missing, or elsewhere."""
    changed = [one for record in records for one in [record] * chance.choice([1, 1, 1, 1, 0, 2])]
    for _ in range(chance.randint(0, 3)):
        changed.insert(chance.randrange(len(changed) + 1), chance.choice(records))
    return changed


@pytest.mark.parametrize("recording", EVERY_RECORDING, ids=lambda file: f"{file.parent.name} {file.stem}")
def test_recordings_in_any_order(recording: Path) -> None:
    cli, records = recording.parent.name, said_by_agent(recording)
    for seed in range(60):
        chance = random.Random(seed)
        said = any_order(records, chance) if seed else records
        answer = chance.choice([YES, NO, Answer(verdict="stop"), None])
        played = Played(cli, said, answer).interrupted()
        asked, replied = questions_in(said), replies_in(played.sent)
        assert replied - asked == Counter(), "nothing is answered that was not asked, nor more often"
        endings = [event for event in played.events if isinstance(event, Finished | Failed)]
        assert len(endings) <= 1 or cli == "codex"
        # A request that comes again may be about something that is free by then.
        if answer is not None and answer.verdict != "yes" and max(asked.values(), default=0) <= 1:
            free = Played(cli, said, None)
            assert permitted(free.sent) or not permitted(played.sent), "the answer was no"


# Programs that misbehave.


Meanwhile = Callable[[], Coroutine[Any, Any, None]]


async def nothing() -> None:
    """Do nothing meanwhile."""


class Turn:
    """A turn of a program that misbehaves."""

    def __init__(self, protocol: str, folder: Path, *steps: list[Any]) -> None:
        self.spec = misbehaving(protocol, *steps)
        self.folder = folder
        self.events: list[Event] = []
        self.output = bytearray()

    def run(self, ask: Ask, *, meanwhile: Meanwhile = nothing, **options: Any) -> str:
        """Return its answer, or the kind of its failure. Nothing is left of it in either case."""
        try:
            ending = asyncio.run(self._reply(ask, meanwhile, options)).text
        except AgentFailed as error:
            ending = error.event.kind
        assert not process_tree.running
        assert sorted(self.asked) == sorted(event.id for event in self.of(ApprovalOver)), "no question stays open"
        return ending

    async def _reply(self, ask: Ask, meanwhile: Meanwhile, options: dict[str, Any]) -> Reply:
        given = self.spec.assembler().assemble(AssemblerInput(current_message="hello", system_instruction=""))
        options = {"permissions": "ask", "ask": ask, "on_output": self.output.extend, **options}
        beside = asyncio.ensure_future(meanwhile())
        try:
            return await run_turn(self.spec, given, emit=self.events.append, cwd=self.folder, **options)
        finally:
            beside.cancel()

    async def until_written(self, text: str, times: int = 1) -> None:
        """Wait until the program has written that."""
        while self.output.count(text.encode()) < times:
            await asyncio.sleep(0.002)

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def asked(self) -> list[str]:
        return [event.id for event in self.of(ApprovalAsked)]

    @property
    def answers(self) -> list[str]:
        file = self.folder / "answers"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def ran(self) -> list[str]:
        return sorted(file.name for file in self.folder.glob("ran-*"))


def always(answer: Answer) -> Ask:
    async def ask(_: ApprovalAsked) -> Answer:
        return answer

    return ask


async def never(_: ApprovalAsked) -> Answer:
    await asyncio.Event().wait()
    raise AssertionError


@every_protocol
def test_it_asks_twice_with_one_id(protocol: str, tmp_path: Path) -> None:
    turn = Turn(protocol, tmp_path, ["ask", 1, "x"], ["ask", 1, "x"], ["wait", 1], ["end"])

    async def ask(_: ApprovalAsked) -> Answer:
        await turn.until_written('"command": "x"', times=2)
        return YES

    assert turn.run(ask) == "fine"

    assert len(turn.asked) == 1
    assert turn.answers == ["1 True"]


@every_protocol
def test_an_id_that_it_uses_again_is_asked_again(protocol: str, tmp_path: Path) -> None:
    answers = [YES, NO]

    async def ask(_: ApprovalAsked) -> Answer:
        return answers.pop(0)

    turn = Turn(protocol, tmp_path, ["ask", 1, "x"], ["wait", 1], ["ask", 1, "rm"], ["wait", 1], ["end"])

    turn.run(ask)

    assert turn.answers[:2] == ["1 True", "1 False"]
    assert [event.command for event in turn.of(ApprovalAsked)] == ["x", "rm"]


@every_protocol
@pytest.mark.parametrize("answer", [YES, NO])
def test_it_does_what_it_is_told(protocol: str, answer: Answer, tmp_path: Path) -> None:
    turn = Turn(protocol, tmp_path, ["ask", 1, "x"], ["wait", 1], ["ask", 2, "x"], ["wait", 2], ["end"])

    turn.run(always(answer))

    assert turn.ran == (["ran-1", "ran-2"] if answer is YES else [])


@every_protocol
def test_it_asks_after_its_end(protocol: str, tmp_path: Path) -> None:
    turn = Turn(protocol, tmp_path, ["end"], ["ask", 1, "x"], ["wait", 1])

    assert turn.run(always(YES)) == "fine"

    assert (turn.asked, turn.ran) == ([], [])


@every_protocol
def test_it_asks_for_ever(protocol: str, tmp_path: Path, clock: ManualClock) -> None:
    turn = Turn(protocol, tmp_path, ["ask for ever"])

    async def until_it_takes_too_long() -> None:
        await turn.until_written('"command": "x"', times=50)
        while True:  # while it is answered, its time does not count
            clock.advance(60)
            await asyncio.sleep(0.002)

    assert turn.run(always(NO), meanwhile=until_it_takes_too_long, total_timeout=60) == "timed_out"

    assert all(answer.endswith("False") for answer in turn.answers)


@every_protocol
def test_it_floods_questions(protocol: str, tmp_path: Path) -> None:
    turn = Turn(protocol, tmp_path, ["flood", 5 * MOST_OPEN], ["end"])

    assert turn.run(never) in ("fine", "protocol_broken")

    assert len(turn.asked) == MOST_OPEN


@every_protocol
def test_it_writes_garbage(protocol: str, tmp_path: Path) -> None:
    turn = Turn(protocol, tmp_path, ["garbage"], ["ask", 1, "x"], ["garbage"], ["wait", 1], ["garbage"], ["end"])

    assert turn.run(always(YES)) == "fine"

    assert turn.ran == ["ran-1"]


@every_protocol
@pytest.mark.parametrize("megabytes", [2, 10])
def test_it_asks_a_huge_question(protocol: str, megabytes: int, tmp_path: Path, clock: ManualClock) -> None:
    turn = Turn(protocol, tmp_path, ["huge", megabytes], *([["wait", 1]] if megabytes == 2 else []), ["end"])

    turn.run(always(YES))

    # Of a line that is too long nobody could be shown all. It is not asked, so it does not run.
    assert [len(event.command) for event in turn.of(ApprovalAsked)] == ([megabytes * 2**20] if megabytes == 2 else [])
    assert turn.ran == (["ran-1"] if megabytes == 2 else [])
    assert len(turn.answers) == (megabytes == 2)


@every_protocol
def test_it_closes_its_input(protocol: str, tmp_path: Path, clock: ManualClock) -> None:
    turn = Turn(protocol, tmp_path, ["deaf"], ["ask", 1, "x"], ["ask", 2, "y"], ["stay"])

    async def until_it_is_silent_too_long() -> None:
        while len(turn.of(ApprovalOver)) < 2:
            await asyncio.sleep(0.002)
        while True:  # it may not have written all of it yet
            clock.advance(2)
            await asyncio.sleep(0.002)

    assert (
        turn.run(always(YES), meanwhile=until_it_is_silent_too_long, idle_timeout=2, total_timeout=1e9) == "timed_out"
    )

    assert turn.ran == []


@every_protocol
def test_it_does_not_end_when_its_input_does(protocol: str, tmp_path: Path, clock: ManualClock) -> None:
    turn = Turn(protocol, tmp_path, ["end"], ["stay"])

    async def until_it_lingers_too_long() -> None:
        await turn.until_written({"claude": "success", "codex": "turn/completed", "acp": "end_turn"}[protocol])
        while True:  # it may not have been read yet
            clock.advance(LINGER_SECONDS)
            await asyncio.sleep(0.002)

    ending = turn.run(never, meanwhile=until_it_lingers_too_long, total_timeout=1e9)

    # Claude Code and Codex end by themselves, so a program in their place that does not is broken.
    assert ending == ("fine" if protocol == "acp" else "timed_out")
    silence = [] if protocol == "acp" else [f"It wrote nothing for {LINGER_SECONDS:g} seconds."]
    assert [failed.message for failed in turn.of(Failed)] == silence


@pytest.mark.parametrize("permissions", ["read-only", "edit"])
def test_qwen_has_no_tool_whose_work_outlives_the_turn(permissions: Permission) -> None:
    spec = agent_spec("qwen")

    arguments = spec.arguments(permissions, None, ())
    asking = json.loads(Path(ASKS).read_text(encoding="utf-8"))["permissions"]

    assert {*LASTING} <= {*arguments[arguments.index("--exclude-tools") + 1].split(",")}
    assert asking["deny"] == [*LASTING]
    assert not {*LASTING} & {*asking["ask"]}
