"""What a running turn is said to be doing."""

import pytest

from bullpen.conversation.running_turn import RunningTurn
from bullpen.routing.queue import WaitingTurn
from bullpen.testing.clock import ManualClock
from bullpen.text.numbers import clock as clock_time
from bullpen.turn_events import ApprovalAsked, Event, Notice, TextDelta, ToolFinished, ToolStarted

TURN = WaitingTurn(id="1", member="max", message_id="msg-1")
TOOL = ToolStarted(id="t", name="Bash", input={})


@pytest.mark.parametrize(
    ("events", "shown"),
    [
        ([], "waiting? silent for 2 min"),
        ([TextDelta("x")], "waiting? silent for 2 min"),
        ([TOOL], "Bash, silent for 2 min"),
        ([TOOL, ToolFinished(id="t", output="", failed=False)], "waiting? silent for 2 min"),
        ([TOOL, ApprovalAsked(id="q", kind="command", command="x")], "waiting for an answer"),
    ],
)
def test_one_that_writes_nothing_is_not_said_to_work(events: list[Event], shown: str, clock: ManualClock) -> None:
    running = RunningTurn(TURN)
    for event in events:
        running.on_event(event)
    assert running.doing_now == running.doing
    clock.advance(150)

    assert running.doing_now == shown
    running.on_output(b"x")
    assert running.doing_now == running.doing


def test_a_turn_does_not_work_while_it_asks_people(clock: ManualClock) -> None:
    running = RunningTurn(TURN)
    clock.advance(5)
    with running.asked.asking():
        clock.advance(60)
        assert (running.seconds, running.worked) == (65, 5)
    clock.advance(1)
    assert (running.seconds, running.worked) == (66, 6)


def test_who_takes_a_turn_over_may_first_hear_of_its_second_failed_connection() -> None:
    running = RunningTurn(TURN)
    lost = Notice(kind="retry", text="no network", attempts=2, since=1_000)
    running.on_event(lost)

    assert running.steps == [lost]


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("rate_limit (429), attempt 1 of 10", "its server limits requests"),
        ("overloaded (529), attempt 1 of 10", "its server is busy"),
        ("no connection, attempt 1 of 10", "cannot reach its server"),
        ("Reconnecting... waiting for network", "cannot reach its server"),
    ],
)
def test_a_server_that_answers_can_be_reached(reason: str, words: str, clock: ManualClock) -> None:
    running = RunningTurn(TURN)
    running.on_event(Notice(kind="retry", text=reason, attempts=2, since=1_000))
    clock.advance(150)

    assert running.doing_now == f"{words}, attempt 2 since {clock_time(1_000)}"


def test_failed_connections_are_one_step_that_counts(clock: ManualClock) -> None:
    running = RunningTurn(TURN)
    lost: list[Event] = [Notice(kind="retry", text="no network", attempts=number, since=1_000) for number in (1, 2, 3)]
    for event in (TOOL, *lost):
        running.on_event(event)
    clock.advance(150)

    assert running.steps == [TOOL, lost[-1]]
    assert running.doing_now == f"cannot reach its server, attempt 3 since {clock_time(1_000)}"
    running.on_event(TextDelta("Here."))
    assert running.doing == "writing"
