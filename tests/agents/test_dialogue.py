"""Questions of agents at work, and words to them: with a real program that asks, and asks wrongly."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.agents.asking import asking_spec, heard_in

from bullpen.agents import Reply, process_tree, run_turn
from bullpen.agents.dialogue import MOST_OPEN, Ask, Tell
from bullpen.approvals import Answer
from bullpen.context import AssemblerInput
from bullpen.errors import AgentTimedOut
from bullpen.turn_events import ApprovalAsked, ApprovalOver, Event

YES, NO = Answer(verdict="yes"), Answer(verdict="no", reason="not today")


@pytest.fixture(autouse=True)
def own_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


class Asked:
    """A turn of an agent that asks."""

    def __init__(self, folder: Path, *steps: list[str]) -> None:
        self.spec = asking_spec(*steps)
        self.folder = folder
        self.events: list[Event] = []
        self.tell: Tell = lambda _: False

    async def run(self, ask: Ask, **options: Any) -> Reply:
        given = self.spec.assembler().assemble(AssemblerInput(current_message="hello", system_instruction=""))

        def on_tell(tell: Tell) -> None:
            self.tell = tell

        return await run_turn(
            self.spec,
            given,
            emit=self.events.append,
            cwd=self.folder,
            permissions="ask",
            ask=ask,
            on_tell=on_tell,
            **options,
        )

    def questions(self) -> list[str]:
        return [event.id for event in self.events if isinstance(event, ApprovalAsked)]

    def overs(self) -> list[tuple[str, bool]]:
        return [(event.id, event.is_answered) for event in self.events if isinstance(event, ApprovalOver)]


def always(answer: Answer) -> Ask:
    async def ask(_: ApprovalAsked) -> Answer:
        return answer

    return ask


async def never(_: ApprovalAsked) -> Answer:
    await asyncio.Event().wait()
    raise AssertionError


async def until(is_true: Callable[[], bool]) -> None:
    while not is_true():
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("answer", [YES, NO])
def test_an_answer_reaches_the_program(tmp_path: Path, answer: Answer) -> None:
    turn = Asked(tmp_path, ["ask", "q1", "touch a"], ["wait", "q1"], ["end", "fine"])

    reply = asyncio.run(turn.run(always(answer)))

    assert reply.text == "fine"
    assert heard_in(tmp_path) == [{"to": "q1", "verdict": answer.verdict, "reason": answer.reason}]
    assert turn.questions() == ["q1"]
    assert turn.overs() == [("q1", True)]


def test_nothing_is_done_before_the_answer(tmp_path: Path) -> None:
    turn = Asked(tmp_path, ["ask", "q1", "touch a"], ["wait", "q1"], ["write", "a"], ["end", ""])
    was_there: list[bool] = []

    async def ask(_: ApprovalAsked) -> Answer:
        await asyncio.sleep(0.2)
        was_there.append((tmp_path / "a").exists())
        return YES

    asyncio.run(turn.run(ask))

    assert was_there == [False]
    assert (tmp_path / "a").exists()


def test_several_questions_are_open_at_once(tmp_path: Path) -> None:
    steps = [["ask", f"q{number}", "x"] for number in range(5)]
    turn = Asked(tmp_path, *steps, *(["wait", f"q{number}"] for number in (4, 3)), ["end", ""])
    waiting: dict[str, asyncio.Future[Answer]] = {}

    async def ask(question: ApprovalAsked) -> Answer:
        waiting[question.id] = asyncio.get_running_loop().create_future()
        if len(waiting) == 5:
            waiting["q4"].set_result(YES)
            waiting["q3"].set_result(NO)
        return await waiting[question.id]

    asyncio.run(turn.run(ask))

    assert [(one["to"], one["verdict"]) for one in heard_in(tmp_path)] == [("q4", "yes"), ("q3", "no")]
    # Those that nobody has answered are not left open.
    assert sorted(turn.overs()) == [(f"q{number}", number in (3, 4)) for number in range(5)]


def test_the_same_question_twice_is_asked_once(tmp_path: Path) -> None:
    turn = Asked(tmp_path, ["ask", "q1", "x"], ["ask", "q1", "x"], ["wait", "q1"], ["end", ""])

    async def ask(_: ApprovalAsked) -> Answer:
        await asyncio.sleep(0.2)
        return YES

    asyncio.run(turn.run(ask))

    assert turn.questions() == ["q1"]


def test_a_flood_of_questions_is_refused(tmp_path: Path) -> None:
    asked = 3 * MOST_OPEN
    flood = [["ask", f"q{number}", "x"] for number in range(asked)]
    turn = Asked(tmp_path, *flood, ["wait", f"q{asked - 1}"], ["end", ""])

    asyncio.run(turn.run(never))

    assert len(turn.questions()) == MOST_OPEN
    assert len(heard_in(tmp_path)) == asked - MOST_OPEN
    assert {one["verdict"] for one in heard_in(tmp_path)} == {"no"}


def test_a_question_after_the_end_is_not_asked(tmp_path: Path) -> None:
    turn = Asked(tmp_path, ["end", "fine"], ["ask", "q1", "x"])

    reply = asyncio.run(turn.run(never))

    assert reply.text == "fine"
    assert turn.questions() == []


def test_a_question_that_is_taken_back_is_asked_no_more(tmp_path: Path) -> None:
    turn = Asked(tmp_path, ["ask", "q1", "x"], ["back", "q1"], ["end", "fine"])

    asyncio.run(turn.run(never))

    assert turn.overs() == [("q1", False)]


def test_a_cancelled_turn_answers_its_questions_and_leaves_no_process(tmp_path: Path) -> None:
    turn = Asked(tmp_path, ["ask", "q1", "x"], ["wait", "q1"], ["stay"])

    async def cancelled() -> None:
        running = asyncio.ensure_future(turn.run(never))
        await until(lambda: turn.questions() == ["q1"])
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancelled())

    assert turn.overs() == [("q1", False)]
    assert not process_tree.running


def test_time_does_not_count_while_people_are_asked(tmp_path: Path) -> None:
    turn = Asked(tmp_path, ["ask", "q1", "x"], ["wait", "q1"], ["end", "fine"])

    async def ask(_: ApprovalAsked) -> Answer:
        await asyncio.sleep(2.5)
        return YES

    # Starting the program counts, and may take a while on a busy machine.
    reply = asyncio.run(turn.run(ask, idle_timeout=2, total_timeout=60))

    assert reply.text == "fine"


def test_time_counts_again_after_the_answer(tmp_path: Path) -> None:
    turn = Asked(tmp_path, ["ask", "q1", "x"], ["wait", "q1"], ["stay"])

    with pytest.raises(AgentTimedOut):
        asyncio.run(turn.run(always(YES), idle_timeout=1, total_timeout=600))


def test_words_reach_an_agent_at_work(tmp_path: Path) -> None:
    turn = Asked(tmp_path, ["say", "working"], ["hear"], ["end", "fine"])

    async def told() -> bool:
        running = asyncio.ensure_future(turn.run(never))
        await until(lambda: any(not isinstance(event, ApprovalAsked) for event in turn.events))
        is_taken = turn.tell("look at the tests, too")
        await running
        assert not turn.tell("too late")
        return is_taken

    assert asyncio.run(told())
    assert heard_in(tmp_path) == [{"tell": "look at the tests, too"}]


def test_who_cannot_be_asked_says_no(tmp_path: Path) -> None:
    from bullpen.agents.dialogue import nobody

    turn = Asked(tmp_path, ["ask", "q1", "x"], ["wait", "q1"], ["end", "fine"])

    asyncio.run(turn.run(nobody))

    assert [one["verdict"] for one in heard_in(tmp_path)] == ["no"]


def test_a_question_shows_escapes_and_hides_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-abcdef0123456789abcdef")
    command = "curl -H sk-abcdef0123456789abcdef x \x1b[8m; rm -rf .\x1b[0m"
    turn = Asked(tmp_path, ["ask", "q1", command], ["wait", "q1"], ["end", ""])

    asyncio.run(turn.run(always(NO)))

    (asked,) = [event for event in turn.events if isinstance(event, ApprovalAsked)]
    assert "sk-abcdef" not in asked.command
    assert asked.command.endswith("x \x1b[8m; rm -rf .\x1b[0m")
