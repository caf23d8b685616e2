"""Questions of agents at work, and words to them: with a real program that asks, and asks wrongly."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.agents.asking import asking_spec, heard_in

from bullpen.agents import Reply, process_tree, run_turn
from bullpen.agents.asked_time import AskedTime
from bullpen.agents.dialogue import MOST_OPEN, Ask, Dialogue, Tell
from bullpen.approvals import Answer
from bullpen.context import AssemblerInput
from bullpen.errors import AgentTimedOut
from bullpen.testing.clock import ManualClock
from bullpen.turn_events import ApprovalAsked, ApprovalOver, Event, TextDelta

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

    def has_spoken(self) -> bool:
        return any(isinstance(event, TextDelta) for event in self.events)

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
    turn = Asked(tmp_path, ["ask", "q1", "touch a"], ["say", "I wait."], ["wait", "q1"], ["write", "a"], ["end", ""])
    was_there: list[bool] = []

    async def ask(_: ApprovalAsked) -> Answer:
        await until(turn.has_spoken)
        was_there.append((tmp_path / "a").exists())
        return YES

    asyncio.run(turn.run(ask))

    assert was_there == [False]
    assert (tmp_path / "a").exists()
    assert [one["to"] for one in heard_in(tmp_path)] == ["q1"]


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
    turn = Asked(tmp_path, ["ask", "q1", "x"], ["ask", "q1", "x"], ["say", "Well?"], ["wait", "q1"], ["end", ""])

    async def ask(_: ApprovalAsked) -> Answer:
        await until(turn.has_spoken)
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


def test_time_does_not_count_while_people_are_asked(tmp_path: Path, clock: ManualClock) -> None:
    turn = Asked(tmp_path, ["ask", "q1", "x"], ["wait", "q1"], ["end", "fine"])

    async def ask(_: ApprovalAsked) -> Answer:
        await clock.until_waiting()
        clock.advance(600)
        await clock.until_waiting()
        return YES

    reply = asyncio.run(turn.run(ask, idle_timeout=2, total_timeout=60))

    assert reply.text == "fine"


def test_time_counts_again_after_the_answer(tmp_path: Path, clock: ManualClock) -> None:
    turn = Asked(tmp_path, ["ask", "q1", "x"], ["wait", "q1"], ["stay"])

    async def ask(_: ApprovalAsked) -> Answer:
        clock.advance(600)
        return YES

    async def waited() -> None:
        running = asyncio.ensure_future(turn.run(ask, idle_timeout=2, total_timeout=600))
        await until(lambda: turn.overs() == [("q1", True)])
        await clock.until_waiting()
        clock.advance(1.9)
        await clock.until_waiting()
        assert not running.done()
        clock.advance(0.1)
        with pytest.raises(AgentTimedOut, match="It wrote nothing for 2 seconds"):
            await running

    asyncio.run(waited())


def test_words_reach_an_agent_at_work(tmp_path: Path) -> None:
    turn = Asked(tmp_path, ["say", "working"], ["hear"], ["end", "fine"])

    async def told() -> bool:
        running = asyncio.ensure_future(turn.run(never))
        await until(turn.has_spoken)
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


class Driven:
    """A driver that notes what it is told to answer."""

    def __init__(self) -> None:
        self.outgoing: list[dict[str, Any]] = []
        self.heard: list[tuple[str, Answer]] = []

    def answer(self, question: str, answer: Answer) -> None:
        self.heard.append((question, answer))

    def parse(self, record: Any) -> Iterable[Event]:
        raise NotImplementedError

    def tell(self, text: str) -> bool:
        raise NotImplementedError

    def interrupt(self) -> None:
        raise NotImplementedError


async def test_nobody_is_asked_any_more_while_the_turn_goes_on() -> None:
    driver, events = Driven(), list[Event]()
    dialogue = Dialogue(driver, never, events.append, AskedTime(), Path())
    question = ApprovalAsked(id="7", kind="command", command="ls", folder=".")
    dialogue.on_asked(question)
    dialogue.on_over(ApprovalOver(id="7", is_answered=False))
    async with asyncio.timeout(20):
        await dialogue.closed()

    assert events == [question, ApprovalOver(id="7", is_answered=False)]
    assert driver.heard == []
    assert not dialogue.over.done()


@pytest.mark.parametrize(
    ("folder", "is_elsewhere"),
    [("", False), ("link", False), ("sub", True), ("sub/..", False), ("..", True), (None, True)],
)
async def test_a_command_in_another_folder_is_known_as_such(
    folder: str | None, is_elsewhere: bool, tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    asked: list[Event] = []
    dialogue = Dialogue(Driven(), never, asked.append, AskedTime(), tmp_path)
    told = "" if folder is None else str(tmp_path / folder)

    dialogue.on_asked(ApprovalAsked(id="7", kind="command", command="git diff", folder=told))
    dialogue.close()
    await dialogue.closed()

    [first] = [event for event in asked if isinstance(event, ApprovalAsked)]
    assert first.elsewhere is is_elsewhere


@pytest.mark.parametrize("is_taken_back", [True, False])
async def test_a_question_with_the_id_of_another_one_does_not_hear_its_answer(is_taken_back: bool) -> None:
    driver, answers = Driven(), dict[str, asyncio.Future[Answer]]()

    async def ask(asked: ApprovalAsked) -> Answer:
        answers[asked.command] = asyncio.get_running_loop().create_future()
        return await answers[asked.command]

    dialogue = Dialogue(driver, ask, lambda _: None, AskedTime(), Path())
    first = ApprovalAsked(id="7", kind="command", command="ls")
    dialogue.on_asked(first)
    await until(lambda: "ls" in answers)
    # In one step: the yes is there, the question is taken back, and another one comes with its id.
    answers["ls"].set_result(YES)
    await asyncio.sleep(0)
    if is_taken_back:
        dialogue.on_over(ApprovalOver(id="7", is_answered=False))
    dialogue.on_asked(replace(first, command="rm -rf ."))
    await until(lambda: "rm -rf ." in answers)
    assert driver.heard == []
    answers["rm -rf ."].set_result(NO)
    await dialogue.closed()

    assert driver.heard == [("7", NO)]
